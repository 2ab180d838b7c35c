//! Kalman filter of two states over groups of packets, the time that a byte takes and the queue's growth, and a detector
//! with a threshold that adapts: libwebrtc's of 2015.

use alloc::collections::VecDeque;

use super::Config;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Usage {
    Normal,
    Under,
    Over,
}

#[derive(Clone, Debug)]
pub(super) struct Filter {
    slope: f64,
    offset: f64,
    offset_before: f64,
    error: [[f64; 2]; 2],
    process: [f64; 2],
    mean: f64,
    variance: f64,
    groups: u32,
    /// Times between the last groups' leaving, in milliseconds.
    periods: VecDeque<f64>,
    threshold: f64,
    updated: Option<f64>,
    k_up: f64,
    k_down: f64,
    overuse_time: f64,
    over_for: Option<f64>,
    over_count: u32,
    detected_before: f64,
    usage: Usage,
}

/// The shortest period is sought among this many groups.
const PERIODS: usize = 60;
const MOST_GROUPS: u32 = 1000;
/// The signal is multiplied by the number of groups, but at most by this.
const MOST_FACTOR: u32 = 60;
/// The noise is learnt faster in the first ten seconds, at 30 groups a second.
const FIRST_GROUPS: u32 = 300;
const FAST: f64 = 0.01;
const SLOW: f64 = 0.002;
/// Residuals are limited to this many standard deviations.
const OUTLIER: f64 = 3.0;
/// A signal farther above the threshold than this does not move it; milliseconds.
const SPIKE: f64 = 15.0;
const LEAST_THRESHOLD: f64 = 6.0;
const MOST_THRESHOLD: f64 = 600.0;
/// After a longer pause, the threshold moves as if only this much time had passed; milliseconds.
const LONGEST_STEP: f64 = 100.0;

impl Filter {
    pub(super) fn new(config: &Config) -> Self {
        Self {
            slope: config.slope,
            offset: 0.0,
            offset_before: 0.0,
            error: [[config.slope_error, 0.0], [0.0, config.offset_error]],
            process: [config.slope_noise, config.offset_noise],
            mean: 0.0,
            variance: config.noise,
            groups: 0,
            periods: VecDeque::new(),
            threshold: config.threshold,
            updated: None,
            k_up: config.k_up,
            k_down: config.k_down,
            overuse_time: config.overuse_time.as_millis_f64(),
            over_for: None,
            over_count: 0,
            detected_before: 0.0,
            usage: Usage::Normal,
        }
    }

    pub(super) fn usage(&self) -> Usage {
        self.usage
    }

    /// A group came `arrived` ms after the one before, left `sent` ms after it and is `larger` bytes larger.
    pub(super) fn on_group(&mut self, now: f64, arrived: f64, sent: f64, larger: f64) {
        self.periods.push_back(sent);
        if self.periods.len() > PERIODS {
            self.periods.pop_front();
        }
        let period = self.periods.iter().copied().fold(f64::INFINITY, f64::min);
        self.groups = (self.groups + 1).min(MOST_GROUPS);
        self.estimate(arrived - sent, larger, period);
        self.detect(now, sent);
    }

    fn estimate(&mut self, later: f64, larger: f64, period: f64) {
        self.error[0][0] += self.process[0];
        self.error[1][1] += self.process[1];
        let turns = (self.usage == Usage::Over && self.offset < self.offset_before)
            || (self.usage == Usage::Under && self.offset > self.offset_before);
        if turns {
            self.error[1][1] += 10.0 * self.process[1];
        }
        let h = [larger, 1.0];
        let [e0, e1] = self.error;
        let eh = [e0[0] * h[0] + e0[1] * h[1], e1[0] * h[0] + e1[1] * h[1]];
        let residual = later - self.slope * h[0] - self.offset;
        if self.usage == Usage::Normal {
            let most = OUTLIER * libm::sqrt(self.variance);
            self.learn_noise(residual.clamp(-most, most), period);
        }
        let denominator = self.variance + h[0] * eh[0] + h[1] * eh[1];
        let k = [eh[0] / denominator, eh[1] / denominator];
        let m = [[1.0 - k[0] * h[0], -k[0] * h[1]], [-k[1] * h[0], 1.0 - k[1] * h[1]]];
        for (row, m) in self.error.iter_mut().zip(m) {
            *row = [e0[0] * m[0] + e1[0] * m[1], e0[1] * m[0] + e1[1] * m[1]];
        }
        self.slope += k[0] * residual;
        self.offset_before = self.offset;
        self.offset += k[1] * residual;
    }

    fn learn_noise(&mut self, residual: f64, period: f64) {
        let alpha = if self.groups > FIRST_GROUPS { SLOW } else { FAST };
        let kept = libm::pow(1.0 - alpha, period * 30.0 / 1000.0);
        self.mean = kept * self.mean + (1.0 - kept) * residual;
        let off = self.mean - residual;
        self.variance = (kept * self.variance + (1.0 - kept) * off * off).max(1.0);
    }

    fn detect(&mut self, now: f64, sent: f64) {
        if self.groups < 2 {
            return;
        }
        let signal = f64::from(self.groups.min(MOST_FACTOR)) * self.offset;
        if signal > self.threshold {
            let over = self.over_for.map_or(sent / 2.0, |over| over + sent);
            self.over_for = Some(over);
            self.over_count += 1;
            if over > self.overuse_time
                && self.over_count > 1
                && self.offset >= self.detected_before
            {
                self.over_for = Some(0.0);
                self.over_count = 0;
                self.usage = Usage::Over;
            }
        } else {
            self.over_for = None;
            self.over_count = 0;
            self.usage = if signal < -self.threshold { Usage::Under } else { Usage::Normal };
        }
        self.detected_before = self.offset;
        self.follow(now, libm::fabs(signal));
    }

    fn follow(&mut self, now: f64, signal: f64) {
        let since = now - self.updated.replace(now).unwrap_or(now);
        if signal > self.threshold + SPIKE {
            return;
        }
        let k = if signal < self.threshold { self.k_down } else { self.k_up };
        self.threshold += k * (signal - self.threshold) * since.min(LONGEST_STEP);
        self.threshold = self.threshold.clamp(LEAST_THRESHOLD, MOST_THRESHOLD);
    }
}
