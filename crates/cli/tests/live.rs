//! What live runs leave behind when they are killed, and how their command ends. They need the right to make networks;
//! where that is missing, each test says so and does nothing.

#![cfg(target_os = "linux")]

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

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
seeds = 4
"#;

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
fn twenty_kills_leave_nothing_and_finished_runs_stay() {
    let scratch = tempfile::tempdir().expect("there is room");
    let folder = scratch.path();
    std::fs::write(folder.join("t.toml"), STUDY).expect("it can be written");
    if !can_run(folder) {
        return;
    }
    let before = leavings();
    let words = ["run", "t.toml", "--engine", "live", "--out", "out", "-q"];
    for kill in 0..20_u64 {
        let mut child = sojourn(folder, &words).spawn().expect("it starts");
        // Different moments: before there are hosts, in the middle of a run, between two.
        std::thread::sleep(Duration::from_millis(20 + kill * 67));
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
fn a_command_in_a_host_reaches_the_others_through_the_links() {
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
