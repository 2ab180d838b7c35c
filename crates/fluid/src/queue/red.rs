//! RED (Floyd and Jacobson 1993), as the fluid of Misra, Gong and Towsley (SIGCOMM 2000, equations 4
//! and 9): an average that follows the queue packet by packet, and a probability that is linear in it.

use alloc::vec::Vec;

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
}

impl Red {
    pub(super) fn new(config: &Config, packet: f64) -> Self {
        Self {
            limit: config.limit.as_u64() as f64,
            min: config.min.as_u64() as f64,
            max: config.max.as_u64() as f64,
            probability: config.probability,
            ecn: config.ecn,
            packet,
            weight: config.weight(),
            average: 0.0,
        }
    }

    pub(super) fn classes(&self, members: &[Member]) -> Vec<usize> {
        one_class(members)
    }

    pub(super) fn advance(&self, step: &Step<'_>, fate: &mut Fate) {
        let probability = if self.average < self.min {
            0.0
        } else if self.average >= self.max {
            1.0
        } else {
            let p = self.probability * (self.average - self.min) / (self.max - self.min);
            // Signals are spread evenly over up to 1/p arrivals (section 7, method 2), so their mean
            // distance is half of that.
            2.0 * p / (1.0 + p)
        };
        for member in 0..step.members.len() {
            fate.signal(step, member, probability, self.ecn);
        }
        serve_fifo(step, fate, self.limit);
    }

    pub(super) fn observe(&mut self, seen: &Seen<'_>, _: &mut Vec<Due>) {
        // While nothing waits, the average falls as if packets came at the link's rate.
        let backlog = seen.backlogs[0];
        let bytes = if backlog > 0.0 { seen.arrived } else { seen.capacity };
        let kept = libm::exp(libm::log1p(-self.weight) * bytes / self.packet);
        self.average = backlog + (self.average - backlog) * kept;
    }

    pub(super) fn timer(&self) -> f64 {
        f64::INFINITY
    }
}
