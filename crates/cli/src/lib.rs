//! The `sojourn` command: arguments and printing, nothing else.
//!
//! It is a library, so that a crate of its own makes the same command with its own parts:
//!
//! ```no_run
//! # use std::process::ExitCode;
//! fn main() -> ExitCode {
//!     let mut registry = sojourn::Registry::default();
//!     // registry.add_queue::<MyQueue>().expect("its name is free");
//!     sojourn::main_with(&registry)
//! }
//! ```

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

pub use sojourn_study::Registry;

use args::Cli;
use failure::Failure;
use output::Output;

/// Does what the arguments of this process ask for. Studies may name what is in `registry`.
pub fn main_with(registry: &Registry) -> ExitCode {
    let cli = Cli::parse();
    let output = Output { is_quiet: cli.quiet };
    let registry = registry_of(registry);
    match commands::execute(&cli.command, &registry, output) {
        Ok(outcome) => outcome.into(),
        // The reader of the output closed it because it has seen enough.
        Err(Failure::ClosedPipe) => ExitCode::SUCCESS,
        Err(failure) => {
            output.error(&failure);
            failure.exit_code()
        }
    }
}

/// The same registry, with every engine that this system can have.
fn registry_of(registry: &Registry) -> Registry {
    #[cfg_attr(not(target_os = "linux"), expect(unused_mut, reason = "only Linux has more"))]
    let mut all = sojourn_study::engine::with_built_in(registry);
    #[cfg(target_os = "linux")]
    {
        // Adding it fails only if a crate has one of its own by that name.
        let _ = sojourn_study::engine::add::<sojourn_live::Live>(&mut all);
        let _ = sojourn_study::engine::add::<sojourn_kernel::Kernels>(&mut all);
        let _ = all.add_application::<sojourn_kernel::Kernel>();
        let _ = all.add_queue::<sojourn_kernel::Router>();
    }
    all
}
