//! The hosts: network namespaces without names, each with one device that leads to the bottleneck.
//!
//! A namespace lives as long as something holds it: a file descriptor, a socket, a process. Nothing has
//! a name, so nothing is left when the process ends, however it ends, and runs never meet.

use std::fs::{File, OpenOptions};
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::thread;

use rustix::net::{AddressFamily, SocketFlags, SocketType, ipproto, socket_with};
use sojourn_core::HostId;

use crate::address;
use crate::frame::MTU;
use crate::sys::{self, DEVICE, Own, Person, Setting};

/// Packets that wait in a host's device until the bottleneck reads them: so many that none is lost there.
const DEVICE_QUEUE: u32 = 10_000;
pub(crate) const TUN: &str = "/dev/net/tun";

/// A host.
#[derive(Debug)]
pub(crate) struct Host {
    namespace: OwnedFd,
    /// What the host sends is read here, and what is written here comes to it.
    pub(crate) device: File,
}

/// How the kernel of a host does TCP, for all its connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kernel {
    /// `net.ipv4.tcp_ecn`.
    pub(crate) ecn: u8,
    /// The third of `tcp_rmem` and of `tcp_wmem`, in bytes; `None` is the kernel's own.
    pub(crate) most_receive_buffer: Option<u64>,
    pub(crate) most_send_buffer: Option<u64>,
}

impl Host {
    /// # Errors
    /// What could not be done, and why: mostly that the caller may not.
    pub(crate) fn new(id: HostId, kernel: &Kernel, offloads: bool) -> Result<Self, String> {
        let address = address::of_host(id);
        on_thread(move || {
            let host = Self::here(address, offloads)?;
            kernel.apply()?;
            Ok(host)
        })
    }

    /// Makes the calling thread's namespace that of the host.
    fn here(address: Ipv4Addr, offloads: bool) -> Result<Self, String> {
        sys::unshare(Own::Network).map_err(|error| format!("no network namespace: {error}"))?;
        let namespace: OwnedFd = File::open("/proc/thread-self/ns/net")
            .map_err(|error| format!("/proc/thread-self/ns/net: {error}"))?
            .into();
        let device = open_tun().map_err(|error| format!("{TUN}: {error}"))?;
        sys::make_tun(device.as_fd(), offloads)
            .map_err(|error| format!("{TUN}: no device: {error}"))?;
        let socket = control_socket().map_err(|error| format!("no socket: {error}"))?;
        let set = |name: &str, setting| {
            sys::set_device(socket.as_fd(), name, setting)
                .map_err(|error| format!("device {name}: {setting:?}: {error}"))
        };
        set("lo", Setting::Up)?;
        // Packets of version 6 of IP would be nobody's.
        write_setting(Path::new("/proc/sys/net/ipv6/conf/all/disable_ipv6"), "1").ok();
        set(DEVICE, Setting::Mtu(MTU as u32))?;
        // Only root may ask for it in this way; for others the device holds 500 packets.
        let longer = sys::set_device(socket.as_fd(), DEVICE, Setting::QueueLength(DEVICE_QUEUE));
        if let Err(error) = longer
            && error.kind() != io::ErrorKind::PermissionDenied
        {
            return Err(format!("device {DEVICE}: a queue of {DEVICE_QUEUE} packets: {error}"));
        }
        set(DEVICE, Setting::Address(address))?;
        set(DEVICE, Setting::Netmask(address::NETMASK))?;
        set(DEVICE, Setting::Up)?;
        Ok(Self { namespace, device })
    }

    /// The namespace, to be entered.
    pub(crate) fn namespace(&self) -> BorrowedFd<'_> {
        self.namespace.as_fd()
    }
}

impl Kernel {
    /// Of a host without TCP.
    pub(crate) const USUAL: Self =
        Self { ecn: 2, most_receive_buffer: None, most_send_buffer: None };

    /// Sets what the calling thread's namespace is to do.
    fn apply(&self) -> Result<(), String> {
        let folder = Path::new("/proc/sys/net/ipv4");
        let set = |name: &str, value: &str| {
            write_setting(&folder.join(name), value)
                .map_err(|error| format!("net.ipv4.{name}={value}: {error}"))
        };
        set("tcp_ecn", &self.ecn.to_string())?;
        // A connection must not know what an earlier one learned.
        set("tcp_no_metrics_save", "1")?;
        for (name, most) in
            [("tcp_rmem", self.most_receive_buffer), ("tcp_wmem", self.most_send_buffer)]
        {
            let Some(most) = most else { continue };
            let path = folder.join(name);
            let known = std::fs::read_to_string(&path)
                .map_err(|error| format!("net.ipv4.{name}: {error}"))?;
            let known: Vec<u64> =
                known.split_whitespace().filter_map(|word| word.parse().ok()).collect();
            let [least, usual, _] = known[..] else {
                return Err(format!("net.ipv4.{name}: not three numbers"));
            };
            set(name, &format!("{} {} {most}", least.min(most), usual.min(most)))?;
        }
        Ok(())
    }
}

fn write_setting(path: &Path, value: &str) -> io::Result<()> {
    std::fs::write(path, value)
}

/// Who asked `sudo` for root's rights, to whom the user's own programs then belong.
pub(crate) fn person() -> Option<Person> {
    let number = |name: &str| std::env::var(name).ok()?.parse().ok();
    let (0, _) = sys::user_and_group() else { return None };
    let person = Person { user: number("SUDO_UID")?, group: number("SUDO_GID")? };
    (person.user != 0).then_some(person)
}

/// The home of a user, as `/etc/passwd` has it.
pub(crate) fn home_of(user: u32) -> Option<String> {
    let users = std::fs::read_to_string("/etc/passwd").ok()?;
    let mut lines = users.lines().map(|line| line.split(':').collect::<Vec<_>>());
    let line = lines.find(|fields| fields.get(2).is_some_and(|id| *id == user.to_string()))?;
    line.get(5).map(|home| (*home).to_owned())
}

/// Whether something in a host listens at a port, of TCP or UDP.
pub(crate) fn listens(host: &Host, port: u16) -> Result<bool, String> {
    on_thread(|| {
        sys::enter_network(host.namespace()).map_err(|error| format!("a host: {error}"))?;
        Ok(["tcp", "tcp6", "udp", "udp6"].iter().any(|protocol| {
            let path = format!("/proc/thread-self/net/{protocol}");
            let state = if protocol.starts_with("tcp") { "0A" } else { "07" };
            std::fs::read_to_string(path).is_ok_and(|table| has_socket(&table, port, state))
        }))
    })
}

/// Whether a table of sockets (proc(5), `/proc/net/tcp`) has one at a port in a state.
fn has_socket(table: &str, port: u16, state: &str) -> bool {
    table.lines().skip(1).any(|line| {
        let mut fields = line.split_whitespace();
        let local = fields.nth(1).and_then(|local| local.rsplit_once(':'));
        local.is_some_and(|(_, own)| u16::from_str_radix(own, 16) == Ok(port))
            && fields.nth(1) == Some(state)
    })
}

/// A socket through which the devices of the calling thread's namespace are set.
fn control_socket() -> io::Result<OwnedFd> {
    Ok(socket_with(
        AddressFamily::INET,
        SocketType::DGRAM,
        SocketFlags::CLOEXEC,
        Some(ipproto::UDP),
    )?)
}

/// From which devices are made.
pub(crate) fn open_tun() -> io::Result<File> {
    OpenOptions::new().read(true).write(true).custom_flags(libc::O_NONBLOCK).open(TUN)
}

/// Namespaces belong to threads, so what changes them has one of its own.
pub(crate) fn on_thread<T: Send>(
    act: impl FnOnce() -> Result<T, String> + Send,
) -> Result<T, String> {
    thread::scope(|scope| {
        scope.spawn(act).join().unwrap_or_else(|_| Err("a thread of a host panicked".to_owned()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_is_found_by_port_and_state() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue\n   \
                     0: 00000000:2710 00000000:0000 0A 00000000:00000000 00:00000000\n";
        assert!(has_socket(table, 10_000, "0A"));
        assert!(!has_socket(table, 10_000, "01") && !has_socket(table, 10_001, "0A"));
        assert!(!has_socket("head\n: x\n\n1: :\n", 0, "0A"));
    }
}
