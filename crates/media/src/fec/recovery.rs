//! What the receiver restores from parity.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

use super::parity::{Parity, Protected};

/// Packets that arrived or were restored, and parity that may still restore others.
#[derive(Clone, Debug, Default)]
pub(crate) struct Recovery {
    packets: BTreeMap<u32, Protected>,
    parity: VecDeque<Parity>,
    newest: u32,
}

/// Packets so far behind the newest one are forgotten.
const REMEMBERED: u32 = 500;

impl Recovery {
    /// The sequence number of the newest packet of video.
    pub(crate) fn newest(&self) -> u32 {
        self.newest
    }

    /// Takes a packet of video; returns what can be restored with it.
    pub(crate) fn on_packet(&mut self, packet: Protected) -> Vec<Protected> {
        self.add(packet);
        match self.parity.is_empty() {
            true => Vec::new(),
            false => self.restore(),
        }
    }

    /// Takes parity; returns what can be restored.
    pub(crate) fn on_parity(&mut self, parity: Parity) -> Vec<Protected> {
        self.parity.push_back(parity);
        self.restore()
    }

    fn add(&mut self, packet: Protected) {
        self.newest = self.newest.max(packet.sequence);
        self.packets.insert(packet.sequence, packet);
        let oldest = self.newest.saturating_sub(REMEMBERED);
        while self.packets.first_entry().is_some_and(|first| *first.key() < oldest) {
            self.packets.pop_first();
        }
        self.parity.retain(|parity| parity.base >= oldest);
    }

    fn restore(&mut self) -> Vec<Protected> {
        let mut restored = Vec::new();
        loop {
            let packets = &self.packets;
            let mut found = None;
            self.parity.retain(|parity| {
                let mut missing = parity.sequences().filter(|at| !packets.contains_key(at));
                match (missing.next(), missing.next()) {
                    (Some(_), Some(_)) => true,
                    (Some(sequence), None) if found.is_none() => {
                        let others = parity.sequences().filter_map(|at| packets.get(&at));
                        found = Some(parity.restore(sequence, others));
                        false
                    }
                    (missing, None) => missing.is_some(),
                    (None, Some(_)) => unreachable!("the first one comes first"),
                }
            });
            let Some(packet) = found else { return restored };
            self.add(packet);
            restored.push(packet);
        }
    }
}

#[cfg(test)]
mod tests {
    use sojourn_core::Time;

    use super::*;

    fn packet(sequence: u32) -> Protected {
        Protected {
            sequence,
            frame: sequence / 3,
            part: (sequence % 3) as u16,
            parts: 3,
            captured: Time::from_nanos(u64::from(sequence / 3) * 33_000_000),
            is_key: sequence < 3,
            length: 1000 - sequence as u16,
        }
    }

    fn parity(sequences: &[u32]) -> Parity {
        let mut parity = Parity::new(sequences[0]);
        sequences.iter().for_each(|sequence| parity.add(&packet(*sequence)));
        parity
    }

    #[test]
    fn one_lost_packet_of_a_group_is_restored_and_two_wait_for_a_repetition() {
        let mut recovery = Recovery::default();
        for sequence in [0, 1, 3] {
            assert_eq!(recovery.on_packet(packet(sequence)), []);
        }
        assert_eq!(recovery.on_parity(parity(&[0, 1, 2])), [packet(2)]);
        assert_eq!(recovery.on_parity(parity(&[3, 4, 5])), []);
        assert_eq!(recovery.on_packet(packet(5)), [packet(4)]);
    }

    #[test]
    fn what_was_restored_helps_to_restore_more() {
        let mut recovery = Recovery::default();
        recovery.on_packet(packet(0));
        assert_eq!(recovery.on_parity(parity(&[1, 2])), []);
        assert_eq!(recovery.on_parity(parity(&[0, 1])), [packet(1), packet(2)]);
    }

    #[test]
    fn parity_of_long_ago_is_forgotten() {
        let mut recovery = Recovery::default();
        assert_eq!(recovery.on_parity(parity(&[0, 1])), []);
        recovery.on_packet(packet(600));
        assert_eq!((recovery.on_packet(packet(0)), recovery.parity.len()), (vec![], 0));
    }
}
