//! A running digest of what packets did and when.

use sojourn_core::{Body, Packet, Time};

/// Order-dependent: each event multiplies the state with a word of its own and folds the product,
/// the step of wyhash (Wang Yi).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Digest(u64);

/// What happened to a packet, as an odd constant with scattered bits.
#[derive(Clone, Copy)]
#[repr(u64)]
pub(super) enum Kind {
    Sent = 0xa076_1d64_78bd_642f,
    Arrived = 0xe703_7ed1_a0b4_28db,
    Enqueued = 0x8ebc_6af0_9c88_c6e3,
    Dequeued = 0x5899_65cc_7537_4cc3,
    Dropped = 0x1d8e_4e27_c47d_124f,
    Marked = 0xeb44_acca_b455_d165,
}

impl Digest {
    pub(super) fn value(self) -> u64 {
        self.0
    }

    /// Fields lie side by side at their usual sizes (flows below 65 536, links below 256, packets
    /// below 1 MiB); larger ones overlap, which does no more than mix them less well.
    #[inline]
    pub(super) fn packet(&mut self, kind: Kind, now: Time, place: u16, packet: &Packet) {
        let (number, flag) = match &packet.body {
            Body::Segment(segment) => (segment.first, segment.retransmission),
            Body::Ack(ack) => (ack.ack ^ ack.sack[0].end.rotate_left(16), ack.ece),
            Body::Datagram { number, .. } | Body::Echo { number, .. } => (*number, false),
            Body::Handshake { .. } => (0, false),
        };
        let flags =
            packet.ecn as u64 | (packet.direction as u64) << 2 | u64::from(flag) << 3;
        let when = now.as_nanos() ^ u64::from(packet.flow.0) << 48;
        let what = u64::from(number) << 32
            ^ flags << 28
            ^ u64::from(place) << 20
            ^ u64::from(packet.ip_len);
        let product = u128::from(self.0 ^ when) * u128::from(what ^ kind as u64);
        self.0 = product as u64 ^ (product >> 64) as u64;
    }
}
