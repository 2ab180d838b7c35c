//! Startup, section 5.3.1: doubles the rate until bandwidth stops growing or losses are heavy.

use super::bandwidth::Bandwidth;
use super::model::Sample;
use super::{Bbr3, State, UndoState};
use crate::{Ack, RecoveryState};

/// The estimator of a full pipe, section 5.3.1.2.
#[derive(Clone, Debug)]
pub(super) struct FullBw {
    /// `full_bw_reached`: the pipe has been full in this connection.
    pub(super) reached: bool,
    /// `full_bw_now`: the pipe has been full since the estimator was last reset.
    pub(super) now: bool,
    /// `full_bw`: the baseline that growth is measured from.
    pub(super) bw: Bandwidth,
    pub(super) count: u32,
    /// Something else than the network is the limit, so rounds without growth don't count.
    pub(super) is_held: bool,
}

impl Default for FullBw {
    fn default() -> Self {
        Self { reached: false, now: false, bw: Bandwidth::ZERO, count: 0, is_held: false }
    }
}

impl FullBw {
    /// `ResetFullBW`, then sets the baseline.
    pub(super) fn reset(&mut self, baseline: Bandwidth) {
        self.bw = baseline;
        self.count = 0;
        self.now = false;
    }
}

impl Bbr3 {
    pub(super) fn enter_startup(&mut self) {
        self.state = State::Startup;
        self.pacing_gain = self.config.startup_pacing_gain;
        self.cwnd_gain = self.config.cwnd_gain;
    }

    pub(super) fn check_full_bw_reached(&mut self, rs: &Sample) {
        if self.full_bw.now || !self.rounds.start || rs.is_app_limited {
            return;
        }
        // A round without a usable sample shows neither growth nor its absence.
        let Some(delivery_rate) = rs.delivery_rate else { return };
        if delivery_rate >= self.full_bw.bw.times(self.config.full_bw_thresh) {
            self.full_bw.reset(delivery_rate);
            return;
        }
        if self.full_bw.is_held {
            return;
        }
        self.full_bw.count += 1;
        self.full_bw.now = self.full_bw.count >= self.config.full_bw_rounds;
        self.full_bw.reached |= self.full_bw.now;
    }

    pub(super) fn check_startup_done(&mut self, ack: &Ack, rs: &Sample) {
        self.check_startup_high_loss(ack, rs);
        if self.state == State::Startup && self.full_bw.reached {
            self.enter_drain();
        }
    }

    /// Section 5.3.1.3: checks at the end of a whole round that began with a loss.
    fn check_startup_high_loss(&mut self, ack: &Ack, rs: &Sample) {
        if self.full_bw.reached {
            return;
        }
        let short_term = &mut self.short_term;
        short_term.loss_events += u32::from(ack.lost > 0);
        if !short_term.loss_round_start {
            return;
        }
        let loss_events = core::mem::take(&mut short_term.loss_events);
        if ack.state == RecoveryState::Recovery
            && loss_events >= self.config.full_loss_cnt
            && self.is_inflight_too_high(rs.lost, rs.tx_in_flight)
        {
            self.recovery.undo_state = UndoState::Startup;
            self.full_bw.reached = true;
            self.full_bw.now = true;
            let bdp = self.bdp_multiple(self.bw, 1.0);
            self.long_term.inflight = bdp.max(self.short_term.inflight_latest);
        }
    }
}
