//! Packets leave the ends of flows.

use sojourn_core::{Direction, Event, Observer, Packet, Queued, Time, Who};
use sojourn_host::Around;

use super::{Engine, RECEIVER, SENDER, Violation, end_of};
use crate::ends::{Ends, address};

impl<O: Observer> Engine<'_, O> {
    /// The agenda may call a sender at a time that the sender has put off since; then nothing
    /// happens.
    #[inline(always)]
    pub(super) fn wake_sender(&mut self, flow: usize, at_once: &mut u64) -> Result<(), Violation> {
        let place = self.end_place(flow, SENDER);
        self.late.pass(self.now, place.0);
        let Ends::Tcp { sender, .. } = &mut self.flows[flow].ends else {
            return self.wake_other_sender(flow, at_once);
        };
        if sender.next_wake() <= self.now {
            sender.on_wake(self.now, self.observer);
            self.drain_sender(flow);
        }
        let wake = self.flows[flow].ends.next_sender_wake();
        self.agenda.set_end(end_of(flow, SENDER), wake);
        Ok(())
    }

    #[inline(never)]
    fn wake_other_sender(&mut self, flow: usize, at_once: &mut u64) -> Result<(), Violation> {
        if let Some(wake) = self.wake_outside(flow, Direction::Forward) {
            return self.go_on_outside(flow, wake, at_once);
        }
        let now = self.now;
        // A source of datagrams depends on nothing but the time.
        let wake = loop {
            let Some(source) = self.flows[flow].ends.datagrams() else {
                if self.flows[flow].ends.next_sender_wake() <= now {
                    self.wake_other_end(flow, Direction::Forward);
                }
                break self.flows[flow].ends.next_sender_wake();
            };
            match &source.send(now) {
                Some(packet) => self.depart_aside(flow, packet),
                None => break source.next_send(),
            }
        };
        let place = self.end_place(flow, SENDER);
        self.agenda.set(place, wake);
        Ok(())
    }

    /// Wakes an outside end, if it is one and its time has come. Gives when it is to be woken again.
    #[inline(always)]
    fn wake_outside(&mut self, flow: usize, sends: Direction) -> Option<Time> {
        let Self { now, flows, contents, observer, .. } = self;
        let (end, _) = flows[flow].ends.outside(sends)?;
        let wake = end.next_wake();
        if wake > *now {
            return Some(wake);
        }
        end.on_wake(*now, &mut Around { contents, observer: *observer });
        let wake = self.drain_outside(flow, sends);
        self.look_at_phase(flow);
        Some(wake)
    }

    /// An outside sender, which is to be woken at `wake`, is woken in place as long as nothing else comes between: senders of
    /// calls are woken for each packet of a burst.
    #[inline(always)]
    fn go_on_outside(
        &mut self,
        flow: usize,
        mut wake: Time,
        at_once: &mut u64,
    ) -> Result<(), Violation> {
        let place = self.end_place(flow, SENDER);
        loop {
            self.agenda.set(place, wake);
            let (at, next) = self.agenda.first();
            if next != place || at >= self.goes_on_before {
                return Ok(());
            }
            self.advance(at, at_once)?;
            self.late.pass(at, place.0);
            let Self { now, flows, contents, observer, .. } = self;
            let Some((end, _)) = flows[flow].ends.outside(Direction::Forward) else {
                return Ok(());
            };
            end.on_wake(*now, &mut Around { contents, observer: *observer });
            wake = self.drain_outside(flow, Direction::Forward);
            self.look_at_phase(flow);
        }
    }

    /// Sends everything that an outside end sends now. Gives when the end is to be woken.
    #[inline(always)]
    pub(super) fn drain_outside(&mut self, flow: usize, sends: Direction) -> Time {
        loop {
            let Self { now, flows, contents, observer, .. } = self;
            let Some((end, ends)) = flows[flow].ends.outside(sends) else { return Time::NEVER };
            // Used inside the `Option` in which it was made, as in `drain_other_end`.
            let next = &mut end.poll_transmit(*now, &mut Around { contents, observer: *observer });
            let Some(packet) = next else { return end.next_wake() };
            address(packet, *now, sends, ends);
            self.depart_aside(flow, packet);
            if let Some((end, _)) = self.flows[flow].ends.outside(sends)
                && let Some(wake) = end.rests_until()
            {
                debug_assert!(wake > self.now, "it rests");
                return wake;
            }
        }
    }

    pub(super) fn wake_receiver(&mut self, flow: usize) {
        let place = self.end_place(flow, RECEIVER);
        self.late.pass(self.now, place.0);
        match &mut self.flows[flow].ends {
            Ends::Tcp { receiver, .. } => {
                receiver.on_wake(self.now, self.observer);
                if let Some(answer) = &receiver.poll_transmit(self.now) {
                    self.depart_aside(flow, answer);
                }
            }
            Ends::Other(_) => {
                if let Some(wake) = self.wake_outside(flow, Direction::Reverse) {
                    self.agenda.set(place, wake);
                    return;
                }
                self.wake_other_end(flow, Direction::Reverse);
            }
        }
        let wake = self.flows[flow].ends.next_receiver_wake();
        self.agenda.set_end(end_of(flow, RECEIVER), wake);
    }

    /// Wakes the end that sends in that direction, of a flow that is no lone TCP connection.
    #[inline(never)]
    pub(super) fn wake_other_end(&mut self, flow: usize, sends: Direction) {
        let (contents, observer) = (&mut self.contents, &mut *self.observer);
        if let Ends::Other(other) = &mut self.flows[flow].ends {
            let first = &mut other.on_wake(self.now, sends, contents, observer);
            self.drain_other_end(flow, sends, first);
            self.look_at_phase(flow);
        }
    }

    /// Sends `first`, and what the end sends after it. Packets are used inside the `Option` in which
    /// they were made; taking them out would copy them again.
    pub(super) fn drain_other_end(
        &mut self,
        flow: usize,
        sends: Direction,
        first: &mut Option<Packet>,
    ) {
        let Some(packet) = first else { return };
        self.depart_aside(flow, packet);
        loop {
            let (contents, observer) = (&mut self.contents, &mut *self.observer);
            let Ends::Other(other) = &mut self.flows[flow].ends else { return };
            let next = &mut other.poll_more(self.now, sends, contents, observer);
            let Some(packet) = next else { return };
            self.depart_aside(flow, packet);
        }
    }

    /// Sends everything that a TCP sender may send now.
    #[inline]
    pub(super) fn drain_sender(&mut self, flow: usize) {
        // Used inside the `Option` in which it was made; taking it out would copy each packet
        // again.
        while let Ends::Tcp { sender, .. } = &mut self.flows[flow].ends
            && let Some(packet) = &sender.poll_transmit(self.now)
        {
            self.depart(flow, packet);
        }
    }

    #[inline(always)]
    pub(super) fn reschedule_sender(&mut self, flow: usize) {
        let ends = &self.flows[flow].ends;
        let end = end_of(flow, SENDER);
        // Most wakes are put off, so what the next one is need not be known.
        if self.agenda.is_sooner(end, ends.least_sender_wake()) {
            let wake = ends.next_sender_wake();
            self.agenda.set_end_if_sooner(end, wake);
        }
    }

    /// [`Engine::depart`] out of line: only where data leave does it pay to have it inlined.
    #[inline(never)]
    pub(super) fn depart_aside(&mut self, flow: usize, packet: &Packet) {
        self.depart(flow, packet);
    }

    /// A packet leaves its end.
    #[inline(always)]
    pub(super) fn depart(&mut self, flow: usize, packet: &Packet) {
        self.sent += u64::from(packet.wire_len());
        let who = Who::Flow(packet.flow);
        self.observer.record(self.now, who, &Event::Sent { packet });
        let entry = self.entries[flow][packet.direction as usize];
        self.offer(entry as usize, packet);
    }

    /// The flow's own propagation of the packet begins at `from`.
    #[inline(never)]
    pub(super) fn propagate(&mut self, packet: &Packet, from: Time) {
        let index = packet.flow.0 as usize;
        let flow = &mut self.flows[index];
        let way = flow.way_mut(packet.direction);
        let at = from + way.delay;
        let comes_first = at < way.pipe.next();
        way.pipe.insert(at, *packet);
        if comes_first {
            let place = self.pipe_place(index, packet.direction);
            self.agenda.set(place, at);
        }
    }
}
