//! What tells a reduction without cause.

use sojourn_core::Time;

/// What is needed to take a reduction back.
#[derive(Clone, Debug, Default)]
pub(super) struct Undoing {
    pub(super) is_armed: bool,
    /// The first segment outstanding when the episode began.
    pub(super) marker: u32,
    /// Retransmissions not reported as duplicates yet; `None` when that cannot be told.
    pub(super) open_retransmissions: Option<u32>,
    /// When it was retransmitted first, of all that may still be under way. An episode that follows
    /// another closely goes on from there.
    pub(super) first_retransmission: Option<Time>,
    /// Marks were told of meanwhile, so the window stays reduced whatever became of the losses.
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
    /// timestamps of a millisecond; or nothing was retransmitted.
    pub(super) fn is_refuted_by_timestamp(&self, echo: Time) -> bool {
        self.is_armed
            && echo > Time::ZERO
            && self.first_retransmission.is_none_or(|first| answers_older(echo, first))
    }
}

/// An acknowledgement with this echo answers what left before `sent`, by timestamps of a
/// millisecond.
pub(super) fn answers_older(echo: Time, sent: Time) -> bool {
    let milliseconds = |time: Time| time.as_nanos() / 1_000_000;
    echo > Time::ZERO && milliseconds(echo) < milliseconds(sent)
}
