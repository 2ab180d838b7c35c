//! The medium as a carrier: a port for each station and direction.
//!
//! A packet waits at its port until it is put into a frame. It is under way until its frame has
//! been received in order, and lost if its frame was given up. Packets that represent several
//! segments are cut before they enter, as in mac80211 for drivers without offload.

mod canonical;
mod config;
mod ledger;
#[cfg(test)]
mod tests;

pub use config::RadioConfig;

use alloc::string::String;
use alloc::vec::Vec;

use sojourn_core::{
    AirSample, DropReason, Event, Observer, PortId, QueueSample, Span, StreamAddress, Time, Who,
};
use sojourn_wire::{Books, Carried, Carrier, Turn};

use crate::medium::{AirCounts, Entry, LinkCounts, Medium};
use crate::port::{Listener, Port};
use ledger::Ledger;

pub struct Radio<P: Carried> {
    first: PortId,
    medium: Medium<P>,
    /// By port.
    ledgers: Vec<Ledger>,
    /// Dropped or lost, with contents.
    lost: Vec<P>,
    /// Whether no packet to a station goes into its buffer at once.
    offers_down: bool,
}

impl<P: Carried> Radio<P> {
    fn new(config: &RadioConfig, first: PortId, address: StreamAddress) -> Self {
        let medium = Medium::new(config.cell().clone(), address, config.entity(address))
            .expect("the configuration is checked");
        Self {
            first,
            ledgers: alloc::vec![Ledger::default(); 2 * medium.stations()],
            offers_down: !medium.passes_down(),
            medium,
            lost: Vec::new(),
        }
    }

    /// What was on the air.
    pub fn air(&self) -> AirCounts {
        self.medium.air()
    }

    /// What was on the air for one port.
    pub fn counts(&self, port: PortId) -> LinkCounts {
        self.medium.counts(self.own(port))
    }

    /// Takes a packet of one segment in. Gives when the radio must be woken then.
    #[inline(never)]
    fn enter(&mut self, now: Time, port: PortId, packet: &P, observer: &mut dyn Observer) -> Time {
        let own = self.own(port);
        match self.medium.pass(now, own, packet) {
            Entry::Passed => {}
            Entry::Waits => return self.enter_above(now, port, packet, observer),
            Entry::Offered => return self.enter_slowly(now, port, packet, observer),
        }
        let wake = self.medium.next_wake();
        let ledger = &mut self.ledgers[usize::from(own.index())];
        ledger.enter(packet.wire_len());
        observer.enqueued(now, port, packet.headers(), ledger.waiting());
        wake
    }

    /// The same where there is no room above the buffer either.
    #[inline(never)]
    fn enter_above(
        &mut self,
        now: Time,
        port: PortId,
        packet: &P,
        observer: &mut dyn Observer,
    ) -> Time {
        let own = self.own(port);
        let (medium, notes) = &mut self.noted(observer);
        medium.wait_above(now, own, packet, notes);
        medium.next_wake()
    }

    /// The same for a packet to a station that does not go into its buffer at once.
    #[inline(never)]
    fn enter_managed(
        &mut self,
        now: Time,
        port: PortId,
        packet: &P,
        observer: &mut dyn Observer,
    ) -> Time {
        let own = self.own(port);
        let (medium, notes) = &mut self.noted(&mut *observer);
        if !medium.offer_managed(now, own, packet, notes) {
            return self.enter_slowly(now, port, packet, observer);
        }
        medium.next_wake()
    }

    /// The same for a packet after which something may happen sooner.
    #[inline(never)]
    fn enter_slowly(
        &mut self,
        now: Time,
        port: PortId,
        packet: &P,
        observer: &mut dyn Observer,
    ) -> Time {
        let own = self.own(port);
        let (medium, notes) = &mut self.noted(observer);
        medium.offer(now, own, packet, notes);
        medium.next_wake()
    }

    #[inline(never)]
    fn act(&mut self, now: Time, observer: &mut dyn Observer) {
        let (medium, notes) = &mut self.noted(observer);
        medium.act(now, notes);
    }

    /// The medium, and what records what happens in it.
    #[inline(always)]
    fn noted<'a>(
        &'a mut self,
        observer: &'a mut dyn Observer,
    ) -> (&'a mut Medium<P>, Notes<'a, P>) {
        let Self { first, medium, ledgers, lost, .. } = self;
        (medium, Notes { first: *first, ledgers, lost, observer })
    }

    fn air_sample(&self, port: Port) -> AirSample {
        let LinkCounts { airtime, ppdus, mpdus, failed, attempts, collided, .. } =
            self.medium.counts(port);
        let (cell, station) = (self.first, port.station() as u16);
        AirSample { cell, station, airtime, ppdus, mpdus, failed, attempts, collided }
    }

    fn own(&self, port: PortId) -> Port {
        Port::new(port.0 - self.first.0)
    }

    fn ledger(&self, port: PortId) -> &Ledger {
        &self.ledgers[port.index() - self.first.index()]
    }
}

/// Records what happens to packets, and reports it to the observer.
struct Notes<'a, P> {
    first: PortId,
    ledgers: &'a mut [Ledger],
    lost: &'a mut Vec<P>,
    observer: &'a mut dyn Observer,
}

impl<P: Carried> Notes<'_, P> {
    fn port(&self, port: Port) -> PortId {
        PortId(self.first.0 + port.index())
    }

    fn gone(&mut self, now: Time, port: Port, packet: &P, why: DropReason) {
        self.observer.dropped(now, self.port(port), packet.headers(), why);
        if packet.has_contents() {
            self.lost.push(*packet);
        }
    }
}

impl<P: Carried> Listener<P> for Notes<'_, P> {
    fn entered(&mut self, now: Time, port: Port, packet: &P) {
        let ledger = &mut self.ledgers[usize::from(port.index())];
        ledger.enter(packet.wire_len());
        let backlog = ledger.waiting();
        self.observer.enqueued(now, self.port(port), packet.headers(), backlog);
    }

    fn refused(&mut self, now: Time, port: Port, packet: &P, why: DropReason) {
        self.ledgers[usize::from(port.index())].refuse(packet.wire_len());
        self.gone(now, port, packet, why);
    }

    fn framed(&mut self, now: Time, port: Port, packet: &P, waited: Span) {
        self.observer.dequeued(now, self.port(port), packet.headers(), waited);
    }

    fn left(&mut self, port: Port, packets: u32, octets: u32) {
        self.ledgers[usize::from(port.index())].send(packets, octets);
    }

    fn marked(&mut self, now: Time, port: Port, packet: &P) {
        self.ledgers[usize::from(port.index())].marked += 1;
        let who = Who::Port(self.port(port));
        self.observer.record(now, who, &Event::Marked { packet: packet.headers() });
    }

    fn dropped(&mut self, now: Time, port: Port, packet: &P, why: DropReason) {
        self.ledgers[usize::from(port.index())].drop(packet.wire_len());
        self.gone(now, port, packet, why);
    }

    fn given_up(&mut self, now: Time, port: Port, packet: &P) {
        self.ledgers[usize::from(port.index())].lose(packet.wire_len());
        self.gone(now, port, packet, DropReason::Medium);
    }
}

impl<P: Carried> Carrier<P> for Radio<P> {
    fn offer(&mut self, now: Time, port: PortId, mut packet: P, observer: &mut dyn Observer) {
        if packet.segments() > 1 {
            while let Some(segment) = packet.split_first() {
                self.enter(now, port, &segment, observer);
            }
        }
        self.enter(now, port, &packet, observer);
    }

    fn put_in(&mut self, now: Time, port: PortId, packet: &P, observer: &mut dyn Observer) {
        self.take_in(now, port, packet, observer);
    }

    fn take_in(
        &mut self,
        now: Time,
        port: PortId,
        packet: &P,
        observer: &mut dyn Observer,
    ) -> Time {
        if packet.segments() == 1 {
            if self.offers_down && !self.own(port).is_up() {
                return self.enter_managed(now, port, packet, observer);
            }
            return self.enter(now, port, packet, observer);
        }
        self.offer(now, port, *packet, observer);
        self.next_wake()
    }

    fn turn(&mut self, now: Time, observer: &mut dyn Observer) -> Turn<P> {
        if self.medium.is_due(now) {
            self.act(now, observer);
        }
        let Some((port, packet, wake)) = self.medium.poll_in_place(now) else {
            return Turn { delivered: None, port: self.first, wake: self.next_wake() };
        };
        self.ledgers[usize::from(port.index())].deliver(packet.wire_len());
        packet.leave_port();
        let port = PortId(self.first.0 + port.index());
        Turn { delivered: Some(*packet), port, wake }
    }

    fn next_wake(&self) -> Time {
        self.medium.next_wake()
    }

    fn heeds_from(&self) -> Time {
        self.medium.heeds_from()
    }

    fn on_wake(&mut self, now: Time, observer: &mut dyn Observer) {
        if self.medium.is_due(now) {
            self.act(now, observer);
        }
    }

    fn poll_deliver(&mut self, now: Time) -> Option<(PortId, P)> {
        let (port, mut packet) = self.medium.poll_deliver(now)?;
        self.ledgers[usize::from(port.index())].deliver(packet.wire_len());
        packet.leave_port();
        Some((PortId(self.first.0 + port.index()), packet))
    }

    fn deliver_ahead(
        &mut self,
        before: Time,
        may: &dyn Fn(PortId) -> bool,
        take: &mut dyn FnMut(Time, PortId, &P),
    ) -> Time {
        let Self { first, medium, ledgers, .. } = self;
        let id = |port: Port| PortId(first.0 + port.index());
        // Packets of a frame have the same port, which is asked for once.
        let mut last = None;
        let may = |port| {
            if last != Some(port) {
                last = may(id(port)).then_some(port);
            }
            last.is_some()
        };
        medium.poll_ahead(before, may, |at, port, packet| {
            ledgers[usize::from(port.index())].deliver(packet.wire_len());
            packet.leave_port();
            take(at, id(port), packet);
        });
        medium.next_wake()
    }

    fn books(&self, port: PortId) -> Books {
        self.ledger(port).books()
    }

    fn sample(&self, now: Time, port: PortId) -> QueueSample {
        let (own, ledger) = (self.own(port), self.ledger(port));
        let LinkCounts { exchanges, collisions, .. } = self.medium.counts(own);
        let (rate, used) = (self.medium.mode(own).rate(), exchanges + collisions);
        // Time is counted as the bytes that could have been sent in it, so utilisation is the share of time for which
        // the medium is busy with what this port sends.
        let bytes_in = |time: Span| rate.as_bps() as f64 / 8.0 * time.as_secs_f64();
        let is_waiting = ledger.waiting() > 0;
        QueueSample {
            packets: ledger.waiting(),
            bytes: ledger.books().waiting,
            head_wait: if is_waiting { self.medium.oldest_at(now, own) } else { Span::ZERO },
            capacity: rate,
            medium_bytes: bytes_in(used) as u64,
            capacity_bytes: Some(bytes_in(now.since(Time::ZERO))),
            air: Some(self.air_sample(own)),
            ..ledger.sample()
        }
    }

    fn details(&self, port: PortId) -> Vec<(&'static str, u64)> {
        let (counts, air) = (self.medium.counts(self.own(port)), self.medium.air());
        alloc::vec![
            ("airtime_us", counts.airtime.as_micros()),
            ("exchanges_us", counts.exchanges.as_micros()),
            ("collisions_us", counts.collisions.as_micros()),
            ("attempts", counts.attempts),
            ("collided", counts.collided),
            ("ppdus", counts.ppdus),
            ("mpdus", counts.mpdus),
            ("mpdus_failed", counts.failed),
            ("cell_idle_us", air.idle.as_micros()),
            ("cell_exchanges_us", air.exchanges.as_micros()),
            ("cell_collisions_us", air.collisions.as_micros()),
        ]
    }

    fn take_lost(&mut self, take: &mut dyn FnMut(P)) {
        self.lost.drain(..).for_each(take);
    }

    fn check(&self, _: Time) -> Result<(), String> {
        self.medium.check()
    }
}
