//! What is wrong with a study, and where it is written.

use std::fmt;

use sojourn_core::SpecError;

/// One mistake of a study: the file, line and column, the key, what is allowed, the nearest match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StudyError {
    mistake: Box<Mistake>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Mistake {
    place: Place,
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
        Self { mistake: Box::new(Mistake { place, key: key.into(), problem }) }
    }

    /// Of a file as a whole.
    pub fn of_file(file: impl Into<String>, problem: impl Into<String>) -> Self {
        let place = Place { file: file.into(), position: None };
        Self::new(place, "", SpecError::new(problem))
    }

    pub fn place(&self) -> &Place {
        &self.mistake.place
    }

    /// With dots: `scenario.path.rate`; empty when no key is to blame.
    pub fn key(&self) -> &str {
        &self.mistake.key
    }

    pub fn problem(&self) -> &SpecError {
        &self.mistake.problem
    }
}

impl fmt::Display for StudyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Mistake { place, key, problem } = &*self.mistake;
        write!(f, "{place}: ")?;
        if !key.is_empty() {
            write!(f, "{key}: ")?;
        }
        problem.fmt(f)
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
