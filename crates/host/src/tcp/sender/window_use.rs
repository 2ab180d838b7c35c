use sojourn_core::{Span, Time};

use crate::tcp::control::Control;

/// How far the window is used, which decides whether it may grow (RFC 7661), and what the
/// connection waited for.
#[derive(Clone, Debug, Default)]
pub(super) struct WindowUse {
    pub(super) is_cwnd_limited: bool,
    pub(super) max_packets_out: u32,
    /// The result holds until this segment is acknowledged.
    pub(super) until: u32,
    pub(super) used: u32,
    pub(super) used_since: Time,
    /// A burst waits only because the window would make it short.
    pub(super) limited_by_deferral: bool,
    pub(super) waiting: Waiting,
    pub(super) since: Time,
    pub(super) busy: Span,
    pub(super) rwnd_limited: Span,
    pub(super) sndbuf_limited: Span,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Waiting {
    #[default]
    Idle,
    Busy,
    Receiver,
    /// Everything in the send buffer is sent, and the application waits for room in it.
    SendBuffer,
}

impl WindowUse {
    /// The window was the limit in the last flight; in slow start it is enough that half of it was
    /// used.
    #[inline]
    pub(super) fn is_limited(&self, cca: &Control) -> bool {
        if self.is_cwnd_limited {
            return true;
        }
        let cwnd = cca.cwnd();
        cca.ssthresh().is_none_or(|ssthresh| cwnd < ssthresh) && cwnd < 2 * self.max_packets_out
    }

    pub(super) fn busy(&self, now: Time) -> Span {
        let current =
            if self.waiting == Waiting::Idle { Span::ZERO } else { now.since(self.since) };
        self.busy + current
    }

    pub(super) fn rwnd_limited(&self, now: Time) -> Span {
        let current =
            if self.waiting == Waiting::Receiver { now.since(self.since) } else { Span::ZERO };
        self.rwnd_limited + current
    }

    pub(super) fn sndbuf_limited(&self, now: Time) -> Span {
        let current =
            if self.waiting == Waiting::SendBuffer { now.since(self.since) } else { Span::ZERO };
        self.sndbuf_limited + current
    }

    #[inline]
    pub(super) fn wait(&mut self, now: Time, waiting: Waiting) {
        if waiting != self.waiting {
            self.wait_for_another(now, waiting);
        }
    }

    #[inline(never)]
    pub(super) fn wait_for_another(&mut self, now: Time, waiting: Waiting) {
        let (busy, rwnd_limited) = (self.busy(now), self.rwnd_limited(now));
        let sndbuf_limited = self.sndbuf_limited(now);
        (self.busy, self.rwnd_limited) = (busy, rwnd_limited);
        self.sndbuf_limited = sndbuf_limited;
        self.waiting = waiting;
        self.since = now;
    }
}
