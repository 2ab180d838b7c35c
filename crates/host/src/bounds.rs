//! What the settings of an end system may be, wherever they come from.

use alloc::format;
use core::fmt::Display;

use sojourn_core::{Span, SpecError};

/// Longer than any run.
pub(crate) const LONGEST: Span = Span::from_secs(10_000_000);

/// Whether `value` is one that `what` may have.
pub(crate) fn within<T: PartialOrd + Display>(
    what: &str,
    value: T,
    least: T,
    most: T,
) -> Result<(), SpecError> {
    if value >= least && value <= most {
        return Ok(());
    }
    let problem = SpecError::new(format!("{what} {value} is out of range"));
    Err(problem.allow([format!("{least} to {most}")]))
}
