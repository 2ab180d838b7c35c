//! `sojourn compare`: what became worse from one result folder to another.

use serde_json::json;
use sojourn_core::SpecError;
use sojourn_report::compare::{self, Change};

use super::open;
use crate::args::{CompareArgs, Format};
use crate::failure::{Failure, Outcome};
use crate::output::Output;
use crate::table::Records;

pub(super) fn compare(args: &CompareArgs, output: Output) -> Result<Outcome, Failure> {
    let (before, after) = (open(&args.before, output)?, open(&args.after, output)?);
    if let Some(why) = compare::unrelated(&before, &after) {
        let why = SpecError::new(why);
        return Err(Failure::input(why.allow(["two folders of one study, or of studies alike"])));
    }
    let comparison = compare::compare(&before, &after);
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
        Format::Table => output.data(&comparison.terminal())?,
        Format::Json => output.json(&json!({
            "before": comparison.before,
            "after": comparison.after,
            "paired": comparison.paired,
            "by_samples": comparison.by_samples,
            "identical": comparison.identical,
            "unpaired": comparison.unpaired,
            "changes": records(&comparison.changes).json(),
        }))?,
        Format::Csv => output.data(&records(&comparison.changes).csv())?,
    }
    let is_worse = |change: &Change| {
        let share = change.share().map_or(f64::INFINITY, f64::abs);
        change.is_worse() && share > args.tolerance.0
    };
    match comparison.changes.iter().any(is_worse) {
        true => Ok(Outcome::Failed),
        false => Ok(Outcome::Fine),
    }
}

fn records(changes: &[Change]) -> Records {
    let mut records = Records::new([
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
    ]);
    for change in changes {
        records.row([
            json!(change.judgement.name()),
            json!(change.scenario),
            json!(change.kind),
            json!(change.subject),
            json!(change.metric),
            json!(change.also.join(" ")),
            json!(change.unit),
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
        ]);
    }
    records
}
