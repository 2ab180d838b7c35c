//! Packets from outside, of which nothing is known beforehand.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use sojourn_core::{
    Body, ContentId, Direction, ETHERNET_HEADER, Ecn, FlowId, HostId, Packet, Time,
};

use crate::headers::{Above, Headers};

/// Makes packets of a study of them.
#[derive(Default)]
pub(crate) struct Strangers {
    count: [u32; 2],
}

impl Strangers {
    /// What `whole`, whose bytes up to IP are `before`, is to the queues; `None` if it is no whole frame.
    pub(crate) fn packet(
        &mut self,
        now: Time,
        from: HostId,
        whole: &[u8],
        before: usize,
        headers: Option<&Headers>,
    ) -> Option<Packet> {
        let length = whole.len().checked_sub(before)?;
        let direction = if from.0 == 0 { Direction::Forward } else { Direction::Reverse };
        let number = self.count[direction as usize];
        self.count[direction as usize] = number.wrapping_add(1);
        Some(Packet {
            flow: FlowId(0),
            // Flow queues tell flows apart by this.
            connection: flow_number(whole, before, headers),
            direction,
            ecn: headers.map_or(Ecn::NotEct, |own| own.ecn),
            dscp: headers.map_or(0, |own| own.dscp),
            segments: 1,
            wire_len: length as u32 + ETHERNET_HEADER,
            hop: 0,
            src: from,
            dst: HostId(1 - from.0.min(1)),
            sent: now,
            body: Body::Opaque { number, content: ContentId(0) },
        })
    }
}

/// Of addresses, protocol and ports; of IPv6 as of IPv4, and of anything else the kind of the frame.
fn flow_number(whole: &[u8], before: usize, headers: Option<&Headers>) -> u32 {
    const IPV6: [u8; 2] = [0x86, 0xdd];
    let mut hasher = DefaultHasher::new();
    let kind = before.checked_sub(2).and_then(|at| whole.get(at..before)).unwrap_or_default();
    let ip = whole.get(before..).unwrap_or_default();
    match headers {
        Some(own) => {
            (own.src, own.dst).hash(&mut hasher);
            match &own.above {
                Above::Tcp(tcp) => (6, tcp.ports.src, tcp.ports.dst).hash(&mut hasher),
                Above::Udp { ports, .. } => (17, ports.src, ports.dst).hash(&mut hasher),
                Above::Echo { id, .. } => (1, *id).hash(&mut hasher),
                Above::Other => {}
            }
        }
        None if kind == IPV6 => {
            // Addresses, and the first four bytes behind the header, which TCP and UDP have for ports.
            ip.get(8..44).unwrap_or(ip).hash(&mut hasher);
            ip.get(6).hash(&mut hasher);
        }
        None => kind.hash(&mut hasher),
    }
    hasher.finish() as u32 >> 1
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::headers;

    proptest! {
        #[test]
        fn no_frame_makes_it_panic(frame in prop::collection::vec(any::<u8>(), 0..120), before in 0_usize..30) {
            let read = frame.get(before..).and_then(headers::read);
            let packet = Strangers::default().packet(Time::ZERO, HostId(1), &frame, before, read.as_ref());
            prop_assert_eq!(packet.map(|own| own.dst), (frame.len() >= before).then_some(HostId(0)));
        }
    }
}
