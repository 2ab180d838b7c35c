//! ICMP echo requests at a steady pace, and the answers.

use core::fmt;

use sojourn_core::param::{Octets, size, time};
use sojourn_core::{Body, Direction, Event, Packet, Span, Time, Who};

use crate::bounds::LONGEST;
use crate::tcp::Endpoints;
use crate::{Around, Endpoint};

sojourn_core::params! {
    /// As `ping -i INTERVAL -s SIZE` would be told.
    pub struct PingConfig: "ping", "ICMP echo requests at a steady pace" {
        pub interval: Span = "100ms", time(Span::from_micros(1), LONGEST), "time between requests";
        pub size: u64 as Octets = "56B", size(0, 65_535 - HEADERS), "payload as `ping -s` counts it";
    }
}

/// Bytes of IPv4 and ICMP headers.
const HEADERS: u64 = 28;

impl PingConfig {
    /// Bytes of the IP packet.
    fn ip_len(&self) -> u32 {
        (self.size + HEADERS) as u32
    }
}

/// As it names a run.
impl fmt::Display for PingConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ping interval={} ip_len={}", self.interval, self.ip_len())
    }
}

/// The asking end.
#[derive(Clone, Debug)]
pub struct Ping {
    config: PingConfig,
    ends: Endpoints,
    next: Time,
    stop: Time,
    number: u32,
}

impl Ping {
    pub fn new(config: PingConfig, ends: Endpoints, start: Time, stop: Time) -> Self {
        Self { config, ends, next: start, stop, number: 0 }
    }
}

impl Endpoint for Ping {
    fn on_packet(&mut self, now: Time, packet: &Packet, around: &mut Around<'_>) {
        if let Body::Echo { asked, .. } = packet.body {
            let rtt = now.since(asked);
            around.observer.record(now, Who::Flow(packet.flow), &Event::Ping { rtt });
        }
    }

    fn on_wake(&mut self, _: Time, _: &mut Around<'_>) {}

    fn poll_transmit(&mut self, now: Time, _: &mut Around<'_>) -> Option<Packet> {
        if now < self.next || self.next >= self.stop {
            return None;
        }
        let number = self.number;
        self.number += 1;
        self.next += self.config.interval;
        Some(self.ends.packet(now, self.config.ip_len(), Body::Echo { number, asked: now }))
    }

    fn next_wake(&self) -> Time {
        if self.next >= self.stop { Time::NEVER } else { self.next }
    }
}

/// The answering end.
#[derive(Clone, Debug, Default)]
pub struct Echo {
    reply: Option<Packet>,
}

impl Endpoint for Echo {
    fn on_packet(&mut self, now: Time, request: &Packet, _: &mut Around<'_>) {
        self.reply = Some(Packet {
            direction: Direction::Reverse,
            hop: 0,
            src: request.dst,
            dst: request.src,
            sent: now,
            ..*request
        });
    }

    fn on_wake(&mut self, _: Time, _: &mut Around<'_>) {}

    fn poll_transmit(&mut self, _: Time, _: &mut Around<'_>) -> Option<Packet> {
        self.reply.take()
    }

    fn next_wake(&self) -> Time {
        Time::NEVER
    }
}
