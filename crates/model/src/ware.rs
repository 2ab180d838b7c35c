//! How much BBRv1 takes from loss-based flows: R. Ware, M. K. Mukerjee, S. Seshan, J. Sherry,
//! "Modeling BBR's Interactions with Loss-Based Congestion Control", IMC 2019.
//!
//! The queue is taken to be full and the flows synchronised. p is the share of the loss-based flows,
//! X the buffer in bandwidth-delay products, q in packets, c the rate in packets a second, l the round
//! trip without queue, N the number of BBR flows and d how long they compete.

use alloc::vec;
use alloc::vec::Vec;

use sojourn_core::param::{number, rate, time, whole};
use sojourn_core::{Rate, Span, SpecError};

use crate::formula::{Formula, Output, output};

sojourn_core::params! {
    /// N flows of BBRv1 beside any number of loss-based ones.
    pub struct Ware: "ware-bbr", "Share of BBRv1 beside loss-based flows in a full drop-tail queue (Ware et al., IMC 2019, equations 7 to 11)" {
        pub flows: u32 = "1", whole(1, 10_000), "N: flows of BBRv1";
        pub rate: Rate = "10mbit", rate(Rate::from_bps(1000), Rate::from_bps(1_000_000_000_000)), "rate of the bottleneck";
        pub rtt: Span = "40ms", time(Span::from_micros(1), Span::from_secs(100)), "l: round trip without queue";
        pub buffer: f64 = "8", number(0.01, 10_000.0), "X: buffer in bandwidth-delay products";
        pub duration: Span = "400s", time(Span::from_secs(1), Span::from_secs(1_000_000)), "d: how long they compete";
        pub packet: u32 = "1500", whole(64, 65_535), "octets of a packet";
    }
}

/// Seconds of a ProbeRTT beyond the drain of the queue and a round trip, and between two.
const PROBE_RTT: f64 = 0.2;
const INTERVAL: f64 = 10.0;
/// Packets in flight in ProbeRTT.
const PROBE_WINDOW: f64 = 4.0;

impl Formula for Ware {
    const OUTPUTS: &'static [Output] = &[
        output("share", "", "share of the link that all flows of BBR take together"),
        output("goodput", "Mbit/s", "the same share of the rate"),
        output("loss_based", "", "p: share of the loss-based flows, without ProbeRTT"),
        output("probe_time", "s", "time that BBR spends in ProbeRTT, at most the whole"),
        output("rtt_estimate", "ms", "round trip that BBR measures in ProbeRTT"),
        output("inflight_cap", "packets", "what all flows of BBR may have in flight together"),
    ];

    fn evaluate(&self) -> Result<Vec<f64>, SpecError> {
        let n = f64::from(self.flows);
        let c = self.rate.as_bps() as f64 / 8.0 / f64::from(self.packet);
        let l = self.rtt.as_secs_f64();
        let d = self.duration.as_secs_f64();
        let q = self.buffer * c * l;
        // Equation 9; below zero BBR's cap is more than pipe and queue, and the loss-based flows have nothing.
        let p = (0.5 - 1.0 / (2.0 * self.buffer) - PROBE_WINDOW * n / q).max(0.0);
        // Equation 11; it can't be longer than they compete.
        let probe_time = ((q / c + PROBE_RTT + l) * (d / INTERVAL)).min(d);
        // Equation 10.
        let share = (1.0 - p) * (d - probe_time) / d;
        // Equation 7, of which 9 follows: it holds where p is 0, too.
        let estimate = (p * q + PROBE_WINDOW * n) / c + l;
        // Equation 8.
        let cap = 2.0 * (1.0 - p) * c * estimate;
        let goodput = share * self.rate.as_bps() as f64 / 1e6;
        Ok(vec![share, goodput, p, probe_time, 1000.0 * estimate, cap])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 10 Mbit/s, 40 ms, 400 s: figure 8a's settings, by hand.
    #[test]
    fn one_flow_in_a_deep_buffer_has_less_than_half() {
        let ware = Ware { buffer: 32.0, ..Ware::default() };
        let values = ware.evaluate().expect("an answer");
        // q = 1066.67, p = 0.5 − 1/64 − 4/1066.67 = 0.480625; 1.52 s of each 10 in ProbeRTT.
        assert!((values[2] - 0.480_625).abs() < 1e-6, "{values:?}");
        assert!((values[3] - 60.8).abs() < 1e-9, "{values:?}");
        assert!((values[0] - 0.519_375 * (1.0 - 0.152)).abs() < 1e-6, "{values:?}");
    }

    /// A round trip of 100 s: emptying the queue takes longer than they compete.
    #[test]
    fn no_more_time_is_spent_in_probe_rtt_than_there_is() {
        let ware =
            Ware { rtt: Span::from_secs(100), duration: Span::from_secs(1), ..Ware::default() };
        let values = ware.evaluate().expect("an answer");
        assert_eq!((values[0], values[3]), (0.0, 1.0));
    }

    /// p is 0 where the cap is more than pipe and queue, which are 1 + X bandwidth-delay products of 33.3 packets.
    #[test]
    fn in_a_shallow_buffer_the_cap_is_more_than_everything() {
        for (flows, buffer) in [(1, 0.5), (1, 1.0), (8, 1.0), (8, 2.9)] {
            let ware = Ware { flows, buffer, ..Ware::default() };
            let values = ware.evaluate().expect("an answer");
            assert_eq!(values[2], 0.0);
            assert!(values[5] > (1.0 + buffer) * 100.0 / 3.0, "{values:?}");
        }
    }

    #[test]
    fn nothing_jumps_where_the_loss_based_flows_get_something() {
        let at = |buffer| {
            let ware = Ware { flows: 8, buffer, ..Ware::default() };
            ware.evaluate().expect("an answer")
        };
        let (below, above) = (at(2.9199), at(2.9201));
        assert!(below[2] == 0.0 && above[2] > 0.0, "{below:?} {above:?}");
        for (below, above) in below.iter().zip(&above).filter(|(below, _)| **below > 0.0) {
            assert!((above / below - 1.0).abs() < 1e-3, "{below} {above}");
        }
    }
}
