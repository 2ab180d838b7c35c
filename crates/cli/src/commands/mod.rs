//! A file per verb.

mod check;
mod claims;
mod compare;
mod doctor;
mod export;
mod fluid;
mod join;
mod kernel;
mod list;
mod live;
mod man;
mod model;
mod new;
mod replay;
mod report;
mod resimulate;
mod run;
mod show;
mod trace;
mod validate;

use std::borrow::Cow;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use clap::CommandFactory;

use sojourn_study::Registry;
use sojourn_study::results::{Folder, Plan, PlannedRun, Results};

use crate::args::{Cli, Command};
use crate::failure::{Failure, Outcome};
use crate::output::Output;

/// What `sojourn_file::schema::json` made; a test compares the two.
const SCHEMA: &str = include_str!("../../../../schema/study.schema.json");

pub(crate) fn execute(
    command: &Command,
    registry: &Registry,
    output: Output,
) -> Result<Outcome, Failure> {
    match command {
        Command::Run(args) => return run::run(args, registry, output),
        Command::Check(args) => check::check(args, registry, output)?,
        Command::Join(args) => return join::join(args, output),
        Command::Report(args) => report::report(args, output)?,
        Command::Show(args) => show::show(args, output)?,
        Command::Compare(args) => return compare::compare(args, output),
        Command::Validate(args) => return validate::validate(args, registry, output),
        Command::Live(command) => return live::live(command, registry, output),
        Command::Export(args) => export::export(args, registry, output)?,
        Command::Replay(args) => replay::replay(args, registry, output)?,
        Command::List(args) => list::list(args, registry, output)?,
        Command::Model(args) => model::model(args, output)?,
        Command::Fluid(command) => fluid::fluid(command, registry, output)?,
        Command::New(args) => new::new(args, registry, output)?,
        Command::Trace(command) => trace::trace(command, output)?,
        Command::Schema => output.data(SCHEMA)?,
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(*shell, &mut Cli::command(), program(), &mut script);
            output.data(&String::from_utf8_lossy(&script))?;
        }
        Command::Man(args) => man::man(args, output)?,
        Command::Kernel(command) => kernel::kernel(command, output)?,
        Command::Doctor(args) => doctor::doctor(args, registry, output)?,
    }
    Ok(Outcome::Fine)
}

/// What this program is called: `sojourn`, unless it is one with parts of its own.
fn program() -> String {
    let path = std::env::args_os().next().map(PathBuf::from);
    let name = path.as_deref().and_then(Path::file_stem).map(OsStr::to_string_lossy);
    name.map_or_else(|| "sojourn".to_owned(), Cow::into_owned)
}

/// Opens a result folder, and warns if damage to it would not be noticed.
fn open(folder: &Path, output: Output) -> Result<Results, Failure> {
    warned(Folder::open(folder)?, output)
}

/// The same without its rows.
fn open_without_rows(folder: &Path, output: Output) -> Result<Results, Failure> {
    warned(Folder::open_without_rows(folder)?, output)
}

fn warned(results: Results, output: Output) -> Result<Results, Failure> {
    warn_of_no_checksums(&Folder::new(&results.folder), output);
    Ok(results)
}

fn warn_of_no_checksums(folder: &Folder, output: Output) {
    let path: &Path = folder.as_ref();
    if path.join("plan.json").exists() && !folder.has_checksums() {
        output.log(&format_args!(
            "{}: an older version wrote this folder, without checksums: damage to its files would \
             not be noticed",
            path.display()
        ));
    }
}

/// `45 runs`, `1 run`.
fn count(number: usize, word: &str) -> String {
    format!("{number} {word}{}", if number == 1 { "" } else { "s" })
}

/// A run that has a result, by its number or the beginning of its name.
fn find_run(results: &Results, name: &str) -> Result<u32, Failure> {
    let run = named_run(&results.plan, name)?;
    match results.missing.contains(&run) {
        true => Err(Failure::Input(format!("run {run} is not done yet"))),
        false => Ok(run),
    }
}

/// So many decimal digits may begin a name; fewer are a number. No study has a run of a longer number.
const NO_NUMBER: usize = 8;

fn named_run(plan: &Plan, name: &str) -> Result<u32, Failure> {
    let runs = &plan.runs;
    let wrong = |problem: String| {
        Err(Failure::Input(format!(
            "{problem} (allowed: 0 to {}, or the beginning of a name of 32 digits)",
            runs.len().saturating_sub(1)
        )))
    };
    let is_number = name.bytes().all(|c| c.is_ascii_digit()) && name.len() < NO_NUMBER;
    if let (Ok(number), true) = (name.parse::<u32>(), is_number) {
        return match (number as usize) < runs.len() {
            true => Ok(number),
            false => wrong(format!("there is no run {number}")),
        };
    }
    let is_named = |run: &PlannedRun| run.id.to_string().starts_with(name);
    let mut named = (0..).zip(runs.iter()).filter(|(_, run)| is_named(run));
    let found: Option<(u32, _)> = if name.is_empty() { None } else { named.next() };
    match (found, named.next()) {
        (None, _) => wrong(format!("no run is called '{name}'")),
        (Some((run, _)), None) => Ok(run),
        (Some(_), Some(_)) => wrong(format!("several runs' names begin with '{name}'")),
    }
}
