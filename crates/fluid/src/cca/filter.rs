//! Estimators that the BBRs share.

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

/// Segments of the bursts that a paced sender makes, of one millisecond but two at least.
pub(crate) fn quantum(pacing: f64, packet: f64) -> f64 {
    let burst = (pacing * 1e-3).min(65_536.0);
    libm::floor(burst / packet).max(2.0) * packet
}
