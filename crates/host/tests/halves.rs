//! Applications of requests and answers whose client and server are two values: what they say to each other by the first bytes of
//! requests and answers is enough, and nothing that is said makes one panic.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use proptest::prelude::*;
use sojourn_core::{
    Direction, Event, FlowId, FlowSample, HostId, NoObserver, Observer, Params, Purpose, Span,
    Stream, StreamAddress, Time, Who, Words,
};
use sojourn_host::apps::dialogue::{Dial, Dialogue, Talk};
use sojourn_host::apps::{Page, PageConfig, Requests, RequestsConfig, Rpm, RpmConfig};
use sojourn_host::tcp::Endpoints;

/// What connections of one end have written, opened and closed.
#[derive(Clone, Default)]
struct Wire(Rc<RefCell<Written>>);

#[derive(Default)]
struct Written {
    pieces: VecDeque<(u32, u64, u8)>,
    opened: Vec<u32>,
    closed: Vec<u32>,
}

struct HalfDial {
    is_client: bool,
    wire: Wire,
}

struct Half {
    number: u32,
    is_client: bool,
    is_accepted: bool,
    wire: Wire,
}

impl Dial for HalfDial {
    type Talk = Half;

    fn open(&mut self, number: u32, _: StreamAddress, _: Time) -> Half {
        self.wire.0.borrow_mut().opened.push(number);
        let (is_client, wire) = (self.is_client, self.wire.clone());
        Half { number, is_client, is_accepted: is_client, wire }
    }

    fn accept(&mut self, talk: &mut Half, _: StreamAddress, _: Time) {
        talk.is_accepted = true;
    }
}

impl Talk for Half {
    fn number(&self) -> u32 {
        self.number
    }

    fn has_client(&self) -> bool {
        self.is_client
    }

    fn has_server(&self) -> bool {
        !self.is_client
    }

    fn ask(&mut self, bytes: u64, word: u8) {
        assert!(self.is_client, "a server asks");
        self.wire.0.borrow_mut().pieces.push_back((self.number, bytes, word));
    }

    fn is_accepted(&self) -> bool {
        self.is_accepted
    }

    fn answer(&mut self, bytes: u64, word: u8) {
        assert!(!self.is_client, "a client answers");
        self.wire.0.borrow_mut().pieces.push_back((self.number, bytes, word));
    }

    fn unsent(&self) -> u64 {
        let wire = self.wire.0.borrow();
        let own = wire.pieces.iter().filter(|(number, ..)| *number == self.number);
        own.map(|(_, bytes, _)| bytes).sum()
    }

    fn sample(&self, _: Time) -> Option<FlowSample> {
        None
    }
}

impl Drop for Half {
    fn drop(&mut self) {
        self.wire.0.borrow_mut().closed.push(self.number);
    }
}

#[derive(Default)]
struct Seen {
    completed: u32,
    has_result: bool,
}

impl Observer for Seen {
    fn record(&mut self, _: Time, _: Who, event: &Event<'_>) {
        self.completed += u32::from(matches!(event, Event::Completed { .. }));
        self.has_result |= matches!(event, Event::Responsiveness(_));
    }
}

type Build<A> = fn(HalfDial, Endpoints, Stream) -> A;

const STOP: Time = Time::NEVER;

fn page(dial: HalfDial, ends: Endpoints, random: Stream) -> Page<HalfDial> {
    let config = PageConfig::parse(&mut Words::new("bytes=100kB requests=7 pages=3 pause=5ms"));
    Page::over(dial, config.expect("it is good"), ends, random, Time::ZERO, STOP)
}

fn requests(dial: HalfDial, ends: Endpoints, random: Stream) -> Requests<HalfDial> {
    let text = "bytes=40kB connections=2 streams=3 requests=20 server_delay=2ms think=1ms";
    let config = RequestsConfig::parse(&mut Words::new(text)).expect("it is good");
    Requests::over(dial, config, ends, random, Time::ZERO, STOP)
}

fn rpm(dial: HalfDial, ends: Endpoints, random: Stream) -> Rpm<HalfDial> {
    let config = RpmConfig::parse(&mut Words::new("interval=100ms limit=2s"));
    Rpm::over(dial, config.expect("it is good"), ends, random, Time::ZERO, STOP)
}

fn half<A>(build: Build<A>, is_client: bool) -> (A, Wire) {
    let ends = Endpoints { flow: FlowId(0), sender: HostId(0), receiver: HostId(1), dscp: 0 };
    let random = StreamAddress { seed: 1, run: 0 }.stream(0, Purpose::Controller);
    let wire = Wire::default();
    (build(HalfDial { is_client, wire: wire.clone() }, ends, random), wire)
}

/// Both over a way that carries 64 pieces of answers a millisecond.
fn both<A: Dialogue<Talk = Half>>(build: Build<A>) -> Seen {
    let (mut client, asks) = half(build, true);
    let (mut server, answers) = half(build, false);
    let mut seen = Seen::default();
    for ms in 0..5_000 {
        let now = Time::ZERO + Span::from_millis(ms);
        if now >= client.next_time(Direction::Reverse) {
            client.on_time(now, Direction::Reverse, &mut seen);
        }
        while client.poll_datagram(now, Direction::Reverse).is_some() {
            server.on_datagram(now, Direction::Reverse);
        }
        while server.poll_datagram(now, Direction::Forward).is_some() {
            client.on_datagram(now, Direction::Forward);
        }
        let opened = std::mem::take(&mut asks.0.borrow_mut().opened);
        for number in opened {
            server.hear_of(now, number);
            client.on_connected(now, number, &mut seen);
        }
        let closed = std::mem::take(&mut asks.0.borrow_mut().closed);
        closed.into_iter().for_each(|number| server.hear_end(now, number));
        let requests = std::mem::take(&mut asks.0.borrow_mut().pieces);
        for (number, bytes, word) in requests {
            let mut is_open = false;
            server.each_talk(&mut |talk| is_open |= talk.number == number);
            if is_open {
                assert_eq!(server.hear_request(number, word), Some(bytes));
                server.server_reads(now, number, bytes, &mut seen);
            }
        }
        if now >= server.next_time(Direction::Forward) {
            server.on_time(now, Direction::Forward, &mut seen);
        }
        server.write();
        for _ in 0..64 {
            let Some((number, bytes, word)) = answers.0.borrow_mut().pieces.pop_front() else {
                break;
            };
            let mut is_open = false;
            client.each_talk(&mut |talk| is_open |= talk.number == number);
            if is_open {
                assert_eq!(client.hear_answer(number, word), Some(bytes));
                // It comes in two parts.
                client.client_reads(now, number, bytes / 2, &mut seen);
                client.client_reads(now, number, bytes - bytes / 2, &mut seen);
            }
        }
    }
    assert!(client.is_over());
    seen
}

#[test]
fn a_client_and_a_server_apart_do_what_both_together_do() {
    assert_eq!(both(page).completed, 3);
    assert_eq!(both(requests).completed, 20);
    assert!(both(rpm).has_result);
}

/// What an end is told: what it is, a number, a word, and how much of it comes.
type Said = (u8, u32, u8, u64);

fn tell<A: Dialogue<Talk = Half>>(build: Build<A>, is_client: bool, said: &[Said]) {
    let (mut end, _) = half(build, is_client);
    let o = &mut NoObserver;
    for (place, (what, number, word, bytes)) in said.iter().enumerate() {
        let now = Time::ZERO + Span::from_millis(20 * place as u64);
        match (what % 5, is_client) {
            (0, true) => end.on_time(now, Direction::Reverse, o),
            (0, false) => end.on_time(now, Direction::Forward, o),
            (1, true) => end.on_connected(now, *number, o),
            (1, false) => end.hear_of(now, *number),
            (2, false) => end.hear_end(now, *number),
            (3, true) => end.on_datagram(now, Direction::Forward),
            (3, false) => end.on_datagram(now, Direction::Reverse),
            (_, true) => {
                let Some(most) = end.hear_answer(*number, *word) else { continue };
                assert!(most > 0);
                end.client_reads(now, *number, most.min(*bytes), o);
            }
            (_, false) => {
                let Some(most) = end.hear_request(*number, *word) else { continue };
                assert!(most > 0);
                end.server_reads(now, *number, most.min(*bytes), o);
            }
        }
        end.write();
    }
}

proptest! {
    #[test]
    fn nothing_that_is_said_makes_an_end_panic(
        said in prop::collection::vec((any::<u8>(), 0_u32..4, 0_u8..5, 0_u64..20_000), 0..60),
        is_client in any::<bool>(),
    ) {
        tell(page, is_client, &said);
        tell(requests, is_client, &said);
        tell(rpm, is_client, &said);
    }
}
