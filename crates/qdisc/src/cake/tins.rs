//! The rates and weights of a priority scheme's tins.

use alloc::vec;
use alloc::vec::Vec;

use sojourn_core::Rate;

use super::cobalt::Params;
use super::config::Config;
use super::priority::Priority;
use super::tin::{Tin, cobalt_params, pace_of};

pub(super) fn tins(config: &Config) -> Vec<Tin> {
    let tin = |(rate, weight)| Tin::new(config, rate, weight);
    rates(config).into_iter().map(tin).collect()
}

impl Config {
    /// The tin of a code point.
    pub fn tin_of(&self, dscp: u8) -> usize {
        self.priority.table()[usize::from(dscp)].into()
    }

    /// COBALT's parameters in a tin.
    pub fn cobalt_of(&self, tin: usize) -> Params {
        cobalt_params(self, pace_of(rates(self)[tin].0))
    }
}

/// The tins' threshold rates, and their weights when unshaped.
fn rates(config: &Config) -> Vec<(Rate, u32)> {
    let rate = config.bandwidth;
    let shifted = |shift: u32, weight| (scaled(rate, 1, shift), weight);
    match config.priority {
        Priority::Besteffort => vec![shifted(0, 65_535)],
        Priority::Diffserv3 => vec![shifted(0, 1024), shifted(4, 64), shifted(2, 256)],
        Priority::Diffserv4 => {
            vec![shifted(0, 1024), shifted(4, 64), shifted(1, 512), shifted(2, 256)]
        }
        // Each tin has seven eighths of the one before.
        Priority::Precedence | Priority::Diffserv8 => {
            let (mut rate, mut weight) = (rate, 256);
            let mut tins = Vec::new();
            for _ in 0..8 {
                tins.push((rate, weight));
                rate = scaled(rate, 7, 3);
                weight = (weight * 7) >> 3;
            }
            tins
        }
    }
}

/// `rate · factor / 2^shift`, in whole bytes per second as the kernel counts.
fn scaled(rate: Rate, factor: u64, shift: u32) -> Rate {
    if rate.is_unlimited() {
        return rate;
    }
    Rate::from_bytes_per_sec((rate.as_bytes_per_sec().saturating_mul(factor)) >> shift)
}
