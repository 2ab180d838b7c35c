//! The line that repeats a run.

use sojourn_study::results::{Plan, PlannedRun};

use crate::markup::shell_word;

/// `sojourn run study.toml --set 'path.queue=pfifo limit 50' --seed 3`, for a POSIX shell: the
/// study with the overrides it was run with, held to the factor values and the seed of this run.
pub fn repeat(plan: &Plan, run: &PlannedRun) -> String {
    let mut words = vec!["sojourn".to_owned(), "run".to_owned(), plan.path.clone()];
    for given in &plan.overrides {
        words.extend(["--set".to_owned(), given.clone()]);
    }
    let values = plan.scenarios.get(run.scenario as usize).map_or(&[][..], |s| &s.factors[..]);
    for (factor, value) in plan.factors.iter().zip(values) {
        words.extend(["--set".to_owned(), format!("{}={value}", factor.name)]);
    }
    words.extend(["--seed".to_owned(), run.seed.to_string()]);
    words.iter().map(|word| shell_word(word)).collect::<Vec<_>>().join(" ")
}
