//! Packets become frames, and frames wait for those that they need.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use sojourn_core::{RtpBody, RtpStream, Time};

/// A frame of which all packets arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Whole {
    pub(crate) number: u32,
    pub(crate) captured: Time,
    pub(crate) is_key: bool,
    /// Bytes of payload.
    pub(crate) bytes: u32,
    pub(crate) first_arrival: Time,
    pub(crate) completed: Time,
    /// A packet of it was sent again.
    pub(crate) was_repaired: bool,
    /// The sequence number of its first packet.
    pub(crate) sequence: u32,
}

#[derive(Clone, Debug)]
struct Slot {
    whole: Whole,
    parts: u16,
    arrived: Parts,
    missing: u16,
    is_known: bool,
}

/// A bit for each part of a frame that arrived; the first 64 parts need no allocation.
#[derive(Clone, Debug, Default)]
struct Parts {
    first: u64,
    others: Vec<u64>,
}

impl Parts {
    fn none_of(parts: u16) -> Self {
        Self { first: 0, others: alloc::vec![0; usize::from(parts).div_ceil(64).saturating_sub(1)] }
    }

    /// Notes a part; true if it is one of the frame's and is new.
    fn insert(&mut self, part: u16) -> bool {
        let bit = 1_u64 << (part % 64);
        let word = match part < 64 {
            true => Some(&mut self.first),
            false => self.others.get_mut(usize::from(part / 64 - 1)),
        };
        word.is_some_and(|word| {
            let is_new = *word & bit == 0;
            *word |= bit;
            is_new
        })
    }
}

/// Frames in order, from the one that is to be decoded next.
#[derive(Clone, Debug)]
pub(crate) struct Assembler {
    next: u32,
    /// The number of the first packet of the next frame, as far as it is known, and of the newest packet.
    origin: u32,
    newest: u32,
    slots: VecDeque<Slot>,
    /// Nothing but a key frame can be decoded.
    needs_key: bool,
}

impl Assembler {
    /// The first frame must be a key frame.
    pub(crate) fn new() -> Self {
        Self { next: 0, origin: 0, newest: 0, slots: VecDeque::new(), needs_key: true }
    }

    /// Takes a packet of video with its payload in bytes; returns the frame that it completes.
    #[inline(always)]
    pub(crate) fn on_packet(&mut self, now: Time, rtp: &RtpBody, payload: u32) -> Option<Whole> {
        let at = rtp.frame.checked_sub(self.next)? as usize;
        self.newest = self.newest.max(rtp.sequence);
        while self.slots.len() <= at {
            let number = self.next + self.slots.len() as u32;
            self.slots.push_back(Slot::unknown(number));
        }
        let slot = &mut self.slots[at];
        if !slot.is_known {
            slot.begin(now, rtp);
        }
        if !slot.arrived.insert(rtp.part) {
            return None;
        }
        slot.missing -= 1;
        slot.whole.bytes += payload;
        slot.whole.was_repaired |= rtp.stream == RtpStream::Repair;
        slot.whole.completed = now;
        (slot.missing == 0).then_some(slot.whole)
    }

    /// The next frame that can be decoded, and how many frames before it are given up.
    #[inline(always)]
    pub(crate) fn pop(&mut self) -> Option<(Whole, u32)> {
        let front_is_good = self
            .slots
            .front()
            .is_some_and(|slot| slot.is_whole() && (!self.needs_key || slot.whole.is_key));
        let at = match front_is_good {
            true => 0,
            // A key frame needs no frame before it.
            false => self.slots.iter().position(|slot| slot.is_whole() && slot.whole.is_key)?,
        };
        let whole = self.slots[at].whole;
        // Nearly always it is the first one.
        match at {
            0 => drop(self.slots.pop_front()),
            _ => drop(self.slots.drain(..=at)),
        }
        self.next = whole.number + 1;
        self.needs_key = false;
        Some((whole, at as u32))
    }

    /// The next frame, if it is whole and a packet of a later one has come; also if it refers to a frame
    /// that was given up.
    pub(crate) fn pop_behind_next(&mut self) -> Option<Whole> {
        let slot = self.slots.front().filter(|slot| slot.is_whole())?;
        let (whole, parts) = (slot.whole, slot.parts);
        if self.slots.len() < 2 {
            return None;
        }
        self.slots.pop_front();
        self.origin = whole.sequence + u32::from(parts);
        self.next = whole.number + 1;
        self.needs_key = false;
        Some(whole)
    }

    /// The first frame of which a packet came.
    pub(crate) fn next_known(&self) -> Option<Whole> {
        self.slots.iter().find(|slot| slot.is_known).map(|slot| slot.whole)
    }

    /// If the newest packet is `most` packets or more behind the first one that it waits for, gives up as many
    /// frames as bring it nearer; returns how many.
    pub(crate) fn give_up(&mut self, most: u32) -> u32 {
        let mut given_up = 0;
        while self.newest.saturating_sub(self.origin) >= most && self.slots.len() > 1 {
            self.slots.pop_front();
            self.next += 1;
            given_up += 1;
            if let Some(slot) = self.slots.front().filter(|slot| slot.is_known) {
                self.origin = slot.whole.sequence;
            }
        }
        given_up
    }

    /// A packet far behind the frames that it waits for empties aiortc's buffer, which begins anew with that packet;
    /// true if this one did.
    pub(crate) fn begin_anew(&mut self, rtp: &RtpBody) -> bool {
        let is_far = self.origin.saturating_sub(rtp.sequence) >= MOST_DISORDER;
        if is_far {
            self.slots.clear();
            self.next = rtp.frame;
            (self.origin, self.newest) = (rtp.sequence, rtp.sequence);
        }
        is_far
    }

    pub(crate) fn needs_key(&self) -> bool {
        self.needs_key
    }
}

/// A packet this far behind is taken for one of a new order.
const MOST_DISORDER: u32 = 100;

impl Slot {
    fn unknown(number: u32) -> Self {
        let whole = Whole {
            number,
            captured: Time::ZERO,
            is_key: false,
            bytes: 0,
            first_arrival: Time::ZERO,
            completed: Time::ZERO,
            was_repaired: false,
            sequence: 0,
        };
        Self { whole, parts: 0, arrived: Parts::default(), missing: 0, is_known: false }
    }

    #[inline(always)]
    fn begin(&mut self, now: Time, rtp: &RtpBody) {
        self.is_known = true;
        self.parts = rtp.parts;
        self.missing = rtp.parts;
        self.arrived = Parts::none_of(rtp.parts);
        self.whole.captured = rtp.captured;
        self.whole.is_key = rtp.is_key;
        self.whole.first_arrival = now;
        self.whole.sequence = rtp.sequence - u32::from(rtp.part);
    }

    fn is_whole(&self) -> bool {
        self.is_known && self.missing == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(frame: u32, part: u16, parts: u16, is_key: bool) -> RtpBody {
        RtpBody {
            number: 0,
            transport: 0,
            sequence: 10 * frame + u32::from(part),
            header_sequence: 0,
            frame,
            captured: Time::from_nanos(u64::from(frame)),
            stamp: Time::from_nanos(u64::from(frame)),
            part,
            parts,
            stream: RtpStream::Video,
            is_key,
        }
    }

    fn at(ns: u64) -> Time {
        Time::from_nanos(ns)
    }

    #[test]
    fn a_frame_is_whole_with_its_last_packet_and_a_second_copy_counts_nothing() {
        let mut assembler = Assembler::new();
        assert_eq!(assembler.on_packet(at(1), &packet(0, 1, 2, true), 100), None);
        assert_eq!(assembler.on_packet(at(2), &packet(0, 1, 2, true), 100), None);
        let whole = assembler.on_packet(at(3), &packet(0, 0, 2, true), 50).expect("it is whole");
        assert_eq!((whole.bytes, whole.first_arrival, whole.completed), (150, at(1), at(3)));
        assert_eq!(assembler.pop(), Some((whole, 0)));
        assert_eq!(assembler.on_packet(at(4), &packet(0, 0, 2, true), 50), None);
    }

    #[test]
    fn a_frame_waits_for_the_one_before_and_a_key_frame_for_none() {
        let mut assembler = Assembler::new();
        assembler.on_packet(at(1), &packet(0, 0, 1, true), 1);
        assert!(assembler.pop().is_some());
        assembler.on_packet(at(2), &packet(2, 0, 1, false), 1);
        assert_eq!(assembler.pop(), None);
        assembler.on_packet(at(3), &packet(4, 0, 1, true), 1);
        let (key, dropped) = assembler.pop().expect("a key frame");
        assert_eq!((key.number, dropped), (4, 3));
    }

    /// Frames have numbers of packets that begin ten apart: frame 1 lacks its second packet, 11.
    #[test]
    fn without_a_playout_a_frame_waits_for_the_next_one_and_a_gap_for_many_packets() {
        let mut assembler = Assembler::new();
        for part in 0..10 {
            assembler.on_packet(at(1), &packet(0, part, 10, true), 1);
        }
        assert_eq!(assembler.pop_behind_next(), None);
        assembler.on_packet(at(2), &packet(1, 0, 2, false), 1);
        assert_eq!(assembler.pop_behind_next().map(|whole| whole.number), Some(0));
        for frame in 2..8 {
            assembler.on_packet(at(3), &packet(frame, 0, 1, false), 1);
        }
        // The newest packet is number 70, the first one that is awaited number 10.
        assert_eq!((assembler.pop_behind_next(), assembler.give_up(61)), (None, 0));
        assert_eq!(assembler.give_up(60), 1);
        assert_eq!(assembler.pop_behind_next().map(|whole| whole.number), Some(2));
    }

    #[test]
    fn without_a_playout_a_copy_that_is_far_too_late_begins_anew() {
        let mut assembler = Assembler::new();
        for frame in 0..13 {
            assembler.on_packet(at(1), &packet(frame, 0, 1, frame == 0), 1);
            assembler.pop_behind_next();
        }
        assert!(!assembler.begin_anew(&packet(2, 0, 1, false)));
        assert!(assembler.begin_anew(&packet(1, 0, 1, false)));
        assembler.on_packet(at(2), &packet(1, 0, 1, false), 1);
        assembler.on_packet(at(2), &packet(13, 0, 1, false), 1);
        assert_eq!(assembler.pop_behind_next().map(|whole| whole.number), Some(1));
        assert_eq!((assembler.pop_behind_next(), assembler.give_up(120)), (None, 0));
        // Frames 2 to 12 came before and are gone.
        assert_eq!(assembler.give_up(100), 11);
    }

    #[test]
    fn the_first_frame_that_is_decoded_is_a_key_frame() {
        let mut assembler = Assembler::new();
        assembler.on_packet(at(1), &packet(0, 0, 1, false), 1);
        assert_eq!(assembler.pop(), None);
        assembler.on_packet(at(2), &packet(1, 0, 1, true), 1);
        assert_eq!(assembler.pop().map(|(whole, dropped)| (whole.number, dropped)), Some((1, 1)));
    }
}
