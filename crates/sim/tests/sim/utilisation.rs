//! A link that always has something to send uses all its capacity, however the capacity changes
//! between two samples of the time series.

use proptest::prelude::*;
use sojourn_core::{Event, Observer, QueueSample, Span, StreamAddress, Time, Who};
use sojourn_host::apps::UdpConfig;
use sojourn_link::{RateConfig, RateSpec};
use sojourn_scenario::{App, Flow, Link, Scenario};

use crate::two_hosts;

/// What the link had carried, and could have carried, when the warm-up ended and at the last
/// sample.
struct Log {
    warmup: Time,
    medium: [(u64, f64); 2],
}

impl Observer for Log {
    fn record(&mut self, now: Time, who: Who, event: &Event<'_>) {
        let (Who::Port(port), Event::QueueSample(sample) | Event::WarmQueueSample(sample)) =
            (who, event)
        else {
            return;
        };
        let QueueSample { medium_bytes, capacity_bytes: Some(could), .. } = sample else {
            assert_ne!(port.0, 0, "the link has a limit");
            return;
        };
        if now <= self.warmup {
            self.medium[0] = (*medium_bytes, *could);
        }
        self.medium[1] = (*medium_bytes, *could);
    }
}

/// Bytes that a link with this rate could have carried and did not, between `warmup` and the end,
/// with more offered than it can carry; and bytes that it could have carried.
fn unused(rate: RateConfig, warmup: Span, duration: Span, seed: u64) -> (f64, f64) {
    // 150 Mbit/s in packets that fill an opportunity.
    let udp = UdpConfig { interval: Span::from_micros(80), frame: 1472, datagrams: 1, header: 28 };
    unused_by(udp, rate, warmup, duration, seed)
}

fn unused_by(
    udp: UdpConfig,
    rate: RateConfig,
    warmup: Span,
    duration: Span,
    seed: u64,
) -> (f64, f64) {
    let queue = || sojourn_qdisc::Config::parse("pfifo limit 100").expect("a discipline");
    let scenario = Scenario {
        warmup,
        ..two_hosts(
            duration,
            vec![
                Link::new("queue", queue(), rate, Span::from_millis(5)),
                Link::new("reverse", queue(), RateConfig::Unlimited, Span::from_millis(5)),
            ],
            vec![Flow::new("udp", App::Udp(udp), &[0], &[1])],
        )
    };
    let scenario = scenario.checked().expect("a sound scenario");
    let mut log = Log { warmup: Time::ZERO + warmup, medium: [(0, 0.0); 2] };
    sojourn_sim::run(&scenario, StreamAddress { seed, run: 1 }, &mut log)
        .unwrap_or_else(|violation| panic!("{violation}"));
    let [before, after] = log.medium;
    let could = after.1 - before.1;
    (could - (after.0 - before.0) as f64, could)
}

fn rate(text: &str) -> RateConfig {
    let file = "3\n3\n4\n9\n9\n9\n20\n31\n";
    let spec = RateSpec::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    spec.complete(spec.path().map(|_| file)).unwrap_or_else(|error| panic!("{error}"))
}

const PACKET: f64 = 1514.0;

#[test]
fn a_busy_link_uses_all_its_capacity_however_fast_that_changes() {
    // Packets that may be under way at either end. A shaper keeps a debt as time: a debt at a tenth
    // of the rate is worth ten packets once the rate has returned, in each of a hundred rounds.
    for (text, packets) in [
        ("40mbit", 2.0),
        ("40mbit overhead 24", 2.0),
        ("steps 100mbit 50ms 10mbit 50ms", 2.0),
        ("steps 100mbit 30ms 10mbit 30ms", 2.0),
        ("steps 100mbit 140ms 10mbit 70ms overhead 18", 2.0),
        ("steps 100mbit 50ms 0 333ms 7mbit 1ms end hold", 2.0),
        ("steps 100mbit 50ms 10mbit 50ms shaper htb", 2.0 + 100.0 * 10.0),
        ("htb rate 30mbit burst 15k", 12.0),
        ("htb rate 30mbit overhead 26", 2.0),
        ("mahimahi FILE opportunity 1504", 2.0),
        ("mahimahi FILE opportunity 1500", 2.0),
        ("rfc8867 5.1", 2.0),
        ("brownian max 80mbit", 2.0),
    ] {
        for warmup in [Span::ZERO, Span::from_millis(1234), Span::from_secs(2)] {
            let (unused, could) = unused(rate(text), warmup, Span::from_micros(10_012_345), 1);
            assert!(unused.abs() <= packets * PACKET, "{text}: {unused} of {could} bytes unused");
            assert!((unused / could).abs() < 0.015, "{text}: {unused} of {could} bytes unused");
            // What is under way at the end has not been carried yet. A bucket lets it pass at once.
            assert!(unused >= -2.0 || text.contains("htb"), "{text}: {unused} of {could} bytes");
        }
    }
}

#[test]
fn a_packet_that_takes_several_opportunities_is_carried_by_one_after_the_other() {
    let udp = UdpConfig { interval: Span::from_millis(1), frame: 60_000, datagrams: 1, header: 28 };
    for text in
        ["mahimahi FILE opportunity 1504", "mahimahi FILE opportunity 1500", "brownian max 80mbit"]
    {
        for warmup in [Span::ZERO, Span::from_millis(1234), Span::from_millis(1235)] {
            for millis in 1240..1290 {
                let duration = Span::from_millis(millis);
                let (unused, could) = unused_by(udp, rate(text), warmup, duration, 1);
                // One that did not fill its last opportunity lost the rest of it.
                assert!(
                    (0.0..3010.0).contains(&unused),
                    "{text}: {unused} of {could} bytes unused"
                );
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn any_steps_are_used_to_the_packet(
        steps in prop::collection::vec((0u64..100, 1u64..400), 1..8),
        hold in any::<bool>(),
        warmup in 0u64..1500,
        seed in any::<u64>(),
    ) {
        prop_assume!(steps.iter().any(|(mbps, _)| *mbps > 0));
        let steps: Vec<String> =
            steps.iter().map(|(mbps, ms)| format!("{}{} {ms}ms", mbps, if *mbps > 0 { "mbit" } else { "" })).collect();
        let end = if hold { "hold" } else { "wrap" };
        let rate = rate(&format!("steps {} end {end}", steps.join(" ")));
        let warmup = Span::from_millis(warmup);
        let (unused, could) = unused(rate, warmup, Span::from_secs(2), seed);
        prop_assert!((-2.0..=2.0 * PACKET).contains(&unused), "{unused} of {could} bytes unused");
    }
}
