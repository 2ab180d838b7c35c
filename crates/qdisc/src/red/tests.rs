use sojourn_core::{Bytes, DropReason, Ecn, Params, Rate, Span, Words};

use super::*;
use crate::Config as AnyConfig;
use crate::testing::{Bench, TestPacket, packet, stream, text_reads_back};

fn config(text: &str) -> Config {
    Written::parse(&mut Words::new(text))
        .and_then(Config::try_from)
        .unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// An average that has seen `bytes` for long.
fn average(config: &Config, bytes: u64) -> Average {
    let mut average = Average::new(config);
    for _ in 0..100_000 {
        average.observe(Time::ZERO, bytes);
    }
    average
}

#[test]
fn thresholds_and_burst_default_to_floyds_recommendations() {
    let default = config("limit 400000 avpkt 1000");
    assert_eq!((default.max, default.min), (Bytes::new(100_000), Bytes::new(33_333)));
    assert_eq!(default.burst, (2 * 33_333 + 100_000) / 3000);
    let from_min = config("limit 400000 min 30000 avpkt 1000");
    assert_eq!(from_min.max, Bytes::new(90_000));
    assert_eq!((from_min.probability, from_min.bandwidth), (0.02, Rate::from_bps(10_000_000)));
}

/// Floyd and Jacobson 1993, section 6, equation 3.
#[test]
fn the_weight_is_the_largest_that_lets_a_burst_pass() {
    for (text, wlog) in [
        ("limit 400000 min 30000 max 90000 avpkt 1000 burst 55", 5),
        ("limit 60kb min 15kb max 45kb avpkt 1500 burst 20", 4),
        ("limit 400000 min 30000 max 90000 avpkt 1000 burst 31", 2),
        ("limit 1mb avpkt 1000 min 5000 max 15000 burst 50", 9),
    ] {
        let config = config(text);
        let passes = |wlog: u32| {
            let weight = 1.0 / f64::from(1u32 << wlog);
            let burst = f64::from(config.burst);
            let left = burst + 1.0 - config.min.as_u64() as f64 / f64::from(config.avpkt);
            left <= (1.0 - libm::pow(1.0 - weight, burst)) / weight
        };
        let derived = config.derived().wlog;
        assert!(passes(derived) && (derived == 1 || !passes(derived - 1)), "{text}: {derived}");
        assert_eq!(derived, wlog, "{text}");
    }
}

#[test]
fn a_burst_passes_an_empty_queue_and_a_standing_queue_does_not() {
    let mut bench =
        Bench::new("red limit 400000 min 30280 max 90840 avpkt 1514 burst 40 probability 0.1");
    for id in 0..40 {
        bench.offer(packet(id));
    }
    assert!(bench.record.dropped.is_empty());
    assert!(bench.detail("average") < 30_280);
    let mut bench =
        Bench::new("red limit 400000 min 30280 max 90840 avpkt 1514 burst 40 probability 0.1");
    bench.drain(Rate::from_bps(10_000_000), Span::from_secs(5), |bench| {
        while bench.qdisc.backlog().packets < 40 {
            bench.offer(packet(0));
        }
    });
    // Half-way between the thresholds, at a probability of 5 %, about one arrival in ten goes.
    let dropped = bench.dropped_ids(DropReason::Aqm).len() as f64;
    let arrivals = dropped + 5.0 * 1.25e6 / 1514.0;
    assert!((dropped / arrivals - 0.095).abs() < 0.02, "{}", dropped / arrivals);
}

/// Floyd and Jacobson 1993, section 7: the gaps are uniform from 1 to 1/p_b.
#[test]
fn signals_come_evenly_with_the_probability_of_the_average() {
    let config = config("limit 400000 min 30000 max 90000 avpkt 1000 burst 55 probability 0.02");
    for (bytes, p_b) in [(45_000, 0.005), (60_000, 0.01), (75_000, 0.015)] {
        let average = average(&config, bytes);
        let mut law = Law::new(&config);
        let mut random = stream(1);
        let mut gaps = Vec::new();
        let mut gap = 0;
        for _ in 0..500_000 {
            gap += 1;
            match law.action(&average, &mut random) {
                Action::Signal => gaps.push(std::mem::take(&mut gap)),
                action => assert_eq!(action, Action::Pass),
            }
        }
        let most = f64::from(*gaps.iter().max().expect("there are signals"));
        let mean = f64::from(gaps.iter().sum::<u32>()) / gaps.len() as f64;
        assert!(most <= 1.0 / p_b + 2.0, "{bytes}: {most}");
        assert!((mean * p_b * 2.0 - 1.0).abs() < 0.03, "{bytes}: {mean}");
    }
}

#[test]
fn below_min_nothing_and_above_max_everything_is_signalled() {
    let config = config("limit 400000 min 30000 max 90000 avpkt 1000 burst 55");
    let mut random = stream(1);
    for (bytes, expected) in [(29_000, Action::Pass), (91_000, Action::Force)] {
        let average = average(&config, bytes);
        let mut law = Law::new(&config);
        for _ in 0..1000 {
            assert_eq!(law.action(&average, &mut random), expected);
        }
    }
}

#[test]
fn idle_time_takes_the_average_down_to_nothing() {
    let config = config("limit 400000 min 30000 max 90000 avpkt 1000 burst 55 bandwidth 10mbit");
    let derived = config.derived();
    assert_eq!((derived.wlog, derived.scell_log), (5, 15), "as tc shows them in its manual");
    let mut average = average(&config, 60_000);
    average.rest(Time::ZERO);
    let at = |ms: u64| average.decayed(Time::ZERO + Span::from_millis(ms)) >> derived.wlog;
    let series: Vec<u64> = (0..8).map(|step| at(step * 2000)).collect();
    assert_eq!(series[0], 60_000, "{series:?}");
    assert!(series.windows(2).all(|pair| pair[1] <= pair[0]), "{series:?}");
    assert_eq!(at(60_000), 0);
    // An e-fold takes 32 packets of 1000 bytes at 10 Mbit/s, or 25.6 ms; sixteen times as long,
    // because microseconds are taken for ticks. The table's cells make a shift of it.
    let e_fold = 25.6 * 15.625;
    let shifted = at((2.5 * e_fold) as u64);
    assert_eq!(shifted, 60_000 >> 2, "two and a half e-folds are a shift of 2");
}

#[test]
fn adaptation_steps_up_by_a_quarter_to_1_percent_and_down_by_a_tenth() {
    let config = config("limit 400000 min 30000 max 90000 avpkt 1000 burst 55 adaptive");
    let mut law = Law::new(&config);
    let ppm = |law: &Law| law.max_p_ppm() as f64 / 1e6;
    law.adapt_to(60_000);
    assert!((ppm(&law) - 0.02).abs() < 1e-5, "in the middle fifth it stays");
    law.adapt_to(66_001);
    assert!((ppm(&law) - 0.025).abs() < 1e-5);
    for _ in 0..200 {
        law.adapt_to(80_000);
    }
    assert!((0.5..0.511).contains(&ppm(&law)), "{}", ppm(&law));
    law.adapt_to(53_999);
    assert!((ppm(&law) - 0.459).abs() < 0.01, "{}", ppm(&law));
    for _ in 0..200 {
        law.adapt_to(0);
    }
    assert!((0.009..0.01).contains(&ppm(&law)), "{}", ppm(&law));
}

#[test]
fn adaptation_finds_the_probability_that_a_deaf_overload_needs() {
    let run = |text: &str| {
        let mut bench = Bench::new(text);
        let mut next = Time::ZERO;
        bench.drain(Rate::from_bps(10_000_000), Span::from_secs(60), |bench| {
            while next <= bench.now {
                bench.offer(packet(0));
                next += Rate::from_bps(11_000_000).time_for(1514);
            }
        });
        bench.detail("average")
    };
    let text = "red limit 400000 min 30000 max 90000 avpkt 1514 burst 30";
    assert!(run(text) > 85_000, "2 % are too few for an excess of 9 %");
    let kept = run(&format!("{text} adaptive"));
    assert!((50_000..70_000).contains(&kept), "{kept}");
}

#[test]
fn ecn_marks_harddrop_drops_above_max_and_nodrop_spares() {
    let run = |text: &str, ecn: Ecn| {
        let mut bench = Bench::new(&format!(
            "red limit 400000 min 15000 max 30000 avpkt 1514 burst 12 probability 0.5 {text}"
        ));
        bench.drain(Rate::from_bps(10_000_000), Span::from_secs(2), |bench| {
            while bench.qdisc.backlog().packets < 40 {
                let arrival: TestPacket = packet(0).ecn(ecn);
                let before = bench.record.dropped.len();
                bench.offer(arrival);
                if bench.record.dropped.len() > before {
                    break;
                }
            }
        });
        (bench.detail("marked") > 0, bench.detail("early") > 0)
    };
    assert_eq!(run("", Ecn::Ect0), (false, true));
    assert_eq!(run("ecn", Ecn::Ect0), (true, false));
    assert_eq!(run("ecn", Ecn::NotEct), (false, true));
    assert_eq!(run("ecn harddrop", Ecn::Ect0), (true, true));
    assert_eq!(run("ecn nodrop", Ecn::NotEct), (false, false));
}

#[test]
fn the_limit_is_in_bytes() {
    let mut bench = Bench::new("red limit 4000 min 20000 max 60000 avpkt 1514");
    for id in 0..4 {
        bench.offer(packet(id));
    }
    assert_eq!(bench.dropped_ids(DropReason::Full), [2, 3]);
    assert_eq!(bench.detail("pdrop"), 2);
}

#[test]
fn every_parameter_is_shown_and_reads_back() {
    assert_eq!(
        text_reads_back("red limit 400000 avpkt 1000 min 30kb max 90kb burst 55 ecn adaptative"),
        "red limit 400000b min 30Kb max 90Kb ecn adaptive avpkt 1000 burst 55 probability 0.02 \
         bandwidth 10Mbit"
    );
    text_reads_back("red limit 1mb avpkt 1000 ecn nodrop harddrop probability 0.1 bandwidth 1gbit");
}

#[test]
fn bad_parameters_say_what_is_allowed() {
    for (text, part) in [
        ("red avpkt 1000", "needs 'limit'"),
        ("red limit 100000", "needs 'avpkt'"),
        ("red limit 100000 avpkt 1000 min 9000 max 9000", "0 < min < max"),
        ("red limit 100000 avpkt 1000 min 30000 max 90000 burst 5", "30 or more"),
        ("red limit 100000 avpkt 1000 probability 2", "0 to 1"),
        ("red limit 100000 avpkt 1000 nodrop", "needs 'ecn'"),
        ("red limit 100000 avpkt 1000 bandwidth 0", "zero"),
        ("red limit 4000000000 avpkt 1000 max 3000000000 min 1000000000", "too slow"),
        ("red limit 100000 avpkt 1000 minimum 3", "no parameter"),
    ] {
        let error = AnyConfig::parse(text).unwrap_err().to_string();
        assert!(error.contains(part), "{text}: {error}");
    }
}
