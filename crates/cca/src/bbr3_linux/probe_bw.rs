//! ProbeBW: DOWN drains the queue, CRUISE keeps headroom, REFILL fills the pipe, UP looks for more.

use sojourn_core::{Span, Time};

use super::sample::Sample;
use super::{Bbr3Linux, Mode, UNLIMITED, UpExit};
use crate::fixed::{Bw, Gain};
use crate::{Ack, RecoveryState};

/// The growth of `inflight_hi` doubles at most this many times.
const MAX_PROBE_UP_ROUNDS: u32 = 30;

/// The phase of the ProbeBW cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cycle {
    Up,
    Down,
    Cruise,
    Refill,
}

/// How the acknowledgements that arrive relate to the last probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AckPhase {
    /// They report nothing of a probe.
    Init,
    Refilling,
    /// A probe has begun, but these acknowledgements are for what left before.
    ProbeStarting,
    /// They report the probe under way.
    ProbeFeedback,
    /// They still report the probe that has ended.
    ProbeStopping,
}

impl Bbr3Linux {
    pub(super) fn update_cycle_phase(&mut self, ack: &Ack, sample: &Sample) {
        if !self.full_pipe.reached || self.adapt_upper_bounds(ack, sample) {
            return;
        }
        let Mode::ProbeBw(cycle) = self.mode else { return };
        match cycle {
            Cycle::Cruise => {
                self.check_time_to_probe(ack);
            }
            Cycle::Refill => {
                if self.round_start {
                    self.is_probe_sample = true;
                    self.start_probe_up(ack, sample.bw);
                }
            }
            Cycle::Up => {
                if self.is_time_to_go_down(ack, sample) {
                    self.prev_probe_too_high = false;
                    self.start_probe_down(ack.now);
                }
            }
            Cycle::Down => {
                if !self.check_time_to_probe(ack) && self.is_time_to_cruise(ack) {
                    self.start_probe_cruise();
                }
            }
        }
    }

    /// How much should be in flight: the BDP, unless the window was cut below it.
    pub(super) fn target_inflight(&self) -> u32 {
        self.inflight(self.bw(), Gain::ONE).min(self.cwnd)
    }

    pub(super) fn start_probe_down(&mut self, now: Time) {
        self.reset_congestion_signals();
        self.probe_up_count = None;
        self.pick_probe_wait();
        self.cycle_start = now;
        self.ack_phase = AckPhase::ProbeStopping;
        self.start_round();
        self.set_cycle(Cycle::Down);
    }

    pub(super) fn start_probe_cruise(&mut self) {
        if self.bounds.inflight_lo != UNLIMITED {
            self.bounds.inflight_lo = self.bounds.inflight_lo.min(self.bounds.inflight_hi);
        }
        self.set_cycle(Cycle::Cruise);
    }

    fn start_probe_refill(&mut self, probe_up_rounds: u32) {
        self.bounds.reset_lower();
        self.probe_up_rounds = probe_up_rounds;
        self.probe_up_acks = 0;
        self.stopped_risky_probe = false;
        self.got_ok_probe_sample = false;
        self.ack_phase = AckPhase::Refilling;
        self.start_round();
        self.set_cycle(Cycle::Refill);
    }

    fn start_probe_up(&mut self, ack: &Ack, bw: Bw) {
        self.ack_phase = AckPhase::ProbeStarting;
        self.start_round();
        self.cycle_start = ack.now;
        self.full_pipe.restart(bw);
        self.set_cycle(Cycle::Up);
        self.raise_inflight_hi_slope();
    }

    fn set_cycle(&mut self, cycle: Cycle) {
        self.mode = Mode::ProbeBw(cycle);
        self.try_fast_path = false;
    }

    /// Decides when to probe next, at random so that flows do not probe together.
    fn pick_probe_wait(&mut self) {
        self.rounds_since_probe =
            self.random.below(u64::from(self.config.probe_random_rounds)) as u32;
        let spread = self.config.probe_wait_random.as_micros().max(1);
        let random = Span::from_micros(self.random.below(spread));
        self.probe_wait = self.config.probe_wait_base + random;
    }

    /// Starts REFILL when enough time or rounds have passed, or when marks have ceased. True if so.
    fn check_time_to_probe(&mut self, ack: &Ack) -> bool {
        if self.has_marks_without_loss() && ack.state == RecoveryState::Open {
            let growth = self.config.ecn_reprobe_gain.0.of(u64::from(self.bounds.inflight_hi));
            self.start_probe_refill(growth.max(1).ilog2().min(MAX_PROBE_UP_ROUNDS));
            return true;
        }
        let is_time = ack.now > self.cycle_start + self.probe_wait
            || self.rounds_since_probe >= self.config.probe_max_rounds.min(self.target_inflight());
        if is_time {
            self.start_probe_refill(0);
        }
        is_time
    }

    fn is_time_to_cruise(&self, ack: &Ack) -> bool {
        let in_net = self.in_net_at_departure(ack, ack.prior_in_flight);
        let is_long_enough = !self.rules.drain_to_target
            && self.min_rtt.is_some_and(|rtt| ack.now.since(self.cycle_start) > rtt);
        in_net <= self.inflight_with_headroom()
            && (in_net <= self.inflight(self.max_bw.value(), Gain::ONE) || is_long_enough)
    }

    fn is_time_to_go_down(&mut self, ack: &Ack, sample: &Sample) -> bool {
        let in_net = self.in_net_at_departure(ack, ack.prior_in_flight);
        if self.prev_probe_too_high && in_net >= self.bounds.inflight_hi {
            self.stopped_risky_probe = true;
            return true;
        }
        match self.config.probe_up_exit {
            UpExit::Plateau => {
                if ack.was_cwnd_full && self.cwnd >= self.bounds.inflight_hi {
                    // Bandwidth is limited by the bound, so the full pipe is sought from this rate
                    // on.
                    self.full_pipe.restart(sample.bw);
                    false
                } else {
                    self.full_pipe.now
                }
            }
            UpExit::Inflight => {
                let elapsed = ack.now.since(self.cycle_start);
                let target = self.inflight(self.max_bw.value(), self.config.probe_up_pacing_gain);
                self.min_rtt.is_some_and(|rtt| elapsed > rtt) && in_net >= target
            }
        }
    }

    /// Adapts `inflight_hi` to what probing found. True if it changed the phase.
    fn adapt_upper_bounds(&mut self, ack: &Ack, sample: &Sample) -> bool {
        if self.ack_phase == AckPhase::ProbeStarting && self.round_start {
            self.ack_phase = AckPhase::ProbeFeedback;
        }
        if self.ack_phase == AckPhase::ProbeStopping && self.round_start {
            self.is_probe_sample = false;
            self.ack_phase = AckPhase::Init;
            if matches!(self.mode, Mode::ProbeBw(_)) {
                if !sample.is_app_limited {
                    self.max_bw.advance();
                }
                if self.stopped_risky_probe && !self.prev_probe_too_high {
                    // Reaching the bound did no harm: probes again, beyond it.
                    self.start_probe_refill(0);
                    return true;
                }
            }
        }
        if self.is_inflight_too_high(sample) {
            if self.is_probe_sample {
                self.handle_inflight_too_high(ack.now, sample.tx_in_flight, sample.is_app_limited);
            }
            return false;
        }
        self.got_ok_probe_sample |= self.is_probe_sample;
        let bounds = &mut self.bounds;
        if bounds.inflight_hi != UNLIMITED || bounds.bw_hi != Bw::UNLIMITED {
            bounds.inflight_hi = bounds.inflight_hi.max(sample.tx_in_flight);
            bounds.bw_hi = bounds.bw_hi.max(sample.bw);
            if self.mode == Mode::ProbeBw(Cycle::Up) {
                self.probe_inflight_hi_upward(ack);
            }
        }
        false
    }

    /// Raises `inflight_hi` by one segment per `probe_up_count` acknowledged ones.
    pub(super) fn probe_inflight_hi_upward(&mut self, ack: &Ack) {
        if !ack.was_cwnd_full || self.cwnd < self.bounds.inflight_hi {
            if self.rules.is_v2() {
                self.probe_up_acks = 0;
            }
            return;
        }
        self.probe_up_acks += ack.delivered;
        if let Some(count) = self.probe_up_count.filter(|count| self.probe_up_acks >= *count) {
            let growth = self.probe_up_acks / count;
            self.probe_up_acks -= growth * count;
            self.bounds.inflight_hi = self.bounds.inflight_hi.saturating_add(growth);
            self.try_fast_path = false;
        }
        if self.round_start {
            self.raise_inflight_hi_slope();
        }
    }

    /// Doubles the growth of `inflight_hi` for the next round.
    pub(super) fn raise_inflight_hi_slope(&mut self) {
        let growth = 1 << self.probe_up_rounds;
        self.probe_up_rounds = (self.probe_up_rounds + 1).min(MAX_PROBE_UP_ROUNDS);
        self.probe_up_count = Some((self.cwnd / growth).max(1));
    }
}
