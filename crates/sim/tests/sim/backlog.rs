//! What waits in a queue is counted in wire packets, however they come.

use sojourn_core::{DropReason, Event, Observer, Rate, Span, StreamAddress, Time, Who};
use sojourn_host::tcp::Config as Transport;
use sojourn_link::{LossConfig, RateConfig};
use sojourn_scenario::{App, Flow, Link};

use crate::two_hosts;

/// Segments that wait at the first link, as its events say unless its queue cuts packets and drops some of the pieces.
#[derive(Default)]
struct Log {
    cuts: bool,
    waiting: i64,
    largest: i64,
    samples: u32,
    most_joined: u32,
}

impl Log {
    fn compare(&mut self, now: Time, waiting: u32) {
        self.largest = self.largest.max(waiting.into());
        assert!(self.cuts || i64::from(waiting) == self.waiting, "{now}: {waiting}");
    }
}

impl Observer for Log {
    fn record(&mut self, now: Time, who: Who, event: &Event<'_>) {
        if !matches!(who, Who::Port(port) if port.0 == 0) {
            return;
        }
        match event {
            Event::Enqueued { packet, backlog } => {
                self.waiting += i64::from(packet.segments);
                self.compare(now, *backlog);
            }
            Event::Dequeued { packet, .. } => self.waiting -= i64::from(packet.segments),
            Event::Dropped { packet, why: DropReason::Aqm } => {
                self.waiting -= i64::from(packet.segments);
            }
            Event::QueueSample(sample) => {
                self.compare(now, sample.packets);
                self.samples += u32::from(sample.packets > 0);
                self.most_joined = self.most_joined.max(sample.joined);
            }
            _ => {}
        }
    }

    fn needs_order(&self) -> bool {
        true
    }
}

fn run(queue: &str, entry_loss: &str, offload: bool) -> Log {
    let link = |name: &str, queue: &str| {
        let queue = sojourn_qdisc::Config::parse(queue).expect("a discipline");
        let rate = RateConfig::fixed(Rate::from_bps(300_000_000)).expect("a positive rate");
        let entry_loss = LossConfig::parse(entry_loss).expect("a share");
        Link { entry_loss, ..Link::new(name, queue, rate, Span::from_millis(2)) }
    };
    let cca = sojourn_cca::Config::parse("cubic").expect("a controller");
    let transport = Transport { offload, ..Transport::default() };
    let scenario = two_hosts(
        Span::from_secs(2),
        vec![link("queue", queue), link("reverse", "pfifo limit 1000")],
        vec![Flow::new("flow", App::bulk(cca, transport), &[0], &[1])],
    );
    let cuts = queue.starts_with("tbf") || queue.starts_with("cake");
    let mut log = Log { cuts, ..Log::default() };
    let scenario = scenario.checked().expect("a sound world");
    sojourn_sim::run(&scenario, StreamAddress { seed: 1, run: 1 }, &mut log)
        .unwrap_or_else(|violation| panic!("{violation}"));
    assert!(log.samples > 5, "something waits");
    log
}

#[test]
fn an_offloaded_packet_waits_as_its_segments() {
    for entry_loss in ["none", "random 0.1%"] {
        for queue in [
            "pfifo limit 50",
            "bfifo limit 500000",
            "codel",
            "fq_codel",
            "tbf rate 200mbit burst 5kb limit 400kb",
            "cake bandwidth 200mbit",
        ] {
            let log = run(queue, entry_loss, true);
            assert!(log.largest > 30, "{queue}: {}", log.largest);
            let all_are_cut = queue.starts_with("cake");
            assert_eq!(log.most_joined == 0, all_are_cut, "{queue}: {}", log.most_joined);
        }
    }
}

/// Limits in packets, and `tc`, count it once.
#[test]
fn a_limit_in_packets_counts_an_offloaded_packet_once() {
    let largest = |offload| run("pfifo limit 50", "none", offload).largest;
    assert_eq!(largest(false), 50);
    assert!(largest(true) > 200, "{}", largest(true));
}
