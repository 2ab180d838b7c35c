//! Transfers of limited size that arrive as a Poisson process, each over a TCP connection of its
//! own: the short flows of web-like traffic.
//!
//! Arrivals do not wait for one another (an open loop). The time and the size of each transfer and
//! the random numbers of its congestion controller come from streams that nothing else draws from.
//! So under one seed every algorithm is offered the same transfers at the same times.
//!
//! A connection is closed when its last byte is acknowledged, without an exchange of packets, and
//! its memory is freed. Packets of it that arrive later are ignored.

mod sizes;

#[cfg(test)]
mod tests;

pub use sizes::{LARGEST, Point, SizeModel, Sizes, SizesSpec, sizes};

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use sojourn_cca::Config as CcaConfig;
use sojourn_core::param::{Bounds, Maybe, Needed, number, whole};
use sojourn_core::{
    Direction, Event, FlowSample, Observer, Packet, Param, Params, Purpose, Rate, Span, SpecError,
    Stream, StreamAddress, Time, Wakes, Who,
};

use super::sum::{add_open, add_totals};
use super::{BothEnds, Source};
use crate::tcp::{Config as TcpConfig, Endpoints, Receiver, Sender};

sojourn_core::params! {
    /// Transfers that arrive at random, as users write them.
    pub struct ArrivalsSpec:
        "arrivals", "transfers that arrive at random (Poisson), each over a TCP connection of its own"
    {
        pub arrivals_per_second: Option<f64> as Maybe<f64> = "", PER_SECOND,
            "transfers a second in the mean, as a Poisson process; either this or `load`";
        pub load: Option<String> as Maybe<String> =
            Param::of::<String>("load", "", "payload offered in the mean, as a rate, or as a share (`20%`) \
                of what the narrowest link of the way carries in the mean")
            .such_as(&["300Mbps", "20%"]);
        pub sizes: SizesSpec as Needed<SizesSpec> = "",
            "how large transfers are, as a distribution";
        pub max_connections: u32 = "1000", whole(1, 65_536),
            "connections open at once; a transfer that comes beyond that is refused, and counted";
        pub transfers: Option<u64> as Maybe<u64> = "",
            "so many transfers come in all, those that are refused among them; without it there is no end";
    }
}

const PER_SECOND: Bounds = number(1e-6, 1e6);

#[derive(Clone, Debug, PartialEq)]
pub struct ArrivalsConfig {
    /// Transfers a second in the mean.
    pub per_second: f64,
    pub sizes: Sizes,
    /// Connections that may be open at once; transfers that arrive beyond that are refused.
    pub most: u32,
    /// So many come, those that are refused among them; `None` is without end.
    pub transfers: Option<u64>,
}

impl ArrivalsConfig {
    /// # Errors
    /// So many transfers that a run would not end, or a limit of zero connections.
    pub fn check(&self) -> Result<(), SpecError> {
        let spec = ArrivalsSpec {
            arrivals_per_second: Some(self.per_second),
            load: None,
            sizes: SizesSpec::Known(self.sizes.clone()),
            max_connections: self.most,
            transfers: self.transfers,
        };
        spec.check()
    }
}

/// As it names a run.
impl fmt::Display for ArrivalsConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { per_second, sizes, most, transfers } = self;
        write!(f, "arrivals per_second={per_second} max_connections={most} sizes=[{sizes}]")?;
        transfers.map_or(Ok(()), |transfers| write!(f, " transfers={transfers}"))
    }
}

/// Both ends of all the connections of one flow.
pub struct Arrivals {
    config: ArrivalsConfig,
    cca: CcaConfig,
    transport: TcpConfig,
    ends: Endpoints,
    /// A connection's place is its number modulo the length, which is a power of two.
    places: Vec<Option<Box<Connection>>>,
    open: u32,
    /// Number of the newest connection. The first has 1, as 0 is that of flows with only one.
    newest: u32,
    draws: Draws,
    next: Time,
    stop: Time,
    /// Transfers that are still to come.
    left: u64,
    senders: Wakes,
    receivers: Wakes,
    /// Places whose sender may have something to send.
    ready: Vec<usize>,
    /// What a receiver answered and has not left yet.
    answer: Option<Packet>,
    /// Totals of the connections that are closed.
    closed: FlowSample,
}

struct Connection {
    number: u32,
    sender: Sender,
    receiver: Receiver,
}

/// The random streams of a flow's arrivals. Each takes one step for each arrival, whether it is
/// refused or not.
pub struct Draws {
    gaps: Stream,
    sizes: Stream,
    controllers: Stream,
}

impl Draws {
    /// The streams of the flow of that name.
    pub fn new(address: StreamAddress, name: &str) -> Self {
        let stream =
            |what: &str| address.stream_named(&format!("{name} {what}"), Purpose::Application);
        Self {
            gaps: stream("gaps"),
            sizes: stream("sizes"),
            controllers: address.stream_named(name, Purpose::Controller),
        }
    }

    /// The time from one transfer to the next, of which so many come a second in the mean.
    pub fn gap(&mut self, per_second: f64) -> Span {
        Span::from_secs_f64(self.gaps.exponential(1.0 / per_second))
    }

    /// The size of a transfer, and what its controller draws from.
    pub fn transfer(&mut self, sizes: &Sizes) -> (u64, Stream) {
        let bytes = sizes.draw(&mut self.sizes);
        let address = StreamAddress { seed: self.controllers.next_u64(), run: 0 };
        (bytes, address.stream(0, Purpose::Controller))
    }
}

impl Arrivals {
    /// The first transfer comes a random gap after `start`, the last one before `stop`.
    pub fn new(
        config: ArrivalsConfig,
        cca: CcaConfig,
        transport: TcpConfig,
        ends: Endpoints,
        mut draws: Draws,
        start: Time,
        stop: Time,
    ) -> Self {
        let places = (config.most as usize).next_power_of_two();
        Self {
            next: start + draws.gap(config.per_second),
            cca,
            transport,
            ends,
            places: core::iter::repeat_with(|| None).take(places).collect(),
            open: 0,
            newest: 0,
            draws,
            stop,
            left: config.transfers.unwrap_or(u64::MAX),
            senders: Wakes::new(places),
            receivers: Wakes::new(places),
            ready: Vec::new(),
            answer: None,
            closed: FlowSample::default(),
            config,
        }
    }

    /// Opens the connections that are due, and wakes senders.
    fn wake_senders<O: Observer>(&mut self, now: Time, o: &mut O) {
        while now >= self.next_arrival() {
            self.arrive(now, o);
        }
        while let Some(place) = self.senders.due(now) {
            self.senders.set(place, Time::NEVER);
            if let Some(connection) = &mut self.places[place] {
                connection.sender.on_wake(now, &mut NoPhases(o));
                self.ready.push(place);
            }
        }
    }

    /// Wakes one of the receivers that are due; while others are left, the next wake is at once.
    fn wake_receiver<O: Observer>(&mut self, now: Time, o: &mut O) {
        if let Some(place) = self.receivers.due(now) {
            if let Some(connection) = &mut self.places[place] {
                connection.receiver.on_wake(now, o);
            }
            self.answer(now, place);
        }
    }

    fn poll_senders(&mut self, now: Time) -> Option<Packet> {
        while let Some(place) = self.ready.last() {
            if let Some(connection) = &mut self.places[*place] {
                if let Some(packet) = connection.sender.poll_transmit(now) {
                    return Some(Packet { connection: connection.number, ..packet });
                }
                self.senders.set(*place, connection.sender.next_wake());
            }
            self.ready.pop();
        }
        None
    }

    fn next_arrival(&self) -> Time {
        if self.next < self.stop && self.left > 0 { self.next } else { Time::NEVER }
    }

    fn arrive<O: Observer>(&mut self, now: Time, o: &mut O) {
        self.next += self.draws.gap(self.config.per_second);
        self.left -= 1;
        let (bytes, random) = self.draws.transfer(&self.config.sizes);
        let who = Who::Flow(self.ends.flow);
        if self.open == self.config.most {
            o.record(now, who, &Event::Refused { bytes });
            return;
        }
        o.record(now, who, &Event::Opened { bytes });
        let number = self.free_number();
        let place = self.place_of(number);
        let source = Source::Bulk { bytes: Some(bytes), stop: Time::NEVER };
        let (config, ends) = (self.transport.clone(), self.ends);
        self.places[place] = Some(Box::new(Connection {
            number,
            receiver: Receiver::new(config.clone(), self.cca.ecn_request(), ends),
            sender: Sender::new(config, self.cca.clone(), ends, source, now, random),
        }));
        self.newest = number;
        self.open += 1;
        self.ready.push(place);
    }

    /// The next number whose place is free. There is one, because fewer connections are open than
    /// allowed.
    fn free_number(&self) -> u32 {
        let mut number = self.newest.wrapping_add(1);
        while number == 0 || self.places[self.place_of(number)].is_some() {
            number = number.wrapping_add(1);
        }
        number
    }

    fn close(&mut self, now: Time, place: usize) {
        if let Some(connection) = self.places[place].take() {
            add_totals(&mut self.closed, &connection.sender.sample(now));
            self.open -= 1;
        }
        self.senders.set(place, Time::NEVER);
        self.receivers.set(place, Time::NEVER);
    }

    /// If the receiver at a place answers at once, its answer is the next packet to leave.
    #[inline(always)]
    fn answer(&mut self, now: Time, place: usize) {
        let Some(connection) = &mut self.places[place] else {
            self.receivers.set(place, Time::NEVER);
            return;
        };
        let answer = connection.receiver.poll_transmit(now);
        self.receivers.set(place, connection.receiver.next_wake());
        self.answer = answer.map(|packet| Packet { connection: connection.number, ..packet });
    }

    fn place_of(&self, number: u32) -> usize {
        number as usize & (self.places.len() - 1)
    }

    /// The connection of a packet, unless it is closed.
    fn connection(&mut self, packet: &Packet) -> Option<&mut Connection> {
        let place = self.place_of(packet.connection);
        let connection = self.places[place].as_deref_mut()?;
        (connection.number == packet.connection).then_some(connection)
    }
}

impl BothEnds for Arrivals {
    #[inline(never)]
    fn on_packet<O: Observer>(&mut self, now: Time, packet: &Packet, o: &mut O) {
        let place = self.place_of(packet.connection);
        let Some(connection) = self.connection(packet) else { return };
        match packet.direction {
            Direction::Forward => {
                connection.receiver.on_packet(now, packet, o);
                self.answer(now, place);
            }
            Direction::Reverse => {
                connection.sender.on_packet(now, packet, &mut NoPhases(o));
                if connection.sender.is_complete() {
                    self.close(now, place);
                } else {
                    self.ready.push(place);
                }
            }
        }
    }

    fn on_wake<O: Observer>(&mut self, now: Time, sends: Direction, o: &mut O) {
        match sends {
            Direction::Forward => self.wake_senders(now, o),
            Direction::Reverse => self.wake_receiver(now, o),
        }
    }

    #[inline(never)]
    fn poll_transmit(&mut self, now: Time, sends: Direction) -> Option<Packet> {
        match sends {
            Direction::Forward => self.poll_senders(now),
            Direction::Reverse => self.answer.take(),
        }
    }

    fn next_wake(&self, sends: Direction) -> Time {
        match sends {
            Direction::Forward => self.next_arrival().min(self.senders.first()),
            Direction::Reverse => self.receivers.first(),
        }
    }

    /// Windows and packets of the connections that are open, totals of all there have been.
    fn sample(&self, now: Time) -> FlowSample {
        let mut all = self.closed;
        for connection in self.connections() {
            add_open(&mut all, &connection.0.sample(now));
        }
        // A rate of one connection means nothing for many together.
        FlowSample { delivery_rate: Rate::UNLIMITED, ..all }
    }

    fn is_done(&self) -> bool {
        self.open == 0 && self.next_arrival().is_never()
    }

    fn connections(&self) -> impl Iterator<Item = (&Sender, &Receiver)> {
        self.places.iter().flatten().map(|connection| (&connection.sender, &connection.receiver))
    }
}

/// Passes on every event except phases: with many connections at once, a phase belongs to none.
struct NoPhases<'a, O>(&'a mut O);

impl<O: Observer> Observer for NoPhases<'_, O> {
    #[inline]
    fn record(&mut self, now: Time, who: Who, event: &Event<'_>) {
        if !matches!(event, Event::Phase { .. }) {
            self.0.record(now, who, event);
        }
    }

    fn needs_order(&self) -> bool {
        self.0.needs_order()
    }
}
