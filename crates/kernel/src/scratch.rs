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
    /// It is where `room` bytes are free.
    pub(crate) fn named(room: u64) -> io::Result<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let parents = parents();
        parents.iter().for_each(|parent| sweep(parent));
        let parent = parents.iter().find(|parent| free(parent) >= room).ok_or_else(|| {
            let full = format!("{} MB are needed, and {}", room >> 20, places());
            io::Error::new(io::ErrorKind::StorageFull, full)
        })?;
        loop {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let path = parent.join(format!("sojourn-{}-{number}", std::process::id()));
            if !path.exists() {
                return Ok(Self { path, lock: None });
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

/// Where guests may keep their memory, the best first.
fn parents() -> Vec<PathBuf> {
    let memory = PathBuf::from("/dev/shm");
    let usual = std::env::temp_dir();
    if memory.is_dir() && memory != usual { vec![memory, usual] } else { vec![usual] }
}

/// `/dev/shm has 3 MB, /tmp has 20 MB`.
pub(crate) fn places() -> String {
    let place = |parent: &PathBuf| format!("{} has {} MB", parent.display(), free(parent) >> 20);
    parents().iter().map(place).collect::<Vec<_>>().join(", ")
}

fn free(folder: &Path) -> u64 {
    rustix::fs::statvfs(folder).map_or(0, |state| state.f_bavail.saturating_mul(state.f_frsize))
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
