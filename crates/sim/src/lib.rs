//! The event engine: a scenario and a seed become packets in virtual time.
//!
//! The engine is a value, and a run is a pure function of its arguments. Each component, a link or
//! an end of a flow, has at most one pending wake. What can be computed when somebody needs it is
//! no event of its own: a link takes packets from its queue late, when the next one arrives or the
//! last one comes out at the far end, and takes each at the time at which it was due.

#![cfg_attr(not(test), no_std)]

extern crate alloc;

mod agenda;
mod ends;
mod engine;

pub use engine::{Engine, Outcome, Violation, run, run_any};

/// Raised whenever the same scenario and seed give other packets than before, so that results of
/// different models are not mixed.
pub const MODEL_VERSION: u32 = 27;
