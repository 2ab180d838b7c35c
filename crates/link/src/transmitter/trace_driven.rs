use std::sync::Arc;

use sojourn_core::{Queued, Rate, Time};

use super::clock::{Clock, work};
use super::{Departure, bytes_on_medium};
use crate::trace::{OnEnd, Trace};

/// Capacity that changes in steps. A packet that meets a change is finished at the new rate; at
/// rate zero nothing moves until capacity returns.
#[derive(Clone, Debug)]
pub struct TraceDriven {
    trace: Arc<Trace>,
    on_end: OnEnd,
    overhead: i32,
    /// When the trace's present repetition began.
    lap: u64,
    /// The step under way and when it ends.
    step: usize,
    end: u64,
    /// Of that step, when it has one.
    clock: Clock,
    idle: bool,
    /// Bits flow again from `at` and `rest / rate` of a nanosecond.
    at: u64,
    rest: u64,
}

impl TraceDriven {
    /// `overhead` bytes are added to each wire packet; negative ones are taken off.
    pub fn new(trace: Arc<Trace>, on_end: OnEnd, overhead: i32) -> Self {
        let mut new = Self {
            trace,
            on_end,
            overhead,
            lap: 0,
            step: 0,
            end: 0,
            clock: Clock::new(1),
            idle: true,
            at: 0,
            rest: 0,
        };
        new.enter(0);
        new
    }

    #[inline]
    pub fn send(&mut self, now: Time, packet: &impl Queued) -> Departure {
        let bytes = bytes_on_medium(packet, self.overhead);
        self.seek(now.as_nanos());
        if !self.idle {
            let taken = self.clock.time_for(bytes);
            let (mut at, mut rest) = (self.at + taken.ns, self.rest + taken.rest);
            if rest >= self.clock.rate() {
                rest -= self.clock.rate();
                at += 1;
            }
            if at < self.end {
                (self.at, self.rest) = (at, rest);
                let out = Time::from_nanos(at);
                return Departure { out, ready: out };
            }
        }
        self.send_across_steps(work(bytes))
    }

    fn send_across_steps(&mut self, mut work: u64) -> Departure {
        while self.at != u64::MAX {
            let rate = self.clock.rate();
            let total = work.saturating_add(self.rest);
            let (ns, rest) = (total / rate, total % rate);
            let left = self.end - self.at;
            if ns < left || (ns == left && rest == 0) {
                self.at += ns;
                self.rest = rest;
                break;
            }
            // No more than `total`, since `ns` reaches the end of the step.
            work = total - rate * left;
            self.at = self.end;
            self.rest = 0;
            self.seek(self.at);
        }
        let out = Time::from_nanos(self.at);
        self.seek(self.at);
        Departure { out, ready: Time::from_nanos(self.at) }
    }

    #[inline]
    pub fn ready_at(&mut self, now: Time) -> Time {
        self.seek(now.as_nanos());
        Time::from_nanos(self.at)
    }

    pub fn capacity(&self, now: Time) -> Rate {
        let (now, length) = (now.as_nanos(), self.trace.duration().as_nanos());
        match self.on_end {
            OnEnd::Wrap => self.trace.rate_at(now % length),
            OnEnd::Hold => self.trace.rate_at(now.min(length - 1)),
        }
    }

    /// Moves to the first moment from `now` on at which bits flow.
    #[inline]
    fn seek(&mut self, now: u64) {
        if now > self.at {
            self.at = now;
            self.rest = 0;
        }
        if self.at >= self.end || self.idle {
            self.seek_step();
        }
    }

    fn seek_step(&mut self) {
        if self.at >= self.end {
            let length = self.trace.duration().as_nanos();
            // Repetitions in which nothing was sent are passed at once.
            if self.on_end == OnEnd::Wrap && self.at - self.lap >= length {
                self.lap += (self.at - self.lap) / length * length;
            }
            self.enter(self.trace.step_at(self.at - self.lap));
        }
        while self.idle && self.at != u64::MAX {
            self.at = self.end;
            self.rest = 0;
            if self.step + 1 < self.trace.len() {
                self.enter(self.step + 1);
            } else if self.on_end == OnEnd::Wrap {
                self.lap = self.end;
                self.enter(0);
            }
        }
    }

    fn enter(&mut self, step: usize) {
        let (rate, end) = self.trace.step_end(step);
        self.step = step;
        self.end = match self.on_end {
            OnEnd::Hold if step + 1 == self.trace.len() => u64::MAX,
            _ => self.lap.saturating_add(end),
        };
        self.idle = rate == Rate::ZERO;
        if !self.idle {
            self.clock.set_rate(rate.as_bps());
        }
    }
}
