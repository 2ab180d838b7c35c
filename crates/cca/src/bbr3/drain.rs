//! Drain, section 5.3.2: empties the queue that Startup made.

use super::{Bbr3, State};
use crate::Ack;

impl Bbr3 {
    pub(super) fn enter_drain(&mut self) {
        self.state = State::Drain;
        self.pacing_gain = self.config.drain_pacing_gain;
        self.cwnd_gain = self.config.cwnd_gain;
        self.drain_start_round = self.rounds.count;
    }

    pub(super) fn check_drain_done(&mut self, ack: &Ack) {
        if self.state != State::Drain {
            return;
        }
        let last_round = self.drain_start_round + u64::from(self.config.drain_max_rounds);
        if ack.in_flight <= self.inflight(self.bw, 1.0) || self.rounds.count > last_round {
            self.start_probe_bw_down(ack.now);
        }
    }
}
