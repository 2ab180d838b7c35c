//! The capacity of the link, estimated from the rate that arrives during over-use. Near it, the
//! controller raises its rate slowly.

#[derive(Clone, Debug)]
pub(super) struct LinkCapacity {
    /// In kbit/s.
    estimate: Option<f64>,
    /// Variance divided by the estimate.
    deviation: f64,
}

const WEIGHT: f64 = 0.05;
const LEAST_DEVIATION: f64 = 0.4;
const MOST_DEVIATION: f64 = 2.5;

impl LinkCapacity {
    pub(super) fn new() -> Self {
        Self { estimate: None, deviation: LEAST_DEVIATION }
    }

    /// Takes a sample: `rate` bit/s arrive during over-use.
    pub(super) fn on_overuse(&mut self, rate: f64) {
        let sample = rate / 1e3;
        let estimate = match self.estimate {
            None => sample,
            Some(estimate) => (1.0 - WEIGHT) * estimate + WEIGHT * sample,
        };
        let error = estimate - sample;
        self.deviation =
            (1.0 - WEIGHT) * self.deviation + WEIGHT * error * error / estimate.max(1.0);
        self.deviation = self.deviation.clamp(LEAST_DEVIATION, MOST_DEVIATION);
        self.estimate = Some(estimate);
    }

    pub(super) fn forget(&mut self) {
        self.estimate = None;
    }

    /// In bit/s.
    pub(super) fn estimate(&self) -> Option<f64> {
        self.estimate.map(|kbps| kbps * 1e3)
    }

    pub(super) fn is_above(&self, rate: f64) -> bool {
        self.estimate.is_some_and(|estimate| rate / 1e3 > estimate + 3.0 * self.spread(estimate))
    }

    pub(super) fn is_below(&self, rate: f64) -> bool {
        self.estimate.is_some_and(|estimate| rate / 1e3 < estimate - 3.0 * self.spread(estimate))
    }

    fn spread(&self, estimate: f64) -> f64 {
        libm::sqrt(self.deviation * estimate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_megabit_is_known_to_60_kilobits_at_first() {
        let mut capacity = LinkCapacity::new();
        assert!(!capacity.is_above(1e9) && !capacity.is_below(0.0));
        capacity.on_overuse(1e6);
        // Three times the root of 0.4 · 1000: a sample without error gives 0.38, below the least deviation of 0.4.
        assert!(capacity.is_above(1.061e6) && !capacity.is_above(1.059e6));
        assert!(capacity.is_below(0.939e6) && !capacity.is_below(0.941e6));
    }
}
