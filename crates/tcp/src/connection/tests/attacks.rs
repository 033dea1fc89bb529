//! Segments forged by an off-path attacker (RFC 5961), and old segments.

use super::*;
use crate::{DropReason, Event};

fn refusals(t: &mut Diagram) -> Vec<DropReason> {
    let events = core::iter::from_fn(|| t.connection.poll_event());
    events.filter_map(|e| if let Event::Refused { why } = e { Some(why) } else { None }).collect()
}

#[test]
fn a_blind_reset_is_challenged_and_a_true_one_repeats_itself() {
    // RFC 5961 §3.2: the peer that has reset the connection answers the challenge with the number
    // that the challenge acknowledges.
    let mut t = established(config());
    t.connection.watch(true);
    t.send(reset(5000));
    t.recv([ack(1)]);
    assert_eq!(refusals(&mut t), [DropReason::BlindReset]);
    t.send(reset(1));
    assert_eq!(t.connection.take_events(), Events::RESET | Events::CLOSED);
}

#[test]
fn a_blind_syn_is_challenged_and_a_restarted_peer_resets() {
    // RFC 5961 §4.2; RFC 9293 §3.5.1, figure 9.
    let mut t = sending(config());
    t.connection.watch(true);
    t.send(syn().seq(1 << 29));
    t.recv([ack(1).seq(at(11))]);
    assert_eq!(refusals(&mut t), [DropReason::BlindSyn]);
    t.send(reset(1)); // "I know nothing of that": with the challenge's acknowledgment number.
    assert_eq!((t.state(), t.connection.poll_timeout()), (State::Closed, Time::NEVER));
}

/// A peer whose windows were never larger than two segments has acknowledged four.
fn acknowledged() -> Diagram {
    let mut t = Diagram::new(&config(), Side::Active);
    t.recv([syn()]);
    t.window = 2000;
    t.time(100);
    t.send(syn_ack());
    t.recv([ack(1)]);
    t.write(segments(4));
    t.recv(each(1..=2));
    t.send(ack(3));
    t.recv(each(3..=4));
    t.send(ack(5));
    t.connection.watch(true);
    t
}

#[test]
fn blind_data_must_acknowledge_something_recent() {
    // RFC 5961 §5.2: SND.UNA - MAX.SND.WND <= SEG.ACK <= SND.NXT.
    let mut t = acknowledged();
    t.send(data(1).acking(at(5) - 2001));
    t.recv([ack(1).seq(at(5))]);
    t.send(data(1).acking(at(5) + 1));
    t.recv([ack(1).seq(at(5))]);
    assert_eq!(refusals(&mut t), [DropReason::BadAck, DropReason::BadAck]);
    assert_eq!(t.read(0), 0);
    t.send(data(1).acking(at(5) - 2000)); // Old, but not too old.
    t.recv([ack(2).seq(at(5))]);
    assert_eq!(t.read(0), 1000);
}

#[test]
fn an_old_acknowledgment_with_new_data_leaves_the_window_alone() {
    // RFC 9293 §3.10.7.4, fifth: only if SND.UNA =< SEG.ACK is the window to be updated.
    let mut t = acknowledged();
    t.send(data(2).acking(at(4)).window(0));
    t.recv([ack(1).seq(at(5)).sack(2..=2)]);
    t.write(1000);
    t.recv([data(5)]);
}

#[test]
fn challenges_are_limited() {
    // RFC 5961 §7: here two in five seconds.
    let mut t = established(Config { challenges: 2, ..config() });
    for _ in 0..2 {
        t.send(reset(5000));
        t.recv([ack(1)]);
    }
    t.send(reset(5000));
    t.send(syn());
    t.send(ack(1).acking(100));
    t.silent();
    t.send(data(1)); // What is no attack is answered as ever.
    t.recv([ack(2)]);
    t.time(5100);
    t.send(syn());
    t.recv([ack(2)]);
}

#[test]
fn probes_are_answered_whatever_was_challenged() {
    // RFC 9293 §3.8.4, §3.8.6.1: a keep-alive each second, after as many challenges as there may be.
    let mut t = established(config());
    for _ in 0..11 {
        t.send(reset(5000));
    }
    t.recv(vec![ack(1); 10]);
    for second in 1..=30 {
        t.time(100 + 1000 * second);
        t.send(ack(1).seq(0));
        t.recv([ack(1)]);
    }
}

#[test]
fn answers_to_probes_are_limited_and_leave_the_challenges_alone() {
    // Here three in five seconds.
    let mut t = established(Config { out_of_window_acks: 3, ..config() });
    for _ in 0..5 {
        t.send(ack(1).seq(0)); // Before the window
        t.send(ack(1).seq(1 << 30)); // and behind it.
    }
    t.recv(vec![ack(1); 3]);
    t.send(reset(5000));
    t.recv([ack(1)]);
    t.send(Seg { len: 1, ..ack(1).seq(0) }); // Data is answered as ever.
    t.recv([ack(1)]);
    t.time(5100);
    t.send(ack(1).seq(0));
    t.recv([ack(1)]);
}

#[test]
fn tiny_segments_do_not_fill_the_reassembly_queue() {
    // An entry for each 128 octets of the window, and no less than 64.
    let mut t = established(Config { receive_window: ReceiveWindow::fixed(8200), ..config() });
    t.connection.watch(true);
    let every_other = |n: u32| bytes(2 * n, 2 * n + 1);
    for n in 1..=64 {
        t.send(every_other(n));
    }
    t.unseen.clear();
    assert_eq!(refusals(&mut t), []);
    t.send(every_other(65));
    let newest =
        |seg: Seg| [64, 63, 62, 61].iter().fold(seg, |s, n| s.sack_bytes(1 + 2 * n, 2 + 2 * n));
    t.recv([newest(ack(1))]);
    assert_eq!(refusals(&mut t), [DropReason::QueueFull]);
    // What is missing always finds room, and what was kept is still there.
    t.send(bytes(0, 2));
    t.recv([newest(ack(1).acking(4))]);
    assert_eq!(t.read(0), 3);
    t.send(every_other(65));
    assert_eq!(refusals(&mut t), []);
}

#[test]
fn challenges_are_events() {
    let mut t = established(config());
    t.connection.watch(true);
    t.send(syn());
    t.recv([ack(1)]);
    assert_eq!(t.connection.poll_event(), Some(Event::Refused { why: DropReason::BlindSyn }));
    assert_eq!(t.connection.poll_event(), Some(Event::Challenged));
}

#[test]
fn what_precedes_the_peers_syn_is_not_reported_as_received_twice() {
    // An old duplicate of another connection, before anything of this one.
    let mut t = established(Config { dsack: true, ..config() });
    t.send(bytes(0, 2000));
    t.recv([ack(3)]);
    t.send(data(1).seq(u32::MAX - 5000));
    t.recv([ack(3)]);
    t.send(data(1).seq(u32::MAX - 5000).rst());
    t.silent();
    assert_eq!((t.state(), t.read(0)), (State::Established, 2000));
}

#[test]
fn an_unreachable_peer_is_given_up_only_before_it_has_answered() {
    // RFC 5461 §4; RFC 5927 §4.1.
    let unreachable = |t: &mut Diagram, seq: u32, hard: bool| {
        let indication = Indication::Unreachable { seq: ISS + seq, hard };
        t.connection.indicate(t.now, &indication);
    };
    let mut t = Diagram::new(&config(), Side::Active);
    t.recv([syn()]);
    unreachable(&mut t, 0, false); // A soft error: it may pass.
    unreachable(&mut t, 1, true); // Of something that is not outstanding.
    unreachable(&mut t, u32::MAX, true);
    assert_eq!(t.state(), State::SynSent);
    unreachable(&mut t, 0, true);
    assert_eq!(t.connection.take_events(), Events::UNREACHABLE | Events::CLOSED);
    assert_eq!(t.connection.poll_timeout(), Time::NEVER);

    let mut t = sending(config());
    unreachable(&mut t, 1, true);
    assert_eq!((t.state(), t.connection.take_events()), (State::Established, Events::empty()));
}

#[test]
fn an_acknowledgment_from_before_the_peers_syn_acknowledges_nothing() {
    let mut t = sending(config());
    t.send(Seg { seq: 0_u32.wrapping_sub(5000), ..ack(4) });
    t.unseen.clear();
    assert_eq!(t.connection.vitals().flight, segments(10));
}
