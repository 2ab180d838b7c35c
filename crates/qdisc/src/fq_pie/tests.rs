use sojourn_core::{DropReason, Ecn, Rate, Span};

use super::*;
use crate::testing::{Bench, TestPacket, flows_apart, packet, text_reads_back};
use crate::{Config as AnyConfig, Qdisc};

const RATE: Rate = Rate::from_bps(10_000_000);

/// Flows that each send full packets at their rate; what left.
fn overload(bench: &mut Bench, flows: &[(u64, u64)], ecn: Ecn, span: Span) -> Vec<TestPacket> {
    let mut next = vec![Time::ZERO; flows.len()];
    bench.drain(RATE, span, |bench| {
        let now = bench.now;
        for ((flow, mbps), next) in flows.iter().zip(&mut next) {
            while *next <= now {
                bench.now = *next;
                bench.offer(packet(0).flow(*flow).ecn(ecn));
                *next += Rate::from_bps(mbps * 1_000_000).time_for(1514);
            }
        }
        bench.now = now;
    })
}

#[test]
fn flows_share_and_only_the_fat_one_is_dropped() {
    let mut bench = Bench::new("fq_pie");
    let flows = flows_apart(2);
    let left =
        overload(&mut bench, &[(flows[0], 12), (flows[1], 2)], Ecn::NotEct, Span::from_secs(10));
    let share = left.iter().filter(|packet| packet.key.ports == flows[1]).count();
    assert!((share as f64 / left.len() as f64 - 0.2).abs() < 0.01, "{share} of {}", left.len());
    let dropped = bench.record.dropped.iter();
    assert!(dropped.clone().count() > 100);
    assert!(dropped.map(|(_, packet, _)| packet.key.ports).all(|flow| flow == flows[0]));
}

#[test]
fn each_queue_is_held_at_target() {
    let mut bench = Bench::new("fq_pie");
    let flows = flows_apart(2);
    let both = [(flows[0], 6), (flows[1], 6)];
    overload(&mut bench, &both, Ecn::NotEct, Span::from_secs(15));
    // What waits for half of the link for 15 ms each.
    let expected = 2.0 * 5e6 * 0.015 / 8.0;
    let backlog = bench.qdisc.backlog().bytes as f64;
    assert!((backlog / expected - 1.0).abs() < 0.6, "{backlog} against {expected}");
    let aqm = bench.dropped_ids(DropReason::Aqm).len();
    let share = aqm as f64 / (15.0 * 12e6 / 8.0 / 1514.0);
    assert!((share - 1.0 / 6.0).abs() < 0.02, "{share}");
}

#[test]
fn marks_end_at_ecn_prob() {
    let flows = flows_apart(1);
    let marks = |text: &str| {
        let mut bench = Bench::new(text);
        overload(&mut bench, &[(flows[0], 14)], Ecn::Ect0, Span::from_secs(1));
        (bench.detail("ecn_mark"), bench.dropped_ids(DropReason::Aqm).len())
    };
    let (few, drops) = marks("fq_pie ecn limit 100000");
    assert!(few > 0 && drops > 50, "{few} {drops}");
    // The probability of the deaf flow grows beyond 100 %, so even here some are dropped.
    let (many, rest) = marks("fq_pie ecn ecn_prob 100 limit 100000");
    assert!(many > 2 * few && rest < drops / 2, "{few} {many}, {drops} {rest}");
}

#[test]
fn memory_above_the_limit_is_counted_and_not_refused() {
    let mut bench = Bench::new("fq_pie memory_limit 10000");
    for id in 0..20 {
        bench.offer(packet(id));
    }
    // 2432 bytes each: if the limit were enforced, the sixth would be refused.
    assert_eq!(bench.qdisc.backlog().packets, 20);
    assert!(bench.detail("overmemory") > 10);
}

#[test]
fn tc_shows_the_defaults() {
    assert_eq!(
        text_reads_back("fq_pie"),
        "fq_pie limit 10240p flows 1024 target 15ms tupdate 15ms alpha 2 beta 20 \
         quantum 1514b memory_limit 32Mb ecn_prob 10"
    );
    assert_eq!(
        text_reads_back("fq_pie flows 8 quantum 300 ecn ecn_prob 25 memory_limit 3000 bytemode"),
        "fq_pie limit 10240p flows 8 target 15ms tupdate 15ms alpha 2 beta 20 \
         quantum 300b memory_limit 3000b ecn_prob 25 ecn bytemode"
    );
}

#[test]
fn bad_parameters_say_what_is_allowed() {
    for (text, part) in [
        ("fq_pie flows 0", "1 to 65536"),
        ("fq_pie ecn_prob 101", "0 to 100"),
        ("fq_pie quantum 2mb", "1048576"),
        ("fq_pie interval 5ms", "no parameter 'interval'"),
    ] {
        let error = AnyConfig::parse(text).unwrap_err().to_string();
        assert!(error.contains(part), "{text}: {error}");
    }
}
