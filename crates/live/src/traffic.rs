//! The applications of all flows, on the kernel's sockets: in one thread, but for those that write what they like over one connection,
//! of which each has its own.

mod flow;
mod own_end;
mod socket;
mod talking;
mod writer;

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::sockopt::set_socket_linger;
use sojourn_core::{
    Event, FlowId, FlowSample, FrameEvent, HostId, Observer, RateControl, Responsiveness, Span,
    StreamAddress, Time, VoiceEvent, Who,
};
use sojourn_scenario::{Flow, Offer, Scenario, Until};

use self::flow::{Receiving, Working};
pub(crate) use self::own_end::lasts;
pub(crate) use self::socket::{TcpSettings, knows_control};
use self::talking::Here;
use crate::cca::Control;
use crate::clock::Clock;
use crate::sys::{self, Priority};

/// What the applications tell the bottleneck, which keeps the books.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Notice {
    pub(crate) at: Time,
    pub(crate) flow: FlowId,
    pub(crate) what: What,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum What {
    Opened(u64),
    Refused(u64),
    Sample(FlowSample),
    Delivered(u64),
    Completed(u64, Span),
    Responsiveness(Responsiveness),
    Frame(FrameEvent),
    Nack(u32),
    KeyRequest,
    Voice(VoiceEvent),
    RateControl(RateControl),
}

impl What {
    /// `None` for what the bottleneck sees itself.
    fn of(event: &Event<'_>) -> Option<Self> {
        match event {
            Event::Opened { bytes } => Some(Self::Opened(*bytes)),
            Event::Delivered { bytes } => Some(Self::Delivered(*bytes)),
            Event::Completed { bytes, took } => Some(Self::Completed(*bytes, *took)),
            Event::Responsiveness(result) => Some(Self::Responsiveness(**result)),
            Event::Frame(frame) => Some(Self::Frame(**frame)),
            Event::Nack { packets } => Some(Self::Nack(*packets)),
            Event::KeyRequest => Some(Self::KeyRequest),
            Event::Voice(voice) => Some(Self::Voice(**voice)),
            Event::RateControl(control) => Some(Self::RateControl(**control)),
            _ => None,
        }
    }

    /// The event that it tells of.
    pub(crate) fn event<T>(&self, then: impl FnOnce(&Event<'_>) -> T) -> T {
        match self {
            Self::Opened(bytes) => then(&Event::Opened { bytes: *bytes }),
            Self::Refused(bytes) => then(&Event::Refused { bytes: *bytes }),
            Self::Sample(sample) => then(&Event::FlowSample(sample)),
            Self::Delivered(bytes) => then(&Event::Delivered { bytes: *bytes }),
            Self::Completed(bytes, took) => then(&Event::Completed { bytes: *bytes, took: *took }),
            Self::Responsiveness(result) => then(&Event::Responsiveness(result)),
            Self::Frame(frame) => then(&Event::Frame(frame)),
            Self::Nack(packets) => then(&Event::Nack { packets: *packets }),
            Self::KeyRequest => then(&Event::KeyRequest),
            Self::Voice(voice) => then(&Event::Voice(voice)),
            Self::RateControl(control) => then(&Event::RateControl(control)),
        }
    }
}

/// Hands on what an application says of itself.
struct Telling<'a, F: ?Sized>(&'a mut F);

impl<F: FnMut(What) + ?Sized> Observer for Telling<'_, F> {
    fn record(&mut self, _: Time, _: Who, event: &Event<'_>) {
        if let Some(what) = What::of(event) {
            (self.0)(what);
        }
    }
}

/// Zeros to be sent.
static ZEROS: LazyLock<Vec<u8>> = LazyLock::new(|| vec![0; 128 * 1024]);

/// Of more flows none has a thread of its own.
const MOST_WRITERS: usize = 1000;

/// Bytes of IPv4 and UDP headers.
const HEADERS: u32 = 28;

/// The sockets of all flows before the run begins.
pub(crate) struct Traffic<'a> {
    scenario: &'a Scenario,
    /// The namespaces of hosts; `None` of those that are elsewhere.
    hosts: Vec<Option<BorrowedFd<'a>>>,
    sending: Vec<Working>,
    receiving: Vec<Receiving>,
    /// Of TCP flows.
    controls: Vec<Option<Control>>,
    /// The run waits for transfers, those of these flows among them.
    waits: bool,
    awaited: Vec<usize>,
    /// In whose namespace the thread is that runs them.
    here: Option<HostId>,
}

/// An end of a flow, whose sockets are watched.
#[derive(Clone, Copy)]
enum Watched {
    Sender(usize),
    Receiver(usize),
}

impl<'a> Traffic<'a> {
    /// Makes what must be there before the first packet, on those hosts that have a namespace here. The calling thread moves between namespaces, so
    /// it should do nothing else. `settings` has those of every TCP flow.
    ///
    /// # Errors
    /// Which flow, and what the kernel refused.
    pub(crate) fn new(
        scenario: &'a Scenario,
        hosts: Vec<Option<BorrowedFd<'a>>>,
        settings: &[Option<TcpSettings>],
        address: StreamAddress,
    ) -> Result<Self, String> {
        let end = Time::ZERO + scenario.duration;
        let mut sending = Vec::new();
        let mut receiving = Vec::new();
        for ((flow, id), settings) in scenario.flows.iter().zip((0..).map(FlowId)).zip(settings) {
            let failed = |error: io::Error| format!("flow '{}': {error}", flow.name);
            let [sender, receiver] = match own_end::build(flow, id, address) {
                Some(both) => both.map(Some),
                None => [None, None],
            };
            receiving.push(match hosts[flow.dst.index()] {
                Some(host) => {
                    sys::enter_network(host).map_err(failed)?;
                    Receiving::new(flow, id, settings.as_ref(), receiver).map_err(failed)?
                }
                None => Receiving::Nobody,
            });
            let [server, client] = [flow.src, flow.dst].map(|host| hosts[host.index()]);
            server.map_or(Ok(()), sys::enter_network).map_err(failed)?;
            let here = Here { server: server.is_some(), client: client.is_some() };
            let settings = settings.clone().map(|own| TcpSettings {
                blocking: own.blocking && scenario.flows.len() <= MOST_WRITERS,
                ..own
            });
            let working = Working::new(flow, id, settings, sender, address, end, here);
            sending.push(working.map_err(failed)?);
        }
        let offers = |flow: &Flow| flow.offer(scenario.duration) == Offer::Transfers;
        let waits = scenario.until == Until::TransfersDone && scenario.flows.iter().any(offers);
        let is_awaited = |index: &usize| {
            waits && offers(&scenario.flows[*index]) && sending[*index].is_done().is_some()
        };
        let awaited = (0..sending.len()).filter(is_awaited).collect();
        let controls = settings.iter().map(|own| Some(own.as_ref()?.cca.clone())).collect();
        Ok(Self { scenario, hosts, sending, receiving, controls, waits, awaited, here: None })
    }

    /// Does what flows do until the run is over, or `is_over` says so. Sets `transfers_done` when those are done that begin on hosts
    /// here, if the run waits for transfers.
    ///
    /// # Errors
    /// Which flow, and what the kernel refused.
    pub(crate) fn run(
        &mut self,
        clock: &Clock,
        notices: &Sender<Notice>,
        is_over: &AtomicBool,
        transfers_done: &AtomicBool,
    ) -> Result<(), String> {
        // Without the right to it, packets of applications are late when the machine is busy.
        let _ = sys::set_priority(Priority::Second);
        self.here = None;
        let end = Time::ZERO + self.scenario.duration;
        let mut next_step = Time::ZERO;
        let mut room = vec![0; 256 * 1024];
        loop {
            let now = clock.now();
            if now >= end || is_over.load(Ordering::Relaxed) {
                break;
            }
            if now >= next_step {
                self.tell_samples(now, notices)?;
                while next_step <= now {
                    next_step += self.scenario.step;
                }
            }
            for index in 0..self.sending.len() {
                if now >= self.sending[index].next_wake() {
                    self.act(Watched::Sender(index), now, &mut room, notices)?;
                }
                if now >= self.receiving[index].next_wake() {
                    self.act(Watched::Receiver(index), now, &mut room, notices)?;
                }
            }
            let sending = &self.sending;
            self.awaited.retain(|index| sending[*index].is_done() == Some(false));
            if self.waits && self.awaited.is_empty() {
                self.waits = false;
                transfers_done.store(true, Ordering::Relaxed);
                continue;
            }
            let wakes = self.sending.iter().map(Working::next_wake);
            let wakes = wakes.chain(self.receiving.iter().map(Receiving::next_wake));
            let wake = wakes.fold(next_step.min(end), Time::min);
            for ready in self.wait(clock, wake)? {
                self.act(ready, clock.now(), &mut room, notices)?;
            }
        }
        self.tell_samples(clock.now(), notices)?;
        self.sending.iter().try_for_each(Working::check)?;
        self.receiving.iter().try_for_each(Receiving::check)
    }

    /// Lets an end of a flow do what is due or has become possible.
    fn act(
        &mut self,
        end: Watched,
        now: Time,
        room: &mut [u8],
        notices: &Sender<Notice>,
    ) -> Result<(), String> {
        let (Watched::Sender(index) | Watched::Receiver(index)) = end;
        let sending = &mut self.sending[index];
        let mut tell = tell(now, sending.id, notices);
        let done = match end {
            Watched::Sender(_) => match sending.opens_at(now) {
                Some(host) if self.here != Some(host) => {
                    self.here = Some(host);
                    self.hosts[host.index()].map_or(Ok(()), sys::enter_network)
                }
                _ => Ok(()),
            }
            .and_then(|()| sending.act(now, room, &mut tell)),
            Watched::Receiver(_) => self.receiving[index].act(now, room, &mut tell),
        };
        done.map_err(|error| format!("flow '{}': {error}", self.scenario.flows[index].name))
    }

    fn tell_samples(&self, now: Time, notices: &Sender<Notice>) -> Result<(), String> {
        for (index, sending) in self.sending.iter().enumerate() {
            if let Some(sample) = sending.sample(now) {
                tell(now, sending.id, notices)(What::Sample(sample));
            }
            self.controls[index].as_ref().map_or(Ok(()), Control::check).map_err(|problem| {
                format!("flow '{}': {problem}", self.scenario.flows[index].name)
            })?;
        }
        Ok(())
    }

    /// Waits until `wake` for sockets on which something can be done, and returns these.
    fn wait(&self, clock: &Clock, wake: Time) -> Result<Vec<Watched>, String> {
        let now = clock.now();
        let mut watched = Vec::new();
        let mut fds: Vec<PollFd<'_>> = Vec::new();
        for (index, sending) in self.sending.iter().enumerate() {
            sending.each_socket(now, &mut |socket, flags| {
                fds.push(PollFd::new(socket, flags));
                watched.push(Watched::Sender(index));
            });
        }
        for (index, receiving) in self.receiving.iter().enumerate() {
            receiving.each_socket(&mut |socket| {
                fds.push(PollFd::new(socket, PollFlags::IN));
                watched.push(Watched::Receiver(index));
            });
        }
        let left = wake.since(now).as_nanos();
        let timeout = Timespec {
            tv_sec: (left / 1_000_000_000) as i64,
            tv_nsec: (left % 1_000_000_000) as i64,
        };
        match poll(&mut fds, Some(&timeout)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(format!("poll: {error}")),
        }
        let mut ready = fds.iter().map(|fd| !fd.revents().is_empty());
        watched.retain(|_| ready.next() == Some(true));
        Ok(watched)
    }
}

impl Drop for Traffic<'_> {
    /// Connections end at once. Otherwise the kernel would keep those with something left to send, and the networks of their hosts, until it
    /// gives up to send it to hosts that are gone.
    fn drop(&mut self) {
        let reset = |socket: &OwnedFd| {
            // One that can't be set so ends later.
            let _ = set_socket_linger(socket, Some(Duration::ZERO));
        };
        for sending in &self.sending {
            sending.each_socket(Time::ZERO, &mut |socket, _| reset(socket));
        }
        for receiving in &self.receiving {
            receiving.each_socket(&mut |socket| reset(socket));
        }
    }
}

/// What takes a flow's notices. Nobody listens once the run is over.
fn tell(at: Time, flow: FlowId, notices: &Sender<Notice>) -> impl FnMut(What) {
    move |what| {
        let _ = notices.send(Notice { at, flow, what });
    }
}
