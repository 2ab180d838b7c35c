//! BBR version 3 (draft-ietf-ccwg-bbr-06), and the machine that version 2 shares.
//!
//! Equation numbers are those of "TCP BBR Performance over Wi-Fi 6", section 3.2, in the corrected form
//! that `docs/models/fluid.md` derives. There, m is 1 while cruising and 0 while probing.

use sojourn_core::Stream;

use super::filter::{Aggregation, FullPipe, quantum};
use super::{Allowed, Setup, Shown, Told};

/// Where versions differ.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    pub(crate) startup_pacing: f64,
    pub(crate) startup_cwnd: f64,
    pub(crate) drain_pacing: f64,
    pub(crate) down_pacing: f64,
    /// g_hi of equation (9).
    pub(crate) up_cwnd: f64,
    /// UP ends with this many bandwidth-delay products in flight; otherwise when bandwidth stops growing.
    pub(crate) up_ends_at: Option<f64>,
    /// What a cut of w_hi or w_lo leaves: 1 − Δ of equations (10) and (11).
    pub(crate) beta: f64,
    /// Steps with losses in a round that end STARTUP.
    pub(crate) startup_losses: u32,
}

pub(super) const RULES: Rules = Rules {
    startup_pacing: 2.77,
    startup_cwnd: 2.0,
    drain_pacing: 0.5,
    down_pacing: 0.9,
    up_cwnd: 2.25,
    up_ends_at: None,
    beta: 0.7,
    startup_losses: 6,
};

const UP_PACING: f64 = 1.25;
const CWND_GAIN: f64 = 2.0;
/// p_th of equations (10) and (11).
const LOSS_THRESH: f64 = 0.02;
/// Of w_hi left free while cruising.
const HEADROOM: f64 = 0.15;
const DRAIN_MAX_ROUNDS: u64 = 3;
const PROBE_WAIT: f64 = 2.0;
const PROBE_WAIT_RANDOM: f64 = 1.0;
const PROBE_MAX_ROUNDS: f64 = 63.0;
const MAX_UP_ROUNDS: u32 = 30;
const MIN_RTT_WINDOW: f64 = 10.0;
const PROBE_RTT_INTERVAL: f64 = 5.0;
const PROBE_RTT_DURATION: f64 = 0.2;
/// Equation (13): the window of PROBE_RTT, in bandwidth-delay products.
const PROBE_RTT_CWND: f64 = 0.5;
/// In packets.
const LEAST: f64 = 4.0;
const MARGIN: f64 = 0.99;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Startup,
    Drain,
    Down,
    Cruise,
    Refill,
    Up,
    ProbeRtt,
}

/// How what comes back relates to the last probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AckPhase {
    Init,
    Starting,
    Feedback,
    Stopping,
}

#[derive(Clone, Debug)]
pub(crate) struct Bbr3 {
    rules: Rules,
    packet: f64,
    state: State,
    ack_phase: AckPhase,
    rounds: u64,
    round_ends: f64,
    rounds_since_probe: f64,
    drain_began: u64,
    cycle_stamp: f64,
    wait: f64,
    /// Largest delivery rate of the previous cycle and of this one.
    max_bw: [f64; 2],
    full_pipe: FullPipe,
    aggregation: Aggregation,
    /// What one acknowledgement stands for.
    at_once: f64,
    min_rtt: f64,
    min_rtt_stamp: f64,
    probe_rtt_min: f64,
    probe_rtt_stamp: f64,
    probe_rtt_ends: Option<f64>,
    probe_rtt_round: bool,
    /// w_hi: the bound that probing finds.
    w_hi: f64,
    /// w_lo, and the same of the rate: bounds after losses between probes.
    w_lo: f64,
    bw_lo: f64,
    bw_latest: f64,
    inflight_latest: f64,
    loss_round_ends: f64,
    is_loss_in_round: bool,
    losses_in_round: u32,
    is_probe_sample: bool,
    prev_too_high: bool,
    is_precautionary: bool,
    up_rounds: u32,
    /// Acknowledged bytes for each byte by which w_hi grows.
    up_per_byte: f64,
    held_until: f64,
    cwnd: f64,
    prior_cwnd: f64,
    initial_window: f64,
    pacing: f64,
    random: Stream,
}

impl Bbr3 {
    pub(super) fn new(rules: Rules, setup: Setup, random: Stream) -> Self {
        let Setup { now, initial_window, packet, at_once, rtt, .. } = setup;
        Self {
            rules,
            aggregation: Aggregation::default(),
            at_once,
            packet,
            state: State::Startup,
            ack_phase: AckPhase::Init,
            rounds: 0,
            round_ends: 0.0,
            rounds_since_probe: 0.0,
            drain_began: 0,
            cycle_stamp: now,
            wait: 0.0,
            max_bw: [0.0; 2],
            full_pipe: FullPipe::default(),
            min_rtt: rtt,
            min_rtt_stamp: now,
            probe_rtt_min: rtt,
            probe_rtt_stamp: now,
            probe_rtt_ends: None,
            probe_rtt_round: false,
            w_hi: f64::INFINITY,
            w_lo: f64::INFINITY,
            bw_lo: f64::INFINITY,
            bw_latest: 0.0,
            inflight_latest: 0.0,
            loss_round_ends: 0.0,
            is_loss_in_round: false,
            losses_in_round: 0,
            is_probe_sample: false,
            prev_too_high: false,
            is_precautionary: false,
            up_rounds: 0,
            up_per_byte: f64::INFINITY,
            held_until: 0.0,
            cwnd: initial_window,
            prior_cwnd: initial_window,
            initial_window,
            pacing: rules.startup_pacing * initial_window / rtt,
            random,
        }
    }

    pub(super) fn on_step(&mut self, told: &Told) {
        if told.losses > 0 {
            self.note_loss(told);
        }
        let is_round = told.acked > 0.0 && told.sample.prior_delivered >= self.round_ends;
        let is_loss_round = self.update_signals(told, is_round);
        self.aggregation.on_step(told, is_round, self.bw(), self.at_once);
        if is_round && !self.full_pipe.is_now {
            let bw = if self.rules.up_ends_at.is_some() { self.max_bw() } else { told.sample.bw };
            if told.sample.prior_delivered >= self.held_until {
                self.full_pipe.on_round(bw);
            }
        }
        self.check_startup(told, is_loss_round);
        if self.state == State::Drain {
            let is_late = self.rounds > self.drain_began + DRAIN_MAX_ROUNDS;
            if told.in_flight <= self.inflight(self.bw(), 1.0) || is_late {
                self.start_down(told);
            }
        }
        if self.full_pipe.is_reached && !self.adapt_w_hi(told, is_round) {
            self.update_cycle(told, is_round);
        }
        self.update_min_rtt(told, is_round);
        if is_loss_round {
            self.bw_latest = told.sample.bw;
            self.inflight_latest = told.sample.delivered;
        }
        self.update_control(told);
    }

    /// Rounds, the largest rate, and the bounds of the short term at the end of a round with losses.
    fn update_signals(&mut self, told: &Told, is_round: bool) -> bool {
        let sample = &told.sample;
        let mut is_loss_round = false;
        if told.acked > 0.0 {
            self.bw_latest = self.bw_latest.max(sample.bw);
            self.inflight_latest = self.inflight_latest.max(sample.delivered);
            is_loss_round = sample.prior_delivered >= self.loss_round_ends;
        }
        if is_loss_round {
            self.loss_round_ends = told.delivered;
        }
        if is_round {
            self.rounds += 1;
            self.rounds_since_probe += 1.0;
            self.round_ends = told.delivered;
        }
        if sample.prior_delivered >= self.held_until || sample.bw >= self.max_bw() {
            self.max_bw[1] = self.max_bw[1].max(sample.bw);
        }
        if is_loss_round {
            if self.is_loss_in_round && !self.is_probing() {
                // Equation (11), the term with m: a cut each round with losses, down to what was
                // delivered. As a rate it is −(λ/τ)·w_lo with λ = −ln β.
                if self.w_lo.is_infinite() {
                    self.w_lo = self.cwnd;
                    self.bw_lo = self.max_bw();
                }
                self.bw_lo = self.bw_latest.max(self.bw_lo * self.rules.beta);
                self.w_lo = self.inflight_latest.max(self.w_lo * self.rules.beta);
            }
            self.is_loss_in_round = false;
        }
        is_loss_round
    }

    fn note_loss(&mut self, told: &Told) {
        if !self.is_loss_in_round {
            self.loss_round_ends = told.delivered;
        }
        self.is_loss_in_round = true;
        self.losses_in_round += told.losses;
        if !self.is_probe_sample || !self.is_too_high(told) {
            return;
        }
        // Equation (10), the term with Δ: once a probe, when more than p_th of a flight is lost.
        self.prev_too_high = true;
        self.is_probe_sample = false;
        let least = self.rules.beta * self.bdp(self.bw(), 1.0).min(self.cwnd);
        self.w_hi = told.sample.tx_in_flight.max(least);
        if self.state == State::Up {
            self.start_down(told);
        }
    }

    fn is_too_high(&self, told: &Told) -> bool {
        told.sample.lost > LOSS_THRESH * told.sample.tx_in_flight
    }

    fn check_startup(&mut self, told: &Told, is_loss_round: bool) {
        if is_loss_round {
            let losses = core::mem::take(&mut self.losses_in_round);
            let is_heavy = losses >= self.rules.startup_losses && self.is_too_high(told);
            if !self.full_pipe.is_reached && is_heavy {
                self.full_pipe.is_reached = true;
                self.full_pipe.is_now = true;
                self.w_hi = self.bdp(self.bw(), 1.0).max(self.inflight_latest);
            }
        }
        if self.state == State::Startup && self.full_pipe.is_reached {
            self.state = State::Drain;
            self.drain_began = self.rounds;
        }
    }

    fn update_cycle(&mut self, told: &Told, is_round: bool) {
        if self.state == State::Up && self.is_time_to_go_down(told) {
            self.prev_too_high = false;
            self.start_down(told);
            return;
        }
        match self.state {
            State::Down => {
                if self.is_time_to_probe(told.now) {
                    self.start_refill(told);
                } else if told.in_flight <= self.with_headroom()
                    && told.in_flight <= self.inflight(self.max_bw(), 1.0)
                {
                    self.state = State::Cruise;
                }
            }
            State::Cruise if self.is_time_to_probe(told.now) => self.start_refill(told),
            State::Refill if is_round => {
                self.is_probe_sample = true;
                self.ack_phase = AckPhase::Starting;
                self.round_ends = told.delivered;
                self.cycle_stamp = told.now;
                self.full_pipe.restart(told.sample.bw);
                self.state = State::Up;
                self.raise_slope();
            }
            _ => {}
        }
    }

    fn start_down(&mut self, told: &Told) {
        self.is_loss_in_round = false;
        self.bw_latest = 0.0;
        self.inflight_latest = 0.0;
        self.up_per_byte = f64::INFINITY;
        self.rounds_since_probe = self.random.below(2) as f64;
        self.wait = PROBE_WAIT + PROBE_WAIT_RANDOM * self.random.unit();
        self.cycle_stamp = told.now;
        self.ack_phase = AckPhase::Stopping;
        self.round_ends = told.delivered;
        self.state = State::Down;
    }

    /// Equation (11), the term with 1 − m: probing lifts the bounds of the short term altogether.
    fn start_refill(&mut self, told: &Told) {
        self.w_lo = f64::INFINITY;
        self.bw_lo = f64::INFINITY;
        self.up_rounds = 0;
        self.is_precautionary = false;
        self.ack_phase = AckPhase::Init;
        self.round_ends = told.delivered;
        self.state = State::Refill;
    }

    fn is_time_to_probe(&self, now: f64) -> bool {
        let flight = self.bdp(self.bw(), 1.0).min(self.cwnd) / self.packet;
        now > self.cycle_stamp + self.wait
            || self.rounds_since_probe >= flight.min(PROBE_MAX_ROUNDS)
    }

    fn is_time_to_go_down(&mut self, told: &Told) -> bool {
        let slack = 0.5 * self.packet;
        if self.prev_too_high && told.in_flight + slack >= self.w_hi {
            self.is_precautionary = true;
            return true;
        }
        if let Some(bdps) = self.rules.up_ends_at {
            return told.now - self.cycle_stamp > self.min_rtt
                && told.in_flight + slack >= self.inflight(self.max_bw(), bdps);
        }
        if told.is_limited && self.cwnd + slack >= self.w_hi {
            self.full_pipe.restart(told.sample.bw);
            return false;
        }
        self.full_pipe.is_now
    }

    /// Equation (10), the growth: (1 − m)·(1/τ)·2^{t/τ} while v ≥ w_hi, the exponent in whole rounds.
    fn raise_slope(&mut self) {
        let growth = libm::exp2(f64::from(self.up_rounds)) * self.packet;
        self.up_rounds = (self.up_rounds + 1).min(MAX_UP_ROUNDS);
        self.up_per_byte = (self.cwnd / growth).max(1.0);
    }

    /// True if it changed the state.
    fn adapt_w_hi(&mut self, told: &Told, is_round: bool) -> bool {
        if self.ack_phase == AckPhase::Starting && is_round {
            self.ack_phase = AckPhase::Feedback;
        }
        if self.ack_phase == AckPhase::Stopping && is_round {
            self.is_probe_sample = false;
            self.ack_phase = AckPhase::Init;
            if matches!(self.state, State::Down | State::Cruise | State::Refill | State::Up) {
                // A cycle without samples does not lower the rate.
                if told.sample.prior_delivered >= self.held_until && self.max_bw[1] > 0.0 {
                    self.max_bw = [self.max_bw[1], 0.0];
                }
                if self.is_precautionary && !self.prev_too_high {
                    self.start_refill(told);
                    return true;
                }
            }
        }
        if self.w_hi.is_finite() && !self.is_too_high(told) {
            self.w_hi = self.w_hi.max(told.sample.tx_in_flight);
            let is_full = told.is_limited && self.cwnd + 0.5 * self.packet >= self.w_hi;
            if self.state == State::Up && is_full {
                self.w_hi += told.acked / self.up_per_byte;
                if is_round {
                    self.raise_slope();
                }
            }
        }
        false
    }

    /// Equation (14): PROBE_RTT is due 5 s after the smallest round-trip time, and lasts 200 ms and a
    /// round from when little enough is in flight.
    fn update_min_rtt(&mut self, told: &Told, is_round: bool) {
        let is_due = told.now > self.probe_rtt_stamp + PROBE_RTT_INTERVAL;
        if told.acked > 0.0 && (is_due || told.rtt < self.probe_rtt_min) {
            self.probe_rtt_min = told.rtt;
            self.probe_rtt_stamp = told.now;
        }
        let is_expired = told.now > self.min_rtt_stamp + MIN_RTT_WINDOW;
        if is_expired || self.probe_rtt_min < self.min_rtt {
            self.min_rtt = self.probe_rtt_min;
            self.min_rtt_stamp = self.probe_rtt_stamp;
        }
        if is_due && self.state != State::ProbeRtt {
            self.prior_cwnd = self.cwnd;
            self.state = State::ProbeRtt;
            self.probe_rtt_ends = None;
            self.ack_phase = AckPhase::Stopping;
            self.round_ends = told.delivered;
        }
        if self.state != State::ProbeRtt {
            return;
        }
        self.held_until = told.delivered + told.in_flight;
        match self.probe_rtt_ends {
            None if told.in_flight <= self.probe_rtt_cwnd() + self.packet => {
                self.probe_rtt_ends = Some(told.now + PROBE_RTT_DURATION);
                self.probe_rtt_round = false;
                self.round_ends = told.delivered;
            }
            None => {}
            Some(ends) => {
                self.probe_rtt_round |= is_round;
                if self.probe_rtt_round && told.now > ends {
                    self.probe_rtt_stamp = told.now;
                    self.cwnd = self.cwnd.max(self.prior_cwnd);
                    self.w_lo = f64::INFINITY;
                    self.bw_lo = f64::INFINITY;
                    if self.full_pipe.is_reached {
                        self.start_down(told);
                        self.state = State::Cruise;
                    } else {
                        self.state = State::Startup;
                    }
                }
            }
        }
    }

    /// Equation (9) as one minimum, w = min(g·w̄, w_lo, (1 − 0.15·m)·w_hi), and equations (12) and (13):
    /// the rate is what acknowledgements let the window send, at most the pacing rate.
    fn update_control(&mut self, told: &Told) {
        let Rules { startup_pacing, startup_cwnd, drain_pacing, down_pacing, up_cwnd, .. } =
            self.rules;
        let (pacing_gain, cwnd_gain) = match self.state {
            State::Startup => (startup_pacing, startup_cwnd),
            State::Drain => (drain_pacing, startup_cwnd),
            State::Down => (down_pacing, CWND_GAIN),
            State::Cruise | State::Refill => (1.0, CWND_GAIN),
            State::Up => (UP_PACING, up_cwnd),
            State::ProbeRtt => (1.0, PROBE_RTT_CWND),
        };
        let bw = self.bw();
        let pacing = pacing_gain * bw * MARGIN;
        if self.full_pipe.is_reached || pacing > self.pacing {
            self.pacing = pacing;
        }
        let most = self.most_in_flight(bw, cwnd_gain);
        if self.full_pipe.is_reached {
            self.cwnd = (self.cwnd + told.acked).min(most);
        } else if self.cwnd < most || told.delivered < self.initial_window {
            self.cwnd += told.acked;
        }
        let least = LEAST * self.packet;
        self.cwnd = self.cwnd.max(least);
        if self.state == State::ProbeRtt {
            self.cwnd = self.cwnd.min(self.probe_rtt_cwnd());
        }
        let cap = match self.state {
            State::Cruise | State::ProbeRtt => self.with_headroom(),
            State::Down | State::Refill | State::Up => self.w_hi,
            State::Startup | State::Drain => f64::INFINITY,
        };
        self.cwnd = self.cwnd.min(cap.min(self.w_lo).max(least));
    }

    fn probe_rtt_cwnd(&self) -> f64 {
        self.bdp(self.bw(), PROBE_RTT_CWND).max(LEAST * self.packet)
    }

    fn with_headroom(&self) -> f64 {
        (self.w_hi * (1.0 - HEADROOM)).max(LEAST * self.packet)
    }

    fn is_probing(&self) -> bool {
        matches!(self.state, State::Startup | State::Refill | State::Up)
    }

    fn max_bw(&self) -> f64 {
        self.max_bw[0].max(self.max_bw[1])
    }

    fn bw(&self) -> f64 {
        self.max_bw().min(self.bw_lo)
    }

    /// w̄ of the paper, times `gain`.
    fn bdp(&self, bw: f64, gain: f64) -> f64 {
        gain * bw * self.min_rtt
    }

    fn inflight(&self, bw: f64, gain: f64) -> f64 {
        self.with_budget(self.bdp(bw, gain))
    }

    /// The same, with room for what is acknowledged at once.
    fn most_in_flight(&self, bw: f64, gain: f64) -> f64 {
        self.with_budget(self.bdp(bw, gain) + self.aggregation.value())
    }

    fn with_budget(&self, cap: f64) -> f64 {
        let budget = 3.0 * quantum(self.pacing, self.packet);
        let cap = match self.rules.up_ends_at {
            // As version 1 (`bbr_quantization_budget`).
            Some(_) => cap + budget,
            None => cap.max(budget),
        };
        let up = if self.state == State::Up { 2.0 } else { 0.0 };
        cap.max(LEAST * self.packet) + up * self.packet
    }

    pub(super) fn allowed(&self) -> Allowed {
        Allowed { window: self.cwnd, pacing: Some(self.pacing) }
    }

    pub(super) fn timer(&self) -> f64 {
        match self.state {
            State::ProbeRtt => self.probe_rtt_ends.unwrap_or(f64::INFINITY),
            State::Down | State::Cruise => self.cycle_stamp + self.wait,
            _ => self.probe_rtt_stamp + PROBE_RTT_INTERVAL,
        }
    }

    pub(super) fn phase(&self) -> &'static str {
        match self.state {
            State::Startup => "STARTUP",
            State::Drain => "DRAIN",
            State::Down => "PROBE_BW:DOWN",
            State::Cruise => "PROBE_BW:CRUISE",
            State::Refill => "PROBE_BW:REFILL",
            State::Up => "PROBE_BW:UP",
            State::ProbeRtt => "PROBE_RTT",
        }
    }

    pub(super) fn shown(&self) -> Shown {
        Shown {
            bw: Some(self.bw()),
            min_rtt: Some(self.min_rtt),
            inflight_longterm: Some(self.w_hi).filter(|w_hi| w_hi.is_finite()),
            rounds: Some(self.rounds),
            ..Shown::default()
        }
    }
}
