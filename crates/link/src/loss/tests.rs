use proptest::prelude::*;
use sojourn_core::{Purpose, StreamAddress};

use super::*;

const N: u32 = 1_000_000;

fn losses(spec: &str, seed: u64) -> Vec<bool> {
    let mut random = StreamAddress { seed, run: 0 }.stream(1, Purpose::Loss);
    let mut loss = LossConfig::parse(spec).expect("a good spec").build();
    (0..N).map(|_| loss.loses(&mut random)).collect()
}

fn rate(losses: &[bool]) -> f64 {
    losses.iter().filter(|lost| **lost).count() as f64 / losses.len() as f64
}

/// Lengths of the runs of lost packets, on average.
fn mean_run(losses: &[bool]) -> f64 {
    let lost = losses.iter().filter(|lost| **lost).count();
    let runs = losses.windows(2).filter(|pair| !pair[0] && pair[1]).count();
    lost as f64 / runs as f64
}

#[test]
fn independent_loss_has_its_rate_and_no_memory() {
    let lost = losses("1%", 1);
    // Five standard deviations of a binomial draw of 10^6.
    assert!((rate(&lost) - 0.01).abs() < 5e-4, "{}", rate(&lost));
    assert!((mean_run(&lost) - 1.0 / 0.99).abs() < 0.01, "{}", mean_run(&lost));
}

#[test]
fn gilbert_elliott_loses_the_share_that_its_stationary_state_does() {
    for spec in ["gemodel 1% 10% 70% 0.1%", "gemodel 5% 20%", "gemodel 0.5% 50% 100% 1%"] {
        let config = LossConfig::parse(spec).expect("a good spec");
        let analytic = config.stationary().expect("has a closed form");
        for seed in 0..3 {
            let measured = rate(&losses(spec, seed));
            // Five standard deviations; bad states come in runs of 1/r, which widens them.
            let bound = 5.0 * (analytic * (2.0 / 0.1) / f64::from(N)).sqrt();
            assert!((measured - analytic).abs() < bound, "{spec}: {measured} for {analytic}");
        }
    }
    let analytic = LossConfig::parse("gemodel 1% 10% 70% 0.1%").map(|c| c.stationary());
    // pi_bad = 1/11: 0.7/11 + 0.001*10/11.
    let expected = 0.7 / 11.0 + 0.01 / 11.0;
    assert!((analytic.ok().flatten().expect("closed form") - expected).abs() < 1e-12);
}

#[test]
fn gilbert_elliott_bursts_last_as_long_as_the_bad_state() {
    // Everything is lost in the bad state and nothing in the good one: runs of 1/r.
    let run = mean_run(&losses("gemodel 1% 10%", 1));
    assert!((run - 10.0).abs() < 0.5, "{run}");
}

#[test]
fn the_state_moves_before_the_loss_but_the_old_state_decides() {
    // It goes from good to bad and back with every packet, and only the bad state loses: since
    // the old state counts, the first packet is safe.
    let lost = losses("gemodel 100% 100% 100% 0%", 1);
    assert_eq!(lost[..6], [false, true, false, true, false, true]);
}

#[test]
fn simple_gilbert_takes_netems_defaults() {
    let percent = |number| Percent::new(number).expect("in range");
    assert_eq!(
        LossConfig::parse("gemodel 3%"),
        Ok(LossConfig::Gemodel(Gemodel {
            p: percent(3.0),
            r: percent(97.0),
            loss_bad: percent(100.0),
            loss_good: percent(0.0),
        }))
    );
}

#[test]
fn correlated_loss_comes_in_runs_and_misses_its_nominal_rate() {
    // Averaging draws makes them less uniform, so fewer fall under a small p: netem's own flaw.
    let lost = losses("random 10% 50%", 1);
    let measured = rate(&lost);
    assert!(measured < 0.05, "{measured}");
    let after_loss = 1.0 - 1.0 / mean_run(&lost);
    assert!(after_loss > 4.0 * measured, "{after_loss} after a loss, {measured} overall");
}

#[test]
fn correlation_zero_is_independent() {
    let measured = rate(&losses("random 1% 0%", 4));
    assert!((measured - 0.01).abs() < 5e-4, "{measured}");
}

#[test]
fn every_hundredth_packet_is_lost() {
    let lost = losses("periodic 100", 1);
    let at: Vec<_> = lost.iter().enumerate().filter(|(_, lost)| **lost).map(|(n, _)| n).collect();
    assert_eq!(at[..3], [99, 199, 299]);
    assert_eq!(at.len(), 10_000);
}

#[test]
fn bad_specs_say_what_is_allowed() {
    for (spec, says) in [
        ("", "write 'none'"),
        ("0.01", "write '0.01%'"),
        ("101%", "0% to 100%"),
        ("-1%", "0% to 100%"),
        ("random nan%", "0% to 100%"),
        ("gemodl 1%", "did you mean 'gemodel'"),
        ("gemodel", "needs a value"),
        ("gemodel 1% 2% 3% 4% 5%", "'5%' follows"),
        ("periodic 0", "from 1 to"),
        ("none 1%", "'1%' follows"),
    ] {
        let error = LossConfig::parse(spec).expect_err(spec).to_string();
        assert!(error.contains(says), "{spec}: {error}");
    }
}

proptest! {
    #[test]
    fn no_text_makes_the_parser_panic(text in "(none|random|gemodel|periodic|[0-9]{1,3}%)?[ -~]{0,24}") {
        let _ = LossConfig::parse(&text);
    }

    #[test]
    fn what_is_printed_reads_back(kind in 0..5, a in 0.0..=100.0f64, b in 0.0..=100.0f64, every in 1u32..) {
        let (p, r) = (Percent(a), Percent(b));
        let config = match kind {
            0 => LossConfig::None,
            1 => LossConfig::Random { p },
            2 => LossConfig::Correlated { p, rho: r },
            3 => LossConfig::Gemodel(Gemodel { p, r, loss_bad: r.rest(), loss_good: p.rest() }),
            _ => LossConfig::Periodic { every },
        };
        prop_assert_eq!(LossConfig::parse(&config.to_string()), Ok(config));
    }
}
