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

use sojourn_core::param::{Bounds, Style, rate, time};
use sojourn_core::{Params, Rate, Span, SpecError, Stream};

use crate::trace::{MAX_STEPS, Schedule};

sojourn_core::params! {
    /// A wandering rate, checked and complete.
    pub struct Brownian: "brownian",
        "A synthetic cellular link: Poisson opportunities of 1500 bytes, their rate a Brownian motion",
        check fits_a_trace
    {
        max: Rate = "12mbit", RATES,
            "The rate wanders between 0 and this; Sprout's 1000 packets of 1500 bytes a second";
        sigma: Rate = "2400kbit", RATES, "How far it wanders in a second (standard deviation)";
        outage: Span = "1s", time(Span::ZERO, MAX_DURATION),
            "How long it stays at 0 when it comes there, on average; 0s for not at all";
        duration: Span = "120s", time(Span::from_millis(1), MAX_DURATION),
            "Length of the trace that is drawn";
    }
}

/// Higher rates are not cellular, and their opportunities would fill the memory.
const RATES: Bounds = rate(Rate::from_bps(1), Rate::from_bps(10_000_000_000));

fn fits_a_trace(this: &Brownian) -> Result<(), SpecError> {
    let Brownian { max, duration, .. } = this;
    let most = max.as_bps() as f64 / BITS * duration.as_secs_f64();
    // Twice the mean, which chance never reaches with that many.
    if most > MAX_STEPS as f64 / 2.0 {
        return Err(SpecError::new(format!(
            "brownian: {duration} at {max} are too many opportunities of {OPPORTUNITY_BYTES} bytes"
        ))
        .allow([format!("up to {}, such as 120s at 500mbit", MAX_STEPS / 2)]));
    }
    Ok(())
}

/// What one opportunity carries.
pub const OPPORTUNITY_BYTES: u32 = 1500;

/// How often the rate changes, as in Sprout.
const TICK_MS: u64 = 20;

/// A trace is in milliseconds, and this keeps it well below 2^32 of them.
const MAX_DURATION: Span = Span::from_secs(100_000);

impl Brownian {
    /// Draws a trace of this length, rounded up to milliseconds.
    ///
    /// # Errors
    /// Shorter than a millisecond, longer than a day, or more opportunities than a trace may have.
    pub fn lasting(self, duration: Span) -> Result<Self, SpecError> {
        let this = Self { duration, ..self };
        this.check()?;
        Ok(this)
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
        f.write_str(&self.written(Style::Blank))
    }
}
