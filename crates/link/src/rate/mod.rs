//! The rate of a link as users write it: `10Mbps`, `htb rate 10mbit burst 1600`,
//! `trace mobility.csv playback witest-2020`, `mahimahi att-lte.up`, `blockage mobility-and-blockages`,
//! `steps 10mbit 5s 0 500ms 10mbit 5s`, `rfc8867 5.1`, `brownian max 12mbit`.

mod blockage;
mod config;
mod fixed;
mod htb;
mod mahimahi;
mod path;
mod rfc8867;
mod serving;
mod steps;
#[cfg(test)]
mod tests;
mod trace;

use alloc::format;
use alloc::sync::Arc;
use core::fmt;

use sojourn_core::param::unknown_param;
use sojourn_core::{Params, SpecError, Words};

pub use blockage::BlockageSpec;
pub use config::RateConfig;
pub use fixed::FixedSpec;
pub use htb::{HtbClass, HtbSpec};
pub use mahimahi::MahimahiSpec;
pub use rfc8867::Rfc8867Spec;
pub use serving::{Serving, Shaper};
pub use steps::StepsSpec;
pub use trace::{Reading, TraceSpec};

use crate::brownian::Brownian;
use crate::trace::Format;
use crate::{Model, OpportunitySize, Schedule};
use serving::Framed;

/// A rate as the user wrote it. If it names a trace, [`RateSpec::complete`] needs the trace's text.
#[derive(Clone, Debug, PartialEq)]
pub enum RateSpec {
    Unlimited,
    Fixed(FixedSpec),
    Htb(HtbSpec),
    Trace(TraceSpec),
    Mahimahi(MahimahiSpec),
    Steps(StepsSpec),
    Rfc8867(Rfc8867Spec),
    Blockage(BlockageSpec),
    Brownian(Brownian),
}

/// The names by which [`RateSpec::parse`] knows them.
pub(crate) const MODELS: &[Model] = &[
    Model::of::<fixed::Written>(),
    Model::bare("unlimited", "No serialisation delay"),
    Model::of::<htb::Written>(),
    Model::of::<trace::Written>(),
    Model::of::<mahimahi::Written>(),
    Model::of::<steps::Written>(),
    Model::of::<rfc8867::Written>(),
    Model::of::<blockage::Written>(),
    Model::of::<Brownian>(),
];

impl RateSpec {
    /// Reads a rate as users write it. A path with blanks stands in double quotes.
    ///
    /// # Errors
    /// An unknown name or parameter, or a value out of range; names what is allowed.
    pub fn parse(text: &str) -> Result<Self, SpecError> {
        let text = text.trim();
        let (name, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        let words = &mut Words::new(rest);
        Ok(match name {
            "" => return Err(SpecError::new("no rate is given").allow(forms())),
            "unlimited" => match words.next() {
                None => Self::Unlimited,
                Some(surplus) => return Err(unknown_param(name, surplus, &[])),
            },
            "fixed" => {
                let rate = words.parse(name, fixed::parse_rate)?;
                Self::fixed(FixedSpec::parse(rate, words)?)
            }
            "htb" => Self::Htb(HtbSpec::parse(words)?),
            "trace" => Self::Trace(TraceSpec::parse(rest)?),
            "mahimahi" => Self::Mahimahi(MahimahiSpec::parse(rest)?),
            "steps" => Self::Steps(StepsSpec::parse(words)?),
            "rfc8867" => Self::Rfc8867(Rfc8867Spec::parse(words)?),
            "blockage" => Self::Blockage(BlockageSpec::parse(words)?),
            "brownian" => Self::Brownian(Brownian::parse(words)?),
            _ if name.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c)) => {
                // The unit may be a word of its own: '10 Mbps'.
                let rate = fixed::parse_rate(name).or_else(|error| {
                    let unit = words.next().ok_or_else(|| error.clone())?;
                    fixed::parse_rate(&format!("{name}{unit}")).map_err(|_| error)
                })?;
                Self::fixed(FixedSpec::parse(rate, words)?)
            }
            _ => {
                return Err(SpecError::new(format!("unknown rate '{name}'"))
                    .near(name, MODELS.iter().map(|model| model.name))
                    .allow(forms()));
            }
        })
    }

    /// 'unlimited' after 'fixed' is no rate at which packets could be serialised.
    fn fixed(spec: FixedSpec) -> Self {
        if spec.rate.is_unlimited() { Self::Unlimited } else { Self::Fixed(spec) }
    }

    /// The file that [`RateSpec::complete`] needs the text of.
    pub fn path(&self) -> Option<&str> {
        match self {
            Self::Trace(TraceSpec { path, .. }) | Self::Mahimahi(MahimahiSpec { path, .. }) => {
                Some(path)
            }
            _ => None,
        }
    }

    /// Checks and completes it; `text` is the content of the file of [`RateSpec::path`].
    ///
    /// # Errors
    /// The text is missing, or is no trace of this kind; names its line. The caller names the file.
    pub fn complete(&self, text: Option<&str>) -> Result<RateConfig, SpecError> {
        let content = || text.ok_or_else(|| SpecError::new("the trace has not been read"));
        let opportunities = |size| {
            let schedule = Arc::new(Schedule::parse(content()?)?);
            Ok(RateConfig::Mahimahi { schedule, size })
        };
        Ok(match self {
            Self::Unlimited => RateConfig::Unlimited,
            Self::Fixed(FixedSpec { rate, framing }) => {
                RateConfig::Fixed { rate: *rate, framing: *framing }
            }
            Self::Htb(htb) => RateConfig::Htb(htb.class()),
            Self::Trace(trace)
                if trace.may_be_opportunities()
                    && Format::detect(content()?) == Format::Mahimahi =>
            {
                return opportunities(OpportunitySize::default());
            }
            Self::Trace(trace) => RateConfig::Trace {
                trace: Arc::new(trace.trace(content()?)?),
                serving: trace.serving,
            },
            Self::Mahimahi(MahimahiSpec { size, .. }) => return opportunities(*size),
            Self::Steps(StepsSpec { trace, serving }) => {
                RateConfig::Trace { trace: Arc::new(trace.clone()), serving: *serving }
            }
            Self::Rfc8867(Rfc8867Spec { case, serving }) => {
                RateConfig::Trace { trace: Arc::new(case.trace()), serving: *serving }
            }
            Self::Blockage(blockage) => RateConfig::Blockage(blockage.clone()),
            Self::Brownian(process) => RateConfig::Brownian(process.clone()),
        })
    }
}

fn forms() -> impl Iterator<Item = &'static str> {
    ["10Mbps"].into_iter().chain(MODELS.iter().map(|model| model.name))
}

impl fmt::Display for RateSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unlimited => f.write_str("unlimited"),
            Self::Fixed(FixedSpec { rate, framing }) => write!(f, "{rate}{}", Framed(*framing)),
            Self::Htb(htb) => htb.fmt(f),
            Self::Trace(trace) => trace.fmt(f),
            Self::Mahimahi(mahimahi) => mahimahi.fmt(f),
            Self::Steps(steps) => steps.fmt(f),
            Self::Rfc8867(rfc8867) => rfc8867.fmt(f),
            Self::Blockage(blockage) => blockage.fmt(f),
            Self::Brownian(process) => process.fmt(f),
        }
    }
}
