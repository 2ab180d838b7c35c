//! Data goes to standard output, and what is said about it to standard error.

use std::fmt;
use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::path::Path;

use crate::failure::Failure;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Output {
    pub(crate) is_quiet: bool,
}

impl Output {
    /// Prints data.
    pub(crate) fn data(self, text: &str) -> Result<(), Failure> {
        self.bytes(text.as_bytes())
    }

    pub(crate) fn bytes(self, bytes: &[u8]) -> Result<(), Failure> {
        let mut stdout = io::stdout().lock();
        let written = stdout.write_all(bytes).and_then(|()| stdout.flush());
        written.map_err(|error| Failure::stdout(&error))
    }

    /// Writes to a file if there is one, else prints.
    pub(crate) fn to(self, path: Option<&Path>, bytes: &[u8]) -> Result<(), Failure> {
        match path {
            Some(path) => write_file(path, bytes),
            None => self.bytes(bytes),
        }
    }

    /// Prints data as JSON.
    pub(crate) fn json(self, value: &impl serde::Serialize) -> Result<(), Failure> {
        let text = serde_json::to_string_pretty(value).map_err(Failure::input)?;
        self.data(&format!("{text}\n"))
    }

    /// Says what is going on.
    pub(crate) fn log(self, message: &dyn fmt::Display) {
        if !self.is_quiet {
            say(message);
        }
    }

    pub(crate) fn error(self, message: &dyn fmt::Display) {
        say(&format_args!("error: {message}"));
    }

    /// Whether a bar can be drawn.
    pub(crate) fn has_terminal(self) -> bool {
        !self.is_quiet && io::stderr().is_terminal()
    }
}

/// A closed standard error is no reason to fail.
fn say(message: &dyn fmt::Display) {
    let _ = writeln!(io::stderr().lock(), "{message}");
}

/// Writes `path` so that it is there as a whole or not at all.
pub(crate) fn write_file(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".part");
    let temporary = path.with_file_name(name);
    let write = || {
        let mut file = File::create(&temporary)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        std::fs::rename(&temporary, path)
    };
    write().map_err(|error| {
        let _ = std::fs::remove_file(&temporary);
        Failure::writing(path, &error)
    })
}

/// `words` as a POSIX shell reads them.
pub(crate) fn shell_line<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=,:@%+".contains(c);
    let quoted = words.into_iter().map(|word| match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    });
    quoted.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_words_that_need_it_are_quoted() {
        let words = ["sojourn", "run", "a b", "--set", "path.queue=pfifo limit 50", "it's", ""];
        let line = r"sojourn run 'a b' --set 'path.queue=pfifo limit 50' 'it'\''s' ''";
        assert_eq!(shell_line(words), line);
    }
}
