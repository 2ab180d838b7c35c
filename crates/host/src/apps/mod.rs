//! Applications. Those over TCP decide what the connection has to send; the others send packets
//! of their own.

pub mod arrivals;
mod ping;
mod traffic;
mod udp;

pub use arrivals::{Arrivals, ArrivalsConfig, Sizes, SizesSpec};
pub use ping::{Echo, Ping, PingConfig};
pub use traffic::{Source, SourceState};
pub use udp::{Udp, UdpConfig, UdpSink};

use alloc::format;
use core::fmt::Display;

use sojourn_core::{Span, SpecError};

/// Longer than any run.
pub(crate) const LONGEST: Span = Span::from_secs(10_000_000);

/// Whether `value` is one that `what` may have.
pub(crate) fn within<T: PartialOrd + Display>(
    what: &str,
    value: T,
    least: T,
    most: T,
) -> Result<(), SpecError> {
    if value >= least && value <= most {
        return Ok(());
    }
    let problem = SpecError::new(format!("{what} {value} is out of range"));
    Err(problem.allow([format!("{least} to {most}")]))
}
