//! The sockets of flows. Each is made by a thread that is in the namespace of its host.

use std::io::{self, ErrorKind, IoSlice};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsFd, OwnedFd};

use rustix::io::{Errno, ioctl_fionbio};
use rustix::net::sockopt::{set_ip_tos, set_socket_recv_buffer_size, set_tcp_congestion};
use rustix::net::{
    AddressFamily, Protocol, RecvFlags, SendAncillaryBuffer, SendFlags, SocketAddrAny, SocketFlags,
    SocketType, accept_with, acceptfrom_with, bind, connect, getpeername, getsockname, ipproto,
    listen, recv, send, sendmsg, socket_with,
};
use sojourn_core::{Ecn, FlowSample};

use crate::cca::Control;
use crate::{headers, sys, tcp_info};

/// How the sockets of a flow are set.
#[derive(Clone, Debug)]
pub(crate) struct TcpSettings {
    pub(crate) cca: Control,
    pub(crate) dscp: u8,
    /// Largest payload of a segment; `None` if full packets carry the usual.
    pub(crate) mss: Option<u32>,
    /// `SO_RCVBUF` as the application asks for it.
    pub(crate) receive_buffer: Option<u64>,
    /// Most bytes that may wait in the socket without having been sent, if that is limited.
    pub(crate) most_unsent: Option<u64>,
    /// Calls of the application wait for room, if it has only one connection.
    pub(crate) blocking: bool,
}

/// What a segment's timestamps take (RFC 7323 section 3.2), which the kernel's option counts as payload.
const TIMESTAMPS: u32 = 12;

const FLAGS: SocketFlags = SocketFlags::CLOEXEC.union(SocketFlags::NONBLOCK);

fn tcp(settings: &TcpSettings) -> io::Result<OwnedFd> {
    let socket = socket_with(AddressFamily::INET, SocketType::STREAM, FLAGS, Some(ipproto::TCP))?;
    set_tcp_congestion(&socket, &settings.cca.name)?;
    set_ip_tos(&socket, settings.dscp << 2)?;
    if let Some(mss) = settings.mss {
        let mss = (mss + TIMESTAMPS) as i32;
        sys::set_socket_option(&socket, libc::IPPROTO_TCP, libc::TCP_MAXSEG, mss)?;
    }
    if let Some(bytes) = settings.receive_buffer {
        set_socket_recv_buffer_size(&socket, bytes.min(i32::MAX as u64) as usize)?;
    }
    if let Some(bytes) = settings.most_unsent {
        set_most_unsent(&socket, bytes.min(i32::MAX as u64) as i32)?;
    }
    Ok(socket)
}

/// Whether the kernel has a congestion control of that name.
pub(crate) fn knows_control(name: &str) -> bool {
    socket_with(AddressFamily::INET, SocketType::STREAM, FLAGS, Some(ipproto::TCP))
        .is_ok_and(|socket| set_tcp_congestion(&socket, name).is_ok())
}

/// Waits for connections at a port of the calling thread's host.
pub(crate) fn listener(settings: &TcpSettings, port: u16) -> io::Result<OwnedFd> {
    let socket = tcp(settings)?;
    bind(&socket, &SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, port))?;
    listen(&socket, 4096)?;
    Ok(socket)
}

/// The next connection that has come; `None` if none has.
pub(crate) fn accept(listener: &OwnedFd) -> io::Result<Option<OwnedFd>> {
    unless_blocked(accept_with(listener, FLAGS))
}

/// The same, with the port at the other end.
pub(crate) fn accept_from(listener: &OwnedFd) -> io::Result<Option<(OwnedFd, u16)>> {
    let accepted = unless_blocked(acceptfrom_with(listener, FLAGS))?;
    Ok(accepted.map(|(socket, from)| (socket, port_of(from))))
}

/// The port that a connection has at this end.
pub(crate) fn own_port(socket: &OwnedFd) -> io::Result<u16> {
    Ok(port_of(Some(getsockname(socket)?)))
}

fn port_of(address: Option<SocketAddrAny>) -> u16 {
    address.and_then(|any| SocketAddrV4::try_from(any).ok()).map_or(0, |address| address.port())
}

/// Whether the other end has accepted.
pub(crate) fn is_connected(socket: &OwnedFd) -> bool {
    getpeername(socket).is_ok()
}

/// Sets how many bytes may wait in a socket without having been sent.
pub(crate) fn set_most_unsent(socket: &OwnedFd, bytes: i32) -> io::Result<()> {
    sys::set_socket_option(socket, libc::IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT, bytes)
}

/// Asks for a connection from the calling thread's host.
pub(crate) fn open(settings: &TcpSettings, to: SocketAddrV4) -> io::Result<OwnedFd> {
    let socket = tcp(settings)?;
    match connect(&socket, &to) {
        Ok(()) | Err(Errno::INPROGRESS) => Ok(socket),
        Err(error) => Err(error.into()),
    }
}

/// Datagrams from the calling thread's host to another.
pub(crate) fn datagrams(dscp: u8, to: SocketAddrV4) -> io::Result<OwnedFd> {
    let socket = socket_with(AddressFamily::INET, SocketType::DGRAM, FLAGS, Some(ipproto::UDP))?;
    set_ip_tos(&socket, dscp << 2)?;
    connect(&socket, &to)?;
    Ok(socket)
}

/// Datagrams from a port of the calling thread's host to another, and back.
pub(crate) fn datagrams_both_ways(dscp: u8, port: u16, to: SocketAddrV4) -> io::Result<OwnedFd> {
    let socket = datagram_sink(port)?;
    set_ip_tos(&socket, dscp << 2)?;
    sys::set_socket_option(&socket, libc::IPPROTO_IP, libc::IP_RECVTOS, 1)?;
    connect(&socket, &to)?;
    Ok(socket)
}

/// The next datagram, put at the beginning of `room`, which holds every one: its length, or `None` if none has come.
pub(crate) fn take(socket: &OwnedFd, room: &mut [u8]) -> io::Result<Option<usize>> {
    let length = unless_blocked(recv(socket, &mut *room, RecvFlags::TRUNC))?;
    Ok(length.map(|(_, length)| length.min(room.len())))
}

/// The same, with the ECN field that it came with. The socket must be one of [`datagrams_both_ways`].
pub(crate) fn take_with_mark(
    socket: &OwnedFd,
    room: &mut [u8],
) -> io::Result<Option<(usize, Ecn)>> {
    match sys::take_with_service(socket, room) {
        Ok((length, service)) => Ok(Some((length, headers::ecn_of(service.unwrap_or(0))))),
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(None),
        Err(error) if error.kind() == ErrorKind::Interrupted => Ok(None),
        Err(error) => Err(error),
    }
}

/// What is sent from now on has this code point and ECN field.
pub(crate) fn set_service(socket: &OwnedFd, dscp: u8, ecn: Ecn) -> io::Result<()> {
    Ok(set_ip_tos(socket, dscp << 2 | headers::bits_of(ecn))?)
}

/// Takes datagrams at a port of the calling thread's host.
pub(crate) fn datagram_sink(port: u16) -> io::Result<OwnedFd> {
    let socket = socket_with(AddressFamily::INET, SocketType::DGRAM, FLAGS, Some(ipproto::UDP))?;
    bind(&socket, &SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, port))?;
    Ok(socket)
}

/// Sends echo requests from the calling thread's host. The bottleneck sees the replies, so nobody reads them.
pub(crate) fn echoes(dscp: u8, to: Ipv4Addr) -> io::Result<OwnedFd> {
    const ICMP: Protocol = ipproto::ICMP;
    let socket = socket_with(AddressFamily::INET, SocketType::RAW, FLAGS, Some(ICMP))?;
    set_ip_tos(&socket, dscp << 2)?;
    set_socket_recv_buffer_size(&socket, 0)?;
    connect(&socket, &SocketAddrV4::new(to, 0))?;
    Ok(socket)
}

/// An echo request (RFC 792) with so many bytes of payload.
pub(crate) fn echo_request(id: u16, number: u16, payload: usize, packet: &mut Vec<u8>) {
    packet.clear();
    packet.extend([8, 0, 0, 0]);
    packet.extend(id.to_be_bytes());
    packet.extend(number.to_be_bytes());
    packet.resize(8 + payload, 0);
    let mut sum: u32 = 0x0800 + u32::from(id) + u32::from(number);
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    packet[2..4].copy_from_slice(&(!(sum as u16)).to_be_bytes());
}

/// The calls of this socket wait from now on, except for [`drain`].
pub(crate) fn set_blocking(socket: &OwnedFd) -> io::Result<()> {
    Ok(ioctl_fionbio(socket, false)?)
}

/// Writes in one call, which waits until the socket has taken all or is shut: how much it took.
pub(crate) fn write_whole(socket: &OwnedFd, bytes: &[u8]) -> io::Result<usize> {
    Ok(rustix::io::retry_on_intr(|| send(socket, bytes, SendFlags::NOSIGNAL))?)
}

/// Writes as much as the socket takes; `None` if it takes nothing now.
pub(crate) fn write(socket: &OwnedFd, bytes: &[u8]) -> io::Result<Option<usize>> {
    unless_blocked(send(socket, bytes, SendFlags::NOSIGNAL))
}

/// The same, of two parts one after the other.
pub(crate) fn write_both(
    socket: &OwnedFd,
    first: &[u8],
    second: &[u8],
) -> io::Result<Option<usize>> {
    if first.is_empty() {
        return write(socket, second);
    }
    let (parts, none) =
        ([IoSlice::new(first), IoSlice::new(second)], &mut SendAncillaryBuffer::default());
    unless_blocked(sendmsg(socket, &parts, none, SendFlags::NOSIGNAL))
}

/// Takes what has come over a connection, put at the beginning of `room`: how many bytes, 0 at its end, `None` if nothing has come.
pub(crate) fn read(socket: &OwnedFd, room: &mut [u8]) -> io::Result<Option<usize>> {
    let length = unless_blocked(recv(socket, &mut *room, RecvFlags::empty()))?;
    Ok(length.map(|(_, length)| length))
}

/// Takes everything that has come and forgets it; false at the end of the stream.
pub(crate) fn drain(socket: &OwnedFd, room: &mut [u8]) -> io::Result<bool> {
    // Two reads, so that one socket does not keep the others waiting.
    for _ in 0..2 {
        match unless_blocked(recv(socket, &mut *room, RecvFlags::TRUNC | RecvFlags::DONTWAIT))? {
            None => return Ok(true),
            Some((_, 0)) => return Ok(false),
            Some(_) => {}
        }
    }
    Ok(true)
}

/// Takes what has come over a connection, and says how many bytes, and whether more can come.
pub(crate) fn count(socket: &OwnedFd, room: &mut [u8]) -> (u64, bool) {
    let mut bytes = 0;
    for _ in 0..2 {
        match unless_blocked(recv(socket, &mut *room, RecvFlags::empty())) {
            Ok(None) => return (bytes, true),
            Ok(Some((_, 0))) | Err(_) => return (bytes, false),
            Ok(Some((_, length))) => bytes += length as u64,
        }
    }
    (bytes, true)
}

/// What the kernel says of a connection's sender.
pub(crate) fn sample(socket: &OwnedFd, cca: &Control) -> io::Result<FlowSample> {
    let (mut info, mut own) = ([0; tcp_info::ROOM], [0; 64]);
    let info = sys::socket_option(socket.as_fd(), libc::IPPROTO_TCP, libc::TCP_INFO, &mut info)?;
    let own = sys::socket_option(socket.as_fd(), libc::IPPROTO_TCP, libc::TCP_CC_INFO, &mut own);
    let mut sample = tcp_info::sample(info, &cca.name, own.unwrap_or_default());
    cca.add_state(socket, tcp_info::is_established(info), &mut sample);
    Ok(sample)
}

fn unless_blocked<T>(result: Result<T, Errno>) -> io::Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) => match io::Error::from(error) {
            error if error.kind() == ErrorKind::WouldBlock => Ok(None),
            error if error.kind() == ErrorKind::Interrupted => Ok(None),
            error => Err(error),
        },
    }
}
