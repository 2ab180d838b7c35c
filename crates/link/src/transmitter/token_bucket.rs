use sojourn_core::{Bytes, Queued, Rate, Time};

use super::Departure;
use super::clock::{Clock, bytes_of};

/// A single class of Linux's `htb`, ceil equal to rate.
///
/// A packet may leave while the tokens are not negative and is then charged its whole length. So it
/// leaves at once and the *next* one waits. Tokens are stored as the moment at which they are zero;
/// `now - zero` is their number, at most `burst`.
#[derive(Clone, Debug)]
pub struct TokenBucket {
    clock: Clock,
    overhead: u32,
    /// The size of the bucket, in nanoseconds at the rate.
    burst: i64,
    /// `zero` and `rest / rate` of a nanosecond. Before the run began while the bucket is full.
    zero: i64,
    rest: u64,
}

/// `tc` hands bursts to the kernel in ticks of this many nanoseconds, rounded up.
const TICK_NS: u64 = 64;

/// No debt is longer than this, however slow the class.
const MAX_DEBT_NS: i64 = 60_000_000_000;

impl TokenBucket {
    /// A class that begins with a full bucket. `overhead` bytes are added once to each packet of
    /// the queue, even if it stands for several segments.
    ///
    /// # Panics
    /// When the rate is zero.
    pub fn new(rate: Rate, burst: Bytes, overhead: u32) -> Self {
        let clock = Clock::new(rate.as_bps());
        let burst = time_of(burst, &clock);
        Self { clock, overhead, burst, zero: -burst, rest: 0 }
    }

    /// Gives the class another rate. Its debt stays, as a time.
    ///
    /// # Panics
    /// When the rate is zero.
    pub fn change(&mut self, rate: Rate, burst: Bytes) {
        self.zero += i64::from(self.rest > 0);
        self.rest = 0;
        self.clock.set_rate(rate.as_bps());
        self.burst = time_of(burst, &self.clock);
    }

    /// `tc`'s `mtu` and the kernel's `r2q` for classes that set none.
    pub const DEFAULT_MTU: Bytes = Bytes::new(1600);
    pub const DEFAULT_R2Q: u32 = 10;

    /// The burst that `tc` gives a class that sets none, if the kernel has a high-resolution clock:
    /// what the rate passes in a nanosecond, plus `mtu`.
    pub const fn default_burst(rate: Rate, mtu: Bytes) -> Bytes {
        Bytes::new(rate.as_bytes_per_sec() / 1_000_000_000 + mtu.as_u64())
    }

    /// The quantum in bytes that the kernel gives a class that sets none, from 1000 to 200 000.
    pub const fn default_quantum(rate: Rate, r2q: u32) -> u32 {
        match rate.as_bytes_per_sec() / r2q as u64 {
            0..1000 => 1000,
            quantum @ 1000..=200_000 => quantum as u32,
            _ => 200_000,
        }
    }

    #[inline]
    pub fn send(&mut self, now: Time, packet: &impl Queued) -> Departure {
        let out = self.ready_at(now);
        Departure { out, ready: self.charge(out, packet.wire_len() + self.overhead) }
    }

    /// `bytes` leave at `out`, when the bucket is ready; returns the time from which others may.
    #[inline]
    pub(super) fn charge(&mut self, out: Time, bytes: u32) -> Time {
        let taken = self.clock.time_for(bytes);
        let now = out.as_nanos() as i64;
        if self.zero < now - self.burst {
            self.zero = now - self.burst;
            self.rest = 0;
        }
        self.zero += taken.ns as i64;
        self.rest += taken.rest;
        if self.rest >= self.clock.rate() {
            self.rest -= self.clock.rate();
            self.zero += 1;
        }
        if self.zero - now >= MAX_DEBT_NS {
            self.zero = now + MAX_DEBT_NS - 1;
            self.rest = 0;
        }
        self.ready_at(out)
    }

    #[inline]
    pub fn ready_at(&self, now: Time) -> Time {
        let whole = self.zero + i64::from(self.rest > 0);
        now.max(Time::from_nanos(whole.max(0) as u64))
    }

    /// What filled the bucket, without what it began with.
    pub fn capacity_until(&self, now: Time) -> f64 {
        bytes_of(u128::from(self.clock.rate()) * u128::from(now.as_nanos()))
    }

    pub(super) fn overhead(&self) -> u32 {
        self.overhead
    }

    pub fn rate(&self) -> Rate {
        Rate::from_bps(self.clock.rate())
    }
}

/// The size of the bucket, in nanoseconds at its rate.
fn time_of(burst: Bytes, clock: &Clock) -> i64 {
    let work = u128::from(burst.as_u64()) * 8_000_000_000;
    let ticks = work.div_ceil(u128::from(TICK_NS) * u128::from(clock.rate()));
    i64::try_from(ticks * u128::from(TICK_NS)).unwrap_or(i64::MAX / 2)
}
