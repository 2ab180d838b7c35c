use proptest::prelude::*;
use sojourn_core::{Purpose, StreamAddress, Time};

use super::*;

const N: u32 = 1_000_000;

fn losses(spec: &str, seed: u64) -> Vec<bool> {
    let mut random = StreamAddress { seed, run: 0 }.stream(1, Purpose::Loss);
    let mut loss = LossConfig::parse(spec).expect("a good spec").build();
    (0..N).map(|_| loss.loses(Time::ZERO, &mut random)).collect()
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
fn four_states_lose_the_share_that_their_balance_gives() {
    for spec in [
        "state 1% 10%",
        "state 1% 10% 20% 50% 0.5%",
        "state 0% 0% 0% 0% 5%",
        "state 5% 30% 30% 10% 2%",
    ] {
        let config = LossConfig::parse(spec).expect("a good spec");
        let analytic = config.stationary().expect("has a closed form");
        for seed in 0..3 {
            let measured = rate(&losses(spec, seed));
            // Five standard deviations; bursts of some ten packets widen them.
            let bound = 5.0 * (analytic * 20.0 / f64::from(N)).sqrt();
            assert!((measured - analytic).abs() < bound, "{spec}: {measured} for {analytic}");
        }
    }
    // By hand, in units of state 1: lost in bursts 0.01/0.1, delivered in them 0.2/0.5 of that,
    // lost in gaps 0.005.
    let config = LossConfig::parse("state 1% 10% 20% 50% 0.5%").expect("a good spec");
    let expected = (0.1 + 0.005) / (1.0 + 0.1 + 0.04 + 0.005);
    assert!((config.stationary().expect("closed form") - expected).abs() < 1e-12);
}

#[test]
fn four_states_lose_in_runs_as_long_as_their_chances_say() {
    // Every loss begins a run but for those that stay in state 3, with 1 - p31 - p32.
    let (p13, p31, p32, p23, p14) = (0.01, 0.1, 0.2, 0.5, 0.005);
    let (in_burst, delivered) = (p13 / p31, p13 / p31 * p32 / p23);
    let expected = (in_burst + p14) / (p13 + p14 + delivered * p23);
    let run = mean_run(&losses("state 1% 10% 20% 50% 0.5%", 1));
    assert!((run / expected - 1.0).abs() < 0.03, "{run} for {expected}");
    // The two-state case: runs of 1/p31.
    let run = mean_run(&losses("state 1% 10%", 1));
    assert!((run / 10.0 - 1.0).abs() < 0.05, "{run}");
}

#[test]
fn a_state_that_nothing_leaves_is_where_it_ends() {
    let stationary = |spec| LossConfig::parse(spec).expect("good").stationary();
    for (spec, expected) in [
        ("state 0% 0% 0% 0% 0%", 0.0),
        ("state 1% 0% 0%", 1.0),
        ("state 1% 5% 1% 0%", 0.0),
        ("state 1% 0% 20% 30%", 0.6),
    ] {
        let stationary = stationary(spec).expect("closed form");
        assert!((stationary - expected).abs() < 1e-12, "{spec}: {stationary}");
        // After the first thousands of packets.
        let measured = rate(&losses(spec, 1)[20_000..]);
        assert!((measured - expected).abs() < 0.01, "{spec}: {measured}");
    }
}

#[test]
fn one_share_alone_makes_four_states_lose_single_packets() {
    // What netem makes of `loss state 1%`: p31 99%, p32 0%, p23 100%, p14 0%.
    let expanded = LossConfig::parse("state 1% 99% 0% 100% 0%");
    assert_eq!(LossConfig::parse("state 1%"), expanded);
    let lost = losses("state 1%", 1);
    assert!((rate(&lost) - 0.01).abs() < 5e-4, "{}", rate(&lost));
    assert!((mean_run(&lost) - 1.0 / 0.99).abs() < 0.01, "{}", mean_run(&lost));
}

#[test]
fn the_state_that_a_packet_meets_decides_on_it() {
    // 1 to 4 and back at every packet: the first is lost already.
    assert_eq!(losses("state 0% 0% 0% 0% 100%", 1)[..4], [true, false, true, false]);
    // 1 to 3, to 2, to 3: lost, delivered, lost.
    assert_eq!(losses("state 100% 0% 100% 100%", 1)[..4], [true, false, true, false]);
}

#[test]
fn a_loss_is_read_as_tc_writes_it() {
    for (tc, here) in [
        ("loss 1%", "1%"),
        ("loss random 1% 25%", "random 1% 25%"),
        ("loss gemodel 1% 10% 70% 0.1%", "gemodel 1% 10% 70% 0.1%"),
        ("loss state 1% 10%", "state 1% 10%"),
    ] {
        assert_eq!(LossConfig::parse(tc), LossConfig::parse(here), "{tc}");
    }
}

#[test]
fn loss_of_correlation_one_half_follows_fabius() {
    // With rho 1/2 a draw is the sum of uniforms weighted 1/2, 1/4, 1/8 ..., whose distribution
    // is Fabius' function: 1/2 at 1/2, 5/72 at 1/4, 1/288 at 1/8.
    for (p, fabius) in [("50%", 0.5), ("25%", 5.0 / 72.0), ("12.5%", 1.0 / 288.0)] {
        let measured = rate(&losses(&format!("random {p} 50%"), 1));
        // Five standard deviations; correlation 1/2 widens them by sqrt(3).
        let bound = 5.0 * (fabius * 3.0 / f64::from(N)).sqrt();
        assert!((measured - fabius).abs() < bound, "{p}: {measured} for {fabius}");
    }
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
        ("gemodel", "gemodel needs 'p'"),
        ("gemodel 1% 2% 3% 4% 5%", "'5%' follows"),
        ("state", "state needs 'p13'"),
        ("state 1% 2% 3% 4% 5% 6%", "'6%' follows"),
        ("state 60% 40% 0% 100% 50%", "p13 and p14 are 60% and 50% (allowed: up to 100% together"),
        ("state 10% 60% 50%", "p31 and p32 are 60% and 50%"),
        ("state 1% 200%", "p31: '200%' is not a share"),
        ("loss", "write 'none'"),
        ("periodic 0", "from 1 to"),
        ("periodic", "periodic needs 'n'"),
        ("none 1%", "'1%' follows"),
    ] {
        let error = LossConfig::parse(spec).expect_err(spec).to_string();
        assert!(error.contains(says), "{spec}: {error}");
    }
}

proptest! {
    #[test]
    fn no_text_makes_the_parser_panic(text in "(loss )?(none|random|state|gemodel|periodic|[0-9]{1,3}%)?[ -~]{0,24}") {
        let _ = LossConfig::parse(&text);
    }

    #[test]
    fn what_is_printed_reads_back(kind in 0..6, a in 0.0..=100.0f64, b in 0.0..=100.0f64, n in 1u32..) {
        let percent = |number| Percent::new(number).expect("in range");
        let (p, r) = (percent(a), percent(b));
        let config = match kind {
            0 => LossConfig::None,
            1 => LossConfig::Random(Random { p, rho: None }),
            2 => LossConfig::Random(Random { p, rho: Some(r) }),
            3 => LossConfig::Gemodel(Gemodel { p, r, loss_bad: r.rest(), loss_good: p.rest() }),
            4 => LossConfig::State(FourState { p13: p, p31: r, p32: r.rest(), p23: p, p14: p.rest() }),
            _ => LossConfig::Periodic(Periodic { n }),
        };
        prop_assert_eq!(config.check(), Ok(()));
        prop_assert_eq!(LossConfig::parse(&config.to_string()), Ok(config));
    }
}

#[test]
fn values_may_have_their_names() {
    for (named, in_order) in [
        ("gemodel 1% 10% 1-k 0.1%", "gemodel 1% 10% 100% 0.1%"),
        ("gemodel p=1% 1-h=70%", "gemodel 1% 99% 70% 0%"),
        ("random p 1% rho 25%", "random 1% 25%"),
    ] {
        assert_eq!(LossConfig::parse(named), LossConfig::parse(in_order), "{named}");
    }
}

#[test]
fn a_loss_built_in_code_is_checked_too() {
    let percent = |number| Percent::new(number).expect("in range");
    assert!(LossConfig::Periodic(Periodic { n: 0 }).check().is_err());
    let all = percent(100.0);
    let state = FourState { p13: all, p31: all, p32: all, p23: all, p14: all };
    assert!(LossConfig::State(state).check().is_err());
}
