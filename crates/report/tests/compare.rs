//! Two result folders, with their rows in memory and without.

use std::path::Path;

use sojourn_report::compare::{self, Comparison};
use sojourn_study::results::Folder;
use sojourn_study::{Study, runner};

const STUDY: &str = r#"
schema = 1
title = "transfers"

[scenario]
duration = "3s"
path = { rate = "10Mbps", rtt = "20ms", queue = "pfifo limit 50" }

[[scenario.flow]]
name = "fetch"
app = "bulk"
bytes = "1MB"
count = 2
start_jitter = "500ms"

[[scenario.flow]]
name = "ping"
app = "ping"

[factors]
"path.rate" = ["5Mbps", "10Mbps", "20Mbps"]
"path.rtt" = ["20ms", "200ms"]

[repeat]
seeds = 3
"#;

fn text(comparison: &Comparison) -> String {
    let changes: Vec<String> =
        comparison.changes.iter().map(|change| format!("{change:?}\n")).collect();
    let Comparison { paired, by_samples, identical, unpaired, .. } = comparison;
    format!("{paired} {by_samples} {identical} {unpaired:?}\n{}", changes.concat())
}

/// The folders have their scenarios in another order, and each has some that the other has not.
#[test]
fn folders_are_compared_run_by_run_as_they_are_in_memory() {
    let scratch = tempfile::tempdir().unwrap();
    let ran = |name: &str, text: &str| {
        let study = Study::parse(name, text, Path::new(""), &Default::default()).unwrap();
        let out = scratch.path().join(name);
        runner::run(&study, &runner::Options::new(&out), &|_| {}).unwrap();
        out
    };
    let before = ran("before", STUDY);
    let other = STUDY
        .replace("limit 50", "limit 20")
        .replace(r#""5Mbps", "10Mbps", "20Mbps""#, r#""20Mbps", "4Mbps", "10Mbps""#)
        .replace("seeds = 3", "seeds = 4");
    let after = ran("after", &other);
    for (before, after) in [(&before, &after), (&after, &before), (&before, &before)] {
        let [old, new] = [before, after].map(|folder| Folder::open(folder).unwrap());
        let in_memory = compare::compare(&old, &new);
        let [old, new] = [before, after].map(|folder| Folder::open_without_rows(folder).unwrap());
        let read = compare::compare_folders(&old, &new).unwrap();
        assert_eq!(text(&read), text(&in_memory));
        assert_eq!(read.html(), in_memory.html());
        assert!(read.changes.len() > 50 && read.paired >= 12, "{}", text(&read));
    }
}
