//! What a fluid can't say is refused with the place and the reason.

use sojourn_cca::Config as Cca;
use sojourn_core::{Rate, Span};
use sojourn_fluid::{Form, Options};
use sojourn_host::apps::{BulkConfig, UdpConfig};
use sojourn_host::tcp::{Config, SendBuffer};
use sojourn_link::{JitterConfig, LossConfig, RateConfig, RateSpec};
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
        assert!(error.contains("steps of 11ms"), "{error}");
        assert!(error.contains("21.264ms") && error.contains("at most 10.632ms"), "{error}");
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
fn options_of_queues_are_taken_or_refused_by_name() {
    let queue = |text: &'static str| {
        move |s: &mut Scenario| s.links[0].queue = Queue::parse(text).expect("a queue")
    };
    let cases = [
        ("fq_codel flows 1", "share a queue"),
        ("fq_codel quantum 300", "'quantum'"),
        ("fq_codel drop_batch 1", "'drop_batch'"),
        ("fq_codel ce_threshold 1ms", "'ce_threshold'"),
        ("cake flowblind", "share a queue"),
        ("cake srchost", "share a queue"),
        ("cake hosts", "share a queue"),
        ("cake ingress", "'ingress'"),
        ("cake no-split-gso", "segments"),
        ("dualpi2 memlimit 100kb", "'memlimit'"),
        ("dualpi2 min_qlen_step 20", "'min_qlen_step'"),
        ("dualpi2 drop_enqueue", "'drop_enqueue'"),
        ("dualpi2 overflow", "'overflow'"),
        ("dualpi2 no_split_gso", "segments"),
    ];
    for (text, reason) in cases {
        let error = refused(queue(text));
        assert!(error.contains("link 'there'") && error.contains(reason), "{text}: {error}");
    }
    for text in ["fq_codel flows 4096 mode rfc", "cake flows nonat wash", "dualpi2 any_ect"] {
        let mut scenario = scenario();
        queue(text)(&mut scenario);
        assert_eq!(sojourn_fluid::check(&scenario, &Options::default()), Ok(()), "{text}");
    }
}

#[test]
fn tins_are_refused_where_flows_fall_into_different_ones() {
    let check = |queue: &str, dscp: [u8; 2]| {
        let mut scenario = scenario();
        scenario.links[0].queue = Queue::parse(queue).expect("a queue");
        let first = scenario.flows[0].clone();
        scenario.flows = [("one", dscp[0]), ("other", dscp[1])]
            .map(|(name, dscp)| Flow { name: name.into(), dscp, ..first.clone() })
            .into();
        sojourn_fluid::check(&scenario, &Options::default()).map_err(|error| error.to_string())
    };
    // RFC 4594: 46 is voice, 8 is bulk.
    for (queue, dscp) in
        [("cake", [0, 46]), ("cake bandwidth 10mbit", [8, 46]), ("cake diffserv4", [0, 34])]
    {
        let error = check(queue, dscp).expect_err("different tins");
        assert!(error.contains("'one' and 'other'") && error.contains("'besteffort'"), "{error}");
    }
    for (queue, dscp) in
        [("cake", [46, 44]), ("cake", [0, 34]), ("cake besteffort", [8, 46]), ("codel", [8, 46])]
    {
        assert_eq!(check(queue, dscp), Ok(()), "{queue}");
    }
}

#[test]
fn frames_are_refused_around_packets_of_several_sizes() {
    let check = |rate: &str, queue: &str, frame: u32| {
        let mut scenario = scenario();
        scenario.links[0].rate =
            RateSpec::parse(rate).and_then(|spec| spec.complete(None)).expect("a rate");
        scenario.links[0].queue = Queue::parse(queue).expect("a queue");
        let interval = Span::from_millis(10);
        let udp = App::Udp(UdpConfig { interval, frame, datagrams: 1, header: 28 });
        scenario.flows.push(Flow::new("voice", udp, &[0], &[1]));
        sojourn_fluid::check(&scenario, &Options::default()).map_err(|error| error.to_string())
    };
    // As long as the segments of the other flow, and shorter.
    let (long, short) = (1472, 172);
    let framed = [
        ("10Mbps overhead 18", "pfifo"),
        ("10Mbps atm overhead 40", "pfifo"),
        ("10Mbps", "cake overhead 18"),
        ("10Mbps", "cake bandwidth 5mbit atm"),
    ];
    for (rate, queue) in framed {
        assert_eq!(check(rate, queue, long), Ok(()), "{rate} {queue}");
        let error = check(rate, queue, short).expect_err("two sizes");
        assert!(error.contains("1514 and 214 bytes"), "{rate} {queue}: {error}");
    }
    assert_eq!(check("10Mbps", "cake bandwidth 5mbit", short), Ok(()));
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
