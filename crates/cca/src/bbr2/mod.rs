//! BBR version 2 as the kernel branch has it (google/bbr, branch `v2alpha`, `net/ipv4/tcp_bbr2.c`,
//! revision 0487ade).
//!
//! The state machine is that of version 3, [`crate::bbr3_linux`], under the rules of version 2: UP
//! ends by what is in flight; the filtered bandwidth is checked for a full pipe once a round; and
//! if marks are responded to, they bound the bandwidth as well (`bw_lo`, `bw_hi`). The first
//! release, revision 8d11b540, has no such bounds: it is `ecn_bw_lo=off ecn_bw_hi=off`.

#[cfg(test)]
mod tests;

use alloc::vec::Vec;

use sojourn_core::Span;
use sojourn_core::param::{Switch, whole};

use crate::bbr3_linux::rules::{Rules, Version};
use crate::bbr3_linux::{self, Bbr3Linux, FullBwSample, UpExit};
use crate::fixed::Gain;
use crate::forms::{Percent, Share};
use crate::{Algorithm, EcnRequest, Setup};

sojourn_core::params! {
    /// The parameters of the kernel's BBR version 2.
    pub struct Config: "bbr2", "BBR version 2, as the kernel branch v2alpha has it" {
        pub(crate) startup_pacing_gain: Gain = "2.887", "Pacing gain of STARTUP";
        pub(crate) startup_cwnd_gain: Gain = "2.887", "Window gain of STARTUP and DRAIN";
        pub(crate) drain_pacing_gain: Gain = "0.344", "Pacing gain of DRAIN";
        pub(crate) probe_up_pacing_gain: Gain = "1.25", "Pacing gain of PROBE_BW:UP, and how many BDPs in flight end it after one round-trip time";
        pub(crate) probe_down_pacing_gain: Gain = "0.75", "Pacing gain of PROBE_BW:DOWN";
        pub(crate) cwnd_gain: Gain = "2", "Window gain of PROBE_BW";
        pub(crate) full_bw_thresh: Gain = "1.25", "Growth of the largest bandwidth that shows the pipe is not full";
        pub(crate) full_bw_rounds: u32 = "3", "Rounds without that growth after which the pipe is full";
        pub(crate) full_loss_cnt: u32 = "8", "Acknowledgements with losses in a round that end STARTUP, if the loss rate is too high";
        pub(crate) loss_thresh: Share = "0.02", "Loss rate that is too high while probing";
        pub(crate) beta: Share = "0.703", "Share kept when loss cuts a bound";
        pub(crate) headroom: Share = "0.15", "Share of inflight_hi left free while cruising";
        pub(crate) drain_to_target: bool as Switch = "on", "DOWN lasts until no more than a BDP is in flight; off: at most a round-trip time";
        pub(crate) probe_wait_base: Span = "2s", "Least time between probes";
        pub(crate) probe_wait_random: Span = "1s", "Most time added to that at random";
        pub(crate) probe_max_rounds: u32 = "63", "Most rounds between probes";
        pub(crate) probe_random_rounds: u32 = "2", "Number of values from which the rounds already counted are drawn";
        pub(crate) min_rtt_window: Span = "10s", "Age at which the smallest round-trip time is replaced";
        pub(crate) probe_rtt_interval: Span = "5s", "Time without a round-trip time as small that leads to PROBE_RTT";
        pub(crate) probe_rtt_duration: Span = "200ms", "Least time in PROBE_RTT";
        pub(crate) probe_rtt_cwnd_gain: Gain = "0.5", "Window of PROBE_RTT, times the BDP";
        pub(crate) min_cwnd: u32 = "4", "Least window";
        pub(crate) extra_acked_gain: Gain = "1", "Share of the measured aggregation added to the window";
        pub(crate) extra_acked_window: u32 = "5", "Rounds in each of the two windows that measure aggregation, after STARTUP";
        pub(crate) extra_acked_limit: Span = "100ms", "Most aggregation allowed for, as time at the estimated bandwidth";
        pub(crate) tso_rtt_shift: u32 = "9", whole(0, 15), "The burst allowed for short paths halves every 2 to this power microseconds of round-trip time; 0 for no such allowance";
        pub(crate) pacing_margin: Percent = "1%", "Share of the bandwidth left unused by pacing, in whole percent";
        pub(crate) ecn: Ecn = "off", "on, ect1 or off: respond to ECN, for paths that mark at a shallow threshold; ect1 sends ECT(1) and asks for accurate feedback, so that queues for L4S take it for theirs";
        pub(crate) ecn_max_rtt: Span = "5ms", "Largest round-trip time at which ECN is responded to; 0s for any";
        pub(crate) ecn_alpha_gain: Share = "0.0625", "Weight of a round's mark rate in its moving average";
        pub(crate) ecn_factor: Share = "0.332", "Share of the average mark rate by which a bound is cut";
        pub(crate) ecn_thresh: Share = "0.5", "Mark rate that is too high while probing";
        pub(crate) full_ecn_cnt: u32 = "2", "Rounds with that rate that end STARTUP";
        pub(crate) ecn_reprobe_gain: Share = "0", "Growth of inflight_hi in the first round of a probe after marks have ceased; 0 for no such probe";
        pub(crate) ecn_bw_lo: bool as Switch = "on", "marks cut bw_lo as well as inflight_lo";
        pub(crate) ecn_bw_hi: bool as Switch = "on", "a probe that met nothing but too many marks cuts bw_hi as well as inflight_hi";
    }
}

/// Whether the controller responds to marks, and which codepoint packets carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ecn {
    Off,
    /// ECT(0), and the receiver echoes marks one by one.
    Ect0,
    /// ECT(1), and the receiver counts marks, as in the L4S team's kernel.
    Ect1,
}

sojourn_core::choice! { Ecn { "on" = Ecn::Ect0, "ect1" = Ecn::Ect1, "off" = Ecn::Off } }

impl Algorithm for Config {
    type Controller = Bbr3Linux;

    fn build(&self, setup: Setup) -> Bbr3Linux {
        Bbr3Linux::with_rules(self.machine(), self.rules(), setup)
    }

    /// To respond to marks the sender must learn of each: by an echo, as the kernel's version 2
    /// asks for, or by counters.
    fn ecn_request(&self) -> EcnRequest {
        match self.ecn {
            Ecn::Off => EcnRequest::Host,
            Ecn::Ect0 => EcnRequest::MarkByMark,
            Ecn::Ect1 => EcnRequest::L4s,
        }
    }

    fn phases(&self) -> Vec<&'static str> {
        bbr3_linux::PHASES.to_vec()
    }
}

impl Config {
    fn rules(&self) -> Rules {
        Rules {
            version: Version::Two,
            drain_to_target: self.drain_to_target,
            ecn_bw_lo: self.ecn_bw_lo,
            ecn_bw_hi: self.ecn_bw_hi,
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
            tso_rtt_shift: self.tso_rtt_shift,
            pacing_margin: self.pacing_margin,
            ecn_low: self.ecn != Ecn::Off,
            ecn_max_rtt: self.ecn_max_rtt,
            ecn_alpha_gain: self.ecn_alpha_gain,
            ecn_factor: self.ecn_factor,
            ecn_thresh: self.ecn_thresh,
            full_ecn_cnt: self.full_ecn_cnt,
            ecn_reprobe_gain: self.ecn_reprobe_gain,
        }
    }
}
