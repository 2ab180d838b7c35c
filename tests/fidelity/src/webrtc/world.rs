//! The same world in simulation.

use std::collections::BTreeMap;
use std::sync::Arc;

use sojourn_core::{Bytes, Rate, Span, StreamAddress};
use sojourn_host::AppModel;
use sojourn_host::apps::BulkConfig;
use sojourn_host::tcp::Config as Transport;
use sojourn_link::{LossConfig, RateConfig, RateSpec};
use sojourn_media::call::{CallConfig, CallSpec, FecScheme, Playout};
use sojourn_media::{control, source};
use sojourn_metrics::qoe::{FreezeRule, freezes};
use sojourn_scenario::{App, ExternalApp, Flow, Host, Link, Scenario, Traffic, Until};

use super::Ends;
use super::situation::{Call, Kind, Situation, Tcp};
use super::watch::{Passed, Watch};

/// The camera keeps its pace, and libvpx follows its target. Where the encoder was the limit on the quiet machine,
/// what it made in a second varied by 0.7 to 1.9 % around the mean; this one's varies by 1.6 %, and frames of the same noise that are
/// independent of each other would by 3.9 %.
/// What it shows, a film, begins again after 8.04 s with an unlike picture; it had begun 0.8 s before the call. In a second with such a cut
/// a call at 800 kbit/s carried 20 to 68 kbit more, 40 in the mean, which are frames of 8 to 14 kB there. This one has 10.7 kB, the size among
/// these with which calls at 1 Mbit/s come back to their rate as often as measured.
const SOURCE: &str = "camera cut_first=7s cut_every=8.04s cut=12kB";

/// aiortc's encoder (x264) makes key frames of 3.2 to 3.8 mean frames: what they waited in the measured queue at 4 Mbit/s, 22 to 40 kB.
const X264: &str = "statistical tau_v=0ms scale_t=0 correct=0.2 change=1000 key=3.5 height=180";

/// Calls of which it was not measured are taken to connect so long after they were started. None sends anything before.
const CONNECTS: f64 = 0.25;

/// iperf3 agrees with its other end first: by what they carried in their first second, eight flows alone began 0.2 to 0.5 s after they were started.
const TCP_CONNECTS: f64 = 0.2;
const TCP_JITTER: Span = Span::from_millis(300);

fn scenario(situation: &Situation, ends: Ends<'_>) -> Scenario {
    let span = |seconds: f64| Span::from_secs_f64(seconds);
    let half = span(situation.rtt_ms / 2e3);
    let queue = sojourn_qdisc::Config::parse(&situation.queue).expect("a discipline");
    let mut forward = Link::new("bottleneck", queue, rate(situation), half);
    forward.entry_loss = loss(situation);
    let unlimited = sojourn_qdisc::Config::parse("pfifo limit 1000").expect("a discipline");
    let back = Link::new("back", unlimited, RateConfig::Unlimited, half);
    let calls = situation.calls.iter().enumerate().map(|(n, call)| call_flow(n, call, ends(call)));
    let tcps = situation.tcp.iter().map(tcp_flow);
    Scenario {
        duration: span(situation.duration_s),
        until: Until::Duration,
        warmup: Span::ZERO,
        step: Span::from_secs(1),
        hosts: ["sender", "receiver"].map(|name| Host { name: name.into() }).into(),
        links: vec![forward, back],
        carriers: Vec::new(),
        changes: Vec::new(),
        flows: calls.chain(tcps).collect(),
    }
}

fn rate(situation: &Situation) -> RateConfig {
    let kbit = |kbps: f64| Rate::from_bps((kbps * 1e3) as u64);
    if let [(_, kbps)] = situation.rate[..] {
        return RateConfig::fixed(kbit(kbps)).expect("a positive rate");
    }
    let steps = steps(situation, &situation.rate, |kbps| format!("{kbps}kbit"));
    RateSpec::parse(&steps).expect("steps").complete(None).expect("it needs no file")
}

fn loss(situation: &Situation) -> LossConfig {
    if situation.loss.iter().all(|(_, share)| *share == 0.0) {
        return LossConfig::None;
    }
    let steps = steps(situation, &situation.loss, |share| format!("{}%", 100.0 * share));
    LossConfig::parse(&steps).expect("shares")
}

/// Values from second to second, as links write them.
fn steps(situation: &Situation, values: &[(f64, f64)], written: impl Fn(f64) -> String) -> String {
    let ends = values[1..].iter().map(|step| step.0).chain([situation.duration_s]);
    let steps = values
        .iter()
        .zip(ends)
        .map(|((from, value), to)| format!("{} {}s", written(*value), to - from));
    format!("steps {} end hold", steps.collect::<Vec<_>>().join(" "))
}

/// The model of such a call.
pub fn model_of(call: &Call) -> Arc<dyn AppModel> {
    let max_rate = Rate::from_bps((call.max_kbps * 1e3) as u64);
    let spec = match call.kind {
        Kind::Chromium | Kind::Str0m => {
            let fec = call.fec.then_some(FecScheme::Ulpfec);
            CallSpec { source: SOURCE.to_owned(), max_rate, fec, ..CallSpec::default() }
        }
        // Its encoder is rebuilt by `new_encoder`, so the source itself makes no transients.
        Kind::Aiortc => CallSpec {
            source: X264.to_owned(),
            control: "aiortc".to_owned(),
            min_rate: Rate::from_bps(500_000),
            max_rate,
            packet: Bytes::new(1328),
            new_encoder: 0.1,
            nack_again: false,
            playout: Playout::NextFrame,
            pacer_burst: Some(Span::ZERO),
            ..CallSpec::default()
        },
    };
    let source = source::kinds().parse(&spec.source).expect("a source");
    let control = control::kinds().parse(&spec.control).expect("a controller");
    Arc::new(CallConfig::new(spec, source, control, None).expect("a sound call"))
}

fn call_flow(number: usize, call: &Call, ends: Arc<dyn AppModel>) -> Flow {
    Flow {
        start: Span::from_secs_f64(call.start + call.connects_s.unwrap_or(CONNECTS)),
        start_jitter: Span::from_millis(33),
        ..Flow::new(&format!("call {number}"), App::External(ExternalApp(ends)), &[0], &[1])
    }
}

fn tcp_flow(tcp: &Tcp) -> Flow {
    let app = App::Tcp {
        traffic: Traffic::Bulk(BulkConfig::default()),
        // The kernel's arithmetic: behind 40 ms a lone CUBIC falls every 1.42 s with it, as measured, and every 1.27 s with the RFC's.
        cca: sojourn_cca::Config::parse(match tcp.cc.as_str() {
            "cubic" => "cubic-linux",
            other => other,
        })
        .expect("a controller"),
        // The machine's own kernel: without wireless networks and tunnels, and with BBR as the default controller, after which
        // a socket stays paced when iperf3 chooses another.
        transport: Transport { header_room: 192, pacing: true, ..Transport::default() },
    };
    Flow {
        start: Span::from_secs_f64(tcp.start + TCP_CONNECTS),
        start_jitter: TCP_JITTER,
        stop: Some(Span::from_secs_f64(tcp.start + tcp.dur)),
        ..Flow::new("tcp", app, &[0], &[1])
    }
}

/// Every number by name and window, the mean over seeds.
pub fn simulate(situation: &Situation, seeds: u64, ends: Ends<'_>) -> BTreeMap<String, f64> {
    let mut sums = BTreeMap::<String, f64>::new();
    let world =
        scenario(situation, ends).checked().unwrap_or_else(|e| panic!("{}: {e}", situation.id));
    for run in 0..seeds {
        let mut watch = Watch::new(&situation.rate);
        sojourn_sim::run(&world, StreamAddress { seed: 1, run }, &mut watch)
            .unwrap_or_else(|violation| panic!("{}: {violation}", situation.id));
        for (name, value) in numbers(situation, &watch) {
            *sums.entry(name).or_default() += value / seeds as f64;
        }
    }
    sums
}

fn numbers(situation: &Situation, watch: &Watch<'_>) -> BTreeMap<String, f64> {
    let mut found = BTreeMap::new();
    let tcp = situation.calls.len();
    for (window, &(from, to)) in &situation.windows {
        let mut put = |what: &str, value: f64| found.insert(format!("{what} {window}"), value);
        let media = kbps(watch, 0, from, to);
        put("media_kbps", media);
        put("tcp_kbps", kbps(watch, tcp, from, to));
        if situation.calls.len() > 1 {
            let other = kbps(watch, 1, from, to);
            put("sum_kbps", media + other);
            put("ratio", media / other);
        }
        let of_call = |passed: &&Passed| passed.flow == 0 && (from..to).contains(&passed.came);
        let mut waits: Vec<f64> =
            watch.passed.iter().filter(of_call).map(|passed| passed.wait_ms).collect();
        waits.sort_by(f64::total_cmp);
        let at = |part: f64| waits.get((part * waits.len() as f64) as usize).copied();
        put("wait_p50_ms", at(0.5).unwrap_or(f64::NAN));
        put("wait_p95_ms", at(0.95).unwrap_or(f64::NAN));
        let lost = watch.dropped.iter().filter(|(t, flow)| *flow == 0 && (from..to).contains(t));
        let lost = lost.count() as f64;
        put("loss", lost / (lost + waits.len() as f64));
        let before = |end: f64| {
            let shown = watch.decoded.iter().copied().filter(|at| at.as_secs_f64() < end);
            freezes(FreezeRule::Libwebrtc, shown).count as f64
        };
        put("freezes", before(to) - before(from));
        put("ramp_s", ramp(watch, media, situation.duration_s));
        put("period_s", period(&watch.control));
        put("slope_kbps_per_s", slope(&watch.control));
    }
    for pair in situation.rate.windows(2) {
        let (at, after) = (pair[1].0, pair[1].0 + 10.0);
        found.insert(format!("after_10s_kbps {at}"), kbps(watch, 0, after - 1.0, after));
        found.insert(format!("drained_s {at}"), drained(watch, at) - at);
        let first = decreases(&watch.control).find(|second| *second > at).unwrap_or(f64::NAN);
        found.insert(format!("first_decrease_s {at}"), first - at);
    }
    let mut seconds = (1..situation.duration_s as u32).map(f64::from);
    let fast = seconds.find(|end| kbps(watch, 0, end - 1.0, *end) >= 5400.0);
    found.insert("reaches_5400_s start".to_owned(), fast.unwrap_or(f64::NAN));
    found
}

/// When the target fell by more than 2 % at once.
fn decreases(control: &[(f64, f64, f64)]) -> impl Iterator<Item = f64> {
    control.windows(2).filter(|pair| pair[1].1 < 0.98 * pair[0].1).map(|pair| pair[1].0)
}

/// The mean time between decreases after ten seconds; those within a second are one.
fn period(control: &[(f64, f64, f64)]) -> f64 {
    let mut begins = Vec::new();
    let mut last = f64::NEG_INFINITY;
    for at in decreases(control) {
        if at - last > 1.0 {
            begins.push(at);
        }
        last = at;
    }
    begins.retain(|at| *at > 10.0);
    match begins[..] {
        [first, .., last] => (last - first) / (begins.len() - 1) as f64,
        _ => f64::NAN,
    }
}

/// The median of how fast the estimate by delay rises after ten seconds, while it does.
fn slope(control: &[(f64, f64, f64)]) -> f64 {
    let rises = control.windows(2).filter(|pair| pair[0].0 > 10.0 && pair[1].2 > pair[0].2);
    let mut rises: Vec<f64> =
        rises.map(|pair| (pair[1].2 - pair[0].2) / (pair[1].0 - pair[0].0)).collect();
    rises.sort_by(f64::total_cmp);
    rises.get(rises.len() / 2).copied().unwrap_or(f64::NAN)
}

fn kbps(watch: &Watch<'_>, flow: usize, from: f64, to: f64) -> f64 {
    let within = |passed: &&Passed| passed.flow == flow && (from..to).contains(&passed.left);
    watch.passed.iter().filter(within).map(|passed| passed.bytes).sum::<f64>() * 8e-3 / (to - from)
}

/// When the mean of a second first reaches 90 % of `steady`, in steps of 0.2 s.
fn ramp(watch: &Watch<'_>, steady: f64, end: f64) -> f64 {
    let ends = (5..(5.0 * end) as u32).map(|step| f64::from(step) / 5.0);
    let mut reached = ends.filter(|at| kbps(watch, 0, at - 1.0, *at) >= 0.9 * steady);
    reached.next().unwrap_or(f64::NAN)
}

/// When packets first wait less than 100 ms again after they waited longest.
fn drained(watch: &Watch<'_>, from: f64) -> f64 {
    let after: Vec<&Passed> = watch
        .passed
        .iter()
        .filter(|passed| passed.flow == 0 && (from..from + 20.0).contains(&passed.came))
        .collect();
    let longest = after.iter().enumerate().max_by(|a, b| a.1.wait_ms.total_cmp(&b.1.wait_ms));
    let peak = longest.map_or(0, |(at, _)| at);
    after[peak..].iter().find(|passed| passed.wait_ms < 100.0).map_or(f64::NAN, |p| p.came)
}
