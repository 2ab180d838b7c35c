//! Programs of the user's own as flows: one in the sender's host, one in the receiver's.

mod left;
mod reports;

use std::env;
use std::fs;
use std::io::{self, Read};
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use sojourn_core::{FlowId, HostId, SpecError, StreamAddress, Time};
use sojourn_host::apps::Exec;
use sojourn_host::apps::exec::filled;
use sojourn_metrics::Reported;
use sojourn_scenario::{App, Flow, Scenario};

pub(crate) use self::left::{AllLeft, Left, MOST_PRINTED, Side};
use crate::clock::Clock;
use crate::{address, sys, testbed, traffic};

/// How long a receiver's program may take until it listens.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);
/// Between being asked to end and being killed.
pub(crate) const LAST_WORDS: Duration = Duration::from_secs(2);
/// How often it is looked whether one has ended.
const TICK: Duration = Duration::from_millis(20);
/// A program that prints without a pause must not keep us from all else. No pipe holds more.
const MOST_READ: usize = 1 << 20;

/// The programs of all flows that are made of such, on those hosts that are here.
pub(crate) struct Programs<'a> {
    scenario: &'a Scenario,
    /// The namespaces of hosts; `None` of those that are elsewhere.
    hosts: Vec<Option<BorrowedFd<'a>>>,
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
    child: Child,
    left: Left,
    has_ended: bool,
}

/// The application as one of programs, if it is.
pub(crate) fn exec_of(app: &App) -> Option<&Exec> {
    let App::External(app) = app else { return None };
    app.0.as_any()?.downcast_ref()
}

impl<'a> Programs<'a> {
    /// None of them is started.
    pub(crate) fn new(
        scenario: &'a Scenario,
        hosts: Vec<Option<BorrowedFd<'a>>>,
        address: StreamAddress,
    ) -> Self {
        let end = Time::ZERO + scenario.duration;
        let pairs = scenario.flows.iter().zip((0..).map(FlowId)).filter_map(|(flow, id)| {
            let (start, stop) = traffic::lasts(flow, address);
            Some(Pair {
                id,
                flow,
                exec: exec_of(&flow.app)?,
                start,
                stop: stop.min(end),
                seed: address.seed,
                receiver: None,
                sender: None,
                has_begun: false,
            })
        });
        let pairs = pairs.collect();
        Self { scenario, hosts, person: testbed::person(), pairs }
    }

    /// Looks whether the hosts that are here have the programs with which commands begin.
    ///
    /// # Errors
    /// The first that is missing, and what to type.
    pub(crate) fn check(&self) -> Result<(), String> {
        let mut known: Vec<String> = Vec::new();
        for pair in &self.pairs {
            for (_, command, host) in pair.commands() {
                if self.hosts[host.index()].is_none() {
                    continue;
                }
                let command = pair.filled(command)?;
                let Some(name) =
                    first_word(&command).filter(|name| !known.iter().any(|own| own == name))
                else {
                    continue;
                };
                lacks(name).map_or(Ok(()), |problem| Err(of_flow(pair.flow, &problem)))?;
                known.push(name.to_owned());
            }
        }
        Ok(())
    }

    /// Starts the programs of receivers, and waits until they listen. The calling thread must outlive what it started.
    ///
    /// # Errors
    /// Which program could not be started, ended, or does not listen.
    pub(crate) fn start_receivers(&mut self) -> Result<(), String> {
        let Self { hosts, pairs, person, .. } = self;
        for pair in pairs {
            if let Some(command) = &pair.exec.spec.receiver
                && let Some(host) = hosts[pair.flow.dst.index()]
            {
                pair.receiver = Some(pair.started(Side::Receiver, command, host, *person)?);
            }
        }
        self.wait_for_listeners()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    fn wait_for_listeners(&mut self) -> Result<(), String> {
        let began = Instant::now();
        loop {
            if sys::is_interrupted() {
                return Err("stopped before it had begun".to_owned());
            }
            self.look(Time::ZERO, Duration::ZERO)?;
            let waits = |pair: &&Pair<'_>| {
                let receiver = pair.exec.spec.receiver.as_ref();
                receiver.is_some_and(|command| command.contains("{port}"))
                    && pair.receiver.as_ref().is_none_or(|own| !own.has_ended)
            };
            let mut missing = None;
            for pair in self.pairs.iter().filter(waits) {
                let Some(host) = self.hosts[pair.flow.dst.index()] else { continue };
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
                    problem += &receiver.left.last_words();
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
                if let Some(command) = &pair.exec.spec.sender
                    && let Some(host) = self.hosts[pair.flow.src.index()]
                {
                    pair.sender = Some(pair.started(Side::Sender, command, host, self.person)?);
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

    /// Gives senders' programs the time that they have to end by themselves, then ends all that have not. `waits` is told whether
    /// any of them is still in that time, and says whether to wait.
    pub(crate) fn finish(&mut self, clock: &Clock, waits: impl Fn(bool) -> bool) {
        let began = Instant::now();
        loop {
            // What is said of one that fails now is in what it leaves.
            let _ = self.look(clock.now(), TICK);
            let has_time = |pair: &Pair<'_>| {
                let grace = Duration::from_nanos(pair.exec.spec.grace.as_nanos());
                pair.sender.as_ref().is_some_and(|own| !own.has_ended) && began.elapsed() < grace
            };
            let has_time = self.pairs.iter().any(has_time);
            if !has_time {
                // Before receivers', so that none fails because it has lost its receiver's.
                let senders = self.pairs.iter_mut().filter_map(|pair| pair.sender.as_mut());
                senders.for_each(Program::ask_to_end);
            }
            if !waits(has_time) {
                break;
            }
        }
        self.all().for_each(Program::ask_to_end);
        let asked = Instant::now();
        while asked.elapsed() < LAST_WORDS && self.all().any(|own| !own.has_ended) {
            let _ = self.look(clock.now(), TICK);
        }
        self.all().for_each(Program::kill);
    }

    /// Ends those that have not ended, and gives what all have left.
    pub(crate) fn into_left(mut self) -> AllLeft {
        let mut all = AllLeft::new();
        for pair in &mut self.pairs {
            for (side, own) in
                [(Side::Sender, &mut pair.sender), (Side::Receiver, &mut pair.receiver)]
            {
                if let Some(mut own) = own.take() {
                    own.kill();
                    all.insert((pair.id, side), own.left);
                }
            }
        }
        all
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
        // Those behind one that has failed are looked at, too: at the end of a run all go on.
        let mut all = Ok(());
        for pair in &mut self.pairs {
            for own in pair.sender.iter_mut().chain(&mut pair.receiver) {
                own.take(now);
                if let Some(problem) = own.left.failure() {
                    all = all.and(Err(of_flow(pair.flow, &problem)));
                }
            }
        }
        all
    }
}

/// What the programs of each such flow say of it until the end of the run, and what they printed last.
pub(crate) fn reports(
    scenario: &Scenario,
    address: StreamAddress,
    left: &AllLeft,
    end: Time,
) -> Vec<(FlowId, Reported, String)> {
    let warm = Time::ZERO + scenario.warmup;
    let flows = scenario.flows.iter().zip((0..).map(FlowId));
    let flows = flows.filter(|(flow, _)| exec_of(&flow.app).is_some());
    flows
        .map(|(flow, id)| {
            let both = [Side::Sender, Side::Receiver].map(|side| left.get(&(id, side)));
            let printed = both.map(|own| own.map_or(&[][..], |own| &own.printed.bytes));
            let lines = both.into_iter().flatten().flat_map(|own| own.printed.lines());
            let (start, _) = traffic::lasts(flow, address);
            let mut reported = reports::iperf3(printed, start, warm, end);
            reports::add_get_stats(&mut reported, lines, warm, end);
            let text = both.into_iter().flatten().map(Left::end_state).collect();
            (id, reported, text)
        })
        .collect()
}

/// The programs that failed, but for those of receivers that may have lost their sender's, which had been asked to end.
pub(crate) fn failures(scenario: &Scenario, left: &AllLeft) -> Vec<String> {
    let failed = left.iter().filter_map(|((id, side), own)| {
        let flow = scenario.flows.get(id.index())?;
        let is_alone = *side == Side::Receiver
            && left.get(&(*id, Side::Sender)).is_some_and(|sender| sender.was_asked);
        let problem = own.failure().filter(|_| !is_alone)?;
        Some(of_flow(flow, &problem))
    });
    failed.collect()
}

fn of_flow(flow: &Flow, problem: &str) -> String {
    format!("flow '{}': {problem}", flow.name)
}

/// The program with which a command begins, if that is a plain word.
fn first_word(command: &str) -> Option<&str> {
    let is_plain = |word: &str| {
        word.bytes().all(|b| b.is_ascii_alphanumeric() || b"/._+-".contains(&b))
            && !word.starts_with('-')
    };
    let is_set = |word: &str| {
        let name = word.split_once('=').map(|(name, _)| name);
        name.is_some_and(|name| name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_'))
            && !word.contains(['"', '\'', '$', '`', '\\'])
    };
    let mut words = command.split_whitespace();
    words.find(|word| *word != "exec" && !is_set(word)).filter(|word| is_plain(word))
}

/// What a machine lacks to run a program, and what to do; of a path as it stands to the folder in which this program was started.
fn lacks(name: &str) -> Option<String> {
    if !name.contains('/') {
        let problem = || {
            format!(
                "it has no program '{name}'; type there: sudo apt install {name} (or what the package is called that has it)"
            )
        };
        return (!has_program(name)).then(problem);
    }
    let from = match env::current_dir() {
        Ok(folder) if !name.starts_with('/') => {
            format!(" in {}, the folder in which commands begin there", folder.display())
        }
        _ => String::new(),
    };
    match fs::metadata(name) {
        Err(error) => Some(format!(
            "it has no program '{name}'{from} ({error}); copy it to that machine, or write the path that it has there"
        )),
        Ok(file) if !file.is_file() || file.permissions().mode() & 0o111 == 0 => Some(format!(
            "'{name}'{from} is no program that may be run; type there: chmod +x, or write the path of one"
        )),
        Ok(_) => None,
    }
}

/// Whether the shell knows a command of that name.
fn has_program(name: &str) -> bool {
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", "command -v \"$0\"", name]);
    shell.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    shell.status().is_ok_and(|status| status.success())
}

impl Pair<'_> {
    /// Its commands, each with the host in which it runs.
    fn commands(&self) -> impl Iterator<Item = (Side, &str, HostId)> {
        let spec = &self.exec.spec;
        let sender = spec.sender.iter().map(|own| (Side::Sender, &own[..], self.flow.src));
        let receiver = spec.receiver.iter().map(|own| (Side::Receiver, &own[..], self.flow.dst));
        sender.chain(receiver)
    }

    fn started(
        &self,
        side: Side,
        command: &str,
        host: BorrowedFd<'_>,
        person: Option<sys::Person>,
    ) -> Result<Program, String> {
        let failed = |problem: String| of_flow(self.flow, &problem);
        let command = self.filled(command)?;
        let end = match side {
            Side::Sender => "sender",
            Side::Receiver => "receiver",
        };
        let what = format!("the {end}'s program `{command}`");
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", &command]);
        shell.env("TMPDIR", sys::SCRATCH);
        if let Some(home) = person.and_then(|person| testbed::home_of(person.user)) {
            shell.env("HOME", home);
        }
        shell.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let started = sys::start_enclosed(&mut shell, host, person);
        let child = started.map_err(|error| failed(format!("{what}: {error}")))?;
        let left = Left { what, how: "had not ended".to_owned(), ..Left::default() };
        let program = Program { child, left, has_ended: false };
        for pipe in program.pipes() {
            rustix::io::ioctl_fionbio(pipe, true)
                .map_err(|error| failed(format!("a pipe: {error}")))?;
        }
        Ok(program)
    }

    fn filled(&self, command: &str) -> Result<String, String> {
        let problem = |error: SpecError| of_flow(self.flow, &error.to_string());
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
        .map_err(problem)
    }
}

impl Program {
    fn pipes(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let out = self.child.stdout.as_ref().map(AsFd::as_fd);
        out.into_iter().chain(self.child.stderr.as_ref().map(AsFd::as_fd))
    }

    fn take(&mut self, now: Time) {
        // What it has said before its end is there then.
        if !self.has_ended
            && let Ok(Some(status)) = self.child.try_wait()
        {
            self.end_with(status);
        }
        let Self { child, left, .. } = self;
        if drained(&mut child.stdout, |bytes| left.printed.add(bytes, now)) {
            child.stdout = None;
        }
        if drained(&mut child.stderr, |bytes| left.complain(bytes)) {
            child.stderr = None;
        }
    }

    fn end_with(&mut self, status: ExitStatus) {
        self.has_ended = true;
        self.left.has_failed = !status.success() && !self.left.was_asked;
        self.left.how = match self.left.was_asked {
            true => "was asked to end".to_owned(),
            false => status.to_string(),
        };
    }

    fn ask_to_end(&mut self) {
        if !self.has_ended && !self.left.was_asked {
            self.left.was_asked = true;
            sys::ask_to_end(&self.child);
        }
    }

    fn kill(&mut self) {
        if !self.has_ended {
            self.left.was_asked = true;
            let _ = self.child.kill();
            if let Ok(status) = self.child.wait() {
                self.end_with(status);
            }
        }
    }
}

impl Drop for Programs<'_> {
    fn drop(&mut self) {
        self.all().for_each(Program::kill);
    }
}

/// Takes what is in a pipe, or a part of it if it is filled as quickly; whether its other end is closed.
fn drained(pipe: &mut Option<impl Read>, mut take: impl FnMut(&[u8])) -> bool {
    let Some(pipe) = pipe else { return false };
    let mut room = [0; 16 * 1024];
    for _ in 0..MOST_READ / room.len() {
        match pipe.read(&mut room) {
            Ok(0) => return true,
            Ok(length) => take(&room[..length]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return error.kind() != io::ErrorKind::WouldBlock,
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_program_with_which_a_command_begins() {
        for (command, name) in [
            ("iperf3 -s -p 1", Some("iperf3")),
            ("exec LANG=C A= /opt/x.sh --y", Some("/opt/x.sh")),
            ("A=\"b c\" iperf3", None),
            ("$HOME/x", None),
            ("(iperf3)", None),
            ("pwd; ls", None),
            ("", None),
        ] {
            assert_eq!(first_word(command), name, "{command}");
        }
    }

    #[test]
    fn what_a_machine_lacks_is_named_with_the_folder_and_what_to_do() {
        let scratch = tempfile::tempdir().expect("there is room");
        let plain = scratch.path().join("plain");
        fs::write(&plain, "").expect("it can be written");
        let plain = plain.display().to_string();
        let here = env::current_dir().expect("there is one").display().to_string();
        for known in ["sh", "trap", "/bin/sh"] {
            assert_eq!(lacks(known), None);
        }
        for (name, has) in [
            ("no-such-one", "type there: sudo apt install no-such-one"),
            ("/no/such", "it has no program '/no/such' (No such file"),
            ("./no-such", &format!("it has no program './no-such' in {here}, the folder in")),
            (&plain, "is no program that may be run; type there: chmod +x"),
            ("/", "'/' is no program"),
        ] {
            let problem = lacks(name).expect(name);
            assert!(problem.contains(has), "{problem}");
        }
    }

    proptest! {
        #[test]
        fn no_command_makes_it_panic(command in "[=a-z \"'$-é]{0,30}") {
            let _ = first_word(&command);
        }
    }
}
