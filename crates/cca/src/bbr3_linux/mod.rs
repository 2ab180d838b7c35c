//! BBR version 3 as the kernel branch has it (google/bbr, branch `v3`, `net/ipv4/tcp_bbr.c`,
//! revision 001a430b).
//!
//! The model has two bounds: `inflight_hi`, which probing found to cause too much loss, and the
//! short-lived `bw_lo` and `inflight_lo`, which follow losses between probes. ProbeBW goes through
//! DOWN, CRUISE, REFILL and UP. Arithmetic is the kernel's, shared with [`crate::bbr`].
//!
//! [`crate::bbr2`] is the same state machine under the `rules` of version 2.

mod bounds;
mod ecn;
mod pacing;
mod probe_bw;
mod probe_rtt;
pub(crate) mod rules;
mod sample;
mod startup;
#[cfg(test)]
mod tests;
mod window;

use alloc::vec::Vec;

use sojourn_core::param::Flag;
use sojourn_core::{Rate, Span, Stream, Time};

use crate::bbr::aggregation::Aggregation;
use crate::bbr::app_limit::OwnAppLimit;
use crate::fixed::{Bw, Gain, Jiffies, whole_micros};
use crate::forms::{Percent, Share};
use crate::{
    Ack, Algorithm, Congestion, CongestionKind, Controller, EcnRequest, Lost, Quantum,
    RecoveryState, Restart, Setup, Undo,
};
use bounds::{Bounds, MaxBw};
use ecn::Ecn;
use pacing::Pacing;
use probe_bw::{AckPhase, Cycle};
use rules::Rules;
use sample::Sample;
use startup::FullPipe;

sojourn_core::params! {
    /// The parameters of the kernel's BBR version 3.
    pub struct Config: "bbr3-linux", "BBR version 3, as the kernel branch has it" {
        pub(crate) startup_pacing_gain: Gain = "2.773", "Pacing gain of STARTUP";
        pub(crate) startup_cwnd_gain: Gain = "2", "Window gain of STARTUP and DRAIN";
        pub(crate) drain_pacing_gain: Gain = "0.344", "Pacing gain of DRAIN";
        pub(crate) probe_up_pacing_gain: Gain = "1.25", "Pacing gain of PROBE_BW:UP";
        pub(crate) probe_down_pacing_gain: Gain = "0.906", "Pacing gain of PROBE_BW:DOWN";
        pub(crate) cwnd_gain: Gain = "2", "Window gain of PROBE_BW";
        pub(crate) probe_up_cwnd_gain: Gain = "2.25", "Window gain of PROBE_BW:UP";
        pub(crate) probe_up_exit: UpExit = "plateau", "What ends PROBE_BW:UP without loss: plateau (bandwidth stops growing) or inflight (the pacing gain times the BDP is in flight after one round-trip time)";
        pub(crate) full_bw_sample: FullBwSample = "latest", "Bandwidth whose growth is watched for a full pipe: latest (sample) or filtered (maximum)";
        pub(crate) full_bw_thresh: Gain = "1.25", "Growth of bandwidth that shows the pipe is not full";
        pub(crate) full_bw_rounds: u32 = "3", "Rounds without that growth after which the pipe is full";
        pub(crate) full_loss_cnt: u32 = "6", "Acknowledgements with losses in a round that end STARTUP, if the loss rate is too high";
        pub(crate) loss_thresh: Share = "0.02", "Loss rate that is too high while probing";
        pub(crate) beta: Share = "0.703", "Share kept when loss cuts a bound";
        pub(crate) headroom: Share = "0.15", "Share of inflight_hi left free while cruising";
        pub(crate) probe_wait_base: Span = "2s", "Least time between probes";
        pub(crate) probe_wait_random: Span = "1s", "Most time added to that at random";
        pub(crate) probe_max_rounds: u32 = "63", "Most rounds between probes";
        pub(crate) probe_random_rounds: u32 = "2", "Number of values from which the rounds already counted are drawn";
        pub(crate) min_rtt_window: Span = "10s", "Age at which the smallest round-trip time is replaced";
        pub(crate) probe_rtt_interval: Span = "5s", "Time without a smaller round-trip time that leads to PROBE_RTT";
        pub(crate) probe_rtt_duration: Span = "200ms", "Least time in PROBE_RTT";
        pub(crate) probe_rtt_cwnd_gain: Gain = "0.5", "Window of PROBE_RTT, times the BDP";
        pub(crate) min_cwnd: u32 = "4", "Least window";
        pub(crate) extra_acked_gain: Gain = "1", "Share of the measured aggregation added to the window";
        pub(crate) extra_acked_window: u32 = "5", "Rounds in each of the two windows that measure aggregation, after STARTUP";
        pub(crate) extra_acked_limit: Span = "100ms", "Most aggregation allowed for, as time at the estimated bandwidth";
        pub(crate) tso_rtt_shift: u32 = "9", "The burst allowed for short paths halves every 2 to this power microseconds of round-trip time";
        pub(crate) pacing_margin: Percent = "1%", "Share of the bandwidth left unused by pacing, in whole percent";
        pub(crate) ecn_low: bool as Flag = "", "The path marks at a shallow threshold: respond to ECN";
        pub(crate) ecn_max_rtt: Span = "5ms", "Largest round-trip time at which ECN is responded to";
        pub(crate) ecn_alpha_gain: Share = "0.0625", "Weight of a round's mark rate in its moving average";
        pub(crate) ecn_factor: Share = "0.332", "Share of the average mark rate by which inflight_lo is cut";
        pub(crate) ecn_thresh: Share = "0.5", "Mark rate that is too high while probing";
        pub(crate) full_ecn_cnt: u32 = "2", "Rounds with that rate that end STARTUP";
        pub(crate) ecn_reprobe_gain: Share = "0.5", "Growth of inflight_hi in the first round of a probe after marks have ceased";
    }
}

/// What [`Bbr3Linux`] calls its phases.
pub(crate) const PHASES: [&str; 7] = [
    "STARTUP",
    "DRAIN",
    "PROBE_BW:DOWN",
    "PROBE_BW:CRUISE",
    "PROBE_BW:REFILL",
    "PROBE_BW:UP",
    "PROBE_RTT",
];

impl Algorithm for Config {
    type Controller = Bbr3Linux;

    fn build(&self, setup: Setup) -> Bbr3Linux {
        Bbr3Linux::new(self.clone(), setup)
    }

    /// To respond to marks the sender needs a receiver that echoes each.
    fn ecn_request(&self) -> EcnRequest {
        if self.ecn_low { EcnRequest::MarkByMark } else { EcnRequest::Host }
    }

    fn phases(&self) -> Vec<&'static str> {
        PHASES.to_vec()
    }
}

/// What ends UP if there is no loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UpExit {
    /// Bandwidth stops growing (version 3).
    Plateau,
    /// Enough is in flight, after a round-trip time (version 2).
    Inflight,
}

sojourn_core::choice! { UpExit { "plateau" = UpExit::Plateau, "inflight" = UpExit::Inflight } }

/// The bandwidth by which a full pipe is detected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FullBwSample {
    /// The latest sample's (version 3).
    Latest,
    /// The windowed maximum (version 2).
    Filtered,
}

sojourn_core::choice! { FullBwSample { "latest" = FullBwSample::Latest, "filtered" = FullBwSample::Filtered } }

/// A bound that never limits.
const UNLIMITED: u32 = u32::MAX;

/// The state of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Startup,
    Drain,
    ProbeBw(Cycle),
    ProbeRtt,
}

/// BBR version 3 of the kernel, or version 2 under its `rules`.
#[derive(Clone, Debug)]
pub struct Bbr3Linux {
    config: Config,
    rules: Rules,
    random: Stream,
    jiffies: Jiffies,
    initial_cwnd: u32,

    mode: Mode,
    cwnd: u32,
    ssthresh: Option<u32>,
    pacing: Pacing,
    pacing_gain: Gain,
    cwnd_gain: Gain,

    max_bw: MaxBw,
    aggregation: Aggregation,
    own_app_limit: OwnAppLimit,
    ecn: Ecn,
    full_pipe: FullPipe,
    bounds: Bounds,

    /// Segments delivered so far.
    delivered: u64,
    round_start: bool,
    next_round_delivered: u64,
    /// Whole rounds so far. The kernel keeps no such number; nothing follows from it.
    rounds: u64,

    /// How acknowledgements relate to the last probe.
    ack_phase: AckPhase,
    cycle_start: Time,
    probe_wait: Span,
    rounds_since_probe: u32,
    probe_up_rounds: u32,
    /// Segments to be acknowledged before `inflight_hi` grows by one, while it may grow.
    probe_up_count: Option<u32>,
    probe_up_acks: u32,
    /// The segments being acknowledged or lost were sent while probing.
    is_probe_sample: bool,
    /// The probe has seen a sample without too much loss or too many marks.
    got_ok_probe_sample: bool,
    prev_probe_too_high: bool,
    stopped_risky_probe: bool,

    min_rtt: Option<Span>,
    /// In jiffies.
    min_rtt_stamp: Time,
    probe_rtt_min: Option<Span>,
    /// In jiffies.
    probe_rtt_min_stamp: Time,
    /// When PROBE_RTT may end, in jiffies; `None` until few enough segments are in flight.
    probe_rtt_done_stamp: Option<Time>,
    probe_rtt_round_done: bool,
    idle_restart: bool,

    prior_state: RecoveryState,
    prior_cwnd: u32,
    /// The next acknowledgement answers a tail loss probe that repaired a loss.
    is_acking_tail_loss_probe: bool,
    /// The window is at its target, so an application-limited flow need not compute it again.
    try_fast_path: bool,
}

impl Bbr3Linux {
    pub fn new(config: Config, setup: Setup) -> Self {
        Self::with_rules(config, Rules::V3, setup)
    }

    pub(crate) fn with_rules(config: Config, rules: Rules, setup: Setup) -> Self {
        let mut jiffies = Jiffies::new(setup.tick, setup.tick_phase);
        let stamp = jiffies.at(setup.now);
        let handshake_rtt = setup.handshake_rtt.map(whole_micros);
        Self {
            pacing: Pacing::new(&setup, &config, rules),
            random: setup.random,
            jiffies,
            initial_cwnd: setup.initial_cwnd,
            mode: Mode::Startup,
            cwnd: setup.initial_cwnd,
            ssthresh: None,
            pacing_gain: config.startup_pacing_gain,
            cwnd_gain: config.startup_cwnd_gain,
            max_bw: MaxBw::default(),
            aggregation: Aggregation::new(setup.now),
            own_app_limit: OwnAppLimit::default(),
            ecn: Ecn::default(),
            full_pipe: FullPipe::default(),
            bounds: Bounds::default(),
            delivered: 0,
            round_start: false,
            next_round_delivered: 0,
            rounds: 0,
            ack_phase: AckPhase::Init,
            cycle_start: setup.now,
            probe_wait: Span::ZERO,
            rounds_since_probe: 0,
            probe_up_rounds: 0,
            probe_up_count: None,
            probe_up_acks: 0,
            is_probe_sample: false,
            got_ok_probe_sample: false,
            prev_probe_too_high: false,
            stopped_risky_probe: false,
            min_rtt: handshake_rtt,
            min_rtt_stamp: stamp,
            probe_rtt_min: handshake_rtt,
            probe_rtt_min_stamp: stamp,
            probe_rtt_done_stamp: None,
            probe_rtt_round_done: false,
            idle_restart: false,
            prior_state: RecoveryState::Open,
            prior_cwnd: setup.initial_cwnd,
            is_acking_tail_loss_probe: false,
            try_fast_path: false,
            rules,
            config,
        }
    }

    /// The bandwidth in use.
    fn bw(&self) -> Bw {
        self.max_bw.value().min(self.bounds.bw_lo).min(self.bounds.bw_hi)
    }

    fn update_round(&mut self, ack: &Ack, sample: &Sample) {
        self.round_start = sample.is_valid && sample.prior_delivered >= self.next_round_delivered;
        if self.round_start {
            self.start_round();
            self.rounds += 1;
            self.rounds_since_probe = (self.rounds_since_probe + 1).min(255);
            self.update_ecn_alpha(ack);
        }
    }

    /// Starts a round that ends when what is sent from now on is delivered.
    fn start_round(&mut self) {
        self.next_round_delivered = self.delivered;
    }

    fn update_model(&mut self, ack: &Ack, sample: &Sample) {
        self.update_congestion_signals(ack, sample);
        self.update_aggregation(ack, sample);
        self.check_loss_too_high_in_startup(ack, sample);
        self.check_full_bw_reached(sample);
        self.check_drain(ack);
        self.update_cycle_phase(ack, sample);
        self.update_min_rtt(ack, sample);
    }

    /// Skips most of the work if the application is the limit and nothing has changed. True if
    /// pacing rate and window need no update either.
    fn run_fast_path(&mut self, ack: &Ack, sample: &Sample) -> bool {
        let (mode, min_rtt) = (self.mode, self.min_rtt);
        self.check_drain(ack);
        self.update_cycle_phase(ack, sample);
        self.update_min_rtt(ack, sample);
        self.mode == mode && self.min_rtt == min_rtt && self.try_fast_path
    }

    fn may_run_fast_path(&self, sample: &Sample) -> bool {
        self.try_fast_path
            && sample.is_app_limited
            && sample.bw < self.max_bw.value()
            && !self.bounds.loss_in_round
            && !self.ecn.in_round
    }

    fn update_aggregation(&mut self, ack: &Ack, sample: &Sample) {
        if self.config.extra_acked_gain.is_zero() || ack.delivered == 0 || !sample.is_valid {
            return;
        }
        if self.round_start {
            let steady = self.full_pipe.reached;
            self.aggregation.on_round(if steady { self.config.extra_acked_window } else { 1 });
        }
        let bw = self.bw();
        self.aggregation.on_ack(ack.now, ack.delivered, bw, self.cwnd);
    }

    fn update_gains(&mut self) {
        let config = &self.config;
        (self.pacing_gain, self.cwnd_gain) = match self.mode {
            Mode::Startup => (config.startup_pacing_gain, config.startup_cwnd_gain),
            Mode::Drain => (config.drain_pacing_gain, config.startup_cwnd_gain),
            Mode::ProbeBw(Cycle::Up) => (config.probe_up_pacing_gain, config.probe_up_cwnd_gain),
            Mode::ProbeBw(Cycle::Down) => (config.probe_down_pacing_gain, config.cwnd_gain),
            Mode::ProbeBw(Cycle::Cruise | Cycle::Refill) => (Gain::ONE, config.cwnd_gain),
            Mode::ProbeRtt => (Gain::ONE, Gain::ONE),
        };
    }

    fn update_control(&mut self, ack: &Ack) {
        self.update_gains();
        let bw = self.bw();
        self.pacing.set_min_rtt(self.min_rtt);
        self.pacing.update(bw, self.pacing_gain, self.full_pipe.reached, self.cwnd, ack.srtt);
        self.set_cwnd(ack, bw);
        self.bound_cwnd_for_inflight_model();
    }
}

impl Controller for Bbr3Linux {
    fn on_ack(&mut self, ack: &Ack) {
        self.delivered = ack.total_delivered;
        if ack.state != RecoveryState::Loss {
            self.exit_loss_recovery();
        }
        let sample = Sample::of(ack, &self.own_app_limit);
        self.update_round(ack, &sample);
        self.note_ecn(ack);
        if !self.rules.is_v2() {
            self.update_latest_delivery_signals(ack, &sample);
        }
        let is_settled = if self.may_run_fast_path(&sample) {
            self.run_fast_path(ack, &sample)
        } else {
            self.update_model(ack, &sample);
            false
        };
        if !is_settled {
            self.update_control(ack);
        }
        if !self.rules.is_v2() {
            self.advance_latest_delivery_signals(&sample);
        }
        self.prior_state = ack.state;
        self.bounds.loss_in_cycle |= sample.lost > 0;
        self.ecn.in_cycle |= sample.delivered_ce > 0;
        self.is_acking_tail_loss_probe = false;
    }

    fn on_lost(&mut self, lost: &Lost) {
        self.delivered = lost.total_delivered;
        self.note_loss(lost);
    }

    fn on_congestion(&mut self, congestion: &Congestion) {
        // The kernel does not ask for a new threshold while it is already reducing.
        if !congestion.prior_state.is_reducing() {
            self.save_cwnd();
            self.bounds.save_for_undo();
        }
        if congestion.kind == CongestionKind::Timeout {
            self.on_timeout(congestion);
        }
    }

    fn on_recovered(&mut self, _now: Time) {
        self.exit_loss_recovery();
    }

    fn on_undo(&mut self, _undo: &Undo) {
        self.full_pipe.restart(Bw::ZERO);
        self.bounds.undo();
        self.try_fast_path = false;
        self.cwnd = self.prior_cwnd;
    }

    fn on_restart(&mut self, restart: &Restart) {
        if !restart.is_app_limited && self.mode != Mode::ProbeRtt {
            return;
        }
        self.idle_restart = true;
        self.aggregation.restart(restart.now);
        match self.mode {
            Mode::ProbeBw(_) => {
                let bw = self.bw();
                self.pacing.update(bw, Gain::ONE, self.full_pipe.reached, self.cwnd, None);
            }
            Mode::ProbeRtt => self.check_probe_rtt_done(restart.now),
            Mode::Startup | Mode::Drain => {}
        }
    }

    fn cwnd(&self) -> u32 {
        self.cwnd
    }

    fn ssthresh(&self) -> Option<u32> {
        self.ssthresh
    }

    fn pacing_rate(&self) -> Option<Rate> {
        Some(self.pacing.rate())
    }

    fn send_quantum(&self) -> Quantum {
        Quantum::Segments(self.pacing.tso_goal())
    }

    fn uses_prr(&self) -> bool {
        false
    }

    /// The kernel's modules want a third one for recovery, in which they may slow-start.
    fn send_buffer_windows(&self) -> u32 {
        3
    }

    fn phase(&self) -> &'static str {
        match self.mode {
            Mode::Startup => "STARTUP",
            Mode::Drain => "DRAIN",
            Mode::ProbeBw(Cycle::Up) => "PROBE_BW:UP",
            Mode::ProbeBw(Cycle::Down) => "PROBE_BW:DOWN",
            Mode::ProbeBw(Cycle::Cruise) => "PROBE_BW:CRUISE",
            Mode::ProbeBw(Cycle::Refill) => "PROBE_BW:REFILL",
            Mode::ProbeRtt => "PROBE_RTT",
        }
    }

    fn bandwidth(&self) -> Option<Rate> {
        let bw = self.bw();
        (!bw.is_zero()).then(|| bw.rate(self.pacing.mss()))
    }

    fn model_min_rtt(&self) -> Option<Span> {
        self.min_rtt
    }

    fn extra_acked(&self) -> Option<u32> {
        Some(self.aggregation.extra_acked())
    }

    fn inflight_longterm(&self) -> Option<u32> {
        self.bounds.lasting()
    }

    fn round_count(&self) -> Option<u64> {
        Some(self.rounds)
    }
}
