//! One flow.

use alloc::vec::Vec;

use sojourn_core::{
    AckBody, Body, Direction, Ecn, FlowSample, Packet, Queued, Responsiveness, RtpStream, Span,
    Time,
};

use super::datagrams::Datagrams;
use super::digest::Digest;
use super::gaps::Gaps;
use super::phases::Phases;
use super::transfers::Transfers;
use super::{FlowShape, mbps};
use crate::delays::{Delays, Row};
use crate::histogram::{Histogram, Summary};
use crate::outcome::{Counts, FlowKind, FlowMetrics, Heard, Reported};
use crate::qoe::EmptyPath;
use crate::series::{FlowRow, inflight, max_ms, mean_ms};

/// Flows of a run of which each keeps what it has in less memory.
const MANY: usize = 500;

/// The fields used for every data segment come first, so that these take few lines of the cache: with thousands of flows each packet finds
/// its flow's elsewhere in memory.
#[derive(Clone, Debug)]
#[repr(C)]
pub(super) struct FlowState {
    digest: Digest,
    total: Counts,
    rtt: Delays,
    owd: Delays,

    at_warmup: Counts,
    at_row: Counts,
    warmup: Time,
    stop: Time,

    srtt: Histogram,
    cwnd: Histogram,
    inflight: Histogram,
    pacing: Histogram,
    /// Sum over samples after the warm-up, and how many these are.
    not_sent: (u64, u64),
    last: Option<FlowSample>,
    responsiveness: Option<(Responsiveness, Span)>,
    /// Time and bytes acknowledged, at the first and at the last sample after the warm-up.
    acked: Option<[(Time, u64); 2]>,
    phases: Phases,
    completion: Histogram,
    pub(super) transfers: Transfers,
    empty: Option<EmptyPath>,
    /// Bytes of the flow's only transfer, if it has just one.
    transfer: Option<u64>,
    /// The flow's first connection: its number, who asked for it and when, how long the answer took.
    first_request: Option<(u32, Direction, Time)>,
    connect: Option<Span>,

    /// Its packets of other kinds are datagrams of an application, and no lookups.
    has_datagrams: bool,
    pub(super) datagrams: Datagrams,

    pings: Gaps,
    ping: Histogram,
    ping_in_row: Summary,
    /// Those that were asked after the warm-up.
    pings_in_row: Row,
}

impl FlowState {
    /// One of `flows`.
    pub(super) fn new(warmup: Time, shape: &FlowShape, flows: usize) -> Self {
        // Of so many each has few packets, and they would take 60 KiB each where runs are longer than some seconds.
        let histogram = match flows {
            ..MANY => Histogram::new(),
            _ => Histogram::keeping(Histogram::FEW_OF_MANY),
        };
        Self {
            digest: Digest::default(),
            total: Counts::default(),
            rtt: Delays::counted_by(histogram.clone()),
            owd: Delays::counted_by(histogram.clone()),
            at_warmup: Counts::default(),
            at_row: Counts::default(),
            warmup,
            stop: shape.stop.map_or(Time::NEVER, |stop| Time::ZERO + stop),
            srtt: histogram.clone(),
            cwnd: histogram.clone(),
            inflight: histogram.clone(),
            pacing: histogram,
            not_sent: (0, 0),
            last: None,
            responsiveness: None,
            acked: None,
            phases: Phases::default(),
            completion: Histogram::new(),
            transfers: Transfers::default(),
            empty: shape.empty,
            transfer: shape.transfer,
            first_request: None,
            connect: None,
            has_datagrams: shape.kind == FlowKind::Udp,
            datagrams: Datagrams::default(),
            pings: Gaps::default(),
            ping: Histogram::new(),
            ping_in_row: Summary::NOTHING,
            pings_in_row: Row::default(),
        }
    }

    #[inline(always)]
    pub(super) fn on_sent(&mut self, now: Time, packet: &Packet) {
        // Checking kinds one by one, the commonest first, costs less than a match.
        if let Body::Segment(segment) = &packet.body {
            self.count_sent(packet);
            if segment.first == 0 {
                self.phases.start(now);
            }
            if segment.retransmission {
                self.total.retransmits += u64::from(packet.segments);
            }
        } else if let Body::Ack(_) = &packet.body {
            self.total.acks_sent += 1;
        } else {
            self.on_other_sent(now, packet, &packet.body);
        }
    }

    #[inline(always)]
    pub(super) fn on_arrived(&mut self, now: Time, packet: &Packet) {
        if let Body::Segment(segment) = &packet.body {
            self.digest.arrived(now, packet, segment.first);
            self.count_arrived(now, packet);
        } else if let Body::Ack(ack) = &packet.body {
            self.digest.arrived(now, packet, ack_number(ack));
            self.total.acks_arrived += 1;
        } else {
            self.on_other_arrived(now, packet, &packet.body);
        }
    }

    #[inline]
    pub(super) fn on_delivered(&mut self, bytes: u64) {
        self.total.delivered_bytes += bytes;
    }

    #[inline]
    pub(super) fn on_rtt(&mut self, rtt: Span) {
        self.rtt.record(rtt.as_nanos());
    }

    pub(super) fn on_ping(&mut self, now: Time, rtt: Span) {
        self.ping_in_row.merge(&Summary::of_one(rtt.as_nanos()));
        if now - rtt >= self.warmup {
            self.ping.record(rtt.as_nanos());
            self.pings_in_row.record(rtt.as_nanos());
        }
    }

    pub(super) fn on_phase(&mut self, now: Time, from: &'static str, to: &'static str) {
        self.phases.on_change(now, from, to);
    }

    pub(super) fn on_completed(&mut self, now: Time, bytes: u64, took: Span) {
        self.completion.record(took.as_nanos());
        self.transfers.on_completed(now, bytes, took, self.warmup, self.empty.as_ref());
    }

    #[inline]
    pub(super) fn on_dropped(&mut self, packet: &Packet) {
        match &packet.body {
            Body::Datagram { frame, number, .. } => {
                let datagrams = &mut self.datagrams;
                datagrams.frames.on_dropped(*frame);
                datagrams.gaps.on_dropped(*number, packet.sent);
            }
            Body::Rtp(rtp) => {
                let datagrams = &mut self.datagrams;
                if rtp.stream == RtpStream::Video {
                    datagrams.frames.on_part_dropped(rtp.captured);
                }
                datagrams.gaps.on_dropped(rtp.number, packet.sent);
            }
            Body::Echo { number, asked } => self.pings.on_dropped(*number, *asked),
            Body::Opaque { .. } if packet.direction == Direction::Reverse => return,
            Body::Opaque { number, .. } if self.has_datagrams => {
                self.datagrams.gaps.on_dropped(*number, packet.sent);
            }
            Body::Segment(_) | Body::Opaque { .. } => {}
            Body::Ack(_) | Body::Handshake { .. } => return,
        }
        self.total.dropped_packets += u64::from(packet.segments);
    }

    pub(super) fn on_marked(&mut self, packet: &Packet) {
        self.total.marked_packets += u64::from(packet.segments);
    }

    pub(super) fn on_responsiveness(&mut self, now: Time, result: &Responsiveness) {
        self.responsiveness = Some((*result, now.since(Time::ZERO)));
    }

    /// Every packet of the flow that is lost will be told of.
    pub(super) fn expect_all_drops(&mut self) {
        self.pings.is_told = true;
        self.datagrams.expect_all_drops();
    }

    /// False before the flow's first packet: it has no state yet.
    pub(super) fn on_sample(&mut self, now: Time, sample: &FlowSample) -> bool {
        self.last = Some(*sample);
        let has_sent = self.first_request.is_some() || self.total.sent_packets > 0;
        if !has_sent && sample.srtt.is_zero() {
            return false;
        }
        self.phases.on_sample(now, sample.phase);
        // Without a round-trip time the connection has not begun yet.
        if now < self.warmup || sample.srtt.is_zero() {
            return true;
        }
        self.srtt.record(sample.srtt.as_nanos());
        self.cwnd.record(u64::from(sample.cwnd));
        self.inflight.record(u64::from(inflight(sample)));
        if let Some(rate) = sample.pacing_rate.filter(|rate| !rate.is_unlimited()) {
            self.pacing.record(rate.as_bps());
        }
        self.not_sent.0 = self.not_sent.0.saturating_add(sample.not_sent);
        self.not_sent.1 += 1;
        let first = self.acked.map_or((now, sample.bytes_acked), |[first, _]| first);
        self.acked = Some([first, (now, sample.bytes_acked)]);
        true
    }

    /// Distributions count from here on.
    pub(super) fn end_warmup(&mut self, warmup: Time) {
        self.at_warmup = self.total;
        self.rtt.end_warmup();
        self.owd.end_warmup();
        self.pings_in_row.clear();
        self.datagrams.end_warmup();
        self.pings.end_warmup();
        self.transfers.end_warmup();
        self.phases.end_warmup(warmup);
    }

    /// Fills in what happened in the row, which ends at `end`, and begins the next.
    pub(super) fn close_row(&mut self, end: Time, length: Span, row: &mut FlowRow) {
        let delta = self.total - self.at_row;
        let (mut rtt, rtts) = self.rtt.close_row([0.5, 0.95]);
        rtt.merge(&self.ping_in_row);
        let rtts = rtts.or_else(|| self.pings_in_row.close([0.5, 0.95]));
        let (_, owds) = self.owd.close_row([0.5, 0.95, 1.0]);
        let [rtt_p50, rtt_p95] = rtts.unwrap_or([f64::NAN; 2]);
        let [owd_p50, owd_p95, owd_max] = owds.unwrap_or([f64::NAN; 3]);
        // What is dropped in this row may have been sent in the row before.
        let sent = delta.sent_packets.max(delta.dropped_packets);
        let dropped = delta.dropped_packets as f32;
        self.at_row = self.total;
        self.ping_in_row = Summary::NOTHING;
        let ms = |ns: f64| (ns / 1e6) as f32;
        row.goodput_mbps = mbps(delta.delivered_bytes, length) as f32;
        row.rtt_mean_ms = mean_ms(&rtt);
        row.rtt_max_ms = max_ms(&rtt);
        row.retransmits = delta.retransmits as f32;
        row.rtt_p50_ms = ms(rtt_p50);
        row.rtt_p95_ms = ms(rtt_p95);
        row.owd_p50_ms = ms(owd_p50);
        row.owd_p95_ms = ms(owd_p95);
        row.owd_max_ms = ms(owd_max);
        row.dropped_pkts = dropped;
        row.dropped_share = if sent == 0 { f32::NAN } else { dropped / sent as f32 };
        self.datagrams.close_row(length, end > self.stop, row);
    }

    pub(super) fn mix(&self, digest: &mut Digest) {
        digest.part(self.digest);
        let total = &self.total;
        for count in [total.sent_packets, total.sent_bytes, total.acks_sent, total.delivered_bytes]
        {
            digest.total(count);
        }
    }

    pub(super) fn finish(self, shape: FlowShape, end: Time, window: Span) -> FlowMetrics {
        let mut datagrams = self.datagrams;
        if let Some(until) = datagrams.frames.frozen_until() {
            datagrams.media().freezes.on_end(until);
        }
        let media = datagrams.finish_media();
        FlowMetrics {
            name: shape.name,
            kind: shape.kind,
            whole: self.total,
            after_warmup: self.total - self.at_warmup,
            run: end.since(Time::ZERO),
            window,
            goodput_1s_mbps: Vec::new(),
            share: None,
            rtt: self.rtt.distribution(),
            owd: self.owd.distribution(),
            srtt: self.srtt.distribution(),
            cwnd: self.cwnd.distribution(),
            inflight: self.inflight.distribution(),
            pacing: self.pacing.distribution(),
            // An engine that does not count what an application without a limit has written says zero. One that has a real
            // buffer says how much is in it.
            not_sent_bytes: (self.not_sent.1 > 0
                && !(shape.writes_without_limit && self.not_sent.0 == 0))
                .then(|| self.not_sent.0 as f64 / self.not_sent.1 as f64),
            ping: self.ping.distribution(),
            pings: self.pings.whole(end),
            pings_after_warmup: self.pings.after_warmup(end),
            datagrams: datagrams.gaps.whole(end),
            datagrams_after_warmup: datagrams.gaps.after_warmup(end),
            ipdv: datagrams.ipdv.distribution(),
            jitter: datagrams.jitter.value(),
            jitter_mean: datagrams.jitter_mean(),
            frames: datagrams.frames.finish(end),
            media,
            completion: self.completion.distribution(),
            transfers: self.transfers.finish(self.warmup, end),
            connect: self.connect,
            has_asked: self.first_request.is_some(),
            phases: self.phases.finish(end),
            heard: self.last.as_ref().map(Heard::from),
            last: self.last,
            responsiveness: self.responsiveness,
            acked: self.acked.map(|[(since, first), (until, last)]| {
                (last.saturating_sub(first), until.since(since))
            }),
            reported: Reported::default(),
        }
    }

    /// Everything except TCP segments.
    #[inline(never)]
    fn on_other_sent(&mut self, now: Time, packet: &Packet, body: &Body) {
        if let Body::Datagram { frame, last, .. } = body {
            self.count_sent(packet);
            let datagrams = &mut self.datagrams;
            datagrams.gaps.sent += 1;
            datagrams.frames.on_sent(now, *frame, *last);
        } else {
            self.on_seldom_sent(packet, body);
        }
    }

    #[inline(never)]
    fn on_seldom_sent(&mut self, packet: &Packet, body: &Body) {
        match body {
            Body::Opaque { .. } if packet.direction == Direction::Forward && self.has_datagrams => {
                self.count_sent(packet);
                self.datagrams.gaps.sent += 1;
            }
            Body::Rtp(rtp) => {
                self.count_sent(packet);
                self.datagrams.on_media_sent(packet.sent, rtp, packet.ip_len());
            }
            Body::Echo { .. } if packet.direction == Direction::Forward => {
                self.count_sent(packet);
                self.pings.sent += 1;
            }
            Body::Handshake { asked, .. } => {
                // A repeated request does not count; the first request does, even if it was lost.
                // It comes before any answer.
                if self.first_request.is_none() {
                    self.first_request = Some((packet.connection, packet.direction, *asked));
                    if let Some(bytes) = self.transfer {
                        self.transfers.on_opened(*asked, bytes);
                    }
                }
            }
            Body::Datagram { .. }
            | Body::Echo { .. }
            | Body::Segment(_)
            | Body::Ack(_)
            | Body::Opaque { .. } => {}
        }
    }

    #[inline(never)]
    fn on_other_arrived(&mut self, now: Time, packet: &Packet, body: &Body) {
        self.digest.arrived(now, packet, other_number(body, packet.connection));
        match body {
            Body::Datagram { number, frame, .. } => {
                self.count_arrived(now, packet);
                let datagrams = &mut self.datagrams;
                datagrams.on_arrived(now, packet.sent, *number);
                datagrams.frames.on_arrived(now, *frame);
            }
            Body::Opaque { number, .. }
                if packet.direction == Direction::Forward && self.has_datagrams =>
            {
                self.count_arrived(now, packet);
                self.datagrams.on_arrived(now, packet.sent, *number);
            }
            Body::Rtp(rtp) => {
                self.count_arrived(now, packet);
                let datagrams = &mut self.datagrams;
                datagrams.on_arrived(now, packet.sent, rtp.number).on_arrived(packet, rtp);
            }
            Body::Echo { number, asked } if packet.direction == Direction::Reverse => {
                self.pings.on_arrived(*number, now.since(*asked));
            }
            Body::Handshake { .. } => {
                if let Some((connection, direction, asked)) = self.first_request
                    && connection == packet.connection
                    && direction != packet.direction
                {
                    self.connect = self.connect.or(Some(now.since(asked)));
                }
            }
            Body::Echo { .. } | Body::Segment(_) | Body::Ack(_) | Body::Opaque { .. } => {}
        }
    }

    #[inline]
    fn count_sent(&mut self, packet: &Packet) {
        self.total.sent_packets += u64::from(packet.segments);
        self.total.sent_bytes += u64::from(packet.ip_len());
    }

    #[inline(always)]
    fn count_arrived(&mut self, now: Time, packet: &Packet) {
        self.total.arrived_packets += u64::from(packet.segments);
        self.total.arrived_bytes += u64::from(packet.ip_len());
        if packet.ecn == Ecn::Ce {
            self.total.ce_packets += u64::from(packet.segments);
        }
        self.owd.record(now.after(packet.sent).as_nanos());
    }
}

/// The number that distinguishes an acknowledgement from others of its flow.
#[inline(always)]
fn ack_number(ack: &AckBody) -> u32 {
    ack.ack ^ ack.sack[0].end.rotate_left(16)
}

fn other_number(body: &Body, connection: u32) -> u32 {
    match body {
        Body::Datagram { number, .. } | Body::Echo { number, .. } | Body::Opaque { number, .. } => {
            *number
        }
        Body::Rtp(rtp) => rtp.number,
        // Every connection begins with one, so its number tells the digest which connection
        // follows.
        Body::Handshake { .. } => connection,
        Body::Segment(_) | Body::Ack(_) => 0,
    }
}
