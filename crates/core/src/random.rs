//! Addressed random streams.
//!
//! A stream is found by (study seed, run, entity, purpose). No two entities share a stream, so
//! adding a flow shifts nobody else's draws, and two algorithms under one seed meet the same world.
//! The generator is PCG XSL RR 128/64 (multiplicative), whose name fixes its values; distributions
//! are our own, on `libm`, so they are the same on every machine.

use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// What a stream is used for, so that one entity can hold several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    Start,
    Controller,
    Queue,
    Loss,
    Jitter,
    Capacity,
    Application,
    Hash,
    /// Of a station of a radio medium.
    Backoff,
    /// When the ticks of a kernel come.
    Clock,
}

/// The part of an address that is the same for a whole run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamAddress {
    pub seed: u64,
    pub run: u64,
}

impl StreamAddress {
    /// The stream of `entity` (for example a flow's or link's name, hashed) for `purpose`.
    pub fn stream(self, entity: u64, purpose: Purpose) -> Stream {
        let mut mixed = mix(self.seed ^ 0x536f_6a6f_7572_6e01);
        mixed = mix(mixed ^ self.run);
        mixed = mix(mixed ^ entity);
        mixed = mix(mixed ^ purpose as u64);
        let high = mix(mixed ^ 0x9e37_79b9_7f4a_7c15);
        let mut seed = [0; 16];
        seed[..8].copy_from_slice(&mixed.to_le_bytes());
        seed[8..].copy_from_slice(&high.to_le_bytes());
        Stream { generator: Pcg64Mcg::from_seed(seed) }
    }

    /// The stream of an entity known by name.
    pub fn stream_named(self, entity: &str, purpose: Purpose) -> Stream {
        let hash = entity.bytes().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        self.stream(hash, purpose)
    }
}

/// The finaliser of SplitMix64: every input bit reaches every output bit.
pub const fn mix(mut z: u64) -> u64 {
    z = z.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A stream of random numbers.
#[derive(Clone, Debug)]
pub struct Stream {
    generator: Pcg64Mcg,
}

impl Stream {
    /// Another stream, for a part of the entity that has this one.
    pub fn fork(&mut self) -> Self {
        let mut seed = [0; 16];
        seed[..8].copy_from_slice(&mix(self.next_u64()).to_le_bytes());
        seed[8..].copy_from_slice(&mix(self.next_u64()).to_le_bytes());
        Self { generator: Pcg64Mcg::from_seed(seed) }
    }

    pub fn next_u64(&mut self) -> u64 {
        self.generator.next_u64()
    }

    pub fn next_u32(&mut self) -> u32 {
        (self.generator.next_u64() >> 32) as u32
    }

    /// Uniform in `0..bound`, by widening multiplication; `bound` must not be zero.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// Uniform in [0, 1) with 53 bits.
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (1.0 / 9_007_199_254_740_992.0)
    }

    /// Uniform in [low, high).
    pub fn uniform(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.unit()
    }

    /// True with probability `p`.
    pub fn chance(&mut self, p: f64) -> bool {
        self.unit() < p
    }

    /// Exponential with the given mean.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -mean * libm::log(1.0 - self.unit())
    }

    /// Normal, by the polar form of Box and Muller; the second value is not kept.
    pub fn normal(&mut self, mean: f64, deviation: f64) -> f64 {
        loop {
            let (u, v) = (self.uniform(-1.0, 1.0), self.uniform(-1.0, 1.0));
            let s = u * u + v * v;
            if s > 0.0 && s < 1.0 {
                return mean + deviation * u * libm::sqrt(-2.0 * libm::log(s) / s);
            }
        }
    }

    /// Pareto with shape `alpha` and smallest value `least`.
    pub fn pareto(&mut self, alpha: f64, least: f64) -> f64 {
        least / libm::pow(1.0 - self.unit(), 1.0 / alpha)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADDRESS: StreamAddress = StreamAddress { seed: 1, run: 0 };

    #[test]
    fn the_first_values_are_the_same_on_every_machine() {
        let mut stream = ADDRESS.stream(7, Purpose::Loss);
        let values: Vec<u64> = (0..3).map(|_| stream.next_u64()).collect();
        assert_eq!(values, GOLDEN);
    }

    const GOLDEN: [u64; 3] =
        [14_312_435_176_390_457_755, 10_543_771_464_639_446_949, 6_699_933_587_971_075_356];

    #[test]
    fn every_part_of_the_address_counts() {
        let first =
            |address: StreamAddress, entity, purpose| address.stream(entity, purpose).next_u64();
        let base = first(ADDRESS, 1, Purpose::Loss);
        assert_ne!(base, first(ADDRESS, 2, Purpose::Loss));
        assert_ne!(base, first(ADDRESS, 1, Purpose::Jitter));
        assert_ne!(base, first(StreamAddress { run: 1, ..ADDRESS }, 1, Purpose::Loss));
        assert_ne!(base, first(StreamAddress { seed: 2, ..ADDRESS }, 1, Purpose::Loss));
    }

    #[test]
    fn distributions_have_their_moments() {
        let mut stream = ADDRESS.stream(1, Purpose::Application);
        let n = 200_000;
        let mean =
            |draw: &mut dyn FnMut() -> f64| (0..n).map(|_| draw()).sum::<f64>() / f64::from(n);
        assert!((mean(&mut || stream.unit()) - 0.5).abs() < 0.005);
        assert!((mean(&mut || stream.exponential(3.0)) - 3.0).abs() < 0.05);
        assert!((mean(&mut || stream.normal(2.0, 1.0)) - 2.0).abs() < 0.02);
        assert!((mean(&mut || stream.pareto(3.0, 2.0)) - 3.0).abs() < 0.05);
    }
}
