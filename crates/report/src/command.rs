//! The line that repeats a run.

use sojourn_study::results::{Plan, PlannedRun};

use crate::markup::shell_word;

/// `sojourn run study.toml --set 'path.queue=pfifo limit 50' --seed 3`, for a POSIX shell: the
/// study with the overrides of its run, restricted to this run's factor values and seed.
pub fn repeat(plan: &Plan, run: &PlannedRun) -> String {
    let mut words = vec!["sojourn".to_owned(), "run".to_owned(), plan.path.clone()];
    words.extend(plan.overrides.iter().flat_map(|given| override_words(given)));
    let values = plan.scenarios.get(run.scenario as usize).map_or(&[][..], |s| &s.factors[..]);
    for (factor, value) in plan.factors.iter().zip(values) {
        words.extend(["--set".to_owned(), format!("{}={value}", factor.name)]);
    }
    words.extend(["--seed".to_owned(), run.seed.to_string()]);
    words.iter().map(|word| shell_word(word)).collect::<Vec<_>>().join(" ")
}

/// The words of an override as the plan keeps it: `--set 'path.rate=40mbps'`, `--shorten 10s`, or
/// the assignment alone. The number of seeds is left out, because it does not matter for a single
/// run.
fn override_words(given: &str) -> Vec<String> {
    let (option, value) = match given.split_once(' ') {
        Some((option, value)) if option.starts_with("--") => (option, value),
        _ => ("--set", given),
    };
    let value = value.strip_prefix('\'').and_then(|v| v.strip_suffix('\'')).unwrap_or(value);
    if option == "--seeds" || option == "--set" && value.starts_with("repeat.seeds") {
        return Vec::new();
    }
    vec![option.to_owned(), value.to_owned()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_override_is_given_again_but_for_the_number_of_seeds() {
        assert_eq!(override_words("--set 'path.rate=40 mbps'"), ["--set", "path.rate=40 mbps"]);
        assert_eq!(override_words("path.rate=40mbps"), ["--set", "path.rate=40mbps"]);
        assert_eq!(override_words("--shorten 10s"), ["--shorten", "10s"]);
        assert!(override_words("--seeds 3").is_empty());
        assert!(override_words("--set 'repeat.seeds=[1,4]'").is_empty());
    }
}
