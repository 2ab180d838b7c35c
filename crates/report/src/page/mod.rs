//! One self-contained page from a result folder.

mod alone;
mod answer;
mod calls;
mod columns;
mod details;
mod explorer;
mod figures;
mod matrix;
mod methods;
mod options;
mod runs;
mod sample;
mod shell;
mod still;

pub use alone::{Alone, figure, figures};
pub(crate) use answer::MOST_CHECKS;
pub(crate) use columns::{USUAL, blocks, candidates, deciding, read, shows, with_counts};
pub use options::Options;
pub(crate) use runs::end_state;
pub(crate) use sample::Sample;
pub(crate) use shell::Shell;

use std::collections::BTreeMap;
use std::fmt::Write;

use serde_json::json;
use sojourn_study::results::{Cause, Kind, Results};

use self::details::Details;
use crate::batches::with_threads;
use crate::data::Data;
use crate::markup::{Esc, linked, script_json};
use crate::read::ReadRuns;
use crate::{number, packed};

/// The page, as HTML. `runs` is called once for each finished run; if it can't read a run, the page
/// says that the run is missing.
pub fn html(results: &Results, runs: &mut dyn ReadRuns, options: &Options) -> String {
    with_threads(options.jobs, || page(results, runs, options))
}

fn page(results: &Results, runs: &mut dyn ReadRuns, options: &Options) -> String {
    let data = Data::new(results);
    let of_rows = || {
        let mut matrix = String::new();
        matrix::write(&mut matrix, &data);
        (matrix, packed::pack_json(&matrix::numbers(&data)))
    };
    let (details, (matrix, numbers)) = rayon::join(|| Details::read(&data, runs, options), of_rows);
    // The study's first view is the figure of the answer, whatever its kind.
    let mut lead = String::new();
    if let Some(view) = details.views.iter().find(|view| view.leads()) {
        explorer::write_view(&mut lead, &data, view);
    }
    let figures = figures::figures(&data, &details.spreads, lead);

    let mut body = String::new();
    header(&mut body, &data);
    missing(&mut body, &data, &details);
    body += "<main>";
    answer::write(&mut body, &data, &figures.lead);
    body += &matrix;
    body += &figures.section;
    if let Some(worst) = details.worst_call() {
        body += &calls::section(&data, worst.run, &worst.calls);
    }
    explorer::write(&mut body, &data, &details);
    runs::write(&mut body, &data, &details, options);
    methods::write(&mut body, &data, options);
    body += "</main>";

    let mut scripts = String::new();
    let head = json!({
        "scenarios": (0..data.plan.scenarios.len()).map(|s| data.label(s)).collect::<Vec<_>>(),
        "runs": data.plan.runs.iter().map(|run| json!([run.scenario, run.seed])).collect::<Vec<_>>(),
        "missing": results.missing,
        "flows": flow_colours(&data),
    });
    let _ = write!(
        scripts,
        "<script type=\"application/json\" id=\"plan\">{}</script>",
        script_json(&head)
    );
    let _ = write!(scripts, "<script type=\"text/plain\" id=\"metrics\">{numbers}</script>");
    for run in &details.runs {
        if let Some(packed) = &run.packed {
            let _ = write!(
                scripts,
                "<script type=\"text/plain\" id=\"series-{}\">{}</script>",
                run.run, packed.base64
            );
        }
    }
    Shell { title: &data.plan.title, body: &body, scripts: &scripts }.to_html()
}

/// For each flow that can be zoomed into, by name, its colour and its position among the flows of its group, so that all
/// figures use the same.
fn flow_colours(data: &Data<'_>) -> serde_json::Value {
    let mut flows = serde_json::Map::new();
    for (at, scenario) in data.plan.scenarios.iter().enumerate() {
        let sample = details::sample(data, at);
        let mut members: BTreeMap<&str, usize> = BTreeMap::new();
        for flow in scenario.flows.iter() {
            let member = members.entry(&flow.group).or_default();
            if sample.has(Kind::Flow, &flow.name) {
                flows.insert(flow.name.clone(), json!([data.colour_of_flow(&flow.group), *member]));
            }
            *member += 1;
        }
    }
    serde_json::Value::Object(flows)
}

fn header(out: &mut String, data: &Data<'_>) {
    let plan = data.plan;
    // `Wi-Fi` is not divided at its hyphen.
    let word = |word: &str| match word.contains('-') && word.len() < 20 {
        true => format!("<span class=\"whole\">{}</span>", Esc(word)),
        false => Esc(word).to_string(),
    };
    let title: Vec<String> = plan.title.split(' ').map(word).collect();
    let _ = write!(out, "<header><h1>{}</h1>", title.join(" "));
    if let Some(question) = &plan.question {
        let _ = write!(out, "<p class=\"question\">{}</p>", Esc(question));
    }
    let _ = write!(out, "<p class=\"facts\">{}", facts(data));
    if let Some(source) = &plan.source {
        let _ = write!(out, "<br>Source: {}", linked(source));
    }
    *out += "</p></header>";
}

fn facts(data: &Data<'_>) -> String {
    let plan = data.plan;
    let plural = |n: usize, word: &str| format!("{n} {word}{}", if n == 1 { "" } else { "s" });
    let mut facts = vec![
        plural(plan.scenarios.len(), "scenario"),
        plural(plan.seeds.len(), "seed"),
        plural(plan.runs.len(), "run"),
    ];
    let mut lengths: Vec<f64> = plan.scenarios.iter().map(|s| s.duration_s).collect();
    lengths.sort_by(f64::total_cmp);
    lengths.dedup();
    if let (Some(first), Some(last)) = (lengths.first(), lengths.last()) {
        let most = match plan.scenarios.iter().any(|scenario| scenario.until.is_some()) {
            true => "at most ",
            false => "",
        };
        facts.push(if first == last {
            format!("{most}{} s each", number::number(*first))
        } else {
            format!("{most}{} to {} s each", number::number(*first), number::number(*last))
        });
    }
    facts.push(format!("models {}", Esc(&plan.model)));
    facts.join(" · ")
}

/// The most causes for which runs ended without a result that are listed.
const MOST_CAUSES: usize = 12;

/// What an interrupted study lacks; it comes before anything that is concluded from the rest.
fn missing(out: &mut String, data: &Data<'_>, details: &Details) {
    let results = data.results;
    let failed = results.machine.as_ref().map_or(&[][..], |machine| &machine.failed[..]);
    let mut lines = Vec::new();
    if !results.missing.is_empty() {
        let mut scenarios: Vec<(u32, usize)> = Vec::new();
        for run in &results.missing {
            let Some(run) = data.plan.runs.get(*run as usize) else { continue };
            // Runs of a scenario follow each other.
            match scenarios.last_mut() {
                Some((scenario, count)) if *scenario == run.scenario => *count += 1,
                _ => scenarios.push((run.scenario, 1)),
            }
        }
        let mut named: Vec<String> = scenarios
            .iter()
            .take(12)
            .map(|(scenario, count)| format!("{} ({count})", Esc(&data.label(*scenario as usize))))
            .collect();
        if scenarios.len() > 12 {
            named.push(format!("and {} scenarios more", scenarios.len() - 12));
        }
        // Those that failed would fail again.
        let is_stopped = results.missing.len() > failed.len();
        lines.push(format!(
            "{} of {} runs have no result{}: {}.{}",
            results.missing.len(),
            data.plan.runs.len(),
            if is_stopped { " yet" } else { "" },
            named.join(", "),
            match is_stopped {
                true if results.is_under_way() => " The same command goes on where it stopped.",
                true =>
                    " <code>sojourn join</code> with the folders of all shards puts them together.",
                false => "",
            }
        ));
    }
    let causes = Cause::all(failed);
    for Cause { problem, runs } in causes.iter().take(MOST_CAUSES) {
        let name = |run: &u32| match data.plan.runs.get(*run as usize) {
            Some(planned) => {
                format!("{}, seed {}", data.label(planned.scenario as usize), planned.seed)
            }
            None => format!("run {run}"),
        };
        let what = match &runs[..] {
            [run] => name(run),
            [run, ..] => format!("{} runs ({}, and others)", runs.len(), name(run)),
            [] => continue,
        };
        lines.push(format!("{} ended without a result: {}", Esc(&what), Esc(problem)));
    }
    if causes.len() > MOST_CAUSES {
        lines.push(format!(
            "{} causes more are in <code>machine.json</code>.",
            causes.len() - MOST_CAUSES
        ));
    }
    if results.claims.is_none() {
        lines.push("Claims were not checked.".into());
    }
    if results.machine.is_none() {
        lines.push("Nothing is known of the machine that made these numbers.".into());
    }
    let unread = details.runs.iter().filter(|run| run.problem.is_some()).count();
    if unread > 0 {
        let problem = details.runs.iter().find_map(|run| run.problem.as_deref()).unwrap_or("");
        lines.push(format!(
            "The time series or delays of {unread} runs cannot be read: {}.",
            Esc(problem.trim_end_matches('.'))
        ));
    }
    if lines.is_empty() {
        return;
    }
    *out += "<aside class=\"notice\" aria-label=\"What is missing\"><h2>Not complete</h2><ul>";
    for line in lines {
        let _ = write!(out, "<li>{line}</li>");
    }
    *out += "</ul></aside>";
}
