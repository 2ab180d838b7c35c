//! FlowQueue-CoDel (RFC 8290) as Linux has it (`sch_fq_codel`), or with the RFC's CoDel.
//!
//! Flows are hashed to queues, deficit round robin serves the queues, new ones first, and each
//! queue has a CoDel of its own. A queue that became empty keeps its CoDel state for whoever
//! hashes there next.

#[cfg(test)]
mod tests;

use std::fmt;

use sojourn_core::words::unknown_param;
use sojourn_core::{Bytes, DropReason, Param, ParamKind, Queued, SpecError, Stream, Time, Words};

use crate::chain::{Chains, List};
use crate::codel::{Law, LawConfig, Mode, Source, State, Stats};
use crate::hash::{FlowHash, bucket};
use crate::notation::{TcSize, packets, size};
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
    Param {
        name: "quantum",
        kind: ParamKind::Count,
        default: "1514",
        doc: "bytes that a queue may send a round; below 256 counts as 256",
    },
    Param {
        name: "target",
        kind: ParamKind::Span,
        default: "5ms",
        doc: "standing delay that is acceptable",
    },
    Param {
        name: "interval",
        kind: ParamKind::Span,
        default: "100ms",
        doc: "how long the delay must stay above target, about the worst round-trip time",
    },
    Param {
        name: "ce_threshold",
        kind: ParamKind::Span,
        default: "",
        doc: "mark every packet that waited longer than this",
    },
    Param {
        name: "ce_threshold_selector",
        kind: ParamKind::Choice,
        default: "",
        doc: "VALUE/MASK: apply ce_threshold to packets whose TOS byte matches only",
    },
    Param {
        name: "memory_limit",
        kind: ParamKind::Size,
        default: "32Mb",
        doc: "memory that may be held, counted as Linux charges it",
    },
    Param { name: "ecn", kind: ParamKind::Flag, default: "on", doc: "mark instead of dropping" },
    Param { name: "noecn", kind: ParamKind::Flag, default: "", doc: "drop only" },
    Param {
        name: "drop_batch",
        kind: ParamKind::Count,
        default: "64",
        doc: "packets dropped at once when a limit is exceeded, at most",
    },
    Param {
        name: "mode",
        kind: ParamKind::Choice,
        default: "linux",
        doc: "linux: the kernel's CoDel, whose guard sees all flows; rfc: RFC 8289 per flow",
    },
];

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    pub limit: u32,
    pub flows: u32,
    pub quantum: u32,
    pub memory_limit: Bytes,
    pub drop_batch: u32,
    pub law: LawConfig,
}

/// Smallest quantum the kernel uses, and the largest it accepts.
const QUANTUM_LEAST: u32 = 256;
const QUANTUM_MOST: u64 = 1 << 20;

impl Config {
    pub fn parse(words: &mut Words<'_>) -> Result<Self, SpecError> {
        let mut config = Self {
            limit: 10_240,
            flows: 1024,
            quantum: DEVICE_MTU,
            memory_limit: Bytes::new(32 << 20),
            drop_batch: 64,
            law: LawConfig::new(true),
        };
        while let Some(word) = words.next() {
            if config.law.accept(word, words)? {
                continue;
            }
            match word {
                "limit" => config.limit = packets(words, word)?,
                "flows" => config.flows = words.count(word, 1, 65_536)? as u32,
                "quantum" => {
                    config.quantum =
                        (words.count(word, 1, QUANTUM_MOST)? as u32).max(QUANTUM_LEAST);
                }
                "ce_threshold_selector" => {
                    config.law.ce_threshold_selector = Some(words.parse(word, str::parse)?);
                }
                "memory_limit" => config.memory_limit = size(words, word, 1 << 31)?,
                "drop_batch" => {
                    config.drop_batch = words.count(word, 1, u64::from(u32::MAX))? as u32;
                }
                _ => return Err(unknown_param("fq_codel", word, PARAMS)),
            }
        }
        Ok(config)
    }
}

impl fmt::Display for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "limit {}p flows {} quantum {} ", self.limit, self.flows, self.quantum)?;
        self.law.fmt_times(f)?;
        if let Some(selector) = self.law.ce_threshold_selector {
            write!(f, " ce_threshold_selector {selector}")?;
        }
        write!(f, " memory_limit {}", TcSize(self.memory_limit))?;
        f.write_str(if self.law.ecn { " ecn" } else { " noecn" })?;
        write!(f, " drop_batch {}", self.drop_batch)?;
        self.law.mode.fmt_unless_default(f)
    }
}

/// Flows that have not yet used up their first quantum, served first.
const NEW_FLOWS: List = List(0);
const OLD_FLOWS: List = List(1);

#[derive(Debug)]
pub struct FqCodel<P> {
    config: Config,
    law: Law,
    hash: FlowHash,
    flows: Vec<Flow>,
    /// Bytes waiting in each flow, apart from the flows so that the search for the fattest is
    /// one sweep.
    backlogs: Vec<u64>,
    /// With the flows' deficits.
    chains: Chains<i64>,
    store: Store<P>,
    stats: Stats,
    drop_overlimit: u64,
    drop_overmemory: u64,
    new_flow_count: u64,
}

#[derive(Debug)]
struct Flow {
    fifo: Fifo,
    codel: State,
}

/// The packets of all flows and what they add up to.
#[derive(Debug)]
struct Store<P> {
    packets: Slab<P>,
    backlog: Backlog,
    memory_usage: u64,
}

impl<P: Queued> Store<P> {
    #[inline]
    fn pop(&mut self, fifo: &mut Fifo, flow_backlog: &mut u64) -> Option<P> {
        let (packet, _) = self.packets.head(*fifo)?;
        let bytes = packet.wire_len();
        self.backlog.remove(bytes);
        *flow_backlog -= u64::from(bytes);
        self.memory_usage -= u64::from(packet.truesize());
        self.packets.pop(fifo).map(|(packet, _)| packet)
    }
}

/// One flow, as its CoDel sees it.
struct FlowSource<'a, P> {
    store: &'a mut Store<P>,
    fifo: &'a mut Fifo,
    flow_backlog: &'a mut u64,
    mode: Mode,
}

impl<P: Queued> Source<P> for FlowSource<'_, P> {
    #[inline]
    fn head(&self) -> Option<(&P, Time)> {
        self.store.packets.head(*self.fifo).map(|(packet, arrived)| (packet, *arrived))
    }

    fn head_mut(&mut self) -> Option<&mut P> {
        self.store.packets.head_mut(*self.fifo).map(|(packet, _)| packet)
    }

    #[inline]
    fn pop(&mut self) -> Option<P> {
        self.store.pop(self.fifo, self.flow_backlog)
    }

    #[inline]
    fn backlog(&self) -> u64 {
        match self.mode {
            Mode::Linux => self.store.backlog.bytes,
            Mode::Rfc => *self.flow_backlog,
        }
    }
}

impl<P: Queued> FqCodel<P> {
    pub fn new(config: &Config, mut random: Stream) -> Self {
        let flow = || Flow { fifo: Fifo::EMPTY, codel: State::default() };
        Self {
            law: Law::new(&config.law),
            hash: FlowHash::new(&mut random),
            flows: (0..config.flows).map(|_| flow()).collect(),
            backlogs: vec![0; config.flows as usize],
            chains: Chains::new(config.flows, 2),
            store: Store { packets: Slab::new(), backlog: Backlog::default(), memory_usage: 0 },
            stats: Stats::default(),
            drop_overlimit: 0,
            drop_overmemory: 0,
            new_flow_count: 0,
            config: config.clone(),
        }
    }

    fn is_over_memory(&self) -> bool {
        self.store.memory_usage > self.config.memory_limit.as_u64()
    }

    /// Drops from the head of the flow with most bytes: `drop_batch` packets or half of its bytes,
    /// whichever comes first. Its CoDel is told by a higher count.
    #[cold]
    fn drop_from_fattest(&mut self, now: Time, sink: &mut dyn Sink<P>) {
        let fattest = fattest(&self.backlogs);
        let flow = &mut self.flows[fattest];
        let backlog = &mut self.backlogs[fattest];
        let threshold = *backlog >> 1;
        let before = *backlog;
        let mut dropped = 0;
        while dropped < self.config.drop_batch {
            let Some(packet) = self.store.pop(&mut flow.fifo, backlog) else { break };
            sink.dropped(now, packet, DropReason::Overflow);
            dropped += 1;
            if before - *backlog >= threshold {
                break;
            }
        }
        flow.codel.count = flow.codel.count.wrapping_add(dropped);
        self.drop_overlimit += u64::from(dropped);
    }
}

/// The first of the largest.
fn fattest(backlogs: &[u64]) -> usize {
    let most = backlogs.iter().copied().max().unwrap_or(0);
    backlogs.iter().position(|backlog| *backlog == most).unwrap_or(0)
}

impl<P: Queued + Send> Qdisc<P> for FqCodel<P> {
    #[inline(never)]
    fn enqueue(&mut self, now: Time, packet: P, sink: &mut dyn Sink<P>) -> Enqueue<P> {
        let index = bucket(self.hash.flow(&packet.flow_key()), self.config.flows);
        let flow = &mut self.flows[index as usize];
        let bytes = packet.wire_len();
        self.backlogs[index as usize] += u64::from(bytes);
        self.store.backlog.add(bytes);
        self.store.memory_usage += u64::from(packet.truesize());
        self.store.packets.push(&mut flow.fifo, now, packet);
        if !self.chains.is_linked(index) {
            self.chains.move_to_back(NEW_FLOWS, index);
            *self.chains.turn_mut(index) = i64::from(self.config.quantum);
            self.new_flow_count += 1;
        }
        let is_over_memory = self.is_over_memory();
        if self.store.backlog.packets > self.config.limit || is_over_memory {
            let before = self.drop_overlimit;
            self.drop_from_fattest(now, sink);
            if is_over_memory {
                self.drop_overmemory += self.drop_overlimit - before;
            }
        }
        Enqueue::Queued
    }

    #[inline(never)]
    fn dequeue(&mut self, now: Time, sink: &mut dyn Sink<P>) -> Dequeue<P> {
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
            let mut source = FlowSource {
                store: &mut self.store,
                fifo: &mut flow.fifo,
                flow_backlog: &mut self.backlogs[index as usize],
                mode: self.law.mode(),
            };
            let wait = self.law.judge(&mut flow.codel, &mut source, now, &mut self.stats, sink);
            if let Some(wait) = wait
                && let Some(packet) = source.pop()
            {
                *deficit -= i64::from(packet.wire_len());
                return Dequeue::Packet(packet, wait);
            }
            // An empty new flow passes through the old ones, so that it can't come back as new at
            // once and starve them (RFC 8290 section 4.2).
            if newest.is_some() && self.chains.first(OLD_FLOWS).is_some() {
                self.chains.move_to_back(OLD_FLOWS, index);
            } else {
                self.chains.unlink(index);
            }
        }
    }

    fn backlog(&self) -> Backlog {
        self.store.backlog
    }

    fn oldest(&self) -> Option<Time> {
        let active = self.chains.iter(NEW_FLOWS).chain(self.chains.iter(OLD_FLOWS));
        active
            .filter_map(|flow| self.store.packets.head(self.flows[flow as usize].fifo))
            .map(|(_, arrived)| *arrived)
            .min()
    }

    fn details(&self) -> Vec<(&'static str, u64)> {
        vec![
            ("maxpacket", u64::from(self.stats.maxpacket)),
            ("drop_overlimit", self.drop_overlimit),
            ("drop_overmemory", self.drop_overmemory),
            ("new_flow_count", self.new_flow_count),
            ("ecn_mark", self.stats.ecn_mark),
            ("ce_mark", self.stats.ce_mark),
            ("memory_used", self.store.memory_usage),
            ("new_flows_len", self.chains.iter(NEW_FLOWS).count() as u64),
            ("old_flows_len", self.chains.iter(OLD_FLOWS).count() as u64),
        ]
    }
}
