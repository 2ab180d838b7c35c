//! Downlink and uplink OFDMA on the air: durations by hand, random access against its fixed point,
//! and what must hold in every cell.

use sojourn_core::{Params, Words};
use sojourn_model::uora::Uora;

use super::*;
use crate::ofdma::Ofdma;

/// Stations of MCS 5 with a guard interval of 1.6 µs in 20 MHz, who leave the medium to the access
/// point as far as EDCA can.
fn cell_with(ofdma: &str, stations: usize) -> Config {
    let width = Width::Mhz20;
    let mode = Mode::he_su(5, 1, width, GuardInterval::Ns1600, HeLtf::EightMicros).unwrap();
    let mut config = cell(mode, stations, Limits::HE);
    config.queue = DriverConfig { limit: 1000, ..QUEUE }.into();
    config.station = [Parameters::new(32_767, 32_767, 15); CATEGORIES];
    config.ofdma = Some(Ofdma::parse(&mut Words::new(ofdma)).unwrap());
    config
}

fn offer(medium: &mut Medium<Numbered>, port: Port, packets: u64) {
    for number in 0..packets {
        let packet = Numbered { number, ip_len: 1500, dscp: 0, flow: 0 };
        medium.offer(Time::ZERO, port, &packet, &mut Drops::default());
    }
}

/// Until nobody has anything to send; how often it was woken.
fn run_out(medium: &mut Medium<Numbered>) -> u32 {
    let mut wakes = 0;
    while !medium.next_wake().is_never() {
        let now = medium.next_wake();
        medium.on_wake(now, &mut Drops::default());
        wakes += 1;
        while medium.poll_deliver(now).is_some() {}
    }
    check_air(medium);
    wakes
}

/// In tenths of microseconds, of which symbols are whole multiples.
fn tenths(span: Span) -> u64 {
    assert_eq!(span.as_nanos() % 100, 0);
    span.as_nanos() / 100
}

/// Five packets for each of four stations, acknowledged so.
fn five_for_each_of_four(acknowledgement: &str) -> Medium<Numbered> {
    let config = cell_with(&format!("uplink off {acknowledgement}"), 4);
    let mut medium = Medium::new(config, ADDRESS, 1).unwrap();
    for station in 0..4 {
        offer(&mut medium, Port::down(station), 5);
    }
    medium
}

/// Five packets for each of four stations, on 52 tones each: 8 · 7718 + 22 bits in symbols of 192
/// bits and 14.4 µs are 322; the preamble is 20 + 4 + 8 + 4 + 4 + 8 µs, as HE-SIG-B of MCS 5 has 18 + 2 · 52
/// bits in a symbol of 208.
#[test]
fn a_downlink_ppdu_for_four_stations_lasts_what_its_fields_say() {
    let of = |acknowledgement: &str| {
        let mut medium = five_for_each_of_four(acknowledgement);
        assert_eq!(run_out(&mut medium), 2);
        let air = medium.air();
        assert_eq!(tenths(air.idle), 430);
        let parts = [air.data, air.block_ack, air.block_ack_req, air.trigger, air.exchanges];
        parts.map(tenths)
    };
    // BlockAcks of 56 octets and requests of 24 at 24 Mbit/s: 40 and 32 µs.
    let in_turn = 46_848 + 160 + 400 + 3 * (160 + 320 + 160 + 400);
    assert_eq!(of("in-turn"), [46_848, 1600, 960, 0, in_turn]);
    // A Trigger of 64 octets; a BlockAck on 52 tones is 8 · 60 + 22 bits in three symbols after 48 µs.
    assert_eq!(of("mu-bar"), [46_848, 912, 0, 440, 46_848 + 160 + 440 + 160 + 912]);
    // 4 + 37 octets more after 7720 are 324 symbols.
    assert_eq!(of("aggregated"), [47_136, 912, 0, 0, 47_136 + 160 + 912]);
}

/// The MU-BAR in each PSDU takes room and time, and is counted with no data frames.
#[test]
fn a_trigger_frame_in_a_psdu_is_no_data_frame() {
    let counts = |acknowledgement: &str| {
        let mut medium = five_for_each_of_four(acknowledgement);
        run_out(&mut medium);
        let of = |station| medium.counts(Port::down(station));
        (0..4).map(|station| (of(station).mpdus, of(station).failed)).collect::<Vec<_>>()
    };
    assert_eq!(counts("aggregated"), [(5, 0); 4]);
    assert_eq!(counts("aggregated"), counts("mu-bar"));
}

/// One HE-LTF for all, the longest that a station asks for; beside 4x a guard interval of 1.6 µs becomes 3.2 µs. The first frame
/// of the others is 48 µs and 322 symbols of 14.4 µs.
#[test]
fn a_downlink_ppdu_has_the_longest_training_of_its_stations() {
    let data = |modes: [&str; 4]| {
        let mut config = cell_with("uplink off in-turn", 4);
        for (station, mode) in config.stations.iter_mut().zip(modes) {
            station.down.mode = Mode::parse(mode).unwrap();
        }
        let mut medium = Medium::new(config, ADDRESS, 1).unwrap();
        for station in 0..4 {
            offer(&mut medium, Port::down(station), 5);
        }
        run_out(&mut medium);
        tenths(medium.air().data)
    };
    let (plain, long) = ("he mcs 5 gi 1.6us", "he mcs 5 gi 3.2us");
    assert_eq!(data([plain; 4]), 400 + 80 + 322 * 144);
    assert_eq!(data([plain, plain, long, plain]), 400 + 160 + 322 * 160);
    assert_eq!(data(["he mcs 5 ltf 4x", plain, plain, plain]), 400 + 160 + 322 * 160);
    let short = "he mcs 5";
    assert_eq!(data(["he mcs 5 ltf 4x", short, short, short]), 400 + 136 + 322 * 136);
    assert_eq!(data([short; 4]), 400 + 80 + 322 * 136);
    assert_eq!(data(["he mcs 5 ltf 2x"; 4]), 400 + 72 + 322 * 136);
    // Once the basic length is for one station only.
    assert_eq!(data(["he mcs 5 ltf 1x"; 4]), 400 + 72 + 322 * 136);
    assert_eq!(data(["he mcs 5 ltf 2x", plain, plain, plain]), 400 + 80 + 322 * 144);
}

/// Three stations: the one whose turn is first, the second, has 106 tones, whose symbols have 408 bits, so that its ten packets of 15438 octets take
/// 303 of them; the others have 52 tones and five packets in 322. HE-SIG-B has 18 + 3 · 21 + 2 · 10 bits.
#[test]
fn units_of_two_sizes_serve_three_stations_at_once() {
    let offered = [5, 10, 5];
    let of = |sizes: &str| {
        let text = format!("uplink off in-turn {sizes}");
        let mut medium = Medium::new(cell_with(&text, 3), ADDRESS, 1).unwrap();
        for (station, packets) in (0..).zip(offered) {
            offer(&mut medium, Port::down(station), packets);
        }
        (run_out(&mut medium), medium)
    };
    let (wakes, medium) = of("mixed-units");
    assert_eq!((wakes, tenths(medium.air().data)), (2, 480 + 322 * 144));
    let delivered = [0, 1, 2].map(|station| medium.counts(Port::down(station)).delivered);
    assert_eq!(delivered, offered);
    // With two equal ones the third waits for another exchange.
    assert!(of("equal-units").0 > 2);
}

/// A Trigger of 48 octets at 24 Mbit/s takes 40 µs, and the CTS of all at 6 Mbit/s 44 µs.
#[test]
fn an_mu_rts_and_the_cts_of_all_come_before_what_they_protect() {
    let mut medium = Medium::new(cell_with("uplink off mu_rts on", 4), ADDRESS, 1).unwrap();
    for station in 0..4 {
        offer(&mut medium, Port::down(station), 5);
    }
    assert_eq!(run_out(&mut medium), 2);
    let air = medium.air();
    let protection = 400 + 160 + 440 + 160;
    assert_eq!([air.rts, air.cts, air.data].map(tenths), [400, 440, 46_848]);
    assert_eq!(tenths(air.exchanges), protection + 46_848 + 160 + 440 + 160 + 912);
    let mut medium = Medium::new(cell_with("mu_rts on", 4), ADDRESS, 1).unwrap();
    for station in 0..4 {
        offer(&mut medium, Port::up(station), 3);
    }
    run_out(&mut medium);
    let whole = 400 + 160 + 768 + 160 + 400 + 160 + 480 + 203 * 144 + 160 + 800;
    assert_eq!(tenths(medium.air().exchanges), protection + whole);
}

/// Two functions with the smallest windows collide often; with an MU-RTS only that is lost.
#[test]
fn collisions_cost_an_mu_rts_and_not_what_it_protects() {
    let collisions = |mu_rts: &str| {
        let mut config = cell_with(&format!("uplink off mu_rts {mu_rts}"), 4);
        config.access_point = [Parameters::new(3, 3, 2); CATEGORIES];
        config.station = config.access_point;
        let mut medium = Medium::new(config, ADDRESS, 1).unwrap();
        for station in 0..4 {
            offer(&mut medium, Port::down(station), 30);
            offer(&mut medium, Port::up(station), 9);
        }
        run_out(&mut medium);
        let air = medium.air();
        assert!(air.collided > 4, "{air:?}");
        (air.collisions, air.data)
    };
    let (with, without) = (collisions("on"), collisions("off"));
    assert!(with.1 < without.1, "{with:?} {without:?}");
}

#[test]
fn shorter_psdus_are_padded_to_the_longest() {
    let mut medium = Medium::new(cell_with("uplink off in-turn", 4), ADDRESS, 1).unwrap();
    for station in 0..4 {
        offer(&mut medium, Port::down(station), 1 + u64::from(station));
    }
    run_out(&mut medium);
    // Four packets: 3 · 1544 + 1542 octets, 258 symbols.
    assert_eq!(tenths(medium.air().data), 480 + 258 * 144);
    let delivered = [0, 1, 2, 3].map(|station| medium.counts(Port::down(station)).delivered);
    assert_eq!(delivered, [1, 2, 3, 4]);
}

/// BSRP 40, reports 76.8, Basic Trigger 40, and three packets from each station: 4630 octets are
/// reported as 19 · 256, which take 203 symbols; a Multi-STA BlockAck of 166 octets takes 80 µs.
#[test]
fn an_uplink_exchange_of_four_stations_lasts_what_its_fields_say() {
    let mut medium = Medium::new(cell_with("", 4), ADDRESS, 1).unwrap();
    for station in 0..4 {
        offer(&mut medium, Port::up(station), 3);
    }
    run_out(&mut medium);
    let air = medium.air();
    let data = 480 + 203 * 144;
    let parts = [air.trigger, air.data, air.block_ack, air.exchanges].map(tenths);
    let whole = 400 + 160 + 768 + 160 + 400 + 160 + data + 160 + 800;
    assert_eq!(parts, [1568, data, 800, whole]);
    let delivered = [0, 1, 2, 3].map(|station| medium.counts(Port::up(station)).delivered);
    assert_eq!(delivered, [3; 4]);
}

/// The same with a Multi-STA BlockAck of 30 octets, 32 µs, and with Trigger frames of 48 and 52 octets at 6 Mbit/s, 88 and 96 µs.
#[test]
fn stations_are_acknowledged_without_bitmaps_and_triggered_slowly_if_asked_for() {
    for (ofdma, triggers, block_ack) in [("all_ack on", 800, 320), ("slow_triggers on", 1840, 800)]
    {
        let mut medium = Medium::new(cell_with(ofdma, 4), ADDRESS, 1).unwrap();
        for station in 0..4 {
            offer(&mut medium, Port::up(station), 3);
        }
        run_out(&mut medium);
        let air = medium.air();
        let parts = [air.trigger, air.block_ack].map(tenths);
        assert_eq!(parts, [triggers + 768, block_ack], "{ofdma}");
    }
}

/// Three frames of one station among four, 4630 octets reported as 19 · 256, take 42 symbols of 936 bits on the whole channel.
#[test]
fn after_reports_the_channel_is_shared_by_those_that_have_something() {
    let mut medium = Medium::new(cell_with("", 4), ADDRESS, 1).unwrap();
    offer(&mut medium, Port::up(2), 3);
    run_out(&mut medium);
    assert_eq!(tenths(medium.air().data), 480 + 42 * 144);
}

/// Packets of one station that come now and then find an idle medium: it sends them at once, and nobody with it.
#[test]
fn an_access_point_asks_when_its_interval_is_over_and_for_no_packet() {
    for poll in ["on", "off"] {
        polls_of_an_idle_cell(poll);
    }
}

fn polls_of_an_idle_cell(poll: &str) {
    let mut config = cell_with(&format!("downlink off poll {poll} interval 5ms"), 2);
    config.station = Parameters::EDCA;
    let mut medium = Medium::new(config, ADDRESS, 1).unwrap();
    let mut drops = Drops::default();
    for number in 0..100 {
        let now = Time::ZERO + Span::from_micros(10_000 * number + 2000);
        while medium.next_wake() < now {
            let now = medium.next_wake();
            medium.on_wake(now, &mut drops);
            while medium.poll_deliver(now).is_some() {}
        }
        let packet = Numbered { number, ip_len: 300, dscp: 0, flow: 0 };
        medium.offer(now, Port::up(0), &packet, &mut drops);
    }
    check_air(&medium);
    let air = medium.air();
    assert_eq!((air.attempts, air.collided), (99, 0), "{poll}");
    if poll == "off" {
        assert!(air.trigger.is_zero());
        return;
    }
    // A BSRP of 38 octets takes 36 µs, and reports one symbol of 106 tones.
    let poll = 360 + 480 + 144;
    assert_eq!(tenths(air.trigger) % poll, 0);
    assert!((190..=198).contains(&(tenths(air.trigger) / poll)), "{air:?}");
}

/// What is asked for ends with the TXOP: in 2528 µs two stations of MCS 5 have time for five frames each.
#[test]
fn an_uplink_exchange_keeps_to_the_txop() {
    for (limit, frames) in [(2528, 5), (1024, 1), (704, 0)] {
        let mut config = cell_with("downlink off", 2);
        config.access_point[1].txop_limit = Span::from_micros(limit);
        let mut medium = Medium::new(config, ADDRESS, 1).unwrap();
        for station in 0..2 {
            offer(&mut medium, Port::up(station), 9);
        }
        medium.on_wake(medium.next_wake(), &mut Drops::default());
        let (mut exchanges, mut before) = (Span::ZERO, 0);
        while exchanges.is_zero() {
            before = medium.counts(Port::up(0)).mpdus;
            medium.on_wake(medium.next_wake(), &mut Drops::default());
            exchanges = medium.air().exchanges;
        }
        assert!(exchanges <= Span::from_micros(limit), "{exchanges}");
        assert_eq!(medium.counts(Port::up(0)).mpdus - before, frames, "{limit} µs");
    }
}

/// A Trigger frame has one number of HE-LTFs for all (section 9.3.1.22.1), so a station of one stream beside one of two sends two of
/// 8 µs: 56 µs before reports of one symbol, and before data of 38934 bits in symbols of 408. In 5484 µs 376 symbols follow.
#[test]
fn stations_that_are_asked_together_train_for_the_one_with_most_streams() {
    let cell = |packets: [u64; 2]| {
        let mut config = cell_with("", 2);
        config.stations[0].up.mode = Mode::parse("he mcs 5 nss 2 gi 1.6us").unwrap();
        config.stations[1].queue.limit = 1000;
        let mut medium = Medium::new(config, ADDRESS, 1).unwrap();
        for (station, packets) in (0..).zip(packets) {
            offer(&mut medium, Port::up(station), packets);
        }
        medium
    };
    let mut medium = cell([1, 3]);
    run_out(&mut medium);
    let (reports, data) = (560 + 144, 560 + 96 * 144);
    let air = medium.air();
    let whole = 360 + 160 + reports + 160 + 360 + 160 + data + 160 + 560;
    assert_eq!([air.trigger, air.data, air.exchanges].map(tenths), [720 + reports, data, whole]);
    let mut medium = cell([1, 200]);
    while medium.air().data.is_zero() {
        medium.on_wake(medium.next_wake(), &mut Drops::default());
    }
    assert_eq!(tenths(medium.air().data), 560 + 376 * 144);
}

/// What a station has more than fits is answered with whole symbols up to the limit: 377 of 14.4 µs
/// in 5484 µs.
#[test]
fn a_long_queue_is_given_the_longest_ppdu() {
    let mut medium = Medium::new(cell_with("status off", 4), ADDRESS, 1).unwrap();
    offer(&mut medium, Port::up(0), 10);
    for station in 1..4 {
        offer(&mut medium, Port::up(station), 1);
    }
    let mut first = Span::ZERO;
    while first.is_zero() {
        medium.on_wake(medium.next_wake(), &mut Drops::default());
        first = medium.air().data;
    }
    assert_eq!(tenths(first), 480 + 377 * 144);
}

/// Attempts of a station and frames that get through, for each Trigger.
fn random_access(stations: u16, units: u32, restart_after: u32) -> (f64, f64) {
    let text = format!(
        "downlink off status off stations 0 random_units {units} interval 100us ppdu_time 300us \
         restart_after {restart_after}"
    );
    let mut config = cell_with(&text, usize::from(stations));
    config.retry_limit = None;
    config.limits = Limits { mpdus: 1, ..Limits::HE };
    let mut medium = Medium::new(config, ADDRESS, 1).unwrap();
    let packet = Numbered { number: 0, ip_len: 60, dscp: 0, flow: 0 };
    let mut drops = Drops::default();
    for station in 0..stations {
        for _ in 0..3 {
            medium.offer(Time::ZERO, Port::up(station), &packet, &mut drops);
        }
    }
    while medium.next_wake() < Time::ZERO + Span::from_secs(200) {
        let now = medium.next_wake();
        medium.on_wake(now, &mut drops);
        while let Some((port, packet)) = medium.poll_deliver(now) {
            medium.offer(now, port, &packet, &mut drops);
        }
    }
    check_air(&medium);
    let air = medium.air();
    let trigger = Mode::non_ht(24).unwrap().txtime(28 + 6 * units);
    let triggers = air.trigger.as_secs_f64() / trigger.as_secs_f64();
    let attempts = air.random_attempts as f64;
    (attempts / triggers / f64::from(stations), (attempts - air.random_collided as f64) / triggers)
}

#[test]
fn random_access_on_the_air_is_its_fixed_point() {
    for (stations, units) in [(5, 2), (10, 4), (20, 9)] {
        // The paper gives up after three attempts, the standard goes on with the largest window.
        for (restart_after, retries_at_most) in [(3, 0), (0, 1000)] {
            let uora = Uora {
                stations: u32::from(stations),
                units,
                ocw_min: 7,
                doublings: 2,
                retries_at_most,
                error: 0.0,
            };
            let solution = uora.solve();
            let expected = solution.successes(u32::from(stations));
            let (attempt, successes) = random_access(stations, units, restart_after);
            let case = format!("{stations} stations, {units} units, restart {restart_after}");
            assert!((attempt / solution.beta - 1.0).abs() < 0.01, "{case}: {attempt} {solution:?}");
            assert!((successes / expected - 1.0).abs() < 0.01, "{case}: {successes} {expected}");
        }
    }
}

#[test]
fn stations_who_were_asked_do_not_contend_while_the_timer_runs() {
    let saturated = |mu_edca: &str| {
        let mut config = cell_with(&format!("downlink off {mu_edca}"), 4);
        config.station = Parameters::EDCA;
        let mut medium = Medium::new(config, ADDRESS, 1).unwrap();
        let mut drops = Drops::default();
        for station in 0..4 {
            offer(&mut medium, Port::up(station), 9);
        }
        while medium.next_wake() < Time::ZERO + Span::from_secs(1) {
            let now = medium.next_wake();
            medium.on_wake(now, &mut drops);
            while let Some((port, packet)) = medium.poll_deliver(now) {
                medium.offer(now, port, &packet, &mut drops);
            }
        }
        check_air(&medium);
        medium.air()
    };
    let (without, with) = (saturated(""), saturated("mu_edca_time 500ms mu_aifsn 0"));
    assert!(with.attempts < 20 && without.attempts > 100, "{without:?} {with:?}");
    assert!(with.collisions < without.collisions / 5, "{without:?} {with:?}");
}

#[test]
fn one_station_alone_is_sent_to_as_without_ofdma() {
    let mut with = Medium::new(cell_with("uplink off", 4), ADDRESS, 1).unwrap();
    let plain = Config { ofdma: None, ..cell_with("", 4) };
    let mut without = Medium::new(plain, ADDRESS, 1).unwrap();
    for medium in [&mut with, &mut without] {
        offer(medium, Port::down(2), 7);
        run_out(medium);
    }
    assert_eq!(with.air(), without.air());
}

/// Mbit/s and part of the air's data of each station in two seconds, where these have more to receive than they can, and
/// their own queues are kept full as well if `up`.
fn saturated_downwards(
    modes: &[&str],
    queue: QueueConfig,
    ofdma: &str,
    up: bool,
) -> Vec<(f64, f64)> {
    let mut config = cell_with(ofdma, modes.len());
    config.station = Parameters::EDCA;
    config.queue = queue;
    for (station, mode) in config.stations.iter_mut().zip(modes) {
        let radio = Radio::new(Mode::parse(mode).unwrap());
        (station.down, station.up) = (radio, radio);
    }
    let mut medium = Medium::new(config, ADDRESS, 1).unwrap();
    let mut drops = Drops::default();
    let end = Span::from_secs(2);
    for tick in 0..2000 {
        let now = Time::ZERO + Span::from_millis(tick);
        for (station, number) in (0..modes.len() as u16).flat_map(|s| (0..16).map(move |n| (s, n)))
        {
            let packet = Numbered { number, ip_len: 1500, dscp: 0, flow: u64::from(station) };
            medium.offer(now, Port::down(station), &packet, &mut drops);
            if up {
                medium.offer(now, Port::up(station), &packet, &mut drops);
            }
        }
        while medium.next_wake() < now + Span::from_millis(1) {
            let now = medium.next_wake();
            medium.on_wake(now, &mut drops);
            while medium.poll_deliver(now).is_some() {}
        }
    }
    check_air(&medium);
    let counts = || (0..modes.len() as u16).map(|station| medium.counts(Port::down(station)));
    let all: f64 = counts().map(|counts| counts.airtime.as_secs_f64()).sum();
    let mbps = |bytes: u64| bytes as f64 * 8e-6 / end.as_secs_f64();
    counts().map(|own| (mbps(own.delivered_bytes), own.airtime.as_secs_f64() / all)).collect()
}

fn queues_in_the_mac() -> [(&'static str, QueueConfig); 3] {
    [
        ("in turn", QueueConfig::in_mac(Schedule::RoundRobin)),
        ("by airtime", QueueConfig::in_mac(Schedule::PAPER)),
        ("mac80211", QueueConfig::mac80211()),
    ]
}

#[test]
fn equal_stations_have_equal_parts_of_mixed_units() {
    for stations in [3, 5, 6] {
        let modes = alloc::vec!["he mcs 5 gi 1.6us"; stations];
        for (name, queue) in queues_in_the_mac() {
            let shares = saturated_downwards(&modes, queue, "uplink off mixed-units", false);
            let all: f64 = shares.iter().map(|own| own.0).sum();
            for (mbps, _) in &shares {
                let part = mbps * stations as f64 / all;
                assert!((0.97..1.03).contains(&part), "{stations} {name}: {shares:.2?}");
            }
        }
        let mut config = cell_with("downlink off mixed-units", stations);
        for station in &mut config.stations {
            station.queue.limit = 100;
        }
        let mut medium = Medium::new(config, ADDRESS, 1).unwrap();
        let mut drops = Drops::default();
        for station in 0..stations as u16 {
            offer(&mut medium, Port::up(station), 100);
        }
        while medium.next_wake() < Time::ZERO + Span::from_secs(2) {
            let now = medium.next_wake();
            medium.on_wake(now, &mut drops);
            while let Some((port, packet)) = medium.poll_deliver(now) {
                medium.offer(now, port, &packet, &mut drops);
            }
        }
        let delivered = (0..stations as u16).map(|s| medium.counts(Port::up(s)).delivered as f64);
        let all: f64 = delivered.clone().sum();
        let parts: Vec<f64> = delivered.map(|own| own * stations as f64 / all).collect();
        assert!(parts.iter().all(|part| (0.97..1.03).contains(part)), "{stations}: {parts:.3?}");
    }
}

/// An older station, or one whose frames are too long for a unit of 52 tones (1538 octets at MCS 0 take 7 ms there),
/// has its turn between PPDUs for several stations, and the others have units without it.
#[test]
fn a_station_that_cannot_join_the_others_has_its_part_of_the_air() {
    for last in ["ht mcs 7", "he mcs 0"] {
        let modes = ["he mcs 7", "he mcs 7", "he mcs 7", last];
        for (name, queue) in queues_in_the_mac() {
            for ofdma in ["uplink off", "uplink off proportional-fair", "uplink off mixed-units"] {
                let shares = saturated_downwards(&modes, queue.clone(), ofdma, false);
                for (_, share) in &shares {
                    assert!((0.2..0.3).contains(share), "{last} {name} {ofdma}: {shares:.3?}");
                }
            }
        }
        // Airtime is that of both directions, so only turns say what part a station has of one.
        let queue = QueueConfig::in_mac(Schedule::RoundRobin);
        let shares = saturated_downwards(&modes, queue, "", true);
        assert!(shares.iter().all(|own| (0.2..0.3).contains(&own.1)), "{last}: {shares:.3?}");
    }
}

#[test]
fn cells_that_can_not_have_ofdma_are_refused() {
    let mut config = cell_with("", 2);
    assert!(config.check().is_ok());
    config.limits = Limits::NONE;
    assert!(config.check().unwrap_err().problem().contains("without aggregation"));
    let ht = Mode::ht(7, Width::Mhz20, GuardInterval::Ns800).unwrap();
    let ofdma = config.ofdma;
    let old = Config { ofdma: ofdma.clone(), ..cell(ht, 2, Limits::HE) };
    assert!(old.check().unwrap_err().problem().contains("without 802.11ax"));
    let mut mixed = Config { ofdma, ..cell_with("", 2) };
    let wide = Mode::he_su(5, 1, Width::Mhz80, GuardInterval::Ns1600, HeLtf::EightMicros).unwrap();
    mixed.stations[1].down.mode = wide;
    assert!(mixed.check().unwrap_err().problem().contains("20MHz and 80MHz"));
    let random = cell_with("random_units 9", 2);
    assert!(random.check().unwrap_err().problem().contains("9 units"));
}

proptest! {
    #[test]
    fn packets_arrive_in_order_or_are_counted_as_lost_with_ofdma(
        arrivals in prop::collection::vec((0u64..200_000, 0u16..12, 0u8..4, 40u32..1500), 1..200),
        (mcs, error, txop) in (0u8..12, 0.0f64..0.8, prop::bool::ANY),
        (down, up, status, random_units, stations) in
            (prop::bool::ANY, prop::bool::ANY, prop::bool::ANY, 0u32..5, 1u32..9),
        (acknowledgement, schedule, mu_edca) in (0usize..3, 0usize..2, 0usize..3),
        (queue, mixed, mu_rts) in (0usize..4, prop::bool::ANY, prop::bool::ANY),
        (poll, backoff, request) in (prop::bool::ANY, prop::bool::ANY, prop::bool::ANY),
    ) {
        let switch = |is_on| if is_on { "on" } else { "off" };
        let text = format!(
            "downlink {} uplink {} status {} random_units {random_units} stations {stations} {} {} {} {} mu_rts {} \
             poll {} trigger_backoff {} all_ack {}",
            switch(down || !up), switch(up), switch(status),
            ["in-turn", "mu-bar", "aggregated"][acknowledgement],
            ["round-robin", "proportional-fair"][schedule],
            ["", "mu_edca_time 8ms", "mu_edca_time 8ms mu_aifsn 8 mu_cw_min 31"][mu_edca],
            if mixed { "mixed-units" } else { "equal-units" },
            switch(mu_rts),
            switch(poll),
            switch(backoff),
            switch(request),
        );
        let mut config = cell_with(&text, 6);
        config.station = Parameters::EDCA;
        let width = Width::Mhz20;
        let mode = Mode::he_su(mcs, 1, width, GuardInterval::Ns800, HeLtf::EightMicros).unwrap();
        for station in &mut config.stations {
            let error = error / 2.0;
            (station.down, station.up) = (Radio { error, ..Radio::new(mode) }, Radio { error, ..Radio::new(mode) });
        }
        // One older station among the others.
        let old = Mode::ht(3, width, GuardInterval::Ns800).unwrap();
        (config.stations[2].down.mode, config.stations[2].up.mode) = (old, old);
        config.queue = match queue {
            0 => QUEUE.into(),
            1 => below("fq_codel limit 9 target 1ms interval 5ms"),
            2 => QueueConfig::in_mac(Schedule::PAPER),
            _ => QueueConfig::mac80211(),
        };
        if txop {
            config.access_point[1].txop_limit = Span::from_micros(2528);
            config.cf_end = true;
            config.station[1].txop_limit = Span::from_micros(2528);
        }
        if request {
            config.lost_block_ack = LostBlockAck::Request;
        }
        let mut arrivals = arrivals;
        arrivals.sort_unstable();
        in_order(config, &arrivals)?;
    }
}
