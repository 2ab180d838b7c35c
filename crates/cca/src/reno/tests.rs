use proptest::prelude::*;
use sojourn_core::{Rate, Span, Time};

use super::{Config, Reno};
use crate::testing::{Path, congestion, ops, plain_ack, play, setup};
use crate::{Ack, Congestion, CongestionKind, Controller, RecoveryState, Restart, Undo};

fn reno() -> Reno {
    Reno::new(Config::default(), setup())
}

/// Acknowledges `delivered` segments, the first of which is number `una`.
fn feed(reno: &mut Reno, delivered: u32, una: u32) {
    reno.on_ack(&plain_ack(Time::ZERO, delivered, una + delivered));
}

/// Reno at window `cwnd` with threshold `ssthresh`, in congestion avoidance.
fn reno_at(cwnd: u32) -> Reno {
    let mut setup = setup();
    setup.initial_cwnd = cwnd.min(10);
    let mut reno = Reno::new(Config::default(), setup);
    feed(&mut reno, 2 * cwnd - cwnd.min(10), 0);
    reno.on_congestion(&congestion(CongestionKind::Loss));
    assert_eq!((reno.cwnd(), reno.ssthresh()), (cwnd, Some(cwnd)));
    reno
}

/// RFC 5681 section 3.1, equation 2.
#[test]
fn slow_start_doubles_the_window_in_a_round() {
    let mut reno = reno();
    assert_eq!(reno.ssthresh(), None);
    for una in 0..10 {
        feed(&mut reno, 1, una);
    }
    assert_eq!((reno.cwnd(), reno.phase()), (20, "slow_start"));
}

#[test]
fn what_passes_the_threshold_counts_for_congestion_avoidance() {
    let mut reno = reno_at(20);
    reno.on_congestion(&Congestion { in_flight: 0, ..congestion(CongestionKind::Timeout) });
    assert_eq!((reno.cwnd(), reno.ssthresh()), (1, Some(10)));
    // Nine lead to the threshold and ten more make one segment.
    feed(&mut reno, 18, 100);
    assert_eq!((reno.cwnd(), reno.phase()), (10, "avoidance"));
    feed(&mut reno, 1, 118);
    assert_eq!(reno.cwnd(), 11);
}

/// RFC 5681 section 3.1, equation 3.
#[test]
fn congestion_avoidance_adds_one_segment_a_round() {
    let mut reno = reno_at(20);
    let mut una = 100;
    for round in 1..=5 {
        for _ in 0..reno.cwnd() {
            feed(&mut reno, 1, una);
            una += 1;
        }
        assert_eq!(reno.cwnd(), 20 + round);
    }
}

#[test]
fn the_window_grows_only_where_it_is_the_limit_and_nothing_is_reduced() {
    let mut reno = reno();
    let ack = plain_ack(Time::ZERO, 5, 5);
    reno.on_ack(&Ack { is_cwnd_limited: false, ..ack });
    reno.on_ack(&Ack { state: RecoveryState::Recovery, snd_una: 10, ..ack });
    reno.on_ack(&Ack { state: RecoveryState::Cwr, snd_una: 15, ..ack });
    reno.on_ack(&Ack { cumulative: 0, snd_una: 15, ..ack });
    assert_eq!(reno.cwnd(), 10);
    reno.on_ack(&Ack { state: RecoveryState::Disorder, snd_una: 20, ..ack });
    assert_eq!(reno.cwnd(), 15);
}

/// RFC 5681 section 3.1, equation 4.
#[test]
fn congestion_halves_the_window_but_not_below_two() {
    let mut reno = reno_at(21);
    reno.on_congestion(&congestion(CongestionKind::Ecn));
    assert_eq!((reno.cwnd(), reno.ssthresh()), (10, Some(10)));
    for _ in 0..5 {
        reno.on_congestion(&congestion(CongestionKind::Loss));
    }
    assert_eq!((reno.cwnd(), reno.ssthresh()), (2, Some(2)));
}

#[test]
fn loss_during_an_ecn_reduction_is_the_same_congestion() {
    let mut reno = reno_at(40);
    reno.on_congestion(&congestion(CongestionKind::Ecn));
    let during = Congestion { prior_state: RecoveryState::Cwr, ..congestion(CongestionKind::Loss) };
    reno.on_congestion(&during);
    assert_eq!(reno.ssthresh(), Some(20));
    reno.on_undo(&Undo { now: Time::ZERO });
    assert_eq!((reno.cwnd(), reno.ssthresh()), (20, Some(20)), "ECN is not taken back");
}

#[test]
fn a_second_timeout_lowers_the_threshold_only_after_progress() {
    let timeout = Congestion { snd_nxt: 500, in_flight: 3, ..congestion(CongestionKind::Timeout) };
    let again = Congestion { prior_state: RecoveryState::Loss, ..timeout };
    let mut reno = reno_at(40);
    reno.on_congestion(&timeout);
    assert_eq!((reno.cwnd(), reno.ssthresh()), (4, Some(20)));
    reno.on_congestion(&again);
    assert_eq!((reno.cwnd(), reno.ssthresh()), (4, Some(20)));
    reno.on_ack(&Ack { state: RecoveryState::Loss, ..plain_ack(Time::ZERO, 4, 104) });
    assert_eq!(reno.cwnd(), 8);
    reno.on_congestion(&again);
    assert_eq!((reno.cwnd(), reno.ssthresh()), (4, Some(4)));
}

#[test]
fn a_timeout_in_recovery_keeps_the_threshold_unless_that_flight_is_acknowledged() {
    let loss = Congestion { snd_nxt: 300, ..congestion(CongestionKind::Loss) };
    let timeout =
        Congestion { prior_state: RecoveryState::Recovery, ..congestion(CongestionKind::Timeout) };
    let mut reno = reno_at(40);
    reno.on_congestion(&loss);
    reno.on_congestion(&timeout);
    assert_eq!((reno.cwnd(), reno.ssthresh()), (1, Some(20)));

    let mut reno = reno_at(40);
    reno.on_congestion(&loss);
    reno.on_ack(&Ack { state: RecoveryState::Recovery, ..plain_ack(Time::ZERO, 1, 300) });
    reno.on_congestion(&timeout);
    assert_eq!(reno.ssthresh(), Some(10));
}

#[test]
fn undo_gives_back_window_and_threshold() {
    let mut reno = reno_at(40);
    reno.on_congestion(&congestion(CongestionKind::Loss));
    reno.on_undo(&Undo { now: Time::ZERO });
    assert_eq!((reno.cwnd(), reno.ssthresh()), (40, Some(40)));
    reno.on_congestion(&congestion(CongestionKind::Timeout));
    assert_eq!(reno.cwnd(), 1);
    reno.on_undo(&Undo { now: Time::ZERO });
    assert_eq!((reno.cwnd(), reno.ssthresh()), (40, Some(40)));
    reno.on_undo(&Undo { now: Time::ZERO });
    assert_eq!((reno.cwnd(), reno.ssthresh()), (40, Some(40)));
}

/// RFC 2861 section 3.1.
#[test]
fn idling_halves_the_window_once_per_timeout_down_to_the_initial_one() {
    let rto = Span::from_millis(200);
    let restart =
        |ms| Restart { now: Time::ZERO, idle: Span::from_millis(ms), rto, is_app_limited: true };
    for (idle_ms, cwnd, ssthresh) in [
        (200, 100, 100),
        (201, 50, 100),
        (400, 50, 100),
        (401, 25, 100),
        (601, 12, 100),
        (60_000, 10, 100),
    ] {
        let mut reno = reno_at(100);
        reno.on_restart(&restart(idle_ms));
        assert_eq!((reno.cwnd(), reno.ssthresh()), (cwnd, Some(ssthresh)), "{idle_ms} ms");
    }
    let mut reno = reno_at(4);
    reno.on_restart(&restart(60_000));
    assert_eq!(reno.cwnd(), 4, "a small window stays");
}

/// RFC 2861 section 3.2.
#[test]
fn an_unused_window_goes_half_the_way_to_what_was_used() {
    let mut reno = reno_at(100);
    reno.on_unused_window(100);
    assert_eq!(reno.cwnd(), 100);
    reno.on_unused_window(50);
    assert_eq!((reno.cwnd(), reno.ssthresh()), (75, Some(100)));
    reno.on_unused_window(1);
    assert_eq!(reno.cwnd(), 42, "no less than the initial window counts as used");
}

/// RFC 9438 section 5.2 has the same windows for AIMD.
#[test]
fn the_average_window_follows_the_inverse_root_of_loss() {
    for (period, expected) in [(1_000, 38.0), (10_000, 120.0), (100_000, 379.0)] {
        let mut path = Path::new(reno(), &setup(), Span::from_millis(100));
        path.loss_period = Some(period);
        path.run_until(Time::ZERO + Span::from_secs(100));
        path.measure();
        path.run_until(Time::ZERO + Span::from_secs(500));
        let average = path.average_cwnd();
        assert!((average / expected - 1.0).abs() < 0.1, "1/{period}: {average}");
    }
}

/// With a buffer of one BDP, halving the window still leaves one BDP in flight.
#[test]
fn a_buffer_of_one_path_keeps_the_link_busy() {
    let mut path = Path::new(reno(), &setup(), Span::from_millis(50));
    // 2000 segments a second, 100 on the way.
    path.rate = Rate::from_bps(24_000_000);
    path.is_paced = false;
    let busy = |path: &mut Path<Reno>, buffer| {
        path.buffer = buffer;
        path.run_until(path.connection.now + Span::from_secs(30));
        path.measure();
        path.run_until(path.connection.now + Span::from_secs(60));
        path.delivery_rate() / 2_000.0
    };
    assert!(busy(&mut path, 105) > 0.99);
    assert!((0.70..0.90).contains(&busy(&mut path, 10)));
}

proptest! {
    #[test]
    fn no_operation_breaks_it(ops in ops(), initial_cwnd in 1u32..100_000) {
        let mut setup = setup();
        setup.initial_cwnd = initial_cwnd;
        play(Reno::new(Config::default(), setup.clone()), &setup, &ops, |connection| {
            assert!(connection.controller.ssthresh().is_none_or(|ssthresh| ssthresh >= 2));
        });
    }
}
