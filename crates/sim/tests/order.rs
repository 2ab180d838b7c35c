//! Links do their work late, when somebody needs the result. Nobody may notice.

use sojourn_core::{Event, FlowId, Observer, PortId, Rate, Span, StreamAddress, Time, Who};
use sojourn_host::tcp::Config as Transport;
use sojourn_link::{LossConfig, RateConfig};
use sojourn_scenario::{App, Flow, Host, Link, Scenario, Until};

/// Notes every event as time, place and kind; a packet as the time it left and its length.
#[derive(Default)]
struct Record {
    needs_order: bool,
    events: Vec<(Time, Who, &'static str, Time, u64)>,
}

impl Observer for Record {
    fn record(&mut self, now: Time, who: Who, event: &Event<'_>) {
        let (kind, packet) = match event {
            Event::Sent { packet } => ("sent", Some(packet)),
            Event::Arrived { packet } => ("arrived", Some(packet)),
            Event::Enqueued { packet, .. } => ("enqueued", Some(packet)),
            Event::Dequeued { packet, .. } => ("dequeued", Some(packet)),
            Event::Dropped { packet, .. } => ("dropped", Some(packet)),
            Event::Marked { packet } => ("marked", Some(packet)),
            Event::QueueSample(sample) => {
                self.events.push((now, who, "sample", Time::ZERO, sample.bytes));
                return;
            }
            _ => return,
        };
        let (sent, len) = packet.map_or((Time::ZERO, 0), |packet| (packet.sent, packet.wire_len));
        self.events.push((now, who, kind, sent, u64::from(len)));
    }

    fn needs_order(&self) -> bool {
        self.needs_order
    }
}

/// Two flows over one bottleneck and back, the second perhaps with a longer way of its own or over
/// a second link.
#[derive(Clone, Copy)]
struct World {
    queue: &'static str,
    loss: &'static str,
    own_delay: Span,
    links: u16,
}

impl World {
    fn scenario(self) -> Scenario {
        let link = |name, mbps: u64, queue| Link {
            loss: LossConfig::parse(self.loss).expect("a loss"),
            ..Link::new(
                name,
                sojourn_qdisc::Config::parse(queue).expect("a discipline"),
                RateConfig::fixed(Rate::from_bps(mbps * 1_000_000)).expect("a positive rate"),
                Span::from_millis(5),
            )
        };
        let flow = |name, cca, forward: &[u16], forward_delay| {
            let cca = sojourn_cca::Config::parse(cca).expect("a controller");
            let app = App::bulk(cca, Transport::default());
            let start = Span::from_millis(3);
            Flow { forward_delay, start, ..Flow::new(name, app, forward, &[1]) }
        };
        Scenario {
            duration: Span::from_secs(4),
            until: Until::Duration,
            warmup: Span::from_millis(1234),
            step: Span::from_millis(100),
            hosts: ["server", "client"].map(|name| Host { name: name.into() }).into(),
            links: vec![
                link("queue", 10, self.queue),
                link("back", 10, "pfifo limit 1000"),
                link("further", 8, self.queue),
            ],
            carriers: Vec::new(),
            changes: Vec::new(),
            flows: vec![
                flow("a", "cubic", &[0], Span::ZERO),
                flow("b", "bbr", &[0, 2][..usize::from(self.links)], self.own_delay),
            ],
        }
    }

    fn run(self, needs_order: bool) -> Record {
        let mut record = Record { needs_order, ..Record::default() };
        let address = StreamAddress { seed: 1, run: 1 };
        let scenario = self.scenario().checked().expect("a sound scenario");
        sojourn_sim::run(&scenario, address, &mut record).expect("invariants hold");
        record
    }
}

const OWN: Span = Span::from_millis(7);

fn worlds() -> impl Iterator<Item = World> {
    ["pfifo limit 20", "bfifo limit 30000", "fq_codel", "cake bandwidth 9mbit", "pie"]
        .into_iter()
        .flat_map(|queue| ["none", "random 1%"].map(|loss| (queue, loss)))
        .flat_map(|(queue, loss)| {
            [(Span::ZERO, 1), (OWN, 1), (Span::ZERO, 2), (OWN, 2)].map(|(own_delay, links)| World {
                queue,
                loss,
                own_delay,
                links,
            })
        })
}

#[test]
fn who_asks_for_order_gets_it_and_the_same_events() {
    for world in worlds() {
        let (ordered, late) = (world.run(true), world.run(false));
        assert!(ordered.events.iter().any(|event| event.2 == "dequeued"));
        assert!(ordered.events.is_sorted_by_key(|event| event.0), "{}", world.queue);
        // Each link and each flow reports the same events; only how they interleave may differ.
        for who in [0, 1, 2]
            .map(|port| Who::Port(PortId(port)))
            .into_iter()
            .chain([0, 1].map(|id| Who::Flow(FlowId(id))))
        {
            let story = |record: &Record| -> Vec<_> {
                record.events.iter().filter(|event| event.1 == who).copied().collect()
            };
            assert_eq!(story(&ordered), story(&late), "{} {} {who:?}", world.queue, world.loss);
        }
    }
}

#[test]
fn what_was_before_a_sample_is_told_before_it() {
    for world in worlds() {
        let record = world.run(false);
        let mut sampled = Time::ZERO;
        for (at, _, kind, ..) in record.events {
            assert!(at >= sampled, "{kind} of {at} comes after the sample of {sampled}");
            if kind == "sample" {
                sampled = at;
            }
        }
    }
}

/// The packets of a FIFO wait in the ring of the line behind it, unless the medium may lose some.
/// This makes no difference to any event.
#[test]
fn a_fifo_waits_within_its_line_as_beside_it() {
    for queue in ["pfifo limit 20", "bfifo limit 30000"] {
        let world = World { queue, loss: "none", own_delay: Span::ZERO, links: 2 };
        let beside = World { loss: "random 0%", ..world };
        assert!(world.run(true).events == beside.run(true).events, "{queue}");
    }
}
