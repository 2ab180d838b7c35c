//! The round trip that pictures wait for while losses are repaired: the longest of late.
//!
//! As in libwebrtc, a mean and a variance say what is usual. Five in a row that are all far above it, or all far below,
//! are a new path, and what was before is forgotten; so it is when the longest has been unusual for five in a row.

use sojourn_core::{Span, Time};

#[derive(Clone, Debug, Default)]
pub(crate) struct RoundTrip {
    /// In milliseconds.
    mean: f64,
    variance: f64,
    longest: f64,
    count: f64,
    far: Row,
    is_far_above: bool,
    /// Since when the longest has been unusual.
    usual: Row,
    last: Option<(Time, Span)>,
}

/// A new path's round trips.
#[derive(Clone, Debug, Default)]
struct Row {
    count: u32,
    sum: f64,
    longest: f64,
}

impl Row {
    fn add(&mut self, rtt: f64) {
        self.count += 1;
        self.sum += rtt;
        self.longest = self.longest.max(rtt);
    }

    fn is_full(&self) -> bool {
        self.count == IN_A_ROW
    }
}

const IN_A_ROW: u32 = 5;
/// Each counts as one of at most so many.
const MOST_COUNT: f64 = 35.0;
/// In standard deviations.
const FAR: f64 = 2.5;
const UNUSUAL: f64 = 3.5;
const MOST: f64 = 3000.0;
const RECENT: Span = Span::from_millis(1500);

impl RoundTrip {
    pub(crate) fn longest(&self) -> Span {
        Span::from_secs_f64(self.longest / 1e3)
    }

    /// Takes a round trip that was measured; returns the longer of it and the one before, if that is recent.
    pub(crate) fn on_rtt(&mut self, now: Time, rtt: Span) -> Span {
        self.take(rtt.as_millis_f64().min(MOST));
        let last = self.last.replace((now, rtt));
        last.filter(|(at, _)| now.since(*at) <= RECENT).map_or(rtt, |(_, before)| rtt.max(before))
    }

    fn take(&mut self, rtt: f64) {
        let before = (self.mean, self.variance);
        self.count = (self.count + 1.0).min(MOST_COUNT);
        self.mean += (rtt - self.mean) / self.count;
        let off = rtt - self.mean;
        self.variance += (off * off - self.variance) / self.count;
        self.longest = self.longest.max(rtt);
        let deviation = libm::sqrt(self.variance);
        if libm::fabs(off) > FAR * deviation {
            if (off > 0.0) != self.is_far_above {
                self.far = Row::default();
                self.is_far_above = off > 0.0;
            }
            self.far.add(rtt);
            if !self.far.is_full() {
                // Till then it says nothing of what is usual.
                (self.mean, self.variance) = before;
                return;
            }
            let far = core::mem::take(&mut self.far);
            self.begin_anew(&far);
        } else {
            self.far = Row::default();
        }
        if self.longest - self.mean > UNUSUAL * deviation {
            self.usual.add(rtt);
            if self.usual.is_full() {
                let usual = core::mem::take(&mut self.usual);
                self.begin_anew(&usual);
            }
        } else {
            self.usual = Row::default();
        }
    }

    fn begin_anew(&mut self, row: &Row) {
        self.mean = row.sum / f64::from(IN_A_ROW);
        self.longest = row.longest;
        self.count = f64::from(IN_A_ROW);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is waited for after round trips that vary by a few milliseconds and then these.
    fn after(round_trips: &[u64]) -> u64 {
        let mut waited = RoundTrip::default();
        let usual = [40, 44, 42, 46, 41, 43, 45, 42, 40, 44];
        for rtt in usual.iter().chain(round_trips) {
            waited.take(*rtt as f64);
        }
        waited.longest().as_millis()
    }

    #[test]
    fn the_longest_counts_until_five_others_say_that_it_is_unusual() {
        assert_eq!(after(&[]), 46);
        assert_eq!(after(&[200]), 200);
        assert_eq!(after(&[200, 42, 44, 43, 41]), 200);
        assert_eq!(after(&[200, 42, 44, 43, 41, 40]), 44);
    }

    #[test]
    fn five_that_are_all_longer_are_a_new_path() {
        let longer = [100, 104, 102, 101, 103];
        assert_eq!(after(&longer), 104);
        // Back on the old one they are forgotten, but not soon: such a change is taken for usual.
        let back = |count| after(&[&longer[..], &[42, 43, 41].repeat(count)].concat());
        assert_eq!((back(3), back(30)), (104, 43));
    }
}
