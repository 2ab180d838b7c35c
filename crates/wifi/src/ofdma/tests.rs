use sojourn_core::{Purpose, StreamAddress};

use super::*;
use crate::phy::Mode;

fn parse(text: &str) -> Result<Ofdma, SpecError> {
    Ofdma::parse(&mut Words::new(text))
}

/// Octets by field: 16 + 8 + 5n + 4, one more each in a Basic Trigger and four in an MU-BAR. At 6 and
/// 24 Mbit/s: 20 µs and a symbol of 4 µs for every 24 or 96 bits of 22 and the frame's.
#[test]
fn trigger_frames_last_what_their_fields_say() {
    let micros = |octets, mbps| Mode::non_ht(mbps).unwrap().txtime(octets).as_micros();
    for (users, at_6, at_24) in
        [(1, 72, 36), (4, 96, 40), (8, 128, 48), (9, 136, 52), (16, 192, 64)]
    {
        let octets = Trigger::Basic.octets(users);
        assert_eq!(octets, 28 + 6 * users);
        assert_eq!((micros(octets, 6), micros(octets, 24)), (at_6, at_24), "{users}");
    }
    assert_eq!((Trigger::BufferStatus.octets(4), Trigger::Rts.octets(4)), (48, 48));
    assert_eq!((Trigger::BlockAck.octets(1), Trigger::BlockAck.octets(4)), (37, 64));
    assert_eq!(micros(64, 24), 44);
}

#[test]
fn a_multi_station_block_ack_has_four_octets_and_a_bitmap_for_each() {
    let at_24 = |octets| Mode::non_ht(24).unwrap().txtime(octets).as_micros();
    let answers = |bitmaps, all_acks| Answers { bitmaps, all_acks };
    assert_eq!(multi_station_block_ack(answers(4, 0), 256), 166);
    assert_eq!(at_24(multi_station_block_ack(answers(4, 0), 256)), 80);
    assert_eq!(at_24(multi_station_block_ack(answers(9, 0), 256)), 140);
    assert_eq!(at_24(multi_station_block_ack(answers(4, 0), 64)), 48);
    assert_eq!(at_24(multi_station_block_ack(answers(9, 0), 64)), 68);
    // Without a bitmap two octets each.
    assert_eq!(multi_station_block_ack(answers(0, 9), 256), 40);
    assert_eq!(multi_station_block_ack(answers(1, 1), 256), 60);
    assert_eq!(STATUS_REPORT, 38);
}

#[test]
fn no_unit_stays_empty() {
    let units = |width, stations| {
        let layout = Layout::filled(Sizes::Equal, width, stations).unwrap();
        assert_eq!(layout, Layout::equal(layout.unit(0), layout.units));
        (layout.unit(0), layout.units)
    };
    assert_eq!(units(Width::Mhz20, 1), (Ru::Tones242, 1));
    assert_eq!(units(Width::Mhz20, 3), (Ru::Tones106, 2));
    assert_eq!(units(Width::Mhz20, 8), (Ru::Tones52, 4));
    assert_eq!(units(Width::Mhz20, 9), (Ru::Tones26, 9));
    assert_eq!(units(Width::Mhz40, 17), (Ru::Tones52, 8));
    assert_eq!(units(Width::Mhz80, 5), (Ru::Tones242, 4));
    assert_eq!(units(Width::Mhz80, 40), (Ru::Tones26, 37));
    assert_eq!(Layout::filled(Sizes::Equal, Width::Mhz80, 0), None);
}

#[test]
fn mixed_units_give_more_stations_one() {
    let units = |width, stations| {
        let layout = Layout::filled(Sizes::Mixed, width, stations).unwrap();
        (0..layout.units as usize).map(|number| layout.unit(number).tones()).collect::<Vec<_>>()
    };
    assert_eq!(units(Width::Mhz20, 1), [242]);
    assert_eq!(units(Width::Mhz20, 3), [106, 52, 52]);
    assert_eq!(units(Width::Mhz20, 7), [52, 26, 26, 26, 26, 26, 26]);
    assert_eq!(units(Width::Mhz20, 12), [26; 9]);
    assert_eq!(units(Width::Mhz40, 3), [242, 106, 106]);
    assert_eq!(units(Width::Mhz80, 6), [242, 242, 106, 106, 106, 106]);
    assert_eq!(units(Width::Mhz160, 3), [996, 484, 484]);
    // What they take together fits the channel.
    for width in Width::ALL {
        for stations in 1..80 {
            let tones: u32 = units(width, stations).iter().sum();
            assert!(tones <= Ru::whole(width).tones(), "{stations} in {width}");
        }
    }
}

#[test]
fn parameters_are_read_and_refused_by_name() {
    let ofdma = parse("uplink off in-turn proportional-fair stations 4").unwrap();
    assert_eq!(ofdma.acknowledgement, Acknowledgement::InTurn);
    assert_eq!((ofdma.uplink, ofdma.downlink, ofdma.stations), (false, true, 4));
    assert_eq!(ofdma.schedule, Policy::ProportionalFair);
    for (text, problem) in [
        ("ocw_min 6", "'ocw_min' is 6"),
        ("ocw_min 63", "'ocw_min' is 63 and 'ocw_max' 31"),
        ("stations 0", "no resource unit for anybody"),
        ("random_units 75", "random_units"),
        ("mu_aifsn 16", "mu_aifsn"),
    ] {
        let error = parse(text).unwrap_err();
        assert!(error.problem().contains(problem), "{text}: {}", error.problem());
        assert!(!error.allowed().is_empty(), "{text}");
    }
    assert_eq!(Ofdma::parse_switched("off"), Ok(None));
    let switched = Ofdma::parse_switched("on uplink off in-turn proportional-fair stations 4");
    assert_eq!(switched, Ok(Some(ofdma)));
    for wrong in ["", "off uplink off", "uplink off", "on uplink", "on offline"] {
        assert!(Ofdma::parse_switched(wrong).is_err(), "{wrong}");
    }
    assert!(parse("random_units 9").unwrap().check_width(Width::Mhz20).is_err());
    assert!(parse("random_units 9 stations 0").unwrap().check_width(Width::Mhz20).is_ok());
}

#[test]
fn windows_of_random_access_double_and_return() {
    let config = parse("random_units 2").unwrap();
    let mut random = StreamAddress { seed: 1, run: 0 }.stream(1, Purpose::Backoff);
    let mut access = RandomAccess::new(&config, &mut random);
    let mut windows = Vec::new();
    for _ in 0..4 {
        windows.push(access.window);
        access.fail(&config, &mut random);
    }
    assert_eq!(windows, [7, 15, 31, 31]);
    access.succeed(&config, &mut random);
    assert_eq!(access.window, 7);
    let config = parse("random_units 2 restart_after 3").unwrap();
    let windows = [0; 4].map(|_| {
        let window = access.window;
        access.fail(&config, &mut random);
        window
    });
    assert_eq!(windows, [7, 15, 31, 7]);
}

#[test]
fn a_backoff_falls_by_the_units_of_each_trigger() {
    let mut random = StreamAddress { seed: 1, run: 0 }.stream(1, Purpose::Backoff);
    let mut access = RandomAccess { window: 7, backoff: 5, failures: 0 };
    let sent = [0; 3].map(|_| access.offered(2, &mut random).is_some());
    assert_eq!(sent, [false, false, true]);
}

#[test]
fn stations_take_turns() {
    let mut scheduler = Scheduler::new(Policy::RoundRobin, 5, 20.0);
    let mut seen = Vec::new();
    for _ in 0..5 {
        let mut candidates = [0, 1, 2, 4];
        scheduler.order(&mut candidates, |_| 1.0);
        scheduler.passes(candidates[1]);
        seen.push((candidates[0], candidates[1]));
    }
    assert_eq!(seen, [(0, 1), (2, 4), (0, 1), (2, 4), (0, 1)]);
}

/// Three on a whole unit and two halves; or six of whom three are served at a time.
#[test]
fn whole_units_change_hands() {
    for stations in [3, 6, 7] {
        let mut scheduler = Scheduler::new(Policy::RoundRobin, stations, 20.0);
        let mut wholes = alloc::vec![0; stations];
        for _ in 0..210 {
            let mut candidates: Vec<u16> = (0..stations as u16).collect();
            scheduler.order(&mut candidates, |_| 1.0);
            scheduler.passes(candidates[2]);
            scheduler.sort_by_owed(&mut candidates[..3]);
            scheduler.note_sizes(&candidates[..3], 1);
            wholes[usize::from(candidates[0])] += 1;
        }
        let part = 210 / stations;
        assert!(wholes.iter().all(|own| (part - 1..=part + 1).contains(own)), "{wholes:?}");
    }
}

/// With rates that stay as they are, proportional fairness is equal time (Kelly).
#[test]
fn proportional_fairness_gives_equal_turns_at_constant_rates() {
    let rates = [1.0, 10.0, 100.0];
    let mut scheduler = Scheduler::new(Policy::ProportionalFair, 3, 20.0);
    let mut turns = [0; 3];
    for _ in 0..3000 {
        let mut candidates = [0, 1, 2];
        scheduler.order(&mut candidates, |station| rates[usize::from(station)]);
        let first = candidates[0];
        turns[usize::from(first)] += 1;
        scheduler.serve([(first, rates[usize::from(first)])].into_iter());
    }
    assert!(turns.iter().all(|turns| (950..1050).contains(turns)), "{turns:?}");
}

/// A station whose rate goes up and down is served when it is up.
#[test]
fn proportional_fairness_serves_stations_at_their_best() {
    let mut scheduler = Scheduler::new(Policy::ProportionalFair, 2, 50.0);
    let (mut turns, mut good) = (0, 0);
    for round in 0..4000 {
        let rate = |station: u16| match (station, round / 10 % 2) {
            (0, 0) | (1, 1) => 100.0,
            _ => 20.0,
        };
        let mut candidates = [0, 1];
        scheduler.order(&mut candidates, rate);
        scheduler.serve([(candidates[0], rate(candidates[0]))].into_iter());
        turns += 1;
        good += u32::from(rate(candidates[0]) > 50.0);
    }
    assert!(f64::from(good) / f64::from(turns) > 0.9, "{good} of {turns}");
}
