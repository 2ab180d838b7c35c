use std::collections::VecDeque;

use sojourn_core::Time;

/// Things under way, delivered in the order in which they were sent.
#[derive(Clone, Debug)]
pub struct DelayLine<T> {
    ring: VecDeque<(Time, T)>,
}

impl<T> DelayLine<T> {
    pub const fn new() -> Self {
        Self { ring: VecDeque::new() }
    }

    /// Lets `item` arrive at `at`. On a line nothing overtakes: a time before that of the item
    /// ahead counts as the same.
    #[inline]
    pub fn push(&mut self, at: Time, item: T) {
        let at = self.ring.back().map_or(at, |(ahead, _)| at.max(*ahead));
        self.ring.push_back((at, item));
    }

    /// When the next item arrives.
    #[inline]
    pub fn next(&self) -> Option<Time> {
        self.ring.front().map(|(at, _)| *at)
    }

    /// The next item, once `now` has reached its time.
    #[inline]
    pub fn pop_due(&mut self, now: Time) -> Option<T> {
        if self.next()? > now {
            return None;
        }
        self.ring.pop_front().map(|(_, item)| item)
    }

    pub fn len(&self) -> usize {
        self.ring.len()
    }

    pub fn is_empty(&self) -> bool {
        self.ring.is_empty()
    }

    /// What is under way, the next to arrive first.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.ring.iter().map(|(_, item)| item)
    }
}

impl<T> Default for DelayLine<T> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ns: u64) -> Time {
        Time::from_nanos(ns)
    }

    #[test]
    fn items_arrive_in_order_and_not_before_their_time() {
        let mut line = DelayLine::new();
        line.push(at(10), 'a');
        line.push(at(20), 'b');
        assert_eq!(line.next(), Some(at(10)));
        assert_eq!(line.pop_due(at(9)), None);
        assert_eq!(line.pop_due(at(25)), Some('a'));
        assert_eq!(line.pop_due(at(25)), Some('b'));
        assert_eq!((line.pop_due(at(25)), line.next()), (None, None));
    }

    #[test]
    fn an_item_with_an_earlier_time_waits_for_the_one_ahead() {
        let mut line = DelayLine::new();
        line.push(at(30), 'a');
        line.push(at(20), 'b');
        assert_eq!(line.pop_due(at(29)), None);
        assert_eq!(line.pop_due(at(30)), Some('a'));
        assert_eq!(line.next(), Some(at(30)));
    }
}
