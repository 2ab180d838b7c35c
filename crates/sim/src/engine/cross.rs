//! Packets cross links and other carriers, one after another, to the end of their way.

use sojourn_core::{Direction, Observer, Packet, PortId, Time};
use sojourn_wire::{Exit, Turn, Wire};

use super::way::NO_PORT;
use super::{Engine, Violation};
use crate::agenda::{Agenda, Place};

impl<O: Observer> Engine<'_, O> {
    #[inline(always)]
    pub(super) fn offer(&mut self, link: usize, packet: &Packet) {
        let Some(state) = self.links.get_mut(link) else {
            return self.offer_to_carrier(link, packet);
        };
        if state.exit() >= Exit::Late {
            self.offer_slowly(link, packet);
            return;
        }
        let place = Place(link as u32);
        enter(state, place, self.now, packet, &mut self.agenda, self.observer);
    }

    /// Offers a packet to a link after which a flow's own propagation may begin, or that works late in other ways, too.
    #[inline(never)]
    pub(super) fn offer_slowly(&mut self, link: usize, packet: &Packet) {
        if self.links[link].exit() == Exit::Late {
            return self.offer_late(link, packet);
        }
        self.settle(link);
        self.links[link].offer(self.now, packet, self.observer);
        self.settle(link);
        let wake = self.links[link].next_wake();
        self.agenda.set(Place(link as u32), wake);
    }

    /// What has crossed `link` enters the next link, or reaches its end.
    #[inline]
    pub(super) fn wake_link(&mut self, link: usize) {
        let state = &mut self.links[link];
        if state.exit() >= Exit::Late || state.under_way().is_empty() {
            self.wake_link_slowly(link);
            return;
        }
        let packet = &state.under_way().pop();
        let mut wake = state.under_way().next();
        if wake.is_never() {
            state.settle(self.now, self.observer);
            wake = state.next_wake();
        }
        self.agenda.set(Place(link as u32), wake);
        if state.exit() == Exit::Ends {
            self.arrive(packet);
        } else {
            self.pass_on(packet);
        }
    }

    /// Wakes a link that may have to be pulled.
    #[inline(never)]
    pub(super) fn wake_link_slowly(&mut self, link: usize) {
        if self.links[link].exit() == Exit::Late {
            return self.wake_late_link(link);
        }
        let arrived = self.links[link].under_way().pop_due(self.now);
        self.settle(link);
        let wake = self.links[link].next_wake();
        self.agenda.set(Place(link as u32), wake);
        if let Some(packet) = &arrived {
            self.pass_on(packet);
        }
    }

    /// Pulls everything due by now.
    pub(super) fn settle(&mut self, link: usize) {
        while self.links[link].due() <= self.now {
            self.pull(link);
        }
    }

    pub(super) fn pull(&mut self, link: usize) {
        let state = &mut self.links[link];
        state.pull(self.observer);
        if state.exit() == Exit::OwnDelays {
            self.hand_on(link);
        }
    }

    /// If `link` has just sent a packet whose flow has a propagation of its own, passes the packet
    /// on to that.
    #[inline(never)]
    pub(super) fn hand_on(&mut self, link: usize) {
        let pipe = self.links[link].under_way();
        let Some((at, packet)) = pipe.back().copied() else {
            return;
        };
        let flow = &self.flows[packet.flow.0 as usize];
        let way = flow.way(packet.direction);
        if usize::from(packet.hop) == way.links.len() && !way.delay.is_zero() {
            pipe.withdraw();
            self.propagate(&packet, at);
        } else {
            pipe.sort_last();
        }
    }

    /// Offers a packet to a port that is no link, or to [`NO_PORT`]: then only its flow's own propagation is left.
    #[cold]
    #[inline(never)]
    pub(super) fn offer_to_carrier(&mut self, port: usize, packet: &Packet) {
        if port == NO_PORT as usize {
            return self.propagate(packet, self.now);
        }
        let carrier = self.carrier_of[port - self.links.len()] as usize;
        let port = PortId(port as u16);
        if !self.late.is_nothing() {
            self.take_late(carrier, self.moment());
        }
        let wake = self.carriers[carrier].take_in(self.now, port, packet, self.observer);
        self.reschedule_carrier(carrier, wake);
    }

    /// Packets that come out at one moment are taken at that moment, one for each wake.
    #[inline(always)]
    pub(super) fn reschedule_carrier(&mut self, carrier: usize, wake: Time) {
        let wake = self.or_late_arrival(carrier, wake).max(self.now);
        // Most packets that enter change nothing.
        if self.carrier_wakes[carrier] != wake {
            self.set_carrier_wake(carrier, wake);
        }
    }

    #[inline]
    fn set_carrier_wake(&mut self, carrier: usize, wake: Time) {
        self.carrier_wakes[carrier] = wake;
        self.agenda.set(Place((self.links.len() + carrier) as u32), wake);
    }

    /// Passes on what has crossed `carrier`, one packet after the other as long as nothing else comes between.
    #[inline(never)]
    pub(super) fn wake_carrier(
        &mut self,
        carrier: usize,
        at_once: &mut u64,
    ) -> Result<(), Violation> {
        let own = Place((self.links.len() + carrier) as u32);
        loop {
            self.turn_carrier(carrier)?;
            let (at, next) = self.agenda.first();
            if next != own || at >= self.goes_on_before {
                return Ok(());
            }
            self.advance(at, at_once)?;
        }
    }

    /// The carrier acts, or passes on a packet.
    #[inline(always)]
    fn turn_carrier(&mut self, carrier: usize) -> Result<(), Violation> {
        let now = self.now;
        if !self.late.is_nothing() && self.carriers[carrier].heeds_from() <= now {
            self.take_late(carrier, self.moment());
        }
        let Turn { delivered, port, wake } = &self.carriers[carrier].turn(now, self.observer);
        let Some(packet) = delivered else {
            let wake = self.pass_ahead(carrier, *wake);
            self.reschedule_carrier(carrier, wake);
            return Ok(());
        };
        self.reschedule_carrier(carrier, *wake);
        let way = self.flows[packet.flow.index()].way(packet.direction);
        let passed = usize::from(packet.hop);
        let next = match way.links.get(passed.wrapping_sub(1)..) {
            Some([before, next @ ..]) if before == port => next.first().copied(),
            _ => return Err(Violation::Route { at: now, flow: packet.flow, port: *port }),
        };
        if next.is_none() && !way.delay.is_zero() {
            self.propagate(packet, now);
        } else {
            self.pass_on_to(next, packet);
        }
        Ok(())
    }

    /// A packet enters the next link of its way, or reaches its end.
    #[inline]
    pub(super) fn pass_on(&mut self, packet: &Packet) {
        let flow = &self.flows[packet.flow.0 as usize];
        let way = flow.way(packet.direction);
        match way.links.get(usize::from(packet.hop)).copied() {
            Some(port) if port.index() >= self.links.len() => {
                self.offer_to_carrier(port.index(), packet);
            }
            next => self.pass_on_to(next, packet),
        }
    }

    /// The same, where the next link is known.
    #[inline(never)]
    fn pass_on_to(&mut self, next: Option<PortId>, packet: &Packet) {
        match next {
            Some(next) => self.offer(next.index(), packet),
            None => self.arrive(packet),
        }
    }

    /// A packet that has crossed a flow's own propagation reaches its end. The place after the pipes
    /// of all flows is that of the next change of the world.
    #[inline(never)]
    pub(super) fn deliver(&mut self, flow: usize, direction: Direction) {
        let Some(state) = self.flows.get_mut(flow) else {
            return self.change_world();
        };
        let way = state.way_mut(direction);
        let Some(packet) = way.pipe.pop_due(self.now) else {
            return;
        };
        let next = way.pipe.next();
        let place = self.pipe_place(flow, direction);
        self.agenda.set(place, next);
        self.arrive(&packet);
    }

    /// Lets all links do what was due before `time`.
    pub(super) fn settle_before(&mut self, time: Time) {
        for link in 0..self.links.len() {
            while self.links[link].due() < time {
                self.pull(link);
            }
        }
    }

    /// The same, but in order of time over all links.
    pub(super) fn settle_in_order_before(&mut self, time: Time) {
        let first_due =
            |links: &[Wire<Packet>]| (0..links.len()).min_by_key(|link| links[*link].due());
        while let Some(link) = first_due(&self.links)
            && self.links[link].due() < time
        {
            self.pull(link);
        }
    }
}

/// A packet enters a link that does not work late.
#[inline(always)]
pub(super) fn enter<O: Observer>(
    link: &mut Wire<Packet>,
    place: Place,
    now: Time,
    packet: &Packet,
    agenda: &mut Agenda,
    observer: &mut O,
) {
    // If something is under way, its arrival comes first and the link's wake stays.
    let is_asleep = link.under_way().is_empty();
    link.cross(now, packet, observer);
    if is_asleep {
        agenda.set(place, link.next_wake());
    }
}

/// [`enter`], where most packets find the link idle. The others enter in a function of their own, so that nothing is saved for
/// what else may happen.
#[inline(always)]
pub(super) fn enter_idle<O: Observer>(
    link: &mut Wire<Packet>,
    place: Place,
    now: Time,
    packet: &Packet,
    agenda: &mut Agenda,
    observer: &mut O,
) {
    let is_asleep = link.under_way().is_empty();
    if !link.cross_idle(now, packet, observer) {
        enter_busy(link, place, now, packet, agenda, observer);
    } else if is_asleep {
        agenda.set(place, link.next_wake());
    }
}

#[inline(never)]
fn enter_busy<O: Observer>(
    link: &mut Wire<Packet>,
    place: Place,
    now: Time,
    packet: &Packet,
    agenda: &mut Agenda,
    observer: &mut O,
) {
    enter(link, place, now, packet, agenda, observer);
}
