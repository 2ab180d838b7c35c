use proptest::prelude::*;
use sojourn_core::Span;

use super::*;

const BASE: &str = r#"
schema = 1
title = "t"
[scenario]
duration = "20s"
warmup = "4s"
[scenario.path]
rate = "10Mbps"
rtt = "20ms"
queue = "pfifo limit 50"
[[scenario.flow]]
name = "a"
app = "bulk"
start_jitter = "1s"
stop = "10s"
[[scenario.flow]]
name = "b"
app = "bulk"
count = 2
"#;

fn read(more: &str, overrides: &Overrides) -> Result<Study, String> {
    Study::parse("t.toml", &format!("{BASE}{more}"), Path::new(""), overrides)
        .map_err(|error| error.to_string())
}

fn study(more: &str) -> Study {
    read(more, &Overrides::default()).unwrap_or_else(|error| panic!("{error}"))
}

fn with(more: &str, set: &[&str]) -> Study {
    let set = set.iter().map(|set| (*set).to_owned()).collect();
    read(more, &Overrides { set, ..Overrides::default() }).unwrap_or_else(|error| panic!("{error}"))
}

fn values(study: &Study) -> Vec<Vec<String>> {
    study.scenarios.iter().map(|scenario| scenario.factors.clone()).collect()
}

#[test]
fn a_value_may_go_with_several_of_another_factor() {
    let zipped = "[[factors.zip]]\ncca = [\"cubic\", \"bbr\", \"prague\"]\n\
                  path.queue = [\"pfifo limit 50\", \"pfifo limit 50\", \"dualpi2\"]\n";
    let all = study(zipped);
    assert_eq!(
        values(&all),
        [["cubic", "pfifo limit 50"], ["bbr", "pfifo limit 50"], ["prague", "dualpi2"]]
    );
    let plan = all.plan();
    assert_eq!(plan.factors[1].values, ["pfifo limit 50", "dualpi2"]);
    assert_eq!(plan.companion(0, "bbr", 1), Some("pfifo limit 50"));
    assert_eq!(plan.companion(1, "pfifo limit 50", 0), None);
    let fifo = with(zipped, &["path.queue=pfifo limit 50"]);
    assert_eq!(values(&fifo), [["cubic", "pfifo limit 50"], ["bbr", "pfifo limit 50"]]);
    let again = Study::parse("again", fifo.text(), Path::new(""), &Overrides::default()).unwrap();
    assert_eq!(values(&again), values(&fifo));
}

#[test]
fn the_study_as_run_gives_the_same_runs_again() {
    let factors = "[factors]\npath.rtt = [\"10ms\", \"30ms\"]\n[repeat]\nseeds = 2\n";
    let shorten = Overrides { shorten: Some(Span::from_millis(1500)), ..Overrides::default() };
    let study = read(factors, &shorten).unwrap();
    let again = Study::parse("again", study.text(), Path::new(""), &Overrides::default()).unwrap();
    assert_eq!(study.plan().digest, again.plan().digest, "{}", study.text());
    assert_eq!(
        again.scenarios.get(0).expect("it is one of them").scenario.duration,
        Span::from_millis(1500)
    );
    for set in [
        &[][..],
        &["path.rate=40mbps"],
        &["path.rtt=5ms"],
        &["path.queue=[\"codel\", \"fq_codel\"]"],
    ] {
        let study = with(factors, set);
        let again = Study::parse("again", study.text(), Path::new(""), &Overrides::default());
        let again = again.unwrap_or_else(|error| panic!("{error}\n{}", study.text()));
        assert_eq!(study.plan().digest, again.plan().digest, "{}", study.text());
        assert_eq!(study.text().contains("--set"), !set.is_empty());
    }
}

#[test]
fn claims_over_values_that_the_command_line_took_away_are_no_mistake() {
    let text = "[factors]\npath.rtt = [\"10ms\", \"30ms\"]\n\
                [[claim]]\nid = \"c\"\ntext = \"t\"\nwhere = { \"path.rtt\" = \"30ms\" }\n\
                expect = \"goodput(a) > goodput(a, path.rtt = '10ms')\"\n";
    let study = with(text, &["path.rtt=5ms"]);
    assert_eq!(study.claims.len(), 1);
    let again = Study::parse("again", study.text(), Path::new(""), &Overrides::default()).unwrap();
    assert_eq!(again.plan().digest, study.plan().digest);
}

#[test]
fn names_that_the_command_line_took_away_are_no_mistake() {
    let text = "[factors]\nflow.b.count = [0, 2]\n\
                [views.rates]\nkind = \"series\"\ny = \"goodput_mbps\"\nof = [\"a\", \"b.2\"]\n\
                [views.bars]\nkind = \"bars\"\ny = \"goodput(b)\"\n\
                [[claim]]\nid = \"c\"\ntext = \"t\"\nexpect = \"goodput(b) > 1 Mbps\"\n";
    let alone = with(text, &["flow.b.count=0"]);
    let notes = [
        ("view 'rates': 'b.2' is in no scenario", 1),
        ("view 'bars': 'b' is in no scenario", 1),
        ("claim 'c': 'goodput_mbps(b)' has no value", 1),
    ];
    assert_eq!(alone.notices(), notes);
    // As results keep it, and changed once more.
    let read_again = |set: &[&str]| {
        let set = set.iter().map(|set| (*set).to_owned()).collect();
        let overrides = Overrides { set, ..Overrides::default() };
        Study::parse("again", alone.text(), Path::new(""), &overrides).map_err(|e| e.to_string())
    };
    let again = read_again(&[]).unwrap();
    assert_eq!(again.notices(), notes);
    assert_eq!(again.plan().digest, alone.plan().digest);
    assert_eq!(Study::claims_of(alone.text(), &alone.plan()).unwrap().len(), 1);
    let twice = read_again(&["path.rate=9Mbps"]).unwrap();
    assert_eq!(twice.notices(), notes);
    // What no scenario of the study has is a mistake of it.
    let wrong = Overrides { set: vec!["flow.b.count=0".into()], ..Overrides::default() };
    let error = read(&text.replace("goodput(b) > ", "goodput(c) > "), &wrong).unwrap_err();
    assert!(error.contains("no flow or queue is named 'c'"), "{error}");
    let error = read(&text.replace("b.2", "b.3"), &wrong).unwrap_err();
    assert!(error.contains("no flow or queue is named 'b.3'"), "{error}");
}

#[test]
fn an_axis_may_be_left_with_one_value() {
    let of = |values: &str, set: &[&str]| {
        let set = set.iter().map(|set| (*set).to_owned()).collect();
        let view = "[views.v]\nkind = \"line\"\nx = \"path.queue\"\ny = \"goodput\"\n";
        let text = format!("[factors]\npath.queue = [{values}]\n{view}");
        read(&text, &Overrides { set, ..Overrides::default() }).map(|_| ())
    };
    let fifos = "'pfifo limit 5', 'pfifo limit 9'";
    assert_eq!(of(fifos, &[]), Ok(()));
    assert_eq!(of(fifos, &["path.queue=pfifo limit 5"]), Ok(()));
    assert_eq!(of(fifos, &["path.queue=codel"]), Ok(()));
    assert_eq!(of("'pfifo limit 5'", &[]), Ok(()));
    let error = of("'codel'", &[]).unwrap_err();
    assert!(error.contains("'codel', the only value of 'path.queue', does not have one number"));
    let error = of("'codel', 'pfifo limit 5'", &[]).unwrap_err();
    assert!(error.contains("the values of 'path.queue' differ in more than one number"), "{error}");
}

#[test]
fn a_run_is_named_by_what_it_is_and_not_where_it_stands() {
    let id = |study: &Study, run: usize| study.plan().runs[run].id;
    let alone = study("");
    let second = study("[factors]\npath.rtt = [\"10ms\", \"20ms\"]\n");
    assert_eq!(id(&alone, 0), id(&second, 1));
    assert_ne!(id(&second, 0), id(&second, 1));
    assert_ne!(id(&alone, 0), id(&with("", &["path.rate=11Mbps"]), 0));
    assert_ne!(id(&alone, 0), id(&with("", &["repeat.seeds=[2]"]), 0));
    assert_ne!(id(&alone, 0), id(&with("", &["repeat.study_seed=2"]), 0));
    // Words about the study are no part of its runs.
    let renamed = BASE.replace("title = \"t\"", "title = \"another\"");
    let renamed = Study::parse("t.toml", &renamed, Path::new(""), &Overrides::default()).unwrap();
    assert_eq!(alone.plan().digest, renamed.plan().digest);
}

/// Folders are resumed by these. They change with the version of the models and with the canonical
/// text of a scenario, never by a name in the code; a change is one for the changelog.
#[test]
fn the_name_of_a_run_is_this() {
    let text = study("").scenarios.get(0).expect("it is one of them").scenario.canonical();
    assert_eq!(text, include_str!("canonical.txt"));
    assert_eq!(run_id(&text, 1, 7, "0.1.0-6").to_string(), "7e747280c025f43bcdcbbe8e34b88286");
    // Nothing of the machine: no address, no path.
    assert!(!text.contains("0x") && !text.contains('/'), "{text}");
}

proptest! {
    #[test]
    fn what_is_set_is_in_the_study_as_run(
        sets in prop::collection::vec(
            prop::sample::select(vec![
                "path.rate=11Mbps", "path.rtt=[\"5ms\", \"7ms\"]", "flow.a.cca=reno", "cca=bbr",
                "flow.b.count=3", "repeat.seeds=2", "repeat.seeds=[4, 9]", "path.queue=fq_codel limit 100",
                "flow.*.start=1s", "duration=12s", "path.queue=[\"codel\", \"pie\"]", "flow.b.count=[1, 2]",
            ]),
            0..4,
        ),
        shorten in prop::option::of(1u64..30_000),
    ) {
        let set = sets.iter().map(|set| (*set).to_owned()).collect();
        let overrides = Overrides { set, seeds: None, shorten: shorten.map(Span::from_millis) };
        if let Ok(study) = Study::parse("t", BASE, Path::new(""), &overrides) {
            let again = Study::parse("t", study.text(), Path::new(""), &Overrides::default());
            prop_assert_eq!(again.unwrap().plan().digest, study.plan().digest);
        }
    }
}

fn expecting(expectation: &str) -> String {
    format!("[[claim]]\nid = \"c\"\ntext = \"t\"\nexpect = \"{expectation}\"\n")
}

#[test]
fn a_part_of_the_run_that_the_command_line_cuts_off_is_noted() {
    let claim = expecting("cwnd(a) during 2s..12s > 1");
    assert_eq!(study(&claim).notices(), []);
    let note = "claim 'c': 'cwnd(a) during 2s..12s > 1' is cut at 8s, where the longest run ends";
    let shorten = Overrides { shorten: Some(Span::from_secs(8)), ..Overrides::default() };
    let set = Overrides {
        set: vec!["duration=8s".into(), "flow.a.stop=5s".into()],
        ..Overrides::default()
    };
    for overrides in [shorten, set] {
        let cut = read(&claim, &overrides).unwrap();
        assert_eq!(cut.notices().last(), Some(&(note, 1)));
        // As results keep it.
        let again = Study::parse("again", cut.text(), Path::new(""), &Overrides::default());
        assert_eq!(again.unwrap().notices().last(), Some(&(note, 1)));
    }
    let error = read(&expecting("cwnd(a) during 2s..22s > 1"), &Overrides::default()).unwrap_err();
    assert!(error.contains("no run lasts longer than 20s"), "{error}");
}

#[test]
fn a_claim_names_phases_that_the_flows_controllers_have() {
    let of = |cca: &str, phase: &str, overrides: &Overrides| {
        let claim = expecting(&format!("phase_share(a, phase = '{phase}') < 50 %"));
        read(&format!("[factors]\n\"flow.a.cca\" = [{cca}]\n{claim}"), overrides)
    };
    let none = Overrides::default();
    assert!(of("'bbr'", "PROBE_BW", &none).is_ok());
    assert!(of("'reno', 'bbr'", "DRAIN", &none).is_ok(), "one of them has it");
    let error = of("'bbr'", "NOPE", &none).unwrap_err();
    assert!(error.contains("'a' has no phase 'NOPE' (allowed: "), "{error}");
    assert!(error.contains("DRAIN"), "{error}");
    let set = Overrides { set: vec!["flow.a.cca=reno".into()], ..none };
    assert!(of("'bbr'", "DRAIN", &set).is_ok(), "the command line took it away");
}

#[test]
fn claims_that_no_run_can_change_are_noted() {
    let notices = |text: &str| study(&expecting(text)).notices().len();
    assert_eq!(notices("goodput(a) > 1 Mbps"), 0);
    assert_eq!(notices("2 > 1"), 1);
    let same = study(&expecting("goodput(a) >= goodput(a)"));
    let note =
        "claim 'c': 'goodput(a) >= goodput(a)' compares a metric with itself, so no run changes it";
    assert_eq!(same.notices(), [(note, 1)]);
}

/// One flow of each application that has metrics of its own, and claims on them.
#[test]
fn a_claim_on_what_a_flow_never_has_is_a_mistake() {
    let flows = "[[scenario.flow]]\nname = \"some\"\napp = \"bulk\"\nbytes = \"1MB\"\n\
                 [[scenario.flow]]\nname = \"echo\"\napp = \"ping\"\n\
                 [[scenario.flow]]\nname = \"voice\"\napp = \"udp\"\nrate = \"100kbps\"\n\
                 [[scenario.flow]]\nname = \"talk\"\napp = \"call\"\n";
    let with = |expect: &str, more: &str| {
        let claim = format!("[[claim]]\nid = \"c\"\ntext = \"t\"\nexpect = \"{expect}\"\n{more}");
        read(&format!("{flows}{claim}"), &Overrides::default())
    };
    for sound in [
        "fct_p50(some) < 1s",
        "completions(some) > 0",
        "ping_p50(echo) < 1s",
        "rtt_p95(echo) during 5s..9s < 1s",
        "mos(voice) > 1",
        "owd_p50(voice) < 1s",
        "mos_voice(talk) > 1",
        "frames_encoded(talk) during 5s..9s > 1",
        "sojourn_p95(queue) < 1s",
        "jain() > 0.5",
        "goodput(a) > 0",
    ] {
        with(sound, "").unwrap_or_else(|error| panic!("{sound}: {error}"));
    }
    for (wrong, said) in [
        (
            "fct_p50(a) < 1s",
            "'a' (bulk) never has 'fct_p50_ms'; flows of bulk with bytes, arrivals, page and requests do",
        ),
        ("goodput(a) > fct_p95(b) * 1 Mbps / 1s", "'b' (bulk) never has 'fct_p95_ms'"),
        (
            "mos(echo) > 1",
            "'echo' (ping) never has 'mos'; flows of udp and frames do (allowed: sent_packets",
        ),
        ("goodput(echo) > 0", "'echo' (ping) never has 'goodput_mbps'; flows of bulk,"),
        ("cwnd_p50(voice) > 1", "'voice' (udp) never has 'cwnd_p50_pkts'; flows of bulk,"),
        ("cwnd(voice) during 5s..9s > 1", "'voice' (udp) never has 'cwnd_pkts'; flows of bulk,"),
        ("mos(talk) > 1", "'talk' (call) never has 'mos'; flows of udp and frames do"),
        ("timeouts(a) < timeouts(talk)", "'talk' (call) never has 'timeouts'"),
        ("reported_rtt(a) < 1s", "'a' (bulk) never has 'reported_rtt_ms' with this engine"),
        ("airtime_share(queue) > 0", "'queue' is a queue that never has 'airtime_share'"),
        ("lateness_p99() < 1ms", "no run of these scenarios has 'lateness_p99_ms'"),
    ] {
        let error = with(wrong, "").expect_err(wrong);
        assert!(error.contains(said), "{wrong}: {error}");
        assert!(error.starts_with("t.toml:") && error.contains("claim.0.expect"), "{error}");
    }
}

/// It may have it in the scenarios that count.
#[test]
fn a_claim_on_what_a_flow_has_in_some_scenarios_is_read_with_a_note() {
    let app = |app: &str, value: &str| {
        format!(
            "[factors]\n\"flow.a.app\" = [\"bulk\", \"ping\"]\n[[claim]]\nid = \"c\"\ntext = \"t\"\n\
             expect = \"{value}\"\nwhere = {{ \"flow.a.app\" = {app} }}\n"
        )
    };
    let note = ("claim 'c': 'goodput_mbps(a)' has no value", 1);
    let notices = |text: &str| {
        let study = study(text);
        study.notices().iter().map(|(text, count)| ((*text).to_owned(), *count)).collect::<Vec<_>>()
    };
    assert_eq!(
        notices(&app("[\"bulk\", \"ping\"]", "goodput(a) > 0")),
        [(note.0.to_owned(), note.1)]
    );
    assert_eq!(notices(&app("\"bulk\"", "goodput(a) > 0")), []);
    let error = read(&app("\"ping\"", "goodput(a) > 0"), &Overrides::default()).unwrap_err();
    assert!(error.contains("'a' (ping) never has 'goodput_mbps'"), "{error}");
    // What the command line made of the study is not its author's mistake.
    let changed = with(&app("\"bulk\"", "cwnd_p50(a) > 0"), &["flow.a.app=ping"]);
    assert!(changed.notices().is_empty(), "the claim speaks of no scenario that is left");
    let text = "[[claim]]\nid = \"c\"\ntext = \"t\"\nexpect = \"timeouts(a) < 9\"\n";
    let fluid = with(text, &["engine=fluid"]);
    assert_eq!(fluid.notices(), [("claim 'c': 'timeouts(a)' has no value", 1)]);
}
