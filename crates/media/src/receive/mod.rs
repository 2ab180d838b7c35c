//! The receiver of a call's video: what is missing, which frames are whole, and when they are shown.

mod assembler;
mod jitter;
mod missing;
mod statistics;
mod timing;

pub(crate) use assembler::{Assembler, Whole};
pub(crate) use jitter::Jitter;
pub(crate) use missing::Missing;
pub(crate) use statistics::{Statistics, jitter_of};
pub(crate) use timing::Timing;
