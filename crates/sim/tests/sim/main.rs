//! The engine from outside, in worlds that are built in code.

mod changes;
mod ecn;
mod handshake;
mod order;
mod outage;
mod outside;
mod reads;
mod repair;
mod until;
mod utilisation;
mod words;
mod worlds;

use sojourn_core::{Observer, StreamAddress};
use sojourn_scenario::Checked;
use sojourn_sim::{Outcome, Violation};

/// Tells whichever observer: the engine is compiled for each kind of them, and here there is one.
fn simulate(
    scenario: &Checked,
    address: StreamAddress,
    mut observer: &mut dyn Observer,
) -> Result<Outcome, Violation> {
    sojourn_sim::run(scenario, address, &mut observer)
}
