//! FQ, fair queue, as Linux has it (`sch_fq`): a queue for each flow, deficit round robin with new
//! flows first, a limit on each flow's packets and, with `maxrate`, pacing of each flow.
//!
//! Packets come from the network here, not from a socket, so no socket's pacing rate or departure
//! time is known. As for such packets in the kernel, a flow is a hash cut to `orphan_mask`.

mod config;
#[cfg(test)]
mod tests;

pub use config::Config;

use alloc::collections::{BinaryHeap, VecDeque};
use alloc::vec;
use alloc::vec::Vec;
use core::cmp::Reverse;

use sojourn_core::{DropReason, Queued, Rate, Span, Stream, Time};

use crate::hash::FlowHash;
use crate::slab::{Fifo, Slab};
use crate::{Backlog, Dequeue, Enqueue, Qdisc, Sink, mark_if_capable};

#[derive(Debug)]
pub struct Fq<P> {
    config: Config,
    hash: FlowHash,
    /// The first flow of each bucket; the others are linked from it.
    buckets: Vec<Option<u32>>,
    flows: Vec<Flow>,
    packets: Slab<P>,
    backlog: Backlog,
    /// Flows that have not yet used up their first credit, served first.
    new_flows: VecDeque<u32>,
    old_flows: VecDeque<u32>,
    /// Flows that wait for their next packet's time, the earliest first.
    throttled: BinaryHeap<Reverse<(Time, u32)>>,
    stats: Stats,
}

#[derive(Debug)]
struct Flow {
    hash: u32,
    next_in_bucket: Option<u32>,
    fifo: Fifo,
    qlen: u32,
    credit: i64,
    /// When the pace lets the next packet go; never set while not paced.
    time_next_packet: Option<Time>,
    place: Place,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// In no list, since this time.
    Detached(Time),
    /// In a rotation, or throttled.
    Attached,
}

#[derive(Debug, Default)]
struct Stats {
    flows_plimit: u64,
    limit_drops: u64,
    throttled: u64,
    ce_mark: u64,
    pkts_too_long: u64,
}

/// No flow waits longer.
const DELAY_MOST: Span = Span::from_secs(1);

impl<P: Queued + Copy> Fq<P> {
    pub fn new(config: &Config, mut random: Stream) -> Self {
        Self {
            hash: FlowHash::new(&mut random),
            buckets: vec![None; 1 << config.buckets.ilog2()],
            flows: Vec::new(),
            packets: Slab::new(),
            backlog: Backlog::default(),
            new_flows: VecDeque::new(),
            old_flows: VecDeque::new(),
            throttled: BinaryHeap::new(),
            stats: Stats::default(),
            config: config.clone(),
        }
    }

    /// The packet's flow, created with the initial credit if it was never seen.
    #[inline]
    fn classify(&mut self, now: Time, packet: &P) -> u32 {
        let hash = self.hash.flow(&packet.flow_key()) & self.config.orphan_mask;
        let bucket = hash as usize & (self.buckets.len() - 1);
        let mut next = self.buckets[bucket];
        while let Some(index) = next {
            let flow = &self.flows[index as usize];
            if flow.hash == hash {
                return index;
            }
            next = flow.next_in_bucket;
        }
        let index = self.flows.len() as u32;
        self.flows.push(Flow {
            hash,
            next_in_bucket: self.buckets[bucket].replace(index),
            fifo: Fifo::EMPTY,
            qlen: 0,
            credit: self.config.initial_quantum.as_u64() as i64,
            time_next_packet: None,
            place: Place::Detached(now),
        });
        index
    }

    /// Moves flows whose time has come to the end of the rotation.
    #[inline]
    fn release_throttled(&mut self, now: Time) {
        while let Some(Reverse((time, index))) = self.throttled.peek().copied()
            && time <= now
        {
            self.throttled.pop();
            self.old_flows.push_back(index);
        }
    }

    /// Sets when the flow may send again, after a packet of `bytes`. A pace above
    /// `low_rate_threshold` is kept by whole credits, a slower one packet by packet.
    #[inline]
    fn pace(&mut self, index: u32, bytes: u32, now: Time) {
        let rate = self.config.maxrate.unwrap_or(Rate::UNLIMITED);
        let flow = &mut self.flows[index as usize];
        let mut bytes = bytes;
        if rate <= self.config.low_rate_threshold {
            flow.credit = 0;
        } else {
            bytes = bytes.max(self.config.quantum.as_u64() as u32);
            if flow.credit > 0 {
                return;
            }
        }
        if rate.is_unlimited() {
            return;
        }
        let mut delay = rate.time_for(u64::from(bytes));
        if delay > DELAY_MOST {
            delay = DELAY_MOST;
            self.stats.pkts_too_long += 1;
        }
        // A late packet shortens the next wait by its delay, by up to half.
        if let Some(due) = flow.time_next_packet {
            delay = delay - now.since(due).min(delay / 2);
        }
        flow.time_next_packet = Some(now + delay);
    }
}

impl<P: Queued + Copy + Send> Qdisc<P> for Fq<P> {
    #[inline(never)]
    fn enqueue(&mut self, now: Time, packet: P, _: &mut dyn Sink<P>) -> Enqueue<P> {
        if self.backlog.packets >= self.config.limit {
            self.stats.limit_drops += 1;
            return Enqueue::Dropped(packet, DropReason::Full);
        }
        let index = self.classify(now, &packet);
        let flow = &mut self.flows[index as usize];
        if flow.qlen >= self.config.flow_limit {
            self.stats.flows_plimit += 1;
            return Enqueue::Dropped(packet, DropReason::Full);
        }
        if let Place::Detached(since) = flow.place {
            if now.since(since) > self.config.refill_delay {
                flow.credit = flow.credit.max(self.config.quantum.as_u64() as i64);
            }
            flow.place = Place::Attached;
            self.new_flows.push_back(index);
        }
        flow.qlen += 1;
        self.backlog.add(packet.wire_len());
        self.packets.push(&mut flow.fifo, now, packet);
        Enqueue::Queued
    }

    #[inline(never)]
    fn dequeue(&mut self, now: Time, sink: &mut dyn Sink<P>) -> Dequeue<P> {
        if self.backlog.packets == 0 {
            return Dequeue::Empty;
        }
        self.release_throttled(now);
        loop {
            let is_new = !self.new_flows.is_empty();
            let turns = if is_new { &mut self.new_flows } else { &mut self.old_flows };
            let Some(index) = turns.front().copied() else {
                return match self.throttled.peek() {
                    Some(Reverse((time, _))) => Dequeue::NotBefore(*time),
                    None => Dequeue::Empty,
                };
            };
            let flow = &mut self.flows[index as usize];
            if flow.credit <= 0 {
                flow.credit += self.config.quantum.as_u64() as i64;
                turns.pop_front();
                self.old_flows.push_back(index);
                continue;
            }
            let Some(head) = self.packets.head_mut(flow.fifo) else {
                turns.pop_front();
                // An emptied new flow passes through the old flows, so that it can't starve them by
                // returning as new.
                if is_new && !self.old_flows.is_empty() {
                    self.old_flows.push_back(index);
                } else {
                    flow.place = Place::Detached(now);
                }
                continue;
            };
            if let Some(time) = flow.time_next_packet
                && time > now
            {
                turns.pop_front();
                self.throttled.push(Reverse((time, index)));
                self.stats.throttled += 1;
                continue;
            }
            let wait = now.since(head.slot.arrived);
            let packet = &mut head.slot.packet;
            let is_late = self.config.ce_threshold.is_some_and(|threshold| wait > threshold);
            if is_late && mark_if_capable(now, packet, sink) {
                self.stats.ce_mark += 1;
            }
            let packet = *packet;
            head.take(&mut flow.fifo);
            let bytes = packet.wire_len();
            flow.qlen -= 1;
            flow.credit -= i64::from(bytes);
            self.backlog.remove(bytes);
            if self.config.pacing {
                self.pace(index, bytes, now);
            }
            return Dequeue::Packet(packet, wait);
        }
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }

    fn oldest(&self) -> Option<Time> {
        self.packets.oldest(self.flows.iter().map(|flow| flow.fifo))
    }

    fn details(&self) -> Vec<(&'static str, u64)> {
        let inactive = self.flows.iter().filter(|flow| flow.qlen == 0).count();
        vec![
            ("flows", self.flows.len() as u64),
            ("inactive_flows", inactive as u64),
            ("throttled_flows", self.throttled.len() as u64),
            ("throttled", self.stats.throttled),
            ("ce_mark", self.stats.ce_mark),
            ("flows_plimit", self.stats.flows_plimit),
            ("limit_drops", self.stats.limit_drops),
            ("pkts_too_long", self.stats.pkts_too_long),
        ]
    }
}
