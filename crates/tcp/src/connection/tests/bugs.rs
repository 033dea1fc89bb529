//! What the standards ask for and the code does not do: these tests fail.

use super::*;

#[test]
fn a_closed_window_is_probed() {
    // RFC 9293 §3.8.6.1, MUST-36: else a lost window update stops the connection for ever.
    let mut t = sending(config());
    t.time(200);
    t.send(ack(11).window(0));
    t.silent();
    assert_ne!(t.connection.poll_timeout(), Time::NEVER);
}

#[test]
fn reading_opens_a_closed_window_again() {
    // RFC 9293 §3.8.6.2.2: the peer must hear of it.
    let mut t = established(Config { receive_window: 2000, ..config() });
    t.send(data(1));
    t.send(data(2));
    t.recv([ack(2), ack(3)]);
    assert_eq!(t.read(0), 2000);
    t.transmit();
    t.recv([ack(3)]);
    assert_eq!(t.last().window, 2000);
}

#[test]
fn a_notice_does_not_hide_a_lower_hole() {
    // RFC 6675 §4, NextSeg rule 3 looks above HighRxt, the highest retransmission *of what was
    // found lost*. A notice about the last of eight segments moves it past 5, which is late.
    let eten = crate::mechanism::Eten { suppress_dupacks: true };
    let mechanisms = vec![crate::mechanism::Mechanism::Eten(eten)];
    let mut t = sending_only(8, Config { mechanisms, ..config() });
    t.time(200);
    t.send(ack(1).sack(2..=4));
    t.recv([data(1)]); // Pipe: five; the window is four.
    t.notice(8);
    t.recv([data(8)]);
    t.send(ack(1).sack(6..=6).sack(2..=4));
    t.silent();
    t.send(ack(1).sack(6..=7).sack(2..=4));
    t.recv([data(5)]);
}
