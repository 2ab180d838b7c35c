//! Datagrams and pings, which are told of one by one.

mod collect;
mod path;

use sojourn_core::Span;
use sojourn_fluid::Options;
use sojourn_host::apps::{PingConfig, UdpConfig};
use sojourn_link::{LossConfig, RateConfig, RateSpec};
use sojourn_metrics::{FlowMetrics, RunMetrics};
use sojourn_scenario::{App, Scenario};

/// CUBIC there, and back what `path::scenario` has. The first third is warm-up.
fn world(mbps: u64, rtt_ms: u64, queue: &str, seconds: u64) -> Scenario {
    path::scenario(&["cubic"], mbps, rtt_ms, queue, seconds).into_inner()
}

/// Flows in place of those that are there.
fn with(mut world: Scenario, apps: &[App]) -> Scenario {
    let first = world.flows[0].clone();
    let flow = |(at, app): (usize, &App)| {
        let mut flow = first.clone();
        flow.name = format!("{at}");
        flow.app = app.clone();
        flow
    };
    world.flows = apps.iter().enumerate().map(flow).collect();
    world
}

/// Datagrams of 1000 bytes.
fn stream(every_us: u64) -> App {
    let interval = Span::from_micros(every_us);
    App::Udp(UdpConfig { interval, frame: 1000, datagrams: 1, header: 28 })
}

fn ping(every_ms: u64) -> App {
    App::Ping(PingConfig { interval: Span::from_millis(every_ms), size: 56 })
}

fn rate(text: &str) -> RateConfig {
    RateSpec::parse(text).and_then(|spec| spec.complete(None)).expect("a rate")
}

fn run(world: Scenario) -> RunMetrics {
    collect::run(&world.checked().expect("a scenario"), 1, &Options::default()).0
}

fn value(flow: &FlowMetrics, metric: &str) -> f64 {
    flow.value(metric).unwrap_or_else(|| panic!("{} has {metric}", flow.name))
}

fn at_link(run: &RunMetrics, metric: &str) -> f64 {
    run.links[0].value(metric).unwrap_or_else(|| panic!("the link has {metric}"))
}

const REASONS: [&str; 7] = [
    "drops_full",
    "drops_overflow",
    "drops_aqm",
    "drops_ack_filtered",
    "drops_medium",
    "drops_policed",
    "drops_entry",
];

fn dies_after_5s(mut world: Scenario) -> Scenario {
    world.links[0].rate = rate("steps 10Mbps 5s 0 100s");
    world
}

/// Worlds in which a stream loses for one reason or another, with what it is expected to lose.
fn lossy() -> Vec<(&'static str, Scenario, std::ops::Range<f64>)> {
    let medium = |loss: &str, rtt_ms| {
        let mut world = with(world(10, rtt_ms, "pfifo", 9), &[stream(10_000)]);
        world.links[0].loss = LossConfig::parse(loss).expect("a loss");
        world
    };
    let too_much = |queue| with(world(2, 100, queue, 9), &[stream(2_000)]);
    let two_queues = || {
        let mut world = too_much("pfifo limit 30");
        let mut second = world.links[0].clone();
        second.name = "second".into();
        second.rate = rate("1Mbps");
        world.links.push(second);
        let id = sojourn_core::PortId(2);
        world.flows[0].forward.push(id);
        world
    };
    let beside = with(
        world(10, 40, "pie", 9),
        &[
            stream(5_000),
            App::bulk(sojourn_cca::Config::parse("cubic").expect("a control"), Default::default()),
        ],
    );
    vec![
        ("everything", medium("100%", 100), 1.0..1.001),
        ("a tenth", medium("10%", 100), 0.09..0.11),
        ("a tenth over a long way", medium("10%", 3000), 0.09..0.11),
        ("a full queue", too_much("pfifo limit 30"), 0.51..0.54),
        ("a full fair queue", too_much("fq_codel limit 30"), 0.4..0.6),
        ("BLUE", too_much("cake memlimit 40kb"), 0.4..0.7),
        ("two full queues", two_queues(), 0.7..0.8),
        (
            "a dead link",
            dies_after_5s(with(world(10, 100, "pfifo limit 20", 9), &[stream(10_000)])),
            0.6..0.7,
        ),
        ("an AQM", beside, 0.0005..0.02),
    ]
}

#[test]
fn a_datagram_that_is_dropped_is_lost_and_no_other_is() {
    for (what, world, expected) in lossy() {
        let run = run(world);
        let stream = &run.flows[0];
        let of = |metric: &str| value(stream, metric);
        let (sent, arrived, dropped) =
            (of("sent_packets"), of("arrived_packets"), of("dropped_packets"));
        assert!(arrived + dropped <= sent, "{what}: {sent} sent, {arrived} and {dropped} told of");
        if arrived > 0.0 {
            assert_eq!(of("lost_packets"), dropped, "{what}");
        }
        let share = of("loss_share");
        assert!(expected.contains(&share), "{what}: {share}");
        let frames = of("frames_lost");
        // A frame that is lost before the end of the warm-up counts when those before it have arrived.
        assert!(frames <= dropped, "{what}: {frames}");
        assert!(frames > 0.0, "{what}");
        assert_eq!(of("delivered_bytes"), 1000.0 * arrived, "{what}");
    }
}

#[test]
fn every_drop_has_its_reason_and_the_reasons_are_all() {
    for (what, world, _) in lossy() {
        let queue = world.links[0].queue.to_string();
        let run = run(world);
        for link in &run.links {
            let by_reason: f64 = REASONS.iter().filter_map(|reason| link.value(reason)).sum();
            assert_eq!(link.value("drops"), Some(by_reason), "{what}");
        }
        let flows: f64 = run.flows.iter().map(|flow| value(flow, "dropped_packets")).sum();
        let links: f64 = run.links.iter().filter_map(|link| link.value("drops")).sum();
        assert_eq!(flows, links, "{what}");
        if queue.starts_with("pfifo") {
            assert_eq!(at_link(&run, "drops_aqm"), 0.0, "{what}");
        }
    }
}

#[test]
fn what_an_aqm_drops_beside_a_medium_that_loses_is_its_own() {
    let mut world = world(10, 40, "codel", 20);
    world.links[0].loss = LossConfig::parse("0.01%").expect("a loss");
    let run = run(world);
    let [aqm, medium] = ["drops_aqm", "drops_medium"].map(|reason| at_link(&run, reason));
    assert!(aqm > 10.0 && medium < 5.0, "{aqm} {medium}");
    assert!(at_link(&run, "drop_share") > 0.0);
}

#[test]
fn a_frame_is_complete_when_its_datagram_has_come() {
    for (what, world, _) in lossy() {
        let run = run(world);
        let stream = &run.flows[0];
        let quantiles = ["min", "mean", "p50", "p99", "max"];
        let delays = quantiles
            .map(|of| ["owd", "frame_delay"].map(|what| stream.value(&format!("{what}_{of}_ms"))));
        for [datagram, frame] in delays {
            let (Some(datagram), Some(frame)) = (datagram, frame) else { continue };
            assert!((datagram / frame - 1.0).abs() < 0.01, "{what}: {datagram} {frame}");
        }
    }
}

/// A packet of 1042 bytes takes 0.83 ms at 10 Mbit/s, whether the link dies later or not.
#[test]
fn the_time_to_send_a_packet_is_that_of_a_link_that_sends() {
    let run = run(dies_after_5s(with(world(10, 100, "pfifo", 9), &[stream(10_000)])));
    let least = value(&run.flows[0], "owd_min_ms");
    assert!((least - 50.83).abs() < 0.02, "{least}");
}

#[test]
fn datagrams_wait_as_long_as_the_queue_is() {
    // 30 packets of 1042 bytes at 2 Mbit/s, and a packet is being sent.
    let run = run(with(world(2, 100, "pfifo limit 30", 9), &[stream(2_000)]));
    let wait = value(&run.flows[0], "owd_p50_ms") - 50.0;
    let packet = 1042.0 * 8.0 / 2000.0;
    assert!((wait / packet - 31.0).abs() < 0.2, "{}", wait / packet);
    let sojourn = at_link(&run, "sojourn_p50_ms");
    assert!((sojourn / packet - 30.0).abs() < 0.2, "{}", sojourn / packet);
}

/// Of the pings that left in the window: answered, and lost.
fn answered_and_lost(run: &RunMetrics, ping: usize) -> [f64; 2] {
    ["ping_n", "ping_lost"].map(|metric| value(&run.flows[ping], metric))
}

#[test]
fn pings_are_lost_on_the_medium_there_and_back() {
    for (there, back, expected) in
        [("100%", "none", 1.0), ("none", "100%", 1.0), ("10%", "10%", 0.19), ("1%", "none", 0.01)]
    {
        let mut world = with(world(10, 100, "pfifo", 12), &[stream(10_000), ping(10)]);
        for (link, loss) in world.links.iter_mut().zip([there, back]) {
            link.loss = LossConfig::parse(loss).expect("a loss");
        }
        let run = run(world);
        let [answered, lost] = answered_and_lost(&run, 1);
        let share = lost / (answered + lost);
        assert!(
            (share - expected).abs() < 0.003,
            "{there} and {back}: {lost} of {}",
            answered + lost
        );
    }
}

#[test]
fn pings_are_lost_with_the_others_at_a_full_queue_and_not_beside_it() {
    let share = |queue| {
        let run = run(with(world(2, 100, queue, 12), &[stream(2_000), ping(10)]));
        let [answered, lost] = answered_and_lost(&run, 1);
        lost / (answered + lost)
    };
    let full = share("pfifo limit 30");
    assert!((full - 0.52).abs() < 0.01, "{full}");
    assert_eq!(share("fq_codel limit 30"), 0.0);
}

/// What marks a packet with ECN drops one without.
#[test]
fn pings_are_dropped_where_others_are_marked() {
    let mut world = with(
        world(10, 40, "pie ecn", 30),
        &[
            App::bulk(sojourn_cca::Config::parse("reno").expect("a control"), Default::default()),
            ping(1),
        ],
    );
    let App::Tcp { transport, .. } = &mut world.flows[0].app else { panic!("it is TCP") };
    transport.ecn = Some(sojourn_host::tcp::EcnOffer::Classic);
    let run = run(world);
    let tcp = &run.flows[0];
    assert_eq!(value(tcp, "dropped_after_warmup"), 0.0);
    let [answered, lost] = answered_and_lost(&run, 1);
    let share = lost / (answered + lost);
    let marked = value(tcp, "ce_packets") / value(tcp, "arrived_packets");
    assert!((0.5..2.0).contains(&(share / marked)), "{share} of pings, {marked} of packets");
}

#[test]
fn a_dead_link_answers_no_pings_until_it_is_back() {
    // So many wait, and the others find the queue full.
    let run_over = |text: &str, apps: &[App]| {
        let mut world = with(world(10, 100, "pfifo limit 20", 9), apps);
        world.links[0].rate = rate(text);
        run(world)
    };
    for (what, apps, at) in
        [("alone", vec![ping(10)], 0), ("beside a stream", vec![stream(10_000), ping(10)], 1)]
    {
        // The window begins at 3 s.
        let dead = run_over("steps 10Mbps 5s 0 100s", &apps);
        let [answered, lost] = answered_and_lost(&dead, at);
        assert!(
            (answered - 200.0).abs() <= 1.0 && (360.0..=400.0).contains(&lost),
            "{what}: {answered} {lost}"
        );
        let back = run_over("steps 10Mbps 5s 0 1s 10Mbps 100s", &apps);
        let [answered, lost] = answered_and_lost(&back, at);
        assert!((70.0..=90.0).contains(&lost), "{what}: {answered} {lost}");
        let longest = value(&back.flows[at], "ping_max_ms");
        assert!((1000.0..1120.0).contains(&longest), "{what}: {longest}");
    }
}

#[test]
fn pings_wait_where_the_others_do() {
    let run = run(with(world(2, 100, "pfifo limit 30", 12), &[stream(2_000), ping(10)]));
    let waits =
        [value(&run.flows[1], "ping_p50_ms") - 100.0, value(&run.flows[0], "owd_p50_ms") - 50.0];
    // A ping is shorter, and takes less time to be sent, there and back.
    assert!((waits[0] - waits[1]).abs() < 5.0, "{waits:?}");
}
