//! Shares of lost and of marked packets, and whether to expect losses (RFC 8698 sections 4.2 and 5.1.2).

use alloc::collections::VecDeque;

use sojourn_core::{Span, Time};

#[derive(Clone, Debug)]
pub(super) struct Losses {
    window: Span,
    alpha: f64,
    /// For each packet of the window: when it left, whether it was lost, whether it was marked.
    packets: VecDeque<(Time, bool, bool)>,
    counts: [u32; 2],
    lost: f64,
    marked: f64,
    /// Packets since the last loss, and between losses before it, newest first; `None` before the first loss.
    since: Option<u32>,
    intervals: VecDeque<u32>,
}

/// Weights of intervals between losses, newest first (RFC 5348 section 5.4).
const WEIGHTS: [f64; 8] = [1.0, 1.0, 1.0, 1.0, 0.8, 0.6, 0.4, 0.2];

impl Losses {
    pub(super) fn new(window: Span, alpha: f64) -> Self {
        Self {
            window,
            alpha,
            packets: VecDeque::new(),
            counts: [0; 2],
            lost: 0.0,
            marked: 0.0,
            since: None,
            intervals: VecDeque::new(),
        }
    }

    pub(super) fn on_packet(&mut self, at: Time, is_lost: bool, is_marked: bool) {
        self.count(is_lost, is_marked, true);
        self.packets.push_back((at, is_lost, is_marked));
        let window = self.window;
        while let Some((_, lost, marked)) =
            self.packets.pop_front_if(|(old, ..)| *old + window < at)
        {
            self.count(lost, marked, false);
        }
        match (&mut self.since, is_lost) {
            (Some(since), true) => {
                self.intervals.push_front(*since + 1);
                self.intervals.truncate(WEIGHTS.len());
                *since = 0;
            }
            (since, true) => *since = Some(0),
            (Some(since), false) => *since += 1,
            (None, false) => {}
        }
    }

    fn count(&mut self, is_lost: bool, is_marked: bool, comes: bool) {
        for (count, is) in self.counts.iter_mut().zip([is_lost, is_marked]) {
            match (is, comes) {
                (true, true) => *count += 1,
                (true, false) => *count -= 1,
                (false, _) => {}
            }
        }
    }

    /// Updates the smoothed shares after a report.
    pub(super) fn smooth(&mut self) {
        let all = self.packets.len().max(1) as f64;
        let [lost, marked] = self.counts.map(|count| f64::from(count) / all);
        self.lost += self.alpha * (lost - self.lost);
        self.marked += self.alpha * (marked - self.marked);
    }

    pub(super) fn lost(&self) -> f64 {
        self.lost
    }

    pub(super) fn marked(&self) -> f64 {
        self.marked
    }

    /// How much losses are expected, from 0 to 1: it is 1 for `multiloss` mean intervals after a loss, then falls to 0
    /// within one more.
    pub(super) fn expected(&self, multiloss: f64) -> f64 {
        let Some(since) = self.since else { return 0.0 };
        let weighted = WEIGHTS.iter().zip(&self.intervals);
        let sums = weighted.fold((0.0, 0.0), |(sum, weights), (weight, interval)| {
            (sum + weight * f64::from(*interval), weights + weight)
        });
        // After a single loss there is no interval yet; the packets since then stand for it.
        let interval = if sums.1 > 0.0 { sums.0 / sums.1 } else { f64::from(since.max(1)) };
        (multiloss + 1.0 - f64::from(since) / interval).clamp(0.0, 1.0)
    }
}
