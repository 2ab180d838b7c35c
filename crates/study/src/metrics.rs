//! The metrics that results hold and claims speak of, by name.

use std::collections::HashMap;
use std::sync::LazyLock;

use sojourn_core::SpecError;
use sojourn_metrics::{METRICS, Metric, Scope};

use crate::results::{Kind, MetricColumn, Values};

/// Endings that may be left out of a metric's name.
const SUFFIXES: [&str; 4] = ["_mbps", "_ms", "_pkts", "_bytes"];

pub(crate) fn kind_of(scope: Scope) -> Kind {
    match scope {
        Scope::Run => Kind::Run,
        Scope::Flow => Kind::Flow,
        Scope::Link => Kind::Queue,
    }
}

/// The columns of `runs.parquet`. A name that several scopes share is one column.
pub fn columns() -> Vec<MetricColumn> {
    let mut columns: Vec<MetricColumn> = Vec::new();
    for (metric, at) in METRICS.iter().zip(&KNOWN.columns) {
        if let Some(column) = columns.get_mut(*at) {
            column.doc =
                format!("{} ({}: {})", column.doc, kind_of(metric.scope).name(), metric.doc);
        } else {
            columns.push(MetricColumn {
                name: metric.name.to_owned(),
                unit: metric.unit.to_owned(),
                doc: metric.doc.to_owned(),
            });
        }
    }
    columns
}

/// The table of metrics, looked up by name.
struct Known {
    /// The column of each metric in the table's order; names get theirs as they first appear.
    columns: Vec<usize>,
    /// Of each name, the metrics of the scopes.
    by_name: HashMap<&'static str, [Option<&'static Metric>; 3]>,
    /// Of each scope, the metrics and their columns, in the columns' order. Each run asks for them in each of its rows.
    of_scopes: [Vec<(usize, &'static Metric)>; 3],
}

static KNOWN: LazyLock<Known> = LazyLock::new(|| {
    let mut first = HashMap::new();
    let mut by_name = HashMap::<_, [Option<_>; 3]>::new();
    let mut of_scopes: [Vec<_>; 3] = Default::default();
    let columns = METRICS.iter().map(|metric| {
        let count = first.len();
        let at = *first.entry(metric.name).or_insert(count);
        by_name.entry(metric.name).or_default()[metric.scope as usize] = Some(metric);
        of_scopes[metric.scope as usize].push((at, metric));
        at
    });
    let columns = columns.collect();
    of_scopes.iter_mut().for_each(|metrics| metrics.sort_by_key(|(at, _)| *at));
    Known { columns, by_name, of_scopes }
});

/// What is measured of one row, in the order of [`columns`]. Numbers that are not finite count as missing.
pub(crate) fn values(scope: Scope, of: impl Fn(&Metric) -> Option<f64>) -> Values {
    let metrics = KNOWN.of_scopes[scope as usize].iter();
    let known = metrics.filter_map(|(at, metric)| Some((*at, of(metric)?)));
    Values::of_known(KNOWN.by_name.len(), known.filter(|(_, value)| value.is_finite()))
}

/// A metric of a kind of row, by its name with or without the unit: `goodput`, `rtt_p50_ms`.
///
/// # Errors
/// No such metric, or several; names similar ones.
pub fn find(name: &str, kinds: &[Kind]) -> Result<&'static Metric, SpecError> {
    if let Some(metric) = known(name, kinds) {
        return Ok(metric);
    }
    let of_kinds = || METRICS.iter().filter(|metric| kinds.contains(&kind_of(metric.scope)));
    let matching: Vec<&Metric> = of_kinds().filter(|metric| short(metric.name) == name).collect();
    match matching[..] {
        [metric] => Ok(metric),
        // Flows and queues may have the same one.
        [metric, ref others @ ..] if others.iter().all(|other| other.name == metric.name) => {
            Ok(metric)
        }
        [] => {
            let error = SpecError::new(format!("no metric is named '{name}'"));
            let all = || of_kinds().flat_map(|metric| [short(metric.name), metric.name]);
            let likely: Vec<&str> =
                of_kinds().map(|metric| metric.name).filter(|other| is_like(name, other)).collect();
            let error = error.near(name, all());
            // A list of the whole table would hide the message.
            Err(match likely.is_empty() {
                true => error.allow(["what `sojourn list metrics` prints"]),
                false => error.allow(likely),
            })
        }
        _ => Err(SpecError::new(format!("'{name}' is one of several metrics"))
            .allow(matching.iter().map(|metric| metric.name))),
    }
}

/// A metric of a kind of row, by its name with the unit.
pub fn known(name: &str, kinds: &[Kind]) -> Option<&'static Metric> {
    let of_scopes = KNOWN.by_name.get(name)?.iter().flatten();
    of_scopes.copied().find(|metric| kinds.contains(&kind_of(metric.scope)))
}

/// Without the unit.
pub fn short(name: &str) -> &str {
    SUFFIXES.iter().find_map(|suffix| name.strip_suffix(suffix)).unwrap_or(name)
}

/// Whether they begin with the same word.
fn is_like(name: &str, other: &str) -> bool {
    name.split('_').next() == other.split('_').next()
}

/// Whether more is better; `None` if that depends on the reader's aim.
pub fn more_is_better(metric: &str) -> Option<bool> {
    const MORE: &[&str] = &[
        "goodput",
        "received",
        "acked",
        "throughput",
        "utilisation",
        "jain",
        "min_max",
        "mos",
        "fps",
        "frames_rendered",
    ];
    const LESS: &[&str] = &[
        "rtt",
        "srtt",
        "owd",
        "ping",
        "sojourn",
        "loss",
        "lost",
        "drop",
        "stall",
        "freeze",
        "pause",
        "nack",
        "key_requests",
        "buffered",
        "audio_delay",
        "audio_buffered",
        "audio_target",
        "audio_conceal",
        "audio_removed",
        "audio_inserted",
        "audio_discarded",
        "av_offset_abs",
        "av_offset_noticed",
        "jitter",
        "ipdv",
        "pdv",
        "completion",
        "fct",
        "slowdown",
        "transfers_unfinished",
        "transfers_refused",
        "retransmit",
        "timeouts",
        "spurious",
        "frame_delay",
        "frame_gap",
        "connect",
        "queue",
    ];
    let metric = metric.strip_prefix("reported_").unwrap_or(metric);
    if LESS.iter().any(|word| metric.starts_with(word)) || metric.contains("loss") {
        return Some(false);
    }
    MORE.iter().any(|word| metric.contains(word)).then_some(true)
}

/// How the values of a group's flows become one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pooling {
    /// Amounts: rates, packets, bytes, shares of the whole.
    Sum,
    /// The least of minima.
    Least,
    /// The largest of maxima.
    Largest,
    /// Everything else: delays, windows, scores.
    Mean,
}

impl Pooling {
    /// Of a metric or a column of the time series with this name and unit.
    pub fn of(name: &str, unit: &str) -> Self {
        let name = short(name);
        let last = name.rsplit('_').next().unwrap_or(name);
        let is_quantile = last.strip_prefix('p').is_some_and(|digits| {
            !digits.is_empty() && digits.chars().all(|digit| digit.is_ascii_digit())
        });
        match last {
            "min" => Self::Least,
            "max" => Self::Largest,
            "mean" => Self::Mean,
            _ if is_quantile => Self::Mean,
            _ if matches!(unit, "Mbit/s" | "packets" | "bytes") => Self::Sum,
            "share" if name == "share" => Self::Sum,
            "count" | "timeouts" | "spurious" | "completions" | "complete" | "lost" | "started"
            | "completed" | "unfinished" | "refused" | "n" | "of" => Self::Sum,
            _ => Self::Mean,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_metric_is_found_with_and_without_its_unit() {
        let name = |name| find(name, &[Kind::Flow]).map(|metric| metric.name);
        assert_eq!(name("goodput"), Ok("goodput_mbps"));
        assert_eq!(name("rtt_p50_ms"), Ok("rtt_p50_ms"));
        assert!(name("goodputt").unwrap_err().to_string().contains("did you mean 'goodput'"));
        let error = find("queue_max", &[Kind::Queue]).unwrap_err().to_string();
        assert!(error.contains("queue_max_pkts, queue_max_bytes"), "{error}");
    }

    #[test]
    fn rates_and_scores_are_good_and_delays_and_losses_are_bad() {
        for name in ["goodput_mbps", "rendered_fps", "mos", "harmonic_fps"] {
            assert_eq!(more_is_better(name), Some(true), "{name}");
        }
        for name in ["rtt_p95_ms", "srtt_p50_ms", "loss_share", "freeze_ms", "frame_delay_p95_ms"] {
            assert_eq!(more_is_better(name), Some(false), "{name}");
        }
        for name in ["cwnd_p50_pkts", "pacing_p50_mbps", "sent_packets", "probe_rtt_count", "share"]
        {
            assert_eq!(more_is_better(name), None, "{name}");
        }
    }

    #[test]
    fn no_column_appears_twice() {
        let columns = columns();
        for (index, column) in columns.iter().enumerate() {
            assert!(columns[..index].iter().all(|other| other.name != column.name));
        }
    }

    #[test]
    fn amounts_of_a_group_add_up_and_delays_do_not() {
        let pooling = |name| {
            let metric = find(name, &[Kind::Flow]).unwrap();
            Pooling::of(metric.name, metric.unit)
        };
        assert_eq!(pooling("goodput"), Pooling::Sum);
        assert_eq!(pooling("retransmits"), Pooling::Sum);
        assert_eq!(pooling("share"), Pooling::Sum);
        assert_eq!(pooling("retransmit_share"), Pooling::Mean);
        assert_eq!(pooling("rtt_p50"), Pooling::Mean);
        assert_eq!(pooling("rtt_max"), Pooling::Largest);
        assert_eq!(pooling("rtt_min"), Pooling::Least);
        assert_eq!(pooling("pacing_p50"), Pooling::Mean);
    }
}
