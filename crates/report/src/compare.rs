//! Two result folders, before and after a change: what became worse, and how sure that is.

use std::fmt::Write;

use sojourn_metrics::stats;
use sojourn_study::results::{Kind, Results};

use crate::data::{Data, Point, Subject};
use crate::markup::{Esc, plain_text};
use crate::number::{estimate, number, percent};
use crate::page::{Shell, USUAL};
use crate::{names, terminal};

/// What changed between two result folders.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// Titles, or folders where those are the same.
    pub before: String,
    pub after: String,
    /// Worst first.
    pub changes: Vec<Change>,
    /// Runs that are in both.
    pub paired: usize,
    /// Of them, runs in which every event was the same.
    pub identical: usize,
    /// What could not be paired, in words.
    pub unpaired: Vec<String>,
}

/// A metric of a flow, queue or run in one scenario, over the seeds that both folders have.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    pub scenario: String,
    pub kind: Kind,
    pub subject: String,
    pub metric: String,
    pub unit: String,
    pub before: f64,
    pub after: f64,
    /// Mean of the differences, after minus before.
    pub difference: f64,
    /// Half the width of its 95 % interval (Student's t over pairs); `None` with a single pair.
    pub half_width: Option<f64>,
    pub pairs: usize,
    pub judgement: Judgement,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Judgement {
    Worse,
    /// It changed, and whether that is good depends on what one wants.
    Different,
    Better,
    /// The interval of the difference holds zero, or there is only one pair.
    Unsure,
    Same,
}

impl Judgement {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Worse => "worse",
            Self::Different => "different",
            Self::Better => "better",
            Self::Unsure => "not sure",
            Self::Same => "the same",
        }
    }
}

impl Change {
    /// The difference as a share of what was before; `None` where that was zero.
    pub fn share(&self) -> Option<f64> {
        (self.before != 0.0).then(|| self.difference / self.before.abs())
    }
}

/// Pairs scenarios by the values of the factors that both studies have, and runs by seed.
pub fn compare(before: &Results, after: &Results) -> Comparison {
    let (old, new) = (Data::new(before), Data::new(after));
    let mut comparison = Comparison {
        before: before.plan.title.clone(),
        after: after.plan.title.clone(),
        changes: Vec::new(),
        paired: 0,
        identical: 0,
        unpaired: Vec::new(),
    };
    if comparison.before == comparison.after {
        comparison.before = before.folder.display().to_string();
        comparison.after = after.folder.display().to_string();
    }
    let mut matched = vec![false; new.plan.scenarios.len()];
    for a in 0..old.plan.scenarios.len() {
        let Some(b) = (0..matched.len()).find(|b| !matched[*b] && same_world(&old, a, &new, *b))
        else {
            comparison.unpaired.push(format!("{}: only before", old.label(a)));
            continue;
        };
        matched[b] = true;
        pair_runs(&mut comparison, &old, a, &new, b);
    }
    for (b, matched) in matched.iter().enumerate() {
        if !matched {
            comparison.unpaired.push(format!("{}: only after", new.label(b)));
        }
    }
    let size = |change: &Change| change.share().map_or(f64::MAX, f64::abs);
    comparison
        .changes
        .sort_by(|a, b| a.judgement.cmp(&b.judgement).then(size(b).total_cmp(&size(a))));
    comparison
}

/// All factors of the same name have the same value, and there is one or no choice anyway.
fn same_world(old: &Data<'_>, a: usize, new: &Data<'_>, b: usize) -> bool {
    old.plan.factors.iter().enumerate().all(|(at, factor)| {
        let other = new.plan.factors.iter().position(|other| other.name == factor.name);
        other.is_none_or(|other| old.value(a, at) == new.value(b, other))
    })
}

fn pair_runs(comparison: &mut Comparison, old: &Data<'_>, a: usize, new: &Data<'_>, b: usize) {
    let digest = |data: &Data<'_>, run: u32| {
        data.rows(run).next().map(|(row, _)| row.digest.clone()).filter(|d| !d.is_empty())
    };
    for run in &old.done[a] {
        let seed = old.plan.runs[*run as usize].seed;
        let twin = new.done[b].iter().find(|run| new.plan.runs[**run as usize].seed == seed);
        let Some(twin) = twin else { continue };
        comparison.paired += 1;
        let digests = (digest(old, *run), digest(new, *twin));
        if digests.0.is_some() && digests.0 == digests.1 {
            comparison.identical += 1;
        }
    }
    if old.done[a].is_empty() != new.done[b].is_empty() {
        comparison.unpaired.push(format!("{}: no runs on one side", old.label(a)));
    }
    for subject in &old.subjects {
        for metric in USUAL.iter().filter(|metric| old.has(subject, metric)) {
            comparison.changes.extend(change(old, a, new, b, subject, metric));
        }
    }
}

fn change(
    old: &Data<'_>,
    a: usize,
    new: &Data<'_>,
    b: usize,
    subject: &Subject,
    metric: &str,
) -> Option<Change> {
    let (before, after) = (old.points(a, subject, metric), new.points(b, subject, metric));
    let pairs: Vec<(Point, Point)> = before
        .iter()
        .filter_map(|one| Some((*one, *after.iter().find(|other| other.seed == one.seed)?)))
        .collect();
    let firsts: Vec<f64> = pairs.iter().map(|pair| pair.0.value).collect();
    let seconds: Vec<f64> = pairs.iter().map(|pair| pair.1.value).collect();
    let (before, after) = (stats::mean(&firsts)?, stats::mean(&seconds)?);
    let difference = after - before;
    let half_width =
        stats::paired_difference(&firsts, &seconds, 0.95).map(|interval| interval.half_width());
    let judgement = if firsts == seconds {
        Judgement::Same
    } else if half_width.is_none_or(|half| difference.abs() <= half) {
        Judgement::Unsure
    } else {
        match names::more_is_better(metric) {
            None => Judgement::Different,
            Some(more) if more == (difference > 0.0) => Judgement::Better,
            Some(_) => Judgement::Worse,
        }
    };
    Some(Change {
        scenario: old.label(a),
        kind: subject.kind,
        subject: subject.label().to_owned(),
        metric: metric.to_owned(),
        unit: names::unit(old.plan, metric).to_owned(),
        before,
        after,
        difference,
        half_width,
        pairs: pairs.len(),
        judgement,
    })
}

/// Changes that are not worth a row each.
const MOST_ROWS: usize = 400;

impl Comparison {
    fn count(&self, judgement: Judgement) -> usize {
        self.changes.iter().filter(|change| change.judgement == judgement).count()
    }

    /// `3 numbers are worse, 1 is better, 40 are the same or not surely different.`
    pub fn summary(&self) -> String {
        if self.paired == 0 {
            return "The two folders have no run in common.".into();
        }
        let same = self.changes.iter().all(|change| change.judgement == Judgement::Same);
        if self.identical == self.paired && same {
            return format!("All {} runs are the same, event by event.", self.paired);
        }
        let count = |judgement: Judgement| self.count(judgement);
        format!(
            "Of {} numbers, {} are worse, {} better, {} different without being either, {} not surely \
             different and {} the same; {} of {} runs are the same, event by event.",
            self.changes.len(),
            count(Judgement::Worse),
            count(Judgement::Better),
            count(Judgement::Different),
            count(Judgement::Unsure),
            count(Judgement::Same),
            self.identical,
            self.paired
        )
    }

    /// A table for the terminal, worst first; what is the same is counted only.
    pub fn terminal(&self) -> String {
        let mut out = format!("{}\n", plain_text(&self.summary()));
        let head = ["", "scenario", "of", "metric", "before", "after", "difference", "share"];
        let mut table = vec![head.map(str::to_owned).to_vec()];
        let shown = self.changes.iter().filter(|change| change.judgement < Judgement::Unsure);
        for change in shown.take(MOST_ROWS) {
            table.push(vec![
                change.judgement.name().to_owned(),
                plain_text(&change.scenario),
                plain_text(&change.subject),
                change.metric.clone(),
                number(change.before),
                number(change.after),
                estimate(change.difference, change.half_width, &change.unit),
                change.share().map_or(String::new(), percent),
            ]);
        }
        if table.len() > 1 {
            out += &terminal::aligned(&table, 4);
        }
        for line in &self.unpaired {
            let _ = writeln!(out, "not paired: {}", plain_text(line));
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
            for line in &self.unpaired {
                let _ = write!(body, "<li>{}</li>", Esc(line));
            }
            body += "</ul></aside>";
        }
        body += "<p class=\"caption\">Runs are paired by scenario and seed. ± is half the width of the \
                 95 % interval of the mean difference (Student’s t over pairs). With hundreds of \
                 numbers, one in twenty differences would look sure by chance: believe sizes and \
                 patterns before single rows.</p>";
        self.table(&mut body, "Changed", |judgement| judgement < Judgement::Unsure);
        self.table(&mut body, "Not surely different", |judgement| judgement == Judgement::Unsure);
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
                Esc(&change.metric),
                number(change.before),
                number(change.after),
                Esc(&estimate(change.difference, change.half_width, &change.unit)),
                change.share().map_or(String::new(), percent)
            );
        }
        *out += "</tbody></table></div>";
        if rows.len() > MOST_ROWS {
            let _ = write!(out, "<p class=\"note\">And {} rows more.</p>", rows.len() - MOST_ROWS);
        }
    }
}
