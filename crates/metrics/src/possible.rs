//! What can be measured at all: a metric that has no value even of a run in which everything happened that
//! a flow can do has none of any run.

use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use sojourn_core::{
    AirSample, Confidence, DropReason, FlowSample, PortId, Rate, Responsiveness, Span, Time,
};

use crate::histogram::{Distribution, Histogram};
use crate::outcome::{
    AirMetrics, AvOffset, Counts, FlowKind, FlowMetrics, FrameMetrics, Heard, LinkCounts,
    LinkMetrics, MediaCounts, MediaMetrics, Numbered, PhaseTime, Reported, Rest, RunMetrics,
    Timing, Totals, TransferCounts, TransferMetrics, VoiceCounts, VoiceMetrics,
};
use crate::qoe::Freezes;
use crate::series::Series;

/// What a flow does, as far as that decides what can be measured of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Doing {
    pub kind: FlowKind,
    /// Some of what it transfers ends.
    pub has_transfers: bool,
    pub is_call: bool,
    /// Its controller can be in a phase in which it measures the round-trip time.
    pub probes_rtt: bool,
}

const TIME: Span = Span::from_secs(1);

/// A run of one flow and one link in which everything happened that the flow can do, and of which engines know everything.
pub fn fullest(doing: Doing, is_radio: bool) -> RunMetrics {
    let is_tcp = doing.kind.is_tcp();
    RunMetrics {
        flows: vec![flow(doing)],
        links: vec![link(is_radio)],
        totals: Totals {
            jain: (doing.kind == FlowKind::Tcp).then_some(1.0),
            min_max: (doing.kind == FlowKind::Tcp).then_some(1.0),
            jain_1s: some(doing.kind == FlowKind::Tcp),
            jain_1s_by_drop: [(); 2].map(|()| some(doing.kind == FlowKind::Tcp)),
            tcp_goodput_step_mbps: some(is_tcp),
            transfers_begun: u64::from(doing.has_transfers),
            ..Totals::default()
        },
        series: Series::default(),
        digest: 0,
        end: Time::ZERO + TIME,
        window: TIME,
        timing: Timing {
            lateness: one(true),
            stolen_share: Some(0.0),
            strays: Some(0),
            is_late: Some(false),
        },
    }
}

fn flow(doing: Doing) -> FlowMetrics {
    let Doing { kind, has_transfers, is_call, probes_rtt } = doing;
    let (is_tcp, is_udp) = (kind.is_tcp(), kind == FlowKind::Udp);
    let counts = Counts { sent_packets: 1, sent_bytes: 1, arrived_packets: 1, ..Counts::default() };
    let numbered = |is| {
        if is {
            Numbered { sent: 1, arrived: 1, ..Numbered::default() }
        } else {
            Numbered::default()
        }
    };
    FlowMetrics {
        name: String::new(),
        kind,
        whole: counts,
        after_warmup: counts,
        run: TIME,
        window: TIME,
        goodput_1s_mbps: some(kind != FlowKind::Ping),
        share: is_tcp.then_some(1.0),
        rtt: one(is_tcp),
        owd: one(is_tcp || is_udp),
        srtt: one(is_tcp),
        cwnd: one(is_tcp),
        inflight: one(is_tcp),
        pacing: one(is_tcp),
        responsiveness: (kind == FlowKind::Rpm).then_some((RESPONSIVENESS, TIME)),
        not_sent_bytes: is_tcp.then_some(0.0),
        ping: one(kind == FlowKind::Ping),
        pings: numbered(kind == FlowKind::Ping),
        pings_after_warmup: numbered(kind == FlowKind::Ping),
        datagrams: numbered(is_udp),
        datagrams_after_warmup: numbered(is_udp),
        ipdv: one(is_udp),
        jitter: is_udp.then_some(0.0),
        jitter_mean: is_udp.then_some(0.0),
        frames: if is_udp { frames() } else { FrameMetrics::default() },
        media: if is_call { media() } else { MediaMetrics::default() },
        completion: one(has_transfers),
        transfers: if has_transfers { transfers(kind) } else { TransferMetrics::default() },
        connect: is_tcp.then_some(TIME),
        has_asked: is_tcp,
        phases: match probes_rtt {
            true => vec![PhaseTime { phase: "PROBE_RTT", time: TIME, entries: 1 }],
            false => Vec::new(),
        },
        heard: is_tcp.then_some(Heard { delivered_ce: 0, lost_total: Some(0) }),
        last: is_tcp.then_some(FlowSample {
            spurious_total: Some(0),
            busy: TIME,
            pacing_rate: Some(Rate::UNLIMITED),
            ..FlowSample::default()
        }),
        acked: is_tcp.then_some((1, TIME)),
        reported: Reported {
            mbps: Some(0.0),
            retransmits: Some(0.0),
            rtt_ms: Some(0.0),
            loss: Some(0.0),
            jitter_ms: Some(0.0),
            target_mbps: Some(0.0),
            frames: Some(0.0),
            fps: Some(0.0),
            freezes: Some(0.0),
            freeze_ms: Some(0.0),
            jitter_buffer_ms: Some(0.0),
        },
    }
}

const RESPONSIVENESS: Responsiveness = Responsiveness {
    rpm: 1.0,
    foreign: 1.0,
    loaded: 1.0,
    connections: 1,
    confidence: Confidence::High,
};

fn frames() -> FrameMetrics {
    FrameMetrics {
        complete: 1,
        lost: 0,
        undecided: 0,
        delay: one(true),
        gap: one(true),
        stalls: Default::default(),
        freezes: Freezes::default(),
        freezes_w3c: Freezes::default(),
        pauses: Freezes::default(),
        harmonic_fps: Some(1.0),
    }
}

fn media() -> MediaMetrics {
    let counts = MediaCounts::default();
    let voice = VoiceCounts { played: 1, heard: TIME, ..VoiceCounts::default() };
    MediaMetrics {
        is_call: true,
        whole: counts,
        after_warmup: counts,
        target: one(true),
        buffered: one(true),
        freezes: Vec::new(),
        voice: VoiceMetrics {
            whole: voice,
            after_warmup: voice,
            delay: one(true),
            buffered: one(true),
            target: one(true),
            offset: AvOffset {
                sound_early: one(true),
                sound_late: one(true),
                either: one(true),
                noticed: 0,
            },
        },
    }
}

fn transfers(kind: FlowKind) -> TransferMetrics {
    // Those of pages and requests share connections, so they are not compared with a transfer alone.
    let is_compared = matches!(kind, FlowKind::Tcp | FlowKind::Arrivals);
    TransferMetrics {
        counts: TransferCounts { opened: 1, completed: 1, refused: 0 },
        began: 1,
        open_in_run: one(false),
        open: one(false),
        missing_by_size: [0; 3],
        completion: one(true),
        by_size: [(); 3].map(|()| one(true)),
        slowdown: one(is_compared),
    }
}

fn link(is_radio: bool) -> LinkMetrics {
    let mut counts = LinkCounts { sent_packets: 1, sent_bytes: 1, ..LinkCounts::default() };
    counts.drops[DropReason::Full as usize] = 1;
    let sent =
        AirSample { cell: PortId(0), ppdus: 1, mpdus: 1, attempts: 1, ..AirSample::default() };
    LinkMetrics {
        name: String::new(),
        whole: counts,
        after_warmup: counts,
        window: TIME,
        sojourn: one(true),
        queue: one(true),
        queue_bytes: one(true),
        queue_mean_pkts: Some(1.0),
        queue_mean_bytes: Some(1.0),
        queue_max_pkts: 1,
        utilisation: Some(1.0),
        drop_share: None,
        rest: Some(Rest { queue_pkts: 1.0, damping_per_s: Some(1.0), period: Some(TIME) }),
        air: is_radio.then_some(AirMetrics {
            sent,
            share: Some(1.0),
            station_share: Some(1.0),
            jain: Some(1.0),
        }),
        flows: Vec::new(),
    }
}

fn some(is: bool) -> Vec<f64> {
    if is { vec![1.0] } else { Vec::new() }
}

/// Of one value, or of none.
fn one(is: bool) -> Distribution {
    let mut histogram = Histogram::new();
    if is {
        histogram.record(1);
    }
    histogram.distribution()
}
