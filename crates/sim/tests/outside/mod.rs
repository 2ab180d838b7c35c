//! Parts as a crate outside the workspace would write them: an application whose ends carry real bytes,
//! and a carrier.

use std::sync::Arc;

use sojourn_core::{
    Body, ContentId, Event, Packet, PortId, Span, SpecError, StreamAddress, Time, Who,
};
use sojourn_host::{AppModel, Around, Endpoint, Endpoints, ExternalApp, FlowSetup};
use sojourn_scenario::{App, CarrierConfig, Link};
use sojourn_wire::{Carrier, CarrierModel, Exit, ExternalCarrier, PortShape, Wire};

/// One end asks for the square of a number every so often, the other answers.
pub(crate) fn ask(pause: Span) -> App {
    App::External(ExternalApp(Arc::new(Ask { pause })))
}

/// A carrier with one port, which does what `link` says.
pub(crate) fn tube(link: Link) -> CarrierConfig {
    CarrierConfig::External(ExternalCarrier(Arc::new(Tube(link))))
}

struct Ask {
    pause: Span,
}

impl AppModel for Ask {
    fn check(&self) -> Result<(), SpecError> {
        if self.pause.is_zero() {
            return Err(SpecError::new("'pause' is 0s").allow(["1us to 60s"]));
        }
        Ok(())
    }

    fn build(&self, flow: &FlowSetup<'_>) -> [Box<dyn Endpoint>; 2] {
        let FlowSetup { ends, start, stop, .. } = *flow;
        let asking =
            Asking { pause: self.pause, ends, next: start, stop, asked: Vec::new(), wrong: None };
        [Box::new(asking), Box::new(Answering { ends, answers: Vec::new() })]
    }

    fn canonical(&self) -> String {
        format!("ask pause={}", self.pause)
    }
}

const LENGTH: u32 = 28 + 8;

struct Asking {
    pause: Span,
    ends: Endpoints,
    next: Time,
    stop: Time,
    /// When each question left.
    asked: Vec<Time>,
    wrong: Option<String>,
}

impl Endpoint for Asking {
    fn on_packet(&mut self, now: Time, packet: &Packet, around: &mut Around<'_>) {
        let Some((number, square)) = number_in(packet, around) else { return };
        if square != u64::from(number) * u64::from(number) {
            self.wrong = Some(format!("the square of {number} is not {square}"));
        }
        let rtt = now.since(self.asked[number as usize]);
        around.observer.record(now, Who::Flow(self.ends.flow), &Event::Ping { rtt });
    }

    fn on_wake(&mut self, _: Time, _: &mut Around<'_>) {}

    fn poll_transmit(&mut self, now: Time, around: &mut Around<'_>) -> Option<Packet> {
        if now < self.next || now >= self.stop {
            return None;
        }
        let number = self.asked.len() as u32;
        self.asked.push(now);
        self.next = now + self.pause;
        let content = bytes_of(number.into(), around);
        Some(self.ends.packet(now, LENGTH, Body::Opaque { number, content }))
    }

    fn next_wake(&self) -> Time {
        if self.next < self.stop { self.next } else { Time::NEVER }
    }

    fn check(&self) -> Result<(), String> {
        self.wrong.clone().map_or(Ok(()), Err)
    }
}

struct Answering {
    ends: Endpoints,
    /// Those that have not left.
    answers: Vec<u32>,
}

impl Endpoint for Answering {
    fn on_packet(&mut self, _: Time, packet: &Packet, around: &mut Around<'_>) {
        self.answers.extend(number_in(packet, around).map(|(number, _)| number));
    }

    fn on_wake(&mut self, _: Time, _: &mut Around<'_>) {}

    fn poll_transmit(&mut self, now: Time, around: &mut Around<'_>) -> Option<Packet> {
        let number = self.answers.pop()?;
        let content = bytes_of(u64::from(number) * u64::from(number), around);
        Some(self.ends.answer(now, LENGTH, Body::Opaque { number, content }))
    }

    fn next_wake(&self) -> Time {
        Time::NEVER
    }
}

fn number_in(packet: &Packet, around: &Around<'_>) -> Option<(u32, u64)> {
    let Body::Opaque { number, content } = packet.body else { return None };
    let bytes = around.contents.bytes(content).try_into().ok()?;
    Some((number, u64::from_be_bytes(bytes)))
}

fn bytes_of(number: u64, around: &mut Around<'_>) -> ContentId {
    around.contents.put(number.to_be_bytes().into(), 1)
}

struct Tube(Link);

impl CarrierModel for Tube {
    fn check(&self) -> Result<(), SpecError> {
        self.0.check()
    }

    fn ports(&self) -> Vec<PortShape> {
        vec![PortShape::of(&self.0)]
    }

    fn build(&self, first: PortId, address: StreamAddress) -> Box<dyn Carrier<Packet>> {
        Box::new(Wire::new(&self.0, first, Exit::Onward, address))
    }

    fn canonical(&self) -> String {
        format!("tube {:?}", self.0)
    }
}
