//! What was lost of late. Near the end of a run losses are known, and what left with the lost packets and arrives is still under way:
//! a share of both would have too many losses.

use alloc::collections::VecDeque;

use sojourn_core::{Span, Time};

/// Losses by when the lost had left.
#[derive(Clone, Debug, Default)]
pub(super) struct RecentLosses {
    /// The last part of the run in which something left that was lost: since when, and how many. Its length is [`PART`].
    since: Time,
    count: u64,
    /// The parts before, in no strict order.
    earlier: VecDeque<(Time, u64)>,
    /// How long the last arrival had been under way.
    took: Span,
}

const PART: u64 = 1_000_000;

impl RecentLosses {
    #[inline]
    pub(super) fn on_arrived(&mut self, took: Span) {
        self.took = took;
    }

    #[inline]
    pub(super) fn on_lost(&mut self, left: Time) {
        // Of what left before, this is a huge number.
        let into = left.as_nanos().wrapping_sub(self.since.as_nanos());
        if into < PART {
            self.count += 1;
        } else {
            self.begin(left);
        }
    }

    #[inline(never)]
    fn begin(&mut self, left: Time) {
        // Twice as long as is asked for, as delays grow.
        let kept = left - self.took - self.took;
        while self.earlier.pop_front_if(|(since, _)| *since < kept).is_some() {}
        if self.count > 0 {
            self.earlier.push_back((self.since, self.count));
        }
        (self.since, self.count) = (left, 1);
    }

    /// How many of the lost had left so late that, had they not been lost, they could be under way at `end`.
    pub(super) fn undecided(&self, end: Time) -> u64 {
        let parts = self.earlier.iter().copied().chain([(self.since, self.count)]);
        parts.filter(|(since, _)| *since > end - self.took).map(|(_, count)| count).sum()
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
        assert!(losses.earlier.len() < 40);
    }

    #[test]
    fn what_left_earlier_and_is_lost_later_is_decided() {
        let mut losses = RecentLosses::default();
        losses.on_arrived(Span::from_millis(100));
        for ms in 0..1000 {
            losses.on_lost(at(5000 + ms));
            losses.on_lost(at(4000 + ms));
        }
        assert_eq!(losses.undecided(at(6000)), 99);
    }

    #[test]
    fn where_nothing_arrives_everything_is_decided() {
        let mut losses = RecentLosses::default();
        (0..10_000).for_each(|ms| losses.on_lost(at(ms)));
        assert_eq!(losses.undecided(at(10_000)), 0);
        assert!(losses.earlier.len() < 3);
    }
}
