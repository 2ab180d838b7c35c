//! Long-term bandwidth: finding a token-bucket policer, and sending at its rate.
//!
//! Heavy loss in two successive intervals of the same throughput indicates a policer. Then that
//! throughput is used instead of the largest bandwidth seen, which came from the bucket's burst.

use sojourn_core::Time;

use super::{Bbr, Mode};
use crate::fixed::{Bw, Gain};
use crate::{Ack, Lost};

#[derive(Clone, Debug)]
pub(super) struct Policer {
    is_sampling: bool,
    /// The policer's rate, if `is_used`.
    bw: Bw,
    is_used: bool,
    rounds: u32,
    last: Mark,
    /// The counters now, for a reset between acknowledgements.
    now: Mark,
}

/// The connection's counters at one moment.
#[derive(Clone, Copy, Debug)]
struct Mark {
    /// The kernel keeps it in milliseconds.
    time_ms: u64,
    delivered: u64,
    lost: u64,
}

impl Policer {
    pub(super) fn new(now: Time) -> Self {
        let start = Mark { time_ms: now.as_micros() / 1000, delivered: 0, lost: 0 };
        Self {
            is_sampling: false,
            bw: Bw::ZERO,
            is_used: false,
            rounds: 0,
            last: start,
            now: start,
        }
    }

    /// The policer's rate, if one was found.
    pub(super) fn bw(&self) -> Option<Bw> {
        self.is_used.then_some(self.bw)
    }

    pub(super) fn note_lost(&mut self, lost: &Lost) {
        self.now.delivered = lost.total_delivered;
        self.now.lost = lost.total_lost;
    }

    pub(super) fn reset(&mut self) {
        self.bw = Bw::ZERO;
        self.is_used = false;
        self.is_sampling = false;
        self.start_interval();
    }

    fn start_interval(&mut self) {
        self.last = self.now;
        self.rounds = 0;
    }
}

impl Bbr {
    /// `lost` segments were deemed lost with this acknowledgement.
    pub(super) fn sample_policer(&mut self, ack: &Ack, is_app_limited: bool, lost: u32) {
        self.policer.now = Mark {
            time_ms: self.delivered_time.as_micros() / 1000,
            delivered: ack.total_delivered,
            lost: ack.total_lost,
        };
        self.step_policer(is_app_limited, lost);
    }

    /// A timeout counts as one lost segment and as the start of a round.
    pub(super) fn sample_policer_at_timeout(&mut self) {
        self.round_start = true;
        self.step_policer(false, 1);
    }

    #[inline(always)]
    fn step_policer(&mut self, is_app_limited: bool, lost: u32) {
        if self.policer.is_used {
            self.age_policer();
            return;
        }
        let policer = &mut self.policer;
        if !policer.is_sampling {
            if lost == 0 {
                return;
            }
            // An interval begins with a loss, because the bucket is empty then.
            policer.start_interval();
            policer.is_sampling = true;
        }
        if is_app_limited {
            policer.reset();
            return;
        }
        if self.round_start {
            policer.rounds += 1;
        }
        if policer.rounds < self.config.lt_interval_rounds {
            return;
        }
        if policer.rounds > 4 * self.config.lt_interval_rounds {
            policer.reset();
            return;
        }
        // It ends with a loss too, because the bucket is empty again.
        if lost == 0 {
            return;
        }
        let lost = policer.now.lost.saturating_sub(policer.last.lost);
        let delivered = policer.now.delivered.saturating_sub(policer.last.delivered);
        let thresh = delivered * u64::from(self.config.lt_loss_thresh.0.parts());
        if delivered == 0 || lost << Gain::SHIFT < thresh {
            return;
        }
        let interval_ms = policer.now.time_ms.saturating_sub(policer.last.time_ms);
        if interval_ms == 0 {
            return;
        }
        if interval_ms >= u64::from(u32::MAX / 1000) {
            policer.reset();
            return;
        }
        self.end_interval(Bw::of(delivered, interval_ms * 1000));
    }

    fn age_policer(&mut self) {
        if self.mode == Mode::ProbeBw && self.round_start {
            self.policer.rounds += 1;
            if self.policer.rounds >= self.config.lt_bw_rounds {
                self.policer.reset();
                self.enter_probe_bw();
            }
        }
    }

    fn end_interval(&mut self, bw: Bw) {
        let mss = self.pacing.mss();
        let policer = &mut self.policer;
        if !policer.bw.is_zero() {
            let diff = bw.difference(policer.bw);
            let bytes_per_sec = diff.bytes_per_sec(mss, Gain::ONE, self.pacing.margin());
            if diff <= policer.bw.times(self.config.lt_bw_ratio.0)
                || bytes_per_sec <= self.config.lt_bw_diff.as_bytes_per_sec()
            {
                policer.bw = bw.mean(policer.bw);
                policer.is_used = true;
                policer.rounds = 0;
                self.pacing_gain = Gain::ONE;
                return;
            }
        }
        policer.bw = bw;
        policer.start_interval();
    }
}
