//! Network-Assisted Dynamic Adaptation (RFC 8698): delay, loss and marks become one congestion signal, and the
//! rate follows it.
//!
//! The sender does what the RFC's receiver does (section 4.2), from reports on every packet, as section 5.3 allows.

mod losses;
#[cfg(test)]
mod tests;

use alloc::boxed::Box;
use alloc::collections::VecDeque;

use sojourn_core::param::{Maybe, Switch, number, rate, time, whole};
use sojourn_core::{Ecn, Rate, Span, Time};

use self::losses::Losses;
use super::measure::{Recent, one_way};
use super::{
    Algorithm, Controller, Estimates, Feedback, FeedbackKind, Outputs, Outstanding, Sent, Setup,
};

const FASTEST: Rate = Rate::from_bps(1_000_000_000_000);
const LONG: Span = Span::from_secs(1000);
const SHORT: Span = Span::from_millis(1);

sojourn_core::params! {
    /// The parameters of NADA, by their names in RFC 8698, table 2.
    pub struct Config: "nada", "NADA (RFC 8698): one signal of delay, loss and marks" {
        pub(crate) prio: f64 = "1", number(0.001, 1000.0), "PRIO: weight of the flow";
        pub(crate) rmin: Option<Rate> as Maybe<Rate> = "", rate(Rate::from_bps(1000), FASTEST), "RMIN: least rate; without it the call's";
        pub(crate) rmax: Option<Rate> as Maybe<Rate> = "", rate(Rate::from_bps(1000), FASTEST), "RMAX: largest rate; without it the call's";
        pub(crate) xref: Span = "10ms", time(SHORT, LONG), "XREF: signal at RMAX and PRIO 1";
        pub(crate) kappa: f64 = "0.5", number(0.0, 100.0), "KAPPA: gain of gradual changes";
        pub(crate) eta: f64 = "2", number(0.0, 100.0), "ETA: weight of the signal's change";
        pub(crate) tau: Span = "500ms", time(SHORT, LONG), "TAU: upper bound of the round trip for which gradual changes are stable";
        pub(crate) delta: Span = "100ms", time(SHORT, LONG), "DELTA: time between reports, unless the call says otherwise";
        pub(crate) logwin: Span = "500ms", time(SHORT, LONG), "LOGWIN: window of rates, losses and marks";
        pub(crate) qeps: Span = "10ms", time(Span::ZERO, LONG), "QEPS: queueing below this counts as none";
        pub(crate) dfilt: Span = "120ms", time(Span::ZERO, LONG), "DFILT: delay of filtering";
        pub(crate) gamma_max: f64 = "0.5", number(0.0, 10.0), "GAMMA_MAX: largest part of a ramp-up";
        pub(crate) qbound: Span = "50ms", time(Span::ZERO, LONG), "QBOUND: most queueing that a ramp-up may make";
        pub(crate) multiloss: f64 = "7", number(0.0, 1000.0), "MULTILOSS: mean intervals between losses for which losses count as expected";
        pub(crate) qth: Span = "50ms", time(SHORT, LONG), "QTH: queueing above which delay is warped while losses are expected";
        pub(crate) lambda: f64 = "0.5", number(0.0, 100.0), "LAMBDA: how strongly it is warped";
        pub(crate) plrref: f64 = "0.01", number(0.000001, 1.0), "PLRREF: reference of the loss ratio";
        pub(crate) pmrref: f64 = "0.01", number(0.000001, 1.0), "PMRREF: reference of the marking ratio";
        pub(crate) dloss: Span = "10ms", time(Span::ZERO, LONG), "DLOSS: signal of that loss ratio";
        pub(crate) dmark: Span = "2ms", time(Span::ZERO, LONG), "DMARK: signal of that marking ratio";
        pub(crate) beta_s: f64 = "0.1", number(0.0, 10.0), "BETA_S: weight of the pacer's queue in the sending rate";
        pub(crate) beta_v: f64 = "0.1", number(0.0, 10.0), "BETA_V: weight of the pacer's queue in the encoder's rate";
        pub(crate) alpha: f64 = "0.1", number(0.000001, 1.0), "ALPHA: smoothing of loss and marking ratios";
        pub(crate) taps: u32 = "15", whole(1, 1000), "Packets of which the least delay counts (section 5.1.1)";
        pub(crate) ecn: bool as Switch = "off", "Packets say that they may be marked: ECT(0)";
    }
}

impl Algorithm for Config {
    fn build(&self, setup: Setup) -> Box<dyn Controller> {
        Box::new(Nada::new(self, &setup))
    }

    fn feedback(&self) -> FeedbackKind {
        FeedbackKind::Ccfb
    }

    fn feedback_interval(&self) -> Span {
        self.delta
    }

    fn ecn(&self) -> Ecn {
        if self.ecn { Ecn::Ect0 } else { Ecn::NotEct }
    }
}

/// Rates are in bit/s, delays in seconds.
#[derive(Clone, Debug)]
struct Nada {
    config: Config,
    fps: f64,
    rmin: f64,
    rmax: f64,
    r_ref: f64,
    x_prev: f64,
    updated: Option<Time>,
    /// The congestion signal, and its value in equilibrium.
    signal: (f64, f64),
    d_base: f64,
    delays: VecDeque<f64>,
    received: Recent,
    losses: Losses,
    /// When a packet was last lost, or queued for more than QEPS.
    disturbed: Option<Time>,
    buffer: f64,
    is_ramping_up: bool,
}

impl Nada {
    fn new(config: &Config, setup: &Setup) -> Self {
        let rmin = config.rmin.unwrap_or(setup.min_rate).as_bps().max(1) as f64;
        let rmax = config.rmax.unwrap_or(setup.max_rate).as_bps() as f64;
        let start = setup.start_rate.map_or(rmin, |start| start.as_bps() as f64);
        Self {
            fps: setup.frames_per_second,
            rmin,
            rmax: rmax.max(rmin),
            r_ref: start.clamp(rmin, rmax.max(rmin)),
            x_prev: 0.0,
            updated: None,
            signal: (0.0, 0.0),
            d_base: f64::INFINITY,
            delays: VecDeque::new(),
            received: Recent::new(config.logwin),
            losses: Losses::new(config.logwin, config.alpha),
            disturbed: None,
            buffer: 0.0,
            is_ramping_up: true,
            config: config.clone(),
        }
    }

    /// The queueing delay that counts while losses are expected (equation 1).
    fn warped(&self, d_queue: f64) -> f64 {
        let qth = self.config.qth.as_secs_f64();
        match d_queue < qth {
            true => d_queue,
            false => qth * libm::exp(-self.config.lambda * (d_queue - qth) / qth),
        }
    }

    /// The congestion signal (equation 2).
    fn signal(&self, d_queue: f64) -> f64 {
        let Config { dmark, dloss, pmrref, plrref, multiloss, .. } = self.config;
        let expected = self.losses.expected(multiloss);
        let delay = expected * self.warped(d_queue) + (1.0 - expected) * d_queue;
        let square = |ratio: f64| ratio * ratio;
        delay
            + dmark.as_secs_f64() * square(self.losses.marked() / pmrref)
            + dloss.as_secs_f64() * square(self.losses.lost() / plrref)
    }

    /// Section 4.3.
    fn update(&mut self, now: Time, rtt: f64, d_queue: f64) {
        let config = &self.config;
        let x_curr = self.signal(d_queue);
        let delta = self.updated.map_or(config.delta, |updated| now.since(updated)).as_secs_f64();
        self.updated = Some(now);
        self.is_ramping_up = self.disturbed.is_none_or(|at| now.since(at) > config.logwin);
        let rest = config.prio * config.xref.as_secs_f64() * self.rmax / self.r_ref;
        let x_diff = x_curr - self.x_prev;
        self.x_prev = x_curr;
        self.signal = (x_curr, rest);
        if self.is_ramping_up {
            let Some(r_recv) = self.received.rate() else { return };
            let (delta, dfilt) = (config.delta.as_secs_f64(), config.dfilt.as_secs_f64());
            let gamma = config.gamma_max.min(config.qbound.as_secs_f64() / (rtt + delta + dfilt));
            self.r_ref = self.r_ref.max((1.0 + gamma) * r_recv);
        } else {
            let tau = config.tau.as_secs_f64();
            let x_offset = x_curr - rest;
            let change = config.kappa * (delta / tau) * (x_offset / tau)
                + config.kappa * config.eta * (x_diff / tau);
            self.r_ref -= change * self.r_ref;
        }
        self.r_ref = self.r_ref.clamp(self.rmin, self.rmax);
    }

    /// How much the pacer's queue changes a rate (section 5.2.2).
    fn shaping(&self, beta: f64) -> f64 {
        (0.05 * self.r_ref).min(beta * 8.0 * self.buffer * self.fps)
    }
}

impl Controller for Nada {
    fn on_sent(&mut self, _sent: &Sent, outstanding: &Outstanding) {
        self.buffer = outstanding.queued as f64;
    }

    fn on_feedback(&mut self, feedback: &Feedback<'_>) {
        let now = feedback.now;
        let qeps = self.config.qeps.as_secs_f64();
        let mut newest = None;
        for report in feedback.reports {
            let Some(delay) = one_way(report) else {
                self.losses.on_packet(report.packet.at, true, false);
                self.disturbed = Some(now);
                continue;
            };
            self.losses.on_packet(report.packet.at, false, report.ecn == Ecn::Ce);
            self.d_base = self.d_base.min(delay);
            if delay - self.d_base > qeps {
                self.disturbed = Some(now);
            }
            self.delays.push_back(delay);
            if self.delays.len() > self.config.taps as usize {
                self.delays.pop_front();
            }
            newest = Some(report);
        }
        let mut arrived: alloc::vec::Vec<_> = feedback
            .reports
            .iter()
            .filter_map(|report| Some((report.arrived?, report.packet.size)))
            .collect();
        arrived.sort_unstable();
        for (at, size) in arrived {
            self.received.add(at, size);
        }
        let Some(newest) = newest else { return };
        self.losses.smooth();
        let held = feedback.held.unwrap_or(Span::ZERO);
        let rtt = now.since(newest.packet.at).saturating_sub(held).as_secs_f64();
        let least = self.delays.iter().copied().fold(f64::INFINITY, f64::min);
        self.update(now, rtt, least - self.d_base);
    }

    fn outputs(&self) -> Outputs {
        let r_vin = (self.r_ref - self.shaping(self.config.beta_v)).max(self.rmin);
        let r_send = (self.r_ref + self.shaping(self.config.beta_s)).min(self.rmax);
        Outputs {
            target: Rate::from_bps(r_vin as u64),
            pacing: Some(Rate::from_bps(r_send.max(r_vin) as u64)),
            padding: Rate::ZERO,
            window: None,
            phase: if self.is_ramping_up { "ramp_up" } else { "gradual" },
        }
    }

    fn estimates(&self) -> Estimates {
        Estimates {
            delay_based: Some(self.r_ref),
            acknowledged: self.received.rate(),
            signal: Some(1e3 * self.signal.0),
            threshold: Some(1e3 * self.signal.1),
            ..Estimates::default()
        }
    }
}
