//! Kills and full disks: what was finished stays readable, and the next start goes on.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use crate::scratch::{Ended, PROGRAM, Scratch};

/// Runs long enough to be interrupted, one after the other.
const SLOWLY: [&str; 10] = [
    "run",
    "study.toml",
    "--set",
    "path.rate=1gbps",
    "--set",
    "path.queue=[\"pfifo limit 1000\", \"fq_codel\"]",
    "--shorten",
    "2s",
    "--jobs",
    "1",
];

fn slowly(out: &'static str) -> Vec<&'static str> {
    [&SLOWLY[..], &["--seeds", "5", "--out", out]].concat()
}

/// Interrupts a study that writes to `out`. On a busy machine it may end before the signal comes;
/// then it begins anew.
fn interrupt(scratch: &Scratch, out: &'static str, signal: &str) {
    let is_interrupted = (0..20).any(|_| {
        let is_interrupted = was_interrupted(scratch, &slowly(out), signal);
        if !is_interrupted {
            std::fs::remove_dir_all(scratch.path(out)).expect("it was written");
        }
        is_interrupted
    });
    assert!(is_interrupted, "it always ended before the signal came");
}

/// Sends a signal after the first finished run; true if it came before the end.
fn was_interrupted(scratch: &Scratch, words: &[&str], signal: &str) -> bool {
    let mut child = scratch
        .command(words)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let stderr = BufReader::new(child.stderr.take().expect("it is piped"));
    let is_first = |line: &String| line.ends_with(" of 10 runs");
    let first = stderr.lines().map_while(Result::ok).find(is_first);
    assert!(first.is_some(), "no run ended");
    // Nobody has waited for the process yet, so no other one can have its number.
    let sent = Command::new("kill").args([signal, &child.id().to_string()]).status();
    assert!(sent.expect("there is a kill").success());
    child.wait().expect("it was started").code().is_none()
}

#[test]
fn a_killed_study_goes_on_where_it_stopped() {
    let scratch = Scratch::new();
    scratch.must(&slowly("whole"));
    // Ctrl-C's signal does what this one does, but shells have their background jobs ignore it.
    for (signal, out) in [("-KILL", "killed"), ("-TERM", "stopped")] {
        interrupt(&scratch, out, signal);

        let shown = scratch.must(&["show", out, "--format", "json"]).json();
        let shown = shown.as_array().expect("rows");
        assert!(!shown.is_empty(), "what was finished is not readable");
        assert!(scratch.must(&["show", out]).stdout.contains("of them not done"));
        scratch.must(&["report", out]);

        let again = scratch.must(&[&slowly(out)[..], &["--format", "json"]].concat()).json();
        let runs = &again["runs"];
        assert_eq!(runs["done"], 10);
        let resumed = runs["resumed"].as_u64().expect("a number");
        assert!((1..10).contains(&resumed), "{resumed} runs were taken over");
        scratch.assert_same_results("whole", out);
    }
}

#[test]
fn another_number_of_threads_may_go_on() {
    let scratch = Scratch::new();
    scratch.must(&slowly("whole"));
    interrupt(&scratch, "killed", "-KILL");
    let mut words = slowly("killed");
    let jobs = words.iter().position(|word| *word == "--jobs").expect("it is given");
    words[jobs + 1] = "3";
    scratch.must(&words);
    scratch.assert_same_results("whole", "killed");
}

#[test]
fn what_is_finished_is_not_run_again() {
    let scratch = Scratch::new();
    scratch.must(&["run", "study.toml", "--out", "out"]);
    let again = scratch.must(&["run", "study.toml", "--out", "out", "--format", "json"]).json();
    assert_eq!(again["runs"]["resumed"], 6);
}

#[test]
fn claims_can_be_changed_without_running_again() {
    let scratch = Scratch::new();
    scratch.must(&["run", "study.toml", "--out", "out"]);
    scratch.study_with("> 5 Mbps", "> 50 Mbps");
    let ended = scratch.sojourn(&["run", "study.toml", "--out", "out", "--format", "json"]);
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    assert_eq!(ended.json()["runs"]["resumed"], 6);
    assert_eq!(ended.json()["claims"][0]["verdict"], "fails");
}

/// Limits the size of files to this many blocks, which has the effect of a full disk for any user
/// and file system.
fn with_little_room(scratch: &Scratch, blocks: u32, words: &[&str]) -> Ended {
    let script = format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$@\"");
    let output = Command::new("sh")
        .args(["-c", &script, "sh", PROGRAM])
        .args(words)
        .current_dir(scratch.path(""))
        .stdin(Stdio::null())
        .output();
    Ended::of(output.expect("there is a shell"))
}

#[test]
fn a_full_disk_leaves_what_was_finished() {
    let scratch = Scratch::new();
    scratch.must(&["run", "study.toml", "--out", "whole"]);
    let words = ["run", "study.toml", "--out", "full", "--jobs", "1"];

    // Room for the plan and a few runs; the journal of all runs is larger.
    let plan = std::fs::metadata(scratch.path("whole/plan.json")).expect("it is there").len();
    let mut stopped = None;
    for kib in (plan / 1024 + 2)..(plan / 1024 + 200) {
        // A block is 512 bytes in POSIX and 1024 in some shells; the number suits both.
        let _ = std::fs::remove_dir_all(scratch.path("full"));
        let ended = with_little_room(&scratch, kib as u32, &words);
        if ended.code == Some(0) {
            break;
        }
        assert_eq!(ended.code, Some(3), "{}{}", ended.stdout, ended.stderr);
        if ended.stderr.contains("runs are finished and kept") && !ended.stderr.contains(" 0 runs")
        {
            stopped = Some(ended);
            break;
        }
    }
    let stopped = stopped.expect("there is a size at which some runs fit and others do not");
    assert!(stopped.stderr.contains("full/journal.bin"), "{}", stopped.stderr);
    let shown = scratch.must(&["show", "full", "--format", "json"]).json();
    assert!(!shown.as_array().expect("rows").is_empty());

    let again = scratch.must(&[&words[..], &["--format", "json"]].concat()).json();
    assert!(again["runs"]["resumed"].as_u64().expect("a number") > 0);
    scratch.assert_same_results("whole", "full");
}

#[test]
fn standard_output_that_cannot_be_written_is_no_success() {
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full");
    let Ok(full) = full else { return };
    let scratch = Scratch::new();
    let output = scratch.command(["list"]).stdout(full).output().expect("the program starts");
    assert_eq!(output.status.code(), Some(3));
}

#[test]
fn a_closed_pipe_is_no_error() {
    let scratch = Scratch::new();
    let mut child = scratch
        .command(["list", "--format", "json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("it was started");
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}

#[test]
fn a_damaged_folder_is_refused_by_all_that_read_it() {
    let scratch = Scratch::new();
    scratch.must(&["run", "study.toml", "--out", "out"]);
    scratch.must(&["run", "study.toml", "--out", "sound"]);
    let whole = std::fs::read(scratch.path("out/delays.parquet")).expect("it is there");
    for name in ["plan.json", "runs.parquet", "series.parquet", "claims.json", "study.toml"] {
        let path = scratch.path("out").join(name);
        let good = std::fs::read(&path).expect("it is there");
        let mut bad = good.clone();
        bad[good.len() / 2] ^= 4;
        std::fs::write(&path, bad).expect("it can be written");
        for words in [
            &["report", "out"][..],
            &["show", "out", "0"],
            &["compare", "sound", "out"],
            &["export", "out", "0", "--format", "csv"],
            &["join", "out", "--out", "joined"],
            &["run", "study.toml", "--out", "out"],
        ] {
            if name == "series.parquet" && words[0] == "compare" {
                // `compare` reads no series.
                continue;
            }
            if matches!(name, "claims.json" | "study.toml") && words[0] == "run" {
                // `run` writes them again.
                continue;
            }
            let ended = scratch.sojourn(words);
            assert_eq!(ended.code, Some(2), "{words:?} {name}: {}", ended.stderr);
            let said = format!("{name}: damaged: its SHA-256 is not");
            assert!(ended.stderr.contains(&said), "{words:?} {name}: {}", ended.stderr);
        }
        std::fs::write(&path, good).expect("it can be written");
    }
    assert_eq!(std::fs::read(scratch.path("out/delays.parquet")).ok(), Some(whole));
    // `sha256sum` finds the same.
    let mut check = std::process::Command::new("sha256sum");
    let ended = check.args(["--check", "--quiet", "SHA256SUMS"]).current_dir(scratch.path("out"));
    if let Ok(ended) = ended.status() {
        assert!(ended.success());
    }
}

#[test]
fn a_folder_of_an_older_version_is_read_with_a_warning() {
    let scratch = Scratch::new();
    scratch.must(&["run", "study.toml", "--out", "out"]);
    std::fs::remove_file(scratch.path("out/SHA256SUMS")).expect("it is there");
    let ended = scratch.must(&["show", "out"]);
    assert!(ended.stderr.contains("without checksums"), "{}", ended.stderr);
    // The same command writes them.
    scratch.must(&["run", "study.toml", "--out", "out"]);
    assert_eq!(scratch.must(&["show", "out"]).stderr, "");
}
