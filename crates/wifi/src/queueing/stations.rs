//! Which station is served: in turn, or by airtime, algorithm 3 of "Ending the Anomaly", section 3.2.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use sojourn_core::Span;

use crate::mac::edca::AccessCategory;

const CATEGORIES: usize = AccessCategory::COUNT;

/// How stations take turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Schedule {
    /// An aggregate each.
    RoundRobin,
    /// By a deficit of airtime.
    Airtime(Airtime),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Airtime {
    /// Added to a deficit that is used up.
    pub quantum: Span,
    /// A station that had nothing is served before the others until its first quantum is used up.
    pub sparse_first: bool,
    /// A new station that is found empty waits once among the old ones, so that it can't come back
    /// as new at once.
    pub passes_through_old: bool,
    /// A deficit of exactly zero is used up.
    pub refills_at_zero: bool,
}

impl Schedule {
    /// The weight of a station for which a round adds the quantum.
    pub const WEIGHT: u16 = 256;
    /// ath9k with the paper's changes.
    pub const PAPER: Self = Self::Airtime(Airtime {
        quantum: Span::from_micros(300),
        sparse_first: true,
        passes_through_old: true,
        refills_at_zero: true,
    });
    /// mac80211 since Linux 6.18: a station that gets packets goes to the head of the list and
    /// stays there until its deficit is negative; a weight of 256 adds 256 µs.
    pub const LINUX: Self = Self::Airtime(Airtime {
        quantum: Span::from_micros(256),
        sparse_first: true,
        passes_through_old: false,
        refills_at_zero: false,
    });

    /// Whether a new station that is found empty waits among the old ones. Otherwise one that is found empty leaves.
    const fn waits_once(self) -> bool {
        matches!(self, Self::Airtime(Airtime { passes_through_old: true, .. }))
    }

    /// Below this, in nanoseconds, a deficit is used up.
    fn least_deficit(self) -> Option<i64> {
        match self {
            Self::RoundRobin => None,
            Self::Airtime(airtime) => Some(i64::from(airtime.refills_at_zero)),
        }
    }
}

pub(crate) struct Stations {
    schedule: Schedule,
    /// By station, what a round adds to a deficit, in nanoseconds.
    quanta: Vec<i64>,
    lists: [Lists; CATEGORIES],
    /// By station and access category.
    deficits: Vec<i64>,
    is_listed: Vec<bool>,
    /// By access category, nothing has changed since it was noted whose turn it is.
    is_noted: [bool; CATEGORIES],
}

#[derive(Default)]
struct Lists {
    new: VecDeque<u16>,
    old: VecDeque<u16>,
}

impl Stations {
    pub(crate) fn new(schedule: Schedule, stations: usize) -> Self {
        let quantum = match schedule {
            Schedule::Airtime(airtime) => airtime.quantum.as_nanos() as i64,
            Schedule::RoundRobin => 0,
        };
        Self {
            schedule,
            quanta: alloc::vec![quantum; stations],
            lists: Default::default(),
            deficits: alloc::vec![0; stations * CATEGORIES],
            is_listed: alloc::vec![false; stations * CATEGORIES],
            is_noted: [false; CATEGORIES],
        }
    }

    /// A station of twice the weight gets twice the airtime; all begin with [`Schedule::WEIGHT`].
    pub(crate) fn weigh(&mut self, weights: impl Iterator<Item = u16>) {
        for (quantum, weight) in self.quanta.iter_mut().zip(weights) {
            *quantum = (*quantum * i64::from(weight) / i64::from(Schedule::WEIGHT)).max(1);
        }
    }

    /// The station has packets of the category.
    #[inline(always)]
    pub(crate) fn join(&mut self, ac: AccessCategory, station: usize) {
        let index = station * CATEGORIES + ac as usize;
        if !self.is_listed[index] {
            self.list(ac, station, index);
        }
    }

    #[inline(never)]
    fn list(&mut self, ac: AccessCategory, station: usize, index: usize) {
        self.is_listed[index] = true;
        self.is_noted[ac as usize] = false;
        let lists = &mut self.lists[ac as usize];
        match self.schedule {
            Schedule::Airtime(Airtime { sparse_first: true, passes_through_old, .. }) => {
                if passes_through_old {
                    self.deficits[index] = self.quanta[station];
                }
                lists.new.push_back(station as u16);
            }
            _ => lists.old.push_back(station as u16),
        }
    }

    /// The station has used the medium.
    pub(crate) fn charge(&mut self, ac: AccessCategory, station: usize, airtime: Span) {
        self.deficits[station * CATEGORIES + ac as usize] -= airtime.as_nanos() as i64;
        self.is_noted[ac as usize] = false;
    }

    /// What was charged in advance is taken back.
    pub(crate) fn refund(&mut self, ac: AccessCategory, station: usize, airtime: Span) {
        self.deficits[station * CATEGORIES + ac as usize] += airtime.as_nanos() as i64;
        self.is_noted[ac as usize] = false;
    }

    /// Whether the station whose turn it is keeps it until it has used the medium or another one has
    /// packets; notes whose turn it is.
    pub(crate) fn keeps_turn(&mut self, ac: AccessCategory) -> bool {
        let keeps = self.schedule != Schedule::RoundRobin;
        self.is_noted[ac as usize] = keeps;
        keeps
    }

    /// Whether it is still the turn of the station that was noted.
    #[inline]
    pub(crate) fn has_same_turn(&self, ac: AccessCategory) -> bool {
        self.is_noted[ac as usize]
    }

    /// How many stations wait for their turn, those included that were found empty by nobody yet.
    #[inline]
    pub(crate) fn listed(&self, ac: AccessCategory) -> usize {
        let lists = &self.lists[ac as usize];
        lists.old.len() + lists.new.len()
    }

    /// The station whose turn it is. `is_empty` says which stations have nothing, `is_held` which
    /// have enough in the hardware. Rounds go on until the turn comes to a station that is not held.
    pub(crate) fn choose(
        &mut self,
        ac: AccessCategory,
        is_empty: impl Fn(usize) -> bool,
        is_held: impl Fn(usize) -> bool,
    ) -> Option<usize> {
        let (waits_once, least) = (self.schedule.waits_once(), self.schedule.least_deficit());
        self.skip_rounds(ac, |station| is_held(station) || (!waits_once && is_empty(station)));
        let lists = &mut self.lists[ac as usize];
        // Held stations in a row.
        let mut held = 0;
        while held < lists.old.len() + lists.new.len() {
            let is_new = !lists.new.is_empty();
            let list = if is_new { &mut lists.new } else { &mut lists.old };
            let first = *list.front()?;
            let station = usize::from(first);
            let index = station * CATEGORIES + ac as usize;
            if !waits_once && is_empty(station) {
                list.pop_front();
                self.is_listed[index] = false;
                continue;
            }
            let is_held = is_held(station);
            if least.is_some_and(|least| self.deficits[index] < least) {
                self.deficits[index] += self.quanta[station];
                list.pop_front();
                lists.old.push_back(first);
                held = if is_held { held + 1 } else { 0 };
                continue;
            }
            if waits_once && is_empty(station) {
                list.pop_front();
                if is_new {
                    lists.old.push_back(first);
                } else {
                    self.is_listed[index] = false;
                }
                continue;
            }
            if is_held || self.schedule == Schedule::RoundRobin {
                list.pop_front();
                lists.old.push_back(first);
            }
            if !is_held {
                return Some(station);
            }
            held += 1;
        }
        None
    }

    /// While every deficit is used up, but for those of stations that `can_not` be chosen, a round gives each station a
    /// quantum that lacks one and keeps their order: all rounds but the last are done at once.
    fn skip_rounds(&mut self, ac: AccessCategory, can_not: impl Fn(usize) -> bool) {
        let Some(least) = self.schedule.least_deficit() else { return };
        let lists = &self.lists[ac as usize];
        if !lists.new.is_empty() {
            return;
        }
        let index = |station: usize| station * CATEGORIES + ac as usize;
        let mut rounds = 0;
        for station in lists.old.iter().copied().map(usize::from) {
            if can_not(station) {
                continue;
            }
            let (lacks, quantum) =
                (least - 1 - self.deficits[index(station)], self.quanta[station]);
            if lacks < quantum {
                return;
            }
            let own = lacks / quantum;
            rounds = if rounds == 0 { own } else { rounds.min(own) };
        }
        for station in lists.old.iter().copied().map(usize::from) {
            let (deficit, quantum) = (&mut self.deficits[index(station)], self.quanta[station]);
            if *deficit < least {
                let own = (least - 1 - *deficit) / quantum + 1;
                *deficit += rounds.min(own) * quantum;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BE: AccessCategory = AccessCategory::Be;

    #[test]
    fn airtime_is_shared_equally_by_aggregates_of_unequal_length() {
        let mut stations = Stations::new(Schedule::PAPER, 3);
        let costs = [3636, 1800, 4000].map(Span::from_micros);
        let mut used = [Span::ZERO; 3];
        for station in 0..3 {
            stations.join(BE, station);
        }
        for _ in 0..30_000 {
            let station = stations.choose(BE, |_| false, |_| false).unwrap();
            stations.charge(BE, station, costs[station]);
            used[station] += costs[station];
        }
        let total: f64 = used.iter().map(|span| span.as_secs_f64()).sum();
        for span in used {
            assert!((3.0 * span.as_secs_f64() / total - 1.0).abs() < 0.001, "{used:?}");
        }
    }

    #[test]
    fn airtime_follows_the_weights() {
        let mut stations = Stations::new(Schedule::LINUX, 3);
        stations.weigh([256, 512, 64].into_iter());
        let mut used = [0.0; 3];
        (0..3).for_each(|station| stations.join(BE, station));
        for turn in 0..30_000 {
            let station = stations.choose(BE, |_| false, |_| false).unwrap();
            let cost = Span::from_micros(1500 + 700 * (turn % 3));
            stations.charge(BE, station, cost);
            used[station] += cost.as_secs_f64();
        }
        let total: f64 = used.iter().sum();
        for (used, weight) in used.into_iter().zip([256.0, 512.0, 64.0]) {
            assert!((used / total * 832.0 / weight - 1.0).abs() < 0.002, "{used} of {total}");
        }
    }

    #[test]
    fn a_sparse_station_goes_first_unless_that_is_switched_off() {
        for sparse_first in [true, false] {
            let Schedule::Airtime(airtime) = Schedule::PAPER else { unreachable!() };
            let schedule = Schedule::Airtime(Airtime { sparse_first, ..airtime });
            let mut stations = Stations::new(schedule, 3);
            for station in 0..2 {
                stations.join(BE, station);
            }
            for _ in 0..4 {
                let station = stations.choose(BE, |_| false, |_| false).unwrap();
                stations.charge(BE, station, Span::from_micros(400));
            }
            // Part of a quantum, so that it is still the station's turn.
            let station = stations.choose(BE, |_| false, |_| false).unwrap();
            stations.charge(BE, station, Span::from_micros(100));
            stations.join(BE, 2);
            let next = stations.choose(BE, |_| false, |_| false).unwrap();
            assert_eq!(next == 2, sparse_first);
        }
    }

    #[test]
    fn a_station_with_room_is_chosen_however_many_rounds_it_lacks() {
        for weight in [1, 256, 20_000] {
            let mut stations = Stations::new(Schedule::LINUX, 3);
            stations.weigh([weight; 3].into_iter());
            (0..3).for_each(|station| stations.join(BE, station));
            for (station, millis) in [11, 5, 9].into_iter().enumerate() {
                stations.charge(BE, station, Span::from_millis(millis));
            }
            assert_eq!(stations.choose(BE, |_| false, |s| s != 0), Some(0), "{weight}");
        }
    }

    #[test]
    fn held_stations_get_no_more_than_they_lack() {
        let mut stations = Stations::new(Schedule::LINUX, 2);
        stations.weigh([1, 2].into_iter());
        (0..2).for_each(|station| stations.join(BE, station));
        stations.charge(BE, 0, Span::from_millis(50));
        stations.charge(BE, 1, Span::from_nanos(500));
        assert_eq!(stations.choose(BE, |_| false, |s| s == 1), Some(0));
        assert!((0..2_000).contains(&stations.deficits[CATEGORIES + BE as usize]));
    }

    #[test]
    fn an_empty_station_of_mac80211_leaves_with_its_debt() {
        let mut stations = Stations::new(Schedule::LINUX, 2);
        (0..2).for_each(|station| stations.join(BE, station));
        stations.charge(BE, 0, Span::from_millis(10));
        stations.charge(BE, 1, Span::from_millis(10));
        assert_eq!(stations.choose(BE, |s| s == 0, |_| false), Some(1));
        let debt = -stations.deficits[BE as usize];
        assert!(debt > 9_000_000, "{debt}");
    }

    #[test]
    fn nobody_is_chosen_when_all_have_enough_in_the_hardware() {
        for schedule in [Schedule::RoundRobin, Schedule::PAPER, Schedule::LINUX] {
            let mut stations = Stations::new(schedule, 2);
            stations.join(BE, 0);
            stations.join(BE, 1);
            assert_eq!(stations.choose(BE, |_| false, |_| true), None);
            assert_eq!(stations.choose(BE, |_| true, |_| false), None);
        }
    }
}
