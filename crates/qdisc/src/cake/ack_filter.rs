//! Drops acknowledgements that a newer one in the same queue makes superfluous.

use core::cmp::Ordering;

use sojourn_core::{PureAck, Queued, SackBlock};

use crate::slab::{Fifo, Slab};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckFilter {
    Off,
    /// Keeps the newest two of a run: when two older acknowledgements are superseded, the oldest
    /// goes.
    Filter,
    /// Keeps one: a single one that is directly before the newest may go, too.
    Aggressive,
}

sojourn_core::keywords! {
    pub(crate) AckFilterWord for AckFilter {
        "ack-filter" = AckFilter::Filter, "drop an acknowledgement that two newer ones supersede";
        "ack-filter-aggressive" = AckFilter::Aggressive,
            "drop an acknowledgement that a newer one supersedes";
        "no-ack-filter" = AckFilter::Off, "keep acknowledgements";
    }
}

impl AckFilter {
    /// The position, from the head, of the acknowledgement that can be dropped because of the
    /// packet at the tail: the oldest that is superseded.
    pub(crate) fn superseded<P: Queued + Copy>(
        self,
        packets: &Slab<P>,
        fifo: Fifo,
    ) -> Option<usize> {
        let tail = packets.tail(fifo)?;
        let newest = tail.pure_ack()?;
        let key = tail.flow_key();
        let mut eligible: Option<(usize, u8)> = None;
        let mut found = 0;
        let mut older = packets.iter(fifo).enumerate().peekable();
        let mut last = 0;
        while let Some((position, packet)) = older.next() {
            if older.peek().is_none() {
                last = position;
                break;
            }
            if packet.flow_key() != key {
                continue;
            }
            let Some(ack) = packet.pure_ack() else { continue };
            // Dropping the earlier one would lose a change of the ECN flags.
            if eligible.is_some_and(|(_, flags)| flags != ack.ecn_flags) {
                eligible = None;
                found -= 1;
            }
            if !supersedes(&newest, &ack) {
                continue;
            }
            let (oldest, _) = *eligible.get_or_insert((position, ack.ecn_flags));
            if found > 0 {
                return Some(oldest);
            }
            found += 1;
        }
        let (position, flags) = eligible?;
        let is_adjacent = position + 1 == last;
        (self == Self::Aggressive && is_adjacent && flags == newest.ecn_flags).then_some(position)
    }
}

/// `newest` says all that `older` says, and more.
fn supersedes(newest: &PureAck, older: &PureAck) -> bool {
    if older.ack > newest.ack || older.timestamp > newest.timestamp {
        return false;
    }
    match compare_sacks(older, newest) {
        Ordering::Less => true,
        Ordering::Equal => older.ack < newest.ack,
        Ordering::Greater => false,
    }
}

/// Less if `newer` reports all that `older` does and more bytes; greater if `older` reports
/// something that `newer` does not, or a duplicate.
fn compare_sacks(older: &PureAck, newer: &PureAck) -> Ordering {
    let (old, new) = (blocks(older), blocks(newer));
    if old.is_empty() || new.is_empty() {
        return old.len().cmp(&new.len());
    }
    let is_covered = |block: &SackBlock| {
        new.iter().any(|other| other.start <= block.start && other.end >= block.end)
    };
    let is_duplicate = |block: &SackBlock| u64::from(block.start) < older.ack;
    if old.iter().any(|block| is_duplicate(block) || !is_covered(block)) {
        return Ordering::Greater;
    }
    let total = |blocks: &[SackBlock]| -> u32 {
        blocks.iter().map(|block| block.end.saturating_sub(block.start)).sum()
    };
    if total(new) > total(old) { Ordering::Less } else { Ordering::Equal }
}

fn blocks(ack: &PureAck) -> &[SackBlock] {
    &ack.sack[..usize::from(ack.sack_count).min(ack.sack.len())]
}
