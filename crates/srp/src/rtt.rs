//! Round trips, and the timeout that follows from them (RFC 6298).

use base::{Duration, Time};
use serde::{Deserialize, Serialize};

/// Estimates of the round trip. Each sample is of one copy of a segment, which the SACK names, so that
/// retransmissions give samples, too.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Rtt {
    smoothed: Option<Duration>,
    deviation: Duration,
    latest: Duration,
    /// The shortest of the present span of time and of the one before.
    shortest: [Duration; 2],
    span_ends: Time,
    /// When the present path began, and whether `smoothed` is of it.
    path_began: Time,
    is_of_path: bool,
    /// Timeouts since the last sign of the peer.
    backoff: u32,
    initial: Duration,
    margin: Duration,
}

impl Rtt {
    /// How long a shortest round trip counts, once or twice: another path may have followed.
    const SPAN: Duration = Duration::from_secs(10);
    /// The timeout is doubled this often at most.
    const MOST_BACKOFF: u32 = 2;

    pub(crate) fn new(initial: Duration, margin: Duration) -> Rtt {
        Rtt {
            smoothed: None,
            deviation: Duration::ZERO,
            latest: Duration::ZERO,
            shortest: [Duration::MAX; 2],
            span_ends: Time::ZERO,
            path_began: Time::ZERO,
            is_of_path: true,
            backoff: 0,
            initial,
            margin,
        }
    }

    /// RFC 6298 §2.2, 2.3. What was sent on the path before is no sample.
    pub(crate) fn sample(&mut self, now: Time, rtt: Duration) {
        if now < self.path_began + rtt {
            return;
        }
        let smoothed = self.smoothed.filter(|_| self.is_of_path);
        self.deviation = match smoothed {
            Some(smoothed) => self.deviation / 4 * 3 + smoothed.abs_diff(rtt) / 4,
            None => rtt / 2,
        };
        self.smoothed = Some(smoothed.map_or(rtt, |smoothed| smoothed / 8 * 7 + rtt / 8));
        self.is_of_path = true;
        self.latest = rtt;
        if now >= self.span_ends {
            self.shortest = [self.shortest[1], Duration::MAX];
            self.span_ends = now + Rtt::SPAN;
        }
        self.shortest[1] = self.shortest[1].min(rtt);
    }

    pub(crate) fn smoothed(&self) -> Option<Duration> {
        self.smoothed
    }

    /// The last sample.
    pub(crate) fn latest(&self) -> Duration {
        self.latest
    }

    /// The shortest round trip of the last seconds: that without a queue.
    pub(crate) fn shortest(&self) -> Option<Duration> {
        let shortest = self.shortest[0].min(self.shortest[1]);
        (shortest < Duration::MAX).then_some(shortest)
    }

    /// The path has changed: nothing is known of its shortest round trip, and its first sample replaces the
    /// smoothed one. Until then the timeout is that of the path before.
    pub(crate) fn on_path_change(&mut self, now: Time) {
        self.shortest = [Duration::MAX; 2];
        (self.path_began, self.is_of_path) = (now, false);
        self.backoff = 0;
    }

    /// The present timeout.
    pub(crate) fn timeout(&self) -> Duration {
        let base = match self.smoothed {
            Some(smoothed) => smoothed + (self.deviation * 4).max(self.margin),
            None => self.initial,
        };
        base.max(Duration::from_micros(1)).doubled(self.backoff)
    }

    /// The timeout has passed.
    pub(crate) fn back_off(&mut self) {
        self.backoff = (self.backoff + 1).min(Rtt::MOST_BACKOFF);
    }

    /// The peer has answered.
    pub(crate) fn end_back_off(&mut self) {
        self.backoff = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_timeout_follows_the_round_trip_and_doubles_twice() {
        let millis = Duration::from_millis;
        let mut rtt = Rtt::new(millis(1000), millis(20));
        assert_eq!(rtt.timeout(), millis(1000));
        rtt.sample(Time::ZERO + millis(100), millis(100));
        assert_eq!(rtt.timeout(), millis(300));
        for doubled in [600, 1200, 1200] {
            rtt.back_off();
            assert_eq!(rtt.timeout(), millis(doubled));
        }
        rtt.end_back_off();
        for n in 0..200 {
            rtt.sample(Time::ZERO + millis(200 + n), millis(1));
        }
        assert_eq!(rtt.timeout(), millis(21));
    }

    #[test]
    fn the_first_round_trip_of_another_path_replaces_the_estimate() {
        let (at, millis) = (|ms| Time::ZERO + Duration::from_millis(ms), Duration::from_millis);
        let mut rtt = Rtt::new(millis(1000), millis(20));
        rtt.sample(at(600), millis(600));
        rtt.back_off();
        rtt.on_path_change(at(2000));
        assert_eq!((rtt.timeout(), rtt.shortest()), (millis(1800), None));
        // Sent before, and delayed by the handoff.
        rtt.sample(at(2020), millis(1500));
        assert_eq!((rtt.timeout(), rtt.shortest()), (millis(1800), None));
        rtt.sample(at(2020), millis(20));
        assert_eq!((rtt.smoothed(), rtt.timeout()), (Some(millis(20)), millis(60)));
        rtt.sample(at(2030), millis(28));
        assert_eq!(rtt.smoothed(), Some(millis(21)));
    }

    #[test]
    fn the_shortest_round_trip_is_forgotten_after_two_spans() {
        let (mut rtt, at) =
            (Rtt::new(Duration::ZERO, Duration::ZERO), |s| Time::ZERO + Duration::from_secs(s));
        let millis = Duration::from_millis;
        rtt.sample(at(1), millis(10));
        rtt.sample(at(2), millis(30));
        assert_eq!(rtt.shortest(), Some(millis(10)));
        rtt.sample(at(12), millis(30));
        assert_eq!(rtt.shortest(), Some(millis(10)));
        rtt.sample(at(23), millis(30));
        assert_eq!(rtt.shortest(), Some(millis(30)));
    }
}
