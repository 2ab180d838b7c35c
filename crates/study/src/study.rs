//! A study, read and checked: every mistake has been found.

mod mistakes;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sojourn_core::{SpecError, StreamAddress};
use sojourn_file::document::{Document, Table, Value};
use sojourn_file::factors;
use sojourn_file::plan::Factor;
use sojourn_file::spec::{ClaimSpec, OneOrMany, SCHEMA, StudySpec, ViewKind, ViewSpec};
use sojourn_file::{
    FILE_NAME, Overrides, Registry, Scenarios, Seeding, StudyError, StudyFile, StudyScenario,
    file_of,
};
use sojourn_link::RateConfig;
use sojourn_metrics::DELAYS;
use sojourn_scenario::Until;

use crate::claims::{Claim, Expectation, Known, Names, check_factor, find_factor, lacks};
use crate::digest::Digest;
use crate::engine;
use crate::metrics;
use crate::possible::Possible;
use crate::removed::{self, Removed};
use crate::results::{Axis, Common, Kind, Numbers, Plan, PlannedRun, PlannedScenario, View, Where};

/// A question and everything that is needed to answer it.
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
    pub scenarios: Scenarios,
    pub study_seed: u64,
    pub seeds: Vec<u64>,
    pub views: Vec<View>,
    pub claims: Vec<Claim>,
    /// The study as one file, with the changes.
    text: String,
    runs: Runs,
    possible: Possible,
}

/// What the plan says of scenarios and runs.
#[derive(Clone, Debug)]
struct Runs {
    scenarios: Arc<Vec<PlannedScenario>>,
    runs: Arc<Vec<PlannedRun>>,
    digest: String,
    notices: Vec<(String, usize)>,
}

impl Study {
    /// Reads a study: a file, or a folder with a `study.toml`.
    ///
    /// # Errors
    /// What is wrong with it, as many mistakes at once as can be found; none is left for the runs
    /// to find.
    pub fn load(path: &Path, overrides: &Overrides) -> Result<Self, StudyError> {
        Self::load_with(&Registry::default(), path, overrides)
    }

    /// Reads a study that may name the kinds in `registry`, beside the built-in ones.
    ///
    /// # Errors
    /// As [`Study::load`].
    pub fn load_with(
        registry: &Registry,
        path: &Path,
        overrides: &Overrides,
    ) -> Result<Self, StudyError> {
        let file = file_of(path);
        let document = Document::read(&file)?;
        Self::of(document, registry, file, overrides)
    }

    /// Reads a study that is in no file; relative paths in it start from `folder`.
    ///
    /// # Errors
    /// As [`Study::load`].
    pub fn parse(
        name: &str,
        text: &str,
        folder: &Path,
        overrides: &Overrides,
    ) -> Result<Self, StudyError> {
        Self::parse_with(&Registry::default(), name, text, folder, overrides)
    }

    /// The same, of a study that may name the kinds in `registry`.
    ///
    /// # Errors
    /// As [`Study::load`].
    pub fn parse_with(
        registry: &Registry,
        name: &str,
        text: &str,
        folder: &Path,
        overrides: &Overrides,
    ) -> Result<Self, StudyError> {
        let document = Document::parse(name, text, folder)?;
        Self::of(document, registry, PathBuf::from(name), overrides)
    }

    /// Reads a study that a program made of values, and that may name the kinds in `registry`.
    ///
    /// # Errors
    /// As [`Study::load`].
    pub fn of_values(
        registry: &Registry,
        name: &str,
        values: &Table,
        folder: &Path,
        overrides: &Overrides,
    ) -> Result<Self, StudyError> {
        let document = Document::of_values(name, values, folder)?;
        Self::of(document, registry, PathBuf::from(name), overrides)
    }

    /// Settings that are valid but probably not intended, and how many scenarios have each.
    pub fn notices(&self) -> Vec<(&str, usize)> {
        self.runs.notices.iter().map(|(notice, count)| (&notice[..], *count)).collect()
    }

    /// What can be measured of its flows, queues and runs.
    pub const fn possible(&self) -> &Possible {
        &self.possible
    }

    /// What is to be run. Copies share their long lists.
    pub fn plan(&self) -> Plan {
        Plan {
            schema: SCHEMA,
            title: self.title.clone(),
            source: self.source.clone(),
            question: self.question.clone(),
            path: self.path.display().to_string(),
            overrides: self.overrides.clone(),
            digest: self.runs.digest.clone(),
            model: model_version(),
            study_seed: self.study_seed,
            seeds: self.seeds.clone(),
            factors: self.factors.clone(),
            scenarios: Arc::clone(&self.runs.scenarios),
            runs: Arc::clone(&self.runs.runs),
            views: self.views.clone(),
            metrics: metrics::columns(),
        }
    }

    /// The root of a run's random streams. It does not depend on the scenario, so under one seed
    /// all scenarios draw the same numbers.
    pub fn address(&self, seed: u64) -> StreamAddress {
        StreamAddress { seed: self.study_seed, run: seed }
    }

    /// The study as one file, with the changes from outside.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The claims of a study whose plan is already known, such as that of a result folder.
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
        // The changes of that time may have removed values that claims name.
        let overridden = factors::overridden(&document);
        let is_overridden = |factor: usize| overridden.contains(&plan.factors[factor].name);
        let noted = || removed::noted(&document);
        let removed = Removed::new(&noted);
        let names = Names {
            plan,
            is_overridden: &is_overridden,
            removed: &|name| removed.kinds(name),
            known: None,
        };
        claims(&specs, &document, names)
    }

    fn of(
        document: Document,
        registry: &Registry,
        path: PathBuf,
        overrides: &Overrides,
    ) -> Result<Self, StudyError> {
        let registry = engine::with_built_in(registry);
        let read = |document: Document| {
            let whole = || removed::of_whole(&document, &registry, &path);
            let mut noted = Noted::default();
            let mut each =
                |scenario: &StudyScenario, seeding: Seeding<'_>| noted.add(scenario, seeding);
            let changed = document.clone();
            let file = StudyFile::of(changed, &registry, path.clone(), overrides, &mut each)?;
            Self::from_file(file, noted, &Removed::new(&whole))
        };
        read(document.clone())
            .map_err(|first| mistakes::all(first, document, &|document| read(document).map(|_| ())))
    }

    fn from_file(
        mut file: StudyFile,
        noted: Noted,
        removed: &Removed<'_>,
    ) -> Result<Self, StudyError> {
        let StudyFile { document, spec, factors, .. } = &file;
        let longest_s =
            noted.scenarios.iter().map(|scenario| scenario.duration_s).fold(0.0, f64::max);
        // Claims need not fit what the command line made of the study.
        let is_changed = spec.shorten.is_some() || document.root.node("overridden").is_some();
        let known = (!is_changed).then(|| Known { longest_s, phases: noted.phases.clone() });
        let possible = noted.possible.clone();
        let mut study = Self {
            title: spec.title.clone(),
            source: spec.source.clone(),
            question: spec.question.clone(),
            path: file.path.clone(),
            overrides: file.overrides.clone(),
            runs: noted.runs(&factors.list(), &file.seeds),
            factors: factors.list(),
            scenarios: file.scenarios.clone(),
            study_seed: spec.repeat.study_seed,
            seeds: file.seeds.clone(),
            views: Vec::new(),
            claims: Vec::new(),
            text: String::new(),
            possible,
        };
        let plan = study.plan();
        let names = Names {
            plan: &plan,
            is_overridden: &|factor| factors.is_overridden(factor),
            removed: &|name| removed.kinds(name),
            known: known.as_ref(),
        };
        study.views = views(spec, document, names)?;
        study.claims = claims(&spec.claim, document, names)?;
        study.runs.notices.extend(study.views.iter().flat_map(|view| lost(view, &plan)));
        let is_set = document.root.node("overridden").is_some();
        for (index, claim) in study.claims.iter().enumerate() {
            let is_covered = |scenario: &u32| {
                plan.is_selected(&plan.scenarios[*scenario as usize], &claim.filter)
            };
            let scenarios: Vec<u32> = (0..plan.scenarios.len() as u32).filter(is_covered).collect();
            let covered = scenarios.len();
            for (number, expectation) in claim.expect.iter().enumerate() {
                for lack in lacks(expectation, &scenarios, &plan, &study.possible) {
                    match lack.everywhere {
                        Some(problem) if !is_set => {
                            let text = &expectation.text;
                            let place = document.locate(&format!("claim.{index}.expect.{number}"));
                            let at = document.within_text(place, text, lack.at);
                            return Err(document.error(
                                at,
                                format!("claim.{index}.expect"),
                                problem,
                            ));
                        }
                        _ => study.runs.notices.push((
                            format!("claim '{}': '{}' has no value", claim.id, lack.what),
                            lack.scenarios,
                        )),
                    }
                }
                let fixed =
                    expectation.why_fixed().map(|why| format!("{why}, so no run changes it"));
                let is_cut = expectation.latest_s().is_some_and(|end| end > longest_s);
                let cut =
                    is_cut.then(|| format!("is cut at {longest_s}s, where the longest run ends"));
                let notices = fixed.into_iter().chain(cut);
                study.runs.notices.extend(notices.map(|notice| {
                    (format!("claim '{}': '{}' {notice}", claim.id, expectation.text), covered)
                }));
            }
        }
        removed.write(&mut file.document);
        study.text = file.text();
        Ok(study)
    }
}

/// What is kept of each scenario while a study is read.
#[derive(Default)]
struct Noted {
    common: Common,
    scenarios: Vec<PlannedScenario>,
    runs: Vec<PlannedRun>,
    notices: Vec<(String, usize)>,
    traces: TraceNames,
    /// As [`Known`] has them.
    phases: BTreeMap<String, Option<BTreeSet<&'static str>>>,
    possible: Possible,
}

impl Noted {
    fn add(&mut self, scenario: &StudyScenario, seeding: Seeding<'_>) {
        for notice in &scenario.notices {
            match self.notices.iter_mut().find(|(known, _)| known == notice) {
                Some((_, count)) => *count += 1,
                None => self.notices.push((notice.clone(), 1)),
            }
        }
        let engine = scenario.engine.as_ref().and_then(|engine| engine.canonical());
        let mut canonical =
            scenario.scenario.canonical_with(&mut |rate| self.traces.canonical(rate));
        canonical.extend(engine.iter().map(|engine| format!("engine [{engine}]\n")));
        let model = model_version();
        let index = self.scenarios.len() as u32;
        self.runs.extend(seeding.seeds.iter().map(|seed| PlannedRun {
            id: run_id(&canonical, seeding.study_seed, *seed, &model),
            scenario: index,
            seed: *seed,
        }));
        self.add_phases(scenario);
        self.possible.add(index, scenario, engine.as_deref().unwrap_or_default());
        let StudyScenario { factors, scenario, flows, queues, .. } = scenario;
        let until = (scenario.until != Until::Duration).then(|| scenario.until.name());
        let common = &mut self.common;
        self.scenarios.push(PlannedScenario {
            factors: factors.iter().map(|value| common.text(value)).collect(),
            duration_s: scenario.duration.as_secs_f64(),
            until: until.map(|until| common.text(until)),
            engine: engine.map(|engine| common.text(&engine)),
            warmup_s: scenario.warmup.as_secs_f64(),
            step_s: scenario.step.as_secs_f64(),
            flows: common.flows(flows),
            queues: common.queues(queues),
        });
    }

    fn add_phases(&mut self, StudyScenario { scenario, engine, flows, .. }: &StudyScenario) {
        for (flow, planned) in scenario.flows.iter().zip(flows) {
            // What runs under another engine need not be the simulator's controller.
            let connection = flow.lone_connection().filter(|_| engine.is_none());
            let of_flow = connection.map(|(_, cca)| cca.phases()).filter(|all| !all.is_empty());
            for name in BTreeSet::from([&planned.name, &planned.group]) {
                let known =
                    self.phases.entry(name.clone()).or_insert_with(|| Some(BTreeSet::new()));
                match (known.as_mut(), &of_flow) {
                    (Some(known), Some(phases)) => known.extend(phases),
                    _ => *known = None,
                }
            }
        }
    }

    fn runs(self, factors: &[Factor], seeds: &[u64]) -> Runs {
        let ids: Vec<Digest> = self.runs.iter().map(|run| run.id).collect();
        // Factors are included, because results are named by them.
        let factors: Vec<_> = factors.iter().map(|factor| (&factor.name, &factor.values)).collect();
        Runs {
            digest: Digest::of_json(&(ids, factors, seeds)).to_string(),
            scenarios: Arc::new(self.scenarios),
            runs: Arc::new(self.runs),
            notices: self.notices,
        }
    }
}

/// A rate whose written form is longer than this, because it has the whole content of a file, is named by
/// its digest. So a long trace is written out once, however many scenarios and seeds meet it.
const LONG: usize = 1 << 16;

/// Names of long traces, which scenarios share.
#[derive(Default)]
struct TraceNames(Vec<(RateConfig, String)>);

impl TraceNames {
    fn canonical(&mut self, rate: &RateConfig) -> String {
        if !rate.has_file() {
            return rate.canonical();
        }
        if let Some((_, name)) = self.0.iter().find(|(known, _)| known.is_same_file(rate)) {
            return name.clone();
        }
        let text = rate.canonical();
        let name = match text.len() > LONG {
            true => format!("digest {}", Digest::of(text.as_bytes())),
            false => text,
        };
        self.0.push((rate.clone(), name.clone()));
        name
    }
}

/// The version of everything that determines a run's packets.
pub fn model_version() -> String {
    format!("{}-{}", env!("CARGO_PKG_VERSION"), sojourn_sim::MODEL_VERSION)
}

/// The name of a run, which depends on its content and not on its position in the study.
pub fn run_id(canonical: &str, study_seed: u64, seed: u64, model: &str) -> Digest {
    let text = format!("sojourn run\n{model}\n{study_seed} {seed}\n{canonical}");
    Digest::of(text.as_bytes())
}

/// Finds the factors of what `key` holds, which was read as a [`sojourn_file::spec::Selection`].
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
                let problem = "what is untestable has nothing to expect";
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
                log: log_axes(view)
                    .map_err(|error| document.error_at_key(&format!("{key}.log"), error))?,
                solo: selection(&format!("{key}.solo"), document, names)?,
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
    let metric = |written: &str| {
        let (name, of) = metric_and_of(written);
        of.map_or(Ok(()), |of| known(of, names))?;
        metrics::find(name, &Kind::ALL).map(|_| ())
    };
    let column = |name: &str| series_column(name);
    if view.kind == ViewKind::Verdicts {
        let named = [("y", !view.y.0.is_empty()), ("split", view.split.is_some())];
        if let Some((key, _)) = named.into_iter().find(|(_, is_named)| *is_named) {
            return Err((
                key,
                SpecError::new("a figure of verdicts shows claims and nothing else"),
            ));
        }
    } else if view.y.0.is_empty() {
        return Err(("y", SpecError::new("nothing is shown").allow(["one metric or more"])));
    }
    if (view.kind == ViewKind::Harm) == view.solo.0.is_empty() {
        let error = match view.kind {
            ViewKind::Harm => SpecError::new("a figure of harm needs its solo runs")
                .allow(["solo = { \"flow.other.count\" = 0 }"]),
            _ => SpecError::new("only a figure of kind 'harm' has it"),
        };
        return Err((if view.kind == ViewKind::Harm { "kind" } else { "solo" }, error));
    }
    for y in &view.y.0 {
        if view.kind == ViewKind::Harm {
            let found = metrics::find(y, &Kind::ALL).map_err(|error| ("y", error))?;
            if metrics::more_is_better(found.name).is_none() {
                let error = SpecError::new(format!("'{y}' is neither good nor bad"));
                let allowed = ["a rate, a score, a delay, a loss, a stall or a freeze"];
                return Err(("y", error.allow(allowed)));
            }
        }
        match view.kind {
            ViewKind::Series => column(y),
            ViewKind::Cdf if DELAYS.contains(&y.as_str()) => Ok(()),
            _ => metric(y),
        }
        .map_err(|error| ("y", error))?;
    }
    match (&view.x, view.kind) {
        (Some(x), ViewKind::Scatter) => metric(x).map_err(|error| ("x", error))?,
        (Some(x), ViewKind::Bars | ViewKind::Boxes | ViewKind::Heatmap | ViewKind::Table) => {
            factor(x, &["flow"]).map_err(|error| ("x", error))?;
        }
        (Some(x), ViewKind::Verdicts | ViewKind::Harm) => {
            factor(x, &[]).map_err(|error| ("x", error))?;
        }
        (Some(x), ViewKind::Line) => {
            factor(x, &[]).map_err(|error| ("x", error))?;
            check_numbers(x, names).map_err(|error| ("x", error))?;
        }
        (Some(_), ViewKind::Series | ViewKind::Cdf) => {
            return Err(("x", SpecError::new("is fixed by the kind of the figure")));
        }
        (None, ViewKind::Scatter | ViewKind::Heatmap | ViewKind::Line | ViewKind::Harm) => {
            return Err(("kind", SpecError::new("a figure of this kind needs 'x'")));
        }
        (None, _) => {}
    }
    if view.kind == ViewKind::Table && view.x.is_some() && view.x == view.split {
        let error = SpecError::new("rows and columns can't have the same factor");
        return Err(("split", error.allow(["another one than 'x'"])));
    }
    match &view.split {
        Some(split) => factor(split, &["flow"]).map_err(|error| ("split", error))?,
        None if view.kind == ViewKind::Harm => {
            let error = SpecError::new("a figure of harm needs 'split', whose values are hurt");
            return Err(("kind", error));
        }
        None if view.kind == ViewKind::Heatmap => {
            return Err(("kind", SpecError::new("a heatmap needs 'split', its second factor")));
        }
        None => {}
    }
    let OneOrMany(of) = &view.of;
    of.iter().try_for_each(|name| known(name, names)).map_err(|error| ("of", error))
}

/// # Errors
/// The values of a factor have no place on an axis. The command line may leave one that has none: a study
/// must read again with the values of one of its scenarios.
fn check_numbers(factor: &str, names: Names<'_>) -> Result<(), SpecError> {
    let Some(index) = names.plan.factors.iter().position(|known| known.name == factor) else {
        return Ok(());
    };
    let values = &names.plan.factors[index].values;
    let problem = match &values[..] {
        _ if Numbers::of(values).is_some() => return Ok(()),
        [_] if (names.is_overridden)(index) => return Ok(()),
        [value] => format!("'{value}', the only value of '{factor}', does not have one number"),
        _ => format!("the values of '{factor}' differ in more than one number"),
    };
    let allowed = ["a factor such as 10ms, 20ms, 50ms", "kind = \"bars\""];
    Err(SpecError::new(problem).allow(allowed))
}

/// A metric, with or without the flow or queue that it is of, as claims write it.
fn metric_and_of(written: &str) -> (&str, Option<&str>) {
    match written.strip_suffix(')').and_then(|it| it.split_once('(')) {
        Some((name, of)) => (name.trim(), Some(of.trim())),
        None => (written, None),
    }
}

/// # Errors
/// No flow, group of flows or queue has this name, and none had it before the command line took it away.
fn known(name: &str, names: Names<'_>) -> Result<(), SpecError> {
    let all = || named(names.plan);
    if all().any(|known| known == name) || !(names.removed)(name).is_empty() {
        return Ok(());
    }
    let mut allowed: Vec<&str> = Vec::new();
    all().for_each(|name| {
        if !allowed.contains(&name) {
            allowed.push(name);
        }
    });
    let problem = SpecError::new(format!("no flow or queue is named '{name}'"));
    Err(problem.near(name, all()).allow(allowed))
}

/// The names of the groups, flows and queues of all scenarios.
fn named(plan: &Plan) -> impl Iterator<Item = &str> {
    plan.scenarios.iter().flat_map(|scenario| {
        let flows = scenario.flows.iter().flat_map(|flow| [&flow.group[..], &flow.name]);
        flows.chain(scenario.queues.iter().map(|queue| &queue.name[..]))
    })
}

/// Notes on what a view shows and no scenario has, because the command line took it away.
fn lost(view: &View, plan: &Plan) -> Vec<(String, usize)> {
    let written = view.y.iter().chain(&view.x);
    let of_metrics = written.filter_map(|written| metric_and_of(written).1);
    let mut all: BTreeSet<&str> = view.of.iter().map(|of| &of[..]).chain(of_metrics).collect();
    all.retain(|name| !named(plan).any(|known| known == *name));
    let note = |name: &str| format!("view '{}': '{name}' is in no scenario", view.name);
    all.into_iter().map(|name| (note(name), plan.scenarios.len())).collect()
}

fn log_axes(view: &ViewSpec) -> Result<Option<Vec<Axis>>, SpecError> {
    let Some(OneOrMany(written)) = &view.log else { return Ok(None) };
    if view.kind != ViewKind::Line {
        return Err(SpecError::new("only a figure of kind 'line' has it"));
    }
    let axis = |name: &String| match &name[..] {
        "x" => Ok(Axis::X),
        "y" => Ok(Axis::Y),
        other => Err(SpecError::new(format!("'{other}' is no axis")).allow(["x", "y"])),
    };
    written.iter().map(axis).collect::<Result<_, _>>().map(Some)
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
