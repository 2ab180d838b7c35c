//! Rates and sizes as `tc` reads them.

use alloc::format;
use core::fmt::{self, Display};

use super::{Bounds, Form, Param, ParamKind, size};
use crate::{Bytes, Rate, SpecError};

/// A rate as `tc` reads it, in bits: `10mbit`. It is printed as other rates are.
#[derive(Clone, Copy, Debug)]
pub struct TcRate;

impl Form for TcRate {
    type Value = Rate;
    const KIND: ParamKind = ParamKind::Rate;
    const EXAMPLES: &'static [&'static str] = &["10mbit"];

    fn read(text: &str, param: &Param) -> Result<Rate, SpecError> {
        let rate = Rate::parse_tc(text).map_err(|error| error.within(param.name))?;
        Self::check(&rate, param)?;
        Ok(rate)
    }

    fn check(value: &Rate, param: &Param) -> Result<(), SpecError> {
        Rate::check(value, param)
    }

    fn show(value: &Rate, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        value.fmt(f)
    }
}

/// A size as `tc` reads it, in powers of 1024, printed as the number of bytes.
#[derive(Clone, Copy, Debug)]
pub struct TcSize;

impl Form for TcSize {
    type Value = Bytes;
    const KIND: ParamKind = ParamKind::Size;
    const BOUNDS: Bounds = size(0, u32::MAX as u64);
    const EXAMPLES: &'static [&'static str] = &["64kb"];

    fn read(text: &str, param: &Param) -> Result<Bytes, SpecError> {
        let size = Bytes::parse_tc(text).map_err(|error| error.within(param.name))?;
        Self::check(&size, param)?;
        Ok(size)
    }

    fn check(value: &Bytes, param: &Param) -> Result<(), SpecError> {
        if param.bounds.hold_size(*value) {
            return Ok(());
        }
        Err(SpecError::new(format!("'{}' is {} bytes", param.name, value.as_u64()))
            .allow(param.bounds.allowed()))
    }

    fn show(value: &Bytes, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        value.as_u64().fmt(f)
    }
}
