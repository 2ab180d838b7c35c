//! Uplink OFDMA random access: attempt and collision probabilities of stations that always have
//! a frame (802.11ax-2021 section 26.5.4), as the fixed point of equations 4 to 6 of "TCP BBR
//! Performance over Wi-Fi 6", a decoupling approximation in the manner of Bianchi and Kumar.
//!
//! Time is counted in Trigger frames. β is the probability that a station sends after one, B_k the mean
//! number of Trigger frames that stage k takes, the one with the transmission included.

use alloc::vec;
use alloc::vec::Vec;

use sojourn_core::SpecError;
use sojourn_core::param::{number, whole};

use crate::formula::{Formula, Output, output};
use crate::roots::rising_root;

/// The random access of a cell.
#[derive(Clone, Copy, Debug)]
pub struct Uora {
    /// n_ra: stations that contend.
    pub stations: u32,
    /// r_A: resource units for random access in a Trigger frame.
    pub units: u32,
    /// OCWmin, one less than a power of two.
    pub ocw_min: u32,
    /// mbo: how often the window doubles.
    pub doublings: u32,
    /// fbo: further attempts with the largest window before the frame is given up.
    pub retries_at_most: u32,
    /// p_phy: probability that a frame alone on its unit is lost.
    pub error: f64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Solution {
    /// γ: probability that another station chose the same unit.
    pub gamma: f64,
    /// f: probability that an attempt fails.
    pub failure: f64,
    /// β: probability that a station sends after a Trigger frame.
    pub beta: f64,
}

impl Solution {
    /// Frames that get through after a Trigger frame, of all stations.
    pub fn successes(&self, stations: u32) -> f64 {
        f64::from(stations) * self.beta * (1.0 - self.failure)
    }
}

impl Uora {
    /// OCW of stage k.
    pub fn window(&self, stage: u32) -> u32 {
        ((self.ocw_min + 1) << stage.min(self.doublings)) - 1
    }

    /// B_k: the backoff is uniform in 0..=OCW and falls by r_A with every Trigger frame; the frame
    /// is sent after the first Trigger frame that brings it to zero.
    pub fn mean_wait(&self, stage: u32) -> f64 {
        let window = self.window(stage);
        let total: u64 =
            (0..=window).map(|backoff| u64::from(backoff.div_ceil(self.units).max(1))).sum();
        total as f64 / f64::from(window + 1)
    }

    /// Equations 4 to 6 with f instead of γ in equation 4, because backoff follows every failure,
    /// whatever its cause. Sums are evaluated as sums, so that f = 1 needs no limit.
    pub fn solve(&self) -> Solution {
        let others = f64::from(self.stations) - 1.0;
        let units = f64::from(self.units);
        let failure = |gamma: f64| 1.0 - (1.0 - gamma) * (1.0 - self.error);
        let gamma = match self.stations {
            1 => 0.0,
            _ => rising_root(0.0, 1.0, |gamma| {
                let beta = self.attempt(failure(gamma));
                gamma - (1.0 - libm::pow(1.0 - beta / units, others))
            }),
        };
        let failure = failure(gamma);
        Solution { gamma, failure, beta: self.attempt(failure) }
    }

    /// Equation 4 by Kumar's renewal argument: attempts over Trigger frames until the frame is done.
    fn attempt(&self, failure: f64) -> f64 {
        let (mut attempts, mut frames, mut power) = (0.0, 0.0, 1.0);
        for stage in 0..=self.doublings + self.retries_at_most {
            attempts += power;
            frames += power * self.mean_wait(stage);
            power *= failure;
        }
        attempts / frames
    }
}

sojourn_core::params! {
    /// [`Uora`] by name.
    pub struct RandomAccess: "uora", "Random access on units of uplink OFDMA (BBR over Wi-Fi 6, equations 4 to 6)" {
        pub stations: u32 = "10", whole(1, 10_000), "n_ra: stations that contend";
        pub units: u32 = "4", whole(1, 148), "r_A: units for random access in a Trigger frame";
        pub ocw_min: u32 = "7", whole(0, 127), "OCWmin, one less than a power of two";
        pub doublings: u32 = "2", whole(0, 7), "how often the window doubles";
        pub retries_at_most: u32 = "0", whole(0, 100), "further attempts with the largest window";
        pub error: f64 = "0", number(0.0, 1.0), "p_phy: probability that a frame alone on its unit is lost";
    }
}

impl RandomAccess {
    pub(crate) fn uora(&self) -> Result<Uora, SpecError> {
        let Self { stations, units, ocw_min, doublings, retries_at_most, error } = *self;
        if !(ocw_min + 1).is_power_of_two() {
            let problem = alloc::format!("ocw_min {ocw_min} is not one less than a power of two");
            return Err(
                SpecError::new(problem).allow(["0", "1", "3", "7", "15", "31", "63", "127"])
            );
        }
        Ok(Uora { stations, units, ocw_min, doublings, retries_at_most, error })
    }
}

impl Formula for RandomAccess {
    const OUTPUTS: &'static [Output] = &[
        output("successes", "", "frames that get through after a Trigger frame"),
        output("gamma", "", "probability that another station chose the same unit"),
        output("failure", "", "probability that an attempt fails"),
        output("beta", "", "probability that a station sends after a Trigger frame"),
    ];

    fn evaluate(&self) -> Result<Vec<f64>, SpecError> {
        let solution = self.uora()?.solve();
        let successes = solution.successes(self.stations);
        Ok(vec![successes, solution.gamma, solution.failure, solution.beta])
    }
}

#[cfg(test)]
mod tests {
    use sojourn_core::{Purpose, StreamAddress};

    use super::*;

    fn uora(stations: u32, units: u32) -> Uora {
        Uora { stations, units, ocw_min: 7, doublings: 2, retries_at_most: 0, error: 0.0 }
    }

    #[test]
    fn the_fixed_point_has_its_published_values() {
        let cases = [
            (5, 1, 0.4927, 0.1560, 0.396),
            (5, 2, 0.4677, 0.2917, 0.776),
            (10, 4, 0.6513, 0.4419, 1.541),
            (10, 9, 0.5496, 0.7633, 3.438),
            (20, 9, 0.7838, 0.6970, 3.014),
            (50, 9, 0.9757, 0.6573, 0.799),
        ];
        for (stations, units, gamma, beta, successes) in cases {
            let solution = uora(stations, units).solve();
            assert!((solution.gamma - gamma).abs() < 1e-4, "{stations}, {units}: {solution:?}");
            assert!((solution.beta - beta).abs() < 1e-4, "{stations}, {units}: {solution:?}");
            let got = solution.successes(stations);
            assert!((got - successes).abs() < 1e-3, "{stations}, {units}: {got}");
        }
    }

    #[test]
    fn stages_last_what_two_units_make_of_them() {
        let uora = uora(5, 2);
        let waits: Vec<f64> = (0..3).map(|stage| uora.mean_wait(stage)).collect();
        assert_eq!(waits, [2.125, 4.0625, 8.031_25]);
    }

    /// The random access itself, drawn.
    fn simulated(uora: &Uora, triggers: u32) -> (f64, f64) {
        let mut random = StreamAddress { seed: 1, run: 0 }.stream(1, Purpose::Application);
        let draw = |random: &mut sojourn_core::Stream, stage: u32| {
            random.below(u64::from(uora.window(stage)) + 1) as u32
        };
        let mut stations: Vec<(u32, u32)> =
            (0..uora.stations).map(|_| (0, draw(&mut random, 0))).collect();
        let last = uora.doublings + uora.retries_at_most;
        let (mut attempts, mut successes) = (0u64, 0u64);
        for _ in 0..triggers {
            let mut chosen = vec![Vec::new(); uora.units as usize];
            for (index, (_, backoff)) in stations.iter_mut().enumerate() {
                if *backoff <= uora.units {
                    chosen[random.below(u64::from(uora.units)) as usize].push(index);
                    attempts += 1;
                } else {
                    *backoff -= uora.units;
                }
            }
            for unit in chosen {
                let is_alone = unit.len() == 1;
                successes += u64::from(is_alone);
                for index in unit {
                    let stage = match stations[index].0 {
                        stage if is_alone || stage == last => 0,
                        stage => stage + 1,
                    };
                    stations[index] = (stage, draw(&mut random, stage));
                }
            }
        }
        let triggers = f64::from(triggers);
        (attempts as f64 / triggers / f64::from(uora.stations), successes as f64 / triggers)
    }

    #[test]
    fn it_is_within_a_percent_of_what_is_drawn() {
        for (stations, units) in [(5, 2), (10, 4), (10, 9), (20, 9)] {
            let uora = uora(stations, units);
            let solution = uora.solve();
            let (beta, successes) = simulated(&uora, 200_000);
            let expected = solution.successes(stations);
            assert!((beta / solution.beta - 1.0).abs() < 0.01, "{stations}, {units}: {beta}");
            assert!((successes / expected - 1.0).abs() < 0.01, "{stations}, {units}: {successes}");
        }
    }

    /// `cargo test -p sojourn-model --lib uora -- --ignored --nocapture` prints how far the fixed point is
    /// from what it approximates.
    #[test]
    #[ignore = "takes a minute"]
    fn the_approximation_is_a_thousandth_off_for_five_stations() {
        for (stations, units) in [(5, 1), (5, 2), (10, 4), (10, 9), (20, 9), (50, 9)] {
            let uora = uora(stations, units);
            let solution = uora.solve();
            let (beta, successes) = simulated(&uora, 10_000_000);
            let off = (solution.beta / beta - 1.0, solution.successes(stations) / successes - 1.0);
            let [beta_percent, percent] = [off.0, off.1].map(|off| 100.0 * off);
            eprintln!(
                "{stations}, {units}: β {:.5} of {beta:.5}, {beta_percent:+.2} %, \
                 successes {:.4} of {successes:.4}, {percent:+.2} %",
                solution.beta,
                solution.successes(stations),
            );
            assert!(off.0.abs() < 0.002 && off.1.abs() < 0.01, "{stations}, {units}: {off:?}");
        }
    }
}
