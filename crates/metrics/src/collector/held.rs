//! The time integral of something that is sampled and keeps its value until the next sample.

use sojourn_core::Time;

#[derive(Clone, Copy, Debug)]
pub(super) struct Held {
    /// Time before this is not counted.
    from: Time,
    since: Time,
    value: Option<f64>,
    integral: f64,
    seconds: f64,
}

impl Held {
    pub(super) fn new(from: Time) -> Self {
        Self { from, since: from, value: None, integral: 0.0, seconds: 0.0 }
    }

    pub(super) fn set(&mut self, now: Time, value: f64) {
        self.hold_until(now);
        self.since = now;
        self.value = Some(value);
    }

    /// The mean over the time in which the value was known, up to `end`.
    pub(super) fn mean(mut self, end: Time) -> Option<f64> {
        self.hold_until(end);
        (self.seconds > 0.0).then(|| self.integral / self.seconds)
    }

    fn hold_until(&mut self, now: Time) {
        if let Some(value) = self.value {
            let seconds = now.since(self.since.max(self.from)).as_secs_f64();
            self.integral += value * seconds;
            self.seconds += seconds;
        }
    }
}

#[cfg(test)]
mod tests {
    use sojourn_core::Span;

    use super::*;

    #[test]
    fn a_sample_holds_until_the_next_and_counts_from_the_warm_up() {
        let at = |s| Time::ZERO + Span::from_secs(s);
        let mut held = Held::new(at(2));
        held.set(at(0), 10.0);
        held.set(at(3), 20.0);
        assert_eq!(held.mean(at(5)), Some(50.0 / 3.0));
        assert_eq!(Held::new(at(2)).mean(at(5)), None);
    }
}
