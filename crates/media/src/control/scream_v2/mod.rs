//! Self-clocked rate adaptation, version 2 (draft-johansson-ccwg-rfc8298bis-screamv2): a reference window that marks, losses and
//! queueing reduce, and a rate that follows from it.

#[cfg(test)]
mod tests;

use alloc::boxed::Box;

use sojourn_core::param::{Switch, number, size, time, whole};
use sojourn_core::{Bytes, Ecn, Rate, Span, SpecError, Time};

use super::delay_target::DelayTarget;
use super::measure::{BaseDelay, one_way};
use super::{
    Algorithm, Controller, Estimates, Feedback, FeedbackKind, Outputs, Outstanding, Sent, Setup,
    in_order,
};

const LONG: Span = Span::from_secs(1000);
const SHORT: Span = Span::from_millis(1);

sojourn_core::params! {
    /// The parameters of SCReAMv2, by their names in the draft.
    pub struct Config: "scream-v2", "SCReAMv2 (draft-johansson-ccwg-rfc8298bis-screamv2), with L4S marks" {
        pub(crate) l4s: bool as Switch = "on", "IS_L4S: packets are ECT(1), and marks are answered by their share; off: neither";
        pub(crate) qdelay_target_lo: Span = "60ms", time(SHORT, LONG), "QDELAY_TARGET_LO: queueing that is aimed at";
        pub(crate) qdelay_target_hi: Span = "400ms", time(SHORT, LONG), "QDELAY_TARGET_HI: most queueing that is aimed at beside other flows";
        pub(crate) compensate: bool as Switch = "on", "The queueing that is aimed at rises beside flows that fill the queue";
        pub(crate) min_ref_wnd: Bytes = "3000B", size(100, 1_000_000_000), "MIN_REF_WND: least reference window";
        pub(crate) bytes_in_flight_head_room: f64 = "1.5", number(1.0, 100.0), "BYTES_IN_FLIGHT_HEAD_ROOM: the window grows no further than this times what is in flight";
        pub(crate) beta_loss: f64 = "0.7", number(0.0, 1.0), "BETA_LOSS: part of the window that a loss leaves";
        pub(crate) mss: Bytes = "1000B", size(100, 100_000), "MSS: largest packet";
        pub(crate) post_congestion_delay: f64 = "100", number(1.0, 100000.0), "POST_CONGESTION_DELAY_RTT: round trips after congestion until growth is at full speed";
        pub(crate) mul_increase_factor: f64 = "0.02", number(0.0, 10.0), "MUL_INCREASE_FACTOR: part of the window that a round trip adds";
        pub(crate) virtual_rtt: Span = "25ms", time(SHORT, LONG), "VIRTUAL_RTT: shorter round trips count as this";
        pub(crate) min_dev_scale: f64 = "0.1", number(0.0, 1.0), "MIN_QUEUE_DELAY_DEV_SCALE: least part of changes that varying delay leaves";
        pub(crate) l4s_avg_g_up: f64 = "0.125", number(0.000001, 1.0), "L4S_AVG_G_UP: how fast the share of marks rises";
        pub(crate) l4s_avg_g_down: f64 = "0.0078125", number(0.000001, 1.0), "L4S_AVG_G_DOWN: how fast it falls";
        pub(crate) qdelay_avg_g: f64 = "0.25", number(0.000001, 1.0), "QDELAY_AVG_G: how fast mean queueing rises";
        pub(crate) qdelay_dev_avg_g: f64 = "0.015625", number(0.000001, 1.0), "QDELAY_DEV_AVG_G: the same of its variation";
        pub(crate) qdelay_dev_norm: Span = "25ms", time(SHORT, LONG), "QDELAY_DEV_NORM: what the variation is divided by";
        pub(crate) overhead_min: f64 = "1.5", number(1.0, 100.0), "REF_WND_OVERHEAD_MIN: bytes in flight over the window, at least";
        pub(crate) overhead_max: f64 = "3", number(1.0, 100.0), "REF_WND_OVERHEAD_MAX: at most";
        pub(crate) pacing_headroom: f64 = "1.5", number(1.0, 100.0), "PACKET_PACING_HEADROOM: pacing rate over target";
        pub(crate) relaxed_pacing: f64 = "4", number(1.0, 100.0), "MAX_RELAXED_PACING_FACTOR: how much faster pacing is at the largest rate";
        pub(crate) relaxed_from: f64 = "0.8", number(0.0, 0.99), "RELAXED_PACING_LIMIT_LOW: part of the largest rate above which pacing is relaxed";
        pub(crate) pace_min: Rate = "50kbit", "RATE_PACE_MIN: least pacing rate, before the headroom";
        pub(crate) packet_overhead: Bytes = "20B", size(0, 1000), "PACKET_OVERHEAD: bytes of headers of a packet";
        pub(crate) rate_adjust_gain: f64 = "0.0625", number(0.0, 1.0), "RATE_ADJUST_GAIN: how fast a queue of media lowers the rate";
        pub(crate) frame_size_dev_alpha: f64 = "0.015625", number(0.0, 1.0), "FRAME_SIZE_DEV_ALPHA: how fast large frames lower it";
        pub(crate) interval: Span = "40ms", time(SHORT, LONG), "Longest time between reports, unless the call says otherwise";
        pub(crate) report_packets: u32 = "16", whole(1, 1000), "A report comes after so many packets, and at the end of a frame";
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
        )?;
        in_order(("overhead_min", self.overhead_min), ("overhead_max", self.overhead_max))
    }

    fn feedback(&self) -> FeedbackKind {
        FeedbackKind::Ccfb
    }

    fn feedback_interval(&self) -> Span {
        self.interval
    }

    fn feedback_packets(&self) -> Option<u32> {
        Some(self.report_packets)
    }

    fn ecn(&self) -> Ecn {
        if self.l4s { Ecn::Ect1 } else { Ecn::NotEct }
    }
}

/// The reference window is a number of bytes, delays are in seconds, rates in bit/s.
#[derive(Clone, Debug)]
struct Scream {
    config: Config,
    min: f64,
    max: f64,
    target: f64,
    ref_wnd: f64,
    ref_wnd_i: f64,
    inflection_at: Option<Time>,
    s_rtt: f64,
    base: BaseDelay,
    qdelay: f64,
    qdelay_avg: f64,
    qdelay_avg_at: Time,
    dev: f64,
    dev_threshold: f64,
    qdelay_target: DelayTarget,
    alpha: f64,
    alpha_at: Time,
    delivered: u32,
    marked: u32,
    /// Since the last reaction.
    has_loss: bool,
    has_mark: bool,
    congested_at: Option<Time>,
    reacted_at: Option<Time>,
    /// Most bytes in flight of this round trip and of the one before.
    most: f64,
    most_before: f64,
    round_at: Time,
    in_flight: f64,
    media_delay: f64,
    frame_period: f64,
    rate_adjust: f64,
    frame_size_dev: f64,
}

/// The window that was last too large is learnt at most once in this many round trips.
const INFLECTION_RTTS: f64 = 10.0;

impl Scream {
    fn new(config: &Config, setup: &Setup) -> Self {
        let min = setup.min_rate.as_bps().max(1000) as f64;
        let start = setup.start_rate.map_or(min, |start| start.as_bps() as f64);
        let ref_wnd = config.min_ref_wnd.as_u64() as f64;
        Self {
            min,
            max: (setup.max_rate.as_bps() as f64).max(min),
            target: start.max(min),
            ref_wnd,
            ref_wnd_i: 1.0,
            inflection_at: None,
            s_rtt: 0.0,
            base: BaseDelay::new(config.base_minutes),
            qdelay: 0.0,
            qdelay_avg: 0.0,
            qdelay_avg_at: setup.now,
            dev: 0.0,
            dev_threshold: 0.1,
            qdelay_target: DelayTarget::new(config.qdelay_target_lo, config.qdelay_target_hi),
            alpha: 0.0,
            alpha_at: setup.now,
            delivered: 0,
            marked: 0,
            has_loss: false,
            has_mark: false,
            congested_at: None,
            reacted_at: None,
            most: 0.0,
            most_before: 0.0,
            round_at: setup.now,
            in_flight: 0.0,
            media_delay: 0.0,
            frame_period: 1.0 / setup.frames_per_second,
            rate_adjust: 0.0,
            frame_size_dev: 0.0,
            config: config.clone(),
        }
    }

    fn mss(&self) -> f64 {
        self.config.mss.as_u64() as f64
    }

    fn virtual_rtt(&self) -> f64 {
        self.config.virtual_rtt.as_secs_f64()
    }

    fn ref_wnd_ratio(&self) -> f64 {
        self.mss() / self.ref_wnd
    }

    /// The share of a change of the window that is applied: less, the more delay varies.
    fn steadiness(&self) -> f64 {
        ((self.dev_threshold - self.dev) / self.dev_threshold).max(self.config.min_dev_scale)
    }

    /// How far the window is from the one that was last too large: 0.1 near it, 1 far away.
    fn distance(&self) -> f64 {
        let off = 8.0 * (self.ref_wnd - self.ref_wnd_i) / self.ref_wnd_i;
        (off * off).clamp(0.1, 1.0)
    }

    fn since(&self, now: Time, at: Option<Time>) -> f64 {
        at.map_or(f64::INFINITY, |at| now.since(at).as_secs_f64())
    }

    fn on_delay(&mut self, now: Time, rtt: f64, qdelay: f64) {
        self.s_rtt = if self.s_rtt == 0.0 { rtt } else { self.s_rtt + (rtt - self.s_rtt) / 8.0 };
        self.qdelay = qdelay;
        let interval = self.virtual_rtt().min(self.s_rtt);
        if now.since(self.qdelay_avg_at).as_secs_f64() >= interval {
            self.qdelay_avg_at = now;
            let more = self.config.qdelay_avg_g * (qdelay - self.qdelay_avg);
            self.qdelay_avg =
                if qdelay < self.qdelay_avg { qdelay } else { self.qdelay_avg + more };
            self.dev_threshold = (0.1 * (1.0 - self.ref_wnd_ratio() / 0.1)).max(0.05);
            let norm = self.config.qdelay_dev_norm.as_secs_f64();
            let off = ((qdelay - norm / 4.0) / norm).clamp(0.0, 1.5 * self.dev_threshold);
            self.dev += self.config.qdelay_dev_avg_g * (off - self.dev);
        }
        if now.since(self.round_at).as_secs_f64() >= self.s_rtt {
            self.round_at = now;
            (self.most_before, self.most) = (self.most, self.in_flight);
            self.qdelay_target.end_round();
        }
        if self.config.compensate {
            self.qdelay_target.adjust(qdelay);
        }
    }

    fn on_marks(&mut self, now: Time) {
        if self.delivered == 0 || now.since(self.alpha_at).as_secs_f64() < self.s_rtt.min(0.01) {
            return;
        }
        self.alpha_at = now;
        let fraction = f64::from(self.marked) / f64::from(self.delivered);
        (self.delivered, self.marked) = (0, 0);
        if fraction >= self.alpha {
            self.alpha += self.config.l4s_avg_g_up * (fraction - self.alpha);
        } else {
            self.alpha *= 1.0 - self.config.l4s_avg_g_down;
        }
    }

    fn reduce(&mut self, now: Time) {
        if self.has_loss || self.has_mark {
            self.congested_at = Some(now);
        }
        let (virtual_rtt, s_rtt) = (self.virtual_rtt(), self.s_rtt);
        if self.since(now, self.reacted_at) < virtual_rtt.min(s_rtt) {
            return;
        }
        let half = self.qdelay_target.seconds() / 2.0;
        let (is_loss, is_mark) = (self.has_loss, self.has_mark && !self.has_loss);
        let is_delay = !is_loss && !is_mark && self.qdelay_avg > half;
        if !(is_loss || is_mark || is_delay) {
            return;
        }
        let distance = self.distance();
        if self.since(now, self.inflection_at) > INFLECTION_RTTS * s_rtt {
            self.inflection_at = Some(now);
            self.ref_wnd_i = self.ref_wnd;
        }
        let long = (s_rtt / virtual_rtt).max(1.0);
        if is_loss {
            self.ref_wnd *= self.config.beta_loss;
        } else if is_mark {
            let mut backoff = self.alpha / 2.0 / long;
            if self.qdelay < 0.25 * self.qdelay_target.seconds() {
                backoff *= distance.max(0.25) * self.steadiness();
            }
            if self.since(now, self.reacted_at) > 100.0 * virtual_rtt.max(s_rtt) {
                self.ref_wnd = self.ref_wnd.min(self.most_before);
            }
            self.ref_wnd *= 1.0 - backoff;
        } else {
            let alpha = ((self.qdelay_avg - half) / half).clamp(0.0, 1.0);
            self.ref_wnd *= 1.0 - alpha / 2.0 / long;
        }
        self.ref_wnd = self.ref_wnd.max(self.config.min_ref_wnd.as_u64() as f64);
        self.reacted_at = Some(now);
        (self.has_loss, self.has_mark) = (false, false);
    }

    fn grow(&mut self, now: Time, bytes: f64) {
        let (virtual_rtt, s_rtt) = (self.virtual_rtt(), self.s_rtt);
        let distance = self.distance();
        let full = self.config.post_congestion_delay * virtual_rtt.max(s_rtt);
        let after = (self.since(now, self.congested_at) / full).min(1.0);
        let faster = self.config.mul_increase_factor * self.ref_wnd / self.mss();
        let increment = bytes
            * self.ref_wnd_ratio()
            * (s_rtt / virtual_rtt).min(1.0)
            * distance.max(0.25)
            * self.steadiness()
            * (1.0 + faster * after * distance);
        let room = self.config.bytes_in_flight_head_room;
        let most = self.mss() + room * self.most.max(self.most_before);
        if self.ref_wnd + increment <= most && self.target < self.max {
            self.ref_wnd += increment;
        }
    }

    fn aim(&mut self) {
        let (mss, overhead) = (self.mss(), self.config.packet_overhead.as_u64() as f64);
        let small = 1.0 - (self.ref_wnd_ratio() - 0.1).clamp(0.0, 0.2);
        let spare = 1.2 + self.rate_adjust + self.frame_size_dev;
        let rate = small * mss / (mss + overhead) / spare * 8.0 * self.ref_wnd / self.s_rtt;
        self.target = rate.clamp(self.min, self.max);
    }

    fn overhead(&self) -> f64 {
        let Config { overhead_min, overhead_max, .. } = self.config;
        let steady = ((self.dev_threshold - self.dev) / self.dev_threshold).max(0.0);
        overhead_min + (overhead_max - overhead_min) * steady
    }

    fn pacing(&self) -> f64 {
        let Config { relaxed_pacing, relaxed_from, pacing_headroom, pace_min, .. } = self.config;
        let slow = (self.target / self.max - relaxed_from) / (1.0 - relaxed_from);
        let scale = (1.0 - slow.min(1.0)).clamp(1.0 / relaxed_pacing, 1.0);
        self.target.max(pace_min.as_bps() as f64) * pacing_headroom / scale
    }
}

impl Controller for Scream {
    fn on_sent(&mut self, sent: &Sent, outstanding: &Outstanding) {
        self.in_flight = (outstanding.in_flight + u64::from(sent.size)) as f64;
        self.most = self.most.max(self.in_flight);
        self.media_delay = outstanding.queue_delay.as_secs_f64();
    }

    fn on_frame(&mut self, _now: Time, size: u32) {
        let error = (self.media_delay - self.frame_period / 4.0) / self.frame_period;
        self.rate_adjust =
            (self.rate_adjust + error * self.config.rate_adjust_gain).clamp(0.0, 0.5);
        let nominal = self.target * self.frame_period / 8.0;
        let larger = (f64::from(size) / nominal - 1.0).max(0.0);
        let alpha = self.config.frame_size_dev_alpha;
        self.frame_size_dev =
            (self.frame_size_dev + alpha * (larger - self.frame_size_dev)).min(0.2);
        self.media_delay = 0.0;
    }

    fn on_feedback(&mut self, feedback: &Feedback<'_>) {
        let now = feedback.now;
        self.in_flight = feedback.in_flight as f64;
        let mut bytes = 0.0;
        let mut newest = None;
        for report in feedback.reports {
            let is_marked = report.ecn == Ecn::Ce;
            if report.arrived.is_some() {
                newest = Some(report);
                self.delivered += 1;
                self.marked += u32::from(is_marked);
            } else {
                self.has_loss = true;
                self.qdelay_target.on_loss();
            }
            self.has_mark |= is_marked && self.config.l4s;
            bytes += if is_marked { 0.0 } else { f64::from(report.packet.size) };
        }
        let Some(newest) = newest else { return };
        let Some(delay) = one_way(newest) else { return };
        let qdelay = self.base.above(now, delay);
        // The time for which the receiver kept the report counts: packets are in flight until it comes.
        let rtt = now.since(newest.packet.at).as_secs_f64();
        self.on_delay(now, rtt.max(0.0001), qdelay);
        self.on_marks(now);
        self.reduce(now);
        self.grow(now, bytes);
        self.aim();
    }

    fn outputs(&self) -> Outputs {
        Outputs {
            target: Rate::from_bps(self.target as u64),
            pacing: Some(Rate::from_bps(self.pacing() as u64)),
            padding: Rate::ZERO,
            window: Some((self.ref_wnd * self.overhead()) as u64),
            phase: if self.congested_at == self.reacted_at { "grows" } else { "congested" },
        }
    }

    fn estimates(&self) -> Estimates {
        Estimates {
            signal: Some(1e3 * self.qdelay_avg),
            threshold: Some(1e3 * self.qdelay_target.seconds()),
            ..Estimates::default()
        }
    }
}
