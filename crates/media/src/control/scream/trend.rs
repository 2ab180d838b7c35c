//! Whether queueing rises: its smoothed share of the target, times the correlation of successive samples
//! (RFC 8298 section 4.1.2.1).

use alloc::collections::VecDeque;

use sojourn_core::{Span, Time};

#[derive(Clone, Debug)]
pub(super) struct Trend {
    weight: f64,
    average: f64,
    history: VecDeque<f64>,
    sampled: Option<Time>,
    value: f64,
    remembered: f64,
}

const SAMPLES: usize = 20;
const INTERVAL: Span = Span::from_millis(50);

impl Trend {
    pub(super) fn new(weight: f64) -> Self {
        let history = VecDeque::new();
        Self { weight, average: 0.0, history, sampled: None, value: 0.0, remembered: 0.0 }
    }

    /// Takes a sample of queueing, as a share of its target.
    pub(super) fn on_sample(&mut self, now: Time, share: f64) {
        if self.sampled.is_some_and(|sampled| now.since(sampled) < INTERVAL) {
            return;
        }
        self.sampled = Some(now);
        self.average += self.weight * (share - self.average);
        self.history.push_back(share);
        if self.history.len() > SAMPLES {
            self.history.pop_front();
        }
        let mean = self.history.iter().sum::<f64>() / self.history.len() as f64;
        let off = self.history.iter().map(|share| share - mean);
        let r0 = off.clone().map(|off| off * off).sum::<f64>();
        let r1 = off.clone().zip(off.skip(1)).map(|(one, next)| one * next).sum::<f64>();
        let a = if r0 > 0.0 { r1 / r0 } else { 0.0 };
        self.value = (a * self.average).clamp(0.0, 1.0);
        self.remembered = self.value.max(0.99 * self.remembered);
    }

    pub(super) fn value(&self) -> f64 {
        self.value
    }

    pub(super) fn remembered(&self) -> f64 {
        self.remembered
    }
}
