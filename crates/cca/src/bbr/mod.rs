//! BBR version 1 as Linux 6.x has it (`net/ipv4/tcp_bbr.c`, described in Cardwell et al., "BBR:
//! Congestion-Based Congestion Control", ACM Queue 2016).
//!
//! Every acknowledgement updates a model of the path (the largest recent bandwidth and the smallest
//! recent round-trip time), then the state machine, then pacing rate and window. Arithmetic is the
//! kernel's: fixed point, microseconds, whole segments.

mod pacing;
mod policer;
mod probe_bw;
mod probe_rtt;
mod startup;
mod window;

pub(crate) mod aggregation;
pub(crate) mod app_limit;
#[cfg(test)]
pub(crate) mod harness;
pub(crate) mod max_filter;
#[cfg(test)]
mod tests;

use alloc::vec::Vec;

use sojourn_core::{Rate, Span, Stream, Time};

use crate::fixed::{Bw, Gain, Jiffies, whole_micros};
use crate::forms::{Percent, Share};
use crate::{
    Ack, Algorithm, Congestion, CongestionKind, Controller, Lost, Quantum, RecoveryState, Restart,
    Setup, Undo,
};
use aggregation::Aggregation;
use app_limit::OwnAppLimit;
use max_filter::WindowedMax;
use pacing::Pacing;
use policer::Policer;

sojourn_core::params! {
    /// The parameters of BBR version 1.
    pub struct Config: "bbr", "BBR version 1, as Linux has it" {
        pub(crate) startup_pacing_gain: Gain = "2.887", "Pacing gain of STARTUP";
        pub(crate) startup_cwnd_gain: Gain = "2.887", "Window gain of STARTUP and DRAIN";
        pub(crate) drain_pacing_gain: Gain = "0.344", "Pacing gain of DRAIN";
        pub(crate) probe_up_pacing_gain: Gain = "1.25", "Pacing gain of the cycle's first phase";
        pub(crate) probe_down_pacing_gain: Gain = "0.75", "Pacing gain of the cycle's second phase";
        pub(crate) cwnd_gain: Gain = "2", "Window gain of PROBE_BW";
        pub(crate) full_bw_thresh: Gain = "1.25", "Growth of bandwidth that shows the pipe is not full";
        pub(crate) full_bw_rounds: u32 = "3", "Rounds without that growth after which the pipe is full";
        pub(crate) bw_window: u32 = "10", "Rounds that the largest bandwidth is remembered";
        pub(crate) probe_rtt_interval: Span = "10s", "Age at which the smallest round-trip time is measured anew in PROBE_RTT";
        pub(crate) probe_rtt_duration: Span = "200ms", "Least time in PROBE_RTT";
        pub(crate) min_cwnd: u32 = "4", "Least window, and the window of PROBE_RTT";
        pub(crate) extra_acked_gain: Gain = "1", "Share of the measured aggregation added to the window";
        pub(crate) extra_acked_window: u32 = "5", "Rounds in each of the two windows that measure aggregation";
        pub(crate) extra_acked_limit: Span = "100ms", "Most aggregation allowed for, as time at the estimated bandwidth";
        pub(crate) lt_loss_thresh: Share = "0.195", "Loss rate that suggests a policer";
        pub(crate) lt_interval_rounds: u32 = "4", "Least rounds in a policer interval";
        pub(crate) lt_bw_ratio: Share = "0.125", "Two intervals agree when their bandwidths differ by this share";
        pub(crate) lt_bw_diff: Rate = "4kbit", "Or by this rate";
        pub(crate) lt_bw_rounds: u32 = "48", "Rounds that a policer's bandwidth is used";
        pub(crate) pacing_margin: Percent = "1%", "Share of the bandwidth left unused by pacing, in whole percent";
    }
}

impl Algorithm for Config {
    type Controller = Bbr;

    fn build(&self, setup: Setup) -> Bbr {
        Bbr::new(self.clone(), setup)
    }

    fn phases(&self) -> Vec<&'static str> {
        let probes = probe_bw::cycle_names(self.probe_up_pacing_gain, self.probe_down_pacing_gain);
        ["STARTUP", "DRAIN"].into_iter().chain(probes).chain(["PROBE_RTT"]).collect()
    }
}

/// The state of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Startup,
    Drain,
    ProbeBw,
    ProbeRtt,
}

/// BBR version 1.
#[derive(Clone, Debug)]
pub struct Bbr {
    config: Config,
    random: Stream,
    jiffies: Jiffies,
    initial_cwnd: u32,

    mode: Mode,
    cwnd: u32,
    ssthresh: Option<u32>,
    pacing: Pacing,
    pacing_gain: Gain,
    cwnd_gain: Gain,

    bw: WindowedMax<Bw>,
    policer: Policer,
    aggregation: Aggregation,
    own_app_limit: OwnAppLimit,

    rounds: u64,
    round_start: bool,
    next_round_delivered: u64,
    /// When the newest delivered segment was acknowledged.
    delivered_time: Time,

    full_bw: Bw,
    full_bw_count: u32,
    full_bw_reached: bool,

    /// Position in the gain cycle, and since when.
    cycle_index: usize,
    cycle_start: Time,

    min_rtt: Option<Span>,
    /// In jiffies.
    min_rtt_stamp: Time,
    /// When PROBE_RTT may end, in jiffies; `None` until few enough segments are in flight.
    probe_rtt_done_stamp: Option<Time>,
    probe_rtt_round_done: bool,
    idle_restart: bool,

    prior_state: RecoveryState,
    prior_cwnd: u32,
    packet_conservation: bool,
}

impl Bbr {
    pub fn new(config: Config, setup: Setup) -> Self {
        let mut jiffies = Jiffies::new(setup.tick, setup.tick_phase);
        let min_rtt_stamp = jiffies.at(setup.now);
        let pacing = Pacing::new(&setup, config.startup_pacing_gain, config.pacing_margin.0);
        Self {
            random: setup.random,
            jiffies,
            initial_cwnd: setup.initial_cwnd,
            mode: Mode::Startup,
            cwnd: setup.initial_cwnd,
            ssthresh: None,
            pacing,
            pacing_gain: config.startup_pacing_gain,
            cwnd_gain: config.startup_cwnd_gain,
            bw: WindowedMax::default(),
            policer: Policer::new(setup.now),
            aggregation: Aggregation::new(setup.now),
            own_app_limit: OwnAppLimit::default(),
            rounds: 0,
            round_start: false,
            next_round_delivered: 0,
            delivered_time: setup.now,
            full_bw: Bw::ZERO,
            full_bw_count: 0,
            full_bw_reached: false,
            cycle_index: 0,
            cycle_start: setup.now,
            min_rtt: setup.handshake_rtt.map(whole_micros),
            min_rtt_stamp,
            probe_rtt_done_stamp: None,
            probe_rtt_round_done: false,
            idle_restart: false,
            prior_state: RecoveryState::Open,
            prior_cwnd: 0,
            packet_conservation: false,
            config,
        }
    }

    /// The bandwidth in use: a policer's if one was found, otherwise the largest recent one.
    fn bw(&self) -> Bw {
        self.policer.bw().unwrap_or_else(|| self.bw.value())
    }

    fn update_model(&mut self, ack: &Ack) {
        let sample = Sample::of(ack, &self.own_app_limit);
        self.round_start = false;
        if let Some(sample) = sample {
            self.update_round(ack, &sample);
            self.sample_policer(ack, sample.is_app_limited, ack.lost);
            if !sample.is_app_limited || sample.bw >= self.bw.value() {
                self.bw.update(u64::from(self.config.bw_window), self.rounds, sample.bw);
            }
            self.update_aggregation(ack);
        }
        self.update_cycle_phase(ack);
        self.check_full_bw_reached(sample.is_some_and(|sample| sample.is_app_limited));
        self.check_drain(ack);
        self.update_min_rtt(ack);
        self.update_gains();
    }

    fn update_round(&mut self, ack: &Ack, sample: &Sample) {
        if sample.prior_delivered >= self.next_round_delivered {
            self.next_round_delivered = ack.total_delivered;
            self.rounds += 1;
            self.round_start = true;
            self.packet_conservation = false;
        }
    }

    fn update_aggregation(&mut self, ack: &Ack) {
        if self.config.extra_acked_gain.is_zero() || ack.delivered == 0 {
            return;
        }
        if self.round_start {
            self.aggregation.on_round(self.config.extra_acked_window);
        }
        let bw = self.bw();
        self.aggregation.on_ack(ack.now, ack.delivered, bw, self.cwnd);
    }

    fn update_gains(&mut self) {
        (self.pacing_gain, self.cwnd_gain) = match self.mode {
            Mode::Startup => (self.config.startup_pacing_gain, self.config.startup_cwnd_gain),
            Mode::Drain => (self.config.drain_pacing_gain, self.config.startup_cwnd_gain),
            Mode::ProbeBw => (self.cycle_gain(), self.config.cwnd_gain),
            Mode::ProbeRtt => (Gain::ONE, Gain::ONE),
        };
    }

    /// After PROBE_RTT, returns to PROBE_BW if the pipe has been full, otherwise to STARTUP.
    fn reset_mode(&mut self) {
        if self.full_bw_reached {
            self.enter_probe_bw();
        } else {
            self.mode = Mode::Startup;
        }
    }
}

/// What a valid delivery rate sample reports.
#[derive(Clone, Copy, Debug)]
struct Sample {
    bw: Bw,
    prior_delivered: u64,
    is_app_limited: bool,
}

impl Sample {
    fn of(ack: &Ack, own_app_limit: &OwnAppLimit) -> Option<Self> {
        let rate = ack.rate.as_ref().filter(|rate| !rate.is_too_short)?;
        let micros = rate.interval.as_micros();
        if micros == 0 {
            return None;
        }
        Some(Self {
            bw: Bw::of(u64::from(rate.delivered), micros),
            prior_delivered: rate.prior.delivered,
            is_app_limited: rate.prior.is_app_limited || own_app_limit.covers(rate.prior.delivered),
        })
    }
}

impl Controller for Bbr {
    fn on_ack(&mut self, ack: &Ack) {
        if ack.delivered > 0 {
            self.delivered_time = ack.now;
        }
        self.update_model(ack);
        let bw = self.bw();
        self.pacing.update(bw, self.pacing_gain, self.full_bw_reached, self.cwnd, ack.srtt);
        self.set_cwnd(ack, bw);
    }

    fn on_lost(&mut self, lost: &Lost) {
        self.policer.note_lost(lost);
    }

    fn on_congestion(&mut self, congestion: &Congestion) {
        // The kernel does not ask for a new threshold while it is already reducing.
        if !congestion.prior_state.is_reducing() {
            self.save_cwnd();
        }
        if congestion.kind == CongestionKind::Timeout {
            self.on_timeout(congestion);
        }
    }

    fn on_undo(&mut self, _undo: &Undo) {
        // The next acknowledgement restores the window, when the controller sees that recovery has
        // ended.
        self.reset_full_bw();
        self.policer.reset();
    }

    fn on_restart(&mut self, restart: &Restart) {
        if !restart.is_app_limited && self.mode != Mode::ProbeRtt {
            return;
        }
        self.idle_restart = true;
        self.aggregation.restart(restart.now);
        match self.mode {
            Mode::ProbeBw => {
                let bw = self.bw();
                self.pacing.update(bw, Gain::ONE, self.full_bw_reached, self.cwnd, None);
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
        Quantum::Auto { least: self.pacing.least_quantum() }
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
            Mode::ProbeBw => self.cycle_name(),
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

    fn round_count(&self) -> Option<u64> {
        Some(self.rounds)
    }
}
