use proptest::prelude::*;
use sojourn_core::{Purpose, StreamAddress};

use super::*;

fn stream() -> Stream {
    StreamAddress { seed: 1, run: 0 }.stream(1, Purpose::Jitter)
}

/// Delays added to packets so far apart that none can catch up, in milliseconds.
fn added(spec: &str) -> Vec<f64> {
    let mut random = stream();
    let mut jitter = JitterConfig::parse(spec).expect("a good spec").build();
    (1..=200_000)
        .map(|second| {
            let due = Time::ZERO + Span::from_secs(second);
            jitter.delay(due, &mut random).since(due).as_millis_f64()
        })
        .collect()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

#[test]
fn the_gaussian_is_cut_at_three_deviations_rfc_8868() {
    let added = added("normal 5ms");
    let (least, most) = added.iter().fold((f64::MAX, 0.0f64), |(l, m), x| (l.min(*x), m.max(*x)));
    assert!(least >= 0.0 && most <= 30.0, "{least} {most}");
    assert!(least < 1.0 && most > 29.0, "{least} {most}");
    assert!((mean(&added) - 15.0).abs() < 0.06, "{}", mean(&added));
    let squares: Vec<f64> = added.iter().map(|x| (x - 15.0) * (x - 15.0)).collect();
    // A Gaussian cut at three deviations has 0.98658 of one.
    let deviation = mean(&squares).sqrt();
    assert!((deviation - 5.0 * 0.986_58).abs() < 0.04, "{deviation}");
}

#[test]
fn the_uniform_fills_its_range() {
    let added = added("uniform 3ms");
    assert!((mean(&added) - 1.5).abs() < 0.01, "{}", mean(&added));
    assert!(added.iter().all(|x| (0.0..=3.0).contains(x)));
}

/// Parts of the delays that are longer than so many times the mean.
fn parts_above(added: &[f64], mean: f64, times: &[f64]) -> Vec<f64> {
    let above = |times: &f64| added.iter().filter(|x| **x > mean * times).count();
    times.iter().map(|times| above(times) as f64 / added.len() as f64).collect()
}

#[test]
fn the_exponential_has_its_mean_and_its_tail() {
    let added = added("exponential 5ms");
    assert!((mean(&added) - 5.0).abs() < 0.05, "{}", mean(&added));
    let parts = parts_above(&added, 5.0, &[1.0, 3.0]);
    for (part, times) in parts.iter().zip([1.0f64, 3.0]) {
        assert!((part - libm::exp(-times)).abs() < 0.003, "{part} above {times} means");
    }
}

#[test]
fn the_pareto_begins_at_zero_and_has_its_mean_and_its_tail() {
    let of_three = added("pareto 5ms");
    assert!(of_three.iter().any(|x| *x < 0.001), "it begins at zero");
    assert!((mean(&of_three) - 5.0).abs() < 0.1, "{}", mean(&of_three));
    // (1 + x / (shape - 1))^-shape of the packets wait for more than x means.
    for (spec, shape) in [("pareto 0.5ms", 3.0f64), ("pareto 0.5ms 1.5", 1.5)] {
        let parts = parts_above(&added(spec), 0.5, &[1.0, 18.0]);
        for (part, times) in parts.iter().zip([1.0f64, 18.0]) {
            let wanted = libm::pow(1.0 + times / (shape - 1.0), -shape);
            assert!((part - wanted).abs() < 0.003, "{spec}: {part} above {times}, not {wanted}");
        }
    }
}

#[test]
fn no_jitter_adds_nothing() {
    let due = Time::from_nanos(77);
    assert_eq!(JitterConfig::None.build().delay(due, &mut stream()), due);
}

#[test]
fn a_packet_that_would_overtake_arrives_with_the_one_ahead() {
    let mut random = stream();
    let mut jitter = JitterConfig::parse("normal 5ms").expect("good").build();
    let mut last = Time::ZERO;
    let mut together = 0;
    for n in 0..10_000u64 {
        let due = Time::ZERO + Span::from_micros(100) * n;
        let at = jitter.delay(due, &mut random);
        assert!(at >= last && at >= due);
        together += u32::from(at == last);
        last = at;
    }
    // At a hundredth of the jitter apart most packets are held by one ahead.
    assert!(together > 5_000, "{together}");
}

#[test]
fn bad_specs_say_what_is_allowed() {
    for (spec, says) in [
        ("", "write 'none'"),
        ("norml 5ms", "did you mean 'normal'"),
        ("normal", "normal needs 'std'"),
        ("normal 5", "no unit"),
        ("uniform -3ms", "negative"),
        ("uniform 3h", "'max' is 10800s (allowed: a time up to 3600s"),
        ("none 3ms", "'3ms' follows"),
        ("pareto 5ms 1", "shape: '1' is out of range (allowed: a number from 1.05 to 100)"),
        ("exponential 5ms 3", "'3'"),
    ] {
        let error = JitterConfig::parse(spec).expect_err(spec).to_string();
        assert!(error.contains(says), "{spec}: {error}");
    }
}

proptest! {
    #[test]
    fn no_text_makes_the_parser_panic(text in "(none|normal|uniform|exponential|pareto)?[ -~]{0,24}") {
        let _ = JitterConfig::parse(&text);
    }

    #[test]
    fn what_is_printed_reads_back(kind in 0..5, ns in 0u64..3_600_000_000_000, shape in 1.05..100.0f64) {
        let span = Span::from_nanos(ns);
        let config = match kind {
            0 => JitterConfig::None,
            1 => JitterConfig::Normal(Normal { std: span }),
            2 => JitterConfig::Uniform(Uniform { max: span }),
            3 => JitterConfig::Exponential(Exponential { mean: span }),
            _ => JitterConfig::Pareto(Pareto { mean: span, shape }),
        };
        prop_assert_eq!(JitterConfig::parse(&config.to_string()), Ok(config));
    }
}

#[test]
fn a_jitter_built_in_code_is_checked_too() {
    assert!(JitterConfig::Uniform(Uniform { max: Span::from_secs(3601) }).check().is_err());
}
