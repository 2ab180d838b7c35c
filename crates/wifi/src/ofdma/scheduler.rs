//! Which stations a PPDU is for.

use alloc::vec::Vec;
use core::cmp::Reverse;

use super::Policy;

/// A whole unit, as a multiple of most numbers of stations.
const WHOLE: i32 = 5040;

#[derive(Clone, Debug)]
pub(crate) struct Scheduler {
    policy: Policy,
    stations: usize,
    /// The station whose turn is next.
    next: usize,
    /// How much of a whole unit each station has had less than its part, in units of [`WHOLE`].
    owed: Vec<i32>,
    /// What each station has had in a PPDU, on average.
    average: Vec<f64>,
    /// Weight of the last PPDU in it.
    weight: f64,
}

impl Scheduler {
    pub(crate) fn new(policy: Policy, stations: usize, window: f64) -> Self {
        let average = match policy {
            Policy::RoundRobin => Vec::new(),
            Policy::ProportionalFair => alloc::vec![0.0; stations],
        };
        let owed = match policy {
            Policy::RoundRobin => alloc::vec![0; stations],
            Policy::ProportionalFair => Vec::new(),
        };
        Self { policy, stations, next: 0, owed, average, weight: 1.0 / window }
    }

    /// Sorts by turn, the next station first. `rate` is the rate that a station could have.
    pub(crate) fn order(&self, candidates: &mut [u16], rate: impl Fn(u16) -> f64) {
        let turn =
            |station: u16| (usize::from(station) + self.stations - self.next) % self.stations;
        match self.policy {
            Policy::RoundRobin => candidates.sort_unstable_by_key(|station| turn(*station)),
            Policy::ProportionalFair => {
                // Stations that have had nothing go first; equal ones take turns.
                let due = |station: u16| rate(station) / self.average[usize::from(station)];
                candidates.sort_unstable_by(|one, other| {
                    due(*other).total_cmp(&due(*one)).then(turn(*one).cmp(&turn(*other)))
                });
            }
        }
    }

    /// The station whose turn it is by another order goes first, where stations take turns.
    pub(crate) fn lead(&self, candidates: &mut [u16], leader: u16) {
        let place = candidates.iter().position(|station| *station == leader);
        if let (Policy::RoundRobin, Some(place)) = (self.policy, place) {
            candidates[..=place].rotate_right(1);
        }
    }

    /// Sorts the stations of a PPDU by who has its whole units, where stations take turns: those that have had fewest.
    pub(crate) fn sort_by_owed(&self, stations: &mut [u16]) {
        if self.policy == Policy::RoundRobin {
            stations.sort_by_key(|station| Reverse(self.owed[usize::from(*station)]));
        }
    }

    /// The first `wholes` of these stations have whole units, and the others halves.
    pub(crate) fn note_sizes(&mut self, stations: &[u16], wholes: usize) {
        for (number, station) in stations.iter().enumerate() {
            if let Some(owed) = self.owed.get_mut(usize::from(*station)) {
                let had = if number < wholes { WHOLE } else { 0 };
                *owed += WHOLE * wholes.min(stations.len()) as i32 / stations.len() as i32 - had;
            }
        }
    }

    /// The turn passes to the station after this one, the last in the order of turns.
    pub(crate) fn passes(&mut self, last: u16) {
        self.next = (usize::from(last) + 1) % self.stations;
    }

    /// Updates the averages: these stations were served, each with so many bits.
    pub(crate) fn serve(&mut self, served: impl Iterator<Item = (u16, f64)>) {
        for average in &mut self.average {
            *average *= 1.0 - self.weight;
        }
        for (station, bits) in served {
            if let Some(average) = self.average.get_mut(usize::from(station)) {
                *average += self.weight * bits;
            }
        }
    }
}
