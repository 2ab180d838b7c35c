//! Builds a kernel for guests from source.
//!
//! The kernel is under the GPL: nothing of it is part of this program. Its source comes from the user's distribution or
//! from the user, and the built kernel stays in the user's cache.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::fault::Fault;
use crate::install;

/// What a guest's kernel has beside what every one has; everything else is left out.
const OPTIONS: &str = include_str!("kernel-options");

/// Debian's and Ubuntu's packages with what a build needs.
const PACKAGES: &str = "linux-source flex bison bc libelf-dev gcc make xz-utils";

/// Files that are compiled, about: for the progress of the build.
const FILES: usize = 760;

/// What is to be built.
#[derive(Clone, Debug, Default)]
pub struct Build {
    /// A kernel's source tree; without it Debian's package is used.
    pub source: Option<PathBuf>,
    /// What the built kernel is called; without it `linux`, or as the folder of the source.
    pub name: Option<String>,
}

impl Build {
    /// Builds it and says where it is. `tell` is told what is done, and how many of how many files are compiled.
    ///
    /// # Errors
    /// What is missing on this machine, or what the build printed last.
    pub fn run(
        &self,
        mut tell: impl FnMut(&str, Option<(usize, usize)>),
    ) -> Result<PathBuf, Fault> {
        // The source of Debian 12 and 13 is of such a kernel.
        if self.source.is_none() && install::has_matrix_registers() {
            return Err(Fault::Missing(install::UNFIT.to_owned()));
        }
        let cache = install::cache()?;
        make_folder(&cache)?;
        let missing = missing_tools();
        if !missing.is_empty() {
            let problem =
                format!("{} missing; for example: apt-get install {PACKAGES}", missing.join(", "));
            return Err(Fault::Missing(problem));
        }
        let source = match &self.source {
            Some(source) => fs::canonicalize(source)
                .map_err(|why| Fault::Machine("reading the source tree", why))?,
            None => unpacked(&cache, &mut tell)?,
        };
        if !source.join("arch/um/Kconfig").is_file() {
            let problem =
                format!("{} is no source tree of a Linux kernel with arch/um", source.display());
            return Err(Fault::Missing(problem));
        }
        let name = self.name()?;
        let folder = cache.join(format!("build-{name}"));
        make_folder(&folder)?;
        let _lock = install::lock_build(&name)?;
        tell("configuring", None);
        self.configure(&source, &folder)?;
        compile(&source, &folder, &mut tell)?;
        let built = cache.join(&name);
        let copied = fs::copy(folder.join("linux"), cache.join(format!("{name}.new")));
        copied
            .and_then(|_| fs::rename(cache.join(format!("{name}.new")), &built))
            .map_err(|why| Fault::Machine("copying the kernel", why))?;
        Ok(built)
    }

    fn name(&self) -> Result<String, Fault> {
        let of_source = || {
            self.source
                .as_deref()
                .and_then(Path::file_name)
                .map(|n| n.to_string_lossy().into_owned())
        };
        let name = self.name.clone().or_else(of_source).unwrap_or_else(|| "linux".to_owned());
        let is_good = !name.is_empty()
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
            && !name.starts_with('.');
        match is_good {
            true => Ok(name),
            false => Err(Fault::Missing(format!(
                "'{name}' can't be the name of a kernel: letters, digits, - _ ."
            ))),
        }
    }

    fn configure(&self, source: &Path, folder: &Path) -> Result<(), Fault> {
        let fragment = folder.join("options");
        let lines: String = OPTIONS.lines().map(|option| format!("CONFIG_{option}=y\n")).collect();
        fs::write(&fragment, lines).map_err(|why| install::unwritable(&fragment, &why))?;
        let mut command = make(source, folder);
        command.arg("allnoconfig").env("KCONFIG_ALLCONFIG", &fragment);
        let output = command.output().map_err(|why| Fault::Machine("starting make", why))?;
        if !output.status.success() {
            return Err(Fault::Refused(format!(
                "the kernel can't be configured: {}",
                end_of(&output.stderr)
            )));
        }
        let config = fs::read_to_string(folder.join(".config")).unwrap_or_default();
        for needed in ["UML_TIME_TRAVEL_SUPPORT", "VIRTIO_UML", "VIRTIO_NET", "HOSTFS", "INET"] {
            if !config.contains(&format!("CONFIG_{needed}=y")) {
                let problem = format!(
                    "this source tree knows no {needed}: it is older than 5.5, or was cut down"
                );
                return Err(Fault::Refused(problem));
            }
        }
        Ok(())
    }
}

fn make(source: &Path, folder: &Path) -> Command {
    let mut command = Command::new("make");
    let mut output = std::ffi::OsString::from("O=");
    output.push(folder);
    command.arg("-C").arg(source).arg("ARCH=um").arg(output);
    // The same source gives the same bytes.
    command
        .env("KBUILD_BUILD_TIMESTAMP", "2026-01-01")
        .env("KBUILD_BUILD_USER", "sojourn")
        .env("KBUILD_BUILD_HOST", "sojourn");
    command.stdin(Stdio::null());
    command
}

fn compile(
    source: &Path,
    folder: &Path,
    tell: &mut impl FnMut(&str, Option<(usize, usize)>),
) -> Result<(), Fault> {
    let machine = |why| Fault::Machine("building the kernel", why);
    let log = folder.join("build.log");
    let errors = fs::File::create(&log).map_err(machine)?;
    let mut output = errors.try_clone().map_err(machine)?;
    let jobs = std::thread::available_parallelism().map_or(1, NonZero::get);
    let mut command = make(source, folder);
    command.arg(format!("-j{jobs}")).arg("linux").stdout(Stdio::piped()).stderr(errors);
    let mut child = command.spawn().map_err(machine)?;
    let stdout = child.stdout.take().expect("it is piped");
    let mut done = 0;
    for line in BufReader::new(stdout).split(b'\n') {
        let line = line.map_err(machine)?;
        if line.starts_with(b"  CC ") {
            done += 1;
            tell("compiling", Some((done, FILES.max(done))));
        }
        output.write_all(&line).and_then(|()| output.write_all(b"\n")).map_err(machine)?;
    }
    let status = child.wait().map_err(machine)?;
    if !status.success() || !folder.join("linux").is_file() {
        let text = fs::read(&log).unwrap_or_default();
        let what = first_error(&text).unwrap_or_else(|| end_of(&text));
        let problem = format!("the kernel can't be built: {what} (more in {})", log.display());
        return Err(Fault::Refused(problem));
    }
    Ok(())
}

/// The source tree of the distribution's package, in the cache.
fn unpacked(
    cache: &Path,
    tell: &mut impl FnMut(&str, Option<(usize, usize)>),
) -> Result<PathBuf, Fault> {
    if packaged().is_none() {
        tell("installing the package linux-source", None);
        install_package();
    }
    let Some(archive) = packaged() else {
        let problem = format!(
            "there is no kernel source: apt-get install {PACKAGES}, or give a tree with --source"
        );
        return Err(Fault::Missing(problem));
    };
    let name = archive.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let folder = cache.join(name.trim_end_matches(".tar.xz").trim_end_matches(".tar.bz2"));
    if folder.join("Makefile").is_file() {
        return Ok(folder);
    }
    tell(&format!("unpacking {name}"), None);
    // Whoever unpacks it at this moment is waited for.
    let alone = fs::File::open(cache).and_then(|cache| cache.lock().map(|()| cache));
    let _alone = alone.map_err(|why| Fault::Machine("locking the cache", why))?;
    if folder.join("Makefile").is_file() {
        return Ok(folder);
    }
    let new = cache.join(format!("{name}.new"));
    make_folder(&new)?;
    let status = Command::new("tar")
        .arg("xf")
        .arg(&archive)
        .arg("--strip-components=1")
        .arg("-C")
        .arg(&new)
        .status();
    match status {
        Ok(status) if status.success() => {}
        Ok(_) => return Err(Fault::Refused(format!("{} can't be unpacked", archive.display()))),
        Err(why) => return Err(Fault::Machine("starting tar", why)),
    }
    fs::rename(&new, &folder).map_err(|why| Fault::Machine("unpacking the kernel", why))?;
    Ok(folder)
}

/// The newest archive of a kernel's source that a package has put where such packages do.
fn packaged() -> Option<PathBuf> {
    let entries = fs::read_dir("/usr/src").ok()?;
    let version = |path: &Path| {
        let name = path.file_name()?.to_str()?;
        let rest = name.strip_prefix("linux-source-")?;
        let rest = rest.strip_suffix(".tar.xz").or_else(|| rest.strip_suffix(".tar.bz2"))?;
        let numbers: Option<Vec<u32>> = rest.split('.').map(|number| number.parse().ok()).collect();
        numbers
    };
    let paths = entries.flatten().map(|entry| entry.path());
    paths.filter_map(|path| Some((version(&path)?, path))).max().map(|(_, path)| path)
}

/// Only root can, and only where there is `apt-get`; what is then missing is said afterwards.
fn install_package() {
    if rustix::process::geteuid().is_root() {
        let mut command = Command::new("apt-get");
        command.args(["install", "-y", "-qq", "--no-install-recommends", "linux-source"]);
        let _ = command.stdin(Stdio::null()).stdout(Stdio::null()).status();
    }
}

/// What a build needs and is not here.
pub fn missing_tools() -> Vec<&'static str> {
    const TOOLS: [&str; 7] = ["make", "gcc", "flex", "bison", "bc", "tar", "xz"];
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    TOOLS
        .into_iter()
        .filter(|tool| !folders.iter().any(|folder| folder.join(tool).is_file()))
        .collect()
}

fn make_folder(path: &Path) -> Result<(), Fault> {
    fs::create_dir_all(path).map_err(|why| install::unwritable(path, &why))
}

/// What the compiler, or else `make`, complains of first.
fn first_error(text: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(text);
    let with = |word: &str| text.lines().find(|line| line.contains(word));
    let line = with(": error: ")
        .or_else(|| with("undefined reference"))
        .or_else(|| with("fatal error"))
        .or_else(|| with("*** "))?;
    Some(line.trim().to_owned())
}

fn end_of(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(3)..].join(" | ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_is_named_as_its_folder() {
        let build = |source: Option<&str>, name: Option<&str>| Build {
            source: source.map(PathBuf::from),
            name: name.map(str::to_owned),
        };
        assert_eq!(build(None, None).name().ok().as_deref(), Some("linux"));
        assert_eq!(build(Some("/src/mine"), None).name().ok().as_deref(), Some("mine"));
        assert_eq!(build(Some("/src/mine"), Some("v2")).name().ok().as_deref(), Some("v2"));
        assert!(build(None, Some("../x")).name().is_err());
    }

    #[test]
    fn a_folder_without_a_kernel_is_refused() {
        let build = Build { source: Some(std::env::temp_dir()), name: Some("none".to_owned()) };
        assert!(build.run(|_, _| {}).is_err());
    }

    #[test]
    fn the_first_complaint_is_the_reason() {
        let log = b"  CC net/a.o\nnet/a.c:3:1: error: expected ';'\nnet/a.c:9:1: error: other\nmake: *** [Makefile:2: net] Error 2\n";
        assert_eq!(first_error(log).as_deref(), Some("net/a.c:3:1: error: expected ';'"));
        assert_eq!(first_error(b"all is well"), None);
    }

    #[test]
    fn options_are_names() {
        let is_name = |option: &str| {
            option.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_')
        };
        assert!(OPTIONS.lines().count() > 40 && OPTIONS.lines().all(is_name));
    }
}
