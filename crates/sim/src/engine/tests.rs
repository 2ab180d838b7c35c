use sojourn_core::{Event, Purpose, Rate, Who};
use sojourn_host::tcp::Config as Transport;
use sojourn_link::RateConfig;
use sojourn_scenario::{App, Flow, Host, Link as LinkConfig};

use super::*;

/// Every event, in words.
#[derive(Default)]
struct Story(Vec<String>);

impl Observer for Story {
    fn record(&mut self, now: Time, who: Who, event: &Event<'_>) {
        self.0.push(format!("{now} {who:?} {event:?}"));
    }
}

/// Offloaded flows so fast that the next burst usually comes within a millisecond, over a queue
/// that overflows.
fn scenario() -> Checked {
    let link = |name, queue| {
        let rate = RateConfig::fixed(Rate::from_bps(300_000_000)).expect("a positive rate");
        let queue = sojourn_qdisc::Config::parse(queue).expect("a discipline");
        LinkConfig::new(name, queue, rate, Span::from_micros(100))
    };
    let ccas = ["cubic", "cubic", "bbr", "reno"];
    let flows = ccas.iter().enumerate().map(|(index, cca)| {
        let cca = sojourn_cca::Config::parse(cca).expect("a controller");
        let transport = Transport {
            offload: true,
            offload_segments: 17,
            tso_rtt_log: 0,
            deferral: Span::from_secs(1),
            ..Transport::default()
        };
        let app = App::bulk(cca, transport);
        Flow::new(&format!("flow {index}"), app, &[0], &[1])
    });
    Scenario {
        duration: Span::from_millis(1500),
        until: Until::Duration,
        warmup: Span::ZERO,
        step: Span::from_millis(100),
        hosts: ["server", "client"].map(|name| Host { name: name.into() }).into(),
        links: vec![link("queue", "bfifo limit 750000"), link("back", "pfifo limit 1000")],
        flows: flows.collect(),
        carriers: Vec::new(),
        changes: Vec::new(),
    }
    .checked()
    .expect("a sound world")
}

/// The phase in which the last sample finds the only flow.
#[derive(Default)]
struct LastPhase(&'static str);

impl Observer for LastPhase {
    fn record(&mut self, _: Time, _: Who, event: &Event<'_>) {
        if let Event::FlowSample(sample) = event {
            self.0 = sample.phase;
        }
    }
}

/// A send buffer of 4 MiB has less than a bandwidth-delay product and a half, so BBR never sees more than the link's rate. Linux asks at
/// the beginning of a call whether all before it has left, and that the pacer holds back has not; so samples count, and it leaves STARTUP.
#[test]
fn a_flow_that_its_send_buffer_limits_leaves_startup() {
    let bbr = sojourn_cca::Config::parse("bbr").expect("a controller");
    let link = |name, delay| {
        let rate = RateConfig::fixed(Rate::from_bps(300_000_000)).expect("a positive rate");
        let queue = sojourn_qdisc::Config::parse("pfifo limit 4000").expect("a discipline");
        LinkConfig::new(name, queue, rate, delay)
    };
    let delay = Span::from_millis(30);
    let scenario = Scenario {
        duration: Span::from_secs(4),
        links: vec![link("queue", delay), link("back", delay)],
        flows: vec![Flow::new("bbr", App::bulk(bbr, Transport::default()), &[0], &[1])],
        ..scenario().into_inner()
    };
    let mut phase = LastPhase::default();
    let address = StreamAddress { seed: 1, run: 1 };
    crate::run(&scenario.checked().expect("a sound world"), address, &mut phase)
        .expect("invariants hold");
    assert!(phase.0.starts_with("PROBE"), "{}", phase.0);
}

fn story(scenario: &Checked, mut disturb: impl FnMut(&mut Engine<'_, Story>)) -> Vec<String> {
    let mut story = Story::default();
    let address = StreamAddress { seed: 1, run: 1 };
    let mut engine = Engine::new(scenario, address, &mut story);
    let end = Time::ZERO + scenario.duration;
    let mut at_once = 0;
    while engine.turn(end, &mut at_once).expect("invariants hold") {
        disturb(&mut engine);
    }
    story.0
}

#[test]
fn an_end_that_is_called_when_it_did_not_ask_does_nothing() {
    let scenario = scenario();
    let undisturbed = story(&scenario, |_| ());
    assert!(undisturbed.len() > 20_000, "{} events", undisturbed.len());
    let mut random = StreamAddress { seed: 2, run: 1 }.stream(0, Purpose::Start);
    let mut calls = 0;
    let disturbed = story(&scenario, |engine| {
        if random.below(8) == 0 {
            let end = end_of(random.below(4) as usize, random.below(2) as u32);
            let at = engine.now + Span::from_nanos(1 + random.below(1_000_000));
            engine.agenda.set_end_if_sooner(end, at);
            calls += 1;
        }
    });
    assert!(calls > 1000, "{calls} calls");
    let first = undisturbed.iter().zip(&disturbed).find(|(a, b)| a != b);
    assert_eq!(first, None);
    assert_eq!(undisturbed.len(), disturbed.len());
}
