//! CUBIC: [`Cubic`] to the letter of RFC 9438 (August 2023) with HyStart++ (RFC 9406), and
//! [`CubicLinux`] with the arithmetic and the HyStart of the Linux kernel (6.18).
//!
//! In `Cubic` times are seconds and windows segments, both exact; names are those of RFC 9438
//! section 4.1.

mod config;
mod curve;
mod hystart_plus_plus;
pub mod linux;

#[cfg(test)]
mod tests;

pub use config::Config;
pub use linux::CubicLinux;

use sojourn_core::{Span, Time};

use crate::reno::window::Progress;
use crate::{
    Ack, Congestion, CongestionKind, Controller, RecoveryState, Restart, Sent, Setup, Undo,
};
use config::SsthreshFrom;
use curve::{Epoch, Region};
use hystart_plus_plus::HyStartPlusPlus;

/// The controller of RFC 9438.
#[derive(Clone, Debug)]
pub struct Cubic {
    config: Config,
    initial_cwnd: f64,
    cwnd: f64,
    /// Infinite before the first congestion.
    ssthresh: f64,
    /// The window when the threshold was last set.
    cwnd_prior: f64,
    /// `None` before the first loss and after a timeout, when no loss has shown where the limit is.
    w_max: Option<f64>,
    /// The congestion avoidance stage, once its first acknowledgement came.
    epoch: Option<Epoch>,
    hystart: Option<HyStartPlusPlus>,
    saved: Option<Saved>,
    /// Congestion avoidance counts time only from this acknowledgement on.
    last_ack: Time,
    packets_out: u32,
    progress: Progress,
}

/// What a spurious reduction gives back (section 4.9.2).
#[derive(Clone, Debug)]
struct Saved {
    cwnd: f64,
    ssthresh: f64,
    cwnd_prior: f64,
    w_max: Option<f64>,
    epoch: Option<Epoch>,
}

/// More segments than any sequence space holds; keeps sums finite.
const MOST_CWND: f64 = 1_073_741_824.0;

impl Cubic {
    pub fn new(config: Config, setup: Setup) -> Self {
        let initial_cwnd = f64::from(setup.initial_cwnd.max(1));
        Self {
            initial_cwnd,
            cwnd: initial_cwnd,
            ssthresh: f64::INFINITY,
            cwnd_prior: initial_cwnd,
            w_max: None,
            epoch: None,
            hystart: config.hystart().map(HyStartPlusPlus::new),
            saved: None,
            last_ack: setup.now,
            packets_out: 0,
            progress: Progress::default(),
            config,
        }
    }

    fn is_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// HyStart++ works in the initial slow start only (RFC 9406 section 4.2).
    fn initial_slow_start(&mut self) -> Option<&mut HyStartPlusPlus> {
        self.hystart.as_mut().filter(|_| self.ssthresh.is_infinite())
    }

    /// Returns the segments that were left over at the threshold.
    fn slow_start(&mut self, delivered: f64) -> f64 {
        let growth = match self.initial_slow_start() {
            Some(hystart) => hystart.growth(delivered),
            None => delivered,
        };
        let grown = (self.cwnd + growth).min(self.ssthresh).min(MOST_CWND);
        let rest = if grown == self.ssthresh { growth - (grown - self.cwnd) } else { 0.0 };
        self.cwnd = grown;
        rest
    }

    fn avoid_congestion(&mut self, now: Time, rtt: f64, segments_acked: f64) {
        let config = &self.config;
        let epoch = self.epoch.get_or_insert_with(|| {
            let w_max = *self.w_max.get_or_insert(self.cwnd);
            Epoch::new(config, now, self.cwnd, w_max)
        });
        let cwnd = epoch.window_after_ack(
            config,
            &curve::Ack { now, rtt, segments_acked, cwnd: self.cwnd, cwnd_prior: self.cwnd_prior },
        );
        self.cwnd = cwnd.min(MOST_CWND);
    }

    /// Segments sent and not cumulatively acknowledged, without those that limited transmit added
    /// (RFC 5681 section 3.2).
    fn flight_size(&self, congestion: &Congestion) -> f64 {
        f64::from(self.packets_out.max(congestion.in_flight)).min(self.cwnd)
    }

    /// Whether `congestion` reduces the window: once per flight, and not for a timeout of a segment
    /// that a timeout already repeated (RFC 5681 section 3.1).
    fn reduces_on(&self, congestion: &Congestion) -> bool {
        let prior_state = congestion.prior_state;
        match congestion.kind {
            CongestionKind::Timeout => {
                prior_state != RecoveryState::Loss || self.progress.since_timeout
            }
            CongestionKind::Loss => !prior_state.is_reducing(),
            CongestionKind::Ecn => !prior_state.is_reducing() && prior_state != RecoveryState::Loss,
        }
    }

    /// Sections 4.6 and 4.7.
    fn reduce(&mut self, congestion: &Congestion) {
        // A spurious retransmission can be detected later; a mark is never spurious.
        self.saved = (congestion.kind != CongestionKind::Ecn).then(|| Saved {
            cwnd: self.cwnd,
            ssthresh: self.ssthresh,
            cwnd_prior: self.cwnd_prior,
            w_max: self.w_max,
            epoch: self.epoch.clone(),
        });
        let beta = self.config.beta;
        let basis = match self.config.ssthresh_from {
            SsthreshFrom::Flight => self.flight_size(congestion),
            SsthreshFrom::Cwnd => self.cwnd,
        };
        self.cwnd_prior = self.cwnd;
        self.w_max = Some(match self.w_max {
            Some(w_max) if self.config.fast_convergence && self.cwnd < w_max => {
                self.cwnd * (1.0 + beta) / 2.0
            }
            _ => self.cwnd,
        });
        let least = if congestion.kind == CongestionKind::Ecn { 1.0 } else { 2.0 };
        self.cwnd = (basis * beta).max(least);
        self.ssthresh = (basis * beta).max(2.0);
        self.epoch = None;
    }

    /// The curve did not set this window, so a new congestion avoidance stage begins. Slow start
    /// may soon regain what there was (RFC 2861 section 3).
    fn set_unused(&mut self, cwnd: f64) {
        self.ssthresh = self.ssthresh.max(0.75 * self.cwnd);
        self.cwnd = cwnd;
        self.epoch = None;
    }
}

impl Controller for Cubic {
    #[inline]
    fn on_sent(&mut self, sent: &Sent) {
        if !sent.retransmission {
            self.packets_out = self.packets_out.saturating_add(sent.segments);
        }
    }

    fn on_ack(&mut self, ack: &Ack) {
        let since_last = ack.now.since(self.last_ack);
        self.last_ack = ack.now;
        self.packets_out = ack.packets_out;
        let is_duplicate = !self.progress.is_made_by(ack);
        if ack.state.is_reducing() {
            return;
        }
        let was_slow_start = self.is_slow_start();
        if !ack.is_cwnd_limited {
            // Section 4.2: t leaves out the time in which the application did not use the window
            // (section 5.8).
            if let Some(epoch) = &mut self.epoch {
                epoch.pause(since_last);
            }
        } else if !is_duplicate {
            let mut segments = f64::from(ack.delivered);
            if was_slow_start {
                segments = self.slow_start(segments);
            }
            if segments > 0.0 {
                let rtt = ack.srtt.or(ack.rtt).unwrap_or(Span::ZERO).as_secs_f64();
                self.avoid_congestion(ack.now, rtt, segments);
            }
        }
        if was_slow_start
            && let Some(hystart) = self.initial_slow_start()
            && hystart.is_over_after(ack)
        {
            // Section 4.10: no loss yet, so W_max stays undefined.
            self.ssthresh = self.cwnd;
            self.cwnd_prior = self.cwnd;
        }
    }

    fn on_congestion(&mut self, congestion: &Congestion) {
        if self.reduces_on(congestion) {
            self.reduce(congestion);
        }
        if congestion.kind == CongestionKind::Timeout {
            // Section 4.8: K = 0 and W_max = cwnd at the first acknowledgement past the threshold.
            self.w_max = None;
            self.epoch = None;
            self.cwnd = 1.0;
            self.progress.since_timeout = false;
        }
    }

    /// Section 4.9.2; a spurious timeout gets the same response.
    fn on_undo(&mut self, _undo: &Undo) {
        if let Some(saved) = self.saved.take()
            && self.cwnd < saved.cwnd
        {
            self.cwnd = saved.cwnd;
            self.ssthresh = saved.ssthresh;
            self.cwnd_prior = saved.cwnd_prior;
            self.w_max = saved.w_max;
            self.epoch = saved.epoch;
        }
    }

    fn on_restart(&mut self, restart: &Restart) {
        if let Some(epoch) = &mut self.epoch {
            epoch.pause(restart.now.since(self.last_ack));
        }
        self.last_ack = restart.now;
        // RFC 5681 section 4.1.
        if restart.idle > restart.rto && self.cwnd > self.initial_cwnd {
            self.set_unused(self.initial_cwnd);
        }
    }

    fn on_unused_window(&mut self, used: u32) {
        let used = f64::from(used).max(self.initial_cwnd);
        if used < self.cwnd {
            self.set_unused((self.cwnd + used) / 2.0);
        }
    }

    /// Rounded down to whole segments.
    #[inline]
    fn cwnd(&self) -> u32 {
        self.cwnd as u32
    }

    fn ssthresh(&self) -> Option<u32> {
        self.ssthresh.is_finite().then_some(self.ssthresh as u32)
    }

    fn reads_rate(&self) -> bool {
        false
    }

    fn heeds_losses(&self) -> bool {
        false
    }

    fn phase(&self) -> &'static str {
        if self.is_slow_start() {
            let hystart = self.hystart.as_ref().filter(|_| self.ssthresh.is_infinite());
            return match hystart {
                Some(hystart) if hystart.is_conservative() => "css",
                _ => "slow_start",
            };
        }
        match self.epoch.as_ref().map(Epoch::region) {
            Some(Region::RenoFriendly) => "reno_friendly",
            Some(Region::Convex) => "convex",
            Some(Region::Concave) => "concave",
            None => "avoidance",
        }
    }
}
