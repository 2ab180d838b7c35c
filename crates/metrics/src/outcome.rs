//! What a run came to.

use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Sub;

use sojourn_core::{AirSample, DropReason, FlowSample, PortId, Responsiveness, Span, Time};

use crate::histogram::Distribution;
use crate::qoe;
use crate::series::Series;

/// What a flow sends, which decides where it counts: fairness is among TCP flows of one connection
/// each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FlowKind {
    Tcp,
    /// Transfers that come and go, each over a TCP connection of its own.
    Arrivals,
    /// Pages, one after another, each over several TCP connections.
    Page,
    /// Requests over several TCP connections that stay open.
    Requests,
    /// A test of responsiveness, over TCP connections that it adds.
    Rpm,
    Udp,
    Ping,
}

impl FlowKind {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Arrivals => "arrivals",
            Self::Page => "page",
            Self::Requests => "requests",
            Self::Rpm => "rpm",
            Self::Udp => "udp",
            Self::Ping => "ping",
        }
    }

    pub const fn is_tcp(self) -> bool {
        matches!(self, Self::Tcp | Self::Arrivals | Self::Page | Self::Requests | Self::Rpm)
    }
}

/// The delays whose whole distribution results keep, bucket by bucket: what [`FlowMetrics::delays`] and
/// [`LinkMetrics::delays`] name.
pub const DELAYS: [&str; 8] =
    ["rtt", "owd", "ping", "frame_delay", "frame_gap", "completion", "fct", "sojourn"];

/// How long unfinished transfers had lasted at the end of the run: what [`FlowMetrics::open`] names.
pub const OPEN: [&str; 2] = ["completion_open", "fct_open"];

/// Everything that was measured in a run. Distributions are of the time after the warm-up;
/// delays are in nanoseconds.
#[derive(Clone, Debug)]
pub struct RunMetrics {
    /// In the order of the scenario, like `links`.
    pub flows: Vec<FlowMetrics>,
    pub links: Vec<LinkMetrics>,
    pub totals: Totals,
    /// Without the rows that [`Collector::take_rows`](crate::Collector::take_rows) took.
    pub series: Series,
    /// Equal for two runs whose packets did the same at the same times.
    pub digest: u64,
    pub end: Time,
    /// From the end of the warm-up to the end of the run.
    pub window: Span,
    /// How well a run in real time kept to it; nothing of one in virtual time.
    pub timing: Timing,
}

/// How well a run in real time kept to it. All of the whole run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Timing {
    /// How much later than computed packets left the last link, in nanoseconds.
    pub lateness: Distribution,
    /// Part of the processors' time that the hypervisor gave to others.
    pub stolen_share: Option<f64>,
    /// Packets that belonged to no flow.
    pub strays: Option<u64>,
    /// Beyond the bounds that the engine was given.
    pub is_late: Option<bool>,
}

/// Numbers of the run as a whole. Rates are of the time after the warm-up.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Totals {
    /// Goodput of all flows.
    pub goodput_sum_mbps: f64,
    /// Goodput of the TCP flows.
    pub tcp_goodput_sum_mbps: f64,
    /// Jain's index over the TCP flows; `None` without one or when nothing arrived.
    pub jain: Option<f64>,
    /// Least over largest goodput of the TCP flows.
    pub min_max: Option<f64>,
    /// Jain's index in each second after the warm-up.
    pub jain_1s: Vec<f64>,
    /// The same of the seconds during and up to 5 s after a time in which a link had less than half
    /// of its median capacity, and of the other seconds.
    pub jain_1s_by_drop: [Vec<f64>; 2],
    /// Goodput of all TCP flows in each step after the warm-up.
    pub tcp_goodput_step_mbps: Vec<f64>,
    pub retransmits: u64,
    pub drops: u64,
    pub marks: u64,
    /// Transfers of a limited size, of the whole run.
    pub transfers_begun: u64,
    pub transfers_done: u64,
    /// TCP data packets that reached their receiver: the yardstick of an engine's speed.
    pub data_packets: u64,
}

#[derive(Clone, Debug)]
pub struct FlowMetrics {
    pub name: String,
    pub kind: FlowKind,
    pub whole: Counts,
    pub after_warmup: Counts,
    /// Length of the run and of its part after the warm-up.
    pub run: Span,
    pub window: Span,
    /// Goodput in each second after the warm-up, in Mbit/s.
    pub goodput_1s_mbps: Vec<f64>,
    /// Part of this flow in the goodput of all TCP flows; `None` for other flows.
    pub share: Option<f64>,
    /// Samples that the sender took.
    pub rtt: Distribution,
    /// One-way delay of data packets and datagrams.
    pub owd: Distribution,
    /// Smoothed round-trip time, over samples of the sender's state.
    pub srtt: Distribution,
    /// Packets, over samples.
    pub cwnd: Distribution,
    /// Packets, over samples.
    pub inflight: Distribution,
    /// Bits per second, over samples.
    pub pacing: Distribution,
    /// What a test of responsiveness reported last, and how long after the run's beginning.
    pub responsiveness: Option<(Responsiveness, Span)>,
    /// Bytes in the send buffer that were not sent, mean over samples.
    pub not_sent_bytes: Option<f64>,
    /// Replies to the echo requests that left after the warm-up.
    pub ping: Distribution,
    pub pings: Numbered,
    pub pings_after_warmup: Numbered,
    pub datagrams: Numbered,
    pub datagrams_after_warmup: Numbered,
    /// |Difference of one-way delay| of datagrams with neighbouring numbers.
    pub ipdv: Distribution,
    /// RFC 3550's smoothed jitter in nanoseconds: at the end, and its mean over datagrams.
    pub jitter: Option<f64>,
    pub jitter_mean: Option<f64>,
    pub frames: FrameMetrics,
    pub media: MediaMetrics,
    /// How long transfers of a limited size took; of the whole run.
    pub completion: Distribution,
    pub transfers: TransferMetrics,
    /// From connection request to its answer.
    pub connect: Option<Span>,
    /// A connection was asked for.
    pub has_asked: bool,
    pub phases: Vec<PhaseTime>,
    /// Last state of the sender.
    pub last: Option<FlowSample>,
    pub heard: Option<Heard>,
    /// Bytes acknowledged between the first sample after the warm-up and the last, and that time.
    pub acked: Option<(u64, Span)>,
    /// What the programs of a flow say themselves.
    pub reported: Reported,
}

/// What programs say of themselves, as `iperf3 --json` and a browser's `getStats` do; after the warm-up. A packet's
/// events don't have it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reported {
    pub mbps: Option<f64>,
    pub retransmits: Option<f64>,
    pub rtt_ms: Option<f64>,
    pub loss: Option<f64>,
    pub jitter_ms: Option<f64>,
    pub target_mbps: Option<f64>,
    pub frames: Option<f64>,
    pub fps: Option<f64>,
    pub freezes: Option<f64>,
    pub freeze_ms: Option<f64>,
    pub jitter_buffer_ms: Option<f64>,
}

/// What a sender knows in the end of what became of its packets. Unlike the rest of its state, every engine has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heard {
    pub delivered_ce: u64,
    pub lost_total: Option<u64>,
}

impl From<&FlowSample> for Heard {
    fn from(last: &FlowSample) -> Self {
        Self { delivered_ce: last.delivered_ce, lost_total: last.lost_total }
    }
}

impl FlowMetrics {
    /// The distributions behind the quantiles that end in `_ms`, by the names these begin with;
    /// in nanoseconds.
    pub fn delays(&self) -> [(&'static str, &Distribution); 7] {
        [
            ("rtt", &self.rtt),
            ("owd", &self.owd),
            ("ping", &self.ping),
            ("frame_delay", &self.frames.delay),
            ("frame_gap", &self.frames.gap),
            ("completion", &self.completion),
            ("fct", &self.transfers.completion),
        ]
    }

    /// Ages of the transfers that had not ended, of the whole run and of those that began after the
    /// warm-up; in nanoseconds.
    pub fn open(&self) -> [(&'static str, &Distribution); 2] {
        [(OPEN[0], &self.transfers.open_in_run), (OPEN[1], &self.transfers.open)]
    }

    /// How often the controller went to measure the round-trip time after the warm-up, and how long
    /// that took in all; `None` when it has no such phase, or never was in one.
    pub fn probe_rtt(&self) -> Option<(u64, Span)> {
        let is_bbr = |phase: &&PhaseTime| phase.phase.starts_with("PROBE_");
        self.phases.iter().find(is_bbr)?;
        let probes = self.phases.iter().filter(|phase| phase.phase.starts_with("PROBE_RTT"));
        Some(probes.fold((0, Span::ZERO), |(count, time), phase| {
            (count + phase.entries, time + phase.time)
        }))
    }

    /// Part of the time after the warm-up that was spent in a phase of the controller.
    pub fn phase_share(&self, phase: &str) -> Option<f64> {
        let all: f64 = self.phases.iter().map(|p| p.time.as_secs_f64()).sum();
        let time =
            self.phases.iter().find(|p| p.phase == phase).map_or(0.0, |p| p.time.as_secs_f64());
        (all > 0.0).then(|| time / all)
    }
}

/// Packets and bytes of a flow. An offloaded packet counts as the wire packets it stands for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// To the application, in order.
    pub delivered_bytes: u64,
    /// Data packets, datagrams and echo requests, as they leave; retransmissions among them.
    pub sent_packets: u64,
    /// Of the IP packets, headers included.
    pub sent_bytes: u64,
    pub retransmits: u64,
    /// Data packets and datagrams, as they arrive.
    pub arrived_packets: u64,
    pub arrived_bytes: u64,
    /// Of the arrived ones, marked Congestion Experienced.
    pub ce_packets: u64,
    /// Data packets, datagrams and echoes that a link dropped or lost.
    pub dropped_packets: u64,
    pub marked_packets: u64,
    pub acks_sent: u64,
    pub acks_arrived: u64,
}

/// What came after an earlier state of the same counters.
macro_rules! difference {
    ($counts:ident { $($field:ident),+ $(,)? }) => {
        impl Sub for $counts {
            type Output = Self;
            fn sub(self, earlier: Self) -> Self {
                Self { $($field: self.$field - earlier.$field,)+ }
            }
        }
    };
}

difference!(Counts {
    delivered_bytes,
    sent_packets,
    sent_bytes,
    retransmits,
    arrived_packets,
    arrived_bytes,
    ce_packets,
    dropped_packets,
    marked_packets,
    acks_sent,
    acks_arrived
});

/// Numbered packets and the gaps among those that arrived. What was still on its way when the
/// run ended is not a gap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Numbered {
    pub sent: u64,
    pub arrived: u64,
    /// Dropped, or sent before one that arrived where nobody tells of drops; all that were sent when none arrived.
    pub lost: u64,
    /// Of those lost, the ones sent so shortly before the end that, had they not been lost, they could be under way.
    pub undecided: u64,
}

impl Numbered {
    pub fn loss_share(&self) -> Option<f64> {
        lost_share(self.arrived, self.lost, self.undecided)
    }
}

/// Losses as part of what has arrived or is lost. Those that are undecided are left out: what was sent beside them and is not lost has
/// not arrived either.
fn lost_share(arrived: u64, lost: u64, undecided: u64) -> Option<f64> {
    let lost = lost.saturating_sub(undecided);
    let known = arrived + lost;
    (known > 0).then(|| lost as f64 / known as f64)
}

/// Frames of a datagram stream, after the warm-up.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FrameMetrics {
    /// All datagrams of the frame arrived.
    pub complete: u64,
    pub lost: u64,
    /// As [`Numbered::undecided`].
    pub undecided: u64,
    /// From the departure of a frame's first datagram to the arrival of the last one to come.
    pub delay: Distribution,
    /// Between the completions of two complete frames that follow each other.
    pub gap: Distribution,
    /// For each of [`STALL_THRESHOLDS_MS`].
    pub stalls: [Stall; STALL_THRESHOLDS_MS.len()],
    /// By the rule of libwebrtc and by that of the W3C's definition.
    pub freezes: qoe::Freezes,
    pub freezes_w3c: qoe::Freezes,
    /// Longer gaps than freezes have.
    pub pauses: qoe::Freezes,
    /// Sum of gaps over sum of their squares, per second; counts long gaps more.
    pub harmonic_fps: Option<f64>,
}

impl FrameMetrics {
    pub fn loss_share(&self) -> Option<f64> {
        lost_share(self.complete, self.lost, self.undecided)
    }
}

/// A call's frames and packets.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MediaMetrics {
    /// The flow is a call.
    pub is_call: bool,
    pub whole: MediaCounts,
    pub after_warmup: MediaCounts,
    /// What the rate controller wanted, in bit/s, over samples at the step.
    pub target: Distribution,
    /// How long decoded frames had been at the receiver, from their first packet on.
    pub buffered: Distribution,
    /// The first freezes of the whole run by libwebrtc's rule, and pauses, in order of time.
    pub freezes: Vec<Freeze>,
    pub voice: VoiceMetrics,
}

/// A time in which the picture stood still, and why. Frames are counted from 0 in the order in which they
/// are encoded.
#[derive(Clone, Debug, PartialEq)]
pub struct Freeze {
    /// When the frame before was shown, and when the one that ended it was.
    pub from: Time,
    pub to: Time,
    pub after: u32,
    pub frame: u32,
    pub captured: Time,
    /// The last packet of the frame that ended it left.
    pub sent: Option<Time>,
    /// All its packets were there.
    pub received: Option<Time>,
    /// The one that came last.
    pub last: Option<CompletingPacket>,
    /// Frames between the two that were never shown.
    pub never_shown: u32,
    /// Packets of the frame that ended it, and of those before it that had not been shown; the first few.
    pub lost: Vec<LostPacket>,
    /// All of them.
    pub lost_packets: u32,
    /// What was done about them, in order of time; the first steps.
    pub repairs: Vec<RepairStep>,
}

/// The receiver of a call asks for a packet, or a copy of it leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RepairStep {
    pub sequence: u32,
    pub at: Time,
    pub is_copy: bool,
}

/// The packet with which a frame was complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompletingPacket {
    /// In its stream; of a repetition, that of the packet that it repeats.
    pub sequence: u32,
    pub is_repair: bool,
    pub sent: Time,
    pub arrived: Time,
}

/// A packet of a call's video that was lost, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LostPacket {
    /// In its stream; of a repetition, that of the packet that it repeats.
    pub sequence: u32,
    pub frame: u32,
    pub is_repair: bool,
    pub sent: Time,
    pub lost: Time,
    pub place: PortId,
    pub why: DropReason,
}

/// A call's sound.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct VoiceMetrics {
    pub whole: VoiceCounts,
    pub after_warmup: VoiceCounts,
    /// From the moment a frame's beginning was spoken until it is heard.
    pub delay: Distribution,
    /// How long frames waited for their turn, and how long they should wait.
    pub buffered: Distribution,
    pub target: Distribution,
    pub offset: AvOffset,
}

/// By how much frames of video were later than the sound that was heard when they were shown, in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AvOffset {
    /// Sound was earlier than the picture, or together with it; and later.
    pub sound_early: Distribution,
    pub sound_late: Distribution,
    /// The sizes of both.
    pub either: Distribution,
    /// Frames of which viewers notice it: sound is more than 45 ms early or 125 ms late (ITU-R BT.1359-1).
    pub noticed: u64,
}

impl AvOffset {
    /// Above zero, sound is early.
    pub fn median(&self) -> Option<f64> {
        let (late, early) = (self.sound_late.count(), self.sound_early.count());
        let rank = (late + early).checked_sub(1)? as f64 / 2.0;
        // The place of a rank among `count` of them.
        let place = |rank: f64, count: u64| rank / (count.max(2) - 1) as f64;
        let largest_late = late as f64 - 1.0;
        if rank <= largest_late {
            return self.sound_late.quantile(place(largest_late - rank, late)).map(|size| -size);
        }
        let from_early = rank - late as f64;
        if from_early >= 0.0 {
            return self.sound_early.quantile(place(from_early, early));
        }
        // Between the two.
        let (late, early) = (self.sound_late.min()? as f64, self.sound_early.min()? as f64);
        Some((early - late) / 2.0)
    }

    /// The part of the frames of which viewers notice it.
    pub fn noticed_share(&self) -> Option<f64> {
        let all = self.either.count();
        (all > 0).then(|| self.noticed as f64 / all as f64)
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VoiceCounts {
    /// Packets that were sent, of these those that were heard, and those that came after their turn.
    pub sent: u64,
    pub played: u64,
    pub discarded: u64,
    /// What was heard in all; of that, what was made up, and silence of which the sender had told.
    pub heard: Span,
    pub concealed: Span,
    pub silent: Span,
    pub concealments: u64,
    /// What was left out, and what was repeated.
    pub removed: Span,
    pub inserted: Span,
}

impl VoiceCounts {
    /// The part of what was heard that was made up; `None` if nothing was heard.
    pub fn concealed_share(&self) -> Option<f64> {
        let heard = self.heard.as_secs_f64();
        (heard > 0.0).then(|| self.concealed.as_secs_f64() / heard)
    }
}

difference!(VoiceCounts {
    sent,
    played,
    discarded,
    heard,
    concealed,
    silent,
    concealments,
    removed,
    inserted
});

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MediaCounts {
    /// Frames by the stages that they came to.
    pub encoded: u64,
    pub sent: u64,
    pub received: u64,
    pub decoded: u64,
    pub rendered: u64,
    pub dropped: u64,
    /// How many of the encoded frames are key frames, and the payload of all encoded frames.
    pub key: u64,
    pub encoded_bytes: u64,
    /// Messages that ask for packets again, and those packets.
    pub nacks: u64,
    pub nacked_packets: u64,
    pub key_requests: u64,
    /// Packets sent again, and packets without content.
    pub repair_packets: u64,
    pub padding_packets: u64,
    /// Packets of parity and their bytes of IP, and packets that were restored from them.
    pub fec_packets: u64,
    pub fec_bytes: u64,
    pub fec_recovered: u64,
}

difference!(MediaCounts {
    encoded,
    sent,
    received,
    decoded,
    rendered,
    dropped,
    key,
    encoded_bytes,
    nacks,
    nacked_packets,
    key_requests,
    repair_packets,
    padding_packets,
    fec_packets,
    fec_bytes,
    fec_recovered
});

/// Transfers of a limited size that began after the warm-up.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TransferMetrics {
    pub counts: TransferCounts,
    /// In the whole run.
    pub began: u64,
    /// How long those had lasted that had not ended with the run: of the whole run, and of those that
    /// began after the warm-up.
    pub open_in_run: Distribution,
    pub open: Distribution,
    /// Small, medium and large ones that had not ended, or were refused.
    pub missing_by_size: [u64; 3],
    /// From the connection request until the last byte was acknowledged.
    pub completion: Distribution,
    /// Small, medium and large ones, see `size_class`.
    pub by_size: [Distribution; 3],
    /// That time over the least possible on the empty path, in thousandths.
    pub slowdown: Distribution,
}

/// Of an application that opens a connection for each transfer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TransferCounts {
    pub opened: u64,
    pub completed: u64,
    /// Refused, because as many connections were open as are allowed.
    pub refused: u64,
}

/// 0: up to 100 kB. 1: up to 1 MB. 2: more.
pub(crate) const fn size_class(bytes: u64) -> usize {
    (bytes > 100_000) as usize + (bytes > 1_000_000) as usize
}

/// Gaps between frames that count as a stall when longer, in milliseconds.
pub const STALL_THRESHOLDS_MS: [u64; 6] = [33, 50, 100, 150, 200, 500];

/// Gaps longer than a threshold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stall {
    pub count: u64,
    /// Sum of the gaps.
    pub whole: Span,
    /// Sum of the parts of the gaps beyond the threshold.
    pub excess: Span,
}

/// Time in a phase of a congestion controller after the warm-up, and how often it was entered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PhaseTime {
    pub phase: &'static str,
    pub time: Span,
    pub entries: u64,
}

#[derive(Clone, Debug)]
pub struct LinkMetrics {
    pub name: String,
    pub whole: LinkCounts,
    pub after_warmup: LinkCounts,
    pub window: Span,
    /// Wait in the queue of every packet that left it.
    pub sojourn: Distribution,
    /// Packets waiting, over samples of the queue's state.
    pub queue: Distribution,
    /// Bytes waiting, over samples.
    pub queue_bytes: Distribution,
    /// Means over time of the samples, each holding until the next.
    pub queue_mean_pkts: Option<f64>,
    pub queue_mean_bytes: Option<f64>,
    /// Largest backlog in packets, seen at every arrival and sample.
    pub queue_max_pkts: u32,
    /// What left the queue after the warm-up, over what the medium could have carried; `None` when
    /// that is without a limit or nothing, or was never sampled.
    pub utilisation: Option<f64>,
    /// What the queue dropped after the warm-up, over what came, of an engine that knows parts of packets;
    /// otherwise it follows from the counts.
    pub drop_share: Option<f64>,
    /// Where the queue would come to rest, of an engine that solves for it.
    pub rest: Option<Rest>,
    /// Of a port of a radio.
    pub air: Option<AirMetrics>,
    /// What each flow met here in the whole run, in the order of the flows.
    pub flows: Vec<FlowAtLink>,
}

/// A queue at which nothing changes, and what becomes of a small disturbance of it.
#[derive(Clone, Copy, Debug)]
pub struct Rest {
    pub queue_pkts: f64,
    /// 1/s; below zero a disturbance grows. `None` if the laws around the point are not known.
    pub damping_per_s: Option<f64>,
    /// `None` if it does not oscillate.
    pub period: Option<Span>,
}

/// What a port of a radio had of its medium after the warm-up.
#[derive(Clone, Copy, Debug)]
pub struct AirMetrics {
    pub sent: AirSample,
    /// Part of the airtime of all ports, and of the station in both directions; `None` if nothing
    /// was sent.
    pub share: Option<f64>,
    pub station_share: Option<f64>,
    /// Jain's index of the airtime of all stations.
    pub jain: Option<f64>,
}

impl LinkMetrics {
    /// As [`FlowMetrics::delays`].
    pub fn delays(&self) -> [(&'static str, &Distribution); 1] {
        [("sojourn", &self.sojourn)]
    }
}

impl RunMetrics {
    pub fn flow(&self, name: &str) -> Option<&FlowMetrics> {
        self.flows.iter().find(|flow| flow.name == name)
    }

    pub fn link(&self, name: &str) -> Option<&LinkMetrics> {
        self.links.iter().find(|link| link.name == name)
    }
}

/// Packets at a link, in both senses: data and acknowledgements alike. An offloaded packet counts
/// as the wire packets it stands for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkCounts {
    /// That left the queue for the wire.
    pub sent_packets: u64,
    /// Of them, Ethernet headers included, as `tc` counts.
    pub sent_bytes: u64,
    /// By [`DropReason::ALL`].
    pub drops: [u64; DropReason::ALL.len()],
    pub marks: u64,
}

impl LinkCounts {
    pub fn drops(&self) -> u64 {
        self.drops.iter().sum()
    }

    pub fn drops_because(&self, why: DropReason) -> u64 {
        self.drops[why as usize]
    }

    /// What the queue itself dropped.
    pub fn drops_of_queue(&self) -> u64 {
        let of_queue = DropReason::ALL.into_iter().filter(|why| why.is_of_queue());
        of_queue.map(|why| self.drops_because(why)).sum()
    }
}

impl Sub for LinkCounts {
    type Output = Self;
    fn sub(self, earlier: Self) -> Self {
        let mut drops = self.drops;
        for (drops, earlier) in drops.iter_mut().zip(earlier.drops) {
            *drops -= earlier;
        }
        Self {
            sent_packets: self.sent_packets - earlier.sent_packets,
            sent_bytes: self.sent_bytes - earlier.sent_bytes,
            drops,
            marks: self.marks - earlier.marks,
        }
    }
}

/// What a flow met at a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowAtLink {
    pub drops: u64,
    pub marks: u64,
}
