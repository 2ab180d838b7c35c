//! One store for the packets of many queues: each queue is a chain of slots, so a queue costs
//! nothing while it is empty and nothing is allocated per packet once the store has grown.

use alloc::vec::Vec;

use sojourn_core::{Queued, Time};

const NONE: u32 = u32::MAX;

/// First in, first out; the packets are in a [`Slab`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fifo {
    head: u32,
    tail: u32,
}

impl Fifo {
    pub(crate) const EMPTY: Self = Self { head: NONE, tail: NONE };

    pub(crate) fn is_empty(self) -> bool {
        self.head == NONE
    }

    /// Whether it holds more packets than the head.
    pub(crate) fn holds_several(self) -> bool {
        self.head != NONE && self.head != self.tail
    }
}

/// Packets are plain copies, so none is moved through an `Option`. What a slot held stays there
/// until the slot is used again.
#[derive(Debug)]
pub(crate) struct Slab<P> {
    slots: Vec<Slot<P>>,
    /// First of the chain of free slots.
    free: u32,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Slot<P> {
    pub(crate) packet: P,
    pub(crate) arrived: Time,
    /// The packet's `truesize`, stored because computing it takes longer.
    pub(crate) truesize: u32,
    next: u32,
}

/// A slot that the caller must append to a queue, or copy from, at once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place(u32);

impl Place {
    /// No slot has this number.
    pub(crate) const NOWHERE: Self = Self(NONE);
}

/// The head of a queue, to be inspected and perhaps taken out.
pub(crate) struct Head<'a, P> {
    pub(crate) slot: &'a mut Slot<P>,
    free: &'a mut u32,
}

impl<P> Head<'_, P> {
    /// Takes it out; it must be copied by [`Slab::taken`] before anything else is done.
    #[inline]
    pub(crate) fn take(self, fifo: &mut Fifo) -> Place {
        let index = core::mem::replace(&mut fifo.head, self.slot.next);
        self.slot.next = core::mem::replace(self.free, index);
        Place(index)
    }
}

impl<P: Queued + Copy> Slab<P> {
    pub(crate) fn new() -> Self {
        Self { slots: Vec::new(), free: NONE }
    }

    /// Puts a packet behind those of a queue.
    #[inline]
    pub(crate) fn push(&mut self, fifo: &mut Fifo, arrived: Time, packet: P) {
        let (place, _) = self.put(arrived, packet);
        self.append(fifo, place);
    }

    /// Stores a packet, which must be appended to a queue at once. A caller that does this before anything else, and then looks
    /// at the packet where it lies, spares a copy of it.
    #[inline(always)]
    pub(crate) fn put(&mut self, arrived: Time, packet: P) -> (Place, &mut Slot<P>) {
        let (place, slot) = self.put_sized(arrived, 0, || packet);
        slot.truesize = slot.packet.truesize();
        (place, slot)
    }

    /// The same of a packet whose `truesize` is known, and which is made where it will lie.
    #[inline(always)]
    pub(crate) fn put_sized(
        &mut self,
        arrived: Time,
        truesize: u32,
        packet: impl FnOnce() -> P,
    ) -> (Place, &mut Slot<P>) {
        if self.free as usize >= self.slots.len() {
            return self.grow(Slot { packet: packet(), arrived, truesize, next: NONE });
        }
        let place = Place(self.free);
        let slot = &mut self.slots[self.free as usize];
        slot.packet = packet();
        self.free = slot.next;
        (slot.arrived, slot.truesize, slot.next) = (arrived, truesize, NONE);
        (place, slot)
    }

    /// Puts a packet that was just stored behind those of a queue.
    #[inline]
    pub(crate) fn append(&mut self, fifo: &mut Fifo, place: Place) {
        // No slot has the number NONE, which is the tail of an empty queue.
        match self.slots.get_mut(fifo.tail as usize) {
            Some(tail) if fifo.head != NONE => tail.next = place.0,
            _ => fifo.head = place.0,
        }
        fifo.tail = place.0;
    }

    /// The slot of a packet that was just stored.
    pub(crate) fn stored(&mut self, place: Place) -> &mut Slot<P> {
        &mut self.slots[place.0 as usize]
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self, slot: Slot<P>) -> (Place, &mut Slot<P>) {
        let place = Place(self.slots.len() as u32);
        (place, self.slots.push_mut(slot))
    }

    #[inline]
    pub(crate) fn pop(&mut self, fifo: &mut Fifo) -> Option<Slot<P>> {
        let place = self.head_mut(*fifo)?.take(fifo);
        self.taken(place).copied()
    }

    /// The content of a place that was just taken; `None` for [`Place::NOWHERE`].
    #[inline]
    pub(crate) fn taken(&self, place: Place) -> Option<&Slot<P>> {
        self.slots.get(place.0 as usize)
    }

    #[inline]
    pub(crate) fn head(&self, fifo: Fifo) -> Option<&Slot<P>> {
        self.slots.get(fifo.head as usize)
    }

    #[inline]
    pub(crate) fn head_mut(&mut self, fifo: Fifo) -> Option<Head<'_, P>> {
        let slot = self.slots.get_mut(fifo.head as usize)?;
        Some(Head { slot, free: &mut self.free })
    }

    /// When the earliest of the heads arrived.
    pub(crate) fn oldest(&self, fifos: impl Iterator<Item = Fifo>) -> Option<Time> {
        fifos.filter_map(|fifo| self.head(fifo)).map(|head| head.arrived).min()
    }

    pub(crate) fn tail(&self, fifo: Fifo) -> Option<&P> {
        if fifo.head == NONE {
            return None;
        }
        Some(&self.slots[fifo.tail as usize].packet)
    }

    /// Head to tail.
    pub(crate) fn iter(&self, fifo: Fifo) -> impl Iterator<Item = &P> {
        let mut next = fifo.head;
        core::iter::from_fn(move || {
            let slot = self.slots.get(next as usize)?;
            next = slot.next;
            Some(&slot.packet)
        })
    }

    /// Takes out the packet at `position`, counted from the head.
    pub(crate) fn remove(&mut self, fifo: &mut Fifo, position: usize) -> Option<Slot<P>> {
        if position == 0 {
            return self.pop(fifo);
        }
        let mut before = fifo.head;
        for _ in 1..position {
            before = self.slots.get(before as usize)?.next;
        }
        let index = self.slots.get(before as usize)?.next;
        let slot = self.slots.get_mut(index as usize)?;
        let removed = *slot;
        slot.next = core::mem::replace(&mut self.free, index);
        self.slots[before as usize].next = removed.next;
        if fifo.tail == index {
            fifo.tail = before;
        }
        Some(removed)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;
    use crate::testing::packet;

    proptest! {
        #[test]
        fn it_behaves_like_a_ring_per_queue(
            operations in prop::collection::vec((0usize..3, 0u8..4, 0usize..6), 0..200)
        ) {
            let mut slab = Slab::new();
            let mut fifos = [Fifo::EMPTY; 3];
            let mut rings: [VecDeque<u32>; 3] = Default::default();
            for (number, (queue, operation, position)) in (0u32..).zip(operations) {
                match operation {
                    0 | 1 => {
                        slab.push(&mut fifos[queue], Time::ZERO, packet(number));
                        rings[queue].push_back(number);
                    }
                    2 => {
                        let popped = slab.pop(&mut fifos[queue]).map(|slot| slot.packet.id);
                        prop_assert_eq!(popped, rings[queue].pop_front());
                    }
                    _ => {
                        let removed = slab.remove(&mut fifos[queue], position);
                        prop_assert_eq!(removed.map(|slot| slot.packet.id), rings[queue].remove(position));
                    }
                }
                let held: Vec<u32> = slab.iter(fifos[queue]).map(|packet| packet.id).collect();
                prop_assert_eq!(&held, &rings[queue].iter().copied().collect::<Vec<_>>());
                let tail = slab.tail(fifos[queue]).map(|packet| &packet.id);
                prop_assert_eq!(tail, rings[queue].back());
                let head = slab.head(fifos[queue]).map(|slot| &slot.packet.id);
                prop_assert_eq!(head, rings[queue].front());
            }
        }
    }
}
