//! Intervals of any statistic, without assuming a distribution.

use alloc::vec::Vec;

use sojourn_core::Stream;

use super::describe::quantile_of_sorted;
use super::student::Interval;

/// The percentile bootstrap (Efron): the statistic of `resamples` samples drawn with replacement,
/// cut at both ends to leave `confidence` in (0, 1). The same stream gives the same interval.
/// `None` without values, without resamples, or if the statistic of the sample itself is `None`;
/// resamples whose statistic is `None` are left out.
pub fn bootstrap(
    values: &[f64],
    statistic: impl Fn(&[f64]) -> Option<f64>,
    confidence: f64,
    resamples: u32,
    random: &mut Stream,
) -> Option<Interval> {
    if values.is_empty() {
        return None;
    }
    let estimate = statistic(values)?;
    let mut sample = values.to_vec();
    let mut found: Vec<f64> = (0..resamples)
        .filter_map(|_| {
            for slot in &mut sample {
                *slot = values[random.below(values.len() as u64) as usize];
            }
            statistic(&sample)
        })
        .collect();
    found.sort_by(f64::total_cmp);
    let tail = (1.0 - confidence) / 2.0;
    Some(Interval {
        estimate,
        low: quantile_of_sorted(&found, tail)?,
        high: quantile_of_sorted(&found, 1.0 - tail)?,
    })
}

#[cfg(test)]
mod tests {
    use sojourn_core::{Purpose, StreamAddress};

    use super::super::{mean, mean_interval, quantile};
    use super::*;

    fn stream() -> Stream {
        StreamAddress { seed: 1, run: 0 }.stream_named("bootstrap", Purpose::Application)
    }

    #[test]
    fn the_mean_of_many_values_has_the_interval_that_t_gives() {
        let mut random = stream();
        let values: Vec<f64> = (0..400).map(|_| random.normal(10.0, 2.0)).collect();
        let found = bootstrap(&values, mean, 0.95, 4000, &mut random).expect("values");
        let exact = mean_interval(&values, 0.95).expect("values");
        assert!((found.half_width() / exact.half_width() - 1.0).abs() < 0.08);
        assert!((found.low - exact.low).abs() < 0.03 && (found.high - exact.high).abs() < 0.03);
    }

    #[test]
    fn the_same_stream_gives_the_same_interval() {
        let values = [3.0, 1.0, 4.0, 1.0, 5.0, 9.0];
        let median = |sample: &[f64]| quantile(sample, 0.5);
        let once = bootstrap(&values, median, 0.9, 200, &mut stream());
        assert_eq!(once, bootstrap(&values, median, 0.9, 200, &mut stream()));
        assert!(once.is_some_and(|found| found.contains(found.estimate)));
        assert_eq!(bootstrap(&[], median, 0.9, 200, &mut stream()), None);
    }
}
