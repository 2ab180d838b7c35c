//! The shipped studies, at reduced size: they are read, they run, and their claims are checked.

use std::path::{Path, PathBuf};

use sojourn_core::{Span, StreamAddress};
use sojourn_scenario::Checked;
use sojourn_study::engine::{self, Engine, Measured, Sim};
use sojourn_study::results::{Folder, Verdict};
use sojourn_study::{Overrides, Registry, Study, metrics, runner};

fn shipped() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../studies");
    let mut studies: Vec<PathBuf> = std::fs::read_dir(folder)
        .expect("studies are shipped")
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.join("study.toml").exists())
        .collect();
    studies.sort();
    studies
}

/// Claims of what comes later than a shortened run ends: the first blockage.
const TOO_EARLY: &[(&str, &str)] =
    &[("mmwave", "F4-short"), ("mmwave", "F4-long"), ("mmwave", "F4-mobility")];

/// Studies whose claims are of stated times of the run.
const WHOLE: &[&str] = &["ietf-bbr"];

sojourn_core::params! {
    /// Takes the name of the live engine, which needs rights that this test may not have, and simulates.
    struct Live: "live", "simulates" {}
}

sojourn_core::params! {
    /// Takes the name of the engine of Linux kernels, which have to be built first, and simulates.
    struct Kernels: "kernel", "simulates" {
        kernel: String = "", "which kernel";
    }
}

macro_rules! simulates {
    ($($engine:ty)*) => {$(
        impl Engine for $engine {
            const VERSION: u32 = 1;

            fn run(&self, scenario: &Checked, address: StreamAddress) -> Result<Measured, String> {
                Sim::default().run(scenario, address)
            }
        }
    )*};
}

simulates!(Live Kernels);

fn registry() -> Registry {
    let mut registry = Registry::default();
    engine::add::<Live>(&mut registry).unwrap();
    engine::add::<Kernels>(&mut registry).unwrap();
    registry
}

#[test]
fn every_shipped_study_runs_and_its_claims_can_be_checked() {
    let studies = shipped();
    assert!(studies.len() >= 6);
    let registry = registry();
    for path in studies {
        let is_whole = WHOLE.iter().any(|whole| path.ends_with(whole));
        let shorten = (!is_whole).then_some(Span::from_millis(2500));
        let overrides = Overrides { seeds: Some(1), shorten, ..Overrides::default() };
        let study = Study::load_with(&registry, &path, &overrides)
            .unwrap_or_else(|error| panic!("{error}"));
        let scratch = tempfile::tempdir().unwrap();
        let out = scratch.path().join("out");
        let summary = runner::run(&study, &runner::Options::new(&out), &|_| {}).unwrap();
        assert_eq!(summary.failed, [], "{}", path.display());
        let report = summary.claims.unwrap();
        for claim in &report.claims {
            let wanted = study.claims.iter().find(|own| own.id == claim.id).unwrap();
            let is_too_early =
                TOO_EARLY.iter().any(|(at, id)| path.ends_with(at) && claim.id == *id);
            // All other claims must find their scenarios, flows and metrics.
            if wanted.untestable.is_none() && !is_too_early {
                assert_ne!(claim.verdict, Verdict::Untestable, "{}: {:?}", claim.id, claim.reason);
                assert!(!claim.checks.is_empty());
            }
        }
        let results = Folder::open(&out).unwrap();
        // A claim on what can't be measured is refused, so nothing that is measured may count as such.
        for row in &results.table.rows {
            for (name, value) in results.table.metrics.iter().zip(row.values.iter()) {
                let metric = metrics::known(name, &[row.kind]);
                let is_possible = metric
                    .is_some_and(|metric| study.possible().has(&row.name, metric, row.scenario));
                assert!(
                    value.is_none() || is_possible,
                    "{}: {name} of '{}'",
                    path.display(),
                    row.name
                );
            }
        }
        assert!(results.is_complete());
        assert!(results.claims == Some(report), "claims are read back as they were written");
    }
}

/// The readme's first command promises exit code 0.
#[test]
fn every_claim_of_the_first_study_holds() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../studies/home-router");
    let study = Study::load(&folder, &Overrides::default()).unwrap();
    let scratch = tempfile::tempdir().unwrap();
    let out = scratch.path().join("out");
    let report = runner::run(&study, &runner::Options::new(&out), &|_| {}).unwrap().claims.unwrap();
    assert!(!report.claims.is_empty());
    for claim in &report.claims {
        assert_eq!(claim.verdict, Verdict::Holds, "{}", claim.id);
    }
}

#[test]
fn every_shipped_study_says_where_its_claims_come_from() {
    for path in shipped() {
        let study = Study::load_with(&registry(), &path, &Overrides::default()).unwrap();
        assert!(study.source.is_some() && study.question.is_some());
        for claim in &study.claims {
            assert!(claim.source.is_some(), "{}: {}", path.display(), claim.id);
        }
        assert!(path.join("README.md").exists(), "{}", path.display());
    }
}

/// What an example is worth: a question that fits on half a page, an answer that holds, and the
/// figure that shows it.
#[test]
fn every_example_is_short_and_its_claims_hold() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let listed = std::fs::read_to_string(folder.join("README.md")).unwrap();
    let mut examples: Vec<PathBuf> = std::fs::read_dir(folder)
        .expect("examples are shipped")
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|end| end == "toml"))
        .collect();
    examples.sort();
    assert!(examples.len() >= 8, "{examples:?}");
    for path in examples {
        let name = path.display();
        let file = path.file_name().unwrap().to_string_lossy();
        assert!(listed.contains(&format!("({file})")), "examples/README.md has no line for {file}");
        assert!(std::fs::read_to_string(&path).unwrap().lines().count() <= 25, "{name}");
        let study = Study::load(&path, &Overrides::default()).unwrap_or_else(|e| panic!("{e}"));
        assert!(!study.views.is_empty(), "{name}");
        let scratch = tempfile::tempdir().unwrap();
        let options = runner::Options::new(scratch.path().join("out"));
        let report = runner::run(&study, &options, &|_| {}).unwrap().claims.unwrap();
        for claim in &report.claims {
            assert_eq!(claim.verdict, Verdict::Holds, "{name}: {} {:?}", claim.id, claim.checks);
        }
        assert!(!report.claims.is_empty(), "{name}");
    }
}
