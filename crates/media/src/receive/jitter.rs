//! How much frames vary in their delay: libwebrtc's estimator for its jitter buffer.
//!
//! A Kalman filter splits the difference of two frames' delays into what their sizes explain (the
//! bottleneck's rate) and the rest (noise). The estimate covers the largest frame and the noise.

use sojourn_core::{Span, Time};

#[derive(Clone, Debug)]
pub(crate) struct Jitter {
    /// Milliseconds per byte, and an offset in milliseconds.
    slope: f64,
    offset: f64,
    covariance: [[f64; 2]; 2],
    average_size: f64,
    size_variance: f64,
    largest_size: f64,
    last_size: f64,
    startup_sizes: (f64, u32),
    noise: f64,
    noise_variance: f64,
    noise_samples: f64,
    startup: u32,
    filtered: f64,
    before: f64,
    last: Option<(Time, Time)>,
    repaired: u32,
    /// When the newest of them arrived.
    repaired_at: Time,
    pace: Pace,
}

/// How long the last frames took, which says how many come in a second.
#[derive(Clone, Debug)]
struct Pace {
    gaps: [Span; Self::MOST],
    /// The place of the oldest, and how many there are.
    oldest: usize,
    count: u64,
    sum: Span,
    last: Option<Time>,
}

impl Pace {
    const MOST: usize = 30;

    fn new() -> Self {
        Self { gaps: [Span::ZERO; Self::MOST], oldest: 0, count: 0, sum: Span::ZERO, last: None }
    }

    fn on_frame(&mut self, now: Time) {
        if let Some(last) = self.last.replace(now) {
            let gap = now.since(last);
            let oldest = core::mem::replace(&mut self.gaps[self.oldest], gap);
            self.sum = self.sum.saturating_sub(oldest) + gap;
            self.oldest = if self.oldest + 1 == Self::MOST { 0 } else { self.oldest + 1 };
            self.count = (self.count + 1).min(Self::MOST as u64);
        }
    }

    /// Whether fewer than so many frames come in a second.
    fn is_below(&self, fps: u64) -> bool {
        self.count * 1_000_000_000 < fps * self.sum.as_nanos()
    }

    fn fps(&self) -> f64 {
        self.count as f64 / self.sum.as_secs_f64()
    }
}

const SIZE_WEIGHT: f64 = 0.97;
const LARGEST_DECAY: f64 = 0.9999;
const SIZES_AT_START: u32 = 5;
const STARTUP: u32 = 30;
const DELAY_CLAMP: f64 = 3.5;
const DELAY_OUTLIER: f64 = 15.0;
const SIZE_OUTLIER: f64 = 3.0;
const CONGESTED: f64 = -0.25;
const NOISE_DEVIATIONS: f64 = 2.33;
const NOISE_OFFSET: f64 = 30.0;
const MOST_SAMPLES: f64 = 400.0;
const PROCESS_NOISE: [f64; 2] = [2.5e-10, 1e-10];
/// Added for delays of the operating system, in milliseconds.
const SYSTEM: f64 = 10.0;
const MOST: f64 = 10_000.0;
/// After this many repaired frames, a share of the round trip is added, but at most so many milliseconds, until none has been
/// repaired for so long.
const MOST_REPAIRED: u32 = 3;
const ROUND_TRIP: f64 = 0.9;
const MOST_ROUND_TRIP: f64 = 200.0;
const REPAIRED_FOR: Span = Span::from_secs(60);
/// Below the first of these frame rates frames wait for nothing, below the second for less.
const SLOW: [u64; 2] = [5, 10];

impl Jitter {
    pub(crate) fn new() -> Self {
        Self {
            slope: 1.0 / (512e3 / 8.0),
            offset: 0.0,
            covariance: [[1e-4, 0.0], [0.0, 1e2]],
            average_size: 500.0,
            size_variance: 100.0,
            largest_size: 500.0,
            last_size: 0.0,
            startup_sizes: (0.0, 0),
            noise: 0.0,
            noise_variance: 4.0,
            noise_samples: 1.0,
            startup: 0,
            filtered: 0.0,
            before: 0.0,
            last: None,
            repaired: 0,
            repaired_at: Time::ZERO,
            pace: Pace::new(),
        }
    }

    /// Takes the frame that is decoded next, of which no packet was sent again.
    #[inline(always)]
    pub(crate) fn on_frame(&mut self, captured: Time, arrived: Time, bytes: u32) {
        let Some((last_captured, last_arrived)) = self.last.replace((captured, arrived)) else {
            return;
        };
        let apart = |from: Time, to: Time| (to.as_nanos() as f64 - from.as_nanos() as f64) / 1e6;
        let delay = apart(last_arrived, arrived) - apart(last_captured, captured);
        self.pace.on_frame(arrived);
        self.update(delay, f64::from(bytes));
    }

    /// A frame of which a packet was sent again: how late it is says nothing of the path.
    pub(crate) fn on_repaired(&mut self, arrived: Time) {
        self.repaired = (self.repaired + 1).min(MOST_REPAIRED);
        self.repaired_at = arrived;
    }

    #[inline(always)]
    fn update(&mut self, delay: f64, size: f64) {
        let change = size - self.last_size;
        if self.startup_sizes.1 < SIZES_AT_START {
            self.startup_sizes.0 += size;
            self.startup_sizes.1 += 1;
        } else if self.startup_sizes.1 == SIZES_AT_START {
            self.average_size = self.startup_sizes.0 / f64::from(SIZES_AT_START);
            self.startup_sizes.1 += 1;
        }
        let average = SIZE_WEIGHT * self.average_size + (1.0 - SIZE_WEIGHT) * size;
        if size < self.average_size + 2.0 * libm::sqrt(self.size_variance) {
            self.average_size = average;
        }
        let off = size - average;
        self.size_variance =
            (SIZE_WEIGHT * self.size_variance + (1.0 - SIZE_WEIGHT) * off * off).max(1.0);
        self.largest_size = (LARGEST_DECAY * self.largest_size).max(size);
        if self.last_size == 0.0 {
            self.last_size = size;
            return;
        }
        self.last_size = size;
        let deviation = libm::sqrt(self.noise_variance);
        let most = DELAY_CLAMP * deviation + 0.5;
        let delay = delay.clamp(-most, most);
        let unexplained = delay - (self.slope * change + self.offset);
        let is_large = size > self.average_size + SIZE_OUTLIER * libm::sqrt(self.size_variance);
        if libm::fabs(unexplained) < DELAY_OUTLIER * deviation || is_large {
            self.add_noise(unexplained);
            if change > CONGESTED * self.largest_size {
                self.filter(delay, change);
            }
        } else {
            self.add_noise(libm::copysign(DELAY_OUTLIER * deviation, unexplained));
        }
        if self.startup >= STARTUP {
            self.filtered = self.calculate();
        } else {
            self.startup += 1;
        }
    }

    fn add_noise(&mut self, noise: f64) {
        let weight = (self.noise_samples - 1.0) / self.noise_samples;
        self.noise_samples = (self.noise_samples + 1.0).min(MOST_SAMPLES);
        let off = noise - self.noise;
        self.noise = weight * self.noise + (1.0 - weight) * noise;
        self.noise_variance = (weight * self.noise_variance + (1.0 - weight) * off * off).max(1.0);
    }

    fn filter(&mut self, delay: f64, change: f64) {
        let [[a, b], [c, d]] = &mut self.covariance;
        *a += PROCESS_NOISE[0];
        *d += PROCESS_NOISE[1];
        let (m, n) = (*a * change + *b, *c * change + *d);
        let weight = 300.0 * libm::exp(-libm::fabs(change) / self.largest_size) + 1.0;
        let observation = (weight * libm::sqrt(self.noise_variance)).max(1.0);
        let variance = change * m + n + observation;
        let innovation = delay - (self.slope * change + self.offset);
        let (k, l) = (m / variance, n / variance);
        self.slope = (self.slope + k * innovation).max(1e-6);
        self.offset += l * innovation;
        let (a0, b0) = (*a, *b);
        *a = (1.0 - k * change) * a0 - k * *c;
        *b = (1.0 - k * change) * b0 - k * *d;
        *c = (1.0 - l) * *c - l * change * a0;
        *d = (1.0 - l) * *d - l * change * b0;
    }

    fn calculate(&mut self) -> f64 {
        let noise = (NOISE_DEVIATIONS * libm::sqrt(self.noise_variance) - NOISE_OFFSET).max(1.0);
        let mut estimate = self.slope * (self.largest_size - self.average_size) + noise;
        if estimate < 1.0 {
            estimate = if self.before <= 0.01 { 1.0 } else { self.before };
        }
        self.before = estimate.min(MOST);
        self.before
    }

    /// How long frames should wait at `now`, so that late ones are in time. A share of `rtt` is added if losses are often repaired.
    pub(crate) fn estimate(&mut self, now: Time, rtt: Span) -> Span {
        let mut estimate = self.calculate() + SYSTEM;
        estimate = estimate.max(self.filtered);
        if now.since(self.repaired_at) > REPAIRED_FOR {
            self.repaired = 0;
        }
        if self.repaired >= MOST_REPAIRED {
            estimate += (ROUND_TRIP * rtt.as_millis_f64()).min(MOST_ROUND_TRIP);
        }
        let [slowest, slow] = SLOW;
        if self.pace.is_below(slow) {
            let above = self.pace.fps() - slowest as f64;
            estimate *= (above / (slow - slowest) as f64).max(0.0);
        }
        Span::from_secs_f64(estimate.min(MOST) / 1e3)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Frames over a link of `kbps`: every tenth is four times as large.
    fn after(kbps: f64, frames: u32) -> f64 {
        let mut jitter = Jitter::new();
        for n in 0..frames {
            let captured = Time::ZERO + Span::from_millis(33) * u64::from(n);
            let bytes = if n % 10 == 0 { 8000 } else { 2000 };
            let delay = Span::from_secs_f64(f64::from(bytes) * 8.0 / kbps / 1e3);
            jitter.on_frame(captured, captured + delay, bytes);
        }
        jitter.estimate(Time::ZERO, Span::ZERO).as_millis_f64()
    }

    /// The estimate is at least 11 ms: 10 for the system and 1 for noise. Large frames come 1.5, 6 and 24 ms
    /// later than the others; without any noise, at most 4 ms of that count (3.5 deviations and a half).
    #[test]
    fn the_estimate_grows_with_what_large_frames_are_later() {
        let estimates = [32_000.0, 8000.0, 2000.0].map(|kbps| after(kbps, 600));
        assert!(estimates[0] > 11.0 && estimates[0] < 13.0, "{estimates:?}");
        assert!(estimates.is_sorted() && (14.5..=15.5).contains(&estimates[2]), "{estimates:?}");
    }

    #[test]
    fn losses_that_are_repaired_add_most_of_a_round_trip_for_a_minute() {
        let mut jitter = Jitter::new();
        let rtt = Span::from_millis(80);
        let before = jitter.estimate(Time::ZERO, rtt);
        let last = Time::ZERO + Span::from_millis(66);
        (0..3).for_each(|n| jitter.on_repaired(Time::ZERO + Span::from_millis(33) * n));
        let mut later = |rtt, after| jitter.estimate(last + after, rtt) - before;
        assert_eq!(later(rtt, Span::ZERO).as_millis(), 72);
        assert_eq!(later(Span::from_secs(1), Span::ZERO).as_millis(), 200);
        assert_eq!(later(Span::ZERO, Span::ZERO), Span::ZERO);
        assert_eq!(later(rtt, Span::from_secs(61)), Span::ZERO);
    }

    #[test]
    fn few_frames_a_second_wait_less() {
        let estimates = [4, 6, 8, 20].map(|fps| {
            let mut jitter = Jitter::new();
            for n in 0..200 {
                let captured = Time::ZERO + Span::from_millis(1000 / fps) * n;
                jitter.on_frame(captured, captured + Span::from_millis(50), 2000);
            }
            jitter.estimate(Time::ZERO, Span::ZERO).as_millis_f64()
        });
        assert_eq!(estimates[0], 0.0);
        assert!(estimates.is_sorted() && estimates[1] > 1.0, "{estimates:?}");
        assert!((10.5..12.0).contains(&estimates[3]), "{estimates:?}");
    }
}
