//! A queue discipline: packets that are marked urgent go first.

use std::collections::VecDeque;

use sojourn_core::{DropReason, Queued, Stream, Time};
use sojourn_qdisc::{Backlog, Dequeue, Discipline, Enqueue, Qdisc, Sink, Ticket};

sojourn_core::params! {
    /// Its parameters, with defaults and what they do.
    pub struct TwoLanes: "two_lanes", "A lane for urgent packets, which go first, and one for the others" {
        limit: u32 = "100", "packets that may wait in each lane";
        urgent: u32 = "46", sojourn_core::param::whole(1, 63), "the least code point (DSCP) that is urgent";
    }
}

impl Discipline for TwoLanes {
    type Queue = Lanes;

    fn build(&self, _random: Stream) -> Lanes {
        Lanes { config: self.clone(), urgent: VecDeque::new(), others: VecDeque::new() }
    }
}

/// Packets by when they arrived.
type Lane = VecDeque<(Time, Ticket)>;

pub struct Lanes {
    config: TwoLanes,
    urgent: Lane,
    others: Lane,
}

impl Qdisc<Ticket> for Lanes {
    fn enqueue(&mut self, now: Time, packet: Ticket, _: &mut dyn Sink<Ticket>) -> Enqueue<Ticket> {
        let is_urgent = u32::from(packet.dscp()) >= self.config.urgent;
        let lane = if is_urgent { &mut self.urgent } else { &mut self.others };
        if lane.len() >= self.config.limit as usize {
            return Enqueue::Dropped(packet, DropReason::Full);
        }
        lane.push_back((now, packet));
        Enqueue::Queued
    }

    fn dequeue(&mut self, now: Time, _: &mut dyn Sink<Ticket>) -> Dequeue<Ticket> {
        match self.urgent.pop_front().or_else(|| self.others.pop_front()) {
            Some((arrived, packet)) => Dequeue::Packet(packet, now.since(arrived)),
            None => Dequeue::Empty,
        }
    }

    fn backlog(&self) -> Backlog {
        let packets = || self.urgent.iter().chain(&self.others);
        Backlog {
            packets: packets().count() as u32,
            bytes: packets().map(|(_, packet)| u64::from(packet.wire_len())).sum(),
        }
    }

    fn oldest(&self) -> Option<Time> {
        let heads = [self.urgent.front(), self.others.front()];
        heads.into_iter().flatten().map(|(arrived, _)| *arrived).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The suite that the built-in ones pass.
    #[test]
    fn two_lanes_are_a_queue() {
        let mut kinds = sojourn_qdisc::kinds();
        kinds.add(sojourn_qdisc::external::<TwoLanes>()).expect("its name is free");
        let lanes = sojourn_qdisc::Config::parse_of(&kinds, "two_lanes").expect("it is registered");
        assert_eq!(sojourn_qdisc::suite::check(&lanes), Ok(()));
    }
}
