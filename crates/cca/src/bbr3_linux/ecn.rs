//! The response to ECN on paths that mark at a shallow threshold.

use super::Bbr3Linux;
use crate::Ack;
use crate::fixed::Gain;

#[derive(Clone, Debug)]
pub(super) struct Ecn {
    /// Whether marks are responded to; once true, it stays true.
    pub(super) is_eligible: bool,
    /// Moving average of the share of marked segments.
    alpha: Gain,
    last_delivered: u64,
    last_delivered_ce: u64,
    startup_rounds: u32,
    pub(super) in_round: bool,
    pub(super) in_cycle: bool,
}

impl Default for Ecn {
    fn default() -> Self {
        Self {
            is_eligible: false,
            // The first marks get the full response, in case the path is congested from the start.
            alpha: Gain::ONE,
            last_delivered: 0,
            last_delivered_ce: 0,
            startup_rounds: 0,
            in_round: false,
            in_cycle: false,
        }
    }
}

impl Ecn {
    /// The share of `inflight_lo` that is kept after a round with marks.
    pub(super) fn cut(&self, factor: Gain) -> Gain {
        Gain::of_256(factor.of(u64::from(self.alpha.parts())) as u32).complement()
    }
}

impl Bbr3Linux {
    pub(super) fn note_ecn(&mut self, ack: &Ack) {
        self.ecn.in_round |= (self.ecn.is_eligible || self.rules.is_v2()) && ack.ece;
    }

    pub(super) fn has_marks_without_loss(&self) -> bool {
        self.ecn.is_eligible
            && !self.config.ecn_reprobe_gain.0.is_zero()
            && self.ecn.in_cycle
            && !self.bounds.loss_in_cycle
    }

    /// Once per round.
    pub(super) fn update_ecn_alpha(&mut self, ack: &Ack) {
        let is_responsive = self.config.ecn_low && !self.config.ecn_factor.0.is_zero();
        let max_rtt = self.config.ecn_max_rtt;
        let is_near = self.min_rtt.is_some_and(|rtt| rtt <= max_rtt)
            || (max_rtt.is_zero() && self.rules.is_v2());
        self.ecn.is_eligible |= is_responsive && is_near;
        // Version 2 keeps the average even if it does not respond.
        if !self.ecn.is_eligible && !self.rules.is_v2() {
            return;
        }
        let delivered = ack.total_delivered.saturating_sub(self.ecn.last_delivered);
        let marked = ack.total_delivered_ce.saturating_sub(self.ecn.last_delivered_ce);
        if delivered == 0 {
            return;
        }
        let ratio = (marked << Gain::SHIFT) / delivered;
        let gain = self.config.ecn_alpha_gain.0;
        let alpha = gain.complement().of(u64::from(self.ecn.alpha.parts())) + gain.of(ratio);
        self.ecn.alpha = Gain::of_256(alpha as u32).min(Gain::ONE);
        self.ecn.last_delivered = ack.total_delivered;
        self.ecn.last_delivered_ce = ack.total_delivered_ce;
        self.check_ecn_too_high_in_startup(ratio);
    }

    fn check_ecn_too_high_in_startup(&mut self, ratio: u64) {
        let thresh = self.config.ecn_thresh.0;
        if self.full_pipe.reached || !self.ecn.is_eligible || thresh.is_zero() {
            return;
        }
        if ratio >= u64::from(thresh.parts()) {
            self.ecn.startup_rounds += 1;
        } else {
            self.ecn.startup_rounds = 0;
        }
        if self.ecn.startup_rounds >= self.config.full_ecn_cnt {
            self.handle_queue_too_high_in_startup();
        }
    }
}
