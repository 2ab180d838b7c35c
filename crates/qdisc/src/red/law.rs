//! Which arrivals get a signal (Floyd and Jacobson 1993, section 7, method 2), and how the
//! probability adapts (Floyd, Gummadi and Shenker, "Adaptive RED", 2001).

use sojourn_core::{Span, Stream, Time};

use super::Config;
use super::average::Average;

#[derive(Debug)]
pub(super) struct Law {
    wlog: u32,
    /// In bytes, with `wlog` bits of fraction.
    qth_min: u64,
    qth_max: u64,
    /// Between the thresholds, in bytes.
    qth_delta: u64,
    /// The range in which adaptation keeps the average, in bytes.
    target_min: u64,
    target_max: u64,
    /// The probability at `qth_max`, in fractions of 2^32.
    max_p: u64,
    /// How much the probability rises for each byte above `qth_min`.
    max_p_delta: u64,
    /// Arrivals since the last signal; `None` if there was none since the average came between the
    /// thresholds.
    qcount: Option<u64>,
    /// The next signal comes when `qcount` times the distance from `qth_min` reaches this.
    q_r: u64,
    next_adaptation: Option<Time>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Pass,
    /// Early, by probability.
    Signal,
    /// The average is above the upper threshold.
    Force,
}

/// Time between adaptations.
const ADAPTATION: Span = Span::from_millis(500);

/// The probability of 1 %; adaptation lowers only larger ones.
const MAX_P_LEAST: u64 = 42_949_673;

/// The probability of 50 %; adaptation raises only smaller ones.
const MAX_P_MOST: u64 = 50 * MAX_P_LEAST;

impl Law {
    pub(super) fn new(config: &Config) -> Self {
        let wlog = config.derived().wlog;
        let (qth_min, qth_max) = (config.min.as_u64(), config.max.as_u64());
        let qth_delta = (qth_max - qth_min).max(1);
        let max_p = (config.probability * 4_294_967_296.0) as u64;
        let fifth = qth_delta / 5;
        Self {
            wlog,
            qth_min: qth_min << wlog,
            qth_max: qth_max << wlog,
            qth_delta,
            target_min: qth_min + 2 * fifth,
            target_max: qth_min + 3 * fifth,
            max_p,
            max_p_delta: (max_p / qth_delta).max(1),
            qcount: None,
            q_r: 0,
            next_adaptation: config.adaptive.then_some(Time::ZERO + ADAPTATION),
        }
    }

    #[inline]
    pub(super) fn action(&mut self, average: &Average, random: &mut Stream) -> Action {
        let qavg = average.scaled();
        if qavg < self.qth_min {
            self.qcount = None;
            return Action::Pass;
        }
        if qavg >= self.qth_max {
            self.qcount = None;
            return Action::Force;
        }
        let Some(count) = &mut self.qcount else {
            self.qcount = Some(0);
            self.q_r = self.draw(random);
            return Action::Pass;
        };
        *count += 1;
        if ((qavg - self.qth_min) >> self.wlog) * *count < self.q_r {
            return Action::Pass;
        }
        self.qcount = Some(0);
        self.q_r = self.draw(random);
        Action::Signal
    }

    /// Uniform up to the value at which a signal is certain, in arrivals times bytes.
    fn draw(&self, random: &mut Stream) -> u64 {
        u64::from(random.next_u32()) / self.max_p_delta
    }

    /// Computes the adaptations that were due up to `now`.
    #[inline]
    pub(super) fn adapt(&mut self, average: &Average, now: Time) {
        if self.next_adaptation.is_some_and(|next| now >= next) {
            self.adapt_until(average, now);
        }
    }

    #[inline(never)]
    fn adapt_until(&mut self, average: &Average, now: Time) {
        while let Some(next) = self.next_adaptation
            && now >= next
        {
            self.adapt_to(average.decayed(next) >> self.wlog);
            self.next_adaptation = Some(next + ADAPTATION);
        }
    }

    /// Raises the probability by a quarter, but at most by 1 %, or lowers it by a tenth.
    pub(super) fn adapt_to(&mut self, qavg: u64) {
        if qavg > self.target_max && self.max_p <= MAX_P_MOST {
            self.max_p += MAX_P_LEAST.min(self.max_p / 4);
        } else if qavg < self.target_min && self.max_p >= MAX_P_LEAST {
            self.max_p = self.max_p / 10 * 9;
        }
        self.max_p_delta = ((self.max_p + self.qth_delta / 2) / self.qth_delta).max(1);
    }

    pub(super) fn max_p_ppm(&self) -> u64 {
        (self.max_p * 1_000_000) >> 32
    }
}
