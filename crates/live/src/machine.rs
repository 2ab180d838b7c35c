//! What this machine can, and what to type if it can't.

use std::fs;
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::atomic::AtomicBool;

pub use crate::bottleneck::under_way;
pub use crate::cca::congestion_controls;
use crate::sys::{self, Own, Priority};
use crate::{cca, testbed, traffic};

/// Something that live runs need, or that makes them better.
#[derive(Clone, Debug)]
pub struct Capability {
    pub name: &'static str,
    /// Without it nothing runs live.
    pub is_needed: bool,
    /// What is there; or why it is not, and what to type.
    pub found: Result<String, String>,
}

/// Looks at everything.
pub fn capabilities() -> Vec<Capability> {
    let capability = |name, is_needed, found| Capability { name, is_needed, found };
    vec![
        capability("network namespaces", true, namespaces()),
        capability("devices", true, devices()),
        capability(
            "congestion controls of the kernel",
            true,
            congestion_controls().map(|names| names.join(", ")),
        ),
        capability("real-time priority", false, priority()),
        capability("iperf3", false, iperf3()),
    ]
    .into_iter()
    .chain(cca::tools().into_iter().map(|tool| capability(tool.name, false, tool.found)))
    .collect()
}

/// Without the rights of root, makes this process root in a user namespace of its own, where it may make
/// networks. Call it while the process has one thread; if the system does not allow it, nothing changes, and
/// [`capabilities`] says what is missing.
pub fn become_root() {
    let (user, group) = sys::user_and_group();
    if user == 0 || sys::unshare(Own::User).is_err() {
        return;
    }
    // Without these the process is nobody there, and what it lacks is reported by what it then tries.
    let _ = fs::write("/proc/self/setgroups", "deny");
    let _ = fs::write("/proc/self/uid_map", format!("0 {user} 1"));
    let _ = fs::write("/proc/self/gid_map", format!("0 {group} 1"));
}

/// From now on the first Ctrl-C (SIGINT, or SIGTERM) sets what this gives back, which ends live runs, and the second ends the process.
pub fn watch_interrupts() -> &'static AtomicBool {
    sys::watch_interrupts()
}

/// # Errors
/// What is missing to make networks, and what to type.
pub fn has_networks() -> Result<(), String> {
    namespaces()?;
    devices().map(|_| ())
}

/// # Errors
/// What is missing to run flows with these congestion controls, and what to type.
pub(crate) fn can_run(controls: &[&str]) -> Result<(), String> {
    has_networks()?;
    // In a network of one's own a user may ask for each; asking loads its module, if there is one and root asks.
    let missing: Vec<&str> = testbed::on_thread(|| {
        sys::unshare(Own::Network).map_err(|error| format!("no network namespaces: {error}"))?;
        Ok(controls.iter().copied().filter(|name| !traffic::knows_control(name)).collect())
    })?;
    if missing.is_empty() {
        return Ok(());
    }
    let known = congestion_controls()?;
    let plural = if missing.len() == 1 { "" } else { "s" };
    Err(format!(
        "this kernel has no congestion control{plural} '{}'; it has {}. {}",
        missing.join("', '"),
        known.join(", "),
        cca::advice(&missing)
    ))
}

fn namespaces() -> Result<String, String> {
    testbed::on_thread(|| {
        sys::unshare(Own::Network)
            .map(|()| "yes".to_owned())
            .map_err(|error| format!("no network namespaces: {error}; run as root: sudo sojourn …"))
    })
}

fn devices() -> Result<String, String> {
    testbed::on_thread(|| {
        sys::unshare(Own::Network).map_err(|error| {
            format!("no network namespaces: {error}; run as root: sudo sojourn …")
        })?;
        let file = testbed::open_tun().map_err(|error| {
            let instead = match Path::new(testbed::TUN).exists() {
                true => "run as root: sudo sojourn …, or let users have it: sudo chmod 0666 /dev/net/tun",
                false => "load its module: sudo modprobe tun",
            };
            format!("{}: {error}; {instead}", testbed::TUN)
        })?;
        sys::make_tun(file.as_fd(), false)
            .map(|()| format!("{}, yes", testbed::TUN))
            .map_err(|error| format!("{}: {error}; run as root: sudo sojourn …", testbed::TUN))
    })
}

fn priority() -> Result<String, String> {
    testbed::on_thread(|| {
        sys::set_priority(Priority::First).map(|()| "yes".to_owned()).map_err(|error| {
            format!("no: {error}; other work makes packets late; run as root, or: sudo setcap cap_sys_nice+ep $(which sojourn)")
        })
    })
}

fn iperf3() -> Result<String, String> {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&paths)
        .map(|folder| folder.join("iperf3"))
        .find(|path| path.is_file())
        .map(|path| path.display().to_string())
        .ok_or_else(|| {
            "not installed; sojourn has senders of its own; sudo apt install iperf3".to_owned()
        })
}

/// The time that the hypervisor gave to others, as `/proc/stat` counts it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stolen {
    /// Ticks stolen, and all ticks, of all processors; `None` if the system does not say.
    ticks: Option<(u64, u64)>,
}

impl Stolen {
    pub(crate) fn now() -> Self {
        Self { ticks: fs::read_to_string("/proc/stat").ok().and_then(|text| ticks(&text)) }
    }

    /// The part of the processors' time that was stolen since.
    pub(crate) fn share_since(&self) -> Option<f64> {
        let ((before, all_before), (after, all_after)) = (self.ticks?, Self::now().ticks?);
        let all = all_after.checked_sub(all_before).filter(|all| *all > 0)?;
        Some(after.saturating_sub(before) as f64 / all as f64)
    }
}

/// From the line of all processors: user, nice, system, idle, iowait, irq, softirq, steal; what follows is
/// in the first two already.
fn ticks(stat: &str) -> Option<(u64, u64)> {
    let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let fields: Vec<u64> =
        line.split_whitespace().take(8).map(|field| field.parse().ok()).collect::<Option<_>>()?;
    let all = fields.iter().try_fold(0_u64, |sum, field| sum.checked_add(*field))?;
    Some((*fields.get(7)?, all))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn stolen_ticks_are_the_eighth() {
        let stat = "cpu  10 1 20 100 2 3 4 5 6 7\ncpu0 1 1 1 1 1 1 1 1 1 1\n";
        assert_eq!(ticks(stat), Some((5, 145)));
        assert_eq!(ticks("cpu 1 2 3\n"), None);
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "(cpu [0-9 ]{0,60}\n)?\\PC{0,20}") {
            let _ = ticks(&text);
        }
    }
}
