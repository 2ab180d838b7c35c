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

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::Write;
use std::sync::Arc;

use sojourn_metrics::stats;
use sojourn_study::metrics::more_is_better;
use sojourn_study::results::{Kind, Plan, Results};

use crate::data::{Counted, Data, Point, Subject};
use crate::markup::{Esc, plain_text};
use crate::number::{number, percent, told};
use crate::page::{Shell, USUAL, shows};
pub use crate::worth::floor;
use crate::{lines, names};

/// What changed between two result folders.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// Titles, or folders if the titles are the same.
    pub before: String,
    pub after: String,
    /// Worst first.
    pub changes: Vec<Change>,
    /// Runs that are in both with the same seed.
    pub paired: usize,
    /// Scenarios in both that have no seed in common; their runs are compared as two samples.
    pub by_samples: usize,
    /// Of those, runs in which every event was the same.
    pub identical: usize,
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
    let mut comparison = Comparison {
        before: before.plan.title.clone(),
        after: after.plan.title.clone(),
        changes: Vec::new(),
        paired: 0,
        by_samples: 0,
        identical: 0,
        unpaired: Vec::new(),
    };
    if comparison.before == comparison.after {
        comparison.before = before.folder.display().to_string();
        comparison.after = after.folder.display().to_string();
    }
    let common = common_factors(&old, &new);
    // Each scenario is paired once; of those of one world, in their order.
    let mut worlds: BTreeMap<Vec<&str>, VecDeque<usize>> = BTreeMap::new();
    for b in 0..new.plan.scenarios.len() {
        let world = common.iter().map(|(_, at)| new.value(b, *at)).collect();
        worlds.entry(world).or_default().push_back(b);
    }
    let subjects = Compared::all(&old, &new);
    for a in 0..old.plan.scenarios.len() {
        let world: Vec<&str> = common.iter().map(|(at, _)| old.value(a, *at)).collect();
        match worlds.get_mut(&world).and_then(VecDeque::pop_front) {
            Some(b) => pair_runs(&mut comparison, (&old, a), (&new, b), &subjects),
            None => comparison.unpaired.push(format!("{}: only before", old.label(a))),
        }
    }
    let left: BTreeSet<usize> = worlds.into_values().flatten().collect();
    for b in left {
        comparison.unpaired.push(format!("{}: only after", new.label(b)));
    }
    correct(&mut comparison.changes);
    let size = |change: &Change| change.share().map_or(f64::MAX, f64::abs);
    comparison
        .changes
        .sort_by(|a, b| a.judgement.cmp(&b.judgement).then(size(b).total_cmp(&size(a))));
    comparison
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

/// A flow, queue or run, and the metrics of it that any scenario of either folder has.
struct Compared<'a> {
    subject: &'a Subject,
    label: Arc<str>,
    metrics: Vec<(&'static str, Arc<str>)>,
}

impl<'a> Compared<'a> {
    fn all(old: &'a Data<'_>, new: &Data<'_>) -> Vec<Self> {
        let mut units: BTreeMap<&str, Arc<str>> = BTreeMap::new();
        let mut all = Vec::new();
        for subject in &old.subjects {
            let is_shown =
                |metric: &&'static str| shows(old, subject, metric) || shows(new, subject, metric);
            let metrics = USUAL.iter().copied().filter(is_shown).map(|metric| {
                let unit = names::unit(old.plan, metric);
                (metric, Arc::clone(units.entry(unit).or_insert_with(|| unit.into())))
            });
            let metrics = metrics.collect();
            all.push(Self { subject, label: subject.label().into(), metrics });
        }
        all
    }
}

fn pair_runs(
    comparison: &mut Comparison,
    (old, a): (&Data<'_>, usize),
    (new, b): (&Data<'_>, usize),
    subjects: &[Compared<'_>],
) {
    let digest = |data: &Data<'_>, run: u32| {
        data.rows(run).next().map(|(row, _)| row.digest.clone()).filter(|d| !d.is_empty())
    };
    let seed = |data: &Data<'_>, run: u32| data.plan.runs[run as usize].seed;
    // Of several runs with one seed the first.
    let twins: BTreeMap<u64, u32> =
        new.done[b].iter().rev().map(|run| (seed(new, *run), *run)).collect();
    let mut paired = 0;
    for run in &old.done[a] {
        let Some(twin) = twins.get(&seed(old, *run)) else { continue };
        paired += 1;
        let digests = (digest(old, *run), digest(new, *twin));
        if digests.0.is_some() && digests.0 == digests.1 {
            comparison.identical += 1;
        }
    }
    comparison.paired += paired;
    if old.done[a].is_empty() || new.done[b].is_empty() {
        if old.done[a].is_empty() != new.done[b].is_empty() {
            comparison.unpaired.push(format!("{}: no runs on one side", old.label(a)));
        }
        return;
    }
    if paired == 0 {
        comparison.by_samples += 1;
    }
    let scenario: Arc<str> = old.label(a).into();
    for Compared { subject, label, metrics } in subjects {
        let mut found: Vec<(Samples, Change)> = Vec::new();
        for (metric, unit) in metrics {
            let points = (old.points(a, subject, metric), new.points(b, subject, metric));
            let counted = [points.0.counted(), points.1.counted()];
            let is_out = [points.0.is_out_of_reach(), points.1.is_out_of_reach()];
            let samples = match Samples::of(&points.0, &points.1, paired > 0) {
                Some(samples) => samples,
                None if is_out == [false; 2] => continue,
                None => Samples::default(),
            };
            // Two names for one quantity would be reported twice and count as two questions.
            let twin = found.iter_mut().find(|(other, change)| {
                *other == samples && change.unit == *unit && samples.differ()
            });
            match twin {
                Some((_, change)) => change.also.push(metric),
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
                    found.push((samples, change.out_of_reach(is_out)));
                }
            }
        }
        comparison.changes.extend(found.into_iter().map(|(_, change)| change));
    }
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

/// Corrects the p values for their number, and sets the verdicts. Numbers that are the same in
/// every run of both folders do not count as questions, nor do those that cannot be compared.
fn correct(changes: &mut [Change]) {
    let mut asked: Vec<(usize, f64)> = changes
        .iter()
        .enumerate()
        .filter(|(_, change)| change.judgement == Judgement::Unsure)
        .filter_map(|(at, change)| Some((at, change.p?)))
        .collect();
    asked.sort_by(|a, b| a.1.total_cmp(&b.1));
    let all = asked.len() as f64;
    let mut least = 1.0f64;
    for (rank, (at, p)) in asked.iter().enumerate().rev() {
        least = least.min(p * all / (rank + 1) as f64);
        changes[*at].corrected_p = Some(least);
    }
    for change in changes.iter_mut().filter(|change| change.judgement == Judgement::Unsure) {
        let sure = change.corrected_p.is_some_and(|p| p <= FALSE_ALARMS);
        let matters = change.difference.abs() > floor(change.metric, &change.unit, change.before);
        change.judgement = match (sure, matters, more_is_better(change.metric)) {
            (false, true, _) if change.p.is_none() => Judgement::Untested,
            (false, false, _) if change.p.is_none() => Judgement::Slight,
            (false, ..) => Judgement::Unsure,
            (true, false, _) => Judgement::Slight,
            (true, true, None) => Judgement::Different,
            (true, true, Some(more)) if more == (change.difference > 0.0) => Judgement::Better,
            (true, true, Some(_)) => Judgement::Worse,
        };
    }
}

/// Changes that are not listed row by row.
const MOST_ROWS: usize = 400;

impl Comparison {
    fn count(&self, judgement: Judgement) -> usize {
        self.changes.iter().filter(|change| change.judgement == judgement).count()
    }

    /// `3 numbers are worse, 1 is better, 40 are the same or not surely different.`
    pub fn summary(&self) -> String {
        if self.paired == 0 && self.by_samples == 0 {
            return "The two folders have no scenario with runs in common.".into();
        }
        let same = self.changes.iter().all(|change| change.judgement == Judgement::Same);
        if self.identical == self.paired && self.by_samples == 0 && same {
            return format!("All {} runs are the same, event by event.", self.paired);
        }
        let count = |judgement: Judgement| self.count(judgement);
        let untested = self.changes.iter().filter(|c| c.judgement == Judgement::Untested);
        let worse_untested = untested.filter(|change| change.is_worse()).count();
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
        let mut shown = self.changes.iter().filter(|change| change.judgement < Judgement::Slight);
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
        let rows: Vec<&Change> =
            self.changes.iter().filter(|change| which(change.judgement)).collect();
        if rows.is_empty() {
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
        for change in rows.iter().take(MOST_ROWS) {
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
        if rows.len() > MOST_ROWS {
            let _ = write!(out, "<p class=\"note\">And {} rows more.</p>", rows.len() - MOST_ROWS);
        }
    }
}

/// `12.3 (10 of 20)`.
fn counted(value: f64, counted: Option<&str>) -> String {
    counted.map_or_else(|| number(value), |counted| format!("{} ({counted})", number(value)))
}
