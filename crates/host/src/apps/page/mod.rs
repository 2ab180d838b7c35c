//! Web pages, fetched one after another as `http-getter` of flent's web tests fetches them: a DNS
//! lookup, then several TCP connections at once, and over each one request after another until no
//! object of the page is left.
//!
//! The client opens the connections and asks; the server answers. Either direction of a connection
//! is a sender and a receiver as everywhere else, so both ends acknowledge what they get. Packets
//! of the client go [`Direction::Reverse`], because data goes forward.

#[cfg(test)]
mod tests;

use alloc::format;
use alloc::vec::Vec;

use sojourn_cca::Config as CcaConfig;
use sojourn_core::param::{Bounds, Maybe, Needed, Octets, Truth, size, time, whole};
use sojourn_core::{
    Body, ContentId, Direction, Event, FlowSample, Observer, Packet, Params, Rate, Span, SpecError,
    Stream, StreamAddress, Time, Who,
};

use super::BothEnds;
use super::connection::{Connection, Simulated};
use super::dialogue::{Dial, Dialogue, Talk};
use super::sum::{add_open, add_totals};
use super::turns::Turns;
use crate::bounds::LONGEST;
use crate::tcp::{Config as TcpConfig, Endpoints, Receiver, Sender};

sojourn_core::params! {
    /// What is fetched, and how.
    pub struct PageConfig: "page", "web pages one after another: a DNS lookup, then objects over several TCP connections" {
        pub bytes: u64 as Needed<Octets> = "", size(1, 1_000_000_000_000),
            "all objects of a page together, as nearly equal parts";
        pub requests: u32 = "1", whole(1, 100_000), "objects of a page";
        pub connections: u32 = "4", whole(1, 64),
            "TCP connections, each of which asks for the next object when it has one";
        pub request_size: u64 as Octets = "300B", size(1, 65_536), "what the client sends to ask for an object";
        pub lookup: bool as Truth = "true",
            "a DNS lookup comes first: a datagram each way, repeated every 5 s";
        pub pause: Span = "1s", time(Span::ZERO, LONGEST), "from the end of a page to the beginning of the next";
        pub pages: Option<u32> as Maybe<u32> = "", PAGES, "so many pages in all; without it there is no end";
    }
}

const PAGES: Bounds = whole(1, 1_000_000_000);

/// Waits for the answer of a lookup (`timeout` of `resolv.conf`).
const LOOKUP_TIMEOUT: Span = Span::from_secs(5);
/// IP bytes of a query for an address, and of its answer.
const QUERY: u32 = 61;
const ANSWER: u32 = 77;

impl PageConfig {
    /// # Errors
    /// A value out of range, or more objects than bytes.
    pub fn check_objects(&self) -> Result<(), SpecError> {
        self.check()?;
        if self.bytes < u64::from(self.requests) {
            let problem = format!("{} bytes are too few for {} objects", self.bytes, self.requests);
            return Err(SpecError::new(problem)
                .about("bytes")
                .allow([format!("at least {} bytes", self.requests)]));
        }
        Ok(())
    }

    /// By how many bytes the object of this number is larger than the smallest.
    fn more(&self, number: u32) -> u8 {
        u8::from(u64::from(number) < self.bytes % u64::from(self.requests))
    }

    /// Bytes of an object that is by so many larger than the smallest.
    fn object(&self, more: u8) -> u64 {
        self.bytes / u64::from(self.requests) + u64::from(more)
    }
}

/// Both ends of a flow that fetches pages.
pub struct Page<D: Dial = Simulated> {
    config: PageConfig,
    dial: D,
    ends: Endpoints,
    /// The controllers' random numbers; one step for each connection.
    random: Stream,
    stop: Time,
    state: State,
    began: Time,
    pages_left: u64,
    /// Objects of the page that were asked for, and that have arrived.
    asked: u32,
    arrived: u32,
    connections: Vec<Fetching<D::Talk>>,
    /// Of connections whose ends are simulated.
    turns: Turns,
    /// Number of the newest connection. The first has 1, as 0 is the lookup's.
    newest: u32,
    lookups: u32,
    /// The server owes the answer to a lookup.
    owes_answer: bool,
    /// Totals of the connections that are closed.
    closed: FlowSample,
}

/// A connection, and the object that comes over it.
struct Fetching<T> {
    connection: T,
    /// Bytes of the request that the server has read.
    read: u64,
    /// Bytes of the object that was asked for, and how many of them have not arrived.
    object: u64,
    awaited: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The next page begins then.
    Idle {
        until: Time,
    },
    /// The query leaves then; it is repeated until the answer comes.
    LookingUp {
        ask_at: Time,
    },
    Loading,
}

impl Page {
    /// The first page begins at `start`, none at `stop` or later.
    pub fn new(
        config: PageConfig,
        cca: CcaConfig,
        transport: TcpConfig,
        ends: Endpoints,
        random: Stream,
        start: Time,
        stop: Time,
    ) -> Self {
        Self::over(Simulated { cca, transport, ends }, config, ends, random, start, stop)
    }
}

impl<D: Dial> Page<D> {
    /// The same over connections that `dial` makes.
    pub fn over(
        dial: D,
        config: PageConfig,
        ends: Endpoints,
        random: Stream,
        start: Time,
        stop: Time,
    ) -> Self {
        Self {
            pages_left: config.pages.map_or(u64::MAX, u64::from),
            config,
            dial,
            ends,
            random,
            stop,
            state: State::Idle { until: start },
            began: start,
            asked: 0,
            arrived: 0,
            connections: Vec::new(),
            turns: Turns::default(),
            newest: 0,
            lookups: 0,
            owes_answer: false,
            closed: FlowSample::default(),
        }
    }

    fn begin<O: Observer>(&mut self, now: Time, o: &mut O) {
        self.pages_left -= 1;
        self.began = now;
        (self.asked, self.arrived) = (0, 0);
        o.record(now, Who::Flow(self.ends.flow), &Event::Opened { bytes: self.config.bytes });
        if self.config.lookup {
            self.state = State::LookingUp { ask_at: now };
        } else {
            self.connect(now);
        }
    }

    /// Opens as many connections as there are objects for.
    fn connect(&mut self, now: Time) {
        self.state = State::Loading;
        for place in 0..self.config.connections.min(self.config.requests) {
            self.newest = self.newest.wrapping_add(1).max(1);
            self.open(now, self.newest);
            self.ask(place as usize);
        }
    }

    fn open(&mut self, now: Time, number: u32) {
        let address = StreamAddress { seed: self.random.next_u64(), run: 0 };
        let connection = self.dial.open(number, address, now);
        self.connections.push(Fetching { connection, read: 0, object: 0, awaited: 0 });
    }

    /// Asks for the next object over a connection, if one is left.
    fn ask(&mut self, place: usize) {
        if self.asked < self.config.requests {
            let more = self.config.more(self.asked);
            let object = self.config.object(more);
            self.asked += 1;
            let one = &mut self.connections[place];
            (one.object, one.awaited) = (object, object);
            one.connection.ask(self.config.request_size, more);
            self.turns.touch(Direction::Reverse, place);
        }
    }

    fn close_if_loaded<O: Observer>(&mut self, now: Time, o: &mut O) {
        if self.arrived < self.config.requests {
            return;
        }
        self.turns.clear();
        for one in self.connections.drain(..) {
            if let Some(answers) = one.connection.sample(now) {
                add_totals(&mut self.closed, &answers);
            }
        }
        self.state = State::Idle { until: now + self.config.pause };
        let event = Event::Completed { bytes: self.config.bytes, took: now.since(self.began) };
        o.record(now, Who::Flow(self.ends.flow), &event);
    }

    /// Connections of a page are opened in the order of their numbers, so most have the place that their number says.
    fn place_of(&self, number: u32) -> Option<usize> {
        let is_it = |one: &Fetching<D::Talk>| one.connection.number() == number;
        let likely = number.wrapping_sub(self.connections.first()?.connection.number()) as usize;
        match self.connections.get(likely) {
            Some(one) if is_it(one) => Some(likely),
            _ => self.connections.iter().position(is_it),
        }
    }

    fn server_gets(&mut self, now: Time, place: usize, bytes: u64) {
        let one = &mut self.connections[place];
        one.read += bytes;
        if one.read < self.config.request_size {
            return;
        }
        one.read -= self.config.request_size;
        if !one.connection.is_accepted() {
            let address = StreamAddress { seed: self.random.next_u64(), run: 0 };
            self.dial.accept(&mut one.connection, address, now);
        }
        one.connection.answer(one.object, 0);
    }

    fn client_gets<O: Observer>(&mut self, now: Time, place: usize, bytes: u64, o: &mut O) {
        let one = &mut self.connections[place];
        let had_all = one.awaited == 0;
        one.awaited -= bytes.min(one.awaited);
        if !had_all && one.awaited == 0 {
            self.arrived += 1;
            self.ask(place);
            self.close_if_loaded(now, o);
        }
    }
}

impl<D: Dial> Dialogue for Page<D> {
    type Talk = D::Talk;

    const HOLDS_BACK: bool = false;

    fn server_reads<O: Observer>(&mut self, now: Time, number: u32, bytes: u64, _: &mut O) {
        if let Some(place) = self.place_of(number) {
            self.server_gets(now, place, bytes);
        }
    }

    fn client_reads<O: Observer>(&mut self, now: Time, number: u32, bytes: u64, o: &mut O) {
        if let Some(place) = self.place_of(number) {
            self.client_gets(now, place, bytes, o);
        }
    }

    fn on_time<O: Observer>(&mut self, now: Time, sends: Direction, o: &mut O) {
        if sends == Direction::Reverse
            && let State::Idle { until } = self.state
            && now >= until
            && now < self.stop
            && self.pages_left > 0
        {
            self.begin(now, o);
        }
    }

    fn next_time(&self, sends: Direction) -> Time {
        match (self.state, sends) {
            (State::Idle { until }, Direction::Reverse)
                if until < self.stop && self.pages_left > 0 =>
            {
                until
            }
            (State::LookingUp { ask_at }, Direction::Reverse) => ask_at,
            _ => Time::NEVER,
        }
    }

    fn poll_datagram(&mut self, now: Time, sends: Direction) -> Option<u32> {
        match (sends, self.state) {
            (Direction::Reverse, State::LookingUp { ask_at }) if now >= ask_at => {
                self.lookups = self.lookups.wrapping_add(1);
                self.state = State::LookingUp { ask_at: now + LOOKUP_TIMEOUT };
                Some(QUERY)
            }
            (Direction::Forward, _) if self.owes_answer => {
                self.owes_answer = false;
                Some(ANSWER)
            }
            _ => None,
        }
    }

    fn on_datagram(&mut self, now: Time, direction: Direction) {
        match direction {
            Direction::Reverse => self.owes_answer = true,
            Direction::Forward => {
                if matches!(self.state, State::LookingUp { .. }) {
                    self.connect(now);
                }
            }
        }
    }

    fn hear_of(&mut self, now: Time, number: u32) {
        self.open(now, number);
    }

    fn hear_request(&mut self, number: u32, word: u8) -> Option<u64> {
        let place = self.place_of(number).filter(|_| word <= self.config.more(0))?;
        self.connections[place].object = self.config.object(word);
        Some(self.config.request_size)
    }

    fn hear_answer(&mut self, number: u32, _: u8) -> Option<u64> {
        let awaited = self.connections[self.place_of(number)?].awaited;
        (awaited > 0).then_some(awaited)
    }

    fn hear_end(&mut self, now: Time, number: u32) {
        if let Some(place) = self.place_of(number) {
            let one = self.connections.swap_remove(place);
            if let Some(answers) = one.connection.sample(now) {
                add_totals(&mut self.closed, &answers);
            }
        }
    }

    fn each_talk<'a>(&'a self, with: &mut impl FnMut(&'a D::Talk)) {
        self.connections.iter().for_each(|one| with(&one.connection));
    }

    fn each_talk_mut(&mut self, with: &mut impl FnMut(&mut D::Talk)) {
        self.connections.iter_mut().for_each(|one| with(&mut one.connection));
    }

    fn sum(&self, now: Time) -> FlowSample {
        let mut all = self.closed;
        for answers in self.connections.iter().filter_map(|one| one.connection.sample(now)) {
            add_open(&mut all, &answers);
        }
        FlowSample { delivery_rate: Rate::UNLIMITED, ..all }
    }

    fn is_over(&self) -> bool {
        match self.state {
            State::Idle { until } => self.pages_left == 0 || until >= self.stop,
            State::LookingUp { .. } | State::Loading => false,
        }
    }
}

impl BothEnds for Page {
    /// The client gets what goes forward, the server what goes back.
    #[inline(never)]
    fn on_packet<O: Observer>(&mut self, now: Time, packet: &Packet, o: &mut O) {
        if let Body::Opaque { .. } = packet.body {
            self.on_datagram(now, packet.direction);
            return;
        }
        let sends = packet.direction.opposite();
        self.turns.touch_due(now, sends);
        // Packets of a page that is loaded may arrive later.
        let Some(place) = self.place_of(packet.connection) else { return };
        self.turns.touch(sends, place);
        let connection: &mut Connection = &mut self.connections[place].connection;
        match packet.direction {
            Direction::Reverse => {
                let bytes = connection.server_gets(now, packet, o);
                self.server_gets(now, place, bytes);
            }
            Direction::Forward => {
                let bytes = connection.client_gets(now, packet, o);
                self.client_gets(now, place, bytes, o);
            }
        }
    }

    fn on_wake<O: Observer>(&mut self, now: Time, sends: Direction, o: &mut O) {
        self.on_time(now, sends, o);
        while let Some(place) = self.turns.wake(now, sends) {
            self.connections[place].connection.on_wake(now, sends, o);
        }
    }

    #[inline(never)]
    fn poll_transmit(&mut self, now: Time, sends: Direction) -> Option<Packet> {
        if let Some(length) = self.poll_datagram(now, sends) {
            // Queries count from 0. What these datagrams say is of no interest, so they have no contents.
            let number = match sends {
                Direction::Reverse => self.lookups.wrapping_sub(1),
                Direction::Forward => self.lookups,
            };
            let body = Body::Opaque { number, content: ContentId(u32::MAX) };
            return Some(match sends {
                Direction::Reverse => self.ends.answer(now, length, body),
                Direction::Forward => self.ends.packet(now, length, body),
            });
        }
        while let Some(place) = self.turns.next(sends) {
            let connection = &mut self.connections[place].connection;
            if let Some(packet) = connection.poll_transmit(now, sends) {
                return Some(packet);
            }
            self.turns.rest(sends, place, connection.next_wake(sends));
        }
        None
    }

    fn next_wake(&self, sends: Direction) -> Time {
        self.next_time(sends).min(self.turns.first(sends))
    }

    fn sample(&self, now: Time) -> FlowSample {
        self.sum(now)
    }

    fn is_done(&self) -> bool {
        self.is_over()
    }

    fn connections(&self) -> impl Iterator<Item = (&Sender, &Receiver)> {
        self.connections.iter().flat_map(|one| one.connection.directions())
    }
}
