//! How much more than expected is acknowledged at once, section 5.5.9.

use sojourn_core::Time;

use super::super::Bbr3;
use crate::Ack;
use crate::bbr::max_filter::WindowedMax;

#[derive(Clone, Debug)]
pub(crate) struct ExtraAcked {
    /// `extra_acked_interval_start`.
    interval_start: Time,
    /// `extra_acked_delivered`.
    delivered: u32,
    filter: WindowedMax<u32>,
}

impl ExtraAcked {
    pub(crate) fn new(now: Time) -> Self {
        Self { interval_start: now, delivered: 0, filter: WindowedMax::default() }
    }

    /// Starts anew: what was delivered before a pause does not predict what comes after it.
    pub(crate) fn restart(&mut self, now: Time) {
        self.interval_start = now;
        self.delivered = 0;
    }

    pub(crate) fn value(&self) -> u32 {
        self.filter.value()
    }
}

impl Bbr3 {
    pub(crate) fn update_ack_aggregation(&mut self, ack: &Ack) {
        if ack.delivered == 0 {
            return;
        }
        let interval = ack.now.since(self.extra_acked.interval_start);
        let mut expected_delivered = self.bw.volume_in(interval);
        if f64::from(self.extra_acked.delivered) <= expected_delivered {
            self.extra_acked.restart(ack.now);
            expected_delivered = 0.0;
        }
        self.extra_acked.delivered = self.extra_acked.delivered.saturating_add(ack.delivered);
        let extra = f64::from(self.extra_acked.delivered) - expected_delivered;
        let extra = (extra as u32).min(self.cwnd);
        let window = if self.full_bw.reached { self.config.extra_acked_window } else { 1 };
        self.extra_acked.filter.update(u64::from(window), self.rounds.count, extra);
    }
}
