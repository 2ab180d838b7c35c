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
    let flows: Vec<Stream<'_>> = series
        .iter()
        .filter(|one| one.kind == Kind::Flow)
        .filter_map(|one| {
            let flow = scenario.flows.iter().find(|f| f.name == one.name && f.cca.is_some())?;
            Some((one, flow.is_up))
        })
        .enumerate()
        .map(|(at, (series, is_up))| Stream { socket: at + 5, series, is_up })
        .collect();
    let of_way = |is_up: bool| flows.iter().filter(|flow| flow.is_up == is_up).count();
    let is_both = of_way(true) > 0 && of_way(false) > 0;
    // iperf3's client sends, or receives with --reverse, or does both with --bidir, and then the sums
    // of what it receives have names of their own.
    let sums: &[(bool, &str)] = match (is_both, of_way(false) > 0) {
        (true, _) => &[(true, ""), (false, "_bidir_reverse")],
        (false, is_reverse) => &[(!is_reverse, "")],
    };
    let cca = flows.iter().find_map(|one| {
        scenario.flows.iter().find(|flow| flow.name == one.series.name)?.cca.clone()
    });
    let rows = results.table.run(run);
    let of_run = rows.iter().find(|row| row.kind == Kind::Run);
    let end_ms = of_run.and_then(|row| results.table.value(row, "end_ms"));
    let length_s = end_ms.map_or(scenario.duration_s, |ms| ms / 1e3);
    let whole_seconds = length_s.floor() as usize;
    let intervals: Vec<Value> = (0..whole_seconds)
        .map(|second| {
            let (start, end) = (second as f64, second as f64 + 1.0);
            let streams: Vec<Value> = flows.iter().map(|one| interval(one, start, end)).collect();
            let mut interval = json!({ "streams": streams });
            for (is_up, suffix) in sums {
                interval[format!("sum{suffix}")] = sum(&streams, *is_up, start, end);
            }
            interval
        })
        .collect();
    let streams: Vec<Value> = flows
        .iter()
        .map(|one| {
            let is_its = |row: &&Row| row.kind == Kind::Flow && row.name == one.series.name;
            stream(results, one, rows.iter().find(is_its), length_s)
        })
        .collect();
    let total = |end: &str, is_up: bool| {
        let of = |key: &str| added(streams.iter().map(|stream| &stream[end]), key, is_up);
        let bytes = of("bytes");
        let mut total = json!({
            "start": 0.0, "end": length_s, "seconds": length_s,
            "bytes": bytes, "bits_per_second": bytes as f64 * 8.0 / length_s, "sender": is_up,
        });
        if end == "sender" {
            total["retransmits"] = json!(of("retransmits"));
        }
        total
    };
    let connected: Vec<Value> = flows
        .iter()
        .map(|one| json!({ "socket": one.socket, "remote_host": one.series.name, "remote_port": 5201 }))
        .collect();
    let mut end = json!({
        "streams": streams,
        "sender_tcp_congestion": cca,
        "receiver_tcp_congestion": cca,
    });
    for (is_up, suffix) in sums {
        end[format!("sum_sent{suffix}")] = total("sender", *is_up);
        end[format!("sum_received{suffix}")] = total("receiver", *is_up);
    }
    Some(json!({
        "start": {
            "connected": connected,
            "version": "iperf 3.x (Sojourn)",
            "system_info": match scenario.engine.as_deref() {
                None => format!("simulated, models {}", results.plan.model),
                Some(engine) => format!("engine {engine}, models {}", results.plan.model),
            },
            "test_start": {
                "protocol": "TCP", "num_streams": of_way(true).max(of_way(false)), "blksize": 131_072, "omit": 0,
                "duration": scenario.duration_s, "bytes": 0, "blocks": 0,
                "reverse": u8::from(!is_both && of_way(false) > 0), "bidir": u8::from(is_both),
            },
        },
        "intervals": intervals,
        "end": end,
    }))
}

/// A flow over TCP.
struct Stream<'a> {
    socket: usize,
    series: &'a Series,
    /// Whether the client sends.
    is_up: bool,
}

/// A sum over the streams of one way.
fn added<'a>(streams: impl Iterator<Item = &'a Value>, key: &str, is_up: bool) -> u64 {
    streams
        .filter(|stream| stream["sender"] == is_up)
        .filter_map(|stream| stream[key].as_u64())
        .sum()
}

/// A count, as iperf3 has it.
fn whole(value: f64) -> u64 {
    value.round() as u64
}

/// The last second before `end`, as far as it consists of whole steps.
fn interval(stream: &Stream<'_>, start: f64, end: f64) -> Value {
    let one = stream.series;
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
        "socket": stream.socket, "start": start, "end": end, "seconds": end - start,
        "bytes": whole(bytes), "bits_per_second": bytes * 8.0 / (end - start),
        "retransmits": whole(all("retransmits").iter().sum()),
        "snd_cwnd": last("cwnd_pkts").map(|packets| whole(packets * MSS)),
        "snd_wnd": last("rwnd_bytes").map(whole),
        "rtt": last("srtt_ms").map(|ms| whole(ms * 1e3)),
        "pmtu": 1500, "omitted": false, "sender": stream.is_up,
    })
}

fn sum(streams: &[Value], is_up: bool, start: f64, end: f64) -> Value {
    let of = |key: &str| added(streams.iter(), key, is_up);
    let bytes = of("bytes");
    json!({
        "start": start, "end": end, "seconds": end - start, "bytes": bytes,
        "bits_per_second": bytes as f64 * 8.0 / (end - start), "retransmits": of("retransmits"),
        "omitted": false, "sender": is_up,
    })
}

fn stream(results: &Results, of: &Stream<'_>, row: Option<&Row>, seconds: f64) -> Value {
    let one = of.series;
    let metric = |name: &str| row.and_then(|row| results.table.value(row, name));
    let known = |name: &str| -> Vec<f64> {
        let column = one.column(name).unwrap_or(&[]).iter().flatten().copied();
        column.filter(|value| value.is_finite()).collect()
    };
    let most = |name: &str| known(name).into_iter().reduce(f64::max);
    let micros = |ms: Option<f64>| ms.map(|ms| whole(ms * 1e3));
    let bytes = whole(metric("delivered_bytes").unwrap_or(0.0));
    // In both, iperf3 says whether its client is the sender.
    let received = json!({
        "socket": of.socket, "start": 0.0, "end": seconds, "seconds": seconds, "bytes": bytes,
        "bits_per_second": bytes as f64 * 8.0 / seconds, "sender": of.is_up,
    });
    let mut sent = received.clone();
    sent["retransmits"] = json!(whole(metric("retransmits").unwrap_or(0.0)));
    sent["max_snd_cwnd"] = json!(most("cwnd_pkts").map(|packets| whole(packets * MSS)));
    sent["max_snd_wnd"] = json!(most("rwnd_bytes").map(whole));
    // Like iperf3's they are of the smoothed round-trip time whenever it was looked at, here at each step, and of the
    // whole run.
    let srtt = known("srtt_ms");
    let mean = srtt.iter().sum::<f64>() / srtt.len() as f64;
    sent["max_rtt"] = json!(micros(srtt.iter().copied().reduce(f64::max)));
    sent["min_rtt"] = json!(micros(srtt.iter().copied().reduce(f64::min)));
    sent["mean_rtt"] = json!(micros(Some(mean).filter(|mean| mean.is_finite())));
    json!({ "sender": sent, "receiver": received })
}
