//! Startup doubles the rate until it stops growing; Drain empties the queue that this made.

use super::{Bbr, Mode};
use crate::Ack;
use crate::fixed::{Bw, Gain};

impl Bbr {
    /// The pipe is full when the filtered bandwidth has not grown by a quarter for three rounds.
    pub(super) fn check_full_bw_reached(&mut self, is_app_limited: bool) {
        if self.full_bw_reached || !self.round_start || is_app_limited {
            return;
        }
        let bw = self.bw.value();
        if bw >= self.full_bw.times(self.config.full_bw_thresh) {
            self.full_bw = bw;
            self.full_bw_count = 0;
            return;
        }
        self.full_bw_count += 1;
        self.full_bw_reached = self.full_bw_count >= self.config.full_bw_rounds;
    }

    pub(super) fn check_drain(&mut self, ack: &Ack) {
        if self.mode == Mode::Startup && self.full_bw_reached {
            self.mode = Mode::Drain;
            self.ssthresh = Some(self.inflight(self.bw.value(), Gain::ONE));
        }
        if self.mode == Mode::Drain
            && self.in_net_at_departure(ack, ack.in_flight)
                <= self.inflight(self.bw.value(), Gain::ONE)
        {
            self.enter_probe_bw();
        }
    }

    pub(super) fn reset_full_bw(&mut self) {
        self.full_bw = Bw::ZERO;
        self.full_bw_count = 0;
    }
}
