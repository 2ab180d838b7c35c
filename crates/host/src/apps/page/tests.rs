use std::collections::VecDeque;

use proptest::prelude::*;
use sojourn_core::{FlowId, HostId, Purpose, Words};

use super::*;

const RTT: Span = Span::from_millis(20);

fn at(ms: u64) -> Time {
    Time::ZERO + Span::from_millis(ms)
}

fn page(text: &str, stop: Time) -> Page {
    let ends = Endpoints { flow: FlowId(0), sender: HostId(0), receiver: HostId(1), dscp: 0 };
    let random = StreamAddress { seed: 1, run: 0 }.stream(0, Purpose::Controller);
    let config = PageConfig::parse(&mut Words::new(text)).unwrap();
    let cca = CcaConfig::parse("cubic").unwrap();
    Page::new(config, cca, TcpConfig::default(), ends, random, at(0), stop)
}

#[derive(Default)]
struct Seen {
    opened: Vec<u64>,
    took: Vec<Span>,
    delivered: u64,
}

impl Observer for Seen {
    fn record(&mut self, _: Time, _: Who, event: &Event<'_>) {
        match event {
            Event::Opened { bytes } => self.opened.push(*bytes),
            Event::Completed { took, .. } => self.took.push(*took),
            Event::Delivered { bytes } => self.delivered += bytes,
            _ => {}
        }
    }
}

/// A path of half a round trip each way without queues, which loses what `lose` says.
fn carry(
    page: &mut Page,
    until: Time,
    mut lose: impl FnMut(&Packet) -> bool,
) -> (Seen, Vec<Packet>) {
    let (mut seen, mut all) = (Seen::default(), Vec::new());
    let mut under_way: VecDeque<(Time, Packet)> = VecDeque::new();
    loop {
        let arrival = under_way.front().map_or(Time::NEVER, |(at, _)| *at);
        let [forward, reverse] =
            [Direction::Forward, Direction::Reverse].map(|sends| page.next_wake(sends));
        let now = arrival.min(forward).min(reverse);
        if now > until {
            return (seen, all);
        }
        let sends = if arrival == now {
            let (_, packet) = under_way.pop_front().unwrap();
            page.on_packet(now, &packet, &mut seen);
            match packet.direction {
                Direction::Forward => Direction::Reverse,
                Direction::Reverse => Direction::Forward,
            }
        } else {
            let sends = if forward == now { Direction::Forward } else { Direction::Reverse };
            page.on_wake(now, sends, &mut seen);
            sends
        };
        while let Some(packet) = page.poll_transmit(now, sends) {
            assert_eq!(packet.direction, sends);
            if !lose(&packet) {
                under_way.push_back((now + RTT / 2, packet));
            }
            all.push(packet);
        }
    }
}

fn round_trips(text: &str) -> u64 {
    let mut page = page(text, Time::NEVER);
    let (seen, _) = carry(&mut page, at(60_000), |_| false);
    assert!(page.is_done());
    assert_eq!(seen.delivered, seen.opened[0], "every byte once, requests not among them");
    let took = seen.took[0].as_nanos();
    assert_eq!(took % RTT.as_nanos(), 0);
    took / RTT.as_nanos()
}

#[test]
fn an_empty_path_takes_the_round_trips_of_lookup_handshake_and_windows() {
    // Lookup, handshake, request.
    assert_eq!(round_trips("bytes 1kB pages 1"), 3);
    assert_eq!(round_trips("bytes 1kB pages 1 lookup false"), 2);
    // Three objects of 13 segments at once: a window of ten, then three.
    assert_eq!(round_trips("bytes 56kB requests 3 pages 1"), 4);
    // The same one after another: once the window has grown, an object is a round trip.
    assert_eq!(round_trips("bytes 56kB requests 3 connections 1 pages 1"), 6);
    // 110 objects of 19 segments: 28 over the connection that has most, two windows for the first.
    assert_eq!(round_trips("bytes 3MB requests 110 pages 1"), 2 + 2 + 27);
}

#[test]
fn pages_follow_after_a_pause_until_there_have_been_enough_or_it_is_over() {
    let one = "bytes 56kB requests 3 pause 500ms";
    let mut three = page(&format!("{one} pages 3"), Time::NEVER);
    let (seen, packets) = carry(&mut three, at(60_000), |_| false);
    assert_eq!(seen.took, [RTT * 4; 3]);
    let begins = packets.iter().filter(|packet| matches!(packet.body, Body::Opaque { .. }));
    let begins: Vec<Time> =
        begins.filter(|p| p.direction == Direction::Reverse).map(|p| p.sent).collect();
    assert_eq!(begins, [at(0), at(580), at(1160)]);
    assert!(three.is_done());
    assert_eq!(three.sample(at(60_000)).bytes_sent, 3 * 56_000);
    let mut stopped = page(one, at(1000));
    assert_eq!(carry(&mut stopped, at(60_000), |_| false).0.took.len(), 2);
    assert!(stopped.is_done());
}

#[test]
fn a_lost_lookup_costs_five_seconds_and_a_lost_request_a_timeout() {
    let mut lost = false;
    let mut first = page("bytes 1kB pages 1", Time::NEVER);
    let (seen, _) = carry(&mut first, at(60_000), |packet| {
        !core::mem::replace(&mut lost, true) && matches!(packet.body, Body::Opaque { .. })
    });
    assert_eq!(seen.took, [Span::from_secs(5) + RTT * 3]);
    let mut lost = false;
    let mut second = page("bytes 1kB pages 1", Time::NEVER);
    let (seen, _) = carry(&mut second, at(60_000), |packet| {
        let is_request =
            matches!(packet.body, Body::Segment(_)) && packet.direction == Direction::Reverse;
        is_request && !core::mem::replace(&mut lost, true)
    });
    // The timeout is a round trip and the least variance, in steps of eight ticks; a probe of a lone segment would come later.
    assert_eq!(seen.took, [RTT * 3 + RTT + Span::from_millis(204)]);
}

#[test]
fn what_comes_for_a_page_that_is_loaded_is_ignored() {
    let mut loaded = page("bytes 56kB requests 3 pages 1", Time::NEVER);
    let (_, packets) = carry(&mut loaded, at(60_000), |_| false);
    let mut seen = Seen::default();
    for packet in &packets {
        loaded.on_packet(at(60_000), packet, &mut seen);
        if !matches!(packet.body, Body::Opaque { .. }) {
            assert!(loaded.poll_transmit(at(60_000), Direction::Forward).is_none());
            assert!(loaded.poll_transmit(at(60_000), Direction::Reverse).is_none());
        }
        loaded.owes_answer = false;
    }
    assert_eq!((seen.took.len(), seen.delivered), (0, 0));
}

proptest! {
    #[test]
    fn objects_are_the_whole_page_and_nearly_equal(bytes in 1u64..1_000_000, requests in 1u32..200) {
        let config = PageConfig { bytes, requests, ..page("bytes 1kB", Time::NEVER).config };
        let sizes: Vec<u64> = (0..requests).map(|number| config.object(config.more(number))).collect();
        prop_assert_eq!(sizes.iter().sum::<u64>(), bytes);
        prop_assert!(sizes.iter().max().unwrap() - sizes.iter().min().unwrap() <= 1);
    }

    #[test]
    fn whatever_is_lost_a_page_arrives_whole(losses in prop::collection::vec(any::<bool>(), 1..60)) {
        let mut losses = losses.into_iter();
        let mut page = page("bytes 200kB requests 7 connections 3 pages 2 pause 0s", Time::NEVER);
        let (seen, _) = carry(&mut page, at(10_000_000), |_| losses.next().unwrap_or(false));
        prop_assert_eq!(seen.took.len(), 2);
        prop_assert_eq!(seen.delivered, 400_000);
        prop_assert!(page.connections().next().is_none());
    }
}
