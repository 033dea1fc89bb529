//! The retransmission timer (RFC 6298) and what its expiry does (RFC 5681 §3.1).

use super::*;
use crate::SsthreshOnBackoff;

/// A timer without a floor: after a round trip of 100 ms, 100 + 4 * 50 ms (RFC 6298 §2.2).
fn sharp() -> Config {
    Config { rto: Rto { minimum: Duration::ZERO, ..Rto::default() }, ..config() }
}

#[test]
fn it_expires_to_the_microsecond_and_backs_off() {
    let mut t = sending(Config { initial_window: InitialWindow::Segments(1), ..sharp() });
    // Sent at 100 ms; then 300, 600, 1200, ... ms.
    for millis in [400, 1000, 2200, 4600, 9400] {
        t.until(Time::from_nanos(millis * 1_000_000 - 1));
        t.silent();
        t.time(millis);
        t.recv([data(1)]);
    }
    assert_eq!(t.connection.vitals().rto, Duration::from_millis(300 * 32));
}

#[test]
fn it_is_never_shorter_than_its_minimum_nor_longer_than_its_maximum() {
    let mut t = sending(Config { initial_window: InitialWindow::Segments(1), ..config() });
    let mut millis = 100;
    for seconds in [1, 2, 4, 8, 16, 32, 60, 60] {
        millis += 1000 * seconds; // RFC 6298 §2.4, 2.5
        t.time(millis);
        t.recv([data(1)]);
    }
}

#[test]
fn the_estimate_follows_the_round_trips() {
    // RFC 6298 §2.3: RTTVAR = 3/4 * 50 + 1/4 * |100 - 180| = 57.5, SRTT = 7/8 * 100 + 180/8 = 110.
    let mut t = sending(Config { initial_window: InitialWindow::Segments(1), ..sharp() });
    t.time(280);
    t.send(ack(2));
    t.recv([data(2), data(3)]);
    assert_eq!(t.connection.vitals().srtt, Some(Duration::from_millis(110)));
    assert_eq!(t.connection.vitals().rto, Duration::from_millis(340));
    t.time(620);
    t.recv([data(2)]);
}

#[test]
fn new_data_acknowledged_restarts_it_and_a_duplicate_does_not() {
    let mut t = sending(Config { initial_window: InitialWindow::Segments(4), ..config() });
    t.time(600);
    t.send(ack(2)); // RFC 6298 §5.3
    t.recv([data(5), data(6)]);
    t.time(1500);
    t.send(ack(2).sack(3..=3));
    t.silent();
    t.time(1600);
    t.recv([data(2)]);
}

#[test]
fn a_repair_of_the_first_hole_has_a_full_timeout() {
    // RFC 6675 §6, as Linux and ns-2; or RFC 6298 §5.3 to the letter.
    for (restart, expires) in
        [(crate::Restart::Retransmission, 1700), (crate::Restart::Advance, 1600)]
    {
        for recovery in [Recovery::Reno, Recovery::NewReno, Recovery::Sack] {
            let rto = Rto { restart, ..Rto::default() };
            let mut t = sending_only(10, Config { recovery, rto, ..config() });
            t.time(600);
            t.send(ack(2));
            t.time(700);
            for n in 3..=5 {
                t.send(ack(2).sack(3..=n));
            }
            t.recv([data(2)]);
            t.time(expires - 1);
            t.silent();
            t.time(expires);
            t.recv([data(2)]);
            assert_eq!(t.statistics().timeouts, 1);
        }
    }
}

#[test]
fn what_was_sent_before_a_repair_extends_its_timeout_unless_configured_otherwise() {
    // Linux: tcp_clean_rtx_queue. The last SACK of a segment ahead of the repair comes at 900 ms, and at
    // 1000 ms that of one behind it.
    for (restart, expires) in [(crate::Restart::Retransmission, 1600), (crate::Restart::Sack, 1900)]
    {
        let mut t = sending(Config { rto: Rto { restart, ..Rto::default() }, ..config() });
        t.time(600);
        for n in 2..=4 {
            t.send(ack(1).sack(2..=n));
        }
        t.recv([data(1)]);
        t.time(900);
        for n in 5..=7 {
            t.send(ack(1).sack(2..=n));
        }
        t.recv([data(11)]);
        t.time(1000);
        t.send(ack(1).sack(11..=11).sack(2..=7));
        t.unseen.clear();
        t.time(expires - 1);
        t.silent();
        t.time(expires);
        t.recv([data(1)]);
        assert_eq!(t.statistics().timeouts, 1, "{restart:?}");
    }
}

#[test]
fn the_repair_of_a_later_hole_does_not_restart_it() {
    let rto = Rto { restart: crate::Restart::Retransmission, ..Rto::default() };
    let mut t = sending_only(10, Config { rto, ..config() });
    t.time(200);
    t.send(ack(1).sack(2..=4));
    t.recv([data(1)]);
    t.time(300);
    t.send(ack(1).sack(6..=8).sack(2..=4));
    t.recv([data(5), data(10)]); // The last by NextSeg rule 4.
    t.time(1199);
    t.silent();
    t.time(1200); // A second after the first hole was filled.
    t.recv([data(1)]);
}

#[test]
fn it_stops_when_everything_is_acknowledged() {
    let mut t = sending_only(3, config());
    t.time(200);
    t.send(ack(4)); // RFC 6298 §5.2
    t.silent();
    assert_eq!(t.connection.poll_timeout(), Time::NEVER);
    t.write(100); // RFC 6298 §5.1
    t.recv([bytes(3000, 3100)]);
    t.time(1200);
    t.recv([bytes(3000, 3100)]);
}

#[test]
fn a_timeout_leaves_one_segment_and_slow_start_goes_back_over_the_rest() {
    for recovery in [Recovery::Tahoe, Recovery::Reno, Recovery::NewReno, Recovery::Sack] {
        let mut t =
            sending(Config { recovery, initial_window: InitialWindow::Segments(8), ..config() });
        t.time(1100);
        t.recv([data(1)]);
        assert_eq!(t.windows(), (segments(1), segments(4)), "RFC 5681 §3.1, equation 4");
        t.time(1200);
        t.send(ack(2));
        t.recv([data(2), data(3)]);
        t.time(1300);
        t.send(ack(3));
        t.recv([data(4), data(5)]);
        t.send(ack(4));
        t.recv([data(6), data(7)]);
        t.time(1400);
        t.send(ack(9)); // Only the first two were lost: what follows is new.
        t.recv(each(9..=12));
        assert_eq!(t.statistics().timeouts, 1);
        assert_eq!(t.statistics().reductions, 0);
    }
}

#[test]
fn duplicates_while_going_back_retransmit_nothing() {
    // They are answers to what was sent twice (RFC 6582 §3.2, step 2).
    for recovery in [Recovery::Tahoe, Recovery::Reno, Recovery::NewReno] {
        let mut t =
            sending(Config { recovery, initial_window: InitialWindow::Segments(8), ..config() });
        t.time(1100);
        t.recv([data(1)]);
        t.time(1200);
        for _ in 0..7 {
            t.send(ack(1));
            t.silent();
        }
        assert_eq!(t.windows(), (segments(1), segments(4)));
    }
}

#[test]
fn the_flight_is_halved_only_once_in_a_series_of_timeouts() {
    // RFC 5681 §3.1: ssthresh is held when the segment "has already been retransmitted ... by way
    // of the retransmission timer at least once".
    let mut t = sending(Config { initial_window: InitialWindow::Segments(16), ..config() });
    for (millis, n) in [(1100, 1), (3100, 1), (7100, 1)] {
        t.time(millis);
        t.recv([data(n)]);
        assert_eq!(t.windows(), (segments(1), segments(8)));
    }
    t.time(7200);
    t.send(ack(2)); // The series is over.
    t.recv([data(2), data(3)]);
    t.time(15_200); // No sample could be taken: the back-off stays (Karn).
    t.recv([data(2)]);
    assert_eq!(t.windows(), (segments(1), segments(2)), "half of the two segments that were out");
}

#[test]
fn every_timeout_halves_if_so_configured() {
    let mut t = sending(Config {
        initial_window: InitialWindow::Segments(16),
        ssthresh_on_backoff: SsthreshOnBackoff::Halve,
        ..config()
    });
    t.time(1100);
    t.recv([data(1)]);
    assert_eq!(t.windows(), (segments(1), segments(8)));
    t.time(3100);
    t.recv([data(1)]);
    assert_eq!(t.windows(), (segments(1), segments(2)));
}

#[test]
fn what_was_sent_twice_gives_no_round_trip_and_keeps_the_back_off() {
    // Karn's algorithm (RFC 6298 §3, §5): until a segment that was sent once is acknowledged.
    let mut t = sending(Config { initial_window: InitialWindow::Segments(2), ..sharp() });
    t.time(400);
    t.recv([data(1)]);
    let before = t.connection.vitals().srtt;
    t.time(450);
    t.send(ack(2)); // For which copy?
    t.recv([data(2), data(3)]);
    assert_eq!(t.connection.vitals().srtt, before);
    assert_eq!(t.connection.vitals().rto, Duration::from_millis(600));
    t.time(550);
    t.send(ack(4)); // Segment 2 was sent twice, 3 once.
    t.recv(each(4..=5));
    assert_eq!(t.connection.vitals().rto, Duration::from_millis(600));
    t.time(650);
    t.send(ack(5));
    t.recv([data(6)]);
    // A sample at last: SRTT stays 100 ms, RTTVAR is 3/4 of 50 ms.
    assert_eq!(t.connection.vitals().rto, Duration::from_millis(250));
}

#[test]
fn a_window_that_has_shrunk_to_one_segment_grows_again() {
    let mut t = sending(Config {
        initial_window: InitialWindow::Segments(4),
        recovery: Recovery::NewReno,
        ..config()
    });
    t.time(1100);
    t.recv([data(1)]);
    t.time(1200);
    t.send(ack(5));
    t.recv([data(5), data(6)]);
    t.time(1300);
    t.send(ack(6)); // ssthresh is two segments: from here on, one a round trip.
    t.recv([data(7)]);
    assert_eq!(t.windows(), (2500, segments(2)));
}

#[test]
fn a_part_of_a_segment_times_no_round_trip() {
    // The peer took what it had room for, and the rest may have waited.
    let mut t = sending(Config { initial_window: InitialWindow::Segments(1), ..sharp() });
    t.time(300);
    t.send(ack(1).acking(501));
    t.recv([data(2)]);
    assert_eq!(t.connection.vitals().srtt, Some(Duration::from_millis(100)));
}
