//! What carries packets: transmitters of fixed and changing rate, delay, loss, jitter, reordering
//! and policers.
//!
//! Every machine here is a plain value that is told the time. A user writes a spec; it becomes a
//! config, checked and complete, and the config builds the machine that one run changes.

#![cfg_attr(not(test), no_std)]

extern crate alloc;

pub mod blockage;
pub mod brownian;
mod delay;
pub mod jitter;
pub mod loss;
mod notation;
mod percent;
pub mod policer;
mod rate;
pub mod reorder;
mod steps;
pub mod trace;
mod transmitter;

pub use delay::DelayLine;
pub use jitter::{Jitter, JitterConfig};
pub use loss::{Loss, LossConfig};
pub use percent::Percent;
pub use policer::{Policer, PolicerConfig};
pub use rate::{
    BlockageSpec, FixedSpec, HtbClass, HtbSpec, MahimahiSpec, RateConfig, RateSpec, Reading,
    Rfc8867Spec, Serving, Shaper, StepsSpec, TraceSpec,
};
pub use reorder::{Reorder, ReorderConfig};
pub use steps::Steps;
pub use trace::{OnEnd, Playback, Schedule, Step, Trace};
pub use transmitter::{
    Departure, Fixed, Opportunities, OpportunitySize, ShapedTrace, TokenBucket, TraceDriven,
    Transmitter,
};

use sojourn_core::{Param, Params};

/// A name by which users write a rate, a loss process, a jitter, a reordering or a policer.
#[derive(Clone, Copy, Debug)]
pub struct Model {
    pub name: &'static str,
    pub doc: &'static str,
    pub params: &'static [Param],
}

impl Model {
    /// One with the parameters of `P`, and their name.
    pub(crate) const fn of<P: Params>() -> Self {
        Self { name: P::NAME, doc: P::DOC, params: P::PARAMS }
    }

    /// One without parameters.
    pub(crate) const fn bare(name: &'static str, doc: &'static str) -> Self {
        Self { name, doc, params: &[] }
    }
}

/// Every kind of rate, in the order of the documentation.
pub fn rates() -> &'static [Model] {
    rate::MODELS
}

/// Every loss process, in the order of the documentation.
pub fn losses() -> &'static [Model] {
    loss::MODELS
}

/// Every jitter, in the order of the documentation.
pub fn jitters() -> &'static [Model] {
    jitter::MODELS
}

/// Every reordering, in the order of the documentation.
pub fn reorderings() -> &'static [Model] {
    reorder::MODELS
}

/// Every policer, in the order of the documentation.
pub fn policers() -> &'static [Model] {
    policer::MODELS
}
