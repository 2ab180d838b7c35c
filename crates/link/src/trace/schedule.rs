//! Mahimahi's format: a line for each delivery opportunity, holding its millisecond. The file
//! repeats with its last millisecond as the period.

use alloc::format;
use alloc::vec::Vec;
use core::fmt;

use sojourn_core::{Rate, Span, SpecError};

use super::text::{excerpt, lines, place};
use super::{MAX_STEPS, Step, Trace, too_many};

/// Delivery opportunities: at least one, in order of time, the last not at zero.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    millis: Vec<u32>,
}

impl Schedule {
    /// # Errors
    /// No entries or too many, time running backwards, or the last entry zero.
    pub fn new(millis: Vec<u32>) -> Result<Self, SpecError> {
        if millis.len() > MAX_STEPS {
            return Err(too_many("opportunities"));
        }
        if let Some(index) = millis.windows(2).position(|pair| pair[1] < pair[0]) {
            return Err(backwards(millis[index + 1], millis[index]));
        }
        match millis.last() {
            None => Err(SpecError::new("the trace has no lines").allow([LINE])),
            Some(0) => Err(SpecError::new("the trace ends at millisecond 0, so it has no period")
                .allow(["a last line above 0"])),
            Some(_) => Ok(Self { millis }),
        }
    }

    /// Reads a line for each opportunity.
    ///
    /// # Errors
    /// Names the line and what is allowed there; or what [`Schedule::new`] refuses.
    pub fn parse(text: &str) -> Result<Self, SpecError> {
        let mut millis: Vec<u32> = Vec::new();
        for (line, content) in lines(text) {
            if millis.len() == MAX_STEPS {
                return Err(too_many("lines").within(&place(line)));
            }
            let milli = milli(content).map_err(|error| error.within(&place(line)))?;
            if let Some(before) = millis.last().filter(|before| milli < **before) {
                return Err(backwards(milli, *before).within(&place(line)));
            }
            millis.push(milli);
        }
        Self::new(millis)
    }

    /// The opportunities of a link with the capacity of `trace`, `bytes` each: one in the
    /// millisecond in which the capacity for it is complete. There is always one at the end of the
    /// trace, because the last one sets the period.
    ///
    /// # Errors
    /// More opportunities than a schedule may have, or too long a trace.
    pub fn from_trace(trace: &Trace, bytes: u32) -> Result<Self, SpecError> {
        const MILLI: u128 = 1_000_000;
        let unit = u128::from(bytes) * 8_000_000_000;
        let period = trace.duration().as_nanos().div_ceil(1_000_000);
        if period > u64::from(u32::MAX) {
            return Err(SpecError::new("the trace is too long for opportunities in milliseconds"));
        }
        let total: u128 = trace
            .steps()
            .map(|step| u128::from(step.rate.as_bps()) * u128::from(step.duration.as_nanos()))
            .sum();
        if total / unit >= MAX_STEPS as u128 {
            return Err(too_many("opportunities")
                .within(&format!("the trace carries {} times {bytes} bytes", total / unit)));
        }
        let mut millis = Vec::new();
        let (mut start, mut done) = (0u128, 0u128);
        for Step { rate, duration } in trace.steps() {
            let rate = u128::from(rate.as_bps());
            let end = start + u128::from(duration.as_nanos());
            let all = done + rate * (end - start);
            while (millis.len() as u128 + 1) * unit <= all {
                let due = start + ((millis.len() as u128 + 1) * unit - done).div_ceil(rate);
                millis.push(due.div_ceil(MILLI) as u32);
            }
            (start, done) = (end, all);
        }
        if millis.last().is_none_or(|last| u64::from(*last) < period) {
            millis.push(period as u32);
        }
        Self::new(millis)
    }

    /// The mean capacity of each `bin`, at `bytes` an opportunity. Rates are rounded down to a
    /// bit a second.
    ///
    /// # Errors
    /// A `bin` below a millisecond, or more of them than a trace may have steps.
    pub fn to_trace(&self, bin: Span, bytes: u32) -> Result<Trace, SpecError> {
        let bin = bin.as_millis();
        if bin == 0 {
            return Err(
                SpecError::new("the step is shorter than a millisecond").allow(["a time from 1ms"])
            );
        }
        let period = self.period_millis();
        if period / bin >= MAX_STEPS as u64 {
            return Err(too_many("steps"));
        }
        let mut next = 0;
        Trace::new((0..period.div_ceil(bin)).map(|index| {
            let (start, end) = (index * bin, ((index + 1) * bin).min(period));
            let count =
                self.millis[next..].partition_point(|milli| u64::from(*milli) <= end) as u64;
            next += count as usize;
            let bits = u128::from(count) * u128::from(bytes) * 8;
            let rate = (bits * 1000 / u128::from(end - start)) as u64;
            Step { rate: Rate::from_bps(rate), duration: Span::from_millis(end - start) }
        }))
    }

    /// The times of the opportunities, in milliseconds from the start of the schedule.
    pub fn millis(&self) -> &[u32] {
        &self.millis
    }

    pub fn period(&self) -> Span {
        Span::from_millis(self.period_millis())
    }

    /// The mean capacity at `bytes` an opportunity.
    pub fn mean(&self, bytes: u32) -> Rate {
        let bits = self.millis.len() as u64 * u64::from(bytes) * 8;
        Rate::from_bps(bits * 1000 / self.period_millis())
    }

    pub(crate) fn period_millis(&self) -> u64 {
        u64::from(*self.millis.last().expect("a schedule has an opportunity"))
    }
}

/// Writes lines that [`Schedule::parse`] reads back.
impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.millis.iter().try_for_each(|milli| writeln!(f, "{milli}"))
    }
}

const LINE: &str = "lines with a whole number of milliseconds, not decreasing";

fn milli(content: &str) -> Result<u32, SpecError> {
    content.parse().map_err(|_| {
        SpecError::new(format!("'{}' is not a time", excerpt(content)))
            .allow([format!("a whole number of milliseconds from 0 to {}", u32::MAX)])
    })
}

fn backwards(milli: u32, before: u32) -> SpecError {
    SpecError::new(format!("time runs backwards, from {before} to {milli}"))
        .allow([format!("{before} or more")])
}
