use proptest::prelude::*;
use sojourn_core::{Params, Words};

use super::*;
use crate::Memo;
use crate::bbr::harness::{Lab, Path, Rounds, SECOND, at, mbps, setup, torment};

fn lab(path: Path) -> Lab<Bbr3Linux> {
    configured("", path)
}

fn configured(text: &str, path: Path) -> Lab<Bbr3Linux> {
    let config = Config::parse(&mut Words::new(text)).expect("a good spec");
    let rtt = path.rtt;
    Lab::new(Bbr3Linux::new(config, setup(1, Some(rtt))), path)
}

/// In the first cycle after Startup.
fn in_probe_bw(path: Path) -> Lab<Bbr3Linux> {
    let mut lab = lab(path);
    lab.run_to(&["PROBE_BW:CRUISE"]);
    lab
}

// STARTUP and DRAIN

#[test]
fn startup_ends_after_three_rounds_without_growth() {
    let mut lab = lab(Path::new(100, 40, 4000));
    lab.run_to(&["DRAIN"]);
    assert!(lab.cc.full_pipe.now && lab.cc.full_pipe.reached);
    assert!((mbps(lab.cc.bandwidth()) / 100.0 - 1.0).abs() < 0.02);
    // Six rounds of doubling, three without growth, longer and longer with the queue.
    assert!((at(320)..at(560)).contains(&lab.now), "{}", lab.now);
    let rounds = lab.cc.round_count().expect("it counts");
    assert!((8..=11).contains(&rounds), "{rounds}");
    assert_eq!(lab.cc.bounds.inflight_hi, UNLIMITED);
}

#[test]
fn startup_ends_upon_heavy_loss_after_a_round_of_recovery() {
    let mut lab = lab(Path::new(100, 40, 30));
    lab.run_to(&["DRAIN"]);
    assert!(lab.cc.full_pipe.reached && !lab.cc.full_pipe.now);
    assert_ne!(lab.cc.bounds.inflight_hi, UNLIMITED);
    assert!(f64::from(lab.cc.bounds.inflight_hi) >= lab.path.bdp());
    assert_eq!(lab.state, RecoveryState::Recovery);
}

#[test]
fn five_lossy_acknowledgements_a_round_do_not_end_startup() {
    let losses = |n: u32| {
        let path = Path::new(100, 40, 4000);
        let mut lab = lab(path);
        lab.run_while(|lab| lab.cc.cwnd() < 100);
        lab.drop_one_by_one(n);
        lab.run_while(|lab| lab.cc.phase() == "STARTUP");
        lab.cc.full_pipe.now
    };
    assert!(losses(5), "it saw the plateau later");
    assert!(!losses(12), "it left because of the losses");
}

#[test]
fn drain_paces_at_88_256ths_until_a_bdp_is_in_flight() {
    let mut lab = lab(Path::new(50, 40, 4000));
    lab.run_to(&["DRAIN"]);
    assert_eq!(lab.cc.pacing_gain, Gain::of_256(88));
    lab.run_while(|lab| lab.cc.phase() == "DRAIN");
    let in_flight = f64::from(lab.in_flight());
    assert!(in_flight <= lab.path.bdp() * 1.05 + 4.0, "{in_flight}");
}

#[test]
fn the_window_may_double_from_the_initial_one_before_the_model_says_so() {
    let mut lab = lab(Path::new(1, 10, 100));
    lab.run_while(|lab| lab.cc.cwnd() < 20);
    assert_eq!(lab.cc.phase(), "STARTUP");
    assert!(lab.path.bdp() < 1.0);
}

// PROBE_BW

#[test]
fn the_cycle_is_down_cruise_refill_up() {
    let mut lab = configured("probe_rtt_interval=60s", Path::new(20, 40, 1000));
    lab.run(SECOND * 9);
    let phases: Vec<_> = lab.phases().iter().map(|(_, phase)| *phase).collect();
    let cycle = ["PROBE_BW:CRUISE", "PROBE_BW:REFILL", "PROBE_BW:UP", "PROBE_BW:DOWN"];
    let start = phases.iter().position(|phase| *phase == cycle[0]).expect("it cruises");
    for (index, phase) in phases[start..].iter().enumerate() {
        assert_eq!(*phase, cycle[index % 4], "{phases:?}");
    }
    assert!(phases.len() > 8);
}

#[test]
fn a_large_bdp_is_probed_every_two_to_three_seconds() {
    let mut lab = configured("probe_rtt_interval=60s", Path::new(100, 80, 4000));
    lab.run(SECOND * 30);
    let phases = lab.phases();
    let waits: Vec<_> = phases
        .windows(3)
        .filter(|three| three[0].1 == "PROBE_BW:DOWN" && three[2].1 == "PROBE_BW:REFILL")
        .map(|three| three[2].0.since(three[0].0).as_secs_f64())
        .collect();
    assert!(waits.len() > 6);
    assert!(waits.iter().all(|wait| (2.0..3.05).contains(wait)), "{waits:?}");
    let spread = waits.iter().fold(0.0, |most: f64, wait| most.max((wait - waits[0]).abs()));
    assert!(spread > 0.1, "{waits:?}");
}

#[test]
fn a_small_bdp_is_probed_as_often_as_reno_would() {
    let mut lab = lab(Path::new(10, 20, 1000));
    lab.run_to(&["PROBE_BW:UP"]);
    lab.run_to(&["PROBE_BW:DOWN"]);
    let start = lab.cc.rounds_since_probe;
    assert!(start < 2);
    lab.run_to(&["PROBE_BW:REFILL"]);
    // 17.3 segments at 10 Mbit/s and 20 ms.
    assert!((17..=19).contains(&lab.cc.rounds_since_probe), "{}", lab.cc.rounds_since_probe);
}

#[test]
fn refill_lasts_a_round_at_the_bandwidth() {
    let mut lab = lab(Path::new(20, 40, 1000));
    lab.run_to(&["PROBE_BW:REFILL"]);
    let start = lab.now;
    assert_eq!(lab.cc.pacing_gain, Gain::ONE);
    lab.run_to(&["PROBE_BW:UP"]);
    let stay = lab.now.since(start).as_millis_f64();
    assert!((38.0..46.0).contains(&stay), "{stay}");
}

#[test]
fn up_paces_at_1_25_with_a_window_of_2_25_bdps_until_bandwidth_stops_growing() {
    let mut lab = lab(Path::new(20, 40, 1000));
    lab.run_to(&["PROBE_BW:UP"]);
    let start = lab.now;
    assert_eq!(lab.cc.pacing_gain, Gain::of_256(320));
    assert_eq!(lab.cc.cwnd_gain, Gain::of_256(576));
    lab.run_to(&["PROBE_BW:DOWN"]);
    assert_eq!(lab.cc.pacing_gain, Gain::of_256(232));
    assert!(lab.cc.full_pipe.now);
    // Three rounds that grow with the queue.
    let rounds = lab.now.since(start).as_secs_f64() / 0.040;
    assert!((3.0..5.5).contains(&rounds), "{rounds}");
}

#[test]
fn with_the_rule_of_version_2_up_ends_when_1_25_bdps_are_in_flight() {
    let mut lab = configured("probe_up_exit=inflight", Path::new(20, 40, 1000));
    lab.run_to(&["PROBE_BW:UP"]);
    let start = lab.now;
    lab.run_to(&["PROBE_BW:DOWN"]);
    let rounds = lab.now.since(start).as_secs_f64() / 0.040;
    assert!((1.0..2.5).contains(&rounds), "{rounds}");
    assert!(f64::from(lab.in_flight()) > 1.15 * lab.path.bdp());
}

#[test]
fn down_ends_when_headroom_is_free_and_the_queue_is_drained() {
    let mut lab = lab(Path::new(20, 40, 1000));
    lab.run_to(&["PROBE_BW:UP"]);
    lab.run_to(&["PROBE_BW:DOWN"]);
    lab.cc.bounds.inflight_hi = 60;
    lab.run_to(&["PROBE_BW:CRUISE"]);
    let ack = lab.last_ack.expect("it just came");
    let free = lab.cc.inflight_with_headroom();
    assert_eq!(free, lab.cc.bounds.inflight_hi - lab.cc.bounds.inflight_hi * 38 / 256);
    assert!(lab.cc.in_net_at_departure(&ack, ack.prior_in_flight) <= free);
    assert!(lab.cc.cwnd() <= free, "cruising leaves 15 % free");
}

#[test]
fn a_single_flow_fills_the_link_but_for_probe_rtt() {
    let mut lab = lab(Path::new(20, 40, 1000));
    lab.run(SECOND * 40);
    let utilisation = lab.utilisation(at(1000));
    assert!((0.965..0.99).contains(&utilisation), "{utilisation}");
    assert_eq!(lab.lost, 0);
}

#[test]
fn ten_times_the_bandwidth_is_found_in_a_few_probes() {
    let mut lab = in_probe_bw(Path::new(10, 40, 4000));
    lab.path.rate = Rate::from_bps(100_000_000);
    lab.run_while(|lab| mbps(lab.cc.bandwidth()) < 90.0);
    assert!(lab.now < at(8_000), "{}", lab.now);
}

#[test]
fn a_tenth_of_the_bandwidth_is_accepted_after_two_cycles() {
    let mut lab = in_probe_bw(Path::new(100, 40, 50));
    lab.path.rate = Rate::from_bps(10_000_000);
    lab.run_while(|lab| mbps(lab.cc.bandwidth()) > 11.0);
    lab.run(SECOND * 10);
    let max_bw = lab.cc.max_bw.value().rate(1448).as_mbps();
    assert!((9.0..11.5).contains(&max_bw), "{max_bw}");
}

// Bounds

#[test]
fn too_much_loss_ends_up_and_sets_inflight_hi_to_where_the_losses_began() {
    let mut lab = in_probe_bw(Path::new(20, 40, 15));
    lab.cc.bounds.inflight_hi = UNLIMITED;
    lab.run_to(&["PROBE_BW:UP"]);
    lab.run_to(&["PROBE_BW:DOWN"]);
    assert!(lab.cc.prev_probe_too_high && !lab.cc.is_probe_sample);
    // What overflows the link is its BDP and its buffer.
    let full = lab.path.bdp() + 16.0;
    let inflight_hi = f64::from(lab.cc.bounds.inflight_hi);
    assert!((full - 4.0..full + 6.0).contains(&inflight_hi), "{inflight_hi} {full}");
}

#[test]
fn after_a_lossy_probe_the_next_stops_at_inflight_hi_and_the_one_after_goes_beyond() {
    let mut lab = in_probe_bw(Path::new(20, 40, 15));
    lab.run_while(|lab| !lab.cc.prev_probe_too_high);
    lab.run_to(&["PROBE_BW:UP"]);
    lab.run_to(&["PROBE_BW:DOWN"]);
    assert!(lab.cc.stopped_risky_probe && !lab.cc.prev_probe_too_high);
    lab.run_while(|lab| lab.cc.phase() == "PROBE_BW:DOWN");
    assert_eq!(lab.cc.phase(), "PROBE_BW:REFILL", "no cruise in between");
    assert!(!lab.cc.stopped_risky_probe);
}

#[test]
fn inflight_hi_grows_by_1_2_4_in_successive_rounds() {
    let mut lab = lab(Path::new(20, 40, 1000));
    lab.run_to(&["PROBE_BW:UP"]);
    let mut cc = lab.cc;
    cc.bounds.inflight_hi = 64;
    (cc.cwnd, cc.probe_up_rounds, cc.probe_up_acks) = (64, 0, 0);
    cc.raise_inflight_hi_slope();
    let mut ack = lab.last_ack.expect("one came");
    (ack.delivered, ack.was_cwnd_full) = (1, true);
    for growth in [1, 2, 4, 8] {
        let before = cc.bounds.inflight_hi;
        for index in 1..=64 {
            cc.round_start = index == 64;
            cc.cwnd = cc.bounds.inflight_hi;
            cc.probe_inflight_hi_upward(&ack);
            if index == 64 {
                cc.cwnd = 64;
                cc.probe_up_rounds -= 1;
                cc.raise_inflight_hi_slope();
            }
        }
        assert_eq!(cc.bounds.inflight_hi - before, growth);
    }
}

/// The kernel reads `tp->is_cwnd_limited`, which knows no slow start.
#[test]
fn a_window_of_which_half_is_used_raises_no_bound() {
    let mut lab = lab(Path::new(20, 40, 1000));
    lab.run_to(&["PROBE_BW:UP"]);
    let mut cc = lab.cc;
    (cc.bounds.inflight_hi, cc.cwnd) = (64, 64);
    let mut ack = lab.last_ack.expect("one came");
    (ack.delivered, ack.is_cwnd_limited, ack.was_cwnd_full) = (1000, true, false);
    cc.probe_inflight_hi_upward(&ack);
    assert_eq!(cc.bounds.inflight_hi, 64);
    ack.was_cwnd_full = true;
    cc.probe_inflight_hi_upward(&ack);
    assert!(cc.bounds.inflight_hi > 64);
}

#[test]
fn losses_while_cruising_cut_the_lower_bounds_once_a_round_to_what_was_delivered() {
    let mut lab = lab(Path::new(20, 40, 1000));
    lab.run(SECOND * 2);
    lab.run_to(&["PROBE_BW:CRUISE"]);
    assert_eq!(lab.cc.bounds.bw_lo, Bw::UNLIMITED);
    let max_bw = lab.cc.max_bw.value();
    lab.path.drop_every = Some(10);
    lab.run_while(|lab| lab.cc.bounds.bw_lo == Bw::UNLIMITED);
    // A tenth is lost, so nine tenths were delivered, which is more than 180/256.
    let bw_lo = lab.cc.bounds.bw_lo;
    assert!(bw_lo >= max_bw.times(Gain::of_256(180)) && bw_lo <= max_bw);
    assert!(lab.cc.cwnd() <= lab.cc.bounds.inflight_lo);
    lab.path.drop_every = None;
    lab.run_to(&["PROBE_BW:REFILL"]);
    assert_eq!((lab.cc.bounds.bw_lo, lab.cc.bounds.inflight_lo), (Bw::UNLIMITED, UNLIMITED));
}

#[test]
fn one_percent_of_loss_costs_little() {
    let mut lab = lab(Path::new(20, 40, 1000).dropping_every(100));
    lab.run(SECOND * 20);
    let utilisation = lab.utilisation(at(1000));
    assert!(utilisation > 0.85, "{utilisation}");
}

#[test]
fn the_loss_budget_is_5_256ths_of_what_was_in_flight_rounded_down() {
    let lab = lab(Path::new(20, 40, 1000));
    let is_too_high = |lost, tx_in_flight| {
        lab.cc.is_inflight_too_high(&Sample { lost, tx_in_flight, ..Sample::default() })
    };
    assert!(!is_too_high(1, 52) && is_too_high(2, 52), "52 · 5/256 = 1.02");
    assert!(is_too_high(1, 51), "51 · 5/256 = 0.996");
    assert!(!is_too_high(0, 51) && !is_too_high(3, 0));
}

#[test]
fn losses_before_the_threshold_belong_to_the_prefix_that_fits() {
    let mut lab = lab(Path::new(20, 40, 1000));
    lab.run_to(&["PROBE_BW:UP"]);
    let mut cc = lab.cc;
    let mut lost = Lost {
        now: lab.now,
        memo: Memo { in_flight: 101, lost: 10, ..Memo::default() },
        total_lost: 11,
        total_delivered: lab.delivered,
        retransmission: false,
        by_tail_loss_probe: false,
    };
    cc.on_lost(&lost);
    assert_eq!(cc.phase(), "PROBE_BW:UP", "one of 101 is within the budget");
    lost.total_lost = 12;
    cc.on_lost(&lost);
    assert_eq!(cc.phase(), "PROBE_BW:DOWN");
    // 100 before it allow ⌈100 · 5/256⌉ = 2 losses, one was lost: (2 − 1) · 256/251 = 1 more fits.
    assert_eq!(cc.bounds.inflight_hi, 101);
}

#[test]
fn inflight_hi_is_not_cut_below_beta_times_the_target_nor_when_the_application_is_the_limit() {
    let mut lab = lab(Path::new(20, 40, 1000));
    lab.run_to(&["PROBE_BW:UP"]);
    let target = lab.cc.target_inflight();
    let mut cc = lab.cc.clone();
    cc.handle_inflight_too_high(lab.now, 5, false);
    assert_eq!(cc.bounds.inflight_hi, target * 180 / 256);
    let mut cc = lab.cc;
    cc.handle_inflight_too_high(lab.now, 5, true);
    assert_eq!(cc.bounds.inflight_hi, UNLIMITED);
}

#[test]
fn the_bandwidth_filter_keeps_the_old_cycle_while_the_new_one_has_no_sample() {
    let (a, b) = (Bw::of(2, 1000), Bw::of(1, 1000));
    let mut max_bw = MaxBw::default();
    max_bw.take(a);
    max_bw.advance();
    max_bw.advance();
    assert_eq!(max_bw.value(), a);
    max_bw.take(b);
    assert_eq!(max_bw.value(), a);
    max_bw.advance();
    assert_eq!(max_bw.value(), b);
}

#[test]
fn a_spurious_loss_restores_the_bounds_and_the_window() {
    let mut lab = in_probe_bw(Path::new(20, 40, 1000));
    lab.run(SECOND);
    lab.run_to(&["PROBE_BW:CRUISE"]);
    let before = lab.cc.cwnd();
    lab.path.drop_every = Some(4);
    lab.run_while(|lab| lab.cc.bounds.bw_lo == Bw::UNLIMITED);
    assert!(lab.cc.cwnd() < before);
    lab.undo();
    assert_eq!(lab.cc.bounds.bw_lo, Bw::UNLIMITED);
    assert_eq!(lab.cc.bounds.inflight_lo, UNLIMITED);
    assert_eq!(lab.cc.cwnd(), lab.cc.prior_cwnd);
}

#[test]
fn after_a_timeout_one_segment_is_sent_and_the_lower_bound_remembers_the_window() {
    let mut lab = in_probe_bw(Path::new(20, 40, 1000));
    let before = lab.cc.cwnd();
    lab.time_out();
    assert_eq!(lab.cc.cwnd(), 1);
    assert_eq!(lab.cc.bounds.inflight_lo, before);
    lab.run_while(|lab| lab.state == RecoveryState::Loss);
    assert!(lab.cc.cwnd() > 4);
}

#[test]
fn a_tail_loss_that_a_probe_repaired_is_judged_by_what_was_delivered_in_a_round() {
    let mut lab = lab(Path::new(20, 40, 1000));
    lab.run_to(&["PROBE_BW:UP"]);
    let mut cc = lab.cc;
    cc.bounds.inflight_latest = 30;
    cc.on_lost(&Lost {
        now: lab.now,
        memo: Memo::default(),
        total_lost: 1,
        total_delivered: lab.delivered,
        retransmission: false,
        by_tail_loss_probe: true,
    });
    assert!(cc.prev_probe_too_high, "1 of 31 is more than 5/256");
    let bounds_latest = cc.bounds.inflight_latest;
    assert_eq!(bounds_latest, 0, "a new cycle begins");
}

// PROBE_RTT

#[test]
fn every_five_seconds_half_a_bdp_is_in_flight_for_200_ms() {
    let mut lab = lab(Path::new(20, 40, 1000));
    lab.run(SECOND * 26);
    let phases = lab.phases();
    let probes: Vec<_> = phases.windows(2).filter(|pair| pair[0].1 == "PROBE_RTT").collect();
    assert!(probes.len() >= 4);
    for pair in probes.windows(2) {
        let interval = pair[1][0].0.since(pair[0][0].0).as_secs_f64();
        assert!((5.19..5.4).contains(&interval), "{interval}");
    }
    for pair in &probes {
        assert!((200..300).contains(&pair[1].0.since(pair[0].0).as_millis()));
        assert_eq!(pair[1].1, "PROBE_BW:CRUISE");
    }
    let half = (lab.path.bdp() / 2.0).ceil() as u32;
    let held = lab.rows.iter().filter(|row| row.phase == "PROBE_RTT");
    assert!(held.clone().all(|row| row.cwnd.abs_diff(half) <= 1));
    assert!(held.clone().any(|row| row.in_flight == row.cwnd));
}

#[test]
fn the_window_is_restored_after_probe_rtt_and_its_samples_do_not_count() {
    let mut lab = lab(Path::new(20, 40, 1000));
    lab.run_to(&["PROBE_RTT"]);
    let prior = lab.cc.prior_cwnd;
    lab.run_while(|lab| lab.cc.phase() == "PROBE_RTT");
    assert!(lab.cc.cwnd() + 4 >= prior, "{}", lab.cc.cwnd());
    lab.run(SECOND * 4);
    let rows = lab.rows.iter().skip_while(|row| row.phase != "PROBE_RTT");
    let least = rows.map(|row| mbps(row.bandwidth)).fold(f64::INFINITY, f64::min);
    assert!(least > 19.0, "{least}");
}

#[test]
fn an_idle_flow_skips_probe_rtt() {
    let mut lab = lab(Path::new(20, 40, 1000));
    lab.run(SECOND * 2);
    lab.paused = true;
    lab.run(SECOND * 6);
    lab.paused = false;
    let rows = lab.rows.len();
    lab.run_while(|lab| lab.rows.len() < rows + 40);
    assert!(lab.rows[rows..].iter().all(|row| row.phase != "PROBE_RTT"));
}

#[test]
fn without_a_full_pipe_probe_rtt_leads_back_to_startup() {
    let mut lab = lab(Path::new(20, 40, 1000));
    lab.app_rate = Some(Rate::from_bps(2_000_000));
    lab.run_to(&["PROBE_RTT"]);
    lab.run_while(|lab| lab.cc.phase() == "PROBE_RTT");
    assert_eq!(lab.cc.phase(), "STARTUP");
}

#[test]
fn at_expiry_a_delayed_acknowledgement_is_not_believed() {
    let mut lab = lab(Path::new(20, 40, 1000));
    lab.run(SECOND * 4);
    let mut ack = lab.last_ack.expect("many came");
    ack.now = lab.now + SECOND * 20;
    ack.rtt = Some(Span::from_millis(90));
    ack.is_delayed = true;
    let min_rtt = lab.cc.min_rtt;
    let now = lab.cc.jiffies.at(ack.now);
    assert!(lab.cc.take_rtt(&ack, now));
    assert_eq!(lab.cc.probe_rtt_min, min_rtt);
    ack.is_delayed = false;
    lab.cc.take_rtt(&ack, now);
    assert_eq!(lab.cc.probe_rtt_min, Some(Span::from_millis(90)));
}

// Bursts, aggregation, ECN

#[test]
fn bursts_are_large_on_short_paths_and_halve_every_512_us() {
    let goal = |rtt_us: u64| {
        let setup = setup(1, Some(Span::from_micros(rtt_us)));
        let mut pacing = Pacing::new(&setup, &Config::default(), Rules::V3);
        pacing.update(Bw::of(1, 11_584), Gain::ONE, true, 10, None);
        pacing.tso_goal()
    };
    // At 1 Mbit/s the rate alone allows less than a segment.
    assert_eq!(goal(100), 45);
    assert_eq!(goal(600), 32_768 / 1448);
    assert_eq!(goal(1_100), 16_384 / 1448);
    assert_eq!(goal(40_000), 2);
}

#[test]
fn aggregated_acknowledgements_widen_the_window() {
    let mut lab = lab(Path::new(20, 40, 1000).acking_every(Span::from_millis(15)));
    lab.run(SECOND * 4);
    assert!((15..=60).contains(&lab.cc.aggregation.extra_acked()));
    assert!(f64::from(lab.cc.cwnd()) > 2.0 * lab.path.bdp() + 15.0);
    // Just before a batch of acknowledgements more than a BDP is in flight, so DOWN, at 0.906 of
    // the bandwidth, lasts until the next probe.
    let utilisation = lab.utilisation(at(1000));
    assert!((0.9..0.95).contains(&utilisation), "{utilisation}");
}

fn rounds(text: &str) -> Rounds<Bbr3Linux> {
    let config = Config::parse(&mut Words::new(text)).expect("a good spec");
    Rounds::new(Bbr3Linux::new(config, setup(1, Some(Span::from_millis(1)))))
}

#[test]
fn without_ecn_low_marks_mean_nothing() {
    let mut rounds = rounds("");
    rounds.feed(20);
    rounds.feed(20);
    assert_eq!(rounds.cc.phase(), "STARTUP");
    assert!(!rounds.cc.ecn.is_eligible && !rounds.cc.ecn.in_round);
}

#[test]
fn two_rounds_with_more_than_half_marked_end_startup() {
    let mut rounds = rounds("ecn_low");
    rounds.feed(20);
    assert!(!rounds.cc.full_pipe.reached);
    rounds.feed(20);
    assert!(rounds.cc.full_pipe.reached);
    assert_ne!(rounds.cc.bounds.inflight_hi, UNLIMITED);
}

#[test]
fn marks_cut_inflight_lo_by_a_third_of_their_average_rate() {
    let mut rounds = rounds("ecn_low");
    rounds.feed(0);
    let mut cc = rounds.cc;
    // One round without marks: 240/256 of the initial 1.
    assert_eq!(cc.ecn.cut(Gain::of_256(85)), Gain::of_256(256 - 240 * 85 / 256));
    cc.mode = Mode::ProbeBw(Cycle::Cruise);
    cc.full_pipe.reached = true;
    cc.cwnd = 100;
    cc.ecn.in_round = true;
    cc.adapt_lower_bounds();
    assert_eq!(cc.bounds.inflight_lo, 100 * (256 - 240 * 85 / 256) / 256);
    assert_eq!(cc.bounds.bw_lo, Bw::UNLIMITED, "only losses lower the bandwidth");
}

#[test]
fn ecn_is_not_used_on_paths_longer_than_5_ms() {
    let config = Config::parse(&mut Words::new("ecn_low")).expect("a good spec");
    let mut cc = Bbr3Linux::new(config, setup(1, Some(Span::from_millis(20))));
    cc.min_rtt = Some(Span::from_millis(6));
    let mut lab = Lab::new(cc, Path::new(20, 20, 100));
    lab.run_while(|lab| lab.rows.len() < 100);
    assert!(!lab.cc.ecn.is_eligible);
}

// Robustness and parsing

proptest! {
    #[test]
    fn no_legal_sequence_of_reports_breaks_it(
        seed: u64,
        ecn_low: bool,
        tick_ms in 0_u64..20,
        bytes in proptest::collection::vec(any::<u8>(), 0..600),
    ) {
        let config = Config { ecn_low, ..Config::default() };
        let mut setup = setup(seed, None);
        setup.tick = Span::from_millis(tick_ms);
        torment(Bbr3Linux::new(config, setup), &bytes);
    }
}

#[test]
fn an_unknown_choice_is_answered_with_the_nearest() {
    let error = Config::parse(&mut Words::new("probe_up_exit=plateu")).expect_err("unknown");
    assert_eq!(error.allowed(), ["plateau", "inflight"]);
    assert_eq!(error.nearest(), Some("plateau"));
}
