//! Time series at the step of the scenario, a column per quantity.
//!
//! A row covers the time from the row before it (or the start) up to, and without, its own `t_s`.
//! Rates, counts, mean and largest delays are of that time, so that no peak is lost; columns that
//! `ss` and `tc` would show are the state at `t_s`. Unknown values are not-a-number.

use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

use sojourn_core::{FlowSample, QueueSample, Rate, Span};

use crate::histogram::Summary;
use crate::stats;

/// The series of a run. All columns have the length of `t_s`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    pub step: Span,
    /// Ends of the rows, in seconds since the run began.
    pub t_s: Vec<f64>,
    /// In the order of the scenario.
    pub flows: Vec<FlowSeries>,
    pub links: Vec<LinkSeries>,
    /// What the numbers in [`FlowSeries::phase`] stand for.
    pub phases: Vec<&'static str>,
}

/// Columns of a flow.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FlowSeries {
    pub goodput_mbps: Vec<f32>,
    pub rtt_mean_ms: Vec<f32>,
    pub rtt_max_ms: Vec<f32>,
    pub retransmits: Vec<f32>,
    pub rtt_p50_ms: Vec<f32>,
    pub rtt_p95_ms: Vec<f32>,
    pub owd_p50_ms: Vec<f32>,
    pub owd_p95_ms: Vec<f32>,
    pub owd_max_ms: Vec<f32>,
    pub frame_delay_p50_ms: Vec<f32>,
    pub frame_delay_max_ms: Vec<f32>,
    pub dropped_pkts: Vec<f32>,
    pub dropped_share: Vec<f32>,
    pub srtt_ms: Vec<f32>,
    pub cwnd_pkts: Vec<f32>,
    pub ssthresh_pkts: Vec<f32>,
    pub inflight_pkts: Vec<f32>,
    pub pacing_mbps: Vec<f32>,
    pub delivery_mbps: Vec<f32>,
    pub bw_mbps: Vec<f32>,
    pub min_rtt_ms: Vec<f32>,
    pub extra_acked_pkts: Vec<f32>,
    pub inflight_longterm_pkts: Vec<f32>,
    pub rounds: Vec<f32>,
    pub rwnd_bytes: Vec<f32>,
    /// Position in [`Series::phases`]; not-a-number before the first sample.
    pub phase: Vec<f32>,
}

/// Columns of a link.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LinkSeries {
    pub throughput_mbps: Vec<f32>,
    pub sojourn_mean_ms: Vec<f32>,
    pub sojourn_max_ms: Vec<f32>,
    pub queue_peak_pkts: Vec<f32>,
    pub drops: Vec<f32>,
    pub marks: Vec<f32>,
    pub queue_pkts: Vec<f32>,
    pub queue_bytes: Vec<f32>,
    pub capacity_mbps: Vec<f32>,
}

/// A column by name.
#[derive(Clone, Copy, Debug)]
pub struct Column<S> {
    pub name: &'static str,
    pub unit: &'static str,
    pub doc: &'static str,
    pub of: fn(&S) -> &[f32],
}

macro_rules! columns {
    ($series:ty, $($name:ident $unit:literal $doc:literal,)*) => {
        &[$(Column {
            name: stringify!($name),
            unit: $unit,
            doc: $doc,
            of: |series: &$series| series.$name.as_slice(),
        },)*]
    };
}

/// Every column of [`FlowSeries`].
pub const FLOW_COLUMNS: &[Column<FlowSeries>] = columns! { FlowSeries,
    goodput_mbps "Mbit/s" "Bytes that reached the application in order, in the step",
    rtt_mean_ms "ms" "Mean of the sender's round-trip samples (a ping's replies) in the step",
    rtt_max_ms "ms" "Largest round-trip sample (a ping's reply) in the step",
    retransmits "packets" "Packets sent again in the step",
    rtt_p50_ms "ms" "Median of the sender's round-trip samples (a ping's replies) in the step",
    rtt_p95_ms "ms" "95th percentile of them",
    owd_p50_ms "ms" "Median one-way delay of the data packets or datagrams that arrived in the step",
    owd_p95_ms "ms" "95th percentile of it",
    owd_max_ms "ms" "Largest of it",
    frame_delay_p50_ms "ms" "Median delay of the frames that became complete in the step",
    frame_delay_max_ms "ms" "Largest of it",
    dropped_pkts "packets" "Data packets, datagrams and echoes of this flow that links dropped or lost in the step",
    dropped_share "" "The same as part of what was sent in the step, at most 1",
    srtt_ms "ms" "Smoothed round-trip time",
    cwnd_pkts "packets" "Congestion window",
    ssthresh_pkts "packets" "Slow start threshold; missing until the first congestion",
    inflight_pkts "packets" "Sent, neither acknowledged nor deemed lost",
    pacing_mbps "Mbit/s" "Pacing rate",
    delivery_mbps "Mbit/s" "Delivery rate, as the sender estimates it",
    bw_mbps "Mbit/s" "Bandwidth estimate of a model-based controller",
    min_rtt_ms "ms" "Smallest round-trip time in the controller's model, else in the transport's",
    extra_acked_pkts "packets" "What a BBR allows for aggregated acknowledgements",
    inflight_longterm_pkts "packets" "Bound on what is in flight that a BBR found by probing; missing while there is none",
    rounds "" "Rounds that a BBR has counted; not of 'bbr2' and 'bbr3-linux', which count none",
    rwnd_bytes "bytes" "Receive window last advertised",
    phase "" "Phase of the congestion controller, a position in the list of phases",
};

/// Every column of [`LinkSeries`].
pub const LINK_COLUMNS: &[Column<LinkSeries>] = columns! { LinkSeries,
    throughput_mbps "Mbit/s" "Ethernet bytes that left the queue in the step",
    sojourn_mean_ms "ms" "Mean wait of the packets that left the queue in the step",
    sojourn_max_ms "ms" "Longest wait of a packet that left the queue in the step",
    queue_peak_pkts "packets" "Largest backlog that an arrival made in the step",
    drops "packets" "Packets dropped or lost in the step",
    marks "packets" "Packets marked Congestion Experienced in the step",
    queue_pkts "packets" "Backlog",
    queue_bytes "bytes" "Backlog",
    capacity_mbps "Mbit/s" "Capacity of the link; missing when it is unlimited",
};

impl Series {
    /// Jain's index of the goodput of `flows` in each whole `window` after `from`; windows in
    /// which nothing arrived are left out. Empty when the window is not a multiple of the step.
    pub fn jain_over(&self, window: Span, from: Span, flows: &[usize]) -> Vec<f64> {
        let windows = self.windows(window, from);
        windows.filter_map(|rows| self.jain_in(&rows, flows)).collect()
    }

    /// As [`Series::jain_over`], divided in two: windows that touch the time `after` a fall of some
    /// link's capacity below half of its median over the run, and the others.
    pub fn jain_by_drop(
        &self,
        window: Span,
        from: Span,
        flows: &[usize],
        after: Span,
    ) -> [Vec<f64>; 2] {
        let is_low = self.low_capacity();
        let reach = after.as_nanos().checked_div(self.step.as_nanos()).unwrap_or(0) as usize;
        let mut parted = [Vec::new(), Vec::new()];
        for rows in self.windows(window, from) {
            let since = rows.start.saturating_sub(reach);
            let part = usize::from(!is_low[since..rows.end].contains(&true));
            parted[part].extend(self.jain_in(&rows, flows));
        }
        parted
    }

    /// Goodput of `flow` in each whole `window` after `from`, in Mbit/s.
    pub fn goodput_over(&self, window: Span, from: Span, flow: usize) -> Vec<f64> {
        let windows = self.windows(window, from);
        windows.map(|rows| self.goodput_in(&rows, flow) / rows.len() as f64).collect()
    }

    /// Rows of the whole windows after `from`; none if the window is not a multiple of the step. A
    /// last row that the end of the run cut short belongs to none.
    fn windows(&self, window: Span, from: Span) -> impl Iterator<Item = Range<usize>> {
        let step = self.step.as_nanos();
        let fits = step != 0 && !window.is_zero() && window.as_nanos().is_multiple_of(step);
        let per_window = if fits { (window.as_nanos() / step) as usize } else { 1 };
        let first = if fits { from.as_nanos().div_ceil(step) as usize } else { usize::MAX };
        let count = self.whole_rows().saturating_sub(first) / per_window;
        (0..count).map(move |at| first + at * per_window..first + (at + 1) * per_window)
    }

    /// Rows as long as the step: all, except for a last one that is cut short.
    fn whole_rows(&self) -> usize {
        let rows = self.t_s.len();
        let ends = rows as f64 * self.step.as_secs_f64();
        // The tolerance is far larger than the rounding error of a run's sum of steps.
        let is_cut = self.t_s.last().is_some_and(|end| *end < ends * (1.0 - 1e-12));
        rows - usize::from(is_cut)
    }

    fn goodput_in(&self, rows: &Range<usize>, flow: usize) -> f64 {
        self.flows[flow].goodput_mbps[rows.clone()].iter().map(|mbps| f64::from(*mbps)).sum()
    }

    fn jain_in(&self, rows: &Range<usize>, flows: &[usize]) -> Option<f64> {
        let sums: Vec<f64> = flows.iter().map(|flow| self.goodput_in(rows, *flow)).collect();
        stats::jain(&sums)
    }

    /// For each row, whether some link has less than half of its median capacity.
    fn low_capacity(&self) -> Vec<bool> {
        let mut is_low = vec![false; self.t_s.len()];
        for link in &self.links {
            let known = link.capacity_mbps.iter().copied().filter(|mbps| !mbps.is_nan());
            let known: Vec<f64> = known.map(f64::from).collect();
            let Some(median) = stats::quantile(&known, 0.5) else {
                continue;
            };
            for (is_low, mbps) in is_low.iter_mut().zip(&link.capacity_mbps) {
                *is_low |= f64::from(*mbps) < median / 2.0;
            }
        }
        is_low
    }

    /// The number of a phase, which is added if it is new.
    fn phase_number(&mut self, phase: &'static str) -> f32 {
        let known = self.phases.iter().position(|known| *known == phase);
        known.unwrap_or_else(|| {
            self.phases.push(phase);
            self.phases.len() - 1
        }) as f32
    }

    /// Sets the state at the end of the last row; it replaces earlier states of the same row.
    pub(crate) fn set_flow(&mut self, flow: usize, sample: &FlowSample) {
        let phase =
            if sample.phase.is_empty() { f32::NAN } else { self.phase_number(sample.phase) };
        let row = &mut self.flows[flow];
        set(&mut row.srtt_ms, if sample.srtt.is_zero() { None } else { Some(ms(sample.srtt)) });
        set(&mut row.cwnd_pkts, Some(sample.cwnd as f32));
        set(&mut row.ssthresh_pkts, sample.ssthresh.map(|ssthresh| ssthresh as f32));
        set(&mut row.inflight_pkts, Some(inflight(sample) as f32));
        set(&mut row.pacing_mbps, sample.pacing_rate.and_then(mbps));
        set(&mut row.delivery_mbps, mbps(sample.delivery_rate));
        set(&mut row.bw_mbps, sample.bw.and_then(mbps));
        set(&mut row.min_rtt_ms, sample.model_min_rtt.or(sample.min_rtt).map(ms));
        set(&mut row.extra_acked_pkts, sample.extra_acked.map(|extra| extra as f32));
        set(&mut row.inflight_longterm_pkts, sample.inflight_longterm.map(|most| most as f32));
        set(&mut row.rounds, sample.rounds.map(|rounds| rounds as f32));
        set(&mut row.rwnd_bytes, Some(sample.rwnd as f32));
        set(&mut row.phase, Some(phase));
    }

    pub(crate) fn set_link(&mut self, link: usize, sample: &QueueSample) {
        let row = &mut self.links[link];
        set(&mut row.queue_pkts, Some(sample.packets as f32));
        set(&mut row.queue_bytes, Some(sample.bytes as f32));
        set(&mut row.capacity_mbps, mbps(sample.capacity));
    }
}

impl FlowSeries {
    /// Begins a row whose state is unknown.
    pub(crate) fn push(&mut self, goodput_mbps: f64, rtt: &Summary, retransmits: u64) {
        self.goodput_mbps.push(goodput_mbps as f32);
        self.rtt_mean_ms.push(mean_ms(rtt));
        self.rtt_max_ms.push(max_ms(rtt));
        self.retransmits.push(retransmits as f32);
        for column in [
            &mut self.srtt_ms,
            &mut self.cwnd_pkts,
            &mut self.ssthresh_pkts,
            &mut self.inflight_pkts,
            &mut self.pacing_mbps,
            &mut self.delivery_mbps,
            &mut self.bw_mbps,
            &mut self.min_rtt_ms,
            &mut self.extra_acked_pkts,
            &mut self.inflight_longterm_pkts,
            &mut self.rounds,
            &mut self.rwnd_bytes,
            &mut self.phase,
        ] {
            column.push(f32::NAN);
        }
    }

    /// Delays of the row in nanoseconds: median and 95th percentile of the round trip, the same and
    /// the largest one way, median and largest of frames.
    pub(crate) fn push_delays(
        &mut self,
        rtt: Option<[f64; 2]>,
        owd: Option<[f64; 3]>,
        frames: Option<[f64; 2]>,
    ) {
        let ms = |ns: f64| (ns / 1e6) as f32;
        let [rtt_p50, rtt_p95] = rtt.unwrap_or([f64::NAN; 2]);
        self.rtt_p50_ms.push(ms(rtt_p50));
        self.rtt_p95_ms.push(ms(rtt_p95));
        let [owd_p50, owd_p95, owd_max] = owd.unwrap_or([f64::NAN; 3]);
        self.owd_p50_ms.push(ms(owd_p50));
        self.owd_p95_ms.push(ms(owd_p95));
        self.owd_max_ms.push(ms(owd_max));
        let [frame_p50, frame_max] = frames.unwrap_or([f64::NAN; 2]);
        self.frame_delay_p50_ms.push(ms(frame_p50));
        self.frame_delay_max_ms.push(ms(frame_max));
    }

    pub(crate) fn push_losses(&mut self, drops: u64, sent: u64) {
        self.dropped_pkts.push(drops as f32);
        self.dropped_share.push(if sent == 0 { f32::NAN } else { drops as f32 / sent as f32 });
    }
}

impl LinkSeries {
    /// Begins a row whose state is unknown.
    pub(crate) fn push(
        &mut self,
        throughput_mbps: f64,
        sojourn: &Summary,
        peak: u32,
        drops: u64,
        marks: u64,
    ) {
        self.throughput_mbps.push(throughput_mbps as f32);
        self.sojourn_mean_ms.push(mean_ms(sojourn));
        self.sojourn_max_ms.push(max_ms(sojourn));
        self.queue_peak_pkts.push(peak as f32);
        self.drops.push(drops as f32);
        self.marks.push(marks as f32);
        for column in [&mut self.queue_pkts, &mut self.queue_bytes, &mut self.capacity_mbps] {
            column.push(f32::NAN);
        }
    }
}

/// Packets that Linux counts as in the network (`tcp_packets_in_flight`).
pub(crate) fn inflight(sample: &FlowSample) -> u32 {
    (sample.unacked + sample.retrans).saturating_sub(sample.sacked + sample.lost)
}

/// Of nanoseconds; of nothing not-a-number.
fn mean_ms(delays: &Summary) -> f32 {
    // The same number, with less work where it fits.
    let sum = match u64::try_from(delays.sum) {
        Ok(sum) => sum as f64,
        Err(_) => delays.sum as f64,
    };
    (sum / delays.count as f64 / 1e6) as f32
}

fn max_ms(delays: &Summary) -> f32 {
    if delays.count == 0 { f32::NAN } else { (delays.max as f64 / 1e6) as f32 }
}

fn set(column: &mut [f32], value: Option<f32>) {
    if let Some(last) = column.last_mut() {
        *last = value.unwrap_or(f32::NAN);
    }
}

fn ms(span: Span) -> f32 {
    span.as_millis_f64() as f32
}

fn mbps(rate: Rate) -> Option<f32> {
    (!rate.is_unlimited()).then(|| rate.as_mbps() as f32)
}
