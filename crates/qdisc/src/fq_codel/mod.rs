//! FlowQueue-CoDel (RFC 8290) as Linux has it (`sch_fq_codel`), or with the RFC's CoDel.
//!
//! Flows are hashed to queues, deficit round robin serves the queues, new ones first, and each
//! queue has a CoDel of its own. A queue that became empty keeps its CoDel state for the next flow
//! that is hashed to it.

#[cfg(test)]
mod tests;

use alloc::vec;
use alloc::vec::Vec;
use core::cmp::Reverse;
use core::fmt;

use sojourn_core::param::{Bounds, Form, Maybe, whole};
use sojourn_core::{Bytes, DropReason, Param, ParamKind, Queued, Span, SpecError, Stream, Time};

use crate::built_in;
use crate::codel::{
    self, Head, Law, LawConfig, Look, Marking, Mode, Selector, Source, State, Stats,
};
use crate::hash::{FlowHash, bucket};
use crate::notation::{Lapse, Packets, Size, at_most};
use crate::rounds::{self, Rounds};
use crate::slab::{Fifo, Place, Slab, Slot};
use crate::{Backlog, Dequeue, Enqueue, Qdisc, Sink};

sojourn_core::params! {
    /// `fq_codel`'s parameters.
    pub struct Config: "fq_codel", "FlowQueue-CoDel (RFC 8290), as Linux has it or to the letter" {
        pub limit: u32 as Packets = rounds::LIMIT;
        pub flows: u32 = rounds::FLOWS;
        pub quantum: u32 as Quantum =
            "1514", "bytes that a queue may send a round; below 256 counts as 256";
        pub target: Span as Lapse = codel::TARGET;
        pub interval: Span as Lapse = codel::INTERVAL;
        pub ce_threshold: Option<Span> as Maybe<Lapse> = codel::CE_THRESHOLD;
        pub ce_threshold_selector: Option<Selector> as Maybe<Selector> =
            "", "VALUE/MASK: apply ce_threshold to packets whose TOS byte matches only";
        pub memory_limit: Bytes as Size =
            "32Mb", at_most(1 << 31), "memory that may be held, counted as Linux charges it";
        pub ecn: bool as Marking = codel::ECN.by_default("ecn");
        pub drop_batch: u32 = "64", whole(1, u32::MAX as i64),
            "packets dropped at once when a limit is exceeded, at most";
        pub mode: Mode = Param::of::<Mode>(
            "mode", "linux",
            "linux: the kernel's CoDel, whose guard sees all flows; rfc: RFC 8289 per flow",
        ).quiet();
    }
}

/// A number of bytes, which the kernel raises to its least.
#[derive(Clone, Copy, Debug)]
struct Quantum;

/// Smallest quantum that the kernel uses.
const QUANTUM_LEAST: u32 = 256;

impl Form for Quantum {
    type Value = u32;
    const KIND: ParamKind = ParamKind::Count;
    const BOUNDS: Bounds = whole(1, 1 << 20);

    fn read(text: &str, param: &Param) -> Result<u32, SpecError> {
        u32::read(text, param).map(|bytes| bytes.max(QUANTUM_LEAST))
    }

    fn check(value: &u32, param: &Param) -> Result<(), SpecError> {
        u32::check(value, &param.within(whole(QUANTUM_LEAST.into(), 1 << 20)))
    }

    fn show(value: &u32, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        u32::show(value, f)
    }
}

built_in::written_as_it_is!(Config);

impl Config {
    fn law(&self) -> LawConfig {
        let Self { target, interval, ecn, ce_threshold, ce_threshold_selector, mode, .. } = *self;
        LawConfig { target, interval, ecn, ce_threshold, ce_threshold_selector, mode }
    }
}

#[derive(Debug)]
pub struct FqCodel<P> {
    config: Config,
    law: Law,
    hash: FlowHash,
    rounds: Rounds<Flow>,
    store: Store<P>,
    stats: Stats,
    drop_overlimit: u64,
    drop_overmemory: u64,
    new_flow_count: u64,
}

#[derive(Debug)]
struct Flow {
    fifo: Fifo,
    /// Bytes waiting.
    backlog: u64,
    codel: State,
}

/// The packets of all flows, and their totals.
#[derive(Debug)]
struct Store<P> {
    packets: Slab<P>,
    backlog: Backlog,
    memory_usage: u64,
}

impl<P: Queued + Copy> Store<P> {
    fn pop(&mut self, fifo: &mut Fifo, flow_backlog: &mut u64) -> Option<P> {
        self.drop_head(fifo, flow_backlog).copied()
    }

    /// Takes the head out, where it lies: to be read before another packet enters.
    #[inline]
    fn drop_head(&mut self, fifo: &mut Fifo, flow_backlog: &mut u64) -> Option<&P> {
        let head = self.packets.head_mut(*fifo)?;
        let (bytes, truesize) = (head.slot.packet.wire_len(), head.slot.truesize);
        let place = head.take(fifo);
        *flow_backlog -= u64::from(bytes);
        self.backlog.remove(bytes);
        self.memory_usage -= u64::from(truesize);
        self.packets.taken(place).map(|slot| &slot.packet)
    }
}

/// One flow, as its CoDel sees it.
struct FlowSource<'a, P> {
    store: &'a mut Store<P>,
    fifo: &'a mut Fifo,
    flow_backlog: &'a mut u64,
    mode: Mode,
}

impl<P: Queued + Copy> Source<P> for FlowSource<'_, P> {
    fn head(&self) -> Option<(&P, Time)> {
        self.store.packets.head(*self.fifo).map(|slot| (&slot.packet, slot.arrived))
    }

    fn head_mut(&mut self) -> Option<&mut P> {
        self.store.packets.head_mut(*self.fifo).map(|head| &mut head.slot.packet)
    }

    fn pop(&mut self) -> Option<P> {
        self.store.pop(self.fifo, self.flow_backlog)
    }

    fn backlog(&self) -> u64 {
        guarding_backlog(self.mode, self.store.backlog, *self.flow_backlog)
    }
}

/// The backlog that CoDel's guard checks.
#[inline]
fn guarding_backlog(mode: Mode, all: Backlog, flow: u64) -> u64 {
    match mode {
        Mode::Linux => all.bytes,
        Mode::Rfc => flow,
    }
}

impl<P: Queued + Copy> FqCodel<P> {
    pub fn new(config: &Config, mut random: Stream) -> Self {
        let flow = |_| Flow { fifo: Fifo::EMPTY, backlog: 0, codel: State::default() };
        Self {
            law: Law::new(&config.law()),
            hash: FlowHash::new(&mut random),
            rounds: Rounds::new((0..config.flows).map(flow), config.quantum),
            store: Store { packets: Slab::new(), backlog: Backlog::default(), memory_usage: 0 },
            stats: Stats::default(),
            drop_overlimit: 0,
            drop_overmemory: 0,
            new_flow_count: 0,
            config: config.clone(),
        }
    }

    /// Counts an arrival that was just stored, and puts it into its queue.
    #[inline(always)]
    fn admit(&mut self, index: u32, place: Place, bytes: u32, truesize: u32) {
        self.store.backlog.add(bytes);
        self.store.memory_usage += u64::from(truesize);
        if self.rounds.join(index) {
            self.new_flow_count += 1;
        }
        let flow = self.rounds.flow_mut(index);
        flow.backlog += u64::from(bytes);
        self.store.packets.append(&mut flow.fifo, place);
    }

    /// Takes a packet in and gives it back at once, as [`Qdisc::enqueue`] and [`Qdisc::dequeue`] would, but without
    /// storing it. False, and nothing has happened, if other packets wait or CoDel would act.
    #[inline(always)]
    pub fn pass(&mut self, packet: &impl Queued) -> bool {
        let Self { config, rounds, store, stats, .. } = self;
        if store.backlog.packets > 0 || config.limit == 0 {
            return false;
        }
        let index = bucket(self.hash.flow(&packet.flow_key()), config.flows);
        let (bytes, memory) = (packet.wire_len(), u64::from(packet.truesize()));
        if memory > config.memory_limit.as_u64() || rounds.flow_mut(index).codel.dropping {
            return false;
        }
        if let Some((flow, deficit)) = rounds.in_turn(index) {
            Law::let_pass(&mut flow.codel, bytes, stats);
            *deficit -= bytes as i32;
            return true;
        }
        self.pass_others(index, bytes);
        true
    }

    /// The same for a packet of a flow whose turn it is not: the flows whose turn comes before are found empty.
    #[inline(never)]
    fn pass_others(&mut self, index: u32, bytes: u32) {
        let Self { law, rounds, stats, .. } = self;
        if rounds.join(index) {
            self.new_flow_count += 1;
        }
        while let Some(current) = rounds.current()
            && current != index
        {
            law.rest(&mut rounds.flow_mut(current).codel);
            rounds.leave(current);
        }
        let (flow, deficit) = rounds.turn_mut(index);
        Law::let_pass(&mut flow.codel, bytes, stats);
        *deficit -= bytes as i32;
    }

    /// [`Qdisc::enqueue`] of a `packet` that is as large as `like` and of the same flow, if there is room for it. False, and
    /// nothing has happened, if something would be dropped.
    #[inline(always)]
    pub fn keep(&mut self, now: Time, like: &impl Queued, packet: impl FnOnce() -> P) -> bool {
        let (bytes, truesize) = (like.wire_len(), like.truesize());
        let memory = self.store.memory_usage + u64::from(truesize);
        if self.store.backlog.packets >= self.config.limit
            || memory > self.config.memory_limit.as_u64()
        {
            return false;
        }
        let index = bucket(self.hash.flow(&like.flow_key()), self.config.flows);
        let (place, _) = self.store.packets.put_sized(now, truesize, packet);
        self.admit(index, place, bytes, truesize);
        true
    }

    fn is_over_memory(&self) -> bool {
        self.store.memory_usage > self.config.memory_limit.as_u64()
    }

    #[inline]
    fn is_over_limit(&self) -> bool {
        self.store.backlog.packets > self.config.limit || self.is_over_memory()
    }

    /// Drops from the head of the flow with the most bytes: `drop_batch` packets or half of its
    /// bytes, whichever comes first, and raises its CoDel's count.
    #[cold]
    fn drop_from_fattest(&mut self, now: Time, sink: &mut dyn Sink<P>) {
        let is_over_memory = self.is_over_memory();
        let Flow { fifo, backlog, codel } = self.rounds.flow_mut(self.fattest());
        let threshold = *backlog >> 1;
        let before = *backlog;
        let mut dropped = 0;
        while dropped < self.config.drop_batch {
            let Some(packet) = self.store.drop_head(fifo, backlog) else { break };
            sink.dropped(now, *packet, DropReason::Overflow);
            dropped += 1;
            if before - *backlog >= threshold {
                break;
            }
        }
        codel.count = codel.count.wrapping_add(dropped);
        self.drop_overlimit += u64::from(dropped);
        if is_over_memory {
            self.drop_overmemory += u64::from(dropped);
        }
    }

    /// The flow with the most bytes, of several the one with the lowest number.
    fn fattest(&self) -> u32 {
        let active = self.rounds.active_by_number();
        let by_size = active.map(|(index, flow)| (flow.backlog, Reverse(index)));
        by_size.max().map_or(0, |(_, Reverse(index))| index)
    }

    /// Takes the next packet out, which must be copied at once, and how long it waited.
    #[inline(always)]
    fn choose(&mut self, now: Time, sink: &mut dyn Sink<P>) -> (Place, Span) {
        loop {
            let Some(index) = self.rounds.current() else { return (Place::NOWHERE, Span::ZERO) };
            let Self { law, rounds, store, stats, .. } = self;
            let (Flow { fifo, backlog, codel }, deficit) = rounds.turn_mut(index);
            let Some(mut head) = store.packets.head_mut(*fifo) else {
                law.rest(codel);
                rounds.leave(index);
                continue;
            };
            let mut bytes = head.slot.packet.wire_len();
            let mut wait = now.since(head.slot.arrived);
            let guarding = guarding_backlog(law.mode(), store.backlog, *backlog);
            let seen = Head { bytes, arrived: head.slot.arrived, backlog: guarding };
            let look = law.look(codel, &seen, now, stats);
            if let Look::Act { ok_to_drop } = look {
                let mode = law.mode();
                let mut source = FlowSource { store, fifo, flow_backlog: backlog, mode };
                let acted = law.act(ok_to_drop, codel, &mut source, now, stats, sink);
                let next = store.packets.head_mut(*fifo);
                let (Some(waited), Some(next)) = (acted, next) else {
                    rounds.leave(index);
                    continue;
                };
                (head, wait) = (next, waited);
                bytes = head.slot.packet.wire_len();
            }
            *deficit -= bytes as i32;
            *backlog -= u64::from(bytes);
            store.backlog.remove(bytes);
            store.memory_usage -= u64::from(head.slot.truesize);
            return (head.take(fifo), wait);
        }
    }
}

impl<P: Queued + Copy + Send> Qdisc<P> for FqCodel<P> {
    #[inline(always)]
    fn enqueue(&mut self, now: Time, packet: P, sink: &mut dyn Sink<P>) -> Enqueue<P> {
        let (place, Slot { packet, truesize, .. }) = self.store.packets.put(now, packet);
        let index = bucket(self.hash.flow(&packet.flow_key()), self.config.flows);
        let (bytes, truesize) = (packet.wire_len(), *truesize);
        self.admit(index, place, bytes, truesize);
        if self.is_over_limit() {
            self.drop_from_fattest(now, sink);
        }
        Enqueue::Queued
    }

    fn dequeue(&mut self, now: Time, sink: &mut dyn Sink<P>) -> Dequeue<P> {
        self.dequeue_copied(now, sink, |packet| *packet)
    }

    #[inline(always)]
    fn dequeue_copied<T>(
        &mut self,
        now: Time,
        sink: &mut dyn Sink<P>,
        take: impl FnOnce(&P) -> T,
    ) -> Dequeue<T> {
        let (place, wait) = self.choose(now, sink);
        match self.store.packets.taken(place) {
            Some(slot) => Dequeue::Packet(take(&slot.packet), wait),
            None => Dequeue::Empty,
        }
    }

    fn backlog(&self) -> Backlog {
        self.store.backlog
    }

    fn oldest(&self) -> Option<Time> {
        self.store.packets.oldest(self.rounds.active().map(|flow| flow.fifo))
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
            ("new_flows_len", self.rounds.new_flows()),
            ("old_flows_len", self.rounds.old_flows()),
        ]
    }
}
