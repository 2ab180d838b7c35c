//! FQ-CoDel (RFC 8290): a class for each flow, max–min service, CoDel in each.

use alloc::vec;
use alloc::vec::Vec;

use sojourn_qdisc::fq_codel::Config;

use super::codel::Law;
use super::{Due, Fate, Member, Seen, Step, fair};

#[derive(Clone, Debug)]
pub(crate) struct FqCodel {
    limit: f64,
    ecn: bool,
    laws: Vec<Law>,
    weights: Vec<f64>,
    packet: f64,
}

impl FqCodel {
    pub(super) fn new(config: &Config, members: &[Member], packet: f64) -> Self {
        let law = |member: &Member| Law::new(config.target, config.interval, member.packet);
        Self {
            limit: f64::from(config.limit) * packet,
            ecn: config.ecn,
            laws: members.iter().map(law).collect(),
            weights: vec![1.0; members.len()],
            packet,
        }
    }

    pub(super) fn classes(&self, members: &[Member]) -> Vec<usize> {
        (0..members.len()).collect()
    }

    pub(super) fn advance(&self, step: &Step<'_>, fate: &mut Fate) {
        serve(step, fate, &self.weights);
    }

    pub(super) fn observe(&mut self, seen: &Seen<'_>, due: &mut Vec<Due>) {
        // Linux' guard sees the backlog of all flows.
        let backlog = seen.backlogs.iter().sum();
        for (class, law) in self.laws.iter_mut().enumerate() {
            let own = seen.backlogs[class];
            let packets = law.observe(seen.now, seen.sojourns[class], own, backlog);
            due.push(Due { class, packets, at_tail: false, may_mark: self.ecn });
        }
        make_room(seen, due, self.limit, self.packet);
    }

    pub(super) fn timer(&self) -> f64 {
        self.laws.iter().map(Law::timer).fold(f64::INFINITY, f64::min)
    }
}

/// Serves a class for each member by `weights`.
pub(super) fn serve(step: &Step<'_>, fate: &mut Fate, weights: &[f64]) {
    for class in 0..weights.len() {
        let held = step.backlogs[class] + step.arrivals[class];
        fate.wanted[class] = (held - step.dropped[class]).max(0.0);
    }
    fair::divide(step.capacity, &fate.wanted, weights, &mut fate.departures);
    for class in 0..weights.len() {
        let held = step.backlogs[class] + step.arrivals[class];
        fate.departures[class] += held - fate.wanted[class];
    }
}

/// What does not fit into `limit` bytes goes from the head of the longest class.
pub(super) fn make_room(seen: &Seen<'_>, due: &mut Vec<Due>, limit: f64, packet: f64) {
    let excess = seen.backlogs.iter().sum::<f64>() - limit;
    if excess <= 0.0 {
        return;
    }
    let classes = 0..seen.backlogs.len();
    let longest = classes.max_by(|a, b| seen.backlogs[*a].total_cmp(&seen.backlogs[*b]));
    if let Some(class) = longest {
        let packets = libm::ceil(excess / packet) as u32;
        due.push(Due { class, packets, at_tail: false, may_mark: false });
    }
}
