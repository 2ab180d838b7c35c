//! A store-and-forward switch whose ports share a memory.
//!
//! Each port is a [`Wire`]: a queue of its own, a transmitter, a line to what is plugged in. The
//! ports share the memory. A port may hold at most `alpha` times the memory that is free at the
//! moment, so a busy port leaves room for the others. This is the dynamic threshold of Choudhury
//! and Hahne ("Dynamic Queue Length Thresholds for Shared-Memory Packet Switches", IEEE/ACM
//! Transactions on Networking 6(2), 1998).

use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

#[cfg(test)]
mod tests;

use sojourn_core::param::{number, size};
use sojourn_core::{
    Bytes, Observer, Params, PortId, QueueSample, SpecError, StreamAddress, Time, Wakes,
};

use crate::{Books, Carried, Carrier, Exit, Link, Wire};

sojourn_core::params! {
    /// How the ports of a switch share its memory.
    pub struct Sharing: "switch", "A store-and-forward switch whose ports share a memory, each up to a share of what is free" {
        pub buffer: Bytes = "1MB", size(1514, u32::MAX as u64), "Memory that all ports share, Ethernet headers included";
        pub alpha: f64 = "1", number(0.001, 128.0), "One port may hold so many times the free memory; above 1 that is more than it leaves free";
    }
}

/// A switch, checked.
#[derive(Clone, Debug, PartialEq)]
pub struct SwitchConfig {
    ports: Vec<Link>,
    sharing: Sharing,
}

impl SwitchConfig {
    pub const MOST_PORTS: usize = 256;

    /// `ports` are the queues and lines towards what is plugged in.
    ///
    /// # Errors
    /// No port or too many; a parameter out of bounds.
    pub fn new(ports: Vec<Link>, sharing: Sharing) -> Result<Self, SpecError> {
        if !(1..=Self::MOST_PORTS).contains(&ports.len()) {
            let problem = SpecError::new(format!("a switch with {} ports", ports.len()));
            return Err(problem.allow([format!("1 to {}", Self::MOST_PORTS)]));
        }
        sharing.check()?;
        Ok(Self { ports, sharing })
    }

    pub fn ports(&self) -> &[Link] {
        &self.ports
    }

    pub fn sharing(&self) -> &Sharing {
        &self.sharing
    }

    /// An empty switch; its ports follow `first`.
    pub fn build<P: Carried>(&self, first: PortId, address: StreamAddress) -> Switch<P> {
        let numbered = self.ports.iter().zip((first.0..).map(PortId));
        let mut wires: Vec<Wire<P>> =
            numbered.map(|(link, port)| Wire::new(link, port, Exit::Onward, address)).collect();
        wires.iter_mut().for_each(Wire::expect_offload);
        let places = wires.len().next_power_of_two();
        Switch {
            first,
            held: vec![0; wires.len()],
            used: 0,
            due: Wakes::new(places),
            arriving: Wakes::new(places),
            wires,
            buffer: self.sharing.buffer.as_u64(),
            alpha: self.sharing.alpha,
        }
    }
}

pub struct Switch<P: Carried> {
    first: PortId,
    wires: Vec<Wire<P>>,
    /// Bytes that wait at each port, and at all.
    held: Vec<u64>,
    used: u64,
    /// Of each port when a packet is to be taken from its queue, and when one comes out at its far end. So a packet
    /// costs no more the more ports there are, but for a logarithm.
    due: Wakes,
    arriving: Wakes,
    buffer: u64,
    alpha: f64,
}

impl<P: Carried> Switch<P> {
    fn wire(&self, port: PortId) -> &Wire<P> {
        &self.wires[port.index() - self.first.index()]
    }

    /// Ports at which something is due go on, the first one first.
    fn settle(&mut self, now: Time, observer: &mut dyn Observer) {
        let mut next = 0;
        while let Some(place) = self.due.due_from(now, next) {
            self.wires[place].settle(now, observer);
            self.note(place);
            next = place + 1;
        }
    }

    /// Something happened at a port.
    fn note(&mut self, place: usize) {
        let wire = &self.wires[place];
        let waiting = wire.backlog().bytes;
        self.used = self.used - self.held[place] + waiting;
        self.held[place] = waiting;
        self.due.set(place, wire.due());
        self.arriving.set(place, wire.next_arrival());
    }
}

impl<P: Carried> Carrier<P> for Switch<P> {
    fn offer(&mut self, now: Time, port: PortId, packet: P, observer: &mut dyn Observer) {
        self.settle(now, observer);
        let free = self.buffer - self.used.min(self.buffer);
        let share = self.alpha * free as f64;
        let length = u64::from(packet.wire_len());
        let place = port.index() - self.first.index();
        let wire = &mut self.wires[place];
        if length > free || (wire.backlog().bytes + length) as f64 > share {
            wire.refuse(now, &packet, observer);
            return;
        }
        wire.offer(now, &packet, observer);
        wire.settle(now, observer);
        self.note(place);
    }

    fn next_wake(&self) -> Time {
        self.due.first().min(self.arriving.first())
    }

    fn on_wake(&mut self, now: Time, observer: &mut dyn Observer) {
        self.settle(now, observer);
    }

    fn poll_deliver(&mut self, now: Time) -> Option<(PortId, P)> {
        let place = self.arriving.due(now)?;
        let delivered = self.wires[place].poll_deliver(now);
        self.arriving.set(place, self.wires[place].next_arrival());
        delivered
    }

    fn books(&self, port: PortId) -> Books {
        self.wire(port).books()
    }

    fn sample(&self, now: Time, port: PortId) -> QueueSample {
        self.wire(port).sample(now)
    }

    fn details(&self, port: PortId) -> Vec<(&'static str, u64)> {
        self.wire(port).queue_details()
    }

    fn take_lost(&mut self, take: &mut dyn FnMut(P)) {
        self.wires.iter_mut().for_each(|wire| wire.take_lost(&mut *take));
    }

    fn check(&self, _: Time) -> Result<(), String> {
        self.wires.iter().try_for_each(Wire::check)?;
        match self.wires.iter().map(|wire| wire.backlog().bytes).sum::<u64>() {
            used if used != self.used => {
                Err(format!("{used} bytes wait, and {} are counted", self.used))
            }
            used if used <= self.buffer => Ok(()),
            used => Err(format!("{used} bytes wait in a memory of {}", self.buffer)),
        }
    }
}
