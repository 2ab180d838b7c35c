//! The trend of delays, and whether it means over-use.
//!
//! A line is fitted to the smoothed, accumulated delay of the last groups. Its slope tells how fast
//! the queue grows. The slope, weighted, is compared with a threshold that follows it slowly.

use alloc::collections::VecDeque;

use sojourn_core::{Span, Time};

use super::Config;
use super::groups::{Deltas, Groups};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Usage {
    #[default]
    Normal,
    Under,
    Over,
}

#[derive(Clone, Debug)]
pub(super) struct Trendline {
    window: usize,
    smoothing: f64,
    gain: f64,
    k_up: f64,
    k_down: f64,
    overuse_time: f64,
    groups: Groups,
    deltas: u32,
    first_arrival: Option<Time>,
    accumulated: f64,
    smoothed: f64,
    /// Arrival since the first one, and smoothed delay, in milliseconds.
    points: VecDeque<(f64, f64)>,
    trend_before: f64,
    /// γ, in milliseconds.
    threshold: f64,
    threshold_updated: Option<Time>,
    /// For how long, in milliseconds, and for how many groups the trend has been above the threshold.
    over_for: Option<f64>,
    over_count: u32,
    usage: Usage,
    /// The weighted trend.
    signal: f64,
    last_seen: Option<Time>,
}

const MOST_DELTAS: u32 = 1000;
/// The weight of the trend grows with the number of differences, up to this number.
const FULL_WEIGHT: u32 = 60;
/// A trend further above the threshold does not move it: it is a spike.
const SPIKE: f64 = 15.0;
const LONGEST_STEP: f64 = 100.0;
/// After a pause this long, measuring starts again.
const STREAM_TIMEOUT: Span = Span::from_secs(2);

impl Trendline {
    pub(super) fn new(config: &Config) -> Self {
        Self {
            window: config.window as usize,
            smoothing: config.smoothing,
            gain: config.threshold_gain,
            k_up: config.k_up,
            k_down: config.k_down,
            overuse_time: config.overuse_time.as_millis_f64(),
            groups: Groups::new(config.group, config.burst_gap),
            deltas: 0,
            first_arrival: None,
            accumulated: 0.0,
            smoothed: 0.0,
            points: VecDeque::new(),
            trend_before: 0.0,
            threshold: config.threshold,
            threshold_updated: None,
            over_for: None,
            over_count: 0,
            usage: Usage::Normal,
            signal: 0.0,
            last_seen: None,
        }
    }

    pub(super) fn usage(&self) -> Usage {
        self.usage
    }

    pub(super) fn signal(&self) -> f64 {
        self.signal
    }

    pub(super) fn threshold(&self) -> f64 {
        self.threshold
    }

    /// A report of arrivals came; each of its packets follows.
    pub(super) fn on_report(&mut self, config: &Config, now: Time) {
        if self.last_seen.is_some_and(|last| now.since(last) > STREAM_TIMEOUT) {
            *self = Self::new(config);
        }
        self.last_seen = Some(now);
    }

    pub(super) fn on_packet(&mut self, sent: Time, arrived: Time) {
        if let Some(deltas) = self.groups.on_packet(sent, arrived) {
            self.on_deltas(deltas, arrived);
        }
    }

    fn on_deltas(&mut self, deltas: Deltas, arrived: Time) {
        self.deltas = (self.deltas + 1).min(MOST_DELTAS);
        let first = *self.first_arrival.get_or_insert(arrived);
        self.accumulated += deltas.arrived - deltas.sent;
        self.smoothed = self.smoothing * self.smoothed + (1.0 - self.smoothing) * self.accumulated;
        self.points.push_back((arrived.since(first).as_millis_f64(), self.smoothed));
        if self.points.len() > self.window {
            self.points.pop_front();
        }
        let is_full = self.points.len() == self.window;
        let trend = if is_full { slope(&self.points) } else { None };
        self.detect(trend.unwrap_or(self.trend_before), deltas.sent, arrived);
    }

    fn detect(&mut self, trend: f64, apart: f64, arrived: Time) {
        if self.deltas < 2 {
            self.usage = Usage::Normal;
            return;
        }
        self.signal = f64::from(self.deltas.min(FULL_WEIGHT)) * trend * self.gain;
        if self.signal > self.threshold {
            // The trend crossed the threshold at an unknown moment since the last group: half of that
            // time counts.
            let over_for = self.over_for.map_or(apart / 2.0, |over_for| over_for + apart);
            self.over_for = Some(over_for);
            self.over_count += 1;
            if over_for > self.overuse_time && self.over_count > 1 && trend >= self.trend_before {
                self.over_for = Some(0.0);
                self.over_count = 0;
                self.usage = Usage::Over;
            }
        } else {
            self.over_for = None;
            self.over_count = 0;
            let is_under = self.signal < -self.threshold;
            self.usage = if is_under { Usage::Under } else { Usage::Normal };
        }
        self.trend_before = trend;
        self.adapt(arrived);
    }

    fn adapt(&mut self, now: Time) {
        let last = self.threshold_updated.replace(now).unwrap_or(now);
        let size = libm::fabs(self.signal);
        if size > self.threshold + SPIKE {
            return;
        }
        let k = if size < self.threshold { self.k_down } else { self.k_up };
        let step = now.since(last).as_millis_f64().min(LONGEST_STEP);
        self.threshold = (self.threshold + k * (size - self.threshold) * step).clamp(6.0, 600.0);
    }
}

/// The slope of the line of least squares; `None` if all points are at one time.
fn slope(points: &VecDeque<(f64, f64)>) -> Option<f64> {
    let n = points.len() as f64;
    let (x_sum, y_sum) = points.iter().fold((0.0, 0.0), |sum, p| (sum.0 + p.0, sum.1 + p.1));
    let (x_mean, y_mean) = (x_sum / n, y_sum / n);
    let (over, under) = points.iter().fold((0.0, 0.0), |sum, (x, y)| {
        let from_mean = x - x_mean;
        (sum.0 + from_mean * (y - y_mean), sum.1 + from_mean * from_mean)
    });
    (under != 0.0).then(|| over / under)
}
