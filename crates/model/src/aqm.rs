//! Queues in closed form: the coupling of DualPI2, M/D/1, and where NADA comes to rest.

use alloc::format;
use alloc::vec;
use alloc::vec::Vec;

use sojourn_core::param::{number, rate, time, whole};
use sojourn_core::{Rate, Span, SpecError};

use crate::formula::{Formula, Output, output};

sojourn_core::params! {
    /// Two queues whose probabilities follow from one.
    pub struct Coupling: "dualpi2-coupling", "Probabilities and rates under DualQ Coupled AQM (RFC 9332 section 2.1)" {
        pub p: f64 = "0.05", number(1e-9, 1.0), "p': base probability";
        pub k: f64 = "2", number(0.01, 100.0), "coupling factor";
        pub rtt_l: Span = "10ms", time(Span::from_micros(1), Span::from_secs(100)), "round trip of the L4S flow";
        pub rtt_c: Span = "10ms", time(Span::from_micros(1), Span::from_secs(100)), "round trip of the Classic flow";
        pub packet: u32 = "1500", whole(64, 65_535), "octets of a packet";
    }
}

impl Formula for Coupling {
    const OUTPUTS: &'static [Output] = &[
        output("ratio", "", "rate of the L4S flow over the rate of the Classic one"),
        output("p_l", "", "probability of marks in the L4S queue, k·p'"),
        output("p_c", "", "probability of drops or marks in the Classic queue, p'²"),
        output("rate_l", "Mbit/s", "a flow whose window is 2/p_l"),
        output("rate_c", "Mbit/s", "a Reno-like flow, whose window is √(3/2)/√p_c"),
    ];

    fn evaluate(&self) -> Result<Vec<f64>, SpecError> {
        let p_l = (self.k * self.p).min(1.0);
        let p_c = self.p * self.p;
        let rate = |window: f64, rtt: Span| {
            window * f64::from(self.packet) * 8.0 / rtt.as_secs_f64() / 1e6
        };
        let (l, c) = (rate(2.0 / p_l, self.rtt_l), rate(libm::sqrt(1.5 / p_c), self.rtt_c));
        Ok(vec![l / c, p_l, p_c, l, c])
    }
}

sojourn_core::params! {
    /// A queue with random arrivals and equal packets.
    pub struct Md1: "md1", "Mean wait of M/D/1: Poisson arrivals, equal packets (Pollaczek and Khinchine)" {
        pub load: f64 = "0.8", number(0.0, 0.999_999), "arrivals over what the link can carry";
        pub rate: Rate = "10mbit", rate(Rate::from_bps(1000), Rate::from_bps(1_000_000_000_000)), "rate of the link";
        pub packet: u32 = "1514", whole(1, 65_535), "octets of a packet";
    }
}

impl Formula for Md1 {
    const OUTPUTS: &'static [Output] = &[
        output("wait", "ms", "mean time in the queue, without the transmission"),
        output("sojourn", "ms", "mean time with the transmission"),
        output("queue", "packets", "mean number that wait"),
    ];

    fn evaluate(&self) -> Result<Vec<f64>, SpecError> {
        let service = f64::from(self.packet) * 8.0 / self.rate.as_bps() as f64;
        let wait = service * self.load / (2.0 * (1.0 - self.load));
        Ok(vec![1000.0 * wait, 1000.0 * (wait + service), wait / service * self.load])
    }
}

sojourn_core::params! {
    /// One flow at its equilibrium.
    pub struct Nada: "nada-delay", "Queueing delay at which NADA comes to rest at a rate (RFC 8698 section 4.3)" {
        pub rate: Rate = "1mbit", rate(Rate::from_bps(1000), Rate::from_bps(1_000_000_000_000)), "r: rate of the flow";
        pub rmax: Rate = "1.5mbit", rate(Rate::from_bps(1000), Rate::from_bps(1_000_000_000_000)), "RMAX: its largest rate";
        pub prio: f64 = "1", number(1e-3, 1000.0), "PRIO: weight of priority";
        pub xref: Span = "10ms", time(Span::from_micros(1), Span::from_secs(10)), "XREF: reference congestion level";
    }
}

impl Formula for Nada {
    const OUTPUTS: &'static [Output] = &[output("delay", "ms", "queueing delay")];

    fn evaluate(&self) -> Result<Vec<f64>, SpecError> {
        if self.rate > self.rmax {
            let problem = format!("rate {} is above rmax {}", self.rate, self.rmax);
            return Err(SpecError::new(problem).allow([format!("rates up to {}", self.rmax)]));
        }
        let ratio = self.rmax.as_bps() as f64 / self.rate.as_bps() as f64;
        Ok(vec![1000.0 * self.prio * self.xref.as_secs_f64() * ratio])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_coupling_of_two_nearly_equals_rates() {
        // 2/(2p') over √1.5/p' is 1/√1.5.
        let ratio = Coupling::default().evaluate().expect("an answer")[0];
        assert!((ratio - 1.0 / libm::sqrt(1.5)).abs() < 1e-12, "{ratio}");
    }

    #[test]
    fn no_rate_of_nada_is_above_its_largest() {
        let rates = |rate, rmax| {
            let of = |mbps: u64| Rate::from_bps(1_000_000 * mbps);
            Nada { rate: of(rate), rmax: of(rmax), ..Default::default() }.evaluate()
        };
        let error = rates(3, 1).expect_err("above").to_string();
        assert!(error.contains("3mbit") && error.contains("1mbit"), "{error}");
        assert_eq!(rates(1, 1), Ok(vec![10.0]));
    }

    #[test]
    fn at_half_a_load_half_a_packet_is_waited_for() {
        let md1 = Md1 { load: 0.5, rate: Rate::from_bps(8_000_000), packet: 1000 };
        // A packet takes 1 ms: the wait is ρ/(2(1 − ρ)) of it.
        let values = md1.evaluate().expect("an answer");
        assert!((values[0] - 0.5).abs() < 1e-12 && (values[1] - 1.5).abs() < 1e-12, "{values:?}");
    }
}
