//! Both ends do the same at once (RFC 9293 §3.5, figure 8; §3.6, figure 13).

use super::*;

/// Both have sent a SYN, and the peer's has arrived.
fn opening(config: Config) -> Diagram {
    let mut t = Diagram::new(&config, Side::Active);
    t.recv([syn()]);
    t.time(50);
    t.send(syn());
    t.recv([syn_ack()]);
    assert_eq!((t.state(), t.connection.take_events()), (State::SynReceived, Events::empty()));
    t
}

#[test]
fn simultaneous_open() {
    let mut t = opening(config());
    t.time(100);
    t.send(syn_ack());
    t.silent();
    assert_eq!((t.state(), t.connection.take_events()), (State::Established, Events::CONNECTED));
    t.write(500);
    t.recv([bytes(0, 500)]);
    t.send(data(1).acking(501));
    t.recv([ack(2).seq(501)]);
}

#[test]
fn simultaneous_open_is_over_even_if_the_application_has_closed_meanwhile() {
    let mut t = opening(config());
    t.close();
    t.silent(); // The FIN waits for the SYN to be acknowledged.
    t.time(100);
    t.send(syn_ack());
    t.recv([bytes(0, 0).fin()]);
    assert_eq!((t.state(), t.connection.take_events()), (State::FinWait1, Events::CONNECTED));
}

#[test]
fn simultaneous_open_ends_with_any_acknowledgment_of_the_syn() {
    let mut t = opening(config());
    t.send(data(1)); // The peer's SYN-ACK was lost, but not the data after it.
    t.recv([ack(2)]);
    assert_eq!((t.state(), t.read(0)), (State::Established, 1000));
}

#[test]
fn simultaneous_open_survives_the_loss_of_an_answer() {
    let mut t = opening(config());
    t.time(1050); // Our timer runs since the SYN went again.
    t.recv([syn_ack()]);
    t.send(syn()); // Nothing of ours has reached the peer yet.
    t.recv([syn_ack()]);
    t.send(syn_ack());
    t.silent();
    t.send(syn_ack()); // RFC 5961 §4: what comes again is answered as any SYN.
    t.recv([ack(1)]);
    assert_eq!(t.state(), State::Established);
}

#[test]
fn simultaneous_open_agrees_on_what_both_have_offered() {
    let mut t = Diagram::new(&Config { timestamps: true, ..config() }, Side::Active);
    t.recv([syn()]);
    t.stamp = Some(100);
    t.offer.sack_permitted = false;
    t.send(syn());
    t.recv([syn_ack()]);
    let answer = t.last().options;
    assert_eq!(answer.timestamps.map(|stamp| stamp.echo), Some(100));
    assert!(!answer.sack_permitted && answer.window_scale == Some(SHIFT));
}

#[test]
fn simultaneous_open_that_is_reset_is_a_refusal() {
    let mut t = opening(config());
    t.send(ack(1).rst());
    t.silent();
    // Unlike after a passive open, an application is notified (RFC 9293 §3.10.7.4, second).
    assert_eq!(t.connection.take_events(), Events::RESET | Events::CLOSED);
}

#[test]
fn closing_while_opening_sends_the_fin_after_the_handshake() {
    // RFC 9293 §3.10.4, SYN-RECEIVED.
    let mut t = Diagram::new(&config(), Side::Passive);
    t.send(syn());
    t.recv([syn_ack()]);
    t.write(500);
    t.close();
    t.silent();
    t.time(100);
    t.send(ack(1));
    t.recv([bytes(0, 500).fin()]);
    assert_eq!((t.state(), t.connection.take_events()), (State::FinWait1, Events::CONNECTED));
}

#[test]
fn simultaneous_close_with_data_on_its_way() {
    let mut t = established(config());
    t.write(1500);
    t.close();
    t.recv([data(1), bytes(1000, 1500), ack(1).seq(1501).fin()]);
    t.send(data(1).fin()); // It acknowledges nothing of that.
    t.recv([ack(1).seq(1502).acking(1002)]);
    assert_eq!((t.state(), t.read(0)), (State::Closing, 1000));
    t.time(200);
    t.send(ack(1).seq(1002).acking(1001));
    assert_eq!(t.state(), State::Closing); // The FIN is still missing.
    t.send(ack(1).seq(1002).acking(1502));
    t.silent();
    assert_eq!(t.state(), State::TimeWait);
}

#[test]
fn a_lost_fin_is_sent_again_while_closing() {
    let mut t = established(config());
    t.close();
    t.recv([ack(1).fin()]);
    t.send(ack(1).fin());
    t.recv([ack(1).seq(2).acking(2)]);
    t.time(1100);
    t.recv([ack(1).acking(2).fin()]);
    t.send(ack(1).fin()); // Theirs, too.
    t.recv([ack(1).seq(2).acking(2)]);
    t.send(ack(1).seq(2).acking(2));
    assert_eq!(t.state(), State::TimeWait);
}
