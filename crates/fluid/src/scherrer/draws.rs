//! The random numbers of the authors' program, which are those of Python's `random`: the Mersenne Twister
//! (M. Matsumoto, T. Nishimura, "Mersenne Twister", ACM TOMACS 8(1), 1998), MT19937 with the seeding by an
//! array of 2002. With the same seed, flows begin their periods when the authors' do.

use alloc::vec;
use alloc::vec::Vec;

const N: usize = 624;
const M: usize = 397;
const UPPER: u32 = 0x8000_0000;
const LOWER: u32 = 0x7fff_ffff;
const MATRIX: u32 = 0x9908_b0df;

#[derive(Clone, Debug)]
pub(super) struct Draws {
    state: Vec<u32>,
    next: usize,
}

impl Draws {
    /// As `random.seed` does with a whole number.
    pub(super) fn new(seed: u64) -> Self {
        let key = [seed as u32, (seed >> 32) as u32];
        let key = if key[1] == 0 { &key[..1] } else { &key[..] };
        let mut state = vec![19_650_218_u32; N];
        for i in 1..N {
            state[i] = scrambled(state[i - 1]).wrapping_mul(1_812_433_253).wrapping_add(i as u32);
        }
        let (mut i, mut j) = (1, 0);
        let advance = |state: &mut [u32], i: &mut usize| {
            *i += 1;
            if *i == N {
                state[0] = state[N - 1];
                *i = 1;
            }
        };
        for _ in 0..N {
            let mixed = state[i] ^ scrambled(state[i - 1]).wrapping_mul(1_664_525);
            state[i] = mixed.wrapping_add(key[j]).wrapping_add(j as u32);
            advance(&mut state, &mut i);
            j = (j + 1) % key.len();
        }
        for _ in 1..N {
            let mixed = state[i] ^ scrambled(state[i - 1]).wrapping_mul(1_566_083_941);
            state[i] = mixed.wrapping_sub(i as u32);
            advance(&mut state, &mut i);
        }
        state[0] = UPPER;
        Self { state, next: N }
    }

    /// From zero to one, with 53 bits.
    pub(super) fn unit(&mut self) -> f64 {
        let high = f64::from(self.word() >> 5);
        let low = f64::from(self.word() >> 6);
        (high * 67_108_864.0 + low) / 9_007_199_254_740_992.0
    }

    fn word(&mut self) -> u32 {
        if self.next == N {
            for k in 0..N {
                let y = self.state[k] & UPPER | self.state[(k + 1) % N] & LOWER;
                let odd = if y & 1 == 1 { MATRIX } else { 0 };
                self.state[k] = self.state[(k + M) % N] ^ (y >> 1) ^ odd;
            }
            self.next = 0;
        }
        let mut y = self.state[self.next];
        self.next += 1;
        y ^= y >> 11;
        y ^= y << 7 & 0x9d2c_5680;
        y ^= y << 15 & 0xefc6_0000;
        y ^ y >> 18
    }
}

fn scrambled(word: u32) -> u32 {
    word ^ word >> 30
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first numbers of `random.seed(1)` and of `random.seed(2**40 + 7)`.
    #[test]
    fn numbers_are_those_of_python() {
        let mut draws = Draws::new(1);
        let three: Vec<f64> = (0..3).map(|_| draws.unit()).collect();
        assert_eq!(three, [0.13436424411240122, 0.8474337369372327, 0.763774618976614]);
        let mut draws = Draws::new((1 << 40) + 7);
        assert_eq!([draws.unit(), draws.unit()], [0.6137037779936511, 0.8149162973309487]);
    }
}
