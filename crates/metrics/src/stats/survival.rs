//! Quantiles of durations of which some have not ended.

use crate::histogram::Distribution;

/// The quantile `q` of how long something takes. `ended` has the known durations, and `open` how
/// long the others had lasted when observation stopped. The quantile is the time by which, by
/// Kaplan and Meier's product-limit estimate (1958), a share of `q` has ended; `None` if the
/// estimate never reaches `q`, because too many are open. To pool samples of several runs, merge
/// both distributions.
pub fn kaplan_meier(ended: &Distribution, open: &Distribution, q: f64) -> Option<f64> {
    let mut curve = product_limit(ended.buckets(), open.buckets(), ended.count() + open.count());
    curve
        .find(|(_, _, share)| *share >= q - 1e-12)
        .map(|(low, high, _)| (low + (high - low) / 2) as f64)
}

/// Kaplan and Meier's curve: for each bucket of the known durations its ends and the share that has
/// ended by then. Buckets are the least value, the largest and how many, in ascending order; `all`
/// is how many there are in both.
pub fn product_limit(
    ended: impl Iterator<Item = (u64, u64, u64)>,
    open: impl Iterator<Item = (u64, u64, u64)>,
    all: u64,
) -> impl Iterator<Item = (u64, u64, f64)> {
    let (mut at_risk, mut left, mut censored) = (all, 1.0, open.peekable());
    ended.map(move |(low, high, count)| {
        // An open one that lasted exactly as long still counts as present.
        while let Some((_, _, gone)) = censored.next_if(|(_, last, _)| *last < low) {
            at_risk -= gone;
        }
        left *= 1.0 - count as f64 / at_risk as f64;
        at_risk -= count;
        (low, high, 1.0 - left)
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
            prop_assert_eq!(known, sorted[rank - 1] as f64);
            if let Some(all) = kaplan_meier(&of(&ended), &of(&open), q) {
                prop_assert!(all >= known);
            }
        }
    }
}
