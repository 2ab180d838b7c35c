//! Simulation against measured Linux, situation by situation.
//!
//! `data/linux.json` holds what unmodified kernels did over known bottlenecks. [`situations`] reads
//! it, [`simulate`] builds the same world and runs it under several seeds, and [`compare`] puts the
//! two side by side with the bounds that simulation must keep.

mod arguments;
mod measured;
mod simulated;
mod verdict;
pub mod webrtc;
pub mod wifi;

pub use arguments::asked;
pub use measured::{Group, Situation, Statistic, situations};
pub use simulated::{Needs, Simulated, at_phase, scenario, simulate};
pub use verdict::{Comparison, Row, compare};
