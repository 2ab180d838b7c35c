//! A study file, read, checked and expanded into scenarios.

mod expand;
mod scenarios;

#[cfg(test)]
mod tests;

pub use scenarios::Scenarios;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use sojourn_core::{Span, SpecError};
use sojourn_scenario::Checked;

use crate::document::{self, Assignment, At, Document, Node, Table, Value};
use crate::engine::NamedEngine;
use crate::error::StudyError;
use crate::factors::{Combination, Factors};
use crate::plan::{PlannedFlow, PlannedQueue};
use crate::registry::Registry;
use crate::spec::{SCHEMA, Seeds, StudySpec};
use crate::workload;
use expand::Builder;

/// Name of the study file in a study's folder.
pub const FILE_NAME: &str = "study.toml";

const MAX_SEEDS: u64 = 100_000;
/// The most runs; their plan is held in memory.
const MAX_RUNS: usize = 1_000_000;

/// A study file and what it makes. Everything is checked except figures and claims, which are about
/// results.
#[derive(Debug)]
pub struct StudyFile {
    /// As the user wrote it.
    pub path: PathBuf,
    /// The changes from outside, as options: `--set path.rate=40mbps`.
    pub overrides: Vec<String>,
    pub document: Document,
    pub spec: StudySpec,
    pub factors: Arc<Factors>,
    pub scenarios: Scenarios,
    pub seeds: Vec<u64>,
}

/// What every scenario of a study is run with.
#[derive(Clone, Copy, Debug)]
pub struct Seeding<'a> {
    /// The root of all random streams.
    pub study_seed: u64,
    pub seeds: &'a [u64],
}

#[derive(Clone, Debug)]
pub struct StudyScenario {
    /// A value for each factor.
    pub factors: Vec<String>,
    pub scenario: Checked,
    /// The engine that computes its runs; `None` where the file names none.
    pub engine: Option<Arc<dyn NamedEngine>>,
    pub flows: Vec<PlannedFlow>,
    pub queues: Vec<PlannedQueue>,
    /// Settings that are valid but probably not intended, each as a sentence.
    pub notices: Vec<String>,
}

/// Changes to a study from outside.
#[derive(Clone, Debug, Default)]
pub struct Overrides {
    /// `ADDRESS=VALUE`, with addresses as factors have them; a factor takes the value or list of
    /// values instead of its own.
    pub set: Vec<String>,
    /// How many seeds.
    pub seeds: Option<u64>,
    /// Runs no longer than this: warm-up, starts and stops shrink in proportion.
    pub shorten: Option<Span>,
}

impl StudyFile {
    /// Reads a study: a file, or a folder with a `study.toml`.
    ///
    /// # Errors
    /// Whatever is wrong with it.
    pub fn load(path: &Path, overrides: &Overrides) -> Result<Self, StudyError> {
        Self::load_with(&Registry::default(), path, overrides)
    }

    /// Reads a study that may name the kinds in `registry`.
    ///
    /// # Errors
    /// As [`StudyFile::load`].
    pub fn load_with(
        registry: &Registry,
        path: &Path,
        overrides: &Overrides,
    ) -> Result<Self, StudyError> {
        let file = file_of(path);
        let document = Document::read(&file)?;
        Self::of(document, registry, file, overrides, &mut |_, _| {})
    }

    /// Reads a study that is in no file; relative paths in it start from `folder`.
    ///
    /// # Errors
    /// As [`StudyFile::load`].
    pub fn parse(
        name: &str,
        text: &str,
        folder: &Path,
        overrides: &Overrides,
    ) -> Result<Self, StudyError> {
        let document = Document::parse(name, text, folder)?;
        Self::of(document, &Registry::default(), PathBuf::from(name), overrides, &mut |_, _| {})
    }

    /// Checks and expands what was read from `path`. Every scenario is built once and shown to `each`, in
    /// order; none is kept.
    ///
    /// # Errors
    /// As [`StudyFile::load`].
    pub fn of(
        mut document: Document,
        registry: &Registry,
        path: PathBuf,
        overrides: &Overrides,
        each: &mut dyn FnMut(&StudyScenario, Seeding<'_>),
    ) -> Result<Self, StudyError> {
        let factors = apply(&mut document, overrides)?;
        let combinations = factors.combinations(&document)?;
        let first = combinations.first().map(|number| factors.combination(*number));
        let spec = read_base(&mut document, &factors, first.as_ref())?;
        let seeds = seeds(&spec, &document)?;
        if combinations.len() * seeds.len() > MAX_RUNS {
            let (scenarios, seeds) = (combinations.len(), seeds.len());
            let problem = format!("{scenarios} scenarios and {seeds} seeds make too many runs");
            let problem = SpecError::new(problem).allow([format!("at most {MAX_RUNS}")]);
            return Err(document.error_at_key("repeat.seeds", problem));
        }
        let factors = Arc::new(factors);
        let builder = Builder::new(&document, registry, Arc::clone(&factors), combinations)
            .shortened(spec.shorten.as_ref().map(|duration| duration.value));
        let scenarios = Scenarios::checked(builder, &mut |scenario| {
            each(scenario, Seeding { study_seed: spec.repeat.study_seed, seeds: &seeds });
        })?;
        Ok(Self { overrides: noted(overrides), path, spec, factors, scenarios, seeds, document })
    }

    /// The study as one file, with the changes.
    pub fn text(&self) -> String {
        if let Some(text) = self.document.verbatim() {
            return text.to_owned();
        }
        let mut text = format!("# As run from {}\n", self.path.display());
        for note in &self.overrides {
            // Control characters in the note must not become part of the file.
            text.push_str(&format!("# with {}\n", note.replace(char::is_control, " ")));
        }
        text.push_str("# Relative paths start where they did there.\n\n");
        text.push_str(&self.document.to_toml());
        text
    }
}

/// The study file that a path means: itself, or the `study.toml` in a folder.
pub fn file_of(path: &Path) -> PathBuf {
    if path.is_dir() { path.join(FILE_NAME) } else { path.to_owned() }
}

impl StudyScenario {
    /// Limits every run to `duration`; warm-up, starts and stops shrink in proportion.
    fn shorten(&mut self, duration: Span) -> Result<(), SpecError> {
        let whole = self.scenario.duration;
        if whole <= duration {
            return Ok(());
        }
        let mut scenario = self.scenario.clone().into_inner();
        let part = |span: Span| {
            let nanos = u128::from(span.as_nanos()) * u128::from(duration.as_nanos());
            Span::from_nanos((nanos / u128::from(whole.as_nanos())) as u64)
        };
        scenario.duration = duration;
        scenario.warmup = part(scenario.warmup);
        scenario.step = scenario.step.min(duration);
        for flow in &mut scenario.flows {
            flow.start = part(flow.start);
            flow.start_jitter = part(flow.start_jitter);
            flow.stop = flow.stop.map(part);
        }
        self.scenario = scenario.checked()?;
        self.engine.iter().try_for_each(|engine| engine.check(&self.scenario))?;
        Ok(())
    }
}

/// Puts overrides into the document and its factors.
fn apply(document: &mut Document, overrides: &Overrides) -> Result<Factors, StudyError> {
    let mut factors = Factors::read(document)?;
    // What a workload brings must be there before it is changed.
    let is_workload = |set: &&String| set.split('=').next().map(str::trim) == Some(workload::KEY);
    let (first, rest): (Vec<&String>, Vec<_>) = overrides.set.iter().partition(is_workload);
    set_all(document, &mut factors, &first)?;
    if let Some(mut scenario) = scenario_table(document).cloned() {
        workload::expand(document, &mut scenario)?;
        // As a factor it brings its flows to each scenario on its own.
        if !factors.names().any(|name| name == workload::KEY) {
            set_scenario_table(document, scenario);
        }
    }
    set_all(document, &mut factors, &rest)?;
    if let Some(seeds) = overrides.seeds {
        let at = document.option(&format!("--seeds {seeds}"));
        // A number beyond the type is refused as too many.
        let value = Value::Integer(i64::try_from(seeds).unwrap_or(i64::MAX));
        set_repeat(document, "seeds", Node { value, at });
    }
    if let Some(duration) = overrides.shorten {
        let at = document.option(&format!("--shorten {duration}"));
        let value = Value::String(duration.to_string());
        document.root.insert_value("shorten", at, Node { value, at });
    }
    let is_changed = !overrides.set.is_empty();
    if is_changed {
        factors.write(document);
    }
    Ok(factors)
}

fn set_all(
    document: &mut Document,
    factors: &mut Factors,
    all: &[&String],
) -> Result<(), StudyError> {
    for set in all {
        let assignment = Assignment::parse(set)
            .map_err(|error| StudyError::of_file(format!("--set {set}"), error.to_string()))?;
        let node = document.assigned(&assignment);
        let address = &assignment.address;
        if let Some(key) = address.strip_prefix("repeat.") {
            set_repeat(document, key, node);
        } else if !factors.set(document, address, &node)? {
            let at = node.at;
            let mut table = scenario_table(document).cloned().unwrap_or_default();
            document::set(&mut table, address, at, &node)
                .map_err(|error| document.error(at, address, error))?;
            set_scenario_table(document, table);
        }
    }
    Ok(())
}

fn set_repeat(document: &mut Document, key: &str, node: Node) {
    let at = node.at;
    let mut table = match document.root.node("repeat").map(|node| &node.value) {
        Some(Value::Table(table)) => table.clone(),
        _ => Table::default(),
    };
    table.insert_value(key, at, node);
    document.root.insert_value("repeat", at, Node { value: Value::Table(table), at });
}

fn scenario_table(document: &Document) -> Option<&Table> {
    match &document.root.node("scenario")?.value {
        Value::Table(table) => Some(table),
        _ => None,
    }
}

fn set_scenario_table(document: &mut Document, table: Table) {
    if let Some(entry) = document.root.entries.iter_mut().find(|entry| entry.key == "scenario") {
        entry.node.value = Value::Table(table);
    }
}

/// Reads the study with its base as it is written. Keys that only factors give have their values in
/// the first scenario.
fn read_base(
    document: &mut Document,
    factors: &Factors,
    first: Option<&Combination<'_>>,
) -> Result<StudySpec, StudyError> {
    let base = scenario_table(document).cloned();
    if let (Some(base), Some(first)) = (&base, first) {
        let filled = factors.fill(document, base, first)?;
        set_scenario_table(document, filled);
    }
    let spec = read_spec(document);
    base.into_iter().for_each(|base| set_scenario_table(document, base));
    spec
}

fn read_spec(document: &Document) -> Result<StudySpec, StudyError> {
    let root = document.root_node();
    let spec: StudySpec = root.to().map_err(|fault| {
        let at = fault.at.unwrap_or(root.at);
        document.error(at, fault.key(""), fault.problem)
    })?;
    if spec.schema != SCHEMA {
        let problem = SpecError::new(format!("version {} of the format is unknown", spec.schema));
        return Err(document.error_at_key("schema", problem.allow([SCHEMA.to_string()])));
    }
    Ok(spec)
}

fn seeds(spec: &StudySpec, document: &Document) -> Result<Vec<u64>, StudyError> {
    let wrong = |problem: SpecError| Err(document.error_at_key("repeat.seeds", problem));
    let seeds = match &spec.repeat.seeds {
        Seeds::Count(count) if *count > MAX_SEEDS => {
            let problem = SpecError::new(format!("{count} are too many seeds"));
            return wrong(problem.allow([format!("1 to {MAX_SEEDS}")]));
        }
        Seeds::Count(count) => (1..=*count).collect(),
        Seeds::List(list) => list.clone(),
    };
    if seeds.is_empty() {
        return wrong(SpecError::new("no seeds: nothing would run").allow(["1 or more"]));
    }
    let mut sorted = seeds.clone();
    sorted.sort_unstable();
    match sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => {
            let problem = SpecError::new(format!("seed {} is listed twice", pair[0]));
            wrong(problem.allow(["every seed once"]))
        }
        None => Ok(seeds),
    }
}

/// The options that were given, each as name, blank and value.
fn noted(overrides: &Overrides) -> Vec<String> {
    let set = overrides.set.iter().map(|set| format!("--set {set}"));
    let seeds = overrides.seeds.map(|seeds| format!("--seeds {seeds}"));
    let shorten = overrides.shorten.map(|duration| format!("--shorten {duration}"));
    set.chain(seeds).chain(shorten).collect()
}

impl Document {
    fn root_node(&self) -> Node {
        Node { value: Value::Table(self.root.clone()), at: At::START }
    }
}
