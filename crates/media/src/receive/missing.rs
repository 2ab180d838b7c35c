//! Which packets of the video are missing, and when to ask for them.
//!
//! As libwebrtc does: when a later packet comes, at once or after a wait, again after each round trip, a hundred times at most; a
//! thousand packets at most. Or as aiortc does.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::ops::Range;

use sojourn_core::{Span, Time};

#[derive(Clone, Debug)]
pub(crate) struct Missing {
    rtt: Span,
    wait: Span,
    /// Of so many packets up to the newest one, all that are missing are asked for whenever a gap opens, as aiortc does.
    remembered: Option<u32>,
    /// The next new sequence number.
    next: u32,
    asked: BTreeMap<u32, Asked>,
    /// The first packets of key frames that came while packets before them were missing.
    keys: Vec<u32>,
}

#[derive(Clone, Copy, Debug)]
struct Asked {
    /// When to ask again.
    due: Time,
    times: u32,
}

/// What a packet says of those before it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Gap {
    /// To be asked for now.
    pub(crate) wanted: Vec<u32>,
    /// So many are missing that only a key frame helps.
    pub(crate) needs_key: bool,
}

const MOST_TIMES: u32 = 100;
/// With more missing than this, those before a key frame are given up, or all of them.
const MOST_MISSING: usize = 1000;
/// Packets this far behind the newest one are given up.
const MOST_BEHIND: u32 = 10_000;

impl Missing {
    /// Asks `wait` after it finds that a packet is missing, and again after each `rtt`.
    pub(crate) fn new(rtt: Span, wait: Span) -> Self {
        Self { rtt, wait, remembered: None, next: 0, asked: BTreeMap::new(), keys: Vec::new() }
    }

    /// Asks when a gap opens only, and then for all that are missing of the last packets, this many.
    pub(crate) fn of_last(packets: u32) -> Self {
        Self { remembered: Some(packets), ..Self::new(Span::ZERO, Span::ZERO) }
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

    /// A key frame begins with this packet, which will be taken next.
    pub(crate) fn on_key(&mut self, sequence: u32) {
        if sequence >= self.next {
            let first = self.asked.first_key_value().map_or(sequence, |(first, _)| *first);
            self.keys.retain(|key| *key > first);
            self.keys.push(sequence);
        }
    }

    /// Takes a packet that arrived.
    pub(crate) fn on_packet(&mut self, now: Time, sequence: u32) -> Gap {
        if sequence < self.next {
            self.asked.remove(&sequence);
            return Gap::default();
        }
        let gap = self.next..sequence;
        self.next = sequence + 1;
        match self.remembered {
            _ if gap.is_empty() => Gap::default(),
            Some(packets) => self.open_remembered(now, gap, packets),
            None => self.open(now, gap),
        }
    }

    fn open(&mut self, now: Time, gap: Range<u32>) -> Gap {
        self.asked = self.asked.split_off(&gap.end.saturating_sub(MOST_BEHIND));
        if !self.make_room(gap.len()) {
            self.asked.clear();
            return Gap { wanted: Vec::new(), needs_key: true };
        }
        let is_at_once = self.wait.is_zero();
        let asked = match is_at_once {
            true => Asked { due: now + self.rtt, times: 1 },
            false => Asked { due: now + self.wait, times: 0 },
        };
        self.asked.extend(gap.clone().map(|missing| (missing, asked)));
        Gap { wanted: if is_at_once { gap.collect() } else { Vec::new() }, needs_key: false }
    }

    fn open_remembered(&mut self, now: Time, gap: Range<u32>, packets: u32) -> Gap {
        let first = self.next.saturating_sub(packets);
        let asked = Asked { due: now, times: 1 };
        self.asked.extend((gap.start.max(first)..gap.end).map(|missing| (missing, asked)));
        self.asked = self.asked.split_off(&first);
        Gap { wanted: self.asked.keys().copied().collect(), needs_key: false }
    }

    /// Gives up what is missing before a key frame, until so many more can be missing; `false` if that is not enough.
    fn make_room(&mut self, more: usize) -> bool {
        while self.asked.len() + more > MOST_MISSING {
            let Some((&first, _)) = self.asked.first_key_value() else { return false };
            let Some(key) = self.keys.iter().find(|key| **key > first) else { return false };
            self.asked = self.asked.split_off(key);
        }
        true
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
        assert_eq!(missing.on_packet(ms(0), 0), Gap::default());
        assert_eq!(missing.on_packet(ms(10), 4).wanted, [1, 2, 3]);
        assert_eq!(missing.on_packet(ms(20), 2), Gap::default());
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
        assert_eq!(missing.on_packet(ms(10), 3), Gap::default());
        missing.on_packet(ms(15), 1);
        assert_eq!((missing.first_due(), missing.again(ms(19))), (ms(20), vec![]));
        assert_eq!((missing.again(ms(20)), missing.first_due()), (vec![2], ms(120)));
    }
    #[test]
    fn of_more_than_a_thousand_missing_packets_none_is_asked_for_and_a_key_frame_is() {
        let mut missing = Missing::new(Span::from_millis(100), Span::ZERO);
        missing.on_packet(ms(0), 0);
        assert_eq!(missing.on_packet(ms(10), 1001).wanted.len(), 1000);
        let gap = missing.on_packet(ms(20), 1003);
        assert_eq!(gap, Gap { wanted: vec![], needs_key: true });
        assert!(missing.is_empty());
        // What comes next is asked for as before.
        assert_eq!(missing.on_packet(ms(30), 1005).wanted, [1004]);
        let gap = missing.on_packet(ms(40), 500_000);
        assert_eq!(gap, Gap { wanted: vec![], needs_key: true });
    }

    #[test]
    fn what_is_missing_before_a_key_frame_is_given_up_before_all_is() {
        let mut missing = Missing::new(Span::from_millis(100), Span::ZERO);
        missing.on_packet(ms(0), 0);
        missing.on_packet(ms(10), 501);
        missing.on_key(502);
        missing.on_packet(ms(20), 502);
        missing.on_packet(ms(30), 603);
        assert_eq!(missing.on_packet(ms(40), 1204).wanted.len(), 600);
        assert_eq!(missing.again(ms(200)).first(), Some(&503));
        assert_eq!(missing.again(ms(400)).len(), 700);
    }

    #[test]
    fn of_the_last_packets_all_that_are_missing_are_asked_for_when_a_gap_opens() {
        let mut missing = Missing::of_last(128);
        missing.on_packet(ms(0), 0);
        assert_eq!(missing.on_packet(ms(10), 2).wanted, [1]);
        assert_eq!(missing.on_packet(ms(20), 3), Gap::default());
        assert_eq!(missing.on_packet(ms(30), 5).wanted, [1, 4]);
        let gap = missing.on_packet(ms(40), 5000);
        assert_eq!((gap.wanted.len(), gap.wanted[0], gap.needs_key), (127, 4873, false));
    }
}
