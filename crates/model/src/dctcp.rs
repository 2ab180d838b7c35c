//! The saw-tooth of DCTCP: M. Alizadeh et al., "Data Center TCP (DCTCP)", SIGCOMM 2010, section 3.3.

use alloc::vec;
use alloc::vec::Vec;

use sojourn_core::param::{rate, time, whole};
use sojourn_core::{Rate, Span, SpecError};

use crate::formula::{Formula, Output, output};

sojourn_core::params! {
    /// Synchronised flows at a queue that marks above a threshold.
    pub struct Dctcp: "dctcp-sawtooth", "Queue and saw-tooth of DCTCP over a marking threshold (Alizadeh et al., SIGCOMM 2010, equations 4 to 11)" {
        pub flows: u32 = "2", whole(1, 100_000), "N: flows";
        pub rate: Rate = "10gbit", rate(Rate::from_bps(1000), Rate::from_bps(1_000_000_000_000)), "C: rate of the bottleneck";
        pub rtt: Span = "100us", time(Span::from_micros(1), Span::from_secs(100)), "round trip without queue";
        pub threshold: u32 = "65", whole(0, 1_000_000), "K: packets above which all are marked";
        pub packet: u32 = "1500", whole(64, 65_535), "octets of a packet";
    }
}

impl Formula for Dctcp {
    const OUTPUTS: &'static [Output] = &[
        output("queue_most", "packets", "longest queue, K + N"),
        output("queue_least", "packets", "shortest queue; below zero the link idles"),
        output("alpha", "", "mark share that senders estimate"),
        output("window", "packets", "W*: window of a flow at which marks begin"),
        output("amplitude", "packets", "A: how far the queue swings"),
        output(
            "period",
            "ms",
            "how long a tooth lasts: the paper's in round trips, with the mean wait in them",
        ),
    ];

    fn evaluate(&self) -> Result<Vec<f64>, SpecError> {
        let (n, k) = (f64::from(self.flows), f64::from(self.threshold));
        let rtt = self.rtt.as_secs_f64();
        let capacity = self.rate.as_bps() as f64 / 8.0 / f64::from(self.packet);
        let pipe = capacity * rtt;
        let w = (pipe + k) / n;
        let alpha = mark_share(w);
        let swing = (w + 1.0) * alpha / 2.0;
        let amplitude = n * swing;
        let (most, least) = (k + n, k + n - amplitude);
        // Windows grow by a packet a round trip, which the queue is part of.
        let mean_queue = (most + least.max(0.0)) / 2.0;
        let period = swing * (rtt + mean_queue / capacity);
        Ok(vec![most, least, alpha, w, amplitude, 1000.0 * period])
    }
}

/// α of equation 6: α²(1 − α/4) = (2W* + 1)/(W* + 1)².
fn mark_share(window: f64) -> f64 {
    let right = (2.0 * window + 1.0) / ((window + 1.0) * (window + 1.0));
    crate::roots::rising_root(0.0, 1.0, |alpha| alpha * alpha * (1.0 - alpha / 4.0) - right)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// docs/models/dctcp.md, Validation: 8.5 round trips of 13.6 ms.
    #[test]
    fn a_tooth_lasts_as_long_as_the_packets_have_it() {
        // 10 000 packets a second.
        let rate = Rate::from_bps(120_000_000);
        let rtt = Span::from_millis(10);
        let model = Dctcp { flows: 1, rate, rtt, threshold: 40, packet: 1500 };
        let period = model.evaluate().expect("an answer")[5];
        assert!((period / (8.5 * 13.6) - 1.0).abs() < 0.05, "{period} ms");
    }

    #[test]
    fn large_windows_have_the_square_root_of_two_over_them() {
        let alpha = mark_share(10_000.0);
        assert!((alpha / libm::sqrt(2.0 / 10_000.0) - 1.0).abs() < 0.01, "{alpha}");
    }
}
