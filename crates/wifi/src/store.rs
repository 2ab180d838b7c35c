//! The packets that are in buffers, in frames and on the air. Each has a place of its own, so that only
//! its number is moved from one to the next.

use alloc::vec::Vec;

/// Where a packet is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot(u32);

#[derive(Debug)]
pub(crate) struct Store<P> {
    packets: Vec<P>,
    free: Vec<u32>,
}

impl<P: Copy> Store<P> {
    pub(crate) const fn new() -> Self {
        Self { packets: Vec::new(), free: Vec::new() }
    }

    #[inline]
    pub(crate) fn put(&mut self, packet: &P) -> Slot {
        if let Some(index) = self.free.pop()
            && let Some(place) = self.packets.get_mut(index as usize)
        {
            *place = *packet;
            return Slot(index);
        }
        self.grow(packet)
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self, packet: &P) -> Slot {
        self.packets.push(*packet);
        Slot(self.packets.len() as u32 - 1)
    }

    #[inline]
    pub(crate) fn at(&self, slot: Slot) -> &P {
        &self.packets[slot.0 as usize]
    }

    /// The packet leaves its place, in which it can be read until another one is put there.
    #[inline]
    pub(crate) fn vacate(&mut self, slot: Slot) -> &mut P {
        self.free.push(slot.0);
        &mut self.packets[slot.0 as usize]
    }
}
