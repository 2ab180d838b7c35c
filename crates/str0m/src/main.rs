//! The `sojourn` command with `app = "str0m"`.

use std::process::ExitCode;

use sojourn_core::SpecError;

fn main() -> Result<ExitCode, SpecError> {
    Ok(sojourn::main_with(&sojourn_str0m::registry()?))
}
