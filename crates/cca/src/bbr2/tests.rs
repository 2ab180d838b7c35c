use proptest::prelude::*;
use sojourn_core::Rate;
use sojourn_core::{Params, Words};

use super::*;
use crate::bbr::harness::{Lab, Path, Rounds, Row, SECOND, at, setup, torment};
use crate::{Controller, Lost, Memo, Quantum};

const MARGIN: f64 = 0.99;

fn config(text: &str) -> Config {
    Config::parse(&mut Words::new(text)).expect("a good spec")
}

fn lab(path: Path) -> Lab<Bbr3Linux> {
    configured("", path)
}

fn configured(text: &str, path: Path) -> Lab<Bbr3Linux> {
    let rtt = path.rtt;
    Lab::new(config(text).build(setup(1, Some(rtt))), path)
}

/// There is no handshake, because no full segment would match its round-trip time.
fn unacquainted(path: Path) -> Lab<Bbr3Linux> {
    Lab::new(Config::default().build(setup(1, None)), path)
}

/// Pacing rate over estimated bandwidth.
fn gain(row: &Row) -> f64 {
    let bandwidth = row.bandwidth.expect("there is an estimate");
    row.pacing.as_bps() as f64 / bandwidth.as_bps() as f64
}

/// In the row where the phase was last entered, or one of those after it.
fn gain_in(lab: &Lab<Bbr3Linux>, phase: &str) -> f64 {
    gain(lab.rows.iter().rev().find(|row| row.phase == phase).expect("it was in that phase"))
}

fn assert_near(value: f64, expected: f64, tolerance: f64) {
    assert!((value - expected).abs() <= tolerance, "{value} for {expected}");
}

// Constants

#[test]
fn the_machine_runs_with_the_constants_of_version_2() {
    let machine = Config::default().machine();
    assert_eq!(machine.startup_pacing_gain, Gain::of_256(256 * 2885 / 1000 + 1));
    assert_eq!(machine.startup_cwnd_gain, Gain::of_256(256 * 2885 / 1000 + 1));
    assert_eq!(machine.drain_pacing_gain, Gain::of_256(256 * 1000 / 2885));
    assert_eq!(machine.probe_up_pacing_gain, Gain::of_256(256 * 5 / 4));
    assert_eq!(machine.probe_down_pacing_gain, Gain::of_256(256 * 3 / 4));
    assert_eq!(machine.cwnd_gain, Gain::of_256(512));
    assert_eq!(machine.probe_up_cwnd_gain, Gain::of_256(512));
    assert_eq!(machine.full_bw_thresh, Gain::of_256(256 * 5 / 4));
    assert_eq!(machine.loss_thresh.0, Gain::of_256(256 * 2 / 100));
    assert_eq!(machine.beta.0, Gain::of_256(256 - 256 * 30 / 100));
    assert_eq!(machine.headroom.0, Gain::of_256(256 * 15 / 100));
    assert_eq!(machine.probe_rtt_cwnd_gain, Gain::of_256(128));
    assert_eq!(machine.ecn_alpha_gain.0, Gain::of_256(256 / 16));
    assert_eq!(machine.ecn_factor.0, Gain::of_256(256 / 3));
    assert_eq!(machine.ecn_thresh.0, Gain::of_256(128));
    assert!(machine.ecn_reprobe_gain.0.is_zero() && !machine.ecn_low);
    assert_eq!((machine.full_bw_rounds, machine.full_loss_cnt, machine.full_ecn_cnt), (3, 8, 2));
    assert_eq!((machine.probe_max_rounds, machine.probe_random_rounds), (63, 2));
    assert_eq!((machine.min_cwnd, machine.extra_acked_window, machine.tso_rtt_shift), (4, 5, 9));
    assert_eq!(machine.pacing_margin, Percent(1));
    assert_eq!((machine.probe_wait_base, machine.probe_wait_random), (SECOND * 2, SECOND));
    assert_eq!((machine.min_rtt_window, machine.probe_rtt_interval), (SECOND * 10, SECOND * 5));
    assert_eq!(machine.probe_rtt_duration, Span::from_millis(200));
    assert_eq!(machine.extra_acked_limit, Span::from_millis(100));
    assert_eq!(machine.ecn_max_rtt, Span::from_millis(5));
}

// STARTUP and DRAIN

#[test]
fn startup_paces_at_2_885_and_fills_2_885_bdps() {
    let mut lab = lab(Path::new(100, 40, 4000));
    lab.run_to(&["DRAIN"]);
    let rising = lab.rows.windows(2).filter(|pair| pair[1].bandwidth > pair[0].bandwidth);
    // While the bandwidth rises, the rate follows it.
    let gains: Vec<_> = rising.map(|pair| gain(&pair[1])).skip(20).collect();
    assert_near(gains[gains.len() / 2], 2.887 * MARGIN, 0.01);
    let last = lab.rows.iter().rev().find(|row| row.phase == "STARTUP").expect("it started");
    assert_near(f64::from(last.cwnd) / lab.path.bdp(), 2.887, 0.15);
    // Six rounds of doubling, and three without growth, of up to 2.9 round-trip times.
    assert!((at(500)..at(750)).contains(&lab.now), "{}", lab.now);
}

#[test]
fn drain_paces_at_the_inverse_until_a_bdp_is_in_flight() {
    let mut lab = lab(Path::new(50, 40, 4000));
    lab.run_to(&["DRAIN"]);
    lab.run_while(|lab| lab.cc.phase() == "DRAIN");
    assert_near(gain_in(&lab, "DRAIN"), 88.0 / 256.0 * MARGIN, 0.001);
    let in_flight = f64::from(lab.in_flight());
    assert!(in_flight <= lab.path.bdp() * 1.05 + 4.0, "{in_flight}");
}

#[test]
fn eight_lossy_acknowledgements_in_a_round_end_startup_and_seven_do_not() {
    // The bandwidth at the end shows which of the two ways out it was: losses come long before the
    // plateau.
    let bandwidth_after = |losses: u32| {
        let mut lab = lab(Path::new(100, 40, 4000));
        lab.run_while(|lab| lab.cc.cwnd() < 100);
        lab.drop_one_by_one(losses);
        lab.run_while(|lab| lab.cc.phase() == "STARTUP");
        lab.cc.bandwidth().expect("there is an estimate").as_mbps()
    };
    assert!(bandwidth_after(7) > 95.0);
    assert!(bandwidth_after(12) < 90.0);
}

// PROBE_BW

#[test]
fn the_gains_of_the_cycle_are_1_25_and_0_75_and_1() {
    let mut lab = lab(Path::new(20, 40, 1000));
    lab.run(SECOND * 9);
    for (phase, expected) in [
        ("PROBE_BW:UP", 1.25),
        ("PROBE_BW:DOWN", 0.75),
        ("PROBE_BW:CRUISE", 1.0),
        ("PROBE_BW:REFILL", 1.0),
    ] {
        assert_near(gain_in(&lab, phase), expected * MARGIN, 0.002);
    }
}

#[test]
fn the_window_is_two_bdps_in_up_as_well() {
    let mut lab = lab(Path::new(100, 40, 1000));
    lab.run(SECOND * 9);
    let most = |phase| {
        let rows = lab.rows.iter().filter(|row| row.phase == phase && row.at > at(1000));
        f64::from(rows.map(|row| row.cwnd).max().expect("it was in that phase"))
    };
    let bdp = lab.path.bdp();
    assert_near(most("PROBE_BW:UP") - most("PROBE_BW:CRUISE"), 2.0, 4.0);
    assert!(most("PROBE_BW:UP") / bdp < 2.1, "{} of {bdp}", most("PROBE_BW:UP"));
}

#[test]
fn up_ends_after_a_round_trip_with_1_25_bdps_in_flight() {
    let mut lab = lab(Path::new(20, 40, 1000));
    lab.run_to(&["PROBE_BW:UP"]);
    let start = lab.now;
    lab.run_to(&["PROBE_BW:DOWN"]);
    let rounds = lab.now.since(start).as_secs_f64() / 0.040;
    assert!((1.0..2.5).contains(&rounds), "{rounds}");
    let in_flight = f64::from(lab.in_flight());
    assert!((1.15..1.4).contains(&(in_flight / lab.path.bdp())), "{in_flight}");
}

#[test]
fn down_lasts_until_the_queue_is_drained_or_with_drain_to_target_off_a_round_trip() {
    let stay = |text| {
        let mut lab = configured(text, Path::new(20, 40, 1000));
        lab.run_to(&["PROBE_BW:UP"]);
        // The queue will grow all the same.
        lab.path.rate = Rate::from_bps(5_000_000);
        lab.run_to(&["PROBE_BW:DOWN"]);
        let start = lab.now;
        lab.run_while(|lab| lab.cc.phase() == "PROBE_BW:DOWN");
        lab.now.since(start).as_millis()
    };
    assert!((40..50).contains(&stay("drain_to_target=off")));
    assert!(stay("") > 500);
}

#[test]
fn probes_come_every_two_to_three_seconds_or_after_a_bdp_of_rounds() {
    let waits = |path| {
        let mut lab = lab(path);
        lab.run(SECOND * 30);
        let phases = lab.phases();
        phases
            .windows(3)
            .filter(|three| three[0].1 == "PROBE_BW:DOWN" && three[2].1 == "PROBE_BW:REFILL")
            .map(|three| three[2].0.since(three[0].0).as_secs_f64())
            .collect::<Vec<_>>()
    };
    let long = waits(Path::new(100, 80, 4000));
    assert!(long.len() > 6 && long.iter().all(|wait| (2.0..3.1).contains(wait)), "{long:?}");
    // 17.3 segments fill 10 Mbit/s and 20 ms.
    let short = waits(Path::new(10, 20, 1000));
    assert!(short.len() > 30 && short.iter().all(|wait| (0.3..0.45).contains(wait)), "{short:?}");
}

#[test]
fn a_halved_bandwidth_is_believed_in_the_third_cycle() {
    let mut lab = lab(Path::new(40, 40, 4000));
    lab.run(SECOND * 4);
    lab.run_to(&["PROBE_BW:CRUISE"]);
    lab.path.rate = Rate::from_bps(20_000_000);
    let start = lab.now;
    lab.run_while(|lab| lab.cc.bandwidth().expect("an estimate").as_mbps() > 22.0);
    let phases = lab.phases();
    let cycles = phases.iter().filter(|(at, phase)| *at > start && *phase == "PROBE_BW:DOWN");
    assert_eq!(cycles.count(), 2, "the maximum is that of this and the last cycle");
}

#[test]
fn too_much_loss_ends_up_and_the_next_probe_stops_at_inflight_hi() {
    let mut lab = lab(Path::new(20, 40, 10));
    // Probes that stop at the bound alternate with probes that go beyond it.
    let overflows = |lab: &mut Lab<Bbr3Linux>| {
        lab.run_to(&["PROBE_BW:UP"]);
        let lost = lab.lost;
        lab.run_to(&["PROBE_BW:DOWN"]);
        lab.lost > lost
    };
    assert!((0..4).any(|_| overflows(&mut lab)), "the buffer overflowed");
    lab.run_to(&["PROBE_BW:UP"]);
    let (lost, start) = (lab.lost, lab.rows.len());
    lab.run_to(&["PROBE_BW:DOWN"]);
    assert!(lab.lost - lost < 4, "{} lost", lab.lost - lost);
    let rows = &lab.rows[start..];
    let most = rows.iter().map(|row| row.in_flight).max().expect("rows");
    assert!(f64::from(most) < lab.path.bdp() + 14.0, "{most}");
}

#[test]
fn losses_while_cruising_cut_the_bandwidth_to_what_was_delivered() {
    let mut lab = lab(Path::new(20, 40, 1000));
    lab.run(SECOND * 2);
    lab.run_to(&["PROBE_BW:CRUISE"]);
    let before = lab.cc.bandwidth().expect("an estimate").as_mbps();
    lab.path.drop_every = Some(10);
    lab.run_while(|lab| lab.cc.bandwidth().expect("an estimate").as_mbps() == before);
    let after = lab.cc.bandwidth().expect("an estimate").as_mbps();
    assert!(after >= before * 0.7 && after < before, "{before} to {after}");
}

#[test]
fn one_percent_of_loss_costs_little() {
    let mut lab = lab(Path::new(20, 40, 1000).dropping_every(100));
    lab.run(SECOND * 20);
    let utilisation = lab.utilisation(at(1000));
    assert!(utilisation > 0.85, "{utilisation}");
}

#[test]
fn a_single_flow_fills_the_link() {
    let mut lab = lab(Path::new(20, 40, 1000));
    lab.run(SECOND * 30);
    let utilisation = lab.utilisation(at(1000));
    assert!((0.96..1.0).contains(&utilisation), "{utilisation}");
    assert_eq!(lab.lost, 0);
}

#[test]
fn aggregated_acknowledgements_widen_the_window() {
    let mut lab = lab(Path::new(20, 40, 1000).acking_every(Span::from_millis(15)));
    lab.run(SECOND * 4);
    assert!(f64::from(lab.cc.cwnd()) > 2.0 * lab.path.bdp() + 15.0);
}

// PROBE_RTT

#[test]
fn with_a_queue_every_five_seconds_half_a_bdp_is_in_flight_for_200_ms() {
    let mut lab = lab(Path::new(20, 40, 1000));
    // Someone else's queue, which grows.
    for _ in 0..120 {
        lab.run(SECOND / 10);
        lab.path.rtt += Span::from_micros(20);
    }
    let phases = lab.phases();
    let probes: Vec<_> = phases.windows(2).filter(|pair| pair[0].1 == "PROBE_RTT").collect();
    assert_eq!(probes.len(), 2, "{phases:?}");
    let interval = probes[1][0].0.since(probes[0][0].0).as_secs_f64();
    assert!((5.19..5.4).contains(&interval), "{interval}");
    for pair in &probes {
        assert!((200..300).contains(&pair[1].0.since(pair[0].0).as_millis()));
    }
    let half = (lab.path.bdp() / 2.0).ceil() as u32;
    let mut held = lab.rows.iter().filter(|row| row.phase == "PROBE_RTT");
    assert!(held.all(|row| row.cwnd.abs_diff(half) <= 2));
}

#[test]
fn a_round_trip_time_as_small_as_ever_puts_probe_rtt_off() {
    let mut lab = unacquainted(Path::new(20, 40, 1000));
    lab.run(SECOND * 20);
    assert!(lab.phases().iter().all(|(_, phase)| *phase != "PROBE_RTT"));
}

#[test]
fn a_longer_path_is_believed_after_ten_seconds() {
    let mut lab = unacquainted(Path::new(20, 40, 1000));
    lab.run(SECOND * 2);
    lab.path.rtt = Span::from_millis(60);
    let start = lab.now;
    lab.run_while(|lab| lab.cc.model_min_rtt().expect("a sample") < Span::from_millis(55));
    let wait = lab.now.since(start).as_secs_f64();
    assert!((9.9..10.6).contains(&wait), "{wait}");
}

#[test]
fn slow_flows_send_segment_by_segment() {
    let quantum = |mbps| {
        let mut lab = lab(Path::new(mbps, 40, 1000));
        lab.run(SECOND * 3);
        lab.run_to(&["PROBE_BW:CRUISE"]);
        lab.cc.send_quantum()
    };
    assert_eq!(quantum(1), Quantum::Segments(1));
    assert_eq!(quantum(2), Quantum::Segments(2));
}

#[test]
fn losses_that_a_tail_loss_probe_repaired_go_unnoticed() {
    let mut lab = lab(Path::new(20, 40, 1000));
    lab.run_to(&["PROBE_BW:UP"]);
    lab.cc.on_lost(&Lost {
        now: lab.now,
        memo: Memo { in_flight: 1, ..Memo::default() },
        total_lost: 100,
        total_delivered: lab.delivered,
        retransmission: false,
        by_tail_loss_probe: true,
    });
    assert_eq!(lab.cc.phase(), "PROBE_BW:UP");
}

// ECN

fn rounds(text: &str) -> Rounds<Bbr3Linux> {
    Rounds::new(config(text).build(setup(1, Some(Span::from_millis(1)))))
}

impl Rounds<Bbr3Linux> {
    /// Into CRUISE or DOWN, without marks.
    fn settle(&mut self) {
        for _ in 0..8 {
            self.feed(0);
        }
        assert!(["PROBE_BW:CRUISE", "PROBE_BW:DOWN"].contains(&self.cc.phase()));
    }

    /// Into UP.
    fn probe(&mut self) {
        self.settle();
        self.now += SECOND * 4;
        self.feed(0);
        assert_eq!(self.cc.phase(), "PROBE_BW:REFILL");
        self.feed(0);
        assert_eq!(self.cc.phase(), "PROBE_BW:UP");
    }

    /// Segments per second.
    fn bandwidth(&self) -> f64 {
        self.cc.bandwidth().expect("an estimate").as_bps() as f64 / f64::from(8 * 1448)
    }
}

#[test]
fn by_default_marks_mean_nothing() {
    let mut rounds = rounds("");
    rounds.feed(20);
    rounds.feed(20);
    assert_eq!(rounds.cc.phase(), "STARTUP");
    assert_eq!(Config::default().ecn_request(), EcnRequest::Host);
    assert_eq!(config("ecn=on").ecn_request(), EcnRequest::MarkByMark);
    assert_eq!(config("ecn=ect1").ecn_request(), EcnRequest::L4s);
    assert!(config("ecn=ect1").machine().ecn_low);
}

#[test]
fn two_rounds_with_half_of_the_segments_marked_end_startup() {
    let mut rounds = rounds("ecn=on");
    rounds.feed(10);
    rounds.feed(9);
    rounds.feed(10);
    assert_eq!(rounds.cc.phase(), "STARTUP");
    rounds.feed(10);
    assert_ne!(rounds.cc.phase(), "STARTUP");
}

#[test]
fn ecn_is_not_used_on_paths_longer_than_5_ms_unless_told() {
    for (text, ends) in [("ecn=on", false), ("ecn=on ecn_max_rtt=0s", true)] {
        let mut rounds = rounds(text);
        rounds.cc = config(text).build(setup(1, Some(Span::from_millis(6))));
        for _ in 0..3 {
            rounds.feed_at(20, Span::from_millis(6));
        }
        assert_eq!(rounds.cc.phase() != "STARTUP", ends, "{text}");
    }
}

#[test]
fn marks_while_cruising_cut_the_bandwidth_by_a_third_of_their_average_unless_told_not_to() {
    for (text, is_cut) in [("ecn=on", true), ("ecn=on ecn_bw_lo=off", false)] {
        let mut rounds = rounds(text);
        rounds.settle();
        let before = rounds.bandwidth();
        // Alpha was 1 and has shrunk by a sixteenth in each of eight rounds.
        rounds.feed(4);
        let after = rounds.bandwidth();
        let alpha = 0.9375_f64 * 0.9375 * 0.9375 * 0.9375;
        let cut = 1.0 - alpha * alpha * 0.9375 / 3.0;
        assert_near(after / before, if is_cut { cut } else { 1.0 }, 0.03);
    }
}

#[test]
fn exactly_half_of_the_segments_marked_are_too_many_for_a_probe() {
    let mut rounds = rounds("ecn=on");
    rounds.probe();
    rounds.feed(9);
    assert_eq!(rounds.cc.phase(), "PROBE_BW:UP");
    rounds.feed(10);
    assert_ne!(rounds.cc.phase(), "PROBE_BW:UP");
}

#[test]
fn a_probe_that_meets_only_marks_lowers_bw_hi() {
    for (text, is_cut) in
        [("ecn=on ecn_bw_lo=off", true), ("ecn=on ecn_bw_lo=off ecn_bw_hi=off", false)]
    {
        let mut rounds = rounds(text);
        rounds.probe();
        let before = rounds.bandwidth();
        rounds.feed(20);
        assert_ne!(rounds.cc.phase(), "PROBE_BW:UP");
        assert_eq!(rounds.bandwidth() < before * 0.95, is_cut, "{text}");
        // A sample without marks shows that more is possible.
        rounds.feed(0);
        assert_near(rounds.bandwidth(), before, 1.0);
    }
}

// Robustness and parsing

proptest! {
    #[test]
    fn no_legal_sequence_of_reports_breaks_it(
        seed: u64,
        ecn: bool,
        drain: bool,
        tick_ms in 0_u64..20,
        bytes in proptest::collection::vec(any::<u8>(), 0..600),
    ) {
        let config = Config {
            ecn: if ecn { Ecn::Ect0 } else { Ecn::Off },
            ecn_max_rtt: Span::ZERO,
            drain_to_target: drain,
            ..Config::default()
        };
        let mut setup = setup(seed, None);
        setup.tick = Span::from_millis(tick_ms);
        torment(config.build(setup), &bytes);
    }
}

#[test]
fn an_unknown_word_for_a_switch_is_refused() {
    let error = Config::parse(&mut Words::new("ecn=yes")).expect_err("unknown");
    assert_eq!(error.allowed(), ["on", "ect1", "off"]);
}
