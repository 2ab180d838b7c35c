//! What the winner of a contention sends.

use sojourn_core::Span;

use crate::mac::aggregation::Psdu;
use crate::ofdma::Layout;

/// A data PPDU that has been put together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ppdu {
    pub(crate) link: u32,
    pub(crate) number: u32,
    /// The mode for which it was put together, as a position among those of its port.
    pub(crate) choice: u16,
    pub(crate) psdu: Psdu,
}

impl Ppdu {
    /// Its number, and how many MPDUs it has.
    pub(super) fn key(&self) -> (u32, u32) {
        (self.number, self.psdu.mpdus)
    }
}

/// What an exchange may take of its TXOP, response included.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Within {
    pub(crate) left: Span,
    /// The first exchange of a TXOP may take longer.
    pub(crate) is_first: bool,
}

impl Within {
    pub(crate) fn holds(self, whole: Span) -> bool {
        self.is_first || whole <= self.left
    }
}

/// What the access point sends: to several stations at once, or to one.
pub(crate) enum Serving {
    Several(Attempt),
    One(Ppdu),
}

/// What a winner of the contention sends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attempt {
    pub(super) edcaf: u16,
    pub(super) what: What,
    /// How long its first frame is on the air.
    pub(super) time: Span,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum What {
    Data {
        ppdu: Ppdu,
        has_rts: bool,
    },
    /// A BlockAckReq on this link.
    BlockAckReq {
        link: u32,
    },
    /// From the access point to several stations, or a Trigger frame for them.
    Several(Several),
}

/// What is sent for, or asked of, several stations.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Several {
    /// `time` is how long the PPDU lasts, `response` how long its acknowledgements do.
    Down { protection: Span, time: Span, response: Span },
    /// The time for buffer status (zero if it is not asked for), the units for data, and how many of
    /// them are for random access.
    Up { protection: Span, status: Span, layout: Layout, random_units: u32 },
}

impl Several {
    /// MU-RTS and CTS with the spaces after them, or nothing.
    pub(super) const fn protection(self) -> Span {
        match self {
            Self::Down { protection, .. } | Self::Up { protection, .. } => protection,
        }
    }
}
