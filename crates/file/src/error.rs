//! What is wrong with a study, and where it is written.

use std::fmt;

use sojourn_core::SpecError;

use crate::at::At;

/// Mistakes of a study, each with the file, line and column, the key, what is allowed, the nearest
/// match. At least one; the first is the one that stopped the reading.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StudyError {
    first: Box<Mistake>,
    others: Vec<Mistake>,
}

/// One mistake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    place: Place,
    at: Option<At>,
    key: String,
    problem: SpecError,
}

/// Where something is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// A path as the user gave it, or an option of the command: `--set path.rate=40mbps`.
    pub file: String,
    /// Line and column, both from 1; `None` when the whole file is meant.
    pub position: Option<(u32, u32)>,
}

impl StudyError {
    pub fn new(place: Place, key: impl Into<String>, problem: SpecError) -> Self {
        let first = Box::new(Mistake { place, at: None, key: key.into(), problem });
        Self { first, others: Vec::new() }
    }

    /// An error about a file as a whole.
    pub fn of_file(file: impl Into<String>, problem: impl Into<String>) -> Self {
        let place = Place { file: file.into(), position: None };
        Self::new(place, "", SpecError::new(problem))
    }

    /// The same error, with its place in the tree.
    pub(crate) fn with_at(mut self, at: At) -> Self {
        self.first.at = Some(at);
        self
    }

    /// The same error, said of another key.
    pub fn with_key(mut self, key: impl Into<String>) -> Self {
        self.first.key = key.into();
        self
    }

    /// Joins several errors into one, in the order in which their places are written. `None` for
    /// none.
    pub fn joined(errors: impl IntoIterator<Item = Self>) -> Option<Self> {
        let mut all: Vec<Mistake> = Vec::new();
        for error in errors {
            all.push(*error.first);
            all.extend(error.others);
        }
        // Mistakes without a place in the tree concern a whole file and come first.
        all.sort_by_key(|mistake| mistake.at);
        let mut all = all.into_iter();
        Some(Self { first: Box::new(all.next()?), others: all.collect() })
    }

    pub fn mistakes(&self) -> impl Iterator<Item = &Mistake> {
        std::iter::once(&*self.first).chain(&self.others)
    }

    /// The first mistake.
    pub fn first(&self) -> &Mistake {
        &self.first
    }

    pub fn place(&self) -> &Place {
        &self.first.place
    }
}

impl Mistake {
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// Where in the tree, if it is known.
    pub fn at(&self) -> Option<At> {
        self.at
    }

    /// With dots: `scenario.path.rate`; empty if no key is the cause.
    pub fn key(&self) -> &str {
        &self.key
    }

    pub fn problem(&self) -> &SpecError {
        &self.problem
    }
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { place, key, problem, .. } = self;
        write!(f, "{place}: ")?;
        if !key.is_empty() {
            write!(f, "{key}: ")?;
        }
        problem.fmt(f)
    }
}

/// A line for each mistake.
impl fmt::Display for StudyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.first.fmt(f)?;
        self.others.iter().try_for_each(|mistake| write!(f, "\n{mistake}"))
    }
}

impl std::error::Error for StudyError {}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        match self.position {
            Some((line, column)) => write!(f, ":{line}:{column}"),
            None => Ok(()),
        }
    }
}
