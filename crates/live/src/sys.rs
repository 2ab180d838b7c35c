//! The calls to the kernel for which no safe function exists elsewhere. All `unsafe` code of the
//! project is in this file and in those below it.

use std::ffi::{c_int, c_uint, c_ulong, c_void};
use std::io;
use std::mem::{size_of, size_of_val};
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, Ordering};

pub(crate) mod bpf;

/// The name of the only device of a host beside its loopback.
pub(crate) const DEVICE: &str = "eth0";

/// Turns an open `/dev/net/tun` into a network device called [`DEVICE`] of the calling thread's network
/// namespace. What is read from it are IP packets without anything before them; with `offloads` such that the kernel
/// has not cut into segments, each with a `virtio_net_hdr` before it.
///
/// # Errors
/// The kernel's: mostly that the caller may not (`EPERM`).
pub(crate) fn make_tun(file: BorrowedFd<'_>, offloads: bool) -> io::Result<()> {
    let mut request = request(DEVICE);
    let more = if offloads { libc::IFF_VNET_HDR } else { 0 };
    request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI | more) as i16;
    device_call(file, libc::TUNSETIFF, &mut request)?;
    if offloads {
        let wanted = c_ulong::from(libc::TUN_F_CSUM | libc::TUN_F_TSO4 | libc::TUN_F_TSO_ECN);
        // SAFETY: this call takes a number.
        done(unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETOFFLOAD, wanted) })?;
    }
    Ok(())
}

/// What comes in at an interface of the calling thread's network, and a way to send there: whole Ethernet frames, each with a
/// `virtio_net_hdr` before it. The interface is promiscuous as long as this is open.
///
/// # Errors
/// The kernel's: mostly that there is no such interface (`ENODEV`), or that the caller may not (`EPERM`).
pub(crate) fn open_interface(name: &str) -> io::Result<OwnedFd> {
    let index = interface_number(name)?;
    let kinds = libc::SOCK_RAW | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    // With no protocol nothing comes in before it is bound.
    // SAFETY: it takes numbers.
    let fd = unsafe { libc::socket(libc::AF_PACKET, kinds, 0) };
    done(fd)?;
    // SAFETY: the kernel has just made it, and nobody else has it.
    let socket = unsafe { OwnedFd::from_raw_fd(fd) };
    set_socket_option(&socket, libc::SOL_PACKET, libc::PACKET_VNET_HDR, 1)?;
    // What is sent here must not come in again.
    set_socket_option(&socket, libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, 1)?;
    set_socket_option(&socket, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, 64 << 20)?;
    // SAFETY: these are plain numbers, for which zero is a value.
    let (mut address, mut member): (libc::sockaddr_ll, libc::packet_mreq) =
        unsafe { (std::mem::zeroed(), std::mem::zeroed()) };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
    address.sll_ifindex = index as c_int;
    member.mr_ifindex = index as c_int;
    member.mr_type = libc::PACKET_MR_PROMISC as u16;
    // SAFETY: the kernel reads one of each, which outlive the calls.
    unsafe {
        done(libc::setsockopt(
            fd,
            libc::SOL_PACKET,
            libc::PACKET_ADD_MEMBERSHIP,
            (&raw const member).cast(),
            size_of::<libc::packet_mreq>() as libc::socklen_t,
        ))?;
        done(libc::bind(
            fd,
            (&raw const address).cast(),
            size_of::<libc::sockaddr_ll>() as libc::socklen_t,
        ))?;
    }
    Ok(socket)
}

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// From now on the first SIGINT or SIGTERM sets what this gives back, and the second ends the process as usual.
pub(crate) fn watch_interrupts() -> &'static AtomicBool {
    extern "C" fn note(_: c_int) {
        INTERRUPTED.store(true, Ordering::Relaxed);
    }
    // SAFETY: `sigaction` is plain numbers, for which zero is a value; the handler stores one number and does nothing else.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = note as extern "C" fn(c_int) as libc::sighandler_t;
        action.sa_flags = libc::SA_RESETHAND | libc::SA_RESTART;
        libc::sigaction(libc::SIGINT, &raw const action, std::ptr::null_mut());
        libc::sigaction(libc::SIGTERM, &raw const action, std::ptr::null_mut());
    }
    &INTERRUPTED
}

/// Whether such a signal has come.
pub(crate) fn is_interrupted() -> bool {
    INTERRUPTED.load(Ordering::Relaxed)
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
    // Its type is that of `ioctl` with some C libraries only.
    device_call(socket, call as libc::Ioctl, &mut request)
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

fn device_call(fd: BorrowedFd<'_>, call: libc::Ioctl, request: &mut libc::ifreq) -> io::Result<()> {
    // SAFETY: every call that this file passes reads or writes one `ifreq`, which outlives it.
    let result = unsafe { libc::ioctl(fd.as_raw_fd(), call, std::ptr::from_mut(request)) };
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

/// The number of an interface of the calling thread's network.
///
/// # Errors
/// `ENODEV` if there is none of that name.
pub(crate) fn interface_number(name: &str) -> io::Result<u32> {
    let text = std::ffi::CString::new(name).map_err(io::Error::other)?;
    // SAFETY: the kernel reads a text that outlives the call.
    match unsafe { libc::if_nametoindex(text.as_ptr()) } {
        0 => Err(io::Error::last_os_error()),
        number => Ok(number),
    }
}

/// Whether an interface of the calling thread's network is up.
///
/// # Errors
/// The kernel's: mostly that there is none of that name.
pub(crate) fn is_up(name: &str) -> io::Result<bool> {
    let socket = any_socket()?;
    let mut request = request(name);
    device_call(socket.as_fd(), libc::SIOCGIFFLAGS as libc::Ioctl, &mut request)?;
    // SAFETY: that call has filled in the flags.
    let flags = unsafe { request.ifr_ifru.ifru_flags };
    Ok(i32::from(flags) & libc::IFF_UP != 0)
}

/// Whether an interface of the calling thread's network puts packets together that come (GRO).
///
/// # Errors
/// The kernel's: mostly that the device has no such setting.
pub(crate) fn puts_packets_together(name: &str) -> io::Result<bool> {
    // `SIOCETHTOOL`, and `ETHTOOL_GGRO` of the kernel's linux/ethtool.h with its `struct ethtool_value`.
    const CALL: c_ulong = 0x8946;
    let mut value: [u32; 2] = [0x2b, 0];
    let socket = any_socket()?;
    let mut request = request(name);
    request.ifr_ifru.ifru_data = value.as_mut_ptr().cast();
    device_call(socket.as_fd(), CALL as libc::Ioctl, &mut request)?;
    Ok(value[1] != 0)
}

/// Through which devices are asked.
fn any_socket() -> io::Result<OwnedFd> {
    // SAFETY: it takes numbers.
    let fd = unsafe { libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) };
    done(fd)?;
    // SAFETY: the kernel has just made it, and nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// The next datagram at a socket with `IP_RECVTOS`, put at the beginning of `room`: how much of it is there, and the service byte
/// of its IPv4 header (RFC 791, RFC 3168), if the kernel says it.
///
/// # Errors
/// The kernel's: `EAGAIN` if none has come.
pub(crate) fn take_with_service(
    socket: impl AsFd,
    room: &mut [u8],
) -> io::Result<(usize, Option<u8>)> {
    let mut part =
        libc::iovec { iov_base: room.as_mut_ptr().cast::<c_void>(), iov_len: room.len() };
    // Aligned as the kernel's headers must be, and with room for one of them and a number.
    let mut beside = [0_u64; 8];
    // SAFETY: it is plain numbers and pointers, for which zero is a value.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = beside.as_mut_ptr().cast::<c_void>();
    message.msg_controllen = size_of_val(&beside) as _;
    // SAFETY: the kernel writes to `room` and `beside` as much as they hold, and to `message`; all outlive the call.
    let length = unsafe { libc::recvmsg(socket.as_fd().as_raw_fd(), &raw mut message, 0) };
    let Ok(length) = usize::try_from(length) else { return Err(io::Error::last_os_error()) };
    // SAFETY: `message` is what the kernel has just filled in, and what it points to is still there.
    let first = unsafe { libc::CMSG_FIRSTHDR(&raw const message).as_ref() };
    let service = first
        .filter(|own| (own.cmsg_level, own.cmsg_type) == (libc::IPPROTO_IP, libc::IP_TOS))
        // SAFETY: what follows such a header is a byte.
        .map(|own| unsafe { *libc::CMSG_DATA(std::ptr::from_ref(own)) });
    Ok((length.min(room.len()), service))
}

/// Bytes that were written to a TCP connection and that have not been sent once.
///
/// # Errors
/// The kernel's.
pub(crate) fn unsent(socket: impl AsFd) -> io::Result<u64> {
    // `SIOCOUTQNSD` of the kernel's linux/sockios.h.
    const CALL: c_ulong = 0x894b;
    let mut bytes: c_int = 0;
    // SAFETY: the kernel writes an `int`, to one that outlives the call.
    let result = unsafe {
        libc::ioctl(socket.as_fd().as_raw_fd(), CALL as _, std::ptr::from_mut(&mut bytes))
    };
    done(result)?;
    Ok(u64::try_from(bytes).unwrap_or(0))
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

/// The user and group that asked for root's rights, and to whom a user's own programs then belong.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Person {
    pub(crate) user: u32,
    pub(crate) group: u32,
}

/// Where a program that [`start_enclosed`] has started finds room that nobody else sees.
pub(crate) const SCRATCH: &str = "/dev/shm";

/// Starts `command` in a network namespace and in namespaces of processes and mounts of its own: when it ends, or
/// this process does in whatever way, so does everything that it has started, and what it wrote to [`SCRATCH`] is
/// gone. The child is the leader of its process group; it belongs to `person`, if there is one. It may
/// set up its network, and has no other right.
///
/// # Errors
/// The kernel's, also that there is no such program.
pub(crate) fn start_enclosed(
    command: &mut Command,
    network: BorrowedFd<'_>,
    person: Option<Person>,
) -> io::Result<Child> {
    let (network, parent) = (network.as_raw_fd(), std::process::id());
    // SAFETY: between fork and exec the closure makes calls to the kernel only; it allocates nothing and takes no lock.
    unsafe { command.pre_exec(move || enclose(network, parent, person)) };
    command.spawn()
}

/// Makes three processes of one. The first, whom the caller knows, ends as the last does, and is killed with the thread that
/// started it. The second is the first of its namespace of processes, so the kernel kills all others there with
/// it. The third is the program.
fn enclose(network: RawFd, parent: u32, person: Option<Person>) -> io::Result<()> {
    let private = (libc::CLONE_NEWPID | libc::CLONE_NEWNS) as c_ulong;
    let mut alive = [0; 2];
    // SAFETY: each call takes numbers, or pointers to what outlives it. The copies that `clone` makes have memory of their own
    // (no CLONE_VM), and do nothing but calls to the kernel until they end or run the program.
    unsafe {
        die_with_parent();
        if libc::getppid() as u32 != parent {
            libc::_exit(1);
        }
        done(libc::setpgid(0, 0))?;
        done(libc::setns(network, libc::CLONE_NEWNET))?;
        done(libc::pipe2(alive.as_mut_ptr(), libc::O_CLOEXEC))?;
        match clone(private) {
            ..0 => return Err(io::Error::last_os_error()),
            0 => {}
            second => {
                // Its end of `alive` is below all that it closes.
                libc::dup2(alive[1], 3);
                close_from(4);
                let _ = [libc::SIGTERM, libc::SIGINT, libc::SIGHUP]
                    .map(|signal| libc::signal(signal, libc::SIG_IGN));
                end_as(second as libc::pid_t);
            }
        }
        die_with_parent();
        libc::close(alive[1]);
        // The first may have been killed before: then nobody holds the other end any more.
        let mut gone = libc::pollfd { fd: alive[0], events: libc::POLLIN, revents: 0 };
        if libc::poll(&raw mut gone, 1, 0) != 0 {
            libc::_exit(1);
        }
        // Without these the program sees the processes of others, and its files stay: no reason not to run it.
        let none = std::ptr::null();
        let private = libc::MS_REC | libc::MS_PRIVATE;
        libc::mount(none, c"/".as_ptr(), none, private, none.cast());
        libc::mount(c"proc".as_ptr(), c"/proc".as_ptr(), c"proc".as_ptr(), 0, none.cast());
        let (own, size) = (c"tmpfs".as_ptr(), c"mode=1777,size=1g".as_ptr());
        libc::mount(own, c"/dev/shm".as_ptr(), own, 0, size.cast());
        match clone(0) {
            ..0 => return Err(io::Error::last_os_error()),
            0 => {}
            third => {
                close_from(3);
                end_as(third as libc::pid_t);
            }
        }
        match person {
            Some(person) => become_person(person),
            None => Ok(()),
        }
    }
}

/// # Safety
/// The caller does nothing but calls to the kernel in the copy.
unsafe fn clone(flags: c_ulong) -> libc::c_long {
    // SAFETY: without CLONE_VM it copies the process as `fork` does.
    unsafe { libc::syscall(libc::SYS_clone, flags | libc::SIGCHLD as c_ulong, 0, 0, 0, 0) }
}

/// Closes all descriptors from this one on. Not every C library has a function for it.
fn close_from(first: c_uint) {
    // SAFETY: it takes numbers. What it closes, the caller has no other use for.
    unsafe { libc::syscall(libc::SYS_close_range, first, c_uint::MAX, 0) };
}

/// The calling process is killed when the thread ends that started it.
fn die_with_parent() {
    // SAFETY: it changes nothing in memory.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
}

/// Waits for `child`, and for all others that are nobody's, and ends as it did.
fn end_as(child: libc::pid_t) -> ! {
    loop {
        let mut status = 0;
        // SAFETY: the kernel writes one number, which outlives the call; `_exit` ends this copy of the process.
        unsafe {
            let ended = libc::waitpid(-1, &raw mut status, 0);
            if ended == child && libc::WIFEXITED(status) {
                libc::_exit(libc::WEXITSTATUS(status));
            }
            if ended == child && libc::WIFSIGNALED(status) {
                libc::_exit(128 + libc::WTERMSIG(status));
            }
            if ended < 0 && *libc::__errno_location() != libc::EINTR {
                libc::_exit(1);
            }
        }
    }
}

/// Gives up what root may, but for setting up the network that the process is in (capabilities(7)).
fn become_person(person: Person) -> io::Result<()> {
    const NET_ADMIN: u32 = 12;
    const VERSION: u32 = 0x2008_0522;
    let groups = [person.group];
    let header = [VERSION, 0];
    // Effective, permitted and inheritable, each of 32 capabilities.
    let sets: [[u32; 3]; 2] = [[1 << NET_ADMIN; 3], [0; 3]];
    // SAFETY: each call takes numbers, or pointers to what outlives it. The library's functions of these names would tell other
    // threads, of which this copy of the process has none.
    unsafe {
        let call = |result: libc::c_long| done(result as c_int);
        call(libc::syscall(libc::SYS_setgroups, 1, groups.as_ptr()))?;
        call(libc::syscall(libc::SYS_setresgid, person.group, person.group, person.group))?;
        done(libc::prctl(libc::PR_SET_KEEPCAPS, 1))?;
        call(libc::syscall(libc::SYS_setresuid, person.user, person.user, person.user))?;
        call(libc::syscall(libc::SYS_capset, header.as_ptr(), sets.as_ptr()))?;
        done(libc::prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_RAISE, NET_ADMIN, 0, 0))
    }
}

/// Asks a program that [`start_enclosed`] has started, and what it has started, to end.
pub(crate) fn ask_to_end(child: &Child) {
    // SAFETY: it changes nothing in memory. The group is there as long as the child was not waited for.
    unsafe { libc::kill(-(child.id() as libc::pid_t), libc::SIGTERM) };
}

fn done(result: c_int) -> io::Result<()> {
    match result {
        0.. => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

const _: () = assert!(size_of::<libc::sockaddr>() == size_of::<libc::sockaddr_in>());
