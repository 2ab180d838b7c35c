//! One link: its queue and what left it.

use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use sojourn_core::{DropReason, Packet, QueueSample, Queued, Span, Time};

use super::air::Air;
use super::digest::{Digest, Kind};
use super::held::Held;
use super::mbps;
use crate::histogram::{Histogram, Summary};
use crate::outcome::{FlowAtLink, LinkCounts, LinkMetrics};
use crate::series::{LinkRow, max_ms, mean_ms};

/// The fields used for every packet come first.
#[derive(Clone, Debug)]
pub(super) struct LinkState {
    digest: Digest,
    /// All packets together, in nanoseconds.
    waited_before_warmup: u64,
    total: LinkCounts,
    backlog_max_in_row: u32,
    sojourn_max_in_row: u64,
    sojourn: Histogram,
    /// Packets that did not wait, and are not counted in `sojourn` yet.
    unhindered: u64,

    backlog_max: u32,
    /// The largest backlog in the part before the end of the warm-up of the row in which it ended.
    backlog_max_before_warmup: u32,
    at_warmup: LinkCounts,
    at_row: LinkCounts,
    /// Count and sum of `sojourn` when the row began.
    sojourn_at_row: (u64, u128),
    flows: Vec<FlowAtLink>,

    warmup: Time,
    queue: Histogram,
    queue_bytes: Histogram,
    backlog: Held,
    backlog_bytes: Held,
    /// At the end of the warm-up, and at the last sample.
    medium: [Medium; 2],
    air: Air,
}

impl LinkState {
    pub(super) fn new(warmup: Time, flows: usize) -> Self {
        Self {
            digest: Digest::default(),
            waited_before_warmup: 0,
            total: LinkCounts::default(),
            backlog_max_in_row: 0,
            sojourn_max_in_row: 0,
            sojourn: Histogram::new(),
            unhindered: 0,
            backlog_max: 0,
            backlog_max_before_warmup: 0,
            at_warmup: LinkCounts::default(),
            at_row: LinkCounts::default(),
            sojourn_at_row: (0, 0),
            flows: vec![FlowAtLink::default(); flows],
            warmup,
            queue: Histogram::new(),
            queue_bytes: Histogram::new(),
            backlog: Held::new(warmup),
            backlog_bytes: Held::new(warmup),
            medium: [Medium::default(); 2],
            air: Air::default(),
        }
    }

    #[inline]
    pub(super) fn on_enqueued(&mut self, backlog: u32) {
        if backlog > self.backlog_max_in_row {
            self.backlog_max_in_row = backlog;
        }
    }

    #[inline]
    pub(super) fn on_dequeued(&mut self, packet: &Packet, sojourn: Span) {
        self.total.sent_packets += u64::from(packet.segments);
        self.total.sent_bytes += u64::from(packet.wire_len());
        if sojourn.is_zero() {
            self.unhindered += 1;
            return;
        }
        let sojourn = sojourn.as_nanos();
        if sojourn > self.sojourn_max_in_row {
            self.sojourn_max_in_row = sojourn;
        }
        self.sojourn.record(sojourn);
    }

    #[inline]
    pub(super) fn on_dropped(&mut self, now: Time, packet: &Packet, why: DropReason) {
        self.digest.at_link(Kind::Dropped, now, packet);
        self.total.drops[why as usize] += u64::from(packet.segments);
        self.flows[packet.flow.0 as usize].drops += u64::from(packet.segments);
    }

    pub(super) fn on_marked(&mut self, now: Time, packet: &Packet) {
        self.digest.at_link(Kind::Marked, now, packet);
        self.total.marks += u64::from(packet.segments);
        self.flows[packet.flow.0 as usize].marks += u64::from(packet.segments);
    }

    pub(super) fn on_sample(&mut self, now: Time, sample: &QueueSample) {
        self.backlog_max_in_row = self.backlog_max_in_row.max(sample.packets);
        self.backlog.set(now, f64::from(sample.packets));
        self.backlog_bytes.set(now, sample.bytes as f64);
        self.on_medium(now, sample);
        if now >= self.warmup {
            self.queue.record(u64::from(sample.packets));
            self.queue_bytes.record(sample.bytes);
        }
    }

    /// What the medium has carried so far, and could have carried.
    pub(super) fn on_medium(&mut self, now: Time, sample: &QueueSample) {
        let medium = Medium { carried: sample.medium_bytes, could: sample.capacity_bytes };
        if now <= self.warmup {
            self.medium[0] = medium;
        }
        self.medium[1] = medium;
        self.air.set(sample.air, now > self.warmup);
    }

    fn count_unhindered(&mut self) {
        self.sojourn.record_times(0, core::mem::take(&mut self.unhindered));
    }

    /// Distributions count from here on.
    pub(super) fn end_warmup(&mut self) {
        self.count_unhindered();
        self.at_warmup = self.total;
        self.sojourn_at_row.0 = self.sojourn_at_row.0.wrapping_sub(self.sojourn.count());
        self.sojourn_at_row.1 = self.sojourn_at_row.1.wrapping_sub(self.sojourn.sum());
        self.waited_before_warmup = self.sojourn.sum() as u64;
        self.sojourn.clear();
        self.backlog_max = 0;
        self.backlog_max_before_warmup = self.backlog_max_in_row;
        self.backlog_max_in_row = 0;
    }

    /// Fills in what happened in the row, and begins the next.
    pub(super) fn close_row(&mut self, length: Span, row: &mut LinkRow) {
        self.count_unhindered();
        let delta = self.total - self.at_row;
        let sojourn = Summary {
            count: self.sojourn.count().wrapping_sub(self.sojourn_at_row.0),
            sum: self.sojourn.sum().wrapping_sub(self.sojourn_at_row.1),
            max: self.sojourn_max_in_row,
            ..Summary::NOTHING
        };
        let peak = self.backlog_max_in_row.max(self.backlog_max_before_warmup);
        row.throughput_mbps = mbps(delta.sent_bytes, length) as f32;
        row.sojourn_mean_ms = mean_ms(&sojourn);
        row.sojourn_max_ms = max_ms(&sojourn);
        row.queue_peak_pkts = peak as f32;
        row.drops = delta.drops() as f32;
        row.marks = delta.marks as f32;
        self.at_row = self.total;
        self.sojourn_at_row = (self.sojourn.count(), self.sojourn.sum());
        self.sojourn_max_in_row = 0;
        self.backlog_max = self.backlog_max.max(self.backlog_max_in_row);
        self.backlog_max_in_row = 0;
        self.backlog_max_before_warmup = 0;
    }

    pub(super) fn mix(&self, digest: &mut Digest) {
        digest.part(self.digest);
        digest.total(self.total.sent_packets);
        digest.total(self.waited_before_warmup.wrapping_add(self.sojourn.sum() as u64));
        digest.total(self.total.drops());
    }

    /// The share of the medium's capacity after the warm-up that was used.
    fn utilisation(&self) -> Option<f64> {
        let [before, after] = self.medium;
        let could = after.could? - before.could.unwrap_or(0.0);
        (could > 0.0).then(|| (after.carried - before.carried) as f64 / could)
    }

    pub(super) fn finish(mut self, name: String, end: Time, window: Span) -> LinkMetrics {
        self.count_unhindered();
        LinkMetrics {
            name,
            whole: self.total,
            after_warmup: self.total - self.at_warmup,
            window,
            sojourn: self.sojourn.distribution(),
            queue: self.queue.distribution(),
            queue_bytes: self.queue_bytes.distribution(),
            queue_mean_pkts: self.backlog.mean(end),
            queue_mean_bytes: self.backlog_bytes.mean(end),
            queue_max_pkts: self.backlog_max.max(self.backlog_max_in_row),
            utilisation: self.utilisation(),
            drop_share: None,
            rest: None,
            air: self.air.finish(),
            flows: self.flows,
        }
    }
}

/// Bytes on the medium since the run began.
#[derive(Clone, Copy, Debug, Default)]
struct Medium {
    carried: u64,
    could: Option<f64>,
}
