//! Fast retransmit and fast recovery without selective acknowledgments (RFC 5681 §3.2, RFC 6582),
//! and limited transmit (RFC 3042).

use super::*;

/// Segments 1 and 2 arrive, 3 is lost. From 200 ms on, 3 to 14 are outstanding, the window is
/// twelve segments, and the peer's answers to 4, 5, ... are duplicates.
fn third_is_lost(config: Config) -> Diagram {
    let mut t = sending(config);
    t.time(200);
    t.send(ack(2));
    t.recv(each(11..=12));
    t.send(ack(3));
    t.recv(each(13..=14));
    assert_eq!(t.windows().0, segments(12));
    t
}

fn with(recovery: Recovery) -> Config {
    Config { recovery, ..config() }
}

/// So many duplicates of the acknowledgment before segment `n`; nothing is sent.
fn duplicates(t: &mut Diagram, n: u32, count: u32) {
    for _ in 0..count {
        t.send(ack(n));
        t.silent();
    }
}

#[test]
fn the_third_duplicate_retransmits_and_the_second_does_not() {
    for recovery in [Recovery::Tahoe, Recovery::Reno, Recovery::NewReno] {
        let mut t = third_is_lost(with(recovery));
        duplicates(&mut t, 3, 2);
        assert_eq!(t.statistics().retransmissions, 0);
        t.send(ack(3));
        t.recv([data(3)]);
        let window = if recovery == Recovery::Tahoe { 1 } else { 6 };
        assert_eq!(t.windows(), (segments(window), segments(6)), "{recovery:?}");
        assert_eq!(t.statistics().reductions, 1);
    }
}

#[test]
fn reordering_by_two_retransmits_nothing() {
    for recovery in [Recovery::Tahoe, Recovery::Reno, Recovery::NewReno] {
        let mut t = third_is_lost(with(recovery));
        duplicates(&mut t, 3, 2);
        t.send(ack(6));
        t.recv(each(15..=18));
        duplicates(&mut t, 6, 2); // Counted from one again.
        assert_eq!(t.statistics().retransmissions, 0);
    }
}

#[test]
fn only_a_bare_repetition_is_a_duplicate() {
    // RFC 5681 §2: no data, no FIN, the same acknowledgment, the same window, something outstanding.
    let mut t = third_is_lost(with(Recovery::Reno));
    for n in 1..=4 {
        t.send(data(n).acking(at(3)));
        t.recv([ack(n + 1).seq(at(15))]);
    }
    for window in [1 << 18, 1 << 17, 1 << 18, 1 << 17] {
        t.send(ack(3).seq(at(5)).window(window));
        t.silent();
    }
    let mut t = sending_only(4, with(Recovery::Reno));
    t.time(200);
    t.send(ack(5));
    duplicates(&mut t, 5, 5); // Nothing is outstanding.
    assert_eq!(t.statistics().retransmissions, 0);
}

#[test]
fn each_further_duplicate_lets_out_a_segment_once_half_the_window_has_left() {
    // RFC 5681 §3.2, steps 3 to 5: cwnd = 6 + 3, and one more for each duplicate; twelve are out.
    for recovery in [Recovery::Reno, Recovery::NewReno] {
        let mut t = third_is_lost(with(recovery));
        duplicates(&mut t, 3, 2);
        t.send(ack(3));
        t.recv([data(3)]);
        duplicates(&mut t, 3, 3);
        for n in 15..=19 {
            t.send(ack(3));
            t.recv([data(n)]);
        }
        let vitals = t.connection.vitals();
        assert_eq!((vitals.window, vitals.dupack_credit), (segments(6), segments(11)));
    }
}

#[test]
fn the_acknowledgment_that_ends_recovery_leaves_half_the_window() {
    for recovery in [Recovery::Reno, Recovery::NewReno] {
        let mut t = third_is_lost(with(recovery));
        duplicates(&mut t, 3, 2);
        t.send(ack(3));
        t.recv([data(3)]);
        t.time(300);
        t.send(ack(15)); // RFC 5681 §3.2, step 6: deflate to ssthresh.
        t.recv(each(15..=20));
        assert_eq!(t.windows(), (segments(6), segments(6)));
        t.time(400);
        t.send(ack(16)); // Congestion avoidance goes on from there.
        t.recv([data(21)]);
        assert_eq!(t.windows().0, 6166);
    }
}

#[test]
fn reno_leaves_recovery_with_the_first_new_acknowledgment() {
    // Segments 3 and 6 are lost: the others, 4, 5, 7 to 14, make ten duplicates.
    let mut t = third_is_lost(with(Recovery::Reno));
    duplicates(&mut t, 3, 2);
    t.send(ack(3));
    t.recv([data(3)]);
    duplicates(&mut t, 3, 3);
    for n in 15..=18 {
        t.send(ack(3));
        t.recv([data(n)]);
    }
    t.time(300);
    t.send(ack(6));
    t.silent(); // Thirteen segments are out, the window is six.
    assert_eq!(t.connection.vitals().dupack_credit, 0);
    duplicates(&mut t, 6, 2); // Answers to 15 and 16 ...
    t.send(ack(6)); // ... and to 17: a second fast retransmit, and a second reduction.
    t.recv([data(6)]);
    // Half of the window. RFC 5681 §3.1, equation 4, would take half of the thirteen that are out,
    // and so give back what the duplicates had let out beyond the window.
    assert_eq!(t.windows(), (segments(3), segments(3)));
    assert_eq!(t.statistics().reductions, 2);
}

#[test]
fn newreno_retransmits_the_next_hole_with_a_partial_acknowledgment() {
    // RFC 6582 §3.2, step 3. The same losses as above.
    let mut t = third_is_lost(with(Recovery::NewReno));
    duplicates(&mut t, 3, 2);
    t.send(ack(3));
    t.recv([data(3)]);
    duplicates(&mut t, 3, 3);
    for n in 15..=18 {
        t.send(ack(3));
        t.recv([data(n)]);
    }
    t.time(300);
    // The window stood at 6 + 10; less the three acknowledged, plus one: 14, and 13 are out.
    t.send(ack(6));
    t.recv([data(6), data(19)]);
    t.send(ack(6)); // The answer to 15.
    t.recv([data(20)]);
    t.time(400);
    t.send(ack(15)); // All that was out when the loss was noticed.
    t.silent();
    t.send(ack(16));
    t.recv([data(21)]);
    assert_eq!(t.windows().1, segments(6));
    assert_eq!(t.statistics().reductions, 1);
    assert_eq!(t.statistics().retransmissions, 2);
}

#[test]
fn newreno_keeps_recovering_until_all_that_was_out_is_acknowledged() {
    let mut t = third_is_lost(with(Recovery::NewReno));
    duplicates(&mut t, 3, 2);
    t.send(ack(3));
    t.recv([data(3)]);
    for n in 4..=14 {
        t.time(300 + 10 * u64::from(n));
        t.send(ack(n)); // Every single one was lost: one hole a round trip.
        let sent: Vec<_> = t.unseen.iter().map(|(_, seg)| seg.clone()).collect();
        assert_eq!(sent[0], data(n));
        t.unseen.clear();
    }
    assert_eq!((t.statistics().reductions, t.statistics().retransmissions), (1, 12));
    assert_eq!(t.windows(), (segments(6), segments(6)));
}

#[test]
fn tahoe_starts_again_from_one_segment() {
    let mut t = third_is_lost(with(Recovery::Tahoe));
    duplicates(&mut t, 3, 2);
    t.send(ack(3));
    t.recv([data(3)]);
    duplicates(&mut t, 3, 8);
    t.time(300);
    t.send(ack(6)); // Segment 6 is lost, too: Tahoe goes back over everything.
    t.recv([data(6), data(7)]);
    t.time(400);
    t.send(ack(15));
    t.recv(each(15..=17));
    assert_eq!(t.windows(), (segments(3), segments(6)));
    assert_eq!(t.statistics().timeouts, 0);
}

#[test]
fn a_retransmission_that_is_lost_waits_for_the_timer() {
    for recovery in [Recovery::Reno, Recovery::NewReno] {
        let mut t = third_is_lost(with(recovery));
        duplicates(&mut t, 3, 2);
        t.send(ack(3));
        t.recv([data(3)]);
        duplicates(&mut t, 3, 3);
        for n in 15..=19 {
            t.send(ack(3));
            t.recv([data(n)]);
        }
        t.time(1200); // One second after the last acknowledgment of something new.
        t.recv([data(3)]);
        assert_eq!(t.windows(), (segments(1), segments(3)));
    }
}

#[test]
fn limited_transmit_lets_out_a_segment_for_each_of_the_first_two_duplicates() {
    // RFC 3042 §2; RFC 5681 §3.2, step 1.
    for recovery in [Recovery::Tahoe, Recovery::Reno, Recovery::NewReno] {
        let mut t = third_is_lost(Config { limited_transmit: true, ..with(recovery) });
        t.send(ack(3));
        t.recv([data(15)]);
        t.send(ack(3));
        t.recv([data(16)]);
        assert_eq!(t.windows().0, segments(12), "the window is not changed");
        t.send(ack(3));
        t.recv([data(3)]);
        // RFC 5681 §3.2, step 2: those two segments are not counted.
        assert_eq!(t.windows().1, segments(6), "{recovery:?}");
    }
}

#[test]
fn what_limited_transmit_lets_out_is_not_halved() {
    // RFC 5681 §3.2, step 2. The window is a little above ten segments, and ten are out.
    let ssthresh = Some(segments(10));
    let config =
        Config { limited_transmit: true, initial_ssthresh: ssthresh, ..with(Recovery::Reno) };
    let mut t = sending(config);
    t.time(200);
    for n in 1..=2 {
        t.send(ack(n + 1));
        t.recv([data(n + 10)]);
    }
    assert_eq!(t.windows().0, 10_199);
    t.send(ack(3));
    t.recv([data(13)]);
    t.send(ack(3));
    t.recv([data(14)]);
    t.send(ack(3));
    t.recv([data(3)]);
    assert_eq!(t.windows(), (segments(5), segments(5)));
}

#[test]
fn limited_transmit_does_not_exceed_the_peers_window() {
    let config = Config { limited_transmit: true, ..with(Recovery::Reno) };
    let mut t = established(config);
    t.window = 10 * MSS;
    t.send(ack(1));
    t.write(1 << 30);
    t.recv(each(1..=10));
    t.time(200);
    duplicates(&mut t, 1, 2);
}

#[test]
fn limited_transmit_starts_anew_with_each_advance() {
    let mut t = third_is_lost(Config { limited_transmit: true, ..with(Recovery::Reno) });
    t.send(ack(3));
    t.recv([data(15)]);
    t.send(ack(4)); // It was only late.
    t.recv([data(16)]); // The window is thirteen now, and 4 to 16 are thirteen.
    t.send(ack(4));
    t.recv([data(17)]);
}

#[test]
fn newreno_ignores_duplicates_of_an_acknowledgment_that_covers_no_more_than_recover() {
    // RFC 6582 §3.2, step 2, and §4.1: they answer what was sent again in vain after a timeout.
    // Nothing was lost here: the answers came late.
    let mut t = sending(Config {
        recovery: Recovery::NewReno,
        initial_window: InitialWindow::Segments(8),
        ..config()
    });
    t.time(1100);
    t.recv([data(1)]);
    t.time(1150);
    t.send(ack(2));
    t.recv(each(2..=3));
    t.send(ack(3));
    t.recv(each(4..=5));
    t.send(ack(9));
    t.recv(each(9..=12));
    t.time(1250);
    for _ in 1..=5 {
        t.send(ack(9)); // The answers to the second copies of 1 to 5.
        t.silent();
    }
}

#[test]
fn octets_that_limited_transmit_has_answered_are_not_counted_again() {
    // Two segments were reordered: three are acknowledged at once, for two of which a segment was
    // let out already.
    let config =
        Config { limited_transmit: true, byte_counting: Some(10), ..with(Recovery::NewReno) };
    let mut t = sending(config);
    t.time(200);
    for n in [11, 12] {
        t.send(ack(1));
        t.recv([data(n)]);
    }
    t.send(ack(4));
    t.recv(each(13..=14));
    assert_eq!(t.windows().0, segments(11));
    t.send(ack(6));
    t.recv(each(15..=18));
    assert_eq!(t.windows().0, segments(13));
}
