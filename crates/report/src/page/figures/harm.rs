//! Who hurts whom: the harm of Ware et al. (Beyond Jain's Fairness Index, HotNets 2019) that each value of a
//! factor does to each value of another one, against solo runs.

use sojourn_metrics::stats::{self, Better, harm};
use sojourn_study::metrics::more_is_better;
use sojourn_study::results::View;

use super::panels::{Body, Figure, Head, Table};
use crate::data::{Data, Points, Subject};
use crate::grid::{Cell, Column, Grid, Row, RowHead};
use crate::names;
use crate::page::matrix;

/// A table for each combination of the other factors: a row for each victim, a column for each attacker.
pub(super) fn harm_figure(
    data: &Data<'_>,
    head: &Head<'_>,
    view: &View,
    subject: &Subject,
    metric: &str,
) -> Option<Figure> {
    let factor = |name: &str| data.plan.factors.iter().position(|factor| factor.name == name);
    let attacker = factor(view.x.as_deref()?)?;
    let victim = view.split.as_deref().map(factor)?;
    let better = if more_is_better(metric)? { Better::More } else { Better::Less };
    let is_alone =
        |scenario: usize| data.plan.is_selected(&data.plan.scenarios[scenario], &view.solo);
    let solo: Vec<usize> = view.solo.iter().filter_map(|one| factor(&one.factor)).collect();
    let of_pair = |factor: usize| Some(factor) == victim || factor == attacker;
    let others: Vec<usize> =
        (0..data.plan.factors.len()).filter(|one| !of_pair(*one) && !solo.contains(one)).collect();
    let shown: Vec<usize> = (0..data.plan.scenarios.len())
        .filter(|s| data.plan.is_selected(&data.plan.scenarios[*s], &view.filter))
        .collect();
    let alike = |a: usize, b: usize| {
        others.iter().chain(&victim).all(|one| data.value(a, *one) == data.value(b, *one))
    };
    let without: Vec<usize> = [attacker].into_iter().chain(victim).collect();
    let mut panels: Vec<(String, Vec<Pair>)> = Vec::new();
    for scenario in shown.iter().copied().filter(|scenario| !is_alone(*scenario)) {
        let alone = (0..data.plan.scenarios.len())
            .find(|other| is_alone(*other) && alike(*other, scenario));
        let Some(alone) = alone else { continue };
        let (alone, beside) =
            (data.points(alone, subject, metric), data.points(scenario, subject, metric));
        let harms = by_seed(&alone, &beside, better);
        let cell = Pair {
            scenario,
            victim: victim.map_or(String::new(), |one| data.value(scenario, one).to_owned()),
            attacker: data.value(scenario, attacker).to_owned(),
            harm: stats::mean(&harms),
            seeds: harms.len(),
            alone: alone.len(),
            why_none: beside.why_none().filter(|_| beside.is_empty()),
        };
        let panel = data.label_without(scenario, &without);
        match panels.iter_mut().find(|(name, _)| *name == panel) {
            Some((_, cells)) => cells.push(cell),
            None => panels.push((panel, vec![cell])),
        }
    }
    if panels.is_empty() {
        return None;
    }
    let several = panels.len() > 1;
    let tables = panels.into_iter().map(|(name, cells)| Table {
        name: if several { name } else { String::new() },
        grid: grid(data, (attacker, victim), subject, metric, &cells),
        below: String::new(),
    });
    let caption = format!(
        "{}{}0 is no harm, 1 the worst, below 0 a benefit. ▲: more than the one that is hurt does to \
         itself, which is Ware et al.’s bound for what may be deployed beside it, or nothing of it came to an end. −∞: what it had alone, such as a stall, is gone in a run.",
        head.caption,
        if head.caption.is_empty() { "" } else { " " }
    );
    Some(Head { caption: &caption, ..*head }.figure(Body::Tables(tables.collect())))
}

struct Pair {
    scenario: usize,
    victim: String,
    attacker: String,
    harm: Option<f64>,
    /// How many seeds it is the mean of.
    seeds: usize,
    /// How many the solo run has.
    alone: usize,
    /// How many samples were asked for, if none came: `0 of 6`.
    why_none: Option<String>,
}

/// Of the seeds that both have.
fn by_seed(alone: &Points, beside: &Points, better: Better) -> Vec<f64> {
    let of_seed = |seed: u64| alone.iter().find(|point| point.seed == seed);
    beside
        .iter()
        .filter_map(|point| Some(harm(of_seed(point.seed)?.value, point.value, better)))
        .collect()
}

/// A difference of harm that is worth a mark.
const WORTH: f64 = 0.02;

fn grid(
    data: &Data<'_>,
    (attacker, victim): (usize, Option<usize>),
    subject: &Subject,
    metric: &str,
    pairs: &[Pair],
) -> Grid {
    let in_order = |factor: usize, has: &dyn Fn(&Pair, &str) -> bool| -> Vec<String> {
        let values = data.plan.factors[factor].values.iter();
        values.filter(|value| pairs.iter().any(|pair| has(pair, value))).cloned().collect()
    };
    let columns = in_order(attacker, &|pair, value| pair.attacker == *value);
    let rows = match victim {
        Some(victim) => in_order(victim, &|pair, value| pair.victim == *value),
        None => vec![String::new()],
    };
    let at = |row: &str, column: &str| {
        pairs.iter().find(|pair| pair.victim == row && pair.attacker == column)
    };
    let row = |row: &String| {
        let named = victim.map_or(subject.label(), |victim| data.differing(victim, row));
        let own = at(row, row).and_then(|pair| pair.harm);
        let cell = |column: &String| match at(row, column).map(|pair| (pair, pair.harm)) {
            Some((pair, Some(harm))) => {
                let above = own.is_some_and(|own| harm > own.max(0.0) + WORTH);
                let value = two_decimals(harm) + if above { " ▲" } else { "" };
                let some = (pair.seeds < pair.alone)
                    .then(|| format!("{} of {} seeds", pair.seeds, pair.alone));
                let small = some.as_ref().map_or(String::new(), |n| format!("<small>{n}</small>"));
                Cell {
                    attributes: format!(" style=\"{}\"", paint(harm)),
                    html: format!("<a{}>{value}</a>{small}", data.link(pair.scenario)),
                    text: some.map_or(value.clone(), |some| format!("{value} ({some})")),
                }
            }
            // What others take an end from is hurt more than what is late.
            Some((pair, None)) => match &pair.why_none {
                Some(why) if pair.alone > 0 => Cell::none(&format!("{why} ▲")),
                _ => Cell::none(""),
            },
            None => Cell::none(""),
        };
        Row {
            heads: vec![RowHead { text: named.to_owned(), ..RowHead::default() }],
            cells: columns.iter().map(cell).collect(),
        }
    };
    let column = |value: &String| Column {
        name: data.differing(attacker, value).to_owned(),
        ..Column::default()
    };
    let whose = victim.map_or(subject.label(), |victim| &data.plan.factors[victim].name);
    Grid {
        class: "matrix harm",
        caption: format!("Harm to {} of {}", names::title(metric), subject.label()),
        corner: vec![format!("who is hurt: {whose}")],
        above: vec![(format!("hurt by: {}", data.plan.factors[attacker].name), columns.len())],
        columns: columns.iter().map(column).collect(),
        rows: rows.iter().map(row).collect(),
    }
}

fn two_decimals(harm: f64) -> String {
    if harm.is_infinite() {
        return "−∞".to_owned();
    }
    let text = format!("{harm:.2}");
    if text == "-0.00" { "0.00".to_owned() } else { text.replace('-', "−") }
}

/// White is no harm, dark the worst; a benefit is green. The text can be read on it.
fn paint(harm: f64) -> String {
    let (full, share) = match harm < 0.0 {
        true => ((0.0, 130.0, 100.0), (-harm).min(1.0) * 0.7),
        false => ((140.0, 40.0, 0.0), harm.min(1.0)),
    };
    background(full, share)
}

fn background((r, g, b): (f64, f64, f64), share: f64) -> String {
    let mix = |to: f64| (255.0 + (to - 255.0) * share).round();
    matrix::coloured((mix(r), mix(g), mix(b)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_can_be_read_on_every_colour() {
        let linear = |c: f64| {
            let c = c / 255.0;
            if c <= 0.04045 { c / 12.92 } else { ((c + 0.055) / 1.055).powf(2.4) }
        };
        for step in -100..=100 {
            let style = paint(f64::from(step) / 100.0);
            let inside = style.split_once("rgb(").unwrap().1.split_once(')').unwrap().0;
            let rgb: Vec<f64> = inside.split(' ').map(|part| part.parse().unwrap()).collect();
            let light = 0.2126 * linear(rgb[0]) + 0.7152 * linear(rgb[1]) + 0.0722 * linear(rgb[2]);
            let contrast = match style.ends_with("#fff") {
                true => 1.05 / (light + 0.05),
                false => (light + 0.05) / 0.05,
            };
            assert!(contrast >= 4.5, "{step}: {contrast}");
        }
    }

    #[test]
    fn nothing_has_no_sign() {
        assert_eq!(two_decimals(-0.001), "0.00");
        assert_eq!(two_decimals(-0.25), "−0.25");
        assert_eq!(two_decimals(f64::NEG_INFINITY), "−∞");
    }
}
