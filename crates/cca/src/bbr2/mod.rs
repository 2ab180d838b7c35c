//! BBR version 2 as the kernel branch has it (google/bbr, branch `v2alpha`, `net/ipv4/tcp_bbr2.c`,
//! revision 0487ade).
//!
//! The machine is that of version 3, [`crate::bbr3_linux`], under the rules of version 2: UP ends by
//! what is in flight, the full pipe is told by the filtered bandwidth once a round, and marks, where
//! they are responded to, bound the bandwidth as well (`bw_lo`, `bw_hi`). The revision released
//! first, 8d11b540, has no such bounds: it is `ecn_bw_lo=off ecn_bw_hi=off`.

#[cfg(test)]
mod tests;

use core::fmt;

use sojourn_core::{ParamKind, Span, SpecError, Words};

use crate::bbr::fixed::Gain;
use crate::bbr::params::{Choice, Percent, Share, Value, parameters};
use crate::bbr3_linux::rules::{Rules, Version};
use crate::bbr3_linux::{self, Bbr3Linux, FullBwSample, UpExit};
use crate::{EcnRequest, Setup};

parameters! {
    /// The parameters of the kernel's BBR version 2.
    "bbr2" {
        startup_pacing_gain: Gain = Gain::of_256(739), "2.887", "Pacing gain of STARTUP";
        startup_cwnd_gain: Gain = Gain::of_256(739), "2.887", "Window gain of STARTUP and DRAIN";
        drain_pacing_gain: Gain = Gain::of_256(88), "0.344", "Pacing gain of DRAIN";
        probe_up_pacing_gain: Gain = Gain::of_256(320), "1.25", "Pacing gain of PROBE_BW:UP, and how many BDPs in flight end it after one round-trip time";
        probe_down_pacing_gain: Gain = Gain::of_256(192), "0.75", "Pacing gain of PROBE_BW:DOWN";
        cwnd_gain: Gain = Gain::of_256(512), "2", "Window gain of PROBE_BW";
        full_bw_thresh: Gain = Gain::of_256(320), "1.25", "Growth of the largest bandwidth that shows the pipe is not full";
        full_bw_rounds: u32 = 3, "3", "Rounds without that growth after which the pipe is full";
        full_loss_cnt: u32 = 8, "8", "Acknowledgements with losses in a round that end STARTUP, if the loss rate is too high";
        loss_thresh: Share = Share(Gain::of_256(5)), "0.02", "Loss rate that is too high while probing";
        beta: Share = Share(Gain::of_256(180)), "0.703", "Share kept when loss cuts a bound";
        headroom: Share = Share(Gain::of_256(38)), "0.15", "Share of inflight_hi left free while cruising";
        drain_to_target: Switch = Switch(true), "on", "on or off: DOWN lasts until no more than a BDP is in flight; off: at most a round-trip time";
        probe_wait_base: Span = Span::from_secs(2), "2s", "Least time between probes";
        probe_wait_random: Span = Span::from_secs(1), "1s", "Most time added to that at random";
        probe_max_rounds: u32 = 63, "63", "Most rounds between probes";
        probe_random_rounds: u32 = 2, "2", "Number of values from which the rounds already counted are drawn";
        min_rtt_window: Span = Span::from_secs(10), "10s", "Age at which the smallest round-trip time is replaced";
        probe_rtt_interval: Span = Span::from_secs(5), "5s", "Time without a round-trip time as small that leads to PROBE_RTT";
        probe_rtt_duration: Span = Span::from_millis(200), "200ms", "Least time in PROBE_RTT";
        probe_rtt_cwnd_gain: Gain = Gain::of_256(128), "0.5", "Window of PROBE_RTT, times the BDP";
        min_cwnd: u32 = 4, "4", "Least window";
        extra_acked_gain: Gain = Gain::of_256(256), "1", "Share of the measured aggregation added to the window";
        extra_acked_window: u32 = 5, "5", "Rounds in each of the two windows that measure aggregation, after STARTUP";
        extra_acked_limit: Span = Span::from_millis(100), "100ms", "Most aggregation allowed for, as time at the estimated bandwidth";
        tso_rtt_shift: Shift = Shift(9), "9", "The burst allowed for short paths halves every 2 to this power microseconds of round-trip time; 0 for no such allowance";
        pacing_margin: Percent = Percent(1), "1%", "Share of the bandwidth left unused by pacing, in whole percent";
        ecn: Switch = Switch(false), "off", "on or off: respond to ECN, for paths that mark at a shallow threshold";
        ecn_max_rtt: Span = Span::from_millis(5), "5ms", "Largest round-trip time at which ECN is responded to; 0s for any";
        ecn_alpha_gain: Share = Share(Gain::of_256(16)), "0.0625", "Weight of a round's mark rate in its moving average";
        ecn_factor: Share = Share(Gain::of_256(85)), "0.332", "Share of the average mark rate by which a bound is cut";
        ecn_thresh: Share = Share(Gain::of_256(128)), "0.5", "Mark rate that is too high while probing";
        full_ecn_cnt: u32 = 2, "2", "Rounds with that rate that end STARTUP";
        ecn_reprobe_gain: Share = Share(Gain::of_256(0)), "0", "Growth of inflight_hi in the first round of a probe after marks have ceased; 0 for no such probe";
        ecn_bw_lo: Switch = Switch(true), "on", "on or off: marks cut bw_lo as well as inflight_lo";
        ecn_bw_hi: Switch = Switch(true), "on", "on or off: a probe that met nothing but too many marks cuts bw_hi as well as inflight_hi";
    }
}

/// `on` or `off`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Switch(pub(crate) bool);

/// A power of two, 0 to 15, as wide as the kernel's field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shift(pub(crate) u32);

impl Config {
    /// The controller of a connection.
    pub fn build(&self, setup: Setup) -> Bbr3Linux {
        Bbr3Linux::with_rules(self.machine(), self.rules(), setup)
    }

    /// Responding to marks takes a receiver that echoes each, which the kernel's version 2 is.
    pub(crate) fn ecn_request(&self) -> EcnRequest {
        if self.ecn.0 { EcnRequest::MarkByMark } else { EcnRequest::Host }
    }

    fn rules(&self) -> Rules {
        Rules {
            version: Version::Two,
            drain_to_target: self.drain_to_target.0,
            ecn_bw_lo: self.ecn_bw_lo.0,
            ecn_bw_hi: self.ecn_bw_hi.0,
        }
    }

    fn machine(&self) -> bbr3_linux::Config {
        bbr3_linux::Config {
            startup_pacing_gain: self.startup_pacing_gain,
            startup_cwnd_gain: self.startup_cwnd_gain,
            drain_pacing_gain: self.drain_pacing_gain,
            probe_up_pacing_gain: self.probe_up_pacing_gain,
            probe_down_pacing_gain: self.probe_down_pacing_gain,
            cwnd_gain: self.cwnd_gain,
            probe_up_cwnd_gain: self.cwnd_gain,
            probe_up_exit: UpExit::Inflight,
            full_bw_sample: FullBwSample::Filtered,
            full_bw_thresh: self.full_bw_thresh,
            full_bw_rounds: self.full_bw_rounds,
            full_loss_cnt: self.full_loss_cnt,
            loss_thresh: self.loss_thresh,
            beta: self.beta,
            headroom: self.headroom,
            probe_wait_base: self.probe_wait_base,
            probe_wait_random: self.probe_wait_random,
            probe_max_rounds: self.probe_max_rounds,
            probe_random_rounds: self.probe_random_rounds,
            min_rtt_window: self.min_rtt_window,
            probe_rtt_interval: self.probe_rtt_interval,
            probe_rtt_duration: self.probe_rtt_duration,
            probe_rtt_cwnd_gain: self.probe_rtt_cwnd_gain,
            min_cwnd: self.min_cwnd,
            extra_acked_gain: self.extra_acked_gain,
            extra_acked_window: self.extra_acked_window,
            extra_acked_limit: self.extra_acked_limit,
            tso_rtt_shift: self.tso_rtt_shift.0,
            pacing_margin: self.pacing_margin,
            ecn_low: self.ecn.0,
            ecn_max_rtt: self.ecn_max_rtt,
            ecn_alpha_gain: self.ecn_alpha_gain,
            ecn_factor: self.ecn_factor,
            ecn_thresh: self.ecn_thresh,
            full_ecn_cnt: self.full_ecn_cnt,
            ecn_reprobe_gain: self.ecn_reprobe_gain,
        }
    }
}

impl Choice for Switch {
    const CHOICES: &'static [(&'static str, Self)] = &[("on", Self(true)), ("off", Self(false))];
}

impl Value for Shift {
    const KIND: ParamKind = ParamKind::Count;

    fn read(words: &mut Words<'_>, name: &str) -> Result<Self, SpecError> {
        Ok(Self(words.count(name, 0, 15)? as u32))
    }

    fn write(&self, name: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, " {name}={}", self.0)
    }
}
