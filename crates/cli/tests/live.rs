//! What live runs leave behind when they are stopped or killed, to whom a user's own programs belong, and how the command ends. They need the right to make networks;
//! where that is missing, each test says so and does nothing.

#![cfg(target_os = "linux")]

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::net::{AddressFamily, SocketType, connect, socket, sockopt};

const STUDY: &str = r#"
schema = 1
title = "killed"
[scenario]
duration = "1s"
path = { rate = "10Mbps", rtt = "20ms", queue = "pfifo limit 50" }
[[scenario.flow]]
name = "bulk"
app = "bulk"
cca = "cubic-linux"
[repeat]
seeds = 2
"#;

/// Programs that don't end when they are asked to.
const OWN: &str = r#"
[[scenario.flow]]
name = "own"
app = "exec"
sender = "sleep 1000 & trap '' TERM; sleep 2000"
grace = "0s"
"#;

/// Holds what a machine has only once while a test runs.
static MACHINE: Mutex<()> = Mutex::new(());

fn sojourn(folder: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sojourn"));
    command.current_dir(folder).args(words).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn output(folder: &Path, words: &[&str]) -> Output {
    sojourn(folder, words).output().expect("it starts")
}

fn can_run(folder: &Path) -> bool {
    let doctor = output(folder, &["doctor", "--live", "-q"]);
    let can = doctor.status.success();
    if !can {
        eprintln!("skipped: {}", String::from_utf8_lossy(&doctor.stderr));
    }
    can
}

/// Namespaces that a process is in, names of devices, and mounts.
fn leavings() -> [BTreeSet<String>; 3] {
    let processes = std::fs::read_dir("/proc").expect("it is there").flatten();
    let namespaces = processes.filter_map(|process| {
        let link = std::fs::read_link(process.path().join("ns/net")).ok()?;
        Some(link.display().to_string())
    });
    let devices = std::fs::read_to_string("/proc/net/dev").expect("it is there");
    let devices =
        devices.lines().filter_map(|line| Some(line.split_once(':')?.0.trim().to_owned()));
    let mounts = std::fs::read_to_string("/proc/mounts").expect("it is there");
    [namespaces.collect(), devices.collect(), mounts.lines().map(str::to_owned).collect()]
}

#[test]
fn kills_leave_nothing_and_finished_runs_stay() {
    let _machine = MACHINE.lock().unwrap_or_else(PoisonError::into_inner);
    let scratch = tempfile::tempdir().expect("there is room");
    let folder = scratch.path();
    std::fs::write(folder.join("t.toml"), format!("{STUDY}{OWN}")).expect("it can be written");
    if !can_run(folder) {
        return;
    }
    let before = leavings();
    let words = ["run", "t.toml", "--engine", "live", "--out", "out", "-q"];
    // KILLS=100 makes it more.
    let kills = std::env::var("KILLS").ok().and_then(|kills| kills.parse().ok()).unwrap_or(12_u64);
    for kill in 0..kills {
        let mut child = sojourn(folder, &words).spawn().expect("it starts");
        // Different moments: before there are hosts, in the middle of a run, between two.
        std::thread::sleep(Duration::from_millis(20 + kill * 389 % 1400));
        let _ = child.kill();
        child.wait().expect("it ends");
    }
    // The kernel takes networks apart after the process is gone.
    let is_clean = || leavings().iter().zip(&before).all(|(now, before)| now.is_subset(before));
    let waits = (0..50).take_while(|_| !is_clean()).map(|_| {
        std::thread::sleep(Duration::from_millis(100));
    });
    assert!(waits.count() < 50, "left: {:?}\nbefore: {before:?}", leavings());
    let done = output(folder, &words);
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let shown = output(folder, &["show", "out", "-m", "goodput"]);
    assert!(shown.status.success(), "{}", String::from_utf8_lossy(&shown.stderr));
}

#[test]
fn ctrl_c_keeps_what_is_finished_and_the_same_command_goes_on() {
    let _machine = MACHINE.lock().unwrap_or_else(PoisonError::into_inner);
    let scratch = tempfile::tempdir().expect("there is room");
    let folder = scratch.path();
    let longer = STUDY.replace("duration = \"1s\"", "duration = \"3s\"");
    std::fs::write(folder.join("t.toml"), format!("{longer}{OWN}")).expect("it can be written");
    if !can_run(folder) {
        return;
    }
    let words = ["run", "t.toml", "--engine", "live", "--out", "out"];
    let mut child = sojourn(folder, &words).spawn().expect("it starts");
    let mut lines = BufReader::new(child.stderr.take().expect("it is a pipe"));
    let mut line = String::new();
    while !line.contains("1 of 2 runs") {
        line.clear();
        assert!(lines.read_line(&mut line).expect("it is text") > 0, "it ended early");
    }
    // In the middle of the second.
    std::thread::sleep(Duration::from_millis(500));
    let asked = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(asked.expect("it starts").success());
    let status = child.wait().expect("it ends");
    let mut rest = String::new();
    lines.read_to_string(&mut rest).expect("it is text");
    assert_eq!(status.code(), Some(3), "{rest}");
    assert!(rest.contains("1 of 2 runs are finished and kept"), "{rest}");
    let show = |results: &str| {
        let shown = output(folder, &["show", results, "-m", "goodput"]);
        String::from_utf8_lossy(&shown.stdout).into_owned()
    };
    assert!(show("out").contains("1 of them not done"), "{}", show("out"));
    // What the second had measured until then is beside it, and is not taken for a result.
    assert!(rest.contains("what run 1 measured in its first "), "{rest}");
    assert!(show("out/stopped").contains("run 1, stopped after "), "{}", show("out/stopped"));
    let joined = output(folder, &["join", "out", "out/stopped", "--out", "both"]);
    assert_eq!(joined.status.code(), Some(2), "{joined:?}");
    let done = output(folder, &words);
    let text = String::from_utf8_lossy(&done.stdout);
    assert!(done.status.success() && text.contains("1 of them by an earlier start"), "{done:?}");
    assert!(!folder.join("out/stopped").exists());
}

#[test]
fn ctrl_c_ends_what_comes_before_a_run() {
    let _machine = MACHINE.lock().unwrap_or_else(PoisonError::into_inner);
    let scratch = tempfile::tempdir().expect("there is room");
    let folder = scratch.path();
    // It never listens, for which it has half a minute.
    let waits = "[[scenario.flow]]\nname = \"waits\"\napp = \"exec\"\nreceiver = \"touch here; sleep 2071; : {port}\"\n";
    std::fs::write(folder.join("t.toml"), format!("{STUDY}{waits}")).expect("it can be written");
    if !can_run(folder) {
        return;
    }
    let words = ["run", "t.toml", "--engine", "live", "--out", "out"];
    let mut child = sojourn(folder, &words).spawn().expect("it starts");
    let began = Instant::now();
    while !folder.join("here").exists() {
        assert!(began.elapsed() < Duration::from_secs(25), "the program does not run");
        std::thread::sleep(Duration::from_millis(20));
    }
    let asked = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(asked.expect("it starts").success());
    let mut said = String::new();
    child.stderr.take().expect("it is a pipe").read_to_string(&mut said).expect("it is text");
    assert_eq!(child.wait().expect("it ends").code(), Some(3), "{said}");
    assert!(said.contains("stopped: 0 of 2 runs are finished and kept"), "{said}");
    assert!(began.elapsed() < Duration::from_secs(25), "it went on waiting");
}

#[test]
fn under_sudo_programs_are_those_of_the_user_who_asked() {
    let _machine = MACHINE.lock().unwrap_or_else(PoisonError::into_inner);
    let scratch = tempfile::tempdir().expect("there is room");
    let folder = scratch.path();
    let own = r#"
[[scenario.flow]]
name = "own"
app = "exec"
sender = "echo is $(id -u) $(id -g) $(id -G); grep -E 'Cap(Prm|Eff|Inh|Amb)' /proc/self/status; touch in-the-way || echo not allowed"
"#;
    std::fs::write(folder.join("t.toml"), format!("{STUDY}{own}")).expect("it can be written");
    if !can_run(folder) {
        return;
    }
    if !std::fs::read_to_string("/proc/self/status").is_ok_and(|own| own.contains("\nUid:\t0\t")) {
        eprintln!("skipped: only root can become another user");
        return;
    }
    let run = sojourn(folder, &["run", "t.toml", "--engine", "live", "--out", "out", "-q"])
        .env("SUDO_UID", "65534")
        .env("SUDO_GID", "65533")
        .output()
        .expect("it starts");
    assert!(run.status.success(), "{run:?}");
    let shown = output(folder, &["show", "out", "0"]);
    let shown = String::from_utf8_lossy(&shown.stdout);
    let has = |words: &str| shown.lines().any(|line| line.split_whitespace().eq(words.split(' ')));
    assert!(has("is 65534 65533 65533"), "{shown}");
    // CAP_NET_ADMIN, and nothing else.
    for set in ["CapInh", "CapPrm", "CapEff", "CapAmb"] {
        assert!(has(&format!("{set}: 0000000000001000")), "{set}: {shown}");
    }
    assert!(has("not allowed"), "{shown}");
}

#[test]
fn a_command_in_a_host_reaches_the_others_through_the_links() {
    let _machine = MACHINE.lock().unwrap_or_else(PoisonError::into_inner);
    let scratch = tempfile::tempdir().expect("there is room");
    let folder = scratch.path();
    std::fs::write(folder.join("t.toml"), STUDY).expect("it can be written");
    if !can_run(folder) {
        return;
    }
    let shell = |script: &str| {
        output(folder, &["live", "shell", "t.toml", "-q", "--", "bash", "-c", script])
    };
    let script = "ls /sys/class/net 2>/dev/null; echo $SOJOURN_HOST $SOJOURN_ADDRESS_server";
    let answer = shell(script);
    assert!(String::from_utf8_lossy(&answer.stdout).contains("client 10.1.0.1"), "{answer:?}");
    // Nobody listens there, which takes a round trip to learn.
    let refused = shell("exec 3<>/dev/tcp/$SOJOURN_ADDRESS_server/9");
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    assert!(String::from_utf8_lossy(&refused.stderr).contains("refused"), "{refused:?}");
    let wrong = output(folder, &["live", "shell", "t.toml", "--host", "clint"]);
    assert_eq!(wrong.status.code(), Some(2), "{wrong:?}");
}

#[test]
fn what_the_machine_lacks_is_said_and_ends_with_3() {
    let _machine = MACHINE.lock().unwrap_or_else(PoisonError::into_inner);
    let scratch = tempfile::tempdir().expect("there is room");
    let folder = scratch.path();
    std::fs::write(folder.join("t.toml"), STUDY).expect("it can be written");
    if !can_run(folder) {
        return;
    }
    let words = ["run", "t.toml", "--engine", "live", "--set", "flow.bulk.cca=bbr2"];
    let ended = output(folder, &words);
    assert_eq!(ended.status.code(), Some(3), "{ended:?}");
    let problem = String::from_utf8_lossy(&ended.stderr);
    assert!(problem.contains("no congestion control 'bbr2'; it has "), "{problem}");
}

/// A connection of this machine with itself, and both ends.
fn connection_with(control: &str) -> [OwnedFd; 2] {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("there is a port");
    let at: SocketAddr = listener.local_addr().expect("it has one");
    let sender = socket(AddressFamily::INET, SocketType::STREAM, None).expect("it is made");
    sockopt::set_tcp_congestion(&sender, control).expect("it is loaded");
    connect(&sender, &at).expect("it listens");
    let (receiver, _) = listener.accept().expect("it has come");
    [sender, receiver.into()]
}

#[test]
fn controls_of_our_own_are_loaded_run_a_study_and_are_unloaded() {
    let _machine = MACHINE.lock().unwrap_or_else(PoisonError::into_inner);
    let scratch = tempfile::tempdir().expect("there is room");
    let folder = scratch.path();
    if !can_run(folder) {
        return;
    }
    let list = || {
        let list = output(folder, &["live", "cca", "list", "--format", "csv"]);
        (list.status.success(), String::from_utf8_lossy(&list.stdout).into_owned())
    };
    let (can_list, before) = list();
    let row =
        |name: &str, state: &str| format!("\n{name},{},{state},0", name.replace("-n+", "_n_plus"));
    // Whoever has loaded one wants to keep it.
    let names = ["bbr3", "bbr-n+"];
    let free: Vec<&str> =
        names.into_iter().filter(|name| before.contains(&row(name, "not loaded"))).collect();
    let has = |program: &str| Command::new(program).arg("--version").output().is_ok();
    if !can_list || free.is_empty() || !has("clang") || !has("bpftool") && !has("/usr/sbin/bpftool")
    {
        eprintln!("skipped: not root, no clang or bpftool, or loaded already: {before}");
        return;
    }
    let cca = |command: &str| {
        let words: Vec<&str> = ["live", "cca", command].into_iter().chain(free.clone()).collect();
        let done = output(folder, &words);
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        assert!(done.status.success(), "{said}");
        said
    };
    let study = STUDY.replace("seeds = 2", "seeds = 1");
    std::fs::write(folder.join("t.toml"), &study).expect("it can be written");
    let run = |name: &str, out: &str| {
        let set = format!("flow.bulk.cca={name}");
        output(folder, &["run", "t.toml", "--engine", "live", "--set", &set, "--out", out, "-q"])
    };
    for name in &free {
        let ended = run(name, "missing");
        let problem = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(3), "{problem}");
        assert!(problem.contains(&format!("sudo sojourn live cca load {name}")), "{problem}");
    }
    // A program that does nothing is named.
    for (tool, said) in [("clang", "has written nothing"), ("bpftool", "prints nothing of")] {
        let silent = folder.join(tool).join(tool);
        std::fs::create_dir(folder.join(tool)).expect("there is room");
        std::os::unix::fs::symlink("/bin/true", &silent).expect("there is room");
        let paths = std::env::var_os("PATH").unwrap_or_default();
        let paths = std::env::join_paths(
            [folder.join(tool)].into_iter().chain(std::env::split_paths(&paths)),
        );
        let refused = sojourn(folder, &["live", "cca", "load", free[0]])
            .env("PATH", paths.expect("they were joined"))
            .output()
            .expect("it starts");
        let problem = String::from_utf8_lossy(&refused.stderr);
        assert_eq!(refused.status.code(), Some(3), "{problem}");
        assert!(problem.contains(&silent.display().to_string()), "{problem}");
        assert!(problem.contains(said), "{problem}");
    }
    // Of calls at the same time one loads, and for the others it is good, too.
    let words: Vec<&str> = ["live", "cca", "load"].into_iter().chain(free.clone()).collect();
    let calls: Vec<_> =
        (0..3).map(|_| sojourn(folder, &words).spawn().expect("it starts")).collect();
    for call in calls {
        let done = call.wait_with_output().expect("it ends");
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    }
    assert!(cca("load").contains("is loaded already"), "loading once more does nothing");
    // The state of connections is that of the copy which is loaded, also while a socket keeps another.
    let kept: Vec<_> =
        free.iter().map(|name| connection_with(&name.replace("-n+", "_n_plus"))).collect();
    assert!(cca("unload").contains("one socket keeps it"));
    assert!(cca("load").contains("is loaded; "));
    for name in &free {
        assert!(list().1.contains(&row(name, "loaded")), "{}", list().1);
        let done = run(name, name);
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        let series = output(folder, &["export", name, "0", "--format", "csv"]);
        let series = String::from_utf8_lossy(&series.stdout).into_owned();
        let mut lines = series.lines();
        let head: Vec<&str> = lines.next().unwrap_or_default().split(',').collect();
        let at = |name: &str| head.iter().position(|own| *own == name).expect(name);
        let mut of_flow = lines.map(|line| line.split(',').collect::<Vec<_>>());
        let last = of_flow.rfind(|line| line[1] == "flow").expect("it has a series");
        assert!(last[at("phase")].starts_with("PROBE_BW:"), "{last:?}");
        for column in ["bw_mbps", "pacing_mbps", "min_rtt_ms", "rounds"] {
            assert!(last[at(column)].parse::<f64>().is_ok_and(|value| value > 1.0), "{last:?}");
        }
    }
    // A study's `bbr3-linux` is a kernel's own.
    if free.contains(&"bbr3") {
        let ended = run("bbr3-linux", "other");
        let problem = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(3), "{problem}");
        assert!(problem.contains("is this project's: write cca = \"bbr3\""), "{problem}");
    }
    drop(kept);
    assert!(cca("unload").contains("is unloaded"));
    assert!(cca("unload").contains("is not loaded"));
    // The kernel frees what a closed socket had a moment later.
    let waits = (0..50).take_while(|_| list().1 != before).map(|_| {
        std::thread::sleep(Duration::from_millis(100));
    });
    assert!(waits.count() < 50, "{}", list().1);
}

#[test]
fn controls_of_our_own_have_one_name() {
    let scratch = tempfile::tempdir().expect("there is room");
    for (name, said) in [("bbr4", "is named 'bbr4'"), ("bbr_n_plus", "in studies it is 'bbr-n+'")] {
        for command in ["load", "unload"] {
            let wrong = output(scratch.path(), &["live", "cca", command, name]);
            let problem = String::from_utf8_lossy(&wrong.stderr);
            assert_eq!(wrong.status.code(), Some(2), "{problem}");
            assert!(problem.contains(said), "{problem}");
        }
    }
}

#[test]
fn two_interfaces_are_shaped_and_left_as_they_were() {
    let _machine = MACHINE.lock().unwrap_or_else(PoisonError::into_inner);
    let scratch = tempfile::tempdir().expect("there is room");
    let folder = scratch.path();
    std::fs::write(folder.join("t.toml"), STUDY).expect("it can be written");
    let has = |program: &str| Command::new(program).arg("-V").output().is_ok();
    if !can_run(folder) {
        return;
    }
    if !has("ip") || !has("unshare") || !has("ping") {
        eprintln!("skipped: no ip, unshare or ping");
        return;
    }
    // Three networks in a row, the middle one with nothing but the two interfaces; each of the outer ones lives as long as its process.
    let script = r#"
        set -e
        unshare -n sleep 60 & a=$!
        unshare -n sleep 60 & b=$!
        trap 'kill $a $b' EXIT
        sleep 0.3
        for end in a b; do
            pid=$(eval echo \$$end)
            ip link add to-$end type veth peer name eth0 netns $pid
            ip link set to-$end up
            nsenter --net=/proc/$pid/ns/net ip link set eth0 up
        done
        nsenter --net=/proc/$a/ns/net ip address add 10.9.0.1/24 dev eth0
        nsenter --net=/proc/$b/ns/net ip address add 10.9.0.2/24 dev eth0
        before=$(ip -o link)
        "$SOJOURN" live attach t.toml to-a to-b & s=$!
        sleep 1
        nsenter --net=/proc/$a/ns/net ping -c 10 -i 0.2 10.9.0.2
        kill -INT $s
        wait $s
        test "$before" = "$(ip -o link)"
    "#;
    let ended = Command::new("unshare")
        .args(["-n", "bash", "-c", script])
        .env("SOJOURN", env!("CARGO_BIN_EXE_sojourn"))
        .current_dir(folder)
        .output()
        .expect("it starts");
    let [out, problems] = [&ended.stdout, &ended.stderr].map(|text| String::from_utf8_lossy(text));
    assert!(ended.status.success(), "{out}\n{problems}");
    // The links take 20 ms there and back.
    let times = out.lines().find_map(|line| line.strip_prefix("rtt min/avg/max/mdev = "));
    let least: f64 =
        times.and_then(|times| times.split('/').next()?.parse().ok()).expect("ping's summary");
    assert!((20.0..30.0).contains(&least), "{out}");
    assert!(problems.contains("queue: pfifo: sent "), "{problems}");
}
