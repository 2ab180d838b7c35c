//! Which claim holds for which value of a factor, as a table.

use std::fmt::Write;

use sojourn_study::results::{Check, ClaimResult, Verdict, View};

use super::panels::{Body, Figure, Head};
use crate::data::Data;
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
    let mut rows = String::new();
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
        let _ = write!(
            rows,
            "<tr><th scope=\"row\"><b>{}</b> {}</th>",
            Esc(&claim.id),
            Esc(&claim.text)
        );
        cells.iter().for_each(|checks| write_cell(&mut rows, claim, checks));
        rows += "</tr>";
    }
    if rows.is_empty() {
        return None;
    }
    let mut out = String::from(
        "<div class=\"wide\"><table class=\"verdicts\"><thead><tr><th scope=\"col\">claim</th>",
    );
    for value in &data.plan.factors[factor].values {
        let _ = write!(out, "<th scope=\"col\">{}</th>", Esc(data.differing(factor, value)));
    }
    let _ = write!(out, "</tr></thead><tbody>{rows}</tbody></table></div>");
    Some(head.figure(Body::Html(out)))
}

/// The verdict on all `checks` together, and on how many of them if they differ.
fn write_cell(out: &mut String, claim: &ClaimResult, checks: &[&Check]) {
    let of = |verdict: Verdict| checks.iter().filter(|check| check.verdict == verdict).count();
    let (failed, open) = (of(Verdict::Fails), of(Verdict::Untestable));
    let (class, sign, word, some) = match (checks.len(), failed, open) {
        (0, ..) => {
            *out += "<td></td>";
            return;
        }
        (_, 1.., _) => ("failed", "✗", "not held", failed),
        (_, 0, 1..) => ("open", "?", "untestable", open),
        _ => ("held", "✓", "held", checks.len()),
    };
    let share = match some < checks.len() {
        true => format!(" <small>{some} of {}</small>", checks.len()),
        false => String::new(),
    };
    let _ = write!(
        out,
        "<td><a class=\"badge {class}\" href=\"#{}\" aria-label=\"{}: {word}\">{sign}</a>{share}</td>",
        claim_anchor(&claim.id),
        Esc(&claim.id),
    );
}
