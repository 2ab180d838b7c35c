//! What is measured of a run that ends with its last transfer: everything over the time that it
//! really took.

use std::path::Path;

use sojourn_core::Span;
use sojourn_file::Overrides;
use sojourn_study::Study;
use sojourn_study::results::{Folder, Kind, Results, Verdict};
use sojourn_study::runner;

const STUDY: &str = r#"
schema = 1
title = "two transfers"

[scenario]
duration = "20s"
until = "transfers done"
warmup = "200ms"
step = "100ms"

[scenario.path]
rate = "8Mbps"
rtt = "20ms"
queue = "pfifo limit 50"

[[scenario.flow]]
name = "fetch"
app = "bulk"
bytes = "1MB"
count = 2

[[scenario.flow]]
name = "probe"
app = "ping"
"#;

fn ran(text: &str, overrides: &Overrides, then: impl FnOnce(&Study, &Results)) {
    let study = Study::parse("until.toml", text, Path::new(""), overrides)
        .unwrap_or_else(|error| panic!("{error}"));
    let scratch = tempfile::tempdir().unwrap();
    let out = scratch.path().join("out");
    let summary = runner::run(&study, &runner::Options::new(&out), &|_| {}).unwrap();
    assert_eq!(summary.failed, []);
    then(&study, &Folder::open(&out).unwrap());
}

fn value(results: &Results, kind: Kind, name: &str, metric: &str) -> Option<f64> {
    let rows = results.table.run(0).iter();
    let row = rows.into_iter().find(|row| row.kind == kind && row.name == name).expect("a row");
    results.table.value(row, metric)
}

#[test]
fn rates_and_utilisation_are_of_the_time_that_the_run_took() {
    ran(STUDY, &Overrides::default(), |study, results| {
        assert_eq!(study.plan().scenarios[0].until.as_deref(), Some("transfers done"));
        let of_run = |metric| value(results, Kind::Run, "", metric);
        // 2 MB of payload are 1400 packets of 1514 bytes: 2.1 s at 8 Mbit/s, and some round trips.
        let end = of_run("end_ms").unwrap();
        assert!((2100.0..2600.0).contains(&end), "{end} ms");
        assert_eq!((of_run("transfers_done"), of_run("transfers_begun")), (Some(2.0), Some(2.0)));
        let last = ["fetch.1", "fetch.2"]
            .map(|name| value(results, Kind::Flow, name, "completion_max_ms").unwrap())
            .into_iter()
            .fold(0.0, f64::max);
        assert!((end - last).abs() < 0.005 * end, "{end} ms, the last took {last} ms");
        for name in ["fetch.1", "fetch.2"] {
            let goodput = value(results, Kind::Flow, name, "goodput_total_mbps").unwrap();
            assert!((goodput * end - 8e3).abs() < 1e-6, "8 Mbit in {end} ms is not {goodput}");
        }
        let utilisation = value(results, Kind::Queue, "queue", "utilisation").unwrap();
        assert!((0.95..=1.0).contains(&utilisation), "{utilisation} of the time until the end");

        let series = results.series(0).unwrap();
        let t_s = &series[0].t_s;
        assert_eq!(t_s.len(), (end / 100.0).ceil() as usize);
        assert!((t_s.last().unwrap() * 1e3 - end).abs() < 1e-6);
        // The last row is short, and its rate is of its own length.
        let link = series.iter().find(|one| one.name == "queue").unwrap();
        let rates = link.column("throughput_mbps").unwrap();
        assert!(rates.iter().all(|rate| rate.unwrap() < 8.5), "{rates:?}");
    });
}

#[test]
fn a_run_at_its_cap_counts_what_is_open() {
    let endless = Overrides { set: vec!["flow.fetch.bytes=3MB".into()], ..Overrides::default() };
    let shortened = Overrides { shorten: Some(Span::from_secs(4)), ..endless };
    let text = STUDY.to_owned()
        + "[[claim]]\nid = \"C\"\ntext = \"t\"\nexpect = \"completion_mean(fetch) < 1 s\"\n";
    ran(&text, &shortened, |_, results| {
        let of_run = |metric| value(results, Kind::Run, "", metric);
        assert_eq!(of_run("end_ms"), Some(4000.0));
        assert_eq!((of_run("transfers_done"), of_run("transfers_begun")), (Some(0.0), Some(2.0)));
        let claim = &results.claims.as_ref().unwrap().claims[0];
        assert_eq!(claim.verdict, Verdict::Untestable);
        assert!(claim.checks[0].reason.as_ref().unwrap().contains("0 of 2"), "{claim:?}");
    });
}

#[test]
fn a_run_is_named_by_what_ends_it_only_if_that_is_given() {
    let id = |text: &str| {
        let overrides = Overrides::default();
        let study = Study::parse("until.toml", text, Path::new(""), &overrides).unwrap();
        study.plan().runs[0].id
    };
    let without = STUDY.replace("until = \"transfers done\"\n", "");
    assert_eq!(id(&without), id(&STUDY.replace("transfers done", "duration")));
    assert_ne!(id(&without), id(STUDY));
}

#[test]
fn what_never_ends_is_one_error_at_its_key() {
    let error = |from: &str, to: &str| {
        let text = STUDY.replace(from, to);
        let study = Study::parse("until.toml", &text, Path::new(""), &Overrides::default());
        study.expect_err("it makes no sense").to_string()
    };
    let none = error("bytes = \"1MB\"\n", "");
    assert!(none.contains("scenario.until: no flow has a transfer that could be done"), "{none}");
    let arrivals = "app = \"arrivals\"\nsizes = \"10kB\"\narrivals_per_second = 5";
    let for_ever = error("app = \"ping\"", arrivals);
    assert!(for_ever.contains("scenario.until: the transfers of flow 'probe' come"), "{for_ever}");
    let word = error("transfers done", "transfers over");
    assert!(word.contains("transfers done"), "{word}");
    let zero = error("app = \"ping\"", &format!("{arrivals}\ntransfers = 0"));
    assert!(zero.contains("transfers: is '0' (allowed"), "{zero}");
    assert!(!zero.contains("scenario.until"), "{zero}");
}
