//! Hosts that are other machines, reached by `ssh`: the bottleneck stands here, between interfaces that lead to them.
//!
//! On each of them a copy of this program makes a network namespace with one device on the interface that leads here, and
//! runs the ends of flows that are there. Packets are measured here, on one clock; what sockets say of themselves is
//! measured where they are, and sent here.

mod agent;
mod file;
mod link;
mod message;
mod order;
mod parts;
mod wires;

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Read;
use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use sojourn_core::{FlowId, Span, SpecError, StreamAddress, Time};
use sojourn_scenario::{Flow, Scenario, Until};

pub use self::agent::serve;
use self::file::{Host, Hosts};
use self::link::{Link, PATIENCE};
use self::message::{FromAgent, Order, ToAgent};
use crate::programs::{self, AllLeft};
use crate::sys;
use crate::testbed::Kernel;
use crate::traffic::Notice;

/// From the moment at which all are told until the run begins.
const LEAD: Duration = Duration::from_millis(500);

/// How often it is looked whether the run is over.
const TICK: Duration = Duration::from_millis(100);

/// Longer files of hosts are none.
const LONGEST_FILE: u64 = 1 << 20;

/// Ways to hosts that no run uses at the moment: programs there wait for the next. They end when this process does.
static IDLE: Mutex<Vec<Link>> = Mutex::new(Vec::new());

/// The file of hosts as it is written: what a run depends on.
///
/// # Errors
/// It can't be read.
pub(crate) fn text(path: &str) -> Result<String, SpecError> {
    let problem = |problem: String| SpecError::new(format!("{path}: {problem}"));
    let shown =
        |error: std::io::Error| problem(format!("the file of hosts can't be read: {error}"));
    // A pipe might never end.
    if !fs::metadata(path).map_err(shown)?.is_file() {
        return Err(problem("the file of hosts is no regular file".to_owned()));
    }
    let mut text = String::new();
    File::open(path)
        .and_then(|file| file.take(LONGEST_FILE).read_to_string(&mut text))
        .map_err(shown)?;
    Ok(text)
}

fn read(path: &str, scenario: &Scenario) -> Result<Hosts, SpecError> {
    let hosts = file::read(path, &text(path)?)?;
    hosts.check(path, scenario)?;
    Ok(hosts)
}

/// Refuses what can't be done with the hosts of a file, and a file that is wrong.
pub(crate) fn check(path: &str, scenario: &Scenario) -> Result<(), SpecError> {
    order::check_scenario(scenario)?;
    read(path, scenario).map(drop)
}

/// The hosts of a scenario, each with a program of ours that waits for the run to begin.
pub(crate) struct Elsewhere {
    ends: Vec<End>,
}

/// A host.
struct End {
    link: Link,
    /// Its interface to this machine, and that of this machine which leads to it.
    interface: String,
    here: String,
    /// The release of its kernel.
    kernel: String,
    /// By how much its clock moved during the run.
    moved: Span,
    /// What its programs have left.
    left: AllLeft,
    /// It has said that its transfers are done, and that its senders' programs have ended.
    transfers_done: bool,
    senders_done: bool,
    /// What it does in the run, but for its programs, was done until the end.
    has_ended: bool,
    /// It could go on no longer because an end of a flow could not.
    has_lost_flow: bool,
    /// What it was told to do last is done.
    is_done: bool,
}

/// How a run ends.
pub(crate) struct Ending<'a> {
    pub(crate) is_over: &'a AtomicBool,
    /// Packets are carried as long as this holds, which is until the last host is done.
    pub(crate) lingers: &'a AtomicBool,
    /// Because of which problem there is no result.
    pub(crate) problem: &'a Mutex<Option<Problem>>,
    /// Those of hosts that had come to the end: what was measured stands.
    pub(crate) troubles: &'a Mutex<Vec<String>>,
}

pub(crate) struct Problem {
    pub(crate) text: String,
    /// Only an end of a flow says so, which may have lost a host that says nothing any more.
    is_of_flow: bool,
}

/// What all hosts have in common while they are listened to.
struct Common<'a> {
    scenario: &'a Scenario,
    ending: &'a Ending<'a>,
    /// How many have not said that their transfers are done.
    transferring: AtomicUsize,
    /// How many have not said that the senders' programs have ended there.
    sending: AtomicUsize,
    /// How many are not done.
    busy: AtomicUsize,
}

impl Elsewhere {
    /// Reaches every host, and lets it prepare its ends.
    ///
    /// # Errors
    /// Which host can't be reached, or what it lacks, and what to type.
    pub(crate) fn reach(
        path: &str,
        scenario: &Scenario,
        kernels: &[Kernel],
        offloads: bool,
        address: StreamAddress,
        is_trial: bool,
    ) -> Result<Self, String> {
        let hosts = read(path, scenario).map_err(|error| error.to_string())?;
        for host in hosts.in_order(scenario) {
            look_at_interface(&host.here, offloads)?;
        }
        let prepare = |at: usize, host: &Host| {
            let kernel = &kernels[at];
            let order =
                order::of(scenario, at, &host.interface, kernel, offloads, address, is_trial);
            End::prepare(&scenario.hosts[at].name, host, order)
        };
        // All at once, since it takes a while to be connected.
        let reached: Vec<Result<End, String>> = thread::scope(|scope| {
            let prepare = &prepare;
            let hosts = hosts.in_order(scenario).enumerate();
            let all: Vec<_> =
                hosts.map(|(at, host)| scope.spawn(move || prepare(at, host))).collect();
            let panicked = |_| Err("what reaches a host panicked".to_owned());
            all.into_iter().map(|one| one.join().unwrap_or_else(panicked)).collect()
        });
        let mut own = Self { ends: Vec::new() };
        let mut failed = Ok(());
        for one in reached {
            match one {
                Ok(end) => own.ends.push(end),
                Err(error) => failed = failed.and(Err(error)),
            }
        }
        failed.map(|()| own)
    }

    /// The interfaces that lead to the hosts, in their order.
    pub(crate) fn open_interfaces(&self) -> Result<Vec<File>, String> {
        let open = |end: &End| {
            let socket = sys::open_interface(&end.here).map_err(|error| {
                format!("interface '{}': {error}; run as root: sudo sojourn …", end.here)
            })?;
            Ok(socket.into())
        };
        self.ends.iter().map(open).collect()
    }

    /// Lets hosts send something, and sees where it comes in.
    ///
    /// # Errors
    /// Which of them is not heard at the interface that is said to lead to it, or at another one as well.
    pub(crate) fn check_wires(&self, interfaces: &[File]) -> Result<(), String> {
        let mut heard = vec![BTreeSet::new(); self.ends.len()];
        let began = Instant::now();
        while heard.iter().any(BTreeSet::is_empty) && began.elapsed() < wires::PATIENCE {
            if sys::is_interrupted() {
                return Err("stopped while hosts were listened for".to_owned());
            }
            self.ends.iter().try_for_each(|end| end.link.send(ToAgent::Speak))?;
            wires::hear(interfaces, &mut heard);
        }
        for (at, (end, heard)) in self.ends.iter().zip(&heard).enumerate() {
            if heard.len() == 1 && heard.contains(&at) {
                continue;
            }
            let End { interface, here, .. } = end;
            let others = heard.iter().filter(|other| **other != at);
            let others: Vec<&str> = others.map(|other| &self.ends[*other].here[..]).collect();
            let others = others.join("', '");
            return Err(end.link.about(&match (heard.contains(&at), others.is_empty()) {
                (true, _) => format!(
                    "what its interface '{interface}' sends comes in at '{here}' of this machine and at '{others}': hosts would reach \
                     each other past the bottleneck; each needs a wire of its own"
                ),
                (false, false) => format!(
                    "what its interface '{interface}' sends comes in at '{others}' of this machine, and not at '{here}': 'interface' \
                     and 'here' must be the two ends of one wire"
                ),
                (false, true) => format!(
                    "for {} s nothing that its interface '{interface}' sends has come in at '{here}' of this machine: they must be the \
                     two ends of one wire",
                    wires::PATIENCE.as_secs()
                ),
            }));
        }
        Ok(())
    }

    /// Tells all hosts when the run begins, and gives that moment back.
    pub(crate) fn begin(&self) -> Result<Instant, String> {
        let start = Instant::now() + LEAD;
        self.ends.iter().try_for_each(|end| end.link.begin_at(start))?;
        Ok(start)
    }

    /// Hands on what the hosts report until each has said that it is done; sets `is_over` if one has failed, or if the transfers
    /// have ended that the run waits for.
    pub(crate) fn listen(
        &mut self,
        scenario: &Scenario,
        notices: Sender<Notice>,
        ending: &Ending<'_>,
    ) {
        let count = self.ends.len();
        let common = Common {
            scenario,
            ending,
            transferring: AtomicUsize::new(count),
            sending: AtomicUsize::new(count),
            busy: AtomicUsize::new(count),
        };
        let common = &common;
        thread::scope(|scope| {
            for end in &mut self.ends {
                let notices = notices.clone();
                scope.spawn(move || {
                    let listened =
                        panic::catch_unwind(AssertUnwindSafe(|| end.listen(common, &notices)));
                    let panicked = |_| Err("what listens to a host panicked".to_owned());
                    let done = listened.unwrap_or_else(panicked);
                    // Nobody waits for the programs of one that says no more.
                    end.note_senders_done(common);
                    // The run waits for nothing but these.
                    drop(notices);
                    if common.busy.fetch_sub(1, Ordering::Relaxed) == 1 {
                        ending.lingers.store(false, Ordering::Relaxed);
                    }
                    if let Err(error) = done.and_then(|()| end.compare_clocks()) {
                        match end.has_ended || sys::is_interrupted() {
                            true => ending.note(error),
                            false => ending.fail(error, end.has_lost_flow),
                        }
                    }
                });
            }
            drop(notices);
        });
    }

    /// What the programs on all hosts have left.
    pub(crate) fn take_left(&mut self) -> AllLeft {
        self.ends.iter_mut().flat_map(|end| std::mem::take(&mut end.left)).collect()
    }

    /// Which machine a flow's sender was on, and how well the clock is known by which its samples are timed.
    pub(crate) fn end_state(&self, flow: &Flow) -> String {
        let End { link, kernel, moved, .. } = &self.ends[flow.src.index()];
        format!(
            "    sent by {}, Linux {kernel}; its clock, which times its samples: known to {:.3} ms, moved by {:.3} ms during the run\n",
            link.machine(),
            link.uncertainty.as_millis_f64(),
            moved.as_millis_f64()
        )
    }
}

impl End {
    fn prepare(name: &str, host: &Host, order: Order) -> Result<Self, String> {
        let mut link = way_to(name, host)?;
        link.send(ToAgent::Prepare(order))?;
        // Programs take their time until they listen.
        let kernel = match link.receive(PATIENCE + programs::PATIENCE)? {
            FromAgent::Ready(kernel) => kernel,
            FromAgent::Failed(problem) => return Err(link.about(&problem)),
            other => return Err(link.about(&format!("an unexpected answer: {other:?}"))),
        };
        link.compare_clocks()?;
        let (interface, here) = (host.interface.clone(), host.here.clone());
        let left = AllLeft::new();
        Ok(Self {
            link,
            interface,
            here,
            kernel,
            moved: Span::ZERO,
            left,
            transfers_done: false,
            senders_done: false,
            has_ended: false,
            has_lost_flow: false,
            is_done: false,
        })
    }

    fn listen(&mut self, common: &Common<'_>, notices: &Sender<Notice>) -> Result<(), String> {
        let Common { scenario, ending, .. } = common;
        let graces = scenario.flows.iter().filter_map(|flow| programs::exec_of(&flow.app));
        let grace = graces.map(|exec| exec.spec.grace).max();
        let grace = grace.map(|own| Duration::from_nanos(own.as_nanos()) + programs::LAST_WORDS);
        // A host looks at least once a step whether it is over.
        let step = Duration::from_nanos(scenario.step.as_nanos());
        let patience = PATIENCE / 4 + step;
        let mut told: Option<bool> = None;
        // Since when it has been waited for what follows the end. Samples are no part of that.
        let mut since = Instant::now();
        loop {
            if ending.is_over.load(Ordering::Relaxed) {
                let is_urgent = sys::is_interrupted()
                    || ending.has_failed()
                    || common.sending.load(Ordering::Relaxed) == 0;
                if told.is_none_or(|was_urgent| is_urgent && !was_urgent) {
                    self.link.send(ToAgent::End { is_urgent })?;
                    since = Instant::now();
                    told = Some(is_urgent);
                }
                // Senders' programs have their time to end, and others' may end later than these.
                let most = match told {
                    Some(true) => patience + programs::LAST_WORDS,
                    _ => patience + grace.unwrap_or_default(),
                };
                if since.elapsed() > most {
                    return Err(self.link.about(&format!(
                        "for {:.0} s after the end of the run it was waited for, and did not say that {}",
                        since.elapsed().as_secs_f64(),
                        match grace.is_some() && !self.senders_done {
                            true => "its programs have ended",
                            false => "its part of it is over",
                        }
                    )));
                }
            }
            let Some(message) = self.link.receive_within(TICK)? else { continue };
            if matches!(message, FromAgent::Left(_)) {
                since = Instant::now();
            }
            match message {
                FromAgent::Notices(told) => {
                    for one in told {
                        let is_flow = (one.flow as usize) < scenario.flows.len();
                        let what = one.what().filter(|_| is_flow);
                        let what = what.ok_or_else(|| self.link.about("a wrong notice"))?;
                        let at = Time::ZERO + Span::from_nanos(one.at);
                        // Nobody listens once the run is over.
                        let _ = notices.send(Notice { at, flow: FlowId(one.flow), what });
                    }
                }
                FromAgent::TransfersDone => {
                    // Each host counts once.
                    if !std::mem::replace(&mut self.transfers_done, true) {
                        let before = common.transferring.fetch_sub(1, Ordering::Relaxed);
                        let is_last = before == 1 && scenario.until == Until::TransfersDone;
                        ending.is_over.fetch_or(is_last, Ordering::Relaxed);
                    }
                }
                FromAgent::SendersDone => self.note_senders_done(common),
                FromAgent::Left(part) => parts::take(part, scenario, &mut self.left)
                    .ok_or_else(|| self.link.about("a wrong part of what a program left"))?,
                FromAgent::Done => {
                    self.is_done = true;
                    return Ok(());
                }
                FromAgent::Ended => self.has_ended = true,
                FromAgent::Failed(problem) => {
                    self.is_done = true;
                    // It may not have heard of the end yet.
                    self.has_ended |= ending.is_over.load(Ordering::Relaxed);
                    return Err(self.link.about(&problem));
                }
                FromAgent::FlowFailed(problem) => {
                    self.is_done = true;
                    if ending.is_over.load(Ordering::Relaxed) {
                        // It has not heard of it yet, and its flows have lost a host that has.
                        return Ok(());
                    }
                    self.has_lost_flow = true;
                    return Err(self.link.about(&problem));
                }
                other => {
                    return Err(self.link.about(&format!("an unexpected answer: {other:?}")));
                }
            }
        }
    }

    fn note_senders_done(&mut self, common: &Common<'_>) {
        if !std::mem::replace(&mut self.senders_done, true) {
            common.sending.fetch_sub(1, Ordering::Relaxed);
        }
    }

    fn compare_clocks(&mut self) -> Result<(), String> {
        // Asked to stop, nobody waits for that.
        if !sys::is_interrupted() {
            self.moved = self.link.compare_clocks()?;
        }
        Ok(())
    }

    /// Whether the host has made an end of what it was told to do.
    fn ends(&mut self) -> bool {
        let until = Instant::now() + PATIENCE / 4;
        if !self.is_done && self.link.send(ToAgent::End { is_urgent: true }).is_err() {
            return false;
        }
        while !self.is_done {
            let left = until.saturating_duration_since(Instant::now());
            match self.link.receive_within(left) {
                Ok(Some(FromAgent::Done)) => self.is_done = true,
                Ok(Some(
                    FromAgent::Notices(_)
                    | FromAgent::TransfersDone
                    | FromAgent::SendersDone
                    | FromAgent::Ended
                    | FromAgent::Left(_),
                )) if !left.is_zero() => {}
                _ => return false,
            }
        }
        true
    }
}

impl Ending<'_> {
    /// The first problem counts, and a host's more than that of a flow.
    fn fail(&self, text: String, is_of_flow: bool) {
        let mut known = self.problem.lock().unwrap_or_else(PoisonError::into_inner);
        if known.as_ref().is_none_or(|known| known.is_of_flow && !is_of_flow) {
            *known = Some(Problem { text, is_of_flow });
        }
        self.is_over.store(true, Ordering::Relaxed);
    }

    fn note(&self, trouble: String) {
        self.troubles.lock().unwrap_or_else(PoisonError::into_inner).push(trouble);
    }

    fn has_failed(&self) -> bool {
        self.problem.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }
}

/// Hosts that are well wait for the next run; others are left.
impl Drop for Elsewhere {
    fn drop(&mut self) {
        for mut end in self.ends.drain(..) {
            if end.ends() {
                IDLE.lock().unwrap_or_else(PoisonError::into_inner).push(end.link);
            }
        }
    }
}

/// One that has been used before, or a new one.
fn way_to(name: &str, host: &Host) -> Result<Link, String> {
    let known = {
        let mut idle = IDLE.lock().unwrap_or_else(PoisonError::into_inner);
        let at = idle.iter().position(|link| link.leads_to(name, host));
        at.map(|at| idle.swap_remove(at))
    };
    known.filter(Link::is_open).map_or_else(|| Link::open(name, host), Ok)
}

/// Refuses an interface of this machine that is not there, or that puts packets together before the queue sees them.
fn look_at_interface(name: &str, offloads: bool) -> Result<(), String> {
    let problem = |text: String| format!("interface '{name}' of this machine: {text}");
    let on = sys::is_up(name).map_err(|error| {
        problem(format!("{error}; 'here' must be one of those that 'ip link' shows"))
    })?;
    if !on {
        return Err(problem(format!("it is down; type: sudo ip link set {name} up")));
    }
    // A device that can't tell does not do it.
    if !offloads && sys::puts_packets_together(name).unwrap_or(false) {
        return Err(problem(format!(
            "it puts packets together (gro); type: sudo ethtool -K {name} gro off"
        )));
    }
    Ok(())
}
