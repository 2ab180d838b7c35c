//! BBR version 3 as the IETF specifies it: draft-ietf-ccwg-bbr-06 (repository revision 4ce5e87).
//!
//! Names are the draft's, and so is the order of steps. Volumes are counted in segments (SMSS),
//! times are exact. Where the draft contradicts itself or leaves something open, the model's page
//! in the documentation says what was decided.

mod bandwidth;
mod control;
mod drain;
mod model;
mod probe_bw;
mod probe_rtt;
mod recovery;
mod startup;
#[cfg(test)]
mod tests;

use sojourn_core::{Rate, Span, Stream, Time};

use crate::bbr::app_limit::OwnAppLimit;
use crate::bbr::params::{Percent, Ratio, parameters};
use crate::{Ack, Congestion, CongestionKind, Controller, Lost, Quantum, Restart, Setup, Undo};
use bandwidth::Bandwidth;
use model::{ExtraAcked, LongTerm, MaxBwFilter, MinRtt, Rounds, Sample, ShortTerm};
use probe_bw::{AckPhase, ProbeBw};
use probe_rtt::ProbeRtt;
use recovery::{Recovery, UndoState};
use startup::FullBw;

parameters! {
    /// The parameters of the draft's BBR version 3.
    "bbr3" {
        startup_pacing_gain: f64 = 2.77, "2.77", "Pacing gain of STARTUP (StartupPacingGain)";
        cwnd_gain: f64 = 2.0, "2", "Window gain (DefaultCwndGain)";
        drain_pacing_gain: f64 = 0.5, "0.5", "Pacing gain of DRAIN (DrainPacingGain)";
        drain_max_rounds: u32 = 3, "3", "Rounds after which DRAIN ends in any case";
        probe_up_pacing_gain: f64 = 1.25, "1.25", "Pacing gain of PROBE_BW:UP";
        probe_up_cwnd_gain: f64 = 2.25, "2.25", "Window gain of PROBE_BW:UP";
        probe_down_pacing_gain: f64 = 0.9, "0.9", "Pacing gain of PROBE_BW:DOWN";
        full_bw_thresh: f64 = 1.25, "1.25", "Growth of bandwidth that shows the pipe is not full";
        full_bw_rounds: u32 = 3, "3", "Rounds without that growth after which the pipe is full";
        full_loss_cnt: u32 = 6, "6", "Acknowledgements with losses in a round that end STARTUP, if the loss rate is too high (BBRStartupFullLossCnt)";
        loss_thresh: Ratio = Ratio(0.02), "0.02", "Loss rate that is too high while probing (LossThresh)";
        beta: Ratio = Ratio(0.7), "0.7", "Share kept when loss cuts a bound (Beta)";
        headroom: Ratio = Ratio(0.15), "0.15", "Share of inflight_longterm left free while cruising (Headroom)";
        probe_wait_base: Span = Span::from_secs(2), "2s", "Least time between probes";
        probe_wait_random: Span = Span::from_secs(1), "1s", "Most time added to that at random";
        probe_max_rounds: u32 = 63, "63", "Most rounds between probes";
        min_rtt_window: Span = Span::from_secs(10), "10s", "Age at which the smallest round-trip time is replaced (MinRTTFilterLen)";
        probe_rtt_interval: Span = Span::from_secs(5), "5s", "Time without a smaller round-trip time that leads to PROBE_RTT (ProbeRTTInterval)";
        probe_rtt_duration: Span = Span::from_millis(200), "200ms", "Least time in PROBE_RTT (ProbeRTTDuration)";
        probe_rtt_cwnd_gain: f64 = 0.5, "0.5", "Window of PROBE_RTT, times the BDP (ProbeRTTCwndGain)";
        min_pipe_cwnd: u32 = 4, "4", "Least window (MinPipeCwnd)";
        extra_acked_window: u32 = 10, "10", "Rounds that aggregation is remembered, after STARTUP (ExtraAckedFilterLen)";
        pacing_margin: Percent = Percent(1), "1%", "Share of the bandwidth left unused by pacing (PacingMarginPercent)";
        longterm_when_app_limited: bool = false, "", "Too much loss lowers inflight_longterm even when the application was the limit, as the draft's test cases want but its pseudocode does not";
    }
}

/// A volume without bound.
const INFINITY: u32 = u32::MAX;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Startup,
    Drain,
    ProbeBwDown,
    ProbeBwCruise,
    ProbeBwRefill,
    ProbeBwUp,
    ProbeRtt,
}

impl State {
    const fn is_probe_bw(self) -> bool {
        matches!(
            self,
            Self::ProbeBwDown | Self::ProbeBwCruise | Self::ProbeBwRefill | Self::ProbeBwUp
        )
    }

    /// Accelerating: losses do not lower the short-term bounds.
    const fn is_probing_bw(self) -> bool {
        matches!(self, Self::Startup | Self::ProbeBwRefill | Self::ProbeBwUp)
    }
}

/// BBR version 3 of the IETF draft.
#[derive(Clone, Debug)]
pub struct Bbr3 {
    config: Config,
    random: Stream,
    smss: u32,
    initial_cwnd: u32,

    state: State,
    pacing_gain: f64,
    cwnd_gain: f64,

    /// `C.cwnd`.
    cwnd: u32,
    /// `C.pacing_rate`.
    pacing_rate: Bandwidth,
    has_seen_rtt: bool,
    /// `C.send_quantum`.
    send_quantum: u32,
    /// `C.delivered`.
    delivered: u64,

    rounds: Rounds,
    max_bw: MaxBwFilter,
    /// What the model thinks safe now: the lesser of `max_bw` and `bw_shortterm`.
    bw: Bandwidth,
    min_rtt: MinRtt,
    extra_acked: ExtraAcked,
    long_term: LongTerm,
    short_term: ShortTerm,
    full_bw: FullBw,
    drain_start_round: u64,
    probe_bw: ProbeBw,
    probe_rtt: ProbeRtt,
    recovery: Recovery,
    idle_restart: bool,
    own_app_limit: OwnAppLimit,
}

impl Bbr3 {
    /// `OnInit`, section 5.2.1.
    pub fn new(config: Config, setup: Setup) -> Self {
        let mut bbr = Self {
            random: setup.random,
            smss: setup.mss.max(1),
            initial_cwnd: setup.initial_cwnd,
            state: State::Startup,
            pacing_gain: config.startup_pacing_gain,
            cwnd_gain: config.cwnd_gain,
            cwnd: setup.initial_cwnd,
            pacing_rate: Bandwidth::ZERO,
            has_seen_rtt: false,
            send_quantum: 2,
            delivered: 0,
            rounds: Rounds::default(),
            max_bw: MaxBwFilter::default(),
            bw: Bandwidth::ZERO,
            min_rtt: MinRtt::new(setup.now, setup.handshake_rtt),
            extra_acked: ExtraAcked::new(setup.now),
            long_term: LongTerm::default(),
            short_term: ShortTerm::default(),
            full_bw: FullBw::default(),
            drain_start_round: 0,
            probe_bw: ProbeBw::new(setup.now),
            probe_rtt: ProbeRtt::default(),
            recovery: Recovery::default(),
            idle_restart: false,
            own_app_limit: OwnAppLimit::default(),
            config,
        };
        bbr.init_pacing_rate(setup.handshake_rtt);
        bbr
    }

    /// `UpdateModelAndState`, section 5.2.3.
    fn update_model_and_state(&mut self, ack: &Ack, rs: &Sample) {
        self.update_latest_delivery_signals(rs);
        self.update_congestion_signals(rs);
        self.update_ack_aggregation(ack);
        self.check_full_bw_reached(rs);
        self.check_startup_done(ack, rs);
        self.check_drain_done(ack);
        self.update_probe_bw_cycle_phase(ack, rs);
        let is_probe_rtt_due = self.update_min_rtt(ack);
        self.check_probe_rtt(ack, rs, is_probe_rtt_due);
        self.advance_latest_delivery_signals(rs);
        self.bw = self.max_bw.max_bw().min(self.short_term.bw);
    }
}

impl Controller for Bbr3 {
    fn on_ack(&mut self, ack: &Ack) {
        self.delivered = ack.total_delivered;
        self.follow_recovery(ack.state);
        let rs = Sample::of(ack, &self.own_app_limit);
        self.update_model_and_state(ack, &rs);
        self.update_control_parameters(ack);
    }

    fn on_lost(&mut self, lost: &Lost) {
        self.delivered = lost.total_delivered;
        self.handle_lost_packet(lost);
    }

    fn on_congestion(&mut self, congestion: &Congestion) {
        match congestion.kind {
            CongestionKind::Loss => self.on_enter_fast_recovery(),
            CongestionKind::Timeout => self.on_enter_rto(congestion.in_flight),
            // The draft has no response to ECN.
            CongestionKind::Ecn => {}
        }
    }

    fn on_recovered(&mut self, _now: Time) {
        self.on_exit_recovery();
    }

    fn on_undo(&mut self, _undo: &Undo) {
        self.handle_spurious_loss_detection();
    }

    /// `HandleRestartFromIdle`, section 5.4.1.
    fn on_restart(&mut self, restart: &Restart) {
        if !restart.is_app_limited && self.state != State::ProbeRtt {
            return;
        }
        self.idle_restart = true;
        self.extra_acked.restart(restart.now);
        if self.state.is_probe_bw() {
            self.set_pacing_rate_with_gain(1.0);
        } else if self.state == State::ProbeRtt {
            self.check_probe_rtt_done(restart.now);
        }
    }

    fn cwnd(&self) -> u32 {
        self.cwnd
    }

    /// The draft has none.
    fn ssthresh(&self) -> Option<u32> {
        None
    }

    fn pacing_rate(&self) -> Option<Rate> {
        Some(self.pacing_rate.rate(self.smss))
    }

    fn send_quantum(&self) -> Quantum {
        Quantum::Segments(self.send_quantum)
    }

    fn uses_prr(&self) -> bool {
        false
    }

    fn phase(&self) -> &'static str {
        match self.state {
            State::Startup => "STARTUP",
            State::Drain => "DRAIN",
            State::ProbeBwDown => "PROBE_BW:DOWN",
            State::ProbeBwCruise => "PROBE_BW:CRUISE",
            State::ProbeBwRefill => "PROBE_BW:REFILL",
            State::ProbeBwUp => "PROBE_BW:UP",
            State::ProbeRtt => "PROBE_RTT",
        }
    }

    fn bandwidth(&self) -> Option<Rate> {
        (self.bw > Bandwidth::ZERO).then(|| self.bw.rate(self.smss))
    }

    fn model_min_rtt(&self) -> Option<Span> {
        self.min_rtt.min_rtt
    }
}
