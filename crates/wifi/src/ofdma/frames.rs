//! Lengths of the frames that OFDMA adds (802.11ax-2021 section 9.3.1).

use crate::mac::frames::FCS;

/// A Trigger frame (section 9.3.1.22) with a User Info field for each resource unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trigger {
    /// Asks for data.
    Basic,
    /// Asks for buffer status (BSRP).
    BufferStatus,
    /// Asks for BlockAcks (MU-BAR).
    BlockAck,
    /// Asks for CTS (MU-RTS).
    Rts,
}

impl Trigger {
    /// Octets of the frame with `users` User Info fields, without padding.
    pub(crate) const fn octets(self, users: u32) -> u32 {
        const HEADER: u32 = 16;
        const COMMON_INFO: u32 = 8;
        const USER_INFO: u32 = 5;
        // What the variant adds to each User Info field: MPDU MU spacing, TID and preferred category;
        // nothing; BAR Control and BAR Information.
        let dependent = match self {
            Self::Basic => 1,
            Self::BufferStatus | Self::Rts => 0,
            Self::BlockAck => 4,
        };
        HEADER + COMMON_INFO + users * (USER_INFO + dependent) + FCS
    }
}

/// A QoS Null frame with a buffer status report in its HT Control field, as an MPDU of an A-MPDU.
pub(crate) const STATUS_REPORT: u32 = DELIMITER + 26 + 4 + FCS;

/// A compressed BlockAck in a trigger-based PPDU, without its bitmap's octets beyond the frame's.
pub(crate) const ASKED_BLOCK_ACK: u32 = DELIMITER;

const DELIMITER: u32 = 4;

/// A compressed BlockAckReq as an MPDU of an A-MPDU.
pub(crate) const ASKED_REQUEST: u32 = DELIMITER + crate::mac::frames::BLOCK_ACK_REQ;

/// Whom a Multi-STA BlockAck answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Answers {
    /// Stations that are told by a bitmap which frames arrived.
    pub(crate) bitmaps: u32,
    /// Stations that are told that all did (All Ack, section 26.4.2).
    pub(crate) all_acks: u32,
}

/// A Multi-STA BlockAck (section 9.3.1.8.6): header, BA Control, and for each station its AID and TID,
/// and where some frames may be missing the starting sequence number and a bitmap.
pub(crate) const fn multi_station_block_ack(answers: Answers, window: u32) -> u32 {
    const HEADER: u32 = 16;
    const CONTROL: u32 = 2;
    let bitmap = if window > 64 { 32 } else { 8 };
    HEADER + CONTROL + answers.bitmaps * (4 + bitmap) + answers.all_acks * 2 + FCS
}
