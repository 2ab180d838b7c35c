//! Packet-timed round trips, section 5.5.1.

use super::super::Bbr3;
use super::Sample;

#[derive(Clone, Debug, Default)]
pub(crate) struct Rounds {
    /// `round_count`.
    pub(crate) count: u64,
    /// `round_start`.
    pub(crate) start: bool,
    next_round_delivered: u64,
}

impl Bbr3 {
    pub(crate) fn update_round(&mut self, rs: &Sample) {
        self.rounds.start = rs.has_data && rs.prior_delivered >= self.rounds.next_round_delivered;
        if self.rounds.start {
            self.start_round();
            self.rounds.count += 1;
            self.probe_bw.rounds_since_probe_up += 1;
        }
    }

    /// Starts a round that ends when what is sent from now on is delivered.
    pub(crate) fn start_round(&mut self) {
        self.rounds.next_round_delivered = self.delivered;
    }
}
