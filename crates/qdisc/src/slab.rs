//! One store for the packets of many queues: each queue is a chain of slots, so a queue costs
//! nothing while it is empty and nothing is allocated per packet once the store has grown.

use sojourn_core::Time;

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

    /// Whether there is more than the head.
    pub(crate) fn holds_several(self) -> bool {
        self.head != NONE && self.head != self.tail
    }
}

#[derive(Debug)]
pub(crate) struct Slab<P> {
    slots: Vec<Slot<P>>,
    /// First of the chain of free slots.
    free: u32,
}

#[derive(Debug)]
struct Slot<P> {
    /// With its time of arrival.
    packet: Option<(P, Time)>,
    next: u32,
}

impl<P> Slab<P> {
    pub(crate) fn new() -> Self {
        Self { slots: Vec::new(), free: NONE }
    }

    #[inline]
    pub(crate) fn push(&mut self, fifo: &mut Fifo, arrived: Time, packet: P) {
        let slot = Slot { packet: Some((packet, arrived)), next: NONE };
        let mut index = self.free;
        if let Some(place) = self.slots.get_mut(index as usize) {
            self.free = place.next;
            *place = slot;
        } else {
            index = self.slots.len() as u32;
            self.slots.push(slot);
        }
        if fifo.head == NONE {
            fifo.head = index;
        } else {
            self.slots[fifo.tail as usize].next = index;
        }
        fifo.tail = index;
    }

    #[inline]
    pub(crate) fn pop(&mut self, fifo: &mut Fifo) -> Option<(P, Time)> {
        // No slot has the number NONE.
        let slot = self.slots.get_mut(fifo.head as usize)?;
        let index = std::mem::replace(&mut fifo.head, slot.next);
        slot.next = self.free;
        self.free = index;
        slot.packet.take()
    }

    /// The packet at the head and when it arrived.
    #[inline]
    pub(crate) fn head(&self, fifo: Fifo) -> Option<&(P, Time)> {
        self.slots.get(fifo.head as usize)?.packet.as_ref()
    }

    #[inline]
    pub(crate) fn head_mut(&mut self, fifo: Fifo) -> Option<&mut (P, Time)> {
        self.slots.get_mut(fifo.head as usize)?.packet.as_mut()
    }

    pub(crate) fn tail(&self, fifo: Fifo) -> Option<&P> {
        if fifo.head == NONE {
            return None;
        }
        let (packet, _) = self.slots[fifo.tail as usize].packet.as_ref()?;
        Some(packet)
    }

    /// Head to tail.
    pub(crate) fn iter(&self, fifo: Fifo) -> impl Iterator<Item = &P> {
        let mut next = fifo.head;
        std::iter::from_fn(move || {
            let slot = self.slots.get(next as usize)?;
            next = slot.next;
            slot.packet.as_ref().map(|(packet, _)| packet)
        })
    }

    /// Takes out the packet at `position`, counted from the head.
    pub(crate) fn remove(&mut self, fifo: &mut Fifo, position: usize) -> Option<(P, Time)> {
        if position == 0 {
            return self.pop(fifo);
        }
        let mut before = fifo.head;
        for _ in 1..position {
            before = self.slots.get(before as usize)?.next;
        }
        let index = self.slots.get(before as usize)?.next;
        let slot = self.slots.get_mut(index as usize)?;
        let packet = slot.packet.take();
        let next = std::mem::replace(&mut slot.next, self.free);
        self.free = index;
        self.slots[before as usize].next = next;
        if fifo.tail == index {
            fifo.tail = before;
        }
        packet
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

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
                        slab.push(&mut fifos[queue], Time::ZERO, number);
                        rings[queue].push_back(number);
                    }
                    2 => {
                        let popped = slab.pop(&mut fifos[queue]).map(|(packet, _)| packet);
                        prop_assert_eq!(popped, rings[queue].pop_front());
                    }
                    _ => {
                        let removed = slab.remove(&mut fifos[queue], position);
                        prop_assert_eq!(removed.map(|(p, _)| p), rings[queue].remove(position));
                    }
                }
                let held: Vec<u32> = slab.iter(fifos[queue]).copied().collect();
                prop_assert_eq!(&held, &rings[queue].iter().copied().collect::<Vec<_>>());
                prop_assert_eq!(slab.tail(fifos[queue]), rings[queue].back());
                let head = slab.head(fifos[queue]).map(|(packet, _)| packet);
                prop_assert_eq!(head, rings[queue].front());
            }
        }
    }
}
