//! The hosts: network namespaces without names, each with one device that leads to the bottleneck.
//!
//! A namespace lives as long as something holds it: a file descriptor, a socket, a process. Nothing has
//! a name, so nothing is left when the process ends, however it ends, and runs never meet.

use std::fs::{File, OpenOptions};
use std::io;
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::thread;

use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, ipproto, recv, send, socket_with,
};
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
        let namespace = present_namespace()?;
        let device = open_tun().map_err(|error| format!("{TUN}: {error}"))?;
        sys::make_tun(device.as_fd(), offloads)
            .map_err(|error| format!("{TUN}: no device: {error}"))?;
        let socket = control_socket().map_err(|error| format!("no socket: {error}"))?;
        // Only root may ask for it in this way; for others the device holds 500 packets.
        let longer = sys::set_device(socket.as_fd(), DEVICE, Setting::QueueLength(DEVICE_QUEUE));
        if let Err(error) = longer
            && error.kind() != io::ErrorKind::PermissionDenied
        {
            return Err(format!("device {DEVICE}: a queue of {DEVICE_QUEUE} packets: {error}"));
        }
        bring_up(&socket, address)?;
        Ok(Self { namespace, device })
    }

    /// The namespace, to be entered.
    pub(crate) fn namespace(&self) -> BorrowedFd<'_> {
        self.namespace.as_fd()
    }
}

/// A host on an interface of this machine that leads to the bottleneck: a namespace whose device has an address of its own there
/// (macvlan), which is gone when this is dropped.
#[derive(Debug)]
pub(crate) struct OnInterface {
    namespace: OwnedFd,
}

impl OnInterface {
    pub(crate) fn namespace(&self) -> BorrowedFd<'_> {
        self.namespace.as_fd()
    }
}

/// Connections that nobody has any more would keep the namespace, and on the interface an address that the next run has, too.
impl Drop for OnInterface {
    fn drop(&mut self) {
        // Otherwise it is gone with the last of them.
        let _ = on_thread(|| {
            let entered = sys::enter_network(self.namespace.as_fd());
            let removed = entered.and_then(|()| Devices::new()?.remove());
            removed.map_err(|error| error.to_string())
        });
    }
}

/// So often a connection whose program was killed sends again before the kernel forgets it.
const ORPHAN_RETRIES: &str = "3";

/// Makes such a host.
///
/// # Errors
/// What could not be done, why, and what to type.
pub(crate) fn on_interface(
    id: HostId,
    interface: &str,
    kernel: &Kernel,
    offloads: bool,
) -> Result<OnInterface, String> {
    on_thread(|| {
        let problem = |text: String| format!("its interface '{interface}': {text}");
        let on = sys::is_up(interface)
            .map_err(|error| problem(format!("{error}; 'ip link' there shows what it has")))?;
        if !on {
            return Err(problem(format!(
                "it is down; type there: sudo ip link set {interface} up"
            )));
        }
        let number =
            sys::interface_number(interface).map_err(|error| problem(error.to_string()))?;
        let outside = Devices::new().map_err(|error| format!("no netlink: {error}"))?;
        sys::unshare(Own::Network).map_err(|error| {
            format!(
                "no network namespace: {error}; it needs root there: ssh = \"root@…\", or a user whose sudo asks for no \
                 password, or sojourn = \"/path\" to one with capabilities: sudo setcap \
                 cap_net_admin,cap_net_raw,cap_sys_admin,cap_sys_nice+ep /path"
            )
        })?;
        let namespace = present_namespace()?;
        outside.add_macvlan(number, namespace.as_fd()).map_err(|error| {
            let why = match error.raw_os_error() {
                Some(libc::EOPNOTSUPP) => "; type there: sudo modprobe macvlan",
                Some(libc::EBUSY) => "; is it part of a bridge?",
                _ => "",
            };
            problem(format!("no device on it: {error}{why}"))
        })?;
        let host = OnInterface { namespace };
        if !offloads {
            let inside = Devices::new().map_err(|error| format!("no netlink: {error}"))?;
            inside
                .send_single_segments()
                .map_err(|error| format!("device {DEVICE}: one segment a packet: {error}"))?;
        }
        let socket = control_socket().map_err(|error| format!("no socket: {error}"))?;
        bring_up(&socket, address::of_host(id))?;
        kernel.apply()?;
        write_setting(Path::new("/proc/sys/net/ipv4/tcp_orphan_retries"), ORPHAN_RETRIES)
            .map_err(|error| format!("net.ipv4.tcp_orphan_retries: {error}"))?;
        Ok(host)
    })
}

/// Lets a host ask its network for the device of another host's address.
pub(crate) fn ask_for_another(namespace: BorrowedFd<'_>, own: HostId) -> Result<(), String> {
    let other = address::of_host(HostId(u16::from(own.0 == 0)));
    let ask = || {
        sys::enter_network(namespace)?;
        // Nobody has to be there.
        UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?.send_to(&[0], (other, 9))
    };
    on_thread(|| ask().map(drop).map_err(|error| format!("nothing can be sent: {error}")))
}

/// Makes and sets devices of the namespace in which it was made: rtnetlink(7).
struct Devices(OwnedFd);

/// `RTM_NEWLINK` and `RTM_DELLINK`.
const NEW_LINK: u16 = 16;
const REMOVE_LINK: u16 = 17;

impl Devices {
    fn new() -> io::Result<Self> {
        // Its protocol 0 is that of devices and routes (`NETLINK_ROUTE`).
        let (family, kind) = (AddressFamily::NETLINK, SocketType::RAW);
        Ok(Self(socket_with(family, kind, SocketFlags::CLOEXEC, None)?))
    }

    /// Makes a device in a namespace, with an address of its own on the interface of this number.
    fn add_macvlan(&self, interface: u32, namespace: BorrowedFd<'_>) -> io::Result<()> {
        // Devices on one interface do not see each other (`MACVLAN_MODE_PRIVATE`).
        let private = attribute(2, &attribute(1, &1_u32.to_ne_bytes()));
        let kind = attribute(1, b"macvlan");
        // `NLM_F_CREATE` and `NLM_F_EXCL`; `IFLA_LINK`, `IFLA_LINKINFO`, `IFLA_NET_NS_FD`.
        self.ask(
            NEW_LINK,
            0x200 | 0x400,
            &[
                attribute(5, &interface.to_ne_bytes()),
                attribute(18, &[kind, private].concat()),
                attribute(28, &namespace.as_raw_fd().to_ne_bytes()),
            ],
        )
    }

    /// The kernel then cuts itself, and not the device (`IFLA_GSO_MAX_SEGS`).
    fn send_single_segments(&self) -> io::Result<()> {
        self.ask(NEW_LINK, 0, &[attribute(40, &1_u32.to_ne_bytes())])
    }

    fn remove(&self) -> io::Result<()> {
        self.ask(REMOVE_LINK, 0, &[])
    }

    /// What is to be done with the device of a host.
    fn ask(&self, what: u16, flags: u16, attributes: &[Vec<u8>]) -> io::Result<()> {
        // `struct ifinfomsg` without anything; `IFLA_IFNAME`.
        let mut body = vec![0; 16];
        body.extend(attribute(3, format!("{DEVICE}\0").as_bytes()));
        body.extend(attributes.concat());
        let mut message = Vec::new();
        message.extend((16 + body.len() as u32).to_ne_bytes());
        message.extend(what.to_ne_bytes());
        // It asks, and wants an answer.
        message.extend((flags | 0x1 | 0x4).to_ne_bytes());
        message.extend([0; 8]);
        message.extend(body);
        send(&self.0, &message, SendFlags::empty())?;
        let mut answer = [0; 1024];
        let (length, _) = recv(&self.0, &mut answer, RecvFlags::empty())?;
        // `NLMSG_ERROR`: 0, or the number of an error, negative.
        let error = answer[..length]
            .get(16..20)
            .filter(|_| answer[4..6] == 2_u16.to_ne_bytes())
            .and_then(|bytes| bytes.try_into().ok())
            .ok_or_else(|| io::Error::other("netlink gave no answer"))?;
        match i32::from_ne_bytes(error) {
            0 => Ok(()),
            error => Err(io::Error::from_raw_os_error(error.saturating_neg())),
        }
    }
}

/// An attribute of rtnetlink(7), with what fills it up to four bytes.
fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend((4 + value.len() as u16).to_ne_bytes());
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
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
pub(crate) fn listens(host: BorrowedFd<'_>, port: u16) -> Result<bool, String> {
    on_thread(|| {
        sys::enter_network(host).map_err(|error| format!("a host: {error}"))?;
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

fn present_namespace() -> Result<OwnedFd, String> {
    let path = "/proc/thread-self/ns/net";
    File::open(path).map(OwnedFd::from).map_err(|error| format!("{path}: {error}"))
}

/// Sets the host's devices, those of the calling thread's namespace.
fn bring_up(socket: &OwnedFd, address: Ipv4Addr) -> Result<(), String> {
    let set = |name: &str, setting| {
        sys::set_device(socket.as_fd(), name, setting)
            .map_err(|error| format!("device {name}: {setting:?}: {error}"))
    };
    set("lo", Setting::Up)?;
    // Packets of version 6 of IP would be nobody's.
    write_setting(Path::new("/proc/sys/net/ipv6/conf/all/disable_ipv6"), "1").ok();
    set(DEVICE, Setting::Mtu(MTU as u32))?;
    set(DEVICE, Setting::Address(address))?;
    set(DEVICE, Setting::Netmask(address::NETMASK))?;
    set(DEVICE, Setting::Up)
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
