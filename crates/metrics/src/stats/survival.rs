//! Quantiles of durations of which some have not ended.

use alloc::vec::Vec;

use crate::histogram::Distribution;

/// The quantile `q` of how long something takes. `ended` has the known durations, and `open` how
/// long the others had lasted when observation stopped. The quantile is the time by which, by
/// Kaplan and Meier's product-limit estimate (1958), a share of `q` has ended; `None` if the
/// estimate never reaches `q`, because too many are open. Where exactly `q` has ended for a while, it
/// is the middle of that while, as R's `survfit` has it: without open ones the median is the usual
/// one, and the quantiles 0.95 and 0.99 are never before those of [`Distribution::quantile`]. To pool
/// samples of several runs, merge both distributions.
pub fn kaplan_meier(ended: &Distribution, open: &Distribution, q: f64) -> Option<f64> {
    let (mut left, mut rank) = (1.0, 0);
    for (at_risk, count) in at_risk(ended.buckets(), open.buckets(), ended.count() + open.count()) {
        // How many of the bucket must end for so many to be left.
        let wanted = at_risk as f64 * (1.0 - (1.0 - q) / left);
        let close = 1e-9 * at_risk as f64;
        if wanted > count as f64 + close {
            left *= 1.0 - count as f64 / at_risk as f64;
            rank += count;
            continue;
        }
        let needed = (libm::ceil(wanted - close) as u64).max(1);
        let time = ended.of_rank(rank + needed - 1);
        let is_even = (needed as f64 - wanted).abs() <= close && rank + needed < ended.count();
        return Some(match is_even {
            true => f64::midpoint(time, ended.of_rank(rank + needed)),
            false => time,
        });
    }
    None
}

/// Kaplan and Meier's curve: for each bucket of the known durations its ends and the share that has
/// ended by then. Buckets are the least value, the largest and how many, in ascending order; `all`
/// is how many there are in both.
pub fn product_limit(
    ended: impl Iterator<Item = (u64, u64, u64)>,
    open: impl Iterator<Item = (u64, u64, u64)>,
    all: u64,
) -> impl Iterator<Item = (u64, u64, f64)> {
    let (ended, mut left) = (ended.collect::<Vec<_>>(), 1.0);
    let at_risk: Vec<_> = at_risk(ended.iter().copied(), open, all).collect();
    ended.into_iter().zip(at_risk).map(move |((low, high, count), (at_risk, _))| {
        left *= 1.0 - count as f64 / at_risk as f64;
        (low, high, 1.0 - left)
    })
}

/// For each bucket of the known durations how many last at least as long, and how many are in it.
fn at_risk(
    ended: impl Iterator<Item = (u64, u64, u64)>,
    open: impl Iterator<Item = (u64, u64, u64)>,
    all: u64,
) -> impl Iterator<Item = (u64, u64)> {
    let (mut left, mut censored) = (all, open.peekable());
    ended.map(move |(low, _, count)| {
        // An open one that lasted exactly as long still counts as present.
        while let Some((_, _, gone)) = censored.next_if(|(_, last, _)| *last < low) {
            left -= gone;
        }
        let at_risk = left;
        left -= count;
        (at_risk, count)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Histogram;

    fn of(values: &[u64]) -> Distribution {
        let mut histogram = Histogram::new();
        values.iter().for_each(|value| histogram.record(*value));
        histogram.distribution()
    }

    /// The standard example: remission under 6-mercaptopurine, in weeks, of Freireich et al.
    /// (1963). The estimate is 0.857 after week 6, 0.538 after week 22 and 0.448 after week 23, so
    /// the median is 23. For placebo all durations are known, and the median is 8.
    #[test]
    fn the_medians_are_those_of_the_textbook() {
        let ended = of(&[6, 6, 6, 7, 10, 13, 16, 22, 23]);
        let open = of(&[6, 9, 10, 11, 17, 19, 20, 25, 32, 32, 34, 35]);
        assert_eq!(kaplan_meier(&ended, &open, 0.5), Some(23.0));
        assert_eq!(kaplan_meier(&ended, &open, 1.0 - 0.8572), Some(6.0));
        assert_eq!(kaplan_meier(&ended, &open, 1.0 - 0.5379), Some(22.0));
        assert_eq!(kaplan_meier(&ended, &open, 0.6), None);
        let placebo = of(&[1, 1, 2, 2, 3, 4, 4, 5, 5, 8, 8, 8, 8, 11, 11, 12, 12, 15, 17, 22, 23]);
        assert_eq!(kaplan_meier(&placebo, &of(&[]), 0.5), Some(8.0));
    }

    #[test]
    fn where_just_half_has_ended_the_median_is_in_the_middle() {
        assert_eq!(kaplan_meier(&of(&[10, 20]), &of(&[]), 0.5), Some(15.0));
        assert_eq!(kaplan_meier(&of(&[10, 20, 30, 40]), &of(&[]), 0.5), Some(25.0));
        // The one that is open may have lasted for ever.
        assert_eq!(kaplan_meier(&of(&[10]), &of(&[20]), 0.5), Some(10.0));
        assert_eq!(kaplan_meier(&of(&[10, 30]), &of(&[5]), 0.5), Some(20.0));
    }

    #[test]
    fn of_nothing_there_is_no_quantile() {
        assert_eq!(kaplan_meier(&of(&[]), &of(&[]), 0.5), None);
        assert_eq!(kaplan_meier(&of(&[]), &of(&[7]), 0.5), None);
    }

    proptest! {
        /// Half of the ended ones have ended by their median, but half of all only later.
        #[test]
        fn what_has_not_ended_only_makes_it_longer(
            ended in prop::collection::vec(1u64..500, 1..60),
            open in prop::collection::vec(1u64..500, 0..60),
            q in 0.01..0.99f64,
        ) {
            let known = kaplan_meier(&of(&ended), &of(&[]), q).expect("all have ended");
            let mut sorted = ended.clone();
            sorted.sort_unstable();
            let rank = (q * sorted.len() as f64 - 1e-9).ceil().max(1.0) as usize;
            prop_assert_eq!(known, sorted[rank - 1] as f64, "q hits no rank");
            if let Some(all) = kaplan_meier(&of(&ended), &of(&open), q) {
                prop_assert!(all >= known);
            }
        }

        /// The percentiles that are metrics, also of values that share buckets.
        #[test]
        fn a_percentile_is_never_before_that_of_the_ended_ones(
            ended in prop::collection::vec(1u64..200_000, 1..200),
            open in prop::collection::vec(1u64..200_000, 0..60),
        ) {
            for q in [0.5, 0.95, 0.99] {
                let usual = of(&ended).quantile(q).expect("there are some");
                let alone = kaplan_meier(&of(&ended), &of(&[]), q).expect("all have ended");
                prop_assert!(alone >= usual - 1e-6, "{} {} {}", q, alone, usual);
                prop_assert!(q > 0.5 || alone <= usual + 1e-6, "{} {}", alone, usual);
                if let Some(all) = kaplan_meier(&of(&ended), &of(&open), q) {
                    prop_assert!(all >= alone - 1e-6, "{} {} {}", q, all, alone);
                }
            }
        }
    }
}
