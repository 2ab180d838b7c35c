//! What the headers of an IPv4 packet say, and the two fields of them that a queue may change.
//!
//! The bytes come from a network, so nothing is believed of them: a packet is read whole or refused.

use std::net::Ipv4Addr;

use sojourn_core::packet::{MAX_SACK_BLOCKS, SackBlock};
use sojourn_core::{Ecn, TcpEcn};

/// IPv4 without options (RFC 791 section 3.1).
const IPV4: usize = 20;
/// As an Ethernet frame has it (RFC 826).
pub(crate) const ARP: [u8; 2] = [0x08, 0x06];
const ICMP: u8 = 1;
const TCP: u8 = 6;
const UDP: u8 = 17;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Headers {
    pub(crate) src: Ipv4Addr,
    pub(crate) dst: Ipv4Addr,
    /// Bytes of the IP packet.
    pub(crate) length: u32,
    pub(crate) ecn: Ecn,
    pub(crate) dscp: u8,
    pub(crate) above: Above,
}

/// The protocol above IP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Above {
    Tcp(Tcp),
    Udp {
        ports: Ports,
        payload: u32,
    },
    Echo {
        is_reply: bool,
        id: u16,
        number: u16,
    },
    /// Another protocol, or a part of a packet that was cut.
    Other,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ports {
    pub(crate) src: u16,
    pub(crate) dst: u16,
}

/// A TCP header (RFC 9293 section 3.1) and its selective acknowledgements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tcp {
    pub(crate) ports: Ports,
    pub(crate) seq: u32,
    pub(crate) ack: u32,
    pub(crate) flags: u8,
    /// AE, CWR and ECE.
    pub(crate) ecn: TcpEcn,
    pub(crate) window: u16,
    pub(crate) payload: u32,
    /// Sequence numbers as they stand in the header; unused blocks are empty.
    pub(crate) sack: [SackBlock; MAX_SACK_BLOCKS],
    pub(crate) sack_count: u8,
}

impl Tcp {
    pub(crate) const FIN: u8 = 1;
    pub(crate) const SYN: u8 = 2;
    pub(crate) const RST: u8 = 4;
    pub(crate) const PSH: u8 = 8;
    pub(crate) const ACK: u8 = 16;

    pub(crate) const fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

/// Reads the headers of a packet that begins with IPv4's; `None` if it is no whole IPv4 packet.
pub(crate) fn read(packet: &[u8]) -> Option<Headers> {
    let first = *packet.first()?;
    let header = usize::from(first & 15) * 4;
    let length = usize::from(word(packet, 2)?);
    if first >> 4 != 4 || header < IPV4 || length < header || length > packet.len() {
        return None;
    }
    let address = |at: usize| {
        packet.get(at..at + 4)?.try_into().ok().map(|bytes: [u8; 4]| Ipv4Addr::from(bytes))
    };
    let service = *packet.get(1)?;
    let fragment = word(packet, 6)?;
    // More fragments follow, or this is not the first.
    let is_whole = fragment & 0x3fff == 0;
    let above = packet.get(header..length)?;
    Some(Headers {
        src: address(12)?,
        dst: address(16)?,
        length: length as u32,
        ecn: ecn_of(service),
        dscp: service >> 2,
        above: match *packet.get(9)? {
            _ if !is_whole => Above::Other,
            TCP => tcp(above).map_or(Above::Other, Above::Tcp),
            UDP => udp(above).unwrap_or(Above::Other),
            ICMP => echo(above).unwrap_or(Above::Other),
            _ => Above::Other,
        },
    })
}

/// What the service byte says of ECN (RFC 3168 section 5).
pub(crate) fn ecn_of(service: u8) -> Ecn {
    match service & 3 {
        0 => Ecn::NotEct,
        1 => Ecn::Ect1,
        2 => Ecn::Ect0,
        _ => Ecn::Ce,
    }
}

pub(crate) fn bits_of(ecn: Ecn) -> u8 {
    match ecn {
        Ecn::NotEct => 0,
        Ecn::Ect1 => 1,
        Ecn::Ect0 => 2,
        Ecn::Ce => 3,
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn double(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn ports(bytes: &[u8]) -> Option<Ports> {
    Some(Ports { src: word(bytes, 0)?, dst: word(bytes, 2)? })
}

fn tcp(bytes: &[u8]) -> Option<Tcp> {
    let header = usize::from(bytes.get(12)? >> 4) * 4;
    let options = bytes.get(20..header)?;
    let flags = *bytes.get(13)?;
    let (sack, sack_count) = sack(options);
    // ECE and CWR are the two highest flags, and AE is the lowest bit of the byte before.
    let ecn = (bytes[12] & 1) << 2 | flags >> 6 & 1 | flags >> 7 << 1;
    Some(Tcp {
        ports: ports(bytes)?,
        seq: double(bytes, 4)?,
        ack: double(bytes, 8)?,
        flags,
        ecn: TcpEcn::from_bits(ecn),
        window: word(bytes, 14)?,
        payload: (bytes.len() - header) as u32,
        sack,
        sack_count,
    })
}

/// The first blocks of a SACK option (RFC 2018 section 3).
fn sack(mut options: &[u8]) -> ([SackBlock; MAX_SACK_BLOCKS], u8) {
    const END: u8 = 0;
    const NOTHING: u8 = 1;
    const SACK: u8 = 5;
    let mut blocks = [SackBlock::default(); MAX_SACK_BLOCKS];
    while let [kind, rest @ ..] = options {
        if *kind == END {
            break;
        }
        if *kind == NOTHING {
            options = rest;
            continue;
        }
        let Some(length) = rest.first().map(|length| usize::from(*length)) else { break };
        let Some(option) = options.get(2..length) else { break };
        if *kind == SACK {
            let mut count = 0;
            for (block, bytes) in blocks.iter_mut().zip(option.chunks_exact(8)) {
                let (Some(start), Some(end)) = (double(bytes, 0), double(bytes, 4)) else { break };
                *block = SackBlock { start, end };
                count += 1;
            }
            return (blocks, count);
        }
        options = &options[length..];
    }
    (blocks, 0)
}

fn udp(bytes: &[u8]) -> Option<Above> {
    let payload = u32::try_from(bytes.len().checked_sub(8)?).ok()?;
    Some(Above::Udp { ports: ports(bytes)?, payload })
}

/// An echo request or reply (RFC 792).
fn echo(bytes: &[u8]) -> Option<Above> {
    let is_reply = match bytes.get(..2)? {
        [0, 0] => true,
        [8, 0] => false,
        _ => return None,
    };
    Some(Above::Echo { is_reply, id: word(bytes, 4)?, number: word(bytes, 6)? })
}

/// Gives the header of an IPv4 packet another code point and ECN field, if they differ, and puts its checksum
/// right (RFC 1624). What is no IPv4 packet stays as it is.
pub(crate) fn set_service(packet: &mut [u8], dscp: u8, ecn: Ecn) {
    let Some(old) = word(packet, 0) else { return };
    let Some(checksum) = word(packet, 10) else { return };
    let new = old & 0xff00 | u16::from(dscp << 2 | bits_of(ecn));
    if new == old {
        return;
    }
    // RFC 1624 equation 3: HC' = ~(~HC + ~m + m').
    let mut sum = u32::from(!checksum) + u32::from(!old) + u32::from(new);
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    packet[1] = new as u8;
    packet[10..12].copy_from_slice(&(!(sum as u16)).to_be_bytes());
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The sum of RFC 1071 over an IPv4 header, which is 0xffff if its checksum is right.
    fn sum(header: &[u8]) -> u16 {
        let mut sum: u32 =
            header.chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum();
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        sum as u16
    }

    fn packet(service: u8, protocol: u8, above: &[u8]) -> Vec<u8> {
        let length = (IPV4 + above.len()) as u16;
        let mut bytes = vec![0x45, service];
        bytes.extend(length.to_be_bytes());
        bytes.extend([0, 7, 0x40, 0, 64, protocol, 0, 0]);
        bytes.extend([10, 0, 0, 1, 10, 0, 0, 2]);
        let checksum = !sum(&bytes);
        bytes[10..12].copy_from_slice(&checksum.to_be_bytes());
        bytes.extend(above);
        bytes
    }

    /// A header of 32 bytes: two NOPs and a SACK option of one block, and then a payload of three.
    fn segment() -> Vec<u8> {
        let mut bytes = vec![0x13, 0x88, 0xc3, 0x50, 0, 0, 0, 100, 0, 0, 0, 200, 0x81, 0xd8, 1, 2];
        bytes.extend([0, 0, 0, 0, 1, 1, 5, 10]);
        bytes.extend([0, 0, 0, 250, 0, 0, 1, 4]);
        bytes.extend(b"abc");
        bytes
    }

    #[test]
    fn the_fields_of_a_segment_are_where_rfc_9293_has_them() {
        let headers = read(&packet(0xb9, TCP, &segment())).expect("it is a packet");
        assert_eq!(headers.src, Ipv4Addr::new(10, 0, 0, 1));
        assert_eq!(headers.dst, Ipv4Addr::new(10, 0, 0, 2));
        assert_eq!((headers.length, headers.dscp, headers.ecn), (55, 46, Ecn::Ect1));
        let Above::Tcp(tcp) = headers.above else { panic!("{headers:?}") };
        assert_eq!(tcp.ports, Ports { src: 5000, dst: 50_000 });
        assert_eq!((tcp.seq, tcp.ack, tcp.window, tcp.payload), (100, 200, 0x102, 3));
        assert!(tcp.has(Tcp::ACK) && tcp.has(Tcp::PSH) && !tcp.has(Tcp::SYN));
        assert_eq!(tcp.ecn.bits(), 0b111);
        assert_eq!((tcp.sack_count, tcp.sack[0]), (1, SackBlock { start: 250, end: 260 }));
    }

    #[test]
    fn datagrams_and_echoes_are_told_apart() {
        let datagram = [0, 1, 0, 2, 0, 10, 0, 0, 9, 9];
        let above = read(&packet(0, UDP, &datagram)).expect("it is a packet").above;
        assert_eq!(above, Above::Udp { ports: Ports { src: 1, dst: 2 }, payload: 2 });
        for (kind, is_reply) in [(8, false), (0, true)] {
            let echo = [kind, 0, 0, 0, 1, 2, 3, 4];
            let above = read(&packet(0, ICMP, &echo)).expect("it is a packet").above;
            assert_eq!(above, Above::Echo { is_reply, id: 0x102, number: 0x304 });
        }
        let unreachable = [3, 3, 0, 0, 0, 0, 0, 0];
        assert_eq!(read(&packet(0, ICMP, &unreachable)).map(|h| h.above), Some(Above::Other));
    }

    #[test]
    fn a_part_of_a_packet_has_no_ports() {
        let mut bytes = packet(0, TCP, &segment());
        bytes[6] = 0x20;
        assert_eq!(read(&bytes).map(|headers| headers.above), Some(Above::Other));
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = read(&bytes);
            let mut changed = bytes.clone();
            set_service(&mut changed, 63, Ecn::Ce);
            prop_assert_eq!(changed.len(), bytes.len());
        }

        /// Bytes that pass for IPv4 reach the readers behind it.
        #[test]
        fn no_bytes_behind_a_header_make_it_panic(
            protocol in prop::sample::select(vec![ICMP, TCP, UDP]),
            above in prop::collection::vec(any::<u8>(), 0..80),
            cut in 0_usize..20,
        ) {
            let bytes = packet(0, protocol, &above);
            prop_assert_eq!(read(&bytes).map(|headers| headers.length), Some(bytes.len() as u32));
            prop_assert_eq!(read(&bytes[..bytes.len() - cut]).is_some(), cut == 0);
            if let Above::Tcp(tcp) = read(&bytes).expect("it is whole").above {
                prop_assert!(tcp.payload as usize + 20 <= above.len());
                prop_assert!(usize::from(tcp.sack_count) <= MAX_SACK_BLOCKS);
            }
        }

        #[test]
        fn a_changed_header_has_the_right_checksum(old in any::<u8>(), dscp in 0_u8..64, ecn in 0_u8..4) {
            let ecn = ecn_of(ecn);
            let mut bytes = packet(old, UDP, &[0; 8]);
            set_service(&mut bytes, dscp, ecn);
            let headers = read(&bytes).expect("it is still a packet");
            prop_assert_eq!((headers.dscp, headers.ecn), (dscp, ecn));
            prop_assert_eq!(sum(&bytes[..IPV4]), 0xffff);
        }
    }
}
