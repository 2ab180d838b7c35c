//! Delay variation that does not reorder: RFC 8868, "approximately random subject to
//! no-reordering bounded PDV".
//!
//! Each packet draws its own added delay. A packet that would arrive before the one ahead of it
//! arrives together with that one.

#[cfg(test)]
mod tests;

use alloc::format;
use core::fmt;

use sojourn_core::param::{Bounds, Form, Given, Style, number, time};
use sojourn_core::{Params, Span, SpecError, Stream, Time, Words};

use crate::{Model, Steps, steps};

/// A checked jitter. The added delay is never negative: the propagation delay is the least.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum JitterConfig {
    #[default]
    None,
    Normal(Normal),
    Uniform(Uniform),
    Exponential(Exponential),
    Pareto(Pareto),
    /// The added delay changes at stated times.
    Steps(Steps<Span>),
}

sojourn_core::params! {
    /// Gaussian with standard deviation `std`, cut at three of them either side, and moved up by
    /// three: between 0 and 6 `std`, on average 3 `std`.
    pub struct Normal: "normal", "Truncated Gaussian without reordering (RFC 8868)" {
        pub std: Span as Given<Span> = "", ADDED,
            "Standard deviation; adds from 0 to 6 of these, 3 on average";
    }
}

sojourn_core::params! {
    pub struct Uniform: "uniform", "Uniform without reordering" {
        pub max: Span as Given<Span> = "", ADDED, "Adds from 0 to this";
    }
}

sojourn_core::params! {
    pub struct Exponential: "exponential", "Exponential without reordering: often little, sometimes much" {
        pub mean: Span as Given<Span> = "", ADDED, "Adds this on average";
    }
}

sojourn_core::params! {
    /// Pareto's distribution moved to begin at zero (Lomax): longer than `x` with the probability
    /// (1 + x / scale)^-shape, where scale is mean · (shape - 1).
    pub struct Pareto: "pareto", "Pareto (heavy-tailed) without reordering, as netem's distribution of that name" {
        pub mean: Span as Given<Span> = "", ADDED, "Adds this on average";
        pub shape: f64 = "3", number(1.05, 100.0),
            "The smaller, the longer the rare delays: of 3, netem's, one in 1000 is 18 times the mean";
    }
}

/// Longer than any network's, and small enough that sums do not overflow.
const LONGEST: Span = Span::from_secs(3600);
const ADDED: Bounds = time(Span::ZERO, LONGEST);

/// RFC 8868: where the Gaussian is cut, in standard deviations.
const N_STD: f64 = 3.0;

/// The names by which [`JitterConfig::parse`] knows them.
pub(crate) const MODELS: &[Model] = &[
    Model::bare("none", "No delay variation"),
    Model::of::<Normal>(),
    Model::of::<Uniform>(),
    Model::of::<Exponential>(),
    Model::of::<Pareto>(),
    steps::model(
        "Delays added at stated times, without reordering: steps 0ms 10s 80ms 5s; 'end hold' \
         lets the last one stay",
    ),
];

impl JitterConfig {
    /// Reads `none`, `normal 5ms`, `uniform 3ms`, `exponential 5ms`, `pareto 5ms 3` or `steps 0ms 10s 80ms 5s`.
    ///
    /// # Errors
    /// An unknown jitter, a missing or surplus value, or one out of range.
    pub fn parse(text: &str) -> Result<Self, SpecError> {
        let words = &mut Words::new(text);
        let names = || MODELS.iter().map(|model| model.name);
        let name = words
            .next()
            .ok_or_else(|| SpecError::new("no jitter is named; write 'none'").allow(names()))?;
        Ok(match name {
            "none" => match words.next() {
                None => Self::None,
                Some(surplus) => return Err(SpecError::new(format!("'{surplus}' follows 'none'"))),
            },
            "normal" => Self::Normal(Normal::parse_in_order(words)?),
            "uniform" => Self::Uniform(Uniform::parse_in_order(words)?),
            "exponential" => Self::Exponential(Exponential::parse_in_order(words)?),
            "pareto" => Self::Pareto(Pareto::parse_in_order(words)?),
            "steps" => {
                let max = &Uniform::PARAMS[0];
                Self::Steps(Steps::parse(words, |text| Span::read(text, max))?)
            }
            _ => {
                return Err(SpecError::new(format!("unknown jitter '{name}'"))
                    .near(name, names())
                    .allow(names()));
            }
        })
    }

    /// Refuses values out of bounds; code may have set them.
    ///
    /// # Errors
    /// Names the parameter and what is allowed.
    pub fn check(&self) -> Result<(), SpecError> {
        match self {
            Self::None | Self::Steps(_) => Ok(()),
            Self::Normal(normal) => normal.check(),
            Self::Uniform(uniform) => uniform.check(),
            Self::Exponential(exponential) => exponential.check(),
            Self::Pareto(pareto) => pareto.check(),
        }
    }

    pub fn build(&self) -> Jitter {
        Jitter { config: self.clone(), last: Time::ZERO }
    }
}

impl fmt::Display for JitterConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Normal(normal) => f.write_str(&normal.written(Style::InOrder)),
            Self::Uniform(uniform) => f.write_str(&uniform.written(Style::InOrder)),
            Self::Exponential(exponential) => f.write_str(&exponential.written(Style::InOrder)),
            Self::Pareto(pareto) => f.write_str(&pareto.written(Style::InOrder)),
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
            JitterConfig::Normal(Normal { std }) => normal(*std, random),
            JitterConfig::Uniform(Uniform { max }) => {
                Span::from_secs_f64(random.uniform(0.0, max.as_secs_f64()))
            }
            JitterConfig::Exponential(Exponential { mean }) => {
                longest(random.exponential(mean.as_secs_f64()))
            }
            JitterConfig::Pareto(Pareto { mean, shape }) => {
                let scale = mean.as_secs_f64() * (shape - 1.0);
                longest((random.pareto(*shape, 1.0) - 1.0) * scale)
            }
            JitterConfig::Steps(steps) => steps.at(due),
        };
        self.last = self.last.max(due + added);
        self.last
    }
}

/// Tails have no end; sums do.
fn longest(seconds: f64) -> Span {
    Span::from_secs_f64(seconds.min(LONGEST.as_secs_f64()))
}

fn normal(std: Span, random: &mut Stream) -> Span {
    loop {
        let z = random.normal(0.0, 1.0);
        if (-N_STD..=N_STD).contains(&z) {
            return Span::from_secs_f64((z + N_STD) * std.as_secs_f64());
        }
    }
}
