//! How much may wait in a fair queue.

use alloc::vec::Vec;

use super::{Fate, Member, Step};

/// A limit of all classes together.
#[derive(Clone, Debug)]
pub(super) struct Room {
    limit: f64,
    /// What a byte of each class takes of it.
    of_byte: Vec<f64>,
}

impl Room {
    /// For so many packets.
    pub(super) fn for_packets(limit: u32, members: &[Member]) -> Self {
        Self::new(f64::from(limit), members, |_| 1.0)
    }

    /// For packets that take so many bytes of memory.
    pub(super) fn for_memory(limit: f64, members: &[Member]) -> Self {
        Self::new(limit, members, |member| member.memory)
    }

    fn new(limit: f64, members: &[Member], of_packet: impl Fn(&Member) -> f64) -> Self {
        let of_byte = members.iter().map(|member| of_packet(member) / member.packet).collect();
        Self { limit, of_byte }
    }

    fn has_room(&self, held: impl Iterator<Item = f64>) -> bool {
        held.zip(&self.of_byte).map(|(held, of)| held * of).sum::<f64>() <= self.limit
    }

    /// Lowers the longest classes to a length at which all fit.
    fn lower(&self, held: &mut [f64]) {
        let mut longest: Vec<usize> = (0..held.len()).collect();
        longest.sort_unstable_by(|a, b| held[*b].total_cmp(&held[*a]));
        let takes = |class: usize| held[class] * self.of_byte[class];
        let mut rest: f64 = (0..held.len()).map(takes).sum();
        let (mut of_byte, mut length) = (0.0, 0.0);
        for (at, class) in longest.iter().enumerate() {
            rest -= takes(*class);
            of_byte += self.of_byte[*class];
            length = ((self.limit - rest) / of_byte).max(0.0);
            // The next one is not longer than these are now.
            if longest.get(at + 1).is_none_or(|next| held[*next] <= length) {
                break;
            }
        }
        held.iter_mut().for_each(|held| *held = held.min(length));
    }
}

/// What does not fit into all of the rooms at the end of the step goes from the heads of the longest classes.
pub(super) fn make_room(rooms: &[Room], step: &Step<'_>, fate: &mut Fate) {
    let classes = 0..step.backlogs.len();
    let held = |class: usize| {
        let came = step.arrivals[class] - fate.lost[class];
        (step.backlogs[class] + came - fate.departures[class]).max(0.0)
    };
    if rooms.iter().all(|room| room.has_room(classes.clone().map(held))) {
        return;
    }
    let before: Vec<f64> = classes.clone().map(held).collect();
    let mut after = before.clone();
    for room in rooms {
        if !room.has_room(after.iter().copied()) {
            room.lower(&mut after);
        }
    }
    for class in classes {
        let goes = before[class] - after[class];
        fate.excess[class] = goes;
        fate.beyond[class] += goes;
        fate.departures[class] += goes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_classes_become_equally_long() {
        // Packets of a hundred bytes in the last class take as much room as those of a thousand.
        let room = Room { limit: 10.0, of_byte: [1e-3, 1e-3, 1e-2].into() };
        let lowered = |held: [f64; 3]| {
            let mut held = held;
            room.lower(&mut held);
            held
        };
        assert_eq!(lowered([9000.0, 3000.0, 0.0]), [7000.0, 3000.0, 0.0]);
        assert_eq!(lowered([9000.0, 7000.0, 0.0]), [5000.0, 5000.0, 0.0]);
        // Of as many bytes, small packets are more.
        let all = lowered([1000.0, 7000.0, 900.0]);
        assert!(all.iter().all(|held| (held - 10.0 / 0.012).abs() < 1e-9), "{all:?}");
    }
}
