//! How often the path may be probed anew (`koutsianas2007` §3.6).

use base::{Duration, Time};
use serde::{Deserialize, Serialize};

/// At most one in so many round trips, and so many a minute.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) struct Limit {
    /// When the last ones were, the latest last.
    last: [Option<Time>; Limit::A_MINUTE],
    /// The round trip that was known before the last.
    round_trip: Option<Duration>,
}

impl Limit {
    const ROUND_TRIPS: u64 = 10;
    const A_MINUTE: usize = 4;
    const MINUTE: Duration = Duration::from_secs(60);
    /// Stands for a round trip that was never measured.
    const UNKNOWN: Duration = Duration::from_secs(1);

    /// Whether one more is allowed now; it is counted if so.
    pub(super) fn allows(&mut self, now: Time, srtt: Option<Duration>) -> bool {
        // Probing forgets the round trip: what was known before it still says how long one is.
        self.round_trip = srtt.or(self.round_trip);
        let gap = self.round_trip.unwrap_or(Limit::UNKNOWN) * Limit::ROUND_TRIPS;
        let within = |at: Option<Time>, span| at.is_some_and(|at| now.since(at) < span);
        if within(self.last[Limit::A_MINUTE - 1], gap) || within(self.last[0], Limit::MINUTE) {
            return false;
        }
        self.last.rotate_left(1);
        self.last[Limit::A_MINUTE - 1] = Some(now);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Time {
        Time::ZERO + Duration::from_millis(millis)
    }

    const RTT: Option<Duration> = Some(Duration::from_millis(100));

    #[test]
    fn one_in_ten_round_trips_is_allowed_whatever_is_asked_between() {
        let mut limit = Limit::default();
        assert!(limit.allows(at(0), RTT));
        assert!((1..100).all(|n| !limit.allows(at(10 * n), None)), "the round trip is remembered");
        assert!(limit.allows(at(1000), None));
    }

    #[test]
    fn four_a_minute_are_allowed() {
        let mut limit = Limit::default();
        let allowed = (0..120).filter(|&second| limit.allows(at(1000 * second), RTT));
        assert_eq!(allowed.collect::<Vec<_>>(), [0, 1, 2, 3, 60, 61, 62, 63]);
    }

    #[test]
    fn before_the_first_round_trip_a_second_stands_for_it() {
        let mut limit = Limit::default();
        assert!(limit.allows(at(0), None));
        assert!(!limit.allows(at(9_999), None));
        assert!(limit.allows(at(10_000), None));
    }
}
