//! Histograms of bounded size.

use serde::{Deserialize, Serialize};

/// Counts of values in buckets: quantiles of any number of values.
///
/// A quantile is off by a thousandth of itself at most, and exact below 1024. A value takes some
/// ten instructions, and memory only if it is less than all before it, or larger. Values are below
/// 2^63.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quantiles {
    /// The bucket of the first of `counts`.
    first: u32,
    /// The counts of the buckets from that of the least value above 0 to that of the largest.
    counts: Vec<u64>,
    /// The number of values that are 0.
    zeros: u64,
}

/// Every power of two is divided into 2^9 buckets.
const BITS: u32 = 9;

/// The bits of a 32-bit float's fraction that its bucket does not depend on.
const SHIFT: u32 = f32::MANTISSA_DIGITS - 1 - BITS;

/// The bucket of a value: exponent and upper bits of the fraction of a float.
#[inline]
fn bucket(value: u64) -> u32 {
    // Below 2^63, a signed number takes less to convert.
    (value as i64 as f32).to_bits() >> SHIFT
}

/// The value in the middle of a bucket.
fn middle(bucket: u32) -> u64 {
    let least = |bucket: u32| f32::from_bits(bucket << SHIFT).ceil() as u64;
    let (first, next) = (least(bucket), least(bucket + 1));
    first + next.saturating_sub(first + 1) / 2
}

impl Quantiles {
    /// Counts a value.
    #[inline]
    pub fn record(&mut self, value: u64) {
        self.add(bucket(value), 1);
    }

    #[inline]
    fn add(&mut self, bucket: u32, more: u64) {
        match self.counts.get_mut(bucket.wrapping_sub(self.first) as usize) {
            Some(count) => *count += more,
            None => self.add_outside(bucket, more),
        }
    }

    /// The same for a bucket outside of `counts`.
    #[cold]
    fn add_outside(&mut self, bucket: u32, more: u64) {
        if bucket == 0 {
            self.zeros += more;
            return;
        }
        if self.counts.is_empty() {
            self.first = bucket;
        }
        let before = self.first.saturating_sub(bucket);
        self.counts.splice(..0, core::iter::repeat_n(0, before as usize));
        self.first -= before;
        let index = (bucket - self.first) as usize;
        self.counts.resize(self.counts.len().max(index + 1), 0);
        self.counts[index] += more;
    }

    /// Counts so many values of 0.
    pub fn record_zeros(&mut self, count: u64) {
        self.zeros += count;
    }

    /// Counts all values of another.
    pub fn merge(&mut self, other: &Quantiles) {
        self.zeros += other.zeros;
        for (bucket, &count) in (other.first..).zip(&other.counts).filter(|(_, count)| **count > 0)
        {
            self.add(bucket, count);
        }
    }

    /// The number of values.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.zeros + self.counts.iter().sum::<u64>()
    }

    /// The values that were counted, each to a thousandth, and how often; from the least on.
    pub fn counts(&self) -> impl Iterator<Item = (u64, u64)> {
        let buckets = (self.first..).zip(&self.counts);
        let buckets = buckets.map(|(bucket, &count)| (middle(bucket), count));
        core::iter::once((0, self.zeros)).chain(buckets).filter(|(_, count)| *count > 0)
    }

    /// The mean of the values, to a thousandth; `None` without any.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        let count = self.count();
        let sum: f64 = self.counts().map(|(value, count)| value as f64 * count as f64).sum();
        (count > 0).then(|| sum / count as f64)
    }

    /// The smallest value such that the share `q` of all, 0 to 1, is no larger; `None` without any.
    #[must_use]
    pub fn quantile(&self, q: f64) -> Option<u64> {
        let count = self.count();
        let rank = ((q * count as f64).ceil() as u64).clamp(1, count.max(1));
        let mut below = self.zeros;
        if below >= rank {
            return Some(0);
        }
        let mut buckets = (self.first..).zip(&self.counts);
        let bucket = buckets.find(|(_, count)| {
            below += **count;
            below >= rank
        });
        bucket.map(|(bucket, _)| middle(bucket))
    }
}

/// [`Quantiles`] with the exact mean, least and largest of the values.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Histogram {
    count: u64,
    sum: u128,
    least: u64,
    largest: u64,
    quantiles: Quantiles,
}

impl Default for Histogram {
    /// Without a value.
    fn default() -> Histogram {
        let quantiles = Quantiles::default();
        Histogram { count: 0, sum: 0, least: u64::MAX, largest: 0, quantiles }
    }
}

impl Histogram {
    /// Counts a value.
    pub fn record(&mut self, value: u64) {
        self.count += 1;
        self.sum += u128::from(value);
        self.least = self.least.min(value);
        self.largest = self.largest.max(value);
        self.quantiles.record(value.min(i64::MAX as u64));
    }

    /// Counts all values of another.
    pub fn merge(&mut self, other: &Histogram) {
        self.count += other.count;
        self.sum += other.sum;
        self.least = self.least.min(other.least);
        self.largest = self.largest.max(other.largest);
        self.quantiles.merge(&other.quantiles);
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
        self.quantiles.quantile(q).map(|value| value.clamp(self.least, self.largest))
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
        for power in 0..63 {
            for offset in [0, 1, 12_345, 1 << 40] {
                let value = (1u64 << power).saturating_add(offset);
                let kept = middle(bucket(value));
                assert!(kept.abs_diff(value) <= value / 1000, "{value} became {kept}");
            }
        }
    }

    #[test]
    fn buckets_are_in_the_order_of_their_values() {
        let values =
            (0..64u32).flat_map(|power| (0..8).map(move |part| (1u64 << power) / 16 * part));
        let mut values: Vec<u64> = values.collect();
        values.sort_unstable();
        assert!(values.is_sorted_by_key(|&value| bucket(value)));
        // Below 512, buckets are not all used.
        let mut buckets = bucket(512)..=bucket(1 << 62);
        assert!(buckets.all(|number| bucket(middle(number)) == number));
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

    #[test]
    fn zeros_take_no_memory_and_count() {
        let mut quantiles = Quantiles::default();
        assert_eq!((quantiles.count(), quantiles.quantile(0.5)), (0, None));
        quantiles.record(1000);
        quantiles.record(0);
        quantiles.record_zeros(2);
        assert_eq!((quantiles.count(), quantiles.counts.len()), (4, 1));
        assert_eq!([0.75, 0.76].map(|q| quantiles.quantile(q)), [Some(0), Some(1000)]);
    }

    #[test]
    fn counts_are_those_of_each_value_in_order() {
        let mut quantiles = Quantiles::default();
        [7, 300, 0, 7, 1 << 40].iter().for_each(|&value| quantiles.record(value));
        let counts: Vec<_> = quantiles.counts().collect();
        assert_eq!(counts[..3], [(0, 1), (7, 2), (300, 1)]);
        assert_eq!(counts[3].1, 1);
        assert!(counts[3].0.abs_diff(1 << 40) <= (1 << 40) / 1000);
        let mean = quantiles.mean().unwrap();
        assert!((mean / ((314 + (1u64 << 40)) as f64 / 5.0) - 1.0).abs() < 0.001, "{mean}");
        assert_eq!(Quantiles::default().mean(), None);
    }

    #[test]
    fn the_order_of_values_does_not_matter() {
        let values = [5, 1 << 50, 7_000_000, 0, 300, 7_000_001, 5];
        let of = |values: &mut dyn Iterator<Item = &u64>| {
            let mut quantiles = Quantiles::default();
            values.for_each(|&value| quantiles.record(value));
            quantiles
        };
        assert_eq!(of(&mut values.iter()), of(&mut values.iter().rev()));
    }
}
