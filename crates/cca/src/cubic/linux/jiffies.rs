//! The kernel's coarse clock.

use sojourn_core::{Span, Time};

/// Time cut into ticks. A tick of zero makes an exact clock.
#[derive(Clone, Debug)]
pub(super) struct Jiffies {
    tick: u64,
    /// The tick of the last call, which saves a division.
    current: Time,
    next: Time,
    /// While the window stays the same, the curve is not computed again within this time.
    update_interval: Span,
}

const SECOND: u64 = 1_000_000_000;

impl Jiffies {
    pub(super) fn new(tick: Span) -> Self {
        let tick = tick.as_nanos();
        // 1/32 s, in whole ticks: 30 ms at 100 Hz.
        let update_interval = match tick {
            0 => SECOND / 32,
            _ => SECOND / tick / 32 * tick,
        };
        Self {
            tick,
            current: Time::ZERO,
            next: Time::from_nanos(tick),
            update_interval: Span::from_nanos(update_interval),
        }
    }

    /// The beginning of the tick that `now` falls in.
    #[inline]
    pub(super) fn at(&mut self, now: Time) -> Time {
        if self.tick == 0 {
            return now;
        }
        if now < self.current || now >= self.next {
            self.current = Time::from_nanos(now.as_nanos() / self.tick * self.tick);
            self.next = self.current + Span::from_nanos(self.tick);
        }
        self.current
    }

    /// `span` in whole ticks, rounded up.
    pub(super) fn round_up(&self, span: Span) -> Span {
        match self.tick {
            0 => span,
            tick => Span::from_nanos(span.as_nanos().div_ceil(tick).saturating_mul(tick)),
        }
    }

    pub(super) fn update_interval(&self) -> Span {
        self.update_interval
    }
}
