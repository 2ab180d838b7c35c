use alloc::sync::Arc;

use sojourn_core::{Framing, Queued, Rate, Time};

use super::Departure;
use super::clock::{Clock, work};
use super::course::Course;
use super::medium::Medium;
use crate::trace::{OnEnd, Trace};

/// Capacity that changes in steps. A packet under way at a change is finished at the new rate; at
/// rate zero nothing moves until capacity returns.
#[derive(Clone, Debug)]
pub struct TraceDriven {
    course: Course,
    medium: Medium,
    /// The clock of the present step, if it has capacity.
    clock: Clock,
    idle: bool,
    /// Bits flow again from `at` and `rest / rate` of a nanosecond.
    at: u64,
    rest: u64,
}

impl TraceDriven {
    /// `framing` determines the length of packets on the medium.
    pub fn new(trace: Arc<Trace>, on_end: OnEnd, framing: Framing) -> Self {
        let course = Course::new(trace, on_end);
        let medium = Medium::new(framing);
        let mut new = Self { course, medium, clock: Clock::new(1), idle: true, at: 0, rest: 0 };
        new.enter();
        new
    }

    #[inline]
    pub fn send(&mut self, now: Time, packet: &impl Queued) -> Departure {
        let bytes = self.medium.take(packet);
        self.seek(now.as_nanos());
        if !self.idle {
            let taken = self.clock.time_for(bytes);
            let (mut at, mut rest) = (self.at + taken.ns, self.rest + taken.rest);
            if rest >= self.clock.rate() {
                rest -= self.clock.rate();
                at += 1;
            }
            if at < self.course.end() {
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
            let left = self.course.end() - self.at;
            if ns < left || (ns == left && rest == 0) {
                self.at += ns;
                self.rest = rest;
                break;
            }
            // At most `total`, because `ns` reaches the end of the step.
            work = total - rate * left;
            self.at = self.course.end();
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
        self.course.capacity(now)
    }

    pub fn capacity_until(&self, now: Time) -> f64 {
        self.course.bytes_until(now)
    }

    pub(super) fn bytes_to_come(&self, now: Time) -> u64 {
        match self.at > now.as_nanos() && self.at != u64::MAX {
            true => {
                let end = self.course.bytes_until(Time::from_nanos(self.at));
                libm::ceil(end - self.course.bytes_until(now)) as u64
            }
            false => 0,
        }
    }

    pub(super) fn medium(&self) -> &Medium {
        &self.medium
    }

    /// Moves to the first moment from `now` on at which bits flow.
    #[inline]
    fn seek(&mut self, now: u64) {
        if now > self.at {
            self.at = now;
            self.rest = 0;
        }
        if self.at >= self.course.end() || self.idle {
            self.seek_step();
        }
    }

    fn seek_step(&mut self) {
        let at = self.course.seek_capacity(self.at);
        if at > self.at {
            self.at = at;
            self.rest = 0;
        }
        self.enter();
    }

    fn enter(&mut self) {
        let rate = self.course.rate();
        self.idle = rate == Rate::ZERO;
        if !self.idle {
            self.clock.set_rate(rate.as_bps());
        }
    }
}
