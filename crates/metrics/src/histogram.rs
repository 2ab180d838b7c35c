//! A log-linear histogram of integers, after Tene's HdrHistogram: every octave is divided into 256
//! equal buckets, so a value is known within 1/256 (0.39 %) of itself. Values below 512 are exact.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

/// Bits of a value that are kept below its leading one.
const PRECISION: u32 = 8;

/// Counts values; fixed memory for a given largest value (47 kB for a second in nanoseconds).
#[derive(Clone, Debug)]
pub struct Histogram {
    counts: Vec<u64>,
    count: u64,
    sum: u128,
    min: u64,
    max: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { counts: Vec::new(), count: 0, sum: 0, min: u64::MAX, max: 0 }
    }
}

impl Histogram {
    pub fn new() -> Self {
        Self::default()
    }

    #[inline]
    pub fn record(&mut self, value: u64) {
        let index = bucket(value);
        match self.counts.get_mut(index) {
            Some(count) => *count += 1,
            None => self.grow(index),
        }
        self.count += 1;
        self.sum += u128::from(value);
        if value < self.min {
            self.min = value;
        }
        if value > self.max {
            self.max = value;
        }
    }

    /// Counts all of `values`, of which `summary` is the summary; less work than one by one.
    pub(crate) fn record_all(&mut self, values: &[u64], summary: &Summary) {
        if values.is_empty() {
            return;
        }
        let (first, last) = (bucket(summary.min), bucket(summary.max));
        self.reach(last);
        let octave = octave(summary.min);
        if octave == self::octave(summary.max) {
            // The usual case; then the bucket need not be found for each value.
            let counts = &mut self.counts[first..=last];
            let least = summary.min >> octave;
            for value in values {
                counts[((value >> octave) - least) as usize] += 1;
            }
        } else {
            values.iter().for_each(|value| self.counts[bucket(*value)] += 1);
        }
        self.count += summary.count;
        self.sum += summary.sum;
        self.min = self.min.min(summary.min);
        self.max = self.max.max(summary.max);
    }

    /// Counts `value` so many times.
    pub(crate) fn record_times(&mut self, value: u64, times: u64) {
        if times == 0 {
            return;
        }
        let index = bucket(value);
        self.reach(index);
        self.counts[index] += times;
        self.count += times;
        self.sum += u128::from(value) * u128::from(times);
        self.min = self.min.min(value);
        self.max = self.max.max(value);
    }

    /// Makes room for a bucket that was never used and counts one value in it.
    #[cold]
    #[inline(never)]
    fn grow(&mut self, index: usize) {
        self.reach(index);
        self.counts[index] += 1;
    }

    /// Makes room for a bucket: to the end of the octave, so that it grows at most once an octave.
    fn reach(&mut self, index: usize) {
        if index >= self.counts.len() {
            self.counts.resize((index | ((1 << PRECISION) - 1)) + 1, 0);
        }
    }

    /// Forgets every value and keeps the memory.
    pub fn clear(&mut self) {
        self.counts.fill(0);
        *self = Self { counts: core::mem::take(&mut self.counts), ..Self::default() };
    }

    pub const fn count(&self) -> u64 {
        self.count
    }

    pub const fn sum(&self) -> u128 {
        self.sum
    }

    /// The counts, without the empty ends.
    pub fn distribution(&self) -> Distribution {
        if self.count == 0 {
            return Distribution::default();
        }
        let (first, last) = (bucket(self.min), bucket(self.max));
        Distribution {
            first,
            counts: self.counts[first..=last].into(),
            count: self.count,
            sum: self.sum,
            min: self.min,
            max: self.max,
        }
    }
}

/// What several values have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Summary {
    pub(crate) count: u64,
    pub(crate) sum: u128,
    pub(crate) min: u64,
    pub(crate) max: u64,
}

impl Summary {
    pub(crate) const NOTHING: Self = Self { count: 0, sum: 0, min: u64::MAX, max: 0 };

    pub(crate) fn of_one(value: u64) -> Self {
        Self { count: 1, sum: u128::from(value), min: value, max: value }
    }

    pub(crate) fn of(values: &[u64]) -> Self {
        let (mut sum, mut min, mut max) = (0u64, u64::MAX, 0);
        for value in values {
            sum = sum.wrapping_add(*value);
            min = min.min(*value);
            max = max.max(*value);
        }
        let count = values.len() as u64;
        let sum = match max.checked_mul(count) {
            Some(_) => u128::from(sum),
            None => values.iter().map(|value| u128::from(*value)).sum(),
        };
        Self { count, sum, min, max }
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.sum += other.sum;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }
}

/// A finished [`Histogram`]. Least, largest, sum and count are exact.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Distribution {
    /// Bucket that `counts` begins with; the last one is that of the largest value.
    first: usize,
    counts: Box<[u64]>,
    count: u64,
    sum: u128,
    min: u64,
    max: u64,
}

impl Distribution {
    pub const fn count(&self) -> u64 {
        self.count
    }

    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub const fn sum(&self) -> u128 {
        self.sum
    }

    pub fn min(&self) -> Option<u64> {
        (!self.is_empty()).then_some(self.min)
    }

    pub fn max(&self) -> Option<u64> {
        (!self.is_empty()).then_some(self.max)
    }

    pub fn mean(&self) -> Option<f64> {
        (!self.is_empty()).then(|| self.sum as f64 / self.count as f64)
    }

    /// The quantile `q` in [0, 1], interpolated between neighbouring ranks as
    /// [`stats::quantile`](crate::stats::quantile) does; within 1/256 of the exact one.
    pub fn quantile(&self, q: f64) -> Option<f64> {
        if self.is_empty() {
            return None;
        }
        let rank = q.clamp(0.0, 1.0) * (self.count - 1) as f64;
        let below = rank as u64;
        let low = self.at_rank(below);
        let fraction = rank - below as f64;
        if fraction <= 0.0 {
            return Some(low);
        }
        Some(low + fraction * (self.at_rank(below + 1) - low))
    }

    /// The share of values that are at most `value`; values inside a bucket are taken as evenly
    /// spread.
    pub fn share_at_most(&self, value: u64) -> f64 {
        if self.is_empty() || value < self.min {
            return 0.0;
        }
        if value >= self.max {
            return 1.0;
        }
        let at = bucket(value) - self.first;
        let below: u64 = self.counts[..at].iter().sum();
        let (low, width) = bounds(self.first + at);
        let inside = self.counts[at] as f64 * ((value - low + 1) as f64 / width as f64);
        (below as f64 + inside) / self.count as f64
    }

    /// The occupied buckets in ascending order: smallest value, largest value, count.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64, u64)> + '_ {
        self.counts.iter().enumerate().filter(|(_, count)| **count > 0).map(|(at, count)| {
            let (low, width) = bounds(self.first + at);
            (low.max(self.min), (low + (width - 1)).min(self.max), *count)
        })
    }

    /// Adds what another one counted, for example of another run.
    pub fn merge(&mut self, other: &Self) {
        if other.is_empty() {
            return;
        }
        if self.is_empty() {
            self.clone_from(other);
            return;
        }
        let first = self.first.min(other.first);
        let end = (self.first + self.counts.len()).max(other.first + other.counts.len());
        let mut counts = vec![0; end - first];
        for part in [&*self, other] {
            let from = part.first - first;
            for (sum, count) in counts[from..].iter_mut().zip(&part.counts) {
                *sum += count;
            }
        }
        *self = Self {
            first,
            counts: counts.into(),
            count: self.count + other.count,
            sum: self.sum + other.sum,
            min: self.min.min(other.min),
            max: self.max.max(other.max),
        };
    }

    /// The value of a rank counted from 0, as if the values of a bucket were evenly spread.
    fn at_rank(&self, rank: u64) -> f64 {
        if rank == 0 {
            return self.min as f64;
        }
        if rank + 1 >= self.count {
            return self.max as f64;
        }
        let mut before = 0;
        for (at, count) in self.counts.iter().enumerate() {
            if rank < before + count {
                let (low, width) = bounds(self.first + at);
                let place = ((rank - before) as f64 + 0.5) / *count as f64;
                let value = low as f64 + (width - 1) as f64 * place;
                return value.clamp(self.min as f64, self.max as f64);
            }
            before += count;
        }
        self.max as f64
    }
}

/// The bucket of a value: its octave above the precision, and its leading bits.
#[inline]
fn bucket(value: u64) -> usize {
    let octave = octave(value);
    ((u64::from(octave) << PRECISION) + (value >> octave)) as usize
}

/// How many bits of a value its bucket leaves out.
#[inline]
fn octave(value: u64) -> u32 {
    (value | (1 << PRECISION)).ilog2() - PRECISION
}

/// The smallest value of a bucket and how many integers it holds.
fn bounds(bucket: usize) -> (u64, u64) {
    let octave = (bucket >> PRECISION).saturating_sub(1);
    let leading = (bucket - (octave << PRECISION)) as u64;
    (leading << octave, 1 << octave)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::stats;

    fn of(values: &[u64]) -> Distribution {
        let mut histogram = Histogram::new();
        values.iter().for_each(|value| histogram.record(*value));
        histogram.distribution()
    }

    #[test]
    fn buckets_join_without_gap_or_overlap() {
        let mut next = 0;
        for index in 0..bucket(u64::MAX) {
            let (low, width) = bounds(index);
            assert_eq!(low, next);
            assert_eq!((bucket(low), bucket(low + width - 1)), (index, index));
            assert!(width == 1 || width as f64 / low as f64 <= 1.0 / 256.0);
            next = low + width;
        }
    }

    #[test]
    fn small_values_are_exact() {
        let distribution = of(&[10, 20, 30, 40, 511]);
        assert_eq!(distribution.quantile(0.5), Some(30.0));
        assert_eq!(distribution.quantile(0.25), Some(20.0));
        assert_eq!(distribution.mean(), Some(122.2));
    }

    #[test]
    fn nothing_counted_has_no_quantile() {
        let empty = Distribution::default();
        assert_eq!((empty.quantile(0.5), empty.mean(), empty.min()), (None, None, None));
        assert_eq!(empty.share_at_most(5), 0.0);
    }

    #[test]
    fn many_at_once_are_counted_as_one_by_one() {
        let values: Vec<u64> = (0..1000).map(|value| value * value).collect();
        let mut histogram = Histogram::new();
        for some in values.chunks(77) {
            histogram.record_all(some, &Summary::of(some));
        }
        histogram.record_times(7, 3);
        histogram.record_times(u64::MAX, 0);
        let one_by_one: Vec<u64> = values.into_iter().chain([7; 3]).collect();
        assert_eq!(histogram.distribution(), of(&one_by_one));
    }

    #[test]
    fn clearing_leaves_no_trace() {
        let mut histogram = Histogram::new();
        (0..1000).for_each(|value| histogram.record(value * 977));
        histogram.clear();
        assert!(histogram.distribution().is_empty());
        histogram.record(7);
        assert_eq!(histogram.distribution(), of(&[7]));
    }

    fn values() -> impl Strategy<Value = Vec<u64>> {
        // Every order of magnitude, many of them equal or near each other.
        let value = prop_oneof![0u64..600, 1u64..1 << 40, 20_000_000u64..21_000_000, any::<u64>()];
        prop::collection::vec(value, 1..300)
    }

    proptest! {
        #[test]
        fn quantiles_are_within_a_256th_of_the_exact_ones(values in values(), q in 0.0..=1.0f64) {
            let exact: Vec<f64> = values.iter().map(|value| *value as f64).collect();
            let exact = stats::quantile(&exact, q).expect("not empty");
            let near = of(&values).quantile(q).expect("not empty");
            prop_assert!((near - exact).abs() <= exact * (1.0 / 256.0 + 1e-9), "{near} {exact}");
        }

        #[test]
        fn least_largest_sum_and_count_are_exact(values in values()) {
            let distribution = of(&values);
            prop_assert_eq!(distribution.min(), values.iter().copied().min());
            prop_assert_eq!(distribution.max(), values.iter().copied().max());
            prop_assert_eq!(distribution.sum(), values.iter().map(|v| u128::from(*v)).sum());
            prop_assert_eq!(distribution.count(), values.len() as u64);
            prop_assert_eq!(distribution.buckets().map(|(_, _, n)| n).sum::<u64>(), values.len() as u64);
        }

        #[test]
        fn merging_is_counting_together(left in values(), right in values()) {
            let mut merged = of(&left);
            merged.merge(&of(&right));
            let both: Vec<u64> = left.iter().chain(&right).copied().collect();
            prop_assert_eq!(merged, of(&both));
        }

        #[test]
        fn the_share_below_a_quantile_is_near_the_quantile(values in values(), q in 0.0..=1.0f64) {
            let distribution = of(&values);
            let value = distribution.quantile(q).expect("not empty");
            let share = distribution.share_at_most((value as u64).saturating_add(value as u64 / 128 + 1));
            prop_assert!(share + 1.5 / values.len() as f64 >= q, "{share} {q}");
        }
    }
}
