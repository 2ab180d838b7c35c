//! The loop between the hosts: packets are read from their devices, pass the network, and are written to the
//! devices of the hosts to which they go, each at the time that was computed for it.

use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::num::NonZeroU64;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::Receiver;

use rustix::event::{PollFd, PollFlags};
use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities, set_current_timer_slack};
use sojourn_core::{
    ETHERNET_HEADER, Event, HostId, NoObserver, Observer, PortId, QueueSample, Queued, Span,
    StreamAddress, Time, Who,
};
use sojourn_metrics::Histogram;
use sojourn_scenario::{App, Scenario};

use crate::clock::Clock;
use crate::frame::{Bytes, Frame, Part};
use crate::headers::{self, Above};
use crate::ledger::Ledger;
use crate::network::Network;
use crate::offload::{self, HEADER, LONGEST};
use crate::strangers::Strangers;
use crate::sys::{self, Priority};
use crate::traffic::{Notice, What};
use crate::waiting::Waiting;

/// What came out of a run beside its events.
#[derive(Debug)]
pub(crate) struct Passed {
    pub(crate) end: Time,
    /// Somebody asked the run to stop before its time.
    pub(crate) is_stopped: bool,
    /// How much later than computed packets were written, in nanoseconds.
    pub(crate) lateness: Histogram,
    /// Packets of no flow, which went nowhere.
    pub(crate) strays: u64,
    /// Packets that a host's device did not take.
    pub(crate) refused: u64,
    /// The last sample of each link, and its queue's own counters.
    pub(crate) queues: Vec<(QueueSample, Vec<(&'static str, u64)>)>,
}

/// How far the run is that is under way: its time and its length in milliseconds, and what came through in the last half second, in
/// kbit/s. Its length is 0 if there is none.
static UNDER_WAY: [AtomicU64; 3] = [const { AtomicU64::new(0) }; 3];

/// How often that is renewed.
const RENEWED: Span = Span::from_millis(500);

/// The time, the length and the rate in Mbit/s of the live run that is under way.
pub fn under_way() -> Option<(Span, Span, f64)> {
    let [at, of, kbps] = [0, 1, 2].map(|index: usize| UNDER_WAY[index].load(Ordering::Relaxed));
    (of > 0).then(|| (Span::from_millis(at), Span::from_millis(of), kbps as f64 / 1000.0))
}

/// What ends a run beside its length.
pub(crate) struct Ends<'a> {
    pub(crate) is_over: &'a AtomicBool,
    /// Packets are carried beyond the end, and not measured, as long as this holds.
    pub(crate) lingers: &'a AtomicBool,
}

/// Packets that are read from one device before what is due is written.
const BURST: usize = 32;

/// Above this the kernel would stop a thread that comes before all others for 50 ms of each second
/// (`sched_rt_runtime_us`), since it has little time to sleep; with packets of many segments above the second.
const FASTEST_IN_FRONT: [f64; 2] = [700.0, 4000.0];

/// Above this many Mbit/s the kernels leave cutting into segments to the devices, which are ours.
const FASTEST_CUT: f64 = 1000.0;

/// Between what packets pass.
pub(crate) struct Between<'a> {
    pub(crate) devices: Vec<&'a File>,
    /// A `virtio_net_hdr` comes before each packet.
    pub(crate) offloads: bool,
    /// Bytes between that and IP.
    pub(crate) before: usize,
    pub(crate) who: Known<'a>,
}

/// What is known of the packets.
pub(crate) enum Known<'a> {
    /// They are those of the scenario's flows.
    Flows(&'a Scenario),
    /// They come in at two interfaces, and go from one to the other.
    Nothing,
}

enum Books {
    Flows(Ledger),
    Strangers(Strangers),
}

pub(crate) struct Bottleneck<'a> {
    scenario: &'a Scenario,
    devices: Vec<&'a File>,
    /// Whether a `virtio_net_hdr` comes before packets, and how many bytes in all.
    offloads: bool,
    before: usize,
    network: Network,
    books: Books,
    bytes: Bytes,
    /// Where packets are read, and where parts of them are put together.
    room: Vec<u8>,
    cut: Vec<u8>,
    /// Bytes that left hosts, that came to one, and that the network dropped or lost.
    entered: u64,
    left: u64,
    passed: Passed,
}

/// The most that the flows can send, in Mbit/s: the least rate on the way of the fastest.
pub(crate) fn fastest_mbps(scenario: &Scenario) -> f64 {
    let of_flow = |flow: &sojourn_scenario::Flow| {
        let links = flow.forward.iter().filter_map(|port| scenario.links.get(port.index()));
        let rates = links.map(|link| link.rate.peak()).filter(|rate| !rate.is_unlimited());
        rates.map(|rate| rate.as_mbps()).fold(f64::INFINITY, f64::min)
    };
    // A ping fills nothing.
    let fills = scenario.flows.iter().filter(|flow| !matches!(flow.app, App::Ping(_)));
    fills.map(of_flow).fold(0.0, f64::max)
}

/// Whether packets of this scenario stand for several segments.
pub(crate) fn has_offloads(scenario: &Scenario) -> bool {
    let wants = |flow: &sojourn_scenario::Flow| matches!(&flow.app, App::Tcp { transport, .. } if transport.offload);
    fastest_mbps(scenario) > FASTEST_CUT || scenario.flows.iter().any(wants)
}

impl<'a> Bottleneck<'a> {
    pub(crate) fn new(
        scenario: &'a Scenario,
        between: Between<'a>,
        address: StreamAddress,
    ) -> Self {
        let Between { devices, offloads, before, who } = between;
        Self {
            scenario,
            devices,
            offloads,
            before: before + if offloads { HEADER } else { 0 },
            network: Network::new(scenario, address),
            books: match who {
                Known::Flows(scenario) => Books::Flows(Ledger::new(scenario)),
                Known::Nothing => Books::Strangers(Strangers::default()),
            },
            bytes: Bytes::default(),
            room: vec![0; LONGEST],
            cut: Vec::new(),
            entered: 0,
            left: 0,
            passed: Passed {
                end: Time::ZERO,
                is_stopped: false,
                lateness: Histogram::new(),
                strays: 0,
                refused: 0,
                queues: Vec::new(),
            },
        }
    }

    /// Carries packets until the run is over, or `is_over` says so.
    ///
    /// # Errors
    /// A device can't be read or written; or bytes are missing, which is a fault of this program.
    pub(crate) fn run(
        mut self,
        clock: &Clock,
        notices: &Receiver<Notice>,
        ends: &Ends<'_>,
        observer: &mut impl Observer,
    ) -> Result<Passed, String> {
        // Both make it late if they can't be had, which the lateness shows.
        let _ = set_current_timer_slack(NonZeroU64::new(1));
        let is_in_front = fastest_mbps(self.scenario)
            < FASTEST_IN_FRONT[usize::from(self.offloads)]
            && sys::set_priority(Priority::First).is_ok();
        let mut waiting = Waiting::new(is_in_front);
        // What it reads comes from others, and its devices are open: it needs no rights any more.
        give_up_rights()?;
        let end = Time::ZERO + self.scenario.duration;
        let warm = Time::ZERO + self.scenario.warmup;
        let mut is_warm = self.scenario.warmup.is_zero();
        let mut next_step = Time::ZERO;
        let mut told = (Time::ZERO, 0);
        let devices = self.devices.clone().into_iter().map(File::as_fd);
        let mut fds: Vec<PollFd<'a>> =
            devices.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
        loop {
            let now = clock.now();
            if now >= end || ends.is_over.load(Ordering::Relaxed) {
                break;
            }
            self.take_in(clock, end, observer)?;
            self.put_out(clock, clock.now().min(end), observer)?;
            let now = clock.now();
            if !is_warm && now >= warm {
                is_warm = true;
                for (port, sample) in self.network.sample(warm, observer) {
                    observer.record(warm, Who::Port(port), &Event::WarmQueueSample(&sample));
                }
            }
            if now >= next_step && now < end {
                self.sample(now, observer);
                while next_step <= now {
                    next_step += self.scenario.step;
                }
            }
            if sys::is_interrupted() && matches!(self.books, Books::Flows(_)) {
                if !is_warm {
                    return Err("stopped before its warm-up was over".to_owned());
                }
                self.passed.is_stopped = true;
                break;
            }
            if now.since(told.0) >= RENEWED {
                let kbps = (self.left - told.1) * 8_000_000 / now.since(told.0).as_nanos();
                tell_progress(now, self.scenario.duration, kbps);
                told = (now, self.left);
            }
            notices.try_iter().for_each(|notice| note(notice, end, observer));
            let warm = if is_warm { Time::NEVER } else { warm };
            let wake = self.network.next_wake().min(next_step).min(warm).min(end);
            waiting.wait(&mut fds, clock, wake)?;
        }
        ends.is_over.store(true, Ordering::Relaxed);
        let now = clock.now().min(end);
        tell_progress(now, Span::ZERO, 0);
        self.put_out(clock, now, observer)?;
        let last = self.network.sample(now, observer);
        for (port, sample) in &last {
            observer.record(now, Who::Port(*port), &Event::QueueSample(sample));
        }
        let queues = last.into_iter().map(|(_, sample)| sample).zip(self.network.details());
        let queues = queues.collect();
        let end = now;
        self.linger(clock, ends.lingers, &mut waiting, &mut fds)?;
        // The last samples come when the applications have noticed that it is over.
        notices.iter().for_each(|notice| note(notice, end, observer));
        self.check()?;
        Ok(Passed { end, queues, ..self.passed })
    }

    /// Carries packets for programs that end after the run has.
    fn linger(
        &mut self,
        clock: &Clock,
        lingers: &AtomicBool,
        waiting: &mut Waiting,
        fds: &mut [PollFd<'_>],
    ) -> Result<(), String> {
        let lateness = self.passed.lateness.clone();
        let counts = (self.passed.strays, self.passed.refused);
        while lingers.load(Ordering::Relaxed) {
            self.take_in(clock, Time::NEVER, &mut NoObserver)?;
            self.put_out(clock, clock.now(), &mut NoObserver)?;
            waiting.wait(fds, clock, self.network.next_wake())?;
        }
        self.passed.lateness = lateness;
        (self.passed.strays, self.passed.refused) = counts;
        Ok(())
    }

    /// Reads what the hosts have sent.
    fn take_in(
        &mut self,
        clock: &Clock,
        end: Time,
        observer: &mut impl Observer,
    ) -> Result<(), String> {
        for index in 0..self.devices.len() {
            for _ in 0..BURST {
                let mut device = self.devices[index];
                let length = match device.read(&mut self.room) {
                    Ok(length) => length,
                    Err(error) => match error.kind() {
                        ErrorKind::WouldBlock | ErrorKind::Interrupted => break,
                        _ => return Err(format!("a host's device can't be read: {error}")),
                    },
                };
                let now = clock.now();
                if now >= end {
                    return Ok(());
                }
                self.enter(now, HostId(index as u16), length, observer);
            }
        }
        Ok(())
    }

    /// So many bytes were read from a host's device.
    fn enter(&mut self, now: Time, from: HostId, length: usize, observer: &mut impl Observer) {
        let whole = &self.room[..length];
        if self.is_question_of_address(whole) {
            self.pass_on(from, length);
            return;
        }
        let headers = whole.get(self.before..).and_then(headers::read);
        let mut how = (1, Part::default());
        if let Some(headers) = headers.as_ref().filter(|_| self.offloads) {
            how = offload::part_of(whole, headers);
        }
        let (segments, part) = (how.0, &how.1);
        let packet = match &mut self.books {
            Books::Flows(ledger) => headers
                .and_then(|headers| ledger.leave(now, from, &headers, (segments, part), observer)),
            Books::Strangers(strangers) => {
                let mut packet = strangers.packet(now, from, whole, self.before, headers.as_ref());
                if let Some(packet) = &mut packet {
                    offload::count_segments(packet, segments, part);
                }
                packet
            }
        };
        let Some(packet) = packet else {
            self.passed.strays += 1;
            return;
        };
        self.entered += u64::from(packet.wire_len);
        let bytes = self.bytes.keep(whole, packet.segments);
        self.network.enter(now, Frame { packet, bytes, part: how.1 }, observer);
    }

    /// Whether a frame asks for, or says, which device an address of one of the flows' hosts has (ARP).
    fn is_question_of_address(&self, frame: &[u8]) -> bool {
        let is_between_interfaces = self.before >= HEADER + ETHERNET_HEADER as usize;
        is_between_interfaces
            && matches!(self.books, Books::Flows(_))
            && frame.get(self.before - 2..self.before) == Some(&headers::ARP[..])
    }

    /// Such a frame goes to all other hosts at once, as over a switch: it is no packet of a flow.
    fn pass_on(&mut self, from: HostId, length: usize) {
        let others = self.devices.iter().enumerate().filter(|(index, _)| *index != from.index());
        for (_, device) in others {
            // One that is lost is asked for again.
            let _ = (&**device).write(&self.room[..length]);
        }
    }

    /// Writes what has come through by `until`.
    fn put_out(
        &mut self,
        clock: &Clock,
        until: Time,
        observer: &mut impl Observer,
    ) -> Result<(), String> {
        while let Some((due, frame)) = self.network.next_arrival(until, observer) {
            let Frame { packet, bytes: place, part } = frame;
            let now = clock.now().max(due);
            self.passed.lateness.record(now.since(due).as_nanos());
            let mut bytes = self.bytes.packet(place);
            let is_cut = part.segment > 0
                && (part.skipped > 0 || !ends_with(bytes, self.before, &part))
                && offload::cut(bytes, self.before - HEADER, &part, &mut self.cut);
            if is_cut {
                bytes = &mut self.cut[..];
            }
            if let Some(ip) = bytes.get_mut(self.before..)
                && let Some(headers) = headers::read(ip)
            {
                headers::set_service(ip, packet.dscp, packet.ecn);
                if let Books::Flows(ledger) = &mut self.books {
                    let end = Time::ZERO + self.scenario.duration;
                    ledger.arrive(now.min(end), &packet, &headers, observer);
                }
            }
            self.left += u64::from(packet.wire_len());
            let mut device = self.devices[packet.dst.index()];
            match device.write(bytes) {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.passed.refused += 1,
                // One that an interface can't take is lost there.
                Err(_) if self.before >= ETHERNET_HEADER as usize + HEADER => {
                    self.passed.refused += 1;
                }
                Err(error) => return Err(format!("a host's device can't be written: {error}")),
            }
            self.bytes.give_back(place, packet.segments);
        }
        let bytes = &mut self.bytes;
        self.network.take_lost(|frame| bytes.give_back(frame.bytes, frame.packet.segments));
        Ok(())
    }

    fn sample(&mut self, now: Time, observer: &mut impl Observer) {
        for (port, sample) in self.network.sample(now, observer) {
            observer.record(now, Who::Port(port), &Event::QueueSample(&sample));
        }
    }

    /// Every byte that entered came out, was dropped, waits or is under way.
    fn check(&self) -> Result<(), String> {
        let mut inside = self.network.in_own_propagation();
        let mut dropped = 0;
        for (port, books) in (0..).map(PortId).zip(self.network.books()) {
            if !books.balance() {
                return Err(format!("an invariant was broken: port {}: {books:?}", port.0));
            }
            inside += books.waiting + books.under_way;
            dropped += books.dropped + books.lost;
        }
        let (entered, left) = (self.entered, self.left);
        match entered == left + dropped + inside {
            true => Ok(()),
            false => Err(format!(
                "an invariant was broken: {entered} bytes entered, {left} came out, {dropped} were dropped, \
                 {inside} are inside"
            )),
        }
    }
}

fn tell_progress(now: Time, length: Span, kbps: u64) {
    let millis = |span: Span| span.as_nanos() / 1_000_000;
    let all = [millis(now.since(Time::ZERO)), millis(length), kbps];
    UNDER_WAY.iter().zip(all).for_each(|(own, value)| own.store(value, Ordering::Relaxed));
}

/// Whether a packet, which has so many bytes before IP, ends with this part.
fn ends_with(bytes: &[u8], before: usize, part: &Part) -> bool {
    let Some(Above::Tcp(tcp)) = bytes.get(before..).and_then(headers::read).map(|own| own.above)
    else {
        return true;
    };
    part.skipped + part.payload >= tcp.payload
}

/// The calling thread then has no capability, and can't get one.
fn give_up_rights() -> Result<(), String> {
    let none = CapabilitySet::empty();
    let sets = CapabilitySets { effective: none, permitted: none, inheritable: none };
    set_capabilities(None, sets).map_err(|error| format!("capabilities can't be given up: {error}"))
}

/// Transfers that begin or end after the run are not of it. Last samples and results come when its end has been noticed, and
/// count as of then.
fn note(notice: Notice, end: Time, observer: &mut impl Observer) {
    let is_transfer =
        matches!(notice.what, What::Opened(_) | What::Refused(_) | What::Completed(..));
    if !is_transfer || notice.at <= end {
        let at = notice.at.min(end);
        notice.what.event(|event| observer.record(at, Who::Flow(notice.flow), event));
    }
}
