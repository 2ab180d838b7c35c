use sojourn_core::{Framing, Queued, Rate, Time};

use super::Departure;
use super::clock::{Clock, bytes_of};
use super::medium::Medium;

/// One constant rate. A packet that directly follows another starts at the fraction of a nanosecond
/// at which that one ended, so the long-run rate is exact.
#[derive(Clone, Debug)]
pub struct Fixed {
    clock: Clock,
    medium: Medium,
    /// The last packet's end: `ready` and `rest / rate` of a nanosecond.
    ready: u64,
    rest: u64,
    /// The work that could be done until `since`, when the rate last changed.
    done: u128,
    since: u64,
}

impl Fixed {
    /// `framing` determines the length of packets on the medium.
    ///
    /// # Panics
    /// When the rate is zero.
    pub fn new(rate: Rate, framing: Framing) -> Self {
        let clock = Clock::new(rate.as_bps());
        Self { clock, medium: Medium::new(framing), ready: 0, rest: 0, done: 0, since: 0 }
    }

    /// From `now` on packets are sent at `rate`. One that is being sent ends as it began.
    ///
    /// # Panics
    /// When the rate is zero.
    pub fn set_rate(&mut self, now: Time, rate: Rate) {
        self.done = self.work_until(now);
        self.since = now.as_nanos();
        self.clock.set_rate(rate.as_bps());
        // Less than a nanosecond, in units of the old rate.
        self.rest = 0;
    }

    #[inline(always)]
    pub fn send(&mut self, now: Time, packet: &impl Queued) -> Departure {
        let taken = self.clock.time_for(self.medium.take(packet));
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

    #[inline(always)]
    pub fn send_if_idle(&mut self, now: Time, packet: &impl Queued) -> Option<Departure> {
        (now.as_nanos() >= self.ready).then(|| self.send(now, packet))
    }

    #[inline]
    pub fn ready_at(&self, now: Time) -> Time {
        now.max(Time::from_nanos(self.ready))
    }

    pub fn capacity_until(&self, now: Time) -> f64 {
        bytes_of(self.work_until(now))
    }

    pub(super) fn bytes_to_come(&self, now: Time) -> u64 {
        let left = u128::from(self.ready.saturating_sub(now.as_nanos()));
        (left * u128::from(self.clock.rate())).div_ceil(8_000_000_000) as u64
    }

    fn work_until(&self, now: Time) -> u128 {
        self.done + u128::from(self.clock.rate()) * u128::from(now.as_nanos() - self.since)
    }

    pub(super) fn medium(&self) -> &Medium {
        &self.medium
    }

    pub fn rate(&self) -> Rate {
        Rate::from_bps(self.clock.rate())
    }
}
