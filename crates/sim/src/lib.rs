//! The event engine: a scenario and a seed become packets in virtual time.
//!
//! The engine is a value and a run is a pure function of its arguments. Links pull from their
//! queues, pipes hold what is propagating, ends react; each of them has at most one pending wake,
//! and what can be computed when a packet is handled (when it leaves, when it arrives) is not an
//! event of its own.

mod agenda;
mod ends;
mod engine;
mod link;

pub use engine::{Outcome, Violation, run};

/// Raised whenever the same scenario and seed would give other packets than before, so that
/// results of different models are not taken for one another.
pub const MODEL_VERSION: u32 = 1;
