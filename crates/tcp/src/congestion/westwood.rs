//! TCP Westwood: congestion reduces the window to the measured capacity of the path.
//!
//! The window grows as in RFC 5681. Congestion sets ssthresh to the estimated bandwidth times the
//! shortest round-trip time and limits the window to it; a timeout sets the same ssthresh, and one
//! segment. ssthresh may thus exceed the old window. The versions of Westwood differ in the
//! bandwidth estimate.

use super::aimd::Aimd;
use super::{AckSample, CongestionControl, Episode, Growth, LARGEST_WINDOW};
use base::{Duration, Time};
use serde::{Deserialize, Serialize};

/// A bandwidth estimator, from acknowledgments.
pub(super) trait Estimator: Default {
    /// Processes an acknowledgment that stands for `octets`; `rtt` is the last round-trip sample.
    fn on_ack(&mut self, now: Time, octets: u64, rtt: Option<Duration>);

    /// Octets a second; `None` as long as there is no estimate.
    fn bandwidth(&self) -> Option<f64>;
}

/// Westwood's window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Westwood<E> {
    aimd: Aimd,
    measured: Measured<E>,
}

/// The measurements of the path.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Measured<E> {
    estimator: E,
    counted: AckedCount,
    /// The last and the shortest round-trip sample.
    rtt: Option<Duration>,
    shortest: Option<Duration>,
}

/// Octets counted for duplicate acknowledgments and not yet acknowledged (MobiCom 2001, §2.3,
/// AckedCount).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
struct AckedCount(u64);

impl AckedCount {
    /// The octets that an acknowledgment stands for: a duplicate for a segment, another for octets
    /// not counted before, but at least a segment.
    fn count(&mut self, acked: u64, mss: u64) -> u64 {
        if acked == 0 {
            self.0 += mss;
            mss
        } else if acked <= mss {
            acked
        } else if self.0 >= acked {
            self.0 -= acked;
            mss
        } else {
            acked - core::mem::take(&mut self.0)
        }
    }
}

impl<E: Estimator> Measured<E> {
    pub(super) fn on_ack(&mut self, sample: &AckSample) {
        if let Some(rtt) = sample.rtt {
            self.rtt = Some(rtt);
            self.shortest = Some(self.shortest.map_or(rtt, |shortest| shortest.min(rtt)));
        }
        let octets = self.counted.count(sample.acked, u64::from(sample.mss));
        self.estimator.on_ack(sample.now, octets, self.rtt);
    }

    /// The bandwidth-delay product, octets.
    pub(super) fn capacity(&self) -> Option<u64> {
        let capacity = self.estimator.bandwidth()? * self.shortest?.as_secs_f64();
        Some(capacity.min(LARGEST_WINDOW) as u64)
    }
}

impl<E: Estimator> Westwood<E> {
    pub(super) fn new(growth: Growth, window: u64) -> Westwood<E> {
        Westwood { aimd: Aimd::new(growth, window), measured: Measured::default() }
    }

    /// The new window and slow-start threshold; before any measurement, RFC 5681's.
    fn reduced(&self, episode: &Episode) -> (u64, Option<u64>) {
        let (window, ssthresh) = match (self.measured.capacity(), episode.decrease) {
            (Some(capacity), None) => {
                let mss = u64::from(episode.mss);
                let least = if episode.marked { mss } else { 2 * mss };
                (capacity.max(least), capacity.max(2 * mss))
            }
            _ => episode.reduced(super::aimd::DECREASE),
        };
        (window, (!episode.keep_ssthresh).then_some(ssthresh))
    }
}

impl<E: Estimator> CongestionControl for Westwood<E> {
    fn on_ack(&mut self, sample: &AckSample) {
        self.measured.on_ack(sample);
        self.aimd.on_ack(sample);
    }

    fn on_other_ack(&mut self, sample: &AckSample) {
        self.measured.on_ack(sample);
    }

    fn on_congestion(&mut self, episode: &Episode) {
        let (window, ssthresh) = self.reduced(episode);
        self.aimd.reduce(window, ssthresh);
    }

    fn on_rto(&mut self, episode: &Episode) {
        let (_, ssthresh) = self.reduced(episode);
        self.aimd.reduce(u64::from(episode.mss), ssthresh);
    }

    fn on_idle(&mut self, window: u64) {
        self.aimd.on_idle(window);
    }

    fn on_undo(&mut self, before: Self) {
        // Measurements stay valid.
        self.aimd = before.aimd;
    }

    fn reset(&mut self, window: u64, ssthresh: Option<u64>) {
        self.aimd.reset(window, ssthresh);
        self.measured = Measured::default();
    }

    fn grow(&mut self, bytes: f64) {
        self.aimd.grow(bytes);
    }

    fn end_slow_start(&mut self) {
        self.aimd.end_slow_start();
    }

    #[inline]
    fn window(&self) -> u64 {
        self.aimd.window()
    }

    #[inline]
    fn ssthresh(&self) -> u64 {
        self.aimd.ssthresh()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::{FlightSample, RateSample};
    use proptest::prelude::*;

    /// An estimate that is given.
    #[derive(Clone, Copy, Debug, Default, PartialEq)]
    struct Given(Option<f64>);

    impl Estimator for Given {
        fn on_ack(&mut self, _now: Time, _octets: u64, _rtt: Option<Duration>) {}

        fn bandwidth(&self) -> Option<f64> {
            self.0
        }
    }

    /// A window of 20,000 bytes, and a path that holds `capacity`.
    fn westwood(capacity: f64) -> Westwood<Given> {
        let mut westwood = Westwood::<Given>::new(Growth::default(), 20_000);
        let rtt = Duration::from_millis(100);
        westwood.measured.estimator.0 = Some(capacity / rtt.as_secs_f64());
        westwood.measured.shortest = Some(rtt);
        westwood
    }

    fn ack(acked: u64, rtt_ms: Option<u64>) -> AckSample {
        AckSample {
            now: Time::ZERO,
            acked,
            limited_transmit: 0,
            delivered: acked,
            rate: RateSample::default(),
            flight: FlightSample::default(),
            rtt: rtt_ms.map(Duration::from_millis),
            srtt: None,
            window_limited: true,
            after_timeout: false,
            mss: 1000,
            marks: crate::congestion::CeMarks::default(),
        }
    }

    fn episode(flight: u64) -> Episode {
        let (decrease, keep_ssthresh, marked) = (None, false, false);
        Episode { now: Time::ZERO, flight, mss: 1000, decrease, keep_ssthresh, marked }
    }

    #[test]
    fn congestion_leaves_what_the_path_holds() {
        let mut westwood = westwood(15_000.0);
        westwood.on_congestion(&episode(20_000));
        assert_eq!((westwood.window(), westwood.ssthresh()), (15_000, 15_000));
        westwood.on_rto(&episode(15_000));
        assert_eq!((westwood.window(), westwood.ssthresh()), (1000, 15_000));
    }

    #[test]
    fn a_path_that_holds_more_than_the_window_raises_ssthresh_and_not_the_window() {
        let mut westwood = westwood(50_000.0);
        westwood.on_congestion(&episode(20_000));
        assert_eq!((westwood.window(), westwood.ssthresh()), (20_000, 50_000));
        westwood.on_ack(&ack(1000, None));
        assert_eq!(westwood.window(), 21_000, "slow start");
    }

    #[test]
    fn two_segments_are_left_whatever_was_measured() {
        let mut westwood = westwood(10.0);
        westwood.on_congestion(&episode(20_000));
        assert_eq!((westwood.window(), westwood.ssthresh()), (2000, 2000));
        westwood.on_congestion(&Episode { marked: true, ..episode(2000) });
        assert_eq!((westwood.window(), westwood.ssthresh()), (1000, 2000));
    }

    #[test]
    fn before_anything_is_measured_and_where_a_mechanism_decides_the_flight_counts() {
        let mut unmeasured = Westwood::<Given>::new(Growth::default(), 20_000);
        unmeasured.on_congestion(&episode(20_000));
        assert_eq!((unmeasured.window(), unmeasured.ssthresh()), (10_000, 10_000));
        let mut westwood = westwood(15_000.0);
        westwood.on_congestion(&Episode { decrease: Some(0.9), ..episode(20_000) });
        assert_eq!((westwood.window(), westwood.ssthresh()), (18_000, 18_000));
    }

    #[test]
    fn the_shortest_and_the_last_round_trip_are_kept() {
        let mut westwood = westwood(15_000.0);
        for rtt_ms in [Some(120), Some(80), None, Some(90)] {
            westwood.on_ack(&ack(1000, rtt_ms));
        }
        assert_eq!(westwood.measured.shortest, Some(Duration::from_millis(80)));
        assert_eq!(westwood.measured.rtt, Some(Duration::from_millis(90)));
    }

    #[test]
    fn duplicates_and_what_they_stood_for_count_once() {
        // Five duplicates, then everything at once: six segments.
        let mut counted = AckedCount::default();
        let octets: u64 =
            [0, 0, 0, 0, 0, 6000].map(|acked| counted.count(acked, 1000)).iter().sum();
        assert_eq!(octets, 6000);
        // Two holes: of four duplicates the first acknowledgment covers two.
        let mut counted = AckedCount::default();
        let acks = [0, 0, 0, 0, 3000, 3000];
        let octets: Vec<u64> = acks.map(|acked| counted.count(acked, 1000)).to_vec();
        assert_eq!(octets, [1000, 1000, 1000, 1000, 1000, 2000]);
        // Delayed acknowledgments stand for all that they acknowledge.
        assert_eq!([2000, 500].map(|acked| counted.count(acked, 1000)), [2000, 500]);
    }

    #[test]
    fn an_undo_restores_the_windows_and_keeps_what_was_measured() {
        let mut westwood = westwood(15_000.0);
        let before = westwood.clone();
        westwood.on_congestion(&episode(20_000));
        westwood.on_other_ack(&ack(0, Some(50)));
        westwood.on_undo(before);
        assert_eq!((westwood.window(), westwood.ssthresh()), (20_000, u64::MAX));
        assert_eq!(westwood.measured.shortest, Some(Duration::from_millis(50)));
    }

    proptest! {
        /// However acknowledgments mix, never less than a segment is counted for each that says
        /// something, nor more than arrived.
        #[test]
        fn no_octet_is_counted_twice(arrivals in prop::collection::vec(1_u64..20, 1..50)) {
            // Each time the first of so many segments is missing: the others make duplicates, and
            // the retransmission acknowledges all.
            let mut counted = AckedCount::default();
            let mut octets = 0;
            for &segments in &arrivals {
                octets += (1..segments).map(|_| counted.count(0, 1000)).sum::<u64>();
                octets += counted.count(1000 * segments, 1000);
            }
            prop_assert_eq!(octets, 1000 * arrivals.iter().sum::<u64>());
            prop_assert_eq!(counted, AckedCount(0));
        }
    }
}
