//! Which bulk flow of a tin has its turn first.

use alloc::collections::BinaryHeap;
use core::cmp::{Ordering, Reverse};

/// Where in a round a flow has its turn: a round goes from the least place to the largest. Places are
/// numbers with gaps, so that a flow can come between two others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place(u64);

impl Place {
    /// Of a flow that is alone.
    pub(crate) const FIRST: Self = Self(1 << 63);

    /// A place between two, or before the first of a round; `None` if the gap is used up. The larger
    /// part of the gap stays behind it, because other flows often follow at once.
    pub(crate) fn between(low: Option<Self>, high: Self) -> Option<Self> {
        let low = low.map_or(0, |low| low.0);
        let gap = high.0 - low;
        (gap > 1).then(|| Self(low + (gap >> 4).max(1)))
    }

    /// One of so many places that are far from each other, by number from 1 on.
    pub(crate) const fn spaced(number: u64, of: u32) -> Self {
        Self(number * (u64::MAX / (of as u64 + 1)))
    }
}

/// A heap of the bulk flows.
#[derive(Debug)]
pub(crate) struct Soonest(BinaryHeap<Reverse<Due>>);

/// The round of a flow's next turn, and where in it, which is elsewhere than where others have theirs.
#[derive(Clone, Copy, Debug)]
struct Due {
    round: u64,
    place: Place,
    flow: u32,
}

impl Due {
    /// Both as one number, which takes one comparison.
    #[inline]
    fn key(&self) -> u128 {
        u128::from(self.round) << 64 | u128::from(self.place.0)
    }
}

impl PartialEq for Due {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Due {}

impl PartialOrd for Due {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Due {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

impl Soonest {
    pub(crate) fn new(most: u32) -> Self {
        Self(BinaryHeap::with_capacity(most as usize))
    }

    pub(crate) fn add(&mut self, round: u64, place: Place, flow: u32) {
        self.0.push(Reverse(Due { round, place, flow }));
    }

    /// The flow that has its turn first, and in which round. There must be one.
    #[inline]
    pub(crate) fn first(&self) -> (u64, u32) {
        let Reverse(due) = self.0.peek().expect("there is a bulk flow");
        (due.round, due.flow)
    }

    /// The flow, which was the first, has its next turn in `round`.
    #[inline]
    pub(crate) fn put_off(&mut self, flow: u32, round: u64) {
        let mut first = self.0.peek_mut().expect("the flow is in the heap");
        debug_assert_eq!(first.0.flow, flow, "only who has had a turn has another");
        first.0.round = round;
    }

    /// Takes the flow out, which is the first.
    pub(crate) fn remove(&mut self, flow: u32) {
        let first = self.0.pop();
        debug_assert!(first.is_some_and(|first| first.0.flow == flow), "only who is served leaves");
    }

    /// Flows have their next turns in other rounds: `round` is told a flow and its round so far.
    pub(crate) fn change_rounds(&mut self, mut round: impl FnMut(u32, u64) -> u64) {
        let mut all = core::mem::take(&mut self.0).into_vec();
        all.iter_mut().for_each(|Reverse(due)| due.round = round(due.flow, due.round));
        self.0 = all.into();
    }

    /// Flows have other places in the same order.
    pub(crate) fn renumber(&mut self, place: impl Fn(u32) -> Place) {
        let mut all = core::mem::take(&mut self.0).into_vec();
        all.iter_mut().for_each(|Reverse(due)| due.place = place(due.flow));
        self.0 = all.into();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_between_its_neighbours_until_the_gap_is_used_up() {
        let (mut low, high) = (Some(Place::spaced(7, 1024)), Place::spaced(8, 1024));
        let mut found = 0;
        while let Some(place) = Place::between(low, high) {
            assert!(low.is_none_or(|low| low < place) && place < high);
            low = Some(place);
            found += 1;
        }
        assert!(found > 500, "{found}");
        assert_eq!(Place::between(None, Place(1)), None);
        assert!(Place::spaced(1024, 1024) > Place::spaced(1023, 1024));
    }
}
