//! Frames as a guest sends them: Ethernet, IPv4, and TCP, UDP or ICMP above it.

use crate::rings::CARD_HEADER;

/// What an end, or the simulator, has as the last byte of its addresses.
pub(crate) const SENDING: u8 = 1;
pub(crate) const RECEIVING: u8 = 2;
pub(crate) const OUTSIDE: u8 = 254;

const ETHERNET: usize = 14;
const IP_AT: usize = CARD_HEADER + ETHERNET;

/// A frame without its header of the card, as far as it is understood here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) to: u8,
    pub(crate) tos: u8,
    /// Bytes of the IP packet.
    pub(crate) len: u32,
    pub(crate) inner: Inner,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Inner {
    Tcp(Segment),
    Echo {
        is_reply: bool,
        number: u16,
    },
    /// The payload.
    Datagram(Vec<u8>),
    Other,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Segment {
    pub(crate) sequence: u32,
    pub(crate) ack: u32,
    /// FIN, SYN, RST, PSH, ACK, URG, ECE, CWR and AE from low to high.
    pub(crate) flags: u16,
    pub(crate) window: u16,
    pub(crate) payload: u32,
    pub(crate) mss: Option<u16>,
    pub(crate) window_scale: Option<u8>,
    /// The time that was sent, and the one that is echoed.
    pub(crate) times: Option<(u32, u32)>,
    pub(crate) sack: Vec<(u32, u32)>,
}

impl Segment {
    pub(crate) const FIN: u16 = 1;
    pub(crate) const SYN: u16 = 2;
    pub(crate) const RST: u16 = 4;
    pub(crate) const PSH: u16 = 8;
    pub(crate) const ACK: u16 = 16;

    pub(crate) fn has(&self, flags: u16) -> bool {
        self.flags & flags == flags
    }
}

/// Reads what follows the card's header; `None` if it is no IPv4 packet, or a broken one.
pub(crate) fn read(frame: &[u8]) -> Option<Frame> {
    let ethernet = frame.get(CARD_HEADER..)?;
    if ethernet.get(12..14)? != [8, 0] {
        return None;
    }
    let ip = &ethernet[ETHERNET..];
    let header = usize::from(ip.first()? & 15) * 4;
    let len = usize::from(short(ip, 2)?);
    if ip[0] >> 4 != 4 || header < 20 || len < header || len > ip.len() {
        return None;
    }
    let body = &ip[header..len];
    let inner = match ip[9] {
        6 => tcp(body).map(Inner::Tcp),
        17 => body.get(8..).map(|payload| Inner::Datagram(payload.to_vec())),
        1 => match (body.first(), short(body, 6)) {
            (Some(0), Some(number)) => Some(Inner::Echo { is_reply: true, number }),
            (Some(8), Some(number)) => Some(Inner::Echo { is_reply: false, number }),
            _ => None,
        },
        _ => None,
    };
    Some(Frame { to: ip[19], tos: ip[1], len: len as u32, inner: inner.unwrap_or(Inner::Other) })
}

fn tcp(body: &[u8]) -> Option<Segment> {
    let header = usize::from(body.get(12)? >> 4) * 4;
    let mut segment = Segment {
        sequence: long(body, 4)?,
        ack: long(body, 8)?,
        flags: u16::from(body[12] & 1) << 8 | u16::from(*body.get(13)?),
        window: short(body, 14)?,
        payload: body.len().checked_sub(header)? as u32,
        ..Segment::default()
    };
    let mut options = body.get(20..header)?;
    while let Some((kind, rest)) = options.split_first() {
        match kind {
            0 => break,
            1 => options = rest,
            _ => {
                let len = usize::from(*rest.first()?);
                let value = options.get(2..len)?;
                match kind {
                    2 => segment.mss = short(value, 0),
                    3 => segment.window_scale = value.first().copied(),
                    5 => {
                        let blocks = value.chunks_exact(8);
                        segment.sack = blocks
                            .filter_map(|block| Some((long(block, 0)?, long(block, 4)?)))
                            .collect();
                    }
                    8 => segment.times = Some((long(value, 0)?, long(value, 4)?)),
                    _ => {}
                }
                options = options.get(len..)?;
            }
        }
    }
    Some(segment)
}

/// Makes a frame that was sent one that arrives: its header of the card says that it is whole.
pub(crate) fn make_arriving(frame: &mut [u8]) {
    frame[10..CARD_HEADER].copy_from_slice(&1u16.to_le_bytes());
}

/// Sets the ECN field of a frame that [`read`] has read.
pub(crate) fn set_ecn(frame: &mut [u8], ecn: u8) {
    let ip = &mut frame[IP_AT..];
    if ip[1] & 3 == ecn {
        return;
    }
    ip[1] = ip[1] & !3 | ecn;
    let header = usize::from(ip[0] & 15) * 4;
    ip[10..12].fill(0);
    let sum = checksum(&ip[..header]);
    ip[10..12].copy_from_slice(&sum.to_be_bytes());
}

/// A datagram from outside the guests to one of them, with an empty header of the card.
pub(crate) fn order(to: u8, payload: &[u8]) -> Vec<u8> {
    const PORT: u16 = 7;
    let mut frame = vec![0; CARD_HEADER];
    // One buffer holds the frame.
    frame[10] = 1;
    frame.extend([2, 0, 0, 0, 0, to, 2, 0, 0, 0, 0, OUTSIDE, 8, 0]);
    let len = (28 + payload.len()) as u16;
    let mut ip = vec![0x45, 0];
    ip.extend(len.to_be_bytes());
    ip.extend([0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, OUTSIDE, 10, 0, 0, to]);
    let sum = checksum(&ip);
    ip[10..12].copy_from_slice(&sum.to_be_bytes());
    frame.extend(ip);
    for word in [PORT, PORT, len - 20, 0] {
        frame.extend(word.to_be_bytes());
    }
    frame.extend(payload);
    frame
}

/// A packet that a router is to forward, with an empty header of the card: `len` bytes of IP, of which the last four are `number`.
pub(crate) fn forwarded(to: u8, packet: &Forwarded) -> Vec<u8> {
    let len = (packet.len as usize).max(LEAST_FORWARDED);
    let mut frame = vec![0; CARD_HEADER];
    frame[10] = 1;
    frame.extend([2, 0, 0, 0, 0, to, 2, 0, 0, 0, 0, OUTSIDE, 8, 0]);
    let length = (len as u16).to_be_bytes();
    let [_, _, a, b] = packet.from.to_be_bytes();
    let [_, _, c, d] = packet.to.to_be_bytes();
    let mut ip = vec![0x45, packet.tos, length[0], length[1], 0, 0, 0, 0, 64, 17, 0, 0];
    ip.extend([10, 2, a, b, 10, 1, c, d]);
    let sum = checksum(&ip);
    ip[10..12].copy_from_slice(&sum.to_be_bytes());
    frame.extend(ip);
    let ports = [packet.ports as u16, (packet.ports >> 16) as u16, (len - 20) as u16, 0];
    ports.iter().for_each(|word| frame.extend(word.to_be_bytes()));
    frame.resize(IP_AT + len - 4, 0);
    frame.extend(packet.number.to_be_bytes());
    frame
}

/// The number and the type of service of a packet that [`forwarded`] made.
pub(crate) fn number_of(frame: &[u8]) -> Option<(u32, u8)> {
    let own = read(frame)?;
    let ip = frame.get(IP_AT..IP_AT + own.len as usize)?;
    let is_one = ip[9] == 17 && ip[16..18] == [10, 1] && ip.len() >= LEAST_FORWARDED;
    is_one.then(|| Some((long(ip, ip.len() - 4)?, own.tos))).flatten()
}

/// Headers of IP and UDP, and the number.
const LEAST_FORWARDED: usize = 32;

/// What a router sees of a packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Forwarded {
    pub(crate) number: u32,
    /// Bytes of IP.
    pub(crate) len: u32,
    pub(crate) tos: u8,
    pub(crate) from: u32,
    pub(crate) to: u32,
    pub(crate) ports: u64,
}

/// The Internet checksum (RFC 1071).
pub(crate) fn checksum(bytes: &[u8]) -> u16 {
    !fold(bytes)
}

/// The sum that [`checksum`] is the complement of.
pub(crate) fn fold(bytes: &[u8]) -> u16 {
    let words = bytes
        .chunks(2)
        .map(|pair| u32::from(pair[0]) << 8 | pair.get(1).map_or(0, |low| u32::from(*low)));
    let mut sum: u32 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

pub(crate) fn short(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

pub(crate) fn long(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn frames_of_any_bytes_are_read_or_refused(mut bytes in vec(any::<u8>(), 0..200), is_ip: bool, protocol in 0u8..20) {
            if is_ip && bytes.len() > IP_AT + 20 {
                bytes[CARD_HEADER + 12..IP_AT].copy_from_slice(&[8, 0]);
                bytes[IP_AT] = 0x45;
                let len = (bytes.len() - IP_AT) as u16;
                bytes[IP_AT + 2..IP_AT + 4].copy_from_slice(&len.to_be_bytes());
                bytes[IP_AT + 9] = protocol;
            }
            if let Some(frame) = read(&bytes) {
                prop_assert!(frame.len as usize + IP_AT <= bytes.len());
                set_ecn(&mut bytes, 3);
                prop_assert_eq!(read(&bytes).map(|frame| frame.tos & 3), Some(3));
            }
        }

        #[test]
        fn a_forwarded_packet_is_known_by_its_number(number: u32, len in 28u32..1500, tos: u8, from: u32, to: u32, ports: u64) {
            let bytes = forwarded(3, &Forwarded { number, len, tos, from, to, ports });
            prop_assert_eq!(number_of(&bytes), Some((number, tos)));
            prop_assert_eq!(checksum(&bytes[IP_AT..IP_AT + 20]), 0);
            prop_assert_eq!(number_of(&order(3, b"nothing of this kind, and long enough")), None);
        }

        #[test]
        fn an_order_is_read_as_it_was_written(payload in vec(any::<u8>(), 0..1000)) {
            let frame = read(&order(RECEIVING, &payload)).expect("it is IPv4");
            prop_assert_eq!((frame.to, frame.inner), (RECEIVING, Inner::Datagram(payload)));
        }
    }

    #[test]
    fn the_checksum_of_a_header_with_its_checksum_is_zero() {
        let frame = order(SENDING, b"x");
        assert_eq!(checksum(&frame[IP_AT..IP_AT + 20]), 0);
        // The example of RFC 1071, section 3.
        assert_eq!(!checksum(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]), 0xddf2);
    }
}
