//! TBF, the token bucket filter, as Linux has it (`sch_tbf`): a shaper that lets bursts pass, over a
//! FIFO that is limited in bytes.
//!
//! Tokens are counted as time: a packet needs the time that it takes at `rate`, framing included
//! (`rate.rs`), and the bucket holds the time that `burst` bytes take. A second bucket of one `mtu`
//! bounds the peak.

mod config;
mod rate;
#[cfg(test)]
mod tests;

pub use config::{Config, Peak, Written};
pub use rate::{Framing, LinkLayer};

use alloc::vec;
use alloc::vec::Vec;

use sojourn_core::{DropReason, Queued, Span, Stream, Time};

use crate::ring::Ring;
use crate::{Backlog, Dequeue, Enqueue, Qdisc, Reshape, Sink};
use rate::Pace;

#[derive(Debug)]
pub struct Tbf<P> {
    limit: u64,
    /// Longest packet that may pass.
    max_size: u32,
    rate: Bucket,
    peak: Option<Bucket>,
    /// When the tokens were counted.
    t_c: Time,
    ring: Ring<P>,
    overlimits: u64,
}

#[derive(Debug)]
struct Bucket {
    pace: Pace,
    /// The size of the bucket, in nanoseconds.
    depth: i64,
    tokens: i64,
}

impl Bucket {
    fn new(pace: Pace, bytes: u32) -> Self {
        let depth = pace.time_for(bytes);
        Self { pace, depth, tokens: depth }
    }

    /// What would be left of the tokens after `elapsed` nanoseconds and a packet of `bytes`.
    #[inline]
    fn after(&self, elapsed: u64, bytes: u32) -> i64 {
        let elapsed = elapsed.min(self.depth as u64) as i64;
        self.tokens.saturating_add(elapsed).min(self.depth) - self.pace.time_for(bytes)
    }
}

impl<P: Queued> Tbf<P> {
    pub fn new(config: &Config, _random: Stream) -> Self {
        let burst = config.burst.as_u64() as u32;
        let peak = config.peak.as_ref();
        let pace = |rate| Pace::new(rate, config.framing);
        Self {
            limit: config.limit.as_u64(),
            max_size: peak.map_or(burst, |peak| burst.min(peak.mtu.as_u64() as u32)),
            rate: Bucket::new(pace(config.rate), burst),
            peak: peak.map(|peak| Bucket::new(pace(peak.rate), peak.mtu.as_u64() as u32)),
            t_c: Time::ZERO,
            ring: Ring::new(),
            overlimits: 0,
        }
    }

    fn offer(&mut self, now: Time, packet: P) -> Enqueue<P> {
        let bytes = packet.wire_len();
        let waiting = self.ring.backlog().bytes;
        if bytes > self.max_size || waiting + u64::from(bytes) > self.limit {
            return Enqueue::Dropped(packet, DropReason::Full);
        }
        self.ring.push(now, packet);
        Enqueue::Queued
    }

    fn offer_segment(&mut self, now: Time, segment: P, sink: &mut dyn Sink<P>) {
        if let Enqueue::Dropped(segment, why) = self.offer(now, segment) {
            sink.dropped(now, segment, why);
        }
    }
}

impl<P: Reshape + Send> Qdisc<P> for Tbf<P> {
    #[inline(never)]
    fn enqueue(&mut self, now: Time, mut packet: P, sink: &mut dyn Sink<P>) -> Enqueue<P> {
        // A super packet that the bucket can't hold is cut, if its segments fit.
        let is_cut = packet.wire_len() > self.max_size
            && packet.segments() > 1
            && packet.wire_len().div_ceil(packet.segments()) <= self.max_size;
        if !is_cut {
            return self.offer(now, packet);
        }
        while let Some(segment) = packet.split_first() {
            self.offer_segment(now, segment, sink);
        }
        self.offer_segment(now, packet, sink);
        Enqueue::Queued
    }

    #[inline(never)]
    fn dequeue(&mut self, now: Time, _: &mut dyn Sink<P>) -> Dequeue<P> {
        let Some((head, arrived)) = self.ring.head() else { return Dequeue::Empty };
        let bytes = head.wire_len();
        let elapsed = now.since(self.t_c).as_nanos();
        let tokens = self.rate.after(elapsed, bytes);
        let ptokens = self.peak.as_ref().map_or(0, |peak| peak.after(elapsed, bytes));
        let missing = tokens.min(ptokens);
        if missing < 0 {
            self.overlimits += 1;
            return Dequeue::NotBefore(now + Span::from_nanos(missing.unsigned_abs()));
        }
        self.t_c = now;
        self.rate.tokens = tokens;
        if let Some(peak) = &mut self.peak {
            peak.tokens = ptokens;
        }
        let (_, packet) = self.ring.pop().expect("the head was looked at");
        Dequeue::Packet(packet, now.since(arrived))
    }

    fn backlog(&self) -> Backlog {
        self.ring.backlog()
    }

    fn oldest(&self) -> Option<Time> {
        self.ring.oldest()
    }

    fn details(&self) -> Vec<(&'static str, u64)> {
        vec![("overlimits", self.overlimits)]
    }
}
