//! Delay variation that does not reorder: RFC 8868, "approximately random subject to
//! no-reordering bounded PDV".
//!
//! Each packet draws its own added delay. A packet that would arrive before the one ahead of it
//! arrives together with that one.

#[cfg(test)]
mod tests;

use alloc::format;
use core::fmt;

use sojourn_core::{Param, ParamKind, Span, SpecError, Stream, Time, Words};

use crate::{Model, Steps};

/// A checked jitter. The added delay is never negative: the propagation delay is the least.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum JitterConfig {
    #[default]
    None,
    /// Gaussian with standard deviation `std`, cut at three of them either side, and moved up by
    /// three: between 0 and 6 `std`, on average 3 `std`.
    Normal { std: Span },
    /// Between 0 and `max`.
    Uniform { max: Span },
    /// The added delay changes at stated times.
    Steps(Steps<Span>),
}

/// RFC 8868: where the Gaussian is cut, in standard deviations.
const N_STD: f64 = 3.0;

/// Longer than any network's, and small enough that sums do not overflow.
const MAX_JITTER: Span = Span::from_secs(3600);

/// The names by which [`JitterConfig::parse`] knows them.
pub(crate) const MODELS: &[Model] = &[
    Model { name: "none", doc: "No delay variation", params: &[] },
    Model {
        name: "normal",
        doc: "Truncated Gaussian without reordering (RFC 8868)",
        params: &[Param::new(
            "std",
            ParamKind::Span,
            "",
            "Standard deviation; adds from 0 to 6 of these, 3 on average",
        )],
    },
    Model {
        name: "uniform",
        doc: "Uniform without reordering",
        params: &[Param::new("max", ParamKind::Span, "", "Adds from 0 to this")],
    },
    Model {
        name: "steps",
        doc: "Delays added at stated times, without reordering: steps 0ms 10s 80ms 5s; 'end hold' \
              lets the last one stay",
        params: &[Param::new(
            "end",
            ParamKind::Choice,
            "wrap",
            "What follows the end: 'wrap', 'hold'",
        )],
    },
];

impl JitterConfig {
    /// Reads `none`, `normal 5ms`, `uniform 3ms` or `steps 0ms 10s 80ms 5s`.
    ///
    /// # Errors
    /// An unknown jitter, a missing or surplus value, or one out of range.
    pub fn parse(text: &str) -> Result<Self, SpecError> {
        let mut words = Words::new(text);
        let names = || MODELS.iter().map(|model| model.name);
        let name = words
            .next()
            .ok_or_else(|| SpecError::new("no jitter is named; write 'none'").allow(names()))?;
        let config = match name {
            "none" => Self::None,
            "normal" => Self::Normal { std: words.parse("std", span)? },
            "uniform" => Self::Uniform { max: words.parse("max", span)? },
            "steps" => Self::Steps(Steps::parse(&mut words, span)?),
            _ => {
                return Err(SpecError::new(format!("unknown jitter '{name}'"))
                    .near(name, names())
                    .allow(names()));
            }
        };
        match words.next() {
            None => Ok(config),
            Some(surplus) => Err(SpecError::new(format!("'{surplus}' follows a complete jitter"))),
        }
    }

    pub fn build(&self) -> Jitter {
        Jitter { config: self.clone(), last: Time::ZERO }
    }
}

fn span(text: &str) -> Result<Span, SpecError> {
    let span: Span = text.parse()?;
    if span > MAX_JITTER {
        return Err(SpecError::new(format!("'{text}' is too large"))
            .allow([format!("a time from 0 to {MAX_JITTER}")]));
    }
    Ok(span)
}

impl fmt::Display for JitterConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Normal { std } => write!(f, "normal {std}"),
            Self::Uniform { max } => write!(f, "uniform {max}"),
            Self::Steps(steps) => steps.fmt(f),
        }
    }
}

/// The state of a jitter.
#[derive(Clone, Debug)]
pub struct Jitter {
    config: JitterConfig,
    last: Time,
}

impl Jitter {
    /// When a packet that is due at `due` arrives; never before the one asked for last.
    #[inline]
    pub fn delay(&mut self, due: Time, random: &mut Stream) -> Time {
        let added = match &self.config {
            JitterConfig::None => Span::ZERO,
            JitterConfig::Normal { std } => normal(*std, random),
            JitterConfig::Uniform { max } => {
                Span::from_secs_f64(random.uniform(0.0, max.as_secs_f64()))
            }
            JitterConfig::Steps(steps) => steps.at(due),
        };
        self.last = self.last.max(due + added);
        self.last
    }
}

fn normal(std: Span, random: &mut Stream) -> Span {
    loop {
        let z = random.normal(0.0, 1.0);
        if (-N_STD..=N_STD).contains(&z) {
            return Span::from_secs_f64((z + N_STD) * std.as_secs_f64());
        }
    }
}
