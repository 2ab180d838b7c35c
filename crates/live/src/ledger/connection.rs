//! One TCP connection, as its segments show it.

use sojourn_core::packet::{AckBody, AckFlags, AckKind, SackBlock, SegmentBody};
use sojourn_core::{Body, Direction, Span, Time};
use sojourn_host::tcp::RoundTrips;

use crate::headers::Tcp;

pub(super) struct Connection {
    number: u32,
    /// When it was asked for.
    asked: Time,
    /// What each end sends: the flow's sender, then its receiver.
    halves: [Half; 2],
    is_reset: bool,
}

/// What one end sends, by positions in its stream. The first byte has position 1, as the request has 0.
#[derive(Default)]
struct Half {
    /// The sequence number of position 0.
    start: Option<u32>,
    /// After the last byte that was sent.
    sent: u64,
    /// After the last byte that the other end said that it has, when that left it, and when it came.
    received: u64,
    acknowledged: u64,
    /// After the last byte of all.
    end: Option<u64>,
    is_completed: bool,
    round_trips: RoundTrips,
}

/// What a segment that left an end means.
pub(super) struct Left {
    pub(super) body: Body,
    /// Bytes that the end has in order now and had not before.
    pub(super) delivered: u64,
}

/// What a segment that came to an end tells it.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Learned {
    pub(super) rtt: Option<Span>,
    /// All that the end sends has arrived: how many bytes, and how long it took from the request on.
    pub(super) completed: Option<(u64, Span)>,
}

impl Connection {
    /// Asked for with a request of that sequence number, which goes in `direction`.
    pub(super) fn asked(now: Time, number: u32, direction: Direction, seq: u32) -> Self {
        let mut halves = [Half::default(), Half::default()];
        halves[direction as usize].start = Some(seq);
        Self { number, asked: now, halves, is_reset: false }
    }

    /// Whether a request of that number is the one that it began with, sent again.
    pub(super) fn has_begun_with(&self, seq: u32) -> bool {
        !self.is_over() && self.halves.iter().any(|half| half.start == Some(seq))
    }

    pub(super) const fn number(&self) -> u32 {
        self.number
    }

    /// Both ends have sent all, or one has given up; nothing is to be learned any more.
    pub(super) fn is_over(&self) -> bool {
        self.is_reset || self.halves.iter().all(|half| half.is_completed)
    }

    /// A segment leaves the end that sends in `direction`.
    pub(super) fn leave(&mut self, now: Time, direction: Direction, tcp: &Tcp, mss: u32) -> Left {
        let [half, other] = [direction as usize, 1 - direction as usize];
        let mine = &mut self.halves[half];
        if tcp.has(Tcp::SYN) {
            mine.start.get_or_insert(tcp.seq);
            return Left {
                body: Body::Handshake { asked: self.asked, ecn: tcp.ecn },
                delivered: 0,
            };
        }
        let position = mine.position(tcp.seq, mine.sent);
        let end = position + u64::from(tcp.payload);
        if tcp.has(Tcp::FIN) {
            mine.end = Some(end);
        }
        let is_again = position < mine.sent && tcp.payload > 0;
        if tcp.payload > 0 {
            mine.round_trips.leave(now, position, end);
        }
        mine.sent = mine.sent.max(end);
        let theirs = &mut self.halves[other];
        let mut delivered = 0;
        let received = theirs.position(tcp.ack, theirs.received);
        if tcp.has(Tcp::ACK) && received > theirs.received {
            // The end of the stream has a number, too, and is no byte.
            let last = theirs.end.unwrap_or(u64::MAX);
            delivered = received.min(last).saturating_sub(theirs.received.max(1));
            theirs.received = received;
        }
        let segment = |position: u64| (position.saturating_sub(1) / u64::from(mss.max(1))) as u32;
        let segment_after = |position| segment(position + u64::from(mss.saturating_sub(1)));
        let body = match tcp.payload {
            0 => Body::Ack(AckBody {
                ack: segment_after(received),
                window: u32::from(tcp.window),
                echo: Time::ZERO,
                sack: tcp.sack.map(|block| match block {
                    SackBlock { start: 0, end: 0 } => block,
                    SackBlock { start, end } => SackBlock {
                        start: segment(theirs.position(start, theirs.received)),
                        end: segment_after(theirs.position(end, theirs.received)),
                    },
                }),
                sack_count: tcp.sack_count,
                flags: AckFlags::NONE,
                ecn: tcp.ecn,
                ce_bytes: None,
                kind: AckKind::Ack,
            }),
            payload => Body::Segment(SegmentBody {
                first: segment(position),
                byte: position.saturating_sub(1),
                payload,
                retransmission: is_again,
                ecn: tcp.ecn,
                push: tcp.has(Tcp::PSH),
                fin: false,
                echo: Time::ZERO,
            }),
        };
        Left { body, delivered }
    }

    /// A segment that went in `direction` comes to the other end.
    pub(super) fn arrive(&mut self, now: Time, direction: Direction, tcp: &Tcp) -> Learned {
        if tcp.has(Tcp::RST) {
            self.is_reset = true;
        }
        let mut learned = Learned::default();
        if !tcp.has(Tcp::ACK) {
            return learned;
        }
        let mine = &mut self.halves[1 - direction as usize];
        let acknowledged = mine.position(tcp.ack, mine.acknowledged);
        mine.acknowledged = mine.acknowledged.max(acknowledged);
        let blocks = tcp.sack.iter().take(usize::from(tcp.sack_count)).map(|block| {
            (mine.position(block.start, acknowledged), mine.position(block.end, acknowledged))
        });
        let blocks: Vec<(u64, u64)> = blocks.collect();
        learned.rtt =
            mine.round_trips.acknowledge(acknowledged, blocks, None).map(|left| now.since(left));
        if let Some(end) = mine.end
            && mine.acknowledged >= end
            && !mine.is_completed
        {
            mine.is_completed = true;
            learned.completed = (end > 1).then(|| (end - 1, now.since(self.asked)));
        }
        learned
    }
}

impl Half {
    /// The position of a sequence number that is nearest to one that is known.
    fn position(&self, seq: u32, near: u64) -> u64 {
        let start = self.start.unwrap_or(seq);
        let ahead = seq.wrapping_sub(start.wrapping_add(near as u32)) as i32;
        near.saturating_add_signed(i64::from(ahead))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use sojourn_core::TcpEcn;
    use sojourn_core::packet::MAX_SACK_BLOCKS;

    use super::*;
    use crate::headers::Ports;

    const FORWARD: Direction = Direction::Forward;
    const REVERSE: Direction = Direction::Reverse;

    fn tcp(seq: u32, ack: u32, flags: u8, payload: u32) -> Tcp {
        Tcp {
            ports: Ports { src: 1, dst: 2 },
            seq,
            ack,
            flags,
            ecn: TcpEcn::NONE,
            window: 0,
            payload,
            sack: [SackBlock::default(); MAX_SACK_BLOCKS],
            sack_count: 0,
        }
    }

    fn ms(ms: u64) -> Time {
        Time::ZERO + Span::from_millis(ms)
    }

    /// A connection whose numbers wrap soon, after its handshake.
    fn connection() -> (Connection, u32) {
        let start = u32::MAX - 50;
        let mut connection = Connection::asked(ms(0), 0, FORWARD, start);
        connection.leave(ms(0), FORWARD, &tcp(start, 0, Tcp::SYN, 0), 100);
        let answer = tcp(7, start.wrapping_add(1), Tcp::SYN | Tcp::ACK, 0);
        connection.leave(ms(10), REVERSE, &answer, 100);
        connection.arrive(ms(20), REVERSE, &answer);
        (connection, start.wrapping_add(1))
    }

    #[test]
    fn bytes_count_once_and_the_clock_of_a_copy_is_not_believed() {
        let (mut c, first) = connection();
        let data = |n: u32| tcp(first.wrapping_add(n * 100), 8, Tcp::ACK, 100);
        let ack = |n: u32| tcp(8, first.wrapping_add(n * 100), Tcp::ACK, 0);
        for n in 0..3 {
            let left = c.leave(ms(20), FORWARD, &data(n), 100);
            let Body::Segment(body) = left.body else { panic!("{:?}", left.body) };
            assert_eq!(
                (body.first, body.byte, body.retransmission),
                (n, u64::from(n) * 100, false)
            );
        }
        assert_eq!(c.leave(ms(30), REVERSE, &ack(1), 100).delivered, 100);
        assert_eq!(c.leave(ms(30), REVERSE, &ack(1), 100).delivered, 0);
        assert_eq!(c.arrive(ms(40), REVERSE, &ack(1)).rtt, Some(Span::from_millis(20)));
        let Body::Segment(again) = c.leave(ms(50), FORWARD, &data(1), 100).body else { panic!() };
        assert!(again.retransmission);
        assert_eq!(c.leave(ms(60), REVERSE, &ack(2), 100).delivered, 100);
        assert_eq!(c.arrive(ms(70), REVERSE, &ack(2)).rtt, None);
        assert_eq!(c.arrive(ms(70), REVERSE, &ack(3)).rtt, Some(Span::from_millis(50)));
    }

    #[test]
    fn a_transfer_is_complete_when_its_last_byte_is_acknowledged() {
        let (mut c, first) = connection();
        c.leave(ms(20), FORWARD, &tcp(first, 8, Tcp::ACK | Tcp::FIN, 70), 100);
        let ack = tcp(8, first.wrapping_add(71), Tcp::ACK | Tcp::FIN, 0);
        // The number of the end is no byte.
        assert_eq!(c.leave(ms(30), REVERSE, &ack, 100).delivered, 70);
        let learned = c.arrive(ms(45), REVERSE, &ack);
        assert_eq!(learned.completed, Some((70, Span::from_millis(45))));
        assert_eq!(c.arrive(ms(46), REVERSE, &ack), Learned::default());
        assert!(!c.is_over());
        let last = tcp(first.wrapping_add(71), 9, Tcp::ACK, 0);
        c.leave(ms(46), FORWARD, &last, 100);
        assert_eq!(c.arrive(ms(50), FORWARD, &last).completed, None);
        assert!(c.is_over());
    }

    proptest! {
        #[test]
        fn no_segments_make_it_panic(
            segments in prop::collection::vec(
                (any::<bool>(), any::<bool>(), any::<u32>(), any::<u32>(), any::<u8>(), 0_u32..65_000),
                0..50,
            ),
            mss in 0_u32..2000,
        ) {
            let (mut c, _) = connection();
            for (at, (leaves, forward, seq, ack, flags, payload)) in segments.into_iter().enumerate() {
                let direction = if forward { FORWARD } else { REVERSE };
                let tcp = tcp(seq, ack, flags, payload);
                if leaves {
                    c.leave(ms(at as u64), direction, &tcp, mss);
                } else {
                    c.arrive(ms(at as u64), direction, &tcp);
                }
            }
        }
    }
}
