//! The rate at which packets arrive: measured over the last packets, without the longest gap between two.

use alloc::collections::VecDeque;

use sojourn_core::{Span, Time};

#[derive(Clone, Debug, Default)]
pub(super) struct Throughput {
    /// In the order of arrival.
    window: VecDeque<Seen>,
    /// Sum of the sizes of all packets in the window.
    bytes: u64,
    /// The latest time of sending among packets that have left the window; zero before one has.
    discarded: Time,
    /// How many packets in the window were sent earlier than the packet that arrived just before them.
    reordered: usize,
    /// How many packets have left the window at its front.
    popped: u64,
    longest: Longest,
}

/// The longest gaps between arrivals in the window, longest first; how many are known varies.
#[derive(Clone, Copy, Debug, Default)]
struct Longest {
    gaps: [Gap; MOST_GAPS],
    known: usize,
    /// The least number among them.
    oldest: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Gap {
    length: Span,
    /// The number of the packet that ends it.
    number: u64,
}

const MOST_GAPS: usize = 8;

#[derive(Clone, Copy, Debug)]
struct Seen {
    sent: Time,
    arrived: Time,
    /// Includes the sizes of packets sent before it that feedback does not report.
    size: u32,
}

/// The window lasts `SHORT`, or longer if it would otherwise have fewer packets than this.
const FEW: usize = 20;
const SHORT: Span = Span::from_secs(1);
const MOST: usize = 500;
const LONGEST: Span = Span::from_secs(5);
/// With fewer packets there is no estimate.
const LEAST: usize = 10;
const SHORTEST: Span = Span::from_millis(1);

impl Throughput {
    pub(super) fn on_packet(&mut self, sent: Time, arrived: Time, size: u32) {
        let seen = Seen { sent, arrived, size };
        self.bytes += u64::from(size);
        match self.window.back() {
            Some(last) if last.arrived > arrived => self.insert(seen),
            Some(last) => {
                self.reordered += usize::from(sent < last.sent);
                let number = self.popped + self.window.len() as u64;
                self.longest.on_gap(Gap { length: arrived.since(last.arrived), number });
                self.window.push_back(seen);
            }
            None => self.window.push_back(seen),
        }
    }

    /// Takes packets out at the front until the window is as short as it may be. A packet that makes it too long still does when
    /// others have come, so this is done once for all packets of a report.
    fn shorten(&mut self) {
        let packets = self.window.len();
        let newest = self.window.back().map_or(Time::ZERO, |last| last.arrived);
        let mut old = 0;
        for first in &self.window {
            if !is_too_long(packets - old, newest.since(first.arrived)) {
                break;
            }
            self.bytes -= u64::from(first.size);
            self.discarded = self.discarded.max(first.sent);
            old += 1;
        }
        if self.reordered > 0 {
            self.reordered -= self.reordered_among(old);
        }
        self.window.drain(..old);
        self.popped += old as u64;
        // A gap before the first packet of the window does not count.
        self.longest.forget(self.popped);
    }

    /// How many of the first `pairs` of packets that arrived one after the other left the other way round.
    fn reordered_among(&self, pairs: usize) -> usize {
        let pairs = self.window.iter().zip(self.window.iter().skip(1)).take(pairs);
        pairs.filter(|(before, after)| after.sent < before.sent).count()
    }

    /// Adds a packet that arrived before others that were reported earlier.
    #[cold]
    fn insert(&mut self, seen: Seen) {
        let at = self.window.partition_point(|other| other.arrived <= seen.arrived);
        self.window.insert(at, seen);
        self.reordered = self.reordered_among(self.window.len());
        self.longest = Longest::default();
    }

    /// The two longest gaps, which are searched for if they are not known.
    fn two_longest(&mut self) -> [Span; 2] {
        if self.longest.known < 2 {
            self.longest = Longest::default();
            let mut arrivals = self.window.iter().map(|seen| seen.arrived);
            let mut before = arrivals.next();
            for (number, arrived) in (self.popped + 1..).zip(arrivals) {
                let length =
                    before.replace(arrived).map_or(Span::ZERO, |before| arrived.since(before));
                self.longest.on_one_of_all(Gap { length, number });
            }
        }
        [self.longest.gaps[0].length, self.longest.gaps[1].length]
    }

    /// In bit/s; `None` as long as too few packets are known.
    pub(super) fn rate(&mut self) -> Option<f64> {
        self.shorten();
        if self.window.len() < LEAST {
            return None;
        }
        let [longest, second] = self.two_longest();
        let (first, last) = (self.window.front()?, self.window.back()?);
        // The time runs from the first arrival, so the first packet's bytes do not belong to it.
        let arrived_bytes = self.bytes - u64::from(first.size);
        let lasted = last.arrived.since(first.arrived).saturating_sub(longest) + second;
        let arriving = arrived_bytes as f64 * 8.0 / lasted.max(SHORTEST).as_secs_f64();
        let leaving = self.leaving();
        if leaving.packets < LEAST {
            return Some(arriving);
        }
        // The time ends when the last packet begins to leave, so its bytes do not belong to it.
        let lasted = leaving.last.since(leaving.first).max(SHORTEST);
        let leaving = (leaving.bytes - leaving.last_bytes) as f64 * 8.0 / lasted.as_secs_f64();
        Some(arriving.min(leaving))
    }

    /// How the packets in the window left.
    fn leaving(&self) -> Leaving {
        let mut leaving =
            Leaving { packets: 0, bytes: 0, first: Time::NEVER, last: Time::ZERO, last_bytes: 0 };
        if let (0, Some(first), Some(last)) =
            (self.reordered, self.window.front(), self.window.back())
            && self.discarded <= first.sent
        {
            leaving.packets = self.window.len();
            leaving.bytes = self.bytes;
            (leaving.first, leaving.last) = (first.sent, last.sent);
            leaving.last_bytes = last.size.into();
            return leaving;
        }
        for Seen { sent, size, .. } in &self.window {
            // A packet sent long before the others was reordered, and says nothing of the rate.
            if *sent < self.discarded {
                continue;
            }
            leaving.packets += 1;
            leaving.bytes += u64::from(*size);
            leaving.first = leaving.first.min(*sent);
            if *sent >= leaving.last {
                (leaving.last, leaving.last_bytes) = (*sent, (*size).into());
            }
        }
        leaving
    }
}

struct Leaving {
    packets: usize,
    bytes: u64,
    first: Time,
    last: Time,
    /// Size of the packet that was sent last.
    last_bytes: u64,
}

/// The two longest of three gaps, the longest first.
fn is_too_long(packets: usize, lasts: Span) -> bool {
    packets > MOST || (lasts > SHORT && (packets > FEW || lasts > LONGEST))
}

impl Longest {
    /// A gap at the window's end. A shorter one than those that are known is left out, because others that
    /// were left out may be longer.
    fn on_gap(&mut self, gap: Gap) {
        let last = self.known.checked_sub(1).map(|last| self.gaps[last]);
        if last.is_some_and(|last| gap.length > last.length) {
            self.insert(gap);
        }
    }

    /// One of all gaps in the window.
    fn on_one_of_all(&mut self, gap: Gap) {
        if self.known < MOST_GAPS || gap.length > self.gaps[MOST_GAPS - 1].length {
            self.insert(gap);
        }
    }

    fn insert(&mut self, gap: Gap) {
        let at = self.gaps[..self.known].partition_point(|kept| kept.length >= gap.length);
        self.known = (self.known + 1).min(MOST_GAPS);
        self.gaps[at..self.known].rotate_right(1);
        self.gaps[at] = gap;
        self.find_oldest();
    }

    /// Leaves out gaps that end with packets up to `number`.
    fn forget(&mut self, number: u64) {
        if self.known == 0 || self.oldest > number {
            return;
        }
        let mut kept = 0;
        for at in 0..self.known {
            if self.gaps[at].number > number {
                self.gaps[kept] = self.gaps[at];
                kept += 1;
            }
        }
        self.known = kept;
        self.find_oldest();
    }

    fn find_oldest(&mut self) {
        let numbers = self.gaps[..self.known].iter().map(|gap| gap.number);
        self.oldest = numbers.min().unwrap_or(u64::MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Time {
        Time::from_nanos(ms * 1_000_000)
    }

    #[test]
    fn a_steady_stream_has_its_rate_and_one_gap_does_not_matter() {
        let mut throughput = Throughput::default();
        for n in 0..9 {
            throughput.on_packet(ms(10 * n), ms(10 * n + 50), 1000);
        }
        assert_eq!(throughput.rate(), None);
        for n in 9..50 {
            throughput.on_packet(ms(10 * n), ms(10 * n + 50), 1000);
        }
        assert_eq!(throughput.rate(), Some(800e3));
        for n in 50..80 {
            throughput.on_packet(ms(10 * n), ms(10 * n + 200), 1000);
        }
        assert_eq!(throughput.rate(), Some(800e3));
    }

    #[test]
    fn a_burst_that_leaves_at_once_does_not_count_more_than_it_left() {
        let mut throughput = Throughput::default();
        for n in 0..40 {
            throughput.on_packet(ms(20 * n), ms(500 + n), 1000);
        }
        assert_eq!(throughput.rate(), Some(400e3));
    }

    /// What [`Throughput`] keeps up to date, found by looking at the whole window.
    fn looked_at_anew(kept: &Throughput) -> Option<f64> {
        let mut gaps: Vec<Span> = kept
            .window
            .iter()
            .zip(kept.window.iter().skip(1))
            .map(|(before, after)| after.arrived.since(before.arrived))
            .collect();
        gaps.sort();
        gaps.reverse();
        gaps.resize(2, Span::ZERO);
        let (first, last) = (kept.window.front()?, kept.window.back()?);
        let bytes: u64 = kept.window.iter().skip(1).map(|seen| u64::from(seen.size)).sum();
        let lasted = last.arrived.since(first.arrived).saturating_sub(gaps[0]) + gaps[1];
        let arriving = bytes as f64 * 8.0 / lasted.max(SHORTEST).as_secs_f64();
        let fit = || kept.window.iter().filter(|seen| seen.sent >= kept.discarded);
        if fit().count() < LEAST {
            return Some(arriving);
        }
        let newest = fit().max_by_key(|seen| seen.sent)?;
        let lasted = newest.sent.since(fit().map(|seen| seen.sent).min()?).max(SHORTEST);
        let bytes = fit().map(|seen| u64::from(seen.size)).sum::<u64>() - u64::from(newest.size);
        Some(arriving.min(bytes as f64 * 8.0 / lasted.as_secs_f64()))
    }

    proptest::proptest! {
        #[test]
        fn what_is_kept_up_to_date_is_what_the_window_holds(
            packets in proptest::collection::vec((0_u64..80, 0_u64..300, 1_u32..1500), 10..200),
        ) {
            let (mut throughput, mut seldom_asked) = (Throughput::default(), Throughput::default());
            let mut now = 0;
            for (gap, transit, size) in packets {
                now += gap;
                for throughput in [&mut throughput, &mut seldom_asked] {
                    throughput.on_packet(ms(now), ms(now + transit * transit / 300), size);
                }
                let rate = throughput.rate();
                let expected =
                    (throughput.window.len() >= LEAST).then(|| looked_at_anew(&throughput)).flatten();
                proptest::prop_assert_eq!(rate, expected);
                if size % 7 == 0 {
                    proptest::prop_assert_eq!(seldom_asked.rate(), rate);
                }
            }
        }
    }
}
