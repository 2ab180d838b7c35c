//! An application, both ends of it: one asks by a number, the other answers with its square.
//!
//! The numbers are real bytes in the packets; an answer that is wrong stops the run.

use sojourn_core::param::Style;
use sojourn_core::{Body, ContentId, Event, Packet, Params, Span, SpecError, Time, Who};
use sojourn_host::{AppModel, Around, Endpoint, Endpoints, FlowSetup};

sojourn_core::params! {
    /// Its parameters, with defaults and what they do.
    pub struct Ask: "ask", "Asks for the square of a number, again and again" {
        pub pause: Span = "20ms", sojourn_core::param::time(Span::from_micros(1), Span::from_secs(60)), "time from a question to the next one";
    }
}

impl AppModel for Ask {
    fn check(&self) -> Result<(), SpecError> {
        Params::check(self)
    }

    fn build(&self, flow: &FlowSetup<'_>) -> [Box<dyn Endpoint>; 2] {
        let asking = Asking {
            pause: self.pause,
            ends: flow.ends,
            next: flow.start,
            stop: flow.stop,
            asked: Vec::new(),
            wrong: None,
        };
        [Box::new(asking), Box::new(Answering { ends: flow.ends, answers: Vec::new() })]
    }

    fn canonical(&self) -> String {
        self.written(Style::Canonical)
    }
}

/// Bytes of IPv4 and UDP headers, and a number.
const LENGTH: u32 = 28 + 8;

struct Asking {
    pause: Span,
    ends: Endpoints,
    /// When the next question leaves.
    next: Time,
    stop: Time,
    /// When each left.
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

/// Which question a packet belongs to, and the number that it carries.
fn number_in(packet: &Packet, around: &Around<'_>) -> Option<(u32, u64)> {
    let Body::Opaque { number, content } = packet.body else { return None };
    let bytes = around.contents.bytes(content).try_into().ok()?;
    Some((number, u64::from_be_bytes(bytes)))
}

fn bytes_of(number: u64, around: &mut Around<'_>) -> ContentId {
    around.contents.put(number.to_be_bytes().into(), 1)
}
