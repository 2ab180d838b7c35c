//! Recorded calls: kept while a run is simulated, read from files, and replayed through a rate controller.
//!
//! A recording is either the project's own ([`Writer`]), which has every packet and every report on it, or what a browser's
//! `getStats` said every second or so, from which packets are laid out evenly. [`replay`] tells them apart.

mod error;
mod form;
mod player;
mod read;
mod stats;
mod writer;

pub use error::ReplayError;
pub use player::{Replay, Step, replay};
pub use writer::{Call, Writer};
