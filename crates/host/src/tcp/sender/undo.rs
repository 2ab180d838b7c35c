//! Signs that a reduction was spurious.

use sojourn_core::Time;

/// What is needed to undo a reduction.
#[derive(Clone, Debug, Default)]
pub(super) struct Undoing {
    pub(super) is_armed: bool,
    /// The first segment outstanding when the episode began.
    pub(super) marker: u32,
    /// Retransmissions not reported as duplicates yet; `None` if that can't be known.
    pub(super) open_retransmissions: Option<u32>,
    /// When the first retransmission left that may still be under way. An episode that closely
    /// follows another keeps its time.
    pub(super) first_retransmission: Option<Time>,
    /// Marks were reported meanwhile, so the window stays reduced even if the losses were spurious.
    pub(super) is_congested: bool,
}

impl Undoing {
    pub(super) fn on_retransmission(&mut self, now: Time, segments: u32) {
        self.first_retransmission = self.first_retransmission.or(Some(now));
        if self.is_armed {
            self.open_retransmissions = Some(self.open_retransmissions.unwrap_or(0) + segments);
        }
    }

    pub(super) fn arm(&mut self, marker: u32, retrans_out: u32) {
        self.is_armed = true;
        self.marker = marker;
        self.open_retransmissions = (retrans_out > 0).then_some(retrans_out);
    }

    pub(super) fn disarm(&mut self) {
        *self = Self { first_retransmission: self.first_retransmission, ..Self::default() };
    }

    /// Every retransmission turned out to be a duplicate (RFC 3708).
    pub(super) fn is_refuted_by_dsack(&self) -> bool {
        self.is_armed && self.open_retransmissions == Some(0)
    }

    /// The acknowledgement answers a segment sent before the first retransmission (RFC 3522), by
    /// timestamps in milliseconds; or nothing was retransmitted.
    pub(super) fn is_refuted_by_timestamp(&self, echo: Time) -> bool {
        self.is_armed
            && echo > Time::ZERO
            && self.first_retransmission.is_none_or(|first| answers_older(echo, first))
    }
}

/// An acknowledgement with this echo answers a segment that left before `sent`, by timestamps in
/// milliseconds.
pub(super) fn answers_older(echo: Time, sent: Time) -> bool {
    let milliseconds = |time: Time| time.as_nanos() / 1_000_000;
    echo > Time::ZERO && milliseconds(echo) < milliseconds(sent)
}
