//! Bad input ends with exit code 2 and one message: where the mistake is, what is wrong, what is
//! allowed, and what may have been meant. Nothing is written.

use crate::scratch::{STUDY, Scratch};

/// Runs `run` and `check` with arguments that are wrong; the message must contain each part of `said`.
fn refused(scratch: &Scratch, words: &[&str], said: &[&str]) {
    let before = scratch.names();
    for verb in ["run", "check"] {
        let ended = scratch.sojourn(&[&[verb], words].concat());
        assert_eq!(ended.code, Some(2), "{verb} {words:?}\n{}{}", ended.stdout, ended.stderr);
        assert_eq!(ended.stdout, "", "{verb} {words:?}");
        let lines: Vec<&str> = ended.stderr.lines().collect();
        assert_eq!(lines.len(), 1, "one message, not\n{}", ended.stderr);
        assert!(lines[0].starts_with("error: "), "{}", lines[0]);
        for part in said {
            assert!(lines[0].contains(part), "'{part}' is not in: {}", lines[0]);
        }
    }
    assert_eq!(scratch.names(), before, "something was written");
}

/// Replaces `old` in the study; the message must name the line on which `new` stands.
fn refused_with(old: &str, new: &str, said: &[&str]) {
    let scratch = Scratch::new();
    scratch.study_with(old, new);
    let before = STUDY.find(old).expect("study_with has seen it");
    let line = STUDY[..before].matches('\n').count() + 1;
    refused(&scratch, &["study.toml"], &[said, &[&format!("study.toml:{line}:")]].concat());
}

#[test]
fn an_unknown_key() {
    refused_with(
        "rtt   = \"20ms\"",
        "rrt   = \"20ms\"",
        &["scenario.path.rrt", "did you mean 'rtt'?", "allowed: rate, queue, buffer, rtt"],
    );
}

#[test]
fn a_bad_unit() {
    refused_with(
        "\"20ms\"",
        "\"20 lightyears\"",
        &["scenario.path.rtt", "'lightyears'", "allowed: ns, us"],
    );
}

#[test]
fn a_number_without_a_unit() {
    refused_with("\"2s\"", "2", &["scenario.duration", "a time such as 20ms"]);
}

#[test]
fn a_negative_rate() {
    refused_with("\"10Mbps\"", "\"-10Mbps\"", &["scenario.path.rate", "negative", "allowed"]);
}

#[test]
fn a_queue_that_is_not_there() {
    refused_with(
        "\"fq_codel\"]",
        "\"fq_coddle\"]",
        &["path.queue", "did you mean 'fq_codel'?", "allowed: pfifo, bfifo"],
    );
}

#[test]
fn a_congestion_control_that_is_not_there() {
    refused_with(
        "\"reno\"",
        "\"rneo\"",
        &["scenario.flow.1.cca", "did you mean 'reno'?", "allowed: reno, cubic"],
    );
}

#[test]
fn a_factor_over_a_flow_that_is_not_there() {
    refused_with(
        "\"path.queue\" =",
        "\"flow.bbo.cca\" =",
        &["flow.bbo.cca", "did you mean 'bob'?", "allowed: alice, bob"],
    );
}

#[test]
fn a_factor_over_a_key_that_is_not_there() {
    refused_with(
        "\"path.queue\" =",
        "\"path.qeue\" =",
        &["path.qeue", "did you mean 'queue'?", "allowed: rate, queue"],
    );
}

#[test]
fn a_factor_that_leads_nowhere() {
    refused_with(
        "\"path.queue\" = [\"pfifo limit 50\", \"fq_codel\"]",
        "\"path.rate\" = { from = \"10Mbps\", to = \"5Mbps\", step = \"1Mbps\" }",
        &["path.rate", "'from'", "'to'"],
    );
}

#[test]
fn a_factor_without_values() {
    refused_with("[\"pfifo limit 50\", \"fq_codel\"]", "[]", &["path.queue"]);
}

#[test]
fn a_trace_that_is_not_there() {
    refused_with(
        "\"10Mbps\"",
        "\"trace nowhere.csv\"",
        &["scenario.path.rate", "nowhere.csv", "cannot be read"],
    );
}

#[test]
fn a_malformed_trace() {
    let scratch = Scratch::new();
    scratch.write("bent.csv", "10,0.3\n10,soon\n");
    scratch.study_with("\"10Mbps\"", "\"trace bent.csv\"");
    let said = ["study.toml:9:", "scenario.path.rate", "bent.csv", "line 2", "'soon'", "seconds"];
    refused(&scratch, &["study.toml"], &said);
    let ended = scratch.sojourn(&["check", "study.toml"]);
    assert_eq!(ended.stderr.matches("bent.csv").count(), 1, "named once: {}", ended.stderr);
}

#[test]
fn a_claim_over_a_flow_that_is_not_there() {
    refused_with(
        "expect = \"goodput(alice) + goodput(bob) > 5 Mbps\"",
        "expect = \"goodput(alice) + goodput(bbo) > 5 Mbps\"",
        &["claim.0.expect", "'bbo'", "did you mean 'bob'?", "allowed: alice, bob"],
    );
}

#[test]
fn a_claim_over_a_metric_that_is_not_there() {
    refused_with(
        "expect = \"goodput(alice) + goodput(bob) > 5 Mbps\"",
        "expect = \"godput(alice) + goodput(bob) > 5 Mbps\"",
        &["claim.0.expect", "did you mean 'goodput'?"],
    );
}

#[test]
fn a_format_of_another_version() {
    refused_with("schema = 1", "schema = 7", &["schema", "allowed: 1"]);
}

#[test]
fn text_that_is_no_toml() {
    refused_with("duration = \"2s\"", "duration = \"2s", &["TOML"]);
}

#[test]
fn a_study_that_is_not_there() {
    refused(&Scratch::new(), &["nowhere"], &["nowhere", "cannot be read"]);
}

#[test]
fn an_option_that_sets_what_is_not_there() {
    let scratch = Scratch::new();
    let said = ["--set path.rat=5mbps", "scenario.path.rat", "did you mean 'rate'?"];
    refused(&scratch, &["study.toml", "--set", "path.rat=5mbps"], &said);
    refused(&scratch, &["study.toml", "--set", "path.rate"], &["--set", "ADDRESS=VALUE"]);
}

#[test]
fn options_that_make_no_sense() {
    let scratch = Scratch::new();
    let before = scratch.names();
    for words in [
        &["--shard", "3/2"][..],
        &["--jobs", "0"],
        &["--seeds", "0"],
        &["--seeds", "some"],
        &["--seed", "1", "--seeds", "2"],
        &["--shorten", "never"],
        &["--format", "xml"],
        &["--nonsense"],
    ] {
        let ended = scratch.sojourn(&[&["run", "study.toml"], words].concat());
        assert_eq!(ended.code, Some(2), "{words:?}");
        assert_eq!(ended.stdout, "", "{words:?}");
        assert!(ended.stderr.contains(words[0]), "{words:?}: {}", ended.stderr);
    }
    assert_eq!(scratch.names(), before);
}

#[test]
fn a_folder_with_results_of_something_else_is_left_alone() {
    let scratch = Scratch::new();
    scratch.must(&["run", "study.toml", "--out", "out"]);
    let before = scratch.read("out/plan.json");
    let ended = scratch.sojourn(&["run", "study.toml", "--set", "path.rate=5mbps", "--out", "out"]);
    assert_eq!(ended.code, Some(2), "{}", ended.stderr);
    assert!(ended.stderr.contains("choose another folder"), "{}", ended.stderr);
    assert_eq!(scratch.read("out/plan.json"), before);
}

#[test]
fn folders_without_results() {
    let scratch = Scratch::new();
    for words in [&["show", "nowhere"][..], &["report", "."], &["join", "nowhere"]] {
        let ended = scratch.sojourn(words);
        assert_eq!(ended.code, Some(2), "{words:?}: {}", ended.stderr);
        assert!(ended.stderr.contains("plan.json is missing"), "{words:?}: {}", ended.stderr);
    }
    assert_eq!(scratch.names(), ["study.toml"]);
}

#[test]
fn a_place_that_cannot_be_written_to() {
    let scratch = Scratch::new();
    scratch.must(&["run", "study.toml", "--out", "out", "--no-report"]);
    let before = scratch.names();
    for words in [
        &["run", "study.toml", "--out", "study.toml"][..],
        &["run", "study.toml", "--out", "study.toml/out"],
        &["report", "out", "--out", "nowhere/page.html"],
        &["export", "out", "--format", "csv", "--out", "nowhere/runs.csv"],
        &["new", "study.toml"],
        &["new", "study.toml/new"],
    ] {
        let ended = scratch.sojourn(words);
        assert_eq!(ended.code, Some(2), "{words:?}: {}", ended.stderr);
        assert!(ended.stderr.contains(words[words.len() - 1]), "{words:?}: {}", ended.stderr);
    }
    assert_eq!(scratch.names(), before);
}

#[test]
fn a_study_is_not_written_over_by_its_results() {
    let scratch = Scratch::new();
    let before = scratch.names();
    let ended = scratch.sojourn(&["run", ".", "--set", "path.rate=5mbps", "--out", "."]);
    assert_eq!(ended.code, Some(2), "{}", ended.stderr);
    assert!(ended.stderr.contains("choose another folder"), "{}", ended.stderr);
    assert_eq!(scratch.read("study.toml"), STUDY);
    assert_eq!(scratch.names(), before);
}

#[test]
fn a_value_that_factors_replace() {
    refused_with(
        "queue = \"pfifo limit 50\"",
        "queue = \"pfifo limt 50\"",
        &["scenario.path.queue", "did you mean 'limit'?", "allowed: limit"],
    );
}

#[test]
fn a_study_that_is_no_text() {
    let scratch = Scratch::new();
    std::fs::write(scratch.path("study.toml"), b"schema = 1\ntitle = \"\xff\"\n").unwrap();
    refused(&scratch, &["study.toml"], &["study.toml:2:10: ", "0xff", "allowed: text in UTF-8"]);
}

#[test]
fn more_scenarios_than_anybody_means() {
    let range = "{ from = 1, to = 1000, step = 1 }";
    refused_with(
        "[factors]\n",
        &format!(
            "[factors]\n\"flow.alice.count\" = {range}\n\"flow.bob.count\" = {range}\n\"flow.bob.dscp\" = {range}\n"
        ),
        &["factors", "1000 × 1000 × 1000", "allowed: at most 100000"],
    );
}
