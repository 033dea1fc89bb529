//! The rate limit of reprobes (`koutsianas2007` §3.6).

use base::{Duration, Time};
use serde::{Deserialize, Serialize};

/// At most one reprobe in [`Limit::ROUND_TRIPS`] round trips, and [`Limit::A_MINUTE`] a minute.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) struct Limit {
    /// The times of the last reprobes, the latest last.
    last: [Option<Time>; Limit::A_MINUTE],
    /// The round-trip time known before the last reprobe.
    round_trip: Option<Duration>,
}

impl Limit {
    const ROUND_TRIPS: u64 = 10;
    const A_MINUTE: usize = 4;
    const MINUTE: Duration = Duration::from_secs(60);
    /// The round-trip time before the first sample.
    const UNKNOWN: Duration = Duration::from_secs(1);

    /// Whether a reprobe is allowed now; if so, it is counted.
    pub(super) fn allows(&mut self, now: Time, srtt: Option<Duration>) -> bool {
        // A reprobe discards the round-trip time: the one before it is used.
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
