//! What guests need beside a kernel: a root folder with one program, and two files on the host. They are part of this
//! program, and are written into the cache.

use std::fs;
use std::io;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use sojourn_core::SpecError;

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
            write(&folder).map_err(|why| unwritable(&folder, &why))?;
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

pub(crate) fn unwritable(path: &Path, why: &io::Error) -> Fault {
    Fault::Missing(format!("{}: cannot be written: {why}", path.display()))
}

/// A kernel in the cache.
#[derive(Clone, Debug)]
pub struct Built {
    pub name: String,
    pub path: PathBuf,
    /// What it says of its release; `None` if it says none.
    pub release: Option<String>,
    pub digest: String,
    /// How large it is, and what lies in the cache for the next build of this name.
    pub bytes: u64,
    pub build_bytes: u64,
}

/// All kernels in the cache, by name.
///
/// # Errors
/// There is no place for a cache.
pub fn built() -> Result<Vec<Built>, Fault> {
    let cache = cache()?;
    let entries = fs::read_dir(&cache).into_iter().flatten().flatten();
    let kernel = |path: PathBuf| {
        let name = path.file_name()?.to_str()?.to_owned();
        if !path.is_file() || name.ends_with(".new") || wrong_with(&path).is_some() {
            return None;
        }
        let bytes = path.metadata().map_or(0, |metadata| metadata.len());
        let digest = format!("{:016x}", digest(&fs::read(&path).ok()?));
        let build_bytes = size(&cache.join(format!("build-{name}")));
        Some(Built { release: release(&path).ok(), name, path, digest, bytes, build_bytes })
    };
    let mut all: Vec<Built> = entries.filter_map(|entry| kernel(entry.path())).collect();
    all.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(all)
}

/// Removes the kernel of this name from the cache, and what lies there for its next build. Runs that use it go on.
///
/// # Errors
/// There is none, it is being built, or it can't be removed.
pub fn remove(name: &str) -> Result<(), Fault> {
    let (all, folder) = (built()?, cache()?.join(format!("build-{name}")));
    let Some(kernel) = all.iter().find(|kernel| kernel.name == name) else {
        let names = all.iter().map(|kernel| kernel.name.as_str());
        let problem = SpecError::new(format!("there is no kernel '{name}' in the cache"));
        let problem = problem.near(name, names.clone()).allow(names);
        return Err(Fault::Refused(problem.to_string()));
    };
    let _lock = folder.is_dir().then(|| lock_build(name)).transpose()?;
    fs::remove_file(&kernel.path).map_err(|why| unwritable(&kernel.path, &why))?;
    match fs::remove_dir_all(&folder) {
        Err(why) if why.kind() != io::ErrorKind::NotFound => Err(unwritable(&folder, &why)),
        _ => Ok(()),
    }
}

/// As long as it is held, nobody else builds or removes the kernel of this name.
pub(crate) fn lock_build(name: &str) -> Result<fs::File, Fault> {
    let folder = cache()?.join(format!("build-{name}"));
    let file = fs::File::open(&folder).map_err(|why| unwritable(&folder, &why))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(fs::TryLockError::WouldBlock) => Err(Fault::Refused(format!(
            "{} is in use: another process builds the kernel '{name}'",
            folder.display()
        ))),
        Err(fs::TryLockError::Error(why)) => Err(Fault::Machine("locking a build", why)),
    }
}

/// What a folder takes.
fn size(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let of = |entry: fs::DirEntry| match entry.file_type() {
        Ok(kind) if kind.is_dir() => size(&entry.path()),
        _ => entry.metadata().map_or(0, |metadata| metadata.len()),
    };
    entries.map(of).sum()
}

/// The kernel that is used where none is named: that of `SOJOURN_KERNEL`, or the one that was built.
pub fn usual_kernel() -> Result<PathBuf, Fault> {
    if let Some(named) = std::env::var_os("SOJOURN_KERNEL").filter(|named| !named.is_empty()) {
        let named = PathBuf::from(named);
        return fits_processor(&named).map(|()| named);
    }
    let built = cache()?.join("linux");
    if built.is_file() {
        return fits_processor(&built).map(|()| built);
    }
    let problem =
        "there is no guest kernel; `sojourn kernel build` builds one, or SOJOURN_KERNEL names one";
    Err(Fault::Missing(problem.to_owned()))
}

/// Whether this machine's processor has registers for matrices (AMX). As a guest, Linux before 6.13 keeps 2696 bytes of a program's registers, which is
/// AVX-512's; its host then refuses to restore them, and every program of the guest dies at once.
pub(crate) fn has_matrix_registers() -> bool {
    let flags = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    flags.split_ascii_whitespace().any(|flag| flag == "amx_tile")
}

pub(crate) const UNFIT: &str = "this machine's processor has matrix registers (AMX), which kernels before Linux 6.13 can't restore as guests: \
    every program in one dies at once. Use a machine without AMX, or a newer kernel";

/// # Errors
/// The kernel can't run programs on this processor.
pub(crate) fn fits_processor(kernel: &Path) -> Result<(), Fault> {
    if !has_matrix_registers() {
        return Ok(());
    }
    let Ok(release) = release(kernel) else { return Ok(()) };
    let mut parts = release.split(['.', '-']).map(|part| part.parse::<u32>().unwrap_or(0));
    let version = (parts.next().unwrap_or(0), parts.next().unwrap_or(0));
    if version < (6, 13) { Err(Fault::Missing(UNFIT.to_owned())) } else { Ok(()) }
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
        Ok(path) if path.is_file() => match wrong_with(&path) {
            None => fits_processor(&path).map(|()| path),
            Some(wrong) => {
                Err(Fault::Missing(format!("the guest kernel {} {wrong}", path.display())))
            }
        },
        _ => Err(Fault::Missing(format!(
            "there is no guest kernel {}; `sojourn kernel build --name NAME` builds one of that name",
            path.display()
        ))),
    }
}

/// Refuses a kernel that is not there, or whose file can't be one: what can be known without starting it.
///
/// # Errors
/// What is wrong with the file, and what is allowed.
pub(crate) fn check(named: Option<&str>) -> Result<(), SpecError> {
    let problem = |fault: Fault| SpecError::new(fault.to_string()).about("kernel");
    kernel(named).map(drop).map_err(problem)
}

/// What a file is that can't be a kernel for this machine.
fn wrong_with(path: &Path) -> Option<&'static str> {
    /// The head of an ELF file of 64 bits, and of an entry of its table of programs.
    const HEAD: usize = 64;
    const ENTRY: usize = 56;
    let mut head = [0; HEAD];
    let file = match fs::File::open(path) {
        Ok(file) => file,
        Err(_) => return Some("can't be read"),
    };
    let number = |bytes: &[u8], at: usize, len: usize| {
        bytes[at..at + len].iter().rev().fold(0u64, |sum, byte| sum << 8 | u64::from(*byte))
    };
    const X86_64: u64 = 62;
    const FOREIGN: &str = "is no executable for 64-bit x86 machines (ELF)";
    if file.read_exact_at(&mut head, 0).is_err()
        || head[..6] != *b"\x7fELF\x02\x01"
        || ![2, 3].contains(&number(&head, 16, 2))
        || number(&head, 18, 2) != X86_64
    {
        return Some(FOREIGN);
    }
    let (table, count) = (number(&head, 32, 8), number(&head, 56, 2));
    let len = file.metadata().map_or(0, |metadata| metadata.len());
    for entry in 0..count {
        let mut bytes = [0; ENTRY];
        let at = table.saturating_add(entry * ENTRY as u64);
        let is_there = file.read_exact_at(&mut bytes, at).is_ok();
        if !is_there || number(&bytes, 8, 8).saturating_add(number(&bytes, 32, 8)) > len {
            return Some("is cut off: its headers name more bytes than it has");
        }
    }
    match rustix::fs::access(path, rustix::fs::Access::EXEC_OK) {
        Ok(()) => None,
        Err(_) => Some("is not executable"),
    }
}

/// What a kernel says of its release when it is asked for nothing else: `6.1.140`.
///
/// # Errors
/// It can't be started, or says nothing of the kind.
pub fn release(kernel: &Path) -> Result<String, Fault> {
    const PATIENCE: Duration = Duration::from_secs(5);
    let machine = |why| Fault::Machine("asking a guest kernel for its release", why);
    let mut asked = Command::new(kernel)
        .arg("--version")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(machine)?;
    let until = Instant::now() + PATIENCE;
    while asked.try_wait().map_err(machine)?.is_none() && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(2));
    }
    let _ = asked.kill();
    let text = asked.wait_with_output().map_err(machine)?.stdout;
    let text = String::from_utf8_lossy(&text).trim().to_owned();
    let is_release = |text: &str| {
        let mut parts = text.split(['.', '-', '+']);
        let mut is_number = || parts.next().is_some_and(|part| part.parse::<u32>().is_ok());
        is_number() && is_number() && !text.contains(char::is_whitespace)
    };
    match is_release(&text) {
        true => Ok(text),
        false => Err(Fault::Foreign { kernel: kernel.to_owned(), console: text }),
    }
}

/// FNV-1a, 64 bits.
pub(crate) fn digest(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |digest, byte| {
        (digest ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_with_a_file_is_said() {
        let own = std::env::current_exe().expect("a test has a path");
        assert_eq!(wrong_with(&own), None);
        let folder = std::env::temp_dir().join(format!("sojourn-files-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder for a test");
        let written = |name: &str, bytes: &[u8], mode: u32| {
            let path = folder.join(name);
            fs::write(&path, bytes).expect("it can be written");
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("it is ours");
            wrong_with(&path).unwrap_or_default()
        };
        let whole = fs::read(&own).expect("it can be read");
        assert!(written("text", b"no kernel", 0o755).contains("no executable"));
        assert!(written("cut", &whole[..4096], 0o755).contains("cut off"));
        assert!(written("data", &whole, 0o644).contains("not executable"));
        let mut other = whole[..64].to_vec();
        other[18] = 183;
        assert!(written("arm", &other, 0o755).contains("64-bit x86"));
        fs::remove_dir_all(&folder).expect("nobody uses it");
    }

    #[test]
    fn what_says_no_release_is_no_kernel() {
        let problem = release(Path::new("/bin/true")).expect_err("it has no release");
        assert!(problem.to_string().contains("no kernel built for user mode"), "{problem}");
    }
}
