//! Congestion controls and queues that are written in Python: `python MODULE:CLASS NAME=VALUE …`.
//!
//! A study names the class by where Python imports it from, so every process that can import it can run
//! the study. The source's digest is a part of a run's identity, so other code has other runs.

mod class;
mod controller;
mod queue;
mod threads;

pub(crate) use controller::{Ack, Congestion, Lost, Rate, Start};
pub(crate) use queue::Packet;
pub(crate) use threads::{PATIENCE, in_callers, interrupt};

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use pyo3::prelude::*;
use sojourn_core::SpecError;
use sojourn_study::Registry;
use sojourn_study::engine::{Ended, look};
use sojourn_study::runner::Fault;

use crate::errors::{Error, guarded};
use class::Class;
use threads::Busy;

/// The built-in kinds, and those that are written in Python.
pub(crate) fn registry() -> Registry {
    let mut registry = Registry::default();
    let added = registry
        .add_controller::<controller::Own>()
        .and_then(|()| registry.add_queue::<queue::Own>());
    added.expect("no built-in kind is named python");
    for engine in ["live", "kernel"] {
        let who = "the command `sojourn run` has it, the Python package does not";
        registry.add_engine_elsewhere(engine, who);
    }
    registry
}

/// Tries what `text` names against what every congestion control must do, or every queue: what it does
/// wrong, or `None`.
#[pyfunction]
pub(crate) fn check(py: Python<'_>, is_queue: bool, text: &str) -> PyResult<Option<String>> {
    let refused = |error: SpecError| Error::new_err(error.to_string());
    let registry = registry();
    in_callers(py, || {
        guarded(|| {
            let tried = if is_queue {
                let config = sojourn_qdisc::Config::parse_of(registry.queues(), text);
                let config = config.map_err(refused)?;
                catch_unwind(AssertUnwindSafe(|| sojourn_qdisc::suite::check(&config)))
            } else {
                let config = registry.controller(text).map_err(refused)?;
                catch_unwind(AssertUnwindSafe(|| sojourn_cca::suite::check(&config)))
            };
            Ok(match tried {
                Ok(answer) => answer.err(),
                // Ctrl-C comes through as such.
                Err(panic) if panic.is::<Ended>() => None,
                Err(panic) => match panic.downcast::<Fault>() {
                    Ok(fault) => Some(fault.0),
                    Err(panic) => resume_unwind(panic),
                },
            })
        })
    })
}

/// What Python answers; an exception ends the run.
fn asked<T>(class: &Class, ask: impl FnOnce(Python<'_>) -> PyResult<T>) -> T {
    let answer = Python::attach(|py| {
        let _busy = Busy::new(py);
        look();
        ask(py).map_err(|error| {
            let fault = class.fault(py, &error);
            threads::keep(py, error);
            fault
        })
    });
    answer.unwrap_or_else(|fault| resume_unwind(Box::new(fault)))
}
