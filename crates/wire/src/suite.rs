//! What every carrier must do. Built-in carriers and carriers from elsewhere are tested by the same
//! suite.

use alloc::boxed::Box;
use alloc::vec::Vec;

use sojourn_core::{
    Body, Direction, ETHERNET_HEADER, Ecn, Event, FlowId, HostId, NoObserver, Observer, Packet,
    PortId, Purpose, Queued, Rate, Span, Stream, StreamAddress, Time, Who,
};

use crate::Carrier;

/// Runs the whole suite on what `build` makes, whose ports are `ports`.
///
/// # Panics
/// The carrier does not do what it must; the message says what.
pub fn check(build: &dyn Fn() -> Box<dyn Carrier<Packet>>, ports: &[PortId]) {
    for seed in 0..20 {
        let plan = plan(ports, seed);
        let undisturbed = carry(&mut *build(), ports, &plan, None);
        assert!(!undisturbed.delivered.is_empty(), "nothing came out of {} offers", plan.len());
        let disturbed = carry(&mut *build(), ports, &plan, Some(random(seed + 1000)));
        assert_eq!(
            undisturbed.delivered, disturbed.delivered,
            "what was done early changed something"
        );
        keeps_order(&undisturbed.delivered, ports);
    }
}

/// Packets that wait at `port` leave it at exactly `rate`, and are at the far end `delay` later.
///
/// # Panics
/// It does not.
pub fn check_rate(carrier: &mut dyn Carrier<Packet>, port: PortId, rate: Rate, delay: Span) {
    const PACKETS: u32 = 5000;
    let mut now = Time::ZERO;
    let (mut offered, mut arrived) = (0, 0);
    let size = 1001 + ETHERNET_HEADER;
    while arrived < PACKETS {
        // Never so many that one is dropped, never so few that the queue is empty.
        while offered < PACKETS && offered - arrived < 20 {
            carrier.offer(now, port, packet(now, port, offered, size), &mut NoObserver);
            offered += 1;
        }
        now = carrier.next_wake();
        assert!(!now.is_never(), "{} packets inside, and no wake", offered - arrived);
        carrier.on_wake(now, &mut NoObserver);
        while carrier.poll_deliver(now).is_some() {
            arrived += 1;
        }
    }
    let bits = u128::from(PACKETS) * u128::from(size) * 8 * 1_000_000_000;
    let exact = Span::from_nanos((bits / u128::from(rate.as_bps())) as u64) + delay;
    let late = now.since(Time::ZERO + exact);
    assert!(late <= Span::from_nanos(1), "the last packet came {late} later than {exact}");
}

/// Time, port, number and size of a packet.
type Offer = (Time, PortId, u32, u32);

fn plan(ports: &[PortId], seed: u64) -> Vec<Offer> {
    let mut random = random(seed);
    let mut at = Time::ZERO;
    let gap = [1_000, 100_000, 2_000_000][seed as usize % 3];
    (0..400)
        .map(|number| {
            // Often offers several at one moment.
            if random.below(3) > 0 {
                at += Span::from_nanos(random.below(gap));
            }
            let port = ports[random.below(ports.len() as u64) as usize];
            (at, port, number, 60 + random.below(1454) as u32)
        })
        .collect()
}

#[derive(Default)]
struct Carried {
    delivered: Vec<(Time, PortId, u32)>,
}

/// Offers all of `plan`, takes what comes out, and checks the books at every step. With `random`
/// the carrier is woken at other times too, and some packets are taken out ahead of time.
fn carry(
    carrier: &mut dyn Carrier<Packet>,
    ports: &[PortId],
    plan: &[Offer],
    mut random: Option<Stream>,
) -> Carried {
    let mut carried = Carried::default();
    let mut seen = Seen::default();
    let (mut offers, mut now) = (plan.iter().peekable(), Time::ZERO);
    let mut arrived = 0;
    let mut offered = 0;
    loop {
        let wake = carrier.next_wake();
        assert!(wake >= now, "wants to be woken at {wake}, and it is {now}");
        let next = offers.peek().map_or(Time::NEVER, |offer| offer.0);
        if wake.is_never() && next.is_never() {
            break;
        }
        let until = wake.min(next);
        if let Some(random) = &mut random
            && now < until
            && random.below(2) == 0
        {
            let early = now + Span::from_nanos(random.below(until.since(now).as_nanos()));
            carrier.on_wake(early, &mut seen);
            assert!(carrier.poll_deliver(early).is_none(), "woken early, something came out");
        }
        now = until;
        if wake <= next {
            carrier.on_wake(now, &mut seen);
            let mut arrive = |at, port, packet: &Packet| {
                let Body::Datagram { number, .. } = packet.body else {
                    panic!("another packet came out than was offered: {packet:?}");
                };
                assert_eq!(packet.hop, 1, "a packet has not left its port, or twice");
                arrived += u64::from(packet.wire_len());
                carried.delivered.push((at, port, number));
            };
            while let Some((port, packet)) = carrier.poll_deliver(now) {
                arrive(now, port, &packet);
            }
            if let Some(random) = &mut random
                && random.below(2) == 0
            {
                let before = now + Span::from_nanos(random.below(5_000_000));
                carrier.deliver_ahead(before, &|_| true, &mut arrive);
            }
        } else if let Some((at, port, number, size)) = offers.next() {
            carrier.offer(*at, *port, packet(*at, *port, *number, *size), &mut seen);
            offered += u64::from(*size);
        }
        carrier.check(now).unwrap_or_else(|problem| panic!("at {now}: {problem}"));
        let mut left = 0;
        let mut dropped = 0;
        let mut offered_by_books = 0;
        for port in ports {
            let books = carrier.books(*port);
            assert!(books.balance(), "at {now}: {books:?}");
            left += books.sent - books.lost - books.under_way;
            dropped += books.dropped + books.lost;
            offered_by_books += books.offered;
        }
        assert_eq!((offered, arrived), (offered_by_books, left), "at {now}: bytes came or went");
        assert_eq!(dropped, seen.dropped, "at {now}: other drops were told of than counted");
    }
    for port in ports {
        let books = carrier.books(*port);
        assert_eq!((books.waiting, books.under_way), (0, 0), "asleep with packets inside");
        let sample = carrier.sample(now, *port);
        assert_eq!((sample.packets, sample.bytes), (0, 0), "a sample of an empty queue");
        assert_eq!(sample.sent_bytes, books.sent, "a sample counts other bytes than the books");
    }
    carried
}

fn keeps_order(delivered: &[(Time, PortId, u32)], ports: &[PortId]) {
    for port in ports {
        let numbers: Vec<u32> =
            delivered.iter().filter(|(_, at, _)| at == port).map(|(_, _, n)| *n).collect();
        assert!(numbers.is_sorted(), "packets of one flow overtook each other: {numbers:?}");
    }
}

/// Counts the reported events.
#[derive(Default)]
struct Seen {
    dropped: u64,
}

impl Observer for Seen {
    fn record(&mut self, _: Time, who: Who, event: &Event<'_>) {
        assert!(matches!(who, Who::Port(_)), "a carrier speaks of its ports only");
        if let Event::Dropped { packet, .. } = event {
            self.dropped += u64::from(packet.wire_len());
        }
    }
}

fn random(seed: u64) -> Stream {
    StreamAddress { seed, run: 0 }.stream(0, Purpose::Application)
}

/// A flow for each port.
pub(crate) fn packet(now: Time, port: PortId, number: u32, wire_len: u32) -> Packet {
    Packet {
        flow: FlowId(u32::from(port.0)),
        connection: 0,
        direction: Direction::Forward,
        ecn: Ecn::NotEct,
        dscp: 0,
        segments: 1,
        wire_len,
        hop: 0,
        src: HostId(0),
        dst: HostId(1),
        sent: now,
        body: Body::Datagram { number, frame: number, last: true },
    }
}
