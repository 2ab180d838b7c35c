//! A running digest of what packets did and when.
//!
//! Each flow and each link has a digest of its own, so the order in which two of them report does
//! not matter. A packet enters the digest where its way ends, when it arrives or is dropped, and
//! when it is marked; the time when it was sent is part of that. Waiting times enter as a sum for
//! each queue, and packets that are under way at the end of the run as counts of what was sent.

use sojourn_core::{Packet, Queued, Time};

/// Order-dependent: each event multiplies the state with a word of its own and folds the product,
/// which is the step of wyhash (Wang Yi). The fields of an event are combined into that word where
/// they seldom use the same bits.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Digest(u64);

/// What happened to a packet, as an odd constant with scattered bits.
#[derive(Clone, Copy)]
#[repr(u64)]
pub(super) enum Kind {
    Arrived = 0xa076_1d64_78bd_642f,
    Dropped = 0x8ebc_6af0_9c88_c6e3,
    Marked = 0x5899_65cc_7537_4cc3,
    Part = 0x9e37_79b9_7f4a_7c15,
    Total = 0x1d8e_4e27_c47d_124f,
}

impl Digest {
    pub(super) fn value(self) -> u64 {
        self.0
    }

    /// A packet arrives, with its number in the flow.
    #[inline(always)]
    pub(super) fn arrived(&mut self, now: Time, packet: &Packet, number: u32) {
        let what = packet.sent.as_nanos() ^ u64::from(number) << 32 ^ size(packet);
        self.mix(when(now, packet), what ^ Kind::Arrived as u64);
    }

    /// What happens to a packet at a link.
    #[inline(always)]
    pub(super) fn at_link(&mut self, kind: Kind, now: Time, packet: &Packet) {
        let what = packet.sent.as_nanos() ^ size(packet);
        self.mix(when(now, packet), what ^ kind as u64);
    }

    /// The digest of one flow or link.
    pub(super) fn part(&mut self, part: Self) {
        self.mix(part.0, Kind::Part as u64);
    }

    /// A number of the whole run.
    pub(super) fn total(&mut self, count: u64) {
        self.mix(count, Kind::Total as u64);
    }

    #[inline(always)]
    fn mix(&mut self, when: u64, what: u64) {
        let product = u128::from(self.0 ^ when) * u128::from(what);
        self.0 = product as u64 ^ (product >> 64) as u64;
    }
}

#[inline(always)]
fn when(now: Time, packet: &Packet) -> u64 {
    now.as_nanos() ^ u64::from(packet.flow.0) << 44
}

#[inline(always)]
fn size(packet: &Packet) -> u64 {
    u64::from(packet.ip_len()).rotate_left(52)
}
