use proptest::prelude::*;
use sojourn_core::{Purpose, StreamAddress, Words};

use super::*;

fn parse(text: &str) -> Result<Brownian, SpecError> {
    Brownian::parse(&mut Words::new(text))
}

fn draw(text: &str, seed: u64) -> Schedule {
    let mut random = StreamAddress { seed, run: 0 }.stream_named("cell", Purpose::Capacity);
    parse(text).expect("a good spec").generate(&mut random)
}

/// Opportunities in each second, over several draws.
fn seconds(text: &str, seeds: u64) -> Vec<f64> {
    let mut counts = Vec::new();
    for seed in 0..seeds {
        let schedule = draw(text, seed);
        let second = Span::from_secs(1);
        let trace = schedule.to_trace(second, OPPORTUNITY_BYTES).expect("a good trace");
        counts.extend(trace.steps().map(|step| step.rate.as_bps() as f64 / BITS));
    }
    counts
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

#[test]
fn without_outages_the_rate_is_anywhere_between_zero_and_the_largest() {
    // A reflected Brownian motion is uniform in the long run: 500 a second on average.
    // With 200 it takes some five seconds to forget where it was.
    let counts = seconds("max 12mbit sigma 2400kbit outage 0s duration 600s", 20);
    let half = mean(&counts);
    assert!((half / 500.0 - 1.0).abs() < 0.05, "{half}");
    let below = counts.iter().filter(|count| **count < 250.0).count() as f64;
    let share = below / counts.len() as f64;
    assert!((0.2..0.3).contains(&share), "a quarter of the time in the lowest quarter: {share}");
}

#[test]
fn a_rate_that_hardly_wanders_gives_poisson_arrivals() {
    // Variance and mean of the counts of one draw are alike.
    let counts = seconds("max 12mbit sigma 1bit outage 0s duration 1000s", 1);
    let mean_count = mean(&counts);
    let square = |x: f64| x * x;
    let squares: Vec<f64> = counts.iter().map(|count| square(count - mean_count)).collect();
    let ratio = mean(&squares) / mean_count;
    assert!((0.8..1.2).contains(&ratio), "{ratio}");
}

#[test]
fn outages_last_as_long_as_asked_for() {
    let mut lengths = Vec::new();
    for seed in 0..20 {
        let schedule = draw("max 12mbit sigma 4800kbit outage 2s duration 600s", seed);
        let gaps = schedule.millis().windows(2).map(|two| f64::from(two[1] - two[0]) / 1000.0);
        // Slow rates leave gaps too, but hardly any of a second.
        lengths.extend(gaps.filter(|gap| *gap > 1.0).map(|gap| gap - 1.0));
    }
    assert!(lengths.len() > 100, "{} outages", lengths.len());
    // What an exponential time has left after a second is as long as it was.
    let left = mean(&lengths);
    assert!((left / 2.0 - 1.0).abs() < 0.3, "{left} s");
}

#[test]
fn one_stream_gives_one_trace_of_the_length_asked_for() {
    assert_eq!(draw("", 3), draw("", 3));
    assert_ne!(draw("", 3), draw("", 4));
    assert_eq!(draw("duration 1500500us", 1).period(), Span::from_millis(1501));
}

#[test]
fn the_draw_is_the_same_on_every_machine() {
    let text = draw("duration 10s", 1).to_string();
    let digest = text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    assert_eq!(digest, 7_693_873_591_269_113_166);
}

#[test]
fn bad_specs_say_what_is_allowed() {
    for (text, says) in [
        ("max 0mbit", "'max' is 0bit (allowed: a rate from 1bit to 10gbit"),
        ("max 10", "no unit"),
        ("sigm 3mbit", "did you mean 'sigma'"),
        ("duration 0s", "'duration' is 0s (allowed: a time from 1ms"),
        ("max 10gbit duration 100s", "too many opportunities"),
        ("outage", "needs a value"),
    ] {
        let error = parse(text).expect_err(text).to_string();
        assert!(error.contains(says), "{text}: {error}");
    }
}

proptest! {
    #[test]
    fn no_text_makes_the_parser_panic(text in "((max|sigma|outage|duration) )?[ -~]{0,24}") {
        let _ = parse(&text);
    }

    #[test]
    fn what_is_printed_reads_back(
        max in 1u64..1_000_000, sigma in 1u64..10_000_000_000, outage in 0u64..1_000_000_000_000,
        duration in 1_000_000u64..1_000_000_000_000,
    ) {
        let process = Brownian {
            max: Rate::from_bps(max),
            sigma: Rate::from_bps(sigma),
            outage: Span::from_nanos(outage),
            duration: Span::from_nanos(duration),
        };
        prop_assert_eq!(parse(&process.values(Style::Blank)), Ok(process));
    }
}
