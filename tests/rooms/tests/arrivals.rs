//! Transfers that come and go: what must hold for them in whole runs, beside other flows and
//! through every queue discipline.

use std::path::Path;

use sojourn_core::{Event, FlowId, Observer, StreamAddress, Time, Who};
use sojourn_metrics::{Collector, RunMetrics};
use sojourn_scenario::Checked;
use sojourn_study::runner::shape;
use sojourn_study::{Overrides, Study};

const ADDRESS: StreamAddress = StreamAddress { seed: 1, run: 1 };

/// Web-like transfers at half of 20 Mbit/s beside one that never ends.
fn scenario(queue: &str, cca: &str, more: &str) -> Checked {
    let ecn = if cca == "prague" { "accecn" } else { "classic" };
    let text = format!(
        "schema = 1\ntitle = \"t\"\n[scenario]\nduration = \"8s\"\nwarmup = \"1s\"\n\
         [scenario.path]\nrate = \"20Mbps\"\nrtt = \"20ms\"\nqueue = \"{queue}\"\n\
         {more}\
         [[scenario.flow]]\nname = \"web\"\napp = \"arrivals\"\ncca = \"{cca}\"\nload = \"50%\"\n\
         sizes = \"lognormal mean 30kB sigma 1.5 max 1MB\"\necn = \"{ecn}\"\n\
         [[scenario.flow]]\nname = \"bulk\"\napp = \"bulk\"\ncca = \"{cca}\"\n"
    );
    let study = Study::parse("t.toml", &text, Path::new(""), &Overrides::default());
    let study = study.unwrap_or_else(|error| panic!("{error}"));
    study.scenarios.first().expect("there is one").scenario.clone()
}

/// What was offered to the flow with this number.
struct Offered {
    flow: u32,
    transfers: Vec<(Time, u64)>,
}

impl Observer for Offered {
    fn record(&mut self, now: Time, who: Who, event: &Event<'_>) {
        if who == Who::Flow(FlowId(self.flow))
            && let Event::Opened { bytes } | Event::Refused { bytes } = event
        {
            self.transfers.push((now, *bytes));
        }
    }
}

/// A run whose invariants are checked at every step, and what was offered to flow `flow`.
fn run(scenario: &Checked, flow: u32) -> (RunMetrics, Vec<(Time, u64)>) {
    let offered = Offered { flow, transfers: Vec::new() };
    let mut observer = (Collector::new(shape(scenario)), offered);
    let outcome = sojourn_sim::run(scenario, ADDRESS, &mut observer)
        .unwrap_or_else(|violation| panic!("{violation}"));
    (observer.0.finish(outcome.end), observer.1.transfers)
}

fn value(run: &RunMetrics, flow: &str, metric: &str) -> f64 {
    let flow = run.flow(flow).unwrap_or_else(|| panic!("no flow {flow}"));
    flow.value(metric).unwrap_or_else(|| panic!("no {metric}"))
}

#[test]
fn invariants_hold_through_every_queue_and_nothing_is_faster_than_possible() {
    for queue in [
        "pfifo limit 50",
        "bfifo limit 30000",
        "codel",
        "fq_codel",
        "fq_codel limit 60 flows 4",
        "cake bandwidth 20mbit ack-filter",
        "pie",
        "fq_pie",
        "dualpi2",
        "fq",
        "red limit 400000 min 30000 max 90000 avpkt 1000 ecn",
    ] {
        for cca in ["cubic", "bbr", "prague"] {
            let (run, _) = run(&scenario(queue, cca, ""), 0);
            let name = format!("{cca} through {queue}");
            assert!(value(&run, "web", "transfers_completed") > 100.0, "{name}");
            assert_eq!(value(&run, "web", "transfers_refused"), 0.0, "{name}");
            assert!(value(&run, "web", "slowdown_min") >= 0.999, "{name}");
            assert!(value(&run, "bulk", "goodput_mbps") > 0.5, "{name}");
        }
    }
}

#[test]
fn the_same_transfers_come_whatever_else_is_in_the_world() {
    let (_, alone) = run(&scenario("pfifo limit 50", "cubic", ""), 0);
    assert!(alone.len() > 200, "{}", alone.len());
    assert_eq!(alone, run(&scenario("fq_codel", "bbr", ""), 0).1);
    let more = "[[scenario.flow]]\nname = \"first\"\napp = \"arrivals\"\n\
                arrivals_per_second = 30\nsizes = \"20kB\"\n";
    assert_eq!(alone, run(&scenario("pfifo limit 50", "cubic", more), 1).1);
}

#[test]
fn a_lone_transfer_of_the_initial_window_is_as_fast_as_can_be() {
    let text = "schema = 1\ntitle = \"t\"\n[scenario]\nduration = \"60s\"\n\
         [scenario.path]\nrate = \"unlimited\"\nrtt = \"20ms\"\nqueue = \"pfifo limit 50\"\n\
         [[scenario.flow]]\nname = \"web\"\napp = \"arrivals\"\narrivals_per_second = 5\n\
         sizes = \"cdf 1448B 50% 14480B 50% 43440B 100%\"\n";
    let study = Study::parse("t.toml", text, Path::new(""), &Overrides::default()).unwrap();
    let (run, _) = run(&study.scenarios.get(0).expect("it is one of them").scenario, 0);
    assert_eq!(
        (value(&run, "web", "slowdown_min"), value(&run, "web", "slowdown_max")),
        (1.0, 1.0)
    );
    assert_eq!((value(&run, "web", "fct_min_ms"), value(&run, "web", "fct_max_ms")), (40.0, 60.0));
}

#[test]
fn a_transfer_waits_in_the_queue_that_others_fill_unless_it_has_one_of_its_own() {
    let median = |queue| value(&run(&scenario(queue, "cubic", ""), 0).0, "web", "fct_small_p50_ms");
    let (shared, own) = (median("pfifo limit 200"), median("fq_codel"));
    assert!(shared > 2.0 * own, "{shared} ms through a shared queue, {own} ms through one's own");
}
