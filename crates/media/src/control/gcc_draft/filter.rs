//! The arrival-time filter and the over-use detector (sections 5.3 and 5.4).

use super::Config;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Usage {
    Normal,
    Under,
    Over,
}

/// Times are in milliseconds.
#[derive(Clone, Debug)]
pub(super) struct Filter {
    q: f64,
    chi: f64,
    k_u: f64,
    k_d: f64,
    gain: usize,
    overuse_time: f64,
    /// Estimate of the queue's growth from group to group, and the estimate before it.
    m: f64,
    signal_before: f64,
    e: f64,
    var_v: f64,
    /// Times between the last groups; the shortest stands for their highest rate.
    periods: [f64; 8],
    groups: usize,
    threshold: f64,
    over_for: f64,
    usage: Usage,
}

const LEAST_THRESHOLD: f64 = 6.0;
const MOST_THRESHOLD: f64 = 600.0;
const SPIKE: f64 = 15.0;

impl Filter {
    pub(super) fn new(config: &Config) -> Self {
        Self {
            q: config.q,
            chi: config.chi,
            k_u: config.k_u,
            k_d: config.k_d,
            gain: config.gain as usize,
            overuse_time: config.overuse_time_th.as_millis_f64(),
            m: 0.0,
            signal_before: 0.0,
            e: config.e,
            var_v: 1.0,
            periods: [f64::INFINITY; 8],
            groups: 0,
            threshold: config.del_var_th,
            over_for: 0.0,
            usage: Usage::Normal,
        }
    }

    pub(super) fn usage(&self) -> Usage {
        self.usage
    }

    /// The estimate as it is compared with the threshold.
    pub(super) fn signal(&self) -> f64 {
        self.m * self.groups.min(self.gain) as f64
    }

    pub(super) fn threshold(&self) -> f64 {
        self.threshold
    }

    /// Takes a group that left `period` ms after the one before; its delay was `d` ms longer.
    pub(super) fn on_group(&mut self, d: f64, period: f64) {
        self.periods[self.groups % 8] = period.max(0.001);
        self.groups += 1;
        let shortest = self.periods.iter().copied().fold(f64::INFINITY, f64::min);
        let alpha = libm::pow(1.0 - self.chi, 30.0 * shortest / 1000.0);
        let z = d - self.m;
        let most = 3.0 * libm::sqrt(self.var_v);
        let clamped = z.clamp(-most, most);
        self.var_v = (alpha * self.var_v + (1.0 - alpha) * clamped * clamped).max(1.0);
        let k = (self.e + self.q) / (self.var_v + self.e + self.q);
        self.m += k * z;
        self.e = (1.0 - k) * (self.e + self.q);
        self.detect(period);
    }

    fn detect(&mut self, period: f64) {
        let signal = self.signal();
        let before = core::mem::replace(&mut self.signal_before, signal);
        if signal > self.threshold {
            self.over_for += period;
            if self.over_for >= self.overuse_time && signal >= before {
                self.usage = Usage::Over;
            }
        } else {
            self.over_for = 0.0;
            self.usage = if signal < -self.threshold { Usage::Under } else { Usage::Normal };
        }
        let above = libm::fabs(signal) - self.threshold;
        if above > SPIKE {
            return;
        }
        let k = if above < 0.0 { self.k_d } else { self.k_u };
        self.threshold += period * k * above;
        self.threshold = self.threshold.clamp(LEAST_THRESHOLD, MOST_THRESHOLD);
    }
}
