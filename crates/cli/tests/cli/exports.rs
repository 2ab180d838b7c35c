//! Results compared with each other, and in the formats of other tools.

use crate::scratch::Scratch;

#[test]
fn a_folder_is_the_same_as_itself() {
    let scratch = Scratch::new();
    scratch.must(&["run", "study.toml", "--out", "one"]);
    scratch.must(&["run", "study.toml", "--out", "two"]);
    let json = scratch.must(&["compare", "one", "two", "--format", "json"]).json();
    assert_eq!(json["paired"], 6);
    assert_eq!(json["identical"], 6);
    let changes = json["changes"].as_array().expect("rows");
    assert!(!changes.is_empty());
    assert!(changes.iter().all(|change| change["judgement"] == "the same"));
}

#[test]
fn what_became_worse_ends_with_1() {
    let scratch = Scratch::new();
    scratch.must(&["run", "study.toml", "--out", "before"]);
    scratch.sojourn(&["run", "study.toml", "--set", "path.rate=4mbps", "--out", "after"]);
    let words = ["compare", "before", "after"];
    let ended = scratch.sojourn(&[&words[..], &["--html", "page.html"]].concat());
    assert_eq!(ended.code, Some(1), "{}{}", ended.stdout, ended.stderr);
    assert!(ended.stdout.contains("goodput"), "{}", ended.stdout);
    assert!(scratch.read("page.html").starts_with("<!doctype html>"));

    let tolerant = scratch.sojourn(&[&words[..], &["--tolerance", "100000%"]].concat());
    assert_eq!(tolerant.code, Some(0), "{}", tolerant.stdout);

    let rows = scratch.sojourn(&[&words[..], &["--format", "csv"]].concat()).csv();
    let column = |name: &str| rows[0].iter().position(|head| head == name).expect("a column");
    let (judgement, metric) = (column("judgement"), column("metric"));
    let is_worse = |row: &Vec<String>| row[judgement] == "worse" && row[metric] == "goodput_mbps";
    assert!(rows.iter().any(is_worse), "{rows:?}");
}

#[test]
fn one_run_of_each_says_that_nothing_tells_what_is_chance() {
    let scratch = Scratch::new();
    scratch.must(&["run", "study.toml", "--seeds", "1", "--out", "before"]);
    let slower = ["--set", "path.rate=4mbps", "--seeds", "1", "--out", "after"];
    scratch.sojourn(&[&["run", "study.toml"][..], &slower].concat());
    let ended = scratch.sojourn(&["compare", "before", "after"]);
    assert_eq!(ended.code, Some(1), "{}{}", ended.stdout, ended.stderr);
    assert!(ended.stdout.contains("nothing tells how much of that is chance"), "{}", ended.stdout);
    assert!(!ended.stdout.contains("Nothing changed"), "{}", ended.stdout);
    let faster = scratch.sojourn(&["compare", "after", "before", "--format", "json"]);
    assert!(faster.stdout.contains("of one run"), "{}", faster.stdout);
}

#[test]
fn folders_without_a_seed_in_common_are_compared_as_two_samples() {
    let scratch = Scratch::new();
    scratch.must(&["run", "study.toml", "--seeds", "1,2,3", "--out", "before"]);
    scratch.must(&["run", "study.toml", "--seeds", "4,5,6", "--out", "after"]);
    let ended = scratch.sojourn(&["compare", "before", "after"]);
    assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
    assert!(ended.stdout.contains("compared as two samples"), "{}", ended.stdout);
}

#[test]
fn folders_of_two_studies_are_refused_unless_they_are_alike() {
    let scratch = Scratch::new();
    scratch.must(&["run", "study.toml", "--out", "one"]);
    let other = scratch.read("study.toml");
    let title = other.lines().find(|line| line.starts_with("title")).expect("a title");
    let other = other.replace(title, "title = \"another\"");
    scratch.write("other.toml", &other);
    scratch.must(&["run", "other.toml", "--out", "alike"]);
    scratch.must(&["compare", "one", "alike"]);
    scratch.write(
        "other.toml",
        &format!("{other}\n").replace("[factors]", "[factors]\nduration = [\"2s\"]"),
    );
    scratch.must(&["run", "other.toml", "--out", "varied"]);
    let ended = scratch.sojourn(&["compare", "one", "varied"]);
    assert_eq!(ended.code, Some(2), "{}", ended.stdout);
    assert!(ended.stderr.contains("don't vary the same factors"), "{}", ended.stderr);
    scratch.write("alone.toml", UP_AND_DOWN);
    scratch.must(&["run", "alone.toml", "--out", "alone"]);
    let ended = scratch.sojourn(&["compare", "one", "alone"]);
    assert_eq!(ended.code, Some(2), "{}", ended.stdout);
    assert!(ended.stderr.contains("no flow of the same name"), "{}", ended.stderr);
}

/// A flow each way, and requests.
const UP_AND_DOWN: &str = r#"
schema = 1
title = "up and down"
[scenario]
duration = "2s"
path = { rate = "10Mbps", reverse_rate = "2Mbps", rtt = "20ms", queue = "fq_codel" }
[[scenario.flow]]
name = "fetch"
app = "bulk"
[[scenario.flow]]
name = "push"
app = "bulk"
direction = "up"
[[scenario.flow]]
name = "page"
app = "requests"
bytes = "100kB"
requests = 5
"#;

#[test]
fn other_tools_see_directions_from_the_client() {
    let scratch = Scratch::new();
    scratch.write("alone.toml", UP_AND_DOWN);
    scratch.must(&["run", "alone.toml", "--out", "out"]);
    let json = scratch.must(&["export", "out", "--format", "iperf3-json"]).json();
    let end = &json["end"];
    let streams = end["streams"].as_array().expect("streams");
    let bytes = |at: usize| streams[at]["receiver"]["bytes"].as_u64().expect("a whole number");
    assert_eq!(end["sum_sent"]["bytes"].as_u64(), Some(bytes(1)), "{end}");
    let received = &end["sum_received_bidir_reverse"];
    assert_eq!(received["bytes"].as_u64(), Some(bytes(0) + bytes(2)), "{end}");
    assert_eq!((&received["sender"], received.get("retransmits")), (&false.into(), None), "{end}");
    assert!(end["sum_sent"]["retransmits"].is_u64(), "{end}");
    assert_eq!(json["start"]["test_start"]["bidir"], 1);
    assert!(json["intervals"][0]["sum_bidir_reverse"]["bytes"].is_u64(), "{}", json["intervals"]);
    assert!(!json.to_string().contains("-0.0"));

    scratch.must(&["run", "study.toml", "--out", "down"]);
    let json = scratch.must(&["export", "down", "1", "--format", "iperf3-json"]).json();
    assert_eq!(json["start"]["test_start"]["reverse"], 1);
    assert!(json["end"].get("sum_sent_bidir_reverse").is_none(), "{}", json["end"]);
}

/// With `--omit` intervals of the warm-up are there, what is left is an interval of its own, and totals are of what is not omitted.
#[test]
fn intervals_of_iperf3_add_up_to_what_was_transferred() {
    let scratch = Scratch::new();
    let study = UP_AND_DOWN.split("[[scenario.flow]]").collect::<Vec<_>>();
    let head = study[0]
        .replace("2s", "9s")
        .replace("[scenario]", "[scenario]\nwarmup = \"1200ms\"\nuntil = \"transfers done\"");
    let text = format!("{head}[[scenario.flow]]{}bytes = \"3MB\"\n", study[1]);
    scratch.write("study.toml", &text);
    scratch.must(&["run", "study.toml", "--out", "out"]);
    let json = scratch.must(&["export", "out", "--format", "iperf3-json"]).json();
    let start = &json["start"]["test_start"];
    assert_eq!(
        (&start["bytes"], &start["duration"], &start["omit"]),
        (&3_000_000.into(), &0.into(), &1.2.into())
    );
    let intervals = json["intervals"].as_array().expect("a list");
    let sum = |is_omitted: bool| -> f64 {
        let sums =
            intervals.iter().map(|one| &one["sum"]).filter(|sum| sum["omitted"] == is_omitted);
        sums.map(|sum| sum["bytes"].as_f64().expect("a number")).sum()
    };
    let near = |a: f64, b: f64| assert!((a - b).abs() < 10.0, "{a} for {b}: {json}");
    near(sum(true) + sum(false), 3e6);
    let total = &json["end"]["sum_received"];
    near(sum(false), total["bytes"].as_f64().expect("a number"));
    let last = &intervals.last().expect("there is one")["sum"];
    assert_eq!(last["end"], total["end"]);
    let length = last["seconds"].as_f64().expect("a number");
    assert!(length > 0.0 && length < 1.0, "{length}");
    // Less than a second in all.
    scratch.must(&[
        "run",
        "study.toml",
        "--set",
        "flow.fetch.bytes=10kB",
        "--set",
        "warmup=0s",
        "--out",
        "short",
    ]);
    let json = scratch.must(&["export", "short", "--format", "iperf3-json"]).json();
    assert_eq!(json["intervals"].as_array().map(Vec::len), Some(1), "{json}");
    assert_eq!(json["intervals"][0]["sum"]["bytes"], 10_000);
}

#[test]
fn every_run_is_a_row_and_every_step_of_one_run() {
    let scratch = Scratch::new();
    scratch.must(&["run", "study.toml", "--out", "out"]);
    let all = scratch.must(&["export", "out", "--format", "csv"]).stdout;
    assert_eq!(all.lines().count(), 31);
    let printed = scratch.must(&["export", "out", "--format", "csv", "--out", "-"]).stdout;
    assert_eq!(printed, all, "'-' is standard output");
    assert!(!scratch.path("-").exists());
    let one = scratch.must(&["export", "out", "0", "--format", "csv", "--out", "one.csv"]);
    assert_eq!(one.stdout, "");
    // 2 s in steps of 100 ms, of two flows and two queues.
    assert_eq!(scratch.read("one.csv").lines().count(), 81);
}

#[test]
fn other_tools_formats_begin_as_they_must() {
    let scratch = Scratch::new();
    scratch.must(&["run", "study.toml", "--out", "out"]);
    let json = scratch.must(&["export", "out", "1", "--format", "iperf3-json"]).json();
    assert!(json["end"]["sum_received"]["bits_per_second"].as_f64() > Some(1e6), "{}", json["end"]);

    scratch.must(&["export", "out", "1", "--format", "flent", "--out", "one.flent.gz"]);
    let bytes = std::fs::read(scratch.path("one.flent.gz")).expect("it was written");
    assert_eq!(bytes[..2], [0x1f, 0x8b], "a gzip file");

    let log = scratch.must(&["export", "out", "1", "--format", "mahimahi"]).stdout;
    for mark in [" + ", " # ", " - "] {
        assert!(log.lines().any(|line| line.contains(mark)), "no '{mark}' in the log");
    }
    let ended = scratch.sojourn(&["export", "out", "1", "--format", "mahimahi", "--link", "quue"]);
    assert_eq!(ended.code, Some(2));
    assert!(ended.stderr.contains("did you mean 'queue'?"), "{}", ended.stderr);

    let ended = scratch.sojourn(&["export", "out", "--format", "flent"]);
    assert_eq!(ended.code, Some(2));
    assert!(ended.stderr.contains("allowed: 0 to 5"), "{}", ended.stderr);
}

#[test]
fn packets_are_those_of_the_run() {
    let scratch = Scratch::new();
    let words = ["run", "study.toml", "--set", "path.rate=8mbps", "--shorten", "1s", "--seed", "3"];
    scratch.must(&[&words[..], &["--out", "out", "--pcap"]].concat());
    scratch.must(&["export", "out", "1", "--format", "pcap", "--out", "again.pcapng"]);
    let read = |name: &str| std::fs::read(scratch.path(name)).expect("it was written");
    let packets = read("out/1.pcapng");
    assert_eq!(packets[..4], [0x0a, 0x0d, 0x0d, 0x0a], "a section of pcapng");
    // A second at 8 Mbit/s, 96 bytes of each packet and acknowledgements beside.
    assert!(packets.len() > 50_000, "{} bytes", packets.len());
    assert!(packets == read("again.pcapng"), "not the same packets");
    scratch.must(&["export", "out", "1", "--format", "pcap", "--taps", "all", "--out", "all"]);
    assert!(read("all").len() > 2 * packets.len());
}

#[test]
fn a_run_whose_trace_has_changed_is_not_passed_off_as_the_same() {
    let scratch = Scratch::new();
    scratch.write("trace.csv", "10,1\n");
    scratch.study_with("\"10Mbps\"", "\"trace trace.csv\"");
    scratch.must(&["run", "study.toml", "--out", "out"]);
    let words = ["export", "out", "0", "--format", "pcap", "--out", "packets"];
    scratch.must(&words);
    scratch.write("trace.csv", "11,1\n");
    let ended = scratch.sojourn(&words);
    assert_eq!(ended.code, Some(2));
    assert!(
        ended.stderr.contains("the models, or a trace or kernel that it names"),
        "{}",
        ended.stderr
    );
}

/// Where each folder has one engine, runs of the two stand for each other.
#[test]
fn folders_of_one_engine_each_are_compared_although_it_is_another() {
    let scratch = Scratch::new();
    scratch.write(
        "short.toml",
        &scratch.read("study.toml").replace("[factors]", "[factors]\nengine = [\"sim\"]"),
    );
    scratch.must(&["run", "short.toml", "--out", "one", "--no-report"]);
    let other =
        ["run", "short.toml", "--set", "engine=[\"fluid\"]", "--out", "other", "--no-report"];
    scratch.must(&other);
    let json = scratch.sojourn(&["compare", "one", "other", "--format", "json"]).json();
    assert_eq!(json["paired"], 6, "{json}");
    // Before there is any run.
    let ended = scratch.sojourn(&[&other[..4], &["--out", "third", "--pcap"]].concat());
    assert_eq!(ended.code, Some(2), "{}", ended.stderr);
    assert!(ended.stderr.contains("--pcap: the engine of scenario 0"), "{}", ended.stderr);
    assert!(!scratch.path("third").exists());
}
