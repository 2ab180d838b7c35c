//! Packets that are not written until it is known what became of them.

use std::collections::{BTreeMap, VecDeque};

use sojourn_core::{Direction, FlowId, Packet, Time};

/// A captured packet.
pub(super) struct Held {
    pub(super) at: Time,
    pub(super) interface: u32,
    /// What is captured of it.
    pub(super) bytes: Vec<u8>,
    /// Its length on the wire.
    pub(super) length: u32,
    pub(super) comments: Vec<String>,
    /// The packet has neither arrived nor been dropped yet.
    pub(super) open: bool,
}

/// Flow, direction, departure and number of a packet that is on its way.
pub(super) type Traveller = (FlowId, Direction, Time, u64);

/// Departure, number and place of packets, in the order they left.
type Departures = VecDeque<(Time, u64, u64)>;

/// Packets in order of capture. Those before the first unsettled one have been written.
#[derive(Default)]
pub(super) struct Fates {
    held: VecDeque<Held>,
    /// How many packets have left `held` at its front.
    gone: u64,
    /// Departures and numbers of packets on their way, and their positions counted from the
    /// beginning.
    travelling: BTreeMap<(FlowId, bool), Departures>,
}

/// If a packet has no fate when this many are held, it is written without one.
const MOST_HELD: usize = 1 << 18;

impl Fates {
    pub(super) fn hold(&mut self, held: Held, traveller: Option<Traveller>) {
        let place = self.gone + self.held.len() as u64;
        self.held.push_back(held);
        if let Some((flow, direction, sent, number)) = traveller {
            let way = (flow, direction == Direction::Reverse);
            self.travelling.entry(way).or_default().push_back((sent, number, place));
        }
    }

    /// It arrived, or was dropped for this reason.
    pub(super) fn settle(
        &mut self,
        packet: &Packet,
        first: u64,
        count: u64,
        comment: Option<&str>,
    ) {
        self.visit(packet, first, count, true, |held| {
            held.comments.extend(comment.map(str::to_owned));
            held.open = false;
        });
    }

    /// Something happened to it on its way.
    pub(super) fn note(&mut self, packet: &Packet, first: u64, count: u64, comment: &str) {
        self.visit(packet, first, count, false, |held| held.comments.push(comment.to_owned()));
    }

    /// The first packet if it is settled; with `all`, the first in any case.
    pub(super) fn settled(&mut self, all: bool) -> Option<Held> {
        let front = self.held.front()?;
        if front.open && !all && self.held.len() < MOST_HELD {
            return None;
        }
        self.gone += 1;
        self.held.pop_front()
    }

    fn visit(
        &mut self,
        packet: &Packet,
        first: u64,
        count: u64,
        ends: bool,
        mut with: impl FnMut(&mut Held),
    ) {
        let way = (packet.flow, packet.direction == Direction::Reverse);
        let Some(travelling) = self.travelling.get_mut(&way) else { return };
        let mut left = count;
        let mut at = 0;
        // Packets mostly arrive in the order they left, so the search is short.
        while at < travelling.len() && left > 0 {
            let (sent, number, place) = travelling[at];
            if sent > packet.sent {
                break;
            }
            if sent == packet.sent && (first..first + count).contains(&number) {
                left -= 1;
                if let Some(index) = place.checked_sub(self.gone)
                    && let Some(held) = self.held.get_mut(index as usize)
                {
                    with(held);
                }
                if ends {
                    travelling.remove(at);
                    continue;
                }
            }
            at += 1;
        }
    }
}
