//! The loop between the hosts: packets are read from their devices, pass the network, and are written to the
//! devices of the hosts to which they go, each at the time that was computed for it.

use std::io::{ErrorKind, Read, Write};
use std::num::NonZeroU64;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Receiver;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities, set_current_timer_slack};
use sojourn_core::{
    Event, HostId, Observer, PortId, QueueSample, Queued, Span, StreamAddress, Time, Who,
};
use sojourn_metrics::Histogram;
use sojourn_scenario::Scenario;

use crate::clock::Clock;
use crate::frame::{Bytes, Frame, MTU, Place};
use crate::headers;
use crate::ledger::Ledger;
use crate::network::Network;
use crate::sys::{self, Priority};
use crate::testbed::Host;
use crate::traffic::{Notice, What};

/// What came out of a run beside its events.
#[derive(Debug)]
pub(crate) struct Passed {
    pub(crate) end: Time,
    /// How much later than computed packets were written, in nanoseconds.
    pub(crate) lateness: Histogram,
    /// Packets of no flow, which went nowhere.
    pub(crate) strays: u64,
    /// Packets that a host's device did not take.
    pub(crate) refused: u64,
    /// The last sample of each link, and its queue's own counters.
    pub(crate) queues: Vec<(QueueSample, Vec<(&'static str, u64)>)>,
}

/// Packets that are read from one device before what is due is written.
const BURST: usize = 32;

/// Above this the kernel would stop a thread that comes before all others for 50 ms of each second
/// (`sched_rt_runtime_us`), since it has little time to sleep.
const FASTEST_IN_FRONT: f64 = 700.0;

pub(crate) struct Bottleneck<'a> {
    scenario: &'a Scenario,
    hosts: &'a [Host],
    network: Network,
    ledger: Ledger,
    bytes: Bytes,
    /// Bytes that left hosts, that came to one, and that the network dropped or lost.
    entered: u64,
    left: u64,
    passed: Passed,
}

impl<'a> Bottleneck<'a> {
    pub(crate) fn new(scenario: &'a Scenario, hosts: &'a [Host], address: StreamAddress) -> Self {
        Self {
            scenario,
            hosts,
            network: Network::new(scenario, address),
            ledger: Ledger::new(scenario),
            bytes: Bytes::default(),
            entered: 0,
            left: 0,
            passed: Passed {
                end: Time::ZERO,
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
        is_over: &AtomicBool,
        observer: &mut impl Observer,
    ) -> Result<Passed, String> {
        // Both make it late if they can't be had, which the lateness shows.
        let _ = set_current_timer_slack(NonZeroU64::new(1));
        if self.fastest_mbps() < FASTEST_IN_FRONT {
            let _ = sys::set_priority(Priority::First);
        }
        // What it reads comes from others, and its devices are open: it needs no rights any more.
        give_up_rights()?;
        let end = Time::ZERO + self.scenario.duration;
        let warm = Time::ZERO + self.scenario.warmup;
        let mut is_warm = self.scenario.warmup.is_zero();
        let mut next_step = Time::ZERO;
        let devices = self.hosts.iter().map(|host| host.device.as_fd());
        let mut fds: Vec<PollFd<'a>> =
            devices.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
        loop {
            let now = clock.now();
            if now >= end || is_over.load(Ordering::Relaxed) {
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
            notices.try_iter().for_each(|notice| note(now, notice, observer));
            let warm = if is_warm { Time::NEVER } else { warm };
            let wake = self.network.next_wake().min(next_step).min(warm).min(end);
            wait(&mut fds, clock, wake)?;
        }
        let now = clock.now().min(end);
        self.put_out(clock, now, observer)?;
        let last = self.network.sample(now, observer);
        for (port, sample) in &last {
            observer.record(now, Who::Port(*port), &Event::QueueSample(sample));
        }
        // The last samples come when the applications have noticed that it is over.
        notices.iter().for_each(|notice| note(now, notice, observer));
        self.check()?;
        let samples = last.into_iter().map(|(_, sample)| sample);
        let queues = samples.zip(self.network.details()).collect();
        Ok(Passed { end: now, queues, ..self.passed })
    }

    /// The most that a link carries.
    fn fastest_mbps(&self) -> f64 {
        let rates = self.scenario.links.iter().map(|link| link.rate.peak());
        let limited = rates.filter(|rate| !rate.is_unlimited());
        limited.map(|rate| rate.as_mbps()).fold(0.0, f64::max)
    }

    /// Reads what the hosts have sent.
    fn take_in(
        &mut self,
        clock: &Clock,
        end: Time,
        observer: &mut impl Observer,
    ) -> Result<(), String> {
        for index in 0..self.hosts.len() {
            for _ in 0..BURST {
                let place = self.bytes.take();
                let length = match (&self.hosts[index].device).read(self.bytes.room(place)) {
                    Ok(length) => length,
                    Err(error) => {
                        self.bytes.give_back(place);
                        if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) {
                            break;
                        }
                        return Err(format!("a host's device can't be read: {error}"));
                    }
                };
                let now = clock.now();
                self.bytes.set_length(place, length);
                if now >= end {
                    self.bytes.give_back(place);
                    return Ok(());
                }
                self.enter(now, HostId(index as u16), place, observer);
            }
        }
        Ok(())
    }

    fn enter(&mut self, now: Time, from: HostId, place: Place, observer: &mut impl Observer) {
        let headers = headers::read(self.bytes.packet(place));
        let packet = headers.and_then(|headers| self.ledger.leave(now, from, &headers, observer));
        let Some(packet) = packet else {
            self.passed.strays += 1;
            self.bytes.give_back(place);
            return;
        };
        self.entered += u64::from(packet.wire_len);
        self.network.enter(now, Frame { packet, bytes: place }, observer);
    }

    /// Writes what has come through by `until`.
    fn put_out(
        &mut self,
        clock: &Clock,
        until: Time,
        observer: &mut impl Observer,
    ) -> Result<(), String> {
        while let Some((due, frame)) = self.network.next_arrival(until, observer) {
            let Frame { packet, bytes: place } = frame;
            let now = clock.now().max(due);
            self.passed.lateness.record(now.since(due).as_nanos());
            let bytes = self.bytes.packet(place);
            headers::set_service(bytes, packet.dscp, packet.ecn);
            if let Some(headers) = headers::read(bytes) {
                self.ledger.arrive(
                    now.min(Time::ZERO + self.scenario.duration),
                    &packet,
                    &headers,
                    observer,
                );
            }
            self.left += u64::from(packet.wire_len());
            match (&self.hosts[packet.dst.index()].device).write(bytes) {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.passed.refused += 1,
                Err(error) => return Err(format!("a host's device can't be written: {error}")),
            }
            self.bytes.give_back(place);
        }
        let bytes = &mut self.bytes;
        self.network.take_lost(|frame| bytes.give_back(frame.bytes));
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

/// The calling thread then has no capability, and can't get one.
fn give_up_rights() -> Result<(), String> {
    let none = CapabilitySet::empty();
    let sets = CapabilitySets { effective: none, permitted: none, inheritable: none };
    set_capabilities(None, sets).map_err(|error| format!("capabilities can't be given up: {error}"))
}

/// So that it notices soon that the run is over.
const LONGEST_SLEEP: Span = Span::from_millis(10);

/// Sleeps until a host has sent something, or until `wake`.
fn wait(fds: &mut [PollFd<'_>], clock: &Clock, wake: Time) -> Result<(), String> {
    let left = wake.since(clock.now()).min(LONGEST_SLEEP).as_nanos();
    let timeout =
        Timespec { tv_sec: (left / 1_000_000_000) as i64, tv_nsec: (left % 1_000_000_000) as i64 };
    match poll(fds, Some(&timeout)) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(format!("poll: {error}")),
    }
}

fn note(now: Time, notice: Notice, observer: &mut impl Observer) {
    let who = Who::Flow(notice.flow);
    match notice.what {
        What::Opened(bytes) => observer.record(now, who, &Event::Opened { bytes }),
        What::Refused(bytes) => observer.record(now, who, &Event::Refused { bytes }),
        What::Sample(sample) => observer.record(now, who, &Event::FlowSample(&sample)),
    }
}

const _: () = assert!(MTU <= u16::MAX as usize);
