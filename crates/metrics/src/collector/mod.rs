//! The observer that every run carries.
//!
//! Each packet costs an index, an addition or two and at most one count in a histogram. One
//! comparison per event finds the steps of the time series and the end of the warm-up. Counters run
//! over the whole run and are copied when the warm-up ends; histograms are emptied then. Memory is
//! bounded by steps and flows, not by packets.

mod air;
mod datagrams;
mod digest;
mod flow;
mod frames;
mod freezes;
mod gaps;
mod held;
mod link;
mod media;
mod offsets;
mod phases;
mod recent;
mod transfers;

use alloc::string::String;
use alloc::vec::Vec;

use sojourn_core::{
    Body, DropReason, Event, FlowId, Observer, Packet, PortId, RtpBody, Span, Time, Who,
};

use self::digest::Digest;
use self::flow::FlowState;
use self::link::LinkState;
use crate::outcome::{FlowKind, FlowMetrics, LinkMetrics, RunMetrics, Timing, Totals};
use crate::qoe::EmptyPath;
use crate::series::{Outline, Rows, Series};
use crate::stats;

/// What is to be observed.
#[derive(Clone, Debug)]
pub struct Shape {
    /// In the order of [`FlowId`].
    pub flows: Vec<FlowShape>,
    /// In the order of [`Who::Port`].
    pub links: Vec<LinkShape>,
    pub duration: Span,
    /// Distributions and rates cover the time after this.
    pub warmup: Span,
    /// Between rows of the time series; zero for none.
    pub step: Span,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowShape {
    pub name: String,
    pub kind: FlowKind,
    /// The path of its transfers without other traffic; without it they have no slowdown.
    pub empty: Option<EmptyPath>,
    /// Bytes that it transfers over its only connection, if they are limited.
    pub transfer: Option<u64>,
    /// When it stops, if it does before the run's end.
    pub stop: Option<Span>,
    /// Nothing says how much its application has written, where that is not counted: it writes without an end, and no buffer limits it.
    pub writes_without_limit: bool,
}

impl FlowShape {
    pub fn tcp(name: impl Into<String>) -> Self {
        Self::of(FlowKind::Tcp, name.into())
    }

    pub fn arrivals(name: impl Into<String>) -> Self {
        Self::of(FlowKind::Arrivals, name.into())
    }

    pub fn page(name: impl Into<String>) -> Self {
        Self::of(FlowKind::Page, name.into())
    }

    pub fn requests(name: impl Into<String>) -> Self {
        Self::of(FlowKind::Requests, name.into())
    }

    pub fn rpm(name: impl Into<String>) -> Self {
        Self::of(FlowKind::Rpm, name.into())
    }

    pub fn udp(name: impl Into<String>) -> Self {
        Self::of(FlowKind::Udp, name.into())
    }

    pub fn ping(name: impl Into<String>) -> Self {
        Self::of(FlowKind::Ping, name.into())
    }

    const fn of(kind: FlowKind, name: String) -> Self {
        Self { name, kind, empty: None, transfer: None, stop: None, writes_without_limit: false }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkShape {
    pub name: String,
}

/// Turns the events of a run into [`RunMetrics`].
#[derive(Clone, Debug)]
pub struct Collector {
    /// The next moment at which a row ends or the warm-up does.
    tick: Time,
    flows: Vec<FlowState>,
    links: Vec<LinkState>,
    warmup: Time,
    is_warm: bool,
    row_began: Time,
    row_ends: Time,
    step: Span,
    rows: Rows,
    names: Names,
}

#[derive(Clone, Debug)]
struct Names {
    flows: Vec<FlowShape>,
    links: Vec<LinkShape>,
}

impl Collector {
    pub fn new(shape: Shape) -> Self {
        let warmup = Time::ZERO + shape.warmup;
        let row_ends = if shape.step.is_zero() { Time::NEVER } else { Time::ZERO + shape.step };
        let is_warm = shape.warmup.is_zero();
        Self {
            tick: if is_warm { row_ends } else { row_ends.min(warmup) },
            flows: (shape.flows.iter())
                .map(|flow| FlowState::new(warmup, flow, shape.flows.len()))
                .collect(),
            links: shape.links.iter().map(|_| LinkState::new(warmup, shape.flows.len())).collect(),
            warmup,
            is_warm,
            row_began: Time::ZERO,
            row_ends,
            step: shape.step,
            rows: Rows::new(shape.flows.len(), shape.links.len(), shape.step),
            names: Names { flows: shape.flows, links: shape.links },
        }
    }

    /// Every packet that is lost comes as [`Event::Dropped`], so one that was overtaken and has not arrived at the
    /// end may still be under way. Without it, it counts as lost.
    pub fn expecting_all_drops(mut self) -> Self {
        self.flows.iter_mut().for_each(FlowState::expect_all_drops);
        self
    }

    /// [`Series::rows_in_piece`] rows of the time series, if as many are complete: then they are no longer
    /// kept, and [`RunMetrics::series`] has only what was not taken. Everything else is as if they had stayed.
    /// To be asked after a sample was recorded.
    #[inline]
    pub fn take_rows(&mut self) -> Option<Series> {
        self.rows.has_piece().then(|| self.rows.take_piece())
    }

    /// Closes the books at `end`, the end of the run. A run that ends within its warm-up has whole-run
    /// counters and a series, and nothing else.
    pub fn finish(mut self, end: Time) -> RunMetrics {
        if end >= self.tick {
            self.advance(end);
        }
        if end > self.row_began && !self.row_ends.is_never() {
            self.close_row(end);
        }
        if !self.is_warm {
            self.end_warmup();
        }
        let mut digest = Digest::default();
        self.flows.iter().for_each(|flow| flow.mix(&mut digest));
        self.links.iter().for_each(|link| link.mix(&mut digest));
        let window = end.since(self.warmup);
        let flows: Vec<FlowMetrics> = self
            .flows
            .into_iter()
            .zip(self.names.flows)
            .map(|(state, shape)| state.finish(shape, end, window))
            .collect();
        let mut links: Vec<LinkMetrics> = self
            .links
            .into_iter()
            .zip(self.names.links)
            .map(|(state, shape)| state.finish(shape.name, end, window))
            .collect();
        air::share_out(&mut links);
        let (series, outline) = self.rows.finish();
        let mut run = RunMetrics {
            totals: Totals::default(),
            flows,
            links,
            series,
            digest: digest.value(),
            end,
            window,
            timing: Timing::default(),
        };
        run.totals = totals(&run, &outline, self.warmup);
        let from = self.warmup.since(Time::ZERO);
        for (index, flow) in run.flows.iter_mut().enumerate() {
            flow.goodput_1s_mbps = outline.goodput_over(Span::from_secs(1), from, index);
        }
        for flow in run.flows.iter_mut().filter(|flow| flow.kind.is_tcp()) {
            let goodput = flow.value("goodput_mbps").unwrap_or(0.0);
            let sum = run.totals.tcp_goodput_sum_mbps;
            flow.share = (sum > 0.0).then(|| goodput / sum);
        }
        run
    }

    /// Ends every row and the warm-up that end by `now`.
    #[cold]
    #[inline(never)]
    fn advance(&mut self, now: Time) {
        while self.tick <= now {
            if !self.is_warm && self.warmup < self.row_ends {
                self.end_warmup();
            } else {
                self.close_row(self.row_ends);
                self.row_ends += self.step;
            }
            self.tick = if self.is_warm { self.row_ends } else { self.row_ends.min(self.warmup) };
            if self.tick.is_never() {
                return;
            }
        }
    }

    /// Apart from [`Collector::enqueued`], which so has nothing to keep for after a call.
    #[cold]
    #[inline(never)]
    fn enqueued_in_next_row(&mut self, now: Time, port: PortId, backlog: u32) {
        self.advance(now);
        self.links[port.index()].on_enqueued(backlog);
    }

    /// The same of [`Collector::dequeued`].
    #[cold]
    #[inline(never)]
    fn dequeued_in_next_row(&mut self, now: Time, port: PortId, packet: &Packet, sojourn: Span) {
        self.advance(now);
        self.links[port.index()].on_dequeued(packet, sojourn);
    }

    /// The same of [`Collector::dropped`].
    #[cold]
    #[inline(never)]
    fn dropped_in_next_row(&mut self, now: Time, port: PortId, packet: &Packet, why: DropReason) {
        self.advance(now);
        self.on_dropped(now, port, packet, why);
    }

    fn end_warmup(&mut self) {
        self.is_warm = true;
        self.flows.iter_mut().for_each(|flow| flow.end_warmup(self.warmup));
        self.links.iter_mut().for_each(LinkState::end_warmup);
    }

    #[inline]
    fn on_dropped(&mut self, now: Time, place: PortId, packet: &Packet, why: DropReason) {
        if let Body::Rtp(rtp) = &packet.body {
            return self.on_media_dropped(now, place, (packet, rtp), why);
        }
        self.links[place.index()].on_dropped(now, packet, why);
        self.flows[packet.flow.0 as usize].on_dropped(packet);
    }

    /// Apart from the others, which need to know neither when nor where.
    #[inline(never)]
    fn on_media_dropped(
        &mut self,
        now: Time,
        place: PortId,
        (packet, rtp): (&Packet, &RtpBody),
        why: DropReason,
    ) {
        self.links[place.index()].on_dropped(now, packet, why);
        let flow = &mut self.flows[packet.flow.0 as usize];
        flow.on_dropped(packet);
        flow.datagrams.media().freezes.on_dropped(now, place, why, packet, rtp);
    }

    #[inline(never)]
    fn on_marked(&mut self, now: Time, place: PortId, packet: &Packet) {
        self.links[place.index()].on_marked(now, packet);
        self.flows[packet.flow.0 as usize].on_marked(packet);
    }

    fn close_row(&mut self, end: Time) {
        let length = end.since(self.row_began);
        self.rows.end(end.as_secs_f64());
        for (index, flow) in self.flows.iter_mut().enumerate() {
            flow.close_row(end, length, self.rows.begin_flow(index));
        }
        for (index, link) in self.links.iter_mut().enumerate() {
            link.close_row(length, self.rows.begin_link(index));
        }
        self.row_began = end;
    }
}

impl Observer for Collector {
    /// Always inlined: the caller knows the kind of the event, so the compiler removes the match.
    #[inline(always)]
    fn record(&mut self, now: Time, who: Who, event: &Event<'_>) {
        if now >= self.tick {
            self.advance(now);
        }
        match who {
            Who::Flow(FlowId(id)) => {
                let flow = &mut self.flows[id as usize];
                match event {
                    Event::Sent { packet } => flow.on_sent(now, packet),
                    Event::Arrived { packet } => flow.on_arrived(now, packet),
                    Event::Delivered { bytes } => flow.on_delivered(*bytes),
                    Event::Rtt { rtt } => flow.on_rtt(*rtt),
                    Event::Phase { from, to } => flow.on_phase(now, from, to),
                    Event::Ping { rtt } => flow.on_ping(now, *rtt),
                    Event::Opened { bytes } => flow.transfers.on_opened(now, *bytes),
                    Event::Refused { bytes } => flow.transfers.on_refused(*bytes),
                    Event::Completed { bytes, took } => flow.on_completed(now, *bytes, *took),
                    Event::Frame(frame) => flow.datagrams.on_frame(now, frame),
                    Event::Nack { packets } => flow.datagrams.media().on_nack(*packets),
                    Event::Asked { sequence } => {
                        flow.datagrams.media().freezes.on_asked(now, *sequence);
                    }
                    Event::Content { .. } => {}
                    Event::Voice(voice) => flow.datagrams.media().on_voice(voice),
                    Event::Fec(fec) => flow.datagrams.media().on_fec(**fec),
                    Event::KeyRequest => flow.datagrams.media().on_key_request(),
                    Event::RateControl(control) => flow.datagrams.media().on_rate_control(control),
                    Event::Responsiveness(result) => flow.on_responsiveness(now, result),
                    Event::FlowSample(sample) => {
                        if flow.on_sample(now, sample) {
                            self.rows.set_flow(id as usize, sample);
                        }
                    }
                    Event::Enqueued { .. }
                    | Event::Dequeued { .. }
                    | Event::Dropped { .. }
                    | Event::Marked { .. }
                    | Event::QueueSample(_)
                    | Event::WarmQueueSample(_) => debug_assert!(false, "{event:?} of a flow"),
                }
            }
            Who::Port(place) => {
                let link = &mut self.links[place.index()];
                match event {
                    Event::Enqueued { backlog, .. } => link.on_enqueued(*backlog),
                    Event::Dequeued { packet, sojourn } => link.on_dequeued(packet, *sojourn),
                    Event::Dropped { packet, why } => self.dropped(now, place, packet, *why),
                    Event::Marked { packet } => self.on_marked(now, place, packet),
                    Event::QueueSample(sample) => {
                        link.on_sample(now, sample);
                        self.rows.set_link(place.index(), sample);
                    }
                    Event::WarmQueueSample(sample) => link.on_medium(now, sample),
                    Event::Sent { .. }
                    | Event::Arrived { .. }
                    | Event::Delivered { .. }
                    | Event::Rtt { .. }
                    | Event::Phase { .. }
                    | Event::Ping { .. }
                    | Event::Opened { .. }
                    | Event::Refused { .. }
                    | Event::Completed { .. }
                    | Event::Frame(_)
                    | Event::Nack { .. }
                    | Event::Asked { .. }
                    | Event::Content { .. }
                    | Event::KeyRequest
                    | Event::Fec(_)
                    | Event::Voice(_)
                    | Event::RateControl(_)
                    | Event::Responsiveness(_)
                    | Event::FlowSample(_) => debug_assert!(false, "{event:?} of a link"),
                }
            }
        }
    }

    #[inline]
    fn enqueued(&mut self, now: Time, port: PortId, _: &Packet, backlog: u32) {
        if now >= self.tick {
            return self.enqueued_in_next_row(now, port, backlog);
        }
        self.links[port.index()].on_enqueued(backlog);
    }

    #[inline]
    fn dequeued(&mut self, now: Time, port: PortId, packet: &Packet, sojourn: Span) {
        if now >= self.tick {
            return self.dequeued_in_next_row(now, port, packet, sojourn);
        }
        self.links[port.index()].on_dequeued(packet, sojourn);
    }

    #[inline(always)]
    fn passed(&mut self, now: Time, port: PortId, _: &Packet, leaves: &Packet) {
        if now >= self.tick {
            self.advance(now);
        }
        let link = &mut self.links[port.index()];
        link.on_enqueued(1);
        link.on_dequeued(leaves, Span::ZERO);
    }

    #[inline(never)]
    fn dropped(&mut self, now: Time, port: PortId, packet: &Packet, why: DropReason) {
        if now >= self.tick {
            return self.dropped_in_next_row(now, port, packet, why);
        }
        self.on_dropped(now, port, packet, why);
    }
}

fn totals(run: &RunMetrics, outline: &Outline, warmup: Time) -> Totals {
    let goodput = |flow: &FlowMetrics| flow.value("goodput_mbps").unwrap_or(0.0);
    let tcp = || run.flows.iter().filter(|flow| flow.kind.is_tcp());
    // Flows of transfers that come and go take what they want, so they are not compared.
    let lasting: Vec<usize> =
        (0..run.flows.len()).filter(|at| run.flows[*at].kind == FlowKind::Tcp).collect();
    let shares: Vec<f64> = lasting.iter().map(|at| goodput(&run.flows[*at])).collect();
    let from = warmup.since(Time::ZERO);
    let second = Span::from_secs(1);
    let mut step_goodput = Vec::new();
    for (at, _) in run.flows.iter().enumerate().filter(|(_, flow)| flow.kind.is_tcp()) {
        let column = outline.goodput_over(outline.step, from, at);
        step_goodput.resize(column.len(), 0.0);
        step_goodput.iter_mut().zip(column).for_each(|(sum, mbps)| *sum += mbps);
    }
    Totals {
        goodput_sum_mbps: run.flows.iter().map(goodput).sum(),
        tcp_goodput_sum_mbps: tcp().map(goodput).sum(),
        jain: stats::jain(&shares),
        min_max: stats::min_max_ratio(&shares),
        jain_1s: outline.jain_over(second, from, &lasting),
        jain_1s_by_drop: outline.jain_by_drop(second, from, &lasting, Span::from_secs(5)),
        tcp_goodput_step_mbps: step_goodput,
        retransmits: run.flows.iter().map(|flow| flow.whole.retransmits).sum(),
        drops: run.links.iter().map(|link| link.whole.drops()).sum(),
        marks: run.links.iter().map(|link| link.whole.marks).sum(),
        transfers_begun: run.flows.iter().map(|flow| flow.transfers.began).sum(),
        transfers_done: run.flows.iter().map(|flow| flow.completion.count()).sum(),
        data_packets: tcp().map(|flow| flow.whole.arrived_packets).sum(),
    }
}

/// Megabits per second; zero over no time.
fn mbps(bytes: u64, time: Span) -> f64 {
    if time.is_zero() { 0.0 } else { bytes as f64 * 8e3 / time.as_nanos() as f64 }
}

#[cfg(test)]
mod tests;
