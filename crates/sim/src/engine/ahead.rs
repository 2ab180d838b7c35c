//! Packets enter a link ahead of their time, if nothing can come between.
//!
//! When a frame goes on the air, a radio knows which packets come out of it, and when. A link that only packets of this
//! radio enter takes them all in one turn of the event loop, each at its own time.

use alloc::vec::Vec;

use sojourn_core::{Observer, Packet, PortId, Time};
use sojourn_scenario::{App, Scenario};
use sojourn_wire::{Exit, Wire};

use super::Engine;
use super::cross::enter_idle;
use crate::agenda::Place;

/// Which packets may go ahead. In a world where none ever do, `onward` is empty.
pub(super) struct Ahead {
    /// By port that is no link, the link that takes in ahead of time what comes out there.
    onward: Vec<Option<u32>>,
    /// The end of the row of the time series, and the time until which the world is run: at both, somebody looks.
    pub(super) row: Time,
    pub(super) until: Time,
}

impl Ahead {
    pub(super) fn nothing() -> Self {
        Self { onward: Vec::new(), row: Time::ZERO, until: Time::ZERO }
    }

    /// Finds the links that take packets ahead of time.
    pub(super) fn new(scenario: &Scenario, links: &[Wire<Packet>], carrier_of: &[u32]) -> Self {
        let others = links.len()..links.len() + carrier_of.len();
        let onward: Vec<Option<u32>> = others
            .map(|port| onward_of(PortId(port as u16), scenario, links, carrier_of))
            .collect();
        if onward.iter().all(Option::is_none) {
            return Self::nothing();
        }
        Self { onward, ..Self::nothing() }
    }
}

/// The link that all packets enter after `port`, if all that enters it is from the same carrier and it takes packets
/// in time order. What outside applications measure of a packet may depend on what has happened to others so far.
fn onward_of(
    port: PortId,
    scenario: &Scenario,
    links: &[Wire<Packet>],
    carrier_of: &[u32],
) -> Option<u32> {
    let carrier = |port: PortId| carrier_of.get(port.index().checked_sub(links.len())?);
    let ways = || scenario.flows.iter().flat_map(|flow| [&flow.forward, &flow.reverse]);
    let mut next = ways().flat_map(|way| {
        let here = (0..way.len()).filter(|hop| way[*hop] == port);
        here.map(|hop| way.get(hop + 1).copied())
    });
    let link = next.next()??;
    if next.any(|next| next != Some(link)) || links.get(link.index())?.exit() >= Exit::Late {
        return None;
    }
    let is_private = ways().all(|way| {
        let here = (0..way.len()).filter(|hop| way[*hop] == link);
        here.into_iter().all(|hop| hop > 0 && carrier(way[hop - 1]) == carrier(port))
    });
    let is_built_in = scenario.flows.iter().all(|flow| {
        let uses = flow.forward.contains(&link) || flow.reverse.contains(&link);
        !uses || !matches!(flow.app, App::External(_))
    });
    (is_private && is_built_in).then_some(u32::from(link.0))
}

impl<O: Observer> Engine<'_, O> {
    /// Passes on what is known to come out of `carrier`, which would be woken for it at `wake`. Gives when it is to be
    /// woken then.
    #[inline]
    pub(super) fn pass_ahead(&mut self, carrier: usize, wake: Time) -> Time {
        let before = self.ahead.row.min(self.ahead.until);
        if self.ahead.onward.is_empty() || wake >= before {
            return wake;
        }
        let Self { ahead, carriers, links, agenda, observer, .. } = self;
        let first = links.len();
        let onward = |port: PortId| ahead.onward[port.index() - first];
        carriers[carrier].deliver_ahead(
            before,
            &|port| onward(port).is_some(),
            &mut |at, port, packet| {
                if let Some(link) = onward(port) {
                    enter_idle(
                        &mut links[link as usize],
                        Place(link),
                        at,
                        packet,
                        agenda,
                        *observer,
                    );
                }
            },
        )
    }
}
