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

/// Runs the command with so little memory that what it prints does not fit: 300 000 KiB of addresses, of which the
/// program's own code and its threads' stacks are a part.
#[cfg(target_os = "linux")]
fn limited(scratch: &Scratch, words: &str) -> std::process::Output {
    let limited = format!("ulimit -v 300000 && exec {PROGRAM} {words}");
    Command::new("sh")
        .args(["-c", &limited])
        .current_dir(scratch.path(""))
        .stdin(Stdio::null())
        .output()
        .expect("there is a shell")
}

/// Scenarios are built one by one, and what is printed is written as it comes. All of them at once take
/// more than half a gigabyte.
#[cfg(target_os = "linux")]
#[test]
fn a_dry_run_of_ninety_thousand_scenarios_takes_little_memory() {
    let scratch = wide();
    let ended = limited(&scratch, "run study.toml --seeds 1 --dry-run");
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success(), "{said}");
    let printed = String::from_utf8_lossy(&ended.stdout);
    assert_eq!(printed.lines().filter(|line| line.contains("rate = ")).count(), 90_000);
    assert!(printed.contains("90000 scenarios × 1 seed = 90000 runs"));
    assert!(STUDY.contains("seeds = 3"), "the option replaces them");
}

/// A run of so many pings.
fn crowd(flows: u32) -> Scratch {
    let scratch = Scratch::new();
    let study = format!(
        "schema = 1\ntitle = \"A crowd\"\n[scenario]\nduration = \"100ms\"\n[scenario.path]\nrate = \"100Mbps\"\n\
         rtt = \"20ms\"\nqueue = \"pfifo limit 50\"\n[[scenario.flow]]\nname = \"p\"\napp = \"ping\"\ncount = {flows}\n"
    );
    scratch.write("study.toml", &study);
    scratch.must(&["run", "study.toml", "--out", "out", "--no-report"]);
    scratch
}

/// Rows are made as they are printed. All of them at once take half a gigabyte.
#[cfg(target_os = "linux")]
#[test]
fn the_rows_of_five_thousand_flows_are_shown_with_little_memory() {
    let scratch = crowd(5_000);
    for format in ["csv", "json"] {
        let ended = limited(&scratch, &format!("show out --format {format}"));
        assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
        let printed = String::from_utf8_lossy(&ended.stdout);
        assert!(printed.contains("p.5000"), "{format}");
    }
}

#[test]
fn a_run_of_many_flows_is_shown_up_to_three_hundred_lines() {
    let scratch = crowd(400);
    let shown = scratch.must(&["show", "out"]).stdout;
    assert!(shown.contains("scenario  p "), "{shown}");
    let shown = scratch.must(&["show", "out", "0"]).stdout;
    let has = |text: &str, row: &str| text.lines().any(|line| line.split(' ').next() == Some(row));
    assert!(has(&shown, "p.300") && !has(&shown, "p.301"), "{shown}");
    assert!(shown.contains("\nof 400 flows "), "{shown}");
    assert!(shown.contains("\n100 flows more are not listed: --all lists all\n"), "{shown}");
    let all = scratch.must(&["show", "out", "0", "--all"]).stdout;
    assert!(has(&all, "p.400") && !all.contains("not listed"), "{all}");
}

#[test]
fn three_hundred_of_many_named_flows_are_listed() {
    for (count, lines, more) in [
        ("", "301 flows", "1 flow more"),
        ("count = 3\n", "301 groups of 303 flows", "1 group of 3 flows more"),
    ] {
        let scratch = Scratch::new();
        let mut study =
            "schema = 1\ntitle = \"A crowd\"\n[scenario]\nduration = \"100ms\"\n[scenario.path]\n\
                         rate = \"100Mbps\"\nrtt = \"20ms\"\nqueue = \"pfifo limit 50\"\n"
                .to_owned();
        for flow in 1..=301 {
            study += &format!("[[scenario.flow]]\nname = \"p{flow}\"\napp = \"ping\"\n");
        }
        scratch.write("study.toml", &(study + count));
        let run = scratch.must(&["run", "study.toml", "--out", "out", "--no-report"]).stdout;
        let shown = scratch.must(&["show", "out"]).stdout;
        let note = format!("\n{more} is not listed: 'sojourn show out --all' lists all\n");
        for listed in [&run, &shown] {
            let line = |flow: u32| format!("\nthe scenario  p{flow} ");
            assert!(listed.contains(&line(300)) && !listed.contains(&line(301)), "{listed}");
            assert!(listed.contains(&note), "{listed}");
            // It waits for all fifty others in the queue; those behind it are lost.
            let longest = listed.lines().find(|line| line.starts_with("ping_p50_ms ")).unwrap();
            assert_eq!(longest.split_whitespace().nth(2), Some("p51"), "{listed}");
        }
        let all = scratch.must(&["show", "out", "--all"]).stdout;
        assert!(all.contains(" p301 ") && !all.contains("not listed"), "{all}");
        let asked = scratch.must(&["show", "out", "-m", "ping_p50"]).stdout;
        assert!(asked.contains("\np300 ") && !asked.contains("\np301 "), "{asked}");
        assert!(asked.contains(&format!("\nof {lines} ")) && asked.contains(&note), "{asked}");
        let all = scratch.must(&["show", "out", "-m", "ping_p50", "--all"]).stdout;
        assert!(all.contains("\np301 ") && !all.contains("not listed"), "{all}");
    }
}
