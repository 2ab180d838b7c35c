//! Which flow a packet belongs to, and what it means for that flow: what `tcpdump` at every host would show,
//! as events.

mod connection;

use std::collections::HashMap;

use sojourn_core::{
    Body, ContentId, Direction, ETHERNET_HEADER, Event, FlowId, HostId, Observer, Packet, Time, Who,
};
use sojourn_scenario::{App, Scenario, Traffic};

use self::connection::Connection;
use crate::address::{self, FIRST_PORT};
use crate::frame::Part;
use crate::headers::{Above, Headers, Tcp};
use crate::offload;

/// What is known of every flow.
pub(crate) struct Ledger {
    flows: Vec<Account>,
    /// By flow and the port at who connects.
    connections: HashMap<(FlowId, u16), Connection>,
}

struct Account {
    src: HostId,
    dst: HostId,
    kind: Kind,
    /// Numbers of the packets of a direction, as they leave.
    sent: [u32; 2],
    /// Connections so far.
    connections: u32,
}

enum Kind {
    Tcp {
        mss: u32,
        /// It has one connection, which has number 0.
        is_lone: bool,
        /// Its connections transfer a number of bytes each.
        is_limited: bool,
        /// Its receiver connects and asks, and says itself what is complete; only what it is sent counts as data.
        is_asked: bool,
    },
    Ping {
        /// When the newest requests left, by number modulo the length.
        asked: Box<[Time; REQUESTS]>,
    },
    Udp {
        /// Datagrams that a frame is cut into.
        datagrams: u32,
    },
    /// An application that makes its own datagrams, and says itself what reaches it.
    Own,
    /// A user's own program.
    Other,
}

/// More requests are hardly ever under way.
const REQUESTS: usize = 4096;

impl Ledger {
    pub(crate) fn new(scenario: &Scenario) -> Self {
        let flows = scenario.flows.iter().map(|flow| Account {
            src: flow.src,
            dst: flow.dst,
            kind: match &flow.app {
                App::Tcp { traffic, transport, .. } => Kind::Tcp {
                    mss: transport.mss,
                    is_lone: matches!(traffic, Traffic::Bulk(_) | Traffic::OnOff(_)),
                    is_limited: match traffic {
                        Traffic::Bulk(bulk) => bulk.bytes.is_some(),
                        Traffic::OnOff(_) => false,
                        Traffic::Arrivals(_) => true,
                        Traffic::Page(_) | Traffic::Requests(_) | Traffic::Rpm(_) => false,
                    },
                    is_asked: matches!(
                        traffic,
                        Traffic::Page(_) | Traffic::Requests(_) | Traffic::Rpm(_)
                    ),
                },
                App::Ping(_) => Kind::Ping { asked: Box::new([Time::NEVER; REQUESTS]) },
                App::Udp(config) => Kind::Udp { datagrams: config.datagrams },
                App::External(app) if app.0.carries_bytes() => Kind::Own,
                App::External(_) => Kind::Other,
            },
            sent: [0; 2],
            connections: 0,
        });
        Self { flows: flows.collect(), connections: HashMap::new() }
    }

    /// A packet has left host `from`. It is then one of a flow, or `None` if no flow goes that way.
    pub(crate) fn leave(
        &mut self,
        now: Time,
        from: HostId,
        headers: &Headers,
        (segments, part): (u16, &Part),
        observer: &mut impl Observer,
    ) -> Option<Packet> {
        let (flow, direction) = self.flow_of(from, headers)?;
        let who = Who::Flow(flow);
        let account = &mut self.flows[flow.index()];
        let number = account.sent[direction as usize];
        account.sent[direction as usize] += 1;
        let mut connection = 0;
        let mut delivered = 0;
        let body = match (&headers.above, &mut account.kind) {
            (Above::Tcp(tcp), kind) => {
                let (mss, is_lone, is_asked) = match kind {
                    Kind::Tcp { mss, is_lone, is_asked, .. } => (*mss, *is_lone, *is_asked),
                    _ => (address::MSS, false, false),
                };
                let key = (flow, client_port(tcp, direction, is_asked));
                if tcp.has(Tcp::SYN) && !tcp.has(Tcp::ACK) {
                    let is_again = self
                        .connections
                        .get(&key)
                        .is_some_and(|known| known.has_begun_with(tcp.seq));
                    if !is_again {
                        account.connections += 1;
                        let number = if is_lone { 0 } else { account.connections };
                        self.connections
                            .insert(key, Connection::asked(now, number, direction, tcp.seq));
                    }
                }
                match self.connections.get_mut(&key) {
                    Some(state) => {
                        connection = state.number();
                        let left = state.leave(now, direction, tcp, mss);
                        let is_data = !is_asked || direction == Direction::Reverse;
                        delivered = if is_data { left.delivered } else { 0 };
                        left.body
                    }
                    // What follows the end of a connection, or its beginning was not seen.
                    None => opaque(number),
                }
            }
            (Above::Udp { .. }, Kind::Udp { datagrams }) if direction == Direction::Forward => {
                Body::Datagram {
                    number,
                    frame: number / *datagrams,
                    last: number % *datagrams + 1 == *datagrams,
                }
            }
            (Above::Echo { is_reply: false, .. }, Kind::Ping { asked })
                if direction == Direction::Forward =>
            {
                asked[number as usize % REQUESTS] = now;
                Body::Echo { number, asked: now }
            }
            (Above::Echo { is_reply: true, number: low, .. }, Kind::Ping { asked })
                if direction == Direction::Reverse =>
            {
                let number = latest_with(account.sent[Direction::Forward as usize], *low)?;
                Body::Echo { number, asked: asked[number as usize % REQUESTS] }
            }
            (Above::Udp { .. } | Above::Echo { .. } | Above::Other, _) => opaque(number),
        };
        let mut packet = Packet {
            flow,
            connection,
            direction,
            ecn: headers.ecn,
            dscp: headers.dscp,
            segments: 1,
            wire_len: headers.length + ETHERNET_HEADER,
            hop: 0,
            src: if direction == Direction::Forward { account.src } else { account.dst },
            dst: if direction == Direction::Forward { account.dst } else { account.src },
            sent: now,
            body,
        };
        offload::count_segments(&mut packet, segments, part);
        observer.record(now, who, &Event::Sent { packet: &packet });
        if delivered > 0 {
            observer.record(now, who, &Event::Delivered { bytes: delivered });
        }
        Some(packet)
    }

    /// A packet of a flow is about to reach its host.
    pub(crate) fn arrive(
        &mut self,
        now: Time,
        packet: &Packet,
        headers: &Headers,
        observer: &mut impl Observer,
    ) {
        let who = Who::Flow(packet.flow);
        observer.record(now, who, &Event::Arrived { packet });
        match (&headers.above, packet.body) {
            (Above::Tcp(tcp), _) => {
                let (is_limited, is_asked) = match self.flows[packet.flow.index()].kind {
                    Kind::Tcp { is_limited, is_asked, .. } => (is_limited, is_asked),
                    _ => (false, false),
                };
                let key = (packet.flow, client_port(tcp, packet.direction, is_asked));
                let Some(state) = self.connections.get_mut(&key) else { return };
                let learned = state.arrive(now, packet.direction, tcp);
                if let Some(rtt) = learned.rtt
                    && (!is_asked || packet.direction == Direction::Reverse)
                {
                    observer.record(now, who, &Event::Rtt { rtt });
                }
                if let Some((bytes, took)) = learned.completed.filter(|_| is_limited) {
                    observer.record(now, who, &Event::Completed { bytes, took });
                }
                if state.is_over() {
                    self.connections.remove(&key);
                }
            }
            (Above::Udp { payload, .. }, Body::Datagram { .. } | Body::Opaque { .. })
                if packet.direction == Direction::Forward
                    && !matches!(
                        self.flows[packet.flow.index()].kind,
                        Kind::Own | Kind::Tcp { is_asked: true, .. }
                    ) =>
            {
                let bytes = u64::from(*payload);
                observer.record(now, who, &Event::Delivered { bytes });
            }
            (Above::Echo { is_reply: true, .. }, Body::Echo { asked, .. }) => {
                observer.record(now, who, &Event::Ping { rtt: now.since(asked) });
            }
            _ => {}
        }
    }

    /// The flow by its port or the number of its echo requests; else the first between the two hosts.
    fn flow_of(&self, from: HostId, headers: &Headers) -> Option<(FlowId, Direction)> {
        let to = address::host_of(headers.dst)?;
        let named = match &headers.above {
            Above::Tcp(Tcp { ports, .. }) | Above::Udp { ports, .. } => {
                // A flow's receiver listens there, or its sender if it is asked.
                [
                    (ports.dst, Direction::Forward),
                    (ports.src, Direction::Reverse),
                    (ports.dst, Direction::Reverse),
                    (ports.src, Direction::Forward),
                ]
            }
            Above::Echo { is_reply, id, .. } => {
                let direction = if *is_reply { Direction::Reverse } else { Direction::Forward };
                [(*id, direction); 4]
            }
            Above::Other => [(0, Direction::Forward); 4],
        };
        let goes = |account: &Account, direction| match direction {
            Direction::Forward => (account.src, account.dst) == (from, to),
            Direction::Reverse => (account.dst, account.src) == (from, to),
        };
        for (port, direction) in named {
            let Some(index) = port.checked_sub(FIRST_PORT) else { continue };
            if self.flows.get(usize::from(index)).is_some_and(|account| goes(account, direction)) {
                return Some((FlowId(u32::from(index)), direction));
            }
        }
        let both = [Direction::Forward, Direction::Reverse];
        let others = both.into_iter().flat_map(|direction| {
            let flows = (0..).map(FlowId).zip(&self.flows);
            flows.filter(move |(_, account)| goes(account, direction)).map(move |(id, account)| {
                // A user's own program comes before a flow that has a port of its own.
                let is_named = !matches!(account.kind, Kind::Other);
                (is_named, id, direction)
            })
        });
        others.min_by_key(|(is_named, ..)| *is_named).map(|(_, id, direction)| (id, direction))
    }
}

/// A packet of which only the size is known.
fn opaque(number: u32) -> Body {
    Body::Opaque { number, content: ContentId(0) }
}

/// The port at who connects, which tells the flow's connections apart: its sender, or its receiver if it `is_asked`.
fn client_port(tcp: &Tcp, direction: Direction, is_asked: bool) -> u16 {
    match (direction, is_asked) {
        (Direction::Forward, false) | (Direction::Reverse, true) => tcp.ports.src,
        (Direction::Reverse, false) | (Direction::Forward, true) => tcp.ports.dst,
    }
}

/// The largest number below `count` with these low 16 bits.
fn latest_with(count: u32, low: u16) -> Option<u32> {
    let last = count.checked_sub(1)?;
    last.checked_sub(u32::from((last as u16).wrapping_sub(low)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_echo_s_number_goes_on_after_16_bits() {
        assert_eq!(latest_with(0, 0), None);
        assert_eq!(latest_with(1, 0), Some(0));
        assert_eq!(latest_with(1, 5), None);
        assert_eq!(latest_with(0x1_0003, 2), Some(0x1_0002));
        assert_eq!(latest_with(0x1_0003, 0xffff), Some(0xffff));
    }
}
