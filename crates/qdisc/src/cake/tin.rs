//! A tin: 1024 flow queues in sets of eight, deficit round robin over them with sparse flows
//! first, and even shares between hosts.

use alloc::boxed::Box;

use sojourn_core::{FlowKey, Rate, Span, Time};

use super::cobalt::{Cobalt, Params};
use super::config::Config;
use super::isolation::Isolation;
use super::shaper::{Pace, Schedule};
use super::turns::{Dither, List, QUEUES, Turns, at};
use crate::DEVICE_MTU;
use crate::hash::FlowHash;
use crate::slab::Fifo;

pub(crate) const WAYS: u32 = 8;

/// Bounds of the quantum of a flow.
const FLOW_QUANTUM_LEAST: u64 = 300;

#[derive(Debug)]
pub(crate) struct Tin {
    /// The rate up to which the tin goes before lower ones; zero stands for unlimited.
    pub(crate) rate: Rate,
    pub(crate) schedule: Schedule,
    /// Weight and credit of the tin's rotation when unshaped.
    pub(crate) quantum: u32,
    pub(crate) deficit: i64,
    pub(crate) cobalt: Params,
    pub(crate) flows: Box<[Flow; QUEUES as usize]>,
    /// Bytes waiting in each flow, stored apart from the flows so that the longest is found in one
    /// pass.
    pub(crate) backlogs: Box<[u32; QUEUES as usize]>,
    pub(crate) backlog: u64,
    hosts: Box<[Host; QUEUES as usize]>,
    pub(crate) turns: Turns,
    /// Of a host, since a flow last came to rest.
    has_load_halved: bool,
    pub(crate) sparse: u32,
    pub(crate) bulk: u32,
    pub(crate) decaying: u32,
    /// Flows on which BLUE acts.
    pub(crate) unresponsive: u32,
    pub(crate) stats: Stats,
}

#[derive(Clone, Debug)]
pub(crate) struct Flow {
    pub(crate) fifo: Fifo,
    /// The hash of the flow that owns it.
    tag: u32,
    pub(crate) set: Set,
    srchost: u16,
    dsthost: u16,
    pub(crate) cobalt: Cobalt,
}

/// How a flow is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Set {
    /// In no list.
    None,
    Sparse,
    /// Empty, but in the bulk rotation until its deficit is paid.
    SparseWait,
    Bulk,
    Decaying,
}

/// One entry of two independent tables: of source hosts and of destination hosts.
#[derive(Clone, Copy, Debug, Default)]
struct Host {
    source_tag: u32,
    source_bulk: Load,
    destination_tag: u32,
    destination_bulk: Load,
}

/// How many bulk flows a host has.
#[derive(Clone, Copy, Debug, Default)]
struct Load {
    flows: u32,
    /// The most since it last halved.
    most: u32,
}

impl Load {
    /// Below this load a flow that waits by an older one has its turn soon all the same.
    const LEAST_HALVED: u32 = 16;

    fn add(&mut self) {
        self.flows += 1;
        self.most = self.most.max(self.flows);
    }

    /// Whether the load is now half of what it was, which it can be only after as many removals as are
    /// left.
    fn remove(&mut self) -> bool {
        self.flows = self.flows.saturating_sub(1);
        let has_halved = self.most >= Self::LEAST_HALVED && 2 * self.flows <= self.most;
        if has_halved {
            self.most = self.flows;
        }
        has_halved
    }
}

#[derive(Debug, Default)]
pub(crate) struct Stats {
    pub(crate) packets: u64,
    pub(crate) bytes: u64,
    pub(crate) drops: u64,
    pub(crate) drop_overlimit: u64,
    pub(crate) marks: u64,
    pub(crate) ack_drops: u64,
    pub(crate) way_hits: u64,
    pub(crate) way_misses: u64,
    pub(crate) way_collisions: u64,
    pub(crate) max_len: u32,
    pub(crate) peak_delay: u64,
    pub(crate) average_delay: u64,
    pub(crate) base_delay: u64,
}

impl Stats {
    #[inline]
    pub(crate) fn observe_delay(&mut self, delay: Span) {
        let delay = delay.as_nanos();
        let slowly = |average: u64| average - (average >> 8) + (delay >> 8);
        let (peak, base) = (self.peak_delay, self.base_delay);
        self.average_delay = slowly(self.average_delay);
        self.peak_delay = if delay > peak { fast(peak, delay) } else { slowly(peak) };
        self.base_delay = if delay < base { fast(base, delay) } else { slowly(base) };
    }
}

/// Not inlined, because it is needed seldom: only if a delay is a new extreme.
#[cold]
#[inline(never)]
fn fast(average: u64, delay: u64) -> u64 {
    average - (average >> 2) + (delay >> 2)
}

impl Tin {
    pub(crate) fn new(config: &Config, rate: Rate, quantum: u32) -> Self {
        let is_shaped = !rate.is_unlimited();
        let pace = pace_of(rate);
        let most = u64::from(DEVICE_MTU);
        let flow_quantum = if is_shaped {
            (rate.as_bytes_per_sec() >> 12).clamp(FLOW_QUANTUM_LEAST, most)
        } else {
            most
        };
        let flow = |_| Flow {
            fifo: Fifo::EMPTY,
            tag: 0,
            set: Set::None,
            srchost: 0,
            dsthost: 0,
            cobalt: Cobalt::default(),
        };
        Self {
            rate,
            schedule: Schedule { pace, time_next_packet: Time::ZERO },
            quantum,
            deficit: 0,
            cobalt: cobalt_params(config, pace),
            flows: Box::new(core::array::from_fn(flow)),
            backlogs: Box::new([0; QUEUES as usize]),
            backlog: 0,
            hosts: Box::new([Host::default(); QUEUES as usize]),
            turns: Turns::new(flow_quantum as u32),
            has_load_halved: false,
            sparse: 0,
            bulk: 0,
            decaying: 0,
            unresponsive: 0,
            stats: Stats::default(),
        }
    }

    #[inline]
    pub(crate) fn has_flows(&self) -> bool {
        self.sparse + self.bulk > 0
    }

    /// The queue of a packet: eight-way set-associative, so that flows collide only when all eight
    /// queues of a set are taken.
    #[inline]
    pub(crate) fn classify(&mut self, key: &FlowKey, isolation: Isolation, hash: FlowHash) -> u32 {
        let tag = isolation.flow_hash(key, hash);
        let direct = tag % QUEUES;
        let flow = &self.flows[at(direct)];
        if flow.tag == tag && flow.set != Set::None {
            return direct;
        }
        self.classify_in_set(tag, key, isolation, hash)
    }

    #[inline(never)]
    fn classify_in_set(
        &mut self,
        tag: u32,
        key: &FlowKey,
        isolation: Isolation,
        hash: FlowHash,
    ) -> u32 {
        let direct = tag % QUEUES;
        let mut needs_hosts = true;
        let queue =
            if let Some(queue) = ways(direct).find(|queue| self.flows[at(*queue)].tag == tag) {
                if queue != direct {
                    self.stats.way_hits += 1;
                }
                needs_hosts = self.flows[at(queue)].set == Set::None;
                queue
            } else if let Some(queue) =
                ways(direct).find(|queue| self.flows[at(*queue)].set == Set::None)
            {
                self.stats.way_misses += 1;
                queue
            } else {
                self.stats.way_collisions += 1;
                self.uncount_hosts(direct, isolation);
                direct
            };
        self.flows[at(queue)].tag = tag;
        if needs_hosts {
            self.assign_hosts(queue, key, isolation, hash);
        }
        queue
    }

    /// Records the hosts of a queue's new owner, and counts them if the queue is a bulk flow.
    fn assign_hosts(&mut self, queue: u32, key: &FlowKey, isolation: Isolation, hash: FlowHash) {
        if isolation.is_fair_to_sources() {
            let tag = hash.host(key.src);
            let host = ways(tag % QUEUES)
                .find(|host| self.hosts[at(*host)].source_tag == tag)
                .or_else(|| {
                    ways(tag % QUEUES).find(|host| self.hosts[at(*host)].source_bulk.flows == 0)
                })
                .unwrap_or(tag % QUEUES);
            self.hosts[at(host)].source_tag = tag;
            self.flows[at(queue)].srchost = host as u16;
        }
        if isolation.is_fair_to_destinations() {
            let tag = hash.host(key.dst);
            let host = ways(tag % QUEUES)
                .find(|host| self.hosts[at(*host)].destination_tag == tag)
                .or_else(|| {
                    ways(tag % QUEUES)
                        .find(|host| self.hosts[at(*host)].destination_bulk.flows == 0)
                })
                .unwrap_or(tag % QUEUES);
            self.hosts[at(host)].destination_tag = tag;
            self.flows[at(queue)].dsthost = host as u16;
        }
        self.count_hosts(queue, isolation);
    }

    /// Adds a bulk flow to its hosts' counts.
    fn count_hosts(&mut self, queue: u32, isolation: Isolation) {
        let flow = &self.flows[at(queue)];
        if flow.set != Set::Bulk {
            return;
        }
        if isolation.is_fair_to_sources() {
            self.hosts[at(u32::from(flow.srchost))].source_bulk.add();
        }
        if isolation.is_fair_to_destinations() {
            self.hosts[at(u32::from(flow.dsthost))].destination_bulk.add();
        }
    }

    /// Removes a bulk flow from its hosts' counts.
    fn uncount_hosts(&mut self, queue: u32, isolation: Isolation) {
        let flow = &self.flows[at(queue)];
        if flow.set != Set::Bulk {
            return;
        }
        if isolation.is_fair_to_sources() {
            self.has_load_halved |= self.hosts[at(u32::from(flow.srchost))].source_bulk.remove();
        }
        if isolation.is_fair_to_destinations() {
            self.has_load_halved |=
                self.hosts[at(u32::from(flow.dsthost))].destination_bulk.remove();
        }
    }

    /// A packet was queued: an idle flow becomes sparse, and one that owes becomes bulk.
    #[inline]
    pub(crate) fn rouse(&mut self, queue: u32, isolation: Isolation, dither: &mut Dither) {
        let set = self.flows[at(queue)].set;
        if set != Set::Bulk && set != Set::Sparse {
            self.rouse_idle(queue, isolation, dither);
        }
    }

    #[inline(never)]
    fn rouse_idle(&mut self, queue: u32, isolation: Isolation, dither: &mut Dither) {
        let flow = &mut self.flows[at(queue)];
        if flow.set == Set::SparseWait {
            flow.set = Set::Bulk;
            self.sparse -= 1;
            self.bulk += 1;
            self.count_hosts(queue, isolation);
            return;
        }
        if flow.set == Set::Decaying {
            self.decaying -= 1;
        }
        flow.set = Set::Sparse;
        self.sparse += 1;
        let host_load = host_load(&self.flows[at(queue)], &self.hosts, isolation);
        self.turns.begin(queue, host_load, dither);
    }

    /// The flow whose turn it is: first at most one decaying flow for each packet, then the sparse
    /// flows, then the bulk flows. A flow without deficit gets a quantum and goes to the back of
    /// the bulk flows.
    #[inline(always)]
    pub(crate) fn next_flow(
        &mut self,
        look_at_decaying: bool,
        isolation: Isolation,
        dither: &mut Dither,
    ) -> Option<u32> {
        if look_at_decaying && let Some(flow) = self.turns.first(List::Decaying) {
            if self.turns.has_deficit(flow) {
                return Some(flow);
            }
            self.send_to_back(flow, isolation, dither);
        }
        while let Some(flow) = self.turns.first(List::New) {
            if self.turns.has_deficit(flow) {
                return Some(flow);
            }
            self.send_to_back(flow, isolation, dither);
        }
        if self.turns.first(List::Old).is_none() {
            let flow = self.turns.first(List::Decaying)?;
            if self.turns.has_deficit(flow) {
                return Some(flow);
            }
            self.send_to_back(flow, isolation, dither);
        }
        let Self { flows, hosts, turns, .. } = self;
        Some(turns.next_bulk(dither, |flow| host_load(&flows[at(flow)], hosts, isolation)))
    }

    /// A flow has used up its deficit: it gets a quantum and goes to the end of the bulk rotation.
    #[inline(never)]
    fn send_to_back(&mut self, queue: u32, isolation: Isolation, dither: &mut Dither) {
        let flow = &mut self.flows[at(queue)];
        if flow.set == Set::Sparse {
            if flow.fifo.is_empty() {
                flow.set = Set::SparseWait;
            } else {
                flow.set = Set::Bulk;
                self.sparse -= 1;
                self.bulk += 1;
                self.count_hosts(queue, isolation);
            }
        }
        let host_load = host_load(&self.flows[at(queue)], &self.hosts, isolation);
        self.turns.send_to_back(queue, host_load, dither);
    }

    /// A flow was served and found empty: it decays, or is forgotten.
    #[inline(never)]
    pub(crate) fn rest(
        &mut self,
        queue: u32,
        isolation: Isolation,
        now: Time,
        dither: &mut Dither,
    ) {
        let params = self.cobalt;
        let cobalt = &mut self.flows[at(queue)].cobalt;
        if cobalt.on_empty(&params, now) {
            self.unresponsive = self.unresponsive.saturating_sub(1);
        }
        let is_at_rest = cobalt.is_at_rest(now);
        self.uncount_hosts(queue, isolation);
        match self.flows[at(queue)].set {
            Set::Bulk => self.bulk -= 1,
            Set::Sparse | Set::SparseWait => self.sparse -= 1,
            Set::Decaying => self.decaying -= 1,
            Set::None => {}
        }
        if is_at_rest {
            self.turns.unlink(queue);
            self.flows[at(queue)].set = Set::None;
        } else {
            self.turns.move_to_back(List::Decaying, queue);
            self.decaying += 1;
            self.flows[at(queue)].set = Set::Decaying;
        }
        if core::mem::take(&mut self.has_load_halved) && self.turns.first(List::Old).is_some() {
            let Self { flows, hosts, turns, .. } = self;
            let host_load = |flow| host_load(&flows[at(flow)], hosts, isolation);
            turns.advance_those_with_less_load(dither, host_load);
        }
    }

    /// Charges a flow for a packet of `len` on the link.
    pub(crate) fn pay(&mut self, queue: u32, len: u32) {
        self.turns.pay(queue, len);
        self.deficit -= i64::from(len);
    }

    /// The queues that may hold packets.
    pub(crate) fn active_fifos(&self) -> impl Iterator<Item = Fifo> {
        let active = self.turns.iter(List::New).chain(self.turns.iter(List::Old));
        active.map(|flow| self.flows[at(flow)].fifo)
    }

    /// Bulk flows counted with a source host.
    #[cfg(test)]
    pub(crate) fn source_bulk_counts(&self) -> alloc::vec::Vec<u32> {
        self.hosts.iter().map(|host| host.source_bulk.flows).filter(|count| *count > 0).collect()
    }
}

/// The bulk flows of the busier of a flow's hosts.
#[inline(never)]
fn host_load(flow: &Flow, hosts: &[Host; QUEUES as usize], isolation: Isolation) -> u32 {
    let mut host_load = 1;
    if isolation.is_fair_to_sources() {
        host_load = host_load.max(hosts[at(u32::from(flow.srchost))].source_bulk.flows);
    }
    if isolation.is_fair_to_destinations() {
        host_load = host_load.max(hosts[at(u32::from(flow.dsthost))].destination_bulk.flows);
    }
    host_load
}

/// A tin without a rate does not shape.
pub(super) fn pace_of(rate: Rate) -> Pace {
    if rate.is_unlimited() { Pace::UNLIMITED } else { Pace::new(rate) }
}

/// At low rates the target is one and a half packet times, and the interval stays as far above it.
pub(super) fn cobalt_params(config: &Config, pace: Pace) -> Params {
    let base_target = config.target();
    let mtu_time = pace.time_for(DEVICE_MTU);
    let target = base_target.max(mtu_time * 3 / 2);
    let interval = (config.rtt + target - base_target).max(target * 2);
    Params { target, interval, mtu_time }
}

/// The queues of a set, beginning with the one hashed to.
fn ways(direct: u32) -> impl Iterator<Item = u32> {
    let inner = direct % WAYS;
    let outer = direct - inner;
    (0..WAYS).map(move |way| outer + (inner + way) % WAYS)
}
