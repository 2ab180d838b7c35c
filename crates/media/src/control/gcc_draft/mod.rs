//! Google congestion control as draft-ietf-rmcat-gcc-02 has it: a Kalman filter over delays between groups, a rate that rises and falls,
//! and a rate by loss. Both controllers are at the sender (section 3, first layout).

mod filter;
#[cfg(test)]
mod tests;

use alloc::boxed::Box;

use sojourn_core::param::{number, rate, time, whole};
use sojourn_core::{Rate, Span, SpecError, Time};

use self::filter::{Filter, Usage};
use super::measure::Recent;
use super::{
    Algorithm, Controller, Estimates, Feedback, FeedbackKind, Outputs, ReceiverReport, Report,
    Setup, in_order,
};

const FASTEST: Rate = Rate::from_bps(1_000_000_000_000);
const LONG: Span = Span::from_secs(1000);

sojourn_core::params! {
    /// The parameters of the draft, by its names where it has them.
    pub struct Config: "gcc-draft", "Google congestion control as draft-ietf-rmcat-gcc-02 has it: Kalman filter, loss in three ranges" {
        pub(crate) start: Rate = "300kbit", rate(Rate::from_bps(5000), FASTEST), "Rate before anything is known";
        pub(crate) burst_time: Span = "5ms", time(Span::ZERO, LONG), "burst_time: the pacer sends a group of packets each time (section 4), and packets sent within it are a group";
        pub(crate) q: f64 = "0.001", number(0.0, 1000.0), "q(i): how much the queue's growth wanders with a group";
        pub(crate) e: f64 = "0.1", number(0.0, 1000.0), "e(0): first error of the estimate";
        pub(crate) chi: f64 = "0.01", number(0.0, 1.0), "χ: how fast the noise is learnt, 0.1 to 0.001";
        pub(crate) gain: u32 = "60", whole(1, 1000), "The estimate is compared times the number of groups, up to this; 1 is the draft's letter";
        pub(crate) overuse_time_th: Span = "10ms", time(Span::ZERO, LONG), "overuse_time_th: a signal above the threshold for longer is over-use";
        pub(crate) del_var_th: f64 = "12.5", number(0.001, 600.0), "del_var_th(0): threshold at the start, in milliseconds";
        pub(crate) k_u: f64 = "0.01", number(0.0, 1.0), "K_u: how fast the threshold follows a signal above it, per millisecond";
        pub(crate) k_d: f64 = "0.00018", number(0.0, 1.0), "K_d: how fast it follows one below it";
        pub(crate) beta: f64 = "0.85", number(0.1, 1.0), "β: part of what arrives that is sent after over-use";
        pub(crate) eta: f64 = "1.08", number(1.0, 10.0), "η: factor by which the rate rises in a second";
        pub(crate) alpha: f64 = "0.5", number(0.0, 100.0), "α: part of a packet that a response time adds near the capacity";
        pub(crate) smoothing: f64 = "0.95", number(0.0, 1.0), "Smoothing of what arrives at over-uses (section 5.5)";
        pub(crate) window: Span = "1s", time(Span::from_millis(1), LONG), "T: window of what arrives, 0.5 to 1 s";
        pub(crate) most_above: f64 = "1.5", number(1.0, 100.0), "The rate rises no further than this times what arrives";
        pub(crate) loss_low: f64 = "0.02", number(0.0, 1.0), "Loss below which the rate by loss rises";
        pub(crate) loss_high: f64 = "0.1", number(0.0, 1.0), "Loss above which it falls";
        pub(crate) loss_increase: f64 = "1.05", number(1.0, 10.0), "Factor by which it rises with a report";
        pub(crate) pacing: f64 = "1", number(0.1, 100.0), "Pacing rate over target (section 4)";
        pub(crate) interval: Span = "33ms", time(Span::from_millis(1), LONG), "Time between reports, unless the call says otherwise: once a frame";
    }
}

impl Algorithm for Config {
    fn build(&self, setup: Setup) -> Box<dyn Controller> {
        Box::new(Draft::new(self, &setup))
    }

    fn agree(&self) -> Result<(), SpecError> {
        in_order(("loss_low", self.loss_low), ("loss_high", self.loss_high))
    }

    fn feedback(&self) -> FeedbackKind {
        FeedbackKind::Ccfb
    }

    fn feedback_interval(&self) -> Span {
        self.interval
    }

    fn pacer_burst(&self) -> Span {
        self.burst_time
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Increase,
    Decrease,
    Hold,
}

/// Packets sent together: when the last of them left and arrived.
#[derive(Clone, Copy, Debug)]
struct Group {
    first: Time,
    sent: Time,
    arrived: Time,
}

/// Rates are in bit/s.
#[derive(Clone, Debug)]
struct Draft {
    config: Config,
    min: f64,
    max: f64,
    state: State,
    /// The rates by delay and by loss.
    a_r: f64,
    a_s: f64,
    updated: Option<Time>,
    filter: Filter,
    current: Option<Group>,
    before: Option<Group>,
    received: Recent,
    /// Mean and variance of what arrived at decreases.
    capacity: Option<(f64, f64)>,
    rtt: Span,
}

const RESPONSE: Span = Span::from_millis(100);
const LEAST_ADDITIVE: f64 = 1000.0;
const FRAMES_PER_SECOND: f64 = 30.0;
const PACKET_BITS: f64 = 1200.0 * 8.0;

impl Draft {
    fn new(config: &Config, setup: &Setup) -> Self {
        let min = setup.min_rate.as_bps().max(1000) as f64;
        let max = (setup.max_rate.as_bps() as f64).max(min);
        let start = setup.start_rate.unwrap_or(config.start).as_bps() as f64;
        let start = start.clamp(min, max);
        Self {
            min,
            max,
            state: State::Increase,
            a_r: start,
            a_s: start,
            updated: None,
            filter: Filter::new(config),
            current: None,
            before: None,
            received: Recent::new(config.window),
            capacity: None,
            rtt: RESPONSE * 2,
            config: config.clone(),
        }
    }

    /// Pre-filtering (section 5.2): packets sent within a burst form a group; a packet that caught up with it joins it.
    fn on_packet(&mut self, report: &Report, arrived: Time) {
        let sent = report.packet.at;
        let Some(current) = &mut self.current else {
            self.current = Some(Group { first: sent, sent, arrived });
            return;
        };
        if sent < current.sent {
            return;
        }
        let gap = arrived.since(current.arrived);
        let is_burst = gap < self.config.burst_time && gap < sent.since(current.sent);
        if sent.since(current.first) <= self.config.burst_time || is_burst {
            (current.sent, current.arrived) = (sent, current.arrived.max(arrived));
            return;
        }
        let done = core::mem::replace(current, Group { first: sent, sent, arrived });
        if let Some(before) = self.before.replace(done) {
            let apart =
                |from: Time, to: Time| (to.as_nanos() as f64 - from.as_nanos() as f64) / 1e6;
            let (left, came) = (apart(before.sent, done.sent), apart(before.arrived, done.arrived));
            self.filter.on_group(came - left, left);
        }
    }

    /// Section 5.5.
    fn control(&mut self, now: Time) {
        self.state = match (self.filter.usage(), self.state) {
            (Usage::Over, _) => State::Decrease,
            (Usage::Under, _) => State::Hold,
            (Usage::Normal, State::Decrease) => State::Hold,
            (Usage::Normal, _) => State::Increase,
        };
        let since = now.since(self.updated.replace(now).unwrap_or(now));
        let Some(r_hat) = self.received.rate() else { return };
        match self.state {
            State::Hold => {}
            State::Increase => {
                if let Some((mean, variance)) = self.capacity
                    && r_hat > mean + 3.0 * libm::sqrt(variance)
                {
                    self.capacity = None;
                }
                let seconds = since.as_secs_f64();
                let more = match self.capacity {
                    Some((mean, variance))
                        if libm::fabs(r_hat - mean) <= 3.0 * libm::sqrt(variance) =>
                    {
                        let response = (RESPONSE + self.rtt).as_secs_f64();
                        let frame = self.a_r / FRAMES_PER_SECOND;
                        let packet = frame / libm::ceil(frame / PACKET_BITS);
                        let part = self.config.alpha * (seconds / response).min(1.0);
                        (part * packet).max(LEAST_ADDITIVE * seconds.min(1.0))
                    }
                    _ => self.a_r * (libm::pow(self.config.eta, seconds.min(1.0)) - 1.0),
                };
                let most = (self.config.most_above * r_hat).max(self.a_r);
                self.a_r = (self.a_r + more).min(most);
            }
            State::Decrease => {
                let kept = self.config.smoothing;
                self.capacity = Some(match self.capacity {
                    None => (r_hat, (0.05 * r_hat) * (0.05 * r_hat)),
                    Some((mean, variance)) => {
                        let off = r_hat - mean;
                        (mean + (1.0 - kept) * off, kept * (variance + (1.0 - kept) * off * off))
                    }
                });
                self.a_r = self.a_r.min(self.config.beta * r_hat);
            }
        }
        self.a_r = self.a_r.clamp(self.min, self.max);
    }
}

impl Controller for Draft {
    fn on_feedback(&mut self, feedback: &Feedback<'_>) {
        let mut arrived: alloc::vec::Vec<(Time, &Report)> =
            feedback.reports.iter().filter_map(|report| Some((report.arrived?, report))).collect();
        arrived.sort_by_key(|(at, report)| (*at, report.packet.number));
        for (at, report) in &arrived {
            self.received.add(*at, report.packet.size);
            self.on_packet(report, *at);
        }
        if let Some((_, newest)) = arrived.last() {
            let held = feedback.held.unwrap_or(Span::ZERO);
            self.rtt = feedback.now.since(newest.packet.at).saturating_sub(held);
            self.control(feedback.now);
        }
    }

    /// Section 6. The rate by loss stays within reach of the rate by delay, so that it can fall at once.
    fn on_receiver_report(&mut self, report: &ReceiverReport) {
        let p = report.fraction_lost;
        if p > self.config.loss_high {
            self.a_s *= 1.0 - 0.5 * p;
        } else if p < self.config.loss_low {
            self.a_s *= self.config.loss_increase;
        }
        self.a_s = self.a_s.clamp(self.min, self.max);
    }

    fn outputs(&self) -> Outputs {
        let target = self.a_r.min(self.a_s);
        Outputs {
            target: Rate::from_bps(target as u64),
            pacing: Some(Rate::from_bps((self.config.pacing * target) as u64)),
            padding: Rate::ZERO,
            window: None,
            phase: match self.state {
                State::Increase => "increase",
                State::Decrease => "decrease",
                State::Hold => "hold",
            },
        }
    }

    fn estimates(&self) -> Estimates {
        Estimates {
            delay_based: Some(self.a_r),
            loss_based: Some(self.a_s),
            acknowledged: self.received.rate(),
            signal: Some(self.filter.signal()),
            threshold: Some(self.filter.threshold()),
        }
    }
}
