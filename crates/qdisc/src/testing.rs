//! Packets, a bench and checks for the tests of every discipline.

use proptest::prelude::*;
use sojourn_core::{DropReason, Ecn, FlowKey, PureAck, Queued, Rate, Span, Time};

use crate::hash::{FlowHash, bucket};
use crate::suite::Operation;
pub(crate) use crate::suite::{Bench, Recorder, TestPacket, conserves, stream};
use crate::{Config, Qdisc};

/// A full packet of flow 0.
pub(crate) fn packet(id: u32) -> TestPacket {
    TestPacket {
        id,
        ip_len: 1500,
        segments: 1,
        key: FlowKey { src: 1, dst: 2, ports: 0 },
        ecn: Ecn::NotEct,
        dscp: 0,
        ack: None,
    }
}

impl TestPacket {
    pub(crate) fn ip_len(self, ip_len: u32) -> Self {
        Self { ip_len, ..self }
    }

    pub(crate) fn segments(self, segments: u32) -> Self {
        Self { segments, ip_len: self.ip_len * segments, ..self }
    }

    pub(crate) fn flow(mut self, flow: u64) -> Self {
        self.key.ports = flow;
        self
    }

    pub(crate) fn hosts(mut self, src: u32, dst: u32) -> Self {
        (self.key.src, self.key.dst) = (src, dst);
        self
    }

    pub(crate) fn ecn(self, ecn: Ecn) -> Self {
        Self { ecn, ..self }
    }

    pub(crate) fn dscp(self, dscp: u8) -> Self {
        Self { dscp, ..self }
    }

    pub(crate) fn ack(self, ack: PureAck) -> Self {
        Self { ack: Some(ack), ip_len: 52, ..self }
    }
}

impl Bench {
    pub(crate) fn new(text: &str) -> Self {
        Self::seeded(text, 1)
    }

    pub(crate) fn seeded(text: &str, seed: u64) -> Self {
        let config = Config::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        Self::of(&config, seed)
    }

    pub(crate) fn take(&mut self) -> Option<TestPacket> {
        self.take_with_wait().map(|(packet, _)| packet)
    }

    /// Waits for the shaper, if there is one.
    pub(crate) fn take_with_wait(&mut self) -> Option<(TestPacket, Span)> {
        self.next().expect("a shaper names a later time")
    }

    /// A link of `rate` drains the queue for `span`, while `arrivals` offers packets before each
    /// departure; returns what left.
    pub(crate) fn drain(
        &mut self,
        rate: Rate,
        span: Span,
        mut arrivals: impl FnMut(&mut Self),
    ) -> Vec<TestPacket> {
        let end = self.now + span;
        let mut left = Vec::new();
        while self.now < end {
            arrivals(self);
            let Some(packet) = self.take() else { break };
            self.now += rate.time_for(u64::from(packet.wire_len()));
            left.push(packet);
        }
        left
    }

    pub(crate) fn dropped_ids(&self, why: DropReason) -> Vec<u32> {
        let of_kind = self.record.dropped.iter().filter(|(_, _, reason)| *reason == why);
        of_kind.map(|(_, packet, _)| packet.id).collect()
    }

    pub(crate) fn drop_times(&self) -> Vec<Time> {
        self.record.dropped.iter().map(|(time, _, _)| *time).collect()
    }

    pub(crate) fn detail(&self, name: &str) -> u64 {
        let details = self.qdisc.details();
        let found = details.iter().find(|(detail, _)| *detail == name);
        found.unwrap_or_else(|| panic!("no detail '{name}' in {details:?}")).1
    }
}

/// How `text` is printed, after checking that the printed text means the same.
pub(crate) fn text_reads_back(text: &str) -> String {
    let config = Config::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    let shown = config.to_string();
    assert_eq!(Config::parse(&shown).as_ref(), Ok(&config), "{shown}");
    shown
}

fn any_packet() -> impl Strategy<Value = TestPacket> {
    let ecn = prop::sample::select(vec![Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ce]);
    (20u32..=1500, 1u32..4, 0u64..30, 0u32..4, ecn, 0u8..64, prop::option::of(0u64..50)).prop_map(
        |(ip_len, segments, flow, host, ecn, dscp, ack)| {
            let packet =
                packet(0).ip_len(ip_len).flow(flow).hosts(host, host / 2).ecn(ecn).dscp(dscp);
            match ack {
                Some(ack) => packet.ack(PureAck {
                    ack,
                    sack: Default::default(),
                    sack_count: 0,
                    ecn_flags: 0,
                    timestamp: Time::ZERO,
                }),
                None => packet.segments(segments),
            }
        },
    )
}

fn operations() -> impl Strategy<Value = Vec<Operation>> {
    let operation = prop_oneof![
        (0u64..40_000_000).prop_map(Operation::Wait),
        any_packet().prop_map(Operation::Offer),
        (any_packet(), 1u32..40).prop_map(|(packet, count)| Operation::Burst(packet, count)),
        Just(Operation::Take),
        (1u32..30).prop_map(Operation::TakeMany),
    ];
    prop::collection::vec(operation, 1..120)
}

/// One of each kind, and every option that changes what happens to packets.
const EVERY_KIND: &[&str] = &[
    "pfifo limit 20",
    "bfifo limit 20000",
    "codel limit 60 target 1ms interval 10ms",
    "codel limit 60 target 1ms interval 10ms ecn ce_threshold 2ms mode rfc",
    "fq_codel limit 60 target 1ms interval 10ms flows 4",
    "fq_codel memory_limit 60000 target 1ms interval 10ms noecn mode rfc drop_batch 3",
    "cake bandwidth 10mbit rtt 10ms memlimit 60000",
    "cake unlimited rtt 10ms ingress ack-filter no-split-gso wash diffserv8",
    "cake bandwidth 1mbit besteffort flows rtt 1ms ack-filter-aggressive atm overhead 40 ingress",
    "cake bandwidth 3mbit besteffort flowblind rtt 1ms memlimit 40000",
    "cake bandwidth 100mbit diffserv4 dual-dsthost rtt 1ms memlimit 80000",
    "cake bandwidth 2mbit precedence hosts rtt 1ms ptm mpu 84",
    "pie limit 60 target 1ms tupdate 2ms ecn",
    "pie limit 60 target 100us tupdate 1ms alpha 32 beta 32 bytemode",
    "pie limit 60 target 1ms tupdate 5ms dq_rate_estimator",
    "fq_pie limit 60 flows 4 target 1ms tupdate 2ms ecn ecn_prob 50 quantum 300",
    "fq_pie limit 60 target 100us tupdate 1ms alpha 32 beta 32 memory_limit 40000",
    "dualpi2 limit 60 target 1ms tupdate 2ms alpha 20 beta 200",
    "dualpi2 limit 60 target 1ms tupdate 2ms alpha 20 beta 200 drop_enqueue any_ect step_thresh 5pkt",
    "dualpi2 memlimit 60000 target 1ms tupdate 2ms alpha 20 beta 200 overflow no_split_gso",
    "dualpi2 limit 60 classic_protection 0 coupling_factor 0 min_qlen_step 3",
    "red limit 60000 min 3000 max 9000 avpkt 1000 burst 5 probability 0.5",
    "red limit 60000 min 3000 max 9000 avpkt 1000 burst 5 ecn nodrop adaptive bandwidth 1mbit",
    "red limit 60000 min 3000 max 9000 avpkt 1000 ecn harddrop",
    "fq limit 60 flow_limit 20 orphan_mask 3 quantum 300 initial_quantum 1000",
    "fq limit 60 maxrate 3mbit ce_threshold 1ms buckets 2",
    "fq limit 60 maxrate 300kbit refill_delay 1ms",
    "tbf rate 5mbit burst 5kb latency 20ms",
    "tbf rate 3mbit burst 10kb limit 60kb peakrate 8mbit mtu 2kb overhead 20 linklayer atm",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn nothing_is_lost_or_made_by_any_discipline(operations in operations()) {
        for text in EVERY_KIND {
            let has_classes = match text.split(' ').next() {
                Some("cake") => !text.contains("besteffort"),
                Some("dualpi2") => true,
                _ => false,
            };
            let config = Config::parse(text).expect("a kind");
            if let Err(problem) = conserves(&config, &operations, has_classes) {
                panic!("{text}: {problem}");
            }
        }
    }
}

#[test]
fn every_discipline_passes_the_suite() {
    for text in EVERY_KIND {
        assert_eq!(crate::suite::check(&Config::parse(text).expect("a kind")), Ok(()), "{text}");
    }
}

#[test]
fn what_links_do_is_said_to_be_theirs() {
    for (text, part) in [("netem loss 1%", "the link's"), ("htb rate 1mbit", "'htb rate")] {
        let error = Config::parse(text).unwrap_err().to_string();
        assert!(error.contains(part), "{text}: {error}");
    }
}

proptest! {
    #[test]
    fn no_text_makes_the_parser_panic(text in ".{0,60}") {
        let _ = Config::parse(&text);
    }

    #[test]
    fn no_words_make_the_parser_panic_and_what_is_printed_reads_back(
        name in prop::sample::select(NAMES.to_vec()),
        words in prop::collection::vec(prop::sample::select(WORDS.to_vec()), 0..7),
    ) {
        let text = format!("{name} {}", words.join(" "));
        if let Ok(config) = Config::parse(&text) {
            let shown = config.to_string();
            prop_assert_eq!(Config::parse(&shown), Ok(config), "{}", shown);
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_run(operations in operations()) {
        let text = "cake bandwidth 5mbit rtt 5ms memlimit 60000";
        let run = || {
            let mut bench = Bench::new(text);
            for operation in &operations {
                match operation {
                    Operation::Wait(ns) => bench.wait(Span::from_nanos(*ns)),
                    Operation::Offer(packet) | Operation::Burst(packet, _) => {
                        bench.offer(*packet);
                    }
                    Operation::Take | Operation::TakeMany(_) => drop(bench.take()),
                }
            }
            (bench.now, bench.record.dropped.len(), bench.record.marked, bench.qdisc.details())
        };
        prop_assert_eq!(run(), run());
    }
}

const NAMES: &[&str] = &[
    "pfifo", "bfifo", "codel", "fq_codel", "cake", "pie", "fq_pie", "dualpi2", "red", "fq", "tbf",
];

const WORDS: &[&str] = &[
    "tupdate",
    "alpha",
    "beta",
    "bytemode",
    "dq_rate_estimator",
    "ecn_prob",
    "memlimit",
    "coupling_factor",
    "step_thresh",
    "5pkt",
    "min_qlen_step",
    "any_ect",
    "overflow",
    "drop_enqueue",
    "no_split_gso",
    "classic_protection",
    "max_rtt",
    "typical_rtt",
    "min",
    "max",
    "avpkt",
    "burst",
    "probability",
    "0.1",
    "adaptive",
    "harddrop",
    "nodrop",
    "flow_limit",
    "orphan_mask",
    "initial_quantum",
    "maxrate",
    "nopacing",
    "refill_delay",
    "low_rate_threshold",
    "rate",
    "latency",
    "peakrate",
    "mtu",
    "linklayer",
    "limit",
    "target",
    "interval",
    "ecn",
    "noecn",
    "ce_threshold",
    "ce_threshold_selector",
    "mode",
    "rfc",
    "linux",
    "flows",
    "quantum",
    "memory_limit",
    "drop_batch",
    "bandwidth",
    "unlimited",
    "rtt",
    "overhead",
    "mpu",
    "atm",
    "ptm",
    "noatm",
    "raw",
    "ethernet",
    "docsis",
    "ether-vlan",
    "conservative",
    "pppoe-ptm",
    "besteffort",
    "diffserv3",
    "diffserv4",
    "diffserv8",
    "precedence",
    "flowblind",
    "hosts",
    "dual-srchost",
    "triple-isolate",
    "ingress",
    "egress",
    "ack-filter",
    "no-ack-filter",
    "wash",
    "nowash",
    "split-gso",
    "no-split-gso",
    "memlimit",
    "satellite",
    "metro",
    "nonat",
    "0",
    "1",
    "64",
    "1000",
    "1000p",
    "5ms",
    "1.5ms",
    "100us",
    "1s",
    "10mbit",
    "999kbit",
    "32Mb",
    "3000000000",
    "0x1/0x3",
    "-10",
    "1023us",
];

/// Flows of which no two share one of 1024 queues, with the seed of the bench.
pub(crate) fn flows_apart(count: usize) -> Vec<u64> {
    flows_apart_by(count, |hash| bucket(hash, 1024))
}

/// The same with another way from a hash to its queue.
pub(crate) fn flows_apart_by(count: usize, queue: impl Fn(u32) -> u32) -> Vec<u64> {
    let hash = FlowHash::new(&mut stream(1));
    let mut taken = Vec::new();
    let mut flows = Vec::new();
    for flow in 0.. {
        let queue = queue(hash.flow(&packet(0).flow(flow).key));
        if !taken.contains(&queue) {
            taken.push(queue);
            flows.push(flow);
        }
        if flows.len() == count {
            break;
        }
    }
    flows
}
