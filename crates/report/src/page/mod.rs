//! One self-contained page from a result folder.

mod answer;
mod explorer;
mod figures;
mod matrix;
mod methods;
mod runs;
mod shell;

pub(crate) use matrix::USUAL;
pub(crate) use runs::end_state;
pub(crate) use shell::{Shell, anchor};

use std::fmt::Write;

use serde_json::json;
use sojourn_study::results::{Results, ViewKind};

use crate::data::Data;
use crate::markup::{Esc, linked, script_json};
use crate::spread::Spreads;
use crate::{ReadRuns, number, packed};

/// What a page may cost.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Characters that the time series of all runs may take together.
    pub series_budget: usize,
    /// Runs with a section of their own; the others are in tables and figures only.
    pub runs: usize,
    /// Scenarios with a still figure of their first run over time.
    pub timelines: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { series_budget: 1_900_000, runs: 300, timelines: 40 }
    }
}

/// The page, as HTML. `runs` is asked once for each finished run, and what it cannot read the page
/// says is missing.
pub fn html(results: &Results, runs: &mut dyn ReadRuns, options: &Options) -> String {
    let data = Data::new(results);
    let details = Details::read(&data, runs, options);
    let figures = figures::figures(&data, &details.spreads);

    let mut body = String::new();
    header(&mut body, &data);
    missing(&mut body, &data, &details);
    body += "<main>";
    answer::write(&mut body, &data);
    matrix::write(&mut body, &data);
    body += &figures;
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
    let _ = write!(
        scripts,
        "<script type=\"text/plain\" id=\"metrics\">{}</script>",
        packed::pack_json(&matrix::numbers(&data))
    );
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

/// Runs that a view over time shows as still figures.
const MOST_VIEWED: usize = 4;

/// What the page needs of the time series of each run.
pub(crate) struct Details {
    /// Finished runs, in the order of the plan.
    pub(crate) runs: Vec<RunDetails>,
    pub(crate) views: Vec<SeriesView>,
    pub(crate) spreads: Spreads,
}

/// A figure over time that the study asks for.
pub(crate) struct SeriesView {
    /// Position in the plan.
    pub(crate) view: usize,
    /// Run and figure.
    pub(crate) runs: Vec<(u32, String)>,
}

pub(crate) struct RunDetails {
    pub(crate) run: u32,
    pub(crate) packed: Option<packed::Packed>,
    /// A still figure; of the first finished run of its scenario only.
    pub(crate) timeline: String,
    pub(crate) problem: Option<String>,
}

impl Details {
    fn read(data: &Data<'_>, read: &mut dyn ReadRuns, options: &Options) -> Self {
        let mut finished: Vec<u32> = data.done.iter().flatten().copied().collect();
        finished.sort_unstable();
        let firsts: Vec<u32> = data.done.iter().filter_map(|runs| runs.first().copied()).collect();
        let drawn: Vec<u32> = firsts.iter().copied().take(options.timelines).collect();
        let mut views: Vec<SeriesView> = Vec::new();
        for (at, view) in data.plan.views.iter().enumerate() {
            if view.kind == ViewKind::Series {
                let runs = firsts.iter().filter(|run| {
                    let scenario = data.plan.runs[**run as usize].scenario as usize;
                    data.plan.is_selected(&data.plan.scenarios[scenario], &view.filter)
                });
                let runs = runs.take(MOST_VIEWED).map(|run| (*run, String::new())).collect();
                views.push(SeriesView { view: at, runs });
            }
        }
        let mut left = options.series_budget;
        let mut open = finished.len();
        let mut runs: Vec<RunDetails> = Vec::new();
        let mut spreads = Spreads::default();
        // First the run of each scenario that a reader meets first, so that the others share
        // what it leaves.
        let order = firsts.iter().chain(finished.iter().filter(|run| !firsts.contains(run)));
        for run in order {
            let fair = left / open.max(1);
            let share = if firsts.contains(run) { (fair * 2).min(left) } else { fair };
            open -= 1;
            let scenario = data.plan.runs[*run as usize].scenario as usize;
            let mut problem = None;
            match read.delays(*run) {
                Ok(delays) => {
                    spreads.add(scenario, &data.plan.scenarios[scenario], *run, &delays);
                }
                Err(error) => problem = Some(error),
            }
            let details = match read.series(*run) {
                Ok(series) => {
                    let packed = packed::pack(&series, share);
                    left -= packed.as_ref().map_or(0, |packed| packed.base64.len()).min(left);
                    for drawn in &mut views {
                        let view = &data.plan.views[drawn.view];
                        for (of, svg) in drawn.runs.iter_mut().filter(|(of, _)| of == run) {
                            *svg = explorer::still(data, *of, &series, &view.y, &view.of);
                        }
                    }
                    let timeline = if drawn.contains(run) {
                        explorer::still(data, *run, &series, &[], &[])
                    } else {
                        String::new()
                    };
                    RunDetails { run: *run, packed, timeline, problem }
                }
                Err(problem) => RunDetails {
                    run: *run,
                    packed: None,
                    timeline: String::new(),
                    problem: Some(problem),
                },
            };
            runs.push(details);
        }
        runs.sort_by_key(|run| run.run);
        Self { runs, views, spreads }
    }

    pub(crate) fn of(&self, run: u32) -> Option<&RunDetails> {
        let at = self.runs.binary_search_by_key(&run, |details| details.run).ok()?;
        Some(&self.runs[at])
    }
}

/// Position of each flow's and queue's colour, by name, so that figures and curves agree.
fn flow_colours(data: &Data<'_>) -> serde_json::Value {
    let mut groups = serde_json::Map::new();
    for scenario in &data.plan.scenarios {
        for flow in &scenario.flows {
            groups.insert(flow.name.clone(), json!(figures::colour_of_flow(data, &flow.group)));
        }
    }
    serde_json::Value::Object(groups)
}

fn header(out: &mut String, data: &Data<'_>) {
    let plan = data.plan;
    let _ = write!(out, "<header><h1>{}</h1>", Esc(&plan.title));
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
        facts.push(if first == last {
            format!("{} s each", number::number(*first))
        } else {
            format!("{} to {} s each", number::number(*first), number::number(*last))
        });
    }
    facts.push(format!("models {}", Esc(&plan.model)));
    facts.join(" · ")
}

/// What an interrupted study lacks, before anything is concluded from the rest.
fn missing(out: &mut String, data: &Data<'_>, details: &Details) {
    let results = data.results;
    let failed = results.machine.as_ref().map_or(&[][..], |machine| &machine.failed[..]);
    let mut lines = Vec::new();
    if !results.missing.is_empty() {
        let mut scenarios: Vec<(u32, usize)> = Vec::new();
        for run in &results.missing {
            let Some(run) = data.plan.runs.get(*run as usize) else { continue };
            match scenarios.iter_mut().find(|(scenario, _)| *scenario == run.scenario) {
                Some((_, count)) => *count += 1,
                None => scenarios.push((run.scenario, 1)),
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
        lines.push(format!(
            "{} of {} runs have no result yet: {}. The same command goes on where it stopped.",
            results.missing.len(),
            data.plan.runs.len(),
            named.join(", ")
        ));
    }
    for run in failed.iter().take(12) {
        let what = data.plan.runs.get(run.run as usize).map_or_else(
            || format!("run {}", run.run),
            |planned| format!("{}, seed {}", data.label(planned.scenario as usize), planned.seed),
        );
        lines.push(format!("{} ended without a result: {}", Esc(&what), Esc(&run.problem)));
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
