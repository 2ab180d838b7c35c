//! Any run over time: panels with linked cursors for the script, a still figure without it.

use std::fmt::Write;

use sojourn_study::results::{Kind, Series, ViewKind};

use super::Details;
use super::figures::colour_of_flow;
use crate::data::Data;
use crate::markup::Esc;
use crate::svg::{Panel, Trace, timeline};

pub(crate) fn write(out: &mut String, data: &Data<'_>, details: &Details) {
    if details.runs.iter().all(|run| run.packed.is_none()) {
        return;
    }
    *out += "<section id=\"time\"><h2>Over time</h2>";
    for view in data.plan.views.iter().filter(|view| view.kind == ViewKind::Series) {
        let title = view.title.as_deref().unwrap_or(&view.name);
        let caption = view.caption.as_deref().unwrap_or("");
        let run = details.runs.iter().find(|run| {
            let scenario = data.plan.runs[run.run as usize].scenario as usize;
            run.packed.is_some()
                && view.filter.iter().all(|wanted| {
                    let factor = data.plan.factors.iter().position(|f| f.name == wanted.factor);
                    factor.is_none_or(|factor| {
                        wanted.values.iter().any(|value| value == data.value(scenario, factor))
                    })
                })
        });
        let _ = write!(out, "<p><b>{}</b> {}", Esc(title), Esc(caption));
        if let Some(run) = run {
            let _ = write!(
                out,
                " <button type=\"button\" class=\"script open\" data-open=\"{}\">Show {}</button>",
                run.run,
                Esc(&data.label(data.plan.runs[run.run as usize].scenario as usize))
            );
        }
        *out += "</p>";
    }
    *out += "<noscript><p>Zoom and linked cursors need script. Without it, each scenario below has a \
             still figure of its first run.</p></noscript><div class=\"script\" id=\"explorer\">\
             <p class=\"controls\"><label>Scenario <select id=\"pick-scenario\"></select></label> \
             <label>Seed <select id=\"pick-seed\"></select></label> <label>Beside it \
             <select id=\"pick-other\"><option value=\"\">nothing</option></select></label> \
             <button type=\"button\" id=\"zoom-in\" aria-label=\"Zoom in\">+</button>\
             <button type=\"button\" id=\"zoom-out\" aria-label=\"Zoom out\">−</button>\
             <button type=\"button\" id=\"zoom-left\" aria-label=\"Earlier\">←</button>\
             <button type=\"button\" id=\"zoom-right\" aria-label=\"Later\">→</button>\
             <button type=\"button\" id=\"zoom-all\">Whole run</button></p>\
             <p class=\"caption\" id=\"plot-caption\">Drag across a panel to zoom, double-click for the \
             whole run. A name in a key shows or hides its curve.</p><div id=\"plots\"></div></div>\
             </section>";
}

/// Quantities that stand together, as long as one of them is known.
struct Kindred {
    title: &'static str,
    kind: Kind,
    /// Column, and whether it is drawn faint.
    columns: &'static [(&'static str, bool)],
    impulses: bool,
    ribbon: bool,
}

const PANELS: &[Kindred] = &[
    Kindred {
        title: "goodput (Mbit/s)",
        kind: Kind::Flow,
        columns: &[("goodput_mbps", false)],
        impulses: false,
        ribbon: false,
    },
    Kindred {
        title: "RTT, largest of each step (ms)",
        kind: Kind::Flow,
        columns: &[("rtt_max_ms", false)],
        impulses: false,
        ribbon: false,
    },
    Kindred {
        title: "queue sojourn, largest of each step (ms)",
        kind: Kind::Queue,
        columns: &[("sojourn_max_ms", false)],
        impulses: false,
        ribbon: false,
    },
    Kindred {
        title: "queue, largest of each step (packets)",
        kind: Kind::Queue,
        columns: &[("queue_peak_pkts", false)],
        impulses: false,
        ribbon: false,
    },
    Kindred {
        title: "cwnd (packets), and the controller's phase",
        kind: Kind::Flow,
        columns: &[("cwnd_pkts", false)],
        impulses: false,
        ribbon: true,
    },
    Kindred {
        title: "drops in each step (packets)",
        kind: Kind::Queue,
        columns: &[("drops", false)],
        impulses: true,
        ribbon: false,
    },
    Kindred {
        title: "marks in each step (packets)",
        kind: Kind::Queue,
        columns: &[("marks", false)],
        impulses: true,
        ribbon: false,
    },
];

/// Flows and queues beyond this many are left to the script.
const MOST_TRACES: usize = 8;

pub(crate) fn still(data: &Data<'_>, run: u32, series: &[Series]) -> String {
    let planned = &data.plan.runs[run as usize];
    let scenario = &data.plan.scenarios[planned.scenario as usize];
    let colour = |one: &Series| match one.kind {
        Kind::Flow => {
            let group = scenario.flows.iter().find(|flow| flow.name == one.name);
            group.map_or(0, |flow| colour_of_flow(data, &flow.group))
        }
        _ => scenario.queues.iter().position(|queue| queue.name == one.name).map_or(4, |at| at + 4),
    };
    let Some(longest) = series.iter().max_by_key(|one| one.t_s.len()) else {
        return String::new();
    };
    let mut panels = Vec::new();
    for kindred in PANELS {
        let members: Vec<&Series> = series
            .iter()
            .filter(|one| one.kind == kindred.kind && one.t_s.len() == longest.t_s.len())
            .take(MOST_TRACES)
            .collect();
        let mut traces = Vec::new();
        for one in &members {
            for (column, behind) in kindred.columns {
                let Some(values) = one.column(column) else { continue };
                let something = values.iter().flatten().any(|value| *value != 0.0);
                if something {
                    traces.push(Trace {
                        colour: colour(one),
                        behind: *behind,
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
        panels.push(Panel { title: kindred.title.into(), traces, ribbons });
    }
    if panels.is_empty() {
        return String::new();
    }
    let name = format!("{}, seed {}, over time", data.label(planned.scenario as usize), planned.seed);
    timeline(&longest.t_s, &panels, &name)
}

fn distinct(phases: &[String]) -> usize {
    let mut known: Vec<&str> = phases.iter().map(String::as_str).filter(|p| !p.is_empty()).collect();
    known.sort_unstable();
    known.dedup();
    known.len()
}

/// Beginnings of phases; those shorter than a pixel are merged into their neighbours.
fn ribbon(series: &Series) -> Vec<(f64, String)> {
    let end = series.t_s.last().copied().unwrap_or(0.0);
    let mut out: Vec<(f64, String)> = Vec::new();
    let mut from = 0.0;
    for (at, phase) in series.phase.iter().enumerate() {
        let changed = at == 0 || series.phase[at - 1] != *phase;
        if changed && !phase.is_empty() {
            match out.last() {
                Some((_, before)) if before == phase => {}
                Some((start, _)) if from - start < end / 700.0 => {
                    out.pop();
                    let start = out.last().map_or(0.0, |_| from);
                    if out.last().is_none_or(|(_, before)| before != phase) {
                        out.push((start, phase.clone()));
                    }
                }
                _ => out.push((from, phase.clone())),
            }
        }
        from = series.t_s.get(at).copied().unwrap_or(from);
    }
    out
}
