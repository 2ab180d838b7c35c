//! Studies: read, built of Python's values, run, and one run at a time.

use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyMapping};
use sojourn_core::{Span, SpecError};
use sojourn_file::document::{Document, Table as Values};
use sojourn_file::{FILE_NAME, StudyError};
use sojourn_study::results::Plan;
use sojourn_study::runner::{self, Options, Progress, Shard, Stop};
use sojourn_study::{Overrides, Study as Checked};

use crate::errors::{Error, RunError, guarded, of_run, of_study};
use crate::own::{self, PATIENCE, in_callers, interrupt};
use crate::recorder::{Recorder, counts};
use crate::results::{Results, Run};
use crate::value::{self, MADE, Refused};

/// A study, read and checked.
#[pyclass(frozen, module = "sojourn._native")]
pub(crate) struct Study {
    source: Source,
    overrides: Overrides,
    study: Arc<Checked>,
    plan: OnceLock<Arc<Plan>>,
}

#[derive(Clone)]
enum Source {
    File(PathBuf),
    Text { name: String, text: String, folder: PathBuf },
    Values { values: Values, folder: PathBuf },
}

/// `--seeds` and `--shorten` of the command, and what `--set` would be given.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Changes<'py> {
    set: Vec<(String, Bound<'py, PyAny>)>,
    seeds: Option<u64>,
    shorten: Option<String>,
}

impl Study {
    fn read(py: Python<'_>, source: Source, overrides: Overrides) -> PyResult<Self> {
        let read = || {
            let registry = own::registry();
            Ok(match &source {
                Source::File(path) => Checked::load_with(&registry, path, &overrides),
                Source::Text { name, text, folder } => {
                    Checked::parse_with(&registry, name, text, folder, &overrides)
                }
                Source::Values { values, folder } => {
                    Checked::of_values(&registry, MADE, values, folder, &overrides)
                }
            })
        };
        match py.detach(|| guarded(read))? {
            Ok(study) => {
                Ok(Self { source, overrides, study: Arc::new(study), plan: OnceLock::new() })
            }
            Err(error) => Err(of_study(py, &error)),
        }
    }

    fn plan(&self) -> &Arc<Plan> {
        self.plan.get_or_init(|| Arc::new(self.study.plan()))
    }

    /// The folder from which relative paths in the study start.
    fn base(&self) -> &Path {
        match &self.source {
            Source::File(_) => self.study.path.parent().unwrap_or(Path::new("")),
            Source::Text { folder, .. } | Source::Values { folder, .. } => folder,
        }
    }
}

fn refused(py: Python<'_>, refused: Refused) -> PyErr {
    match refused {
        Refused::Study(error) => of_study(py, &error),
        Refused::Python(error) => error,
    }
}

fn option<T: std::str::FromStr<Err = SpecError>>(
    py: Python<'_>,
    name: &str,
    text: &str,
) -> PyResult<T> {
    text.parse()
        .map_err(|error: SpecError| of_study(py, &StudyError::of_file(name, error.to_string())))
}

/// The number of processes or threads.
fn jobs(jobs: Option<usize>) -> PyResult<Option<NonZero<usize>>> {
    match jobs {
        None => Ok(None),
        Some(jobs) => NonZero::new(jobs).map(Some).ok_or_else(|| {
            RunError::new_err("jobs: 0 runs at a time would never end (allowed: 1 or more)")
        }),
    }
}

#[pymethods]
impl Study {
    /// Reads a file, or a folder with a `study.toml`.
    #[staticmethod]
    fn load(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        Self::read(py, Source::File(path), Overrides::default())
    }

    /// Reads a text; relative paths in it start from `folder`.
    #[staticmethod]
    fn parse(py: Python<'_>, name: String, text: String, folder: PathBuf) -> PyResult<Self> {
        Self::read(py, Source::Text { name, text, folder }, Overrides::default())
    }

    /// Builds a study of a mapping with the keys of a study file.
    #[staticmethod]
    fn build(py: Python<'_>, values: &Bound<'_, PyMapping>, folder: PathBuf) -> PyResult<Self> {
        let values = guarded(|| value::table(values).map_err(|error| refused(py, error)))?;
        Self::read(py, Source::Values { values, folder }, Overrides::default())
    }

    /// The same study with changes, on top of those that it has.
    fn changed(&self, py: Python<'_>, changes: Changes<'_>) -> PyResult<Self> {
        let mut overrides = self.overrides.clone();
        for (key, value) in &changes.set {
            let value = value::option(value, key).map_err(|error| refused(py, error))?;
            overrides.set.push(format!("{key}={value}"));
        }
        overrides.seeds = changes.seeds.or(overrides.seeds);
        if let Some(text) = &changes.shorten {
            overrides.shorten = Some(option::<Span>(py, "shorten", text)?);
        }
        Self::read(py, self.source.clone(), overrides)
    }

    #[getter]
    fn title(&self) -> &str {
        &self.study.title
    }

    #[getter]
    fn source(&self) -> Option<&str> {
        self.study.source.as_deref()
    }

    #[getter]
    fn question(&self) -> Option<&str> {
        self.study.question.as_deref()
    }

    /// The file, as it was named; `study` if there is none.
    #[getter]
    fn path(&self) -> String {
        self.study.path.display().to_string()
    }

    #[getter]
    fn folder(&self) -> PathBuf {
        self.base().to_owned()
    }

    /// The study as one file, with what was changed.
    #[getter]
    fn text(&self) -> &str {
        self.study.text()
    }

    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let document = Document::parse(FILE_NAME, self.study.text(), self.base());
        value::dict(py, &document.map_err(|error| of_study(py, &error))?)
    }

    #[getter]
    fn seeds(&self) -> Vec<u64> {
        self.study.seeds.clone()
    }

    #[getter]
    fn factors(&self) -> Vec<(String, Vec<String>)> {
        let factors = self.study.factors.iter();
        factors.map(|factor| (factor.name.clone(), factor.values.clone())).collect()
    }

    #[getter]
    fn claims(&self) -> Vec<(String, String)> {
        self.study.claims.iter().map(|claim| (claim.id.clone(), claim.text.clone())).collect()
    }

    #[getter]
    fn views(&self) -> Vec<String> {
        self.study.views.iter().map(|view| view.name.clone()).collect()
    }

    #[getter]
    fn notices(&self) -> Vec<(String, usize)> {
        let notices = self.study.notices().into_iter();
        notices.map(|(notice, count)| (notice.to_owned(), count)).collect()
    }

    /// A name for the list of its runs: 32 hexadecimal digits.
    #[getter]
    fn digest(&self, py: Python<'_>) -> String {
        py.detach(|| self.plan().digest.clone())
    }

    fn __len__(&self) -> usize {
        self.study.scenarios.len()
    }

    /// Of a scenario, by its position: its label, its factors' values, seconds that a run lasts, the
    /// names of its flows and of its queues.
    #[allow(clippy::type_complexity)]
    fn scenario(
        &self,
        py: Python<'_>,
        index: usize,
    ) -> PyResult<(String, Vec<String>, f64, Vec<String>, Vec<String>)> {
        let plan = py.detach(|| self.plan());
        let Some(scenario) = plan.scenarios.get(index) else {
            return Err(pyo3::exceptions::PyIndexError::new_err(format!(
                "scenario {index}: the study has {}",
                plan.scenarios.len()
            )));
        };
        Ok((
            plan.label(index as u32),
            scenario.factors.iter().map(|value| value.to_string()).collect(),
            scenario.duration_s,
            scenario.flows.iter().map(|flow| flow.name.clone()).collect(),
            scenario.queues.iter().map(|queue| queue.name.clone()).collect(),
        ))
    }

    /// Where results go if nobody says where.
    fn default_folder(&self, py: Python<'_>, shard: Option<&str>) -> PyResult<PathBuf> {
        let shard = shard.map_or(Ok(Shard::WHOLE), |text| option(py, "shard", text))?;
        Ok(runner::default_folder(py.detach(|| self.plan()), shard))
    }

    /// Runs what is not done yet. `progress` is called with four counts, in this thread.
    #[pyo3(signature = (out, jobs, shard, command, progress))]
    fn run(
        &self,
        py: Python<'_>,
        out: PathBuf,
        jobs: Option<usize>,
        shard: Option<&str>,
        command: Vec<String>,
        progress: Option<Bound<'_, PyAny>>,
    ) -> PyResult<Results> {
        let options = self.options(py, out, jobs, shard, command)?;
        let tell = |counted: Progress| match &progress {
            Some(progress) => progress.call1(counts(counted)).map(|_| ()),
            None => Ok(()),
        };
        let summary = run_beside(py, &self.study, &options, &tell)?;
        py.detach(|| Results::of(summary.folder))
    }

    /// Opens the result folder for results that others compute.
    fn record(
        &self,
        py: Python<'_>,
        out: PathBuf,
        jobs: Option<usize>,
        shard: Option<&str>,
        command: Vec<String>,
    ) -> PyResult<Recorder> {
        let options = self.options(py, out, jobs, shard, command)?;
        py.detach(|| guarded(|| Ok(runner::Recorder::open(&self.study, &options))))?
            .map(Recorder::new)
            .map_err(|error| of_run(py, &error))
    }

    /// Computes a run for a recorder elsewhere. `id` is what the recorder calls it, so a worker with
    /// other models refuses it.
    fn compute(&self, py: Python<'_>, run: u32, id: &str) -> PyResult<Vec<u8>> {
        in_callers(py, || {
            guarded(|| {
                let plan = self.plan();
                match plan.runs.get(run as usize) {
                    Some(planned) if planned.id.to_string() == id => {}
                    _ => {
                        return Err(RunError::new_err(format!(
                            "run {run} is another one here than where it was asked for: this is \
                             Sojourn with models {}, or a trace that the study names differs",
                            plan.model
                        )));
                    }
                }
                let result = runner::compute(&self.study, plan, run).map_err(Error::new_err)?;
                result.encode().map_err(|error| Error::new_err(error.to_string()))
            })
        })
    }

    /// One run in memory.
    fn simulate(&self, py: Python<'_>, scenario: u32, seed: u64) -> PyResult<Run> {
        let Some(one) = self.study.scenarios.get(scenario as usize) else {
            return Err(pyo3::exceptions::PyIndexError::new_err(format!(
                "scenario {scenario}: the study has {}",
                self.study.scenarios.len()
            )));
        };
        let result = in_callers(py, || {
            guarded(|| runner::simulate(&self.study, scenario, seed).map_err(RunError::new_err))
        })?;
        let names = self.study.factors.iter().map(|factor| factor.name.clone());
        let factors = names.zip(one.factors.iter().cloned()).collect();
        let metrics = sojourn_study::metrics::columns().into_iter().map(|column| column.name);
        Ok(Run::new(result, metrics.collect(), factors, one.flows.clone(), one.queues.clone()))
    }
}

impl Study {
    fn options(
        &self,
        py: Python<'_>,
        out: PathBuf,
        threads: Option<usize>,
        shard: Option<&str>,
        command: Vec<String>,
    ) -> PyResult<Options> {
        let mut options = Options::new(out);
        options.jobs = jobs(threads)?;
        options.shard = shard.map_or(Ok(Shard::WHOLE), |text| option(py, "shard", text))?;
        options.command = command;
        Ok(options)
    }
}

/// Exclusive, because a receiver must not be shared between threads.
fn wait<T>(receiver: &mut mpsc::Receiver<T>) -> Result<T, RecvTimeoutError> {
    receiver.recv_timeout(PATIENCE)
}

/// Runs the study in threads of its own, while this one, without holding Python, waits for progress and
/// for Ctrl-C. On Ctrl-C, or an exception of `tell`, runs under way end and are kept; no others begin. If Ctrl-C is pressed once more,
/// those under way end before their time.
fn run_beside(
    py: Python<'_>,
    study: &Checked,
    options: &Options,
    tell: &dyn Fn(Progress) -> PyResult<()>,
) -> PyResult<runner::Summary> {
    let stop: &Stop = &options.stop;
    let latest: Mutex<Option<Progress>> = Mutex::new(None);
    let take = || latest.lock().unwrap_or_else(PoisonError::into_inner).take();
    let (sender, mut receiver) = mpsc::channel::<()>();
    let mut raised: Option<PyErr> = None;
    let ended = thread::scope(|scope| {
        let latest = &latest;
        let worker = scope.spawn(move || {
            let result = guarded(|| {
                Ok(runner::run(study, options, &|progress| {
                    *latest.lock().unwrap_or_else(PoisonError::into_inner) = Some(progress);
                }))
            });
            drop(sender);
            result
        });
        loop {
            let waited = py.detach(|| wait(&mut receiver));
            let told = py.check_signals().and_then(|()| match raised {
                None => take().map_or(Ok(()), tell),
                Some(_) => Ok(()),
            });
            match told {
                Err(error) if raised.is_none() => {
                    stop.ask();
                    raised = Some(error);
                }
                Err(_) => {
                    stop.ask_at_once();
                    // What it cannot reach ends by itself.
                    let _ = interrupt(py);
                }
                Ok(()) => {}
            }
            if waited == Err(RecvTimeoutError::Disconnected) {
                break;
            }
        }
        py.detach(|| worker.join())
    });
    if let Some(error) = raised {
        return Err(error);
    }
    let ended = ended.map_err(|_| Error::new_err("the thread of the runs ended without a result"));
    ended??.map_err(|error| of_run(py, &error))
}
