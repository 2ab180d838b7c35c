//! The rate at which packets arrive: measured over the last packets, without the longest gap between two.

use alloc::collections::VecDeque;

use sojourn_core::{Span, Time};

#[derive(Clone, Debug, Default)]
pub(super) struct Throughput {
    /// In the order of arrival.
    window: VecDeque<Seen>,
    /// Sum of the sizes of all packets in the window.
    bytes: u64,
    /// The latest time of sending among packets that have left the window.
    discarded: Option<Time>,
    /// How many packets in the window were sent earlier than the packet that arrived just before them.
    reordered: usize,
    /// How many packets have left the window at its front, and the two longest gaps in it, each with the
    /// number of the packet that ends it. `None` if they must be searched for.
    popped: u64,
    gaps: Option<[(Span, u64); 2]>,
}

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
                let gap = (arrived.since(last.arrived), self.popped + self.window.len() as u64);
                self.gaps = self.gaps.map(|gaps| with_gap(gaps, gap));
                self.window.push_back(seen);
            }
            None => self.window.push_back(seen),
        }
        while self.is_too_long()
            && let Some(first) = self.window.pop_front()
        {
            self.popped += 1;
            self.bytes -= u64::from(first.size);
            self.discarded = self.discarded.max(Some(first.sent));
            let next = self.window.front();
            self.reordered -= usize::from(next.is_some_and(|next| next.sent < first.sent));
            // A gap before the first packet of the window does not count.
            self.gaps = self.gaps.filter(|gaps| gaps.iter().all(|(_, at)| *at > self.popped));
        }
        if self.gaps.is_none() {
            self.search();
        }
    }

    /// Adds a packet that arrived before others that were reported earlier.
    #[cold]
    fn insert(&mut self, seen: Seen) {
        let at = self.window.partition_point(|other| other.arrived <= seen.arrived);
        self.window.insert(at, seen);
        let pairs = self.window.iter().zip(self.window.iter().skip(1));
        self.reordered = pairs.filter(|(before, after)| after.sent < before.sent).count();
        self.gaps = None;
    }

    /// Finds the two longest gaps.
    fn search(&mut self) {
        let mut gaps = [(Span::ZERO, u64::MAX); 2];
        let mut arrivals = self.window.iter().map(|seen| seen.arrived);
        let mut before = arrivals.next();
        for (number, arrived) in (self.popped + 1..).zip(arrivals) {
            let gap = before.replace(arrived).map_or(Span::ZERO, |before| arrived.since(before));
            gaps = with_gap(gaps, (gap, number));
        }
        self.gaps = Some(gaps);
    }

    fn is_too_long(&self) -> bool {
        let (Some(first), Some(last)) = (self.window.front(), self.window.back()) else {
            return false;
        };
        let lasts = last.arrived.since(first.arrived);
        self.window.len() > MOST || lasts > LONGEST || (self.window.len() > FEW && lasts > SHORT)
    }

    /// In bit/s; `None` as long as too few packets are known.
    pub(super) fn rate(&self) -> Option<f64> {
        if self.window.len() < LEAST {
            return None;
        }
        let (first, last) = (self.window.front()?, self.window.back()?);
        let [(longest, _), (second, _)] = self.gaps?;
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
            && self.discarded.is_none_or(|discarded| discarded <= first.sent)
        {
            leaving.packets = self.window.len();
            leaving.bytes = self.bytes;
            (leaving.first, leaving.last) = (first.sent, last.sent);
            leaving.last_bytes = last.size.into();
            return leaving;
        }
        for Seen { sent, size, .. } in &self.window {
            // A packet sent long before the others was reordered, and says nothing of the rate.
            if self.discarded.is_some_and(|discarded| *sent < discarded) {
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
fn with_gap(gaps: [(Span, u64); 2], gap: (Span, u64)) -> [(Span, u64); 2] {
    let [longest, second] = gaps;
    if gap.0 > longest.0 {
        [gap, longest]
    } else if gap.0 > second.0 {
        [longest, gap]
    } else {
        gaps
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
        let discarded = kept.discarded.unwrap_or(Time::ZERO);
        let fit = || kept.window.iter().filter(|seen| seen.sent >= discarded);
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
            let mut throughput = Throughput::default();
            let mut now = 0;
            for (gap, transit, size) in packets {
                now += gap;
                throughput.on_packet(ms(now), ms(now + transit * transit / 300), size);
                let expected =
                    (throughput.window.len() >= LEAST).then(|| looked_at_anew(&throughput)).flatten();
                proptest::prop_assert_eq!(throughput.rate(), expected);
            }
        }
    }
}
