//! Applications of requests and answers: the code that runs in virtual time elsewhere, over the kernel's connections. A flow's
//! source is the server; its destination is the client, which connects.
//!
//! Where both hosts are here, one value of the application is both ends. Otherwise each host has a value of its own, and learns
//! from the first byte of every request and of every piece of an answer what the other end's knows.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddrV4;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::event::PollFlags;
use rustix::net::sockopt::{set_socket_linger, set_tcp_nodelay};
use sojourn_core::{Direction, FlowId, FlowSample, Observer, Purpose, StreamAddress, Time};
use sojourn_host::apps::dialogue::{Dial, Dialogue, LOW, Talk};
use sojourn_host::apps::{Page, Requests, Rpm};
use sojourn_scenario::{Flow, Traffic};

use super::socket::{self, TcpSettings};
use super::{HEADERS, Telling, What, ZEROS, own_end};
use crate::cca::Control;
use crate::{address, sys};

/// What a flow's thread does with such an application.
pub(super) trait Talking {
    fn next_wake(&self) -> Time;

    /// Takes what has come, does what is due by `now`, and writes. The calling thread must be in the client's host.
    fn act(&mut self, now: Time, room: &mut [u8], tell: &mut dyn FnMut(What)) -> io::Result<()>;

    /// Calls `watch` with every socket, and what it waits for.
    fn each_socket<'a>(&'a self, watch: &mut dyn FnMut(&'a OwnedFd, PollFlags));

    /// Of the server's ends; `None` if they are elsewhere.
    fn sample(&self, now: Time) -> Option<FlowSample>;

    /// Whether all has ended; `None` if only the client knows, and is elsewhere.
    fn is_done(&self) -> Option<bool>;
}

/// Which ends of a flow are on hosts here.
#[derive(Clone, Copy, Debug)]
pub(super) struct Here {
    pub(super) server: bool,
    pub(super) client: bool,
}

impl Here {
    /// Those that send in one of these directions.
    fn directions(self) -> impl Iterator<Item = Direction> {
        let client = self.client.then_some(Direction::Reverse);
        client.into_iter().chain(self.server.then_some(Direction::Forward))
    }

    const fn is_whole(self) -> bool {
        self.server && self.client
    }
}

/// `None` if the flow's application is another. The calling thread must be in the server's host, if that is here.
pub(super) fn build(
    flow: &Flow,
    traffic: &Traffic,
    id: FlowId,
    settings: &TcpSettings,
    address: StreamAddress,
    end: Time,
    here: Here,
) -> io::Result<Option<Box<dyn Talking + Send>>> {
    let ends = own_end::ends_of(flow, id);
    let (start, stop) = own_end::lasts(flow, address);
    let until = stop.min(end);
    let port = address::port_of(id);
    let dial = KernelDial {
        settings: settings.clone(),
        server: SocketAddrV4::new(address::of_host(flow.src), port),
        here,
    };
    // As the simulated controllers do, so that times to think are the same.
    let random = address.stream_named(&flow.name, Purpose::Controller);
    let sockets = |lookups| Sockets::new(flow, settings, port, lookups, here);
    Ok(Some(match traffic {
        Traffic::Page(config) => {
            let sockets = sockets(config.lookup)?;
            let app = Page::over(dial, config.clone(), ends, random, start, until);
            Box::new(Over::new(app, sockets, here))
        }
        Traffic::Requests(config) => {
            let app = Requests::over(dial, config.clone(), ends, random, start, until);
            Box::new(Over::new(app, sockets(false)?, here))
        }
        Traffic::Rpm(config) => {
            let app = Rpm::over(dial, config.clone(), ends, random, start, until);
            Box::new(Over::new(app, sockets(false)?, here))
        }
        Traffic::Bulk(_) | Traffic::OnOff(_) | Traffic::Arrivals(_) => return Ok(None),
    }))
}

struct Over<A> {
    app: A,
    here: Here,
    sockets: Sockets,
    /// The number of the newest connection that has come from a client elsewhere.
    newest: u32,
    /// What has come to connections, to be told to the application.
    came: Vec<(u32, Came)>,
}

/// The sockets of a flow that are not of one connection.
struct Sockets {
    /// Of the server.
    listener: Option<OwnedFd>,
    /// Lookups come to the server here.
    server: Option<OwnedFd>,
    /// Answers come to the client here. It is made with the first lookup.
    client: Option<OwnedFd>,
    dscp: u8,
    at_server: SocketAddrV4,
}

enum Came {
    Connected,
    Requests(u64),
    Answers(u64),
    /// From the other end, which is elsewhere.
    Bytes(Vec<u8>),
    /// The client, which is elsewhere, has closed the connection.
    End,
}

/// Makes connections of the kernel's. The calling thread must be in the client's host.
struct KernelDial {
    settings: TcpSettings,
    server: SocketAddrV4,
    here: Here,
}

/// A connection of the kernel's: those of its ends that are here.
struct KernelTalk {
    number: u32,
    here: Here,
    cca: Control,
    client: End,
    server: End,
    /// The client's.
    port: u16,
    is_connected: bool,
    is_accepted: bool,
    /// Bytes of answers that the server wrote and the client has not read.
    under_way: u64,
    /// How much has not come of the request or the piece of an answer of which the other end, elsewhere, sends.
    left: u64,
    failed: Option<io::Error>,
}

#[derive(Default)]
struct End {
    /// `None` before there is one, and after the other end or the kernel gave up.
    socket: Option<OwnedFd>,
    /// What the application wrote and the kernel has not taken.
    waiting: VecDeque<Waiting>,
}

/// A request or a piece of an answer.
struct Waiting {
    bytes: u64,
    /// Its first byte, if that still waits.
    word: Option<u8>,
}

/// Bytes of a connection that are read at a time from another machine.
const READ: usize = 64 * 1024;

impl<A: Dialogue<Talk = KernelTalk>> Over<A> {
    fn new(app: A, sockets: Sockets, here: Here) -> Self {
        Self { app, here, sockets, newest: 0, came: Vec::new() }
    }

    /// The socket of a new connection belongs to the one that has that port at the client.
    fn accept(&mut self, now: Time, socket: OwnedFd, port: u16) {
        let mut socket = Some(socket);
        let number = self.newest.wrapping_add(1).max(1);
        if !self.here.client {
            self.newest = number;
            self.app.hear_of(now, number);
        }
        let is_whole = self.here.is_whole();
        self.app.each_talk_mut(&mut |talk| {
            let is_it = if is_whole { talk.port == port } else { talk.number == number };
            if is_it && talk.server.socket.is_none() {
                talk.server.socket = socket.take();
            }
        });
    }

    /// What the other end, elsewhere, has sent.
    fn hear<O: Observer>(
        &mut self,
        now: Time,
        number: u32,
        mut bytes: &[u8],
        o: &mut O,
    ) -> io::Result<()> {
        while let Some(word) = bytes.first() {
            let mut left = None;
            self.app.each_talk(&mut |talk| {
                if talk.number == number {
                    left = Some(talk.left);
                }
            });
            // What comes after the end is nobody's.
            let Some(left) = left else { return Ok(()) };
            let left = match (left, self.here.client) {
                (0, true) => self.app.hear_answer(number, *word),
                (0, false) => self.app.hear_request(number, *word),
                (left, _) => Some(left),
            };
            let Some(left) = left.filter(|left| *left > 0) else {
                let problem = "what came over a connection is not of this application";
                return Err(io::Error::new(io::ErrorKind::InvalidData, problem));
            };
            let part = left.min(bytes.len() as u64);
            let is_client = self.here.client;
            self.app.each_talk_mut(&mut |talk| {
                if talk.number == number {
                    (talk.left, talk.is_accepted) = (left - part, talk.is_accepted || is_client);
                }
            });
            match is_client {
                true => self.app.client_reads(now, number, part, o),
                false => self.app.server_reads(now, number, part, o),
            }
            bytes = &bytes[part as usize..];
        }
        Ok(())
    }
}

impl<A: Dialogue<Talk = KernelTalk>> Talking for Over<A> {
    fn next_wake(&self) -> Time {
        let times = self.here.directions().map(|sends| self.app.next_time(sends));
        times.fold(Time::NEVER, Time::min)
    }

    fn act(&mut self, now: Time, room: &mut [u8], tell: &mut dyn FnMut(What)) -> io::Result<()> {
        let o = &mut Telling(tell);
        while let Some(listener) = &self.sockets.listener
            && let Some((socket, port)) = socket::accept_from(listener)?
        {
            set_tcp_nodelay(&socket, true)?;
            if A::HOLDS_BACK {
                // The kernel wakes who waits to write when less than half of this is unsent.
                socket::set_most_unsent(&socket, 2 * LOW as i32)?;
            }
            self.accept(now, socket, port);
        }
        let Self { app, here, sockets, came, .. } = self;
        let lookups =
            [(&sockets.server, Direction::Reverse), (&sockets.client, Direction::Forward)];
        for (socket, direction) in lookups {
            let Some(socket) = socket else { continue };
            while socket::take(socket, room)?.is_some() {
                app.on_datagram(now, direction);
            }
        }
        app.each_talk_mut(&mut |talk| match here.is_whole() {
            true => talk.take_in(room, came),
            false => talk.take_bytes(room, came),
        });
        for (number, what) in std::mem::take(came) {
            match what {
                Came::Connected => self.app.on_connected(now, number, o),
                Came::Requests(bytes) => self.app.server_reads(now, number, bytes, o),
                Came::Answers(bytes) => self.app.client_reads(now, number, bytes, o),
                Came::Bytes(bytes) => self.hear(now, number, &bytes, o)?,
                Came::End => self.app.hear_end(now, number),
            }
        }
        let Self { app, here, sockets, .. } = self;
        for sends in here.directions() {
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
        for socket in [listener, server, client].into_iter().flatten() {
            watch(socket, PollFlags::IN);
        }
        self.app.each_talk(&mut |talk| {
            let ends = [
                (&talk.client, !talk.is_connected),
                (&talk.server, self.app.has_more(talk.number)),
            ];
            for (end, has_more) in ends {
                let Some(socket) = &end.socket else { continue };
                let writes = has_more || !end.waiting.is_empty();
                watch(socket, if writes { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN });
            }
        });
    }

    fn sample(&self, now: Time) -> Option<FlowSample> {
        self.here.server.then(|| self.app.sum(now))
    }

    fn is_done(&self) -> Option<bool> {
        self.here.client.then(|| self.app.is_over())
    }
}

impl Sockets {
    /// The calling thread must be in the server's host, if that is here.
    fn new(
        flow: &Flow,
        settings: &TcpSettings,
        port: u16,
        lookups: bool,
        here: Here,
    ) -> io::Result<Self> {
        let at_client = SocketAddrV4::new(address::of_host(flow.dst), port);
        let server = || socket::datagrams_both_ways(flow.dscp, port, at_client);
        let listener = here.server.then(|| socket::listener(settings, port));
        Ok(Self {
            listener: listener.transpose()?,
            server: (lookups && here.server).then(server).transpose()?,
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
        let opened = || {
            let socket = socket::open(&self.settings, self.server)?;
            set_tcp_nodelay(&socket, true)?;
            let port = socket::own_port(&socket)?;
            Ok((socket, port))
        };
        let (socket, port, failed) = match self.here.client.then(opened) {
            Some(Ok((socket, port))) => (Some(socket), port, None),
            Some(Err(error)) => (None, 0, Some(error)),
            None => (None, 0, None),
        };
        KernelTalk {
            number,
            here: self.here,
            cca: self.settings.cca.clone(),
            client: End { socket, waiting: VecDeque::new() },
            server: End::default(),
            port,
            is_connected: false,
            is_accepted: false,
            under_way: 0,
            left: 0,
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

    fn has_client(&self) -> bool {
        self.here.client
    }

    fn has_server(&self) -> bool {
        self.here.server
    }

    fn ask(&mut self, bytes: u64, word: u8) {
        self.client.waiting.push_back(Waiting { bytes, word: Some(word) });
        self.client.write();
    }

    fn is_accepted(&self) -> bool {
        self.is_accepted
    }

    fn answer(&mut self, bytes: u64, word: u8) {
        if self.here.client {
            self.under_way += bytes;
        }
        self.server.waiting.push_back(Waiting { bytes, word: Some(word) });
        self.server.write();
    }

    fn unsent(&self) -> u64 {
        let in_kernel = self.server.socket.as_ref().and_then(|own| sys::unsent(own).ok());
        // One whose socket is gone sends nothing any more, so nothing is to be written to it.
        let waiting = self.server.waiting.iter().map(|own| own.bytes).sum::<u64>();
        waiting + in_kernel.unwrap_or(u64::from(u32::MAX))
    }

    fn sample(&self, _: Time) -> Option<FlowSample> {
        let socket = self.server.socket.as_ref().filter(|_| self.is_accepted)?;
        socket::sample(socket, &self.cca).ok()
    }
}

impl KernelTalk {
    fn look_if_connected(&mut self, came: &mut Vec<(u32, Came)>) {
        if !self.is_connected && self.client.socket.as_ref().is_some_and(socket::is_connected) {
            self.is_connected = true;
            came.push((self.number, Came::Connected));
        }
    }

    /// Reads what has come to the end that is here, and writes what waits.
    fn take_bytes(&mut self, room: &mut [u8], came: &mut Vec<(u32, Came)>) {
        self.look_if_connected(came);
        let is_client = self.here.client;
        let end = if is_client { &mut self.client } else { &mut self.server };
        if let Some(socket) = &end.socket {
            let most = room.len().min(READ);
            match socket::read(socket, &mut room[..most]) {
                Ok(None) => {}
                Ok(Some(length @ 1..)) => {
                    came.push((self.number, Came::Bytes(room[..length].to_vec())));
                }
                // The socket stays until its totals are known.
                Ok(Some(0)) | Err(_) if !is_client => came.push((self.number, Came::End)),
                Ok(Some(0)) | Err(_) => end.socket = None,
            }
        }
        end.write();
    }

    /// Reads what has come to both ends, and writes what waits.
    fn take_in(&mut self, room: &mut [u8], came: &mut Vec<(u32, Came)>) {
        self.look_if_connected(came);
        let requests = self.server.take(room);
        let answers = self.client.take(room);
        self.under_way = self.under_way.saturating_sub(answers);
        let both = [Came::Requests(requests), Came::Answers(answers)];
        for (what, bytes) in both.into_iter().zip([requests, answers]) {
            if bytes > 0 {
                came.push((self.number, what));
            }
        }
        self.client.write();
        self.server.write();
    }
}

impl Drop for KernelTalk {
    /// What is closed before all has come is given up at once, as it is in simulation.
    fn drop(&mut self) {
        if self.under_way > 0 || self.here.client && self.left > 0 {
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
        while let Some(next) = self.waiting.front_mut() {
            let most = (next.bytes as usize).min(ZEROS.len());
            let word = next.word.as_slice();
            // Not connected yet, or no room; what has ended is seen by who reads.
            let written = socket::write_both(socket, word, &ZEROS[..most - word.len()]);
            let Ok(Some(written @ 1..)) = written else { break };
            next.word = None;
            next.bytes -= written as u64;
            if next.bytes == 0 {
                self.waiting.pop_front();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use proptest::prelude::*;
    use sojourn_core::{HostId, NoObserver, Params as _, Span, Stream, Words};
    use sojourn_host::apps::{PageConfig, RequestsConfig, RpmConfig};
    use sojourn_host::tcp::Endpoints;

    use super::*;

    /// A server whose client is elsewhere hears this over its first connection; bytes come in these pieces.
    fn hears<A: Dialogue<Talk = KernelTalk>>(
        build: impl FnOnce(KernelDial, Endpoints, Stream) -> A,
        pieces: &[Vec<u8>],
    ) -> io::Result<()> {
        let here = Here { server: true, client: false };
        let at_server = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 9);
        let settings = TcpSettings {
            cca: Control::named("cubic"),
            dscp: 0,
            mss: None,
            receive_buffer: None,
            most_unsent: None,
            blocking: true,
        };
        let ends = Endpoints { flow: FlowId(0), sender: HostId(0), receiver: HostId(1), dscp: 0 };
        let random = StreamAddress { seed: 1, run: 0 }.stream(0, Purpose::Controller);
        let app = build(KernelDial { settings, server: at_server, here }, ends, random);
        let sockets = Sockets { listener: None, server: None, client: None, dscp: 0, at_server };
        let mut own = Over::new(app, sockets, here);
        own.app.hear_of(Time::ZERO, 1);
        for (bytes, ms) in pieces.iter().zip(0..) {
            let now = Time::ZERO + Span::from_millis(ms);
            own.hear(now, 1, bytes, &mut NoObserver)?;
            own.hear(now, 2, bytes, &mut NoObserver)?;
            own.app.write();
        }
        Ok(())
    }

    fn page(dial: KernelDial, ends: Endpoints, random: Stream) -> Page<KernelDial> {
        let config = PageConfig::parse(&mut Words::new("bytes=10kB requests=3"));
        Page::over(dial, config.expect("it is good"), ends, random, Time::ZERO, Time::NEVER)
    }

    fn requests(dial: KernelDial, ends: Endpoints, random: Stream) -> Requests<KernelDial> {
        let config = RequestsConfig::parse(&mut Words::new("bytes=10kB streams=2 request_size=3B"));
        Requests::over(dial, config.expect("it is good"), ends, random, Time::ZERO, Time::NEVER)
    }

    fn rpm(dial: KernelDial, ends: Endpoints, random: Stream) -> Rpm<KernelDial> {
        let config = RpmConfig::parse(&mut Words::new("request_size=5B"));
        Rpm::over(dial, config.expect("it is good"), ends, random, Time::ZERO, Time::NEVER)
    }

    #[test]
    fn a_word_that_nobody_says_is_an_error() {
        assert!(hears(requests, &[vec![1, 9, 9, 0, 9], vec![9, 1]]).is_ok());
        assert!(hears(requests, &[vec![1, 9, 9, 2]]).is_err());
        assert!(hears(page, &[vec![2]]).is_err());
        assert!(hears(rpm, &[vec![2]]).is_err());
    }

    proptest! {
        #[test]
        fn nothing_that_comes_makes_it_panic(
            pieces in prop::collection::vec(prop::collection::vec(0_u8..4, 0..700), 0..6),
        ) {
            let _ = hears(page, &pieces);
            let _ = hears(requests, &pieces);
            let _ = hears(rpm, &pieces);
        }
    }
}
