use alloc::sync::Arc;

use sojourn_core::{Rate, Time};

use super::clock::bytes_of;
use crate::trace::{OnEnd, Trace};

/// The present step of a trace.
#[derive(Clone, Debug)]
pub(super) struct Course {
    trace: Arc<Trace>,
    on_end: OnEnd,
    /// When the trace's present repetition began.
    lap: u64,
    step: usize,
    rate: Rate,
    end: u64,
}

impl Course {
    /// Begins with the first step.
    pub(super) fn new(trace: Arc<Trace>, on_end: OnEnd) -> Self {
        let mut new = Self { trace, on_end, lap: 0, step: 0, rate: Rate::ZERO, end: 0 };
        new.enter(0);
        new
    }

    #[inline]
    pub(super) fn rate(&self) -> Rate {
        self.rate
    }

    /// When the step ends; `u64::MAX` for a step that stays.
    #[inline]
    pub(super) fn end(&self) -> u64 {
        self.end
    }

    /// Goes to the step at `at`, which is not before the present one.
    pub(super) fn seek(&mut self, at: u64) {
        if at < self.end {
            return;
        }
        let length = self.trace.duration().as_nanos();
        // Repetitions in which nothing was sent are skipped at once.
        if self.on_end == OnEnd::Wrap && at - self.lap >= length {
            self.lap += (at - self.lap) / length * length;
        }
        self.enter(self.trace.step_at(at - self.lap));
    }

    /// Goes to the first moment from `at` on at which there is capacity, and returns it; `u64::MAX`
    /// if there will be none.
    pub(super) fn seek_capacity(&mut self, mut at: u64) -> u64 {
        self.seek(at);
        while self.rate == Rate::ZERO && at != u64::MAX {
            at = self.end;
            if self.step + 1 < self.trace.len() {
                self.enter(self.step + 1);
            } else if self.on_end == OnEnd::Wrap {
                self.lap = self.end;
                self.enter(0);
            }
        }
        at
    }

    fn enter(&mut self, step: usize) {
        let (rate, end) = self.trace.step_end(step);
        self.step = step;
        self.rate = rate;
        self.end = match self.on_end {
            OnEnd::Hold if step + 1 == self.trace.len() => u64::MAX,
            _ => self.lap.saturating_add(end),
        };
    }

    /// Bytes that could pass until `now`.
    pub(super) fn bytes_until(&self, now: Time) -> f64 {
        let (now, length) = (now.as_nanos(), self.trace.duration().as_nanos());
        let work = match self.on_end {
            OnEnd::Wrap => {
                u128::from(now / length) * self.trace.work_until(length)
                    + self.trace.work_until(now % length)
            }
            OnEnd::Hold => {
                let rest = u128::from(now.saturating_sub(length));
                let last = self.trace.rate_at(length - 1).as_bps();
                self.trace.work_until(now.min(length)) + rest * u128::from(last)
            }
        };
        bytes_of(work)
    }

    /// The capacity at `now`, independent of the present step.
    pub(super) fn capacity(&self, now: Time) -> Rate {
        let (now, length) = (now.as_nanos(), self.trace.duration().as_nanos());
        match self.on_end {
            OnEnd::Wrap => self.trace.rate_at(now % length),
            OnEnd::Hold => self.trace.rate_at(now.min(length - 1)),
        }
    }
}
