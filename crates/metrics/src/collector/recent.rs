//! What was lost of late. Near the end of a run losses are known, and what left with the lost packets and arrives is still under way:
//! a share of both would have too many losses.

use alloc::collections::VecDeque;

use sojourn_core::{Span, Time};

/// Losses by when the lost had left, in whole milliseconds.
#[derive(Clone, Debug, Default)]
pub(super) struct RecentLosses {
    by_departure: VecDeque<(u64, u64)>,
    /// How long the last arrival had been under way.
    took: Span,
}

impl RecentLosses {
    #[inline]
    pub(super) fn on_arrived(&mut self, took: Span) {
        self.took = took;
    }

    pub(super) fn on_lost(&mut self, left: Time) {
        let departure = left.since(Time::ZERO).as_nanos() / 1_000_000;
        match self.by_departure.back_mut() {
            Some((last, count)) if *last == departure => *count += 1,
            _ => self.begin(departure),
        }
    }

    #[inline(never)]
    fn begin(&mut self, departure: u64) {
        // Twice as long, as delays grow.
        let kept = 2 * self.took.as_nanos() / 1_000_000 + 1;
        while self.by_departure.front().is_some_and(|(first, _)| first + kept < departure) {
            self.by_departure.pop_front();
        }
        self.by_departure.push_back((departure, 1));
    }

    /// How many of the lost had left so late that, had they not been lost, they could be under way at `end`.
    pub(super) fn undecided(&self, end: Time) -> u64 {
        let from = end.since(Time::ZERO).saturating_sub(self.took).as_nanos() / 1_000_000;
        let late = self.by_departure.iter().filter(|(departure, _)| *departure > from);
        late.map(|(_, count)| count).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Time {
        Time::ZERO + Span::from_millis(ms)
    }

    #[test]
    fn what_leaves_within_the_last_delay_is_undecided() {
        let mut losses = RecentLosses::default();
        for ms in (0..10_000).step_by(100) {
            losses.on_lost(at(ms));
            losses.on_arrived(Span::from_millis(1500));
        }
        assert_eq!(losses.undecided(at(10_000)), 14);
        assert_eq!(losses.undecided(at(20_000)), 0);
        assert!(losses.by_departure.len() < 40);
    }

    #[test]
    fn where_nothing_arrives_everything_is_decided() {
        let mut losses = RecentLosses::default();
        (0..10_000).for_each(|ms| losses.on_lost(at(ms)));
        assert_eq!(losses.undecided(at(10_000)), 0);
        assert_eq!(losses.by_departure.len(), 2);
    }
}
