//! The largest bandwidth of the previous and of the present ProbeBW cycle, sections 5.5.2 to 5.5.6.

use super::super::Bbr3;
use super::super::bandwidth::Bandwidth;
use super::Sample;

#[derive(Clone, Debug)]
pub(crate) struct MaxBwFilter {
    previous: Bandwidth,
    present: Bandwidth,
    /// Only samples change it: a cycle without samples does not lower it.
    max_bw: Bandwidth,
}

impl Default for MaxBwFilter {
    fn default() -> Self {
        Self { previous: Bandwidth::ZERO, present: Bandwidth::ZERO, max_bw: Bandwidth::ZERO }
    }
}

impl MaxBwFilter {
    pub(crate) fn max_bw(&self) -> Bandwidth {
        self.max_bw
    }

    /// `AdvanceMaxBwFilter`: a new cycle begins, and the one before the previous is forgotten.
    pub(crate) fn advance(&mut self) {
        self.previous = self.present;
        self.present = Bandwidth::ZERO;
    }

    fn update(&mut self, delivery_rate: Bandwidth) {
        self.present = self.present.max(delivery_rate);
        self.max_bw = self.present.max(self.previous);
    }
}

impl Bbr3 {
    /// `UpdateMaxBw`, without the round.
    pub(crate) fn update_max_bw(&mut self, rs: &Sample) {
        if let Some(delivery_rate) = rs.delivery_rate
            && (delivery_rate >= self.max_bw.max_bw || !rs.is_app_limited)
        {
            self.max_bw.update(delivery_rate);
        }
    }
}
