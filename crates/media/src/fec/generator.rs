//! Which packets of video share packets of parity.
//!
//! As libwebrtc does, parity covers one frame, or several while it would be much more than wanted.

use alloc::vec::Vec;

use super::parity::{MOST_PACKETS, Parity, Protected};

/// How much parity is wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Amount {
    /// Packets of parity for each of video.
    pub(crate) per_packet: f64,
    /// Over how many frames at most.
    pub(crate) frames: u32,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Generator {
    amount: Amount,
    group: Vec<Protected>,
    frames: u32,
}

/// So much more parity for each packet than is wanted is too much.
const MOST_EXCESS: f64 = 50.0 / 255.0;
/// With more parity than this it covers four packets or more.
const STRONG: f64 = 80.0 / 255.0;

impl Generator {
    /// A packet of video left. `amount` is asked for how much parity is wanted if a group begins with it. Returns parity if the
    /// group is complete.
    pub(crate) fn add(
        &mut self,
        packet: &Protected,
        amount: impl FnOnce() -> Amount,
    ) -> Vec<Parity> {
        if self.group.is_empty() {
            self.amount = amount();
            self.frames = 0;
        }
        if self.amount.per_packet == 0.0 {
            return Vec::new();
        }
        let is_near = |first: &Protected| packet.sequence - first.sequence < MOST_PACKETS;
        if self.group.first().is_none_or(is_near) {
            self.group.push(*packet);
        }
        if packet.part + 1 < packet.parts {
            return Vec::new();
        }
        self.frames += 1;
        let rows = self.rows();
        if self.frames < self.amount.frames && (self.is_excessive(rows) || !self.is_enough()) {
            return Vec::new();
        }
        let parity = parity_of(&self.group, rows);
        self.group.clear();
        parity
    }

    /// Packets of parity that the group would get.
    fn rows(&self) -> usize {
        let packets = self.group.len();
        let rows = libm::floor(packets as f64 * self.amount.per_packet + 0.5) as usize;
        rows.clamp(1, packets)
    }

    fn is_excessive(&self, rows: usize) -> bool {
        rows as f64 / self.group.len() as f64 - self.amount.per_packet >= MOST_EXCESS
    }

    /// Longer groups are better at the same share.
    fn is_enough(&self) -> bool {
        let least = if self.amount.per_packet > STRONG { 4 } else { 1 };
        let packets = self.group.len();
        match packets < 2 * self.frames as usize {
            true => packets >= least,
            false => packets > least,
        }
    }
}

/// Each packet is in one of `rows`, neighbours in different ones, so that losses in a row can be restored.
fn parity_of(group: &[Protected], rows: usize) -> Vec<Parity> {
    let Some(first) = group.first() else { return Vec::new() };
    let mut parity = alloc::vec![Parity::new(first.sequence); rows];
    for (at, packet) in group.iter().enumerate() {
        parity[at % rows].add(packet);
    }
    parity
}

#[cfg(test)]
mod tests {
    use sojourn_core::Time;

    use super::*;

    /// The masks of parity behind frames of so many packets.
    fn masks(frames: &[u16], amount: Amount) -> Vec<Vec<u64>> {
        let mut generator = Generator::default();
        let mut sequence = 100;
        let mut masks = Vec::new();
        for (frame, parts) in (0..).zip(frames) {
            let mut parity = Vec::new();
            for part in 0..*parts {
                let packet = Protected {
                    sequence,
                    frame,
                    part,
                    parts: *parts,
                    captured: Time::ZERO,
                    is_key: false,
                    length: 1000,
                };
                parity.extend(generator.add(&packet, || amount));
                sequence += 1;
            }
            masks.push(parity.iter().map(|parity| parity.mask).collect());
        }
        masks
    }

    fn amount(per_packet: f64, frames: u32) -> Amount {
        Amount { per_packet, frames }
    }

    #[test]
    fn as_many_packets_follow_a_frame_as_its_share_says_and_one_at_least() {
        assert_eq!(masks(&[8], amount(0.25, 1)), [[0b01010101, 0b10101010]]);
        assert_eq!(masks(&[3], amount(0.05, 1)), [[0b111]]);
        assert_eq!(masks(&[4], amount(0.0, 1)), [[0; 0]]);
    }

    /// One packet of parity for two of video is more than the wanted quarter by more than a fifth.
    #[test]
    fn parity_waits_for_more_frames_while_it_would_be_too_much() {
        assert_eq!(masks(&[2, 2], amount(0.25, 6)), [vec![], vec![0b1111]]);
        assert_eq!(masks(&[2, 2], amount(0.25, 1)), [vec![0b11], vec![0b11]]);
        assert_eq!(masks(&[1, 1, 1], amount(0.05, 3)), [vec![], vec![], vec![0b111]]);
    }

    #[test]
    fn much_parity_covers_more_than_four_packets() {
        assert_eq!(masks(&[4, 4], amount(0.5, 6))[0], [0; 0]);
        assert_eq!(masks(&[4, 4], amount(0.5, 6))[1].len(), 4);
    }

    #[test]
    fn what_the_mask_has_no_room_for_is_not_protected() {
        let masks = masks(&[60], amount(0.1, 1));
        let covered: u32 = masks[0].iter().map(|mask| mask.count_ones()).sum();
        assert_eq!((masks[0].len(), covered), (5, 48));
    }
}
