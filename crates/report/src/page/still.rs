//! A run over time as a still figure, and its key.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;

use sojourn_study::results::{Kind, PlannedScenario, Series, StepValues};

use super::figures::{ALONE, Drawing, PHONE};
use crate::data::Data;
use crate::names;
use crate::svg::{Key, Panel, Size, Trace, timeline};

/// Colours of flows and queues in still figures, of those named in `of` if there are any.
pub(crate) fn key(data: &Data<'_>, scenario: usize, of: &[String]) -> Key {
    let planned = &data.plan.scenarios[scenario];
    let mut entries: Vec<(Option<usize>, usize, String)> = Vec::new();
    let is_shown = |names: &[&String]| of.is_empty() || names.iter().any(|name| of.contains(name));
    for flow in planned.flows.iter().filter(|flow| is_shown(&[&flow.name, &flow.group])) {
        if entries.len() < MOST_TRACES && !entries.iter().any(|(_, _, text)| *text == flow.group) {
            let colour = data.colour_of_flow(&flow.group);
            entries.push((Some(colour), colour, flow.group.clone()));
        }
    }
    let queues = planned.queues.iter().enumerate().take(4);
    for (at, queue) in queues.filter(|(_, queue)| is_shown(&[&queue.name])) {
        entries.push((Some(at + 4), at + 4, format!("{} (queue)", queue.name)));
    }
    Key(entries)
}

/// A flow's position in its group; the flows of a group share a colour and differ in its shade.
pub(crate) fn member(scenario: &PlannedScenario, flow: &str) -> usize {
    let Some(at) = scenario.flows.iter().position(|one| one.name == flow) else { return 0 };
    let group = &scenario.flows[at].group;
    scenario.flows[..at].iter().filter(|one| one.group == *group).count()
}

/// Quantities that share a panel, if at least one of them is known.
struct Kindred {
    title: &'static str,
    /// The panels that are drawn unless a view asks for others.
    columns: &'static [&'static str],
    impulses: bool,
    ribbon: bool,
}

const fn lines(title: &'static str, columns: &'static [&'static str]) -> Kindred {
    Kindred { title, columns, impulses: false, ribbon: false }
}

const PANELS: &[Kindred] = &[
    lines(
        "rate (Mbit/s)",
        &[
            "goodput_mbps",
            "throughput_mbps",
            "delivery_mbps",
            "pacing_mbps",
            "bw_mbps",
            "capacity_mbps",
        ],
    ),
    lines(
        "RTT (ms)",
        &["rtt_max_ms", "rtt_p95_ms", "rtt_p50_ms", "rtt_mean_ms", "srtt_ms", "min_rtt_ms"],
    ),
    lines("one-way delay (ms)", &["owd_max_ms", "owd_p95_ms", "owd_p50_ms"]),
    lines("frame delay (ms)", &["frame_delay_max_ms", "frame_delay_p50_ms"]),
    lines("a call's video later than its voice (ms)", &["av_offset_mean_ms"]),
    lines("queue sojourn (ms)", &["sojourn_max_ms", "sojourn_mean_ms"]),
    lines("queue (packets)", &["queue_peak_pkts", "queue_pkts"]),
    lines("queue (bytes)", &["queue_bytes"]),
    Kindred {
        title: "window (packets), and the controller's phase",
        columns: &[
            "cwnd_pkts",
            "inflight_pkts",
            "ssthresh_pkts",
            "inflight_longterm_pkts",
            "extra_acked_pkts",
        ],
        impulses: false,
        ribbon: true,
    },
    lines(
        "a call's rates (Mbit/s)",
        &[
            "target_mbps",
            "sent_mbps",
            "received_mbps",
            "delay_based_mbps",
            "loss_based_mbps",
            "acknowledged_mbps",
        ],
    ),
    lines("frames in each step", &["frames_encoded", "frames_rendered", "frames_dropped"]),
    lines("rounds that the controller has counted", &["rounds"]),
    lines("receive window (bytes)", &["rwnd_bytes"]),
    Kindred {
        title: "drops in each step (packets)",
        columns: &["drops"],
        impulses: true,
        ribbon: false,
    },
    Kindred {
        title: "packets of a flow that were dropped in each step",
        columns: &["dropped_pkts"],
        impulses: true,
        ribbon: false,
    },
    lines("part of a flow's packets that was dropped", &["dropped_share"]),
    Kindred {
        title: "marks in each step (packets)",
        columns: &["marks"],
        impulses: true,
        ribbon: false,
    },
    Kindred {
        title: "retransmissions in each step (packets)",
        columns: &["retransmits"],
        impulses: true,
        ribbon: false,
    },
];

/// The columns that are drawn unless a view asks for others.
const USUAL: &[&str] = &[
    "goodput_mbps",
    "rtt_max_ms",
    "frame_delay_max_ms",
    "target_mbps",
    "received_mbps",
    "frames_rendered",
    "sojourn_max_ms",
    "queue_peak_pkts",
    "cwnd_pkts",
    "drops",
    "marks",
];

/// Further flows and queues are left to the script.
pub(super) const MOST_TRACES: usize = 8;

/// As many flows as a panel has, in their order: the first of each group, then the second, and so on.
fn first_of_each(flows: Vec<&Series>, group: impl Fn(&Series) -> String) -> Vec<&Series> {
    if flows.len() <= MOST_TRACES {
        return flows;
    }
    let mut members: BTreeMap<String, usize> = BTreeMap::new();
    let place = |(at, flow): (usize, &&Series)| {
        let before = members.entry(group(flow)).or_default();
        *before += 1;
        (*before, at)
    };
    let mut places: Vec<(usize, usize)> = flows.iter().enumerate().map(place).collect();
    places.sort_unstable();
    places.truncate(MOST_TRACES);
    places.sort_unstable_by_key(|(_, at)| *at);
    places.into_iter().map(|(_, at)| flows[at]).collect()
}

/// A run over time as a still figure; `wanted` are columns, or the usual ones if there are none.
pub(crate) fn still(
    data: &Data<'_>,
    run: u32,
    series: &[Series],
    wanted: &[String],
    of: &[String],
) -> String {
    let planned = &data.plan.runs[run as usize];
    let scenario = &data.plan.scenarios[planned.scenario as usize];
    let colour = |one: &Series| match one.kind {
        Kind::Flow => {
            let group = scenario.flows.iter().find(|flow| flow.name == one.name);
            group.map_or(0, |flow| data.colour_of_flow(&flow.group))
        }
        _ => scenario.queues.iter().position(|queue| queue.name == one.name).map_or(4, |at| at + 4),
    };
    let group = |one: &Series| {
        let flow = scenario.flows.iter().find(|flow| flow.name == one.name);
        flow.map_or(String::new(), |flow| flow.group.clone())
    };
    let Some(longest) = series.iter().max_by_key(|one| one.t_s.len()) else {
        return String::new();
    };
    let mut panels = Vec::new();
    for kindred in PANELS {
        let columns: Vec<&str> = kindred
            .columns
            .iter()
            .copied()
            .filter(|column| match wanted {
                [] => USUAL.contains(column),
                wanted => wanted.iter().any(|name| name == column),
            })
            .collect();
        let members: Vec<&Series> = series
            .iter()
            .filter(|one| one.t_s.len() == longest.t_s.len())
            .filter(|one| of.is_empty() || of.contains(&one.name) || of.contains(&group(one)))
            .filter(|one| columns.iter().any(|column| one.column(column).is_some()))
            .collect();
        // However many flows there are, a queue's capacity is drawn behind their rates.
        let of_kind = |kind: Kind| members.iter().filter(move |one| one.kind == kind).copied();
        let flows = first_of_each(of_kind(Kind::Flow).collect(), group);
        let members: Vec<&Series> = flows.into_iter().chain(of_kind(Kind::Queue).take(4)).collect();
        let mut traces = Vec::new();
        for one in &members {
            for (at, column) in columns.iter().enumerate() {
                let Some(values) = one.column(column) else { continue };
                if values.known().any(|value| value != 0.0) {
                    traces.push(Trace {
                        name: &one.name,
                        colour: colour(one),
                        member: member(scenario, &one.name),
                        dash: at,
                        behind: *column == "capacity_mbps",
                        values,
                        impulses: kindred.impulses,
                    });
                }
            }
        }
        if traces.is_empty() {
            continue;
        }
        let ribbons = if kindred.ribbon {
            members
                .iter()
                .filter(|one| !one.phase.is_empty() && distinct(&one.phase) > 1)
                .take(4)
                .map(|one| (colour(one), ribbon(one)))
                .collect()
        } else {
            Vec::new()
        };
        let mut title = kindred.title.to_owned();
        if columns.len() > 1 {
            const DASHES: [&str; 4] = ["solid", "dashed", "dotted", "dash-dotted"];
            let named = columns.iter().zip(DASHES.iter().cycle());
            let named: Vec<String> = named
                .map(|(column, dash)| format!("{}: {dash}", names::split_unit(column).0))
                .collect();
            let _ = write!(title, " — {}", named.join(", "));
        }
        panels.push(Panel { title, traces, ribbons });
    }
    if panels.is_empty() {
        return String::new();
    }
    let name =
        format!("{}, seed {}, over time", data.label(planned.scenario as usize), planned.seed);
    timeline(&longest.t_s, &panels, &name, Size::RUN)
}

/// A quantity of one flow or queue in several runs, as curves over each other.
pub(crate) struct Overlay {
    pub(crate) runs: Vec<OverlaidRun>,
}

pub(crate) struct OverlaidRun {
    pub(crate) run: u32,
    /// Of its scenario.
    pub(crate) label: String,
    t_s: Vec<f64>,
    values: StepValues,
}

impl OverlaidRun {
    /// The column of the one flow or queue that `of` names; `None` if there are several, or none. Its label leaves out the
    /// factors that are `shared`.
    pub(crate) fn of(
        data: &Data<'_>,
        run: u32,
        series: &[Series],
        column: &str,
        of: &str,
        shared: &[usize],
    ) -> Option<Self> {
        let scenario = data.plan.runs[run as usize].scenario as usize;
        let flows = &data.plan.scenarios[scenario].flows;
        let is_meant = |one: &&Series| {
            one.name == of || flows.iter().any(|flow| flow.name == one.name && flow.group == of)
        };
        let mut meant = series.iter().filter(is_meant).filter(|one| one.column(column).is_some());
        let (one, other) = (meant.next()?, meant.next());
        let values = one.column(column)?.clone();
        let label = data.label_without(scenario, shared);
        other.is_none().then(|| Self { run, label, t_s: one.t_s.clone(), values })
    }
}

impl Overlay {
    pub(crate) fn key(&self) -> Key {
        let runs = self.runs.iter().enumerate();
        Key(runs.map(|(at, run)| (Some(at), at, run.label.clone())).collect())
    }

    /// The figure, for a page and for a phone.
    pub(crate) fn draw(&self, column: &str) -> Option<Drawing> {
        let longest = self.runs.iter().max_by_key(|run| run.t_s.len())?;
        let (stem, unit) = names::split_unit(column);
        let title = names::axis_in(stem, unit);
        let traces = || {
            let trace = |(colour, run)| {
                let OverlaidRun { label, values, .. }: &OverlaidRun = run;
                let (member, dash) = (0, 0);
                Trace { name: label, colour, member, dash, behind: false, values, impulses: false }
            };
            self.runs.iter().enumerate().map(trace).collect()
        };
        let drawn = |width: f64| {
            let panel = Panel { title: title.clone(), traces: traces(), ribbons: Vec::new() };
            let size = Size { width, height: 240.0, fits: true };
            timeline(&longest.t_s, &[panel], &title, size)
        };
        let (svg, narrow) = (drawn(ALONE), Some(drawn(PHONE)));
        Some(Drawing { name: String::new(), svg, narrow })
    }

    /// Whether a curve is interrupted.
    pub(crate) fn has_gaps(&self) -> bool {
        self.runs.iter().any(|run| {
            let known = |value: Option<f64>| value.is_some();
            let first = run.values.iter().position(known).unwrap_or_default();
            let last = run.values.iter().rposition(known).unwrap_or_default();
            run.values.iter().take(last).skip(first).any(|value| value.is_none())
        })
    }
}

fn distinct(phases: &[Arc<str>]) -> usize {
    let mut known: Vec<&str> =
        phases.iter().map(|phase| &phase[..]).filter(|p| !p.is_empty()).collect();
    known.sort_unstable();
    known.dedup();
    known.len()
}

/// The beginnings of phases; a phase shorter than a pixel is merged into its neighbours.
fn ribbon(series: &Series) -> Vec<(f64, String)> {
    let end = series.t_s.last().copied().unwrap_or(0.0);
    let mut out: Vec<(f64, String)> = Vec::new();
    let mut from = 0.0;
    for (at, phase) in series.phase.iter().enumerate() {
        let changed = at == 0 || series.phase[at - 1] != *phase;
        if changed && !phase.is_empty() {
            match out.last() {
                Some((_, before)) if before[..] == phase[..] => {}
                Some((start, _)) if from - start < end / 700.0 => {
                    out.pop();
                    let start = out.last().map_or(0.0, |_| from);
                    if out.last().is_none_or(|(_, before)| before[..] != phase[..]) {
                        out.push((start, phase.to_string()));
                    }
                }
                _ => out.push((from, phase.to_string())),
            }
        }
        from = series.t_s.get(at).copied().unwrap_or(from);
    }
    out
}

#[cfg(test)]
mod tests {
    use sojourn_metrics::{FLOW_COLUMNS, LINK_COLUMNS};

    use super::*;

    #[test]
    fn every_column_of_the_series_can_be_drawn() {
        let flow = FLOW_COLUMNS.iter().map(|column| column.name);
        let link = LINK_COLUMNS.iter().map(|column| column.name);
        let script = include_str!("../../assets/report.js");
        for name in flow.chain(link).filter(|name| *name != "phase") {
            let is_drawn = PANELS.iter().any(|kindred| kindred.columns.contains(&name));
            assert!(is_drawn, "no panel of the still figures has {name}");
            assert!(script.contains(&format!("'{name}'")), "no panel of the script has {name}");
        }
    }
}
