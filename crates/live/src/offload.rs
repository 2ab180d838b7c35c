//! Packets that stand for several segments of TCP: `struct virtio_net_hdr` (OASIS Virtual I/O Device, section 5.1.6),
//! which comes before each packet of a device with offloads, and parts of such packets.

use sojourn_core::{ETHERNET_HEADER, Packet};

use crate::frame::Part;
use crate::headers::{Above, Headers};

/// Bytes of the header before a packet.
pub(crate) const HEADER: usize = 10;
/// The longest packet with it.
pub(crate) const LONGEST: usize = HEADER + 14 + 65_535;

const NEEDS_CHECKSUM: u8 = 1;
const NO_SEGMENTS: u8 = 0;
const TCP_OVER_IPV4: u8 = 1;
/// A bit beside the kind: the first segment has CWR, the others not.
const WITH_ECN: u8 = 0x80;

/// IPv4 without options, before TCP.
const IPV4: usize = 20;
const CWR: u8 = 0x80;
const PSH_AND_FIN: u8 = 9;

/// How many segments the packet behind such a header stands for, and which part of it that is: all. One, if it is no segment
/// of TCP over IPv4.
pub(crate) fn part_of(header: &[u8], headers: &Headers) -> (u16, Part) {
    let one = (1, Part::default());
    let Some(header) = header.get(..HEADER) else { return one };
    let segment = u32::from(u16::from_ne_bytes([header[4], header[5]]));
    let Above::Tcp(tcp) = &headers.above else { return one };
    if header[1] & !WITH_ECN != TCP_OVER_IPV4 || segment == 0 || tcp.payload <= segment {
        return one;
    }
    let segments = tcp.payload.div_ceil(segment);
    let Ok(segments) = u16::try_from(segments) else { return one };
    (segments, Part { skipped: 0, payload: tcp.payload, segment })
}

/// Makes `packet`, whose headers were read from its bytes, one of so many segments.
pub(crate) fn count_segments(packet: &mut Packet, segments: u16, part: &Part) {
    if segments > 1 {
        let headers = packet.wire_len - part.payload;
        packet.segments = segments;
        packet.wire_len = part.payload + u32::from(segments) * headers;
    }
}

const _: () = assert!(ETHERNET_HEADER == 14);

/// Writes `part` of the packet in `whole`, which begins with its header and `before` more bytes before IP, as a packet of its own
/// into `out`; false if it is none that can be cut.
pub(crate) fn cut(whole: &[u8], before: usize, part: &Part, out: &mut Vec<u8>) -> bool {
    let ip_at = HEADER + before;
    let Some(ip) = whole.get(ip_at..) else { return false };
    if ip.first() != Some(&0x45) || ip.get(9) != Some(&6) || ip.len() < IPV4 + 20 {
        return false;
    }
    let tcp_length = usize::from(ip[IPV4 + 12] >> 4) * 4;
    let headers = IPV4 + tcp_length;
    let (skipped, payload) = (part.skipped as usize, part.payload as usize);
    let Some(content) = ip.get(headers + skipped..headers + skipped + payload) else {
        return false;
    };
    if tcp_length < 20 {
        return false;
    }
    let is_last = headers + skipped + payload == ip.len();
    out.clear();
    out.extend_from_slice(&whole[..ip_at + headers]);
    out.extend_from_slice(content);
    let length = (headers + payload) as u16;
    let number = u16::from_be_bytes([ip[4], ip[5]])
        .wrapping_add((part.skipped / part.segment.max(1)) as u16);
    {
        let ip = &mut out[ip_at..];
        ip[2..4].copy_from_slice(&length.to_be_bytes());
        ip[4..6].copy_from_slice(&number.to_be_bytes());
        ip[10..12].fill(0);
        let checksum = !folded(sum(&ip[..IPV4]));
        ip[10..12].copy_from_slice(&checksum.to_be_bytes());
        let pseudo = sum(&ip[12..20]) + 6 + u32::from(length) - IPV4 as u32;
        let tcp = &mut ip[IPV4..];
        let seq = u32::from_be_bytes([tcp[4], tcp[5], tcp[6], tcp[7]]).wrapping_add(part.skipped);
        tcp[4..8].copy_from_slice(&seq.to_be_bytes());
        if part.skipped > 0 {
            tcp[13] &= !CWR;
        }
        if !is_last {
            tcp[13] &= !PSH_AND_FIN;
        }
        // Of the rest of the checksum the kernel takes care.
        tcp[16..18].copy_from_slice(&folded(pseudo).to_be_bytes());
    }
    let several = part.payload > part.segment;
    let with_ecn = if out[ip_at + IPV4 + 13] & CWR != 0 { WITH_ECN } else { 0 };
    out[0] = NEEDS_CHECKSUM;
    out[1] = if several { TCP_OVER_IPV4 | with_ecn } else { NO_SEGMENTS };
    out[2..4].copy_from_slice(&((before + headers) as u16).to_ne_bytes());
    out[4..6].copy_from_slice(&(if several { part.segment as u16 } else { 0 }).to_ne_bytes());
    out[6..8].copy_from_slice(&((before + IPV4) as u16).to_ne_bytes());
    out[8..10].copy_from_slice(&16_u16.to_ne_bytes());
    true
}

/// The sum of RFC 1071, not yet folded.
fn sum(bytes: &[u8]) -> u32 {
    let words = bytes.chunks(2);
    words.map(|pair| u32::from(pair[0]) << 8 | u32::from(pair.get(1).copied().unwrap_or(0))).sum()
}

fn folded(mut sum: u32) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::headers;

    /// A packet of 3 segments of 1000 bytes and one of 500, with PSH and CWR.
    fn whole() -> Vec<u8> {
        let payload: Vec<u8> = (0..3500_u32).map(|at| at as u8).collect();
        let mut bytes = vec![1, TCP_OVER_IPV4 | WITH_ECN];
        for word in [40_u16, 1000, 20, 16] {
            bytes.extend(word.to_ne_bytes());
        }
        let length = (40 + payload.len()) as u16;
        bytes.extend([0x45, 2]);
        bytes.extend(length.to_be_bytes());
        bytes.extend([0, 7, 0x40, 0, 64, 6, 0, 0, 10, 1, 0, 1, 10, 1, 0, 2]);
        bytes.extend([
            0x13, 0x88, 0xc3, 0x50, 0xff, 0xff, 0xff, 0, 0, 0, 0, 9, 0x50, 0x98, 1, 2, 0, 0, 0, 0,
        ]);
        bytes.extend(payload);
        bytes
    }

    #[test]
    fn parts_are_what_segmentation_makes_of_the_whole() {
        let whole = whole();
        let read = headers::read(&whole[HEADER..]).expect("a packet");
        let (segments, all) = part_of(&whole[..HEADER], &read);
        assert_eq!((segments, all), (4, Part { skipped: 0, payload: 3500, segment: 1000 }));
        let mut out = Vec::new();
        for (skipped, payload, seq, flags) in
            [(0, 1000, 0xffff_ff00, 0x90_u8), (1000, 2000, 0x2e8, 0x10), (3000, 500, 0xab8, 0x18)]
        {
            let part = Part { skipped, payload, segment: 1000 };
            assert!(cut(&whole, 0, &part, &mut out));
            let read = headers::read(&out[HEADER..]).expect("a packet");
            assert_eq!(read.length, 40 + payload);
            assert_eq!(folded(sum(&out[HEADER..HEADER + 20])), 0xffff, "the header's checksum");
            let Above::Tcp(tcp) = read.above else { panic!() };
            assert_eq!((tcp.seq, tcp.payload, out[HEADER + 33]), (seq, payload, flags));
            assert_eq!(out[HEADER + 40], skipped as u8);
            let wanted = if payload > 1000 { TCP_OVER_IPV4 } else { NO_SEGMENTS };
            assert_eq!(out[1], wanted);
        }
        assert!(!cut(&whole, 0, &Part { skipped: 3000, payload: 501, segment: 1000 }, &mut out));
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(
            bytes in prop::collection::vec(any::<u8>(), 0..200),
            (skipped, payload, segment) in (0_u32..300, 0_u32..300, 0_u32..300),
            before in 0_usize..20,
            is_ip in any::<bool>(),
        ) {
            let mut bytes = bytes;
            if is_ip && bytes.len() > HEADER + before + 9 {
                bytes[HEADER + before] = 0x45;
                bytes[HEADER + before + 9] = 6;
            }
            let _ = cut(&bytes, before, &Part { skipped, payload, segment }, &mut Vec::new());
            if let Some(read) = bytes.get(HEADER..).and_then(headers::read) {
                part_of(&bytes[..HEADER], &read);
            }
        }
    }
}
