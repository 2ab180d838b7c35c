//! `sojourn kernel`: kernels that can be the ends of flows.

use crate::args::{KernelBuildArgs, KernelCommand};
use crate::failure::Failure;
use crate::output::Output;

pub(super) fn kernel(command: &KernelCommand, output: Output) -> Result<(), Failure> {
    match command {
        KernelCommand::Build(args) => build(args, output),
    }
}

#[cfg(target_os = "linux")]
fn build(args: &KernelBuildArgs, output: Output) -> Result<(), Failure> {
    let mut last = String::new();
    let mut told = 0;
    let build = sojourn_kernel::Build { source: args.source.clone(), name: args.name.clone() };
    let built = build.run(|what, files| {
        let tenths = files.map_or(0, |(done, all)| done * 10 / all.max(1));
        if last != what || tenths > told {
            let share = files.map(|_| format!(", {} %", tenths * 10)).unwrap_or_default();
            output.log(&format_args!("{what}{share}"));
            (last, told) = (what.to_owned(), tenths);
        }
    });
    let built = built.map_err(|fault| Failure::Machine(fault.to_string()))?;
    output.data(&format!("{}\n", built.display()))
}

#[cfg(not(target_os = "linux"))]
fn build(_: &KernelBuildArgs, _: Output) -> Result<(), Failure> {
    Err(Failure::Machine("kernels are built and run on Linux only".to_owned()))
}

/// The kernel that guests have, or what is missing.
#[cfg(target_os = "linux")]
pub(super) fn state() -> String {
    match sojourn_kernel::usual_kernel() {
        Ok(path) => path.display().to_string(),
        Err(fault) => {
            let missing = sojourn_kernel::missing_tools();
            let tools = match missing.is_empty() {
                true => String::new(),
                false => format!(" (which needs {})", missing.join(", ")),
            };
            format!("{fault}{tools}")
        }
    }
}

#[cfg(not(target_os = "linux"))]
pub(super) fn state() -> String {
    "only on Linux".to_owned()
}
