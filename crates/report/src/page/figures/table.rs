//! Metrics as numbers: a row for each combination of factors, columns for each metric and for what the view splits by.

use std::collections::{BTreeMap, BTreeSet};

use sojourn_study::results::{Kind, View};

use super::frame::{Frame, Measure, Split};
use super::panels::{Body, Figure, Head, Table};
use super::{MOST_SUBJECTS, once_a_station};
use crate::data::{Data, Mean, Subject};
use crate::grid::{Cell, Column, Grid, Row, RowHead};
use crate::markup::Esc;
use crate::number::shown_beside;

/// Further rows are counted, not written.
const MOST_ROWS: usize = 300;
/// The most columns of a metric.
const MOST_COLUMNS: usize = 40;

/// A metric of the table, and what it is of.
struct Part<'a> {
    frame: Frame<'a>,
    measure: Measure,
}

/// What a column shows.
struct Shown<'p> {
    part: &'p Part<'p>,
    /// Which of the values of the factor that columns are split by.
    value: usize,
    /// `None` if rows are of a flow or queue each.
    subject: Option<&'p Subject>,
}

/// The view's metrics, each with the one flow or queue that it is of, if it names one.
pub(super) fn table_figure(
    data: &Data<'_>,
    head: &Head<'_>,
    view: &View,
    metrics: &[(String, Option<String>)],
) -> Option<Figure> {
    let mut left_out = Vec::new();
    let parts = metrics.iter().map(|(metric, only)| {
        let subjects = subjects(data, view, metric, only.as_deref(), &mut left_out);
        let frame = Frame::new(data, subjects, &view.filter, None, view.split.as_deref());
        Part { measure: frame.measure(metric), frame }
    });
    let parts: Vec<Part<'_>> = parts.filter(|part| !part.frame.subjects.is_empty()).collect();
    let shape = Shape::new(data, &parts.first()?.frame, view);
    let mut grid = Grid { class: "numbers grid", corner: shape.corner(data), ..Grid::default() };
    let shown = columns(data, &parts, &shape, &mut grid, &mut left_out);
    grid.rows = rows(data, &parts, &shape, &shown);
    if grid.rows.is_empty() {
        return None;
    }
    if grid.rows.len() > MOST_ROWS {
        left_out.push(format!("the first {MOST_ROWS} of {} rows", grid.rows.len()));
        grid.rows.truncate(MOST_ROWS);
    }
    let mut caption = head.caption.to_owned();
    if !left_out.is_empty() {
        let left_out = format!("Only {}; sojourn show has all.", left_out.join(", "));
        caption = format!("{caption} {}", Esc(&left_out)).trim_start().to_owned();
    }
    let table = Table { name: String::new(), grid, below: String::new() };
    Some(Head { caption: &caption, ..*head }.figure(Body::Tables(vec![table])))
}

/// What the view shows of a metric.
fn subjects(
    data: &Data<'_>,
    view: &View,
    metric: &str,
    only: Option<&str>,
    left_out: &mut Vec<String>,
) -> Vec<Subject> {
    let measured = data.all().filter(|subject| data.has(subject, metric));
    let shown = measured.filter(|subject| is_of(data, view, only, subject));
    let subjects: Vec<Subject> = shown.cloned().collect();
    if only.is_some() || !view.of.is_empty() {
        return subjects;
    }
    let mut subjects = once_a_station(subjects, metric);
    if subjects.len() > MOST_SUBJECTS {
        left_out.push(format!("the first {MOST_SUBJECTS} of {} in {metric}", subjects.len()));
        subjects.truncate(MOST_SUBJECTS);
    }
    subjects
}

/// Gives the grid its columns, and says what each shows.
fn columns<'p>(
    data: &Data<'_>,
    parts: &'p [Part<'p>],
    shape: &Shape,
    grid: &mut Grid,
    left_out: &mut Vec<String>,
) -> Vec<Shown<'p>> {
    let mut all = parts.iter().flat_map(|part| &part.frame.subjects);
    let several = all.next().is_some_and(|first| all.any(|subject| subject != first));
    let mut shown: Vec<Shown<'p>> = Vec::new();
    for part in parts {
        let subjects: Vec<Option<&Subject>> = match shape.by_subject {
            true => vec![None],
            false => part.frame.subjects.iter().map(Some).collect(),
        };
        let count = shape.values.len() * subjects.len();
        let metric = &part.measure.metric;
        if count > MOST_COLUMNS {
            left_out.push(format!("the first {MOST_COLUMNS} of {count} columns of {metric}"));
        }
        let before = shown.len();
        for (value, name) in shape.values.iter().enumerate() {
            let name = shape.split.map_or("", |split| data.differing(split, name));
            for subject in subjects.iter().copied().take(before + MOST_COLUMNS - shown.len()) {
                let named = subject.filter(|one| several && one.kind != Kind::Run);
                let words = [name, named.map_or("", Subject::label)];
                let words: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
                grid.columns.push(Column { name: words.join(" · "), title: metric.clone() });
                shown.push(Shown { part, value, subject });
            }
        }
        let by = shape.split.map(|split| format!(", by {}", data.short_factor(split)));
        let above = part.measure.axis.clone() + by.as_deref().unwrap_or("");
        let added = shown.len() - before;
        match grid.above.last_mut() {
            Some((last, columns)) if *last == above => *columns += added,
            _ => grid.above.push((above, added)),
        }
    }
    // Where nothing tells the columns of a metric apart, one line of heads is enough.
    let is_unnamed = grid.columns.iter().all(|column| column.name.is_empty());
    if is_unnamed && grid.above.len() == grid.columns.len() {
        let names = grid.above.drain(..).map(|(name, _)| name);
        grid.columns.iter_mut().zip(names).for_each(|(column, name)| column.name = name);
    }
    shown
}

/// Those that have something, in the order of the factors' values.
fn rows(data: &Data<'_>, parts: &[Part<'_>], shape: &Shape, shown: &[Shown<'_>]) -> Vec<Row> {
    // The scenarios of a row, each with the column's value that it has.
    let mut scenarios: BTreeMap<Vec<usize>, Vec<(usize, usize)>> = BTreeMap::new();
    for scenario in &parts[0].frame.scenarios {
        let row = scenarios.entry(shape.key(data, *scenario)).or_default();
        row.push((shape.column(data, *scenario), *scenario));
    }
    let mut rows = Vec::new();
    for of in shape.subjects(parts) {
        for (key, scenarios) in &scenarios {
            let cell = |Shown { part, value, subject }: &Shown<'_>| {
                let subject = subject.or(of).filter(|one| part.frame.subjects.contains(one));
                let scenario = scenarios.iter().find(|(own, _)| own == value);
                match (scenario, subject) {
                    (Some((_, scenario)), Some(subject)) => cell(data, part, *scenario, subject),
                    _ => Cell::default(),
                }
            };
            let cells: Vec<Cell> = shown.iter().map(cell).collect();
            if cells.iter().any(|cell| !cell.text.is_empty()) {
                rows.push(Row { heads: shape.heads(data, of, key), cells });
            }
        }
    }
    rows
}

/// Whether the view shows it. What a run has as a whole is of none of its flows and queues.
fn is_of(data: &Data<'_>, view: &View, only: Option<&str>, subject: &Subject) -> bool {
    match subject.kind {
        Kind::Run => only.is_none_or(|only| only == subject.name),
        _ => data.is_shown(view, only, subject),
    }
}

/// What rows and columns stand for.
struct Shape {
    /// Each flow or queue has rows of its own.
    by_subject: bool,
    /// Whose values rows have.
    factors: Vec<usize>,
    /// Whose values columns have.
    split: Option<usize>,
    /// Those of its values that scenarios have, or an empty one.
    values: Vec<String>,
}

impl Shape {
    fn new(data: &Data<'_>, frame: &Frame<'_>, view: &View) -> Self {
        let factor = |name: &str| data.plan.factors.iter().position(|factor| factor.name == name);
        let split = view.split.as_deref().and_then(factor);
        let first = view.x.as_deref().and_then(factor);
        let mut factors: Vec<usize> = first.into_iter().collect();
        for one in frame.free(split.map(Split::Factor)) {
            let Split::Factor(one) = one else { continue };
            let is_said = |other: &usize| *other == one || data.follows(one, *other);
            if Some(one) != split && !factors.iter().any(is_said) {
                factors.push(one);
            }
        }
        // One that an earlier one follows from says all that the earlier does.
        let all = factors.clone();
        factors.retain(|one| {
            Some(*one) == first
                || !all
                    .iter()
                    .any(|other| data.follows(*one, *other) && !data.follows(*other, *one))
        });
        let values = match split {
            Some(split) => {
                let scenarios = frame.scenarios.iter();
                let taken: BTreeSet<&str> = scenarios.map(|s| data.value(*s, split)).collect();
                let values = data.plan.factors[split].values.iter();
                values.filter(|value| taken.contains(&value[..])).cloned().collect()
            }
            None => vec![String::new()],
        };
        let is_alone = factors.is_empty() && split.is_none() && view.split.is_none();
        Self { by_subject: is_alone || view.x.as_deref() == Some("flow"), factors, split, values }
    }

    /// A row's place among all: that of its factors' values.
    fn key(&self, data: &Data<'_>, scenario: usize) -> Vec<usize> {
        let place = |factor: &usize| {
            let value = data.value(scenario, *factor);
            data.plan.factors[*factor].values.iter().position(|own| *own == value).unwrap_or(0)
        };
        self.factors.iter().map(place).collect()
    }

    /// Which of the columns' values it has.
    fn column(&self, data: &Data<'_>, scenario: usize) -> usize {
        let value = self.split.map_or("", |split| data.value(scenario, split));
        self.values.iter().position(|own| *own == value).unwrap_or(0)
    }

    fn corner(&self, data: &Data<'_>) -> Vec<String> {
        let of = self.by_subject.then(|| "of".to_owned());
        let factors = self.factors.iter().map(|factor| data.short_factor(*factor).to_owned());
        let corner: Vec<String> = of.into_iter().chain(factors).collect();
        if corner.is_empty() { vec![String::new()] } else { corner }
    }

    fn heads(&self, data: &Data<'_>, subject: Option<&Subject>, key: &[usize]) -> Vec<RowHead> {
        let subject = self.by_subject.then(|| subject.map_or("", Subject::label).to_owned());
        let value = |(factor, at): (&usize, &usize)| {
            let value = &data.plan.factors[*factor].values[*at];
            data.differing(*factor, value).to_owned()
        };
        let heads = subject.into_iter().chain(self.factors.iter().zip(key).map(value));
        let mut heads: Vec<RowHead> =
            heads.map(|text| RowHead { text, ..RowHead::default() }).collect();
        if heads.is_empty() {
            heads.push(RowHead::default());
        }
        heads
    }

    /// Those that have rows of their own, each once, or nothing in particular.
    fn subjects<'p>(&self, parts: &'p [Part<'_>]) -> Vec<Option<&'p Subject>> {
        if !self.by_subject {
            return vec![None];
        }
        let mut subjects: Vec<Option<&Subject>> = Vec::new();
        for subject in parts.iter().flat_map(|part| &part.frame.subjects) {
            if !subjects.contains(&Some(subject)) {
                subjects.push(Some(subject));
            }
        }
        subjects
    }
}

fn cell(data: &Data<'_>, part: &Part<'_>, scenario: usize, subject: &Subject) -> Cell {
    let points = part.frame.points(scenario, subject, &part.measure);
    let Some(mean) = Mean::of(&points) else {
        return match points.tally().were_asked() {
            true => Cell::none(&points.why_none().unwrap_or_default()),
            false => Cell::default(),
        };
    };
    let text = shown_beside(mean.mean, mean.half_width, &part.measure.unit);
    let lacking = mean.lacking();
    let small = lacking.as_ref().map_or(String::new(), |some| format!(" <small>{some}</small>"));
    Cell {
        attributes: String::new(),
        html: format!("<a{}>{}</a>{small}", data.link(scenario), Esc(&text)),
        text: match lacking {
            Some(some) => format!("{text} ({some})"),
            None => text,
        },
    }
}
