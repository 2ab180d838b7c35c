//! JSON and CSV are read by programs, so they parse and agree with each other.

use serde_json::Value;

use crate::scratch::Scratch;

/// Every row has as many cells as the head; returns how many rows follow it.
fn assert_rectangular(rows: &[Vec<String>]) -> usize {
    for row in rows {
        assert_eq!(row.len(), rows[0].len(), "{row:?}");
    }
    rows.len() - 1
}

#[test]
fn a_run_tells_programs_the_same_as_people() {
    let scratch = Scratch::new();
    let run = |format| scratch.must(&["run", "study.toml", "--out", "out", "--format", format]);
    let json = run("json").json();
    assert_eq!(json["runs"]["total"], 6);
    assert_eq!(json["runs"]["done"], 6);
    assert_eq!(json["runs"]["failed"], Value::Array(Vec::new()));
    assert_eq!(json["folder"], "out");
    assert_eq!(json["report"], "out/report.html");
    assert_eq!(json["claims"][0]["id"], "busy");
    assert_eq!(json["claims"][0]["verdict"], "holds");
    assert_eq!(json["repeat"], "sojourn run study.toml --out out --format json");

    let rows = run("csv").csv();
    // Of the one claim, a check in each of two scenarios.
    assert_eq!(assert_rectangular(&rows), 2);
    assert_eq!(rows[1][..2], ["busy", "holds"]);
    assert!(run("table").stdout.contains("busy"));
}

#[test]
fn rows_of_results_are_the_same_as_json_and_csv() {
    let scratch = Scratch::new();
    scratch.must(&["run", "study.toml", "--out", "out"]);
    let words = ["show", "out", "--metric", "goodput,sojourn_p95", "--format"];
    let json = scratch.must(&[&words[..], &["json"]].concat()).json();
    let csv = scratch.must(&[&words[..], &["csv"]].concat()).csv();
    let json = json.as_array().expect("rows");
    // The run, two flows and two queues, six times.
    assert_eq!(json.len(), 30);
    assert_eq!(assert_rectangular(&csv), 30);
    for (row, object) in csv[1..].iter().zip(json) {
        for (name, cell) in csv[0].iter().zip(row) {
            let text = match &object[name] {
                Value::Null => String::new(),
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            assert_eq!(*cell, text, "{name}");
        }
    }
    let goodput = |row: &Value| row["goodput_mbps"].as_f64();
    assert!(json.iter().filter(|row| row["kind"] == "flow").all(|row| goodput(row) > Some(0.1)));
}

#[test]
fn the_series_of_a_run_are_the_same_as_json_and_csv() {
    let scratch = Scratch::new();
    scratch.must(&["run", "study.toml", "--out", "out"]);
    let json = scratch.must(&["show", "out", "2", "--format", "json"]).json();
    let csv = scratch.must(&["show", "out", "2", "--format", "csv"]).csv();
    let series = json["series"].as_array().expect("series");
    assert_eq!(series.len(), 4);
    let steps: usize = series.iter().map(|one| one["t_s"].as_array().expect("times").len()).sum();
    assert_eq!(assert_rectangular(&csv), steps);
    assert_eq!(json["seed"], 3);
    assert_eq!(json["scenario"], "path.queue = pfifo limit 50");
}

#[test]
fn a_plan_is_told_to_programs() {
    let scratch = Scratch::new();
    let words = ["run", "study.toml", "--dry-run", "--format"];
    let json = scratch.must(&[&words[..], &["json"]].concat()).json();
    let csv = scratch.must(&[&words[..], &["csv"]].concat()).csv();
    assert_eq!(json["plan"]["runs"].as_array().map(Vec::len), Some(6));
    assert_eq!(json["virtual_s"], 12.0);
    assert_eq!(assert_rectangular(&csv), 6);
    assert!(csv[0].contains(&"path.queue".to_owned()));
}

#[test]
fn lists_facts_and_checks_parse() {
    let scratch = Scratch::new();
    scratch.write("trace.csv", "10,1\n20,3\n");
    for words in [
        &["list"][..],
        &["list", "cca"],
        &["list", "queue", "cake"],
        &["list", "metric"],
        &["check", "study.toml"],
        &["trace", "info", "trace.csv"],
        &["doctor"],
    ] {
        let json = scratch.must(&[words, &["--format", "json"]].concat()).json();
        let count = json.as_array().map_or(1, Vec::len);
        assert!(count > 0, "{words:?}");
        let rows = scratch.must(&[words, &["--format", "csv"]].concat()).csv();
        assert!(assert_rectangular(&rows) >= count, "{words:?}");
        assert!(!scratch.must(words).stdout.is_empty());
    }
}

#[test]
fn the_schema_is_json() {
    let schema = Scratch::new().must(&["schema"]).json();
    assert_eq!(schema["title"], "Sojourn study");
}
