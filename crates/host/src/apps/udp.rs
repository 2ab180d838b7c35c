//! Datagrams at a constant rate: frames a second, each of one or more datagrams sent together.

use sojourn_core::{Body, Event, Packet, Queued, Span, SpecError, Time, Who};

use crate::bounds::{LONGEST, within};
use crate::tcp::Endpoints;
use crate::{Around, Endpoint};

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

impl UdpConfig {
    /// # Errors
    /// Frames so frequent that a run would not end, or that can't be cut into that many datagrams.
    pub fn check(&self) -> Result<(), SpecError> {
        within("interval", self.interval, Span::from_nanos(10), LONGEST)?;
        within("header", self.header, 20, 200)?;
        within("frame", self.frame, 1, 60_000_000)?;
        // Every datagram has at least one byte and fits an IP packet.
        within("datagrams", self.datagrams, self.frame.div_ceil(65_535 - self.header), self.frame)
    }
}

/// The sending end.
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
}

impl Endpoint for Udp {
    fn on_packet(&mut self, _: Time, _: &Packet, _: &mut Around<'_>) {}

    fn on_wake(&mut self, _: Time, _: &mut Around<'_>) {}

    fn poll_transmit(&mut self, now: Time, _: &mut Around<'_>) -> Option<Packet> {
        if now < self.next || self.next >= self.stop {
            return None;
        }
        let UdpConfig { interval, frame, datagrams, header } = self.config;
        // The first datagrams take one byte each of the remainder.
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

    fn next_wake(&self) -> Time {
        if self.next >= self.stop { Time::NEVER } else { self.next }
    }
}

/// The receiving end, which accepts every datagram.
#[derive(Clone, Debug)]
pub struct UdpSink {
    header: u32,
}

impl UdpSink {
    pub fn new(config: UdpConfig) -> Self {
        Self { header: config.header }
    }
}

impl Endpoint for UdpSink {
    fn on_packet(&mut self, now: Time, packet: &Packet, around: &mut Around<'_>) {
        let bytes = u64::from(packet.ip_len().saturating_sub(self.header));
        around.observer.record(now, Who::Flow(packet.flow), &Event::Delivered { bytes });
    }

    fn on_wake(&mut self, _: Time, _: &mut Around<'_>) {}

    fn poll_transmit(&mut self, _: Time, _: &mut Around<'_>) -> Option<Packet> {
        None
    }

    fn next_wake(&self) -> Time {
        Time::NEVER
    }
}
