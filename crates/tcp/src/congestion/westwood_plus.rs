//! Westwood+: a sample of the bandwidth once a round trip, which compressed acknowledgments cannot
//! inflate, and an exponential average over them.

use super::AckSample;
use super::westwood::{Estimator, Measured, Westwood};
use base::{Duration, Time};
use serde::{Deserialize, Serialize};

/// Westwood with [`PerRoundTrip`].
pub(super) type WestwoodPlus = Westwood<PerRoundTrip>;

/// What Westwood+ measures of the path.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WestwoodPlusPath(Measured<PerRoundTrip>);

impl WestwoodPlusPath {
    /// The share of the estimate that a new sample leaves (Grieco, Mascolo, CCR 34 (2), 2004, §2).
    pub const ALPHA: f64 = 0.9;

    /// Processes an acknowledgment, or a duplicate, with nothing `acked`.
    pub fn on_ack(&mut self, sample: &AckSample) {
        self.0.on_ack(sample);
    }

    /// The estimated bandwidth times the shortest round trip, octets: congestion reduces the window
    /// to it. `None` until there is an estimate.
    #[must_use]
    pub fn capacity(&self) -> Option<u64> {
        self.0.capacity()
    }
}

/// Samples are octets acknowledged in a round trip, over the time that it took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct PerRoundTrip {
    /// Octets a second; `None` until the first round trip is over.
    estimate: Option<f64>,
    /// When the present round trip began, and octets acknowledged since.
    since: Option<Time>,
    octets: u64,
}

impl Estimator for PerRoundTrip {
    fn on_ack(&mut self, now: Time, octets: u64, rtt: Option<Duration>) {
        self.octets += octets;
        // The first acknowledgment answers what was sent a round trip ago.
        let since = *self.since.get_or_insert_with(|| now - rtt.unwrap_or_default());
        let span = now.since(since);
        if rtt.is_none_or(|rtt| span < rtt) || span == Duration::ZERO {
            return;
        }
        let sample = self.octets as f64 / span.as_secs_f64();
        self.estimate = Some(match self.estimate {
            Some(estimate) => {
                WestwoodPlusPath::ALPHA * estimate + (1.0 - WestwoodPlusPath::ALPHA) * sample
            }
            None => sample,
        });
        self.since = Some(now);
        self.octets = 0;
    }

    fn bandwidth(&self) -> Option<f64> {
        self.estimate
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(100);

    /// The estimate after acknowledgments: when, milliseconds, and of how many octets.
    fn estimate(acks: &[(u64, u64)]) -> Option<f64> {
        let mut filter = PerRoundTrip::default();
        for &(at, octets) in acks {
            filter.on_ack(Time::ZERO + Duration::from_millis(at), octets, Some(RTT));
        }
        filter.bandwidth()
    }

    #[test]
    fn a_round_trip_is_a_sample_and_a_tenth_of_the_next_estimate() {
        // The first answers what was sent a round trip ago: 1000 octets in 0.1 s.
        assert_eq!(estimate(&[(100, 1000)]), Some(10_000.0));
        assert_eq!(estimate(&[(100, 1000), (150, 1000), (199, 500)]), Some(10_000.0));
        let found = estimate(&[(100, 1000), (150, 1000), (199, 500), (225, 500)]);
        // 2000 octets in 0.125 s are 16,000 a second.
        let expected = 0.9 * 10_000.0 + 0.1 * 16_000.0;
        assert!((found.expect("an estimate") - expected).abs() < 1e-9, "{found:?}");
    }

    #[test]
    fn without_a_round_trip_there_is_no_estimate() {
        let mut filter = PerRoundTrip::default();
        filter.on_ack(Time::ZERO, 1000, None);
        assert_eq!(filter.bandwidth(), None);
    }

    #[test]
    fn compressed_acknowledgments_count_no_more_than_even_ones() {
        // Ten at a time, 1 ms apart, every 100 ms: 100,000 octets a second.
        let bursts: Vec<_> = (10..2000).map(|n| (100 * (n / 10) + n % 10, 1000)).collect();
        let found = estimate(&bursts).expect("an estimate");
        assert!((90_000.0..=101_000.0).contains(&found), "{found}");
    }
}
