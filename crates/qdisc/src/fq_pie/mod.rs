//! FlowQueue-PIE as Linux has it (`sch_fq_pie`): flows hashed to queues, deficit round robin, new
//! flows first, and a PIE controller (RFC 8033) on each queue, which drops on arrival.
//!
//! A queue's updates are computed when the queue is used, so idle queues cost nothing.

#[cfg(test)]
mod tests;

use alloc::vec;
use alloc::vec::Vec;

use sojourn_core::param::whole;
use sojourn_core::{Bytes, DropReason, Param, Queued, Span, Stream, Time};

use crate::built_in;
use crate::hash::{FlowHash, bucket};
use crate::notation::{Lapse, Length, Packets, Size, at_most};
use crate::pie::{self, ByteMode, Law, LawConfig, RateEstimator, State};
use crate::rounds::{self, Rounds};
use crate::slab::{Fifo, Slab, Slot};
use crate::{Backlog, Dequeue, Enqueue, Qdisc, Sink, mark_if_capable};

sojourn_core::params! {
    /// `fq_pie`'s parameters.
    pub struct Config:
        "fq_pie", "FlowQueue-PIE: PIE on each queue of a deficit round robin, as Linux has it"
    {
        pub limit: u32 as Packets = rounds::LIMIT;
        pub flows: u32 = rounds::FLOWS;
        pub target: Span as Lapse = pie::TARGET;
        pub tupdate: Span as Lapse = pie::TUPDATE;
        pub alpha: u32 = pie::ALPHA;
        pub beta: u32 = pie::BETA;
        pub quantum: Bytes as Length = "1514", at_most(1 << 20), "bytes that a queue may send a round";
        pub memory_limit: Bytes as Size = "32Mb",
            "memory, as Linux charges it, above which arrivals are counted but not refused";
        pub ecn_prob: u32 = "10", whole(0, 100),
            "probability in percent up to which 'ecn' marks instead of dropping";
        pub ecn: bool as Marking = Param::of::<Marking>("ecn", "noecn", "").quiet();
        pub bytemode: bool as ByteMode = pie::BYTEMODE;
        pub dq_rate_estimator: bool as RateEstimator = pie::DQ_RATE_ESTIMATOR;
    }
}

sojourn_core::keywords! {
    Marking for bool {
        "ecn" = true, "mark instead of dropping while the probability is at most 'ecn_prob'";
        "noecn" = false, "drop only";
    }
}

built_in::written_as_it_is!(Config);

impl Config {
    fn law(&self) -> LawConfig {
        let Self { target, tupdate, alpha, beta, ecn, bytemode, dq_rate_estimator, .. } = *self;
        LawConfig { target, tupdate, alpha, beta, ecn, bytemode, dq_rate_estimator }
    }
}

#[derive(Debug)]
pub struct FqPie<P> {
    config: Config,
    law: Law,
    hash: FlowHash,
    rounds: Rounds<Flow>,
    packets: Slab<P>,
    backlog: Backlog,
    memory_usage: u64,
    random: Stream,
    stats: Stats,
}

#[derive(Debug)]
struct Flow {
    fifo: Fifo,
    backlog: u64,
    pie: State,
}

#[derive(Debug, Default)]
struct Stats {
    packets_in: u64,
    overlimit: u64,
    overmemory: u64,
    dropped: u64,
    ecn_mark: u64,
    new_flow_count: u64,
}

impl<P: Queued + Copy> FqPie<P> {
    pub fn new(config: &Config, mut random: Stream) -> Self {
        let law = Law::new(&config.law(), u64::from(config.ecn_prob));
        let flow = |_| Flow { fifo: Fifo::EMPTY, backlog: 0, pie: law.fresh_state() };
        Self {
            hash: FlowHash::new(&mut random),
            rounds: Rounds::new((0..config.flows).map(flow), config.quantum.as_u64() as u32),
            law,
            packets: Slab::new(),
            backlog: Backlog::default(),
            memory_usage: 0,
            random,
            stats: Stats::default(),
            config: config.clone(),
        }
    }

    fn admit(&mut self, index: u32, now: Time, packet: P) {
        let flow = self.rounds.flow_mut(index);
        let bytes = packet.wire_len();
        self.stats.packets_in += 1;
        self.backlog.add(bytes);
        self.memory_usage += u64::from(packet.truesize());
        flow.backlog += u64::from(bytes);
        self.packets.push(&mut flow.fifo, now, packet);
        if self.rounds.join(index) {
            self.stats.new_flow_count += 1;
        }
    }
}

impl<P: Queued + Copy + Send> Qdisc<P> for FqPie<P> {
    #[inline(never)]
    fn enqueue(&mut self, now: Time, mut packet: P, sink: &mut dyn Sink<P>) -> Enqueue<P> {
        let index = bucket(self.hash.flow(&packet.flow_key()), self.config.flows);
        let Flow { backlog, pie, .. } = self.rounds.flow_mut(index);
        self.law.catch_up(pie, *backlog, now);
        let why = if self.backlog.packets >= self.config.limit {
            self.stats.overlimit += 1;
            DropReason::Full
        } else {
            let limit = self.config.memory_limit.as_u64() + u64::from(packet.truesize());
            self.stats.overmemory += u64::from(self.memory_usage > limit);
            if !self.law.drop_early(pie, *backlog, packet.wire_len(), &mut self.random) {
                self.admit(index, now, packet);
                return Enqueue::Queued;
            }
            if self.law.may_mark(pie) && mark_if_capable(now, &mut packet, sink) {
                self.stats.ecn_mark += 1;
                self.admit(index, now, packet);
                return Enqueue::Queued;
            }
            DropReason::Aqm
        };
        self.stats.dropped += 1;
        pie.has_dropped();
        Enqueue::Dropped(packet, why)
    }

    #[inline(never)]
    fn dequeue(&mut self, now: Time, _: &mut dyn Sink<P>) -> Dequeue<P> {
        loop {
            let Some(index) = self.rounds.current() else { return Dequeue::Empty };
            let (flow, deficit) = self.rounds.turn_mut(index);
            let before = flow.backlog;
            let Some(Slot { packet, arrived, truesize, .. }) = self.packets.pop(&mut flow.fifo)
            else {
                self.rounds.leave(index);
                continue;
            };
            let bytes = packet.wire_len();
            *deficit -= bytes as i32;
            self.backlog.remove(bytes);
            self.memory_usage -= u64::from(truesize);
            flow.backlog -= u64::from(bytes);
            self.law.catch_up(&mut flow.pie, before, now);
            self.law.on_departure(&mut flow.pie, arrived, bytes, flow.backlog, now);
            return Dequeue::Packet(packet, now.since(arrived));
        }
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }

    fn oldest(&self) -> Option<Time> {
        self.packets.oldest(self.rounds.active().map(|flow| flow.fifo))
    }

    fn details(&self) -> Vec<(&'static str, u64)> {
        vec![
            ("pkts_in", self.stats.packets_in),
            ("overlimit", self.stats.overlimit),
            ("overmemory", self.stats.overmemory),
            ("dropped", self.stats.dropped),
            ("ecn_mark", self.stats.ecn_mark),
            ("new_flow_count", self.stats.new_flow_count),
            ("new_flows_len", self.rounds.new_flows()),
            ("old_flows_len", self.rounds.old_flows()),
            ("memory_used", self.memory_usage),
        ]
    }
}
