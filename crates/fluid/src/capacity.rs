//! What a link can carry: the exact integral of its rate.

use alloc::vec::Vec;

use sojourn_link::{OnEnd, RateConfig, Step};

/// Bytes that a link can carry, as a function of time.
#[derive(Clone, Debug)]
pub(crate) enum Capacity {
    /// Bytes a second.
    Fixed(f64),
    Steps {
        /// When each step begins, what had been carried by then, and its rate.
        steps: Vec<(f64, f64, f64)>,
        period: f64,
        whole: f64,
        on_end: OnEnd,
    },
}

impl Capacity {
    /// `factor` is the part of the medium's bytes that are the packet's own. `None` if the rate has
    /// no fluid: no limit, or bursts of opportunities drawn at random.
    pub(crate) fn of(rate: &RateConfig, factor: f64) -> Option<Self> {
        let bytes = |rate: sojourn_core::Rate| rate.as_bps() as f64 / 8.0 * factor;
        let of_steps = |all: &mut dyn Iterator<Item = Step>, on_end| {
            let (mut time, mut carried) = (0.0, 0.0);
            let mut steps = Vec::new();
            for Step { rate, duration } in all {
                let rate = bytes(rate);
                steps.push((time, carried, rate));
                time += duration.as_secs_f64();
                carried += rate * duration.as_secs_f64();
            }
            Self::Steps { steps, period: time, whole: carried, on_end }
        };
        match rate {
            RateConfig::Fixed { rate, .. } => Some(Self::Fixed(bytes(*rate))),
            RateConfig::Htb(class) => Some(Self::Fixed(bytes(class.rate))),
            RateConfig::Trace { trace, serving } => {
                Some(of_steps(&mut trace.steps(), serving.on_end))
            }
            RateConfig::Mahimahi { schedule, size } => {
                let trace = schedule.to_trace(BIN, size.bytes()).ok()?;
                let steps = of_steps(&mut trace.steps(), OnEnd::Wrap);
                Some(steps)
            }
            RateConfig::Unlimited | RateConfig::Blockage(_) | RateConfig::Brownian(_) => None,
        }
    }

    /// Bytes from time zero to `time`.
    pub(crate) fn until(&self, time: f64) -> f64 {
        match self {
            Self::Fixed(rate) => rate * time,
            Self::Steps { steps, period, whole, on_end } => {
                let (rounds, rest) = split(time, *period, *on_end);
                let (begins, carried, rate) = steps[step_at(steps, rest)];
                rounds * whole + carried + rate * (rest - begins)
            }
        }
    }

    pub(crate) fn rate_at(&self, time: f64) -> f64 {
        match self {
            Self::Fixed(rate) => *rate,
            Self::Steps { steps, period, on_end, .. } => {
                steps[step_at(steps, split(time, *period, *on_end).1)].2
            }
        }
    }

    /// The first change of the rate after `time`.
    pub(crate) fn next_change(&self, time: f64) -> f64 {
        match self {
            Self::Fixed(_) => f64::INFINITY,
            Self::Steps { steps, period, on_end, .. } => {
                let (rounds, rest) = split(time, *period, *on_end);
                let next = steps.get(step_at(steps, rest) + 1).map_or(*period, |step| step.0);
                let next = rounds * period + next;
                match on_end {
                    OnEnd::Hold if next >= *period => f64::INFINITY,
                    // Rounding may have put the change at this very time.
                    _ if next <= time => time + SOON,
                    _ => next,
                }
            }
        }
    }

    /// The first moment from `time` on at which it carries something.
    pub(crate) fn opens(&self, time: f64) -> f64 {
        let mut time = time;
        while self.rate_at(time) <= 0.0 {
            time = if self.mean() > 0.0 { self.next_change(time) } else { f64::INFINITY };
            if time.is_infinite() {
                break;
            }
        }
        time
    }

    pub(crate) fn mean(&self) -> f64 {
        match self {
            Self::Fixed(rate) => *rate,
            Self::Steps { period, whole, .. } => whole / period,
        }
    }
}

/// Opportunities are counted in bins of this length.
const BIN: sojourn_core::Span = sojourn_core::Span::from_millis(20);
const SOON: f64 = 1e-6;

/// Whole rounds of the trace, and the time in the present one.
fn split(time: f64, period: f64, on_end: OnEnd) -> (f64, f64) {
    match on_end {
        OnEnd::Hold => (0.0, time),
        OnEnd::Wrap => {
            let rounds = libm::floor(time / period);
            (rounds, (time - rounds * period).max(0.0))
        }
    }
}

fn step_at(steps: &[(f64, f64, f64)], rest: f64) -> usize {
    steps.partition_point(|step| step.0 <= rest).max(1) - 1
}
