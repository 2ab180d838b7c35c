//! A file per verb.

mod check;
mod claims;
mod doctor;
mod join;
mod list;
mod new;
mod report;
mod run;
mod show;
mod trace;

use clap::CommandFactory;

use crate::args::{Cli, Command};
use crate::failure::{Failure, Outcome};
use crate::output::Output;

pub(crate) fn execute(command: &Command, output: Output) -> Result<Outcome, Failure> {
    match command {
        Command::Run(args) => return run::run(args, output),
        Command::Check(args) => check::check(args, output)?,
        Command::Join(args) => return join::join(args, output),
        Command::Report(args) => report::report(args, output)?,
        Command::Show(args) => show::show(args, output)?,
        Command::List(args) => list::list(args, output)?,
        Command::New(args) => new::new(args, output)?,
        Command::Trace(command) => trace::trace(command, output)?,
        Command::Schema => output.data(&sojourn_study::schema::json())?,
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(*shell, &mut Cli::command(), "sojourn", &mut script);
            output.data(&String::from_utf8_lossy(&script))?;
        }
        Command::Doctor(args) => doctor::doctor(args, output)?,
    }
    Ok(Outcome::Fine)
}

/// `45 runs`, `1 run`.
fn count(number: usize, word: &str) -> String {
    format!("{number} {word}{}", if number == 1 { "" } else { "s" })
}
