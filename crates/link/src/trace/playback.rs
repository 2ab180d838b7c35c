use core::fmt;

use sojourn_core::{Rate, Span, SpecError};

use super::{Step, Trace};

/// How a recorded trace is turned into the capacity that a link has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Playback {
    /// As recorded.
    #[default]
    Nominal,
    /// As the script of a 2020 testbed did, whose results were published: it cut the last digit of
    /// each interval (written with two decimals), each change of rate took `step_overhead`, and its
    /// shaper refused rate zero, so the rate before stayed.
    Witest2020 { step_overhead: Span },
}

/// How long a change of rate took in that testbed, fitted to its published goodput.
pub const WITEST_STEP_OVERHEAD: Span = Span::from_millis(16);

impl Playback {
    /// # Errors
    /// Nothing is left of the trace: every interval was cut to zero.
    pub fn apply(self, trace: &Trace) -> Result<Trace, SpecError> {
        let Self::Witest2020 { step_overhead } = self else {
            return Ok(trace.clone());
        };
        // The trace does not say which rate the shaper had before the first one that it accepted.
        let first = trace.steps().find(|step| step.rate > Rate::ZERO);
        let mut rate = first.map_or(Rate::ZERO, |step| step.rate);
        let steps = trace.steps().map(|step| {
            if step.rate > Rate::ZERO {
                rate = step.rate;
            }
            Step { rate, duration: cut_last_digit(step.duration) + step_overhead }
        });
        Trace::new(steps.filter(|step| !step.duration.is_zero()))
            .map_err(|error| error.within("playback witest-2020"))
    }
}

/// `0.25` becomes `0.2`: written with two decimals, then without the last of them.
fn cut_last_digit(interval: Span) -> Span {
    const HUNDREDTH: u64 = 10_000_000;
    let hundredths = (interval.as_nanos() + HUNDREDTH / 2) / HUNDREDTH;
    Span::from_nanos(hundredths / 10 * 10 * HUNDREDTH)
}

impl fmt::Display for Playback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nominal => f.write_str("nominal"),
            Self::Witest2020 { step_overhead } => {
                write!(f, "witest-2020 step_overhead {step_overhead}")
            }
        }
    }
}
