//! Capacity over time: as steps of a rate ([`Trace`]) or as Mahimahi's delivery opportunities
//! ([`Schedule`]), in several [`Format`]s. It reads and writes text, never files.

mod csv;
mod format;
mod gym;
mod info;
mod playback;
mod rfc8867;
mod samples;
mod schedule;
mod text;

#[cfg(test)]
mod tests;

use alloc::format;
use alloc::vec::Vec;

use sojourn_core::{Rate, Span, SpecError};

pub use format::Format;
pub use info::{Dip, Info};
pub use playback::{Playback, WITEST_STEP_OVERHEAD};
pub use rfc8867::{REFERENCES as RFC8867_REFERENCES, Rfc8867};
pub use schedule::Schedule;

/// A rate that lasts for a while; rate zero is an outage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    pub rate: Rate,
    pub duration: Span,
}

/// What happens at the end of a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnEnd {
    /// It begins again, as Mahimahi's do.
    #[default]
    Wrap,
    /// Its last rate stays.
    Hold,
}

sojourn_core::choice!(OnEnd { "wrap" = OnEnd::Wrap, "hold" = OnEnd::Hold });

/// Capacity that is constant in steps: at least one step, every step with a duration, and at least
/// one with capacity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    segments: Vec<Segment>,
    /// Bits times 10⁹ that it carries before each [`BLOCK`]th step.
    work: Vec<u128>,
    peak: Rate,
}

/// Between two sums of a trace there are so many steps: few to add, and the sums take little memory.
const BLOCK: usize = 32;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Segment {
    /// Nanoseconds from the beginning of the trace.
    end: u64,
    rate: Rate,
}

/// The most steps or lines a trace may have.
pub const MAX_STEPS: usize = 10_000_000;

/// The highest rate of a step: 10 Tbit/s.
pub const MAX_RATE: Rate = Rate::from_bps(10_000_000_000_000);

/// The longest step: eleven days.
pub const MAX_STEP: Span = Span::from_secs(1_000_000);

/// The longest trace: thirty years.
pub const MAX_DURATION: Span = Span::from_secs(1_000_000_000);

impl Trace {
    /// # Errors
    /// No steps, too many, one without duration or beyond the limits of this module, or no
    /// capacity in any.
    pub fn new(steps: impl IntoIterator<Item = Step>) -> Result<Self, SpecError> {
        let (mut segments, mut sums) = (Vec::new(), Vec::new());
        let (mut end, mut work, mut peak) = (Span::ZERO, 0, Rate::ZERO);
        for (index, Step { rate, duration }) in steps.into_iter().enumerate() {
            let step = || format!("step {}", index + 1);
            if index == MAX_STEPS {
                return Err(too_many("steps"));
            }
            if duration.is_zero() || duration > MAX_STEP {
                return Err(SpecError::new(format!("{} lasts {duration}", step()))
                    .allow([format!("a time above 0 and up to {MAX_STEP}")]));
            }
            if rate > MAX_RATE {
                return Err(SpecError::new(format!("{} has rate {rate}", step()))
                    .allow([format!("a rate from 0 to {MAX_RATE}")]));
            }
            end += duration;
            if end > MAX_DURATION {
                return Err(SpecError::new(format!("the trace lasts longer than {MAX_DURATION}")));
            }
            if index.is_multiple_of(BLOCK) {
                sums.push(work);
            }
            work += u128::from(rate.as_bps()) * u128::from(duration.as_nanos());
            peak = peak.max(rate);
            segments.push(Segment { end: end.as_nanos(), rate });
        }
        if segments.is_empty() {
            return Err(SpecError::new("the trace has no steps").allow(["at least one"]));
        }
        if peak == Rate::ZERO {
            return Err(SpecError::new("the trace has no capacity at all: every rate is zero")
                .allow(["at least one rate above zero"]));
        }
        Ok(Self { segments, work: sums, peak })
    }

    pub fn steps(&self) -> impl Iterator<Item = Step> {
        let mut start = 0;
        self.segments.iter().map(move |segment| {
            let duration = Span::from_nanos(segment.end - start);
            start = segment.end;
            Step { rate: segment.rate, duration }
        })
    }

    /// The number of steps; never zero.
    #[expect(clippy::len_without_is_empty, reason = "a trace is never empty")]
    pub fn len(&self) -> usize {
        self.segments.len()
    }

    pub fn duration(&self) -> Span {
        Span::from_nanos(self.last().end)
    }

    /// The highest rate.
    pub fn peak(&self) -> Rate {
        self.peak
    }

    /// Bits times 10⁹ that it carries in its first `offset` nanoseconds; `offset` is at most its
    /// end.
    pub(crate) fn work_until(&self, offset: u64) -> u128 {
        let (mut work, mut start, steps) = self.since_sum(offset);
        for segment in steps {
            let end = segment.end.min(offset);
            work += u128::from(segment.rate.as_bps()) * u128::from(end - start);
            start = end;
        }
        work
    }

    /// The last sum that was made before `offset`, up to when, and the steps from there on.
    fn since_sum(&self, offset: u64) -> (u128, u64, &[Segment]) {
        let step = self.step_at(offset);
        let first = step / BLOCK * BLOCK;
        let start = first.checked_sub(1).map_or(0, |before| self.segments[before].end);
        (self.work[step / BLOCK], start, &self.segments[first..=step])
    }

    /// The rate `offset` nanoseconds into the trace; after its end the last one.
    pub(crate) fn rate_at(&self, offset: u64) -> Rate {
        self.segments[self.step_at(offset)].rate
    }

    /// The step under way `offset` nanoseconds into the trace; after its end the last one.
    pub(crate) fn step_at(&self, offset: u64) -> usize {
        self.segments.partition_point(|segment| segment.end <= offset).min(self.segments.len() - 1)
    }

    /// The rate of a step, and its end in nanoseconds from the beginning of the trace.
    pub(crate) fn step_end(&self, step: usize) -> (Rate, u64) {
        let segment = self.segments[step];
        (segment.rate, segment.end)
    }

    fn last(&self) -> Segment {
        *self.segments.last().expect("a trace has a step")
    }
}

fn too_many(what: &str) -> SpecError {
    SpecError::new(format!("too many {what}")).allow([format!("up to {MAX_STEPS}")])
}
