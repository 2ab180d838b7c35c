//! The rate by delay. It rises by a share, or by a packet near the link's capacity, and falls to a
//! share of the arriving rate.

use sojourn_core::{Span, Time};

use super::Config;
use super::link_capacity::LinkCapacity;
use super::trendline::Usage;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Hold,
    Increase,
    Decrease,
}

#[derive(Clone, Debug)]
pub(super) struct Aimd {
    beta: f64,
    increase: f64,
    min: f64,
    /// In bit/s, like all rates.
    rate: f64,
    acknowledged: f64,
    capacity: LinkCapacity,
    state: State,
    changed: Option<Time>,
    rtt: Span,
}

/// Every decrease takes off this many bit/s more than the share.
const EXTRA_DECREASE: f64 = 5e3;
/// The rate rises up to this multiple of the arriving rate, plus `MOST_ABOVE_EXTRA` bit/s.
const MOST_ABOVE: f64 = 1.5;
const MOST_ABOVE_EXTRA: f64 = 10e3;
const LEAST_ADDITIVE: f64 = 4e3;
const LEAST_MULTIPLICATIVE: f64 = 1e3;
/// The usual frame rate and packet of a call.
const FRAMES_PER_SECOND: f64 = 30.0;
const PACKET_BITS: f64 = 1200.0 * 8.0;
const REACTION: Span = Span::from_millis(100);

impl Aimd {
    pub(super) fn new(config: &Config, start: f64, min: f64) -> Self {
        Self {
            beta: config.beta,
            increase: config.increase,
            min,
            rate: start,
            acknowledged: start,
            capacity: LinkCapacity::new(),
            state: State::Hold,
            changed: None,
            rtt: config.default_rtt,
        }
    }

    pub(super) fn rate(&self) -> f64 {
        self.rate
    }

    pub(super) fn set_rtt(&mut self, rtt: Span) {
        self.rtt = rtt;
    }

    /// Sets the rate that something else has found, such as a probe.
    pub(super) fn set(&mut self, now: Time, rate: f64) {
        self.rate = rate.max(self.min);
        self.changed = Some(now);
    }

    /// Whether over-use may lower the rate again.
    pub(super) fn may_decrease(&self, now: Time, acknowledged: f64) -> bool {
        let interval = self.rtt.clamp(Span::from_millis(10), Span::from_millis(200));
        self.changed.is_none_or(|changed| now.since(changed) >= interval)
            || acknowledged < 0.5 * self.rate
    }

    /// Updates the rate by what the detector found; returns the rate.
    pub(super) fn update(&mut self, now: Time, usage: Usage, acknowledged: Option<f64>) -> f64 {
        if let Some(acknowledged) = acknowledged {
            self.acknowledged = acknowledged;
        }
        match usage {
            Usage::Normal if self.state == State::Hold => {
                self.changed = Some(now);
                self.state = State::Increase;
            }
            Usage::Normal => {}
            Usage::Over => self.state = State::Decrease,
            Usage::Under => self.state = State::Hold,
        }
        match self.state {
            State::Hold => {}
            State::Increase => self.rise(now),
            State::Decrease => self.fall(now),
        }
        self.rate
    }

    fn rise(&mut self, now: Time) {
        if self.capacity.is_above(self.acknowledged) {
            self.capacity.forget();
        }
        let limit = MOST_ABOVE * self.acknowledged + MOST_ABOVE_EXTRA;
        if self.rate < limit {
            let since = self.changed.map_or(Span::ZERO, |changed| now.since(changed));
            let seconds = since.as_secs_f64();
            let more = match self.capacity.estimate() {
                Some(_) => self.additive() * seconds,
                None => {
                    let factor = libm::pow(self.increase, seconds.min(1.0)) - 1.0;
                    (self.rate * factor).max(LEAST_MULTIPLICATIVE)
                }
            };
            self.rate = (self.rate + more).min(limit).max(self.min);
        }
        self.changed = Some(now);
    }

    /// By how many bit/s the rate rises in a second: one packet in two reaction times.
    pub(super) fn additive(&self) -> f64 {
        let frame = self.rate / FRAMES_PER_SECOND;
        let packets = libm::ceil(frame / PACKET_BITS).max(1.0);
        let response = 2.0 * (self.rtt + REACTION).as_secs_f64();
        (frame / packets / response).max(LEAST_ADDITIVE)
    }

    fn fall(&mut self, now: Time) {
        let mut lower = self.beta * self.acknowledged;
        if lower > EXTRA_DECREASE {
            lower -= EXTRA_DECREASE;
        }
        if lower > self.rate
            && let Some(capacity) = self.capacity.estimate()
        {
            lower = self.beta * capacity;
        }
        if lower < self.rate {
            self.rate = lower.max(self.min);
        }
        if self.capacity.is_below(self.acknowledged) {
            self.capacity.forget();
        }
        self.capacity.on_overuse(self.acknowledged);
        self.state = State::Hold;
        self.changed = Some(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn aimd(rate: f64) -> Aimd {
        Aimd::new(&Config::default(), rate, 5e3)
    }

    fn at(ms: u64) -> Time {
        Time::from_nanos(ms * 1_000_000)
    }

    /// libwebrtc's own numbers.
    #[test]
    fn near_the_capacity_it_rises_by_5_kilobits_a_second_at_these_rates_and_round_trips() {
        for (rate, rtt) in [(90e3, 200), (60e3, 100)] {
            let mut aimd = aimd(rate);
            aimd.set_rtt(Span::from_millis(rtt));
            assert!((aimd.additive() - 5e3).abs() < 1.0, "{}", aimd.additive());
        }
    }

    #[test]
    fn a_decrease_is_85_percent_of_what_arrives_and_5_kilobits() {
        let mut aimd = aimd(1e6);
        assert_eq!(aimd.update(at(0), Usage::Over, Some(800e3)), 675e3);
    }

    #[test]
    fn without_a_known_capacity_it_rises_by_8_percent_a_second() {
        let mut aimd = aimd(1e6);
        aimd.update(at(0), Usage::Normal, Some(1e6));
        for tenth in 1..=10 {
            aimd.update(at(tenth * 100), Usage::Normal, Some(1e6));
        }
        assert!((aimd.rate() / 1.08e6 - 1.0).abs() < 1e-3, "{}", aimd.rate());
    }

    #[test]
    fn it_rises_no_further_than_half_above_what_arrives() {
        let mut aimd = aimd(300e3);
        for second in 0..60 {
            aimd.update(at(second * 1000), Usage::Normal, Some(200e3));
        }
        assert!((aimd.rate() - 310e3).abs() < 1.0, "{}", aimd.rate());
    }
}
