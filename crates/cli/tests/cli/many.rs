//! Studies of many scenarios: what they take in memory, and what their report leaves out.

use std::process::{Command, Stdio};

use crate::scratch::{PROGRAM, STUDY, Scratch};

/// 300 rates and as many round-trip times.
fn wide() -> Scratch {
    let list = |unit: &str, from: u32| -> String {
        (from..from + 300).map(|value| format!("\"{value}{unit}\", ")).collect()
    };
    let factors = format!(
        "[factors]\n\"path.rate\" = [{}]\n\"path.rtt\" = [{}]\n",
        list("kbps", 1000),
        list("ms", 10)
    );
    let old = "[factors]\n\"path.queue\" = [\"pfifo limit 50\", \"fq_codel\"]\n";
    let scratch = Scratch::new();
    scratch.study_with(old, &factors);
    scratch
}

/// Scenarios are built one by one, and what is printed is written as it comes. All of them at once take
/// more than half a gigabyte.
#[cfg(target_os = "linux")]
#[test]
fn a_dry_run_of_ninety_thousand_scenarios_takes_little_memory() {
    let scratch = wide();
    // KiB of addresses, of which the program's own code and its threads' stacks are a part.
    let limited = format!("ulimit -v 300000 && exec {PROGRAM} run study.toml --seeds 1 --dry-run");
    let ended = Command::new("sh")
        .args(["-c", &limited])
        .current_dir(scratch.path(""))
        .stdin(Stdio::null())
        .output()
        .expect("there is a shell");
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success(), "{said}");
    let printed = String::from_utf8_lossy(&ended.stdout);
    assert_eq!(printed.lines().filter(|line| line.contains("rate = ")).count(), 90_000);
    assert!(printed.contains("90000 scenarios × 1 seed = 90000 runs"));
    assert!(STUDY.contains("seeds = 3"), "the option replaces them");
}
