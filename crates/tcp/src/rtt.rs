//! The retransmission timeout (RFC 6298).

use crate::config::{Estimator, Restart, Rto};
use base::{Duration, Quantiles, Time};
use serde::{Deserialize, Serialize};

/// Round-trip estimator and the timeout that follows from it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Rtt {
    config: Rto,
    /// Whether there has been a sample.
    sampled: bool,
    /// Mean and mean deviation of the round trips: nanoseconds, or eighths and quarters of a tick.
    srtt: u64,
    rttvar: u64,
    /// The timeout before back-off.
    base: Duration,
    /// Doublings since the last valid sample (Karn).
    backoff: u32,
    /// The shortest round trip in the present window of [`Rtt::MIN_WINDOW`]; `Duration::MAX` if
    /// there is none.
    min: Duration,
    /// When that window began.
    min_since: Time,
}

/// The round-trip samples of a connection (RFC 6298 §3, RFC 7323 §4.1), nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoundTrips {
    /// The samples.
    pub samples: Quantiles,
    /// The smoothed round trip (SRTT) after each of them.
    pub smoothed: Quantiles,
}

impl Rtt {
    /// An estimator without a sample, with these settings of its timeout.
    #[must_use]
    pub fn new(config: Rto) -> Rtt {
        let base = config.initial;
        Rtt {
            config,
            sampled: false,
            srtt: 0,
            rttvar: 0,
            base,
            backoff: 0,
            min: Duration::MAX,
            min_since: Time::ZERO,
        }
    }

    /// How long a shortest round trip counts (Linux: `tcp_min_rtt_wlen`).
    const MIN_WINDOW: Duration = Duration::from_secs(300);

    /// Takes the round-trip sample of a segment that was sent once, from `sent_at` to `now`. It is
    /// a part of the fast path, which makes no calls.
    #[inline(always)]
    pub fn sample(&mut self, now: Time, sent_at: Time) {
        let timeout = match self.config.estimator {
            Estimator::Exact => self.exact(now.since(sent_at)),
            Estimator::Ticks => self.ticks(now, sent_at),
            Estimator::Tahoe => self.tahoe(now, sent_at),
        };
        self.base = match self.config.estimator {
            Estimator::Exact | Estimator::Ticks => timeout.max(self.config.minimum),
            // Its bound applies after back-off.
            Estimator::Tahoe => timeout,
        };
        self.backoff = 0;
        self.min = self.min.min(now.since(sent_at));
    }

    /// The shortest round trip of the last minutes, once there is a sample.
    pub(crate) fn min(&mut self, now: Time) -> Option<Duration> {
        let min = self.min;
        if min < Duration::MAX && now.since(self.min_since) > Rtt::MIN_WINDOW {
            (self.min, self.min_since) = (Duration::MAX, now);
        }
        (min < Duration::MAX).then_some(min)
    }

    /// The shortest round trip of the present window, which this does not end.
    pub(crate) fn shortest(&self) -> Option<Duration> {
        (self.min < Duration::MAX).then_some(self.min)
    }

    /// The time after which a loss probe is sent (RFC 8985 §7.2, TLP_calc_PTO): at least two ticks
    /// of the clock, as in Linux (TCP_TIMEOUT_MIN).
    #[must_use]
    #[inline]
    pub fn probe_timeout(&self) -> Duration {
        let two_round_trips = |srtt: Duration| (srtt * 2).max(self.config.granularity * 2);
        self.smoothed().map_or(Duration::from_secs(1), two_round_trips)
    }

    /// RFC 6298 §2.2, 2.3: RTTVAR first, from the old SRTT.
    #[inline(always)]
    fn exact(&mut self, rtt: Duration) -> Duration {
        let rtt = rtt.as_nanos();
        if self.sampled {
            self.rttvar = self.rttvar - self.rttvar / 4 + self.srtt.abs_diff(rtt) / 4;
            self.srtt = self.srtt - self.srtt / 8 + rtt / 8;
        } else {
            (self.sampled, self.srtt, self.rttvar) = (true, rtt, rtt / 2);
        }
        let deviation = Duration::from_nanos(self.rttvar) * 4;
        let bound = self.config.granularity.max(self.config.minimum_variance);
        Duration::from_nanos(self.srtt) + deviation.max(bound)
    }

    /// 4.3BSD's arithmetic (Jacobson 1988, appendix A): a round trip is the number of ticks of the
    /// clock while it lasted, at least one.
    #[inline(never)]
    fn ticks(&mut self, now: Time, sent_at: Time) -> Duration {
        let rtt = self.in_ticks(now, sent_at);
        if self.sampled {
            let mean = self.srtt / 8;
            self.rttvar = (self.rttvar + rtt.abs_diff(mean) - self.rttvar / 4).max(1);
            self.srtt = (self.srtt + rtt - mean).max(1);
        } else {
            (self.sampled, self.srtt, self.rttvar) = (true, rtt * 8, rtt * 2);
        }
        self.config.granularity * ((self.rttvar * 8 + self.srtt) / 8)
    }

    /// 4.3BSD Tahoe's arithmetic (`tcp_input`, June 1988): the first sample counts the tick at its
    /// start, too.
    #[inline(never)]
    fn tahoe(&mut self, now: Time, sent_at: Time) -> Duration {
        let rtt = self.ticks_between(sent_at, now);
        if self.sampled {
            let mean = self.srtt / 8;
            self.rttvar = (self.rttvar + rtt.abs_diff(mean)).saturating_sub(self.rttvar / 4).max(1);
            self.srtt = (self.srtt + rtt).saturating_sub(mean).max(1);
        } else {
            (self.sampled, self.srtt, self.rttvar) = (true, (rtt + 1) * 8, (rtt + 1) * 2);
        }
        self.config.granularity * ((self.srtt / 4 + self.rttvar) / 2)
    }

    fn in_ticks(&self, now: Time, sent_at: Time) -> u64 {
        self.ticks_between(sent_at, now).max(1)
    }

    fn ticks_between(&self, start: Time, end: Time) -> u64 {
        let tick = self.config.granularity.as_nanos().max(1);
        end.as_nanos() / tick - start.as_nanos() / tick
    }

    /// The time from `sent_at` to `now` as the round-trip clock measures it.
    #[inline]
    pub(crate) fn measured(&self, now: Time, sent_at: Time) -> Duration {
        match self.config.estimator {
            Estimator::Exact => now.since(sent_at),
            Estimator::Ticks | Estimator::Tahoe => {
                self.config.granularity * self.in_ticks(now, sent_at)
            }
        }
    }

    /// The present timeout, back-off included.
    #[must_use]
    #[inline]
    pub fn rto(&self) -> Duration {
        let rto = self.base.doubled(self.backoff).min(self.config.maximum);
        if self.config.estimator == Estimator::Tahoe { rto.max(self.config.minimum) } else { rto }
    }

    /// When a timer expires that is started now, for the present timeout.
    #[inline]
    pub(crate) fn expiry(&self, now: Time) -> Time {
        match self.config.estimator {
            Estimator::Exact | Estimator::Ticks => now + self.rto(),
            // Not before the next tick.
            Estimator::Tahoe => self.last_tick(now) + self.rto().max(self.config.granularity),
        }
    }

    /// The last tick of the clock.
    #[inline(never)]
    fn last_tick(&self, now: Time) -> Time {
        Time::ZERO + self.config.granularity * self.ticks_between(Time::ZERO, now)
    }

    /// Whether a retransmission of the segment at SND.UNA restarts the timer.
    #[inline]
    pub(crate) fn restarts_on_retransmission(&self) -> bool {
        matches!(self.config.restart, Restart::Retransmission | Restart::Sack)
    }

    /// Whether a SACK of what was sent before that retransmission restarts the timer, too.
    #[inline]
    pub(crate) fn restarts_on_sack(&self) -> bool {
        self.config.restart == Restart::Sack
    }

    /// The SYN was lost: without a sample, data starts with three seconds (RFC 6298 §5.7).
    pub(crate) fn after_lost_syn(&mut self) {
        if !self.sampled {
            self.base = self.base.max(Duration::from_secs(3));
            self.backoff = 0;
        }
    }

    /// Discards the estimate: the path has changed.
    pub(crate) fn forget(&mut self) {
        *self = Rtt::new(self.config);
    }

    /// Doubles the timeout (RFC 6298 §5.5).
    pub fn back_off(&mut self) {
        self.backoff = self.backoff.saturating_add(1);
    }

    /// Ends the back-off.
    pub(crate) fn end_back_off(&mut self) {
        self.backoff = 0;
    }

    /// The smoothed round trip, once there is a sample.
    #[inline]
    pub(crate) fn smoothed(&self) -> Option<Duration> {
        self.sampled.then(|| match self.config.estimator {
            Estimator::Exact => Duration::from_nanos(self.srtt),
            Estimator::Ticks | Estimator::Tahoe => self.config.granularity * self.srtt / 8,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rtt(granularity: u64, minimum: u64, estimator: Estimator) -> Rtt {
        Rtt::new(Rto {
            granularity: Duration::from_millis(granularity),
            minimum: Duration::from_millis(minimum),
            estimator,
            ..Rto::default()
        })
    }

    /// Round trips of `millis`, one after the other.
    fn samples(rtt: &mut Rtt, count: u64, millis: u64) {
        let span = Duration::from_millis(millis);
        for n in 0..count {
            let sent_at = Time::ZERO + span * n;
            rtt.sample(sent_at + span, sent_at);
        }
    }

    #[test]
    fn a_coarse_clock_shows_whole_ticks_and_one_at_least() {
        let (sent_at, millis) = (Time::ZERO + Duration::from_millis(50), Duration::from_millis);
        for (rtt_ms, ticks) in [(20, 100), (60, 100), (160, 200), (640, 600)] {
            let now = sent_at + millis(rtt_ms);
            assert_eq!(rtt(100, 0, Estimator::Ticks).measured(now, sent_at), millis(ticks));
            assert_eq!(rtt(100, 0, Estimator::Exact).measured(now, sent_at), millis(rtt_ms));
        }
    }

    #[test]
    fn a_probe_follows_two_round_trips_or_ticks_whatever_the_bound_of_the_variance_term() {
        for (granularity, estimator, round_trip, expected) in [
            (1, Estimator::Exact, 40, 80),
            (1, Estimator::Exact, 0, 2),
            (50, Estimator::Exact, 40, 100),
            (200, Estimator::Ticks, 40, 400),
        ] {
            let mut rtt = rtt(granularity, 0, estimator);
            rtt.config.minimum_variance = Duration::from_millis(200);
            samples(&mut rtt, 100, round_trip);
            assert_eq!(rtt.probe_timeout(), Duration::from_millis(expected), "{estimator:?}");
        }
    }

    #[test]
    fn the_timeout_stays_above_the_round_trip_by_the_larger_bound_of_the_variance_term() {
        for (granularity, minimum_variance, expected) in
            [(1, 200, 840), (100, 200, 840), (300, 200, 940)]
        {
            let mut rtt = rtt(granularity, 0, Estimator::Exact);
            rtt.config.minimum_variance = Duration::from_millis(minimum_variance);
            // Four times the half of the first round trip is more than any bound.
            samples(&mut rtt, 1, 640);
            assert_eq!(rtt.rto(), Duration::from_millis(1920));
            samples(&mut rtt, 200, 640);
            assert_eq!(
                rtt.rto(),
                Duration::from_millis(expected),
                "{granularity} {minimum_variance}"
            );
        }
    }

    #[test]
    fn the_first_sample_sets_three_times_itself() {
        let mut rtt = rtt(1, 0, Estimator::Exact);
        samples(&mut rtt, 1, 100);
        assert_eq!(rtt.rto(), Duration::from_millis(300));
    }

    #[test]
    fn a_steady_path_converges_to_srtt_plus_one_tick() {
        let mut rtt = rtt(100, 0, Estimator::Exact);
        samples(&mut rtt, 200, 640);
        assert_eq!(rtt.smoothed(), Some(Duration::from_millis(640)));
        assert_eq!(rtt.rto(), Duration::from_millis(740));
    }

    #[test]
    fn ticks_keep_half_a_tick_of_variance_on_a_path_shorter_than_a_tick() {
        let mut rtt = rtt(100, 200, Estimator::Ticks);
        samples(&mut rtt, 50, 20);
        assert_eq!(rtt.smoothed(), Some(Duration::from_millis(100)));
        assert_eq!(rtt.rto(), Duration::from_millis(300));
    }

    #[test]
    fn ticks_round_a_long_round_trip_to_the_clock() {
        let mut rtt = rtt(100, 200, Estimator::Ticks);
        samples(&mut rtt, 1, 640);
        // Six ticks, and a variance of half of it times four.
        assert_eq!(rtt.rto(), Duration::from_millis(1800));
    }

    #[test]
    fn tahoe_adds_two_deviations_to_the_ticks_of_a_round_trip() {
        let mut rtt = rtt(500, 0, Estimator::Tahoe);
        let millis = Duration::from_millis;
        // From 0 to 1.6 s there are three ticks; with that at the start, and half of it times two.
        rtt.sample(Time::ZERO + millis(1600), Time::ZERO);
        assert_eq!(rtt.rto(), millis(4000));
        // Of round trips between two ticks nothing is seen. The scaled integers end at 7 and 3, from
        // which a shift by three and by two takes nothing.
        for _ in 0..100 {
            rtt.sample(Time::ZERO + millis(400), Time::ZERO + millis(100));
        }
        assert_eq!(rtt.rto(), millis(1000));
    }

    #[test]
    fn tahoes_back_off_begins_below_the_lower_bound() {
        let mut rtt = rtt(500, 3000, Estimator::Tahoe);
        let millis = Duration::from_millis;
        rtt.sample(Time::ZERO + millis(400), Time::ZERO + millis(100));
        let mut timeouts = Vec::new();
        for _ in 0..4 {
            timeouts.push(rtt.rto());
            rtt.back_off();
        }
        // One tick, and half of it times two.
        assert_eq!(timeouts, [3000, 3000, 4000, 8000].map(millis));
    }

    #[test]
    fn tahoes_timers_expire_with_a_tick() {
        let rtt = rtt(500, 1000, Estimator::Tahoe);
        let millis = Duration::from_millis;
        assert_eq!(rtt.rto(), millis(1000)); // Before a sample, as is set.
        for (now, expiry) in [(0, 1000), (1, 1000), (499, 1000), (500, 1500), (1234, 2000)] {
            assert_eq!(rtt.expiry(Time::ZERO + millis(now)), Time::ZERO + millis(expiry));
        }
    }

    #[test]
    fn back_off_doubles_up_to_the_maximum_and_ends_with_a_sample() {
        let mut rtt = rtt(1, 1000, Estimator::Exact);
        rtt.back_off();
        assert_eq!(rtt.rto(), Duration::from_secs(2));
        for _ in 0..100 {
            rtt.back_off();
        }
        assert_eq!(rtt.rto(), Duration::from_secs(60));
        samples(&mut rtt, 1, 10);
        assert_eq!(rtt.rto(), Duration::from_secs(1));
    }
}
