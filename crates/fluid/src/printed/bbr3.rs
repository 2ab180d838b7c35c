//! BBRv3, equations (9) to (14) as printed.
//!
//! Nothing printed says when m_crs changes, when ProbeRTT is, what v_i is, or what Δ and σ are. The paper
//! says that it adapts the model of Scherrer et al., so these come from there: periods, switches and
//! slopes of BBRv2; Δ is 0.3 and p_th 2 %. v_i is x_i·τ_i, as Little's law has it.

use crate::scherrer::shapes::{sharp, smooth};

/// g_hi of equation (9).
const G_HI: f64 = 2.25;
/// Δ and p_th of equations (10) and (11).
const DELTA: f64 = 0.3;
const P_TH: f64 = 0.02;
/// Seconds: a period of ProbeBW, at most 63 round trips, and what flows are apart in it.
const PERIOD: f64 = 2.0;
const SPREAD: f64 = 1.0;
const ROUNDS: f64 = 63.0;
/// Probing ends above so many bandwidth-delay products.
const PROBE_UP: f64 = 1.25;
/// Seconds between two ProbeRTTs, and of one.
const PROBE_RTT_INTERVAL: f64 = 5.0;
const PROBE_RTT_LASTS: f64 = 0.2;

#[derive(Clone, Debug)]
pub(super) struct Bbr3 {
    /// w̄_i, packets, and τ_min, seconds.
    pub(super) base: f64,
    least_rtt: f64,
    /// w_hi and w_lo.
    pub(super) high: f64,
    low: f64,
    /// m_crs.
    cruises: bool,
    period: f64,
    began: f64,
    probe_rtt: f64,
    pub(super) window: f64,
}

/// What a flow sees now.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    pub(super) now: f64,
    /// x_i of the last step, τ_i and p_i.
    pub(super) rate: f64,
    pub(super) rtt: f64,
    pub(super) loss: f64,
}

impl Bbr3 {
    /// The flow in this place of so many; w_hi and w_lo begin as BBRv2's do in Scherrer et al.
    pub(super) fn new(place: usize, flows: usize, base: f64, least_rtt: f64) -> Self {
        let own = PERIOD + place as f64 / flows as f64 * SPREAD;
        Self {
            base,
            least_rtt,
            high: PROBE_UP * base,
            low: base,
            cruises: true,
            period: own.min(ROUNDS * least_rtt),
            began: 0.0,
            probe_rtt: PROBE_RTT_INTERVAL,
            window: base,
        }
    }

    fn is_probe_rtt(&self, now: f64) -> bool {
        now >= self.probe_rtt
    }

    pub(super) fn phase(&self, now: f64) -> &'static str {
        match (self.is_probe_rtt(now), self.cruises) {
            (true, _) => "PROBE_RTT",
            (_, true) => "PROBE_BW:CRUISE",
            _ => "PROBE_BW:UP",
        }
    }

    /// x_i after a step.
    pub(super) fn advance(&mut self, seen: &Seen, step: f64) -> f64 {
        let Seen { now, rate, rtt, loss } = *seen;
        let base = self.base;
        let in_flight = rate * rtt;
        let lossy = sharp(loss - P_TH);
        let m_crs = if self.cruises { 1.0 } else { 0.0 };
        // Equation (10), t_pbw as the round-trip sample that the text calls it; arguments of σ in
        // milliseconds and packets, growth in packets a second.
        let grows = (1.0 - m_crs)
            * G_HI
            * (rtt / self.least_rtt)
            * sharp(1000.0 * (rtt - self.least_rtt))
            * smooth(in_flight - self.high);
        let falls = DELTA / self.least_rtt * lossy * self.high;
        self.high += step * (grows - falls);
        // Equation (11).
        let relaxes = (1.0 - m_crs) / self.least_rtt * (self.low - base);
        let falls = m_crs * DELTA / self.least_rtt * lossy * self.low;
        self.low -= step * (relaxes + falls);
        self.switch(now, in_flight, loss);
        if now >= self.probe_rtt + PROBE_RTT_LASTS {
            self.probe_rtt = now + PROBE_RTT_INTERVAL;
        }
        let m_crs = if self.cruises { 1.0 } else { 0.0 };
        // Equation (14).
        if self.is_probe_rtt(now) {
            // Equation (13).
            self.window = base / 2.0;
            base / (2.0 * self.least_rtt)
        } else {
            // Equation (9).
            self.window =
                (2.0 * base).min(m_crs * self.low) + (G_HI * base).min((1.0 - m_crs) * self.high);
            // Equation (12).
            self.window / self.least_rtt
        }
    }

    fn switch(&mut self, now: f64, in_flight: f64, loss: f64) {
        let in_period = now - self.began;
        if self.cruises && in_period >= self.period {
            self.cruises = false;
            self.began = now;
        } else if !self.cruises && in_period >= self.least_rtt {
            self.cruises = in_flight >= PROBE_UP * self.base || loss >= P_TH;
        }
    }
}
