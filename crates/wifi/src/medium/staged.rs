//! Packets in the access point's hardware, as mac80211's airtime queue limits let them in.
//!
//! They wait by access category and station, and an aggregate is put together of those that are there when it is sent. What a packet will
//! take on the air is estimated when it comes: its share of an aggregate of usual size, as mac80211 does.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use sojourn_core::{Queued, Span};

use super::CATEGORIES;
use crate::mac::edca::AccessCategory;
use crate::phy::{Format, Mode};
use crate::store::{Chain, Slot, Store};

pub(super) struct Staged {
    limits: Limits,
    categories: [Category; CATEGORIES],
    /// Estimated time on the air of all that is here or has been sent and is not acknowledged, of all categories.
    all: Span,
}

/// What is there of one access category.
struct Category {
    stations: Vec<Station>,
    /// Stations that may have something to send.
    listed: Vec<u16>,
    came: u64,
    /// Its part of what is here.
    all: Span,
}

/// The airtime queue limits: `low` and `high` of a station in an access category, `total` of all.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) low: Span,
    pub(super) high: Span,
    pub(super) total: Span,
}

struct Station {
    /// Numbered in the order in which packets came.
    packets: Chain,
    is_listed: bool,
    own: Span,
    /// Of each packet that `own` counts.
    estimates: VecDeque<Span>,
}

/// Octets of a header, a trailer and LLC that a packet gets.
const HEADERS: u64 = 38;

/// What a packet takes in a mode.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cost {
    /// Preambles and the like of a packet alone, and its share of them in an aggregate of usual size.
    alone: Span,
    share: Span,
    per_kib: Span,
}

impl Cost {
    pub(super) fn new(mode: &Mode) -> Self {
        let per_kib = (mode.txtime(33 << 10) - mode.txtime(1 << 10)) / 32;
        let usual: u64 = match per_kib.as_micros() {
            _ if mode.format() <= Format::NonHt => 1,
            401.. => 2,
            251.. => 4,
            151.. => 8,
            71.. => 16,
            time if time > 20 || mode.format() <= Format::HtMixed => 32,
            _ => 64,
        };
        let alone = mode.preamble();
        Self { alone, share: alone / usual, per_kib }
    }

    fn of(&self, ip_len: u32, aggregates: bool) -> Span {
        let nanos = self.per_kib.as_nanos() * (u64::from(ip_len) + HEADERS) / 1024;
        let overhead = if aggregates { self.share } else { self.alone };
        overhead + Span::from_nanos(nanos)
    }
}

impl Staged {
    pub(super) fn new(stations: usize, limits: Limits) -> Self {
        let station = || Station {
            packets: Chain::EMPTY,
            is_listed: false,
            own: Span::ZERO,
            estimates: VecDeque::new(),
        };
        let category = || Category {
            stations: (0..stations).map(|_| station()).collect(),
            listed: Vec::new(),
            came: 0,
            all: Span::ZERO,
        };
        Self { limits, categories: core::array::from_fn(|_| category()), all: Span::ZERO }
    }

    /// Returns what the packet is taken to need on the air.
    pub(super) fn push<P: Queued + Copy>(
        &mut self,
        (ac, station): (AccessCategory, usize),
        slot: Slot,
        cost: &Cost,
        aggregates: bool,
        store: &mut Store<P>,
    ) -> Span {
        let Category { stations, listed, came, all } = &mut self.categories[ac as usize];
        let of = &mut stations[station];
        let estimate = cost.of(store.released(slot).ip_len, aggregates);
        *came += 1;
        store.append_numbered(&mut of.packets, slot, *came);
        of.estimates.push_back(estimate);
        of.own += estimate;
        *all += estimate;
        self.all += estimate;
        if !of.is_listed {
            of.is_listed = true;
            listed.push(station as u16);
        }
        estimate
    }

    /// The packets that wait for a station.
    #[inline]
    pub(super) fn packets(&mut self, ac: usize, station: usize) -> &mut Chain {
        &mut self.categories[ac].stations[station].packets
    }

    /// So many packets of a station are delivered or given up. Returns what they were taken to need.
    pub(super) fn release(&mut self, ac: AccessCategory, station: usize, packets: u32) -> Span {
        let Category { stations, all, .. } = &mut self.categories[ac as usize];
        let of = &mut stations[station];
        let estimates = of.estimates.drain(..(packets as usize).min(of.estimates.len()));
        let released = estimates.fold(Span::ZERO, |sum, estimate| sum + estimate);
        of.own = of.own.saturating_sub(released);
        *all = all.saturating_sub(released);
        self.all = self.all.saturating_sub(released);
        released
    }

    /// Whether anything of the category can be sent. `repeats` says which stations have frames to send again.
    pub(super) fn has_any(&mut self, ac: AccessCategory, repeats: impl Fn(usize) -> bool) -> bool {
        let Category { stations, listed, .. } = &mut self.categories[ac as usize];
        listed.retain(|station| {
            let of = &mut stations[usize::from(*station)];
            of.is_listed = !of.packets.is_empty() || repeats(usize::from(*station));
            of.is_listed
        });
        !listed.is_empty()
    }

    /// The next station after `before` by when its first packet came: those with frames to send again come first.
    pub(super) fn next_after<P: Queued + Copy>(
        &self,
        ac: usize,
        before: Option<(u64, usize)>,
        repeats: impl Fn(usize) -> bool,
        store: &Store<P>,
    ) -> Option<(u64, usize)> {
        let Category { stations, listed, .. } = &self.categories[ac];
        listed
            .iter()
            .map(|station| {
                let station = usize::from(*station);
                match store.first(&stations[station].packets) {
                    Some(first) if !repeats(station) => (first.order, station),
                    _ => (0, station),
                }
            })
            .filter(|turn| before.is_none_or(|before| *turn > before))
            .min()
    }

    pub(super) fn airtime(&self) -> Span {
        self.all
    }

    /// Whether there is as much as the total allows.
    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.all >= self.limits.total
    }

    /// Whether the category is served again while packets wait for so many stations: when `high` is left for one of them and
    /// half of `low` for each other. Else one station after the other would be let in as soon as it has less than its
    /// limits, however long it was on the air.
    #[inline]
    pub(super) fn is_served(&self, ac: AccessCategory, waiting: usize) -> bool {
        let Limits { low, high, .. } = self.limits;
        self.categories[ac as usize].all < high + low * waiting.saturating_sub(1) as u64 / 2
    }

    /// Whether a station has as much of the category here as the airtime queue limits allow.
    #[inline]
    pub(super) fn has_enough(&self, ac: AccessCategory, station: usize) -> bool {
        let Limits { low, high, .. } = self.limits;
        let own = self.categories[ac as usize].stations[station].own;
        own >= low && (own >= high || self.is_full())
    }
}
