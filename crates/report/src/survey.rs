//! The numbers of each scenario from rows that come run by run, in the order of the plan, and are not kept.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::sync::Arc;

use sojourn_study::confidence;
use sojourn_study::results::{Kind, PlannedFlow, Results, Row};

use crate::data::{Counted, Data, Extent, Mean, Reading, Subject, Tally};
use crate::ending::{Ending, Endings};
use crate::extremes;
use crate::lines::{Footnotes, Lines, cell_of, not_listed, subjects_not_listed};
use crate::markup::plain_text;
use crate::page;

/// Takes the rows of a run.
pub(crate) type EachRun<'a> = dyn FnMut(&[Row]) + 'a;

/// Reads these metrics of all rows, run by run in the order of the plan.
pub(crate) type ReadRows<'a, E> = dyn FnMut(&[&str], &mut EachRun<'_>) -> Result<(), E> + 'a;

/// The most columns of a table that fit on a terminal.
const MOST: usize = 6;

/// A table for each application, for queues and for runs. Rows are read once, so everything that may be shown is
/// computed; when all have come it is known what there is to be shown: up to `most` scenarios, and of each up to
/// `most` flows and queues. Where lines are left out, what [`extremes`](crate::extremes) says of all of them follows.
pub(crate) fn metrics<E>(
    results: &Results,
    most: usize,
    read: &mut ReadRows<'_, E>,
) -> Result<String, E> {
    let data = Data::new(results);
    let all = page::read();
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    let mut found = Found::new(&data, most);
    let mut runs = Runs::of(&data);
    read(&all, &mut |rows| {
        if let Some(scenario) = runs.ended(rows) {
            found.end_scenario(scenario);
        }
        found.add_ending(rows);
        found.add(&runs.by_subject(rows));
    })?;
    if let Some(scenario) = runs.scenario {
        found.end_scenario(scenario);
    }
    Ok(found.text())
}

/// What there is of `metrics` of every subject.
pub(crate) fn extent<'a, E>(
    data: &'a Data<'a>,
    metrics: &'static [&'static str],
    read: &mut ReadRows<'_, E>,
) -> Result<Found<'a>, E> {
    let mut found = Found::of(data, 0, |subject| {
        metrics.iter().copied().chain(page::deciding(metrics, subject.kind)).collect()
    });
    let mut runs = Runs::of(data);
    let all = page::with_counts(metrics);
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    let end_scenario = |found: &mut Found<'_>| {
        for cell in &mut found.cells {
            cell.end_unlisted_scenario();
        }
    };
    read(&all, &mut |rows| {
        if runs.ended(rows).is_some() {
            end_scenario(&mut found);
        }
        found.add(&runs.by_subject(rows));
    })?;
    end_scenario(&mut found);
    Ok(found)
}

/// The rows of a run, for each subject.
pub(crate) type BySubject<'r> = Vec<Vec<&'r Row>>;

/// Runs that come one after the other.
pub(crate) struct Runs<'a> {
    data: &'a Data<'a>,
    subjects: BTreeMap<&'a Subject, usize>,
    /// Of the run that came last.
    scenario: Option<u32>,
    flows: Option<Flows<'a>>,
}

/// Flows that many scenarios have, and of what subject each is, by its name.
struct Flows<'a> {
    list: &'a Arc<[PlannedFlow]>,
    subjects: BTreeMap<&'a str, usize>,
}

impl<'a> Runs<'a> {
    pub(crate) fn of(data: &'a Data<'a>) -> Self {
        let subjects = data.subjects.iter().zip(0..).collect();
        Self { data, subjects, scenario: None, flows: None }
    }

    /// The scenario of the runs before, if that of this one is another.
    fn ended(&mut self, rows: &[Row]) -> Option<u32> {
        let run = self.data.plan.runs.get(rows.first()?.run as usize)?;
        let before = self.scenario.replace(run.scenario);
        before.filter(|scenario| *scenario != run.scenario)
    }

    pub(crate) fn by_subject<'r>(&mut self, rows: &'r [Row]) -> BySubject<'r> {
        let mut by_subject = vec![Vec::new(); self.subjects.len()];
        for row in rows {
            if let Some(subject) = self.subject(row) {
                by_subject[subject].push(row);
            }
        }
        by_subject
    }

    fn subject(&mut self, row: &Row) -> Option<usize> {
        if row.kind != Kind::Flow {
            let subject = Subject { kind: row.kind, name: row.name.clone() };
            return self.subjects.get(&subject).copied();
        }
        let flows = &self.data.plan.scenarios.get(row.scenario as usize)?.flows;
        if !self.flows.as_ref().is_some_and(|known| Arc::ptr_eq(known.list, flows)) {
            let place = |flow: &'a PlannedFlow| {
                let subject = Subject { kind: Kind::Flow, name: flow.group.clone() };
                Some((&flow.name[..], *self.subjects.get(&subject)?))
            };
            let subjects = flows.iter().filter_map(place).collect();
            self.flows = Some(Flows { list: flows, subjects });
        }
        self.flows.as_ref()?.subjects.get(&row.name[..]).copied()
    }
}

/// What there is of metrics, which decides what is shown, and the numbers of all that may be.
pub(crate) struct Found<'a> {
    data: &'a Data<'a>,
    /// Which subjects have which metrics in any run.
    has: Vec<Vec<bool>>,
    cells: Vec<Cell<'a>>,
    /// Where among them each is, by the position of its subject and its metric.
    positions: BTreeMap<(usize, &'static str), usize>,
    /// Those that have ended.
    scenarios: Vec<u32>,
    /// Of the runs of the scenario that has not ended.
    endings: Endings,
    sentences: String,
    /// So many scenarios, and of each so many flows and queues, are listed.
    most: usize,
}

impl<'a> Found<'a> {
    fn new(data: &'a Data<'a>, most: usize) -> Self {
        Self::of(data, most, |subject| page::candidates(data, subject))
    }

    fn of(
        data: &'a Data<'a>,
        most: usize,
        metrics: impl Fn(&Subject) -> BTreeSet<&'static str>,
    ) -> Self {
        let of_subject = |(at, subject): (usize, &Subject)| {
            let cell = move |metric| Cell::new(data, at, subject.kind, metric);
            metrics(subject).into_iter().filter_map(cell).collect::<Vec<_>>()
        };
        let cells: Vec<Cell<'_>> = data.subjects.iter().enumerate().flat_map(of_subject).collect();
        let positions =
            cells.iter().enumerate().rev().map(|(at, cell)| ((cell.subject, cell.metric), at));
        let positions = positions.collect();
        let has = vec![vec![false; data.table.metrics.len()]; data.subjects.len()];
        let endings = Endings::default();
        let (scenarios, sentences) = (Vec::new(), String::new());
        Self { data, has, cells, positions, scenarios, endings, sentences, most }
    }

    fn add(&mut self, rows: &BySubject<'_>) {
        for (has, rows) in self.has.iter_mut().zip(rows) {
            for (metric, value) in rows.iter().flat_map(|row| row.values.known()) {
                has[metric] |= value.is_finite();
            }
        }
        self.cells.iter_mut().for_each(|cell| cell.add(rows));
    }

    fn add_ending(&mut self, rows: &[Row]) {
        let run = rows.first().and_then(|row| self.data.plan.runs.get(row.run as usize));
        let scenario = run.and_then(|run| self.data.plan.scenarios.get(run.scenario as usize));
        if scenario.is_some_and(|scenario| scenario.until.is_some())
            && let Some(ending) = Ending::of_rows(&self.data.table.metrics, rows)
        {
            self.endings.add(&ending);
        }
    }

    fn end_scenario(&mut self, scenario: u32) {
        let is_listed = self.scenarios.len() < self.most;
        let finished = self.data.finished(scenario as usize);
        self.cells.iter_mut().for_each(|cell| cell.end_scenario(is_listed, finished));
        if let Some(sentence) = std::mem::take(&mut self.endings).sentence() {
            let label = plain_text(&self.data.label(scenario as usize));
            let _ = writeln!(self.sentences, "{label}: {sentence}");
        }
        self.scenarios.push(scenario);
    }

    fn cell(&self, subject: &Subject, metric: &str) -> Option<&Cell<'a>> {
        let at = self.positions.get(&(self.data.position(subject)?, metric))?;
        Some(&self.cells[*at])
    }

    /// What is printed: of each block the scenarios one after the other.
    fn text(&self) -> String {
        let most = self.most;
        let mut out = String::new();
        for block in page::blocks(self.data, self) {
            let metrics = &block.metrics[..block.metrics.len().min(MOST)];
            let mut lines = Lines::default();
            let head = ["scenario".to_owned(), plain_text(&block.heading)].into_iter();
            lines.add(
                &head.chain(metrics.iter().map(|metric| (*metric).to_owned())).collect::<Vec<_>>(),
            );
            let cells_of = |subject: &&Subject| -> Vec<_> {
                let texts = |metric: &&str| self.cell(subject, metric).map(Cell::texts);
                metrics.iter().map(texts).collect()
            };
            let listed = &block.subjects[..block.subjects.len().min(most)];
            let mut subjects: Vec<_> =
                listed.iter().map(|subject| (*subject, cells_of(subject))).collect();
            let mut footnotes = Footnotes::default();
            for scenario in self.scenarios.iter().take(most) {
                let label = plain_text(&self.data.label(*scenario as usize));
                for (subject, cells) in &mut subjects {
                    let next = |texts: &mut Option<_>| -> &str {
                        texts.as_mut().and_then(Iterator::next).unwrap_or("-")
                    };
                    let values: Vec<&str> = cells.iter_mut().map(next).collect();
                    if values.iter().any(|value| *value != "-") {
                        values.iter().for_each(|value| footnotes.note(value));
                        let names = [label.clone(), plain_text(subject.label())].into_iter();
                        let values = values.into_iter().map(str::to_owned);
                        lines.add(&names.chain(values).collect::<Vec<_>>());
                    }
                }
            }
            lines.write_aligned(2, &mut out);
            out += &footnotes.text();
            let more = &block.subjects[listed.len()..];
            if !more.is_empty() || self.scenarios.len() > most {
                out += &self.extremes(&block.subjects, metrics);
            }
            if !more.is_empty() {
                let _ = writeln!(out, "{}", subjects_not_listed(more, self.data.results));
            }
            out.push('\n');
        }
        out.extend(self.sentences.split_inclusive('\n').take(most));
        if self.scenarios.len() > most {
            let more = self.scenarios.len() - most;
            let _ = writeln!(out, "{}", not_listed(more, "scenario", self.data.results));
        }
        out
    }
}

impl Found<'_> {
    /// What is said of all scenarios and all of these subjects, which are of one kind.
    fn extremes(&self, subjects: &[&Subject], metrics: &[&'static str]) -> String {
        let of_metric = |metric: &&'static str| {
            let cells = subjects.iter().enumerate();
            let cells = cells.filter_map(|(at, subject)| Some((at, self.cell(subject, metric)?)));
            let places = cells.flat_map(|(at, cell)| {
                let values = cell.values.iter().enumerate();
                values.map(move |(scenario, value)| (*value, scenario * subjects.len() + at))
            });
            (*metric, places.collect())
        };
        let metrics = metrics.iter().map(of_metric);
        extremes::of_scenarios(self.data, subjects, &self.scenarios, metrics)
    }
}

impl Extent for Found<'_> {
    fn has(&self, subject: &Subject, metric: &str) -> bool {
        let (subject, metric) = (self.data.position(subject), self.data.column(metric));
        matches!((subject, metric), (Some(subject), Some(metric)) if self.has[subject][metric])
    }

    fn were_asked(&self, subject: &Subject, metric: &str) -> bool {
        self.cell(subject, metric).is_some_and(|cell| cell.were_asked)
    }

    fn lacks(&self, subject: &Subject, metric: &str) -> bool {
        self.cell(subject, metric).is_some_and(|cell| cell.lacks)
    }

    fn occurs(&self, subject: &Subject, metric: &str) -> bool {
        self.cell(subject, metric).is_some_and(|cell| cell.occurs)
    }
}

/// A metric of a subject.
struct Cell<'a> {
    /// Position of the subject.
    subject: usize,
    metric: &'static str,
    reading: &'a Reading,
    /// Of the scenario that has not ended.
    tally: Tally,
    moments: Moments,
    /// Of the others: whether any of them was asked for it, and lacks samples of it.
    were_asked: bool,
    lacks: bool,
    /// It is above zero in any run.
    occurs: bool,
    /// What each of those that are listed shows, with [`Lines::END`] behind it.
    texts: String,
    /// The mean of each of them; not-a-number where nothing is shown.
    values: Vec<f64>,
    data: &'a Data<'a>,
}

/// What the mean of numbers and its interval are made of, when they are not there any more.
#[derive(Default)]
struct Moments {
    sum: f64,
    /// The number that came first. Distances from it stand for those from the mean, which is not known before all are
    /// there; as it is one of them, that costs no more digits than `n + 1` has.
    first: Option<f64>,
    distances: f64,
    squares: f64,
}

impl Moments {
    fn add(&mut self, value: f64) {
        let distance = value - *self.first.get_or_insert(value);
        self.sum += value;
        self.distances += distance;
        self.squares += distance * distance;
    }

    /// Of `n` numbers that were added their mean, and the sum of the squares of their distances from it.
    fn mean_and_squares(&self, n: f64) -> (f64, f64) {
        let mean = self.sum / n;
        let moved = mean - self.first.unwrap_or(mean);
        let squares = self.squares - 2.0 * moved * self.distances + n * moved * moved;
        (mean, squares.max(0.0))
    }
}

impl<'a> Cell<'a> {
    fn new(data: &'a Data<'a>, subject: usize, kind: Kind, metric: &'static str) -> Option<Self> {
        Some(Self {
            subject,
            metric,
            reading: data.reading(kind, metric)?,
            tally: Tally::default(),
            moments: Moments::default(),
            were_asked: false,
            lacks: false,
            occurs: false,
            texts: String::new(),
            values: Vec::new(),
            data,
        })
    }

    fn add(&mut self, rows: &BySubject<'_>) {
        if let Some((value, _)) = self.tally.add(self.reading, &rows[self.subject]) {
            self.moments.add(value);
            self.occurs |= value > 0.0;
        }
    }

    /// Takes in the numbers that were added; those that follow are of the next scenario.
    fn end_scenario(&mut self, is_listed: bool, finished: Counted) {
        let moments = std::mem::take(&mut self.moments);
        let tally = self.end_unlisted_scenario();
        let (mean, squares) = moments.mean_and_squares(tally.runs as f64);
        let is_shown = tally.runs > 0 && !tally.is_out_of_reach();
        self.values.push(if is_shown { mean } else { f64::NAN });
        if !is_listed {
            return;
        }
        let interval = confidence::USUAL.mean_interval_of_squares(tally.runs, mean, squares);
        let shown = is_shown.then(|| Mean {
            mean,
            half_width: interval.map(|interval| interval.half_width()),
            counted: tally.counted(),
            finished,
        });
        self.texts += &cell_of(self.data.plan, self.metric, "", shown, &tally);
        self.texts.push(Lines::END);
    }

    /// The same of a scenario of which no number is shown.
    fn end_unlisted_scenario(&mut self) -> Tally {
        let tally = std::mem::take(&mut self.tally);
        self.were_asked |= tally.were_asked();
        self.lacks |= tally.counted().lacking().is_some();
        tally
    }

    /// What each scenario that is listed shows.
    fn texts(&self) -> impl Iterator<Item = &str> {
        self.texts.split_terminator(Lines::END)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use sojourn_metrics::{sample_columns, survival_columns};
    use sojourn_study::digest::Digest;
    use sojourn_study::metrics::known;
    use sojourn_study::results::{Factor, Plan, PlannedQueue, PlannedRun, PlannedScenario, Table};

    use super::*;
    use crate::ending;
    use crate::lines::aligned;
    use crate::terminal::cell;

    /// The same from all rows at once.
    fn of_all_rows(results: &Results) -> String {
        let data = Data::new(results);
        let mut out = String::new();
        for block in page::blocks(&data, &data) {
            let columns: Vec<&str> = block.metrics.iter().copied().take(MOST).collect();
            let mut head = vec!["scenario".to_owned(), block.heading.clone()];
            head.extend(columns.iter().map(|column| (*column).to_owned()));
            let mut table = vec![head];
            for scenario in 0..data.plan.scenarios.len() {
                for subject in &block.subjects {
                    let cells =
                        columns.iter().map(|metric| cell(&data, scenario, subject, metric, ""));
                    let cells: Vec<String> = cells.collect();
                    if cells.iter().any(|value| value != "-") {
                        table.push(
                            [vec![data.label(scenario), subject.label().to_owned()], cells]
                                .concat(),
                        );
                    }
                }
            }
            let mut footnotes = Footnotes::default();
            let cells = table.iter().skip(1).flat_map(|row| row.iter().skip(2));
            cells.for_each(|cell| footnotes.note(cell));
            out += &aligned(&table, 2);
            out += &footnotes.text();
            out.push('\n');
        }
        for scenario in 0..data.plan.scenarios.len() {
            if let Some(ending) = ending::of_scenario(results, scenario as u32) {
                let _ = writeln!(out, "{}: {ending}", data.label(scenario));
            }
        }
        out
    }

    const APPS: [&str; 7] = ["bulk", "ping", "udp", "arrivals", "call", "requests", "rpm"];

    /// Scenarios of a flow, a group of two and a queue. `values` says of the metrics which are there and
    /// how large they are.
    fn results(
        [scenarios, seeds, app, missing]: [usize; 4],
        is_until: bool,
        mut value: impl FnMut(&str) -> Option<f64>,
    ) -> Results {
        let flow = |name: &str, group: &str, app: &str| PlannedFlow {
            name: name.into(),
            group: group.into(),
            app: app.into(),
            cca: None,
            base_rtt_ms: 20.0,
            bytes: None,
            is_up: false,
        };
        let flows: Arc<[PlannedFlow]> =
            [flow("a", "a", APPS[app]), flow("b.1", "b", "bulk"), flow("b.2", "b", "bulk")].into();
        let queue =
            PlannedQueue { name: "queue".into(), queue: "fifo".into(), rate: "1Mbps".into() };
        let rates: Vec<String> = (0..scenarios).map(|at| format!("{at}Mbps")).collect();
        let scenario = |rate: &String| PlannedScenario {
            factors: vec![rate[..].into()],
            duration_s: 1.0,
            until: is_until.then(|| "transfers done".into()),
            engine: None,
            warmup_s: 0.0,
            step_s: 0.1,
            flows: Arc::clone(&flows),
            queues: [queue.clone()].into(),
        };
        let places = (0..scenarios as u32)
            .flat_map(|scenario| (0..seeds as u64).map(move |seed| (scenario, seed)));
        let runs: Vec<PlannedRun> = places
            .map(|(scenario, seed)| PlannedRun { id: Digest::of(b""), scenario, seed })
            .collect();
        let missing: Vec<u32> =
            (0..runs.len() as u32).filter(|run| missing > 0 && run % 7 < missing as u32).collect();
        let metrics: Vec<String> = page::read().into_iter().chain(["end_ms".into()]).collect();
        let mut rows = Vec::new();
        for (run, planned) in (0..).zip(&runs) {
            if missing.contains(&run) {
                continue;
            }
            for (kind, name) in [
                (Kind::Run, ""),
                (Kind::Flow, "a"),
                (Kind::Flow, "b.1"),
                (Kind::Flow, "b.2"),
                (Kind::Queue, "queue"),
            ] {
                rows.push(Row {
                    run,
                    scenario: planned.scenario,
                    seed: planned.seed,
                    kind,
                    name: name.into(),
                    digest: String::new(),
                    end_state: String::new(),
                    freezes: Vec::new(),
                    values: (metrics.iter())
                        .map(|metric| known(metric, &[kind]).and_then(|_| value(metric)))
                        .collect(),
                });
            }
        }
        Results {
            folder: "results".into(),
            study: String::new(),
            plan: Plan {
                schema: 1,
                title: "t".into(),
                source: None,
                question: None,
                path: "t.toml".into(),
                overrides: Vec::new(),
                digest: String::new(),
                model: String::new(),
                study_seed: 1,
                seeds: (0..seeds as u64).collect(),
                factors: vec![Factor {
                    name: "path.rate".into(),
                    values: rates.clone(),
                    together: Vec::new(),
                }],
                scenarios: Arc::new(rates.iter().map(scenario).collect()),
                runs: Arc::new(runs),
                views: Vec::new(),
                metrics: sojourn_study::metrics::columns(),
            },
            table: Table { metrics, rows },
            claims: None,
            machine: None,
            missing,
        }
    }

    proptest! {
        #[test]
        fn the_table_is_that_of_all_rows(
            size in (1usize..4, 1usize..6, 0usize..APPS.len(), 0usize..4),
            is_until in any::<bool>(),
            // Of ten metrics so many are there.
            density in 0u64..11,
            seed in any::<u64>(),
        ) {
            let mut state = seed;
            let mut next = move || {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                state >> 33
            };
            let counted = page::read();
            let counts = |metric: &String| [sample_columns(metric), survival_columns(metric)];
            let counts: BTreeSet<&str> = counted.iter().flat_map(counts).flatten().flat_map(|(n, of)| [n, of]).collect();
            let value = |metric: &str| {
                let (is_there, draw) = (next() % 10 < density, next());
                // Values that are equal in all runs have no interval, and counts are small.
                let value = match (counts.contains(metric), draw % 3) {
                    (true, _) => (draw % 4) as f64,
                    (false, 0) => 0.1,
                    (false, _) => draw as f64 / 1e4,
                };
                is_there.then_some(value)
            };
            let size = [size.0, size.1, size.2, size.3];
            let results = results(size, is_until, value);
            prop_assert_eq!(crate::terminal::metrics(&results, usize::MAX), of_all_rows(&results));
        }
    }
}
