//! Intervals of means over runs.

use std::sync::OnceLock;

use sojourn_metrics::stats::{Interval, interval_of_squares, mean_interval_by, two_sided_t};

/// Of the intervals.
pub const CONFIDENCE: f64 = 0.95;

/// Of so many values the quantile is worked out once. It takes two million instructions, and a study has means by the
/// thousand.
const MOST_KEPT: usize = 256;

/// The interval of the mean, by Student's t. `None` for fewer than two values, because they show no spread.
pub fn mean_interval(values: &[f64]) -> Option<Interval> {
    mean_interval_by(values, t(values.len())?)
}

/// The same of values that are not there any more: of how many there were, their mean, and the sum of the squares of
/// their distances from it.
pub fn mean_interval_of_squares(values: usize, mean: f64, squares: f64) -> Option<Interval> {
    interval_of_squares(values, mean, squares, t(values)?)
}

fn t(values: usize) -> Option<f64> {
    static KEPT: [OnceLock<Option<f64>>; MOST_KEPT] = [const { OnceLock::new() }; MOST_KEPT];
    match KEPT.get(values) {
        Some(kept) => *kept.get_or_init(|| two_sided_t(values, CONFIDENCE)),
        None => two_sided_t(values, CONFIDENCE),
    }
}

#[cfg(test)]
mod tests {
    use sojourn_metrics::stats;

    use super::*;

    #[test]
    fn intervals_are_as_wide_as_without_what_is_kept() {
        for count in [0, 1, 2, 3, 3, 20, MOST_KEPT - 1, MOST_KEPT, MOST_KEPT + 1] {
            let values: Vec<f64> = (0..count).map(|n| (n % 7) as f64).collect();
            assert_eq!(mean_interval(&values), stats::mean_interval(&values, CONFIDENCE));
        }
    }
}
