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

/// The view's metrics, each with the one flow or queue that it is of, if it names one.
pub(super) fn table_figure(
    data: &Data<'_>,
    head: &Head<'_>,
    view: &View,
    metrics: &[(String, Option<String>)],
) -> Option<Figure> {
    let mut left_out = Vec::new();
    let parts = metrics.iter().map(|(metric, only)| {
        let measured = data.all().filter(|subject| data.has(subject, metric));
        let subjects: Vec<Subject> = measured
            .filter(|subject| is_of(data, view, only.as_deref(), subject))
            .cloned()
            .collect();
        let is_named = only.is_some() || !view.of.is_empty();
        let mut subjects = if is_named { subjects } else { once_a_station(subjects, metric) };
        if !is_named && subjects.len() > MOST_SUBJECTS {
            left_out.push(format!("the first {MOST_SUBJECTS} of {} in {metric}", subjects.len()));
            subjects.truncate(MOST_SUBJECTS);
        }
        let frame = Frame::new(data, subjects, &view.filter, None, view.split.as_deref());
        let measure = frame.measure(metric);
        (frame, measure)
    });
    let parts: Vec<(Frame<'_>, Measure)> =
        parts.filter(|(frame, _)| !frame.subjects.is_empty()).collect();
    let scenarios = parts.first().map(|(frame, _)| frame.scenarios.clone())?;
    let shape = Shape::new(data, &parts[0].0, view, &scenarios);

    let mut rows: BTreeMap<Vec<usize>, Vec<(usize, usize)>> = BTreeMap::new();
    for scenario in &scenarios {
        rows.entry(shape.key(data, *scenario))
            .or_default()
            .push((shape.column(data, *scenario), *scenario));
    }
    let several = parts.iter().flat_map(|(frame, _)| &frame.subjects).collect::<Vec<_>>();
    let several = several.iter().any(|subject| *subject != several[0]);

    let mut grid = Grid { class: "numbers grid", corner: shape.corner(data), ..Grid::default() };
    // What each column shows: the part, the value of the split, and the subject unless that is the row's.
    let mut shown: Vec<(usize, usize, Option<&Subject>)> = Vec::new();
    for (at, (frame, measure)) in parts.iter().enumerate() {
        let subjects: Vec<Option<&Subject>> = match shape.by_subject {
            true => vec![None],
            false => frame.subjects.iter().map(Some).collect(),
        };
        let values = shape.columns.iter().enumerate();
        let columns =
            values.flat_map(|(value, name)| subjects.iter().map(move |s| (value, name, *s)));
        let columns: Vec<_> = columns.collect();
        if columns.len() > MOST_COLUMNS {
            left_out.push(format!(
                "the first {MOST_COLUMNS} of {} columns of {}",
                columns.len(),
                measure.metric
            ));
        }
        let before = grid.columns.len();
        for (value, name, subject) in columns.into_iter().take(MOST_COLUMNS) {
            let label =
                subject.filter(|subject| several && subject.kind != Kind::Run).map(Subject::label);
            let words: Vec<&str> = [&name[..], label.unwrap_or("")]
                .into_iter()
                .filter(|word| !word.is_empty())
                .collect();
            grid.columns.push(Column { name: words.join(" · "), title: measure.metric.clone() });
            shown.push((at, value, subject));
        }
        let by = shape.split.map(|split| format!(", by {}", data.short_factor(split)));
        let above = measure.axis.clone() + by.as_deref().unwrap_or("");
        let added = grid.columns.len() - before;
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

    let subjects = shape.subjects(&parts);
    let all = rows.len() * subjects.len();
    let row_of = |subject: Option<&Subject>, key: &[usize], of: &[(usize, usize)]| {
        let cell = |(part, value, column): &(usize, usize, Option<&Subject>)| {
            let (frame, measure) = &parts[*part];
            let subject = column.or(subject).filter(|subject| frame.subjects.contains(subject));
            let scenario = of.iter().find(|(own, _)| own == value).map(|(_, scenario)| *scenario);
            match (scenario, subject) {
                (Some(scenario), Some(subject)) => cell(data, frame, measure, scenario, subject),
                _ => Cell::default(),
            }
        };
        Row { heads: shape.heads(data, subject, key), cells: shown.iter().map(cell).collect() }
    };
    let pairs =
        subjects.iter().flat_map(|subject| rows.iter().map(|(key, of)| (*subject, key, of)));
    grid.rows = pairs
        .map(|(subject, key, of)| row_of(subject, key, of))
        .filter(|row| row.cells.iter().any(|cell| !cell.text.is_empty()))
        .take(MOST_ROWS)
        .collect();
    if all > MOST_ROWS {
        left_out.push(format!("the first {MOST_ROWS} of {all} rows"));
    }
    if grid.rows.is_empty() {
        return None;
    }
    let mut caption = head.caption.to_owned();
    if !left_out.is_empty() {
        let left_out = format!("Only {}; sojourn show has all.", left_out.join(", "));
        caption = format!("{caption} {}", Esc(&left_out)).trim_start().to_owned();
    }
    let table = Table { name: String::new(), grid, below: String::new() };
    Some(Head { caption: &caption, ..*head }.figure(Body::Tables(vec![table])))
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
    /// These values as they are told, or an empty one.
    columns: Vec<String>,
    /// Where each value of the factor is among them.
    places: Vec<Option<usize>>,
}

impl Shape {
    fn new(data: &Data<'_>, frame: &Frame<'_>, view: &View, scenarios: &[usize]) -> Self {
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
        let (mut columns, mut places) = (vec![String::new()], Vec::new());
        if let Some(split) = split {
            let values = &data.plan.factors[split].values;
            let taken: BTreeSet<&str> = scenarios.iter().map(|s| data.value(*s, split)).collect();
            columns.clear();
            for value in values {
                let is_taken = taken.contains(&value[..]);
                places.push(is_taken.then_some(columns.len()));
                if is_taken {
                    columns.push(data.differing(split, value).to_owned());
                }
            }
        }
        let is_alone = factors.is_empty() && split.is_none() && view.split.is_none();
        Self {
            by_subject: is_alone || view.x.as_deref() == Some("flow"),
            factors,
            split,
            columns,
            places,
        }
    }

    /// A row's place among all: that of its factors' values.
    fn key(&self, data: &Data<'_>, scenario: usize) -> Vec<usize> {
        let place = |factor: &usize| {
            let value = data.value(scenario, *factor);
            data.plan.factors[*factor].values.iter().position(|own| *own == value).unwrap_or(0)
        };
        self.factors.iter().map(place).collect()
    }

    fn column(&self, data: &Data<'_>, scenario: usize) -> usize {
        let Some(split) = self.split else { return 0 };
        let value = data.value(scenario, split);
        let values = &data.plan.factors[split].values;
        values.iter().position(|own| *own == value).and_then(|at| self.places[at]).unwrap_or(0)
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
    fn subjects<'p>(&self, parts: &'p [(Frame<'_>, Measure)]) -> Vec<Option<&'p Subject>> {
        if !self.by_subject {
            return vec![None];
        }
        let mut subjects: Vec<Option<&Subject>> = Vec::new();
        for subject in parts.iter().flat_map(|(frame, _)| &frame.subjects) {
            if !subjects.contains(&Some(subject)) {
                subjects.push(Some(subject));
            }
        }
        subjects
    }
}

fn cell(
    data: &Data<'_>,
    frame: &Frame<'_>,
    measure: &Measure,
    scenario: usize,
    subject: &Subject,
) -> Cell {
    let points = frame.points(scenario, subject, measure);
    let Some(mean) = Mean::of(&points) else {
        return match points.tally().were_asked() {
            true => Cell::none(&points.why_none().unwrap_or_default()),
            false => Cell::default(),
        };
    };
    let text = shown_beside(mean.mean, mean.half_width, &measure.unit);
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
