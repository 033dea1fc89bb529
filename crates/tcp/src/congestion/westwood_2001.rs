//! Westwood as it was first published: a sample of the bandwidth at every acknowledgment, and a
//! low-pass filter over them.
//!
//! Acknowledgments that were compressed on their way over-estimate: the filter takes the bandwidth
//! to run straight from one sample to the next, so the rate within a burst stands for half of the
//! pause that follows, too. `westwood+` is the authors' answer.

use super::westwood::{Estimator, Westwood};
use base::{Duration, Time};
use serde::{Deserialize, Serialize};

/// Westwood with [`PerAck`].
pub(super) type Westwood2001 = Westwood<PerAck>;

/// 1 / the cut-off frequency, seconds: as in the authors' simulator.
const TAU: f64 = 1.0;
/// After this long without an acknowledgment a sample of zero is inserted, so that the filter
/// decays: tau over m, with the least m that sampling permits (MobiCom 2001, §2.2).
const SILENCE: Duration = Duration::from_millis(500);
/// The largest number of inserted samples; the estimate has decayed by then.
const SILENCES: u64 = 256;
/// A remainder of the time shorter than this counts as one of the inserted samples, as dividing by
/// it would distort the estimate: as in the authors' simulator.
const SHORT: Duration = Duration::from_millis(10);

/// Samples are octets acknowledged over the time since the acknowledgment before. The filter is a
/// first-order low-pass, made discrete by Tustin's rule (MobiCom 2001, §2.2, equation 3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct PerAck {
    /// Estimate and last sample, octets a second.
    estimate: f64,
    sample: f64,
    /// When the last acknowledgment arrived.
    at: Option<Time>,
    /// Octets acknowledged at the same time as that one, which belong to the next sample.
    pending: u64,
}

impl PerAck {
    fn filter(&mut self, sample: f64, over: f64) {
        let weight = 2.0 * over / (2.0 * TAU + over);
        self.estimate += weight * ((sample + self.sample) / 2.0 - self.estimate);
        self.sample = sample;
    }
}

impl Estimator for PerAck {
    fn on_ack(&mut self, now: Time, octets: u64, _rtt: Option<Duration>) {
        let Some(at) = self.at else {
            self.at = Some(now);
            return;
        };
        self.pending += octets;
        let mut rest = now.since(at);
        if rest == Duration::ZERO {
            return;
        }
        let mut silences = rest.as_nanos() / SILENCE.as_nanos();
        rest = rest - SILENCE * silences;
        if rest < SHORT && silences > 0 {
            silences -= 1;
            rest = SILENCE;
        }
        for _ in 0..silences.min(SILENCES) {
            self.filter(0.0, SILENCE.as_secs_f64());
        }
        let over = rest.as_secs_f64();
        let octets = core::mem::take(&mut self.pending);
        self.filter(octets as f64 / over, over);
        self.at = Some(now);
    }

    fn bandwidth(&self) -> Option<f64> {
        (self.sample > 0.0).then_some(self.estimate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The estimate after acknowledgments: when, milliseconds, and of how many octets.
    fn estimate(acks: &[(u64, u64)]) -> Option<f64> {
        let mut filter = PerAck::default();
        for &(at, octets) in acks {
            filter.on_ack(Time::ZERO + Duration::from_millis(at), octets, None);
        }
        filter.bandwidth()
    }

    fn assert_near(found: Option<f64>, expected: f64) {
        let found = found.expect("an estimate");
        assert!((found - expected).abs() < 1e-6 * expected, "{found} instead of {expected}");
    }

    #[test]
    fn a_tenth_of_tau_between_acknowledgments_makes_19_21sts_of_the_estimate_stay() {
        assert_eq!(estimate(&[(0, 1000)]), None, "one acknowledgment takes no time");
        // 10,000 octets a second: 1/21 (10000 + 0), then 19/21 of that + 1/21 (10000 + 10000).
        let first = 10_000.0 / 21.0;
        assert_near(estimate(&[(0, 1000), (100, 1000)]), first);
        let second = first * 19.0 / 21.0 + 20_000.0 / 21.0;
        assert_near(estimate(&[(0, 1000), (100, 1000), (200, 1000)]), second);
    }

    #[test]
    fn the_longer_since_the_acknowledgment_before_the_less_of_the_estimate_stays() {
        // 0.4 s: (2 - 0.4) / (2 + 0.4) = 2/3 stay; the sample is 1000 / 0.4 = 2500.
        let first = 10_000.0 / 21.0;
        let expected = first * 2.0 / 3.0 + (10_000.0 + 2500.0) / 6.0;
        assert_near(estimate(&[(0, 1000), (100, 1000), (500, 1000)]), expected);
    }

    #[test]
    fn half_of_tau_without_acknowledgment_is_a_sample_of_zero() {
        // 0.5 s of nothing: 3/5 stay, and the sample before for half of it; then 0.1 s.
        let first = 10_000.0 / 21.0;
        let silent = first * 0.6 + 10_000.0 / 5.0;
        let expected = silent * 19.0 / 21.0 + (0.0 + 10_000.0) / 21.0;
        assert_near(estimate(&[(0, 1000), (100, 1000), (700, 1000)]), expected);
        // What is left after two of them is too short, and belongs to the second.
        let expected = silent * 0.6 + (0.0 + 2000.0) / 5.0;
        assert_near(estimate(&[(0, 1000), (100, 1000), (1101, 1000)]), expected);
    }

    #[test]
    fn what_is_acknowledged_at_once_is_one_sample() {
        let apart = [(0, 1000), (100, 1000), (100, 500), (200, 1000)];
        let together = [(0, 1000), (100, 1000), (200, 1500)];
        assert_eq!(estimate(&apart), estimate(&together));
    }

    #[test]
    fn evenly_spaced_acknowledgments_converge_to_the_rate_and_compressed_ones_above_it() {
        let even: Vec<_> = (0..2000).map(|n| (10 * n, 1000)).collect();
        let found = estimate(&even).expect("an estimate");
        assert!((found - 100_000.0).abs() < 1.0, "{found}");
        // The same data, ten at a time, 1 ms apart, every 100 ms.
        let bursts: Vec<_> = (0..2000).map(|n| (100 * (n / 10) + n % 10, 1000)).collect();
        let found = estimate(&bursts).expect("an estimate");
        assert!(found > 400_000.0, "{found}");
    }
}
