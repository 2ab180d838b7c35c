use sojourn_core::Time;

/// Things under way, delivered in the order in which they were sent.
///
/// A ring of its own, because every packet passes one twice: a power of two long, so that a place
/// is found with one mask, and of plain copies, so that nothing is moved by way of an `Option`.
#[derive(Clone, Debug)]
pub struct DelayLine<T> {
    slots: Vec<(Time, T)>,
    /// Items ever taken out and ever put in; the places are these, modulo the ring's length.
    taken: usize,
    put: usize,
}

impl<T: Copy> DelayLine<T> {
    pub const fn new() -> Self {
        Self { slots: Vec::new(), taken: 0, put: 0 }
    }

    /// Lets `item` arrive at `at`. On a line nothing overtakes: a time before that of the item
    /// ahead counts as the same.
    #[inline]
    pub fn push(&mut self, at: Time, item: T) {
        let at = self.back().map_or(at, |(ahead, _)| at.max(*ahead));
        self.enter(item).0 = at;
    }

    /// Takes `item` in before it is known when it arrives, so that it can be looked at where it
    /// will stay. The caller sets the time, which must not be before that of the item ahead, or
    /// calls [`DelayLine::withdraw`].
    #[inline]
    pub fn enter(&mut self, item: T) -> &mut (Time, T) {
        if self.len() == self.slots.len() {
            self.grow(item);
        }
        let place = self.put & (self.slots.len() - 1);
        self.put += 1;
        let slot = &mut self.slots[place];
        slot.1 = item;
        slot
    }

    /// Takes the item that entered last out again.
    pub fn withdraw(&mut self) -> Option<(Time, T)> {
        let last = *self.back()?;
        self.put -= 1;
        Some(last)
    }

    /// When the next item arrives; [`Time::NEVER`] when nothing is under way.
    #[inline]
    pub fn next(&self) -> Time {
        self.front().map_or(Time::NEVER, |(at, _)| *at)
    }

    /// The next item and when it arrives.
    #[inline]
    fn front(&self) -> Option<&(Time, T)> {
        if self.is_empty() {
            return None;
        }
        self.slots.get(self.taken & (self.slots.len() - 1))
    }

    fn back(&self) -> Option<&(Time, T)> {
        if self.is_empty() {
            return None;
        }
        self.slots.get((self.put - 1) & (self.slots.len() - 1))
    }

    /// The next item, once `now` has reached its time.
    #[inline]
    pub fn pop_due(&mut self, now: Time) -> Option<T> {
        let (at, item) = *self.front()?;
        (at <= now).then(|| {
            self.taken += 1;
            item
        })
    }

    /// Takes the next item out, whatever its time. There must be one.
    #[inline]
    pub fn pop(&mut self) -> T {
        debug_assert!(!self.is_empty());
        let place = self.taken & (self.slots.len() - 1);
        self.taken += 1;
        self.slots[place].1
    }

    #[inline]
    pub fn len(&self) -> usize {
        self.put - self.taken
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.put == self.taken
    }

    /// What is under way, the next to arrive first.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        (self.taken..self.put).map(|place| &self.slots[place & (self.slots.len() - 1)].1)
    }

    /// Doubles the ring; `filler` stands in the places that hold nothing.
    #[cold]
    #[inline(never)]
    fn grow(&mut self, filler: T) {
        let len = 2 * self.slots.len().max(8);
        let mut slots = vec![(Time::ZERO, filler); len];
        for place in self.taken..self.put {
            slots[place & (len - 1)] = self.slots[place & (self.slots.len() - 1)];
        }
        self.slots = slots;
    }
}

impl<T: Copy> Default for DelayLine<T> {
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
        assert_eq!(line.next(), at(10));
        assert_eq!(line.pop_due(at(9)), None);
        assert_eq!(line.pop_due(at(25)), Some('a'));
        assert_eq!(line.pop_due(at(25)), Some('b'));
        assert_eq!((line.pop_due(at(25)), line.next()), (None, Time::NEVER));
    }

    #[test]
    fn an_item_may_be_withdrawn_and_rings_grow_in_order() {
        let mut line = DelayLine::new();
        for turn in 0..5 {
            for item in 0..20 {
                line.push(at(turn), item);
            }
            assert_eq!(line.withdraw(), Some((at(turn), 19)));
            assert!(line.iter().copied().eq(0..19));
            assert_eq!((0..19).filter_map(|_| line.pop_due(at(turn))).last(), Some(18));
            assert!(line.is_empty() && line.withdraw().is_none());
        }
    }

    #[test]
    fn an_item_with_an_earlier_time_waits_for_the_one_ahead() {
        let mut line = DelayLine::new();
        line.push(at(30), 'a');
        line.push(at(20), 'b');
        assert_eq!(line.pop_due(at(29)), None);
        assert_eq!(line.pop_due(at(30)), Some('a'));
        assert_eq!(line.next(), at(30));
    }
}
