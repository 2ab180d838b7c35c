use sojourn_core::{Span, Time};

use crate::tcp::control::Control;

/// How far the window is used, which decides whether it may grow (RFC 7661), and what the
/// connection waited for.
#[derive(Clone, Debug, Default)]
pub(super) struct WindowUse {
    /// All of it was used in the last flight.
    pub(super) was_full: bool,
    pub(super) max_packets_out: u32,
    /// The result holds until this segment is acknowledged.
    pub(super) until: u32,
    pub(super) used: u32,
    pub(super) used_since: Time,
    /// The first segment that had not been sent when this was found out.
    pub(super) told_until: u32,
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
        if self.was_full {
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

#[cfg(test)]
mod tests {
    use sojourn_cca::{Config, EcnFeedback, Setup};
    use sojourn_core::{Purpose, StreamAddress};

    use super::*;

    #[test]
    fn half_a_window_is_the_limit_in_slow_start_but_not_a_full_window() {
        let setup = Setup {
            mss: 1448,
            mtu: 1500,
            initial_cwnd: 10,
            now: Time::ZERO,
            handshake_rtt: None,
            tick: Span::ZERO,
            tick_phase: Span::ZERO,
            ecn: EcnFeedback::Off,
            is_paced: true,
            random: StreamAddress { seed: 1, run: 0 }.stream(0, Purpose::Controller),
        };
        let cca = Control::new(&Config::parse("bbr3").expect("a control"), setup);
        let used = |max_packets_out| WindowUse { max_packets_out, ..WindowUse::default() };
        assert_eq!((used(5).is_limited(&cca), used(5).was_full), (false, false));
        assert_eq!((used(6).is_limited(&cca), used(6).was_full), (true, false));
        let full = WindowUse { was_full: true, ..used(10) };
        assert!(full.is_limited(&cca));
    }
}
