//! Each scenario's numbers, and for each run its end state and its command.

use std::fmt::Write;

use sojourn_study::results::{Kind, PlannedFlow, PlannedScenario, Row};

use super::calls;
use super::columns::{Block, blocks};
use super::details::{Details, RunDetails};
use super::options::Options;
use super::sample::Sample;
use super::still::{MOST_TRACES, key};
use crate::data::{Data, Mean, Subject};
use crate::markup::Esc;
use crate::nearby::nearby;
use crate::number::{number, shown_beside};
use crate::{command, ending, names};

pub(crate) fn write(out: &mut String, data: &Data<'_>, details: &Details, options: &Options) {
    *out += "<section id=\"runs\" data-print=\"no\"><h2>Runs</h2>";
    let mut sections = 0;
    let blocks = blocks(data, data);
    for scenario in data.sections.iter().copied() {
        write_scenario(out, data, &blocks, details, scenario, &mut sections, options.runs);
    }
    let more = data.plan.scenarios.len() - data.sections.len();
    if more > 0 {
        let _ = write!(
            out,
            "<p class=\"note\">{more} scenarios more have no section here, to keep the page small: those in \
             which claims failed have one, and the first. The numbers of all are in \
             <code>runs.parquet</code>.</p>"
        );
    } else if sections >= options.runs && details.runs.len() > options.runs {
        let _ = write!(
            out,
            "<p class=\"note\">{} runs more have no section here, to keep the page small. Their \
             numbers are in <code>runs.parquet</code>; <code>sojourn show</code> prints them.</p>",
            details.runs.len() - options.runs
        );
    }
    *out += "</section>";
}

fn write_scenario(
    out: &mut String,
    data: &Data<'_>,
    blocks: &[Block<'_>],
    details: &Details,
    scenario: usize,
    sections: &mut usize,
    most: usize,
) {
    let planned = &data.plan.scenarios[scenario];
    let open = if data.plan.scenarios.len() <= MOST_OPEN { " open" } else { "" };
    let _ = write!(
        out,
        "<details class=\"scenario\"{open}><summary><h3>{}</h3><span class=\"brief\">{}</span></summary>\
         <div id=\"s-{scenario}\">",
        Esc(&data.label(scenario)),
        Esc(&brief_of(data, scenario))
    );
    let _ = write!(out, "<p class=\"world\">{}</p>", world(planned));
    if data.done[scenario].is_empty() {
        *out += "<p class=\"note\">No run of this scenario has a result yet.</p></div></details>";
        return;
    }
    if let Some(ending) = ending::of_scenario(data.results, scenario as u32) {
        let _ = write!(out, "<p class=\"note\">{}.</p>", Esc(&ending));
    }
    numbers(out, data, blocks, scenario);
    let first = data.done[scenario]
        .iter()
        .find_map(|run| details.of(*run).filter(|details| !details.timeline.is_empty()));
    if let Some(run) = first {
        let _ = write!(
            out,
            "<figure><figcaption>Seed {} over time; peaks of single steps are kept.{}{}</figcaption>{}\
             <div class=\"wide\">{}</div></figure>",
            data.plan.runs[run.run as usize].seed,
            drawn_of(planned),
            zoom(run),
            key(data, scenario, &[]).html(),
            run.timeline
        );
        *out += &run.calls;
    }
    *out += "<div class=\"runlist\">";
    for run in &data.done[scenario] {
        if *sections >= most {
            break;
        }
        *sections += 1;
        write_run(out, data, details.of(*run), *run);
    }
    *out += "</div></div></details>";
}

/// Says that a still figure has not all of the flows.
fn drawn_of(scenario: &PlannedScenario) -> String {
    match scenario.flows.len() {
        ..=MOST_TRACES => String::new(),
        flows => {
            format!(" Of {flows} flows a panel has at most {MOST_TRACES}, the first of each group.")
        }
    }
}

fn zoom(run: &RunDetails) -> String {
    match run.packed {
        None => String::new(),
        Some(_) => format!(
            " <button type=\"button\" class=\"script open\" data-open=\"{}\">Zoom into it</button>",
            run.run
        ),
    }
}

/// With more scenarios than these each is one line, which unfolds, so that a study of a hundred can be
/// looked through.
const MOST_OPEN: usize = 3;

/// The scenario in a line, in the words of `tc` and `sysctl`.
fn world(scenario: &PlannedScenario) -> String {
    let queues: Vec<String> = scenario
        .queues
        .iter()
        .map(|queue| {
            format!(
                "{}: <code>{}</code> at <code>{}</code>",
                Esc(&queue.name),
                Esc(&queue.queue),
                Esc(&queue.rate)
            )
        })
        .collect();
    let same = |a: &PlannedFlow, b: &PlannedFlow| {
        (&a.group, &a.app, &a.cca, a.base_rtt_ms) == (&b.group, &b.app, &b.cca, b.base_rtt_ms)
    };
    let groups: Vec<&[PlannedFlow]> = scenario.flows.chunk_by(same).collect();
    let flows: Vec<String> = groups
        .iter()
        .take(12)
        .map(|group| {
            let flow = &group[0];
            let (name, times) = match group.len() {
                1 => (&flow.name, String::new()),
                n => (&flow.group, format!("{n} × ")),
            };
            let cca = flow
                .cca
                .as_deref()
                .map_or(String::new(), |cca| format!(" <code>{}</code>", Esc(cca)));
            format!(
                "{}: {times}{}{cca}, base RTT {} ms",
                Esc(name),
                Esc(&flow.app),
                number(flow.base_rtt_ms)
            )
        })
        .collect();
    let more = groups.len().saturating_sub(12);
    let more = if more > 0 { format!("; {more} flows more") } else { String::new() };
    let warmup = match scenario.warmup_s {
        0.0 => String::new(),
        warmup => format!(", the first {} s not counted", number(warmup)),
    };
    format!(
        "{}. {}{more}. {}{} s{warmup}.",
        queues.join("; "),
        flows.join("; "),
        scenario
            .until
            .as_ref()
            .map_or(String::new(), |until| format!("Until {}, at most ", Esc(until))),
        number(scenario.duration_s)
    )
}

/// A table for each application, with the columns that matter for it.
fn numbers(out: &mut String, data: &Data<'_>, blocks: &[Block<'_>], scenario: usize) {
    for block in blocks {
        let mean = |subject: &Subject, metric: &str| data.mean(scenario, subject, metric);
        let columns: Vec<(&str, f64, &str)> = block
            .metrics
            .iter()
            .filter_map(|metric| {
                let has_something = block.subjects.iter().any(|subject| {
                    let points = data.points(scenario, subject, metric);
                    !points.is_empty() || points.is_out_of_reach()
                });
                let known = block.subjects.iter().filter_map(|subject| mean(subject, metric));
                let largest = known.map(|mean| mean.mean.abs()).fold(0.0, f64::max);
                let (factor, unit) = names::stepped(data.plan, metric, largest);
                has_something.then_some((*metric, factor, unit))
            })
            .collect();
        if columns.is_empty() {
            continue;
        }
        let mut rows = String::new();
        for subject in &block.subjects {
            let is_none = |metric: &str| data.points(scenario, subject, metric).is_empty();
            if columns.iter().all(|(metric, ..)| is_none(metric)) {
                continue;
            }
            let _ = write!(rows, "<tr><th scope=\"row\">{}</th>", Esc(subject.label()));
            for (metric, factor, unit) in &columns {
                let points = data.points(scenario, subject, metric);
                let counted = points.why_none();
                let counted = counted.map_or(String::new(), |n| format!(" <small>{n}</small>"));
                match Mean::of(&points) {
                    Some(mean) => {
                        let half = mean.half_width.map(|half| half * factor);
                        let text = shown_beside(mean.mean * factor, half, unit);
                        let _ = write!(rows, "<td>{}{counted}</td>", Esc(&text));
                    }
                    None => {
                        let _ = write!(rows, "<td class=\"none\">–{counted}</td>");
                    }
                }
            }
            rows += "</tr>";
        }
        let _ = write!(
            out,
            "<div class=\"wide\"><table class=\"numbers\"><thead><tr><th scope=\"col\">{}</th>",
            Esc(&block.heading)
        );
        for (metric, _, unit) in columns {
            let _ = write!(
                out,
                "<th scope=\"col\" title=\"{}\">{}</th>",
                Esc(metric),
                Esc(&names::axis_in(metric, unit))
            );
        }
        let _ = write!(out, "</tr></thead><tbody>{rows}</tbody></table></div>");
    }
}

fn write_run(out: &mut String, data: &Data<'_>, details: Option<&RunDetails>, run: u32) {
    let planned = &data.plan.runs[run as usize];
    let rows: Vec<&Row> = data.rows(run).map(|(row, _)| row).collect();
    let _ = write!(
        out,
        "<details id=\"r-{run}\"><summary>Seed {}<span class=\"brief\">{}</span></summary>",
        planned.seed,
        Esc(&brief(data, run))
    );
    let _ = write!(
        out,
        "<p class=\"command\"><code>{}</code> <button type=\"button\" class=\"script copy\">Copy\
         </button></p>",
        Esc(&command::repeat(data.plan, planned))
    );
    if details.is_some_and(|details| details.packed.is_some()) {
        let _ = write!(
            out,
            "<p class=\"script\"><button type=\"button\" class=\"open\" data-open=\"{run}\">Show over \
             time</button></p>"
        );
    }
    if let Some(problem) = details.and_then(|details| details.problem.as_deref()) {
        let _ = write!(
            out,
            "<p class=\"note\">Its time series or delays cannot be read: {}</p>",
            Esc(problem)
        );
    }
    if let Some(ending) = ending::of_run(data.results, run) {
        let _ = write!(out, "<p class=\"note\">It {}.</p>", Esc(&ending));
    }
    calls::table(out, data, run);
    let scenario = &data.plan.scenarios[planned.scenario as usize];
    let sample = Sample::of(scenario, |_| false);
    let state = end_state(data, &rows, planned.scenario as usize, &sample);
    if !state.is_empty() {
        let of = match &sample {
            Sample::All => String::new(),
            Sample::Some(flows) => format!(
                ", of {} flows of {}; <code>sojourn show</code> has all",
                flows.len(),
                scenario.flows.len()
            ),
        };
        let _ = write!(
            out,
            "<p class=\"caption\">At its end, in the words of <code>ss -tin</code> and <code>tc -s \
             qdisc</code>{of}:</p><pre tabindex=\"0\">{}</pre>",
            Esc(&state)
        );
    }
    let digest = rows.first().map_or("", |row| row.digest.as_str());
    let _ = write!(
        out,
        "<p class=\"digest\">Run <code>{}</code>{}</p></details>",
        planned.id,
        if digest.is_empty() {
            String::new()
        } else {
            format!(", digest of its events <code>{}</code>", Esc(digest))
        }
    );
}

/// The chief numbers of a run.
fn brief(data: &Data<'_>, run: u32) -> String {
    let scenario = data.plan.runs[run as usize].scenario as usize;
    chief(data, |subject, metric| {
        let points = data.points(scenario, subject, metric);
        points.iter().find(|point| point.run == run).map(|point| point.value)
    })
}

/// The same of a scenario, as means over its runs.
fn brief_of(data: &Data<'_>, scenario: usize) -> String {
    chief(data, |subject, metric| data.mean(scenario, subject, metric).map(|mean| mean.mean))
}

fn chief(data: &Data<'_>, value: impl Fn(&Subject, &str) -> Option<f64>) -> String {
    let mut parts = Vec::new();
    for subject in data.of_kind(Kind::Flow) {
        let mut part = String::new();
        // A ping delivers nothing to anybody.
        let metrics: &[(&str, &str)] = match value(subject, "ping_sent") {
            Some(_) => &[("ping_p95_ms", " p95")],
            None => &[("goodput_mbps", ""), ("rtt_p95_ms", ", RTT p95")],
        };
        for (metric, what) in metrics {
            if let Some(value) = value(subject, metric) {
                let (factor, unit) = names::stepped(data.plan, metric, value.abs());
                let _ = write!(part, "{what} {} {unit}", number(value * factor));
            }
        }
        if !part.is_empty() && parts.len() < 4 {
            parts.push(format!("{}{part}", subject.label()));
        }
    }
    parts.join(" · ")
}

/// What `ss -tin` and `tc -s qdisc` would have printed; for flows without a congestion control,
/// what their own tools print at the end.
pub(crate) fn end_state(
    data: &Data<'_>,
    rows: &[&Row],
    scenario: usize,
    sample: &Sample<'_>,
) -> String {
    let planned = &data.plan.scenarios[scenario];
    let mut last = 0;
    let mut row_of = |kind: Kind, name: &str| {
        let is_it = |row: &&Row| row.kind == kind && row.name == name;
        nearby(rows, &mut last, is_it).map(|at| rows[at])
    };
    let mut out = String::new();
    if let Some(row) = row_of(Kind::Run, "")
        && !row.end_state.is_empty()
    {
        let _ = writeln!(out, "when it was over: {}", row.end_state);
    }
    for flow in planned.flows.iter().filter(|flow| sample.has(Kind::Flow, &flow.name)) {
        let Some(row) = row_of(Kind::Flow, &flow.name) else { continue };
        let cca = flow.cca.as_deref().map_or(String::new(), |cca| format!(" {cca}"));
        let said = if row.end_state.is_empty() {
            of_datagrams(data, row, planned.warmup_s)
        } else {
            row.end_state.clone()
        };
        if !said.is_empty() {
            let _ = writeln!(out, "{} {}{cca}", flow.name, flow.app);
            out += &said;
        }
    }
    for queue in planned.queues.iter() {
        let Some(row) = row_of(Kind::Queue, &queue.name) else { continue };
        if !row.end_state.is_empty() {
            let _ = writeln!(out, "qdisc {} dev {} rate {}", queue.queue, queue.name, queue.rate);
            out += &row.end_state;
        }
    }
    out
}

/// The summary that `ping` and receivers of datagrams print; nothing of a TCP flow, of which an engine without sockets has no
/// state. Counters are of the whole run; what is known after the warm-up
/// only is in a line that says so.
fn of_datagrams(data: &Data<'_>, row: &Row, warmup_s: f64) -> String {
    if data.table.value(row, "retransmits").is_some() {
        return String::new();
    }
    let is_ping = data.table.value(row, "ping_sent").is_some();
    let counters = [
        ("datagrams:", "sent_packets", ""),
        ("jitter:", "jitter_ms", "ms"),
        ("lost:", "lost_packets", ""),
    ];
    let in_window = [
        ("transmitted:", "ping_sent", ""),
        ("rtt min:", "ping_min_ms", "ms"),
        ("avg:", "ping_mean_ms", "ms"),
        ("max:", "ping_max_ms", "ms"),
        ("lost:", "ping_lost", ""),
        ("mos:", "mos", ""),
    ];
    let of = |words: &[(&str, &str, &str)]| {
        let said = words.iter().filter_map(|(name, metric, unit)| {
            Some(format!("{name}{}{unit}", plain(data.table.value(row, metric)?)))
        });
        said.collect::<Vec<_>>().join(" ")
    };
    let label = if warmup_s > 0.0 { "after the warm-up: " } else { "" };
    // The requests of a ping are its datagrams.
    let lines =
        [("", if is_ping { String::new() } else { of(&counters) }), (label, of(&in_window))];
    let lines = lines.iter().filter(|(_, words)| !words.is_empty());
    lines.map(|(label, words)| format!("\t{label}{words}\n")).collect()
}

/// Numbers as tools print them: no grouping, at most three decimals.
fn plain(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
