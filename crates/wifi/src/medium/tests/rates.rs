//! Modes that change, on the air.

use super::*;
use crate::rate::{Control, Fading, MinstrelConfig, Place, Presence, Rates, Step};

fn he_mode(mcs: u8) -> Mode {
    let guard = GuardInterval::Ns800;
    Mode::he_su(mcs, 1, Width::Mhz20, guard, HeLtf::EightMicros).unwrap()
}

/// Packets a second that come down to the first station of a cell that always has some for it, second
/// by second.
fn down(rates: Rates, seconds: u64) -> Vec<u64> {
    let mut config = cell(he_mode(11), 1, Limits::HE);
    config.queue = DriverConfig { limit: 600, ..QUEUE }.into();
    config.rates = alloc::vec![rates];
    let mut medium = Medium::new(config, ADDRESS, 1).unwrap();
    let mut drops = Drops::default();
    let mut counts = Vec::new();
    let mut next = Time::ZERO;
    let gap = Span::from_micros(90);
    while next < Time::ZERO + Span::from_secs(seconds) {
        let now = next.min(medium.next_wake());
        while counts.len() as u64 <= now.since(Time::ZERO).as_micros() / 1_000_000 {
            counts.push(0);
        }
        if medium.next_wake() <= now {
            medium.on_wake(now, &mut drops);
        }
        while medium.poll_deliver(now).is_some() {
            *counts.last_mut().unwrap() += 1;
        }
        if next <= now {
            let packet = Numbered { number: 0, ip_len: 1500, dscp: 0, flow: 0 };
            medium.offer(now, Port::down(0), &packet, &mut drops);
            next += gap;
        }
    }
    check_air(&medium);
    counts
}

#[test]
fn rates_fall_with_distance_and_minstrel_follows_the_ideal() {
    let per_second = |metres, control| down(Rates::at(0, metres, control), 4)[3];
    let mut last = u64::MAX;
    for metres in [5.0, 20.0, 40.0, 80.0, 120.0] {
        let ideal = per_second(metres, Control::Ideal);
        let minstrel = per_second(metres, Control::Minstrel(MinstrelConfig::default()));
        assert!(ideal <= last && ideal > 100, "{metres} m: {ideal}");
        assert!(minstrel as f64 > 0.8 * ideal as f64, "{metres} m: {minstrel} of {ideal}");
        last = ideal;
    }
    // A mode that is too fast gets nothing through.
    assert_eq!(per_second(120.0, Control::Fixed), 0);
}

#[test]
fn a_station_that_walks_away_gets_less_and_less() {
    let place = |seconds, metres| Place { at: Span::from_secs(seconds), metres };
    let counts = |control| {
        let mut rates = Rates::at(0, 2.0, control);
        rates.places = alloc::vec![place(0, 2.0), place(6, 100.0)];
        down(rates, 6)
    };
    let ideal = counts(Control::Ideal);
    let minstrel = counts(Control::Minstrel(MinstrelConfig::default()));
    assert!(ideal.windows(2).all(|pair| pair[1] <= pair[0]), "{ideal:?}");
    assert!(ideal[5] * 3 < ideal[0], "{ideal:?}");
    // At 16 m a second the signal loses a step every 0.2 s and sooner, and averages lag behind.
    let follows = minstrel.iter().zip(&ideal).all(|(own, best)| *own as f64 > 0.25 * *best as f64);
    assert!(follows, "{minstrel:?} of {ideal:?}");
}

#[test]
fn a_trace_of_modes_is_followed() {
    let step = |from, to, mcs| Step {
        from: Span::from_secs(from),
        to: Span::from_secs(to),
        mode: he_mode(mcs),
    };
    let steps = alloc::vec![step(0, 2, 5), step(2, 4, 0), step(4, 6, 5)];
    let counts = down(Rates::at(0, 2.0, Control::Trace(steps)), 6);
    // 68.8 and 8.6 Mbit/s less preambles and acknowledgements.
    let (fast, slow) = (5000..5700, 600..710);
    assert!(fast.contains(&counts[1]) && fast.contains(&counts[5]), "{counts:?}");
    assert!(slow.contains(&counts[3]), "{counts:?}");
}

#[test]
fn a_fading_signal_costs_part_of_the_rate() {
    let steady = down(Rates::at(0, 20.0, Control::Ideal), 4);
    let mut rates = Rates::at(0, 20.0, Control::Ideal);
    let mean = Span::from_millis(50);
    rates.fading = Some(Fading { depth: 15.0, clear: mean, faded: mean });
    let fading = down(rates, 4);
    let share = fading[1..].iter().sum::<u64>() as f64 / steady[1..].iter().sum::<u64>() as f64;
    assert!((0.4..0.9).contains(&share), "{share}");
}

#[test]
fn nothing_reaches_a_station_that_is_away() {
    let mut rates = Rates::at(0, 5.0, Control::Ideal);
    let there = |from, to| Presence { from: Span::from_secs(from), to: Span::from_secs(to) };
    rates.present = alloc::vec![there(1, 2), there(4, 5)];
    let counts = down(rates, 6);
    let is_served: Vec<bool> = counts.iter().map(|count| *count > 1000).collect();
    assert_eq!(is_served, [false, true, false, false, true, false], "{counts:?}");
}

#[test]
fn a_station_that_comes_back_sends_what_it_had_left() {
    let mut config = cell(he_mode(0), 1, Limits::HE);
    let mut rates = Rates::at(0, 5.0, Control::Fixed);
    let there = |from, to| Presence { from: Span::from_millis(from), to: Span::from_millis(to) };
    rates.present = alloc::vec![there(0, 5), there(300, 1000)];
    config.rates = alloc::vec![rates];
    let mut medium = Medium::new(config, ADDRESS, 1).unwrap();
    let packet = Numbered { number: 1, ip_len: 1500, dscp: 0, flow: 0 };
    for _ in 0..10 {
        medium.offer(Time::ZERO, Port::up(0), &packet, &mut Drops::default());
    }
    let mut came = Vec::new();
    while !medium.next_wake().is_never() {
        let now = medium.next_wake();
        medium.on_wake(now, &mut Drops::default());
        while medium.poll_deliver(now).is_some() {
            came.push(now.since(Time::ZERO).as_micros() / 1000);
        }
    }
    check_air(&medium);
    assert_eq!(came.len(), 10);
    assert!(came[0] < 6 && came[9] >= 300, "{came:?}");
}

proptest! {
    #[test]
    fn packets_arrive_in_order_or_are_counted_as_lost_at_changing_rates(
        mut arrivals in prop::collection::vec((0u64..300_000, 0u16..6, 0u8..4, 40u32..1500), 1..150),
        (near, far, control, queue) in (1.0f64..150.0, 1.0f64..150.0, 0usize..3, 0usize..3),
        (leaves, has_ofdma, fades) in (1u64..300, prop::bool::ANY, prop::bool::ANY),
    ) {
        let mut config = cell(he_mode(11), 3, Limits::HE);
        config.queue = match queue {
            0 => QUEUE.into(),
            1 => below("fq_codel"),
            _ => QueueConfig::mac80211(),
        };
        let control = [
            Control::Ideal,
            Control::Fixed,
            Control::Minstrel(MinstrelConfig::default()),
        ][control].clone();
        for station in 0..2 {
            let mut rates = Rates::at(station, near, control.clone());
            rates.places.push(Place { at: Span::from_millis(300), metres: far });
            let mean = Span::from_millis(20);
            rates.fading = fades.then_some(Fading { depth: 10.0, clear: mean, faded: mean });
            if station == 0 {
                // It comes back for good.
                rates.present = alloc::vec![
                    Presence { from: Span::ZERO, to: Span::from_millis(leaves) },
                    Presence { from: Span::from_millis(leaves + 50), to: Span::from_secs(1000) },
                ];
            }
            config.rates.push(rates);
        }
        config.ofdma = has_ofdma.then(Default::default);
        arrivals.sort_unstable();
        in_order(config, &arrivals)?;
    }
}
