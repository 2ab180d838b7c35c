//! What happens while a connection is being opened: requests and answers are lost, and the
//! application begins, pauses and stops meanwhile.

use proptest::prelude::*;
use sojourn_core::{Body, Direction, Event, Observer, Rate, Span, StreamAddress, Time, Who};
use sojourn_host::apps::{BulkConfig, OnOffConfig};
use sojourn_host::tcp::{Config as Transport, SendBuffer};
use sojourn_link::{LossConfig, RateConfig};
use sojourn_scenario::{App, Checked, Flow, Link, Traffic};

use crate::two_hosts;

#[derive(Default)]
struct Log {
    requests: Vec<Time>,
    /// The network loses this many requests, the first ones.
    lost_requests: usize,
    /// When new data left.
    sent: Vec<Time>,
    established: Option<Time>,
}

impl Observer for Log {
    fn record(&mut self, now: Time, who: Who, event: &Event<'_>) {
        match (who, event) {
            (Who::Flow(_), Event::Sent { packet }) => match packet.body {
                Body::Handshake { .. } if packet.direction == Direction::Forward => {
                    self.requests.push(now);
                }
                Body::Segment(segment) if !segment.retransmission => self.sent.push(now),
                _ => {}
            },
            (Who::Flow(_), Event::Arrived { packet })
                if packet.direction == Direction::Reverse
                    && matches!(packet.body, Body::Handshake { .. }) =>
            {
                self.established = self.established.or(Some(now));
            }
            (Who::Port(_), Event::Dropped { packet, .. })
                if matches!(packet.body, Body::Handshake { .. }) =>
            {
                self.lost_requests += 1;
            }
            _ => {}
        }
    }
}

fn scenario(traffic: Traffic, rtt: Span, stop: Option<Span>, loss: &str) -> Checked {
    let link = |name: &str| {
        let queue = sojourn_qdisc::Config::parse("pfifo limit 1000").expect("a discipline");
        let rate = RateConfig::fixed(Rate::from_bps(20_000_000)).expect("a positive rate");
        Link {
            entry_loss: LossConfig::parse(loss).expect("a share"),
            ..Link::new(name, queue, rate, rtt / 2)
        }
    };
    let cca = sojourn_cca::Config::parse("cubic").expect("a controller");
    // Without a limit nothing is written that does not leave, so the sender is as silent as its application.
    let transport = Transport { send_buffer: SendBuffer::UNLIMITED, ..Transport::default() };
    let app = App::Tcp { traffic, cca, transport };
    two_hosts(
        Span::from_secs(4),
        vec![link("queue"), link("reverse")],
        vec![Flow { stop, ..Flow::new("flow", app, &[0], &[1]) }],
    )
    .checked()
    .expect("a sound scenario")
}

fn run(scenario: &Checked, seed: u64) -> Log {
    let mut log = Log::default();
    sojourn_sim::run(scenario, StreamAddress { seed, run: 1 }, &mut log)
        .unwrap_or_else(|violation| panic!("{violation}"));
    log
}

const fn millis(ms: u64) -> Span {
    Span::from_millis(ms)
}

/// Whether the application writes at `at`.
fn is_on(at: Time, on: Span, off: Span) -> bool {
    at.as_nanos() % (on + off).as_nanos() < on.as_nanos()
}

#[test]
fn an_application_that_pauses_during_the_handshake_sends_when_it_goes_on() {
    let (on, off) = (millis(50), millis(200));
    let log = run(
        &scenario(Traffic::OnOff(OnOffConfig { on, off, random: false }), millis(100), None, "0%"),
        1,
    );
    // Connected at 100 ms, in the pause; the application goes on at 250 ms.
    assert!(log.established < Some(Time::ZERO + millis(101)));
    assert_eq!(log.sent[0], Time::ZERO + millis(250));
}

#[test]
fn an_application_that_stops_during_the_handshake_sends_nothing() {
    for traffic in [
        Traffic::Bulk(BulkConfig::default()),
        Traffic::OnOff(OnOffConfig { on: millis(30), off: millis(10), random: false }),
        Traffic::OnOff(OnOffConfig { on: millis(30), off: millis(10), random: true }),
    ] {
        let log = run(&scenario(traffic, millis(100), Some(millis(60)), "0%"), 1);
        assert_eq!((log.requests.len(), log.sent.len()), (1, 0));
    }
}

#[test]
fn an_acknowledgement_at_the_moment_a_pause_begins_sends_nothing() {
    // Round trips of 137 ms from 1.666 s - 12 * 137 ms on end when the tenth pause begins.
    let (on, off) = (millis(82), millis(94));
    let traffic = Traffic::OnOff(OnOffConfig { on, off, random: false });
    let log = run(&scenario(traffic, millis(137), None, "0%"), 0);
    assert!(!log.sent.is_empty());
    assert!(log.sent.iter().all(|at| is_on(*at, on, off)), "{:?}", log.sent);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Time never goes back, and new data leaves only while the application writes.
    #[test]
    fn any_pause_stop_and_loss_during_the_handshake_is_lived_through(
        on in 1u64..600,
        off in 1u64..600,
        random in any::<bool>(),
        stop in prop::option::of(1u64..3000),
        rtt in 2u64..900,
        loss in prop_oneof![Just("0%"), Just("30%"), Just("70%")],
        seed in any::<u64>(),
    ) {
        let (on, off, stop) = (millis(on), millis(off), stop.map(millis));
        let traffic = Traffic::OnOff(OnOffConfig { on, off, random });
        let log = run(&scenario(traffic, millis(rtt), stop, loss), seed);
        prop_assert!(!log.requests.is_empty());
        if log.lost_requests == 0 && rtt < 900 {
            prop_assert_eq!(log.requests.len(), 1);
        }
        for at in log.sent {
            prop_assert!(random || is_on(at, on, off), "sent in a pause at {}", at);
            prop_assert!(stop.is_none_or(|stop| at < Time::ZERO + stop), "sent after the stop");
        }
    }
}
