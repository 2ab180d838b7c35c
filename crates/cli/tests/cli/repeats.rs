//! The command that repeats a run is one that this program takes, for every shipped study and example.

use std::path::{Path, PathBuf};
use std::process::Command;

use sojourn_report::repeat;
use sojourn_study::results::{Plan, PlannedRun};

use crate::scratch::{Ended, PROGRAM};

/// So many scenarios of each are tried, from the first to the last.
const TRIED: usize = 6;

/// Its traces are not in the repository.
const WITHOUT_TRACES: &str = "studies/mmwave/measured.toml";

#[test]
fn every_shipped_study_takes_the_commands_that_repeat_its_runs() {
    let files = shipped();
    assert!(files.len() > 60, "{files:?}");
    for file in files.iter().filter(|file| *file != WITHOUT_TRACES) {
        let whole = dry_run(&format!("run {file}"));
        let last = whole.scenarios.len() - 1;
        for scenario in (0..TRIED).map(|part| last * part / (TRIED - 1)) {
            let is_of_it = |run: &&PlannedRun| run.scenario as usize == scenario;
            let run = whole.runs.iter().find(is_of_it).expect("every scenario has runs");
            let line = repeat(&whole, run);
            let again = dry_run(line.strip_prefix("sojourn ").expect("a command of ours"));
            let ids: Vec<_> = again.runs.iter().map(|run| run.id).collect();
            assert_eq!(ids, [run.id], "{line}");
        }
    }
}

/// What a shell would have the program run.
fn dry_run(words: &str) -> Plan {
    let output = Command::new("sh")
        .args(["-c", &format!("exec \"$0\" {words} --dry-run --format json"), PROGRAM])
        .current_dir(root())
        .output();
    let ended = Ended::of(output.expect("there is a shell"));
    assert_eq!(ended.code, Some(0), "{words}\n{}", ended.stderr);
    serde_json::from_value(ended.json()["plan"].clone()).expect("a plan")
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// All study files, by their paths from the root.
fn shipped() -> Vec<String> {
    let of_folder = |folder: &str| -> Vec<String> {
        let entries = std::fs::read_dir(root().join(folder)).expect("it is shipped");
        let name = |entry: std::io::Result<std::fs::DirEntry>| {
            entry.expect("it can be read").file_name().into_string().expect("an ordinary name")
        };
        entries.map(|entry| format!("{folder}/{}", name(entry))).collect()
    };
    let folders = of_folder("studies").into_iter().chain(["examples".to_owned()]);
    let folders = folders.filter(|folder| root().join(folder).is_dir());
    let mut files: Vec<String> = folders.flat_map(|folder| of_folder(&folder)).collect();
    files.retain(|file| file.ends_with(".toml"));
    files.sort();
    files
}
