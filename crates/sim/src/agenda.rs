//! When every component wants to be called next.
//!
//! Each component has at most one pending wake, so the agenda is a tournament over a fixed number
//! of places and not a heap of events: changing a wake replays one path to the root. Wakes of
//! equal time come in the order in which they were set.

use sojourn_core::Time;

/// A component, by its place in the agenda.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place(pub(crate) u32);

#[derive(Clone, Debug)]
pub(crate) struct Agenda {
    /// Wake of each place, and the number under which it was set.
    wakes: Vec<(Time, u64)>,
    /// `winners[1]` is the place that comes first; `winners[n..2n]` are the places themselves.
    winners: Vec<u32>,
    set: u64,
}

impl Agenda {
    pub(crate) fn new(places: usize) -> Self {
        let leaves = places.next_power_of_two().max(2);
        let mut winners = vec![0; 2 * leaves];
        for (place, slot) in winners[leaves..].iter_mut().enumerate() {
            *slot = place as u32;
        }
        for node in (1..leaves).rev() {
            winners[node] = winners[2 * node];
        }
        Self { wakes: vec![(Time::NEVER, 0); leaves], winners, set: 0 }
    }

    pub(crate) fn wake_of(&self, place: Place) -> Time {
        self.wakes[place.0 as usize].0
    }

    /// Sets the wake of `place`; [`Time::NEVER`] for none.
    #[inline]
    pub(crate) fn set(&mut self, place: Place, at: Time) {
        self.set += 1;
        self.wakes[place.0 as usize] = (at, self.set);
        let mut node = (self.wakes.len() + place.0 as usize) / 2;
        while node >= 1 {
            let (left, right) = (self.winners[2 * node], self.winners[2 * node + 1]);
            let first = self.wakes[left as usize] <= self.wakes[right as usize];
            self.winners[node] = if first { left } else { right };
            node /= 2;
        }
    }

    /// Sets the wake of `place` only if `at` comes before the one it has: a component that is
    /// called too early finds nothing to do and names its wake again.
    #[inline]
    pub(crate) fn set_if_sooner(&mut self, place: Place, at: Time) {
        if at < self.wake_of(place) {
            self.set(place, at);
        }
    }

    /// The place that comes first, and when.
    #[inline]
    pub(crate) fn first(&self) -> (Time, Place) {
        let place = self.winners[1];
        (self.wakes[place as usize].0, Place(place))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Against a slow exact version: the least (time, order of setting) comes first.
        #[test]
        fn the_soonest_wake_comes_first_and_equal_ones_in_order(
            places in 1usize..40,
            sets in prop::collection::vec((0usize..40, 0u64..20), 1..200),
        ) {
            let mut agenda = Agenda::new(places);
            let mut exact = vec![(Time::NEVER, 0); places];
            for (order, (place, at)) in sets.into_iter().enumerate() {
                let (place, at) = (place % places, Time::from_nanos(at));
                agenda.set(Place(place as u32), at);
                exact[place] = (at, order + 1);
                let least = exact.iter().enumerate().min_by_key(|(_, wake)| **wake);
                let (first, wake) = least.expect("there is at least one place");
                prop_assert_eq!(agenda.first(), (wake.0, Place(first as u32)));
            }
        }
    }
}
