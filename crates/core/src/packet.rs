//! The packet as models see it, and what a queue discipline may ask of its packets.

use core::num::NonZeroU32;
use core::ops::BitOr;

use crate::ids::{ContentId, FlowId, HostId};
use crate::units::Time;

/// From the flow's sender to its receiver, or back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    Forward,
    Reverse,
}

impl Direction {
    #[inline]
    pub const fn opposite(self) -> Self {
        match self {
            Self::Forward => Self::Reverse,
            Self::Reverse => Self::Forward,
        }
    }
}

/// The ECN field of the IP header (RFC 3168 section 5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ecn {
    #[default]
    NotEct,
    Ect1,
    Ect0,
    Ce,
}

impl Ecn {
    /// May be marked instead of dropped.
    pub const fn is_capable(self) -> bool {
        !matches!(self, Self::NotEct)
    }
}

/// What tells flows and hosts apart, as a flow dissector would read it from the headers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct FlowKey {
    /// Sending host of this packet.
    pub src: u32,
    /// Receiving host of this packet.
    pub dst: u32,
    /// Source and destination port and protocol, as one number.
    pub ports: u64,
}

/// What a queue discipline needs to know of a packet. Through this trait the same discipline
/// carries simulated packets and real bytes.
pub trait Queued {
    /// Bytes on an Ethernet wire without preamble and checksum: the IP packet and 14 bytes of
    /// header for each of its segments. This is the length that Linux's disciplines count.
    fn wire_len(&self) -> u32;

    /// Bytes of the IP packets alone, all segments together.
    fn ip_len(&self) -> u32;

    /// Wire packets that this one stands for; above 1 where segmentation is offloaded.
    fn segments(&self) -> u32 {
        1
    }

    /// Memory that Linux charges for the packet (`skb->truesize`), in bytes.
    fn truesize(&self) -> u32;

    fn flow_key(&self) -> FlowKey;

    fn ecn(&self) -> Ecn;

    /// Sets Congestion Experienced; only called when [`Ecn::is_capable`].
    fn mark_ce(&mut self);

    /// The differentiated services code point.
    fn dscp(&self) -> u8;

    /// The acknowledgement that this packet is, if it is nothing else: no payload, no SYN or FIN.
    fn pure_ack(&self) -> Option<PureAck>;
}

/// A TCP segment that only acknowledges, as an acknowledgement filter sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PureAck {
    /// Next expected sequence number.
    pub ack: u64,
    /// Selective acknowledgements, in segments; unused blocks are empty.
    pub sack: [SackBlock; MAX_SACK_BLOCKS],
    pub sack_count: u8,
    /// The bits of [`TcpEcn`]; a filter only compares them.
    pub ecn_flags: u8,
    /// The sender's timestamp option.
    pub timestamp: Time,
}

/// With the timestamp option there is room for three blocks (RFC 2018 section 3).
pub const MAX_SACK_BLOCKS: usize = 3;

/// The three flags of the TCP header that ECN uses: AE, CWR and ECE. Once both ends have agreed on
/// accurate feedback they are one counter, ACE (RFC 9768 section 3.2.2), except in the handshake.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpEcn(u8);

impl TcpEcn {
    pub const NONE: Self = Self(0);
    /// ECN-Echo (RFC 3168 section 6.1.3).
    pub const ECE: Self = Self(1);
    /// Congestion window reduced (RFC 3168 section 6.1.2).
    pub const CWR: Self = Self(2);

    /// AE, CWR and ECE from high to low, or the lowest bits of a counter.
    pub const fn from_bits(bits: u8) -> Self {
        Self(bits & 7)
    }

    pub const fn bits(self) -> u8 {
        self.0
    }

    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

/// The CE byte counter of an AccECN option, 24 bits (RFC 9768 section 3.2.3). The bit above them is
/// always set, so the value is never zero and an `Option` of it takes no extra space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CeBytes(NonZeroU32);

impl CeBytes {
    const ABOVE: NonZeroU32 = NonZeroU32::new(1 << 24).expect("not zero");

    pub const fn new(bytes: u32) -> Self {
        Self(Self::ABOVE.saturating_add(bytes & 0xff_ffff))
    }

    /// Bytes marked between `earlier` and now, if the counter wrapped at most once.
    pub const fn since(self, earlier: Self) -> u32 {
        self.0.get().wrapping_sub(earlier.0.get()) & 0xff_ffff
    }
}

/// Segments `start..end` have arrived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SackBlock {
    pub start: u32,
    pub end: u32,
}

/// A packet as its headers describe it; a simulated packet is nothing else. Code that carries real
/// bytes makes one from their headers for observers. It is small enough to be moved by value
/// through rings.
#[derive(Clone, Copy, Debug)]
pub struct Packet {
    pub flow: FlowId,
    /// Which of the flow's connections, if the flow has several; otherwise 0.
    pub connection: u32,
    pub direction: Direction,
    pub ecn: Ecn,
    pub dscp: u8,
    /// Wire packets this stands for (offloaded segmentation); at least 1.
    pub segments: u16,
    /// Bytes of the IP packets, all segments together, and an Ethernet header for each. Disciplines
    /// and links count this length. [`Queued::ip_len`] leaves the headers out.
    pub wire_len: u32,
    /// Position of the link it is on, in the route of its flow and direction.
    pub hop: u16,
    /// Sending and receiving host of this packet.
    pub src: HostId,
    pub dst: HostId,
    /// When it left its sender.
    pub sent: Time,
    pub body: Body,
}

/// What a packet carries. TCP sequence space is counted in segments, because a bulk sender never
/// cuts a segment twice; the byte position is there for packet captures.
#[derive(Clone, Copy, Debug)]
pub enum Body {
    /// TCP acknowledgement without payload.
    Ack(AckBody),
    /// TCP payload.
    Segment(SegmentBody),
    /// One datagram of a UDP stream. `frame` counts the application's frames, `last` ends one.
    Datagram { number: u32, frame: u32, last: bool },
    /// ICMP echo request (forward) or reply (reverse); `asked` is when the request left.
    Echo { number: u32, asked: Time },
    /// TCP connection request (forward) or its answer (reverse); `asked` as above.
    Handshake { asked: Time, ecn: TcpEcn },
    /// Real-time media.
    Rtp(RtpBody),
    /// Anything else: the bytes are kept elsewhere. `number` counts the packets of a direction.
    Opaque { number: u32, content: ContentId },
}

/// A packet of a call's media (RFC 3550), as fields and not as bits. Numbers do not wrap; the wire has
/// their lowest 16 bits.
#[derive(Clone, Copy, Debug)]
pub struct RtpBody {
    /// Counts the packets of the direction, reports among them.
    pub number: u32,
    /// The transport-wide sequence number, over all streams.
    pub transport: u32,
    /// The sequence number in its stream; of a retransmission, the one that it repeats.
    pub sequence: u32,
    /// The lowest 16 bits of the sequence number in its header: of a retransmission and of padding, those of their own stream
    /// (RFC 4588 section 4).
    pub header_sequence: u16,
    /// Which frame of its stream it carries.
    pub frame: u32,
    /// When that was captured; the timestamp on the wire is this moment in ticks of the stream's clock.
    pub captured: Time,
    /// When it left, as its abs-send-time extension says. A copy may keep the time at which the packet first left.
    pub stamp: Time,
    /// Which part of the frame, and of how many.
    pub part: u16,
    pub parts: u16,
    pub stream: RtpStream,
    /// The frame can be decoded without another.
    pub is_key: bool,
}

/// Which stream of a call a packet belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RtpStream {
    Video,
    Audio,
    /// Retransmissions of video (RFC 4588).
    Repair,
    /// Parity of video (RFC 5109, RFC 8627). The bytes of its packets are kept: their body is [`Body::Opaque`].
    Fec,
    /// Load without content, for a probe or to keep the rate up.
    Padding,
}

impl RtpStream {
    /// The synchronisation source of its packets, in RTP and in RTCP. Repairs and padding share one (RFC 4588 section 8.3); parity
    /// of RFC 5109 has the video's.
    pub const fn source(self) -> u32 {
        match self {
            Self::Video => 1,
            Self::Repair | Self::Padding => 3,
            Self::Audio => 4,
            Self::Fec => 5,
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub struct SegmentBody {
    /// First segment of this packet; it carries `Packet::segments` of them.
    pub first: u32,
    /// Byte position of the first segment in the stream.
    pub byte: u64,
    /// Payload bytes.
    pub payload: u32,
    pub retransmission: bool,
    /// CWR, or the counter of marks on acknowledgements that arrived.
    pub ecn: TcpEcn,
    /// No more data follows at the moment (PSH).
    pub push: bool,
    /// No more data follows at all (FIN).
    pub fin: bool,
    /// The timestamp of the newest acknowledgement that the sender has seen, echoed.
    pub echo: Time,
}

#[derive(Clone, Copy, Debug)]
pub struct AckBody {
    /// Next expected segment; one more where the end of the stream has been received (FIN). Of the sending end, which
    /// receives none, the next segment that it sends.
    pub ack: u32,
    /// Bytes from there on that the receiver will take.
    pub window: u32,
    /// The timestamp of the segment that caused this, echoed (RFC 7323 section 4.3).
    pub echo: Time,
    pub sack: [SackBlock; MAX_SACK_BLOCKS],
    pub sack_count: u8,
    pub flags: AckFlags,
    /// ECE, or the counter of marks.
    pub ecn: TcpEcn,
    /// The byte counter of the AccECN option, if there is one.
    pub ce_bytes: Option<CeBytes>,
    pub kind: AckKind,
}

/// What an acknowledgement says beside its number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AckFlags(u8);

impl AckFlags {
    pub const NONE: Self = Self(0);
    /// The first block reports a duplicate (RFC 2883).
    pub const DSACK: Self = Self(1);
    /// Its end sends no more data (FIN).
    pub const FIN: Self = Self(2);
    /// It ends the handshake: who asked for the connection has the answer.
    pub const HANDSHAKE: Self = Self(4);

    /// `self` where `is_so`, else nothing.
    #[inline]
    pub const fn only_if(self, is_so: bool) -> Self {
        Self(self.0 * is_so as u8)
    }

    #[inline]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

impl BitOr for AckFlags {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// A byte with a single legal value. The compiler uses the other values to tell the kinds of [`Body`]
/// apart, so that a body is no longer than an [`AckBody`] and one comparison tells its kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum AckKind {
    #[default]
    Ack = 0,
}

/// Ethernet header, which Linux counts in a packet's length.
pub const ETHERNET_HEADER: u32 = 14;

/// Memory that Linux charges for a packet of a segment with `wire_len` bytes: the buffer of the IP packet rounded to 64
/// bytes, and 880 bytes for descriptor, shared information and headroom. A full segment takes 2 416, as measured receive
/// windows imply.
#[must_use]
#[inline]
pub const fn truesize_of(wire_len: u32) -> u32 {
    ((wire_len - ETHERNET_HEADER + 63) & !63) + 880
}

impl Queued for Packet {
    #[inline]
    fn wire_len(&self) -> u32 {
        self.wire_len
    }

    #[inline]
    fn ip_len(&self) -> u32 {
        self.wire_len - ETHERNET_HEADER * u32::from(self.segments)
    }

    #[inline]
    fn segments(&self) -> u32 {
        u32::from(self.segments)
    }

    /// [`truesize_of`] a packet of a segment. The segments of an offloaded one lie in page fragments, which cost more.
    #[inline]
    fn truesize(&self) -> u32 {
        match u32::from(self.segments) {
            1 => truesize_of(self.wire_len),
            segments => segments * 3365,
        }
    }

    #[inline]
    fn flow_key(&self) -> FlowKey {
        let reversed = matches!(self.direction, Direction::Reverse);
        FlowKey {
            src: u32::from(self.src.0),
            dst: u32::from(self.dst.0),
            ports: u64::from(self.connection) << 33
                | u64::from(self.flow.0) << 1
                | u64::from(reversed),
        }
    }

    #[inline]
    fn ecn(&self) -> Ecn {
        self.ecn
    }

    fn mark_ce(&mut self) {
        self.ecn = Ecn::Ce;
    }

    #[inline]
    fn dscp(&self) -> u8 {
        self.dscp
    }

    fn pure_ack(&self) -> Option<PureAck> {
        match &self.body {
            Body::Ack(ack) if ack.kind == AckKind::Ack => Some(PureAck {
                ack: u64::from(ack.ack),
                sack: ack.sack,
                sack_count: ack.sack_count,
                ecn_flags: ack.ecn.bits(),
                timestamp: self.sent,
            }),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_is_five_moves_of_sixteen_bytes() {
        assert!(size_of::<Packet>() <= 80, "{}", size_of::<Packet>());
    }

    #[test]
    fn a_counter_of_marked_bytes_goes_round_after_24_bits() {
        let earlier = CeBytes::new(0xff_fff0);
        assert_eq!(CeBytes::new(0x100_0010).since(earlier), 0x20);
        assert_eq!(CeBytes::new(0).since(CeBytes::new(0)), 0);
    }
}
