//! The option is agreed on, or nothing is changed at all.

use super::*;
use crate::mechanism::Hooks;

/// Passive, given a SYN with or without the option and timestamps.
fn asked(option: Option<ConnectivityChange>, stamp: Option<u32>, timestamps: bool) -> Diagram {
    let mut t = Diagram::new(&Config { timestamps, ..with(corrected()) }, Side::Passive);
    t.offer.mss = Some(SIZE);
    (t.offer.connectivity, t.stamp) = (option.into(), stamp);
    t.send(syn());
    t
}

#[test]
fn the_option_is_offered_and_answered_together_with_timestamps() {
    let t = agreed(with(corrected()));
    assert!(t.connection.info().timestamps);
    let mut t = asked(Some(IDLE), Some(7), true);
    t.recv([syn_ack().change(IDLE)]);
    assert!(t.last().options.len() <= wire::Options::ROOM);
    t.send(ack(1));
    t.silent();
    assert_eq!(t.state(), State::Established);
}

#[test]
fn the_answer_has_the_form_of_the_offer() {
    let draft = ConnectivityChange { encoding: Encoding::Draft, ..IDLE };
    let mut t = asked(Some(draft), Some(7), true);
    t.recv([syn_ack().change(draft)]);
    t.send(ack(1));
    t.connectivity(MOVED);
    t.recv([ack(1).change(ConnectivityChange { encoding: Encoding::Draft, ..INDICATION })]);
}

#[test]
fn without_timestamps_the_option_is_not_offered() {
    let mut t = Diagram::new(&Config { timestamps: false, ..with(corrected()) }, Side::Active);
    t.recv([syn()]);
}

#[test]
fn what_lacks_the_option_or_timestamps_is_not_answered_with_it() {
    for (option, stamp, timestamps) in
        [(None, Some(7), true), (Some(IDLE), None, true), (Some(IDLE), Some(7), false)]
    {
        let mut t = asked(option, stamp, timestamps);
        t.recv([syn_ack()]);
        t.send(ack(1));
        // Nothing is made of what comes later, of either kind.
        t.stamp = stamp.map(|stamp| stamp + 1);
        t.send(ack(1).change(INDICATION));
        t.connectivity(MOVED);
        t.silent();
        assert_eq!(t.statistics().reprobes, 0);
    }
}

#[test]
fn a_full_sized_segment_keeps_room_for_it_once_it_is_agreed_on() {
    // RFC 6691 §3: timestamps take 12 bytes, the option 8 or 4.
    for (offered, encoding, len) in [
        (true, Encoding::Experimental, 1000),
        (true, Encoding::Draft, 1004),
        (false, Encoding::Experimental, 1008),
    ] {
        let mut t =
            asked(offered.then_some(ConnectivityChange { encoding, ..IDLE }), Some(7), true);
        t.unseen.clear();
        t.send(ack(1));
        t.write(3000);
        assert_eq!(t.unseen.pop_front().map(|(_, seg)| seg.len), Some(len));
    }
}

/// Loss, timeouts, back-off, data both ways and a close, with a peer that knows no such option.
fn life(mechanisms: Vec<Mechanism>, side: Side, stamp: Option<u32>) -> Diagram {
    let config = Config { mechanisms, limited_transmit: true, ..with(corrected()) };
    let mut t = Diagram::new(&config, side);
    t.stamp = stamp;
    let step = |t: &mut Diagram, millis: u64, seg: Seg| {
        t.unseen.clear();
        t.time(millis);
        t.stamp = stamp.map(|_| millis as u32);
        t.send(seg);
    };
    match side {
        Side::Active => step(&mut t, 100, syn_ack()),
        Side::Passive => step(&mut t, 0, syn()),
    }
    step(&mut t, 110, ack(1));
    t.write(200_000);
    for (millis, seg) in [
        (200, ack(3)),
        (210, ack(3).sack(5..=6)),
        (220, ack(3).sack(5..=8)),
        (300, ack(7)),
        (5000, data(1).acking(at(8))),
        (5001, data(3).acking(at(8))),
        (20_000, ack(9).seq(at(2)).change(INDICATION)),
        (20_100, ack(12).seq(at(2))),
    ] {
        step(&mut t, millis, seg);
    }
    t.connectivity(MOVED);
    t.connectivity(Connectivity::Full);
    t.close();
    t.unseen.clear();
    t.time(60_000);
    t
}

#[test]
fn with_a_peer_that_lacks_it_a_connection_differs_by_the_option_of_its_syn_alone() {
    for side in [Side::Active, Side::Passive] {
        for stamp in [None, Some(7)] {
            let with = life(vec![Mechanism::Rlci(corrected())], side, stamp);
            let without = life(vec![], side, stamp);
            assert!(without.statistics().timeouts > 2 && without.statistics().reductions > 0);
            let mut sent = with.sent.clone();
            for packet in &mut sent {
                let segment = packet.tcp_mut().unwrap();
                let offers = side == Side::Active && segment.flags == Flags::SYN;
                assert_eq!(segment.options.connectivity.take(), offers.then_some(IDLE));
            }
            assert_eq!(sent, without.sent);
            // Nor does it cost anything.
            assert!(!with.connection.mechanisms.has_hook(Hooks::all()));
            let plain = [&with, &without].map(|t| t.connection.on_fast_path);
            assert_eq!(plain[0], plain[1]);
        }
    }
    let mut t = Diagram::new(&with(corrected()), Side::Active);
    t.send(syn_ack());
    assert!(t.connection.on_fast_path, "its segments may take the fast path");
}

#[test]
fn our_syn_goes_again_at_once_with_a_fresh_timer() {
    let mut t = offered(with(corrected()));
    t.time(1000);
    t.recv([syn().change(IDLE)]);
    t.time(2500); // The next would go at 3000.
    t.connectivity(MOVED);
    t.recv([syn().change(IDLE)]);
    t.time(3499);
    t.silent();
    t.time(3500);
    t.recv([syn().change(IDLE)]);

    // A SYN that was lost on the old path does not reduce the initial window on the new one.
    let mut t = offered(with(corrected()));
    t.time(1000);
    t.recv([syn().change(IDLE)]);
    t.connectivity(MOVED);
    t.recv([syn().change(IDLE)]);
    t.time(1100);
    t.stamp = Some(100);
    t.send(syn_ack());
    t.recv([ack(1)]);
    assert_eq!(t.windows(), (segments(10), u64::MAX));
    t.time(1200);
    t.silent(); // There is nothing to agree on.
}

#[test]
fn our_answer_to_a_syn_goes_again_at_once() {
    let mut t = asked(Some(IDLE), Some(7), true);
    t.recv([syn_ack().change(IDLE)]);
    t.time(500);
    t.connectivity(MOVED);
    t.recv([syn_ack().change(IDLE)]);
    t.time(1499);
    t.silent();
    t.time(1500);
    t.recv([syn_ack().change(IDLE)]);
}
