//! What a variant that knows the receive window ([`bbr_n_plus`](crate::bbr_n_plus)) asks of BBR:
//! to hold the count of rounds without growth, to end STARTUP and to begin it again.

use sojourn_core::Span;

use super::bandwidth::Bandwidth;
use super::{Bbr3, INFINITY, State};
use crate::Ack;

impl Bbr3 {
    /// From now on rounds without growth are not counted.
    pub(crate) fn hold_plateau(&mut self, is_held: bool) {
        self.full_bw.is_held = is_held;
    }

    pub(crate) fn is_round_start(&self) -> bool {
        self.rounds.start
    }

    /// `round_count`.
    pub(crate) fn round(&self) -> u64 {
        self.rounds.count
    }

    pub(crate) fn min_rtt(&self) -> Option<Span> {
        self.min_rtt.min_rtt
    }

    pub(crate) fn is_in_startup(&self) -> bool {
        self.state == State::Startup
    }

    /// Ends STARTUP as if the pipe were full. There may be no queue to drain.
    pub(crate) fn leave_startup(&mut self, ack: &Ack) {
        self.full_bw.reached = true;
        self.full_bw.now = true;
        if ack.in_flight > self.bdp_multiple(self.bw, 1.0) {
            self.enter_drain();
        } else {
            self.start_probe_bw_down(ack.now);
            self.start_probe_bw_cruise();
        }
    }

    /// No loss has bounded what the network bears, and the present state may be left.
    pub(crate) fn may_begin_again(&self) -> bool {
        self.long_term.inflight == INFINITY && self.state.is_probe_bw()
    }

    pub(crate) fn begin_startup_again(&mut self) {
        self.full_bw.reset(Bandwidth::ZERO);
        self.full_bw.reached = false;
        self.probe_bw.is_probe_sample = false;
        self.reset_short_term_model();
        self.start_round();
        self.enter_startup();
    }

    /// Bounds window and pacing of STARTUP, which otherwise never fall.
    pub(crate) fn bound_startup(&mut self, most: u32) {
        if self.state != State::Startup {
            return;
        }
        self.cwnd = self.cwnd.min(most.max(self.config.min_pipe_cwnd));
        let fastest = self.max_bw.max_bw().times(self.config.startup_pacing_gain);
        if fastest > Bandwidth::ZERO && self.pacing_rate > fastest {
            self.pacing_rate = fastest;
            self.set_send_quantum();
        }
    }
}
