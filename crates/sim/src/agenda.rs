//! When every component wants to be called next.
//!
//! Each component has at most one pending wake, so the agenda is a tournament tree over a fixed
//! number of places and not a heap of events: changing a wake updates one path to the root. Wakes
//! at equal times come in the order of their places.

use alloc::vec;
use alloc::vec::Vec;

use sojourn_core::Time;

/// A component, by its place in the agenda.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place(pub(crate) u32);

#[derive(Clone, Debug)]
pub(crate) struct Agenda {
    /// Places that are woken for every packet; usually two, the bottleneck and the way back.
    busy: Tournament,
    /// Places that are woken seldom; they have a tree of their own, so that the busy tree stays
    /// small.
    quiet: Tournament,
    /// When each quiet place is to be woken.
    quiet_wakes: Vec<Time>,
    /// Places below this are in `busy`.
    split: u32,
    /// How many low bits of a key hold the place, and their mask.
    place_bits: u32,
    place_mask: u64,
    /// Later times are replaced by this one.
    latest: u64,
}

impl Agenda {
    /// Places below `busy` are expected to be woken for every packet. Nothing is woken after `end`;
    /// a checked scenario's end is small enough for the key.
    pub(crate) fn new(busy: usize, places: usize, end: Time) -> Self {
        let place_bits = usize::BITS - places.leading_zeros();
        assert!(end.as_nanos() < u64::MAX >> place_bits, "{places} places until {end}");
        Self {
            busy: Tournament::new(busy),
            quiet: Tournament::new(places - busy),
            quiet_wakes: vec![Time::NEVER; places - busy],
            split: busy as u32,
            place_bits,
            place_mask: !(NEVER << place_bits),
            latest: NEVER >> place_bits,
        }
    }

    /// Sets the wake of `place`; [`Time::NEVER`] for none.
    #[inline(always)]
    pub(crate) fn set(&mut self, place: Place, at: Time) {
        if place.0 < self.split {
            let key = self.key(place, at);
            self.busy.set(place.0, key);
        } else {
            self.set_quiet(place, at);
        }
    }

    /// Not inlined, so that [`Agenda::set`] can be inlined where it is called for every packet.
    #[inline(never)]
    fn set_quiet(&mut self, place: Place, at: Time) {
        let leaf = place.0 - self.split;
        self.quiet_wakes[leaf as usize] = at;
        let key = self.key(place, at);
        self.quiet.set(leaf, key);
    }

    /// Sets the wake of a quiet place only if `at` comes before the present one. A component that
    /// is called too early only names its wake again.
    #[inline(always)]
    pub(crate) fn set_quiet_if_sooner(&mut self, place: Place, at: Time) {
        if at < self.quiet_wakes[(place.0 - self.split) as usize] {
            self.set_quiet(place, at);
        }
    }

    /// Time in the high bits, place in the low bits, so the least key comes first.
    #[inline(always)]
    fn key(&self, place: Place, at: Time) -> u64 {
        at.as_nanos().min(self.latest) << self.place_bits | u64::from(place.0)
    }

    /// The place that comes first, and when.
    #[inline]
    pub(crate) fn first(&self) -> (Time, Place) {
        let first = self.busy.first.min(self.quiet.first);
        let place = Place((first & self.place_mask) as u32);
        (Time::from_nanos(first >> self.place_bits), place)
    }
}

const NEVER: u64 = u64::MAX;

/// A tournament tree: nodes `2 n` and `2 n + 1` meet in node `n`, which holds the lesser key; node
/// 1 holds the least of all.
#[derive(Clone, Debug)]
struct Tournament {
    winners: Vec<u64>,
    /// The node of the first place.
    leaves: usize,
    first: u64,
}

impl Tournament {
    fn new(places: usize) -> Self {
        let leaves = places.next_power_of_two();
        Self { winners: vec![NEVER; 2 * leaves], leaves, first: NEVER }
    }

    #[inline(always)]
    fn set(&mut self, leaf: u32, mut key: u64) {
        let mut node = self.leaves + leaf as usize;
        loop {
            self.winners[node] = key;
            key = key.min(self.winners[node ^ 1]);
            node /= 2;
            if node <= 1 {
                self.first = key;
                return;
            }
            // The node stays the same, and so does everything above it.
            if self.winners[node] == key {
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
        /// Compared with a slow exact version: the least (time, place) comes first.
        #[test]
        fn the_soonest_wake_comes_first_and_equal_ones_by_place(
            places in 1usize..90,
            sets in prop::collection::vec((0usize..90, 0u64..20), 1..200),
        ) {
            let end = Time::from_nanos(15);
            let mut agenda = Agenda::new(places / 2, places, end);
            let mut exact = vec![Time::NEVER; places];
            for (place, at) in sets {
                let place = place % places;
                exact[place] = if at == 0 { Time::NEVER } else { Time::from_nanos(at) };
                agenda.set(Place(place as u32), exact[place]);
                let least = exact.iter().zip(0..).min().expect("there is at least one place");
                let (at, place) = agenda.first();
                if *least.0 <= end {
                    prop_assert_eq!((at, place), (*least.0, Place(least.1)));
                } else {
                    prop_assert!(at > end);
                }
            }
        }
    }
}
