//! The rates and weights of a priority scheme's tins.

use alloc::vec;
use alloc::vec::Vec;

use sojourn_core::Rate;

use super::config::Config;
use super::priority::Priority;
use super::tin::Tin;

/// The tins with their threshold rates and their weights when unshaped.
pub(super) fn tins(config: &Config) -> Vec<Tin> {
    let rate = config.bandwidth;
    let shifted = |shift: u32, weight| Tin::new(config, scaled(rate, 1, shift), weight);
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
                tins.push(Tin::new(config, rate, weight));
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
