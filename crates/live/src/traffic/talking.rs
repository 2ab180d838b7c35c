//! Applications of requests and answers: the code that runs in virtual time elsewhere, over the kernel's connections. A flow's
//! source is the server; its destination is the client, which connects.

use std::io;
use std::net::SocketAddrV4;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use rustix::event::PollFlags;
use rustix::net::sockopt::{set_socket_linger, set_tcp_nodelay};
use sojourn_core::{Direction, FlowId, FlowSample, Purpose, StreamAddress, Time};
use sojourn_host::apps::dialogue::{Dial, Dialogue, LOW, Talk};
use sojourn_host::apps::{Page, Requests, Rpm};
use sojourn_scenario::{Flow, Traffic};

use super::socket::{self, TcpSettings};
use super::{HEADERS, Telling, What, ZEROS, own_end};
use crate::{address, sys};

/// What a flow's thread does with such an application.
pub(super) trait Talking {
    fn next_wake(&self) -> Time;

    /// Takes what has come, does what is due by `now`, and writes. The calling thread must be in the client's host.
    fn act(&mut self, now: Time, room: &mut [u8], tell: &mut dyn FnMut(What)) -> io::Result<()>;

    /// Calls `watch` with every socket, and what it waits for.
    fn each_socket<'a>(&'a self, watch: &mut dyn FnMut(&'a OwnedFd, PollFlags));

    fn sample(&self, now: Time) -> FlowSample;

    fn is_done(&self) -> bool;
}

/// `None` if the flow's application is another. The calling thread must be in the server's host.
pub(super) fn build(
    flow: &Flow,
    traffic: &Traffic,
    id: FlowId,
    settings: &TcpSettings,
    address: StreamAddress,
    end: Time,
) -> io::Result<Option<Box<dyn Talking + Send>>> {
    let ends = own_end::ends_of(flow, id);
    let (start, stop) = own_end::lasts(flow, address);
    let until = stop.min(end);
    let port = address::port_of(id);
    let dial = KernelDial {
        settings: settings.clone(),
        server: SocketAddrV4::new(address::of_host(flow.src), port),
    };
    // As the simulated controllers do, so that times to think are the same.
    let random = address.stream_named(&flow.name, Purpose::Controller);
    let sockets = |lookups| Sockets::new(flow, settings, port, lookups);
    Ok(Some(match traffic {
        Traffic::Page(config) => {
            let sockets = sockets(config.lookup)?;
            let app = Page::over(dial, config.clone(), ends, random, start, until);
            Box::new(Over { app, sockets, came: Vec::new() })
        }
        Traffic::Requests(config) => {
            let app = Requests::over(dial, config.clone(), ends, random, start, until);
            Box::new(Over { app, sockets: sockets(false)?, came: Vec::new() })
        }
        Traffic::Rpm(config) => {
            let app = Rpm::over(dial, config.clone(), ends, random, start, until);
            Box::new(Over { app, sockets: sockets(false)?, came: Vec::new() })
        }
        Traffic::Bulk(_) | Traffic::OnOff(_) | Traffic::Arrivals(_) => return Ok(None),
    }))
}

struct Over<A> {
    app: A,
    sockets: Sockets,
    /// What has come to connections, to be told to the application.
    came: Vec<(u32, Came)>,
}

/// The sockets of a flow that are not of one connection.
struct Sockets {
    listener: OwnedFd,
    /// Lookups come to the server here.
    server: Option<OwnedFd>,
    /// Answers come to the client here. It is made with the first lookup.
    client: Option<OwnedFd>,
    dscp: u8,
    at_server: SocketAddrV4,
}

#[derive(Clone, Copy)]
enum Came {
    Connected,
    Requests(u64),
    Answers(u64),
}

/// Makes connections of the kernel's. The calling thread must be in the client's host.
struct KernelDial {
    settings: TcpSettings,
    server: SocketAddrV4,
}

/// A connection of the kernel's: both of its ends.
struct KernelTalk {
    number: u32,
    cca: Arc<str>,
    client: End,
    server: End,
    /// The client's.
    port: u16,
    is_connected: bool,
    is_accepted: bool,
    /// Bytes of answers that the server wrote and the client has not read.
    under_way: u64,
    failed: Option<io::Error>,
}

#[derive(Default)]
struct End {
    /// `None` before there is one, and after the other end or the kernel gave up.
    socket: Option<OwnedFd>,
    /// Bytes that the application wrote and the kernel has not taken.
    waiting: u64,
}

impl<A: Dialogue<Talk = KernelTalk>> Talking for Over<A> {
    fn next_wake(&self) -> Time {
        self.app.next_time(Direction::Forward).min(self.app.next_time(Direction::Reverse))
    }

    fn act(&mut self, now: Time, room: &mut [u8], tell: &mut dyn FnMut(What)) -> io::Result<()> {
        let Self { app, sockets, came } = self;
        let o = &mut Telling(tell);
        while let Some((socket, port)) = socket::accept_from(&sockets.listener)? {
            set_tcp_nodelay(&socket, true)?;
            if A::HOLDS_BACK {
                // The kernel wakes who waits to write when less than half of this is unsent.
                socket::set_most_unsent(&socket, 2 * LOW as i32)?;
            }
            let mut socket = Some(socket);
            app.each_talk_mut(&mut |talk| {
                if talk.port == port && talk.server.socket.is_none() {
                    talk.server.socket = socket.take();
                }
            });
        }
        let lookups =
            [(&sockets.server, Direction::Reverse), (&sockets.client, Direction::Forward)];
        for (socket, direction) in lookups {
            let Some(socket) = socket else { continue };
            while socket::take(socket, room)?.is_some() {
                app.on_datagram(now, direction);
            }
        }
        app.each_talk_mut(&mut |talk| talk.take_in(room, came));
        for (number, what) in came.drain(..) {
            match what {
                Came::Connected => app.on_connected(now, number, o),
                Came::Requests(bytes) => app.server_reads(now, number, bytes, o),
                Came::Answers(bytes) => app.client_reads(now, number, bytes, o),
            }
        }
        for sends in [Direction::Reverse, Direction::Forward] {
            if now >= app.next_time(sends) {
                app.on_time(now, sends, o);
            }
            while let Some(length) = app.poll_datagram(now, sends) {
                let payload = length.saturating_sub(HEADERS) as usize;
                // A datagram that finds no room is lost before it left.
                socket::write(sockets.lookups(sends)?, &ZEROS[..payload])?;
            }
        }
        app.write();
        let mut failed = None;
        app.each_talk_mut(&mut |talk| failed = failed.take().or_else(|| talk.failed.take()));
        failed.map_or(Ok(()), Err)
    }

    fn each_socket<'a>(&'a self, watch: &mut dyn FnMut(&'a OwnedFd, PollFlags)) {
        let Sockets { listener, server, client, .. } = &self.sockets;
        for socket in [Some(listener), server.as_ref(), client.as_ref()].into_iter().flatten() {
            watch(socket, PollFlags::IN);
        }
        self.app.each_talk(&mut |talk| {
            let ends = [
                (&talk.client, !talk.is_connected),
                (&talk.server, self.app.has_more(talk.number)),
            ];
            for (end, has_more) in ends {
                let Some(socket) = &end.socket else { continue };
                let writes = has_more || end.waiting > 0;
                watch(socket, if writes { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN });
            }
        });
    }

    fn sample(&self, now: Time) -> FlowSample {
        self.app.sum(now)
    }

    fn is_done(&self) -> bool {
        self.app.is_over()
    }
}

impl Sockets {
    /// The calling thread must be in the server's host.
    fn new(flow: &Flow, settings: &TcpSettings, port: u16, lookups: bool) -> io::Result<Self> {
        let at_client = SocketAddrV4::new(address::of_host(flow.dst), port);
        let server = || socket::datagrams_both_ways(flow.dscp, port, at_client);
        Ok(Self {
            listener: socket::listener(settings, port)?,
            server: lookups.then(server).transpose()?,
            client: None,
            dscp: flow.dscp,
            at_server: SocketAddrV4::new(address::of_host(flow.src), port),
        })
    }

    /// From which lookups or their answers leave. The calling thread must be in the client's host.
    fn lookups(&mut self, sends: Direction) -> io::Result<&OwnedFd> {
        let socket = match sends {
            Direction::Forward => &mut self.server,
            Direction::Reverse => &mut self.client,
        };
        let made = match socket.take() {
            Some(made) => made,
            None => socket::datagrams_both_ways(self.dscp, self.at_server.port(), self.at_server)?,
        };
        Ok(socket.insert(made))
    }
}

impl Dial for KernelDial {
    type Talk = KernelTalk;

    fn open(&mut self, number: u32, _: StreamAddress, _: Time) -> KernelTalk {
        let opened = socket::open(&self.settings, self.server).and_then(|socket| {
            set_tcp_nodelay(&socket, true)?;
            let port = socket::own_port(&socket)?;
            Ok((socket, port))
        });
        let (socket, port, failed) = match opened {
            Ok((socket, port)) => (Some(socket), port, None),
            Err(error) => (None, 0, Some(error)),
        };
        KernelTalk {
            number,
            cca: self.settings.cca.as_str().into(),
            client: End { socket, waiting: 0 },
            server: End::default(),
            port,
            is_connected: false,
            is_accepted: false,
            under_way: 0,
            failed,
        }
    }

    fn accept(&mut self, talk: &mut KernelTalk, _: StreamAddress, _: Time) {
        talk.is_accepted = true;
    }
}

impl Talk for KernelTalk {
    fn number(&self) -> u32 {
        self.number
    }

    fn ask(&mut self, bytes: u64) {
        self.client.waiting += bytes;
        self.client.write();
    }

    fn is_accepted(&self) -> bool {
        self.is_accepted
    }

    fn answer(&mut self, bytes: u64) {
        self.under_way += bytes;
        self.server.waiting += bytes;
        self.server.write();
    }

    fn unsent(&self) -> u64 {
        let in_kernel = self.server.socket.as_ref().and_then(|own| sys::unsent(own).ok());
        // One whose socket is gone sends nothing any more, so nothing is to be written to it.
        self.server.waiting + in_kernel.unwrap_or(u64::from(u32::MAX))
    }

    fn sample(&self, _: Time) -> Option<FlowSample> {
        let socket = self.server.socket.as_ref().filter(|_| self.is_accepted)?;
        socket::sample(socket, &self.cca).ok()
    }
}

impl KernelTalk {
    /// Reads what has come to both ends, and writes what waits.
    fn take_in(&mut self, room: &mut [u8], came: &mut Vec<(u32, Came)>) {
        if !self.is_connected && self.client.socket.as_ref().is_some_and(socket::is_connected) {
            self.is_connected = true;
            came.push((self.number, Came::Connected));
        }
        let requests = self.server.take(room);
        let answers = self.client.take(room);
        self.under_way = self.under_way.saturating_sub(answers);
        let both = [Came::Requests(requests), Came::Answers(answers)];
        for (what, _) in both.into_iter().zip([requests, answers]).filter(|(_, bytes)| *bytes > 0) {
            came.push((self.number, what));
        }
        self.client.write();
        self.server.write();
    }
}

impl Drop for KernelTalk {
    /// What is closed before all has come is given up at once, as it is in simulation.
    fn drop(&mut self) {
        if self.under_way > 0 {
            for socket in [&self.client.socket, &self.server.socket].into_iter().flatten() {
                let _ = set_socket_linger(socket, Some(Duration::ZERO));
            }
        }
    }
}

impl End {
    /// Reads, and says how many bytes. What an error ends stays open in the results.
    fn take(&mut self, room: &mut [u8]) -> u64 {
        let Some(socket) = &self.socket else { return 0 };
        let (bytes, is_open) = socket::count(socket, room);
        if !is_open {
            self.socket = None;
        }
        bytes
    }

    fn write(&mut self) {
        let Some(socket) = &self.socket else { return };
        while self.waiting > 0 {
            let most = (self.waiting as usize).min(ZEROS.len());
            // Not connected yet, or no room; what has ended is seen by who reads.
            let Ok(Some(written)) = socket::write(socket, &ZEROS[..most]) else { break };
            self.waiting -= written as u64;
        }
    }
}
