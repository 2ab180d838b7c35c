use std::collections::BTreeMap;

use sojourn_core::{DropReason, Ecn, Rate, Span};

use super::*;
use crate::testing::{Bench, Recorder, TestPacket, flows_apart, packet, stream, text_reads_back};
use crate::{Config as AnyConfig, Qdisc};

const RATE: Rate = Rate::from_bps(10_000_000);

/// Bytes that left, by flow.
fn bytes_by_flow(left: &[TestPacket]) -> BTreeMap<u64, u64> {
    let mut bytes = BTreeMap::new();
    for packet in left {
        *bytes.entry(packet.key.ports).or_default() += u64::from(packet.wire_len());
    }
    bytes
}

#[test]
fn deficit_round_robin_shares_bytes_and_not_packets() {
    // No CoDel in the way.
    let mut bench = Bench::new("fq_codel target 10s interval 100s");
    let flows = flows_apart(3);
    let sizes = [1500, 300, 700];
    for id in 0..3000 {
        for (flow, size) in flows.iter().zip(sizes) {
            bench.offer(packet(id).flow(*flow).ip_len(size));
        }
    }
    let left = bench.drain(RATE, Span::from_millis(500), |_| {});
    let bytes = bytes_by_flow(&left);
    let total: u64 = bytes.values().sum();
    for flow in &flows {
        let share = bytes[flow] as f64 / total as f64;
        assert!((share - 1.0 / 3.0).abs() < 0.01, "{bytes:?}");
    }
}

#[test]
fn a_sparse_flow_goes_before_a_standing_queue() {
    let mut bench = Bench::new("fq_codel");
    let flows = flows_apart(2);
    for id in 0..100 {
        bench.offer(packet(id).flow(flows[0]));
    }
    bench.drain(RATE, Span::from_millis(20), |_| {});
    bench.offer(packet(1000).flow(flows[1]).ip_len(84));
    assert_eq!(bench.take().map(|packet| packet.id), Some(1000));
}

#[test]
fn an_emptied_new_flow_passes_through_the_old_ones() {
    let mut bench = Bench::new("fq_codel");
    let flows = flows_apart(2);
    for id in 0..100 {
        bench.offer(packet(id).flow(flows[0]).ip_len(1000));
    }
    // After four the flow is an old one with deficit left.
    for _ in 0..4 {
        bench.take();
    }
    bench.offer(packet(1000).flow(flows[1]).ip_len(84));
    assert_eq!(bench.take().map(|packet| packet.id), Some(1000));
    // Found empty, the sparse flow went behind the standing one: no second turn before it.
    assert_eq!(bench.take().map(|packet| packet.key.ports), Some(flows[0]));
    assert_eq!(bench.detail("new_flows_len"), 0);
    assert_eq!(bench.detail("old_flows_len"), 2);
    bench.offer(packet(1001).flow(flows[1]).ip_len(84));
    assert_eq!(bench.detail("new_flow_count"), 2, "it is not new again");
}

#[test]
fn a_new_flow_sends_a_quantum_and_then_takes_turns() {
    let mut bench = Bench::new("fq_codel quantum 3028");
    let flows = flows_apart(2);
    for id in 0..10 {
        bench.offer(packet(id).flow(flows[0]));
    }
    for id in 10..20 {
        bench.offer(packet(id).flow(flows[1]));
    }
    let order: Vec<u64> =
        (0..8).filter_map(|_| bench.take()).map(|packet| packet.key.ports).collect();
    let (a, b) = (flows[0], flows[1]);
    assert_eq!(order, [a, a, b, b, a, a, b, b]);
}

#[test]
fn overflow_drops_half_of_the_fattest_flow_from_its_head_up_to_64() {
    let flows = flows_apart(2);
    let mut bench = Bench::new("fq_codel limit 100");
    for id in 0..20 {
        bench.offer(packet(id).flow(flows[0]));
    }
    for id in 100..181 {
        bench.offer(packet(id).flow(flows[1]));
    }
    // 81 packets of 1514 bytes: half is reached with the 41st.
    assert_eq!(bench.dropped_ids(DropReason::Overflow), (100..141).collect::<Vec<_>>());
    assert_eq!(bench.detail("drop_overlimit"), 41);

    // Of two packets one is half.
    let mut bench = Bench::new("fq_codel limit 1");
    bench.offer(packet(0));
    bench.offer(packet(1));
    assert_eq!(bench.dropped_ids(DropReason::Overflow), [0]);

    let mut bench = Bench::new("fq_codel limit 200");
    for id in 0..201 {
        bench.offer(packet(id).flow(flows[0]));
    }
    assert_eq!(bench.dropped_ids(DropReason::Overflow), (0..64).collect::<Vec<_>>());
}

#[test]
fn overflow_raises_the_count_of_the_flow_that_paid() {
    let mut codel = FqCodel::new(&default_config("fq_codel limit 200"), stream(1));
    let mut record = crate::testing::Recorder::default();
    for id in 0..201 {
        codel.enqueue(Time::ZERO, packet(id), &mut record);
    }
    let counts: Vec<u32> =
        codel.rounds.iter().map(|flow| flow.codel.count).filter(|count| *count > 0).collect();
    assert_eq!(counts, [64]);
    assert_eq!(codel.drop_overlimit, 64);
}

#[test]
fn the_fattest_flow_is_so_by_bytes() {
    let flows = flows_apart(2);
    let mut bench = Bench::new("fq_codel limit 30");
    for id in 0..20 {
        bench.offer(packet(id).flow(flows[0]).ip_len(40));
    }
    for id in 100..111 {
        bench.offer(packet(id).flow(flows[1]));
    }
    assert!(bench.dropped_ids(DropReason::Overflow).iter().all(|id| *id >= 100));
}

#[test]
fn memory_is_counted_as_linux_charges_it() {
    // 2432 bytes are charged for a full packet, so eleven are too many for 26752 - 1.
    let mut bench = Bench::new("fq_codel memory_limit 26751 drop_batch 1");
    for id in 0..11 {
        bench.offer(packet(id));
    }
    assert_eq!(bench.dropped_ids(DropReason::Overflow), [0]);
    assert_eq!(bench.detail("memory_used"), 24_320);
    assert_eq!(bench.detail("drop_overmemory"), 1);
}

/// Drops of a flow that holds one full packet behind each head, all of them late, beside a long
/// queue.
fn drops_of_the_small_queue(text: &str) -> usize {
    let flows = flows_apart(2);
    let mut bench = Bench::new(text);
    for id in 0..8000 {
        bench.offer(packet(id).flow(flows[0]));
    }
    bench.offer(packet(1).flow(flows[1]));
    bench.offer(packet(1).flow(flows[1]));
    let is_small = |packet: &TestPacket| packet.key.ports == flows[1];
    let mut dropped = 0;
    for _ in 0..400 {
        bench.wait(Span::from_millis(10));
        let taken = bench.take().expect("the long queue lasts");
        let drops = bench.record.dropped.iter().filter(|(_, packet, _)| is_small(packet)).count();
        for _ in 0..usize::from(is_small(&taken)) + drops - dropped {
            bench.offer(packet(1).flow(flows[1]));
        }
        dropped = drops;
    }
    dropped
}

#[test]
fn the_kernels_guard_sees_all_flows_and_the_rfcs_its_own() {
    assert!(drops_of_the_small_queue("fq_codel noecn") > 0);
    assert_eq!(drops_of_the_small_queue("fq_codel noecn mode rfc"), 0);
}

#[test]
fn codel_state_stays_with_the_queue() {
    let mut codel = FqCodel::new(&default_config("fq_codel noecn"), stream(1));
    let mut record = crate::testing::Recorder::default();
    let mut now = Time::ZERO;
    for id in 0..2000 {
        codel.enqueue(now, packet(id), &mut record);
    }
    for _ in 0..1500 {
        now += Span::from_millis(1);
        let _ = codel.dequeue(now, &mut record);
    }
    let highest = |codel: &FqCodel<TestPacket>| {
        codel.rounds.iter().map(|flow| flow.codel.count).max().unwrap_or(0)
    };
    let count = highest(&codel);
    assert!(count > 10);
    while matches!(codel.dequeue(now, &mut record), Dequeue::Packet(..)) {}
    assert_eq!(codel.rounds.active().count(), 0);
    assert!(highest(&codel) >= count);
}

#[test]
fn ecn_is_on_by_default() {
    let mut bench = Bench::new("fq_codel");
    for id in 0..5000 {
        bench.offer(packet(id).ecn(Ecn::Ect0));
    }
    for _ in 0..2000 {
        bench.wait(Span::from_millis(1));
        bench.take();
    }
    assert!(bench.record.dropped.is_empty());
    assert!(bench.detail("ecn_mark") > 10);
}

#[test]
fn ce_threshold_marks_only_what_its_selector_names() {
    let mut bench = Bench::new("fq_codel ce_threshold 1ms ce_threshold_selector 0x1/0x3");
    for (ecn, marked) in [(Ecn::Ect1, true), (Ecn::Ect0, false)] {
        bench.offer(packet(0).ecn(ecn));
        bench.wait(Span::from_millis(2));
        assert_eq!(bench.take().expect("queued").ecn == Ecn::Ce, marked);
    }
}

#[test]
fn another_seed_puts_flows_elsewhere() {
    let queues = |seed| {
        let hash = FlowHash::new(&mut stream(seed));
        (0..50).map(|flow| bucket(hash.flow(&packet(0).flow(flow).key), 1024)).collect::<Vec<_>>()
    };
    assert_ne!(queues(1), queues(2));
    assert_eq!(queues(1), queues(1));
}

#[test]
fn flows_spread_evenly_over_the_queues() {
    let hash = FlowHash::new(&mut stream(1));
    let mut counts = [0u32; 64];
    for flow in 0..64_000 {
        counts[bucket(hash.flow(&packet(0).flow(flow).key), 64) as usize] += 1;
    }
    let deviations = counts.iter().map(|count| f64::from(*count) - 1000.0);
    let chi_square: f64 = deviations.map(|deviation| deviation * deviation / 1000.0).sum();
    // 63 degrees of freedom: 99.9 % lie below 103.4.
    assert!(chi_square < 103.4, "{chi_square}");
}

fn default_config(text: &str) -> Config {
    match AnyConfig::parse(text) {
        Ok(AnyConfig::FqCodel(config)) => config,
        other => panic!("{text}: {other:?}"),
    }
}

#[test]
fn tc_shows_the_defaults() {
    assert_eq!(
        text_reads_back("fq_codel"),
        "fq_codel limit 10240p flows 1024 quantum 1514 target 5ms interval 100ms \
         memory_limit 32Mb ecn drop_batch 64"
    );
    assert_eq!(
        text_reads_back("fq_codel limit 1000 target 5ms noecn quantum 100 ce_threshold 2ms"),
        "fq_codel limit 1000p flows 1024 quantum 256 target 5ms interval 100ms ce_threshold 2ms \
         memory_limit 32Mb noecn drop_batch 64"
    );
}

#[test]
fn bad_parameters_say_what_is_allowed() {
    for (text, part) in [
        ("fq_codel flows 0", "1 to 65536"),
        ("fq_codel quantum 2000000", "1048576"),
        ("fq_codel memory_limit 0", "1 to"),
        ("fq_codel ce_threshold_selector 3", "0x1/0x3"),
        ("fqcodel", "did you mean 'fq_codel'?"),
        ("fq_codel bandwidth 1mbit", "no parameter 'bandwidth'"),
    ] {
        let error = AnyConfig::parse(text).unwrap_err().to_string();
        assert!(error.contains(part), "{text}: {error}");
    }
}

proptest::proptest! {
    /// What passes without being stored leaves the discipline as it is after both calls.
    #[test]
    fn passing_is_entering_and_leaving(
        steps in proptest::collection::vec((0u64..40, 0u64..5, 40u32..1500, 0u8..4), 1..400)
    ) {
        let AnyConfig::FqCodel(config) =
            AnyConfig::parse("fq_codel flows 4 limit 20 memory_limit 20kb").unwrap() else { panic!() };
        let [mut one, mut both] = [(); 2].map(|()| FqCodel::new(&config, stream(1)));
        let [mut first, mut second] = [Recorder::default(), Recorder::default()];
        let mut now = Time::ZERO;
        for (id, (wait, flow, ip_len, kind)) in (0..).zip(steps) {
            now += Span::from_millis(wait);
            let packet = packet(id).flow(flow).ip_len(ip_len);
            if kind > 0 {
                let _ = both.enqueue(now, packet, &mut second);
                let passes = kind == 1 && one.pass(&packet);
                // Entering without a copy for the call is entering.
                let keeps = kind == 2 && one.keep(now, &packet, || packet);
                if passes {
                    let out = both.dequeue(now, &mut second);
                    proptest::prop_assert!(matches!(out, Dequeue::Packet(out, Span::ZERO) if out.id == id));
                } else if !keeps {
                    let _ = one.enqueue(now, packet, &mut first);
                }
            }
            if kind != 1 {
                let [a, b] = [one.dequeue(now, &mut first), both.dequeue(now, &mut second)];
                proptest::prop_assert_eq!(format!("{a:?}"), format!("{b:?}"));
            }
            proptest::prop_assert_eq!((one.details(), first.dropped.len()), (both.details(), second.dropped.len()));
            proptest::prop_assert_eq!(one.backlog(), both.backlog());
        }
    }
}
