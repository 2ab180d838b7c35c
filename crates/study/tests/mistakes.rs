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
    let mut wrong = Vec::new();
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
            "t.toml:9:8: scenario.path.rate: '-3Mbps' is negative (allowed: zero or more)",
        ),
        (
            "rate = \"10Mbps\"",
            "rate = 10",
            "t.toml:9:8: scenario.path.rate: the number 10 does not fit (allowed: the rate of a link, such as 10Mbps, in quotes)",
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
            "t.toml:9:8: scenario.path.rate: the trace 'none.csv': cannot be read",
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
            "t.toml:20:7: scenario.flow.1.app: unknown application 'pong'; did you mean 'ping'? (allowed: bulk, on_off, arrivals, page, requests, rpm, ping, udp, frames, call",
        ),
        (
            "app = \"ping\"",
            "app = \"ping\"\ncca = \"cubic\"",
            "t.toml:21:1: scenario.flow.1.cca: has no meaning for the application 'ping'",
        ),
        (
            "app = \"ping\"",
            "app = \"udp\"",
            "t.toml:18:1: scenario.flow.1.rate: udp needs 'rate' (allowed: rate = ",
        ),
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
            "name = \"echo\"\ncount = 100001",
            "t.toml:20:9: scenario.flow.1.count: 100001 is out of range (allowed: 0 to 100000)",
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
        (
            "seeds = 2",
            "seeds = -1",
            "t.toml:27:9: repeat.seeds: the number -1 does not fit (allowed: how many seeds, 1 or more",
        ),
        (
            "seeds = 2",
            "seeds = [1, -1]",
            "t.toml:27:13: repeat.seeds.1: the number -1 does not fit (allowed: a whole number, 0 or more)",
        ),
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
            "t.toml:38:29: claim.0.expect: goodput is a rate, such as 5Mbps, and 5ms is a time",
        ),
        (
            "goodput(cubic) > 5 Mbps",
            "goodput(cubic) > 5",
            "claim.0.expect: goodput is a rate, such as 5Mbps, and 5 is a plain number",
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
            "t.toml:37:11: claim.0.where: 'path.rate' is no factor of this study",
        ),
        (
            "where = { \"path.queue\" = \"fq_codel\" }",
            "where = { \"path.queue\" = \"fq_codl\" }",
            "t.toml:37:26: claim.0.where: 'path.queue' never is 'fq_codl'; did you mean 'fq_codel'?",
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
        // Values that factors replace are read too.
        (
            "queue = \"pfifo limit 50\"\n\n",
            "queue = \"pfifo limt 50\"\n\n",
            "t.toml:11:9: scenario.path.queue: pfifo has no parameter 'limt'; did you mean 'limit'?",
        ),
        (
            "cca = \"cubic\"\n",
            "cca = \"qubic\"\n",
            "t.toml:16:7: scenario.flow.0.cca: unknown congestion control 'qubic'; did you mean 'cubic'?",
        ),
        (
            "app = \"ping\"\n\n[factors]",
            "app = \"ping\"\nsize = \"1MB\"\n\n[factors]\n\"flow.echo.size\" = [\"10B\", \"20B\"]",
            "t.toml:21:8: scenario.flow.1.size: is 1000000 bytes (allowed: 0 to 65507 bytes)",
        ),
        (
            "warmup = \"1s\"",
            "warmup = \"1s\"\nstep = \"-1s\"",
            "t.toml:7:8: scenario.step: '-1s' is negative",
        ),
        // And values that no combination takes.
        (
            "\"flow.cubic.cca\" = [\"cubic\", \"bbr\"]",
            "\"flow.cubic.cca\" = [\"cubic\", \"bbx\"]\nexcept = [{ \"flow.cubic.cca\" = \"bbx\" }]",
            "t.toml:24:30: scenario.flow.0.cca: unknown congestion control 'bbx'; did you mean 'bbr'?",
        ),
        // Values of the wrong kind.
        (
            "[[scenario.flow]]\nname = \"echo\"",
            "[scenario.flow.x]\nname = \"echo\"",
            "t.toml:18:16: scenario.flow.0.x: unknown key",
        ),
        (
            "title = \"a test\"",
            "title = 3",
            "t.toml:2:9: title: the number 3 does not fit (allowed: a text in quotes)",
        ),
        (
            "[views.share]\nkind = \"bars\"\nx = \"path.queue\"\ny = \"goodput\"",
            "[views]\nshare = 3",
            "t.toml:30:9: views.share: the number 3 does not fit (allowed: a table)",
        ),
        (
            "app = \"ping\"",
            "app = \"ping\"\ndscp = 300",
            "t.toml:21:8: scenario.flow.1.dscp: the number 300 does not fit (allowed: a whole number from 0 to 255)",
        ),
        (
            "app = \"ping\"",
            "app = \"ping\"\ncount = 1.5",
            "t.toml:21:9: scenario.flow.1.count: the number 1.5 does not fit (allowed: a whole number from 0",
        ),
        (
            "app = \"ping\"",
            "app = \"on_off\"\non = \"1s\"\noff = \"1s\"\nrandom = \"yes\"",
            "t.toml:23:10: scenario.flow.1.random: the text 'yes' does not fit (allowed: on or off, true or false)",
        ),
        ("[[claim]]", "[claim]", "claim: a table does not fit (allowed: a list: [[TABLE]]"),
        (
            "[factors]\n",
            "[factors.no]\n",
            "t.toml:23:1: factors.no.path.queue: 'no.path.queue' is no address in a scenario",
        ),
        // Texts that are no numbers, in every unit.
        (
            "rtt = \"20ms\"",
            "rtt = \"nanms\"",
            "t.toml:10:7: scenario.path.rtt: 'nanms' is not a time",
        ),
        (
            "rtt = \"20ms\"",
            "rtt = \"infms\"",
            "t.toml:10:7: scenario.path.rtt: 'infms' is not a time",
        ),
        ("rtt = \"20ms\"", "rtt = \"-1ns\"", "scenario.path.rtt: '-1ns' is negative"),
        ("rtt = \"20ms\"", "rtt = \"1e9s\"", "scenario.path.rtt: unknown unit 'e9s' in '1e9s'"),
        (
            "rtt = \"20ms\"",
            "rtt = \"99999999999999999999s\"",
            "is too large (allowed: less than 9.2e18 ns)",
        ),
        (
            "rtt = \"20ms\"",
            "rtt = \"10000001s\"",
            "t.toml:10:7: scenario.path.rtt: '10000001s' is too long (allowed: at most 10000000s)",
        ),
        (
            "rate = \"10Mbps\"",
            "rate = \"nanMbps\"",
            "t.toml:9:8: scenario.path.rate: unknown rate 'nanMbps' (allowed: 10Mbps",
        ),
        (
            "rate = \"10Mbps\"",
            "rate = \"infGbps\"",
            "t.toml:9:8: scenario.path.rate: unknown rate 'infGbps' (allowed: 10Mbps",
        ),
        ("rate = \"10Mbps\"", "rate = \"1e3Mbps\"", "scenario.path.rate: unknown unit 'e3mbps'"),
        (
            "rate = \"10Mbps\"",
            "rate = \"99999999999Gbps\"",
            "is too large (allowed: less than 9.2e18 b",
        ),
        (
            "app = \"ping\"",
            "app = \"frames\"\nsize = \"20kB\"\nframes_per_second = nan",
            "t.toml:22:21: scenario.flow.1.frames_per_second: 'NaN' is out of range (allowed: a number from 0.001 to",
        ),
        (
            "app = \"ping\"",
            "app = \"frames\"\nsize = \"20kB\"\nframes_per_second = inf",
            "frames_per_second: 'inf' is out of range (allowed: a number from 0.001 to 1000000)",
        ),
        (
            "app = \"ping\"",
            "app = \"udp\"\nrate = \"1Mbps\"\nsize = \"-4B\"",
            "t.toml:22:8: scenario.flow.1.size: '-4B' is negative",
        ),
        (
            "app = \"ping\"",
            "app = \"ping\"\nsize = \"nanB\"",
            "t.toml:21:8: scenario.flow.1.size: 'nanB' is not a size",
        ),
        ("rtt = \"20ms\"", "rtt = \"20ms\"\nloss = \"nan%\"", "t.toml:11:8: scenario.path.loss: "),
        ("rtt = \"20ms\"", "rtt = \"20ms\"\nloss = \"101%\"", "t.toml:11:8: scenario.path.loss: "),
        ("seeds = 2", "seeds = 99999999999999999999", "t.toml:27:9: repeat.seeds: the number"),
        ("seeds = 2", "seeds = 100001", "repeat.seeds: 100001 are too many seeds (allowed: 1 to"),
        // Times that contradict each other.
        (
            "duration = \"10s\"",
            "duration = \"0s\"",
            "t.toml:5:12: scenario.duration: a run takes time (allowed: more than 0s)",
        ),
        (
            "warmup = \"1s\"",
            "warmup = \"11s\"",
            "t.toml:6:10: scenario.warmup: warmup 11s is not shorter than duration 10s (allowed: less than 10s)",
        ),
        (
            "warmup = \"1s\"",
            "step = \"11s\"",
            "t.toml:6:8: scenario.step: step is 11s (allowed: more than 0s, at most the duration 10s)",
        ),
        (
            "warmup = \"1s\"",
            "step = \"0s\"",
            "t.toml:6:8: scenario.step: step is 0s (allowed: more",
        ),
        (
            "app = \"ping\"",
            "app = \"ping\"\nstart = \"10s\"",
            "t.toml:21:9: scenario.flow.1.start: starts at 10s when the run is over (allowed: less than 10s)",
        ),
        // Names twice.
        (
            "[[claim]]\nid = \"C1\"",
            "[[claim]]\nid = \"C1\"\ntext = \"t\"\nuntestable = \"no\"\n[[claim]]\nid = \"C1\"",
            "t.toml:39:6: claim.1.id: another claim is called 'C1' already",
        ),
        // Claims.
        (
            "expect = [\"goodput(cubic) > 5 Mbps\"]",
            "expect = \"goodput(qubic) > 5 Mbps\"",
            "t.toml:38:19: claim.0.expect: no flow or queue is named 'qubic'",
        ),
        (
            "expect = [\"goodput(cubic) > 5 Mbps\"]",
            "expect = \"\"\"\ngoodput(qubic) > 5 Mbps\"\"\"",
            "t.toml:39:9: claim.0.expect: no flow or queue is named 'qubic'",
        ),
        (
            "goodput(cubic) > 5 Mbps",
            "goodput(cubic) / 0 > 5 Mbps",
            "t.toml:38:27: claim.0.expect: the divisor is zero",
        ),
        (
            "goodput(cubic) > 5 Mbps",
            "goodput(cubic) / (2 - 2) > 5 Mbps",
            "t.toml:38:27: claim.0.expect: the divisor is zero",
        ),
        (
            "goodput(cubic) > 5 Mbps",
            "goodput(cubic) + rtt_p50(cubic) > 5 Mbps",
            "t.toml:38:27: claim.0.expect: goodput is a rate",
        ),
        (
            "goodput(cubic) > 5 Mbps",
            "sojourn_p95(queu) < 5 ms",
            "t.toml:38:24: claim.0.expect: no flow or queue is named 'queu'; did you mean 'queue'?",
        ),
        (
            "goodput(cubic) > 5 Mbps",
            "goodput(cubic) > 5 Mbqs",
            "t.toml:38:31: claim.0.expect: unknown unit 'Mbqs'; did you mean 'mbps'?",
        ),
        (
            "goodput(cubic) > 5 Mbps",
            "goodput(cubic, path.rate = '1Mbps') > 5 Mbps",
            "t.toml:38:27: claim.0.expect: 'path.rate' is no factor of this study (allowed: path.queue",
        ),
        (
            "where = { \"path.queue\" = \"fq_codel\" }",
            "where = { \"path.queue\" = [] }",
            "t.toml:37:26: claim.0.where: 'path.queue' has an empty list (allowed: pfifo limit 50, fq_codel)",
        ),
        (
            "where = { \"path.queue\" = \"fq_codel\" }",
            "where = { path.queue = [\"fq_codel\", \"fq\"] }",
            "t.toml:37:37: claim.0.where: 'path.queue' never is 'fq'",
        ),
        (
            "where = { \"path.queue\" = \"fq_codel\" }",
            "where = \"fq_codel\"",
            "t.toml:37:9: claim.0.where: the text 'fq_codel' does not fit (allowed: factors with values",
        ),
    ] {
        let error = mistake(old, new);
        let is_said = error.contains("allowed") || error.contains("cannot be read");
        let is_placed = error.starts_with("t.toml:") && !error.contains('\n');
        if !error.contains(message) || !is_said || !is_placed {
            wrong.push(format!("\n  wanted: {message}\n  found:  {error}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.concat());
}

/// A base value is read although every scenario has another; that it does not go with the rest of
/// the base is no mistake.
#[test]
fn a_replaced_value_need_not_go_with_what_is_replaced_too() {
    let zip =
        "[[factors.zip]]\n\"duration\" = [\"100s\", \"200s\"]\n\"warmup\" = [\"20s\", \"30s\"]\n";
    for (old, new) in
        [("duration = \"10s\"", "duration = \"15s\""), ("warmup = \"1s\"", "warmup = \"12s\"")]
    {
        let text = GOOD.replace("[repeat]", &format!("{zip}\n[repeat]")).replace(old, new);
        read(&text).unwrap_or_else(|error| panic!("{new}: {error}"));
    }
    // What a factor gives need not be there at all.
    read(&GOOD.replace("queue = \"pfifo limit 50\"\n\n", "\n")).unwrap();
    read(&GOOD.replace("cca = \"cubic\"\n", "\n")).unwrap();
}

#[test]
fn free_networks_have_their_mistakes_told() {
    const FREE: &str = r#"schema = 1
title = "t"
[scenario]
duration = "10s"
[[scenario.node]]
name = "a"
[[scenario.node]]
name = "b"
[[scenario.node]]
name = "c"
[[scenario.link]]
name = "ab"
from = "a"
to = "b"
rate = "10Mbps"
delay = "1ms"
queue = "fq_codel"
[[scenario.link]]
name = "bc"
from = "b"
to = "c"
rate = "10Mbps"
delay = "1ms"
queue = "fq_codel"
[[scenario.flow]]
name = "x"
app = "bulk"
src = "a"
dst = "c"
"#;
    assert_eq!(
        read(FREE).unwrap().scenarios.get(0).expect("it is one of them").scenario.links.len(),
        4
    );
    let empty = FREE.replace(
        "[[scenario.flow]]",
        "[[scenario.radio]]\nname = \"w\"\nap = \"a\"\n[[scenario.flow]]",
    );
    let error = read(&empty).unwrap_err();
    assert!(
        error.starts_with("t.toml:25:1: scenario.radio.0.station: radio 'w' has 0 stations"),
        "{error}"
    );
    assert_eq!(error.lines().count(), 1, "{error}");
    // A circle is a way like any other.
    let circle = "[[scenario.link]]\nname = \"ca\"\nfrom = \"c\"\nto = \"a\"\nrate = \"1Mbps\"\ndelay = \"1ms\"\nqueue = \"fq_codel\"\n";
    let study = read(&format!("{FREE}{circle}")).unwrap();
    assert_eq!(
        study.scenarios.get(0).expect("it is one of them").scenario.flows[0].forward,
        [sojourn_core::PortId(5)]
    );
    for (old, new, message) in [
        (
            "name = \"c\"",
            "name = \"b\"",
            "t.toml:10:8: scenario.node.2.name: another node is named 'b' already (allowed: every name once)",
        ),
        (
            "name = \"bc\"",
            "name = \"ab\"",
            "t.toml:19:8: scenario.link.1.name: another queue is named 'ab' already (allowed: every name once)",
        ),
        (
            "name = \"bc\"",
            "name = \"reverse_ab\"",
            "t.toml:19:8: scenario.link.1.name: another queue is named 'reverse_ab' already",
        ),
        (
            "to = \"c\"",
            "to = \"d\"",
            "t.toml:21:6: scenario.link.1.to: no node is named 'd' (allowed: a, b, c)",
        ),
        (
            "to = \"c\"",
            "to = \"b\"",
            "t.toml:21:6: scenario.link.1.to: link 'bc' ends where it begins (allowed: a, c)",
        ),
        (
            "to = \"c\"",
            "to = \"a\"",
            "t.toml:29:7: scenario.flow.0.dst: no way leads from 'a' to 'c' (allowed: b)",
        ),
        (
            "dst = \"c\"",
            "dst = \"a\"",
            "t.toml:29:7: scenario.flow.0.dst: is the same as src (allowed: b, c)",
        ),
        ("dst = \"c\"\n", "", "scenario.flow.0.dst: is missing (allowed: a, b, c)"),
        (
            "dst = \"c\"",
            "dst = \"c\"\nhop = 1",
            "t.toml:30:7: scenario.flow.0.hop: has no meaning between free nodes; src and dst say the way",
        ),
    ] {
        assert_eq!(FREE.matches(old).count(), 1, "'{old}' stands there once");
        let error = read(&FREE.replace(old, new)).expect_err(new);
        assert!(error.contains(message), "\n  wanted: {message}\n  found:  {error}");
    }
}

#[test]
fn files_that_are_no_studies_are_refused() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path();
    let load = |name: &str, bytes: &[u8]| {
        let path = folder.join(name);
        std::fs::write(&path, bytes).unwrap();
        let error = Study::load(&path, &Overrides::default()).unwrap_err().to_string();
        error.strip_prefix(&path.display().to_string()).unwrap_or(&error).to_owned()
    };
    assert_eq!(
        load("latin1.toml", b"schema = 1\ntitle = \"caf\xe9\"\n"),
        ":2:13: byte 0xe9 is no text (allowed: text in UTF-8)"
    );
    // The nearest match is named.
    let error = Study::load(&folder.join("latin2.toml"), &Overrides::default()).unwrap_err();
    assert!(
        error.to_string().contains("did you mean 'latin1.toml'? (allowed: a study file, a"),
        "{error}"
    );
    assert!(load("nul.toml", b"schema = 1\0").contains("not TOML"));
    assert!(load("empty.toml", b"").contains("schema: is missing (allowed: schema = 1)"));
    assert!(load("binary.toml", &[0x89, b'P', b'N', b'G']).contains("byte 0x89 is no text"));
    // A file longer than any study is refused, whatever it contains.
    assert!(load("long.toml", &vec![b' '; (64 << 20) + 1]).contains("allowed: at most 64 MiB"));
}

/// Ten megabytes of good study are a study.
#[test]
fn a_long_study_is_read() {
    let claim = "[[claim]]\nid = \"ID\"\ntext = \"TEXT\"\nexpect = \"goodput(cubic) > 5 Mbps\"\n";
    let words = "word ".repeat(180);
    let claims: String = (0..10_000)
        .map(|n| claim.replace("ID", &format!("L{n}")).replace("TEXT", &words))
        .collect();
    assert!(claims.len() > 9_000_000);
    assert_eq!(read(&format!("{GOOD}{claims}")).unwrap().claims.len(), 10_001);
}

#[test]
fn a_study_without_a_shape_or_with_two_says_which_there_are() {
    let path = "[scenario.path]\nrate = \"10Mbps\"\nrtt = \"20ms\"\nqueue = \"pfifo limit 50\"\n";
    let text =
        GOOD.replace(path, "").replace("\"path.queue\" = [\"pfifo limit 50\", \"fq_codel\"]\n", "");
    let error = read(&text).unwrap_err();
    assert!(
        error.contains("no link is defined (allowed: [scenario.path], [scenario.gateway], [scenario.parking_lot]"),
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

/// Each breaks the good study in a way of its own; the line is where the mistake then stands.
const SEVERAL: [(&str, &str, &str); 9] = [
    ("title = \"a test\"", "title = 3", "t.toml:2:9: title: the number 3"),
    (
        "duration = \"10s\"",
        "duration = \"10x\"",
        "t.toml:5:12: scenario.duration: unknown unit 'x'",
    ),
    ("rate = \"10Mbps\"", "rat = \"10Mbps\"", "t.toml:9:1: scenario.path.rat: unknown key"),
    ("rtt = \"20ms\"", "rtt = 20", "t.toml:10:7: scenario.path.rtt: the number 20"),
    (
        "cca = \"cubic\"\n",
        "cca = \"qubic\"\n",
        "t.toml:16:7: scenario.flow.0.cca: unknown congestion",
    ),
    (
        "[\"pfifo limit 50\", \"fq_codel\"]",
        "[\"pfifo limit 50\", \"fq_codl\", \"fq_codel\"]",
        "t.toml:23:35: scenario.path.queue: unknown queue",
    ),
    ("seeds = 2", "seeds = 0", "t.toml:27:9: repeat.seeds: no seeds"),
    ("y = \"goodput\"", "y = \"goodputs\"", "t.toml:32:5: views.share.y: no metric"),
    (
        "expect = [\"goodput(cubic) > 5 Mbps\"]",
        "expect = [\"goodput(qubic) > 5 Mbps\", \"rtt_p50(echo) > 5 Mbps\"]",
        "t.toml:38:20: claim.0.expect: no flow or queue is named 'qubic'",
    ),
];

#[test]
fn all_mistakes_are_told_at_once_in_the_order_of_the_file() {
    let text = SEVERAL.iter().fold(GOOD.to_owned(), |text, (old, new, _)| {
        assert_eq!(text.matches(old).count(), 1, "'{old}' stands there once");
        text.replace(old, new)
    });
    let error = read(&text).expect_err("nine mistakes");
    let lines: Vec<&str> = error.lines().collect();
    for (line, (.., message)) in lines.iter().zip(&SEVERAL) {
        assert!(line.starts_with(message), "\n  wanted: {message}\n  found:\n{error}");
    }
    assert!(lines[9].starts_with("t.toml:38:"), "the second expectation too:\n{error}");
    assert_eq!(lines.len(), 10, "{error}");
}

/// Of any two mistakes, both are reported, and nothing else is.
#[test]
fn two_mistakes_are_two_lines() {
    for (one, first) in SEVERAL.iter().enumerate() {
        for second in &SEVERAL[one + 1..] {
            let text = GOOD.replace(first.0, first.1).replace(second.0, second.1);
            let error = read(&text).expect_err("two mistakes");
            let lines: Vec<&str> = error.lines().collect();
            // The last of the list has two expectations.
            let wanted = if second.2.contains("expect") { 3 } else { 2 };
            assert_eq!(lines.len(), wanted, "{} and {}:\n{error}", first.2, second.2);
            assert!(lines[0].starts_with(first.2) && lines[1].starts_with(second.2), "{error}");
        }
    }
}

#[test]
fn mistakes_of_toml_are_told_at_once() {
    let text = GOOD.replace("rate = \"10Mbps\"", "rate = ").replace("seeds = 2", "seeds == 2");
    let error = read(&text).expect_err("two mistakes");
    let places: Vec<&str> =
        error.lines().filter_map(|line| line.split(": not TOML").next()).collect();
    assert_eq!(places.len(), 2, "{error}");
    assert!(places[0].starts_with("t.toml:9:") && places[1].starts_with("t.toml:27:"), "{error}");
}

#[test]
fn mistakes_without_number_are_bounded() {
    let claims: String = (0..100)
        .map(|n| format!("[[claim]]\nid = \"L{n}\"\ntext = \"t\"\nexpect = \"nothing\"\n"))
        .collect();
    let error = read(&format!("{GOOD}{claims}")).expect_err("a hundred mistakes");
    assert_eq!(error.lines().count(), 20);
}

#[test]
fn the_value_of_a_key_with_another_name_is_no_second_mistake() {
    // `on` is near `ecn`, whose values are others.
    let said = mistake("cca = \"cubic\"", "cca = \"cubic\"\non = \"50ms\"");
    assert!(
        said.contains("scenario.flow.0.on: has no meaning for the application 'bulk'"),
        "{said}"
    );
    assert!(!said.contains("'50ms'"), "{said}");
}

#[test]
fn each_wrong_change_is_one_mistake_at_its_own_place() {
    let change = |name: &str, rest: &str| {
        format!("[[scenario.change]]\nname = \"{name}\"\nwhen = \"cubic enters css\"\n{rest}\n")
    };
    let changes = [
        change("a", "queue = \"nosuch\"\nrate = \"5mbit\""),
        change("b", "queue = \"queue\"\nrate = \"5mbit\""),
        change("c", "flow = \"cubic\"\ndelay = \"3ms\""),
        change("d", "flow = \"cubic\"\nloss = \"1%\""),
        change("e", "flow = \"qubic\"\nstop = true"),
    ];
    let both = GOOD.replace("[\"cubic\", \"bbr\"]", "[\"cubic\", \"cubic beta=0.5\"]");
    let text = both.replace("[factors]", &(changes.concat() + "[factors]"));
    let error = read(&text).expect_err("four are wrong").to_string();
    let keys = ["change.0.queue", "change.2.delay", "change.3.loss", "change.4.flow"];
    let lines: Vec<&str> = error.lines().collect();
    assert_eq!(lines.len(), keys.len(), "{error}");
    for (line, key) in lines.iter().zip(keys) {
        assert!(line.contains(&format!("scenario.{key}: ")), "{error}");
    }
    // A factor of a change that is wrong is no other mistake.
    let text = text.replace("[factors]", "[factors]\n\"change.a.rate\" = [\"1mbit\", \"2mbit\"]");
    assert_eq!(read(&text).expect_err("four are wrong").to_string().lines().count(), 4);
}

/// What a repair removed is missed by whatever names it, which is no mistake of its own.
#[test]
fn a_list_with_a_mistake_is_not_also_said_to_be_missing() {
    let told = |text: &str, set: &[&str]| {
        let set = set.iter().map(|set| (*set).to_owned()).collect();
        let overrides = Overrides { set, ..Overrides::default() };
        let error = Study::parse("t.toml", text, Path::new(""), &overrides).unwrap_err();
        error.mistakes().map(|mistake| mistake.key().to_owned()).collect::<Vec<_>>()
    };
    let change = |when: &str| {
        let change = format!(
            "[[scenario.change]]\nname = \"x\"\nwhen = \"{when}\"\nqueue = \"queue\"\nrate = \"5Mbps\"\n"
        );
        GOOD.replace("[factors]", &format!("{change}\n[factors]"))
            .replace("[\"cubic\", \"bbr\"]", "[\"cubic\"]")
    };
    let set = &["change.x.occurrence=0"][..];
    assert_eq!(told(&change("cubic enters css"), set), ["scenario.change.0.occurrence"]);
    assert_eq!(told(&change("cubic enters nowhere"), set), ["scenario.change.0.when"]);
    assert_eq!(
        told(&change("cubic entrs css"), &["change.x.rate=4Mbps"]),
        ["scenario.change.0.when"]
    );
    // A workload that is wrong brings no flows.
    let flows = &GOOD[GOOD.find("[[scenario.flow]]").unwrap()..GOOD.find("[factors]").unwrap()];
    let workload = GOOD
        .replace(flows, "")
        .replace("duration = ", "workload = \"foo\"\nduration = ")
        .replace("flow.cubic.cca", "flow.up.cca")
        .replace("goodput(cubic)", "goodput(up)");
    assert_eq!(told(&workload, &[]), ["scenario.workload"]);
    assert_eq!(told(&workload, &["flow.down.cca=reno"]), ["scenario.workload"]);
    let factor = workload.replace("workload = \"foo\"\n", "");
    let factor = factor.replace("[factors]\n", "[factors]\nworkload = [\"foo\"]\n");
    assert_eq!(told(&factor, &[]), ["scenario.workload"]);
    // A table or a list that is none.
    let path =
        &GOOD[GOOD.find("[scenario.path]").unwrap()..GOOD.find("[[scenario.flow]]").unwrap()];
    let number =
        GOOD.replace(path, "").replace("duration = ", "path = 3\nchange = [4]\nduration = ");
    let number = number.replace("\"path.queue\" = ", "\"path.rtt\" = ");
    let keys = told(&number, &["path.rate=3Mbps", "change.x.rate=4Mbps"]);
    assert_eq!(keys[0], "scenario.path", "{keys:?}");
    assert!(
        keys.iter().all(|key| !key.starts_with("path") && !key.starts_with("change")),
        "{keys:?}"
    );
    let none = GOOD.replace(flows, "").replace("duration = ", "flow = 3\nduration = ");
    let keys = told(&none, &[]);
    assert_eq!(keys.iter().filter(|key| key.starts_with("scenario")).count(), 1, "{keys:?}");
}

#[test]
fn a_change_that_cannot_be_says_what_can() {
    let study = |change: &str| {
        let change = format!("[[scenario.change]]\nname = \"fall\"\n{change}\n\n[factors]");
        read(&GOOD.replace("[factors]", &change))
    };
    study("when = \"cubic enters convex\"\noccurrence = 2\nafter = \"1s\"\nqueue = \"queue\"\nrate = \"5mbit\"\nloss = \"1%\"")
        .expect_err("bbr, the other congestion control, is never convex");
    let both = GOOD.replace("[\"cubic\", \"bbr\"]", "[\"cubic\", \"cubic beta=0.5\"]");
    let change = "[[scenario.change]]\nname = \"fall\"\nwhen = \"cubic enters convex\"\nqueue = \"queue\"\nrate = \"5mbit\"\nloss = \"1%\"\n\n[factors]\n\"change.fall.rate\" = [\"1mbit\", \"2mbit\"]";
    let good = read(&both.replace("[factors]", change)).expect("all controllers have the phase");
    assert_eq!(good.scenarios.len(), 8);
    for (change, wrong) in [
        (
            "when = \"cubic is convex\"\nqueue = \"queue\"\nrate = \"5mbit\"",
            "'cubic is convex' is not what a change waits for (allowed: FLOW enters PHASE",
        ),
        (
            "when = \"qubic enters convex\"\nqueue = \"queue\"\nrate = \"5mbit\"",
            "scenario.change.0.when: no flow is named 'qubic'; did you mean 'cubic'?",
        ),
        (
            "when = \"echo enters convex\"\nqueue = \"queue\"\nrate = \"5mbit\"",
            "flow 'echo' has no phases (allowed: 'cubic'",
        ),
        (
            "when = \"cubic enters DRAIN\"\nqueue = \"queue\"\nrate = \"5mbit\"",
            "'cubic' has no phase 'DRAIN' (allowed: slow_start, css, avoidance, reno_friendly, concave, convex)",
        ),
        (
            "when = \"cubic enters slow_start\"\noccurrence = 0\nqueue = \"queue\"\nrate = \"5mbit\"",
            "scenario.change.0.occurrence: occurrence is 0",
        ),
        (
            "when = \"cubic enters css\"",
            "scenario.change.0.name: it does not say what changes (allowed: queue, flow)",
        ),
        (
            "when = \"cubic enters css\"\nqueue = \"queue\"",
            "scenario.change.0.queue: nothing of it changes (allowed: rate, loss, delay)",
        ),
        (
            "when = \"cubic enters css\"\nqueue = \"quewe\"\nrate = \"5mbit\"",
            "no queue is named 'quewe'; did you mean 'queue'?",
        ),
        (
            "when = \"cubic enters css\"\nqueue = \"queue\"\npause = \"1s\"",
            "scenario.change.0.pause: has no meaning for a queue (allowed: rate, loss, delay)",
        ),
        (
            "when = \"cubic enters css\"\nflow = \"cubic\"\nqueue = \"queue\"",
            "scenario.change.0.flow: a change is of a queue or of a flow, not of both",
        ),
        (
            "when = \"cubic enters css\"\nqueue = \"queue\"\nrate = \"steps 1mbit 1s\"",
            "'steps 1mbit 1s' is not one rate",
        ),
        (
            "when = \"cubic enters css\"\nflow = \"echo\"\npause = \"1s\"",
            "flow 'echo' writes as it has planned",
        ),
        (
            "when = \"cubic enters css\"\nflow = \"cubic\"\nstart = true",
            "flow 'cubic' waits for itself",
        ),
    ] {
        let error = study(change).expect_err(wrong).to_string();
        assert!(error.contains(wrong), "{error}");
    }
}

/// A sound name takes the place of the wrong one while other mistakes are looked for; nobody is to read it.
#[test]
fn names_that_only_a_repair_has_are_not_told() {
    let text = "schema = 1\ntitle = \"t\"\n[scenario]\nduration = \"2s\"\n[[scenario.node]]\nname = \"ap\"\n\
                [[scenario.radio]]\nname = \"w\"\nap = \"ap\"\n[[scenario.radio.station]]\nname = \"ap\"\nmode = \"he mcs 5\"\n\
                [[scenario.flow]]\nname = \"f\"\napp = \"bulk\"\nsrc = \"ap\"\ndst = \"s1\"\n";
    let told = read(text).unwrap_err();
    assert!(told.contains("another node is named 'ap' already"), "{told}");
    assert!(!told.contains("healed"), "{told}");
}
