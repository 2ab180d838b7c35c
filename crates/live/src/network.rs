//! The links between the hosts, driven by the times at which real packets come in.
//!
//! A packet enters at the time at which it was read. From then on everything has a computed time: when
//! it leaves the queue, when it comes out, when it enters the next link. So the bottleneck is exact
//! however late it is called; only what comes out is then late.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use sojourn_core::{Direction, Observer, PortId, QueueSample, Span, StreamAddress, Time};
use sojourn_scenario::Scenario;
use sojourn_wire::{Books, Exit, Wire};

use crate::frame::Frame;

pub(crate) struct Network {
    wires: Vec<Wire<Frame>>,
    /// Of each flow, there and back.
    ways: Vec<[Way; 2]>,
    /// Packets in the propagation that only their flow has.
    own: BinaryHeap<Reverse<Due>>,
    /// How many ever entered `own`: those of one moment keep their order.
    entered: u64,
}

/// The way of a flow in one direction: ports, and propagation after them.
struct Way {
    ports: Vec<PortId>,
    delay: Span,
}

struct Due {
    at: Time,
    number: u64,
    frame: Frame,
}

impl Network {
    pub(crate) fn new(scenario: &Scenario, address: StreamAddress) -> Self {
        let links = scenario.links.iter().zip((0..).map(PortId));
        let way = |ports: &[PortId], delay| Way { ports: ports.to_vec(), delay };
        let ways = scenario.flows.iter().map(|flow| {
            [way(&flow.forward, flow.forward_delay), way(&flow.reverse, flow.reverse_delay)]
        });
        Self {
            wires: links
                .map(|(link, port)| {
                    let mut wire = Wire::new(link, port, Exit::Onward, address);
                    wire.expect_offload();
                    wire
                })
                .collect(),
            ways: ways.collect(),
            own: BinaryHeap::new(),
            entered: 0,
        }
    }

    /// A packet leaves its host.
    pub(crate) fn enter(&mut self, now: Time, frame: Frame, observer: &mut impl Observer) {
        let arrived = self.pass_on(now, frame, observer);
        if let Some(frame) = arrived {
            // A way without links and without propagation takes no time.
            self.delay(now, frame);
        }
    }

    /// When something happens next.
    pub(crate) fn next_wake(&self) -> Time {
        let own = self.own.peek().map_or(Time::NEVER, |Reverse(due)| due.at);
        self.wires.iter().map(Wire::next_wake).fold(own, Time::min)
    }

    /// The next packet that has come to its host by `now`, and when it did.
    pub(crate) fn next_arrival(
        &mut self,
        now: Time,
        observer: &mut impl Observer,
    ) -> Option<(Time, Frame)> {
        loop {
            let own = self.own.peek().map_or(Time::NEVER, |Reverse(due)| due.at);
            let wires = self.wires.iter().map(Wire::next_wake).enumerate();
            let (first, at) = wires.min_by_key(|(_, at)| *at).unwrap_or((0, Time::NEVER));
            if own.min(at) > now {
                return None;
            }
            if own <= at {
                return self.own.pop().map(|Reverse(due)| (due.at, due.frame));
            }
            let wire = &mut self.wires[first];
            let frame = wire.under_way().pop_due(at);
            wire.settle(at, observer);
            let Some(frame) = frame else { continue };
            if let Some(frame) = self.pass_on(at, frame, observer) {
                return Some((at, frame));
            }
        }
    }

    /// A packet enters the next link of its way, or its flow's own propagation; given back if neither is
    /// left.
    fn pass_on(&mut self, at: Time, frame: Frame, observer: &mut impl Observer) -> Option<Frame> {
        let packet = &frame.packet;
        let way = &self.ways[packet.flow.index()][packet.direction as usize];
        match way.ports.get(usize::from(packet.hop)) {
            Some(port) => {
                let wire = &mut self.wires[port.index()];
                wire.settle(at, observer);
                wire.offer(at, &frame, observer);
                wire.settle(at, observer);
                None
            }
            None if way.delay.is_zero() => Some(frame),
            None => {
                self.delay(at + way.delay, frame);
                None
            }
        }
    }

    fn delay(&mut self, at: Time, frame: Frame) {
        self.own.push(Reverse(Due { at, number: self.entered, frame }));
        self.entered += 1;
    }

    /// Hands over the packets that were dropped or lost since the last call.
    pub(crate) fn take_lost(&mut self, mut take: impl FnMut(Frame)) {
        self.wires.iter_mut().for_each(|wire| wire.take_lost(&mut take));
    }

    /// Lets every link do what is due by `now`, and shows what `tc -s` would.
    pub(crate) fn sample(
        &mut self,
        now: Time,
        observer: &mut impl Observer,
    ) -> Vec<(PortId, QueueSample)> {
        let sampled = self.wires.iter_mut().map(|wire| {
            wire.settle(now, observer);
            wire.sample(now)
        });
        (0..).map(PortId).zip(sampled).collect()
    }

    /// The lines that `tc -s qdisc` would print below the counters that every discipline has, of each link.
    pub(crate) fn details(&self) -> Vec<Vec<(&'static str, u64)>> {
        self.wires.iter().map(Wire::queue_details).collect()
    }

    /// Where the bytes are that were offered to each link.
    pub(crate) fn books(&self) -> Vec<Books> {
        self.wires.iter().map(Wire::books).collect()
    }

    /// Bytes in the propagation that only their flows have.
    pub(crate) fn in_own_propagation(&self) -> u64 {
        self.own.iter().map(|Reverse(due)| u64::from(due.frame.packet.wire_len)).sum()
    }
}

/// The position of a direction's way.
const _: () = assert!(Direction::Forward as usize == 0 && Direction::Reverse as usize == 1);

impl PartialEq for Due {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Due {}

impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Due {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.at, self.number).cmp(&(other.at, other.number))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use sojourn_core::{Body, ContentId, Ecn, FlowId, HostId, NoObserver, Packet};
    use sojourn_link::RateConfig;
    use sojourn_scenario::{App, Flow, Host, Until};
    use sojourn_wire::Link;

    use super::*;
    use crate::frame::{Bytes, Part};

    const ADDRESS: StreamAddress = StreamAddress { seed: 1, run: 1 };

    /// Two links in a row, the second with loss, and a propagation of the flow's own.
    fn scenario() -> Scenario {
        let queue = sojourn_qdisc::Config::parse("fq_codel limit 20").expect("a queue");
        let link = |name: &str, mbps: u64| {
            let rate = sojourn_core::Rate::from_bps(mbps * 1_000_000);
            let rate = RateConfig::Fixed { rate, framing: sojourn_core::Framing::default() };
            Link::new(name, queue.clone(), rate, Span::from_millis(5))
        };
        let mut second = link("second", 8);
        second.loss = sojourn_link::LossConfig::parse("10%").expect("a loss");
        let mut flow = Flow::new("a", App::Ping(Default::default()), &[0, 1], &[]);
        flow.forward_delay = Span::from_millis(3);
        Scenario {
            duration: Span::from_secs(1),
            until: Until::Duration,
            warmup: Span::ZERO,
            step: Span::from_millis(100),
            hosts: ["a", "b"].map(|name| Host { name: name.into() }).into(),
            links: vec![link("first", 10), second],
            carriers: Vec::new(),
            flows: vec![flow],
            changes: Vec::new(),
        }
    }

    fn packet(number: u32, direction: Direction, now: Time) -> Packet {
        Packet {
            flow: FlowId(0),
            connection: 0,
            direction,
            ecn: Ecn::NotEct,
            dscp: 0,
            segments: 1,
            wire_len: 1014,
            hop: 0,
            src: HostId(0),
            dst: HostId(1),
            sent: now,
            body: Body::Opaque { number, content: ContentId(0) },
        }
    }

    proptest! {
        /// However late it is called, packets come out in order, at the times that were computed, and every
        /// place is given back.
        #[test]
        fn lateness_changes_nothing_of_what_comes_out(
            gaps in prop::collection::vec(0_u64..3_000_000, 1..200),
            late in prop::collection::vec(0_u64..40_000_000, 1..200),
        ) {
            let run = |late: &[u64]| {
                let (mut network, mut bytes) = (Network::new(&scenario(), ADDRESS), Bytes::default());
                let (mut now, mut out) = (Time::ZERO, Vec::new());
                for (number, gap) in (0..).zip(&gaps) {
                    now += Span::from_nanos(*gap);
                    let frame = Frame {
                        packet: packet(number, Direction::Forward, now),
                        bytes: bytes.keep(&[], 1),
                        part: Part::default(),
                    };
                    network.enter(now, frame, &mut NoObserver);
                    // It may be called now, or only with a later packet.
                    if late.get(number as usize).is_none_or(|late| late % 3 == 0) {
                        while let Some((at, frame)) = network.next_arrival(now, &mut NoObserver) {
                            out.push((at, frame));
                        }
                    }
                }
                let end = now + Span::from_secs(10);
                while let Some((at, frame)) = network.next_arrival(end, &mut NoObserver) {
                    out.push((at, frame));
                }
                network.take_lost(|frame| bytes.give_back(frame.bytes, 1));
                assert!(network.next_wake().is_never());
                assert_eq!(bytes.held(), out.len());
                assert!(network.books().iter().all(Books::balance));
                out.iter()
                    .map(|(at, frame)| match frame.packet.body {
                        Body::Opaque { number, .. } => (*at, number),
                        _ => unreachable!("it was sent so"),
                    })
                    .collect::<Vec<_>>()
            };
            let [on_time, late] = [run(&[]), run(&late)];
            prop_assert_eq!(&on_time, &late);
            prop_assert!(on_time.is_sorted());
            prop_assert!(on_time.windows(2).all(|pair| pair[0].1 < pair[1].1));
        }
    }

    #[test]
    fn a_way_without_links_takes_no_time() {
        let mut network = Network::new(&scenario(), ADDRESS);
        let now = Time::ZERO + Span::from_millis(7);
        let frame = Frame {
            packet: packet(0, Direction::Reverse, now),
            bytes: Bytes::default().keep(&[], 1),
            part: Part::default(),
        };
        network.enter(now, frame, &mut NoObserver);
        let arrived = network.next_arrival(now, &mut NoObserver).map(|(at, _)| at);
        assert_eq!(arrived, Some(now));
    }
}
