//! The kernel's coarse clock.

use sojourn_core::{Span, Time};

use crate::fixed::{before_the_run, last_tick};

/// Time cut into ticks. A tick of zero makes an exact clock.
#[derive(Clone, Debug)]
pub(super) struct Jiffies {
    tick: u64,
    before: Span,
    /// The tick of the last call, which saves a division.
    current: Time,
    next: Time,
    /// While the window stays the same, the curve is not computed again within this time.
    update_interval: Span,
}

const SECOND: u64 = 1_000_000_000;

impl Jiffies {
    pub(super) fn new(tick: Span, phase: Span) -> Self {
        let before = before_the_run(tick, phase);
        let tick = tick.as_nanos();
        // 1/32 s, in whole ticks: 30 ms at 100 Hz.
        let update_interval = match tick {
            0 => SECOND / 32,
            _ => SECOND / tick / 32 * tick,
        };
        Self {
            tick,
            before,
            current: Time::ZERO,
            next: Time::from_nanos(tick) - before,
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
            let tick = Span::from_nanos(self.tick);
            self.current = last_tick(now, tick, self.before);
            self.next = last_tick(now + tick, tick, self.before);
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
