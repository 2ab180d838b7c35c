//! A run as `iperf3 --json` would have reported it, a stream for each TCP flow. Programs that read
//! iperf3's output can read this; what a simulation does not know (CPU use, sockets) is left out.

use serde_json::{Value, json};
use sojourn_study::results::{Kind, Results, Row, Series};

/// The segment size with which windows are converted from packets to bytes.
const MSS: f64 = 1448.0;

/// JSON text; empty if the results have no such run.
pub fn iperf3(results: &Results, run: u32, series: &[Series]) -> String {
    data(results, run, series).map_or(String::new(), |value| format!("{value:#}\n"))
}

fn data(results: &Results, run: u32, series: &[Series]) -> Option<Value> {
    let planned = results.plan.runs.get(run as usize)?;
    let scenario = results.plan.scenarios.get(planned.scenario as usize)?;
    let flows: Vec<(usize, &Series)> = series
        .iter()
        .filter(|one| one.kind == Kind::Flow)
        .filter(|one| scenario.flows.iter().any(|f| f.name == one.name && f.cca.is_some()))
        .enumerate()
        .map(|(at, one)| (at + 5, one))
        .collect();
    let cca = flows
        .iter()
        .find_map(|(_, one)| scenario.flows.iter().find(|flow| flow.name == one.name)?.cca.clone());
    let rows = results.table.run(run);
    let of_run = rows.iter().find(|row| row.kind == Kind::Run);
    let end_ms = of_run.and_then(|row| results.table.value(row, "end_ms"));
    let length_s = end_ms.map_or(scenario.duration_s, |ms| ms / 1e3);
    let whole_seconds = length_s.floor() as usize;
    let intervals: Vec<Value> = (0..whole_seconds)
        .map(|second| {
            let (start, end) = (second as f64, second as f64 + 1.0);
            let streams: Vec<Value> =
                flows.iter().map(|(socket, one)| interval(*socket, one, start, end)).collect();
            json!({ "streams": streams, "sum": sum(&streams, start, end) })
        })
        .collect();
    let streams: Vec<Value> = flows
        .iter()
        .map(|(socket, one)| {
            let row = rows.iter().find(|row| row.kind == Kind::Flow && row.name == one.name);
            stream(results, *socket, one, row, length_s)
        })
        .collect();
    let total = |end: &str| {
        let of = |key: &str| -> f64 {
            streams.iter().filter_map(|stream| stream[end][key].as_f64()).sum()
        };
        json!({
            "start": 0.0, "end": length_s, "seconds": length_s,
            "bytes": of("bytes"), "bits_per_second": of("bits_per_second"),
            "retransmits": of("retransmits"), "sender": end == "sender",
        })
    };
    let connected: Vec<Value> = flows
        .iter()
        .map(|(socket, one)| json!({ "socket": socket, "remote_host": one.name, "remote_port": 5201 }))
        .collect();
    Some(json!({
        "start": {
            "connected": connected,
            "version": "iperf 3.x (Sojourn)",
            "system_info": format!("simulated, models {}", results.plan.model),
            "test_start": {
                "protocol": "TCP", "num_streams": flows.len(), "blksize": 131_072, "omit": 0,
                "duration": scenario.duration_s, "bytes": 0, "blocks": 0, "reverse": 0,
            },
        },
        "intervals": intervals,
        "end": {
            "streams": streams,
            "sum_sent": total("sender"),
            "sum_received": total("receiver"),
            "sender_tcp_congestion": cca,
            "receiver_tcp_congestion": cca,
        },
    }))
}

/// The last second before `end`, as far as it consists of whole steps.
fn interval(socket: usize, one: &Series, start: f64, end: f64) -> Value {
    let inside: Vec<usize> = (0..one.t_s.len())
        .filter(|at| one.t_s[*at] > start + 1e-9 && one.t_s[*at] <= end + 1e-9)
        .collect();
    let step = match one.t_s[..] {
        [first, second, ..] => second - first,
        _ => end - start,
    };
    let all = |name: &str| -> Vec<f64> {
        let column = one.column(name).unwrap_or(&[]);
        inside.iter().filter_map(|at| column.get(*at).copied().flatten()).collect()
    };
    let last = |name: &str| all(name).last().copied();
    let bytes = all("goodput_mbps").iter().sum::<f64>() * step * 1e6 / 8.0;
    json!({
        "socket": socket, "start": start, "end": end, "seconds": end - start,
        "bytes": bytes.round(), "bits_per_second": bytes * 8.0 / (end - start),
        "retransmits": all("retransmits").iter().sum::<f64>(),
        "snd_cwnd": last("cwnd_pkts").map(|packets| (packets * MSS).round()),
        "snd_wnd": last("rwnd_bytes").map(f64::round),
        "rtt": last("srtt_ms").map(|ms| (ms * 1e3).round()),
        "pmtu": 1500, "omitted": false, "sender": true,
    })
}

fn sum(streams: &[Value], start: f64, end: f64) -> Value {
    let of = |key: &str| -> f64 { streams.iter().filter_map(|stream| stream[key].as_f64()).sum() };
    json!({
        "start": start, "end": end, "seconds": end - start, "bytes": of("bytes"),
        "bits_per_second": of("bits_per_second"), "retransmits": of("retransmits"),
        "omitted": false, "sender": true,
    })
}

fn stream(
    results: &Results,
    socket: usize,
    one: &Series,
    row: Option<&Row>,
    seconds: f64,
) -> Value {
    let metric = |name: &str| row.and_then(|row| results.table.value(row, name));
    let most = |name: &str| {
        let known = one.column(name).unwrap_or(&[]).iter().flatten().copied();
        known.filter(|value| value.is_finite()).reduce(f64::max)
    };
    let micros = |ms: Option<f64>| ms.map(|ms| (ms * 1e3).round());
    let bytes = metric("delivered_bytes").unwrap_or(0.0);
    let end = |sender: bool| {
        json!({
            "socket": socket, "start": 0.0, "end": seconds, "seconds": seconds, "bytes": bytes,
            "bits_per_second": bytes * 8.0 / seconds, "sender": sender,
        })
    };
    let mut sent = end(true);
    sent["retransmits"] = json!(metric("retransmits").unwrap_or(0.0));
    sent["max_snd_cwnd"] = json!(most("cwnd_pkts").map(|packets| (packets * MSS).round()));
    sent["max_snd_wnd"] = json!(most("rwnd_bytes").map(f64::round));
    sent["max_rtt"] = json!(micros(metric("rtt_max_ms")));
    sent["min_rtt"] = json!(micros(metric("rtt_min_ms")));
    sent["mean_rtt"] = json!(micros(metric("rtt_mean_ms")));
    json!({ "sender": sent, "receiver": end(false) })
}
