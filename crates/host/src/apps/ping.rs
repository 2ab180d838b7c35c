//! ICMP echo requests at a steady pace, and the answers.

use sojourn_core::{Body, Direction, Event, Packet, Span, SpecError, Time, Who};

use crate::bounds::{LONGEST, within};
use crate::tcp::Endpoints;
use crate::{Around, Endpoint};

/// The options of `ping -i INTERVAL -s SIZE`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PingConfig {
    pub interval: Span,
    /// Bytes of the IP packet; 84 for ping's 56 bytes of payload.
    pub ip_len: u32,
}

impl Default for PingConfig {
    fn default() -> Self {
        Self { interval: Span::from_millis(100), ip_len: 84 }
    }
}

impl PingConfig {
    /// # Errors
    /// Requests so frequent that a run would not end, or a length that no IP packet has.
    pub fn check(&self) -> Result<(), SpecError> {
        within("interval", self.interval, Span::from_micros(1), LONGEST)?;
        within("ip_len", self.ip_len, 28, 65_535)
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
        Some(self.ends.packet(now, self.config.ip_len, Body::Echo { number, asked: now }))
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
