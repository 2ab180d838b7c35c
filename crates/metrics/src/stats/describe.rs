//! Summaries of a sample.

use alloc::vec::Vec;

/// The arithmetic mean; `None` of nothing.
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// The sample standard deviation (n − 1); `None` of fewer than two values.
pub fn standard_deviation(values: &[f64]) -> Option<f64> {
    deviation_of_squares(values.len(), squares(values, mean(values)?))
}

/// The sum of the squares of the distances from `mean`.
pub(super) fn squares(values: &[f64], mean: f64) -> f64 {
    values.iter().map(|value| (value - mean) * (value - mean)).sum()
}

/// The deviation of so many values with this sum of squares.
pub(super) fn deviation_of_squares(values: usize, squares: f64) -> Option<f64> {
    (values >= 2).then(|| libm::sqrt(squares / (values - 1) as f64))
}

/// The quantile `q` in [0, 1], interpolated between ranks: type 7 of Hyndman and Fan, which is the
/// default of NumPy and R. `None` of nothing.
pub fn quantile(values: &[f64], q: f64) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    quantile_of_sorted(&sorted, q)
}

pub(super) fn quantile_of_sorted(sorted: &[f64], q: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    let rank = q.clamp(0.0, 1.0) * last as f64;
    let below = (rank as usize).min(last);
    let above = (below + 1).min(last);
    let fraction = rank - below as f64;
    Some(sorted[below] + fraction * (sorted[above] - sorted[below]))
}

/// The empirical distribution function of a sample.
#[derive(Clone, Debug, PartialEq)]
pub struct Ecdf {
    sorted: Vec<f64>,
}

impl Ecdf {
    pub fn new(values: &[f64]) -> Self {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        Self { sorted }
    }

    /// The share of values that are at most `x`; 0 of nothing.
    pub fn at(&self, x: f64) -> f64 {
        let below = self.sorted.partition_point(|value| *value <= x);
        if below == 0 { 0.0 } else { below as f64 / self.sorted.len() as f64 }
    }

    /// The steps: each different value with the share that is at most it.
    pub fn points(&self) -> Vec<(f64, f64)> {
        let n = self.sorted.len() as f64;
        self.sorted
            .chunk_by(|left, right| left == right)
            .scan(0, |below, equal| {
                *below += equal.len();
                Some((equal[0], *below as f64 / n))
            })
            .collect()
    }
}

/// The 1-σ ellipse of points, as throughput–delay plots of congestion control show it: centre at
/// the mean, axes along the eigenvectors of the covariance, half-lengths their deviations.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ellipse {
    pub centre: (f64, f64),
    /// Half-lengths, the longer one first.
    pub axes: (f64, f64),
    /// From the x axis to the longer axis, anticlockwise in radians, in (−π/2, π/2].
    pub angle: f64,
}

/// The 1-σ ellipse with the sample covariance (n − 1); `None` of fewer than two points.
pub fn ellipse(points: &[(f64, f64)]) -> Option<Ellipse> {
    if points.len() < 2 {
        return None;
    }
    let n = points.len() as f64;
    let (x, y) = points.iter().fold((0.0, 0.0), |(x, y), point| (x + point.0, y + point.1));
    let (x, y) = (x / n, y / n);
    let (mut xx, mut xy, mut yy) = (0.0, 0.0, 0.0);
    for point in points {
        let (dx, dy) = (point.0 - x, point.1 - y);
        xx += dx * dx / (n - 1.0);
        xy += dx * dy / (n - 1.0);
        yy += dy * dy / (n - 1.0);
    }
    let middle = (xx + yy) / 2.0;
    let half = libm::sqrt((xx - yy) * (xx - yy) / 4.0 + xy * xy);
    Some(Ellipse {
        centre: (x, y),
        axes: (libm::sqrt(middle + half), libm::sqrt((middle - half).max(0.0))),
        angle: libm::atan2(2.0 * xy, xx - yy) / 2.0,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn moments_of_a_known_sample() {
        let values = [2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0];
        assert_eq!(mean(&values), Some(5.0));
        assert!((standard_deviation(&values).expect("eight") - 2.138_089_935).abs() < 1e-9);
        assert_eq!((mean(&[]), standard_deviation(&[1.0])), (None, None));
    }

    #[test]
    fn quantiles_interpolate_as_numpy_does() {
        let values = [15.0, 20.0, 35.0, 40.0, 50.0];
        assert_eq!(quantile(&values, 0.5), Some(35.0));
        assert!((quantile(&values, 0.4).expect("five") - 29.0).abs() < 1e-12);
        assert_eq!((quantile(&values, 0.0), quantile(&values, 1.0)), (Some(15.0), Some(50.0)));
        assert_eq!(quantile(&[], 0.5), None);
    }

    #[test]
    fn the_distribution_function_steps_at_values() {
        let ecdf = Ecdf::new(&[3.0, 1.0, 3.0, 2.0]);
        assert_eq!((ecdf.at(0.5), ecdf.at(1.0), ecdf.at(2.9), ecdf.at(3.0)), (0.0, 0.25, 0.5, 1.0));
        assert_eq!(ecdf.points(), [(1.0, 0.25), (2.0, 0.5), (3.0, 1.0)]);
        assert_eq!(Ecdf::new(&[]).at(1.0), 0.0);
    }

    #[test]
    fn an_ellipse_lies_along_its_points() {
        let line = [(0.0, 0.0), (1.0, 1.0), (2.0, 2.0)];
        let found = ellipse(&line).expect("three");
        assert_eq!(found.centre, (1.0, 1.0));
        assert!((found.axes.0 - libm::sqrt(2.0)).abs() < 1e-12 && found.axes.1.abs() < 1e-7);
        assert!((found.angle - std::f64::consts::FRAC_PI_4).abs() < 1e-12);
        let upright = ellipse(&[(0.0, -2.0), (1.0, 0.0), (0.0, 2.0), (-1.0, 0.0)]).expect("four");
        assert!((upright.angle - std::f64::consts::FRAC_PI_2).abs() < 1e-12);
        assert!((upright.axes.0 - libm::sqrt(8.0 / 3.0)).abs() < 1e-12);
        assert!((upright.axes.1 - libm::sqrt(2.0 / 3.0)).abs() < 1e-12);
    }

    proptest! {
        #[test]
        fn half_of_a_sample_lies_on_either_side_of_its_median(
            values in prop::collection::vec(-1e6..1e6f64, 1..50),
        ) {
            let median = quantile(&values, 0.5).expect("not empty");
            let below = values.iter().filter(|value| **value < median).count();
            let above = values.iter().filter(|value| **value > median).count();
            prop_assert!(below <= values.len() / 2 && above <= values.len() / 2);
        }
    }
}
