//! The congestion window grows towards a multiple of the BDP, within the bounds found by losses.

use super::probe_bw::Cycle;
use super::{Bbr3Linux, Mode, UNLIMITED};
use crate::fixed::{Bw, Gain};
use crate::{Ack, Congestion, RecoveryState};

impl Bbr3Linux {
    pub(super) fn set_cwnd(&mut self, ack: &Ack, bw: Bw) {
        if ack.delivered > 0 {
            let extra = self.aggregation_cwnd();
            let target =
                self.with_quantization_budget(self.bdp(bw, self.cwnd_gain).saturating_add(extra));
            self.try_fast_path = false;
            if self.full_pipe.reached {
                self.cwnd += ack.delivered;
                if self.cwnd >= target {
                    self.cwnd = target;
                    self.try_fast_path = true;
                }
            } else if self.cwnd < target || self.cwnd < 2 * self.initial_cwnd {
                self.cwnd += ack.delivered;
            } else {
                self.try_fast_path = true;
            }
            self.cwnd = self.cwnd.max(self.config.min_cwnd);
        }
        if self.mode == Mode::ProbeRtt {
            self.cwnd = self.cwnd.min(self.probe_rtt_cwnd());
        }
    }

    pub(super) fn bound_cwnd_for_inflight_model(&mut self) {
        let cap = match self.mode {
            Mode::ProbeBw(Cycle::Cruise) | Mode::ProbeRtt => self.inflight_with_headroom(),
            Mode::ProbeBw(_) => self.bounds.inflight_hi,
            Mode::Startup | Mode::Drain => UNLIMITED,
        };
        let cap = cap.min(self.bounds.inflight_lo).max(self.config.min_cwnd);
        self.cwnd = self.cwnd.min(cap);
    }

    /// Remembers the window to return to after a timeout or ProbeRTT.
    pub(super) fn save_cwnd(&mut self) {
        let is_cut = matches!(self.prior_state, RecoveryState::Recovery | RecoveryState::Loss)
            || self.mode == Mode::ProbeRtt;
        self.prior_cwnd = if is_cut { self.prior_cwnd.max(self.cwnd) } else { self.cwnd };
    }

    pub(super) fn on_timeout(&mut self, congestion: &Congestion) {
        self.cwnd = congestion.in_flight + 1;
        self.prior_state = RecoveryState::Loss;
        self.full_pipe.restart(Bw::ZERO);
        if !self.is_probing_bandwidth() && self.bounds.inflight_lo == UNLIMITED {
            // The lower bound starts from the window before the timeout.
            self.bounds.inflight_lo = self.cwnd.max(self.prior_cwnd);
        }
    }

    /// Restores the old window after the recovery from a timeout.
    pub(super) fn exit_loss_recovery(&mut self) {
        if self.prior_state == RecoveryState::Loss {
            self.prior_state = RecoveryState::Open;
            self.cwnd = self.cwnd.max(self.prior_cwnd);
            self.try_fast_path = false;
        }
    }

    /// The BDP times `gain`, but at least what offloading keeps in the hosts.
    pub(super) fn inflight(&self, bw: Bw, gain: Gain) -> u32 {
        self.with_quantization_budget(self.bdp(bw, gain))
    }

    /// How many of `in_flight` segments will still be in the network when the next one may leave.
    pub(super) fn in_net_at_departure(&self, ack: &Ack, in_flight: u32) -> u32 {
        let wait = ack.earliest_departure.since(ack.now);
        let delivered = self.bw().segments_in(wait.as_micros()).min(u64::from(u32::MAX)) as u32;
        let joining = if self.pacing_gain > Gain::ONE { self.pacing.tso_goal() } else { 0 };
        (in_flight + joining).saturating_sub(delivered)
    }

    pub(super) fn probe_rtt_cwnd(&self) -> u32 {
        self.bdp(self.bw(), self.config.probe_rtt_cwnd_gain).max(self.config.min_cwnd)
    }

    fn bdp(&self, bw: Bw, gain: Gain) -> u32 {
        match self.min_rtt {
            Some(rtt) => bw.bdp(rtt.as_micros(), gain),
            None => self.initial_cwnd,
        }
    }

    fn with_quantization_budget(&self, cwnd: u32) -> u32 {
        let least = self.config.min_cwnd.max(3 * self.pacing.tso_goal());
        let is_up = self.mode == Mode::ProbeBw(Cycle::Up);
        cwnd.max(least).saturating_add(if is_up { 2 } else { 0 })
    }

    fn aggregation_cwnd(&self) -> u32 {
        let config = &self.config;
        self.aggregation.cwnd(config.extra_acked_gain, self.bw(), config.extra_acked_limit)
    }
}
