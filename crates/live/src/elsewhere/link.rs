//! The way to a host: `ssh`, which starts a copy of this program there, and what it says.

use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use sojourn_core::Span;

use super::file::Host;
use super::message::{self, ALIVE, FromAgent, GREETING, ToAgent};
use crate::{sys, testbed};

/// How long a host may take for what it is asked for.
pub(super) const PATIENCE: Duration = Duration::from_secs(20);
/// How long ssh and the copying of this program may take.
const LONG_PATIENCE: Duration = Duration::from_secs(300);
/// How often it is looked whether somebody has asked to stop.
const TICK: Duration = Duration::from_millis(100);
/// Of what `ssh` complains of, the last is kept.
const MOST_COMPLAINTS: usize = 4096;
/// How often clocks are compared; the quickest answer counts.
const COMPARISONS: usize = 20;

/// Nobody is there to answer questions; a connection that can't be made, or is dead, is noticed.
const SSH: [&str; 9] = [
    "-T",
    "-o",
    "BatchMode=yes",
    "-o",
    "ConnectTimeout=10",
    "-o",
    "ServerAliveInterval=5",
    "-o",
    "ServerAliveCountMax=2",
];

pub(super) struct Link {
    /// The study's name of the host.
    pub(super) name: String,
    host: Host,
    child: Child,
    /// To the thread that writes. The program there ends when this does.
    orders: Option<Sender<ToAgent>>,
    messages: Receiver<Came>,
    complaints: Arc<Mutex<Vec<u8>>>,
    /// It has said that it is a copy of this program.
    has_greeted: bool,
    /// What its clock shows now is what this one shows since `epoch`, and so many nanoseconds more.
    epoch: Instant,
    ahead: i64,
    /// By how much that may be wrong.
    pub(super) uncertainty: Span,
}

enum Came {
    Greeting([u8; GREETING.len()]),
    Message(FromAgent),
    /// What came is no message.
    Wrong(io::Error),
}

impl Link {
    /// # Errors
    /// The host can't be reached, or this program does not run there; or somebody has asked to stop.
    pub(super) fn open(name: &str, host: &Host) -> Result<Self, String> {
        let own = match host.sojourn {
            Some(_) => None,
            None => Some(own_program().map_err(|error| format!("/proc/self/exe: {error}"))?),
        };
        let size = own.as_ref().map_or(0, |(_, size)| *size);
        let mut ssh = Command::new("ssh");
        ssh.args(SSH).args(&host.ssh_options).arg("--").arg(&host.ssh);
        ssh.arg(remote_command(host, size));
        ssh.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // Ctrl-C on the terminal is for this process only.
        ssh.process_group(0);
        // Who asked for root's rights has the keys.
        if let Some(person) = testbed::person() {
            ssh.uid(person.user).gid(person.group);
            if let Some(home) = testbed::home_of(person.user) {
                ssh.env("HOME", home);
            }
        }
        let mut child = ssh
            .spawn()
            .map_err(|error| format!("ssh: {error}; type: sudo apt install openssh-client"))?;
        let (Some(mut input), Some(output), Some(errors)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err("ssh has no pipes".to_owned());
        };
        let complaints = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&complaints);
        thread::spawn(move || keep_complaints(errors, &kept));
        let (sender, messages) = channel();
        thread::spawn(move || take(BufReader::new(output), &sender));
        let (orders, ordered) = channel();
        // If `ssh` has ended, so does this, and what `ssh` said is shown.
        thread::spawn(move || -> io::Result<()> {
            if let Some((own, size)) = own {
                io::copy(&mut own.take(size), &mut input)?;
            }
            give(input, &ordered)
        });
        let mut link = Self {
            name: name.to_owned(),
            host: host.clone(),
            child,
            orders: Some(orders),
            messages,
            complaints,
            has_greeted: false,
            epoch: Instant::now(),
            ahead: 0,
            uncertainty: Span::ZERO,
        };
        match link.next(LONG_PATIENCE)? {
            Came::Greeting(greeting) if greeting == *GREETING => {
                link.has_greeted = true;
                Ok(link)
            }
            Came::Greeting(other) if other.starts_with(&GREETING[..14]) => Err(link.about(
                "another version of sojourn is there; leave out 'sojourn' in the file of hosts, and this one is copied",
            )),
            Came::Greeting(other) => {
                let said = String::from_utf8_lossy(&other);
                Err(link.about(&format!(
                    "it prints '{}…' where no terminal is (its ~/.bashrc?), which must print nothing",
                    said.trim().escape_debug()
                )))
            }
            Came::Message(_) | Came::Wrong(_) => Err(link.about("it does not greet")),
        }
    }

    /// Whether it is the way to this host.
    pub(super) fn leads_to(&self, name: &str, host: &Host) -> bool {
        self.name == name && self.host == *host
    }

    /// Whether it has not ended, and nothing is under way.
    pub(super) fn is_open(&self) -> bool {
        matches!(self.messages.try_recv(), Err(TryRecvError::Empty))
    }

    pub(super) fn send(&self, message: ToAgent) -> Result<(), String> {
        let sent = self.orders.as_ref().map(|orders| orders.send(message));
        sent.and_then(Result::ok).ok_or_else(|| self.lost())
    }

    /// The next message.
    pub(super) fn receive(&mut self, patience: Duration) -> Result<FromAgent, String> {
        match self.next(patience)? {
            Came::Message(message) => Ok(message),
            Came::Wrong(error) => Err(self.about(&format!("a wrong message: {error}"))),
            Came::Greeting(_) => Err(self.about("it greets again")),
        }
    }

    /// The next message, if it comes in this time.
    pub(super) fn receive_within(&mut self, time: Duration) -> Result<Option<FromAgent>, String> {
        match self.messages.recv_timeout(time) {
            Ok(Came::Message(message)) => Ok(Some(message)),
            Ok(Came::Wrong(error)) => Err(self.about(&format!("a wrong message: {error}"))),
            Ok(Came::Greeting(_)) => Err(self.about("it greets again")),
            Err(RecvTimeoutError::Disconnected) => Err(self.lost()),
            Err(RecvTimeoutError::Timeout) => Ok(None),
        }
    }

    fn next(&mut self, patience: Duration) -> Result<Came, String> {
        let began = Instant::now();
        while began.elapsed() < patience {
            match self.messages.recv_timeout(TICK) {
                Ok(came) => return Ok(came),
                Err(RecvTimeoutError::Disconnected) => return Err(self.lost()),
                Err(RecvTimeoutError::Timeout) if sys::is_interrupted() => {
                    return Err("stopped while hosts were being reached".to_owned());
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
        let seconds = patience.as_secs();
        Err(self.about(&format!("it has not answered for {seconds} s")))
    }

    /// Finds how far its clock is ahead of this one: half of the quickest of some exchanges is how wrong that may be. Gives
    /// back by how much it has moved since the last time.
    pub(super) fn compare_clocks(&mut self) -> Result<Span, String> {
        let mut quickest = (u64::MAX, 0);
        for _ in 0..COMPARISONS {
            let asked = self.epoch.elapsed().as_nanos() as u64;
            self.send(ToAgent::Clock)?;
            let FromAgent::Clock(at) = self.receive(PATIENCE)? else {
                return Err(self.about("it does not say what its clock shows"));
            };
            let took = self.epoch.elapsed().as_nanos() as u64 - asked;
            let half = (asked + took / 2) as i64;
            quickest = quickest.min((took, (at as i64).saturating_sub(half)));
        }
        let moved = Span::from_nanos(quickest.1.abs_diff(self.ahead));
        (self.ahead, self.uncertainty) = (quickest.1, Span::from_nanos(quickest.0 / 2));
        Ok(moved)
    }

    pub(super) fn begin_at(&self, start: Instant) -> Result<(), String> {
        let here = start.saturating_duration_since(self.epoch).as_nanos() as i64;
        let there = u64::try_from(here.saturating_add(self.ahead)).unwrap_or(0);
        self.send(ToAgent::Begin(there))
    }

    /// The machine, as `ssh` calls it.
    pub(super) fn machine(&self) -> &str {
        &self.host.ssh
    }

    /// A problem of this host.
    pub(super) fn about(&self, problem: &str) -> String {
        format!("host '{}' ({}): {problem}", self.name, self.host.ssh)
    }

    /// Why nothing comes from it any more, with what `ssh` said last.
    fn lost(&self) -> String {
        // What it says comes by another pipe.
        thread::sleep(Duration::from_millis(200));
        let said = self.complaints.lock().unwrap_or_else(PoisonError::into_inner);
        let said = String::from_utf8_lossy(&said);
        let lines: Vec<&str> =
            said.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        self.about(&told(&lines, &self.host, self.has_greeted))
    }
}

/// What `ssh` said in one sentence, with what can be done.
fn told(lines: &[&str], host: &Host, has_greeted: bool) -> String {
    let ssh = &host.ssh;
    let has = |words: &str| lines.iter().find(|line| line.contains(words));
    if let Some(line) = has("Permission denied (") {
        return format!("{line}; 'ssh {ssh}' must work without a password: ssh-copy-id {ssh}");
    }
    if has("REMOTE HOST IDENTIFICATION HAS CHANGED").is_some() {
        return format!(
            "its key is not the one that is known; if that is right, type: ssh-keygen -R {}",
            ssh.rsplit_once('@').map_or(&ssh[..], |(_, machine)| machine)
        );
    }
    if let Some(line) = has("Host key verification failed") {
        return format!("{line} Its key is not known; type once: ssh {ssh}");
    }
    if let Some(line) = has("No space left on device") {
        return format!("{line}; make room in '{}' there, or name another 'folder'", host.folder);
    }
    let runs_not =
        ["Exec format error", "GLIBC_", "not found", "No such file", "Permission denied"];
    if let Some(line) = runs_not.into_iter().find_map(has) {
        return match &host.sojourn {
            Some(path) => format!(
                "{line}; is '{path}' sojourn there? Without 'sojourn' in the file of hosts it is copied"
            ),
            None => format!(
                "{line}; what is copied to '{}' does not run there: name another 'folder', or one built for it, sojourn = \"/path\"",
                host.folder
            ),
        };
    }
    match (lines.last(), &host.sojourn) {
        (Some(line), _) => (*line).to_owned(),
        (None, Some(path)) if !has_greeted => {
            format!(
                "the connection is lost before '{path}' there has said anything: is it sojourn?"
            )
        }
        (None, _) => "the connection is lost".to_owned(),
    }
}

impl Drop for Link {
    /// The program there ends when its input does, and then `ssh`.
    fn drop(&mut self) {
        self.orders = None;
        let began = Instant::now();
        while began.elapsed() < Duration::from_secs(2) {
            if let Ok(Some(_)) = self.child.try_wait() {
                return;
            }
            thread::sleep(Duration::from_millis(10));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn own_program() -> io::Result<(File, u64)> {
    let own = File::open("/proc/self/exe")?;
    let size = own.metadata()?.len();
    Ok((own, size))
}

/// Writes orders, and in pauses that somebody is there.
fn give(mut to: impl Write, orders: &Receiver<ToAgent>) -> io::Result<()> {
    loop {
        match orders.recv_timeout(ALIVE) {
            Ok(order) => message::write(&mut to, &order)?,
            Err(RecvTimeoutError::Timeout) => message::write(&mut to, &ToAgent::Alive)?,
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
        }
    }
}

/// Hands on what comes until nothing comes any more, or what is wrong.
fn take(mut from: impl Read, to: &Sender<Came>) {
    let mut greeting = [0; GREETING.len()];
    if from.read_exact(&mut greeting).is_err() || to.send(Came::Greeting(greeting)).is_err() {
        return;
    }
    loop {
        let came = match message::read(&mut from) {
            Ok(Some(message)) => Came::Message(message),
            Ok(None) => return,
            Err(error) => Came::Wrong(error),
        };
        let is_last = matches!(came, Came::Wrong(_));
        if to.send(came).is_err() || is_last {
            return;
        }
    }
}

/// What the host's shell does: with root's rights, if `sudo` gives them without a question, it starts this program; or
/// takes a copy of so many bytes from its input, and starts it when the file is gone already.
fn remote_command(host: &Host, size: u64) -> String {
    let script = match &host.sojourn {
        Some(path) => format!("exec {} live agent", quoted(path)),
        None => format!(
            "umask 077; d=$(mktemp -d {}/sojourn.XXXXXX) || exit 1; trap 'rm -rf \"$d\"' EXIT; \
             trap 'exit 1' HUP INT TERM PIPE; p=$d/sojourn; head -c {size} > \"$p\" || exit 1; \
             test \"$(wc -c < \"$p\")\" -eq {size} || exit 1; chmod 700 \"$p\" && exec 3< \"$p\" || exit 1; \
             rm -rf \"$d\"; exec /proc/self/fd/3 live agent",
            quoted(&host.folder)
        ),
    };
    let script = quoted(&script);
    // Whatever shell the user has there.
    let choose = format!(
        "if test \"$(id -u)\" != 0 && sudo -n true 2> /dev/null; then exec sudo -n sh -c {script}; \
         else exec sh -c {script}; fi"
    );
    format!("exec sh -c {}", quoted(&choose))
}

/// As a shell's word.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

fn keep_complaints(mut from: impl Read, kept: &Mutex<Vec<u8>>) {
    let mut room = [0; 1024];
    while let Ok(length @ 1..) = from.read(&mut room) {
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend(&room[..length]);
        let over = kept.len().saturating_sub(MOST_COMPLAINTS);
        kept.drain(..over);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn host(sojourn: Option<String>, folder: &str) -> Host {
        Host {
            ssh: "me@there".to_owned(),
            ssh_options: Vec::new(),
            interface: "e".to_owned(),
            here: "f".to_owned(),
            sojourn,
            folder: folder.to_owned(),
        }
    }

    /// What a shell makes of a remote command.
    fn run(command: &str, input: &[u8]) -> std::process::Output {
        let mut shell = Command::new("sh");
        shell.args(["-c", command]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = shell.stderr(Stdio::piped()).spawn().expect("there is a shell");
        let _ = child.stdin.take().expect("it is a pipe").write_all(input);
        child.wait_with_output().expect("it ends")
    }

    #[test]
    fn a_copy_is_gone_when_it_runs_and_half_of_one_does_not_run() {
        let scratch = tempfile::tempdir().expect("there is room");
        let folder = scratch.path().join("it's a \"folder\"");
        std::fs::create_dir(&folder).expect("it can be made");
        let echo = std::fs::read("/bin/echo").expect("there is one");
        let command = remote_command(&host(None, &folder.display().to_string()), echo.len() as u64);
        let left = || std::fs::read_dir(&folder).expect("it is there").count();
        let whole = run(&command, &echo);
        assert_eq!(String::from_utf8_lossy(&whole.stdout), "live agent\n", "{whole:?}");
        assert_eq!(left(), 0);
        let half = run(&command, &echo[..echo.len() / 2]);
        assert!(!half.status.success() && half.stdout.is_empty(), "{half:?}");
        assert_eq!(left(), 0);
    }

    #[test]
    fn a_path_is_one_word_of_the_shell() {
        let scratch = tempfile::tempdir().expect("there is room");
        let path = scratch.path().join("it's $HOME");
        std::fs::copy("/bin/echo", &path).expect("it can be copied");
        let command = remote_command(&host(Some(path.display().to_string()), ""), 0);
        assert_eq!(String::from_utf8_lossy(&run(&command, b"").stdout), "live agent\n");
    }

    #[test]
    fn what_ssh_says_ends_with_what_to_type() {
        let (copied, there) = (host(None, "/tmp"), host(Some("/opt/sojourn".to_owned()), "/tmp"));
        for (said, host, told_so) in [
            (
                "x\nme@there: Permission denied (publickey).",
                &copied,
                "password: ssh-copy-id me@there",
            ),
            ("Host key verification failed.", &copied, "not known; type once: ssh me@there"),
            (
                "@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @\nHost key verification failed.",
                &copied,
                "ssh-keygen -R there",
            ),
            ("sh: 1: exec: /proc/self/fd/3: Exec format error", &copied, "sojourn = \"/path\""),
            ("sh: 1: exec: /opt/sojourn: not found", &there, "is '/opt/sojourn' sojourn there?"),
            ("ssh: connect to host there port 22: No route to host", &copied, "No route to host"),
            (
                "head: No space left on device",
                &copied,
                "make room in '/tmp' there, or name another",
            ),
            ("", &copied, "the connection is lost"),
            ("", &there, "lost before '/opt/sojourn' there has said anything: is it sojourn?"),
        ] {
            let lines: Vec<&str> = said.lines().collect();
            let told = told(&lines, host, false);
            assert!(told.contains(told_so), "{told}");
        }
    }

    proptest! {
        #[test]
        fn whatever_comes_ends(bytes in prop::collection::vec(any::<u8>(), 0..80), greets in any::<bool>()) {
            let (sender, came) = channel();
            let greeting: &[u8] = if greets { GREETING } else { b"" };
            take(&[greeting, &bytes].concat()[..], &sender);
            drop(sender);
            prop_assert!(came.iter().count() <= 2 + bytes.len() / 4);
        }
    }
}
