//! A synthetic 60 GHz link: `blockage mobility-and-blockages`.

use core::fmt;

use sojourn_core::param::{Flag, Style};
use sojourn_core::{Params, Span, SpecError, Words};

use super::serving::{END, FRAMING_AS_THERE, OnLink, SHAPER, Serving, Shaper};
use crate::OnEnd;
use crate::blockage::{Blockage, DURATIONS, Preset};

sojourn_core::params! {
    /// What may follow the preset.
    pub(super) struct Written: "blockage",
        "A synthetic 60 GHz link (802.11ad): static, short-blockages, long-blockages, mobility-and-blockages"
    {
        duration: Span = "120s", DURATIONS, "Length of the trace that is drawn";
        nooutages: bool as Flag = "", "The lowest capacity is 385 Mbit/s, not zero";
        end: OnEnd = END;
        shaper: Shaper = SHAPER;
        framing: OnLink = FRAMING_AS_THERE;
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct BlockageSpec {
    pub process: Blockage,
    pub serving: Serving,
}

impl BlockageSpec {
    /// Reads what follows the word `blockage`.
    pub(super) fn parse(words: &mut Words<'_>) -> Result<Self, SpecError> {
        let preset = words.parse(Written::NAME, Preset::parse)?;
        let Written { duration, nooutages, end, shaper, framing } = Written::parse(words)?;
        let process = Blockage::new(preset).lasting(duration)?;
        let process = if nooutages { process.without_outages() } else { process };
        let serving = Serving { on_end: end, shaper, framing: framing.framing()? };
        Ok(Self { process, serving })
    }
}

impl fmt::Display for BlockageSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { process, serving: Serving { on_end, shaper, framing } } = self;
        write!(f, "{} {}", Written::NAME, process.preset().name())?;
        let written = Written {
            duration: process.duration(),
            nooutages: !process.has_outages(),
            end: *on_end,
            shaper: *shaper,
            framing: (*framing).into(),
        };
        written.write(Style::Blank, f)
    }
}
