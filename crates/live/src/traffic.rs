//! The applications of all flows, on the kernel's sockets, in one thread.

mod flow;
mod socket;

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use sojourn_core::{FlowId, FlowSample, StreamAddress, Time};
use sojourn_scenario::{Offer, Scenario, Until};

use self::flow::{Receiving, Told, Working};
pub(crate) use self::socket::{TcpSettings, knows_control};
use crate::clock::Clock;
use crate::sys::{self, Priority};
use crate::testbed::Host;

/// What the applications tell the bottleneck, which keeps the books.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Notice {
    pub(crate) flow: FlowId,
    pub(crate) what: What,
}

#[derive(Clone, Copy, Debug)]
#[expect(clippy::large_enum_variant, reason = "samples are the commonest")]
pub(crate) enum What {
    Opened(u64),
    Refused(u64),
    Sample(FlowSample),
}

/// The sockets of all flows before the run begins.
pub(crate) struct Traffic<'a> {
    scenario: &'a Scenario,
    hosts: &'a [Host],
    sending: Vec<Working>,
    receiving: Vec<Receiving>,
    /// Flows whose transfers the run waits for.
    awaited: Vec<usize>,
}

/// A socket that is watched, by its flow.
#[derive(Clone, Copy)]
enum Watched {
    Sender(usize),
    Receiver(usize),
}

impl<'a> Traffic<'a> {
    /// Makes what must be there before the first packet. The calling thread moves between namespaces, so
    /// it should do nothing else. `settings` has those of every TCP flow.
    ///
    /// # Errors
    /// Which flow, and what the kernel refused.
    pub(crate) fn new(
        scenario: &'a Scenario,
        hosts: &'a [Host],
        settings: &[Option<TcpSettings>],
        address: StreamAddress,
    ) -> Result<Self, String> {
        let end = Time::ZERO + scenario.duration;
        let mut sending = Vec::new();
        let mut receiving = Vec::new();
        for ((flow, id), settings) in scenario.flows.iter().zip((0..).map(FlowId)).zip(settings) {
            let failed = |error: io::Error| format!("flow '{}': {error}", flow.name);
            enter(&hosts[flow.dst.index()]).map_err(failed)?;
            receiving.push(Receiving::new(flow, id, settings.as_ref()).map_err(failed)?);
            enter(&hosts[flow.src.index()]).map_err(failed)?;
            sending.push(Working::new(flow, id, settings.clone(), address, end).map_err(failed)?);
        }
        let awaited = match scenario.until {
            Until::Duration => Vec::new(),
            Until::TransfersDone => {
                let offers = |index: &usize| {
                    scenario.flows[*index].offer(scenario.duration) == Offer::Transfers
                };
                (0..sending.len()).filter(offers).collect()
            }
        };
        Ok(Self { scenario, hosts, sending, receiving, awaited })
    }

    /// Does what flows do until the run is over, or `is_over` says so. Sets `is_over` when the transfers are
    /// done that the run waits for.
    ///
    /// # Errors
    /// Which flow, and what the kernel refused.
    pub(crate) fn run(
        &mut self,
        clock: &Clock,
        notices: &Sender<Notice>,
        is_over: &AtomicBool,
    ) -> Result<(), String> {
        // Without the right to it, packets of applications are late when the machine is busy.
        let _ = sys::set_priority(Priority::Second);
        let end = Time::ZERO + self.scenario.duration;
        let mut next_step = Time::ZERO;
        let mut room = vec![0; 256 * 1024];
        loop {
            let now = clock.now();
            if now >= end || is_over.load(Ordering::Relaxed) {
                break;
            }
            if now >= next_step {
                self.tell_samples(notices);
                while next_step <= now {
                    next_step += self.scenario.step;
                }
            }
            for index in 0..self.sending.len() {
                if now >= self.sending[index].next_wake() {
                    self.act(index, now, notices)?;
                }
            }
            if !self.awaited.is_empty() {
                let sending = &self.sending;
                self.awaited.retain(|index| !sending[*index].is_done());
                if self.awaited.is_empty() {
                    is_over.store(true, Ordering::Relaxed);
                    break;
                }
            }
            let wakes = self.sending.iter().map(Working::next_wake);
            let wake = wakes.fold(next_step.min(end), Time::min);
            for ready in self.wait(clock, wake)? {
                match ready {
                    Watched::Sender(index) => self.act(index, clock.now(), notices)?,
                    Watched::Receiver(index) => self.receiving[index]
                        .act(&mut room)
                        .map_err(|error| self.failed(index, &error))?,
                }
            }
        }
        self.tell_samples(notices);
        Ok(())
    }

    fn act(&mut self, index: usize, now: Time, notices: &Sender<Notice>) -> Result<(), String> {
        let sending = &mut self.sending[index];
        let flow = sending.id;
        let done = match sending.opens(now) {
            true => enter(&self.hosts[sending.src.index()]),
            false => Ok(()),
        };
        let mut tell = |told| {
            let what = match told {
                Told::Opened(bytes) => What::Opened(bytes),
                Told::Refused(bytes) => What::Refused(bytes),
            };
            // Nobody listens once the run is over.
            let _ = notices.send(Notice { flow, what });
        };
        done.and_then(|()| sending.act(now, &mut tell)).map_err(|error| self.failed(index, &error))
    }

    fn failed(&self, index: usize, error: &io::Error) -> String {
        format!("flow '{}': {error}", self.scenario.flows[index].name)
    }

    fn tell_samples(&self, notices: &Sender<Notice>) {
        for sending in &self.sending {
            if let Some(sample) = sending.sample() {
                let _ = notices.send(Notice { flow: sending.id, what: What::Sample(sample) });
            }
        }
    }

    /// Waits until `wake` for sockets on which something can be done, and returns these.
    fn wait(&self, clock: &Clock, wake: Time) -> Result<Vec<Watched>, String> {
        let now = clock.now();
        let mut watched = Vec::new();
        let mut fds: Vec<PollFd<'_>> = Vec::new();
        for (index, sending) in self.sending.iter().enumerate() {
            sending.each_socket(now, &mut |socket, writes| {
                let flags = if writes { PollFlags::OUT } else { PollFlags::IN };
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

/// Moves the calling thread into the namespace of a host.
fn enter(host: &Host) -> io::Result<()> {
    sys::enter_network(host.namespace())
}
