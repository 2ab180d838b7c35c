//! What a link may do besides sending: police, reorder, lose, and delay at stated times; and an
//! application that writes at a rate.

use sojourn_core::{DropReason, Event, Observer, Rate, Span, StreamAddress, Time, Who};
use sojourn_host::apps::BulkConfig;
use sojourn_host::tcp::Config as Transport;
use sojourn_link::{JitterConfig, LossConfig, PolicerConfig, RateConfig, ReorderConfig};
use sojourn_scenario::{App, Flow, Link, Traffic};

use crate::two_hosts;

/// Counts what reaches the application, what is dropped and why, and packets that arrive after one
/// that was sent later.
#[derive(Default)]
struct Log {
    delivered: u64,
    policed: u64,
    lost_at: Vec<Time>,
    rtts: Vec<(Time, Span)>,
    highest: u32,
    late: u64,
}

impl Observer for Log {
    fn record(&mut self, now: Time, who: Who, event: &Event<'_>) {
        match (who, event) {
            (Who::Flow(_), Event::Delivered { bytes }) => self.delivered += bytes,
            (_, Event::Dropped { why: DropReason::Policed, .. }) => self.policed += 1,
            (_, Event::Dropped { why: DropReason::Medium, .. }) => self.lost_at.push(now),
            (_, Event::Rtt { rtt }) => self.rtts.push((now, *rtt)),
            (Who::Flow(_), Event::Arrived { packet }) => {
                if let sojourn_core::Body::Segment(segment) = &packet.body {
                    self.late += u64::from(segment.first < self.highest);
                    self.highest = self.highest.max(segment.first);
                }
            }
            _ => {}
        }
    }
}

fn link(name: &str) -> Link {
    let rate = RateConfig::fixed(Rate::from_bps(50_000_000)).expect("a positive rate");
    let queue = sojourn_qdisc::Config::parse("pfifo limit 1000").expect("a discipline");
    Link::new(name, queue, rate, Span::from_millis(10))
}

/// One flow for ten seconds over `link`.
fn run(link: Link, traffic: Traffic) -> Log {
    run_with(link, traffic, Span::ZERO)
}

fn run_with(there: Link, traffic: Traffic, own_delay: Span) -> Log {
    let cca = sojourn_cca::Config::parse("cubic").expect("a controller");
    let app = App::Tcp { traffic, cca, transport: Transport::default() };
    let flow = Flow { forward_delay: own_delay, ..Flow::new("flow", app.clone(), &[0], &[1]) };
    // Another flow, so that each flow's own propagation stays behind the link.
    let other = Flow { start: Span::from_secs(9), ..Flow::new("other", app, &[0], &[1]) };
    let mut flows = vec![flow];
    if !own_delay.is_zero() {
        flows.push(other);
    }
    let scenario = two_hosts(Span::from_secs(10), vec![there, link("reverse")], flows);
    let scenario = scenario.checked().expect("a sound scenario");
    let mut log = Log::default();
    sojourn_sim::run(&scenario, StreamAddress { seed: 1, run: 1 }, &mut log)
        .unwrap_or_else(|violation| panic!("{violation}"));
    log
}

const BULK: Traffic = Traffic::Bulk(BulkConfig { rate: None, bytes: None });

#[test]
fn an_application_with_a_rate_gets_that_rate_and_no_more() {
    for mbps in [1, 20] {
        let rate = Rate::from_bps(mbps * 1_000_000);
        let log = run(link("queue"), Traffic::Bulk(BulkConfig { rate: Some(rate), bytes: None }));
        let share = log.delivered as f64 * 8.0 / (10.0 * rate.as_bps() as f64);
        assert!((0.98..=1.001).contains(&share), "{mbps} Mbit/s: {share}");
    }
    let rate = Rate::from_bps(8_000_000);
    let log =
        run(link("queue"), Traffic::Bulk(BulkConfig { rate: Some(rate), bytes: Some(2_000_001) }));
    assert_eq!(log.delivered, 2_000_001);
}

#[test]
fn a_policer_holds_a_flow_below_its_rate_without_a_queue() {
    let policer = PolicerConfig::parse("rate 10mbit burst 50kb").expect("a policer");
    let log = run(Link { policer, ..link("queue") }, BULK);
    let mbps = log.delivered as f64 * 8.0 / 10.0 / 1e6;
    assert!(log.policed > 0);
    assert!((5.0..10.0).contains(&mbps), "{mbps} Mbit/s");
    let last = log.rtts.last().expect("round trips").1;
    assert!(last < Span::from_millis(25), "no queue: {last}");
}

#[test]
fn reordered_packets_arrive_before_those_sent_earlier_and_nothing_is_lost() {
    for own_delay in [Span::ZERO, Span::from_millis(7)] {
        let reorder = ReorderConfig::parse("1%").expect("a reordering");
        let log = run_with(Link { reorder, ..link("queue") }, BULK, own_delay);
        // Each packet that overtakes others passes half a window.
        assert!(log.late > 1000, "own delay {own_delay}: {} late", log.late);
        assert!(log.lost_at.is_empty());
        let mbps = log.delivered as f64 * 8.0 / 10.0 / 1e6;
        assert!(mbps > 10.0, "own delay {own_delay}: {mbps} Mbit/s");
    }
    assert_eq!(run(link("queue"), BULK).late, 0);
}

#[test]
fn loss_and_delay_change_when_they_are_said_to() {
    let loss = LossConfig::parse("steps 0% 4s 5% 1s 0% 5s").expect("a loss");
    let log = run(Link { loss, ..link("queue") }, BULK);
    assert!(log.lost_at.len() > 10);
    let within = |at: &Time| (4.0..5.001).contains(&at.as_secs_f64());
    assert!(log.lost_at.iter().all(within), "{:?}", log.lost_at);

    let jitter = JitterConfig::parse("steps 0ms 4s 80ms 6s").expect("a jitter");
    let rate = Rate::from_bps(1_000_000);
    let log = run(
        Link { jitter, ..link("queue") },
        Traffic::Bulk(BulkConfig { rate: Some(rate), bytes: None }),
    );
    let least = |from: f64, to: f64| {
        let within = |at: &Time| (from..to).contains(&at.as_secs_f64());
        log.rtts.iter().filter(|(at, _)| within(at)).map(|(_, rtt)| *rtt).min()
    };
    let ms = Span::from_millis;
    assert!((ms(20)..ms(22)).contains(&least(0.0, 4.0).expect("round trips")));
    let later = least(4.5, 10.0).expect("round trips");
    // An acknowledgement may wait for the next write, 11.6 ms later.
    assert!((ms(100)..ms(113)).contains(&later), "{later}");
}
