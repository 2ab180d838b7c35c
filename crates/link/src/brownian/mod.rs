//! A synthetic cellular link: delivery opportunities that come as a Poisson process whose rate
//! wanders as Brownian motion, with outages that hold it for a while.
//!
//! Sprout (Winstein, Sivaraman and Balakrishnan, NSDI 2013, section 3.1) uses this model to predict
//! cellular links; here it generates them.

#[cfg(test)]
mod tests;

use alloc::format;
use alloc::vec::Vec;
use core::fmt;

use sojourn_core::{Param, ParamKind, Rate, Span, SpecError, Stream, Words};

use crate::trace::{MAX_STEPS, Schedule};

/// A wandering rate, checked and complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Brownian {
    max: Rate,
    /// How far the rate wanders in a second, as a standard deviation.
    sigma: Rate,
    /// How long an outage lasts on average; zero if there are none.
    outage: Span,
    duration: Span,
}

/// What one opportunity carries.
pub const OPPORTUNITY_BYTES: u32 = 1500;

/// How often the rate changes, as in Sprout.
const TICK_MS: u64 = 20;

/// A trace is in milliseconds, and this keeps it well below 2^32 of them.
const MAX_DURATION: Span = Span::from_secs(100_000);

pub(crate) const PARAMS: &[Param] = &[
    Param::new(
        "max",
        ParamKind::Rate,
        "12mbit",
        "The rate wanders between 0 and this; Sprout's 1000 packets of 1500 bytes a second",
    ),
    Param::new(
        "sigma",
        ParamKind::Rate,
        "2400kbit",
        "How far it wanders in a second (standard deviation)",
    ),
    Param::new(
        "outage",
        ParamKind::Span,
        "1s",
        "How long it stays at 0 when it comes there, on average; 0s for not at all",
    ),
    Param::new("duration", ParamKind::Span, "120s", "Length of the trace that is drawn"),
];

impl Default for Brownian {
    fn default() -> Self {
        Self {
            max: Rate::from_bps(12_000_000),
            sigma: Rate::from_bps(2_400_000),
            outage: Span::from_secs(1),
            duration: Span::from_secs(120),
        }
    }
}

impl Brownian {
    /// Reads `max RATE`, `sigma RATE`, `outage TIME` and `duration TIME` in any order.
    ///
    /// # Errors
    /// An unknown parameter, a value out of range, or more opportunities than a trace may have.
    pub(crate) fn parse(words: &mut Words<'_>) -> Result<Self, SpecError> {
        let mut this = Self::default();
        let rate = |text: &str| {
            let rate: Rate = text.parse()?;
            match rate == Rate::ZERO || rate > MAX_RATE {
                true => Err(SpecError::new(format!("'{text}' is out of range"))
                    .allow([format!("a rate above 0 and up to {MAX_RATE}")])),
                false => Ok(rate),
            }
        };
        let span = |text: &str, least: Span| {
            let span: Span = text.parse()?;
            match (least..=MAX_DURATION).contains(&span) {
                true => Ok(span),
                false => Err(SpecError::new(format!("'{text}' is out of range"))
                    .allow([format!("a time from {least} to {MAX_DURATION}")])),
            }
        };
        while let Some(word) = words.next() {
            match word {
                "max" => this.max = words.parse("max", rate)?,
                "sigma" => this.sigma = words.parse("sigma", rate)?,
                "outage" => this.outage = words.parse("outage", |text| span(text, Span::ZERO))?,
                "duration" => {
                    this.duration = words.parse("duration", |text| span(text, MIN_DURATION))?;
                }
                _ => return Err(sojourn_core::param::unknown_param("brownian", word, PARAMS)),
            }
        }
        this.checked()
    }

    /// Draws a trace of this length, rounded up to milliseconds.
    ///
    /// # Errors
    /// Shorter than a millisecond, longer than a day, or more opportunities than a trace may have.
    pub fn lasting(self, duration: Span) -> Result<Self, SpecError> {
        if !(MIN_DURATION..=MAX_DURATION).contains(&duration) {
            return Err(SpecError::new(format!("duration {duration} is out of range"))
                .allow([format!("a time from {MIN_DURATION} to {MAX_DURATION}")]));
        }
        Self { duration, ..self }.checked()
    }

    fn checked(self) -> Result<Self, SpecError> {
        let Self { max, duration, .. } = self;
        let most = max.as_bps() as f64 / BITS * duration.as_secs_f64();
        // Twice the mean, which chance never reaches with that many.
        if most > MAX_STEPS as f64 / 2.0 {
            return Err(SpecError::new(format!(
                "brownian: {duration} at {max} are too many opportunities of {OPPORTUNITY_BYTES} bytes"
            ))
            .allow([format!("up to {}, such as 120s at 500mbit", MAX_STEPS / 2)]));
        }
        Ok(self)
    }

    /// Draws a trace. Its last opportunity is at its end, because it sets the period.
    pub fn generate(&self, random: &mut Stream) -> Schedule {
        let tick = TICK_MS as f64 / 1000.0;
        let max = self.max.as_bps() as f64 / BITS;
        let step = self.sigma.as_bps() as f64 / BITS * libm::sqrt(tick);
        let stays = match self.outage.is_zero() {
            true => 0.0,
            false => libm::exp(-tick / self.outage.as_secs_f64()),
        };
        let period = self.duration.as_nanos().div_ceil(1_000_000);
        let mut millis = Vec::new();
        // A rate that only wanders is equally likely everywhere, so it begins anywhere.
        let mut rate = random.uniform(0.0, max);
        let mut start = 0;
        while start < period {
            let end = (start + TICK_MS).min(period);
            arrivals(rate, start, end, random, &mut millis);
            rate = match rate == 0.0 && random.chance(stays) {
                true => 0.0,
                false => {
                    let next = rate + random.normal(0.0, step);
                    // The edges reflect it, but it stops at zero if there are outages.
                    let above = if stays > 0.0 && rate > 0.0 { next.max(0.0) } else { next.abs() };
                    fold(above, max)
                }
            };
            start = end;
        }
        if millis.last().is_none_or(|last| u64::from(*last) < period) {
            millis.push(period as u32);
        }
        Schedule::new(millis).expect("opportunities are drawn in order and end with the period")
    }
}

const MIN_DURATION: Span = Span::from_millis(1);

/// Higher rates are not cellular, and their opportunities would fill the memory.
const MAX_RATE: Rate = Rate::from_bps(10_000_000_000);

const BITS: f64 = OPPORTUNITY_BYTES as f64 * 8.0;

/// Poisson arrivals of `rate` a second between two milliseconds, each at the end of its
/// millisecond.
fn arrivals(rate: f64, start: u64, end: u64, random: &mut Stream, millis: &mut Vec<u32>) {
    if rate <= 0.0 {
        return;
    }
    let mut at = start as f64 + random.exponential(1000.0 / rate);
    while at < end as f64 && millis.len() + 1 < MAX_STEPS {
        millis.push(libm::ceil(at) as u32);
        at += random.exponential(1000.0 / rate);
    }
}

/// A value above `max` is mirrored to as far below it.
fn fold(rate: f64, max: f64) -> f64 {
    match rate > max {
        true => (2.0 * max - rate).max(0.0),
        false => rate,
    }
}

impl fmt::Display for Brownian {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { max, sigma, outage, duration } = self;
        write!(f, "max {max} sigma {sigma} outage {outage} duration {duration}")
    }
}
