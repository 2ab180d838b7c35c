//! What the equations of "TCP BBR Performance over Wi-Fi 6" do as they are printed.

mod collect;
mod path;

use sojourn_fluid::{Form, Options, check};
use sojourn_metrics::RunMetrics;

use path::scenario;

const PRINTED: Options = Options { step: None, form: Form::AsPrinted, fineness: 1.0 };

fn run(queue: &str) -> RunMetrics {
    collect::run(&scenario(&["bbr3", "bbr3"], 20, 40, queue, 30), 1, &PRINTED).0
}

fn mean_rtt(run: &RunMetrics) -> f64 {
    run.flows[0].value("rtt_mean_ms").expect("a round trip")
}

/// Equation (16) keeps no queue above zero, so (15) gives round trips that are shorter than the path.
#[test]
fn queues_fall_below_nothing() {
    for queue in ["pfifo limit 66", "fq_codel", "cake bandwidth 20mbit"] {
        let rtt = mean_rtt(&run(queue));
        assert!(rtt < 40.0, "{queue}: {rtt} ms on a path of 40 ms");
    }
}

/// Rates and round trips swing, so the product of their means is only about the mean of their product.
#[test]
fn what_is_in_flight_is_the_rate_times_the_round_trip() {
    let run = run("pfifo limit 66");
    let value = |metric: &str| run.flows[0].value(metric).expect("known");
    let flight = value("sent_packets") / 30.0 * value("rtt_mean_ms") / 1e3;
    let told = value("inflight_mean_pkts");
    assert!((0.7..1.4).contains(&(told / flight)), "{told} for {flight}");
}

/// Nothing in (18) to (23) but the loss differs by queue, and without loss (9) to (14) know no other flow.
#[test]
fn a_queue_that_never_drops_changes_nothing() {
    let (deep, deeper) = (run("pfifo limit 100000"), run("pfifo limit 200000"));
    assert_eq!(deep.digest, deeper.digest);
}

#[test]
fn what_the_paper_has_no_equation_for_is_refused() {
    let refused = |ccas: &[&str], queue: &str| {
        let scenario = scenario(ccas, 20, 40, queue, 30);
        check(&scenario, &PRINTED).expect_err("refused").to_string()
    };
    let control = refused(&["bbr3", "cubic"], "pfifo limit 66");
    assert!(control.contains("flow '1'") && control.contains("'cubic'"), "{control}");
    let queue = refused(&["bbr3"], "red limit 400000 avpkt 1000");
    assert!(queue.contains("queue 'red'") && queue.contains("fq_codel"), "{queue}");
}
