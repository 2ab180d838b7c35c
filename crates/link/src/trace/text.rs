//! Lines of `rate_mbps,interval_s`: a rate in Mbit/s and how many seconds it lasts, separated by
//! comma, blank or tab. Blank lines, and what follows a `#`, are skipped.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use sojourn_core::{Rate, Span, SpecError};

use super::{MAX_RATE, MAX_STEP, MAX_STEPS, Step, Trace, too_many};

impl Trace {
    /// Reads lines of `rate_mbps,interval_s`.
    ///
    /// # Errors
    /// Names the line and what is allowed there; or what [`Trace::new`] refuses.
    pub fn parse(text: &str) -> Result<Self, SpecError> {
        let mut steps = Vec::new();
        for (line, content) in lines(text) {
            if steps.len() == MAX_STEPS {
                return Err(too_many("lines").within(&place(line)));
            }
            steps.push(step(content).map_err(|error| error.within(&place(line)))?);
        }
        if steps.is_empty() {
            return Err(SpecError::new("the trace has no lines")
                .allow(["lines of rate_mbps,interval_s such as 2310,0.3"]));
        }
        if steps.iter().all(|step| step.rate == Rate::ZERO) {
            let problem = "every rate is zero, if lines are a rate and how long it lasts";
            return Err(SpecError::new(problem).allow([
                "at least one rate above zero",
                "'format samples' for lines of a time and the rate from then on",
            ]));
        }
        Self::new(steps)
    }
}

/// Writes lines that [`Trace::parse`] reads back exactly.
impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Step { rate, duration } in self.steps() {
            writeln!(f, "{},{}", Decimal(rate.as_bps(), 6), Decimal(duration.as_nanos(), 9))?;
        }
        Ok(())
    }
}

/// Numbered lines that are not blank.
pub(super) fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.trim_start_matches(BYTE_ORDER_MARK)
        .lines()
        .enumerate()
        .map(|(index, line)| (index + 1, line.split('#').next().unwrap_or_default().trim()))
        .filter(|(_, content)| !content.is_empty())
}

/// Some editors put this at the beginning of a UTF-8 text.
pub(super) const BYTE_ORDER_MARK: char = '\u{feff}';

/// The fields between commas, blanks and tabs.
pub(super) fn fields(content: &str) -> impl Iterator<Item = &str> {
    content.split(|c: char| c == ',' || c.is_whitespace()).filter(|field| !field.is_empty())
}

pub(super) fn place(line: usize) -> String {
    format!("line {line}")
}

fn step(content: &str) -> Result<Step, SpecError> {
    let mut fields = fields(content);
    let (Some(rate), Some(interval), None) = (fields.next(), fields.next(), fields.next()) else {
        return Err(SpecError::new(format!(
            "'{}' is not a rate and an interval",
            excerpt(content)
        ))
        .allow(["rate_mbps,interval_s such as 2310,0.3"]));
    };
    let rate = number("rate", rate, 1e6, 0, MAX_RATE.as_bps(), "Mbit/s")?;
    let interval = number("interval", interval, 1e9, 1, MAX_STEP.as_nanos(), "seconds")?;
    Ok(Step { rate: Rate::from_bps(rate), duration: Span::from_nanos(interval) })
}

/// Reads a number in `unit`; one of the unit is `scale` in the result.
pub(super) fn number(
    what: &str,
    text: &str,
    scale: f64,
    least: u64,
    most: u64,
    unit: &str,
) -> Result<u64, SpecError> {
    let allowed = || {
        let from = if least == 0 { "from 0" } else { "above 0" };
        [format!("a number of {unit} {from} up to {}", most as f64 / scale)]
    };
    let refuse = |problem: &str| {
        Err(SpecError::new(format!("{what} '{}' {problem}", excerpt(text))).allow(allowed()))
    };
    let Ok(value) = text.parse::<f64>() else {
        return refuse("is not a number");
    };
    if !value.is_finite() {
        return refuse("is not a number");
    }
    if value < 0.0 {
        return refuse("is negative");
    }
    // Saturates; the result is then refused as too large.
    let scaled = (value * scale + 0.5) as u64;
    if scaled < least {
        return refuse("is zero");
    }
    if scaled > most {
        return refuse("is too large");
    }
    Ok(scaled)
}

/// The beginning of `text`, so that a binary file does not fill the screen.
pub(super) fn excerpt(text: &str) -> String {
    let mut excerpt: String = text.chars().take(40).collect();
    if excerpt.len() < text.len() {
        excerpt.push('…');
    }
    excerpt
}

/// The first number over ten to the power of the second, without trailing zeros.
pub(super) struct Decimal(pub(super) u64, pub(super) u32);

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(value, digits) = *self;
        let one = 10u64.pow(digits);
        write!(f, "{}", value / one)?;
        let (mut fraction, mut width) = (value % one, digits as usize);
        if fraction == 0 {
            return Ok(());
        }
        while fraction.is_multiple_of(10) {
            fraction /= 10;
            width -= 1;
        }
        write!(f, ".{fraction:0width$}")
    }
}
