//! Random loss on a path that keeps the order. Nothing there is reordering, so each loss is
//! repaired a round trip and three segments later (RFC 8985 section 6.2 step 4).

use std::collections::BTreeMap;

use sojourn_core::{Body, Event, Observer, Rate, Span, StreamAddress, Time, Who};
use sojourn_host::tcp::Config as Transport;
use sojourn_link::{LossConfig, RateConfig};
use sojourn_scenario::{App, Flow, Link};

use crate::two_hosts;

const DELAY: Span = Span::from_millis(10);

/// How long losses waited for their first repetition.
#[derive(Default)]
struct Repairs {
    lost: BTreeMap<u32, Time>,
    delays: Vec<Span>,
    spurious: u64,
}

impl Observer for Repairs {
    fn record(&mut self, now: Time, who: Who, event: &Event<'_>) {
        match (who, event) {
            (Who::Port(_), Event::Dropped { packet, .. }) => {
                if let Body::Segment(segment) = packet.body {
                    self.lost.entry(segment.first).or_insert(now);
                }
            }
            (Who::Flow(_), Event::Sent { packet }) => {
                if let Body::Segment(segment) = packet.body
                    && segment.retransmission
                    && let Some(lost) = self.lost.remove(&segment.first)
                {
                    self.delays.push(now.since(lost));
                }
            }
            (_, Event::FlowSample(sample)) => {
                self.spurious = sample.spurious_total.expect("it counts")
            }
            _ => {}
        }
    }
}

#[test]
fn losses_are_repaired_without_waiting_for_reordering() {
    let rate = RateConfig::fixed(Rate::from_bps(40_000_000)).expect("a positive rate");
    let link = |name: &str, rate| {
        let queue = sojourn_qdisc::Config::parse("pfifo limit 1000").expect("a discipline");
        Link::new(name, queue, rate, DELAY)
    };
    let lossy =
        Link { entry_loss: LossConfig::parse("1%").expect("a share"), ..link("queue", rate) };
    for cca in ["bbr", "bbr3", "cubic-linux"] {
        let controller = sojourn_cca::Config::parse(cca).expect("a controller");
        let app = App::bulk(controller, Transport::default());
        let scenario = two_hosts(
            Span::from_secs(20),
            vec![lossy.clone(), link("reverse", RateConfig::Unlimited)],
            vec![Flow::new("bulk", app, &[0], &[1])],
        );
        let mut repairs = Repairs::default();
        let scenario = scenario.checked().expect("a sound scenario");
        sojourn_sim::run(&scenario, StreamAddress { seed: 1, run: 1 }, &mut repairs)
            .unwrap_or_else(|violation| panic!("{cca}: {violation}"));
        let mut delays = repairs.delays;
        assert!(delays.len() > 50, "{cca}: {}", delays.len());
        assert_eq!(repairs.spurious, 0, "{cca}");
        delays.sort();
        // The window for reordering would be 5 ms. Three segments of the slowest sender are 3 ms.
        let quarter = delays[delays.len() / 4];
        assert!(quarter < DELAY * 2 + Span::from_millis(4), "{cca}: {quarter}");
    }
}

/// A link on which a segment takes 1.2 s, so that the timeout comes before the first acknowledgement.
/// Linux 6.18 over the same link (two namespaces, a third one between them with `tbf rate 10kbit
/// burst 1600`): two timeouts before the first acknowledgement at 1.27 s and one at 16.4 s, each of
/// which repeats a segment and nothing else.
#[test]
fn timeouts_on_a_slow_link_repeat_one_segment_each() {
    let rate = RateConfig::fixed(Rate::from_bps(10_000)).expect("a positive rate");
    let link = |name: &str, rate| {
        let queue = sojourn_qdisc::Config::parse("pfifo limit 1000").expect("a discipline");
        Link::new(name, queue, rate, Span::from_micros(30))
    };
    for cca in ["reno", "cubic", "bbr"] {
        let controller = sojourn_cca::Config::parse(cca).expect("a controller");
        let app = App::bulk(controller, Transport::default());
        let scenario = two_hosts(
            Span::from_secs(12),
            vec![link("queue", rate.clone()), link("reverse", RateConfig::Unlimited)],
            vec![Flow::new("bulk", app, &[0], &[1])],
        );
        let mut repairs = Repairs::default();
        let scenario = scenario.checked().expect("a sound scenario");
        let outcome = sojourn_sim::run(&scenario, StreamAddress { seed: 1, run: 1 }, &mut repairs)
            .unwrap_or_else(|violation| panic!("{cca}: {violation}"));
        let sample = outcome.flows[0].expect("a TCP flow");
        assert!((2..=3).contains(&sample.timeouts_total), "{cca}: {sample:?}");
        assert_eq!(sample.retrans_total, sample.timeouts_total, "{cca}: {sample:?}");
        assert!(sample.spurious_total >= Some(1) && sample.lost == 0, "{cca}: {sample:?}");
    }
}
