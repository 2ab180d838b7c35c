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
    /// The first two places that are woken for every packet; usually the bottleneck and the way back.
    pair: Tournament<2>,
    /// The key of the place after them, such as a radio's, which wakes as often.
    third: u64,
    /// The first of `third` and of `others`.
    others_first: u64,
    /// The ends of flows, and after them the other places that are woken for every packet.
    others: Tournament<4>,
    /// When each end is to be woken.
    end_wakes: Vec<Time>,
    /// Places that are woken seldom; they have a tree of their own, so that the others stay small.
    quiet: Tournament<4>,
    /// Places below this are in `pair`.
    first_other: u32,
    /// The place of `third`; none has that number if nothing else is busy.
    third_place: u32,
    /// The place of the first end.
    first_end: u32,
    /// Places from this on are in `quiet`.
    first_quiet: u32,
    /// How many low bits of a key hold the place, and their mask.
    place_bits: u32,
    place_mask: u64,
    /// Later times are replaced by this one.
    latest: u64,
}

impl Agenda {
    /// The first `busy` places are expected to be woken for every packet, and the `ends` after them
    /// nearly as often. Nothing is woken after `end`; a checked scenario's end is small enough for the
    /// key.
    pub(crate) fn new(busy: usize, ends: usize, places: usize, end: Time) -> Self {
        let place_bits = usize::BITS - places.leading_zeros();
        assert!(end.as_nanos() < u64::MAX >> place_bits, "{places} places until {end}");
        let pair = busy.min(2);
        Self {
            pair: Tournament::new(pair),
            third: NEVER,
            others_first: NEVER,
            others: Tournament::new(ends + busy.saturating_sub(3)),
            end_wakes: vec![Time::NEVER; ends],
            quiet: Tournament::new(places - busy - ends),
            first_other: pair as u32,
            third_place: if busy > pair { pair as u32 } else { u32::MAX },
            first_end: busy as u32,
            first_quiet: (busy + ends) as u32,
            place_bits,
            place_mask: !(NEVER << place_bits),
            latest: NEVER >> place_bits,
        }
    }

    /// Sets the wake of `place`; [`Time::NEVER`] for none.
    #[inline(always)]
    pub(crate) fn set(&mut self, place: Place, at: Time) {
        if place.0 < self.first_other {
            let key = self.key(place, at);
            self.pair.set_last(place.0 as usize, key);
        } else if place.0 == self.third_place {
            self.third = self.key(place, at);
            self.others_first = self.third.min(self.others.first);
        } else {
            self.set_other(place, at);
        }
    }

    /// Not inlined, so that [`Agenda::set`] can be inlined where it is called for every packet.
    #[inline(never)]
    fn set_other(&mut self, place: Place, at: Time) {
        let end = place.0.wrapping_sub(self.first_end);
        if (end as usize) < self.end_wakes.len() {
            self.set_end(end, at);
            return;
        }
        let key = self.key(place, at);
        if place.0 >= self.first_quiet {
            self.quiet.set(place.0 - self.first_quiet, key);
            return;
        }
        let leaf = self.end_wakes.len() as u32 + place.0 - self.first_other - 1;
        self.others.set(leaf, key);
        self.others_first = self.third.min(self.others.first);
    }

    /// Sets the wake of an end, by its number among the ends.
    #[inline(never)]
    pub(crate) fn set_end(&mut self, end: u32, at: Time) {
        let key = self.key(Place(self.first_end + end), at);
        self.end_wakes[end as usize] = at;
        self.others.set(end, key);
        self.others_first = self.third.min(self.others.first);
    }

    /// [`Agenda::set_end`] only if `at` comes before the present wake. An end that is called too early only names its wake
    /// again.
    #[inline(always)]
    pub(crate) fn set_end_if_sooner(&mut self, end: u32, at: Time) {
        if at < self.end_wakes[end as usize] {
            self.set_end(end, at);
        }
    }

    /// Whether `at` comes before the present wake of an end.
    #[inline(always)]
    pub(crate) fn is_sooner(&self, end: u32, at: Time) -> bool {
        at < self.end_wakes[end as usize]
    }

    /// Time in the high bits, place in the low bits, so the least key comes first.
    #[inline(always)]
    fn key(&self, place: Place, at: Time) -> u64 {
        at.as_nanos().min(self.latest) << self.place_bits | u64::from(place.0)
    }

    /// The place that comes first, and when.
    #[inline]
    pub(crate) fn first(&self) -> (Time, Place) {
        let first = self.pair.first.min(self.others_first).min(self.quiet.first);
        let place = Place((first & self.place_mask) as u32);
        (Time::from_nanos(first >> self.place_bits), place)
    }
}

const NEVER: u64 = u64::MAX;

/// A tournament tree: the keys of a group meet, and the least of them goes on to the group above.
#[derive(Clone, Debug)]
struct Tournament<const WAYS: usize> {
    /// The last group to meet; without groups below, the places themselves.
    last: [u64; WAYS],
    /// The least of all.
    first: u64,
    /// The groups below, level by level. The first `WAYS` of them go on to `last`, and those from
    /// `WAYS * (n + 1)` on to group `n`.
    below: Vec<[u64; WAYS]>,
    /// The group of the first place.
    leaves: usize,
}

impl<const WAYS: usize> Tournament<WAYS> {
    fn new(places: usize) -> Self {
        let (mut leaves, mut below, mut level) = (0, 0, 1);
        while level * WAYS < places {
            level *= WAYS;
            leaves = below;
            below += level;
        }
        Self { last: [NEVER; WAYS], first: NEVER, below: vec![[NEVER; WAYS]; below], leaves }
    }

    #[inline(always)]
    fn set(&mut self, leaf: u32, key: u64) {
        if self.below.is_empty() {
            self.set_last(leaf as usize, key);
        } else {
            self.climb(leaf, key);
        }
    }

    #[inline(always)]
    fn set_last(&mut self, slot: usize, key: u64) {
        self.last[slot % WAYS] = key;
        self.first = least(&self.last);
    }

    #[inline(never)]
    fn climb(&mut self, leaf: u32, mut key: u64) {
        let (mut group, mut slot) = (self.leaves + leaf as usize / WAYS, leaf as usize % WAYS);
        loop {
            let keys = &mut self.below[group];
            // The place stays the same, and so does everything above it.
            if keys[slot] == key {
                return;
            }
            keys[slot] = key;
            key = least(keys);
            // The place of this group in the level above.
            let Some(above) = group.checked_sub(WAYS) else {
                self.set_last(group, key);
                return;
            };
            (group, slot) = (above / WAYS, above % WAYS);
        }
    }
}

#[inline(always)]
fn least(keys: &[u64]) -> u64 {
    keys.iter().fold(NEVER, |least, key| least.min(*key))
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
            let mut agenda = Agenda::new(places / 3, places / 2, places, end);
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
