//! Kinks in what comes to a queue, such as the gap that a cut window leaves, come back to the senders behind it after
//! their round trip. Steps end there, as what a sender sends is straight within a step: what it repeats would
//! otherwise be a little smoother every round trip (C. Baker, C. Paul and D. Willé, "Issues in the numerical
//! solution of evolutionary delay differential equations", Advances in Computational Mathematics 3, 1995: tracking
//! of discontinuities).

use alloc::vec::Vec;

use crate::history::TIME;
use crate::world::{Source, World};

use super::{CLASS_IN, CLASS_KINK, CLASS_OUT, Engine, NOTHING};

/// Packets by which a step of two flows may straighten out a kink.
pub(super) const KINK: f64 = 0.05;

/// The first of the TCP flows to which the same comes back at the same time.
pub(super) fn listeners(world: &World, waits_in: &[Vec<usize>]) -> Vec<usize> {
    let way = |at: usize| {
        let flow = &world.flows[at];
        (waits_in[at].last(), flow.to_receiver + flow.to_sender, &flow.way_back)
    };
    let mut first = Vec::new();
    for (at, flow) in world.flows.iter().enumerate() {
        let is_tcp = matches!(flow.source, Source::Tcp { .. });
        let waits = !waits_in[at].is_empty();
        if is_tcp && waits && !first.iter().any(|other| way(*other) == way(at)) {
            first.push(at);
        }
    }
    first
}

impl Engine<'_> {
    /// The part of a step up to where a kink comes back to a sender. Small ones are passed over. As many flows
    /// make as many more kinks, and each moves the others by as much less, how small they are grows with the square
    /// of the count of flows.
    pub(crate) fn until_kink(&mut self, length: f64) -> f64 {
        let mut length = length;
        let flows = self.world.flows.len() as f64 / 2.0;
        for at in &self.layout.listeners {
            let flow = &self.world.flows[*at];
            let class = self.layout.waits_in[*at][flow.hops.len() - 1];
            let back = self.way_back(flow);
            let (now, history, cursors) = (self.now, &self.history, &mut self.cursors[*at]);
            let mut left = |time: f64| {
                history.value(history.at(time - back, &mut cursors.sender), class + CLASS_OUT)
            };
            let (from, to) = (left(now), left(now + length));
            let least = self.kink * flows * flows * flow.packet * length / (to - from);
            for row in history.between(class + CLASS_IN, from, to, &mut cursors.kink).rev() {
                let kink = history.cell(row + 1, class + CLASS_KINK);
                // A straight line is farthest from a kink in its middle.
                if kink * length < 4.0 * least {
                    continue;
                }
                let came = history.cell(row, class + CLASS_IN);
                let departs = history.find(class + CLASS_OUT, came, &mut cursors.departs);
                let part = history.value(departs, TIME) + back - now;
                if kink * part * (length - part) > least * length {
                    length = part;
                }
            }
        }
        length
    }

    /// How much what comes of a flow, for each byte that its class lets in, changed at the last row: its bend in what
    /// leaves a busy queue, for each byte that leaves.
    pub(super) fn note_kinks(&mut self, at: usize) {
        let link = &mut self.links[at];
        for passing in &mut link.passing {
            passing.kink = 0.0;
            passing.each = if passing.arrived < NOTHING { 0.0 } else { 1.0 / passing.arrived };
        }
        for (member, class) in link.classes.iter().enumerate() {
            let passing = &mut link.passing[*class];
            if passing.each > 0.0 {
                let came = link.arrivals[member] + link.tail.dropped[member];
                let share = came * passing.each;
                passing.kink = passing.kink.max((share - link.shares[member]).abs());
                link.shares[member] = share;
            }
        }
        for (passing, column) in link.passing.iter().zip(&self.layout.classes[at]) {
            self.new[column + CLASS_KINK] = passing.kink;
        }
    }
}
