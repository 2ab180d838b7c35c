//! Calls that are recorded and replayed.

use crate::scratch::Scratch;

const CALL: &str = r#"schema = 1
title  = "A call and a download"

[scenario]
duration = "20s"

[scenario.path]
rate  = "2Mbps"
rtt   = "40ms"
queue = "pfifo limit 50"

[[scenario.flow]]
name = "talk"
app  = "call"
audio = "opus"
start = "100ms"
start_jitter = "50ms"
stop = "15s"

[[scenario.flow]]
name = "load"
app  = "bulk"
cca  = "cubic"
start = "5s"
stop  = "10s"

[factors]
"flow.talk.control" = ["gcc", "gcc-draft", "aiortc", "nada", "scream", "scream-v2", "fixed rate=1mbit"]

[repeat]
seeds = 1
"#;

/// What the replay of a run through its own controller says, which decides the same.
fn replayed_the_same(scratch: &Scratch, run: &str, control: &str) -> serde_json::Value {
    scratch.must(&["export", "out", run, "--format", "call", "--out", "call.jsonl"]);
    let words = ["replay", "call.jsonl", "--controller", control, "--format", "json"];
    let json = scratch.must(&words).json();
    assert_eq!(json["differs_s"], serde_json::Value::Null, "{control}: {json}");
    assert_eq!(json["replayed_decisions"], json["original_decisions"], "{control}");
    json
}

#[test]
fn a_call_replayed_through_its_own_controller_decides_the_same() {
    let scratch = Scratch::new();
    scratch.write("call.toml", CALL);
    scratch.must(&["run", "call.toml", "--out", "out", "--no-report"]);
    for (run, control) in
        ["gcc", "gcc-draft", "aiortc", "nada", "scream", "scream-v2"].iter().enumerate()
    {
        let json = replayed_the_same(&scratch, &run.to_string(), control);
        assert_eq!(json["decisions_same"], json["original_decisions"], "{control}");
        assert!(json["original_decisions"].as_u64() > Some(20), "{control}: {json}");
        assert_eq!(json["mean_ratio"], 1.0, "{control}");
        assert_eq!(json["original"], *control);
    }
}

/// Beside a download in a long queue, `gcc` leaves out frames.
const BESIDE_A_DOWNLOAD: &str = r#"schema = 1
title  = "A call beside a download"
repeat = { seeds = 1 }
[scenario]
duration = "40s"
path = { rate = "20Mbps", rtt = "40ms", queue = "pfifo limit 1000" }
flow = [
    { name = "talk", app = "call", audio = "opus", max_rate = "1500kbit", stop = "39s" },
    { name = "download", app = "bulk", cca = "cubic", start = "5s", start_jitter = "100ms" },
]
"#;

/// `gcc` looks at its congestion window at each capture, which changes what it decides.
#[test]
fn a_call_of_which_frames_are_left_out_is_replayed_the_same() {
    let scratch = Scratch::new();
    scratch.write("call.toml", BESIDE_A_DOWNLOAD);
    scratch.must(&["run", "call.toml", "--out", "out", "--no-report"]);
    replayed_the_same(&scratch, "0", "gcc");
}

#[test]
fn another_controller_decides_otherwise_and_the_table_says_from_when_on() {
    let scratch = Scratch::new();
    scratch.write("call.toml", CALL);
    let set = "flow.talk.control=gcc";
    scratch.must(&["run", "call.toml", "--set", set, "--out", "out", "--no-report"]);
    scratch.must(&[
        "export",
        "out",
        "0",
        "--format",
        "call",
        "--flow",
        "talk",
        "--out",
        "call.jsonl",
    ]);
    for control in ["gcc beta=0.5", "nada", "aiortc", "fixed rate=1mbit"] {
        let json =
            scratch.must(&["replay", "call.jsonl", "-c", control, "--format", "json"]).json();
        assert!(json["differs_s"].as_f64().is_some(), "{control}");
        let steps = json["steps"].as_array().expect("steps");
        assert!((15..=16).contains(&steps.len()), "{}", steps.len());
    }
    let table =
        scratch.must(&["replay", "call.jsonl", "-c", "fixed rate=1mbit", "--step", "5s"]).stdout;
    assert!(table.contains("decided by gcc"), "{table}");
    assert!(table.contains("fixed rate=1mbit decides 1000 kbit/s on average"), "{table}");
    let csv = scratch.must(&["replay", "call.jsonl", "-c", "gcc", "--format", "csv"]).csv();
    assert!(csv[0].contains(&"replayed_target_bps".to_owned()));

    let ended = scratch.sojourn(&["replay", "call.jsonl", "-c", "gxc"]);
    assert_eq!(ended.code, Some(2));
    assert!(ended.stderr.contains("--controller gxc"), "{}", ended.stderr);
    let ended = scratch.sojourn(&["replay", "call.toml", "-c", "gcc"]);
    assert_eq!(ended.code, Some(2));
    assert!(ended.stderr.contains("call.toml: line 1: is no JSON"), "{}", ended.stderr);
    let ended = scratch.sojourn(&["export", "out", "0", "--format", "call", "--flow", "talc"]);
    assert!(ended.stderr.contains("'talk'"), "{}", ended.stderr);
    let ended = scratch.sojourn(&["export", "out", "0", "--format", "call", "--flow", "load"]);
    assert!(ended.stderr.contains("is no call of this run"), "{}", ended.stderr);
}
