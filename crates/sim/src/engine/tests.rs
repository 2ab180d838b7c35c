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
