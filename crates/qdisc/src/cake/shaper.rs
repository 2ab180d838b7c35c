//! The shaper: a clock that says when the next packet may go. Idle time earns no credit, so there
//! are no bursts.

use sojourn_core::{Queued, Rate, Span, Time};

use super::config::Config;
use sojourn_core::Framing;

/// Nanoseconds per byte as a fraction, so that a packet's time is a multiplication and a shift.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pace {
    ns_per_byte: u64,
    shift: u32,
}

impl Pace {
    /// Every packet takes no time: not shaped.
    pub(crate) const UNLIMITED: Self = Self { ns_per_byte: 0, shift: 0 };

    /// Bits of the fraction before it is normalised, and after.
    const FRACTION: u32 = 34;

    /// The least bytes per second of any rate.
    const LEAST_RATE: u64 = 64;

    pub(crate) fn new(rate: Rate) -> Self {
        let bytes_per_second = rate.as_bytes_per_sec().max(Self::LEAST_RATE);
        let scaled = (1_000_000_000u128 << Self::FRACTION) / u128::from(bytes_per_second);
        let excess = (128 - scaled.leading_zeros()).saturating_sub(Self::FRACTION);
        Self { ns_per_byte: (scaled >> excess) as u64, shift: Self::FRACTION - excess }
    }

    #[inline]
    pub(crate) fn time_for(self, bytes: u32) -> Span {
        Span::from_nanos((u64::from(bytes) * self.ns_per_byte) >> self.shift)
    }
}

/// When a tin's next packet is due by the tin's own rate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Schedule {
    pub(crate) pace: Pace,
    pub(crate) time_next_packet: Time,
}

impl Schedule {
    /// Moves on by a packet of `len` on the link. A tin behind its schedule may catch up.
    #[inline]
    fn advance(&mut self, len: u32, now: Time) {
        let duration = self.pace.time_for(len);
        if self.time_next_packet < now {
            self.time_next_packet = self.time_next_packet.later(duration);
        } else {
            self.time_next_packet = self.time_next_packet.max(now.later(duration));
        }
    }
}

#[derive(Debug)]
pub(crate) struct Shaper {
    pace: Pace,
    framing: Framing,
    /// The framing does not change the length of single packets on Ethernet.
    is_plain: bool,
    is_shaping: bool,
    time_next_packet: Time,
    /// A clock at two thirds of the rate that is not charged for drops, so that drops alone can't
    /// keep the link idle for long.
    failsafe_next_packet: Time,
    pub(crate) overlimits: u64,
}

impl Shaper {
    pub(crate) fn new(pace: Pace, config: &Config) -> Self {
        Self {
            pace,
            framing: config.framing(),
            is_plain: config.framing() == Framing::default(),
            is_shaping: !config.bandwidth.is_unlimited(),
            time_next_packet: Time::ZERO,
            failsafe_next_packet: Time::ZERO,
            overlimits: 0,
        }
    }

    #[inline]
    pub(crate) fn is_shaping(&self) -> bool {
        self.is_shaping
    }

    /// A packet came to an empty queue, so the clock starts now: idle time earns nothing.
    #[inline]
    pub(crate) fn wake(&mut self, now: Time) {
        if self.time_next_packet < now {
            self.time_next_packet = now;
            self.failsafe_next_packet = now;
        }
    }

    #[inline]
    pub(crate) fn held_until(&mut self, now: Time) -> Option<Time> {
        let next = self.time_next_packet.min(self.failsafe_next_packet);
        if next > now {
            self.overlimits += 1;
            return Some(next);
        }
        None
    }

    /// Charges the link and the tin for a packet that goes out; returns its length on the link.
    #[inline(always)]
    pub(crate) fn charge<P: Queued>(&mut self, tin: &mut Schedule, packet: &P, now: Time) -> u32 {
        let len = if self.is_plain && packet.segments() == 1 {
            packet.wire_len()
        } else {
            self.framing.length_of(packet)
        };
        if self.is_shaping {
            tin.advance(len, now);
            let duration = self.pace.time_for(len);
            self.time_next_packet = self.time_next_packet.later(duration);
            let half = Span::from_nanos(duration.as_nanos() >> 1);
            self.failsafe_next_packet = self.failsafe_next_packet.later(duration).later(half);
        }
        len
    }

    /// Charges for a packet that was dropped; the failsafe clock is not charged.
    #[inline(never)]
    pub(crate) fn charge_dropped<P: Queued>(
        &mut self,
        tin: &mut Schedule,
        packet: &P,
        now: Time,
    ) -> u32 {
        let failsafe = self.failsafe_next_packet;
        let len = self.charge(tin, packet, now);
        self.failsafe_next_packet = failsafe;
        len
    }
}
