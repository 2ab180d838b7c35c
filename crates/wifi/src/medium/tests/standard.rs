//! Cases that the standard decides, one by one.

use core::num::NonZeroU8;

use super::*;

fn ht(mcs: u8) -> Mode {
    Mode::ht(mcs, Width::Mhz20, GuardInterval::Ns800).unwrap()
}

fn offer(medium: &mut Medium<Numbered>, now: Time, port: Port, packets: u64, ip_len: u32) {
    for number in 0..packets {
        let packet = Numbered { number, ip_len, dscp: 0, flow: 0 };
        medium.offer(now, port, &packet, &mut Drops::default());
    }
}

/// The next event, and what comes out.
fn step(medium: &mut Medium<Numbered>) {
    let now = medium.next_wake();
    medium.on_wake(now, &mut Drops::default());
    while medium.poll_deliver(now).is_some() {}
}

fn run_out(medium: &mut Medium<Numbered>) {
    while !medium.next_wake().is_never() {
        step(medium);
    }
    check_air(medium);
}

/// Frames of the first PPDU that a station is sent in a cell of 802.11ax.
fn first_aggregate(mode: Mode, ip_len: u32) -> u64 {
    let mut config = cell(mode, 1, Limits::HE);
    config.queue = DriverConfig { limit: 1000, ..QUEUE }.into();
    let mut medium = Medium::new(config, ADDRESS, 1).unwrap();
    offer(&mut medium, Time::ZERO, Port::down(0), 500, ip_len);
    step(&mut medium);
    let counts = medium.counts(Port::down(0));
    assert_eq!(counts.ppdus, 1);
    counts.mpdus
}

/// Sections 9.4.1.13 and 10.25.2, and aPSDUMaxLength of tables 19-25 and 27-54.
#[test]
fn block_ack_windows_and_psdus_are_bounded_by_the_format_of_each_station() {
    let he = Mode::he_su(11, 2, Width::Mhz80, GuardInterval::Ns800, HeLtf::EightMicros).unwrap();
    assert_eq!(first_aggregate(ht(7), 40), 64);
    assert_eq!(first_aggregate(he, 40), 256);
    // 42 · 1544 octets are below 65 535, 43 above.
    assert_eq!(first_aggregate(ht(15), 1500), 42);
    assert_eq!(first_aggregate(he, 1500), 256);
    assert_eq!(first_aggregate(Mode::non_ht(54).unwrap(), 1500), 1);
}

/// Behind a pfifo of 1000 packets a station fills the window of its format; ath9k's buffer is below two aggregates of 64.
#[test]
fn a_station_sends_as_much_at_once_as_its_window_holds() {
    let he = |mcs, nss, width| {
        Mode::he_su(mcs, nss, width, GuardInterval::Ns800, HeLtf::EightMicros).unwrap()
    };
    let cases = [
        (he(11, 2, Width::Mhz80), 256, 512),
        // 38 whole packets take 5.4 ms, and these are small.
        (he(7, 1, Width::Mhz20), 123, 123),
        (ht(7), 64, 123),
    ];
    for (mode, window, limit) in cases {
        let upper = sojourn_qdisc::Config::parse("pfifo limit 1000").unwrap();
        let mut config = cell(mode, 1, Limits::HE);
        config.stations[0].queue = DriverConfig::of_station(&mode, upper);
        assert_eq!(config.stations[0].queue.limit, limit);
        let mut medium = Medium::new(config, ADDRESS, 1).unwrap();
        offer(&mut medium, Time::ZERO, Port::up(0), 900, 40);
        // The first packet finds the medium idle, and is not alone since AIFS passes first.
        step(&mut medium);
        assert_eq!(medium.counts(Port::up(0)).mpdus, window);
    }
}

/// Section 10.11: an MPDU in an A-MPDU of HT has at most 4095 octets, in HE 11 454.
#[test]
fn an_a_msdu_too_long_for_a_station_is_refused() {
    let he = Mode::he_su(11, 2, Width::Mhz80, GuardInterval::Ns800, HeLtf::EightMicros).unwrap();
    let with = |mode, amsdu_octets| cell(mode, 1, Limits { amsdu_octets, ..Limits::HE }).check();
    assert!(with(ht(7), 4065).is_ok() && with(he, 11_398).is_ok());
    let error = with(ht(7), 7935).unwrap_err();
    assert!(error.problem().contains("A-MSDU of 7935 octets"), "{}", error.problem());
    assert!(with(he, 11_399).is_err());
}

/// Table 9-25: outside an A-MPDU an A-MSDU of HT has at most 7935 octets, five packets of 1508 octets with 14 and padding.
#[test]
fn an_a_msdu_outside_an_a_mpdu_is_as_long_as_ht_allows() {
    let with = |amsdu_octets| cell(ht(7), 1, Limits { amsdu_octets, ..Limits::NONE });
    assert!(with(7936).check().is_err());
    let mut medium = Medium::new(with(7935), ADDRESS, 1).unwrap();
    offer(&mut medium, Time::ZERO, Port::down(0), 7, 1500);
    run_out(&mut medium);
    let counts = medium.counts(Port::down(0));
    assert_eq!((counts.delivered, counts.mpdus, counts.ppdus), (7, 2, 2));
    assert_eq!(medium.air().ack, Span::from_micros(28 + 28));
}

/// Section 10.23.2.2: a frame is given up after as many attempts as the retry limit says.
#[test]
fn a_frame_is_tried_as_often_as_the_retry_limit_says() {
    for (limits, retry_limit) in
        [(Limits::NONE, 7), (Limits::HT, 7), (Limits::HT, 3), (Limits::HT, 255)]
    {
        let mut config = cell(ht(7), 1, limits);
        config.retry_limit = NonZeroU8::new(retry_limit);
        config.stations[0].up.error = 0.999_999;
        let mut medium = Medium::new(config, ADDRESS, 1).unwrap();
        offer(&mut medium, Time::ZERO, Port::up(0), 1, 1500);
        run_out(&mut medium);
        let counts = medium.counts(Port::up(0));
        assert_eq!((counts.attempts, counts.discarded), (u64::from(retry_limit), 1));
    }
}

/// Section 10.3.2.7: RTS, CTS, data and BlockAck with a SIFS between each; at 24 Mbit/s 28, 28 and 32 µs.
#[test]
fn rts_and_cts_come_before_a_psdu_above_the_threshold() {
    let of = |threshold| {
        let mut config = cell(ht(7), 1, Limits::HT);
        config.rts_threshold = threshold;
        let mut medium = Medium::new(config, ADDRESS, 1).unwrap();
        offer(&mut medium, Time::ZERO, Port::up(0), 2, 1500);
        run_out(&mut medium);
        medium.air().exchanges
    };
    let octets = 1544 + 1542;
    let plain = ht(7).txtime(octets) + Span::from_micros(16 + 32);
    assert_eq!(of(octets), plain);
    assert_eq!(of(octets - 1), plain + Span::from_micros(28 + 16 + 28 + 16));
}

/// Section 10.27: with stations that can't read 802.11n in the cell, an RTS and a CTS that they can read go before
/// it, whatever the threshold; by clause 16 they last 192 µs and 20 and 14 octets at 11 Mbit/s.
#[test]
fn frames_that_older_stations_cannot_read_are_protected() {
    let of = |mode, protection: &str| {
        let mut config = cell(mode, 1, Limits::HT);
        config.protection = Some(Mode::parse(protection).unwrap());
        let mut medium = Medium::new(config, ADDRESS, 1).unwrap();
        offer(&mut medium, Time::ZERO, Port::up(0), 2, 1500);
        run_out(&mut medium);
        medium.air().exchanges
    };
    let plain = ht(7).txtime(1544 + 1542) + Span::from_micros(16 + 32);
    assert_eq!(of(ht(7), "ofdm 6"), plain + Span::from_micros(52 + 16 + 44 + 16));
    assert_eq!(of(ht(7), "dsss 11"), plain + Span::from_micros(192 + 15 + 16 + 192 + 11 + 16));
    // What older stations send is understood as it is.
    let old = Mode::non_ht(54).unwrap();
    let one = old.txtime(1538) + Span::from_micros(16 + 28);
    assert_eq!(of(old, "dsss 11"), one + one);
    let refused = |config: Config| config.check().unwrap_err().to_string();
    let mut config = cell(ht(7), 1, Limits::HT);
    config.protection = Some(ht(7));
    assert!(refused(config).contains("older stations"));
}

/// Section 10.23.2.9: what a TXOP holder sends ends within the limit, RTS and CTS included.
#[test]
fn a_txop_ends_within_its_limit() {
    for (mcs, rts_threshold) in [(7, u32::MAX), (7, 0), (3, 0), (3, u32::MAX)] {
        for limit in [1504, 2080, 2528, 4096].map(Span::from_micros) {
            let mut config = cell(ht(mcs), 1, Limits::HT);
            config.rts_threshold = rts_threshold;
            config.station[1].txop_limit = limit;
            config.stations[0].queue.limit = 100;
            let mut medium = Medium::new(config, ADDRESS, 1).unwrap();
            offer(&mut medium, Time::ZERO, Port::up(0), 100, 1500);
            // AIFS, then the TXOP; its holder backs off by AIFS at least before the next one.
            let begins = medium.next_wake();
            step(&mut medium);
            while medium.txop.is_some() {
                step(&mut medium);
            }
            let used = medium.counted_until().since(begins);
            let more = ht(mcs).txtime(1538) + Span::from_micros(16 + 28);
            assert!(used <= limit, "MCS {mcs}, RTS above {rts_threshold}: {used} of {limit}");
            assert!(used + more + more > limit, "MCS {mcs}: {used} of {limit}");
        }
    }
}

/// How long the medium is idle after a frame of the first station that the access point could not read, before
/// what is offered at `at` is sent; DIFS is 34 µs, and the frame takes 248 µs after the first one.
fn idle_after_a_lost_frame(port: Port, at: u64) -> u64 {
    let mut config = ofdm(54, 2);
    config.access_point = [Parameters::DCF; CATEGORIES];
    config.retry_limit = NonZeroU8::new(1);
    config.stations[0].up.error = 0.999_999;
    let mut medium = Medium::new(config, ADDRESS, 1).unwrap();
    offer(&mut medium, Time::ZERO, Port::up(0), 1, 1500);
    let at = Time::from_nanos(1000 * at);
    while medium.next_wake() < at {
        step(&mut medium);
    }
    offer(&mut medium, at, port, 1, 1500);
    run_out(&mut medium);
    assert_eq!(medium.counts(port).delivered, 1);
    (medium.air().idle - Span::from_micros(34)).as_micros()
}

/// Sections 10.3.2.3.7 and 10.3.2.4: the recipient waits for EIFS, which is SIFS, an Ack at 6 Mbit/s and DIFS; the others
/// have read that SIFS and an Ack at 24 Mbit/s follow. Whole slots of 9 µs follow.
#[test]
fn after_a_frame_that_was_not_read_its_recipient_waits_for_eifs_and_others_for_their_nav() {
    let (eifs, nav) = (16 + 44 + 34, 16 + 28 + 34);
    for (port, least) in [(Port::down(1), eifs), (Port::up(1), nav)] {
        // While the frame is on the air, and 5 µs after it.
        for at in [100, 34 + 248 + 5] {
            let idle = idle_after_a_lost_frame(port, at);
            assert!(idle >= least && (idle - least).is_multiple_of(9), "{idle} µs for {least}");
        }
    }
}

/// Sections 10.3.2.11 and 10.23.2.4, item c: a frame to which no Ack comes is followed by AckTimeout (SIFS, a slot and
/// aRxPHYStartDelay: 20 µs, and 192 µs where the Ack would have the long preamble of DSSS) and
/// then by the interframe space of whichever function of the station sends next.
#[test]
fn every_function_of_a_station_counts_its_interframe_space_from_the_timeout() {
    for (mode, delay) in [(ht(7), 20), (Mode::dsss("11").unwrap(), 192)] {
        for (dscp, ifs) in [(0, 43), (46, 34)] {
            let mut config = cell(mode, 1, Limits::NONE);
            config.retry_limit = NonZeroU8::new(1);
            config.stations[0].up.error = 0.999_999;
            let mut medium = Medium::new(config, ADDRESS, 1).unwrap();
            offer(&mut medium, Time::ZERO, Port::up(0), 1, 1500);
            step(&mut medium);
            let packet = Numbered { number: 1, ip_len: 1500, dscp, flow: 0 };
            let now = medium.counted_until() - Span::from_micros(1);
            medium.offer(now, Port::up(0), &packet, &mut Drops::default());
            run_out(&mut medium);
            assert_eq!(medium.counts(Port::up(0)).discarded, 2);
            let idle = (medium.air().idle - Span::from_micros(43)).as_micros();
            let least = 16 + 9 + delay + ifs;
            assert!(idle >= least && (idle - least).is_multiple_of(9), "{idle} µs for {least}");
        }
    }
}

/// Two stations whose RTS at 11 Mbit/s collide wait CTSTimeout, with 192 µs for the preamble of a CTS; those at 6 Mbit/s 20 µs.
#[test]
fn a_cts_of_dsss_is_waited_for_as_long_as_its_preamble_lasts() {
    for (protection, delay) in [("ofdm 6", 20), ("dsss 11", 192)] {
        let mut config = cell(ht(7), 2, Limits::HT);
        config.protection = Some(Mode::parse(protection).unwrap());
        config.retry_limit = NonZeroU8::new(1);
        let mut medium = Medium::new(config, ADDRESS, 1).unwrap();
        for station in 0..2 {
            offer(&mut medium, Time::ZERO, Port::up(station), 1, 1500);
        }
        step(&mut medium);
        assert_eq!(medium.air().collided, 2);
        let timeout = Span::from_micros(16 + 9 + delay);
        assert!(medium.timeouts[1..].iter().all(|at| *at == medium.counted_until() + timeout));
    }
}

/// Sections 9.2.5.2 and 10.23.2.9. A frame of 1538 octets at MCS 7 and its Ack take 300 µs, a CF-End with its space 68 µs. What
/// is left of the TXOP stays reserved for the other station where that is too short for it, and not for the access point.
#[test]
fn a_txop_without_time_for_a_cf_end_stays_reserved() {
    let mut whole = Span::ZERO;
    let mut second_after = |cf_end: bool, left: u64, second: Port| {
        let mut config = cell(ht(7), 2, Limits::HT);
        config.station = [Parameters::new(0, 0, 3); CATEGORIES];
        config.access_point = config.station;
        config.cf_end = cf_end;
        if !whole.is_zero() {
            config.station[1].txop_limit = whole + Span::from_micros(left);
            config.access_point[1].txop_limit = config.station[1].txop_limit;
        }
        let mut medium = Medium::new(config, ADDRESS, 1).unwrap();
        offer(&mut medium, Time::ZERO, Port::up(0), 1, 1500);
        step(&mut medium);
        if whole.is_zero() {
            whole = medium.air().exchanges;
        }
        let idle = medium.air().idle;
        offer(&mut medium, Time::ZERO + Span::from_micros(100), second, 1, 1500);
        run_out(&mut medium);
        (medium.air().idle - idle).as_micros()
    };
    assert_eq!(second_after(true, 0, Port::up(1)), 43);
    assert_eq!(second_after(false, 50, Port::up(1)), 43);
    assert_eq!(second_after(true, 50, Port::up(1)), 50 + 43);
    assert_eq!(second_after(true, 50, Port::down(1)), 43);
    // 16 µs before the CF-End, and then all are free.
    assert_eq!(second_after(true, 80, Port::up(1)), 43);
}
