//! RED, random early detection (Floyd and Jacobson, IEEE/ACM Transactions on Networking 1(4),
//! 1993), as Linux has it (`sch_red`), with `tc`'s derivation of its parameters.
//!
//! The average of the queue is in `average.rs`, the choice of packets in `law.rs`.

mod average;
mod config;
mod law;
#[cfg(test)]
mod tests;

pub use config::{Config, Written};

use alloc::vec;
use alloc::vec::Vec;

use sojourn_core::{DropReason, Queued, Stream, Time};

use crate::ring::Ring;
use crate::{Backlog, Dequeue, Enqueue, Qdisc, Sink, mark_if_capable};
use average::Average;
use law::{Action, Law};

#[derive(Debug)]
pub struct Red<P> {
    config: Config,
    average: Average,
    law: Law,
    ring: Ring<P>,
    random: Stream,
    stats: Stats,
}

#[derive(Debug, Default)]
struct Stats {
    prob_drop: u64,
    forced_drop: u64,
    prob_mark: u64,
    forced_mark: u64,
    pdrop: u64,
}

impl<P: Queued> Red<P> {
    pub fn new(config: &Config, random: Stream) -> Self {
        Self {
            average: Average::new(config),
            law: Law::new(config),
            ring: Ring::new(),
            random,
            stats: Stats::default(),
            config: config.clone(),
        }
    }

    /// Whether RED refuses the packet; it may mark it instead.
    fn refuses(&mut self, now: Time, packet: &mut P, sink: &mut dyn Sink<P>) -> bool {
        let Self { config, stats, .. } = self;
        let (may_mark, marks, drops) = match self.law.action(&self.average, &mut self.random) {
            Action::Pass => return false,
            Action::Signal => (config.ecn, &mut stats.prob_mark, &mut stats.prob_drop),
            Action::Force => {
                let may_mark = config.ecn && !config.harddrop;
                (may_mark, &mut stats.forced_mark, &mut stats.forced_drop)
            }
        };
        if may_mark && mark_if_capable(now, packet, sink) {
            *marks += 1;
            return false;
        }
        // With `nodrop` a packet that can't be marked passes.
        if may_mark && config.nodrop {
            return false;
        }
        *drops += 1;
        true
    }
}

impl<P: Queued + Send> Qdisc<P> for Red<P> {
    #[inline(never)]
    fn enqueue(&mut self, now: Time, mut packet: P, sink: &mut dyn Sink<P>) -> Enqueue<P> {
        self.law.adapt(&self.average, now);
        self.average.observe(now, self.ring.backlog().bytes);
        if self.refuses(now, &mut packet, sink) {
            return Enqueue::Dropped(packet, DropReason::Aqm);
        }
        let bytes = u64::from(packet.wire_len());
        if self.ring.backlog().bytes + bytes > self.config.limit.as_u64() {
            self.stats.pdrop += 1;
            return Enqueue::Dropped(packet, DropReason::Full);
        }
        self.ring.push(now, packet);
        Enqueue::Queued
    }

    #[inline(never)]
    fn dequeue(&mut self, now: Time, _: &mut dyn Sink<P>) -> Dequeue<P> {
        self.law.adapt(&self.average, now);
        let Some((arrived, packet)) = self.ring.pop() else {
            self.average.rest(now);
            return Dequeue::Empty;
        };
        // The kernel's caller asks once more and finds the queue empty; the caller here may not
        // ask.
        if self.ring.backlog().packets == 0 {
            self.average.rest(now);
        }
        Dequeue::Packet(packet, now.since(arrived))
    }

    fn backlog(&self) -> Backlog {
        self.ring.backlog()
    }

    fn oldest(&self) -> Option<Time> {
        self.ring.oldest()
    }

    fn details(&self) -> Vec<(&'static str, u64)> {
        vec![
            ("average", self.average.bytes()),
            ("marked", self.stats.prob_mark + self.stats.forced_mark),
            ("early", self.stats.prob_drop + self.stats.forced_drop),
            ("pdrop", self.stats.pdrop),
            ("prob_ppm", self.law.max_p_ppm()),
        ]
    }
}
