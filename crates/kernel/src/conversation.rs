//! A flow between two guests: frames become the simulator's packets, and packets that arrive become frames again.
//!
//! The simulator knows a TCP segment by its fields, as it does its own, so that queues and metrics treat both alike. The
//! bytes wait here until the packet arrives.

use std::collections::{BTreeMap, VecDeque};

use sojourn_core::{
    AckBody, AckFlags, AckKind, Body, Direction, Ecn, MAX_SACK_BLOCKS, Packet, SackBlock,
    SegmentBody, TcpEcn, Time,
};
use sojourn_host::Contents;
use sojourn_host::tcp::RoundTrips;

use crate::frame::{self, Frame, Inner, Segment};

/// Frames of one direction that left at one moment, with what the simulator knows of each.
type Leaving = Vec<(Key, Vec<u8>)>;

#[derive(Debug, Default)]
pub(crate) struct Conversation {
    under_way: BTreeMap<(Time, bool), Leaving>,
    /// The sequence number of the first byte of payload.
    first: Option<u32>,
    scale: u8,
    segment: Option<u32>,
    /// When the request for the connection left.
    pub(crate) asked: Time,
    /// Bytes sent for the first time, acknowledged, and received in order.
    pub(crate) next: u64,
    pub(crate) acked: u64,
    pub(crate) received: u64,
    /// Bytes received beyond a hole: where each piece begins and ends.
    beyond: BTreeMap<u64, u64>,
    round_trips: RoundTrips,
    /// Whether the sending end has said that no more follows.
    has_ended: bool,
    /// When echo requests left, by number.
    asks: BTreeMap<u16, Time>,
    /// The timestamps of each direction, in order, and when the first segment with each left.
    stamps: [VecDeque<(u32, Time)>; 2],
}

/// What tells frames of one moment apart.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Key {
    Segment(u64),
    Ack(u32, u32, [SackBlock; MAX_SACK_BLOCKS], u8, AckFlags),
    Handshake,
    Echo(u32),
}

fn key(body: &Body) -> Option<Key> {
    Some(match body {
        Body::Segment(segment) => Key::Segment(segment.byte),
        Body::Ack(ack) => Key::Ack(ack.ack, ack.window, ack.sack, ack.ecn.bits(), ack.flags),
        Body::Handshake { .. } => Key::Handshake,
        Body::Echo { number, .. } => Key::Echo(*number),
        _ => return None,
    })
}

/// What an arriving packet means to the ends.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Arrival {
    /// Bytes that the receiving end has now got in order.
    pub(crate) delivered: u64,
    /// The sender takes a sample of its round-trip time; when that left of which it takes it.
    pub(crate) sample_sent_at: Option<Time>,
    /// An echo came back; when it was asked for.
    pub(crate) echo_sent_at: Option<Time>,
}

const LONGEST_UNDER_WAY: u64 = 60_000_000_000;

impl Conversation {
    /// The packet that `bytes` are in the simulator; they wait here until it arrives. `like` has its addresses.
    pub(crate) fn leave(
        &mut self,
        now: Time,
        direction: Direction,
        bytes: Vec<u8>,
        frame: &Frame,
        like: impl FnOnce(u32, Body) -> Packet,
        contents: &mut Contents,
    ) -> Packet {
        let body = match &frame.inner {
            Inner::Tcp(segment) => self.tcp(now, direction, segment),
            Inner::Echo { is_reply, number } => {
                if !is_reply {
                    self.asks.insert(*number, now);
                }
                let asked = self.asks.get(number).copied().unwrap_or(now);
                Some(Body::Echo { number: u32::from(*number), asked })
            }
            Inner::Datagram(_) | Inner::Other => None,
        };
        let kept = body.as_ref().and_then(key);
        let body = match (body, kept) {
            (Some(body), Some(key)) => {
                self.keep(now, direction, key, bytes);
                body
            }
            _ => Body::Opaque { number: 0, content: contents.put(bytes, 1) },
        };
        let mut packet = like(frame.len, body);
        packet.ecn = ecn_of(frame.tos);
        packet.dscp = frame.tos >> 2;
        packet
    }

    fn keep(&mut self, now: Time, direction: Direction, key: Key, bytes: Vec<u8>) {
        let place = (now, direction == Direction::Reverse);
        self.under_way.entry(place).or_default().push((key, bytes));
        // Packets that were dropped are never asked for.
        while let Some(oldest) = self.under_way.first_entry()
            && now.since(oldest.key().0).as_nanos() > LONGEST_UNDER_WAY
        {
            oldest.remove();
        }
    }

    /// The frame that a packet is, with the marks that it got on its way.
    pub(crate) fn arrive(&mut self, packet: &Packet, contents: &Contents) -> Option<Vec<u8>> {
        let mut bytes = match packet.body {
            Body::Opaque { content, .. } => contents.bytes(content).to_vec(),
            _ => {
                let place = (packet.sent, packet.direction == Direction::Reverse);
                let wanted = key(&packet.body)?;
                let leaving = self.under_way.get_mut(&place)?;
                let at = leaving.iter().position(|(key, _)| *key == wanted)?;
                let (_, bytes) = leaving.remove(at);
                if leaving.is_empty() {
                    self.under_way.remove(&place);
                }
                bytes
            }
        };
        frame::read(&bytes)?;
        frame::make_arriving(&mut bytes);
        frame::set_ecn(&mut bytes, ecn_bits(packet.ecn));
        Some(bytes)
    }

    /// What the packet brings about, once.
    pub(crate) fn learn(&mut self, frame: &Frame, direction: Direction) -> Arrival {
        let mut arrival = Arrival::default();
        match (&frame.inner, direction) {
            (Inner::Tcp(segment), Direction::Forward) if segment.payload > 0 => {
                let begin = self.offset(segment.sequence, self.received);
                arrival.delivered = self.receive(begin, begin + u64::from(segment.payload));
            }
            (Inner::Tcp(segment), Direction::Reverse) if self.first.is_some() => {
                let acked = self.offset(segment.ack, self.acked).min(self.next);
                if segment.has(Segment::ACK) {
                    self.acked = self.acked.max(acked);
                    let echo = segment
                        .times
                        .and_then(|(_, echoed)| self.stamped(Direction::Forward as usize, echoed));
                    let blocks = segment
                        .sack
                        .iter()
                        .map(|(begin, end)| (self.offset(*begin, acked), self.offset(*end, acked)));
                    let blocks: Vec<(u64, u64)> = blocks.collect();
                    arrival.sample_sent_at = self.round_trips.acknowledge(acked, blocks, echo);
                }
            }
            (Inner::Echo { is_reply: true, number }, _) => {
                arrival.echo_sent_at = self.asks.remove(number);
            }
            _ => {}
        }
        arrival
    }

    /// Bytes that are now in order and were not.
    fn receive(&mut self, begin: u64, end: u64) -> u64 {
        let before = self.received;
        if end <= before {
            return 0;
        }
        let longest = self.beyond.get(&begin).map_or(end, |other| end.max(*other));
        self.beyond.insert(begin, longest);
        while let Some(piece) = self.beyond.first_entry()
            && *piece.key() <= self.received
        {
            self.received = self.received.max(piece.remove());
        }
        self.received - before
    }

    fn tcp(&mut self, now: Time, direction: Direction, segment: &Segment) -> Option<Body> {
        let ecn = TcpEcn::from_bits((segment.flags >> 6) as u8);
        let echo = self.stamp(now, direction, segment.times);
        if segment.has(Segment::SYN) {
            if direction == Direction::Forward {
                if self.first.is_none() {
                    self.asked = now;
                }
                self.first = Some(segment.sequence.wrapping_add(1));
            } else {
                self.scale = segment.window_scale.unwrap_or(0);
            }
            let stamp = if segment.times.is_some() { 12 } else { 0 };
            let most = u32::from(segment.mss.unwrap_or(536)).saturating_sub(stamp).max(1);
            self.segment = Some(self.segment.map_or(most, |other| other.min(most)));
            return Some(Body::Handshake { asked: self.asked, ecn });
        }
        if segment.has(Segment::RST) || self.first.is_none() {
            return None;
        }
        let fin = segment.has(Segment::FIN);
        self.has_ended |= fin && direction == Direction::Forward;
        let size = u64::from(self.segment.unwrap_or(1448));
        if segment.payload > 0 && direction == Direction::Forward {
            let byte = self.offset(segment.sequence, self.next);
            let end = byte + u64::from(segment.payload);
            let retransmission = byte < self.next;
            self.next = self.next.max(end);
            self.round_trips.leave(now, byte, end);
            return Some(Body::Segment(SegmentBody {
                first: (byte / size) as u32,
                byte,
                payload: segment.payload,
                retransmission,
                ecn,
                push: segment.has(Segment::PSH),
                fin,
                echo,
            }));
        }
        if segment.payload > 0 {
            return None;
        }
        let mut ack = AckBody {
            ack: 0,
            window: u32::from(segment.window) << self.scale.min(14),
            echo,
            sack: [SackBlock::default(); MAX_SACK_BLOCKS],
            sack_count: 0,
            flags: AckFlags::FIN.only_if(fin),
            ecn,
            ce_bytes: None,
            kind: AckKind::Ack,
        };
        // The end of the stream has a number too, and is no byte.
        let number =
            |byte: u64| (byte.min(self.next).div_ceil(size) + u64::from(byte > self.next)) as u32;
        if direction == Direction::Forward {
            ack.ack = number(self.offset(segment.sequence, self.next));
        } else {
            let acked = self.offset(segment.ack, self.acked);
            ack.ack = number(acked);
            for (block, (begin, end)) in ack.sack.iter_mut().zip(&segment.sack) {
                let (begin, end) = (self.offset(*begin, acked), self.offset(*end, acked));
                let is_duplicate = ack.sack_count == 0 && begin < acked;
                ack.flags = ack.flags | AckFlags::DSACK.only_if(is_duplicate);
                *block = SackBlock { start: (begin / size) as u32, end: end.div_ceil(size) as u32 };
                ack.sack_count += 1;
            }
        }
        Some(Body::Ack(ack))
    }

    /// Notes the timestamp of a segment that leaves now. Says when the one left that it echoes.
    fn stamp(&mut self, now: Time, direction: Direction, times: Option<(u32, u32)>) -> Time {
        /// As many as a minute has milliseconds.
        const KEPT: usize = 60_000;
        let Some((own, echoed)) = times else { return Time::ZERO };
        let at = usize::from(direction == Direction::Reverse);
        let stamps = &mut self.stamps[at];
        if stamps.back().is_none_or(|(last, _)| (own.wrapping_sub(*last) as i32) > 0) {
            stamps.push_back((own, now));
        }
        if stamps.len() > KEPT {
            stamps.pop_front();
        }
        self.stamped(1 - at, echoed).unwrap_or(Time::ZERO)
    }

    /// When the first segment of a direction left that bears a timestamp.
    fn stamped(&self, direction: usize, stamp: u32) -> Option<Time> {
        let all = &self.stamps[direction];
        let place = all.partition_point(|(own, _)| (own.wrapping_sub(stamp) as i32) < 0);
        all.get(place).filter(|(own, _)| *own == stamp).map(|(_, at)| *at)
    }

    /// The position in the stream of a sequence number that is near to one that is known.
    fn offset(&self, sequence: u32, near: u64) -> u64 {
        let first = self.first.unwrap_or(0);
        let low = sequence.wrapping_sub(first);
        let ahead = low.wrapping_sub(near as u32) as i32;
        near.saturating_add_signed(i64::from(ahead))
    }
}

fn ecn_of(tos: u8) -> Ecn {
    match tos & 3 {
        0 => Ecn::NotEct,
        1 => Ecn::Ect1,
        2 => Ecn::Ect0,
        _ => Ecn::Ce,
    }
}

fn ecn_bits(ecn: Ecn) -> u8 {
    match ecn {
        Ecn::NotEct => 0,
        Ecn::Ect1 => 1,
        Ecn::Ect0 => 2,
        Ecn::Ce => 3,
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Whatever pieces come in whatever order, what is in order has no hole.
        #[test]
        fn bytes_are_delivered_in_order(pieces in vec((0u64..60, 1u64..9), 1..60)) {
            let mut conversation = Conversation::default();
            let mut have = [false; 80];
            let mut delivered = 0;
            for (begin, len) in pieces {
                (begin..begin + len).for_each(|byte| have[byte as usize] = true);
                delivered += conversation.receive(begin, begin + len);
                let in_order = have.iter().take_while(|has| **has).count() as u64;
                prop_assert_eq!((delivered, conversation.received), (in_order, in_order));
            }
        }

        #[test]
        fn sequence_numbers_go_round(first: u32, near in 0u64..1 << 40, ahead in -1_000_000i64..1_000_000) {
            let conversation = Conversation { first: Some(first), ..Conversation::default() };
            let offset = near.saturating_add_signed(ahead);
            let sequence = first.wrapping_add(offset as u32);
            prop_assert_eq!(conversation.offset(sequence, near), offset);
        }
    }
}
