//! Queue disciplines as state machines that are told the time and never ask for it.
//!
//! A [`Qdisc`] is generic over what it queues, so that simulated packets and real bytes go through
//! the same code. Disciplines are written and parameterised as in `tc`; where the kernel departs
//! from the RFC, the kernel's behaviour is the default.
//!
//! One algorithm, one folder. [`AnyQdisc`] is one of the built-in disciplines or, boxed, any other.

#![cfg_attr(not(test), no_std)]

extern crate alloc;

pub mod cake;
pub mod codel;
pub mod dualpi2;
pub mod fifo;
pub mod fq;
pub mod fq_codel;
pub mod fq_pie;
pub mod pie;
pub mod red;
pub mod suite;
pub mod tbf;

mod built_in;
mod external;
mod hash;
mod notation;
mod registry;
mod reshape;
mod ring;
mod rounds;
mod slab;

#[cfg(test)]
mod testing;

pub use external::{Discipline, External, Foreign, Ticket};
pub use fifo::Admission;
pub use registry::{AnyQdisc, Config, disciplines, external, kinds};
pub use reshape::Reshape;

use alloc::string::String;
use alloc::vec::Vec;

use sojourn_core::{DropReason, Queued, Span, Time};

/// Receives the drops and marks that a discipline makes.
pub trait Sink<P> {
    fn dropped(&mut self, now: Time, packet: P, why: DropReason);
    fn marked(&mut self, now: Time, packet: &P);
}

/// If the packet may be marked, marks it, reports that to the sink, and returns true.
#[inline]
pub(crate) fn mark_if_capable<P: Queued>(
    now: Time,
    packet: &mut P,
    sink: &mut dyn Sink<P>,
) -> bool {
    let is_capable = packet.ecn().is_capable();
    if is_capable {
        packet.mark_ce();
        sink.marked(now, packet);
    }
    is_capable
}

/// What happened to an arrival. A refused packet comes back; packets dropped from inside to make
/// room go to the [`Sink`], even if the arrival itself is one of them. The tag is stored beside the
/// packet, not inside it, so that a packet is copied as a whole.
#[derive(Debug)]
#[repr(u8)]
pub enum Enqueue<P> {
    Queued,
    Dropped(P, DropReason),
}

/// What a discipline gives the transmitter. Its tag is stored as in [`Enqueue`].
#[derive(Debug)]
#[repr(u8)]
pub enum Dequeue<P> {
    /// A packet, and how long it waited.
    Packet(P, Span),
    Empty,
    /// Packets wait, but the discipline's own shaper holds them until then.
    NotBefore(Time),
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backlog {
    pub packets: u32,
    /// With Ethernet headers, as Linux counts.
    pub bytes: u64,
}

impl Backlog {
    fn add(&mut self, bytes: u32) {
        self.packets += 1;
        self.bytes += u64::from(bytes);
    }

    fn remove(&mut self, bytes: u32) {
        self.packets -= 1;
        self.bytes -= u64::from(bytes);
    }
}

/// A queue discipline. Time never goes back; packets of equal time keep their order of arrival.
pub trait Qdisc<P: Queued>: Send {
    fn enqueue(&mut self, now: Time, packet: P, sink: &mut dyn Sink<P>) -> Enqueue<P>;

    fn dequeue(&mut self, now: Time, sink: &mut dyn Sink<P>) -> Dequeue<P>;

    /// [`Qdisc::dequeue`], but a packet is only shown to `take`, which may copy it from where it lies, and what that gives
    /// comes in its place.
    #[inline(always)]
    fn dequeue_copied<T>(
        &mut self,
        now: Time,
        sink: &mut dyn Sink<P>,
        take: impl FnOnce(&P) -> T,
    ) -> Dequeue<T>
    where
        Self: Sized,
    {
        match self.dequeue(now, sink) {
            Dequeue::Packet(packet, wait) => Dequeue::Packet(take(&packet), wait),
            Dequeue::Empty => Dequeue::Empty,
            Dequeue::NotBefore(at) => Dequeue::NotBefore(at),
        }
    }

    fn backlog(&self) -> Backlog;

    /// When the oldest of the heads arrived, if the discipline can tell.
    fn oldest(&self) -> Option<Time>;

    /// The lines that `tc -s qdisc` would print below the counters that every discipline has.
    /// Times are nanoseconds, rates bits per second.
    fn details(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }

    /// Whether the queue still works; one that is kept outside of this program may not.
    ///
    /// # Errors
    /// What is wrong, in words.
    fn check(&self) -> Result<(), String> {
        Ok(())
    }
}

/// Length of a full packet on Ethernet, which the kernel uses for quanta and CoDel's guard
/// (`psched_mtu`).
pub(crate) const DEVICE_MTU: u32 = 1514;
