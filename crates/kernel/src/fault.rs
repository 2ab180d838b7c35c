use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use crate::memory::Memory;

/// Why a guest is of no use any more.
#[derive(Debug)]
pub enum Fault {
    /// There is no kernel, or this machine can't run one.
    Missing(String),
    /// The machine refused something that a guest needs: what, and why.
    Machine(&'static str, io::Error),
    /// The guest's kernel ended; the end of what it printed.
    Ended(String),
    /// It ended without a banner of Linux: its path, and the end of what it printed.
    Foreign { kernel: PathBuf, console: String },
    /// It has said nothing for so many seconds of real time.
    Silent { seconds: f64, console: String },
    /// Its clock barely moves though it is busy: a program that spins.
    Spins { seconds: f64 },
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
            Self::Ended(console) => write!(f, "the guest kernel ended{}", last(console)),
            Self::Foreign { kernel, console } => write!(
                f,
                "the guest kernel ended, and printed no banner of Linux: {} is no kernel built for user mode{}",
                kernel.display(),
                last(console)
            ),
            Self::Silent { seconds, console } => {
                write!(f, "the guest kernel has hung for {seconds} s{}", last(console))
            }
            Self::Spins { seconds } => write!(
                f,
                "the guest has been busy for {seconds} s of real time in a millisecond of its own: something in it spins"
            ),
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
    /// The same of a guest that has not begun: one that printed no banner is no kernel.
    pub(crate) fn of_start(self, kernel: &Path) -> Self {
        match self {
            Self::Ended(console) if !console.contains("Linux version") => {
                Self::Foreign { kernel: kernel.to_owned(), console }
            }
            other => other,
        }
    }
}

/// Why it says that it ended, or else its last words.
fn last(console: &str) -> String {
    let mut lines: Vec<&str> = console.lines().filter(|line| !line.trim().is_empty()).collect();
    let reasons =
        |word: &str| lines.iter().find(|line| line.contains(word)).map(|line| line.trim());
    if let Some(panic) =
        reasons("BUG at").or_else(|| reasons("BUG: ")).or_else(|| reasons("Kernel panic"))
    {
        return format!(": {panic}");
    }
    let lines = lines.split_off(lines.len().saturating_sub(4));
    match lines.is_empty() {
        true => ", and printed nothing".to_owned(),
        false => format!("; it printed last: {}", lines.join(" | ")),
    }
}
