//! A link that marks, shared by flows with round-trip times of their own; the tests of DCTCP and of
//! Prague run on it. Every segment is acknowledged, and every mark is reported.

use std::collections::VecDeque;

use sojourn_core::{Purpose, Rate, Span, Stream, StreamAddress, Time};

use crate::testing::{Connection, MTU, setup};
use crate::{Controller, EcnFeedback, Setup};

/// Which segments the link marks.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Marking {
    /// Segments that find this many others waiting.
    Step(u32),
    /// This share of the segments, at random.
    Random(f64),
    /// One of this many segments.
    Every(u64),
}

pub(crate) struct Flow<C> {
    pub(crate) connection: Connection<C>,
    rtt: Span,
    start: Time,
    network: VecDeque<Carried>,
    pub(crate) sent: u64,
    pub(crate) marked: u64,
    delivered_before: u64,
    sent_before: u64,
    marked_before: u64,
}

struct Carried {
    seq: u32,
    acknowledged_at: Time,
    is_marked: bool,
}

pub(crate) struct Link<C> {
    pub(crate) now: Time,
    pub(crate) flows: Vec<Flow<C>>,
    rate: Rate,
    marking: Marking,
    free_at: Time,
    sent: u64,
    random: Stream,
    measured_since: Time,
    /// Least and most segments waiting since [`Link::measure`].
    pub(crate) least_queue: f64,
    pub(crate) most_queue: f64,
}

/// A connection whose receiver counts marks, with a handshake of `rtt`.
pub(crate) fn accurate(rtt: Span) -> Setup {
    Setup { ecn: EcnFeedback::Accurate, handshake_rtt: Some(rtt), ..setup() }
}

impl<C: Controller> Link<C> {
    pub(crate) fn new(rate: Rate, marking: Marking) -> Self {
        Self {
            now: Time::ZERO,
            flows: Vec::new(),
            rate,
            marking,
            free_at: Time::ZERO,
            sent: 0,
            random: StreamAddress { seed: 5, run: 0 }.stream(0, Purpose::Queue),
            measured_since: Time::ZERO,
            least_queue: f64::INFINITY,
            most_queue: 0.0,
        }
    }

    pub(crate) fn add(&mut self, controller: C, rtt: Span, start: Time) {
        let setup = Setup { now: start, ..accurate(rtt) };
        self.flows.push(Flow {
            connection: Connection::new(controller, &setup),
            rtt,
            start,
            network: VecDeque::new(),
            sent: 0,
            marked: 0,
            delivered_before: 0,
            sent_before: 0,
            marked_before: 0,
        });
    }

    /// Starts averages anew.
    pub(crate) fn measure(&mut self) {
        self.measured_since = self.now;
        (self.least_queue, self.most_queue) = (f64::INFINITY, 0.0);
        for flow in &mut self.flows {
            flow.delivered_before = flow.connection.delivered;
            flow.sent_before = flow.sent;
            flow.marked_before = flow.marked;
        }
    }

    /// Segments per second since [`Link::measure`].
    pub(crate) fn throughput(&self, flow: usize) -> f64 {
        let flow = &self.flows[flow];
        let delivered = flow.connection.delivered - flow.delivered_before;
        delivered as f64 / self.now.since(self.measured_since).as_secs_f64()
    }

    /// Share of the flow's segments marked since [`Link::measure`].
    pub(crate) fn mark_rate(&self, flow: usize) -> f64 {
        let flow = &self.flows[flow];
        (flow.marked - flow.marked_before) as f64 / (flow.sent - flow.sent_before) as f64
    }

    pub(crate) fn run(&mut self, span: Span) {
        let end = self.now + span;
        while self.step(end, |_, _| {}) {}
        self.now = end;
    }

    /// Calls `see` after the flow's controller has processed each acknowledgement.
    pub(crate) fn watch(&mut self, span: Span, mut see: impl FnMut(usize, &Flow<C>)) {
        let end = self.now + span;
        while self.step(end, &mut see) {}
        self.now = end;
    }

    fn step(&mut self, end: Time, mut see: impl FnMut(usize, &Flow<C>)) -> bool {
        let mut next = (Time::NEVER, 0, false);
        for (index, flow) in self.flows.iter().enumerate() {
            let connection = &flow.connection;
            let arrival = flow.network.front().map_or(Time::NEVER, |front| front.acknowledged_at);
            let may_send = connection.may_send();
            let departure = if may_send {
                connection.earliest_departure.max(self.now).max(flow.start)
            } else {
                Time::NEVER
            };
            let at = arrival.min(departure);
            if at < next.0 {
                next = (at, index, departure < arrival);
            }
        }
        let (at, index, is_departure) = next;
        if at > end {
            return false;
        }
        self.now = at;
        self.flows[index].connection.now = at;
        if is_departure {
            self.send(index);
        } else {
            let flow = &mut self.flows[index];
            let carried = flow.network.pop_front().expect("an arrival is in the network");
            flow.connection.acknowledge(&[carried.seq], &[], carried.is_marked);
            see(index, flow);
        }
        true
    }

    fn send(&mut self, index: usize) {
        let service = self.rate.time_for(u64::from(MTU));
        let waiting = if service.is_zero() {
            0.0
        } else {
            self.free_at.since(self.now).as_nanos() as f64 / service.as_nanos() as f64
        };
        self.sent += 1;
        let is_marked = match self.marking {
            Marking::Step(threshold) => waiting >= f64::from(threshold),
            Marking::Random(p) => self.random.chance(p),
            Marking::Every(period) => self.sent.is_multiple_of(period),
        };
        self.least_queue = self.least_queue.min(waiting);
        self.most_queue = self.most_queue.max(waiting);
        self.free_at = self.free_at.max(self.now) + service;
        let flow = &mut self.flows[index];
        let seq = flow.connection.send();
        flow.sent += 1;
        flow.marked += u64::from(is_marked);
        let acknowledged_at = self.free_at + flow.rtt;
        flow.network.push_back(Carried { seq, acknowledged_at, is_marked });
    }
}
