//! BBRv2, by the paper's letters: periods of probing, draining and cruising between w_lo and w_hi.

use alloc::collections::VecDeque;

use super::bbr::{Estimates, Old};
use super::shapes::{sharp, smooth};
use super::{Seen, Shared};

/// Milliseconds until the first ProbeRTT.
const FIRST_PROBE: f64 = 5000.0;
/// A period of ProbeBW: two seconds and up to one more, at most 63 round trips.
const PERIOD: f64 = 2000.0;
const SPREAD: f64 = 1000.0;
const ROUNDS: f64 = 63.0;
/// Share of losses that is too much.
const LOSS_THRESHOLD: f64 = 0.02;
const HEADROOM: f64 = 0.15;
/// Probing ends above 1.25 bandwidth-delay products, less a little.
const PROBE_UP: f64 = 499.0 / 400.0;
const GAIN: f64 = 0.25;
/// A drain gives up after so many round trips.
const DRAIN_ROUNDS: f64 = 10.0;
/// Of w_hi: its least, in bandwidth-delay products, and its decrease while losses are too many.
const LEAST_HIGH: f64 = 1.15;
const HIGH_CUT: f64 = 0.3;
/// What remains of w_lo in a round trip with too many losses.
const LOW_KEEPS: f64 = 0.9;

#[derive(Clone, Debug)]
pub(super) struct Bbr2 {
    pub(super) model: Estimates,
    /// w_lo and w_hi.
    low: f64,
    pub(super) high: f64,
    /// m_dwn and m_crs.
    drains: bool,
    cruises: bool,
    /// x_max of each step of a period: the authors' results depend on its every step.
    largest: VecDeque<f64>,
}

impl Bbr2 {
    pub(super) fn new(window: f64, bottleneck: f64, delay: f64, buffer: f64) -> Self {
        let model = Estimates::new(bottleneck, delay, FIRST_PROBE, window);
        let high = (1.0 + 2.0 * (buffer - 4.0).max(0.0) / 4.0) * 1.25 * window;
        let largest = [bottleneck].into();
        Self { model, low: window, high, drains: false, cruises: true, largest }
    }

    pub(super) fn phase(&self) -> &'static str {
        match (self.model.is_probing(), self.cruises, self.drains) {
            (true, ..) => "probe_rtt",
            (_, true, _) => "probe_bw_cruise",
            (.., true) => "probe_bw_down",
            _ => "probe_bw_up",
        }
    }

    /// Window and rate.
    pub(super) fn advance(
        &mut self,
        shared: &Shared,
        place: usize,
        seen: &Seen,
        old: &Old,
        rate: f64,
    ) -> (f64, f64) {
        let trip = old.least_rtt;
        let in_period = seen.now - self.model.began;
        let period = (PERIOD + place as f64 / shared.flows as f64 * SPREAD).min(ROUNDS * trip);
        self.model.probe_rtt(shared, seen, old);
        let probes = self.model.is_probing();
        let cruises = self.cruises;
        let is_lossy = seen.smooth_loss >= LOSS_THRESHOLD;
        let bdp = self.model.bottleneck * trip;
        let headroom = if cruises { 1.0 - HEADROOM } else { 1.0 };
        let window = if probes {
            bdp / 2.0
        } else {
            (2.0 * libm::ceil(bdp)).min(self.low).min(headroom * self.high)
        };
        self.model.follow(shared, seen, in_period);
        if self.drains && !probes {
            self.model.bottleneck = self.model.largest.max(self.largest_ago(period / shared.step));
        }
        let target = bdp.min(0.85 * self.high);
        let filled = match (probes, cruises) {
            (true, _) => window - self.model.in_flight,
            (_, true) => target - self.model.in_flight,
            _ => rate - seen.delivery,
        };
        let in_flight = (self.model.in_flight + shared.step * filled).max(0.0);
        self.model.in_flight = in_flight;
        // m_dwn and m_crs: from probing to draining, and from draining to cruising.
        let drained = self.drains;
        let is_late = in_period >= trip;
        if !drained {
            self.drains = !cruises && is_late && (in_flight >= PROBE_UP * bdp || is_lossy);
        } else if in_flight <= target || in_period >= DRAIN_ROUNDS * trip {
            self.drains = false;
        }
        let ends_drain = drained && !self.drains;
        let up = if cruises || self.drains { 0.0 } else { GAIN * sharp(in_period - trip) };
        let down = if self.drains { GAIN } else { 0.0 };
        self.model.pacing = self.model.bottleneck * (1.0 + up - down);
        let rate = if probes {
            in_flight / seen.rtt
        } else {
            (window / seen.old_rtt).min(self.model.pacing)
        };
        // w_hi grows by 2^(t/τ) packets a millisecond, as the authors have it.
        let bdp = self.model.bottleneck * trip;
        let mut slope = 0.0;
        if !cruises && is_late {
            let at_most = smooth(in_flight - self.high);
            slope += at_most * libm::exp2(in_period / trip);
        }
        if !cruises && is_lossy {
            slope -= HIGH_CUT / seen.delay * self.high;
        }
        self.high = (self.high + shared.step * slope).max(LEAST_HIGH * bdp);
        if !cruises {
            self.low = self.high;
        } else if is_lossy {
            self.low += shared.step * libm::log(LOW_KEEPS) / seen.delay * self.low;
        }
        self.cruises = if cruises { in_period < period } else { ends_drain };
        self.model.end(shared, seen, period);
        self.largest.push_back(self.model.largest);
        (window, rate)
    }

    /// x_max so many steps ago.
    fn largest_ago(&mut self, steps: f64) -> f64 {
        while self.largest.len() as f64 > steps {
            self.largest.pop_front();
        }
        self.largest[0]
    }
}
