//! What metrics and columns are called on a page.

use sojourn_study::results::{Kind, Plan};

use crate::number::{self, PERCENT};

/// `rtt_p95_ms` → `RTT, 95th percentile`.
pub(crate) fn title(metric: &str) -> String {
    let (stem, _) = split_unit(metric);
    if let Some(known) = known(stem) {
        return known.to_owned();
    }
    for (suffix, words) in QUANTILES {
        if let Some(prefix) = stem.strip_suffix(suffix) {
            return format!("{}, {words}", base(prefix));
        }
    }
    base(stem)
}

/// With a unit: `RTT, 95th percentile (ms)`.
pub(crate) fn axis_in(metric: &str, unit: &str) -> String {
    if unit.is_empty() { title(metric) } else { format!("{} ({unit})", title(metric)) }
}

/// The unit that the plan states, otherwise that of the suffix.
pub(crate) fn unit<'a>(plan: &'a Plan, metric: &str) -> &'a str {
    match plan.metrics.iter().find(|column| column.name == metric) {
        Some(column) => &column.unit,
        None => split_unit(metric).1,
    }
}

/// The unit in which values as large as `largest` are easy to read, and the factor that converts to it.
/// Shares are percentages.
pub(crate) fn stepped<'a>(plan: &'a Plan, metric: &str, largest: f64) -> (f64, &'a str) {
    match percentage(plan, metric) {
        Some(percentage) => percentage,
        None => number::stepped(largest, unit(plan, metric)),
    }
}

/// The factor and unit that make a percentage of a share; `None` of another metric.
pub(crate) fn percentage(plan: &Plan, metric: &str) -> Option<(f64, &'static str)> {
    (is_share(metric) && unit(plan, metric).is_empty()).then_some((100.0, PERCENT))
}

/// Whether the metric is a part of a whole, from 0 to 1.
pub(crate) fn is_share(metric: &str) -> bool {
    metric == "share" || metric == "utilisation" || metric.ends_with("_share")
}

/// Removes the unit from the end of a name.
pub(crate) fn split_unit(name: &str) -> (&str, &'static str) {
    for (suffix, unit) in UNITS {
        if let Some(stem) = name.strip_suffix(suffix) {
            return (stem, unit);
        }
    }
    (name, "")
}

pub(crate) fn kind(kind: Kind) -> &'static str {
    kind.name()
}

pub(crate) fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or(String::new(), |first| first.to_uppercase().chain(chars).collect())
}

const UNITS: &[(&str, &str)] = &[
    ("_mbps", "Mbit/s"),
    ("_ms", "ms"),
    ("_us", "µs"),
    ("_s", "s"),
    ("_pkts", "packets"),
    ("_packets", "packets"),
    ("_bytes", "bytes"),
];

const QUANTILES: &[(&str, &str)] = &[
    ("_min", "least"),
    ("_mean", "mean"),
    ("_p1", "1st percentile"),
    ("_p5", "5th percentile"),
    ("_p25", "25th percentile"),
    ("_p50", "median"),
    ("_p75", "75th percentile"),
    ("_p95", "95th percentile"),
    ("_p99", "99th percentile"),
    ("_p999", "99.9th percentile"),
    ("_max", "largest"),
];

fn base(stem: &str) -> String {
    known(stem).map_or_else(|| stem.replace('_', " "), str::to_owned)
}

fn known(stem: &str) -> Option<&'static str> {
    Some(match stem {
        "rtt" => "RTT",
        "srtt" => "smoothed RTT",
        "owd" => "one-way delay",
        "sojourn" => "queue sojourn",
        "ping" => "ping",
        "fct" => "flow completion time",
        "fct_small" => "flow completion time up to 100 kB",
        "fct_medium" => "flow completion time of 100 kB to 1 MB",
        "fct_large" => "flow completion time above 1 MB",
        "cwnd" => "cwnd",
        "mos" => "MOS",
        "loss_share" => "share of packets lost",
        "drop_share" => "share of packets dropped",
        "freeze" => "time frozen",
        "pause" => "time without a picture for more than 5 s",
        "stall33" => "gaps between frames above 33 ms",
        "stall50" => "gaps between frames above 50 ms",
        "stall100" => "gaps between frames above 100 ms",
        "stall150" => "gaps between frames above 150 ms",
        "stall200" => "gaps between frames above 200 ms",
        "stall500" => "gaps between frames above 500 ms",
        "completion" => "completion time",
        "completion_km" => "completion time by Kaplan–Meier",
        "fct_km" => "flow completion time by Kaplan–Meier",
        "transfers_unfinished" => "transfers not finished",
        "jain" => "Jain's index",
        "jain_1s" => "Jain's index of single seconds",
        "jain_1s_after_drop" => "Jain's index of seconds after a drop of capacity",
        "jain_1s_apart" => "Jain's index of other seconds",
        "goodput_sum" => "goodput of all flows",
        "tcp_goodput_sum" => "goodput of TCP flows",
        "min_max" => "least over largest goodput",
        "queue" => "backlog",
        "bw" => "bandwidth estimate",
        "pacing" => "pacing rate",
        "delivery" => "delivery rate",
        "inflight" => "in flight",
        "received" => "received rate",
        "target" => "target rate",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_read_as_words() {
        assert_eq!(title("rtt_p95_ms"), "RTT, 95th percentile");
        assert_eq!(title("goodput_mbps"), "goodput");
        assert_eq!(title("sojourn_p999_ms"), "queue sojourn, 99.9th percentile");
        assert_eq!(title("jain"), "Jain's index");
        assert_eq!(title("min_max"), "least over largest goodput");
    }

    #[test]
    fn shares_are_told_apart_from_indices() {
        assert!(is_share("loss_share") && is_share("share") && is_share("utilisation"));
        assert!(!is_share("jain") && !is_share("mos") && !is_share("goodput_mbps"));
    }
}
