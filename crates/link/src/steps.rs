//! Values that follow one another in time: `steps 0% 10s 5% 2s`.

use alloc::format;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use sojourn_core::param::Form;
use sojourn_core::{Param, Span, SpecError, Time, Words};

use crate::{Model, OnEnd};

/// Values, each for its time; after the last one they begin again, or the last one stays.
#[derive(Clone, Debug, PartialEq)]
pub struct Steps<T> {
    /// Each value, and when it ends, counted from the beginning of the first.
    steps: Arc<[(T, Span)]>,
    on_end: OnEnd,
}

/// What follows the last value.
const END: Param = Param::of::<OnEnd>(
    "end",
    "wrap",
    "What follows the end: 'wrap' begins again, 'hold' keeps the last one",
);

/// The entry of values that follow one another, in the list of what can take them.
pub(crate) const fn model(doc: &'static str) -> Model {
    Model { name: "steps", doc, params: &[END] }
}

/// How an error describes what follows the word.
const FORM: &str = "steps VALUE TIME VALUE TIME …, and 'end hold' for a last value that stays";
const MOST: usize = 100_000;
const LONGEST: Span = Span::from_secs(10_000_000);

impl<T: Copy + fmt::Display> Steps<T> {
    /// Reads what follows the word `steps`, up to the end.
    ///
    /// # Errors
    /// A value that `read` refuses, one without a time, a time of zero, no values or too many.
    pub(crate) fn parse(
        words: &mut Words<'_>,
        read: impl Fn(&str) -> Result<T, SpecError>,
    ) -> Result<Self, SpecError> {
        let mut steps = Vec::new();
        let mut on_end = OnEnd::Wrap;
        let mut end = Span::ZERO;
        while let Some(word) = words.next() {
            if word == "end" {
                on_end = OnEnd::take(words, word, &END)?;
                if let Some(surplus) = words.next() {
                    let problem = format!("'{surplus}' follows a complete list of steps");
                    return Err(SpecError::new(problem).allow([FORM]));
                }
                break;
            }
            let value = read(word)?;
            let time = words.next().ok_or_else(|| {
                SpecError::new(format!("'{word}' has no time that it lasts")).allow([FORM])
            })?;
            let time: Span = time.parse()?;
            if time.is_zero() || time > LONGEST || steps.len() == MOST {
                let problem = format!("step {} lasts {time}", steps.len() + 1);
                let allowed = format!("times above 0s up to {LONGEST}, {MOST} steps at most");
                return Err(SpecError::new(problem).allow([allowed]));
            }
            end += time;
            steps.push((value, end));
        }
        if steps.is_empty() {
            return Err(SpecError::new("no step is given").allow([FORM]));
        }
        Ok(Self { steps: steps.into(), on_end })
    }

    pub fn at(&self, now: Time) -> T {
        let (last, period) = self.steps[self.steps.len() - 1];
        let mut since = now.since(Time::ZERO);
        if since >= period {
            match self.on_end {
                OnEnd::Hold => return last,
                OnEnd::Wrap => since = Span::from_nanos(since.as_nanos() % period.as_nanos()),
            }
        }
        let place = self.steps.partition_point(|(_, end)| *end <= since);
        self.steps[place].0
    }

    /// Every value with its share of the time, if the steps repeat.
    pub(crate) fn shares(&self) -> impl Iterator<Item = (T, f64)> {
        let period = self.steps[self.steps.len() - 1].1.as_secs_f64();
        self.lengths().map(move |(value, length)| (value, length.as_secs_f64() / period))
    }

    fn lengths(&self) -> impl Iterator<Item = (T, Span)> {
        let mut begin = Span::ZERO;
        self.steps.iter().map(move |(value, end)| {
            let length = *end - begin;
            begin = *end;
            (*value, length)
        })
    }
}

impl<T: Copy + fmt::Display> fmt::Display for Steps<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("steps")?;
        for (value, length) in self.lengths() {
            write!(f, " {value} {length}")?;
        }
        match self.on_end {
            OnEnd::Wrap => Ok(()),
            OnEnd::Hold => f.write_str(" end hold"),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(text: &str) -> Result<Steps<Span>, SpecError> {
        Steps::parse(&mut Words::new(text), str::parse)
    }

    fn at(steps: &Steps<Span>, ms: u64) -> Span {
        steps.at(Time::ZERO + Span::from_millis(ms))
    }

    #[test]
    fn values_last_their_time_and_begin_again_or_stay() {
        let ms = Span::from_millis;
        let wrapped = read("1ms 2s 5ms 1s").expect("steps");
        let times = [0, 1999, 2000, 2999, 3000, 5000];
        assert_eq!(times.map(|t| at(&wrapped, t)), [1, 1, 5, 5, 1, 5].map(ms));
        let held = read("1ms 2s 5ms 1s end hold").expect("steps");
        assert_eq!(times.map(|t| at(&held, t)), [1, 1, 5, 5, 5, 5].map(ms));
        assert_eq!(held.to_string(), "steps 1ms 2s 5ms 1s end hold");
    }

    #[test]
    fn lists_that_are_none_are_refused() {
        for text in
            ["", "1ms", "1ms 0s", "1ms 2s 3ms", "x 1s", "1ms 1s end", "1ms 1s end now", "end hold"]
        {
            assert!(read(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_the_parser_panic(text in "[0-9a-z% .]{0,40}") {
            if let Ok(steps) = read(&text) {
                let printed = steps.to_string();
                let again = read(printed.strip_prefix("steps").expect("the word")).expect("as printed");
                prop_assert_eq!(steps, again);
            }
        }
    }
}
