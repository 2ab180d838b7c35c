//! Student's t, and confidence intervals of means.

use alloc::vec::Vec;

use super::describe::{deviation_of_squares, mean, squares};

/// An estimate and the bounds of its confidence interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    pub estimate: f64,
    pub low: f64,
    pub high: f64,
}

impl Interval {
    pub fn contains(&self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }

    /// Half its length.
    pub fn half_width(&self) -> f64 {
        (self.high - self.low) / 2.0
    }
}

/// The confidence interval of the mean at `confidence` in (0, 1), by Student's t. `None` for fewer
/// than two values, because they show no spread.
pub fn mean_interval(values: &[f64], confidence: f64) -> Option<Interval> {
    mean_interval_by(values, two_sided_t(values.len(), confidence)?)
}

/// The same where the quantile of [`two_sided_t`] is known.
pub fn mean_interval_by(values: &[f64], t: f64) -> Option<Interval> {
    let estimate = mean(values)?;
    interval_of_squares(values.len(), estimate, squares(values, estimate), t)
}

/// The same of values that are not there any more: of how many there were, their mean, and the sum of the
/// squares of their distances from it.
pub fn interval_of_squares(values: usize, estimate: f64, squares: f64, t: f64) -> Option<Interval> {
    let half = t * deviation_of_squares(values, squares)? / libm::sqrt(values as f64);
    Some(Interval { estimate, low: estimate - half, high: estimate + half })
}

/// How many standard errors the interval of a mean of so many values reaches to each side. `None` for fewer than two.
pub fn two_sided_t(values: usize, confidence: f64) -> Option<f64> {
    t_quantile(0.5 + confidence / 2.0, values as f64 - 1.0)
}

/// The mean of `after − before` over pairs, for example runs of the same seed, with its interval.
/// `None` of fewer than two pairs or when one list is longer.
pub fn paired_difference(before: &[f64], after: &[f64], confidence: f64) -> Option<Interval> {
    if before.len() != after.len() {
        return None;
    }
    let differences: Vec<f64> =
        before.iter().zip(after).map(|(before, after)| after - before).collect();
    mean_interval(&differences, confidence)
}

/// The value that a t-distributed variable with `freedom` degrees of freedom stays below with
/// probability `p`. `None` outside 0 < p < 1 and without a positive number of degrees.
pub fn t_quantile(p: f64, freedom: f64) -> Option<f64> {
    if !(p > 0.0 && p < 1.0 && freedom > 0.0) {
        return None;
    }
    if p < 0.5 {
        return t_quantile(1.0 - p, freedom).map(|t| -t);
    }
    let mut high = 1.0;
    while t_cdf(high, freedom) < p {
        high *= 2.0;
        if high > 1e300 {
            return None;
        }
    }
    // Bisection ends when no number lies between the bounds, the same on every machine.
    let mut low = 0.0;
    loop {
        let middle = low + (high - low) / 2.0;
        if middle <= low || middle >= high {
            return Some(middle);
        }
        if t_cdf(middle, freedom) < p {
            low = middle;
        } else {
            high = middle;
        }
    }
}

/// The probability that a t-distributed variable is at most `t`.
pub fn t_cdf(t: f64, freedom: f64) -> f64 {
    // P(|T| > |t|) is the regularised incomplete beta function at ν/(ν + t²); near t = 0 its
    // complement keeps the digits.
    let x = freedom / (freedom + t * t);
    let tail = if t * t < freedom {
        1.0 - incomplete_beta(t * t / (freedom + t * t), 0.5, freedom / 2.0)
    } else {
        incomplete_beta(x, freedom / 2.0, 0.5)
    };
    if t < 0.0 { tail / 2.0 } else { 1.0 - tail / 2.0 }
}

/// The regularised incomplete beta function, by its continued fraction (DLMF 8.17.22).
fn incomplete_beta(x: f64, a: f64, b: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 {
        return 1.0;
    }
    // The fraction converges fast below this point; beyond it the mirror image does.
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - incomplete_beta(1.0 - x, b, a);
    }
    let front = libm::exp(
        a * libm::log(x) + b * libm::log1p(-x) + libm::lgamma(a + b)
            - libm::lgamma(a)
            - libm::lgamma(b),
    ) / a;
    front / fraction(x, a, b)
}

/// 1 + d₁/(1 + d₂/(1 + …)), by Lentz's method.
fn fraction(x: f64, a: f64, b: f64) -> f64 {
    const TINY: f64 = 1e-300;
    let (mut f, mut c, mut d) = (1.0, 1.0, 0.0);
    for n in 1..10_000 {
        let m = f64::from(n / 2);
        let term = if n % 2 == 0 {
            m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m))
        } else {
            -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0))
        };
        d = 1.0 + term * d;
        d = 1.0 / if d.abs() < TINY { TINY } else { d };
        c = 1.0 + term / c;
        c = if c.abs() < TINY { TINY } else { c };
        f *= c * d;
        if (c * d - 1.0).abs() < 1e-15 {
            break;
        }
    }
    f
}

#[cfg(test)]
mod tests {
    use super::*;

    /// (p, degrees of freedom, quantile), as tables and R's `qt` give them.
    const TABLE: &[(f64, f64, f64)] = &[
        (0.975, 1.0, 12.706_204_736),
        (0.975, 2.0, 4.302_652_730),
        (0.975, 3.0, 3.182_446_305),
        (0.975, 4.0, 2.776_445_105),
        (0.975, 5.0, 2.570_581_836),
        (0.975, 9.0, 2.262_157_163),
        (0.975, 10.0, 2.228_138_852),
        (0.975, 29.0, 2.045_229_642),
        (0.975, 30.0, 2.042_272_456),
        (0.975, 100.0, 1.983_971_519),
        (0.975, 1e6, 1.959_966_357),
        (0.95, 1.0, 6.313_751_515),
        (0.95, 4.0, 2.131_846_786),
        (0.95, 20.0, 1.724_718_243),
        (0.995, 1.0, 63.656_741_162),
        (0.995, 4.0, 4.604_094_871),
        (0.995, 10.0, 3.169_272_673),
        (0.9995, 3.0, 12.923_978_637),
        (0.75, 1.0, 1.0),
    ];

    #[test]
    fn quantiles_are_those_of_the_tables() {
        for (p, freedom, expected) in TABLE {
            let t = t_quantile(*p, *freedom).expect("inside");
            assert!((t - expected).abs() < 1e-6, "{p} {freedom}: {t}, not {expected}");
            let mirrored = t_quantile(1.0 - p, *freedom).expect("inside");
            assert!((t + mirrored).abs() < 1e-6 * t);
        }
    }

    #[test]
    fn the_distribution_has_closed_forms_at_one_and_two_degrees() {
        for t in [-30.0, -2.0, -0.3, 0.0, 1e-6, 0.7, 1.0, 3.0, 100.0] {
            let one = 0.5 + libm::atan(t) / std::f64::consts::PI;
            let two = 0.5 + t / (2.0 * libm::sqrt(2.0 + t * t));
            assert!((t_cdf(t, 1.0) - one).abs() < 1e-13, "{t}");
            assert!((t_cdf(t, 2.0) - two).abs() < 1e-13, "{t}");
        }
    }

    #[test]
    fn quantiles_outside_the_domain_are_refused() {
        for (p, freedom) in [(0.0, 3.0), (1.0, 3.0), (f64::NAN, 3.0), (0.9, 0.0), (0.9, f64::NAN)] {
            assert_eq!(t_quantile(p, freedom), None);
        }
    }

    #[test]
    fn the_interval_of_a_worked_example() {
        // n 5, mean 10, deviation 1.581 138 83, t 2.776 445 105: half 1.963 243 16.
        let found = mean_interval(&[8.0, 9.0, 10.0, 11.0, 12.0], 0.95).expect("five");
        assert_eq!(found.estimate, 10.0);
        assert!((found.half_width() - 1.963_243_16).abs() < 1e-7);
        assert!(found.contains(8.04) && !found.contains(8.03));
        assert_eq!(mean_interval(&[1.0], 0.95), None);
    }

    #[test]
    fn pairs_are_compared_by_their_difference() {
        let before = [1.0, 20.0, 300.0];
        let after = [2.0, 21.0, 301.0];
        let found = paired_difference(&before, &after, 0.95).expect("three pairs");
        assert_eq!(found, Interval { estimate: 1.0, low: 1.0, high: 1.0 });
        assert_eq!(paired_difference(&before, &after[..2], 0.95), None);
    }
}
