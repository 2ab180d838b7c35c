//! Exceptions, with the texts that the command prints. A panic becomes one too.

use std::panic::{AssertUnwindSafe, catch_unwind};

use pyo3::create_exception;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use sojourn_core::SpecError;
use sojourn_file::document::MAX_MISTAKES;

create_exception!(sojourn, Error, PyException, "What Sojourn could not do, and why.");
create_exception!(
    sojourn,
    StudyError,
    Error,
    "What is wrong with a study: a line for each mistake, and `mistakes`, a list of them."
);
create_exception!(
    sojourn,
    RunError,
    Error,
    "Why a study could not be run to its end. What was finished is kept."
);
create_exception!(
    sojourn,
    ResultsError,
    Error,
    "Why a result folder cannot be read, or has not what was asked for."
);

/// One mistake of a study.
#[pyclass(frozen, get_all, module = "sojourn")]
pub(crate) struct Mistake {
    /// The file, the option, or `study` where it was built of values.
    file: String,
    /// Counted from 1; `None` where there are no lines.
    line: Option<u32>,
    column: Option<u32>,
    /// With dots: `scenario.path.rate`.
    key: String,
    /// What is wrong, what is allowed and what is near.
    problem: String,
    text: String,
}

#[pymethods]
impl Mistake {
    fn __str__(&self) -> &str {
        &self.text
    }

    fn __repr__(&self) -> String {
        format!("<Mistake {}>", self.text)
    }
}

pub(crate) fn of_study(py: Python<'_>, error: &sojourn_study::StudyError) -> PyErr {
    let mut lines: Vec<String> = error.mistakes().map(ToString::to_string).collect();
    if lines.len() == MAX_MISTAKES {
        lines.push("these are the first; there may be more".to_owned());
    }
    let raised = StudyError::new_err(lines.join("\n"));
    let mistakes = error.mistakes().map(|mistake| {
        let position = mistake.place().position;
        Mistake {
            file: mistake.place().file.clone(),
            line: position.map(|(line, _)| line),
            column: position.map(|(_, column)| column),
            key: mistake.key().to_owned(),
            problem: mistake.problem().to_string(),
            text: mistake.to_string(),
        }
    });
    let listed = mistakes.collect::<Vec<_>>();
    match raised.value(py).setattr("mistakes", listed) {
        Ok(()) => raised,
        Err(error) => error,
    }
}

pub(crate) fn of_run(py: Python<'_>, error: &sojourn_study::runner::RunError) -> PyErr {
    use sojourn_study::runner::RunError as E;
    match error {
        E::Study(error) => of_study(py, error),
        E::Results(error) => of_results(error),
        other => of_whom(RunError::new_err(other.to_string()), other.is_of_machine()),
    }
}

pub(crate) fn of_results(error: &sojourn_study::results::ResultsError) -> PyErr {
    of_whom(ResultsError::new_err(error.to_string()), error.is_of_machine())
}

/// The exception, with whether this machine is to blame.
fn of_whom(raised: PyErr, is_of_machine: bool) -> PyErr {
    Python::attach(|py| match raised.value(py).setattr("is_of_machine", is_of_machine) {
        Ok(()) => raised,
        Err(error) => error,
    })
}

/// What was asked for is none of what there is.
pub(crate) fn of_name(error: &SpecError) -> PyErr {
    ResultsError::new_err(error.to_string())
}

/// A fault of Sojourn ends as an exception like any other.
pub(crate) fn guarded<T>(work: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
        let text = text.unwrap_or("without a message");
        Err(Error::new_err(format!("a fault of Sojourn, not of what it was given: {text}")))
    })
}
