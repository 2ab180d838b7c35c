//! A rate that rises while delays are normal and falls to a share of the throughput after over-use.

use super::Config;
use super::filter::Usage;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Hold,
    Increase,
    Decrease,
}

/// Rates are in bit/s, times in milliseconds.
#[derive(Clone, Debug)]
pub(super) struct Aimd {
    beta: f64,
    increase: f64,
    rtt: f64,
    settling: f64,
    state: State,
    rate: f64,
    is_known: bool,
    throughput: f64,
    first_throughput: Option<f64>,
    changed: Option<f64>,
    is_near: bool,
    /// Mean and normalised variance of the throughput at over-uses, in kbit/s.
    capacity: Option<f64>,
    variance: f64,
}

/// The rate assumed before the first estimate.
const FIRST: f64 = 30e6;
const MOST_ABOVE: f64 = 1.5;
const MOST_ABOVE_EXTRA: f64 = 10e3;
const LEAST_RISE: f64 = 1000.0;
const LEAST_ADDITIVE: f64 = 4000.0;
const FRAMES_PER_SECOND: f64 = 30.0;
const PACKET_BITS: f64 = 8.0 * 1200.0;
const CAPACITY_WEIGHT: f64 = 0.05;

impl Aimd {
    pub(super) fn new(config: &Config) -> Self {
        Self {
            beta: config.beta,
            increase: config.increase,
            rtt: config.rtt.as_millis_f64(),
            settling: config.settling.as_millis_f64(),
            state: State::Hold,
            rate: FIRST,
            is_known: false,
            throughput: 0.0,
            first_throughput: None,
            changed: None,
            is_near: false,
            capacity: None,
            variance: 0.4,
        }
    }

    #[cfg(test)]
    pub(super) fn set(&mut self, now: f64, rate: f64) {
        self.rate = rate;
        self.is_known = true;
        self.changed = Some(now);
    }

    /// The new estimate; `None` as long as there is none.
    pub(super) fn update(
        &mut self,
        now: f64,
        usage: Usage,
        throughput: Option<f64>,
    ) -> Option<f64> {
        if !self.is_known
            && let Some(throughput) = throughput
        {
            let first = *self.first_throughput.get_or_insert(now);
            if now - first > self.settling {
                self.rate = throughput;
                self.is_known = true;
            }
        }
        if !self.is_known && usage != Usage::Over {
            return None;
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
        self.throughput = throughput.unwrap_or(self.throughput);
        match self.state {
            State::Hold => {}
            State::Increase => self.rise(now),
            State::Decrease => self.fall(now),
        }
        Some(self.rate)
    }

    fn rise(&mut self, now: f64) {
        if let Some(capacity) = self.capacity
            && self.throughput / 1000.0 >= capacity + 3.0 * self.deviation(capacity)
        {
            self.is_near = false;
            self.capacity = None;
        }
        let since = self.changed.map_or(0.0, |changed| now - changed);
        let more = match self.is_near {
            true => (since / 1000.0 * self.additive()).max(LEAST_RISE),
            false => {
                let factor = libm::pow(self.increase, (since / 1000.0).min(1.0)) - 1.0;
                (self.rate * factor).max(LEAST_RISE)
            }
        };
        let most = self.rate.max(MOST_ABOVE * self.throughput + MOST_ABOVE_EXTRA);
        self.rate = (self.rate + more).min(most);
        self.changed = Some(now);
    }

    /// By how much the rate rises in a second near the capacity: one packet for each response time.
    fn additive(&self) -> f64 {
        let frame = self.rate / FRAMES_PER_SECOND;
        let packet = frame / libm::ceil(frame / PACKET_BITS);
        (packet * 1000.0 / (self.rtt + 100.0)).max(LEAST_ADDITIVE)
    }

    fn fall(&mut self, now: f64) {
        let kilobits = self.throughput / 1000.0;
        if let Some(capacity) = self.capacity
            && kilobits < capacity - 3.0 * self.deviation(capacity)
        {
            self.capacity = None;
        }
        let capacity = match self.capacity {
            None => kilobits,
            Some(capacity) => capacity + CAPACITY_WEIGHT * (kilobits - capacity),
        };
        self.capacity = Some(capacity);
        let off = capacity - kilobits;
        self.variance += CAPACITY_WEIGHT * (off * off / capacity.max(1.0) - self.variance);
        self.variance = self.variance.clamp(0.4, 2.5);
        self.is_near = true;
        self.rate = self.rate.min(libm::round(self.beta * self.throughput));
        self.state = State::Hold;
        self.changed = Some(now);
    }

    fn deviation(&self, capacity: f64) -> f64 {
        libm::sqrt(self.variance * capacity)
    }
}
