//! What a guest's kernel prints.

use std::cell::Cell;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use rustix::fs::{FallocateFlags, fallocate};
use sojourn_study::engine::{note, present_run};

use crate::splat;

/// What is kept of the beginning and of the end of a long one.
const FIRST: u64 = 64 << 10;
const LAST: u64 = 192 << 10;

/// The file that it prints into, behind the number of its group of processes.
#[derive(Debug)]
pub(crate) struct Console {
    file: File,
    /// How far it was looked at, and up to where its middle is forgotten.
    seen: Cell<u64>,
    forgotten: Cell<u64>,
}

impl Console {
    const HEAD: u64 = 4;

    pub(crate) fn new(file: File) -> Self {
        Self { file, seen: Cell::new(Self::HEAD), forgotten: Cell::new(FIRST) }
    }

    /// The number of the kernel's group of processes, as soon as it has been started.
    pub(crate) fn group(&self) -> Option<i32> {
        let mut group = [0; Self::HEAD as usize];
        self.file.read_exact_at(&mut group, 0).ok()?;
        Some(i32::from_le_bytes(group))
    }

    /// All that is kept.
    pub(crate) fn text(&self) -> String {
        let len = self.len();
        if len <= FIRST + LAST {
            return self.part(Self::HEAD, len);
        }
        let left_out = len - FIRST - LAST;
        let (first, last) = (self.part(Self::HEAD, FIRST), self.part(len - LAST, len));
        format!("{first}\n[{left_out} bytes are left out]\n{last}")
    }

    /// What it has printed since the last look, and the line in which that began.
    pub(crate) fn news(&self) -> Option<String> {
        const LINE: u64 = 256;
        self.forget();
        let (len, seen) = (self.len(), self.seen.get());
        if len <= seen {
            return None;
        }
        self.seen.set(len);
        let from = seen.saturating_sub(LINE).max(len.saturating_sub(LAST)).max(Self::HEAD);
        Some(self.part(from, len))
    }

    /// A guest may print for ever: no more than a few times what is kept of it takes memory.
    pub(crate) fn forget(&self) {
        let (end, begin) = (self.len().saturating_sub(LAST), self.forgotten.get());
        let is_much = end > begin + LAST;
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        if is_much && fallocate(&self.file, flags, begin, end - begin).is_ok() {
            self.forgotten.set(end);
        }
    }

    fn len(&self) -> u64 {
        self.file.metadata().map_or(0, |metadata| metadata.len())
    }

    fn part(&self, from: u64, to: u64) -> String {
        let mut text = vec![0; to.saturating_sub(from) as usize];
        let got = self.file.read_at(&mut text, from).unwrap_or(0);
        String::from_utf8_lossy(&text[..got]).into_owned()
    }
}

static FOLDER: OnceLock<PathBuf> = OnceLock::new();

/// From now on what each guest's kernel prints is written into this folder when the guest ends.
///
/// # Errors
/// The folder can't be made.
pub fn keep_consoles(folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    let _ = FOLDER.set(folder.to_owned());
    Ok(())
}

/// Tells the run of what a kernel printed that should not be there, and keeps all of it if that is asked for. `name` says whose
/// kernel it is; `seed` tells those of one name apart.
pub(crate) fn close(text: &str, name: &str, seed: u64) {
    const TOLD: usize = 3;
    if let Some(folder) = FOLDER.get() {
        let run = present_run().map_or_else(|| "other".to_owned(), |run| format!("run-{run}"));
        let words = name.split(|c: char| !c.is_ascii_alphanumeric());
        let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
        let path = folder.join(format!("{run}-{}-{:04x}.log", words.join("-"), seed & 0xffff));
        if let Err(why) = fs::write(&path, text) {
            note(format!("{}: cannot be written: {why}", path.display()));
        }
    }
    let splats = splat::splats(text);
    for splat in splats.iter().take(TOLD) {
        note(format!("{name}: {}", splat.told()));
    }
    if splats.len() > TOLD {
        note(format!("{name}: {} more of this kind", splats.len() - TOLD));
    }
    if let Some(line) = lack_of_memory(text) {
        note(format!("{name}: {line}"));
    }
}

/// The line in which a kernel says that it has no memory left. Where an allocation fails without such a line, the kernel goes on as
/// it would on any machine.
pub(crate) fn lack_of_memory(text: &str) -> Option<&str> {
    const LACKS: [&str; 6] = [
        "Out of memory",
        "invoked oom-killer",
        "page allocation failure",
        "SLUB: Unable to allocate memory",
        "out of memory -- consider tuning tcp_mem",
        "System is deadlocked on memory",
    ];
    let is_lack = |line: &&str| LACKS.iter().any(|lack| line.contains(lack));
    text.lines().find(is_lack).map(str::trim)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn printed(parts: &[&[u8]]) -> Console {
        let file = crate::scratch::file().expect("a file in memory");
        let mut printer = file.try_clone().expect("the same file");
        let console = Console::new(file);
        for part in parts {
            printer.write_all(part).expect("there is room");
            console.news();
        }
        console
    }

    #[test]
    fn a_long_console_has_its_beginning_and_its_end() {
        let line = [b'x'; 9_999];
        let mut parts = vec![&b"\x07\0\0\0first\n"[..]];
        parts.extend([&line[..]; 200]);
        parts.push(b"last\n");
        let console = printed(&parts);
        let text = console.text();
        assert_eq!(console.group(), Some(7));
        assert!(text.starts_with("first\n") && text.ends_with("last\n"));
        assert!(text.len() < 300_000 && text.contains("bytes are left out"));
        // What is forgotten takes no memory.
        use std::os::unix::fs::MetadataExt;
        let blocks = console.file.metadata().expect("it is open").blocks();
        assert!(blocks * 512 < 800_000, "{blocks}");
    }

    #[test]
    fn lack_of_memory_is_found_in_a_line_that_came_in_two_parts() {
        let console = printed(&[b"\0\0\0\0Out of mem"]);
        let mut printer = console.file.try_clone().expect("the same file");
        printer.write_all(b"ory: Killed process 17 (init)\n").expect("there is room");
        let news = console.news().expect("there is more");
        assert_eq!(lack_of_memory(&news), Some("Out of memory: Killed process 17 (init)"));
        assert_eq!(console.news(), None);
    }
}
