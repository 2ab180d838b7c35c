//! Forward error correction: packets of parity, from which the receiver restores packets of video that were lost.
//!
//! The sender collects packets of one frame or several (`generator`), as many packets of parity as the
//! losses call for (`protection`) follow them, and the receiver restores what they allow (`recovery`). `parity` is
//! a packet of parity and its bytes: RFC 5109 in RFC 2198's frame, or RFC 8627.

mod generator;
mod parity;
mod protection;
mod recovery;

pub(crate) use generator::Generator;
pub(crate) use parity::{Arrived, Header, Parity, Protected};
pub(crate) use protection::{Protection, ProtectionConfig};
pub(crate) use recovery::Recovery;

use sojourn_core::RtpStream;

/// How packets of parity are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FecScheme {
    /// RFC 5109, in the stream of the video and with its sequence numbers; each packet of that stream has a header of RFC 2198.
    Ulpfec,
    /// RFC 8627, in a stream of its own.
    Flexfec,
}

impl FecScheme {
    /// Bytes that it adds to each packet of video.
    pub(crate) const fn per_packet(self) -> u32 {
        match self {
            Self::Ulpfec => parity::RED,
            Self::Flexfec => 0,
        }
    }

    /// The synchronisation source of its packets.
    pub(crate) const fn source(self) -> u32 {
        match self {
            Self::Ulpfec => RtpStream::Video.source(),
            Self::Flexfec => RtpStream::Fec.source(),
        }
    }

    /// How much longer than the longest packet of video one of parity may be, with `extensions` bytes of header extensions.
    pub(crate) const fn longest(self, extensions: u32) -> u32 {
        parity::header_bytes(self, parity::MOST_PACKETS - 1) + extensions
    }
}
