//! A fixed rate: what a sender without congestion control does, or one whose own control never has
//! to act.

use alloc::boxed::Box;

use sojourn_core::param::{Maybe, number, rate};
use sojourn_core::{Params, Rate, Span};

use super::{
    Algorithm, Controller, FeedbackKind, LIBWEBRTC_BURST, LIBWEBRTC_LIMIT, Outputs, Setup, Stack,
};

sojourn_core::params! {
    /// The parameters of a fixed rate.
    pub struct Config: "fixed", "A fixed rate" {
        pub(crate) rate: Option<Rate> as Maybe<Rate> = "", rate(Rate::from_bps(1000), Rate::from_bps(1_000_000_000_000)), "Bits a second, headers included; without it the call's largest";
        pub(crate) pacing: f64 = "2.5", number(0.0, 100.0), "Pacing rate over the rate; 0 sends each frame at once";
    }
}

impl Algorithm for Config {
    fn build(&self, setup: Setup) -> Box<dyn Controller> {
        let rate = self.rate.unwrap_or(setup.max_rate);
        let pacing = (self.pacing > 0.0)
            .then(|| Rate::from_bps((self.pacing * rate.as_bps() as f64) as u64));
        Box::new(Fixed { rate, pacing })
    }

    fn kept_rate(&self) -> Option<Rate> {
        self.rate
    }

    fn feedback(&self) -> FeedbackKind {
        FeedbackKind::Twcc
    }

    fn pacer_burst(&self) -> Span {
        LIBWEBRTC_BURST
    }

    fn pacer_limit(&self) -> Option<Span> {
        Some(LIBWEBRTC_LIMIT)
    }

    fn stack(&self) -> Stack {
        Stack::Libwebrtc
    }
}

#[derive(Clone, Debug)]
struct Fixed {
    rate: Rate,
    pacing: Option<Rate>,
}

impl Controller for Fixed {
    fn outputs(&self) -> Outputs {
        Outputs {
            target: self.rate,
            pacing: self.pacing,
            padding: Rate::ZERO,
            window: None,
            phase: Config::NAME,
        }
    }
}
