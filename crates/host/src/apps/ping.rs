//! ICMP echo requests at a steady pace, and the answers.

use sojourn_core::{Body, Direction, Packet, Span, Time};

use crate::tcp::Endpoints;

/// As `ping -i INTERVAL -s SIZE` would be told.
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

/// The asking end; the answering end is [`Ping::answer`].
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

    pub fn poll_transmit(&mut self, now: Time) -> Option<Packet> {
        if now < self.next || self.next >= self.stop {
            return None;
        }
        let number = self.number;
        self.number += 1;
        self.next += self.config.interval;
        Some(self.ends.packet(now, self.config.ip_len, Body::Echo { number, asked: now }))
    }

    pub fn next_wake(&self) -> Time {
        if self.next >= self.stop { Time::NEVER } else { self.next }
    }

    /// The reply to `request`.
    pub fn answer(now: Time, request: &Packet) -> Packet {
        Packet {
            direction: Direction::Reverse,
            hop: 0,
            src: request.dst,
            dst: request.src,
            sent: now,
            ..*request
        }
    }
}
