//! A real WebRTC endpoint in virtual time: both ends of a call are str0m (sans I/O), and what it would
//! send over a socket crosses the simulated path byte by byte: ICE, DTLS, SRTP, RTCP.
//!
//! It holds the model of a call (`app = "call"`, `control = "gcc"`) against real code in the same world. It is
//! outside the determinism wall: keys are random, so two runs of one seed need not be equal to the last packet.

mod peer;
mod receiver;
mod sender;

use std::time::Instant;

use sojourn::Registry;
use sojourn_core::param::{Style, number, rate};
use sojourn_core::{Params, Purpose, Rate, SpecError};
use sojourn_host::{AppModel, Endpoint, FlowSetup};

use crate::peer::Clock;
use crate::receiver::Receiver;
use crate::sender::Sender;

/// What the command knows, and this application.
///
/// # Errors
/// The name is taken.
pub fn registry() -> Result<Registry, SpecError> {
    let mut registry = Registry::default();
    registry.add_application::<Str0m>()?;
    Ok(registry)
}

const SLOWEST: Rate = Rate::from_bps(1_000);
const FASTEST: Rate = Rate::from_bps(1_000_000_000);

sojourn_core::params! {
    /// Its parameters, with defaults and what they do.
    pub struct Str0m: "str0m", "A video call between two real endpoints, str0m 0.24.1" {
        fps: f64 = "30", number(1.0, 240.0), "frames a second";
        max_rate: Rate = "2500kbit", rate(SLOWEST, FASTEST), "what the application would send at most, payload a second";
        start_rate: Rate = "300kbit", rate(SLOWEST, FASTEST), "the estimate to begin with";
        share: f64 = "0.95", number(0.05, 1.0), "part of the last estimate that the encoder takes";
        spread: f64 = "0.1", number(0.0, 0.9), "how far frames are from their mean size, at most";
        key: f64 = "3", number(1.0, 50.0), "size of a key frame, in frames of mean size";
    }
}

impl AppModel for Str0m {
    fn check(&self) -> Result<(), SpecError> {
        Params::check(self)
    }

    fn build(&self, flow: &FlowSetup<'_>) -> [Box<dyn Endpoint>; 2] {
        // The only look at the real clock: str0m counts time from it, and is told simulated time.
        let clock = Clock(Instant::now());
        let random = flow.address.stream_named(flow.name, Purpose::Application);
        let (sender, receiver) = peer::pair(clock, self);
        [Box::new(Sender::new(self, flow, sender, random)), Box::new(Receiver::new(flow, receiver))]
    }

    fn canonical(&self) -> String {
        self.written(Style::Canonical)
    }

    fn carries_bytes(&self) -> bool {
        true
    }
}
