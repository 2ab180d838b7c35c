//! The calls to the kernel for which no safe function exists elsewhere. All `unsafe` code of the
//! project is in this file.

use std::ffi::{c_int, c_ulong, c_void};
use std::io;
use std::mem::{size_of, size_of_val};
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

/// The name of the only device of a host beside its loopback.
pub(crate) const DEVICE: &str = "eth0";

/// Turns an open `/dev/net/tun` into a network device called [`DEVICE`] of the calling thread's network
/// namespace. What is read from it are IP packets without anything before them.
///
/// # Errors
/// The kernel's: mostly that the caller may not (`EPERM`).
pub(crate) fn make_tun(file: BorrowedFd<'_>) -> io::Result<()> {
    let mut request = request(DEVICE);
    request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI) as i16;
    device_call(file, libc::TUNSETIFF, &mut request)
}

/// What is asked of a device.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Setting {
    Address(Ipv4Addr),
    Netmask(Ipv4Addr),
    Mtu(u32),
    /// Packets that wait in the device before it drops.
    QueueLength(u32),
    Up,
}

/// Sets a device of the network namespace to which `socket` belongs.
///
/// # Errors
/// The kernel's.
pub(crate) fn set_device(socket: BorrowedFd<'_>, name: &str, setting: Setting) -> io::Result<()> {
    let mut request = request(name);
    let call = match setting {
        Setting::Address(address) => {
            request.ifr_ifru.ifru_addr = socket_address(address);
            libc::SIOCSIFADDR
        }
        Setting::Netmask(mask) => {
            request.ifr_ifru.ifru_netmask = socket_address(mask);
            libc::SIOCSIFNETMASK
        }
        Setting::Mtu(mtu) => {
            request.ifr_ifru.ifru_mtu = mtu as c_int;
            libc::SIOCSIFMTU
        }
        Setting::QueueLength(packets) => {
            request.ifr_ifru.ifru_ifindex = packets as c_int;
            libc::SIOCSIFTXQLEN
        }
        Setting::Up => {
            request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as i16;
            libc::SIOCSIFFLAGS
        }
    };
    device_call(socket, call, &mut request)
}

fn request(name: &str) -> libc::ifreq {
    // SAFETY: `ifreq` is plain numbers, for which zero is a value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    // The last byte stays zero.
    let room = request.ifr_name.len() - 1;
    for (to, from) in request.ifr_name.iter_mut().take(room).zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    request
}

fn socket_address(address: Ipv4Addr) -> libc::sockaddr {
    // `sockaddr_in` has the port and then the address after the family.
    let mut data = [0; 14];
    for (to, from) in data[2..6].iter_mut().zip(address.octets()) {
        *to = from as libc::c_char;
    }
    libc::sockaddr { sa_family: libc::AF_INET as libc::sa_family_t, sa_data: data }
}

fn device_call(fd: BorrowedFd<'_>, call: c_ulong, request: &mut libc::ifreq) -> io::Result<()> {
    // SAFETY: every call that this file passes reads or writes one `ifreq`, which outlives it.
    let result = unsafe { libc::ioctl(fd.as_raw_fd(), call as _, std::ptr::from_mut(request)) };
    done(result)
}

/// The first bytes of a socket's option that is a structure of the kernel's.
///
/// # Errors
/// The kernel's: mostly that the socket has no such option.
pub(crate) fn socket_option<'a>(
    socket: BorrowedFd<'_>,
    level: c_int,
    option: c_int,
    buffer: &'a mut [u8],
) -> io::Result<&'a [u8]> {
    let mut length = buffer.len() as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes, which is how long the buffer is, and to `length`.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            level,
            option,
            buffer.as_mut_ptr().cast::<c_void>(),
            &raw mut length,
        )
    };
    done(result)?;
    Ok(&buffer[..(length as usize).min(buffer.len())])
}

/// Sets a socket's option that is a number.
///
/// # Errors
/// The kernel's.
pub(crate) fn set_socket_option(
    socket: impl AsFd,
    level: c_int,
    option: c_int,
    value: c_int,
) -> io::Result<()> {
    // SAFETY: the kernel reads as many bytes as an `int` has, from one that outlives the call.
    let result = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            level,
            option,
            (&raw const value).cast::<c_void>(),
            size_of_val(&value) as libc::socklen_t,
        )
    };
    done(result)
}

/// Namespaces that the calling thread, and what it starts, gets for itself.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Own {
    Network,
    /// Only a process with a single thread can have one.
    User,
}

/// # Errors
/// The kernel's: mostly that the caller may not (`EPERM`).
pub(crate) fn unshare(own: Own) -> io::Result<()> {
    let flags = match own {
        Own::Network => libc::CLONE_NEWNET,
        Own::User => libc::CLONE_NEWUSER,
    };
    // SAFETY: none of these flags takes apart what threads share of memory or files.
    done(unsafe { libc::unshare(flags) })
}

/// Moves the calling thread into a network namespace.
///
/// # Errors
/// The kernel's.
pub(crate) fn enter_network(namespace: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: it changes nothing in memory.
    done(unsafe { libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWNET) })
}

/// How the calling thread is scheduled.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Priority {
    /// Before all others, until it sleeps.
    First,
    /// After those, and before what has no real-time priority.
    Second,
}

/// # Errors
/// The kernel's: mostly that the caller may not (`EPERM`).
pub(crate) fn set_priority(priority: Priority) -> io::Result<()> {
    let (policy, level) = match priority {
        Priority::First => (libc::SCHED_FIFO, 20),
        Priority::Second => (libc::SCHED_RR, 10),
    };
    // SAFETY: `sched_param` is plain numbers, for which zero is a value.
    let mut parameters: libc::sched_param = unsafe { std::mem::zeroed() };
    parameters.sched_priority = level;
    // Children don't inherit it.
    let policy = policy | libc::SCHED_RESET_ON_FORK;
    // SAFETY: the kernel reads one `sched_param`, which outlives the call; 0 is the calling thread.
    done(unsafe { libc::sched_setscheduler(0, policy, &raw const parameters) })
}

/// The user and group of this process.
pub(crate) fn user_and_group() -> (u32, u32) {
    // SAFETY: they can't fail and change nothing.
    unsafe { (libc::geteuid(), libc::getegid()) }
}

fn done(result: c_int) -> io::Result<()> {
    match result {
        0.. => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

const _: () = assert!(size_of::<libc::sockaddr>() == size_of::<libc::sockaddr_in>());
