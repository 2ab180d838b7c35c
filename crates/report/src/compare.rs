//! Two result folders, before and after a change: what became worse, and how sure that is.
//!
//! A number counts as changed when three things hold. The difference is large enough to act on
//! ([`floor`]). It is more than chance explains: by Student's t over pairs of the same seed, or by
//! Welch's t if the folders have no seed in common. And it stays so when the number of questions is
//! taken into account: the p values of all numbers are corrected by Benjamini and Hochberg's
//! step-up procedure (1995), so one in twenty of the numbers called changed is expected to be
//! chance. Holm's correction, which allows one false alarm in twenty *comparisons*, would need p
//! below 0.0001 for the first of five hundred numbers. With five seeds it would miss most real
//! changes, and a real change affects many numbers at once.

mod changes;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::Write;
use std::sync::Arc;

use sojourn_metrics::stats;
use sojourn_study::metrics::more_is_better;
use sojourn_study::results::{Kind, Plan, Results, ResultsError, Row, RunRows, Table};

use crate::data::{Counted, Data, Extent, Point, Points, Subject};
use crate::markup::{Esc, plain_text};
use crate::number::{number, percent, told};
use crate::page::{Shell, USUAL, shows};
use crate::survey::{self, BySubject, EachRun, Found};
pub use crate::worth::floor;
use crate::{lines, names};
pub use changes::Changes;

/// What changed between two result folders.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// Titles, or folders if the titles are the same.
    pub before: String,
    pub after: String,
    pub changes: Changes,
    /// Runs that are in both with the same seed.
    pub paired: usize,
    /// Scenarios in both that have no seed in common; their runs are compared as two samples.
    pub by_samples: usize,
    /// Of those that are in both, runs in which every event was the same.
    pub identical: usize,
    /// Runs that only one of the folders has, and that are not compared.
    pub alone: usize,
    /// What could not be paired, in words.
    pub unpaired: Vec<String>,
}

/// A metric of a flow, queue or run in one scenario, over the seeds that both folders have.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    pub scenario: Arc<str>,
    pub kind: Kind,
    pub subject: Arc<str>,
    pub metric: &'static str,
    /// Other metrics with exactly the same values: they are one finding, not several.
    pub also: Vec<&'static str>,
    pub unit: Arc<str>,
    pub before: f64,
    pub after: f64,
    /// Of how many samples the values are, `10 of 20`; `None` if none is missing.
    pub before_counted: Option<String>,
    pub after_counted: Option<String>,
    /// Mean of the differences, after minus before.
    pub difference: f64,
    /// Half the width of its 95 % interval (Student's t over pairs, or Welch's over two samples);
    /// `None` with a single pair.
    pub half_width: Option<f64>,
    /// Pairs, or the runs of the smaller sample.
    pub pairs: usize,
    /// The probability that chance alone makes a difference this large; `None` with a single pair.
    pub p: Option<f64>,
    /// That probability, corrected for the number of questions.
    pub corrected_p: Option<f64>,
    pub judgement: Judgement,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Judgement {
    Worse,
    /// It changed, and the reader's aim decides whether that is good.
    Different,
    Better,
    /// Another share of the transfers ended, so their times are of other transfers: a mean may fall
    /// because the slow ones end no longer. Or too few ended for a percentile to be known in every
    /// run.
    Incomparable,
    /// It differs by enough to act on, in the only run that both folders have of the scenario: nothing tells how much of
    /// it is chance.
    Untested,
    /// It changed, by too little to act on.
    Slight,
    /// Chance explains it.
    Unsure,
    Same,
}

impl Judgement {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Worse => "worse",
            Self::Different => "different",
            Self::Better => "better",
            Self::Incomparable => "not comparable",
            Self::Untested => "of one run",
            Self::Slight => "too small to matter",
            Self::Unsure => "not sure",
            Self::Same => "the same",
        }
    }
}

impl Change {
    /// Means over samples of which some are missing.
    fn counted(mut self, [before, after]: [Counted; 2]) -> Self {
        let is_time_of_transfers = ["completion_", "fct_", "slowdown_"]
            .iter()
            .any(|family| self.metric.starts_with(family) && !self.metric.contains("_km_"));
        if is_time_of_transfers && !before.is_same_share(after) {
            self.judgement = Judgement::Incomparable;
        }
        self.before_counted = before.lacking();
        self.after_counted = after.lacking();
        self
    }

    /// A percentile that some runs do not reach before, or after.
    fn out_of_reach(mut self, [before, after]: [bool; 2]) -> Self {
        let is_alike = before && after && self.judgement == Judgement::Same;
        if (before || after) && !is_alike {
            self.judgement = Judgement::Incomparable;
            (self.difference, self.half_width, self.p) = (f64::NAN, None, None);
        }
        if before {
            self.before = f64::NAN;
        }
        if after {
            self.after = f64::NAN;
        }
        self
    }

    /// Whether it is worse, or would be if it were not chance.
    pub fn is_worse(&self) -> bool {
        match self.judgement {
            Judgement::Worse => true,
            Judgement::Untested => {
                more_is_better(self.metric).is_some_and(|more| more == (self.difference < 0.0))
            }
            _ => false,
        }
    }

    /// The difference as a share of what was before; `None` where that was zero.
    pub fn share(&self) -> Option<f64> {
        (self.before != 0.0).then(|| self.difference / self.before.abs())
    }

    /// The metric and those that are the same: `owd_p95_ms = frame_delay_p95_ms`.
    pub fn metrics(&self) -> String {
        let names = std::iter::once(&self.metric).chain(&self.also);
        names.copied().collect::<Vec<_>>().join(" = ")
    }
}

/// The share of false alarms allowed among what is called changed.
const FALSE_ALARMS: f64 = 0.05;

/// Pairs scenarios by the values of the factors that both studies have, and runs by seed.
pub fn compare(before: &Results, after: &Results) -> Comparison {
    let (old, new) = (Data::new(before), Data::new(after));
    let compared = Compared::all(&old, [&old, &new]);
    let sides = [&old, &new].map(|data| Side::of(data, Rows::InMemory(data.table)));
    between(sides, compared).expect("nothing is read")
}

/// The same of results without [`Results::table`]: the rows of both folders are read twice, a run at a time.
///
/// # Errors
/// A folder cannot be read.
pub fn compare_folders(before: &Results, after: &Results) -> Result<Comparison, ResultsError> {
    let (old, new) = (Data::new(before), Data::new(after));
    let compared = Compared::all(&old, [&extent(&old)?, &extent(&new)?]);
    let read = |results: &Results| Ok(Rows::read(results.whole_run_rows()?));
    between([Side::of(&old, read(before)?), Side::of(&new, read(after)?)], compared)
}

/// What there is of metrics in a folder.
fn extent<'a>(data: &'a Data<'a>) -> Result<Found<'a>, ResultsError> {
    survey::extent(data, USUAL, &mut |metrics: &[&str], each: &mut EachRun<'_>| {
        let mut runs = data.results.run_rows(metrics)?;
        while let Some(rows) = runs.next()? {
            each(&rows);
        }
        Ok(())
    })
}

fn between(
    [mut old, mut new]: [Side<'_>; 2],
    compared: Compared<'_>,
) -> Result<Comparison, ResultsError> {
    let (before, after) = (old.data.results, new.data.results);
    let mut comparison = Comparison {
        before: before.plan.title.clone(),
        after: after.plan.title.clone(),
        changes: compared.none(),
        paired: 0,
        by_samples: 0,
        identical: 0,
        alone: 0,
        unpaired: Vec::new(),
    };
    if comparison.before == comparison.after {
        comparison.before = before.folder.display().to_string();
        comparison.after = after.folder.display().to_string();
    }
    let common = common_factors(old.data, new.data);
    // Each scenario is paired once; of those of one world, in their order.
    let mut worlds: BTreeMap<Vec<&str>, VecDeque<usize>> = BTreeMap::new();
    for b in 0..new.data.plan.scenarios.len() {
        let world = common.iter().map(|(_, at)| new.data.value(b, *at)).collect();
        worlds.entry(world).or_default().push_back(b);
    }
    let mut pairs = Vec::new();
    for a in 0..old.data.plan.scenarios.len() {
        let world: Vec<&str> = common.iter().map(|(at, _)| old.data.value(a, *at)).collect();
        pairs.push(worlds.get_mut(&world).and_then(VecDeque::pop_front));
    }
    let left: BTreeSet<usize> = worlds.into_values().flatten().collect();
    let alone = pairs.iter().enumerate().filter(|(_, pair)| pair.is_none());
    old.leave_out(alone.map(|(a, _)| a));
    new.leave_out(left.iter().copied());
    for (a, pair) in pairs.into_iter().enumerate() {
        match pair {
            Some(b) => pair_runs(&mut comparison, old.scenario(a)?, new.scenario(b)?, &compared),
            None => {
                comparison.alone += old.data.done[a].len();
                comparison.unpaired.push(format!("{}: only before", old.data.label(a)));
            }
        }
    }
    for b in left {
        comparison.alone += new.data.done[b].len();
        comparison.unpaired.push(format!("{}: only after", new.data.label(b)));
    }
    comparison.changes.correct();
    comparison.changes.sort();
    Ok(comparison)
}

/// Why two folders cannot be compared: nothing tells that their scenarios are the same world. A study
/// of another title counts as another study, and scenarios of two studies are paired only where both
/// vary the same factors and have a flow of the same name.
pub fn unrelated(before: &Results, after: &Results) -> Option<String> {
    let (old, new) = (&before.plan, &after.plan);
    if old.title == new.title {
        return None;
    }
    let factors = |plan: &Plan| -> BTreeSet<String> {
        plan.factors.iter().map(|factor| factor.name.clone()).collect()
    };
    let groups = |plan: &Plan| -> BTreeSet<String> {
        let flows = plan.scenarios.iter().flat_map(|scenario| scenario.flows.iter());
        flows.map(|flow| flow.group.clone()).collect()
    };
    let what = match (factors(old) == factors(new), groups(old).is_disjoint(&groups(new))) {
        (_, true) => "have no flow of the same name",
        (false, false) => "don't vary the same factors",
        (true, false) => return None,
    };
    Some(format!("these are two studies, '{}' and '{}', and {what}", old.title, new.title))
}

/// Where the factors that must have the same value for two scenarios to be the same world are among those of both folders: all of
/// the same name. Where each folder has one engine, it may be another.
fn common_factors(old: &Data<'_>, new: &Data<'_>) -> Vec<(usize, usize)> {
    let mut common = Vec::new();
    for (at, factor) in old.plan.factors.iter().enumerate() {
        let other = new.plan.factors.iter().position(|other| other.name == factor.name);
        let Some(other) = other else { continue };
        let is_one_engine = factor.name == "engine"
            && factor.values.len() == 1
            && new.plan.factors[other].values.len() == 1;
        if !is_one_engine {
            common.push((at, other));
        }
    }
    common
}

/// What is compared: of each flow, queue and run the metrics that any scenario of either folder has.
struct Compared<'a> {
    subjects: Vec<(&'a Subject, Arc<str>)>,
    /// With their units.
    metrics: Vec<(&'static str, Arc<str>)>,
    /// For each subject which of the metrics.
    of: Vec<Vec<usize>>,
}

impl<'a> Compared<'a> {
    fn all(old: &'a Data<'_>, there: [&dyn Extent; 2]) -> Self {
        let metrics: Vec<_> =
            USUAL.iter().map(|metric| (*metric, names::unit(old.plan, metric).into())).collect();
        let of = |subject: &Subject| {
            let is_shown =
                |at: &usize| there.iter().any(|there| shows(*there, subject, USUAL[*at]));
            (0..USUAL.len()).filter(is_shown).collect()
        };
        let of = old.subjects.iter().map(of).collect();
        let subjects = old.subjects.iter().map(|subject| (subject, subject.label().into()));
        Self { subjects: subjects.collect(), metrics, of }
    }

    fn none(&self) -> Changes {
        let subjects =
            self.subjects.iter().map(|(subject, label)| (subject.kind, Arc::clone(label)));
        Changes::of(subjects.collect(), self.metrics.clone())
    }
}

/// The rows of a folder, by run.
enum Rows<'a> {
    InMemory(&'a Table),
    /// In the order of the plan. Runs that are asked for later wait, except those that nobody asks for.
    Read {
        rows: RunRows,
        waiting: BTreeMap<u32, Vec<Row>>,
        left_out: BTreeSet<u32>,
    },
}

impl<'a> Rows<'a> {
    fn read(rows: RunRows) -> Self {
        Self::Read { rows, waiting: BTreeMap::new(), left_out: BTreeSet::new() }
    }

    fn take(&mut self, run: u32) -> Result<Cow<'a, [Row]>, ResultsError> {
        let (rows, waiting, left_out) = match self {
            Self::InMemory(table) => return Ok(table.run(run).into()),
            Self::Read { rows, waiting, left_out } => (rows, waiting, left_out),
        };
        while !waiting.contains_key(&run)
            && let Some(next) = rows.next()?
        {
            if !left_out.contains(&next[0].run) {
                waiting.insert(next[0].run, next);
            }
        }
        Ok(waiting.remove(&run).unwrap_or_default().into())
    }
}

/// One of the two folders.
struct Side<'a> {
    data: &'a Data<'a>,
    runs: survey::Runs<'a>,
    rows: Rows<'a>,
}

/// The finished runs of a scenario, with their rows.
struct OfScenario<'s, 'a> {
    data: &'a Data<'a>,
    scenario: usize,
    runs: Vec<(u32, Cow<'a, [Row]>)>,
    by_subject: &'s mut survey::Runs<'a>,
}

impl<'a> Side<'a> {
    fn of(data: &'a Data<'a>, rows: Rows<'a>) -> Self {
        Self { data, runs: survey::Runs::of(data), rows }
    }

    /// The rows of these scenarios will not be asked for.
    fn leave_out(&mut self, scenarios: impl Iterator<Item = usize>) {
        if let Rows::Read { left_out, .. } = &mut self.rows {
            left_out.extend(scenarios.flat_map(|scenario| &self.data.done[scenario]));
        }
    }

    fn scenario(&mut self, scenario: usize) -> Result<OfScenario<'_, 'a>, ResultsError> {
        let done = self.data.done[scenario].iter();
        let runs = done.map(|run| Ok((*run, self.rows.take(*run)?))).collect::<Result<_, _>>()?;
        Ok(OfScenario { data: self.data, scenario, runs, by_subject: &mut self.runs })
    }
}

impl OfScenario<'_, '_> {
    fn seed(&self, run: u32) -> u64 {
        self.data.plan.runs[run as usize].seed
    }

    /// The rows of each run, by subject.
    fn sorted(&mut self) -> Vec<(u32, BySubject<'_>)> {
        let Self { runs, by_subject, .. } = self;
        runs.iter().map(|(run, rows)| (*run, by_subject.by_subject(rows))).collect()
    }
}

/// The metric in each run of a scenario.
fn points(
    data: &Data<'_>,
    runs: &[(u32, BySubject<'_>)],
    subject: &Subject,
    metric: &str,
) -> Points {
    let mut points = Points::default();
    let reading = data.reading(subject.kind, metric);
    if let (Some(reading), Some(subject)) = (reading, data.position(subject)) {
        for (run, rows) in runs {
            let seed = data.plan.runs[*run as usize].seed;
            points.add(reading, *run, seed, &rows[subject]);
        }
    }
    points
}

fn pair_runs(
    comparison: &mut Comparison,
    mut old: OfScenario<'_, '_>,
    mut new: OfScenario<'_, '_>,
    compared: &Compared<'_>,
) {
    fn digest(rows: &[Row]) -> Option<&String> {
        rows.first().map(|row| &row.digest).filter(|digest| !digest.is_empty())
    }
    // Of several runs with one seed the first.
    let twins: BTreeMap<u64, Option<&String>> =
        new.runs.iter().rev().map(|(run, rows)| (new.seed(*run), digest(rows))).collect();
    let mut paired = 0;
    for (run, rows) in &old.runs {
        let Some(twin) = twins.get(&old.seed(*run)) else { continue };
        paired += 1;
        let own = digest(rows);
        if own.is_some() && own == *twin {
            comparison.identical += 1;
        }
    }
    comparison.paired += paired;
    let seeds: BTreeSet<u64> = old.runs.iter().map(|(run, _)| old.seed(*run)).collect();
    let is_new = |(run, _): &&(u32, Cow<'_, [Row]>)| !seeds.contains(&new.seed(*run));
    let alone = [old.runs.len() - paired, new.runs.iter().filter(is_new).count()];
    let label = || old.data.label(old.scenario);
    let is_one_empty = old.runs.is_empty() || new.runs.is_empty();
    if paired == 0 && !is_one_empty {
        comparison.by_samples += 1;
    } else if let Some(told) = only(alone) {
        comparison.alone += alone.iter().sum::<usize>();
        let place = if label().is_empty() { String::new() } else { label() + ": " };
        comparison.unpaired.push(place + &told);
    }
    if is_one_empty {
        return;
    }
    let scenario: Arc<str> = label().into();
    comparison.changes.begin(Arc::clone(&scenario));
    let (old_data, new_data) = (old.data, new.data);
    let (old, new) = (old.sorted(), new.sorted());
    for (position, (subject, label)) in compared.subjects.iter().enumerate() {
        let mut found: Vec<(usize, Samples, Change)> = Vec::new();
        for at in &compared.of[position] {
            let (metric, unit) = &compared.metrics[*at];
            let points =
                (points(old_data, &old, subject, metric), points(new_data, &new, subject, metric));
            let counted = [points.0.counted(), points.1.counted()];
            let is_out = [points.0.is_out_of_reach(), points.1.is_out_of_reach()];
            let samples = match Samples::of(&points.0, &points.1, paired > 0) {
                Some(samples) => samples,
                None if is_out == [false; 2] => continue,
                None => Samples::default(),
            };
            // Two names for one quantity would be reported twice and count as two questions.
            let twin = found.iter_mut().find(|(_, other, change)| {
                *other == samples && change.unit == *unit && samples.differ()
            });
            match twin {
                Some((.., change)) => change.also.push(metric),
                None => {
                    let change = Change {
                        scenario: Arc::clone(&scenario),
                        kind: subject.kind,
                        subject: Arc::clone(label),
                        metric,
                        unit: Arc::clone(unit),
                        ..change(&samples)
                    };
                    let change = change.counted(counted);
                    found.push((*at, samples, change.out_of_reach(is_out)));
                }
            }
        }
        for (metric, _, change) in found {
            comparison.changes.add(position, metric, change);
        }
    }
}

/// Runs that only one side has: `2 runs only before, 1 run only after`; `None` if there are none.
fn only(runs: [usize; 2]) -> Option<String> {
    let told = runs.into_iter().zip(["before", "after"]).filter(|(runs, _)| *runs > 0);
    let told: Vec<String> =
        told.map(|(runs, side)| format!("{} only {side}", lines::counted(runs, "run"))).collect();
    (!told.is_empty()).then(|| told.join(", "))
}

/// The values of a metric before and after; in pairs where the seeds are the same.
#[derive(Clone, Debug, Default, PartialEq)]
struct Samples {
    before: Vec<f64>,
    after: Vec<f64>,
    paired: bool,
}

impl Samples {
    fn of(before: &[Point], after: &[Point], paired: bool) -> Option<Self> {
        let values = |points: &[Point]| points.iter().map(|point| point.value).collect();
        let samples = if paired {
            // Of several runs with one seed the first.
            let twins: BTreeMap<u64, f64> =
                after.iter().rev().map(|point| (point.seed, point.value)).collect();
            let pair = |one: &Point| Some((one.value, *twins.get(&one.seed)?));
            let (before, after) = before.iter().filter_map(pair).unzip();
            Self { before, after, paired }
        } else {
            Self { before: values(before), after: values(after), paired }
        };
        (!samples.before.is_empty() && !samples.after.is_empty()).then_some(samples)
    }

    fn differ(&self) -> bool {
        self.before != self.after
    }

    /// Half the width of the 95 % interval of the difference, and the probability that chance alone
    /// makes it this large.
    fn tested(&self) -> Option<(f64, f64)> {
        let (error, freedom) = if self.paired {
            let differences: Vec<f64> =
                self.before.iter().zip(&self.after).map(|(before, after)| after - before).collect();
            let n = differences.len() as f64;
            (stats::standard_deviation(&differences)? / n.sqrt(), n - 1.0)
        } else {
            // Welch, with the degrees of freedom by Satterthwaite.
            let part = |values: &[f64]| {
                let n = values.len() as f64;
                Some((stats::standard_deviation(values)?.powi(2) / n, n - 1.0))
            };
            let ((a, m), (b, n)) = (part(&self.before)?, part(&self.after)?);
            let freedom = (a + b).powi(2) / (a * a / m + b * b / n);
            ((a + b).sqrt(), if freedom.is_finite() { freedom } else { m + n })
        };
        let difference = stats::mean(&self.after)? - stats::mean(&self.before)?;
        if error == 0.0 {
            return Some((0.0, if difference == 0.0 { 1.0 } else { 0.0 }));
        }
        let half = stats::t_quantile(0.975, freedom)? * error;
        let p = 2.0 * (1.0 - stats::t_cdf((difference / error).abs(), freedom));
        Some((half, p.clamp(0.0, 1.0)))
    }
}

/// Of nothing that has a name yet. The verdict comes later, because the correction needs all numbers.
fn change(samples: &Samples) -> Change {
    let mean = |values: &[f64]| stats::mean(values).unwrap_or(f64::NAN);
    let (before, after) = (mean(&samples.before), mean(&samples.after));
    let tested = samples.tested();
    Change {
        scenario: "".into(),
        kind: Kind::Run,
        subject: "".into(),
        metric: "",
        also: Vec::new(),
        unit: "".into(),
        before,
        after,
        before_counted: None,
        after_counted: None,
        difference: after - before,
        half_width: tested.map(|(half, _)| half),
        pairs: samples.before.len().min(samples.after.len()),
        p: tested.map(|(_, p)| p),
        corrected_p: None,
        judgement: if samples.differ() { Judgement::Unsure } else { Judgement::Same },
    }
}

/// Changes that are not listed row by row.
const MOST_ROWS: usize = 400;

impl Comparison {
    /// `3 numbers are worse, 1 is better, 40 are the same or not surely different.`
    pub fn summary(&self) -> String {
        if self.paired == 0 && self.by_samples == 0 {
            return "The two folders have no scenario with runs in common.".into();
        }
        let same = self.changes.count(|judgement| judgement != Judgement::Same) == 0;
        if self.identical == self.paired && self.by_samples == 0 && same {
            return match self.alone {
                0 => format!("All {} runs are the same, event by event.", self.paired),
                alone => format!(
                    "All {} runs that both folders have are the same, event by event; {} {} in one of them alone.",
                    self.paired,
                    lines::counted(alone, "run"),
                    if alone == 1 { "is" } else { "are" }
                ),
            };
        }
        let count = |judgement: Judgement| self.changes.count(|other| other == judgement);
        let untested = self.changes.judged(|judgement| judgement == Judgement::Untested);
        let worse_untested = untested.filter(Change::is_worse).count();
        let changed = match (count(Judgement::Worse), count(Judgement::Better)) {
            (0, 0) if count(Judgement::Untested) > 0 => format!(
                "{} numbers differ by enough to act on, {worse_untested} of them for the worse, but the folders have one \
                 run of each scenario in common, so nothing tells how much of that is chance: run both with more seeds \
                 (--seeds 3).",
                count(Judgement::Untested)
            ),
            (0, 0) if count(Judgement::Different) == 0 => {
                "Nothing changed that anybody would act on.".to_owned()
            }
            (worse, better) => format!(
                "{worse} numbers are worse, {better} better, {} different without being either.",
                count(Judgement::Different)
            ),
        };
        let runs = if self.by_samples > 0 {
            format!(
                "In {} scenarios the folders have no seed in common, so their runs are compared as \
                 two samples",
                self.by_samples
            )
        } else {
            format!("{} of {} runs are the same, event by event", self.identical, self.paired)
        };
        let incomparable = match count(Judgement::Incomparable) {
            0 => String::new(),
            n => format!("{n} are times of transfers of which another share ended, or too few, "),
        };
        format!(
            "{changed} Of {} numbers, {incomparable}{} changed too little to matter, {} no more than \
             chance explains, and {} are the same. {runs}.",
            self.changes.len(),
            count(Judgement::Slight),
            count(Judgement::Unsure),
            count(Judgement::Same),
        )
    }

    /// A table for the terminal, the worst first; numbers that are the same are only counted.
    pub fn terminal(&self) -> String {
        let mut out = format!("{}\n", plain_text(&self.summary()));
        let head = ["", "scenario", "of", "metric", "before", "after", "difference", "share"];
        let mut table = vec![head.map(str::to_owned).to_vec()];
        let mut shown = self.changes.judged(|judgement| judgement < Judgement::Slight);
        for change in shown.by_ref().take(MOST_ROWS) {
            table.push(vec![
                change.judgement.name().to_owned(),
                plain_text(&change.scenario),
                plain_text(&change.subject),
                change.metrics(),
                counted(change.before, change.before_counted.as_deref()),
                counted(change.after, change.after_counted.as_deref()),
                told(change.difference, change.half_width, &change.unit),
                change.share().map_or(String::new(), percent),
            ]);
        }
        if table.len() > 1 {
            out += &lines::aligned(&table, 4);
        }
        if let more @ 1.. = shown.count() {
            let rows = lines::counted(more, "row");
            let _ = writeln!(out, "{rows} more, of smaller changes: --format csv lists all");
        }
        for line in self.unpaired.iter().take(MOST_ROWS) {
            let _ = writeln!(out, "not paired: {}", plain_text(line));
        }
        if let more @ 1.. = self.unpaired.len().saturating_sub(MOST_ROWS) {
            let _ = writeln!(out, "not paired: {more} more; --format json lists all");
        }
        out
    }

    /// A page of its own, with the same look as a report.
    pub fn html(&self) -> String {
        let mut body = format!(
            "<header><h1>What changed</h1><p class=\"question\">From <b>{}</b> to <b>{}</b></p>\
             </header><main><section id=\"answer\"><h2>The answer</h2><p class=\"verdict\">{}</p>",
            Esc(&self.before),
            Esc(&self.after),
            Esc(&self.summary())
        );
        if !self.unpaired.is_empty() {
            body += "<aside class=\"notice\"><h3>Not paired</h3><ul>";
            for line in self.unpaired.iter().take(MOST_ROWS) {
                let _ = write!(body, "<li>{}</li>", Esc(line));
            }
            if let more @ 1.. = self.unpaired.len().saturating_sub(MOST_ROWS) {
                let _ = write!(body, "<li>and {more} more</li>");
            }
            body += "</ul></aside>";
        }
        body += "<p class=\"caption\">Runs are paired by scenario and seed. ± is half the width of the \
                 95 % interval of the mean difference (Student’s t over pairs; Welch’s over two samples \
                 where no seed is in both). A number is called changed when the difference is worth a \
                 decision and its p value, corrected for the number of numbers by Benjamini and \
                 Hochberg, is at most 5 %: of the rows under “Changed”, one in twenty is expected to be \
                 chance.</p>";
        self.table(&mut body, "Changed", |judgement| judgement < Judgement::Untested);
        self.table(&mut body, "Different in the one run of each", |judgement| {
            judgement == Judgement::Untested
        });
        self.table(&mut body, "Changed too little to matter", |judgement| {
            judgement == Judgement::Slight
        });
        self.table(&mut body, "No more than chance explains", |judgement| {
            judgement == Judgement::Unsure
        });
        body += "</section></main>";
        let title = format!("{} → {}", self.before, self.after);
        Shell { title: &title, body: &body, scripts: "" }.to_html()
    }

    fn table(&self, out: &mut String, title: &str, which: impl Fn(Judgement) -> bool) {
        let all = self.changes.count(&which);
        if all == 0 {
            return;
        }
        let _ = write!(
            out,
            "<h3>{title}</h3><div class=\"wide\"><table class=\"deltas\"><thead><tr><th \
             scope=\"col\">Verdict</th><th scope=\"col\">Scenario</th><th scope=\"col\">Of</th><th \
             scope=\"col\">Metric</th><th class=\"n\" scope=\"col\">Before</th><th class=\"n\" \
             scope=\"col\">After</th><th class=\"n\" scope=\"col\">Difference</th><th class=\"n\" \
             scope=\"col\">Share</th></tr></thead><tbody>"
        );
        for change in self.changes.judged(which).take(MOST_ROWS) {
            let (class, sign) = match change.judgement {
                Judgement::Worse => ("failed", "✗"),
                Judgement::Better => ("held", "✓"),
                _ => ("open", "•"),
            };
            let _ = write!(
                out,
                "<tr><td><span class=\"badge {class}\"><b aria-hidden=\"true\">{sign}</b> {}</span></td>\
                 <td>{}</td><td>{}</td><td><code>{}</code></td><td class=\"n\">{}</td><td class=\"n\">{}\
                 </td><td class=\"n\">{}</td><td class=\"n\">{}</td></tr>",
                change.judgement.name(),
                Esc(&change.scenario),
                Esc(&change.subject),
                Esc(&change.metrics()),
                counted(change.before, change.before_counted.as_deref()),
                counted(change.after, change.after_counted.as_deref()),
                Esc(&told(change.difference, change.half_width, &change.unit)),
                change.share().map_or(String::new(), percent)
            );
        }
        *out += "</tbody></table></div>";
        if all > MOST_ROWS {
            let _ = write!(out, "<p class=\"note\">And {} rows more.</p>", all - MOST_ROWS);
        }
    }
}

/// `12.3 (10 of 20)`.
fn counted(value: f64, counted: Option<&str>) -> String {
    counted.map_or_else(|| number(value), |counted| format!("{} ({counted})", number(value)))
}
