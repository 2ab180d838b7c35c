//! Bounds from losses: the lasting bound `inflight_hi`, the short-lived `bw_lo` and `inflight_lo`;
//! and the largest recent bandwidth.

use sojourn_core::Time;

use super::probe_bw::Cycle;
use super::sample::Sample;
use super::{Bbr3Linux, Mode, UNLIMITED};
use crate::fixed::Bw;
use crate::{Ack, Lost};

/// The largest bandwidth of the previous and of the present probing cycle.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MaxBw {
    previous: Bw,
    present: Bw,
}

impl MaxBw {
    pub(super) fn value(&self) -> Bw {
        self.previous.max(self.present)
    }

    pub(super) fn take(&mut self, bw: Bw) {
        self.present = self.present.max(bw);
    }

    /// A new cycle begins, unless the present one has no sample yet.
    pub(super) fn advance(&mut self) {
        if !self.present.is_zero() {
            self.previous = self.present;
            self.present = Bw::ZERO;
        }
    }
}

#[derive(Clone, Debug)]
pub(super) struct Bounds {
    pub(super) inflight_hi: u32,
    /// A bound in version 2 only, after marks.
    pub(super) bw_hi: Bw,
    pub(super) bw_lo: Bw,
    pub(super) inflight_lo: u32,
    undo: Undo,

    /// The most that was delivered in a recent round trip, and how fast.
    pub(super) bw_latest: Bw,
    pub(super) inflight_latest: u32,

    loss_round_delivered: u64,
    pub(super) loss_round_start: bool,
    pub(super) loss_in_round: bool,
    pub(super) loss_in_cycle: bool,
}

/// The bounds before the latest losses.
#[derive(Clone, Copy, Debug, Default)]
struct Undo {
    inflight_hi: u32,
    bw_lo: Bw,
    inflight_lo: u32,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            inflight_hi: UNLIMITED,
            bw_hi: Bw::UNLIMITED,
            bw_lo: Bw::UNLIMITED,
            inflight_lo: UNLIMITED,
            undo: Undo::default(),
            bw_latest: Bw::ZERO,
            inflight_latest: 0,
            // The first loss round ends after a full flight.
            loss_round_delivered: 1,
            loss_round_start: false,
            loss_in_round: false,
            loss_in_cycle: false,
        }
    }
}

impl Bounds {
    /// `inflight_hi`, if probing has found one.
    pub(super) fn lasting(&self) -> Option<u32> {
        Some(self.inflight_hi).filter(|inflight| *inflight != UNLIMITED)
    }

    pub(super) fn reset_lower(&mut self) {
        self.bw_lo = Bw::UNLIMITED;
        self.inflight_lo = UNLIMITED;
    }

    /// At the first loss or mark of the cycle, starts from the window.
    fn init_inflight_lo(&mut self, cwnd: u32) {
        if self.inflight_lo == UNLIMITED {
            self.inflight_lo = cwnd;
        }
    }

    pub(super) fn save_for_undo(&mut self) {
        self.undo = Undo {
            inflight_hi: self.inflight_hi,
            bw_lo: self.bw_lo,
            inflight_lo: self.inflight_lo,
        };
    }

    /// The losses were spurious: raises the bounds to at least what they were before.
    pub(super) fn undo(&mut self) {
        self.loss_in_round = false;
        self.inflight_hi = self.inflight_hi.max(self.undo.inflight_hi);
        self.bw_lo = self.bw_lo.max(self.undo.bw_lo);
        self.inflight_lo = self.inflight_lo.max(self.undo.inflight_lo);
    }
}

impl Bbr3Linux {
    pub(super) fn update_latest_delivery_signals(&mut self, ack: &Ack, sample: &Sample) {
        let bounds = &mut self.bounds;
        bounds.loss_round_start = false;
        if !sample.is_valid || ack.delivered == 0 {
            return;
        }
        bounds.bw_latest = bounds.bw_latest.max(sample.bw);
        bounds.inflight_latest = bounds.inflight_latest.max(sample.delivered);
        if sample.prior_delivered >= bounds.loss_round_delivered {
            bounds.loss_round_delivered = ack.total_delivered;
            bounds.loss_round_start = true;
        }
    }

    /// Once a round, forgets what was delivered in the round before. If a tail loss probe was
    /// needed, keeps it, because it says what the path delivered before the loss.
    pub(super) fn advance_latest_delivery_signals(&mut self, sample: &Sample) {
        if self.bounds.loss_round_start && !self.is_acking_tail_loss_probe {
            self.bounds.bw_latest = sample.bw;
            self.bounds.inflight_latest = sample.delivered;
        }
    }

    pub(super) fn update_congestion_signals(&mut self, ack: &Ack, sample: &Sample) {
        if self.rules.is_v2() {
            self.update_latest_delivery_signals(ack, sample);
        }
        if !sample.is_valid || ack.delivered == 0 {
            return;
        }
        if !sample.is_app_limited || sample.bw >= self.max_bw.value() {
            self.max_bw.take(sample.bw);
        }
        self.bounds.loss_in_round |= ack.lost > 0;
        if self.bounds.loss_round_start {
            self.adapt_lower_bounds();
            self.bounds.loss_in_round = false;
            self.ecn.in_round = false;
            if self.rules.is_v2() {
                self.advance_latest_delivery_signals(sample);
            }
        }
    }

    pub(super) fn reset_congestion_signals(&mut self) {
        self.bounds.loss_in_round = false;
        self.bounds.loss_in_cycle = false;
        self.bounds.bw_latest = Bw::ZERO;
        self.bounds.inflight_latest = 0;
        self.ecn.in_round = false;
        self.ecn.in_cycle = false;
    }

    /// A segment was deemed lost. Judges by the flight in which it left whether that is too much
    /// loss.
    pub(super) fn note_loss(&mut self, lost: &Lost) {
        if lost.by_tail_loss_probe && self.rules.is_v2() {
            // Version 2 does not learn of losses that a tail loss probe repaired.
            return;
        }
        if !self.bounds.loss_in_round {
            // Watches a whole round, to see the full capacity of the path.
            self.bounds.loss_round_delivered = self.delivered;
        }
        self.bounds.loss_in_round = true;
        self.bounds.loss_in_cycle = true;
        self.is_acking_tail_loss_probe |= lost.by_tail_loss_probe;
        if !self.is_probe_sample {
            return;
        }
        let mut sample = Sample { is_app_limited: lost.memo.is_app_limited, ..Sample::default() };
        if lost.by_tail_loss_probe {
            sample.lost = 1;
            sample.tx_in_flight = self.bounds.inflight_latest + 1;
        } else {
            sample.lost = lost.total_lost.saturating_sub(lost.memo.lost) as u32;
            sample.tx_in_flight = lost.memo.in_flight;
        }
        if self.is_inflight_too_high(&sample) {
            let inflight = if lost.by_tail_loss_probe {
                sample.tx_in_flight
            } else {
                self.inflight_at_loss(&sample)
            };
            self.handle_inflight_too_high(lost.now, inflight, sample.is_app_limited);
        }
    }

    pub(super) fn is_inflight_too_high(&self, sample: &Sample) -> bool {
        if sample.lost > 0 && sample.tx_in_flight > 0 {
            let budget = self.config.loss_thresh.0.of(u64::from(sample.tx_in_flight));
            if u64::from(sample.lost) > budget {
                return true;
            }
        }
        let ecn_thresh = self.config.ecn_thresh.0;
        let most = ecn_thresh.of(u64::from(sample.delivered));
        let delivered_ce = u64::from(sample.delivered_ce);
        self.ecn.is_eligible
            && delivered_ce > 0
            && !ecn_thresh.is_zero()
            && (delivered_ce > most || (delivered_ce == most && self.rules.is_v2()))
    }

    /// Lowers `inflight_hi` to `inflight`, once per probe, and ends the probe.
    pub(super) fn handle_inflight_too_high(
        &mut self,
        now: Time,
        inflight: u32,
        is_app_limited: bool,
    ) {
        self.prev_probe_too_high = true;
        self.is_probe_sample = false;
        if !is_app_limited {
            let least = self.config.beta.0.of(u64::from(self.target_inflight())) as u32;
            self.bounds.inflight_hi = inflight.max(least);
            self.cut_bw_hi();
        }
        if self.mode == Mode::ProbeBw(Cycle::Up) {
            self.start_probe_down(now);
        }
    }

    /// Version 2: if there were marks from the first sample of a probe on, the bandwidth is too
    /// high.
    fn cut_bw_hi(&mut self) {
        if !self.rules.ecn_bw_hi || !self.ecn.is_eligible || self.got_ok_probe_sample {
            return;
        }
        let cut = self.ecn.cut(self.config.ecn_factor.0);
        let bw_hi = &mut self.bounds.bw_hi;
        if *bw_hi == Bw::UNLIMITED {
            *bw_hi = self.max_bw.value();
        }
        *bw_hi = bw_hi.times(cut);
    }

    pub(super) fn inflight_with_headroom(&self) -> u32 {
        let inflight_hi = self.bounds.inflight_hi;
        if inflight_hi == UNLIMITED {
            return UNLIMITED;
        }
        let headroom = (self.config.headroom.0.of(u64::from(inflight_hi)) as u32).max(1);
        inflight_hi.saturating_sub(headroom).max(self.config.min_cwnd)
    }

    /// How much was in flight when losses crossed the threshold.
    fn inflight_at_loss(&self, sample: &Sample) -> u32 {
        let thresh = self.config.loss_thresh.0;
        // Losses are judged one segment at a time, so the segment is either within the prefix or
        // after it.
        let inflight_prev = sample.tx_in_flight.saturating_sub(1);
        let lost_prev = u64::from(sample.lost.saturating_sub(1));
        let budget = thresh.of_rounded_up(u64::from(inflight_prev));
        let kept = thresh.complement().parts();
        let lost_prefix = match budget.saturating_sub(lost_prev) {
            0 => 0,
            _ if kept == 0 => return UNLIMITED,
            left => (left << 8) / u64::from(kept),
        };
        inflight_prev.saturating_add(lost_prefix as u32)
    }

    /// At the end of a round with losses or marks while not probing, slows down towards what the
    /// path delivered in that round.
    pub(super) fn adapt_lower_bounds(&mut self) {
        if self.is_probing_bandwidth() {
            return;
        }
        let max_bw = self.max_bw.value();
        let bounds = &mut self.bounds;
        let (mut ecn_inflight_lo, mut ecn_bw_lo) = (UNLIMITED, Bw::UNLIMITED);
        let has_marks = self.ecn.in_round && self.ecn.is_eligible;
        if has_marks && !self.config.ecn_factor.0.is_zero() {
            let cut = self.ecn.cut(self.config.ecn_factor.0);
            bounds.init_inflight_lo(self.cwnd);
            ecn_inflight_lo = cut.of(u64::from(bounds.inflight_lo)) as u32;
            if self.rules.ecn_bw_lo {
                if bounds.bw_lo == Bw::UNLIMITED {
                    bounds.bw_lo = max_bw;
                }
                ecn_bw_lo = bounds.bw_lo.times(cut);
            }
        }
        if bounds.loss_in_round {
            if bounds.bw_lo == Bw::UNLIMITED {
                bounds.bw_lo = max_bw;
            }
            bounds.init_inflight_lo(self.cwnd);
            let beta = self.config.beta.0;
            bounds.bw_lo = bounds.bw_latest.max(bounds.bw_lo.times(beta));
            let kept = beta.of(u64::from(bounds.inflight_lo)) as u32;
            bounds.inflight_lo = bounds.inflight_latest.max(kept);
        }
        bounds.inflight_lo = bounds.inflight_lo.min(ecn_inflight_lo);
        bounds.bw_lo = bounds.bw_lo.min(ecn_bw_lo).max(Bw::LEAST);
    }

    pub(super) fn is_probing_bandwidth(&self) -> bool {
        matches!(self.mode, Mode::Startup | Mode::ProbeBw(Cycle::Refill | Cycle::Up))
    }
}
