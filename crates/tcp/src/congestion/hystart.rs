//! HyStart++ (RFC 9406): the initial slow start ends before the queue of the path overflows.
//!
//! A round trip that has grown by an eighth shows a queue. From then on the window grows by a
//! quarter of what slow start gives (Conservative Slow Start, CSS), for five rounds at most. If the
//! round trip falls below that at the start of CSS, the growth was jitter, and slow start resumes.

use super::AckSample;
use crate::{Config, RoundEnd};
use base::Duration;
use serde::{Deserialize, Serialize};

/// The least growth of the round trip that shows a queue (RFC 9406 §4.3, `MIN_RTT_THRESH`).
const MIN_THRESHOLD: Duration = Duration::from_millis(4);
/// The growth that shows one on any path (`MAX_RTT_THRESH`).
const MAX_THRESHOLD: Duration = Duration::from_millis(16);
/// The share of the round trip in between (`MIN_RTT_DIVISOR`).
const DIVISOR: u64 = 8;
/// Samples before a round's shortest round trip counts (`N_RTT_SAMPLE`).
const SAMPLES: u32 = 8;
/// The divisor of the growth in CSS (`CSS_GROWTH_DIVISOR`).
const CSS_DIVISOR: f64 = 4.0;
/// Rounds that CSS lasts at most, the one in which it begins included (`CSS_ROUNDS`).
const CSS_ROUNDS: u32 = 5;

/// What the RFC leaves open.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Rules {
    /// The segments that one acknowledgment may add, L (RFC 9406 §4.3): no less than appropriate byte
    /// counting adds without HyStart++.
    limit: u32,
    round_end: RoundEnd,
}

impl Rules {
    pub(crate) fn new(config: &Config) -> Rules {
        let limit = if config.pacing { u32::MAX } else { config.byte_counting.unwrap_or(0).max(8) };
        Rules { limit, round_end: config.hystart_round_end }
    }
}

/// The state of the initial slow start.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct HyStart {
    rules: Rules,
    /// windowEnd: the round ends when this is acknowledged. `None` before the first
    /// acknowledgment.
    window_end: Option<u64>,
    /// The shortest round trips of the last round and of this one; `Duration::MAX` without a
    /// sample.
    last_min: Duration,
    min: Duration,
    /// rttSampleCount: samples in this round.
    samples: u32,
    css: Option<Css>,
}

/// Conservative Slow Start.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct Css {
    /// cssBaselineMinRtt: the shortest round trip of the round in which it began.
    baseline: Duration,
    /// Rounds that have ended in it.
    rounds: u32,
}

/// What an acknowledgment does to the window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Step {
    /// Bytes to grow by.
    pub(super) growth: f64,
    /// Slow start is over.
    pub(super) is_over: bool,
}

impl HyStart {
    pub(super) fn new(rules: Rules) -> HyStart {
        HyStart {
            rules,
            window_end: None,
            last_min: Duration::MAX,
            min: Duration::MAX,
            samples: 0,
            css: None,
        }
    }

    /// Processes an acknowledgment that advances SND.UNA to `una`, while SND.NXT is `nxt` (RFC 9406
    /// §4.2).
    pub(super) fn on_ack(&mut self, sample: &AckSample, una: u64, nxt: u64) -> Step {
        let growth = self.growth(sample);
        if let Some(rtt) = sample.rtt {
            self.min = self.min.min(rtt);
            self.samples = self.samples.saturating_add(1);
        }
        if self.samples >= SAMPLES {
            self.compare();
        }
        let window_end = *self.window_end.get_or_insert(nxt);
        let ends = match self.rules.round_end {
            RoundEnd::Reached => una >= window_end,
            RoundEnd::Passed => una > window_end,
        };
        let is_over = ends && self.end_round(nxt);
        Step { growth, is_over }
    }

    fn growth(&self, sample: &AckSample) -> f64 {
        if !sample.window_limited {
            return 0.0;
        }
        let limit = u64::from(self.rules.limit) * u64::from(sample.mss);
        let octets = sample.acked.min(limit) as f64;
        if self.css.is_some() { octets / CSS_DIVISOR } else { octets }
    }

    /// Begins or ends CSS by the round trips of this round.
    fn compare(&mut self) {
        if let Some(css) = self.css {
            if self.min < css.baseline {
                self.css = None;
            }
            return;
        }
        if self.last_min == Duration::MAX {
            return;
        }
        let threshold = (self.last_min / DIVISOR).clamp(MIN_THRESHOLD, MAX_THRESHOLD);
        if self.min >= self.last_min + threshold {
            self.css = Some(Css { baseline: self.min, rounds: 0 });
        }
    }

    /// Ends a round; returns whether CSS has lasted its rounds.
    fn end_round(&mut self, nxt: u64) -> bool {
        self.window_end = Some(nxt);
        self.last_min = core::mem::replace(&mut self.min, Duration::MAX);
        self.samples = 0;
        self.css.as_mut().is_some_and(|css| {
            css.rounds += 1;
            css.rounds >= CSS_ROUNDS
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::{FlightSample, RateSample};
    use super::*;
    use base::Time;

    const MSS: u32 = 1000;

    /// Slow start over a path, one acknowledgment a segment.
    struct Path {
        hystart: HyStart,
        una: u64,
        nxt: u64,
    }

    impl Path {
        fn new() -> Path {
            Path::with(&Config { byte_counting: None, ..Config::default() })
        }

        fn with(config: &Config) -> Path {
            Path { hystart: HyStart::new(Rules::new(config)), una: 0, nxt: 10 * u64::from(MSS) }
        }

        fn ack(&mut self, segments: u32, rtt: Option<Duration>, window_limited: bool) -> Step {
            let acked = u64::from(segments * MSS);
            self.una += acked;
            let sample = AckSample {
                now: Time::ZERO,
                acked,
                limited_transmit: 0,
                delivered: acked,
                rate: RateSample::default(),
                flight: FlightSample::default(),
                rtt,
                srtt: rtt,
                window_limited,
                after_timeout: false,
                mss: MSS,
                marks: crate::congestion::CeMarks::default(),
            };
            let step = self.hystart.on_ack(&sample, self.una, self.nxt);
            self.nxt += acked + step.growth as u64;
            step
        }

        /// Acknowledges `segments`, each after `millis`; returns the steps.
        fn acks(&mut self, segments: u32, millis: f64) -> Vec<Step> {
            let rtt = Duration::from_nanos((millis * 1e6) as u64);
            (0..segments).map(|_| self.ack(1, Some(rtt), true)).collect()
        }

        /// The rest of the round.
        fn round(&mut self, millis: f64) -> Vec<Step> {
            let end = self.hystart.window_end.unwrap_or(self.nxt);
            let left = (end - self.una).div_ceil(u64::from(MSS));
            self.acks(left as u32, millis)
        }

        fn is_conservative(&self) -> bool {
            self.hystart.css.is_some()
        }
    }

    #[test]
    fn growth_of_the_round_trip_by_an_eighth_shows_a_queue() {
        // RFC 9406 §4.3: an eighth, but 4 ms at least and 16 ms at most.
        for (base, threshold) in [(8.0, 4.0), (100.0, 12.5), (600.0, 16.0)] {
            for (more, begins) in [(threshold - 0.1, false), (threshold, true)] {
                let mut path = Path::new();
                path.round(base);
                path.round(base + more);
                assert_eq!(path.is_conservative(), begins, "{base} ms and {more} ms more");
            }
        }
    }

    #[test]
    fn eight_samples_are_needed() {
        let mut path = Path::new();
        path.round(100.0);
        path.acks(7, 200.0);
        // A retransmitted segment gives no sample.
        path.ack(1, None, true);
        assert!(!path.is_conservative());
        path.acks(1, 200.0);
        assert!(path.is_conservative());
    }

    #[test]
    fn one_short_round_trip_shows_that_there_is_no_queue() {
        let mut path = Path::new();
        path.round(100.0);
        path.acks(1, 110.0);
        path.round(200.0);
        assert!(!path.is_conservative());
    }

    #[test]
    fn the_end_of_a_burst_is_not_taken_for_a_round() {
        // Each flight waits behind itself, a millisecond more with each segment, and drains before the next.
        for (round_end, begins) in [(RoundEnd::Reached, true), (RoundEnd::Passed, false)] {
            let config = Config { hystart_round_end: round_end, ..Config::default() };
            let mut path = Path::with(&config);
            let mut is_conservative = false;
            for flight in [10, 20, 40, 80, 160] {
                for position in 0..flight {
                    path.acks(1, 100.0 + f64::from(position));
                    is_conservative |= path.is_conservative();
                }
            }
            assert_eq!(is_conservative, begins, "{round_end:?}");
        }
    }

    #[test]
    fn a_window_grows_by_a_quarter_in_conservative_slow_start() {
        let mut path = Path::new();
        assert!(path.round(100.0).iter().all(|step| step.growth == 1000.0));
        let steps = path.round(120.0);
        assert!(steps[..8].iter().all(|step| step.growth == 1000.0), "{steps:?}");
        assert!(steps[8..].iter().all(|step| step.growth == 250.0), "{steps:?}");
    }

    #[test]
    fn conservative_slow_start_lasts_five_rounds_with_the_one_it_begins_in() {
        let mut path = Path::new();
        path.round(100.0);
        for round in 1..=5 {
            let over = path.round(120.0).iter().filter(|step| step.is_over).count();
            assert_eq!(over, usize::from(round == 5), "round {round}");
        }
    }

    #[test]
    fn slow_start_resumes_when_the_round_trip_is_below_that_at_the_start_of_css() {
        let mut path = Path::new();
        path.round(100.0);
        path.round(120.0);
        path.acks(8, 120.0);
        assert!(path.is_conservative(), "not below");
        path.round(120.0);
        path.acks(8, 119.0);
        assert!(!path.is_conservative());
        assert_eq!(path.acks(1, 119.0)[0].growth, 1000.0);
        // Five rounds from the next time on.
        path.round(119.0);
        for round in 1..=5 {
            let over = path.round(150.0).iter().any(|step| step.is_over);
            assert_eq!(over, round == 5, "round {round}");
        }
    }

    #[test]
    fn an_acknowledgment_adds_eight_segments_at_most_unless_byte_counting_or_pacing_allow_more() {
        let rtt = Some(Duration::from_millis(100));
        for (is_paced, byte_counting, growth) in [
            (false, None, 8000.0),
            (false, Some(2), 8000.0),
            (false, Some(12), 12_000.0),
            (false, Some(u32::MAX), 20_000.0),
            (true, Some(2), 20_000.0),
        ] {
            let config = Config { pacing: is_paced, byte_counting, ..Config::default() };
            let mut path = Path::with(&config);
            assert_eq!(path.ack(20, rtt, true).growth, growth);
        }
    }

    #[test]
    fn a_window_that_is_not_used_does_not_grow() {
        let mut path = Path::new();
        assert_eq!(path.ack(1, None, false).growth, 0.0);
    }
}
