//! Delays of a flow: their quantiles in each row of the time series, and their distribution.

use alloc::vec::Vec;

use crate::histogram::{Distribution, Histogram, Summary};

/// Delays in nanoseconds. They are taken down one by one and counted many at a time, which is less
/// work.
#[derive(Clone, Debug)]
pub(crate) struct Delays {
    /// The first `fresh` of these are not counted yet. There is no room before the first one comes.
    batch: Vec<u64>,
    fresh: usize,
    /// What is counted of this row.
    in_row: Summary,
    row: Row,
    whole: Histogram,
}

impl Default for Delays {
    fn default() -> Self {
        Self {
            batch: Vec::new(),
            fresh: 0,
            in_row: Summary::NOTHING,
            row: Row::default(),
            whole: Histogram::new(),
        }
    }
}

impl Delays {
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

    /// There is no room for `delay` before what is there is counted.
    #[cold]
    #[inline(never)]
    fn record_first(&mut self, delay: u64) {
        let summary = self.count();
        self.row.extend(&self.batch[..self.fresh], &summary);
        self.batch.resize(Row::MOST, 0);
        self.batch[0] = delay;
        self.fresh = 1;
    }

    fn count(&mut self) -> Summary {
        let fresh = &self.batch[..self.fresh];
        let summary = self.whole.record_all(fresh);
        self.in_row.merge(&summary);
        summary
    }

    /// What was taken down in this row, and quantiles as [`Row::close`] gives them. The next row
    /// begins.
    pub(crate) fn close_row<const N: usize>(
        &mut self,
        qs: [f64; N],
    ) -> (Summary, Option<[f64; N]>) {
        let summary = self.count();
        let fresh = &mut self.batch[..self.fresh];
        self.fresh = 0;
        // Mostly a row is not longer than a batch.
        let quantiles = if self.row.is_empty() {
            quantiles(fresh, summary.max, qs)
        } else {
            self.row.extend(fresh, &summary);
            self.row.close(qs)
        };
        (core::mem::replace(&mut self.in_row, Summary::NOTHING), quantiles)
    }

    /// What came before is of no distribution and no quantile.
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
    max: u64,
}

impl Default for Row {
    fn default() -> Self {
        Self { values: Vec::new(), stride: 1, skipped: 0, max: 0 }
    }
}

impl Row {
    const MOST: usize = 512;

    pub(crate) fn record(&mut self, value: u64) {
        self.extend(&[value], &Summary::of_one(value));
    }

    /// Takes in `values`, of which `summary` is the summary.
    fn extend(&mut self, mut values: &[u64], summary: &Summary) {
        self.max = self.max.max(summary.max);
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

    /// Quantiles of the kept values, for `qs` in ascending order; 1 is the largest value of all.
    /// `None` without values. The next row begins.
    pub(crate) fn close<const N: usize>(&mut self, qs: [f64; N]) -> Option<[f64; N]> {
        let found = quantiles(&mut self.values, self.max, qs);
        self.clear();
        found
    }

    pub(crate) fn clear(&mut self) {
        self.values.clear();
        *self = Self { values: core::mem::take(&mut self.values), ..Self::default() };
    }
}

/// The values of `N` ranks in ascending order; 1 is `max`. `values` are in another order then.
fn quantiles<const N: usize>(values: &mut [u64], max: u64, qs: [f64; N]) -> Option<[f64; N]> {
    let last = values.len().checked_sub(1)?;
    let mut from = 0;
    Some(qs.map(|q| {
        if q >= 1.0 {
            return max as f64;
        }
        let rank = (q * last as f64 + 0.5) as usize;
        let rest = &mut values[from..];
        let value = among_largest(rest, rank - from).unwrap_or_else(|| {
            let value = *rest.select_nth_unstable(rank - from).1;
            from = rank;
            value
        });
        value as f64
    }))
}

/// The value of a rank, if it is one of the highest: then one look at each value finds it.
fn among_largest(values: &[u64], rank: usize) -> Option<u64> {
    const FEW: usize = 6;
    let mut largest = [0; FEW];
    let largest = largest.get_mut(..values.len() - rank)?;
    for value in values {
        if *value > largest[0] {
            let mut at = 0;
            while at + 1 < largest.len() && *value > largest[at + 1] {
                largest[at] = largest[at + 1];
                at += 1;
            }
            largest[at] = *value;
        }
    }
    Some(largest[0])
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
            let mut values = values;
            let max = sorted.last().copied().unwrap_or(0);
            prop_assert_eq!(quantiles(&mut values, max, qs), exact);
        }

        /// However many rows and however long, and wherever the warm-up ends.
        #[test]
        fn delays_are_counted_as_if_one_by_one(
            rows in prop::collection::vec(prop::collection::vec(delay(), 0..1800), 1..4),
            warm_after in prop::collection::vec(0usize..1800, 0..2),
        ) {
            let mut delays = Delays::default();
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
                let exact = (Histogram::new().record_all(row), median);
                prop_assert_eq!(delays.close_row([0.5, 1.0]), exact);
            }
            let mut whole = Histogram::new();
            counted.iter().for_each(|value| whole.record(*value));
            prop_assert_eq!(delays.distribution(), whole.distribution());
        }
    }
}
