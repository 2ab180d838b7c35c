//! The fluid engine: rates and queues as delay-differential equations, in milliseconds a run.
//!
//! A flow is a rate, a queue the integral of what comes and leaves, and a delay a look-up in the past.
//! Every curve is cumulative: bytes sent, let in, lost, departed, received. Within a step all are
//! straight, so what a full or empty queue does is exact, fluid is neither made nor lost, and what
//! leaves a FIFO is what came when it came. The equations of controls and queues stand in a file
//! each, by the numbers of their papers.
//!
//! [`run`] takes the same scenario as the event engine and reports the same events, one for several
//! packets at a time. [`check`] says what a fluid can't say.

#![cfg_attr(not(test), no_std)]

extern crate alloc;

mod capacity;
mod cca;
mod curves;
mod engine;
mod equilibrium;
mod history;
mod queue;
mod report;
mod run;
mod scherrer;
mod world;

pub use engine::Work;
pub use equilibrium::{AtRest, Equilibrium, Stability, equilibrium, trajectory};
pub use run::{Form, Options, check, run};
pub use world::has_queue;

/// Raised whenever the same scenario and seed would give other numbers.
pub const VERSION: u32 = 2;
