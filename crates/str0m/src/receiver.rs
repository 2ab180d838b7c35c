//! The end that receives video. It shows a frame as soon as str0m hands it over whole: there is no playout
//! buffer, as in the measured calls.

use sojourn_core::{Event as Observed, FrameEvent, FrameStage, Packet, Span, Time, Who};
use sojourn_host::{Around, Endpoint, Endpoints, FlowSetup};
use str0m::Event;
use str0m::media::{KeyframeRequestKind, MediaData};

use crate::peer::Peer;
use crate::sender::LABEL;

/// Least time between two requests for a key frame.
const ASK_AGAIN: Span = Span::from_millis(500);

pub(crate) struct Receiver {
    peer: Peer,
    ends: Endpoints,
    /// A gap was seen, so nothing can be decoded until a key frame comes.
    needs_key: bool,
    asked: Option<Time>,
}

impl Receiver {
    pub(crate) fn new(flow: &FlowSetup<'_>, peer: Peer) -> Self {
        Self { peer, ends: flow.ends, needs_key: true, asked: None }
    }

    fn take(&mut self, now: Time, events: Vec<Event>, around: &mut Around<'_>) {
        for event in events {
            if let Event::MediaData(data) = event {
                self.on_frame(now, &data, around);
            }
        }
    }

    fn on_frame(&mut self, now: Time, data: &MediaData, around: &mut Around<'_>) {
        let Some(captured) = captured(&data.data) else { return };
        let is_key = data.is_keyframe();
        self.needs_key = (self.needs_key || !data.contiguous) && !is_key;
        let first = self.peer.clock.at(now).saturating_duration_since(data.network_time);
        let mut tell = |stage| {
            let event = FrameEvent {
                stage,
                captured,
                bytes: data.data.len() as u32,
                is_key,
                buffered: Span::from_nanos(first.as_nanos() as u64),
            };
            around.observer.record(now, Who::Flow(self.ends.flow), &Observed::Frame(&event));
        };
        tell(FrameStage::Received);
        if !self.needs_key {
            tell(FrameStage::Decoded);
            tell(FrameStage::Rendered);
            return;
        }
        tell(FrameStage::Dropped);
        if self.asked.is_none_or(|asked| now.since(asked) >= ASK_AGAIN) {
            self.asked = Some(now);
            around.observer.record(now, Who::Flow(self.ends.flow), &Observed::KeyRequest);
            let kind = KeyframeRequestKind::Pli;
            let mid = self.peer.mid;
            if let Some(mut writer) = self.peer.rtc.writer(mid)
                && writer.is_request_keyframe_possible(kind)
            {
                let result = writer.request_keyframe(None, kind);
                self.peer.note(result);
            }
            let events = self.peer.settle(now);
            self.take(now, events, around);
        }
    }
}

/// When the frame was captured, as it says itself.
fn captured(frame: &[u8]) -> Option<Time> {
    let bytes = frame.get(5..LABEL)?.try_into().ok()?;
    Some(Time::from_nanos(u64::from_be_bytes(bytes)))
}

impl Endpoint for Receiver {
    fn on_packet(&mut self, now: Time, packet: &Packet, around: &mut Around<'_>) {
        let events = self.peer.on_packet(now, packet, around);
        self.take(now, events, around);
    }

    fn on_wake(&mut self, now: Time, around: &mut Around<'_>) {
        let events = self.peer.on_wake(now);
        self.take(now, events, around);
    }

    fn poll_transmit(&mut self, now: Time, around: &mut Around<'_>) -> Option<Packet> {
        let ends = self.ends;
        self.peer.poll_transmit(now, around, |now, length, body| ends.answer(now, length, body))
    }

    fn next_wake(&self) -> Time {
        self.peer.next_wake()
    }

    fn check(&self) -> Result<(), String> {
        self.peer.check(&self.ends)
    }
}
