//! Whose turn it is to send, of the connections of a flow.

use sojourn_core::{Direction, Time, Wakes};

/// Connections by their places. Each has two ends, which are named by the direction in which they send. A packet
/// costs no more the more connections there are, but for a logarithm: only ends that something has happened to
/// are asked for packets, in the order of their places, and only those whose time has come are woken.
#[derive(Clone, Debug)]
pub(super) struct Turns {
    ends: [Ends; 2],
}

/// The ends that send in one direction.
#[derive(Clone, Debug)]
struct Ends {
    /// Those that may have something to send are at zero.
    ready: Wakes,
    /// When the others are to be woken.
    resting: Wakes,
}

impl Default for Turns {
    fn default() -> Self {
        let none = || Wakes::new(1);
        let ends = || Ends { ready: none(), resting: none() };
        Self { ends: [ends(), ends()] }
    }
}

impl Turns {
    /// Something happened to an end.
    pub(super) fn touch(&mut self, sends: Direction, place: usize) {
        let ends = &mut self.ends[sends as usize];
        ends.ready.reach(place);
        ends.ready.set(place, Time::ZERO);
    }

    /// An end whose time has come and that has not been woken. It may have something to send then.
    pub(super) fn wake(&mut self, now: Time, sends: Direction) -> Option<usize> {
        let resting = &mut self.ends[sends as usize].resting;
        let place = resting.due(now)?;
        resting.set(place, Time::NEVER);
        self.touch(sends, place);
        Some(place)
    }

    /// Ends whose time has come may have something to send, though they are not woken yet.
    pub(super) fn touch_due(&mut self, now: Time, sends: Direction) {
        while self.wake(now, sends).is_some() {}
    }

    /// The first end that may have something to send.
    pub(super) fn next(&self, sends: Direction) -> Option<usize> {
        self.ends[sends as usize].ready.due(Time::ZERO)
    }

    /// An end has nothing to send until `wake`, unless something happens to it.
    pub(super) fn rest(&mut self, sends: Direction, place: usize, wake: Time) {
        let ends = &mut self.ends[sends as usize];
        ends.ready.reach(place);
        ends.ready.set(place, Time::NEVER);
        ends.resting.reach(place);
        ends.resting.set(place, wake);
    }

    /// When the first end is to be woken.
    pub(super) fn first(&self, sends: Direction) -> Time {
        self.ends[sends as usize].resting.first()
    }

    /// The connection at `place` is gone, and the one at `last`, behind which there is none, takes its place.
    pub(super) fn swap_remove(&mut self, place: usize, last: usize) {
        for ends in &mut self.ends {
            for wakes in [&mut ends.ready, &mut ends.resting] {
                wakes.reach(last);
                wakes.set(place, wakes.at(last));
                wakes.set(last, Time::NEVER);
            }
        }
    }

    /// All connections are gone.
    pub(super) fn clear(&mut self) {
        for ends in &mut self.ends {
            ends.ready.clear();
            ends.resting.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use sojourn_core::Direction::{Forward, Reverse};
    use sojourn_core::Span;

    use super::*;

    fn at(ms: u64) -> Time {
        Time::ZERO + Span::from_millis(ms)
    }

    #[test]
    fn only_ends_that_something_happened_to_are_asked_in_the_order_of_their_places() {
        let mut turns = Turns::default();
        assert_eq!((turns.next(Forward), turns.first(Forward)), (None, Time::NEVER));
        [70, 3, 12].into_iter().for_each(|place| turns.touch(Forward, place));
        let mut asked = Vec::new();
        while let Some(place) = turns.next(Forward) {
            asked.push(place);
            turns.rest(Forward, place, at(place as u64));
        }
        assert_eq!(asked, [3, 12, 70]);
        assert_eq!((turns.first(Forward), turns.next(Reverse)), (at(3), None));
    }

    #[test]
    fn an_end_whose_time_has_come_is_woken_once_and_may_send() {
        let mut turns = Turns::default();
        for (place, ms) in [(0, 5), (1, 9), (2, 5)] {
            turns.rest(Reverse, place, at(ms));
        }
        assert_eq!(turns.wake(at(4), Reverse), None);
        let woken: Vec<usize> = std::iter::from_fn(|| turns.wake(at(5), Reverse)).collect();
        assert_eq!((woken, turns.first(Reverse)), (vec![0, 2], at(9)));
        turns.rest(Reverse, 0, Time::NEVER);
        assert_eq!(turns.next(Reverse), Some(2));
        turns.touch_due(at(9), Reverse);
        turns.rest(Reverse, 2, at(20));
        assert_eq!((turns.next(Reverse), turns.first(Reverse)), (Some(1), at(20)));
    }

    #[test]
    fn the_last_connection_takes_the_place_of_one_that_is_gone() {
        let mut turns = Turns::default();
        turns.touch(Forward, 4);
        turns.rest(Reverse, 4, at(7));
        turns.rest(Reverse, 1, at(3));
        turns.swap_remove(1, 4);
        assert_eq!((turns.next(Forward), turns.first(Reverse)), (Some(1), at(7)));
        assert_eq!(turns.wake(at(7), Reverse), Some(1));
        turns.swap_remove(1, 1);
        assert_eq!((turns.next(Forward), turns.next(Reverse)), (None, None));
        turns.touch(Forward, 9);
        turns.clear();
        assert_eq!(turns.next(Forward), None);
    }
}
