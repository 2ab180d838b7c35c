use alloc::vec::Vec;

use sojourn_core::{Rate, Span};

use super::Trace;

/// The content of `sojourn trace info`. Each step is weighted by its duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Info {
    pub steps: usize,
    pub duration: Span,
    pub mean: Rate,
    pub min: Rate,
    /// The lowest rate that is not an outage.
    pub min_above_zero: Rate,
    /// For half of the time the rate is at most this.
    pub median: Rate,
    pub max: Rate,
    /// Time without capacity.
    pub outage: Span,
}

/// A stretch of time in which the rate stays under a threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dip {
    /// From the start of the trace.
    pub onset: Span,
    pub length: Span,
    /// The lowest rate in it.
    pub floor: Rate,
}

impl Trace {
    pub fn info(&self) -> Info {
        let [min, median, max] = self.quantiles([0.0, 0.5, 1.0]);
        let above_zero = self.steps().map(|step| step.rate).filter(|rate| *rate > Rate::ZERO);
        Info {
            steps: self.len(),
            duration: self.duration(),
            mean: self.mean(),
            min,
            min_above_zero: above_zero.min().unwrap_or(Rate::ZERO),
            median,
            max,
            outage: self.time_below(Rate::from_bps(1)),
        }
    }

    /// The mean rate over the whole trace, rounded down to a bit a second.
    pub fn mean(&self) -> Rate {
        let duration = self.duration().as_nanos();
        Rate::from_bps((self.work_until(duration) / u128::from(duration)) as u64)
    }

    /// For each share of the time, from 0 to 1, the lowest rate that is not exceeded in it.
    pub fn quantiles<const N: usize>(&self, shares: [f64; N]) -> [Rate; N] {
        let mut steps: Vec<_> = self.steps().map(|step| (step.rate, step.duration)).collect();
        steps.sort_unstable();
        let duration = self.duration().as_nanos() as f64;
        shares.map(|share| {
            let mut passed = 0;
            let reached = steps.iter().find(|(_, span)| {
                passed += span.as_nanos();
                passed as f64 >= share * duration
            });
            reached.or(steps.last()).map_or(Rate::ZERO, |(rate, _)| *rate)
        })
    }

    /// When the rate falls below `threshold`, and for how long. A trace may begin below it.
    pub fn dips(&self, threshold: Rate) -> Vec<Dip> {
        let mut dips: Vec<Dip> = Vec::new();
        let (mut now, mut is_below) = (Span::ZERO, false);
        for step in self.steps() {
            match dips.last_mut().filter(|_| is_below) {
                _ if step.rate >= threshold => is_below = false,
                Some(dip) => {
                    dip.length += step.duration;
                    dip.floor = dip.floor.min(step.rate);
                }
                None => {
                    dips.push(Dip { onset: now, length: step.duration, floor: step.rate });
                    is_below = true;
                }
            }
            now += step.duration;
        }
        dips
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
