//! How users are told of their mistakes.

use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec;
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
        let problem = cut(problem.into());
        Self { problem, allowed: Vec::new(), nearest: None, about: None }
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
        self.problem = cut(format!("{place}: {}", self.problem));
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

    /// The same error for a reader who is told `place` elsewhere: undoes [`SpecError::within`], or removes
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

/// A word of more letters than that is cut.
const LONGEST: usize = 200;

/// The text with its very long words cut, which somebody has written and need not read in full.
fn cut(text: String) -> String {
    let is_long = |word: &str| word.len() > LONGEST && word.chars().count() > LONGEST;
    if !text.split(' ').any(is_long) {
        return text;
    }
    let words = text.split(' ').map(|word| match is_long(word) {
        true => {
            let (count, chars) = (word.chars().count(), || word.chars());
            let (first, last): (String, String) =
                (chars().take(60).collect(), chars().skip(count - 20).collect());
            format!("{first}…{last}")
        }
        false => word.to_owned(),
    });
    words.collect::<Vec<_>>().join(" ")
}

/// The candidate most like `written`, capitals aside: the one with the fewest mistakes of typing, if
/// they are at most a third of the letters; otherwise the first one that `written` begins. So two
/// letters have to be right, and of three to five one may be wrong.
pub fn nearest<'a>(
    written: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let written: Vec<char> = written.to_lowercase().chars().collect();
    let likeness = |candidate: &str| {
        let candidate: Vec<char> = candidate.to_lowercase().chars().collect();
        let mistakes = mistakes(&written, &candidate);
        if mistakes <= written.len().max(candidate.len()) / 3 {
            return Some((mistakes, 0));
        }
        let is_begun = written.len() >= LEAST_BEGINNING && candidate.starts_with(&written);
        is_begun.then_some((usize::MAX, candidate.len()))
    };
    candidates
        .into_iter()
        .filter_map(|candidate| Some((likeness(candidate)?, candidate)))
        .min_by_key(|(likeness, _)| *likeness)
        .map(|(_, candidate)| candidate)
}

/// A word that begins a name suggests that name only if it has at least this many letters.
const LEAST_BEGINNING: usize = 3;

/// Characters that were left out, added, mistaken, or exchanged with the next: the distance of optimal
/// string alignment.
fn mistakes(a: &[char], b: &[char]) -> usize {
    let mut rows = [vec![0; b.len() + 1], (0..=b.len()).collect(), vec![0; b.len() + 1]];
    for i in 1..=a.len() {
        let [before, last, row] = &mut rows;
        row[0] = i;
        for j in 1..=b.len() {
            let mistaken = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            row[j] = mistaken.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                row[j] = row[j].min(before[j - 2] + 1);
            }
        }
        rows.rotate_left(1);
    }
    rows[1][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_very_long_word_is_cut() {
        let error = SpecError::new(format!("'{}' is no rate", "1".repeat(5000))).within("rate");
        let expected = format!("rate: '{}…{}' is no rate", "1".repeat(59), "1".repeat(19));
        assert_eq!(error.problem(), expected);
        let path = format!("/{}", "a".repeat(190));
        assert_eq!(SpecError::new(path.clone()).problem(), path);
    }

    #[test]
    fn a_near_miss_is_named_and_a_far_one_is_not() {
        assert_eq!(nearest("targt", ["limit", "target"]), Some("target"));
        assert_eq!(nearest("zzzzzz", ["limit", "target"]), None);
    }

    #[test]
    fn a_short_name_has_to_be_almost_right() {
        let names = ["rtt", "mss", "red", "fq", "pie", "bbr", "cubic", "rate", "queue"];
        for unrelated in ["xy", "ab", "foo", "fat", "mtu", "ttl", "p", "que2x", ""] {
            assert_eq!(nearest(unrelated, names), None, "{unrelated}");
        }
        for (written, meant) in [("rt", "rtt"), ("mms", "mss"), ("brb", "bbr"), ("rde", "red")] {
            assert_eq!(nearest(written, names), Some(meant), "{written}");
        }
    }

    #[test]
    fn letters_that_changed_places_are_one_mistake_and_capitals_none() {
        assert_eq!(nearest("cubci", ["reno", "cubic"]), Some("cubic"));
        assert_eq!(nearest("RTT", ["mss", "rtt"]), Some("rtt"));
    }

    #[test]
    fn a_beginning_names_the_shortest_that_goes_on_so() {
        assert_eq!(nearest("good", ["goodput_mbps", "goodput"]), Some("goodput"));
        assert_eq!(nearest("go", ["goodput_mbps", "goodput"]), None);
    }
}
