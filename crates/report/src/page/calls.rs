//! A call over time: what was wanted, sent and received, what the link could carry, frames, their delay, and
//! the times in which the picture stood still, each with the packets that made it so.

use std::fmt::Write;

use sojourn_study::results::{Freeze, Kind, PlannedFlow, Row, Series};

use super::figures::ALONE;
use crate::data::Data;
use crate::freezes::{cause, counted, lost, ms, repairs};
use crate::markup::{Esc, shell_word};
use crate::number::number;
use crate::svg::{Band, Key, Panel, Size, Trace, timeline_with};

/// Calls of one run that are drawn, freezes of one run that have a row.
const MOST_CALLS: usize = 4;
const MOST_ROWS: usize = 20;

/// The applications whose flows are calls with pictures.
fn is_call(flow: &PlannedFlow) -> bool {
    matches!(flow.app.as_str(), "call" | "str0m")
}

/// The freezes of a run with the names of their calls: call by call, those that stood still longest first if there are more
/// calls than are drawn.
pub(super) fn freezes_of<'a>(data: &Data<'a>, run: u32) -> Vec<(&'a str, &'a Freeze)> {
    let rows = data.rows(run).map(|(row, _)| row);
    let mut rows: Vec<&'a Row> = rows.filter(|row| !row.freezes.is_empty()).collect();
    if calls_of(data, run).nth(MOST_CALLS).is_some() {
        rows.sort_by(|a, b| stood_still(&b.freezes).total_cmp(&stood_still(&a.freezes)));
    }
    let of = |row: &'a Row| row.freezes.iter().map(move |freeze| (&row.name[..], freeze));
    rows.into_iter().flat_map(of).collect()
}

fn stood_still(freezes: &[Freeze]) -> f64 {
    freezes.iter().map(|freeze| freeze.to_s - freeze.from_s).sum()
}

fn calls_of<'a>(data: &Data<'a>, run: u32) -> impl Iterator<Item = &'a PlannedFlow> + use<'a> {
    let scenario = data.plan.runs[run as usize].scenario as usize;
    data.plan.scenarios[scenario].flows.iter().filter(|flow| is_call(flow))
}

/// The calls of a run that are drawn: all, or those that stood still longest, and then the first ones.
pub(super) fn drawn<'a>(data: &Data<'a>, run: u32) -> Vec<&'a PlannedFlow> {
    let mut names: Vec<&str> = freezes_of(data, run).into_iter().map(|(name, _)| name).collect();
    names.dedup();
    let mut calls: Vec<&PlannedFlow> = calls_of(data, run).collect();
    if calls.len() > MOST_CALLS {
        names.truncate(MOST_CALLS);
        let place = |flow: &&PlannedFlow| names.iter().position(|name| *name == flow.name);
        calls.sort_by_key(|flow| place(flow).unwrap_or(MOST_CALLS));
        calls.truncate(MOST_CALLS);
    }
    calls
}

/// Where more is said of a freeze.
fn anchor(run: u32, at: usize) -> String {
    if at < MOST_ROWS { format!("freeze-{run}-{at}") } else { format!("r-{run}") }
}

/// A figure for each call of the run; empty if there is none.
pub(super) fn figures(data: &Data<'_>, run: u32, series: &[Series]) -> String {
    let planned = &data.plan.runs[run as usize];
    let mut out = String::new();
    let calls = calls_of(data, run).count();
    if calls > MOST_CALLS {
        let which = match frozen(data, run) > 0.0 {
            true => "those that stood still longest",
            false => "the first ones",
        };
        let _ = write!(out, "<p class=\"caption\">{MOST_CALLS} of {calls} calls: {which}.</p>");
    }
    for flow in drawn(data, run) {
        let of_flow = |one: &&Series| one.kind == Kind::Flow && one.name == flow.name;
        let Some(of_call) = series.iter().find(of_flow) else { continue };
        // The queue that can carry least is the one that decides.
        let mean = |one: &Series| {
            let known: Vec<f64> = one.column("capacity_mbps")?.known().collect();
            (!known.is_empty()).then(|| known.iter().sum::<f64>() / known.len() as f64)
        };
        let queues = series.iter().filter(|one| one.t_s.len() == of_call.t_s.len());
        let queues = queues.filter_map(|one| Some((one, mean(one)?)));
        let narrowest = queues.min_by(|a, b| a.1.total_cmp(&b.1)).map(|(one, _)| one);
        let capacity = narrowest.and_then(|one| one.column("capacity_mbps"));
        let trace = |name: &'static str, values, colour| Trace {
            name,
            colour,
            member: 0,
            dash: 0,
            behind: false,
            values,
            impulses: false,
        };
        let column =
            |name: &str| of_call.column(name).filter(|of| of.known().any(|value| value != 0.0));
        let panel = |title: &str, drawn: &[(&str, &'static str, usize)]| {
            let traces = drawn.iter().filter_map(|(name, label, colour)| {
                let values = column(name)?;
                // Frames are given up in one moment; so many must not flatten the others.
                let impulses = *name == "frames_dropped";
                let dash = usize::from(impulses);
                Some(Trace { dash, impulses, ..trace(label, values, *colour) })
            });
            Panel { title: title.to_owned(), traces: traces.collect(), ribbons: Vec::new() }
        };
        let mut rates = panel(
            "rate (Mbit/s): sent, received, target",
            &[
                ("sent_mbps", "sent", SENT),
                ("received_mbps", "received", RECEIVED),
                ("target_mbps", "target", TARGET),
            ],
        );
        if rates.traces.is_empty() {
            continue;
        }
        if let Some(values) = capacity {
            rates.traces.push(Trace { behind: true, ..trace("capacity", values, CAPACITY) });
        }
        let panels: Vec<Panel<'_>> = [
            rates,
            panel(
                "frame delay, capture to picture (ms): largest and median of each step",
                &[
                    ("frame_delay_max_ms", "largest", LATE),
                    ("frame_delay_p50_ms", "median", RECEIVED),
                ],
            ),
            panel(
                "frames in each step: encoded, shown, never shown",
                &[
                    ("frames_encoded", "encoded", SENT),
                    ("frames_rendered", "shown", RECEIVED),
                    ("frames_dropped", "never shown", LATE),
                ],
            ),
            panel(
                "lip sync (ms): video later than voice, mean of each step; viewers notice more than 45 and less than -125",
                &[("av_offset_mean_ms", "video later than voice", RECEIVED)],
            ),
        ]
        .into_iter()
        .filter(|panel| !panel.traces.is_empty())
        .collect();
        let bands: Vec<Band> = freezes_of(data, run)
            .into_iter()
            .enumerate()
            .filter(|(_, (name, _))| *name == flow.name)
            .map(|(at, (_, freeze))| Band {
                from_s: freeze.from_s,
                to_s: freeze.to_s,
                text: format!(
                    "stood still for {} from {} s: {}",
                    ms(freeze.to_s - freeze.from_s),
                    number(freeze.from_s),
                    cause(freeze)
                ),
                leads_to: anchor(run, at),
            })
            .collect();
        let name = format!("{}, a call over time", flow.name);
        let size = Size { width: ALONE, height: 110.0, fits: true };
        let svg = timeline_with(&of_call.t_s, &panels, &bands, &name, size);
        let _ = write!(
            out,
            "<figure class=\"call\"><figcaption><b>{}</b>, seed {}: {}</figcaption>{}<div \
             class=\"wide\">{svg}</div></figure>",
            Esc(&flow.name),
            planned.seed,
            match bands.len() {
                0 => "its picture never stood still.".to_owned(),
                1 => "its picture stood still once (red), which leads to the reason.".to_owned(),
                n => format!(
                    "its picture stood still {n} times (red), each of which leads to the reason."
                ),
            },
            key(capacity.is_some()).html(),
        );
    }
    out
}

const SENT: usize = 0;
const RECEIVED: usize = 2;
const TARGET: usize = 6;
const LATE: usize = 1;
const CAPACITY: usize = 4;

fn key(has_capacity: bool) -> Key {
    let mut entries = vec![
        (Some(SENT), 0, "sent, encoded".to_owned()),
        (Some(RECEIVED), 0, "received, shown, median delay, lip sync".to_owned()),
        (Some(TARGET), 0, "target of the rate controller".to_owned()),
        (Some(LATE), 0, "largest delay, never shown".to_owned()),
    ];
    if has_capacity {
        entries.push((Some(CAPACITY), 0, "capacity of the narrowest link".to_owned()));
    }
    Key(entries)
}

/// A row for each freeze of a run, with its packets and the commands that show them all.
pub(super) fn table(out: &mut String, data: &Data<'_>, run: u32) {
    let freezes = freezes_of(data, run);
    if freezes.is_empty() {
        return;
    }
    let planned = &data.plan.runs[run as usize];
    let warmup = data.plan.scenarios[planned.scenario as usize].warmup_s;
    *out += "<p class=\"caption\">When its picture stood still, by libwebrtc’s rule, and why. Frames are counted \
             from 0. Packets have the sequence numbers of their RTP headers, which begin anew after 65535.</p><div class=\"wide\"><table \
             class=\"numbers freezes\"><thead><tr><th scope=\"col\">call</th><th scope=\"col\">from \
             (s)</th><th scope=\"col\">for (ms)</th><th scope=\"col\">until frame</th><th \
             scope=\"col\">because</th><th scope=\"col\">packets lost</th><th scope=\"col\">asked for, and \
             sent again</th></tr></thead><tbody>";
    for (at, (call, freeze)) in freezes.iter().enumerate().take(MOST_ROWS) {
        let packets = lost(freeze);
        let repairs = repairs(freeze);
        let _ = write!(
            out,
            "<tr id=\"{}\"><th scope=\"row\">{}</th><td>{:.3}<small>{}</small></td><td>{:.0}</td><td>{}</td><td \
             class=\"words\">{}</td><td class=\"words\">{}</td><td class=\"words\">{}</td></tr>",
            anchor(run, at),
            Esc(call),
            freeze.from_s,
            counted(freeze, warmup),
            (freeze.to_s - freeze.from_s) * 1e3,
            freeze.frame,
            Esc(&cause(freeze)),
            Esc(&if packets.is_empty() { "none".to_owned() } else { packets.join("; ") }),
            Esc(&repairs.join("; ")),
        );
    }
    *out += "</tbody></table></div>";
    if freezes.len() > MOST_ROWS {
        let _ = write!(
            out,
            "<p class=\"note\">{} more are in the result folder.</p>",
            freezes.len() - MOST_ROWS
        );
    }
    let folder = shell_word(&data.results.folder.display().to_string());
    let _ = write!(
        out,
        "<p class=\"command\">In text: <code>sojourn show {folder} {run}</code>. Every packet, for Wireshark: \
         <code>sojourn export {folder} {run} --format pcap --out run.pcapng</code>, then the filter \
         <code>rtp.seq == N &amp;&amp; rtp.p_type == 96</code> for packet N; of several, it is the last before the time at which it was lost. Copies of it have numbers of their own (type 97), \
         and N in the first two bytes of their payload.</p>"
    );
}

fn frozen(data: &Data<'_>, run: u32) -> f64 {
    freezes_of(data, run).iter().map(|(_, freeze)| freeze.to_s - freeze.from_s).sum()
}

/// Of these runs the first one in which pictures of calls stood still longest.
pub(super) fn worst(data: &Data<'_>, runs: &[u32]) -> Option<u32> {
    let has_call = |run: &&u32| calls_of(data, **run).next().is_some();
    let frozen = |run: u32| frozen(data, run);
    let runs = runs.iter().filter(has_call).copied();
    runs.max_by(|a, b| frozen(*a).total_cmp(&frozen(*b)).then(b.cmp(a)))
}

/// The run in which pictures stood still longest, with the figures of its calls.
pub(super) fn section(data: &Data<'_>, run: u32, figures: &str) -> String {
    let planned = &data.plan.runs[run as usize];
    let (title, of_which) = match frozen(data, run) > 0.0 {
        true => ("The call that stood still longest", "Of the first runs of all scenarios"),
        false => ("A call over time", "No picture stood still; the first run"),
    };
    format!(
        "<section id=\"calls\"><h2>{title}</h2><p class=\"caption\">{of_which}: {}. <a href=\"#r-{}\">Its \
         numbers, and each freeze with its packets</a>.</p>{figures}</section>",
        Esc(&data.label(planned.scenario as usize)),
        run
    )
}
