//! One connection between a client and a server: requests go one way, answers the other.

use alloc::boxed::Box;

use sojourn_cca::Config as CcaConfig;
use sojourn_core::{
    AckFlags, Body, Direction, Event, FlowSample, Observer, Packet, Purpose, Span, StreamAddress,
    Time, Who,
};

use super::dialogue::{Dial, Talk};
use crate::source::Source;
use crate::tcp::{Config as TcpConfig, Endpoints, Receiver, Sender};

/// Makes connections whose two ends are simulated TCP.
pub struct Simulated {
    pub(super) cca: CcaConfig,
    pub(super) transport: TcpConfig,
    pub(super) ends: Endpoints,
}

impl Dial for Simulated {
    type Talk = Connection;

    fn open(&mut self, number: u32, address: StreamAddress, now: Time) -> Connection {
        let (transport, cca) = (self.transport.clone(), self.cca.clone());
        Connection::open(number, transport, cca, self.ends, address, now)
    }

    fn accept(&mut self, talk: &mut Connection, address: StreamAddress, now: Time) {
        talk.accept(now, self.cca.clone(), self.ends, address);
    }
}

/// A connection whose ends are simulated.
pub struct Connection {
    number: u32,
    transport: TcpConfig,
    /// From the client to the server; its handshake is the connection's.
    requests: Box<(Sender, Receiver)>,
    /// From the server to the client, once the server has accepted.
    objects: Option<Box<(Sender, Receiver)>>,
    /// The server's first round trip, once the handshake has ended for it.
    round_trip: Option<Span>,
}

impl Connection {
    /// The client's request to connect leaves at `now`.
    fn open(
        number: u32,
        transport: TcpConfig,
        cca: CcaConfig,
        ends: Endpoints,
        address: StreamAddress,
        now: Time,
    ) -> Self {
        let from_client = Endpoints { sender: ends.receiver, receiver: ends.sender, ..ends };
        let receiver = Receiver::new(transport.clone(), cca.ecn_request(), from_client);
        let random = address.stream(0, Purpose::Controller);
        let sender =
            Sender::new(transport.clone(), cca, from_client, Source::when_told(), now, random);
        Self {
            number,
            transport,
            requests: Box::new((sender, receiver)),
            objects: None,
            round_trip: None,
        }
    }

    /// A packet reached the server; how many bytes of requests came with it.
    pub(super) fn server_gets<O: Observer>(
        &mut self,
        now: Time,
        packet: &Packet,
        o: &mut O,
    ) -> u64 {
        if let Body::Ack(ack) = packet.body
            && !ack.flags.contains(AckFlags::HANDSHAKE)
        {
            if let Some(objects) = &mut self.objects {
                objects.0.on_packet(now, packet, &mut Data { inner: o, delivered: 0 });
            }
            return 0;
        }
        if self.round_trip.is_none() {
            self.round_trip = ended_handshake(now, packet);
        }
        let mut requests = Count::default();
        self.requests.1.on_packet(now, packet, &mut requests);
        requests.delivered
    }

    /// The server makes its end, with which it can answer.
    fn accept(&mut self, now: Time, cca: CcaConfig, ends: Endpoints, address: StreamAddress) {
        self.objects = Some(Box::new(self.answering(now, cca, ends, address)));
    }

    /// A packet reached the client; how many bytes of answers came with it.
    pub(super) fn client_gets<O: Observer>(
        &mut self,
        now: Time,
        packet: &Packet,
        o: &mut O,
    ) -> u64 {
        let Body::Segment(_) = packet.body else {
            self.requests.0.on_packet(now, packet, &mut Count::default());
            return 0;
        };
        let Some(objects) = &mut self.objects else { return 0 };
        let mut data = Data { inner: o, delivered: 0 };
        objects.1.on_packet(now, packet, &mut data);
        data.delivered
    }

    pub(super) fn on_wake<O: Observer>(&mut self, now: Time, sends: Direction, o: &mut O) {
        match sends {
            Direction::Forward => {
                if let Some(objects) = &mut self.objects {
                    objects.0.on_wake(now, &mut Data { inner: o, delivered: 0 });
                }
                self.requests.1.on_wake(now, o);
            }
            Direction::Reverse => {
                self.requests.0.on_wake(now, &mut Count::default());
                if let Some(objects) = &mut self.objects {
                    objects.1.on_wake(now, o);
                }
            }
        }
    }

    pub(super) fn poll_transmit(&mut self, now: Time, sends: Direction) -> Option<Packet> {
        let (sender, receiver) = match sends {
            Direction::Forward => {
                (self.objects.as_mut().map(|objects| &mut objects.0), Some(&mut self.requests.1))
            }
            Direction::Reverse => {
                (Some(&mut self.requests.0), self.objects.as_mut().map(|objects| &mut objects.1))
            }
        };
        let packet = receiver
            .and_then(|receiver| receiver.poll_transmit(now))
            .or_else(|| sender.and_then(|sender| sender.poll_transmit(now)))?;
        Some(Packet { connection: self.number, direction: sends, ..packet })
    }

    pub(super) fn next_wake(&self, sends: Direction) -> Time {
        let objects = self.objects.as_deref();
        match sends {
            Direction::Forward => objects
                .map_or(Time::NEVER, |(sender, _)| sender.next_wake())
                .min(self.requests.1.next_wake()),
            Direction::Reverse => objects
                .map_or(Time::NEVER, |(_, receiver)| receiver.next_wake())
                .min(self.requests.0.next_wake()),
        }
    }

    pub(super) fn directions(&self) -> impl Iterator<Item = (&Sender, &Receiver)> {
        [Some(&*self.requests), self.objects.as_deref()]
            .into_iter()
            .flatten()
            .map(|(sender, receiver)| (sender, receiver))
    }

    /// Both ends of the direction of answers. Its handshake was the connection's, which gave the server
    /// a round trip.
    fn answering(
        &self,
        now: Time,
        cca: CcaConfig,
        ends: Endpoints,
        address: StreamAddress,
    ) -> (Sender, Receiver) {
        let transport = TcpConfig { address_resolution: Span::ZERO, ..self.transport.clone() };
        let mut receiver = Receiver::new(transport.clone(), cca.ecn_request(), ends);
        let random = address.stream(0, Purpose::Controller);
        let mut sender = Sender::new(transport, cca, ends, Source::when_told(), now, random);
        let asked = sender.poll_transmit(now);
        if let Some(request) = &asked {
            receiver.on_packet(now, request, &mut Count::default());
        }
        if let Some(answer) = receiver.poll_transmit(now)
            && let Body::Handshake { ecn, .. } = answer.body
        {
            let body = Body::Handshake { asked: now - self.round_trip.unwrap_or_default(), ecn };
            sender.on_packet(now, &Packet { body, ..answer }, &mut Count::default());
            sender.poll_transmit(now);
        }
        (sender, receiver)
    }
}

/// The round trip that ends with `packet` for the server, if it is the acknowledgement that ends the handshake, or
/// the request in its place. The client's timestamp says which answer it had, if several left (RFC 7323 section 4.1).
fn ended_handshake(now: Time, packet: &Packet) -> Option<Span> {
    match &packet.body {
        Body::Ack(ack) => Some(now.since(ack.echo)),
        Body::Segment(segment) => Some(now.since(segment.echo)),
        _ => None,
    }
}

impl Talk for Connection {
    fn number(&self) -> u32 {
        self.number
    }

    fn ask(&mut self, bytes: u64, _: u8) {
        self.requests.0.write(bytes);
    }

    fn is_accepted(&self) -> bool {
        self.objects.is_some()
    }

    fn answer(&mut self, bytes: u64, _: u8) {
        if let Some(objects) = &mut self.objects {
            objects.0.write(bytes);
        }
    }

    fn unsent(&self) -> u64 {
        self.objects.as_deref().map_or(0, |(sender, _)| sender.unsent())
    }

    fn sample(&self, now: Time) -> Option<FlowSample> {
        self.objects.as_deref().map(|(sender, _)| sender.sample(now))
    }
}

/// Counts what is delivered and reports nothing: for requests, which are not the flow's data, and for the
/// handshake of the answers' direction, which is never sent.
#[derive(Default)]
struct Count {
    delivered: u64,
}

impl Observer for Count {
    fn record(&mut self, _: Time, _: Who, event: &Event<'_>) {
        if let Event::Delivered { bytes } = event {
            self.delivered += bytes;
        }
    }
}

/// Counts what is delivered, and passes on every event of answers except phases: with several
/// connections at once, a phase belongs to none.
struct Data<'a, O> {
    inner: &'a mut O,
    delivered: u64,
}

impl<O: Observer> Observer for Data<'_, O> {
    fn record(&mut self, now: Time, who: Who, event: &Event<'_>) {
        match event {
            Event::Phase { .. } => return,
            Event::Delivered { bytes } => self.delivered += bytes,
            _ => {}
        }
        self.inner.record(now, who, event);
    }

    fn needs_order(&self) -> bool {
        self.inner.needs_order()
    }
}
