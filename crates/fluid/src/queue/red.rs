//! RED (Floyd and Jacobson 1993), as the fluid of Misra, Gong and Towsley (SIGCOMM 2000, equations 4
//! and 9): an average that follows the queue packet by packet, and a probability that is linear in it.
//! Unlike theirs it signals packets and not a share of all: the distance between two of them is random, as
//! that of the packets is, and windows under random losses are larger than those of a regular saw-tooth.

use alloc::vec::Vec;

use sojourn_core::Stream as Random;
use sojourn_qdisc::red::Config;

use super::{Due, Fate, Member, Seen, Step, one_class, serve_fifo};

#[derive(Clone, Debug)]
pub(crate) struct Red {
    limit: f64,
    min: f64,
    max: f64,
    probability: f64,
    ecn: bool,
    packet: f64,
    /// Weight of an arrival in the average.
    weight: f64,
    average: f64,
    /// What came since the last signal, each packet with its probability.
    count: f64,
    /// The count at which the next packet is signalled (section 7, method 2).
    next: f64,
    random: Random,
}

impl Red {
    pub(super) fn new(config: &Config, packet: f64, mut random: Random) -> Self {
        Self {
            limit: config.limit.as_u64() as f64,
            min: config.min.as_u64() as f64,
            max: config.max.as_u64() as f64,
            probability: config.probability,
            ecn: config.ecn,
            packet,
            weight: config.weight(),
            average: 0.0,
            count: 0.0,
            next: random.unit(),
            random,
        }
    }

    pub(super) fn classes(&self, members: &[Member]) -> Vec<usize> {
        one_class(members)
    }

    pub(super) fn advance(&self, step: &Step<'_>, fate: &mut Fate) {
        if self.average >= self.max {
            for member in 0..step.members.len() {
                fate.signal(step, member, 1.0, self.ecn);
            }
        }
        serve_fifo(step, fate, self.limit);
    }

    pub(super) fn observe(&mut self, seen: &Seen<'_>, due: &mut Vec<Due>) {
        // While nothing waits, the average falls as if packets came at the link's rate.
        let backlog = seen.backlogs[0];
        let bytes = if backlog > 0.0 { seen.arrived } else { seen.capacity };
        let kept = libm::exp(libm::log1p(-self.weight) * bytes / self.packet);
        self.average = backlog + (self.average - backlog) * kept;
        if self.average < self.min || self.average >= self.max {
            self.count = 0.0;
            return;
        }
        let line = (self.average - self.min) / (self.max - self.min);
        self.count += self.probability * line * seen.arrived / self.packet;
        if self.count >= self.next {
            self.count = 0.0;
            self.next = self.random.unit();
            due.push(Due { class: 0, packets: 1, at_tail: true, may_mark: self.ecn });
        }
    }

    pub(super) fn timer(&self) -> f64 {
        f64::INFINITY
    }
}
