//! The engine that integrates rates and queues in place of packets.

use sojourn_core::param::{Maybe, time};
use sojourn_core::{Span, SpecError, StreamAddress, Time};
use sojourn_metrics::Collector;
use sojourn_scenario::Checked;

use super::{Engine, Measured};
use crate::shape::shape;

sojourn_core::params! {
    /// How the equations are integrated.
    pub struct Fluid: "fluid", "Rates and queues as delay-differential equations, in milliseconds a run; deterministic" {
        pub step: Option<Span> as Maybe<Span> = "", time(Span::from_micros(1), Span::from_secs(1)),
            "fixed step of the integration; without it steps are as long as their error allows";
    }
}

impl Engine for Fluid {
    const VERSION: u32 = sojourn_fluid::VERSION;

    fn check_scenario(&self, scenario: &Checked) -> Result<(), SpecError> {
        sojourn_fluid::check(scenario)
    }

    fn run(&self, scenario: &Checked, address: StreamAddress) -> Result<Measured, String> {
        let mut collector = Collector::new(shape(scenario));
        let options = sojourn_fluid::Options { step: self.step };
        sojourn_fluid::run(scenario, address, &options, &mut collector)?;
        let mut metrics = collector.finish(Time::ZERO + scenario.duration);
        // A sender's counters of timeouts, of idleness and of what it imagined have no fluid.
        metrics.flows.iter_mut().for_each(|flow| flow.last = None);
        Ok(Measured { metrics, end_states: Vec::new() })
    }
}
