//! When a timer of a Linux kernel fires (`calc_wheel_index`).

use sojourn_core::{Span, Time};

/// Far timers fire only in multiples of eight ticks, farther ones in multiples of sixty-four, and so on: so each level of the wheel has few
/// places.
const SHIFT: u32 = 3;
const PLACES: u64 = 64;
const LEVELS: u32 = 9;

/// The timers of one kernel.
#[derive(Clone, Copy, Debug)]
pub(super) struct TimerWheel {
    tick: u64,
    /// How far the first tick of the run is from the kernel's own zero.
    offset: u64,
}

impl TimerWheel {
    /// A kernel whose ticks come at `phase` and every `tick` before and after it; without ticks timers are exact.
    pub(super) fn new(tick: Span, phase: Span) -> Self {
        let tick = tick.as_nanos();
        let offset = match tick {
            0 => 0,
            tick => phase.as_nanos().next_multiple_of(tick << (SHIFT * 4)) - phase.as_nanos(),
        };
        Self { tick, offset }
    }

    /// A timer that is set now to wait so long fires then: it is set to the tick that comes when the wait is over, counted in whole ticks, and fires at
    /// the first multiple of its level behind that.
    fn fires(&self, now: Time, wait: Span) -> Time {
        if self.tick == 0 {
            return now + wait;
        }
        let current = (now.as_nanos() + self.offset) / self.tick;
        let wait = wait.as_nanos().div_ceil(self.tick);
        let shift = if wait < PLACES - 1 { 0 } else { level_shift(wait) };
        let fires = (((current + wait) >> shift) + 1) << shift;
        Time::from_nanos(fires.saturating_mul(self.tick).saturating_sub(self.offset))
    }
}

/// A timer that is set. It never fires before `at`, when its wait is over. Most timers are set again before, so when exactly one fires is found out only where
/// somebody must know.
#[derive(Clone, Copy, Debug)]
pub(super) struct KernelTimer {
    set: Time,
    pub(super) at: Time,
}

impl KernelTimer {
    pub(super) const OFF: Self = Self { set: Time::ZERO, at: Time::NEVER };

    #[inline(always)]
    pub(super) fn new(now: Time, wait: Span) -> Self {
        Self { set: now, at: now + wait }
    }

    pub(super) fn fires(&self, wheel: &TimerWheel) -> Time {
        if self.at.is_never() { self.at } else { wheel.fires(self.set, self.at.since(self.set)) }
    }

    #[inline(always)]
    pub(super) fn is_over(&self, now: Time, wheel: &TimerWheel) -> bool {
        now >= self.at && now >= self.fires(wheel)
    }

    /// The first of when it fires and `other`.
    #[inline(always)]
    pub(super) fn fires_or(&self, other: Time, wheel: &TimerWheel) -> Time {
        if self.at < other { self.fires(wheel).min(other) } else { other }
    }
}

#[inline(never)]
fn level_shift(ticks: u64) -> u32 {
    let level = (0..LEVELS - 1).find(|level| ticks < (PLACES - 1) << (SHIFT * level));
    SHIFT * level.unwrap_or(LEVELS - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn fires(tick: u64, phase: u64, now: u64, wait: u64) -> u64 {
        let wheel = TimerWheel::new(Span::from_nanos(tick), Span::from_nanos(phase));
        wheel.fires(Time::from_nanos(now), Span::from_nanos(wait)).as_nanos()
    }

    #[test]
    fn a_timer_fires_at_the_tick_after_its_last() {
        assert_eq!(fires(10 * MS, 7 * MS, 57 * MS + 5, 40 * MS), 107 * MS);
        assert_eq!(fires(10 * MS, 7 * MS, 57 * MS - 5, 40 * MS), 97 * MS);
        assert_eq!(
            fires(MS, 0, 5 * MS, 3 * MS),
            9 * MS,
            "never early, though it is set at the edge of a tick"
        );
        assert_eq!(fires(MS, 0, 5 * MS + 1, 2 * MS + 1), 9 * MS);
        assert_eq!(fires(0, 0, 5, 3), 8);
    }

    #[test]
    fn a_timer_is_over_at_its_tick_and_not_when_its_wait_is() {
        let ms = |ms| Time::from_nanos(ms * MS);
        let wheel = TimerWheel::new(Span::from_millis(10), Span::from_millis(7));
        let timer = KernelTimer::new(ms(57), Span::from_millis(41));
        assert_eq!([98, 116, 117].map(|at| timer.is_over(ms(at), &wheel)), [false, false, true]);
        assert_eq!([97, 99, 118].map(|at| timer.fires_or(ms(at), &wheel)), [97, 99, 117].map(ms));
        assert!(KernelTimer::OFF.fires_or(Time::NEVER, &wheel).is_never());
    }

    /// 62 ticks are the most of the first level.
    #[test]
    fn far_timers_fire_in_larger_steps() {
        assert_eq!(fires(MS, 0, 0, 62 * MS), 63 * MS);
        assert_eq!(fires(MS, 0, 0, 63 * MS), 64 * MS);
        assert_eq!(fires(MS, 0, 0, 200 * MS), 208 * MS);
        assert_eq!(fires(MS, 3 * MS, 0, 200 * MS), 203 * MS);
        assert_eq!(fires(MS, 0, 0, 503 * MS), 504 * MS);
        assert_eq!(fires(MS, 0, 0, 504 * MS), 512 * MS);
        assert_eq!(fires(MS, 0, 0, 1_000 * MS), 1_024 * MS);
        assert_eq!(level_shift(u64::MAX), 24);
    }
}
