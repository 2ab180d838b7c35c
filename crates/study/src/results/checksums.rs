//! `SHA256SUMS`: the checksum of every file of a result folder, in the lines that `sha256sum`
//! writes and `sha256sum --check` reads. The list of a shard has its label: `SHA256SUMS-1-of-3`.
//!
//! Before a file is replaced, its new checksum is added beside the old one; afterwards the old one
//! is removed. So after a kill at any time, every file has a line that fits it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use super::files::{ResultsError, names, write_whole};
use crate::shard::Shard;

pub(super) const NAME: &str = "SHA256SUMS";

/// SHA-256 of the content of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Checksum([u8; 32]);

impl Checksum {
    pub(crate) fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// Of what is written to a stream, which nobody keeps.
    pub(crate) fn of_written(write: &dyn Fn(&mut dyn Write) -> io::Result<()>) -> io::Result<Self> {
        let mut hashing = BufWriter::new(Hashing::new(io::sink()));
        write(&mut hashing)?;
        let hashing = hashing.into_inner().map_err(io::IntoInnerError::into_error)?;
        Ok(hashing.finish().1)
    }

    pub(crate) fn of_file(path: &Path) -> io::Result<Self> {
        let mut hashing = Hashing::new(io::sink());
        // Larger pieces than `io::copy` takes.
        let (mut file, mut piece) = (File::open(path)?, vec![0; 1 << 18]);
        loop {
            match file.read(&mut piece)? {
                0 => return Ok(hashing.finish().1),
                length => hashing.write_all(&piece[..length])?,
            }
        }
    }

    /// Whether a file has it.
    pub(crate) fn is_of(self, path: &Path) -> bool {
        Self::of_file(path).is_ok_and(|own| own == self)
    }

    fn parse(text: &str) -> Option<Self> {
        let mut bytes = [0; 32];
        let digits = text.as_bytes();
        if digits.len() != 2 * bytes.len() || text.contains(|c: char| c.is_ascii_uppercase()) {
            return None;
        }
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            let [high, low] = [pair[0], pair[1]].map(|digit| char::from(digit).to_digit(16));
            *byte = (high? * 16 + low?) as u8;
        }
        Some(Self(bytes))
    }
}

/// A writer that computes the checksum of what it writes.
pub(crate) struct Hashing<W> {
    inner: W,
    hasher: Sha256,
}

impl<W> Hashing<W> {
    pub(crate) fn new(inner: W) -> Self {
        Self { inner, hasher: Sha256::new() }
    }

    pub(crate) fn finish(self) -> (W, Checksum) {
        (self.inner, Checksum(self.hasher.finalize().into()))
    }
}

impl<W: Write> Write for Hashing<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.hasher.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// The checksums that each file may have: one, or several while it is being replaced, the newest
/// last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Checksums {
    of_files: BTreeMap<String, Vec<Checksum>>,
}

impl Checksums {
    /// Reads the list of the whole or of a shard, by its label; empty if there is none.
    pub(crate) fn read(folder: &Path, label: &str) -> Result<Self, ResultsError> {
        let path = path(folder, label);
        match fs::read(&path) {
            Ok(bytes) => Self::parse(&bytes).map_err(|line| ResultsError::Malformed {
                problem: format!("line {line} is damaged"),
                path,
            }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Self::default()),
            Err(source) => Err(ResultsError::Io { path, source }),
        }
    }

    pub(crate) fn write(&self, folder: &Path, label: &str) -> io::Result<()> {
        let text = self.text();
        let content = |out: &mut dyn Write| out.write_all(text.as_bytes());
        let checksum = Checksum::of(text.as_bytes());
        write_whole(&path(folder, label), label, &|path| checksum.is_of(path), &content)
    }

    /// Adds a checksum of a file. Returns whether it was not yet the newest.
    pub(crate) fn announce(&mut self, name: &str, checksum: Checksum) -> bool {
        let listed = self.of_files.entry(name.to_owned()).or_default();
        if listed.last() == Some(&checksum) {
            return false;
        }
        listed.retain(|old| *old != checksum);
        listed.push(checksum);
        true
    }

    /// Removes all checksums of a file except the newest. Returns whether there were others.
    pub(crate) fn settle(&mut self, name: &str) -> bool {
        let Some(listed) = self.of_files.get_mut(name) else { return false };
        let is_replaced = listed.len() > 1;
        listed.drain(..listed.len() - 1);
        is_replaced
    }

    pub(crate) fn lists(&self, name: &str) -> bool {
        self.of_files.contains_key(name)
    }

    fn allows(&self, name: &str, checksum: Checksum) -> bool {
        self.of_files.get(name).is_some_and(|listed| listed.contains(&checksum))
    }

    fn text(&self) -> String {
        let mut text = String::new();
        for (name, listed) in &self.of_files {
            for Checksum(bytes) in listed {
                bytes.iter().for_each(|byte| {
                    let _ = write!(text, "{byte:02x}");
                });
                let _ = writeln!(text, "  {name}");
            }
        }
        text
    }

    /// The error is the number of the first line that is not as [`Checksums::text`] writes it.
    fn parse(bytes: &[u8]) -> Result<Self, usize> {
        let mut checksums = Self::default();
        let line_end = |byte: &u8| *byte == b'\n';
        for (line, number) in bytes.split_inclusive(line_end).zip(1usize..) {
            let parsed = || {
                let line = std::str::from_utf8(line).ok()?.strip_suffix('\n')?;
                let (checksum, name) = line.split_once("  ")?;
                let is_name = !name.is_empty() && !name.contains(['/', '\\', ' ']);
                Some((Checksum::parse(checksum)?, name)).filter(|_| is_name)
            };
            let (checksum, name) = parsed().ok_or(number)?;
            checksums.announce(name, checksum);
        }
        Ok(checksums)
    }
}

fn path(folder: &Path, label: &str) -> PathBuf {
    folder.join(format!("{NAME}{label}"))
}

/// The lists of a folder: of the whole, and of each shard that has written into it.
pub(crate) fn labels(names: &[String]) -> Vec<&str> {
    let labels = names.iter().filter_map(|name| name.strip_prefix(NAME));
    labels.filter(|label| label.is_empty() || Shard::from_label(label).is_some()).collect()
}

/// Checks what was read of a file of a result folder against the lists there. A folder without a
/// list passes unchecked.
pub(crate) fn verify(folder: &Path, name: &str, checksum: Checksum) -> Result<(), ResultsError> {
    let names = names(folder)?;
    let labels = labels(&names);
    if labels.is_empty() {
        return Ok(());
    }
    let mut is_listed = false;
    for label in labels {
        let list = Checksums::read(folder, label)?;
        if list.allows(name, checksum) {
            return Ok(());
        }
        is_listed |= list.lists(name);
    }
    let path = folder.join(name);
    match is_listed {
        true => Err(ResultsError::Damaged { path }),
        false => Err(ResultsError::Unlisted { path }),
    }
}

/// Reads a file of a result folder to its end for the sake of its checksum alone.
pub(crate) fn verify_file(path: &Path) -> Result<(), ResultsError> {
    // Whoever replaces the file between the two looks changes its line, too; then it is read again.
    const LOOKS: usize = 3;
    let folder = path.parent().unwrap_or(Path::new(""));
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let look = || {
        let checksum = Checksum::of_file(path)
            .map_err(|source| ResultsError::Io { path: path.to_owned(), source })?;
        verify(folder, &name, checksum)
    };
    let mut found = look();
    for _ in 1..LOOKS {
        if found.is_ok() {
            break;
        }
        found = look();
    }
    found
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn list() -> Checksums {
        let mut list = Checksums::default();
        list.announce("runs.parquet", Checksum::of(b"abc"));
        list.announce("plan.json", Checksum::of(b""));
        list
    }

    /// The checksums are those that FIPS 180-2 gives for `abc` and that `sha256sum` gives for nothing.
    #[test]
    fn a_list_is_what_sha256sum_writes() {
        let text = "\
e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855  plan.json
ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad  runs.parquet
";
        assert_eq!(list().text(), text);
        assert_eq!(Checksums::parse(text.as_bytes()), Ok(list()));
    }

    #[test]
    fn while_a_file_is_replaced_both_checksums_are_listed() {
        let mut list = list();
        let (old, new) = (Checksum::of(b""), Checksum::of(b"new"));
        assert!(list.announce("plan.json", new));
        assert!(!list.announce("plan.json", new));
        let mut read = Checksums::parse(list.text().as_bytes()).unwrap();
        assert_eq!(read, list);
        assert!(read.allows("plan.json", old) && read.allows("plan.json", new));
        assert!(read.settle("plan.json") && !read.settle("plan.json"));
        assert!(!read.allows("plan.json", old) && read.allows("plan.json", new));
    }

    #[test]
    fn a_flipped_bit_of_a_list_makes_it_another_list_or_none() {
        let text = list().text();
        for bit in 0..text.len() * 8 {
            let mut bytes = text.clone().into_bytes();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert_ne!(Checksums::parse(&bytes), Ok(list()), "bit {bit}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_parser_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = Checksums::parse(&bytes);
        }

        #[test]
        fn what_goes_through_in_pieces_has_the_checksum_of_the_whole(
            bytes in prop::collection::vec(any::<u8>(), 0..300),
            cut in 0usize..300,
        ) {
            let (first, rest) = bytes.split_at(cut.min(bytes.len()));
            let mut hashing = Hashing::new(Vec::new());
            hashing.write_all(first).unwrap();
            hashing.write_all(rest).unwrap();
            prop_assert_eq!(hashing.finish(), (bytes.clone(), Checksum::of(&bytes)));
        }
    }
}
