//! What [`params!`](crate::params) does with each field. These functions are compiled once for each form and never
//! inlined: else they would be compiled for each of some five hundred fields.

use core::fmt;

use super::{Form, Param, Style, missing_param};
use crate::SpecError;
use crate::words::Words;

#[inline(never)]
pub fn by_default<F: Form>(param: &Param) -> F::Value {
    F::by_default(param)
}

/// False if `word` does not begin `param`.
#[inline(never)]
pub fn accept<F: Form>(
    value: &mut F::Value,
    words: &mut Words<'_>,
    word: &str,
    param: &Param,
) -> Result<bool, SpecError> {
    let is_meant = param.is_meant_by(word);
    if is_meant {
        F::absorb(value, words, word, param)?;
    }
    Ok(is_meant)
}

#[inline(never)]
pub fn check<F: Form>(value: &F::Value, name: &str, param: &Param) -> Result<(), SpecError> {
    if F::is_missing(value) {
        return Err(missing_param(name, param).allow(param.bounds.allowed()));
    }
    F::check(value, param).map_err(|error| error.about(param.name))
}

#[inline(never)]
pub fn write<F: Form>(
    value: &F::Value,
    param: &Param,
    style: Style,
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    if style.shows(param, *value == F::by_default(param)) {
        F::write(value, param, style, f)?;
    }
    Ok(())
}
