//! TCP in segments, as Linux does it: SACK scoreboard, RACK-TLP (RFC 8985), proportional rate
//! reduction (RFC 9937), retransmission timeout with F-RTO (RFC 6298, RFC 5682), Eifel and D-SACK
//! undo, delivery rate sampling, internal pacing, segmentation offload sizing and deferral,
//! delayed and compressed acknowledgements, receive window auto-tuning, ECN classic (RFC 3168), mark
//! by mark (RFC 8257) and accurate (RFC 9768).
//!
//! | file | what |
//! |---|---|
//! | `sender` | the sending end: its state, acknowledgements in, timers |
//! | `transmit` | what may leave now: window, pacing, offload sizing |
//! | `recovery` | loss detection and the recovery states |
//! | `control` | the congestion controller and what it says |
//! | `prr` | the window while it is being reduced |
//! | `scoreboard` | a record for each segment outstanding |
//! | `rate` | delivery rate samples |
//! | `rtt` | round-trip time and retransmission timeout |
//! | `receiver` | the receiving end: order, SACK blocks, when to acknowledge |
//! | `window` | the receive window |
//! | `ecn` | what both ends agree on, and what packets bear |
//! | `accecn` | the counters of accurate feedback |
//! | `endpoint` | sender and receiver as the endpoints of a flow |

mod accecn;
mod control;
mod ecn;
mod endpoint;
mod prr;
mod rate;
mod receiver;
mod rtt;
mod scoreboard;
mod sender;
#[cfg(test)]
mod tests;
mod window;

pub use crate::endpoint::Endpoints;
pub use ecn::{EcnOffer, EcnSupport};
pub use receiver::Receiver;
pub use sender::Sender;
pub use window::ReceiveBuffer;

use sojourn_core::{Span, SpecError, Time};

use crate::bounds::within;

/// The settings of both ends of a connection; defaults are Linux's.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Payload of a full segment, bytes. 1 448 leaves room for IPv4, TCP and timestamps in 1 500.
    pub mss: u32,
    /// Bytes of IP and TCP headers with options.
    pub header: u32,
    /// Initial window, segments (RFC 6928).
    pub initial_cwnd: u32,
    pub receive_buffer: ReceiveBuffer,
    /// Most memory for unacknowledged data, bytes (`tcp_wmem`); zero is unlimited.
    pub send_buffer: u64,
    /// What the sender asks for; with `None` the congestion control decides (`tcp_ecn` of the host
    /// that connects).
    pub ecn: Option<EcnOffer>,
    /// What the receiver agrees to (`tcp_ecn` of the host that listens).
    pub receiver_ecn: EcnSupport,
    /// Accurate feedback includes the counter of marked bytes (`tcp_ecn_option`).
    pub ecn_option: bool,
    /// If its card joined several segments into one marked packet, the receiver counts one mark.
    pub joined_marks_once: bool,
    /// Offloaded segmentation: a burst crosses the network as one packet.
    pub offload: bool,
    /// Most segments that cross as one packet with `offload`; a longer burst is cut. At least 1.
    pub offload_segments: u16,
    /// Most bytes that one offloaded packet holds (`gso_max_size`).
    pub gso_max_size: u32,
    /// Bursts to a near receiver are larger: the allowance of 64 KiB halves with every 2 to this
    /// power microseconds of round-trip time (`tcp_tso_rtt_log`). Zero means no allowance, as
    /// before Linux 5.18.
    pub tso_rtt_log: u32,
    /// A short burst waits only for an acknowledgement that is due within this time, and within
    /// half a round trip. Linux before 6.13 had the second condition only.
    pub deferral: Span,
    /// Bursts end where a buffer of the send queue ends: the kernel fills each to `gso_max_size` as
    /// the application writes, and never joins two again.
    pub buffer_bound: bool,
    /// Paces even a controller that has no pacing rate of its own, as Linux does if the sender has
    /// the `fq` discipline.
    pub pace_always: bool,
    /// The largest delay of the pacing timer; delays are uniform. The timer is a soft interrupt,
    /// which may have to wait for a sleeping or a busy processor. A burst that an acknowledgement
    /// releases does not wait.
    pub pacing_slack: Span,
    /// Coarseness of kernel timers (a jiffy); zero is exact.
    pub tick: Span,
    /// Smallest retransmission timeout (`tcp_rto_min_us`).
    pub rto_min: Span,
    /// Longest wait of a delayed acknowledgement's first timer (`TCP_DELACK_MIN`).
    pub delayed_ack: Span,
    /// A receiver that acknowledges every segment at once.
    pub quick_ack: bool,
    /// Address resolution delays the first packet by this much; the handshake's round-trip time
    /// includes it.
    pub address_resolution: Span,
    /// Reduce the window after an idle time (`tcp_slow_start_after_idle`).
    pub slow_start_after_idle: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            mss: 1448,
            header: 52,
            initial_cwnd: 10,
            receive_buffer: ReceiveBuffer::default(),
            send_buffer: 4 << 20,
            ecn: None,
            receiver_ecn: EcnSupport::Accurate,
            ecn_option: true,
            joined_marks_once: false,
            offload: false,
            offload_segments: u16::MAX,
            gso_max_size: 65_536,
            tso_rtt_log: 9,
            deferral: Span::from_millis(1),
            buffer_bound: false,
            pace_always: false,
            pacing_slack: Span::ZERO,
            tick: Span::from_millis(1),
            rto_min: Span::from_millis(200),
            delayed_ack: Span::from_millis(40),
            quick_ack: false,
            address_resolution: Span::ZERO,
            slow_start_after_idle: true,
        }
    }
}

impl Config {
    /// # Errors
    /// A value that no connection works with.
    pub fn check(&self) -> Result<(), SpecError> {
        within("mss", self.mss, 64, 65_000)?;
        within("header", self.header, 20, 535)?;
        within("initial_cwnd", self.initial_cwnd, 1, 10_000)?;
        within("offload_segments", self.offload_segments, 1, u16::MAX)?;
        within("gso_max_size", self.gso_max_size, 1, 16 << 20)?;
        within("tso_rtt_log", self.tso_rtt_log, 0, 31)?;
        // At least two small segments; at most far below sizes whose sums could overflow.
        let buffer = |what, bytes| within(what, bytes, 2_304, 1 << 40);
        match self.receive_buffer {
            ReceiveBuffer::Window(bytes) => buffer("receive_window", bytes)?,
            ReceiveBuffer::Locked(bytes) => buffer("receive_buffer", bytes)?,
            ReceiveBuffer::Auto { initial, most } => {
                buffer("most receive_buffer", most)?;
                within("initial receive_buffer", initial, 2_304, most)?;
            }
        }
        if self.send_buffer > 0 {
            buffer("send_buffer", self.send_buffer)?;
        }
        for (what, span, most) in [
            ("tick", self.tick, Span::from_secs(1)),
            ("rto_min", self.rto_min, Span::from_secs(120)),
            ("delayed_ack", self.delayed_ack, Span::from_secs(1)),
            ("deferral", self.deferral, Span::from_secs(1)),
            ("pacing_slack", self.pacing_slack, Span::from_millis(100)),
            ("address_resolution", self.address_resolution, Span::from_secs(60)),
        ] {
            within(what, span, Span::ZERO, most)?;
        }
        Ok(())
    }
}

/// A timer set to `at` fires at the first kernel tick that is not earlier.
fn on_tick(at: Time, tick: Span) -> Time {
    let tick = tick.as_nanos();
    if tick == 0 || at.is_never() {
        return at;
    }
    match at.as_nanos() % tick {
        0 => at,
        past => at + Span::from_nanos(tick - past),
    }
}
