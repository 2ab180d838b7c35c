//! Factors against each other: a cell for each scenario, coloured by a metric.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use serde_json::{Value, json};
use sojourn_study::metrics::more_is_better;
use sojourn_study::results::{Kind, ViewKind};

use super::columns::{USUAL, resolve};
use crate::data::{Data, Mean, Points, Subject};
use crate::grid::{Cell, Column, Grid, Row, RowHead};
use crate::markup::Esc;
use crate::names;
use crate::number::{as_printed, shown};
use crate::worth::floor;

/// The first of these that was measured is shown at first.
const FIRST: &[(Kind, &str)] = &[
    (Kind::Queue, "sojourn_p95_ms"),
    (Kind::Flow, "rtt_p95_ms"),
    (Kind::Flow, "owd_p95_ms"),
    (Kind::Flow, "goodput_mbps"),
    (Kind::Run, "goodput_sum_mbps"),
];

/// Above this many cells times subjects times metrics, only the metrics of [`USUAL`] are offered.
const MOST_NUMBERS: usize = 200_000;

/// Sequential, in steps of equal lightness, light to dark.
const RAMP: [(f64, f64, f64); 5] = [
    (255.0, 250.0, 209.0),
    (187.0, 225.0, 190.0),
    (84.0, 178.0, 190.0),
    (38.0, 104.0, 163.0),
    (14.0, 38.0, 92.0),
];

pub(crate) fn write(out: &mut String, data: &Data<'_>) {
    let scenarios: Vec<usize> = (0..data.plan.scenarios.len()).collect();
    let Some((subject, metric)) = first_choice(data) else {
        return;
    };
    if scenarios.len() < 2 {
        return;
    }
    *out += "<section id=\"matrix\"><h2>The matrix</h2><p class=\"caption\">A cell for each scenario: \
             the mean over its seeds. A cell leads to its runs.</p>";
    controls(out, data, &subject, metric);
    let (grid, below) = table(data, &scenarios, &subject, metric, None, "matrix live");
    *out += &(grid.html() + &below + "</section>");
}

/// A matrix of some scenarios, rows and columns chosen, or `columns` by the factor given; and what stands below it.
pub(crate) fn table(
    data: &Data<'_>,
    scenarios: &[usize],
    subject: &Subject,
    metric: &str,
    columns: Option<usize>,
    class: &'static str,
) -> (Grid, String) {
    let varying: Vec<usize> = data
        .varying
        .iter()
        .copied()
        .filter(|factor| {
            scenarios.iter().any(|s| data.value(*s, *factor) != data.value(scenarios[0], *factor))
        })
        .collect();
    // Columns of a factor that follows from another one would be mostly empty.
    let is_led = |factor: usize| {
        let leads = |other: usize| data.follows(factor, other) && !data.follows(other, factor);
        varying.iter().any(|other| leads(*other))
    };
    let column_factor = columns.or_else(|| {
        let is_short = |factor: &usize| data.plan.factors[*factor].values.len() <= 8;
        let few = varying.iter().copied().filter(is_short).filter(|factor| !is_led(*factor));
        // Of several that go together, the one that the study names first.
        few.rev().max_by_key(|factor| data.plan.factors[*factor].values.len())
    });
    let column_values: Vec<&str> = match column_factor {
        Some(factor) => distinct(scenarios.iter().map(|s| data.value(*s, factor))),
        None => vec![""],
    };
    // What follows from the column would only make a row of its own for each.
    let mut without: Vec<usize> = column_factor.into_iter().collect();
    without.extend(
        column_factor
            .iter()
            .flat_map(|column| varying.iter().filter(|other| data.follows(**other, *column))),
    );
    // Nor does a row say what all have in common.
    without.extend(data.varying.iter().filter(|factor| !varying.contains(factor)));
    let labels: Vec<String> =
        scenarios.iter().map(|scenario| data.label_without(*scenario, &without)).collect();
    let rows: Vec<&String> = distinct(labels.iter());
    let mut points: Vec<Points> = Vec::new();
    points.resize_with(data.plan.scenarios.len(), Points::default);
    for scenario in scenarios {
        points[*scenario] = data.points(*scenario, subject, metric);
    }
    let means: Vec<Option<Mean>> = points.iter().map(Mean::of).collect();
    let largest = means.iter().flatten().map(|mean| mean.mean.abs()).fold(0.0, f64::max);
    let (factor, unit) = names::stepped(data.plan, metric, largest);
    let values: Vec<Option<f64>> =
        means.iter().map(|mean| mean.map(|mean| mean.mean * factor)).collect();
    let known = || values.iter().flatten().copied().map(as_printed);
    let low = known().fold(f64::INFINITY, f64::min);
    let high = known().fold(f64::NEG_INFINITY, f64::max);
    let span = (high - low).max(least_span(data, metric, high / factor) * factor);

    let said: Vec<usize> = varying
        .iter()
        .copied()
        .filter(|factor| !without.contains(factor))
        .filter(|factor| !varying.iter().any(|one| one < factor && data.follows(*factor, *one)))
        .collect();
    let mut cells: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for (scenario, label) in scenarios.iter().zip(&labels) {
        let column = column_factor.map_or("", |factor| data.value(*scenario, factor));
        cells.entry((label, column)).or_insert(*scenario);
    }
    let cell = |row: &str, column: &str| match cells.get(&(row, column)).copied() {
        Some(scenario) => {
            let counted = counted(&points[scenario]);
            cell(data, scenario, Mark { value: values[scenario], unit, counted }, (low, span))
        }
        None => Cell::none(""),
    };
    // A value alone, if the corner says of which factor.
    let told = |row: &String| {
        let scenario = scenarios.iter().zip(&labels).find(|(_, label)| *label == row);
        match (&said[..], scenario) {
            ([factor], Some((scenario, _))) => {
                data.differing(*factor, data.value(*scenario, *factor)).to_owned()
            }
            _ => row.clone(),
        }
    };
    let row = |row: &String| Row {
        heads: vec![RowHead { text: told(row), ..RowHead::default() }],
        cells: column_values.iter().map(|column| cell(row, column)).collect(),
    };
    let corner: Vec<&str> = said.iter().map(|factor| data.short_factor(*factor)).collect();
    let column = |value: &&str| Column { name: (*value).to_owned(), ..Column::default() };
    let grid = Grid {
        class,
        caption: format!("{} of {}", names::axis_in(metric, unit), subject.label()),
        corner: vec![corner.join(" · ")],
        above: column_factor
            .map(|factor| (data.plan.factors[factor].name.clone(), column_values.len()))
            .into_iter()
            .collect(),
        columns: column_values.iter().map(column).collect(),
        rows: rows.iter().map(|name| row(name)).collect(),
    };
    let direction = match more_is_better(metric) {
        Some(true) => "more is better",
        Some(false) => "less is better",
        None => "",
    };
    let ramp = format!(
        "<p class=\"ramp\"><span class=\"low\">{}</span><i style=\"background-size:{:.0}% 100%\"></i><span \
         class=\"high\">{}</span><span class=\"better\">{direction}</span></p>",
        if low <= high { shown(low, unit) } else { "–".into() },
        // Only the part of the ramp that the cells use.
        (100.0 * span / (high - low).max(span / 50.0)).clamp(100.0, 5000.0),
        if low <= high { shown(high, unit) } else { "–".into() },
    );
    (grid, ramp)
}

/// The scale of colours spans at least this many times the smallest difference worth a decision.
/// Otherwise it would show 99.1 % and 99.2 % as far apart as 40 % and 99 %.
const LEAST_STEPS: f64 = 5.0;

/// The least distance between the lightest and the darkest colour, in the metric's own unit.
fn least_span(data: &Data<'_>, metric: &str, largest: f64) -> f64 {
    LEAST_STEPS * floor(metric, names::unit(data.plan, metric), largest)
}

struct Mark<'a> {
    value: Option<f64>,
    unit: &'a str,
    counted: Option<String>,
}

fn cell(
    data: &Data<'_>,
    scenario: usize,
    Mark { value, unit, counted }: Mark<'_>,
    (low, span): (f64, f64),
) -> Cell {
    let done = data.done[scenario].len();
    let planned = data.planned[scenario];
    let (mut small, mut missing) = (String::new(), Vec::new());
    if done < planned {
        let runs = format!("{done} of {planned} runs");
        let _ = write!(small, "<small>{runs}</small>");
        missing.push(runs);
    }
    if let Some(counted) = counted {
        let _ = write!(small, "<small class=\"counted\">{counted}</small>");
        missing.push(counted);
    }
    let (style, text) = match value {
        Some(value) => (paint((as_printed(value) - low) / span), shown(value, unit)),
        None => (String::new(), "–".to_owned()),
    };
    let look =
        if style.is_empty() { " class=\"none\"".to_owned() } else { format!(" style=\"{style}\"") };
    Cell {
        attributes: format!(" data-s=\"{scenario}\"{look}"),
        html: format!("<a{}>{}</a>{small}", data.link(scenario), Esc(&text)),
        text: match missing.is_empty() {
            true => text,
            false => format!("{text} ({})", missing.join(", ")),
        },
    }
}

/// `over 10 of 20`, beside a mean or in its place.
fn counted(points: &Points) -> Option<String> {
    match points.is_out_of_reach() {
        true => points.why_none(),
        false => points.counted().lacking().map(|counted| format!("over {counted}")),
    }
}

/// A background colour and a text colour that is readable on it.
fn paint(share: f64) -> String {
    let at = share.clamp(0.0, 1.0) * (RAMP.len() - 1) as f64;
    let below = (at.floor() as usize).min(RAMP.len() - 2);
    let part = at - below as f64;
    let (a, b) = (RAMP[below], RAMP[below + 1]);
    let mix = |a: f64, b: f64| (a + (b - a) * part).round();
    coloured((mix(a.0, b.0), mix(a.1, b.1), mix(a.2, b.2)))
}

/// This background, and the text colour that is readable on it.
pub(crate) fn coloured((r, g, b): (f64, f64, f64)) -> String {
    let linear = |c: f64| {
        let c = c / 255.0;
        if c <= 0.04045 { c / 12.92 } else { ((c + 0.055) / 1.055).powf(2.4) }
    };
    let light = 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
    // Contrast with black is (L + 0.05)/0.05, with white 1.05/(L + 0.05): equal at 0.179.
    let text = if light > 0.179 { "#000" } else { "#fff" };
    format!("background:rgb({r} {g} {b});color:{text}")
}

fn controls(out: &mut String, data: &Data<'_>, subject: &Subject, metric: &str) {
    *out += "<p class=\"controls script\"><label>Of <select id=\"matrix-subject\">";
    for (at, one) in data.subjects.iter().enumerate() {
        let _ = write!(
            out,
            "<option value=\"{at}\"{}>{}</option>",
            if one == subject { " selected" } else { "" },
            Esc(&subject_label(one))
        );
    }
    let _ = write!(
        out,
        "</select></label> <label>Coloured by <select id=\"matrix-metric\"><option>{}</option>\
         </select></label></p>",
        Esc(metric)
    );
}

fn subject_label(subject: &Subject) -> String {
    match subject.kind {
        Kind::Run => "the whole run".into(),
        kind => format!("{} {}", names::kind(kind), subject.name),
    }
}

/// The metric of the first view, so that the page is about one thing; otherwise the first of
/// [`USUAL`] that was measured.
fn first_choice<'a>(data: &Data<'a>) -> Option<(Subject, &'a str)> {
    let columns = &data.table.metrics;
    let wanted = data
        .plan
        .views
        .iter()
        .flat_map(|view| view.y.iter().map(move |y| (view, resolve(data, y))));
    let found = wanted.filter_map(|(view, (name, of))| {
        // A view of a delay shows all its samples, but a cell only one number.
        let tail = format!("{name}_p95_ms");
        let metric = columns.iter().find(|column| **column == name || **column == tail)?;
        let named = |subject: &&Subject| match &of {
            Some(of) => subject.name == *of,
            None => view.of.is_empty() || view.of.contains(&subject.name),
        };
        let subject =
            data.subjects.iter().filter(named).find(|subject| data.has(subject, metric))?;
        Some((subject.clone(), metric.as_str()))
    });
    let usual = FIRST.iter().filter_map(|(kind, metric)| {
        let subject = data.of_kind(*kind).find(|subject| data.has(subject, metric))?;
        Some((subject.clone(), *metric))
    });
    let mut choices = found.chain(usual).peekable();
    let first = choices.peek().cloned();
    choices.find(|(_, metric)| !is_heat_map(data, metric)).or(first)
}

/// A view of the study shows the metric in every scenario as the matrix would.
fn is_heat_map(data: &Data<'_>, metric: &str) -> bool {
    let whole = data.plan.views.iter().filter(|view| view.filter.is_empty());
    let mut maps = whole.filter(|view| view.kind == ViewKind::Heatmap);
    maps.any(|view| view.y.iter().any(|y| metric.starts_with(&resolve(data, y).0)))
}

/// Every mean, for the script: by subject, then metric, then scenario.
pub(crate) fn numbers(data: &Data<'_>) -> Value {
    let scenarios = data.plan.scenarios.len();
    let all: usize = data.subjects.iter().map(|s| data.metrics_of(s).count() * scenarios).sum();
    let subjects: Vec<Value> = data
        .subjects
        .iter()
        .map(|subject| {
            let metrics: Vec<Value> = data
                .metrics_of(subject)
                .filter(|metric| all <= MOST_NUMBERS || USUAL.contains(metric))
                .map(|metric| {
                    let of = |scenario| {
                        let points = data.points(scenario, subject, metric);
                        (Mean::of(&points).map(|mean| mean.mean), counted(&points))
                    };
                    let (means, counted): (Vec<Option<f64>>, Vec<Option<String>>) =
                        (0..scenarios).map(of).unzip();
                    let largest = means.iter().flatten().copied().map(f64::abs).fold(0.0, f64::max);
                    let (factor, unit) = names::stepped(data.plan, metric, largest);
                    let span = rounded(least_span(data, metric, largest) * factor);
                    let means: Vec<Option<f64>> =
                        means.iter().map(|mean| mean.map(|mean| rounded(mean * factor))).collect();
                    let better = match more_is_better(metric) {
                        Some(true) => "more is better",
                        Some(false) => "less is better",
                        None => "",
                    };
                    let axis = names::axis_in(metric, unit);
                    match counted.iter().any(Option::is_some) {
                        true => json!([metric, axis, better, means, span, counted]),
                        false => json!([metric, axis, better, means, span]),
                    }
                })
                .collect();
            json!({ "label": subject.label(), "metrics": metrics })
        })
        .collect();
    json!(subjects)
}

/// Five significant digits, more than a cell shows.
fn rounded(value: f64) -> f64 {
    format!("{value:.4e}").parse().unwrap_or(value)
}

/// Each once, in the order in which they come first.
fn distinct<T: Copy + Ord>(values: impl Iterator<Item = T>) -> Vec<T> {
    let mut seen = BTreeSet::new();
    values.filter(|value| seen.insert(*value)).collect()
}
