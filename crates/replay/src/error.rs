use std::fmt;

/// Why a recording can't be replayed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplayError {
    /// Where, counted from 1; `None` if it is about the whole file.
    pub line: Option<u64>,
    pub problem: String,
}

impl ReplayError {
    pub(crate) fn at(line: u64, problem: impl Into<String>) -> Self {
        Self { line: Some(line), problem: problem.into() }
    }

    pub(crate) fn whole(problem: impl Into<String>) -> Self {
        Self { line: None, problem: problem.into() }
    }
}

impl fmt::Display for ReplayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "line {line}: {}", self.problem),
            None => f.write_str(&self.problem),
        }
    }
}

impl std::error::Error for ReplayError {}
