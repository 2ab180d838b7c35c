//! Delays of a flow: their quantiles in each row of the time series, and their distribution.

use alloc::vec::Vec;

use crate::histogram::{Distribution, Histogram, Summary};

/// Delays in nanoseconds. They are collected in a batch and counted a batch at a time, which is less
/// work than one by one. The fields used for each come first.
#[derive(Clone, Debug)]
#[repr(C)]
pub(crate) struct Delays {
    /// The first `fresh` of these are not counted yet. Empty until the first delay comes.
    batch: Vec<u64>,
    fresh: usize,
    /// The summary of what was counted in this row.
    in_row: Summary,
    row: Row,
    whole: Histogram,
}

impl Delays {
    /// `whole` counts all of them.
    pub(crate) fn counted_by(whole: Histogram) -> Self {
        Self { batch: Vec::new(), fresh: 0, in_row: Summary::NOTHING, row: Row::default(), whole }
    }

    #[inline(always)]
    pub(crate) fn record(&mut self, delay: u64) {
        match self.batch.get_mut(self.fresh) {
            Some(slot) => {
                *slot = delay;
                self.fresh += 1;
            }
            None => self.record_first(delay),
        }
    }

    /// The batch is full, or not allocated yet: makes it longer, or counts it and begins the next one
    /// with `delay`.
    #[cold]
    #[inline(never)]
    fn record_first(&mut self, delay: u64) {
        let len = self.batch.len();
        if len < Row::MOST {
            self.batch.resize((2 * len).max(Row::MOST / 32), 0);
            self.batch[len] = delay;
            self.fresh = len + 1;
            return;
        }
        let summary = self.count();
        self.row.extend(&self.batch[..self.fresh], &summary);
        self.batch[0] = delay;
        self.fresh = 1;
    }

    fn count(&mut self) -> Summary {
        // With thousands of flows most rows of each have nothing.
        if self.fresh == 0 {
            return Summary::NOTHING;
        }
        let fresh = &self.batch[..self.fresh];
        let summary = Summary::of(fresh);
        self.whole.record_all(fresh, &summary);
        self.in_row.merge(&summary);
        summary
    }

    /// Ends the row: returns the summary of its delays, and quantiles as [`Row::close`] gives them.
    pub(crate) fn close_row<const N: usize>(
        &mut self,
        qs: [f64; N],
    ) -> (Summary, Option<[f64; N]>) {
        let summary = self.count();
        let fresh = &self.batch[..self.fresh];
        self.fresh = 0;
        // Most rows fit a batch.
        let quantiles = if self.row.is_empty() {
            quantiles(fresh, &summary, qs)
        } else {
            self.row.extend(fresh, &summary);
            self.row.close(qs)
        };
        (core::mem::replace(&mut self.in_row, Summary::NOTHING), quantiles)
    }

    /// Forgets the delays of the warm-up, which are in no distribution and no quantile.
    pub(crate) fn end_warmup(&mut self) {
        self.count();
        self.fresh = 0;
        self.row.clear();
        self.whole.clear();
    }

    pub(crate) fn distribution(mut self) -> Distribution {
        self.count();
        self.whole.distribution()
    }
}

/// The values of one row of a time series, for its quantiles. If there are many, every second one
/// is kept, then every fourth and so on: at least half of [`Row::MOST`], evenly spaced. The largest
/// is exact.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    values: Vec<u64>,
    /// One of this many values is kept.
    stride: usize,
    skipped: usize,
    /// Of all values.
    summary: Summary,
}

impl Default for Row {
    fn default() -> Self {
        Self { values: Vec::new(), stride: 1, skipped: 0, summary: Summary::NOTHING }
    }
}

impl Row {
    const MOST: usize = 512;

    pub(crate) fn record(&mut self, value: u64) {
        self.extend(&[value], &Summary::of_one(value));
    }

    /// Takes in `values`, of which `summary` is the summary.
    fn extend(&mut self, mut values: &[u64], summary: &Summary) {
        self.summary.merge(summary);
        if self.stride == 1 && self.values.len() + values.len() <= Self::MOST {
            self.values.extend_from_slice(values);
            return;
        }
        while let Some((_, [value, rest @ ..])) =
            values.split_at_checked(self.stride - 1 - self.skipped)
        {
            self.skipped = 0;
            self.keep(*value);
            values = rest;
        }
        self.skipped += values.len();
    }

    fn keep(&mut self, value: u64) {
        if self.values.len() == Self::MOST {
            for half in 0..Self::MOST / 2 {
                self.values[half] = self.values[2 * half];
            }
            self.values.truncate(Self::MOST / 2);
            self.stride *= 2;
        }
        self.values.push(value);
    }

    fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Ends the row: returns quantiles of the kept values, for `qs` in ascending order; 1 is the
    /// largest value of all. `None` without values.
    pub(crate) fn close<const N: usize>(&mut self, qs: [f64; N]) -> Option<[f64; N]> {
        let found = quantiles(&self.values, &self.summary, qs);
        self.clear();
        found
    }

    pub(crate) fn clear(&mut self) {
        self.values.clear();
        *self = Self { values: core::mem::take(&mut self.values), ..Self::default() };
    }
}

/// The values of `N` ranks in ascending order; 1 is the largest. `summary` may be of more values.
fn quantiles<const N: usize>(values: &[u64], summary: &Summary, qs: [f64; N]) -> Option<[f64; N]> {
    match values.len() {
        0 => None,
        1 => Some(qs.map(|q| if q >= 1.0 { summary.max as f64 } else { values[0] as f64 })),
        len if len <= FEW => Some(quantiles_of_few(values, summary, qs)),
        len if len <= 64 => Some(Bins::<64, 32>::quantiles(values, summary, qs)),
        _ => Some(Bins::<{ Row::MOST }, 128>::quantiles(values, summary, qs)),
    }
}

/// So few values take less work to sort than to put into bins.
const FEW: usize = 16;

#[inline(never)]
fn quantiles_of_few<const N: usize>(values: &[u64], summary: &Summary, qs: [f64; N]) -> [f64; N] {
    let mut sorted = [0; FEW];
    for (len, value) in values.iter().enumerate() {
        let mut place = len;
        while place > 0 && sorted[place - 1] > *value {
            sorted[place] = sorted[place - 1];
            place -= 1;
        }
        sorted[place] = *value;
    }
    let last = values.len() - 1;
    qs.map(|q| match q >= 1.0 {
        true => summary.max as f64,
        false => sorted[(q * last as f64 + 0.5) as usize] as f64,
    })
}

/// Up to `MOST` values sorted roughly: into bins of equal width, a power of two of them, each a chain
/// of positions. Only a bin in which a wanted rank lies is looked at more closely.
struct Bins<const MOST: usize, const BINS: usize> {
    counts: [u16; BINS],
    /// The newest value of each bin, and for each value the one before it in its bin.
    newest: [u16; BINS],
    before: [u16; MOST],
}

impl<const MOST: usize, const BINS: usize> Bins<MOST, BINS> {
    #[inline(never)]
    fn quantiles<const N: usize>(values: &[u64], summary: &Summary, qs: [f64; N]) -> [f64; N] {
        let mut bins = Self { counts: [0; BINS], newest: [0; BINS], before: [0; MOST] };
        bins.sort(values, summary);
        let last = values.len() - 1;
        let (mut bin, mut before) = (0, 0);
        qs.map(|q| {
            if q >= 1.0 {
                return summary.max as f64;
            }
            let rank = (q * last as f64 + 0.5) as usize;
            while before + bins.count(bin) <= rank {
                before += bins.count(bin);
                bin += 1;
            }
            bins.ranked(values, bin, rank - before) as f64
        })
    }

    #[inline(always)]
    fn sort(&mut self, values: &[u64], summary: &Summary) {
        let bits = (summary.max - summary.min).checked_ilog2().map_or(0, |log| log + 1);
        let shift = bits.saturating_sub(BINS.ilog2());
        for ((value, before), at) in values.iter().zip(&mut self.before).zip(0..) {
            let bin = ((value - summary.min) >> shift) as usize % BINS;
            self.counts[bin] += 1;
            *before = self.newest[bin];
            self.newest[bin] = at;
        }
    }

    #[inline(always)]
    fn count(&self, bin: usize) -> usize {
        usize::from(self.counts[bin % BINS])
    }

    /// The value of that rank within a bin.
    #[inline(always)]
    fn ranked(&self, values: &[u64], bin: usize, rank: usize) -> u64 {
        const FEW: usize = 16;
        if self.count(bin) > FEW {
            return self.ranked_of_many(values, bin, rank);
        }
        let mut sorted = [0; FEW];
        for (len, value) in self.chain(values, bin).enumerate() {
            let mut place = len;
            while place > 0 && sorted[place - 1] > value {
                sorted[place] = sorted[place - 1];
                place -= 1;
            }
            sorted[place] = value;
        }
        sorted[rank]
    }

    #[inline(never)]
    fn ranked_of_many(&self, values: &[u64], bin: usize, rank: usize) -> u64 {
        let mut chain: Vec<u64> = self.chain(values, bin).collect();
        *chain.select_nth_unstable(rank).1
    }

    /// The values of a bin.
    #[inline(always)]
    fn chain(&self, values: &[u64], bin: usize) -> impl Iterator<Item = u64> {
        let mut at = self.newest[bin];
        (0..self.counts[bin]).map(move |_| {
            let value = values[usize::from(at)];
            at = self.before[usize::from(at)];
            value
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn quantiles_of_a_row_are_of_that_row() {
        let mut row = Row::default();
        let mut of = |values: std::ops::Range<u64>| {
            values.rev().for_each(|value| row.record(value));
            row.close([0.0, 0.5, 1.0])
        };
        assert_eq!(of(0..0), None);
        assert_eq!(of(100..201), Some([100.0, 150.0, 200.0]));
        assert_eq!(of(10..31), Some([10.0, 20.0, 30.0]));
        assert_eq!(of(0..0), None);
        let [low, median, high] = of(0..1_000_000).expect("values");
        assert!(low < 5_000.0 && (median - 500_000.0).abs() < 5_000.0, "{low} {median}");
        assert_eq!(high, 999_999.0);
        assert_eq!(of(7..8), Some([7.0; 3]));
    }

    fn delay() -> impl Strategy<Value = u64> {
        prop_oneof![0u64..20, 20_000_000u64..21_000_000, 1u64..1 << 40, any::<u64>()]
    }

    /// As [`Row`] is described, one value after the other.
    fn kept(values: &[u64]) -> Vec<u64> {
        let (mut kept, mut stride) = (Vec::new(), 1);
        let mut waiting = 0;
        for value in values {
            waiting += 1;
            if waiting < stride {
                continue;
            }
            waiting = 0;
            if kept.len() == Row::MOST {
                kept = kept.into_iter().step_by(2).collect();
                stride *= 2;
            }
            kept.push(*value);
        }
        kept
    }

    proptest! {
        #[test]
        fn quantiles_are_those_of_sorted_values(
            values in prop::collection::vec(delay(), 0..=Row::MOST),
            mut qs in [0.0..=1.0f64, 0.0..=1.0f64, 0.0..=1.0f64],
        ) {
            qs.sort_by(f64::total_cmp);
            let mut sorted = values.clone();
            sorted.sort_unstable();
            let exact = sorted.last().map(|max| {
                qs.map(|q| match q {
                    1.0 => *max as f64,
                    _ => sorted[(q * (sorted.len() - 1) as f64 + 0.5) as usize] as f64,
                })
            });
            prop_assert_eq!(quantiles(&values, &Summary::of(&values), qs), exact);
        }

        /// However many rows and however long, and wherever the warm-up ends.
        #[test]
        fn delays_are_counted_as_if_one_by_one(
            rows in prop::collection::vec(prop::collection::vec(delay(), 0..1800), 1..4),
            warm_after in prop::collection::vec(0usize..1800, 0..2),
        ) {
            let mut delays = Delays::counted_by(Histogram::new());
            let mut counted = Vec::new();
            for (index, row) in rows.iter().enumerate() {
                let mut of_quantiles = &row[..];
                for (at, value) in row.iter().enumerate() {
                    if index == 0 && warm_after.contains(&at) {
                        delays.end_warmup();
                        counted.clear();
                        of_quantiles = &row[at..];
                    }
                    delays.record(*value);
                    counted.push(*value);
                }
                let mut kept = kept(of_quantiles);
                kept.sort_unstable();
                let median = kept.len().checked_sub(1).map(|last| {
                    let middle = kept[(0.5 * last as f64 + 0.5) as usize];
                    let max = of_quantiles.iter().max().expect("there is one");
                    [middle as f64, *max as f64]
                });
                let exact = (Summary::of(row), median);
                prop_assert_eq!(delays.close_row([0.5, 1.0]), exact);
            }
            let mut whole = Histogram::new();
            counted.iter().for_each(|value| whole.record(*value));
            prop_assert_eq!(delays.distribution(), whole.distribution());
        }
    }
}
