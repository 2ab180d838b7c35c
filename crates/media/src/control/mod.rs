//! Rate controllers: from feedback about packets to the rate that media may have.
//!
//! A [`Controller`] is told what was sent and what the other end reports of it, as plain data, so a
//! recorded call can be replayed through one. It answers with a target rate, a pacing rate and, if
//! it has one, a window; it may ask for clusters of probe packets.
//!
//! The sender's path calls it, after every change takes its [`Outputs`] and all its probes, and
//! wakes it at [`Controller::next_wake`]. Sizes are bytes of the IP packet: RTP, SRTP, UDP and IP
//! headers included, as all these controllers count in practice. A controller whose specification
//! counts otherwise says so on its page.
//!
//! One algorithm, one folder: its `mod.rs` has its `Config`, made by `params!`, which implements
//! [`Algorithm`]; `registry.rs` has a line for it.

mod aiortc;
mod delay_target;
mod fixed;
mod gcc;
mod gcc_draft;
mod measure;
mod nada;
mod registry;
mod scream;
mod scream_v2;
mod tape;
#[cfg(test)]
mod testing;

pub use registry::{Config, algorithms, external, kinds};
pub(crate) use tape::Taped;
pub use tape::{Entry, Player, Tape};

use alloc::boxed::Box;
use alloc::format;
use core::fmt;

use sojourn_core::{Ecn, Params, Rate, Span, SpecError, Stream, Time};

/// A rate controller, given by its parameters. A crate outside this one implements it to register
/// one with [`external`].
pub trait Algorithm: Params + Send + Sync + 'static {
    /// Makes the part at the sender.
    fn build(&self, setup: Setup) -> Box<dyn Controller>;

    /// The part at the receiver, for an algorithm that estimates there and reports with REMB.
    fn estimator(&self, _setup: &Setup) -> Option<Box<dyn Estimator>> {
        None
    }

    /// Refuses parameters that contradict each other.
    ///
    /// # Errors
    /// Names both, and what is allowed.
    fn agree(&self) -> Result<(), SpecError> {
        Ok(())
    }

    /// The rate that it has whatever happens. A call whose encoder can't make it is refused.
    fn kept_rate(&self) -> Option<Rate> {
        None
    }

    /// What the receiver sends back unless the study says otherwise.
    fn feedback(&self) -> FeedbackKind;

    /// Whether receiver reports alone are enough, if they are not what it is made for.
    fn works_with_receiver_reports(&self) -> bool {
        false
    }

    /// How often the receiver reports on packets unless the study says otherwise.
    fn feedback_interval(&self) -> Span {
        CHROMIUM_INTERVAL
    }

    /// A report comes also with the last packet of a frame, and after so many packets; `None` for neither.
    fn feedback_packets(&self) -> Option<u32> {
        None
    }

    /// What may leave at once, as time at the pacing rate, unless the study says otherwise.
    fn pacer_burst(&self) -> Span {
        Span::ZERO
    }

    /// Packets leave faster if they would wait longer, unless the study says otherwise; `None` where they never do.
    fn pacer_limit(&self) -> Option<Span> {
        None
    }

    /// The program whose sender it is part of, which decides what the rest of that sender does unless the study says otherwise.
    fn stack(&self) -> Stack {
        Stack::None
    }

    /// Whether a call's encoder is lowered for frames that are too large for an even pace.
    fn has_adjuster(&self) -> bool {
        false
    }

    /// Whether its rates are of payload alone, without headers.
    fn counts_payload(&self) -> bool {
        false
    }

    /// The ECN field of its packets: `Ect1` for L4S.
    fn ecn(&self) -> Ecn {
        Ecn::NotEct
    }
}

/// A program that calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stack {
    Libwebrtc,
    Aiortc,
    /// The controller is a specification.
    None,
}

/// Refuses two parameters of which the one that must not be larger is.
fn in_order<T: PartialOrd + fmt::Display>(
    (lower, least): (&str, T),
    (upper, most): (&str, T),
) -> Result<(), SpecError> {
    if least <= most {
        return Ok(());
    }
    let problem = SpecError::new(format!("'{lower}' is {least}, and '{upper}' is {most}"));
    Err(problem.allow([format!("{most} or less")]))
}

/// Chromium's reports come every 50 ms, rounded up to its clock of 1/64 s.
const CHROMIUM_INTERVAL: Span = Span::from_micros(62_500);

/// libwebrtc's pacer: what may leave at once, and how long packets may wait.
const LIBWEBRTC_BURST: Span = Span::from_millis(40);
const LIBWEBRTC_LIMIT: Span = Span::from_secs(2);

/// What a controller knows when it is made.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The moment the call starts.
    pub now: Time,
    /// What the application wants to begin with, and its limits, whole packets counted. A
    /// controller has a start rate of its own where the first is `None`.
    pub start_rate: Option<Rate>,
    pub min_rate: Rate,
    pub max_rate: Rate,
    /// Bytes of the largest packet, headers included.
    pub mtu: u32,
    pub frames_per_second: f64,
    pub random: Stream,
}

/// What the receiver reports, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FeedbackKind {
    /// Transport-wide congestion control (draft-holmer-rmcat-transport-wide-cc-extensions-01).
    Twcc,
    /// RFC 8888.
    Ccfb,
    /// The receiver's own estimate (draft-alvestrand-rmcat-remb-03).
    Remb,
    /// Receiver reports of RFC 3550 only.
    ReceiverReports,
}

impl FeedbackKind {
    /// Whether it reports the arrival time of every packet. A controller that works with one such format works with
    /// the others.
    pub const fn is_per_packet(self) -> bool {
        matches!(self, Self::Twcc | Self::Ccfb)
    }
}

sojourn_core::choice!(FeedbackKind {
    "twcc" = FeedbackKind::Twcc,
    "ccfb" = FeedbackKind::Ccfb,
    "remb" = FeedbackKind::Remb,
    "rr" = FeedbackKind::ReceiverReports,
});

/// What a packet is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Purpose {
    #[default]
    Video,
    Audio,
    /// A retransmission.
    Repair,
    Fec,
    /// Padding, for a probe or to keep the rate up.
    Padding,
}

/// A packet that left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// Counts all packets of the call in the order of their leaving; never wraps.
    pub number: u64,
    /// When it left, by the sender's clock.
    pub at: Time,
    pub size: u32,
    pub purpose: Purpose,
    /// The probe cluster that it belongs to.
    pub probe: Option<u32>,
}

/// Bytes that the sender has outstanding when a packet leaves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outstanding {
    /// Bytes sent and not yet reported on, or given up; the packet that leaves now not included.
    pub in_flight: u64,
    /// Bytes that still wait in the pacer, and how long the oldest of them has waited.
    pub queued: u64,
    pub queue_delay: Span,
}

/// What became of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Report {
    pub packet: Sent,
    /// When it arrived, by the receiver's clock and as coarse as the format carries it; `None` if
    /// it has not. A packet that was reported missing can be reported as arrived later.
    pub arrived: Option<Time>,
    /// The mark it arrived with; `NotEct` where the format has no marks.
    pub ecn: Ecn,
}

/// One feedback message, after the sender found the packets that it speaks of. Its reports are in
/// the order of sending.
#[derive(Clone, Copy, Debug)]
pub struct Feedback<'a> {
    /// When the message reached the sender.
    pub now: Time,
    pub reports: &'a [Report],
    /// Bytes in flight before and after this message.
    pub prior_in_flight: u64,
    pub in_flight: u64,
    /// How long the receiver kept the newest arrival before it sent the message, if the format
    /// says it (RFC 8888).
    pub held: Option<Span>,
}

/// A receiver report (RFC 3550 section 6.4.2) of one stream.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReceiverReport {
    pub now: Time,
    /// Of the packets expected since the last report, 0 to 1 in steps of 1/256.
    pub fraction_lost: f64,
    /// Lost since the beginning; duplicates count as negative losses.
    pub cumulative_lost: i64,
    /// Packets expected since the last report.
    pub expected: u64,
    /// Interarrival jitter.
    pub jitter: Span,
    /// Round-trip time by LSR and DLSR; `None` until a sender report came back.
    pub rtt: Option<Span>,
}

/// A cluster of packets to be sent at a rate of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probe {
    /// Packets of the cluster carry it in [`Sent::probe`].
    pub id: u32,
    pub rate: Rate,
    pub min_packets: u32,
    pub min_bytes: u64,
    /// Time that the cluster should take at its rate.
    pub duration: Span,
}

/// What a controller wants at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outputs {
    /// What all streams of the call may send a second, headers included.
    pub target: Rate,
    /// What the pacer lets go a second; `None` if packets are not paced.
    pub pacing: Option<Rate>,
    /// Sent as padding if media alone is less.
    pub padding: Rate,
    /// Bytes that may be in flight; `None` without a window.
    pub window: Option<u64>,
    /// The controller's phase, for series and tests.
    pub phase: &'static str,
}

/// A rate controller at the sender.
pub trait Controller: Send {
    /// A packet leaves.
    fn on_sent(&mut self, _sent: &Sent, _outstanding: &Outstanding) {}

    /// The source made a frame of `size` bytes, which waits in the pacer now.
    fn on_frame(&mut self, _now: Time, _size: u32) {}

    fn on_feedback(&mut self, _feedback: &Feedback<'_>) {}

    fn on_receiver_report(&mut self, _report: &ReceiverReport) {}

    /// The receiver's own estimate.
    fn on_remb(&mut self, _now: Time, _rate: Rate) {}

    /// Media waits in the pacer again, or no longer.
    fn on_backlog(&mut self, _now: Time, _has_backlog: bool) {}

    /// A time that [`Controller::next_wake`] named has come.
    fn on_wake(&mut self, _now: Time) {}

    fn next_wake(&self) -> Time {
        Time::NEVER
    }

    /// The next probe to be sent, if there is one.
    fn poll_probe(&mut self) -> Option<Probe> {
        None
    }

    fn outputs(&self) -> Outputs;

    /// The share of the target that the encoder leaves out, and frames with it, because too much is on its way.
    fn held_back(&mut self, _now: Time) -> f64 {
        0.0
    }

    /// Its estimates by name, for the series of a call and for replays: `delay_based`, `loss_based`.
    fn estimates(&self) -> Estimates {
        Estimates::default()
    }
}

/// A controller's estimates beside its target. Rates are in bit/s, times in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Estimates {
    pub delay_based: Option<f64>,
    pub loss_based: Option<f64>,
    /// What arrives at the receiver.
    pub acknowledged: Option<f64>,
    /// The delay signal, and what it is compared with.
    pub signal: Option<f64>,
    pub threshold: Option<f64>,
}

/// A packet at the receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    pub now: Time,
    /// When it left, as the abs-send-time extension says: 24 bits, 2⁻¹⁸ s each.
    pub abs_send_time: u32,
    /// Bytes after UDP's header: RTP header, extensions and payload. It is what a receiver counts.
    pub size: u32,
    /// Bytes of the payload alone, as aiortc counts.
    pub payload: u32,
    pub ecn: Ecn,
    /// The packet's clock and stream: 0 video, 1 audio.
    pub rtp_timestamp: u32,
    pub stream: u8,
}

/// The part of a controller at the receiver.
pub trait Estimator: Send {
    /// A packet arrived. `Some` is reported at once.
    fn on_arrival(&mut self, arrival: &Arrival) -> Option<Rate>;

    /// `Some` is reported.
    fn on_wake(&mut self, _now: Time) -> Option<Rate> {
        None
    }

    fn next_wake(&self) -> Time {
        Time::NEVER
    }
}
