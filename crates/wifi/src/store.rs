//! The packets that are in buffers, in frames and on the air. Each has a place of its own, so that only
//! its number is moved from one to the next. Packets that wait, or that come out, one after the other are chained: each
//! place has the number of the next.

use alloc::vec::Vec;

use sojourn_core::{Queued, Time};

use crate::port::Port;

/// Where a packet is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot(u32);

/// A packet that waits for a frame.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Released {
    pub(crate) slot: Slot,
    pub(crate) ip_len: u32,
    pub(crate) port: Port,
    pub(crate) order: u64,
    pub(crate) arrived: Time,
}

/// A packet that has come out, where it lies.
#[derive(Debug)]
pub(crate) struct Out<'a, P> {
    pub(crate) port: Port,
    pub(crate) packet: &'a mut P,
    /// When the next comes out; never if there is none.
    pub(crate) next: Time,
}

#[derive(Debug)]
pub(crate) struct Store<P> {
    places: Vec<Place<P>>,
    /// The first of the free places, which are chained, too.
    free: u32,
}

#[derive(Debug)]
struct Place<P> {
    packet: P,
    released: Released,
    /// When it comes out, if that is known.
    out: Time,
    /// The number of the next in its chain; without meaning for the last.
    next: u32,
}

/// Packets of a store, first in, first out. A packet is in one chain at most.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chain {
    first: u32,
    last: u32,
}

/// No place has this number.
const NONE: u32 = u32::MAX;

impl Chain {
    pub(crate) const EMPTY: Self = Self { first: NONE, last: NONE };

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.first == NONE
    }
}

impl<P: Queued + Copy> Store<P> {
    pub(crate) const fn new() -> Self {
        Self { places: Vec::new(), free: NONE }
    }

    /// Each field is written where it stays: a packet that enters is copied once.
    #[inline(always)]
    pub(crate) fn put(&mut self, packet: &P, port: Port, order: u64, arrived: Time) -> Slot {
        let slot = Slot(self.free);
        let Some(place) = self.places.get_mut(self.free as usize) else {
            return self.grow(packet, port, order, arrived);
        };
        self.free = place.next;
        place.packet = *packet;
        place.released = Released { slot, ip_len: packet.ip_len(), port, order, arrived };
        slot
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self, packet: &P, port: Port, order: u64, arrived: Time) -> Slot {
        let slot = Slot(self.places.len() as u32);
        let released = Released { slot, ip_len: packet.ip_len(), port, order, arrived };
        self.places.push(Place { packet: *packet, released, out: Time::NEVER, next: NONE });
        slot
    }

    #[inline]
    pub(crate) fn at(&self, slot: Slot) -> &P {
        &self.places[slot.0 as usize].packet
    }

    #[inline]
    pub(crate) fn at_mut(&mut self, slot: Slot) -> &mut P {
        &mut self.places[slot.0 as usize].packet
    }

    /// The packet leaves its place, in which it can be read until another one is put there.
    #[inline]
    pub(crate) fn vacate(&mut self, slot: Slot) -> &mut P {
        let place = &mut self.places[slot.0 as usize];
        place.next = self.free;
        self.free = slot.0;
        &mut place.packet
    }

    /// The packet is the last of `chain` from now on.
    #[inline]
    pub(crate) fn append(&mut self, chain: &mut Chain, slot: Slot) {
        if chain.is_empty() {
            chain.first = slot.0;
        } else {
            self.places[chain.last as usize].next = slot.0;
        }
        chain.last = slot.0;
    }

    /// To append packets that come out to `chain`, one after the other.
    #[inline]
    pub(crate) fn appender<'a>(&'a mut self, chain: &'a mut Chain) -> Appender<'a, P> {
        Appender { places: &mut self.places, ends: *chain, chain }
    }

    /// The same, and its number in the order is another one.
    #[inline]
    pub(crate) fn append_numbered(&mut self, chain: &mut Chain, slot: Slot, order: u64) {
        self.places[slot.0 as usize].released.order = order;
        self.append(chain, slot);
    }

    #[inline]
    pub(crate) fn released(&self, slot: Slot) -> &Released {
        &self.places[slot.0 as usize].released
    }

    #[inline]
    pub(crate) fn first(&self, chain: &Chain) -> Option<&Released> {
        self.places.get(chain.first as usize).map(|place| &place.released)
    }

    /// The first with its packet.
    #[inline]
    pub(crate) fn front(&self, chain: &Chain) -> Option<(&Released, &P)> {
        let place = self.places.get(chain.first as usize)?;
        Some((&place.released, &place.packet))
    }

    /// When the first comes out; never without one.
    #[inline]
    pub(crate) fn next_out(&self, chain: &Chain) -> Time {
        self.places.get(chain.first as usize).map_or(Time::NEVER, |place| place.out)
    }

    /// Takes the first out of `chain`, if it is one that `may`. It stays in its place.
    #[inline]
    pub(crate) fn pop_if(
        &mut self,
        chain: &mut Chain,
        may: impl FnOnce(&Released) -> bool,
    ) -> Option<(Released, &P)> {
        let place = self.places.get(chain.first as usize)?;
        if !may(&place.released) {
            return None;
        }
        chain.first = if chain.first == chain.last { NONE } else { place.next };
        Some((place.released, &place.packet))
    }

    #[inline]
    pub(crate) fn pop(&mut self, chain: &mut Chain) -> Option<Released> {
        self.pop_if(chain, |_| true).map(|(released, _)| released)
    }

    /// Takes the first out of `chain` and of its place, if its port is one that `may`. It can be read until another one is
    /// put there.
    #[inline(always)]
    pub(crate) fn come_out_if(
        &mut self,
        chain: &mut Chain,
        may: impl FnOnce(Port) -> bool,
    ) -> Option<Out<'_, P>> {
        let first = chain.first;
        let place = self.places.get_mut(first as usize)?;
        let port = place.released.port;
        if !may(port) {
            return None;
        }
        let second = core::mem::replace(&mut place.next, self.free);
        self.free = first;
        chain.first = if first == chain.last { NONE } else { second };
        let next = self.next_out(chain);
        Some(Out { port, packet: &mut self.places[first as usize].packet, next })
    }
}

/// Appends packets that come out to a chain.
pub(crate) struct Appender<'a, P> {
    places: &'a mut [Place<P>],
    /// The ends of `chain`, which are written back when all are appended.
    ends: Chain,
    chain: &'a mut Chain,
}

impl<P> Appender<'_, P> {
    /// The packet is the last from now on, and comes out at `out`.
    #[inline]
    pub(crate) fn append(&mut self, slot: Slot, out: Time) {
        self.places[slot.0 as usize].out = out;
        if self.ends.is_empty() {
            self.ends.first = slot.0;
        } else {
            self.places[self.ends.last as usize].next = slot.0;
        }
        self.ends.last = slot.0;
    }
}

impl<P> Drop for Appender<'_, P> {
    #[inline]
    fn drop(&mut self) {
        *self.chain = self.ends;
    }
}
