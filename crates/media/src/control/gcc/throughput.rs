//! What arrives a second: over the last packets, without the longest gap.

use alloc::collections::VecDeque;

use sojourn_core::{Span, Time};

#[derive(Clone, Debug, Default)]
pub(super) struct Throughput {
    /// In the order of arrival: when it left, when it arrived, and its bytes with those sent
    /// before it that feedback does not speak of.
    window: VecDeque<(Time, Time, u32)>,
    /// When the newest packet left that is no longer in the window.
    discarded: Option<Time>,
}

/// The window has more packets than this, or is shorter than that.
const FEW: usize = 20;
const SHORT: Span = Span::from_secs(1);
const MOST: usize = 500;
const LONGEST: Span = Span::from_secs(5);
/// Fewer say nothing.
const LEAST: usize = 10;
const SHORTEST: Span = Span::from_millis(1);

impl Throughput {
    pub(super) fn on_packet(&mut self, sent: Time, arrived: Time, size: u32) {
        let mut at = self.window.len();
        while at > 0 && self.window[at - 1].1 > arrived {
            at -= 1;
        }
        self.window.insert(at, (sent, arrived, size));
        while self.is_too_long()
            && let Some((sent, ..)) = self.window.pop_front()
        {
            self.discarded = self.discarded.max(Some(sent));
        }
    }

    fn is_too_long(&self) -> bool {
        let (Some(first), Some(last)) = (self.window.front(), self.window.back()) else {
            return false;
        };
        let lasts = last.1.since(first.1);
        self.window.len() > MOST || lasts > LONGEST || (self.window.len() > FEW && lasts > SHORT)
    }

    /// In bit/s; `None` as long as too few packets are known.
    pub(super) fn rate(&self) -> Option<f64> {
        if self.window.len() < LEAST {
            return None;
        }
        let (mut longest, mut second) = (Span::ZERO, Span::ZERO);
        let (mut first_sent, mut last_sent) = (Time::NEVER, Time::ZERO);
        let (mut arrived_bytes, mut sent_bytes) = (0_u64, 0_u64);
        let (mut last_sent_bytes, mut counted) = (0_u64, 0);
        let mut before: Option<Time> = None;
        for (sent, arrived, size) in &self.window {
            let bytes = u64::from(*size);
            // What arrived first arrived before the time began.
            if let Some(before) = before {
                let gap = arrived.since(before);
                (longest, second) = match gap {
                    gap if gap > longest => (gap, longest),
                    gap => (longest, second.max(gap)),
                };
                arrived_bytes += bytes;
            }
            before = Some(*arrived);
            // A packet sent long before the others was reordered, and says nothing of the rate.
            if self.discarded.is_some_and(|discarded| *sent < discarded) {
                continue;
            }
            counted += 1;
            sent_bytes += bytes;
            first_sent = first_sent.min(*sent);
            if *sent >= last_sent {
                (last_sent, last_sent_bytes) = (*sent, bytes);
            }
        }
        let (first, last) = (self.window.front()?.1, self.window.back()?.1);
        let lasted = (last.since(first).saturating_sub(longest) + second).max(SHORTEST);
        let arriving = arrived_bytes as f64 * 8.0 / lasted.as_secs_f64();
        if counted < LEAST {
            return Some(arriving);
        }
        // What left last left after the time.
        let lasted = last_sent.since(first_sent).max(SHORTEST);
        let leaving = (sent_bytes - last_sent_bytes) as f64 * 8.0 / lasted.as_secs_f64();
        Some(arriving.min(leaving))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Time {
        Time::from_nanos(ms * 1_000_000)
    }

    #[test]
    fn a_steady_stream_has_its_rate_and_one_gap_does_not_matter() {
        let mut throughput = Throughput::default();
        for n in 0..9 {
            throughput.on_packet(ms(10 * n), ms(10 * n + 50), 1000);
        }
        assert_eq!(throughput.rate(), None);
        for n in 9..50 {
            throughput.on_packet(ms(10 * n), ms(10 * n + 50), 1000);
        }
        assert_eq!(throughput.rate(), Some(800e3));
        for n in 50..80 {
            throughput.on_packet(ms(10 * n), ms(10 * n + 200), 1000);
        }
        assert_eq!(throughput.rate(), Some(800e3));
    }

    #[test]
    fn a_burst_that_leaves_at_once_does_not_count_more_than_it_left() {
        let mut throughput = Throughput::default();
        for n in 0..40 {
            throughput.on_packet(ms(20 * n), ms(500 + n), 1000);
        }
        assert_eq!(throughput.rate(), Some(400e3));
    }
}
