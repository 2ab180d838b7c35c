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

/// What the authors' program gives: mean queue in packets, Jain's index of what was sent, utilisation,
/// and the share of losses by the smooth form of drop-tail.
struct Row {
    ccas: &'static [&'static str],
    queue: f64,
    jain: f64,
    utilisation: f64,
    loss: f64,
}

const fn row(ccas: &'static [&'static str], of: [f64; 4]) -> Row {
    let [queue, jain, utilisation, loss] = of;
    Row { ccas, queue, jain, utilisation, loss }
}

/// Drop-tail of one bandwidth-delay product of the bottleneck's own delay, 83 packets.
const DROP_TAIL: [Row; 8] = [
    row(&["bbr"], [83.00, 0.9796, 1.0, 0.20703]),
    row(&["cubic", "reno"], [49.07, 0.9409, 1.0, 0.00139]),
    row(&["bbr", "cubic"], [83.00, 0.5924, 1.0, 0.19163]),
    row(&["bbr", "reno"], [83.00, 0.5407, 1.0, 0.19241]),
    row(&["bbr", "bbr2"], [83.00, 0.6518, 1.0, 0.19609]),
    row(&["bbr2"], [66.09, 0.9943, 0.9728, 0.00239]),
    row(&["bbr2", "cubic"], [64.34, 0.9953, 0.9958, 0.00054]),
    row(&["bbr2", "reno"], [53.40, 0.9911, 0.9873, 0.00312]),
];

/// Beside BBRv2 flows begin at random, so the mean of these seeds is compared.
fn mean_of(row: &Row, queue: &str, seeds: u64) -> [f64; 4] {
    let scenario = scenario(row.ccas, queue);
    let seeds = if row.ccas.contains(&"bbr2") { seeds } else { 1 };
    let mut sums = [0.0; 4];
    for seed in 1..=seeds {
        let run = run(&scenario, seed);
        let value = |name: &str| run.links[0].value(name).expect("a value");
        let goodput = run.flows.iter().map(|flow| flow.value("goodput_mbps").expect("a rate"));
        let (sum, squares) =
            goodput.fold((0.0, 0.0), |(sum, squares), x| (sum + x, squares + x * x));
        let jain = sum * sum / 10.0 / squares;
        let of = [value("queue_mean_pkts"), jain, value("utilisation"), value("drop_share")];
        for (sum, one) in sums.iter_mut().zip(of) {
            *sum += one / seeds as f64;
        }
    }
    sums
}

fn compare(rows: &[Row], queue: &str, seeds: u64) {
    for row in rows {
        let [queue, jain, utilisation, loss] = mean_of(row, queue, seeds);
        eprintln!(
            "{:?}: queue {queue:.2} of {:.2}, Jain {jain:.4} of {:.4}, utilisation {utilisation:.4} of {:.4}, loss {loss:.5} of {:.5}",
            row.ccas, row.queue, row.jain, row.utilisation, row.loss
        );
        let near = |value: f64, published: f64| (value / published - 1.0).abs() < 0.05;
        assert!(near(queue, row.queue) && near(jain, row.jain), "{:?}", row.ccas);
        assert!(near(utilisation, row.utilisation), "{:?}", row.ccas);
        // Half a packet of a thousand is what a start phase moves.
        assert!(near(loss, row.loss) || (loss - row.loss).abs() < 5e-4, "{:?}", row.ccas);
    }
}

#[test]
fn the_published_rows_come_out_again() {
    compare(&DROP_TAIL[1..3], "pfifo limit 83", 1);
    compare(&DROP_TAIL[5..6], "pfifo limit 83", 2);
}

/// `cargo test -p sojourn-fluid --test published -- --ignored --nocapture` prints all of them.
#[test]
#[ignore = "takes a minute"]
fn all_published_rows_come_out_again() {
    compare(&DROP_TAIL, "pfifo limit 83", 6);
}
