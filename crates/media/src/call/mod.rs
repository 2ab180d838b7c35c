//! A call: video from a source to a viewer, and what the viewer's end reports back.
//!
//! The sending end (`sender`) captures, packetises, paces and repairs; the receiving end
//! (`receiver`) puts frames together, asks for what is missing, reports, decodes and shows.

mod receiver;
mod sender;
#[cfg(test)]
mod tests;

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;

use sojourn_core::param::{Maybe, Style, Switch, number, rate, size, time};
use sojourn_core::{Bytes, Param, Params, Rate, Span, SpecError};
use sojourn_host::{AppModel, Endpoint, FlowSetup};

use self::receiver::Receiver;
use self::sender::Sender;
use crate::control::{self, FeedbackKind};
use crate::source;

const SLOWEST: Rate = Rate::from_bps(1000);
const FASTEST: Rate = Rate::from_bps(100_000_000_000);
const LONG: Span = Span::from_secs(100);

sojourn_core::params! {
    /// A call as users write it.
    pub struct CallSpec: "call", "a video call: frames over RTP with feedback, repair, a rate controller and a playout" {
        pub source: String = Param::of::<String>("source", "statistical", "what makes the frames, with its parameters")
            .such_as(&["statistical", "game cut_every=10s"]);
        pub control: String = Param::of::<String>("control", "gcc", "rate controller, with its parameters")
            .such_as(&["gcc", "fixed rate=2mbit"]);
        pub fps: f64 = "30", number(0.1, 1000.0), "frames a second";
        pub start_rate: Option<Rate> as Maybe<Rate> = "", rate(SLOWEST, FASTEST), "rate to begin with, headers included; without it the controller's own";
        pub min_rate: Rate = "30kbit", rate(SLOWEST, FASTEST), "least rate of the encoder, payload a second";
        pub max_rate: Rate = "2500kbit", rate(SLOWEST, FASTEST), "largest rate of the encoder, payload a second";
        pub packet: Bytes = "1200B", size(200, 9000), "largest RTP packet, its header included";
        pub extensions: Bytes = "16B", size(0, 100), "RTP header extensions and payload descriptor of a packet";
        pub nack: bool as Switch = "on", "the receiver asks for lost packets, and the sender sends them again";
        pub nack_rtt: Span = "100ms", time(Span::from_millis(1), LONG), "time after which the receiver asks again";
        pub feedback_interval: Span = "62500us", time(Span::from_millis(1), LONG), "time between reports on packets; Chromium's are 50 ms, rounded up to its clock of 1/64 s";
        pub pacer_burst: Span = "40ms", time(Span::ZERO, LONG), "what may leave at once, as time at the pacing rate";
        pub pacer_limit: Span = "2s", time(Span::from_millis(1), LONG), "packets leave faster if they would wait longer";
        pub decoding: Span = "5ms", time(Span::ZERO, LONG), "how long a frame takes to decode";
        pub showing: Span = "10ms", time(Span::ZERO, LONG), "how long a decoded frame takes to be shown";
        pub playout_delay: Span = "0ms", time(Span::ZERO, LONG), "least time from a frame's usual arrival until it is shown";
        pub frame_wait: Span = "3s", time(Span::from_millis(1), LONG), "without a frame for so long, the receiver asks for a key frame";
        pub key_wait: Span = "200ms", time(Span::from_millis(1), LONG), "the same while it waits for one";
    }
}

/// A checked call.
#[derive(Clone, Debug, PartialEq)]
pub struct CallConfig {
    spec: CallSpec,
    source: source::Config,
    control: control::Config,
}

impl CallConfig {
    /// `source` and `control` are what the texts of `spec` say.
    ///
    /// # Errors
    /// Rates out of order, a packet without room for payload, feedback that a call does not carry.
    pub fn new(
        spec: CallSpec,
        source: source::Config,
        control: control::Config,
    ) -> Result<Self, SpecError> {
        let CallSpec { min_rate, max_rate, .. } = spec;
        if max_rate < min_rate {
            let problem = SpecError::new(format!("{max_rate} is less than min_rate, {min_rate}"));
            return Err(problem.allow([format!("{min_rate} or more")]).about("max_rate"));
        }
        if spec.start_rate.is_some_and(|start| start < min_rate) {
            let problem = SpecError::new(format!("is less than min_rate, {min_rate}"));
            return Err(problem.allow([format!("{min_rate} or more")]).about("start_rate"));
        }
        if control.feedback() != FeedbackKind::Twcc {
            let name = control.name();
            let problem = SpecError::new(format!("'{name}' needs other feedback than a call has"));
            return Err(problem
                .allow(["one that works with transport-wide feedback"])
                .about("control"));
        }
        if source.is_audio() {
            let problem = SpecError::new(format!("'{}' is no video", source.name()));
            return Err(problem.allow(["a source of video"]).about("source"));
        }
        // Two texts that mean the same are the same call.
        let spec = CallSpec { source: source.canonical(), control: control.canonical(), ..spec };
        Ok(Self { spec, source, control })
    }
}

impl AppModel for CallConfig {
    fn build(&self, flow: &FlowSetup<'_>) -> [Box<dyn Endpoint>; 2] {
        [Box::new(Sender::new(self, flow)), Box::new(Receiver::new(&self.spec, flow))]
    }

    fn canonical(&self) -> String {
        self.spec.written(Style::Canonical)
    }
}
