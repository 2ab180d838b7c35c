//! One connection of a page: requests go one way, objects the other.

use alloc::boxed::Box;

use sojourn_cca::Config as CcaConfig;
use sojourn_core::{
    Body, Direction, Event, Observer, Packet, Purpose, Span, StreamAddress, Time, Who,
};

use crate::source::Source;
use crate::tcp::{Config as TcpConfig, Endpoints, Receiver, Sender};

pub(super) struct Connection {
    pub(super) number: u32,
    transport: TcpConfig,
    /// From the client to the server; its handshake is the connection's.
    requests: Box<(Sender, Receiver)>,
    /// From the server to the client, once the server knows that the connection is established.
    objects: Option<Box<(Sender, Receiver)>>,
    /// When the server last answered the connection request.
    accepted: Time,
    /// Bytes of requests that the server has not read whole, and of one request.
    unread: u64,
    request_size: u64,
    /// Bytes of the object that was asked for, and how many of them have not arrived.
    object: u64,
    awaited: u64,
}

impl Connection {
    /// The client's request to connect leaves at `now`.
    pub(super) fn open(
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
            accepted: now,
            unread: 0,
            request_size: 1,
            object: 0,
            awaited: 0,
        }
    }

    /// The client writes a request for an object of so many bytes.
    pub(super) fn ask(&mut self, request_size: u64, object: u64) {
        self.request_size = request_size;
        (self.object, self.awaited) = (object, object);
        self.requests.0.write(request_size);
    }

    /// A packet reached the server. `setup` gives what its sender is built with.
    pub(super) fn server_gets<O: Observer>(
        &mut self,
        now: Time,
        packet: &Packet,
        o: &mut O,
        setup: impl FnOnce() -> (CcaConfig, Endpoints, StreamAddress),
    ) {
        if let Body::Ack(_) = packet.body {
            if let Some(objects) = &mut self.objects {
                objects.0.on_packet(now, packet, &mut Data { inner: o, delivered: 0 });
            }
            return;
        }
        let mut requests = Count::default();
        self.requests.1.on_packet(now, packet, &mut requests);
        self.unread += requests.delivered;
        if self.unread < self.request_size {
            return;
        }
        self.unread -= self.request_size;
        if self.objects.is_none() {
            let (cca, ends, address) = setup();
            self.objects = Some(Box::new(self.accept(now, cca, ends, address)));
        }
        if let Some(objects) = &mut self.objects {
            objects.0.write(self.object);
        }
    }

    /// A packet reached the client; whether the object is complete with it.
    pub(super) fn client_gets<O: Observer>(
        &mut self,
        now: Time,
        packet: &Packet,
        o: &mut O,
    ) -> bool {
        let Body::Segment(_) = packet.body else {
            self.requests.0.on_packet(now, packet, &mut Count::default());
            return false;
        };
        let Some(objects) = &mut self.objects else { return false };
        let mut data = Data { inner: o, delivered: 0 };
        objects.1.on_packet(now, packet, &mut data);
        let delivered = data.delivered;
        let had_all = self.awaited == 0;
        self.awaited = self.awaited.saturating_sub(delivered);
        !had_all && self.awaited == 0
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
        if sends == Direction::Forward && matches!(packet.body, Body::Handshake { .. }) {
            self.accepted = now;
        }
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

    /// The server's sender.
    pub(super) fn answers(&self) -> Option<&Sender> {
        self.objects.as_deref().map(|(sender, _)| sender)
    }

    pub(super) fn directions(&self) -> impl Iterator<Item = (&Sender, &Receiver)> {
        [Some(&*self.requests), self.objects.as_deref()]
            .into_iter()
            .flatten()
            .map(|(sender, receiver)| (sender, receiver))
    }

    /// Both ends of the direction of objects. Its handshake was the connection's: the server knows
    /// the time since its answer as a round trip.
    fn accept(
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
            let body = Body::Handshake { asked: self.accepted, ecn };
            sender.on_packet(now, &Packet { body, ..answer }, &mut Count::default());
        }
        (sender, receiver)
    }
}

/// Counts what is delivered and reports nothing: for requests, which are not the flow's data, and for the
/// handshake of the objects' direction, which is never sent.
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

/// Counts what is delivered, and passes on every event of objects except phases: with several
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
