//! What the queues carry: what a packet's headers say, and where its bytes lie.

use sojourn_core::packet::PureAck;
use sojourn_core::{Ecn, FlowKey, Packet, Queued};
use sojourn_qdisc::Reshape;
use sojourn_wire::Carried;

/// A real packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame {
    /// As its headers say. What a queue changes here is written into the bytes when it comes out.
    pub(crate) packet: Packet,
    pub(crate) bytes: Place,
}

/// Where the bytes of a packet lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place(u32);

impl Queued for Frame {
    fn wire_len(&self) -> u32 {
        self.packet.wire_len()
    }

    fn ip_len(&self) -> u32 {
        self.packet.ip_len()
    }

    fn segments(&self) -> u32 {
        self.packet.segments()
    }

    fn truesize(&self) -> u32 {
        self.packet.truesize()
    }

    fn flow_key(&self) -> FlowKey {
        self.packet.flow_key()
    }

    fn ecn(&self) -> Ecn {
        self.packet.ecn()
    }

    fn mark_ce(&mut self) {
        self.packet.mark_ce();
    }

    fn dscp(&self) -> u8 {
        self.packet.dscp()
    }

    fn pure_ack(&self) -> Option<PureAck> {
        self.packet.pure_ack()
    }
}

impl Reshape for Frame {
    /// The kernel has cut every packet into segments before it comes here.
    fn split_first(&mut self) -> Option<Self> {
        None
    }

    fn wash(&mut self) {
        self.packet.wash();
    }
}

impl Carried for Frame {
    fn headers(&self) -> &Packet {
        &self.packet
    }

    fn leave_port(&mut self) {
        self.packet.leave_port();
    }

    fn has_contents(&self) -> bool {
        true
    }
}

/// The longest packet that a host sends.
pub(crate) const MTU: usize = 1500;

/// The bytes of all packets that wait or are under way. It grows when it is full and never shrinks.
#[derive(Debug, Default)]
pub(crate) struct Bytes {
    slots: Vec<[u8; MTU]>,
    lengths: Vec<u16>,
    free: Vec<u32>,
}

impl Bytes {
    /// How many slots are made at once.
    const CHUNK: usize = 1024;

    /// A place for a packet.
    pub(crate) fn take(&mut self) -> Place {
        if self.free.is_empty() {
            let first = self.slots.len();
            self.slots.resize(first + Self::CHUNK, [0; MTU]);
            self.lengths.resize(first + Self::CHUNK, 0);
            self.free.extend((first..first + Self::CHUNK).rev().map(|slot| slot as u32));
        }
        Place(self.free.pop().expect("some were just made"))
    }

    /// All of the room of a place, to be written.
    pub(crate) fn room(&mut self, place: Place) -> &mut [u8; MTU] {
        &mut self.slots[place.0 as usize]
    }

    /// So many bytes of the room are the packet.
    pub(crate) fn set_length(&mut self, place: Place, length: usize) {
        self.lengths[place.0 as usize] = length.min(MTU) as u16;
    }

    pub(crate) fn packet(&mut self, place: Place) -> &mut [u8] {
        let length = usize::from(self.lengths[place.0 as usize]);
        &mut self.slots[place.0 as usize][..length]
    }

    /// The place can be taken again.
    pub(crate) fn give_back(&mut self, place: Place) {
        self.free.push(place.0);
    }

    /// Packets that lie here.
    #[cfg(test)]
    pub(crate) fn held(&self) -> usize {
        self.slots.len() - self.free.len()
    }
}
