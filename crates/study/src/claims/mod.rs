//! Claims: sentences with bounds over metrics, which hold, fail, or are untestable.
//!
//! An expression such as `goodput(cubic) in 6..8 Mbps` is checked in every scenario that the
//! claim's `where` selects. In each, its sides are computed for every seed and their means over
//! seeds are compared.

mod evaluate;
mod lacking;
mod over_time;
mod resolve;
mod syntax;
mod units;

#[cfg(test)]
mod tests;

pub(crate) use evaluate::{Checker, metrics};
pub(crate) use lacking::lacks;
pub use resolve::{Expectation, Known, Names};
pub(crate) use resolve::{check_factor, find_factor};

pub use syntax::ExprError;

use crate::results::Where;

/// A claim of a study, checked against its plan.
#[derive(Clone, Debug)]
pub struct Claim {
    pub id: String,
    pub text: String,
    pub source: Option<String>,
    pub note: Option<String>,
    /// Why it cannot be tested at all.
    pub untestable: Option<String>,
    pub filter: Vec<Where>,
    pub expect: Vec<Expectation>,
}
