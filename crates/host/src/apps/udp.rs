//! Datagrams at a constant rate: frames a second, each of one or more datagrams sent together.

use alloc::format;
use core::fmt;

use sojourn_core::param::{self, Maybe, Needed, Octets, number, size, whole};
use sojourn_core::{Body, Event, Packet, Queued, Rate, Span, SpecError, Time, Who};

use crate::bounds::{LONGEST, within};
use crate::tcp::Endpoints;
use crate::{Around, Endpoint};

sojourn_core::params! {
    /// Datagrams at a constant rate, as users write them.
    pub struct UdpSpec: "udp", "datagrams at a constant rate" {
        pub size: u64 as Octets = "1448B", size(1, LARGEST), "payload of a datagram";
        pub rate: Rate as Needed<Rate> = "", param::rate(Rate::from_bps(1), Rate::from_bps(100_000_000_000_000)),
            "payload a second";
    }
}

sojourn_core::params! {
    /// Frames, as users write them.
    pub struct FramesSpec: "frames", "groups of datagrams at a steady pace, as a video sender makes" {
        pub size: u64 as Needed<Octets> = "", size(1, LARGEST_FRAME), "payload of a frame";
        pub frames_per_second: f64 as Needed<f64> = "", number(0.001, 1e6), "frames a second";
        pub datagrams: Option<u32> as Maybe<u32> = "", whole(1, 60_000_000),
            "datagrams that a frame is cut into; without it as few as fit 1448 B each";
    }
}

/// What fits beside the headers of a TCP segment.
const USUAL: u64 = 1448;
/// Bytes of IPv4 and UDP headers.
const HEADERS: u32 = 28;
/// What fits an IP packet.
const LARGEST: u64 = 65_535 - HEADERS as u64;
const LARGEST_FRAME: u64 = 60_000_000;
/// Shorter times between datagrams would hardly let a run end.
const SHORTEST: Span = Span::from_nanos(10);

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
        within("interval", self.interval, SHORTEST, LONGEST)?;
        within("header", self.header, 20, 200)?;
        within("frame", self.frame, 1, LARGEST_FRAME as u32)?;
        // Every datagram has a byte at least, and fits an IP packet.
        within("datagrams", self.datagrams, self.frame.div_ceil(65_535 - self.header), self.frame)
    }
}

impl TryFrom<UdpSpec> for UdpConfig {
    type Error = SpecError;

    fn try_from(spec: UdpSpec) -> Result<Self, SpecError> {
        let interval = spec.rate.time_for(spec.size);
        if interval < SHORTEST {
            let problem = SpecError::new(format!("{} is out of range", spec.rate));
            let problem = problem.allow(["more than 0, at most a datagram in 10ns"]);
            return Err(problem.about("rate"));
        }
        Ok(Self { interval, frame: spec.size as u32, datagrams: 1, header: HEADERS })
    }
}

impl TryFrom<FramesSpec> for UdpConfig {
    type Error = SpecError;

    fn try_from(spec: FramesSpec) -> Result<Self, SpecError> {
        let FramesSpec { size, frames_per_second, datagrams } = spec;
        let datagrams = datagrams.map_or_else(|| size.div_ceil(USUAL), u64::from);
        // Every datagram has a byte at least, and fits an IP packet.
        if datagrams > size || size.div_ceil(datagrams) > LARGEST {
            let problem =
                format!("a frame of {size} bytes cannot be cut into {datagrams} datagrams");
            let allowed = format!("{} to {size}", size.div_ceil(LARGEST));
            return Err(SpecError::new(problem).allow([allowed]).about("datagrams"));
        }
        Ok(Self {
            interval: Span::from_secs_f64(1.0 / frames_per_second),
            frame: size as u32,
            datagrams: datagrams as u32,
            header: HEADERS,
        })
    }
}

/// As it names a run.
impl fmt::Display for UdpConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { interval, frame, datagrams, header } = self;
        write!(f, "udp interval={interval} frame={frame} datagrams={datagrams} header={header}")
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

    /// The next datagram that is due.
    #[inline]
    pub fn send(&mut self, now: Time) -> Option<Packet> {
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

    /// When the next datagram is due; never after the last.
    #[inline]
    pub fn next_send(&self) -> Time {
        if self.next >= self.stop { Time::NEVER } else { self.next }
    }
}

impl Endpoint for Udp {
    fn on_packet(&mut self, _: Time, _: &Packet, _: &mut Around<'_>) {}

    fn on_wake(&mut self, _: Time, _: &mut Around<'_>) {}

    fn poll_transmit(&mut self, now: Time, _: &mut Around<'_>) -> Option<Packet> {
        self.send(now)
    }

    fn next_wake(&self) -> Time {
        self.next_send()
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
