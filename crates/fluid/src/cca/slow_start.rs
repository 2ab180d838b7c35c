//! Slow start, recovery and the window that several controls have in common.

use super::{Setup, Shown, Told};

/// A window with its threshold, and the end of the recovery that it is in.
#[derive(Clone, Debug)]
pub(crate) struct Window {
    pub(crate) cwnd: f64,
    pub(crate) ssthresh: f64,
    /// Recovery ends when this much has been delivered or lost.
    recover: Option<f64>,
    packet: f64,
}

/// Windows fall no lower, in packets (RFC 5681 section 3.1).
const LEAST: f64 = 2.0;

impl Window {
    pub(crate) fn new(setup: Setup) -> Self {
        let Setup { initial_window, packet, .. } = setup;
        Self { cwnd: initial_window, ssthresh: f64::INFINITY, recover: None, packet }
    }

    pub(crate) fn is_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    pub(crate) fn shown(&self) -> Shown {
        let ssthresh = Some(self.ssthresh).filter(|ssthresh| ssthresh.is_finite());
        Shown { ssthresh, ..Shown::default() }
    }

    pub(crate) fn is_recovering(&self) -> bool {
        self.recover.is_some()
    }

    /// Ends recovery when everything that had been sent at its beginning is accounted for.
    pub(crate) fn follow(&mut self, told: &Told) {
        if self.recover.is_some_and(|end| told.sent - told.in_flight >= end) {
            self.recover = None;
        }
    }

    /// Whether the window may grow now.
    pub(crate) fn may_grow(&self, told: &Told) -> bool {
        !self.is_recovering()
            && (told.is_limited || self.is_slow_start() && told.in_flight * 2.0 >= self.cwnd)
    }

    /// Keeps `share` of the window, once for all losses and marks of a flight.
    pub(crate) fn cut(&mut self, told: &Told, share: f64) -> bool {
        if self.is_recovering() {
            return false;
        }
        self.recover = Some(told.sent);
        self.lower(share);
        true
    }

    /// Keeps `share` of the window, and lets it grow on.
    pub(crate) fn lower(&mut self, share: f64) {
        self.ssthresh = (self.cwnd * share).max(LEAST * self.packet);
        self.cwnd = self.ssthresh;
    }

    /// Grows by what was acknowledged, up to the threshold; gives back what is left of it.
    pub(crate) fn slow_start(&mut self, acked: f64) -> f64 {
        let room = (self.ssthresh - self.cwnd).max(0.0);
        let used = acked.min(room);
        self.cwnd += used;
        acked - used
    }

    /// `rate` packets a window's worth of acknowledgements: dw = rate · P · da / w, integrated.
    pub(crate) fn increase(&mut self, acked: f64, rate: f64) {
        self.cwnd = libm::sqrt(self.cwnd * self.cwnd + 2.0 * rate * self.packet * acked);
    }

    /// As the packets' controllers name theirs.
    pub(crate) fn phase(&self) -> &'static str {
        match self.is_slow_start() && !self.is_recovering() {
            true => "slow_start",
            false => "avoidance",
        }
    }
}
