//! The fluid engine: rates and queues as delay-differential equations, in milliseconds a run.
//!
//! A flow is a rate, a queue the integral of what comes and leaves, and a delay a look-up in the past.
//! Every curve is cumulative: bytes sent, let in, lost, departed, received. Within a step all are
//! straight, so what a full or empty queue does is exact, fluid is neither made nor lost, and what
//! leaves a FIFO is what came when it came. The equations of controls and queues stand in a file
//! each, by the numbers of their papers.
//!
//! Equations of "TCP BBR Performance over Wi-Fi 6", corrected and as printed ((1) to (8) are `ofdma.rs` and
//! `uora.rs` of the room of closed forms):
//!
//! | equation | corrected | as printed |
//! |---|---|---|
//! | (9) to (14) BBRv3 | `cca/bbr3.rs` | `printed/bbr3.rs` |
//! | (15) round trip | `Engine::look_back`: t − e(t) along the way | `Queues::rtt` |
//! | (16), (24) queue | `Engine::pass`, `queue::serve_fifo`, `fq_codel::serve` | `Queues::advance` |
//! | (17) what is received | `Engine::pass`, `Engine::receive` | `Queues::received` |
//! | (18), (19) FIFO | `queue/drop_tail.rs`, `queue::serve_fifo` | `Queues::advance` |
//! | (20), (21) FQ-CoDel | `queue/fair.rs`, `queue/codel.rs` | `Queues::advance` |
//! | (22), (23) CAKE | `queue/cake.rs` | `Queues::new`, `Queues::advance` |
//!
//! [`run`] takes the same scenario as the event engine and reports the same events, one for several
//! packets at a time. [`check`] says what a fluid can't say.

#![cfg_attr(not(test), no_std)]

extern crate alloc;

mod buffers;
mod capacity;
mod cca;
mod curves;
mod engine;
mod equilibrium;
mod framing;
mod history;
mod printed;
mod published;
mod queue;
mod report;
mod run;
mod scherrer;
mod world;

pub use engine::Work;
pub use equilibrium::{AtRest, Equilibrium, Stability, equilibrium, trajectory};
pub use report::AtQueue;
pub use run::{Form, Options, Ran, check, run};
pub use world::has_queue;

/// Raised whenever the same scenario and seed would give other numbers.
pub const VERSION: u32 = 11;
