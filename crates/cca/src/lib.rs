//! Congestion controllers as state machines that are told the time and never ask for it.
//!
//! A transport reports what it sent, what was acknowledged and what was lost; a [`Controller`]
//! answers with a congestion window, a pacing rate and a send quantum. Counts are segments of one
//! maximum segment size, as Linux and `ss` count them. An [`Ack`] is plain data, so a stream of
//! them that was recorded elsewhere can be replayed through any controller.
//!
//! One algorithm, one folder. [`Cca`] is one of the built-in controllers or, boxed, any other.

#![cfg_attr(not(test), no_std)]

extern crate alloc;

pub mod bbr;
pub mod bbr2;
pub mod bbr3;
pub mod bbr3_linux;
pub mod bbr_n_plus;
pub mod cubic;
pub mod dctcp;
pub mod prague;
pub mod reno;
pub mod suite;

mod algorithm;
mod fixed;
mod forms;
mod pass_on;
mod registry;
#[cfg(test)]
mod testing;

pub use algorithm::Algorithm;
pub use registry::{Cca, Config, External, algorithms, external, kinds};

use sojourn_core::{Rate, Span, Time};

/// What a controller knows of its connection when it is made.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Payload bytes of a full segment.
    pub mss: u32,
    /// Bytes of a full segment on the IP layer, headers included.
    pub mtu: u32,
    /// Initial congestion window, segments (RFC 6928).
    pub initial_cwnd: u32,
    /// The moment the connection starts to send.
    pub now: Time,
    /// Round-trip time of the handshake.
    pub handshake_rtt: Option<Span>,
    /// Coarseness of the clock that Linux calls jiffies; zero for an exact one.
    pub tick: Span,
    /// When one of its ticks comes.
    pub tick_phase: Span,
    /// The kind of ECN feedback that the handshake agreed on.
    pub ecn: EcnFeedback,
    /// The transport paces even if the controller has no pacing rate of its own.
    pub is_paced: bool,
    pub random: sojourn_core::Stream,
}

/// How the receiver reports congestion marks to the sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EcnFeedback {
    /// Nothing: ECN is not in use.
    #[default]
    Off,
    /// ECN-Echo, either until the sender answers it (RFC 3168 section 6.1.3) or for as long as what
    /// arrives is marked (RFC 8257 section 3.2). The sender can't tell which.
    Classic,
    /// How many segments were marked (RFC 9768).
    Accurate,
}

/// What a controller asks of ECN when its connection is made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EcnRequest {
    /// Nothing: the host's setting decides.
    #[default]
    Host,
    /// ECT(0), and a receiver that echoes mark by mark (RFC 8257 sections 3.1 and 3.2).
    MarkByMark,
    /// ECT(1) and accurate feedback. Without that feedback ECT(1) must not be sent (RFC 9331
    /// sections 4.1 and 4.2).
    L4s,
}

/// The connection's counters when a segment left. The transport keeps them with the segment and
/// returns them when the segment is acknowledged or lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memo {
    /// Segments delivered until then.
    pub delivered: u64,
    pub delivered_ce: u64,
    /// Segments declared lost until then.
    pub lost: u64,
    /// When the newest of `delivered` was acknowledged.
    pub delivered_time: Time,
    /// When the first segment of the flight that `delivered_time` acknowledged had left.
    pub first_sent_time: Time,
    /// Segments in flight, this one included.
    pub in_flight: u32,
    pub is_app_limited: bool,
    pub is_rwnd_limited: bool,
}

/// One segment handed to the network.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    pub now: Time,
    pub segments: u32,
    /// In flight before this segment.
    pub in_flight: u32,
    pub retransmission: bool,
}

/// A delivery rate sample (draft-ietf-ccwg-bbr, "Delivery Rate Samples"; Linux `rate_sample`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateSample {
    /// Segments delivered over `interval`.
    pub delivered: u32,
    pub delivered_ce: u32,
    /// The longer of the sending and the acknowledging interval.
    pub interval: Span,
    /// Segments lost between the sending and the acknowledging of the newest acknowledged segment.
    pub lost: u32,
    /// Counters when the newest acknowledged segment left.
    pub prior: Memo,
    /// When the newest acknowledged segment left.
    pub sent_time: Time,
    /// The interval is shorter than the smallest round-trip time seen: the rate is meaningless, but
    /// the counters are valid.
    pub is_too_short: bool,
}

/// Where loss recovery stands (Linux `icsk_ca_state`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RecoveryState {
    #[default]
    Open,
    /// Selective or duplicate acknowledgements, nothing deemed lost yet.
    Disorder,
    /// Reducing the window after ECN-Echo.
    Cwr,
    /// Fast recovery.
    Recovery,
    /// After a retransmission timeout.
    Loss,
}

impl RecoveryState {
    /// The transport is reducing the window and does not want it to grow.
    pub const fn is_reducing(self) -> bool {
        matches!(self, Self::Cwr | Self::Recovery)
    }
}

/// One acknowledgement, after the transport's own bookkeeping of it.
#[derive(Clone, Copy, Debug)]
pub struct Ack {
    pub now: Time,
    /// Segments newly delivered, cumulatively or selectively.
    pub delivered: u32,
    /// Of those, cumulatively acknowledged for the first time.
    pub cumulative: u32,
    /// Segments newly deemed lost.
    pub lost: u32,
    /// Segments newly reported as marked. With accurate feedback it is the receiver's count;
    /// acknowledgements that were lost can delay it, so it may exceed `delivered`. With classic
    /// feedback it is all of `delivered` when ECN-Echo is set.
    pub ce: u32,
    /// ECN-Echo is set; with accurate feedback: `ce` is not zero.
    pub ece: bool,
    /// Round-trip time of the newest segment that was not retransmitted.
    pub rtt: Option<Span>,
    /// The receiver may have delayed this acknowledgement.
    pub is_delayed: bool,
    pub rate: Option<RateSample>,
    /// In flight before and after.
    pub prior_in_flight: u32,
    pub in_flight: u32,
    /// Next segment to be acknowledged, and next to be sent.
    pub snd_una: u32,
    pub snd_nxt: u32,
    /// Totals of the connection.
    pub total_delivered: u64,
    pub total_delivered_ce: u64,
    pub total_lost: u64,
    pub state: RecoveryState,
    /// The state before this acknowledgement.
    pub prior_state: RecoveryState,
    pub srtt: Option<Span>,
    /// Smallest round-trip time of the last 5 minutes, as the transport keeps it.
    pub min_rtt: Option<Span>,
    /// The window was the limit in the round before; in slow start it is enough that half of it was
    /// used (Linux `tcp_is_cwnd_limited`).
    pub is_cwnd_limited: bool,
    /// All of the window was used at some time in the round before (draft-ietf-ccwg-bbr,
    /// `C.is_cwnd_limited`; Linux `tp->is_cwnd_limited`).
    pub was_cwnd_full: bool,
    /// The application is the limit at present: the delivered count at which that ends.
    pub app_limited_until: u64,
    /// When the pacer lets the next packet go.
    pub earliest_departure: Time,
    /// Segments sent and not cumulatively acknowledged.
    pub packets_out: u32,
    /// Bytes from `snd_una` on that the receiver allows.
    pub receive_window: u64,
}

/// One segment deemed lost.
#[derive(Clone, Copy, Debug)]
pub struct Lost {
    pub now: Time,
    /// The connection's counters when the segment left.
    pub memo: Memo,
    /// Segments declared lost until now, this one included.
    pub total_lost: u64,
    pub total_delivered: u64,
    /// The segment is a retransmission that was lost again.
    pub retransmission: bool,
    /// A tail loss probe found the loss, and was needed to repair it.
    pub by_tail_loss_probe: bool,
}

/// Why the transport reduces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CongestionKind {
    /// Fast recovery begins.
    Loss,
    /// ECN-Echo outside of recovery.
    Ecn,
    /// A retransmission timeout.
    Timeout,
}

/// A reduction begins.
#[derive(Clone, Copy, Debug)]
pub struct Congestion {
    pub now: Time,
    pub kind: CongestionKind,
    /// In flight, without the segments deemed lost.
    pub in_flight: u32,
    pub snd_nxt: u32,
    pub prior_state: RecoveryState,
}

/// A reduction turned out to be spurious.
#[derive(Clone, Copy, Debug)]
pub struct Undo {
    pub now: Time,
}

/// The connection sends again with nothing in flight.
#[derive(Clone, Copy, Debug)]
pub struct Restart {
    pub now: Time,
    /// Since the last packet left.
    pub idle: Span,
    /// The retransmission timeout; a longer idleness reduces the window of most. [`Span::MAX`] if it must not
    /// (`slow_start_after_idle`).
    pub rto: Span,
    /// The application was the limit.
    pub is_app_limited: bool,
}

/// How much to hand to the network at once, in segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantum {
    /// The transport decides from the pacing rate, but not below `least`.
    Auto {
        least: u32,
    },
    Segments(u32),
}

/// What a controller answers at a moment; see the methods of [`Controller`] with these names.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outputs {
    pub cwnd: u32,
    pub ssthresh: Option<u32>,
    pub pacing_rate: Option<Rate>,
    pub send_quantum: Quantum,
    pub phase: &'static str,
}

/// A congestion controller. Window and counts are segments.
pub trait Controller: Send {
    /// A burst leaves. This must not change any of the [`Outputs`].
    fn on_sent(&mut self, _sent: &Sent) {}

    fn on_ack(&mut self, ack: &Ack);

    /// Called for every segment deemed lost, before the [`Ack`] that revealed it.
    fn on_lost(&mut self, _lost: &Lost) {}

    /// Recovery, an ECN reduction or a timeout begins. The controller lowers its window and
    /// threshold here; if [`Controller::uses_prr`], the transport lowers its own window gradually.
    fn on_congestion(&mut self, congestion: &Congestion);

    /// The transport left Cwr, Recovery or Loss because all of that flight is acknowledged.
    fn on_recovered(&mut self, _now: Time) {}

    fn on_undo(&mut self, undo: &Undo);

    fn on_restart(&mut self, _restart: &Restart) {}

    /// For a retransmission timeout the window was not fully used; at most `used` segments were in
    /// flight (RFC 7661, RFC 2861).
    fn on_unused_window(&mut self, _used: u32) {}

    /// Segments that may be in flight.
    fn cwnd(&self) -> u32;

    /// `None` before the first congestion.
    fn ssthresh(&self) -> Option<u32>;

    /// `None` lets the transport derive a rate from the window and the round-trip time.
    fn pacing_rate(&self) -> Option<Rate> {
        None
    }

    fn send_quantum(&self) -> Quantum {
        Quantum::Auto { least: 2 }
    }

    /// The transport applies proportional rate reduction (RFC 9937) during recovery.
    fn uses_prr(&self) -> bool {
        true
    }

    /// How many windows a send buffer that the kernel tunes has room for (the kernel's `sndbuf_expand`).
    fn send_buffer_windows(&self) -> u32 {
        2
    }

    /// The controller reads [`Ack::rate`], which is `None` if it does not.
    fn reads_rate(&self) -> bool {
        true
    }

    /// [`Controller::on_lost`] does something. It is not called if not.
    fn heeds_losses(&self) -> bool {
        true
    }

    /// A name for `ss`, plots and tests, which changes when the controller changes its mode.
    fn phase(&self) -> &'static str;

    /// Everything that the transport reads for every packet.
    #[inline]
    fn outputs(&self) -> Outputs {
        Outputs {
            cwnd: self.cwnd(),
            ssthresh: self.ssthresh(),
            pacing_rate: self.pacing_rate(),
            send_quantum: self.send_quantum(),
            phase: self.phase(),
        }
    }

    /// [`Controller::on_ack`], then stores the answers in `says`, because the transport needs them
    /// after every acknowledgement. A function of each controller, so that the choice between them
    /// saves no registers for all.
    #[inline(never)]
    fn answer(&mut self, ack: &Ack, says: &mut Outputs) {
        self.on_ack(ack);
        *says = self.outputs();
    }

    /// Bandwidth estimate, if the controller has one.
    fn bandwidth(&self) -> Option<Rate> {
        None
    }

    /// Smallest round-trip time in the controller's own model, if it has one.
    fn model_min_rtt(&self) -> Option<Span> {
        None
    }

    /// Segments that a model-based controller allows for aggregated acknowledgements.
    fn extra_acked(&self) -> Option<u32> {
        None
    }

    /// The most segments in flight that probing found safe (`inflight_longterm`, `inflight_hi`);
    /// `None` while there is no bound.
    fn inflight_longterm(&self) -> Option<u32> {
        None
    }

    /// Round trips that the controller has counted.
    fn round_count(&self) -> Option<u64> {
        None
    }
}
