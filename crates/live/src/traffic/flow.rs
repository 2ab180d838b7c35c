//! What each flow does: when it connects, how much it writes, what it reads.

use std::io;
use std::net::SocketAddrV4;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::event::PollFlags;
use rustix::net::{Shutdown, shutdown};
use sojourn_core::{
    Direction, FlowId, FlowSample, HostId, Purpose, Queued, Rate, Span, StreamAddress, Time,
};
use sojourn_host::Endpoint;
use sojourn_host::apps::arrivals::Draws;
use sojourn_host::apps::{
    ArrivalsConfig, BulkConfig, OnOffConfig, Source, SourceState, Udp, UdpConfig,
};
use sojourn_scenario::{App, Flow, Traffic};

use super::own_end::{self, OwnEnd};
use super::socket::{self, TcpSettings};
use super::talking::{self, Here, Talking};
use super::writer::{Plan, Writer};
use super::{What, ZEROS};
use crate::address;

/// A flow at work.
pub(super) struct Working {
    pub(super) id: FlowId,
    src: HostId,
    dst: SocketAddrV4,
    does: Does,
}

enum Does {
    Lone(Box<Lone>),
    Arrivals(Box<Coming>),
    /// Those ends that are here, and the host of the client, which connects, or of the server if that is here alone.
    Talking(Box<dyn Talking + Send>, HostId),
    Udp {
        sender: OwnedFd,
        pace: Udp,
        header: u32,
    },
    Ping {
        sender: OwnedFd,
        next: Time,
        interval: Span,
        stop: Time,
        payload: usize,
        number: u16,
    },
    Own(Box<OwnEnd>),
    /// Programs do it, or another machine.
    Nothing,
}

/// One connection.
struct Lone {
    settings: TcpSettings,
    start: Time,
    stop: Time,
    source: Source,
    connection: Option<Connection>,
}

/// Transfers that come at random.
struct Coming {
    settings: TcpSettings,
    config: ArrivalsConfig,
    draws: Draws,
    next: Time,
    stop: Time,
    left: u64,
    open: Vec<Connection>,
    /// What the connections did that are closed.
    closed: FlowSample,
}

/// The sending end of a connection.
struct Connection {
    socket: Arc<OwnedFd>,
    source: Source,
    /// Its calls wait for room, so a thread makes them, as soon as there is a connection.
    waits: bool,
    writer: Option<Writer>,
    written: u64,
    /// It writes nothing more.
    has_ended: bool,
    /// The other end has closed, too, because it has all; or it gave up.
    is_closed: bool,
}

impl Working {
    /// The calling thread must be in the namespace of the flow's source, if that is here.
    pub(super) fn new(
        flow: &Flow,
        id: FlowId,
        settings: Option<TcpSettings>,
        own: Option<Box<dyn Endpoint>>,
        address: StreamAddress,
        end: Time,
        here: Here,
    ) -> io::Result<Self> {
        let (start, stop) = own_end::lasts(flow, address);
        let until = stop.min(end);
        let dst = SocketAddrV4::new(address::of_host(flow.dst), address::port_of(id));
        let is_here = here.server || here.client && is_asked(flow);
        if !is_here {
            return Ok(Self { id, src: flow.src, dst, does: Does::Nothing });
        }
        let ends = own_end::ends_of(flow, id);
        let does = match (&flow.app, settings) {
            (App::Tcp { traffic, transport, .. }, Some(settings)) => {
                let source = match traffic {
                    Traffic::Bulk(BulkConfig { rate: None, bytes }) => {
                        Source::Bulk { bytes: *bytes, stop }
                    }
                    Traffic::Bulk(BulkConfig { rate: Some(rate), bytes }) => {
                        Source::paced(*rate, transport.mss, *bytes, start, until)
                    }
                    Traffic::OnOff(OnOffConfig { on, off, random }) => {
                        let random =
                            random.then(|| address.stream_named(&flow.name, Purpose::Application));
                        Source::on_off(*on, *off, random, start, until)
                    }
                    Traffic::Arrivals(config) => {
                        let mut draws = Draws::new(address, &flow.name);
                        let next = start + draws.gap(config.per_second);
                        let does = Does::Arrivals(Box::new(Coming {
                            settings,
                            config: config.clone(),
                            draws,
                            next,
                            stop: until,
                            left: config.transfers.unwrap_or(u64::MAX),
                            open: Vec::new(),
                            closed: FlowSample::default(),
                        }));
                        return Ok(Self { id, src: flow.src, dst, does });
                    }
                    Traffic::Page(_) | Traffic::Requests(_) | Traffic::Rpm(_) => {
                        let ends =
                            talking::build(flow, traffic, id, &settings, address, end, here)?;
                        let host = if here.client { flow.dst } else { flow.src };
                        let does = Does::Talking(ends.ok_or_else(unknown)?, host);
                        return Ok(Self { id, src: flow.src, dst, does });
                    }
                };
                Does::Lone(Box::new(Lone { settings, start, stop, source, connection: None }))
            }
            (App::Udp(config), _) => {
                let sender = socket::datagrams(flow.dscp, dst)?;
                let UdpConfig { header, .. } = *config;
                Does::Udp { sender, pace: Udp::new(*config, ends, start, stop), header }
            }
            (App::Ping(config), _) => Does::Ping {
                sender: socket::echoes(flow.dscp, *dst.ip())?,
                next: start,
                interval: config.interval,
                stop: until,
                payload: config.size as usize,
                number: 0,
            },
            (App::External(_), _) => match own {
                Some(own) => Does::Own(Box::new(OwnEnd::new(own, ends, Direction::Forward)?)),
                None => Does::Nothing,
            },
            _ => return Err(unknown()),
        };
        Ok(Self { id, src: flow.src, dst, does })
    }

    /// When it does something without being asked.
    pub(super) fn next_wake(&self) -> Time {
        match &self.does {
            Does::Lone(lone) => match &lone.connection {
                None => lone.start,
                Some(own) if own.has_ended => Time::NEVER,
                Some(own) => own.source.next_wake().min(lone.stop),
            },
            Does::Arrivals(coming) => coming.next_arrival(),
            Does::Udp { pace, .. } => pace.next_send(),
            Does::Ping { next, stop, .. } if next < stop => *next,
            Does::Own(own) => own.next_wake(),
            Does::Talking(ends, _) => ends.next_wake(),
            Does::Ping { .. } | Does::Nothing => Time::NEVER,
        }
    }

    /// The host in which the thread must be for [`Working::act`], because that may make sockets.
    pub(super) fn opens_at(&self, now: Time) -> Option<HostId> {
        match &self.does {
            Does::Lone(lone) if lone.connection.is_none() => {
                (now >= lone.start).then_some(self.src)
            }
            Does::Arrivals(coming) => (now >= coming.next_arrival()).then_some(self.src),
            Does::Talking(_, host) => Some(*host),
            _ => None,
        }
    }

    /// Does what is due by `now`.
    pub(super) fn act(
        &mut self,
        now: Time,
        room: &mut [u8],
        tell: &mut impl FnMut(What),
    ) -> io::Result<()> {
        match &mut self.does {
            Does::Lone(lone) => match &mut lone.connection {
                None if now >= lone.start => {
                    let socket = socket::open(&lone.settings, self.dst)?;
                    let waits = lone.settings.blocking;
                    lone.connection = Some(Connection::new(socket, lone.source.clone(), waits));
                }
                None => {}
                Some(connection) => connection.act(now)?,
            },
            Does::Arrivals(coming) => coming.act(now, self.dst, tell)?,
            Does::Udp { sender, pace, header } => {
                while let Some(packet) = pace.send(now) {
                    let payload = (packet.ip_len() - *header) as usize;
                    // A datagram that finds no room is lost before it left.
                    socket::write(sender, &ZEROS[..payload.min(ZEROS.len())])?;
                }
            }
            Does::Ping { sender, next, interval, stop, payload, number } => {
                let mut packet = Vec::new();
                while now >= *next && *next < *stop {
                    socket::echo_request(address::port_of(self.id), *number, *payload, &mut packet);
                    socket::write(sender, &packet)?;
                    *number = number.wrapping_add(1);
                    *next += *interval;
                }
            }
            Does::Own(own) => own.act(now, room, tell)?,
            Does::Talking(ends, _) => ends.act(now, room, tell)?,
            Does::Nothing => {}
        }
        Ok(())
    }

    /// Calls `watch` with every sending socket that is not closed, and what it waits for.
    pub(super) fn each_socket<'a>(
        &'a self,
        now: Time,
        watch: &mut impl FnMut(&'a OwnedFd, PollFlags),
    ) {
        let connections = match &self.does {
            Does::Lone(lone) => lone.connection.as_slice(),
            Does::Arrivals(coming) => &coming.open[..],
            Does::Udp { .. } | Does::Ping { .. } | Does::Nothing => &[],
            Does::Own(own) => {
                watch(&own.socket, PollFlags::IN);
                &[]
            }
            Does::Talking(ends, _) => {
                ends.each_socket(watch);
                &[]
            }
        };
        for own in connections.iter().filter(|own| !own.is_closed) {
            let writes = own.writer.is_none() && (own.waits || own.left(now) > 0);
            watch(&own.socket, if writes { PollFlags::OUT } else { PollFlags::IN });
        }
    }

    pub(super) fn check(&self) -> Result<(), String> {
        match &self.does {
            Does::Own(own) => own.check(),
            _ => Ok(()),
        }
    }

    /// Whether all its transfers have ended, and no other is to come; `None` if it has none, or not here.
    pub(super) fn is_done(&self) -> Option<bool> {
        match &self.does {
            Does::Lone(lone) => Some(lone.connection.as_ref().is_some_and(|own| own.is_closed)),
            Does::Arrivals(coming) => {
                Some(coming.next_arrival().is_never() && coming.open.is_empty())
            }
            Does::Talking(ends, _) => ends.is_done(),
            Does::Udp { .. } | Does::Ping { .. } | Does::Own(_) | Does::Nothing => None,
        }
    }

    /// What `ss` shows; `None` if it is not TCP, or not yet.
    pub(super) fn sample(&self, now: Time) -> Option<FlowSample> {
        match &self.does {
            Does::Lone(lone) => {
                socket::sample(&lone.connection.as_ref()?.socket, &lone.settings.cca).ok()
            }
            Does::Arrivals(coming) => Some(coming.sample()),
            Does::Talking(ends, _) => ends.sample(now),
            Does::Udp { .. } | Does::Ping { .. } | Does::Own(_) | Does::Nothing => None,
        }
    }
}

/// Whether its receiver connects and asks.
fn is_asked(flow: &Flow) -> bool {
    let App::Tcp { traffic, .. } = &flow.app else { return false };
    matches!(traffic, Traffic::Page(_) | Traffic::Requests(_) | Traffic::Rpm(_))
}

/// A scenario with such a flow was refused before.
fn unknown() -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, "the live engine has no such application")
}

impl Connection {
    fn new(socket: OwnedFd, source: Source, waits: bool) -> Self {
        let socket = Arc::new(socket);
        Self { socket, source, waits, writer: None, written: 0, has_ended: false, is_closed: false }
    }

    fn act(&mut self, now: Time) -> io::Result<()> {
        while now >= self.source.next_wake() {
            self.source.on_wake(now);
        }
        if self.waits {
            self.let_write(now)?;
        } else {
            self.write(now)?;
        }
        if self.has_ended && !self.is_closed {
            self.is_closed = !matches!(socket::drain(&self.socket, &mut [0; 64]), Ok(true));
        }
        Ok(())
    }

    /// Tells the thread that writes what to write.
    fn let_write(&mut self, now: Time) -> io::Result<()> {
        if self.has_ended {
            return Ok(());
        }
        let Some(writer) = &mut self.writer else {
            match socket::write(&self.socket, &[]) {
                Err(error) if error.kind() != io::ErrorKind::NotConnected => return Err(error),
                _ if socket::is_connected(&self.socket) => {
                    self.writer = Some(Writer::new(&self.socket)?);
                    return self.let_write(now);
                }
                _ => self.has_ended = self.source.state(now) == SourceState::Stopped,
            }
            return Ok(());
        };
        self.written = writer.written()?;
        let (until, is_all) = match self.source.state(now) {
            SourceState::Endless => (u64::MAX, false),
            SourceState::Until(end) => (end, true),
            SourceState::SoFar(end) => (end, false),
            SourceState::Paused => (0, false),
            SourceState::Stopped => {
                self.has_ended = true;
                writer.end();
                return Ok(());
            }
        };
        writer.set_plan(Plan { until, is_all });
        self.has_ended = is_all && self.written >= until;
        Ok(())
    }

    /// Writes what the socket takes, and comes back when it takes more.
    fn write(&mut self, now: Time) -> io::Result<()> {
        // A few writes, so that one connection does not keep the others waiting.
        for _ in 0..4 {
            let most = self.left(now);
            if most == 0 {
                break;
            }
            let bytes = &ZEROS[..(most as usize).min(ZEROS.len())];
            match socket::write(&self.socket, bytes) {
                Ok(Some(written)) => self.written += written as u64,
                // Not connected yet, or closed by the other end.
                Ok(None) => break,
                Err(error) if error.kind() == io::ErrorKind::NotConnected => break,
                Err(error) => return Err(error),
            }
        }
        let is_done = match self.source.state(now) {
            SourceState::Until(end) => self.written >= end,
            SourceState::Stopped => true,
            _ => false,
        };
        if is_done && !self.has_ended {
            self.has_ended = true;
            shutdown(&*self.socket, Shutdown::Write)?;
        }
        Ok(())
    }

    /// Bytes that may be written now.
    fn left(&self, now: Time) -> u64 {
        match self.source.state(now) {
            SourceState::Endless => u64::MAX,
            SourceState::Until(end) | SourceState::SoFar(end) => end.saturating_sub(self.written),
            SourceState::Paused | SourceState::Stopped => 0,
        }
    }
}

impl Coming {
    fn next_arrival(&self) -> Time {
        if self.next < self.stop && self.left > 0 { self.next } else { Time::NEVER }
    }

    fn act(&mut self, now: Time, dst: SocketAddrV4, tell: &mut impl FnMut(What)) -> io::Result<()> {
        while now >= self.next_arrival() {
            self.next += self.draws.gap(self.config.per_second);
            self.left -= 1;
            let (bytes, _) = self.draws.transfer(&self.config.sizes);
            if self.open.len() >= self.config.most as usize {
                tell(What::Refused(bytes));
                continue;
            }
            tell(What::Opened(bytes));
            let source = Source::Bulk { bytes: Some(bytes), stop: Time::NEVER };
            let socket = socket::open(&self.settings, dst)?;
            self.open.push(Connection::new(socket, source, false));
        }
        let mut at = 0;
        while at < self.open.len() {
            // A transfer that the kernel gives up stays open in the results.
            let has_failed = self.open[at].act(now).is_err();
            if has_failed || self.open[at].is_closed {
                let own = self.open.swap_remove(at);
                if let Ok(sample) = socket::sample(&own.socket, &self.settings.cca) {
                    add_totals(&mut self.closed, &sample);
                }
            } else {
                at += 1;
            }
        }
        Ok(())
    }

    /// The sum of what its connections show.
    fn sample(&self) -> FlowSample {
        let mut sum = self.closed;
        for own in &self.open {
            let Ok(sample) = socket::sample(&own.socket, &self.settings.cca) else { continue };
            add_totals(&mut sum, &sample);
            sum.cwnd += sample.cwnd;
            sum.not_sent += sample.not_sent;
            sum.unacked += sample.unacked;
            sum.sacked += sample.sacked;
            sum.lost += sample.lost;
            sum.retrans += sample.retrans;
            let rate = sum.delivery_rate.as_bps().saturating_add(sample.delivery_rate.as_bps());
            sum.delivery_rate = Rate::from_bps(rate);
        }
        sum
    }
}

fn add_totals(sum: &mut FlowSample, sample: &FlowSample) {
    sum.retrans_total += sample.retrans_total;
    sum.timeouts_total += sample.timeouts_total;
    sum.delivered += sample.delivered;
    sum.delivered_ce += sample.delivered_ce;
    sum.bytes_sent += sample.bytes_sent;
    sum.bytes_retrans += sample.bytes_retrans;
    sum.bytes_acked += sample.bytes_acked;
    sum.busy += sample.busy;
    sum.rwnd_limited += sample.rwnd_limited;
    sum.sndbuf_limited += sample.sndbuf_limited;
}

/// The receiving end of a flow.
pub(super) enum Receiving {
    Tcp {
        listener: OwnedFd,
        connections: Vec<OwnedFd>,
    },
    Udp(OwnedFd),
    Own(Box<OwnEnd>),
    /// The kernel answers, or it is on another machine.
    Nobody,
}

impl Receiving {
    /// Made in the namespace of the flow's destination.
    pub(super) fn new(
        flow: &Flow,
        id: FlowId,
        settings: Option<&TcpSettings>,
        own: Option<Box<dyn Endpoint>>,
    ) -> io::Result<Self> {
        let port = address::port_of(id);
        Ok(match (&flow.app, settings) {
            // The flow's `Working` is both ends.
            (App::Tcp { .. }, _) if is_asked(flow) => Self::Nobody,
            (App::Tcp { .. }, Some(settings)) => {
                Self::Tcp { listener: socket::listener(settings, port)?, connections: Vec::new() }
            }
            (App::Udp(_), _) => Self::Udp(socket::datagram_sink(port)?),
            _ => match own {
                Some(own) => {
                    let ends = own_end::ends_of(flow, id);
                    Self::Own(Box::new(OwnEnd::new(own, ends, Direction::Reverse)?))
                }
                None => Self::Nobody,
            },
        })
    }

    /// When it does something without being asked.
    pub(super) fn next_wake(&self) -> Time {
        match self {
            Self::Own(own) => own.next_wake(),
            Self::Tcp { .. } | Self::Udp(_) | Self::Nobody => Time::NEVER,
        }
    }

    pub(super) fn check(&self) -> Result<(), String> {
        match self {
            Self::Own(own) => own.check(),
            Self::Tcp { .. } | Self::Udp(_) | Self::Nobody => Ok(()),
        }
    }

    pub(super) fn each_socket<'a>(&'a self, watch: &mut impl FnMut(&'a OwnedFd)) {
        match self {
            Self::Tcp { listener, connections } => {
                watch(listener);
                connections.iter().for_each(watch);
            }
            Self::Udp(sink) => watch(sink),
            Self::Own(own) => watch(&own.socket),
            Self::Nobody => {}
        }
    }

    /// Takes what has come, and does what is due by `now`.
    pub(super) fn act(
        &mut self,
        now: Time,
        room: &mut [u8],
        tell: &mut impl FnMut(What),
    ) -> io::Result<()> {
        match self {
            Self::Tcp { listener, connections } => {
                while let Some(connection) = socket::accept(listener)? {
                    connections.push(connection);
                }
                // One that ended, well or not, is closed.
                connections.retain(|own| matches!(socket::drain(own, room), Ok(true)));
            }
            Self::Udp(sink) => {
                socket::drain(sink, room)?;
            }
            Self::Own(own) => own.act(now, room, tell)?,
            Self::Nobody => {}
        }
        Ok(())
    }
}
