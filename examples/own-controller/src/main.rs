//! The `sojourn` command with one congestion control more.

mod aimd;

use std::process::ExitCode;

use sojourn::Registry;
use sojourn_core::SpecError;

fn main() -> Result<ExitCode, SpecError> {
    let mut registry = Registry::default();
    registry.add_controller::<aimd::Aimd>()?;
    Ok(sojourn::main_with(&registry))
}
