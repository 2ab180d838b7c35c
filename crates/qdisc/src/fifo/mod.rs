//! `pfifo` and `bfifo`: first in first out with a tail drop, as in Linux `sch_fifo`.
//!
//! The limit counts waiting packets only: a packet that the link is serialising has left the queue.

#[cfg(test)]
mod tests;

use alloc::collections::VecDeque;
use core::fmt;

use sojourn_core::param::Style;
use sojourn_core::{Bytes, DropReason, Params, Queued, Stream, Time};

use crate::built_in::BuiltIn;
use crate::notation::{Length, Packets, at_most};
use crate::{Backlog, Dequeue, Enqueue, Qdisc, Sink};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Config {
    /// `pfifo limit PACKETS`.
    Packets(u32),
    /// `bfifo limit BYTES`.
    Bytes(Bytes),
}

sojourn_core::params! {
    /// `pfifo` as it is written.
    pub struct Pfifo: "pfifo", "first in first out, limited in packets" {
        limit: u32 as Packets =
            "1000", "packets that may wait; the one being transmitted does not count";
    }
}

sojourn_core::params! {
    /// `bfifo` as it is written. Linux derives the default from the same 1000 packets of a device's
    /// transmit queue.
    pub struct Bfifo: "bfifo", "first in first out, limited in bytes" {
        limit: Bytes as Length =
            "1514000", at_most(u32::MAX), "bytes that may wait, Ethernet headers included";
    }
}

impl From<Pfifo> for Config {
    fn from(written: Pfifo) -> Self {
        Self::Packets(written.limit)
    }
}

impl From<Bfifo> for Config {
    fn from(written: Bfifo) -> Self {
        Self::Bytes(written.limit)
    }
}

impl BuiltIn for Config {
    fn name(&self) -> &'static str {
        match self {
            Self::Packets(_) => Pfifo::NAME,
            Self::Bytes(_) => Bfifo::NAME,
        }
    }

    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Packets(limit) => Pfifo { limit }.write(Style::Blank, f),
            Self::Bytes(limit) => Bfifo { limit }.write(Style::Blank, f),
        }
    }
}

/// What a first-in-first-out queue decides and counts; the caller keeps the packets.
#[derive(Clone, Debug)]
pub struct Admission {
    config: Config,
    backlog: Backlog,
}

impl Admission {
    pub fn new(config: &Config) -> Self {
        Self { config: *config, backlog: Backlog::default() }
    }

    /// Whether a packet of `wire_len` bytes may wait; if so, it counts until it is released.
    #[inline]
    pub fn admits(&mut self, wire_len: u32) -> bool {
        let has_room = self.has_room(wire_len);
        if has_room {
            self.backlog.add(wire_len);
        }
        has_room
    }

    /// Whether a packet of `wire_len` bytes might wait.
    #[inline]
    pub fn has_room(&self, wire_len: u32) -> bool {
        match self.config {
            Config::Packets(limit) => self.backlog.packets < limit,
            Config::Bytes(limit) => self.backlog.bytes + u64::from(wire_len) <= limit.as_u64(),
        }
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
    pub fn new(config: &Config, _random: Stream) -> Self {
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
