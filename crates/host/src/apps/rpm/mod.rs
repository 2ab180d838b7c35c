//! Responsiveness under working conditions: how many round trips a minute a network does while it is loaded
//! (draft-ietf-ippm-responsiveness).
//!
//! A client loads the network over more and more connections. Meanwhile it asks for one byte again and
//! again: over a connection of its own (a foreign probe), and over one that loads (a self probe). When the
//! load's goodput is stable, and then the responsiveness, the test ends. Packets of the client go
//! [`Direction::Reverse`], because the load goes forward.

mod result;
#[cfg(test)]
mod tests;

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

use sojourn_cca::Config as CcaConfig;
use sojourn_core::param::{Octets, Truth, number, size, time, whole};
use sojourn_core::{
    Body, Direction, Event, FlowSample, Observer, Packet, Rate, Span, Stream, StreamAddress, Time,
    Who,
};

use super::BothEnds;
use super::connection::{Connection, Simulated};
use super::dialogue::{Dial, Dialogue, FRAME, LOW, Talk};
use super::sum::{add_open, add_totals};
use super::turns::Turns;
use crate::bounds::LONGEST;
use crate::tcp::{Config as TcpConfig, Endpoints, Receiver, Sender};
use result::{Results, Step};

sojourn_core::params! {
    /// How responsiveness is measured. The draft's names are in brackets.
    pub struct RpmConfig: "rpm", "a test of responsiveness under working conditions (draft-ietf-ippm-responsiveness), over TCP" {
        pub interval: Span = "1s", time(Span::from_millis(10), LONGEST),
            "how often the test looks whether it is stable (ID)";
        pub average: u32 = "4", whole(2, 1_000), "intervals of a moving average (MAD)";
        pub kept: f64 = "0.95", number(0.01, 1.0), "the part of the probes, the fastest, of which a mean is (TMP)";
        pub tolerance: f64 = "0.05", number(0.0, 10.0),
            "standard deviation of the latest averages, as part of the latest one, below which they are stable (SDT)";
        pub initial: u32 = "1", whole(1, 1_000), "connections that load at the beginning (INP)";
        pub added: u32 = "1", whole(0, 1_000), "connections added in each interval (INC)";
        pub most: u32 = "16", whole(1, 1_000), "connections that load at most (MNP)";
        pub probes: u32 = "100", whole(2, 100_000), "probes a second at most, half of them foreign (MPS)";
        pub probe_share: f64 = "0.05", number(0.0001, 1.0), "part of the goodput that probes may take (PTC)";
        pub limit: Span = "20s", time(Span::from_millis(10), LONGEST), "the test ends after this time at the latest";
        pub tls: bool as Truth = "true", "foreign probes set up TLS 1.3: one more round trip";
        pub request_size: u64 as Octets = "300B", size(1, 65_536), "what the client sends to ask";
    }
}

/// What the client sends to set up TLS, what the server answers, and an object of one byte with what HTTP sends
/// before it. With headers and acknowledgements a foreign probe is near the draft's 5000 bytes.
const HELLO: u64 = 517;
const CERTIFICATE: u64 = 3_000;
const OBJECT: u64 = 100;
/// The words with which requests and pieces of answers begin.
const FOR_LOAD: u8 = 0;
const FOR_TLS: u8 = 1;
const FOR_OBJECT: u8 = 2;
const OF_LOAD: u8 = 0;
const OF_PROBE: u8 = 1;
/// The draft's estimate for a foreign and a self probe together.
const PAIR: f64 = 6_000.0;

/// Both ends of a flow that measures responsiveness.
pub struct Rpm<D: Dial = Simulated> {
    config: RpmConfig,
    dial: D,
    /// The server writes when TCP has less than this left to send, so that a probe's answer can take its turn.
    low: u64,
    ends: Endpoints,
    /// The controllers' random numbers, one step for each end of a connection, and the choice of connections.
    random: Stream,
    state: State,
    /// The test ends then at the latest.
    end: Time,
    /// The interval ends then.
    look_at: Time,
    /// The next probes leave then.
    foreign_at: Time,
    self_at: Time,
    /// From one foreign probe to the next, and from one self probe to the next.
    gap: Span,
    loads: Vec<Load<D::Talk>>,
    foreign: Vec<Foreign<D::Talk>>,
    /// Where the connection of each number is.
    places: BTreeMap<u32, Place>,
    /// Of those of `loads` and of `foreign` whose ends are simulated.
    load_turns: Turns,
    foreign_turns: Turns,
    newest: u32,
    results: Results,
    /// Totals of the connections that are closed.
    closed: FlowSample,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Before,
    Running,
    Done,
}

/// A connection that loads the network, and the self probes on it.
struct Load<T> {
    connection: T,
    /// The server has read so much of the next request, and so many whole ones.
    read: u64,
    requests: u32,
    /// Answers to probes that the server has not written.
    owed: u32,
    /// What is under way, in order: how much of it has not arrived, and whether it answers a probe.
    frames: VecDeque<(u64, bool)>,
    /// When the probes that have no answer left.
    asked: VecDeque<Time>,
}

/// A connection for one probe.
struct Foreign<T> {
    connection: T,
    step: Step,
    since: Time,
    /// The server has read so much, and the client waits for so much.
    read: u64,
    awaited: u64,
    /// The server has answered what sets up TLS.
    is_set_up: bool,
}

/// Which connection.
#[derive(Clone, Copy)]
enum Place {
    Load(usize),
    Foreign(usize),
}

impl Rpm {
    /// The test begins at `start` and ends at `stop` at the latest.
    pub fn new(
        config: RpmConfig,
        cca: CcaConfig,
        transport: TcpConfig,
        ends: Endpoints,
        random: Stream,
        start: Time,
        stop: Time,
    ) -> Self {
        let low = transport.notsent_lowat.unwrap_or(LOW);
        let dial = Simulated { cca, transport, ends };
        Self { low, ..Self::over(dial, config, ends, random, start, stop) }
    }
}

impl<D: Dial> Rpm<D> {
    /// The same over connections that `dial` makes.
    pub fn over(
        dial: D,
        config: RpmConfig,
        ends: Endpoints,
        random: Stream,
        start: Time,
        stop: Time,
    ) -> Self {
        let end = (start + config.limit).min(stop);
        Self {
            results: Results::new(&config),
            config,
            dial,
            low: LOW,
            ends,
            random,
            state: State::Before,
            end,
            look_at: start,
            foreign_at: Time::NEVER,
            self_at: Time::NEVER,
            gap: Span::ZERO,
            loads: Vec::new(),
            foreign: Vec::new(),
            places: BTreeMap::new(),
            load_turns: Turns::default(),
            foreign_turns: Turns::default(),
            newest: 0,
            closed: FlowSample::default(),
        }
    }

    fn address(random: &mut Stream) -> StreamAddress {
        StreamAddress { seed: random.next_u64(), run: 0 }
    }

    fn open(&mut self, now: Time) -> D::Talk {
        self.newest = self.newest.wrapping_add(1).max(1);
        let address = Self::address(&mut self.random);
        self.dial.open(self.newest, address, now)
    }

    fn place_of(&self, number: u32) -> Option<Place> {
        self.places.get(&number).copied()
    }

    fn add_loads(&mut self, now: Time, count: u32) {
        let room = (self.config.most as usize).saturating_sub(self.loads.len());
        for _ in 0..room.min(count as usize) {
            let mut connection = self.open(now);
            connection.ask(self.config.request_size, FOR_LOAD);
            self.put_load(connection);
        }
    }

    fn add_foreign(&mut self, now: Time) {
        let connection = self.open(now);
        self.put_foreign(connection, now);
    }

    fn put_load(&mut self, connection: D::Talk) {
        let place = self.loads.len();
        self.places.insert(connection.number(), Place::Load(place));
        self.loads.push(Load::over(connection));
        self.load_turns.touch(Direction::Reverse, place);
    }

    fn put_foreign(&mut self, connection: D::Talk, now: Time) {
        let place = self.foreign.len();
        self.places.insert(connection.number(), Place::Foreign(place));
        self.foreign.push(Foreign::over(connection, now));
        self.foreign_turns.touch(Direction::Reverse, place);
    }

    /// The last one takes the place of the load that is taken.
    fn take_load(&mut self, place: usize) -> D::Talk {
        let connection = self.loads.swap_remove(place).connection;
        self.places.remove(&connection.number());
        if let Some(moved) = self.loads.get(place) {
            self.places.insert(moved.connection.number(), Place::Load(place));
        }
        self.load_turns.swap_remove(place, self.loads.len());
        connection
    }

    /// The last one takes the place of the probe that is taken.
    fn take_foreign(&mut self, place: usize) -> D::Talk {
        let connection = self.foreign.swap_remove(place).connection;
        self.places.remove(&connection.number());
        if let Some(moved) = self.foreign.get(place) {
            self.places.insert(moved.connection.number(), Place::Foreign(place));
        }
        self.foreign_turns.swap_remove(place, self.foreign.len());
        connection
    }

    /// Asks over one of the connections that load, each as likely as the others.
    fn ask_loaded(&mut self, now: Time) {
        let loading = self.loads.iter().filter(|load| load.connection.is_accepted()).count();
        if loading == 0 {
            return;
        }
        let place = self.random.below(loading as u64) as usize;
        let all = self.loads.iter_mut().enumerate();
        let mut accepted = all.filter(|(_, load)| load.connection.is_accepted());
        if let Some((place, load)) = accepted.nth(place) {
            load.asked.push_back(now);
            load.connection.ask(self.config.request_size, FOR_LOAD);
            self.load_turns.touch(Direction::Reverse, place);
        }
    }

    /// An interval is over.
    fn look<O: Observer>(&mut self, now: Time, o: &mut O) {
        let is_stable = self.results.end_interval();
        if let Some(result) = self.results.result(self.loads.len() as u32) {
            o.record(now, Who::Flow(self.ends.flow), &Event::Responsiveness(&result));
        }
        if is_stable || now >= self.end {
            self.finish(now);
            return;
        }
        self.look_at = (now + self.config.interval).min(self.end);
        self.add_loads(now, self.config.added);
        let pairs = (f64::from(self.config.probes) / 2.0)
            .min(self.results.goodput() * self.config.probe_share / PAIR);
        if pairs > 0.0 {
            self.gap = Span::from_secs_f64(1.0 / pairs).max(Span::from_micros(1));
            // The two kinds take turns.
            self.foreign_at = self.foreign_at.min(now + self.gap);
            self.self_at = self.self_at.min(now + self.gap / 2);
        }
    }

    fn finish(&mut self, now: Time) {
        self.state = State::Done;
        self.places.clear();
        self.load_turns.clear();
        self.foreign_turns.clear();
        let loads = self.loads.drain(..).map(|load| load.connection);
        let foreign = self.foreign.drain(..).map(|probe| probe.connection);
        for connection in loads.chain(foreign) {
            close(&mut self.closed, &connection, now);
        }
    }

    fn server_gets(&mut self, now: Time, place: Place, bytes: u64) {
        match place {
            Place::Load(place) => {
                let load = &mut self.loads[place];
                load.read += bytes;
                while load.read >= self.config.request_size {
                    load.read -= self.config.request_size;
                    // The first one asks for the load.
                    load.owed += u32::from(load.requests > 0);
                    load.requests = load.requests.saturating_add(1);
                    if !load.connection.is_accepted() {
                        let address = Self::address(&mut self.random);
                        self.dial.accept(&mut load.connection, address, now);
                    }
                }
            }
            Place::Foreign(place) => {
                let probe = &mut self.foreign[place];
                probe.read += bytes;
                let is_hello = self.config.tls && !probe.is_set_up;
                let (wanted, answer) = if is_hello {
                    (HELLO, CERTIFICATE)
                } else {
                    (self.config.request_size, OBJECT)
                };
                if probe.read < wanted {
                    return;
                }
                probe.read -= wanted;
                probe.is_set_up = true;
                if !probe.connection.is_accepted() {
                    let address = Self::address(&mut self.random);
                    self.dial.accept(&mut probe.connection, address, now);
                }
                probe.connection.answer(answer, OF_PROBE);
            }
        }
    }

    fn load_gets(&mut self, now: Time, place: usize, bytes: u64) {
        self.results.on_delivered(bytes);
        let load = &mut self.loads[place];
        let mut arrived = bytes;
        while arrived > 0
            && let Some((left, is_answer)) = load.frames.front_mut()
        {
            let part = arrived.min(*left);
            arrived -= part;
            *left -= part;
            if *left > 0 {
                continue;
            }
            let is_answer = *is_answer;
            load.frames.pop_front();
            if is_answer && let Some(asked) = load.asked.pop_front() {
                self.results.on_probe(Step::Loaded, now.since(asked));
            }
        }
    }

    /// Bytes of an answer came to a foreign probe, or it `is_connected` now.
    fn foreign_gets(&mut self, now: Time, place: usize, bytes: u64, is_connected: bool) {
        let probe = &mut self.foreign[place];
        let is_over = match probe.step {
            Step::Connect => is_connected,
            Step::Tls | Step::Get | Step::Loaded => {
                probe.awaited -= bytes.min(probe.awaited);
                probe.awaited == 0
            }
        };
        if !is_over {
            return;
        }
        self.results.on_probe(probe.step, now.since(probe.since));
        probe.since = now;
        match probe.step {
            Step::Connect if self.config.tls => {
                (probe.step, probe.awaited) = (Step::Tls, CERTIFICATE);
                probe.connection.ask(HELLO, FOR_TLS);
            }
            Step::Connect | Step::Tls => {
                (probe.step, probe.awaited) = (Step::Get, OBJECT);
                probe.connection.ask(self.config.request_size, FOR_OBJECT);
            }
            Step::Get | Step::Loaded => {
                let connection = self.take_foreign(place);
                close(&mut self.closed, &connection, now);
            }
        }
    }
}

fn close(closed: &mut FlowSample, connection: &impl Talk, now: Time) {
    if let Some(answers) = connection.sample(now) {
        add_totals(closed, &answers);
    }
}

impl<T> Foreign<T> {
    fn over(connection: T, since: Time) -> Self {
        let step = Step::Connect;
        Self { connection, step, since, read: 0, awaited: 0, is_set_up: false }
    }
}

impl<T: Talk> Load<T> {
    fn over(connection: T) -> Self {
        let (frames, asked) = (VecDeque::new(), VecDeque::new());
        Self { connection, read: 0, requests: 0, owed: 0, frames, asked }
    }

    /// The server writes, as long as TCP has less than `low` left to send: a frame of the load, or the answer to
    /// a probe.
    fn write(&mut self, low: u64) {
        while self.requests > 0 && self.connection.unsent() < low {
            let is_answer = self.owed > 0;
            let (bytes, word) = if is_answer { (OBJECT, OF_PROBE) } else { (FRAME, OF_LOAD) };
            self.owed -= u32::from(is_answer);
            self.connection.answer(bytes, word);
            if self.connection.has_client() {
                self.frames.push_back((bytes, is_answer));
            }
        }
    }
}

impl<D: Dial> Dialogue for Rpm<D> {
    type Talk = D::Talk;

    const HOLDS_BACK: bool = true;

    fn on_connected<O: Observer>(&mut self, now: Time, number: u32, _: &mut O) {
        if let Some(Place::Foreign(place)) = self.place_of(number) {
            self.foreign_gets(now, place, 0, true);
        }
    }

    fn server_reads<O: Observer>(&mut self, now: Time, number: u32, bytes: u64, _: &mut O) {
        if let Some(place) = self.place_of(number) {
            self.server_gets(now, place, bytes);
        }
    }

    fn client_reads<O: Observer>(&mut self, now: Time, number: u32, bytes: u64, _: &mut O) {
        match self.place_of(number) {
            Some(Place::Load(place)) => self.load_gets(now, place, bytes),
            Some(Place::Foreign(place)) => self.foreign_gets(now, place, bytes, false),
            None => {}
        }
    }

    fn on_time<O: Observer>(&mut self, now: Time, sends: Direction, o: &mut O) {
        if sends == Direction::Forward {
            return;
        }
        if self.state == State::Before && now >= self.look_at && self.look_at < self.end {
            self.state = State::Running;
            self.add_loads(now, self.config.initial);
            self.look_at = (now + self.config.interval).min(self.end);
        }
        if self.state == State::Running {
            if now >= self.foreign_at {
                self.add_foreign(now);
                self.foreign_at = now + self.gap;
            }
            if now >= self.self_at {
                self.ask_loaded(now);
                self.self_at = now + self.gap;
            }
            if now >= self.look_at {
                self.look(now, o);
            }
        }
    }

    fn next_time(&self, sends: Direction) -> Time {
        match (sends, self.state) {
            (Direction::Forward, _) | (_, State::Done) => Time::NEVER,
            (_, State::Before) if self.look_at < self.end => self.look_at,
            (_, State::Before) => Time::NEVER,
            (_, State::Running) => self.look_at.min(self.foreign_at).min(self.self_at),
        }
    }

    fn write(&mut self) {
        self.loads.iter_mut().for_each(|load| load.write(self.low));
    }

    fn has_more(&self, number: u32) -> bool {
        matches!(self.place_of(number), Some(Place::Load(place)) if self.loads[place].requests > 0)
    }

    fn hear_of(&mut self, now: Time, number: u32) {
        let address = Self::address(&mut self.random);
        let connection = self.dial.open(number, address, now);
        self.put_foreign(connection, now);
    }

    fn hear_request(&mut self, number: u32, word: u8) -> Option<u64> {
        match (self.place_of(number)?, word) {
            (Place::Load(_), FOR_LOAD) => Some(self.config.request_size),
            (Place::Foreign(place), FOR_LOAD) if !self.foreign[place].connection.is_accepted() => {
                let connection = self.take_foreign(place);
                self.put_load(connection);
                Some(self.config.request_size)
            }
            (Place::Foreign(place), FOR_TLS | FOR_OBJECT) => {
                let is_hello = self.config.tls && !self.foreign[place].is_set_up;
                let wanted = if is_hello { HELLO } else { self.config.request_size };
                (is_hello == (word == FOR_TLS)).then_some(wanted)
            }
            _ => None,
        }
    }

    fn hear_answer(&mut self, number: u32, word: u8) -> Option<u64> {
        match (self.place_of(number)?, word) {
            (Place::Load(place), OF_LOAD | OF_PROBE) => {
                let (bytes, is_answer) =
                    if word == OF_PROBE { (OBJECT, true) } else { (FRAME, false) };
                self.loads[place].frames.push_back((bytes, is_answer));
                Some(bytes)
            }
            (Place::Foreign(place), OF_PROBE) => {
                let awaited = self.foreign[place].awaited;
                (awaited > 0).then_some(awaited)
            }
            _ => None,
        }
    }

    fn hear_end(&mut self, now: Time, number: u32) {
        let connection = match self.place_of(number) {
            Some(Place::Load(place)) => self.take_load(place),
            Some(Place::Foreign(place)) => self.take_foreign(place),
            None => return,
        };
        close(&mut self.closed, &connection, now);
    }

    fn each_talk<'a>(&'a self, with: &mut impl FnMut(&'a D::Talk)) {
        self.loads.iter().for_each(|load| with(&load.connection));
        self.foreign.iter().for_each(|probe| with(&probe.connection));
    }

    fn each_talk_mut(&mut self, with: &mut impl FnMut(&mut D::Talk)) {
        self.loads.iter_mut().for_each(|load| with(&mut load.connection));
        self.foreign.iter_mut().for_each(|probe| with(&mut probe.connection));
    }

    fn sum(&self, now: Time) -> FlowSample {
        let mut all = self.closed;
        self.each_talk(&mut |talk| {
            if let Some(answers) = talk.sample(now) {
                add_open(&mut all, &answers);
            }
        });
        FlowSample { delivery_rate: Rate::UNLIMITED, ..all }
    }

    fn is_over(&self) -> bool {
        self.state == State::Done || self.state == State::Before && self.look_at >= self.end
    }
}

impl BothEnds for Rpm {
    /// The client gets what goes forward, the server what goes back. What is for a closed connection is nobody's.
    #[inline(never)]
    fn on_packet<O: Observer>(&mut self, now: Time, packet: &Packet, o: &mut O) {
        let sends = packet.direction.opposite();
        self.load_turns.touch_due(now, sends);
        self.foreign_turns.touch_due(now, sends);
        let Some(place) = self.place_of(packet.connection) else { return };
        let connection: &mut Connection = match place {
            Place::Load(place) => {
                self.load_turns.touch(sends, place);
                &mut self.loads[place].connection
            }
            Place::Foreign(place) => {
                self.foreign_turns.touch(sends, place);
                &mut self.foreign[place].connection
            }
        };
        if packet.direction == Direction::Reverse {
            let bytes = connection.server_gets(now, packet, o);
            self.server_gets(now, place, bytes);
            return;
        }
        let bytes = connection.client_gets(now, packet, o);
        match place {
            Place::Load(place) => self.load_gets(now, place, bytes),
            Place::Foreign(place) => {
                let is_connected = matches!(packet.body, Body::Handshake { .. });
                self.foreign_gets(now, place, bytes, is_connected);
            }
        }
    }

    fn on_wake<O: Observer>(&mut self, now: Time, sends: Direction, o: &mut O) {
        self.on_time(now, sends, o);
        while let Some(place) = self.load_turns.wake(now, sends) {
            self.loads[place].connection.on_wake(now, sends, o);
        }
        while let Some(place) = self.foreign_turns.wake(now, sends) {
            self.foreign[place].connection.on_wake(now, sends, o);
        }
    }

    #[inline(never)]
    fn poll_transmit(&mut self, now: Time, sends: Direction) -> Option<Packet> {
        while let Some(place) = self.foreign_turns.next(sends) {
            let connection = &mut self.foreign[place].connection;
            if let Some(packet) = connection.poll_transmit(now, sends) {
                return Some(packet);
            }
            self.foreign_turns.rest(sends, place, connection.next_wake(sends));
        }
        while let Some(place) = self.load_turns.next(sends) {
            let load = &mut self.loads[place];
            if sends == Direction::Forward {
                load.write(self.low);
            }
            if let Some(packet) = load.connection.poll_transmit(now, sends) {
                return Some(packet);
            }
            self.load_turns.rest(sends, place, load.connection.next_wake(sends));
        }
        None
    }

    fn next_wake(&self, sends: Direction) -> Time {
        let turns = self.load_turns.first(sends).min(self.foreign_turns.first(sends));
        self.next_time(sends).min(turns)
    }

    fn sample(&self, now: Time) -> FlowSample {
        self.sum(now)
    }

    fn is_done(&self) -> bool {
        self.is_over()
    }

    fn connections(&self) -> impl Iterator<Item = (&Sender, &Receiver)> {
        let loads = self.loads.iter().map(|load| &load.connection);
        let foreign = self.foreign.iter().map(|probe| &probe.connection);
        loads.chain(foreign).flat_map(Connection::directions)
    }
}
