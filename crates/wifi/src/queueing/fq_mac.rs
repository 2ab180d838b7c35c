//! Queueing in the MAC: algorithms 1 and 2 of T. Høiland-Jørgensen et al., "Ending the Anomaly",
//! USENIX ATC 2017, section 3.1.
//!
//! A fixed number of queues serves all traffic identifiers (here a station and access category). A
//! packet is hashed to a queue, which belongs to its identifier while it holds something. If the
//! queue belongs to another identifier, the packet goes to its own identifier's overflow queue.
//! Each queue has CoDel.

use alloc::collections::VecDeque;
use alloc::format;
use alloc::vec::Vec;

use sojourn_core::random::mix;
use sojourn_core::{DropReason, Queued, Span, SpecError, Stream, Time};
use sojourn_qdisc::codel::{Law, LawConfig, Mode, Source, State, Stats};
use sojourn_qdisc::{Reshape, Sink};

use super::{Arrival, Schedule, Stations};
use crate::mac::edca::AccessCategory;
use crate::port::{Listener, Port};
use crate::store::{Chain, Released, Slot, Store};

const CATEGORIES: usize = AccessCategory::COUNT;

#[derive(Clone, Debug, PartialEq)]
pub struct FqConfig {
    /// Queues that flows are hashed to.
    pub flows: u32,
    /// Packets in all queues.
    pub limit: u32,
    /// Bytes that a flow may send in its turn.
    pub quantum: u32,
    pub target: Span,
    pub interval: Span,
    pub ecn: bool,
    pub schedule: Schedule,
}

impl FqConfig {
    /// As the paper has it: FQ-CoDel's parameters and a limit of 8192 packets.
    pub const fn paper(schedule: Schedule) -> Self {
        Self {
            flows: 4096,
            limit: 8192,
            quantum: 1514,
            target: Span::from_millis(5),
            interval: Span::from_millis(100),
            ecn: true,
            schedule,
        }
    }

    /// As mac80211 has it since Linux 6.18.
    pub const fn linux() -> Self {
        Self { quantum: 300, target: Span::from_millis(20), ..Self::paper(Schedule::LINUX) }
    }
}

impl FqConfig {
    /// # Errors
    /// Queues, packets or bytes of a turn out of range, or an interval that never ends.
    pub fn check(&self) -> Result<(), SpecError> {
        within("flows", self.flows, 1, 65_536)?;
        within("limit", self.limit, 1, u32::MAX)?;
        within("quantum", self.quantum, 1, 1 << 30)?;
        if self.interval.is_zero() {
            return Err(SpecError::new("'interval' is 0s").allow(["a longer time"]));
        }
        Ok(())
    }
}

fn within(what: &str, number: u32, least: u32, most: u32) -> Result<(), SpecError> {
    if (least..=most).contains(&number) {
        return Ok(());
    }
    Err(SpecError::new(format!("'{what}' is {number}")).allow([format!("{least} to {most}")]))
}

/// Ethernet packets of which CoDel's guard keeps one; mac80211 has none to keep.
const GUARD: u64 = 1514;

const NOBODY: u32 = u32::MAX;

pub(crate) struct FqMac {
    limit: u32,
    quantum: i32,
    hashed: u32,
    key: u64,
    law: Law,
    stats: Stats,
    /// The queues to which flows are hashed, then an overflow queue for each identifier.
    flows: Vec<Flow>,
    tids: Vec<Tid>,
    stations: Stations,
    packets: u32,
    /// By access category, packets dropped since the last call.
    dropped: [u32; CATEGORIES],
}

struct Flow {
    waiting: Waiting,
    /// The identifier it belongs to.
    tid: u32,
    deficit: i32,
    law: State,
    is_listed: bool,
}

/// The packets of a queue.
struct Waiting {
    chain: Chain,
    packets: u32,
    bytes: u64,
}

struct Tid {
    new: VecDeque<u32>,
    old: VecDeque<u32>,
    packets: u32,
    /// The packet that the queues have released and the next aggregate takes.
    ready: Option<Slot>,
}

impl FqMac {
    pub(crate) fn weigh(&mut self, weights: impl Iterator<Item = u16>) {
        self.stations.weigh(weights);
    }

    pub(crate) fn new(config: &FqConfig, stations: usize, random: &mut Stream) -> Self {
        let law = LawConfig {
            target: config.target,
            interval: config.interval,
            ecn: config.ecn,
            ce_threshold: None,
            ce_threshold_selector: None,
            mode: Mode::Linux,
        };
        let tids = stations * CATEGORIES;
        let flow = |tid| Flow {
            waiting: Waiting { chain: Chain::EMPTY, packets: 0, bytes: 0 },
            tid,
            deficit: 0,
            law: State::default(),
            is_listed: false,
        };
        let overflow = (0..tids as u32).map(flow);
        Self {
            limit: config.limit,
            quantum: config.quantum as i32,
            hashed: config.flows,
            key: random.next_u64(),
            law: Law::new(&law),
            stats: Stats::default(),
            flows: (0..config.flows).map(|_| flow(NOBODY)).chain(overflow).collect(),
            tids: (0..tids)
                .map(|_| Tid {
                    new: VecDeque::new(),
                    old: VecDeque::new(),
                    packets: 0,
                    ready: None,
                })
                .collect(),
            stations: Stations::new(config.schedule, stations),
            packets: 0,
            dropped: [0; CATEGORIES],
        }
    }

    /// Algorithm 1.
    #[inline(never)]
    pub(crate) fn enqueue<P: Reshape>(
        &mut self,
        ac: AccessCategory,
        arrival: Arrival<'_, P>,
        store: &mut Store<P>,
        listener: &mut impl Listener<P>,
    ) {
        let Arrival { packet, port, now, .. } = arrival;
        if self.packets >= self.limit {
            self.drop_from_longest(now, store, listener);
        }
        listener.entered(now, port, packet);
        let station = arrival.station();
        let tid = (station * CATEGORIES + ac as usize) as u32;
        let mut index = self.hash(packet);
        let owner = self.flows[index as usize].tid;
        if owner != NOBODY && owner != tid {
            index = self.hashed + tid;
        }
        let flow = &mut self.flows[index as usize];
        flow.tid = tid;
        flow.waiting.bytes += u64::from(packet.wire_len());
        flow.waiting.packets += 1;
        let slot = arrival.put_into(store);
        store.append(&mut flow.waiting.chain, slot);
        self.packets += 1;
        let state = &mut self.tids[tid as usize];
        state.packets += 1;
        if !flow.is_listed {
            flow.is_listed = true;
            flow.deficit = self.quantum;
            state.new.push_back(index);
        }
        self.stations.join(ac, station);
    }

    /// The packet that leaves next.
    #[inline]
    pub(crate) fn first<'a, P: Reshape>(
        &mut self,
        now: Time,
        station: usize,
        ac: AccessCategory,
        store: &'a mut Store<P>,
        listener: &mut impl Listener<P>,
    ) -> Option<&'a Released> {
        let tid = station * CATEGORIES + ac as usize;
        if self.tids[tid].ready.is_none() {
            self.make_ready(now, tid, store, listener);
        }
        self.tids[tid].ready.map(|slot| store.released(slot))
    }

    fn make_ready<P: Reshape>(
        &mut self,
        now: Time,
        tid: usize,
        store: &mut Store<P>,
        listener: &mut impl Listener<P>,
    ) {
        self.tids[tid].ready = self.dequeue(now, tid, store, listener);
    }

    /// Takes out the packet that leaves next: [`FqMac::first`] and [`FqMac::pop`].
    #[inline(always)]
    pub(crate) fn take_first<P: Reshape>(
        &mut self,
        now: Time,
        station: usize,
        ac: AccessCategory,
        store: &mut Store<P>,
        listener: &mut impl Listener<P>,
    ) -> Option<Slot> {
        let tid = station * CATEGORIES + ac as usize;
        let packet = match self.tids[tid].ready.take() {
            Some(ready) => ready,
            None => self.dequeue(now, tid, store, listener)?,
        };
        self.count_out(tid);
        Some(packet)
    }

    /// A packet has left.
    #[inline(always)]
    fn count_out(&mut self, tid: usize) {
        self.tids[tid].packets -= 1;
        self.packets -= 1;
    }

    pub(crate) fn pop(&mut self, station: usize, ac: AccessCategory) -> Option<Slot> {
        let tid = station * CATEGORIES + ac as usize;
        let packet = self.tids[tid].ready.take()?;
        self.count_out(tid);
        Some(packet)
    }

    pub(crate) fn has_packets(&self, station: usize, ac: AccessCategory) -> bool {
        self.tids[station * CATEGORIES + ac as usize].packets > 0
    }

    /// The station whose turn it is, among those that have packets, or frames to send again.
    pub(crate) fn choose(
        &mut self,
        ac: AccessCategory,
        has_started: impl Fn(usize) -> bool,
        is_held: impl Fn(usize) -> bool,
    ) -> Option<usize> {
        let tids = &self.tids;
        let is_empty =
            |s: usize| tids[s * CATEGORIES + ac as usize].packets == 0 && !has_started(s);
        self.stations.choose(ac, is_empty, is_held)
    }

    #[inline]
    pub(crate) fn listed(&self, ac: AccessCategory) -> usize {
        self.stations.listed(ac)
    }

    pub(crate) fn keeps_turn(&mut self, ac: AccessCategory) -> bool {
        self.stations.keeps_turn(ac)
    }

    pub(crate) fn has_same_turn(&self, ac: AccessCategory) -> bool {
        self.stations.has_same_turn(ac)
    }

    pub(crate) fn rejoin(&mut self, ac: AccessCategory, station: usize) {
        self.stations.join(ac, station);
    }

    pub(crate) fn charge(&mut self, ac: AccessCategory, station: usize, airtime: Span) {
        self.stations.charge(ac, station, airtime);
    }

    pub(crate) fn refund(&mut self, ac: AccessCategory, station: usize, airtime: Span) {
        self.stations.refund(ac, station, airtime);
    }

    pub(crate) fn backlog(&self) -> u32 {
        self.packets
    }

    pub(crate) fn oldest<P: Reshape>(&self, store: &Store<P>) -> Option<Time> {
        let ready = self.tids.iter().filter_map(|tid| Some(store.released(tid.ready?).arrived));
        let waiting =
            self.flows.iter().filter_map(|flow| Some(store.first(&flow.waiting.chain)?.arrived));
        ready.chain(waiting).min()
    }

    /// When the packet arrived that has waited longest for a station.
    pub(crate) fn oldest_of<P: Reshape>(&self, station: usize, store: &Store<P>) -> Option<Time> {
        let tids = &self.tids[station * CATEGORIES..(station + 1) * CATEGORIES];
        let ready = tids.iter().filter_map(|tid| Some(store.released(tid.ready?).arrived));
        let listed = tids.iter().flat_map(|tid| tid.new.iter().chain(&tid.old));
        let chain = |index: &u32| &self.flows[*index as usize].waiting.chain;
        let waiting = listed.filter_map(|index| Some(store.first(chain(index))?.arrived));
        ready.chain(waiting).min()
    }

    #[inline]
    pub(crate) fn take_dropped(&mut self) -> Option<[u32; CATEGORIES]> {
        if self.dropped == [0; CATEGORIES] {
            return None;
        }
        Some(core::mem::take(&mut self.dropped))
    }

    /// Algorithm 2.
    #[inline(never)]
    fn dequeue<P: Reshape>(
        &mut self,
        now: Time,
        tid: usize,
        store: &mut Store<P>,
        listener: &mut impl Listener<P>,
    ) -> Option<Slot> {
        loop {
            let state = &mut self.tids[tid];
            let is_new = !state.new.is_empty();
            let list = if is_new { &mut state.new } else { &mut state.old };
            let index = *list.front()?;
            let flow = &mut self.flows[index as usize];
            if flow.deficit <= 0 {
                flow.deficit += self.quantum;
                if is_new || list.len() > 1 {
                    list.pop_front();
                    state.old.push_back(index);
                    continue;
                }
                // One that is alone among the old ones comes first again.
                while flow.deficit <= 0 {
                    flow.deficit += self.quantum;
                }
            }
            let Flow { waiting, law, .. } = &mut *flow;
            let (packets, bytes) = (waiting.packets, waiting.bytes);
            let mut noted = Noted { port: port_of(tid), listener: &mut *listener };
            let mut source = Stored { waiting, store };
            let wait = self.law.judge(law, &mut source, now, &mut self.stats, &mut noted);
            let lost = packets - waiting.packets;
            debug_assert!(lost == 0 || waiting.bytes < bytes);
            self.packets -= lost;
            state.packets -= lost;
            self.dropped[tid % CATEGORIES] += lost;
            if wait.is_none() {
                list.pop_front();
                if is_new {
                    state.old.push_back(index);
                } else {
                    flow.is_listed = false;
                    if index < self.hashed {
                        flow.tid = NOBODY;
                    }
                }
                continue;
            }
            let (slot, wire_len) = flow.waiting.pop(store)?;
            flow.deficit -= wire_len as i32;
            return Some(slot);
        }
    }

    /// The queue with most bytes loses its first packet.
    fn drop_from_longest<P: Reshape>(
        &mut self,
        now: Time,
        store: &mut Store<P>,
        listener: &mut impl Listener<P>,
    ) {
        let listed = self.tids.iter().flat_map(|tid| tid.new.iter().chain(&tid.old));
        let longest = listed.copied().max_by_key(|index| self.flows[*index as usize].waiting.bytes);
        let Some(longest) = longest else { return };
        let flow = &mut self.flows[longest as usize];
        let Some((slot, _)) = flow.waiting.pop(store) else { return };
        let tid = flow.tid as usize;
        self.packets -= 1;
        self.tids[tid].packets -= 1;
        self.dropped[tid % CATEGORIES] += 1;
        listener.dropped(now, port_of(tid), store.vacate(slot), DropReason::Overflow);
    }

    fn hash(&self, packet: &impl Queued) -> u32 {
        let key = packet.flow_key();
        let hosts = u64::from(key.src) << 32 | u64::from(key.dst);
        let hash = mix(mix(hosts ^ self.key) ^ key.ports) >> 32;
        ((hash * u64::from(self.hashed)) >> 32) as u32
    }
}

impl Waiting {
    /// Takes out the first packet; also says how many bytes it has.
    fn pop<P: Reshape>(&mut self, store: &mut Store<P>) -> Option<(Slot, u32)> {
        let (released, packet) = store.pop_if(&mut self.chain, |_| true)?;
        self.packets -= 1;
        self.bytes -= u64::from(packet.wire_len());
        Some((released.slot, packet.wire_len()))
    }
}

/// The packets of a queue, where they lie.
struct Stored<'a, P> {
    waiting: &'a mut Waiting,
    store: &'a mut Store<P>,
}

impl<P: Reshape> Source<P> for Stored<'_, P> {
    fn head(&self) -> Option<(&P, Time)> {
        let (released, packet) = self.store.front(&self.waiting.chain)?;
        Some((packet, released.arrived))
    }

    fn head_mut(&mut self) -> Option<&mut P> {
        let head = self.store.first(&self.waiting.chain)?.slot;
        Some(self.store.at_mut(head))
    }

    fn pop(&mut self) -> Option<P> {
        let (slot, _) = self.waiting.pop(self.store)?;
        Some(*self.store.vacate(slot))
    }

    fn backlog(&self) -> u64 {
        self.waiting.bytes + GUARD
    }
}

/// Passes on to a listener what CoDel drops and marks of the packets of an identifier.
struct Noted<'a, L> {
    port: Port,
    listener: &'a mut L,
}

impl<P, L: Listener<P>> Sink<P> for Noted<'_, L> {
    fn dropped(&mut self, now: Time, packet: P, why: DropReason) {
        self.listener.dropped(now, self.port, &packet, why);
    }

    fn marked(&mut self, now: Time, packet: &P) {
        self.listener.marked(now, self.port, packet);
    }
}

/// The port of the packets of an identifier: from the access point, which alone has these queues, to its station.
fn port_of(tid: usize) -> Port {
    Port::down((tid / CATEGORIES) as u16)
}
