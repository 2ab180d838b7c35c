//! What a control is made with: a compiler, a loader, and what the kernel says of its types.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What the kernel says of its types.
pub(super) const TYPES: &str = "/sys/kernel/btf/vmlinux";

/// Where programs for root are, also if the path doesn't say so.
const MORE: [&str; 2] = ["/usr/sbin", "/sbin"];

/// Something that a control is loaded with.
#[derive(Clone, Debug)]
pub struct Tool {
    pub name: &'static str,
    /// What is there; or that it is not, and what to type.
    pub found: Result<String, String>,
}

/// Looks at everything.
pub fn tools() -> Vec<Tool> {
    let says = |name, version: &str, package| {
        Ok(first_line(&program(name, package)?, version).unwrap_or_else(|| "yes".to_owned()))
    };
    vec![
        Tool { name: "clang", found: says("clang", "--version", CLANG) },
        Tool { name: "bpftool", found: says("bpftool", "version", BPFTOOL) },
        Tool { name: "BTF of the kernel", found: types().map(|()| TYPES.to_owned()) },
        Tool { name: "BPF JIT of the kernel", found: jit() },
    ]
}

/// What to type for them.
const CLANG: &str = "sudo apt install clang";
const BPFTOOL: &str =
    "sudo apt install bpftool, on Ubuntu sudo apt install linux-tools-$(uname -r)";

pub(super) fn clang() -> Result<PathBuf, String> {
    program("clang", CLANG)
}

pub(super) fn bpftool() -> Result<PathBuf, String> {
    program("bpftool", BPFTOOL)
}

/// Where a program is that can be run.
fn program(name: &str, package: &str) -> Result<PathBuf, String> {
    let paths = env::var_os("PATH").unwrap_or_default();
    let folders = env::split_paths(&paths).chain(MORE.map(PathBuf::from));
    folders
        .map(|folder| folder.join(name))
        .find(|path| path.is_file())
        .ok_or_else(|| format!("{name} is not installed: {package}"))
}

pub(super) fn types() -> Result<(), String> {
    match Path::new(TYPES).is_file() {
        true => Ok(()),
        false => Err(format!(
            "{TYPES} is missing: this kernel was built without CONFIG_DEBUG_INFO_BTF, and can't load congestion controls"
        )),
    }
}

fn jit() -> Result<String, String> {
    let path = "/proc/sys/net/core/bpf_jit_enable";
    match fs::read_to_string(path).as_deref().map(str::trim) {
        Ok("0") => Err("switched off: sudo sysctl net.core.bpf_jit_enable=1".to_owned()),
        Ok(_) => Ok("yes".to_owned()),
        // Only root may read it, and kernels that have nothing else have no switch.
        Err(error) => Err(format!("unknown: {path}: {error}")),
    }
}

fn first_line(program: &Path, argument: &str) -> Option<String> {
    let mut command = Command::new(program);
    command.arg(argument).stdin(Stdio::null()).stderr(Stdio::null());
    let output = command.output().ok().filter(|output| output.status.success())?;
    let text = String::from_utf8_lossy(&output.stdout);
    Some(text.lines().next().unwrap_or_default().to_owned())
}
