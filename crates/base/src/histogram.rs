//! Histograms of bounded size.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Counts of values in buckets: mean and quantiles of any number of values.
///
/// The mean, the least and the largest are exact; a quantile is off by a thousandth of itself at
/// most, and exact below 1024.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Histogram {
    count: u64,
    sum: u128,
    least: u64,
    largest: u64,
    /// Counts by the number of the bucket.
    buckets: BTreeMap<u16, u64>,
}

/// Every power of two is divided into 2^9 buckets.
const BITS: u32 = 9;

/// The bucket of a value.
fn bucket(value: u64) -> u16 {
    let shift = value.checked_ilog2().unwrap_or(0).saturating_sub(BITS);
    // The top bit of the rest counts as one more of `shift`.
    ((shift << BITS) + (value >> shift) as u32) as u16
}

/// The value in the middle of a bucket.
fn middle(bucket: u16) -> u64 {
    let bucket = u64::from(bucket);
    let shift = (bucket >> BITS).saturating_sub(1);
    let first = (bucket - (shift << BITS)) << shift;
    first + ((1 << shift) - 1) / 2
}

impl Histogram {
    /// Counts a value.
    pub fn record(&mut self, value: u64) {
        self.least = if self.count == 0 { value } else { self.least.min(value) };
        self.largest = self.largest.max(value);
        self.count += 1;
        self.sum += u128::from(value);
        *self.buckets.entry(bucket(value)).or_default() += 1;
    }

    /// Counts all values of another.
    pub fn merge(&mut self, other: &Histogram) {
        if other.count == 0 {
            return;
        }
        self.least = if self.count == 0 { other.least } else { self.least.min(other.least) };
        self.largest = self.largest.max(other.largest);
        self.count += other.count;
        self.sum += other.sum;
        for (bucket, count) in &other.buckets {
            *self.buckets.entry(*bucket).or_default() += count;
        }
    }

    /// The number of values.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Their mean; `None` without any.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum as f64 / self.count as f64)
    }

    /// The smallest value such that the share `q` of all, 0 to 1, is no larger; `None` without any.
    #[must_use]
    pub fn quantile(&self, q: f64) -> Option<u64> {
        let rank = ((q * self.count as f64).ceil() as u64).clamp(1, self.count.max(1));
        let mut below = 0;
        let bucket = self.buckets.iter().find(|(_, count)| {
            below += **count;
            below >= rank
        });
        bucket.map(|(bucket, _)| middle(*bucket).clamp(self.least, self.largest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_values_are_kept_as_they_are() {
        let mut histogram = Histogram::default();
        (1..=1000).rev().for_each(|value| histogram.record(value));
        assert_eq!((histogram.count(), histogram.mean()), (1000, Some(500.5)));
        let quantiles = [0.0, 0.001, 0.0011, 0.5, 0.95, 1.0].map(|q| histogram.quantile(q));
        assert_eq!(quantiles, [1, 1, 2, 500, 950, 1000].map(Some));
    }

    #[test]
    fn large_values_are_kept_to_a_thousandth() {
        for power in 0..64 {
            for offset in [0, 1, 12_345, 1 << 40] {
                let value = (1u64 << power).saturating_add(offset);
                let kept = middle(bucket(value));
                assert!(kept.abs_diff(value) <= value / 1000, "{value} became {kept}");
            }
        }
        assert_eq!(middle(bucket(u64::MAX)) >> 54, u64::MAX >> 54);
    }

    #[test]
    fn buckets_are_in_the_order_of_their_values() {
        let values =
            (0..64u32).flat_map(|power| (0..8).map(move |part| (1u64 << power) / 8 * part));
        let mut values: Vec<u64> = values.collect();
        values.sort_unstable();
        assert!(values.is_sorted_by_key(|&value| bucket(value)));
        assert!((0..bucket(u64::MAX)).all(|number| bucket(middle(number)) == number));
    }

    #[test]
    fn histograms_can_be_put_together() {
        let of = |values: &[u64]| {
            let mut histogram = Histogram::default();
            values.iter().for_each(|&value| histogram.record(value));
            histogram
        };
        let (few, more) = ([7, 9_000_000], [3, 5000, 12]);
        let mut all = of(&few);
        all.merge(&of(&more));
        all.merge(&Histogram::default());
        assert_eq!(all, of(&[&few[..], &more[..]].concat()));
    }

    #[test]
    fn equal_values_are_exact_however_large() {
        let mut histogram = Histogram::default();
        assert_eq!((histogram.mean(), histogram.quantile(0.5)), (None, None));
        (0..3).for_each(|_| histogram.record(123_456_789_012_345));
        assert_eq!(histogram.quantile(0.5), Some(123_456_789_012_345));
    }
}
