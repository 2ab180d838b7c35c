//! The numbers of each scenario from rows that come run by run, in the order of the plan, and are not kept.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::sync::Arc;

use sojourn_metrics::stats::interval_of_squares;
use sojourn_study::results::{Kind, PlannedFlow, Results, Row};

use crate::data::{CONFIDENCE, Data, Extent, Mean, Reading, Subject, Tally};
use crate::ending::{self, Ending, Endings};
use crate::lines::{LACKING, Lines, cell_of};
use crate::markup::plain_text;
use crate::page::{self, Block};

/// Takes the rows of a run.
pub(crate) type EachRun<'a> = dyn FnMut(&[Row]) + 'a;

/// Reads these metrics of all rows, run by run in the order of the plan.
pub(crate) type ReadRows<'a, E> = dyn FnMut(&[&str], &mut EachRun<'_>) -> Result<(), E> + 'a;

/// The most columns of a table that fit on a terminal.
const MOST: usize = 6;

/// A table for each application, for queues and for runs. Rows are read twice: to know what there is to be shown,
/// and for its numbers.
pub(crate) fn metrics<E>(results: &Results, read: &mut ReadRows<'_, E>) -> Result<String, E> {
    let data = Data::new(results);
    let all = page::read();
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    let mut found = Found::new(&data, &all);
    let mut runs = Runs::of(&data);
    read(&all, &mut |rows| {
        if runs.ended(rows).is_some() {
            found.end_scenario();
        }
        found.add(&runs.by_subject(rows));
    })?;
    found.end_scenario();

    let blocks = page::blocks(&data, &found);
    let mut cells: Vec<Cell<'_>> = Vec::new();
    for (block, of) in blocks.iter().enumerate() {
        for subject in &of.subjects {
            let of_subject = |metric| Cell::new(&data, block, subject, metric);
            cells.extend(of.metrics.iter().copied().take(MOST).filter_map(of_subject));
        }
    }
    let mut shown: BTreeSet<&str> = cells.iter().map(|cell| cell.metric).collect();
    shown.extend(cells.iter().flat_map(|cell| page::counts(cell.metric)));
    shown.extend(ending::METRICS);
    let shown: Vec<&str> = shown.into_iter().collect();

    let mut text = Text::new(&data, &blocks);
    let mut runs = Runs::of(&data);
    read(&shown, &mut |rows| {
        if let Some(scenario) = runs.ended(rows) {
            text.end_scenario(scenario, &mut cells);
        }
        text.add_ending(rows);
        let rows = runs.by_subject(rows);
        cells.iter_mut().for_each(|cell| cell.add(&rows));
    })?;
    if let Some(scenario) = runs.scenario {
        text.end_scenario(scenario, &mut cells);
    }
    Ok(text.whole())
}

/// The rows of a run, for each subject.
type BySubject<'r> = Vec<Vec<&'r Row>>;

/// Runs that come one after the other.
struct Runs<'a> {
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
    fn of(data: &'a Data<'a>) -> Self {
        let subjects = data.subjects.iter().zip(0..).collect();
        Self { data, subjects, scenario: None, flows: None }
    }

    /// The scenario of the runs before, if that of this one is another.
    fn ended(&mut self, rows: &[Row]) -> Option<u32> {
        let run = self.data.plan.runs.get(rows.first()?.run as usize)?;
        let before = self.scenario.replace(run.scenario);
        before.filter(|scenario| *scenario != run.scenario)
    }

    fn by_subject<'r>(&mut self, rows: &'r [Row]) -> BySubject<'r> {
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

/// What there is of metrics, which decides what is shown.
struct Found<'a> {
    data: &'a Data<'a>,
    /// Which subjects have which metrics in any run.
    has: Vec<Vec<bool>>,
    counted: Vec<Searched<'a>>,
}

/// A metric whose samples are counted, so that it may be missing where it was asked for.
struct Searched<'a> {
    subject: usize,
    metric: &'a str,
    reading: Reading,
    /// Of the scenario that has not ended.
    tally: Tally,
    were_asked: bool,
    lacks: bool,
}

impl<'a> Found<'a> {
    fn new(data: &'a Data<'a>, metrics: &[&'a str]) -> Self {
        let mut counted = Vec::new();
        for (subject, of) in data.subjects.iter().enumerate() {
            for metric in metrics.iter().filter(|metric| page::counts(metric).next().is_some()) {
                if let Some(reading) = Reading::of(&data.table.metrics, of.kind, metric) {
                    let tally = Tally::default();
                    let (were_asked, lacks) = (false, false);
                    counted.push(Searched { subject, metric, reading, tally, were_asked, lacks });
                }
            }
        }
        let has = vec![vec![false; data.table.metrics.len()]; data.subjects.len()];
        Self { data, has, counted }
    }

    fn add(&mut self, rows: &BySubject<'_>) {
        for (has, rows) in self.has.iter_mut().zip(rows) {
            for (metric, value) in rows.iter().flat_map(|row| row.values.known()) {
                has[metric] |= value.is_finite();
            }
        }
        for one in &mut self.counted {
            one.tally.add(&one.reading, &rows[one.subject]);
        }
    }

    fn end_scenario(&mut self) {
        for one in &mut self.counted {
            let tally = std::mem::take(&mut one.tally);
            one.were_asked |= tally.were_asked();
            one.lacks |= tally.counted().lacking().is_some();
        }
    }

    fn searched(&self, subject: &Subject, metric: &str) -> Option<&Searched<'_>> {
        let is_meant = |one: &&Searched<'_>| {
            one.metric == metric && self.data.subjects[one.subject] == *subject
        };
        self.counted.iter().find(is_meant)
    }
}

impl Extent for Found<'_> {
    fn has(&self, subject: &Subject, metric: &str) -> bool {
        let subject = self.data.subjects.iter().position(|own| own == subject);
        let metric = self.data.table.metrics.iter().position(|own| own == metric);
        matches!((subject, metric), (Some(subject), Some(metric)) if self.has[subject][metric])
    }

    fn were_asked(&self, subject: &Subject, metric: &str) -> bool {
        self.searched(subject, metric).is_some_and(|one| one.were_asked)
    }

    fn lacks(&self, subject: &Subject, metric: &str) -> bool {
        self.searched(subject, metric).is_some_and(|one| one.lacks)
    }
}

/// A metric of a subject, in the scenario that has not ended.
struct Cell<'a> {
    block: usize,
    /// Position of the subject.
    subject: usize,
    metric: &'static str,
    reading: Reading,
    tally: Tally,
    moments: Moments,
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
    fn new(
        data: &'a Data<'a>,
        block: usize,
        subject: &Subject,
        metric: &'static str,
    ) -> Option<Self> {
        let reading = Reading::of(&data.table.metrics, subject.kind, metric)?;
        let subject = data.subjects.iter().position(|own| own == subject)?;
        let (tally, moments) = (Tally::default(), Moments::default());
        Some(Self { block, subject, metric, reading, tally, moments, data })
    }

    fn add(&mut self, rows: &BySubject<'_>) {
        if let Some((value, _)) = self.tally.add(&self.reading, &rows[self.subject]) {
            self.moments.add(value);
        }
    }

    /// The text for the numbers that were added; others come afterwards.
    fn end_text(&mut self) -> String {
        let tally = std::mem::take(&mut self.tally);
        let moments = std::mem::take(&mut self.moments);
        let (mean, squares) = moments.mean_and_squares(tally.runs as f64);
        let interval = interval_of_squares(tally.runs, mean, squares, CONFIDENCE);
        let shown = (tally.runs > 0 && !tally.is_out_of_reach()).then(|| Mean {
            mean,
            half_width: interval.map(|interval| interval.half_width()),
            counted: tally.counted(),
        });
        cell_of(self.data.plan, self.metric, "", shown, &tally)
    }
}

/// What is printed, scenario by scenario.
struct Text<'a> {
    data: &'a Data<'a>,
    /// Of each block, and whether some cells are without all of their samples.
    blocks: Vec<(Lines, bool)>,
    /// Of the runs of the scenario that has not ended.
    endings: Endings,
    sentences: String,
}

impl<'a> Text<'a> {
    fn new(data: &'a Data<'a>, blocks: &[Block<'_>]) -> Self {
        let head = |block: &Block<'_>| {
            let mut head = vec!["scenario".to_owned(), plain_text(&block.heading)];
            head.extend(block.metrics.iter().take(MOST).map(|metric| (*metric).to_owned()));
            let mut lines = Lines::default();
            lines.add(&head);
            (lines, false)
        };
        let blocks = blocks.iter().map(head).collect();
        Self { data, blocks, endings: Endings::default(), sentences: String::new() }
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

    fn end_scenario(&mut self, scenario: u32, cells: &mut [Cell<'_>]) {
        let label = plain_text(&self.data.label(scenario as usize));
        for of_line in cells.chunk_by_mut(|a, b| (a.block, a.subject) == (b.block, b.subject)) {
            let [Cell { block, subject, .. }, ..] = *of_line else { continue };
            let mut row = vec![label.clone(), plain_text(self.data.subjects[subject].label())];
            row.extend(of_line.iter_mut().map(Cell::end_text));
            let values = &row[2..];
            if values.iter().any(|value| value != "-") {
                let (lines, is_lacking) = &mut self.blocks[block];
                *is_lacking |= values.iter().any(|value| value.ends_with(')'));
                lines.add(&row);
            }
        }
        if let Some(sentence) = std::mem::take(&mut self.endings).sentence() {
            let _ = writeln!(self.sentences, "{label}: {sentence}");
        }
    }

    fn whole(self) -> String {
        let mut out = String::new();
        for (lines, is_lacking) in self.blocks {
            lines.write_aligned(2, &mut out);
            out += if is_lacking { LACKING } else { "" };
            out.push('\n');
        }
        out + &self.sentences
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use sojourn_study::digest::Digest;
    use sojourn_study::results::{Factor, Plan, PlannedQueue, PlannedRun, PlannedScenario, Table};

    use super::*;
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
            let is_lacking = |row: &Vec<String>| row.iter().skip(2).any(|cell| cell.ends_with(')'));
            out += &aligned(&table, 2);
            out += if table.iter().skip(1).any(is_lacking) { LACKING } else { "" };
            out.push('\n');
        }
        for scenario in 0..data.plan.scenarios.len() {
            if let Some(ending) = ending::of_scenario(results, scenario as u32) {
                let _ = writeln!(out, "{}: {ending}", data.label(scenario));
            }
        }
        out
    }

    const APPS: [&str; 6] = ["bulk", "ping", "udp", "arrivals", "call", "requests"];

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
                    values: metrics.iter().map(|metric| value(metric)).collect(),
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
            let counts: BTreeSet<&str> = counted.iter().flat_map(|metric| page::counts(metric)).collect();
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
            prop_assert_eq!(crate::terminal::metrics(&results), of_all_rows(&results));
        }
    }
}
