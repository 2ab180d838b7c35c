//! A part of a study's runs, for one machine.

use std::fmt;
use std::str::FromStr;

use sojourn_core::SpecError;

/// Shard `number` of `count`, counted from 1. Runs are dealt out in turn, so that every shard has
/// some of every scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    number: u32,
    count: u32,
}

impl Shard {
    /// The only shard, with all runs.
    pub const WHOLE: Self = Self { number: 1, count: 1 };

    /// `None` unless `number` is one of `count`.
    pub fn new(number: u32, count: u32) -> Option<Self> {
        (1..=count).contains(&number).then_some(Self { number, count })
    }

    /// Whether it has the run at this position of the plan.
    pub fn has(self, run: u32) -> bool {
        run % self.count == self.number - 1
    }

    pub fn is_whole(self) -> bool {
        self.count == 1
    }

    /// What is added to file names: `-1-of-3`, or nothing for the whole.
    pub(crate) fn label(self) -> String {
        match self.is_whole() {
            true => String::new(),
            false => format!("-{}-of-{}", self.number, self.count),
        }
    }

    pub(crate) fn from_label(label: &str) -> Option<Self> {
        let (number, count) = label.strip_prefix('-')?.split_once("-of-")?;
        Self::new(number.parse().ok()?, count.parse().ok()?)
    }
}

impl FromStr for Shard {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        let parsed = text.split_once('/').and_then(|(number, count)| {
            Self::new(number.trim().parse().ok()?, count.trim().parse().ok()?)
        });
        parsed.ok_or_else(|| {
            SpecError::new(format!("'{text}' is no shard"))
                .allow(["K/N with K from 1 to N, such as 2/8"])
        })
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.number, self.count)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn no_text_makes_the_parser_panic(text in "[-0-9/ ]{0,12}|\\PC{0,12}") {
            if let Ok(shard) = text.parse::<Shard>() {
                prop_assert_eq!(shard.to_string().parse(), Ok(shard));
            }
            let _ = Shard::from_label(&text);
        }

        #[test]
        fn what_is_printed_reads_back(count in 1u32.., number in 0u32..) {
            let shard = Shard::new(number % count + 1, count).expect("it is one of them");
            prop_assert_eq!(shard.to_string().parse(), Ok(shard));
            prop_assert_eq!(Shard::from_label(&shard.label()), Some(shard).filter(|s| !s.is_whole()));
        }
    }

    #[test]
    fn every_run_is_in_one_shard() {
        let shards: Vec<Shard> = (1..=3).filter_map(|number| Shard::new(number, 3)).collect();
        assert_eq!(shards.len(), 3);
        for run in 0..100 {
            assert_eq!(shards.iter().filter(|shard| shard.has(run)).count(), 1);
        }
    }

    #[test]
    fn a_shard_is_read_as_it_is_written() {
        let shard: Shard = "2/8".parse().unwrap();
        assert_eq!(shard.to_string(), "2/8");
        assert_eq!(Shard::from_label(&shard.label()), Some(shard));
        for text in ["0/2", "3/2", "1", "a/b", "1/0", ""] {
            assert!(text.parse::<Shard>().is_err(), "{text}");
        }
    }
}
