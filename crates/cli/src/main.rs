//! The `sojourn` command with what is built in.

use std::process::ExitCode;

fn main() -> ExitCode {
    sojourn::main_with(&sojourn::Registry::default())
}
