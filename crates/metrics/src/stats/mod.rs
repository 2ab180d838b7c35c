//! From numbers of several runs to statements about them.

mod bootstrap;
mod describe;
mod fairness;
mod rank;
mod student;
mod survival;

pub use bootstrap::bootstrap;
pub use describe::{Ecdf, Ellipse, ellipse, mean, quantile, standard_deviation};
pub use fairness::{Better, harm, jain, jain_normalised, min_max_ratio};
pub use rank::{MannWhitney, mann_whitney};
pub use student::{
    Interval, interval_of_squares, mean_interval, mean_interval_by, paired_difference, t_cdf,
    t_quantile, two_sided_t,
};
pub use survival::{kaplan_meier, product_limit};
