//! A result folder, read; and one run that is in no folder.

use std::collections::BTreeSet;
use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use sojourn_core::SpecError;
use sojourn_metrics::{DELAYS, FLOW_COLUMNS, LINK_COLUMNS};
use sojourn_report::{Alone, Options, ReadRuns, figure, figures, html};
use sojourn_study::results::{
    Folder, Kind, PlannedFlow, PlannedQueue, Results as Read, RunResult, Where,
};

use crate::columns::{self, DelaysTable, OfRun, SeriesTable};
use crate::errors::{self, guarded, of_name, of_results};
use crate::table::Table;

/// Which rows somebody wants; what is left out restricts nothing.
#[derive(Default, FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Wanted {
    flow: Option<Vec<String>>,
    queue: Option<Vec<String>>,
    metric: Option<Vec<String>>,
    run: Option<Vec<i64>>,
    seed: Option<Vec<i64>>,
    /// Factors with the values that they may have.
    factors: Vec<(String, Vec<String>)>,
}

impl Wanted {
    /// Which of the flows and queues of a scenario are wanted.
    fn of<'a>(&'a self, flows: &'a [PlannedFlow]) -> WantedNames<'a> {
        if self.flow.is_none() && self.queue.is_none() {
            return WantedNames::All;
        }
        let listed = |names: &'a Option<Vec<String>>| -> BTreeSet<&'a str> {
            names.iter().flatten().map(String::as_str).collect()
        };
        let mut named = listed(&self.flow);
        let of_groups = flows.iter().filter(|flow| named.contains(&flow.group[..]));
        let of_groups: Vec<&str> = of_groups.map(|flow| &flow.name[..]).collect();
        named.extend(of_groups);
        WantedNames::Some { flows: named, queues: listed(&self.queue) }
    }

    /// # Errors
    /// A flow or queue that no scenario has.
    fn check_names<'a>(
        &self,
        scenarios: impl Iterator<Item = (&'a [PlannedFlow], &'a [PlannedQueue])> + Clone,
    ) -> Result<(), SpecError> {
        if self.flow.is_none() && self.queue.is_none() {
            return Ok(());
        }
        let flows = scenarios.clone().flat_map(|(flows, _)| flows);
        let flows = distinct(flows.flat_map(|flow| [&flow.group[..], &flow.name]));
        known("flow", self.flow.as_deref(), &flows)?;
        let queues = scenarios.flat_map(|(_, queues)| queues);
        known("queue", self.queue.as_deref(), &distinct(queues.map(|queue| &queue.name[..])))
    }

    /// The columns of the time series that are wanted: `rtt` means all that begin with it.
    fn series_columns(&self) -> Result<Vec<&'static str>, SpecError> {
        let flow = FLOW_COLUMNS.iter().map(|column| column.name).filter(|name| *name != "phase");
        let all = distinct(flow.chain(LINK_COLUMNS.iter().map(|column| column.name)));
        let Some(wanted) = &self.metric else { return Ok(all) };
        let mut columns = Vec::new();
        for name in wanted {
            let is_meant = |column: &&&str| {
                column.strip_prefix(&name[..]).is_some_and(|rest| rest.starts_with('_'))
            };
            let meant: Vec<&str> = match all.iter().find(|column| *column == name) {
                Some(column) => vec![column],
                None => all.iter().filter(is_meant).copied().collect(),
            };
            if meant.is_empty() {
                return Err(unknown("column of the time series", name, &all));
            }
            columns.extend(meant);
        }
        Ok(distinct(columns.into_iter()))
    }

    fn delay_metrics(&self) -> Result<(), SpecError> {
        let all: Vec<&str> =
            DELAYS.iter().copied().chain(["completion_open", "fct_open"]).collect();
        known("distribution of delays", self.metric.as_deref(), &all)
    }

    fn has_metric(&self, name: &str) -> bool {
        self.metric.as_ref().is_none_or(|wanted| wanted.iter().any(|one| one == name))
    }
}

/// The flows and queues that somebody wants.
enum WantedNames<'a> {
    All,
    /// A flow may be named by its group.
    Some {
        flows: BTreeSet<&'a str>,
        queues: BTreeSet<&'a str>,
    },
}

impl WantedNames<'_> {
    fn has(&self, kind: Kind, name: &str) -> bool {
        match (self, kind) {
            (Self::All, _) => true,
            (Self::Some { .. }, Kind::Run) => false,
            (Self::Some { flows, .. }, Kind::Flow) => flows.contains(name),
            (Self::Some { queues, .. }, Kind::Queue) => queues.contains(name),
        }
    }
}

/// In the order in which they come first.
fn distinct<'a>(names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut known = BTreeSet::new();
    names.filter(|name| known.insert(*name)).collect()
}

fn known(what: &str, wanted: Option<&[String]>, all: &[&str]) -> Result<(), SpecError> {
    let there: BTreeSet<&str> = all.iter().copied().collect();
    match wanted.unwrap_or_default().iter().find(|name| !there.contains(&name[..])) {
        Some(name) => Err(unknown(what, name, all)),
        None => Ok(()),
    }
}

fn unknown(what: &str, name: &str, all: &[&str]) -> SpecError {
    let error = SpecError::new(format!("no {what} is named '{name}'"));
    error.near(name, all.iter().copied()).allow(all.iter().copied())
}

/// A result folder, with the runs that it had when it was opened. Their rows are read each time they are asked for.
#[pyclass(frozen, module = "sojourn._native")]
pub(crate) struct Results {
    /// Without rows.
    read: Read,
    /// Positions of the factors that differ between scenarios.
    varying: Vec<usize>,
}

impl Results {
    pub(crate) fn of(folder: PathBuf) -> PyResult<Self> {
        let read = Folder::open_without_rows(folder).map_err(|error| of_results(&error))?;
        let scenarios = &read.plan.scenarios;
        let varies = |factor: &usize| {
            scenarios.iter().any(|one| one.factors[*factor] != scenarios[0].factors[*factor])
        };
        let varying = (0..read.plan.factors.len()).filter(varies).collect();
        Ok(Self { read, varying })
    }

    /// With the rows of the runs that were there when it was opened.
    fn whole(&self) -> PyResult<Read> {
        let mut whole = Folder::open(&self.read.folder).map_err(|error| of_results(&error))?;
        if whole.plan.digest != self.read.plan.digest {
            let folder = whole.folder.display();
            let problem = format!("{folder}: other runs have come here since it was opened");
            return Err(errors::ResultsError::new_err(problem));
        }
        let missing = &self.read.missing;
        whole.table.rows.retain(|row| missing.binary_search(&row.run).is_err());
        whole.missing.clone_from(missing);
        Ok(whole)
    }

    /// Names of the factors that differ.
    fn names(&self) -> Vec<&str> {
        self.varying.iter().map(|factor| &self.read.plan.factors[*factor].name[..]).collect()
    }

    /// Positions of the runs that are wanted and have results.
    fn wanted(&self, wanted: &Wanted) -> Result<Vec<u32>, SpecError> {
        let plan = &self.read.plan;
        let scenarios = plan.scenarios.iter();
        wanted.check_names(scenarios.map(|one| (&one.flows[..], &one.queues[..])))?;
        let mut filter = Vec::new();
        for (name, values) in &wanted.factors {
            let names: Vec<&str> = plan.factors.iter().map(|factor| &factor.name[..]).collect();
            let Some(factor) = plan.factors.iter().find(|factor| factor.name == *name) else {
                return Err(unknown("factor", name, &names));
            };
            let all: Vec<&str> = factor.values.iter().map(String::as_str).collect();
            known(&format!("value of '{name}'"), Some(values), &all)?;
            filter.push(Where { factor: name.clone(), values: values.clone() });
        }
        let runs = 0..plan.runs.len() as i64;
        if let Some(run) = wanted.run.iter().flatten().find(|run| !runs.contains(run)) {
            let problem = SpecError::new(format!("there is no run {run}"));
            return Err(problem.allow([format!("0 to {}", runs.end - 1)]));
        }
        let known: BTreeSet<u64> = plan.seeds.iter().copied().collect();
        let is_seed = |seed: &i64| u64::try_from(*seed).is_ok_and(|seed| known.contains(&seed));
        if let Some(seed) = wanted.seed.iter().flatten().find(|seed| !is_seed(seed)) {
            let problem = SpecError::new(format!("no run has seed {seed}"));
            return Err(problem.allow(plan.seeds.iter().map(u64::to_string)));
        }
        let runs: Option<BTreeSet<i64>> =
            wanted.run.as_ref().map(|runs| runs.iter().copied().collect());
        let of_seed = |seed: &i64| u64::try_from(*seed).ok();
        let seeds: Option<BTreeSet<u64>> =
            wanted.seed.as_ref().map(|seeds| seeds.iter().filter_map(of_seed).collect());
        let mut missing = self.read.missing.iter().copied().peekable();
        let is_wanted = |run: &u32| {
            let planned = &plan.runs[*run as usize];
            missing.next_if_eq(run).is_none()
                && runs.as_ref().is_none_or(|runs| runs.contains(&i64::from(*run)))
                && seeds.as_ref().is_none_or(|seeds| seeds.contains(&planned.seed))
                && plan.is_selected(&plan.scenarios[planned.scenario as usize], &filter)
        };
        Ok((0..plan.runs.len() as u32).filter(is_wanted).collect())
    }

    fn factors(&self, scenario: u32) -> Vec<&str> {
        let values = &self.read.plan.scenarios[scenario as usize].factors;
        self.varying.iter().map(|factor| &values[*factor][..]).collect()
    }

    fn series_table(&self, wanted: &Wanted) -> PyResult<Table> {
        let columns = wanted.series_columns().map_err(|error| of_name(&error))?;
        let runs = self.wanted(wanted).map_err(|error| of_name(&error))?;
        let plan = &self.read.plan;
        let mut reader = self.read.reader().map_err(|error| of_results(&error))?;
        let mut table = SeriesTable::new(&self.names(), columns);
        for run in runs {
            let planned = &plan.runs[run as usize];
            let factors = self.factors(planned.scenario);
            let of_run =
                OfRun { run, scenario: planned.scenario, seed: planned.seed, factors: &factors };
            let names = wanted.of(&plan.scenarios[planned.scenario as usize].flows);
            for series in &reader.series(run).map_err(|error| of_results(&error))? {
                if names.has(series.kind, &series.name) {
                    table.push(of_run, series);
                }
            }
        }
        Ok(table.finish())
    }

    fn delays_table(&self, wanted: &Wanted) -> PyResult<Table> {
        wanted.delay_metrics().map_err(|error| of_name(&error))?;
        let runs = self.wanted(wanted).map_err(|error| of_name(&error))?;
        let plan = &self.read.plan;
        let mut reader = self.read.reader().map_err(|error| of_results(&error))?;
        let mut table = DelaysTable::new(&self.names());
        for run in runs {
            let planned = &plan.runs[run as usize];
            let factors = self.factors(planned.scenario);
            let of_run =
                OfRun { run, scenario: planned.scenario, seed: planned.seed, factors: &factors };
            let names = wanted.of(&plan.scenarios[planned.scenario as usize].flows);
            for delays in &reader.delays(run).map_err(|error| of_results(&error))? {
                if names.has(delays.kind, &delays.name) && wanted.has_metric(&delays.metric) {
                    table.push(of_run, delays);
                }
            }
        }
        Ok(table.finish())
    }

    /// The report's figures, each by itself.
    fn alone(&self, py: Python<'_>) -> PyResult<Vec<(String, Alone)>> {
        self.with_all_read(py, |whole, reader| Ok(figures(whole, reader)))
    }

    fn one_alone(&self, py: Python<'_>, name: &str) -> PyResult<Alone> {
        self.with_all_read(py, |whole, reader| {
            figure(whole, reader, name).map_err(|error| of_name(&error))
        })
    }

    /// Does something with all that the folder has.
    fn with_all_read<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&Read, &mut dyn ReadRuns) -> PyResult<T> + Send,
    ) -> PyResult<T> {
        py.detach(|| {
            guarded(|| {
                let whole = self.whole()?;
                let mut reader = whole.reader().map_err(|error| of_results(&error))?;
                work(&whole, &mut reader)
            })
        })
    }
}

#[pymethods]
impl Results {
    #[staticmethod]
    fn open(py: Python<'_>, folder: PathBuf) -> PyResult<Self> {
        py.detach(|| guarded(|| Self::of(folder)))
    }

    #[getter]
    fn folder(&self) -> PathBuf {
        self.read.folder.clone()
    }

    #[getter]
    fn has_checksums(&self) -> bool {
        self.read.has_checksums()
    }

    /// The study as run.
    #[getter]
    fn study(&self) -> &str {
        &self.read.study
    }

    /// `plan.json`.
    #[getter]
    fn plan(&self) -> PyResult<String> {
        json(&self.read.plan)
    }

    /// `machine.json`.
    #[getter]
    fn machine(&self) -> PyResult<Option<String>> {
        self.read.machine.as_ref().map(json).transpose()
    }

    /// Positions of runs without a result.
    #[getter]
    fn missing(&self) -> Vec<u32> {
        self.read.missing.clone()
    }

    /// Runs that ended without a result, and why.
    #[getter]
    fn failed(&self) -> Vec<(u32, String)> {
        let failed = self.read.machine.iter().flat_map(|machine| &machine.failed);
        failed.map(|failed| (failed.run, failed.problem.clone())).collect()
    }

    /// For each claim its name, text and verdict.
    #[getter]
    fn verdicts(&self) -> Vec<(String, String, &'static str)> {
        let claims = self.read.claims.iter().flat_map(|report| &report.claims);
        claims.map(|claim| (claim.id.clone(), claim.text.clone(), claim.verdict.name())).collect()
    }

    fn runs(&self, py: Python<'_>) -> PyResult<Table> {
        let plan = &self.read.plan;
        let names: Vec<&str> = plan.factors.iter().map(|factor| &factor.name[..]).collect();
        let values = |scenario: u32| -> Vec<&str> {
            plan.scenarios[scenario as usize].factors.iter().map(|value| &value[..]).collect()
        };
        py.detach(|| {
            guarded(|| {
                let table = self.whole()?.table;
                Ok(columns::runs(&table.rows, &table.metrics, (&names, &values)))
            })
        })
    }

    fn series(&self, py: Python<'_>, wanted: Wanted) -> PyResult<Table> {
        py.detach(|| guarded(|| self.series_table(&wanted)))
    }

    fn delays(&self, py: Python<'_>, wanted: Wanted) -> PyResult<Table> {
        py.detach(|| guarded(|| self.delays_table(&wanted)))
    }

    fn claims(&self) -> PyResult<Table> {
        let report = self.read.claims.clone().unwrap_or_default();
        guarded(|| Ok(columns::claims(&report)))
    }

    /// The report, a page of its own.
    fn report(&self, py: Python<'_>) -> PyResult<String> {
        self.with_all_read(py, |whole, reader| Ok(html(whole, reader, &Options::default())))
    }

    /// The drawings of the report as SVG, by their names.
    fn figures(&self, py: Python<'_>) -> PyResult<Vec<(String, String)>> {
        let drawing = |(name, figure)| match figure {
            Alone::Drawing(svg) => Some((name, svg)),
            Alone::Tables { .. } => None,
        };
        Ok(self.alone(py)?.into_iter().filter_map(drawing).collect())
    }

    /// The tables of the report as Markdown and for LaTeX, by their names.
    fn tables(&self, py: Python<'_>) -> PyResult<Vec<(String, String, String)>> {
        let table = |(name, figure)| match figure {
            Alone::Drawing(_) => None,
            Alone::Tables { markdown, latex } => Some((name, markdown, latex)),
        };
        Ok(self.alone(py)?.into_iter().filter_map(table).collect())
    }

    /// A drawing of the report as SVG, by its name.
    fn figure(&self, py: Python<'_>, name: &str) -> PyResult<String> {
        match self.one_alone(py, name)? {
            Alone::Drawing(svg) => Ok(svg),
            Alone::Tables { .. } => {
                let problem = format!("figure '{name}' is a table: results.table('{name}')");
                Err(of_name(&SpecError::new(problem)))
            }
        }
    }

    /// A table of the report as Markdown and for LaTeX, by its name.
    fn table(&self, py: Python<'_>, name: &str) -> PyResult<(String, String)> {
        match self.one_alone(py, name)? {
            Alone::Tables { markdown, latex } => Ok((markdown, latex)),
            Alone::Drawing(_) => {
                let problem = format!("figure '{name}' is a drawing: results.figure('{name}')");
                Err(of_name(&SpecError::new(problem)))
            }
        }
    }
}

fn json(value: &impl serde::Serialize) -> PyResult<String> {
    serde_json::to_string(value).map_err(|error| errors::Error::new_err(error.to_string()))
}

/// Of the run, a flow or a queue: its kind, its name, its metrics, its state at the end.
type Told<'a> = (&'static str, &'a str, Vec<(&'a str, f64)>, &'a str);

/// One run, simulated and kept in memory.
#[pyclass(frozen, module = "sojourn._native")]
pub(crate) struct Run {
    result: RunResult,
    metrics: Vec<String>,
    factors: Vec<(String, String)>,
    flows: Vec<PlannedFlow>,
    queues: Vec<PlannedQueue>,
}

impl Run {
    pub(crate) fn new(
        result: RunResult,
        metrics: Vec<String>,
        factors: Vec<(String, String)>,
        flows: Vec<PlannedFlow>,
        queues: Vec<PlannedQueue>,
    ) -> Self {
        Self { result, metrics, factors, flows, queues }
    }

    fn names(&self) -> Vec<&str> {
        self.factors.iter().map(|(name, _)| &name[..]).collect()
    }

    fn values(&self) -> Vec<&str> {
        self.factors.iter().map(|(_, value)| &value[..]).collect()
    }

    fn of_run<'a>(&self, factors: &'a [&'a str]) -> OfRun<'a> {
        let first = &self.result.rows[0];
        OfRun { run: 0, scenario: first.scenario, seed: first.seed, factors }
    }
}

#[pymethods]
impl Run {
    #[getter]
    fn digest(&self) -> &str {
        &self.result.rows[0].digest
    }

    #[getter]
    fn seed(&self) -> u64 {
        self.result.rows[0].seed
    }

    /// For the run, each flow and each queue: its kind, its name, its metrics by name, and what `ss` or
    /// `tc` would print of it.
    #[getter]
    fn rows(&self) -> Vec<Told<'_>> {
        let rows = self.result.rows.iter().map(|row| {
            let known = self.metrics.iter().zip(row.values.iter());
            let known = known.filter_map(|(name, value)| Some((&name[..], value?)));
            (row.kind.name(), &row.name[..], known.collect(), &row.end_state[..])
        });
        rows.collect()
    }

    /// What makes it again in another process: its result as it travels, and what it is called by.
    fn parts<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyBytes>, String)> {
        let result =
            self.result.encode().map_err(|error| errors::Error::new_err(error.to_string()))?;
        let names = json(&(&self.metrics, &self.factors, &self.flows, &self.queues))?;
        Ok((PyBytes::new(py, &result), names))
    }

    #[staticmethod]
    fn of_parts(result: &[u8], names: &str) -> PyResult<Self> {
        let result = RunResult::decode(result).filter(|result| !result.rows.is_empty());
        let names = serde_json::from_str(names).ok();
        let Some((result, (metrics, factors, flows, queues))) = result.zip(names) else {
            return Err(errors::ResultsError::new_err("what was sent is no run of this version"));
        };
        Ok(Self { result, metrics, factors, flows, queues })
    }

    fn table(&self) -> PyResult<Table> {
        let (names, values) = (self.names(), self.values());
        let factors: columns::Factors<'_> = (&names, &|_| values.clone());
        guarded(|| Ok(columns::runs(&self.result.rows, &self.metrics, factors)))
    }

    fn series(&self, wanted: Wanted) -> PyResult<Table> {
        let values = self.values();
        guarded(|| {
            let check = || {
                wanted.check_names(std::iter::once((&self.flows[..], &self.queues[..])))?;
                wanted.series_columns()
            };
            let columns = check().map_err(|error| of_name(&error))?;
            let mut table = SeriesTable::new(&self.names(), columns);
            let names = wanted.of(&self.flows);
            for series in &self.result.series() {
                if names.has(series.kind, &series.name) {
                    table.push(self.of_run(&values), series);
                }
            }
            Ok(table.finish())
        })
    }

    fn delays(&self, wanted: Wanted) -> PyResult<Table> {
        let values = self.values();
        guarded(|| {
            let check = || {
                wanted.check_names(std::iter::once((&self.flows[..], &self.queues[..])))?;
                wanted.delay_metrics()
            };
            check().map_err(|error| of_name(&error))?;
            let mut table = DelaysTable::new(&self.names());
            let names = wanted.of(&self.flows);
            for delays in &self.result.delays {
                if names.has(delays.kind, &delays.name) && wanted.has_metric(&delays.metric) {
                    table.push(self.of_run(&values), delays);
                }
            }
            Ok(table.finish())
        })
    }
}
