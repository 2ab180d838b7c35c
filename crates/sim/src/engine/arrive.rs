//! Packets reach the ends of flows, which may answer at once.

use sojourn_core::{Direction, Event, Observer, Packet, Queued, Who};
use sojourn_host::Around;

use super::{Engine, RECEIVER, SENDER, end_of, release};
use crate::ends::{Ends, address};

impl<O: Observer> Engine<'_, O> {
    #[inline(always)]
    pub(super) fn arrive(&mut self, packet: &Packet) {
        let now = self.now;
        let flow = packet.flow.0 as usize;
        self.arrived += u64::from(packet.wire_len());
        let who = Who::Flow(packet.flow);
        self.observer.record(now, who, &Event::Arrived { packet });
        match &mut self.flows[flow].ends {
            Ends::Tcp { sender, receiver } => match packet.direction {
                Direction::Forward => {
                    receiver.on_packet(now, packet, self.observer);
                    let answer = &receiver.poll_transmit(now);
                    let end = end_of(flow, RECEIVER);
                    if self.agenda.is_sooner(end, receiver.least_wake()) {
                        self.agenda.set_end_if_sooner(end, receiver.next_wake());
                    }
                    if let Some(answer) = answer {
                        self.depart_aside(flow, answer);
                    }
                }
                Direction::Reverse => {
                    sender.on_packet(now, packet, self.observer);
                    self.drain_sender(flow);
                    self.reschedule_sender(flow);
                }
            },
            Ends::Other(_) => self.arrive_at_other_end(flow, packet),
        }
    }

    #[inline(always)]
    fn arrive_at_other_end(&mut self, flow: usize, packet: &Packet) {
        match self.flows[flow].ends.outside(packet.direction.opposite()) {
            Some(_) => self.arrive_outside(flow, packet),
            None => self.arrive_inside(flow, packet),
        }
    }

    /// A packet reaches an outside end.
    #[inline(never)]
    fn arrive_outside(&mut self, flow: usize, packet: &Packet) {
        let sends = packet.direction.opposite();
        let Self { now, flows, contents, observer, .. } = self;
        let Some((end, ends)) = flows[flow].ends.outside(sends) else { return };
        let around = &mut Around { contents, observer: *observer };
        end.on_packet(*now, packet, around);
        let answer = &mut end.poll_transmit(*now, around);
        release(contents, packet);
        let wake = match answer {
            None => end.next_wake(),
            Some(answer) => {
                address(answer, *now, sends, ends);
                self.depart_aside(flow, answer);
                self.drain_outside(flow, sends)
            }
        };
        self.look_at_phase(flow);
        self.agenda.set_end_if_sooner(end_of(flow, end_that_sends(sends)), wake.max(self.now));
    }

    /// A packet reaches an end that is neither of a lone TCP connection nor outside.
    #[inline(never)]
    fn arrive_inside(&mut self, flow: usize, packet: &Packet) {
        let (contents, observer) = (&mut self.contents, &mut *self.observer);
        let Ends::Other(other) = &mut self.flows[flow].ends else { return };
        let first = &mut other.on_packet(self.now, packet, contents, observer);
        release(&mut self.contents, packet);
        let sends = packet.direction.opposite();
        self.drain_other_end(flow, sends, first);
        self.look_at_phase(flow);
        let wake = match sends {
            Direction::Forward => self.flows[flow].ends.next_sender_wake(),
            Direction::Reverse => self.flows[flow].ends.next_receiver_wake(),
        };
        self.agenda.set_end_if_sooner(end_of(flow, end_that_sends(sends)), wake.max(self.now));
    }
}

/// The end whose packets go in this direction.
fn end_that_sends(sends: Direction) -> u32 {
    match sends {
        Direction::Forward => SENDER,
        Direction::Reverse => RECEIVER,
    }
}
