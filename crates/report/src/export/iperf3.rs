//! A run as `iperf3 --json` would have reported it, a stream for each TCP flow. Programs that read
//! iperf3's output can read this; what a simulation does not know (CPU use, sockets) is left out. The warm-up is what
//! `--omit` leaves out: its intervals are there and say so, then time begins again, and sums are of what follows.

use serde_json::{Value, json};
use sojourn_study::results::{Kind, Results, Row, Series, StepValues};

use crate::nearby::nearby;

/// The segment size with which windows are converted from packets to bytes.
const MSS: f64 = 1448.0;

/// JSON text; empty if the results have no such run.
pub fn iperf3(results: &Results, run: u32, series: &[Series]) -> String {
    data(results, run, series).map_or(String::new(), |value| format!("{value:#}\n"))
}

fn data(results: &Results, run: u32, series: &[Series]) -> Option<Value> {
    let planned = results.plan.runs.get(run as usize)?;
    let scenario = results.plan.scenarios.get(planned.scenario as usize)?;
    let mut last = 0;
    let flows: Vec<Stream<'_>> = series
        .iter()
        .filter(|one| one.kind == Kind::Flow)
        .filter_map(|one| {
            let flow = nearby(&scenario.flows, &mut last, |flow| flow.name == one.name)?;
            Some((one, &scenario.flows[flow])).filter(|(_, flow)| flow.cca.is_some())
        })
        .enumerate()
        .map(|(at, (series, flow))| Stream {
            socket: at + 5,
            series,
            is_up: flow.is_up,
            bytes: flow.bytes,
        })
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
    let omitted_s = scenario.warmup_s.min(length_s);
    let seconds = length_s - omitted_s;
    let intervals: Vec<Value> = cuts(0.0, omitted_s, true)
        .chain(cuts(omitted_s, length_s, false))
        .map(|cut| {
            let streams: Vec<Value> = flows.iter().map(|one| interval(one, &cut)).collect();
            let mut interval = json!({ "streams": streams });
            for (is_up, suffix) in sums {
                interval[format!("sum{suffix}")] = sum(&streams, *is_up, &cut);
            }
            interval
        })
        .collect();
    let mut last = 0;
    let streams: Vec<Value> = flows
        .iter()
        .map(|one| {
            let is_its = |row: &Row| row.kind == Kind::Flow && row.name == one.series.name;
            let row = nearby(rows, &mut last, is_its).map(|at| &rows[at]);
            stream(results, one, row, omitted_s, length_s)
        })
        .collect();
    let total = |end: &str, is_up: bool| {
        let of = |key: &str| added(streams.iter().map(|stream| &stream[end]), key, is_up);
        let bytes = of("bytes");
        let mut total = json!({
            "start": 0.0, "end": seconds, "seconds": seconds,
            "bytes": bytes, "bits_per_second": bits_per_second(bytes as f64, seconds), "sender": is_up,
        });
        if end == "sender" {
            total["retransmits"] = json!(of("retransmits"));
        }
        total
    };
    // As with `iperf3 --bytes`, which is of all streams, and which takes no duration.
    let transfers: Option<u64> = flows.iter().map(|one| one.bytes).sum();
    let bytes = transfers.filter(|_| !flows.is_empty()).unwrap_or(0);
    let duration = if bytes == 0 { scenario.duration_s - omitted_s } else { 0.0 };
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
                "protocol": "TCP", "num_streams": of_way(true).max(of_way(false)), "blksize": 131_072, "omit": number(omitted_s),
                "duration": number(duration), "bytes": bytes, "blocks": 0,
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
    /// What it transfers, if that is limited.
    bytes: Option<u64>,
}

/// A part of a run, in seconds from its beginning.
struct Cut {
    start: f64,
    end: f64,
    /// The time that counts as the beginning.
    origin: f64,
    is_omitted: bool,
}

/// Whole seconds from `start` on, and what is left until `end`.
fn cuts(start: f64, end: f64, is_omitted: bool) -> impl Iterator<Item = Cut> {
    (0u32..)
        .map(move |second| start + f64::from(second))
        .take_while(move |from| from + SAME < end)
        .map(move |from| {
            let next = from + 1.0;
            let until = if next + SAME < end { next } else { end };
            Cut { start: from, end: until, origin: start, is_omitted }
        })
}

/// Times that differ by less are the same.
const SAME: f64 = 1e-9;

/// As iperf3 has it, without a fraction if there is none.
fn number(seconds: f64) -> Value {
    match seconds.fract() == 0.0 {
        true => json!(seconds as u64),
        false => json!(seconds),
    }
}

fn bits_per_second(bytes: f64, seconds: f64) -> f64 {
    if seconds > 0.0 { bytes * 8.0 / seconds } else { 0.0 }
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

/// Bytes of the steps of a stream that end after `start` and by `end`.
fn bytes_within(series: &Series, start: f64, end: f64) -> f64 {
    let Some(rates) = series.column("goodput_mbps") else { return 0.0 };
    let before = [0.0].iter().chain(&series.t_s);
    let steps = series.t_s.iter().zip(before).zip(rates.iter());
    steps
        .filter(|((until, _), _)| is_within(**until, start, end))
        .filter_map(|((until, from), rate)| Some((until - from) * rate? * 1e6 / 8.0))
        .sum()
}

fn is_within(time: f64, start: f64, end: f64) -> bool {
    time > start + SAME && time <= end + SAME
}

fn interval(stream: &Stream<'_>, cut: &Cut) -> Value {
    let one = stream.series;
    let all = |name: &str| -> Vec<f64> {
        let column = one.column(name).into_iter().flat_map(StepValues::iter);
        let inside = |time: &f64| is_within(*time, cut.start, cut.end);
        one.t_s
            .iter()
            .zip(column)
            .filter(|(time, _)| inside(time))
            .filter_map(|(_, value)| value)
            .collect()
    };
    let last = |name: &str| all(name).last().copied();
    let bytes = bytes_within(one, cut.start, cut.end);
    let seconds = cut.end - cut.start;
    json!({
        "socket": stream.socket, "start": cut.start - cut.origin, "end": cut.end - cut.origin, "seconds": seconds,
        "bytes": whole(bytes), "bits_per_second": bits_per_second(bytes, seconds),
        "retransmits": whole(all("retransmits").iter().sum()),
        "snd_cwnd": last("cwnd_pkts").map(|packets| whole(packets * MSS)),
        "snd_wnd": last("rwnd_bytes").map(whole),
        "rtt": last("srtt_ms").map(|ms| whole(ms * 1e3)),
        "pmtu": 1500, "omitted": cut.is_omitted, "sender": stream.is_up,
    })
}

fn sum(streams: &[Value], is_up: bool, cut: &Cut) -> Value {
    let of = |key: &str| added(streams.iter(), key, is_up);
    let bytes = of("bytes");
    let seconds = cut.end - cut.start;
    json!({
        "start": cut.start - cut.origin, "end": cut.end - cut.origin, "seconds": seconds, "bytes": bytes,
        "bits_per_second": bits_per_second(bytes as f64, seconds), "retransmits": of("retransmits"),
        "omitted": cut.is_omitted, "sender": is_up,
    })
}

/// The whole of a run but for its first `omitted_s`.
fn stream(
    results: &Results,
    of: &Stream<'_>,
    row: Option<&Row>,
    omitted_s: f64,
    end_s: f64,
) -> Value {
    let one = of.series;
    let metric = |name: &str| row.and_then(|row| results.table.value(row, name));
    let known = |name: &str| -> Vec<f64> {
        let column = one.column(name).into_iter().flat_map(StepValues::known);
        column.filter(|value| value.is_finite()).collect()
    };
    let most = |name: &str| known(name).into_iter().reduce(f64::max);
    let micros = |ms: Option<f64>| ms.map(|ms| whole(ms * 1e3));
    let seconds = end_s - omitted_s;
    let bytes = whole(metric("goodput_mbps").unwrap_or(0.0) * seconds * 1e6 / 8.0);
    // In both, iperf3 says whether its client is the sender.
    let received = json!({
        "socket": of.socket, "start": 0.0, "end": seconds, "seconds": seconds, "bytes": bytes,
        "bits_per_second": bits_per_second(bytes as f64, seconds), "sender": of.is_up,
    });
    let mut sent = received.clone();
    sent["retransmits"] = json!(whole(metric("retransmits_after_warmup").unwrap_or(0.0)));
    sent["max_snd_cwnd"] = json!(most("cwnd_pkts").map(|packets| whole(packets * MSS)));
    sent["max_snd_wnd"] = json!(most("rwnd_bytes").map(whole));
    // Like iperf3's they are of the smoothed round-trip time whenever it was looked at, here at each step, and of the
    // whole run with what is omitted.
    let srtt = known("srtt_ms");
    let mean = srtt.iter().sum::<f64>() / srtt.len() as f64;
    sent["max_rtt"] = json!(micros(srtt.iter().copied().reduce(f64::max)));
    sent["min_rtt"] = json!(micros(srtt.iter().copied().reduce(f64::min)));
    sent["mean_rtt"] = json!(micros(Some(mean).filter(|mean| mean.is_finite())));
    json!({ "sender": sent, "receiver": received })
}
