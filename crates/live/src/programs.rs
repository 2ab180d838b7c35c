//! Programs of the user's own as flows: one in the sender's host, one in the receiver's.

mod reports;

use std::fmt::Write as _;
use std::io::{self, Read};
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, BorrowedFd};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use sojourn_core::{FlowId, Purpose, Span, SpecError, StreamAddress, Time};
use sojourn_host::apps::Exec;
use sojourn_host::apps::exec::filled;
use sojourn_metrics::Reported;
use sojourn_scenario::{App, Flow, Scenario};

use crate::clock::Clock;
use crate::testbed::Host;
use crate::{address, sys, testbed};

/// Of what a program prints, so many bytes are read; the rest is thrown away.
const MOST_PRINTED: usize = 64 << 20;
/// Of its complaints the last.
const MOST_COMPLAINTS: usize = 4096;
/// How long a receiver's program may take until it listens.
const PATIENCE: Duration = Duration::from_secs(30);
/// Between being asked to end and being killed.
const LAST_WORDS: Duration = Duration::from_secs(2);
/// How often it is looked whether one has ended.
const TICK: Duration = Duration::from_millis(20);

/// The programs of all flows that are made of such.
pub(crate) struct Programs<'a> {
    scenario: &'a Scenario,
    hosts: &'a [Host],
    person: Option<sys::Person>,
    pairs: Vec<Pair<'a>>,
}

/// Those of a flow.
struct Pair<'a> {
    id: FlowId,
    flow: &'a Flow,
    exec: &'a Exec,
    start: Time,
    /// It is to end here by itself.
    stop: Time,
    seed: u64,
    receiver: Option<Program>,
    sender: Option<Program>,
    has_begun: bool,
}

struct Program {
    /// For errors.
    what: String,
    child: Child,
    printed: Printed,
    complaints: Vec<u8>,
    ended: Option<ExitStatus>,
    was_asked: bool,
}

/// What a program printed, and when each piece came; before the run begins at its beginning.
#[derive(Default)]
struct Printed {
    bytes: Vec<u8>,
    /// How many bytes there were, and when.
    came: Vec<(usize, Time)>,
}

/// The application as one of programs, if it is.
pub(crate) fn exec_of(app: &App) -> Option<&Exec> {
    let App::External(app) = app else { return None };
    app.0.as_any()?.downcast_ref()
}

impl<'a> Programs<'a> {
    /// Starts the programs of receivers, and waits until they listen. The calling thread must outlive what it started.
    ///
    /// # Errors
    /// Which program could not be started, ended, or does not listen.
    pub(crate) fn prepare(
        scenario: &'a Scenario,
        hosts: &'a [Host],
        address: StreamAddress,
    ) -> Result<Self, String> {
        let end = Time::ZERO + scenario.duration;
        let pairs = scenario.flows.iter().zip((0..).map(FlowId)).filter_map(|(flow, id)| {
            let moved = match flow.start_jitter.as_nanos() {
                0 => 0,
                bound => address.stream_named(&flow.name, Purpose::Start).below(bound),
            };
            Some(Pair {
                id,
                flow,
                exec: exec_of(&flow.app)?,
                start: Time::ZERO + flow.start + Span::from_nanos(moved),
                stop: flow.stop.map_or(end, |stop| Time::ZERO + stop).min(end),
                seed: address.seed,
                receiver: None,
                sender: None,
                has_begun: false,
            })
        });
        let mut own = Self { scenario, hosts, person: testbed::person(), pairs: pairs.collect() };
        for pair in &mut own.pairs {
            if let Some(command) = &pair.exec.spec.receiver {
                let host = &hosts[pair.flow.dst.index()];
                pair.receiver = Some(pair.started("receiver", command, host, own.person)?);
            }
        }
        own.wait_for_listeners()?;
        Ok(own)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    fn wait_for_listeners(&mut self) -> Result<(), String> {
        let began = Instant::now();
        loop {
            self.look(Time::ZERO, Duration::ZERO)?;
            let waits = |pair: &&Pair<'_>| {
                let receiver = pair.exec.spec.receiver.as_ref();
                receiver.is_some_and(|command| command.contains("{port}"))
                    && pair.receiver.as_ref().is_none_or(|own| own.ended.is_none())
            };
            let mut missing = None;
            for pair in self.pairs.iter().filter(waits) {
                let host = &self.hosts[pair.flow.dst.index()];
                if !testbed::listens(host, address::port_of(pair.id))? {
                    missing = Some(pair);
                }
            }
            let Some(pair) = missing else { return Ok(()) };
            if began.elapsed() > PATIENCE {
                let mut problem = format!(
                    "flow '{}': after {} s the receiver's program does not listen at port {}",
                    pair.flow.name,
                    PATIENCE.as_secs(),
                    address::port_of(pair.id)
                );
                if let Some(receiver) = &pair.receiver {
                    problem += &receiver.last_words();
                }
                return Err(problem);
            }
            std::thread::sleep(TICK);
        }
    }

    /// Starts the programs of senders when their time has come, and reads what all print, until the run is over.
    ///
    /// # Errors
    /// A program could not be started, or has failed.
    pub(crate) fn run(&mut self, clock: &Clock, is_over: &AtomicBool) -> Result<(), String> {
        let end = Time::ZERO + self.scenario.duration;
        loop {
            let now = clock.now();
            if now >= end || is_over.load(Ordering::Relaxed) {
                return Ok(());
            }
            let mut wake = end;
            for pair in self.pairs.iter_mut().filter(|pair| !pair.has_begun) {
                if now < pair.start {
                    wake = wake.min(pair.start);
                    continue;
                }
                pair.has_begun = true;
                if let Some(command) = &pair.exec.spec.sender {
                    let host = &self.hosts[pair.flow.src.index()];
                    pair.sender = Some(pair.started("sender", command, host, self.person)?);
                }
            }
            let left = Duration::from_nanos(wake.since(clock.now()).as_nanos());
            self.look(clock.now(), left.min(TICK))?;
            for pair in &mut self.pairs {
                let most = pair.stop + pair.exec.spec.grace;
                if now >= most {
                    pair.sender.iter_mut().for_each(Program::ask_to_end);
                }
            }
        }
    }

    /// Waits until the senders' programs have ended by themselves, unless somebody asked the run to stop, and ends those that don't,
    /// and the others.
    pub(crate) fn finish(&mut self, clock: &Clock) {
        let began = Instant::now();
        loop {
            // One that fails now has lost its network, or its other end.
            let _ = self.look(clock.now(), TICK);
            let waits = |pair: &Pair<'_>| {
                let grace = Duration::from_nanos(pair.exec.spec.grace.as_nanos());
                pair.sender.as_ref().is_some_and(|own| own.ended.is_none())
                    && began.elapsed() < grace
                    && !sys::is_interrupted()
            };
            if !self.pairs.iter().any(waits) {
                break;
            }
        }
        self.all().for_each(Program::ask_to_end);
        let asked = Instant::now();
        while asked.elapsed() < LAST_WORDS && self.all().any(|own| own.ended.is_none()) {
            let _ = self.look(clock.now(), TICK);
        }
        self.all().for_each(Program::kill);
    }

    /// What the programs of each such flow say of it until the end of the run, and what they printed last.
    pub(crate) fn reports(&self, end: Time) -> impl Iterator<Item = (FlowId, Reported, String)> {
        let warm = Time::ZERO + self.scenario.warmup;
        self.pairs.iter().map(move |pair| {
            let printed = [&pair.sender, &pair.receiver]
                .map(|own| own.as_ref().map_or(&[][..], |own| &own.printed.bytes));
            let lines = [&pair.sender, &pair.receiver]
                .map(|own| own.as_ref().map(|own| own.printed.lines()).unwrap_or_default());
            let mut reported = reports::iperf3(printed, pair.start, warm, end);
            reports::add_get_stats(&mut reported, &lines, warm, end);
            let mut text = String::new();
            for own in [&pair.sender, &pair.receiver].into_iter().flatten() {
                let _ = write!(text, "{}", own.end_state());
            }
            (pair.id, reported, text)
        })
    }

    fn all(&mut self) -> impl Iterator<Item = &mut Program> {
        self.pairs.iter_mut().flat_map(|pair| pair.sender.iter_mut().chain(&mut pair.receiver))
    }

    /// Waits for what programs print, at most so long; takes it, and looks which have ended.
    fn look(&mut self, now: Time, wait: Duration) -> Result<(), String> {
        let timeout =
            Timespec { tv_sec: wait.as_secs() as i64, tv_nsec: i64::from(wait.subsec_nanos()) };
        let mut fds: Vec<PollFd<'_>> = Vec::new();
        let pairs = self.pairs.iter();
        for own in pairs.flat_map(|pair| pair.sender.iter().chain(&pair.receiver)) {
            own.pipes().for_each(|fd| fds.push(PollFd::from_borrowed_fd(fd, PollFlags::IN)));
        }
        // Interrupted or not, what is there is read.
        let _ = poll(&mut fds, Some(&timeout));
        for pair in &mut self.pairs {
            for own in pair.sender.iter_mut().chain(&mut pair.receiver) {
                own.take(now);
                if let Some(problem) = own.failure() {
                    return Err(format!("flow '{}': {problem}", pair.flow.name));
                }
            }
        }
        Ok(())
    }
}

impl Pair<'_> {
    fn started(
        &self,
        end: &str,
        command: &str,
        host: &Host,
        person: Option<sys::Person>,
    ) -> Result<Program, String> {
        let failed = |problem: String| format!("flow '{}': {problem}", self.flow.name);
        let command = self.filled(command).map_err(|error| failed(error.to_string()))?;
        let what = format!("the {end}'s program `{command}`");
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", &command]);
        shell.env("TMPDIR", sys::SCRATCH);
        if let Some(home) = person.and_then(|person| testbed::home_of(person.user)) {
            shell.env("HOME", home);
        }
        shell.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let started = sys::start_enclosed(&mut shell, host.namespace(), person);
        let child = started.map_err(|error| failed(format!("{what}: {error}")))?;
        let program = Program {
            what,
            child,
            printed: Printed::default(),
            complaints: Vec::new(),
            ended: None,
            was_asked: false,
        };
        for pipe in program.pipes() {
            rustix::io::ioctl_fionbio(pipe, true)
                .map_err(|error| failed(format!("a pipe: {error}")))?;
        }
        Ok(program)
    }

    fn filled(&self, command: &str) -> Result<String, SpecError> {
        let address: fn(_) -> Ipv4Addr = address::of_host;
        let seconds = self.stop.since(self.start).as_nanos() / 1_000_000_000;
        filled(command, |name| {
            Some(match name {
                "sender" => address(self.flow.src).to_string(),
                "receiver" => address(self.flow.dst).to_string(),
                "port" => address::port_of(self.id).to_string(),
                "seconds" => seconds.max(1).to_string(),
                "seed" => self.seed.to_string(),
                "study" if self.exec.folder.is_empty() => ".".to_owned(),
                "study" => self.exec.folder.clone(),
                _ => return None,
            })
        })
    }
}

impl Program {
    fn pipes(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let out = self.child.stdout.as_ref().map(AsFd::as_fd);
        out.into_iter().chain(self.child.stderr.as_ref().map(AsFd::as_fd))
    }

    fn take(&mut self, now: Time) {
        let Self { child, printed, complaints, .. } = self;
        if drained(&mut child.stdout, |bytes| printed.add(bytes, now)) {
            child.stdout = None;
        }
        let complain = |bytes: &[u8]| {
            complaints.extend(bytes);
            let over = complaints.len().saturating_sub(MOST_COMPLAINTS);
            complaints.drain(..over);
        };
        if drained(&mut child.stderr, complain) {
            child.stderr = None;
        }
        if self.ended.is_none()
            && let Ok(Some(status)) = self.child.try_wait()
        {
            self.ended = Some(status);
        }
    }

    /// How it failed, if it did before it was asked to end.
    fn failure(&self) -> Option<String> {
        let status = self.ended.filter(|status| !status.success() && !self.was_asked)?;
        Some(format!("{} ended with {status}{}", self.what, self.last_words()))
    }

    /// The end of its complaints, or of what it printed.
    fn last_words(&self) -> String {
        let said = if self.complaints.is_empty() { &self.printed.bytes } else { &self.complaints };
        let said = String::from_utf8_lossy(&said[said.len().saturating_sub(1000)..]);
        match said.trim() {
            "" => String::new(),
            said => format!(": {said}"),
        }
    }

    fn ask_to_end(&mut self) {
        if self.ended.is_none() && !self.was_asked {
            self.was_asked = true;
            sys::ask_to_end(&self.child);
        }
    }

    fn kill(&mut self) {
        if self.ended.is_none() {
            self.was_asked = true;
            let _ = self.child.kill();
            self.ended = self.child.wait().ok();
        }
    }

    /// Its command, how it ended, and what it said last.
    fn end_state(&self) -> String {
        let how = match self.ended {
            Some(_) if self.was_asked => "was asked to end".to_owned(),
            Some(status) => status.to_string(),
            None => "had not ended".to_owned(),
        };
        let last = |bytes: &[u8]| {
            let text = String::from_utf8_lossy(&bytes[bytes.len().saturating_sub(1500)..]);
            let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
            let lines = &lines[lines.len().saturating_sub(12)..];
            lines.iter().fold(String::new(), |mut out, line| {
                let _ = writeln!(out, "  {}", line.chars().take(160).collect::<String>());
                out
            })
        };
        format!(" {}: {how}\n{}{}", self.what, last(&self.printed.bytes), last(&self.complaints))
    }
}

impl Printed {
    fn add(&mut self, bytes: &[u8], now: Time) {
        let room = MOST_PRINTED.saturating_sub(self.bytes.len());
        self.bytes.extend(&bytes[..bytes.len().min(room)]);
        self.came.push((self.bytes.len(), now));
    }

    /// Its whole lines, each with when its end came.
    fn lines(&self) -> Vec<(Time, &[u8])> {
        let mut came = self.came.iter().peekable();
        let (mut lines, mut start) = (Vec::new(), 0);
        for (at, _) in self.bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n') {
            while came.peek().is_some_and(|(until, _)| *until <= at) {
                came.next();
            }
            let Some((_, now)) = came.peek() else { break };
            lines.push((*now, &self.bytes[start..at]));
            start = at + 1;
        }
        lines
    }
}

impl Drop for Programs<'_> {
    fn drop(&mut self) {
        self.all().for_each(Program::kill);
    }
}

/// Takes what is in a pipe; whether its other end is closed.
fn drained(pipe: &mut Option<impl Read>, mut take: impl FnMut(&[u8])) -> bool {
    let Some(pipe) = pipe else { return false };
    let mut room = [0; 16 * 1024];
    loop {
        match pipe.read(&mut room) {
            Ok(0) => return true,
            Ok(length) => take(&room[..length]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return error.kind() != io::ErrorKind::WouldBlock,
        }
    }
}
