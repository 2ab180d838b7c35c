//! How much more than expected was acknowledged at once (Linux since 5.1, both kernel versions).

use sojourn_core::{Span, Time};

use crate::fixed::{Bw, Gain};

/// The kernel starts a new epoch when more segments than this were acknowledged in one.
const EPOCH_LIMIT: u64 = 1 << 20;

/// The largest surplus of the last one to two windows of rounds.
#[derive(Clone, Debug)]
pub(crate) struct Aggregation {
    /// Best surplus of the present and of the previous window.
    best: [u32; 2],
    present: usize,
    rounds: u32,
    epoch_start: Time,
    epoch_acked: u64,
}

impl Aggregation {
    pub(crate) fn new(now: Time) -> Self {
        Self { best: [0; 2], present: 0, rounds: 0, epoch_start: now, epoch_acked: 0 }
    }

    pub(crate) fn extra_acked(&self) -> u32 {
        self.best[0].max(self.best[1])
    }

    /// Segments to add to the window: `gain` times the surplus, at most what `bw` delivers in `limit`.
    pub(crate) fn cwnd(&self, gain: Gain, bw: Bw, limit: Span) -> u32 {
        let most = bw.segments_in(limit.as_micros());
        gain.of(u64::from(self.extra_acked())).min(most) as u32
    }

    pub(crate) fn restart(&mut self, now: Time) {
        self.epoch_start = now;
        self.epoch_acked = 0;
    }

    /// Another round began; after `window` of them the older window is forgotten.
    pub(crate) fn on_round(&mut self, window: u32) {
        self.rounds += 1;
        if self.rounds >= window {
            self.rounds = 0;
            self.present ^= 1;
            self.best[self.present] = 0;
        }
    }

    /// `acked` segments arrived; `bw` is the bandwidth estimate.
    pub(crate) fn on_ack(&mut self, now: Time, acked: u32, bw: Bw, cwnd: u32) {
        let acked = u64::from(acked);
        let mut expected = bw.segments_in(now.after(self.epoch_start).as_micros());
        if self.epoch_acked <= expected || self.epoch_acked + acked >= EPOCH_LIMIT {
            self.restart(now);
            expected = 0;
        }
        self.epoch_acked = (self.epoch_acked + acked).min(EPOCH_LIMIT - 1);
        let extra = (self.epoch_acked - expected).min(u64::from(cwnd)) as u32;
        self.best[self.present] = self.best[self.present].max(extra);
    }
}
