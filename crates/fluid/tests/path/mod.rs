//! Flows through one link, there and back over the same delay.

use sojourn_cca::Config as Cca;
use sojourn_core::{Rate, Span};
use sojourn_link::RateConfig;
use sojourn_qdisc::Config as Queue;
use sojourn_scenario::{App, Checked, Flow, Host, Link, Scenario, Until};

/// The first third is warm-up.
pub(crate) fn scenario(
    ccas: &[&str],
    mbps: u64,
    rtt_ms: u64,
    queue: &str,
    seconds: u64,
) -> Checked {
    let half = Span::from_micros(rtt_ms * 500);
    let link = |name: &str, queue: &str| {
        let rate = RateConfig::fixed(Rate::from_bps(mbps * 1_000_000)).expect("a rate");
        Link::new(name, Queue::parse(queue).expect("a queue"), rate, half)
    };
    let flow = |(at, cca): (usize, &&str)| {
        let app = App::bulk(Cca::parse(cca).expect("a control"), Default::default());
        Flow::new(&format!("{at}"), app, &[0], &[1])
    };
    let name = |name: &str| Host { name: name.into() };
    Scenario {
        duration: Span::from_secs(seconds),
        until: Until::Duration,
        warmup: Span::from_secs(seconds / 3),
        step: Span::from_millis(100),
        hosts: vec![name("left"), name("right")],
        links: vec![link("there", queue), link("back", "pfifo")],
        carriers: vec![],
        changes: vec![],
        flows: ccas.iter().enumerate().map(flow).collect(),
    }
    .checked()
    .expect("a scenario")
}
