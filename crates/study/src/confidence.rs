//! Intervals of means over runs.

use std::sync::OnceLock;

use sojourn_metrics::stats::{Interval, interval_of_squares, mean_interval_by, two_sided_t};

/// Of so many values the quantile is worked out once. It takes 130 000 instructions or more, and a study has means by the
/// thousand.
const MOST_KEPT: usize = 256;

/// Intervals that hold with a probability.
pub struct Confidence {
    level: f64,
    /// By the number of values, the quantile of Student's t.
    kept: [OnceLock<Option<f64>>; MOST_KEPT],
}

/// What is shown and judged by.
pub static USUAL: Confidence = Confidence::new(0.95);

impl Confidence {
    /// `level` is in (0, 1).
    pub const fn new(level: f64) -> Self {
        Self { level, kept: [const { OnceLock::new() }; MOST_KEPT] }
    }

    /// With which so many intervals hold at once with this one (Bonferroni).
    pub fn of_all(&self, intervals: usize) -> Self {
        Self::new(1.0 - (1.0 - self.level) / intervals as f64)
    }

    /// The interval of the mean, by Student's t. `None` for fewer than two values, because they show no spread.
    pub fn mean_interval(&self, values: &[f64]) -> Option<Interval> {
        mean_interval_by(values, self.t(values.len())?)
    }

    /// The same of values that are not there any more: of how many there were, their mean, and the sum of the squares of
    /// their distances from it.
    pub fn mean_interval_of_squares(
        &self,
        values: usize,
        mean: f64,
        squares: f64,
    ) -> Option<Interval> {
        interval_of_squares(values, mean, squares, self.t(values)?)
    }

    fn t(&self, values: usize) -> Option<f64> {
        match self.kept.get(values) {
            Some(kept) => *kept.get_or_init(|| two_sided_t(values, self.level)),
            None => two_sided_t(values, self.level),
        }
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
            assert_eq!(USUAL.mean_interval(&values), stats::mean_interval(&values, 0.95));
        }
    }
}
