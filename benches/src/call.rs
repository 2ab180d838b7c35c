//! A call through one bottleneck, with its feedback coming back through another queue.

use std::sync::Arc;

use sojourn_core::{Rate, Span};
use sojourn_link::LossConfig;
use sojourn_media::call::{CallConfig, CallSpec};
use sojourn_media::{control, source};
use sojourn_scenario::{App, Checked, ExternalApp, Flow, Host, Scenario, Until};

use crate::yardstick::link;

#[derive(Clone, Copy, Debug)]
pub struct Call {
    source: &'static str,
    control: &'static str,
    fps: f64,
    max_kbps: u64,
    /// Of the bottleneck.
    kbps: u64,
    /// Share of packets that are lost, as a study file has it.
    loss: &'static str,
}

impl Call {
    /// Video of up to 2.5 Mbit/s over 10 Mbit/s.
    pub const ALONE: Self = Self {
        source: "statistical",
        control: "gcc",
        fps: 30.0,
        max_kbps: 2_500,
        kbps: 10_000,
        loss: "0%",
    };
    /// A cloud game of 20 Mbit/s over 40 Mbit/s.
    pub const GAME: Self =
        Self { source: "game", fps: 60.0, max_kbps: 20_000, kbps: 40_000, ..Self::ALONE };

    pub const fn controlled_by(self, control: &'static str) -> Self {
        Self { control, ..self }
    }

    /// Over a link that is slower than the video, and loses packets.
    pub const fn over(self, kbps: u64, loss: &'static str) -> Self {
        Self { kbps, loss, ..self }
    }

    pub(crate) fn scenario(&self, rtt: Span, duration: Span) -> Checked {
        let rate = Rate::from_bps(self.kbps * 1000);
        let mut forward = link("queue", "pfifo limit 50", rate, rtt / 2);
        forward.entry_loss = LossConfig::parse(self.loss).expect("a share");
        let back = link("reverse", "pfifo limit 1000", rate, rtt / 2);
        Scenario {
            duration,
            until: Until::Duration,
            warmup: Span::ZERO,
            step: Span::from_millis(100),
            hosts: ["sender", "receiver"].map(|name| Host { name: name.into() }).into(),
            links: vec![forward, back],
            carriers: Vec::new(),
            flows: vec![Flow::new("call", self.app(), &[0], &[1])],
            changes: Vec::new(),
        }
        .checked()
        .expect("yardsticks are sound")
    }

    fn app(&self) -> App {
        let source = source::kinds().parse(self.source).expect("a shipped source");
        let control = control::kinds().parse(self.control).expect("a shipped controller");
        let spec = CallSpec {
            fps: self.fps,
            max_rate: Rate::from_bps(self.max_kbps * 1000),
            ..CallSpec::default()
        };
        let config = CallConfig::new(spec, source, control, None).expect("a sound call");
        App::External(ExternalApp(Arc::new(config)))
    }
}
