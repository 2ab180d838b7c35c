//! What all files of a result folder share: their names, how they are written, and errors.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

pub(crate) const STUDY: &str = "study.toml";
pub(crate) const PLAN: &str = "plan.json";
pub(crate) const CLAIMS: &str = "claims.json";

/// Why a result folder cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ResultsError {
    #[error("{path}: {source}")]
    Io { path: PathBuf, source: io::Error },
    #[error("{folder}: not a result folder: {PLAN} is missing")]
    NoPlan { folder: PathBuf },
    #[error("{path}: not what sojourn writes: {problem}")]
    Malformed { path: PathBuf, problem: String },
    #[error(
        "{path}: damaged: its SHA-256 is not the one in the folder's SHA256SUMS. Take a good copy, or \
         delete the folder and run its study again, which gives the same results"
    )]
    Damaged { path: PathBuf },
    #[error(
        "{path}: the folder's SHA256SUMS does not list it, so nothing says whether it is whole. Run \
         the study into this folder again, or delete it first"
    )]
    Unlisted { path: PathBuf },
    #[error(
        "{path}: damaged after {whole} finished runs. Run the study into this folder again: it keeps \
         these and repeats the others"
    )]
    DamagedJournal { path: PathBuf, whole: usize },
}

impl ResultsError {
    /// Whether this machine is to blame and not what was given.
    pub fn is_of_machine(&self) -> bool {
        match self {
            Self::Io { source, .. } => is_of_machine(source),
            Self::NoPlan { .. }
            | Self::Malformed { .. }
            | Self::Damaged { .. }
            | Self::Unlisted { .. }
            | Self::DamagedJournal { .. } => false,
        }
    }
}

/// Whether the cause is the machine, and not a wrong path from the user.
pub fn is_of_machine(error: &io::Error) -> bool {
    !matches!(
        error.kind(),
        io::ErrorKind::NotFound
            | io::ErrorKind::NotADirectory
            | io::ErrorKind::IsADirectory
            | io::ErrorKind::InvalidData
            | io::ErrorKind::InvalidInput
            | io::ErrorKind::UnexpectedEof
    )
}

/// Names of the files of a folder, sorted.
pub(super) fn names(folder: &Path) -> Result<Vec<String>, ResultsError> {
    let error = |source| ResultsError::Io { path: folder.to_owned(), source };
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).map_err(error)? {
        names.extend(entry.map_err(error)?.file_name().into_string());
    }
    names.sort_unstable();
    Ok(names)
}

/// Writes `path` so that a kill leaves the old file or the new one, never a part. Shards may share
/// a folder, so each has temporary names of its own, by its `label`, and threads of a process write one after the other. `is_same` says whether a file has what
/// `content` writes.
pub(crate) fn write_whole(
    path: &Path,
    label: &str,
    is_same: &dyn Fn(&Path) -> bool,
    content: &dyn Fn(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let is_there = || is_same(path);
    if is_there() {
        return Ok(());
    }
    let temporary = named(path, &format!("{label}.part"));
    let write = || {
        let mut file = BufWriter::new(File::create(&temporary)?);
        content(&mut file)?;
        file.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()?;
        fs::rename(&temporary, path)
    };
    match write() {
        // The same command was started twice, and the other one was faster.
        Err(error) if error.kind() == io::ErrorKind::NotFound && is_there() => Ok(()),
        Err(error) => {
            let _ = fs::remove_file(&temporary);
            Err(error)
        }
        Ok(()) => Ok(()),
    }
}

pub(super) fn named(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(ending);
    path.with_file_name(name)
}
