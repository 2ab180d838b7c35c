//! How many delivered segments earn one more segment of window in congestion avoidance.

use sojourn_core::{Span, Time};

use super::config::Config;
use super::jiffies::Jiffies;

/// The curve since the last reduction. Times on it count 1/1024 s.
#[derive(Clone, Debug)]
pub(super) struct Growth {
    beta: u32,
    /// C in 1/1024 segments per second cubed.
    c_1024: u32,
    /// Windows of delivered segments for which the Reno-like estimate grows by a segment, in
    /// eighths.
    reno_eighths: u32,
    fast_convergence: bool,
    tcp_friendliness: bool,
    /// Zero: no loss since the start or the last timeout.
    w_max: u32,
    /// Where the plateau lies: `w_max`, or the window if that is higher.
    origin: u32,
    k: u64,
    epoch_start: Option<Time>,
    /// The Reno-like estimate, and the segments delivered towards its next one.
    w_est: u32,
    w_est_credit: u32,
    /// The window and time for which the answer was last computed.
    last: Option<(u32, Time)>,
    every: u32,
}

/// One part in 1024.
const ONE: u32 = 1024;

impl Growth {
    pub(super) fn new(config: &Config) -> Self {
        Self {
            beta: config.beta,
            // The scale was chosen for round-trip times in units of 100 ms.
            c_1024: config.bic_scale * 10,
            reno_eighths: 8 * (ONE + config.beta) / 3 / (ONE - config.beta),
            fast_convergence: config.fast_convergence,
            tcp_friendliness: config.tcp_friendliness,
            w_max: 0,
            origin: 0,
            k: 0,
            epoch_start: None,
            w_est: 0,
            w_est_credit: 0,
            last: None,
            every: LEAST_EVERY,
        }
    }

    pub(super) fn epoch_start(&self) -> Option<Time> {
        self.epoch_start
    }

    /// Counts `delivered` segments and returns how many of them make one segment of window.
    /// `now` is on the coarse clock.
    #[inline]
    pub(super) fn acks_per_segment(
        &mut self,
        jiffies: &Jiffies,
        now: Time,
        cwnd: u32,
        delivered: u32,
        delay_min: Span,
    ) -> u32 {
        self.w_est_credit = self.w_est_credit.saturating_add(delivered);
        match self.last {
            Some((last_cwnd, last_now))
                if last_cwnd == cwnd && now.since(last_now) <= jiffies.update_interval() => {}
            _ => self.recompute(jiffies, now, cwnd, delivered, delay_min),
        }
        self.every
    }

    #[cfg(test)]
    pub(super) fn every(&self) -> u32 {
        self.every
    }

    /// The threshold after congestion at window `cwnd`; also ends the epoch.
    pub(super) fn reduced(&mut self, cwnd: u32) -> u32 {
        self.epoch_start = None;
        let share =
            |part: u32, whole: u32| (u64::from(cwnd) * u64::from(part) / u64::from(whole)) as u32;
        self.w_max = if self.fast_convergence && cwnd < self.w_max {
            share(ONE + self.beta, 2 * ONE)
        } else {
            cwnd
        };
        share(self.beta, ONE).max(2)
    }

    /// After a timeout the past does not count.
    pub(super) fn forget(&mut self) {
        self.w_max = 0;
        self.epoch_start = None;
        self.last = None;
    }

    /// Time with nothing in flight does not age the epoch.
    pub(super) fn skip_idle(&mut self, now: Time, idle: Span) {
        if let Some(start) = &mut self.epoch_start {
            *start = (*start + idle).min(now);
        }
    }

    pub(super) fn phase(&self, cwnd: u32) -> &'static str {
        match self.epoch_start {
            None => "avoidance",
            Some(_) if self.tcp_friendliness && self.w_est >= cwnd => "reno_friendly",
            Some(_) if cwnd < self.origin => "concave",
            Some(_) => "convex",
        }
    }

    fn recompute(
        &mut self,
        jiffies: &Jiffies,
        now: Time,
        cwnd: u32,
        delivered: u32,
        delay_min: Span,
    ) {
        // The curve moves once a tick; within a tick only the comparison with Reno is repeated.
        let is_same_tick = self.last.is_some_and(|(_, last_now)| last_now == now);
        match self.epoch_start {
            Some(_) if is_same_tick => {}
            start => {
                self.last = Some((cwnd, now));
                let start = start.unwrap_or_else(|| self.begin(now, cwnd, delivered));
                let t = now.since(start) + jiffies.round_up(delay_min);
                self.every = self.along_curve(t, cwnd);
            }
        }
        if self.tcp_friendliness {
            self.every = self.every.min(self.along_reno(cwnd));
        }
        self.every = self.every.max(LEAST_EVERY);
    }

    fn begin(&mut self, now: Time, cwnd: u32, delivered: u32) -> Time {
        self.epoch_start = Some(now);
        self.w_est = cwnd;
        self.w_est_credit = delivered;
        self.origin = self.w_max.max(cwnd);
        let segments_below = u64::from(self.origin - cwnd);
        // K^3 in (1/1024 s)^3: one second cubed is 2^30 of them, and C has 10 fractional bits.
        let per_segment = (1 << 40) / u64::from(self.c_1024);
        self.k = cube_root(per_segment.saturating_mul(segments_below));
        now
    }

    fn along_curve(&self, t: Span, cwnd: u32) -> u32 {
        let t = t.as_nanos().saturating_mul(1024) / 1_000_000_000;
        let target = if t < self.k {
            self.origin.saturating_sub(self.rise(self.k - t))
        } else {
            self.origin.saturating_add(self.rise(t - self.k))
        };
        let every = if target > cwnd { cwnd / (target - cwnd) } else { cwnd.saturating_mul(100) };
        // Before a first loss there is no W_max; then the window grows by at least 5 % a round
        // trip.
        if self.w_max == 0 { every.min(20) } else { every }
    }

    /// C·t³ in segments.
    fn rise(&self, t: u64) -> u32 {
        // At most a year on the curve; more would overflow.
        let t = u128::from(t.min(1 << 35));
        let rise = (u128::from(self.c_1024) * t * t * t) >> 40;
        rise.min(u128::from(u32::MAX)) as u32
    }

    /// The slowest growth that keeps up with the Reno-like estimate.
    fn along_reno(&mut self, cwnd: u32) -> u32 {
        let per_segment = (u64::from(cwnd) * u64::from(self.reno_eighths) / 8).max(1);
        let credit = u64::from(self.w_est_credit);
        if credit > per_segment {
            let earned = (credit - 1) / per_segment;
            self.w_est = self.w_est.saturating_add(earned as u32);
            self.w_est_credit = (credit - earned * per_segment) as u32;
        }
        if self.w_est > cwnd { cwnd / (self.w_est - cwnd) } else { u32::MAX }
    }
}

/// The window grows by at most half in a round trip.
const LEAST_EVERY: u32 = 2;

/// The whole part of the cube root, bit by bit.
pub(in super::super) fn cube_root(x: u64) -> u64 {
    let mut rest = x;
    let mut root: u64 = 0;
    let mut shift = 63;
    loop {
        root *= 2;
        let step = 3 * root * (root + 1) + 1;
        if (rest >> shift) >= step {
            rest -= step << shift;
            root += 1;
        }
        if shift == 0 {
            return root;
        }
        shift -= 3;
    }
}
