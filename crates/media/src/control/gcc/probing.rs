//! When to probe, and how far.

use sojourn_core::{Rate, Span, Time};

use super::Config;
use crate::control::Probe;

/// What holds the estimate down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Limit {
    Delay,
    /// Delays rise or fall right now.
    DelayMoves,
    Loss,
    /// Losses, but the estimate rises.
    LossRising,
}

#[derive(Clone, Debug)]
pub(super) struct Probing {
    first: f64,
    second: f64,
    further: f64,
    further_threshold: f64,
    min_packets: u32,
    duration: Span,
    /// No probe is faster, in bit/s.
    most: f64,
    estimate: f64,
    /// If a result exceeds this rate, another probe at a higher rate follows.
    awaited: Option<f64>,
    initiated: Option<Time>,
    limit: Limit,
    next_id: u32,
    alr_since: Option<Time>,
    alr_ended: Option<Time>,
    dropped: Option<(Time, f64)>,
    probed_after_drop: Option<Time>,
    pub(super) pending: alloc::collections::VecDeque<Probe>,
}

/// A result that has not come by then is not expected any more.
const LONGEST_WAIT: Span = Span::from_secs(1);
/// An estimate below this part of the one before counts as a drop.
const DROP: f64 = 0.66;
const AFTER_DROP: f64 = 0.85;
const UNCERTAINTY: f64 = 0.05;
const DROP_TIMEOUT: Span = Span::from_secs(5);
const BETWEEN_DROP_PROBES: Span = Span::from_secs(5);
const ALR_ENDED_TIMEOUT: Span = Span::from_secs(3);
const LOSS_LIMITED_SCALE: f64 = 1.5;

impl Probing {
    pub(super) fn new(config: &Config, most_wanted: f64) -> Self {
        // Nothing is gained by probing beyond twice the application's largest rate.
        let most = (config.probe_cap.as_bps() as f64).min(2.0 * most_wanted);
        Self {
            first: config.probe_first,
            second: config.probe_second,
            further: config.probe_further,
            further_threshold: config.probe_threshold,
            min_packets: config.probe_packets,
            duration: config.probe_duration,
            most,
            estimate: 0.0,
            awaited: None,
            initiated: None,
            limit: Limit::Delay,
            next_id: 0,
            alr_since: None,
            alr_ended: None,
            dropped: None,
            probed_after_drop: None,
            pending: alloc::collections::VecDeque::new(),
        }
    }

    pub(super) fn start(&mut self, now: Time, rate: f64) {
        self.estimate = rate;
        let (first, second) = (self.first * rate, self.second * rate);
        self.probe(now, &[first, second], true);
    }

    pub(super) fn set_alr(&mut self, now: Time, alr_since: Option<Time>) {
        if self.alr_since.is_some() && alr_since.is_none() {
            self.alr_ended = Some(now);
        }
        self.alr_since = alr_since;
    }

    /// The estimate changed.
    pub(super) fn on_estimate(&mut self, now: Time, estimate: f64, limit: Limit) {
        self.limit = limit;
        if estimate < DROP * self.estimate {
            self.dropped = Some((now, self.estimate));
        }
        self.estimate = estimate;
        if self.initiated.is_some_and(|initiated| now.since(initiated) > LONGEST_WAIT) {
            self.awaited = None;
        }
        if self.awaited.is_some_and(|awaited| estimate > awaited) {
            self.probe(now, &[self.further * estimate], true);
        }
    }

    /// Delays are back to normal. After a drop, the rate before it may still be there.
    pub(super) fn on_recovered(&mut self, now: Time) {
        let within = |since: Option<Time>, span| since.is_some_and(|since| now.since(since) < span);
        let was_limited = self.alr_since.is_some() || within(self.alr_ended, ALR_ENDED_TIMEOUT);
        let Some((dropped, before)) = self.dropped else { return };
        let wanted = AFTER_DROP * before;
        if was_limited
            && self.awaited.is_none()
            && (1.0 - UNCERTAINTY) * wanted > self.estimate
            && now.since(dropped) < DROP_TIMEOUT
            && !within(self.probed_after_drop, BETWEEN_DROP_PROBES)
        {
            self.probe(now, &[wanted], false);
            self.probed_after_drop = Some(now);
        }
    }

    fn probe(&mut self, now: Time, rates: &[f64], further: bool) {
        let most = match self.limit {
            Limit::Delay => self.most,
            Limit::LossRising => self.most.min(LOSS_LIMITED_SCALE * self.estimate),
            Limit::Loss | Limit::DelayMoves => return,
        };
        let mut goes_on = further;
        let mut fastest = 0.0;
        for rate in rates {
            let rate = rate.min(most);
            goes_on &= rate < most;
            fastest = rate;
            self.next_id += 1;
            let bytes = rate / 8.0 * self.duration.as_secs_f64();
            self.pending.push_back(Probe {
                id: self.next_id,
                rate: Rate::from_bps(rate as u64),
                min_packets: self.min_packets,
                min_bytes: bytes as u64,
                duration: self.duration,
            });
        }
        self.initiated = Some(now);
        self.awaited = goes_on.then_some(self.further_threshold * fastest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Time {
        Time::from_nanos(ms * 1_000_000)
    }

    fn rates(probing: &mut Probing) -> Vec<u64> {
        probing.pending.drain(..).map(|probe| probe.rate.as_bps() / 1000).collect()
    }

    /// Measured of Chromium: 900 and 1800 kbit/s, 1688 and 3375 bytes, then twice the result.
    #[test]
    fn a_call_begins_with_three_and_six_times_its_start_rate_and_doubles_what_it_finds() {
        let mut probing = Probing::new(&Config::default(), 6e6);
        probing.start(ms(0), 300e3);
        let sizes: Vec<u64> = probing.pending.iter().map(|probe| probe.min_bytes).collect();
        assert_eq!(sizes, [1687, 3375]);
        assert_eq!(rates(&mut probing), [900, 1800]);
        probing.on_estimate(ms(100), 900e3, Limit::Delay);
        assert_eq!(rates(&mut probing), []);
        probing.on_estimate(ms(150), 1700e3, Limit::Delay);
        assert_eq!(rates(&mut probing), [3400]);
        probing.on_estimate(ms(300), 3300e3, Limit::Delay);
        assert_eq!(rates(&mut probing), [5000]);
        probing.on_estimate(ms(400), 5000e3, Limit::Delay);
        assert_eq!(rates(&mut probing), []);
    }

    #[test]
    fn a_result_that_is_late_is_not_probed_further() {
        let mut probing = Probing::new(&Config::default(), 6e6);
        probing.start(ms(0), 300e3);
        rates(&mut probing);
        probing.on_estimate(ms(1500), 1700e3, Limit::Delay);
        assert_eq!(rates(&mut probing), []);
    }

    #[test]
    fn a_drop_of_an_application_limited_call_is_probed_once() {
        let mut probing = Probing::new(&Config::default(), 6e6);
        probing.on_estimate(ms(0), 4e6, Limit::Delay);
        probing.set_alr(ms(0), Some(ms(0)));
        probing.on_estimate(ms(5000), 2e6, Limit::DelayMoves);
        probing.limit = Limit::Delay;
        probing.on_recovered(ms(6000));
        assert_eq!(rates(&mut probing), [3400]);
        probing.on_recovered(ms(6500));
        assert_eq!(rates(&mut probing), []);
    }
}
