//! When each of several machines wants to be called, and which one first.

use alloc::vec;
use alloc::vec::Vec;

use crate::units::Time;

/// A tournament tree: a leaf for each place, and in each node above the sooner of the two below.
#[derive(Clone, Debug)]
pub struct Wakes {
    /// The root is at 1; the children of `at` are at `2 at` and `2 at + 1`.
    tree: Vec<Time>,
}

impl Wakes {
    /// `places` is a power of two.
    pub fn new(places: usize) -> Self {
        debug_assert!(places.is_power_of_two());
        Self { tree: vec![Time::NEVER; 2 * places] }
    }

    /// Makes room for this place, too.
    pub fn reach(&mut self, place: usize) {
        let leaves = self.tree.len() / 2;
        if place < leaves {
            return;
        }
        let mut larger = Self::new((place + 1).next_power_of_two());
        for (place, at) in self.tree[leaves..].iter().enumerate() {
            larger.set(place, *at);
        }
        *self = larger;
    }

    pub fn clear(&mut self) {
        self.tree.fill(Time::NEVER);
    }

    pub fn at(&self, place: usize) -> Time {
        self.tree[self.tree.len() / 2 + place]
    }

    pub fn set(&mut self, place: usize, at: Time) {
        let mut node = self.tree.len() / 2 + place;
        self.tree[node] = at;
        while node > 1 {
            let sooner = self.tree[node].min(self.tree[node ^ 1]);
            node /= 2;
            if self.tree[node] == sooner {
                return;
            }
            self.tree[node] = sooner;
        }
    }

    pub fn first(&self) -> Time {
        self.tree[1]
    }

    /// The first place, from `from` on, that is due at `now`.
    pub fn due_from(&self, now: Time, from: usize) -> Option<usize> {
        let leaves = self.tree.len() / 2;
        if from >= leaves || now.is_never() {
            return None;
        }
        let mut node = leaves + from;
        while self.tree[node] > now {
            // Up, as long as there is nothing further to the right.
            while node % 2 == 1 {
                node /= 2;
            }
            if node == 0 {
                return None;
            }
            node += 1;
        }
        while node < leaves {
            node *= 2;
            node += usize::from(self.tree[node] > now);
        }
        Some(node - leaves)
    }

    /// A place that is due at `now`: the earliest, and among equals the one with the lowest number.
    pub fn due(&self, now: Time) -> Option<usize> {
        let first = self.first();
        if first > now || first.is_never() {
            return None;
        }
        let leaves = self.tree.len() / 2;
        let mut node = 1;
        while node < leaves {
            node *= 2;
            node += usize::from(self.tree[node] != first);
        }
        Some(node - leaves)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_soonest_is_found_whatever_was_set_before(
            sets in prop::collection::vec((0usize..8, 0u64..30), 1..60),
        ) {
            let mut wakes = Wakes::new(1);
            let mut exact = [Time::NEVER; 8];
            for (place, at) in sets {
                let at = if at == 0 { Time::NEVER } else { Time::from_nanos(at) };
                wakes.reach(place);
                wakes.set(place, at);
                prop_assert_eq!(wakes.at(place), at);
                exact[place] = at;
                let first = exact.into_iter().min().unwrap();
                prop_assert_eq!(wakes.first(), first);
                let now = Time::from_nanos(15);
                let due = exact.iter().position(|at| *at == first && *at <= now);
                prop_assert_eq!(wakes.due(now), due);
                for from in 0..9 {
                    let next = (from..8).find(|place| exact[*place] <= now);
                    prop_assert_eq!(wakes.due_from(now, from), next);
                }
            }
        }
    }
}
