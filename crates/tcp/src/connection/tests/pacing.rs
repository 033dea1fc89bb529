//! Pacing: segments leave at a rate (RFC 9002 §7.7).

use super::*;

/// A paced sender whose first window is this many segments.
fn paced(segments: u32) -> Config {
    Config { pacing: true, initial_window: InitialWindow::Segments(segments), ..config() }
}

fn micros(micros: u64) -> Time {
    Time::ZERO + Duration::from_micros(micros)
}

/// A segment leaves at a time, to a microsecond.
fn leaves_at(t: &mut Diagram, micros: u64, n: u32) {
    t.until(Time::ZERO + Duration::from_micros(micros - 1));
    t.silent();
    t.until(Time::ZERO + Duration::from_micros(micros + 1));
    assert_eq!(t.unseen.pop_front().map(|(_, seg)| seg), Some(data(n)));
}

/// The segments `first` to `last` leave, the first now, the second after half an interval of so many
/// microseconds, since the first was late, and the others in such intervals.
fn leave(t: &mut Diagram, first: u32, last: u32, interval: u64) {
    t.recv([data(first)]);
    for n in first + 1..=last {
        let interval = if n == first + 1 { interval / 2 } else { interval };
        let due = t.now + Duration::from_micros(interval);
        t.until(due - Duration::from_micros(1));
        t.silent();
        t.until(due);
        t.recv([data(n)]);
    }
}

#[test]
fn slow_start_sends_at_twice_the_window_per_round_trip() {
    let mut t = sending(paced(9)); // For the first window there is no rate: it leaves at once.
    t.time(200);
    t.send(ack(10)); // The window is 10 segments, the round trip 100 ms.
    leave(&mut t, 10, 19, 5_000);
    t.time(299);
    t.silent();
    assert_eq!(t.windows().0, segments(10));
}

#[test]
fn congestion_avoidance_sends_at_six_fifths_of_the_window_per_round_trip() {
    let mut t = sending(Config { initial_ssthresh: Some(10_000), ..paced(10) });
    t.time(200);
    t.send(ack(11)); // The window is 10.1 segments: 12.12 in 100 ms.
    t.recv([data(11)]);
    leaves_at(&mut t, 204_125, 12);
    leaves_at(&mut t, 212_376, 13);
}

#[test]
fn acknowledgments_at_the_rate_of_the_path_delay_nothing() {
    let mut t = sending(Config { initial_ssthresh: Some(10_000), ..paced(10) });
    for n in 2..=10 {
        t.time(180 + u64::from(n) * 10);
        t.send(ack(n));
        t.recv([data(n + 9)]);
    }
}

#[test]
fn a_window_whose_use_is_paced_grows() {
    let mut t = sending(paced(9));
    t.time(200);
    t.send(ack(5));
    t.recv([data(10)]); // Of five segments that the window allows.
    t.time(201);
    t.send(ack(6));
    assert_eq!(t.windows().0, segments(11));
}

#[test]
fn what_is_late_is_caught_up_by_half_an_interval() {
    let mut t = sending_only(10, paced(10));
    t.time(200);
    t.send(ack(11)); // An interval is 5 ms.
    t.write(3_000);
    t.recv([data(11)]);
    t.until(micros(202_500));
    t.recv([data(12)]);
    t.until(micros(207_500));
    t.recv([data(13)]);
    t.until(micros(213_500)); // One later than due.
    t.write(2_000);
    t.recv([data(14)]);
    t.until(micros(217_500));
    t.recv([data(15)]);
}

#[test]
fn repairs_are_paced_too() {
    let mut t = sending(Config { recovery: Recovery::Sack, ..paced(10) });
    t.time(200);
    t.send(ack(1).sack(4..=10)); // The window is 5 segments: 6 in 100 ms.
    assert_eq!(t.windows().0, segments(5));
    t.recv([data(1)]);
    leaves_at(&mut t, 208_333, 2);
    leaves_at(&mut t, 225_000, 3);
    leaves_at(&mut t, 241_667, 11);
}

#[test]
fn a_unit_of_the_network_card_lasts_a_millisecond_at_most() {
    let mut t = established(paced(60));
    t.unit = 64;
    t.write(1 << 40);
    assert_eq!(t.unseen.iter().map(|(_, seg)| seg.len).collect::<Vec<_>>(), [60_000]);
    t.unseen.clear();
    t.time(200);
    t.send(ack(61)); // 122 segments in 100 ms: one in 820 us.
    assert_eq!(t.unseen.pop_front().map(|(_, seg)| seg.len), Some(2_000));
}

#[test]
fn on_a_short_path_a_unit_of_the_network_card_is_long() {
    // Linux: 2^16 octets, halved for each 512 us of the shortest round trip.
    for (round_trip, len) in [(400, 61_000), (600, 33_000), (1_100, 17_000), (9_000, 5_000)] {
        let mut t = Diagram::new(&paced(60), Side::Active);
        t.recv([syn()]);
        t.until(micros(round_trip));
        t.send(syn_ack());
        t.recv([ack(1)]);
        t.unit = 64;
        t.write(1 << 40);
        t.unseen.clear();
        t.time(200);
        t.send(ack(61)); // 61 segments in about 25 ms, the smoothed round trip.
        let sent = t.unseen.pop_front().map(|(_, seg)| seg.len);
        assert_eq!(sent, Some(len), "{round_trip} us");
    }
}

/// Segments that leave in `span`, if each timer is late by so much.
fn sent_with_timers_late_by(t: &mut Diagram, late: Duration, span: Duration) -> u64 {
    let (before, end) = (t.statistics().segments, t.now + span);
    let mut packet = Packet::BLANK;
    loop {
        let now = t.connection.poll_timeout() + late;
        if now > end {
            return t.statistics().segments - before;
        }
        t.connection.handle_timeout(now);
        while t.connection.poll_transmit(now, t.unit, &mut packet).is_some_and(|unit| unit.more) {}
    }
}

#[test]
fn late_timers_do_not_lower_the_rate_of_units() {
    for late in [0, 100, 500, 900, 8000].map(Duration::from_micros) {
        for is_in_disorder in [false, true] {
            let config = Config { recovery: Recovery::Sack, mss: 100, ..paced(600) };
            let mut t = established(Config { initial_ssthresh: Some(60_000), ..config });
            t.unit = 44;
            t.write(1 << 40);
            t.unseen.clear();
            t.time(200);
            // 1.2 times 600 segments in 100 ms, or 300.
            let each_ms = if is_in_disorder {
                t.send(ack(1).sack(41..=60));
                3.6
            } else {
                t.send(ack(61));
                7.2
            };
            let sent = sent_with_timers_late_by(&mut t, late, Duration::from_millis(50));
            let share = sent as f64 / (50.0 * each_ms);
            // The last of them may be due after the end.
            let least = 0.96 - late.as_secs_f64() / 0.05;
            assert!((least..1.04).contains(&share), "{late:?}, {is_in_disorder}: {share}");
        }
    }
}

#[test]
fn a_segment_with_no_other_on_its_way_waits_for_nothing() {
    let mut t = sending_only(10, paced(10));
    t.time(200);
    t.send(ack(11));
    t.write(2_000);
    t.recv([data(11)]);
    t.time(201);
    t.send(ack(12));
    t.recv([data(12)]);
    t.send(ack(13));
    assert_eq!(t.connection.poll_timeout(), Time::NEVER);
}

#[test]
fn after_a_stall_the_latest_round_trip_sets_the_rate() {
    let patient = Rto { minimum: Duration::from_secs(60), ..Rto::default() };
    let mut t = sending(Config { rto: patient, ..paced(9) });
    t.time(8_100);
    t.send(ack(10)); // After 8 s: a smoothed round trip of 1.0875 s, and a window of 10 segments.
    t.recv([data(10)]);
    leaves_at(&mut t, 8_127_187, 11);
    t.send(ack(11)); // After 27 ms.
    leaves_at(&mut t, 8_181_562, 12);
    leaves_at(&mut t, 8_182_798, 13); // An eleventh of that, by the window of 11 segments, halved.
}

#[test]
fn what_a_timeout_sends_again_waits_for_nothing() {
    let mut t = sending(paced(9));
    t.time(200);
    t.send(ack(10));
    leave(&mut t, 10, 19, 5_000);
    t.time(1_200);
    assert_eq!(t.statistics().timeouts, 1);
    t.recv([data(10)]);
    t.time(1_201);
    t.send(ack(11));
    t.recv([data(11)]); // The one before filled the window for a smoothed round trip of 100 ms.
}

#[test]
fn a_window_that_closes_on_a_held_segment_is_probed_from_then_on() {
    let mut t = sending(paced(9));
    t.time(200);
    t.send(ack(10));
    t.recv([data(10)]); // The next one is due after 2.5 ms.
    t.send(ack(11).window(0));
    t.time(1_199);
    t.silent();
    t.time(1_200);
    assert_eq!(t.unseen.pop_front().map(|(_, seg)| seg.len), Some(1));
}

/// A paced sender that starts promptly, with a first window of this many segments.
fn prompt(segments: u32) -> Config {
    Config { prompt_start: true, ..paced(segments) }
}

#[test]
fn with_a_prompt_start_the_initial_window_leaves_at_once_after_a_pause() {
    let mut t = sending_only(10, prompt(10));
    t.write(10_000);
    t.time(200);
    t.send(ack(11)); // The window is 11 segments: 22 in 100 ms.
    t.recv((11..=20).map(data));
    t.time(300);
    t.send(ack(21));
    t.time(500);
    t.write(11_000);
    t.recv((21..=30).map(data));
    leaves_at(&mut t, 502_272, 31);
}

/// Segments that were sent until 20 ms after the first of nine acknowledgments, which come each millisecond.
fn sent_after_a_train(config: Config) -> u64 {
    let mut t = sending(config);
    for n in 2..=10 {
        t.until(micros(198_000 + u64::from(n) * 1_000));
        t.unseen.clear();
        t.send(ack(n));
        t.unseen.clear();
    }
    while t.connection.poll_timeout() <= micros(220_000) {
        let due = t.connection.poll_timeout();
        t.until(due);
        t.unseen.clear();
    }
    t.statistics().segments - 10 // With the SYN.
}

#[test]
fn with_a_prompt_start_slow_start_follows_the_rate_of_the_acknowledgments() {
    // Nine are acknowledged, and the window grows by nine.
    assert_eq!(sent_after_a_train(prompt(9)), 18);
    assert!(sent_after_a_train(paced(9)) < 8);
    let later = |config| Config { initial_ssthresh: Some(9_000), ..config };
    assert!(sent_after_a_train(later(prompt(9))) < 18);
}
