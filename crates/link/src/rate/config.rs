//! A rate that is checked and complete.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use core::fmt::Write;

use sojourn_core::{Framing, Params, Rate, SpecError, Stream};

use super::blockage::BlockageSpec;
use super::htb::HtbClass;
use super::serving::{Framed, Serving, Shaper};
use crate::brownian::Brownian;
use crate::notation::serialisable;
use crate::{Fixed, Opportunities, OpportunitySize, Schedule, Step, Trace, Transmitter};

/// A rate, checked and complete; traces are shared by the runs that use them.
#[derive(Clone, Debug, PartialEq)]
pub enum RateConfig {
    Unlimited,
    Fixed { rate: Rate, framing: Framing },
    Htb(HtbClass),
    Trace { trace: Arc<Trace>, serving: Serving },
    Mahimahi { schedule: Arc<Schedule>, size: OpportunitySize },
    Blockage(BlockageSpec),
    Brownian(Brownian),
}

impl RateConfig {
    /// A fixed rate in bits of the wire packet (IP and 14 bytes).
    ///
    /// # Errors
    /// The rate is zero or above 10 Tbit/s.
    pub fn fixed(rate: Rate) -> Result<Self, SpecError> {
        Ok(match serialisable(rate)? {
            Rate::UNLIMITED => Self::Unlimited,
            rate => Self::Fixed { rate, framing: Framing::default() },
        })
    }

    /// Refuses values out of bounds; code may have set them.
    ///
    /// # Errors
    /// Names the value and what is allowed.
    pub fn check(&self) -> Result<(), SpecError> {
        match self {
            Self::Unlimited | Self::Mahimahi { .. } => Ok(()),
            Self::Fixed { rate, .. } if rate.is_unlimited() => {
                Err(SpecError::new("a fixed rate is unlimited").allow(["RateConfig::Unlimited"]))
            }
            Self::Fixed { rate, framing } => {
                serialisable(*rate)?;
                framing.check()
            }
            Self::Htb(class) => class.check(),
            Self::Trace { serving, .. } => serving.framing.check(),
            Self::Blockage(BlockageSpec { serving, .. }) => serving.framing.check(),
            Self::Brownian(process) => process.check(),
        }
    }

    /// The transmitter of one run. `random` is only drawn from by synthetic links.
    pub fn build(&self, random: &mut Stream) -> Transmitter {
        match self {
            Self::Unlimited => Transmitter::Unlimited,
            Self::Fixed { rate, framing } => Transmitter::Fixed(Fixed::new(*rate, *framing)),
            Self::Htb(class) => Transmitter::TokenBucket(class.build()),
            Self::Trace { trace, serving } => serving.build(Arc::clone(trace)),
            Self::Mahimahi { schedule, size } => {
                Transmitter::Opportunities(Opportunities::new(Arc::clone(schedule), *size))
            }
            Self::Blockage(BlockageSpec { process, serving }) => {
                serving.build(Arc::new(process.generate(random)))
            }
            Self::Brownian(process) => {
                let schedule = Arc::new(process.generate(random));
                Transmitter::Opportunities(Opportunities::new(schedule, OpportunitySize::Ip1500))
            }
        }
    }

    /// The text that represents it in a run's identity. It contains the whole content of a file,
    /// because a path does not identify what was read.
    pub fn canonical(&self) -> String {
        match self {
            Self::Unlimited => "unlimited".to_owned(),
            Self::Fixed { rate, framing } => format!("{rate}{}", Framed(*framing)),
            Self::Htb(class) => class.to_string(),
            Self::Trace { trace, serving } => {
                let mut text = String::from("steps");
                for Step { rate, duration } in trace.steps() {
                    // Writing to a string does not fail.
                    let _ = write!(text, " {rate} {duration}");
                }
                text + &serving.to_string()
            }
            Self::Mahimahi { schedule, size } => {
                let schedule = schedule.to_string().replace('\n', " ");
                format!("mahimahi opportunity {} at {}", size.bytes(), schedule.trim_end())
            }
            Self::Blockage(blockage) => blockage.to_string(),
            Self::Brownian(process) => process.to_string(),
        }
    }

    /// Whether it has the content of a file.
    pub fn has_file(&self) -> bool {
        matches!(self, Self::Trace { .. } | Self::Mahimahi { .. })
    }

    /// Whether both were made of one reading of one file, in the same way.
    pub fn is_same_file(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Trace { trace, serving }, Self::Trace { trace: its, serving: so }) => {
                Arc::ptr_eq(trace, its) && serving == so
            }
            (Self::Mahimahi { schedule, size }, Self::Mahimahi { schedule: its, size: so }) => {
                Arc::ptr_eq(schedule, its) && size == so
            }
            _ => false,
        }
    }

    /// No packet is serialised faster than this. Unlimited for token buckets and for opportunities,
    /// whose bytes leave at once.
    pub fn peak(&self) -> Rate {
        match self {
            Self::Unlimited | Self::Htb(_) | Self::Mahimahi { .. } | Self::Brownian(_) => {
                Rate::UNLIMITED
            }
            Self::Trace { serving, .. } | Self::Blockage(BlockageSpec { serving, .. })
                if serving.shaper != Shaper::None =>
            {
                Rate::UNLIMITED
            }
            Self::Fixed { rate, .. } => *rate,
            Self::Trace { trace, .. } => trace.peak(),
            Self::Blockage(BlockageSpec { process, .. }) => process.peak(),
        }
    }

    /// What packets with their Ethernet headers leave at, if it is always the same.
    pub fn constant(&self) -> Option<Rate> {
        match self {
            Self::Fixed { rate, framing } if *framing == Framing::default() => Some(*rate),
            _ => None,
        }
    }

    /// The mean rate, for the size of buffers in bandwidth-delay products; `None` for a synthetic
    /// link that has not been drawn.
    pub fn mean(&self) -> Option<Rate> {
        match self {
            Self::Unlimited => Some(Rate::UNLIMITED),
            Self::Fixed { rate, .. } | Self::Htb(HtbClass { rate, .. }) => Some(*rate),
            Self::Trace { trace, .. } => Some(trace.mean()),
            Self::Mahimahi { schedule, size } => Some(schedule.mean(size.bytes())),
            Self::Blockage(_) | Self::Brownian(_) => None,
        }
    }
}
