//! A policer, as `tc`'s `police`: it drops packets beyond a token bucket, before the queue.

use core::fmt;

use sojourn_core::param::{Needed, Style, TcRate, TcSize, size};
use sojourn_core::{Bytes, Param, Params, Rate, Span, SpecError, Time, Words};

use crate::Model;
use crate::notation::POSITIVE;

/// A checked policer.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum PolicerConfig {
    #[default]
    None,
    Bucket(Bucket),
}

sojourn_core::params! {
    pub struct Bucket: "police",
        "Drops what exceeds a token bucket: rate 8mbit burst 64kb; the word may be left out"
    {
        pub rate: Rate as Needed<TcRate> = "", POSITIVE, "Tokens that come in";
        // A smaller bucket would never let a full packet pass.
        pub burst: Bytes as Needed<TcSize> = Param::of::<Needed<TcSize>>(
            "burst", "", "Tokens that the bucket holds; a full packet at least",
        ).or(&["buffer", "maxburst"]).within(size(1514, u32::MAX as u64));
    }
}

/// The names by which [`PolicerConfig::parse`] knows them.
pub(crate) const MODELS: &[Model] =
    &[Model::bare("none", "Everything passes"), Model::of::<Bucket>()];

impl PolicerConfig {
    /// Reads `none` or `rate 8mbit burst 64kb`.
    ///
    /// # Errors
    /// A parameter that is missing, unknown or out of range.
    pub fn parse(text: &str) -> Result<Self, SpecError> {
        if text.trim() == "none" {
            return Ok(Self::None);
        }
        let mut words = Words::new(text);
        let mut all = words.clone();
        if words.next() == Some(Bucket::NAME) {
            all = words;
        }
        Ok(Self::Bucket(Bucket::parse(&mut all)?))
    }

    /// Refuses values out of bounds; code may have set them.
    ///
    /// # Errors
    /// Names the parameter and what is allowed.
    pub fn check(&self) -> Result<(), SpecError> {
        match self {
            Self::None => Ok(()),
            Self::Bucket(bucket) => bucket.check(),
        }
    }

    /// `None` if everything passes.
    pub fn build(&self) -> Option<Policer> {
        match *self {
            Self::None => None,
            Self::Bucket(Bucket { rate, burst }) => {
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
            Self::Bucket(bucket) => f.write_str(&bucket.values(Style::Blank)),
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
