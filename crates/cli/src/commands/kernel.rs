//! `sojourn kernel`: kernels that can be the ends of flows.

#[cfg(target_os = "linux")]
use std::path::PathBuf;

use crate::args::{Format, KernelBuildArgs, KernelCommand, ValidateArgs};
use crate::failure::{Failure, Outcome};
use crate::output::Output;

pub(super) fn kernel(command: &KernelCommand, output: Output) -> Result<(), Failure> {
    match command {
        KernelCommand::Build(args) => build(args, output),
        KernelCommand::List { format } => list(*format, output),
        KernelCommand::Remove { name } => remove(name),
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

#[cfg(target_os = "linux")]
fn list(format: Format, output: Output) -> Result<(), Failure> {
    use serde_json::json;

    use crate::table::{Grid, Records, print};

    let all = sojourn_kernel::built().map_err(|fault| Failure::Machine(fault.to_string()))?;
    let mut grid = Grid::new(["name", "release", "digest", ">MB", ">MB of its build", "path"]);
    let mut records = Records::new(["name", "release", "digest", "bytes", "build_bytes", "path"]);
    for kernel in &all {
        let release = kernel.release.as_deref();
        let megabytes = |bytes: u64| format!("{:.1}", bytes as f64 / 1e6);
        grid.row([
            &kernel.name,
            release.unwrap_or("-"),
            &kernel.digest,
            &megabytes(kernel.bytes),
            &megabytes(kernel.build_bytes),
            &kernel.path.display().to_string(),
        ]);
        records.row([
            json!(kernel.name),
            json!(release),
            json!(kernel.digest),
            json!(kernel.bytes),
            json!(kernel.build_bytes),
            json!(kernel.path),
        ]);
    }
    print(output, format, || grid.to_string(), || records)
}

#[cfg(target_os = "linux")]
fn remove(name: &str) -> Result<(), Failure> {
    sojourn_kernel::remove(name).map_err(|fault| match fault {
        sojourn_kernel::Fault::Refused(problem) if problem.starts_with("there is no kernel") => {
            Failure::Input(problem)
        }
        other => Failure::Machine(other.to_string()),
    })
}

#[cfg(not(target_os = "linux"))]
fn list(_: Format, _: Output) -> Result<(), Failure> {
    Err(Failure::Machine("kernels are built and run on Linux only".to_owned()))
}

#[cfg(not(target_os = "linux"))]
fn remove(_: &str) -> Result<(), Failure> {
    Err(Failure::Machine("kernels are built and run on Linux only".to_owned()))
}

#[cfg(not(target_os = "linux"))]
fn build(_: &KernelBuildArgs, _: Output) -> Result<(), Failure> {
    Err(Failure::Machine("kernels are built and run on Linux only".to_owned()))
}

/// Random worlds between kernels and simulated.
#[cfg(target_os = "linux")]
pub(super) fn validate(
    kernel: &str,
    args: &ValidateArgs,
    output: Output,
) -> Result<Outcome, Failure> {
    use std::path::Path;

    use serde_json::json;
    use sojourn_kernel::validate::{self, Compared, Validation};

    use crate::table::{Grid, Records};

    /// Comparisons for one world that is made simpler.
    const TRIES: usize = 12;
    let worlds = &args.worlds;
    let absent = |fault: sojourn_kernel::Fault| Failure::Machine(fault.to_string());
    let kernel = Some(kernel.to_owned()).filter(|kernel| !kernel.is_empty());
    let path = sojourn_kernel::kernel(kernel.as_deref()).map_err(absent)?;
    if let Some(problem) = worlds.cca.iter().find_map(|cca| sojourn_cca::Config::parse(cca).err()) {
        return Err(Failure::Input(problem.to_string()));
    }
    let validation = Validation {
        kernel,
        names: worlds.names.clone(),
        sysctl: worlds.sysctl.clone(),
        controls: worlds.cca.clone(),
        worlds: worlds.worlds as usize,
        seed: worlds.seed,
        repeats: worlds.repeats,
        jobs: worlds.jobs,
    };
    let folder = args.out.clone().unwrap_or_else(|| Path::new("results").join("worlds"));
    let all = validation.run(&folder, |own: &Compared, done| {
        let end = match (&own.numbers, own.worst()) {
            (Err(problem), _) => problem.clone(),
            (_, None) => "all inside".to_owned(),
            (_, Some(n)) => {
                format!("{} {} {:.1} bounds off", n.kind.name(), n.of, n.distance())
            }
        };
        let (number, what) = (own.world.number, own.world.brief());
        output
            .log(&format_args!("{done} of {} done: world {number}, {what}: {end}", worlds.worlds));
    });
    let all = all.map_err(Failure::Input)?;
    let mut worst: Vec<&Compared> = all.iter().filter(|own| own.worst().is_some()).collect();
    let distance = |own: &Compared| own.worst().map_or(0.0, |number| number.distance());
    worst.sort_by(|one, other| distance(other).total_cmp(&distance(one)));
    let mut kept = Vec::new();
    for own in worst.iter().take(worlds.shrink) {
        output.log(&format_args!("making world {} simpler", own.world.number));
        let smallest = validation.shrink(own, TRIES);
        let path = validation.keep(&folder, &smallest).map_err(Failure::Machine)?;
        let number = smallest.worst().map_or(String::new(), |n| {
            let (kernel, simulated) = (n.kernel.mean, n.simulated.mean);
            format!("{} {}: kernel {kernel:.3}, simulated {simulated:.3}", n.kind.name(), n.of)
        });
        kept.push(format!("{}: {}; {number}", path.display(), smallest.world.brief()));
    }
    let page = folder.join("index.html");
    std::fs::write(&page, validate::html(&all, &path.display().to_string(), &kept))
        .map_err(|why| Failure::Machine(format!("{}: {why}", page.display())))?;
    let lines = validate::lines(&all);
    let (inside, of) = lines.first().map_or((0, 0), |line| line.cells[0]);
    match args.format {
        Format::Csv => output.data(&validate::csv(&all))?,
        Format::Json => {
            let mut records = Records::new(["region", "worlds", "number", "inside", "of"]);
            for line in &lines {
                let kinds = ["all"].into_iter().chain(validate::Kind::ALL.map(|kind| kind.name()));
                for (kind, (inside, of)) in kinds.zip(&line.cells) {
                    records.row([
                        json!(line.name),
                        json!(line.worlds),
                        json!(kind),
                        json!(inside),
                        json!(of),
                    ]);
                }
            }
            output.json(&records.json())?;
        }
        Format::Table => {
            let names = [
                "in",
                ">worlds",
                ">all",
                ">goodput sum",
                ">goodput",
                ">srtt",
                ">delay",
                ">retransmits",
            ];
            let mut grid = Grid::new(names);
            for line in &lines {
                let cells = line.cells.iter().map(|(inside, of)| format!("{inside}/{of}"));
                grid.row([line.name.clone(), line.worlds.to_string()].into_iter().chain(cells));
            }
            let failed = all.iter().filter(|own| own.numbers.is_err()).count();
            let mut text = format!(
                "{grid}\n{inside} of {of} numbers inside ({:.1} %), {failed} worlds failed\n{}\n",
                100.0 * inside as f64 / of.max(1) as f64,
                page.display()
            );
            kept.iter().for_each(|line| text += &format!("{line}\n"));
            output.text(&text)?;
        }
    }
    Ok(match of > 0 && inside * 10 >= of * 9 {
        true => Outcome::Fine,
        false => Outcome::Failed,
    })
}

#[cfg(not(target_os = "linux"))]
pub(super) fn validate(_: &str, _: &ValidateArgs, _: Output) -> Result<Outcome, Failure> {
    Err(Failure::Machine("kernels are built and run on Linux only".to_owned()))
}

/// The kernel that guests have, or what is missing.
#[cfg(target_os = "linux")]
pub(super) fn state() -> String {
    let described = |path: PathBuf| {
        let release = sojourn_kernel::release(&path)?;
        Ok(format!("{} (Linux {release})", path.display()))
    };
    match sojourn_kernel::kernel(None).and_then(described) {
        Ok(text) => text,
        Err(fault @ sojourn_kernel::Fault::Foreign { .. }) => fault.to_string(),
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
