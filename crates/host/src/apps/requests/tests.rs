use std::collections::VecDeque;

use proptest::prelude::*;
use sojourn_core::{AckFlags, Body, FlowId, HostId, Params, Purpose, Words};

use super::*;

const RTT: Span = Span::from_millis(20);

fn at(ms: u64) -> Time {
    Time::ZERO + Span::from_millis(ms)
}

fn requests(text: &str, stop: Time) -> Requests {
    requests_over(TcpConfig::default(), text, stop)
}

fn requests_over(transport: TcpConfig, text: &str, stop: Time) -> Requests {
    requests_with("cubic", transport, text, stop)
}

fn requests_with(cca: &str, transport: TcpConfig, text: &str, stop: Time) -> Requests {
    let ends = Endpoints { flow: FlowId(0), sender: HostId(0), receiver: HostId(1), dscp: 0 };
    let random = StreamAddress { seed: 1, run: 0 }.stream(0, Purpose::Controller);
    let config = RequestsConfig::parse(&mut Words::new(text)).unwrap();
    let cca = CcaConfig::parse(cca).unwrap();
    Requests::new(config, cca, transport, ends, random, at(0), stop)
}

#[derive(Default)]
struct Seen {
    opened: Vec<Time>,
    took: Vec<Span>,
    delivered: u64,
}

impl Observer for Seen {
    fn record(&mut self, now: Time, _: Who, event: &Event<'_>) {
        match event {
            Event::Opened { .. } => self.opened.push(now),
            Event::Completed { took, .. } => self.took.push(*took),
            Event::Delivered { bytes } => self.delivered += bytes,
            _ => {}
        }
    }
}

/// A path of half a round trip each way without queues, which loses what `lose` says.
fn carry(app: &mut Requests, until: Time, lose: impl FnMut(&Packet) -> bool) -> Seen {
    carry_over(RTT, app, until, lose)
}

fn carry_over(
    rtt: Span,
    app: &mut Requests,
    until: Time,
    mut lose: impl FnMut(&Packet) -> bool,
) -> Seen {
    let mut seen = Seen::default();
    let mut under_way: VecDeque<(Time, Packet)> = VecDeque::new();
    loop {
        let arrival = under_way.front().map_or(Time::NEVER, |(at, _)| *at);
        let [forward, reverse] =
            [Direction::Forward, Direction::Reverse].map(|sends| app.next_wake(sends));
        let now = arrival.min(forward).min(reverse);
        if now > until {
            return seen;
        }
        let sends = if arrival == now {
            let (_, packet) = under_way.pop_front().unwrap();
            app.on_packet(now, &packet, &mut seen);
            match packet.direction {
                Direction::Forward => Direction::Reverse,
                Direction::Reverse => Direction::Forward,
            }
        } else {
            let sends = if forward == now { Direction::Forward } else { Direction::Reverse };
            app.on_wake(now, sends, &mut seen);
            sends
        };
        while let Some(packet) = app.poll_transmit(now, sends) {
            assert_eq!(packet.direction, sends);
            if !lose(&packet) {
                under_way.push_back((now + rtt / 2, packet));
            }
        }
    }
}

fn all(text: &str) -> Seen {
    let mut app = requests(text, Time::NEVER);
    let seen = carry(&mut app, at(60_000), |_| false);
    assert!(app.is_done());
    assert_eq!(seen.delivered, seen.opened.len() as u64 * app.config.bytes, "every byte once");
    seen
}

/// Rounds of slow start: the window doubles from ten segments of 1448 bytes.
fn rounds(bytes: u64) -> u64 {
    let (mut window, mut sent, mut rounds) = (10 * 1448, 0, 0);
    while sent < bytes {
        sent += window;
        window *= 2;
        rounds += 1;
    }
    rounds
}

#[test]
fn one_object_takes_the_handshake_and_the_rounds_of_slow_start() {
    for bytes in [1, 14_480, 14_481, 43_440, 43_441, 101_360, 101_361, 500_000] {
        let seen = all(&format!("bytes {bytes}B requests 1"));
        assert_eq!(seen.took, [RTT * (1 + rounds(bytes))], "{bytes}");
    }
    let slow = all("bytes 1kB requests 1 server_delay 7ms");
    assert_eq!(slow.took, [RTT * 2 + Span::from_millis(7)]);
}

/// The client asks for the connection again after a second. Every request to connect has an answer.
#[test]
fn a_handshake_of_more_than_a_second_is_a_round_trip_like_others() {
    for ms in [990, 1_010, 1_990, 2_010, 3_100] {
        let rtt = Span::from_millis(ms);
        for cca in ["cubic", "bbr"] {
            let mut app =
                requests_with(cca, TcpConfig::default(), "bytes 14kB requests 1", Time::NEVER);
            let seen = carry_over(rtt, &mut app, at(60_000), |_| false);
            let server = app.sample(at(60_000));
            assert_eq!(seen.took, [rtt * 2], "{ms} {cca}");
            assert_eq!((server.min_rtt, server.timeouts_total), (Some(rtt), 0), "{ms} {cca}");
        }
    }
}

#[test]
fn the_servers_first_round_trip_is_of_the_answer_that_the_client_had() {
    let is_handshake = |packet: &Packet| match packet.body {
        Body::Handshake { .. } => true,
        Body::Ack(ack) => ack.flags.contains(AckFlags::HANDSHAKE),
        _ => false,
    };
    for rtt in [RTT, Span::from_millis(1_010)] {
        // The request to connect, its answer or the acknowledgement of that is lost, or none of them.
        for lost in 0..4 {
            let mut app = requests("bytes 1B requests 1", Time::NEVER);
            let mut packets = 0;
            carry_over(rtt, &mut app, at(10_000), |packet| {
                packets += usize::from(is_handshake(packet));
                is_handshake(packet) && packets == lost
            });
            assert_eq!(app.sample(at(10_000)).min_rtt, Some(rtt), "{rtt:?} {lost}");
        }
    }
}

/// The request takes three round trips, and its first packet ends the handshake.
#[test]
fn a_long_request_does_not_lengthen_the_servers_first_round_trip() {
    let mut app = requests("bytes 1B requests 1 request_size 64kB", Time::NEVER);
    carry(&mut app, at(65), |_| false);
    assert!(!app.lines[0].connection.is_accepted());
    carry(&mut app, at(200), |_| false);
    let srtt = app.lines[0].connection.sample(at(200)).map(|server| server.srtt);
    assert_eq!(srtt, Some(RTT));
}

#[test]
fn a_connection_stays_open_so_that_later_requests_need_no_handshake() {
    let seen = all("bytes 10kB requests 3");
    assert_eq!(seen.took, [RTT * 2, RTT, RTT]);
    assert_eq!(seen.opened, [at(0), at(40), at(60)], "one after another");
    let thinking = all("bytes 10kB requests 3 think 100ms");
    assert_eq!(thinking.opened, [at(0), at(140), at(260)]);
}

#[test]
fn connections_and_streams_ask_at_once() {
    let connections = all("bytes 10kB connections 3 requests 3");
    assert_eq!(connections.opened, [at(0); 3]);
    assert_eq!(connections.took, [RTT * 2; 3], "each has a window of its own");
    let streams = all("bytes 10kB streams 3 requests 3");
    assert_eq!(streams.opened, [at(0); 3]);
    // They share a window of 14480 bytes, one after another as each is less than a frame.
    assert_eq!(streams.took, [RTT * 2, RTT * 3, RTT * 3]);
}

#[test]
fn answers_on_one_connection_take_turns() {
    // A window of 14480 bytes, then 28960, 57920, 115840: all end in the round of the last bytes.
    let seen = all("bytes 49152B streams 4 requests 4");
    assert_eq!(seen.took, [RTT * 5; 4], "in turn, all four wait for the last frames");
    // Over a connection each, every one ends after three rounds.
    let seen = all("bytes 49152B connections 4 requests 4");
    assert_eq!(seen.took, [RTT * 4; 4]);
}

/// What the server has written can't be overtaken, so it writes another frame only while it may.
#[test]
fn the_server_writes_while_fewer_bytes_are_unsent_than_the_low_water_mark() {
    let unsent = |notsent_lowat| {
        let transport = TcpConfig { notsent_lowat, ..TcpConfig::default() };
        let mut app = requests_over(transport, "bytes 49152B streams 4 requests 4", Time::NEVER);
        // The server has its requests at 30 ms and sends a window of 14480 bytes.
        carry(&mut app, at(30), |_| false);
        app.lines[0].connection.unsent()
    };
    assert_eq!(unsent(None), 3 * 16_384 - 14_480, "the third frame was written with 18288 unsent");
    assert_eq!(unsent(Some(32_768)), unsent(None));
    assert_eq!(unsent(Some(1)), 16_384 - 14_480);
    assert_eq!(unsent(Some(1 << 20)), 4 * 49_152 - 14_480);
}

#[test]
fn no_request_is_made_at_the_stop_or_after_it() {
    let mut app = requests("bytes 10kB think 100ms", at(260));
    let seen = carry(&mut app, at(60_000), |_| false);
    assert_eq!(seen.opened, [at(0), at(140)]);
    assert!(app.is_done());
    let mut random = requests("bytes 1kB think 100ms random true", at(100_000));
    let seen = carry(&mut random, at(100_000), |_| false);
    // A round trip and 100 ms in the mean.
    assert!((750..920).contains(&seen.opened.len()), "{}", seen.opened.len());
}

/// Which streams ask next is known without a look at all of them, as is whether any waits.
#[test]
fn streams_that_think_are_in_the_order_in_which_they_ask() {
    let mut app = requests("bytes 1kB connections 8 streams 256 think 1s", Time::NEVER);
    let seen = carry(&mut app, at(41), |_| false);
    assert_eq!((seen.opened.len(), app.waiting), (8 * 256, 8 * 256 - seen.took.len() as u64));
    carry(&mut app, at(1_000), |_| false);
    assert_eq!((app.thinking.len(), app.waiting), (8 * 256, 0), "all have their answers");
    // The first were answered at 40 ms, and ask again a second later, those of the first connection first.
    assert_eq!(app.next_request(), at(1_040));
    app.ask(at(1_040), &mut Seen::default());
    assert_eq!(app.waiting as usize, seen.took.iter().filter(|took| **took == RTT * 2).count());
    assert!(app.asking.is_empty() && app.next_request() > at(1_040));
    assert!(app.lines.iter().all(|line| line.streams[0].is_waiting()));
}

proptest! {
    #[test]
    fn whatever_is_lost_every_answer_comes(
        losses in prop::collection::vec(any::<bool>(), 1..20),
        connections in 1u32..4,
        streams in 1u32..5,
        bytes in 1u64..60_000,
    ) {
        let mut losses = losses.into_iter();
        let text = format!("bytes {bytes}B connections {connections} streams {streams} requests 9 server_delay 3ms");
        let mut app = requests(&text, Time::NEVER);
        // Each loss before the connection stands doubles the wait for it.
        let until = Time::ZERO + Span::from_secs(1 << 21);
        let seen = carry(&mut app, until, |_| losses.next().unwrap_or(false));
        prop_assert!(app.is_done());
        prop_assert_eq!(seen.took.len(), 9);
        prop_assert_eq!(seen.delivered, 9 * bytes);
    }
}
