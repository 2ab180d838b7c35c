//! Every mistake in a study is one message that names file, line, column, key, what is allowed and
//! the nearest match.

use std::path::Path;

use sojourn_study::{Overrides, Study};

const GOOD: &str = r#"schema = 1
title = "a test"

[scenario]
duration = "10s"
warmup = "1s"

[scenario.path]
rate = "10Mbps"
rtt = "20ms"
queue = "pfifo limit 50"

[[scenario.flow]]
name = "cubic"
app = "bulk"
cca = "cubic"

[[scenario.flow]]
name = "echo"
app = "ping"

[factors]
"path.queue" = ["pfifo limit 50", "fq_codel"]
"flow.cubic.cca" = ["cubic", "bbr"]

[repeat]
seeds = 2

[views.share]
kind = "bars"
x = "path.queue"
y = "goodput"

[[claim]]
id = "C1"
text = "it is fast"
where = { "path.queue" = "fq_codel" }
expect = ["goodput(cubic) > 5 Mbps"]
"#;

fn read(text: &str) -> Result<Study, String> {
    Study::parse("t.toml", text, Path::new(""), &Overrides::default())
        .map_err(|error| error.to_string())
}

/// The message after `old` was replaced by `new` in a good study.
fn mistake(old: &str, new: &str) -> String {
    assert_eq!(GOOD.matches(old).count(), 1, "'{old}' stands there once");
    read(&GOOD.replace(old, new)).expect_err(new)
}

#[test]
fn a_good_study_is_read() {
    let study = read(GOOD).unwrap();
    assert_eq!(study.scenarios.len(), 4);
    assert_eq!(study.plan().runs.len(), 8);
}

#[test]
fn every_mistake_has_its_place_its_key_and_its_remedy() {
    for (old, new, message) in [
        (
            "queue = \"pfifo limit 50\"\n\n",
            "queue = \"pfifo limit 50\"\nquee = 3\n\n",
            "t.toml:12:1: scenario.path.quee: unknown key; did you mean 'queue'?",
        ),
        (
            "duration = ",
            "duratoin = ",
            "t.toml:5:1: scenario.duratoin: unknown key; did you mean 'duration'?",
        ),
        ("title = \"a test\"\n", "", "t.toml:1:1: title: is missing"),
        (
            "rate = \"10Mbps\"",
            "rate = \"10Mbqs\"",
            "t.toml:9:8: scenario.path.rate: unknown unit 'mbqs' in '10Mbqs'; did you mean 'mbps'?",
        ),
        (
            "rate = \"10Mbps\"",
            "rate = \"-3Mbps\"",
            "t.toml:9:8: scenario.path.rate: '-3Mbps' is negative; allowed is zero or more",
        ),
        (
            "rate = \"10Mbps\"",
            "rate = 10",
            "t.toml:9:8: scenario.path.rate: integer `10` does not fit; wanted is the rate of a link, such as 10Mbps, in quotes",
        ),
        (
            "rtt = \"20ms\"",
            "rtt = \"20\"",
            "t.toml:10:7: scenario.path.rtt: '20' has no unit; want a time such as 20ms",
        ),
        ("rtt = \"20ms\"", "", "t.toml:8:1: scenario.path: propagation is missing"),
        (
            "rtt = \"20ms\"",
            "rtt = \"20ms\"\ndelay = \"3ms\"",
            "t.toml:8:1: scenario.path: rtt and delay say the same",
        ),
        (
            "rate = \"10Mbps\"",
            "rate = \"trace none.csv\"",
            "t.toml:9:8: scenario.path.rate: the trace 'none.csv' cannot be read",
        ),
        (
            "schema = 1",
            "schema = 2",
            "t.toml:1:10: schema: version 2 of the format is unknown (allowed: 1)",
        ),
        (
            "warmup = \"1s\"",
            "warmup = \"10s\"",
            "t.toml:6:10: scenario.warmup: warmup 10s is not shorter",
        ),
        (
            "app = \"ping\"",
            "app = \"pong\"",
            "t.toml:20:7: scenario.flow.1.app: unknown 'pong'; did you mean 'ping'? (allowed: bulk, on_off, ping, udp, frames)",
        ),
        (
            "app = \"ping\"",
            "app = \"ping\"\ncca = \"cubic\"",
            "t.toml:21:7: scenario.flow.1.cca: has no meaning for the application 'ping'",
        ),
        ("app = \"ping\"", "app = \"udp\"", "t.toml:18:1: scenario.flow.1.rate: udp needs 'rate'"),
        (
            "name = \"echo\"",
            "name = \"cubic\"",
            "t.toml:19:8: scenario.flow.1.name: another flow is named 'cubic' already",
        ),
        (
            "name = \"echo\"",
            "name = \"e cho\"",
            "t.toml:19:8: scenario.flow.1.name: 'e cho' is no name",
        ),
        (
            "name = \"echo\"",
            "name = \"echo\"\ncount = 0",
            "t.toml:20:9: scenario.flow.1.count: 0 is out of range",
        ),
        (
            "\"bbr\"]",
            "\"bbr33\"]",
            "t.toml:24:30: scenario.flow.0.cca: unknown congestion control 'bbr33'; did you mean 'bbr3'?",
        ),
        (
            "\"path.queue\" = [\"pfifo limit 50\", \"fq_codel\"]",
            "\"path.quee\" = [\"fq_codel\"]",
            "t.toml:23:1: scenario.path.quee: unknown key; did you mean 'queue'?",
        ),
        (
            "\"flow.cubic.cca\" =",
            "\"flow.qubic.cca\" =",
            "t.toml:24:1: factors.flow.qubic.cca: no flow is named 'qubic'; did you mean 'cubic'? (allowed: cubic, echo, *)",
        ),
        (
            "\"flow.cubic.cca\" =",
            "\"parking_lot.hops\" =",
            "t.toml:24:1: factors.parking_lot.hops: the study has no [scenario.parking_lot]",
        ),
        (
            "[\"cubic\", \"bbr\"]",
            "[]",
            "t.toml:24:20: factors.flow.cubic.cca: the list is empty (allowed: one value or more)",
        ),
        (
            "[\"cubic\", \"bbr\"]",
            "[\"cubic\", \"cubic\"]",
            "t.toml:24:30: factors.flow.cubic.cca: 'cubic' is listed twice",
        ),
        (
            "\"flow.cubic.cca\" = [\"cubic\", \"bbr\"]",
            "except = [{ \"path.queue\" = \"fq_coddel\" }]",
            "factors.except: 'path.queue' never is 'fq_coddel'; did you mean 'fq_codel'?",
        ),
        (
            "\"flow.cubic.cca\" = [\"cubic\", \"bbr\"]",
            "except = [{ \"path.queue\" = [\"fq_codel\", \"pfifo limit 50\"] }]",
            "t.toml:24:10: factors.except: every combination is left out",
        ),
        ("seeds = 2", "seeds = 0", "t.toml:27:9: repeat.seeds: no seeds: nothing would run"),
        ("seeds = 2", "seeds = []", "t.toml:27:9: repeat.seeds: no seeds: nothing would run"),
        ("seeds = 2", "seeds = -1", "t.toml:27:9: repeat.seeds: -1 is negative"),
        ("seeds = 2", "seeds = [3, 3]", "t.toml:27:9: repeat.seeds: seed 3 is listed twice"),
        (
            "goodput(cubic) > 5 Mbps",
            "goodput(qubic) > 5 Mbps",
            "t.toml:38:20: claim.0.expect: no flow or queue is named 'qubic'; did you mean 'cubic'? (allowed: cubic, echo, queue, reverse_queue)",
        ),
        (
            "goodput(cubic) > 5 Mbps",
            "godput(cubic) > 5 Mbps",
            "t.toml:38:12: claim.0.expect: no metric is named 'godput'; did you mean 'goodput'?",
        ),
        (
            "goodput(cubic) > 5 Mbps",
            "goodput(cubic) > 5 ms",
            "t.toml:38:29: claim.0.expect: goodput is a rate, such as 5Mbps and 5ms is a time",
        ),
        (
            "goodput(cubic) > 5 Mbps",
            "goodput(cubic) > 5",
            "claim.0.expect: goodput is a rate, such as 5Mbps and 5 is a plain number",
        ),
        (
            "goodput(cubic) > 5 Mbps",
            "goodput() > 5 Mbps",
            "claim.0.expect: 'goodput' of what? (allowed: cubic, echo, queue, reverse_queue)",
        ),
        (
            "goodput(cubic) > 5 Mbps",
            "goodput(queue) > 5 Mbps",
            "claim.0.expect: 'goodput' is a metric of a flow, and 'queue' is none",
        ),
        (
            "goodput(cubic) > 5 Mbps",
            "goodput(cubic, path.queue = 'fq') > 5 Mbps",
            "t.toml:38:27: claim.0.expect: 'path.queue' never is 'fq'",
        ),
        (
            "where = { \"path.queue\" = \"fq_codel\" }",
            "where = { \"path.rate\" = \"10Mbps\" }",
            "t.toml:37:9: claim.0.where: 'path.rate' is no factor of this study",
        ),
        (
            "where = { \"path.queue\" = \"fq_codel\" }",
            "where = { \"path.queue\" = \"fq_codl\" }",
            "t.toml:37:9: claim.0.where: 'path.queue' never is 'fq_codl'; did you mean 'fq_codel'?",
        ),
        (
            "expect = [\"goodput(cubic) > 5 Mbps\"]",
            "",
            "t.toml:34:1: claim.0: the claim expects nothing",
        ),
        (
            "y = \"goodput\"",
            "y = \"goodputs\"",
            "t.toml:32:5: views.share.y: no metric is named 'goodputs'",
        ),
        (
            "x = \"path.queue\"",
            "x = \"path.quee\"",
            "t.toml:31:5: views.share.x: 'path.quee' is no factor",
        ),
        ("kind = \"bars\"", "kind = \"pie\"", "t.toml:30:8: views.share.kind: unknown 'pie'"),
        ("[repeat]", "[repeat", "t.toml:26:8: not TOML"),
    ] {
        let error = mistake(old, new);
        assert!(error.contains(message), "\n  wanted: {message}\n  found:  {error}");
    }
}

#[test]
fn a_study_without_a_shape_or_with_two_says_which_there_are() {
    let path = "[scenario.path]\nrate = \"10Mbps\"\nrtt = \"20ms\"\nqueue = \"pfifo limit 50\"\n";
    let text =
        GOOD.replace(path, "").replace("\"path.queue\" = [\"pfifo limit 50\", \"fq_codel\"]\n", "");
    let error = read(&text).unwrap_err();
    assert!(
        error.contains("no link is defined (allowed: [scenario.path], [scenario.parking_lot]"),
        "{error}"
    );
    let error = mistake("[repeat]", "[[scenario.node]]\nname = \"a\"\n[repeat]");
    assert!(error.contains("several shapes are defined"), "{error}");
}

#[test]
fn what_the_command_line_sets_is_blamed_on_the_command_line() {
    let set = |set: &str| {
        let overrides = Overrides { set: vec![set.to_owned()], ..Overrides::default() };
        Study::parse("t.toml", GOOD, Path::new(""), &overrides).map_err(|error| error.to_string())
    };
    let error = set("path.rate=40mbqs").unwrap_err();
    assert!(
        error.starts_with("--set path.rate=40mbqs: scenario.path.rate: unknown unit"),
        "{error}"
    );
    let error = set("path.rat=40mbps").unwrap_err();
    assert!(error.contains("unknown key; did you mean 'rate'?"), "{error}");
    let error = set("nonsense").unwrap_err();
    assert!(error.contains("'nonsense' sets nothing"), "{error}");
    let error = set("flow.nobody.cca=bbr").unwrap_err();
    assert!(error.contains("no flow is named 'nobody'"), "{error}");
    let error = set("scenario.flow.cubic").unwrap_err();
    assert!(error.contains("sets nothing"), "{error}");
}

#[test]
fn a_missing_file_is_said_to_be_missing() {
    let error = Study::load(Path::new("/nowhere/at/all.toml"), &Overrides::default()).unwrap_err();
    assert!(error.to_string().starts_with("/nowhere/at/all.toml: cannot be read"), "{error}");
}
