//! Estimators that the BBRs share.

use super::Told;

/// The largest value of the last rounds, by the three best (Nichols' windowed filter).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WindowedMax {
    best: [(u64, f64); 3],
}

impl WindowedMax {
    pub(crate) fn value(&self) -> f64 {
        self.best[0].1
    }

    pub(crate) fn update(&mut self, window: u64, now: u64, value: f64) {
        let new = (now, value);
        let best = &mut self.best;
        if value >= best[0].1 || now.saturating_sub(best[2].0) > window {
            *best = [new; 3];
            return;
        }
        if value >= best[1].1 {
            best[1] = new;
            best[2] = new;
        } else if value >= best[2].1 {
            best[2] = new;
        }
        let age = now.saturating_sub(best[0].0);
        if age > window {
            *best = [best[1], best[2], new];
            if now.saturating_sub(best[0].0) > window {
                *best = [best[1], best[2], new];
            }
        } else if best[1].0 == best[0].0 && age > window / 4 {
            best[1] = new;
            best[2] = new;
        } else if best[2].0 == best[1].0 && age > window / 2 {
            best[2] = new;
        }
    }
}

/// Whether bandwidth has stopped growing, round by round.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FullPipe {
    pub(crate) is_reached: bool,
    pub(crate) is_now: bool,
    bw: f64,
    rounds: u32,
}

/// Growth that shows that the pipe is not full, and rounds without it that show that it is.
const THRESH: f64 = 1.25;
const ROUNDS: u32 = 3;

impl FullPipe {
    /// Seeks anew from this bandwidth on.
    pub(crate) fn restart(&mut self, bw: f64) {
        self.bw = bw;
        self.rounds = 0;
        self.is_now = false;
    }

    pub(crate) fn on_round(&mut self, bw: f64) {
        if self.is_now || bw <= 0.0 {
            return;
        }
        if bw >= self.bw * THRESH {
            self.restart(bw);
            return;
        }
        self.rounds += 1;
        self.is_now = self.rounds >= ROUNDS;
        self.is_reached |= self.is_now;
    }
}

/// By how much more than the rate says is acknowledged at once, which the window makes room for: the largest
/// of five to ten rounds (`bbr_update_ack_aggregation`; draft-ietf-ccwg-bbr, section 5.5.9).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Aggregation {
    /// Largest of the present rounds and of those before them.
    best: [f64; 2],
    rounds: u32,
    began: f64,
    acked: f64,
}

/// After so many rounds those before are forgotten.
const AGGREGATION_ROUNDS: u32 = 5;

impl Aggregation {
    pub(crate) fn value(&self) -> f64 {
        self.best[0].max(self.best[1])
    }

    /// `at_once` is what one acknowledgement stands for.
    pub(crate) fn on_step(&mut self, told: &Told, is_round: bool, bw: f64, at_once: f64) {
        if told.acked <= 0.0 || bw <= 0.0 {
            return;
        }
        if is_round {
            self.rounds += 1;
            if self.rounds >= AGGREGATION_ROUNDS {
                self.rounds = 0;
                self.best = [0.0, self.best[0]];
            }
        }
        if self.acked <= bw * (told.now - self.began) {
            self.began = told.now;
            self.acked = at_once;
        } else {
            self.acked += told.acked;
        }
        let extra = self.acked - bw * (told.now - self.began);
        self.best[0] = self.best[0].max(extra);
    }
}

/// Segments of the bursts that a paced sender makes, of one millisecond but two at least.
pub(crate) fn quantum(pacing: f64, packet: f64) -> f64 {
    let burst = (pacing * 1e-3).min(65_536.0);
    f64::from((burst / packet) as u32).max(2.0) * packet
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use crate::cca::Sample;

    fn told(now: f64, acked: f64) -> Told {
        Told {
            now,
            acked,
            marked: 0.0,
            losses: 0,
            marks: 0,
            delivered: 0.0,
            sent: 0.0,
            rtt: 0.0,
            in_flight: 0.0,
            is_limited: true,
            sample: Sample::default(),
        }
    }

    #[test]
    fn aggregation_is_what_one_acknowledgement_stands_for_and_what_comes_faster() {
        let mut aggregation = Aggregation::default();
        let mut at = 0.0;
        let mut step = |acked: f64, is_round: bool| {
            at += 0.01;
            aggregation.on_step(&told(at, acked), is_round, 100.0, 2.0);
            aggregation.value()
        };
        // At the rate, for long.
        let steady = (0..50).map(|_| step(1.0, false)).fold(0.0, f64::max);
        assert!((steady - 2.0).abs() < 1e-9, "{steady}");
        // Five bytes more than the rate says.
        step(6.0, false);
        let most = step(1.0, false);
        assert!((most - 7.0).abs() < 1e-9, "{most}");
        // Remembered for five rounds at least and ten at most.
        let rounds: Vec<f64> = (0..10).map(|_| step(1e-3, true)).collect();
        assert!(rounds[3] > 6.9 && rounds[9] < 2.1, "{rounds:?}");
    }
}
