//! A receiver that takes nothing more: the persist timer and its probes (RFC 9293 section 3.8.6.1), timed
//! as Linux does.

use sojourn_core::{Body, ETHERNET_HEADER, Packet, SegmentBody, Span, Time};

use super::{Sender, Timer, TimerKind};

/// The first probe comes no sooner (`TCP_RTO_MIN`), and none waits longer (`TCP_RTO_MAX`).
const SOONEST: Span = Span::from_millis(200);
const LATEST: Span = Span::from_secs(120);
/// The wait doubles so often at most (`tcp_retries2`).
const MOST_DOUBLINGS: u32 = 15;

/// Probes of a closed window.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Persist {
    doublings: u32,
    /// A probe is to leave.
    is_due: bool,
}

impl Sender {
    /// The receiver has no room. With nothing outstanding no acknowledgement will tell of room, so the
    /// sender must ask.
    #[inline(never)]
    pub(super) fn persist(&mut self, now: Time) {
        if self.board.is_empty() && self.timer.is_off() {
            self.persist = Persist::default();
            self.arm(TimerKind::Persist, now, self.persist_wait());
        }
    }

    fn persist_wait(&self) -> Span {
        let nanos = self.rtt.rto().max(SOONEST).as_nanos();
        let most = LATEST.as_nanos();
        Span::from_nanos(nanos.saturating_mul(1 << self.persist.doublings).min(most))
    }

    /// Sends as much of the next segment as fits the window, even a single byte; if nothing fits, an empty
    /// segment, which the receiver answers.
    pub(super) fn on_persist_timeout(&mut self, now: Time) {
        let written = self.available(now).0;
        if written == 0 || !self.board.is_empty() {
            return;
        }
        let room = self.window_end.saturating_sub(self.nxt_byte);
        if room > 0 {
            let bytes = room.min(written).min(u64::from(self.config.mss));
            self.send_new(now, bytes, 1, self.in_flight());
            return;
        }
        self.persist.is_due = true;
        self.persist.doublings = (self.persist.doublings + 1).min(MOST_DOUBLINGS);
        self.arm(TimerKind::Persist, now, self.persist_wait());
    }

    /// An answer to a probe, or news of the window.
    #[inline(never)]
    pub(super) fn on_persist_answer(&mut self, now: Time) {
        let room = self.window_end.saturating_sub(self.nxt_byte);
        if room >= self.available(now).0.min(u64::from(self.config.mss)) {
            self.timer = Timer::OFF;
        } else {
            self.arm(TimerKind::Persist, now, self.persist_wait());
        }
    }

    /// The empty segment, if one is due.
    #[inline]
    pub(super) fn take_window_probe(&mut self, now: Time) -> Option<Packet> {
        if self.persist.is_due { Some(self.window_probe(now)) } else { None }
    }

    /// Its number is the last one acknowledged, so it is not in the window.
    #[cold]
    #[inline(never)]
    fn window_probe(&mut self, now: Time) -> Packet {
        self.persist.is_due = false;
        let body = Body::Segment(SegmentBody {
            first: self.board.first().wrapping_sub(1),
            byte: self.una_byte,
            payload: 0,
            retransmission: false,
            ecn: self.ecn.flags,
            push: false,
            fin: false,
            echo: self.echo,
        });
        self.ends.packet(now, self.config.header + ETHERNET_HEADER, body)
    }
}
