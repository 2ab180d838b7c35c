//! What the time series say of a controller's model.

use std::path::Path;

use sojourn_file::Overrides;
use sojourn_study::results::{Folder, Kind, Results, Series};
use sojourn_study::{Study, runner};
use tempfile::TempDir;

/// A FIFO of half a bandwidth-delay product, so that probing finds losses.
const STUDY: &str = r#"
schema = 1
title = "models"

[scenario]
duration = "20s"
path = { rate = "20Mbps", rtt = "50ms", queue = "pfifo", buffer = "0.5bdp" }

[[scenario.flow]]
name = "bulk"
app = "bulk"

[factors]
"flow.bulk.cca" = ["bbr", "bbr2", "bbr3", "bbr3-linux", "bbr-n+", "cubic"]
"#;

fn study(text: &str) -> Study {
    Study::parse("study.toml", text, Path::new(""), &Overrides::default()).unwrap()
}

/// Runs all of it; the results are there as long as their folder.
fn run_all(study: &Study) -> (TempDir, Results) {
    let scratch = tempfile::tempdir().unwrap();
    let out = scratch.path().join("out");
    runner::run(study, &runner::Options::new(&out), &|_| {}).unwrap();
    let results = Folder::open(&out).unwrap();
    (scratch, results)
}

fn last(series: &Series, column: &str) -> Option<f64> {
    series.column(column)?.known().last()
}

#[test]
fn every_bbr_shows_its_round_trip_aggregation_bound_and_rounds() {
    let (_folder, results) = run_all(&study(STUDY));
    let mut reader = results.reader().unwrap();
    for (run, planned) in results.plan.runs.iter().enumerate() {
        let cca = &results.plan.scenarios[planned.scenario as usize].factors[0][..];
        let series = reader.series(run as u32).unwrap();
        let flow = series.iter().find(|one| one.name == "bulk").expect("the flow has a series");
        let min_rtt = last(flow, "min_rtt_ms").expect("the path was measured");
        assert!((50.0..60.0).contains(&min_rtt), "{cca}: {min_rtt} ms");
        if cca == "cubic" {
            let model = ["extra_acked_pkts", "inflight_longterm_pkts", "rounds"];
            assert_eq!(model.map(|column| last(flow, column)), [None; 3], "{cca} has no model");
            continue;
        }
        assert!(last(flow, "extra_acked_pkts").is_some(), "{cca}");
        // A round trip takes 50 ms, and with the buffer full half as much more.
        let rounds = last(flow, "rounds").expect("rounds are counted");
        assert!((200.0..=400.0).contains(&rounds), "{cca}: {rounds} rounds in 20 s");
        let counted = flow.column("rounds").unwrap();
        let counted: Vec<f64> = counted.known().collect();
        assert!(counted.is_sorted(), "{cca}: rounds only increase");
        if cca != "bbr" {
            let bounds = flow.column("inflight_longterm_pkts").expect("there is such a column");
            assert!(bounds.known().count() > 0, "{cca}: probing met losses");
        }
    }
}

/// Flows that begin between two steps, as packets and as fluid; one is there until its transfer of 3 s or its stop at 5 s.
const LATE: &str = r#"
schema = 1
title = "late"

[scenario]
duration = "8s"
path = { rate = "10Mbps", rtt = "20ms", queue = "pfifo limit 50" }
flow = [
    { name = "stays", app = "bulk", cca = "bbr", start = "2050ms" },
    { name = "stops", app = "bulk", cca = "cubic", start = "2050ms", stop = "5s" },
]

[factors]
engine = ["sim", "fluid"]
"#;

#[test]
fn a_flow_has_a_state_while_it_is_there() {
    let (_folder, results) = run_all(&study(LATE));
    let mut reader = results.reader().unwrap();
    for run in 0..2 {
        for flow in reader.series(run).unwrap().iter().filter(|one| !one.phase.is_empty()) {
            let there: Vec<f64> = flow
                .t_s
                .iter()
                .zip(&flow.phase)
                .filter(|(_, phase)| !phase.is_empty())
                .map(|(t, _)| *t)
                .collect();
            let cwnd = flow.column("cwnd_pkts").unwrap();
            assert_eq!(cwnd.known().count(), there.len(), "{run} {}", flow.name);
            // What was sent has been acknowledged within two round trips of a full queue; packets also wait to be sent.
            let ends = [5.4..=5.8, 5.0..=5.4][run as usize].clone();
            let last = if flow.name == "stays" { 8.0..=8.0 } else { ends };
            assert!((there[0] - 2.1).abs() < 1e-9, "{run} {}: {there:?}", flow.name);
            assert!(last.contains(&there[there.len() - 1]), "{run} {}: {there:?}", flow.name);
            let first = flow.phase.iter().find(|phase| !phase.is_empty()).unwrap();
            let begins = if flow.name == "stays" { "STARTUP" } else { "slow_start" };
            assert_eq!(&first[..], begins, "{run}");
        }
    }
}

/// A change that comes, and two that don't.
#[test]
fn a_run_says_which_changes_did_not_come() {
    let text = r#"
schema = 1
title = "changes"

[scenario]
duration = "4s"
path = { rate = "10Mbps", rtt = "20ms", queue = "pfifo limit 50" }
flow = [{ name = "s", app = "bulk", cca = "bbr" }]

[[scenario.change]]
name = "comes"
when = "s enters DRAIN"
queue = "queue"
rate = "5mbit"

[[scenario.change]]
name = "late"
when = "s enters DRAIN"
after = "5s"
queue = "queue"
rate = "1mbit"
loss = "1%"

[[scenario.change]]
name = "rare"
when = "s enters PROBE_BW:0.75"
occurrence = 1000
flow = "s"
stop = true
"#;
    let study = study(text);
    let note = "change 'late' never comes: its 'after' is 5s of 4s";
    assert_eq!(study.notices(), [(note, 1)]);
    let (_folder, results) = run_all(&study);
    let row = results.table.run(0).iter().next().expect("the run's own row");
    let said: Vec<&str> = row.end_state.lines().collect();
    assert_eq!(
        said,
        [
            "a change did not come: it waits for 's enters DRAIN' and 5s more",
            "a change did not come: it waits for 's enters PROBE_BW:0.75' for the 1000th time",
        ]
    );
    // Both changes of the rate are of this queue.
    let rows: Vec<_> = results.table.run(0).iter().filter(|row| row.kind == Kind::Queue).collect();
    let began = rows.iter().map(|row| row.end_state.starts_with(" rate 5Mbps at the end\n Sent "));
    let names = rows.iter().map(|row| &row.name[..]);
    assert_eq!(names.zip(began).collect::<Vec<_>>(), [("queue", true), ("reverse_queue", false)]);
}
