//! What is done at every row of the time series: samples for the observer, and the invariants.

use alloc::vec::Vec;

use sojourn_core::{Event, FlowId, Observer, Packet, PortId, Time, Who};
use sojourn_wire::Wire;

use super::way::bytes_in;
use super::{Engine, Violation, release};

/// Counting a window takes long compared with a step, so it is not done at every step.
const STEPS_BETWEEN_COUNTS: u64 = 16;

impl<O: Observer> Engine<'_, O> {
    pub(super) fn set_step(&mut self) {
        let warm = Time::ZERO + self.scenario.warmup;
        let next = if warm > self.now { warm.min(self.next_step) } else { self.next_step };
        self.agenda.set(self.step_place(), next);
        self.late.set_row(next);
        self.ahead.row = next;
    }

    /// A row of the time series ends, or the warm-up. Everything before has happened.
    pub(super) fn end_row(&mut self) -> Result<(), Violation> {
        self.catch_up(self.moment());
        self.settle_before(self.now);
        if self.now < self.next_step {
            for index in 0..self.links.len() {
                let sample = self.links[index].sample(self.now);
                let who = Who::Port(PortId(index as u16));
                self.observer.record(self.now, who, &Event::WarmQueueSample(&sample));
            }
            for (port, carrier) in self.carrier_ports() {
                let sample = self.carriers[carrier].sample(self.now, port);
                self.observer.record(self.now, Who::Port(port), &Event::WarmQueueSample(&sample));
            }
            self.set_step();
            return Ok(());
        }
        self.free_lost();
        self.sample();
        self.next_step += self.scenario.step;
        self.set_step();
        self.steps += 1;
        if self.steps.is_multiple_of(STEPS_BETWEEN_COUNTS) {
            self.check_counts()?;
        }
        self.check()
    }

    /// Reports the state of every sender and queue. Of a flow that is over the last one has been reported.
    pub(super) fn sample(&mut self) {
        let now = self.now;
        for (index, flow) in self.flows.iter_mut().enumerate() {
            if !flow.is_over
                && let Some(sample) = flow.ends.sample(now)
            {
                let who = Who::Flow(FlowId(index as u32));
                self.observer.record(now, who, &Event::FlowSample(&sample));
                flow.is_over = flow.ends.is_over(now, flow.stop, &sample);
            }
        }
        for (index, link) in self.links.iter().enumerate() {
            let sample = link.sample(now);
            let who = Who::Port(PortId(index as u16));
            self.observer.record(now, who, &Event::QueueSample(&sample));
        }
        for (port, carrier) in self.carrier_ports() {
            let sample = self.carriers[carrier].sample(now, port);
            self.observer.record(now, Who::Port(port), &Event::QueueSample(&sample));
        }
    }

    /// The ports that are no links, and the position of the carrier of each.
    pub(super) fn carrier_ports(&self) -> impl Iterator<Item = (PortId, usize)> + use<O> {
        let first = self.links.len() as u16;
        let carriers: Vec<u32> = self.carrier_of.clone();
        (first..).map(PortId).zip(carriers.into_iter().map(|carrier| carrier as usize))
    }

    /// Frees the contents of packets that were dropped or lost.
    pub(super) fn free_lost(&mut self) {
        let contents = &mut self.contents;
        let mut free = |packet: Packet| release(contents, &packet);
        self.links.iter_mut().for_each(|link| link.take_lost(&mut free));
        self.carriers.iter_mut().for_each(|carrier| carrier.take_lost(&mut free));
    }

    /// Checks that senders count what is selectively acknowledged, lost and retransmitted.
    pub(super) fn check_counts(&self) -> Result<(), Violation> {
        match self.flows.iter().position(|flow| !flow.ends.have_counted_right()) {
            Some(flow) => Err(Violation::Miscount { at: self.now, flow }),
            None => Ok(()),
        }
    }

    /// Checks that bytes neither appear nor vanish, on any link and in total; that what is
    /// acknowledged has been received, and what is received has been sent.
    pub(super) fn check(&self) -> Result<(), Violation> {
        let at = self.now;
        let mut inside = 0;
        let mut dropped = 0;
        let links = (0..).map(PortId).zip(self.links.iter().map(Wire::books));
        let others =
            self.carrier_ports().map(|(port, carrier)| (port, self.carriers[carrier].books(port)));
        for (port, books) in links.chain(others) {
            inside += books.waiting + books.under_way;
            dropped += books.dropped + books.lost;
            if !books.balance() {
                return Err(Violation::PortConservation { at, port, books });
            }
        }
        for (link, state) in self.links.iter().enumerate() {
            state.check().map_err(|problem| Violation::Link { at, link, problem })?;
        }
        for (carrier, state) in self.carriers.iter().enumerate() {
            state.check(at).map_err(|problem| Violation::Carrier { at, carrier, problem })?;
        }
        for (index, flow) in self.flows.iter().enumerate() {
            inside += bytes_in(&flow.forward.pipe) + bytes_in(&flow.reverse.pipe);
            if let Some([una, next, sent]) = flow.ends.out_of_sequence() {
                return Err(Violation::Sequence { at, flow: index, una, next, sent });
            }
            flow.ends.check().map_err(|problem| Violation::Endpoint {
                at,
                flow: index,
                problem,
            })?;
        }
        let (sent, arrived) = (self.sent, self.arrived);
        if sent != arrived + dropped + inside {
            return Err(Violation::Conservation { at, sent, arrived, dropped, inside });
        }
        Ok(())
    }
}
