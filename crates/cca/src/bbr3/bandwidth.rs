//! Rates in segments.

use sojourn_core::{Rate, Span};

/// Segments per nanosecond, so that a volume is computed without a division.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub(crate) struct Bandwidth(f64);

impl Bandwidth {
    pub(crate) const ZERO: Self = Self(0.0);
    pub(crate) const INFINITY: Self = Self(f64::INFINITY);

    /// `segments` over `interval`, which must not be zero.
    pub(crate) fn of(segments: u32, interval: Span) -> Self {
        Self(f64::from(segments) / interval.as_nanos() as f64)
    }

    pub(crate) fn times(self, gain: f64) -> Self {
        Self(self.0 * gain)
    }

    pub(crate) fn max(self, other: Self) -> Self {
        Self(self.0.max(other.0))
    }

    pub(crate) fn min(self, other: Self) -> Self {
        Self(self.0.min(other.0))
    }

    /// Segments that pass in `span`.
    pub(crate) fn volume_in(self, span: Span) -> f64 {
        self.0 * span.as_nanos() as f64
    }

    /// Bits of payload per second, with segments of `smss` bytes.
    pub(crate) fn rate(self, smss: u32) -> Rate {
        Rate::from_bps((self.0 * f64::from(smss) * 8e9) as u64)
    }
}
