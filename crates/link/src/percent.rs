use alloc::format;
use core::fmt;

use sojourn_core::param::{Bounds, Form};
use sojourn_core::{Param, ParamKind, SpecError};

/// A probability as `netem` writes it, in percent.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Percent(f64);

impl Percent {
    pub const ZERO: Self = Self(0.0);
    pub const ALL: Self = Self(100.0);

    /// `None` outside 0 to 100.
    pub fn new(percent: f64) -> Option<Self> {
        (0.0..=100.0).contains(&percent).then_some(Self(percent))
    }

    pub fn share(self) -> f64 {
        self.0 / 100.0
    }

    /// What is left to 100 %.
    pub(crate) fn rest(self) -> Self {
        Self(100.0 - self.0)
    }

    /// Whether both together are at most 100 %, but for what rounding adds.
    pub(crate) fn leaves_room_for(self, other: Self) -> bool {
        self.0 + other.0 <= 100.0 + ROUNDING
    }
}

/// The rounding error that a sum of two shares may have.
const ROUNDING: f64 = 1e-9;

/// `tc` reads a number without `%` as percent and others read it as a share, so it is refused.
impl Form for Percent {
    type Value = Self;
    const KIND: ParamKind = ParamKind::Share;
    const BOUNDS: Bounds = Bounds::Said("a number from 0% to 100%");
    const EXAMPLES: &'static [&'static str] = &["1%"];

    fn read(text: &str, param: &Param) -> Result<Self, SpecError> {
        let number = text.strip_suffix('%').unwrap_or(text).parse().ok();
        let problem = match number.and_then(Self::new) {
            Some(percent) if text.ends_with('%') || percent == Self::ZERO => return Ok(percent),
            Some(_) => format!("{}: '{text}' has no unit; write '{text}%'", param.name),
            None => format!("{}: '{text}' is not a share in percent", param.name),
        };
        Err(SpecError::new(problem).allow(param.bounds.allowed()))
    }

    fn show(value: &Self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(value, f)
    }
}

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}%", self.0)
    }
}
