//! The `sojourn` command with parts of its own.

mod application;
mod carrier;
mod controller;
mod queue;

use std::process::ExitCode;

use sojourn::Registry;
use sojourn_core::SpecError;

fn main() -> Result<ExitCode, SpecError> {
    let mut registry = Registry::default();
    registry.add_controller::<controller::Patient>()?;
    registry.add_queue::<queue::TwoLanes>()?;
    registry.add_application::<application::Ask>()?;
    registry.add_carrier::<carrier::Cable>()?;
    Ok(sojourn::main_with(&registry))
}
