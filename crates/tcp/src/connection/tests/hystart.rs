//! The initial slow start with HyStart++ (RFC 9406).

use super::*;

fn hystart() -> Config {
    Config { hystart: true, initial_window: InitialWindow::Segments(10), ..config() }
}

/// A sender in its initial slow start, whose segments are acknowledged one by one.
struct Rounds {
    t: Diagram,
    millis: u64,
    /// The segment that is acknowledged next.
    next: u32,
}

impl Rounds {
    fn new(config: Config) -> Rounds {
        Rounds { t: sending(config), millis: 100, next: 1 }
    }

    /// Acknowledges what was outstanding at the start of the round, after a round trip.
    fn round(&mut self, rtt: u64) {
        self.millis += rtt;
        self.t.time(self.millis);
        let outstanding = self.t.connection.sender.outstanding() / segments(1);
        for _ in 0..outstanding {
            self.next += 1;
            self.t.send(ack(self.next));
        }
        self.t.unseen.clear();
    }

    fn window(&self) -> f64 {
        self.t.windows().0 as f64 / segments(1) as f64
    }
}

#[test]
fn slow_start_ends_five_rounds_after_the_round_trip_has_grown() {
    // BBR has no slow start.
    for congestion in Congestion::ALL.iter().filter(|(name, _)| *name != "bbr") {
        let mut rounds = Rounds::new(Config { congestion: congestion.1, ..hystart() });
        rounds.round(100);
        assert_eq!(rounds.window(), 20.0, "{congestion:?}");
        // Eight samples show the queue: from there on a quarter of a segment each.
        rounds.round(120);
        assert_eq!(rounds.window(), 20.0 + 8.0 + 12.0 / 4.0, "{congestion:?}");
        for _ in 0..3 {
            let before = rounds.window();
            rounds.round(120);
            assert!((rounds.window() / before - 1.25).abs() < 0.02, "{congestion:?}");
            assert_eq!(rounds.t.windows().1, u64::MAX);
        }
        rounds.round(120);
        let (window, ssthresh) = rounds.t.windows();
        assert_eq!(window, ssthresh, "{congestion:?}");
        rounds.round(120);
        assert!(rounds.window() < ssthresh as f64 / 1000.0 + 1.5, "congestion avoidance");
    }
}

#[test]
fn slow_start_goes_on_where_the_round_trip_stays() {
    let mut rounds = Rounds::new(hystart());
    for round in 1..=2 {
        rounds.round(100 + round);
        assert_eq!(rounds.window(), f64::from(10 << round));
    }
}

#[test]
fn jitter_interrupts_slow_start_only() {
    let mut rounds = Rounds::new(hystart());
    rounds.round(100);
    rounds.round(120);
    assert_eq!(rounds.window(), 31.0);
    // The last two samples belong to this round: what they released had not been sent when the
    // round before ended. Six more show round trips below 120 ms.
    rounds.round(101);
    assert_eq!(rounds.window(), 31.0 + 6.0 / 4.0 + 25.0);
}

#[test]
fn acknowledgments_of_several_segments_count_in_full() {
    let mut t = sending(Config { byte_counting: Some(2), ..hystart() });
    t.time(200);
    t.send(ack(11));
    assert_eq!(t.windows().0, segments(18), "eight segments, where byte counting adds two");
}

#[test]
fn after_a_timeout_slow_start_is_that_of_rfc_5681() {
    // RFC 9406 §4.3: only while ssthresh is arbitrarily high.
    let mut rounds = Rounds::new(Config { byte_counting: None, ..hystart() });
    (0..2).for_each(|_| rounds.round(100));
    rounds.t.time(2000);
    assert_eq!(rounds.t.windows(), (segments(1), segments(20)));
    rounds.t.unseen.clear();
    rounds.millis = 2000;
    // The round trip doubles; the window still grows by a segment for each acknowledgment.
    for (rtt, window) in [(100, 2.0), (200, 4.0), (200, 8.0), (200, 16.0)] {
        rounds.millis += rtt;
        rounds.t.time(rounds.millis);
        for _ in 0..rounds.t.connection.sender.pipe() / segments(1) {
            rounds.next += 1;
            rounds.t.send(ack(rounds.next));
        }
        rounds.t.unseen.clear();
        assert_eq!(rounds.window(), window);
    }
    rounds.round(200);
    assert!(rounds.window() < 22.0, "it ends at ssthresh: {}", rounds.window());
}

#[test]
fn a_loss_ends_the_initial_slow_start() {
    let mut rounds = Rounds::new(hystart());
    rounds.round(100);
    for n in 0..20 {
        rounds.t.send(ack(11).sack(12..=12 + n)); // Of twenty segments, the first is lost.
    }
    rounds.next = rounds.t.connection.sender.nxt() as u32 / 1000 + 1;
    rounds.t.send(ack(rounds.next));
    rounds.t.unseen.clear();
    assert_eq!(rounds.t.windows(), (segments(10), segments(10)));
    rounds.round(100);
    assert!(rounds.window() < 12.0, "congestion avoidance: {}", rounds.window());
}

#[test]
fn a_threshold_from_the_start_leaves_nothing_to_find() {
    let mut rounds = Rounds::new(Config { initial_ssthresh: Some(segments(1000)), ..hystart() });
    rounds.round(100);
    rounds.round(120);
    assert_eq!(rounds.window(), 40.0);
}
