use sojourn_core::random::mix;
use sojourn_core::{Rate, Span, Time};

/// Internal pacing: the earliest time at which the next burst may leave.
#[derive(Clone, Debug)]
pub(in crate::tcp) struct Pacer {
    pub(in crate::tcp) rate: Rate,
    pub(in crate::tcp) is_on: bool,
    /// Earliest departure of the next burst; the last departure when pacing is off.
    pub(in crate::tcp) stamp: Time,
    /// When to come back if only the pacer held something back.
    pub(in crate::tcp) wake: Time,
    /// How late its timer may run; with zero it is exact.
    pub(in crate::tcp) slack: Span,
    /// Makes this timer's delays differ from those of others.
    pub(in crate::tcp) salt: u64,
    /// When the late timer fires. A time in the past means that no timer is set.
    pub(in crate::tcp) timer: Time,
}

impl Pacer {
    pub(in crate::tcp) fn new(slack: Span, salt: u64) -> Self {
        Self {
            rate: Rate::UNLIMITED,
            is_on: false,
            stamp: Time::ZERO,
            wake: Time::NEVER,
            slack,
            salt,
            timer: Time::ZERO,
        }
    }

    /// Whether the next burst must wait.
    #[inline(always)]
    pub(in crate::tcp) fn holds_back(&self, now: Time) -> bool {
        self.is_on && now < self.stamp
    }

    /// With a late timer: whether the next burst must wait, and until when. If an acknowledgement
    /// releases the burst for which the timer was set, the timer stays set for the next burst.
    #[cold]
    pub(in crate::tcp) fn waits_for_late_timer(&mut self, now: Time, is_prompted: bool) -> bool {
        let is_set = now < self.timer;
        let waits = self.is_on && (now < self.stamp || (is_set && !is_prompted));
        if waits {
            if !is_set {
                let share = u128::from(mix(self.salt ^ self.stamp.as_nanos()));
                let late = (share * u128::from(self.slack.as_nanos())) >> 64;
                self.timer = self.stamp + Span::from_nanos(late as u64);
            }
            self.wake = self.timer;
        }
        waits
    }

    /// A burst of `bytes` leaves; with it `segments` have been sent in all. The first nine segments
    /// of a connection delay nothing. A late burst shortens the next interval, by up to half.
    #[inline(always)]
    pub(in crate::tcp) fn on_sent(&mut self, now: Time, bytes: u64, segments: u64) {
        let late = now.since(self.stamp);
        self.stamp = self.stamp.max(now);
        if !self.is_on || self.rate.is_unlimited() || segments < 10 {
            return;
        }
        let interval = self.rate.time_for(bytes);
        self.stamp += interval - late.min(interval / 2);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The kernel counts a burst as sent before it checks whether ten segments have been sent.
    #[test]
    fn the_tenth_segment_is_the_first_that_makes_the_next_one_wait() {
        let mut pacer =
            Pacer { rate: Rate::from_bytes_per_sec(1_000_000), ..Pacer::new(Span::ZERO, 0) };
        pacer.is_on = true;
        let now = Time::ZERO + Span::from_secs(1);
        for segments in [2, 4, 6, 8] {
            pacer.on_sent(now, 2_000, segments);
            assert_eq!(pacer.stamp, now);
        }
        pacer.on_sent(now, 2_000, 10);
        assert_eq!(pacer.stamp, now + Span::from_millis(2));
    }
}
