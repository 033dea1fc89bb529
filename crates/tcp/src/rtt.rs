//! The retransmission timeout (RFC 6298).

use crate::config::Rto;
use base::Duration;

/// Round-trip estimator and the timeout that follows from it.
#[derive(Clone, Debug)]
pub(crate) struct Rtt {
    config: Rto,
    srtt: Option<Duration>,
    rttvar: Duration,
    /// The timeout before back-off.
    base: Duration,
    /// Doublings since the last valid sample (Karn).
    backoff: u32,
}

impl Rtt {
    pub(crate) fn new(config: Rto) -> Rtt {
        Rtt { config, srtt: None, rttvar: Duration::ZERO, base: config.initial, backoff: 0 }
    }

    /// Takes in a round trip of a segment that was sent once only.
    pub(crate) fn sample(&mut self, rtt: Duration) {
        let tick = self.config.granularity;
        let rtt = rtt.rounded_to(tick).max(tick);
        let srtt = match self.srtt {
            // RFC 6298 §2.2
            None => {
                self.rttvar = rtt / 2;
                rtt
            }
            // RFC 6298 §2.3: RTTVAR first, from the old SRTT.
            Some(srtt) => {
                self.rttvar = self.rttvar - self.rttvar / 4 + srtt.abs_diff(rtt) / 4;
                srtt - srtt / 8 + rtt / 8
            }
        };
        self.srtt = Some(srtt);
        self.base = (srtt + (self.rttvar * 4).max(tick)).max(self.config.minimum);
        self.backoff = 0;
    }

    /// The present timeout, back-off included.
    pub(crate) fn rto(&self) -> Duration {
        self.base.doubled(self.backoff).min(self.config.maximum)
    }

    /// The SYN was lost: without a sample, data starts with three seconds (RFC 6298 §5.7).
    pub(crate) fn after_lost_syn(&mut self) {
        if self.srtt.is_none() {
            self.base = self.base.max(Duration::from_secs(3));
            self.backoff = 0;
        }
    }

    /// Doubles the timeout (RFC 6298 §5.5).
    pub(crate) fn back_off(&mut self) {
        self.backoff = self.backoff.saturating_add(1);
    }

    /// The smoothed round trip, once there is a sample.
    pub(crate) fn smoothed(&self) -> Option<Duration> {
        self.srtt
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rtt(granularity: u64, minimum: u64) -> Rtt {
        Rtt::new(Rto {
            granularity: Duration::from_millis(granularity),
            minimum: Duration::from_millis(minimum),
            ..Rto::default()
        })
    }

    #[test]
    fn the_first_sample_sets_three_times_itself() {
        let mut rtt = rtt(1, 0);
        rtt.sample(Duration::from_millis(100));
        assert_eq!(rtt.rto(), Duration::from_millis(300));
    }

    #[test]
    fn a_steady_path_converges_to_srtt_plus_one_tick() {
        let mut rtt = rtt(100, 0);
        for _ in 0..200 {
            rtt.sample(Duration::from_millis(640));
        }
        assert_eq!(rtt.smoothed(), Some(Duration::from_millis(600)));
        assert_eq!(rtt.rto(), Duration::from_millis(700));
    }

    #[test]
    fn a_round_trip_below_the_tick_counts_as_one_tick() {
        let mut rtt = rtt(100, 200);
        rtt.sample(Duration::from_millis(20));
        assert_eq!(rtt.smoothed(), Some(Duration::from_millis(100)));
    }

    #[test]
    fn back_off_doubles_up_to_the_maximum_and_ends_with_a_sample() {
        let mut rtt = rtt(1, 1000);
        rtt.back_off();
        assert_eq!(rtt.rto(), Duration::from_secs(2));
        for _ in 0..100 {
            rtt.back_off();
        }
        assert_eq!(rtt.rto(), Duration::from_secs(60));
        rtt.sample(Duration::from_millis(10));
        assert_eq!(rtt.rto(), Duration::from_secs(1));
    }
}
