//! The `sojourn` command with what is built in.

use std::process::ExitCode;

/// A run makes and drops many small vectors: this takes less of its time than the allocators of glibc and musl do.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    sojourn::main_with(&sojourn::Registry::default())
}
