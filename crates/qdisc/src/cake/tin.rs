//! A tin: 1024 flow queues in sets of eight, deficit round robin over them with sparse flows
//! first, and even shares between hosts.

use sojourn_core::{FlowKey, Rate, Span, Stream, Time};

use super::cobalt::{Cobalt, Params};
use super::config::Config;
use super::isolation::Isolation;
use super::shaper::Pace;
use crate::DEVICE_MTU;
use crate::chain::{Chains, List};
use crate::hash::FlowHash;
use crate::slab::Fifo;

pub(crate) const QUEUES: u32 = 1024;
pub(crate) const WAYS: u32 = 8;

/// Sparse flows, served first.
const NEW_FLOWS: List = List(0);
/// Bulk flows in rotation.
const OLD_FLOWS: List = List(1);
/// Empty flows whose COBALT has not come to rest.
const DECAYING_FLOWS: List = List(2);

/// Bounds of the quantum of a flow.
const FLOW_QUANTUM_LEAST: u64 = 300;

#[derive(Debug)]
pub(crate) struct Tin {
    /// Threshold below which the tin goes before lower ones; zero stands for unlimited.
    pub(crate) rate: Rate,
    pub(crate) pace: Pace,
    pub(crate) time_next_packet: Time,
    /// Weight and credit of the tin's rotation when unshaped.
    pub(crate) quantum: u32,
    pub(crate) deficit: i64,
    pub(crate) flow_quantum: u32,
    pub(crate) cobalt: Params,
    pub(crate) flows: Vec<Flow>,
    /// Bytes waiting in each flow, apart from the flows so that the search for the longest is one
    /// sweep.
    pub(crate) backlogs: Vec<u32>,
    pub(crate) backlog: u64,
    tags: Vec<u32>,
    hosts: Vec<Host>,
    /// Grows whenever a host's count of bulk flows, or a flow's host, changes.
    host_changes: u32,
    chains: Chains<Turn>,
    pub(crate) sparse: u32,
    pub(crate) bulk: u32,
    pub(crate) decaying: u32,
    /// Flows on which BLUE acts.
    pub(crate) unresponsive: u32,
    pub(crate) stats: Stats,
}

#[derive(Debug)]
pub(crate) struct Flow {
    pub(crate) fifo: Fifo,
    pub(crate) set: Set,
    srchost: u16,
    dsthost: u16,
    pub(crate) cobalt: Cobalt,
}

/// What a flow may send.
#[derive(Debug, Default)]
struct Turn {
    deficit: i64,
    /// The flow's quantum in fractions of 2^16, as of a [`Tin::host_changes`].
    share: u32,
    share_as_of: u32,
}

/// Random 16-bit numbers, four to a draw.
#[derive(Clone, Debug)]
pub(crate) struct Dither {
    random: Stream,
    /// The numbers left of the last draw, below a one that marks their end.
    bits: u64,
}

impl Dither {
    const EMPTY: u64 = 1;

    pub(crate) fn new(random: Stream) -> Self {
        Self { random, bits: Self::EMPTY }
    }

    #[inline]
    fn next(&mut self) -> u16 {
        let bits = self.bits;
        if bits == Self::EMPTY {
            let drawn = self.random.next_u64();
            self.bits = drawn >> 16 | 1 << 48;
            return drawn as u16;
        }
        self.bits = bits >> 16;
        bits as u16
    }

    /// A whole number of bytes for a share in fractions of 2^16, and that on average.
    #[inline]
    fn round(&mut self, share: u32) -> i64 {
        i64::from((share + u32::from(self.next())) >> 16)
    }

    /// For other uses than dithering.
    pub(crate) fn random(&mut self) -> &mut Stream {
        &mut self.random
    }
}

/// How a flow is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Set {
    /// In no list.
    None,
    Sparse,
    /// Empty, but waiting among the bulk flows for its deficit to be paid.
    SparseWait,
    Bulk,
    Decaying,
}

/// Two independent tables in one: of source hosts and of destination hosts.
#[derive(Clone, Copy, Debug, Default)]
struct Host {
    source_tag: u32,
    source_bulk: u32,
    destination_tag: u32,
    destination_bulk: u32,
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
        let ewma = |average: u64, shift: u32| average - (average >> shift) + (delay >> shift);
        self.average_delay = ewma(self.average_delay, 8);
        self.peak_delay = ewma(self.peak_delay, if delay > self.peak_delay { 2 } else { 8 });
        self.base_delay = ewma(self.base_delay, if delay < self.base_delay { 2 } else { 8 });
    }
}

impl Tin {
    pub(crate) fn new(config: &Config, rate: Rate, quantum: u32) -> Self {
        let is_shaped = !rate.is_unlimited();
        let pace = if is_shaped { Pace::new(rate) } else { Pace::UNLIMITED };
        let most = u64::from(DEVICE_MTU);
        let flow_quantum = if is_shaped {
            (rate.as_bytes_per_sec() >> 12).clamp(FLOW_QUANTUM_LEAST, most)
        } else {
            most
        };
        let flow = || Flow {
            fifo: Fifo::EMPTY,
            set: Set::None,
            srchost: 0,
            dsthost: 0,
            cobalt: Cobalt::default(),
        };
        Self {
            rate,
            pace,
            time_next_packet: Time::ZERO,
            quantum,
            deficit: 0,
            flow_quantum: flow_quantum as u32,
            cobalt: cobalt_params(config, pace),
            flows: (0..QUEUES).map(|_| flow()).collect(),
            backlogs: vec![0; QUEUES as usize],
            backlog: 0,
            tags: vec![0; QUEUES as usize],
            hosts: vec![Host::default(); QUEUES as usize],
            host_changes: 1,
            chains: Chains::new(QUEUES, 3),
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
        if self.tags[direct as usize] == tag && self.flows[direct as usize].set != Set::None {
            return direct;
        }
        self.classify_in_set(tag, key, isolation, hash)
    }

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
            if let Some(queue) = ways(direct).find(|queue| self.tags[*queue as usize] == tag) {
                if queue != direct {
                    self.stats.way_hits += 1;
                }
                needs_hosts = self.flows[queue as usize].set == Set::None;
                queue
            } else if let Some(queue) =
                ways(direct).find(|queue| self.flows[*queue as usize].set == Set::None)
            {
                self.stats.way_misses += 1;
                queue
            } else {
                self.stats.way_collisions += 1;
                self.uncount_hosts(direct, isolation);
                direct
            };
        self.tags[queue as usize] = tag;
        if needs_hosts {
            self.assign_hosts(queue, key, isolation, hash);
        }
        queue
    }

    /// Notes the hosts of a queue's new owner, and counts them if the queue is a bulk flow.
    fn assign_hosts(&mut self, queue: u32, key: &FlowKey, isolation: Isolation, hash: FlowHash) {
        if isolation.is_fair_to_sources() {
            let tag = hash.host(key.src);
            let host = ways(tag % QUEUES)
                .find(|host| self.hosts[*host as usize].source_tag == tag)
                .or_else(|| {
                    ways(tag % QUEUES).find(|host| self.hosts[*host as usize].source_bulk == 0)
                })
                .unwrap_or(tag % QUEUES);
            self.hosts[host as usize].source_tag = tag;
            self.flows[queue as usize].srchost = host as u16;
        }
        if isolation.is_fair_to_destinations() {
            let tag = hash.host(key.dst);
            let host = ways(tag % QUEUES)
                .find(|host| self.hosts[*host as usize].destination_tag == tag)
                .or_else(|| {
                    ways(tag % QUEUES).find(|host| self.hosts[*host as usize].destination_bulk == 0)
                })
                .unwrap_or(tag % QUEUES);
            self.hosts[host as usize].destination_tag = tag;
            self.flows[queue as usize].dsthost = host as u16;
        }
        self.chains.turn_mut(queue).share_as_of = self.host_changes.wrapping_sub(1);
        self.count_hosts(queue, isolation);
    }

    /// Counts a bulk flow with its hosts.
    fn count_hosts(&mut self, queue: u32, isolation: Isolation) {
        let flow = &self.flows[queue as usize];
        if flow.set != Set::Bulk {
            return;
        }
        self.host_changes = self.host_changes.wrapping_add(1);
        if isolation.is_fair_to_sources() {
            self.hosts[usize::from(flow.srchost)].source_bulk += 1;
        }
        if isolation.is_fair_to_destinations() {
            self.hosts[usize::from(flow.dsthost)].destination_bulk += 1;
        }
    }

    /// Takes a bulk flow off its hosts' counts.
    fn uncount_hosts(&mut self, queue: u32, isolation: Isolation) {
        let flow = &self.flows[queue as usize];
        if flow.set != Set::Bulk {
            return;
        }
        self.host_changes = self.host_changes.wrapping_add(1);
        if isolation.is_fair_to_sources() {
            let count = &mut self.hosts[usize::from(flow.srchost)].source_bulk;
            *count = count.saturating_sub(1);
        }
        if isolation.is_fair_to_destinations() {
            let count = &mut self.hosts[usize::from(flow.dsthost)].destination_bulk;
            *count = count.saturating_sub(1);
        }
    }

    /// A flow's quantum. A random fraction is added before rounding down, so that the remainders
    /// are shared too.
    #[inline]
    fn quantum_of(&mut self, queue: u32, isolation: Isolation, dither: &mut Dither) -> i64 {
        let turn = self.chains.turn_mut(queue);
        if turn.share_as_of != self.host_changes {
            let host_load = host_load(&self.flows[queue as usize], &self.hosts, isolation);
            turn.share = share(self.flow_quantum, host_load);
            turn.share_as_of = self.host_changes;
        }
        dither.round(turn.share)
    }

    /// A packet was queued: an idle flow becomes sparse, one that owes becomes bulk.
    #[inline]
    pub(crate) fn rouse(&mut self, queue: u32, isolation: Isolation, dither: &mut Dither) {
        match self.flows[queue as usize].set {
            Set::None | Set::Decaying => {
                if self.flows[queue as usize].set == Set::Decaying {
                    self.decaying -= 1;
                }
                self.chains.move_to_back(NEW_FLOWS, queue);
                self.sparse += 1;
                self.flows[queue as usize].set = Set::Sparse;
                self.chains.turn_mut(queue).deficit = self.quantum_of(queue, isolation, dither);
            }
            Set::SparseWait => {
                self.sparse -= 1;
                self.bulk += 1;
                self.flows[queue as usize].set = Set::Bulk;
                self.count_hosts(queue, isolation);
            }
            Set::Sparse | Set::Bulk => {}
        }
    }

    /// The flow whose turn it is: of the decaying ones at most one a packet, then the sparse, then
    /// the bulk ones. A flow without deficit gets a quantum and goes to the back of the bulk ones.
    #[inline]
    pub(crate) fn next_flow(
        &mut self,
        look_at_decaying: bool,
        isolation: Isolation,
        dither: &mut Dither,
    ) -> Option<u32> {
        if look_at_decaying && let Some(flow) = self.chains.first(DECAYING_FLOWS) {
            if self.chains.turn(flow).deficit > 0 {
                return Some(flow);
            }
            self.send_to_back(flow, isolation, dither);
        }
        while let Some(flow) = self.chains.first(NEW_FLOWS) {
            if self.chains.turn(flow).deficit > 0 {
                return Some(flow);
            }
            self.send_to_back(flow, isolation, dither);
        }
        if let Some(flow) = self.chains.first(OLD_FLOWS) {
            return Some(self.next_bulk_flow(flow, isolation, dither));
        }
        let flow = self.chains.first(DECAYING_FLOWS)?;
        if self.chains.turn(flow).deficit > 0 {
            return Some(flow);
        }
        self.send_to_back(flow, isolation, dither);
        Some(self.next_bulk_flow(flow, isolation, dither))
    }

    /// Goes round the bulk flows from `first` on until one has a deficit left. When hosts share,
    /// a quantum is a fraction of a packet and that takes several rounds.
    #[inline]
    fn next_bulk_flow(&mut self, first: u32, isolation: Isolation, dither: &mut Dither) -> u32 {
        if self.chains.turn(first).deficit > 0 && self.chains.first(OLD_FLOWS) == Some(first) {
            return first;
        }
        self.go_round(first, isolation, dither)
    }

    /// The rounds. Not inlined, because they are short of registers as it is.
    #[inline(never)]
    fn go_round(&mut self, first: u32, isolation: Isolation, dither: &mut Dither) -> u32 {
        let Self { chains, flows, hosts, host_changes, flow_quantum, .. } = self;
        let (as_of, flow_quantum) = (*host_changes, *flow_quantum);
        let mut local = dither.clone();
        let chosen = chains.rotate_until(OLD_FLOWS, first, |queue, turn| {
            if turn.deficit > 0 {
                return true;
            }
            if turn.share_as_of != as_of {
                let host_load = host_load(&flows[queue as usize], hosts, isolation);
                turn.share = share(flow_quantum, host_load);
                turn.share_as_of = as_of;
            }
            turn.deficit += local.round(turn.share);
            false
        });
        *dither = local;
        chosen
    }

    /// A flow has used up its deficit: it gets a quantum and goes to the end of the bulk rotation.
    fn send_to_back(&mut self, queue: u32, isolation: Isolation, dither: &mut Dither) {
        let flow = &mut self.flows[queue as usize];
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
        let quantum = self.quantum_of(queue, isolation, dither);
        self.chains.turn_mut(queue).deficit += quantum;
        self.chains.move_to_back(OLD_FLOWS, queue);
    }

    /// A flow was served and found empty: it decays, or is forgotten.
    pub(crate) fn rest(&mut self, queue: u32, isolation: Isolation, now: Time) {
        let params = self.cobalt;
        let cobalt = &mut self.flows[queue as usize].cobalt;
        if cobalt.on_empty(&params, now) {
            self.unresponsive = self.unresponsive.saturating_sub(1);
        }
        let is_at_rest = cobalt.is_at_rest(now);
        self.uncount_hosts(queue, isolation);
        match self.flows[queue as usize].set {
            Set::Bulk => self.bulk -= 1,
            Set::Sparse | Set::SparseWait => self.sparse -= 1,
            Set::Decaying => self.decaying -= 1,
            Set::None => {}
        }
        if is_at_rest {
            self.chains.unlink(queue);
            self.flows[queue as usize].set = Set::None;
        } else {
            self.chains.move_to_back(DECAYING_FLOWS, queue);
            self.decaying += 1;
            self.flows[queue as usize].set = Set::Decaying;
        }
    }

    /// Charges a flow for a packet of `len` on the link.
    #[inline]
    pub(crate) fn pay(&mut self, queue: u32, len: u32) {
        let len = i64::from(len);
        self.chains.turn_mut(queue).deficit -= len;
        self.deficit -= len;
    }

    /// Moves the tin's own schedule on by a packet. A tin behind its schedule may catch up.
    #[inline]
    pub(crate) fn advance(&mut self, len: u32, now: Time) {
        let duration = self.pace.time_for(len);
        if self.time_next_packet < now {
            self.time_next_packet += duration;
        } else {
            self.time_next_packet = self.time_next_packet.max(now + duration);
        }
    }

    /// The queues that may hold packets.
    pub(crate) fn active_fifos(&self) -> impl Iterator<Item = Fifo> {
        let active = self.chains.iter(NEW_FLOWS).chain(self.chains.iter(OLD_FLOWS));
        active.map(|flow| self.flows[flow as usize].fifo)
    }

    /// Bulk flows counted with a source host.
    #[cfg(test)]
    pub(crate) fn source_bulk_counts(&self) -> Vec<u32> {
        self.hosts.iter().map(|host| host.source_bulk).filter(|count| *count > 0).collect()
    }
}

/// The bulk flows of the busier of a flow's hosts.
#[inline(never)]
fn host_load(flow: &Flow, hosts: &[Host], isolation: Isolation) -> u32 {
    let mut host_load = 1;
    if isolation.is_fair_to_sources() {
        host_load = host_load.max(hosts[usize::from(flow.srchost)].source_bulk);
    }
    if isolation.is_fair_to_destinations() {
        host_load = host_load.max(hosts[usize::from(flow.dsthost)].destination_bulk);
    }
    host_load
}

/// A quantum divided by `host_load`, in fractions of 2^16.
fn share(flow_quantum: u32, host_load: u32) -> u32 {
    flow_quantum * (65_535 / host_load)
}

/// At low rates the target is one and a half packet times, and the interval keeps its distance.
fn cobalt_params(config: &Config, pace: Pace) -> Params {
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
