//! A run as a flent data file, format version 4 (doc/data-format.rst of flent), which flent's own
//! plots open: `ping`, `tcp_ndown` and others read series of these names.

use std::collections::BTreeMap;
use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Map, Value, json};
use sojourn_study::results::{Kind, Results, Series, StepValues};

use crate::nearby::nearby;

/// The beginning of every run in seconds since 1970, because a run has no date: 2000-01-01.
const EPOCH: f64 = 946_684_800.0;

/// As flent calls the directions of data, seen from the client.
const WAYS: [&str; 2] = ["download", "upload"];

/// Gzipped JSON for `NAME.flent.gz`; empty if the results have no such run.
///
/// Bulk flows become `TCP download::N` or `TCP upload::N` in Mbit/s, each way with its sum and average;
/// others over TCP, which flent has no such test for, `Flow …`; pings `Ping (ms) ICMP`, queues
/// `Queue …`. Steps without a value are `null`, and raw values hold only what was measured.
pub fn flent(results: &Results, run: u32, series: &[Series]) -> Vec<u8> {
    let Some(value) = data(results, run, series) else {
        return Vec::new();
    };
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(value.to_string().as_bytes()).expect("a Vec takes every byte");
    encoder.finish().expect("a Vec takes every byte")
}

fn data(results: &Results, run: u32, series: &[Series]) -> Option<Value> {
    let planned = results.plan.runs.get(run as usize)?;
    let scenario = results.plan.scenarios.get(planned.scenario as usize)?;
    let times = series.iter().map(|one| &one.t_s).max_by_key(|t_s| t_s.len())?;
    let length = times.last().copied().unwrap_or(0.0);

    let mut results_of = Map::new();
    let mut raw = Map::new();
    let mut meta = Map::new();
    let mut add = |name: String, units: &str, t_s: &[f64], values: &[Option<f64>]| {
        let known = || {
            t_s.iter()
                .zip(values)
                .filter_map(|(t, value)| Some((t, value.filter(|v| v.is_finite())?)))
        };
        let mut column: Vec<Value> = values
            .iter()
            .map(|value| value.filter(|v| v.is_finite()).map_or(Value::Null, |v| json!(v)))
            .collect();
        column.resize(times.len(), Value::Null);
        let raw_values: Vec<Value> =
            known().map(|(t, value)| json!({ "t": EPOCH + t, "val": value })).collect();
        let of = || known().map(|(_, value)| value);
        if raw_values.is_empty() {
            return;
        }
        let mean = of().sum::<f64>() / raw_values.len() as f64;
        meta.insert(
            name.clone(),
            json!({
                "UNITS": units,
                "MEAN_VALUE": mean,
                "MIN_VALUE": of().fold(f64::INFINITY, f64::min),
                "MAX_VALUE": of().fold(f64::NEG_INFINITY, f64::max),
            }),
        );
        results_of.insert(name.clone(), Value::Array(column));
        raw.insert(name, Value::Array(raw_values));
    };
    let all = |values: &StepValues| -> Vec<Option<f64>> { values.iter().collect() };
    // Downloads, then uploads.
    let mut streams: [Vec<&StepValues>; 2] = [Vec::new(), Vec::new()];
    let mut pings = 0;
    let mut last = 0;
    for one in series {
        let flow = nearby(&scenario.flows, &mut last, |flow| flow.name == one.name);
        let flow = flow.map(|at| &scenario.flows[at]);
        match one.kind {
            Kind::Flow if flow.is_some_and(|flow| flow.cca.is_some()) => {
                if let (Some(values), Some(flow)) = (one.column("goodput_mbps"), flow) {
                    let streams = &mut streams[usize::from(flow.is_up)];
                    let name = match flow.app == "bulk" {
                        true => {
                            streams.push(values);
                            format!("TCP {}::{}", WAYS[usize::from(flow.is_up)], streams.len())
                        }
                        false => format!("Flow {} goodput", one.name),
                    };
                    add(name, "Mbits/s", &one.t_s, &all(values));
                }
            }
            Kind::Flow if flow.is_some_and(|flow| flow.app == "ping") => {
                if let Some(values) = one.column("rtt_max_ms") {
                    let again = if pings == 0 { String::new() } else { format!("::{}", pings + 1) };
                    pings += 1;
                    add(format!("Ping (ms) ICMP{again}"), "ms", &one.t_s, &all(values));
                }
            }
            Kind::Queue => {
                for (column, what, units) in
                    [("queue_pkts", "packets", "packets"), ("sojourn_max_ms", "sojourn", "ms")]
                {
                    if let Some(values) = one.column(column) {
                        add(format!("Queue {} {what}", one.name), units, &one.t_s, &all(values));
                    }
                }
            }
            _ => {}
        }
    }
    if pings == 0 {
        // Flent's plots need a ping; without one, the round-trip times of the first flow take its
        // place.
        let of_flow = series.iter().find(|one| one.kind == Kind::Flow);
        if let Some((one, values)) = of_flow.and_then(|one| Some((one, one.column("rtt_max_ms")?)))
        {
            add("Ping (ms) ICMP".into(), "ms", &one.t_s, &all(values));
        }
    }
    for (way, streams) in WAYS.iter().zip(&streams).filter(|(_, streams)| !streams.is_empty()) {
        let sum = |at: usize| -> Option<f64> {
            let known = streams.iter().filter_map(|values| values.get(at));
            known.reduce(|a, b| a + b)
        };
        let sums: Vec<Option<f64>> = (0..times.len()).map(sum).collect();
        add(format!("TCP {way} sum"), "Mbits/s", times, &sums);
        let average: Vec<Option<f64>> =
            sums.iter().map(|sum| sum.map(|sum| sum / streams.len() as f64)).collect();
        add(format!("TCP {way} avg"), "Mbits/s", times, &average);
    }
    let [downloads, uploads] = streams.map(|streams| streams.len());
    // The test of flent whose plots read these series. Of those with streams both ways, the plots of
    // totals of this one read their sums.
    let test = match (downloads, uploads) {
        (0, 0) => "ping",
        (_, 0) => "tcp_ndown",
        (0, _) => "tcp_nup",
        _ => "rrul_be_nflows",
    };
    let mut parameters = Map::new();
    for (name, streams) in [("download_streams", downloads), ("upload_streams", uploads)] {
        if streams > 0 {
            parameters.insert(name.to_owned(), json!(streams.to_string()));
        }
    }
    let factors: BTreeMap<&str, &str> = results
        .plan
        .factors
        .iter()
        .zip(&scenario.factors)
        .map(|(factor, value)| (factor.name.as_str(), &value[..]))
        .collect();
    let stamp = "2000-01-01T00:00:00.000000Z";
    let queues: Vec<Value> = scenario
        .queues
        .iter()
        .map(|queue| json!({ "name": queue.name, "qdisc": queue.queue }))
        .collect();
    Some(json!({
        "version": 4,
        "x_values": times,
        "results": results_of,
        "raw_values": raw,
        "metadata": {
            "NAME": test,
            "TITLE": format!("{}, seed {}", results.plan.title, planned.seed),
            "DATA_FILENAME": format!("{}.flent.gz", planned.id),
            "NOTE": factors.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(", "),
            "HOST": "simulated",
            "HOSTS": ["simulated"],
            "LOCAL_HOST": "simulated",
            "LENGTH": length.round().max(1.0) as u64,
            "TOTAL_LENGTH": length.round().max(1.0) as u64,
            "STEP_SIZE": scenario.step_s,
            "TIME": stamp,
            "T0": stamp,
            "IP_VERSION": 4,
            "FLENT_VERSION": "2.1.1",
            "EGRESS_INFO": { "qdiscs": queues },
            "TEST_PARAMETERS": parameters,
            "SERIES_META": meta,
        },
    }))
}
