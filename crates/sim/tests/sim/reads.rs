//! Receiving applications that read slowly, or not at all for a while.

use proptest::prelude::*;
use sojourn_core::param::Form;
use sojourn_core::{
    Body, Direction, Event, Observer, Params, Rate, Span, StreamAddress, Time, Who,
};
use sojourn_host::apps::{BulkConfig, RequestsConfig};
use sojourn_host::tcp::{Config as Transport, Reading, SendBuffer, Windows};
use sojourn_link::{LossConfig, RateConfig};
use sojourn_scenario::{App, Change, Flow, Link, Scenario, Traffic, What, When};

use crate::{two_hosts, windows};

const SECOND: Span = secs(1);

const fn secs(seconds: u64) -> Span {
    Span::from_secs(seconds)
}

#[derive(Default)]
struct Log {
    /// Payload of each data segment that left, and when; empty ones are probes.
    sent: Vec<(Time, u32)>,
    probes: Vec<Time>,
    retransmissions: usize,
    delivered: u64,
    /// What acknowledgements that arrived offered.
    windows: Vec<(Time, u32)>,
}

impl Observer for Log {
    fn record(&mut self, now: Time, who: Who, event: &Event<'_>) {
        let Who::Flow(_) = who else { return };
        match event {
            Event::Sent { packet } => {
                if let Body::Segment(segment) = &packet.body {
                    self.retransmissions += usize::from(segment.retransmission);
                    match segment.payload {
                        0 => self.probes.push(now),
                        payload => self.sent.push((now, payload)),
                    }
                }
            }
            Event::Arrived { packet } if packet.direction == Direction::Reverse => {
                if let Body::Ack(ack) = &packet.body {
                    self.windows.push((now, ack.window));
                }
            }
            Event::Delivered { bytes } => self.delivered += bytes,
            _ => {}
        }
    }
}

fn reading(steps: &[(u64, Span)]) -> Reading {
    let steps = steps.iter().map(|(mbit, span)| (Rate::from_bps(mbit * 1_000_000), *span));
    Reading::new(steps.collect(), false).expect("good steps")
}

fn window(bytes: u64) -> Transport {
    Transport { receive_window: Some(bytes.into()), ..Transport::default() }
}

fn locked(bytes: u64) -> Transport {
    Transport { receive_buffer: Some(bytes), ..Transport::default() }
}

fn run(reads: Option<Reading>, transport: Transport) -> Log {
    run_with(reads, transport, None, "0%", 1)
}

fn run_with(
    reads: Option<Reading>,
    transport: Transport,
    bytes: Option<u64>,
    loss: &str,
    seed: u64,
) -> Log {
    let link = |name: &str| {
        let queue = sojourn_qdisc::Config::parse("pfifo limit 1000").expect("a discipline");
        let rate = RateConfig::fixed(Rate::from_bps(20_000_000)).expect("a positive rate");
        Link {
            loss: LossConfig::parse(loss).expect("a share"),
            ..Link::new(name, queue, rate, Span::from_millis(10))
        }
    };
    let cca = sojourn_cca::Config::parse("cubic").expect("a controller");
    let app = App::Tcp { traffic: Traffic::Bulk(BulkConfig { rate: None, bytes }), cca, transport };
    let scenario = Scenario {
        step: SECOND,
        ..two_hosts(
            secs(20),
            vec![link("queue"), link("reverse")],
            vec![Flow { reads, ..Flow::new("flow", app, &[0], &[1]) }],
        )
    };
    let mut log = Log::default();
    let scenario = scenario.checked().expect("a sound world");
    sojourn_sim::run(&scenario, StreamAddress { seed, run: 1 }, &mut log)
        .unwrap_or_else(|violation| panic!("{violation}"));
    log
}

#[test]
fn a_slow_reader_gets_what_it_reads_in_whole_segments() {
    for buffer in [Transport::default(), locked(100_000), window(64_000)] {
        let log = run(Some(reading(&[(2, SECOND)])), buffer.clone());
        let mbps = log.delivered as f64 * 8e-6 / 20.0;
        assert!((1.95..2.001).contains(&mbps), "{mbps} Mbit/s");
        // Except where one of the sender's calls of 128 KiB ends.
        let short = log.sent.iter().filter(|(_, payload)| *payload != 1448).count() as u64;
        assert!(short <= log.delivered >> 17, "{short} of {} bytes", log.delivered);
        assert_eq!(log.retransmissions, 0);
    }
}

#[test]
fn a_receiver_that_stops_is_probed_ever_more_rarely_and_tells_when_it_goes_on() {
    // Reads for 2 s, nothing for 8, then again.
    let stops = reading(&[(100, secs(2)), (0, secs(8)), (100, SECOND)]);
    for buffer in [Transport::default(), window(64_000)] {
        let log = run(Some(stops.clone()), buffer.clone());
        let closed = log.windows.iter().find(|(_, window)| *window == 0).expect("it closes").0;
        assert!(closed < Time::ZERO + secs(5), "{closed}");
        let waits: Vec<f64> =
            log.probes.windows(2).map(|pair| pair[1].since(pair[0]).as_secs_f64()).collect();
        assert!(waits.len() >= 2, "{:?}", log.probes);
        // An answer takes a round trip, and the wait begins again with it.
        for pair in waits.windows(2) {
            let doubled = pair[1] / pair[0];
            assert!((1.7..2.1).contains(&doubled), "{waits:?}");
        }
        assert!(log.probes.iter().all(|at| *at < Time::ZERO + secs(10) + SECOND));
        // The reader reads at 10.01 s, and of a buffer, of which a sixteenth must be free, at 10.02 s too. It tells of it, and data leaves 10 ms later.
        let again = log.sent.iter().find(|(at, _)| *at > Time::ZERO + secs(9)).expect("data");
        let late = again.0.since(Time::ZERO + secs(10)).as_millis_f64();
        let most = if buffer.receive_window.is_some() { 25.0 } else { 35.0 };
        assert!((19.9..most).contains(&late), "{late} ms");
        assert_eq!(log.retransmissions, 0);
    }
}

#[test]
fn a_window_changes_at_its_times_and_bounds_the_rate() {
    let param = Transport::PARAMS.iter().find(|param| param.name == "receive_window");
    let windows = Windows::read("14480B at 0s 28960B at 8s 14480B at 14s", param.expect("a key"));
    let receive_window = Some(windows.expect("windows"));
    let log = run(None, Transport { receive_window, ..Transport::default() });
    let offered = |from: u64, to: u64| {
        let [from, to] = [from, to].map(|ms| Time::ZERO + Span::from_millis(ms));
        let within = log.windows.iter().filter(move |(at, _)| (from..to).contains(at));
        let mut sizes: Vec<u32> = within.map(|(_, window)| *window).collect();
        sizes.sort_unstable();
        sizes.dedup();
        sizes
    };
    assert_eq!(offered(0, 8_000), [14_480]);
    assert_eq!(offered(8_050, 14_000), [28_960]);
    // What was promised is taken back only as data comes, within a round trip.
    assert_eq!(offered(14_050, 20_000), [14_480]);
    let sent = |from: u64, to: u64| {
        let [start, end] = [from, to].map(|s| Time::ZERO + secs(s));
        let within = log.sent.iter().filter(|(at, _)| (start..end).contains(at));
        within.map(|(_, payload)| f64::from(*payload)).sum::<f64>() / (to - from) as f64
    };
    // A window each round trip of 20 ms and what two segments, which one acknowledgement is for, and that take on
    // the links.
    let expected = 14_480.0 / 0.021_24;
    for (rate, windows) in [(sent(2, 8), 1.0), (sent(9, 14), 2.0), (sent(15, 20), 1.0)] {
        let ratio = rate / (expected * windows);
        assert!((0.99..1.01).contains(&ratio), "{ratio} of {windows} windows a round trip");
    }
    assert_eq!(log.retransmissions, 0);
}

#[test]
fn a_lost_update_of_the_window_is_made_up_for_by_a_probe() {
    let stops = reading(&[(100, SECOND), (0, secs(2)), (100, SECOND)]);
    let mut probed_after_it_read = 0;
    for seed in 1..=200 {
        let log = run_with(Some(stops.clone()), window(64_000), Some(2_000_000), "5%", seed);
        assert_eq!(log.delivered, 2_000_000, "seed {seed}");
        let reads_again = Time::ZERO + secs(3) + Span::from_millis(20);
        probed_after_it_read += usize::from(log.probes.iter().any(|at| *at > reads_again));
    }
    assert!(probed_after_it_read > 0, "no update was lost");
}

#[test]
fn who_reads_faster_than_the_link_changes_nothing_but_when_it_reads() {
    let at_once = run(None, window(200_000));
    let fast = run(Some(reading(&[(1000, SECOND)])), window(400_000));
    assert!(fast.probes.is_empty());
    let share = fast.delivered as f64 / at_once.delivered as f64;
    assert!((0.999..1.001).contains(&share), "{share}");
}

fn link(name: &str, mbit: u64, loss: &str) -> Link {
    let queue = sojourn_qdisc::Config::parse("pfifo limit 50").expect("a discipline");
    let rate = RateConfig::fixed(Rate::from_bps(mbit * 1_000_000)).expect("a positive rate");
    Link {
        loss: LossConfig::parse(loss).expect("a share"),
        ..Link::new(name, queue, rate, Span::from_millis(10))
    }
}

/// A buffer with room for less than a segment offers all that it has, as an acknowledgement of a closed window would
/// be followed by probes without an end.
#[test]
fn the_smallest_buffer_takes_whatever_comes() {
    let requests = Traffic::Requests(RequestsConfig {
        requests: Some(9),
        ..RequestsConfig::parse(&mut sojourn_core::Words::new("bytes 1B")).expect("requests")
    });
    let bulk = Traffic::Bulk(BulkConfig { rate: None, bytes: Some(20_000) });
    for (traffic, bytes) in [(requests, 9), (bulk, 20_000)] {
        let transport = Transport {
            initial_receive_buffer: 2_304,
            most_receive_buffer: 60_000,
            ..Transport::default()
        };
        let cca = sojourn_cca::Config::parse("cubic").expect("a controller");
        let flow = Flow::new("flow", App::Tcp { traffic, cca, transport }, &[0], &[1]);
        let links = vec![link("there", 5, "0%"), link("back", 5, "0%")];
        let scenario = Scenario { step: secs(1), ..two_hosts(secs(100), links, vec![flow]) };
        let mut log = Log::default();
        let scenario = scenario.checked().expect("a sound world");
        sojourn_sim::run(&scenario, StreamAddress { seed: 0, run: 1 }, &mut log)
            .unwrap_or_else(|violation| panic!("{violation}"));
        assert_eq!(log.delivered, bytes);
    }
}

fn transport() -> impl Strategy<Value = Transport> {
    let window = prop::collection::vec((2_304u64..60_000, 1u64..3_000), 1..5).prop_map(|steps| {
        Transport { receive_window: Some(windows(&steps)), ..Transport::default() }
    });
    let buffer = prop_oneof![
        3 => window,
        1 => (2_304u64..60_000).prop_map(locked),
        1 => (2_304u64..60_000, 60_000u64..1_000_000).prop_map(|(initial, most)| Transport {
            initial_receive_buffer: initial,
            most_receive_buffer: most,
            ..Transport::default()
        }),
    ];
    let send = prop_oneof![
        1 => Just(SendBuffer::Auto),
        1 => (2_304u64..100_000).prop_map(SendBuffer::Bytes),
    ];
    (buffer, send, any::<bool>(), prop::option::of(1u64..50_000)).prop_map(
        |(buffer, send_buffer, offload, notsent_lowat)| Transport {
            send_buffer,
            offload,
            notsent_lowat,
            ..buffer
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// Readers that stall, windows that change, pauses, changes of the link in the middle of a phase, losses: every
    /// byte arrives, once, and every request gets its answer.
    #[test]
    fn nothing_is_stuck_and_nothing_lost(
        cca in prop::sample::select(vec!["cubic", "reno", "bbr", "bbr2", "bbr3", "bbr-n+", "prague"]),
        of_download in transport(),
        of_requests in transport(),
        steps in prop::collection::vec((0u64..8, 1u64..2_000), 1..5),
        loss in prop::sample::select(vec!["0%", "1%", "5%"]),
        bytes in 1u64..400_000,
        answer in 1u64..60_000,
        (connections, streams) in (1u32..4, 1u32..5),
        changes in prop::collection::vec((0u64..3_000, 0usize..4), 0..4),
        seed in 0u64..1_000,
    ) {
        // After all steps it reads at 1 Mbit/s.
        let steps = steps.into_iter().map(|(rate, ms)| {
            (Rate::from_bps(rate.saturating_sub(4) * 1_000_000), Span::from_millis(ms))
        });
        let last = (Rate::from_bps(1_000_000), SECOND);
        let reads = Reading::new(steps.chain([last]).collect(), false).expect("good steps");
        let cca = sojourn_cca::Config::parse(cca).expect("a controller");
        let phase = cca.phases()[0].to_owned();
        let bulk = Traffic::Bulk(BulkConfig { rate: None, bytes: Some(bytes) });
        let requests = Traffic::Requests(RequestsConfig {
            bytes: answer,
            connections,
            streams,
            think: Span::from_millis(50),
            requests: Some(9),
            ..RequestsConfig::parse(&mut sojourn_core::Words::new("bytes 1B")).expect("requests")
        });
        let tcp = |traffic, transport| App::Tcp { traffic, cca: cca.clone(), transport };
        let what = [
            What::Rate(sojourn_core::PortId(0), Rate::from_bps(500_000)),
            What::Rate(sojourn_core::PortId(0), Rate::from_bps(20_000_000)),
            What::Delay(sojourn_core::PortId(0), Span::from_millis(60)),
            What::Loss(sojourn_core::PortId(1), LossConfig::parse("10%").expect("a share")),
        ];
        let scenario = Scenario { step: secs(1_000), changes: changes
                .into_iter()
                .map(|(ms, number)| Change {
                    when: When {
                        flow: sojourn_core::FlowId(0),
                        phase: phase.clone(),
                        occurrence: 1,
                        after: Span::from_millis(ms),
                    },
                    what: what[number].clone(),
                })
                .collect(), ..two_hosts(secs(10_000), vec![link("there", 5, loss), link("back", 5, loss)], vec![
                Flow { reads: Some(reads), ..Flow::new("download", tcp(bulk, of_download), &[0], &[1]) },
                Flow::new("requests", tcp(requests, of_requests), &[0], &[1]),
            ]) };
        let scenario = scenario.checked().expect("a sound world");
        let mut log = Log::default();
        sojourn_sim::run(&scenario, StreamAddress { seed, run: 1 }, &mut log)
            .map_err(|violation| TestCaseError::fail(violation.to_string()))?;
        prop_assert_eq!(log.delivered, bytes + 9 * answer);
    }
}
