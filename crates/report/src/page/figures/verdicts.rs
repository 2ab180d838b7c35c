//! Which claim holds for which value of a factor, as a table.

use sojourn_study::results::{Check, ClaimResult, Verdict, View};

use super::panels::{Body, Figure, Head, Table};
use crate::data::Data;
use crate::grid::{Cell, Column, Grid, Row, RowHead};
use crate::markup::Esc;
use crate::number::estimate;
use crate::page::answer::{claim_anchor, wanted};

/// A row for each claim that was tested for single values of the factor, a column for each value.
pub(super) fn verdict_figure(data: &Data<'_>, head: &Head<'_>, view: &View) -> Option<Figure> {
    let claims = &data.results.claims.as_ref()?.claims;
    let Some(name) = view.x.as_deref() else { return claims_figure(data, head, view, claims) };
    let factor = data.plan.factors.iter().position(|factor| factor.name == name)?;
    let is_shown = |check: &&Check| is_selected(data, view, check);
    // A check that compares two values of the factor is of neither.
    let is_of = |check: &&Check, value: &str| {
        let scenario = check.scenario as usize;
        data.value(scenario, factor) == value && check.label.contains(&format!("{name} = {value}"))
    };
    let mut rows = Vec::new();
    for claim in claims {
        let checks: Vec<&Check> = claim.checks.iter().filter(is_shown).collect();
        let cells: Vec<Vec<&Check>> = data.plan.factors[factor]
            .values
            .iter()
            .map(|value| checks.iter().copied().filter(|check| is_of(check, value)).collect())
            .collect();
        if cells.iter().all(Vec::is_empty) {
            continue;
        }
        rows.push(Row {
            heads: vec![RowHead { strong: claim.id.clone(), text: claim.text.clone() }],
            cells: cells.iter().map(|checks| cell(claim, checks)).collect(),
        });
    }
    if rows.is_empty() {
        return None;
    }
    let column = |value: &String| Column {
        name: data.differing(factor, value).to_owned(),
        ..Column::default()
    };
    let grid = Grid {
        class: "verdicts",
        corner: vec!["claim".to_owned()],
        columns: data.plan.factors[factor].values.iter().map(column).collect(),
        rows,
        ..Grid::default()
    };
    let table = Table { name: String::new(), grid, below: String::new() };
    Some(head.figure(Body::Tables(vec![table])))
}

fn is_selected(data: &Data<'_>, view: &View, check: &Check) -> bool {
    let scenario = data.plan.scenarios.get(check.scenario as usize);
    scenario.is_some_and(|scenario| data.plan.is_selected(scenario, &view.filter))
}

/// A row for each claim: how many of its bounds are met, and the one that is farthest off or nearest to failing.
fn claims_figure(
    data: &Data<'_>,
    head: &Head<'_>,
    view: &View,
    claims: &[ClaimResult],
) -> Option<Figure> {
    let text = |text: String| Cell { html: Esc(&text).to_string(), text, ..Cell::default() };
    let row = |claim: &ClaimResult| {
        let checks = &claim.checks;
        let held = checks.iter().filter(|check| check.verdict == Verdict::Holds).count();
        let telling = claim.telling();
        let measured = telling.and_then(|check| check.value.as_ref());
        let measured = measured
            .map_or_else(String::new, |value| estimate(value.mean, value.half_width, &value.unit));
        Row {
            heads: vec![RowHead { strong: claim.id.clone(), text: claim.text.clone() }],
            cells: vec![
                badge(claim, claim.verdict),
                text(format!("{held} of {}", checks.len())),
                text(measured),
                text(telling.map_or_else(String::new, wanted)),
            ],
        }
    };
    let is_shown = |claim: &&ClaimResult| {
        view.filter.is_empty() || claim.checks.iter().any(|check| is_selected(data, view, check))
    };
    let rows: Vec<Row> = claims.iter().filter(is_shown).map(row).collect();
    if rows.is_empty() {
        return None;
    }
    let columns = ["verdict", "bounds met", "measured", "claimed"];
    let columns = columns.map(|name| Column { name: name.to_owned(), ..Column::default() });
    let grid = Grid {
        class: "verdicts",
        corner: vec!["claim".to_owned()],
        columns: columns.into(),
        rows,
        ..Grid::default()
    };
    let table = Table { name: String::new(), grid, below: String::new() };
    Some(head.figure(Body::Tables(vec![table])))
}

/// The verdict on all `checks` together, and on how many of them if they differ.
fn cell(claim: &ClaimResult, checks: &[&Check]) -> Cell {
    let of = |verdict: Verdict| checks.iter().filter(|check| check.verdict == verdict).count();
    let (failed, open) = (of(Verdict::Fails), of(Verdict::Untestable));
    let (verdict, some) = match (checks.len(), failed, open) {
        (0, ..) => return Cell::default(),
        (_, 1.., _) => (Verdict::Fails, failed),
        (_, 0, 1..) => (Verdict::Untestable, open),
        _ => (Verdict::Holds, checks.len()),
    };
    let mut cell = badge(claim, verdict);
    if some < checks.len() {
        let share = format!("{some} of {}", checks.len());
        cell.html += &format!(" <small>{share}</small>");
        cell.text += &format!(" {share}");
    }
    cell
}

/// A sign that leads to the claim.
fn badge(claim: &ClaimResult, verdict: Verdict) -> Cell {
    let (class, sign, word) = match verdict {
        Verdict::Holds => ("held", "✓", "held"),
        Verdict::Fails => ("failed", "✗", "not held"),
        Verdict::Untestable => ("open", "?", "untestable"),
    };
    let html = format!(
        "<a class=\"badge {class}\" href=\"#{}\" aria-label=\"{}: {word}\">{sign}</a>",
        claim_anchor(&claim.id),
        Esc(&claim.id),
    );
    Cell { attributes: String::new(), html, text: sign.to_owned() }
}
