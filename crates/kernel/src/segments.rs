//! What a card does with a packet of TCP that is longer than a frame: it cuts it into segments (virtio 1.2, section 5.1.6.2).

use crate::fault::Fault;
use crate::frame::{checksum, fold, long, short};
use crate::rings::CARD_HEADER;

/// Of the header that the card's driver puts in front of a packet: what the packet is, and where its fields are.
const IS_CHECKED_LATER: u8 = 1;
const KIND: usize = 1;
const NO_SEGMENTS: u8 = 0;
const TCP_OVER_IPV4: u8 = 1;
const HAS_ECN: u8 = 0x80;
/// Bytes of payload of each segment but the last.
const SIZE: usize = 4;
/// From where on, and how far behind that, the checksum is.
const CHECKED_FROM: usize = 6;
const CHECKSUM_AT: usize = 8;

const IP_AT: usize = CARD_HEADER + 14;
const CWR: u8 = 0x80;
const FIN_AND_PSH: u8 = 1 | 8;

/// The segments that a header and a packet stand for, or `None` if it is a frame as it is. Only a card that `offers` to cut is to be
/// given longer ones.
///
/// # Errors
/// The header says what is not so. Its length of all headers is no more than a hint, and is not looked at.
pub(crate) fn cut(packet: &[u8], offers: bool) -> Result<Option<Vec<Vec<u8>>>, Fault> {
    match packet.get(KIND) {
        Some(&NO_SEGMENTS) => Ok(None),
        Some(kind) if offers && kind & !HAS_ECN == TCP_OVER_IPV4 => {
            let wrong = || Fault::Nonsense("a packet that can't be cut as it says".to_owned());
            segments(packet).ok_or_else(wrong).map(Some)
        }
        kind => {
            Err(Fault::Nonsense(format!("a packet to be cut as {}", kind.copied().unwrap_or(0))))
        }
    }
}

fn segments(packet: &[u8]) -> Option<Vec<Vec<u8>>> {
    let little = |at: usize| Some(u16::from_le_bytes(packet.get(at..at + 2)?.try_into().ok()?));
    let (size, from, at) = (little(SIZE)?, little(CHECKED_FROM)?, little(CHECKSUM_AT)?);
    let ip = packet.get(IP_AT..)?;
    let len = usize::from(short(ip, 2)?);
    let ip_header = usize::from(ip[0] & 15) * 4;
    let is_ip = packet[IP_AT - 2..IP_AT] == [8, 0] && ip[0] >> 4 == 4 && ip_header >= 20;
    // Neither a fragment nor one with more to come.
    let is_whole = short(ip, 6)? & 0x3fff == 0;
    let tcp = ip.get(ip_header..len)?;
    let tcp_header = usize::from(tcp.get(12)? >> 4) * 4;
    let payload = tcp.get(tcp_header..)?;
    let is_tcp = *ip.get(9)? == 6 && tcp_header >= 20;
    let is_checked = packet[0] & IS_CHECKED_LATER != 0
        && usize::from(from) == IP_AT - CARD_HEADER + ip_header
        && at == 16;
    if !(is_ip && is_whole && is_tcp && is_checked) || size == 0 || payload.is_empty() {
        return None;
    }
    let tcp_at = IP_AT + ip_header;
    let headers = &packet[..tcp_at + tcp_header];
    let (identity, sequence, flags) = (short(ip, 4)?, long(tcp, 4)?, tcp[13]);
    let pieces = payload.chunks(usize::from(size));
    let last = pieces.len() - 1;
    let segment = |(index, piece): (usize, &[u8])| {
        let mut segment = [headers, piece].concat();
        segment[..CARD_HEADER].fill(0);
        segment[0] = IS_CHECKED_LATER;
        segment[CHECKED_FROM..CHECKSUM_AT + 2]
            .copy_from_slice(&packet[CHECKED_FROM..CHECKSUM_AT + 2]);
        let length = (segment.len() - IP_AT) as u16;
        let ip = &mut segment[IP_AT..tcp_at];
        ip[2..4].copy_from_slice(&length.to_be_bytes());
        ip[4..6].copy_from_slice(&identity.wrapping_add(index as u16).to_be_bytes());
        ip[10..12].fill(0);
        let sum = checksum(ip);
        ip[10..12].copy_from_slice(&sum.to_be_bytes());
        // The sum of the addresses, the protocol and the length; whoever needs it adds the rest.
        let tcp_length = length - ip_header as u16;
        let pseudo = [&ip[12..20], &[0, 6], &tcp_length.to_be_bytes()].concat();
        let tcp = &mut segment[tcp_at..];
        tcp[16..18].copy_from_slice(&fold(&pseudo).to_be_bytes());
        let begin = sequence.wrapping_add(index as u32 * u32::from(size));
        tcp[4..8].copy_from_slice(&begin.to_be_bytes());
        // What the first one says is said once, and what the last one says holds at the end.
        tcp[13] = flags
            & !if index == 0 { 0 } else { CWR }
            & !if index == last { 0 } else { FIN_AND_PSH };
        segment
    };
    Some(pieces.enumerate().map(segment).collect())
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;
    use crate::frame::{self, Inner, Segment};

    const FLAGS: u8 = 0x10 | CWR | FIN_AND_PSH;

    /// A packet of TCP as a driver gives it to a card that cuts.
    fn packet(payload: &[u8], size: u16, sequence: u32) -> Vec<u8> {
        let mut packet = vec![IS_CHECKED_LATER, TCP_OVER_IPV4 | HAS_ECN, 0, 0];
        for field in [size, 34, 16, 0] {
            packet.extend(field.to_le_bytes());
        }
        packet.extend([2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0]);
        packet.extend([0x45, 2]);
        packet.extend((40 + payload.len() as u16).to_be_bytes());
        packet.extend([0xff, 0xff, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        packet.extend([0, 9, 0, 9]);
        packet.extend(sequence.to_be_bytes());
        packet.extend([0, 0, 0, 7, 0x50, FLAGS, 1, 0, 0, 0, 0, 0]);
        packet.extend(payload);
        packet
    }

    fn tcp_of(segment: &[u8]) -> Segment {
        match frame::read(segment).expect("it is IPv4").inner {
            Inner::Tcp(tcp) => tcp,
            other => panic!("{other:?}"),
        }
    }

    proptest! {
        #[test]
        fn segments_are_the_packet_in_order(payload in vec(any::<u8>(), 1..20_000), size in 1u16..3_000, sequence: u32) {
            let cut = cut(&packet(&payload, size, sequence), true).expect("it is right").expect("it is long");
            let mut together: Vec<u8> = Vec::new();
            for (index, segment) in cut.iter().enumerate() {
                let (read, tcp) = (frame::read(segment).expect("it is IPv4"), tcp_of(segment));
                prop_assert_eq!(tcp.sequence, sequence.wrapping_add(together.len() as u32));
                prop_assert_eq!(read.len as usize, segment.len() - IP_AT);
                prop_assert_eq!(read.tos, 2);
                prop_assert_eq!(checksum(&segment[IP_AT..IP_AT + 20]), 0);
                prop_assert_eq!(segment[KIND], NO_SEGMENTS);
                let is_last = index + 1 == cut.len();
                prop_assert!(is_last || tcp.payload == u32::from(size));
                prop_assert_eq!(tcp.has(Segment::PSH) && tcp.has(Segment::FIN), is_last);
                prop_assert_eq!(tcp.flags & u16::from(CWR) != 0, index == 0);
                // With the payload, the sum is that of a whole segment.
                let mut whole = segment[IP_AT + 20..].to_vec();
                whole[16..18].fill(0);
                let mut all = [&segment[IP_AT + 12..IP_AT + 20], &[0, 6]].concat();
                all.extend((whole.len() as u16).to_be_bytes());
                all.extend(&whole);
                let mut partial = segment[IP_AT + 36..IP_AT + 38].to_vec();
                partial.extend(&whole);
                prop_assert_eq!(checksum(&partial), checksum(&all));
                together.extend(&segment[IP_AT + 40..]);
            }
            prop_assert_eq!(together, payload);
        }

        /// Whatever its header and its fields say.
        #[test]
        fn packets_that_lie_are_cut_or_named_nonsense(
            payload in vec(any::<u8>(), 0..300),
            lies in vec((0usize..IP_AT + 60, any::<u8>()), 0..5),
            length in 0usize..400,
            offers: bool,
        ) {
            let mut packet = packet(&payload, 100, 1);
            for (at, byte) in lies {
                if let Some(place) = packet.get_mut(at) {
                    *place = byte;
                }
            }
            packet.truncate(length);
            match cut(&packet, offers) {
                Ok(Some(segments)) => {
                    prop_assert!(offers && !segments.is_empty() && segments.len() <= payload.len() + 40);
                    prop_assert!(segments.iter().all(|segment| segment.len() <= packet.len()));
                }
                Ok(None) => prop_assert_eq!(packet[KIND], NO_SEGMENTS),
                Err(fault) => prop_assert!(fault.to_string().contains("protocol")),
            }
        }
    }

    #[test]
    fn lies_of_the_header_are_named() {
        let good = packet(&[1; 300], 100, 1);
        assert!(cut(&good, true).is_ok_and(|cut| cut.is_some_and(|all| all.len() == 3)));
        let wrong = |at: usize, value: u16| {
            let mut packet = good.clone();
            packet[at..at + 2].copy_from_slice(&value.to_le_bytes());
            cut(&packet, true).expect_err("it lies").to_string()
        };
        // No size, another place of the checksum, another kind, no checksum, a header of TCP that is longer than the packet.
        for (at, value) in
            [(SIZE, 0), (CHECKED_FROM, 33), (CHECKSUM_AT, 6), (0, 0x0301), (0, 0x0100)]
        {
            assert!(wrong(at, value).contains("breaks the protocol"), "{at} {value}");
        }
        assert!(cut(&packet(&[1; 8], 100, 1)[..IP_AT + 30], true).is_err());
        assert!(cut(&good, false).is_err());
        // How long the headers are is a hint.
        let mut hint = good.clone();
        hint[2..4].copy_from_slice(&u16::MAX.to_le_bytes());
        assert_eq!(cut(&hint, true).ok(), cut(&good, true).ok());
    }
}
