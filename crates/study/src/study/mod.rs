//! A study, read, checked and expanded: everything that can be wrong has been found.

mod expand;

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use sojourn_core::{Span, SpecError, StreamAddress};
use sojourn_metrics::DELAYS;
use sojourn_scenario::Scenario;

use crate::claims::{Claim, Expectation, Names, check_factor, find_factor};
use crate::digest::Digest;
use crate::document::{Assignment, At, Document, Node, Table, Value};
use crate::error::StudyError;
use crate::factors::{self, Combination, Factors};
use crate::metrics;
use crate::results::{
    Factor, Kind, Plan, PlannedFlow, PlannedQueue, PlannedRun, PlannedScenario, View, ViewKind,
    Where,
};
use crate::spec::{ClaimSpec, OneOrMany, SCHEMA, Seeds, StudySpec, ViewSpec};

/// Name of the study file in a study's folder.
pub const FILE_NAME: &str = "study.toml";

const MAX_SEEDS: u64 = 100_000;
/// What the plan of them takes is held in memory.
const MAX_RUNS: usize = 1_000_000;

/// A question with everything that is needed to answer it.
#[derive(Clone, Debug)]
pub struct Study {
    pub title: String,
    pub source: Option<String>,
    pub question: Option<String>,
    /// The file, as the user gave it.
    pub path: PathBuf,
    /// What was changed from outside, as options: `--set path.rate=40mbps`.
    pub overrides: Vec<String>,
    pub factors: Vec<Factor>,
    /// In the order of the factors, the first one changing slowest.
    pub scenarios: Vec<StudyScenario>,
    pub study_seed: u64,
    pub seeds: Vec<u64>,
    pub views: Vec<View>,
    pub claims: Vec<Claim>,
    /// The study as a file of its own, with what was changed.
    text: String,
}

#[derive(Clone, Debug)]
pub struct StudyScenario {
    /// A value for each factor.
    pub factors: Vec<String>,
    pub scenario: Scenario,
    pub flows: Vec<PlannedFlow>,
    pub queues: Vec<PlannedQueue>,
}

/// Changes to a study from outside.
#[derive(Clone, Debug, Default)]
pub struct Overrides {
    /// `ADDRESS=VALUE`, as factors write addresses; a factor takes the value or list of values
    /// instead of its own.
    pub set: Vec<String>,
    /// How many seeds.
    pub seeds: Option<u64>,
    /// Runs no longer than this: warm-up, starts and stops shrink in proportion.
    pub shorten: Option<Span>,
}

impl Study {
    /// Reads a study: a file, or a folder with a `study.toml`.
    ///
    /// # Errors
    /// Whatever is wrong with it; nothing is left for the runs to find.
    pub fn load(path: &Path, overrides: &Overrides) -> Result<Self, StudyError> {
        let file = if path.is_dir() { path.join(FILE_NAME) } else { path.to_owned() };
        let document = Document::read(&file)?;
        Self::build(document, file, overrides)
    }

    /// Reads a study that stands in no file; relative paths in it start from `folder`.
    ///
    /// # Errors
    /// As [`Study::load`].
    pub fn parse(
        name: &str,
        text: &str,
        folder: &Path,
        overrides: &Overrides,
    ) -> Result<Self, StudyError> {
        let document = Document::parse(name, text, folder)?;
        Self::build(document, PathBuf::from(name), overrides)
    }

    /// What is to be run.
    pub fn plan(&self) -> Plan {
        let mut plan = Plan {
            schema: SCHEMA,
            title: self.title.clone(),
            source: self.source.clone(),
            question: self.question.clone(),
            path: self.path.display().to_string(),
            overrides: self.overrides.clone(),
            digest: String::new(),
            model: model_version(),
            study_seed: self.study_seed,
            seeds: self.seeds.clone(),
            factors: self.factors.clone(),
            scenarios: self.scenarios.iter().map(StudyScenario::planned).collect(),
            runs: Vec::with_capacity(self.scenarios.len() * self.seeds.len()),
            views: self.views.clone(),
            metrics: metrics::columns(),
        };
        for (index, scenario) in self.scenarios.iter().enumerate() {
            let canonical = canonical(&scenario.scenario);
            for seed in &self.seeds {
                let id = run_id(&canonical, self.study_seed, *seed, &plan.model);
                let run = PlannedRun { id: id.to_string(), scenario: index as u32, seed: *seed };
                plan.runs.push(run);
            }
        }
        // Factors are part of it because results are named by them.
        let ids: Vec<&str> = plan.runs.iter().map(|run| &run.id[..]).collect();
        let factors: Vec<_> =
            plan.factors.iter().map(|factor| (&factor.name, &factor.values)).collect();
        let named = format!("{ids:?}{factors:?}{:?}", plan.seeds);
        plan.digest = Digest::of(named.as_bytes()).to_string();
        plan
    }

    /// Where the random streams of a run begin. It does not depend on the scenario, so that under
    /// one seed all scenarios meet the same chances.
    pub fn address(&self, seed: u64) -> StreamAddress {
        StreamAddress { seed: self.study_seed, run: seed }
    }

    /// The study as a file of its own, with what was changed from outside.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The claims of a study whose plan is known already, such as that of a result folder.
    ///
    /// # Errors
    /// The text is no study, or its claims do not fit the plan.
    pub fn claims_of(text: &str, plan: &Plan) -> Result<Vec<Claim>, StudyError> {
        let document = Document::parse(FILE_NAME, text, Path::new(""))?;
        let specs: Vec<ClaimSpec> = match document.root.node("claim") {
            Some(node) => node.to().map_err(|fault| {
                document.error(fault.at.unwrap_or(node.at), fault.key("claim"), fault.problem)
            })?,
            None => Vec::new(),
        };
        // What was set at that time may have taken away values that claims speak of.
        let overridden = factors::overridden(&document);
        let is_overridden = |factor: usize| overridden.contains(&plan.factors[factor].name);
        claims(&specs, &document, Names { plan, is_overridden: &is_overridden })
    }

    /// Makes every run at most `duration` long; warm-up, starts and stops shrink in proportion.
    fn shorten(&mut self, duration: Span) -> Result<(), SpecError> {
        for StudyScenario { scenario, .. } in &mut self.scenarios {
            let whole = scenario.duration;
            if whole <= duration {
                continue;
            }
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
            scenario.check()?;
        }
        Ok(())
    }

    fn build(
        mut document: Document,
        path: PathBuf,
        overrides: &Overrides,
    ) -> Result<Self, StudyError> {
        let factors = apply(&mut document, overrides)?;
        let combinations = factors.combinations(&document)?;
        let spec = read_base(&mut document, &factors, &combinations)?;
        let seeds = seeds(&spec, &document)?;
        if combinations.len() * seeds.len() > MAX_RUNS {
            let (scenarios, seeds) = (combinations.len(), seeds.len());
            let problem = format!("{scenarios} scenarios and {seeds} seeds make too many runs");
            let problem = SpecError::new(problem).allow([format!("at most {MAX_RUNS}")]);
            return Err(document.error_at_key("repeat.seeds", problem));
        }
        let scenarios = expand::expand(&mut document, &factors, &combinations)?;

        let mut study = Self {
            title: spec.title.clone(),
            source: spec.source.clone(),
            question: spec.question.clone(),
            overrides: noted(overrides),
            factors: factors.list(),
            study_seed: spec.repeat.study_seed,
            seeds,
            scenarios,
            views: Vec::new(),
            claims: Vec::new(),
            text: text_of(&document, &path, overrides),
            path,
        };
        if let Some(duration) = &spec.shorten {
            study
                .shorten(duration.value)
                .map_err(|problem| document.error_at_key("shorten", problem))?;
        }
        let plan = study.plan();
        let names = Names { plan: &plan, is_overridden: &|factor| factors.is_overridden(factor) };
        study.views = views(&spec, &document, names)?;
        study.claims = claims(&spec.claim, &document, names)?;
        Ok(study)
    }
}

impl StudyScenario {
    fn planned(&self) -> PlannedScenario {
        PlannedScenario {
            factors: self.factors.clone(),
            duration_s: self.scenario.duration.as_secs_f64(),
            warmup_s: self.scenario.warmup.as_secs_f64(),
            step_s: self.scenario.step.as_secs_f64(),
            flows: self.flows.clone(),
            queues: self.queues.clone(),
        }
    }
}

/// The version of everything that decides what a run's packets do.
pub fn model_version() -> String {
    format!("{}-{}", env!("CARGO_PKG_VERSION"), sojourn_sim::MODEL_VERSION)
}

/// The text by which two scenarios are the same or not.
pub fn canonical(scenario: &Scenario) -> String {
    format!("{scenario:?}")
}

/// Names a run: what it is, not where it stands in the study.
pub fn run_id(canonical: &str, study_seed: u64, seed: u64, model: &str) -> Digest {
    let text = format!("sojourn run\n{model}\n{study_seed} {seed}\n{canonical}");
    Digest::of(text.as_bytes())
}

/// Puts overrides into the document and its factors.
fn apply(document: &mut Document, overrides: &Overrides) -> Result<Factors, StudyError> {
    let mut factors = Factors::read(document)?;
    for set in &overrides.set {
        let assignment = Assignment::parse(set)
            .map_err(|error| StudyError::of_file(format!("--set {set}"), error.to_string()))?;
        let node = document.assigned(&assignment);
        let address = &assignment.address;
        if let Some(key) = address.strip_prefix("repeat.") {
            set_repeat(document, key, node);
        } else if !factors.set(document, address, &node)? {
            let at = node.at;
            let mut table = scenario_table(document).cloned().unwrap_or_default();
            crate::document::set(&mut table, address, at, &node)
                .map_err(|error| document.error(at, address, error))?;
            set_scenario_table(document, table);
        }
    }
    if let Some(seeds) = overrides.seeds {
        let at = document.option(&format!("--seeds {seeds}"));
        // More than fit are refused as too many.
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

/// Reads the study with its base as it is written. What only factors give, the first scenario has.
fn read_base(
    document: &mut Document,
    factors: &Factors,
    combinations: &[Combination<'_>],
) -> Result<StudySpec, StudyError> {
    let base = scenario_table(document).cloned();
    if let (Some(base), Some(first)) = (&base, combinations.first()) {
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

/// What stands under `key` was read as a [`crate::spec::Selection`]; here its factors are found.
fn selection(key: &str, document: &Document, names: Names<'_>) -> Result<Vec<Where>, StudyError> {
    let Some(Value::Table(table)) = document.node(key).map(|node| &node.value) else {
        return Ok(Vec::new());
    };
    let mut selection = Vec::new();
    for (factor, at, node) in table.flat() {
        let items = match &node.value {
            Value::Array(items) => &items[..],
            _ => std::slice::from_ref(node),
        };
        let index = find_factor(names, &factor).map_err(|error| document.error(at, key, error))?;
        let mut values = Vec::new();
        for item in items {
            let value = item.value.plain().unwrap_or_default();
            check_factor(names, &factor, &value)
                .map_err(|error| document.error(item.at, key, error))?;
            values.push(value);
        }
        let known = &names.plan.factors[index];
        if values.is_empty() {
            let problem = SpecError::new(format!("'{factor}' has an empty list"));
            return Err(document.error(node.at, key, problem.allow(&known.values)));
        }
        selection.push(Where { factor: known.name.clone(), values });
    }
    Ok(selection)
}

fn claims(
    specs: &[ClaimSpec],
    document: &Document,
    names: Names<'_>,
) -> Result<Vec<Claim>, StudyError> {
    let mut claims: Vec<Claim> = Vec::new();
    let mut ids = BTreeSet::new();
    for (index, claim) in specs.iter().enumerate() {
        let key = format!("claim.{index}");
        let wrong =
            |part: &str, problem| Err(document.error_at_key(&format!("{key}{part}"), problem));
        if !ids.insert(&claim.id) {
            let problem = format!("another claim is called '{}' already", claim.id);
            return wrong(".id", SpecError::new(problem).allow(["every id once"]));
        }
        match (&claim.expect.0[..], &claim.untestable) {
            ([], None) => {
                let problem = SpecError::new("the claim expects nothing");
                return wrong("", problem.allow(["expect", "untestable, with the reason"]));
            }
            ([_, ..], Some(_)) => {
                let problem = "what cannot be tested has nothing to expect";
                return wrong(".untestable", SpecError::new(problem));
            }
            _ => {}
        }
        let filter = selection(&format!("{key}.where"), document, names)?;
        let expect = claim
            .expect
            .0
            .iter()
            .enumerate()
            .map(|(number, text)| {
                Expectation::parse(text, names).map_err(|error| {
                    let list_key = format!("{key}.expect.{number}");
                    let at = document.within_text(document.locate(&list_key), text, error.at);
                    document.error(at, format!("{key}.expect"), error.problem)
                })
            })
            .collect::<Result<_, _>>()?;
        claims.push(Claim {
            id: claim.id.clone(),
            text: claim.text.clone(),
            source: claim.source.clone(),
            note: claim.note.clone(),
            untestable: claim.untestable.clone(),
            filter,
            expect,
        });
    }
    Ok(claims)
}

fn views(spec: &StudySpec, document: &Document, names: Names<'_>) -> Result<Vec<View>, StudyError> {
    // In the order of the file.
    let written = match document.root.node("views").map(|node| &node.value) {
        Some(Value::Table(table)) => table.entries.iter().map(|entry| &entry.key[..]).collect(),
        _ => Vec::new(),
    };
    written
        .into_iter()
        .filter_map(|name| spec.views.get_key_value(name))
        .map(|(name, view)| {
            let key = format!("views.{name}");
            check_view(view, names).map_err(|(part, problem)| {
                document.error_at_key(&format!("{key}.{part}"), problem)
            })?;
            Ok(View {
                name: name.clone(),
                kind: view.kind,
                title: view.title.clone(),
                caption: view.caption.clone(),
                x: view.x.clone(),
                y: view.y.0.clone(),
                split: view.split.clone(),
                of: view.of.0.clone(),
                filter: selection(&format!("{key}.where"), document, names)?,
            })
        })
        .collect()
}

fn check_view(view: &ViewSpec, names: Names<'_>) -> Result<(), (&'static str, SpecError)> {
    let factors = || names.plan.factors.iter().map(|factor| &factor.name[..]);
    let factor = |name: &str, others: &[&'static str]| {
        if factors().chain(others.iter().copied()).any(|known| known == name) {
            return Ok(());
        }
        Err(SpecError::new(format!("'{name}' is no factor of this study"))
            .near(name, factors().chain(others.iter().copied()))
            .allow(factors().chain(others.iter().copied())))
    };
    let metric = |name: &str| metrics::find(name, &Kind::ALL).map(|_| ());
    let column = |name: &str| series_column(name);
    if view.y.0.is_empty() {
        return Err(("y", SpecError::new("nothing is shown").allow(["one metric or more"])));
    }
    for y in &view.y.0 {
        match view.kind {
            ViewKind::Series => column(y),
            ViewKind::Cdf if DELAYS.contains(&y.as_str()) => Ok(()),
            _ => metric(y),
        }
        .map_err(|error| ("y", error))?;
    }
    match (&view.x, view.kind) {
        (Some(x), ViewKind::Scatter) => metric(x).map_err(|error| ("x", error))?,
        (Some(x), ViewKind::Bars | ViewKind::Heatmap) => {
            factor(x, &["flow"]).map_err(|error| ("x", error))?;
        }
        (Some(_), ViewKind::Series | ViewKind::Cdf) => {
            return Err(("x", SpecError::new("is fixed by the kind of the figure")));
        }
        (None, ViewKind::Scatter | ViewKind::Heatmap) => {
            return Err(("kind", SpecError::new("a figure of this kind needs 'x'")));
        }
        (None, _) => {}
    }
    match &view.split {
        Some(split) => factor(split, &["flow"]).map_err(|error| ("split", error))?,
        None if view.kind == ViewKind::Heatmap => {
            return Err(("kind", SpecError::new("a heatmap needs 'split', its second factor")));
        }
        None => {}
    }
    let OneOrMany(of) = &view.of;
    for name in of {
        let scenarios = &names.plan.scenarios;
        let all: Vec<&str> = scenarios
            .iter()
            .flat_map(|scenario| {
                let flows = scenario.flows.iter().flat_map(|flow| [&flow.group[..], &flow.name]);
                flows.chain(scenario.queues.iter().map(|queue| &queue.name[..]))
            })
            .collect();
        if !all.contains(&&name[..]) {
            let mut allowed: Vec<&str> = Vec::new();
            all.iter().for_each(|name| {
                if !allowed.contains(name) {
                    allowed.push(name);
                }
            });
            let problem = SpecError::new(format!("no flow or queue is named '{name}'"));
            return Err(("of", problem.near(name, all.iter().copied()).allow(allowed)));
        }
    }
    Ok(())
}

fn series_column(name: &str) -> Result<(), SpecError> {
    use sojourn_metrics::{FLOW_COLUMNS, LINK_COLUMNS};
    let flow = FLOW_COLUMNS.iter().map(|column| column.name);
    let names: Vec<&str> = flow.chain(LINK_COLUMNS.iter().map(|column| column.name)).collect();
    match names.contains(&name) {
        true => Ok(()),
        false => Err(SpecError::new(format!("no column of the time series is named '{name}'"))
            .near(name, names.iter().copied())
            .allow(names)),
    }
}

/// The options that were given, each with its value after a blank.
fn noted(overrides: &Overrides) -> Vec<String> {
    let set = overrides.set.iter().map(|set| format!("--set {set}"));
    let seeds = overrides.seeds.map(|seeds| format!("--seeds {seeds}"));
    let shorten = overrides.shorten.map(|duration| format!("--shorten {duration}"));
    set.chain(seeds).chain(shorten).collect()
}

fn text_of(document: &Document, path: &Path, overrides: &Overrides) -> String {
    if let Some(text) = document.verbatim() {
        return text.to_owned();
    }
    let mut text = format!("# As run from {}\n", path.display());
    for note in noted(overrides) {
        // What is said of the file must not become a part of it.
        text.push_str(&format!("# with {}\n", note.replace(char::is_control, " ")));
    }
    text.push_str("# Relative paths start where they did there.\n\n");
    text.push_str(&document.to_toml());
    text
}

impl Document {
    fn root_node(&self) -> Node {
        Node { value: Value::Table(self.root.clone()), at: At::START }
    }
}
