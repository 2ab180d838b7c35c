//! Applications. Those over TCP decide what the connection has to send; the others send their own
//! packets.

pub mod arrivals;
mod ping;
mod udp;

pub use crate::source::{Source, SourceState};
pub use arrivals::{Arrivals, ArrivalsConfig, Sizes, SizesSpec};
pub use ping::{Echo, Ping, PingConfig};
pub use udp::{Udp, UdpConfig, UdpSink};
