//! Quality of experience: what a person on the call would notice.
//!
//! Pure functions and small machines over times and delays, each from one specification.

mod freeze;
mod jitter;
mod transfer;
mod voice;

pub use freeze::{
    FreezeDetector, FreezeRule, Freezes, LONGEST_FREEZE, Standstill, freezes, harmonic_fps,
    stall_ratio,
};
pub use jitter::{Jitter, ipdv, jitter, pdv};
pub use transfer::EmptyPath;
pub use voice::{Scorer, mos, mos_g107, mos_of_r, r, voice_delay_ms};
