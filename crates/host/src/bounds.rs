//! Bounds of an end system's settings, whether they come from a file or from code.

use alloc::format;
use core::fmt::Display;

use sojourn_core::{Span, SpecError};

/// Longer than any run.
pub(crate) const LONGEST: Span = Span::from_secs(10_000_000);

/// Checks that the setting `what` may have `value`.
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
