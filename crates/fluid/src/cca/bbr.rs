//! BBR version 1 (draft-cardwell-iccrg-bbr-congestion-control-00, and what Linux adds to its window).
//!
//! The fluid of Scherrer et al. (IMC 2022) has the same parts: the bottleneck rate x_btl as the largest
//! delivery rate of ten rounds, the pacing rate x_pcg = g·x_btl with the gains of a cycle of eight
//! phases, the window 2·⌈x_btl·τ_min⌉, and x = min(w/τ, x_pcg). Here w/τ is what acknowledgements and
//! the window allow, and phases begin and end at their moments.

use sojourn_core::Stream;

use super::filter::{Aggregation, FullPipe, WindowedMax, quantum};
use super::{Allowed, Setup, Shown, Told};

/// 2/ln 2.
const HIGH_GAIN: f64 = 2.887;
const DRAIN_GAIN: f64 = 0.344;
const UP: f64 = 1.25;
const DOWN: f64 = 0.75;
const CWND_GAIN: f64 = 2.0;
/// Phases of a cycle: one above the rate, one below it, and the others at it.
const CYCLE: u32 = 8;
/// Most that the window makes room for, as time at the estimated rate.
const AGGREGATION_LIMIT: f64 = 0.1;
/// Rounds that the largest rate is remembered.
const BW_WINDOW: u64 = 10;
const PROBE_RTT_INTERVAL: f64 = 10.0;
const PROBE_RTT_DURATION: f64 = 0.2;
/// The window of PROBE_RTT, in packets.
const LEAST: f64 = 4.0;
/// Linux paces a hundredth below the rate.
const MARGIN: f64 = 0.99;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Mode {
    Startup,
    Drain,
    /// Since when the cycle is there.
    ProbeBw(Gain, f64),
    /// When it ends, once little enough is in flight; then also a round must have passed.
    ProbeRtt(Option<(f64, f64)>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Gain {
    Up,
    Down,
    /// For so many phases, which differ in nothing.
    Even(u32),
}

#[derive(Clone, Debug)]
pub(crate) struct Bbr {
    packet: f64,
    mode: Mode,
    bw: WindowedMax,
    full_pipe: FullPipe,
    aggregation: Aggregation,
    /// What one acknowledgement stands for.
    at_once: f64,
    min_rtt: f64,
    min_rtt_stamp: f64,
    rounds: u64,
    round_ends: f64,
    /// Rates of what was sent before this was delivered say nothing: PROBE_RTT held them down.
    held_until: f64,
    cwnd: f64,
    prior_cwnd: f64,
    pacing: f64,
    random: Stream,
}

impl Bbr {
    pub(super) fn new(setup: Setup, random: Stream) -> Self {
        let Setup { now, initial_window, packet, at_once, rtt, .. } = setup;
        Self {
            packet,
            aggregation: Aggregation::default(),
            at_once,
            mode: Mode::Startup,
            bw: WindowedMax::default(),
            full_pipe: FullPipe::default(),
            min_rtt: rtt,
            min_rtt_stamp: now,
            rounds: 0,
            round_ends: 0.0,
            held_until: 0.0,
            cwnd: initial_window,
            prior_cwnd: initial_window,
            pacing: HIGH_GAIN * initial_window / rtt,
            random,
        }
    }

    pub(super) fn on_step(&mut self, told: &Told) {
        let is_round = told.acked > 0.0 && told.sample.prior_delivered >= self.round_ends;
        if is_round {
            self.rounds += 1;
            self.round_ends = told.delivered;
        }
        let is_held = told.sample.prior_delivered < self.held_until;
        if told.sample.bw > 0.0 && (!is_held || told.sample.bw >= self.bw.value()) {
            self.bw.update(BW_WINDOW, self.rounds, told.sample.bw);
        }
        self.aggregation.on_step(told, is_round, self.bw.value(), self.at_once);
        if is_round && !self.full_pipe.is_reached {
            self.full_pipe.on_round(self.bw.value());
        }
        self.update_mode(told);
        self.update_min_rtt(told, is_round);
        self.update_control(told);
    }

    fn update_mode(&mut self, told: &Told) {
        match self.mode {
            Mode::Startup if self.full_pipe.is_reached => self.mode = Mode::Drain,
            Mode::Drain if told.in_flight <= self.inflight(1.0) => {
                self.mode = self.any_phase(told.now);
            }
            Mode::ProbeBw(gain, since) => {
                let is_over = told.now - since > self.duration(gain);
                let next = match gain {
                    Gain::Up => {
                        let is_enough = told.losses > 0 || told.in_flight >= self.inflight(UP);
                        (is_over && is_enough).then_some(Gain::Down)
                    }
                    Gain::Down => {
                        let is_drained = told.in_flight <= self.inflight(1.0);
                        (is_over || is_drained).then_some(Gain::Even(CYCLE - 2))
                    }
                    Gain::Even(_) => is_over.then_some(Gain::Up),
                };
                if let Some(next) = next {
                    self.mode = Mode::ProbeBw(next, told.now);
                }
            }
            _ => {}
        }
    }

    /// Any phase of the cycle but the one below the rate.
    fn any_phase(&mut self, now: f64) -> Mode {
        let left = self.random.below(u64::from(CYCLE) - 1) as u32;
        Mode::ProbeBw(if left == 0 { Gain::Up } else { Gain::Even(left) }, now)
    }

    fn duration(&self, gain: Gain) -> f64 {
        match gain {
            Gain::Up | Gain::Down => self.min_rtt,
            Gain::Even(phases) => f64::from(phases) * self.min_rtt,
        }
    }

    fn update_min_rtt(&mut self, told: &Told, is_round: bool) {
        let is_expired = told.now > self.min_rtt_stamp + PROBE_RTT_INTERVAL;
        if told.acked > 0.0 && (told.rtt < self.min_rtt || is_expired) {
            self.min_rtt = told.rtt;
            self.min_rtt_stamp = told.now;
        }
        if is_expired && !matches!(self.mode, Mode::ProbeRtt(_)) {
            self.prior_cwnd = self.cwnd;
            self.mode = Mode::ProbeRtt(None);
        }
        if let Mode::ProbeRtt(ends) = self.mode {
            self.held_until = told.delivered + told.in_flight;
            match ends {
                // A packet more, because a fluid comes near a window without ever reaching it.
                None if told.in_flight <= (LEAST + 1.0) * self.packet => {
                    self.round_ends = told.delivered;
                    let ends = told.now + PROBE_RTT_DURATION;
                    self.mode = Mode::ProbeRtt(Some((ends, f64::INFINITY)));
                }
                Some((ends, _)) if is_round => self.mode = Mode::ProbeRtt(Some((ends, ends))),
                _ => {}
            }
            if let Mode::ProbeRtt(Some((ends, round_done))) = self.mode
                && round_done.is_finite()
                && told.now > ends
            {
                self.min_rtt_stamp = told.now;
                self.cwnd = self.cwnd.max(self.prior_cwnd);
                self.mode = if self.full_pipe.is_reached {
                    self.any_phase(told.now)
                } else {
                    Mode::Startup
                };
            }
        }
    }

    fn update_control(&mut self, told: &Told) {
        let (pacing_gain, cwnd_gain) = match self.mode {
            Mode::Startup => (HIGH_GAIN, HIGH_GAIN),
            Mode::Drain => (DRAIN_GAIN, HIGH_GAIN),
            Mode::ProbeBw(Gain::Up, _) => (UP, CWND_GAIN),
            Mode::ProbeBw(Gain::Down, _) => (DOWN, CWND_GAIN),
            Mode::ProbeBw(..) => (1.0, CWND_GAIN),
            Mode::ProbeRtt(_) => (1.0, 1.0),
        };
        let pacing = pacing_gain * self.bw.value() * MARGIN;
        if self.full_pipe.is_reached || pacing > self.pacing {
            self.pacing = pacing;
        }
        let target = self.inflight(cwnd_gain) + self.aggregation();
        if self.full_pipe.is_reached {
            self.cwnd = (self.cwnd + told.acked).min(target);
        } else if self.cwnd < target {
            self.cwnd += told.acked;
        }
        self.cwnd = self.cwnd.max(LEAST * self.packet);
        if matches!(self.mode, Mode::ProbeRtt(_)) {
            self.cwnd = self.cwnd.min(LEAST * self.packet);
        }
    }

    /// A multiple of the bandwidth-delay product, and what offloading keeps in the hosts
    /// (`bbr_quantization_budget`).
    fn inflight(&self, gain: f64) -> f64 {
        let bdp = gain * self.bw.value() * self.min_rtt;
        let up = if matches!(self.mode, Mode::ProbeBw(Gain::Up, _)) { 2.0 } else { 0.0 };
        bdp + 3.0 * quantum(self.pacing, self.packet) + up * self.packet
    }

    fn aggregation(&self) -> f64 {
        let most = AGGREGATION_LIMIT * self.bw.value();
        if self.full_pipe.is_reached { self.aggregation.value().min(most) } else { 0.0 }
    }

    pub(super) fn allowed(&self) -> Allowed {
        Allowed { window: self.cwnd, pacing: Some(self.pacing) }
    }

    pub(super) fn timer(&self) -> f64 {
        match self.mode {
            Mode::ProbeRtt(Some((ends, _))) => ends,
            Mode::ProbeBw(gain, since) => since + self.duration(gain),
            _ => self.min_rtt_stamp + PROBE_RTT_INTERVAL,
        }
    }

    pub(super) fn phase(&self) -> &'static str {
        match self.mode {
            Mode::Startup => "STARTUP",
            Mode::Drain => "DRAIN",
            Mode::ProbeBw(Gain::Up, _) => "PROBE_BW:1.25",
            Mode::ProbeBw(Gain::Down, _) => "PROBE_BW:0.75",
            Mode::ProbeBw(..) => "PROBE_BW:1",
            Mode::ProbeRtt(_) => "PROBE_RTT",
        }
    }

    pub(super) fn shown(&self) -> Shown {
        Shown {
            bw: Some(self.bw.value()),
            min_rtt: Some(self.min_rtt),
            rounds: Some(self.rounds),
            ..Shown::default()
        }
    }
}
