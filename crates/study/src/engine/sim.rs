//! The engine that simulates packets in virtual time.

use sojourn_core::StreamAddress;
use sojourn_metrics::Collector;
use sojourn_scenario::Checked;

use super::{Engine, Measured, end_states};
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
        let links = outcome.links.iter().zip(outcome.queue_details.iter().map(Vec::as_slice));
        let end_states = end_states(scenario, &metrics, &outcome.flows, links);
        Ok(Measured { metrics, end_states })
    }
}
