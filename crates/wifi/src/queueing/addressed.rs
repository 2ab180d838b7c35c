//! A packet with its port, so that disciplines carry both together.

use sojourn_core::{DropReason, Ecn, FlowKey, PureAck, Queued, Time};
use sojourn_qdisc::{Reshape, Sink};

use crate::port::{Listener, Port};
use crate::store::{Slot, Store};

#[derive(Clone, Copy, Debug)]
pub(crate) struct Addressed<P> {
    pub(crate) packet: P,
    pub(crate) port: Port,
    /// Grows with every arrival.
    pub(crate) order: u64,
    pub(crate) arrived: Time,
}

/// A packet that has just come, before it is copied into a queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival<'a, P> {
    pub(crate) packet: &'a P,
    pub(crate) port: Port,
    pub(crate) order: u64,
    pub(crate) now: Time,
}

impl<P: Queued + Copy> Arrival<'_, P> {
    /// The station at the other end, as the queue of the sender counts stations.
    #[inline]
    pub(crate) fn station(&self) -> usize {
        if self.port.is_up() { 0 } else { self.port.station() }
    }

    /// Leaves the disciplines, or passes them by.
    #[inline]
    pub(crate) fn put_into(&self, store: &mut Store<P>) -> Slot {
        store.put(self.packet, self.port, self.order, self.now)
    }

    #[inline]
    pub(crate) fn addressed(&self) -> Addressed<P> {
        let Self { packet, port, order, now } = *self;
        Addressed { packet: *packet, port, order, arrived: now }
    }
}

impl<P: Queued + Copy> Addressed<P> {
    /// As it came.
    #[inline]
    pub(crate) fn arrival(&self) -> Arrival<'_, P> {
        let Self { packet, port, order, arrived } = self;
        Arrival { packet, port: *port, order: *order, now: *arrived }
    }
}

impl<P: Queued> Queued for Addressed<P> {
    #[inline]
    fn wire_len(&self) -> u32 {
        self.packet.wire_len()
    }

    fn ip_len(&self) -> u32 {
        self.packet.ip_len()
    }

    fn segments(&self) -> u32 {
        self.packet.segments()
    }

    fn truesize(&self) -> u32 {
        self.packet.truesize()
    }

    fn flow_key(&self) -> FlowKey {
        self.packet.flow_key()
    }

    fn ecn(&self) -> Ecn {
        self.packet.ecn()
    }

    fn mark_ce(&mut self) {
        self.packet.mark_ce();
    }

    fn dscp(&self) -> u8 {
        self.packet.dscp()
    }

    fn pure_ack(&self) -> Option<PureAck> {
        self.packet.pure_ack()
    }
}

impl<P: Reshape> Reshape for Addressed<P> {
    fn split_first(&mut self) -> Option<Self> {
        let packet = self.packet.split_first()?;
        Some(Self { packet, ..*self })
    }

    fn wash(&mut self) {
        self.packet.wash();
    }
}

/// Passes on to a listener what a discipline drops and marks.
pub(crate) struct PassedOn<'a, L>(pub(crate) &'a mut L);

impl<P, L: Listener<P>> Sink<Addressed<P>> for PassedOn<'_, L> {
    fn dropped(&mut self, now: Time, packet: Addressed<P>, why: DropReason) {
        self.0.dropped(now, packet.port, &packet.packet, why);
    }

    fn marked(&mut self, now: Time, packet: &Addressed<P>) {
        self.0.marked(now, packet.port, &packet.packet);
    }
}
