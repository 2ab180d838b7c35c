//! Files without a name, and folders that last no longer than a guest's start.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{FlockOperation, MemfdFlags};

/// A file that nobody else can open.
pub(crate) fn file() -> io::Result<File> {
    Ok(File::from(rustix::fs::memfd_create("sojourn", MemfdFlags::CLOEXEC)?))
}

/// A folder of this process alone, removed when it is dropped.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    /// Locked as long as this process lives.
    lock: Option<File>,
}

impl Folder {
    /// Its name, before it is there: whoever removes it after this process is to be told first. It is in shared memory if there is
    /// any, because a guest keeps its memory in a file in it.
    pub(crate) fn named() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let memory = Path::new("/dev/shm");
        let parent = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
        sweep(&parent);
        loop {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let path = parent.join(format!("sojourn-{}-{number}", std::process::id()));
            if !path.exists() {
                return Self { path, lock: None };
            }
        }
    }

    pub(crate) fn create(&mut self) -> io::Result<()> {
        const TRIES: usize = 100;
        for _ in 0..TRIES {
            fs::create_dir(&self.path)?;
            // Whoever sweeps at this moment may have been faster, and removes it.
            self.lock = lock(&self.path).filter(|_| self.path.is_dir());
            if self.lock.is_some() {
                return Ok(());
            }
            while self.path.is_dir() {
                std::thread::yield_now();
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

/// Removes folders of processes that were killed with all that would have cleaned up after them.
fn sweep(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let is_ours = entry.file_name().to_str().is_some_and(|name| {
            let mut parts = name.split('-');
            parts.next() == Some("sojourn") && parts.all(|part| part.parse::<u64>().is_ok())
        });
        if is_ours && let Some(_lock) = lock(&entry.path()) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// The folder, locked; `None` if somebody else has locked it or it is gone.
fn lock(path: &Path) -> Option<File> {
    let folder = File::open(path).ok()?;
    rustix::fs::flock(&folder, FlockOperation::NonBlockingLockExclusive).ok()?;
    Some(folder)
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Who started the guest removes it too, when this process was killed.
        let _ = fs::remove_dir_all(&self.path);
    }
}
