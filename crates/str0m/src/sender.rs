//! The end that sends video: frames whose sizes follow str0m's estimate.

use sojourn_core::{
    Event as Observed, FrameEvent, FrameStage, Packet, Rate, RateControl, Span, Stream, Time, Who,
};
use sojourn_host::{Around, Endpoint, Endpoints, FlowSetup};
use str0m::Event;
use str0m::bwe::BweKind;
use str0m::media::{Frequency, MediaTime};

use crate::Str0m;
use crate::peer::Peer;

/// What a frame says of itself: a byte that VP8's descriptor reads, its number, and when it was captured.
pub(crate) const LABEL: usize = 13;
/// The first byte of a VP8 frame: its lowest bit says that it needs another frame.
const KEY: u8 = 0x10;
const DELTA: u8 = 0x11;

pub(crate) struct Sender {
    peer: Peer,
    ends: Endpoints,
    spec: Str0m,
    random: Stream,
    is_connected: bool,
    estimate: Rate,
    wants_key: bool,
    /// When the next frame is captured.
    next: Time,
    start: Time,
    stop: Time,
    frames: u32,
}

impl Sender {
    pub(crate) fn new(spec: &Str0m, flow: &FlowSetup<'_>, peer: Peer, random: Stream) -> Self {
        Self {
            peer,
            ends: flow.ends,
            spec: spec.clone(),
            random,
            is_connected: false,
            estimate: spec.start_rate,
            wants_key: true,
            next: flow.start,
            start: flow.start,
            stop: flow.stop,
            frames: 0,
        }
    }

    fn take(&mut self, now: Time, events: Vec<Event>, around: &mut Around<'_>) {
        for event in events {
            match event {
                Event::Connected => {
                    self.is_connected = true;
                    self.next = self.next.max(now);
                    self.tell_rate(now, around);
                }
                Event::EgressBitrateEstimate(BweKind::Twcc { estimate, .. }) => {
                    self.estimate = Rate::from_bps(estimate.as_u64());
                    self.tell_rate(now, around);
                }
                Event::KeyframeRequest(_) => self.wants_key = true,
                _ => {}
            }
        }
    }

    fn tell_rate(&self, now: Time, around: &mut Around<'_>) {
        let target = self.encoder_rate();
        let delay_based = Some(self.estimate.as_bps() as f64);
        let control = RateControl { target, delay_based, ..RateControl::default() };
        around.observer.record(now, Who::Flow(self.ends.flow), &Observed::RateControl(&control));
    }

    /// Payload a second.
    fn encoder_rate(&self) -> Rate {
        let wanted = self.estimate.as_bps() as f64 * self.spec.share;
        Rate::from_bps(wanted as u64).min(self.spec.max_rate)
    }

    fn capture(&mut self, now: Time, around: &mut Around<'_>) {
        let mean = self.encoder_rate().as_bps() as f64 / 8.0 / self.spec.fps;
        let is_key = core::mem::take(&mut self.wants_key);
        let spread = self.random.uniform(1.0 - self.spec.spread, 1.0 + self.spec.spread);
        let size = mean * spread * if is_key { self.spec.key } else { 1.0 };
        let mut frame = vec![0; (size as usize).max(LABEL)];
        frame[0] = if is_key { KEY } else { DELTA };
        frame[1..5].copy_from_slice(&self.frames.to_be_bytes());
        frame[5..LABEL].copy_from_slice(&now.as_nanos().to_be_bytes());
        self.frames += 1;
        let event = FrameEvent {
            stage: FrameStage::Encoded,
            captured: now,
            bytes: frame.len() as u32,
            is_key,
            buffered: Span::ZERO,
        };
        around.observer.record(now, Who::Flow(self.ends.flow), &Observed::Frame(&event));
        let ticks = now.since(self.start).as_nanos() / 100_000 * 9;
        let time = MediaTime::new(ticks, Frequency::NINETY_KHZ);
        let at = self.peer.clock.at(now);
        let Some(writer) = self.peer.rtc.writer(self.peer.mid) else { return };
        let Some(pt) = writer.payload_params().next().map(|params| params.pt()) else { return };
        let result = writer.write(pt, at, time, frame);
        self.peer.note(result);
        let events = self.peer.settle(now);
        self.take(now, events, around);
    }
}

impl Endpoint for Sender {
    fn on_packet(&mut self, now: Time, packet: &Packet, around: &mut Around<'_>) {
        let events = self.peer.on_packet(now, packet, around);
        self.take(now, events, around);
    }

    fn on_wake(&mut self, now: Time, around: &mut Around<'_>) {
        if now < self.start {
            return;
        }
        let events = self.peer.on_wake(now);
        self.take(now, events, around);
        while self.is_connected && self.next <= now && now < self.stop {
            self.next += Span::from_secs_f64(1.0 / self.spec.fps);
            self.capture(now, around);
        }
    }

    fn poll_transmit(&mut self, now: Time, around: &mut Around<'_>) -> Option<Packet> {
        let ends = self.ends;
        self.peer.poll_transmit(now, around, |now, length, body| ends.packet(now, length, body))
    }

    fn next_wake(&self) -> Time {
        let frame =
            if self.is_connected && self.next < self.stop { self.next } else { Time::NEVER };
        self.peer.next_wake().min(frame).max(self.start)
    }

    fn check(&self) -> Result<(), String> {
        self.peer.check(&self.ends)
    }
}
