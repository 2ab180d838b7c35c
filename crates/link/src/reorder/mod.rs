//! Reordering as in `netem`: some packets do not wait for the propagation delay, and so overtake
//! those that do.

use alloc::format;
use core::fmt;

use sojourn_core::param::{Given, whole};
use sojourn_core::{Params, SpecError, Stream, Words};

use crate::{Model, Percent};

/// A checked reordering.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum ReorderConfig {
    #[default]
    None,
    Random(Random),
}

sojourn_core::params! {
    /// Beginning with the `gap`-th packet after the last one that arrived at once, each packet
    /// arrives at once with probability `p`; each random number includes the share `rho` of the one
    /// before.
    pub struct Random: "random",
        "As netem's 'reorder': a share of the packets arrive at once; '25% 50% gap 5' alone means this"
    {
        pub p: Percent as Given<Percent> = "", "Chance of a packet that may arrive at once to do so";
        pub rho: Percent = "0%", "Weight of the random number before";
        pub gap: u32 = "1", whole(1, u32::MAX as i64),
            "After a packet that arrived at once, the next that may is this many packets later";
    }
}

/// The names by which [`ReorderConfig::parse`] knows them.
pub(crate) const MODELS: &[Model] =
    &[Model::bare("none", "Every packet propagates"), Model::of::<Random>()];

impl ReorderConfig {
    /// Reads `none`, `25%`, `25% 50%` or `25% 50% gap 5`.
    ///
    /// # Errors
    /// No share, one out of range, or a word that has no meaning here.
    pub fn parse(text: &str) -> Result<Self, SpecError> {
        let words = &mut Words::new(text);
        let mut all = words.clone();
        let mut first = words.next();
        if matches!(first, Some("reorder" | "random")) {
            all = words.clone();
            first = words.next();
        }
        match (first, words.next()) {
            (None, _) => {
                Err(SpecError::new("no share is given").allow(["none", "25%", "25% 50% gap 5"]))
            }
            (Some("none"), None) => Ok(Self::None),
            (Some("none"), Some(surplus)) => {
                Err(SpecError::new(format!("'{surplus}' follows 'none'")))
            }
            _ => Ok(Self::Random(Random::parse_in_order(&mut all)?)),
        }
    }

    /// Refuses values out of bounds; code may have set them.
    ///
    /// # Errors
    /// Names the parameter and what is allowed.
    pub fn check(&self) -> Result<(), SpecError> {
        match self {
            Self::None => Ok(()),
            Self::Random(random) => random.check(),
        }
    }

    /// `None` if nothing is ever reordered.
    pub fn build(&self) -> Option<Reorder> {
        match *self {
            Self::None => None,
            Self::Random(Random { p, rho, gap }) => {
                Some(Reorder { p: p.share(), rho: rho.share(), gap, passed: 0, last: None })
            }
        }
    }
}

impl fmt::Display for ReorderConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            // As netem writes it.
            Self::Random(Random { p, rho, gap }) => write!(f, "{p} {rho} gap {gap}"),
        }
    }
}

/// The state of a reordering.
#[derive(Clone, Debug)]
pub struct Reorder {
    p: f64,
    rho: f64,
    gap: u32,
    /// Packets since the last one that arrived at once.
    passed: u32,
    last: Option<f64>,
}

impl Reorder {
    /// Whether the next packet arrives without propagation.
    pub fn hurries(&mut self, random: &mut Stream) -> bool {
        self.passed += 1;
        if self.passed < self.gap {
            return false;
        }
        let fresh = random.unit();
        let drawn = self.last.map_or(fresh, |last| self.rho * last + (1.0 - self.rho) * fresh);
        self.last = Some(drawn);
        let hurries = drawn < self.p;
        if hurries {
            self.passed = 0;
        }
        hurries
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use sojourn_core::{Purpose, StreamAddress};

    use super::*;

    fn share(text: &str) -> f64 {
        let mut reorder = ReorderConfig::parse(text).expect("a reordering").build().expect("some");
        let mut random = StreamAddress { seed: 1, run: 1 }.stream(0, Purpose::Jitter);
        let packets = 100_000;
        let hurried = (0..packets).filter(|_| reorder.hurries(&mut random)).count();
        hurried as f64 / f64::from(packets)
    }

    #[test]
    fn the_share_is_that_of_the_candidates() {
        assert!((share("25%") - 0.25).abs() < 0.005);
        // One of five packets; with half a chance one of six on average.
        assert!((share("100% gap 5") - 0.2).abs() < 1e-4);
        assert!((share("50% gap 5") - 1.0 / 6.0).abs() < 0.002);
    }

    #[test]
    fn what_is_no_reordering_is_refused() {
        for text in ["", "x", "25", "101%", "25% 50% 10%", "25% gap", "25% gap 0", "none 1%"] {
            assert!(ReorderConfig::parse(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_the_parser_panic(text in "[0-9a-z% .]{0,30}") {
            if let Ok(config) = ReorderConfig::parse(&text) {
                prop_assert_eq!(ReorderConfig::parse(&config.to_string()), Ok(config));
            }
        }
    }
}
