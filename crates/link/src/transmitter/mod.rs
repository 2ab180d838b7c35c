//! Transmitters: when a packet's last bit is out, and when the next packet may start.
//!
//! A transmitter holds no packets. It is offered a packet from the queue when
//! [`Transmitter::ready_at`] or the `ready` of the last [`Departure`] has come. What cannot start
//! yet stays in the queue, where its discipline sees it.

mod clock;
mod course;
mod fixed;
mod medium;
mod opportunities;
mod shaped_trace;
mod token_bucket;
mod trace_driven;

#[cfg(test)]
mod tests;

use sojourn_core::{Queued, Rate, Time};

pub use fixed::Fixed;
pub use opportunities::{Opportunities, OpportunitySize};
pub use shaped_trace::ShapedTrace;
pub use token_bucket::TokenBucket;
pub use trace_driven::TraceDriven;

/// The times of a packet that was sent. Both are [`Time::NEVER`] if a trace has ended without
/// capacity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departure {
    /// When its last bit is out; fractions of a nanosecond are cut here but kept inside.
    pub out: Time,
    /// When the next packet may start; never before `out`.
    pub ready: Time,
}

/// The sending side of a link.
#[derive(Clone, Debug)]
pub enum Transmitter {
    /// Takes no time.
    Unlimited,
    Fixed(Fixed),
    Trace(TraceDriven),
    Shaped(ShapedTrace),
    Opportunities(Opportunities),
    TokenBucket(TokenBucket),
}

impl Transmitter {
    /// Sends a packet that was taken from the queue at `now`. If that is too early, the packet
    /// waits.
    #[inline]
    pub fn send(&mut self, now: Time, packet: &impl Queued) -> Departure {
        // The commonest kind comes first, which costs a comparison instead of a jump table.
        if let Self::Fixed(fixed) = self {
            return fixed.send(now, packet);
        }
        self.send_otherwise(now, packet)
    }

    /// [`Transmitter::send`] if nothing is being sent; otherwise nothing has happened.
    #[inline]
    pub fn send_if_idle(&mut self, now: Time, packet: &impl Queued) -> Option<Departure> {
        if let Self::Fixed(fixed) = self {
            return fixed.send_if_idle(now, packet);
        }
        (self.ready_otherwise(now) == now).then(|| self.send_otherwise(now, packet))
    }

    #[inline(never)]
    fn send_otherwise(&mut self, now: Time, packet: &impl Queued) -> Departure {
        match self {
            Self::Unlimited => Departure { out: now, ready: now },
            Self::Fixed(fixed) => fixed.send(now, packet),
            Self::Trace(trace) => trace.send(now, packet),
            Self::Shaped(trace) => trace.send(now, packet),
            Self::Opportunities(opportunities) => opportunities.send(now, packet),
            Self::TokenBucket(bucket) => bucket.send(now, packet),
        }
    }

    /// The first moment from `now` on at which a packet may be taken from the queue. Ask when one
    /// arrives at an idle link.
    #[inline]
    pub fn ready_at(&mut self, now: Time) -> Time {
        if let Self::Fixed(fixed) = self {
            return fixed.ready_at(now);
        }
        self.ready_otherwise(now)
    }

    #[inline(never)]
    fn ready_otherwise(&mut self, now: Time) -> Time {
        match self {
            Self::Unlimited => now,
            Self::Fixed(fixed) => fixed.ready_at(now),
            Self::Trace(trace) => trace.ready_at(now),
            Self::Shaped(trace) => trace.ready_at(now),
            Self::Opportunities(opportunities) => opportunities.ready_at(now),
            Self::TokenBucket(bucket) => bucket.ready_at(now),
        }
    }

    /// Changes a fixed rate; any other stays.
    ///
    /// # Panics
    /// When the rate is zero.
    pub fn set_rate(&mut self, now: Time, rate: Rate) {
        if let Self::Fixed(fixed) = self {
            fixed.set_rate(now, rate);
        }
    }

    /// The capacity at `now`, for plots.
    pub fn capacity(&self, now: Time) -> Rate {
        match self {
            Self::Unlimited => Rate::UNLIMITED,
            Self::Fixed(fixed) => fixed.rate(),
            Self::Trace(trace) => trace.capacity(now),
            Self::Shaped(trace) => trace.capacity(now),
            Self::Opportunities(opportunities) => opportunities.capacity(now),
            Self::TokenBucket(bucket) => bucket.rate(),
        }
    }

    /// Bytes that it could have carried by `now` if there had always been something to send; `None`
    /// without a limit. It is exact, however fast the capacity changes.
    pub fn capacity_until(&self, now: Time) -> Option<f64> {
        Some(match self {
            Self::Unlimited => return None,
            Self::Fixed(fixed) => fixed.capacity_until(now),
            Self::Trace(trace) => trace.capacity_until(now),
            Self::Shaped(trace) => trace.capacity_until(now),
            Self::Opportunities(opportunities) => opportunities.capacity_until(now),
            Self::TokenBucket(bucket) => bucket.capacity_until(now),
        })
    }

    /// Bytes of the packet being sent that are not on the medium at `now`, rounded up.
    pub fn bytes_to_come(&self, now: Time) -> u64 {
        match self {
            Self::Fixed(fixed) => fixed.bytes_to_come(now),
            Self::Trace(trace) => trace.bytes_to_come(now),
            Self::Opportunities(opportunities) => opportunities.bytes_to_come(now),
            // Packets leave these at once.
            Self::Unlimited | Self::Shaped(_) | Self::TokenBucket(_) => 0,
        }
    }

    /// Bytes that packets took on the medium; on Ethernet they had `wire_bytes`, in this many
    /// `packets` and `segments`.
    pub fn bytes_on_medium(&self, wire_bytes: u64, packets: u64, segments: u64) -> u64 {
        match self {
            Self::Unlimited => wire_bytes,
            Self::Fixed(fixed) => fixed.medium().taken(wire_bytes),
            Self::Trace(trace) => trace.medium().taken(wire_bytes),
            Self::Shaped(trace) => trace.medium().taken(wire_bytes),
            Self::Opportunities(opportunities) => opportunities.bytes_taken(wire_bytes, segments),
            Self::TokenBucket(bucket) => wire_bytes + u64::from(bucket.overhead()) * packets,
        }
    }
}
