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

/// A column by name.
#[derive(Clone, Copy, Debug)]
pub struct Column<S> {
    pub name: &'static str,
    pub unit: &'static str,
    pub doc: &'static str,
    pub of: fn(&S) -> &[f32],
}

/// A row while the run goes on, the columns that rows become at its end, and the list of the columns.
macro_rules! columns {
    (
        $(#[$attribute:meta])*
        $series:ident, $row:ident, $list:ident: $($name:ident $unit:literal $doc:literal,)*
    ) => {
        $(#[$attribute])*
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct $series {
            $(#[doc = $doc] pub $name: Vec<f32>,)*
        }

        #[derive(Clone, Copy, Debug)]
        pub(crate) struct $row {
            $(pub(crate) $name: f32,)*
        }

        impl $row {
            pub(crate) const UNKNOWN: Self = Self { $($name: f32::NAN,)* };
        }

        impl $series {
            fn of(rows: &[$row]) -> Self {
                Self { $($name: rows.iter().map(|row| row.$name).collect(),)* }
            }
        }

        #[doc = concat!("Every column of [`", stringify!($series), "`].")]
        pub const $list: &[Column<$series>] = &[$(Column {
            name: stringify!($name),
            unit: $unit,
            doc: $doc,
            of: |series| series.$name.as_slice(),
        },)*];
    };
}

columns! {
    /// Columns of a flow. A phase is a position in [`Series::phases`].
    FlowSeries, FlowRow, FLOW_COLUMNS:
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
    target_mbps "Mbit/s" "call: what its rate controller lets it send, headers included",
    sent_mbps "Mbit/s" "call: IP bytes of media packets sent in the step, repetitions and padding among them",
    received_mbps "Mbit/s" "call: IP bytes of media packets that arrived in the step",
    delay_based_mbps "Mbit/s" "call: the controller's estimate from delays",
    loss_based_mbps "Mbit/s" "call: the controller's estimate from losses",
    acknowledged_mbps "Mbit/s" "call: what the controller thinks arrives",
    frames_encoded "" "call: frames that left the encoder in the step",
    frames_rendered "" "call: frames shown in the step",
    frames_dropped "" "call: frames in the step that the receiver gave up",
    av_offset_mean_ms "ms" "call with a voice: how much later frames were shown in the step than the sound heard then, in the mean; above 0 sound is early",
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
    rounds "" "Rounds that a BBR has counted",
    rwnd_bytes "bytes" "Receive window last advertised",
    phase "" "Phase of the congestion controller, a position in the list of phases",
}

columns! {
    /// Columns of a link.
    LinkSeries, LinkRow, LINK_COLUMNS:
    throughput_mbps "Mbit/s" "Ethernet bytes that left the queue in the step",
    sojourn_mean_ms "ms" "Mean wait of the packets that left the queue in the step",
    sojourn_max_ms "ms" "Longest wait of a packet that left the queue in the step",
    queue_peak_pkts "packets" "Largest backlog that an arrival made in the step, or that at its end",
    drops "packets" "Packets dropped or lost in the step",
    marks "packets" "Packets marked Congestion Experienced in the step",
    queue_pkts "packets" "Backlog",
    queue_bytes "bytes" "Backlog",
    capacity_mbps "Mbit/s" "Capacity of the link; missing when it is unlimited",
}

impl Series {
    /// Rows of a piece that a [`Collector`](crate::Collector) hands on, of so many flows and links: as
    /// many as fit 4 MiB.
    pub fn rows_in_piece(flows: usize, links: usize) -> usize {
        const NUMBERS: usize = 1 << 20;
        let width = flows * FLOW_COLUMNS.len() + links * LINK_COLUMNS.len();
        NUMBERS.div_ceil(width.max(1))
    }
}

/// What the numbers of a run need of its rows: a few bytes of each, which stay when the rows are handed
/// on.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outline {
    pub(crate) step: Span,
    rows: usize,
    last_end: Option<f64>,
    /// Of each flow.
    goodput_mbps: Vec<Vec<f32>>,
    /// Of each flow, the rows at whose end it was there: its sender had a state, or something arrived.
    is_there: Vec<Vec<bool>>,
    /// Of each flow, whether its sender ever had a state; of others nothing tells when they are there.
    has_state: Vec<bool>,
    /// Of each link.
    capacity_mbps: Vec<Vec<f32>>,
}

impl Outline {
    fn add(&mut self, piece: &Series) {
        self.rows += piece.t_s.len();
        self.last_end = piece.t_s.last().copied().or(self.last_end);
        for (all, flow) in self.goodput_mbps.iter_mut().zip(&piece.flows) {
            all.extend(&flow.goodput_mbps);
        }
        let states = self.is_there.iter_mut().zip(&mut self.has_state);
        for ((all, has_state), flow) in states.zip(&piece.flows) {
            *has_state |= flow.cwnd_pkts.iter().any(|cwnd| !cwnd.is_nan());
            let rows = flow.cwnd_pkts.iter().zip(&flow.goodput_mbps);
            all.extend(rows.map(|(cwnd, goodput)| !cwnd.is_nan() || *goodput > 0.0));
        }
        for (all, link) in self.capacity_mbps.iter_mut().zip(&piece.links) {
            all.extend(&link.capacity_mbps);
        }
    }

    /// Jain's index of the goodput of `flows` in each whole `window` after `from`, among those that are there
    /// throughout; windows in which nothing arrived, or one of several flows is alone, are left out. Empty when
    /// the window is not a multiple of the step.
    pub(crate) fn jain_over(&self, window: Span, from: Span, flows: &[usize]) -> Vec<f64> {
        let windows = self.windows(window, from);
        windows.filter_map(|rows| self.jain_in(&rows, flows)).collect()
    }

    /// As [`Outline::jain_over`], divided in two: windows that touch the time `after` a fall of some
    /// link's capacity below half of its median over the run, and the others.
    pub(crate) fn jain_by_drop(
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
    pub(crate) fn goodput_over(&self, window: Span, from: Span, flow: usize) -> Vec<f64> {
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
        let rows = self.rows;
        let ends = rows as f64 * self.step.as_secs_f64();
        // The tolerance is far larger than the rounding error of a run's sum of steps.
        let is_cut = self.last_end.is_some_and(|end| end < ends * (1.0 - 1e-12));
        rows - usize::from(is_cut)
    }

    fn goodput_in(&self, rows: &Range<usize>, flow: usize) -> f64 {
        self.goodput_mbps[flow][rows.clone()].iter().map(|mbps| f64::from(*mbps)).sum()
    }

    fn jain_in(&self, rows: &Range<usize>, flows: &[usize]) -> Option<f64> {
        let is_there = |flow: &&usize| {
            !self.has_state[**flow] || !self.is_there[**flow][rows.clone()].contains(&false)
        };
        let there = flows.iter().filter(is_there);
        let sums: Vec<f64> = there.map(|flow| self.goodput_in(rows, *flow)).collect();
        if sums.len() < flows.len().min(2) { None } else { stats::jain(&sums) }
    }

    /// For each row, whether some link has less than half of its median capacity.
    fn low_capacity(&self) -> Vec<bool> {
        let mut is_low = vec![false; self.rows];
        for capacity_mbps in &self.capacity_mbps {
            let known = capacity_mbps.iter().copied().filter(|mbps| !mbps.is_nan());
            let known: Vec<f64> = known.map(f64::from).collect();
            let Some(median) = stats::quantile(&known, 0.5) else {
                continue;
            };
            for (is_low, mbps) in is_low.iter_mut().zip(capacity_mbps) {
                *is_low |= f64::from(*mbps) < median / 2.0;
            }
        }
        is_low
    }
}

/// The rows of a run that goes on.
#[derive(Clone, Debug)]
pub(crate) struct Rows {
    ends: Vec<f64>,
    flows: Vec<Vec<FlowRow>>,
    links: Vec<Vec<LinkRow>>,
    phases: Vec<&'static str>,
    /// Of the rows that were handed on.
    outline: Outline,
    rows_in_piece: usize,
}

impl Rows {
    pub(crate) fn new(flows: usize, links: usize, step: Span) -> Self {
        Self {
            outline: Outline {
                step,
                goodput_mbps: vec![Vec::new(); flows],
                is_there: vec![Vec::new(); flows],
                has_state: vec![false; flows],
                capacity_mbps: vec![Vec::new(); links],
                ..Outline::default()
            },
            rows_in_piece: Series::rows_in_piece(flows, links),
            ends: Vec::new(),
            flows: vec![Vec::new(); flows],
            links: vec![Vec::new(); links],
            phases: Vec::new(),
        }
    }

    /// A row ends; those of flows and links follow.
    pub(crate) fn end(&mut self, t_s: f64) {
        self.ends.push(t_s);
    }

    /// The flow's row in which everything is unknown yet.
    pub(crate) fn begin_flow(&mut self, flow: usize) -> &mut FlowRow {
        self.flows[flow].push_mut(FlowRow::UNKNOWN)
    }

    /// The link's.
    pub(crate) fn begin_link(&mut self, link: usize) -> &mut LinkRow {
        self.links[link].push_mut(LinkRow::UNKNOWN)
    }

    /// Sets the state at the end of the last row; it replaces earlier states of the same row.
    pub(crate) fn set_flow(&mut self, flow: usize, sample: &FlowSample) {
        let Some(row) = self.flows[flow].last_mut() else { return };
        let or_unknown = |value: Option<f32>| value.unwrap_or(f32::NAN);
        row.srtt_ms = if sample.srtt.is_zero() { f32::NAN } else { ms(sample.srtt) };
        row.cwnd_pkts = sample.cwnd as f32;
        row.ssthresh_pkts = or_unknown(sample.ssthresh.map(|ssthresh| ssthresh as f32));
        row.inflight_pkts = inflight(sample) as f32;
        row.pacing_mbps = or_unknown(sample.pacing_rate.and_then(mbps));
        row.delivery_mbps = or_unknown(mbps(sample.delivery_rate));
        row.bw_mbps = or_unknown(sample.bw.and_then(mbps));
        row.min_rtt_ms = or_unknown(sample.model_min_rtt.or(sample.min_rtt).map(ms));
        row.extra_acked_pkts = or_unknown(sample.extra_acked.map(|extra| extra as f32));
        let most = sample.inflight_longterm;
        row.inflight_longterm_pkts = or_unknown(most.map(|most| most as f32));
        row.rounds = or_unknown(sample.rounds.map(|rounds| rounds as f32));
        row.rwnd_bytes = sample.rwnd as f32;
        row.phase = match sample.phase {
            "" => f32::NAN,
            phase => number(&mut self.phases, phase),
        };
    }

    pub(crate) fn set_link(&mut self, link: usize, sample: &QueueSample) {
        let Some(row) = self.links[link].last_mut() else { return };
        row.queue_pkts = sample.packets as f32;
        // What arrives at the very end of the step is in its backlog.
        row.queue_peak_pkts = row.queue_peak_pkts.max(row.queue_pkts);
        row.queue_bytes = sample.bytes as f32;
        row.capacity_mbps = mbps(sample.capacity).unwrap_or(f32::NAN);
    }

    /// Whether the rows to which nothing more is added, all but the last, make a piece.
    #[inline]
    pub(crate) fn has_piece(&self) -> bool {
        self.ends.len() > self.rows_in_piece
    }

    /// Hands on the rows of a piece.
    pub(crate) fn take_piece(&mut self) -> Series {
        let rows = self.rows_in_piece.min(self.ends.len());
        let piece = Series {
            step: self.outline.step,
            t_s: self.ends.drain(..rows).collect(),
            flows: self.flows.iter_mut().map(|own| first_of(own, rows, FlowSeries::of)).collect(),
            links: self.links.iter_mut().map(|own| first_of(own, rows, LinkSeries::of)).collect(),
            phases: self.phases.clone(),
        };
        self.outline.add(&piece);
        piece
    }

    /// Hands on all that are left, and the outline of the whole run.
    pub(crate) fn finish(mut self) -> (Series, Outline) {
        let rest = Series {
            step: self.outline.step,
            t_s: self.ends,
            flows: self.flows.iter().map(|rows| FlowSeries::of(rows)).collect(),
            links: self.links.iter().map(|rows| LinkSeries::of(rows)).collect(),
            phases: self.phases,
        };
        self.outline.add(&rest);
        (rest, self.outline)
    }
}

/// The first rows as columns; the others stay.
fn first_of<R, S>(own: &mut Vec<R>, rows: usize, columns: impl Fn(&[R]) -> S) -> S {
    let rows = rows.min(own.len());
    let piece = columns(&own[..rows]);
    own.drain(..rows);
    piece
}

/// The number of a phase, which is added if it is new.
fn number(phases: &mut Vec<&'static str>, phase: &'static str) -> f32 {
    let known = phases.iter().position(|known| *known == phase);
    known.unwrap_or_else(|| {
        phases.push(phase);
        phases.len() - 1
    }) as f32
}

/// Packets that Linux counts as in the network (`tcp_packets_in_flight`).
pub(crate) fn inflight(sample: &FlowSample) -> u32 {
    (sample.unacked + sample.retrans).saturating_sub(sample.sacked + sample.lost)
}

/// The mean in milliseconds of delays in nanoseconds; not-a-number without any.
pub(crate) fn mean_ms(delays: &Summary) -> f32 {
    // Converting 64 bits takes less work, and the sum usually fits.
    let sum = match u64::try_from(delays.sum) {
        Ok(sum) => sum as f64,
        Err(_) => as_float(delays.sum),
    };
    (sum / delays.count as f64 / 1e6) as f32
}

/// A function of its own, so that the compiler does not compute it beside the usual branch.
#[cold]
#[inline(never)]
fn as_float(sum: u128) -> f64 {
    sum as f64
}

pub(crate) fn max_ms(delays: &Summary) -> f32 {
    if delays.count == 0 { f32::NAN } else { (delays.max as f64 / 1e6) as f32 }
}

fn ms(span: Span) -> f32 {
    span.as_millis_f64() as f32
}

fn mbps(rate: Rate) -> Option<f32> {
    (!rate.is_unlimited()).then(|| rate.as_mbps() as f32)
}
