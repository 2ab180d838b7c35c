//! Bounds from losses, section 5.5.10: the long-term bound that probing finds, and the short-term
//! bounds that follow losses between probes.

use super::super::bandwidth::Bandwidth;
use super::super::{Bbr3, INFINITY, State, UndoState};
use super::Sample;
use crate::Lost;

#[derive(Clone, Debug)]
pub(crate) struct LongTerm {
    /// `inflight_longterm`.
    pub(crate) inflight: u32,
}

impl Default for LongTerm {
    fn default() -> Self {
        Self { inflight: INFINITY }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct ShortTerm {
    /// `bw_shortterm`.
    pub(crate) bw: Bandwidth,
    /// `inflight_shortterm`.
    pub(crate) inflight: u32,
    /// The largest in the present round.
    bw_latest: Bandwidth,
    pub(crate) inflight_latest: u32,
    pub(crate) is_loss_in_round: bool,
    loss_round_delivered: u64,
    pub(crate) loss_round_start: bool,
    /// Acknowledgements that revealed losses in this round.
    pub(crate) loss_events: u32,
}

impl Default for ShortTerm {
    fn default() -> Self {
        Self {
            bw: Bandwidth::INFINITY,
            inflight: INFINITY,
            bw_latest: Bandwidth::ZERO,
            inflight_latest: 0,
            is_loss_in_round: false,
            loss_round_delivered: 0,
            loss_round_start: false,
            loss_events: 0,
        }
    }
}

impl Bbr3 {
    pub(crate) fn update_latest_delivery_signals(&mut self, rs: &Sample) {
        let short_term = &mut self.short_term;
        short_term.loss_round_start = false;
        if !rs.has_data {
            return;
        }
        short_term.bw_latest = short_term.bw_latest.max(rs.delivery_rate_or_zero());
        short_term.inflight_latest = short_term.inflight_latest.max(rs.delivered);
        if rs.prior_delivered >= short_term.loss_round_delivered {
            short_term.loss_round_delivered = self.delivered;
            short_term.loss_round_start = true;
        }
    }

    pub(crate) fn advance_latest_delivery_signals(&mut self, rs: &Sample) {
        if self.short_term.loss_round_start {
            self.short_term.bw_latest = rs.delivery_rate_or_zero();
            self.short_term.inflight_latest = rs.delivered;
        }
    }

    pub(crate) fn reset_congestion_signals(&mut self) {
        self.short_term.is_loss_in_round = false;
        self.short_term.bw_latest = Bandwidth::ZERO;
        self.short_term.inflight_latest = 0;
    }

    pub(crate) fn reset_short_term_model(&mut self) {
        self.short_term.bw = Bandwidth::INFINITY;
        self.short_term.inflight = INFINITY;
    }

    pub(crate) fn update_congestion_signals(&mut self, rs: &Sample) {
        self.update_round(rs);
        self.update_max_bw(rs);
        if self.short_term.loss_round_start {
            self.adapt_lower_bounds_from_congestion();
            self.short_term.is_loss_in_round = false;
        }
    }

    /// `HandleLostPacket`: judges by the flight in which the packet left whether that is too much
    /// loss.
    pub(crate) fn handle_lost_packet(&mut self, lost: &Lost) {
        self.note_loss();
        if !self.probe_bw.is_probe_sample {
            return;
        }
        let memo = &lost.memo;
        let lost_since = lost.total_lost.saturating_sub(memo.lost) as u32;
        if self.is_inflight_too_high(lost_since, memo.in_flight) {
            let inflight = self.inflight_at_loss(lost_since, memo.in_flight);
            self.handle_inflight_too_high(lost, inflight);
        }
    }

    pub(crate) fn is_inflight_too_high(&self, lost: u32, tx_in_flight: u32) -> bool {
        f64::from(lost) > f64::from(tx_in_flight) * self.config.loss_thresh.0
    }

    fn note_loss(&mut self) {
        if !self.short_term.is_loss_in_round {
            self.short_term.loss_round_delivered = self.delivered;
            self.save_state_upon_loss();
        }
        self.short_term.is_loss_in_round = true;
    }

    /// Once per probe: lowers `inflight_longterm` and ends the probe.
    fn handle_inflight_too_high(&mut self, lost: &Lost, tx_in_flight: u32) {
        self.probe_bw.prev_probe_too_high = true;
        self.probe_bw.is_probe_sample = false;
        if !lost.memo.is_app_limited || self.config.longterm_when_app_limited {
            let least = f64::from(self.target_inflight()) * self.config.beta.0;
            self.long_term.inflight = tx_in_flight.max(least as u32);
        }
        if self.state == State::ProbeBwUp {
            self.recovery.undo_state = UndoState::ProbeBwUp;
            self.start_probe_bw_down(lost.now);
        }
    }

    /// `InflightAtLoss`, for a packet of one segment.
    fn inflight_at_loss(&self, lost: u32, tx_in_flight: u32) -> u32 {
        let thresh = self.config.loss_thresh.0;
        let inflight_prev = f64::from(tx_in_flight.saturating_sub(1));
        let lost_prev = f64::from(lost.saturating_sub(1));
        // Negative if earlier losses had crossed the threshold already.
        let lost_prefix = ((thresh * inflight_prev - lost_prev) / (1.0 - thresh)).max(0.0);
        (inflight_prev + lost_prefix) as u32
    }

    fn adapt_lower_bounds_from_congestion(&mut self) {
        if self.state.is_probing_bw() || !self.short_term.is_loss_in_round {
            return;
        }
        let max_bw = self.max_bw.max_bw();
        let beta = self.config.beta.0;
        let short_term = &mut self.short_term;
        if short_term.bw == Bandwidth::INFINITY {
            short_term.bw = max_bw;
        }
        if short_term.inflight == INFINITY {
            short_term.inflight = self.cwnd;
        }
        short_term.bw = short_term.bw_latest.max(short_term.bw.times(beta));
        let kept = f64::from(short_term.inflight) * beta;
        short_term.inflight = short_term.inflight_latest.max(kept as u32);
    }
}
