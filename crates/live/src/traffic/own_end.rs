//! An end of an application that makes its own datagrams: the code that runs in virtual time elsewhere, on a socket.

use std::io;
use std::net::SocketAddrV4;
use std::os::fd::OwnedFd;

use sojourn_core::{
    Body, Direction, Ecn, FlowId, HostId, Packet, Purpose, Span, StreamAddress, Time,
};
use sojourn_host::{Around, Contents, Endpoint, Endpoints, FlowSetup};
use sojourn_scenario::{App, Flow};

use super::{HEADERS, Telling, What, socket};
use crate::address;

/// Datagrams taken at a time, so that one end does not keep the others waiting.
const MOST_TAKEN: usize = 64;

pub(super) struct OwnEnd {
    endpoint: Box<dyn Endpoint>,
    pub(super) socket: OwnedFd,
    ends: Endpoints,
    /// In which its own packets go.
    direction: Direction,
    contents: Contents,
    /// What its packets ask for now.
    ecn: Ecn,
}

/// When a flow starts and stops, its start moved at random as in simulation.
pub(crate) fn lasts(flow: &Flow, address: StreamAddress) -> (Time, Time) {
    let moved = match flow.start_jitter.as_nanos() {
        0 => 0,
        bound => address.stream_named(&flow.name, Purpose::Start).below(bound),
    };
    let start = Time::ZERO + flow.start + Span::from_nanos(moved);
    (start, flow.stop.map_or(Time::NEVER, |stop| Time::ZERO + stop))
}

pub(super) fn ends_of(flow: &Flow, id: FlowId) -> Endpoints {
    Endpoints { flow: id, sender: flow.src, receiver: flow.dst, dscp: flow.dscp }
}

/// The sending and the receiving end; `None` if the flow's application does not make its own datagrams.
pub(super) fn build(
    flow: &Flow,
    id: FlowId,
    address: StreamAddress,
) -> Option<[Box<dyn Endpoint>; 2]> {
    let App::External(app) = &flow.app else { return None };
    let (start, stop) = lasts(flow, address);
    let setup = FlowSetup { name: &flow.name, ends: ends_of(flow, id), start, stop, address };
    app.0.carries_bytes().then(|| app.0.build(&setup))
}

impl OwnEnd {
    /// Made in the namespace of the host that it is in.
    pub(super) fn new(
        endpoint: Box<dyn Endpoint>,
        ends: Endpoints,
        direction: Direction,
    ) -> io::Result<Self> {
        let port = address::port_of(ends.flow);
        let other: HostId = match direction {
            Direction::Forward => ends.receiver,
            Direction::Reverse => ends.sender,
        };
        let to = SocketAddrV4::new(address::of_host(other), port);
        let socket = socket::datagrams_both_ways(ends.dscp, port, to)?;
        let contents = Contents::default();
        Ok(Self { endpoint, socket, ends, direction, contents, ecn: Ecn::NotEct })
    }

    pub(super) fn next_wake(&self) -> Time {
        self.endpoint.next_wake()
    }

    /// Takes what has come, does what is due by `now`, and sends what comes of it.
    pub(super) fn act(
        &mut self,
        now: Time,
        room: &mut [u8],
        tell: &mut impl FnMut(What),
    ) -> io::Result<()> {
        let mut observer = Telling(tell);
        for _ in 0..MOST_TAKEN {
            let Some((length, ecn)) = socket::take_with_mark(&self.socket, room)? else { break };
            let content = self.contents.put(room[..length].to_vec(), 1);
            let body = Body::Opaque { number: 0, content };
            let length = HEADERS + length as u32;
            let packet = match self.direction {
                Direction::Forward => self.ends.answer(now, length, body),
                Direction::Reverse => self.ends.packet(now, length, body),
            };
            let packet = Packet { ecn, ..packet };
            let around = &mut Around { contents: &mut self.contents, observer: &mut observer };
            self.endpoint.on_packet(now, &packet, around);
            self.contents.release(content, 1);
        }
        let around = &mut Around { contents: &mut self.contents, observer: &mut observer };
        if now >= self.endpoint.next_wake() {
            self.endpoint.on_wake(now, around);
        }
        while let Some(packet) = self.endpoint.poll_transmit(now, around) {
            let Body::Opaque { content, .. } = packet.body else { return Err(no_bytes()) };
            if packet.ecn != self.ecn {
                socket::set_service(&self.socket, self.ends.dscp, packet.ecn)?;
                self.ecn = packet.ecn;
            }
            // A datagram that finds no room is lost before it left.
            socket::write(&self.socket, around.contents.bytes(content))?;
            around.contents.release(content, 1);
        }
        Ok(())
    }

    /// # Errors
    /// Which of its invariants does not hold.
    pub(super) fn check(&self) -> Result<(), String> {
        self.endpoint.check()
    }
}

fn no_bytes() -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, "its packets have no bytes")
}
