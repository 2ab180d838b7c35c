//! Data goes to standard output, messages to standard error.

use std::fmt;
use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Stdout, Write};
use std::path::{Path, PathBuf};

use sojourn_report::terminal;
use sojourn_study::results::Folder;

use crate::failure::Failure;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Output {
    pub(crate) is_quiet: bool,
}

impl Output {
    /// Prints data for programs.
    pub(crate) fn data(self, text: &str) -> Result<(), Failure> {
        self.to(None, text.as_bytes())
    }

    /// Prints text for people, which may have parts of a study in it: without control sequences.
    pub(crate) fn text(self, text: &str) -> Result<(), Failure> {
        self.data(&terminal::plain_lines(text))
    }

    /// The same of text that need not be in memory as a whole.
    pub(crate) fn stream_text(
        self,
        write: &mut dyn FnMut(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), Failure> {
        self.stream(&mut |out| write(&mut Plain(out)))
    }

    /// Writes data to a file, or prints it.
    pub(crate) fn to(self, path: Option<&Path>, bytes: &[u8]) -> Result<(), Failure> {
        let mut sink = Sink::create(path)?;
        let written = sink.write_all(bytes);
        sink.finish(written)
    }

    /// Prints data as JSON.
    pub(crate) fn json(self, value: &impl serde::Serialize) -> Result<(), Failure> {
        self.stream(&mut |out| {
            serde_json::to_writer_pretty(&mut *out, value)?;
            out.write_all(b"\n")
        })
    }

    /// Prints data that need not be in memory as a whole.
    pub(crate) fn stream(
        self,
        write: &mut dyn FnMut(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), Failure> {
        let mut sink = Sink::create(None)?;
        let written = write(&mut sink);
        sink.finish(written)
    }

    /// Prints a message.
    pub(crate) fn log(self, message: &dyn fmt::Display) {
        if !self.is_quiet {
            say(message);
        }
    }

    pub(crate) fn error(self, message: &dyn fmt::Display) {
        say(&format_args!("error: {message}"));
    }

    /// Whether a progress bar can be drawn.
    pub(crate) fn has_terminal(self) -> bool {
        !self.is_quiet && io::stderr().is_terminal()
    }
}

/// A closed standard error is ignored.
fn say(message: &dyn fmt::Display) {
    let _ = writeln!(io::stderr().lock(), "{}", terminal::plain_lines(&message.to_string()));
}

/// Passes text on without control sequences. What is written at once is whole characters, as `write!` does it.
struct Plain<'a>(&'a mut dyn Write);

impl Write for Plain<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = terminal::plain_lines(&String::from_utf8_lossy(bytes));
        self.0.write_all(text.as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Standard output, or a file that appears when it is complete.
pub(crate) struct Sink {
    path: Option<PathBuf>,
    writer: BufWriter<Target>,
    is_finished: bool,
}

enum Target {
    Stdout(Stdout),
    /// The file under its temporary name.
    File(File),
}

impl Sink {
    /// `-` is standard output, as it is for other commands.
    pub(crate) fn create(path: Option<&Path>) -> Result<Self, Failure> {
        let path = path.filter(|path| *path != Path::new("-"));
        if let Some(path) = path.filter(|path| is_part_of_results(path)) {
            return Err(Failure::Input(format!(
                "{}: is a file of a result folder, which could not be read without it (allowed: another name)",
                path.display()
            )));
        }
        let target = match path {
            None => Target::Stdout(io::stdout()),
            Some(path) => Target::File(
                File::create(temporary(path)).map_err(|error| Failure::writing(path, &error))?,
            ),
        };
        let path = path.map(Path::to_owned);
        Ok(Self { path, writer: BufWriter::new(target), is_finished: false })
    }

    /// Renames the file to its final name, if writing it succeeded.
    pub(crate) fn finish(mut self, written: io::Result<()>) -> Result<(), Failure> {
        let finished = written.and_then(|()| self.writer.flush()).and_then(|()| {
            if let (Target::File(file), Some(path)) = (self.writer.get_ref(), &self.path) {
                file.sync_all()?;
                std::fs::rename(temporary(path), path)?;
            }
            Ok(())
        });
        self.is_finished = finished.is_ok();
        finished.map_err(|error| match &self.path {
            Some(path) => Failure::writing(path, &error),
            None => Failure::stdout(&error),
        })
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.writer.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        if let Some(path) = self.path.as_ref().filter(|_| !self.is_finished) {
            let _ = std::fs::remove_file(temporary(path));
        }
    }
}

impl Write for Target {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Stdout(stdout) => stdout.write(bytes),
            Self::File(file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Stdout(stdout) => stdout.flush(),
            Self::File(file) => file.flush(),
        }
    }
}

/// Whether writing a file would take something from a result folder, or add what it does not know.
fn is_part_of_results(path: &Path) -> bool {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { return false };
    let folder = if folder == Path::new("") { Path::new(".") } else { folder };
    folder.join("plan.json").exists() && Folder::new(folder).owns(&name.to_string_lossy())
}

fn temporary(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".part");
    path.with_file_name(name)
}

/// `words` quoted for a POSIX shell.
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
