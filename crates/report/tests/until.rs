//! What a report says of runs that end with their last transfer.

use std::path::Path;

use sojourn_file::Overrides;
use sojourn_report::terminal;
use sojourn_study::results::Folder;
use sojourn_study::{Study, runner};

const STUDY: &str = r#"
schema = 1
title = "one transfer"

[scenario]
duration = "3s"
until = "transfers done"

[scenario.path]
rate = "8Mbps"
rtt = "20ms"
queue = "pfifo limit 50"

[[scenario.flow]]
name = "fetch"
app = "bulk"
bytes = "1MB"

[factors]
"flow.fetch.bytes" = ["1MB", "5MB"]
"#;

#[test]
fn a_report_says_when_runs_ended_and_why() {
    let study = Study::parse("until.toml", STUDY, Path::new(""), &Overrides::default()).unwrap();
    let scratch = tempfile::tempdir().unwrap();
    let out = scratch.path().join("out");
    runner::run(&study, &runner::Options::new(&out), &|_| {}).unwrap();
    let results = Folder::open(&out).unwrap();

    let done = terminal::ending(&results, 0).unwrap();
    assert!(done.starts_with("ended at 1.") && done.ends_with(" s with its transfer"), "{done}");
    let capped = terminal::ending(&results, 1).unwrap();
    assert_eq!(capped, "ended at 3 s, its longest, with 1 of 1 transfers open");

    let table = terminal::metrics(&results, terminal::MOST);
    let rowless = Folder::open_without_rows(&out).unwrap();
    assert_eq!(terminal::metrics_of_folder(&rowless, terminal::MOST).unwrap(), table);
    assert!(table.contains("end_ms"), "{table}");
    assert!(table.contains("1 of 1 run ended with the last transfer, at 1."), "{table}");
    assert!(table.contains("1 of 1 run ended at 3 s, the longest, with 1 of 1 transfers open"));

    let mut runs = results.reader().unwrap();
    let page = sojourn_report::html(&results, &mut runs, &sojourn_report::Options::default());
    assert!(
        page.contains("at most 3 s each") && page.contains("Until transfers done, at most 3 s")
    );
    assert!(page.contains("It ended at 3 s, its longest, with 1 of 1 transfers open."));
}
