//! When a link is down.

use crate::Intervals;
use base::{Duration, Random, Time};

/// The times at which both directions of a link are down.
#[derive(Clone, Debug, PartialEq)]
pub enum Outages {
    /// In these intervals.
    At(Intervals<()>),
    /// At random: the link is up and down in turns, each for an exponential time of at least a
    /// nanosecond. It begins up.
    Random {
        /// The mean time up.
        up: Duration,
        /// The mean time down.
        down: Duration,
    },
}

/// The process of [`Outages`].
#[derive(Clone, Debug)]
pub struct OutageProcess {
    outages: Outages,
    up: bool,
    next: Time,
    random: Random,
}

impl OutageProcess {
    /// The process from time zero on.
    #[must_use]
    pub fn new(outages: &Outages, random: Random) -> OutageProcess {
        let (outages, next) = (outages.clone(), Time::ZERO);
        let mut process = OutageProcess { outages, up: false, next, random };
        process.advance();
        process
    }

    /// Whether the link is up.
    #[must_use]
    pub fn is_up(&self) -> bool {
        self.up
    }

    /// When [`OutageProcess::advance`] is due.
    #[must_use]
    pub fn next_change(&self) -> Time {
        self.next
    }

    /// Advances to [`OutageProcess::next_change`]. The state may be the same as before.
    pub fn advance(&mut self) {
        match &self.outages {
            Outages::At(intervals) => {
                let (down, until) = intervals.at(self.next);
                (self.up, self.next) = (down.is_none(), until);
            }
            Outages::Random { up, down } => {
                self.up = !self.up;
                let mean = if self.up { *up } else { *down };
                self.next += self.random.exponential_span(mean).max(Duration::from_nanos(1));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Interval;
    use base::Seed;

    fn process(outages: Outages) -> OutageProcess {
        OutageProcess::new(&outages, Seed(4).stream("outages"))
    }

    #[test]
    fn a_list_is_followed() {
        let (start, end) = (Duration::from_secs(10), Duration::from_secs(12));
        let intervals = Intervals::new([Interval { start, end, value: () }], None).unwrap();
        let mut process = process(Outages::At(intervals));
        assert!(process.is_up());
        assert_eq!(process.next_change(), Time::ZERO + start);
        process.advance();
        assert!(!process.is_up());
        assert_eq!(process.next_change(), Time::ZERO + end);
        process.advance();
        assert!(process.is_up());
        assert_eq!(process.next_change(), Time::NEVER);
    }

    #[test]
    fn random_outages_have_their_means() {
        let (up, down) = (Duration::from_secs(8), Duration::from_millis(500));
        let mut process = process(Outages::Random { up, down });
        assert!(process.is_up());
        let mut spans = [0.0, 0.0];
        let mut last = Time::ZERO;
        for turn in 0..40_000 {
            assert_eq!(process.is_up(), turn % 2 == 0);
            spans[turn % 2] += process.next_change().since(last).as_secs_f64();
            last = process.next_change();
            process.advance();
        }
        let [up, down] = spans.map(|span| span / 20_000.0);
        assert!((up - 8.0).abs() < 0.2 && (down - 0.5).abs() < 0.0125, "{up} {down}");
    }
}
