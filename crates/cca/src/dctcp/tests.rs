use proptest::prelude::*;
use sojourn_core::Params;
use sojourn_core::{Rate, Span, Time, Words};

use super::harness::{Link, Marking};
use super::*;
use crate::Undo;
use crate::testing::{congestion, ops, plain_ack, play, setup};

const RTT: Span = Span::from_millis(10);
/// 10 000 segments a second: 100 fill the path.
const RATE: Rate = Rate::from_bps(120_000_000);

fn dctcp() -> Dctcp {
    configured("")
}

fn configured(text: &str) -> Dctcp {
    Dctcp::new(Config::parse(&mut Words::new(text)).expect("a good spec"), setup())
}

/// A window of `cwnd`, in congestion avoidance, with `alpha`.
fn dctcp_at(cwnd: u32, alpha: u32) -> Dctcp {
    let setup = Setup { initial_cwnd: cwnd.min(10), ..setup() };
    let mut dctcp = Dctcp::new(Config::default(), setup);
    dctcp.on_ack(&plain_ack(Time::ZERO, 2 * cwnd - cwnd.min(10), 2 * cwnd));
    dctcp.on_congestion(&congestion(CongestionKind::Loss));
    dctcp.on_recovered(Time::ZERO);
    assert_eq!(dctcp.cwnd(), cwnd);
    dctcp.alpha = alpha;
    dctcp
}

/// Acknowledges a window of a thousand segments, `marked` of them marked.
fn observe(dctcp: &mut Dctcp, window: u32, marked: u64) {
    let snd_una = dctcp.next_seq.unwrap_or(0) + 1_000;
    dctcp.next_seq = Some(snd_una);
    let ack = Ack {
        total_delivered: dctcp.old_delivered + 1_000,
        total_delivered_ce: dctcp.old_delivered_ce + marked,
        is_cwnd_limited: false,
        snd_nxt: snd_una + window,
        ..plain_ack(Time::ZERO, 1, snd_una)
    };
    dctcp.on_ack(&ack);
}

/// RFC 8257 section 3.3 step 5.
#[test]
fn alpha_moves_a_sixteenth_of_the_way_to_the_mark_rate_of_each_window() {
    let mut dctcp = dctcp();
    assert_eq!(dctcp.alpha, 1_024);
    observe(&mut dctcp, 10, 0);
    assert_eq!(dctcp.alpha, 960);
    observe(&mut dctcp, 10, 500);
    assert_eq!(dctcp.alpha, 960 - 60 + 32);
    for _ in 0..200 {
        observe(&mut dctcp, 10, 250);
    }
    // 256 minus what whole parts of 1/1024 cannot express.
    assert!((250..=271).contains(&dctcp.alpha), "{}", dctcp.alpha);
}

#[test]
fn an_average_below_16_1024ths_falls_to_zero() {
    let mut dctcp = dctcp_at(20, 16);
    observe(&mut dctcp, 10, 0);
    assert_eq!(dctcp.alpha, 15);
    observe(&mut dctcp, 10, 0);
    assert_eq!(dctcp.alpha, 0);
}

#[test]
fn the_average_waits_for_the_end_of_the_window() {
    let mut dctcp = dctcp();
    observe(&mut dctcp, 10, 0);
    let end = dctcp.next_seq.expect("a window began");
    let ack = Ack { total_delivered: 5_000, ..plain_ack(Time::ZERO, 9, end - 1) };
    dctcp.on_ack(&ack);
    assert_eq!(dctcp.alpha, 960);
    dctcp.on_ack(&Ack { snd_una: end, ..ack });
    assert_eq!(dctcp.alpha, 900);
}

/// RFC 8257 section 3.3 step 9.
#[test]
fn marks_take_half_of_alpha_off_the_window() {
    for (alpha, kept) in [(1_024, 50), (512, 75), (102, 96), (10, 100)] {
        let mut dctcp = dctcp_at(100, alpha);
        dctcp.on_congestion(&congestion(CongestionKind::Ecn));
        assert_eq!((dctcp.cwnd(), dctcp.ssthresh()), (kept, Some(kept)), "alpha {alpha}");
    }
    let mut dctcp = dctcp_at(2, 1_024);
    dctcp.on_congestion(&congestion(CongestionKind::Ecn));
    assert_eq!(dctcp.cwnd(), 2);
}

/// RFC 8257 section 3.4.
#[test]
fn loss_halves_the_window_whatever_alpha_is() {
    let mut dctcp = dctcp_at(100, 10);
    dctcp.on_congestion(&congestion(CongestionKind::Loss));
    assert_eq!((dctcp.cwnd(), dctcp.alpha), (50, 10));
    dctcp.on_undo(&Undo { now: Time::ZERO });
    assert_eq!(dctcp.cwnd(), 100);
}

/// RFC 8257 section 3.4, and Linux since 5.1.
#[test]
fn loss_during_a_reduction_for_marks_halves_again_and_once() {
    let mut told = dctcp_at(100, 512);
    told.on_congestion(&congestion(CongestionKind::Ecn));
    let mut seen = told.clone();
    let loss = Congestion { prior_state: RecoveryState::Cwr, ..congestion(CongestionKind::Loss) };
    told.on_congestion(&loss);
    assert_eq!(told.cwnd(), 37);
    let ack = Ack {
        state: RecoveryState::Recovery,
        prior_state: RecoveryState::Cwr,
        ..plain_ack(Time::ZERO, 1, 300)
    };
    for dctcp in [&mut told, &mut seen] {
        dctcp.on_ack(&ack);
        dctcp.on_ack(&Ack { prior_state: RecoveryState::Recovery, ..ack });
        assert_eq!(dctcp.cwnd(), 37);
        dctcp.on_undo(&Undo { now: Time::ZERO });
        assert_eq!(dctcp.cwnd(), 37, "marks are not taken back");
    }
}

#[test]
fn a_timeout_keeps_alpha_unless_told_to_set_it_to_one() {
    let timeout = Congestion { in_flight: 3, ..congestion(CongestionKind::Timeout) };
    let mut dctcp = dctcp_at(100, 100);
    dctcp.on_congestion(&timeout);
    assert_eq!((dctcp.cwnd(), dctcp.ssthresh(), dctcp.alpha), (4, Some(50), 100));
    let mut dctcp = configured("dctcp_clamp_alpha_on_loss dctcp_alpha_on_init=7");
    assert_eq!(dctcp.alpha, 7);
    dctcp.on_congestion(&timeout);
    assert_eq!(dctcp.alpha, 1_024);
}

#[test]
fn the_window_does_not_grow_while_it_is_reduced_for_marks() {
    let mut dctcp = dctcp_at(20, 512);
    dctcp.on_congestion(&congestion(CongestionKind::Ecn));
    dctcp.on_ack(&Ack { state: RecoveryState::Cwr, ..plain_ack(Time::ZERO, 15, 315) });
    assert_eq!(dctcp.cwnd(), 15);
}

#[test]
fn without_ecn_it_is_reno() {
    for (ecn, is_reno) in
        [(EcnFeedback::Off, true), (EcnFeedback::Classic, false), (EcnFeedback::Accurate, false)]
    {
        let built = Config::default().build(Setup { ecn, ..setup() });
        assert_eq!(matches!(built, OrReno::Reno(_)), is_reno, "{ecn:?}");
    }
}

fn step_marking(threshold: u32, flows: u64) -> Link<Dctcp> {
    let mut link = Link::new(RATE, Marking::Step(threshold));
    for index in 0..flows {
        link.add(dctcp(), RTT, Time::ZERO + Span::from_millis(13 * index));
    }
    link
}

/// Alizadeh et al., "Data Center TCP", section 3.3: with W* = (C · RTT + K) / N,
/// alpha = √(2 / W*), the window swings by D = (W* + 1) alpha / 2 and a cycle takes D round trips.
#[test]
fn the_sawtooth_on_a_step_is_that_of_the_analysis() {
    let mut link = step_marking(40, 1);
    link.run(Span::from_secs(5));
    link.measure();
    let (mut alphas, mut reductions, mut last) = (Vec::new(), 0, 0);
    let (mut least, mut most) = (u32::MAX, 0);
    link.watch(Span::from_secs(10), |_, flow| {
        let dctcp = &flow.connection.controller;
        alphas.push(f64::from(dctcp.alpha) / 1_024.0);
        reductions += u32::from(dctcp.cwnd() < last);
        last = dctcp.cwnd();
        least = least.min(last);
        most = most.max(last);
    });
    let w_star: f64 = 100.0 + 40.0;
    let expected_alpha = (2.0 / w_star).sqrt();
    let alpha = alphas.iter().sum::<f64>() / alphas.len() as f64;
    let swing = (w_star + 1.0) * expected_alpha / 2.0;
    let round_trip = w_star / 10_000.0;
    let cycle = 10.0 / f64::from(reductions) / round_trip;
    assert!((alpha / expected_alpha - 1.0).abs() < 0.1, "{alpha} for {expected_alpha}");
    assert!((f64::from(most - least) - swing).abs() < 2.0, "{least} to {most} for {swing}");
    assert!((cycle / swing - 1.0).abs() < 0.1, "{cycle} round trips for {swing}");
    assert!(link.throughput(0) > 9_990.0);
}

#[test]
fn two_flows_share_a_step_marking_link() {
    let mut link = step_marking(40, 1);
    link.run(Span::from_secs(5));
    link.add(dctcp(), RTT, link.now);
    link.run(Span::from_secs(5));
    link.measure();
    link.run(Span::from_secs(20));
    let (a, b) = (link.throughput(0), link.throughput(1));
    assert!((a / b - 1.0).abs() < 0.1, "{a} and {b}");
    assert!(a + b > 9_950.0);
    assert!(link.most_queue < 70.0, "{}", link.most_queue);
}

proptest! {
    #[test]
    fn no_operation_breaks_it(ops in ops(), initial_cwnd in 1_u32..100_000, clamp: bool) {
        let mut setup = setup();
        setup.initial_cwnd = initial_cwnd;
        let config = Config { dctcp_clamp_alpha_on_loss: clamp, ..Config::default() };
        play(Dctcp::new(config, setup.clone()), &setup, &ops, |connection| {
            let dctcp = &connection.controller;
            assert!(dctcp.alpha <= MAX_ALPHA);
            assert!(dctcp.ssthresh().is_none_or(|ssthresh| ssthresh >= 2));
        });
    }
}

#[test]
fn an_average_above_one_is_refused() {
    for text in ["dctcp_alpha_on_init=1025", "dctcp_shift_g=0", "dctcp_shift_g=11", "g=4"] {
        assert!(Config::parse(&mut Words::new(text)).is_err(), "{text}");
    }
}
