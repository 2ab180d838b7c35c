//! Simulates a run of a result folder again with another observer.

use std::path::Path;
use std::sync::Arc;

use sojourn_core::{Observer, StreamAddress};
use sojourn_metrics::Collector;
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
        false => Err(Failure::Input(format!(
            "{name}: no longer stands for the runs in its folder: the models, or a trace that it \
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
    if !engine::is_simulated(&scenario) {
        let problem = format!("run {run}: its engine simulates no packets that could be shown");
        return Err(Failure::Input(problem));
    }
    again(&scenario.scenario, study.address(*seed), run, digest, observer)
}

/// Simulates `scenario` for `observer`, and checks that it is the run with the known `digest`.
pub(super) fn again(
    scenario: &Checked,
    address: StreamAddress,
    run: u32,
    digest: Option<&str>,
    observer: &mut impl Observer,
) -> Result<(), Failure> {
    let mut both = (Collector::new(runner::shape(scenario)), observer);
    let outcome = sojourn_sim::run(scenario, address, &mut both)
        .map_err(|violation| Failure::Machine(format!("run {run}: {violation}")))?;
    let again = format!("{:016x}", both.0.finish(outcome.end).digest);
    match digest.is_none_or(|digest| digest == again) {
        true => Ok(()),
        false => Err(Failure::Machine(format!(
            "run {run} is not the same once more: its digest is {again} and was {}",
            digest.unwrap_or_default()
        ))),
    }
}
