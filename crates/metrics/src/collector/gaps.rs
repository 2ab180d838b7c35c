//! Which numbers of a sequence are lost.

use alloc::collections::VecDeque;
use core::ops::Range;

use sojourn_core::{Span, Time};

use super::recent::RecentLosses;
use crate::outcome::Numbered;

/// Counts which numbers of a sequence arrived; numbers begin at 0 and are sent in order.
#[derive(Clone, Debug, Default)]
pub(super) struct Gaps {
    pub(super) sent: u64,
    arrived: u64,
    /// After the largest number that arrived.
    end: u64,
    /// The first number sent after the warm-up.
    warm_from: u64,
    warm_arrived: u64,
    /// Numbers from `end` on that were dropped, in runs, the least first. Nothing that arrives tells of them.
    dropped: VecDeque<Range<u64>>,
    /// Each number that is lost is told of: what has been overtaken and not dropped may still be under way.
    pub(super) is_told: bool,
    /// How many numbers were dropped, in all and of those sent after the warm-up.
    all_dropped: u64,
    warm_dropped: u64,
    recent: RecentLosses,
}

impl Gaps {
    pub(super) fn on_arrived(&mut self, number: u32, took: Span) {
        let number = u64::from(number);
        self.recent.on_arrived(took);
        self.arrived += 1;
        self.end = self.end.max(number + 1);
        self.warm_arrived += u64::from(number >= self.warm_from);
        if self.dropped.front().is_some_and(|run| run.start < self.end) {
            self.forget_dropped();
        }
    }

    #[inline(never)]
    fn forget_dropped(&mut self) {
        while let Some(run) = self.dropped.front_mut().filter(|run| run.start < self.end) {
            run.start = self.end.min(run.end);
            if run.is_empty() {
                self.dropped.pop_front();
            }
        }
    }

    #[inline]
    pub(super) fn on_dropped(&mut self, number: u32, left: Time) {
        let number = u64::from(number);
        self.recent.on_lost(left);
        self.all_dropped += 1;
        self.warm_dropped += u64::from(number >= self.warm_from);
        match self.dropped.back_mut() {
            Some(last) if last.end == number => last.end += 1,
            _ if number < self.end => {}
            _ => self.begin_run(number),
        }
    }

    #[inline(never)]
    fn begin_run(&mut self, number: u64) {
        let place = self.dropped.partition_point(|run| run.start <= number);
        match place.checked_sub(1).and_then(|before| self.dropped.get_mut(before)) {
            Some(before) if number < before.end => {}
            Some(before) if number == before.end => before.end += 1,
            _ => self.dropped.insert(place, number..number + 1),
        }
    }

    pub(super) fn end_warmup(&mut self) {
        self.warm_from = self.sent;
        self.warm_arrived = 0;
        self.warm_dropped = 0;
    }

    pub(super) fn whole(&self, end: Time) -> Numbered {
        self.numbered(end, 0, self.arrived, self.all_dropped)
    }

    pub(super) fn after_warmup(&self, end: Time) -> Numbered {
        self.numbered(end, self.warm_from, self.warm_arrived, self.warm_dropped)
    }

    /// Of the numbers from `from` on. If none arrived, all are lost: nothing came that would tell what is under way.
    fn numbered(&self, end: Time, from: u64, arrived: u64, dropped: u64) -> Numbered {
        let sent = self.sent - from;
        let (lost, undecided) = match arrived {
            0 => (sent, 0),
            _ => {
                let runs = self.dropped.iter();
                let beyond: u64 = runs.map(|run| run.end.saturating_sub(run.start.max(from))).sum();
                let missing = self.end.saturating_sub(from).saturating_sub(arrived);
                let overtaken = match self.is_told {
                    true => missing.min(dropped.saturating_sub(beyond)),
                    false => missing,
                };
                let lost = overtaken + beyond;
                (lost, self.recent.undecided(end).min(lost))
            }
        };
        Numbered { sent, arrived, lost, undecided }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Numbers are sent one after the other; of each it is drawn how long it is under way, and whether it is dropped.
        #[test]
        fn each_number_is_lost_once(
            fates in prop::collection::vec((any::<bool>(), 0u32..40), 1..200),
            warm_from in 0u32..100,
            end in 1u32..250,
            is_told in any::<bool>(),
        ) {
            let mut gaps = Gaps { is_told, ..Gaps::default() };
            let (mut arrived, mut dropped) = (BTreeSet::new(), BTreeSet::new());
            for now in 0..end {
                if now == warm_from {
                    gaps.end_warmup();
                }
                for (number, (is_dropped, way)) in (0u32..).zip(&fates) {
                    gaps.sent += u64::from(number == now);
                    match number + way == now {
                        true if *is_dropped => {
                            gaps.on_dropped(number, Time::ZERO);
                            dropped.insert(number);
                        }
                        true => {
                            gaps.on_arrived(number, Span::ZERO);
                            arrived.insert(number);
                        }
                        false => {}
                    }
                }
            }
            let sent = end.min(fates.len() as u32);
            for (from, numbered) in [(0, gaps.whole(Time::ZERO)), (gaps.warm_from as u32, gaps.after_warmup(Time::ZERO))] {
                let last = arrived.last().map_or(0, |last| last + 1);
                let is_lost = |number: &u32| {
                    let is_overtaken = !is_told && *number < last;
                    !arrived.contains(number) && (is_overtaken || dropped.contains(number))
                };
                let expected = match arrived.range(from..).count() {
                    0 => sent.saturating_sub(from) as usize,
                    _ => (from..sent).filter(is_lost).count(),
                };
                prop_assert_eq!(numbered.lost, expected as u64);
            }
        }
    }
}
