//! Time intervals with values.

use base::{Duration, Time};
use std::sync::Arc;
use thiserror::Error;

/// A value from `start` on, up to but without `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval<T> {
    /// Its beginning, from the start of the run or of the period.
    pub start: Duration,
    /// Its end.
    pub end: Duration,
    /// The value.
    pub value: T,
}

/// Disjoint intervals in order; once, or repeated in every period.
#[derive(Clone, Debug, PartialEq)]
pub struct Intervals<T> {
    list: Arc<[Interval<T>]>,
    period: Option<Duration>,
}

/// Why a list is not [`Intervals`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum IntervalError {
    /// An interval ends before it has begun.
    #[error("interval {index}: it ends at {end}: expected an end after its start, {start}")]
    Empty {
        /// Its place in the list, from 0.
        index: usize,
        /// Its start.
        start: Duration,
        /// Its end.
        end: Duration,
    },
    /// An interval starts before the one before it ends.
    #[error("interval {index}: it starts at {start}: expected {end}, the last one's end, or later")]
    Overlap {
        /// Its place in the list, from 0.
        index: usize,
        /// Its start.
        start: Duration,
        /// The end of the one before.
        end: Duration,
    },
    /// The period ends before the last interval.
    #[error(
        "a period of {period}: expected more than nothing, and no less than the last end, {end}"
    )]
    Period {
        /// The period.
        period: Duration,
        /// The end of the last interval.
        end: Duration,
    },
}

impl<T> Default for Intervals<T> {
    /// None.
    fn default() -> Intervals<T> {
        Intervals { list: Arc::new([]), period: None }
    }
}

impl<T> Intervals<T> {
    /// The intervals of `list`, which come again in every `period` if there is one.
    ///
    /// # Errors
    /// Intervals must not be empty, and each must start when or after the last one ends; the
    /// period must hold them all.
    pub fn new(
        list: impl IntoIterator<Item = Interval<T>>,
        period: Option<Duration>,
    ) -> Result<Intervals<T>, IntervalError> {
        let list: Arc<[_]> = list.into_iter().collect();
        let mut last = Duration::ZERO;
        for (index, &Interval { start, end, .. }) in list.iter().enumerate() {
            if start < last {
                return Err(IntervalError::Overlap { index, start, end: last });
            }
            if end <= start {
                return Err(IntervalError::Empty { index, start, end });
            }
            last = end;
        }
        match period {
            Some(period) if period < last || period == Duration::ZERO => {
                Err(IntervalError::Period { period, end: last })
            }
            _ => Ok(Intervals { list, period }),
        }
    }

    /// Values that hold from their times on, each until the next: the last until the end of the
    /// period, or for ever.
    ///
    /// # Errors
    /// Times must increase, and the period must be longer than the last.
    pub fn steps(
        list: impl IntoIterator<Item = (Duration, T)>,
        period: Option<Duration>,
    ) -> Result<Intervals<T>, IntervalError> {
        let mut list: Vec<_> = list
            .into_iter()
            .map(|(start, value)| Interval { start, end: period.unwrap_or(Duration::MAX), value })
            .collect();
        for index in 1..list.len() {
            list[index - 1].end = list[index].start;
        }
        Intervals::new(list, period)
    }

    /// The same intervals with other values.
    #[must_use]
    pub fn map<U>(&self, value: impl Fn(&T) -> U) -> Intervals<U> {
        let map = |interval: &Interval<T>| Interval {
            start: interval.start,
            end: interval.end,
            value: value(&interval.value),
        };
        Intervals { list: self.list.iter().map(map).collect(), period: self.period }
    }

    /// All values, in order.
    pub fn values(&self) -> impl Iterator<Item = &T> {
        self.list.iter().map(|interval| &interval.value)
    }

    /// The value at `at`, and until when it is certain; it may be the same afterwards.
    #[must_use]
    pub fn at(&self, at: Time) -> (Option<&T>, Time) {
        let nanos = at.as_nanos();
        let place = self.period.map_or(nanos, |period| nanos % period.as_nanos());
        let start = at - Duration::from_nanos(place);
        let next = self.list.partition_point(|interval| interval.end.as_nanos() <= place);
        match (self.list.get(next), self.list.first(), self.period) {
            (Some(interval), ..) if interval.start.as_nanos() <= place => {
                (Some(&interval.value), start + interval.end)
            }
            (Some(interval), ..) => (None, start + interval.start),
            (None, Some(first), Some(period)) => (None, start + period + first.start),
            (None, ..) => (None, Time::NEVER),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    fn list(spans: &[(u64, u64)]) -> Vec<Interval<usize>> {
        let interval = |(value, &(start, end))| Interval { start: ms(start), end: ms(end), value };
        spans.iter().enumerate().map(interval).collect()
    }

    fn at(intervals: &Intervals<usize>, millis: u64) -> (Option<usize>, Time) {
        let (value, until) = intervals.at(Time::ZERO + ms(millis));
        (value.copied(), until)
    }

    #[test]
    fn an_interval_holds_from_its_start_to_before_its_end() {
        let once = Intervals::new(list(&[(10, 20), (20, 30), (40, 50)]), None).unwrap();
        assert_eq!(at(&once, 9), (None, Time::ZERO + ms(10)));
        assert_eq!(at(&once, 10), (Some(0), Time::ZERO + ms(20)));
        assert_eq!(at(&once, 20), (Some(1), Time::ZERO + ms(30)));
        assert_eq!(at(&once, 30), (None, Time::ZERO + ms(40)));
        assert_eq!(at(&once, 50), (None, Time::NEVER));
        assert_eq!(at(&Intervals::default(), 0), (None, Time::NEVER));
    }

    #[test]
    fn a_period_brings_all_of_them_again() {
        let again = Intervals::new(list(&[(0, 20), (90, 100)]), Some(ms(100))).unwrap();
        assert_eq!(at(&again, 719), (Some(0), Time::ZERO + ms(720)));
        assert_eq!(at(&again, 720), (None, Time::ZERO + ms(790)));
        assert_eq!(at(&again, 790), (Some(1), Time::ZERO + ms(800)));
        let late = Intervals::new(list(&[(30, 40)]), Some(ms(100))).unwrap();
        assert_eq!(at(&late, 150), (None, Time::ZERO + ms(230)));
    }

    #[test]
    fn steps_hold_until_the_next() {
        let steps = |period| Intervals::steps([(ms(10), 0), (ms(30), 1)], period).unwrap();
        assert_eq!(at(&steps(None), 9), (None, Time::ZERO + ms(10)));
        assert_eq!(at(&steps(None), 29), (Some(0), Time::ZERO + ms(30)));
        assert_eq!(at(&steps(None), 1_000_000), (Some(1), Time::NEVER));
        assert_eq!(at(&steps(Some(ms(50))), 51), (None, Time::ZERO + ms(60)));
        assert!(Intervals::steps([(ms(10), 0), (ms(10), 1)], None).is_err());
    }

    #[test]
    fn what_makes_no_sense_is_refused_and_named() {
        let error = |spans: &[(u64, u64)], period: Option<u64>| {
            Intervals::new(list(spans), period.map(ms)).unwrap_err().to_string()
        };
        assert_eq!(
            error(&[(0, 10), (20, 20)], None),
            "interval 1: it ends at 0.02 s: expected an end after its start, 0.02 s"
        );
        assert_eq!(
            error(&[(0, 10), (9, 20)], None),
            "interval 1: it starts at 0.009 s: expected 0.01 s, the last one's end, or later"
        );
        assert_eq!(
            error(&[(0, 10)], Some(9)),
            "a period of 0.009 s: expected more than nothing, and no less than the last end, 0.01 s"
        );
    }
}
