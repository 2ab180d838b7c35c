//! `sojourn check`: everything that can be wrong with a study, without running it.

use serde_json::json;
use sojourn_study::{Overrides, Registry, Study};

use super::{count, run};
use crate::args::{CheckArgs, Format};
use crate::failure::{Failure, told};
use crate::output::Output;
use crate::table::Records;

pub(super) fn check(args: &CheckArgs, registry: &Registry, output: Output) -> Result<(), Failure> {
    let overrides = Overrides { set: args.set.clone(), ..Overrides::default() };
    let mut records =
        Records::new(["study", "scenarios", "seeds", "runs", "claims", "views", "digest"]);
    let mut text = String::new();
    let mut problems = Vec::new();
    for path in &args.study {
        match Study::load_with(registry, path, &overrides) {
            Ok(study) => {
                let plan = study.plan();
                records.row([
                    json!(plan.path),
                    json!(plan.scenarios.len()),
                    json!(plan.seeds.len()),
                    json!(plan.runs.len()),
                    json!(study.claims.len()),
                    json!(study.views.len()),
                    json!(plan.digest),
                ]);
                text.push_str(&format!(
                    "{}: {}, {}, {}\n",
                    plan.path,
                    run::amount(&plan),
                    count(study.claims.len(), "claim"),
                    count(study.views.len(), "view")
                ));
                let scenarios = count(plan.scenarios.len(), "scenario");
                for (notice, number) in study.notices() {
                    output.log(&format_args!("note: {notice} ({number} of {scenarios})"));
                }
            }
            Err(problem) => problems.push(told(&problem)),
        }
    }
    match args.format {
        Format::Table => output.text(&text)?,
        Format::Json => output.json(&records.json())?,
        Format::Csv => output.data(&records.csv())?,
    }
    match problems.is_empty() {
        true => Ok(()),
        false => Err(Failure::Input(problems.join("\nerror: "))),
    }
}
