//! Datagrams at a constant rate: frames a second, each of one or more datagrams sent together.

use sojourn_core::{Body, Packet, Queued, Span, Time};

use crate::tcp::Endpoints;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UdpConfig {
    /// Time between frames.
    pub interval: Span,
    /// Payload bytes of one frame.
    pub frame: u32,
    /// Datagrams that a frame is cut into, of nearly equal size.
    pub datagrams: u32,
    /// IP and UDP header bytes of a datagram.
    pub header: u32,
}

#[derive(Clone, Debug)]
pub struct Udp {
    config: UdpConfig,
    ends: Endpoints,
    next: Time,
    stop: Time,
    frame: u32,
    /// Next datagram of the frame being sent.
    part: u32,
    number: u32,
}

impl Udp {
    pub fn new(config: UdpConfig, ends: Endpoints, start: Time, stop: Time) -> Self {
        Self { config, ends, next: start, stop, frame: 0, part: 0, number: 0 }
    }

    pub fn poll_transmit(&mut self, now: Time) -> Option<Packet> {
        if now < self.next || self.next >= self.stop {
            return None;
        }
        let UdpConfig { interval, frame, datagrams, header } = self.config;
        // The first datagrams take the remainder, a byte each.
        let payload = frame / datagrams + u32::from(self.part < frame % datagrams);
        let body = Body::Datagram {
            number: self.number,
            frame: self.frame,
            last: self.part + 1 == datagrams,
        };
        self.number += 1;
        self.part += 1;
        if self.part == datagrams {
            self.part = 0;
            self.frame += 1;
            self.next += interval;
        }
        Some(self.ends.packet(now, payload + header, body))
    }

    /// Bytes of application data in one of this stream's datagrams.
    pub fn payload(&self, datagram: &Packet) -> u64 {
        u64::from(datagram.ip_len().saturating_sub(self.config.header))
    }

    pub fn next_wake(&self) -> Time {
        if self.next >= self.stop { Time::NEVER } else { self.next }
    }
}
