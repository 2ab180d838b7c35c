//! A rate that stays: `10Mbps`, or `fixed 10mbit overhead 24`.

use sojourn_core::{Framing, Params, Rate, SpecError, Words};

use super::serving::{FRAMING, OnLink};
use crate::notation::serialisable;

sojourn_core::params! {
    /// What may follow the rate.
    pub(super) struct Written: "fixed", "A rate such as 10Mbps or 10mbit, alone or after this word" {
        framing: OnLink = FRAMING;
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FixedSpec {
    pub rate: Rate,
    pub framing: Framing,
}

impl FixedSpec {
    /// Reads what follows `rate`, up to the end.
    pub(super) fn parse(rate: Rate, words: &mut Words<'_>) -> Result<Self, SpecError> {
        Ok(Self { rate, framing: Written::parse(words)?.framing.framing()? })
    }
}

/// Reads `10Mbps` and `10mbit` alike as bits. In `tc` the first would be bytes, which nobody means by the
/// rate of a link.
pub(super) fn parse_rate(text: &str) -> Result<Rate, SpecError> {
    serialisable(text.parse()?)
}
