//! A result folder whose runs other processes compute.

use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;
use sojourn_study::runner::{self, Progress, Recorded};

use crate::errors::{self, guarded, of_run};
use crate::results::Results;

/// Keeps results as they come. After [`Recorder::finish`] or [`Recorder::close`] it takes no more.
#[pyclass(frozen, module = "sojourn._native")]
pub(crate) struct Recorder {
    inner: Mutex<Option<runner::Recorder>>,
}

pub(crate) type Counts = (usize, usize, usize, usize);

pub(crate) fn counts(progress: Progress) -> Counts {
    let Progress { total, done, resumed, failed } = progress;
    (total, done, resumed, failed)
}

impl Recorder {
    pub(crate) fn new(recorder: runner::Recorder) -> Self {
        Self { inner: Mutex::new(Some(recorder)) }
    }

    fn locked(&self) -> MutexGuard<'_, Option<runner::Recorder>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with<T>(&self, work: impl FnOnce(&mut runner::Recorder) -> PyResult<T>) -> PyResult<T> {
        match &mut *self.locked() {
            Some(recorder) => guarded(|| work(recorder)),
            None => Err(closed()),
        }
    }
}

fn closed() -> PyErr {
    errors::RunError::new_err("the result folder is closed already")
}

#[pymethods]
impl Recorder {
    /// The next runs without a result from a position on, each with its identity.
    fn pending(&self, first: u32, most: usize) -> PyResult<Vec<(u32, String)>> {
        self.with(|recorder| {
            let plan = recorder.plan();
            let id = |run: u32| (run, plan.runs[run as usize].id.to_string());
            Ok(recorder.pending(first).take(most).map(id).collect())
        })
    }

    /// All runs, those with a result, those of an earlier start, those that failed.
    fn progress(&self) -> PyResult<Counts> {
        self.with(|recorder| Ok(counts(recorder.progress())))
    }

    /// Keeps a result; false if the run had one.
    fn keep(&self, py: Python<'_>, run: u32, result: &[u8]) -> PyResult<bool> {
        let kept = py.detach(|| {
            self.with(|recorder| Ok(recorder.keep(run, result).map(|kept| kept == Recorded::New)))
        })?;
        kept.map_err(|error| of_run(py, &error))
    }

    /// Notes that a run ended without a result.
    fn give_up(&self, run: u32, problem: String) -> PyResult<()> {
        self.with(|recorder| {
            recorder.give_up(run, problem);
            Ok(())
        })
    }

    /// Writes the tables, checks the claims and reads the folder.
    fn finish(&self, py: Python<'_>) -> PyResult<Results> {
        let recorder = self.locked().take().ok_or_else(closed)?;
        let summary = py.detach(|| guarded(|| Ok(recorder.finish())))?;
        let summary = summary.map_err(|error| of_run(py, &error))?;
        py.detach(|| Results::of(summary.folder))
    }

    /// Leaves the folder as it is, with what was kept.
    fn close(&self) {
        self.locked().take();
    }
}
