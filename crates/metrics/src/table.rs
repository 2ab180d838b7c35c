//! Every metric by name: what results, claims and `sojourn list` share.

use sojourn_core::{DropReason, FlowSample, Responsiveness, Span, Time};

use crate::histogram::Distribution;
use crate::outcome::{FlowKind, FlowMetrics, LinkMetrics, RunMetrics, VoiceCounts};
use crate::qoe::{self, Scorer};
use crate::stats;

/// A number with a name.
#[derive(Clone, Copy, Debug)]
pub struct Metric {
    /// Unique within its scope; ends in the unit, where it has one that is not a count.
    pub name: &'static str,
    /// Empty for shares, scores and indices.
    pub unit: &'static str,
    pub scope: Scope,
    pub doc: &'static str,
    pub of: Of,
}

/// What a metric describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    Flow,
    Link,
    Run,
}

impl Scope {
    pub const ALL: [Self; 3] = [Self::Flow, Self::Link, Self::Run];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Flow => "flow",
            Self::Link => "link",
            Self::Run => "run",
        }
    }
}

/// How a metric is read from a result; `None` if it has no value, such as a delay that was not
/// measured.
#[derive(Clone, Copy, Debug)]
pub enum Of {
    Flow(fn(&FlowMetrics) -> Option<f64>),
    Link(fn(&LinkMetrics) -> Option<f64>),
    Run(fn(&RunMetrics) -> Option<f64>),
}

impl Metric {
    /// `None` for a metric of another scope, like the two that follow.
    pub fn of_flow(&self, flow: &FlowMetrics) -> Option<f64> {
        match self.of {
            Of::Flow(of) => of(flow),
            Of::Link(_) | Of::Run(_) => None,
        }
    }

    pub fn of_link(&self, link: &LinkMetrics) -> Option<f64> {
        match self.of {
            Of::Link(of) => of(link),
            Of::Flow(_) | Of::Run(_) => None,
        }
    }

    pub fn of_run(&self, run: &RunMetrics) -> Option<f64> {
        match self.of {
            Of::Run(of) => of(run),
            Of::Flow(_) | Of::Link(_) => None,
        }
    }
}

impl FlowMetrics {
    /// A metric of scope [`Scope::Flow`] by name; `None` when it has no value or there is no such.
    pub fn value(&self, name: &str) -> Option<f64> {
        metric(Scope::Flow, name)?.of_flow(self)
    }
}

impl LinkMetrics {
    /// A metric of scope [`Scope::Link`] by name; `None` when it has no value or there is no such.
    pub fn value(&self, name: &str) -> Option<f64> {
        metric(Scope::Link, name)?.of_link(self)
    }
}

impl RunMetrics {
    /// A metric of scope [`Scope::Run`] by name; `None` when it has no value or there is no such.
    pub fn value(&self, name: &str) -> Option<f64> {
        metric(Scope::Run, name)?.of_run(self)
    }
}

/// A metric by name.
pub fn metric(scope: Scope, name: &str) -> Option<&'static Metric> {
    metrics(scope).find(|metric| metric.name == name)
}

/// The metrics of a scope, in the order of the table.
pub fn metrics(scope: Scope) -> impl Iterator<Item = &'static Metric> {
    METRICS.iter().filter(move |metric| metric.scope == scope)
}

/// The whole table, flows first.
pub const METRICS: &[Metric] = &flatten::<{ length(GROUPS) }>(GROUPS);

const fn length(groups: &[&[Metric]]) -> usize {
    let (mut sum, mut at) = (0, 0);
    while at < groups.len() {
        sum += groups[at].len();
        at += 1;
    }
    sum
}

const fn flatten<const N: usize>(groups: &[&[Metric]]) -> [Metric; N] {
    let mut flat = [groups[0][0]; N];
    let (mut next, mut group) = (0, 0);
    while group < groups.len() {
        let mut at = 0;
        while at < groups[group].len() {
            flat[next] = groups[group][at];
            next += 1;
            at += 1;
        }
        group += 1;
    }
    flat
}

macro_rules! group {
    ($scope:ident; $($name:expr, $unit:expr, $doc:expr, $of:expr;)*) => {
        &[$(Metric {
            name: $name,
            unit: $unit,
            scope: Scope::$scope,
            doc: $doc,
            of: Of::$scope($of),
        },)*]
    };
}

/// Quantiles of a distribution; `$scale` converts its integers to the unit.
macro_rules! quantiles {
    ($scope:ident, $prefix:literal, $suffix:literal, $unit:literal, $scale:expr, $what:literal,
     $($field:ident).+) => {
        group! { $scope;
            concat!($prefix, "_min", $suffix), $unit, concat!("Least ", $what),
                |of| of.$($field).+.min().map(|value| value as f64 * $scale);
            concat!($prefix, "_mean", $suffix), $unit, concat!("Mean ", $what),
                |of| of.$($field).+.mean().map(|value| value * $scale);
            concat!($prefix, "_p1", $suffix), $unit, concat!("1st percentile of the ", $what),
                |of| quantile(&of.$($field).+, 0.01, $scale);
            concat!($prefix, "_p5", $suffix), $unit, concat!("5th percentile of the ", $what),
                |of| quantile(&of.$($field).+, 0.05, $scale);
            concat!($prefix, "_p25", $suffix), $unit, concat!("25th percentile of the ", $what),
                |of| quantile(&of.$($field).+, 0.25, $scale);
            concat!($prefix, "_p50", $suffix), $unit, concat!("Median ", $what),
                |of| quantile(&of.$($field).+, 0.5, $scale);
            concat!($prefix, "_p75", $suffix), $unit, concat!("75th percentile of the ", $what),
                |of| quantile(&of.$($field).+, 0.75, $scale);
            concat!($prefix, "_p95", $suffix), $unit, concat!("95th percentile of the ", $what),
                |of| quantile(&of.$($field).+, 0.95, $scale);
            concat!($prefix, "_p99", $suffix), $unit, concat!("99th percentile of the ", $what),
                |of| quantile(&of.$($field).+, 0.99, $scale);
            concat!($prefix, "_p999", $suffix), $unit, concat!("99.9th percentile of the ", $what),
                |of| quantile(&of.$($field).+, 0.999, $scale);
            concat!($prefix, "_max", $suffix), $unit, concat!("Largest ", $what),
                |of| of.$($field).+.max().map(|value| value as f64 * $scale);
        }
    };
}

/// The time that pictures stood still for longer than a threshold.
macro_rules! stalls {
    ($($at:literal $ms:literal)*) => {
        group! { Flow; $(
            concat!("stall", $ms, "_count"), "", concat!("Gaps between frames above ", $ms, " ms"),
                |flow| of_frames(flow, flow.frames.stalls[$at].count as f64);
            concat!("stall", $ms, "_ms"), "ms",
                concat!("Sum of the gaps between frames above ", $ms, " ms"),
                |flow| of_frames(flow, flow.frames.stalls[$at].whole.as_millis_f64());
            concat!("stall", $ms, "_excess_ms"), "ms",
                concat!("What gaps between frames are longer than ", $ms, " ms, in sum"),
                |flow| of_frames(flow, flow.frames.stalls[$at].excess.as_millis_f64());
        )* }
    };
}

/// Completion times of transfers of a class of sizes.
macro_rules! by_size {
    ($($at:literal $class:literal $sizes:literal),*) => {
        group! { Flow; $(
            concat!("fct_", $class, "_mean_ms"), "ms",
                concat!("Mean completion time of transfers ", $sizes, ", as fct"),
                |flow| flow.transfers.by_size[$at].mean().map(|ns| ns * NS);
            concat!("fct_", $class, "_p50_ms"), "ms",
                concat!("Median completion time of transfers ", $sizes),
                |flow| quantile(&flow.transfers.by_size[$at], 0.5, NS);
            concat!("fct_", $class, "_p95_ms"), "ms",
                concat!("95th percentile of the completion time of transfers ", $sizes),
                |flow| quantile(&flow.transfers.by_size[$at], 0.95, NS);
            concat!("fct_", $class, "_p99_ms"), "ms",
                concat!("99th percentile of the completion time of transfers ", $sizes),
                |flow| quantile(&flow.transfers.by_size[$at], 0.99, NS);
            concat!("fct_", $class, "_n"), "", concat!("Transfers ", $sizes, " that ended, as fct_n"),
                |flow| some_if(flow.transfers.began > 0, flow.transfers.by_size[$at].count() as f64);
            concat!("fct_", $class, "_of"), "", concat!("Transfers ", $sizes, " that began, as fct_of"),
                |flow| some_if(flow.transfers.began > 0,
                    (flow.transfers.by_size[$at].count() + flow.transfers.missing_by_size[$at]) as f64);
        )* }
    };
}

/// Nanoseconds to milliseconds, and bits per second to megabits.
const NS: f64 = 1e-6;
const BPS: f64 = 1e-6;

const GROUPS: &[&[Metric]] = &[
    group! { Flow;
        "goodput_mbps", "Mbit/s",
            "Bytes that reached the application in order after the warm-up, over that time",
            |flow| carries(flow, rate(flow.after_warmup.delivered_bytes, flow.window));
        "goodput_total_mbps", "Mbit/s", "As goodput_mbps, of the whole run",
            |flow| carries(flow, rate(flow.whole.delivered_bytes, flow.run));
        "acked_mbps", "Mbit/s",
            "Growth of ss's bytes_acked from the first sample after the warm-up to the last",
            |flow| flow.acked.and_then(|(bytes, time)| rate(bytes, time));
        "received_mbps", "Mbit/s",
            "IP bytes of data packets and datagrams that arrived after the warm-up, over that time; of a call also repetitions and padding",
            |flow| carries(flow, rate(flow.after_warmup.arrived_bytes, flow.window));
        "goodput_1s_min_mbps", "Mbit/s", "Least goodput in a second after the warm-up",
            |flow| carries(flow, stats::quantile(&flow.goodput_1s_mbps, 0.0));
        "goodput_1s_p50_mbps", "Mbit/s", "Median goodput in a second after the warm-up",
            |flow| carries(flow, stats::quantile(&flow.goodput_1s_mbps, 0.5));
        "share", "", "Part in the goodput of all TCP flows after the warm-up",
            |flow| flow.share;
        "delivered_bytes", "bytes", "Bytes that reached the application in order; whole run",
            |flow| carries(flow, Some(flow.whole.delivered_bytes as f64));
        "sent_packets", "packets",
            "Data packets, datagrams and echo requests sent, retransmissions among them; whole run",
            |flow| Some(flow.whole.sent_packets as f64);
        "sent_bytes", "bytes", "Their IP bytes; whole run",
            |flow| Some(flow.whole.sent_bytes as f64);
        "arrived_packets", "packets", "Data packets and datagrams that arrived; whole run",
            |flow| carries(flow, Some(flow.whole.arrived_packets as f64));
        "retransmits", "packets", "TCP data packets sent again; whole run",
            |flow| tcp(flow, flow.whole.retransmits as f64);
        "retransmits_after_warmup", "packets", "TCP data packets sent again after the warm-up",
            |flow| tcp(flow, flow.after_warmup.retransmits as f64);
        "retransmit_share", "", "Part of the TCP data packets sent after the warm-up that were sent again",
            |flow| part(flow.after_warmup.retransmits, flow.after_warmup.sent_packets)
                .and_then(|share| tcp(flow, share));
        "dropped_packets", "packets", "Data packets, datagrams and echoes that links dropped or lost; whole run",
            |flow| Some(flow.whole.dropped_packets as f64);
        "dropped_after_warmup", "packets", "As dropped_packets, after the warm-up",
            |flow| Some(flow.after_warmup.dropped_packets as f64);
        "marked_packets", "packets", "Packets marked Congestion Experienced by links; whole run",
            |flow| Some(flow.whole.marked_packets as f64);
        "ce_packets", "packets", "Data packets and datagrams that arrived marked; whole run",
            |flow| carries(flow, Some(flow.whole.ce_packets as f64));
        "delivered_ce", "packets", "Packets that the sender knows were delivered marked; whole run",
            |flow| flow.heard.map(|heard| heard.delivered_ce as f64);
        "lost_total", "packets", "Packets that the sender deemed lost; whole run",
            |flow| flow.heard?.lost_total.map(|total| total as f64);
        "timeouts", "", "Retransmission timeouts; whole run",
            |flow| sample(flow, |last| last.timeouts_total as f64);
        "spurious", "", "Losses that the sender found out it had imagined; whole run",
            |flow| flow.last?.spurious_total.map(|total| total as f64);
        "busy_ms", "ms", "Time with data outstanding or unsent, added up over connections; whole run",
            |flow| sample(flow, |last| last.busy.as_millis_f64());
        "busy_share", "", "That time as part of the run; above 1 where connections are busy at once",
            |flow| sample(flow, |last| last.busy.as_secs_f64() / flow.run.as_secs_f64());
        "rwnd_limited_ms", "ms", "Time in which only the receive window held the sender back; whole run",
            |flow| sample(flow, |last| last.rwnd_limited.as_millis_f64());
        "rwnd_limited_share", "", "That time as part of the busy time, as ss prints it",
            |flow| flow.last.and_then(|last| part(last.rwnd_limited.as_nanos(), last.busy.as_nanos()));
        "sndbuf_limited_ms", "ms", "Time in which only the send buffer held the sender back; whole run",
            |flow| sample(flow, |last| last.sndbuf_limited.as_millis_f64());
        "sndbuf_limited_share", "", "That time as part of the busy time, as ss prints it",
            |flow| flow.last.and_then(|last| part(last.sndbuf_limited.as_nanos(), last.busy.as_nanos()));
        "notsent_mean_bytes", "bytes",
            "Bytes that the application has written and TCP has not sent, mean over samples after the warm-up",
            |flow| flow.not_sent_bytes;
        "probe_rtt_count", "", "Entries into PROBE_RTT after the warm-up, of controllers that have it",
            |flow| flow.probe_rtt().map(|(count, _)| count as f64);
        "probe_rtt_ms", "ms", "Time in it",
            |flow| flow.probe_rtt().map(|(_, time)| time.as_millis_f64());
        "rpm", "1/min",
            "Responsiveness under working conditions: round trips a minute, mean of the next two",
            |flow| responsiveness(flow, |result| result.rpm);
        "rpm_foreign", "1/min", "Round trips a minute over connections of their own",
            |flow| responsiveness(flow, |result| result.foreign);
        "rpm_loaded", "1/min", "Round trips a minute over the connections that load",
            |flow| responsiveness(flow, |result| result.loaded);
        "rpm_connections", "", "Connections that loaded in the end",
            |flow| responsiveness(flow, |result| f64::from(result.connections));
        "rpm_confidence", "", "2 if the result was stable, 1 if it was not but intervals were enough, 0 if they were not",
            |flow| responsiveness(flow, |result| f64::from(result.confidence as u8));
        "rpm_at_ms", "ms", "When the test reported last, from the beginning of the run",
            |flow| flow.responsiveness.map(|(_, at)| at.as_millis_f64());
        "connect_ms", "ms", "From the first connection request to its answer",
            |flow| flow.connect.map(Span::as_millis_f64);
        "connect_n", "", "1 if that answer came",
            |flow| some_if(flow.has_asked, f64::from(flow.connect.is_some()));
        "connect_of", "", "1 if a connection was asked for",
            |flow| some_if(flow.has_asked, 1.0);
        "owd_n", "", "Datagrams that arrived after the warm-up: what owd, pdv, ipdv and jitter are of",
            |flow| some_if(flow.datagrams.sent > 0, flow.owd.count() as f64);
        "owd_of", "", "The same and those sent after the warm-up that were lost; not those under way at the end",
            |flow| some_if(flow.datagrams.sent > 0, (flow.owd.count() + flow.datagrams_after_warmup.lost) as f64);
    },
    quantiles!(Flow, "rtt", "_ms", "ms", NS, "round-trip time that the sender measured", rtt),
    quantiles!(
        Flow,
        "srtt",
        "_ms",
        "ms",
        NS,
        "smoothed round-trip time, over samples at the step",
        srtt
    ),
    quantiles!(Flow, "owd", "_ms", "ms", NS, "one-way delay of data packets or datagrams", owd),
    quantiles!(Flow, "cwnd", "_pkts", "packets", 1.0, "congestion window, over samples", cwnd),
    quantiles!(
        Flow,
        "inflight",
        "_pkts",
        "packets",
        1.0,
        "number of packets in flight, over samples",
        inflight
    ),
    quantiles!(Flow, "pacing", "_mbps", "Mbit/s", BPS, "pacing rate, over samples", pacing),
    quantiles!(
        Flow,
        "ping",
        "_ms",
        "ms",
        NS,
        "echo reply time of requests after the warm-up",
        ping
    ),
    group! { Flow;
        "ping_n", "", "Echo requests sent after the warm-up that were answered: what ping_* is of",
            |flow| some_if(flow.pings.sent > 0, flow.ping.count() as f64);
        "ping_of", "", "The same and those that were lost; not those under way at the end",
            |flow| some_if(flow.pings.sent > 0, flow.ping.count() as f64 + flow.pings_after_warmup.lost as f64);
        "ping_sent", "packets", "Echo requests sent after the warm-up",
            |flow| some_if(flow.pings.sent > 0, flow.pings_after_warmup.sent as f64);
        "ping_lost", "packets", "Of them, dropped, or left without a reply although a later one had one",
            |flow| some_if(flow.pings.sent > 0, flow.pings_after_warmup.lost as f64);
        "ping_loss_share", "", "As part of those whose fate is known, of those asked longer before the end than the last reply took",
            |flow| flow.pings_after_warmup.loss_share();
        "lost_packets", "packets", "Datagrams that were dropped, or did not arrive although a later one did; whole run",
            |flow| some_if(flow.datagrams.sent > 0, flow.datagrams.lost as f64);
        "loss_share", "", "Part of the datagrams sent after the warm-up that were lost, of those sent longer before the end than the last arrival took",
            |flow| flow.datagrams_after_warmup.loss_share();
        "jitter_ms", "ms", "Smoothed jitter of datagrams at the end of the run (RFC 3550 section 6.4.1)",
            |flow| flow.jitter.map(|ns| ns * NS);
        "jitter_mean_ms", "ms", "Mean of the smoothed jitter over datagrams",
            |flow| flow.jitter_mean.map(|ns| ns * NS);
        "ipdv_mean_ms", "ms", "Mean |difference of delay| of successive datagrams (RFC 5481 section 4.1)",
            |flow| flow.ipdv.mean().map(|ns| ns * NS);
        "ipdv_p95_ms", "ms", "95th percentile of it",
            |flow| quantile(&flow.ipdv, 0.95, NS);
        "ipdv_p99_ms", "ms", "99th percentile of it",
            |flow| quantile(&flow.ipdv, 0.99, NS);
        "pdv_p50_ms", "ms", "Median one-way delay above the least (RFC 5481 section 4.2)",
            |flow| pdv(flow, 0.5);
        "pdv_p95_ms", "ms", "95th percentile of the one-way delay above the least",
            |flow| pdv(flow, 0.95);
        "pdv_p99_ms", "ms", "99th percentile of the one-way delay above the least",
            |flow| pdv(flow, 0.99);
        "mos", "",
            "Opinion score of a call with the datagrams' delay, jitter and loss (ITU-T G.107)",
            |flow| mos(flow, Scorer::G107);
        "mos_flent2016", "",
            "The same as flent computed it from 2016 to 2018, with two mistakes",
            |flow| mos(flow, Scorer::Flent2016);
        "frames_complete", "", "Frames of which every datagram arrived, after the warm-up; of a call those that were shown",
            |flow| some_if(has_frames(flow), flow.frames.complete as f64);
        "frames_lost", "", "Frames of which a datagram was lost, after the warm-up; of a call those that were not shown and lost a packet",
            |flow| some_if(has_frames(flow), flow.frames.lost as f64);
        "frame_delay_n", "", "Frames that became complete after the warm-up: what frame_delay_* is of",
            |flow| some_if(has_frames(flow), flow.frames.complete as f64);
        "frame_delay_of", "", "The same and the lost ones; not those under way at the end",
            |flow| some_if(has_frames(flow), (flow.frames.complete + flow.frames.lost) as f64);
        "frame_loss_share", "", "Part of the frames that were lost, of those sent longer before the end than the last one took",
            |flow| flow.frames.loss_share();
    },
    quantiles!(
        Flow,
        "frame_delay",
        "_ms",
        "ms",
        NS,
        "time from a frame's departure until it was complete; of a call from capture until it was shown",
        frames.delay
    ),
    quantiles!(Flow, "frame_gap", "_ms", "ms", NS, "time between complete frames", frames.gap),
    stalls!(0 "33" 1 "50" 2 "100" 3 "150" 4 "200" 5 "500"),
    group! { Flow;
        "frames_encoded", "", "call: frames that left the encoder after the warm-up (W3C framesEncoded)",
            |flow| of_call(flow, flow.media.after_warmup.encoded as f64);
        "frames_sent", "", "call: frames of which the last packet was sent after the warm-up (framesSent)",
            |flow| of_call(flow, flow.media.after_warmup.sent as f64);
        "frames_received", "", "call: frames of which all packets had arrived (framesReceived)",
            |flow| of_call(flow, flow.media.after_warmup.received as f64);
        "frames_decoded", "", "call: frames decoded after the warm-up (framesDecoded)",
            |flow| of_call(flow, flow.media.after_warmup.decoded as f64);
        "frames_rendered", "", "call: frames shown after the warm-up (framesRendered)",
            |flow| of_call(flow, flow.media.after_warmup.rendered as f64);
        "frames_dropped", "", "call: frames that the receiver gave up after the warm-up (framesDropped)",
            |flow| of_call(flow, flow.media.after_warmup.dropped as f64);
        "rendered_fps", "frames/s", "call: frames shown after the warm-up, over that time (framesPerSecond)",
            |flow| of_call(flow, flow.media.after_warmup.rendered as f64 / flow.window.as_secs_f64());
        "key_frames", "", "call: of the encoded frames, key frames (keyFramesEncoded)",
            |flow| of_call(flow, flow.media.after_warmup.key as f64);
        "encoded_mbps", "Mbit/s", "call: payload that the encoder made after the warm-up, over that time",
            |flow| rate(flow.media.after_warmup.encoded_bytes, flow.window).and_then(|mbps| of_call(flow, mbps));
        "target_mean_mbps", "Mbit/s", "call: mean of what the rate controller let it send, headers included, over samples at the step after the warm-up",
            |flow| flow.media.target.mean().map(|bps| bps * BPS);
        "target_p50_mbps", "Mbit/s", "Median of it",
            |flow| quantile(&flow.media.target, 0.5, BPS);
        "nacks", "", "call: messages after the warm-up that ask for packets again (nackCount)",
            |flow| of_call(flow, flow.media.after_warmup.nacks as f64);
        "nacked_packets", "packets", "call: packets that they ask for",
            |flow| of_call(flow, flow.media.after_warmup.nacked_packets as f64);
        "key_requests", "", "call: requests for a key frame after the warm-up (pliCount)",
            |flow| of_call(flow, flow.media.after_warmup.key_requests as f64);
        "repair_packets", "packets", "call: packets sent again after the warm-up (retransmittedPacketsSent)",
            |flow| of_call(flow, flow.media.after_warmup.repair_packets as f64);
        "padding_packets", "packets", "call: packets without content sent after the warm-up",
            |flow| of_call(flow, flow.media.after_warmup.padding_packets as f64);
        "fec_packets", "packets", "call: packets of parity sent after the warm-up",
            |flow| of_call(flow, flow.media.after_warmup.fec_packets as f64);
        "fec_share", "", "call: bytes of these packets, over all that it sent after the warm-up",
            |flow| part(flow.media.after_warmup.fec_bytes, flow.after_warmup.sent_bytes).and_then(|part| of_call(flow, part));
        "fec_recovered_packets", "packets", "call: packets of video restored from parity after the warm-up",
            |flow| of_call(flow, flow.media.after_warmup.fec_recovered as f64);
    },
    quantiles!(
        Flow,
        "buffered",
        "_ms",
        "ms",
        NS,
        "time that a decoded frame of a call was at the receiver, from its first packet on (jitterBufferDelay)",
        media.buffered
    ),
    group! { Flow;
        "mos_voice", "", "Opinion score of a call's sound, from its delay and what was made up of it (ITU-T G.107)",
            voice_mos;
        "audio_played", "", "call: frames of sound that were heard after the warm-up",
            |flow| of_voice(flow, flow.media.voice.after_warmup.played as f64);
        "audio_concealed_share", "", "call: part of the sound heard after the warm-up that was made up (concealedSamples over totalSamplesReceived)",
            |flow| flow.media.voice.after_warmup.concealed_share();
        "audio_concealments", "", "call: how often sound began to be made up after the warm-up (concealmentEvents)",
            |flow| of_voice(flow, flow.media.voice.after_warmup.concealments as f64);
        "audio_silent_share", "", "call: part of the sound heard after the warm-up that the sender did not send because nobody spoke",
            |flow| voice_share(flow, |counts| counts.silent);
        "audio_removed_share", "", "call: sound left out to be less late, over what was heard (removedSamplesForAcceleration)",
            |flow| voice_share(flow, |counts| counts.removed);
        "audio_inserted_share", "", "call: sound repeated to be later, over what was heard (insertedSamplesForDeceleration)",
            |flow| voice_share(flow, |counts| counts.inserted);
        "audio_discarded", "packets", "call: packets of sound that came after their turn (packetsDiscarded)",
            |flow| of_voice(flow, flow.media.voice.after_warmup.discarded as f64);
        "audio_target_mean_ms", "ms", "call: how long packets of sound should wait, mean over frames (jitterBufferTargetDelay)",
            |flow| flow.media.voice.target.mean().map(|ns| ns * NS);
    },
    quantiles!(
        Flow,
        "audio_buffered",
        "_ms",
        "ms",
        NS,
        "time that a frame of a call's sound waited for its turn (jitterBufferDelay)",
        media.voice.buffered
    ),
    quantiles!(
        Flow,
        "audio_delay",
        "_ms",
        "ms",
        NS,
        "time from a frame of a call's sound being spoken until it is heard",
        media.voice.delay
    ),
    group! { Flow;
        "av_offset_p50_ms", "ms", "call with a voice: median of how much later a frame was shown than the sound heard then, since each was captured; above 0 sound is early",
            |flow| flow.media.voice.offset.median().map(|ns| ns * NS);
        "av_offset_abs_p95_ms", "ms", "95th percentile of its size",
            |flow| quantile(&flow.media.voice.offset.either, 0.95, NS);
        "av_offset_noticed_share", "", "Part of the frames with sound more than 45 ms early or 125 ms late, which viewers notice (ITU-R BT.1359-1)",
            |flow| flow.media.voice.offset.noticed_share();
        "freeze_count", "", "Freezes by libwebrtc's rule: much longer than usual and at most 5 s without a frame",
            |flow| of_frames(flow, flow.frames.freezes.count as f64);
        "freeze_ms", "ms", "Length of all freezes by libwebrtc's rule together",
            |flow| of_frames(flow, flow.frames.freezes.total.as_millis_f64());
        "freeze_w3c_count", "", "Freezes by the W3C's definition (webrtc-stats, freezeCount)",
            |flow| of_frames(flow, flow.frames.freezes_w3c.count as f64);
        "freeze_w3c_ms", "ms", "Length of all freezes by the W3C's definition together (totalFreezesDuration)",
            |flow| of_frames(flow, flow.frames.freezes_w3c.total.as_millis_f64());
        "pause_count", "", "Pauses: more than 5 s without a frame, which are no freezes (pauseCount)",
            |flow| of_frames(flow, flow.frames.pauses.count as f64);
        "pause_ms", "ms", "Length of all pauses together (totalPausesDuration)",
            |flow| of_frames(flow, flow.frames.pauses.total.as_millis_f64());
        "harmonic_fps", "frames/s", "Gaps between frames in sum over the sum of their squares, up to the last frame that was sent",
            |flow| flow.frames.harmonic_fps;
        "completions", "", "Transfers of a limited size that ended; whole run",
            |flow| some_if(flow.transfers.began > 0 || !flow.completion.is_empty(), flow.completion.count() as f64);
        "completion_n", "", "Transfers of a limited size that ended: what completion_* is of; whole run",
            |flow| some_if(flow.transfers.began > 0, flow.completion.count() as f64);
        "completion_of", "", "Transfers of a limited size that began; whole run",
            |flow| some_if(flow.transfers.began > 0, flow.transfers.began as f64);
        "completion_km_p50_ms", "ms", "Median time that a transfer takes, by Kaplan and Meier: also of those that had not ended",
            |flow| km(&flow.completion, &flow.transfers.open_in_run, 0.5);
        "completion_km_p95_ms", "ms", "95th percentile by Kaplan and Meier",
            |flow| km(&flow.completion, &flow.transfers.open_in_run, 0.95);
        "completion_km_p99_ms", "ms", "99th percentile by Kaplan and Meier",
            |flow| km(&flow.completion, &flow.transfers.open_in_run, 0.99);
        "fct_n", "", "Transfers of limited size that began after the warm-up and ended: what fct_* and slowdown_* are of",
            |flow| some_if(flow.transfers.began > 0, flow.transfers.completion.count() as f64);
        "fct_of", "", "Transfers of limited size that began after the warm-up, and those that were refused",
            |flow| some_if(flow.transfers.began > 0, of_fct(flow));
        "fct_km_p50_ms", "ms", "Median completion time of transfers that began after the warm-up, by Kaplan and Meier: also of those that had not ended",
            |flow| km(&flow.transfers.completion, &flow.transfers.open, 0.5);
        "fct_km_p95_ms", "ms", "95th percentile by Kaplan and Meier",
            |flow| km(&flow.transfers.completion, &flow.transfers.open, 0.95);
        "fct_km_p99_ms", "ms", "99th percentile by Kaplan and Meier",
            |flow| km(&flow.transfers.completion, &flow.transfers.open, 0.99);
    },
    quantiles!(
        Flow,
        "completion",
        "_ms",
        "ms",
        NS,
        "time that a transfer of a limited size took; whole run",
        completion
    ),
    group! { Flow;
        "transfers_started", "", "arrivals: transfers for which a connection was opened after the warm-up",
            |flow| of_arrivals(flow, flow.transfers.counts.opened);
        "transfers_completed", "", "Of them, those acknowledged whole by the end of the run",
            |flow| of_arrivals(flow, flow.transfers.counts.completed);
        "transfers_unfinished", "", "Of them, those that were not",
            |flow| of_arrivals(flow, flow.transfers.counts.opened
                .saturating_sub(flow.transfers.counts.completed));
        "transfers_refused", "", "arrivals: transfers that came when max_connections were open, after the warm-up",
            |flow| of_arrivals(flow, flow.transfers.counts.refused);
    },
    quantiles!(
        Flow,
        "fct",
        "_ms",
        "ms",
        NS,
        "completion time of transfers that began after the warm-up, from connection request to last acknowledgement",
        transfers.completion
    ),
    by_size!(0 "small" "up to 100 kB", 1 "medium" "of 100 kB to 1 MB", 2 "large" "above 1 MB"),
    quantiles!(
        Flow,
        "slowdown",
        "",
        "",
        1e-3,
        "completion time of transfers that began after the warm-up, over the least possible on the empty path",
        transfers.slowdown
    ),
    group! { Flow;
        "reported_goodput_mbps", "Mbit/s", "live: goodput after the warm-up, as the flow's own programs say, such as iperf3 or a browser",
            |flow| flow.reported.mbps;
        "reported_retransmits", "packets", "live: retransmissions after the warm-up, as they say",
            |flow| flow.reported.retransmits;
        "reported_rtt_ms", "ms", "live: mean of the round-trip times that they say",
            |flow| flow.reported.rtt_ms;
        "reported_loss_share", "", "live: part of the packets after the warm-up that they say are lost",
            |flow| flow.reported.loss;
        "reported_jitter_ms", "ms", "live: mean of the jitter that they say",
            |flow| flow.reported.jitter_ms;
        "reported_target_mbps", "Mbit/s", "live: mean of the rate that a browser's sender aims at",
            |flow| flow.reported.target_mbps;
        "reported_frames", "", "live: frames that a browser decoded after the warm-up",
            |flow| flow.reported.frames;
        "reported_fps", "frames/s", "live: the same in a second",
            |flow| flow.reported.fps;
        "reported_freezes", "", "live: a browser's freezeCount after the warm-up",
            |flow| flow.reported.freezes;
        "reported_freeze_ms", "ms", "live: length of all freezes that a browser counted after the warm-up together (totalFreezesDuration)",
            |flow| flow.reported.freeze_ms;
        "reported_jitter_buffer_ms", "ms", "live: mean time that a frame waited in a browser's jitter buffer",
            |flow| flow.reported.jitter_buffer_ms;
    },
    group! { Link;
        "throughput_mbps", "Mbit/s",
            "Ethernet bytes that left the queue after the warm-up, over that time",
            |link| rate(link.after_warmup.sent_bytes, link.window);
        "utilisation", "",
            "Bytes on the medium of what left the queue after the warm-up, over what it could have carried",
            |link| link.utilisation;
        "sent_packets", "packets", "Packets that left the queue; whole run",
            |link| Some(link.whole.sent_packets as f64);
        "sent_bytes", "bytes", "Their bytes with Ethernet headers; whole run",
            |link| Some(link.whole.sent_bytes as f64);
        "drops", "packets", "Packets dropped or lost, for whatever reason; whole run",
            |link| Some(link.whole.drops() as f64);
        "drops_after_warmup", "packets", "As drops, after the warm-up",
            |link| Some(link.after_warmup.drops() as f64);
        "drop_share", "", "Part of the packets that came to the queue after the warm-up that it dropped",
            drop_share;
        "drops_full", "packets", "Arrivals dropped by a full queue; whole run",
            |link| Some(link.whole.drops_because(DropReason::Full) as f64);
        "drops_overflow", "packets", "Packets dropped from the queue to make room; whole run",
            |link| Some(link.whole.drops_because(DropReason::Overflow) as f64);
        "drops_aqm", "packets", "Packets dropped by the active queue management; whole run",
            |link| Some(link.whole.drops_because(DropReason::Aqm) as f64);
        "drops_ack_filtered", "packets", "Acknowledgements that newer ones replaced; whole run",
            |link| Some(link.whole.drops_because(DropReason::AckFiltered) as f64);
        "drops_medium", "packets", "Packets lost on the medium; whole run",
            |link| Some(link.whole.drops_because(DropReason::Medium) as f64);
        "drops_policed", "packets", "Packets that a policer in front of the queue dropped; whole run",
            |link| Some(link.whole.drops_because(DropReason::Policed) as f64);
        "drops_entry", "packets", "Packets lost before they came to the queue (entry_loss); whole run",
            |link| Some(link.whole.drops_because(DropReason::Entry) as f64);
        "marks", "packets", "Packets marked Congestion Experienced; whole run",
            |link| Some(link.whole.marks as f64);
        "marks_after_warmup", "packets", "As marks, after the warm-up",
            |link| Some(link.after_warmup.marks as f64);
    },
    quantiles!(
        Link,
        "sojourn",
        "_ms",
        "ms",
        NS,
        "wait in the queue of packets that left it",
        sojourn
    ),
    group! { Link;
        "sojourn_n", "", "Packets that left the queue after the warm-up: what sojourn_* is of",
            |link| Some(link.after_warmup.sent_packets as f64);
        "sojourn_of", "", "The same and those that the queue dropped",
            |link| Some(came(link) as f64);
        "queue_mean_pkts", "packets", "Mean backlog over time, of samples at the step",
            |link| link.queue_mean_pkts;
        "queue_p50_pkts", "packets", "Median backlog, over samples at the step",
            |link| quantile(&link.queue, 0.5, 1.0);
        "queue_p95_pkts", "packets", "95th percentile of the backlog, over samples at the step",
            |link| quantile(&link.queue, 0.95, 1.0);
        "queue_p99_pkts", "packets", "99th percentile of the backlog, over samples at the step",
            |link| quantile(&link.queue, 0.99, 1.0);
        "queue_max_pkts", "packets", "Largest backlog after the warm-up, seen at every arrival",
            |link| Some(f64::from(link.queue_max_pkts));
        "queue_mean_bytes", "bytes", "Mean backlog over time, of samples at the step",
            |link| link.queue_mean_bytes;
        "queue_p50_bytes", "bytes", "Median backlog, over samples at the step",
            |link| quantile(&link.queue_bytes, 0.5, 1.0);
        "queue_max_bytes", "bytes", "Largest backlog, over samples at the step",
            |link| link.queue_bytes.max().map(|bytes| bytes as f64);
    },
    group! { Link;
        "rest_queue_pkts", "packets", "fluid rest=on: backlog at which nothing would change",
            |link| Some(link.rest?.queue_pkts);
        "rest_damping_per_s", "1/s", "fluid rest=on: how fast a small disturbance of that dies away; below zero it grows, and the queue swings",
            |link| link.rest?.damping_per_s;
        "rest_period_ms", "ms", "fluid rest=on: period in which it swings meanwhile",
            |link| Some(link.rest?.period?.as_millis_f64());
    },
    group! { Link;
        "airtime_share", "", "radio: part of this port in the time on the air of all data after the warm-up",
            |link| link.air?.share;
        "station_airtime_share", "", "radio: the same of its station, in both directions",
            |link| link.air?.station_share;
        "jain_airtime", "", "radio: Jain's index of the airtime of all stations",
            |link| link.air?.jain;
        "mpdus_per_ppdu", "", "radio: frames in an aggregate, as sent after the warm-up",
            |link| link.air.and_then(|air| part(air.sent.mpdus, air.sent.ppdus));
        "collision_share", "", "radio: attempts to send after the warm-up that collided",
            |link| link.air.and_then(|air| part(air.sent.collided, air.sent.attempts));
        "retry_share", "", "radio: frames sent after the warm-up that did not arrive",
            |link| link.air.and_then(|air| part(air.sent.failed, air.sent.mpdus));
    },
    group! { Run;
        "end_ms", "ms", "When the run ended",
            |run| Some(run.end.since(Time::ZERO).as_millis_f64());
        "transfers_done", "", "Transfers of a limited size that ended, of all flows; whole run",
            |run| some_if(run.totals.transfers_begun > 0, run.totals.transfers_done as f64);
        "transfers_begun", "", "Transfers of a limited size that began, of all flows; whole run",
            |run| some_if(run.totals.transfers_begun > 0, run.totals.transfers_begun as f64);
        "goodput_sum_mbps", "Mbit/s", "goodput_mbps of all flows",
            |run| some_if(run.flows.iter().any(carries_data) && !run.window.is_zero(), run.totals.goodput_sum_mbps);
        "tcp_goodput_sum_mbps", "Mbit/s", "goodput_mbps of all TCP flows",
            |run| some_if(has_tcp(run) && !run.window.is_zero(), run.totals.tcp_goodput_sum_mbps);
        "jain", "", "Jain's index of goodput_mbps over the TCP flows that send one stream (not arrivals, pages and requests)",
            |run| run.totals.jain;
        "jain_1s_p50", "", "Median over the seconds after the warm-up of Jain's index in each, over the flows that are there",
            |run| stats::quantile(&run.totals.jain_1s, 0.5);
        "jain_1s_min", "", "Least of them",
            |run| stats::quantile(&run.totals.jain_1s, 0.0);
        "jain_1s_after_drop_p50", "", "Median of Jain's index in the seconds in which, or up to 5 s before which, a link had less than half of its median capacity",
            |run| stats::quantile(&run.totals.jain_1s_by_drop[0], 0.5);
        "jain_1s_apart_p50", "", "Median of it in the other seconds",
            |run| stats::quantile(&run.totals.jain_1s_by_drop[1], 0.5);
        "tcp_goodput_step_min_mbps", "Mbit/s", "Least goodput of all TCP flows together in a step",
            |run| stats::quantile(&run.totals.tcp_goodput_step_mbps, 0.0);
        "tcp_goodput_step_p50_mbps", "Mbit/s", "Median of it",
            |run| stats::quantile(&run.totals.tcp_goodput_step_mbps, 0.5);
        "min_max", "", "Least over largest goodput_mbps of the same flows",
            |run| run.totals.min_max;
        "retransmits_sum", "packets", "retransmits of all flows",
            |run| some_if(has_tcp(run), run.totals.retransmits as f64);
        "drops_sum", "packets", "drops of all links",
            |run| Some(run.totals.drops as f64);
        "marks_sum", "packets", "marks of all links",
            |run| Some(run.totals.marks as f64);
        "data_packets", "packets", "TCP data packets that arrived; whole run",
            |run| some_if(has_tcp(run), run.totals.data_packets as f64);
        "lateness_p50_ms", "ms", "live: median of how much later than computed packets left the last link; whole run",
            |run| quantile(&run.timing.lateness, 0.5, NS);
        "lateness_p95_ms", "ms", "live: 95th percentile of it",
            |run| quantile(&run.timing.lateness, 0.95, NS);
        "lateness_p99_ms", "ms", "live: 99th percentile of it",
            |run| quantile(&run.timing.lateness, 0.99, NS);
        "lateness_max_ms", "ms", "live: largest of it",
            |run| run.timing.lateness.max().map(|ns| ns as f64 * NS);
        "stolen_share", "", "live: part of the processors' time that the hypervisor gave to others; whole run",
            |run| run.timing.stolen_share;
        "strays", "packets", "live: packets that belonged to no flow; whole run",
            |run| run.timing.strays.map(|packets| packets as f64);
        "is_late", "", "live: 1 if the run was later than its engine allows, so that its numbers can't be trusted; else 0",
            |run| run.timing.is_late.map(f64::from);
    },
];

fn quantile(distribution: &Distribution, q: f64, scale: f64) -> Option<f64> {
    distribution.quantile(q).map(|value| value * scale)
}

/// Megabits per second; `None` over no time.
fn rate(bytes: u64, time: Span) -> Option<f64> {
    (!time.is_zero()).then(|| bytes as f64 * 8e3 / time.as_nanos() as f64)
}

fn part(of: u64, all: u64) -> Option<f64> {
    (all > 0).then(|| of as f64 / all as f64)
}

fn some_if(has: bool, value: f64) -> Option<f64> {
    has.then_some(value)
}

/// A number about the data that a flow carries to an application; echoes carry none.
fn carries(flow: &FlowMetrics, value: Option<f64>) -> Option<f64> {
    value.filter(|_| carries_data(flow))
}

fn carries_data(flow: &FlowMetrics) -> bool {
    flow.kind != FlowKind::Ping
}

fn has_tcp(run: &RunMetrics) -> bool {
    run.flows.iter().any(|flow| flow.kind.is_tcp())
}

fn tcp(flow: &FlowMetrics, value: f64) -> Option<f64> {
    some_if(flow.kind.is_tcp(), value)
}

fn has_frames(flow: &FlowMetrics) -> bool {
    flow.datagrams.sent > 0 || flow.media.is_call
}

fn of_call(flow: &FlowMetrics, value: f64) -> Option<f64> {
    some_if(flow.media.is_call, value)
}

/// A number about gaps between frames. Where nothing was ever shown, nothing stood still.
fn of_frames(flow: &FlowMetrics, value: f64) -> Option<f64> {
    let frames = &flow.frames;
    let was_shown = frames.complete > 0 || frames.stalls.iter().any(|stall| stall.count > 0);
    some_if(has_frames(flow) && was_shown, value)
}

fn of_arrivals(flow: &FlowMetrics, count: u64) -> Option<f64> {
    some_if(flow.kind == FlowKind::Arrivals, count as f64)
}

fn responsiveness(flow: &FlowMetrics, of: fn(&Responsiveness) -> f64) -> Option<f64> {
    flow.responsiveness.as_ref().map(|(result, _)| of(result))
}

fn sample(flow: &FlowMetrics, of: impl Fn(&FlowSample) -> f64) -> Option<f64> {
    flow.last.as_ref().map(of)
}

fn pdv(flow: &FlowMetrics, q: f64) -> Option<f64> {
    let least = flow.owd.min()? as f64;
    flow.owd.quantile(q).map(|delay| (delay - least) * NS)
}

fn of_voice(flow: &FlowMetrics, value: f64) -> Option<f64> {
    some_if(!flow.media.voice.whole.heard.is_zero(), value)
}

fn voice_share(flow: &FlowMetrics, of: impl Fn(&VoiceCounts) -> Span) -> Option<f64> {
    let counts = &flow.media.voice.after_warmup;
    some_if(!counts.heard.is_zero(), of(counts).as_secs_f64() / counts.heard.as_secs_f64())
}

/// What was made up counts as lost; the jitter buffer has turned what packets vary into delay. Where packets were sent and nothing
/// was heard, it has the lowest score.
fn voice_mos(flow: &FlowMetrics) -> Option<f64> {
    let counts = &flow.media.voice.after_warmup;
    let Some(concealed) = counts.concealed_share() else {
        return some_if(counts.sent > 0, qoe::mos_of_r(0.0));
    };
    let Some(delay) = flow.media.voice.delay.mean() else { return Some(qoe::mos_of_r(0.0)) };
    Some(qoe::mos_g107(delay * NS, concealed))
}

fn mos(flow: &FlowMetrics, scorer: Scorer) -> Option<f64> {
    // Its datagrams are not those of a voice; that of a voice beside the video is `mos_voice`.
    if flow.media.is_call {
        return None;
    }
    let loss = flow.datagrams_after_warmup.loss_share()?;
    // If nothing of a call arrives, it has the lowest score.
    let Some(owd) = flow.owd.mean() else { return Some(qoe::mos_of_r(0.0)) };
    let delay = qoe::voice_delay_ms(owd * NS, flow.ipdv.mean().unwrap_or(0.0) * NS);
    Some(qoe::mos(scorer, delay, loss))
}

fn drop_share(link: &LinkMetrics) -> Option<f64> {
    let counted = || part(link.after_warmup.drops_of_queue(), came(link));
    link.drop_share.or_else(counted)
}

/// Packets that left the queue in the window, or that it dropped.
fn came(link: &LinkMetrics) -> u64 {
    link.after_warmup.sent_packets + link.after_warmup.drops_of_queue()
}

fn km(ended: &Distribution, open: &Distribution, q: f64) -> Option<f64> {
    stats::kaplan_meier(ended, open, q).map(|time| time * NS)
}

/// Transfers of limited size that began after the warm-up, and those that were refused.
fn of_fct(flow: &FlowMetrics) -> f64 {
    let transfers = &flow.transfers;
    (transfers.completion.count() + transfers.open.count() + transfers.counts.refused) as f64
}

/// The two metrics that say how many samples a mean or quantile has, and how many began or were
/// sent; `None` for a metric that leaves nothing out, or allows for it. A packet that a queue drops
/// does not wait, so the waits of the others are complete.
pub fn sample_columns(metric: &str) -> Option<(&'static str, &'static str)> {
    const FAMILIES: [(&str, &str, &str); 12] = [
        ("completion", "completion_n", "completion_of"),
        ("fct_small", "fct_small_n", "fct_small_of"),
        ("fct_medium", "fct_medium_n", "fct_medium_of"),
        ("fct_large", "fct_large_n", "fct_large_of"),
        ("fct", "fct_n", "fct_of"),
        ("slowdown", "fct_n", "fct_of"),
        ("ping", "ping_n", "ping_of"),
        ("frame_delay", "frame_delay_n", "frame_delay_of"),
        ("frame_gap", "frame_delay_n", "frame_delay_of"),
        ("owd", "owd_n", "owd_of"),
        ("ipdv", "owd_n", "owd_of"),
        ("pdv", "owd_n", "owd_of"),
    ];
    if metric == "connect_ms" {
        return Some(("connect_n", "connect_of"));
    }
    let is_summary = |rest: &str| {
        let word = rest.strip_suffix("_ms").unwrap_or(rest);
        matches!(word, "min" | "mean" | "max")
            || word.strip_prefix('p').is_some_and(|q| q.bytes().all(|c| c.is_ascii_digit()))
    };
    FAMILIES
        .iter()
        .find(|(family, ..)| {
            metric
                .strip_prefix(family)
                .and_then(|rest| rest.strip_prefix('_'))
                .is_some_and(is_summary)
        })
        .map(|(_, n, of)| (*n, *of))
}

/// The two metrics that say how many transfers ended and how many began, for a percentile by Kaplan and
/// Meier; `None` for any other metric. Where transfers began and the percentile has no value, too few
/// ended: it is later than anything that was seen.
pub fn survival_columns(metric: &str) -> Option<(&'static str, &'static str)> {
    match metric.split_once("_km_")?.0 {
        "completion" => Some(("completion_n", "completion_of")),
        "fct" => Some(("fct_n", "fct_of")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_in_their_scope_and_lower_case() {
        for scope in Scope::ALL {
            let mut names: Vec<&str> = metrics(scope).map(|metric| metric.name).collect();
            let all = names.len();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), all);
            for name in names {
                let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
                assert!(name.chars().all(fits), "{name}");
            }
        }
    }

    #[test]
    fn names_say_their_unit() {
        for metric in METRICS {
            let suffix = match metric.unit {
                "ms" => "_ms",
                "Mbit/s" => "_mbps",
                "bytes" => "_bytes",
                "frames/s" => "_fps",
                _ => "",
            };
            assert!(metric.name.ends_with(suffix), "{} in {}", metric.name, metric.unit);
            assert!(!suffix.is_empty() || !metric.name.ends_with("_ms"), "{}", metric.name);
            assert!(!metric.doc.is_empty());
        }
    }

    #[test]
    fn a_summary_that_can_lack_values_names_its_counts() {
        for metric in METRICS {
            if let Some((n, of)) = sample_columns(metric.name) {
                assert!(super::metric(metric.scope, n).is_some(), "{n} of {}", metric.name);
                assert!(super::metric(metric.scope, of).is_some(), "{of} of {}", metric.name);
            }
        }
        assert_eq!(sample_columns("fct_small_p95_ms"), Some(("fct_small_n", "fct_small_of")));
        assert_eq!(sample_columns("slowdown_mean"), Some(("fct_n", "fct_of")));
        for complete in
            ["ping_sent", "completions", "completion_km_p50_ms", "goodput_mbps", "sojourn_p95_ms"]
        {
            assert_eq!(sample_columns(complete), None);
        }
    }

    #[test]
    fn every_estimate_by_kaplan_and_meier_names_its_counts() {
        let mut found = 0;
        for metric in METRICS.iter().filter(|metric| metric.name.contains("_km_")) {
            let (n, of) = survival_columns(metric.name).expect("it can be out of reach");
            assert!(super::metric(metric.scope, n).is_some(), "{n}");
            assert!(super::metric(metric.scope, of).is_some(), "{of}");
            found += 1;
        }
        assert!(found >= 6);
        assert_eq!(survival_columns("fct_p50_ms"), None);
    }

    #[test]
    fn scope_and_reader_agree() {
        for metric in METRICS {
            let scope = match metric.of {
                Of::Flow(_) => Scope::Flow,
                Of::Link(_) => Scope::Link,
                Of::Run(_) => Scope::Run,
            };
            assert_eq!(metric.scope, scope, "{}", metric.name);
        }
    }

    /// `rtt_p50_ms` is on the page as itself or in the row of `rtt_*_ms`.
    #[test]
    fn the_page_of_metrics_has_every_metric() {
        let page = include_str!("../../../docs/metrics.md");
        for metric in METRICS {
            let family: Vec<&str> = metric
                .name
                .split('_')
                .map(|part| if QUANTILES.contains(&part) { "*" } else { part })
                .collect();
            let is_there = |name: &str| page.contains(&format!("| `{name}` |"));
            assert!(is_there(metric.name) || is_there(&family.join("_")), "{}", metric.name);
        }
    }

    const QUANTILES: &[&str] =
        &["min", "mean", "p1", "p5", "p25", "p50", "p75", "p95", "p99", "p999", "max"];
}
