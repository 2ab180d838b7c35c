//! How long packets are on a link that frames them.

use sojourn_core::{ETHERNET_HEADER, Framing};

/// Bytes that a packet of `wire` bytes on Ethernet takes.
fn framed(framing: Framing, wire: u32) -> u32 {
    framing.length(if framing.from_ip { wire - ETHERNET_HEADER } else { wire })
}

/// The part of these that are the packet's own.
pub(crate) fn payload_share(framing: Framing, wire: u32) -> f64 {
    f64::from(wire) / f64::from(framed(framing, wire))
}

/// Packets of the two sizes take bytes in proportion to their own.
pub(crate) fn is_even(framing: Framing, wire: u32, other: u32) -> bool {
    let across = |own: u32, other: u32| u64::from(own) * u64::from(framed(framing, other));
    across(wire, other) == across(other, wire)
}
