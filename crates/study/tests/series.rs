//! What the time series say of a controller's model.

use std::path::Path;

use sojourn_file::Overrides;
use sojourn_study::results::{Folder, Series};
use sojourn_study::{Study, runner};

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

fn last(series: &Series, column: &str) -> Option<f64> {
    series.column(column)?.iter().rev().flatten().next().copied()
}

#[test]
fn every_bbr_shows_its_round_trip_aggregation_bound_and_rounds() {
    let study = Study::parse("models.toml", STUDY, Path::new(""), &Overrides::default()).unwrap();
    let scratch = tempfile::tempdir().unwrap();
    let out = scratch.path().join("out");
    runner::run(&study, &runner::Options::new(&out), &|_| {}).unwrap();
    let results = Folder::open(&out).unwrap();
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
        let counted: Vec<f64> = counted.iter().flatten().copied().collect();
        assert!(counted.is_sorted(), "{cca}: rounds only increase");
        if cca != "bbr" {
            let bounds = flow.column("inflight_longterm_pkts").expect("there is such a column");
            assert!(bounds.iter().flatten().count() > 0, "{cca}: probing met losses");
        }
    }
}
