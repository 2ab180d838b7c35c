//! Results arranged as figures need them: by scenario, subject and metric.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Deref, DerefMut, Range};

use sojourn_metrics::{sample_columns, stats, survival_columns};
use sojourn_study::confidence;
use sojourn_study::metrics::{self, Pooling};
use sojourn_study::results::{Kind, Plan, Results, Row, Table, Verdict, View};

use crate::nearby::nearby;

/// A flow (or group of flows), a queue, or the run as a whole.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Subject {
    pub(crate) kind: Kind,
    /// Empty for the run as a whole.
    pub(crate) name: String,
}

impl Subject {
    /// Whether the scenario has it.
    pub(crate) fn is_in(&self, data: &Data<'_>, scenario: usize) -> bool {
        let scenario = &data.plan.scenarios[scenario];
        let mut flows = scenario.flows.iter();
        match self.kind {
            Kind::Flow => flows.any(|flow| [&flow.group, &flow.name].contains(&&self.name)),
            Kind::Queue => scenario.queues.iter().any(|queue| queue.name == self.name),
            Kind::Run => true,
        }
    }

    pub(crate) fn label(&self) -> &str {
        match self.kind {
            Kind::Run => "all flows",
            Kind::Flow | Kind::Queue => &self.name,
        }
    }
}

/// A number of one run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Point {
    pub(crate) run: u32,
    pub(crate) seed: u64,
    pub(crate) value: f64,
    pub(crate) counted: Counted,
}

/// How many samples a number has, and how many it would have if none were missing: transfers that
/// had not ended, echoes that were lost. Where samples are not counted, flows are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counted {
    pub(crate) known: usize,
    pub(crate) of: usize,
}

impl Counted {
    #[cfg(test)]
    pub(crate) const ONE: Self = Self { known: 1, of: 1 };

    /// `10 of 20`, of many samples `99.8 %`; `None` if none is missing.
    pub(crate) fn lacking(self) -> Option<String> {
        let Self { known, of } = self;
        match known < of {
            false => None,
            true if of < 1000 => Some(format!("{known} of {of}")),
            true => {
                // Some are missing, so 100 % would be wrong.
                let tenths = (known as f64 * 1000.0 / of as f64).round().min(999.0);
                match known > 0 && tenths < 1.0 {
                    true => Some("<0.1 %".to_owned()),
                    false => Some(format!("{:.1} %", tenths / 10.0)),
                }
            }
        }
    }

    /// The part that is known.
    pub(crate) fn share(self) -> f64 {
        if self.of == 0 { 1.0 } else { self.known as f64 / self.of as f64 }
    }

    /// Whether the same share of the samples is known.
    pub(crate) fn is_same_share(self, other: Self) -> bool {
        self.known as u128 * other.of as u128 == other.known as u128 * self.of as u128
    }

    fn and(self, other: Self) -> Self {
        Self { known: self.known + other.known, of: self.of + other.of }
    }
}

/// How a metric of something is read off the rows of a run.
pub(crate) struct Reading {
    column: usize,
    /// Where samples are counted: those that are known, and all.
    counts: Option<(usize, usize)>,
    /// Where transfers are counted that began, for a percentile by Kaplan and Meier.
    begun: Option<usize>,
    pooling: Pooling,
}

/// What the rows of something in a run have of a metric. The flows of a group give one number, as in
/// claims.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum OfRun {
    Value(f64, Counted),
    /// Samples are counted, and none is known.
    Samples(Counted),
    /// So many flows without it.
    Flows(usize),
    /// Too few transfers ended to reach the percentile.
    OutOfReach,
}

impl Reading {
    /// Of the metric at this position.
    fn of(metrics: &[String], kind: Kind, column: usize) -> Self {
        let place = |name: &str| metrics.iter().position(|own| own == name);
        let metric = &metrics[column];
        Self {
            column,
            counts: sample_columns(metric).and_then(|(n, of)| Some((place(n)?, place(of)?))),
            begun: survival_columns(metric).and_then(|(_, of)| place(of)),
            pooling: metrics::known(metric, &[kind])
                .map_or(Pooling::Mean, |found| Pooling::of(found.name, found.unit)),
        }
    }

    /// Reads the rows, and whether they reach the percentile, if that is asked.
    pub(crate) fn of_run(&self, rows: &[&Row]) -> (OfRun, Option<bool>) {
        let known = |column: usize| {
            rows.iter().filter_map(move |row| row.values.get(column).filter(|v| v.is_finite()))
        };
        let count = known(self.column).count();
        let asked = self.begun.map_or(0, |begun| known(begun).filter(|begun| *begun > 0.0).count());
        let is_reached = (asked > 0).then_some(count >= asked);
        if is_reached == Some(false) {
            return (OfRun::OutOfReach, is_reached);
        }
        let samples = self
            .counts
            .filter(|(_, of)| known(*of).next().is_some())
            .map(|(n, of)| [n, of].map(|column| known(column).sum::<f64>() as usize))
            .map(|[known, of]| Counted { known, of });
        let flows = Counted { known: count, of: rows.len() };
        let of_run = match (pool(known(self.column), self.pooling), samples) {
            (Some(value), _) => OfRun::Value(value, samples.unwrap_or(flows)),
            (None, Some(samples)) => OfRun::Samples(samples),
            (None, None) => OfRun::Flows(rows.len()),
        };
        (of_run, is_reached)
    }
}

/// How many runs of a scenario have a number, and of how many samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) runs: usize,
    /// The samples of these runs.
    with: Counted,
    /// The samples that the other runs lack.
    without: Counted,
    /// Flows in runs without a number whose samples are not counted.
    flows_without: usize,
    /// Runs that reach a percentile by Kaplan and Meier.
    reached: Counted,
}

impl Tally {
    /// Takes in a run, and gives its number.
    pub(crate) fn add(&mut self, reading: &Reading, rows: &[&Row]) -> Option<(f64, Counted)> {
        let (of_run, is_reached) = reading.of_run(rows);
        if let Some(is_reached) = is_reached {
            let one = Counted { known: usize::from(is_reached), of: 1 };
            self.reached = self.reached.and(one);
        }
        match of_run {
            OfRun::Value(value, counted) => {
                self.runs += 1;
                self.with = self.with.and(counted);
                return Some((value, counted));
            }
            OfRun::Samples(samples) => self.without = self.without.and(samples),
            OfRun::Flows(flows) => self.flows_without += flows,
            OfRun::OutOfReach => {}
        }
        None
    }

    /// Over all runs, also those without a number.
    pub(crate) fn counted(&self) -> Counted {
        if self.is_out_of_reach() {
            return self.reached;
        }
        // What has no value in any run does not apply.
        let flows_without = if self.runs > 0 { self.flows_without } else { 0 };
        self.with.and(self.without).and(Counted { known: 0, of: flows_without })
    }

    /// Whether some runs do not reach the percentile: too few of their transfers ended. Their value is
    /// later than anything that was seen, so a mean over the other runs would be too early.
    pub(crate) fn is_out_of_reach(&self) -> bool {
        self.reached.known < self.reached.of
    }

    /// The text in place of a mean: `reached by 3 of 5 runs`, `0 of 100`; `None` if no sample is missing.
    pub(crate) fn why_none(&self) -> Option<String> {
        let lacking = self.counted().lacking()?;
        Some(match self.is_out_of_reach() {
            true => format!("reached by {lacking} runs"),
            false => lacking,
        })
    }

    /// Whether anything was there to be measured, with or without success.
    pub(crate) fn were_asked(&self) -> bool {
        self.counted().of > 0
    }
}

/// A number of each run that has one.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Points {
    pub(crate) points: Vec<Point>,
    tally: Tally,
    /// How many of the planned runs are finished.
    finished: Counted,
}

impl Points {
    /// Takes in the rows of a run.
    pub(crate) fn add(&mut self, reading: &Reading, run: u32, seed: u64, rows: &[&Row]) {
        if let Some((value, counted)) = self.tally.add(reading, rows) {
            self.points.push(Point { run, seed, value, counted });
        }
    }

    pub(crate) fn tally(&self) -> &Tally {
        &self.tally
    }

    /// As [`Tally::counted`].
    pub(crate) fn counted(&self) -> Counted {
        self.tally.counted()
    }

    /// As [`Tally::is_out_of_reach`].
    pub(crate) fn is_out_of_reach(&self) -> bool {
        self.tally.is_out_of_reach()
    }

    /// As [`Tally::why_none`].
    pub(crate) fn why_none(&self) -> Option<String> {
        self.tally.why_none()
    }
}

impl Deref for Points {
    type Target = Vec<Point>;

    fn deref(&self) -> &Vec<Point> {
        &self.points
    }
}

impl DerefMut for Points {
    fn deref_mut(&mut self) -> &mut Vec<Point> {
        &mut self.points
    }
}

#[cfg(test)]
impl From<Vec<Point>> for Points {
    fn from(points: Vec<Point>) -> Self {
        let with = points.iter().fold(Counted::default(), |sum, point| sum.and(point.counted));
        let tally = Tally { runs: points.len(), with, ..Tally::default() };
        let finished = Counted { known: points.len(), of: points.len() };
        Self { points, tally, finished }
    }
}

/// A mean over seeds with the half width of its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Mean {
    pub(crate) mean: f64,
    pub(crate) half_width: Option<f64>,
    pub(crate) counted: Counted,
    /// Of so many runs that are planned.
    pub(crate) finished: Counted,
}

impl Mean {
    /// `None` without points, and where some runs do not reach the number.
    pub(crate) fn of(points: &Points) -> Option<Self> {
        if points.is_out_of_reach() {
            return None;
        }
        let values: Vec<f64> = points.iter().map(|point| point.value).collect();
        Some(Self {
            mean: stats::mean(&values)?,
            half_width: confidence::USUAL
                .mean_interval(&values)
                .map(|interval| interval.half_width()),
            counted: points.counted(),
            finished: points.finished,
        })
    }

    /// What of it is missing: `10 of 20` samples, or `2 of 3 runs`.
    pub(crate) fn lacking(&self) -> Option<String> {
        let runs = || Some(format!("{} runs", self.finished.lacking()?));
        self.counted.lacking().or_else(runs)
    }
}

pub(crate) struct Data<'a> {
    pub(crate) results: &'a Results,
    pub(crate) plan: &'a Plan,
    pub(crate) table: &'a Table,
    /// Runs with a result, by scenario.
    pub(crate) done: Vec<Vec<u32>>,
    /// How many runs are planned, by scenario.
    pub(crate) planned: Vec<usize>,
    /// Scenarios that have a section; the others are in tables and figures only.
    pub(crate) sections: BTreeSet<usize>,
    /// Factors that differ between scenarios.
    pub(crate) varying: Vec<usize>,
    pub(crate) subjects: Vec<Subject>,
    /// Single flows of groups that views name; they stand behind the subjects.
    pub(crate) singles: Vec<Subject>,
    /// Where among both each is.
    positions: BTreeMap<(Kind, &'a str), usize>,
    /// For each of them the application of its first flow; empty for anything else.
    apps: Vec<&'a str>,
    /// For every row of the table, the position of its subject.
    subject_of: Vec<Option<usize>>,
    /// Rows by their run and the position of their subject, which stands before each.
    by_subject: Vec<(Option<usize>, u32)>,
    /// For each run where its rows begin, in the table and in `by_subject`; and behind it where those of the last end.
    starts: Vec<u32>,
    /// Where the table has each metric first.
    columns: BTreeMap<&'a str, usize>,
    /// For each metric of the table, how it is read off rows of each of [`Kind::ALL`].
    readings: Vec<[Reading; 3]>,
    /// Which subjects have which metrics in any scenario.
    has: Vec<Vec<bool>>,
    words: Vec<Words<'a>>,
}

impl<'a> Data<'a> {
    pub(crate) fn new(results: &'a Results) -> Self {
        let (plan, table) = (&results.plan, &results.table);
        let mut done = vec![Vec::new(); plan.scenarios.len()];
        let mut planned = vec![0; plan.scenarios.len()];
        for run in plan.runs.iter() {
            if let Some(planned) = planned.get_mut(run.scenario as usize) {
                *planned += 1;
            }
        }
        for (at, run) in plan.runs.iter().enumerate() {
            if let Some(runs) = done.get_mut(run.scenario as usize)
                && results.missing.binary_search(&(at as u32)).is_err()
            {
                runs.push(at as u32);
            }
        }
        let varying = (0..plan.factors.len())
            .filter(|factor| {
                let mut values = plan.scenarios.iter().map(|s| s.factors.get(*factor));
                let first = values.next();
                values.any(|value| Some(value) != first)
            })
            .collect();
        let (mut subjects, mut apps, mut positions) = (vec![], vec![], BTreeMap::new());
        let mut add = |kind: Kind, name: &'a str, app: &'a str| {
            positions.entry((kind, name)).or_insert_with(|| {
                subjects.push(Subject { kind, name: name.to_owned() });
                apps.push(app);
                apps.len() - 1
            });
        };
        for scenario in plan.scenarios.iter() {
            for flow in scenario.flows.iter() {
                add(Kind::Flow, &flow.group, &flow.app);
            }
        }
        for scenario in plan.scenarios.iter() {
            for queue in scenario.queues.iter() {
                add(Kind::Queue, &queue.name, "");
            }
        }
        add(Kind::Run, "", "");
        let singles = singles(plan);
        singles.iter().for_each(|(flow, app)| add(Kind::Flow, flow, app));
        let shared = subjects.len() - singles.len();
        let mut last = 0;
        let subject_of: Vec<Option<usize>> = table
            .rows
            .iter()
            .map(|row| {
                let scenario = plan.scenarios.get(row.scenario as usize)?;
                let name = match row.kind {
                    Kind::Flow => {
                        let flow = nearby(&scenario.flows, &mut last, |f| f.name == row.name)?;
                        &scenario.flows[flow].group
                    }
                    Kind::Queue => &row.name,
                    Kind::Run => "",
                };
                positions.get(&(row.kind, name)).copied()
            })
            .collect();
        let mut by_subject: Vec<_> = subject_of.iter().copied().zip(0..).collect();
        let mut starts = vec![0];
        for rows in table.rows.chunk_by(|row, next| row.run == next.run) {
            let (run, start) = (rows[0].run as usize, starts[starts.len() - 1]);
            starts.resize(run + 1, start);
            let end = start + rows.len() as u32;
            starts.push(end);
            by_subject[start as usize..end as usize].sort_by_key(|(subject, _)| *subject);
        }
        let mut has = vec![vec![false; table.metrics.len()]; subjects.len()];
        let single = |row: &Row| positions.get(&(row.kind, &row.name[..])).copied();
        for (row, subject) in table.rows.iter().zip(&subject_of) {
            let alone = single(row).filter(|subject| *subject >= shared);
            for subject in subject.iter().copied().chain(alone) {
                for (metric, value) in row.values.known() {
                    has[subject][metric] |= value.is_finite();
                }
            }
        }
        let singles = subjects.split_off(shared);
        let metrics = &table.metrics;
        let reading = |column| Kind::ALL.map(|kind| Reading::of(metrics, kind, column));
        let readings = (0..metrics.len()).map(reading).collect();
        let columns = metrics.iter().enumerate().rev().map(|(at, name)| (&name[..], at)).collect();
        let words = (0..plan.factors.len()).map(|f| Words::of(plan, f, &subjects)).collect();
        let sections = sections(results);
        Self {
            results,
            plan,
            table,
            done,
            planned,
            sections,
            varying,
            subjects,
            singles,
            positions,
            apps,
            subject_of,
            by_subject,
            starts,
            columns,
            readings,
            has,
            words,
        }
    }

    pub(crate) fn of_kind(&self, kind: Kind) -> impl Iterator<Item = &Subject> {
        self.subjects.iter().filter(move |subject| subject.kind == kind)
    }

    /// Whether the subject has this metric in any run.
    pub(crate) fn has(&self, subject: &Subject, metric: &str) -> bool {
        let (subject, metric) = (self.position(subject), self.column(metric));
        matches!((subject, metric), (Some(subject), Some(metric)) if self.has[subject][metric])
    }

    /// Flows get their colours first, so that a flow looks the same in every figure.
    pub(crate) fn colour_of_flow(&self, group: &str) -> usize {
        // Flows come first among subjects, too.
        self.positions.get(&(Kind::Flow, group)).copied().unwrap_or(0)
    }

    /// Where the subject is among all.
    pub(crate) fn position(&self, subject: &Subject) -> Option<usize> {
        self.positions.get(&(subject.kind, &subject.name[..])).copied()
    }

    /// The application of a flow or group; empty for anything else.
    pub(crate) fn app(&self, subject: &Subject) -> &'a str {
        self.position(subject).map_or("", |at| self.apps[at])
    }

    /// Whether its packets are of equal size and distance, as a voice's are; the opinion score is of
    /// voices.
    pub(crate) fn is_call(&self, subject: &Subject) -> bool {
        self.app(subject) == "udp"
    }

    /// Flows, groups, queues and the run itself, and single flows that views name.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Subject> {
        self.subjects.iter().chain(&self.singles)
    }

    /// Whether a view shows this flow or queue; `only` is the one that its metric names.
    pub(crate) fn is_shown(&self, view: &View, only: Option<&str>, subject: &Subject) -> bool {
        match only {
            Some(only) => subject.name == *only,
            // Without names it shows groups and not also their flows, which another view names.
            None if view.of.is_empty() => !self.singles.contains(subject),
            None => view.of.contains(&subject.name),
        }
    }

    pub(crate) fn metrics_of(&self, subject: &Subject) -> impl Iterator<Item = &'a str> {
        let has = self.position(subject).map_or(&[][..], |at| &self.has[at][..]);
        self.table.metrics.iter().zip(has).filter(|(_, has)| **has).map(|(name, _)| name.as_str())
    }

    /// The rows of a run with their subjects.
    pub(crate) fn rows(&self, run: u32) -> impl Iterator<Item = (&'a Row, Option<&Subject>)> {
        let subject = |at: usize| self.subject_of[at].map(|subject| &self.subjects[subject]);
        self.places(run).map(move |at| (&self.table.rows[at], subject(at)))
    }

    /// Where the table has the rows of a run.
    fn places(&self, run: u32) -> Range<usize> {
        let start = |run: usize| self.starts.get(run).or(self.starts.last()).map_or(0, |at| *at);
        start(run as usize) as usize..start(run as usize + 1) as usize
    }

    /// Where the table has the rows of a subject in a run.
    fn places_of(&self, run: u32, subject: usize) -> Vec<usize> {
        if let Some(single) = subject.checked_sub(self.subjects.len()) {
            let name = &self.singles[single].name;
            let is_it = |row: &Row| row.kind == Kind::Flow && row.name == *name;
            return self.places(run).filter(|at| is_it(&self.table.rows[*at])).collect();
        }
        let of_run = &self.by_subject[self.places(run)];
        let start = of_run.partition_point(|(own, _)| *own < Some(subject));
        let behind = of_run[start..].iter();
        let those = behind.take_while(move |(own, _)| *own == Some(subject));
        those.map(|(_, at)| *at as usize).collect()
    }

    pub(crate) fn column(&self, metric: &str) -> Option<usize> {
        self.columns.get(metric).copied()
    }

    /// `None` if no row has such a metric.
    pub(crate) fn reading(&self, kind: Kind, metric: &str) -> Option<&Reading> {
        let of_kind = Kind::ALL.iter().position(|own| *own == kind)?;
        Some(&self.readings[self.column(metric)?][of_kind])
    }

    /// How many of a scenario's runs are finished.
    pub(crate) fn finished(&self, scenario: usize) -> Counted {
        Counted { known: self.done[scenario].len(), of: self.planned[scenario] }
    }

    /// The metric in each finished run of a scenario.
    pub(crate) fn points(&self, scenario: usize, subject: &Subject, metric: &str) -> Points {
        let mut points = Points::default();
        let Some(reading) = self.reading(subject.kind, metric) else { return points };
        let done = &self.done[scenario];
        points.finished = self.finished(scenario);
        let Some(subject) = self.position(subject) else { return points };
        for run in done {
            let places = self.places_of(*run, subject);
            let rows: Vec<&Row> = places.into_iter().map(|at| &self.table.rows[at]).collect();
            points.add(reading, *run, self.plan.runs[*run as usize].seed, &rows);
        }
        points
    }

    /// Over the finished runs of a scenario.
    pub(crate) fn mean(&self, scenario: usize, subject: &Subject, metric: &str) -> Option<Mean> {
        Mean::of(&self.points(scenario, subject, metric))
    }

    fn points_of_all(&self, subject: &Subject, metric: &str) -> impl Iterator<Item = Points> {
        (0..self.plan.scenarios.len()).map(move |s| self.points(s, subject, metric))
    }

    /// Whether the value of `other` follows from that of `factor` in every scenario.
    pub(crate) fn follows(&self, other: usize, factor: usize) -> bool {
        let values = &self.plan.factors[factor].values;
        other != factor && values.iter().all(|value| self.words[factor].fixes(value, other))
    }

    /// The factor values that distinguish a scenario from others: `queue fq_codel · rate 10Mbps`.
    pub(crate) fn label(&self, scenario: usize) -> String {
        self.label_without(scenario, &[])
    }

    /// The same label without some factors; empty if nothing is left.
    pub(crate) fn label_without(&self, scenario: usize, without: &[usize]) -> String {
        let free = |factor: &usize| !without.contains(factor);
        let said: Vec<usize> = self.varying.iter().copied().filter(free).collect();
        // A value that follows from another value of the label is left out.
        let goes_with = |factor: usize, other: usize| {
            self.words[other].fixes(self.value(scenario, other), factor)
        };
        let implied = |factor: &usize| {
            said.iter().any(|other| {
                other != factor
                    && goes_with(*factor, *other)
                    && (other < factor || !goes_with(*other, *factor))
            })
        };
        let factors = said.iter().copied().filter(|factor| !implied(factor));
        let values: Vec<String> =
            factors.map(|factor| self.named(factor, self.value(scenario, factor))).collect();
        if values.is_empty() && without.is_empty() {
            return "the scenario".to_owned();
        }
        values.join(" · ")
    }

    pub(crate) fn value(&self, scenario: usize, factor: usize) -> &'a str {
        self.plan.scenarios[scenario].factors.get(factor).map_or("", |value| value)
    }

    /// The attribute of a link to the scenario's section; empty if it has none.
    pub(crate) fn link(&self, scenario: usize) -> String {
        match self.sections.contains(&scenario) {
            true => format!(" href=\"#s-{scenario}\""),
            false => String::new(),
        }
    }

    /// The factor for colours: of those with few values the one that leaves the fewest panels.
    pub(crate) fn telling_factor(&self) -> Option<usize> {
        let values = |factor: &usize| self.plan.factors[*factor].values.len();
        let few = self.varying.iter().rev().filter(|factor| values(factor) <= 8);
        few.max_by_key(|factor| values(factor)).copied()
    }

    /// A value after the last part of its factor's name, unless the value is clear alone.
    pub(crate) fn named(&self, factor: usize, value: &str) -> String {
        let words = &self.words[factor];
        match words.speaks {
            true => value.to_owned(),
            false => format!("{} {}", words.short, words.differing(value)),
        }
    }

    /// As [`Words::differing`].
    pub(crate) fn differing<'v>(&self, factor: usize, value: &'v str) -> &'v str {
        self.words[factor].differing(value)
    }

    pub(crate) fn short_factor(&self, factor: usize) -> &'a str {
        self.words[factor].short
    }

    /// The first metric of the list that the subject has.
    pub(crate) fn first_metric<'m>(
        &self,
        subject: &Subject,
        metrics: &[&'m str],
    ) -> Option<&'m str> {
        metrics.iter().copied().find(|metric| self.has(subject, metric))
    }
}

/// What there is of metrics in all scenarios.
pub(crate) trait Extent {
    /// Whether the subject has this metric in any run.
    fn has(&self, subject: &Subject, metric: &str) -> bool;

    /// Whether the metric was asked for in any scenario, with or without success.
    fn were_asked(&self, subject: &Subject, metric: &str) -> bool;

    /// Whether samples of the metric are missing in any scenario.
    fn lacks(&self, subject: &Subject, metric: &str) -> bool;

    /// Whether the metric is above zero in any run.
    fn occurs(&self, subject: &Subject, metric: &str) -> bool;

    /// Whether the subject has this metric in any run, or would have it if any of its samples were
    /// there.
    fn was_asked(&self, subject: &Subject, metric: &str) -> bool {
        self.has(subject, metric)
            || sample_columns(metric)
                .or_else(|| survival_columns(metric))
                .is_some_and(|(_, of)| self.has(subject, of))
                && self.were_asked(subject, metric)
    }
}

impl Extent for Data<'_> {
    fn has(&self, subject: &Subject, metric: &str) -> bool {
        self.has(subject, metric)
    }

    fn were_asked(&self, subject: &Subject, metric: &str) -> bool {
        self.points_of_all(subject, metric).any(|points| points.tally().were_asked())
    }

    fn lacks(&self, subject: &Subject, metric: &str) -> bool {
        self.points_of_all(subject, metric).any(|points| points.counted().lacking().is_some())
    }

    fn occurs(&self, subject: &Subject, metric: &str) -> bool {
        let occurs = |points: Points| points.points.iter().any(|point| point.value > 0.0);
        self.points_of_all(subject, metric).any(occurs)
    }
}

/// The flows of groups that views name, with their applications.
fn singles(plan: &Plan) -> BTreeMap<&str, &str> {
    let mut named: BTreeSet<&str> = BTreeSet::new();
    for view in &plan.views {
        named.extend(view.of.iter().map(|name| &name[..]));
        let of = view.y.iter().filter_map(|y| y.split_once('('));
        named.extend(of.map(|(_, name)| name.trim_end_matches(')').trim()));
    }
    let flows = || plan.scenarios.iter().flat_map(|scenario| scenario.flows.iter());
    let groups: BTreeSet<&str> = flows().map(|flow| &flow.group[..]).collect();
    let alone = flows().filter(|flow| named.contains(&flow.name[..]));
    let alone = alone.filter(|flow| !groups.contains(&flow.name[..]));
    alone.map(|flow| (&flow.name[..], &flow.app[..])).collect()
}

/// The most scenarios with a section of their own.
const MOST_SECTIONS: usize = 300;

/// Which scenarios have a section: all of a small study; otherwise those in which claims failed, and the first.
fn sections(results: &Results) -> BTreeSet<usize> {
    let all = results.plan.scenarios.len();
    let claims = results.claims.iter().flat_map(|report| &report.claims);
    let failed =
        claims.flat_map(|claim| &claim.checks).filter(|check| check.verdict == Verdict::Fails);
    let failed = failed.map(|check| check.scenario as usize).filter(|scenario| *scenario < all);
    let mut sections = BTreeSet::new();
    for scenario in failed.take(MOST_SECTIONS / 2).chain(0..all) {
        if sections.len() == MOST_SECTIONS {
            break;
        }
        sections.insert(scenario);
    }
    sections
}

/// How the values of a factor are told, which is worked out once for all scenarios.
struct Words<'a> {
    /// The last part of its name, if no other factor has the same; otherwise the name.
    short: &'a str,
    /// Its values are clear without its name.
    speaks: bool,
    /// Each of its values is another algorithm.
    are_algorithms: bool,
    /// Words at the beginning and the end of every value that are left out.
    front: usize,
    end: usize,
    /// Of each factor that changes together with it, the values of this one with which that has one
    /// value only.
    fixes: Vec<(usize, BTreeSet<&'a str>)>,
}

impl<'a> Words<'a> {
    fn of(plan: &'a Plan, factor: usize, subjects: &[Subject]) -> Self {
        let of = &plan.factors[factor];
        let last = |name: &'a str| name.rsplit('.').next().unwrap_or(name);
        let same = plan.factors.iter().filter(|other| last(&other.name) == last(&of.name));
        let short = if same.count() > 1 { &of.name } else { last(&of.name) };
        let begins_with_letter = |text: &str| text.starts_with(|c: char| c.is_ascii_alphabetic());
        // A flow may have the name of an algorithm while it runs another one.
        let names: BTreeSet<&str> = subjects.iter().map(|subject| &subject.name[..]).collect();
        let is_clear = |value: &String| begins_with_letter(value) && !names.contains(&value[..]);
        let values: Vec<Vec<&str>> =
            of.values.iter().map(|value| value.split(' ').collect()).collect();
        let firsts: BTreeSet<&str> = values.iter().map(|words| words[0]).collect();
        let (front, end) = shared_words(&values);
        Self {
            short,
            speaks: short == "case"
                || matches!(short, "queue" | "cca") && of.values.iter().all(is_clear),
            are_algorithms: matches!(last(short), "queue" | "cca") && firsts.len() == values.len(),
            front,
            end,
            fixes: of.together.iter().map(|other| (*other, fixing(plan, factor, *other))).collect(),
        }
    }

    /// Whether `other` always has the same value if this factor has `value`.
    fn fixes(&self, value: &str, other: usize) -> bool {
        let mut of = self.fixes.iter().filter(|(factor, _)| *factor == other);
        of.any(|(_, values)| values.contains(value))
    }

    /// The algorithm's name without its parameters where each value is another algorithm: `fq_codel` for
    /// `fq_codel limit 8000 target 10ms` beside `bfifo limit 12500000`. Otherwise a value of several words without those at its beginning and end that all values of the
    /// factor share, if two or more words are shared: `short-blockages` for `blockage
    /// short-blockages shaper htb`.
    fn differing<'v>(&self, value: &'v str) -> &'v str {
        if self.are_algorithms
            && let Some(word) = value.split(' ').next()
            && word.starts_with(|c: char| c.is_ascii_alphabetic())
        {
            return word;
        }
        if self.end == 0 {
            return value;
        }
        let spaces = || value.match_indices(' ').map(|(at, _)| at);
        let from = match self.front {
            0 => 0,
            front => spaces().nth(front - 1).map_or(0, |at| at + 1),
        };
        let to = value.rmatch_indices(' ').nth(self.end - 1).map_or(value.len(), |(at, _)| at);
        value.get(from..to).unwrap_or(value)
    }
}

/// How many words at the beginning and at the end all values share, if they are several and share two
/// or more, one of them at the end; otherwise zero. Each value keeps a word.
fn shared_words<'a>(values: &[Vec<&'a str>]) -> (usize, usize) {
    let Some(first) = values.first().filter(|_| values.len() > 1) else { return (0, 0) };
    let shortest = values.iter().map(Vec::len).min().unwrap_or(0);
    let all_have =
        |of: &dyn Fn(&[&'a str]) -> &'a str| values.iter().all(|words| of(words) == of(first));
    let front =
        (0..shortest.saturating_sub(1)).take_while(|n| all_have(&|words| words[*n])).count();
    let end = (0..shortest.saturating_sub(1 + front))
        .take_while(|n| all_have(&|words| words[words.len() - 1 - n]))
        .count();
    if end == 0 || front + end < 2 { (0, 0) } else { (front, end) }
}

/// The values of `factor` with which `other` always has the same value.
fn fixing(plan: &Plan, factor: usize, other: usize) -> BTreeSet<&str> {
    let mut partners: BTreeMap<&str, Option<&str>> = BTreeMap::new();
    for scenario in plan.scenarios.iter() {
        let own = &scenario.factors;
        let partner = partners.entry(&own[factor]).or_insert(Some(&own[other]));
        if *partner != Some(&own[other][..]) {
            *partner = None;
        }
    }
    partners.into_iter().filter(|(_, partner)| partner.is_some()).map(|(value, _)| value).collect()
}

fn pool(values: impl Iterator<Item = f64> + Clone, pooling: Pooling) -> Option<f64> {
    let sum = || values.clone().sum::<f64>();
    match (values.clone().count(), pooling) {
        (0, _) => None,
        (_, Pooling::Sum) => Some(sum()),
        (_, Pooling::Least) => values.reduce(f64::min),
        (_, Pooling::Largest) => values.reduce(f64::max),
        (count, Pooling::Mean) => Some(sum() / count as f64),
    }
}
