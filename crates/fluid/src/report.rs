//! Tells an observer what the curves did, in the words of the event curves.
//!
//! An event stands for several packets, so that a fast link has no more of them than a slow one. What
//! a fluid has of something that is less than a packet waits for the rest.

mod packets;

use alloc::vec;
use alloc::vec::Vec;

use sojourn_core::{
    Body, Direction, Ecn, EcnMode, Event, FlowId, FlowSample, Observer, Packet, PortId,
    QueueSample, Rate, SegmentBody, Span, TcpEcn, Time, Who,
};
use sojourn_scenario::Scenario;

use crate::curves::{
    ACKED, AT_HEAD, AT_TAIL, CAME, Curves, DROPPED, Drops, FLIGHT, IN, LOST, MARKED, MARKED_IN,
    MARKED_OUT, MEDIUM, OUT, RECEIVED, REFUSED, SENT,
};
use crate::world::{Bottleneck, Source, Stream, World};

use packets::Packets;

/// A second has about this many events of one kind of a flow, at most.
const PER_SECOND: f64 = 4000.0;

/// What has been reported, in packets.
#[derive(Clone, Debug)]
struct Told {
    sent: Count,
    again: Count,
    received: Count,
    marked: u64,
    acked: Count,
    hops: Vec<HopTold>,
    phase: &'static str,
    /// It has stopped, nothing of it is under way, and the last sample was taken.
    is_over: bool,
    /// Losses are counted in whole packets from this part of one on. Flows differ in it, so that few
    /// losses of many flows are as many packets together.
    part: f64,
    /// Of a flow whose packets go one by one.
    packets: Option<Packets>,
}

#[derive(Clone, Copy, Debug)]
struct HopTold {
    out: Count,
    tail: Lost,
    head: Lost,
    marked: Count,
}

/// What was lost at one end of a queue, and of that how much for each reason.
#[derive(Clone, Copy, Debug)]
struct Lost {
    count: Count,
    told: [u64; 3],
}

impl Lost {
    /// For which reasons so many more packets are lost; in all so many are due.
    fn split(&mut self, packets: u16, due: &[f64; 3]) -> [u16; 3] {
        let mut split = [0; 3];
        for _ in 0..packets {
            split[next_reason(due, &mut self.told)] += 1;
        }
        split
    }
}

/// The reason for which most packets are due and not yet told of, and tells of one.
fn next_reason(due: &[f64; 3], told: &mut [u64; 3]) -> usize {
    let rest = |of: usize| due[of] - told[of] as f64;
    let reasons = (0..due.len()).filter(|of| due[*of] > 0.0);
    let reason = reasons.reduce(|a, b| if rest(b) > rest(a) { b } else { a }).unwrap_or_default();
    told[reason] += 1;
    reason
}

/// How many packets of a kind have been reported.
#[derive(Clone, Copy, Debug)]
struct Count {
    packets: u64,
    /// Packets that one event stands for.
    batch: u64,
    /// Bytes of a packet, and with how many the next event is due.
    packet: f64,
    due: f64,
}

impl Count {
    fn new(packet: f64, batch: u64) -> Self {
        let mut count = Self { packets: 0, batch, packet, due: 0.0 };
        count.expect();
        count
    }

    fn expect(&mut self) {
        self.due = ((self.packets + self.batch) as f64 - 1e-5) * self.packet;
    }

    /// What one event reports of so many bytes; if asked for whatever is whole, less than a batch too.
    #[inline]
    fn take(&mut self, bytes: f64, is_whole: bool) -> Option<u16> {
        // Mostly there is not enough yet.
        if !is_whole && self.due > bytes { None } else { self.take_some(bytes, is_whole) }
    }

    fn take_some(&mut self, bytes: f64, is_whole: bool) -> Option<u16> {
        let packets = whole(bytes, self.packet).saturating_sub(self.packets);
        if packets < if is_whole { 1 } else { self.batch } {
            return None;
        }
        let packets = packets.min(u64::from(MOST));
        self.packets += packets;
        self.expect();
        Some(packets as u16)
    }
}

/// Whole packets of so many bytes.
fn whole(bytes: f64, packet: f64) -> u64 {
    (bytes / packet + 1e-6) as u64
}

pub(crate) struct Report {
    flows: Vec<Told>,
    step: Span,
    rows: u64,
    warmup: f64,
    is_warm: bool,
    /// By port of the scenario, which link it is.
    links: Vec<Option<usize>>,
    sampled: f64,
    /// Between two looks at what flows did, and the last one, in seconds.
    every: f64,
    looked: f64,
    /// By link: what waits, and its integral after the warm-up until the time.
    held: Vec<Held>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Held {
    until: f64,
    now: Waits,
    integral: Waits,
    /// What the queue had dropped and sent when the warm-up ended.
    fate: [f64; 2],
}

/// What waits in a queue.
#[derive(Clone, Copy, Debug, Default)]
struct Waits {
    bytes: f64,
    packets: f64,
}

impl Waits {
    fn now(curves: &impl Curves, link: usize) -> Self {
        let bytes = curves.backlog(link).max(0.0);
        let waits = |(_, row, _): &Here<'_>| (row[IN] - row[OUT]).max(0.0);
        Self { bytes, packets: bytes / mean_packet(curves, link, waits) }
    }
}

/// What a queue did after the warm-up, in parts of packets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AtQueue {
    /// Its position in the scenario.
    pub port: usize,
    /// Means of what waited.
    pub packets: f64,
    pub bytes: f64,
    /// Of what came, losses on the medium aside; `None` if nothing came.
    pub drop_share: Option<f64>,
}

impl Report {
    pub(crate) fn new(scenario: &Scenario, world: &World, every: f64) -> Self {
        let flows = world.flows.len() as f64;
        let told = |(at, flow): (usize, &Stream)| {
            let rate = flow.hops.iter().map(|hop| world.links[hop.link].capacity.mean());
            let packets = rate.fold(f64::INFINITY, f64::min) / flow.packet;
            let batch = if packets.is_finite() { packets / PER_SECOND } else { 8.0 };
            let count = Count::new(flow.packet, libm::ceil(batch.clamp(1.0, 1000.0)) as u64);
            let lost = Lost { count, told: [0; 3] };
            let hop = HopTold { out: count, tail: lost, head: lost, marked: count };
            let part = (at as f64 + 0.5) / flows;
            Told {
                sent: count,
                again: count,
                received: count,
                marked: 0,
                acked: count,
                hops: vec![hop; flow.hops.len()],
                phase: "",
                is_over: false,
                part,
                packets: Packets::of(flow, world, part),
            }
        };
        let port = |port: usize| world.links.iter().position(|link| link.port == port);
        Self {
            flows: world.flows.iter().enumerate().map(told).collect(),
            step: scenario.step,
            rows: 0,
            warmup: scenario.warmup.as_secs_f64(),
            is_warm: scenario.warmup.is_zero(),
            links: (0..scenario.links.len()).map(port).collect(),
            sampled: 0.0,
            every,
            looked: 0.0,
            held: vec![Held::default(); world.links.len()],
        }
    }

    /// Exact, where samples at the step and whole packets are not.
    pub(crate) fn queues(&self, curves: &impl Curves) -> Vec<AtQueue> {
        let links = self.held.iter().zip(&curves.world().links).enumerate();
        let of = |(at, (held, link)): (usize, (&Held, &Bottleneck))| {
            let time = held.until - self.warmup;
            let Waits { bytes, packets } = held.integral;
            let (bytes, packets) = (bytes / time, packets / time);
            let dropped = in_packets(curves, at, dropped) - held.fate[0];
            let came = dropped + in_packets(curves, at, sent) - held.fate[1];
            let drop_share = (came > 0.0).then(|| (dropped / came).max(0.0));
            AtQueue { port: link.port, packets, bytes, drop_share }
        };
        links.filter(|(_, (held, _))| held.until > self.warmup).map(of).collect()
    }

    /// Within a step a queue grows or falls evenly.
    fn hold(&mut self, curves: &impl Curves) {
        let now = curves.now();
        for (at, held) in self.held.iter_mut().enumerate() {
            let waits = Waits::now(curves, at);
            if self.is_warm {
                let half = 0.5 * (now - held.until);
                held.integral.bytes += half * (held.now.bytes + waits.bytes);
                held.integral.packets += half * (held.now.packets + waits.packets);
            }
            (held.until, held.now) = (now, waits);
        }
    }

    /// The next time at which a row ends or the warm-up does.
    pub(crate) fn next_stop(&self) -> f64 {
        let row = self.row_ends();
        if self.is_warm { row } else { row.min(self.warmup) }
    }

    fn row_ends(&self) -> f64 {
        (self.step * (self.rows + 1)).as_secs_f64()
    }

    pub(crate) fn on_step(
        &mut self,
        curves: &impl Curves,
        scenario: &Scenario,
        observer: &mut impl Observer,
    ) {
        self.hold(curves);
        let is_row = curves.now() >= self.row_ends();
        let ends_warmup = !self.is_warm && curves.now() >= self.warmup;
        // What happened in a row belongs before its end.
        let is_whole = is_row || ends_warmup;
        if is_whole || curves.now() - self.looked >= self.every {
            self.looked = curves.now();
            for at in 0..self.flows.len() {
                self.flow(curves, scenario, at, is_whole, observer);
            }
        }
        for (at, link) in curves.world().links.iter().enumerate() {
            if curves.backlog(at) > 0.0 {
                let Some((_, packet)) = any_packet(curves, scenario, at) else { continue };
                let backlog = libm::round(Waits::now(curves, at).packets) as u32;
                let event = Event::Enqueued { packet: &packet, backlog };
                observer.record(just_before(curves.now()), Who::Port(port(link.port)), &event);
            }
        }
        if ends_warmup {
            self.is_warm = true;
            for (at, held) in self.held.iter_mut().enumerate() {
                held.fate = [in_packets(curves, at, dropped), in_packets(curves, at, sent)];
            }
            for (place, at) in self.links.iter().enumerate() {
                let sample = queue_sample(curves, *at);
                let event = Event::WarmQueueSample(&sample);
                observer.record(time(curves.now()), Who::Port(port(place)), &event);
            }
        }
        if is_row {
            self.rows += 1;
            self.samples(curves, observer);
        }
    }

    pub(crate) fn finish(
        &mut self,
        curves: &impl Curves,
        scenario: &Scenario,
        observer: &mut impl Observer,
    ) {
        for at in 0..self.flows.len() {
            self.flow(curves, scenario, at, true, observer);
        }
        if curves.now() > self.sampled {
            self.samples(curves, observer);
        }
    }

    fn samples(&mut self, curves: &impl Curves, observer: &mut impl Observer) {
        self.sampled = curves.now();
        let now = time(curves.now());
        for (at, flow) in curves.world().flows.iter().enumerate() {
            if !self.flows[at].is_over
                && let Some(sample) = flow_sample(curves, at)
            {
                let who = Who::Flow(FlowId(flow.id as u32));
                observer.record(now, who, &Event::FlowSample(&sample));
                self.flows[at].is_over = curves.now() >= flow.ends && sample.unacked == 0;
            }
        }
        for (place, at) in self.links.iter().enumerate() {
            let sample = queue_sample(curves, *at);
            observer.record(now, Who::Port(port(place)), &Event::QueueSample(&sample));
        }
    }

    fn flow(
        &mut self,
        curves: &impl Curves,
        scenario: &Scenario,
        at: usize,
        is_whole: bool,
        observer: &mut impl Observer,
    ) {
        let flow = &curves.world().flows[at];
        let told = &mut self.flows[at];
        if let Some(packets) = &mut told.packets {
            return packets.look(curves, scenario, at, observer);
        }
        let now = just_before(curves.now());
        let who = Who::Flow(FlowId(flow.id as u32));
        let row = curves.of_flow(at);
        let part = told.part * flow.packet;
        let first = told.sent.packets as u32;
        let body = |again: bool| {
            Body::Segment(SegmentBody {
                first,
                byte: u64::from(first) * u64::from(flow.payload),
                payload: flow.payload,
                retransmission: again,
                ecn: TcpEcn::NONE,
                push: false,
                fin: false,
                echo: Time::ZERO,
            })
        };
        // What was lost is sent again, and counts among what is sent.
        let again = row[LOST].min(row[SENT]);
        while let Some(packets) = told.again.take(again, is_whole) {
            let packet = packet_of(flow, scenario, packets, now, body(true));
            observer.record(now, who, &Event::Sent { packet: &packet });
        }
        while let Some(packets) = told.sent.take(row[SENT] - again, is_whole) {
            let packet = packet_of(flow, scenario, packets, now, body(false));
            observer.record(now, who, &Event::Sent { packet: &packet });
        }
        let mut delay = flow.to_receiver;
        for (index, hop) in flow.hops.iter().enumerate() {
            let link = Who::Port(port(curves.world().links[hop.link].port));
            let row = curves.of_hop(at, index);
            let sojourn = (curves.now() - row[CAME]).max(0.0);
            delay += hop.before + sojourn;
            let told = &mut told.hops[index];
            let mut stays = 0.0;
            if row[REFUSED] + row[DROPPED] > 0.0 {
                let Drops { tail, head } = curves.drops(at, index);
                stays = row[DROPPED] - head[MEDIUM];
                let ends = [
                    (&mut told.tail, row[REFUSED], tail, AT_TAIL),
                    (&mut told.head, row[DROPPED], head, AT_HEAD),
                ];
                for (lost, bytes, by_reason, reasons) in ends {
                    let begun = if bytes > 0.0 { part } else { 0.0 };
                    while let Some(packets) = lost.count.take(bytes + begun, is_whole) {
                        let due = by_reason.map(|bytes| bytes / flow.packet);
                        for (why, packets) in reasons.into_iter().zip(lost.split(packets, &due)) {
                            if packets > 0 {
                                let packet = packet_of(flow, scenario, packets, now, body(false));
                                let event = Event::Dropped { packet: &packet, why };
                                observer.record(now, link, &event);
                            }
                        }
                    }
                }
            }
            while let Some(packets) = told.marked.take(row[MARKED_IN] + row[MARKED_OUT], is_whole) {
                let packet = packet_of(flow, scenario, packets, now, body(false));
                observer.record(now, link, &Event::Marked { packet: &packet });
            }
            while let Some(packets) = told.out.take(row[OUT] - stays, is_whole) {
                let packet = packet_of(flow, scenario, packets, now, body(false));
                observer.record(
                    now,
                    link,
                    &Event::Dequeued { packet: &packet, sojourn: span(sojourn) },
                );
            }
        }
        let left = Time::from_nanos(now.as_nanos().saturating_sub(span(delay).as_nanos()));
        while let Some(packets) = told.received.take(row[RECEIVED], is_whole) {
            let arrive = |packets: u16, ecn: Ecn, observer: &mut _| {
                let packet =
                    Packet { ecn, ..packet_of(flow, scenario, packets, left, body(false)) };
                Observer::record(observer, now, who, &Event::Arrived { packet: &packet });
            };
            let marked =
                whole(row[MARKED], flow.packet).saturating_sub(told.marked).min(packets.into());
            told.marked += marked;
            if marked > 0 {
                arrive(marked as u16, Ecn::Ce, observer);
            }
            if u64::from(packets) > marked {
                arrive(packets - marked as u16, Ecn::NotEct, observer);
            }
            let bytes = u64::from(packets) * u64::from(flow.payload);
            observer.record(now, who, &Event::Delivered { bytes });
        }
        let Some(sender) = curves.sender(at) else { return };
        while let Some(_packets) = told.acked.take(row[ACKED], is_whole) {
            observer.record(now, who, &Event::Rtt { rtt: span(sender.rtt) });
        }
        let phase = sender.phase;
        if phase != told.phase {
            observer.record(now, who, &Event::Phase { from: told.phase, to: phase });
            told.phase = phase;
        }
    }
}

/// Segments of one packet.
const MOST: u16 = 1000;

fn packet_of(flow: &Stream, scenario: &Scenario, packets: u16, sent: Time, body: Body) -> Packet {
    Packet {
        flow: FlowId(flow.id as u32),
        connection: 0,
        direction: Direction::Forward,
        ecn: Ecn::NotEct,
        dscp: scenario.flows[flow.id].dscp,
        segments: packets,
        wire_len: flow.wire * u32::from(packets),
        hop: 0,
        src: scenario.flows[flow.id].src,
        dst: scenario.flows[flow.id].dst,
        sent,
        body: match body {
            Body::Segment(segment) => {
                Body::Segment(SegmentBody { payload: flow.payload * u32::from(packets), ..segment })
            }
            other => other,
        },
    }
}

/// A packet of some flow that crosses the link.
fn any_packet(curves: &impl Curves, scenario: &Scenario, link: usize) -> Option<(usize, Packet)> {
    let crosses = |flow: &Stream| flow.hops.iter().any(|hop| hop.link == link);
    let at = curves.world().flows.iter().position(crosses)?;
    let flow = &curves.world().flows[at];
    let body = Body::Datagram { number: 0, frame: 0, last: true };
    Some((at, packet_of(flow, scenario, 1, time(curves.now()), body)))
}

fn flow_sample(curves: &impl Curves, at: usize) -> Option<FlowSample> {
    let flow = &curves.world().flows[at];
    let sender = curves.sender(at)?;
    let row = curves.of_flow(at);
    let shown = sender.shown;
    let packets = |bytes: f64| (bytes / flow.packet + 0.5) as u32;
    // Rates are those of payload, as the kernel has them.
    let payload = f64::from(flow.payload) / flow.packet;
    let rate = |bytes: f64| Rate::from_bps((bytes * payload * 8.0) as u64);
    let Source::Tcp { has_ecn, .. } = &flow.source else { return None };
    Some(FlowSample {
        cwnd: packets(sender.window),
        ssthresh: shown.ssthresh.map(packets),
        pacing_rate: sender.pacing.map(rate),
        delivery_rate: rate(sender.bw),
        srtt: span(sender.rtt),
        min_rtt: sender.least_rtt.is_finite().then(|| span(sender.least_rtt)),
        unacked: packets(row[FLIGHT]),
        retrans_total: packets(row[LOST]).into(),
        lost_total: Some(packets(row[LOST]).into()),
        delivered: packets(row[ACKED]).into(),
        delivered_ce: packets(row[MARKED]).into(),
        bytes_sent: (row[SENT] * payload) as u64,
        bytes_retrans: (row[LOST] * payload) as u64,
        bytes_acked: (row[ACKED] * payload) as u64,
        ecn: if *has_ecn { EcnMode::AccEcn } else { EcnMode::Disabled },
        ecn_seen: *has_ecn,
        phase: sender.phase,
        bw: shown.bw.map(rate),
        model_min_rtt: shown.min_rtt.map(span),
        inflight_longterm: shown.inflight_longterm.map(packets),
        rounds: shown.rounds,
        ..FlowSample::default()
    })
}

/// `None` is a link without a queue.
fn queue_sample(curves: &impl Curves, link: Option<usize>) -> QueueSample {
    let Some(at) = link else {
        return QueueSample { capacity: Rate::UNLIMITED, ..QueueSample::default() };
    };
    let link = &curves.world().links[at];
    let carried = all(curves, at, sent);
    let packets = |of: &dyn Fn(&Here<'_>) -> f64| in_packets(curves, at, of) as u64;
    let waits = Waits::now(curves, at);
    QueueSample {
        packets: libm::round(waits.packets) as u32,
        joined: 0,
        bytes: libm::round(waits.bytes) as u64,
        head_wait: span(curves.sojourn(at)),
        sent_packets: packets(&sent),
        sent_bytes: carried as u64,
        dropped: packets(&|(_, row, _)| row[REFUSED] + row[DROPPED]),
        marked: packets(&|(_, row, _)| row[MARKED_IN] + row[MARKED_OUT]),
        capacity: Rate::from_bps((link.capacity.rate_at(curves.now()) * 8.0 + 0.5) as u64),
        medium_bytes: carried as u64,
        capacity_bytes: Some(link.capacity.until(curves.now())),
        air: None,
    }
}

/// A flow at a link: the bytes of its packets, its row, and what of it was lost.
type Here<'a> = (f64, &'a [f64], Drops);

fn rows<C: Curves>(curves: &C, link: usize) -> impl Iterator<Item = Here<'_>> {
    let flows = curves.world().flows.iter().enumerate();
    flows.flat_map(move |(flow, it)| {
        let here = it.hops.iter().enumerate().filter(move |(_, hop)| hop.link == link);
        here.map(move |(hop, _)| (it.packet, curves.of_hop(flow, hop), curves.drops(flow, hop)))
    })
}

fn all(curves: &impl Curves, link: usize, of: impl Fn(&Here<'_>) -> f64) -> f64 {
    rows(curves, link).map(|here| of(&here)).sum()
}

/// How many bytes a packet has on average among so many bytes of each flow.
fn mean_packet(curves: &impl Curves, link: usize, of: impl Fn(&Here<'_>) -> f64) -> f64 {
    let Bottleneck { packet: largest, has_smaller, .. } = curves.world().links[link];
    if !has_smaller {
        return largest;
    }
    let bytes = all(curves, link, &of);
    let packets: f64 = rows(curves, link).map(|here| of(&here) / here.0).sum();
    if packets > 0.0 { bytes / packets } else { largest }
}

/// What of a flow at a link its queue has dropped.
fn dropped((_, _, drops): &Here<'_>) -> f64 {
    drops.at_queue()
}

/// What of a flow at a link its queue has sent, and the medium may have lost.
fn sent((_, row, drops): &Here<'_>) -> f64 {
    row[OUT] - row[DROPPED] + drops.head[MEDIUM]
}

fn in_packets(curves: &impl Curves, link: usize, of: impl Fn(&Here<'_>) -> f64) -> f64 {
    all(curves, link, &of) / mean_packet(curves, link, &of)
}

fn port(place: usize) -> PortId {
    PortId(place as u16)
}

/// Steps end at whole nanoseconds of rows; rounding must not move them before.
fn time(seconds: f64) -> Time {
    Time::from_nanos((seconds * 1e9 + 0.5) as u64)
}

fn just_before(seconds: f64) -> Time {
    Time::from_nanos(time(seconds).as_nanos().saturating_sub(1))
}

fn span(seconds: f64) -> Span {
    Span::from_nanos((seconds.max(0.0) * 1e9 + 0.5) as u64)
}
