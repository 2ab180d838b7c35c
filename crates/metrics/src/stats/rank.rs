//! The Mann–Whitney U test: is one sample larger than another, whatever their distribution?

use alloc::vec;
use alloc::vec::Vec;

/// What the test found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MannWhitney {
    /// Pairs in which the left value is larger; a pair of equal values counts as a half.
    pub u: f64,
    /// `u` over the number of pairs: the probability that a left value is larger (0.5 for none).
    pub effect: f64,
    /// Two-sided: how likely a difference at least this large is when there is none.
    pub p: f64,
}

/// Compares two independent samples. The probability is exact when no values are equal and there
/// are at most 400 pairs, else by the normal approximation corrected for ties and continuity.
/// `None` when a sample is empty.
pub fn mann_whitney(left: &[f64], right: &[f64]) -> Option<MannWhitney> {
    if left.is_empty() || right.is_empty() {
        return None;
    }
    let pairs = left.len() * right.len();
    let u: f64 = left
        .iter()
        .flat_map(|l| right.iter().map(move |r| f64::from(u8::from(l > r)) + half_if_equal(*l, *r)))
        .sum();
    let mut all: Vec<f64> = left.iter().chain(right).copied().collect();
    all.sort_by(f64::total_cmp);
    let ties: Vec<f64> = all.chunk_by(|a, b| a == b).map(|equal| equal.len() as f64).collect();
    let p = if ties.len() == all.len() && pairs <= EXACT_PAIRS {
        exact(left.len(), right.len(), u as usize)
    } else {
        normal(left.len() as f64, right.len() as f64, u, &ties)
    };
    Some(MannWhitney { u, effect: u / pairs as f64, p })
}

const EXACT_PAIRS: usize = 400;

fn half_if_equal(left: f64, right: f64) -> f64 {
    if left == right { 0.5 } else { 0.0 }
}

/// Twice the share of the orders of m + n different values whose U is as far out as `u`, or 1.
fn exact(m: usize, n: usize, u: usize) -> f64 {
    // The numbers of orders by U are the coefficients of the Gaussian binomial: multiply by 1 −
    // x^(n+i), divide by 1 − x^i.
    let mut orders = vec![0.0; m * n + 1];
    orders[0] = 1.0;
    for i in 1..=m {
        for at in (n + i..=m * n).rev() {
            orders[at] -= orders[at - n - i];
        }
        for at in i..=m * n {
            orders[at] += orders[at - i];
        }
    }
    let total: f64 = orders.iter().sum();
    let tail: f64 = orders[..=u.min(m * n - u)].iter().sum();
    (2.0 * tail / total).min(1.0)
}

fn normal(m: f64, n: f64, u: f64, ties: &[f64]) -> f64 {
    let all = m + n;
    let correction: f64 = ties.iter().map(|t| t * t * t - t).sum();
    let variance = m * n / 12.0 * (all + 1.0 - correction / (all * (all - 1.0)));
    if variance <= 0.0 {
        return 1.0;
    }
    let z = ((u - m * n / 2.0).abs() - 0.5).max(0.0) / libm::sqrt(variance);
    libm::erfc(z / core::f64::consts::SQRT_2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn test(left: &[f64], right: &[f64]) -> MannWhitney {
        mann_whitney(left, right).expect("not empty")
    }

    #[test]
    fn samples_wholly_apart_are_as_unlikely_as_their_order() {
        // One of C(10, 5) = 252 orders on each side.
        let found = test(&[6.0, 7.0, 8.0, 9.0, 10.0], &[1.0, 2.0, 3.0, 4.0, 5.0]);
        assert_eq!((found.u, found.effect), (25.0, 1.0));
        assert!((found.p - 2.0 / 252.0).abs() < 1e-12);
    }

    #[test]
    fn the_exact_test_of_a_worked_example() {
        // Orders of 4 and 4 values by U from 0: 1, 1, 2, 3, 5, 5, 7; 24 of the 70 have U ≤ 6.
        let found = test(&[1.0, 4.0, 5.0, 6.0], &[2.0, 3.0, 7.0, 8.0]);
        assert_eq!(found.u, 6.0);
        assert!((found.p - 2.0 * 24.0 / 70.0).abs() < 1e-12, "{}", found.p);
    }

    #[test]
    fn exchanging_the_samples_mirrors_u() {
        let (left, right) = ([1.0, 2.0, 2.0, 5.0], [2.0, 3.0, 9.0]);
        let (one, other) = (test(&left, &right), test(&right, &left));
        assert_eq!(one.u + other.u, 12.0);
        assert!((one.p - other.p).abs() < 1e-12);
    }

    #[test]
    fn equal_samples_differ_in_nothing() {
        let found = test(&[3.0; 6], &[3.0; 6]);
        assert_eq!((found.effect, found.p), (0.5, 1.0));
        assert_eq!(mann_whitney(&[], &[1.0]), None);
    }

    #[test]
    fn the_approximation_is_near_the_exact_test() {
        let left: Vec<f64> = (0..20).map(|n| f64::from(n * 3)).collect();
        let right: Vec<f64> = (0..20).map(|n| f64::from(n * 3) + 10.5).collect();
        let found = test(&left, &right);
        let near = normal(20.0, 20.0, found.u, &[1.0; 40]);
        assert!((found.p - near).abs() < 0.005, "{} {near}", found.p);
    }
}
