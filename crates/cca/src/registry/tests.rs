//! What holds of every controller's parameters.

use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use sojourn_core::{Param, ParamKind, Rate};

use super::*;
use crate::Ack;

#[test]
fn a_controller_and_its_configuration_go_by_the_name_of_the_list() {
    for algorithm in algorithms() {
        let config = defaults(algorithm);
        assert_eq!(config.name(), algorithm.name);
        assert_eq!(config.to_string().split(' ').next(), Some(algorithm.name));
    }
}

#[test]
fn every_controller_passes_the_suite() {
    for algorithm in algorithms() {
        assert_eq!(crate::suite::check(&defaults(algorithm)), Ok(()), "{}", algorithm.name);
    }
}

#[test]
fn documented_defaults_are_the_defaults() {
    for (algorithm, param) in params() {
        if param.kind == ParamKind::Flag {
            assert_eq!(param.default, "", "{} is off", param.name);
            continue;
        }
        for equals in ["=", " "] {
            let text = format!("{} {}{equals}{}", algorithm.name, param.name, param.default);
            assert_eq!(Config::parse(&text), Ok(defaults(algorithm)), "{text}");
        }
    }
}

#[test]
fn every_parameter_takes_another_value_which_reads_back_as_printed() {
    let mut runner = TestRunner::deterministic();
    for (algorithm, param) in params() {
        let settings = settings(algorithm, param);
        let other = (0..64).find_map(|_| {
            let setting = settings.new_tree(&mut runner).expect("it filters nothing").current();
            let config = Config::parse(&format!("{} {setting}", algorithm.name)).ok()?;
            (config != defaults(algorithm)).then_some(config)
        });
        let other = other.unwrap_or_else(|| panic!("{} {}", algorithm.name, param.name));
        assert_eq!(Config::parse(&other.to_string()), Ok(other));
    }
}

#[test]
fn a_misspelt_parameter_is_answered_with_the_nearest() {
    // Of a name of one letter nothing is left to recognise.
    for (algorithm, param) in params().filter(|(_, param)| param.name.len() > 1) {
        let last = &param.name[param.name.len() - 1..];
        let text = format!("{} {}{last}=1", algorithm.name, param.name);
        let error = Config::parse(&text).expect_err("its last letter is doubled");
        assert_eq!(error.nearest(), Some(param.name), "{text}");
    }
}

#[test]
fn what_a_controller_does_not_have_is_said_with_its_name_and_what_it_has() {
    for algorithm in algorithms() {
        let error = Config::parse(&format!("{} colour=green", algorithm.name)).unwrap_err();
        assert_eq!(error.problem(), format!("{} has no parameter 'colour'", algorithm.name));
        let names: Vec<_> = algorithm.params.iter().map(|param| param.name).collect();
        assert_eq!(error.allowed(), names);
    }
}

proptest! {
    #[test]
    fn no_text_makes_a_parser_panic(
        name in select(algorithms()),
        which: Index,
        text in ".{0,40}",
        value in ".{0,12}",
    ) {
        let _ = Config::parse(&text);
        let _ = Config::parse(&format!("{} {text}", name.name));
        if !name.params.is_empty() {
            let param = which.get(name.params);
            let _ = Config::parse(&format!("{} {}={value}", name.name, param.name));
        }
    }

    #[test]
    fn what_is_printed_reads_back(texts in texts()) {
        for text in texts {
            let config = Config::parse(&text).expect("every part of it was accepted");
            prop_assert_eq!(Config::parse(&config.to_string()), Ok(config), "{}", text);
        }
    }
}

fn params() -> impl Iterator<Item = (&'static Kind<Config>, &'static Param)> {
    algorithms()
        .iter()
        .flat_map(|algorithm| algorithm.params.iter().map(move |param| (algorithm, param)))
}

fn defaults(algorithm: &Kind<Config>) -> Config {
    Config::parse(algorithm.name).expect("a name of the list")
}

/// Each controller with a value for each of its parameters, if it accepts that one.
fn texts() -> impl Strategy<Value = Vec<String>> {
    let text = |algorithm: &'static Kind<Config>| {
        let settings: Vec<_> =
            algorithm.params.iter().map(|param| settings(algorithm, param)).collect();
        settings.prop_map(|settings| {
            settings.iter().fold(algorithm.name.to_owned(), |text, setting| {
                let longer = format!("{text} {setting}");
                if Config::parse(&longer).is_ok() { longer } else { text }
            })
        })
    };
    algorithms().iter().map(text).collect::<Vec<_>>()
}

/// Ways to set a parameter, by its kind; not all are in its range.
fn settings(algorithm: &Kind<Config>, param: &'static Param) -> BoxedStrategy<String> {
    let name = param.name;
    let values = match param.kind {
        ParamKind::Span => {
            prop_oneof![0u64..20_000, 0u64..100_000_000].prop_map(|us| format!("{us}us")).boxed()
        }
        ParamKind::Rate => (1u64..1_000_000).prop_map(|kbit| format!("{kbit}kbit")).boxed(),
        ParamKind::Size => (1u64..1_000_000).prop_map(|bytes| format!("{bytes}b")).boxed(),
        ParamKind::Count => prop_oneof![0u32..16, 0u32..1_024, 0u32..1_000_000]
            .prop_map(|count| count.to_string())
            .boxed(),
        ParamKind::Number => {
            prop_oneof![0.0..1.0, 0.0..16.0].prop_map(|number: f64| number.to_string()).boxed()
        }
        ParamKind::Share => prop_oneof![
            (0.0..=1.0).prop_map(|share: f64| share.to_string()),
            (0.0..=100.0).prop_map(|percent: f64| format!("{percent}%")),
        ]
        .boxed(),
        ParamKind::Text => Just("x".to_owned()).boxed(),
        ParamKind::Flag => return select(vec![name.to_owned(), String::new()]).boxed(),
        ParamKind::Choice | ParamKind::Switch => {
            let error = Config::parse(&format!("{} {name}=?", algorithm.name))
                .expect_err("that is no word to choose");
            select(error.allowed().to_vec()).boxed()
        }
    };
    values.prop_map(move |value| format!("{name}={value}")).boxed()
}

sojourn_core::params! {
    /// A window that never changes, for tests.
    struct Constant: "constant", "a window that never changes" {
        cwnd: u32 = "10", "the window, in segments";
    }
}

struct Still(u32);

impl Algorithm for Constant {
    type Controller = Still;

    fn build(&self, _setup: Setup) -> Still {
        Still(self.cwnd)
    }
}

impl Controller for Still {
    fn on_ack(&mut self, _ack: &Ack) {}

    fn on_congestion(&mut self, _congestion: &crate::Congestion) {}

    fn on_undo(&mut self, _undo: &crate::Undo) {}

    fn cwnd(&self) -> u32 {
        self.0
    }

    fn ssthresh(&self) -> Option<u32> {
        None
    }

    fn pacing_rate(&self) -> Option<Rate> {
        None
    }

    fn phase(&self) -> &'static str {
        "constant"
    }
}

#[test]
fn an_algorithm_from_outside_is_read_printed_and_built_like_one_of_here() {
    let mut kinds = kinds();
    kinds.add(external::<Constant>()).expect("its name is free");
    let config = kinds.parse("constant cwnd=7").expect("it is registered");
    assert_eq!(config.to_string(), "constant cwnd=7");
    assert_eq!(kinds.parse("constant cwnd=7"), Ok(config.clone()));
    assert_ne!(kinds.parse("constant"), Ok(config.clone()));
    assert_eq!(config.build(crate::testing::setup()).cwnd(), 7);
    assert_eq!(kinds.parse("constnt").expect_err("misspelt").nearest(), Some("constant"));
    assert!(Config::parse("constant").is_err(), "nobody else knows it");
}

#[test]
fn only_what_is_not_the_default_names_a_run() {
    let canonical = |text| Config::parse(text).expect("a good text").canonical();
    assert_eq!(canonical("bbr"), "bbr");
    assert_eq!(canonical("bbr cwnd_gain=2 min_cwnd=5"), "bbr min_cwnd=5");
    assert_eq!(canonical("cubic hystart=off C=0.4"), "cubic hystart=off");
}
