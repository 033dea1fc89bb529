//! Notices of corruption (`bbn8333` §2.1, §2.3; MECHANISMS.md section 3).

use super::*;
use crate::mechanism::{Eten, Mechanism, Suppression};

const RECOVERIES: [Recovery; 4] =
    [Recovery::Tahoe, Recovery::Reno, Recovery::NewReno, Recovery::Sack];

/// A window of ten segments, in congestion avoidance.
fn with(recovery: Recovery, suppress_dupacks: Suppression) -> Config {
    Config {
        recovery,
        initial_ssthresh: Some(segments(10)),
        mechanisms: vec![Mechanism::Eten(Eten::new(suppress_dupacks))],
        ..config()
    }
}

/// The peer's answer to segment `n`, when `hole` is missing and all between them has arrived.
fn answer(recovery: Recovery, hole: u32, n: u32) -> Seg {
    if recovery == Recovery::Sack { ack(hole).sack(hole + 1..=n) } else { ack(hole) }
}

#[test]
fn a_notice_retransmits_at_once_and_leaves_the_windows_alone() {
    for recovery in RECOVERIES {
        for suppress_dupacks in Suppression::EVERY {
            let mut t = sending(with(recovery, suppress_dupacks));
            t.time(150);
            t.notice(3);
            t.recv([data(3)]);
            assert_eq!(t.windows(), (segments(10), segments(10)));
            assert_eq!((t.statistics().notices, t.statistics().reductions), (1, 0));
        }
    }
}

#[test]
fn a_second_corruption_within_a_round_trip_is_retransmitted_as_well() {
    for recovery in RECOVERIES {
        for suppress_dupacks in Suppression::EVERY {
            let mut t = sending(with(recovery, suppress_dupacks));
            t.time(150);
            t.notice(3);
            t.recv([data(3)]);
            t.time(160);
            t.notice(7);
            t.recv([data(7)]);
            t.time(200);
            t.notice(3); // The copy that the first notice led to.
            t.recv([data(3)]);
            assert_eq!(t.windows(), (segments(10), segments(10)));
            assert_eq!((t.statistics().notices, t.statistics().reductions), (3, 0));
        }
    }
}

#[test]
fn a_copy_is_reported_once_and_a_replaced_one_not_at_all() {
    for suppress_dupacks in Suppression::EVERY {
        let mut t = sending(with(Recovery::Sack, suppress_dupacks));
        let first = t.copy(3);
        t.time(150);
        t.notice_of(at(3), first);
        t.recv([data(3)]);
        t.notice_of(at(3), first);
        t.notice_of(at(3), CopyId(0));
        t.notice_of(at(3), CopyId(99));
        t.silent();
        assert_eq!(t.statistics().notices, 1);
    }
}

#[test]
fn a_notice_of_no_copy_in_particular_is_of_the_latest() {
    for recovery in RECOVERIES {
        for suppress_dupacks in Suppression::EVERY {
            let mut t = sending(with(recovery, suppress_dupacks));
            t.time(150);
            t.notice_of(at(3), CopyId::NONE);
            t.recv([data(3)]);
            t.time(200);
            t.notice_of(at(3), CopyId::NONE); // The copy that the first notice led to.
            t.recv([data(3)]);
            t.notice_of(at(5), CopyId::NONE);
            t.recv([data(5)]);
            assert_eq!(t.windows(), (segments(10), segments(10)));
            assert_eq!((t.statistics().notices, t.statistics().reductions), (3, 0));
        }
    }
}

#[test]
fn a_notice_that_comes_too_soon_to_be_of_the_latest_copy_is_a_double_or_late() {
    for suppress_dupacks in Suppression::EVERY {
        let mut t = sending(with(Recovery::Sack, suppress_dupacks));
        t.time(150);
        t.notice_of(at(3), CopyId::NONE);
        t.recv([data(3)]);
        t.notice_of(at(3), CopyId::NONE);
        t.time(160);
        t.notice_of(at(3), CopyId::NONE);
        t.silent();
        assert_eq!(t.statistics().notices, 1);
    }
    // Nothing is known yet of how soon a notice may come.
    let mut t = sending(with(Recovery::Sack, Suppression::All));
    t.time(200);
    for last in 2..=4 {
        t.send(ack(1).sack(2..=last));
    }
    t.recv([data(1)]);
    t.time(230);
    t.notice_of(at(1), CopyId::NONE);
    t.silent();
    assert_eq!(t.statistics().notices, 0);
}

#[test]
fn a_notice_of_a_segment_without_data_repairs_nothing() {
    let mut t = sending(with(Recovery::Sack, Suppression::All));
    t.time(150);
    let indication =
        Indication::Corrupted { seq: ISS + at(3), len: 0, copy: CopyId::NONE, timestamp: None };
    t.connection.indicate(t.now, &indication);
    t.transmit();
    t.silent();
}

#[test]
fn a_notice_about_what_has_arrived_is_ignored() {
    for suppress_dupacks in Suppression::EVERY {
        let mut t = sending(with(Recovery::Sack, suppress_dupacks));
        t.time(200);
        t.send(ack(3).sack(5..=5));
        t.recv(each(11..=12));
        t.notice(5); // SACKed.
        t.notice(2); // Acknowledged.
        t.silent();
        assert_eq!(t.statistics().notices, 0);
    }
}

#[test]
fn a_notice_about_nothing_that_was_sent_is_ignored() {
    let mut t = sending(with(Recovery::Sack, Suppression::All));
    t.time(200);
    t.send(data(1));
    t.recv([ack(2).seq(at(11))]);
    t.notice_of(at(11), CopyId(0)); // That pure acknowledgment was corrupted.
    t.notice_of(at(11), t.copy(10));
    t.silent();
    assert_eq!(t.statistics().notices, 0);
}

#[test]
fn a_notice_after_the_fast_retransmit_of_that_copy_changes_nothing() {
    // Neither a second retransmission nor an undo.
    for recovery in RECOVERIES {
        for suppress_dupacks in Suppression::EVERY {
            let mut t = sending(with(recovery, suppress_dupacks));
            let first = t.copy(1);
            t.time(200);
            for n in 2..=3 {
                t.send(answer(recovery, 1, n));
                t.silent();
            }
            t.send(answer(recovery, 1, 4));
            t.recv([data(1)]);
            let before = t.connection.vitals();
            t.notice_of(at(1), first);
            t.silent();
            assert_eq!(t.connection.vitals(), before);
            assert_eq!(t.statistics().notices, 0);
        }
    }
}

#[test]
fn without_the_mechanism_a_notice_is_ignored() {
    let mut t = sending(config());
    t.time(150);
    t.notice(3);
    t.silent();
    assert_eq!(t.statistics().notices, 0);
}

#[test]
fn a_corrupted_syn_is_sent_again_without_back_off() {
    for suppress_dupacks in Suppression::EVERY {
        let mut t = Diagram::new(&with(Recovery::Sack, suppress_dupacks), Side::Active);
        t.recv([syn()]);
        t.write(1 << 30);
        t.time(50);
        t.notice_of(0, t.copy_at(0));
        t.recv([syn()]);
        t.time(1050); // One second after that.
        t.recv([syn()]);
        let mut t = Diagram::new(&with(Recovery::Sack, suppress_dupacks), Side::Active);
        t.recv([syn()]);
        t.write(1 << 30);
        t.time(50);
        t.notice_of(0, t.copy_at(0));
        t.recv([syn()]);
        t.time(150);
        t.send(syn_ack());
        t.recv(each(1..=10)); // The initial window is whole.
    }
}

#[test]
fn a_corrupted_fin_is_sent_again() {
    let mut t = established(with(Recovery::Sack, Suppression::All));
    t.close();
    t.recv([ack(1).fin()]);
    t.time(150);
    t.notice_of(1, t.copy_at(1));
    t.recv([ack(1).fin()]);
}

#[test]
fn a_notice_restarts_the_timer_and_keeps_its_back_off() {
    for suppress_dupacks in Suppression::EVERY {
        let mut t = sending(with(Recovery::Sack, suppress_dupacks));
        t.time(600);
        t.notice(1);
        t.recv([data(1)]);
        t.time(1600); // No duplicates came.
        t.recv([data(1)]);
        t.time(2000);
        t.notice(1);
        t.recv([data(1)]);
        assert_eq!(t.connection.vitals().rto, Duration::from_secs(2));
        t.time(4000);
        t.recv([data(1)]);
    }
}

#[test]
fn a_notice_is_heeded_while_going_back_after_a_timeout() {
    for recovery in RECOVERIES {
        let mut t = sending(with(recovery, Suppression::All));
        t.time(1100);
        t.recv([data(1)]);
        t.time(1200);
        t.send(ack(2));
        t.recv(each(2..=3));
        t.time(1250);
        t.notice(2); // The copy sent after the timeout ...
        t.recv([data(2)]);
        t.notice(9); // ... or before it: both are the latest of something outstanding.
        t.recv([data(9)]);
        assert_eq!(t.windows(), (segments(2), segments(5)));
    }
}

#[test]
fn suppressed_duplicates_keep_as_much_in_the_network_as_there_was() {
    // Packet conservation: each duplicate lets out one segment, from the first on, and no
    // response to congestion follows.
    for recovery in RECOVERIES {
        let mut t = sending(with(recovery, Suppression::All));
        t.time(150);
        t.notice(1);
        t.recv([data(1)]);
        t.time(200);
        for n in 2..=10 {
            t.send(answer(recovery, 1, n));
            t.recv([data(n + 9)]);
            assert_eq!(t.connection.sender.pipe(), segments(10));
        }
        t.time(250);
        t.send(ack(11)); // The answer to the retransmission.
        t.recv([data(20)]);
        assert_eq!(t.windows(), (10_100, segments(10)), "it counts like any acknowledgment");
        assert_eq!(t.connection.vitals().dupack_credit, 0);
        assert_eq!(t.statistics().reductions, 0);
        for n in 11..=19 {
            t.time(300);
            t.send(ack(n + 1));
            t.recv([data(n + 10)]);
        }
    }
}

#[test]
fn every_reported_hole_is_excused() {
    // Segments 1, 4 and 5 are corrupted and reported.
    for recovery in RECOVERIES {
        let mut t = sending(with(recovery, Suppression::All));
        t.time(150);
        for n in [1, 4, 5] {
            t.notice(n);
            t.recv([data(n)]);
        }
        t.time(200);
        let sacked = |t: &mut Diagram, seg: Seg, block: core::ops::RangeInclusive<u32>| {
            t.send(if recovery == Recovery::Sack { seg.sack(block) } else { seg });
        };
        sacked(&mut t, ack(1), 2..=2);
        sacked(&mut t, ack(1), 2..=3);
        for n in 6..=10 {
            sacked(&mut t, ack(1), 6..=n);
        }
        t.recv(each(11..=17));
        t.time(250);
        sacked(&mut t, ack(4), 6..=10);
        t.recv([data(18)]);
        sacked(&mut t, ack(5), 6..=10);
        t.recv([data(19)]);
        t.send(ack(11));
        t.recv([data(20)]);
        assert_eq!(t.statistics().reductions, 0);
        assert_eq!(t.statistics().retransmissions, 3);
    }
}

#[test]
fn the_unreported_hole_after_a_reported_one_is_congestion_at_once() {
    // The corruption of 1 is reported, that of 3 is not. Without SACK, the first acknowledgment
    // that stops at 3 reveals the gap; the answers to 2 and 4 to 10 were eight suppressed duplicates.
    for recovery in [Recovery::Reno, Recovery::NewReno] {
        let mut t = sending(with(recovery, Suppression::All));
        t.time(150);
        t.notice(1);
        t.recv([data(1)]);
        t.time(200);
        for n in 11..=18 {
            t.send(ack(1));
            t.recv([data(n)]);
        }
        t.time(250);
        t.send(ack(3));
        t.recv([data(3)]);
        assert_eq!(t.statistics().reductions, 1);
        let (window, ssthresh) = t.windows();
        assert!(window == ssthresh && (5000..5100).contains(&window), "half of it: {window}");
    }
}

#[test]
fn the_suppressed_duplicates_count_wherever_they_lie() {
    // As above, but 5 is lost: of five suppressed duplicates only the answers to 6 and 7 come from
    // what lies above it.
    for recovery in [Recovery::Reno, Recovery::NewReno] {
        let mut t = sending(Config {
            initial_window: InitialWindow::Segments(7),
            ..with(recovery, Suppression::All)
        });
        t.time(150);
        t.notice(1);
        t.recv([data(1)]);
        t.time(200);
        for n in 8..=12 {
            t.send(ack(1));
            t.recv([data(n)]);
        }
        t.time(250);
        t.send(ack(5));
        t.recv([data(5)]);
        assert_eq!(t.statistics().reductions, 1);
    }
}

#[test]
fn the_unreported_hole_next_to_a_reported_one_shows_by_its_own_blocks() {
    // The same with SACK: three segments above 3 and it is lost, whatever becomes of 1.
    let mut t = sending(with(Recovery::Sack, Suppression::All));
    t.time(150);
    t.notice(1);
    t.recv([data(1)]);
    t.time(200);
    t.send(ack(1).sack(2..=2));
    t.recv([data(11)]);
    t.send(ack(1).sack(4..=4).sack(2..=2));
    t.recv([data(12)]);
    t.send(ack(1).sack(4..=5).sack(2..=2));
    t.recv([data(13)]);
    t.send(ack(1).sack(4..=6).sack(2..=2));
    t.recv([data(3)]);
    assert_eq!((t.windows(), t.statistics().reductions), ((segments(5), segments(5)), 1));
}

#[test]
fn fewer_than_three_suppressed_duplicates_prove_nothing_about_the_next_hole() {
    // Of four segments 1 is reported and 2 is lost; the answers to 3 and 4 are two duplicates.
    for recovery in [Recovery::Reno, Recovery::NewReno] {
        let mut t = sending(Config {
            initial_window: InitialWindow::Segments(4),
            ..with(recovery, Suppression::All)
        });
        t.time(150);
        t.notice(1);
        t.recv([data(1)]);
        t.time(200);
        for n in 5..=6 {
            t.send(ack(1));
            t.recv([data(n)]);
        }
        t.time(250);
        t.send(ack(2));
        assert!(t.unseen.iter().all(|(_, seg)| seg.seq > at(6)), "{:?}", t.unseen);
        assert_eq!(t.statistics().reductions, 0);
        t.unseen.clear();
        t.time(300);
        t.send(ack(2)); // The answer to 5 is the third.
        assert_eq!(t.unseen.pop_front(), Some((t.now, data(2))));
        assert_eq!(t.statistics().reductions, 1);
    }
}

#[test]
fn without_suppression_the_duplicates_halve_once_and_retransmit_nothing_a_second_time() {
    for recovery in [Recovery::Reno, Recovery::NewReno, Recovery::Sack] {
        let mut t = sending(with(recovery, Suppression::None));
        t.time(150);
        t.notice(1);
        t.recv([data(1)]);
        t.time(200);
        for n in 2..=6 {
            t.send(answer(recovery, 1, n));
            t.silent();
            let reduced = n >= 4; // The third duplicate.
            assert_eq!(t.windows().0, segments(if reduced { 5 } else { 10 }));
        }
        for n in 7..=10 {
            t.send(answer(recovery, 1, n)); // RFC 5681: 5 + 3 + 3 = 11 is more than the ten out.
            t.recv([data(n + 4)]);
        }
        t.time(250);
        t.send(ack(11));
        t.recv([data(15)]);
        let statistics = t.statistics();
        assert_eq!((statistics.reductions, statistics.retransmissions), (1, 1), "{recovery:?}");
        assert_eq!(t.windows(), (segments(5), segments(5)));
    }
}

#[test]
fn with_the_first_alone_excused_another_corruption_of_that_window_counts() {
    for (suppress_dupacks, of_the_window, of_the_next) in
        [(Suppression::All, 0, 0), (Suppression::First, 1, 1), (Suppression::None, 1, 2)]
    {
        let mut t = sending(with(Recovery::Sack, suppress_dupacks));
        t.time(150);
        // One that repairs nothing uses up no excuse.
        t.notice_of(at(2), CopyId(99));
        t.notice(1);
        t.notice(5);
        t.recv([data(1), data(5)]);
        t.time(200);
        (2..=4).for_each(|n| t.send(ack(1).sack(2..=n)));
        (6..=10).for_each(|n| t.send(ack(1).sack(6..=n).sack(2..=4)));
        assert_eq!(t.statistics().reductions, of_the_window, "{suppress_dupacks:?}");
        t.unseen.clear();
        // All of it is acknowledged, and what was sent meanwhile.
        let next = (t.connection.sender.nxt() as u32 - 1) / MSS + 1;
        t.time(250);
        t.send(ack(next));
        t.unseen.clear();
        t.time(260);
        t.notice(next);
        t.recv([data(next)]);
        t.time(300);
        (next + 1..=next + 4).for_each(|n| t.send(ack(next).sack(next + 1..=n)));
        assert_eq!(t.statistics().reductions, of_the_next, "{suppress_dupacks:?}");
        t.unseen.clear();
    }
}

#[test]
fn a_retransmission_that_is_lost_unreported_is_left_to_the_timer_as_congestion() {
    let rto = Rto { restart: crate::Restart::Retransmission, ..Rto::default() };
    for recovery in RECOVERIES {
        let mut t = sending(Config { rto, ..with(recovery, Suppression::All) });
        t.time(150);
        t.notice(1);
        t.recv([data(1)]);
        t.time(200);
        for n in 2..=10 {
            t.send(answer(recovery, 1, n));
            t.recv([data(n + 9)]);
        }
        t.time(300);
        for n in 11..=19 {
            t.send(answer(recovery, 1, n));
            t.recv([data(n + 9)]);
        }
        t.time(1150); // One second after the notice; new data does not restart the timer.
        t.recv([data(1)]);
        assert_eq!(t.windows(), (segments(1), segments(5)), "{recovery:?}");
        assert_eq!((t.statistics().timeouts, t.statistics().reductions), (1, 0));
    }
}

#[test]
fn a_notice_during_fast_recovery_retransmits_whatever_the_pipe() {
    // 1 is lost to congestion; 7 is reported.
    for recovery in [Recovery::Reno, Recovery::NewReno, Recovery::Sack] {
        let mut t = sending(with(recovery, Suppression::All));
        t.time(200);
        for n in 2..=4 {
            t.send(answer(recovery, 1, n));
        }
        t.recv([data(1)]);
        t.notice(7);
        t.recv([data(7)]);
        assert_eq!(t.windows(), (segments(5), segments(5)));
        assert_eq!(t.statistics().reductions, 1);
    }
}

#[test]
fn a_notice_does_not_hide_a_lower_hole() {
    // RFC 6675 §4, NextSeg rule 3 looks above HighRxt, the highest retransmission *of what was
    // found lost*. A notice about the last of eight segments leaves it below 5, which is late.
    let mut t = sending_only(8, with(Recovery::Sack, Suppression::All));
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
