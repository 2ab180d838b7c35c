//! `sojourn compare`: what became worse from one result folder to another.

use serde::Serialize;
use serde_json::{Value, json};
use sojourn_core::SpecError;
use sojourn_report::compare::{self, Change, Changes};

use super::open_without_rows;
use crate::args::{CompareArgs, Format};
use crate::failure::{Failure, Outcome};
use crate::output::Output;
use crate::table::Rows;

pub(super) fn compare(args: &CompareArgs, output: Output) -> Result<Outcome, Failure> {
    let before = open_without_rows(&args.before, output)?;
    let after = open_without_rows(&args.after, output)?;
    if let Some(why) = compare::unrelated(&before, &after) {
        let why = SpecError::new(why);
        return Err(Failure::input(why.allow(["two folders of one study, or of studies alike"])));
    }
    let comparison = compare::compare_folders(&before, &after)?;
    if comparison.paired == 0 && comparison.by_samples == 0 {
        return Err(Failure::Input(format!(
            "{} and {} have no scenario with runs in common: no two with the same values of the factors that both have",
            args.before.display(),
            args.after.display()
        )));
    }
    if let Some(path) = &args.html {
        output.to(Some(path), comparison.html().as_bytes())?;
    }
    match args.format {
        Format::Table => output.text(&comparison.terminal())?,
        Format::Json => output.json(&Whole {
            before: &comparison.before,
            after: &comparison.after,
            paired: comparison.paired,
            by_samples: comparison.by_samples,
            identical: comparison.identical,
            alone: comparison.alone,
            unpaired: &comparison.unpaired,
            changes: rows(&comparison.changes),
        })?,
        Format::Csv => rows(&comparison.changes).print_csv(output)?,
    }
    let is_worse = |change: Change| {
        let share = change.share().map_or(f64::INFINITY, f64::abs);
        change.is_worse() && share > args.tolerance.0
    };
    match comparison.changes.iter().any(is_worse) {
        true => Ok(Outcome::Failed),
        false => Ok(Outcome::Fine),
    }
}

/// A row for each number, made when it is printed.
fn rows(changes: &Changes) -> Rows<'_, impl Iterator<Item = Vec<Value>> + Clone + use<'_>> {
    let columns = vec![
        "judgement",
        "scenario",
        "kind",
        "name",
        "metric",
        "also",
        "unit",
        "before",
        "before_counted",
        "after",
        "after_counted",
        "difference",
        "half_width",
        "share",
        "pairs",
        "p",
        "corrected_p",
    ];
    let row = |change: Change| {
        vec![
            json!(change.judgement.name()),
            json!(&*change.scenario),
            json!(change.kind),
            json!(&*change.subject),
            json!(change.metric),
            json!(change.also.join(" ")),
            json!(&*change.unit),
            json!(change.before),
            json!(change.before_counted),
            json!(change.after),
            json!(change.after_counted),
            json!(change.difference),
            json!(change.half_width),
            json!(change.share()),
            json!(change.pairs),
            json!(change.p),
            json!(change.corrected_p),
        ]
    };
    Rows::new(columns, changes.iter().map(row))
}

/// A comparison as JSON.
#[derive(Serialize)]
struct Whole<'a, R> {
    before: &'a str,
    after: &'a str,
    paired: usize,
    by_samples: usize,
    identical: usize,
    alone: usize,
    unpaired: &'a [String],
    changes: R,
}
