//! DualPI2, the coupled dual-queue AQM for L4S (RFC 9332), as Linux has it (`sch_dualpi2`).
//!
//! Arrivals that carry L4S's identifier (RFC 9331) wait in the L queue, all others in the C queue.
//! One controller (`controller.rs`) controls the delay of both: its probability squared drops or
//! marks in C, and `coupling_factor` times the probability marks in L, where a step at a shallow
//! threshold marks as well. `schedule.rs` decides which queue is served. The controller has no
//! timer: updates that were due since the last call are computed at the next one.

mod config;
mod controller;
mod schedule;
#[cfg(test)]
mod tests;

pub use config::{Config, DropAt, Gain, L4sEct, Overload, StepThreshold, Written};

use alloc::vec;
use alloc::vec::Vec;

use sojourn_core::{DropReason, Ecn, Queued, Stream, Time};

use crate::ring::Ring;
use crate::{Backlog, DEVICE_MTU, Dequeue, Enqueue, Qdisc, Reshape, Sink};
use controller::{Controller, Verdict};
use schedule::{Queue, Schedule};

#[derive(Debug)]
pub struct DualPi2<P> {
    config: Config,
    controller: Controller,
    schedule: Schedule,
    c_queue: Ring<P>,
    l_queue: Ring<P, LNote>,
    memory_used: u64,
    random: Stream,
    stats: Stats,
}

/// What is stored with a packet in the L queue.
#[derive(Clone, Copy, Debug)]
struct LNote {
    arrived: Time,
    /// The step may mark it.
    apply_step: bool,
}

#[derive(Debug, Default)]
struct Stats {
    packets_in_c: u64,
    packets_in_l: u64,
    maxq: u32,
    ecn_mark: u64,
    step_mark: u64,
    max_memory_used: u64,
}

impl<P: Queued> DualPi2<P> {
    pub fn new(config: &Config, random: Stream) -> Self {
        Self {
            controller: Controller::new(config),
            schedule: Schedule::new(config.classic_protection_percent),
            c_queue: Ring::new(),
            l_queue: Ring::new(),
            memory_used: 0,
            random,
            stats: Stats::default(),
            config: config.clone(),
        }
    }

    /// RFC 9331 section 5.1: ECT(1) and CE are L4S.
    #[inline]
    fn classify(&self, packet: &P) -> Queue {
        let is_l4s = match packet.ecn() {
            Ecn::NotEct => false,
            Ecn::Ect0 => self.config.l4s_ect == L4sEct::Any,
            Ecn::Ect1 | Ecn::Ce => true,
        };
        if is_l4s { Queue::L } else { Queue::C }
    }

    #[inline]
    fn catch_up(&mut self, now: Time) {
        if self.controller.is_due(now) {
            let c_head = self.c_queue.head().map(|(_, arrived)| arrived);
            let l_head = self.l_queue.head().map(|(_, note)| note.arrived);
            self.controller.update_until(now, c_head, l_head);
        }
    }

    fn offer(&mut self, now: Time, mut packet: P, sink: &mut dyn Sink<P>) -> Enqueue<P> {
        let queue = self.classify(&packet);
        let backlog = self.both();
        let memory = self.memory_used + u64::from(packet.truesize());
        if backlog.packets >= self.config.limit || memory > self.config.memory_limit() {
            return Enqueue::Dropped(packet, DropReason::Full);
        }
        if self.config.drop_at == DropAt::Enqueue {
            match self.judge(queue, packet.ecn(), backlog) {
                Verdict::Pass => {}
                Verdict::Mark => self.mark(now, &mut packet, sink),
                Verdict::Drop => return Enqueue::Dropped(packet, DropReason::Aqm),
            }
        }
        self.memory_used = memory;
        self.stats.max_memory_used = self.stats.max_memory_used.max(memory);
        self.stats.maxq = self.stats.maxq.max(backlog.packets);
        match queue {
            Queue::C => {
                self.stats.packets_in_c += 1;
                self.c_queue.push(now, packet);
            }
            Queue::L => {
                self.stats.packets_in_l += 1;
                let waiting = self.l_queue.backlog().packets;
                let apply_step = waiting >= self.config.min_qlen_step;
                self.l_queue.push(LNote { arrived: now, apply_step }, packet);
            }
        }
        Enqueue::Queued
    }

    /// Queues a segment of a packet, which counts as a packet of its own.
    fn offer_segment(&mut self, now: Time, segment: P, sink: &mut dyn Sink<P>) {
        if let Enqueue::Dropped(segment, why) = self.offer(now, segment, sink) {
            sink.dropped(now, segment, why);
        }
    }

    /// The controller's verdict on a packet when `backlog` wait besides it. Below two full packets
    /// the controller does nothing.
    #[inline]
    fn judge(&mut self, queue: Queue, ecn: Ecn, backlog: Backlog) -> Verdict {
        if backlog.bytes < 2 * u64::from(DEVICE_MTU) {
            return Verdict::Pass;
        }
        match queue {
            Queue::C => self.controller.judge_classic(ecn, &mut self.random),
            Queue::L => self.controller.judge_l4s(ecn, &mut self.random),
        }
    }

    /// The backlog of both queues together.
    fn both(&self) -> Backlog {
        let (c, l) = (self.c_queue.backlog(), self.l_queue.backlog());
        Backlog { packets: c.packets + l.packets, bytes: c.bytes + l.bytes }
    }

    fn mark(&mut self, now: Time, packet: &mut P, sink: &mut dyn Sink<P>) {
        packet.mark_ce();
        sink.marked(now, packet);
        self.stats.ecn_mark += 1;
    }

    /// Whether a packet that was just taken from the L queue waited too long and must be marked.
    #[inline]
    fn is_over_step(&self, note: LNote, now: Time) -> bool {
        note.apply_step
            && match self.config.step_threshold {
                StepThreshold::Time(most) => now.since(note.arrived) > most,
                StepThreshold::Packets(most) => self.l_queue.backlog().packets > most,
            }
    }
}

impl<P: Reshape + Send> Qdisc<P> for DualPi2<P> {
    #[inline(never)]
    fn enqueue(&mut self, now: Time, mut packet: P, sink: &mut dyn Sink<P>) -> Enqueue<P> {
        self.catch_up(now);
        if !self.config.split_gso || packet.segments() < 2 {
            return self.offer(now, packet, sink);
        }
        while let Some(segment) = packet.split_first() {
            self.offer_segment(now, segment, sink);
        }
        self.offer_segment(now, packet, sink);
        Enqueue::Queued
    }

    #[inline(never)]
    fn dequeue(&mut self, now: Time, sink: &mut dyn Sink<P>) -> Dequeue<P> {
        self.catch_up(now);
        loop {
            let c_waits = self.c_queue.backlog().packets > 0;
            let l_waits = self.l_queue.backlog().packets > 0;
            let Some(queue) = self.schedule.choose(c_waits, l_waits) else {
                return Dequeue::Empty;
            };
            let popped = match queue {
                Queue::C => self
                    .c_queue
                    .pop()
                    .map(|(arrived, packet)| (LNote { arrived, apply_step: false }, packet)),
                Queue::L => self.l_queue.pop(),
            };
            let (note, mut packet) = popped.expect("the chosen queue holds a packet");
            self.memory_used -= u64::from(packet.truesize());
            let verdict = match self.config.drop_at {
                DropAt::Dequeue => self.judge(queue, packet.ecn(), self.both()),
                DropAt::Enqueue => Verdict::Pass,
            };
            match verdict {
                Verdict::Pass => {}
                Verdict::Mark => self.mark(now, &mut packet, sink),
                Verdict::Drop => {
                    sink.dropped(now, packet, DropReason::Aqm);
                    continue;
                }
            }
            if self.is_over_step(note, now) {
                if packet.ecn() == Ecn::NotEct {
                    sink.dropped(now, packet, DropReason::Aqm);
                    continue;
                }
                // A packet that the controller has marked is not marked again.
                if verdict != Verdict::Mark {
                    self.mark(now, &mut packet, sink);
                }
                self.stats.step_mark += 1;
            }
            let both_wait = c_waits && l_waits;
            self.schedule.charge(queue, both_wait, packet.wire_len());
            return Dequeue::Packet(packet, now.since(note.arrived));
        }
    }

    fn backlog(&self) -> Backlog {
        self.both()
    }

    fn oldest(&self) -> Option<Time> {
        let c = self.c_queue.oldest();
        let l = self.l_queue.head().map(|(_, note)| note.arrived);
        c.into_iter().chain(l).min()
    }

    fn details(&self) -> Vec<(&'static str, u64)> {
        vec![
            ("prob_ppm", self.controller.prob_ppm()),
            ("pkts_in_c", self.stats.packets_in_c),
            ("pkts_in_l", self.stats.packets_in_l),
            ("maxq", u64::from(self.stats.maxq)),
            ("ecn_mark", self.stats.ecn_mark),
            ("step_mark", self.stats.step_mark),
            ("memory_used", self.memory_used),
            ("max_memory_used", self.stats.max_memory_used),
            ("memory_limit", self.config.memory_limit()),
        ]
    }
}
