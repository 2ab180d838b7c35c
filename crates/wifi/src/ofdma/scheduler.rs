//! Which stations a PPDU is for.

use alloc::vec::Vec;

use super::Policy;

#[derive(Clone, Debug)]
pub(crate) struct Scheduler {
    policy: Policy,
    stations: usize,
    /// The station whose turn is next.
    next: usize,
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
        Self { policy, stations, next: 0, average, weight: 1.0 / window }
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

    /// The turn passes to the station after these.
    pub(crate) fn passes(&mut self, stations: &[u16]) {
        if let Some(last) = stations.last() {
            self.next = (usize::from(*last) + 1) % self.stations;
        }
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
