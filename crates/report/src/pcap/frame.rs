//! A simulated packet as Ethernet, IPv4 and TCP, UDP or ICMP headers.

use std::collections::BTreeMap;

use sojourn_core::{
    AckBody, AckFlags, Body, Direction, Ecn, HostId, Packet, Queued, RtpBody, RtpStream,
    SegmentBody, TcpEcn, Time,
};

use super::Offer;

const ETHERNET: usize = 14;
const IPV4: usize = 20;
const TCP: usize = 20;
const UDP: usize = 8;

/// Initial sequence numbers of the connecting and of the answering end.
const CLIENT_START: u32 = 1_000_000_000;
const SERVER_START: u32 = 2_000_000_000;
/// RFC 7323 section 2.3.
const LARGEST_SCALE: u8 = 14;

/// A duplicate report may name segments this far below the cumulative acknowledgement.
const KEPT: u32 = 20_000;

pub(super) struct Frame {
    /// The headers; the payload is zeros and not captured.
    pub(super) bytes: Vec<u8>,
    /// With the payload.
    pub(super) length: u32,
    /// Of the segment, datagram or request.
    pub(super) number: u64,
}

/// What must be remembered of a flow to write sequence numbers in bytes.
pub(super) struct Connection {
    offer: Offer,
    /// Byte position and payload of each segment that was sent.
    segments: BTreeMap<u32, (u64, u32)>,
    /// Payload of a full segment, as far as is known.
    mss: u32,
    /// Everything before this segment is acknowledged.
    acknowledged: u32,
    /// When the answering end first said that it sends no more, and when that first arrived.
    closed: Option<Time>,
    heard_closed: Option<Time>,
}

impl Connection {
    pub(super) fn new(offer: Offer) -> Self {
        let offer = Offer { scale: offer.scale.min(LARGEST_SCALE), ..offer };
        Self {
            offer,
            segments: BTreeMap::new(),
            mss: 0,
            acknowledged: 0,
            closed: None,
            heard_closed: None,
        }
    }

    /// A window in the units of the handshake. A part of a unit counts as a whole one, as on Linux: less would call what the sender was
    /// offered too much.
    fn window(&self, bytes: u32) -> u16 {
        bytes.div_ceil(1 << self.offer.scale).min(u32::from(u16::MAX)) as u16
    }

    /// Remembers the byte positions of a packet's segments.
    pub(super) fn learn(&mut self, packet: &Packet) {
        match &packet.body {
            Body::Segment(segment) => {
                let all = self.cut(packet, segment);
                let last = all
                    .last()
                    .map(|(number, byte, payload)| (number + 1, byte + u64::from(*payload)));
                for (number, byte, payload) in all {
                    self.segments.insert(number, (byte, payload));
                }
                if let Some((number, byte)) = last.filter(|_| segment.fin) {
                    self.segments.insert(number, (byte, 1));
                }
            }
            Body::Ack(ack) if packet.direction == Direction::Forward => self.learn_end(ack),
            Body::Ack(ack) => {
                if ack.flags.contains(AckFlags::FIN) {
                    self.closed = self.closed.or(Some(packet.sent));
                }
                self.acknowledged = self.acknowledged.max(ack.ack);
                let kept = ack.ack.saturating_sub(KEPT);
                while self.segments.first_key_value().is_some_and(|(first, _)| *first < kept) {
                    self.segments.pop_first();
                }
            }
            _ => {}
        }
    }

    /// Remembers the number that the end of the stream has, if this acknowledgement of the connecting end says it.
    fn learn_end(&mut self, ack: &AckBody) {
        if ack.flags.contains(AckFlags::FIN) {
            let byte = self.position(ack.ack);
            self.segments.entry(ack.ack).or_insert((byte, 1));
        }
    }

    /// Remembers what the connecting end knows when a packet has arrived there.
    pub(super) fn hear(&mut self, now: Time, packet: &Packet) {
        if let Body::Ack(ack) = packet.body
            && ack.flags.contains(AckFlags::FIN)
            && packet.direction == Direction::Reverse
        {
            self.heard_closed = self.heard_closed.or(Some(now));
        }
    }

    /// What a packet of the connecting end acknowledges: nothing but that the other one sends no more, if it has heard that.
    fn heard(&self, packet: &Packet) -> u32 {
        let is_closed = self.heard_closed.is_some_and(|heard| packet.sent >= heard);
        SERVER_START.wrapping_add(1 + u32::from(is_closed))
    }

    /// Whether everything that was sent has been acknowledged.
    pub(super) fn is_idle(&self) -> bool {
        self.segments.last_key_value().is_some_and(|(last, _)| *last < self.acknowledged)
    }

    /// The wire packets of an offloaded packet; `content` is what is known of an opaque one.
    pub(super) fn frames(&mut self, packet: &Packet, content: &[u8]) -> Vec<Frame> {
        let whole = |bytes: Vec<u8>, length: u32, number: u64| Frame { bytes, length, number };
        match &packet.body {
            Body::Segment(segment) => {
                let count = u32::from(packet.segments.max(1));
                let header = packet.ip_len().saturating_sub(segment.payload) / count;
                self.cut(packet, segment)
                    .into_iter()
                    .map(|(number, byte, payload)| {
                        let bytes = self.segment(packet, segment, byte, payload, header);
                        whole(bytes, ETHERNET as u32 + header + payload, u64::from(number))
                    })
                    .collect()
            }
            Body::Ack(ack) => {
                let bytes = self.acknowledgement(packet, ack);
                let length = (bytes.len() as u32).max(ETHERNET as u32 + packet.ip_len());
                vec![whole(bytes, length, u64::from(ack.ack))]
            }
            Body::Handshake { asked, ecn } => {
                let bytes = self.handshake(packet, *asked, *ecn);
                let length = bytes.len() as u32;
                vec![whole(bytes, length, 0)]
            }
            Body::Datagram { number, .. }
            | Body::Opaque { number, .. }
            | Body::Rtp(RtpBody { number, .. }) => {
                let payload = (packet.ip_len() as usize).saturating_sub(IPV4 + UDP);
                let rtp = match &packet.body {
                    Body::Rtp(rtp) => rtp_header(rtp),
                    _ => content.to_vec(),
                };
                let (source, destination) = ports(packet);
                let mut udp = Vec::new();
                udp.extend(source.to_be_bytes());
                udp.extend(destination.to_be_bytes());
                udp.extend(((UDP + payload) as u16).to_be_bytes());
                udp.extend([0, 0]);
                udp.extend(rtp);
                let sum = checksum(&udp, Some((packet, 17, UDP + payload)));
                // Zero would mean that there is no checksum (RFC 768).
                let sum = if sum == 0 { 0xffff } else { sum };
                udp[6..8].copy_from_slice(&sum.to_be_bytes());
                let bytes = Self::ip(packet, 17, IPV4 + UDP + payload, &udp);
                vec![whole(bytes, (ETHERNET + IPV4 + UDP + payload) as u32, u64::from(*number))]
            }
            Body::Echo { number, .. } => {
                let length = (packet.ip_len() as usize).max(IPV4 + 8);
                let kind = if packet.direction == Direction::Forward { 8 } else { 0 };
                let mut icmp = vec![kind, 0, 0, 0];
                icmp.extend((packet.flow.0 as u16).to_be_bytes());
                icmp.extend((*number as u16).to_be_bytes());
                let sum = checksum(&icmp, None);
                icmp[2..4].copy_from_slice(&sum.to_be_bytes());
                let bytes = Self::ip(packet, 1, length, &icmp);
                vec![whole(bytes, (ETHERNET + length) as u32, u64::from(*number))]
            }
        }
    }

    /// Number, byte position and payload of each segment of a packet. All but the last of a
    /// transfer are full.
    fn cut(&mut self, packet: &Packet, segment: &SegmentBody) -> Vec<(u32, u64, u32)> {
        let count = u32::from(packet.segments.max(1));
        self.mss = self.mss.max(segment.payload.div_ceil(count));
        let mut out = Vec::with_capacity(count as usize);
        let mut byte = segment.byte;
        let mut left = segment.payload;
        for at in 0..count {
            let payload = if at + 1 == count { left } else { self.mss.min(left) };
            out.push((segment.first + at, byte, payload));
            byte += u64::from(payload);
            left -= payload;
        }
        out
    }

    fn segment(
        &self,
        packet: &Packet,
        segment: &SegmentBody,
        byte: u64,
        payload: u32,
        header: u32,
    ) -> Vec<u8> {
        const FIN: u16 = 0x01;
        const ACK: u16 = 0x10;
        const PSH: u16 = 0x08;
        let last = byte + u64::from(payload) == segment.byte + u64::from(segment.payload);
        let mut flags = ACK | ecn_flags(segment.ecn);
        if segment.push && last {
            flags |= PSH;
        }
        if segment.fin && last {
            flags |= FIN;
        }
        let options = padded_options(timestamps(packet.sent, segment.echo), header);
        let tcp = Tcp {
            sequence: CLIENT_START.wrapping_add(1).wrapping_add(byte as u32),
            acknowledgement: self.heard(packet),
            flags,
            window: self.window(self.offer.first.into()),
            options,
        };
        Self::tcp(packet, &tcp, payload as usize)
    }

    fn acknowledgement(&self, packet: &Packet, ack: &AckBody) -> Vec<u8> {
        const FIN: u16 = 0x01;
        const ACK: u16 = 0x10;
        let fin = if ack.flags.contains(AckFlags::FIN) { FIN } else { 0 };
        let position = CLIENT_START.wrapping_add(1).wrapping_add(self.position(ack.ack) as u32);
        let (sequence, acknowledgement) = match packet.direction {
            Direction::Forward => (position, self.heard(packet)),
            Direction::Reverse => {
                let is_closed = self.closed.is_some_and(|closed| packet.sent > closed) && fin == 0;
                (SERVER_START.wrapping_add(1 + u32::from(is_closed)), position)
            }
        };
        let mut options = timestamps(packet.sent, ack.echo);
        let count = usize::from(ack.sack_count).min(ack.sack.len());
        let blocks: Vec<(u32, u32)> = ack.sack[..count]
            .iter()
            .filter_map(|block| self.bytes(block.start, block.end))
            .collect();
        if !blocks.is_empty() {
            options.extend([1, 1, 5, 2 + 8 * blocks.len() as u8]);
            for (start, end) in blocks {
                options.extend(start.to_be_bytes());
                options.extend(end.to_be_bytes());
            }
        }
        let tcp = Tcp {
            sequence,
            acknowledgement,
            flags: ACK | fin | ecn_flags(ack.ecn),
            window: self.window(ack.window),
            options: padded_options(options, packet.ip_len()),
        };
        Self::tcp(packet, &tcp, 0)
    }

    /// The byte position at which a segment begins, or will begin.
    fn position(&self, segment: u32) -> u64 {
        let before = segment.checked_sub(1).and_then(|before| self.segments.get(&before));
        match (self.segments.get(&segment), before) {
            (Some((byte, _)), _) => *byte,
            (None, Some((byte, payload))) => byte + u64::from(*payload),
            // Neither segment was seen, so every segment counts as a full one.
            (None, None) => u64::from(segment) * u64::from(self.mss),
        }
    }

    /// Sequence numbers of the first byte of segment `start` and of the byte after `end - 1`.
    fn bytes(&self, start: u32, end: u32) -> Option<(u32, u32)> {
        let (first, _) = self.segments.get(&start)?;
        let (last, payload) = self.segments.get(&end.checked_sub(1)?)?;
        let sequence = |byte: u64| CLIENT_START.wrapping_add(1).wrapping_add(byte as u32);
        Some((sequence(*first), sequence(last + u64::from(*payload))))
    }

    fn handshake(&self, packet: &Packet, asked: Time, ecn: TcpEcn) -> Vec<u8> {
        const SYN: u16 = 0x02;
        const ACK: u16 = 0x10;
        let answer = packet.direction == Direction::Reverse;
        let mss = if self.mss == 0 { 1460 } else { self.mss.min(u32::from(u16::MAX)) } as u16;
        let mut options = vec![2, 4];
        options.extend(mss.to_be_bytes());
        options.extend([4, 2]);
        options.extend(&timestamps(packet.sent, if answer { asked } else { Time::ZERO })[2..]);
        options.extend([1, 3, 3, self.offer.scale]);
        let tcp = Tcp {
            sequence: if answer { SERVER_START } else { CLIENT_START },
            acknowledgement: if answer { CLIENT_START.wrapping_add(1) } else { 0 },
            flags: ecn_flags(ecn) | if answer { SYN | ACK } else { SYN },
            window: self.offer.first,
            options,
        };
        Self::tcp(packet, &tcp, 0)
    }

    fn tcp(packet: &Packet, tcp: &Tcp, payload: usize) -> Vec<u8> {
        let (source, destination) = ports(packet);
        let header = TCP + tcp.options.len();
        let mut out = Vec::with_capacity(header);
        out.extend(source.to_be_bytes());
        out.extend(destination.to_be_bytes());
        out.extend(tcp.sequence.to_be_bytes());
        out.extend(tcp.acknowledgement.to_be_bytes());
        out.extend(((header as u16 / 4) << 12 | tcp.flags).to_be_bytes());
        out.extend(tcp.window.to_be_bytes());
        out.extend([0; 4]);
        out.extend(&tcp.options);
        let sum = checksum(&out, Some((packet, 6, header + payload)));
        out[16..18].copy_from_slice(&sum.to_be_bytes());
        Self::ip(packet, 6, IPV4 + header + payload, &out)
    }

    fn ip(packet: &Packet, protocol: u8, length: usize, above: &[u8]) -> Vec<u8> {
        let (source, destination) = addresses(packet);
        let mut out = Vec::with_capacity(ETHERNET + IPV4 + above.len());
        for host in [packet.dst, packet.src] {
            out.extend([0x02, 0, 0, 0]);
            out.extend(host.0.to_be_bytes());
        }
        out.extend([0x08, 0x00]);
        let ecn = match packet.ecn {
            Ecn::NotEct => 0,
            Ecn::Ect1 => 1,
            Ecn::Ect0 => 2,
            Ecn::Ce => 3,
        };
        let mut ip = vec![0x45, packet.dscp << 2 | ecn];
        ip.extend((length.min(usize::from(u16::MAX)) as u16).to_be_bytes());
        ip.extend(identification(packet, above).to_be_bytes());
        ip.extend([0x40, 0, 64, protocol, 0, 0]);
        ip.extend(source);
        ip.extend(destination);
        let sum = checksum(&ip, None);
        ip[10..12].copy_from_slice(&sum.to_be_bytes());
        out.extend(ip);
        out.extend(above);
        out
    }
}

/// The number of an IP packet, the same at every tap: of what left at one moment each has another, so that
/// the same packet can be found in two captures. `above` is its payload.
fn identification(packet: &Packet, above: &[u8]) -> u16 {
    let number = match packet.body {
        Body::Datagram { number, .. }
        | Body::Opaque { number, .. }
        | Body::Rtp(RtpBody { number, .. })
        | Body::Echo { number, .. } => u64::from(number),
        // The sequence number of TCP.
        _ => above.first_chunk().map_or(0, |head: &[u8; 8]| u64::from_be_bytes(*head)),
    };
    // Multiplication by an odd number spreads what differs in the lower bits.
    let mixed =
        (number ^ packet.sent.as_nanos().rotate_left(32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 48) as u16
}

struct Tcp {
    sequence: u32,
    acknowledgement: u32,
    flags: u16,
    window: u16,
    options: Vec<u8>,
}

/// AE, CWR and ECE lie side by side in the header.
fn ecn_flags(ecn: TcpEcn) -> u16 {
    u16::from(ecn.bits()) << 6
}

/// Two fillers and the timestamps option (RFC 7323), in milliseconds.
fn timestamps(value: Time, echo: Time) -> Vec<u8> {
    let millis = |time: Time| ((time.as_nanos() / 1_000_000) as u32).to_be_bytes();
    let mut out = vec![1, 1, 8, 10];
    out.extend(millis(value));
    out.extend(millis(echo));
    out
}

/// Padded or cut to the length that the headers leave for options.
fn padded_options(mut options: Vec<u8>, headers: u32) -> Vec<u8> {
    let room = (headers as usize).saturating_sub(IPV4 + TCP).min(40) / 4 * 4;
    if room < options.len() {
        options.truncate(if room >= 12 { 12 } else { 0 });
    }
    options.resize(room.max(options.len()), 1);
    options
}

/// RFC 3550 section 5.1. Repetitions (RFC 4588) say after it which packet they repeat.
fn rtp_header(rtp: &RtpBody) -> Vec<u8> {
    let (kind, hertz) = match rtp.stream {
        RtpStream::Video => (96, 90_000),
        RtpStream::Repair => (97, 90_000),
        RtpStream::Padding => (98, 90_000),
        RtpStream::Fec => (118, 90_000),
        RtpStream::Audio => (111, 48_000),
    };
    let marker = u8::from(rtp.part + 1 == rtp.parts) << 7;
    let ticks = u128::from(rtp.captured.as_nanos()) * hertz / 1_000_000_000;
    let mut out = vec![0x80, marker | kind];
    out.extend(rtp.header_sequence.to_be_bytes());
    out.extend((ticks as u32).to_be_bytes());
    out.extend(rtp.stream.source().to_be_bytes());
    if rtp.stream == RtpStream::Repair {
        out.extend((rtp.sequence as u16).to_be_bytes());
    }
    out
}

fn ports(packet: &Packet) -> (u16, u16) {
    let sender = 40_000u16.wrapping_add((packet.flow.0 % 20_000) as u16);
    // Every connection of a flow has a port of its own.
    let receiver = 5_001u16.wrapping_add((packet.connection % 30_000) as u16);
    match packet.direction {
        Direction::Forward => (sender, receiver),
        Direction::Reverse => (receiver, sender),
    }
}

fn addresses(packet: &Packet) -> ([u8; 4], [u8; 4]) {
    let of = |host: HostId| {
        let [high, low] = host.0.to_be_bytes();
        [10, high, low, 1]
    };
    (of(packet.src), of(packet.dst))
}

/// RFC 1071, with the pseudo header of TCP and UDP if there is one. Payload of zeros adds nothing.
fn checksum(bytes: &[u8], pseudo: Option<(&Packet, u8, usize)>) -> u16 {
    let mut sum = 0u32;
    let mut add = |bytes: &[u8]| {
        for pair in bytes.chunks(2) {
            sum += u32::from(pair[0]) << 8 | u32::from(pair.get(1).copied().unwrap_or(0));
        }
    };
    add(bytes);
    if let Some((packet, protocol, length)) = pseudo {
        let (source, destination) = addresses(packet);
        add(&source);
        add(&destination);
        add(&[0, protocol]);
        add(&(length as u32).to_be_bytes());
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}
