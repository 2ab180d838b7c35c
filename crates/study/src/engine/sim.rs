//! The engine that simulates packets in virtual time.

use sojourn_core::StreamAddress;
use sojourn_metrics::{Collector, RunMetrics, Series};
use sojourn_scenario::{Checked, Scenario};

use super::{Engine, Measured, end_states, forget_other_engines, look, reach, told};
use crate::shape::shape;

sojourn_core::params! {
    /// It has nothing to set.
    pub struct Sim: "sim", "Simulates every packet in virtual time; deterministic" {}
}

impl Engine for Sim {
    const VERSION: u32 = sojourn_sim::MODEL_VERSION;

    fn simulated(&self, scenario: &Checked) -> Option<Checked> {
        Some(scenario.clone())
    }

    fn forget(&self, run: &mut RunMetrics) {
        forget_other_engines(run);
    }

    /// An error is a fault of the model or of a part from outside, not of the scenario.
    fn run(&self, scenario: &Checked, address: StreamAddress) -> Result<Measured, String> {
        simulate(scenario, address, None)
    }

    fn run_in_pieces(
        &self,
        scenario: &Checked,
        address: StreamAddress,
        pieces: &mut dyn FnMut(Series),
    ) -> Result<Measured, String> {
        simulate(scenario, address, Some(pieces))
    }
}

fn simulate(
    scenario: &Checked,
    address: StreamAddress,
    mut pieces: Option<&mut dyn FnMut(Series)>,
) -> Result<Measured, String> {
    let collector = Collector::new(shape(scenario)).expecting_all_drops();
    let mut at_sample = |now, collector: &mut Collector| {
        look();
        reach(now);
        if let Some(pieces) = &mut pieces
            && let Some(rows) = collector.take_rows()
        {
            pieces(rows);
        }
    };
    let (metrics, outcome) =
        sojourn_measure::simulate(scenario, address, collector, &mut at_sample)
            .map_err(|violation| told(scenario, &violation))?;
    let links = outcome.links.iter().zip(outcome.queue_details.iter().map(Vec::as_slice));
    let end_states = end_states(scenario, &metrics, &outcome.flows, links);
    let troubles = missed(scenario, &outcome.missed);
    Ok(Measured { metrics, end_states, is_stopped: false, troubles })
}

/// A sentence for each moment that never came although changes wait for it.
fn missed(scenario: &Scenario, missed: &[usize]) -> Vec<String> {
    let mut sentences = Vec::new();
    for when in missed.iter().map(|at| &scenario.changes[*at].when) {
        let sentence = format!("a change did not come: it waits for {}", scenario.moment(when));
        if !sentences.contains(&sentence) {
            sentences.push(sentence);
        }
    }
    sentences
}
