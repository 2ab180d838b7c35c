//! Links do their work late, when somebody needs the result, and so do sources of datagrams and what takes these in.
//! What a radio gives to a link is taken out of it ahead of time. Nobody may notice.

use sojourn_core::{Event, FlowId, Observer, PortId, Rate, Span, StreamAddress, Time, Who};
use sojourn_host::apps::UdpConfig;
use sojourn_host::tcp::Config as Transport;
use sojourn_link::{LossConfig, RateConfig};
use sojourn_scenario::{App, Flow, Link, Scenario};
use sojourn_wifi::RadioConfig;
use sojourn_wifi::mac::aggregation::Limits;
use sojourn_wifi::medium::{Config as Cell, Radio, Station};
use sojourn_wifi::phy::Mode;
use sojourn_wifi::queueing::{DriverConfig, Hardware, Order, QueueConfig};

use crate::two_hosts;

/// Notes every event as time, place and kind; a packet as the time it left and its length.
#[derive(Default)]
struct Record {
    needs_order: bool,
    events: Vec<Happened>,
}

type Happened = (Time, Who, &'static str, Time, u64);

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

/// Datagrams whose times are those of rows of the time series, too, and of each other.
fn datagrams(name: &str, forward: &[u16]) -> Flow {
    let interval = Span::from_millis(1);
    let app = App::Udp(UdpConfig { interval, frame: 500, datagrams: 2, header: 28 });
    Flow { start: Span::from_millis(20), ..Flow::new(name, app, forward, &[1]) }
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
            warmup: Span::from_millis(1234),
            ..two_hosts(
                Span::from_secs(4),
                vec![
                    link("queue", 10, self.queue),
                    link("back", 10, "pfifo limit 1000"),
                    link("further", 8, self.queue),
                ],
                vec![
                    flow("a", "cubic", &[0], Span::ZERO),
                    flow("b", "bbr", &[0, 2][..usize::from(self.links)], self.own_delay),
                    datagrams("c", &[0]),
                    datagrams("d", &[2]),
                    datagrams("e", &[2]),
                ],
            )
        }
    }

    fn run(self, needs_order: bool) -> Record {
        run(self.scenario(), needs_order)
    }
}

fn run(scenario: Scenario, needs_order: bool) -> Record {
    let mut record = Record { needs_order, ..Record::default() };
    let address = StreamAddress { seed: 1, run: 1 };
    let scenario = scenario.checked().expect("a sound scenario");
    sojourn_sim::run(&scenario, address, &mut record).expect("invariants hold");
    record
}

/// A server behind a wire, and a cell whose stations receive datagrams, one a TCP flow beside them, and one sends.
fn cell(queue: QueueConfig) -> Scenario {
    let station = |mode| {
        let radio = Radio::new(Mode::parse(mode).expect("a mode"));
        let buffer = DriverConfig { limit: 50, order: Order::RoundRobin, upper: None };
        Station { down: radio, up: radio, queue: buffer, weight: Station::WEIGHT }
    };
    let stations = vec![station("ht mcs 7"), station("ht mcs 0"), station("ht mcs 15")];
    let names = (0..3).map(|number| format!("sta{number}")).collect();
    let cell = Cell::new(stations, Limits::HT, queue);
    let mut scenario =
        World { queue: "pfifo limit 1000", loss: "none", own_delay: OWN, links: 1 }.scenario();
    scenario.links.iter_mut().for_each(|link| {
        link.rate = RateConfig::fixed(Rate::from_bps(500_000_000)).expect("a positive rate");
    });
    scenario.carriers = vec![RadioConfig::new("wifi", names, cell).expect("a cell").into()];
    let flood = |name, station: u16| {
        let interval = Span::from_micros(200);
        let app = App::Udp(UdpConfig { interval, frame: 1400, datagrams: 1, header: 28 });
        Flow::new(name, app, &[0, 3 + 2 * station], &[4 + 2 * station, 1])
    };
    let tcp = Flow { forward_delay: Span::ZERO, ..scenario.flows[0].clone() };
    let ports = |ports: [u16; 2]| ports.map(PortId).to_vec();
    scenario.flows = vec![
        Flow { forward: ports([0, 3]), reverse: ports([4, 1]), ..tcp },
        flood("slow", 1),
        flood("fast", 2),
        Flow { forward: ports([8, 1]), reverse: ports([0, 7]), ..datagrams("up", &[0]) },
    ];
    scenario
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
        assert_same(&ordered, &late, &format!("{} {}", world.queue, world.loss));
    }
}

/// Each port and each end of a flow reports the same events; only how they interleave may differ.
fn assert_same(ordered: &Record, late: &Record, what: &str) {
    let ports = (0..9).map(|port| Who::Port(PortId(port)));
    let flows = (0..5).map(|id| Who::Flow(FlowId(id)));
    for (who, sent) in
        ports.map(|port| (port, false)).chain(flows.flat_map(|flow| [(flow, false), (flow, true)]))
    {
        let story = |record: &Record| -> Vec<_> {
            let here = |event: &&Happened| event.1 == who && (event.2 == "sent") == sent;
            record.events.iter().filter(here).copied().collect()
        };
        let (ordered, late) = (story(ordered), story(late));
        let differs = ordered.iter().zip(&late).position(|(a, b)| a != b);
        assert_eq!(differs.map(|at| (ordered[at], late[at])), None, "{what} {who:?}");
        assert_eq!(ordered.len(), late.len(), "{what} {who:?}");
    }
}

#[test]
fn what_enters_a_radio_late_or_leaves_it_ahead_does_what_it_would_have_done_in_time() {
    let buffer = |upper: Option<&str>| DriverConfig {
        limit: 100,
        order: Order::LosesTurns,
        upper: upper.map(|text| sojourn_qdisc::Config::parse(text).expect("a discipline")),
    };
    let two =
        |queue: DriverConfig| QueueConfig { hardware: Hardware::Aggregates(2), ..queue.into() };
    for (what, queue) in [
        ("no discipline", buffer(None).into()),
        ("fq_codel", buffer(Some("fq_codel limit 1000")).into()),
        ("fq_codel above two aggregates", two(buffer(Some("fq_codel limit 1000")))),
        ("a shaper", buffer(Some("tbf rate 20mbit burst 15000 limit 100000")).into()),
        ("mac80211", QueueConfig::mac80211()),
    ] {
        let [ordered, late] =
            [true, false].map(|needs_order| run(cell(queue.clone()), needs_order));
        let drops = late.events.iter().filter(|event| event.2 == "dropped").count();
        assert!(drops > 1000, "{what}: {drops} drops");
        assert!(ordered.events.is_sorted_by_key(|event| event.0), "{what}");
        assert_same(&ordered, &late, what);
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
