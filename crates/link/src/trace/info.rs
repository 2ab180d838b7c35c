use sojourn_core::{Rate, Span};

use super::Trace;

/// What `sojourn trace info` shows. Mean and median weigh each step by its duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Info {
    pub steps: usize,
    pub duration: Span,
    pub mean: Rate,
    pub min: Rate,
    /// The lowest rate that is not an outage.
    pub min_above_zero: Rate,
    /// Half of the time the rate is this or lower.
    pub median: Rate,
    pub max: Rate,
    /// Time without capacity.
    pub outage: Span,
}

impl Trace {
    pub fn info(&self) -> Info {
        let mut steps: Vec<_> = self.steps().map(|step| (step.rate, step.duration)).collect();
        steps.sort_unstable();
        let duration = self.duration();
        let work: u128 = steps
            .iter()
            .map(|(rate, span)| u128::from(rate.as_bps()) * u128::from(span.as_nanos()))
            .sum();
        let mut passed = 0;
        let median = steps
            .iter()
            .find(|(_, span)| {
                passed += span.as_nanos();
                passed * 2 >= duration.as_nanos()
            })
            .map_or(Rate::ZERO, |(rate, _)| *rate);
        Info {
            steps: steps.len(),
            duration,
            mean: Rate::from_bps((work / u128::from(duration.as_nanos())) as u64),
            min: steps.first().map_or(Rate::ZERO, |(rate, _)| *rate),
            min_above_zero: steps
                .iter()
                .map(|(rate, _)| *rate)
                .find(|rate| *rate > Rate::ZERO)
                .unwrap_or(Rate::ZERO),
            median,
            max: steps.last().map_or(Rate::ZERO, |(rate, _)| *rate),
            outage: self.time_below(Rate::from_bps(1)),
        }
    }

    /// How long the rate is under `threshold`.
    pub fn time_below(&self, threshold: Rate) -> Span {
        let below = self.steps().filter(|step| step.rate < threshold);
        below.fold(Span::ZERO, |sum, step| sum + step.duration)
    }

    /// The share of the time in which the rate is under `threshold`.
    pub fn share_below(&self, threshold: Rate) -> f64 {
        self.time_below(threshold).as_secs_f64() / self.duration().as_secs_f64()
    }
}
