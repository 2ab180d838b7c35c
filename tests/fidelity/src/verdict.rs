//! Measured and simulated side by side, with the bounds that simulation must keep.

use std::fmt;

use crate::measured::Situation;
use crate::simulated::Simulated;

/// One number of a situation.
#[derive(Clone, Debug)]
pub struct Row {
    pub what: String,
    pub measured: f64,
    pub simulated: f64,
    /// Largest and smallest value allowed.
    pub bounds: (f64, f64),
}

impl Row {
    pub fn is_inside(&self) -> bool {
        (self.bounds.0..=self.bounds.1).contains(&self.simulated)
    }

    fn within(what: impl Into<String>, measured: f64, simulated: f64, slack: f64) -> Self {
        let bounds = (measured - slack, measured + slack);
        Self { what: what.into(), measured, simulated, bounds }
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let difference = self.simulated - self.measured;
        let percent = if self.measured == 0.0 { 0.0 } else { 100.0 * difference / self.measured };
        write!(
            f,
            "{:<22} {:>10.3} {:>10.3} {:>+9.3} {:>+7.1}%  {}",
            self.what,
            self.measured,
            self.simulated,
            difference,
            percent,
            if self.is_inside() { "" } else { "OUT" }
        )
    }
}

/// All numbers of a situation.
#[derive(Clone, Debug)]
pub struct Comparison {
    pub id: String,
    pub rows: Vec<Row>,
}

impl Comparison {
    pub fn is_inside(&self) -> bool {
        self.rows.iter().all(Row::is_inside)
    }
}

/// Total goodput within 1.5 %; each congestion control's share within the larger of 10 % of its
/// value and 2 % of the rate; medians of ping, smoothed round-trip time and one-way delay within
/// the larger of 7 % and 1 ms; retransmissions within 20 %, or a factor of 2 below 250.
pub fn compare(situation: &Situation, simulated: &Simulated) -> Comparison {
    let mut rows = Vec::new();
    let summary = &situation.summary;
    let rate_mbps = situation.params.rate_bps / 1e6;
    let measured_total: f64 = summary.by_cc.values().map(|group| group.goodput_mbps_sum.mean).sum();
    let simulated_total: f64 = simulated.by_cc.values().map(|group| group.goodput_mbps).sum();
    rows.push(Row::within("goodput", measured_total, simulated_total, 0.015 * measured_total));
    for (cc, group) in &summary.by_cc {
        let Some(other) = simulated.by_cc.get(cc) else {
            continue;
        };
        let goodput = group.goodput_mbps_sum.mean;
        let slack = (0.1 * goodput).max(0.02 * rate_mbps);
        rows.push(Row::within(format!("{cc} goodput"), goodput, other.goodput_mbps, slack));
        if let Some(srtt) = group.srtt_p50_ms {
            rows.push(delay(format!("{cc} srtt p50"), srtt.mean, other.srtt_p50_ms));
        }
        rows.push(retransmissions(cc, group.retransmits_sum.mean, other.retransmits));
    }
    if let Some(p50) = summary.ping_rtt_ms.as_ref().and_then(|ping| ping.get("p50")) {
        rows.push(delay("ping p50".into(), p50.mean, simulated.ping_p50_ms));
    }
    if let Some(p50) = summary.udp_owd_ms.as_ref().and_then(|udp| udp.get("p50")) {
        rows.push(delay("udp owd p50".into(), p50.mean, simulated.udp_owd_p50_ms));
    }
    Comparison { id: situation.id.clone(), rows }
}

fn delay(what: String, measured: f64, simulated: f64) -> Row {
    Row::within(what, measured, simulated, (0.07 * measured).max(1.0))
}

fn retransmissions(cc: &str, measured: f64, simulated: f64) -> Row {
    let bounds = if measured < 250.0 {
        (measured / 2.0, measured * 2.0)
    } else {
        (measured * 0.8, measured * 1.2)
    };
    Row { what: format!("{cc} retransmits"), measured, simulated, bounds }
}
