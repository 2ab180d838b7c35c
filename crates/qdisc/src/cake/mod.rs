//! CAKE, common applications kept enhanced, as Linux has it (`sch_cake`; Høiland-Jørgensen, Täht
//! and Morton, "Piece of CAKE", LANMAN 2018).
//!
//! From the outside in: a shaper without bursts (`shaper`) that knows the link's framing
//! (`framing`); tins by code point, each with a threshold rate (`priority`, `tin`); in a tin
//! eight-way associative flow queues with fairness between hosts (`isolation`); on every queue
//! COBALT (`cobalt`); and a filter for acknowledgements (`ack_filter`).

mod ack_filter;
mod cobalt;
mod config;
mod details;
mod framing;
mod isolation;
mod priority;
mod shaper;
#[cfg(test)]
mod tests;
mod tin;

pub use ack_filter::AckFilter;
pub use config::{Config, PARAMS};
pub use framing::{Cells, Framing};
pub use isolation::Isolation;
pub use priority::Priority;

use sojourn_core::{DropReason, Queued, Span, Stream, Time};

use crate::hash::FlowHash;
use crate::slab::Slab;
use crate::{Backlog, DEVICE_MTU, Dequeue, Enqueue, Qdisc, Reshape, Sink};
use shaper::Shaper;
use tin::{Dither, Tin};

#[derive(Debug)]
pub struct Cake<P> {
    config: Config,
    shaper: Shaper,
    tins: Vec<Tin>,
    /// Tin being served.
    cur_tin: usize,
    store: Store<P>,
    buffer_limit: u64,
    hash: FlowHash,
    dither: Dither,
}

/// Largest buffer when none is configured, in full packets (`sch->limit`).
const LIMIT_PACKETS: u64 = 10_240;

/// Smallest buffer that a shaped CAKE gives itself.
const BUFFER_LEAST: u64 = 4 << 20;

impl<P: Queued + Copy> Cake<P> {
    pub fn new(config: &Config, mut random: Stream) -> Self {
        let tins = config.priority.tins(config);
        Self {
            shaper: Shaper::new(tins[0].pace, config),
            tins,
            cur_tin: 0,
            store: Store::new(),
            buffer_limit: buffer_limit(config),
            hash: FlowHash::new(&mut random),
            dither: Dither::new(random),
            config: config.clone(),
        }
    }

    /// The tin to serve: when shaped, the highest one that is within its own schedule, else the
    /// one that is due first; when not, by deficit round robin.
    #[inline]
    fn choose_tin(&mut self, now: Time) -> Option<usize> {
        if self.shaper.is_shaping() {
            self.cur_tin = self.due_tin(now)?;
        } else {
            self.cur_tin = self.next_tin_in_rotation()?;
        }
        Some(self.cur_tin)
    }

    fn due_tin(&self, now: Time) -> Option<usize> {
        let mut best = None;
        let mut best_time = Time::NEVER;
        for (index, tin) in self.tins.iter().enumerate() {
            let time = tin.time_next_packet;
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
        if self.config.is_ingress {
            self.shaper.charge(tin, &packet, now, true);
        }
        if tin.flows[flow as usize].cobalt.on_overflow(&tin.cobalt, now) {
            tin.unresponsive += 1;
        }
        tin.stats.drops += 1;
        tin.stats.drop_overlimit += 1;
        sink.dropped(now, packet, DropReason::Overflow);
        true
    }

    /// The acknowledgement that the newest packet of the flow makes superfluous goes.
    fn filter_acks(&mut self, tin: usize, flow: u32, now: Time, sink: &mut dyn Sink<P>) {
        let tin = &mut self.tins[tin];
        let fifo = tin.flows[flow as usize].fifo;
        let superseded = self.config.ack_filter.superseded(&self.store.packets, fifo);
        let Some(position) = superseded else { return };
        let packet = self.store.remove(tin, flow, position);
        tin.stats.ack_drops += 1;
        if self.config.is_ingress {
            self.shaper.charge(tin, &packet, now, true);
        }
        sink.dropped(now, packet, DropReason::AckFiltered);
    }

    /// Serves the chosen tin until a packet may go: that flow's head, and how long it waited.
    /// `None` when a queue turned out to be empty and the tins have to be looked at again.
    #[inline]
    fn serve(
        &mut self,
        index: usize,
        look_at_decaying: &mut bool,
        now: Time,
        sink: &mut dyn Sink<P>,
    ) -> Option<(u32, Span)> {
        let isolation = self.config.isolation;
        let is_ingress = self.config.is_ingress;
        let tin = &mut self.tins[index];
        'next_flow: loop {
            let look = std::mem::take(look_at_decaying);
            let flow = tin.next_flow(look, isolation, &mut self.dither)?;
            loop {
                let state = &mut tin.flows[flow as usize];
                let Some(head) = self.store.packets.head_mut(state.fifo) else {
                    tin.rest(flow, isolation, now);
                    return None;
                };
                let wait = now.since(head.slot.arrived);
                let packet = &mut head.slot.packet;
                let signal = state.cobalt.on_dequeue(
                    &tin.cobalt,
                    now,
                    wait,
                    if is_ingress { tin.bulk } else { 0 },
                    packet.ecn().is_capable(),
                    self.dither.random(),
                );
                if signal.mark {
                    packet.mark_ce();
                    sink.marked(now, packet);
                    tin.stats.marks += 1;
                }
                // The last packet of a queue may be marked, but is not dropped.
                let is_dropped = signal.drop && state.fifo.holds_several();
                if !is_dropped || is_ingress {
                    let len = self.shaper.charge(tin, packet, now, is_dropped);
                    tin.pay(flow, len);
                }
                if !is_dropped {
                    tin.stats.observe_delay(wait);
                    return Some((flow, wait));
                }
                tin.stats.drops += 1;
                let packet = self.store.pop(tin, flow).expect("the head was looked at");
                sink.dropped(now, packet, DropReason::Aqm);
                if is_ingress {
                    continue 'next_flow;
                }
            }
        }
    }
}

/// The packets of all flows and what they add up to.
#[derive(Debug)]
struct Store<P> {
    packets: Slab<P>,
    backlog: Backlog,
    /// Memory charged for what waits.
    buffer_used: u64,
    buffer_max_used: u64,
}

impl<P: Queued + Copy> Store<P> {
    fn new() -> Self {
        Self {
            packets: Slab::new(),
            backlog: Backlog::default(),
            buffer_used: 0,
            buffer_max_used: 0,
        }
    }

    /// Puts a packet at the end of its flow and into all counts.
    #[inline]
    fn push(&mut self, tin: &mut Tin, flow: u32, now: Time, packet: P) {
        let bytes = packet.wire_len();
        tin.backlogs[flow as usize] += bytes;
        tin.backlog += u64::from(bytes);
        tin.stats.packets += 1;
        tin.stats.bytes += u64::from(bytes);
        self.backlog.add(bytes);
        self.buffer_used += u64::from(packet.truesize());
        self.packets.push(&mut tin.flows[flow as usize].fifo, now, packet);
    }

    /// Takes the head packet of a flow out of all counts.
    #[inline]
    fn pop(&mut self, tin: &mut Tin, flow: u32) -> Option<P> {
        let fifo = &mut tin.flows[flow as usize].fifo;
        let slot = self.packets.pop(fifo)?;
        self.uncount(tin, flow, slot.packet.wire_len(), slot.truesize);
        Some(slot.packet)
    }

    /// Takes the packet at `position` of a flow, which must be there, out of all counts.
    fn remove(&mut self, tin: &mut Tin, flow: u32, position: usize) -> P {
        let removed = self.packets.remove(&mut tin.flows[flow as usize].fifo, position);
        let slot = removed.expect("the position is inside the queue");
        self.uncount(tin, flow, slot.packet.wire_len(), slot.truesize);
        slot.packet
    }

    #[inline]
    fn uncount(&mut self, tin: &mut Tin, flow: u32, bytes: u32, truesize: u32) {
        tin.backlogs[flow as usize] -= bytes;
        tin.backlog -= u64::from(bytes);
        self.backlog.remove(bytes);
        self.buffer_used -= u64::from(truesize);
    }
}

/// Four times the bandwidth-delay product, at least 4 MiB and at most 10240 full packets; what the
/// user says is not limited.
fn buffer_limit(config: &Config) -> u64 {
    let most = LIMIT_PACKETS * u64::from(DEVICE_MTU);
    if let Some(limit) = config.memlimit {
        return limit.as_u64();
    }
    if config.bandwidth.is_unlimited() {
        return most;
    }
    let quadruple =
        4 * u128::from(config.bandwidth.as_bytes_per_sec()) * u128::from(config.rtt.as_micros())
            / 1_000_000;
    u64::try_from(quadruple).unwrap_or(u64::MAX).clamp(BUFFER_LEAST, most)
}

impl<P: Reshape + Send> Qdisc<P> for Cake<P> {
    #[inline(never)]
    fn enqueue(&mut self, now: Time, mut packet: P, sink: &mut dyn Sink<P>) -> Enqueue<P> {
        let index = self.config.priority.tin_of(packet.dscp());
        let tin = &mut self.tins[index];
        let flow = tin.classify(&packet.flow_key(), self.config.isolation, self.hash);
        if self.config.wash {
            packet.wash();
        }
        if tin.backlog == 0 {
            tin.time_next_packet = tin.time_next_packet.max(now);
            if self.store.backlog.packets == 0 {
                self.shaper.wake(now);
            }
        }
        tin.stats.max_len = tin.stats.max_len.max(packet.wire_len());
        let is_split = self.config.split_gso && packet.segments() > 1;
        if is_split {
            while let Some(first) = packet.split_first() {
                self.store.push(tin, flow, now, first);
            }
        }
        self.store.push(tin, flow, now, packet);
        tin.rouse(flow, self.config.isolation, &mut self.dither);
        if self.config.ack_filter != AckFilter::Off && !is_split {
            self.filter_acks(index, flow, now, sink);
        }
        self.store.buffer_max_used = self.store.buffer_max_used.max(self.store.buffer_used);
        while self.store.buffer_used > self.buffer_limit && self.drop_from_longest(now, sink) {}
        Enqueue::Queued
    }

    #[inline(never)]
    fn dequeue(&mut self, now: Time, sink: &mut dyn Sink<P>) -> Dequeue<P> {
        let mut look_at_decaying = true;
        loop {
            if self.store.backlog.packets == 0 {
                return Dequeue::Empty;
            }
            if let Some(time) = self.shaper.held_until(now) {
                return Dequeue::NotBefore(time);
            }
            let Some(tin) = self.choose_tin(now) else { return Dequeue::Empty };
            if let Some((flow, wait)) = self.serve(tin, &mut look_at_decaying, now, sink)
                && let Some(packet) = self.store.pop(&mut self.tins[tin], flow)
            {
                return Dequeue::Packet(packet, wait);
            }
        }
    }

    fn backlog(&self) -> Backlog {
        self.store.backlog
    }

    fn oldest(&self) -> Option<Time> {
        let fifos = self.tins.iter().flat_map(Tin::active_fifos);
        fifos.filter_map(|fifo| self.store.packets.head(fifo)).map(|head| head.arrived).min()
    }

    fn details(&self) -> Vec<(&'static str, u64)> {
        details::lines(self)
    }
}
