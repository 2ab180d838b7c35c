//! What CAKE does to a packet beyond what [`Queued`] allows.

use sojourn_core::{Body, ETHERNET_HEADER, Packet, Queued, TcpEcn};

/// A packet that can be cut into its segments and stripped of its class. It is a plain copy, as
/// everything that is queued: code whose packets do not fit into one queues a handle.
pub trait Reshape: Queued + Copy {
    /// Removes the first segment from a packet of several, with its share of the bytes; `None` if
    /// the packet is one segment.
    fn split_first(&mut self) -> Option<Self>;

    /// Sets the differentiated services code point to zero (`wash`).
    fn wash(&mut self);
}

impl Reshape for Packet {
    /// The payload is assumed to be spread evenly: each segment but the last takes the rounded-up
    /// share. `push` stays with the last segment and CWR goes with the first, as in segmentation
    /// offload (RFC 3168 section 6.1.2 wants CWR once); a counter of marks is on all segments.
    fn split_first(&mut self) -> Option<Self> {
        if self.segments < 2 {
            return None;
        }
        let (segments, bytes) = (u32::from(self.segments), self.ip_len());
        let mut first = *self;
        first.segments = 1;
        let ip_len = match (&mut first.body, &mut self.body) {
            (Body::Segment(head), Body::Segment(rest)) => {
                let headers = (bytes - rest.payload) / segments;
                let payload = rest.payload.div_ceil(segments);
                head.payload = payload;
                head.push = false;
                rest.payload -= payload;
                rest.first += 1;
                rest.byte += u64::from(payload);
                if rest.ecn == TcpEcn::CWR {
                    rest.ecn = TcpEcn::NONE;
                }
                headers + payload
            }
            _ => bytes.div_ceil(segments),
        };
        first.wire_len = ip_len + ETHERNET_HEADER;
        self.segments -= 1;
        self.wire_len -= first.wire_len;
        Some(first)
    }

    fn wash(&mut self) {
        self.dscp = 0;
    }
}

#[cfg(test)]
mod tests {
    use sojourn_core::packet::SegmentBody;
    use sojourn_core::{Direction, Ecn, FlowId, HostId, Time};

    use super::*;

    fn super_packet(segments: u16, payload: u32) -> Packet {
        Packet {
            flow: FlowId(1),
            connection: 0,
            direction: Direction::Forward,
            ecn: Ecn::Ect0,
            dscp: 46,
            segments,
            wire_len: payload + 66 * u32::from(segments),
            hop: 0,
            src: HostId(1),
            dst: HostId(2),
            sent: Time::ZERO,
            body: Body::Segment(SegmentBody {
                first: 10,
                byte: 14_480,
                payload,
                retransmission: false,
                echo: Time::ZERO,
                ecn: TcpEcn::CWR,
                push: true,
                fin: false,
            }),
        }
    }

    #[test]
    fn a_super_packet_splits_into_segments_that_add_up_to_it() {
        let mut rest = super_packet(3, 3 * 1448);
        let mut parts = Vec::new();
        while let Some(part) = rest.split_first() {
            parts.push(part);
        }
        parts.push(rest);
        assert_eq!(parts.len(), 3);
        for (index, part) in (0u32..).zip(&parts) {
            let Body::Segment(segment) = part.body else { panic!("a segment stays a segment") };
            assert_eq!((part.wire_len, part.segments, segment.payload), (1514, 1, 1448));
            assert_eq!(segment.first, 10 + index);
            assert_eq!(segment.byte, 14_480 + 1448 * u64::from(index));
            assert_eq!(segment.push, index == 2);
            assert_eq!(segment.ecn == TcpEcn::CWR, index == 0);
        }
    }

    #[test]
    fn an_uneven_payload_loses_no_byte() {
        let mut rest = super_packet(2, 1448 + 100);
        let total = rest.wire_len;
        let first = rest.split_first().expect("two segments");
        assert_eq!(first.wire_len + rest.wire_len, total);
        assert!(rest.split_first().is_none());
    }
}
