//! FlowQueue-PIE as Linux has it (`sch_fq_pie`): flows hashed to queues, deficit round robin, new
//! flows first, and a PIE controller (RFC 8033) on each queue, which drops on arrival.
//!
//! Each queue's updates are made up for when the queue is touched, so idle queues cost nothing.

#[cfg(test)]
mod tests;

use std::fmt;

use sojourn_core::words::unknown_param;
use sojourn_core::{Bytes, DropReason, Param, ParamKind, Queued, SpecError, Stream, Time, Words};

use crate::chain::{Chains, List};
use crate::hash::{FlowHash, bucket};
use crate::notation::{TcSize, packets, size};
use crate::pie::{self, Law, LawConfig, State};
use crate::slab::{Fifo, Slab};
use crate::{Backlog, DEVICE_MTU, Dequeue, Enqueue, Qdisc, Sink};

pub const PARAMS: &[Param] = &[
    Param {
        name: "limit",
        kind: ParamKind::Count,
        default: "10240",
        doc: "packets that may wait, all flows together",
    },
    Param {
        name: "flows",
        kind: ParamKind::Count,
        default: "1024",
        doc: "queues that flows are hashed to, at most 65536",
    },
    pie::TARGET,
    pie::TUPDATE,
    pie::ALPHA,
    pie::BETA,
    Param {
        name: "quantum",
        kind: ParamKind::Size,
        default: "1514",
        doc: "bytes that a queue may send a round",
    },
    Param {
        name: "memory_limit",
        kind: ParamKind::Size,
        default: "32Mb",
        doc: "memory, as Linux charges it, above which arrivals are counted but not refused",
    },
    Param {
        name: "ecn_prob",
        kind: ParamKind::Count,
        default: "10",
        doc: "probability in percent up to which 'ecn' marks instead of dropping",
    },
    Param {
        name: "ecn",
        kind: ParamKind::Flag,
        default: "",
        doc: "mark instead of dropping while the probability is at most 'ecn_prob'",
    },
    pie::NOECN,
    pie::BYTEMODE,
    pie::NOBYTEMODE,
    pie::DQ_RATE_ESTIMATOR,
    pie::NO_DQ_RATE_ESTIMATOR,
];

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    pub limit: u32,
    pub flows: u32,
    pub quantum: u32,
    pub memory_limit: Bytes,
    pub ecn_prob_percent: u32,
    pub law: LawConfig,
}

/// The largest quantum that the kernel accepts.
const QUANTUM_MOST: u64 = 1 << 20;

impl Config {
    pub fn parse(words: &mut Words<'_>) -> Result<Self, SpecError> {
        let mut config = Self {
            limit: 10_240,
            flows: 1024,
            quantum: DEVICE_MTU,
            memory_limit: Bytes::new(32 << 20),
            ecn_prob_percent: 10,
            law: LawConfig::DEFAULT,
        };
        while let Some(word) = words.next() {
            if config.law.accept(word, words)? {
                continue;
            }
            match word {
                "limit" => config.limit = packets(words, word)?,
                "flows" => config.flows = words.count(word, 1, 65_536)? as u32,
                "quantum" => config.quantum = size(words, word, QUANTUM_MOST)?.as_u64() as u32,
                "memory_limit" => config.memory_limit = size(words, word, u64::from(u32::MAX))?,
                "ecn_prob" => config.ecn_prob_percent = words.count(word, 0, 100)? as u32,
                _ => return Err(unknown_param("fq_pie", word, PARAMS)),
            }
        }
        Ok(config)
    }
}

impl fmt::Display for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "limit {}p flows {} ", self.limit, self.flows)?;
        self.law.fmt_gains(f)?;
        write!(
            f,
            " quantum {}b memory_limit {} ecn_prob {}",
            self.quantum,
            TcSize(self.memory_limit),
            self.ecn_prob_percent
        )?;
        self.law.fmt_flags(f)
    }
}

/// Flows that have not yet used up their first quantum, served first.
const NEW_FLOWS: List = List(0);
const OLD_FLOWS: List = List(1);

#[derive(Debug)]
pub struct FqPie<P> {
    config: Config,
    law: Law,
    hash: FlowHash,
    flows: Vec<Flow>,
    /// With the flows' deficits.
    chains: Chains<i64>,
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

impl<P: Queued> FqPie<P> {
    pub fn new(config: &Config, mut random: Stream) -> Self {
        let law = Law::new(&config.law, u64::from(config.ecn_prob_percent));
        let flow = |_| Flow { fifo: Fifo::EMPTY, backlog: 0, pie: law.fresh_state() };
        Self {
            hash: FlowHash::new(&mut random),
            flows: (0..config.flows).map(flow).collect(),
            law,
            chains: Chains::new(config.flows, 2),
            packets: Slab::new(),
            backlog: Backlog::default(),
            memory_usage: 0,
            random,
            stats: Stats::default(),
            config: config.clone(),
        }
    }

    fn admit(&mut self, index: u32, now: Time, packet: P) {
        let flow = &mut self.flows[index as usize];
        let bytes = packet.wire_len();
        self.stats.packets_in += 1;
        self.backlog.add(bytes);
        self.memory_usage += u64::from(packet.truesize());
        flow.backlog += u64::from(bytes);
        self.packets.push(&mut flow.fifo, now, packet);
        if !self.chains.is_linked(index) {
            self.chains.move_to_back(NEW_FLOWS, index);
            *self.chains.turn_mut(index) = i64::from(self.config.quantum);
            self.stats.new_flow_count += 1;
        }
    }
}

impl<P: Queued + Send> Qdisc<P> for FqPie<P> {
    #[inline(never)]
    fn enqueue(&mut self, now: Time, mut packet: P, sink: &mut dyn Sink<P>) -> Enqueue<P> {
        let index = bucket(self.hash.flow(&packet.flow_key()), self.config.flows);
        let Flow { backlog, pie, .. } = &mut self.flows[index as usize];
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
            if self.law.may_mark(pie) && packet.ecn().is_capable() {
                packet.mark_ce();
                sink.marked(now, &packet);
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
            let newest = self.chains.first(NEW_FLOWS);
            let Some(index) = newest.or_else(|| self.chains.first(OLD_FLOWS)) else {
                return Dequeue::Empty;
            };
            let deficit = self.chains.turn_mut(index);
            if *deficit <= 0 {
                *deficit += i64::from(self.config.quantum);
                self.chains.move_to_back(OLD_FLOWS, index);
                continue;
            }
            let flow = &mut self.flows[index as usize];
            let before = flow.backlog;
            let Some((packet, arrived)) = self.packets.pop(&mut flow.fifo) else {
                // An empty new flow passes through the old ones, so that it can't come back as new
                // at once and starve them.
                if newest.is_some() && self.chains.first(OLD_FLOWS).is_some() {
                    self.chains.move_to_back(OLD_FLOWS, index);
                } else {
                    self.chains.unlink(index);
                }
                continue;
            };
            let bytes = packet.wire_len();
            *deficit -= i64::from(bytes);
            self.backlog.remove(bytes);
            self.memory_usage -= u64::from(packet.truesize());
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
        let active = self.chains.iter(NEW_FLOWS).chain(self.chains.iter(OLD_FLOWS));
        active
            .filter_map(|flow| self.packets.head(self.flows[flow as usize].fifo))
            .map(|(_, arrived)| *arrived)
            .min()
    }

    fn details(&self) -> Vec<(&'static str, u64)> {
        vec![
            ("pkts_in", self.stats.packets_in),
            ("overlimit", self.stats.overlimit),
            ("overmemory", self.stats.overmemory),
            ("dropped", self.stats.dropped),
            ("ecn_mark", self.stats.ecn_mark),
            ("new_flow_count", self.stats.new_flow_count),
            ("new_flows_len", self.chains.iter(NEW_FLOWS).count() as u64),
            ("old_flows_len", self.chains.iter(OLD_FLOWS).count() as u64),
            ("memory_used", self.memory_usage),
        ]
    }
}
