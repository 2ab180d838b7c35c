//! A program with parts of its own: it registers them, runs a study that names them, and says which
//! claims hold.

mod application;
mod carrier;
mod controller;
mod queue;

use std::error::Error;
use std::path::Path;
use std::process::ExitCode;

use sojourn_study::results::Verdict;
use sojourn_study::runner::{Options, run};
use sojourn_study::{Overrides, Registry, Study};

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let mut registry = Registry::default();
    registry.add_controller::<controller::Patient>()?;
    registry.add_queue::<queue::TwoLanes>()?;
    registry.add_application::<application::Ask>()?;
    registry.add_carrier::<carrier::Cable>()?;

    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let study = Study::load_with(&registry, &here.join("study.toml"), &Overrides::default())?;
    let summary = run(&study, &Options::new(here.join("results")), &|_| {})?;
    for failed in &summary.failed {
        println!("a run failed: {}", failed.problem);
    }
    let mut all_hold = summary.failed.is_empty();
    for claim in summary.claims.iter().flat_map(|report| &report.claims) {
        println!("{} {}: {}", claim.id, claim.verdict.name(), claim.text);
        all_hold &= claim.verdict == Verdict::Holds;
    }
    println!("results: {}", summary.folder.display());
    Ok(if all_hold { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
