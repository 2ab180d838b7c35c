//! Ctrl-C while the code of a class is running.
//!
//! Python gives it to the main thread. If the class is asked in that thread, its code raises the exception, which goes through to
//! the caller. In the threads of `Study.run` it has to be brought there.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use sojourn_study::engine::watched;

/// How long a run may go on before Python is asked whether somebody pressed Ctrl-C.
pub(crate) const PATIENCE: Duration = Duration::from_millis(50);

thread_local! {
    /// What is no fault of a class, but the wish of whoever runs it: Ctrl-C, or `sys.exit`.
    static RAISED: RefCell<Option<PyErr>> = const { RefCell::new(None) };
    static IS_CALLERS: Cell<bool> = const { Cell::new(false) };
    /// What Python calls this thread.
    static NAME: Cell<Option<u64>> = const { Cell::new(None) };
}

/// Threads of Sojourn's that are in the code of a class at present.
static BUSY: Mutex<BTreeSet<u64>> = Mutex::new(BTreeSet::new());

/// Does `work` in the thread of the caller without holding Python. Ctrl-C ends the runs in it, and comes through, as
/// everything does that is raised in a class and is no `Exception`.
pub(crate) fn in_callers<T: Send>(
    py: Python<'_>,
    work: impl FnOnce() -> PyResult<T> + Send,
) -> PyResult<T> {
    RAISED.take();
    let before = IS_CALLERS.replace(true);
    let done = py.detach(|| {
        let asked = Cell::new(Instant::now());
        watched(
            move || {
                if asked.get().elapsed() < PATIENCE {
                    return false;
                }
                asked.set(Instant::now());
                match Python::attach(|py| py.check_signals()) {
                    Ok(()) => false,
                    Err(error) => {
                        RAISED.set(Some(error));
                        true
                    }
                }
            },
            work,
        )
    });
    IS_CALLERS.set(before);
    match RAISED.take() {
        Some(error) => Err(error),
        None => done,
    }
}

/// Keeps an exception that is to go through to the caller.
pub(super) fn keep(py: Python<'_>, error: PyErr) {
    if !error.is_instance_of::<PyException>(py) && IS_CALLERS.get() {
        RAISED.set(Some(error));
    }
}

/// While it lives, this thread is in the code of a class.
pub(super) struct Busy(Option<u64>);

impl Busy {
    pub(super) fn new(py: Python<'_>) -> Self {
        if IS_CALLERS.get() {
            return Self(None);
        }
        let name = NAME.get().or_else(|| name(py).ok());
        NAME.set(name);
        if let Some(name) = name {
            BUSY.lock().unwrap_or_else(PoisonError::into_inner).insert(name);
        }
        Self(name)
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        if let Some(name) = self.0 {
            BUSY.lock().unwrap_or_else(PoisonError::into_inner).remove(&name);
        }
    }
}

fn name(py: Python<'_>) -> PyResult<u64> {
    py.import("_thread")?.call_method0("get_ident")?.extract()
}

/// Raises `KeyboardInterrupt` in the code of classes, wherever it is running at present in threads of Sojourn's.
pub(crate) fn interrupt(py: Python<'_>) -> PyResult<()> {
    let busy: Vec<u64> =
        BUSY.lock().unwrap_or_else(PoisonError::into_inner).iter().copied().collect();
    if !busy.is_empty() {
        py.import("sojourn._own")?.call_method1("interrupt", (busy,))?;
    }
    Ok(())
}
