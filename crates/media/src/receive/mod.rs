//! The receiver of a call: what is missing, which frames are whole, when they are shown, and when voices
//! are heard.

mod assembler;
mod jitter;
mod lip_sync;
mod missing;
mod neteq;
mod round_trip;
mod statistics;
mod timing;

pub(crate) use assembler::{Assembler, Whole};
pub(crate) use jitter::Jitter;
pub(crate) use lip_sync::{EVERY as COMPARE_EVERY, LipSync, Newest};
pub(crate) use missing::Missing;
pub(crate) use neteq::{NetEq, TICK};
pub(crate) use round_trip::RoundTrip;
pub(crate) use statistics::{Statistics, jitter_of};
pub(crate) use timing::Timing;
