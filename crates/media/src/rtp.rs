//! What every packet of a call has around its payload: sizes of headers, and clocks that its timestamps count.

use sojourn_core::Time;

/// Bytes of IPv4 and UDP headers, of the fixed RTP header, and of an SRTP tag of 80 bits.
pub(crate) const IP_UDP: u32 = 28;
pub(crate) const RTP: u32 = 12;
pub(crate) const SRTP: u32 = 10;
/// Bytes of the original sequence number in a retransmission (RFC 4588 section 4).
pub(crate) const RTX: u32 = 2;

/// Ticks of a video stream's clock in a second.
pub(crate) const VIDEO_CLOCK: u32 = 90_000;

/// Of a voice's, as Opus has it (RFC 7587 section 4.1).
pub(crate) const VOICE_CLOCK: u32 = 48_000;

/// A time in ticks of a video stream's clock.
pub(crate) fn video_ticks(at: Time) -> u32 {
    (u128::from(at.as_nanos()) * u128::from(VIDEO_CLOCK) / 1_000_000_000) as u32
}

/// A time in ticks of a voice's clock.
pub(crate) fn voice_ticks(at: Time) -> u32 {
    (u128::from(at.as_nanos()) * u128::from(VOICE_CLOCK) / 1_000_000_000) as u32
}

/// A time as the abs-send-time extension has it: 24 bits, units of 2⁻¹⁸ s.
pub(crate) fn abs_send_time(at: Time) -> u32 {
    ((u128::from(at.as_nanos()) << 18) / 1_000_000_000) as u32 & 0xff_ffff
}
