//! The smallest round-trip time, and ProbeRTT, which empties the pipe to measure it.

use sojourn_core::Time;

use super::{Bbr, Mode};
use crate::Ack;
use crate::fixed::whole_micros;

impl Bbr {
    pub(super) fn update_min_rtt(&mut self, ack: &Ack) {
        let now = self.jiffies.at(ack.now);
        let is_expired = now > self.min_rtt_stamp + self.config.probe_rtt_interval;
        if let Some(rtt) = ack.rtt.map(whole_micros) {
            let is_smaller = self.min_rtt.is_none_or(|min| rtt < min);
            if is_smaller || (is_expired && !ack.is_delayed) {
                self.min_rtt = Some(rtt);
                self.min_rtt_stamp = now;
            }
        }
        if is_expired && !self.idle_restart && self.mode != Mode::ProbeRtt {
            self.mode = Mode::ProbeRtt;
            // The mode is set first, so that `save_cwnd` keeps a larger window that was saved
            // before.
            self.save_cwnd();
            self.probe_rtt_done_stamp = None;
        }
        if self.mode == Mode::ProbeRtt {
            self.hold_probe_rtt(ack, now);
        }
        if ack.rate.as_ref().is_some_and(|rate| rate.delivered > 0) {
            self.idle_restart = false;
        }
    }

    pub(super) fn check_probe_rtt_done(&mut self, now: Time) {
        let now = self.jiffies.at(now);
        if self.probe_rtt_done_stamp.is_some_and(|done| now > done) {
            self.min_rtt_stamp = now;
            self.cwnd = self.cwnd.max(self.prior_cwnd);
            self.reset_mode();
        }
    }

    /// Keeps the pipe nearly empty for the duration and for a round.
    fn hold_probe_rtt(&mut self, ack: &Ack, now: Time) {
        self.own_app_limit.mark(ack.total_delivered, ack.in_flight);
        match self.probe_rtt_done_stamp {
            None if ack.in_flight <= self.config.min_cwnd => {
                let duration = self.jiffies.whole(self.config.probe_rtt_duration);
                self.probe_rtt_done_stamp = Some(now + duration);
                self.probe_rtt_round_done = false;
                self.next_round_delivered = ack.total_delivered;
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
