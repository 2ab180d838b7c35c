//! The sender's path around the network: the encoder's target, packets of frames, their pace, and what is kept of
//! them to be sent again.

mod adjuster;
mod pacer;
mod packetiser;
mod probe;

pub(crate) use adjuster::Adjuster;
pub(crate) use pacer::{Pacer, PacerConfig, Release};
pub(crate) use packetiser::{Packetiser, overhead_of};

use sojourn_core::{RtpStream, Time};

/// A packet of media before it leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Item {
    pub(crate) stream: RtpStream,
    pub(crate) sequence: u32,
    pub(crate) frame: u32,
    pub(crate) part: u16,
    pub(crate) parts: u16,
    pub(crate) captured: Time,
    pub(crate) is_key: bool,
    /// Bytes of the IP packet.
    pub(crate) size: u32,
    /// Bytes of the whole frame's payload.
    pub(crate) frame_bytes: u32,
}
