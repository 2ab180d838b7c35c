//! Errors for parameters and values that do not exist.

use alloc::format;
use alloc::string::String;

use super::Param;
use crate::error::SpecError;

/// The error for a parameter that an algorithm does not have.
pub fn unknown_param(algorithm: &str, written: &str, params: &[Param]) -> SpecError {
    let rows = || params.iter().flat_map(Param::rows).map(|row| row.name);
    SpecError::new(format!("{algorithm} has no parameter '{written}'"))
        .near(written, params.iter().flat_map(Param::names))
        .allow(rows())
}

/// The error for a parameter that must be given and is not.
pub fn missing_param(algorithm: &str, param: &Param) -> SpecError {
    SpecError::new(format!("{algorithm} needs '{}'", param.name)).about(param.name)
}

/// The error for a value that is none of a parameter's words.
pub fn unknown_value(written: &str, param: &Param) -> SpecError {
    let allowed = param.bounds.allowed();
    SpecError::new(format!("'{}' is '{written}'", param.name))
        .near(written, allowed.iter().map(String::as_str))
        .allow(allowed.iter())
}
