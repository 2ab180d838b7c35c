//! FQ-CoDel (RFC 8290): a class for each flow, max–min service, CoDel in each.

use alloc::format;
use alloc::vec;
use alloc::vec::Vec;

use sojourn_core::{Params, SpecError};
use sojourn_qdisc::codel::Mode;
use sojourn_qdisc::fq_codel::Config;

use super::codel::Law;
use super::room::{Room, make_room};
use super::{Due, Fate, Member, Seen, Step, fair, refusal};

#[derive(Clone, Debug)]
pub(crate) struct FqCodel {
    rooms: [Room; 2],
    ecn: bool,
    /// A queue of a packet is let alone only if nothing waits in the others, either.
    guards_all: bool,
    laws: Vec<Law>,
    weights: Vec<f64>,
}

/// # Errors
/// What a fluid lacks: it has a queue for each flow, which take turns by bytes.
pub(super) fn check(config: &Config) -> Result<(), SpecError> {
    let Config { flows, quantum, drop_batch, .. } = Config::default();
    if config.ce_threshold.is_some() {
        return Err(refusal(Config::NAME, "'ce_threshold'"));
    }
    if config.flows < flows {
        let what = "flows that share a queue, as few 'flows' make them";
        return Err(refusal(Config::NAME, what).allow([format!("'flows {flows}' or more")]));
    }
    if config.quantum != quantum {
        return Err(refusal(Config::NAME, "'quantum'").allow([format!("'quantum {quantum}'")]));
    }
    if config.drop_batch != drop_batch {
        return Err(
            refusal(Config::NAME, "'drop_batch'").allow([format!("'drop_batch {drop_batch}'")])
        );
    }
    Ok(())
}

impl FqCodel {
    pub(super) fn new(config: &Config, members: &[Member]) -> Self {
        let law = |member: &Member| Law::new(config.target, config.interval, member.packet);
        Self {
            rooms: [
                Room::for_packets(config.limit, members),
                Room::for_memory(config.memory_limit.as_u64() as f64, members),
            ],
            ecn: config.ecn,
            guards_all: config.mode == Mode::Linux,
            laws: members.iter().map(law).collect(),
            weights: vec![1.0; members.len()],
        }
    }

    pub(super) fn classes(&self, members: &[Member]) -> Vec<usize> {
        (0..members.len()).collect()
    }

    pub(super) fn advance(&self, step: &Step<'_>, fate: &mut Fate) {
        serve(step, fate, &self.weights, |_| 0.0);
        make_room(&self.rooms, step, fate);
    }

    pub(super) fn observe(&mut self, seen: &Seen<'_>, due: &mut Vec<Due>) {
        let all = seen.backlogs.iter().sum();
        for (class, law) in self.laws.iter_mut().enumerate() {
            if seen.stands_still(class) {
                continue;
            }
            let own = seen.backlogs[class];
            let backlog = if self.guards_all { all } else { own };
            let packets = law.observe(seen.now, seen.sojourns[class], own, backlog);
            due.push(Due { class, packets, at_tail: false, may_mark: self.ecn });
        }
    }

    pub(super) fn timer(&self) -> f64 {
        self.laws.iter().map(Law::timer).fold(f64::INFINITY, f64::min)
    }
}

/// Serves a class for each member by `weights`. Of what leaves a class, `blind` is the share that is dropped, but for its
/// last packet.
pub(super) fn serve(
    step: &Step<'_>,
    fate: &mut Fate,
    weights: &[f64],
    blind: impl Fn(usize) -> f64,
) {
    let rate = step.capacity / step.length;
    let classes = 0..weights.len();
    let mut behind = 0.0;
    for class in classes.clone().rev() {
        fate.wanted[class] = behind;
        behind += busy(step, class);
    }
    let mut before = 0.0;
    for class in classes.clone() {
        let others = before + fate.wanted[class];
        before += busy(step, class);
        let held = (step.backlogs[class] - step.dropped[class]).max(0.0);
        let arrived = step.arrivals[class];
        let wait = wait_of_packets(&step.members[class], others, rate);
        // The wait is a lag: held' = a − held/wait, with the step's mean rate a.
        let (rest, left) = match wait > 0.0 {
            true => (arrived / step.length * wait, libm::exp(-step.length / wait)),
            false => (0.0, 0.0),
        };
        fate.wanted[class] = (held + arrived - rest - (held - rest) * left).max(0.0);
    }
    match classes.clone().any(|class| blind(class) > 0.0) {
        true => drop_blindly(step.capacity, fate, weights, blind),
        false => fair::divide(step.capacity, &fate.wanted, weights, &mut fate.departures),
    }
    for class in classes {
        fate.departures[class] += step.dropped[class].min(step.backlogs[class]);
    }
}

fn drop_blindly(capacity: f64, fate: &mut Fate, weights: &[f64], blind: impl Fn(usize) -> f64) {
    let classes = 0..weights.len();
    let passed = |class: usize| fate.wanted[class] * (1.0 - blind(class));
    let passed: Vec<f64> = classes.clone().map(passed).collect();
    fair::divide(capacity, &passed, weights, &mut fate.departures);
    // A link that has a packet to send is not idle.
    let idle = (capacity - fate.departures.iter().sum::<f64>()).max(0.0);
    let rest = |class: usize| fate.wanted[class] - fate.departures[class];
    let rest: Vec<f64> = classes.clone().map(rest).collect();
    let mut more = vec![0.0; weights.len()];
    fair::divide(idle, &rest, weights, &mut more);
    for class in classes {
        let sent = fate.departures[class] + more[class];
        let leaves =
            (fate.departures[class] / (1.0 - blind(class))).max(sent).min(fate.wanted[class]);
        fate.beyond[class] = leaves - sent;
        fate.departures[class] = leaves;
    }
}

/// The probability that a packet of the class waits or is being sent.
fn busy(step: &Step<'_>, class: usize) -> f64 {
    let waits = step.backlogs[class] / step.members[class].packet;
    waits.max(step.arrivals[class] / step.capacity).min(1.0)
}

/// How long a packet of a class waits on average though the class sends all that comes, with so many `others` [`busy`].
/// A packet waits for those that came at once with it and go before it, for what of others is being sent, and for one of
/// each other class that waits before each that goes before it.
fn wait_of_packets(member: &Member, others: f64, rate: f64) -> f64 {
    if rate <= 0.0 {
        return 0.0;
    }
    let before = (member.burst - 1.0) / 2.0;
    (before * (1.0 + others) + others.min(1.0) / 2.0) * member.packet / rate
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACKET: f64 = 1500.0;
    /// Bytes a second: a packet takes a millisecond.
    const RATE: f64 = 1.5e6;

    fn member(burst: f64) -> Member {
        Member {
            packet: PACKET,
            round: 0.05,
            burst,
            memory: 2416.0,
            is_capable: false,
            is_l4s: false,
            dscp: 0,
            source: 0,
            destination: 1,
        }
    }

    /// Waits of the first of `classes` in packets' times; of each other five packets wait.
    fn wait(burst: f64, classes: usize) -> f64 {
        let members = vec![member(burst); classes];
        let mut backlogs = vec![5.0 * PACKET; classes];
        backlogs[0] = 0.0;
        let none = vec![0.0; classes];
        let step = Step {
            length: 0.01,
            capacity: RATE * 0.01,
            arrivals: &none,
            members: &members,
            backlogs: &backlogs,
            dropped: &none,
        };
        let others = (1..classes).map(|class| busy(&step, class)).sum();
        wait_of_packets(&members[0], others, RATE) * RATE / PACKET
    }

    #[test]
    fn a_packet_waits_for_what_came_with_it_and_for_a_packet_of_each_other_class() {
        let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-9, "{a} for {b}");
        close(wait(1.0, 1), 0.0);
        // Of two packets that come at once, the second one waits for the first.
        close(wait(2.0, 1), 0.5);
        // The first waits for half a packet, the second for that, the first and one of the other class.
        close(wait(2.0, 2), (0.5 + 2.5) / 2.0);
        close(wait(2.0, 3), (0.5 + 3.5) / 2.0);
    }

    #[test]
    fn pairs_of_two_flows_wait_at_a_link_that_is_not_full() {
        let members = [member(2.0), member(2.0)];
        let mut backlogs = [0.0; 2];
        let load = 0.8;
        for _ in 0..1000 {
            let arrivals = [load / 2.0 * RATE * 1e-3; 2];
            let step = Step {
                length: 1e-3,
                capacity: RATE * 1e-3,
                arrivals: &arrivals,
                members: &members,
                backlogs: &backlogs,
                dropped: &[0.0; 2],
            };
            let mut fate = Fate::default();
            fate.clear(2, 2);
            serve(&step, &mut fate, &[1.0; 2], |_| 0.0);
            for class in 0..2 {
                backlogs[class] += arrivals[class] - fate.departures[class];
            }
        }
        // Pairs at even distances and in any phase to each other: ρ/2 packets wait for the other one of their
        // pair, ρ²/2 for the other flow's pairs.
        let packets = backlogs.iter().sum::<f64>() / PACKET;
        assert!((packets / (load / 2.0 + load * load / 2.0) - 1.0).abs() < 0.15, "{packets}");
    }
}
