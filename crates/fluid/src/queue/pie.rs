//! PIE (RFC 8033): a controller that steers the probability of a drop by the delay and its trend.

use alloc::vec::Vec;

use sojourn_qdisc::pie::Config;

use super::{Due, Fate, Member, Seen, Step, one_class, serve_fifo};

/// Section 4.4.
const MAX_BURST: f64 = 0.15;
/// Up to this probability what may be marked is marked.
const MARK_UP_TO: f64 = 0.1;

#[derive(Clone, Debug)]
pub(crate) struct Pie {
    limit: f64,
    packet: f64,
    target: f64,
    tupdate: f64,
    alpha: f64,
    beta: f64,
    ecn: bool,
    probability: f64,
    burst: f64,
    delay: f64,
    old_delay: f64,
    backlog: f64,
    /// How long what left last had waited.
    measured: f64,
    updates: u64,
}

impl Pie {
    pub(super) fn new(config: &Config, packet: f64) -> Self {
        Self {
            limit: f64::from(config.limit) * packet,
            packet,
            target: config.target.as_secs_f64(),
            tupdate: config.tupdate.as_secs_f64(),
            alpha: f64::from(config.alpha) / 16.0,
            beta: f64::from(config.beta) / 16.0,
            ecn: config.ecn,
            probability: 0.0,
            burst: MAX_BURST,
            delay: 0.0,
            old_delay: 0.0,
            backlog: 0.0,
            measured: 0.0,
            updates: 0,
        }
    }

    pub(super) fn classes(&self, members: &[Member]) -> Vec<usize> {
        one_class(members)
    }

    pub(super) fn advance(&self, step: &Step<'_>, fate: &mut Fate) {
        let is_calm = self.old_delay < self.target / 2.0 && self.probability < 0.2;
        if self.burst <= 0.0 && !is_calm && self.backlog > 2.0 * self.packet {
            let may_mark = self.ecn && self.probability <= MARK_UP_TO;
            for member in 0..step.members.len() {
                fate.signal(step, member, self.probability, may_mark);
            }
        }
        serve_fifo(step, fate, self.limit);
    }

    pub(super) fn observe(&mut self, seen: &Seen<'_>, _: &mut Vec<Due>) {
        let Seen { now, sojourns, backlogs, .. } = *seen;
        self.backlog = backlogs[0];
        if !seen.stands_still(0) {
            self.measured = if backlogs[0] > 0.0 { sojourns[0] } else { 0.0 };
        }
        while now >= self.timer() {
            self.updates += 1;
            self.update(self.measured);
        }
    }

    /// Sections 4.2 and 5.
    fn update(&mut self, delay: f64) {
        (self.old_delay, self.delay) = (self.delay, delay);
        let mut scale = 1.0;
        if self.probability < 0.1 {
            scale = 0.5;
            let mut below = 0.01;
            while self.probability < below && below >= 1e-6 {
                scale /= 4.0;
                below /= 10.0;
            }
        }
        let trend = self.delay - self.old_delay;
        let mut delta = scale * (self.alpha * (delay - self.target) + self.beta * trend);
        if self.probability >= 0.1 {
            delta = delta.min(0.02);
        }
        if delay > 0.25 {
            delta += 0.02;
        }
        self.probability = (self.probability + delta).clamp(0.0, 1.0);
        if self.delay <= 0.0 && self.old_delay <= 0.0 {
            self.probability *= 1.0 - 1.0 / 64.0;
        }
        self.burst = (self.burst - self.tupdate).max(0.0);
        let is_low = |delay: f64| delay < self.target / 2.0;
        if is_low(self.delay) && is_low(self.old_delay) && self.probability < 1e-9 {
            self.burst = MAX_BURST;
        }
    }

    pub(super) fn timer(&self) -> f64 {
        (self.updates + 1) as f64 * self.tupdate
    }
}
