//! The `sojourn` command: arguments and printing, nothing else.

mod args;
mod chart;
mod commands;
mod failure;
mod number;
mod output;
mod progress;
mod table;

use std::process::ExitCode;

use clap::Parser;

use args::Cli;
use failure::Failure;
use output::Output;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let output = Output { is_quiet: cli.quiet };
    match commands::execute(&cli.command, output) {
        Ok(outcome) => outcome.into(),
        // The reader of the output closed it because it has seen enough.
        Err(Failure::ClosedPipe) => ExitCode::SUCCESS,
        Err(failure) => {
            output.error(&failure);
            failure.exit_code()
        }
    }
}
