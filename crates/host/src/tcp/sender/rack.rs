//! The state of RACK (RFC 8985).

use sojourn_core::{Span, Time};

use crate::tcp::scoreboard::Record;

/// Duplicate acknowledgements that indicate a loss if no reordering has been seen.
const DUPLICATE_THRESHOLD: u32 = 3;

/// The most recently sent segment that is known to be delivered, and what is known of reordering.
#[derive(Clone, Debug)]
pub(super) struct Rack {
    pub(super) sent: Time,
    pub(super) segment: u32,
    pub(super) rtt: Span,
    pub(super) has_advanced: bool,
    /// Reordering degree, segments; the window for it, in quarters of the smallest round trip.
    pub(super) reordering: u32,
    pub(super) has_reordering: bool,
    pub(super) window_steps: u64,
    /// The window grows at most once a round for D-SACKs, and shrinks after 16 recoveries without
    /// any.
    pub(super) dsack_round: Option<u32>,
    pub(super) recoveries_left: u32,
}

impl Default for Rack {
    fn default() -> Self {
        Self {
            sent: Time::ZERO,
            segment: 0,
            rtt: Span::ZERO,
            has_advanced: false,
            reordering: DUPLICATE_THRESHOLD,
            has_reordering: false,
            window_steps: 1,
            dsack_round: None,
            recoveries_left: 0,
        }
    }
}

impl Rack {
    /// A segment was delivered (RFC 8985 section 6.2 step 2).
    #[inline]
    pub(super) fn advance(
        &mut self,
        now: Time,
        segment: u32,
        record: &Record,
        min_rtt: Option<Span>,
    ) {
        let rtt = now.after(record.sent);
        // The acknowledgement comes too soon for the retransmission, so the original arrived.
        if record.was_retransmitted && min_rtt.is_some_and(|least| rtt < least) {
            return;
        }
        self.has_advanced = true;
        self.rtt = rtt;
        if record.is_newer(segment, self.sent, self.segment) {
            self.sent = record.sent;
            self.segment = segment;
        }
    }

    pub(super) fn on_reordering(&mut self, distance: u32) {
        self.has_reordering = true;
        self.reordering = self.reordering.max(distance + 1).min(300);
    }
}
