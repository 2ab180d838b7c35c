//! How much the sender's kernel holds for an application: a stated amount, or as much as Linux gives it
//! when it tunes the buffer itself.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::vec::Vec;
use core::fmt;

use sojourn_core::param::{Form, Octets, ParamKind};
use sojourn_core::{Param, SpecError};

/// The send buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendBuffer {
    /// So many bytes from the beginning to the end; zero is without a limit.
    Bytes(u64),
    /// As the window grows, up to `most_send_buffer`.
    Auto,
}

/// The segments that the buffer has room for at least (Linux's `TCP_INIT_CWND`), whatever the window.
const LEAST_SEGMENTS: u64 = 10;
/// What belongs to the data of a buffer of Linux on 64 bits beside room for headers (`skb_shared_info`), and the buffer itself (`sk_buff`).
const WITH_DATA: u64 = 320;
const OF_ITS_OWN: u64 = 256;
/// Room for headers is taken from a stock whose pieces are this much larger where they would be a power of two.
const CACHE_LINE: u64 = 64;
/// Headers of IPv4 and TCP without options, which are no part of the maximum segment size.
const PLAIN_HEADERS: u64 = 40;

impl SendBuffer {
    /// Without a limit on what is not acknowledged.
    pub const UNLIMITED: Self = Self::Bytes(0);

    #[inline]
    pub(super) fn is_limited(self) -> bool {
        self != Self::UNLIMITED
    }

    /// The limit in bytes at the beginning.
    pub(super) fn at_first(self, windows: u32, segment: u64, most: u64) -> u64 {
        match self {
            Self::Bytes(0) => u64::MAX,
            Self::Bytes(bytes) => bytes,
            Self::Auto => wanted(windows, 0, segment).min(most),
        }
    }

    /// The most bytes that it can ever hold, if it is limited.
    pub fn most(self, most_tuned: u64) -> Option<u64> {
        match self {
            Self::Bytes(0) => None,
            Self::Bytes(bytes) => Some(bytes),
            Self::Auto => Some(most_tuned),
        }
    }
}

/// Memory that Linux wants for `windows` windows of `segments` segments (`tcp_sndbuf_expand`).
pub(super) fn wanted(windows: u32, segments: u32, segment: u64) -> u64 {
    u64::from(windows) * u64::from(segments).max(LEAST_SEGMENTS) * segment
}

/// Memory that Linux expects of a segment of `mss` bytes whose headers have `header` bytes, where `room` is left for those of
/// all layers.
pub(super) fn of_a_segment(mss: u32, header: u32, room: u32) -> u64 {
    let options = u64::from(header).saturating_sub(PLAIN_HEADERS);
    (u64::from(mss) + options + u64::from(room) + WITH_DATA).next_power_of_two() + OF_ITS_OWN
}

/// Memory that a buffer really takes beside its payload.
pub(super) fn of_a_buffer(room: u32) -> u64 {
    let head = u64::from(room) + WITH_DATA;
    head + OF_ITS_OWN + if head.is_power_of_two() { CACHE_LINE } else { 0 }
}

/// `64kB`, or `auto`.
impl Form for SendBuffer {
    type Value = Self;
    const KIND: ParamKind = ParamKind::Text;
    const EXAMPLES: &'static [&'static str] = &["4MiB", "auto"];

    fn read(text: &str, param: &Param) -> Result<Self, SpecError> {
        if text == AUTO {
            return Ok(Self::Auto);
        }
        Octets::read(text, param).map(Self::Bytes).map_err(|error| {
            let also = format!("or {AUTO}");
            let allowed: Vec<_> = error.allowed().iter().cloned().chain([also]).collect();
            SpecError::new(error.problem().to_owned()).allow(allowed)
        })
    }

    fn check(value: &Self, param: &Param) -> Result<(), SpecError> {
        match value {
            Self::Bytes(bytes) => Octets::check(bytes, param),
            Self::Auto => Ok(()),
        }
    }

    fn show(value: &Self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match value {
            Self::Bytes(bytes) => write!(f, "{bytes}"),
            Self::Auto => f.write_str(AUTO),
        }
    }
}

const AUTO: &str = "auto";

#[cfg(test)]
mod tests {
    use super::*;

    /// `ss -m` shows `tb87040` of every new connection over Ethernet on 64 bits, whatever its window.
    #[test]
    fn a_new_connection_over_ethernet_has_87040_bytes() {
        let segment = of_a_segment(1448, 52, 320);
        assert_eq!(segment, 4_352);
        assert_eq!(SendBuffer::Auto.at_first(2, segment, 4 << 20), 87_040);
        assert_eq!(SendBuffer::Auto.at_first(2, segment, 60_000), 60_000);
        assert_eq!(wanted(2, 60, segment), 522_240);
        // `SO_SNDBUF` of new connections over the loopback device of a Linux 6.18.44: of CUBIC and Reno, and of BBR.
        let long = of_a_segment(65_483, 52, 192);
        assert_eq!([2, 3].map(|windows| wanted(windows, 10, long)), [2_626_560, 3_939_840]);
        // The same kernel, which has neither wireless networks nor tunnels, with segments of 1448 bytes; and how much `ss -m` shows more
        // for each of 99 buffers of one byte (`MSG_EOR`) that wait behind a closed window.
        assert_eq!(wanted(2, 10, of_a_segment(1448, 52, 192)), 46_080);
        assert_eq!(of_a_buffer(192), 832);
        assert_eq!(of_a_buffer(320), 896);
        assert_eq!(SendBuffer::UNLIMITED.at_first(2, segment, 1), u64::MAX);
        assert_eq!(SendBuffer::Bytes(5).at_first(2, segment, 1), 5);
    }
}
