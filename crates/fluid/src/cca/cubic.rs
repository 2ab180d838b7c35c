//! CUBIC (RFC 9438), with HyStart++ (RFC 9406) in the first slow start.

use super::slow_start::Window;
use super::{Setup, Told};

/// Section 5: packets per second cubed.
const C: f64 = 0.4;
/// Section 4.6: the share of the window that is kept.
const BETA: f64 = 0.7;
/// Section 4.3: the additive increase that gives Reno's share at this beta.
const ALPHA: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);

/// RFC 9406 section 4.3.
const MIN_RTT_THRESH: f64 = 4e-3;
const MAX_RTT_THRESH: f64 = 16e-3;
const MIN_RTT_DIVISOR: f64 = 8.0;
const CSS_GROWTH_DIVISOR: f64 = 4.0;
const CSS_ROUNDS: u32 = 5;

#[derive(Clone, Debug)]
pub(crate) struct Cubic {
    pub(super) window: Window,
    packet: f64,
    epoch: Option<Epoch>,
    /// In packets, as what follows.
    w_max: f64,
    cwnd_prior: f64,
    hystart: HyStart,
}

/// Congestion avoidance since the last congestion.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    /// Time for which the curve has run; it stands still while the window is not the limit.
    t: f64,
    last: f64,
    k: f64,
    w_est: f64,
}

/// RFC 9406 section 4.2, by the delay of whole rounds.
#[derive(Clone, Copy, Debug)]
struct HyStart {
    round_ends: f64,
    last_round_min: f64,
    round_min: f64,
    baseline: f64,
    /// Rounds of conservative slow start.
    css: Option<u32>,
}

impl Cubic {
    pub(super) fn new(setup: Setup) -> Self {
        Self {
            window: Window::new(setup),
            packet: setup.packet,
            epoch: None,
            w_max: 0.0,
            cwnd_prior: 0.0,
            hystart: HyStart {
                round_ends: setup.initial_window,
                last_round_min: f64::INFINITY,
                round_min: f64::INFINITY,
                baseline: f64::INFINITY,
                css: None,
            },
        }
    }

    pub(super) fn on_step(&mut self, told: &Told) {
        self.window.follow(told);
        if told.losses + told.marks > 0 {
            self.congestion(told);
        } else if self.window.may_grow(told) {
            self.grow(told);
        } else if let Some(epoch) = &mut self.epoch {
            epoch.last = told.now;
        }
    }

    /// Sections 4.6 and 4.7.
    fn congestion(&mut self, told: &Told) {
        let cwnd = self.window.cwnd / self.packet;
        if !self.window.cut(told, BETA) {
            return;
        }
        self.w_max = if cwnd < self.w_max { cwnd * (1.0 + BETA) / 2.0 } else { cwnd };
        self.cwnd_prior = cwnd;
        self.epoch = None;
        self.hystart.css = None;
    }

    fn grow(&mut self, told: &Told) {
        let mut acked = told.acked;
        if self.window.is_slow_start() {
            acked = self.slow_start(told);
        }
        if acked <= 0.0 {
            return;
        }
        let cwnd = self.window.cwnd / self.packet;
        let epoch = self.epoch.get_or_insert_with(|| {
            // Section 4.2, equation 2; without a loss before, the curve begins at its plateau.
            let w_max = if self.w_max > cwnd { self.w_max } else { cwnd };
            self.w_max = w_max;
            let k = libm::cbrt((w_max - cwnd) / C);
            Epoch { t: 0.0, last: told.now, k, w_est: cwnd }
        });
        epoch.t += told.now - epoch.last;
        epoch.last = told.now;
        // Section 4.3, equation 4: as Reno would, once it has come back to where it was cut.
        let alpha = if epoch.w_est >= self.cwnd_prior { 1.0 } else { ALPHA };
        epoch.w_est += alpha * acked / self.window.cwnd;
        // Section 4.2, equation 1.
        let w_cubic = |t: f64| {
            let from_plateau = t - epoch.k;
            C * from_plateau * from_plateau * from_plateau + self.w_max
        };
        if w_cubic(epoch.t) < epoch.w_est {
            self.window.cwnd = self.window.cwnd.max(epoch.w_est * self.packet);
            return;
        }
        // Sections 4.4 and 4.5: the way to the target is one window of acknowledgements long.
        let target = w_cubic(epoch.t + told.rtt).clamp(cwnd, 1.5 * cwnd) * self.packet;
        let left = libm::exp(-acked / self.window.cwnd);
        self.window.cwnd = target - (target - self.window.cwnd) * left;
    }

    fn slow_start(&mut self, told: &Told) -> f64 {
        let hystart = &mut self.hystart;
        hystart.round_min = hystart.round_min.min(told.rtt);
        let is_first = !self.window.ssthresh.is_finite();
        let thresh =
            (hystart.last_round_min / MIN_RTT_DIVISOR).clamp(MIN_RTT_THRESH, MAX_RTT_THRESH);
        let is_risen = hystart.round_min >= hystart.last_round_min + thresh;
        if is_first && hystart.css.is_none() && hystart.last_round_min.is_finite() && is_risen {
            hystart.css = Some(0);
            hystart.baseline = hystart.round_min;
        } else if hystart.css.is_some() && hystart.round_min < hystart.baseline {
            hystart.css = None;
        }
        if told.delivered >= hystart.round_ends {
            hystart.round_ends = told.sent;
            hystart.last_round_min = hystart.round_min;
            hystart.round_min = f64::INFINITY;
            if let Some(rounds) = &mut hystart.css {
                *rounds += 1;
                if *rounds >= CSS_ROUNDS {
                    self.window.ssthresh = self.window.cwnd;
                    hystart.css = None;
                }
            }
        }
        let divisor = if self.hystart.css.is_some() { CSS_GROWTH_DIVISOR } else { 1.0 };
        self.window.slow_start(told.acked / divisor) * divisor
    }
}
