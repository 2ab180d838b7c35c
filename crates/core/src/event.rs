//! What can be observed, and the observer that is told. Metrics are computed from these events and
//! from nothing else, so a number means the same whatever engine produced the packets.

use crate::ids::{FlowId, PortId};
use crate::packet::{Direction, Packet};
use crate::units::{Rate, Span, Time};

/// Where an event happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Who {
    /// An end of a flow.
    Flow(FlowId),
    /// A queue and what takes packets from it: a link, or one port of another carrier.
    Port(PortId),
}

/// Why a packet went no further.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DropReason {
    /// The queue was full on arrival (tail drop).
    Full,
    /// Dropped from the queue to make room for an arrival.
    Overflow,
    /// The active queue management dropped it.
    Aqm,
    /// An older acknowledgement that a newer one replaced.
    AckFiltered,
    /// Lost on the medium.
    Medium,
    /// Beyond what a policer in front of the queue lets pass.
    Policed,
    /// Lost before it came to the queue.
    Entry,
}

impl DropReason {
    pub const ALL: [Self; 7] = [
        Self::Full,
        Self::Overflow,
        Self::Aqm,
        Self::AckFiltered,
        Self::Medium,
        Self::Policed,
        Self::Entry,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Overflow => "overflow",
            Self::Aqm => "aqm",
            Self::AckFiltered => "ack_filtered",
            Self::Medium => "medium",
            Self::Policed => "policed",
            Self::Entry => "entry",
        }
    }

    /// The queue itself dropped it: it had come there, and did not leave for the medium.
    pub const fn is_of_queue(self) -> bool {
        match self {
            Self::Full | Self::Overflow | Self::Aqm | Self::AckFiltered => true,
            Self::Medium | Self::Policed | Self::Entry => false,
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// A packet left its end system ([`Who::Flow`]).
    Sent {
        packet: &'a Packet,
    },
    /// A packet reached its end system ([`Who::Flow`]).
    Arrived {
        packet: &'a Packet,
    },
    /// A packet was offered to a queue that now holds `backlog` wire packets ([`Who::Port`]).
    Enqueued {
        packet: &'a Packet,
        backlog: u32,
    },
    /// A packet left a queue after waiting `sojourn` ([`Who::Port`]).
    Dequeued {
        packet: &'a Packet,
        sojourn: Span,
    },
    /// A packet was dropped or lost ([`Who::Port`]).
    Dropped {
        packet: &'a Packet,
        why: DropReason,
    },
    /// A packet was marked Congestion Experienced ([`Who::Port`]).
    Marked {
        packet: &'a Packet,
    },
    /// New bytes reached the application in order.
    Delivered {
        bytes: u64,
    },
    /// The sender took a round-trip time sample.
    Rtt {
        rtt: Span,
    },
    /// The congestion controller changed its phase.
    Phase {
        from: &'static str,
        to: &'static str,
    },
    /// An echo reply came back after `rtt`.
    Ping {
        rtt: Span,
    },
    /// An application opens a connection to transfer `bytes`, or is refused one because too many
    /// are open.
    Opened {
        bytes: u64,
    },
    Refused {
        bytes: u64,
    },
    /// A transfer of a limited number of bytes was acknowledged whole, `took` after it began.
    Completed {
        bytes: u64,
        took: Span,
    },
    /// What a test of responsiveness would report if it ended now.
    Responsiveness(&'a Responsiveness),
    /// A frame of a call's video comes to a stage of its way.
    Frame(&'a FrameEvent),
    /// The receiver of a call asks for `packets` to be sent again.
    Nack {
        packets: u32,
    },
    /// Among them is the packet of video with this sequence number.
    Asked {
        sequence: u32,
    },
    /// What the opaque packet with this number, which leaves now, has behind its headers.
    Content {
        direction: Direction,
        number: u32,
        bytes: &'a [u8],
    },
    /// The receiver of a call asks for a key frame.
    KeyRequest,
    /// What happens to parity of a call's video.
    Fec(&'a FecEvent),
    /// What the listener of a call gets.
    Voice(&'a VoiceEvent),
    /// What the rate controller of a call wants, when that changes.
    RateControl(&'a RateControl),
    /// The state of a sender, at every step of the time series.
    FlowSample(&'a FlowSample),
    /// The state of a queue, at every step of the time series.
    QueueSample(&'a QueueSample),
    /// The same when the warm-up ends between two steps.
    WarmQueueSample(&'a QueueSample),
}

/// A frame of video at a stage of its way.
#[derive(Clone, Copy, Debug)]
pub struct FrameEvent {
    pub stage: FrameStage,
    pub captured: Time,
    /// Bytes of its payload.
    pub bytes: u32,
    pub is_key: bool,
    /// How long the receiver had it, from its first packet on.
    pub buffered: Span,
}

/// Where a frame is. Times are those of the events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameStage {
    /// It left the encoder.
    Encoded,
    /// Its last packet was sent for the first time.
    Sent,
    /// All its packets have arrived.
    Received,
    Decoded,
    Rendered,
    /// The receiver will never decode it.
    Dropped,
    /// The sender did not encode it, because too much waits there.
    Skipped,
}

/// What happens to parity of a call's video, which repairs losses without a repetition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FecEvent {
    /// A packet of it left, with so many bytes of IP.
    Sent {
        bytes: u32,
    },
    Arrived {
        bytes: u32,
    },
    /// The receiver restored a packet of video. The packet that made this possible left at `sent`.
    Restored {
        sequence: u32,
        sent: Time,
    },
}

/// What happens to a call's sound at the listener's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VoiceEvent {
    /// A frame is played, so long after its beginning was spoken. It waited for its turn for `buffered`, where `target`
    /// is wanted.
    Played {
        delay: Span,
        buffered: Span,
        target: Span,
        length: Span,
        bytes: u32,
    },
    /// Sound is made up in place of a packet that is not there; `begins` if sound was there before.
    Concealed {
        length: Span,
        begins: bool,
    },
    /// Nobody speaks, and the sender sends nothing.
    Silent {
        length: Span,
    },
    /// Sound is left out to be less late, or repeated to be later.
    Removed {
        length: Span,
    },
    Inserted {
        length: Span,
    },
    /// A packet came after its turn.
    Discarded,
}

/// What the rate controller of a call wants and thinks.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RateControl {
    pub target: Rate,
    pub pacing: Option<Rate>,
    /// Estimates, in bit/s, for controllers that have them.
    pub delay_based: Option<f64>,
    pub loss_based: Option<f64>,
    pub acknowledged: Option<f64>,
    /// The delay signal and what it is compared with, in milliseconds.
    pub signal: Option<f64>,
    pub threshold: Option<f64>,
}

/// The result of a test of responsiveness under working conditions (draft-ietf-ippm-responsiveness), in round
/// trips a minute.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Responsiveness {
    /// Mean of the next two.
    pub rpm: f64,
    /// Over connections of their own, and over those that load the network.
    pub foreign: f64,
    pub loaded: f64,
    /// How many load the network.
    pub connections: u32,
    pub confidence: Confidence,
}

/// How sure the result of such a test is: too few intervals, enough, or stable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Confidence {
    Low,
    Medium,
    High,
}

/// What `ss -tin` shows of a sender. Counts are segments unless the name says bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct FlowSample {
    pub cwnd: u32,
    /// `None` until the first congestion.
    pub ssthresh: Option<u32>,
    /// `None` when the sender does not pace.
    pub pacing_rate: Option<Rate>,
    pub delivery_rate: Rate,
    pub delivery_rate_app_limited: bool,
    pub srtt: Span,
    pub rttvar: Span,
    /// `None` before the first sample.
    pub min_rtt: Option<Span>,
    pub rto: Span,
    /// Sent and not yet cumulatively acknowledged.
    pub unacked: u32,
    pub sacked: u32,
    /// Currently deemed lost.
    pub lost: u32,
    /// Currently retransmitted and unacknowledged.
    pub retrans: u32,
    pub retrans_total: u64,
    /// `None` where the transport does not tell, like the next but one.
    pub lost_total: Option<u64>,
    pub timeouts_total: u64,
    pub spurious_total: Option<u64>,
    pub delivered: u64,
    pub delivered_ce: u64,
    pub bytes_sent: u64,
    pub bytes_retrans: u64,
    pub bytes_acked: u64,
    /// Bytes in the send buffer that have not been sent.
    pub not_sent: u64,
    /// Receive window last advertised, bytes.
    pub rwnd: u64,
    /// Time with data outstanding or unsent.
    pub busy: Span,
    /// Time in which only the receive window held the sender back.
    pub rwnd_limited: Span,
    /// Time in which only the send buffer held the sender back.
    pub sndbuf_limited: Span,
    /// What was agreed on, unless the sender has stopped believing it.
    pub ecn: EcnMode,
    /// A packet arrived that could be marked, or was marked.
    pub ecn_seen: bool,
    /// Phase of the congestion controller.
    pub phase: &'static str,
    /// Bandwidth estimate of a model-based controller.
    pub bw: Option<Rate>,
    /// What else a model-based controller has estimated: the smallest round-trip time, segments
    /// allowed for aggregation, the bound on what is in flight, and how many rounds it has counted.
    pub model_min_rtt: Option<Span>,
    pub extra_acked: Option<u32>,
    pub inflight_longterm: Option<u32>,
    pub rounds: Option<u64>,
}

/// Whether a phase is the one that is meant: `PROBE_BW` means `PROBE_BW:UP` as well.
pub fn is_phase(phase: &str, meant: &str) -> bool {
    phase.strip_prefix(meant).is_some_and(|rest| rest.is_empty() || rest.starts_with(':'))
}

/// How congestion marks are fed back, as Linux's `tcp_info` distinguishes it (`tcpi_ecn_mode`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EcnMode {
    #[default]
    Disabled,
    /// One bit (RFC 3168).
    Rfc3168,
    /// Counters (RFC 9768).
    AccEcn,
}

/// What `tc -s qdisc` and the link counters show. Totals count from the start of the run.
#[derive(Clone, Copy, Debug, Default)]
pub struct QueueSample {
    /// Wire packets that wait: an offloaded packet counts as its segments.
    pub packets: u32,
    /// How many fewer they are for `tc` and for limits in packets, which count an offloaded packet once.
    pub joined: u32,
    pub bytes: u64,
    /// How long the packet at the head has waited.
    pub head_wait: Span,
    pub sent_packets: u64,
    pub sent_bytes: u64,
    pub dropped: u64,
    pub marked: u64,
    /// Capacity of the link at this moment.
    pub capacity: Rate,
    /// Bytes that the sent packets took on the medium, with the medium's overhead.
    pub medium_bytes: u64,
    /// Bytes that the medium could have carried: the exact integral of the capacity; `None` without
    /// a limit.
    pub capacity_bytes: Option<f64>,
    /// Of a port of a radio.
    pub air: Option<AirSample>,
}

/// What a port of a radio has sent, counted from the start of the run. Names are those of IEEE 802.11.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AirSample {
    /// The first port of its medium.
    pub cell: PortId,
    /// Which station of the cell sends here, or receives.
    pub station: u16,
    /// Time on the air of data, preambles included.
    pub airtime: Span,
    pub ppdus: u64,
    pub mpdus: u64,
    /// MPDUs sent that did not arrive.
    pub failed: u64,
    /// Attempts to send data, or an RTS before it, and those of them that collided.
    pub attempts: u64,
    pub collided: u64,
}

impl AirSample {
    /// What was sent since an earlier sample of the same port.
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            airtime: self.airtime.saturating_sub(earlier.airtime),
            ppdus: self.ppdus - earlier.ppdus,
            mpdus: self.mpdus - earlier.mpdus,
            failed: self.failed - earlier.failed,
            attempts: self.attempts - earlier.attempts,
            collided: self.collided - earlier.collided,
            ..*self
        }
    }
}

/// An observer is told of every event.
///
/// Events of the ends of all flows come in order of time, and so do those of each link. A link may
/// report late what happened some time ago, but by a sample, the end of the warm-up and the end of
/// the run it has reported everything before. An observer that only counts can ignore this; one
/// that needs the order asks for it.
pub trait Observer {
    fn record(&mut self, now: Time, who: Who, event: &Event<'_>);

    /// [`Event::Enqueued`], which happens to every packet: an observer behind `dyn` need not find out what
    /// it is.
    #[inline]
    fn enqueued(&mut self, now: Time, port: PortId, packet: &Packet, backlog: u32) {
        self.record(now, Who::Port(port), &Event::Enqueued { packet, backlog });
    }

    /// [`Event::Dequeued`], likewise.
    #[inline]
    fn dequeued(&mut self, now: Time, port: PortId, packet: &Packet, sojourn: Span) {
        self.record(now, Who::Port(port), &Event::Dequeued { packet, sojourn });
    }

    /// A packet finds an empty queue and leaves it at once: [`Event::Enqueued`] as it comes, and [`Event::Dequeued`] as it
    /// leaves.
    #[inline]
    fn passed(&mut self, now: Time, port: PortId, comes: &Packet, leaves: &Packet) {
        self.enqueued(now, port, comes, 1);
        self.dequeued(now, port, leaves, Span::ZERO);
    }

    /// [`Event::Dropped`], likewise.
    #[inline]
    fn dropped(&mut self, now: Time, port: PortId, packet: &Packet, why: DropReason) {
        self.record(now, Who::Port(port), &Event::Dropped { packet, why });
    }

    /// Whether every event must come in order of time.
    fn needs_order(&self) -> bool {
        false
    }
}

/// Observes nothing and costs nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoObserver;

impl Observer for NoObserver {
    #[inline(always)]
    fn record(&mut self, _: Time, _: Who, _: &Event<'_>) {}
}

impl<O: Observer + ?Sized> Observer for &mut O {
    #[inline(always)]
    fn record(&mut self, now: Time, who: Who, event: &Event<'_>) {
        (**self).record(now, who, event);
    }

    #[inline(always)]
    fn enqueued(&mut self, now: Time, port: PortId, packet: &Packet, backlog: u32) {
        (**self).enqueued(now, port, packet, backlog);
    }

    #[inline(always)]
    fn dequeued(&mut self, now: Time, port: PortId, packet: &Packet, sojourn: Span) {
        (**self).dequeued(now, port, packet, sojourn);
    }

    #[inline(always)]
    fn passed(&mut self, now: Time, port: PortId, comes: &Packet, leaves: &Packet) {
        (**self).passed(now, port, comes, leaves);
    }

    #[inline(always)]
    fn dropped(&mut self, now: Time, port: PortId, packet: &Packet, why: DropReason) {
        (**self).dropped(now, port, packet, why);
    }

    fn needs_order(&self) -> bool {
        (**self).needs_order()
    }
}

/// Both observers are told, the first one first.
impl<A: Observer, B: Observer> Observer for (A, B) {
    #[inline(always)]
    fn record(&mut self, now: Time, who: Who, event: &Event<'_>) {
        self.0.record(now, who, event);
        self.1.record(now, who, event);
    }

    fn needs_order(&self) -> bool {
        self.0.needs_order() || self.1.needs_order()
    }
}

impl<O: Observer> Observer for Option<O> {
    #[inline(always)]
    fn record(&mut self, now: Time, who: Who, event: &Event<'_>) {
        if let Some(observer) = self {
            observer.record(now, who, event);
        }
    }

    fn needs_order(&self) -> bool {
        self.as_ref().is_some_and(Observer::needs_order)
    }
}
