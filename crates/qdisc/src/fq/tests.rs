use sojourn_core::{DropReason, Ecn, Queued, Rate, Span, Time};

use crate::Config as AnyConfig;
use crate::Qdisc;
use crate::testing::{Bench, flows_apart_by, packet, text_reads_back};

const RATE: Rate = Rate::from_bps(1_000_000_000);

/// Flows that differ in the lowest ten bits of their hash.
fn flows_apart(count: usize) -> Vec<u64> {
    flows_apart_by(count, |hash| hash & 1023)
}

#[test]
fn a_flow_is_held_to_its_limit_and_others_are_not_touched() {
    let mut bench = Bench::new("fq");
    let flows = flows_apart(2);
    for id in 0..150 {
        bench.offer(packet(id).flow(flows[0]));
    }
    for id in 200..240 {
        bench.offer(packet(id).flow(flows[1]));
    }
    assert_eq!(bench.dropped_ids(DropReason::Full), (100..150).collect::<Vec<_>>());
    assert_eq!(bench.detail("flows_plimit"), 50);
    let mut bench = Bench::new("fq limit 120");
    for id in 0..150 {
        bench.offer(packet(id).flow(flows[id as usize % 2]));
    }
    assert_eq!(bench.detail("limit_drops"), 30);
}

#[test]
fn a_new_flow_may_send_ten_packets_and_then_two_a_round() {
    let mut bench = Bench::new("fq");
    let flows = flows_apart(2);
    for id in 0..30 {
        bench.offer(packet(id).flow(flows[0]));
    }
    for id in 100..130 {
        bench.offer(packet(id).flow(flows[1]));
    }
    let order: Vec<u32> = (0..26).filter_map(|_| bench.take()).map(|packet| packet.id).collect();
    let expected: Vec<u32> = (0..10).chain(100..110).chain([10, 11, 110, 111, 12, 13]).collect();
    assert_eq!(order, expected);
}

#[test]
fn rest_gives_a_quantum_back_but_not_the_initial_one() {
    let mut bench = Bench::new("fq quantum 1514 initial_quantum 3028");
    let flows = flows_apart(2);
    let mut burst_after = |wait: Span| {
        bench.wait(wait);
        for id in 0..6 {
            bench.offer(packet(id).flow(flows[0]));
        }
        for id in 10..16 {
            bench.offer(packet(id).flow(flows[1]));
        }
        let first = (0..12).filter_map(|_| bench.take()).map(|packet| packet.id);
        let burst = first.take_while(|id| *id < 10).count();
        while bench.take().is_some() {}
        burst
    };
    assert_eq!(burst_after(Span::ZERO), 2);
    assert_eq!(burst_after(Span::from_millis(41)), 1);
}

#[test]
fn flows_are_a_masked_hash() {
    let drops = |text: &str| {
        let mut bench = Bench::new(text);
        for id in 0..400 {
            bench.offer(packet(id).flow(u64::from(id) % 40));
        }
        (bench.detail("flows"), bench.detail("flows_plimit"))
    };
    assert_eq!(drops("fq orphan_mask 0"), (1, 300));
    let (flows, refused) = drops("fq orphan_mask 3 buckets 1");
    assert_eq!((flows, refused), (4, drops("fq orphan_mask 3").1));
    assert_eq!(drops("fq orphan_mask 4294967295"), (40, 0));
}

/// Bytes that leave of each of two flows in 5 s, while both have packets.
fn paced(text: &str) -> [f64; 2] {
    let mut bench = Bench::new(text);
    let flows = flows_apart(2);
    let mut bytes = [0.0; 2];
    let end = bench.now + Span::from_secs(5);
    while bench.now < end {
        for flow in &flows {
            bench.offer(packet(0).flow(*flow));
        }
        let left = bench.take().expect("there are packets");
        bytes[usize::from(left.key.ports == flows[1])] += f64::from(left.wire_len());
        bench.now += RATE.time_for(1514);
    }
    bytes
}

#[test]
fn maxrate_holds_each_flow_by_quanta() {
    for bytes in paced("fq maxrate 8mbit") {
        // The first ten packets are free.
        assert!((bytes - 15_140.0 - 5e6).abs() < 20_000.0, "{bytes}");
    }
    for bytes in paced("fq maxrate 400kbit") {
        assert!((bytes - 250_000.0).abs() < 5000.0, "{bytes}");
    }
    let [first, second] = paced("fq maxrate 8mbit nopacing");
    assert!(first + second > 600e6 * 0.99, "unpaced, the link is full");
}

#[test]
fn a_slow_flow_is_paced_packet_by_packet() {
    let gaps = |text: &str| {
        let mut bench = Bench::new(text);
        for id in 0..20 {
            bench.offer(packet(id));
        }
        let mut times = Vec::new();
        while bench.take().is_some() {
            times.push(bench.now);
        }
        times.windows(2).map(|pair| pair[1].since(pair[0]).as_millis()).collect::<Vec<_>>()
    };
    // 1514 bytes at 500 kbit/s are 24.2 ms, and every round needs a credit besides.
    assert_eq!(gaps("fq maxrate 500kbit")[..4], [24, 24, 24, 24]);
    // Above the threshold two packets go at a time: 3028 bytes at 600 kbit/s are 40.4 ms.
    assert_eq!(gaps("fq maxrate 600kbit")[9..15], [40, 0, 40, 0, 40, 0]);
    // Nobody waits longer than a second.
    assert_eq!(gaps("fq maxrate 1kbit")[..3], [1000, 1000, 1000]);
}

#[test]
fn a_held_flow_names_its_time_and_lets_others_pass() {
    let mut bench = Bench::new("fq maxrate 100kbit");
    let flows = flows_apart(2);
    bench.offer(packet(0).flow(flows[0]));
    bench.offer(packet(1).flow(flows[0]));
    assert_eq!(bench.take().map(|packet| packet.id), Some(0));
    bench.offer(packet(2).flow(flows[1]));
    assert_eq!(bench.take().map(|packet| packet.id), Some(2));
    assert_eq!(bench.now, Time::ZERO);
    assert_eq!(bench.take().map(|packet| packet.id), Some(1));
    assert_eq!(bench.now, Time::ZERO + Rate::from_bps(100_000).time_for(1514));
}

#[test]
fn ce_threshold_marks_what_waited_longer() {
    let mut bench = Bench::new("fq ce_threshold 1ms");
    bench.offer(packet(0).ecn(Ecn::Ect0));
    bench.offer(packet(1).ecn(Ecn::Ect0));
    bench.offer(packet(2));
    bench.wait(Span::from_millis(1));
    assert_eq!(bench.take().map(|packet| packet.ecn), Some(Ecn::Ect0));
    bench.wait(Span::from_nanos(1));
    assert_eq!(bench.take().map(|packet| packet.ecn), Some(Ecn::Ce));
    assert_eq!(bench.take().map(|packet| packet.ecn), Some(Ecn::NotEct));
    assert_eq!(bench.detail("ce_mark"), 1);
    assert_eq!(bench.qdisc.backlog().packets, 0);
}

#[test]
fn tc_shows_the_defaults() {
    assert_eq!(
        text_reads_back("fq"),
        "fq limit 10000p flow_limit 100p buckets 1024 orphan_mask 1023 quantum 3028b \
         initial_quantum 15140b low_rate_threshold 550Kbit refill_delay 40ms"
    );
    assert_eq!(
        text_reads_back(
            "fq limit 5 flow_limit 2 buckets 8 orphan_mask 7 nopacing maxrate 1mbit ce_threshold 5ms"
        ),
        "fq limit 5p flow_limit 2p buckets 8 orphan_mask 7 nopacing quantum 3028b \
         initial_quantum 15140b maxrate 1Mbit low_rate_threshold 550Kbit refill_delay 40ms \
         ce_threshold 5ms"
    );
}

#[test]
fn what_is_left_out_says_so() {
    for (text, part) in [
        ("fq horizon 2s", "departure times"),
        ("fq priomap 1 2 2", "no priority"),
        ("fq maxrate 0", "from 1bit"),
        ("fq buckets 0", "1 to 262144"),
        ("fq flow_limt 5", "did you mean 'flow_limit'?"),
    ] {
        let error = AnyConfig::parse(text).unwrap_err().to_string();
        assert!(error.contains(part), "{text}: {error}");
    }
}
