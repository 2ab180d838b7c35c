//! Results of the program that Scherrer et al. published with "Model-Based Insights on the
//! Performance, Fairness, and Stability of BBR" (IMC 2022), with the settings of its
//! `model_validation_100Mbps_10ms`: ten senders, 100 Mbit/s, 10 ms on the bottleneck and 5 to 10 ms
//! before it, nine seconds of which the first four are left out.

mod collect;

use sojourn_cca::Config as Cca;
use sojourn_core::{Rate, Span};
use sojourn_fluid::{Form, Options};
use sojourn_link::RateConfig;
use sojourn_metrics::RunMetrics;
use sojourn_qdisc::Config as Queue;
use sojourn_scenario::{App, Checked, Flow, Host, Link, Scenario, Until};

/// Tenths of a millisecond before the bottleneck, as the program draws them from its seed.
const BEFORE: [u64; 10] = [57, 92, 88, 63, 75, 72, 83, 89, 55, 51];

fn scenario(ccas: &[&str], queue: &str) -> Checked {
    let half = Span::from_millis(10);
    let unlimited = |name: String, delay| {
        let queue = Queue::parse("pfifo").expect("a queue");
        Link::new(&name, queue, RateConfig::Unlimited, delay)
    };
    let rate = RateConfig::fixed(Rate::from_bps(100_000_000)).expect("a rate");
    let mut links =
        vec![Link::new("bottleneck", Queue::parse(queue).expect("a queue"), rate, half)];
    let mut flows = Vec::new();
    for (at, tenths) in BEFORE.iter().enumerate() {
        let before = Span::from_micros(100 * tenths);
        let there = links.len() as u16;
        links.push(unlimited(format!("to {at}"), before));
        links.push(unlimited(format!("from {at}"), before + half));
        let cca = Cca::parse(ccas[at * ccas.len() / BEFORE.len()]).expect("a control");
        let app = App::bulk(cca, Default::default());
        flows.push(Flow::new(&format!("{at}"), app, &[there, 0], &[there + 1]));
    }
    let name = |name: &str| Host { name: name.into() };
    Scenario {
        duration: Span::from_secs(9),
        until: Until::Duration,
        warmup: Span::from_secs(4),
        step: Span::from_millis(100),
        hosts: vec![name("left"), name("right")],
        links,
        carriers: vec![],
        changes: vec![],
        flows,
    }
    .checked()
    .expect("a scenario")
}

fn run(scenario: &Checked, seed: u64) -> RunMetrics {
    let options = Options { form: Form::Scherrer, ..Options::default() };
    collect::run(scenario, seed, &options).0
}

/// Scherrer et al., equation 1: x = w/τ of flows with a window, so the window is in flight, on the way as well as in the
/// queue.
#[test]
fn the_window_is_in_flight() {
    let run = run(&scenario(&["reno"], "pfifo limit 83"), 1);
    for flow in &run.flows {
        let value = |metric: &str| flow.value(metric).expect("known");
        let (flight, window) = (value("inflight_mean_pkts"), value("cwnd_mean_pkts"));
        assert!((flight / window - 1.0).abs() < 0.05, "{flight} of {window}");
    }
}

/// Packets that the queue holds at most: 83 are one bandwidth-delay product of the bottleneck's own delay.
#[derive(Clone, Copy, Debug)]
enum Limit {
    DropTail(u32),
    Red(u32),
}

use Limit::{DropTail, Red};

/// What the authors' program gives with its seed 1: mean queue in packets, Jain's index of what was sent,
/// utilisation, and the share of losses, under drop-tail by its smooth form.
struct Row {
    limit: Limit,
    ccas: &'static [&'static str],
    values: [f64; 4],
}

const fn row(limit: Limit, ccas: &'static [&'static str], values: [f64; 4]) -> Row {
    Row { limit, ccas, values }
}

const ROWS: [Row; 40] = [
    // Drop-tail of 0.1 link-delay BDP.
    row(DropTail(8), &["bbr"], [8.0000, 0.979559, 1.000000, 0.207024]),
    row(DropTail(8), &["cubic", "reno"], [1.3354, 0.926626, 0.935717, 0.001819]),
    row(DropTail(8), &["bbr", "cubic"], [8.0000, 0.618401, 1.000000, 0.191491]),
    row(DropTail(8), &["bbr", "reno"], [8.0000, 0.550279, 1.000000, 0.192797]),
    row(DropTail(8), &["bbr", "bbr2"], [8.0000, 0.667331, 1.000000, 0.197014]),
    row(DropTail(8), &["bbr2"], [2.8693, 0.994521, 0.963872, 0.008306]),
    row(DropTail(8), &["bbr2", "cubic"], [5.2090, 0.881661, 0.976746, 0.002134]),
    row(DropTail(8), &["bbr2", "reno"], [1.6925, 0.974460, 0.927061, 0.004530]),
    // Drop-tail of 0.5 link-delay BDP.
    row(DropTail(41), &["bbr"], [41.0000, 0.979559, 1.000000, 0.207025]),
    row(DropTail(41), &["cubic", "reno"], [16.2070, 0.932887, 0.988289, 0.001712]),
    row(DropTail(41), &["bbr", "cubic"], [41.0000, 0.605434, 1.000000, 0.191568]),
    row(DropTail(41), &["bbr", "reno"], [41.0000, 0.546715, 1.000000, 0.192732]),
    row(DropTail(41), &["bbr", "bbr2"], [40.9999, 0.659716, 1.000000, 0.196574]),
    row(DropTail(41), &["bbr2"], [26.7417, 0.995708, 0.971925, 0.006160]),
    row(DropTail(41), &["bbr2", "cubic"], [33.2816, 0.952974, 0.984449, 0.001184]),
    row(DropTail(41), &["bbr2", "reno"], [24.5644, 0.973949, 0.975833, 0.004215]),
    // Drop-tail of 4.0 link-delay BDP.
    row(DropTail(332), &["bbr"], [329.1744, 0.704201, 1.000000, 0.025282]),
    row(DropTail(332), &["cubic", "reno"], [249.3050, 0.849092, 1.000000, 0.000517]),
    row(DropTail(332), &["bbr", "cubic"], [328.1373, 0.477080, 1.000000, 0.020086]),
    row(DropTail(332), &["bbr", "reno"], [328.6507, 0.489624, 1.000000, 0.023076]),
    row(DropTail(332), &["bbr", "bbr2"], [324.4223, 0.607120, 1.000000, 0.036090]),
    row(DropTail(332), &["bbr2"], [114.0485, 0.993083, 0.973653, 0.000000]),
    row(DropTail(332), &["bbr2", "cubic"], [219.4511, 0.950355, 1.000000, 0.000519]),
    row(DropTail(332), &["bbr2", "reno"], [265.3497, 0.927258, 1.000000, 0.000743]),
    // Drop-tail of 8.0 link-delay BDP.
    row(DropTail(664), &["bbr"], [341.7737, 0.697933, 1.000000, 0.000000]),
    row(DropTail(664), &["cubic", "reno"], [393.0034, 0.972695, 1.000000, 0.000793]),
    row(DropTail(664), &["bbr", "cubic"], [444.5556, 0.911653, 1.000000, 0.000986]),
    row(DropTail(664), &["bbr", "reno"], [428.4587, 0.731315, 1.000000, 0.000000]),
    row(DropTail(664), &["bbr", "bbr2"], [345.3988, 0.843200, 0.998950, 0.000000]),
    row(DropTail(664), &["bbr2"], [351.8127, 0.979320, 0.975423, 0.000000]),
    row(DropTail(664), &["bbr2", "cubic"], [410.9318, 0.997906, 1.000000, 0.000866]),
    row(DropTail(664), &["bbr2", "reno"], [556.5961, 0.870329, 1.000000, 0.000331]),
    // RED of 1.0 link-delay BDP.
    row(Red(83), &["bbr"], [17.1008, 0.979559, 1.000000, 0.207013]),
    row(Red(83), &["cubic", "reno"], [0.1003, 0.816721, 0.950087, 0.001281]),
    row(Red(83), &["bbr", "cubic"], [15.8100, 0.613331, 1.000000, 0.191857]),
    row(Red(83), &["bbr", "reno"], [15.8500, 0.534304, 1.000000, 0.192640]),
    row(Red(83), &["bbr", "bbr2"], [16.1501, 0.664120, 1.000000, 0.196844]),
    row(Red(83), &["bbr2"], [0.7443, 0.988986, 0.953315, 0.009835]),
    row(Red(83), &["bbr2", "cubic"], [0.2998, 0.763106, 0.957907, 0.003857]),
    row(Red(83), &["bbr2", "reno"], [0.5544, 0.863250, 0.952729, 0.007199]),
];

/// Mean queue, Jain's index, utilisation and losses of a run.
fn measured(ccas: &[&str], queue: &str, seed: u64) -> [f64; 4] {
    let run = run(&scenario(ccas, queue), seed);
    let value = |name: &str| run.links[0].value(name).expect("a value");
    let goodput = run.flows.iter().map(|flow| flow.value("goodput_mbps").expect("a rate"));
    let (sum, squares) = goodput.fold((0.0, 0.0), |(sum, squares), x| (sum + x, squares + x * x));
    let jain = sum * sum / 10.0 / squares;
    [value("queue_mean_pkts"), jain, value("utilisation"), value("drop_share")]
}

/// How far a run is from the row, as shares of its values.
fn compare(row: &Row) -> [f64; 4] {
    let queue = match row.limit {
        DropTail(packets) => format!("pfifo limit {packets}"),
        Red(packets) => format!("red limit {} avpkt 1514", packets * 1514),
    };
    let values = measured(row.ccas, &queue, 1);
    eprintln!("{queue}, {:?}: {values:.6?} of {:.6?}", row.ccas, row.values);
    for (value, published) in values.iter().zip(row.values) {
        // What left the queue is compared with what was sent, so Jain's index moves by a thousandth.
        let is_near = (value - published).abs() <= 0.015 * published.abs() + 1e-6;
        assert!(is_near, "{:?} under {queue}: {value} of {published}", row.ccas);
    }
    core::array::from_fn(|at| (values[at] - row.values[at]).abs() / row.values[at].max(1e-4))
}

#[test]
fn some_published_rows_come_out_again() {
    let few = [(DropTail(41), "bbr"), (DropTail(332), "cubic"), (Red(83), "bbr2")];
    for (limit, cca) in few {
        let alike =
            |row: &&Row| format!("{:?}", row.limit) == format!("{limit:?}") && row.ccas[0] == cca;
        compare(ROWS.iter().find(alike).expect("a row"));
    }
}

/// `cargo test -p sojourn-fluid --test published -- --ignored --nocapture` prints all of them.
#[test]
#[ignore = "takes some minutes"]
fn all_published_rows_come_out_again() {
    let rows: Vec<[f64; 4]> = ROWS.iter().map(compare).collect();
    for (at, what) in ["mean queue", "Jain's index", "utilisation", "losses"].iter().enumerate() {
        let mut off: Vec<f64> = rows.iter().map(|row| row[at]).collect();
        off.sort_by(f64::total_cmp);
        let (median, largest) = (off[off.len() / 2], off[off.len() - 1]);
        eprintln!(
            "{what}: {:.3} % off in the median, {:.2} % at most",
            100.0 * median,
            100.0 * largest
        );
    }
}
