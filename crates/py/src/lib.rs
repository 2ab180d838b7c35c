//! The extension module of the Python package: what Python asks of studies and results.
//!
//! | module | what |
//! |---|---|
//! | `study` | studies: read, built of Python's values, run, and one run at a time |
//! | `recorder` | a result folder whose runs other processes compute |
//! | `results` | a result folder, read |
//! | `table` | tables that other libraries take over without a copy |
//! | `columns` | from rows, series, delays and claims to such tables |
//! | `value` | Python's values as a study's document, and back |
//! | `model` | closed forms |
//! | `own` | congestion controls and queues that are written in Python |
//! | `errors` | exceptions |
//!
//! `python/sojourn` is the typed face of it; nothing else imports it.

mod columns;
mod errors;
mod model;
mod own;
mod recorder;
mod results;
mod study;
mod table;
mod value;

use pyo3::pymodule;

/// As the command has it. Python's own objects are not its business.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[pymodule]
mod _native {
    use pyo3::prelude::*;
    use pyo3::types::PyModule;

    #[pymodule_export]
    use crate::errors::Mistake;
    #[pymodule_export]
    use crate::model::{model, models};
    #[pymodule_export]
    use crate::own::{Ack, Congestion, Lost, Packet, Rate, Start, check};
    #[pymodule_export]
    use crate::recorder::Recorder;
    #[pymodule_export]
    use crate::results::{Results, Run};
    #[pymodule_export]
    use crate::study::Study;
    #[pymodule_export]
    use crate::table::Table;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        let py = module.py();
        let error = py.get_type::<crate::errors::Error>();
        error.setattr("is_of_machine", false)?;
        module.add("Error", error)?;
        module.add("StudyError", py.get_type::<crate::errors::StudyError>())?;
        module.add("RunError", py.get_type::<crate::errors::RunError>())?;
        module.add("ResultsError", py.get_type::<crate::errors::ResultsError>())?;
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        module.add("MODEL", sojourn_study::study::model_version())
    }
}
