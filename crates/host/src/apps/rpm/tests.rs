use std::collections::VecDeque;

use sojourn_core::{Confidence, FlowId, HostId, Params, Purpose, Responsiveness, Words};

use super::*;

const RTT: Span = Span::from_millis(20);

fn at(ms: u64) -> Time {
    Time::ZERO + Span::from_millis(ms)
}

fn config(text: &str) -> RpmConfig {
    RpmConfig::parse(&mut Words::new(text)).unwrap()
}

#[derive(Default)]
struct Seen(Vec<(Time, Responsiveness)>);

impl Observer for Seen {
    fn record(&mut self, now: Time, _: Who, event: &Event<'_>) {
        if let Event::Responsiveness(result) = event {
            self.0.push((now, **result));
        }
    }
}

/// Over a path of half a round trip each way, whose forward direction takes `packet` for each packet and has
/// room for all. Returns what the test reported, and the most connections there were at once.
fn test(text: &str, receive_window: u64, packet: Span) -> (Rpm, Seen, usize) {
    let ends = Endpoints { flow: FlowId(0), sender: HostId(0), receiver: HostId(1), dscp: 0 };
    let random = StreamAddress { seed: 1, run: 0 }.stream(0, Purpose::Controller);
    let transport =
        TcpConfig { receive_window: Some(receive_window.into()), ..TcpConfig::default() };
    let cca = CcaConfig::parse("reno").unwrap();
    let mut app = Rpm::new(config(text), cca, transport, ends, random, at(0), Time::NEVER);
    let (mut seen, mut most) = (Seen::default(), 0);
    let mut under_way: [VecDeque<(Time, Packet)>; 2] = Default::default();
    let mut is_free = Time::ZERO;
    loop {
        let arrivals = under_way.each_ref().map(|way| way.front().map_or(Time::NEVER, |one| one.0));
        let wakes = [Direction::Forward, Direction::Reverse].map(|sends| app.next_wake(sends));
        let now = arrivals.into_iter().chain(wakes).min().unwrap();
        if now.is_never() {
            return (app, seen, most);
        }
        let sends = if let Some(way) = arrivals.iter().position(|arrival| *arrival == now) {
            let (_, packet) = under_way[way].pop_front().unwrap();
            app.on_packet(now, &packet, &mut seen);
            [Direction::Reverse, Direction::Forward][way]
        } else {
            let sends = if wakes[0] == now { Direction::Forward } else { Direction::Reverse };
            app.on_wake(now, sends, &mut seen);
            sends
        };
        most = most.max(app.loads.len());
        while let Some(one) = app.poll_transmit(now, sends) {
            assert_eq!(one.direction, sends);
            let leaves = match sends {
                Direction::Forward => {
                    is_free = is_free.max(now) + packet;
                    is_free
                }
                Direction::Reverse => now,
            };
            under_way[usize::from(sends == Direction::Reverse)].push_back((leaves + RTT / 2, one));
        }
    }
}

/// On an empty path every step of a probe takes a round trip: 3000 a minute. The certificate fits the first
/// window. Windows so small that nothing waits, and one connection.
#[test]
fn without_a_queue_every_step_takes_a_round_trip() {
    for tls in ["", " tls false"] {
        let text = format!("most 1{tls}");
        let (app, seen, most) = test(&text, 20_000, Span::ZERO);
        let (ended, last) = seen.0.last().unwrap();
        assert_eq!(most, 1);
        assert!(app.is_done());
        assert_eq!(last.foreign, 3_000.0, "{last:?}");
        // A self probe's answer waits behind 32768 to 49152 unsent bytes, of which 13 segments leave in a
        // round trip: 1.7 to 2.6 round trips before its own.
        let round_trips = 3_000.0 / last.loaded;
        assert!((2.7..3.6).contains(&round_trips), "{last:?}");
        assert_eq!(last.rpm, (last.foreign + last.loaded) / 2.0);
        assert_eq!(last.confidence, Confidence::High);
        // Averages are whole and stable after 4 + 3 intervals, responsiveness after 4 more.
        assert_eq!(*ended, at(11_000));
    }
}

/// 1250 packets a second, in a window of 100 packets a connection: their queue is what answers wait in.
#[test]
fn connections_are_added_until_the_test_is_stable_and_their_queue_is_what_it_measures() {
    let (app, seen, most) = test("most 4", 144_800, Span::from_micros(800));
    let (ended, last) = seen.0.last().unwrap();
    assert_eq!(most, 4);
    assert!(app.is_done());
    assert!(*ended <= at(20_000));
    // 400 packets take 320 ms, which is all of the round trip; probes may add a twentieth, and a certificate is
    // three packets.
    let round_trip = 60_000.0 / last.foreign;
    assert!((320.0..320.0 * 1.05 * 1.05).contains(&round_trip), "{last:?}");
    assert!(last.loaded <= last.foreign, "{last:?}");
    let first = &seen.0[0].1;
    assert_eq!(first.confidence, Confidence::Low);
    assert!(first.foreign > last.foreign, "fewer connections make a shorter queue");
}

#[test]
fn a_test_that_is_not_stable_ends_at_its_limit_and_says_how_sure_it_is() {
    let unstable = "tolerance 0 most 2";
    let (app, seen, _) = test(&format!("{unstable} limit 9500ms"), 144_800, Span::from_micros(800));
    assert!(app.is_done());
    let (ended, last) = seen.0.last().unwrap();
    assert_eq!((*ended, last.confidence), (at(9_500), Confidence::Low));
}

/// The draft's "Aggregating the Measurements", in figures.
#[test]
fn the_mean_is_of_the_fastest_probes_and_the_result_of_both_kinds() {
    let mut results = Results::new(&config(""));
    for took in 1..=20 {
        // Of 20 probes the slowest is left out: the mean of 10, 20 … 190 ms is 100 ms.
        let took = Span::from_millis(if took == 20 { 9_999 } else { 10 * took });
        [Step::Connect, Step::Tls].into_iter().for_each(|step| results.on_probe(step, took));
    }
    results.on_probe(Step::Get, Span::from_millis(40));
    results.end_interval();
    assert_eq!(results.result(1), None, "no self probe");
    results.on_probe(Step::Loaded, Span::from_millis(200));
    results.end_interval();
    let result = results.result(3).unwrap();
    // 60000 / ((100 + 100 + 40) / 3), and 60000 / 200.
    assert_eq!((result.foreign, result.loaded, result.rpm), (750.0, 300.0, 525.0));
    assert_eq!(result.connections, 3);
    // Probes older than the moving average are forgotten.
    (0..3).for_each(|_| assert!(!results.end_interval()));
    assert_eq!(results.result(1), None);
}

/// The network is dead from the third interval on, and goes on later.
#[test]
fn intervals_without_probes_make_nothing_stable() {
    let mut results = Results::new(&config(""));
    let interval = |results: &mut Results, has_probes: bool| {
        results.on_delivered(1_000_000);
        if has_probes {
            let all = [Step::Connect, Step::Tls, Step::Get, Step::Loaded];
            all.into_iter().for_each(|step| results.on_probe(step, Span::from_millis(100)));
        }
        results.end_interval()
    };
    // The goodput is stable after seven.
    assert!((0..7).all(|_| !interval(&mut results, true)));
    assert!((0..2).all(|_| !interval(&mut results, true)));
    assert!((0..3).all(|_| !interval(&mut results, false)));
    assert_eq!(results.result(1).map(|result| result.confidence), Some(Confidence::Low));
    assert!(!interval(&mut results, true));
    assert!(interval(&mut results, true));
    assert_eq!(results.result(1).map(|result| result.confidence), Some(Confidence::High));
}
