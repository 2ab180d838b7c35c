//! The rightmost roots of a linear system with delays.
//!
//! z'(t) = A₀z(t) + Σ Aₖz(t − τₖ) is the flow of an operator on the past. On the nodes of Chebyshev that
//! operator is a matrix, whose rightmost eigenvalues converge exponentially to the roots (D. Breda,
//! S. Maset, R. Vermiglio, "Pseudospectral differencing methods for characteristic roots of delay
//! differential equations", SIAM J. Sci. Comput. 27(2), 2005).

use alloc::vec;
use alloc::vec::Vec;

use nalgebra::DMatrix;

/// Degree of the polynomial that stands for the past.
const DEGREE: usize = 20;
/// Roots that are kept.
const KEPT: usize = 3;

/// The derivatives of `slopes` at `state`, by central differences.
pub(super) fn jacobian(state: &[f64], slopes: impl Fn(&[f64]) -> Vec<f64>) -> DMatrix<f64> {
    let size = state.len();
    let mut matrix = DMatrix::zeros(size, size);
    for column in 0..size {
        let step = 1e-6 * state[column].abs().max(1e-9);
        let at = |by: f64| {
            let mut moved = state.to_vec();
            moved[column] += by;
            slopes(&moved)
        };
        let (above, below) = (at(step), at(-step));
        for row in 0..size {
            matrix[(row, column)] = (above[row] - below[row]) / (2.0 * step);
        }
    }
    matrix
}

/// Roots with the largest real parts, of pairs the one above the axis.
pub(super) fn rightmost(
    present: &DMatrix<f64>,
    delayed: &[(f64, DMatrix<f64>)],
) -> Vec<(f64, f64)> {
    let size = present.nrows();
    let longest = delayed.iter().map(|(delay, _)| *delay).fold(0.0, f64::max);
    let nodes: Vec<f64> = (0..=DEGREE)
        .map(|j| {
            let angle = core::f64::consts::PI * j as f64 / DEGREE as f64;
            0.5 * longest * (libm::cos(angle) - 1.0)
        })
        .collect();
    let weights: Vec<f64> = (0..=DEGREE)
        .map(|j| {
            let sign = if j % 2 == 0 { 1.0 } else { -1.0 };
            if j == 0 || j == DEGREE { 0.5 * sign } else { sign }
        })
        .collect();
    let mut matrix = DMatrix::zeros(size * (DEGREE + 1), size * (DEGREE + 1));
    let mut add = |row: usize, column: usize, factor: f64, block: &DMatrix<f64>| {
        for i in 0..size {
            for j in 0..size {
                matrix[(row * size + i, column * size + j)] += factor * block[(i, j)];
            }
        }
    };
    // The present moves by the law, the past moves along.
    add(0, 0, 1.0, present);
    for (delay, block) in delayed {
        for (node, factor) in interpolation(&nodes, &weights, -delay).into_iter().enumerate() {
            add(0, node, factor, block);
        }
    }
    let identity = DMatrix::identity(size, size);
    for row in 1..=DEGREE {
        let mut sum = 0.0;
        for column in 0..=DEGREE {
            if column != row {
                let slope = weights[column] / weights[row] / (nodes[row] - nodes[column]);
                sum += slope;
                add(row, column, slope, &identity);
            }
        }
        add(row, row, -sum, &identity);
    }
    let mut roots: Vec<(f64, f64)> = matrix
        .complex_eigenvalues()
        .iter()
        .map(|root| (root.re, root.im))
        .filter(|root| root.1 >= -1e-12)
        .collect();
    roots.sort_by(|a, b| b.0.total_cmp(&a.0));
    roots.truncate(KEPT);
    roots
}

/// What each node adds to the value at `at`.
fn interpolation(nodes: &[f64], weights: &[f64], at: f64) -> Vec<f64> {
    let mut factors = vec![0.0; nodes.len()];
    if let Some(same) = nodes.iter().position(|node| (node - at).abs() < 1e-15) {
        factors[same] = 1.0;
        return factors;
    }
    let terms: Vec<f64> =
        nodes.iter().zip(weights).map(|(node, weight)| weight / (at - node)).collect();
    let sum: f64 = terms.iter().sum();
    for (factor, term) in factors.iter_mut().zip(terms) {
        *factor = term / sum;
    }
    factors
}

#[cfg(test)]
mod tests {
    use super::*;

    /// z' = −a·z(t − 1) has its rightmost roots on the axis, at ±iπ/2, for a = π/2.
    #[test]
    fn a_delayed_feedback_is_stable_up_to_half_of_pi() {
        let root = |a: f64| {
            let block = DMatrix::from_element(1, 1, -a);
            rightmost(&DMatrix::zeros(1, 1), &[(1.0, block)])[0]
        };
        let half = core::f64::consts::FRAC_PI_2;
        let edge = root(half);
        assert!(edge.0.abs() < 1e-9 && (edge.1 - half).abs() < 1e-9, "{edge:?}");
        assert!(root(half - 0.01).0 < 0.0 && root(half + 0.01).0 > 0.0);
        // a = 1/e is the fastest without oscillation: a double root at −1.
        let fastest = root(libm::exp(-1.0));
        assert!((fastest.0 + 1.0).abs() < 1e-4, "{fastest:?}");
    }

    /// Every root of z' = −z(t − 1) − z(t − 2) solves s + e^(−s) + e^(−2s) = 0.
    #[test]
    fn roots_solve_their_equation() {
        let block = || DMatrix::from_element(1, 1, -1.0);
        for (re, im) in rightmost(&DMatrix::zeros(1, 1), &[(1.0, block()), (2.0, block())]) {
            let term = |delay: f64| {
                let size = libm::exp(-re * delay);
                (size * libm::cos(im * delay), -size * libm::sin(im * delay))
            };
            let (one, two) = (term(1.0), term(2.0));
            let rest = libm::hypot(re + one.0 + two.0, im + one.1 + two.1);
            assert!(rest < 1e-3, "{re} {im}: {rest}");
        }
    }
}
