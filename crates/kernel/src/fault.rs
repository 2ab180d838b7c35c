use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use crate::memory::Memory;
use crate::{scratch, splat};

/// Why a guest is of no use any more.
#[derive(Debug)]
pub enum Fault {
    /// There is no kernel, or this machine can't run one.
    Missing(String),
    /// The machine refused something that a guest needs: what, and why.
    Machine(&'static str, io::Error),
    /// The guest's kernel ended.
    Ended(Last),
    /// It is no kernel built for user mode: its path, and the end of what it printed.
    Foreign { kernel: PathBuf, console: String },
    /// It has said nothing for so many seconds of real time.
    Silent { seconds: f64, last: Last },
    /// It never waits: a loop that spins. How long it has been at it.
    Spins { busy: String, last: Last },
    /// It has used up its memory, and the line in which its kernel says so.
    Full { memory: Memory, line: String },
    /// What it says on its sockets or writes in its rings breaks the protocol.
    Nonsense(String),
    /// It can't do what it was asked for.
    Refused(String),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing(what) => f.write_str(what),
            Self::Machine(what, why) => write!(f, "{what} failed: {why}"),
            Self::Ended(last) => write!(f, "the guest kernel {}", last.end()),
            Self::Foreign { kernel, console } => write!(
                f,
                "the guest kernel ended, and knows no release of Linux: {} is no kernel built for user mode{}",
                kernel.display(),
                printed(console)
            ),
            Self::Silent { seconds, last } => {
                write!(f, "the guest kernel has hung for {seconds} s{}", last.place())
            }
            Self::Spins { busy, last } => {
                write!(
                    f,
                    "the guest has been busy for {busy}: something in it spins{}",
                    last.place()
                )
            }
            Self::Full { memory, line } => {
                write!(f, "the guest kernel has used up its {memory} of memory: {line}")
            }
            Self::Nonsense(what) => write!(f, "the guest kernel breaks the protocol: {what}"),
            Self::Refused(what) => f.write_str(what),
        }
    }
}

impl std::error::Error for Fault {}

impl Fault {
    /// The same of a guest that has not begun: one that does not know its release is no kernel.
    pub(crate) fn of_start(self, kernel: &Path, knows_release: impl Fn(&Path) -> bool) -> Self {
        match self {
            Self::Ended(Last { console, state: State::Unknown | State::Exited(_) })
                if !console.contains("Linux version") && !knows_release(kernel) =>
            {
                Self::Foreign { kernel: kernel.to_owned(), console }
            }
            other => other,
        }
    }
}

/// The last that is known of a guest.
#[derive(Debug, Default)]
pub struct Last {
    pub(crate) console: String,
    pub(crate) state: State,
}

/// What its process does.
#[derive(Debug, Default)]
pub(crate) enum State {
    #[default]
    Unknown,
    Exited(u64),
    Killed(u64),
    /// It ended where a signal came that it sent itself by what it did: in this function.
    Faulted(String),
    /// It runs: the function that it is in, and those that seem to have called it.
    At(Vec<String>),
}

impl Last {
    /// How and why it ended.
    fn end(&self) -> String {
        const BUS: u64 = 7;
        let splats = splat::splats(&self.console);
        // The first is the reason of those that follow.
        let reason = splats.iter().find(|splat| !splat.lines[0].starts_with("WARNING"));
        let is_of_memory = self.console.contains("Kernel mode signal 7")
            || matches!(self.state, State::Killed(BUS));
        if is_of_memory {
            return format!("ended, as there was no room for its memory: {}", scratch::places());
        }
        match (&self.state, reason) {
            (State::Faulted(function), Some(splat)) => {
                format!("ended: {}, in {function}", splat.told())
            }
            (State::Faulted(function), None) => format!("ended in {function}"),
            (_, Some(splat)) => format!("ended: {}", splat.told()),
            (State::Killed(signal), None) => {
                format!("was killed by signal {signal}{}{}", name(*signal), printed(&self.console))
            }
            (State::Exited(code), None) if *code != 0 => {
                format!("ended with code {code}{}", printed(&self.console))
            }
            (_, None) => format!("ended{}", printed(&self.console)),
        }
    }

    /// Where it is, or else what it printed last.
    fn place(&self) -> String {
        let splats = splat::splats(&self.console);
        let said =
            splats.last().map_or(String::new(), |splat| format!("; it says: {}", splat.told()));
        match &self.state {
            State::At(functions) if !functions.is_empty() => {
                format!(", in {}{said}", functions.join(" < "))
            }
            State::Killed(_) | State::Exited(_) | State::Faulted(_) => {
                format!("; it {}", self.end())
            }
            _ if !said.is_empty() => said,
            _ => printed(&self.console),
        }
    }
}

fn name(signal: u64) -> &'static str {
    match signal {
        4 => " (SIGILL)",
        6 => " (SIGABRT)",
        7 => " (SIGBUS)",
        8 => " (SIGFPE)",
        9 => " (SIGKILL: somebody, or the machine for lack of memory)",
        11 => " (SIGSEGV)",
        15 => " (SIGTERM)",
        _ => "",
    }
}

/// Its last words, without what every kernel prints at its start.
fn printed(console: &str) -> String {
    const USUAL: [&str; 14] = [
        "Core dump limits",
        "soft - ",
        "hard - ",
        "Checking ",
        "Linux version",
        "Kernel command line",
        "Unknown kernel command line",
        "random: crng init",
        "Sorting __ex_table",
        "BogoMIPS",
        "epollctl add err",
        "This architecture does not have",
        "Mount-cache",
        "clocksource:",
    ];
    let says =
        |line: &&str| !line.trim().is_empty() && !USUAL.iter().any(|usual| line.contains(usual));
    let lines: Vec<&str> = console.lines().filter(says).map(str::trim).collect();
    let lines = &lines[lines.len().saturating_sub(4)..];
    match (lines.is_empty(), console.trim().is_empty()) {
        (false, _) => format!("; it printed last: {}", lines.join(" | ")),
        (true, false) => ", and printed only what every kernel does at its start".to_owned(),
        (true, true) => ", and printed nothing".to_owned(),
    }
}
