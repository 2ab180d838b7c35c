//! Files without a name, and folders that last no longer than a guest's start.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::MemfdFlags;

/// A file that nobody else can open.
pub(crate) fn file() -> io::Result<File> {
    Ok(File::from(rustix::fs::memfd_create("sojourn", MemfdFlags::CLOEXEC)?))
}

/// A folder of this process alone, removed when it is dropped.
#[derive(Debug)]
pub(crate) struct Folder(PathBuf);

impl Folder {
    /// In shared memory if there is any: a guest keeps its memory in a file in it.
    pub(crate) fn new() -> io::Result<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let memory = Path::new("/dev/shm");
        let parent = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
        loop {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let path = parent.join(format!("sojourn-{}-{number}", std::process::id()));
            match fs::create_dir(&path) {
                Ok(()) => return Ok(Self(path)),
                Err(problem) if problem.kind() == io::ErrorKind::AlreadyExists => {}
                Err(problem) => return Err(problem),
            }
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Who started the guest removes it too, when this process was killed.
        let _ = fs::remove_dir_all(&self.0);
    }
}
