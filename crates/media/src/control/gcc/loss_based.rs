//! The rate by loss, version 2. The link is assumed to lose an inherent share of all bytes and, beyond
//! that, everything above its bandwidth. The estimate is the bandwidth that makes the losses of the
//! last observations most likely.

use alloc::vec::Vec;

use sojourn_core::{Span, Time};

use super::Config;
use crate::control::Report;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// The rate by delay is the lower one.
    DelayBased,
    Rising,
    Falling,
}

/// Bytes that were sent in some time, and how many of them were lost.
#[derive(Clone, Copy, Debug)]
struct Observation {
    sent: f64,
    lost: f64,
    /// In bit/s.
    rate: f64,
    /// In kilobytes: what was lost, what arrived, and both.
    k_lost: f64,
    k_arrived: f64,
    k_sent: f64,
}

/// A bandwidth in bit/s, and the share of bytes that the link loses even below it.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    bandwidth: f64,
    inherent: f64,
}

/// Until `until`, the estimate does not rise above `rate`.
#[derive(Clone, Copy, Debug)]
struct Hold {
    until: Option<Time>,
    lasts: Span,
    rate: f64,
}

#[derive(Clone, Debug)]
pub(super) struct LossBased {
    config: Config,
    min: f64,
    max: f64,
    /// The newest is the first.
    observations: Vec<Observation>,
    /// How many observations were made in all.
    count: u64,
    /// Bytes of the observation that is being made: all, and those of `missing`.
    sent: u64,
    lost: u64,
    /// The packets of it that are lost so far.
    missing: Vec<u64>,
    /// When the newest packet of the newest observation was sent.
    observed: Option<Time>,
    best: Option<Candidate>,
    acknowledged: Option<f64>,
    delay_based: f64,
    average_loss: f64,
    state: State,
    result: f64,
    window_limit: f64,
    window_began: Option<Time>,
    hold: Hold,
    /// When padding began to support a rise of the rate, and from which rate.
    padded: Option<(Time, f64)>,
    weights: Vec<f64>,
}

const FIRST_HOLD: Span = Span::from_millis(300);
const LONGEST_HOLD: Span = Span::from_secs(60);
const LEAST_PROBABILITY: f64 = 1e-6;
const LEAST_BANDWIDTH: f64 = 5e3;

impl LossBased {
    pub(super) fn new(config: &Config, min: f64, max: f64) -> Self {
        let weight = |age: u32| libm::pow(config.loss_weight, f64::from(age));
        Self {
            min,
            max,
            observations: Vec::new(),
            count: 0,
            sent: 0,
            lost: 0,
            missing: Vec::new(),
            observed: None,
            best: None,
            acknowledged: None,
            delay_based: f64::INFINITY,
            average_loss: 0.0,
            state: State::DelayBased,
            result: f64::INFINITY,
            window_limit: f64::INFINITY,
            window_began: None,
            hold: Hold { until: None, lasts: FIRST_HOLD, rate: f64::INFINITY },
            padded: None,
            weights: (0..config.loss_observations).map(weight).collect(),
            config: config.clone(),
        }
    }

    pub(super) fn state(&self) -> State {
        self.state
    }

    pub(super) fn is_ready(&self) -> bool {
        self.best.is_some() && self.count >= u64::from(self.config.loss_least_observations)
    }

    /// The rate that the call may send at: the rate by delay until there are enough observations.
    pub(super) fn result(&self) -> f64 {
        if self.is_ready() { self.result } else { self.delay_based }
    }

    pub(super) fn set_acknowledged(&mut self, rate: f64) {
        self.acknowledged = Some(rate);
    }

    pub(super) fn update(&mut self, reports: &[Report], delay_based: f64, in_alr: bool) {
        self.delay_based = delay_based;
        if !self.observe(reports) {
            return;
        }
        if self.best.is_none() {
            if !delay_based.is_finite() {
                return;
            }
            let inherent = self.config.loss_inherent_first;
            self.best = Some(Candidate { bandwidth: delay_based, inherent });
            self.result = delay_based;
        }
        let Some(before) = self.best else { return };
        self.average_loss = self.average();
        let mut best = self.likeliest(before, in_alr);
        let now = self.observed.unwrap_or(Time::ZERO);
        // If more than the inherent share is lost, the bandwidth is not larger than assumed before.
        if self.average_loss > best.inherent && best.bandwidth > before.bandwidth {
            best.bandwidth = before.bandwidth;
        }
        if self.is_limiting() {
            let is_in_window = self.in_window(now);
            if is_in_window && best.bandwidth > self.window_limit {
                best.bandwidth = self.window_limit;
            }
            let is_rising = before.bandwidth < best.bandwidth
                || (before.bandwidth == best.bandwidth && self.state == State::Rising);
            if let (true, Some(acknowledged)) = (is_rising, self.acknowledged) {
                let is_held = acknowledged < self.config.loss_hold_threshold * self.hold.rate
                    && self.hold.rate.is_finite();
                let factor =
                    if is_held { self.config.loss_ramp_in_hold } else { self.config.loss_ramp };
                best.bandwidth = best.bandwidth.min(factor * acknowledged).max(before.bandwidth);
                if self.state == State::Falling && best.bandwidth == before.bandwidth {
                    // A rise by one bit/s changes the state to rising.
                    best.bandwidth += 1.0;
                }
            }
        }
        self.settle(best, now);
    }

    /// Adds packets; true when an observation is complete.
    fn observe(&mut self, reports: &[Report]) -> bool {
        let (Some(first), Some(last)) = (reports.first(), reports.last()) else { return false };
        for report in reports {
            let (number, size) = (report.packet.number, u64::from(report.packet.size));
            self.sent += size;
            if report.arrived.is_none() {
                self.lost += size;
                self.missing.push(number);
            } else if !self.missing.is_empty()
                && let Some(place) = self.missing.iter().position(|own| *own == number)
            {
                // It was only overtaken.
                self.missing.swap_remove(place);
                self.lost -= size;
            }
        }
        let since = *self.observed.get_or_insert(first.packet.at);
        let lasted = last.packet.at.since(since);
        if lasted.is_zero() || lasted < self.config.loss_observation {
            return false;
        }
        self.observed = Some(last.packet.at);
        let (sent, lost) = (self.sent as f64, self.lost as f64);
        let observation = Observation {
            sent,
            lost,
            rate: sent * 8.0 / lasted.as_secs_f64(),
            k_lost: lost / 1e3,
            k_arrived: (sent - lost) / 1e3,
            k_sent: sent / 1e3,
        };
        self.observations.truncate(self.weights.len() - 1);
        self.observations.insert(0, observation);
        (self.sent, self.lost) = (0, 0);
        self.missing.clear();
        self.count += 1;
        true
    }

    /// Observations with their weights.
    fn weighted(&self) -> impl Iterator<Item = (f64, &Observation)> {
        self.weights.iter().copied().zip(&self.observations)
    }

    /// The share of bytes that were lost, without the observations with the largest and the least loss.
    fn average(&self) -> f64 {
        let (mut sent, mut lost) = (0.0, 0.0);
        let (mut least, mut most) = (None::<(f64, f64, f64)>, None::<(f64, f64, f64, f64)>);
        for (weight, one) in self.weighted() {
            if one.sent <= 0.0 {
                continue;
            }
            let share = one.lost / one.sent;
            let (s, l) = (weight * one.sent, weight * one.lost);
            sent += s;
            lost += l;
            if least.is_none_or(|least| share < least.0) {
                least = Some((share, s, l));
            }
            if most.is_none_or(|most| share > most.0) {
                most = Some((share, s, l, one.rate));
            }
        }
        if sent <= 0.0 {
            return 0.0;
        }
        match (least, most) {
            // If the observation with the largest loss also had a much higher rate, it shows the link's
            // limit and counts.
            (Some(least), Some(most)) if self.is_ordinary(most.3) && sent > least.1 + most.1 => {
                (lost - least.2 - most.2) / (sent - least.1 - most.1)
            }
            _ => lost / sent,
        }
    }

    /// Whether `rate` is below so many times the median of all rates: the upper half of them is above then.
    fn is_ordinary(&self, rate: f64) -> bool {
        let factor = self.config.loss_median_factor;
        let above = self.observations.iter().filter(|one| one.rate * factor > rate).count();
        above >= self.observations.len().div_ceil(2)
    }

    fn likeliest(&self, before: Candidate, in_alr: bool) -> Candidate {
        let mut best = before;
        let mut likeliest = f64::NEG_INFINITY;
        let factors = [
            self.config.loss_candidate_above * before.bandwidth,
            before.bandwidth,
            self.config.loss_candidate_below * before.bandwidth,
        ];
        let acknowledged = self.acknowledged.filter(|_| !in_alr);
        let delay_based = Some(self.delay_based)
            .filter(|delay_based| delay_based.is_finite() && *delay_based > before.bandwidth);
        let bound = if self.is_limiting() { self.window_limit } else { self.max };
        for bandwidth in factors.into_iter().chain(acknowledged).chain(delay_based) {
            let bandwidth = bandwidth.min(before.bandwidth.max(bound));
            let candidate = self.with_likeliest_loss(Candidate { bandwidth, ..before });
            let likelihood = self.likelihood(&candidate);
            if likelihood > likeliest {
                (best, likeliest) = (candidate, likelihood);
            }
        }
        best
    }

    /// A step of Newton's method towards the inherent loss that fits best.
    fn with_likeliest_loss(&self, mut candidate: Candidate) -> Candidate {
        candidate.inherent = self.feasible(&candidate);
        let (mut first, mut second) = (0.0, 0.0);
        let below = probability(&candidate, 0.0);
        for (weight, one) in self.weighted() {
            let is_above = one.rate > candidate.bandwidth;
            let p = if is_above { probability(&candidate, one.rate) } else { below };
            let (lost, arrived) = (one.k_lost, one.k_arrived);
            first += weight * (lost / p - arrived / (1.0 - p));
            second -= weight * (lost / (p * p) + arrived / ((1.0 - p) * (1.0 - p)));
        }
        if second == 0.0 {
            second = -LEAST_PROBABILITY;
        }
        candidate.inherent -= self.config.loss_newton_step * first / second;
        candidate.inherent = self.feasible(&candidate);
        candidate
    }

    fn feasible(&self, candidate: &Candidate) -> f64 {
        let most = self.config.loss_inherent_offset
            + self.config.loss_inherent_balance.as_bps() as f64 / candidate.bandwidth.max(1.0);
        candidate.inherent.max(self.config.loss_inherent_least).min(most.min(1.0))
    }

    fn likelihood(&self, candidate: &Candidate) -> f64 {
        let bias = self.bias(candidate.bandwidth / 1e3);
        // Observations with rates below the candidate's bandwidth have the same probability; its
        // logarithms are computed once.
        let below = Logarithms::of(probability(candidate, 0.0), true);
        self.weighted().fold(0.0, |sum, (weight, one)| {
            let (lost, sent) = (one.k_lost, one.k_sent);
            let of = match one.rate > candidate.bandwidth {
                true => Logarithms::of(probability(candidate, one.rate), lost != 0.0),
                false => below,
            };
            let likelihood = lost * of.lost + (sent - lost) * of.arrived;
            sum + weight * (likelihood + bias * sent)
        })
    }

    /// A bonus that prefers higher bandwidths, unless much is lost.
    fn bias(&self, kbps: f64) -> f64 {
        let Config { loss_bias, loss_log_bias, loss_bias_until, loss_bias_smoothing, .. } =
            self.config;
        let room = loss_bias_until - self.average_loss;
        let part = room / (loss_bias_smoothing + libm::fabs(room));
        part * (loss_bias * kbps + loss_log_bias * libm::log(1.0 + kbps))
    }

    fn is_limiting(&self) -> bool {
        self.state != State::DelayBased
    }

    fn in_window(&self, now: Time) -> bool {
        let window = self.config.loss_increase_window;
        self.window_began.is_some_and(|began| began + window > now)
    }

    /// The highest rate allowed while the loss is above its limit.
    fn instant_most(&self) -> f64 {
        let above = self.average_loss - self.config.loss_instant_offset;
        if above > 0.0 {
            self.config.loss_instant_balance.as_bps() as f64 / above
        } else {
            self.max
        }
    }

    fn instant_least(&self) -> f64 {
        self.acknowledged.map_or(self.min, |acknowledged| {
            (self.config.loss_acknowledged_factor * acknowledged).max(self.min)
        })
    }

    fn settle(&mut self, best: Candidate, now: Time) {
        // What arrives is the bound that counts last.
        let least = self.instant_least();
        let bounded = best.bandwidth.min(self.instant_most()).min(self.delay_based).max(least);
        self.best = Some(match bounded < best.bandwidth {
            true => Candidate { bandwidth: bounded, inherent: 0.0 },
            false => Candidate { bandwidth: best.bandwidth.max(least), ..best },
        });
        let (delay_based, max) = (self.delay_based, self.max);
        let is_below = bounded < delay_based && bounded < max;
        let is_held = self.hold.until.is_some_and(|until| until > now);
        if self.state == State::Falling && is_held && bounded < delay_based {
            self.hold.rate = self.hold.rate.max(self.instant_least());
            self.result = self.hold.rate.min(bounded);
            return;
        }
        let is_rising = (self.result < bounded
            || (self.result == bounded && self.state == State::Rising))
            && self.is_limiting();
        if is_rising && is_below && self.may_go_on(bounded, now) {
            if self.padded.is_none_or(|(_, rate)| bounded > rate) {
                self.padded = Some((now, bounded));
            }
            self.state = State::Rising;
        } else if is_below {
            if self.state != State::Falling {
                let lasts = self.hold.lasts;
                self.hold = Hold {
                    until: Some(now + lasts),
                    lasts: twice(lasts, self.config.loss_hold_factor).min(LONGEST_HOLD),
                    rate: bounded,
                };
            }
            self.padded = None;
            self.state = State::Falling;
        } else {
            self.hold = Hold { until: None, lasts: FIRST_HOLD, rate: f64::INFINITY };
            self.padded = None;
            self.state = State::DelayBased;
        }
        self.result = bounded;
        if self.is_limiting() && !self.in_window(now) {
            let bandwidth = self.best.map_or(bounded, |best| best.bandwidth);
            self.window_limit = (self.config.loss_most_increase * bandwidth).max(LEAST_BANDWIDTH);
            self.window_began = Some(now);
        }
    }

    /// Whether the rise may go on: with padding for `loss_padding` only, without as long as it likes.
    fn may_go_on(&self, estimate: f64, now: Time) -> bool {
        let longest = self.config.loss_padding;
        match self.padded {
            Some((since, rate)) if self.state == State::Rising && !longest.is_zero() => {
                since + longest >= now || rate < estimate
            }
            _ => true,
        }
    }
}

/// Logarithms of the probabilities that a byte is lost and that it arrives.
#[derive(Clone, Copy)]
struct Logarithms {
    lost: f64,
    arrived: f64,
}

impl Logarithms {
    /// Where nothing was lost the first of them doesn't matter.
    fn of(lost: f64, any_lost: bool) -> Self {
        let arrived = libm::log(1.0 - lost);
        Self { lost: if any_lost { libm::log(lost) } else { 0.0 }, arrived }
    }
}

fn twice(span: Span, factor: f64) -> Span {
    Span::from_secs_f64(span.as_secs_f64() * factor)
}

/// The probability that a byte is lost when `rate` is sent.
fn probability(candidate: &Candidate, rate: f64) -> f64 {
    let mut p = candidate.inherent.clamp(0.0, 1.0);
    if rate > candidate.bandwidth {
        p += (1.0 - p) * (rate - candidate.bandwidth) / rate;
    }
    p.clamp(LEAST_PROBABILITY, 1.0 - LEAST_PROBABILITY)
}

#[cfg(test)]
mod tests {
    use sojourn_core::Ecn;

    use super::*;
    use crate::control::Sent;

    /// Sends packets of 1200 bytes for `seconds` at what the control allows, of which the share `loss`
    /// is lost, evenly, with feedback 20 times a second; delay allows 3 Mbit/s.
    fn feed(control: &mut LossBased, now: &mut Time, loss: f64, seconds: f64) {
        let end = *now + Span::from_secs_f64(seconds);
        let (mut number, mut lost) = (0.0, 0.0);
        while *now < end {
            let rate = if control.is_ready() { control.result() } else { 3e6 };
            let apart = Span::from_secs_f64(9600.0 / rate);
            let mut reports = Vec::new();
            let until = *now + Span::from_millis(50);
            while *now < until {
                number += 1.0;
                let is_lost = loss * number >= lost + 1.0;
                lost += f64::from(u8::from(is_lost));
                let (at, number) = (*now, number as u64);
                let packet = Sent { at, number, size: 1200, ..Sent::default() };
                let arrived = (!is_lost).then_some(*now);
                reports.push(Report { packet, arrived, ecn: Ecn::NotEct });
                *now += apart;
            }
            control.set_acknowledged(rate * (1.0 - loss));
            control.update(&reports, 3e6, false);
        }
    }

    fn control() -> LossBased {
        LossBased::new(&Config::default(), 30e3, 5e6)
    }

    #[test]
    fn no_loss_leaves_the_rate_to_delay() {
        let (mut control, mut now) = (control(), Time::ZERO);
        feed(&mut control, &mut now, 0.0, 5.0);
        assert_eq!((control.state(), control.result()), (State::DelayBased, 3e6));
    }

    /// Measured of Chromium: 2 % of random loss do not lower the rate for long, 10 % lower it to 1.2 to
    /// 1.5 Mbit/s, and it comes back when the loss ends.
    #[test]
    fn two_percent_of_loss_are_let_pass_and_ten_are_not() {
        let (mut control, mut now) = (control(), Time::ZERO);
        feed(&mut control, &mut now, 0.02, 30.0);
        assert!(control.result() > 2.9e6, "{}", control.result());
        feed(&mut control, &mut now, 0.1, 30.0);
        assert!((0.9e6..=2.1e6).contains(&control.result()), "{}", control.result());
        feed(&mut control, &mut now, 0.0, 30.0);
        assert_eq!(control.result(), 3e6);
    }

    #[test]
    fn a_packet_that_was_only_overtaken_is_no_loss() {
        let mut control = control();
        let report = |number, ms, arrived| {
            let at = Time::ZERO + Span::from_millis(ms);
            let packet = Sent { at, number, size: 1200, ..Sent::default() };
            Report { packet, arrived, ecn: Ecn::NotEct }
        };
        control.observe(&[report(0, 0, Some(Time::ZERO)), report(1, 10, None)]);
        control.observe(&[report(1, 10, Some(Time::ZERO)), report(2, 20, None)]);
        control.observe(&[report(3, 900, Some(Time::ZERO))]);
        let [observation] = &control.observations[..] else { panic!("one is complete") };
        assert_eq!((observation.sent, observation.lost), (5.0 * 1200.0, 1200.0));
    }

    /// The bound is 100 kbit/s / 0.25. The rate may be lower, because the arriving rate also limits it
    /// and falls with it.
    #[test]
    fn much_loss_bounds_the_rate_at_once() {
        let (mut control, mut now) = (control(), Time::ZERO);
        feed(&mut control, &mut now, 0.3, 10.0);
        assert!((30e3..=400e3).contains(&control.result()), "{}", control.result());
    }
}
