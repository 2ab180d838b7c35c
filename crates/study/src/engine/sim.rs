//! The engine that simulates packets in virtual time.

use sojourn_core::StreamAddress;
use sojourn_metrics::{Collector, RunMetrics};
use sojourn_scenario::{App, Checked, Scenario};
use sojourn_sim::Outcome;

use super::{Engine, Measured, end_state};
use crate::shape::shape;

sojourn_core::params! {
    /// It has nothing to set.
    pub struct Sim: "sim", "Simulates every packet in virtual time; deterministic" {}
}

impl Engine for Sim {
    const VERSION: u32 = sojourn_sim::MODEL_VERSION;

    /// An error is a fault of the model, not of the scenario.
    fn run(&self, scenario: &Checked, address: StreamAddress) -> Result<Measured, String> {
        let mut collector = Collector::new(shape(scenario));
        let outcome = sojourn_sim::run(scenario, address, &mut collector)
            .map_err(|violation| format!("an invariant was broken: {violation}"))?;
        let metrics = collector.finish(outcome.end);
        let end_states = end_states(scenario, &outcome, &metrics);
        Ok(Measured { metrics, end_states })
    }
}

/// For every flow, then for every queue.
fn end_states(scenario: &Scenario, outcome: &Outcome, metrics: &RunMetrics) -> Vec<String> {
    let flows =
        scenario.flows.iter().zip(&outcome.flows).map(|(flow, sample)| match (&flow.app, sample) {
            (App::Tcp { transport, .. }, Some(sample)) => end_state::ss(sample, transport.mss),
            _ => String::new(),
        });
    let links = metrics.links.iter().zip(&outcome.links).zip(&outcome.queue_details);
    let links = links.map(|((link, sample), details)| end_state::tc(link, sample, details));
    flows.chain(links).collect()
}
