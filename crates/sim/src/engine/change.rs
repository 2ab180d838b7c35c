//! What changes in the world when a sender enters a phase of its congestion controller.

use sojourn_core::{FlowId, Observer, Time, is_phase};
use sojourn_scenario::{Change, Flow, What};

use super::way::stop_of;
use super::{Engine, RECEIVER, SENDER};
use crate::agenda::Place;
use crate::ends::Ends;

/// A change that has not come yet.
pub(super) struct Pending<'a> {
    change: &'a Change,
    /// Whether the sender was in the phase when it was last looked at.
    is_in: bool,
    entries: u32,
    /// When it comes: never, until that is known.
    due: Time,
    has_come: bool,
}

impl<'a> Pending<'a> {
    pub(super) fn new(change: &'a Change) -> Self {
        Self { change, is_in: false, entries: 0, due: Time::NEVER, has_come: false }
    }

    pub(super) fn has_come(&self) -> bool {
        self.has_come
    }
}

impl<O: Observer> Engine<'_, O> {
    /// The flow, which is no lone TCP connection or a watched one, has been told something: a phase
    /// may have begun that a change waits for.
    #[inline]
    pub(super) fn look_at_phase(&mut self, flow: usize) {
        if !self.pending.is_empty() {
            self.look_for_changes(flow);
        }
    }

    #[cold]
    fn look_for_changes(&mut self, flow: usize) {
        let Some(phase) = self.flows[flow].ends.phase() else { return };
        // Most that a sender is told does not change its phase, and then none of the changes is any nearer.
        if core::mem::replace(&mut self.phases[flow], phase) == phase {
            return;
        }
        let mut is_due = false;
        for pending in self.pending.iter_mut().filter(|p| p.change.when.flow.index() == flow) {
            let when = &pending.change.when;
            let enters = is_phase(phase, &when.phase) && !pending.is_in;
            pending.is_in = is_phase(phase, &when.phase);
            pending.entries += u32::from(enters);
            if enters && pending.entries == when.occurrence {
                pending.due = self.now + when.after;
                is_due = true;
            }
        }
        if is_due {
            self.schedule_changes();
        }
    }

    fn schedule_changes(&mut self) {
        let next = self.pending.iter().map(|pending| pending.due).min();
        self.agenda.set(self.change_place(), next.unwrap_or(Time::NEVER));
    }

    /// All that is due changes. Whatever else happens at this moment has happened.
    #[cold]
    #[inline(never)]
    pub(super) fn change_world(&mut self) {
        for index in 0..self.pending.len() {
            if self.pending[index].due <= self.now {
                self.pending[index].due = Time::NEVER;
                self.pending[index].has_come = true;
                self.change(&self.pending[index].change.what);
            }
        }
        self.schedule_changes();
    }

    fn change(&mut self, what: &What) {
        let now = self.now;
        match what {
            What::Rate(port, rate) => {
                self.settle(port.index());
                self.links[port.index()].set_rate(now, *rate);
                self.reschedule_link(port.index());
            }
            What::Loss(port, loss) => {
                self.settle(port.index());
                self.links[port.index()].set_loss(loss);
                self.reschedule_link(port.index());
            }
            What::Delay(port, delay) => {
                self.settle(port.index());
                self.links[port.index()].set_delay(*delay);
                self.reschedule_link(port.index());
            }
            What::Start(flow) => self.start(*flow),
            What::Stop(flow) => {
                let state = &mut self.flows[flow.index()];
                state.stop = state.stop.min(now);
                if let Some(sender) = state.ends.sender_mut() {
                    sender.stop(now);
                }
                self.wake_soon(*flow);
            }
            What::Pause(flow, length) => {
                if let Some(sender) = self.flows[flow.index()].ends.sender_mut() {
                    sender.pause(now, *length);
                }
                self.wake_soon(*flow);
            }
            What::Write(flow, rate) => {
                if let Some(sender) = self.flows[flow.index()].ends.sender_mut() {
                    sender.set_rate(now, *rate);
                }
                self.wake_soon(*flow);
            }
        }
    }

    fn reschedule_link(&mut self, link: usize) {
        let wake = self.links[link].next_wake();
        self.agenda.set(Place(link as u32), wake);
    }

    fn start(&mut self, flow: FlowId) {
        let config = &self.scenario.flows[flow.index()];
        let start = self.now.since(Time::ZERO);
        if config.stop.is_some_and(|stop| stop <= start) {
            return;
        }
        let config = Flow { start, ..config.clone() };
        let is_watched = self.scenario.is_watched(flow);
        let end = Time::ZERO + self.scenario.duration;
        let state = &mut self.flows[flow.index()];
        state.ends = Ends::new(&config, flow, self.address, end, is_watched);
        state.stop = stop_of(&config);
        state.is_over = false;
        self.wake_soon(flow);
    }

    /// The sending end has other plans than before.
    fn wake_soon(&mut self, flow: FlowId) {
        let ends = &self.flows[flow.index()].ends;
        let (sender, receiver) = (ends.next_sender_wake(), ends.next_receiver_wake());
        let index = flow.index();
        self.agenda.set(self.end_place(index, SENDER), sender.max(self.now));
        self.agenda.set(self.end_place(index, RECEIVER), receiver.max(self.now));
    }
}
