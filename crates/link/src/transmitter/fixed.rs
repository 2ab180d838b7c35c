use sojourn_core::{Queued, Rate, Time};

use super::clock::{Clock, bytes_of};
use super::{Departure, bytes_on_medium};

/// One rate for ever. A packet that follows another starts where that one ended, to the fraction
/// of a nanosecond, so the long-run rate is exact.
#[derive(Clone, Debug)]
pub struct Fixed {
    clock: Clock,
    overhead: i32,
    /// The last packet's end: `ready` and `rest / rate` of a nanosecond.
    ready: u64,
    rest: u64,
}

impl Fixed {
    /// `overhead` bytes are added to each wire packet; negative ones are taken off.
    ///
    /// # Panics
    /// When the rate is zero.
    pub fn new(rate: Rate, overhead: i32) -> Self {
        Self { clock: Clock::new(rate.as_bps()), overhead, ready: 0, rest: 0 }
    }

    #[inline(always)]
    pub fn send(&mut self, now: Time, packet: &impl Queued) -> Departure {
        let taken = self.clock.time_for(bytes_on_medium(packet, self.overhead));
        let now = now.as_nanos();
        if now > self.ready {
            self.ready = now;
            self.rest = 0;
        }
        self.ready += taken.ns;
        self.rest += taken.rest;
        if self.rest >= self.clock.rate() {
            self.rest -= self.clock.rate();
            self.ready += 1;
        }
        let out = Time::from_nanos(self.ready);
        Departure { out, ready: out }
    }

    #[inline]
    pub fn ready_at(&self, now: Time) -> Time {
        now.max(Time::from_nanos(self.ready))
    }

    pub fn capacity_until(&self, now: Time) -> f64 {
        bytes_of(u128::from(self.clock.rate()) * u128::from(now.as_nanos()))
    }

    pub(super) fn overhead(&self) -> i32 {
        self.overhead
    }

    pub fn rate(&self) -> Rate {
        Rate::from_bps(self.clock.rate())
    }
}
