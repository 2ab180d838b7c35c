//! Lengths of frames in octets (clause 9).

/// Frame check sequence (section 9.2.4.8).
pub const FCS: u32 = 4;
/// Header of a data frame without QoS control (section 9.3.2.1).
pub const DATA_HEADER: u32 = 24;
/// The same with it.
pub const QOS_DATA_HEADER: u32 = 26;
/// What lies between the MAC header and the IP packet (LLC and SNAP).
pub const LLC_SNAP: u32 = 8;
/// The longest MSDU of all these standards (table 9-25); a longer A-MSDU is several of them.
pub const MSDU_MAX: u32 = 2304;
/// Section 9.3.1.2.
pub const RTS: u32 = 20;
/// Section 9.3.1.3.
pub const CTS: u32 = 14;
/// Section 9.3.1.4.
pub const ACK: u32 = 14;
/// Section 9.3.1.6.
pub const CF_END: u32 = 20;
/// Compressed BlockAckReq (section 9.3.1.7.2).
pub const BLOCK_ACK_REQ: u32 = 24;

/// A compressed BlockAck (section 9.3.1.8.2) with a bit for each frame of the window: 64 bits, or
/// 256 if the window is larger.
pub const fn block_ack(window: u32) -> u32 {
    const WITHOUT_BITMAP: u32 = 24;
    WITHOUT_BITMAP + if window > 64 { 32 } else { 8 }
}

/// Before every MPDU of an A-MPDU (section 9.7.1).
pub const MPDU_DELIMITER: u32 = 4;

/// An MPDU in an A-MPDU, padded as all but the last are.
pub const fn subframe(mpdu: u32) -> u32 {
    (MPDU_DELIMITER + mpdu + 3) & !3
}

/// Destination, source and length before every MSDU of an A-MSDU (section 9.3.2.2.2).
pub const MSDU_SUBFRAME_HEADER: u32 = 14;

/// An MSDU in an A-MSDU, padded as all but the last are.
pub const fn msdu_subframe(msdu: u32) -> u32 {
    (MSDU_SUBFRAME_HEADER + msdu).next_multiple_of(4)
}
