//! One flow.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::ops::Range;

use sojourn_core::{
    AckBody, Body, Direction, Ecn, FlowSample, FrameEvent, FrameStage, Packet, Queued,
    Responsiveness, RtpStream, Span, Time,
};

use super::digest::Digest;
use super::frames::Frames;
use super::media::Media;
use super::phases::Phases;
use super::recent::RecentLosses;
use super::transfers::Transfers;
use super::{FlowShape, mbps};
use crate::delays::{Delays, Row};
use crate::histogram::{Histogram, Summary};
use crate::outcome::{Counts, FlowKind, FlowMetrics, Numbered, Reported};
use crate::qoe::{EmptyPath, Jitter};
use crate::series::{FlowRow, inflight, max_ms, mean_ms};

/// The fields used for every data segment come first.
#[derive(Clone, Debug)]
pub(super) struct FlowState {
    digest: Digest,
    total: Counts,
    rtt: Delays,
    owd: Delays,

    at_warmup: Counts,
    at_row: Counts,
    warmup: Time,

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
    datagrams: Gaps,
    ipdv: Histogram,
    transits: Transits,
    jitter: Jitter,
    jitter_sum: f64,
    jitter_count: u64,
    frames: Frames,
    pub(super) media: Media,

    pings: Gaps,
    ping: Histogram,
    ping_in_row: Summary,
    /// Those that were asked after the warm-up.
    pings_in_row: Row,
}

impl FlowState {
    pub(super) fn new(warmup: Time, shape: &FlowShape) -> Self {
        Self {
            digest: Digest::default(),
            total: Counts::default(),
            rtt: Delays::default(),
            owd: Delays::default(),
            at_warmup: Counts::default(),
            at_row: Counts::default(),
            warmup,
            srtt: Histogram::new(),
            cwnd: Histogram::new(),
            inflight: Histogram::new(),
            pacing: Histogram::new(),
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
            datagrams: Gaps::default(),
            ipdv: Histogram::new(),
            transits: Transits::default(),
            jitter: Jitter::default(),
            jitter_sum: 0.0,
            jitter_count: 0,
            frames: Frames::default(),
            media: Media::default(),
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

    /// A frame of a call's video; gaps and delays are those of the frames that are shown.
    pub(super) fn on_frame(&mut self, now: Time, frame: &FrameEvent) {
        let mut froze = false;
        match frame.stage {
            FrameStage::Rendered => froze = self.frames.on_shown(now, now.since(frame.captured)),
            FrameStage::Sent => self.frames.on_offered(now),
            FrameStage::Dropped => self.frames.on_never_shown(),
            FrameStage::Encoded | FrameStage::Received | FrameStage::Decoded => {}
        }
        self.media.on_frame(now, frame, froze);
    }

    pub(super) fn on_completed(&mut self, now: Time, bytes: u64, took: Span) {
        self.completion.record(took.as_nanos());
        self.transfers.on_completed(now, bytes, took, self.warmup, self.empty.as_ref());
    }

    #[inline]
    pub(super) fn on_dropped(&mut self, packet: &Packet) {
        match &packet.body {
            Body::Datagram { frame, number, .. } => {
                self.frames.on_dropped(*frame);
                self.datagrams.on_dropped(*number, packet.sent);
            }
            Body::Rtp(rtp) => {
                if rtp.stream == RtpStream::Video {
                    self.frames.on_part_dropped(rtp.captured);
                }
                self.datagrams.on_dropped(rtp.number, packet.sent);
            }
            Body::Echo { number, asked } => self.pings.on_dropped(*number, *asked),
            Body::Opaque { .. } if packet.direction == Direction::Reverse => return,
            Body::Opaque { number, .. } if self.has_datagrams => {
                self.datagrams.on_dropped(*number, packet.sent);
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
        self.datagrams.is_told = true;
        self.pings.is_told = true;
        self.frames.is_told = true;
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
        self.ipdv.clear();
        self.jitter_sum = 0.0;
        self.jitter_count = 0;
        self.datagrams.end_warmup();
        self.pings.end_warmup();
        self.frames.end_warmup();
        self.media.end_warmup();
        self.transfers.end_warmup();
        self.phases.end_warmup(warmup);
    }

    /// Fills in what happened in the row, and begins the next.
    pub(super) fn close_row(&mut self, length: Span, row: &mut FlowRow) {
        let delta = self.total - self.at_row;
        let (mut rtt, rtts) = self.rtt.close_row([0.5, 0.95]);
        rtt.merge(&self.ping_in_row);
        let rtts = rtts.or_else(|| self.pings_in_row.close([0.5, 0.95]));
        let (_, owds) = self.owd.close_row([0.5, 0.95, 1.0]);
        let [rtt_p50, rtt_p95] = rtts.unwrap_or([f64::NAN; 2]);
        let [owd_p50, owd_p95, owd_max] = owds.unwrap_or([f64::NAN; 3]);
        let [frame_p50, frame_max] = self.frames.delays_in_row().unwrap_or([f64::NAN; 2]);
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
        row.frame_delay_p50_ms = ms(frame_p50);
        row.frame_delay_max_ms = ms(frame_max);
        row.dropped_pkts = dropped;
        row.dropped_share = if sent == 0 { f32::NAN } else { dropped / sent as f32 };
        self.media.close_row(length, row);
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
            datagrams: self.datagrams.whole(end),
            datagrams_after_warmup: self.datagrams.after_warmup(end),
            ipdv: self.ipdv.distribution(),
            jitter: self.jitter.value(),
            jitter_mean: (self.jitter_count > 0)
                .then(|| self.jitter_sum / self.jitter_count as f64),
            frames: self.frames.finish(end),
            media: self.media.finish(),
            completion: self.completion.distribution(),
            transfers: self.transfers.finish(self.warmup, end),
            connect: self.connect,
            has_asked: self.first_request.is_some(),
            phases: self.phases.finish(end),
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
            self.datagrams.sent += 1;
            self.frames.on_sent(now, *frame, *last);
        } else {
            self.on_seldom_sent(packet, body);
        }
    }

    #[inline(never)]
    fn on_seldom_sent(&mut self, packet: &Packet, body: &Body) {
        match body {
            Body::Opaque { .. } if packet.direction == Direction::Forward && self.has_datagrams => {
                self.count_sent(packet);
                self.datagrams.sent += 1;
            }
            Body::Rtp(rtp) => {
                self.count_sent(packet);
                self.datagrams.sent += 1;
                self.media.on_sent(rtp.stream, packet.ip_len());
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
                self.on_datagram(now, packet.sent, *number);
                self.frames.on_arrived(now, *frame);
            }
            Body::Opaque { number, .. }
                if packet.direction == Direction::Forward && self.has_datagrams =>
            {
                self.count_arrived(now, packet);
                self.on_datagram(now, packet.sent, *number);
            }
            Body::Rtp(rtp) => {
                self.count_arrived(now, packet);
                self.on_datagram(now, packet.sent, rtp.number);
                self.media.on_arrived(packet, rtp);
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

    fn on_datagram(&mut self, now: Time, sent: Time, number: u32) {
        let transit = now.since(sent);
        self.datagrams.on_arrived(number, transit);
        self.transits.on_arrived(number, transit, &mut self.ipdv);
        self.jitter.on_packet(sent, now);
        if let Some(jitter) = self.jitter.value() {
            self.jitter_sum += jitter;
            self.jitter_count += 1;
        }
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

/// How long the last datagrams that arrived had been under way, by their numbers.
#[derive(Clone, Debug)]
struct Transits {
    /// The largest number that arrived, and one that none has before.
    last: (u32, Span),
    /// At the place of a number, divided by their count: it and its time. Where none was, a number that belongs elsewhere.
    kept: [(u32, Span); Self::COUNT],
}

impl Default for Transits {
    fn default() -> Self {
        Self { last: (u32::MAX - 1, Span::ZERO), kept: [(u32::MAX, Span::ZERO); Self::COUNT] }
    }
}

impl Transits {
    /// Of two neighbours of which one is overtaken by more than these, no difference is counted.
    const COUNT: usize = 64;

    /// Takes in a datagram, and counts how much its time differs from that of the one sent just before it, and of the one sent just
    /// after it, if they have arrived.
    #[inline(always)]
    fn on_arrived(&mut self, number: u32, transit: Span, ipdv: &mut Histogram) {
        let (last, before) = self.last;
        if number == last.wrapping_add(1) {
            ipdv.record(transit.as_nanos().abs_diff(before.as_nanos()));
            self.last = (number, transit);
        } else {
            self.on_far(number, transit, ipdv);
        }
        self.kept[number as usize % Self::COUNT] = (number, transit);
    }

    #[inline(never)]
    fn on_far(&mut self, number: u32, transit: Span, ipdv: &mut Histogram) {
        for neighbour in [number.wrapping_sub(1), number.wrapping_add(1)] {
            let (own, other) = self.kept[neighbour as usize % Self::COUNT];
            if own == neighbour && neighbour != u32::MAX {
                ipdv.record(transit.as_nanos().abs_diff(other.as_nanos()));
            }
        }
        if number > self.last.0 || self.last.0 == u32::MAX - 1 {
            self.last = (number, transit);
        }
    }
}

/// Counts which numbers of a sequence arrived; numbers begin at 0 and are sent in order.
#[derive(Clone, Debug, Default)]
struct Gaps {
    sent: u64,
    arrived: u64,
    /// After the largest number that arrived.
    end: u64,
    /// The first number sent after the warm-up.
    warm_from: u64,
    warm_arrived: u64,
    /// Numbers from `end` on that were dropped, in runs, the least first. Nothing that arrives tells of them.
    dropped: VecDeque<Range<u64>>,
    /// Each number that is lost is told of: what has been overtaken and not dropped may still be under way.
    is_told: bool,
    /// How many numbers were dropped, in all and of those sent after the warm-up.
    all_dropped: u64,
    warm_dropped: u64,
    recent: RecentLosses,
}

impl Gaps {
    fn on_arrived(&mut self, number: u32, took: Span) {
        let number = u64::from(number);
        self.recent.on_arrived(took);
        self.arrived += 1;
        self.end = self.end.max(number + 1);
        self.warm_arrived += u64::from(number >= self.warm_from);
        if self.dropped.front().is_some_and(|run| run.start < self.end) {
            self.forget_dropped();
        }
    }

    #[inline(never)]
    fn forget_dropped(&mut self) {
        while let Some(run) = self.dropped.front_mut().filter(|run| run.start < self.end) {
            run.start = self.end.min(run.end);
            if run.is_empty() {
                self.dropped.pop_front();
            }
        }
    }

    #[inline]
    fn on_dropped(&mut self, number: u32, left: Time) {
        let number = u64::from(number);
        self.recent.on_lost(left);
        self.all_dropped += 1;
        self.warm_dropped += u64::from(number >= self.warm_from);
        match self.dropped.back_mut() {
            Some(last) if last.end == number => last.end += 1,
            _ if number < self.end => {}
            _ => self.begin_run(number),
        }
    }

    #[inline(never)]
    fn begin_run(&mut self, number: u64) {
        let place = self.dropped.partition_point(|run| run.start <= number);
        match place.checked_sub(1).and_then(|before| self.dropped.get_mut(before)) {
            Some(before) if number < before.end => {}
            Some(before) if number == before.end => before.end += 1,
            _ => self.dropped.insert(place, number..number + 1),
        }
    }

    fn end_warmup(&mut self) {
        self.warm_from = self.sent;
        self.warm_arrived = 0;
        self.warm_dropped = 0;
    }

    fn whole(&self, end: Time) -> Numbered {
        self.numbered(end, 0, self.arrived, self.all_dropped)
    }

    fn after_warmup(&self, end: Time) -> Numbered {
        self.numbered(end, self.warm_from, self.warm_arrived, self.warm_dropped)
    }

    /// Of the numbers from `from` on. If none arrived, all are lost: nothing came that would tell what is under way.
    fn numbered(&self, end: Time, from: u64, arrived: u64, dropped: u64) -> Numbered {
        let sent = self.sent - from;
        let (lost, undecided) = match arrived {
            0 => (sent, 0),
            _ => {
                let runs = self.dropped.iter();
                let beyond: u64 = runs.map(|run| run.end.saturating_sub(run.start.max(from))).sum();
                let missing = self.end.saturating_sub(from).saturating_sub(arrived);
                let overtaken = match self.is_told {
                    true => missing.min(dropped.saturating_sub(beyond)),
                    false => missing,
                };
                let lost = overtaken + beyond;
                (lost, self.recent.undecided(end).min(lost))
            }
        };
        Numbered { sent, arrived, lost, undecided }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Numbers are sent one after the other; of each it is drawn how long it is under way, and whether it is dropped.
        #[test]
        fn each_number_is_lost_once(
            fates in prop::collection::vec((any::<bool>(), 0u32..40), 1..200),
            warm_from in 0u32..100,
            end in 1u32..250,
            is_told in any::<bool>(),
        ) {
            let mut gaps = Gaps { is_told, ..Gaps::default() };
            let (mut arrived, mut dropped) = (BTreeSet::new(), BTreeSet::new());
            for now in 0..end {
                if now == warm_from {
                    gaps.end_warmup();
                }
                for (number, (is_dropped, way)) in (0u32..).zip(&fates) {
                    gaps.sent += u64::from(number == now);
                    match number + way == now {
                        true if *is_dropped => {
                            gaps.on_dropped(number, Time::ZERO);
                            dropped.insert(number);
                        }
                        true => {
                            gaps.on_arrived(number, Span::ZERO);
                            arrived.insert(number);
                        }
                        false => {}
                    }
                }
            }
            let sent = end.min(fates.len() as u32);
            for (from, numbered) in [(0, gaps.whole(Time::ZERO)), (gaps.warm_from as u32, gaps.after_warmup(Time::ZERO))] {
                let last = arrived.last().map_or(0, |last| last + 1);
                let is_lost = |number: &u32| {
                    let is_overtaken = !is_told && *number < last;
                    !arrived.contains(number) && (is_overtaken || dropped.contains(number))
                };
                let expected = match arrived.range(from..).count() {
                    0 => sent.saturating_sub(from) as usize,
                    _ => (from..sent).filter(is_lost).count(),
                };
                prop_assert_eq!(numbered.lost, expected as u64);
            }
        }
    }
}
