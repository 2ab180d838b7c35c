//! Round-trip samples of a sender of which only packets are seen.

use alloc::collections::BTreeMap;
use core::ops::Bound::{Excluded, Included, Unbounded};

use sojourn_core::Time;

/// Finds the samples that a TCP sender takes, from the segments that leave it and the acknowledgements that reach it: of the first segment that an
/// acknowledgement newly covers, unless one of those was sent again (Karn's rule, RFC 6298 section 3); else of the first that it newly
/// acknowledges selectively; else of the timestamp that it echoes, if it covers anything new (RFC 7323 section 4.1).
/// Positions are in bytes of the stream.
#[derive(Debug, Default)]
pub struct RoundTrips {
    /// Segments that are neither covered nor acknowledged selectively, by where they end.
    under_way: BTreeMap<u64, Sent>,
    /// After the last byte that was sent, and after the last one that was covered.
    sent: u64,
    covered: u64,
}

#[derive(Debug)]
struct Sent {
    begin: u64,
    at: Time,
    is_repeated: bool,
}

impl RoundTrips {
    /// A segment of bytes `begin..end` leaves.
    pub fn leave(&mut self, now: Time, begin: u64, end: u64) {
        if begin < self.sent {
            let overlapping = self.under_way.range_mut((Excluded(begin), Unbounded));
            for (_, sent) in overlapping.take_while(|(_, sent)| sent.begin < end) {
                sent.is_repeated = true;
            }
        }
        if end > self.sent {
            let begin = begin.max(self.sent);
            self.under_way.insert(end, Sent { begin, at: now, is_repeated: false });
            self.sent = end;
        }
    }

    /// An acknowledgement of all bytes before `covered` and of those in `blocks` arrives, which echoes the timestamp of a segment that left
    /// at `echo`. Says when that left of which the sender takes a sample.
    pub fn acknowledge(
        &mut self,
        covered: u64,
        blocks: impl IntoIterator<Item = (u64, u64)>,
        echo: Option<Time>,
    ) -> Option<Time> {
        let advances = covered > self.covered;
        self.covered = self.covered.max(covered);
        let (mut first, mut has_repeated) = (None, false);
        while let Some(entry) = self.under_way.first_entry()
            && *entry.key() <= covered
        {
            let sent = entry.remove();
            has_repeated |= sent.is_repeated;
            first = first.or(Some(sent.at).filter(|_| !sent.is_repeated));
        }
        let mut selective = None;
        for (begin, end) in blocks {
            let from = begin.max(self.covered);
            while end > from
                && let Some((&key, _)) = self
                    .under_way
                    .range((Excluded(from), Included(end)))
                    .find(|(_, s)| s.begin >= from)
                && let Some(sent) = self.under_way.remove(&key)
            {
                let is_earlier = selective.is_none_or(|(begin, _)| sent.begin < begin);
                if is_earlier && !sent.is_repeated {
                    selective = Some((sent.begin, sent.at));
                }
            }
        }
        first
            .filter(|_| !has_repeated)
            .or(selective.map(|(_, at)| at))
            .or(echo.filter(|_| advances))
    }
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeSet;
    use proptest::prelude::*;
    use sojourn_core::Span;

    use super::*;

    fn ms(ms: u64) -> Time {
        Time::ZERO + Span::from_millis(ms)
    }

    #[test]
    fn a_sample_is_of_the_first_segment_that_is_newly_acknowledged() {
        let mut trips = RoundTrips::default();
        for n in 0..10 {
            trips.leave(ms(n), n * 100, n * 100 + 100);
        }
        // Two segments are covered at once.
        assert_eq!(trips.acknowledge(200, [], None), Some(ms(0)));
        // The third is lost: each block is newly acknowledged once.
        assert_eq!(trips.acknowledge(200, [(300, 500)], Some(ms(9))), Some(ms(3)));
        assert_eq!(trips.acknowledge(200, [(300, 600)], Some(ms(9))), Some(ms(5)));
        assert_eq!(trips.acknowledge(200, [(300, 600)], Some(ms(9))), None);
        // Which copy of it arrived only the timestamp tells, even when more is covered with it.
        trips.leave(ms(50), 200, 300);
        assert_eq!(trips.acknowledge(700, [], Some(ms(50))), Some(ms(50)));
        assert_eq!(trips.acknowledge(800, [], Some(ms(50))), Some(ms(7)));
        trips.leave(ms(60), 800, 900);
        assert_eq!(trips.acknowledge(900, [], None), None);
        // A duplicate block says nothing, nor does an old acknowledgement.
        assert_eq!(trips.acknowledge(900, [(800, 900)], Some(ms(60))), None);
        assert_eq!(trips.acknowledge(500, [(100, 200)], Some(ms(60))), None);
        assert_eq!(trips.acknowledge(1_000, [], None), Some(ms(9)));
        assert!(trips.under_way.is_empty());
    }

    proptest! {
        /// Each segment gives a sample at most once, none that was sent again gives one, and what is covered is forgotten.
        #[test]
        fn samples_are_of_segments_that_were_sent_once(
            acts in proptest::collection::vec((any::<bool>(), 0u64..60, 1u64..9, 0u64..60), 1..80),
        ) {
            let mut trips = RoundTrips::default();
            let (mut next, mut repeated, mut seen) = (0, BTreeSet::new(), BTreeSet::new());
            for (step, (is_new, at, length, covered)) in (1..).zip(acts) {
                if is_new {
                    trips.leave(ms(step), next, next + length);
                    next += length;
                } else {
                    let (begin, end) = (at.min(next), (at + length).min(next));
                    let overlapping = trips.under_way.iter();
                    repeated.extend(
                        overlapping
                            .filter(|(own, sent)| sent.begin < end && begin < **own)
                            .map(|(_, sent)| sent.at),
                    );
                    if begin < end {
                        trips.leave(ms(step), begin, end);
                    }
                }
                let block = (at.min(next), (at + length).min(next));
                let sample = trips.acknowledge(covered.min(next), [block], None);
                if let Some(left) = sample {
                    prop_assert!(seen.insert(left) && !repeated.contains(&left));
                }
                prop_assert!(trips.under_way.keys().all(|end| *end > trips.covered));
            }
        }
    }
}
