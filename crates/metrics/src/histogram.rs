//! A log-linear histogram of integers, after Tene's HdrHistogram: every octave is divided into 256
//! equal buckets, so a value is known within 1/256 (0.39 %) of itself. Values below 512 are exact.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

/// Bits of a value that are kept below its leading one.
const PRECISION: u32 = 8;

/// Counts values. As long as they are few it keeps the bucket of each, in 2 bytes; then it has a count for each bucket of every
/// octave from the least value to the largest, 2 KiB an octave.
#[derive(Clone, Debug)]
pub struct Histogram {
    /// The buckets of the values, until they are `most`.
    few: Vec<u16>,
    most: usize,
    /// Counts of the buckets from `first` on, which begins an octave.
    first: usize,
    counts: Vec<u64>,
    count: u64,
    sum: u128,
    min: u64,
    max: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self::keeping(Self::FEW)
    }
}

impl Histogram {
    /// Most values whose buckets are kept.
    const FEW: usize = 64;
    /// Most of them in one of thousands of histograms: they take as much memory as the counts of one octave, and more time than these.
    pub(crate) const FEW_OF_MANY: usize = 1024;
    /// So few are sorted in the end; to count more costs less.
    const SORTED: usize = 64;

    /// One that keeps the buckets of so many values before it counts.
    pub(crate) fn keeping(most: usize) -> Self {
        let (few, counts) = (Vec::new(), Vec::new());
        Self { few, most, first: 0, counts, count: 0, sum: 0, min: u64::MAX, max: 0 }
    }

    pub fn new() -> Self {
        Self::default()
    }

    #[inline]
    pub fn record(&mut self, value: u64) {
        self.count += 1;
        self.sum += u128::from(value);
        if value < self.min {
            self.min = value;
        }
        if value > self.max {
            self.max = value;
        }
        // At the end, so that nothing must be kept for after the call.
        let bucket = bucket(value);
        // Wraps to a number that is no position where the bucket comes before the first.
        match self.counts.get_mut(bucket.wrapping_sub(self.first)) {
            Some(count) => *count += 1,
            None => self.record_slowly(bucket, 1),
        }
    }

    /// Counts all of `values`, of which `summary` is the summary; less work than one by one.
    #[inline(always)]
    pub(crate) fn record_all(&mut self, values: &[u64], summary: &Summary) {
        if values.is_empty() {
            return;
        }
        let (first, last) = (bucket(summary.min), bucket(summary.max));
        // Wraps to what is no range where the first bucket comes before the first that has room.
        let range = first.wrapping_sub(self.first)..last.wrapping_sub(self.first).wrapping_add(1);
        let Some(counts) = self.counts.get_mut(range) else {
            self.record_all_slowly(values, summary);
            return;
        };
        let octave = octave(summary.min);
        if octave == self::octave(summary.max) {
            // The usual case; then the bucket need not be found for each value.
            let least = summary.min >> octave;
            for value in values {
                counts[((value >> octave) - least) as usize] += 1;
            }
        } else {
            values.iter().for_each(|value| counts[bucket(*value) - first] += 1);
        }
        self.take_in(summary);
    }

    /// Values whose buckets have no room yet.
    #[cold]
    #[inline(never)]
    fn record_all_slowly(&mut self, values: &[u64], summary: &Summary) {
        if self.counts.is_empty() && self.few.len() + values.len() <= self.most {
            self.few.extend(values.iter().map(|value| bucket(*value) as u16));
            self.take_in(summary);
            return;
        }
        self.count_few();
        self.reach(bucket(summary.min));
        self.reach(bucket(summary.max));
        values.iter().for_each(|value| self.counts[bucket(*value) - self.first] += 1);
        self.take_in(summary);
    }

    /// Counts `value` so many times.
    pub(crate) fn record_times(&mut self, value: u64, times: u64) {
        if times == 0 {
            return;
        }
        let bucket = bucket(value);
        match self.counts.get_mut(bucket.wrapping_sub(self.first)) {
            Some(count) => *count += times,
            None => self.record_slowly(bucket, times),
        }
        self.count += times;
        self.sum += u128::from(value) * u128::from(times);
        self.min = self.min.min(value);
        self.max = self.max.max(value);
    }

    fn take_in(&mut self, summary: &Summary) {
        self.count += summary.count;
        self.sum += summary.sum;
        self.min = self.min.min(summary.min);
        self.max = self.max.max(summary.max);
    }

    /// A value whose bucket has no room yet.
    #[inline(never)]
    fn record_slowly(&mut self, bucket: usize, times: u64) {
        if self.counts.is_empty() && times == 1 && self.few.len() < self.most {
            self.few.push(bucket as u16);
            return;
        }
        self.count_few();
        self.reach(bucket);
        self.counts[bucket - self.first] += times;
    }

    /// Counts the values that were kept while they were few.
    fn count_few(&mut self) {
        if self.few.is_empty() {
            return;
        }
        self.reach(bucket(self.min));
        self.reach(bucket(self.max));
        for bucket in core::mem::take(&mut self.few) {
            self.counts[usize::from(bucket) - self.first] += 1;
        }
    }

    /// Makes room for a bucket: for its whole octave, so that it grows at most once an octave.
    fn reach(&mut self, bucket: usize) {
        const OCTAVE: usize = 1 << PRECISION;
        let begins = bucket & !(OCTAVE - 1);
        if self.counts.is_empty() {
            self.first = begins;
        }
        if begins < self.first {
            let more = core::iter::repeat_n(0, self.first - begins);
            self.counts.splice(..0, more);
            self.first = begins;
        }
        let end = begins + OCTAVE - self.first;
        if end > self.counts.len() {
            self.counts.reserve_exact(end - self.counts.len());
            self.counts.resize(end, 0);
        }
    }

    /// Forgets every value and keeps the memory.
    pub fn clear(&mut self) {
        self.few.clear();
        self.counts.fill(0);
        let (few, counts) = (core::mem::take(&mut self.few), core::mem::take(&mut self.counts));
        *self = Self { few, first: self.first, counts, ..Self::keeping(self.most) };
    }

    pub const fn count(&self) -> u64 {
        self.count
    }

    pub const fn sum(&self) -> u128 {
        self.sum
    }

    /// What was counted, without the buckets that nothing was counted in.
    pub fn distribution(&self) -> Distribution {
        let mut counted = Counted::default();
        if self.few.len() <= Self::SORTED {
            counted.add_all(self.first, &self.counts);
            let mut buckets = self.few.clone();
            buckets.sort_unstable();
            let used = buckets.chunk_by(|one, next| one == next);
            used.for_each(|same| counted.add(usize::from(same[0]), same.len() as u64));
        } else {
            let (first, last) = (bucket(self.min), bucket(self.max));
            let mut counts = vec![0; last - first + 1];
            self.few.iter().for_each(|bucket| counts[usize::from(*bucket) - first] += 1);
            counted.add_all(first, &counts);
        }
        Distribution { counted: counted.0.into(), sum: self.sum, min: self.min, max: self.max }
    }
}

/// A bucket that has values, and how many it has with all before it, which is far below 2^48.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Bucket(u64);

impl Bucket {
    const COUNT_BITS: u32 = 48;

    /// A bucket's number has 14 bits.
    fn new(bucket: usize, so_far: u64) -> Self {
        Self((bucket as u64) << Self::COUNT_BITS | so_far)
    }

    fn number(self) -> usize {
        (self.0 >> Self::COUNT_BITS) as usize
    }

    fn so_far(self) -> u64 {
        self.0 & ((1 << Self::COUNT_BITS) - 1)
    }
}

/// Buckets that are added in ascending order.
#[derive(Default)]
struct Counted(Vec<Bucket>);

impl Counted {
    /// Those of `counts`, which begin with the bucket `first`, that are not 0.
    fn add_all(&mut self, first: usize, counts: &[u64]) {
        self.0.reserve_exact(counts.iter().filter(|count| **count > 0).count());
        for (bucket, count) in (first..).zip(counts) {
            if *count > 0 {
                self.add(bucket, *count);
            }
        }
    }

    fn add(&mut self, bucket: usize, count: u64) {
        let before = self.0.last().map_or(0, |last| last.so_far());
        self.0.push(Bucket::new(bucket, before + count));
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
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Distribution {
    /// The buckets that have values, in ascending order.
    counted: Box<[Bucket]>,
    sum: u128,
    min: u64,
    max: u64,
}

impl Default for Distribution {
    fn default() -> Self {
        Histogram::new().distribution()
    }
}

impl Distribution {
    pub fn count(&self) -> u64 {
        self.before(self.counted.len())
    }

    pub fn is_empty(&self) -> bool {
        self.counted.is_empty()
    }

    /// How many values are in the buckets before a place in the list.
    fn before(&self, place: usize) -> u64 {
        place.checked_sub(1).map_or(0, |last| self.counted[last].so_far())
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
        (!self.is_empty()).then(|| self.sum as f64 / self.count() as f64)
    }

    /// The quantile `q` in [0, 1], interpolated between neighbouring ranks as
    /// [`stats::quantile`](crate::stats::quantile) does; within 1/256 of the exact one.
    pub fn quantile(&self, q: f64) -> Option<f64> {
        if self.is_empty() {
            return None;
        }
        let rank = q.clamp(0.0, 1.0) * (self.count() - 1) as f64;
        let below = rank as u64;
        let place = self.counted.partition_point(|counted| counted.so_far() <= below);
        let low = self.at_rank(below, place);
        let fraction = rank - below as f64;
        if fraction <= 0.0 {
            return Some(low);
        }
        let is_in_next = below + 1 == self.counted[place].so_far();
        Some(low + fraction * (self.at_rank(below + 1, place + usize::from(is_in_next)) - low))
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
        let bucket = bucket(value);
        let at = self.counted.partition_point(|counted| counted.number() < bucket);
        let below = self.before(at);
        let here = self.counted.get(at).filter(|counted| counted.number() == bucket);
        let (low, width) = bounds(bucket);
        let count = here.map_or(0, |counted| counted.so_far() - below);
        let inside = count as f64 * ((value - low + 1) as f64 / width as f64);
        (below as f64 + inside) / self.count() as f64
    }

    /// The occupied buckets in ascending order: smallest value, largest value, count.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64, u64)> + '_ {
        self.numbered().map(|(bucket, count)| {
            let (low, width) = bounds(bucket);
            (low.max(self.min), (low + (width - 1)).min(self.max), count)
        })
    }

    /// The same buckets as they are numbered, with their counts.
    fn numbered(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        let mut before = 0;
        self.counted.iter().map(move |counted| {
            let count = counted.so_far() - core::mem::replace(&mut before, counted.so_far());
            (counted.number(), count)
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
        let mut both: Vec<(usize, u64)> = self.numbered().chain(other.numbered()).collect();
        both.sort_unstable_by_key(|(bucket, _)| *bucket);
        let mut merged = Counted::default();
        for same in both.chunk_by(|(one, _), (next, _)| one == next) {
            merged.add(same[0].0, same.iter().map(|(_, count)| count).sum());
        }
        *self = Self {
            counted: merged.0.into(),
            sum: self.sum + other.sum,
            min: self.min.min(other.min),
            max: self.max.max(other.max),
        };
    }

    /// The value of a rank counted from 0, of those that there are.
    pub(crate) fn of_rank(&self, rank: u64) -> f64 {
        self.at_rank(rank, self.counted.partition_point(|counted| counted.so_far() <= rank))
    }

    /// The value of a rank counted from 0, which is in the bucket at a place of the list, as if the values of a bucket
    /// were evenly spread.
    fn at_rank(&self, rank: u64, place: usize) -> f64 {
        if rank == 0 {
            return self.min as f64;
        }
        if rank + 1 >= self.count() {
            return self.max as f64;
        }
        let (before, counted) = (self.before(place), self.counted[place]);
        let (low, width) = bounds(counted.number());
        let share = ((rank - before) as f64 + 0.5) / (counted.so_far() - before) as f64;
        let value = low as f64 + (width - 1) as f64 * share;
        value.clamp(self.min as f64, self.max as f64)
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
    fn many_at_once_may_all_be_just_below_what_was_counted_before() {
        // More than are kept one by one, at the beginning of an octave, for which room is made as a whole.
        let above = [1024; Histogram::FEW + 1];
        let below = [1022; 2];
        assert_eq!(bucket(below[0]) + 1, bucket(above[0]));
        let mut histogram = Histogram::new();
        histogram.record_all(&above, &Summary::of(&above));
        histogram.record_all(&below, &Summary::of(&below));
        assert_eq!(histogram.distribution(), of(&[&above[..], &below].concat()));
    }

    #[test]
    fn many_at_once_are_counted_as_one_by_one() {
        let values: Vec<u64> = (0..3000).map(|value| value * value).collect();
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
        (0..3000).for_each(|value| histogram.record(value * 977));
        histogram.clear();
        assert!(histogram.distribution().is_empty());
        histogram.record(7);
        assert_eq!(histogram.distribution(), of(&[7]));
    }

    #[test]
    fn however_few_or_many_there_are_they_are_counted_alike() {
        for count in [1, 64, 65, 1024, 1025] {
            let values: Vec<u64> = (0..count).map(|value| value * 7919 % 100_000).collect();
            let [counted, kept] = [0, Histogram::FEW_OF_MANY].map(|most| {
                let mut histogram = Histogram::keeping(most);
                values.iter().for_each(|value| histogram.record(*value));
                histogram.distribution()
            });
            assert_eq!(kept, counted, "{count}");
        }
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
