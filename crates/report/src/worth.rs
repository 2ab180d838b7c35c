//! Which differences are worth a decision.

/// The smallest difference worth a decision: a share of the value before, and at least an amount in
/// the metric's unit.
pub fn floor(metric: &str, unit: &str, before: f64) -> f64 {
    let (share, least) = match unit {
        "ms" => (0.05, 0.1),
        "Mbit/s" => (0.02, 0.01),
        "packets" | "bytes" => (0.10, 10.0),
        _ if metric.starts_with("mos") => (0.0, 0.1),
        // Shares, utilisation and indices run from 0 to 1; small losses matter too.
        _ if metric.contains("loss") || metric.contains("drop") => (0.10, 0.0005),
        _ if metric.contains("retransmit") || metric.contains("transfers") => (0.10, 10.0),
        _ => (0.02, 0.01),
    };
    (share * before.abs()).max(least)
}
