//! What a fluid can't say is refused with the place and the reason.

use sojourn_cca::Config as Cca;
use sojourn_core::{Rate, Span};
use sojourn_fluid::{Form, Options};
use sojourn_host::apps::BulkConfig;
use sojourn_host::tcp::{Config, SendBuffer};
use sojourn_link::{JitterConfig, LossConfig, RateConfig};
use sojourn_qdisc::Config as Queue;
use sojourn_scenario::{App, Flow, Host, Link, Scenario, Traffic, Until};

fn scenario() -> Scenario {
    let link = |name: &str| {
        let rate = RateConfig::fixed(Rate::from_bps(10_000_000)).expect("a rate");
        Link::new(name, Queue::parse("pfifo").expect("a queue"), rate, Span::from_millis(10))
    };
    let app = App::bulk(Cca::parse("reno").expect("a control"), Default::default());
    Scenario {
        duration: Span::from_secs(5),
        until: Until::Duration,
        warmup: Span::ZERO,
        step: Span::from_millis(100),
        hosts: vec![Host { name: "left".into() }, Host { name: "right".into() }],
        links: vec![link("there"), link("back")],
        carriers: vec![],
        changes: vec![],
        flows: vec![Flow::new("bulk", app, &[0], &[1])],
    }
}

fn transport(scenario: &mut Scenario) -> &mut Config {
    match &mut scenario.flows[0].app {
        App::Tcp { transport, .. } => transport,
        _ => panic!("it is TCP"),
    }
}

/// What the error says, which names the place.
fn refused(change: impl Fn(&mut Scenario)) -> String {
    let mut scenario = scenario();
    change(&mut scenario);
    sojourn_fluid::check(&scenario, &Options::default()).expect_err("can't be said").to_string()
}

#[test]
fn what_has_a_rate_is_taken() {
    let mut scenario = scenario();
    assert_eq!(sojourn_fluid::check(&scenario, &Options::default()), Ok(()));
    scenario.links[0].loss = LossConfig::parse("1%").expect("a loss");
    assert_eq!(sojourn_fluid::check(&scenario, &Options::default()), Ok(()));
    scenario.links[0].loss = LossConfig::None;
    scenario.links[0].rate = RateConfig::Unlimited;
    assert_eq!(sojourn_fluid::check(&scenario, &Options::default()), Ok(()));
    transport(&mut scenario).most_receive_buffer = 64 << 20;
    transport(&mut scenario).send_buffer = SendBuffer::UNLIMITED;
    assert_eq!(sojourn_fluid::check(&scenario, &Options::default()), Ok(()));
}

#[test]
fn steps_are_refused_that_are_longer_than_half_a_round_trip() {
    let mut scenario = scenario();
    let check = |scenario: &Scenario, form: Form, step: Option<Span>| {
        let options = Options { form, step, ..Options::default() };
        sojourn_fluid::check(scenario, &options).map_err(|error| error.to_string())
    };
    // 20 ms of delay, and a packet's time.
    for form in [Form::Corrected, Form::Scherrer] {
        assert_eq!(check(&scenario, form, Some(Span::from_millis(10))), Ok(()));
        let error = check(&scenario, form, Some(Span::from_millis(11))).expect_err("too long");
        assert!(error.contains("steps of 11ms") && error.contains("at most"), "{error}");
    }
    // The published model's own steps are 10 µs long; steps that follow from their error suit any delay.
    scenario.links.iter_mut().for_each(|link| {
        link.delay = Span::ZERO;
        link.rate = RateConfig::fixed(Rate::from_bps(100_000_000_000)).expect("a rate");
    });
    check(&scenario, Form::Scherrer, None).expect_err("too long");
    assert_eq!(check(&scenario, Form::Corrected, None), Ok(()));
}

#[test]
fn links_are_refused_by_name_and_reason() {
    let loss = |text: &str| LossConfig::parse(text).expect("a loss");
    let without_rate = |s: &mut Scenario| {
        s.links[0].loss = loss("1%");
        s.links[0].rate = RateConfig::Unlimited;
    };
    let cases = [
        (refused(without_rate), "loss on a link without a rate"),
        (refused(|s| s.links[0].loss = loss("gemodel 1% 10%")), "bursts of loss"),
        (refused(|s| s.links[0].entry_loss = loss("1%")), "loss before the queue"),
        (
            refused(|s| s.links[0].jitter = JitterConfig::parse("uniform 2ms").expect("a jitter")),
            "jitter",
        ),
        (refused(|s| s.links[0].queue = Queue::parse("fq_pie").expect("a queue")), "fq_pie"),
    ];
    for (error, reason) in cases {
        assert!(error.contains("link 'there'") && error.contains(reason), "{error}");
    }
}

#[test]
fn flows_are_refused_by_name_and_reason() {
    let with = |text: &'static str| {
        move |s: &mut Scenario| {
            let App::Tcp { cca, .. } = &mut s.flows[0].app else { return };
            *cca = Cca::parse(text).expect("a control");
        }
    };
    let limited = |s: &mut Scenario| {
        let App::Tcp { traffic, .. } = &mut s.flows[0].app else { return };
        *traffic = Traffic::Bulk(BulkConfig { bytes: Some(1000), ..BulkConfig::default() });
    };
    let cases = [
        (refused(with("bbr-n+")), "bbr-n+"),
        (refused(with("bbr3 beta=0.5")), "no parameters"),
        (refused(limited), "limited size"),
        (refused(|s| transport(s).send_buffer = SendBuffer::Bytes(64_000)), "no send buffer"),
        (refused(|s| transport(s).most_receive_buffer = 64 << 20), "no send buffer"),
    ];
    for (error, reason) in cases {
        assert!(error.contains("flow 'bulk'") && error.contains(reason), "{error}");
    }
}
