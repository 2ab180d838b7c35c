//! The congestion window grows towards a multiple of the BDP, and more carefully in recovery.

use super::{Bbr, Mode};
use crate::fixed::{Bw, Gain};
use crate::{Ack, Congestion, RecoveryState};

impl Bbr {
    pub(super) fn set_cwnd(&mut self, ack: &Ack, bw: Bw) {
        if ack.delivered > 0 && !self.is_conserving(ack) {
            let target = self.target_cwnd(bw);
            if self.full_bw_reached {
                self.cwnd = (self.cwnd + ack.delivered).min(target);
            } else if self.cwnd < target || ack.total_delivered < u64::from(self.initial_cwnd) {
                self.cwnd += ack.delivered;
            }
            self.cwnd = self.cwnd.max(self.config.min_cwnd);
        }
        if self.mode == Mode::ProbeRtt {
            self.cwnd = self.cwnd.min(self.config.min_cwnd);
        }
    }

    /// Remembers the window to return to after recovery or ProbeRTT.
    pub(super) fn save_cwnd(&mut self) {
        if is_recovering(self.prior_state) || self.mode == Mode::ProbeRtt {
            self.prior_cwnd = self.prior_cwnd.max(self.cwnd);
        } else {
            self.prior_cwnd = self.cwnd;
        }
    }

    pub(super) fn on_timeout(&mut self, congestion: &Congestion) {
        self.cwnd = congestion.in_flight + 1;
        self.prior_state = RecoveryState::Loss;
        self.full_bw = Bw::ZERO;
        self.sample_policer_at_timeout();
    }

    /// The BDP times `gain`, and what offloading keeps in the hosts.
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

    fn target_cwnd(&self, bw: Bw) -> u32 {
        let target = self.bdp(bw, self.cwnd_gain).saturating_add(self.aggregation_cwnd());
        self.with_quantization_budget(target)
    }

    fn bdp(&self, bw: Bw, gain: Gain) -> u32 {
        match self.min_rtt {
            Some(rtt) => bw.bdp(rtt.as_micros(), gain),
            None => self.initial_cwnd,
        }
    }

    fn with_quantization_budget(&self, cwnd: u32) -> u32 {
        // Even, so that a receiver that acknowledges every other segment does not wait.
        let even = cwnd.saturating_add(3 * self.pacing.tso_goal()).saturating_add(1) & !1;
        if self.is_probing_up() { even.saturating_add(2) } else { even }
    }

    fn aggregation_cwnd(&self) -> u32 {
        if !self.full_bw_reached {
            return 0;
        }
        let config = &self.config;
        self.aggregation.cwnd(config.extra_acked_gain, self.bw(), config.extra_acked_limit)
    }

    /// In the first round of recovery, sends one segment per acknowledged one; after recovery,
    /// restores the old window. True if that decides the window.
    fn is_conserving(&mut self, ack: &Ack) -> bool {
        if ack.lost > 0 {
            self.cwnd = self.cwnd.saturating_sub(ack.lost).max(1);
        }
        let in_flight_and_acked = ack.in_flight + ack.delivered;
        if ack.state == RecoveryState::Recovery && self.prior_state != RecoveryState::Recovery {
            self.packet_conservation = true;
            self.next_round_delivered = ack.total_delivered;
            self.cwnd = in_flight_and_acked;
        } else if is_recovering(self.prior_state) && !is_recovering(ack.state) {
            self.cwnd = self.cwnd.max(self.prior_cwnd);
            self.packet_conservation = false;
        }
        self.prior_state = ack.state;
        if self.packet_conservation {
            self.cwnd = self.cwnd.max(in_flight_and_acked);
        }
        self.packet_conservation
    }
}

fn is_recovering(state: RecoveryState) -> bool {
    matches!(state, RecoveryState::Recovery | RecoveryState::Loss)
}
