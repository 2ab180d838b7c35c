use std::collections::BTreeMap;

use proptest::prelude::*;
use sojourn_core::{Cells, DropReason, Ecn, Framing, PureAck, Rate, SackBlock, Span};

use super::tin::WAYS;
use super::turns::QUEUES;
use super::*;
use crate::testing::{Bench, Recorder, TestPacket, packet, stream, text_reads_back};
use crate::{AnyQdisc, Config as AnyConfig};

fn config(text: &str) -> Config {
    match AnyConfig::parse(text) {
        Ok(AnyConfig::Cake(config)) => config,
        other => panic!("{text}: {other:?}"),
    }
}

fn cake(text: &str) -> Cake<TestPacket> {
    Cake::new(&config(text), stream(1))
}

/// Share of the bytes that left, by `group`.
fn shares<K: Ord>(left: &[TestPacket], group: impl Fn(&TestPacket) -> K) -> BTreeMap<K, f64> {
    let mut bytes = BTreeMap::new();
    for packet in left {
        *bytes.entry(group(packet)).or_insert(0.0) += f64::from(packet.wire_len());
    }
    let total: f64 = bytes.values().sum();
    for share in bytes.values_mut() {
        *share /= total;
    }
    bytes
}

/// Keeps two hundred packets of each kind waiting for five seconds; gives what left.
fn saturate(text: &str, kinds: &[TestPacket]) -> Vec<TestPacket> {
    let mut bench = Bench::new(text);
    for kind in kinds {
        for _ in 0..200 {
            bench.offer(*kind);
        }
    }
    let mut left = Vec::new();
    while bench.now < Time::ZERO + Span::from_secs(5) {
        let packet = bench.take().expect("the queue is kept full");
        bench.offer(packet);
        for (_, dropped, _) in std::mem::take(&mut bench.record.dropped) {
            bench.offer(dropped);
        }
        // A link faster than the shaper.
        bench.wait(Span::from_nanos(1_000));
        left.push(packet);
    }
    left
}

// Framing.

#[test]
fn packets_get_the_length_that_the_link_gives_them() {
    let length = |text: &str, ip_len| config(text).framing().length_of(&packet(0).ip_len(ip_len));
    for (text, ip_len, expected) in [
        ("cake overhead 44 atm", 1500, 1749),
        ("cake overhead 44 atm", 1492, 1696),
        ("cake overhead 44 atm", 64, 159),
        ("cake overhead 30 ptm", 1500, 1554),
        ("cake pppoe-ptm", 1500, 1554),
        ("cake overhead 18 mpu 64", 40, 64),
        ("cake docsis", 40, 64),
        ("cake overhead 38 mpu 84", 40, 84),
        ("cake ethernet", 40, 84),
        ("cake ethernet", 1500, 1538),
        ("cake ethernet ether-vlan", 1500, 1542),
        ("cake conservative", 1500, 33 * 53),
        ("cake", 1500, 1514),
        ("cake raw", 1500, 1514),
        ("cake overhead 0", 1500, 1500),
        ("cake overhead -14", 1500, 1486),
    ] {
        assert_eq!(length(text, ip_len), expected, "{text} {ip_len}");
    }
}

#[test]
fn link_keywords_are_what_the_manual_says_they_are() {
    for (keyword, meaning) in [
        ("conservative", "overhead 48 atm"),
        ("ethernet", "overhead 38 mpu 84 noatm"),
        ("docsis", "overhead 18 mpu 64 noatm"),
        ("pppoe-ptm", "overhead 30 ptm"),
        ("bridged-ptm", "overhead 22 ptm"),
        ("pppoe-llcsnap", "overhead 40 atm"),
        ("pppoe-vcmux", "overhead 32 atm"),
        ("pppoa-llc", "overhead 14 atm"),
        ("pppoa-vcmux", "overhead 10 atm"),
        ("bridged-llcsnap", "overhead 32 atm"),
        ("bridged-vcmux", "overhead 24 atm"),
        ("ipoa-llcsnap", "overhead 16 atm"),
        ("ipoa-vcmux", "overhead 8 atm"),
    ] {
        assert_eq!(config(&format!("cake {keyword}")), config(&format!("cake {meaning}")));
    }
}

#[test]
fn an_unsplit_super_packet_pays_for_every_segment() {
    let framing = config("cake ethernet").framing();
    assert_eq!(framing.length_of(&packet(0).segments(10)), 15_380);
    let framing = config("cake overhead 44 atm").framing();
    assert_eq!(framing.length_of(&packet(0).segments(3)), 3 * 1749);
}

// Derived parameters.

#[test]
fn diffserv3_at_10_mbit_has_the_thresholds_targets_and_intervals_users_report() {
    let bench = Bench::new("cake bandwidth 10mbit");
    for (tin, thresh, target_us, interval_us) in [
        ("Bulk", 625_000, 29_068, 124_068),
        ("Best Effort", 10_000_000, 5_000, 100_000),
        ("Voice", 2_500_000, 7_267, 102_267),
    ] {
        let detail = |name: &str| bench.detail(&format!("{tin} {name}"));
        assert_eq!(detail("thresh"), thresh, "{tin}");
        assert!(detail("target").abs_diff(target_us * 1000) < 1000, "{tin} {}", detail("target"));
        assert!(detail("interval").abs_diff(interval_us * 1000) < 1000, "{tin}");
    }
    assert_eq!(bench.detail("Best Effort quantum"), 305);
    assert_eq!(bench.detail("Bulk quantum"), 300);
}

#[test]
fn an_unlimited_cake_has_one_target_and_full_quanta() {
    let bench = Bench::new("cake");
    for tin in ["Bulk", "Best Effort", "Voice"] {
        assert_eq!(bench.detail(&format!("{tin} target")), 5_000_000);
        assert_eq!(bench.detail(&format!("{tin} interval")), 100_000_000);
        assert_eq!(bench.detail(&format!("{tin} quantum")), 1514);
    }
    assert_eq!(bench.detail("memory_limit"), 10_240 * 1514);
}

#[test]
fn the_buffer_holds_four_bandwidth_delay_products_within_bounds() {
    for (text, limit) in [
        ("cake bandwidth 10mbit", 4 << 20),
        ("cake bandwidth 100mbit", 5_000_000),
        ("cake bandwidth 1gbit", 10_240 * 1514),
        ("cake bandwidth 1gbit memlimit 32mb", 32 << 20),
        ("cake bandwidth 10mbit satellite", 5_000_000),
    ] {
        assert_eq!(config(text).buffer_limit(), limit, "{text}");
    }
}

#[test]
fn code_points_find_their_tins() {
    let code_points = [1, 8, 4, 16, 34, 44, 46, 48, 0];
    for (priority, expected) in [
        (Priority::Besteffort, [0; 9]),
        (Priority::Diffserv3, [1, 1, 2, 0, 0, 2, 2, 2, 0]),
        (Priority::Diffserv4, [1, 1, 2, 2, 2, 3, 3, 3, 0]),
        (Priority::Diffserv8, [0, 1, 4, 5, 3, 6, 6, 7, 2]),
        (Priority::Precedence, [0, 1, 0, 2, 4, 5, 5, 6, 0]),
    ] {
        let tins = code_points.map(|dscp: usize| priority.table()[dscp]);
        assert_eq!(tins, expected, "{priority:?}");
    }
}

// Shaper.

#[test]
fn the_shaper_keeps_its_rate_and_never_bursts() {
    let left = saturate("cake bandwidth 10mbit besteffort", &[packet(0)]);
    let bytes: f64 = left.iter().map(|packet| f64::from(packet.wire_len())).sum();
    let rate = bytes * 8.0 / 5.0;
    assert!((rate / 10e6 - 1.0).abs() < 0.001, "{rate}");

    let mut bench = Bench::new("cake bandwidth 10mbit");
    bench.wait(Span::from_secs(10));
    for id in 0..3 {
        bench.offer(packet(id));
    }
    let start = bench.now;
    let mut departures = Vec::new();
    while bench.take().is_some() {
        departures.push(bench.now.since(start).as_micros());
    }
    assert_eq!(departures, [0, 1211, 2422], "idle time earns nothing");
}

#[test]
fn the_shaper_charges_what_the_link_needs() {
    let left = saturate("cake bandwidth 10mbit overhead 44 atm", &[packet(0)]);
    let cells: f64 = left.len() as f64 * 1749.0 * 8.0 / 5.0;
    assert!((cells / 10e6 - 1.0).abs() < 0.001, "{cells}");
}

#[test]
fn a_pace_is_exact_to_a_nanosecond_a_packet() {
    for bps in [64_000, 1_000_000, 10_000_000, 937_000_000, 40_000_000_000] {
        let rate = Rate::from_bps(bps);
        let pace = shaper::Pace::new(rate);
        let exact = rate.time_for(1514).as_nanos();
        assert!(pace.time_for(1514).as_nanos().abs_diff(exact) <= 1, "{rate}");
    }
}

/// Packets that a queue of one deaf flow lets out in a second, and how many it drops.
fn deaf_flow(text: &str) -> (usize, usize) {
    let mut bench = Bench::new(text);
    let mut sent = 0;
    let mut next = bench.now;
    while bench.now < Time::ZERO + Span::from_secs(4) {
        // 13.3 Mbit/s into 10 Mbit/s.
        while next <= bench.now {
            bench.offer(packet(0));
            next += Span::from_micros(910);
        }
        match bench.qdisc.dequeue(bench.now, &mut bench.record) {
            Dequeue::Packet(..) => sent += 1,
            Dequeue::Empty => bench.now = next,
            Dequeue::NotBefore(time) => bench.now = time.min(next),
        }
    }
    (sent, bench.record.dropped.len())
}

#[test]
fn ingress_pays_for_drops_and_egress_does_not() {
    let (egress, dropped) = deaf_flow("cake bandwidth 10mbit besteffort");
    assert!(egress.abs_diff(3303) < 5, "{egress}");
    assert!(dropped > 50, "{dropped}");
    let (ingress, dropped) = deaf_flow("cake bandwidth 10mbit besteffort ingress");
    assert!((ingress + dropped).abs_diff(3303) < 5, "{ingress} + {dropped}");
}

// Tins.

#[test]
fn bulk_gets_its_sixteenth_and_voice_its_quarter() {
    let kinds = [packet(0).flow(1).dscp(8), packet(0).flow(2), packet(0).flow(3).dscp(46)];
    let left = saturate("cake bandwidth 10mbit", &kinds);
    let shares = shares(&left, |packet| packet.dscp);
    assert!((shares[&8] - 1.0 / 16.0).abs() < 0.01, "{shares:?}");
    assert!((shares[&46] - 0.25).abs() < 0.01, "{shares:?}");
}

#[test]
fn a_tin_takes_what_the_others_leave() {
    let left = saturate("cake bandwidth 10mbit", &[packet(0).dscp(8)]);
    let rate = left.len() as f64 * 1514.0 * 8.0 / 5.0;
    assert!((rate / 10e6 - 1.0).abs() < 0.001, "{rate}");
}

#[test]
fn unlimited_tins_share_by_weight() {
    let mut bench = Bench::new("cake");
    let kinds = [packet(0).flow(1).dscp(8), packet(0).flow(2), packet(0).flow(3).dscp(46)];
    for kind in &kinds {
        for _ in 0..2000 {
            bench.offer(*kind);
        }
    }
    let left: Vec<TestPacket> = (0..2600).filter_map(|_| bench.take()).collect();
    let shares = shares(&left, |packet| packet.dscp);
    let total = 1024.0 + 64.0 + 256.0;
    for (dscp, weight) in [(0, 1024.0), (8, 64.0), (46, 256.0)] {
        assert!((shares[&dscp] - weight / total).abs() < 0.01, "{shares:?}");
    }
}

#[test]
fn wash_clears_the_code_point_after_its_use() {
    let mut bench = Bench::new("cake bandwidth 10mbit wash");
    bench.offer(packet(0).dscp(46));
    assert_eq!(bench.detail("Voice pkts"), 1);
    assert_eq!(bench.take().map(|packet| packet.dscp), Some(0));
}

// Flows and hosts.

fn set_members(cake: &Cake<TestPacket>, isolation: Isolation, count: usize) -> Vec<TestPacket> {
    let set = |packet: &TestPacket| isolation.flow_hash(&packet.key, cake.hash) % QUEUES / WAYS;
    let first = packet(0).flow(0);
    let wanted = set(&first);
    (0..).map(|flow| packet(0).flow(flow)).filter(|p| set(p) == wanted).take(count).collect()
}

#[test]
fn eight_flows_of_a_set_have_queues_of_their_own_and_the_ninth_shares() {
    let mut cake = cake("cake besteffort flows");
    let members = set_members(&cake, Isolation::Flows, 9);
    let mut record = Recorder::default();
    for member in &members[..8] {
        cake.enqueue(Time::ZERO, *member, &mut record);
    }
    let held =
        |cake: &Cake<TestPacket>| cake.tins[0].backlogs.iter().filter(|bytes| **bytes > 0).count();
    assert_eq!(held(&cake), 8);
    assert_eq!(cake.tins[0].stats.way_misses, 8);
    cake.enqueue(Time::ZERO, members[8], &mut record);
    assert_eq!(held(&cake), 8);
    assert_eq!(cake.tins[0].stats.way_collisions, 1);
    // It shares the queue it was hashed to.
    let direct = Isolation::Flows.flow_hash(&members[8].key, cake.hash) % QUEUES;
    assert_eq!(cake.tins[0].backlogs[direct as usize], 2 * 1514);
}

#[test]
fn a_flow_finds_its_queue_again_beside_the_one_hashed_to() {
    let mut cake = cake("cake besteffort flows");
    // Two flows of one set that are hashed to the same queue.
    let direct = |cake: &Cake<TestPacket>, packet: &TestPacket| {
        Isolation::Flows.flow_hash(&packet.key, cake.hash) % QUEUES
    };
    let first = packet(0).flow(0);
    let second = (1..)
        .map(|flow| packet(0).flow(flow))
        .find(|packet| direct(&cake, packet) == direct(&cake, &first))
        .expect("there is always another");
    let mut record = Recorder::default();
    cake.enqueue(Time::ZERO, first, &mut record);
    cake.enqueue(Time::ZERO, second, &mut record);
    assert_eq!(cake.tins[0].stats.way_hits, 0);
    cake.enqueue(Time::ZERO, second, &mut record);
    assert_eq!(cake.tins[0].stats.way_hits, 1);
    let queue = direct(&cake, &second);
    let beside = queue / WAYS * WAYS + (queue + 1) % WAYS;
    assert_eq!(cake.tins[0].backlogs[beside as usize], 2 * 1514);
}

/// Host 1 has one flow and host 2 has ten; `dst` tells whether they receive or send.
fn one_against_ten(text: &str, dst: bool) -> f64 {
    let mut kinds = Vec::new();
    for (host, flows) in [(1, 0..1), (2, 100..110)] {
        for flow in flows {
            let (src, to) = if dst { (50 + flow as u32, host) } else { (host, 50 + flow as u32) };
            kinds.push(packet(0).flow(flow).hosts(src, to).ecn(Ecn::Ect0));
        }
    }
    let left = saturate(text, &kinds);
    shares(&left, |packet| if dst { packet.key.dst } else { packet.key.src })[&1]
}

#[test]
fn hosts_share_evenly_whatever_flows_they_have() {
    for (isolation, dst) in [
        ("triple-isolate", false),
        ("triple-isolate", true),
        ("dual-srchost", false),
        ("dual-dsthost", true),
    ] {
        let share = one_against_ten(
            &format!("cake bandwidth 50mbit memlimit 32mb besteffort {isolation}"),
            dst,
        );
        assert!((share - 0.5).abs() < 0.02, "{isolation} {share}");
    }
    for isolation in ["srchost", "hosts"] {
        let text = format!("cake bandwidth 50mbit memlimit 32mb besteffort {isolation}");
        let share = one_against_ten(&text, false);
        let expected = if isolation == "srchost" { 0.5 } else { 1.0 / 11.0 };
        assert!((share - expected).abs() < 0.02, "{isolation} {share}");
    }
}

#[test]
fn flows_share_evenly_without_host_isolation() {
    for isolation in ["flows", "dual-dsthost"] {
        let share = one_against_ten(
            &format!("cake bandwidth 50mbit memlimit 32mb besteffort {isolation}"),
            false,
        );
        assert!((share - 1.0 / 11.0).abs() < 0.02, "{isolation} {share}");
    }
}

#[test]
fn bulk_flows_are_counted_with_their_hosts_and_uncounted_when_they_end() {
    let mut bench = Bench::new("cake bandwidth 10mbit besteffort");
    for flow in 0..5 {
        for _ in 0..20 {
            bench.offer(packet(0).flow(flow).hosts(7, 8));
        }
    }
    for _ in 0..30 {
        bench.take();
    }
    let AnyQdisc::Cake(cake) = &bench.qdisc else { panic!("it is a cake") };
    assert_eq!(cake.tins[0].source_bulk_counts(), [5]);
    assert_eq!(cake.tins[0].bulk, 5);
    while bench.take().is_some() {}
    // One more packet lets the emptied queues be looked at.
    for _ in 0..40 {
        bench.wait(Span::from_millis(200));
        bench.offer(packet(0).flow(99));
        bench.take();
        bench.offer(packet(0).flow(99));
        bench.take();
    }
    let AnyQdisc::Cake(cake) = &bench.qdisc else { panic!("it is a cake") };
    assert!(cake.tins[0].source_bulk_counts().iter().sum::<u32>() <= 1);
    assert!(cake.tins[0].sparse + cake.tins[0].bulk + cake.tins[0].decaying <= 2);
}

#[test]
fn a_flow_that_takes_over_a_bulk_queue_takes_it_off_the_old_host() {
    let mut cake = cake("cake besteffort dual-srchost");
    let set = |cake: &Cake<TestPacket>, packet: &TestPacket| {
        Isolation::Flows.flow_hash(&packet.key, cake.hash) % QUEUES / WAYS
    };
    let wanted = set(&cake, &packet(0).hosts(1, 9));
    let in_set = |cake: &Cake<TestPacket>, host: u32, count: usize| -> Vec<TestPacket> {
        let all = (0..).map(|flow| packet(0).flow(flow).hosts(host, 9));
        all.filter(|packet| set(cake, packet) == wanted).take(count).collect()
    };
    let (old, new) = (in_set(&cake, 1, 8), in_set(&cake, 2, 1));
    let mut record = Recorder::default();
    for member in &old {
        for _ in 0..4 {
            cake.enqueue(Time::ZERO, *member, &mut record);
        }
    }
    for _ in 0..16 {
        let _ = cake.dequeue(Time::ZERO, &mut record);
    }
    assert_eq!(cake.tins[0].source_bulk_counts(), [8]);
    cake.enqueue(Time::ZERO, new[0], &mut record);
    let mut counts = cake.tins[0].source_bulk_counts();
    counts.sort_unstable();
    assert_eq!(counts, [1, 7]);
}

/// Two hosts whose addresses hash to the same bucket.
fn hosts_of_one_bucket(cake: &Cake<TestPacket>) -> (u32, u32) {
    let bucket = |host: u32| cake.hash.host(host) % QUEUES;
    let other = (2..).find(|host| bucket(*host) == bucket(1)).expect("addresses are plenty");
    (1, other)
}

#[test]
fn a_host_whose_flows_are_all_sparse_loses_its_bucket_to_the_next_one() {
    let mut cake = cake("cake besteffort dual-srchost");
    let (first, second) = hosts_of_one_bucket(&cake);
    let mut record = Recorder::default();
    // Both begin before either has used up its first quantum, so the second takes the bucket.
    let flows = [(1, first), (2, second)].map(|(flow, host)| packet(0).flow(flow).hosts(host, 9));
    for flow in &flows {
        for _ in 0..6 {
            cake.enqueue(Time::ZERO, *flow, &mut record);
        }
    }
    for _ in 0..4 {
        let _ = cake.dequeue(Time::ZERO, &mut record);
    }
    assert_eq!(cake.tins[0].source_bulk_counts(), [2], "they count as one host");
    // The first host's next flow finds the bucket renamed and takes another, which it has alone.
    for _ in 0..6 {
        cake.enqueue(Time::ZERO, packet(0).flow(3).hosts(first, 9), &mut record);
    }
    for _ in 0..6 {
        let _ = cake.dequeue(Time::ZERO, &mut record);
    }
    let mut counts = cake.tins[0].source_bulk_counts();
    counts.sort_unstable();
    assert_eq!(counts, [1, 2]);
}

#[test]
fn a_host_with_a_bulk_flow_keeps_its_bucket() {
    let mut cake = cake("cake besteffort dual-srchost");
    let (first, second) = hosts_of_one_bucket(&cake);
    let mut record = Recorder::default();
    for (flow, host) in [(1, first), (2, second)] {
        for _ in 0..8 {
            cake.enqueue(Time::ZERO, packet(0).flow(flow).hosts(host, 9), &mut record);
        }
        for _ in 0..3 {
            let _ = cake.dequeue(Time::ZERO, &mut record);
        }
    }
    assert_eq!(cake.tins[0].source_bulk_counts(), [1, 1]);
}

#[test]
fn a_sparse_flow_goes_before_bulk_flows() {
    let mut bench = Bench::new("cake bandwidth 10mbit besteffort");
    for id in 0..50 {
        bench.offer(packet(id).flow(1));
        bench.offer(packet(id).flow(2));
    }
    for _ in 0..20 {
        bench.take();
    }
    bench.offer(packet(1000).flow(3).ip_len(84));
    assert_eq!(bench.take().map(|packet| packet.id), Some(1000));
}

// Queue management.

#[test]
fn the_last_packet_of_a_queue_is_never_dropped() {
    let mut bench = Bench::new("cake bandwidth 1mbit besteffort rtt 1ms");
    for id in 0..200 {
        bench.offer(packet(id));
        bench.wait(Span::from_secs(1));
        assert_eq!(bench.take().map(|packet| packet.id), Some(id));
    }
    for id in 0..30 {
        bench.offer(packet(id));
    }
    bench.wait(Span::from_secs(5));
    let mut last = None;
    while let Some(packet) = bench.take() {
        last = Some(packet.id);
        bench.wait(Span::from_millis(50));
    }
    assert!(!bench.record.dropped.is_empty());
    assert_eq!(last, Some(29));
}

#[test]
fn a_packet_that_can_be_marked_is_marked_and_not_dropped() {
    let mut bench = Bench::new("cake bandwidth 10mbit besteffort");
    for id in 0..800 {
        bench.offer(packet(id).ecn(Ecn::Ect0));
    }
    while bench.take().is_some() {}
    assert!(bench.record.dropped.is_empty());
    assert!(bench.record.marked.len() > 10);
    assert_eq!(bench.detail("Tin 0 marks"), bench.record.marked.len() as u64);
}

#[test]
fn the_longest_queue_of_all_tins_loses_its_head_when_the_buffer_is_full() {
    // Ten full packets of 2432 bytes of memory.
    let mut bench = Bench::new("cake bandwidth 10mbit memlimit 24320");
    for id in 0..6 {
        bench.offer(packet(id).flow(1).dscp(46));
    }
    for id in 10..14 {
        bench.offer(packet(id).flow(2));
    }
    assert!(bench.record.dropped.is_empty());
    bench.offer(packet(20).flow(3).dscp(8));
    assert_eq!(bench.dropped_ids(DropReason::Overflow), [0]);
    assert_eq!(bench.detail("Voice un_flows"), 1, "BLUE acts on it");
    assert_eq!(bench.detail("memory_limit"), 24_320);
}

#[test]
fn super_packets_are_split_by_default() {
    let mut bench = Bench::new("cake bandwidth 10mbit");
    bench.offer(packet(0).segments(10));
    assert_eq!(bench.qdisc.backlog(), Backlog { packets: 10, bytes: 15_140 });
    assert_eq!(bench.take().map(|packet| (packet.segments, packet.ip_len)), Some((1, 1500)));
    let mut bench = Bench::new("cake bandwidth 10mbit no-split-gso");
    bench.offer(packet(0).segments(10));
    assert_eq!(bench.qdisc.backlog(), Backlog { packets: 1, bytes: 15_140 });
}

// Acknowledgements.

fn ack(id: u32, number: u64) -> TestPacket {
    ack_with(id, PureAck { ack: number, ..BARE })
}

fn ack_with(id: u32, ack: PureAck) -> TestPacket {
    packet(id).ack(ack)
}

const BARE: PureAck = PureAck {
    ack: 0,
    sack: [SackBlock { start: 0, end: 0 }; 3],
    sack_count: 0,
    ecn_flags: 0,
    timestamp: Time::ZERO,
};

fn sack(number: u64, start: u32, end: u32) -> PureAck {
    let mut ack = PureAck { ack: number, sack_count: 1, ..BARE };
    ack.sack[0] = SackBlock { start, end };
    ack
}

/// What is filtered of these, by the normal and by the aggressive filter.
fn filtered(packets: &[TestPacket]) -> [Vec<u32>; 2] {
    ["ack-filter", "ack-filter-aggressive"].map(|filter| {
        let mut bench = Bench::new(&format!("cake bandwidth 1mbit {filter}"));
        for packet in packets {
            bench.offer(*packet);
        }
        bench.dropped_ids(DropReason::AckFiltered)
    })
}

#[test]
fn the_normal_filter_keeps_two_and_the_aggressive_one() {
    let acks: Vec<TestPacket> = (0..6).map(|id| ack(id, u64::from(id))).collect();
    assert_eq!(filtered(&acks), [vec![0, 1, 2, 3], vec![0, 1, 2, 3, 4]]);
}

#[test]
fn duplicate_acknowledgements_without_news_stay() {
    let acks: Vec<TestPacket> = (0..6).map(|id| ack(id, 7)).collect();
    assert_eq!(filtered(&acks), [vec![], vec![]]);
}

#[test]
fn other_flows_and_data_are_left_alone() {
    let packets = [ack(0, 1), ack(1, 2).flow(9), packet(2), ack(3, 3), ack(4, 4)];
    assert_eq!(filtered(&packets)[0], [0]);
}

#[test]
fn a_change_of_ecn_flags_is_not_lost() {
    let flagged =
        |id: u32, ecn_flags| ack_with(id, PureAck { ack: u64::from(id), ecn_flags, ..BARE });
    let acks = [flagged(0, 0), flagged(1, 1), flagged(2, 1)];
    assert_eq!(filtered(&acks), [vec![], vec![1]]);
    let acks = [flagged(0, 0), flagged(1, 1)];
    assert_eq!(filtered(&acks), [vec![], vec![]]);
}

#[test]
fn selective_acknowledgements_go_only_when_a_newer_one_says_more() {
    let growing =
        [ack_with(0, sack(5, 7, 8)), ack_with(1, sack(5, 7, 9)), ack_with(2, sack(5, 7, 10))];
    assert_eq!(filtered(&growing), [vec![0], vec![0, 1]]);
    let disjoint =
        [ack_with(0, sack(5, 7, 8)), ack_with(1, sack(5, 9, 10)), ack_with(2, sack(5, 11, 13))];
    assert_eq!(filtered(&disjoint), [vec![], vec![]]);
    let duplicates = [ack_with(0, sack(5, 3, 4)), ack_with(1, sack(6, 3, 4)), ack(2, 7)];
    assert_eq!(filtered(&duplicates), [vec![], vec![]], "a duplicate report stays");
    let filled = [ack_with(0, sack(5, 7, 8)), ack(1, 9), ack(2, 10)];
    assert_eq!(filtered(&filled), [vec![], vec![1]]);
}

#[test]
fn a_newer_timestamp_is_not_dropped_for_an_older_one() {
    let stamped = |id: u32, ns| {
        ack_with(id, PureAck { ack: u64::from(id), timestamp: Time::from_nanos(ns), ..BARE })
    };
    assert_eq!(filtered(&[stamped(0, 9), stamped(1, 9), stamped(2, 5)]), [vec![], vec![0]]);
}

// Notation.

#[test]
fn tc_shows_the_defaults() {
    assert_eq!(
        text_reads_back("cake"),
        "cake bandwidth unlimited diffserv3 triple-isolate nonat nowash no-ack-filter split-gso \
         rtt 100ms raw overhead 0"
    );
    assert_eq!(
        text_reads_back(
            "cake bandwidth 2500kbit besteffort dual-dsthost wash ingress ack-filter metro docsis \
             no-split-gso memlimit 32mb"
        ),
        "cake bandwidth 2500Kbit besteffort dual-dsthost nonat wash ingress ack-filter \
         no-split-gso rtt 10ms noatm overhead 18 mpu 64 memlimit 32Mb"
    );
    assert_eq!(
        text_reads_back("cake bandwidth 0 ether-vlan pppoe-ptm"),
        "cake bandwidth unlimited diffserv3 triple-isolate nonat nowash no-ack-filter split-gso \
         rtt 100ms ptm overhead 34"
    );
    text_reads_back("cake raw atm overhead 10");
}

#[test]
fn what_is_left_out_says_so() {
    for word in ["nat", "fwmark 0xff", "autorate-ingress"] {
        let error = AnyConfig::parse(&format!("cake {word}")).unwrap_err().to_string();
        assert!(error.contains("left out"), "{error}");
    }
    for (text, part) in [
        ("cake bandwith 10mbit", "did you mean 'bandwidth'?"),
        ("cake overhead 300", "-64 to 256"),
        ("cake bandwidth 10mbps", "ambiguous"),
        ("cake bandwidth -1mbit", "negative"),
        ("cake diffserv5", "did you mean 'diffserv"),
        ("cake rtt 0", "1us"),
    ] {
        let error = AnyConfig::parse(text).unwrap_err().to_string();
        assert!(error.contains(part), "{text}: {error}");
    }
}

proptest! {
    #[test]
    fn a_link_never_takes_less_than_the_packet_and_its_overhead(
        len in 20u32..65_536, overhead in -20i32..=256, mpu in 0u32..=256,
    ) {
        for cells in [Cells::None, Cells::Atm, Cells::Ptm] {
            let framing = Framing { overhead, mpu, cells, from_ip: true };
            let bare = len.saturating_add_signed(overhead).max(mpu);
            prop_assert!(framing.length(len) >= bare);
            prop_assert!(framing.length(len) <= bare + bare / 9 + 53);
        }
    }
}
