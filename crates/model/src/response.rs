//! Response functions: what a lone flow gets where packets are lost at random.

use alloc::vec;
use alloc::vec::Vec;

use sojourn_core::param::{Maybe, number, time, whole};
use sojourn_core::{Span, SpecError};

use crate::formula::{Formula, Output, output};

sojourn_core::params! {
    /// Reno's.
    pub struct SquareRoot: "square-root", "Reno's rate at a loss probability p (Mathis et al., CCR 27(3), 1997)" {
        pub p: f64 = "0.001", number(1e-12, 1.0), "probability that a packet is lost";
        pub rtt: Span = "40ms", time(Span::from_micros(1), Span::from_secs(100)), "round trip";
        pub mss: u32 = "1448", whole(1, 65_535), "octets of payload of a packet";
        pub b: u32 = "1", whole(1, 2), "packets that one acknowledgement's growth stands for; 2 if growth counts delayed acknowledgements";
    }
}

sojourn_core::params! {
    /// Reno's, with timeouts.
    pub struct Padhye: "padhye", "Reno's rate at a loss event rate p, with timeouts (Padhye et al., ToN 8(2), 2000, as in RFC 5348 section 3.1)" {
        pub p: f64 = "0.001", number(1e-12, 1.0), "loss event rate";
        pub rtt: Span = "40ms", time(Span::from_micros(1), Span::from_secs(100)), "R: round trip";
        pub rto: Option<Span> as Maybe<Span> = "", time(Span::from_micros(1), Span::from_secs(1000)), "t_RTO: retransmission timeout; by default four round trips, as in RFC 5348";
        pub mss: u32 = "1448", whole(1, 65_535), "s: octets of payload of a packet";
        pub b: u32 = "1", whole(1, 2), "packets that an acknowledgement stands for";
    }
}

sojourn_core::params! {
    /// CUBIC's.
    pub struct CubicResponse: "cubic-response", "CUBIC's rate at a loss probability p, with its Reno-friendly region (RFC 9438 section 5)" {
        pub p: f64 = "0.001", number(1e-12, 1.0), "probability that a packet is lost";
        pub rtt: Span = "40ms", time(Span::from_micros(1), Span::from_secs(100)), "round trip";
        pub mss: u32 = "1448", whole(1, 65_535), "octets of payload of a packet";
        pub c: f64 = "0.4", number(1e-3, 100.0), "C, packets a cubic second";
        pub beta: f64 = "0.7", number(0.01, 0.99), "what remains of the window after a loss";
    }
}

const RATE: Output = output("goodput", "Mbit/s", "payload a second");
const WINDOW: Output = output("window", "packets", "mean window");

/// Mbit/s.
fn rate(window: f64, mss: u32, rtt: Span) -> f64 {
    window * f64::from(mss) * 8.0 / rtt.as_secs_f64() / 1e6
}

impl Formula for SquareRoot {
    const OUTPUTS: &'static [Output] = &[RATE, WINDOW];

    fn evaluate(&self) -> Result<Vec<f64>, SpecError> {
        let window = libm::sqrt(3.0 / (2.0 * f64::from(self.b) * self.p));
        Ok(vec![rate(window, self.mss, self.rtt), window])
    }
}

impl Formula for Padhye {
    const OUTPUTS: &'static [Output] = &[RATE, WINDOW];

    fn evaluate(&self) -> Result<Vec<f64>, SpecError> {
        let (p, b) = (self.p, f64::from(self.b));
        let rtt = self.rtt.as_secs_f64();
        let rto = self.rto.map_or(4.0 * rtt, Span::as_secs_f64);
        let waits = rto * (3.0 * libm::sqrt(3.0 * b * p / 8.0)) * p * (1.0 + 32.0 * p * p);
        let window = rtt / (rtt * libm::sqrt(2.0 * b * p / 3.0) + waits);
        Ok(vec![rate(window, self.mss, self.rtt), window])
    }
}

impl Formula for CubicResponse {
    const OUTPUTS: &'static [Output] = &[
        RATE,
        WINDOW,
        output("cubic", "packets", "mean window of the cubic alone"),
        output("reno_friendly", "packets", "mean window of the Reno-friendly region alone"),
    ];

    fn evaluate(&self) -> Result<Vec<f64>, SpecError> {
        let Self { p, c, beta, .. } = *self;
        let factor = c * (3.0 + beta) / (4.0 * (1.0 - beta));
        let rtt = self.rtt.as_secs_f64();
        let cubic = libm::pow(factor, 0.25) * libm::pow(rtt / p, 0.75);
        // AIMD with α = 3(1 − β)/(1 + β) has Reno's mean window.
        let reno = libm::sqrt(3.0 / (2.0 * p));
        let window = cubic.max(reno);
        Ok(vec![rate(window, self.mss, self.rtt), window, cubic, reno])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows of RFC 9438's tables 1 and 2 in which CUBIC is not Reno-friendly, in packets.
    #[test]
    fn tables_of_rfc_9438() {
        let window = |p, rtt| {
            let rtt = Span::from_millis(rtt);
            CubicResponse { p, rtt, ..Default::default() }.evaluate().expect("an answer")
        };
        for (p, rtt, cubic) in [
            (1e-4, 100, 187.0),
            (1e-5, 100, 1054.0),
            (1e-6, 100, 5926.0),
            (1e-7, 100, 33_325.0),
            (1e-7, 10, 5926.0),
            (1e-8, 10, 33_325.0),
        ] {
            let values = window(p, rtt);
            assert!((values[2] / cubic - 1.0).abs() < 0.003, "{p} {rtt} ms: {values:?}");
        }
        let reno = SquareRoot { p: 1e-4, ..Default::default() }.evaluate().expect("an answer")[1];
        assert!((reno - 122.47).abs() < 0.01, "{reno}");
    }

    #[test]
    fn a_timeout_takes_four_round_trips_unless_said_otherwise() {
        let answer = |rto| {
            let rtt = Span::from_secs(1);
            Padhye { p: 0.1, rtt, rto, ..Default::default() }.evaluate().expect("an answer")
        };
        assert_eq!(answer(None), answer(Some(Span::from_secs(4))));
        assert!(answer(None)[0] < answer(Some(Span::from_secs(1)))[0]);
    }

    #[test]
    fn without_timeouts_both_of_reno_agree() {
        let p = 1e-8;
        let padhye = Padhye { p, ..Default::default() }.evaluate().expect("an answer")[1];
        let mathis = SquareRoot { p, ..Default::default() }.evaluate().expect("an answer")[1];
        assert!((padhye / mathis - 1.0).abs() < 1e-3, "{padhye} {mathis}");
    }
}
