//! TCP in segments, as Linux does it: SACK scoreboard, RACK-TLP (RFC 8985), proportional rate
//! reduction (RFC 9937), retransmission timeout with F-RTO (RFC 6298, RFC 5682), Eifel and D-SACK
//! undo, delivery rate sampling, internal pacing, segmentation offload sizing and deferral,
//! delayed and compressed acknowledgements, receive window auto-tuning, ECN classic (RFC 3168), mark
//! by mark (RFC 8257) and accurate (RFC 9768).
//!
//! | file | what |
//! |---|---|
//! | `config` | the parameters |
//! | `sender` | the sending end: its state, acknowledgements in, timers |
//! | `transmit` | what may leave now: window, pacing, offload sizing |
//! | `recovery` | loss detection and the recovery states |
//! | `control` | the congestion controller and what it says |
//! | `prr` | the window while it is being reduced |
//! | `scoreboard` | a record for each segment outstanding |
//! | `rate` | delivery rate samples |
//! | `rtt` | round-trip time and retransmission timeout |
//! | `round_trips` | the samples of a sender of which only packets are seen |
//! | `receiver` | the receiving end: order, SACK blocks, when to acknowledge |
//! | `send_buffer` | how much waits to be sent or acknowledged |
//! | `write_queue` | what is written and not sent |
//! | `reader` | the application that takes what has arrived |
//! | `window` | the receive window |
//! | `ecn` | what both ends agree on, and what packets bear |
//! | `accecn` | the counters of accurate feedback |
//! | `endpoint` | sender and receiver as the endpoints of a flow |

mod accecn;
mod config;
mod control;
mod ecn;
mod endpoint;
mod prr;
mod rate;
mod reader;
mod receiver;
mod round_trips;
mod rtt;
mod scoreboard;
mod send_buffer;
mod sender;
#[cfg(test)]
mod tests;
mod timer_wheel;
mod window;
mod windows;
mod write_queue;

pub use crate::endpoint::Endpoints;
pub use config::{Config, PacketBuffers};
pub use ecn::{EcnOffer, EcnSupport};
pub use reader::{Reader, Reading, Reads};
pub use receiver::Receiver;
pub use round_trips::RoundTrips;
pub use send_buffer::SendBuffer;
pub use sender::Sender;
pub use windows::Windows;
