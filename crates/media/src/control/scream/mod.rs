//! Self-clocked rate adaptation (RFC 8298): a congestion window that follows queueing as LEDBAT's does, and a media rate that
//! follows what the window lets through.

#[cfg(test)]
mod tests;
mod trend;

use alloc::boxed::Box;
use alloc::collections::VecDeque;

use sojourn_core::param::{Switch, number, rate, size, time, whole};
use sojourn_core::{Bytes, Ecn, Rate, Span, SpecError, Time};

use self::trend::Trend;
use super::delay_target::DelayTarget;
use super::measure::{BaseDelay, Recent, one_way};
use super::{
    Algorithm, Controller, Estimates, Feedback, FeedbackKind, Outputs, Outstanding, Sent, Setup,
    in_order,
};

const FASTEST: Rate = Rate::from_bps(1_000_000_000_000);
const LONG: Span = Span::from_secs(1000);
const SHORT: Span = Span::from_millis(1);

sojourn_core::params! {
    /// The parameters of SCReAM, by their names in RFC 8298, section 4.1.1.1.
    pub struct Config: "scream", "SCReAM (RFC 8298): a window by queueing delay, and a media rate behind it" {
        pub(crate) qdelay_target_lo: Span = "100ms", time(SHORT, LONG), "QDELAY_TARGET_LO: queueing that is aimed at";
        pub(crate) qdelay_target_hi: Span = "400ms", time(SHORT, LONG), "QDELAY_TARGET_HI: most queueing that is aimed at beside other flows";
        pub(crate) compensate: bool as Switch = "on", "The queueing that is aimed at rises beside flows that fill the queue (section 4.1.2.1)";
        pub(crate) qdelay_weight: f64 = "0.1", number(0.000001, 1.0), "QDELAY_WEIGHT: smoothing of the queueing";
        pub(crate) qdelay_trend_th: f64 = "0.2", number(0.0, 1.0), "QDELAY_TREND_TH: trend that ends the fast increase";
        pub(crate) min_cwnd: Bytes = "3000B", size(100, 1_000_000_000), "MIN_CWND: least congestion window";
        pub(crate) head_room: f64 = "1.1", number(1.0, 100.0), "MAX_BYTES_IN_FLIGHT_HEAD_ROOM: the window over the most bytes in flight in 5 s";
        pub(crate) gain: f64 = "1", number(0.0, 100.0), "GAIN: gain of the window's changes";
        pub(crate) beta_loss: f64 = "0.8", number(0.0, 1.0), "BETA_LOSS: part of the window that a loss leaves";
        pub(crate) beta_ecn: f64 = "0.9", number(0.0, 1.0), "BETA_ECN: part of window and rate that a mark leaves";
        pub(crate) beta_r: f64 = "0.9", number(0.0, 1.0), "BETA_R: part of the rate that a loss leaves";
        pub(crate) mss: Bytes = "1000B", size(100, 100_000), "MSS: largest packet";
        pub(crate) rate_adjust_interval: Span = "200ms", time(SHORT, LONG), "RATE_ADJUST_INTERVAL: time between changes of the rate";
        pub(crate) ramp_up_speed: Rate = "200kbit", rate(Rate::from_bps(1000), FASTEST), "RAMP_UP_SPEED: bit/s that a second adds at most";
        pub(crate) pre_congestion_guard: f64 = "0.1", number(0.0, 1.0), "PRE_CONGESTION_GUARD: how much the trend lowers the rate";
        pub(crate) tx_queue_size_factor: f64 = "1", number(0.0, 100.0), "TX_QUEUE_SIZE_FACTOR: how much a queue of media lowers it";
        pub(crate) rtp_qdelay_th: Span = "20ms", time(Span::ZERO, LONG), "RTP_QDELAY_TH: queue of media that lowers it further";
        pub(crate) rtp_qdelay_scale: f64 = "0.95", number(0.0, 1.0), "TARGET_RATE_SCALE_RTP_QDELAY: part that such a queue leaves";
        pub(crate) qdelay_trend_lo: f64 = "0.2", number(0.0, 1.0), "QDELAY_TREND_LO: trend below which the fast increase can resume";
        pub(crate) t_resume: Span = "5s", time(Span::ZERO, LONG), "T_RESUME_FAST_INCREASE: for how long the trend must be below that";
        pub(crate) rate_pace_min: Rate = "50kbit", rate(Rate::from_bps(1000), FASTEST), "RATE_PACE_MIN: least pacing rate";
        pub(crate) ecn: bool as Switch = "off", "Packets say that they may be marked: ECT(0)";
        pub(crate) interval: Span = "20ms", time(SHORT, LONG), "Time between reports, unless the call says otherwise; the RFC's for rates above 500 kbit/s";
        pub(crate) base_minutes: u32 = "10", whole(1, 1000), "Minutes of which the least delay is the base (RFC 6817)";
    }
}

impl Algorithm for Config {
    fn build(&self, setup: Setup) -> Box<dyn Controller> {
        Box::new(Scream::new(self, &setup))
    }

    fn agree(&self) -> Result<(), SpecError> {
        in_order(
            ("qdelay_target_lo", self.qdelay_target_lo),
            ("qdelay_target_hi", self.qdelay_target_hi),
        )
    }

    fn feedback(&self) -> FeedbackKind {
        FeedbackKind::Ccfb
    }

    fn feedback_interval(&self) -> Span {
        self.interval
    }

    fn ecn(&self) -> Ecn {
        if self.ecn { Ecn::Ect0 } else { Ecn::NotEct }
    }
}

/// Rates are in bit/s, delays in seconds, windows in bytes.
#[derive(Clone, Debug)]
struct Scream {
    config: Config,
    min: f64,
    max: f64,
    target: f64,
    last_max: f64,
    cwnd: f64,
    s_rtt: f64,
    base: BaseDelay,
    qdelay: f64,
    qdelay_target: DelayTarget,
    trend: Trend,
    in_fast_increase: bool,
    /// Since when the trend is low.
    calm_since: Option<Time>,
    round_at: Time,
    reacted_at: Option<Time>,
    /// Times and bytes in flight, for the maximum over a sliding window: the bytes fall from entry to entry.
    most: VecDeque<(Time, f64)>,
    in_flight: f64,
    transmitted: Recent,
    acknowledged: Recent,
    media: Recent,
    queued: f64,
    adjusted_at: Time,
}

const KEPT_IN_FLIGHT: Span = Span::from_secs(5);

impl Scream {
    fn new(config: &Config, setup: &Setup) -> Self {
        let min = setup.min_rate.as_bps().max(1000) as f64;
        let start = setup.start_rate.map_or(min, |start| start.as_bps() as f64);
        let window = config.rate_adjust_interval;
        Self {
            min,
            max: (setup.max_rate.as_bps() as f64).max(min),
            target: start.max(min),
            last_max: 1.0,
            cwnd: config.min_cwnd.as_u64() as f64,
            s_rtt: 0.0,
            base: BaseDelay::new(config.base_minutes),
            qdelay: 0.0,
            qdelay_target: DelayTarget::new(config.qdelay_target_lo, config.qdelay_target_hi),
            trend: Trend::new(config.qdelay_weight),
            in_fast_increase: true,
            calm_since: None,
            round_at: setup.now,
            reacted_at: None,
            most: VecDeque::new(),
            in_flight: 0.0,
            transmitted: Recent::new(window),
            acknowledged: Recent::new(window),
            media: Recent::new(window * 5),
            queued: 0.0,
            adjusted_at: setup.now,
            config: config.clone(),
        }
    }

    fn mss(&self) -> f64 {
        self.config.mss.as_u64() as f64
    }

    fn fly(&mut self, now: Time, bytes: f64) {
        self.in_flight = bytes;
        while self.most.pop_back_if(|(_, less)| *less <= bytes).is_some() {}
        self.most.push_back((now, bytes));
        while self.most.pop_front_if(|(at, _)| *at + KEPT_IN_FLIGHT < now).is_some() {}
    }

    /// A loss or a mark, once a round trip.
    fn on_congestion(&mut self, now: Time, window: f64, rate: f64) {
        self.reacted_at = Some(now);
        self.in_fast_increase = false;
        self.last_max = self.target;
        self.cwnd = (self.cwnd * window).max(self.config.min_cwnd.as_u64() as f64);
        self.target = (self.target * rate).max(self.min);
    }

    fn update_cwnd(&mut self, bytes: f64) {
        if self.in_fast_increase {
            if self.trend.value() >= self.config.qdelay_trend_th {
                self.in_fast_increase = false;
                self.last_max = self.target;
            } else {
                if self.in_flight * 1.5 + bytes > self.cwnd {
                    self.cwnd += bytes;
                }
                return;
            }
        }
        let off_target =
            (self.qdelay_target.seconds() - self.qdelay) / self.qdelay_target.seconds();
        let delta = self.config.gain * off_target * bytes * self.mss() / self.cwnd;
        let is_unused = off_target > 0.0 && self.in_flight * 1.25 + bytes <= self.cwnd;
        self.cwnd += if is_unused { 0.0 } else { delta };
        let most = self.most.front().map_or(0.0, |(_, bytes)| *bytes) * self.config.head_room;
        self.cwnd = self.cwnd.min(most).max(self.config.min_cwnd.as_u64() as f64);
    }

    fn resume(&mut self, now: Time) {
        if self.trend.value() >= self.config.qdelay_trend_lo {
            self.calm_since = None;
        } else if now.since(*self.calm_since.get_or_insert(now)) >= self.config.t_resume {
            self.in_fast_increase = true;
        }
    }

    /// The media rate (section 4.1.3).
    fn adjust_rate(&mut self, now: Time) {
        if now.since(self.adjusted_at) < self.config.rate_adjust_interval {
            return;
        }
        self.adjusted_at = now;
        let interval = self.config.rate_adjust_interval.as_secs_f64();
        let speed = (self.config.ramp_up_speed.as_bps() as f64).min(self.target / 2.0);
        let off = 4.0 * (self.target - self.last_max) / self.last_max;
        let scale = (off * off).clamp(0.2, 1.0);
        let rates = [self.transmitted.rate(), self.acknowledged.rate()];
        let current = rates.into_iter().flatten().fold(0.0, f64::max);
        if self.in_fast_increase {
            self.target += speed * interval * scale;
        } else {
            let queued = 8.0 * self.queued;
            let mut delta = current * (1.0 - self.config.pre_congestion_guard * self.trend.value())
                - self.config.tx_queue_size_factor * queued;
            if delta > 0.0 {
                delta = (delta * scale).min(speed * interval);
            }
            self.target += delta;
            if queued > self.config.rtp_qdelay_th.as_secs_f64() * current {
                self.target *= self.config.rtp_qdelay_scale;
            }
        }
        if let Some(media) = self.media.rate() {
            self.target = self.target.min(current.max(media) * (2.0 - self.trend.remembered()));
        }
        self.target = self.target.clamp(self.min, self.max);
    }
}

impl Controller for Scream {
    fn on_sent(&mut self, sent: &Sent, outstanding: &Outstanding) {
        self.fly(sent.at, (outstanding.in_flight + u64::from(sent.size)) as f64);
        self.transmitted.add(sent.at, sent.size);
        self.queued = outstanding.queued as f64;
    }

    fn on_frame(&mut self, now: Time, size: u32) {
        self.media.add(now, size);
    }

    fn on_feedback(&mut self, feedback: &Feedback<'_>) {
        let now = feedback.now;
        self.fly(now, feedback.in_flight as f64);
        let (mut bytes, mut is_lost, mut is_marked, mut newest) = (0, false, false, None);
        for report in feedback.reports {
            bytes += report.packet.size;
            is_marked |= report.ecn == Ecn::Ce;
            match report.arrived {
                Some(_) => newest = Some(report),
                None => is_lost = true,
            }
        }
        let Some((newest, delay)) = newest.and_then(|newest| Some((newest, one_way(newest)?)))
        else {
            return;
        };
        self.acknowledged.add(now, bytes);
        let held = feedback.held.unwrap_or(Span::ZERO);
        let rtt = now.since(newest.packet.at).saturating_sub(held).as_secs_f64().max(0.0001);
        self.s_rtt = if self.s_rtt == 0.0 { rtt } else { self.s_rtt + (rtt - self.s_rtt) / 8.0 };
        self.qdelay = self.base.above(now, delay);
        self.trend.on_sample(now, self.qdelay / self.qdelay_target.seconds());
        if is_lost {
            self.qdelay_target.on_loss();
        }
        if now.since(self.round_at).as_secs_f64() >= self.s_rtt {
            self.round_at = now;
            self.qdelay_target.end_round();
        }
        if self.config.compensate {
            self.qdelay_target.adjust(self.qdelay);
        }
        let may_react = self.reacted_at.is_none_or(|at| now.since(at).as_secs_f64() > self.s_rtt);
        if is_lost && may_react {
            self.on_congestion(now, self.config.beta_loss, self.config.beta_r);
        } else if is_marked && may_react {
            self.on_congestion(now, self.config.beta_ecn, self.config.beta_ecn);
        } else {
            self.update_cwnd(f64::from(bytes));
            self.resume(now);
        }
        self.adjust_rate(now);
    }

    fn outputs(&self) -> Outputs {
        let pacing = if self.s_rtt > 0.0 { 8.0 * self.cwnd / self.s_rtt } else { self.target };
        let spare = if self.qdelay <= self.qdelay_target.seconds() { self.mss() } else { 0.0 };
        Outputs {
            target: Rate::from_bps(self.target as u64),
            pacing: Some(Rate::from_bps(pacing as u64).max(self.config.rate_pace_min)),
            padding: Rate::ZERO,
            window: Some((self.cwnd + spare) as u64),
            phase: if self.in_fast_increase { "fast_increase" } else { "by_delay" },
        }
    }

    fn estimates(&self) -> Estimates {
        Estimates {
            acknowledged: self.acknowledged.rate(),
            signal: Some(1e3 * self.qdelay),
            threshold: Some(1e3 * self.qdelay_target.seconds()),
            ..Estimates::default()
        }
    }
}
