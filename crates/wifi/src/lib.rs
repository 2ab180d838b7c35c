//! The 802.11 medium as a state machine that is told the time and never asks for it.
//!
//! Sections are those of IEEE Std 802.11-2020 unless 802.11ax-2021 is named.

#![cfg_attr(not(test), no_std)]

extern crate alloc;

pub mod mac;
pub mod medium;
pub mod ofdma;
pub mod phy;
mod port;
pub mod queueing;
mod radio;
pub mod rate;
mod store;

pub use port::{Listener, Port};
pub use radio::{Radio, RadioConfig};
