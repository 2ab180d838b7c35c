//! Requests over connections that stay open: one at a time on each, as HTTP/1.1 has it, or several at
//! once, as HTTP/2 has it.
//!
//! The client opens its connections and asks; the server answers after a while. Whoever asked thinks
//! before asking again. Answers on one connection take turns, a frame each. Packets of the client go
//! [`Direction::Reverse`], because data goes forward.

#[cfg(test)]
mod tests;

use alloc::collections::{BinaryHeap, VecDeque};
use alloc::vec::Vec;
use core::cmp::Reverse;

use sojourn_cca::Config as CcaConfig;
use sojourn_core::param::{Bounds, Maybe, Needed, Octets, Truth, size, time, whole};
use sojourn_core::{
    Direction, Event, FlowSample, Observer, Packet, Rate, Span, Stream, StreamAddress, Time, Who,
};

use super::BothEnds;
use super::connection::{Connection, Simulated};
use super::dialogue::{Dial, Dialogue, FRAME, LOW, Talk};
use super::sum::{add_open, add_totals};
use super::turns::Turns;
use crate::bounds::LONGEST;
use crate::tcp::{Config as TcpConfig, Endpoints, Receiver, Sender};

sojourn_core::params! {
    /// What is asked for, and how.
    pub struct RequestsConfig: "requests", "requests over TCP connections that stay open, one at a time or several at once on each" {
        pub bytes: u64 as Needed<Octets> = "", size(1, 1_000_000_000_000), "each answer";
        pub connections: u32 = "1", whole(1, 64), "TCP connections, all opened at the start";
        pub streams: u32 = "1", whole(1, 256),
            "requests that may be under way at once on each connection: 1 as HTTP/1.1, more as HTTP/2";
        pub request_size: u64 as Octets = "300B", size(1, 65_536), "what the client sends to ask";
        pub think: Span = "0s", time(Span::ZERO, LONGEST), "from the end of an answer to the next request of the same stream";
        pub random: bool as Truth = "false", "the time to think is exponentially distributed, with `think` as its mean";
        pub server_delay: Span = "0s", time(Span::ZERO, LONGEST), "from the arrival of a request until its answer begins";
        pub requests: Option<u32> as Maybe<u32> = "", COUNT, "so many requests in all; without it there is no end";
    }
}

const COUNT: Bounds = whole(1, 1_000_000_000);

/// Both ends of a flow that asks again and again.
pub struct Requests<D: Dial = Simulated> {
    config: RequestsConfig,
    dial: D,
    /// The server writes the next frame when TCP has less than this left to send.
    low: u64,
    ends: Endpoints,
    /// The controllers' random numbers, one step for each end of a connection, and times to think.
    random: Stream,
    start: Time,
    stop: Time,
    /// Requests that have not been made.
    left: u64,
    lines: Vec<Line<D::Talk>>,
    /// Of lines whose ends are simulated.
    turns: Turns,
    /// Answers that servers prepare.
    preparing: usize,
    /// Streams that think: until when, and their connection's number and their own; who asks first is at the top.
    thinking: BinaryHeap<Reverse<(Time, u32, usize)>>,
    /// Streams that ask now, by connection and stream; empty between calls.
    asking: Vec<(u32, usize)>,
    /// How many streams wait for an answer.
    waiting: u64,
    /// Totals of the connections that a client elsewhere has closed.
    closed: FlowSample,
}

/// A connection, and the streams on it.
struct Line<T> {
    connection: T,
    streams: Vec<ClientStream>,
    /// Streams whose request the server has not read whole, in order, and how much it has read of the
    /// first.
    asking: VecDeque<usize>,
    read: u64,
    /// Streams whose answer the server prepares, and when it is ready.
    preparing: VecDeque<(Time, usize)>,
    /// Streams whose answer is being written, the next one to write first, and what is left of it.
    writing: VecDeque<(usize, u64)>,
    /// Frames on their way: whose they are, and how much of them has not arrived.
    frames: VecDeque<(usize, u64)>,
}

/// The client's side of a stream.
#[derive(Clone, Copy, Debug)]
enum ClientStream {
    /// When it asks is in `thinking`.
    Thinking,
    /// It asked at `since`, and so many bytes of the answer have not arrived.
    Waiting { since: Time, awaited: u64 },
}

impl ClientStream {
    fn is_waiting(&self) -> bool {
        matches!(self, Self::Waiting { .. })
    }
}

impl Requests {
    /// The first requests are made at `start`, none at `stop` or later.
    pub fn new(
        config: RequestsConfig,
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

impl<D: Dial> Requests<D> {
    /// The same over connections that `dial` makes.
    pub fn over(
        dial: D,
        config: RequestsConfig,
        ends: Endpoints,
        random: Stream,
        start: Time,
        stop: Time,
    ) -> Self {
        Self {
            left: config.requests.map_or(u64::MAX, u64::from),
            config,
            dial,
            low: LOW,
            ends,
            random,
            start,
            stop,
            lines: Vec::new(),
            turns: Turns::default(),
            preparing: 0,
            thinking: BinaryHeap::new(),
            asking: Vec::new(),
            waiting: 0,
            closed: FlowSample::default(),
        }
    }

    fn address(random: &mut Stream) -> StreamAddress {
        StreamAddress { seed: random.next_u64(), run: 0 }
    }

    /// Opens all connections that have something to ask for.
    fn connect(&mut self, now: Time) {
        let streams = u64::from(self.config.streams);
        let needed = self.left.div_ceil(streams).min(self.config.connections.into());
        for number in 1..=needed as u32 {
            self.open(now, number);
            self.thinking.extend(
                (0..self.config.streams as usize).map(|stream| Reverse((now, number, stream))),
            );
        }
    }

    /// Opens a connection whose streams don't ask by themselves.
    fn open(&mut self, now: Time, number: u32) {
        let address = Self::address(&mut self.random);
        let streams = self.config.streams as usize;
        self.lines.push(Line {
            connection: self.dial.open(number, address, now),
            streams: alloc::vec![ClientStream::Thinking; streams],
            asking: VecDeque::new(),
            read: 0,
            preparing: VecDeque::new(),
            writing: VecDeque::new(),
            frames: VecDeque::new(),
        });
        self.turns.touch(Direction::Reverse, self.lines.len() - 1);
    }

    /// Streams that have thought long enough ask, those of the first connection first.
    fn ask<O: Observer>(&mut self, now: Time, o: &mut O) {
        if now >= self.stop || self.left == 0 {
            return;
        }
        while let Some(Reverse((until, number, stream))) = self.thinking.peek().copied()
            && until <= now
        {
            self.thinking.pop();
            self.asking.push((number, stream));
        }
        self.asking.sort_unstable();
        let bytes = self.config.bytes;
        for at in 0..self.asking.len() {
            let (number, stream) = self.asking[at];
            let Some(place) = self.place_of(number).filter(|_| self.left > 0) else { continue };
            let line = &mut self.lines[place];
            self.left -= 1;
            self.waiting += 1;
            line.streams[stream] = ClientStream::Waiting { since: now, awaited: bytes };
            if line.connection.has_server() {
                line.asking.push_back(stream);
            }
            line.connection.ask(self.config.request_size, stream as u8);
            self.turns.touch(Direction::Reverse, place);
            o.record(now, Who::Flow(self.ends.flow), &Event::Opened { bytes });
        }
        self.asking.clear();
    }

    /// Connections are opened in the order of their numbers, so most have the place that their number says.
    fn place_of(&self, number: u32) -> Option<usize> {
        let is_it = |line: &Line<D::Talk>| line.connection.number() == number;
        let likely = (number as usize).wrapping_sub(1);
        match self.lines.get(likely) {
            Some(line) if is_it(line) => Some(likely),
            _ => self.lines.iter().position(is_it),
        }
    }

    fn server_gets(&mut self, now: Time, place: usize, bytes: u64) {
        let line = &mut self.lines[place];
        line.read += bytes;
        while line.read >= self.config.request_size
            && let Some(stream) = line.asking.pop_front()
        {
            line.read -= self.config.request_size;
            if !line.connection.is_accepted() {
                let address = Self::address(&mut self.random);
                self.dial.accept(&mut line.connection, address, now);
            }
            line.preparing.push_back((now + self.config.server_delay, stream));
            self.preparing += 1;
        }
        self.preparing -= line.prepare(now, self.config.bytes);
    }

    fn client_gets<O: Observer>(&mut self, now: Time, place: usize, bytes: u64, o: &mut O) {
        let line = &mut self.lines[place];
        let mut arrived = bytes;
        while arrived > 0
            && let Some(&mut (number, ref mut rest)) = line.frames.front_mut()
        {
            let part = arrived.min(*rest);
            arrived -= part;
            *rest -= part;
            let stream = &mut line.streams[number];
            if *rest == 0 {
                line.frames.pop_front();
            }
            let ClientStream::Waiting { since, awaited } = stream else { continue };
            *awaited -= part.min(*awaited);
            if *awaited == 0 {
                let (bytes, took) = (self.config.bytes, now.since(*since));
                o.record(now, Who::Flow(self.ends.flow), &Event::Completed { bytes, took });
                let think = match self.config.random {
                    false => self.config.think,
                    true => {
                        let mean = self.config.think.as_secs_f64();
                        Span::from_secs_f64(self.random.exponential(mean))
                    }
                };
                *stream = ClientStream::Thinking;
                self.waiting -= 1;
                self.thinking.push(Reverse((now + think, line.connection.number(), number)));
            }
        }
        // Who does not think asks with the acknowledgement.
        self.ask(now, o);
    }

    /// When a stream asks next.
    fn next_request(&self) -> Time {
        if self.left == 0 {
            return Time::NEVER;
        }
        let next = match self.lines.is_empty() {
            true => self.start,
            false => self.thinking.peek().map_or(Time::NEVER, |Reverse((until, ..))| *until),
        };
        if next < self.stop { next } else { Time::NEVER }
    }
}

impl<T: Talk> Line<T> {
    /// Answers that are ready by now can be written; how many.
    fn prepare(&mut self, now: Time, bytes: u64) -> usize {
        let before = self.preparing.len();
        while let Some((ready, stream)) = self.preparing.front().copied()
            && ready <= now
        {
            self.preparing.pop_front();
            self.writing.push_back((stream, bytes));
        }
        before - self.preparing.len()
    }

    /// The server writes frames, the answers in turn, as long as TCP has less than `low` left to send.
    fn write(&mut self, low: u64) {
        while self.connection.unsent() < low
            && let Some((stream, left)) = self.writing.pop_front()
        {
            let frame = left.min(FRAME);
            self.connection.answer(frame, stream as u8);
            if self.connection.has_client() {
                self.frames.push_back((stream, frame));
            }
            if left > frame {
                self.writing.push_back((stream, left - frame));
            }
        }
    }
}

impl<D: Dial> Dialogue for Requests<D> {
    type Talk = D::Talk;

    const HOLDS_BACK: bool = true;

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
        match sends {
            Direction::Reverse if self.next_request() <= now => {
                if self.lines.is_empty() {
                    self.connect(now);
                }
                self.ask(now, o);
            }
            Direction::Reverse => {}
            Direction::Forward => {
                for line in &mut self.lines {
                    if self.preparing == 0 {
                        break;
                    }
                    self.preparing -= line.prepare(now, self.config.bytes);
                }
            }
        }
    }

    fn next_time(&self, sends: Direction) -> Time {
        match sends {
            Direction::Reverse => self.next_request(),
            Direction::Forward if self.preparing == 0 => Time::NEVER,
            Direction::Forward => {
                let ready = self.lines.iter().filter_map(|line| line.preparing.front());
                ready.map(|(ready, _)| *ready).min().unwrap_or(Time::NEVER)
            }
        }
    }

    fn write(&mut self) {
        self.lines.iter_mut().for_each(|line| line.write(self.low));
    }

    fn has_more(&self, number: u32) -> bool {
        self.place_of(number).is_some_and(|place| !self.lines[place].writing.is_empty())
    }

    fn hear_of(&mut self, now: Time, number: u32) {
        self.open(now, number);
    }

    fn hear_request(&mut self, number: u32, word: u8) -> Option<u64> {
        let place = self.place_of(number)?;
        let line = &mut self.lines[place];
        let stream = usize::from(word);
        (stream < line.streams.len()).then(|| line.asking.push_back(stream))?;
        Some(self.config.request_size)
    }

    fn hear_answer(&mut self, number: u32, word: u8) -> Option<u64> {
        let place = self.place_of(number)?;
        let line = &mut self.lines[place];
        match line.streams.get(usize::from(word)) {
            Some(ClientStream::Waiting { awaited, .. }) => {
                let frame = FRAME.min(*awaited);
                line.frames.push_back((usize::from(word), frame));
                Some(frame)
            }
            _ => None,
        }
    }

    fn hear_end(&mut self, now: Time, number: u32) {
        if let Some(place) = self.place_of(number) {
            let line = self.lines.remove(place);
            self.preparing -= line.preparing.len();
            let waiting = line.streams.iter().filter(|stream| stream.is_waiting()).count();
            self.waiting -= waiting as u64;
            if let Some(answers) = line.connection.sample(now) {
                add_totals(&mut self.closed, &answers);
            }
        }
    }

    fn each_talk<'a>(&'a self, with: &mut impl FnMut(&'a D::Talk)) {
        self.lines.iter().for_each(|line| with(&line.connection));
    }

    fn each_talk_mut(&mut self, with: &mut impl FnMut(&mut D::Talk)) {
        self.lines.iter_mut().for_each(|line| with(&mut line.connection));
    }

    fn sum(&self, now: Time) -> FlowSample {
        let mut all = self.closed;
        for answers in self.lines.iter().filter_map(|line| line.connection.sample(now)) {
            add_open(&mut all, &answers);
        }
        FlowSample { delivery_rate: Rate::UNLIMITED, ..all }
    }

    fn is_over(&self) -> bool {
        self.next_request().is_never() && self.waiting == 0
    }
}

impl BothEnds for Requests {
    /// The client gets what goes forward, the server what goes back.
    #[inline(never)]
    fn on_packet<O: Observer>(&mut self, now: Time, packet: &Packet, o: &mut O) {
        let sends = packet.direction.opposite();
        self.turns.touch_due(now, sends);
        let Some(place) = self.place_of(packet.connection) else { return };
        self.turns.touch(sends, place);
        let connection: &mut Connection = &mut self.lines[place].connection;
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
        if sends == Direction::Reverse {
            self.on_time(now, sends, o);
        }
        while let Some(place) = self.turns.wake(now, sends) {
            let line = &mut self.lines[place];
            if sends == Direction::Forward {
                self.preparing -= line.prepare(now, self.config.bytes);
            }
            line.connection.on_wake(now, sends, o);
        }
    }

    #[inline(never)]
    fn poll_transmit(&mut self, now: Time, sends: Direction) -> Option<Packet> {
        while let Some(place) = self.turns.next(sends) {
            let line = &mut self.lines[place];
            if sends == Direction::Forward {
                line.write(self.low);
            }
            if let Some(packet) = line.connection.poll_transmit(now, sends) {
                return Some(packet);
            }
            let ready = line.preparing.front().filter(|_| sends == Direction::Forward);
            let ready = ready.map_or(Time::NEVER, |(ready, _)| *ready);
            self.turns.rest(sends, place, line.connection.next_wake(sends).min(ready));
        }
        None
    }

    fn next_wake(&self, sends: Direction) -> Time {
        let own = if sends == Direction::Reverse { self.next_request() } else { Time::NEVER };
        own.min(self.turns.first(sends))
    }

    fn sample(&self, now: Time) -> FlowSample {
        self.sum(now)
    }

    fn is_done(&self) -> bool {
        self.is_over()
    }

    fn connections(&self) -> impl Iterator<Item = (&Sender, &Receiver)> {
        self.lines.iter().flat_map(|line| line.connection.directions())
    }
}
