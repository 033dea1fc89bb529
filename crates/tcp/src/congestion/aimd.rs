//! Additive increase, multiplicative decrease (RFC 5681), with a choice of increase functions.

use super::{AckSample, CongestionControl, Episode, Increase, IncreaseFunction as _};

/// RFC 5681's window.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct Aimd {
    increase: Increase,
    /// Bytes; fractional, because the increase per acknowledgment is a fraction of a segment.
    exact: f64,
    /// The same in whole bytes, as it is asked for several times a segment.
    window: u64,
    ssthresh: u64,
}

impl Aimd {
    pub(crate) fn new(increase: Increase, window: u64, ssthresh: Option<u64>) -> Aimd {
        Aimd { increase, exact: window as f64, window, ssthresh: ssthresh.unwrap_or(u64::MAX) }
    }

    /// RFC 5681 §3.1, equation 4: never below two segments.
    fn reduced(&self, episode: &Episode) -> u64 {
        let target = (episode.flight as f64 * episode.factor) as u64;
        target.max(2 * u64::from(episode.mss))
    }

    fn set_window(&mut self, exact: f64) {
        self.exact = exact;
        self.window = exact as u64;
    }

    fn set_ssthresh(&mut self, episode: &Episode) {
        if !episode.keep_ssthresh {
            self.ssthresh = self.reduced(episode);
        }
    }
}

impl CongestionControl for Aimd {
    #[inline]
    fn on_ack(&mut self, sample: &AckSample) {
        if !sample.window_limited {
            return;
        }
        let mss = f64::from(sample.mss);
        if self.window < self.ssthresh {
            // RFC 5681 §3.1, equation 2.
            self.set_window(self.exact + (sample.acked as f64).min(mss));
        } else {
            let segments = self.exact / mss;
            let step = self.increase.per_ack(segments, sample.srtt) * mss;
            self.set_window(self.exact + step);
        }
    }

    fn on_congestion(&mut self, episode: &Episode) {
        self.set_ssthresh(episode);
        self.set_window(self.reduced(episode) as f64);
    }

    fn on_rto(&mut self, episode: &Episode) {
        self.set_ssthresh(episode);
        self.set_window(f64::from(episode.mss));
    }

    fn on_idle(&mut self, window: u64) {
        if window < self.window {
            self.set_window(window as f64);
        }
    }

    #[inline]
    fn window(&self) -> u64 {
        self.window
    }

    fn ssthresh(&self) -> u64 {
        self.ssthresh
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::RateSample;

    fn ack(acked: u64) -> AckSample {
        AckSample {
            acked,
            delivered: acked,
            rate: RateSample::default(),
            rtt: None,
            srtt: None,
            window_limited: true,
            mss: 1000,
        }
    }

    fn episode(flight: u64) -> Episode {
        Episode { flight, mss: 1000, factor: 0.5, keep_ssthresh: false }
    }

    #[test]
    fn slow_start_adds_one_segment_per_acknowledgment() {
        let mut aimd = Aimd::new(Increase::default(), 1000, None);
        for n in 1..=10 {
            aimd.on_ack(&ack(1000));
            assert_eq!(aimd.window(), 1000 + n * 1000);
        }
        aimd.on_ack(&ack(2000));
        assert_eq!(aimd.window(), 12_000, "an ACK for two segments still adds only one");
    }

    #[test]
    fn congestion_avoidance_adds_about_one_segment_per_window() {
        let mut aimd = Aimd::new(Increase::default(), 10_000, Some(10_000));
        for _ in 0..10 {
            aimd.on_ack(&ack(1000));
        }
        assert!((10_900..=11_000).contains(&aimd.window()), "{}", aimd.window());
    }

    #[test]
    fn congestion_halves_the_flight_but_not_below_two_segments() {
        let mut aimd = Aimd::new(Increase::default(), 20_000, None);
        aimd.on_congestion(&episode(20_000));
        assert_eq!((aimd.window(), aimd.ssthresh()), (10_000, 10_000));
        aimd.on_congestion(&episode(1000));
        assert_eq!((aimd.window(), aimd.ssthresh()), (2000, 2000));
        aimd.on_rto(&episode(20_000));
        assert_eq!((aimd.window(), aimd.ssthresh()), (1000, 10_000));
    }

    #[test]
    fn an_unused_window_does_not_grow() {
        let mut aimd = Aimd::new(Increase::default(), 10_000, None);
        aimd.on_ack(&AckSample { window_limited: false, ..ack(1000) });
        assert_eq!(aimd.window(), 10_000);
    }
}
