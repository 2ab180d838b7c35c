//! Recovery from loss, section 5.6.4.4, and its undo when the losses were spurious, section 5.5.11.

use super::bandwidth::Bandwidth;
use super::{Bbr3, State};
use crate::RecoveryState;

/// What an undo restores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum UndoState {
    #[default]
    None,
    Startup,
    ProbeBwUp,
}

#[derive(Clone, Debug)]
pub(super) struct Recovery {
    in_loss_recovery: bool,
    /// The state before this episode's losses is saved.
    is_saved: bool,
    pub(super) prior_cwnd: u32,
    pub(super) undo_state: UndoState,
    pub(super) undo_bw_shortterm: Bandwidth,
    pub(super) undo_inflight_shortterm: u32,
    pub(super) undo_inflight_longterm: u32,
}

impl Default for Recovery {
    fn default() -> Self {
        Self {
            in_loss_recovery: false,
            is_saved: false,
            prior_cwnd: 0,
            undo_state: UndoState::None,
            undo_bw_shortterm: Bandwidth::ZERO,
            undo_inflight_shortterm: 0,
            undo_inflight_longterm: 0,
        }
    }
}

impl Bbr3 {
    pub(super) fn on_enter_fast_recovery(&mut self) {
        self.save_state_upon_loss();
        self.recovery.in_loss_recovery = true;
    }

    pub(super) fn on_enter_rto(&mut self, in_flight: u32) {
        self.save_state_upon_loss();
        self.save_cwnd();
        self.recovery.in_loss_recovery = true;
        self.cwnd = in_flight + 1;
    }

    pub(super) fn on_exit_recovery(&mut self) {
        if self.recovery.in_loss_recovery {
            self.recovery.in_loss_recovery = false;
            self.restore_cwnd();
        }
    }

    /// Notices the end of recovery, and losses that a tail loss probe repaired without recovery.
    pub(super) fn follow_recovery(&mut self, state: RecoveryState) {
        if !matches!(state, RecoveryState::Recovery | RecoveryState::Loss) {
            self.on_exit_recovery();
            self.recovery.is_saved &= self.short_term.is_loss_in_round;
        }
    }

    /// Saves once per episode, because later losses find the bounds already lowered.
    pub(super) fn save_state_upon_loss(&mut self) {
        if self.recovery.is_saved {
            return;
        }
        self.save_cwnd();
        self.recovery.is_saved = true;
        self.recovery.undo_state = UndoState::None;
        self.recovery.undo_bw_shortterm = self.short_term.bw;
        self.recovery.undo_inflight_shortterm = self.short_term.inflight;
        self.recovery.undo_inflight_longterm = self.long_term.inflight;
    }

    pub(super) fn handle_spurious_loss_detection(&mut self) {
        self.restore_cwnd();
        self.short_term.is_loss_in_round = false;
        self.full_bw.reset(Bandwidth::ZERO);
        let recovery = &mut self.recovery;
        self.short_term.bw = self.short_term.bw.max(recovery.undo_bw_shortterm);
        self.short_term.inflight = self.short_term.inflight.max(recovery.undo_inflight_shortterm);
        self.long_term.inflight = self.long_term.inflight.max(recovery.undo_inflight_longterm);
        recovery.is_saved = false;
        match core::mem::take(&mut recovery.undo_state) {
            UndoState::Startup if self.state != State::Startup => {
                self.full_bw.reached = false;
                if self.state != State::ProbeRtt {
                    self.enter_startup();
                }
            }
            UndoState::ProbeBwUp if !matches!(self.state, State::ProbeBwUp | State::ProbeRtt) => {
                self.start_probe_bw_refill();
            }
            _ => {}
        }
    }

    pub(super) fn save_cwnd(&mut self) {
        let is_cut = self.recovery.in_loss_recovery || self.state == State::ProbeRtt;
        let prior_cwnd = if is_cut { self.recovery.prior_cwnd } else { 0 };
        self.recovery.prior_cwnd = prior_cwnd.max(self.cwnd);
    }

    pub(super) fn restore_cwnd(&mut self) {
        self.cwnd = self.cwnd.max(self.recovery.prior_cwnd);
    }
}
