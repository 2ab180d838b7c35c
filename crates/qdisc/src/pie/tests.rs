use sojourn_core::{DropReason, Ecn, Params, Rate, Span, Words};

use super::law::MAX_PROB;
use super::*;
use crate::testing::{Bench, packet, stream, text_reads_back};
use crate::{Config as AnyConfig, Qdisc};

const RATE: Rate = Rate::from_bps(10_000_000);
const TICK: u64 = 64;

fn law(text: &str) -> Law {
    let config = <Config as Params>::parse(&mut Words::new(text)).expect("a good text");
    Law::new(&config.law(), ECN_PROB_PERCENT)
}

/// A controller past its burst allowance.
fn state(law: &Law, prob: f64, delay_ms: f64) -> State {
    let mut state = law.fresh_state();
    state.prob = (prob * MAX_PROB as f64) as u64;
    state.qdelay = (delay_ms * 1e6) as u64 / TICK;
    let (early, late) = (Time::ZERO, Time::ZERO + Span::from_millis(200));
    let delay = state.qdelay;
    law.on_departure(&mut state, early, 1514, 10_000, early);
    law.on_departure(&mut state, early, 1514, 10_000, late);
    state.qdelay = delay;
    state
}

fn prob(state: &State) -> f64 {
    state.prob as f64 / MAX_PROB as f64
}

/// Arrivals of full packets at `rate`, for the link's clock.
fn arrivals(rate: Rate) -> impl FnMut(&mut Bench) {
    let mut next = Time::ZERO;
    move |bench| {
        let now = bench.now;
        while next <= now {
            bench.now = next;
            bench.offer(packet(0));
            next += rate.time_for(1514);
        }
        bench.now = now;
    }
}

/// RFC 8033 section 5.5, as the kernel has it.
#[test]
fn the_gains_shrink_by_2_and_then_by_4_for_every_decade_down_to_a_millionth() {
    let law = law("");
    let whole = law.scaled_gains(MAX_PROB / 2);
    for (prob, divisor) in [
        (0.1001, 1),
        (0.0999, 2),
        (0.0101, 2),
        (0.0099, 8),
        (0.000_99, 32),
        (0.000_099, 128),
        (0.000_009_9, 512),
        (0.000_000_99, 2048),
        (0.0, 2048),
    ] {
        let scaled = law.scaled_gains((prob * MAX_PROB as f64) as u64);
        assert_eq!(scaled, (whole.0 / divisor, whole.1 / divisor), "{prob}");
    }
}

/// RFC 8033 section 4.2.
#[test]
fn the_probability_follows_the_distance_from_target_and_the_trend() {
    let law = law("");
    let mut state = state(&law, 0.5, 18.0);
    state.prob = 0;
    law.update(&mut state, 20_000);
    state.prob = MAX_PROB / 2;
    state.qdelay = 20_000_000 / TICK;
    law.update(&mut state, 20_000);
    // 0.125 · 5 ms + 1.25 · 2 ms
    assert!((prob(&state) - 0.503_125).abs() < 1e-6, "{}", prob(&state));
}

/// RFC 8033 section 5.5.
#[test]
fn a_rise_is_capped_at_2_percent_and_long_delays_add_2_more() {
    let law = law("");
    let mut capped = state(&law, 0.2, 200.0);
    law.update(&mut capped, 20_000);
    assert!((prob(&capped) - 0.22).abs() < 1e-9);
    let mut long = state(&law, 0.2, 300.0);
    law.update(&mut long, 20_000);
    assert!((prob(&long) - 0.24).abs() < 1e-9);
    let mut low = state(&law, 0.09, 200.0);
    law.update(&mut low, 20_000);
    assert!(prob(&low) > 0.11, "below 10 % there is no cap");
}

/// RFC 8033 section 4.2: exponential decay once the queue is empty.
#[test]
fn without_delay_a_64th_of_the_probability_goes() {
    let law = law("target 0");
    let mut state = state(&law, 0.5, 0.0);
    law.update(&mut state, 0);
    assert!((prob(&state) - 0.492_187_5).abs() < 1e-9);
    law.update(&mut state, 5000);
    assert!((prob(&state) - 0.492_187_5).abs() < 1e-9, "a backlog without delay tells nothing");
}

/// RFC 8033 section 4.1.
#[test]
fn nothing_is_dropped_below_half_of_target_or_two_packets() {
    let law = law("");
    let mut random = stream(1);
    let mut drops = |prob, delay_ms, backlog| {
        let mut state = state(&law, prob, delay_ms);
        (0..1000).filter(|_| law.drop_early(&mut state, backlog, 1514, &mut random)).count()
    };
    assert_eq!(drops(0.19, 7.4, 20_000), 0);
    assert!(drops(0.19, 7.6, 20_000) > 0);
    assert!(drops(0.21, 7.4, 20_000) > 0);
    assert_eq!(drops(0.5, 30.0, 3027), 0);
    assert!(drops(0.5, 30.0, 3028) > 0);
}

/// RFC 8033 section 5.4: no drop before the probabilities add up to 0.85, one at 8.5.
#[test]
fn drops_are_neither_bunched_nor_far_apart() {
    let law = law("");
    let mut random = stream(2);
    let mut state = state(&law, 0.1, 30.0);
    let mut gaps = Vec::new();
    let mut gap = 0;
    for _ in 0..200_000 {
        gap += 1;
        if law.drop_early(&mut state, 20_000, 1514, &mut random) {
            state.has_dropped();
            gaps.push(gap);
            gap = 0;
        }
    }
    let (least, most) = (gaps.iter().min(), gaps.iter().max());
    assert_eq!(least, Some(&9), "the ninth packet is the first that may go");
    assert!(most <= Some(&86), "{most:?}");
    let mean = gaps.iter().sum::<u32>() as f64 / gaps.len() as f64;
    // Eight spared, then one in ten.
    assert!((mean - 18.0).abs() < 0.5, "{mean}");
}

#[test]
fn small_packets_are_dropped_less_in_byte_mode() {
    let law = law("bytemode");
    let mut random = stream(3);
    let mut share = |bytes| {
        let mut state = state(&law, 0.3, 30.0);
        let mut dropped = 0;
        for _ in 0..20_000 {
            if law.drop_early(&mut state, 20_000, bytes, &mut random) {
                state.has_dropped();
                dropped += 1;
            }
        }
        f64::from(dropped) / 20_000.0
    };
    let (small, full) = (share(151), share(1514));
    assert!((small / full - 0.1).abs() < 0.02, "{small} {full}");
}

/// RFC 8033 section 4.4.
#[test]
fn a_burst_of_150_ms_passes_and_rest_gives_the_allowance_back() {
    let mut bench = Bench::new("pie limit 100000");
    let first_drop = |bench: &mut Bench| {
        let begun = bench.now;
        let mut load = arrivals(Rate::from_bps(100_000_000));
        let shift = begun.since(Time::ZERO);
        bench.drain(RATE, Span::from_secs(1), |bench| {
            bench.now = Time::ZERO + bench.now.since(begun);
            load(bench);
            bench.now += shift;
        });
        let drops = bench.drop_times();
        drops.into_iter().find(|time| time.since(Time::ZERO) > shift).map(|time| time.since(begun))
    };
    let drop = first_drop(&mut bench).expect("an overload is dropped");
    assert!(drop > Span::from_millis(149), "{drop}");
    while bench.take().is_some() {
        bench.now += RATE.time_for(1514);
    }
    bench.wait(Span::from_secs(60));
    bench.take();
    assert_eq!(bench.detail("prob_ppm"), 0);
    assert_eq!(bench.qdisc.backlog().packets, 0);
}

#[test]
fn a_deaf_overload_is_held_at_target() {
    for text in ["pie", "pie dq_rate_estimator", "pie target 5ms tupdate 5ms"] {
        let mut bench = Bench::new(text);
        let target = if text.contains("5ms tup") { 5.0 } else { 15.0 };
        let mut load = arrivals(Rate::from_bps(12_000_000));
        bench.drain(RATE, Span::from_secs(20), &mut load);
        let dropped = bench.record.dropped.len();
        let mut waits = Vec::new();
        let end = bench.now + Span::from_secs(20);
        while bench.now < end {
            load(&mut bench);
            let (packet, wait) = bench.take_with_wait().expect("an overloaded queue holds packets");
            waits.push(wait.as_millis_f64());
            bench.now += RATE.time_for(u64::from(packet.wire_len()));
        }
        let mean = waits.iter().sum::<f64>() / waits.len() as f64;
        assert!((mean / target - 1.0).abs() < 0.1, "{text}: {mean}");
        let dropped = (bench.record.dropped.len() - dropped) as f64;
        let share = dropped / (dropped + waits.len() as f64);
        assert!((share - 1.0 / 6.0).abs() < 0.005, "{text}: {share}");
    }
}

#[test]
fn updates_made_up_for_are_those_made_on_time() {
    let run = |polls: bool| {
        let mut bench = Bench::new("pie");
        let mut load = arrivals(Rate::from_bps(14_000_000));
        bench.drain(RATE, Span::from_secs(2), &mut load);
        while bench.take().is_some() {
            bench.now += RATE.time_for(1514);
        }
        let end = bench.now + Span::from_millis(333);
        while polls && bench.now + Span::from_millis(1) < end {
            bench.wait(Span::from_millis(1));
            assert!(bench.take().is_none());
        }
        bench.now = end;
        bench.take();
        bench.qdisc.details()
    };
    assert_eq!(run(false), run(true));
    assert!(run(true)[0].1 > 0, "some probability is left to compare");
}

/// RFC 8033 section 5.1.
#[test]
fn marks_make_way_for_drops_above_10_percent() {
    let law = law("ecn");
    assert!(law.may_mark(&state(&law, 0.0999, 30.0)));
    assert!(!law.may_mark(&state(&law, 0.1001, 30.0)));
    let mut bench = Bench::new("pie ecn");
    let mut load = arrivals(Rate::from_bps(10_200_000));
    bench.drain(RATE, Span::from_secs(10), |bench| load(bench));
    assert_eq!(bench.detail("ecn_mark"), 0, "what is not capable is dropped");
    assert!(!bench.dropped_ids(DropReason::Aqm).is_empty());
    let mut bench = Bench::new("pie ecn");
    let mut next = Time::ZERO;
    bench.drain(RATE, Span::from_secs(3), |bench| {
        while next <= bench.now {
            bench.offer(packet(0).ecn(Ecn::Ect0));
            next += Rate::from_bps(10_200_000).time_for(1514);
        }
    });
    assert!(bench.detail("ecn_mark") > 0);
}

#[test]
fn the_limit_is_in_packets() {
    let mut bench = Bench::new("pie limit 5");
    for id in 0..8 {
        bench.offer(packet(id));
    }
    assert_eq!(bench.dropped_ids(DropReason::Full), [5, 6, 7]);
    assert_eq!(bench.detail("overlimit"), 3);
}

#[test]
fn tc_shows_the_defaults() {
    assert_eq!(text_reads_back("pie"), "pie limit 1000p target 15ms tupdate 15ms alpha 2 beta 20");
    assert_eq!(
        text_reads_back("pie limit 20 target 1s tupdate 20ms ecn bytemode dq_rate_estimator"),
        "pie limit 20p target 1s tupdate 20ms alpha 2 beta 20 ecn bytemode dq_rate_estimator"
    );
    assert_eq!(
        text_reads_back("pie ecn noecn bytemode nobytemode"),
        "pie limit 1000p target 15ms tupdate 15ms alpha 2 beta 20"
    );
}

#[test]
fn bad_parameters_say_what_is_allowed() {
    for (text, part) in [
        ("pie alpha 33", "0 to 32"),
        ("pie tupdate 0", "1us"),
        ("pie targt 5ms", "did you mean 'target'?"),
        ("pie limit 0", "number of packets"),
    ] {
        let error = AnyConfig::parse(text).unwrap_err().to_string();
        assert!(error.contains(part), "{text}: {error}");
    }
}
