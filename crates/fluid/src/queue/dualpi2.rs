//! DualPI2 (RFC 9332): two queues, one controller. Its p' marks L with k·p' and signals C with p'².

use alloc::vec::Vec;

use sojourn_core::{Params, SpecError};
use sojourn_qdisc::dualpi2::{Config, DropAt, L4sEct, Overload, StepThreshold, Written};

use super::{Due, Fate, Member, Seen, Step, refusal};

const C: usize = 0;
const L: usize = 1;

#[derive(Clone, Debug)]
pub(crate) struct DualPi2 {
    limit: f64,
    target: f64,
    tupdate: f64,
    alpha: f64,
    beta: f64,
    coupling: f64,
    step_threshold: f64,
    step_bytes: f64,
    packet: f64,
    protection: f64,
    takes_any: bool,
    p: f64,
    last_delay: f64,
    /// How long what leaves L has waited, and what waits there.
    l_sojourn: f64,
    l_backlog: f64,
    updates: u64,
}

/// # Errors
/// What a fluid lacks.
pub(super) fn check(config: &Config) -> Result<(), SpecError> {
    let refuse = |what: &str| refusal(Written::NAME, what);
    if config.memlimit.is_some() {
        return Err(refuse("'memlimit'").allow(["'limit', in packets"]));
    }
    if config.overload != Overload::Drop {
        return Err(refuse("'overflow'").allow(["'drop_on_overload'"]));
    }
    if config.min_qlen_step != 0 {
        return Err(refuse("'min_qlen_step'").allow(["'min_qlen_step 0'"]));
    }
    if config.drop_at != DropAt::Dequeue {
        return Err(refuse("'drop_enqueue'").allow(["'drop_dequeue'"]));
    }
    if !config.split_gso {
        return Err(refuse("packets of several segments").allow(["'split_gso'"]));
    }
    Ok(())
}

impl DualPi2 {
    pub(super) fn new(config: &Config, packet: f64) -> Self {
        let (step_threshold, step_bytes) = match config.step_threshold {
            StepThreshold::Time(span) => (span.as_secs_f64(), 0.0),
            StepThreshold::Packets(packets) => (0.0, f64::from(packets) * packet),
        };
        Self {
            limit: f64::from(config.limit) * packet,
            target: config.target.as_secs_f64(),
            tupdate: config.tupdate.as_secs_f64(),
            alpha: f64::from(config.alpha.0) / 256.0,
            beta: f64::from(config.beta.0) / 256.0,
            coupling: f64::from(config.coupling_factor),
            step_threshold,
            step_bytes,
            packet,
            protection: f64::from(config.classic_protection_percent) / 100.0,
            takes_any: config.l4s_ect == L4sEct::Any,
            p: 0.0,
            last_delay: 0.0,
            l_sojourn: 0.0,
            l_backlog: 0.0,
            updates: 0,
        }
    }

    pub(super) fn classes(&self, members: &[Member]) -> Vec<usize> {
        let class = |member: &Member| {
            let is_low = member.is_l4s || self.takes_any && member.is_capable;
            if is_low { L } else { C }
        };
        members.iter().map(class).collect()
    }

    pub(super) fn advance(&self, step: &Step<'_>, fate: &mut Fate) {
        let classes = self.classes(step.members);
        let coupled = (self.coupling * self.p).min(1.0);
        let p_l = 1.0 - (1.0 - coupled) * (1.0 - self.over_step(step));
        let is_overloaded = self.coupling * self.p > 1.0;
        let mut held = [step.backlogs[C], step.backlogs[L]];
        for (member, class) in classes.iter().enumerate() {
            if *class == L {
                if is_overloaded {
                    fate.signal(step, member, self.p * self.p, false);
                }
                fate.signal(step, member, p_l, true);
            } else {
                fate.signal(step, member, self.p * self.p, !is_overloaded);
            }
            held[*class] += step.arrivals[member] - fate.lost[member];
        }
        // L goes first, but for C's protected share.
        let l =
            held[L].min((step.capacity - held[C].min(self.protection * step.capacity)).max(0.0));
        let c = held[C].min(step.capacity - l);
        fate.departures[C] = c;
        fate.departures[L] = l;
        let excess = held[C] + held[L] - c - l - self.limit;
        let came: f64 = step.arrivals.iter().zip(&fate.lost).map(|(came, lost)| came - lost).sum();
        if excess > 0.0 && came > 0.0 {
            let share = (excess / came).min(1.0);
            for (lost, came) in fate.lost.iter_mut().zip(step.arrivals) {
                *lost += (came - *lost) * share;
            }
        }
    }

    /// The share of L's packets that wait longer than the step allows. A packet waits for what is being sent, of which any
    /// part is left; and those after which it is C's turn, by its protected share, wait for one of C's packets more.
    fn over_step(&self, step: &Step<'_>) -> f64 {
        if self.l_sojourn > self.step_threshold && self.l_backlog > self.step_bytes {
            return 1.0;
        }
        let takes = self.packet * step.length / step.capacity;
        let is_in_packets = self.step_bytes > 0.0;
        if is_in_packets || step.backlogs[C] < self.packet || !takes.is_finite() {
            return 0.0;
        }
        let allowed = (self.step_threshold - self.l_sojourn) / takes;
        let longer = |before: f64| (before + 1.0 - allowed).clamp(0.0, 1.0);
        let turns = (self.protection / (1.0 - self.protection)).min(1.0);
        (1.0 - turns) * longer(0.0) + turns * longer(1.0)
    }

    pub(super) fn observe(&mut self, seen: &Seen<'_>, _: &mut Vec<Due>) {
        let Seen { now, sojourns, backlogs, .. } = *seen;
        self.l_sojourn = sojourns[L];
        self.l_backlog = backlogs[L];
        while now >= self.timer() {
            self.updates += 1;
            // Appendix A.1.
            let delay = |class: usize| if backlogs[class] > 0.0 { sojourns[class] } else { 0.0 };
            let delay = delay(C).max(delay(L));
            let delta = self.alpha * (delay - self.target) + self.beta * (delay - self.last_delay);
            self.p = (self.p + delta).clamp(0.0, 1.0);
            self.last_delay = delay;
        }
    }

    pub(super) fn timer(&self) -> f64 {
        (self.updates + 1) as f64 * self.tupdate
    }
}
