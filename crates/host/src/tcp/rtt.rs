//! Round-trip time and retransmission timeout (RFC 6298), with the kernel's mean deviation, which
//! follows the largest deviation of a round and never falls below `rto_min`.

use sojourn_core::{Span, Time};

const RTO_MAX_US: u64 = 120_000_000;
const RTO_INITIAL_US: u64 = 1_000_000;
/// The window of the transport's minimum filter (`tcp_min_rtt_wlen`).
const MIN_RTT_WINDOW: Span = Span::from_secs(300);

#[derive(Clone, Debug)]
pub(super) struct RttEstimator {
    /// Eight times the smoothed time, microseconds; zero before the first sample.
    srtt: u64,
    /// Four times the mean deviation of this round.
    mdev: u64,
    mdev_max: u64,
    rttvar: u64,
    /// The round for `mdev_max` ends when this segment is acknowledged.
    round_end: u32,
    rto_min: u64,
    backoff: u32,
    /// The timeout that follows from the fields above, kept because it is read more often than it
    /// changes.
    rto: Span,
    min: MinFilter,
}

impl RttEstimator {
    pub(super) fn new(rto_min: Span) -> Self {
        Self {
            srtt: 0,
            mdev: 0,
            mdev_max: 0,
            rttvar: 0,
            round_end: 0,
            rto_min: rto_min.as_micros(),
            backoff: 0,
            rto: Span::from_micros(RTO_INITIAL_US),
            min: MinFilter::default(),
        }
    }

    /// Adds a sample, which also ends backing off; `snd_una` and `snd_nxt` delimit rounds.
    #[inline(always)]
    pub(super) fn on_sample(&mut self, rtt: Span, snd_una: u32, snd_nxt: u32) {
        self.smooth(rtt, snd_una, snd_nxt);
        self.backoff = 0;
        self.rto = self.timeout();
    }

    #[inline(always)]
    fn smooth(&mut self, rtt: Span, snd_una: u32, snd_nxt: u32) {
        let m = rtt.as_micros().max(1) as i64;
        if self.srtt == 0 {
            self.srtt = (m << 3) as u64;
            self.mdev = (m << 1) as u64;
            self.rttvar = self.mdev.max(self.rto_min);
            self.mdev_max = self.rttvar;
            self.round_end = snd_nxt;
            return;
        }
        let error = m - (self.srtt >> 3) as i64;
        self.srtt = (self.srtt as i64 + error).max(1) as u64;
        // A fall in round-trip time widens the deviation only an eighth as fast (the kernel's
        // answer to a timeout after a sudden improvement).
        let mut change = error.abs() - (self.mdev >> 2) as i64;
        if error < 0 && change > 0 {
            change >>= 3;
        }
        self.mdev = (self.mdev as i64 + change).max(0) as u64;
        if self.mdev > self.mdev_max {
            self.mdev_max = self.mdev;
            self.rttvar = self.rttvar.max(self.mdev_max);
        }
        if snd_una > self.round_end {
            if self.mdev_max < self.rttvar {
                self.rttvar -= (self.rttvar - self.mdev_max) >> 2;
            }
            self.round_end = snd_nxt;
            self.mdev_max = self.rto_min;
        }
    }

    #[inline]
    pub(super) fn on_min_sample(&mut self, now: Time, rtt: Span) {
        self.min.update(now, rtt);
    }

    pub(super) fn srtt(&self) -> Option<Span> {
        (self.srtt != 0).then(|| Span::from_nanos(self.srtt * 125))
    }

    /// Eight times the smoothed time in microseconds, the resolution the kernel computes with.
    pub(super) fn srtt_us_8(&self) -> u64 {
        self.srtt
    }

    pub(super) fn rttvar(&self) -> Span {
        Span::from_micros(self.mdev >> 2)
    }

    #[inline]
    pub(super) fn min(&self) -> Option<Span> {
        self.min.value
    }

    /// [`RttEstimator::min`] in microseconds, rounded down; zero without a sample.
    #[inline]
    pub(super) fn min_us(&self) -> u64 {
        self.min.value_us
    }

    #[inline]
    pub(super) fn rto(&self) -> Span {
        self.rto
    }

    #[inline]
    fn timeout(&self) -> Span {
        let base = if self.srtt == 0 { RTO_INITIAL_US } else { (self.srtt >> 3) + self.rttvar };
        Span::from_micros((base.min(RTO_MAX_US) << self.backoff).min(RTO_MAX_US))
    }

    pub(super) fn back_off(&mut self) {
        self.backoff = (self.backoff + 1).min(16);
        self.rto = self.timeout();
    }
}

/// The smallest value of the last window, kept as the minima of its two halves.
#[derive(Clone, Debug, Default)]
struct MinFilter {
    halves: [Option<Span>; 2],
    since: Time,
    /// The smaller half.
    value: Option<Span>,
    value_us: u64,
}

impl MinFilter {
    #[inline]
    fn update(&mut self, now: Time, rtt: Span) {
        let is_over = now.after(self.since) > MIN_RTT_WINDOW / 2;
        if is_over || self.halves[0].is_none_or(|least| rtt < least) {
            self.change(now, rtt, is_over);
        }
    }

    #[cold]
    fn change(&mut self, now: Time, rtt: Span, is_over: bool) {
        if is_over {
            self.halves = [None, self.halves[0]];
            self.since = now;
        }
        self.halves[0] = Some(self.halves[0].map_or(rtt, |least| least.min(rtt)));
        self.value = match self.halves {
            [Some(a), Some(b)] => Some(a.min(b)),
            [a, b] => a.or(b),
        };
        self.value_us = self.value.map_or(0, Span::as_micros);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_sample_sets_srtt_and_the_floor_holds_the_timeout() {
        let mut rtt = RttEstimator::new(Span::from_millis(200));
        assert_eq!(rtt.rto(), Span::from_secs(1));
        rtt.on_sample(Span::from_millis(20), 0, 10);
        assert_eq!(rtt.srtt(), Some(Span::from_millis(20)));
        assert_eq!(rtt.rto(), Span::from_millis(220));
    }

    /// RFC 6298 section 2.3: an eighth of each error.
    #[test]
    fn srtt_moves_an_eighth_of_the_error() {
        let mut rtt = RttEstimator::new(Span::from_millis(200));
        rtt.on_sample(Span::from_millis(100), 0, 10);
        rtt.on_sample(Span::from_millis(180), 0, 10);
        assert_eq!(rtt.srtt(), Some(Span::from_millis(110)));
    }

    #[test]
    fn timeouts_double_and_stop_at_two_minutes() {
        let mut rtt = RttEstimator::new(Span::from_millis(200));
        rtt.on_sample(Span::from_millis(50), 0, 10);
        let first = rtt.rto();
        rtt.back_off();
        assert_eq!(rtt.rto(), first * 2);
        (0..30).for_each(|_| rtt.back_off());
        assert_eq!(rtt.rto(), Span::from_secs(120));
    }

    #[test]
    fn the_minimum_forgets_after_its_window() {
        let mut rtt = RttEstimator::new(Span::from_millis(200));
        rtt.on_min_sample(Time::ZERO, Span::from_millis(5));
        rtt.on_min_sample(Time::ZERO + Span::from_secs(200), Span::from_millis(9));
        assert_eq!(rtt.min(), Some(Span::from_millis(5)));
        rtt.on_min_sample(Time::ZERO + Span::from_secs(400), Span::from_millis(9));
        assert_eq!(rtt.min(), Some(Span::from_millis(9)));
    }
}
