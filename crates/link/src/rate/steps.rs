//! Rates and how long each lasts: `steps 10mbit 5s 0 500ms 10mbit 5s`.

use alloc::vec::Vec;
use core::fmt;

use sojourn_core::param::{Style, unknown_param};
use sojourn_core::{Params, Rate, SpecError, Words};

use super::serving::{END, FRAMING_AS_THERE, OnLink, SHAPER_AS_THERE, Serving, Shaper};
use crate::{OnEnd, Step, Trace};

sojourn_core::params! {
    /// What may follow the rates.
    pub(super) struct Written: "steps",
        "Rates and how long each lasts, 0 for an outage: steps 10mbit 5s 0 500ms 10mbit 5s"
    {
        end: OnEnd = END.saying("As for blockage; 'hold' lets the last rate stay");
        shaper: Shaper = SHAPER_AS_THERE;
        framing: OnLink = FRAMING_AS_THERE;
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct StepsSpec {
    pub trace: Trace,
    pub serving: Serving,
}

impl StepsSpec {
    /// Reads what follows the word `steps`.
    pub(super) fn parse(words: &mut Words<'_>) -> Result<Self, SpecError> {
        let (mut steps, mut written) = (Vec::new(), Written::default());
        let within = |error: SpecError| error.within(Written::NAME);
        while let Some(word) = words.next() {
            if word.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c)) {
                let rate = match word {
                    "0" => Rate::ZERO,
                    _ => word.parse().map_err(within)?,
                };
                let duration = words.parse(word, str::parse).map_err(within)?;
                steps.push(Step { rate, duration });
            } else if !written.accept(word, words)? {
                return Err(unknown_param(Written::NAME, word, Written::PARAMS));
            }
        }
        written.check()?;
        let Written { end, shaper, framing } = written;
        let serving = Serving { on_end: end, shaper, framing: framing.framing()? };
        Ok(Self { trace: Trace::new(steps).map_err(within)?, serving })
    }
}

impl fmt::Display for StepsSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Written::NAME)?;
        for Step { rate, duration } in self.trace.steps() {
            write!(f, " {rate} {duration}")?;
        }
        let Serving { on_end, shaper, framing } = self.serving;
        Written { end: on_end, shaper, framing: framing.into() }.write(Style::Blank, f)
    }
}
