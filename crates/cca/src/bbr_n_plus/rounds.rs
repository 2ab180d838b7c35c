//! What a round trip showed: whether the receiver was its limit, and whether a queue or losses were
//! seen.

use sojourn_core::Span;

use crate::Ack;

/// The round under way.
#[derive(Clone, Debug, Default)]
pub(super) struct Round {
    /// Segments acknowledged, and those of them that left while the receiver was the limit.
    acked: u64,
    limited: u64,
    lost: u64,
    min_rtt: Option<Span>,
    has_marks: bool,
}

impl Round {
    pub(super) fn count(&mut self, ack: &Ack) {
        let delivered = u64::from(ack.delivered);
        self.acked += delivered;
        if ack.rate.as_ref().is_some_and(|rate| rate.prior.is_rwnd_limited) {
            self.limited += delivered;
        }
        self.lost += u64::from(ack.lost);
        self.min_rtt = match (self.min_rtt, ack.rtt) {
            (Some(least), Some(rtt)) => Some(least.min(rtt)),
            (least, rtt) => least.or(rtt),
        };
        self.has_marks |= ack.ce > 0;
    }

    /// At least `share` of what was acknowledged left while the receiver was the limit.
    pub(super) fn is_receiver_limited(&self, share: f64) -> bool {
        self.limited > 0 && self.limited as f64 >= share * self.acked as f64
    }

    /// Some of it waited for no more than `rtt_factor` times the path's own time, no more than
    /// `loss_share` of it was lost, and nothing was marked.
    pub(super) fn shows_no_queue(
        &self,
        path_rtt: Option<Span>,
        rtt_factor: f64,
        loss_share: f64,
    ) -> bool {
        let is_short = match (self.min_rtt, path_rtt) {
            (Some(rtt), Some(path)) => rtt.as_nanos() as f64 <= rtt_factor * path.as_nanos() as f64,
            _ => true,
        };
        let sent = (self.acked + self.lost) as f64;
        is_short && self.lost as f64 <= loss_share * sent && !self.has_marks
    }
}
