//! How a command can end, and the exit codes that say so.

use std::fmt;
use std::io;
use std::path::Path;
use std::process::ExitCode;

use sojourn_file::StudyError;
use sojourn_file::document::MAX_MISTAKES;
use sojourn_study::results::{ResultsError, is_of_machine};
use sojourn_study::runner::RunError;

/// The command did what it was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Fine,
    /// A claim failed, a run has no result, or a comparison found something worse.
    Failed,
}

impl From<Outcome> for ExitCode {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Fine => Self::SUCCESS,
            Outcome::Failed => Self::from(1),
        }
    }
}

/// The command could not do what it was asked for.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The input is wrong.
    Input(String),
    /// This machine can't: a full disk, no permission.
    Machine(String),
    /// Standard output was closed.
    ClosedPipe,
}

impl Failure {
    pub(crate) fn input(problem: impl fmt::Display) -> Self {
        Self::Input(problem.to_string())
    }

    /// A file that the user named cannot be read.
    pub(crate) fn reading(path: &Path, error: &io::Error) -> Self {
        Self::Input(format!("{}: cannot be read: {error}", path.display()))
    }

    pub(crate) fn writing(path: &Path, error: &io::Error) -> Self {
        Self::of_io(error, format!("{}: cannot be written: {error}", path.display()))
    }

    /// The user's or the machine's fault, depending on the error.
    fn of_io(error: &io::Error, problem: String) -> Self {
        match is_of_machine(error) {
            true => Self::Machine(problem),
            false => Self::Input(problem),
        }
    }

    /// For an error of standard output.
    pub(crate) fn stdout(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::ClosedPipe,
            _ => Self::Machine(format!("standard output: {error}")),
        }
    }

    pub(crate) fn exit_code(&self) -> ExitCode {
        match self {
            Self::Input(_) => ExitCode::from(2),
            Self::Machine(_) => ExitCode::from(3),
            Self::ClosedPipe => ExitCode::SUCCESS,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Input(problem) | Self::Machine(problem) => f.write_str(problem),
            Self::ClosedPipe => f.write_str("standard output is closed"),
        }
    }
}

impl From<StudyError> for Failure {
    fn from(error: StudyError) -> Self {
        Self::Input(told(&error))
    }
}

/// A line for each mistake of a study; the first line has no mark, because the caller prints one.
pub(crate) fn told(error: &StudyError) -> String {
    let mut lines: Vec<String> = error.mistakes().map(ToString::to_string).collect();
    if lines.len() == MAX_MISTAKES {
        lines.push("these are the first; there may be more".to_owned());
    }
    lines.join("\nerror: ")
}

impl From<ResultsError> for Failure {
    fn from(error: ResultsError) -> Self {
        match error.is_of_machine() {
            true => Self::Machine(error.to_string()),
            false => Self::Input(error.to_string()),
        }
    }
}

impl From<RunError> for Failure {
    fn from(error: RunError) -> Self {
        match error {
            RunError::Study(error) => error.into(),
            error if error.is_of_machine() => Self::Machine(error.to_string()),
            error => Self::Input(error.to_string()),
        }
    }
}
