//! A policer, as `tc`'s `police`: it drops packets beyond a token bucket, before the queue.

use alloc::format;
use core::fmt;

use sojourn_core::{Bytes, Param, ParamKind, Rate, Span, SpecError, Time, Words, param};

use crate::Model;

/// A checked policer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PolicerConfig {
    #[default]
    None,
    Bucket {
        rate: Rate,
        burst: Bytes,
    },
}

const PARAMS: &[Param] = &[
    Param::new("rate", ParamKind::Rate, "", "Tokens that come in"),
    Param::new(
        "burst",
        ParamKind::Size,
        "",
        "Tokens that the bucket holds; a full packet at least",
    ),
];

/// The names by which [`PolicerConfig::parse`] knows them.
pub(crate) const MODELS: &[Model] = &[
    Model { name: "none", doc: "Everything passes", params: &[] },
    Model {
        name: "police",
        doc: "Drops what exceeds a token bucket: rate 8mbit burst 64kb; the word may be left out",
        params: PARAMS,
    },
];

/// A smaller bucket would never let a full packet pass.
const LEAST_BURST: u64 = 1514;
const MOST_BURST: u64 = u32::MAX as u64;

impl PolicerConfig {
    /// Reads `none` or `rate 8mbit burst 64kb`.
    ///
    /// # Errors
    /// A parameter that is missing, unknown or out of range.
    pub fn parse(text: &str) -> Result<Self, SpecError> {
        let mut words = Words::new(text);
        let (mut rate, mut burst) = (None, None);
        if text.trim() == "none" {
            return Ok(Self::None);
        }
        while let Some(word) = words.next() {
            match word {
                "police" if rate.is_none() && burst.is_none() => {}
                "rate" => rate = Some(words.parse("rate", Rate::parse_tc)?),
                "burst" | "buffer" | "maxburst" => {
                    burst = Some(words.parse("burst", Bytes::parse_tc)?);
                }
                _ => return Err(param::unknown_param("police", word, PARAMS)),
            }
        }
        let missing = |what: &str| {
            SpecError::new(format!("a policer needs its {what}")).allow(["rate 8mbit burst 64kb"])
        };
        let rate = rate.ok_or_else(|| missing("rate"))?;
        let burst = burst.ok_or_else(|| missing("burst"))?;
        if rate == Rate::ZERO || rate.is_unlimited() {
            return Err(SpecError::new(format!("a policer's rate of {rate} is out of range"))
                .allow(["more than 0, such as 8mbit"]));
        }
        if !(LEAST_BURST..=MOST_BURST).contains(&burst.as_u64()) {
            return Err(SpecError::new(format!("a burst of {burst} is out of range"))
                .allow([format!("{LEAST_BURST} to {MOST_BURST} bytes")]));
        }
        Ok(Self::Bucket { rate, burst })
    }

    /// `None` if everything passes.
    pub fn build(&self) -> Option<Policer> {
        match *self {
            Self::None => None,
            Self::Bucket { rate, burst } => {
                let full = u128::from(burst.as_u64()) * BIT_NANOS_A_BYTE;
                Some(Policer {
                    rate: u128::from(rate.as_bps()),
                    full,
                    tokens: full,
                    at: Time::ZERO,
                })
            }
        }
    }
}

impl fmt::Display for PolicerConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Bucket { rate, burst } => write!(f, "rate {rate} burst {}", burst.as_u64()),
        }
    }
}

/// A byte in bits times nanoseconds per second. In this unit, what a rate brings in a time is a
/// product.
const BIT_NANOS_A_BYTE: u128 = 8 * Span::from_secs(1).as_nanos() as u128;

/// A bucket that is full at first.
#[derive(Clone, Debug)]
pub struct Policer {
    /// Bits per second.
    rate: u128,
    full: u128,
    tokens: u128,
    at: Time,
}

impl Policer {
    /// Whether a packet of `bytes` on the wire may pass at `now`; if so, its tokens are taken.
    pub fn passes(&mut self, now: Time, bytes: u32) -> bool {
        let elapsed = u128::from(now.since(self.at).as_nanos());
        self.tokens = self.full.min(self.tokens + self.rate * elapsed);
        self.at = now;
        let needed = u128::from(bytes) * BIT_NANOS_A_BYTE;
        let passes = needed <= self.tokens;
        if passes {
            self.tokens -= needed;
        }
        passes
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_burst_passes_at_once_and_then_the_rate() {
        let mut policer =
            PolicerConfig::parse("rate 8mbit burst 3028").expect("a policer").build().expect("one");
        let at = |us| Time::ZERO + Span::from_micros(us);
        let passes = [0, 0, 0, 1000, 1513, 1514, 1514, 3028].map(|us| policer.passes(at(us), 1514));
        assert_eq!(passes, [true, true, false, false, false, true, false, true]);
    }

    #[test]
    fn what_is_no_policer_is_refused() {
        for text in [
            "",
            "rate 8mbit",
            "burst 64kb",
            "rate 0bit burst 64kb",
            "rate 8mbit burst 100",
            "rate 8mbit burst 64kb drop",
            "8mbit",
        ] {
            assert!(PolicerConfig::parse(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_the_parser_panic(text in "(police|rate|burst|none|[0-9a-z]{0,6}| ){0,8}") {
            if let Ok(config) = PolicerConfig::parse(&text) {
                prop_assert_eq!(PolicerConfig::parse(&config.to_string()), Ok(config));
            }
        }
    }
}
