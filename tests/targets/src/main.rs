//! Prints the digest of every scenario, one to a line, and the width of a word on stderr.

use std::process::ExitCode;

fn main() -> ExitCode {
    eprintln!("words of {} bits", usize::BITS);
    for scenario in 0..sojourn_targets::SCENARIOS {
        match sojourn_targets::digest(scenario) {
            Ok(digest) => println!("{digest:016x}"),
            Err(error) => {
                eprintln!("scenario {scenario}: {error}");
                return ExitCode::FAILURE;
            }
        }
    }
    ExitCode::SUCCESS
}
