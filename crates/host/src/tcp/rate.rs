//! Delivery rate sampling (draft-ietf-ccwg-bbr, "Delivery Rate Samples"; Linux `tcp_rate`): every
//! segment has the connection's counters from when it left, and its acknowledgement shows how much
//! was delivered since then and how long that took.

use sojourn_cca::{Memo, RateSample};
use sojourn_core::{Rate, Span, Time};

use super::scoreboard::{Record, Scoreboard};

#[derive(Clone, Debug, Default)]
pub(super) struct RateSampler {
    pub(super) delivered: u64,
    pub(super) delivered_ce: u64,
    pub(super) delivered_time: Time,
    first_sent_time: Time,
    /// The delivered count at which the application stops being the limit; zero if it is not the
    /// limit.
    pub(super) app_limited: u64,
    pub(super) rwnd_limited: u64,
    newest: Option<Newest>,
    /// Samples are told to the controller, which reads them.
    pub(super) is_told: bool,
    /// Best rate for `ss`: segments over a span, and whether the application limited it.
    rate: (u32, Span, bool),
}

/// The newest segment that the acknowledgement at hand covers. Its counters stay in its record.
#[derive(Clone, Copy, Debug)]
struct Newest {
    segment: u32,
    sent: Time,
}

impl RateSampler {
    /// The counters that a segment leaving at `now` takes with it. `in_flight` includes the
    /// segment.
    #[inline]
    pub(super) fn on_sent(
        &mut self,
        now: Time,
        is_first_in_flight: bool,
        in_flight: u32,
        lost: u64,
    ) -> Memo {
        if is_first_in_flight {
            self.first_sent_time = now;
            self.delivered_time = now;
        }
        Memo {
            delivered: self.delivered,
            delivered_ce: self.delivered_ce,
            lost,
            delivered_time: self.delivered_time,
            first_sent_time: self.first_sent_time,
            in_flight,
            is_app_limited: self.app_limited != 0,
            is_rwnd_limited: self.rwnd_limited != 0,
        }
    }

    /// A segment is delivered, cumulatively or selectively. A record that is already sampled was
    /// reported by an earlier selective acknowledgement.
    #[inline]
    pub(super) fn on_delivered(&mut self, segment: u32, record: &Record) {
        if record.is_sampled {
            return;
        }
        let is_newer =
            self.newest.is_none_or(|newest| record.is_newer(segment, newest.sent, newest.segment));
        if is_newer {
            self.newest = Some(Newest { segment, sent: record.sent });
        }
    }

    /// An acknowledgement delivered `delivered` segments, already in the totals.
    #[inline(always)]
    pub(super) fn on_ack(&mut self, now: Time, delivered: u32) {
        if (self.app_limited | self.rwnd_limited) != 0 {
            self.end_limits();
        }
        if delivered > 0 {
            self.delivered_time = now;
        }
    }

    /// The sample of the acknowledgement that was reported last, if it gives one. It is written to
    /// where the caller wants it, because returning it would copy it twice.
    #[inline(always)]
    pub(super) fn sample(
        &mut self,
        now: Time,
        total_lost: u64,
        min_rtt: Option<Span>,
        board: &Scoreboard,
        into: &mut Option<RateSample>,
    ) {
        let Some(Newest { segment, sent }) = self.newest.take() else { return };
        let memo = &board.covered(segment).memo;
        self.first_sent_time = sent;
        let send_interval = sent.since(memo.first_sent_time);
        let ack_interval = now.after(memo.delivered_time);
        let interval = send_interval.max(ack_interval);
        let is_too_short = interval.is_zero() || min_rtt.is_some_and(|least| interval < least);
        let delivered = (self.delivered - memo.delivered) as u32;
        if !is_too_short && (!memo.is_app_limited || self.is_beaten_by(delivered, interval)) {
            self.rate = (delivered, interval, memo.is_app_limited);
        }
        if !self.is_told {
            return;
        }
        *into = Some(RateSample {
            delivered,
            delivered_ce: (self.delivered_ce - memo.delivered_ce) as u32,
            interval,
            lost: (total_lost - memo.lost) as u32,
            prior: *memo,
            sent_time: sent,
            is_too_short,
        });
    }

    /// The application or the receiver is no longer the limit.
    #[cold]
    fn end_limits(&mut self) {
        for limited in [&mut self.app_limited, &mut self.rwnd_limited] {
            if self.delivered > *limited {
                *limited = 0;
            }
        }
    }

    #[cold]
    fn is_beaten_by(&self, delivered: u32, interval: Span) -> bool {
        let (best, over, _) = self.rate;
        u128::from(delivered) * u128::from(over.as_nanos())
            >= u128::from(best) * u128::from(interval.as_nanos())
    }

    /// What `ss` calls `delivery_rate`.
    pub(super) fn delivery_rate(&self, mss: u32) -> Rate {
        let (segments, over, _) = self.rate;
        if over.is_zero() {
            return Rate::ZERO;
        }
        let bits = u128::from(segments) * u128::from(mss) * 8_000_000_000;
        Rate::from_bps((bits / u128::from(over.as_nanos())) as u64)
    }

    pub(super) fn is_rate_app_limited(&self) -> bool {
        self.rate.2
    }
}
