//! Which claim holds for which value of a factor, as a table.

use sojourn_study::results::{Check, ClaimResult, Verdict, View};

use super::panels::{Body, Figure, Head, Table};
use crate::data::Data;
use crate::grid::{Cell, Column, Grid, Row, RowHead};
use crate::markup::Esc;
use crate::page::answer::claim_anchor;

/// A row for each claim that was tested for single values of the factor, a column for each value.
pub(super) fn verdict_figure(data: &Data<'_>, head: &Head<'_>, view: &View) -> Option<Figure> {
    let claims = &data.results.claims.as_ref()?.claims;
    let name = view.x.as_deref()?;
    let factor = data.plan.factors.iter().position(|factor| factor.name == name)?;
    let is_shown = |check: &&Check| {
        let scenario = data.plan.scenarios.get(check.scenario as usize);
        scenario.is_some_and(|scenario| data.plan.is_selected(scenario, &view.filter))
    };
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

/// The verdict on all `checks` together, and on how many of them if they differ.
fn cell(claim: &ClaimResult, checks: &[&Check]) -> Cell {
    let of = |verdict: Verdict| checks.iter().filter(|check| check.verdict == verdict).count();
    let (failed, open) = (of(Verdict::Fails), of(Verdict::Untestable));
    let (class, sign, word, some) = match (checks.len(), failed, open) {
        (0, ..) => return Cell::default(),
        (_, 1.., _) => ("failed", "✗", "not held", failed),
        (_, 0, 1..) => ("open", "?", "untestable", open),
        _ => ("held", "✓", "held", checks.len()),
    };
    let share = (some < checks.len()).then(|| format!(" {some} of {}", checks.len()));
    let small =
        share.as_ref().map_or(String::new(), |share| format!(" <small>{}</small>", share.trim()));
    Cell {
        attributes: String::new(),
        html: format!(
            "<a class=\"badge {class}\" href=\"#{}\" aria-label=\"{}: {word}\">{sign}</a>{small}",
            claim_anchor(&claim.id),
            Esc(&claim.id),
        ),
        text: sign.to_owned() + share.as_deref().unwrap_or(""),
    }
}
