//! Startup doubles the rate until it stops growing or losses are heavy; Drain empties the queue
//! that this made. UP uses the detector of a full pipe as well.

use super::{Bbr3Linux, Cycle, FullBwSample, Mode};
use crate::fixed::{Bw, Gain};
use crate::{Ack, RecoveryState};

use super::sample::Sample;

/// The kernel counts lossy acknowledgements in four bits.
const MAX_LOSS_EVENTS: u32 = 15;

/// The detector of a full pipe.
#[derive(Clone, Debug, Default)]
pub(super) struct FullPipe {
    /// The pipe has been found full in this connection.
    pub(super) reached: bool,
    /// The pipe has been found full since the detector was last restarted.
    pub(super) now: bool,
    bw: Bw,
    count: u32,
    /// Acknowledgements that revealed losses in this round.
    loss_events: u32,
}

impl FullPipe {
    /// From now on looks for growth beyond `bw`.
    pub(super) fn restart(&mut self, bw: Bw) {
        self.bw = bw;
        self.count = 0;
        self.now = false;
    }
}

impl Bbr3Linux {
    pub(super) fn check_full_bw_reached(&mut self, sample: &Sample) {
        // Version 2 checks once a round, and never again once the pipe has been full.
        let is_settled = if self.rules.is_v2() {
            self.full_pipe.reached || !self.round_start
        } else {
            self.full_pipe.now
        };
        if is_settled || sample.is_app_limited {
            return;
        }
        let bw = match self.config.full_bw_sample {
            FullBwSample::Latest => sample.bw,
            FullBwSample::Filtered => self.max_bw.value(),
        };
        if bw >= self.full_pipe.bw.times(self.config.full_bw_thresh) {
            self.full_pipe.restart(bw);
            return;
        }
        if self.round_start {
            self.full_pipe.count += 1;
            self.full_pipe.now = self.full_pipe.count >= self.config.full_bw_rounds;
            self.full_pipe.reached |= self.full_pipe.now;
        }
    }

    /// Leaves Startup at the end of a round of recovery in which losses were many and heavy.
    pub(super) fn check_loss_too_high_in_startup(&mut self, ack: &Ack, sample: &Sample) {
        if self.full_pipe.reached {
            return;
        }
        if ack.lost > 0 {
            self.full_pipe.loss_events = (self.full_pipe.loss_events + 1).min(MAX_LOSS_EVENTS);
        }
        if !self.bounds.loss_round_start {
            return;
        }
        if ack.state == RecoveryState::Recovery
            && self.full_pipe.loss_events >= self.config.full_loss_cnt
            && self.is_inflight_too_high(sample)
        {
            self.handle_queue_too_high_in_startup();
        } else {
            self.full_pipe.loss_events = 0;
        }
    }

    pub(super) fn handle_queue_too_high_in_startup(&mut self) {
        self.full_pipe.reached = true;
        let bdp = self.inflight(self.max_bw.value(), Gain::ONE);
        let latest = if self.rules.is_v2() { 0 } else { self.bounds.inflight_latest };
        self.bounds.inflight_hi = bdp.max(latest);
    }

    pub(super) fn check_drain(&mut self, ack: &Ack) {
        if self.mode == Mode::Startup && self.full_pipe.reached {
            self.mode = Mode::Drain;
            self.ssthresh = Some(self.inflight(self.max_bw.value(), Gain::ONE));
            self.reset_congestion_signals();
        }
        if self.mode == Mode::Drain
            && self.in_net_at_departure(ack, ack.in_flight)
                <= self.inflight(self.max_bw.value(), Gain::ONE)
        {
            self.mode = Mode::ProbeBw(Cycle::Down);
            self.start_probe_down(ack.now);
        }
    }
}
