use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use sojourn_core::{Body, Direction, FlowId, HostId};

use super::*;

const ADDRESS: StreamAddress = StreamAddress { seed: 7, run: 1 };

fn at(ms: u64) -> Time {
    Time::ZERO + Span::from_millis(ms)
}

fn arrivals(per_second: f64, sizes: Sizes, most: u32, cca: &str) -> Arrivals {
    let ends = Endpoints { flow: FlowId(3), sender: HostId(0), receiver: HostId(1), dscp: 0 };
    Arrivals::new(
        ArrivalsConfig { per_second, sizes, most, transfers: None },
        CcaConfig::parse(cca).unwrap(),
        TcpConfig::default(),
        ends,
        Draws::new(ADDRESS, "web"),
        at(0),
        at(10_000),
    )
}

/// What was observed, and every packet with its departure.
#[derive(Default)]
struct Seen {
    opened: Vec<(Time, u64)>,
    refused: Vec<(Time, u64)>,
    completed: Vec<(Time, u64, Span)>,
    phases: u32,
}

impl Observer for Seen {
    fn record(&mut self, now: Time, who: Who, event: &Event<'_>) {
        assert_eq!(who, Who::Flow(FlowId(3)));
        match event {
            Event::Opened { bytes } => self.opened.push((now, *bytes)),
            Event::Refused { bytes } => self.refused.push((now, *bytes)),
            Event::Completed { bytes, took } => self.completed.push((now, *bytes, *took)),
            Event::Phase { .. } => self.phases += 1,
            _ => {}
        }
    }
}

/// Carries packets with `delay` each way until `end`; a packet for which `loses` is true is lost.
fn carry(
    arrivals: &mut Arrivals,
    delay: Span,
    end: Time,
    mut loses: impl FnMut(&Packet) -> bool,
) -> (Seen, Vec<Packet>) {
    let (mut seen, mut packets) = (Seen::default(), Vec::new());
    let mut under_way: BTreeMap<(Time, u64), Packet> = BTreeMap::new();
    let mut count = 0;
    loop {
        let arrival = under_way.first_key_value().map_or(Time::NEVER, |((at, _), _)| *at);
        let sender = arrivals.next_wake(Direction::Forward);
        let receiver = arrivals.next_wake(Direction::Reverse);
        let now = arrival.min(sender).min(receiver);
        if now > end {
            return (seen, packets);
        }
        let mut leaving = Vec::new();
        if arrival == now {
            let (_, packet) = under_way.pop_first().unwrap();
            arrivals.on_packet(now, &packet, &mut seen);
        } else if sender == now {
            arrivals.on_wake(now, Direction::Forward, &mut seen);
        } else {
            arrivals.on_wake(now, Direction::Reverse, &mut seen);
        }
        for sends in [Direction::Reverse, Direction::Forward] {
            while let Some(packet) = arrivals.poll_transmit(now, sends) {
                leaving.push(packet);
            }
        }
        for packet in leaving {
            packets.push(packet);
            if !loses(&packet) {
                count += 1;
                under_way.insert((now + delay, count), packet);
            }
        }
    }
}

#[test]
fn a_transfer_takes_a_handshake_and_the_rounds_of_slow_start() {
    let mut arrivals = arrivals(5.0, Sizes::Fixed(14_480), 100, "reno");
    let (seen, packets) = carry(&mut arrivals, Span::from_millis(10), at(20_000), |_| false);
    assert!((30..70).contains(&seen.opened.len()), "{}", seen.opened.len());
    assert_eq!(seen.completed.len(), seen.opened.len());
    assert!(seen.completed.iter().all(|(_, _, took)| *took == Span::from_millis(40)));
    let handshakes = packets.iter().filter(|p| matches!(p.body, Body::Handshake { .. }));
    assert_eq!(handshakes.count(), 2 * seen.opened.len());
    assert_eq!(arrivals.connections().count(), 0);
    let sample = arrivals.sample(at(20_000));
    assert_eq!(sample.bytes_acked, 14_480 * seen.opened.len() as u64);
    assert_eq!((sample.cwnd, sample.unacked), (0, 0));
}

#[test]
fn every_connection_has_a_number_of_its_own_and_starts_from_segment_zero() {
    let mut arrivals = arrivals(50.0, Sizes::Fixed(100_000), 8, "cubic");
    let (seen, packets) = carry(&mut arrivals, Span::from_millis(5), at(20_000), |_| false);
    let mut numbers = BTreeSet::new();
    for packet in packets.iter().filter(|packet| packet.direction == Direction::Forward) {
        match packet.body {
            Body::Handshake { .. } => assert!(numbers.insert(packet.connection)),
            Body::Segment(_) => assert!(numbers.contains(&packet.connection)),
            _ => {}
        }
    }
    assert_eq!(numbers.len(), seen.opened.len());
    assert!(!numbers.contains(&0), "0 is that of flows with one connection");
    let starts = packets.iter().filter(|p| matches!(p.body, Body::Segment(s) if s.first == 0));
    assert_eq!(starts.count(), seen.opened.len());
}

#[test]
fn no_more_are_open_than_may_be_and_the_rest_are_refused() {
    // Each takes 40 ms, a hundred a second come: four would be open in the mean.
    let mut arrivals = arrivals(100.0, Sizes::Fixed(1_000), 3, "cubic");
    let (seen, _) = carry(&mut arrivals, Span::from_millis(10), at(12_000), |_| false);
    // Erlang's B for 4 erlang on 3 lines, by its recursion.
    let erlang_b = (1..=3).fold(1.0, |b, n| 4.0 * b / (f64::from(n) + 4.0 * b));
    let all = (seen.opened.len() + seen.refused.len()) as f64;
    let share = seen.refused.len() as f64 / all;
    assert!((share - erlang_b).abs() < 0.06, "{share} refused, {erlang_b} expected");
    assert_eq!(arrivals.connections().count(), 0);
}

#[test]
fn what_arrives_does_not_depend_on_what_the_network_or_the_controller_does() {
    let sizes = Sizes::Lognormal { mean: 50_000, sigma: 1.5, most: 5_000_000 };
    let offered = |cca: &str, delay: u64, most: u32| {
        let mut arrivals = arrivals(40.0, sizes.clone(), most, cca);
        let (seen, _) = carry(&mut arrivals, Span::from_millis(delay), at(11_000), |_| false);
        let mut all = [seen.opened, seen.refused].concat();
        all.sort_unstable();
        all
    };
    let one = offered("cubic", 5, 1000);
    assert!(one.len() > 300);
    assert_eq!(one, offered("bbr", 50, 1000));
    assert_eq!(one, offered("cubic", 5, 2));
}

#[test]
fn a_lost_handshake_costs_a_second_and_a_lost_tail_a_probe() {
    let mut lost = 0;
    let of_two_segments = || arrivals(2.0, Sizes::Fixed(2_000), 10, "cubic");
    let mut first = of_two_segments();
    let (seen, _) = carry(&mut first, Span::from_millis(10), at(30_000), |packet| {
        let is_first = matches!(packet.body, Body::Handshake { .. })
            && packet.direction == Direction::Forward
            && lost == 0;
        lost += u32::from(is_first);
        is_first
    });
    let took: Vec<Span> = seen.completed.iter().map(|(_, _, took)| *took).collect();
    assert_eq!(took.iter().max(), Some(&Span::from_millis(1040)));
    assert_eq!(took.iter().filter(|took| **took == Span::from_millis(40)).count(), took.len() - 1);
    let mut tails = BTreeSet::new();
    let mut again = of_two_segments();
    let (seen, _) = carry(&mut again, Span::from_millis(10), at(30_000), |packet| {
        matches!(packet.body, Body::Segment(s) if s.first == 1) && tails.insert(packet.connection)
    });
    assert_eq!(again.sample(at(30_000)).timeouts_total, 0, "the probe repairs a lost tail");
    assert!(seen.completed.iter().all(|(_, _, took)| *took > Span::from_millis(60)));
}

#[test]
fn phases_of_many_connections_are_not_told() {
    let mut arrivals = arrivals(20.0, Sizes::Fixed(500_000), 100, "bbr");
    let (seen, _) = carry(&mut arrivals, Span::from_millis(10), at(12_000), |_| false);
    assert!(!seen.completed.is_empty());
    assert_eq!(seen.phases, 0);
}

#[test]
fn what_comes_for_a_closed_connection_is_ignored() {
    let mut arrivals = arrivals(5.0, Sizes::Fixed(1_000), 2, "cubic");
    let (_, packets) = carry(&mut arrivals, Span::from_millis(10), at(20_000), |_| false);
    let mut seen = Seen::default();
    for packet in &packets {
        arrivals.on_packet(at(20_000), packet, &mut seen);
        for sends in [Direction::Forward, Direction::Reverse] {
            assert!(arrivals.poll_transmit(at(20_000), sends).is_none());
        }
    }
    for sends in [Direction::Forward, Direction::Reverse] {
        assert!(arrivals.next_wake(sends).is_never());
    }
}

fn drawn_mean(sizes: &Sizes, count: u32) -> f64 {
    let mut random = ADDRESS.stream(1, Purpose::Application);
    (0..count).map(|_| sizes.draw(&mut random) as f64).sum::<f64>() / f64::from(count)
}

#[test]
fn distributions_have_the_means_that_a_load_is_computed_with() {
    for text in [
        "100kB",
        "lognormal mean 60kB sigma 1",
        "lognormal mean 60kB sigma 1.5 max 200kB",
        "pareto shape 1.2 min 4kB max 1MB",
        "pareto shape 1 min 4kB max 1MB",
        "pareto shape 2.5 min 10kB max 100kB",
        "cdf 1kB 20% 10kB 20% 50kB 90% 1MB 100%",
    ] {
        let sizes = SizesSpec::parse(text).unwrap().complete(None).unwrap();
        let (mean, drawn) = (sizes.mean(), drawn_mean(&sizes, 400_000));
        assert!((drawn / mean - 1.0).abs() < 0.015, "{text}: mean {mean}, drawn {drawn}");
    }
    let lognormal = Sizes::Lognormal { mean: 60_000, sigma: 1.0, most: LARGEST };
    assert!((lognormal.mean() - 60_000.0).abs() < 1.0);
}

#[test]
fn a_measured_distribution_is_met_at_its_points_and_between_them() {
    let sizes = Sizes::read("# bytes, per cent\n1000,20\n10000 60\n\n100000\t100\n").unwrap();
    assert_eq!(sizes, Sizes::read("1kB 0.2\n10kB 60%\n100kB 1\n").unwrap());
    let mut random = ADDRESS.stream(2, Purpose::Application);
    let drawn: Vec<u64> = (0..100_000).map(|_| sizes.draw(&mut random)).collect();
    let share = |bytes: u64| drawn.iter().filter(|d| **d <= bytes).count() as f64 / 1e5;
    for (bytes, expected) in [(999, 0.0), (1_000, 0.2), (5_500, 0.4), (10_000, 0.6), (55_000, 0.8)]
    {
        assert!((share(bytes) - expected).abs() < 0.01, "{bytes}: {}", share(bytes));
    }
    assert_eq!(share(100_000), 1.0);
}

#[test]
fn distributions_that_are_none_say_why() {
    let error = |text: &str| {
        SizesSpec::parse(text).and_then(|spec| spec.complete(None)).unwrap_err().to_string()
    };
    for (text, words) in [
        ("", "no distribution is given"),
        ("paretto shape 1.2", "did you mean 'pareto'?"),
        ("pareto shape 1.2 min 4kB", "pareto needs a shape, a min and a max"),
        ("pareto shape 1.2 min 4kB max 4kB", "max 4kB is not above min 4kB (allowed: "),
        ("pareto shape 0 min 4kB max 5kB", "shape: '0' is out of range"),
        ("lognormal mean 60kB", "needs a mean and a sigma"),
        ("lognormal mean 60kB sigma 1 max 1kB", "max 1kB is below the mean 60kB"),
        ("lognormal mean 60kB sgima 1", "did you mean 'sigma'?"),
        ("0B", "'0B' is out of range (allowed: 1B to 100GB)"),
        ("100kB 200kB", "has no parameter '200kB'"),
        ("cdf", "'cdf' needs points, or the path of a file"),
        ("cdf 1kB 20% 5kB", "'5kB' has no share beside it"),
        ("cdf 1kB 20% 5kB 90%", "the last share is 0.9, not all"),
        ("cdf 5kB 20% 1kB 100%", "'1kB 1' does not follow '5kB 0.2'"),
        ("cdf 1kB 120% 5kB 100%", "'120' is no share"),
        ("cdf sizes.txt", "the file has not been read"),
    ] {
        let error = error(text);
        assert!(error.contains(words), "\n  wanted: {words}\n  found:  {error}");
    }
    let error = Sizes::read("1000 0.5\n2000\n").unwrap_err().to_string();
    assert!(error.contains("line 2: 1 fields"), "{error}");
    assert!(Sizes::read("# nothing\n").unwrap_err().to_string().contains("there is no point"));
}

fn known() -> impl Strategy<Value = Sizes> {
    let points = prop::collection::btree_map(1u64..LARGEST, 0.0f64..1.0, 1..6).prop_map(|map| {
        let mut shares: Vec<f64> = map.values().copied().collect();
        shares.sort_by(f64::total_cmp);
        *shares.last_mut().unwrap() = 1.0;
        let points = map.keys().zip(shares).map(|(bytes, share)| Point { bytes: *bytes, share });
        Sizes::Empirical(points.collect())
    });
    prop_oneof![
        (1..=LARGEST).prop_map(Sizes::Fixed),
        (1..=LARGEST, 0.001f64..5.0).prop_flat_map(|(mean, sigma)| {
            (mean..=LARGEST).prop_map(move |most| Sizes::Lognormal { mean, sigma, most })
        }),
        (1..LARGEST, 0.001f64..10.0).prop_flat_map(|(least, shape)| {
            (least + 1..=LARGEST).prop_map(move |most| Sizes::Pareto { shape, least, most })
        }),
        points,
    ]
}

proptest! {
    #[test]
    fn no_text_makes_the_parsers_panic(text in ".{0,60}", lines in "[0-9kMB%., #\n]{0,80}") {
        let _ = SizesSpec::parse(&text);
        let _ = SizesSpec::parse(&format!("cdf {lines}"));
        let _ = Sizes::read(&lines);
    }

    #[test]
    fn what_is_printed_reads_back(sizes in known()) {
        let read = SizesSpec::parse(&sizes.to_string()).unwrap_or_else(|e| panic!("{sizes}: {e}"));
        prop_assert_eq!(read, SizesSpec::Known(sizes));
    }

    #[test]
    fn a_draw_keeps_to_the_bounds(sizes in known(), seed in any::<u64>()) {
        let mut random = StreamAddress { seed, run: 0 }.stream(0, Purpose::Application);
        let most = match &sizes {
            Sizes::Fixed(most) | Sizes::Lognormal { most, .. } | Sizes::Pareto { most, .. } => *most,
            Sizes::Empirical(points) => points.last().unwrap().bytes,
        };
        for _ in 0..20 {
            prop_assert!((1..=most).contains(&sizes.draw(&mut random)));
        }
        prop_assert!(sizes.mean().is_finite() && sizes.mean() >= 0.0);
    }
}
