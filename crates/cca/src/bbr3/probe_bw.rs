//! ProbeBW, section 5.3.3: DOWN drains the queue, CRUISE keeps headroom, REFILL fills the pipe, UP
//! looks for more.

use sojourn_core::{Span, Time};

use super::model::Sample;
use super::{Bbr3, INFINITY, State};
use crate::Ack;

/// The growth of `inflight_longterm` doubles at most this many times.
const MAX_UP_ROUNDS: u32 = 30;

/// How the acknowledgements that arrive relate to the last probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AckPhase {
    Init,
    Refilling,
    ProbeStarting,
    ProbeFeedback,
    ProbeStopping,
}

/// State of the probing cycle.
#[derive(Clone, Debug)]
pub(super) struct ProbeBw {
    pub(super) ack_phase: AckPhase,
    pub(super) cycle_stamp: Time,
    /// `bw_probe_wait`.
    pub(super) wait: Span,
    pub(super) rounds_since_probe_up: u32,
    /// `is_bw_probe_sample`.
    pub(super) is_probe_sample: bool,
    pub(super) prev_probe_too_high: bool,
    pub(super) prev_probe_precautionary: bool,
    /// `bw_probe_up_rounds`.
    pub(super) up_rounds: u32,
    /// `bw_probe_up_acked`.
    up_acked: u32,
    /// `probe_up_acked_per_inc`; `None` stands for infinity.
    up_acked_per_inc: Option<u32>,
}

impl ProbeBw {
    pub(super) fn new(now: Time) -> Self {
        Self {
            ack_phase: AckPhase::Init,
            cycle_stamp: now,
            wait: Span::ZERO,
            rounds_since_probe_up: 0,
            is_probe_sample: false,
            prev_probe_too_high: false,
            prev_probe_precautionary: false,
            up_rounds: 0,
            up_acked: 0,
            up_acked_per_inc: None,
        }
    }
}

impl Bbr3 {
    pub(super) fn start_probe_bw_down(&mut self, now: Time) {
        self.reset_congestion_signals();
        self.probe_bw.up_acked_per_inc = None;
        self.pick_probe_wait();
        self.probe_bw.cycle_stamp = now;
        self.probe_bw.ack_phase = AckPhase::ProbeStopping;
        self.start_round();
        self.enter(State::ProbeBwDown, self.config.probe_down_pacing_gain, self.config.cwnd_gain);
    }

    pub(super) fn start_probe_bw_cruise(&mut self) {
        self.enter(State::ProbeBwCruise, 1.0, self.config.cwnd_gain);
    }

    pub(super) fn start_probe_bw_refill(&mut self) {
        self.reset_short_term_model();
        self.probe_bw.up_rounds = 0;
        self.probe_bw.up_acked = 0;
        self.probe_bw.prev_probe_precautionary = false;
        self.probe_bw.ack_phase = AckPhase::Refilling;
        self.start_round();
        self.enter(State::ProbeBwRefill, 1.0, self.config.cwnd_gain);
    }

    fn start_probe_bw_up(&mut self, rs: &Sample) {
        self.probe_bw.ack_phase = AckPhase::ProbeStarting;
        self.start_round();
        self.full_bw.reset(rs.delivery_rate_or_zero());
        let Self { config, .. } = self;
        let (pacing_gain, cwnd_gain) = (config.probe_up_pacing_gain, config.probe_up_cwnd_gain);
        self.enter(State::ProbeBwUp, pacing_gain, cwnd_gain);
        self.raise_inflight_longterm_slope();
    }

    fn enter(&mut self, state: State, pacing_gain: f64, cwnd_gain: f64) {
        self.state = state;
        self.pacing_gain = pacing_gain;
        self.cwnd_gain = cwnd_gain;
    }

    pub(super) fn update_probe_bw_cycle_phase(&mut self, ack: &Ack, rs: &Sample) {
        if !self.full_bw.reached || self.adapt_long_term_model(ack, rs) {
            return;
        }
        match self.state {
            State::ProbeBwDown => {
                if self.is_time_to_probe_bw(ack.now) {
                    self.start_probe_bw_refill();
                } else if self.is_time_to_cruise(ack.in_flight) {
                    self.start_probe_bw_cruise();
                }
            }
            State::ProbeBwCruise => {
                if self.is_time_to_probe_bw(ack.now) {
                    self.start_probe_bw_refill();
                }
            }
            State::ProbeBwRefill => {
                if self.rounds.start {
                    self.probe_bw.is_probe_sample = true;
                    self.start_probe_bw_up(rs);
                }
            }
            State::ProbeBwUp => {
                if self.is_time_to_go_down(ack, rs) {
                    self.probe_bw.prev_probe_too_high = false;
                    self.start_probe_bw_down(ack.now);
                }
            }
            State::Startup | State::Drain | State::ProbeRtt => {}
        }
    }

    /// `TargetInflight`: the BDP, unless congestion cut the window below it.
    pub(super) fn target_inflight(&self) -> u32 {
        self.bdp_multiple(self.bw, 1.0).min(self.cwnd)
    }

    pub(super) fn inflight_with_headroom(&self) -> u32 {
        let inflight_longterm = self.long_term.inflight;
        if inflight_longterm == INFINITY {
            return INFINITY;
        }
        let headroom = (self.config.headroom.0 * f64::from(inflight_longterm)) as u32;
        inflight_longterm.saturating_sub(headroom.max(1)).max(self.config.min_pipe_cwnd)
    }

    fn is_time_to_probe_bw(&self, now: Time) -> bool {
        now > self.probe_bw.cycle_stamp + self.probe_bw.wait || self.is_reno_coexistence_time()
    }

    /// True after as many rounds as a Reno flow of this size would have between two losses.
    fn is_reno_coexistence_time(&self) -> bool {
        let rounds = self.target_inflight().min(self.config.probe_max_rounds);
        self.probe_bw.rounds_since_probe_up >= rounds
    }

    fn pick_probe_wait(&mut self) {
        self.probe_bw.rounds_since_probe_up = self.random.below(2) as u32;
        let random = self.config.probe_wait_random.as_nanos() as f64 * self.random.unit();
        self.probe_bw.wait = self.config.probe_wait_base + Span::from_nanos(random as u64);
    }

    fn is_time_to_cruise(&self, in_flight: u32) -> bool {
        in_flight <= self.inflight_with_headroom()
            && in_flight <= self.inflight(self.max_bw.max_bw(), 1.0)
    }

    fn is_time_to_go_down(&mut self, ack: &Ack, rs: &Sample) -> bool {
        // The draft compares what is in flight now. After an acknowledgement that is always below
        // the bound, which is also the window, so here it is what was in flight before.
        if self.probe_bw.prev_probe_too_high && ack.prior_in_flight >= self.long_term.inflight {
            self.probe_bw.prev_probe_precautionary = true;
            return true;
        }
        if ack.was_cwnd_full && self.cwnd >= self.long_term.inflight {
            // Bandwidth is limited by inflight_longterm, so the full pipe is sought from this rate
            // on.
            self.full_bw.reset(rs.delivery_rate_or_zero());
            return false;
        }
        self.full_bw.now
    }

    fn raise_inflight_longterm_slope(&mut self) {
        let growth_this_round = 1 << self.probe_bw.up_rounds;
        self.probe_bw.up_rounds = (self.probe_bw.up_rounds + 1).min(MAX_UP_ROUNDS);
        self.probe_bw.up_acked_per_inc = Some((self.cwnd / growth_this_round).max(1));
    }

    pub(super) fn probe_inflight_longterm_upward(&mut self, ack: &Ack) {
        if !ack.was_cwnd_full || self.cwnd < self.long_term.inflight {
            return;
        }
        let probe = &mut self.probe_bw;
        probe.up_acked += ack.delivered;
        if let Some(per_inc) = probe.up_acked_per_inc.filter(|per_inc| probe.up_acked >= *per_inc) {
            let delta = probe.up_acked / per_inc;
            probe.up_acked -= delta * per_inc;
            self.long_term.inflight = self.long_term.inflight.saturating_add(delta);
        }
        if self.rounds.start {
            self.raise_inflight_longterm_slope();
        }
    }

    /// True if it changed the state.
    fn adapt_long_term_model(&mut self, ack: &Ack, rs: &Sample) -> bool {
        if self.probe_bw.ack_phase == AckPhase::ProbeStarting && self.rounds.start {
            self.probe_bw.ack_phase = AckPhase::ProbeFeedback;
        }
        if self.probe_bw.ack_phase == AckPhase::ProbeStopping && self.rounds.start {
            self.probe_bw.is_probe_sample = false;
            self.probe_bw.ack_phase = AckPhase::Init;
            if self.state.is_probe_bw() {
                if !rs.is_app_limited {
                    self.max_bw.advance();
                }
                // Precautionary probing: reaching the bound did no harm, so the next probe goes
                // beyond it.
                if self.probe_bw.prev_probe_precautionary && !self.probe_bw.prev_probe_too_high {
                    self.start_probe_bw_refill();
                    return true;
                }
            }
        }
        if !self.is_inflight_too_high(rs.lost, rs.tx_in_flight)
            && self.long_term.inflight != INFINITY
        {
            self.long_term.inflight = self.long_term.inflight.max(rs.tx_in_flight);
            if self.state == State::ProbeBwUp {
                self.probe_inflight_longterm_upward(ack);
            }
        }
        false
    }
}
