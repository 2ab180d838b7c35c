//! Groups of packets that left together, and how much further apart they arrive than they left.

use sojourn_core::{Span, Time};

/// Differences between two groups.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Deltas {
    /// In milliseconds.
    pub(super) sent: f64,
    pub(super) arrived: f64,
}

#[derive(Clone, Copy, Debug)]
struct Group {
    first_sent: Time,
    sent: Time,
    first_arrived: Time,
    arrived: Time,
}

#[derive(Clone, Debug)]
pub(super) struct Groups {
    /// A group has the packets that left within this time after its first one.
    length: Span,
    /// Packets that arrive in a burst belong to one group if no gap between them is longer.
    burst_gap: Span,
    current: Option<Group>,
    before: Option<Group>,
    reordered: u32,
}

/// A longer burst is divided.
const LONGEST_BURST: Span = Span::from_millis(100);
/// When this many groups in a row arrive before their predecessors, the path has changed.
const MOST_REORDERED: u32 = 3;

impl Groups {
    pub(super) fn new(length: Span, burst_gap: Span) -> Self {
        Self { length, burst_gap, current: None, before: None, reordered: 0 }
    }

    /// Takes a packet that arrived. Returns the differences between the two groups before it, if it
    /// begins a new group.
    pub(super) fn on_packet(&mut self, sent: Time, arrived: Time) -> Option<Deltas> {
        let Some(group) = &mut self.current else {
            self.current = Some(Group::of(sent, arrived));
            return None;
        };
        if sent < group.first_sent {
            return None;
        }
        let goes_on = sent.since(group.first_sent) <= self.length
            || group.has_burst(sent, arrived, self.burst_gap);
        if goes_on {
            group.sent = group.sent.max(sent);
            group.arrived = group.arrived.max(arrived);
            return None;
        }
        let ended = *group;
        self.current = Some(Group::of(sent, arrived));
        let before = self.before.replace(ended)?;
        if ended.arrived < before.arrived {
            self.reordered += 1;
            if self.reordered >= MOST_REORDERED {
                *self = Self::new(self.length, self.burst_gap);
            }
            return None;
        }
        self.reordered = 0;
        Some(Deltas {
            sent: millis_between(before.sent, ended.sent),
            arrived: millis_between(before.arrived, ended.arrived),
        })
    }
}

impl Group {
    fn of(sent: Time, arrived: Time) -> Self {
        Self { first_sent: sent, sent, first_arrived: arrived, arrived }
    }

    /// The packet caught up with this group on the way.
    fn has_burst(&self, sent: Time, arrived: Time, longest_gap: Span) -> bool {
        let apart = arrived.since(self.arrived);
        let sent_apart = sent.since(self.sent);
        if sent_apart.is_zero() {
            return true;
        }
        apart < sent_apart
            && apart <= longest_gap
            && arrived.since(self.first_arrived) < LONGEST_BURST
    }
}

fn millis_between(from: Time, to: Time) -> f64 {
    (to.as_nanos() as f64 - from.as_nanos() as f64) / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deltas(packets: &[(u64, u64)]) -> Vec<Option<(f64, f64)>> {
        let mut groups = Groups::new(Span::from_millis(5), Span::from_millis(5));
        let ms = |ms: u64| Time::from_nanos(ms * 1_000_000);
        let packet = |(sent, arrived): &(u64, u64)| {
            groups.on_packet(ms(*sent), ms(*arrived)).map(|d| (d.sent, d.arrived))
        };
        packets.iter().map(packet).collect()
    }

    #[test]
    fn a_groups_times_are_those_of_its_last_packet() {
        let found = deltas(&[(0, 100), (4, 110), (20, 120), (24, 140), (40, 160)]);
        assert_eq!(found, [None, None, None, None, Some((20.0, 30.0))]);
    }

    #[test]
    fn packets_that_caught_up_join_the_group() {
        // Sent 20 ms apart, they arrive 1 ms apart behind a queue that emptied at once.
        let found = deltas(&[(0, 100), (20, 101), (40, 102), (70, 170), (90, 190)]);
        assert_eq!(found, [None, None, None, None, Some((30.0, 68.0))]);
    }

    #[test]
    fn what_left_before_the_group_is_left_out() {
        assert_eq!(deltas(&[(20, 100), (10, 101), (30, 110), (40, 120)])[1], None);
    }
}
