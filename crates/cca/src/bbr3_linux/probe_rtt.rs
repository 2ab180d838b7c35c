//! The smallest round-trip time, and ProbeRTT, which drains the pipe to half a BDP to measure it.

use sojourn_core::Time;

use super::probe_bw::AckPhase;
use super::sample::Sample;
use super::{Bbr3Linux, Mode};
use crate::Ack;
use crate::fixed::whole_micros;

impl Bbr3Linux {
    pub(super) fn update_min_rtt(&mut self, ack: &Ack, sample: &Sample) {
        let now = self.jiffies.at(ack.now);
        let is_probe_due = self.take_rtt(ack, now);
        if is_probe_due && !self.idle_restart && self.mode != Mode::ProbeRtt {
            self.mode = Mode::ProbeRtt;
            // The mode is set first, so that `save_cwnd` keeps a larger window that was saved
            // before.
            self.save_cwnd();
            self.probe_rtt_done_stamp = None;
            self.ack_phase = AckPhase::ProbeStopping;
            self.start_round();
        }
        if self.mode == Mode::ProbeRtt {
            self.hold_probe_rtt(ack, now);
        }
        if sample.delivered > 0 {
            self.idle_restart = false;
        }
    }

    pub(super) fn check_probe_rtt_done(&mut self, now: Time) {
        let jiffies = self.jiffies.at(now);
        if self.probe_rtt_done_stamp.is_none_or(|done| jiffies <= done) {
            return;
        }
        self.probe_rtt_min_stamp = jiffies;
        self.cwnd = self.cwnd.max(self.prior_cwnd);
        self.bounds.reset_lower();
        if self.full_pipe.reached {
            // The wait for the next probe starts again, because raising inflight so soon may cause
            // loss. There is no queue to drain.
            self.start_probe_down(now);
            self.start_probe_cruise();
        } else {
            self.mode = Mode::Startup;
        }
    }

    /// Updates both filters with the round-trip time. True if ProbeRTT is due.
    pub(super) fn take_rtt(&mut self, ack: &Ack, now: Time) -> bool {
        let is_due = now > self.probe_rtt_min_stamp + self.config.probe_rtt_interval;
        if let Some(rtt) = ack.rtt.map(whole_micros) {
            let counts_equal = self.rules.is_v2();
            let is_smaller =
                self.probe_rtt_min.is_none_or(|min| rtt < min || (rtt == min && counts_equal));
            if is_smaller || (is_due && !ack.is_delayed) {
                self.probe_rtt_min = Some(rtt);
                self.probe_rtt_min_stamp = now;
            }
        }
        if let Some(rtt) = self.probe_rtt_min {
            let is_expired = now > self.min_rtt_stamp + self.config.min_rtt_window;
            if is_expired || self.min_rtt.is_none_or(|min| rtt <= min) {
                self.min_rtt = Some(rtt);
                self.min_rtt_stamp = self.probe_rtt_min_stamp;
            }
        }
        is_due
    }

    /// Keeps half a BDP in flight for the duration and for a round.
    fn hold_probe_rtt(&mut self, ack: &Ack, now: Time) {
        self.own_app_limit.mark(ack.total_delivered, ack.in_flight);
        match self.probe_rtt_done_stamp {
            None if ack.in_flight <= self.probe_rtt_cwnd() => {
                let duration = self.jiffies.whole(self.config.probe_rtt_duration);
                self.probe_rtt_done_stamp = Some(now + duration);
                self.probe_rtt_round_done = false;
                self.start_round();
            }
            None => {}
            Some(_) => {
                self.probe_rtt_round_done |= self.round_start;
                if self.probe_rtt_round_done {
                    self.check_probe_rtt_done(ack.now);
                }
            }
        }
    }
}
