//! The draft's test cases (appendix A, in its order), then what they leave out.

use proptest::prelude::*;
use sojourn_core::{Params, Words};

use super::*;
use crate::bbr::harness::{Lab, Path, SECOND, at, mbps, setup, torment};
use crate::{Memo, RecoveryState};

fn lab(path: Path) -> Lab<Bbr3> {
    configured("", path)
}

fn configured(text: &str, path: Path) -> Lab<Bbr3> {
    let config = Config::parse(&mut Words::new(text)).expect("a good spec");
    let rtt = path.rtt;
    Lab::new(Bbr3::new(config, setup(1, Some(rtt))), path)
}

/// In `phase`, the first time after Startup.
fn in_phase(phase: &str, path: Path) -> Lab<Bbr3> {
    let mut lab = lab(path);
    lab.run_to(&[phase]);
    lab
}

fn max_bw(lab: &Lab<Bbr3>) -> f64 {
    lab.cc.max_bw.max_bw().rate(lab.cc.smss).as_mbps()
}

/// A loss of a segment that left with `in_flight` in flight; since then `lost` segments were lost,
/// this one included.
fn lost(lab: &Lab<Bbr3>, in_flight: u32, lost: u64, is_app_limited: bool) -> Lost {
    Lost {
        now: lab.now,
        memo: Memo { in_flight, lost: lab.lost, is_app_limited, ..Memo::default() },
        total_lost: lab.lost + lost,
        total_delivered: lab.delivered,
        retransmission: false,
        by_tail_loss_probe: false,
    }
}

// Appendix A, "BBR Example Test Cases"

#[test]
fn case_01_startup_ends_on_a_bandwidth_plateau() {
    let mut lab = lab(Path::new(100, 40, 4000));
    lab.run_while(|lab| lab.cc.full_bw.count < 2);
    assert!(!lab.cc.full_bw.now && !lab.cc.full_bw.reached);
    assert!((max_bw(&lab) / 100.0 - 1.0).abs() < 0.02);
    lab.run_to(&["DRAIN"]);
    assert_eq!(lab.cc.full_bw.count, 3);
    assert!(lab.cc.full_bw.now && lab.cc.full_bw.reached);
}

#[test]
fn case_02_startup_ends_on_loss_when_application_limited() {
    let mut lab = lab(Path::new(100, 40, 4000).dropping_every(10));
    lab.app_rate = Some(Rate::from_bps(40_000_000));
    lab.run_to(&["DRAIN"]);
    assert!(lab.cc.full_bw.now && lab.cc.full_bw.reached);
    assert!(lab.cc.full_bw.count < 3);
    assert_ne!(lab.cc.long_term.inflight, INFINITY);
}

#[test]
fn case_03_drain_ends_on_inflight() {
    let mut lab = lab(Path::new(50, 40, 4000));
    lab.run_to(&["DRAIN"]);
    assert_eq!(lab.cc.pacing_gain, 0.5);
    lab.run_while(|lab| lab.cc.phase() == "DRAIN");
    assert!(lab.in_flight() <= lab.cc.inflight(lab.cc.bw, 1.0));
    assert!(lab.cc.phase().starts_with("PROBE_BW"));
    assert!(lab.cc.rounds.count <= lab.cc.drain_start_round + 3);
}

#[test]
fn case_04_drain_ends_on_time() {
    let mut lab = lab(Path::new(50, 40, 4000));
    lab.run_while(|lab| lab.cc.full_bw.count < 2);
    // Half of the estimate must be more than the link still has, or Drain would end on inflight.
    lab.path.rate = Rate::from_bps(20_000_000);
    lab.run_to(&["DRAIN"]);
    let start = lab.cc.drain_start_round;
    lab.run_while(|lab| lab.cc.phase() == "DRAIN");
    assert_eq!(lab.cc.rounds.count, start + 4, "more than three rounds later");
    assert!(lab.in_flight() > lab.cc.inflight(lab.cc.bw, 1.0));
    assert!(lab.cc.phase().starts_with("PROBE_BW"));
}

#[test]
fn case_05_up_ends_on_a_bandwidth_plateau() {
    let mut lab = in_phase("PROBE_BW:UP", Path::new(20, 40, 1000));
    lab.run_while(|lab| lab.cc.phase() == "PROBE_BW:UP");
    assert!(lab.cc.full_bw.now);
    assert_eq!(lab.cc.full_bw.count, 3);
    assert_eq!(lab.cc.phase(), "PROBE_BW:DOWN");
    assert_eq!(lab.lost, 0);
}

#[test]
fn case_06_up_ends_on_loss_when_application_limited() {
    let mut lab = in_phase("PROBE_BW:UP", Path::new(20, 40, 1000));
    lab.cc.on_lost(&lost(&lab, 60, 2, true));
    assert_eq!(lab.cc.phase(), "PROBE_BW:DOWN");
    assert_eq!(lab.cc.long_term.inflight, INFINITY, "as the pseudocode has it");

    let path = Path::new(20, 40, 1000);
    let mut lab = configured("longterm_when_app_limited", path);
    lab.run_to(&["PROBE_BW:UP"]);
    lab.cc.on_lost(&lost(&lab, 60, 2, true));
    assert_eq!(lab.cc.phase(), "PROBE_BW:DOWN");
    assert_eq!(lab.cc.long_term.inflight, 59, "as the test case has it");
}

#[test]
fn case_07_neither_up_nor_startup_ends_when_application_limited_without_loss() {
    let mut lab = in_phase("PROBE_BW:UP", Path::new(20, 40, 1000));
    lab.app_rate = Some(Rate::from_bps(2_000_000));
    lab.run_while(|lab| lab.now < at(4900));
    assert_eq!(lab.cc.phase(), "PROBE_BW:UP");

    let mut lab = configured("probe_rtt_interval=100s", Path::new(20, 40, 1000));
    lab.app_rate = Some(Rate::from_bps(2_000_000));
    lab.run(SECOND * 30);
    assert_eq!(lab.cc.phase(), "STARTUP");
}

#[test]
fn case_08_down_ends_on_inflight() {
    let mut lab = in_phase("PROBE_BW:UP", Path::new(20, 40, 15));
    lab.run_to(&["PROBE_BW:DOWN"]);
    assert_eq!(lab.cc.pacing_gain, 0.9);
    assert_eq!(lab.cc.cwnd_gain, 2.0);
    assert!(lab.in_flight() > lab.cc.inflight(lab.cc.bw, 1.0));
    lab.run_to(&["PROBE_BW:CRUISE"]);
    assert!(lab.in_flight() <= lab.cc.inflight(lab.cc.max_bw.max_bw(), 1.0));
    assert!(lab.in_flight() <= lab.cc.inflight_with_headroom());
}

#[test]
fn case_09_down_ends_after_the_longest_wait() {
    let path = Path::new(20, 100, 1000);
    let mut lab = configured("probe_rtt_interval=60s", path);
    lab.run_to(&["PROBE_BW:UP"]);
    lab.run_to(&["PROBE_BW:DOWN"]);
    lab.path.rate = Rate::from_bps(17_000_000);
    let wait = lab.cc.probe_bw.wait;
    let start = lab.now;
    lab.run_while(|lab| lab.cc.phase() == "PROBE_BW:DOWN");
    assert_eq!(lab.cc.phase(), "PROBE_BW:REFILL", "no cruise in between");
    let stay = lab.now.since(start);
    assert!(stay > wait && stay < wait + Span::from_millis(200), "{stay} {wait}");
}

#[test]
fn case_10_probe_rtt_is_entered_and_left() {
    let mut lab = lab(Path::new(20, 40, 1000));
    lab.run_to(&["PROBE_RTT"]);
    assert!((at(5000)..at(5100)).contains(&lab.now), "{}", lab.now);
    assert_eq!(lab.cc.cwnd_gain, 0.5);
    assert_eq!(lab.cc.cwnd(), (lab.path.bdp() / 2.0).ceil() as u32);
    let start = lab.now;
    lab.run_while(|lab| lab.cc.phase() == "PROBE_RTT");
    assert_eq!(lab.cc.phase(), "PROBE_BW:CRUISE");
    let stay = lab.now.since(start).as_millis();
    assert!((200..330).contains(&stay), "{stay}");
    lab.run(Span::from_millis(500));
    assert!(lab.utilisation(lab.now - Span::from_millis(300)) > 0.95);
}

#[test]
fn case_11_probe_rtt_is_skipped_after_idleness() {
    let mut lab = lab(Path::new(20, 40, 1000));
    lab.run(SECOND * 2);
    lab.paused = true;
    lab.run(SECOND * 6);
    assert_eq!(lab.in_flight(), 0);
    lab.paused = false;
    lab.run_while(|lab| lab.in_flight() == 0);
    assert!(lab.cc.idle_restart);
    let rows = lab.rows.len();
    lab.run_while(|lab| lab.rows.len() < rows + 100);
    assert!(lab.rows[rows..].iter().all(|row| row.phase.starts_with("PROBE_BW")));
    assert!(!lab.cc.idle_restart);
}

#[test]
fn case_12_startup_reaches_the_bandwidth_on_a_link_with_aggregation() {
    let mut lab = lab(Path::new(50, 40, 4000).acking_every(Span::from_millis(10)));
    lab.run_to(&["DRAIN"]);
    // 43 segments arrive at once.
    assert!(lab.cc.extra_acked.value() > 30, "{}", lab.cc.extra_acked.value());
    assert!(f64::from(lab.cc.cwnd()) > 2.0 * lab.path.bdp());
    assert!((0.95..1.2).contains(&(max_bw(&lab) / 50.0)), "{}", max_bw(&lab));
}

#[test]
fn case_13_cruise_keeps_the_bandwidth_on_a_link_with_aggregation() {
    let mut lab = in_phase("PROBE_BW:CRUISE", Path::new(50, 40, 4000));
    assert!(lab.cc.extra_acked.value() < 20);
    lab.path.ack_slot = Span::from_millis(10);
    let start = lab.now;
    lab.run(SECOND);
    assert!(lab.cc.extra_acked.value() > 30, "{}", lab.cc.extra_acked.value());
    let with_extra = lab.cc.bdp_multiple(lab.cc.bw, 2.0) + lab.cc.extra_acked.value();
    assert_eq!(lab.cc.cwnd(), with_extra);
    assert!(lab.utilisation(start + Span::from_millis(200)) > 0.95);
    // It is forgotten some ten rounds after the surplus has worn off.
    lab.path.ack_slot = Span::ZERO;
    let rounds = lab.cc.rounds.count;
    lab.run_while(|lab| lab.cc.extra_acked.value() > 30);
    assert!((9..=25).contains(&(lab.cc.rounds.count - rounds)), "{}", lab.cc.rounds.count - rounds);
}

#[test]
fn case_14_a_bdp_below_a_segment_is_managed() {
    let mut path = Path::new(1, 5, 100);
    path.rate = Rate::from_bps(256_000);
    assert!(path.bdp() < 0.2);
    let mut lab = lab(path);
    lab.run_to(&["PROBE_BW:CRUISE", "PROBE_BW:DOWN"]);
    lab.run(SECOND * 3);
    // Three quanta of two segments are the budget of offloading; the floor itself is lower.
    assert!((4..=8).contains(&lab.cc.cwnd()), "{}", lab.cc.cwnd());
    assert!((0.2..0.35).contains(&mbps(lab.cc.bandwidth())));
    assert!(lab.utilisation(lab.now - SECOND * 2) > 0.95);
    lab.cc.long_term.inflight = 1;
    lab.cc.bound_cwnd_for_model();
    assert_eq!(lab.cc.cwnd(), 4);
}

#[test]
fn case_15_ten_times_the_bandwidth_is_found() {
    let mut lab = in_phase("PROBE_BW:CRUISE", Path::new(10, 40, 4000));
    lab.path.rate = Rate::from_bps(100_000_000);
    lab.run_to(&["PROBE_BW:UP"]);
    lab.cc.long_term.inflight = 30;
    let round = lab.cc.rounds.count;
    assert_eq!(lab.cc.probe_bw.up_rounds, 1);
    lab.run_while(|lab| lab.cc.rounds.count < round + 4);
    assert!(lab.cc.probe_bw.up_rounds > 2, "the step doubles with each round");
    let rounds = lab.cc.rounds.count;
    lab.run_while(|lab| max_bw(lab) < 90.0);
    assert!(lab.cc.rounds.count - rounds < 70, "{}", lab.cc.rounds.count - rounds);
}

#[test]
fn case_16_a_tenth_of_the_bandwidth_is_accepted() {
    let mut lab = in_phase("PROBE_BW:CRUISE", Path::new(100, 40, 50));
    lab.path.rate = Rate::from_bps(10_000_000);
    lab.run_while(|lab| mbps(lab.cc.bandwidth()) > 12.0);
    assert!(lab.cc.short_term.bw < lab.cc.max_bw.max_bw());
    assert!(max_bw(&lab) > 90.0);
    lab.run(SECOND * 12);
    assert!((0.9..1.1).contains(&(max_bw(&lab) / 10.0)), "{}", max_bw(&lab));
}

#[test]
fn case_17_a_token_bucket_policer_is_managed() {
    let mut lab = in_phase("PROBE_BW:CRUISE", Path::new(50, 40, 4000));
    lab.path.policer = Some((Rate::from_bps(10_000_000), 100.0));
    lab.run_while(|lab| lab.cc.short_term.bw == Bandwidth::INFINITY);
    assert_ne!(lab.cc.short_term.inflight, INFINITY);
    lab.run(SECOND * 10);
    let (delivered, lost) = (lab.delivered, lab.lost);
    lab.run(SECOND * 15);
    let (delivered, lost) = (lab.delivered - delivered, lab.lost - lost);
    let goodput = (delivered * 8 * 1448) as f64 / 15e6;
    assert!((7.5..10.1).contains(&goodput), "{goodput}");
    assert!(lost * 20 < delivered, "{lost} of {delivered}");
}

/// Losses in UP that turn out to be none.
fn after_a_spurious_loss(lose: impl Fn(&mut Lab<Bbr3>)) {
    let mut lab = in_phase("PROBE_BW:UP", Path::new(20, 40, 1000));
    lab.cc.long_term.inflight = 200;
    let cwnd = lab.cc.cwnd();
    lose(&mut lab);
    assert_eq!(lab.cc.phase(), "PROBE_BW:DOWN");
    assert_eq!(lab.cc.recovery.undo_state, UndoState::ProbeBwUp);
    assert_eq!(lab.cc.recovery.undo_inflight_longterm, 200);
    assert_eq!(lab.cc.recovery.undo_bw_shortterm, Bandwidth::INFINITY);
    assert_eq!(lab.cc.recovery.undo_inflight_shortterm, INFINITY);
    assert!(lab.cc.long_term.inflight < 200);
    lab.undo();
    assert_eq!(lab.cc.phase(), "PROBE_BW:REFILL");
    assert_eq!(lab.cc.long_term.inflight, 200);
    assert_eq!(lab.cc.short_term.inflight, INFINITY);
    assert!(lab.cc.cwnd() >= cwnd);
    assert_eq!(lab.cc.recovery.undo_state, UndoState::None);
    lab.run_to(&["PROBE_BW:UP"]);
}

#[test]
fn case_18_a_spurious_fast_recovery_is_undone() {
    after_a_spurious_loss(|lab| {
        lab.cc.on_lost(&lost(lab, 60, 2, false));
        lab.state = RecoveryState::Recovery;
        lab.cc.on_congestion(&Congestion {
            now: lab.now,
            kind: CongestionKind::Loss,
            in_flight: lab.in_flight(),
            snd_nxt: 0,
            prior_state: RecoveryState::Open,
        });
    });
}

#[test]
fn case_19_a_spurious_timeout_is_undone() {
    after_a_spurious_loss(|lab| {
        lab.time_out();
        assert_eq!(lab.cc.cwnd(), 1);
    });
}

#[test]
fn case_20_probe_rtt_during_startup_leads_back_to_startup() {
    let mut lab = lab(Path::new(20, 40, 1000));
    lab.app_rate = Some(Rate::from_bps(2_000_000));
    lab.run_to(&["PROBE_RTT"]);
    assert!(!lab.cc.full_bw.reached);
    lab.run_while(|lab| lab.cc.phase() == "PROBE_RTT");
    assert_eq!(lab.cc.phase(), "STARTUP");
    assert_eq!(lab.cc.pacing_gain, 2.77);
}

#[test]
fn case_21_loss_in_up_lowers_inflight_longterm_and_ends_it() {
    let mut lab = in_phase("PROBE_BW:UP", Path::new(20, 40, 1000));
    lab.cc.long_term.inflight = 200;
    let target = lab.cc.target_inflight();
    lab.cc.on_lost(&lost(&lab, 10, 2, false));
    assert_eq!(lab.cc.long_term.inflight, (f64::from(target) * 0.7) as u32);
    assert_eq!(lab.cc.phase(), "PROBE_BW:DOWN");
}

/// Section 2: `C.is_cwnd_limited` asks for a window that was fully used.
#[test]
fn a_window_of_which_half_is_used_raises_no_bound() {
    let mut lab = in_phase("PROBE_BW:UP", Path::new(20, 40, 1000));
    (lab.cc.long_term.inflight, lab.cc.cwnd) = (64, 64);
    let mut ack = lab.last_ack.expect("one came");
    (ack.delivered, ack.is_cwnd_limited, ack.was_cwnd_full) = (1000, true, false);
    lab.cc.probe_inflight_longterm_upward(&ack);
    assert_eq!(lab.cc.long_term.inflight, 64);
    ack.was_cwnd_full = true;
    lab.cc.probe_inflight_longterm_upward(&ack);
    assert!(lab.cc.long_term.inflight > 64);
}

#[test]
fn case_22_application_limited_samples_in_refill_do_not_count() {
    let mut lab = in_phase("PROBE_BW:REFILL", Path::new(20, 40, 1000));
    let before = max_bw(&lab);
    lab.app_rate = Some(Rate::from_bps(1_000_000));
    lab.run_to(&["PROBE_BW:UP"]);
    assert!(max_bw(&lab) >= before);
    lab.app_rate = None;
    lab.run_to(&["PROBE_BW:DOWN"]);
    assert!((max_bw(&lab) / 20.0 - 1.0).abs() < 0.02);
}

// Cases beyond the appendix

#[test]
fn gains_are_those_of_the_table() {
    let mut lab = configured("probe_rtt_interval=60s", Path::new(20, 40, 1000));
    assert_eq!((lab.cc.pacing_gain, lab.cc.cwnd_gain), (2.77, 2.0));
    let mut seen = Vec::new();
    lab.run(SECOND);
    for _ in 0..2 {
        for phase in ["PROBE_BW:REFILL", "PROBE_BW:UP", "PROBE_BW:DOWN", "PROBE_BW:CRUISE"] {
            lab.run_to(&[phase]);
            seen.push((lab.cc.pacing_gain, lab.cc.cwnd_gain));
        }
    }
    let table = [(1.0, 2.0), (1.25, 2.25), (0.9, 2.0), (1.0, 2.0)];
    assert_eq!(seen, [table, table].concat());
}

#[test]
fn probe_rtt_every_five_seconds_costs_two_percent() {
    let mut lab = lab(Path::new(20, 40, 1000));
    lab.run(SECOND * 41);
    let probes = lab.phases().into_iter().filter(|(_, phase)| *phase == "PROBE_RTT").count();
    assert_eq!(probes, 7, "one per 5.25 s");
    let utilisation = lab.utilisation(at(1000));
    assert!((0.965..0.985).contains(&utilisation), "{utilisation}");
}

#[test]
fn the_reno_time_scale_counts_segments_and_not_bytes() {
    let mut lab = in_phase("PROBE_BW:UP", Path::new(10, 20, 1000));
    lab.run_to(&["PROBE_BW:DOWN"]);
    lab.run_to(&["PROBE_BW:REFILL"]);
    let rounds = lab.cc.probe_bw.rounds_since_probe_up;
    assert!((17..=20).contains(&rounds), "17.3 segments are a BDP, {rounds}");
}

#[test]
fn in_a_shallow_buffer_a_lossy_probe_is_followed_by_a_precautionary_one() {
    let mut lab = in_phase("PROBE_BW:CRUISE", Path::new(20, 40, 15));
    lab.run_while(|lab| !lab.cc.probe_bw.prev_probe_too_high);
    lab.run_to(&["PROBE_BW:UP"]);
    lab.run_to(&["PROBE_BW:DOWN"]);
    assert!(lab.cc.probe_bw.prev_probe_precautionary);
    assert!(!lab.cc.probe_bw.prev_probe_too_high);
    lab.run_while(|lab| lab.cc.phase() == "PROBE_BW:DOWN");
    assert_eq!(lab.cc.phase(), "PROBE_BW:REFILL", "no cruise in between");
}

#[test]
fn the_prefix_of_a_loss_is_never_negative() {
    let lab = in_phase("PROBE_BW:UP", Path::new(20, 40, 1000));
    let mut cc = lab.cc.clone();
    // 49 before it allow 0.98 losses, none was lost: (0.98 − 0)/0.98 = 1 more fits.
    cc.on_lost(&lost(&lab, 50, 2, false));
    assert_eq!(cc.long_term.inflight, 49.max((f64::from(lab.cc.target_inflight()) * 0.7) as u32));
    let mut cc = lab.cc.clone();
    cc.on_lost(&lost(&lab, 200, 30, false));
    assert_eq!(cc.long_term.inflight, 199);
}

#[test]
fn losses_while_cruising_cut_the_short_term_bounds_by_beta_at_most() {
    let mut lab = in_phase("PROBE_BW:CRUISE", Path::new(20, 40, 1000));
    let bw = lab.cc.bw;
    lab.path.drop_every = Some(10);
    lab.run_while(|lab| lab.cc.short_term.bw == Bandwidth::INFINITY);
    assert!(lab.cc.short_term.bw >= bw.times(0.7) && lab.cc.short_term.bw <= bw);
    assert!(lab.cc.cwnd() <= lab.cc.short_term.inflight);
    lab.path.drop_every = None;
    lab.run_to(&["PROBE_BW:REFILL"]);
    assert_eq!(lab.cc.short_term.bw, Bandwidth::INFINITY);
    assert_eq!(lab.cc.short_term.inflight, INFINITY);
}

#[test]
fn state_is_saved_once_in_a_recovery_of_many_rounds() {
    let mut lab = in_phase("PROBE_BW:CRUISE", Path::new(20, 40, 1000));
    let cwnd = lab.cc.cwnd();
    lab.path.drop_every = Some(5);
    lab.run_while(|lab| lab.cc.short_term.bw == Bandwidth::INFINITY);
    let bw = lab.cc.short_term.bw;
    lab.run_while(|lab| lab.cc.short_term.bw == bw);
    assert_eq!(lab.state, RecoveryState::Recovery);
    assert_eq!(lab.cc.recovery.undo_bw_shortterm, Bandwidth::INFINITY);
    assert_eq!(lab.cc.recovery.prior_cwnd, cwnd);
}

#[test]
fn startup_left_by_a_spurious_loss_is_entered_again() {
    let mut lab = lab(Path::new(100, 40, 30));
    lab.run_to(&["DRAIN"]);
    assert_eq!(lab.cc.recovery.undo_state, UndoState::Startup);
    lab.undo();
    assert_eq!(lab.cc.phase(), "STARTUP");
    assert!(!lab.cc.full_bw.reached);
    assert_eq!(lab.cc.long_term.inflight, INFINITY);
}

#[test]
fn a_clock_that_starts_at_zero_loses_no_sample() {
    let mut lab = lab(Path::new(20, 40, 1000));
    assert_eq!(lab.now, Time::ZERO);
    lab.run_while(|lab| lab.rows.is_empty());
    assert!(lab.cc.bandwidth().is_some());
    assert_eq!(lab.cc.rounds.count, 1);
}

#[test]
fn the_quantum_is_a_millisecond_of_data_between_2_segments_and_64_kb() {
    let mut cc = Bbr3::new(Config::default(), setup(1, Some(Span::from_millis(40))));
    let mut quantum = |mbps: u32| {
        cc.bw = Bandwidth::of(mbps * 1000, Span::from_nanos(8 * 1448 * 1_000_000));
        cc.full_bw.reached = true;
        cc.set_pacing_rate_with_gain(1.0);
        cc.send_quantum()
    };
    assert_eq!(quantum(10), Quantum::Segments(2));
    assert_eq!(quantum(100), Quantum::Segments(8));
    assert_eq!(quantum(3000), Quantum::Segments(45));
}

#[test]
fn after_a_pause_the_old_aggregation_interval_does_not_go_on() {
    let mut lab = lab(Path::new(20, 40, 1000));
    lab.run(SECOND * 2);
    lab.paused = true;
    lab.run(SECOND);
    lab.paused = false;
    lab.run(Span::from_millis(300));
    assert!(lab.cc.extra_acked.value() < 40, "{}", lab.cc.extra_acked.value());
}

proptest! {
    #[test]
    fn no_legal_sequence_of_reports_breaks_it(
        seed: u64,
        bytes in proptest::collection::vec(any::<u8>(), 0..600),
    ) {
        torment(Bbr3::new(Config::default(), setup(seed, None)), &bytes);
    }
}
