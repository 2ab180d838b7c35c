//! The congestion avoidance stage: the cubic function and the Reno-friendly estimate
//! (RFC 9438 sections 4.2 to 4.5).

use sojourn_core::{Span, Time};

use super::Config;

/// A congestion avoidance stage, from its first acknowledgement on.
#[derive(Clone, Debug)]
pub(super) struct Epoch {
    /// The start of the stage, moved on by the time in which the window was not the limit.
    t_epoch: Time,
    /// Seconds from the start until the cubic function is back at `w_max`.
    k: f64,
    w_max: f64,
    w_est: f64,
    alpha: f64,
    region: Region,
}

/// What determines the window at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Region {
    RenoFriendly,
    Concave,
    Convex,
}

/// What the stage needs to know of an acknowledgement, and the window before it.
pub(super) struct Ack {
    pub(super) now: Time,
    /// Smoothed round-trip time, seconds.
    pub(super) rtt: f64,
    pub(super) segments_acked: f64,
    pub(super) cwnd: f64,
    pub(super) cwnd_prior: f64,
}

impl Epoch {
    pub(super) fn new(config: &Config, now: Time, cwnd_epoch: f64, w_max: f64) -> Self {
        // At the floor of two segments the reduced window can lie above W_max. The function then
        // starts on its plateau, because K must not be negative.
        let w_max = w_max.max(cwnd_epoch);
        Self {
            t_epoch: now,
            k: libm::cbrt((w_max - cwnd_epoch) / config.c),
            w_max,
            w_est: cwnd_epoch,
            alpha: config.alpha(),
            region: Region::Concave,
        }
    }

    /// The window after an acknowledgement; never less than before it.
    pub(super) fn window_after_ack(&mut self, config: &Config, ack: &Ack) -> f64 {
        let cwnd = ack.cwnd;
        let t = ack.now.since(self.t_epoch).as_secs_f64();
        let per_window = ack.segments_acked / cwnd;
        if config.tcp_friendliness {
            if self.w_est >= ack.cwnd_prior {
                self.alpha = 1.0;
            }
            self.w_est += self.alpha * per_window;
            if self.w_cubic(t, config.c) < self.w_est {
                self.region = Region::RenoFriendly;
                return cwnd.max(self.w_est);
            }
        }
        self.region = if cwnd < self.w_max { Region::Concave } else { Region::Convex };
        let target = self.w_cubic(t + ack.rtt, config.c).max(cwnd).min(1.5 * cwnd);
        cwnd + (target - cwnd) * per_window
    }

    /// Figure 1 of section 4.2.
    pub(super) fn w_cubic(&self, t: f64, c: f64) -> f64 {
        let offset = t - self.k;
        c * (offset * offset * offset) + self.w_max
    }

    pub(super) fn pause(&mut self, span: Span) {
        self.t_epoch += span;
    }

    pub(super) fn region(&self) -> Region {
        self.region
    }

    #[cfg(test)]
    pub(super) fn k(&self) -> f64 {
        self.k
    }
}
