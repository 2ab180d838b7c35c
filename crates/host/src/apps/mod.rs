//! Applications. Those over TCP decide what the connection has to send; the others send packets
//! of their own.

pub mod arrivals;
mod ping;
mod traffic;
mod udp;

pub use arrivals::{Arrivals, ArrivalsConfig, Sizes, SizesSpec};
pub use ping::{Ping, PingConfig};
pub use traffic::{Source, SourceState};
pub use udp::{Udp, UdpConfig};
