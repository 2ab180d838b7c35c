//! The 802.11 medium as a state machine that is told the time and never asks for it.
//!
//! Sections are those of IEEE Std 802.11-2020 unless 802.11ax-2021 is named.
#![no_std]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod mac;
pub mod phy;
