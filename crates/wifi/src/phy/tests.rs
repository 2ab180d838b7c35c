//! Durations against published numbers.

use proptest::prelude::*;

use super::*;

fn micros(span: Span) -> f64 {
    span.as_nanos() as f64 / 1000.0
}

fn he(mcs: u8, width: Width, guard: GuardInterval) -> Mode {
    Mode::he_su(mcs, 1, width, guard, HeLtf::EightMicros).unwrap()
}

#[test]
fn ofdm_frames_last_what_clause_17_says() {
    let at = |mbps, octets| micros(Mode::non_ht(mbps).unwrap().txtime(octets));
    // 1536 octets, an Ack and a BlockAck.
    assert_eq!([at(6, 1536), at(24, 1536), at(54, 1536)], [2072.0, 536.0, 248.0]);
    assert_eq!([at(6, 14), at(12, 14), at(24, 14)], [44.0, 32.0, 28.0]);
    assert_eq!([at(6, 20), at(24, 20)], [52.0, 28.0]);
    assert_eq!([at(6, 32), at(12, 32), at(24, 32)], [68.0, 44.0, 32.0]);
    assert_eq!([at(6, 56), at(24, 56)], [100.0, 40.0]);
}

#[test]
fn ht_frames_last_what_clause_19_says() {
    let at =
        |mcs, guard, octets| micros(Mode::ht(mcs, Width::Mhz20, guard).unwrap().txtime(octets));
    let long = GuardInterval::Ns800;
    assert_eq!(at(0, long, 3086), 3840.0);
    assert_eq!(at(7, long, 43_230), 5360.0);
    assert_eq!(at(15, long, 64_846), 4032.0);
    assert_eq!(at(15, long, 1538), 136.0);
    assert_eq!(at(1, long, 7718), 4788.0);
    // A data part of 3592.8 µs ends with a whole symbol of 4 µs.
    assert_eq!(at(15, GuardInterval::Ns400, 64_846), 3636.0);
}

#[test]
fn he_frames_last_what_the_reference_has() {
    let guard = GuardInterval::Ns800;
    let cases = [
        (0, Width::Mhz20, [1485.6, 125.6, 71.2]),
        (0, Width::Mhz40, [764.8, 84.8, 57.6]),
        (0, Width::Mhz80, [397.6, 71.2, 57.6]),
        (0, Width::Mhz160, [220.8, 57.6, 57.6]),
        (11, Width::Mhz20, [139.2, 57.6, 57.6]),
        (11, Width::Mhz40, [98.4, 57.6, 57.6]),
        (11, Width::Mhz80, [71.2, 57.6, 57.6]),
        (11, Width::Mhz160, [57.6, 57.6, 57.6]),
    ];
    for (mcs, width, expected) in cases {
        let mode = he(mcs, width, guard);
        let times = [1536, 76, 14].map(|octets| micros(mode.txtime(octets)));
        assert_eq!(times, expected, "MCS {mcs}, {width}");
    }
    let times = |guard| {
        let mode = he(0, Width::Mhz20, guard);
        [1536, 76, 14].map(|octets| micros(mode.txtime(octets)))
    };
    assert_eq!(times(GuardInterval::Ns1600), [1570.4, 130.4, 72.8]);
    assert_eq!(times(GuardInterval::Ns3200), [1740.0, 140.0, 76.0]);
}

#[test]
fn the_training_symbol_of_the_standard_is_shorter_with_a_short_guard() {
    let mode = |ltf| Mode::he_su(0, 1, Width::Mhz20, GuardInterval::Ns800, ltf).unwrap();
    assert_eq!(micros(mode(HeLtf::Twice).txtime(1536)), 1484.8);
    assert_eq!(micros(mode(HeLtf::Once).txtime(1536)), 1481.6);
    assert_eq!(micros(mode(HeLtf::FourTimes).txtime(1536)), 1491.2);
}

#[test]
fn two_units_of_242_tones_cost_eight_microseconds_of_sig_b() {
    let scheduled = Scheduled { stations: 2, sig_b_mcs: 0 };
    let mode = Mode::he_mu(
        0,
        1,
        Width::Mhz40,
        Ru::Tones242,
        GuardInterval::Ns800,
        HeLtf::EightMicros,
        scheduled,
    );
    assert_eq!(micros(mode.unwrap().txtime(1536)), 1493.6);
}

#[test]
fn sig_b_grows_with_the_stations() {
    let front = |stations, ru| {
        let scheduled = Scheduled { stations, sig_b_mcs: 5 };
        let guard = GuardInterval::Ns1600;
        let mode = Mode::he_mu(5, 1, Width::Mhz20, ru, guard, HeLtf::EightMicros, scheduled);
        micros(mode.unwrap().preamble())
    };
    assert_eq!(front(2, Ru::Tones106), 48.0);
    assert_eq!(front(4, Ru::Tones52), 48.0);
    assert_eq!(front(9, Ru::Tones26), 52.0);
}

#[test]
fn rates_are_those_of_the_tables() {
    let mbps = |mode: Mode| (mode.rate().as_mbps() * 100.0).round() / 100.0;
    let ht = |mcs, width, guard| mbps(Mode::ht(mcs, width, guard).unwrap());
    assert_eq!(ht(7, Width::Mhz20, GuardInterval::Ns800), 65.0);
    assert_eq!(ht(15, Width::Mhz20, GuardInterval::Ns400), 144.44);
    assert_eq!(ht(0, Width::Mhz20, GuardInterval::Ns400), 7.22);
    assert_eq!(ht(31, Width::Mhz40, GuardInterval::Ns400), 600.0);
    let unit = |ru, width, mcs| {
        let scheduled = Scheduled { stations: 1, sig_b_mcs: 0 };
        let guard = GuardInterval::Ns800;
        mbps(Mode::he_mu(mcs, 1, width, ru, guard, HeLtf::Twice, scheduled).unwrap())
    };
    let table = [
        (Ru::Tones26, [0.88, 7.06, 8.82, 11.76, 14.71]),
        (Ru::Tones52, [1.76, 14.12, 17.65, 23.53, 29.41]),
        (Ru::Tones106, [3.75, 30.0, 37.5, 50.0, 62.5]),
        (Ru::Tones242, [8.6, 68.82, 86.03, 114.71, 143.38]),
        (Ru::Tones484, [17.21, 137.65, 172.06, 229.41, 286.76]),
        (Ru::Tones996, [36.03, 288.24, 360.29, 480.39, 600.49]),
    ];
    for (ru, expected) in table {
        let rates = [0, 5, 7, 9, 11].map(|mcs| unit(ru, Width::Mhz80, mcs));
        for (rate, expected) in rates.into_iter().zip(expected) {
            // N_DBPS is a whole number, which the published rates of 996 tones leave out.
            assert!((rate - expected).abs() < 0.055, "{ru} tones: {rate} for {expected}");
        }
    }
}

#[test]
fn trigger_based_preambles_are_48_microseconds() {
    let mode = |ru, octets| {
        let guard = GuardInterval::Ns1600;
        let mode = Mode::he_tb(7, 1, Width::Mhz20, ru, guard, HeLtf::Twice).unwrap();
        (micros(mode.preamble()), micros(mode.txtime(octets)))
    };
    // A QoS Null frame with a buffer status report.
    assert_eq!(mode(Ru::Tones106, 38), (48.0, 62.4));
    assert_eq!(mode(Ru::Tones52, 38), (48.0, 76.8));
}

#[test]
fn what_the_standard_does_not_have_is_refused() {
    let guard = GuardInterval::Ns800;
    let refused: Vec<SpecError> = [
        Mode::non_ht(11),
        Mode::ht(32, Width::Mhz20, guard),
        Mode::ht(7, Width::Mhz80, guard),
        Mode::ht(7, Width::Mhz20, GuardInterval::Ns1600),
        Mode::he_su(12, 1, Width::Mhz20, guard, HeLtf::Twice),
        Mode::he_su(5, 9, Width::Mhz20, guard, HeLtf::Twice),
        Mode::he_su(5, 1, Width::Mhz20, GuardInterval::Ns400, HeLtf::Twice),
        Mode::he_su(5, 1, Width::Mhz20, GuardInterval::Ns3200, HeLtf::Once),
        Mode::he_su(5, 1, Width::Mhz20, GuardInterval::Ns1600, HeLtf::Once),
        Mode::he_su(5, 1, Width::Mhz20, GuardInterval::Ns1600, HeLtf::FourTimes),
        Mode::he_su(5, 1, Width::Mhz20, GuardInterval::Ns3200, HeLtf::Twice),
        Mode::he_tb(5, 1, Width::Mhz20, Ru::Tones52, guard, HeLtf::Twice),
        Mode::he_tb(5, 1, Width::Mhz20, Ru::Tones484, GuardInterval::Ns1600, HeLtf::Twice),
    ]
    .into_iter()
    .map(|mode| mode.unwrap_err())
    .collect();
    assert!(refused.iter().all(|error| !error.allowed().is_empty()), "{refused:?}");
    assert!(Ru::equal_shares(Width::Mhz20, 10).is_err());
    assert!(Ru::equal_shares(Width::Mhz20, 0).is_err());
}

#[test]
fn equal_shares_are_the_largest_units_that_suffice() {
    let share = |width, stations| Ru::equal_shares(width, stations).unwrap();
    assert_eq!(share(Width::Mhz20, 1), Ru::Tones242);
    assert_eq!(share(Width::Mhz20, 3), Ru::Tones52);
    assert_eq!(share(Width::Mhz20, 9), Ru::Tones26);
    assert_eq!(share(Width::Mhz80, 4), Ru::Tones242);
    assert_eq!(share(Width::Mhz160, 2), Ru::Tones996);
}

#[test]
fn modes_are_read_as_they_are_printed() {
    for text in
        ["ofdm 54", "ht mcs 15 width 20MHz gi 0.4us", "he mcs 11 nss 2 width 80MHz gi 3.2us"]
    {
        let mode = Mode::parse(text).unwrap();
        assert_eq!(format!("{mode}"), text);
    }
    assert_eq!(Mode::parse("ht mcs 15 sgi").unwrap().rate().as_bps(), 144_444_444);
    let error = Mode::parse("he msc 3").unwrap_err();
    assert_eq!(error.nearest(), Some("mcs"));
}

fn any_mode() -> impl Strategy<Value = Mode> {
    (0u8..3, 0u8..32, 1u8..=8, 0usize..4, 0u8..4).prop_filter_map(
        "a combination of the standard",
        |(family, mcs, streams, width, guard)| {
            let width = Width::ALL[width];
            let guard = [
                GuardInterval::Ns400,
                GuardInterval::Ns800,
                GuardInterval::Ns1600,
                GuardInterval::Ns3200,
            ][usize::from(guard)];
            match family {
                0 => Mode::non_ht([6, 9, 12, 18, 24, 36, 48, 54][usize::from(mcs % 8)]).ok(),
                1 => Mode::ht(mcs, width, guard).ok(),
                _ => Mode::he_su(mcs, streams, width, guard, HeLtf::EightMicros).ok(),
            }
        },
    )
}

proptest! {
    #[test]
    fn the_largest_psdu_fits_and_one_octet_more_does_not(mode in any_mode(), limit in 100u64..5484) {
        let limit = Span::from_micros(limit);
        let octets = mode.largest_psdu(limit);
        if octets > 0 {
            prop_assert!(mode.txtime(octets) <= limit);
            prop_assert!(mode.txtime(octets + 1) > limit);
        }
    }

    #[test]
    fn longer_frames_never_take_less(mode in any_mode(), octets in 1u32..65_535) {
        prop_assert!(mode.txtime(octets) >= mode.txtime(octets - 1));
    }

    #[test]
    fn any_text_is_read_or_refused(text in "(ofdm|ht|he|mcs|nss|gi|width|sgi|[0-9]{1,3}|20MHz|0.8us| ){0,9}") {
        let _ = Mode::parse(&text);
    }
}

#[test]
fn dsss_frames_last_what_clause_15_says() {
    let time = |mbps, octets| Mode::dsss(mbps).unwrap().txtime(octets).as_micros();
    assert_eq!([time("1", 14), time("1", 1536)], [304, 12_480]);
    assert_eq!([time("2", 14), time("2", 1536)], [248, 6336]);
    // 14 octets are 20.4 and 10.2 µs, which are rounded up (section 16.3.4).
    assert_eq!([time("5.5", 14), time("5.5", 1536), time("5.5", 0)], [213, 2427, 192]);
    assert_eq!([time("11", 14), time("11", 1536), time("11", 1)], [203, 1310, 193]);
    assert_eq!(Mode::dsss("5.5").unwrap().rate().as_bps(), 5_500_000);
    for mbps in ["1", "2", "5.5", "11"] {
        let (mode, written) = (Mode::dsss(mbps).unwrap(), format!("dsss {mbps}"));
        assert_eq!((Mode::parse(&written), mode.to_string()), (Ok(mode), written));
        let most = mode.largest_psdu(Span::from_micros(1000));
        assert!(mode.txtime(most) <= Span::from_micros(1000), "{mbps}");
        assert!(mode.txtime(most + 1) > Span::from_micros(1000), "{mbps}");
    }
    let error = Mode::parse("dsss 3").unwrap_err().to_string();
    assert!(error.contains("5.5"), "{error}");
    assert!(Mode::parse("dsss 11 12").is_err() && Mode::parse("dsss").is_err());
}

/// The durations that ns-3's `wifi-tx-duration` test holds for each format, as far as the reference of this project does
/// not have them. With a short guard interval the standard's are those of whole symbols of 4 µs (section 19.4.3).
#[test]
fn published_durations_of_every_format() {
    let sizes = |mode: Mode| [1536, 76, 14].map(|octets| micros(mode.txtime(octets)));
    for (mode, expected) in [
        ("dsss 11", [1310.0, 248.0, 203.0]),
        ("ofdm 54", [248.0, 32.0, 24.0]),
        ("ht mcs 7", [228.0, 48.0, 40.0]),
        ("ht mcs 7 width 40MHz", [128.0, 44.0, 40.0]),
        // Without the last whole symbol 1742.4, 126 and 57.6; 226.8, 46.8 and 39.6; 118.8, 43.2 and 39.6.
        ("ht mcs 0 sgi", [1744.0, 128.0, 60.0]),
        ("ht mcs 6 sgi", [228.0, 48.0, 40.0]),
        ("ht mcs 7 width 40MHz sgi", [120.0, 44.0, 40.0]),
    ] {
        assert_eq!(sizes(Mode::parse(mode).unwrap()), expected, "{mode}");
    }
    let widths = [Width::Mhz20, Width::Mhz40, Width::Mhz80, Width::Mhz160];
    let table = [
        (0, GuardInterval::Ns1600, [1570.4, 807.2, 418.4, 231.2], [130.4, 87.2, 72.8, 58.4]),
        (0, GuardInterval::Ns3200, [1740.0, 892.0, 460.0, 252.0], [140.0, 92.0, 76.0, 60.0]),
        (11, GuardInterval::Ns1600, [144.8, 101.6, 72.8, 58.4], [58.4; 4]),
        (11, GuardInterval::Ns3200, [156.0, 108.0, 76.0, 60.0], [60.0; 4]),
    ];
    for (mcs, guard, long, short) in table {
        for ((width, long), short) in widths.into_iter().zip(long).zip(short) {
            let [first, second, _] = sizes(he(mcs, width, guard));
            assert_eq!([first, second], [long, short], "HE MCS {mcs}, {width}, {guard:?}");
        }
    }
    // Table 18-2 of 802.11-2007, example of LENGTH calculations for CCK, behind 192 µs; and 5.5, 2 and 1 Mbit/s.
    for (mode, expected) in [
        ("dsss 11", [744, 745, 746, 747]),
        ("dsss 5.5", [1488, 1490, 1491, 1493]),
        ("dsss 2", [4092, 4096, 4100, 4104]),
        ("dsss 1", [8184, 8192, 8200, 8208]),
    ] {
        let mode = Mode::parse(mode).unwrap();
        let times = [1023, 1024, 1025, 1026].map(|octets| mode.txtime(octets).as_micros() - 192);
        assert_eq!(times, expected, "{mode}");
    }
}

/// PHY headers and HE-SIG-B of ns-3's `wifi-devices-tx-duration`. Its last case of HE-SIG-B, four users in one content channel
/// and seven in the other, can't be told here: users are in both alike, as an access point can place them.
#[test]
fn published_preambles_of_every_format() {
    let front = |text: &str| micros(Mode::parse(text).unwrap().preamble());
    assert_eq!([front("dsss 1"), front("dsss 11"), front("ofdm 12")], [192.0, 192.0, 20.0]);
    // Two streams; three of HT have four training symbols (ns-3 adds one for an extension stream).
    assert_eq!(
        [front("ht mcs 14"), front("ht mcs 22"), front("he mcs 9 nss 2")],
        [40.0, 48.0, 52.0]
    );
    let (guard, ltf) = (GuardInterval::Ns3200, HeLtf::EightMicros);
    let asked = Mode::he_tb(9, 2, Width::Mhz20, Ru::Tones106, guard, ltf).unwrap();
    let sent = |width, ru, scheduled, streams| {
        micros(Mode::he_mu(9, streams, width, ru, guard, ltf, scheduled).unwrap().preamble())
    };
    let of = |stations, sig_b_mcs| Scheduled { stations, sig_b_mcs };
    assert_eq!(micros(asked.preamble()), 56.0);
    assert_eq!(sent(Width::Mhz20, Ru::Tones106, of(2, 4), 2), 56.0);
    // HE-SIG-B beside 44 µs of a PPDU without it.
    for (width, ru, stations, mcs, expected) in [
        (Width::Mhz20, Ru::Tones106, 2, 5, 4.0),
        (Width::Mhz40, Ru::Tones52, 6, 4, 4.0),
        (Width::Mhz40, Ru::Tones26, 7, 3, 8.0),
        (Width::Mhz80, Ru::Tones52, 9, 1, 16.0),
    ] {
        let sig_b = sent(width, ru, of(stations, mcs), 1) - 44.0;
        assert_eq!(sig_b, expected, "{stations} stations in {width}, MCS {mcs}");
    }
}

/// Durations of INET's test of HT guard intervals (`Ieee80211HtGuardInterval_1`) and of MATLAB's WLAN Toolbox (`transmitTime`
/// of an HE SU PPDU of 100 octets).
#[test]
fn published_durations_of_short_frames() {
    for (mode, octets, expected) in [
        ("ht mcs 0", 24, 36.0 + 36.0),
        ("ht mcs 0", 30, 36.0 + 44.0),
        ("ht mcs 0 sgi", 24, 36.0 + 36.0),
        ("ht mcs 0 sgi", 27, 36.0 + 36.0),
        ("ht mcs 0 sgi", 30, 36.0 + 40.0),
        ("ht mcs 8 sgi", 24, 60.0),
        ("ht mcs 0 width 40MHz sgi", 24, 52.0),
        ("ht mcs 15", 24, 44.0),
        ("ht mcs 15 sgi", 24, 44.0),
        ("he mcs 0 width 40MHz gi 3.2us ltf 4x", 100, 116.0),
    ] {
        assert_eq!(micros(Mode::parse(mode).unwrap().txtime(octets)), expected, "{mode}, {octets}");
    }
}

/// Each format has combinations of its own (sections 27.3.11.7.2 and 9.3.1.22).
#[test]
fn training_and_guard_intervals_are_those_of_the_format() {
    use GuardInterval::{Ns800, Ns1600, Ns3200};
    let (width, ru) = (Width::Mhz20, Ru::Tones106);
    let scheduled = Scheduled { stations: 2, sig_b_mcs: 0 };
    let all = [HeLtf::Once, HeLtf::Twice, HeLtf::FourTimes]
        .into_iter()
        .flat_map(|ltf| [Ns800, Ns1600, Ns3200].map(|guard| (ltf, guard)));
    let those = |is_there: &dyn Fn(HeLtf, GuardInterval) -> bool| -> Vec<_> {
        all.clone().filter(|(ltf, guard)| is_there(*ltf, *guard)).collect()
    };
    let once = |guard| (HeLtf::Once, guard);
    let twice = |guard| (HeLtf::Twice, guard);
    let four = |guard| (HeLtf::FourTimes, guard);
    assert_eq!(
        those(&|ltf, guard| Mode::he_su(0, 1, width, guard, ltf).is_ok()),
        [once(Ns800), twice(Ns800), twice(Ns1600), four(Ns800), four(Ns3200)]
    );
    assert_eq!(
        those(&|ltf, guard| Mode::he_mu(0, 1, width, ru, guard, ltf, scheduled).is_ok()),
        [twice(Ns800), twice(Ns1600), four(Ns800), four(Ns3200)]
    );
    assert_eq!(
        those(&|ltf, guard| Mode::he_tb(0, 1, width, ru, guard, ltf).is_ok()),
        [once(Ns1600), twice(Ns1600), four(Ns3200)]
    );
    for wrong in
        ["he mcs 7 gi 3.2us ltf 8us", "he mcs 7 gi 1.6us ltf 1x", "he mcs 7 gi 3.2us ltf 2x"]
    {
        let error = Mode::parse(wrong).unwrap_err();
        assert!(alloc::format!("{error}").contains("1x with 0.8us"), "{wrong}: {error}");
    }
    for right in ["he mcs 7 gi 1.6us ltf 8us", "he mcs 7 gi 3.2us", "he mcs 7 ltf 1x"] {
        Mode::parse(right).unwrap();
    }
}
