//! What is lost with the old path (§3.5.2), and the modified limited transmit (§3.5.3).

use super::*;

/// In steady state, with ten segments under way, when the path changes at 150 ms.
fn moves(rlci: Rlci) -> Diagram {
    let mut t = flowing(with(rlci));
    t.time(150);
    t.connectivity(MOVED);
    t
}

/// To the letter, with the modified limited transmit and the kept threshold, or without both.
fn steady(of_3_5_3: bool) -> Diagram {
    steady_with(of_3_5_3, of_3_5_3)
}

fn steady_with(limited_transmit: bool, keep_ssthresh: bool) -> Diagram {
    let mut t = moves(rlci(|rlci| {
        (rlci.strict, rlci.limited_transmit, rlci.keep_ssthresh) =
            (true, limited_transmit, keep_ssthresh);
    }));
    t.recv([data(11).change(INDICATION)]);
    t.time(250);
    t
}

/// What the segment that went after the change said.
const PRESENT: u32 = 5151;

#[test]
fn case_1_nothing_is_lost() {
    for limited_transmit in [true, false] {
        let mut t = steady(limited_transmit);
        for n in 2..=11 {
            answer_to(&mut t, 5100, ack(n));
        }
        // What was outstanding beyond the window goes on first.
        t.recv(each_with(12..=20, INDICATION));
        answer_to(&mut t, PRESENT, ack(12));
        t.recv(each_with(21..=22, INDICATION)); // Slow start.
        assert_eq!(t.windows(), (segments(11), u64::MAX));
        assert_eq!(t.statistics().retransmissions, 0);
    }
}

#[test]
fn case_2_acknowledgments_are_lost() {
    for limited_transmit in [true, false] {
        let mut t = steady(limited_transmit);
        answer_to(&mut t, PRESENT, ack(12));
        t.recv(each_with(12..=22, INDICATION));
        assert_eq!(t.windows(), (segments(11), u64::MAX));
    }
}

#[test]
fn case_3_without_it_lost_data_waits_for_the_timer_and_slow_start_is_over() {
    let mut t = steady(false);
    answer_to(&mut t, 5100, ack(1).sack(11..=11));
    t.silent();
    t.time(1149);
    t.silent();
    t.time(1150);
    t.recv([data(1).change(INDICATION)]);
    assert_eq!(t.windows(), (segments(1), segments(5)), "half the initial window");
}

#[test]
fn case_3_with_it_lost_data_is_found_by_duplicates_and_slow_start_goes_on() {
    for recovery in [Recovery::Reno, Recovery::NewReno, Recovery::Sack] {
        let sacked = |n| match recovery {
            Recovery::Sack => ack(1).sack(11..=n),
            _ => ack(1),
        };
        let mut t = flowing(Config { recovery, ..with(strict()) });
        t.time(150);
        t.connectivity(MOVED);
        t.recv([data(11).change(INDICATION)]);
        t.time(250);
        answer_to(&mut t, 5100, sacked(11));
        t.recv([data(12).change(INDICATION)]);
        t.time(350);
        answer_to(&mut t, 5100, sacked(12));
        t.recv([data(13).change(INDICATION)]);
        t.time(450);
        answer_to(&mut t, 5100, sacked(13));
        let again = if recovery == Recovery::Sack { 1..=5 } else { 1..=1 };
        t.recv(each_with(again, INDICATION));
        assert_eq!(t.windows(), (segments(5), u64::MAX), "{recovery:?}");
        assert_eq!(t.statistics().timeouts, 0);
    }
}

#[test]
fn case_3_the_modified_limited_transmit_and_the_kept_threshold_are_apart() {
    // Duplicates find the loss, and slow start is over all the same.
    let mut t = steady_with(true, false);
    for n in 11..=13 {
        answer_to(&mut t, 5100, ack(1).sack(11..=n));
    }
    t.unseen.clear();
    assert_eq!(t.windows(), (segments(5), segments(5)));
    // Nothing new is let out, and the threshold would be kept if that was found by duplicates.
    let mut t = steady_with(false, true);
    answer_to(&mut t, 5100, ack(6).sack(11..=11));
    t.unseen.clear();
    t.time(350);
    for n in 12..=13 {
        answer_to(&mut t, 5100, ack(6).sack(11..=n));
    }
    t.unseen.clear();
    assert_eq!(t.windows(), (segments(5), u64::MAX));
}

#[test]
fn case_3_the_possible_solution_is_a_setting_of_its_own() {
    // §3.5.2: "execute the speculative retransmission procedure ... even if the connection is in
    // steady-state".
    for (strict, resend, everything) in [
        (true, None, false),
        (true, Some(true), true),
        (false, None, true),
        (false, Some(false), false),
    ] {
        let mut t = moves(rlci(|rlci| (rlci.strict, rlci.resend) = (strict, resend)));
        t.recv(if everything {
            each_with(1..=10, INDICATION)
        } else {
            vec![data(11).change(INDICATION)]
        });
    }
}

#[test]
fn case_3_where_holes_stay_in_the_pipe_the_window_lets_nothing_go_again() {
    // §4.1: ten segments and three are outstanding, three are reported, and the window is five.
    for (pipe, again) in [(Pipe::IsLost, 1..=5), (Pipe::Unreported, 1..=1)] {
        let mut t = flowing(Config { pipe, ..with(strict()) });
        t.time(150);
        t.connectivity(MOVED);
        t.unseen.clear();
        t.time(250);
        for n in 11..=13 {
            t.unseen.clear();
            answer_to(&mut t, 5100, ack(1).sack(11..=n));
        }
        t.recv(each_with(again, INDICATION));
    }
}

#[test]
fn case_3_corrected_everything_is_retransmitted_at_once() {
    let mut t = moves(corrected());
    t.recv(each_with(1..=10, INDICATION));
    assert_eq!(t.windows(), (segments(10), u64::MAX));
    t.time(250);
    answer_to(&mut t, PRESENT, ack(2));
    t.recv(each_with(11..=12, INDICATION));
    assert_eq!(t.statistics().timeouts, 0);
}

#[test]
fn case_4_data_and_acknowledgments_are_lost() {
    // The first five had arrived.
    for limited_transmit in [true, false] {
        let mut t = steady(limited_transmit);
        answer_to(&mut t, 5100, ack(6).sack(11..=11));
        t.recv(each_with(12..=15, INDICATION)); // What is outstanding fits the window again.
        assert_eq!(t.windows(), (segments(10), u64::MAX));
        t.time(350);
        for n in 12..=13 {
            answer_to(&mut t, 5100, ack(6).sack(11..=n));
        }
        // Three are reported: the rest was lost. The threshold is kept if that is wanted.
        let ssthresh = if limited_transmit { u64::MAX } else { segments(5) };
        assert_eq!(t.windows(), (segments(5), ssthresh));
        assert_eq!(t.statistics().timeouts, 0);
    }
    let mut t = moves(corrected());
    t.recv(each_with(1..=10, INDICATION));
    t.time(250);
    answer_to(&mut t, 5100, ack(6));
    t.recv(each_with(11..=15, INDICATION));
    assert_eq!(t.windows(), (segments(10), u64::MAX));
}

#[test]
fn the_modified_limited_transmit_keeps_to_the_peers_window_and_ends_with_the_probing() {
    let mut t = offered(with(strict()));
    t.window = 12_000;
    t.time(100);
    t.stamp = Some(100);
    t.send(syn_ack());
    answer(&mut t, ack(1));
    t.unseen.clear();
    t.write(1 << 40);
    t.recv(each(1..=10));
    t.time(150);
    t.connectivity(MOVED);
    t.recv([data(11).change(INDICATION)]);
    t.time(250);
    answer_to(&mut t, 5100, ack(1).sack(11..=11));
    t.recv([data(12).change(INDICATION)]);
    answer_to(&mut t, 5100, ack(1).sack(11..=12));
    t.silent(); // There is no room for a thirteenth.

    // All that was sent before the change has been acknowledged: RFC 3042 as ever, which is off.
    let mut t = steady(true);
    answer_to(&mut t, PRESENT, ack(12).change(ECHO));
    t.unseen.clear();
    t.time(300);
    answer_to(&mut t, PRESENT, ack(12).sack(13..=13));
    t.silent();
}

#[test]
fn later_losses_reduce_the_threshold_as_ever() {
    // §3.5.3: kept only while the window is the initial one.
    let mut t = steady(true);
    t.write(1);
    answer_to(&mut t, PRESENT, ack(10));
    t.unseen.clear();
    assert_eq!(t.windows().0, segments(11));
    t.time(300);
    for n in 12..=14 {
        answer_to(&mut t, PRESENT, ack(10).sack(12..=n));
    }
    assert!(t.windows().1 < segments(11), "{:?}", t.windows());
}
