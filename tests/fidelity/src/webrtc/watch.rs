//! What is counted in a run, as it was counted at the measured bottleneck.

use sojourn_core::{Event, FrameStage, Observer, Packet, PortId, Rate, Span, Time, Who};

/// A packet of the bottleneck: which flow, when it came, how long it took, its bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Passed {
    pub(super) flow: usize,
    pub(super) came: f64,
    pub(super) left: f64,
    pub(super) wait_ms: f64,
    pub(super) bytes: f64,
}

/// Events of the bottleneck and of the first call's frames.
pub(super) struct Watch<'a> {
    /// From which second on it has how many kbit/s.
    rate: &'a [(f64, f64)],
    pub(super) passed: Vec<Passed>,
    /// Second and flow of each packet that was dropped.
    pub(super) dropped: Vec<(f64, usize)>,
    pub(super) decoded: Vec<Time>,
    /// Second, target and estimate by delay of the first call in kbit/s, after every change.
    pub(super) control: Vec<(f64, f64, f64)>,
}

impl<'a> Watch<'a> {
    pub(super) fn new(rate: &'a [(f64, f64)]) -> Self {
        Self {
            rate,
            passed: Vec::new(),
            dropped: Vec::new(),
            decoded: Vec::new(),
            control: Vec::new(),
        }
    }

    fn serialisation(&self, now: Time, packet: &Packet) -> Span {
        let at = now.as_secs_f64();
        let kbps = self.rate.iter().rev().find(|(from, _)| *from <= at).map_or(0.0, |r| r.1);
        Rate::from_bps((kbps * 1e3) as u64).time_for(packet.wire_len.into())
    }
}

fn is_first(who: Who) -> bool {
    matches!(who, Who::Flow(flow) if flow.index() == 0)
}

const BOTTLENECK: Who = Who::Port(PortId(0));

impl Observer for Watch<'_> {
    fn record(&mut self, now: Time, who: Who, event: &Event<'_>) {
        match event {
            Event::Dequeued { packet, sojourn } if who == BOTTLENECK => {
                let left = now + self.serialisation(now, packet);
                let came = now - *sojourn;
                self.passed.push(Passed {
                    flow: packet.flow.index(),
                    came: came.as_secs_f64(),
                    left: left.as_secs_f64(),
                    wait_ms: left.since(came).as_millis_f64(),
                    bytes: packet.wire_len.into(),
                });
            }
            Event::Dropped { packet, .. } if who == BOTTLENECK => {
                self.dropped.push((now.as_secs_f64(), packet.flow.index()));
            }
            Event::Frame(frame) if frame.stage == FrameStage::Decoded && is_first(who) => {
                self.decoded.push(now);
            }
            Event::RateControl(control) if is_first(who) => {
                let target = control.target.as_bps() as f64 / 1e3;
                let by_delay = control.delay_based.map_or(target, |bps| bps / 1e3);
                self.control.push((now.as_secs_f64(), target, by_delay));
            }
            _ => {}
        }
    }
}
