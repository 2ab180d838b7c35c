//! Random worlds, each run between kernels and simulated: every number as CSV.
//!
//!     cargo run --release -p sojourn-kernel --example worlds -- WORLDS [SEED]

#[cfg(target_os = "linux")]
fn main() -> std::io::Result<()> {
    use sojourn_kernel::validate::{Validation, csv};
    use std::io::Write;

    let number = |at| std::env::args().nth(at).and_then(|text| text.parse().ok());
    let validation = Validation {
        worlds: number(1).unwrap_or(20) as usize,
        seed: number(2).unwrap_or(1),
        jobs: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
        ..Validation::default()
    };
    let all = validation.run(|compared, done| {
        let end = compared.numbers.as_ref().err().map_or("compared", String::as_str);
        let _ = writeln!(std::io::stderr(), "{done}: world {}: {end}", compared.world.number);
    });
    std::io::stdout().write_all(csv(&all).as_bytes())
}

#[cfg(not(target_os = "linux"))]
fn main() {}
