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
mod receiver;
mod recovery;
mod startup;
#[cfg(test)]
mod tests;

use alloc::vec;
use alloc::vec::Vec;

use sojourn_core::param::Flag;
use sojourn_core::{Rate, Span, Stream, Time};

use crate::bbr::app_limit::OwnAppLimit;
use crate::forms::{Factor, Percent, Ratio};
use crate::{
    Ack, Algorithm, Congestion, CongestionKind, Controller, Lost, Quantum, Restart, Setup, Undo,
};
use bandwidth::Bandwidth;
use model::{ExtraAcked, LongTerm, MaxBwFilter, MinRtt, Rounds, Sample, ShortTerm};
use probe_bw::{AckPhase, ProbeBw};
use probe_rtt::ProbeRtt;
use recovery::{Recovery, UndoState};
use startup::FullBw;

sojourn_core::params! {
    /// The parameters of the draft's BBR version 3.
    pub struct Config: "bbr3", "BBR version 3, draft-ietf-ccwg-bbr-06" {
        pub(crate) startup_pacing_gain: f64 as Factor = "2.77", "Pacing gain of STARTUP (StartupPacingGain)";
        pub(crate) cwnd_gain: f64 as Factor = "2", "Window gain (DefaultCwndGain)";
        pub(crate) drain_pacing_gain: f64 as Factor = "0.5", "Pacing gain of DRAIN (DrainPacingGain)";
        pub(crate) drain_max_rounds: u32 = "3", "Rounds after which DRAIN ends in any case";
        pub(crate) probe_up_pacing_gain: f64 as Factor = "1.25", "Pacing gain of PROBE_BW:UP";
        pub(crate) probe_up_cwnd_gain: f64 as Factor = "2.25", "Window gain of PROBE_BW:UP";
        pub(crate) probe_down_pacing_gain: f64 as Factor = "0.9", "Pacing gain of PROBE_BW:DOWN";
        pub(crate) full_bw_thresh: f64 as Factor = "1.25", "Growth of bandwidth that shows the pipe is not full";
        pub(crate) full_bw_rounds: u32 = "3", "Rounds without that growth after which the pipe is full";
        pub(crate) full_loss_cnt: u32 = "6", "Acknowledgements with losses in a round that end STARTUP, if the loss rate is too high (BBRStartupFullLossCnt)";
        pub(crate) loss_thresh: Ratio = "0.02", "Loss rate that is too high while probing (LossThresh)";
        pub(crate) beta: Ratio = "0.7", "Share kept when loss cuts a bound (Beta)";
        pub(crate) headroom: Ratio = "0.15", "Share of inflight_longterm left free while cruising (Headroom)";
        pub(crate) probe_wait_base: Span = "2s", "Least time between probes";
        pub(crate) probe_wait_random: Span = "1s", "Most time added to that at random";
        pub(crate) probe_max_rounds: u32 = "63", "Most rounds between probes";
        pub(crate) min_rtt_window: Span = "10s", "Age at which the smallest round-trip time is replaced (MinRTTFilterLen)";
        pub(crate) probe_rtt_interval: Span = "5s", "Time without a smaller round-trip time that leads to PROBE_RTT (ProbeRTTInterval)";
        pub(crate) probe_rtt_duration: Span = "200ms", "Least time in PROBE_RTT (ProbeRTTDuration)";
        pub(crate) probe_rtt_cwnd_gain: f64 as Factor = "0.5", "Window of PROBE_RTT, times the BDP (ProbeRTTCwndGain)";
        pub(crate) min_pipe_cwnd: u32 = "4", "Least window (MinPipeCwnd)";
        pub(crate) extra_acked_window: u32 = "10", "Rounds that aggregation is remembered, after STARTUP (ExtraAckedFilterLen)";
        pub(crate) pacing_margin: Percent = "1%", "Share of the bandwidth left unused by pacing (PacingMarginPercent)";
        pub(crate) longterm_when_app_limited: bool as Flag = "", "Too much loss lowers inflight_longterm even when the application was the limit, as the draft's test cases want but its pseudocode does not";
    }
}

impl Algorithm for Config {
    type Controller = Bbr3;

    fn build(&self, setup: Setup) -> Bbr3 {
        Bbr3::new(self.clone(), setup)
    }

    fn phases(&self) -> Vec<&'static str> {
        vec![
            "STARTUP",
            "DRAIN",
            "PROBE_BW:DOWN",
            "PROBE_BW:CRUISE",
            "PROBE_BW:REFILL",
            "PROBE_BW:UP",
            "PROBE_RTT",
        ]
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

    /// In these states the flow accelerates, so losses do not lower the short-term bounds.
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
    /// What the model holds to be safe: the lesser of `max_bw` and `bw_shortterm`.
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

    /// The first half of `UpdateOnACK`, section 5.2.3; [`Bbr3::update_control_parameters`] is the
    /// second.
    pub(crate) fn update_model(&mut self, ack: &Ack) {
        self.delivered = ack.total_delivered;
        self.follow_recovery(ack.state);
        let rs = Sample::of(ack, &self.own_app_limit);
        self.update_model_and_state(ack, &rs);
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
        self.update_model(ack);
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

    /// The draft has no threshold.
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

    /// The kernel's modules want a third one for recovery, in which they may slow-start.
    fn send_buffer_windows(&self) -> u32 {
        3
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

    fn extra_acked(&self) -> Option<u32> {
        Some(self.extra_acked.value())
    }

    fn inflight_longterm(&self) -> Option<u32> {
        Some(self.long_term.inflight).filter(|inflight| *inflight != INFINITY)
    }

    fn round_count(&self) -> Option<u64> {
        Some(self.rounds.count)
    }
}
