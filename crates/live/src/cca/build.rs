//! From the source of a control to the kernel: clang compiles it, and bpftool loads it.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::{Own, tools};
use crate::sys;

const SOURCE: &str = include_str!("../../bpf/bbr.bpf.c");
const HEADER: &str = include_str!("../../bpf/kernel.h");

/// A number of the sources (FNV-1a, 32 bits).
pub(super) const VERSION: u32 = hash(HEADER.as_bytes(), hash(SOURCE.as_bytes(), 0x811c_9dc5));

const fn hash(bytes: &[u8], mut hash: u32) -> u32 {
    let mut at = 0;
    while at < bytes.len() {
        hash = (hash ^ bytes[at] as u32).wrapping_mul(0x0100_0193);
        at += 1;
    }
    hash
}

/// A control that is compiled, in a folder that nobody else may write to, so that nobody else decides what the kernel is given. It is
/// gone with this.
#[derive(Debug)]
pub(super) struct Program {
    folder: PathBuf,
    bpftool: PathBuf,
}

/// Compiles a control for the running kernel.
///
/// # Errors
/// What is missing, and what to type; or what the compiler says.
pub(super) fn build(own: &Own) -> Result<Program, String> {
    let missing = [tools::clang().err(), tools::bpftool().err(), tools::types().err()];
    let missing: Vec<String> = missing.into_iter().flatten().collect();
    if !missing.is_empty() {
        return Err(missing.join("; "));
    }
    let (clang, bpftool) = (tools::clang()?, tools::bpftool()?);
    let rate = place_of_rate_sample(&bpftool)?;
    let temporary = std::env::temp_dir();
    remove_left(&temporary);
    let folder = temporary.join(format!("{FOLDER}{}", std::process::id()));
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    DirBuilder::new().mode(0o700).create(&folder).map_err(failed)?;
    let program = Program { folder: folder.clone(), bpftool };
    fs::write(folder.join("kernel.h"), HEADER).map_err(failed)?;
    fs::write(folder.join("bbr.bpf.c"), SOURCE).map_err(failed)?;
    let mut command = Command::new(&clang);
    command.args(["-target", "bpf", "-mcpu=v3", "-O2", "-g", "-Wall", "-Wno-unused-function"]);
    command.arg(format!("-DNAME={}", own.kernel_name));
    command.arg(format!("-DSTATE={}", own.state_name()));
    command.arg(format!("-DRATE={rate}"));
    command.args(own.defines);
    command.args(["-c", "bbr.bpf.c", "-o", OBJECT]).current_dir(&folder);
    run(&mut command, "clang")?;
    let has_object = fs::metadata(folder.join(OBJECT)).is_ok_and(|object| object.len() > 0);
    match has_object {
        true => Ok(program),
        false => Err(format!("{} says that all is well, and has written nothing", clang.display())),
    }
}

const OBJECT: &str = "bbr.o";

/// How the name of a folder begins; the number of its process follows.
const FOLDER: &str = "sojourn-cca-";

/// Removes the folders of calls that were killed: those of this user whose processes are gone.
fn remove_left(temporary: &Path) {
    let (user, _) = sys::user_and_group();
    for entry in fs::read_dir(temporary).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let process = name.to_str().and_then(|name| name.strip_prefix(FOLDER)?.parse().ok());
        let Some(process) = process else { continue };
        // Of a link, this is what the link is.
        let is_own = entry.metadata().is_ok_and(|own| own.is_dir() && own.uid() == user);
        if is_own && !is_running(process) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// The number of this process was another's, too.
fn is_running(process: u32) -> bool {
    process != std::process::id() && Path::new("/proc").join(process.to_string()).exists()
}

impl Program {
    /// Gives it to the kernel.
    ///
    /// # Errors
    /// What bpftool says.
    pub(super) fn register(&self) -> Result<(), String> {
        let mut command = Command::new(&self.bpftool);
        command.args(["struct_ops", "register"]).arg(self.folder.join(OBJECT));
        run(&mut command, "bpftool").map(drop)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// What it prints.
fn run(command: &mut Command, name: &str) -> Result<Vec<u8>, String> {
    let output =
        command.stdin(Stdio::null()).output().map_err(|error| format!("{name}: {error}"))?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    Err(format!("{name} ended with {}: {}", output.status, end_of(&output.stderr)))
}

/// The last lines of what a program complains about.
fn end_of(complaints: &[u8]) -> String {
    const LINES: usize = 12;
    let text = String::from_utf8_lossy(complaints);
    let lines: Vec<&str> = text.lines().map(str::trim_end).filter(|own| !own.is_empty()).collect();
    lines[lines.len().saturating_sub(LINES)..].join("\n")
}

/// Which argument of `cong_control` is the rate sample.
fn place_of_rate_sample(bpftool: &Path) -> Result<usize, String> {
    let mut command = Command::new(bpftool);
    command.args(["btf", "dump", "file", tools::TYPES, "format", "c"]);
    let printed = run(&mut command, "bpftool")?;
    if printed.is_empty() {
        return Err(format!(
            "{} prints nothing of {}: bpftool btf dump file {1} format c",
            bpftool.display(),
            tools::TYPES
        ));
    }
    let mut lines = printed.split(|byte| *byte == b'\n');
    lines.find_map(|line| place_in(&String::from_utf8_lossy(line))).ok_or_else(|| {
        format!(
            "bpftool doesn't find 'cong_control' in {}: it is too old for this kernel, or the kernel's TCP is another",
            tools::TYPES
        )
    })
}

/// The same from a line of C, if it is that of `cong_control`.
fn place_in(line: &str) -> Option<usize> {
    let (_, arguments) = line.split_once("(*cong_control)(")?;
    arguments.split(',').position(|argument| argument.contains("struct rate_sample"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::cca::CONTROLS;

    #[test]
    fn the_rate_sample_is_found_before_and_since_linux_6_10() {
        let before = "\tvoid (*cong_control)(struct sock *, const struct rate_sample *);";
        let since = "\tvoid (*cong_control)(struct sock *, u32, int, const struct rate_sample *);";
        assert_eq!(place_in(before), Some(1));
        assert_eq!(place_in(since), Some(3));
        assert_eq!(place_in("\tvoid (*cong_avoid)(struct sock *, u32, u32);"), None);
    }

    /// The number that the source gives a name; times are in microseconds.
    fn defined(name: &str) -> u64 {
        let begin = format!("#define {name} ");
        let text = SOURCE.lines().find_map(|line| line.strip_prefix(&begin)).expect(name);
        let factors = text.trim_matches(['(', ')']).split(" * ");
        factors
            .map(|own| if own == "SECOND" { 1_000_000 } else { own.parse().expect(name) })
            .product()
    }

    #[test]
    fn parameters_are_the_defaults_of_the_simulated_controls() {
        use sojourn_core::Params;
        let params = sojourn_cca::bbr_n_plus::Config::PARAMS;
        // What the program knows by other names, or needs no number for.
        let others = ["mode", "pacing_margin", "longterm_when_app_limited"];
        for param in params.iter().filter(|own| !others.contains(&own.name)) {
            let written = param.default;
            let value = match written.strip_suffix("ms") {
                Some(ms) => ms.parse::<u64>().expect(written) * 1000,
                None => match written.strip_suffix('s') {
                    Some(s) => s.parse::<u64>().expect(written) * 1_000_000,
                    None => {
                        // Gains and shares are in percent, counts are whole.
                        let value: f64 = written.parse().expect(written);
                        let is_count = param.name.ends_with("_rounds")
                            || param.name.ends_with("_cnt")
                            || ["min_pipe_cwnd", "extra_acked_window"].contains(&param.name);
                        if is_count { value as u64 } else { (value * 100.0).round() as u64 }
                    }
                },
            };
            let name = param.name.to_uppercase();
            assert_eq!(defined(&name), value, "{name}");
        }
        assert_eq!(defined("PACED_PERCENT"), 99);
    }

    #[test]
    fn folders_of_processes_that_are_gone_are_removed() {
        let temporary = tempfile::tempdir().expect("there is room");
        let at = |name: &str| temporary.path().join(name);
        let (gone, init, own) = (u32::MAX, 1, std::process::id());
        let names = [gone, init, own].map(|process| format!("{FOLDER}{process}"));
        for name in names.iter().map(String::as_str).chain(["sojourn-cca-x", "other-4294967295"]) {
            fs::create_dir(at(name)).expect("there is room");
            fs::write(at(name).join(OBJECT), "").expect("there is room");
        }
        std::os::unix::fs::symlink(at(&names[1]), at("sojourn-cca-4294967294")).expect("it can");
        remove_left(temporary.path());
        assert_eq!(names.map(|name| at(&name).exists()), [false, true, false]);
        assert!(at("sojourn-cca-x").exists() && at("other-4294967295").exists());
        assert!(at("sojourn-cca-4294967294").exists(), "a link is nobody's folder");
    }

    #[test]
    fn names_are_as_long_as_the_kernel_allows() {
        for own in &CONTROLS {
            assert!(own.kernel_name.len() < 16 && own.state_name().len() < 16, "{own:?}");
            let is_allowed = |c: char| c.is_ascii_alphanumeric() || c == '_';
            assert!(own.kernel_name.chars().chain(own.state_name().chars()).all(is_allowed));
        }
    }

    #[test]
    fn of_long_complaints_the_end_is_told() {
        let text: String = (0..50).map(|line| format!("line {line}  \n\n")).collect();
        let end = end_of(text.as_bytes());
        assert!(end.starts_with("line 38\nline 39\n") && end.ends_with("line 49"), "{end}");
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "(\\(\\*cong_control\\)\\(|,|struct rate_sample|\\PC|\n){0,20}") {
            let _ = place_in(&text);
            let _ = end_of(text.as_bytes());
        }
    }
}
