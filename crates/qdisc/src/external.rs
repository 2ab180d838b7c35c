//! Disciplines from outside this crate.
//!
//! They queue tickets: what a discipline may know of a packet, without the packet itself. So a
//! discipline that is written once serves both simulated packets and real bytes.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::any::Any;
use core::fmt;

use sojourn_core::param::Style;
use sojourn_core::{
    DropReason, Ecn, FlowKey, Params, PureAck, Queued, Rate, SpecError, Stream, Time,
};

use crate::{Backlog, Dequeue, Enqueue, Qdisc, Sink};

/// A discipline, given by its parameters. A crate outside this one implements it to register a
/// discipline with [`external`](crate::external).
pub trait Discipline: Params + Send + Sync + 'static {
    type Queue: Qdisc<Ticket> + 'static;

    /// An empty queue. It draws its random numbers from `random`.
    fn build(&self, random: Stream) -> Self::Queue;

    /// Refuses a line that it can't stand in front of. `rate` is what packets with their Ethernet headers leave at; `None` if
    /// that varies, has no limit or is not known.
    ///
    /// # Errors
    /// What is wrong with the two together, and what is allowed.
    fn check_on(&self, rate: Option<Rate>) -> Result<(), SpecError> {
        let _ = rate;
        Ok(())
    }

    /// An empty queue in front of a line that [`Discipline::check_on`] accepts, for a discipline that must know its rate.
    fn build_on(&self, rate: Option<Rate>, random: Stream) -> Self::Queue {
        let _ = rate;
        self.build(random)
    }

    /// The rate that it holds packets back to, if it shapes.
    fn shaped_rate(&self) -> Option<Rate> {
        None
    }

    /// The same with what follows from the machine filled in, so that it is part of a run's name.
    #[must_use]
    fn complete(self) -> Self {
        self
    }
}

/// A discipline of another crate.
#[derive(Clone, Debug)]
pub struct External(Arc<dyn AnyDiscipline>);

impl External {
    pub(crate) fn new(discipline: impl Discipline) -> Self {
        Self(Arc::new(discipline.complete()))
    }

    pub(crate) fn name(&self) -> &'static str {
        self.0.name()
    }

    pub(crate) fn check(&self) -> Result<(), SpecError> {
        self.0.check()
    }

    pub(crate) fn shaped_rate(&self) -> Option<Rate> {
        self.0.shaped_rate()
    }

    pub(crate) fn check_on(&self, rate: Option<Rate>) -> Result<(), SpecError> {
        self.0.check_on(rate)
    }

    pub(crate) fn build<P: Queued>(&self, rate: Option<Rate>, random: Stream) -> Foreign<P> {
        Foreign { queue: self.0.build_on(rate, random), packets: Places::default() }
    }
}

impl PartialEq for External {
    fn eq(&self, other: &Self) -> bool {
        self.0.equals(other.0.as_any())
    }
}

impl fmt::Display for External {
    /// Its parameters, each after a blank.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.write(f)
    }
}

/// A [`Discipline`] whose type is not known here.
trait AnyDiscipline: fmt::Debug + Send + Sync {
    fn name(&self) -> &'static str;
    fn check(&self) -> Result<(), SpecError>;
    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result;
    fn shaped_rate(&self) -> Option<Rate>;
    fn check_on(&self, rate: Option<Rate>) -> Result<(), SpecError>;
    fn build_on(&self, rate: Option<Rate>, random: Stream) -> Box<dyn Qdisc<Ticket>>;
    fn as_any(&self) -> &dyn Any;
    fn equals(&self, other: &dyn Any) -> bool;
}

impl<D: Discipline> AnyDiscipline for D {
    fn name(&self) -> &'static str {
        D::NAME
    }

    fn check(&self) -> Result<(), SpecError> {
        Params::check(self)
    }

    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Params::write(self, Style::Blank, f)
    }

    fn shaped_rate(&self) -> Option<Rate> {
        Discipline::shaped_rate(self)
    }

    fn check_on(&self, rate: Option<Rate>) -> Result<(), SpecError> {
        Discipline::check_on(self, rate)
    }

    fn build_on(&self, rate: Option<Rate>, random: Stream) -> Box<dyn Qdisc<Ticket>> {
        Box::new(Discipline::build_on(self, rate, random))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn equals(&self, other: &dyn Any) -> bool {
        other.downcast_ref::<D>() == Some(self)
    }
}

/// Represents a packet in a discipline from outside. The discipline must give back each ticket that
/// it took exactly once: sent, refused or dropped.
#[derive(Clone, Copy, Debug)]
pub struct Ticket {
    place: u32,
    wire_len: u32,
    ip_len: u32,
    segments: u32,
    truesize: u32,
    flow_key: FlowKey,
    ecn: Ecn,
    dscp: u8,
    pure_ack: Option<PureAck>,
}

impl Queued for Ticket {
    fn wire_len(&self) -> u32 {
        self.wire_len
    }

    fn ip_len(&self) -> u32 {
        self.ip_len
    }

    fn segments(&self) -> u32 {
        self.segments
    }

    fn truesize(&self) -> u32 {
        self.truesize
    }

    fn flow_key(&self) -> FlowKey {
        self.flow_key
    }

    fn ecn(&self) -> Ecn {
        self.ecn
    }

    fn mark_ce(&mut self) {
        self.ecn = Ecn::Ce;
    }

    fn dscp(&self) -> u8 {
        self.dscp
    }

    fn pure_ack(&self) -> Option<PureAck> {
        self.pure_ack
    }
}

/// A discipline from outside, with the packets that its tickets represent.
pub struct Foreign<P> {
    queue: Box<dyn Qdisc<Ticket>>,
    packets: Places<P>,
}

struct Places<P> {
    places: Vec<Option<P>>,
    free: Vec<u32>,
}

impl<P> Default for Places<P> {
    fn default() -> Self {
        Self { places: Vec::new(), free: Vec::new() }
    }
}

impl<P: Queued> Places<P> {
    fn put(&mut self, packet: P) -> Ticket {
        let place = self.free.pop().unwrap_or_else(|| {
            self.places.push(None);
            self.places.len() as u32 - 1
        });
        let ticket = Ticket {
            place,
            wire_len: packet.wire_len(),
            ip_len: packet.ip_len(),
            segments: packet.segments(),
            truesize: packet.truesize(),
            flow_key: packet.flow_key(),
            ecn: packet.ecn(),
            dscp: packet.dscp(),
            pure_ack: packet.pure_ack(),
        };
        self.places[place as usize] = Some(packet);
        ticket
    }

    /// The packet of `ticket`, with the mark that the discipline gave the ticket.
    fn take(&mut self, ticket: &Ticket) -> P {
        let packet = self.places[ticket.place as usize].take();
        let mut packet = packet.expect("a discipline gives a packet back once");
        self.free.push(ticket.place);
        if ticket.ecn == Ecn::Ce && packet.ecn() != Ecn::Ce && packet.ecn().is_capable() {
            packet.mark_ce();
        }
        packet
    }
}

/// Reports to the sink of packets what the discipline reports of tickets.
struct Through<'a, P> {
    packets: &'a mut Places<P>,
    sink: &'a mut dyn Sink<P>,
}

impl<P: Queued> Sink<Ticket> for Through<'_, P> {
    fn dropped(&mut self, now: Time, ticket: Ticket, why: DropReason) {
        let packet = self.packets.take(&ticket);
        self.sink.dropped(now, packet, why);
    }

    fn marked(&mut self, now: Time, ticket: &Ticket) {
        let packet = self.packets.places[ticket.place as usize].as_mut();
        if let Some(packet) = packet.filter(|packet| packet.ecn().is_capable()) {
            packet.mark_ce();
            self.sink.marked(now, packet);
        }
    }
}

impl<P: Queued + Send> Qdisc<P> for Foreign<P> {
    fn enqueue(&mut self, now: Time, packet: P, sink: &mut dyn Sink<P>) -> Enqueue<P> {
        let ticket = self.packets.put(packet);
        let through = &mut Through { packets: &mut self.packets, sink };
        match self.queue.enqueue(now, ticket, through) {
            Enqueue::Queued => Enqueue::Queued,
            Enqueue::Dropped(ticket, why) => Enqueue::Dropped(self.packets.take(&ticket), why),
        }
    }

    fn dequeue(&mut self, now: Time, sink: &mut dyn Sink<P>) -> Dequeue<P> {
        let through = &mut Through { packets: &mut self.packets, sink };
        match self.queue.dequeue(now, through) {
            Dequeue::Packet(ticket, wait) => Dequeue::Packet(self.packets.take(&ticket), wait),
            Dequeue::Empty => Dequeue::Empty,
            Dequeue::NotBefore(time) => Dequeue::NotBefore(time),
        }
    }

    fn backlog(&self) -> Backlog {
        self.queue.backlog()
    }

    fn oldest(&self) -> Option<Time> {
        self.queue.oldest()
    }

    fn details(&self) -> Vec<(&'static str, u64)> {
        self.queue.details()
    }

    fn check(&self) -> Result<(), String> {
        self.queue.check()
    }
}
