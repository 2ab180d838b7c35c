//! `sojourn run`: the runs, then the claims, then the report.

use std::num::NonZero;
use std::path::Path;

use serde::Serialize;
use serde_json::json;
use sojourn_core::Params;
use sojourn_report::terminal;
use sojourn_study::engine::Sim;
use sojourn_study::results::{Cause, FailedRun, Folder, Kind, Plan, ResultsError};
use sojourn_study::runner::{self, Options, Shard, Summary, default_folder};
use sojourn_study::{Registry, Study};

use super::{claims, count, export, program, report, resimulate};
use crate::args::{Format, RunArgs};
use crate::failure::{Failure, Outcome};
use crate::output::{Output, shell_line};
use crate::progress::Bar;
use crate::table::{Grid, csv_line, csv_row};

pub(super) fn run(args: &RunArgs, registry: &Registry, output: Output) -> Result<Outcome, Failure> {
    let study = args.study.load(registry)?;
    let plan = study.plan();
    let shard = args.shard.unwrap_or(Shard::WHOLE);
    let folder = args.out.clone().unwrap_or_else(|| default_folder(&plan, shard));
    if args.dry_run {
        dry_run(&study, &plan, shard, &folder, args.format, output)?;
        return Ok(Outcome::Fine);
    }

    if args.pcap {
        resimulate::check_packets(&study)?;
    }
    let scenarios = super::count(plan.scenarios.len(), "scenario");
    for (notice, number) in study.notices() {
        output.log(&format_args!("note: {notice} ({number} of {scenarios})"));
    }
    become_root_if_live(&plan);
    let mut options = Options::new(&folder);
    options.jobs = args.jobs;
    options.shard = shard;
    options.command = command();
    #[cfg(target_os = "linux")]
    {
        options.kernels = sojourn_kernel::used(&study);
        if let Some(consoles) = &args.consoles {
            sojourn_kernel::keep_consoles(consoles)
                .map_err(|error| Failure::writing(consoles, &error))?;
        }
    }
    output.log(&format_args!("{}: {} into {}", plan.title, amount(&plan), folder.display()));
    let bar = Bar::new(output);
    if let ([_], [scenario]) = (&plan.runs[..], &plan.scenarios[..])
        && scenario.engine.is_none()
    {
        bar.follow_simulated_run(scenario.duration_s);
    }
    attend_live_runs(&plan, &mut options, &bar);
    let summary = runner::run(&study, &options, &|progress| bar.show(progress));
    bar.finish();
    let summary = summary?;
    if args.pcap {
        export::all_packets(&study, &plan, &summary.failed, &folder)?;
    }
    finish(&plan, &summary, !args.no_report, args.jobs, args.format, output)
}

/// Shows how far live runs are. The first Ctrl-C ends the one that is under way and begins no other; what has been finished is
/// kept.
fn attend_live_runs(plan: &Plan, options: &mut Options, bar: &Bar) {
    #[cfg(target_os = "linux")]
    if plan.scenarios.iter().filter_map(|scenario| scenario.engine.as_deref()).any(is_live) {
        bar.follow_live_runs();
        options.stop = runner::Stop::watching(sojourn_live::machine::watch_interrupts());
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (plan, options, bar);
}

const LATENESS: [&str; 3] = ["is_late", "lateness_p99_ms", "stolen_share"];

/// Says which live runs kept so badly to real time that their numbers can't be trusted.
fn tell_late_runs(summary: &Summary, output: Output) {
    let Ok(results) = Folder::open_without_rows(&summary.folder) else { return };
    let Ok(mut runs) = results.run_rows(&LATENESS) else { return };
    while let Ok(Some(rows)) = runs.next() {
        let Some(row) = rows.iter().find(|row| row.kind == Kind::Run) else { continue };
        let value = |metric: &str| results.table.value(row, metric);
        if value(LATENESS[0]) == Some(1.0) {
            output.log(&format_args!(
                "run {} was late, so don't trust its numbers: 99 % of its packets within {:.3} ms, {:.1} % of the \
                 processors' time stolen; run it again on a quieter machine",
                row.run,
                value(LATENESS[1]).unwrap_or_default(),
                value(LATENESS[2]).unwrap_or_default() * 100.0
            ));
        }
    }
}

/// Live runs make networks, for which users need a namespace of their own.
pub(super) fn become_root_if_live(plan: &Plan) {
    #[cfg(target_os = "linux")]
    if plan.scenarios.iter().filter_map(|scenario| scenario.engine.as_deref()).any(is_live) {
        sojourn_live::machine::become_root();
    }
    #[cfg(not(target_os = "linux"))]
    let _ = plan;
}

#[cfg(target_os = "linux")]
fn is_live(engine: &str) -> bool {
    engine.split_whitespace().next() == Some(sojourn_live::Live::NAME)
}

/// What is printed and written when runs have ended or were joined. `jobs` threads make the report.
pub(super) fn finish(
    plan: &Plan,
    summary: &Summary,
    has_report: bool,
    jobs: Option<NonZero<usize>>,
    format: Format,
    output: Output,
) -> Result<Outcome, Failure> {
    let named = |run: u32| {
        let planned = &plan.runs[run as usize];
        let label = plan.label(planned.scenario);
        let comma = if label.is_empty() { "" } else { ", " };
        format!("run {run} ({label}{comma}seed {})", planned.seed)
    };
    let causes = Cause::all(&summary.failed);
    for Cause { problem, runs } in causes.iter().take(MOST_CAUSES) {
        output.error(&format_args!("{} ended without a result: {problem}", first_of(runs, &named)));
    }
    if let Some(more) = causes.get(MOST_CAUSES..).filter(|more| !more.is_empty()) {
        let runs = more.iter().map(|cause| cause.runs.len()).sum();
        output.error(&format_args!(
            "{} ended without a result for {} more: machine.json lists all",
            count(runs, "run"),
            count(more.len(), "cause")
        ));
    }
    for FailedRun { run, problem } in &summary.troubled {
        output.log(&format_args!(
            "{} was measured, and is kept; when it was over: {problem}",
            named(*run)
        ));
    }
    if plan.scenarios.iter().any(|scenario| scenario.engine.is_some()) {
        tell_late_runs(summary, output);
    }
    let page = match &summary.claims {
        Some(_) if has_report => Some(report::write(&summary.folder, jobs, output)?),
        _ => None,
    };
    let repeat = shell_line(command().iter().map(String::as_str));
    match format {
        Format::Table => output.text(&text(plan, summary, page.as_deref(), &repeat)?)?,
        Format::Json => output.json(&json!({
            "title": plan.title,
            "folder": summary.folder,
            "report": page,
            "repeat": repeat,
            "runs": {
                "total": summary.progress.total,
                "done": summary.progress.done,
                "resumed": summary.progress.resumed,
                "failed": summary.failed,
                "troubled": summary.troubled,
            },
            "wall_s": summary.wall_s,
            "claims": summary.claims.as_ref().map(|report| &report.claims),
        }))?,
        Format::Csv => {
            let report = summary.claims.clone().unwrap_or_default();
            output.data(&claims::records(&report).csv())?;
            output.log(&format_args!("results in {}", summary.folder.display()));
        }
    }
    let failing = summary.claims.as_ref().map_or(0, claims::failing);
    if failing > 0 {
        output.log(&format_args!("{} not held, hence exit code 1", count(failing, "claim")));
    }
    let missing = summary.progress.total - summary.progress.done;
    if missing > 0 {
        output.log(&format_args!("{} no result, hence exit code 1", have(missing)));
    }
    match failing > 0 || missing > 0 {
        true => Ok(Outcome::Failed),
        false => Ok(Outcome::Fine),
    }
}

/// `1 run has`, `2 runs have`.
fn have(runs: usize) -> String {
    format!("{} {}", count(runs, "run"), if runs == 1 { "has" } else { "have" })
}

/// The most causes for which runs ended without a result that are listed.
const MOST_CAUSES: usize = 12;

/// The first three of some runs, and how many more there are.
fn first_of(runs: &[u32], named: &dyn Fn(u32) -> String) -> String {
    let mut names: Vec<String> = runs.iter().take(3).map(|run| named(*run)).collect();
    if runs.len() > names.len() {
        names.push(format!("and {} more", count(runs.len() - names.len(), "run")));
    }
    names.join(", ")
}

fn text(
    plan: &Plan,
    summary: &Summary,
    page: Option<&Path>,
    repeat: &str,
) -> Result<String, Failure> {
    let progress = summary.progress;
    let mut text = String::new();
    match &summary.claims {
        Some(report) if report.claims.is_empty() => {
            let missing = summary.failed.iter().map(|failed| failed.run).collect();
            let results = Folder::open_known(&summary.folder, plan.clone(), missing)?;
            // Of many scenarios it is long, so there is no second one.
            text = terminal::metrics_of_folder(&results, terminal::MOST)?;
            text.truncate(text.trim_end().len());
            text.push('\n');
        }
        Some(report) => {
            let all = format!("'sojourn show {} --all'", summary.folder.display());
            text.push_str(&claims::text(report, &all));
        }
        None => {}
    }
    if !text.is_empty() {
        text.push('\n');
    }
    let mut facts = Grid::of_pairs();
    let earlier = match progress.resumed {
        0 => String::new(),
        resumed => format!(", {resumed} of them by an earlier start"),
    };
    facts.row([
        "runs",
        &format!(
            "{} of {} done{earlier}, in {:.1} s",
            progress.done, progress.total, summary.wall_s
        ),
    ]);
    facts.row(["results", &summary.folder.display().to_string()]);
    match page {
        Some(page) => facts.row(["report", &page.display().to_string()]),
        None if summary.claims.is_none() => {
            facts.row([
                "next",
                "sojourn join DIR..., when the other shards are done: claims are checked then",
            ]);
        }
        None => {}
    }
    facts.row(["repeat", repeat]);
    text.push_str(&facts.to_string());
    Ok(text)
}

fn dry_run(
    study: &Study,
    plan: &Plan,
    shard: Shard,
    folder: &Path,
    format: Format,
    output: Output,
) -> Result<(), Failure> {
    let done = match Folder::new(folder).done() {
        Ok((digest, done)) if digest == plan.digest => done,
        Err(error @ (ResultsError::Damaged { .. } | ResultsError::Unlisted { .. })) => {
            return Err(error.into());
        }
        _ => Vec::new(),
    };
    let mine: Vec<u32> = (0..plan.runs.len() as u32).filter(|run| shard.has(*run)).collect();
    let is_done = |run: &u32| done.binary_search(run).is_ok();
    let virtual_s: f64 = mine
        .iter()
        .filter(|run| !is_done(run))
        .map(|run| plan.scenarios[plan.runs[*run as usize].scenario as usize].duration_s)
        .sum();
    match format {
        Format::Table => {
            let rows = || {
                mine.iter().map(|run| {
                    let planned = &plan.runs[*run as usize];
                    let state = if is_done(run) { "done" } else { "" };
                    let label = plan.label(planned.scenario);
                    vec![run.to_string(), planned.seed.to_string(), state.to_owned(), label]
                })
            };
            let runs_done = mine.iter().filter(|run| is_done(run)).count();
            let engines = engines(plan).map_or_else(String::new, |names| format!("{names}\n"));
            output.stream_text(&mut |out| {
                Grid::new([">run", ">seed", "", "scenario"]).write(&rows, out)?;
                writeln!(
                    out,
                    "\n{}\n{engines}{} to run, {runs_done} done already, {virtual_s:.0} s of virtual time\n{}, {}\nresults would go to {}",
                    amount(plan),
                    count(mine.len() - runs_done, "run"),
                    count(study.claims.len(), "claim"),
                    count(study.views.len(), "view"),
                    folder.display()
                )
            })
        }
        Format::Json => {
            output.json(&DryRun { folder, done, virtual_s, shard: shard.to_string(), plan })
        }
        Format::Csv => output.stream(&mut |out| {
            let factors = plan.factors.iter().map(|factor| factor.name.clone());
            let fixed = ["run", "id", "seed", "done"].map(str::to_owned);
            out.write_all(csv_line(fixed.into_iter().chain(factors)).as_bytes())?;
            for run in &mine {
                let planned = &plan.runs[*run as usize];
                let values = &plan.scenarios[planned.scenario as usize].factors;
                let mut row =
                    vec![json!(run), json!(planned.id), json!(planned.seed), json!(is_done(run))];
                row.extend(values.iter().map(|value| json!(value)));
                out.write_all(csv_row(&row).as_bytes())?;
            }
            Ok(())
        }),
    }
}

/// A dry run as JSON.
#[derive(Serialize)]
struct DryRun<'a> {
    folder: &'a Path,
    /// Runs that have a result.
    done: Vec<u32>,
    virtual_s: f64,
    shard: String,
    plan: &'a Plan,
}

/// The engines of the scenarios, unless all have the usual one: `engines: sim, fluid version=1`.
fn engines(plan: &Plan) -> Option<String> {
    let mut names: Vec<&str> = Vec::new();
    for scenario in plan.scenarios.iter() {
        let name = scenario.engine.as_deref().unwrap_or(Sim::NAME);
        if !names.contains(&name) {
            names.push(name);
        }
    }
    (names != [Sim::NAME]).then(|| format!("engines: {}", names.join(", ")))
}

/// `9 scenarios × 5 seeds = 45 runs`.
pub(super) fn amount(plan: &Plan) -> String {
    format!(
        "{} × {} = {}",
        count(plan.scenarios.len(), "scenario"),
        count(plan.seeds.len(), "seed"),
        count(plan.runs.len(), "run")
    )
}

/// The command as given.
fn command() -> Vec<String> {
    let rest = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned());
    std::iter::once(program()).chain(rest).collect()
}
