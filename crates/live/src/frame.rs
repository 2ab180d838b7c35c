//! What the queues carry: what a packet's headers say, and where its bytes lie.

use sojourn_core::packet::PureAck;
use sojourn_core::{Body, ETHERNET_HEADER, Ecn, FlowKey, Packet, Queued};
use sojourn_qdisc::Reshape;
use sojourn_wire::Carried;

/// A real packet; or, where the kernel leaves cutting to devices, one that stands for several segments, or a part of one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame {
    /// As its headers say. What a queue changes here is written into the bytes when it comes out.
    pub(crate) packet: Packet,
    pub(crate) bytes: Place,
    pub(crate) part: Part,
}

/// Which part of the bytes at a place this is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Part {
    /// Payload before it.
    pub(crate) skipped: u32,
    pub(crate) payload: u32,
    /// What a full segment carries; 0 of a packet that is one segment.
    pub(crate) segment: u32,
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
    fn split_first(&mut self) -> Option<Self> {
        let segments = u32::from(self.packet.segments);
        if segments < 2 || self.part.segment == 0 {
            return None;
        }
        let headers = (self.packet.ip_len() - self.part.payload) / segments;
        let mut first = *self;
        first.part.payload = self.part.segment;
        first.packet.segments = 1;
        first.packet.wire_len = headers + self.part.segment + ETHERNET_HEADER;
        self.part.skipped += self.part.segment;
        self.part.payload -= self.part.segment;
        self.packet.segments -= 1;
        self.packet.wire_len -= first.packet.wire_len;
        if let (Body::Segment(head), Body::Segment(rest)) =
            (&mut first.packet.body, &mut self.packet.body)
        {
            head.payload = self.part.segment;
            head.push = false;
            rest.payload = rest.payload.saturating_sub(self.part.segment);
            rest.first = rest.first.wrapping_add(1);
            rest.byte += u64::from(self.part.segment);
        }
        Some(first)
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
    slots: Vec<Vec<u8>>,
    /// Of each slot, the segments that have not come out.
    left: Vec<u16>,
    free: Vec<u32>,
}

impl Bytes {
    /// Keeps the bytes of a packet that stands for so many segments.
    pub(crate) fn keep(&mut self, bytes: &[u8], segments: u16) -> Place {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Vec::with_capacity(MTU + 32));
            self.left.push(0);
            self.slots.len() as u32 - 1
        });
        let kept = &mut self.slots[slot as usize];
        kept.clear();
        kept.extend_from_slice(bytes);
        self.left[slot as usize] = segments.max(1);
        Place(slot)
    }

    pub(crate) fn packet(&mut self, place: Place) -> &mut [u8] {
        &mut self.slots[place.0 as usize]
    }

    /// So many segments of what lies there have come out, or will never. After the last the place is taken again.
    pub(crate) fn give_back(&mut self, place: Place, segments: u16) {
        let left = &mut self.left[place.0 as usize];
        *left = left.saturating_sub(segments.max(1));
        if *left == 0 {
            self.free.push(place.0);
        }
    }

    /// Packets that lie here.
    #[cfg(test)]
    pub(crate) fn held(&self) -> usize {
        self.slots.len() - self.free.len()
    }
}
