use alloc::format;
use alloc::string::String;
use core::fmt::{self, Display};

use sojourn_core::param::Form;
use sojourn_core::{Param, Span, SpecError};
use sojourn_link::{JitterConfig, LossConfig, PolicerConfig, RateConfig, ReorderConfig};
use sojourn_qdisc::Config;

/// One direction of a link: a queue, a transmitter, and what happens on the way.
#[derive(Clone, Debug, PartialEq)]
pub struct Link {
    pub name: String,
    pub queue: Config,
    pub rate: RateConfig,
    /// Propagation, the same for every packet.
    pub delay: Span,
    /// Drops packets beyond a rate, before the queue.
    pub policer: PolicerConfig,
    /// Loss before the queue, as an emulator in front of it makes.
    pub entry_loss: LossConfig,
    /// Loss on the medium, after the queue.
    pub loss: LossConfig,
    pub jitter: JitterConfig,
    /// Packets that overtake others.
    pub reorder: ReorderConfig,
}

/// Longer than any network's, and small enough that sums do not overflow.
const DELAY: Param = Param::of::<Span>("delay", "0s", "");

impl Link {
    /// A link that polices, loses and reorders nothing, and does not jitter.
    pub fn new(name: &str, queue: Config, rate: RateConfig, delay: Span) -> Self {
        Self {
            name: name.into(),
            queue,
            rate,
            delay,
            policer: PolicerConfig::None,
            entry_loss: LossConfig::None,
            loss: LossConfig::None,
            jitter: JitterConfig::None,
            reorder: ReorderConfig::None,
        }
    }

    /// Refuses values out of bounds; code may have set them.
    ///
    /// # Errors
    /// Names the link, the parameter and what is allowed.
    pub fn check(&self) -> Result<(), SpecError> {
        let Self { name, queue, rate, delay, policer, entry_loss, loss, jitter, reorder } = self;
        let checked = || {
            queue.check()?;
            rate.check()?;
            queue.check_on(rate.constant())?;
            policer.check()?;
            entry_loss.check()?;
            loss.check()?;
            jitter.check()?;
            reorder.check()?;
            Span::check(delay, &DELAY)
        };
        checked().map_err(|error| error.within(&format!("link '{name}'")))
    }

    /// The line that stands for it in a run's identity. Its keys are written here, and not after the
    /// names of fields, so that renaming one renames no run.
    pub fn canonical(&self) -> String {
        self.canonical_with(&mut RateConfig::canonical)
    }

    /// The same, with the rate as `write_rate` writes it.
    pub fn canonical_with(&self, write_rate: &mut dyn FnMut(&RateConfig) -> String) -> String {
        let Self { name, queue, rate, delay, policer, entry_loss, loss, jitter, reorder } = self;
        let mut line = format!(
            "link {} delay={delay} rate=[{}] queue=[{queue}] entry_loss=[{entry_loss}] loss=[{loss}] \
             jitter=[{jitter}]",
            Quoted(name),
            write_rate(rate)
        );
        if *policer != PolicerConfig::None {
            line += &format!(" policer=[{policer}]");
        }
        if *reorder != ReorderConfig::None {
            line += &format!(" reorder=[{reorder}]");
        }
        line
    }
}

/// A name in quotation marks, with what would end it escaped.
pub struct Quoted<'a>(pub &'a str);

impl Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.0.escape_default())
    }
}
