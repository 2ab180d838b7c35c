//! Whether a timeout begins an episode of its own or belongs to one that is being repaired.

use crate::reno::window::Progress;
use crate::{Ack, Congestion, CongestionKind, RecoveryState};

/// Follows what is acknowledged, as Linux does to decide (`tcp_enter_loss`).
#[derive(Clone, Debug, Default)]
pub(super) struct Episodes {
    progress: Progress,
    /// Next sequence number to be sent when the last episode began.
    high_seq: Option<u32>,
}

impl Episodes {
    pub(super) fn on_ack(&mut self, ack: &Ack) {
        self.progress.is_made_by(ack);
    }

    /// Notes `congestion`. True if no earlier response covers its episode.
    pub(super) fn begin(&mut self, congestion: &Congestion) -> bool {
        let is_undisturbed =
            matches!(congestion.prior_state, RecoveryState::Open | RecoveryState::Disorder);
        let is_timeout = congestion.kind == CongestionKind::Timeout;
        let is_new = is_undisturbed
            || (is_timeout
                && (self.high_seq.is_none_or(|high_seq| self.progress.has_reached(high_seq))
                    || (congestion.prior_state == RecoveryState::Loss
                        && self.progress.since_timeout)));
        if is_timeout {
            self.progress.since_timeout = false;
        }
        if is_timeout || is_new {
            self.high_seq = Some(congestion.snd_nxt);
        }
        is_new
    }
}
