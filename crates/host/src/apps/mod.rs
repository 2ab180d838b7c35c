//! Applications. Those over TCP decide what the connection has to send; the others send their own
//! packets.

pub mod arrivals;
mod both_ends;
mod bulk;
mod connection;
pub mod dialogue;
pub mod exec;
mod on_off;
pub mod page;
mod ping;
pub mod requests;
pub mod rpm;
mod sum;
mod turns;
mod udp;

pub use crate::source::{Source, SourceState};
pub use arrivals::{Arrivals, ArrivalsConfig, ArrivalsSpec, Sizes, SizesSpec};
pub use both_ends::BothEnds;
pub use bulk::BulkConfig;
pub use connection::{Connection, Simulated};
pub use exec::{Exec, ExecSpec};
pub use on_off::OnOffConfig;
pub use page::{Page, PageConfig};
pub use ping::{Echo, Ping, PingConfig};
pub use requests::{Requests, RequestsConfig};
pub use rpm::{Rpm, RpmConfig};
pub use udp::{FramesSpec, Udp, UdpConfig, UdpSink, UdpSpec};
