//! ProbeRTT, section 5.3.4: drains the pipe to half a BDP to measure the round-trip time.

use sojourn_core::Time;

use super::model::Sample;
use super::{AckPhase, Bbr3, State};
use crate::Ack;

/// State of a ProbeRTT episode.
#[derive(Clone, Debug, Default)]
pub(super) struct ProbeRtt {
    /// `None` until few enough segments are in flight.
    done_stamp: Option<Time>,
    round_done: bool,
}

impl Bbr3 {
    pub(super) fn check_probe_rtt(&mut self, ack: &Ack, rs: &Sample, is_due: bool) {
        if self.state != State::ProbeRtt && is_due && !self.idle_restart {
            self.enter_probe_rtt();
        }
        if self.state == State::ProbeRtt {
            self.handle_probe_rtt(ack);
        }
        if rs.delivered > 0 {
            self.idle_restart = false;
        }
    }

    pub(super) fn check_probe_rtt_done(&mut self, now: Time) {
        if self.probe_rtt.done_stamp.is_some_and(|done| now > done) {
            self.min_rtt.probe_rtt_min_stamp = now;
            self.restore_cwnd();
            self.exit_probe_rtt(now);
        }
    }

    /// `ProbeRTTCwnd`.
    pub(super) fn probe_rtt_cwnd(&self) -> u32 {
        self.bdp_multiple(self.bw, self.config.probe_rtt_cwnd_gain).max(self.config.min_pipe_cwnd)
    }

    fn enter_probe_rtt(&mut self) {
        self.save_cwnd();
        self.state = State::ProbeRtt;
        self.pacing_gain = 1.0;
        self.cwnd_gain = self.config.probe_rtt_cwnd_gain;
        self.probe_rtt = ProbeRtt::default();
        self.probe_bw.ack_phase = AckPhase::ProbeStopping;
        self.start_round();
    }

    fn handle_probe_rtt(&mut self, ack: &Ack) {
        // MarkConnectionAppLimited: samples of this state have low rates that must not count.
        self.own_app_limit.mark(self.delivered, ack.in_flight);
        match self.probe_rtt.done_stamp {
            None if ack.in_flight <= self.probe_rtt_cwnd() => {
                self.probe_rtt.done_stamp = Some(ack.now + self.config.probe_rtt_duration);
                self.probe_rtt.round_done = false;
                self.start_round();
            }
            None => {}
            Some(_) => {
                self.probe_rtt.round_done |= self.rounds.start;
                if self.probe_rtt.round_done {
                    self.check_probe_rtt_done(ack.now);
                }
            }
        }
    }

    fn exit_probe_rtt(&mut self, now: Time) {
        self.reset_short_term_model();
        if self.full_bw.reached {
            self.start_probe_bw_down(now);
            self.start_probe_bw_cruise();
        } else {
            self.enter_startup();
        }
    }
}
