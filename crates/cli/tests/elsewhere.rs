//! Hosts that are other machines, here of namespaces with an `sshd` each: what a run over them gives, what is said when one can't be had, and that
//! nothing is left on them. It needs root, `ip` and `sshd`; where one is missing, the test says so and does nothing.

#![cfg(target_os = "linux")]

#[path = "../../live/tests/tries/mod.rs"]
mod tries;

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

const PROGRAM: &str = env!("CARGO_BIN_EXE_sojourn");

const STUDY: &str = r#"
schema = 1
title = "elsewhere"
[scenario]
duration = "1s"
warmup = "200ms"
path = { rate = "10Mbps", rtt = "20ms", queue = "pfifo limit 50" }
[[scenario.flow]]
name = "bulk"
app = "bulk"
cca = "cubic-linux"
[[scenario.flow]]
name = "ping"
app = "ping"
[[claim]]
id = "full"
text = "The link is used"
expect = "goodput(bulk) > 8 Mbps"
"#;

/// Programs that don't end by themselves, one of them not even when it is asked to.
const OWN: &str = r#"
[[scenario.flow]]
name = "own"
app = "exec"
sender = "trap '' TERM; sleep 2071"
receiver = "sleep 2071 & sleep 2071"
grace = "0s"
"#;

/// What they are.
const SLEEPS: &[u8] = b"sleep\x002071\0";

/// Every application, until their transfers are done.
const ALL: &str = r#"
schema = 1
title = "all"
[scenario]
duration = "20s"
until = "transfers done"
warmup = "200ms"
path = { rate = "20Mbps", rtt = "20ms", queue = "fq_codel" }
[[scenario.flow]]
name = "bulk"
app = "bulk"
cca = "cubic-linux"
bytes = "300kB"
[[scenario.flow]]
name = "come"
app = "arrivals"
cca = "cubic-linux"
arrivals_per_second = 10
sizes = "20kB"
transfers = 5
[[scenario.flow]]
name = "page"
app = "page"
cca = "cubic-linux"
bytes = "100kB"
requests = 3
pages = 2
pause = "100ms"
[[scenario.flow]]
name = "asks"
app = "requests"
cca = "cubic-linux"
bytes = "20kB"
streams = 2
requests = 10
[[scenario.flow]]
name = "rpm"
app = "rpm"
cca = "cubic-linux"
interval = "200ms"
limit = "2s"
[[scenario.flow]]
name = "own"
app = "exec"
start = "300ms"
receiver = "./serve -1 -p {port}"
sender = "touch $TMPDIR/left; iperf3 -c {receiver} -p {port} -t 1 -i 0.5 -C cubic -J && pwd"
"#;

/// A transfer, which ends the run.
const TRANSFER: &str = r#"
schema = 1
title = "transfer"
[scenario]
duration = "60s"
until = "transfers done"
path = { rate = "20Mbps", rtt = "20ms", queue = "fq_codel" }
[[scenario.flow]]
name = "bulk"
app = "bulk"
cca = "cubic-linux"
bytes = "300kB"
"#;

/// A program that fails when transfers are done, and others that print more than is kept of them, without a pause.
const FAILS: &str = r#"
[[scenario.flow]]
name = "own"
app = "exec"
sender = "sleep 3; echo it was mine; exit 3"
[[scenario.flow]]
name = "prints"
app = "exec"
receiver = "exec yes"
"#;

/// The sender of the transfer sends to a third host, too.
const THREE: &str = r#"
[[scenario.flow]]
name = "second"
app = "bulk"
dst = "more"
cca = "cubic-linux"
bytes = "200kB"
[[scenario.flow]]
name = "between"
app = "exec"
dst = "more"
receiver = "iperf3 -s -1 -p {port}"
sender = "iperf3 -c {receiver} -p {port} -n 100K"
"#;

/// The machines, which end with this.
struct World {
    unshare: Child,
    /// Their first process.
    first: u32,
    folder: tempfile::TempDir,
}

impl World {
    /// `None`, and why on standard error, where there can be none.
    fn new() -> Option<Self> {
        let scratch = tempfile::Builder::new().prefix("elsewhere-").tempdir_in("/tmp");
        let folder = scratch.expect("there is room");
        let has = |program: &str| {
            let mut found = Command::new("sh");
            found.args(["-c", &format!("command -v {program}")]).stdout(Stdio::null());
            found.status().is_ok_and(|status| status.success())
        };
        let needed = [
            "ip",
            "bridge",
            "sshd",
            "ssh",
            "ssh-keygen",
            "unshare",
            "nsenter",
            "iperf3",
            "python3",
        ];
        if let Some(missing) = needed.into_iter().find(|own| !has(own)) {
            eprintln!("skipped: no {missing}");
            return None;
        }
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/elsewhere/world.sh");
        let mut unshare = Command::new("unshare")
            .args(["-n", "-m", "-p", "-f", "--kill-child", "--mount-proc", "sh"])
            .args([&script, folder.path()])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        let mut line = String::new();
        let out = unshare.stdout.take().expect("it is a pipe");
        BufReader::new(out).read_line(&mut line).expect("it is text");
        if line != "up\n" {
            let mut why = String::new();
            let _ = unshare.stderr.take().expect("it is a pipe").read_to_string(&mut why);
            eprintln!("skipped: no namespaces with sshd: {why}");
            let _ = unshare.wait();
            return None;
        }
        let first = child_of(unshare.id());
        for (name, parts) in [
            ("t.toml", [STUDY, ""]),
            ("own.toml", [STUDY, OWN]),
            ("all.toml", [ALL, ""]),
            ("fails.toml", [TRANSFER, FAILS]),
            ("thrice.toml", [TRANSFER, THREE]),
        ] {
            fs::write(folder.path().join(name), parts.concat()).expect("it can be written");
        }
        Some(Self { unshare, first, folder })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A command on a machine.
    fn on(&self, machine: &str, words: &[&str]) -> Command {
        let root = format!("/proc/{}", self.first);
        let mut command = Command::new("nsenter");
        command.arg(format!("--mount={root}/ns/mnt")).arg(format!("--pid={root}/ns/pid"));
        command.arg(format!("--net={root}/root/run/netns/{machine}"));
        command.arg(format!("--wdns={}", self.folder.path().display())).arg("--").args(words);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// `sojourn run` with a file of hosts.
    fn run(&self, study: &str, hosts: &str, out: &str) -> Command {
        self.on("bottleneck", &[PROGRAM, "run", study, "--hosts", hosts, "--out", out])
    }

    /// A file of hosts with something else in it, by its name.
    fn hosts(&self, old: &str, new: &str) -> String {
        let text = fs::read_to_string(self.path("hosts.toml")).expect("it was written");
        assert!(text.contains(old), "there is no '{old}'");
        fs::write(self.path("other.toml"), text.replace(old, new)).expect("it can be written");
        "other.toml".to_owned()
    }

    /// One whose first host is not as it should be.
    fn untrue(&self, what: &str) -> String {
        let text = fs::read_to_string(self.path("hosts.toml")).expect("it was written");
        let python = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/elsewhere/untrue.py");
        self.script(
            "untrue",
            &format!("exec python3 {} {what} {PROGRAM} \"$@\"", python.display()),
        );
        let of = |program: &Path| format!("sojourn = \"{}\"\nfolder = ", program.display());
        let text = text.replacen("folder = ", &of(&self.path("untrue")), 1);
        let (first, second) = text.split_once("[host.client]").expect("there are two");
        let second = second.replace("folder = ", &of(Path::new(PROGRAM)));
        fs::write(self.path("untrue.toml"), format!("{first}[host.client]{second}"))
            .expect("it can be written");
        "untrue.toml".to_owned()
    }

    fn script(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::write(&path, format!("#!/bin/sh\n{text}\n")).expect("it can be written");
        let done = Command::new("chmod").arg("755").arg(&path).status();
        assert!(done.is_ok_and(|own| own.success()));
    }

    /// Programs of ours that run on hosts.
    fn agents(&self) -> Vec<u32> {
        let is_ours = |pid: &u32| {
            let root = fs::read_link(format!("/proc/{pid}/ns/pid")).ok();
            let own = fs::read_link(format!("/proc/{}/ns/pid", self.first)).ok();
            root == own
        };
        let all = self.ending_with(b"live\0agent\0");
        // What watches over the user's programs is a child of one.
        let is_child = |pid: &u32| parent_of(*pid).is_some_and(|parent| all.contains(&parent));
        all.iter().copied().filter(|pid| is_ours(pid) && !is_child(pid)).collect()
    }

    /// Programs whose command ends so.
    fn ending_with(&self, command: &[u8]) -> Vec<u32> {
        let is_it = |pid: &u32| {
            fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| line.ends_with(command))
        };
        let processes = fs::read_dir("/proc").expect("it is there").flatten();
        let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        pids.filter(is_it).collect()
    }

    /// Devices on a host's interface: it takes packets to the address of each, which is no group's.
    fn devices(&self, host: &str) -> usize {
        let (_, addresses, _) = ended(self.on(host, &["bridge", "fdb", "show", "dev", "x0"]));
        let is_group = |line: &&str| line.starts_with("33:33:") || line.starts_with("01:00:");
        addresses.lines().filter(|line| !is_group(line)).count()
    }

    /// Waits until so many of them run.
    fn wait_for_agents(&self, count: usize) {
        let began = Instant::now();
        while self.agents().len() != count {
            assert!(began.elapsed() < Duration::from_secs(20), "{:?}", self.agents());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn table(&self, folder: &str) -> Table {
        let words = [PROGRAM, "export", folder, "--format", "csv"];
        let (_, table, _) = ended(self.on("bottleneck", &words));
        Table(table.lines().map(|row| row.split(',').map(str::to_owned).collect()).collect())
    }

    /// Neither a program nor a device nor a file of ours is on a host.
    fn is_clean(&self) {
        self.wait_for_agents(0);
        let began = Instant::now();
        while !self.ending_with(SLEEPS).is_empty() {
            assert!(began.elapsed() < Duration::from_secs(20), "a program is left");
            std::thread::sleep(Duration::from_millis(20));
        }
        for host in ["server", "client", "more"] {
            while self.devices(host) > 0 {
                assert!(began.elapsed() < Duration::from_secs(20), "a device is left on {host}");
                std::thread::sleep(Duration::from_millis(100));
            }
        }
        let names = fs::read_dir(self.folder.path()).expect("it is there").flatten();
        let names: Vec<_> = names.map(|entry| entry.file_name()).collect();
        assert!(
            !names.iter().any(|own| own.to_string_lossy().starts_with("sojourn.")),
            "{names:?}"
        );
    }
}

/// What `sojourn export` writes of a folder.
struct Table(Vec<Vec<String>>);

impl Table {
    /// The values of a metric, of one flow or of all that have it.
    fn values(&self, metric: &str, of: Option<&str>) -> Vec<f64> {
        let place = |name: &str| self.0[0].iter().position(|own| own == name);
        let (at, name) = (place(metric), place("name").expect("rows have names"));
        let at = at.unwrap_or_else(|| panic!("no {metric}: {:?}", self.0[0]));
        let rows = self.0[1..].iter().filter(|row| of.is_none_or(|of| row[name] == of));
        rows.filter_map(|row| row.get(at)?.parse().ok()).collect()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let _ = self.unshare.kill();
        let _ = self.unshare.wait();
    }
}

/// Of `unshare` or `nsenter` the program that it has started.
fn child_of(pid: u32) -> u32 {
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
    children.expect("it is there").trim().parse().expect("it has one child")
}

fn parent_of(pid: u32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim().parse().ok()
}

fn ended(mut command: Command) -> (Option<i32>, String, String) {
    let Output { status, stdout, stderr } = command.output().expect("it starts");
    let text = |bytes| String::from_utf8(bytes).expect("it is text");
    (status.code(), text(stdout), text(stderr))
}

/// What depends on rates is tried again, each time into a new folder.
fn tried(check: impl Fn(&str)) {
    tries::until_it_passes(|left| check(&format!("tried{left}")));
}

#[test]
fn a_study_runs_over_machines_reached_by_ssh_and_nothing_is_left_there() {
    let Some(world) = World::new() else { return };
    what_is_wrong_is_said(&world);
    tried(|out| a_run_from_a_desk(&world, &format!("{out}-desk")));
    // They need not be copied again.
    let hosts = world.hosts("folder = ", &format!("sojourn = \"{PROGRAM}\"\nfolder = "));
    wrong_wires_are_said(&world, &hosts);
    what_programs_lack_is_said(&world, &hosts);
    tried(|out| every_application(&world, &hosts, out));
    three_machines(&world);
    a_program_that_fails_ends_the_run(&world, &hosts);
    what_happens_after_the_end_is_said(&world);
    stopped_and_killed(&world, &hosts);
}

/// Each in one sentence, with what is allowed or to be typed.
fn what_is_wrong_is_said(world: &World) {
    let there = format!("sojourn = \"{PROGRAM}\"\n");
    world.script("weak", &format!("exec setpriv --bounding-set=-sys_admin {PROGRAM} \"$@\""));
    let weak = format!("sojourn = \"{}\"\nfolder = ", world.path("weak").display());
    let key = world.path("other").display().to_string();
    let wrong_key = (format!("\"{}\"", world.path("key").display()), format!("\"{key}\""));
    for (old, new, code, problem) in [
        ("interface = ", "iface = ", 2, "line 4: unknown field `iface`, expected one of `ssh`"),
        (
            "[host.client]",
            "[host.clint]",
            2,
            "the study has no host 'clint'; did you mean 'client'?",
        ),
        ("xclient", "xserver", 2, "two hosts have here = 'xserver'"),
        ("/known", "/unknown", 3, "host 'server' (root@192.168.2.2): Host key verification failed"),
        (
            &wrong_key.0,
            &wrong_key.1,
            3,
            "must work without a password: ssh-copy-id root@192.168.2.2",
        ),
        ("\"-F\"", "\"-p\", \"9\", \"-F\"", 3, "192.168.2.2 port 9: Connection refused"),
        ("\"xclient\"", "\"xclimt\"", 3, "interface 'xclimt' of this machine: No such device"),
        ("folder = ", "sojourn = \"/nowhere\"\nfolder = ", 3, "is '/nowhere' sojourn there?"),
        (
            "folder = ",
            &weak,
            3,
            "no network namespace: Operation not permitted (os error 1); it needs root",
        ),
        ("\"x0\"\nhere = \"xserver\"\n", "\"y0\"\nhere = \"xserver\"\n", 3, "'y0': No such device"),
    ] {
        let mut hosts = world.hosts(old, new);
        if !new.contains("sojourn = ") {
            // It takes longer to be copied.
            let text = fs::read_to_string(world.path(&hosts)).expect("it was written");
            hosts = "there.toml".to_owned();
            let text = text.replace("folder = ", &format!("{there}folder = "));
            fs::write(world.path(&hosts), text).expect("it can be written");
        }
        let (ended, _, said) = ended(world.run("t.toml", &hosts, "wrong"));
        assert_eq!(ended, Some(code), "{new}: {said}");
        assert!(said.contains(problem), "{new}: {said}");
        assert!(!world.path("wrong").exists(), "{new}: a folder was made");
    }
    world.is_clean();
}

/// Before anything starts it is seen whether hosts are where the file says.
fn wrong_wires_are_said(world: &World, hosts: &str) {
    let text = fs::read_to_string(world.path(hosts)).expect("it was written");
    let swapped = text.replace("\"xserver\"", "\"?\"").replace("xclient", "xserver");
    for (text, problem) in [
        (
            swapped.replace("\"?\"", "\"xclient\""),
            "host 'server' (root@192.168.2.2): what its interface 'x0' sends comes in at 'xserver' of this machine, and not at 'xclient'",
        ),
        (
            text.replace("\"xserver\"", "\"mserver\""),
            "for 5 s nothing that its interface 'x0' sends has come in at 'mserver' of this machine",
        ),
        (
            text.replace("192.168.3.2", "192.168.2.2"),
            "host 'client' (root@192.168.2.2): what its interface 'x0' sends comes in at 'xserver' of this machine, and not at 'xclient'",
        ),
    ] {
        fs::write(world.path("wires.toml"), text).expect("it can be written");
        let (ended, _, said) = ended(world.run("t.toml", "wires.toml", "wrong"));
        assert_eq!(ended, Some(3), "{problem}: {said}");
        assert!(said.contains(problem), "{problem}: {said}");
        assert!(!world.path("wrong").exists(), "a folder was made");
    }
    world.is_clean();
}

/// Before anything starts.
fn what_programs_lack_is_said(world: &World, hosts: &str) {
    for (old, new, code, problem) in [
        (
            "touch $TMPDIR/left; ",
            "exec iperf4 && ",
            3,
            "host 'server' (root@192.168.2.2): flow 'own': it has no program 'iperf4'; type there: sudo apt install iperf4",
        ),
        (
            "./serve",
            "/opt/iperf",
            3,
            "host 'client' (root@192.168.3.2): flow 'own': it has no program '/opt/iperf' (No such file",
        ),
        (
            "./serve",
            "./serve",
            3,
            "flow 'own': it has no program './serve' in /root, the folder in which commands begin there (No such file or \
             directory (os error 2)); copy it to that machine, or write the path that it has there",
        ),
        ("touch $TMPDIR/left; ", "ls {study}; ", 2, "{study} is a folder of this machine"),
    ] {
        fs::write(world.path("wrong.toml"), ALL.replace(old, new)).expect("it can be written");
        let (ended, _, said) = ended(world.run("wrong.toml", hosts, "wrong"));
        assert_eq!(ended, Some(code), "{new}: {said}");
        assert!(said.contains(problem), "{new}: {said}");
        assert!(!world.path("wrong").exists(), "{new}: a folder was made");
    }
    world.is_clean();
}

/// The ends of one flow are on two machines, and what they say is what one machine would.
fn every_application(world: &World, hosts: &str, out: &str) {
    world.script("home/serve", "exec iperf3 -s \"$@\" > $TMPDIR/log");
    let (code, shown, said) = ended(world.run("all.toml", hosts, out));
    assert_eq!(code, Some(0), "{shown}{said}");
    assert!(!said.contains("when it was over"), "{said}");
    let table = world.table(out);
    let value = |flow: &str, metric: &str| {
        let values = table.values(metric, Some(flow));
        *values.first().unwrap_or_else(|| panic!("no {metric} of {flow}"))
    };
    for (flow, metric, is) in [
        ("bulk", "delivered_bytes", 300e3),
        ("come", "completion_n", 5.0),
        ("come", "completion_of", 5.0),
        ("come", "delivered_bytes", 100e3),
        ("page", "completion_n", 2.0),
        ("page", "delivered_bytes", 200e3),
        ("asks", "completion_n", 10.0),
        ("asks", "delivered_bytes", 200e3),
    ] {
        assert_eq!(value(flow, metric), is, "{metric} of {flow}");
    }
    for (flow, metric, least, most) in [
        // A page is two round trips for a lookup and a connection, and two more or three.
        ("page", "fct_p50_ms", 80.0, 2000.0),
        ("asks", "fct_p50_ms", 20.0, 2000.0),
        ("rpm", "rpm", 30.0, 3000.0),
        ("rpm", "goodput_mbps", 0.5, 20.0),
        ("own", "reported_goodput_mbps", 0.2, 20.0),
        ("own", "goodput_mbps", 0.1, 20.0),
    ] {
        let own = value(flow, metric);
        assert!((least..=most).contains(&own), "{metric} of {flow}: {own}");
    }
    let (_, shown, _) = ended(world.on("bottleneck", &[PROGRAM, "show", out, "0"]));
    for has in ["\n  /root\n", "the receiver's program `./serve -1 -p 10005`: exit status: 0"] {
        assert!(shown.contains(has), "no '{has}': {shown}");
    }
    assert!(!Path::new("/dev/shm/left").exists());
    world.is_clean();
}

/// Which copies itself to the hosts: the bottleneck is told by ssh, too.
fn a_run_from_a_desk(world: &World, out: &str) {
    let (key, known) = (world.path("key"), world.path("known"));
    // What is copied is shorter so.
    let own = world.path("own");
    let stripped = Command::new("strip").arg("-o").arg(&own).arg(PROGRAM).status();
    let program = if stripped.is_ok_and(|own| own.success()) { &own } else { Path::new(PROGRAM) };
    let program = program.display();
    let script = format!(
        "cd {} && {program} run t.toml --hosts hosts.toml --seeds 2 --out {out} && {program} show {out} 1",
        world.folder.path().display()
    );
    let (code, shown, said) = ended(world.on(
        "desk",
        &[
            "ssh",
            "-F",
            "none",
            "-i",
            &key.display().to_string(),
            "-o",
            &format!("UserKnownHostsFile={}", known.display()),
            "root@192.168.1.2",
            &script,
        ],
    ));
    assert_eq!(code, Some(0), "{shown}{said}");
    for has in
        ["sent by root@192.168.2.2, Linux ", "its clock, which times its samples: known to 0."]
    {
        assert!(shown.contains(has), "no '{has}': {shown}");
    }
    let table = world.table(out);
    // What is said of sockets comes from the hosts; the rest is seen here.
    for (metric, least, most) in [
        ("goodput_mbps", 8.0, 9.7),
        ("srtt_p50_ms", 20.0, 85.0),
        ("cwnd_p50_pkts", 10.0, 100.0),
        ("ping_p50_ms", 20.0, 85.0),
        ("owd_p50_ms", 10.0, 75.0),
        ("queue_max_pkts", 10.0, 50.0),
        ("lateness_p50_ms", 0.0, 20.0),
    ] {
        // A flow or queue that has none of it, as a ping has no goodput, has zero.
        let values = table.values(metric, None).into_iter().filter(|value| *value > 0.0);
        let values: Vec<f64> = values.collect();
        assert!(values.len() >= 2, "{metric}: {values:?}");
        assert!(values.iter().any(|value| (least..=most).contains(value)), "{metric}: {values:?}");
    }
    assert!(world.path(out).join("report.html").exists());
    world.is_clean();
}

/// Each has the bottleneck between it and the others.
fn three_machines(world: &World) {
    let text = fs::read_to_string(world.path("three.toml")).expect("it was written");
    let there = format!("sojourn = \"{PROGRAM}\"\nfolder = ");
    let hosts = "three-there.toml";
    fs::write(world.path(hosts), text.replace("folder = ", &there)).expect("it can be written");
    let (code, shown, said) = ended(world.run("thrice.toml", hosts, "three"));
    assert_eq!(code, Some(0), "{shown}{said}");
    let table = world.table("three");
    for (flow, bytes) in [("bulk", 300e3), ("second", 200e3)] {
        assert_eq!(table.values("delivered_bytes", Some(flow)), [bytes], "{flow}");
    }
    let (_, shown, _) = ended(world.on("bottleneck", &[PROGRAM, "show", "three", "0"]));
    assert_eq!(shown.matches("exit status: 0").count(), 2, "{shown}");
    world.is_clean();
}

/// There is no result then.
fn a_program_that_fails_ends_the_run(world: &World, hosts: &str) {
    let own = OWN.replace("trap '' TERM; sleep 2071", "sleep 0.5; echo mine; exit 3");
    fs::write(world.path("mid.toml"), format!("{}{own}", STUDY.replace("\"1s\"", "\"20s\"")))
        .expect("it can be written");
    let (code, shown, said) = ended(world.run("mid.toml", hosts, "mid"));
    assert_eq!(code, Some(1), "{shown}{said}");
    for has in ["ended without a result: host 'server' (root@", "ended with exit status: 3: mine"] {
        assert!(said.contains(has), "no '{has}': {said}");
    }
    world.is_clean();
}

/// What was measured until then is a result, and what programs left is kept.
fn what_happens_after_the_end_is_said(world: &World) {
    for (study, what, flow, problem) in [
        ("fails.toml", "deaf", "bulk", "ended with exit status: 3: it was mine"),
        (
            "t.toml",
            "endless",
            "ping",
            " s after the end of the run it was waited for, and did not say that its part of it is over",
        ),
        ("t.toml", "dies", "ping", "the connection is lost"),
    ] {
        let (code, shown, said) = ended(world.run(study, &world.untrue(what), what));
        assert_eq!(code, Some(0), "{what}: {shown}{said}");
        let begin =
            "was measured, and is kept; when it was over: host 'server' (root@192.168.2.2): ";
        assert!(said.contains(begin) && said.contains(problem), "{what}: {said}");
        let (_, shown, _) = ended(world.on("bottleneck", &[PROGRAM, "show", what, "0"]));
        assert!(shown.contains("when it was over: host 'server'"), "{what}: {shown}");
        let metric = if flow == "bulk" { "delivered_bytes" } else { "ping_p50_ms" };
        assert!(world.table(what).values(metric, Some(flow))[0] > 0.0, "{what}");
        world.is_clean();
    }
    let (_, shown, _) = ended(world.on("bottleneck", &[PROGRAM, "show", "deaf", "0"]));
    for has in ["`sleep 3; echo it was mine; exit 3`: exit status: 3\n  it was mine", "  y\n  y\n"]
    {
        assert!(shown.contains(has), "no '{has}': {shown}");
    }
    assert_eq!(shown.matches("exit status: 3: it was mine").count(), 1, "{shown}");
}

fn stopped_and_killed(world: &World, hosts: &str) {
    let started = |out: &str| {
        let mut command = world.run("own.toml", hosts, out);
        command.args(["--set", "duration=20s"]);
        let child = command.spawn().expect("it starts");
        world.wait_for_agents(2);
        let began = Instant::now();
        // Two of the receiver, and then one of the sender: packets pass.
        while world.ending_with(SLEEPS).len() < 3 {
            assert!(began.elapsed() < Duration::from_secs(20), "the programs do not run");
            std::thread::sleep(Duration::from_millis(20));
        }
        // The warm-up is over.
        std::thread::sleep(Duration::from_millis(700));
        assert_eq!(["server", "client"].map(|host| world.devices(host)), [1, 1]);
        child
    };
    let finished = |child: Child| {
        let output = child.wait_with_output().expect("it ends");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.code(), said)
    };
    let kill = |signal: &str, pid: u32| {
        let status = Command::new("kill").args([signal, &pid.to_string()]).status();
        assert!(status.expect("it starts").success());
    };

    let child = started("stopped");
    kill("-INT", child_of(child.id()));
    let (code, said) = finished(child);
    assert_eq!(code, Some(3), "{said}");
    assert!(said.contains("what run 0 measured in its first "), "{said}");
    world.is_clean();

    let child = started("killed");
    kill("-KILL", child_of(child.id()));
    finished(child);
    world.is_clean();

    let child = started("dead");
    kill("-KILL", world.agents()[0]);
    let (code, said) = finished(child);
    assert_eq!(code, Some(1), "{said}");
    // Whether or not flows of the other have noticed before.
    assert!(said.contains("192.168.") && said.contains("the connection is lost"), "{said}");
    world.is_clean();
}
