//! Simulates a run of a result folder again with another observer.

use std::path::Path;
use std::sync::Arc;

use sojourn_core::{Observer, StreamAddress};
use sojourn_metrics::{Collector, Shape};
use sojourn_scenario::Checked;
use sojourn_study::results::{Plan, PlannedRun, Results};
use sojourn_study::{Overrides, Registry, Study, StudyScenario, engine, runner};

use crate::failure::Failure;

/// Loads the study of a result folder as it was run.
pub(super) fn study_of(registry: &Registry, results: &Results) -> Result<Study, Failure> {
    let name = results.folder.join("study.toml");
    // Relative paths start from the folder of the original.
    let folder = Path::new(&results.plan.path).parent().unwrap_or(Path::new(""));
    let name = name.display().to_string();
    let overrides = Overrides::default();
    let study = Study::parse_with(registry, &name, &results.study, folder, &overrides)?;
    match study.plan().digest == results.plan.digest {
        true => Ok(study),
        false if results.plan.differs_in_digests(&study.plan()) => Err(Failure::Input(format!(
            "{name}: no longer stands for the runs in its folder: a kernel that it names has been built anew since"
        ))),
        false => Err(Failure::Input(format!(
            "{name}: no longer stands for the runs in its folder: the models, or a trace or kernel that it \
             names, have changed since"
        ))),
    }
}

pub(super) fn scenario_of(study: &Study, position: u32) -> Result<Arc<StudyScenario>, Failure> {
    let found = study.scenarios.get(position as usize);
    found.ok_or_else(|| Failure::Input(format!("the study has no scenario {position}")))
}

/// Simulates a run for `observer`, and checks that it is the run with the known `digest`.
pub(super) fn resimulate(
    study: &Study,
    plan: &Plan,
    run: u32,
    digest: Option<&str>,
    observer: &mut impl Observer,
) -> Result<(), Failure> {
    let PlannedRun { scenario, seed, .. } = &plan.runs[run as usize];
    let scenario = scenario_of(study, *scenario)?;
    let Some(world) = engine::simulated(&scenario) else {
        let problem = format!("run {run}: its engine simulates no packets that could be shown");
        return Err(Failure::Input(problem));
    };
    let shape = runner::shape(&scenario.scenario);
    again(&world, shape, study.address(*seed), run, digest, observer)
}

/// # Errors
/// The packets of a scenario can't be shown, because its engine simulates none.
pub(super) fn check_packets(study: &Study) -> Result<(), Failure> {
    for position in 0..study.scenarios.len() {
        let scenario = scenario_of(study, position as u32)?;
        if !engine::is_simulated(&scenario) {
            let label = study.plan().label(position as u32);
            return Err(Failure::Input(format!(
                "--pcap: the engine of scenario {position} ({label}) simulates no packets that could be shown"
            )));
        }
    }
    Ok(())
}

/// Simulates `scenario` for `observer`, and checks that it is the run with the known `digest`. `shape` is that of the scenario
/// as it was run.
pub(super) fn again(
    scenario: &Checked,
    shape: Shape,
    address: StreamAddress,
    run: u32,
    digest: Option<&str>,
    observer: &mut impl Observer,
) -> Result<(), Failure> {
    let mut both = (Collector::new(shape), observer);
    let outcome = sojourn_sim::run_any(scenario, address, &mut both).map_err(|violation| {
        Failure::Machine(format!("run {run}: {}", engine::told(scenario, &violation)))
    })?;
    let again = format!("{:016x}", both.0.finish(outcome.end).digest);
    match digest.is_none_or(|digest| digest == again) {
        true => Ok(()),
        false => Err(Failure::Machine(format!(
            "run {run} is not the same once more: its digest is {again} and was {}",
            digest.unwrap_or_default()
        ))),
    }
}
