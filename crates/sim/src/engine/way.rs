//! The way of a flow: the ports that its packets cross, and propagation that only this flow has.

use alloc::vec::Vec;

use sojourn_core::{Direction, Packet, PortId, Queued, Span, Time};
use sojourn_link::{DelayLine, ReorderConfig};
use sojourn_scenario::Flow;
use sojourn_wire::{Exit, Link as LinkConfig};

use crate::ends::Ends;

pub(super) struct FlowState {
    pub(super) ends: Ends,
    pub(super) forward: Way,
    pub(super) reverse: Way,
    /// Its application offers nothing from then on.
    pub(super) stop: Time,
    /// See [`Ends::is_over`]; known when a row ends.
    pub(super) is_over: bool,
}

/// When the application of a flow stops by itself.
pub(super) fn stop_of(flow: &Flow) -> Time {
    flow.stop.map_or(Time::NEVER, |stop| Time::ZERO + stop)
}

impl FlowState {
    pub(super) fn way(&self, direction: Direction) -> &Way {
        match direction {
            Direction::Forward => &self.forward,
            Direction::Reverse => &self.reverse,
        }
    }

    pub(super) fn way_mut(&mut self, direction: Direction) -> &mut Way {
        match direction {
            Direction::Forward => &mut self.forward,
            Direction::Reverse => &mut self.reverse,
        }
    }
}

/// The number of no port. It is asked for where a port turns out not to be a link, so packets that enter links need not be asked
/// whether they have a port to enter.
pub(super) const NO_PORT: u32 = u32::MAX;

/// The links of one direction of a flow, and the propagation after them that only this flow has.
pub(super) struct Way {
    pub(super) links: Vec<PortId>,
    pub(super) delay: Span,
    pub(super) pipe: DelayLine<Packet>,
}

impl Way {
    pub(super) fn new(links: &[PortId], delay: Span) -> Self {
        Self { links: links.to_vec(), delay, pipe: DelayLine::default() }
    }

    /// The number of the first port, or [`NO_PORT`].
    pub(super) fn entry(&self) -> u32 {
        self.links.first().map_or(NO_PORT, |port| u32::from(port.0))
    }

    /// True if nothing ever enters the pipe.
    pub(super) fn ends_with_its_links(&self) -> bool {
        !self.links.is_empty() && self.delay.is_zero()
    }
}

/// Where packets go after `link`, and propagation that every packet has there. If the ways of all
/// flows that use the link end there and their propagation is equal, the link can have that
/// propagation itself: then one pipe holds all packets.
pub(super) fn exit_of(flows: &mut [FlowState], link: PortId, config: &LinkConfig) -> (Exit, Span) {
    // A packet that overtakes others skips the link's propagation but not its flow's.
    if config.reorder != ReorderConfig::None {
        return (Exit::OwnDelays, Span::ZERO);
    }
    let mut ways: Vec<&mut Way> = flows
        .iter_mut()
        .flat_map(|flow| [&mut flow.forward, &mut flow.reverse])
        .filter(|way| way.links.contains(&link))
        .collect();
    let ends_here = |way: &Way| way.links.last() == Some(&link);
    let common = ways.first().map_or(Span::ZERO, |way| way.delay);
    if ways.iter().all(|way| ends_here(way) && way.delay == common) {
        ways.iter_mut().for_each(|way| way.delay = Span::ZERO);
        (Exit::Ends, common)
    } else if ways.iter().any(|way| ends_here(way) && !way.delay.is_zero()) {
        (Exit::OwnDelays, Span::ZERO)
    } else {
        (Exit::Onward, Span::ZERO)
    }
}

pub(super) fn bytes_in(pipe: &DelayLine<Packet>) -> u64 {
    pipe.iter().map(|packet| u64::from(packet.wire_len())).sum()
}
