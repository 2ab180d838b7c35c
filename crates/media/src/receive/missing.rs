//! Which packets of the video are missing, and when to ask for them.
//!
//! As libwebrtc does: when a later packet comes, at once or after a wait, again after each round trip, a hundred times at most.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use sojourn_core::{Span, Time};

#[derive(Clone, Debug)]
pub(crate) struct Missing {
    rtt: Span,
    wait: Span,
    /// The next new sequence number.
    next: u32,
    asked: BTreeMap<u32, Asked>,
}

#[derive(Clone, Copy, Debug)]
struct Asked {
    /// When to ask again.
    due: Time,
    times: u32,
}

const MOST_TIMES: u32 = 100;
/// With more missing than this, only a key frame helps.
const MOST_MISSING: usize = 1000;

impl Missing {
    /// Asks `wait` after it finds that a packet is missing, and again after each `rtt`.
    pub(crate) fn new(rtt: Span, wait: Span) -> Self {
        Self { rtt, wait, next: 0, asked: BTreeMap::new() }
    }

    /// Asks again after `rtt` from now on.
    pub(crate) fn set_rtt(&mut self, rtt: Span) {
        self.rtt = rtt;
    }

    /// Takes a packet that arrived, if it is the next one and none before it is missing.
    #[inline(always)]
    pub(crate) fn goes_on(&mut self, sequence: u32) -> bool {
        let goes_on = sequence == self.next && self.asked.is_empty();
        self.next += u32::from(goes_on);
        goes_on
    }

    /// Takes a packet that arrived; returns the numbers of the gap before it, to be asked for now.
    pub(crate) fn on_packet(&mut self, now: Time, sequence: u32) -> Vec<u32> {
        if sequence < self.next {
            self.asked.remove(&sequence);
            return Vec::new();
        }
        if sequence == self.next {
            self.next += 1;
            return Vec::new();
        }
        let gap: Vec<u32> = (self.next..sequence).collect();
        self.next = sequence + 1;
        let asked = match self.wait.is_zero() {
            true => Asked { due: now + self.rtt, times: 1 },
            false => Asked { due: now + self.wait, times: 0 },
        };
        self.asked.extend(gap.iter().map(|missing| (*missing, asked)));
        if self.wait.is_zero() { gap } else { Vec::new() }
    }

    /// All that were asked for and have not come, to be asked for again.
    pub(crate) fn all(&self) -> Vec<u32> {
        self.asked.keys().copied().collect()
    }

    /// Whether so many are missing that asking is of no use.
    pub(crate) fn are_too_many(&self) -> bool {
        self.asked.len() > MOST_MISSING
    }

    /// Packets before this one are of no use any more.
    pub(crate) fn forget_before(&mut self, sequence: u32) {
        self.asked = self.asked.split_off(&sequence);
        self.next = self.next.max(sequence);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.asked.is_empty()
    }

    /// When one is to be asked for next.
    pub(crate) fn first_due(&self) -> Time {
        self.asked.values().map(|asked| asked.due).min().unwrap_or(Time::NEVER)
    }

    /// Those that have not come within a round trip after they were asked for, to be asked for again.
    pub(crate) fn again(&mut self, now: Time) -> Vec<u32> {
        let rtt = self.rtt;
        self.asked.retain(|_, asked| asked.times < MOST_TIMES || asked.due > now);
        let late = self.asked.iter_mut().filter(|(_, asked)| asked.due <= now);
        late.map(|(sequence, asked)| {
            *asked = Asked { due: now + rtt, times: asked.times + 1 };
            *sequence
        })
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Time {
        Time::from_nanos(ms * 1_000_000)
    }

    #[test]
    fn a_gap_is_asked_for_at_once_and_again_after_a_round_trip_a_hundred_times_in_all() {
        let mut missing = Missing::new(Span::from_millis(100), Span::ZERO);
        assert_eq!(missing.on_packet(ms(0), 0), []);
        assert_eq!(missing.on_packet(ms(10), 4), [1, 2, 3]);
        assert_eq!(missing.on_packet(ms(20), 2), []);
        assert_eq!(missing.again(ms(109)), []);
        assert_eq!(missing.again(ms(110)), [1, 3]);
        let times = (0..200).filter(|n| !missing.again(ms(210 + 100 * n)).is_empty()).count();
        assert_eq!(times, 98);
        assert!(missing.is_empty());
    }

    #[test]
    fn a_packet_that_comes_within_the_wait_is_not_asked_for() {
        let mut missing = Missing::new(Span::from_millis(100), Span::from_millis(10));
        missing.on_packet(ms(0), 0);
        assert_eq!(missing.on_packet(ms(10), 3), []);
        missing.on_packet(ms(15), 1);
        assert_eq!((missing.first_due(), missing.again(ms(19))), (ms(20), vec![]));
        assert_eq!((missing.again(ms(20)), missing.first_due()), (vec![2], ms(120)));
    }
}
