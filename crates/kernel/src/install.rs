//! What guests need beside a kernel: a root folder with one program, and two files on the host. They are part of this
//! program, and are written into the cache.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::fault::Fault;

const PROGRAM: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/program"));
const SEEDED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/seeded.so"));

/// A folder with all that guests need but a kernel.
#[derive(Clone, Debug)]
pub(crate) struct Installed(PathBuf);

impl Installed {
    /// Writes it if it is not there.
    pub(crate) fn new() -> Result<Self, Fault> {
        if PROGRAM.is_empty() {
            let problem = "kernels run as guests on 64-bit x86 machines with Linux only";
            return Err(Fault::Missing(problem.to_owned()));
        }
        let digest = digest(&[PROGRAM, SEEDED].concat());
        let folder = cache()?.join(format!("guest-{digest:016x}"));
        // One thread of a process writes it; processes have names of their own.
        static WRITING: Mutex<()> = Mutex::new(());
        let _alone = WRITING.lock().unwrap_or_else(PoisonError::into_inner);
        if !folder.join("root/init").is_file() {
            write(&folder).map_err(|why| Fault::Machine("writing a guest's root folder", why))?;
        }
        Ok(Self(folder))
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.0
    }

    pub(crate) fn program(&self) -> PathBuf {
        self.0.join("program")
    }

    pub(crate) fn seeded(&self) -> PathBuf {
        self.0.join("seeded.so")
    }
}

/// Another process may do the same at this moment: whoever comes second leaves the first one's.
fn write(folder: &Path) -> io::Result<()> {
    let new = folder.with_extension(std::process::id().to_string());
    let root = new.join("root");
    for inner in ["proc", "dev", "sys", "tmp", "host"] {
        fs::create_dir_all(root.join(inner))?;
    }
    for (path, bytes) in [
        (new.join("program"), PROGRAM),
        (root.join("init"), PROGRAM),
        (new.join("seeded.so"), SEEDED),
    ] {
        fs::write(&path, bytes)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
    }
    let moved = fs::rename(&new, folder);
    if moved.is_err() && folder.join("root/init").is_file() {
        return fs::remove_dir_all(&new);
    }
    moved
}

/// The folder of this program's kernels in the user's cache.
pub fn cache() -> Result<PathBuf, Fault> {
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache"));
    let cache =
        std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let none = || Fault::Missing("there is no HOME for a cache of kernels".to_owned());
    Ok(cache.or_else(home).ok_or_else(none)?.join("sojourn/kernel"))
}

/// The kernel that is used where none is named: that of `SOJOURN_KERNEL`, or the one that was built.
pub fn usual_kernel() -> Result<PathBuf, Fault> {
    if let Some(named) = std::env::var_os("SOJOURN_KERNEL").filter(|named| !named.is_empty()) {
        return Ok(PathBuf::from(named));
    }
    let built = cache()?.join("linux");
    if built.is_file() {
        return Ok(built);
    }
    let problem =
        "there is no guest kernel; `sojourn kernel build` builds one, or SOJOURN_KERNEL names one";
    Err(Fault::Missing(problem.to_owned()))
}

/// The kernel at a path, the one that `sojourn kernel build --name` built under this name, or the usual one.
///
/// # Errors
/// There is none, or none is named and none was built.
pub fn kernel(named: Option<&str>) -> Result<PathBuf, Fault> {
    let path = match named {
        None => usual_kernel()?,
        Some(name) if !name.contains('/') && !Path::new(name).is_file() => cache()?.join(name),
        Some(path) => PathBuf::from(path),
    };
    // A guest is started in another folder.
    match std::path::absolute(&path) {
        Ok(path) if path.is_file() => Ok(path),
        _ => Err(Fault::Missing(format!(
            "there is no guest kernel {}; `sojourn kernel build --name NAME` builds one of that name",
            path.display()
        ))),
    }
}

/// FNV-1a, 64 bits.
pub(crate) fn digest(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |digest, byte| {
        (digest ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3)
    })
}
