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
    /// Mostly two: the bottleneck and the way back.
    busy: Tournament<2>,
    /// Places that are woken seldom, so that they lengthen nobody's way to the root.
    quiet: Tournament<4>,
    /// When each of those is to be woken.
    quiet_wakes: Vec<Time>,
    /// Places below this are in `busy`.
    split: u32,
    set: u64,
}

impl Agenda {
    /// Places below `busy` are expected to be woken for every packet.
    pub(crate) fn new(busy: usize, places: usize) -> Self {
        assert!(places < 1 << PLACE_BITS, "{places} places");
        Self {
            busy: Tournament::new(busy),
            quiet: Tournament::new(places - busy),
            quiet_wakes: vec![Time::NEVER; places - busy],
            split: busy as u32,
            set: 0,
        }
    }

    /// Sets the wake of `place`; [`Time::NEVER`] for none.
    #[inline(always)]
    pub(crate) fn set(&mut self, place: Place, at: Time) {
        if place.0 < self.split {
            let key = self.next_key(place, at);
            self.busy.set(place.0, key);
        } else {
            self.set_quiet(place, at);
        }
    }

    /// Not inlined, so that [`Agenda::set`] can be, where it is called for every packet.
    #[inline(never)]
    fn set_quiet(&mut self, place: Place, at: Time) {
        let leaf = place.0 - self.split;
        self.quiet_wakes[leaf as usize] = at;
        let key = self.next_key(place, at);
        self.quiet.set(leaf, key);
    }

    /// Sets the wake of a quiet place only if `at` comes before the one it has: a component that
    /// is called too early finds nothing to do and names its wake again.
    #[inline(always)]
    pub(crate) fn set_quiet_if_sooner(&mut self, place: Place, at: Time) {
        if at < self.quiet_wakes[(place.0 - self.split) as usize] {
            self.set_quiet(place, at);
        }
    }

    #[inline(always)]
    fn next_key(&mut self, place: Place, at: Time) -> Key {
        self.set += 1;
        Key::new(at, self.set, place.0)
    }

    /// The place that comes first, and when.
    #[inline]
    pub(crate) fn first(&self) -> (Time, Place) {
        let first = self.busy.first.min(self.quiet.first);
        (first.at(), first.place())
    }
}

/// Time, then a number that counts calls of `set`, then the place: what comes first is the least.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key(u128);

const PLACE_BITS: u32 = 20;

impl Key {
    const NEVER: Self = Self(u128::MAX);

    #[inline]
    fn new(at: Time, set: u64, place: u32) -> Self {
        Self(u128::from(at.as_nanos()) << 64 | u128::from(set << PLACE_BITS | u64::from(place)))
    }

    #[inline]
    fn place(self) -> Place {
        Place(self.0 as u32 & ((1 << PLACE_BITS) - 1))
    }

    #[inline]
    fn at(self) -> Time {
        Time::from_nanos((self.0 >> 64) as u64)
    }
}

/// `WIDTH` meet at a time, without a branch: the more, the fewer rounds there are.
#[derive(Clone, Debug)]
struct Tournament<const WIDTH: usize> {
    /// The final first; the winner of group `g` plays at `(g - 1) % WIDTH` of group
    /// `(g - 1) / WIDTH`.
    groups: Vec<[Key; WIDTH]>,
    /// The group of the first place.
    leaves: usize,
    first: Key,
}

impl<const WIDTH: usize> Tournament<WIDTH> {
    fn new(places: usize) -> Self {
        let (mut leaves, mut width) = (0, 1);
        while WIDTH * width < places {
            leaves += width;
            width *= WIDTH;
        }
        let groups = leaves + places.div_ceil(WIDTH).max(1);
        Self { groups: vec![[Key::NEVER; WIDTH]; groups], leaves, first: Key::NEVER }
    }

    #[inline(always)]
    fn set(&mut self, leaf: u32, mut key: Key) {
        let (mut group, mut seat) = (self.leaves + leaf as usize / WIDTH, leaf as usize % WIDTH);
        loop {
            let players = &mut self.groups[group];
            players[seat] = key;
            key = players.iter().fold(Key::NEVER, |least, player| least.min(*player));
            if group == 0 {
                self.first = key;
                return;
            }
            (group, seat) = ((group - 1) / WIDTH, (group - 1) % WIDTH);
            // The winner above stays: so does everything above it.
            if self.groups[group][seat] == key {
                return;
            }
        }
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
            places in 1usize..90,
            sets in prop::collection::vec((0usize..90, 0u64..20), 1..200),
        ) {
            let mut agenda = Agenda::new(places / 2, places);
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
