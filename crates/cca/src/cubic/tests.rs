use proptest::prelude::*;
use sojourn_core::Params;
use sojourn_core::{Span, Time, Words};

use super::curve::Epoch;
use super::hystart_plus_plus::{HyStartConfig, HyStartPlusPlus};
use super::linux::Config as LinuxConfig;
use super::linux::cube_root;
use super::{Config, Cubic, CubicLinux};
use crate::testing::{Path, congestion, ops, plain_ack, play, setup};
use crate::{Ack, Congestion, CongestionKind, Controller, RecoveryState, Restart, Setup, Undo};

fn config(text: &str) -> Config {
    Config::parse(&mut Words::new(text)).expect("a test writes good parameters")
}

fn linux(text: &str) -> LinuxConfig {
    LinuxConfig::parse(&mut Words::new(text)).expect("a test writes good parameters")
}

fn from(initial_cwnd: u32) -> Setup {
    Setup { initial_cwnd, ..setup() }
}

fn at_ms(ms: u64) -> Time {
    Time::ZERO + Span::from_millis(ms)
}

fn undo() -> Undo {
    Undo { now: Time::ZERO }
}

/// Loss with a flight as large as the window.
fn lose<C: Controller + ?Sized>(controller: &mut C) {
    let in_flight = controller.cwnd();
    controller.on_congestion(&Congestion { in_flight, ..congestion(CongestionKind::Loss) });
}

fn assert_close(value: f64, expected: f64, tolerance: f64) {
    assert!((value - expected).abs() <= tolerance, "{value} instead of {expected}");
}

mod rfc9438 {
    use super::*;

    fn cubic(initial_cwnd: u32) -> Cubic {
        Cubic::new(config("hystart=off"), from(initial_cwnd))
    }

    fn ack_at(ms: u64, una: u32) -> Ack {
        Ack { srtt: Some(Span::from_millis(100)), ..plain_ack(at_ms(ms), 1, una) }
    }

    #[test]
    fn section_4_2_k_is_the_time_to_regain_w_max() {
        let config = config("");
        let epoch = Epoch::new(&config, Time::ZERO, 700.0, 1_000.0);
        assert_close(epoch.k(), libm::cbrt(300.0 / 0.4), 1e-12);
        assert_close(epoch.w_cubic(0.0, 0.4), 700.0, 1e-9);
        assert_close(epoch.w_cubic(epoch.k(), 0.4), 1_000.0, 1e-9);
    }

    /// With fast convergence W_max is 0.85 of the window, which RFC 8312's K ignored.
    #[test]
    fn section_4_2_k_counts_from_the_reduced_window_not_from_beta() {
        let epoch = Epoch::new(&config(""), Time::ZERO, 700.0, 850.0);
        assert_close(epoch.k(), libm::cbrt(150.0 / 0.4), 1e-12);
        assert!(epoch.k() < libm::cbrt(850.0 * 0.3 / 0.4));
    }

    #[test]
    fn sections_4_4_and_4_5_the_curve_is_symmetric_about_w_max() {
        let epoch = Epoch::new(&config(""), Time::ZERO, 700.0, 1_000.0);
        for offset in [0.5, 1.0, 3.0, 9.0] {
            let below = 1_000.0 - epoch.w_cubic(epoch.k() - offset, 0.4);
            let above = epoch.w_cubic(epoch.k() + offset, 0.4) - 1_000.0;
            assert_close(below, above, 1e-9);
            assert_close(above, 0.4 * offset * offset * offset, 1e-9);
        }
    }

    #[test]
    fn sections_4_4_and_4_5_growth_slows_towards_w_max_and_quickens_beyond() {
        let mut path = Path::new(
            Cubic::new(config("hystart=off tcp_friendliness=off"), from(1_000)),
            &from(1_000),
            Span::from_millis(100),
        );
        path.loss_period = Some(1_000_000);
        lose(&mut path.connection.controller);
        assert_eq!(path.controller().cwnd(), 700);
        let mut windows = Vec::new();
        for second in 1..=18 {
            path.run_until(at_ms(second * 1_000));
            windows.push(path.controller().cwnd());
            let expected = if path.controller().cwnd() < 1_000 { "concave" } else { "convex" };
            assert_eq!(path.controller().phase(), expected);
        }
        // The first acknowledgement comes after 0.1 s. The target is a round ahead, and reached
        // in a round.
        for (second, &cwnd) in (1..).zip(&windows) {
            let offset = f64::from(second) - 0.1 - libm::cbrt(300.0 / 0.4);
            assert_close(f64::from(cwnd), 1_000.0 + 0.4 * offset * offset * offset, 6.0);
        }
    }

    #[test]
    fn section_4_2_growth_is_at_most_half_a_window_per_round() {
        let mut cubic = cubic(100);
        lose(&mut cubic);
        cubic.on_ack(&ack_at(0, 1));
        let before = f64::from(cubic.cwnd());
        // A minute later the curve is far above.
        for una in 0..cubic.cwnd() {
            cubic.on_ack(&ack_at(60_000, 2 + una));
        }
        let grown = f64::from(cubic.cwnd()) / before;
        assert!((1.48..1.51).contains(&grown), "{grown}");
    }

    #[test]
    fn section_4_3_reno_friendly_growth_is_529_thousandths_then_one_segment_a_round() {
        // A short round trip: the cubic function hardly moves.
        let mut path = Path::new(cubic(20), &from(20), Span::from_millis(5));
        lose(&mut path.connection.controller);
        path.run_until(at_ms(5));
        let mut windows = Vec::new();
        for round in 0..40 {
            path.run_until(at_ms(5 + 5 * (round + 1)));
            windows.push(f64::from(path.controller().cwnd()));
        }
        assert_eq!(path.controller().phase(), "reno_friendly");
        // Growing from 14 to 20 takes 6/0.529 = 11.3 rounds; after that each segment takes one.
        assert_close(windows[11], 20.0, 1.0);
        assert_close(windows[39] - windows[19], 20.0, 1.0);
    }

    #[test]
    fn section_4_6_congestion_keeps_seven_tenths() {
        let mut on_loss = cubic(100);
        lose(&mut on_loss);
        assert_eq!((on_loss.cwnd(), on_loss.ssthresh()), (70, Some(70)));
    }

    #[test]
    fn section_4_6_the_flight_counts_not_the_window() {
        let event = Congestion { in_flight: 40, ..congestion(CongestionKind::Loss) };
        let mut by_flight = cubic(100);
        by_flight.on_congestion(&event);
        assert_eq!(by_flight.ssthresh(), Some(28));
        let mut by_window = Cubic::new(config("ssthresh_from=cwnd"), from(100));
        by_window.on_congestion(&event);
        assert_eq!(by_window.ssthresh(), Some(70));
    }

    /// RFC 5681 section 3.2: limited transmit does not enlarge the flight, nor do selective
    /// acknowledgements make it smaller.
    #[test]
    fn section_4_6_the_flight_is_what_is_not_cumulatively_acknowledged() {
        let mut cubic = cubic(100);
        let ack = Ack { is_cwnd_limited: false, packets_out: 120, ..ack_at(0, 1) };
        cubic.on_ack(&ack);
        cubic.on_congestion(&Congestion { in_flight: 60, ..congestion(CongestionKind::Loss) });
        assert_eq!(cubic.ssthresh(), Some(70));
    }

    #[test]
    fn section_4_6_the_floor_is_two_segments_and_one_for_marks() {
        let mut on_loss = cubic(2);
        lose(&mut on_loss);
        assert_eq!((on_loss.cwnd(), on_loss.ssthresh()), (2, Some(2)));
        let mut on_mark = cubic(1);
        on_mark.on_congestion(&Congestion { in_flight: 1, ..congestion(CongestionKind::Ecn) });
        assert_eq!((on_mark.cwnd(), on_mark.ssthresh()), (1, Some(2)));
    }

    #[test]
    fn section_4_7_fast_convergence_lowers_w_max_twice() {
        let mut cubic = cubic(1_000);
        lose(&mut cubic);
        assert_eq!(cubic.w_max, Some(1_000.0));
        lose(&mut cubic);
        assert_close(cubic.w_max.unwrap(), 700.0 * 0.85, 1e-9);
        let mut without = Cubic::new(config("fast_convergence=off"), from(1_000));
        lose(&mut without);
        lose(&mut without);
        assert_close(without.w_max.unwrap(), 700.0, 1e-9);
    }

    #[test]
    fn section_4_8_a_timeout_restarts_on_the_plateau() {
        let mut cubic = cubic(100);
        let timeout = Congestion { in_flight: 100, ..congestion(CongestionKind::Timeout) };
        cubic.on_congestion(&timeout);
        assert_eq!((cubic.cwnd(), cubic.ssthresh()), (1, Some(70)));
        let in_loss = |una| Ack { state: RecoveryState::Loss, ..ack_at(0, una) };
        for una in 1..=69 {
            cubic.on_ack(&in_loss(una));
        }
        assert_eq!((cubic.cwnd(), cubic.phase()), (70, "avoidance"));
        cubic.on_ack(&ack_at(0, 70));
        let epoch = cubic.epoch.as_ref().expect("congestion avoidance began");
        assert_eq!(epoch.k(), 0.0);
        assert_eq!(cubic.w_max, Some(70.0));
    }

    #[test]
    fn marks_in_a_flight_that_is_already_reduced_change_nothing() {
        for prior_state in [RecoveryState::Cwr, RecoveryState::Recovery, RecoveryState::Loss] {
            let mut cubic = cubic(100);
            lose(&mut cubic);
            let mark = congestion(CongestionKind::Ecn);
            cubic.on_congestion(&Congestion { prior_state, in_flight: 70, ..mark });
            assert_eq!(cubic.cwnd(), 70);
        }
    }

    /// RFC 5681 section 3.1, the last paragraph on ssthresh.
    #[test]
    fn a_timeout_of_a_retransmission_keeps_the_threshold() {
        let mut cubic = cubic(100);
        let timeout = Congestion { in_flight: 100, ..congestion(CongestionKind::Timeout) };
        cubic.on_congestion(&timeout);
        cubic.on_congestion(&Congestion { prior_state: RecoveryState::Loss, ..timeout });
        assert_eq!((cubic.cwnd(), cubic.ssthresh()), (1, Some(70)));
    }

    #[test]
    fn section_4_9_a_spurious_reduction_is_taken_back_with_its_curve() {
        let mut cubic = cubic(100);
        lose(&mut cubic);
        for una in 1..200 {
            cubic.on_ack(&ack_at(u64::from(una) * 10, una));
        }
        let (cwnd, ssthresh, w_max) = (cubic.cwnd, cubic.ssthresh, cubic.w_max);
        let k = cubic.epoch.as_ref().unwrap().k();
        for kind in [CongestionKind::Loss, CongestionKind::Timeout] {
            cubic.on_congestion(&Congestion { in_flight: 80, ..congestion(kind) });
            assert!(cubic.cwnd < cwnd);
            cubic.on_undo(&undo());
            assert_eq!((cubic.cwnd, cubic.ssthresh, cubic.w_max), (cwnd, ssthresh, w_max));
            assert_eq!(cubic.epoch.as_ref().unwrap().k(), k);
        }
    }

    #[test]
    fn section_4_9_a_window_that_has_outgrown_the_old_one_stays() {
        let mut cubic = cubic(10);
        lose(&mut cubic);
        for una in 1..200 {
            cubic.on_ack(&ack_at(u64::from(una) * 100, una));
        }
        let cwnd = cubic.cwnd;
        assert!(cwnd > 10.0);
        cubic.on_undo(&undo());
        assert_eq!(cubic.cwnd, cwnd);
    }

    #[test]
    fn section_5_8_time_stands_still_while_the_application_is_the_limit() {
        let grown_after = |pause_ms: u64, idles: bool| {
            let mut cubic = cubic(100);
            lose(&mut cubic);
            cubic.on_ack(&ack_at(0, 1));
            cubic.on_ack(&ack_at(10, 2));
            if idles {
                cubic.on_restart(&Restart {
                    now: at_ms(10 + pause_ms),
                    idle: Span::from_millis(pause_ms),
                    rto: Span::from_secs(1_000),
                    is_app_limited: true,
                });
            } else {
                let limited = Ack { is_cwnd_limited: false, ..ack_at(10 + pause_ms, 3) };
                cubic.on_ack(&limited);
            }
            for una in 0..100 {
                cubic.on_ack(&ack_at(20 + pause_ms + u64::from(una), 4 + una));
            }
            cubic.cwnd
        };
        let unpaused = grown_after(0, false);
        assert_close(grown_after(30_000, false), unpaused, 1e-9);
        assert_close(grown_after(30_000, true), unpaused, 1e-9);
    }

    /// RFC 5681 section 4.1.
    #[test]
    fn a_long_idle_connection_restarts_from_the_initial_window() {
        let mut cubic = Cubic::new(config("hystart=off"), from(10));
        cubic.on_ack(&Ack { delivered: 90, cumulative: 90, ..ack_at(0, 90) });
        assert_eq!(cubic.cwnd(), 100);
        lose(&mut cubic);
        let rto = Span::from_millis(300);
        let restart = |idle| Restart { now: Time::ZERO + idle, idle, rto, is_app_limited: true };
        cubic.on_restart(&restart(rto));
        assert_eq!(cubic.cwnd(), 70);
        cubic.on_restart(&restart(rto * 2));
        assert_eq!((cubic.cwnd(), cubic.ssthresh()), (10, Some(70)));
    }

    /// Tables 1 and 2: a loss every 1/p segments, C = 0.4.
    #[test]
    fn section_5_2_the_average_window_is_the_printed_one() {
        for (rtt_ms, period, expected) in [
            (100, 1_000, 38.0),
            (100, 10_000, 187.0),
            (100, 100_000, 1_054.0),
            (10, 1_000, 38.0),
            (10, 10_000, 120.0),
            (10, 100_000, 379.0),
        ] {
            let average = average_window(cubic(10), rtt_ms, period);
            assert_close(average / expected, 1.0, 0.1);
        }
    }
}

/// The average window over 40 losses, after 60 that lead there from slow start.
fn average_window<C: Controller>(controller: C, rtt_ms: u64, period: u64) -> f64 {
    let mut path = Path::new(controller, &setup(), Span::from_millis(rtt_ms));
    path.loss_period = Some(period);
    while path.connection.lost < 60 {
        path.step();
    }
    path.measure();
    while path.connection.lost < 100 {
        path.step();
    }
    path.average_cwnd()
}

/// RFC 9406.
mod hystart_plus_plus {
    use super::*;

    const WINDOW: u32 = 10;

    /// A flow whose window is ten segments, a round ten acknowledgements.
    struct Rounds {
        hystart: HyStartPlusPlus,
        una: u32,
    }

    impl Rounds {
        fn new() -> Self {
            let hystart = HyStartPlusPlus::new(config("").hystart().expect("it is on"));
            let mut rounds = Self { hystart, una: 0 };
            rounds.ack(None);
            rounds
        }

        fn ack(&mut self, rtt: Option<Span>) -> bool {
            self.una += 1;
            let snd_nxt = self.una + WINDOW;
            let ack = plain_ack(Time::ZERO, 1, self.una);
            self.hystart.is_over_after(&Ack { rtt, snd_nxt, ..ack })
        }

        /// The first `samples` acknowledgements measure `rtt_ms`; true when slow start is over.
        fn round(&mut self, samples: u32, rtt_ms: u64) -> bool {
            let rtt = Span::from_millis(rtt_ms);
            (0..WINDOW).fold(false, |over, n| self.ack((n < samples).then_some(rtt)) | over)
        }

        fn is_conservative_after(rounds: &[(u32, u64)]) -> bool {
            let mut flow = Self::new();
            for &(samples, rtt_ms) in rounds {
                assert!(!flow.round(samples, rtt_ms));
            }
            flow.hystart.is_conservative()
        }
    }

    #[test]
    fn section_4_2_a_rise_by_an_eighth_is_suspicious() {
        assert!(!Rounds::is_conservative_after(&[(10, 80), (10, 89)]));
        assert!(Rounds::is_conservative_after(&[(10, 80), (10, 90)]));
    }

    #[test]
    fn section_4_3_the_rise_that_counts_lies_between_4_and_16_ms() {
        assert!(!Rounds::is_conservative_after(&[(10, 8), (10, 11)]));
        assert!(Rounds::is_conservative_after(&[(10, 8), (10, 12)]));
        assert!(!Rounds::is_conservative_after(&[(10, 400), (10, 415)]));
        assert!(Rounds::is_conservative_after(&[(10, 400), (10, 416)]));
    }

    #[test]
    fn section_4_2_fewer_than_eight_samples_say_nothing() {
        assert!(!Rounds::is_conservative_after(&[(10, 80), (7, 200)]));
        assert!(Rounds::is_conservative_after(&[(10, 80), (8, 200)]));
        assert!(!Rounds::is_conservative_after(&[(0, 80), (10, 200)]), "nothing to compare with");
    }

    #[test]
    fn section_4_2_the_round_before_is_the_measure_not_the_least_of_all() {
        assert!(!Rounds::is_conservative_after(&[(10, 80), (10, 88), (10, 97), (10, 107)]));
    }

    #[test]
    fn section_4_2_slow_start_ends_with_the_fifth_conservative_round() {
        let mut flow = Rounds::new();
        flow.round(10, 80);
        let ends: Vec<bool> = (0..5).map(|_| flow.round(10, 100)).collect();
        assert_eq!(ends, [false, false, false, false, true]);
    }

    #[test]
    fn section_4_2_a_passing_rise_resumes_slow_start() {
        let mut flow = Rounds::new();
        flow.round(10, 80);
        flow.round(10, 100);
        assert!(flow.hystart.is_conservative());
        flow.round(10, 99);
        assert!(!flow.hystart.is_conservative());
        // Against 99 ms 111 is no rise by an eighth, 112 is.
        flow.round(10, 111);
        assert!(!flow.hystart.is_conservative());
    }

    #[test]
    fn section_4_2_growth_is_limited_to_l_and_quartered_when_conservative() {
        let mut flow = Rounds::new();
        assert_eq!((flow.hystart.growth(2.0), flow.hystart.growth(20.0)), (2.0, 8.0));
        flow.round(10, 80);
        flow.round(10, 100);
        assert_eq!((flow.hystart.growth(2.0), flow.hystart.growth(20.0)), (0.5, 2.0));
        let paced = HyStartConfig { l: None, ..config("").hystart().expect("it is on") };
        assert_eq!(HyStartPlusPlus::new(paced).growth(20.0), 20.0);
    }

    /// RFC 9438 section 4.10: W_max is the window of the first congestion avoidance stage.
    #[test]
    fn slow_start_on_a_link_with_a_deep_buffer_ends_without_loss() {
        let run = |text: &str| {
            let mut path =
                Path::new(Cubic::new(config(text), setup()), &setup(), Span::from_millis(50));
            // 100 segments fit on the way.
            path.rate = sojourn_core::Rate::from_bps(24_000_000);
            path.buffer = 1_500;
            let mut phases = vec![path.controller().phase()];
            while path.connection.now < at_ms(3_000) {
                path.step();
                let phase = path.controller().phase();
                if phases.last() != Some(&phase) {
                    phases.push(phase);
                }
            }
            (phases, path.controller().ssthresh(), path.connection.lost)
        };
        let (phases, ssthresh, lost) = run("");
        assert_eq!(phases[..3], ["slow_start", "css", "avoidance"]);
        assert_eq!(lost, 0);
        // Suspicion comes when a whole round has waited. Five rounds of growth by a quarter triple
        // the window.
        assert!((300..1_500).contains(&ssthresh.expect("slow start ended")), "{ssthresh:?}");
        let (_, _, lost) = run("hystart=off");
        assert!(lost > 500, "{lost}");
    }

    #[test]
    fn later_slow_starts_are_plain() {
        let mut cubic = Cubic::new(config(""), from(100));
        cubic.on_congestion(&Congestion { in_flight: 100, ..congestion(CongestionKind::Timeout) });
        cubic.on_ack(&plain_ack(Time::ZERO, 20, 20));
        assert_eq!(cubic.cwnd(), 21, "without the limit of eight");
    }
}

mod as_in_linux {
    use super::*;

    fn cubic(initial_cwnd: u32) -> CubicLinux {
        CubicLinux::new(linux("hystart=off"), from(initial_cwnd))
    }

    /// Delivers `delivered` segments in one acknowledgement.
    fn feed(cubic: &mut CubicLinux, ms: u64, delivered: u32, una: u32) {
        cubic.on_ack(&plain_ack(at_ms(ms), delivered, una));
    }

    /// Segments that must be delivered, one by one at one moment, before the window grows.
    fn acks_to_grow(cubic: &mut CubicLinux, ms: u64, una: &mut u32) -> u32 {
        let cwnd = cubic.cwnd();
        (1..)
            .find(|_| {
                *una += 1;
                feed(cubic, ms, 1, *una);
                cubic.cwnd() > cwnd
            })
            .expect("the window grows")
    }

    #[test]
    fn the_cube_root_is_rounded_down() {
        for root in [0u64, 1, 2, 9, 10, 1_000, 65_535, 2_642_244] {
            let cube = root * root * root;
            assert_eq!(cube_root(cube), root);
            assert_eq!(cube_root(cube + 3 * root * (root + 1)), root);
        }
        assert_eq!(cube_root(u64::MAX), 2_642_245);
    }

    #[test]
    fn congestion_keeps_717_of_1024_and_two_at_least() {
        let mut large = cubic(1_000);
        lose(&mut large);
        assert_eq!((large.cwnd(), large.ssthresh()), (700, Some(700)));
        let mut small = cubic(2);
        lose(&mut small);
        assert_eq!((small.cwnd(), small.ssthresh()), (2, Some(2)));
    }

    #[test]
    fn the_plateau_is_a_segment_in_a_hundred_windows() {
        let mut cubic = CubicLinux::new(linux("hystart=off tcp_friendliness=off"), from(100));
        lose(&mut cubic);
        feed(&mut cubic, 0, 1, 1);
        // Around K the curve stays within a segment for a second.
        let k_ms = (1_000.0 * libm::cbrt(30.0 / 0.4)) as u64;
        let (mut ms, mut una) = (k_ms, 1);
        while cubic.cwnd() < 100 {
            (ms, una) = (ms + 1, una + 1);
            feed(&mut cubic, ms, 1, una);
        }
        assert_eq!(acks_to_grow(&mut cubic, ms, &mut una), 100 * 100);
    }

    #[test]
    fn without_a_loss_the_window_grows_by_a_twentieth() {
        // Slow start is left without an earlier loss, as after a timeout.
        let mut cubic = cubic(1_000);
        cubic.on_congestion(&congestion(CongestionKind::Timeout));
        feed(&mut cubic, 0, 699, 699);
        assert_eq!((cubic.cwnd(), cubic.ssthresh()), (700, Some(700)));
        let mut una = 700;
        assert_eq!(acks_to_grow(&mut cubic, 0, &mut una), 20);
        assert_eq!(acks_to_grow(&mut cubic, 100, &mut una), 20);
    }

    #[test]
    fn two_segments_delivered_give_one_at_the_most() {
        let mut cubic = cubic(100);
        lose(&mut cubic);
        let mut una = 0;
        acks_to_grow(&mut cubic, 0, &mut una);
        assert_eq!(acks_to_grow(&mut cubic, 60_000, &mut una), 2);
        assert_eq!(acks_to_grow(&mut cubic, 60_001, &mut una), 2);
    }

    #[test]
    fn fast_convergence_lowers_w_max_twice() {
        // The lower W_max is reached earlier, so the curve is at its plateau earlier.
        let cwnd_after = |text: &str| {
            let mut path = Path::new(
                CubicLinux::new(linux(text), from(1_000)),
                &from(1_000),
                Span::from_millis(100),
            );
            lose(&mut path.connection.controller);
            lose(&mut path.connection.controller);
            assert_eq!(path.controller().cwnd(), 490);
            path.run_until(at_ms(7_500));
            path.controller().cwnd()
        };
        assert_close(f64::from(cwnd_after("hystart=off")), 595.0, 6.0);
        assert_close(f64::from(cwnd_after("hystart=off fast_convergence=off")), 698.0, 6.0);
    }

    #[test]
    fn the_curve_is_that_of_the_rfc_within_a_percent() {
        let mut path = Path::new(cubic(1_000), &from(1_000), Span::from_millis(100));
        lose(&mut path.connection.controller);
        for second in 1..=18u32 {
            path.run_until(at_ms(u64::from(second) * 1_000));
            let cwnd = f64::from(path.controller().cwnd());
            let offset = f64::from(second) - 0.1 - libm::cbrt(300.0 / 0.4);
            assert_close(cwnd / (1_000.0 + 0.4 * offset * offset * offset), 1.0, 0.01);
        }
    }

    #[test]
    fn reno_is_kept_up_with_at_one_segment_per_fifteen_eighths_of_a_window() {
        let mut path = Path::new(cubic(40), &from(40), Span::from_millis(10));
        lose(&mut path.connection.controller);
        assert_eq!(path.controller().cwnd(), 28);
        path.run_until(at_ms(10 + 10 * 60));
        // Sixty rounds: 32 segments, where the curve alone gives five.
        assert_close(f64::from(path.controller().cwnd()), 28.0 + 32.0, 3.0);
        assert_eq!(path.controller().phase(), "reno_friendly");
    }

    /// The update interval is 1/32 s; in it a window that stays the same keeps its pace.
    #[test]
    fn the_curve_is_followed_in_steps() {
        let mut cubic = CubicLinux::new(linux("hystart=off tcp_friendliness=off"), from(10_000));
        lose(&mut cubic);
        feed(&mut cubic, 0, 1, 1);
        let every = |cubic: &CubicLinux| cubic.growth_every();
        let at_start = every(&cubic);
        feed(&mut cubic, 31, 1, 2);
        assert_eq!(every(&cubic), at_start);
        feed(&mut cubic, 32, 1, 3);
        assert!(every(&cubic) < at_start);
    }

    #[test]
    fn a_coarse_clock_follows_the_curve_once_a_tick() {
        let setup = Setup { tick: Span::from_millis(10), ..from(10_000) };
        let mut cubic = CubicLinux::new(linux("hystart=off tcp_friendliness=off"), setup);
        lose(&mut cubic);
        feed(&mut cubic, 5, 1, 1);
        let at_start = cubic.growth_every();
        // The interval is 30 ms at 100 Hz, and must be exceeded by a tick.
        feed(&mut cubic, 39, 1, 2);
        assert_eq!(cubic.growth_every(), at_start);
        feed(&mut cubic, 40, 1, 3);
        assert!(cubic.growth_every() < at_start);
    }

    #[test]
    fn idle_time_does_not_age_the_curve() {
        let cwnd_after = |idle_ms: u64| {
            let mut cubic = cubic(100);
            lose(&mut cubic);
            feed(&mut cubic, 0, 1, 1);
            let idle = Span::from_millis(idle_ms);
            let rto = Span::from_secs(1_000);
            let now = at_ms(100) + idle;
            cubic.on_restart(&Restart { now, idle, rto, is_app_limited: true });
            for una in 0..200 {
                feed(&mut cubic, 101 + idle_ms + u64::from(una), 1, 2 + una);
            }
            cubic.cwnd()
        };
        assert_eq!(cwnd_after(30_000), cwnd_after(0));
    }

    /// RFC 9438 section 5.2, where one segment is small against what a loss takes: see the next
    /// test.
    #[test]
    fn the_average_window_is_the_rfcs() {
        for (rtt_ms, period, expected) in
            [(100, 100_000, 1_054.0), (10, 1_000, 38.0), (10, 10_000, 120.0), (10, 100_000, 379.0)]
        {
            let average = average_window(CubicLinux::new(linux(""), setup()), rtt_ms, period);
            assert_close(average / expected, 1.0, 0.1);
        }
    }

    /// Whole segments below W_max are rounded down, so the window is there 1.36 s before K.
    #[test]
    fn w_max_is_regained_as_soon_as_the_curve_is_within_a_segment() {
        let rtt = Span::from_millis(100);
        let mut path = Path::new(cubic(51), &from(51), rtt);
        lose(&mut path.connection.controller);
        assert_eq!(path.controller().cwnd(), 35);
        // The first acknowledgement begins the epoch; the curve is followed a round ahead.
        let ahead = libm::cbrt(1.0 / 0.4004);
        let expected = libm::cbrt(16.0 / 0.4004) - ahead;
        while path.controller().cwnd() < 51 {
            path.step();
        }
        assert_close(path.connection.now.as_secs_f64(), expected, 0.1);
    }
}

/// HyStart as in Linux.
mod hystart {
    use super::*;

    /// Slow start with acknowledgements of one segment; each acknowledgement has let two segments
    /// go.
    struct SlowStart {
        cubic: CubicLinux,
        una: u32,
    }

    impl SlowStart {
        fn new(text: &str, initial_cwnd: u32) -> Self {
            Self::of(text, from(initial_cwnd))
        }

        fn of(text: &str, setup: Setup) -> Self {
            Self { cubic: CubicLinux::new(linux(text), setup), una: 0 }
        }

        fn ack(&mut self, us: u64, rtt_us: u64) {
            self.una += 1;
            self.cubic.on_ack(&Ack {
                rtt: Some(Span::from_micros(rtt_us)),
                srtt: Some(Span::from_micros(rtt_us)),
                snd_nxt: self.una + self.cubic.cwnd(),
                ..plain_ack(Time::ZERO + Span::from_micros(us), 1, self.una)
            });
        }

        /// Acknowledgements from `start_us` on, `gap_us` apart; when slow start ended, counted from
        /// the first of them.
        fn train(&mut self, start_us: u64, gap_us: u64, count: u64, rtt_us: u64) -> Option<u64> {
            (0..count).map(|n| n * gap_us).find(|after| {
                self.ack(start_us + after, rtt_us);
                self.cubic.ssthresh().is_some()
            })
        }
    }

    #[test]
    fn an_unpaced_train_ends_slow_start_after_half_the_delay_and_cushion() {
        let mut flow = SlowStart::new("hystart_detect=1", 100);
        // Half of 20 ms and of the cushion of 1 ms.
        assert_eq!(flow.train(20_000, 500, 100, 20_000), Some(11_000));
        assert_eq!(flow.cubic.ssthresh(), Some(100 + 22));
    }

    #[test]
    fn a_paced_train_must_be_as_long_as_delay_and_cushion() {
        let mut flow = SlowStart::of("hystart_detect=1", Setup { is_paced: true, ..from(100) });
        assert_eq!(flow.train(20_000, 500, 100, 20_000), Some(21_500));
    }

    #[test]
    fn a_gap_above_two_milliseconds_breaks_the_train() {
        assert_eq!(
            SlowStart::new("hystart_detect=1", 100).train(0, 2_000, 40, 20_000),
            Some(12_000)
        );
        assert_eq!(SlowStart::new("hystart_detect=1", 100).train(0, 2_001, 40, 20_000), None);
        let wide = "hystart_detect=1 hystart_ack_delta_us=3000";
        assert!(SlowStart::new(wide, 100).train(0, 2_001, 40, 20_000).is_some());
    }

    #[test]
    fn a_fast_flow_has_a_smaller_cushion() {
        // 20 000 segments of 1448 bytes twice in 20 ms are 2.9 GB/s: 262 144 bytes take 90 us.
        let mut flow = SlowStart::new("hystart_detect=1", 20_000);
        assert_eq!(flow.train(0, 10, 2_000, 20_000), Some(10_050));
    }

    #[test]
    fn a_rise_of_the_delay_ends_slow_start_at_the_ninth_sample() {
        for (base_us, rise_us) in [(8_000, 4_000), (80_000, 10_000), (400_000, 16_000)] {
            let mut flow = SlowStart::new("hystart_detect=2", 100);
            assert_eq!(flow.train(0, 5_000, 1, base_us), None);
            // To the end of the round.
            assert_eq!(flow.train(5_000, 5_000, 101, base_us + rise_us), None, "not above");
            assert_eq!(flow.train(900_000, 5_000, 30, base_us + rise_us + 1), None, "one is low");
            let mut flow = SlowStart::new("hystart_detect=2", 100);
            flow.ack(0, base_us);
            while flow.una < 101 {
                flow.ack(5_000, base_us);
            }
            let ended = flow.train(10_000, 5_000, 30, base_us + rise_us + 1);
            assert_eq!(ended, Some(8 * 5_000), "{base_us} us");
        }
    }

    #[test]
    fn it_does_not_look_below_sixteen_segments() {
        let mut flow = SlowStart::new("", 1);
        for n in 0..14 {
            flow.ack(n, 1_000);
            flow.ack(n, 1_000_000);
            if flow.cubic.cwnd() >= 16 {
                break;
            }
            assert_eq!(flow.cubic.ssthresh(), None);
        }
    }

    #[test]
    fn samples_in_the_first_second_of_an_epoch_do_not_count() {
        let mut flow = SlowStart::new("", 100);
        flow.ack(0, 50_000);
        lose(&mut flow.cubic);
        // The epoch begins.
        flow.ack(100_000, 50_000);
        flow.ack(1_099_000, 10_000);
        assert_eq!(flow.cubic.delay_min(), Some(Span::from_millis(50)));
        flow.ack(1_100_000, 10_000);
        assert_eq!(flow.cubic.delay_min(), Some(Span::from_millis(10)));
    }

    #[test]
    fn a_timeout_forgets_delay_and_curve_and_starts_it_again() {
        let mut flow = SlowStart::new("hystart_detect=1", 100);
        flow.train(0, 500, 100, 20_000).expect("the train is long enough");
        flow.cubic.on_congestion(&congestion(CongestionKind::Timeout));
        assert_eq!(flow.cubic.delay_min(), None);
        assert_eq!((flow.cubic.cwnd(), flow.cubic.phase()), (1, "slow_start"));
        let threshold = flow.cubic.ssthresh().expect("a timeout sets it");
        for n in 0..u64::from(threshold) {
            flow.ack(100_000 + n * 500, 20_000);
        }
        assert!(flow.cubic.ssthresh() < Some(threshold), "the second train ended earlier");
    }

    #[test]
    fn on_a_link_with_a_deep_buffer_it_avoids_the_overshoot() {
        let run = |text: &str| {
            let mut path =
                Path::new(CubicLinux::new(linux(text), setup()), &setup(), Span::from_millis(50));
            path.is_paced = false;
            path.rate = sojourn_core::Rate::from_bps(24_000_000);
            path.buffer = 400;
            path.run_until(at_ms(2_000));
            (path.controller().ssthresh(), path.connection.lost)
        };
        let (ssthresh, lost) = run("");
        assert_eq!(lost, 0);
        assert!((50..200).contains(&ssthresh.expect("slow start ended")), "{ssthresh:?}");
        assert!(run("hystart=off").1 > 50);
    }
}

mod parameters {
    use super::*;

    #[test]
    fn mistakes_name_what_is_allowed() {
        let error = |text| Config::parse(&mut Words::new(text)).unwrap_err().to_string();
        assert!(error("hystart=maybe").contains("on, off"));
        assert!(error("beta").contains("needs a value"));
        assert!(error("beta=1.5").contains("a number from"));
        assert!(error("L=0").contains("inf"));
        assert!(error("min_rtt_thresh=20ms").contains("max_rtt_thresh"));
        let error = LinuxConfig::parse(&mut Words::new("hystart_detect=4")).unwrap_err();
        assert_eq!(error.allowed(), ["1", "2", "3"]);
        let error = LinuxConfig::parse(&mut Words::new("beta=0.7")).unwrap_err();
        assert!(error.to_string().contains("a whole number from 1 to 1023"));
    }
}

mod any_operation {
    use super::*;

    proptest! {
        #[test]
        fn breaks_nothing(
            ops in ops(),
            initial_cwnd in 1u32..100_000,
            beta in 0.05f64..0.99,
            c in 0.001f64..1000.0,
            hystart in prop_oneof![Just("on"), Just("off")],
        ) {
            let config = config(&format!("beta={beta} C={c} hystart={hystart}"));
            let setup = from(initial_cwnd);
            play(Cubic::new(config, setup.clone()), &setup, &ops, |connection| {
                let cubic = &connection.controller;
                assert!(cubic.cwnd.is_finite());
                assert!(cubic.ssthresh().is_none_or(|ssthresh| ssthresh >= 2));
            });
        }

        #[test]
        fn breaks_nothing_as_in_linux(
            ops in ops(),
            initial_cwnd in 1u32..100_000,
            beta in 1u32..1_024,
            bic_scale in 1u32..65_536,
            tick_ms in prop_oneof![Just(0u64), Just(1), Just(4), Just(10)],
        ) {
            let config = linux(&format!("beta={beta} bic_scale={bic_scale}"));
            let setup = Setup { tick: Span::from_millis(tick_ms), ..from(initial_cwnd) };
            play(CubicLinux::new(config, setup.clone()), &setup, &ops, |connection| {
                let ssthresh = connection.controller.ssthresh();
                assert!(ssthresh.is_none_or(|ssthresh| ssthresh >= 2));
            });
        }

        /// A window as large as the sequence space and a year of waiting.
        #[test]
        fn overflows_nothing(
            acks in prop::collection::vec((0u64..40_000_000, 0u32..1 << 30), 1..50),
            congested in 0usize..50,
        ) {
            let mut rfc = Cubic::new(config(""), setup());
            let mut kernel = CubicLinux::new(linux(""), setup());
            let controllers: [&mut dyn Controller; 2] = [&mut rfc, &mut kernel];
            for controller in controllers {
                let (mut now, mut una) = (Time::ZERO, 0u32);
                for (n, &(seconds, delivered)) in acks.iter().enumerate() {
                    now += Span::from_secs(seconds);
                    una = una.wrapping_add(delivered.max(1));
                    let rtt = Some(Span::from_secs(seconds));
                    controller.on_ack(&Ack { rtt, srtt: rtt, ..plain_ack(now, delivered, una) });
                    if n == congested {
                        lose(controller);
                    }
                    prop_assert!(controller.cwnd() >= 1);
                }
            }
        }
    }
}
