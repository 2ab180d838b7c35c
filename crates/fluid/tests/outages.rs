//! A law that acts on what leaves a queue does nothing while nothing leaves.

mod collect;
mod path;

use sojourn_core::Span;
use sojourn_fluid::Options;
use sojourn_host::apps::UdpConfig;
use sojourn_link::RateSpec;
use sojourn_metrics::RunMetrics;
use sojourn_scenario::{App, Scenario};

/// CUBIC over 10 Mbit/s and 40 ms, which carry nothing from 5 to 7 s. The first third is warm-up.
fn world(queue: &str) -> Scenario {
    let mut world = path::scenario(&["cubic"], 10, 40, queue, 18).into_inner();
    world.links[0].rate = RateSpec::parse("steps 10Mbps 5s 0 2s 10Mbps 30s")
        .and_then(|spec| spec.complete(None))
        .expect("a rate");
    world
}

fn run(world: Scenario) -> RunMetrics {
    collect::run(&world.checked().expect("a scenario"), 1, &Options::default()).0
}

#[test]
fn a_link_that_is_back_is_used_as_before() {
    for queue in ["pfifo limit 100", "codel", "fq_codel", "cake", "pie"] {
        let run = run(world(queue));
        let utilisation = run.links[0].value("utilisation").expect("used");
        assert!(utilisation > 0.9, "{queue}: {utilisation}");
    }
}

#[test]
fn what_waits_while_nothing_leaves_is_no_delay_that_pie_measures() {
    // A tenth of the link, so PIE has nothing to do, and 178 datagrams wait in the two seconds.
    let mut world = world("pie");
    let interval = Span::from_micros(11_200);
    world.flows[0].app = App::Udp(UdpConfig { interval, frame: 1400, datagrams: 1, header: 28 });
    world.warmup = Span::ZERO;
    let lost = run(world).flows[0].value("loss_share").expect("known");
    assert!(lost < 0.01, "{lost}");
}
