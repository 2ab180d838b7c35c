//! CAKE, common applications kept enhanced, as Linux has it (`sch_cake`; Høiland-Jørgensen, Täht
//! and Morton, "Piece of CAKE", LANMAN 2018).
//!
//! From the outside in: a shaper without bursts (`shaper`) that knows the link's framing
//! (`sojourn_core::framing`); tins by code point, each with a threshold rate (`priority`, `tin`);
//! in a tin, eight-way associative flow queues with fairness between hosts (`isolation`); on every
//! queue COBALT (`cobalt`); and a filter for acknowledgements (`ack_filter`).

mod ack_filter;
mod cobalt;
mod config;
mod details;
mod isolation;
mod priority;
mod shaper;
mod soonest;
#[cfg(test)]
mod tests;
mod tin;
mod tins;
mod turns;

pub use ack_filter::AckFilter;
pub use cobalt::Params as CobaltParams;
pub use config::Config;
pub use isolation::Isolation;
pub use priority::Priority;

use alloc::vec::Vec;

use sojourn_core::{DropReason, Queued, Span, Stream, Time};

use crate::hash::FlowHash;
use crate::slab::{Place, Slab};
use crate::{Backlog, Dequeue, Enqueue, Qdisc, Reshape, Sink};
use shaper::Shaper;
use tin::Tin;
use turns::{Dither, at};

#[derive(Debug)]
pub struct Cake<P> {
    config: Config,
    shaper: Shaper,
    /// By code point.
    tin_of: &'static priority::Table,
    tins: Vec<Tin>,
    /// A bit for each tin that has flows.
    busy_tins: u32,
    /// Tin being served.
    cur_tin: usize,
    store: Store<P>,
    buffer_limit: u64,
    hash: FlowHash,
    dither: Dither,
}

impl<P: Queued + Copy> Cake<P> {
    pub fn new(config: &Config, mut random: Stream) -> Self {
        let tins = tins::tins(config);
        Self {
            shaper: Shaper::new(tins[0].schedule.pace, config),
            tin_of: config.priority.table(),
            tins,
            busy_tins: 0,
            cur_tin: 0,
            store: Store::new(),
            buffer_limit: config.buffer_limit(),
            hash: FlowHash::new(&mut random),
            dither: Dither::new(random),
            config: config.clone(),
        }
    }

    /// The tin to serve. If shaped: the highest one that is within its own schedule, or else the
    /// one that is due first. If not: by deficit round robin.
    #[inline]
    fn choose_tin(&mut self, now: Time) -> Option<usize> {
        self.cur_tin = if !self.shaper.is_shaping() {
            self.next_tin_in_rotation()?
        } else if self.busy_tins & self.busy_tins.saturating_sub(1) == 0 {
            // Some tin has flows, as packets wait: this one alone.
            self.busy_tins.trailing_zeros() as usize
        } else {
            self.due_tin(now)?
        };
        Some(self.cur_tin)
    }

    fn due_tin(&self, now: Time) -> Option<usize> {
        let mut best = None;
        let mut best_time = Time::NEVER;
        for (index, tin) in self.tins.iter().enumerate() {
            let time = tin.schedule.time_next_packet;
            if tin.has_flows() && (time <= now || time <= best_time) {
                (best, best_time) = (Some(index), time);
            }
        }
        best
    }

    fn next_tin_in_rotation(&mut self) -> Option<usize> {
        let mut current = self.cur_tin;
        let mut wrapped = false;
        let mut is_empty = true;
        loop {
            let tin = &mut self.tins[current];
            let has_flows = tin.has_flows();
            if tin.deficit >= 0 && has_flows {
                return Some(current);
            }
            if tin.deficit <= 0 {
                tin.deficit += i64::from(tin.quantum);
            }
            is_empty &= !has_flows;
            current += 1;
            if current == self.tins.len() {
                current = 0;
                if wrapped && is_empty {
                    return None;
                }
                wrapped = true;
            }
        }
    }

    /// Drops the head of the longest queue of all tins.
    #[cold]
    fn drop_from_longest(&mut self, now: Time, sink: &mut dyn Sink<P>) -> bool {
        let mut longest = (0, 0, 0);
        for (index, tin) in self.tins.iter().enumerate() {
            if tin.backlog > u64::from(longest.2) {
                let most = tin.backlogs.iter().copied().max().unwrap_or(0);
                if most > longest.2 {
                    let flow = tin.backlogs.iter().position(|bytes| *bytes == most).unwrap_or(0);
                    longest = (index, flow as u32, most);
                }
            }
        }
        let (tin, flow, _) = longest;
        let tin = &mut self.tins[tin];
        let Some(packet) = self.store.pop(tin, flow) else { return false };
        if self.config.ingress {
            self.shaper.charge_dropped(&mut tin.schedule, &packet, now);
        }
        if tin.flows[at(flow)].cobalt.on_overflow(&tin.cobalt, now) {
            tin.unresponsive += 1;
        }
        tin.stats.drops += 1;
        tin.stats.drop_overlimit += 1;
        sink.dropped(now, packet, DropReason::Overflow);
        true
    }

    /// Drops an acknowledgement that the newest packet of the flow makes superfluous.
    #[inline(never)]
    fn filter_acks(&mut self, tin: usize, flow: u32, now: Time, sink: &mut dyn Sink<P>) {
        let tin = &mut self.tins[tin];
        let fifo = tin.flows[at(flow)].fifo;
        let superseded = self.config.ack_filter.superseded(&self.store.packets, fifo);
        let Some(position) = superseded else { return };
        let packet = self.store.remove(tin, flow, position);
        let packet = packet.expect("the position is inside the queue");
        tin.stats.ack_drops += 1;
        if self.config.ingress {
            self.shaper.charge_dropped(&mut tin.schedule, &packet, now);
        }
        sink.dropped(now, packet, DropReason::AckFiltered);
    }

    /// Takes the next packet out, which must be copied at once, and how long it waited; or how long
    /// the shaper holds the packets that wait.
    #[inline(always)]
    fn choose(&mut self, now: Time, sink: &mut dyn Sink<P>) -> (Place, Span) {
        let mut look_at_decaying = true;
        while self.store.totals.backlog.packets > 0 {
            if let Some(time) = self.shaper.held_until(now) {
                return (Place::NOWHERE, time.since(now));
            }
            let Some(tin) = self.choose_tin(now) else { break };
            let chosen = self.serve(tin, look_at_decaying, now, sink);
            if let Some(chosen) = chosen {
                return chosen;
            }
            look_at_decaying = false;
        }
        (Place::NOWHERE, Span::ZERO)
    }

    /// Serves the chosen tin until a packet may go. `None` if a queue turned out to be empty, so
    /// that a tin must be chosen again.
    #[inline(always)]
    fn serve(
        &mut self,
        index: usize,
        mut look_at_decaying: bool,
        now: Time,
        sink: &mut dyn Sink<P>,
    ) -> Option<(Place, Span)> {
        let isolation = self.config.isolation;
        let is_ingress = self.config.ingress;
        let tin = &mut self.tins[index];
        'next_flow: loop {
            let look = core::mem::take(&mut look_at_decaying);
            let queue = tin.next_flow(look, isolation, &mut self.dither)?;
            loop {
                let flow = &mut tin.flows[at(queue)];
                let Some(head) = self.store.packets.head_mut(flow.fifo) else {
                    tin.rest(queue, isolation, now, &mut self.dither);
                    self.busy_tins &= !(u32::from(!tin.has_flows()) << index);
                    return None;
                };
                let packet = &mut head.slot.packet;
                let wait = now.after(head.slot.arrived);
                let signal = flow.cobalt.on_dequeue(
                    &tin.cobalt,
                    now,
                    wait,
                    is_ingress.then_some(tin.bulk),
                    packet.ecn().is_capable(),
                    self.dither.random(),
                );
                if signal.mark {
                    packet.mark_ce();
                    sink.marked(now, packet);
                    tin.stats.marks += 1;
                }
                // The last packet of a queue may be marked, but is not dropped.
                if !signal.drop || !flow.fifo.holds_several() {
                    let len = self.shaper.charge(&mut tin.schedule, packet, now);
                    tin.turns.pay(queue, len);
                    tin.deficit -= i64::from(len);
                    tin.stats.observe_delay(wait);
                    let bytes = packet.wire_len();
                    self.store.totals.remove(bytes, head.slot.truesize);
                    tin.backlogs[at(queue)] -= bytes;
                    tin.backlog -= u64::from(bytes);
                    return Some((head.take(&mut flow.fifo), wait));
                }
                drop_head(tin, queue, &mut self.store, &mut self.shaper, is_ingress, now, sink);
                if is_ingress {
                    continue 'next_flow;
                }
            }
        }
    }
}

/// Cuts a super packet that was just stored into its segments, and queues all but the last, which is left in its place. Gives
/// the last one's bytes and memory.
#[inline(never)]
fn push_all_but_last<P: Reshape>(
    place: Place,
    tin: &mut Tin,
    queue: u32,
    store: &mut Store<P>,
    now: Time,
) -> (u32, u32) {
    while let Some(first) = store.packets.stored(place).packet.split_first() {
        store.push(tin, queue, now, first);
    }
    let slot = store.packets.stored(place);
    slot.truesize = slot.packet.truesize();
    (slot.packet.wire_len(), slot.truesize)
}

/// COBALT drops the head of a flow. With a bottleneck before this queue, the flow pays for it.
#[cold]
#[inline(never)]
fn drop_head<P: Queued + Copy>(
    tin: &mut Tin,
    queue: u32,
    store: &mut Store<P>,
    shaper: &mut Shaper,
    is_ingress: bool,
    now: Time,
    sink: &mut dyn Sink<P>,
) {
    let Some(packet) = store.pop(tin, queue) else { return };
    tin.stats.drops += 1;
    if is_ingress {
        let len = shaper.charge_dropped(&mut tin.schedule, &packet, now);
        tin.pay(queue, len);
    }
    sink.dropped(now, packet, DropReason::Aqm);
}

/// The packets of all flows, and their totals.
#[derive(Debug)]
struct Store<P> {
    packets: Slab<P>,
    totals: Totals,
}

#[derive(Debug, Default)]
struct Totals {
    backlog: Backlog,
    /// Memory charged for the packets that wait.
    buffer_used: u64,
    buffer_max_used: u64,
}

impl Totals {
    #[inline]
    fn add(&mut self, bytes: u32, truesize: u32) {
        self.backlog.add(bytes);
        self.buffer_used += u64::from(truesize);
    }

    #[inline]
    fn remove(&mut self, bytes: u32, truesize: u32) {
        self.backlog.remove(bytes);
        self.buffer_used -= u64::from(truesize);
    }
}

impl<P: Queued + Copy> Store<P> {
    fn new() -> Self {
        Self { packets: Slab::new(), totals: Totals::default() }
    }

    /// Puts a packet at the end of its flow and into all counts.
    fn push(&mut self, tin: &mut Tin, queue: u32, now: Time, packet: P) {
        let (place, slot) = self.packets.put(now, packet);
        let sizes = (slot.packet.wire_len(), slot.truesize);
        self.append(tin, queue, place, sizes);
    }

    /// The same of one that was just stored and has so many bytes and so much memory.
    #[inline(always)]
    fn append(&mut self, tin: &mut Tin, queue: u32, place: Place, (bytes, truesize): (u32, u32)) {
        tin.backlogs[at(queue)] += bytes;
        tin.backlog += u64::from(bytes);
        tin.stats.packets += 1;
        tin.stats.bytes += u64::from(bytes);
        self.totals.add(bytes, truesize);
        self.packets.append(&mut tin.flows[at(queue)].fifo, place);
    }

    /// Takes the head packet of a flow out of all counts.
    fn pop(&mut self, tin: &mut Tin, queue: u32) -> Option<P> {
        self.remove(tin, queue, 0)
    }

    /// Takes the packet at `position` of a flow out of all counts.
    fn remove(&mut self, tin: &mut Tin, queue: u32, position: usize) -> Option<P> {
        let slot = self.packets.remove(&mut tin.flows[at(queue)].fifo, position)?;
        let bytes = slot.packet.wire_len();
        tin.backlogs[at(queue)] -= bytes;
        tin.backlog -= u64::from(bytes);
        self.totals.remove(bytes, slot.truesize);
        Some(slot.packet)
    }
}

impl<P: Reshape + Send> Qdisc<P> for Cake<P> {
    #[inline(always)]
    fn enqueue(&mut self, now: Time, packet: P, sink: &mut dyn Sink<P>) -> Enqueue<P> {
        let (place, slot) = self.store.packets.put(now, packet);
        let packet = &mut slot.packet;
        let index = usize::from(self.tin_of[usize::from(packet.dscp() % 64)]);
        let tin = &mut self.tins[index];
        let queue = tin.classify(&packet.flow_key(), self.config.isolation, self.hash);
        if self.config.wash {
            packet.wash();
        }
        if tin.backlog == 0 {
            let due = &mut tin.schedule.time_next_packet;
            *due = now.max(*due);
            if self.store.totals.backlog.packets == 0 {
                self.shaper.wake(now);
            }
        }
        let mut sizes = (packet.wire_len(), slot.truesize);
        if sizes.0 > tin.stats.max_len {
            tin.stats.max_len = sizes.0;
        }
        let is_split = self.config.split_gso && packet.segments() > 1;
        if is_split {
            sizes = push_all_but_last(place, tin, queue, &mut self.store, now);
        }
        self.store.append(tin, queue, place, sizes);
        tin.rouse(queue, self.config.isolation, &mut self.dither);
        self.busy_tins |= 1 << index;
        if self.config.ack_filter != AckFilter::Off && !is_split {
            self.filter_acks(index, queue, now, sink);
        }
        let totals = &mut self.store.totals;
        if totals.buffer_used > totals.buffer_max_used {
            totals.buffer_max_used = totals.buffer_used;
        }
        while self.store.totals.buffer_used > self.buffer_limit && self.drop_from_longest(now, sink)
        {
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
            None if wait == Span::ZERO => Dequeue::Empty,
            None => Dequeue::NotBefore(now + wait),
        }
    }

    fn backlog(&self) -> Backlog {
        self.store.totals.backlog
    }

    fn oldest(&self) -> Option<Time> {
        self.store.packets.oldest(self.tins.iter().flat_map(Tin::active_fifos))
    }

    fn details(&self) -> Vec<(&'static str, u64)> {
        details::lines(self)
    }
}
