use proptest::prelude::*;

use super::harness::{Lab, MSS, Path, SECOND, at, mbps, setup, torment};
use super::*;

fn lab(path: Path) -> Lab<Bbr> {
    seeded(1, path)
}

fn seeded(seed: u64, path: Path) -> Lab<Bbr> {
    let rtt = path.rtt;
    Lab::new(Bbr::new(Config::default(), setup(seed, Some(rtt))), path)
}

// STARTUP and DRAIN

#[test]
fn the_first_window_is_paced_over_the_handshake_rtt() {
    let bbr = Bbr::new(Config::default(), setup(1, Some(Span::from_millis(20))));
    // 739/256 · 10 segments / 20 ms, less 1 %, in whole bytes a second.
    let exact = 739.0 / 256.0 * 10.0 * 1448.0 / 0.020 * 0.99;
    let rate = bbr.pacing_rate().expect("BBR paces").as_bytes_per_sec() as f64;
    assert!((rate / exact - 1.0).abs() < 1e-3, "{rate} {exact}");
}

#[test]
fn without_a_handshake_rtt_it_is_paced_over_a_millisecond_until_there_is_one() {
    let path = Path::new(10, 20, 1000);
    let mut lab = Lab::new(Bbr::new(Config::default(), setup(1, None)), path);
    assert!(lab.cc.pacing_rate().expect("BBR paces").as_mbps() > 300.0);
    lab.run_while(|lab| lab.rows.is_empty());
    assert!(lab.cc.pacing_rate().expect("BBR paces").as_mbps() < 20.0);
}

#[test]
fn startup_doubles_until_the_pipe_is_full_and_sees_it_three_rounds_later() {
    let mut lab = lab(Path::new(100, 40, 4000));
    lab.run_to(&["DRAIN"]);
    // 345 segments fill this pipe: six rounds of doubling, three without growth, and the rounds
    // are longer while the queue builds.
    let rounds = lab.cc.rounds;
    assert!((8..=11).contains(&rounds), "{rounds}");
    assert_eq!(lab.cc.full_bw_count, 3);
    assert!((mbps(lab.cc.bandwidth()) / 100.0 - 1.0).abs() < 0.02);
    assert!(lab.cc.ssthresh().is_some());
}

#[test]
fn drain_ends_when_a_bdp_is_in_flight() {
    let mut lab = lab(Path::new(50, 40, 4000));
    lab.run_to(&["DRAIN"]);
    assert!(f64::from(lab.in_flight()) > 2.0 * lab.path.bdp());
    lab.run_while(|lab| lab.cc.phase() == "DRAIN");
    let in_flight = f64::from(lab.in_flight());
    assert!(in_flight < 1.15 * lab.path.bdp() + 12.0, "{in_flight}");
}

#[test]
fn pacing_never_slows_down_before_the_pipe_is_full() {
    let mut lab = lab(Path::new(100, 40, 4000));
    lab.app_rate = Some(Rate::from_bps(3_000_000));
    lab.run(SECOND * 5);
    assert_eq!(lab.cc.phase(), "STARTUP");
    assert!(lab.rows.is_sorted_by_key(|row| row.pacing));
}

// PROBE_BW

#[test]
fn the_cycle_starts_anywhere_but_below_the_bandwidth() {
    let mut starts = [0; 8];
    for seed in 0..200 {
        let mut bbr = Bbr::new(Config::default(), setup(seed, None));
        bbr.enter_probe_bw();
        starts[bbr.cycle_index] += 1;
    }
    assert_eq!(starts[1], 0);
    assert!(starts.iter().filter(|count| **count > 10).count() == 7, "{starts:?}");
}

#[test]
fn a_cycle_is_one_phase_up_one_down_and_six_level_of_a_min_rtt_each() {
    let mut lab = lab(Path::new(20, 40, 1000));
    lab.run(SECOND * 8);
    let phases: Vec<_> = lab.phases().into_iter().skip_while(|(at_, _)| *at_ < at(2000)).collect();
    let ups: Vec<_> = phases.iter().filter(|(_, phase)| *phase == "PROBE_BW:1.25").collect();
    for pair in ups.windows(2) {
        let cycle = pair[1].0.since(pair[0].0).as_secs_f64() / 0.040;
        assert!((7.0..9.5).contains(&cycle), "{cycle}");
    }
    for three in phases.windows(3) {
        if three[0].1 == "PROBE_BW:1.25" {
            assert_eq!((three[1].1, three[2].1), ("PROBE_BW:0.75", "PROBE_BW:1"));
        }
    }
}

#[test]
fn the_window_is_two_bdps_and_the_budget_of_offloading() {
    let mut lab = lab(Path::new(20, 40, 1000));
    lab.run(SECOND * 3);
    lab.run_to(&["PROBE_BW:1"]);
    let bbr = &lab.cc;
    let bdp = bbr.bw.value().bdp(bbr.min_rtt.expect("known").as_micros(), Gain::of_256(512));
    let sum = bdp + bbr.aggregation.extra_acked() + 3 * bbr.pacing.tso_goal();
    assert_eq!(bbr.cwnd(), sum + sum % 2);
    assert!((f64::from(bdp) / lab.path.bdp() - 2.0).abs() < 0.1);
}

#[test]
fn a_single_flow_fills_the_link_with_a_short_queue() {
    let mut lab = lab(Path::new(20, 40, 1000));
    lab.run(SECOND * 9);
    let utilisation = lab.utilisation(at(1000));
    assert!(utilisation > 0.985, "{utilisation}");
    let mean = lab.rows.iter().filter(|row| row.at > at(1000)).map(|row| row.rtt.as_millis_f64());
    let mean = mean.clone().sum::<f64>() / mean.count() as f64;
    assert!((40.0..45.0).contains(&mean), "{mean}");
}

#[test]
fn samples_of_an_application_limited_flow_do_not_lower_the_bandwidth() {
    let mut lab = lab(Path::new(20, 40, 1000));
    lab.run(SECOND * 2);
    lab.app_rate = Some(Rate::from_bps(1_000_000));
    lab.run(SECOND * 6);
    assert!(mbps(lab.cc.bandwidth()) > 19.0);
    lab.app_rate = None;
    lab.run(Span::from_millis(500));
    assert!(lab.utilisation(lab.now - Span::from_millis(200)) > 0.9);
}

#[test]
fn ten_rounds_after_the_link_slows_down_so_does_the_estimate() {
    let mut lab = lab(Path::new(20, 40, 1000));
    lab.run(SECOND * 2);
    lab.path.rate = Rate::from_bps(10_000_000);
    let rounds = lab.cc.rounds;
    lab.run_while(|lab| mbps(lab.cc.bandwidth()) > 10.5);
    let rounds = lab.cc.rounds - rounds;
    assert!((10..=22).contains(&rounds), "{rounds}");
}

#[test]
fn aggregated_acknowledgements_widen_the_window() {
    let mut lab = lab(Path::new(20, 40, 1000).acking_every(Span::from_millis(15)));
    lab.run(SECOND * 4);
    // 26 segments arrive at once.
    assert!((15..=60).contains(&lab.cc.aggregation.extra_acked()));
    assert!(f64::from(lab.cc.cwnd()) > 2.0 * lab.path.bdp() + 15.0);
    let utilisation = lab.utilisation(at(1000));
    assert!(utilisation > 0.95, "{utilisation}");
}

// PROBE_RTT

#[test]
fn every_ten_seconds_four_segments_are_in_flight_for_200_ms_and_a_round() {
    let mut lab = lab(Path::new(20, 40, 1000));
    lab.run(SECOND * 40);
    let phases = lab.phases();
    let probes: Vec<_> =
        phases.windows(2).filter(|pair| pair[0].1 == "PROBE_RTT").map(|pair| pair[0].0).collect();
    assert_eq!(probes.len(), 3, "{probes:?}");
    for pair in probes.windows(2) {
        let interval = pair[1].since(pair[0]).as_secs_f64();
        assert!((10.2..10.5).contains(&interval), "{interval}");
    }
    for pair in phases.windows(2).filter(|pair| pair[0].1 == "PROBE_RTT") {
        let stay = pair[1].0.since(pair[0].0).as_millis();
        assert!((240..340).contains(&stay), "{stay}");
        assert!(pair[1].1.starts_with("PROBE_BW"));
    }
    let held = lab.rows.iter().filter(|row| row.phase == "PROBE_RTT");
    assert!(held.clone().all(|row| row.cwnd == 4) && held.count() > 10);
    // 0.2 s of 10.3 s at next to nothing.
    let utilisation = lab.utilisation(at(10_000));
    assert!((0.955..0.985).contains(&utilisation), "{utilisation}");
}

#[test]
fn the_low_rates_of_probe_rtt_do_not_reach_the_filter() {
    let mut lab = lab(Path::new(20, 40, 1000));
    lab.run_to(&["PROBE_RTT"]);
    lab.run(SECOND * 5);
    let least = lab.rows.iter().skip_while(|row| row.phase != "PROBE_RTT");
    let least = least.map(|row| mbps(row.bandwidth)).fold(f64::INFINITY, f64::min);
    assert!(least > 19.0, "{least}");
}

#[test]
fn a_longer_path_is_noticed_only_when_the_old_one_has_expired() {
    let mut lab = lab(Path::new(20, 40, 1000));
    lab.run(SECOND * 3);
    lab.path.rtt = Span::from_millis(60);
    lab.run(SECOND * 4);
    assert!(lab.cc.model_min_rtt().expect("known") < Span::from_millis(41));
    lab.run(SECOND * 5);
    assert!(lab.cc.model_min_rtt().expect("known") > Span::from_millis(60));
}

#[test]
fn stamps_are_kept_in_jiffies() {
    let path = Path::new(20, 40, 1000);
    let mut setup = setup(1, Some(path.rtt));
    setup.tick = Span::from_millis(10);
    setup.now = Time::from_nanos(1_234_567);
    let mut lab = Lab::new(Bbr::new(Config::default(), setup), path);
    lab.run_to(&["PROBE_RTT"]);
    lab.run_while(|lab| lab.cc.probe_rtt_done_stamp.is_none());
    let done = lab.cc.probe_rtt_done_stamp.expect("just set").as_nanos();
    assert_eq!(done % 10_000_000, 0);
    assert_eq!(lab.cc.min_rtt_stamp.as_nanos() % 10_000_000, 0);
    lab.run_while(|lab| lab.cc.phase() == "PROBE_RTT");
    assert!(lab.now.as_nanos() >= done + 10_000_000, "only a later tick is after it");
}

// Losses

#[test]
fn the_first_round_of_recovery_conserves_packets_and_the_end_restores_the_window() {
    let mut lab = lab(Path::new(20, 40, 1000));
    lab.run(SECOND * 2);
    let before = lab.cc.cwnd();
    lab.path.drop_every = Some(50);
    lab.run_while(|lab| lab.state == RecoveryState::Open);
    lab.path.drop_every = None;
    let ack = lab.last_ack.expect("it began recovery");
    assert_eq!(lab.cc.cwnd(), ack.in_flight + ack.delivered);
    assert!(lab.cc.packet_conservation);
    lab.run_while(|lab| lab.state == RecoveryState::Recovery);
    assert!(lab.cc.cwnd() + 4 >= before, "{} {before}", lab.cc.cwnd());
}

#[test]
fn losses_hardly_slow_a_flow_down() {
    let mut lab = lab(Path::new(20, 40, 1000).dropping_every(50));
    lab.run(SECOND * 9);
    let utilisation = lab.utilisation(at(1000));
    assert!(utilisation > 0.9, "{utilisation}");
}

#[test]
fn after_a_timeout_one_segment_is_sent_and_recovery_restores_the_window() {
    let mut lab = lab(Path::new(20, 40, 1000));
    lab.run(SECOND * 2);
    let before = lab.cc.cwnd();
    lab.time_out();
    assert_eq!(lab.cc.cwnd(), 1);
    assert_eq!(lab.cc.full_bw, Bw::ZERO);
    lab.run_while(|lab| lab.state == RecoveryState::Loss);
    assert_eq!(lab.cc.cwnd(), before);
}

#[test]
fn an_undo_restarts_the_search_for_a_full_pipe() {
    let mut lab = lab(Path::new(20, 40, 1000));
    lab.run_while(|lab| lab.cc.full_bw_count < 2);
    lab.undo();
    assert_eq!((lab.cc.full_bw, lab.cc.full_bw_count), (Bw::ZERO, 0));
    assert!(lab.cc.policer.bw().is_none());
}

#[test]
fn a_policer_is_found_and_its_rate_is_used() {
    let mut lab = lab(Path::new(100, 40, 4000).policed(10, 100.0));
    lab.run_to(&["PROBE_BW:POLICED"]);
    assert!((mbps(lab.cc.bandwidth()) - 10.0).abs() < 1.0, "{:?}", lab.cc.bandwidth());
    let lost = lab.lost;
    let delivered = lab.delivered;
    lab.run(SECOND);
    let share = (lab.lost - lost) as f64 / (lab.delivered - delivered) as f64;
    assert!(share < 0.05, "{share}");
}

#[test]
fn a_policers_rate_is_used_for_48_rounds() {
    let mut lab = lab(Path::new(100, 40, 4000).policed(10, 100.0));
    lab.run_to(&["PROBE_BW:POLICED"]);
    let rounds = lab.cc.rounds;
    lab.run_while(|lab| lab.cc.phase() == "PROBE_BW:POLICED");
    assert!((48..=49).contains(&(lab.cc.rounds - rounds)), "{}", lab.cc.rounds - rounds);
}

// Idle

#[test]
fn after_a_pause_it_sends_at_the_bandwidth_and_skips_probe_rtt() {
    let mut lab = lab(Path::new(20, 40, 1000));
    lab.run(SECOND * 2);
    lab.paused = true;
    lab.run(SECOND * 11);
    assert_eq!(lab.in_flight(), 0);
    lab.paused = false;
    let rows = lab.rows.len();
    lab.run_while(|lab| lab.in_flight() == 0);
    let bw = mbps(lab.cc.bandwidth());
    let pacing = lab.cc.pacing_rate().expect("BBR paces").as_mbps();
    assert!((pacing / bw - 0.99).abs() < 1e-3, "{pacing} {bw}");
    lab.run_while(|lab| lab.rows.len() == rows);
    assert!(lab.cc.phase().starts_with("PROBE_BW"));
}

// Parts

#[test]
fn bursts_are_one_segment_below_1200_kbit_two_above_and_a_millisecond_at_high_rates() {
    let mut pacing = Pacing::new(&setup(1, Some(SECOND)), Gain::ONE, 1);
    let mut goal = |kbit: u64| {
        let micros = u64::from(MSS) * 8 * 1000 / kbit;
        pacing.update(Bw::of(1, micros), Gain::ONE, true, 10, None);
        (pacing.least_quantum(), pacing.tso_goal())
    };
    assert_eq!(goal(1_000), (1, 1));
    assert_eq!(goal(1_300), (2, 2));
    assert_eq!(goal(100_000), (2, 8));
    assert_eq!(goal(2_000_000), (2, 45));
}

#[test]
fn the_filter_forgets_a_maximum_when_it_leaves_the_window() {
    let mut filter = WindowedMax::default();
    filter.update(10, 0, 100);
    for round in 1..=10 {
        filter.update(10, round, 50);
        assert_eq!(filter.value(), 100);
    }
    filter.update(10, 11, 50);
    assert_eq!(filter.value(), 50);
}

proptest! {
    #[test]
    fn the_filter_answers_with_a_sample_of_the_window_not_below_the_last_one(
        values in proptest::collection::vec(0_u32..1000, 1..200),
    ) {
        let mut filter = WindowedMax::default();
        for (round, value) in values.iter().enumerate() {
            filter.update(10, round as u64, *value);
            let window = &values[round.saturating_sub(10)..=round];
            prop_assert!(window.contains(&filter.value()));
            prop_assert!(filter.value() >= *value);
            // The three samples kept cover the later half of the window at least.
            let recent = &values[round.saturating_sub(2)..=round];
            prop_assert!(filter.value() >= *recent.iter().max().expect("not empty"));
        }
    }

    #[test]
    fn no_legal_sequence_of_reports_breaks_it(
        seed: u64,
        tick_ms in 0_u64..20,
        bytes in proptest::collection::vec(any::<u8>(), 0..600),
    ) {
        let mut setup = setup(seed, None);
        setup.tick = Span::from_millis(tick_ms);
        torment(Bbr::new(Config::default(), setup), &bytes);
    }
}
