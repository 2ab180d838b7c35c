//! The queueing that SCReAM aims at (RFC 8298, section 4.1.2.1, and its successor): more of it beside
//! flows that fill the queue, as it would be starved otherwise.

use alloc::collections::VecDeque;

use sojourn_core::Span;

/// How many delays are kept, and over how many of the newest the average is taken.
const DELAYS: usize = 200;
const NEWEST: usize = 50;
/// If losses occur in a larger share of round trips, the delays say little about other flows.
const LOSS_EVENTS: f64 = 0.002;
/// While all kept delays are at most this, the target is `low`. Their average is at most `SMALL` and their deviation at most
/// half of it, so what is wanted is less than 0.6, or 0.9 where packets are lost, and the variance is less than 0.04.
const SMALL: f64 = 0.4;

#[derive(Clone, Debug)]
pub(super) struct DelayTarget {
    seconds: f64,
    low: f64,
    high: f64,
    /// In multiples of `low`, the newest first.
    delays: VecDeque<f64>,
    /// How many of them are not from zero to `SMALL`.
    large: usize,
    /// The share of the round trips in which something was lost.
    loss_event_rate: f64,
    had_loss: bool,
}

impl DelayTarget {
    /// Begins with the lower bound.
    pub(super) fn new(low: Span, high: Span) -> Self {
        let (low, high) = (low.as_secs_f64(), high.as_secs_f64());
        let delays = VecDeque::with_capacity(DELAYS);
        Self { seconds: low, low, high, delays, large: 0, loss_event_rate: 0.0, had_loss: false }
    }

    pub(super) fn seconds(&self) -> f64 {
        self.seconds
    }

    pub(super) fn on_loss(&mut self) {
        self.had_loss = true;
    }

    /// A round trip ends.
    pub(super) fn end_round(&mut self) {
        let loss = f64::from(u8::from(core::mem::take(&mut self.had_loss)));
        self.loss_event_rate += 0.01 * (loss - self.loss_event_rate);
    }

    /// Follows queueing delay, in seconds.
    pub(super) fn adjust(&mut self, delay: f64) {
        let is_large = |delay: f64| !(0.0..=SMALL).contains(&delay);
        if self.delays.len() == DELAYS {
            let oldest = self.delays.pop_back();
            self.large -= usize::from(oldest.is_some_and(is_large));
        }
        let delay = delay / self.low;
        self.delays.push_front(delay);
        self.large += usize::from(is_large(delay));
        if self.large == 0 {
            self.seconds = self.low;
            return;
        }
        let all = self.delays.len() as f64;
        let mean = self.delays.iter().sum::<f64>() / all;
        let squares = self.delays.iter().map(|delay| (delay - mean) * (delay - mean));
        let variance = squares.sum::<f64>() / all;
        let newest = self.delays.len().min(NEWEST);
        let average = self.delays.iter().take(newest).sum::<f64>() / newest as f64;
        let wanted = self.low * (average + libm::sqrt(variance));
        let aim = if self.loss_event_rate > LOSS_EVENTS {
            1.5 * wanted
        } else if variance < 0.2 {
            wanted
        } else if wanted < self.low {
            (0.5 * self.seconds).max(wanted)
        } else {
            0.9 * self.seconds
        };
        self.seconds = aim.min(self.high).max(self.low);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target() -> DelayTarget {
        DelayTarget::new(Span::from_millis(60), Span::from_millis(400))
    }

    fn after(mut target: DelayTarget, delay: f64) -> f64 {
        (0..300).for_each(|_| target.adjust(delay));
        target.seconds()
    }

    #[test]
    fn it_follows_steady_queueing_within_its_bounds() {
        for (delay, aim) in [(0.0, 0.06), (0.2, 0.2), (2.0, 0.4)] {
            assert!((after(target(), delay) - aim).abs() < 1e-9, "{delay}");
        }
    }

    /// Below 24 ms of delay the target is not computed, above it is, and nothing shows the difference.
    #[test]
    fn small_delays_leave_it_at_its_lower_bound_with_losses_or_without() {
        for lossy in [false, true] {
            let mut target = target();
            for n in 0..1000 {
                if lossy {
                    target.on_loss();
                }
                target.end_round();
                target.adjust(if n % 7 == 0 { 0.024 } else { 0.0 });
                assert_eq!(target.seconds(), 0.06);
            }
            // Large delays are forgotten after two hundred small ones.
            (0..200).for_each(|_| target.adjust(0.2));
            assert!(target.seconds() > 0.06);
            (0..200).for_each(|_| target.adjust(0.024));
            assert_eq!(target.seconds(), 0.06);
        }
    }

    #[test]
    fn it_is_half_as_much_again_where_packets_are_lost() {
        let mut lossy = target();
        lossy.on_loss();
        lossy.end_round();
        assert!((after(lossy, 0.2) - 0.3).abs() < 1e-9);
    }
}
