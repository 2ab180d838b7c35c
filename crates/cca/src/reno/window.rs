//! Congestion window and threshold in whole segments, as Linux keeps them for every controller
//! that answers acknowledgements with growth and congestion with a reduction.

use crate::{Ack, Congestion, CongestionKind, RecoveryState, Restart};

/// Window, threshold and what an undo needs.
#[derive(Clone, Debug)]
pub(crate) struct Window {
    cwnd: u32,
    /// [`NO_THRESHOLD`] before the first congestion.
    ssthresh: u32,
    /// Delivered segments that have not yet added up to an increase.
    cwnd_cnt: u32,
    initial_cwnd: u32,
    prior_cwnd: u32,
    /// `None` if the last reduction can't be undone.
    prior_ssthresh: Option<u32>,
    /// Next sequence number to be sent when the last reduction began.
    high_seq: Option<u32>,
    progress: Progress,
}

const NO_THRESHOLD: u32 = u32::MAX;

impl Window {
    pub(crate) fn new(initial_cwnd: u32) -> Self {
        let initial_cwnd = initial_cwnd.max(1);
        Self {
            cwnd: initial_cwnd,
            ssthresh: NO_THRESHOLD,
            cwnd_cnt: 0,
            initial_cwnd,
            prior_cwnd: 0,
            prior_ssthresh: None,
            high_seq: None,
            progress: Progress::default(),
        }
    }

    #[inline]
    pub(crate) fn cwnd(&self) -> u32 {
        self.cwnd
    }

    pub(crate) fn ssthresh(&self) -> Option<u32> {
        (self.ssthresh != NO_THRESHOLD).then_some(self.ssthresh)
    }

    #[inline]
    pub(crate) fn is_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// Slow start ends at the present window.
    pub(crate) fn leave_slow_start(&mut self) {
        self.ssthresh = self.cwnd;
    }

    /// Processes every acknowledgement, and tells whether the window may grow by it: the window was
    /// the limit, no reduction is under way, and the acknowledgement is no duplicate.
    #[inline]
    pub(crate) fn may_grow(&mut self, ack: &Ack) -> bool {
        self.progress.is_made_by(ack) && ack.is_cwnd_limited && !ack.state.is_reducing()
    }

    /// Below the threshold, grows by each of the delivered segments up to it (RFC 5681 section
    /// 3.1, RFC 3465 without a limit). Returns what counts for congestion avoidance, if anything.
    #[inline]
    pub(crate) fn slow_start(&mut self, delivered: u32) -> Option<u32> {
        if !self.is_slow_start() {
            return Some(delivered);
        }
        let grown = self.cwnd.saturating_add(delivered).min(self.ssthresh);
        let rest = delivered - (grown - self.cwnd);
        self.cwnd = grown;
        (rest > 0).then_some(rest)
    }

    /// Congestion avoidance: one segment more for every `every` delivered.
    #[inline]
    pub(crate) fn increase_every(&mut self, every: u32, delivered: u32) {
        let every = every.max(1);
        // Credit that was earned at a slower pace is worth at most one segment.
        if self.cwnd_cnt >= every {
            self.cwnd_cnt = 0;
            self.cwnd = self.cwnd.saturating_add(1);
        }
        self.cwnd_cnt = self.cwnd_cnt.saturating_add(delivered);
        if self.cwnd_cnt >= every {
            self.cwnd = self.cwnd.saturating_add(self.cwnd_cnt / every);
            self.cwnd_cnt %= every;
        }
    }

    /// Whether `congestion` lowers the threshold, or belongs to a flight that already did.
    pub(crate) fn reduces_on(&self, congestion: &Congestion) -> bool {
        match congestion.kind {
            CongestionKind::Loss => !congestion.prior_state.is_reducing(),
            CongestionKind::Ecn => is_undisturbed(congestion.prior_state),
            CongestionKind::Timeout => {
                is_undisturbed(congestion.prior_state)
                    || self.high_seq.is_none_or(|high_seq| self.progress.has_reached(high_seq))
                    || (congestion.prior_state == RecoveryState::Loss
                        && self.progress.since_timeout)
            }
        }
    }

    /// Enters the reduction, with a new threshold if [`Window::reduces_on`] says so.
    pub(crate) fn reduce(&mut self, congestion: &Congestion, ssthresh: Option<u32>) {
        let is_timeout = congestion.kind == CongestionKind::Timeout;
        if let Some(ssthresh) = ssthresh {
            // A mark is never spurious, so its reduction can't be undone.
            self.prior_ssthresh = (congestion.kind != CongestionKind::Ecn)
                .then(|| self.remembered_ssthresh(congestion.prior_state));
            self.prior_cwnd = self.cwnd;
            self.ssthresh = ssthresh;
            self.cwnd = ssthresh;
            self.cwnd_cnt = 0;
        } else if congestion.kind == CongestionKind::Loss {
            self.prior_ssthresh = None;
        }
        if is_timeout {
            self.cwnd = congestion.in_flight.saturating_add(1);
            self.cwnd_cnt = 0;
            self.progress.since_timeout = false;
        }
        if is_timeout || ssthresh.is_some() {
            self.high_seq = Some(congestion.snd_nxt);
        }
    }

    pub(crate) fn undo(&mut self) {
        if let Some(prior_ssthresh) = self.prior_ssthresh.take() {
            self.cwnd = self.cwnd.max(self.prior_cwnd);
            self.ssthresh = self.ssthresh.max(prior_ssthresh);
        }
    }

    /// Halves the window for every retransmission timeout spent idle, down to the initial one
    /// (RFC 2861 section 3.1).
    pub(crate) fn restart(&mut self, restart: &Restart) {
        if restart.idle <= restart.rto {
            return;
        }
        self.ssthresh = self.remembered_ssthresh(RecoveryState::Open);
        let floor = self.initial_cwnd.min(self.cwnd);
        let mut idle = restart.idle - restart.rto;
        while !idle.is_zero() && self.cwnd > floor {
            self.cwnd /= 2;
            idle = idle - restart.rto;
        }
        self.cwnd = self.cwnd.max(floor);
    }

    /// Goes half the way down to the window that was used (RFC 2861 section 3.2).
    pub(crate) fn give_back_unused(&mut self, used: u32) {
        let used = used.max(self.initial_cwnd);
        if used < self.cwnd {
            self.ssthresh = self.remembered_ssthresh(RecoveryState::Open);
            self.cwnd = used + (self.cwnd - used) / 2;
        }
    }

    /// The threshold from which the present window can be regained: three quarters of it.
    fn remembered_ssthresh(&self, state: RecoveryState) -> u32 {
        if state.is_reducing() {
            self.ssthresh
        } else {
            self.ssthresh.max(self.cwnd / 2 + self.cwnd / 4)
        }
    }
}

/// The methods of [`Controller`](crate::Controller) that only call the field `window`.
macro_rules! left_to_window {
    () => {
        fn on_undo(&mut self, _undo: &$crate::Undo) {
            self.window.undo();
        }

        fn on_unused_window(&mut self, used: u32) {
            self.window.give_back_unused(used);
        }

        #[inline]
        fn cwnd(&self) -> u32 {
            self.window.cwnd()
        }

        fn ssthresh(&self) -> Option<u32> {
            self.window.ssthresh()
        }
    };
}

pub(crate) use left_to_window;

fn is_undisturbed(state: RecoveryState) -> bool {
    matches!(state, RecoveryState::Open | RecoveryState::Disorder)
}

/// Follows the cumulative acknowledgement.
#[derive(Clone, Debug, Default)]
pub(crate) struct Progress {
    snd_una: Option<u32>,
    /// Something was cumulatively acknowledged since the last timeout. To be cleared by the owner.
    pub(crate) since_timeout: bool,
}

impl Progress {
    /// Whether `ack` cumulatively acknowledges more than any before it.
    #[inline]
    pub(crate) fn is_made_by(&mut self, ack: &Ack) -> bool {
        let advances = ack.cumulative > 0 || self.snd_una.is_some_and(|una| una != ack.snd_una);
        self.snd_una = Some(ack.snd_una);
        self.since_timeout |= advances;
        advances
    }

    /// Everything below `seq` is acknowledged.
    pub(crate) fn has_reached(&self, seq: u32) -> bool {
        self.snd_una.is_some_and(|una| !is_after(seq, una))
    }
}

/// `a` follows `b` in a sequence space that wraps.
#[inline]
pub(crate) fn is_after(a: u32, b: u32) -> bool {
    (b.wrapping_sub(a) as i32) < 0
}
