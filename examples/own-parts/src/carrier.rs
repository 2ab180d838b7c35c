//! A carrier: one cable for all, on which one packet at a time is sent. Whose turn it is goes round.

use std::collections::VecDeque;

use sojourn_core::param::Style;
use sojourn_core::{
    DropReason, Event, Observer, Packet, Params, PortId, QueueSample, Queued, Rate, Span,
    SpecError, StreamAddress, Time, Who,
};
use sojourn_wire::{
    Books, Carried, Carrier, CarrierKind, CarrierModel, Joined, Leads, PortShape, Site,
};

sojourn_core::params! {
    /// Its parameters, with defaults and what they do.
    pub struct Cable: "cable", "One cable for all nodes, which send in turn" {
        rate: Rate = "10mbit", "what it carries, all nodes together";
        delay: Span = "5us", "from the sender to all others";
        limit: u32 = "100", "packets that may wait in each node";
    }
}

impl CarrierKind for Cable {
    fn join(&self, site: Site<'_>) -> Result<Joined, SpecError> {
        if site.nodes.len() < 2 || !site.ports.is_empty() {
            let problem = SpecError::new("a cable joins two nodes or more, and makes their ports");
            return Err(problem.allow(["nodes = [\"a\", \"b\"]"]));
        }
        let all = 0..site.nodes.len();
        let others = |node: usize| all.clone().filter(|other| *other != node).collect();
        let leads = all.clone().map(|node| Leads { from: vec![node], to: others(node) }).collect();
        let names = site.nodes.iter().map(|node| format!("{}.{node}", site.name)).collect();
        Ok(Joined::external(Laid { names, cable: self.clone() }, leads))
    }
}

/// A cable with a port for each node, where its packets wait.
struct Laid {
    names: Vec<String>,
    cable: Cable,
}

impl CarrierModel for Laid {
    fn check(&self) -> Result<(), SpecError> {
        self.cable.check()
    }

    fn ports(&self) -> Vec<PortShape> {
        let Cable { rate, delay, .. } = self.cable;
        self.names.iter().map(|name| PortShape::new(name, rate, delay)).collect()
    }

    fn build(&self, first: PortId, _: StreamAddress) -> Box<dyn Carrier<Packet>> {
        Box::new(State::new(self.cable.clone(), first, self.names.len()))
    }

    fn canonical(&self) -> String {
        // The names of the ports are written by whoever asks.
        self.cable.written(Style::Canonical)
    }
}

/// The cable at work.
pub struct State {
    cable: Cable,
    first: PortId,
    nodes: Vec<Node>,
    /// Who sent last.
    turn: usize,
    /// When the cable is free.
    free: Time,
    under_way: VecDeque<(Time, PortId, Packet)>,
    /// Dropped, with contents that somebody has to free.
    lost: Vec<Packet>,
}

#[derive(Clone, Default)]
struct Node {
    waiting: VecDeque<(Time, Packet)>,
    /// Without what waits and what is under way.
    books: Books,
    sent_packets: u64,
    dropped: u64,
}

impl Node {
    /// That wait; one with several segments stands for so many.
    fn wire_packets(&self) -> u32 {
        self.waiting.iter().map(|(_, packet)| u32::from(packet.segments)).sum()
    }
}

impl State {
    pub fn new(cable: Cable, first: PortId, nodes: usize) -> Self {
        Self {
            cable,
            first,
            nodes: vec![Node::default(); nodes],
            turn: 0,
            free: Time::ZERO,
            under_way: VecDeque::new(),
            lost: Vec::new(),
        }
    }

    fn node(&self, port: PortId) -> &Node {
        &self.nodes[port.index() - self.first.index()]
    }

    fn somebody_waits(&self) -> bool {
        self.nodes.iter().any(|node| !node.waiting.is_empty())
    }

    /// Sends what may be sent by `now`, each packet when the cable is free.
    fn settle(&mut self, now: Time, observer: &mut dyn Observer) {
        while self.free <= now && self.somebody_waits() {
            let count = self.nodes.len();
            let after = (1..=count).map(|step| (self.turn + step) % count);
            let next = after.into_iter().find(|node| !self.nodes[*node].waiting.is_empty());
            self.turn = next.unwrap_or(self.turn);
            let port = PortId(self.first.0 + self.turn as u16);
            let node = &mut self.nodes[self.turn];
            let Some((since, mut packet)) = node.waiting.pop_front() else { return };
            let at = self.free.max(since);
            packet.leave_port();
            let event = Event::Dequeued { packet: &packet, sojourn: at.since(since) };
            observer.record(at, Who::Port(port), &event);
            node.books.sent += u64::from(packet.wire_len());
            node.sent_packets += 1;
            self.free = at + self.cable.rate.time_for(packet.wire_len().into());
            self.under_way.push_back((self.free + self.cable.delay, port, packet));
        }
    }
}

impl Carrier<Packet> for State {
    fn offer(&mut self, now: Time, port: PortId, packet: Packet, observer: &mut dyn Observer) {
        self.settle(now, observer);
        let node = &mut self.nodes[port.index() - self.first.index()];
        node.books.offered += u64::from(packet.wire_len());
        if node.waiting.len() >= self.cable.limit as usize {
            node.books.dropped += u64::from(packet.wire_len());
            node.dropped += 1;
            let event = Event::Dropped { packet: &packet, why: DropReason::Full };
            observer.record(now, Who::Port(port), &event);
            if packet.has_contents() {
                self.lost.push(packet);
            }
            return;
        }
        node.waiting.push_back((now, packet));
        let backlog = node.wire_packets();
        observer.record(now, Who::Port(port), &Event::Enqueued { packet: &packet, backlog });
        self.settle(now, observer);
    }

    fn next_wake(&self) -> Time {
        let arrival = self.under_way.front().map_or(Time::NEVER, |(at, ..)| *at);
        if self.somebody_waits() { arrival.min(self.free) } else { arrival }
    }

    fn on_wake(&mut self, now: Time, observer: &mut dyn Observer) {
        self.settle(now, observer);
    }

    fn poll_deliver(&mut self, now: Time) -> Option<(PortId, Packet)> {
        let (at, port, packet) = *self.under_way.front()?;
        if at > now {
            return None;
        }
        self.under_way.pop_front();
        Some((port, packet))
    }

    fn books(&self, port: PortId) -> Books {
        let node = self.node(port);
        let own = self.under_way.iter().filter(|(_, from, _)| *from == port);
        Books {
            waiting: node.waiting.iter().map(|(_, packet)| u64::from(packet.wire_len())).sum(),
            under_way: own.map(|(.., packet)| u64::from(packet.wire_len())).sum(),
            ..node.books
        }
    }

    fn sample(&self, now: Time, port: PortId) -> QueueSample {
        let node = self.node(port);
        QueueSample {
            packets: node.wire_packets(),
            joined: node.wire_packets() - node.waiting.len() as u32,
            bytes: self.books(port).waiting,
            head_wait: node.waiting.front().map_or(Span::ZERO, |(since, _)| now.since(*since)),
            sent_packets: node.sent_packets,
            sent_bytes: node.books.sent,
            dropped: node.dropped,
            marked: 0,
            capacity: self.cable.rate,
            medium_bytes: node.books.sent,
            capacity_bytes: Some(self.cable.rate.as_bps() as f64 / 8.0 * now.as_secs_f64()),
            air: None,
        }
    }

    fn take_lost(&mut self, take: &mut dyn FnMut(Packet)) {
        self.lost.drain(..).for_each(take);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The suite that every carrier has to pass.
    #[test]
    fn a_cable_is_a_carrier() {
        let ports = [3, 4, 5].map(PortId);
        let build = || -> Box<dyn Carrier<Packet>> {
            Box::new(State::new(Cable::default(), ports[0], ports.len()))
        };
        sojourn_wire::suite::check(&build, &ports);
        let (rate, delay) = (Cable::default().rate, Cable::default().delay);
        sojourn_wire::suite::check_rate(&mut *build(), ports[1], rate, delay);
    }
}
