use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;

use sojourn_core::Time;

/// Items under way, delivered in the order in which they were sent, and behind them items that wait
/// to be sent. So a first-in-first-out queue and the line after it are one ring, in which only the
/// border between the two moves.
///
/// It is a ring of its own, because every packet passes one. Its length is a power of two, so that
/// one mask finds a place, and items are plain copies, so that nothing is moved through an
/// `Option`.
#[derive(Clone, Debug)]
pub struct DelayLine<T> {
    /// Each item with its time of arrival or, while it waits, the time since when.
    slots: Vec<(Time, T)>,
    /// How many items were ever taken out, sent and put in; modulo the ring's length these are
    /// places.
    taken: usize,
    sent: usize,
    put: usize,
    /// Items that overtook others and are not next, the next of them first. The next item of all is
    /// always in the ring, before these.
    ahead: VecDeque<(Time, T)>,
}

/// Where counts begin: an item that becomes the next of all enters the ring at its front.
const BEGIN: usize = 1 << (usize::BITS - 4);

impl<T: Copy> DelayLine<T> {
    pub const fn new() -> Self {
        let ahead = VecDeque::new();
        Self { slots: Vec::new(), taken: BEGIN, sent: BEGIN, put: BEGIN, ahead }
    }

    /// Lets `item` arrive at `at`; nothing may wait. Nothing overtakes on a line: a time before
    /// that of the item ahead counts as that item's.
    #[inline]
    pub fn push(&mut self, at: Time, item: T) {
        debug_assert!(self.first_waiting().is_none(), "what waits comes first");
        let at = self.back().map_or(at, |(ahead, _)| at.max(*ahead));
        self.wait(at, item);
        self.sent = self.put;
    }

    /// Lets `item` arrive at `at`, before items that arrive later; nothing may wait.
    pub fn insert(&mut self, at: Time, item: T) {
        debug_assert!(self.first_waiting().is_none(), "what waits comes first");
        self.wait(at, item);
        self.sent = self.put;
        self.sort_last();
    }

    /// Adds `item`, to wait from `now` on behind all that wait already, and gives its place.
    #[inline(always)]
    pub fn wait(&mut self, now: Time, item: T) -> &mut (Time, T) {
        if self.put - self.taken == self.slots.len() {
            self.grow(item);
        }
        let place = self.put & (self.slots.len() - 1);
        self.put += 1;
        let slot = &mut self.slots[place];
        *slot = (now, item);
        slot
    }

    /// The item that waits first, and since when.
    #[inline]
    pub fn first_waiting(&self) -> Option<&(Time, T)> {
        if self.sent == self.put {
            return None;
        }
        self.slots.get(self.sent & (self.slots.len() - 1))
    }

    #[inline]
    pub fn first_waiting_mut(&mut self) -> Option<&mut (Time, T)> {
        if self.sent == self.put {
            return None;
        }
        let place = self.sent & (self.slots.len() - 1);
        self.slots.get_mut(place)
    }

    /// Sends the first waiting item, after its time was set to that of its arrival. If that is
    /// before the item ahead, [`DelayLine::sort_last`] must follow.
    #[inline]
    pub fn send(&mut self) {
        debug_assert!(self.sent < self.put);
        self.sent += 1;
    }

    /// Lets the item that was sent last overtake those that arrive after it; nothing may wait.
    pub fn sort_last(&mut self) {
        debug_assert!(self.first_waiting().is_none(), "what waits would be behind a gap");
        if self.sent - self.taken < 2 {
            return;
        }
        let mask = self.slots.len() - 1;
        let (last, before) = ((self.sent - 1) & mask, (self.sent - 2) & mask);
        if self.slots[last].0 < self.slots[before].0 {
            self.overtake();
        }
    }

    /// Takes the item that was sent last to the front of the ring, or among those that overtook
    /// before. Of equal times the one that was sent first stays first.
    fn overtake(&mut self) {
        let Some((at, item)) = self.withdraw() else { return };
        if at < self.next() {
            self.put_in_front(at, item);
            return;
        }
        // Mostly the last place: who overtakes at a link does so in order.
        let place = self.ahead.partition_point(|(other, _)| *other <= at);
        self.ahead.insert(place, (at, item));
    }

    /// One item was withdrawn or taken since the ring grew, so there is a place.
    fn put_in_front(&mut self, at: Time, item: T) {
        self.taken -= 1;
        let place = self.taken & (self.slots.len() - 1);
        self.slots[place] = (at, item);
    }

    /// After an item was taken out: the next is in the ring again.
    #[cold]
    #[inline(never)]
    fn bring_forward(&mut self) {
        if let Some((at, _)) = self.ahead.front()
            && *at < self.next()
            && let Some((at, item)) = self.ahead.pop_front()
        {
            self.put_in_front(at, item);
        }
    }

    /// Removes the item that entered last, before it is sorted.
    pub fn withdraw(&mut self) -> Option<(Time, T)> {
        let last = *self.back()?;
        self.put -= 1;
        self.sent = self.sent.min(self.put);
        Some(last)
    }

    /// When the next item arrives; [`Time::NEVER`] if nothing is under way.
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

    /// The item that entered last.
    pub fn back(&self) -> Option<&(Time, T)> {
        if self.put == self.taken {
            return None;
        }
        self.slots.get((self.put - 1) & (self.slots.len() - 1))
    }

    /// When the item arrives that was sent last, if it has not been taken out; those that wait do not
    /// count.
    pub fn last_under_way(&self) -> Option<Time> {
        if self.is_empty() {
            return None;
        }
        self.slots.get((self.sent.wrapping_sub(1)) & (self.slots.len() - 1)).map(|(at, _)| *at)
    }

    /// The next item, once `now` has reached its time.
    #[inline]
    pub fn pop_due(&mut self, now: Time) -> Option<T> {
        let (at, item) = *self.front()?;
        (at <= now).then(|| {
            self.taken += 1;
            if !self.ahead.is_empty() {
                self.bring_forward();
            }
            item
        })
    }

    /// Takes the next item out, whatever its time. There must be one, and nothing may have
    /// overtaken others.
    #[inline]
    pub fn pop(&mut self) -> T {
        debug_assert!(!self.is_empty() && self.ahead.is_empty());
        let place = self.taken & (self.slots.len() - 1);
        self.taken += 1;
        self.slots[place].1
    }

    /// The same, where it lies: to be read before another item enters.
    #[inline]
    pub fn pop_in_place(&mut self) -> &T {
        debug_assert!(!self.is_empty() && self.ahead.is_empty());
        let place = self.taken & (self.slots.len() - 1);
        self.taken += 1;
        &self.slots[place].1
    }

    /// Whether nothing is under way.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.sent == self.taken
    }

    /// The items under way: those that nothing overtook, the next to arrive first, and the others.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        let place = self.taken.checked_rem(self.slots.len()).unwrap_or(0);
        let (wrapped, next) = self.slots.split_at(place);
        let count = self.sent - self.taken;
        let wrapped = &wrapped[..count.saturating_sub(next.len())];
        let ring = next[..count.min(next.len())].iter().chain(wrapped);
        ring.chain(&self.ahead).map(|(_, item)| item)
    }

    /// Doubles the ring; `filler` fills the places that hold nothing.
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
    fn what_waits_is_sent_in_order_while_other_items_are_under_way() {
        let mut line = DelayLine::new();
        for item in 0..20 {
            line.wait(at(item), item);
        }
        assert_eq!((line.next(), line.is_empty()), (Time::NEVER, true));
        for item in 0..20 {
            let waiting = line.first_waiting_mut().expect("more wait");
            assert_eq!(*waiting, (at(item), item));
            waiting.0 = at(100 + item);
            line.send();
            if item >= 10 {
                assert_eq!(line.pop_due(at(90 + item)), Some(item - 10));
            }
        }
        assert!(line.first_waiting().is_none());
        assert!(line.iter().copied().eq(10..20));
        assert_eq!(line.next(), at(110));
    }

    #[test]
    fn overtaking_items_arrive_by_time_and_of_equal_times_as_they_were_sent() {
        let (mut line, mut listed, mut state) = (DelayLine::new(), Vec::new(), 1_u32);
        let mut random = |below: u32| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            u64::from((state >> 16) % below)
        };
        for item in 0..5_000_u64 {
            let time = at(item / 4 + if random(5) == 0 { random(40) } else { 40 });
            line.insert(time, item);
            let place = listed.partition_point(|(other, _)| *other <= time);
            listed.insert(place, (time, item));
            assert_eq!(line.iter().count(), listed.len());
            while random(20) != 0 && !listed.is_empty() && (random(4) != 0 || listed.len() > 60) {
                assert_eq!(line.next(), listed[0].0);
                assert_eq!(line.pop_due(at(2_000)), Some(listed.remove(0).1));
            }
        }
    }

    #[test]
    fn an_item_that_overtakes_moves_no_other() {
        let mut line = DelayLine::new();
        for item in 0..1_000_u64 {
            line.insert(at(5_000 + item), item);
        }
        let before = line.slots.clone();
        for item in 0..500_u64 {
            line.insert(at(item), item);
        }
        let moved = before.iter().zip(&line.slots).filter(|(before, now)| before != now);
        // The first entered the ring at its front, and each left its place at the end.
        assert_eq!(moved.count(), 2);
        assert_eq!((line.ahead.len(), line.next()), (499, at(0)));
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
