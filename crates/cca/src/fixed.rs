//! The kernel's numbers: bandwidth and gains in fixed point, and a clock that ticks in jiffies.
//!
//! Both kernel versions of BBR compute with these numbers and round as the kernel does.

use core::fmt;

use sojourn_core::{Rate, Span, Time};

/// Segments per microsecond, in units of 2⁻²⁴: about 715 bit/s for full packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Bw(u64);

impl Bw {
    const SHIFT: u32 = 24;
    pub(crate) const ZERO: Self = Self(0);
    /// Smallest bandwidth that is not zero.
    pub(crate) const LEAST: Self = Self(1);
    /// No bound: the largest value of the kernel's 32 bits.
    pub(crate) const UNLIMITED: Self = Self(u32::MAX as u64);

    /// `segments` over `micros`, rounded down; `micros` must not be zero.
    pub(crate) fn of(segments: u64, micros: u64) -> Self {
        Self(((segments << Self::SHIFT) / micros).min(Self::UNLIMITED.0))
    }

    /// `segments` over `micros`, rounded up; `micros` must not be zero.
    pub(crate) fn of_rounded_up(segments: u64, micros: u64) -> Self {
        Self((segments << Self::SHIFT).div_ceil(micros).min(Self::UNLIMITED.0))
    }

    pub(crate) fn times(self, gain: Gain) -> Self {
        Self((self.0 * u64::from(gain.0)) >> Gain::SHIFT)
    }

    pub(crate) fn difference(self, other: Self) -> Self {
        Self(self.0.abs_diff(other.0))
    }

    pub(crate) fn mean(self, other: Self) -> Self {
        Self((self.0 + other.0) / 2)
    }

    pub(crate) fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// Whole segments that pass in `micros`.
    pub(crate) fn segments_in(self, micros: u64) -> u64 {
        self.0.saturating_mul(micros) >> Self::SHIFT
    }

    /// Segments that pass in `micros`, times `gain`, rounded up so that no feedback loop shrinks
    /// the result.
    pub(crate) fn bdp(self, micros: u64, gain: Gain) -> u32 {
        let scaled = self.0.saturating_mul(micros).saturating_mul(u64::from(gain.0)) >> Gain::SHIFT;
        scaled.div_ceil(1 << Self::SHIFT).min(u64::from(u32::MAX)) as u32
    }

    /// Payload bytes per second, `margin` percent below this bandwidth times `gain`.
    pub(crate) fn bytes_per_sec(self, mss: u32, gain: Gain, margin: u32) -> u64 {
        let per_micro = self.0.saturating_mul(u64::from(mss)).saturating_mul(u64::from(gain.0));
        let scaled = (per_micro >> Gain::SHIFT).saturating_mul(10_000 * u64::from(100 - margin));
        scaled >> Self::SHIFT
    }

    pub(crate) fn rate(self, mss: u32) -> Rate {
        Rate::from_bytes_per_sec(self.bytes_per_sec(mss, Gain::ONE, 0))
    }
}

/// A factor or a share, in 1/256.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Gain(u32);

impl Gain {
    pub(crate) const SHIFT: u32 = 8;
    pub(crate) const ONE: Self = Self(256);

    pub(crate) const fn of_256(parts: u32) -> Self {
        Self(parts)
    }

    /// The nearest representable value.
    pub(crate) fn nearest(value: f64) -> Self {
        Self((value * 256.0 + 0.5) as u32)
    }

    pub(crate) const fn parts(self) -> u32 {
        self.0
    }

    /// One minus this share.
    pub(crate) const fn complement(self) -> Self {
        Self(256_u32.saturating_sub(self.0))
    }

    pub(crate) const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// This share of `count`, rounded down.
    pub(crate) const fn of(self, count: u64) -> u64 {
        count.saturating_mul(self.0 as u64) >> Self::SHIFT
    }

    /// This share of `count`, rounded up.
    pub(crate) const fn of_rounded_up(self, count: u64) -> u64 {
        (count.saturating_mul(self.0 as u64) + 255) >> Self::SHIFT
    }
}

impl fmt::Display for Gain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // 1/256 has eight decimals, so this is exact and reads back.
        write!(f, "{}", f64::from(self.0) / 256.0)
    }
}

/// `span` as the kernel's microsecond clock measures it.
pub(crate) fn whole_micros(span: Span) -> Span {
    Span::from_micros(span.as_micros())
}

/// How long before the run's beginning the last tick was, if ticks come at `phase` and every `tick` before and after it.
pub(crate) fn before_the_run(tick: Span, phase: Span) -> Span {
    let (tick, phase) = (tick.as_nanos().max(1), phase.as_nanos());
    Span::from_nanos((tick - phase % tick) % tick)
}

/// The last tick that is not after `now`; the beginning of the run, if that was before it.
#[inline]
pub(crate) fn last_tick(now: Time, tick: Span, before: Span) -> Time {
    let ticks = (now + before).as_nanos() / tick.as_nanos();
    Time::from_nanos((ticks * tick.as_nanos()).saturating_sub(before.as_nanos()))
}

/// The kernel's coarse clock. With a tick of zero it is exact.
#[derive(Clone, Debug)]
pub(crate) struct Jiffies {
    tick: Span,
    /// From the last tick before the run to its beginning.
    before: Span,
    current: Time,
}

impl Jiffies {
    pub(crate) fn new(tick: Span, phase: Span) -> Self {
        Self { tick, before: before_the_run(tick, phase), current: Time::ZERO }
    }

    /// The last tick at or before `now`, which must not be before an earlier `now`.
    pub(crate) fn at(&mut self, now: Time) -> Time {
        if self.tick.is_zero() {
            return now;
        }
        // The division runs only at the first call in a tick.
        if now.after(self.current) >= self.tick {
            self.current = last_tick(now, self.tick, self.before);
        }
        self.current
    }

    /// `span` in whole ticks, rounded up.
    pub(crate) fn whole(&self, span: Span) -> Span {
        if self.tick.is_zero() {
            return span;
        }
        self.tick * span.as_nanos().div_ceil(self.tick.as_nanos())
    }
}
