//! The forms in which the parameters of several controllers are written.

use core::fmt;

use sojourn_core::param::{Bounds, Form, number};
use sojourn_core::words::share;
use sojourn_core::{Param, ParamKind, SpecError};

use crate::fixed::Gain;

/// A factor for a rate or a window.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Factor;

/// A share between 0 and 1, in 1/256.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Share(pub(crate) Gain);

/// A share between 0 and 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Ratio(pub(crate) f64);

/// A share between 0 and 1, in whole percent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Percent(pub(crate) u32);

/// From the smallest step of the kernel's fixed point to more than any sensible gain.
const FACTOR: Bounds = number(1.0 / 256.0, 16.0);

const SHARE: Bounds = number(0.0, 1.0);

impl Form for Factor {
    type Value = f64;
    const KIND: ParamKind = ParamKind::Number;
    const BOUNDS: Bounds = FACTOR;

    fn read(text: &str, param: &Param) -> Result<f64, SpecError> {
        f64::read(text, param)
    }

    fn check(value: &f64, param: &Param) -> Result<(), SpecError> {
        f64::check(value, param)
    }

    fn show(value: &f64, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f64::show(value, f)
    }
}

impl Form for Gain {
    type Value = Self;
    const KIND: ParamKind = ParamKind::Number;
    const BOUNDS: Bounds = FACTOR;

    fn read(text: &str, param: &Param) -> Result<Self, SpecError> {
        f64::read(text, param).map(Self::nearest)
    }

    fn show(value: &Self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(value, f)
    }
}

impl Form for Share {
    type Value = Self;
    const KIND: ParamKind = ParamKind::Share;
    const BOUNDS: Bounds = SHARE;

    fn read(text: &str, param: &Param) -> Result<Self, SpecError> {
        read_share(text, param).map(|share| Self(Gain::nearest(share)))
    }

    fn show(value: &Self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&value.0, f)
    }
}

impl Form for Ratio {
    type Value = Self;
    const KIND: ParamKind = ParamKind::Share;
    const BOUNDS: Bounds = SHARE;

    fn read(text: &str, param: &Param) -> Result<Self, SpecError> {
        read_share(text, param).map(Self)
    }

    fn check(value: &Self, param: &Param) -> Result<(), SpecError> {
        f64::check(&value.0, param)
    }

    fn show(value: &Self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&value.0, f)
    }
}

impl Form for Percent {
    type Value = Self;
    const KIND: ParamKind = ParamKind::Share;
    const BOUNDS: Bounds = SHARE;

    fn read(text: &str, param: &Param) -> Result<Self, SpecError> {
        read_share(text, param).map(|share| Self((share * 100.0 + 0.5) as u32))
    }

    fn show(value: &Self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}%", value.0)
    }
}

fn read_share(text: &str, param: &Param) -> Result<f64, SpecError> {
    share(text).map_err(|error| error.within(param.name))
}
