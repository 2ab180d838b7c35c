//! Rates that were measured at given times. A rate lasts until the next time; the last one lasts as
//! long as the one before it, or a second if it is alone. Rates with the same time share its
//! duration.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write;

use sojourn_core::{Rate, Span, SpecError};

use super::text::{Decimal, excerpt, fields, lines, number, place};
use super::{MAX_RATE, MAX_STEP, MAX_STEPS, Step, Trace, too_many};

/// Reads lines of a time in seconds and a rate in Mbit/s.
pub(super) fn parse(text: &str) -> Result<Trace, SpecError> {
    let mut samples = Samples::default();
    for (line, content) in lines(text) {
        sample(content)
            .and_then(|(time, rate)| samples.push(time, rate))
            .map_err(|error| error.within(&place(line)))?;
    }
    if samples.is_empty() {
        return Err(SpecError::new("the trace has no lines").allow([LINE]));
    }
    samples.finish()
}

const LINE: &str = "lines with a time in seconds and a rate in Mbit/s, such as 0 86.5";

/// Writes lines that [`parse`] reads.
pub(super) fn written(trace: &Trace) -> String {
    let (mut text, mut time) = (String::new(), 0);
    for Step { rate, duration } in trace.steps() {
        let _ = writeln!(text, "{} {}", Decimal(time, 9), Decimal(rate.as_bps(), 6));
        time += duration.as_nanos();
    }
    text
}

fn sample(content: &str) -> Result<(u64, Rate), SpecError> {
    let mut fields = fields(content);
    let (Some(time), Some(rate), None) = (fields.next(), fields.next(), fields.next()) else {
        return Err(SpecError::new(format!("'{}' is not a time and a rate", excerpt(content)))
            .allow(["a time in seconds and a rate in Mbit/s, such as 0 86.5"]));
    };
    let time = number("time", time, 1e9, 0, MAX_TIME_S * 1_000_000_000, "seconds")?;
    let rate = number("rate", rate, 1e6, 0, MAX_RATE.as_bps(), "Mbit/s")?;
    Ok((time, Rate::from_bps(rate)))
}

/// The latest time that a sample may have: the year 2286, if it counts from 1970.
pub(super) const MAX_TIME_S: u64 = 10_000_000_000;

/// How long a sample lasts that is the only one of its run.
const ALONE: u64 = 1_000_000_000;

/// Samples from which a trace is being made.
#[derive(Debug, Default)]
pub(super) struct Samples {
    steps: Vec<Step>,
    /// The time of the last samples in nanoseconds, and their rates.
    time: u64,
    rates: Vec<Rate>,
    /// The time between the samples before and these.
    gap: Option<u64>,
}

impl Samples {
    pub(super) fn is_empty(&self) -> bool {
        self.steps.is_empty() && self.rates.is_empty()
    }

    /// Adds the next sample, at `time` in nanoseconds.
    pub(super) fn push(&mut self, time: u64, rate: Rate) -> Result<(), SpecError> {
        if self.steps.len() + self.rates.len() >= MAX_STEPS {
            return Err(too_many("lines"));
        }
        if !self.rates.is_empty() && time != self.time {
            let Some(gap) = time.checked_sub(self.time) else {
                let (before, after) = (Span::from_nanos(self.time), Span::from_nanos(time));
                return Err(SpecError::new(format!(
                    "time runs backwards, from {before} to {after}"
                ))
                .allow([format!("{before} or later")]));
            };
            if gap > MAX_STEP.as_nanos() {
                let gap = Span::from_nanos(gap);
                return Err(SpecError::new(format!("the line before is {gap} earlier"))
                    .allow([format!("a time up to {MAX_STEP} from line to line")]));
            }
            self.share(gap);
            self.gap = Some(gap);
        }
        self.time = time;
        self.rates.push(rate);
        Ok(())
    }

    /// Ends a run: the next sample may have any time.
    pub(super) fn end_run(&mut self) {
        self.share(self.gap.unwrap_or(ALONE));
        self.gap = None;
    }

    pub(super) fn finish(mut self) -> Result<Trace, SpecError> {
        self.end_run();
        Trace::new(self.steps)
    }

    /// Divides a duration among the rates of one time.
    fn share(&mut self, gap: u64) {
        let count = self.rates.len() as u64;
        for (index, rate) in self.rates.drain(..).enumerate() {
            // Rounded so that they add up; with very many rates some have no duration.
            let end = |index: u64| (u128::from(gap) * u128::from(index) / u128::from(count)) as u64;
            let index = index as u64;
            let duration = Span::from_nanos(end(index + 1) - end(index));
            if !duration.is_zero() {
                self.steps.push(Step { rate, duration });
            }
        }
    }
}
