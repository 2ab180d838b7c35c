//! How users are told of their mistakes.

use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::convert::Infallible;
use core::fmt;

/// What is wrong with something a user wrote: the problem, what is allowed, and the nearest match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpecError {
    problem: String,
    allowed: Vec<String>,
    nearest: Option<Box<str>>,
    about: Option<&'static str>,
}

impl SpecError {
    pub fn new(problem: impl Into<String>) -> Self {
        Self { problem: problem.into(), allowed: Vec::new(), nearest: None, about: None }
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
        self.nearest = nearest(written, candidates).map(Box::from);
        self
    }

    /// The same error, said of `place`.
    pub fn within(mut self, place: &str) -> Self {
        self.problem = format!("{place}: {}", self.problem);
        self
    }

    /// Names the parameter that is to blame, where the error is told of several together.
    pub fn about(mut self, parameter: &'static str) -> Self {
        self.about = Some(parameter);
        self
    }

    /// The parameter that is to blame.
    pub fn parameter(&self) -> Option<&'static str> {
        self.about
    }

    /// The same error where `place` is named anyhow: takes back [`SpecError::within`], and leaves out
    /// the name with which the error begins (`'mss' is 7`).
    pub fn outside(mut self, place: &str) -> Self {
        let after = |name: &str, then: &str| self.problem.strip_prefix(name)?.strip_prefix(then);
        let rest = after(place, ": ").or_else(|| after(&format!("'{place}'"), " "));
        if let Some(rest) = rest {
            self.problem = rest.to_owned();
        }
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

impl From<Infallible> for SpecError {
    fn from(never: Infallible) -> Self {
        match never {}
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_near_miss_is_named_and_a_far_one_is_not() {
        assert_eq!(nearest("targt", ["limit", "target"]), Some("target"));
        assert_eq!(nearest("zzzzzz", ["limit", "target"]), None);
    }
}
