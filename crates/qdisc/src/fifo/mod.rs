//! `pfifo` and `bfifo`: first in first out with a tail drop, as in Linux `sch_fifo`.
//!
//! The limit counts waiting packets only: one that the link is serialising has left the queue.

#[cfg(test)]
mod tests;

use alloc::collections::VecDeque;
use core::fmt;

use sojourn_core::{Bytes, DropReason, Param, ParamKind, Queued, SpecError, Time, Words};

use crate::notation::{packets, param, read_params, size};
use crate::{Backlog, DEVICE_MTU, Dequeue, Enqueue, Qdisc, Sink};

pub const PFIFO_PARAMS: &[Param] = &[param(
    "limit",
    ParamKind::Count,
    "1000",
    "packets that may wait; the one being transmitted does not count",
)];

pub const BFIFO_PARAMS: &[Param] =
    &[param("limit", ParamKind::Size, "1514000", "bytes that may wait, Ethernet headers included")];

/// Packets of a device's default transmit queue, from which Linux takes both default limits.
const TX_QUEUE_LEN: u32 = 1000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Config {
    /// `pfifo limit PACKETS`.
    Packets(u32),
    /// `bfifo limit BYTES`.
    Bytes(Bytes),
}

impl Config {
    pub fn parse_pfifo(words: &mut Words<'_>) -> Result<Self, SpecError> {
        let mut limit = TX_QUEUE_LEN;
        read_params(words, "pfifo", PFIFO_PARAMS, |word, words| {
            match word {
                "limit" => limit = packets(words, word)?,
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        Ok(Self::Packets(limit))
    }

    pub fn parse_bfifo(words: &mut Words<'_>) -> Result<Self, SpecError> {
        let mut limit = Bytes::new(u64::from(TX_QUEUE_LEN * DEVICE_MTU));
        read_params(words, "bfifo", BFIFO_PARAMS, |word, words| {
            match word {
                "limit" => limit = size(words, word, u64::from(u32::MAX))?,
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        Ok(Self::Bytes(limit))
    }

    pub fn name(&self) -> &'static str {
        match self {
            Self::Packets(_) => "pfifo",
            Self::Bytes(_) => "bfifo",
        }
    }
}

impl fmt::Display for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Packets(limit) => write!(f, "limit {limit}p"),
            Self::Bytes(limit) => write!(f, "limit {}b", limit.as_u64()),
        }
    }
}

/// What a first-in-first-out queue decides and counts, for whoever keeps the packets.
#[derive(Clone, Debug)]
pub struct Admission {
    config: Config,
    backlog: Backlog,
}

impl Admission {
    pub fn new(config: &Config) -> Self {
        Self { config: *config, backlog: Backlog::default() }
    }

    /// Whether a packet of `wire_len` bytes may wait; then it counts until it is released.
    #[inline]
    pub fn admits(&mut self, wire_len: u32) -> bool {
        let is_full = match self.config {
            Config::Packets(limit) => self.backlog.packets >= limit,
            Config::Bytes(limit) => self.backlog.bytes + u64::from(wire_len) > limit.as_u64(),
        };
        if !is_full {
            self.backlog.add(wire_len);
        }
        !is_full
    }

    /// A packet of `wire_len` bytes no longer waits.
    #[inline]
    pub fn release(&mut self, wire_len: u32) {
        self.backlog.remove(wire_len);
    }

    #[inline]
    pub fn backlog(&self) -> Backlog {
        self.backlog
    }
}

#[derive(Debug)]
pub struct Fifo<P> {
    admission: Admission,
    waiting: VecDeque<(Time, P)>,
}

impl<P> Fifo<P> {
    pub fn new(config: &Config) -> Self {
        Self { admission: Admission::new(config), waiting: VecDeque::new() }
    }
}

impl<P: Queued + Send> Qdisc<P> for Fifo<P> {
    #[inline]
    fn enqueue(&mut self, now: Time, packet: P, _: &mut dyn Sink<P>) -> Enqueue<P> {
        if !self.admission.admits(packet.wire_len()) {
            return Enqueue::Dropped(packet, DropReason::Full);
        }
        self.waiting.push_back((now, packet));
        Enqueue::Queued
    }

    #[inline]
    fn dequeue(&mut self, now: Time, _: &mut dyn Sink<P>) -> Dequeue<P> {
        let Some((arrived, packet)) = self.waiting.pop_front() else { return Dequeue::Empty };
        self.admission.release(packet.wire_len());
        Dequeue::Packet(packet, now.since(arrived))
    }

    fn backlog(&self) -> Backlog {
        self.admission.backlog()
    }

    fn oldest(&self) -> Option<Time> {
        self.waiting.front().map(|(arrived, _)| *arrived)
    }
}
