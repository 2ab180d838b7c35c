//! The queue that flows of BBR hold among themselves: S. Scherrer, M. Legner, A. Perrig, S. Schmid,
//! "Model-Based Insights on the Performance, Fairness, and Stability of BBR", IMC 2022.

use alloc::vec;
use alloc::vec::Vec;

use sojourn_core::param::{rate, time, whole};
use sojourn_core::{Rate, Span, SpecError};

use crate::formula::{Formula, Output, output};

sojourn_core::params! {
    /// Several flows of BBRv1 alone in a deep buffer.
    pub struct Standing: "bbr-queue", "Queue that flows of BBRv1 hold in a deep buffer: one bandwidth-delay product (Scherrer et al., IMC 2022)" {
        pub flows: u32 = "2", whole(2, 10_000), "flows; one alone holds no queue between its probes";
        pub rate: Rate = "100mbit", rate(Rate::from_bps(1000), Rate::from_bps(1_000_000_000_000)), "rate of the bottleneck";
        pub rtt: Span = "30ms", time(Span::from_micros(1), Span::from_secs(100)), "round trip without queue";
        pub packet: u32 = "1514", whole(64, 65_535), "octets of a packet";
    }
}

sojourn_core::params! {
    /// Several flows of BBRv2 alone.
    pub struct Standing2: "bbr2-queue", "Queue that flows of BBRv2 hold at their fair equilibrium (Scherrer et al., IMC 2022)" {
        pub flows: u32 = "2", whole(1, 10_000), "flows";
        pub rate: Rate = "100mbit", rate(Rate::from_bps(1000), Rate::from_bps(1_000_000_000_000)), "rate of the bottleneck";
        pub rtt: Span = "30ms", time(Span::from_micros(1), Span::from_secs(100)), "round trip without queue";
        pub packet: u32 = "1514", whole(64, 65_535), "octets of a packet";
    }
}

const OUTPUTS: &[Output] = &[
    output("queue", "packets", "packets that wait"),
    output("delay", "ms", "how long they wait"),
    output("rtt", "ms", "round trip"),
    output("queue_bdp", "", "the queue in bandwidth-delay products"),
];

/// The queue as a multiple of the bandwidth-delay product.
fn standing(rate: Rate, rtt: Span, packet: u32, bdp: f64) -> Vec<f64> {
    let rtt = rtt.as_secs_f64();
    let packets = rate.as_bps() as f64 / 8.0 / f64::from(packet) * rtt;
    vec![bdp * packets, 1000.0 * bdp * rtt, 1000.0 * (1.0 + bdp) * rtt, bdp]
}

impl Formula for Standing {
    const OUTPUTS: &'static [Output] = OUTPUTS;

    fn evaluate(&self) -> Result<Vec<f64>, SpecError> {
        Ok(standing(self.rate, self.rtt, self.packet, 1.0))
    }
}

impl Formula for Standing2 {
    const OUTPUTS: &'static [Output] = OUTPUTS;

    fn evaluate(&self) -> Result<Vec<f64>, SpecError> {
        let n = f64::from(self.flows);
        Ok(standing(self.rate, self.rtt, self.packet, (n - 1.0) / (4.0 * n + 1.0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_of_version_2_hold_up_to_a_quarter() {
        let bdp = |flows| Standing2 { flows, ..Default::default() }.evaluate().expect("some")[3];
        assert_eq!(bdp(1), 0.0);
        assert!((bdp(2) - 1.0 / 9.0).abs() < 1e-12);
        assert!((bdp(10) - 9.0 / 41.0).abs() < 1e-12);
    }
}
