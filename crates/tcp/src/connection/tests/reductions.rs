//! Where the window starts, how it comes down, and what becomes of it while nothing is sent.

use super::*;

#[test]
fn initial_windows_follow_the_segment_size() {
    // RFC 3390 §1: 4380 bytes, two to four segments; RFC 6928 §2: 14600 bytes, two to ten.
    let sizes = [(500, 4, 10), (1000, 4, 10), (1460, 3, 10), (2000, 2, 7), (5000, 2, 2)];
    for (mss, rfc3390, rfc6928) in sizes {
        let windows = [(InitialWindow::Rfc3390, rfc3390), (InitialWindow::Rfc6928, rfc6928)];
        for (initial_window, segments) in windows {
            let mut t = Diagram::new(&Config { mss, initial_window, ..config() }, Side::Active);
            t.recv([syn()]);
            t.offer.mss = Some(9000);
            t.write(1 << 30);
            t.send(syn_ack());
            assert_eq!(t.unseen.len(), segments, "{initial_window:?} of {mss} bytes");
            t.unseen.clear();
        }
    }
}

#[test]
fn a_connection_that_was_idle_starts_again_from_its_initial_window() {
    // RFC 5681 §4.1: after more than a retransmission timeout, here one second.
    for (idle, restarts) in [(1000, false), (1001, true)] {
        let mut t = established(Config { initial_window: InitialWindow::Segments(4), ..config() });
        t.write(segments(12));
        t.recv(each(1..=4));
        t.time(200);
        for n in 2..=5 {
            t.send(ack(n));
            t.recv([data(2 * n + 1), data(2 * n + 2)]);
        }
        t.send(ack(13));
        assert_eq!(t.windows().0, segments(8));
        t.time(200 + idle);
        t.write(1 << 20);
        t.recv(each(13..=if restarts { 16 } else { 20 }));
    }
}

#[test]
fn a_connection_may_keep_its_window_while_idle() {
    let mut t = sending_only(4, Config { restart_after_idle: false, ..config() });
    t.time(200);
    (2..=5).for_each(|n| t.send(ack(n)));
    let window = t.windows().0;
    t.time(60_000);
    t.write(1 << 20);
    t.unseen.clear();
    assert_eq!(t.windows().0, window);
}

/// Twenty segments are out, and the first is lost: how many segments each of the next 19
/// acknowledgments lets out.
fn recover(reduction: Reduction) -> Vec<usize> {
    let config = Config { initial_window: InitialWindow::Segments(20), reduction, ..config() };
    let mut t = sending(config);
    t.time(200);
    let sent = (2..=20).map(|n| {
        t.send(ack(1).sack(2..=n));
        let sent = t.unseen.len();
        t.unseen.clear();
        sent
    });
    sent.collect()
}

#[test]
fn proportional_rate_reduction_sends_every_other_time() {
    // RFC 6937 §4, figure 1: the retransmission, then a segment for every two that arrive, until
    // half of the flight is left; from there on a segment for each.
    let sent = recover(Reduction::PrrSsrb);
    assert_eq!(sent, [0, 0, 1, 0, 0, 1, 0, 1, 0, 1, 0, 1, 0, 0, 1, 1, 1, 1, 1]);
}

#[test]
fn what_was_sacked_before_a_reduction_is_no_part_of_its_flight() {
    // RFC 9937 §6.1: two of 20 segments, so that ten for every 18 that arrive are sent, until ten
    // are left.
    let sent = recover(Reduction::Prr);
    assert_eq!(sent, [0, 0, 1, 0, 0, 1, 0, 1, 0, 1, 1, 0, 1, 0, 0, 1, 1, 1, 1]);
}

/// Twenty segments are out, and only the last four arrive: how many segments the acknowledgments of
/// each let out, and those of the first two that were lost.
fn recover_from_heavy_loss(reduction: Reduction, recovery: Recovery) -> Vec<usize> {
    let initial_window = InitialWindow::Segments(20);
    let mut t = sending(Config { initial_window, reduction, recovery, ..config() });
    t.time(200);
    let arrivals = (17..=20).map(|n| ack(1).sack(17..=n));
    let repairs = (2..=3).map(|n| ack(n).sack(17..=20));
    let mut sent = Vec::new();
    for (n, segment) in arrivals.chain(repairs).enumerate() {
        t.time(200 + 100 * u64::from(n > 3));
        t.send(segment);
        sent.push(t.unseen.len());
        t.unseen.clear();
    }
    sent
}

#[test]
fn below_ssthresh_only_safe_acknowledgments_send_more_than_they_deliver() {
    // RFC 9937 §6.2: the advances of SND.UNA, not the reports of what lies above the losses.
    for recovery in [Recovery::Sack, Recovery::Rack] {
        let sent = |reduction| recover_from_heavy_loss(reduction, recovery)[2..].to_vec();
        assert_eq!(sent(Reduction::Prr), [1, 1, 2, 2], "{recovery:?}");
        assert_eq!(sent(Reduction::PrrCrb), [1, 1, 1, 1], "{recovery:?}");
        assert_eq!(sent(Reduction::PrrSsrb), [2, 2, 2, 2], "{recovery:?}");
    }
}

#[test]
fn an_advance_that_indicates_further_loss_lets_out_no_more_than_was_delivered() {
    let initial_window = InitialWindow::Segments(20);
    let mut t = sending(Config { initial_window, reduction: Reduction::Prr, ..config() });
    t.time(200);
    t.send(ack(1).sack(2..=4));
    t.recv([data(1)]);
    t.time(300);
    // RFC 9937 §6.2: seven were delivered and one was sent, and 5 to 17 are lost.
    t.send(ack(5).sack(18..=20));
    t.recv(each(5..=10));
    t.time(400);
    t.send(ack(6).sack(18..=20));
    t.recv(each(11..=12));
}

#[test]
fn duplicates_deliver_a_segment_each_in_a_reduction_without_sack() {
    // RFC 9937 §6.2. Partial acknowledgments (RFC 6582) each indicate a further loss.
    let initial_window = InitialWindow::Segments(20);
    let recovery = Recovery::NewReno;
    let mut t = sending(Config { initial_window, reduction: Reduction::Prr, recovery, ..config() });
    t.time(200);
    let sent = (2..=20).map(|_| {
        t.send(ack(1));
        let sent = t.unseen.len();
        t.unseen.clear();
        sent
    });
    let sent: Vec<_> = sent.collect();
    assert_eq!(sent, [0, 0, 1, 0, 0, 1, 0, 1, 0, 1, 0, 1, 0, 0, 1, 1, 1, 1, 1]);
}

#[test]
fn an_immediate_reduction_pauses_for_half_of_a_round_trip() {
    // RFC 6937 §4, figure 1, RFC 6675.
    let sent = recover(Reduction::Immediate);
    assert_eq!(sent[..3], [0, 0, 1]);
    let pause = sent[3..].iter().take_while(|&&segments| segments == 0).count();
    assert!((6..=9).contains(&pause), "{sent:?}");
    assert!(sent[3 + pause..].iter().all(|&segments| segments == 1), "{sent:?}");
}

#[test]
fn a_gradual_reduction_ends_at_the_threshold() {
    for reduction in [Reduction::Prr, Reduction::PrrSsrb, Reduction::PrrCrb] {
        let mut t = sending(Config { reduction, ..config() });
        t.time(200);
        for n in 2..=10 {
            t.send(ack(1).sack(2..=n));
        }
        t.unseen.clear();
        t.time(300);
        t.send(ack(11));
        assert_eq!(t.windows(), (segments(5), segments(5)));
        t.unseen.clear();
    }
}

/// Twenty segments are in flight, and one acknowledgment covers the first five and reports three
/// beyond the sixth, which is lost.
fn stretch_ack(config: Config) -> Diagram {
    let mut t = sending(Config { initial_window: InitialWindow::Segments(20), ..config });
    t.time(200);
    t.send(ack(6).sack(7..=9));
    t
}

#[test]
fn the_flight_before_the_acknowledgment_that_reveals_a_loss_is_reduced() {
    // RFC 5681 §3.1, equation 4: of 20 segments, whatever that acknowledgment covers; RFC 9438 §4.6
    // leaves 0.7 of them.
    for recovery in [Recovery::Sack, Recovery::Rack] {
        for (congestion, ssthresh) in [(Congestion::Aimd, 10), (Congestion::Cubic, 14)] {
            let mut t = stretch_ack(Config { recovery, congestion, ..config() });
            assert_eq!(t.windows(), (segments(ssthresh), segments(ssthresh)), "{congestion:?}");
            assert_eq!(
                t.unseen.drain(..).next(),
                Some((t.now, data(6))),
                "{recovery:?} {congestion:?}"
            );
        }
    }
}

#[test]
fn an_acknowledgment_of_most_of_a_window_leaves_the_reduction_as_it_is() {
    // A receiver with offload acknowledges 45 of 51 segments at once, and the next is lost.
    let initial_window = InitialWindow::Segments(51);
    let congestion = Congestion::Cubic;
    let mut t = sending(Config { initial_window, congestion, ..config() });
    t.time(200);
    t.send(ack(46).sack(47..=51));
    assert_eq!(t.windows().0, 35_700);
    assert_eq!((t.unseen.len(), t.statistics().reductions), (35, 1));
    t.unseen.clear();
}

#[test]
fn a_proportional_rate_reduction_begins_with_the_flight_before_its_first_acknowledgment() {
    // RFC 9937 §6.1, RFC 6937 §3: eight of 20 are delivered, so four are sent.
    for reduction in [Reduction::Prr, Reduction::PrrSsrb, Reduction::PrrCrb] {
        let mut t = stretch_ack(Config { reduction, ..config() });
        assert_eq!(t.windows().1, segments(10));
        t.recv([data(6), data(21), data(22), data(23)]);
    }
}

#[test]
fn an_episode_that_follows_another_reduces_the_flight_before_the_acknowledgment_between_them() {
    let mut t = established(Config { initial_window: InitialWindow::Segments(20), ..config() });
    t.write(segments(29));
    t.recv(each(1..=20));
    t.time(200);
    t.send(ack(1).sack(2..=4));
    t.recv([data(1)]);
    t.send(ack(1).sack(2..=20));
    t.recv(each(21..=29));
    t.time(300);
    t.send(ack(1).sack(24..=29).sack(2..=22)); // 23 is lost.
    t.recv([data(23)]);
    t.time(400);
    t.send(ack(23).sack(24..=29)); // Seven segments remain of the ten that the window allowed.
    assert_eq!((t.windows(), t.statistics().reductions), ((5000, 5000), 2));
}
