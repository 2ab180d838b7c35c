use proptest::prelude::*;
use sojourn_core::{Purpose, StreamAddress, Time};

use super::minstrel::Minstrel;
use super::signal::{Fade, metres_at};
use super::*;
use crate::phy::{GuardInterval, HeLtf, Width};

fn he(mcs: u8, streams: u8) -> Mode {
    Mode::he_su(mcs, streams, Width::Mhz20, GuardInterval::Ns800, HeLtf::EightMicros).unwrap()
}

fn at(millis: u64) -> Time {
    Time::ZERO + Span::from_millis(millis)
}

/// 20 − 46.7 − 30 lg 10 + 174 − 73.01 − 7 dB; twice the width or the streams cost 3.01 dB, ten times the
/// distance 30 dB.
#[test]
fn signals_weaken_by_log_distance() {
    let config = SignalConfig::default();
    let of = |metres, mode: &Mode| (100.0 * snr_at(&config, metres, mode)).round() / 100.0;
    assert_eq!(of(10.0, &he(0, 1)), 37.29);
    assert_eq!(of(100.0, &he(0, 1)), 7.29);
    assert_eq!(of(10.0, &he(0, 2)), 34.28);
    let wide = Mode::he_su(0, 1, Width::Mhz40, GuardInterval::Ns800, HeLtf::EightMicros).unwrap();
    assert_eq!(of(10.0, &wide), 34.28);
    assert_eq!(of(0.1, &he(0, 1)), of(1.0, &he(0, 1)));
}

/// −82 to −52 dBm less the noise of 20 MHz (−101 dBm), a noise figure of 10 and a margin of 5 dB.
#[test]
fn one_frame_in_ten_is_lost_at_the_sensitivity_of_the_standard() {
    let config = SignalConfig::default();
    let dbm = [-82, -79, -77, -74, -70, -66, -65, -64, -59, -57, -54, -52];
    for (mcs, dbm) in (0..12).zip(dbm) {
        let snr = f64::from(dbm) + 101.0 - 15.0;
        let error = error_rate(&config, snr, &he(mcs, 1), 4096);
        assert!((error - 0.1).abs() < 1e-9, "MCS {mcs}: {error}");
    }
    // A decibel more: a tenth of the errors; half the length: half.
    let error = |snr, octets| error_rate(&config, snr, &he(0, 1), octets);
    assert!((error(5.0, 4096) - 0.0105).abs() < 1e-4);
    assert!((error(4.0, 2048) - 0.0513).abs() < 1e-4);
    assert!(error(-5.0, 1538) > 0.999_999);
}

/// −80 dBm at 2 Mbit/s and −76 dBm at 11 Mbit/s; half the rate gets through with 3 dB less.
#[test]
fn each_rate_of_802_11b_gets_through_with_less_signal_than_the_next() {
    let config = SignalConfig::default();
    for (mbps, dbm) in [("1", -83.0), ("2", -80.0), ("5.5", -79.0), ("11", -76.0)] {
        let error = error_rate(&config, dbm + 101.0 - 15.0, &Mode::dsss(mbps).unwrap(), 4096);
        assert!((error - 0.1).abs() < 1e-9, "{mbps} Mbit/s: {error}");
    }
    let at_140_metres =
        |mode: Mode| error_rate(&config, snr_at(&config, 140.0, &mode), &mode, 1538);
    let slowest = at_140_metres(Mode::dsss("1").unwrap());
    assert!(slowest < at_140_metres(Mode::non_ht(6).unwrap()), "{slowest}");
}

#[test]
fn stations_move_in_straight_lines() {
    let place = |seconds, metres| Place { at: Span::from_secs(seconds), metres };
    let places = [place(1, 10.0), place(3, 30.0), place(4, 5.0)];
    let metres = [0, 1000, 2000, 3000, 3500, 9000].map(|millis| metres_at(&places, at(millis)));
    assert_eq!(metres, [10.0, 10.0, 20.0, 30.0, 17.5, 5.0]);
}

#[test]
fn a_fading_signal_is_weak_as_much_of_the_time_as_its_means_say() {
    let config =
        Fading { depth: 12.0, clear: Span::from_millis(300), faded: Span::from_millis(100) };
    let random = StreamAddress { seed: 1, run: 0 }.stream(1, Purpose::Capacity);
    let mut fade = Fade::new(config, random);
    let faded = (0..400_000).filter(|millis| fade.at(at(*millis)) > 0.0).count();
    let share = faded as f64 / 400_000.0;
    assert!((share - 0.25).abs() < 0.02, "{share}");
}

#[test]
fn the_modes_to_choose_from_are_those_below_the_best() {
    let names =
        |mode: Mode| mode.not_above().iter().map(|mode| format!("{mode}")).collect::<Vec<_>>();
    assert_eq!(names(he(11, 2)).len(), 24);
    assert_eq!(names(he(3, 1)).last().unwrap(), "he mcs 3 nss 1 width 20MHz gi 0.8us");
    let ht = Mode::ht(15, Width::Mhz40, GuardInterval::Ns400).unwrap();
    assert_eq!(names(ht).len(), 16);
    assert_eq!(ht.not_above().last(), Some(&ht));
    assert_eq!(names(Mode::non_ht(54).unwrap()).len(), 8);
    assert_eq!(names(Mode::dsss("5.5").unwrap()), ["dsss 1", "dsss 2", "dsss 5.5"]);
    assert_eq!(he(7, 2).not_above().last(), Some(&he(7, 2)));
}

/// Frames a second that get through, of what the best rate would get.
fn efficiency(snr: f64) -> f64 {
    let signal = SignalConfig::default();
    let modes: Vec<Mode> = he(11, 1).not_above();
    let address = StreamAddress { seed: 1, run: 0 };
    let mut minstrel =
        Minstrel::new(&MinstrelConfig::default(), &modes, address.stream(1, Purpose::Controller));
    let mut random = address.stream(1, Purpose::Loss);
    let error = |mode: &Mode| error_rate(&signal, snr, mode, 1538);
    let (mut now, mut arrived) = (Time::ZERO, 0);
    while now < at(20_000) {
        let rate = minstrel.choose(now);
        let mode = &modes[rate];
        let error = error(mode);
        let sent = 20;
        let received = (0..sent).filter(|_| !random.chance(error)).count() as u32;
        minstrel.report(rate, sent, received);
        arrived += received;
        now += mode.txtime(sent * 1544) + Span::from_micros(200);
    }
    let of = |mode: &Mode| {
        let time = (mode.txtime(20 * 1544) + Span::from_micros(200)).as_secs_f64();
        20.0 * (1.0 - error(mode)) / time
    };
    let best = modes.iter().map(of).fold(0.0, f64::max);
    f64::from(arrived) / 20.0 / best
}

#[test]
fn minstrel_finds_the_rate_that_gets_most_through() {
    for snr in [5.0, 9.5, 13.0, 19.0, 24.0, 30.0, 40.0] {
        let efficiency = efficiency(snr);
        assert!(efficiency > 0.85, "{snr} dB: {efficiency}");
    }
}

#[test]
fn unanswered_frames_go_down_the_chain() {
    let modes = he(7, 1).not_above();
    let config = MinstrelConfig { look_around: 0.0, ..MinstrelConfig::default() };
    let random = StreamAddress { seed: 1, run: 0 }.stream(1, Purpose::Controller);
    let mut minstrel = Minstrel::new(&config, &modes, random);
    for (rate, arrived) in [(7, 94), (6, 100), (5, 100), (0, 100)] {
        minstrel.report(rate, 100, arrived);
    }
    let rates: Vec<usize> = (0..9)
        .map(|_| {
            let rate = minstrel.choose(Time::ZERO);
            minstrel.report(rate, 10, 0);
            rate
        })
        .collect();
    // Best, second best, most reliable of those that always arrive, slowest; two tries each.
    assert_eq!(rates, [7, 7, 6, 6, 6, 6, 0, 0, 0]);
}

#[test]
fn what_can_not_be_is_refused_by_name() {
    let own = [he(11, 1); 2];
    let problem = |rates: Rates| rates.check(own).unwrap_err().problem().to_owned();
    let good = Rates::at(1, 10.0, Control::Ideal);
    assert!(good.check(own).is_ok());
    let nowhere = |control| Rates { control, places: Vec::new(), ..good.clone() };
    assert!(nowhere(Control::Fixed).check(own).is_ok());
    assert!(problem(nowhere(Control::Ideal)).contains("'ideal' without a distance"));
    let minstrel = Control::Minstrel(MinstrelConfig::default());
    assert!(problem(nowhere(minstrel)).contains("'minstrel' without a distance"));
    let fades = Rates { fading: Some(Fading::default()), ..nowhere(Control::Fixed) };
    assert!(problem(fades).contains("fades without a distance"));
    let back = [
        Place { at: Span::from_secs(2), metres: 1.0 },
        Place { at: Span::from_secs(1), metres: 1.0 },
    ];
    assert!(
        problem(Rates { places: back.to_vec(), ..good.clone() })
            .contains("a place at 1s after one at 2s")
    );
    assert!(problem(Rates::at(1, f64::NAN, Control::Ideal)).contains("NaN"));
    let there = Presence { from: Span::from_secs(2), to: Span::from_secs(1) };
    assert!(
        problem(Rates { present: alloc::vec![there], ..good.clone() }).contains("from 2s to 1s")
    );
    let step =
        |from, to| Step { from: Span::from_secs(from), to: Span::from_secs(to), mode: he(0, 1) };
    let trace = |steps: &[Step]| problem(Rates::at(1, 10.0, Control::Trace(steps.to_vec())));
    assert!(trace(&[]).contains("without steps"));
    assert!(trace(&[step(0, 1), step(2, 3)]).contains("a gap from 1s to 2s before step 2"));
    assert!(trace(&[step(1, 2)]).contains("a gap from 0s to 1s before step 1"));
    assert!(trace(&[step(0, 2), step(1, 3)]).contains("step 2"));
    assert!(trace(&[step(0, 0)]).contains("ends when it begins"));
    let other = Step { mode: Mode::non_ht(6).unwrap(), ..step(0, 1) };
    assert!(trace(&[other]).contains("step 1 of the trace is 'ofdm 6'"));
    let fading = Fading { depth: -1.0, ..Fading::default() };
    assert!(problem(Rates { fading: Some(fading), ..good }).contains("depth"));
}

proptest! {
    #[test]
    fn errors_rise_with_length_and_fall_with_the_signal(snr in -20.0f64..60.0, mcs in 0u8..12, octets in 1u32..12_000) {
        let config = SignalConfig::default();
        let error = error_rate(&config, snr, &he(mcs, 1), octets);
        prop_assert!((0.0..=1.0).contains(&error));
        prop_assert!(error_rate(&config, snr + 1.0, &he(mcs, 1), octets) <= error);
        prop_assert!(error_rate(&config, snr, &he(mcs, 1), octets + 1) >= error);
    }
}
