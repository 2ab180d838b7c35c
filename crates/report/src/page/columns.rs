//! Which metrics a table shows: those that matter for an application.

use std::collections::BTreeSet;

use sojourn_metrics::{sample_columns, survival_columns};
use sojourn_study::metrics;
use sojourn_study::results::Kind;

use crate::data::{Data, Extent, Subject};
use crate::names;

/// The metrics that people ask for first, for each kind of thing, whatever the application.
pub(crate) const USUAL: &[&str] = &[
    "goodput_mbps",
    "share",
    "rtt_p50_ms",
    "rtt_p95_ms",
    "rtt_p99_ms",
    "owd_p95_ms",
    "owd_p99_ms",
    "ping_p50_ms",
    "ping_p95_ms",
    "ping_p99_ms",
    "retransmits",
    "mos",
    "loss_share",
    "freeze_ms",
    "pause_ms",
    "stall100_ms",
    "frame_delay_p95_ms",
    "completion_mean_ms",
    "completion_p95_ms",
    "completions",
    "completion_km_p50_ms",
    "fct_p50_ms",
    "fct_p95_ms",
    "fct_km_p50_ms",
    "slowdown_p95",
    "transfers_unfinished",
    "throughput_mbps",
    "utilisation",
    "sojourn_p50_ms",
    "sojourn_p95_ms",
    "sojourn_p99_ms",
    "sojourn_max_ms",
    "queue_mean_pkts",
    "drops",
    "drop_share",
    "marks",
    "goodput_sum_mbps",
    "jain",
    "min_max",
];

const PING: &[&str] =
    &["ping_p50_ms", "ping_p95_ms", "ping_p99_ms", "ping_max_ms", "ping_sent", "ping_lost"];
const DATAGRAMS: &[&str] =
    &["goodput_mbps", "loss_share", "owd_p50_ms", "owd_p95_ms", "owd_p99_ms", "jitter_ms", "mos"];
const FRAMES: &[&str] = &[
    "frame_delay_p50_ms",
    "frame_delay_p95_ms",
    "frame_delay_p99_ms",
    "frame_gap_p99_ms",
    "stall100_ms",
    "freeze_ms",
    "pause_ms",
    "loss_share",
    "goodput_mbps",
];
const CALL: &[&str] = &[
    "frame_delay_p50_ms",
    "frame_delay_p95_ms",
    "freeze_ms",
    "pause_ms",
    "rendered_fps",
    "received_mbps",
    "loss_share",
    "mos_voice",
    "av_offset_abs_p95_ms",
    "owd_p95_ms",
];
/// Pages and requests: how long somebody waits comes first.
const REQUESTS: &[&str] = &[
    "fct_p50_ms",
    "fct_km_p50_ms",
    "fct_p95_ms",
    "fct_p99_ms",
    "transfers_started",
    "goodput_mbps",
    "rtt_p50_ms",
    "rtt_p95_ms",
];
/// A test of responsiveness: what it found comes first.
const RPM: &[&str] = &[
    "rpm",
    "rpm_foreign",
    "rpm_loaded",
    "rpm_confidence",
    "rpm_connections",
    "rpm_at_ms",
    "goodput_mbps",
];
const ARRIVALS: &[&str] = &[
    "fct_p50_ms",
    "fct_km_p50_ms",
    "fct_p95_ms",
    "fct_small_p95_ms",
    "fct_large_p95_ms",
    "slowdown_p95",
    "transfers_started",
    "goodput_mbps",
];
/// A transfer of a limited size: when it was done comes first.
const TRANSFER: &[&str] = &[
    "completion_mean_ms",
    "completion_km_p50_ms",
    "completion_max_ms",
    "completions",
    "goodput_mbps",
    "rtt_p50_ms",
    "rtt_p95_ms",
    "retransmits",
];
const BULK: &[&str] = &[
    "goodput_mbps",
    "share",
    "rtt_p50_ms",
    "rtt_p95_ms",
    "rtt_p99_ms",
    "owd_p95_ms",
    "retransmits",
];

/// For runs that last until their transfers are done.
const RUN_UNTIL: &[&str] =
    &["end_ms", "transfers_done", "transfers_begun", "goodput_sum_mbps", "jain", "min_max"];

/// What hardly any run has. It has a column only where a run does.
const RARE: &[&str] = &["pause_ms"];

/// The most columns that fit.
const MOST: usize = 8;

/// The things in one table, and its columns.
pub(crate) struct Block<'a> {
    /// `bulk`, `ping`, `queue`.
    pub(crate) heading: String,
    pub(crate) subjects: Vec<&'a Subject>,
    pub(crate) metrics: Vec<&'static str>,
}

/// A block for each application, one for queues and one for runs, without columns in which none of
/// its things has a value in the extent of the results.
pub(crate) fn blocks<'a>(data: &'a Data<'_>, extent: &dyn Extent) -> Vec<Block<'a>> {
    let mut blocks: Vec<Block<'a>> = Vec::new();
    for kind in [Kind::Flow, Kind::Queue, Kind::Run] {
        for subject in data.of_kind(kind) {
            let (heading, wanted) = wanted(data, extent, subject);
            let same =
                |block: &&mut Block<'_>| block.heading == heading && block.subjects[0].kind == kind;
            match blocks.iter_mut().find(same) {
                Some(block) => block.subjects.push(subject),
                None => blocks.push(Block {
                    heading,
                    subjects: vec![subject],
                    metrics: wanted.to_vec(),
                }),
            }
        }
    }
    for block in &mut blocks {
        let subjects = &block.subjects;
        block
            .metrics
            .retain(|metric| subjects.iter().any(|subject| shows(extent, subject, metric)));
        block.metrics.truncate(MOST);
    }
    blocks.retain(|block| !block.metrics.is_empty());
    blocks
}

/// The metrics of which [`blocks`] are made, and those that say which of their samples are missing.
pub(crate) fn read() -> BTreeSet<String> {
    let lists =
        [USUAL, PING, DATAGRAMS, FRAMES, CALL, REQUESTS, RPM, ARRIVALS, TRANSFER, BULK, RUN_UNTIL];
    with_counts(&lists.concat())
}

/// The same of these metrics.
pub(crate) fn with_counts(metrics: &[&str]) -> BTreeSet<String> {
    let mut all: BTreeSet<String> = metrics.iter().map(|metric| (*metric).to_owned()).collect();
    all.extend(all.clone().iter().filter_map(|metric| plainly_counted(metric)));
    for metric in all.clone() {
        all.extend(counts(&metric).map(str::to_owned));
    }
    all
}

/// The metrics that say how many samples of this one there are.
fn counts(metric: &str) -> impl Iterator<Item = &'static str> {
    let counts = [sample_columns(metric), survival_columns(metric)];
    counts.into_iter().flatten().flat_map(|(n, of)| [n, of])
}

/// The metric that says whether an estimate by Kaplan and Meier is needed; `None` for what is none.
fn plainly_counted(metric: &str) -> Option<String> {
    metric.split_once("_km_").map(|(family, _)| format!("{family}_mean_ms"))
}

/// Whether to show the metric for the subject. If all transfers ended, Kaplan and Meier's estimate
/// equals plain counting; so it is shown only where some had not ended.
pub(crate) fn shows(extent: &dyn Extent, subject: &Subject, metric: &str) -> bool {
    match plainly_counted(metric) {
        _ if RARE.contains(&metric) => extent.occurs(subject, metric),
        Some(plain) => extent.has(subject, metric) && extent.lacks(subject, &plain),
        None => extent.was_asked(subject, metric),
    }
}

fn wanted(
    data: &Data<'_>,
    extent: &dyn Extent,
    subject: &Subject,
) -> (String, &'static [&'static str]) {
    if subject.kind == Kind::Run && data.plan.scenarios.iter().any(|one| one.until.is_some()) {
        return (subject.kind.name().to_owned(), RUN_UNTIL);
    }
    if subject.kind != Kind::Flow {
        return (subject.kind.name().to_owned(), USUAL);
    }
    let app = data.app(subject);
    if may_transfer(app) && extent.was_asked(subject, "completion_mean_ms") {
        return ("transfer".to_owned(), TRANSFER);
    }
    (if app.is_empty() { "flow".to_owned() } else { app.to_owned() }, of_app(app))
}

/// Whether an application may be a transfer of a limited size.
fn may_transfer(app: &str) -> bool {
    matches!(app, "bulk" | "on_off")
}

fn of_app(app: &str) -> &'static [&'static str] {
    match app {
        "ping" => PING,
        "udp" => DATAGRAMS,
        "frames" => FRAMES,
        "arrivals" => ARRIVALS,
        "call" => CALL,
        "page" | "requests" => REQUESTS,
        "rpm" => RPM,
        "bulk" | "on_off" => BULK,
        _ => USUAL,
    }
}

/// The metrics that [`blocks`] may show of a subject, whatever its results are, and those that decide which it shows.
pub(crate) fn candidates(data: &Data<'_>, subject: &Subject) -> BTreeSet<&'static str> {
    let app = data.app(subject);
    let lists = match subject.kind {
        Kind::Run => [USUAL, RUN_UNTIL],
        Kind::Queue => [USUAL, &[]],
        Kind::Flow if may_transfer(app) => [BULK, TRANSFER],
        Kind::Flow => [of_app(app), &[]],
    };
    let of_kind = |name: &&str| metrics::known(name, &[subject.kind]).map(|metric| metric.name);
    let lists = lists.concat();
    lists.iter().filter_map(of_kind).chain(deciding(&lists, subject.kind)).collect()
}

/// The metrics that decide which of these [`shows`] has.
pub(crate) fn deciding(of: &[&str], kind: Kind) -> impl Iterator<Item = &'static str> {
    let plain = move |metric: &&str| Some(metrics::known(&plainly_counted(metric)?, &[kind])?.name);
    of.iter().filter_map(plain)
}

/// A column by its name, with or without unit, or as claims write it: `goodput(cubic)`.
pub(crate) fn resolve(data: &Data<'_>, name: &str) -> (String, Option<String>) {
    let (name, of) = match name.split_once('(') {
        Some((name, of)) => (name.trim(), Some(of.trim_end_matches(')').trim().to_owned())),
        None => (name, None),
    };
    let columns = &data.table.metrics;
    let known = columns
        .iter()
        .find(|column| *column == name)
        .or_else(|| columns.iter().find(|column| names::split_unit(column).0 == name));
    (known.map_or(name, String::as_str).to_owned(), of)
}
