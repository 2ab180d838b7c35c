//! The congestion control of the Python library aiortc 1.16. The receiver estimates the rate (a Kalman filter over
//! delays, and a rate that rises and falls) and reports it with REMB; the sender's encoder follows within its limits.
//! There is no reaction to loss, no pacing and no probing.

mod aimd;
mod estimator;
mod filter;
#[cfg(test)]
mod tests;

use alloc::boxed::Box;

use sojourn_core::param::{number, rate, time};
use sojourn_core::{Rate, Span, SpecError, Time};

use self::estimator::RemoteEstimator;
use super::{
    Algorithm, Controller, Estimates, Estimator, FeedbackKind, Outputs, Setup, Stack, in_order,
};

const FASTEST: Rate = Rate::from_bps(1_000_000_000_000);
const SLOWEST: Rate = Rate::from_bps(1000);
const LONG: Span = Span::from_secs(1000);

sojourn_core::params! {
    /// The parameters of aiortc; the encoder's are those of H.264 (VP8: 250, 500, 1500 kbit/s).
    pub struct Config: "aiortc", "The Python library aiortc: an estimate of the receiver, no pacing, no reaction to loss" {
        pub(crate) start: Rate = "1mbit", rate(SLOWEST, FASTEST), "The encoder's rate before an estimate, payload a second";
        pub(crate) least: Rate = "500kbit", rate(SLOWEST, FASTEST), "The encoder's least rate";
        pub(crate) most: Rate = "3mbit", rate(SLOWEST, FASTEST), "The encoder's largest rate";
        pub(crate) follows: bool as sojourn_core::param::Switch = "on", "The encoder follows the estimates; off: it stays at its first rate";
        pub(crate) group: Span = "5ms", time(Span::ZERO, LONG), "Packets sent within this time of the first one are a group";
        pub(crate) slope: f64 = "0.015625", number(-10.0, 10.0), "First guess of the time that a byte takes, ms";
        pub(crate) slope_error: f64 = "100", number(0.0, 1000000.0), "Error of that guess";
        pub(crate) offset_error: f64 = "0.1", number(0.0, 1000000.0), "Error of the first offset, 0";
        pub(crate) slope_noise: f64 = "0.0000000000001", number(0.0, 1000.0), "How much the slope varies from group to group";
        pub(crate) offset_noise: f64 = "0.001", number(0.0, 1000.0), "How much the offset varies from group to group";
        pub(crate) noise: f64 = "50", number(1.0, 1000000.0), "First variance of what is measured, ms²";
        pub(crate) threshold: f64 = "12.5", number(6.0, 600.0), "Threshold of over-use at the start";
        pub(crate) k_up: f64 = "0.0087", number(0.0, 1.0), "How fast it follows a signal above it, per millisecond";
        pub(crate) k_down: f64 = "0.039", number(0.0, 1.0), "How fast it follows one below it";
        pub(crate) overuse_time: Span = "10ms", time(Span::ZERO, LONG), "A signal above it for longer is over-use";
        pub(crate) interval: Span = "500ms", time(Span::from_millis(1), LONG), "Time between estimates, without over-use";
        pub(crate) settling: Span = "3s", time(Span::ZERO, LONG), "Without over-use, the first estimate comes this long after the first throughput";
        pub(crate) beta: f64 = "0.85", number(0.1, 1.0), "Part of the throughput that remains after over-use";
        pub(crate) increase: f64 = "1.08", number(1.0, 10.0), "Factor by which the rate rises in a second";
        pub(crate) rtt: Span = "200ms", time(Span::ZERO, LONG), "Round trip that is assumed";
    }
}

impl Algorithm for Config {
    fn build(&self, _setup: Setup) -> Box<dyn Controller> {
        Box::new(Aiortc { config: self.clone(), target: self.start })
    }

    fn estimator(&self, _setup: &Setup) -> Option<Box<dyn Estimator>> {
        Some(Box::new(RemoteEstimator::new(self)))
    }

    fn agree(&self) -> Result<(), SpecError> {
        in_order(("least", self.least), ("start", self.start))?;
        in_order(("start", self.start), ("most", self.most))
    }

    fn stack(&self) -> Stack {
        Stack::Aiortc
    }

    fn feedback(&self) -> FeedbackKind {
        FeedbackKind::Remb
    }

    fn counts_payload(&self) -> bool {
        true
    }
}

/// The sender: its encoder's rate.
#[derive(Clone, Debug)]
struct Aiortc {
    config: Config,
    target: Rate,
}

impl Controller for Aiortc {
    fn on_remb(&mut self, _now: Time, rate: Rate) {
        if self.config.follows {
            self.target = rate.max(self.config.least).min(self.config.most);
        }
    }

    fn outputs(&self) -> Outputs {
        Outputs {
            target: self.target,
            pacing: None,
            padding: Rate::ZERO,
            window: None,
            phase: Config::NAME_OF_PHASE,
        }
    }

    fn estimates(&self) -> Estimates {
        Estimates { delay_based: Some(self.target.as_bps() as f64), ..Estimates::default() }
    }
}

impl Config {
    const NAME_OF_PHASE: &'static str = "encoder";
}
