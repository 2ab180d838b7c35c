//! A packet of parity and its bytes.
//!
//! A simulated packet of video has fields in place of a payload. What stands for the payload in a packet of parity
//! is the exclusive or of these fields; the rest of it would be zeros, which are counted and not written.

use alloc::vec::Vec;

use sojourn_core::{RtpBody, RtpStream, Time};

use super::FecScheme;
use crate::rtcp::unwrap;
use crate::rtp::{RTP, video_ticks};

/// A packet of video, as far as parity can restore it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Protected {
    pub(crate) sequence: u32,
    pub(crate) frame: u32,
    pub(crate) part: u16,
    pub(crate) parts: u16,
    pub(crate) captured: Time,
    pub(crate) is_key: bool,
    /// Bytes behind the fixed RTP header.
    pub(crate) length: u16,
}

impl Protected {
    /// The packet that it stands for, restored.
    pub(crate) fn body(&self) -> RtpBody {
        RtpBody {
            number: 0,
            transport: 0,
            sequence: self.sequence,
            header_sequence: self.sequence as u16,
            frame: self.frame,
            captured: self.captured,
            stamp: self.captured,
            part: self.part,
            parts: self.parts,
            stream: RtpStream::Video,
            is_key: self.is_key,
        }
    }
}

/// The exclusive or of some packets, and which they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Parity {
    /// The sequence number of the first packet of the group, and a bit for each that is in this parity: the lowest
    /// for that first packet.
    pub(crate) base: u32,
    pub(crate) mask: u64,
    /// Bytes behind the fixed header of the longest one.
    pub(crate) longest: u16,
    fields: Fields,
}

/// The fields of packets, in exclusive or.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Fields {
    marker: bool,
    /// Ticks of 90 kHz.
    timestamp: u32,
    length: u16,
    /// What stands for the payload.
    frame: u32,
    part: u16,
    parts: u16,
    captured: u64,
    is_key: bool,
}

impl Fields {
    fn add(&mut self, packet: &Protected) {
        self.marker ^= packet.part + 1 == packet.parts;
        self.timestamp ^= video_ticks(packet.captured);
        self.length ^= packet.length;
        self.frame ^= packet.frame;
        self.part ^= packet.part;
        self.parts ^= packet.parts;
        self.captured ^= packet.captured.as_nanos();
        self.is_key ^= packet.is_key;
    }
}

/// A packet of parity that arrived, with what its RTP header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Arrived {
    /// The lowest 16 bits of its sequence number and of its number in transport-wide feedback.
    pub(crate) sequence: u16,
    pub(crate) transport: u16,
    pub(crate) timestamp: u32,
    pub(crate) abs_send_time: u32,
    /// `base` has only its lowest 16 bits.
    pub(crate) parity: Parity,
}

/// The packets of a group: as many as the longer mask of RFC 5109 has bits.
pub(super) const MOST_PACKETS: u32 = 48;
/// The header of a block of RFC 2198 that is the last one.
pub(super) const RED: u32 = 1;
/// A synchronisation source in the list of those that contribute.
const CONTRIBUTOR: u32 = 4;
/// Payload types, of which only the size matters.
const VIDEO_TYPE: u8 = 96;
const RED_TYPE: u8 = 116;
const ULPFEC_TYPE: u8 = 117;
const FLEXFEC_TYPE: u8 = 118;
/// Bytes of the two header extensions that are written.
const EXTENSIONS: usize = 12;

/// Bytes between the header extensions and the parity of what is behind the fixed header, where the last packet is
/// `last` numbers behind the first.
pub(super) const fn header_bytes(scheme: FecScheme, last: u32) -> u32 {
    match scheme {
        // RFC 5109 section 7.3 and 7.4: a header of 10 bytes, and of a level 4 or 8.
        FecScheme::Ulpfec if last < 16 => RED + 10 + 4,
        FecScheme::Ulpfec => RED + 10 + 8,
        // RFC 8627 section 4.2.2.1: the mask has 15, 46 or 110 bits.
        FecScheme::Flexfec if last < 15 => CONTRIBUTOR + 12,
        FecScheme::Flexfec if last < 46 => CONTRIBUTOR + 16,
        FecScheme::Flexfec => CONTRIBUTOR + 24,
    }
}

impl Parity {
    pub(crate) fn new(base: u32) -> Self {
        Self { base, mask: 0, longest: 0, fields: Fields::default() }
    }

    /// The same, whose base is completed to the number nearest to `sequence`.
    pub(crate) fn near(self, sequence: u32) -> Self {
        Self { base: unwrap(sequence, self.base as u16), ..self }
    }

    pub(crate) fn add(&mut self, packet: &Protected) {
        self.mask |= 1 << (packet.sequence - self.base);
        self.longest = self.longest.max(packet.length);
        self.fields.add(packet);
    }

    /// The sequence numbers of its packets.
    pub(crate) fn sequences(&self) -> impl Iterator<Item = u32> + use<> {
        let (base, mask) = (self.base, self.mask);
        (0..MOST_PACKETS).filter(move |bit| mask >> bit & 1 == 1).map(move |bit| base + bit)
    }

    /// The packet `sequence`, which is the only one of it that is not in `others`.
    pub(crate) fn restore<'a>(
        &self,
        sequence: u32,
        others: impl Iterator<Item = &'a Protected>,
    ) -> Protected {
        let mut left = self.fields;
        others.for_each(|packet| left.add(packet));
        Protected {
            sequence,
            frame: left.frame,
            part: left.part,
            parts: left.parts,
            captured: Time::from_nanos(left.captured),
            is_key: left.is_key,
            length: left.length,
        }
    }

    /// Bytes between the UDP header and SRTP's tag, with `extensions` bytes of header extensions.
    pub(crate) fn size(&self, scheme: FecScheme, extensions: u32) -> u32 {
        let last = self.mask.checked_ilog2().unwrap_or(0);
        RTP + extensions + header_bytes(scheme, last) + u32::from(self.longest)
    }

    /// Its bytes: those of the packet but for zeros at the end.
    pub(crate) fn write(&self, scheme: FecScheme, header: &Header) -> Vec<u8> {
        let contributors = u8::from(scheme == FecScheme::Flexfec);
        let kind = match scheme {
            FecScheme::Ulpfec => RED_TYPE,
            FecScheme::Flexfec => FLEXFEC_TYPE,
        };
        let mut bytes = Vec::with_capacity(RTP as usize + EXTENSIONS + 48);
        bytes.extend([0x90 | contributors, kind]);
        bytes.extend(header.sequence.to_be_bytes());
        bytes.extend(video_ticks(header.captured).to_be_bytes());
        bytes.extend(header.source.to_be_bytes());
        if scheme == FecScheme::Flexfec {
            bytes.extend(RtpStream::Video.source().to_be_bytes());
        }
        // RFC 8285 section 4.2: the transport-wide number is extension 1, abs-send-time extension 2.
        bytes.extend([0xbe, 0xde, 0, 2, 0x11]);
        bytes.extend(header.transport.to_be_bytes());
        bytes.push(0x22);
        bytes.extend(&header.abs_send_time.to_be_bytes()[1..]);
        bytes.push(0);
        let Fields { marker, timestamp, length, frame, part, parts, captured, is_key } =
            self.fields;
        // The bits of an odd number of packets: an extension each, and the payload type of video.
        let is_odd = self.mask.count_ones() % 2 == 1;
        let first = if is_odd { 0x10 } else { 0 };
        let second = u8::from(marker) << 7 | if is_odd { VIDEO_TYPE } else { 0 };
        let base = (self.base as u16).to_be_bytes();
        match scheme {
            FecScheme::Ulpfec => {
                let is_long = self.mask >> 16 != 0;
                bytes.push(ULPFEC_TYPE);
                bytes.extend([first | u8::from(is_long) << 6, second]);
                bytes.extend(base);
                bytes.extend(timestamp.to_be_bytes());
                bytes.extend(length.to_be_bytes());
                bytes.extend(self.longest.to_be_bytes());
                let mask = self.mask.reverse_bits().to_be_bytes();
                bytes.extend(if is_long { &mask[..6] } else { &mask[..2] });
            }
            FecScheme::Flexfec => {
                bytes.extend([first, second]);
                bytes.extend(length.to_be_bytes());
                bytes.extend(timestamp.to_be_bytes());
                bytes.extend(base);
                let bits =
                    |from: u32, count: u32| (self.mask >> from).reverse_bits() >> (64 - count);
                let (has_second, has_third) = (self.mask >> 15 != 0, self.mask >> 46 != 0);
                bytes.extend((bits(0, 15) as u16 | u16::from(has_second) << 15).to_be_bytes());
                if has_second {
                    bytes.extend((bits(15, 31) as u32 | u32::from(has_third) << 31).to_be_bytes());
                }
                if has_third {
                    bytes.extend(bits(46, 64).to_be_bytes());
                }
            }
        }
        bytes.extend(frame.to_be_bytes());
        bytes.extend(part.to_be_bytes());
        bytes.extend(parts.to_be_bytes());
        bytes.extend(captured.to_be_bytes());
        bytes.push(u8::from(is_key));
        bytes
    }
}

/// What the RTP header of a packet of parity says.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Header {
    pub(crate) sequence: u16,
    pub(crate) transport: u16,
    pub(crate) source: u32,
    /// When the newest packet that it protects was captured.
    pub(crate) captured: Time,
    pub(crate) abs_send_time: u32,
}

/// Reads bytes from the front.
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, left) = self.0.split_first_chunk::<N>()?;
        self.0 = left;
        Some(*taken)
    }

    fn u8(&mut self) -> Option<u8> {
        self.take::<1>().map(|[byte]| byte)
    }

    fn u16(&mut self) -> Option<u16> {
        self.take().map(u16::from_be_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_be_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_be_bytes)
    }
}

impl Arrived {
    /// Reads what [`Parity::write`] wrote; `None` for anything else.
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        let mut left = Reader(bytes);
        let [first, kind] = left.take()?;
        let scheme = match (first, kind) {
            (0x90, RED_TYPE) => FecScheme::Ulpfec,
            (0x91, FLEXFEC_TYPE) => FecScheme::Flexfec,
            _ => return None,
        };
        let (sequence, timestamp) = (left.u16()?, left.u32()?);
        // The source, and for RFC 8627 the one that it protects: a call has one video.
        left.u32()?;
        if scheme == FecScheme::Flexfec {
            left.u32()?;
        }
        left.take::<5>()?;
        let transport = left.u16()?;
        let [_, high, middle, low, _] = left.take()?;
        let abs_send_time = u32::from_be_bytes([0, high, middle, low]);
        let (base, mask, longest, fields) = match scheme {
            FecScheme::Ulpfec => {
                if left.u8()? != ULPFEC_TYPE {
                    return None;
                }
                let [first, second] = left.take()?;
                let base = left.u16()?;
                let (timestamp, length, longest) = (left.u32()?, left.u16()?, left.u16()?);
                let mut mask = u64::from(left.u16()?) << 48;
                if first >> 6 & 1 == 1 {
                    mask |= u64::from(left.u16()?) << 32 | u64::from(left.u16()?) << 16;
                }
                let fields =
                    Fields { marker: second >> 7 == 1, timestamp, length, ..Fields::default() };
                (base, mask.reverse_bits(), longest, fields)
            }
            FecScheme::Flexfec => {
                let [_, second] = left.take()?;
                let (length, timestamp, base) = (left.u16()?, left.u32()?, left.u16()?);
                let bits = |part: u64, count: u32| (part << (64 - count)).reverse_bits();
                let first = left.u16()?;
                let mut mask = bits(first.into(), 15);
                if first >> 15 == 1 {
                    let second = left.u32()?;
                    mask |= bits(second.into(), 31) << 15;
                    if second >> 31 == 1 {
                        mask |= bits(left.u64()?, 64) << 46;
                    }
                }
                // Nothing says how long the longest packet is but the length of this one.
                let fields =
                    Fields { marker: second >> 7 == 1, timestamp, length, ..Fields::default() };
                (base, mask, 0, fields)
            }
        };
        let fields = Fields {
            frame: left.u32()?,
            part: left.u16()?,
            parts: left.u16()?,
            captured: left.u64()?,
            is_key: left.u8()? == 1,
            ..fields
        };
        let parity = Parity { base: base.into(), mask, longest, fields };
        Some(Self { sequence, transport, timestamp, abs_send_time, parity })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(sequence: u32) -> Protected {
        Protected {
            sequence,
            frame: 7 + sequence / 4,
            part: (sequence % 4) as u16,
            parts: 4,
            captured: Time::from_nanos(1_234_567_891 + u64::from(sequence / 4) * 33_333_333),
            is_key: sequence < 4,
            length: 900 + sequence as u16,
        }
    }

    fn parity(sequences: impl Iterator<Item = u32> + Clone) -> Parity {
        let mut parity = Parity::new(sequences.clone().min().expect("one"));
        sequences.for_each(|sequence| parity.add(&packet(sequence)));
        parity
    }

    const HEADER: Header = Header {
        sequence: 65_000,
        transport: 12,
        source: 1,
        captured: Time::ZERO,
        abs_send_time: 0xabcdef,
    };

    #[test]
    fn bytes_say_what_was_written() {
        for scheme in [FecScheme::Ulpfec, FecScheme::Flexfec] {
            for most in [1, 4, 15, 16, 17, 46, 47, 48] {
                let written = parity(
                    (100..100 + most).step_by(if most > 2 { 3 } else { 1 }).chain([99 + most]),
                );
                let bytes = written.write(scheme, &HEADER);
                let read = Arrived::read(&bytes).expect("it was written so");
                assert_eq!(
                    (read.sequence, read.transport, read.abs_send_time),
                    (65_000, 12, 0xabcdef)
                );
                let longest = if scheme == FecScheme::Ulpfec { written.longest } else { 0 };
                assert_eq!(read.parity, Parity { longest, ..written }, "{scheme:?} {most}");
                // All that is written is one of the packet's bytes.
                assert!(bytes.len() as u32 <= written.size(scheme, EXTENSIONS as u32));
                assert_eq!(Arrived::read(&bytes[..bytes.len() - 1]), None);
            }
        }
    }

    /// The example of RFC 5109 section 10 protects packets 8 to 11, of 200, 140, 100 and 340 bytes behind the header.
    #[test]
    fn the_fields_of_the_rfcs_example_come_out() {
        let mut parity = Parity::new(8);
        for (sequence, length) in [(8, 200), (9, 140), (10, 100), (11, 340)] {
            parity.add(&Protected { sequence, length, ..packet(sequence) });
        }
        assert_eq!((parity.mask, parity.longest), (0b1111, 340));
        assert_eq!(parity.fields.length, 0x174);
        let bytes = parity.write(FecScheme::Ulpfec, &HEADER);
        // The base, the recovered length, the level's length of 340, and bits 0 to 3 of its mask.
        let header = &bytes[RTP as usize + EXTENSIONS + 1..];
        assert_eq!(header[2..4], 8_u16.to_be_bytes());
        assert_eq!(header[8..14], [0x01, 0x74, 1, 84, 0xf0, 0]);
    }

    #[test]
    fn the_one_that_is_missing_is_what_the_others_leave() {
        let parity = parity(20..28);
        let others: Vec<Protected> = (20..28).filter(|n| *n != 23).map(packet).collect();
        assert_eq!(parity.restore(23, others.iter()), packet(23));
    }

    /// One byte of RFC 2198, 10 and 4 or 8 of RFC 5109; a contributor and 12, 16 or 24 of RFC 8627.
    #[test]
    fn a_packet_of_parity_is_as_long_as_its_longest_packet_and_its_headers() {
        let near = parity(0..4);
        assert_eq!(near.size(FecScheme::Ulpfec, 16), 12 + 16 + 15 + 903);
        assert_eq!(near.size(FecScheme::Flexfec, 16), 12 + 16 + 16 + 903);
        let far = parity(0..17);
        assert_eq!(far.size(FecScheme::Ulpfec, 16), 12 + 16 + 19 + 916);
        assert_eq!(far.size(FecScheme::Flexfec, 16), 12 + 16 + 20 + 916);
    }
}
