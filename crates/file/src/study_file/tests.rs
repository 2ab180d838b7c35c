use proptest::prelude::*;

use sojourn_core::Params;
use sojourn_core::param::Style;
use sojourn_host::{AppModel, Endpoint, FlowSetup};

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

fn read(more: &str, overrides: &Overrides) -> Result<StudyFile, String> {
    StudyFile::parse("t.toml", &format!("{BASE}{more}"), Path::new(""), overrides)
        .map_err(|error| error.to_string())
}

fn study(more: &str) -> StudyFile {
    read(more, &Overrides::default()).unwrap_or_else(|error| panic!("{error}"))
}

fn with(more: &str, set: &[&str]) -> StudyFile {
    let set = set.iter().map(|set| (*set).to_owned()).collect();
    read(more, &Overrides { set, ..Overrides::default() }).unwrap_or_else(|error| panic!("{error}"))
}

fn values(study: &StudyFile) -> Vec<Vec<String>> {
    study.scenarios.iter().map(|scenario| scenario.factors.clone()).collect()
}

#[test]
fn factors_are_crossed_and_the_first_changes_slowest() {
    let study =
        study("[factors]\npath.rtt = [\"10ms\", \"30ms\"]\n\"cca\" = [\"cubic\", \"reno\"]\n");
    assert_eq!(
        values(&study),
        [["10ms", "cubic"], ["10ms", "reno"], ["30ms", "cubic"], ["30ms", "reno"]]
    );
    assert_eq!(
        study.scenarios.get(2).expect("it is one of them").scenario.links[0].delay,
        Span::from_millis(15)
    );
    let second = study.scenarios.get(1).expect("it is one of them");
    let ccas = second.flows.iter().map(|flow| flow.cca.as_deref());
    assert!(ccas.into_iter().all(|cca| cca == Some("reno")));
}

#[test]
fn what_a_factor_would_replace_cannot_be_set() {
    let set = |factor: &str, set: &str| {
        let overrides = Overrides { set: vec![set.into()], ..Overrides::default() };
        read(&format!("[factors]\n{factor}\n"), &overrides).err()
    };
    for (factor, by, says) in [
        ("flow.a.cca = [\"cubic\", \"reno\"]", "cca=bbr", "--set flow.a.cca=VALUE"),
        ("cca = [\"cubic\", \"reno\"]", "flow.a.cca=bbr", "--set cca=VALUE"),
        ("flow.a.start = [\"1s\", \"2s\"]", "flow.*.start=3s", "varies 'flow.a.start'"),
    ] {
        let error = set(factor, by).unwrap_or_else(|| panic!("{by} changes nothing"));
        assert!(error.contains(says), "{error}");
    }
    assert_eq!(set("flow.a.cca = [\"cubic\", \"reno\"]", "flow.a.cca=bbr"), None);
    assert_eq!(set("flow.a.cca = [\"cubic\", \"reno\"]", "flow.a.start=1s"), None);
}

#[test]
fn zipped_factors_change_together() {
    let study = study(
        "[factors]\n\"cca\" = [\"cubic\", \"reno\"]\n[[factors.zip]]\n\
         path.rate = [\"10Mbps\", \"20Mbps\"]\npath.queue = [\"pfifo limit 50\", \"pfifo limit 100\"]\n",
    );
    assert_eq!(
        values(&study),
        [
            ["cubic", "10Mbps", "pfifo limit 50"],
            ["cubic", "20Mbps", "pfifo limit 100"],
            ["reno", "10Mbps", "pfifo limit 50"],
            ["reno", "20Mbps", "pfifo limit 100"],
        ]
    );
    let text = "[[factors.zip]]\npath.rate = [\"1Mbps\", \"2Mbps\"]\npath.rtt = [\"1ms\"]\n";
    let error = read(text, &Overrides::default()).unwrap_err();
    assert!(error.contains("different numbers of values: [2, 1]"), "{error}");
    let text = "[[factors.zip]]\ncca = [\"cubic\", \"reno\", \"cubic\"]\npath.rtt = [\"1ms\", \"1ms\", \"1ms\"]\n";
    let error = read(text, &Overrides::default()).unwrap_err();
    assert!(error.contains("'cubic', '1ms' is listed twice"), "{error}");
}

#[test]
fn combinations_can_be_left_out() {
    let study = study(
        "[factors]\npath.rtt = [\"10ms\", \"30ms\"]\ncca = [\"cubic\", \"reno\"]\n\
         [[factors.except]]\npath.rtt = \"30ms\"\ncca = [\"reno\"]\n",
    );
    assert_eq!(values(&study), [["10ms", "cubic"], ["10ms", "reno"], ["30ms", "cubic"]]);
}

#[test]
fn ranges_count_in_units_and_without_rounding_dust() {
    let factor = |range: &str| {
        let study = study(&format!("[factors]\n{range}\n"));
        study.factors.list()[0].values.clone()
    };
    assert_eq!(
        factor("path.rtt = { from = \"10ms\", to = \"50ms\", step = \"20ms\" }"),
        ["10ms", "30ms", "50ms"]
    );
    assert_eq!(
        factor("flow.b.count = { from = 1, to = 8, count = 4, scale = \"log\" }"),
        ["1", "2", "4", "8"]
    );
    assert_eq!(
        factor("path.rtt = { from = \"0.1ms\", to = \"0.3ms\", step = \"0.1ms\" }"),
        ["0.1ms", "0.2ms", "0.3ms"]
    );
    assert_eq!(factor("flow.b.count = { from = 3, to = 1, step = -1 }"), ["3", "2", "1"]);
    for (range, words) in [
        ("{ from = 1, to = 3 }", "a range needs one of the two (allowed: step, count)"),
        ("{ from = 1, to = 3, step = 0 }", "do not lead"),
        ("{ from = 1, to = 3, step = -1 }", "do not lead"),
        (
            "{ from = \"1ms\", to = \"3s\", step = \"1ms\" }",
            "'to' has 's' and 'from' has 'ms' (allowed: 'ms')",
        ),
        ("{ from = 1, to = 1000000, step = 0.001 }", "too many values"),
        ("{ from = 0, to = 3, count = 3, scale = \"log\" }", "above zero"),
        ("{ from = 1, to = 3, stepp = 1 }", "a range has no 'stepp'; did you mean 'step'?"),
        ("{ from = 1, step = 1 }", "'to' is missing"),
        ("{ from = 1, to = 3, step = 1, count = 2 }", "say the same"),
        ("{ from = 1, to = 3, count = 3, scale = \"lg\" }", "did you mean 'log'?"),
        ("{ from = 1, to = 3, count = 1 }", "'count' is out of range (allowed: a whole number"),
        ("{ from = 1, to = 3, count = 1000000000 }", "'count' is out of range"),
        ("{ from = nan, to = 3, step = 1 }", "NaN is too large"),
        ("{ from = 1, to = inf, step = 1 }", "inf is too large"),
        ("{ from = 1, to = 3, step = nan }", "NaN is too large"),
        ("{ from = \"ms\", to = 3, step = 1 }", "'ms' is no number with a unit"),
        ("{ from = [1], to = 3, step = 1 }", "a list is no number"),
        ("{}", "has no values"),
        (
            "[\"1ms\", \"1000us\"]",
            "'1000us' is listed twice, also as '1ms' (allowed: every value once)",
        ),
        ("\"10ms\"", "a text does not fit"),
    ] {
        let error =
            read(&format!("[factors]\npath.rtt = {range}\n"), &Overrides::default()).unwrap_err();
        assert!(error.contains(words), "\n  wanted: {words}\n  found:  {error}");
        assert!(error.contains("(allowed: "), "{error}");
        assert!(error.starts_with("t.toml:21:"), "{error}");
    }
}

#[test]
fn every_combination_of_kinds_of_keys_is_refused_where_it_grows_too_large() {
    let range = |n: u32| format!("{{ from = 1, to = {n}, step = 1 }}");
    for (more, set, words) in [
        // 10^9 scenarios.
        (
            format!(
                "[factors]\nflow.b.count = {}\nflow.a.dscp = {}\nflow.b.dscp = {}\n",
                range(1000),
                range(1000),
                range(1000)
            ),
            &[][..],
            "too many scenarios: 1000 × 1000 × 1000 (allowed: at most 100000)",
        ),
        // 10^4 scenarios of 10^4 flows.
        (
            "[factors]\nflow.b.mss = { from = 64, to = 10000, step = 1 }\n".to_owned(),
            &["flow.b.count=10000"],
            "too many flows in all (allowed: at most 2000000)",
        ),
        // 10^4 scenarios of 10^5 seeds.
        (
            format!("[factors]\nflow.b.dscp = {}\n", range(10_000)),
            &["repeat.seeds=100000"],
            "10000 scenarios and 100000 seeds make too many runs (allowed: at most 1000000)",
        ),
        (String::new(), &["step=1ns"], "into too many rows (allowed: 1ms or more)"),
        (String::new(), &["flow.b.count=100001"], "100001 is out of range (allowed: 0 to 100000)"),
    ] {
        let set = set.iter().map(|set| (*set).to_owned()).collect();
        let error = read(&more, &Overrides { set, ..Overrides::default() }).unwrap_err();
        assert!(error.contains(words), "\n  wanted: {words}\n  found:  {error}");
    }
}

#[test]
fn too_many_scenarios_are_refused_before_they_are_made() {
    let range = "{ from = 1, to = 1000, step = 1 }";
    let text = format!("[factors]\nflow.b.count = {range}\nflow.a.dscp = {range}\n");
    let error = read(&text, &Overrides::default()).unwrap_err();
    assert!(error.contains("combine to too many scenarios"), "{error}");
}

#[test]
fn setting_a_key_changes_the_scenario_and_setting_a_factor_its_values() {
    let factors = "[factors]\npath.rtt = [\"10ms\", \"30ms\"]\n";
    let study = with(factors, &["path.rate=40mbps", "path.rtt=5ms"]);
    assert_eq!(values(&study), [["5ms"]]);
    assert_eq!(study.scenarios.get(0).expect("it is one of them").queues[0].rate, "40mbps");
    let study = with(factors, &["path.rtt=[\"1ms\", \"2ms\", \"3ms\"]"]);
    assert_eq!(values(&study), [["1ms"], ["2ms"], ["3ms"]]);
    let study = with("", &["path.queue=[\"fq_codel\", \"codel\"]", "repeat.seeds=3"]);
    assert_eq!(values(&study), [["fq_codel"], ["codel"]]);
    assert_eq!(study.seeds, [1, 2, 3]);
    assert_eq!(
        with("", &["flow.*.start=2s"]).scenarios.get(0).expect("it is one of them").scenario.flows
            [2]
        .start,
        Span::from_secs(2)
    );
}

#[test]
fn a_value_of_a_zipped_factor_chooses_those_that_go_with_it() {
    let zipped = "[[factors.zip]]\npath.rate = [\"10Mbps\", \"20Mbps\"]\n\
                  path.queue = [\"pfifo limit 50\", \"pfifo limit 100\"]\n";
    assert_eq!(values(&with(zipped, &["path.rate=20Mbps"])), [["20Mbps", "pfifo limit 100"]]);
    // As the line that repeats a run has them.
    let all = with(zipped, &["path.rate=20Mbps", "path.queue=pfifo limit 100"]);
    assert_eq!(values(&all), [["20Mbps", "pfifo limit 100"]]);
    for (set, words) in [
        ("path.rate=30Mbps", "never is '30Mbps'; did you mean '10Mbps'? (allowed: 10Mbps, 20Mbps)"),
        ("path.rate=[\"10Mbps\"]", "a list does not fit (allowed: 10Mbps, 20Mbps)"),
    ] {
        let overrides = Overrides { set: vec![set.into()], ..Overrides::default() };
        let error = read(zipped, &overrides).unwrap_err();
        assert!(error.contains(words), "{error}");
    }
}

#[test]
fn a_shortened_study_keeps_its_proportions() {
    let overrides = Overrides { shorten: Some(Span::from_secs(5)), ..Overrides::default() };
    let study = read("", &overrides).unwrap();
    let scenario = &study.scenarios.get(0).expect("it is one of them").scenario;
    assert_eq!((scenario.duration, scenario.warmup), (Span::from_secs(5), Span::from_secs(1)));
    assert_eq!(scenario.flows[0].stop, Some(Span::from_millis(2500)));
    assert_eq!(scenario.flows[0].start_jitter, Span::from_millis(250));
}

#[test]
fn a_shortened_study_says_which_times_it_keeps() {
    let set = vec!["path.rate=steps 1mbit 2s 3mbit 20s".to_owned()];
    let notices = |shorten: Option<Span>| {
        let overrides = Overrides { set: set.clone(), shorten, ..Overrides::default() };
        let study = read("", &overrides).unwrap();
        study.scenarios.get(0).expect("it is one of them").notices.join("; ")
    };
    assert_eq!(notices(None), "");
    let notice = notices(Some(Span::from_secs(5)));
    assert!(notice.ends_with("the times in path.rate stay as they are"), "{notice}");
}

proptest! {
    #[test]
    fn no_text_makes_the_parser_panic(text in "\\PC{0,120}") {
        let _ = StudyFile::parse("t", &text, Path::new(""), &Overrides::default());
    }

    #[test]
    fn no_value_anywhere_makes_the_parser_panic(
        line in 0usize..17,
        value in prop::sample::select(vec![
            "0", "-1", "1e99", "\"\"", "\"0s\"", "\"18446744073709551615s\"", "\"999999999Gbps\"", "[]", "{}",
            "true", "[[1]]", "\"cake\"", "\"trace \"", "9223372036854775807", "nan", "\"é\"", "\"bulk\"", "1979-05-27",
        ]),
    ) {
        let lines: Vec<String> = BASE
            .lines()
            .enumerate()
            .map(|(index, text)| match text.split_once(" = ") {
                Some((key, _)) if index == line => format!("{key} = {value}"),
                _ => text.to_owned(),
            })
            .collect();
        let _ = StudyFile::parse("t", &lines.join("\n"), Path::new(""), &Overrides::default());
    }

    #[test]
    fn no_option_makes_the_parser_panic(
        address in prop::sample::select(vec![
            "path.rate", "path.rtt", "cca", "flow.a.count", "flow.b.start", "repeat.seeds", "duration", "path",
            "repeat.x", "flow.*.stop", "link.l.rate", "factors.x", "",
        ]),
        value in "\\PC{0,20}",
    ) {
        let overrides = Overrides { set: vec![format!("{address}={value}")], ..Overrides::default() };
        let _ = StudyFile::parse("t", BASE, Path::new(""), &overrides);
    }

    #[test]
    fn no_range_makes_the_parser_panic(
        parts in prop::collection::vec(
            (
                prop::sample::select(vec!["from", "to", "step", "count", "scale"]),
                prop::sample::select(vec![
                    "0", "1", "-1", "5", "1e300", "nan", "-inf", "\"1ms\"", "\"3MS\"", "\"\"", "\"-\"",
                    "\"1e9s\"", "\"log\"", "\"linear\"", "[]", "{}", "true", "9223372036854775807",
                ]),
            ),
            0..6,
        ),
        name in prop::sample::select(vec!["path.rtt", "flow.b.count", "flow.a.dscp", "duration", "x"]),
    ) {
        let parts: Vec<String> = parts.iter().map(|(key, value)| format!("{key} = {value}")).collect();
        let text = format!("{BASE}[factors]\n{name} = {{ {} }}\n", parts.join(", "));
        if let Ok(study) = StudyFile::parse("t", &text, Path::new(""), &Overrides::default()) {
            prop_assert!(study.scenarios.len() <= 10_000);
        }
    }
}

sojourn_core::params! {
    struct Still: "still", "a window that never changes" {
        cwnd: u32 = "10", "the window, in segments";
    }
}

impl sojourn_cca::Algorithm for Still {
    type Controller = <sojourn_cca::reno::Config as sojourn_cca::Algorithm>::Controller;

    fn build(&self, setup: sojourn_cca::Setup) -> Self::Controller {
        sojourn_cca::Algorithm::build(&sojourn_cca::reno::Config::default(), setup)
    }
}

sojourn_core::params! {
    struct Silent: "silent", "says nothing" {
        rounds: u32 = "1", "how often";
    }
}

impl AppModel for Silent {
    fn build(&self, _flow: &FlowSetup<'_>) -> [Box<dyn Endpoint>; 2] {
        unreachable!("nothing is run")
    }

    fn canonical(&self) -> String {
        self.written(Style::Canonical)
    }
}

fn registry() -> Registry {
    let mut registry = Registry::default();
    registry.add_controller::<Still>().expect("its name is free");
    registry.add_application::<Silent>().expect("its name is free");
    registry
}

fn read_with(registry: &Registry, more: &str) -> Result<StudyFile, String> {
    let document = Document::parse("t.toml", &format!("{BASE}{more}"), Path::new(""))
        .map_err(|error| error.to_string())?;
    StudyFile::of(document, registry, "t.toml".into(), &Overrides::default(), &mut |_, _| {})
        .map_err(|error| error.to_string())
}

#[test]
fn a_file_names_what_a_program_registered() {
    let more = "[[scenario.flow]]\nname = \"c\"\napp = \"silent rounds=3\"\n\
                [factors]\n\"flow.a.cca\" = [\"still\", \"still cwnd=4\"]\n";
    let study = read_with(&registry(), more).expect("all of it is registered");
    let canonical = study.scenarios.get(1).expect("it is one of them").scenario.canonical();
    assert!(canonical.contains("app=[bulk cca=[still cwnd=4]"), "{canonical}");
    assert!(canonical.contains("app=[external [silent rounds=3]]"), "{canonical}");
    assert_eq!(study.scenarios.get(1).expect("it is one of them").flows[3].app, "silent rounds=3");
    read(more, &Overrides::default()).expect_err("nobody else knows them");
}

#[test]
fn what_is_not_registered_is_answered_with_all_that_is_there() {
    let error = |more: &str| read_with(&registry(), more).expect_err("it is misspelt");
    let said = error("cca = \"stil\"\n");
    assert!(said.contains("did you mean 'still'? (allowed: reno, "), "{said}");
    let flow = "[[scenario.flow]]\nname = \"c\"\napp = ";
    let said = error(&format!("{flow}\"silnt\"\n"));
    assert!(said.contains("did you mean 'silent'? (allowed: bulk, "), "{said}");
    let said = error(&format!("{flow}\"silent round=3\"\n"));
    assert!(said.contains("silent has no parameter 'round'; did you mean 'rounds'?"), "{said}");
    let said = error(&format!("{flow}\"silent\"\nsize = \"1kB\"\n"));
    assert!(said.contains("size: has no meaning for the application 'silent'"), "{said}");
    let said = error(&format!("{flow}\"ping size=9\"\n"));
    assert!(said.contains("the parameters of 'ping' are keys of the flow"), "{said}");
}

sojourn_core::params! {
    struct Bulk: "bulk", "a name that is taken" {}
}

impl AppModel for Bulk {
    fn build(&self, _flow: &FlowSetup<'_>) -> [Box<dyn Endpoint>; 2] {
        unreachable!("nothing is run")
    }

    fn canonical(&self) -> String {
        self.written(Style::Canonical)
    }
}

#[test]
fn the_name_of_what_is_there_is_given_to_nothing_else() {
    let mut registry = registry();
    registry.add_application::<Bulk>().expect_err("there is a bulk");
    registry.add_application::<Silent>().expect_err("there is a silent");
    registry.add_controller::<Still>().expect_err("there is a still");
    registry.add_controller::<sojourn_cca::reno::Config>().expect_err("there is a reno");
}
