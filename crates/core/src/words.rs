//! The grammar in which algorithms and their parameters are written: a name, then parameters,
//! as `tc` writes a queue (`fq_codel limit 1000 target 5ms noecn`) or as a study overrides a
//! congestion controller (`bbr3 probe_rtt_interval=10s`). Both forms are read alike.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;

use crate::param::Param;

/// What is wrong with something a user wrote: the problem, what is allowed, and the nearest match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpecError {
    problem: String,
    allowed: Vec<String>,
    nearest: Option<String>,
}

impl SpecError {
    pub fn new(problem: impl Into<String>) -> Self {
        Self { problem: problem.into(), allowed: Vec::new(), nearest: None }
    }

    /// Names what would have been accepted.
    pub fn allow(mut self, allowed: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.allowed = allowed.into_iter().map(Into::into).collect();
        self
    }

    /// Suggests the candidate most like `written`, if one is like it at all.
    pub fn near<'a>(
        mut self,
        written: &str,
        candidates: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        self.nearest = nearest(written, candidates).map(str::to_owned);
        self
    }

    /// The same error, said of `place`.
    pub fn within(mut self, place: &str) -> Self {
        self.problem = format!("{place}: {}", self.problem);
        self
    }

    pub fn problem(&self) -> &str {
        &self.problem
    }

    pub fn allowed(&self) -> &[String] {
        &self.allowed
    }

    pub fn nearest(&self) -> Option<&str> {
        self.nearest.as_deref()
    }
}

impl fmt::Display for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.problem)?;
        if let Some(nearest) = &self.nearest {
            write!(f, "; did you mean '{nearest}'?")?;
        }
        if !self.allowed.is_empty() {
            write!(f, " (allowed: {})", self.allowed.join(", "))?;
        }
        Ok(())
    }
}

impl core::error::Error for SpecError {}

/// The candidate with the smallest edit distance to `written`, if at most a third of it differs.
pub fn nearest<'a>(
    written: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let limit = (written.chars().count() / 3).max(1) + 1;
    candidates
        .into_iter()
        .map(|candidate| (distance(written, candidate), candidate))
        .filter(|(distance, _)| *distance <= limit)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Levenshtein distance, in characters.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, cb) in b.iter().enumerate() {
            let substituted = diagonal + usize::from(ca != *cb);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(row[j] + 1).min(row[j + 1] + 1);
        }
    }
    row[b.len()]
}

/// A text cut into words, read from left to right. `name=value` counts as two words.
#[derive(Clone, Debug)]
pub struct Words<'a> {
    words: Vec<&'a str>,
    next: usize,
}

impl<'a> Words<'a> {
    pub fn new(text: &'a str) -> Self {
        let words = text
            .split(|c: char| c.is_whitespace() || c == '=')
            .filter(|word| !word.is_empty())
            .collect();
        Self { words, next: 0 }
    }

    /// A text that is one word, blanks and all.
    pub fn one(text: &'a str) -> Self {
        Self { words: vec![text], next: 0 }
    }

    /// The value that must follow parameter `name`.
    pub fn value(&mut self, name: &str) -> Result<&'a str, SpecError> {
        self.next().ok_or_else(|| SpecError::new(format!("'{name}' needs a value")))
    }

    /// The value after `name`, read by `parse`; an error says of which parameter.
    pub fn parse<T>(
        &mut self,
        name: &str,
        parse: impl FnOnce(&str) -> Result<T, SpecError>,
    ) -> Result<T, SpecError> {
        parse(self.value(name)?).map_err(|error| error.within(name))
    }

    /// The whole number after `name`, between `least` and `most`.
    pub fn count(&mut self, name: &str, least: u64, most: u64) -> Result<u64, SpecError> {
        let text = self.value(name)?;
        let bounds = || format!("a whole number from {least} to {most}");
        match text.parse::<u64>() {
            Ok(count) if (least..=most).contains(&count) => Ok(count),
            _ => Err(SpecError::new(format!("'{name}' is '{text}'")).allow([bounds()])),
        }
    }

    /// The word after `name`, one of those in `choices`, and what it stands for.
    pub fn choice<T: Copy>(&mut self, name: &str, choices: &[(&str, T)]) -> Result<T, SpecError> {
        let written = self.value(name)?;
        let allowed = || choices.iter().map(|(word, _)| *word);
        match choices.iter().find(|(word, _)| *word == written) {
            Some((_, choice)) => Ok(*choice),
            None => Err(SpecError::new(format!("'{name}' is '{written}'"))
                .near(written, allowed())
                .allow(allowed())),
        }
    }

    /// The number after `name`, between `least` and `most`.
    pub fn number(&mut self, name: &str, least: f64, most: f64) -> Result<f64, SpecError> {
        let text = self.value(name)?;
        number_in(text, 1.0, least, most).map_err(|error| error.within(name))
    }

    /// The share after `name`, written `0.02` or `2%`.
    pub fn share(&mut self, name: &str) -> Result<f64, SpecError> {
        let text = self.value(name)?;
        share(text).map_err(|error| error.within(name))
    }
}

impl<'a> Iterator for Words<'a> {
    type Item = &'a str;
    fn next(&mut self) -> Option<&'a str> {
        let word = self.words.get(self.next).copied();
        self.next += usize::from(word.is_some());
        word
    }
}

/// A share between 0 and 1, written `0.02` or `2%`.
pub fn share(text: &str) -> Result<f64, SpecError> {
    match text.trim().strip_suffix('%') {
        Some(percent) => number_in(percent, 0.01, 0.0, 1.0),
        None => number_in(text, 1.0, 0.0, 1.0),
    }
}

pub(crate) fn number_in(text: &str, scale: f64, least: f64, most: f64) -> Result<f64, SpecError> {
    match text.trim().parse::<f64>() {
        Ok(number) if (least..=most).contains(&(number * scale)) => Ok(number * scale),
        _ => Err(SpecError::new(format!("'{text}' is out of range"))
            .allow([format!("a number from {least} to {most}")])),
    }
}

/// The error for a parameter that an algorithm does not have.
pub fn unknown_param(algorithm: &str, written: &str, params: &[Param]) -> SpecError {
    let rows = || params.iter().flat_map(Param::rows).map(|row| row.name);
    SpecError::new(format!("{algorithm} has no parameter '{written}'"))
        .near(written, params.iter().flat_map(Param::names))
        .allow(rows())
}

/// The error for a value that is none of a parameter's words.
pub fn unknown_value(written: &str, param: &Param) -> SpecError {
    let allowed = param.bounds.allowed();
    SpecError::new(format!("'{}' is '{written}'", param.name))
        .near(written, allowed.iter().map(String::as_str))
        .allow(allowed.iter())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_notations_give_the_same_words() {
        let tc: Vec<_> = Words::new("fq_codel limit 1000 target 5ms").collect();
        let study: Vec<_> = Words::new("fq_codel limit=1000 target = 5ms").collect();
        assert_eq!(tc, study);
    }

    #[test]
    fn a_near_miss_is_named_and_a_far_one_is_not() {
        assert_eq!(nearest("targt", ["limit", "target"]), Some("target"));
        assert_eq!(nearest("zzzzzz", ["limit", "target"]), None);
    }

    #[test]
    fn shares_are_read_as_number_or_percent() {
        assert_eq!(share("2%"), Ok(0.02));
        assert_eq!(share("0.5"), Ok(0.5));
        assert!(share("101%").is_err());
        assert!(share("NaN").is_err());
    }
}
