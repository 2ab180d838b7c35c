//! A folder of its own for each test, with a study in it, and the command run there.

use std::ffi::OsStr;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_sojourn");

/// Two scenarios and three seeds of short runs, and a claim that holds.
pub(crate) const STUDY: &str = r#"schema = 1
title  = "Two flows and a queue"

[scenario]
duration = "2s"
warmup   = "500ms"

[scenario.path]
rate  = "10Mbps"
rtt   = "20ms"
queue = "pfifo limit 50"

[[scenario.flow]]
name = "alice"
app  = "bulk"
cca  = "cubic"
start_jitter = "50ms"

[[scenario.flow]]
name = "bob"
app  = "bulk"
cca  = "reno"
start_jitter = "50ms"

[factors]
"path.queue" = ["pfifo limit 50", "fq_codel"]

[repeat]
seeds = 3

[[claim]]
id     = "busy"
text   = "The link is used"
expect = "goodput(alice) + goodput(bob) > 5 Mbps"
"#;

pub(crate) struct Scratch {
    folder: TempDir,
}

impl Scratch {
    /// With `study.toml` in it.
    pub(crate) fn new() -> Self {
        let folder =
            tempfile::Builder::new().prefix("cli-").tempdir_in(env!("CARGO_TARGET_TMPDIR"));
        let scratch = Self { folder: folder.expect("the target folder can be written") };
        scratch.write("study.toml", STUDY);
        scratch
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).expect("the scratch folder can be written");
    }

    pub(crate) fn read(&self, name: &str) -> String {
        let path = self.path(name);
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    /// The study with a text replaced.
    pub(crate) fn study_with(&self, old: &str, new: &str) {
        assert!(STUDY.contains(old), "the study has no '{old}'");
        self.write("study.toml", &STUDY.replace(old, new));
    }

    /// Names of everything that is there, sorted.
    pub(crate) fn names(&self) -> Vec<String> {
        let mut names = Vec::new();
        let mut folders = vec![self.folder.path().to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder).expect("a scratch folder is there") {
                let path = entry.expect("a scratch folder can be read").path();
                if path.is_dir() {
                    folders.push(path.clone());
                }
                let name = path.strip_prefix(self.folder.path()).expect("it is inside");
                names.push(name.display().to_string());
            }
        }
        names.sort();
        names
    }

    pub(crate) fn command(&self, words: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Command {
        let mut command = Command::new(PROGRAM);
        command.args(words).current_dir(self.folder.path()).stdin(Stdio::null());
        command
    }

    pub(crate) fn sojourn(&self, words: &[&str]) -> Ended {
        Ended::of(self.command(words).output().expect("the program starts"))
    }

    /// Runs and panics unless it ends well.
    pub(crate) fn must(&self, words: &[&str]) -> Ended {
        let ended = self.sojourn(words);
        assert_eq!(ended.code, Some(0), "{words:?}\n{}{}", ended.stdout, ended.stderr);
        ended
    }

    /// Whether two result folders hold the same runs, byte by byte.
    pub(crate) fn assert_same_results(&self, one: &str, other: &str) {
        for name in ["runs.parquet", "series.parquet", "claims.json", "plan.json"] {
            let read = |folder: &str| {
                let path = self.path(folder).join(name);
                fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
            };
            assert!(read(one) == read(other), "{name} differs between {one} and {other}");
        }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // After a failed test the folder is kept for inspection.
        self.folder.disable_cleanup(std::thread::panicking());
    }
}

/// A command that has ended.
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ended {
    pub(crate) fn of(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).expect("all that is printed is UTF-8");
        Self {
            code: output.status.code(),
            stdout: text(output.stdout),
            stderr: text(output.stderr),
        }
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("not JSON: {error}\n{}", self.stdout))
    }

    /// Rows of cells, the head among them.
    pub(crate) fn csv(&self) -> Vec<Vec<String>> {
        let mut rows = vec![vec![String::new()]];
        let mut is_quoted = false;
        let mut chars = self.stdout.chars().peekable();
        while let Some(c) = chars.next() {
            let row = rows.last_mut().expect("there is a first row");
            let cell = row.last_mut().expect("a row has a cell");
            match c {
                '"' if is_quoted && chars.peek() == Some(&'"') => cell.extend(chars.next()),
                '"' => is_quoted = !is_quoted,
                ',' if !is_quoted => row.push(String::new()),
                '\n' if !is_quoted => rows.push(vec![String::new()]),
                c => cell.push(c),
            }
        }
        assert_eq!(rows.pop(), Some(vec![String::new()]), "the last line has an end");
        rows
    }
}
