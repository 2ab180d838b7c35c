//! Google congestion control as libwebrtc has it in January 2026 (`modules/congestion_controller/goog_cc`
//! and what it uses), with compiled-in defaults.
//!
//! Delay decides by a trend ([`trendline`]) over groups of packets ([`groups`]) and a rate that rises
//! and falls ([`aimd`]); loss by a likelihood ([`loss_based`]). The lower of both is the target. Probes
//! ([`probing`], [`probe_result`]) find room quickly, at the start above all. The sender's path paces.

mod aimd;
mod alr;
mod groups;
mod in_flight;
mod link_capacity;
mod loss_based;
mod probe_result;
mod probing;
mod reports;
#[cfg(test)]
mod tests;
mod throughput;
mod trendline;

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::num::NonZeroU64;

use sojourn_core::param::{number, rate, time, whole};
use sojourn_core::{Rate, Span, SpecError, Time};

use self::aimd::Aimd;
use self::alr::Alr;
use self::in_flight::InFlight;
use self::loss_based::{LossBased, State};
use self::probe_result::ProbeResults;
use self::probing::{Limit, Probing};
use self::reports::ByReports;
use self::throughput::Throughput;
use self::trendline::{Trendline, Usage};
use super::{
    Algorithm, Controller, Estimates, Feedback, FeedbackKind, LIBWEBRTC_BURST, LIBWEBRTC_LIMIT,
    Outputs, Outstanding, Probe, ReceiverReport, Report, Sent, Setup, Stack, in_order,
};

const FASTEST: Rate = Rate::from_bps(1_000_000_000_000);
const LONG: Span = Span::from_secs(1000);

sojourn_core::params! {
    /// The parameters of libwebrtc's controller. Names are ours; the page has libwebrtc's.
    pub struct Config: "gcc", "Google congestion control as libwebrtc has it in 2026: trendline, loss-based v2, probing" {
        pub(crate) start: Rate = "300kbit", rate(Rate::from_bps(5000), FASTEST), "Rate before anything is known";
        pub(crate) clock: Span = "1ms", time(Span::ZERO, Span::from_secs(1)), "Times of leaving count whole steps of this; 0: they are exact. It needs a call's packet_gap";
        pub(crate) group: Span = "5ms", time(Span::ZERO, LONG), "Packets sent within this time of the first one are a group";
        pub(crate) burst_gap: Span = "5ms", time(Span::ZERO, LONG), "So are packets that arrive with gaps no longer than this, and closer together than they left; 0 for never";
        pub(crate) window: u32 = "20", whole(2, 1000), "Groups over which the trend is taken";
        pub(crate) smoothing: f64 = "0.9", number(0.0, 1.0), "Weight of what was before in the smoothed delay";
        pub(crate) threshold_gain: f64 = "4", number(0.0, 1000.0), "Weight of the trend against the threshold";
        pub(crate) threshold: f64 = "12.5", number(6.0, 600.0), "Threshold at the start, in milliseconds";
        pub(crate) k_up: f64 = "0.0087", number(0.0, 1.0), "How fast the threshold follows a trend above it, per millisecond; 0.01 in the draft";
        pub(crate) k_down: f64 = "0.039", number(0.0, 1.0), "How fast it follows one below it; 0.00018 in the draft";
        pub(crate) overuse_time: Span = "10ms", time(Span::ZERO, LONG), "A trend above the threshold for longer is over-use";
        pub(crate) beta: f64 = "0.85", number(0.1, 1.0), "After over-use the rate is this part of what arrives";
        pub(crate) increase: f64 = "1.08", number(1.0, 10.0), "Factor by which the rate rises in a second";
        pub(crate) default_rtt: Span = "200ms", time(Span::ZERO, LONG), "Round trip before one is measured";
        pub(crate) pacing_first: f64 = "2.5", number(1.0, 100.0), "Pacing rate over target before the first feedback";
        pub(crate) pacing: f64 = "1.1", number(1.0, 100.0), "Pacing rate over target";
        pub(crate) probe_first: f64 = "3", number(0.0, 100.0), "First probe, in start rates";
        pub(crate) probe_second: f64 = "6", number(0.0, 100.0), "Second probe, in start rates";
        pub(crate) probe_further: f64 = "2", number(0.0, 100.0), "Next probe, in results of the one before";
        pub(crate) probe_threshold: f64 = "0.7", number(0.0, 10.0), "A result above this part of its probe leads to a further probe";
        pub(crate) probe_packets: u32 = "5", whole(1, 1000), "Packets of a probe at least";
        pub(crate) probe_duration: Span = "15ms", time(Span::from_millis(1), LONG), "How long a probe takes at its rate";
        pub(crate) probe_cap: Rate = "5mbit", rate(Rate::ZERO, FASTEST), "No probe is faster; 0 for none at all";
        pub(crate) probe_least_acknowledged: f64 = "0.85", number(0.0, 1.0), "A probe lowers the rate no further than to this part of what arrives";
        pub(crate) congestion_window: Span = "350ms", time(Span::ZERO, LONG), "The encoder leaves frames out while more is in flight than the target carries in a round trip and this time; 0 for never (Firefox)";
        pub(crate) congestion_window_least: Rate = "30kbit", rate(Rate::ZERO, FASTEST), "The encoder keeps this much of any target";
        pub(crate) alr_share: f64 = "0.65", number(0.0, 1.0), "An application that sends less than this part of the target is the limit";
        pub(crate) alr_begins: f64 = "0.8", number(0.0, 1.0), "It is the limit from the moment when this part of half a second's budget is unused";
        pub(crate) alr_ends: f64 = "0.5", number(-1.0, 1.0), "And until less than this part is unused";
        pub(crate) loss_observation: Span = "250ms", time(Span::from_millis(1), LONG), "Shortest observation of losses";
        pub(crate) loss_observations: u32 = "15", whole(1, 1000), "Most observations that are kept";
        pub(crate) loss_least_observations: u32 = "3", whole(1, 1000), "Observations before loss counts";
        pub(crate) loss_weight: f64 = "0.9", number(0.0, 1.0), "Weight of an observation, relative to the next newer one";
        pub(crate) loss_candidate_above: f64 = "1.02", number(1.0, 10.0), "Candidate above the estimate, in estimates";
        pub(crate) loss_candidate_below: f64 = "0.95", number(0.0, 1.0), "Candidate below it";
        pub(crate) loss_inherent_first: f64 = "0.01", number(0.0, 1.0), "Inherent loss of the link that is assumed at the start";
        pub(crate) loss_inherent_least: f64 = "0.001", number(0.0, 1.0), "Least inherent loss";
        pub(crate) loss_inherent_offset: f64 = "0.05", number(0.0, 1.0), "Most inherent loss of a link of very high bandwidth";
        pub(crate) loss_inherent_balance: Rate = "100kbit", rate(Rate::ZERO, FASTEST), "This divided by the bandwidth is added to that most";
        pub(crate) loss_newton_step: f64 = "0.75", number(0.0, 10.0), "Part of a step of Newton's method that is taken";
        pub(crate) loss_bias: f64 = "0.0002", number(0.0, 1.0), "Preference for a higher bandwidth, for each kbit/s";
        pub(crate) loss_log_bias: f64 = "0.02", number(0.0, 10.0), "The same, per unit of its logarithm";
        pub(crate) loss_bias_until: f64 = "0.2", number(0.0, 1.0), "Loss above which a lower bandwidth is preferred";
        pub(crate) loss_bias_smoothing: f64 = "0.002", number(0.000001, 1.0), "Width of the range of losses around that in which the preference turns";
        pub(crate) loss_instant_offset: f64 = "0.05", number(0.0, 1.0), "Loss above which the rate is bounded at once";
        pub(crate) loss_instant_balance: Rate = "100kbit", rate(Rate::ZERO, FASTEST), "That bound is this divided by the loss above the offset";
        pub(crate) loss_acknowledged_factor: f64 = "1", number(0.0, 10.0), "The rate is at least this part of what arrives";
        pub(crate) loss_ramp: f64 = "1.5", number(1.0, 100.0), "While loss limits it, the rate is at most this times what arrives";
        pub(crate) loss_ramp_in_hold: f64 = "1.2", number(1.0, 100.0), "The same during a hold, while hardly more arrives than the rate that is held";
        pub(crate) loss_hold_threshold: f64 = "1.3", number(0.0, 100.0), "That is so while what arrives is less than this times the rate that is held";
        pub(crate) loss_hold_factor: f64 = "2", number(1.0, 100.0), "Each hold is this much longer than the one before";
        pub(crate) loss_most_increase: f64 = "1.3", number(1.0, 100.0), "Largest factor by which it rises within `loss_increase_window`";
        pub(crate) loss_increase_window: Span = "300ms", time(Span::ZERO, LONG), "That window";
        pub(crate) loss_padding: Span = "2s", time(Span::ZERO, LONG), "For how long padding tests whether the link carries a raised rate; 0: there is none";
        pub(crate) report_low: f64 = "0.02", number(0.0, 1.0), "With receiver reports alone: the rate rises up to this loss";
        pub(crate) report_high: f64 = "0.1", number(0.0, 1.0), "And falls above this one";
        pub(crate) report_hold: Span = "300ms", time(Span::ZERO, LONG), "Between two falls are this and a round trip";
        pub(crate) report_packets: u32 = "20", whole(1, 1_000_000), "Reports on fewer packets are taken together";
        pub(crate) loss_median_factor: f64 = "2", number(0.0, 100.0), "An observation with most loss counts if it had more than this many median rates";
    }
}

impl Algorithm for Config {
    fn build(&self, setup: Setup) -> Box<dyn Controller> {
        Box::new(Gcc::new(self, setup))
    }

    fn agree(&self) -> Result<(), SpecError> {
        in_order(("alr_ends", self.alr_ends), ("alr_begins", self.alr_begins))?;
        in_order(("report_low", self.report_low), ("report_high", self.report_high))
    }

    fn works_with_receiver_reports(&self) -> bool {
        true
    }

    fn feedback(&self) -> FeedbackKind {
        FeedbackKind::Twcc
    }

    fn pacer_burst(&self) -> Span {
        LIBWEBRTC_BURST
    }

    fn pacer_limit(&self) -> Option<Span> {
        Some(LIBWEBRTC_LIMIT)
    }

    fn stack(&self) -> Stack {
        Stack::Libwebrtc
    }

    fn has_adjuster(&self) -> bool {
        true
    }
}

#[derive(Clone, Debug)]
struct Gcc {
    config: Config,
    /// In bit/s, like all rates here.
    min: f64,
    max: f64,
    target: f64,
    /// What delay allows; infinite before it says anything.
    delay_limit: f64,
    /// What the receiver says that it can take; infinite unless it does.
    receiver_limit: f64,
    by_reports: ByReports,
    /// The target by receiver reports, the receiver's limit not counted.
    by_losses: f64,
    trendline: Trendline,
    aimd: Aimd,
    throughput: Throughput,
    acknowledged: Option<f64>,
    loss: LossBased,
    probes: ProbeResults,
    probing: Probing,
    alr: Alr,
    in_flight: InFlight,
    /// The step of the clock that stamps packets when they leave, in nanoseconds; one where their times are exact.
    clock: NonZeroU64,
    has_feedback: bool,
    usage_before: Usage,
    /// A report's packets in the order of their arrival, where they arrived in another than they left in.
    by_arrival: Vec<Report>,
}

impl Gcc {
    fn new(config: &Config, setup: Setup) -> Self {
        let min = (setup.min_rate.as_bps() as f64).max(5e3);
        // The application's limit does not bound the estimate, so that a probe can find more than media uses.
        let max = FASTEST.as_bps() as f64;
        let start = setup.start_rate.unwrap_or(config.start).as_bps() as f64;
        let start = start.clamp(min, max);
        let mut gcc = Self {
            min,
            max,
            target: start,
            delay_limit: f64::INFINITY,
            receiver_limit: f64::INFINITY,
            by_reports: ByReports::new(config),
            by_losses: start,
            trendline: Trendline::new(config),
            aimd: Aimd::new(config, start, min),
            throughput: Throughput::default(),
            acknowledged: None,
            loss: LossBased::new(config, min, max),
            probes: ProbeResults::default(),
            probing: Probing::new(config, setup.max_rate.as_bps() as f64),
            alr: Alr::new(config),
            in_flight: InFlight::new(config),
            clock: NonZeroU64::new(config.clock.as_nanos()).unwrap_or(NonZeroU64::MIN),
            has_feedback: false,
            usage_before: Usage::Normal,
            by_arrival: Vec::new(),
            config: config.clone(),
        };
        gcc.alr.set_estimate(start);
        if config.probe_cap > Rate::ZERO {
            gcc.probing.start(setup.now, start);
        }
        gcc
    }

    /// The rate by delay, if a probe or the delays have changed it.
    fn by_delay(
        &mut self,
        now: Time,
        acknowledged: Option<f64>,
        probed: Option<f64>,
    ) -> Option<f64> {
        if self.trendline.usage() == Usage::Over {
            return match acknowledged {
                Some(acknowledged) if self.aimd.may_decrease(now, acknowledged) => {
                    Some(self.aimd.update(now, Usage::Over, Some(acknowledged)))
                }
                None if self.aimd.may_decrease(now, self.aimd.rate() / 2.0) => {
                    self.aimd.set(now, self.aimd.rate() / 2.0);
                    Some(self.aimd.rate())
                }
                _ => None,
            };
        }
        if let Some(probed) = probed {
            self.aimd.set(now, probed);
            return Some(self.aimd.rate());
        }
        Some(self.aimd.update(now, self.trendline.usage(), acknowledged))
    }

    fn limit(&self) -> Limit {
        match (self.loss.state(), self.trendline.usage()) {
            (State::Falling, _) => Limit::Loss,
            (State::Rising, _) => Limit::LossRising,
            (State::DelayBased, Usage::Normal) => Limit::Delay,
            (State::DelayBased, Usage::Under | Usage::Over) => Limit::DelayMoves,
        }
    }

    #[inline(always)]
    fn aim(&mut self, now: Time, target: f64) {
        let limit = self.delay_limit.min(self.receiver_limit);
        let target = target.min(limit).min(self.max).max(self.min);
        self.target = target;
        self.alr.set_estimate(target);
        if self.config.probe_cap > Rate::ZERO {
            self.probing.on_estimate(now, target, self.limit());
        }
    }
}

/// The time in whole steps of a clock of so many nanoseconds.
fn counted(at: Time, clock: NonZeroU64) -> Time {
    at - Span::from_nanos(at.as_nanos() % clock)
}

impl Controller for Gcc {
    fn on_sent(&mut self, sent: &Sent, outstanding: &Outstanding) {
        self.alr.on_sent(sent.at, sent.size);
        let in_flight = outstanding.in_flight + u64::from(sent.size);
        self.in_flight.on_sent(sent.at, in_flight, self.target);
    }

    fn on_feedback(&mut self, feedback: &Feedback<'_>) {
        let now = feedback.now;
        self.has_feedback = true;
        self.probing.set_alr(now, self.alr.since());
        let in_alr = self.alr.since().is_some();
        let oldest = feedback.reports.iter().find(|report| report.arrived.is_some());
        let oldest = oldest.map(|report| report.packet.at);
        self.in_flight.on_report(now, oldest, feedback.in_flight, self.target);
        let any_arrived = oldest.is_some();
        if any_arrived {
            self.trendline.on_report(&self.config, now);
        }
        let mut reports = feedback.reports;
        if !reports.is_sorted_by_key(|report| report.arrived) {
            self.by_arrival.clear();
            self.by_arrival.extend_from_slice(reports);
            // Those that arrived at one time stay in the order of sending.
            self.by_arrival.sort_by_key(|report| report.arrived);
            reports = &self.by_arrival;
        }
        let mut probed = None;
        for Report { packet, arrived, .. } in reports {
            let Some(at) = *arrived else { continue };
            let left = counted(packet.at, self.clock);
            self.throughput.on_packet(left, at, packet.size);
            self.trendline.on_packet(left, at);
            if let Some(id) = packet.probe {
                let packet = Sent { at: left, ..*packet };
                probed = self.probes.on_packet(id, &packet, at).or(probed);
            }
        }
        let acknowledged = self.throughput.rate();
        self.acknowledged = acknowledged;
        if let Some(acknowledged) = acknowledged {
            self.loss.set_acknowledged(acknowledged);
        }
        // A probe's result that is far below the arriving rate is raised to near that rate.
        if let (Some(found), Some(acknowledged)) = (probed, acknowledged) {
            let least = self.config.probe_least_acknowledged * acknowledged;
            probed = Some(found.max(least.min(self.aimd.rate())));
        }
        let usage = self.trendline.usage();
        let recovered = self.usage_before == Usage::Under && usage == Usage::Normal;
        self.usage_before = usage;
        if any_arrived && let Some(rate) = self.by_delay(now, acknowledged, probed) {
            self.delay_limit = rate;
        }
        self.loss.update(feedback.reports, self.delay_limit, in_alr);
        if self.loss.is_ready() {
            self.aim(now, self.loss.result());
        } else if self.delay_limit.is_finite() {
            // Without losses yet, delay and probes alone count.
            self.aim(now, self.delay_limit.max(self.target));
        }
        self.in_flight.after_report(self.target);
        if recovered && self.config.probe_cap > Rate::ZERO {
            self.probing.on_recovered(now);
        }
    }

    fn on_receiver_report(&mut self, report: &ReceiverReport) {
        if let Some(rtt) = report.rtt {
            self.aimd.set_rtt(rtt);
        }
        if !self.has_feedback {
            let rate = self.by_reports.update(report, self.by_losses);
            self.by_losses = rate.clamp(self.min, self.max);
            self.aim(report.now, self.by_losses);
        }
    }

    fn on_remb(&mut self, now: Time, rate: Rate) {
        self.receiver_limit = rate.as_bps() as f64;
        self.in_flight.look(now, self.target);
        self.aim(now, self.target);
        self.in_flight.set_unnoticed(self.target);
    }

    fn poll_probe(&mut self) -> Option<Probe> {
        let probe = self.probing.pending.pop_front()?;
        self.probes.on_probe(probe);
        Some(probe)
    }

    fn outputs(&self) -> Outputs {
        let factor = if self.has_feedback { self.config.pacing } else { self.config.pacing_first };
        let is_padded = self.loss.state() == State::Rising && !self.config.loss_padding.is_zero();
        let padding = self.target * (1.0 - self.in_flight.held_back(self.target, self.min));
        Outputs {
            target: Rate::from_bps(self.target as u64),
            pacing: Some(Rate::from_bps((factor * self.target) as u64)),
            padding: if is_padded { Rate::from_bps(padding as u64) } else { Rate::ZERO },
            // The congestion window holds back frames, not packets.
            window: None,
            phase: match (self.trendline.usage(), self.loss.state()) {
                (_, State::Falling) => "loss",
                (_, State::Rising) => "loss_rising",
                (Usage::Over, State::DelayBased) => "over",
                (Usage::Under, State::DelayBased) => "under",
                (Usage::Normal, State::DelayBased) => "normal",
            },
        }
    }

    fn held_back(&mut self, now: Time) -> f64 {
        self.in_flight.look_again(now, self.target);
        self.in_flight.held_back(self.target, self.min)
    }

    fn estimates(&self) -> Estimates {
        Estimates {
            delay_based: self.delay_limit.is_finite().then_some(self.delay_limit),
            loss_based: self.loss.is_ready().then(|| self.loss.result()),
            acknowledged: self.acknowledged,
            signal: Some(self.trendline.signal()),
            threshold: Some(self.trendline.threshold()),
        }
    }
}
