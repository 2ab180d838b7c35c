//! `sojourn show`: results in the terminal.

use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use serde_json::{Value, json};
use sojourn_report::terminal;
use sojourn_study::metrics;
use sojourn_study::results::{Kind, Results, Row, Series, StepValues};

use super::{find_run, open, open_without_rows, run};
use crate::args::{Format, ShowArgs};
use crate::failure::Failure;
use crate::number::number;
use crate::output::Output;
use crate::table::{Grid, Rows};

/// The metrics that are shown of flows by default, as far as they have values.
const FLOW_METRICS: [&str; 8] = [
    "goodput_mbps",
    "share",
    "rtt_p50_ms",
    "rtt_p95_ms",
    "owd_p95_ms",
    "ping_p95_ms",
    "cwnd_p50_pkts",
    "retransmits",
];
/// The same for queues.
const QUEUE_METRICS: [&str; 5] =
    ["utilisation", "sojourn_p50_ms", "sojourn_p95_ms", "queue_max_pkts", "dropped_packets"];
/// The width of a plot over time, unless the terminal is narrower.
const PLOT_WIDTH: usize = 100;
const PLOT_HEIGHT: usize = 10;

pub(super) fn show(args: &ShowArgs, output: Output) -> Result<(), Failure> {
    let asked = asked(&args.metric)?;
    let is_usual = args.run.is_none() && args.scenario.is_none() && asked.is_empty();
    // The usual table reads the rows run by run: there may be more than fit into memory.
    let results = match is_usual && matches!(args.format, Format::Table) {
        true => open_without_rows(&args.folder, output)?,
        false => open(&args.folder, output)?,
    };
    if let Some(scenario) = args.scenario {
        return show_scenario(&results, scenario, args.format, output);
    }
    let most = if args.all { usize::MAX } else { terminal::MOST };
    match &args.run {
        None => show_all(&results, &asked, args.format, most, output),
        Some(name) => {
            let run = find_run(&results, name)?;
            show_run(&results, run, &asked, args.format, most, output)
        }
    }
}

fn show_all(
    results: &Results,
    asked: &[String],
    format: Format,
    most: usize,
    output: Output,
) -> Result<(), Failure> {
    match format {
        Format::Table => {}
        Format::Json => return output.json(&rows(results, &results.table.rows, asked)),
        Format::Csv => return rows(results, &results.table.rows, asked).print_csv(output),
    }
    let plan = &results.plan;
    let mut text = format!("{}\n{}", plan.title, run::amount(plan));
    if !results.missing.is_empty() {
        text.push_str(&format!(", {} of them not done", results.missing.len()));
    }
    text.push_str("\n\n");
    if asked.is_empty() {
        if results.claims.as_ref().is_none_or(|report| !report.claims.is_empty()) {
            text.push_str(&format!("{}\n", terminal::claims(results, most)));
        }
        text.push_str(&terminal::metrics_of_folder(results, most)?);
    } else {
        text.push_str(&means(results, asked, most)?);
    }
    output.text(&text)
}

fn show_scenario(
    results: &Results,
    scenario: usize,
    format: Format,
    output: Output,
) -> Result<(), Failure> {
    if scenario >= results.plan.scenarios.len() {
        return Err(Failure::Input(format!(
            "--scenario {scenario}: is not there (allowed: 0 to {})",
            results.plan.scenarios.len().saturating_sub(1)
        )));
    }
    // Rows are in the order of the runs, which is that of the scenarios.
    let all = &results.table.rows;
    let first = all.partition_point(|row| (row.scenario as usize) < scenario);
    let end = all.partition_point(|row| row.scenario as usize <= scenario);
    match format {
        Format::Table => output.text(&terminal::runs(results, scenario)),
        Format::Json => output.json(&rows(results, &all[first..end], &[])),
        Format::Csv => rows(results, &all[first..end], &[]).print_csv(output),
    }
}

fn show_run(
    results: &Results,
    run: u32,
    asked: &[String],
    format: Format,
    most: usize,
    output: Output,
) -> Result<(), Failure> {
    let rows_of_run = results.table.run(run);
    let series = results.series(run)?;
    match format {
        Format::Table => output.text(&run_text(results, run, rows_of_run, &series, asked, most)),
        Format::Csv => series_rows(&series).print_csv(output),
        Format::Json => {
            let planned = &results.plan.runs[run as usize];
            output.json(&OneRun {
                run,
                id: json!(planned.id),
                seed: planned.seed,
                scenario: results.plan.label(planned.scenario),
                repeat: sojourn_report::repeat(&results.plan, planned),
                rows: rows(results, rows_of_run, asked),
                freezes: rows_of_run
                    .iter()
                    .filter(|row| !row.freezes.is_empty())
                    .map(|row| json!({ "flow": row.name, "freezes": row.freezes }))
                    .collect(),
                series: series.iter().map(SeriesJson).collect(),
            })
        }
    }
}

/// All there is of a run. Its time series may be long, so that what is printed of it is not in memory as a whole.
#[derive(Serialize)]
struct OneRun<'a, R> {
    run: u32,
    id: Value,
    seed: u64,
    scenario: String,
    repeat: String,
    rows: R,
    freezes: Vec<Value>,
    series: Vec<SeriesJson<'a>>,
}

/// Means over seeds of the metrics that were asked for, for the first `most` flows and queues of the first `most` scenarios.
fn means(results: &Results, asked: &[String], most: usize) -> Result<String, Failure> {
    let mut tables = Vec::new();
    for kind in Kind::ALL {
        let table = means_of(results, kind, asked, most);
        if !table.is_empty() {
            tables.push(table);
        }
    }
    match tables.is_empty() {
        false => Ok(tables.join("\n") + &terminal::left_out(results, most)),
        true => Err(Failure::Input(format!(
            "nothing in {} has a value of {}",
            results.folder.display(),
            asked.join(", ")
        ))),
    }
}

/// A line for each scenario and flow group or queue; empty if there is nothing to show.
fn means_of(results: &Results, kind: Kind, metrics: &[String], most: usize) -> String {
    let means = terminal::means(results, kind, metrics, most);
    let lines = &means.lines;
    let is_used = |column: &usize| lines.iter().any(|line| !line.cells[*column].is_empty());
    let used: Vec<usize> = (0..metrics.len()).filter(is_used).collect();
    if used.is_empty() {
        return String::new();
    }
    let head: Vec<String> = used.iter().map(|column| format!(">{}", metrics[*column])).collect();
    let mut grid = Grid::new(
        [kind.name()].into_iter().chain(head.iter().map(String::as_str)).chain(["scenario"]),
    );
    for line in lines {
        let cells = used.iter().map(|column| line.cells[*column].clone());
        let label = results.plan.label(line.scenario);
        grid.row([line.of.clone()].into_iter().chain(cells).chain([label]));
    }
    let mut footnotes = terminal::Footnotes::default();
    lines.iter().flat_map(|line| &line.cells).for_each(|cell| footnotes.note(cell));
    grid.fitted() + &footnotes.text() + &means.below
}

fn run_text(
    results: &Results,
    run: u32,
    rows: &[Row],
    series: &[Series],
    asked: &[String],
    most: usize,
) -> String {
    let planned = &results.plan.runs[run as usize];
    let digest = rows.first().map_or("", |row| &row.digest);
    let label = results.plan.label(planned.scenario);
    let mut text = format!("run {run}, seed {}", planned.seed);
    if !label.is_empty() {
        text.push_str(&format!(", {label}"));
    }
    text.push_str(&format!("\nname {}, digest {digest}\n", planned.id));
    text.push_str(&format!("repeat {}\n", sojourn_report::repeat(&results.plan, planned)));
    if let Some(ending) = terminal::ending(results, run) {
        text.push_str(&format!("{ending}\n"));
    }
    for (kind, usual) in [(Kind::Flow, &FLOW_METRICS[..]), (Kind::Queue, &QUEUE_METRICS[..])] {
        let rows: Vec<&Row> = rows.iter().filter(|row| row.kind == kind).collect();
        let used: Vec<&str> = chosen(asked, usual)
            .into_iter()
            .filter(|metric| rows.iter().any(|row| results.table.value(row, metric).is_some()))
            .collect();
        if used.is_empty() {
            continue;
        }
        let head: Vec<String> = used.iter().map(|metric| format!(">{metric}")).collect();
        let mut grid = Grid::new([kind.name()].into_iter().chain(head.iter().map(String::as_str)));
        for row in rows.iter().take(most) {
            let value = |metric: &&str| match results.table.value(row, metric) {
                Some(value) => {
                    terminal::share(results, metric, value).unwrap_or_else(|| number(value))
                }
                None => String::new(),
            };
            grid.row([row.name.clone()].into_iter().chain(used.iter().map(value)));
        }
        text.push_str(&format!("\n{grid}"));
        if rows.len() > most {
            text.push_str(&terminal::of_all(results, kind.name(), &rows, &used));
            text.push_str(&terminal::more(rows.len() - most, kind.name()));
        }
    }
    let end_state = terminal::end_state(results, run);
    if !end_state.is_empty() {
        text.push_str(&format!(
            "\nat its end, as ss -ti and tc -s qdisc print it\n{}",
            first_lines(&end_state, most)
        ));
    }
    let freezes = terminal::freezes(results, run);
    if !freezes.is_empty() {
        text.push_str(&format!(
            "\nwhen the picture stood still, and why\n{}",
            first_lines(&freezes, most)
        ));
    }
    let width = terminal_size::terminal_size_of(std::io::stdout())
        .map_or(PLOT_WIDTH, |(width, _)| usize::from(width.0).min(PLOT_WIDTH));
    text.push_str(&format!("\n{}", terminal::series(series, width, PLOT_HEIGHT, most)));
    text
}

/// The first lines of a list, and how many more there are.
fn first_lines(text: &str, most: usize) -> String {
    let mut first: String = text.split_inclusive('\n').take(most).collect();
    let more = text.lines().count().saturating_sub(most);
    if more > 0 {
        first.push_str(&terminal::more(more, "line"));
    }
    first
}

/// The rows of `runs.parquet`, factors among them.
fn rows<'a>(
    results: &'a Results,
    rows: &'a [Row],
    asked: &'a [String],
) -> Rows<'a, impl Iterator<Item = Vec<Value>> + Clone + use<'a>> {
    let plan = &results.plan;
    let metrics = if asked.is_empty() { &results.table.metrics[..] } else { asked };
    let fixed = ["run", "id", "scenario", "seed", "kind", "name", "digest"];
    let factors = plan.factors.iter().map(|factor| &factor.name[..]);
    let names = fixed.into_iter().chain(factors).chain(metrics.iter().map(String::as_str));
    let column = |metric: &String| results.table.metrics.iter().position(|name| name == metric);
    let columns: Vec<Option<usize>> = metrics.iter().map(column).collect();
    let made = rows.iter().map(move |row| {
        let fixed = [
            json!(row.run),
            json!(plan.runs[row.run as usize].id),
            json!(row.scenario),
            json!(row.seed),
            json!(row.kind),
            json!(row.name),
            json!(row.digest),
        ];
        let factors = plan.scenarios[row.scenario as usize].factors.iter().map(|v| json!(v));
        let values = columns.iter().map(|column| json!(column.and_then(|at| row.values.get(at))));
        fixed.into_iter().chain(factors).chain(values).collect()
    });
    Rows::new(names.collect(), made)
}

/// A row for each step of each flow and queue.
fn series_rows(series: &[Series]) -> Rows<'_, impl Iterator<Item = Vec<Value>> + Clone + use<'_>> {
    let mut columns: Vec<&str> = Vec::new();
    for column in series.iter().flat_map(|one| &one.columns) {
        if !columns.contains(&&column.name[..]) {
            columns.push(&column.name);
        }
    }
    let names = ["kind", "name", "t_s", "phase"].into_iter().chain(columns.iter().copied());
    let names = names.collect();
    let rows = series.iter().flat_map(move |one| {
        let values: Vec<Option<&StepValues>> =
            columns.iter().map(|column| one.column(column)).collect();
        one.t_s.iter().enumerate().map(move |(step, t_s)| {
            let phase = one.phase.get(step).filter(|phase| !phase.is_empty());
            let phase = json!(phase.map(|phase| &phase[..]));
            let fixed = [json!(one.kind), json!(one.name), json!(t_s), phase];
            let value = |values: &Option<&StepValues>| {
                values.and_then(|values| values.get(step)).map_or(Value::Null, Value::from)
            };
            fixed.into_iter().chain(values.iter().map(value)).collect()
        })
    });
    Rows::new(names, rows)
}

/// The time series of a flow or queue as an object with a list for each column.
struct SeriesJson<'a>(&'a Series);

impl Serialize for SeriesJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Series { kind, name, t_s, columns, phase, .. } = self.0;
        let mut object = serializer.serialize_map(None)?;
        object.serialize_entry("kind", kind)?;
        object.serialize_entry("name", name)?;
        object.serialize_entry("t_s", t_s)?;
        columns.iter().try_for_each(|one| object.serialize_entry(&one.name, &one.values))?;
        if !phase.is_empty() {
            let phases = phase.iter().map(|phase| &phase[..]).collect::<Vec<_>>();
            object.serialize_entry("phase", &phases)?;
        }
        object.end()
    }
}

/// The full names of the metrics that were asked for.
fn asked(names: &[String]) -> Result<Vec<String>, Failure> {
    let find = |name: &String| {
        let metric = metrics::find(name, &Kind::ALL);
        metric
            .map(|metric| metric.name.to_owned())
            .map_err(|problem| Failure::Input(format!("--metric {name}: {problem}")))
    };
    names.iter().map(find).collect()
}

fn chosen<'a>(asked: &'a [String], usual: &[&'a str]) -> Vec<&'a str> {
    match asked.is_empty() {
        true => usual.to_vec(),
        false => asked.iter().map(String::as_str).collect(),
    }
}
