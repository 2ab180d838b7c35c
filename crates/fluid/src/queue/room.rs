//! How much may wait in a fair queue.

use alloc::vec::Vec;

use super::{Due, Member, Seen};

/// A limit of all classes together.
#[derive(Clone, Debug)]
pub(super) struct Room {
    limit: f64,
    /// What a byte of each class takes of it.
    of_byte: Vec<f64>,
    /// Bytes of a packet of each class.
    packets: Vec<f64>,
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
        Self {
            limit,
            of_byte: members.iter().map(|member| of_packet(member) / member.packet).collect(),
            packets: members.iter().map(|member| member.packet).collect(),
        }
    }

    /// What does not fit goes from the head of the class with the most bytes, which is returned.
    pub(super) fn make(&self, seen: &Seen<'_>, due: &mut Vec<Due>) -> Option<usize> {
        let taken = seen.backlogs.iter().zip(&self.of_byte).map(|(held, of)| held * of);
        let excess = taken.sum::<f64>() - self.limit;
        if excess <= 0.0 {
            return None;
        }
        let classes = 0..seen.backlogs.len();
        let class = classes.max_by(|a, b| seen.backlogs[*a].total_cmp(&seen.backlogs[*b]))?;
        let packets = libm::ceil(excess / self.of_byte[class] / self.packets[class]) as u32;
        due.push(Due { class, packets, at_tail: false, may_mark: false, is_excess: true });
        Some(class)
    }
}
