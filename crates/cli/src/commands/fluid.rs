//! `sojourn fluid`: where a study's worlds come to rest, and how they get there.

use serde_json::{Value, json};
use sojourn_fluid::{Equilibrium, equilibrium, trajectory};
use sojourn_study::results::Plan;
use sojourn_study::{Registry, Study};

use crate::args::{EquilibriumArgs, FluidCommand, Format, PortraitArgs};
use crate::failure::Failure;
use crate::output::Output;
use crate::table::{Grid, Records};

pub(super) fn fluid(
    command: &FluidCommand,
    registry: &Registry,
    output: Output,
) -> Result<(), Failure> {
    match command {
        FluidCommand::Equilibrium(args) => rest(args, registry, output),
        FluidCommand::Portrait(args) => portrait(args, registry, output),
    }
}

/// A row for each scenario: its factors, where it rests, and whether it stays there.
fn rest(args: &EquilibriumArgs, registry: &Registry, output: Output) -> Result<(), Failure> {
    let study = args.study.load(registry)?;
    let plan = study.plan();
    let varied = varied(&plan);
    let found: Vec<Result<Equilibrium, String>> = study
        .scenarios
        .iter()
        .map(|scenario| equilibrium(&scenario.scenario).map_err(|error| error.to_string()))
        .collect();
    if let Some(Err(problem)) = found.first()
        && found.iter().all(Result::is_err)
    {
        return Err(Failure::Input(format!("{}: {problem}", plan.path)));
    }
    let factors = varied.iter().map(|at| &plan.factors[*at].name[..]);
    let columns = [
        "queue_pkts",
        "wait_ms",
        "signalled_percent",
        "goodput_mbps",
        "utilisation_percent",
        "least_share",
        "stable",
        "settles_s",
        "period_s",
        "root_re",
        "root_im",
        "problem",
    ];
    let mut records = Records::new(factors.clone().chain(columns));
    for (place, found) in found.iter().enumerate() {
        let own = varied.iter().map(|at| Value::from(&plan.scenarios[place].factors[*at][..]));
        let row: Vec<Value> = match found {
            Ok(found) => numbers(found),
            Err(problem) => {
                let mut row = vec![Value::Null; columns.len() - 1];
                row.push(json!(problem));
                row
            }
        };
        records.row(own.chain(row));
    }
    match args.format {
        Format::Json => output.json(&records.json()),
        Format::Csv => output.data(&records.csv()),
        Format::Table => output.text(&text(&study, &plan, &varied, &found)),
    }
}

/// Factors with more than one value.
fn varied(plan: &Plan) -> Vec<usize> {
    (0..plan.factors.len()).filter(|at| plan.factors[*at].values.len() > 1).collect()
}

fn numbers(found: &Equilibrium) -> Vec<Value> {
    let goodputs = || found.flows.iter().map(|flow| flow.goodput);
    let sum: f64 = goodputs().sum();
    let least = goodputs().fold(f64::INFINITY, f64::min);
    let stability = found.stability.as_ref();
    let root = stability.and_then(|stability| stability.roots.first());
    vec![
        json!(found.queue),
        json!(1000.0 * found.wait),
        json!(100.0 * found.signalled),
        json!(sum / 1e6),
        json!(100.0 * found.utilisation),
        json!(least / sum),
        json!(stability.map(|stability| stability.is_stable())),
        json!(stability.and_then(|stability| stability.settles_in())),
        json!(stability.and_then(|stability| stability.period())),
        json!(root.map(|root| root.0)),
        json!(root.map(|root| root.1)),
        Value::Null,
    ]
}

fn text(
    study: &Study,
    plan: &Plan,
    varied: &[usize],
    found: &[Result<Equilibrium, String>],
) -> String {
    let heads = [">queue pkts", ">wait ms", ">signalled %", ">Mbit/s", ">least share", "at rest"];
    let factors = varied.iter().map(|at| &plan.factors[*at].name[..]);
    let mut grid = Grid::new(factors.chain(heads));
    for (place, found) in found.iter().enumerate() {
        let own = varied.iter().map(|at| plan.scenarios[place].factors[*at].to_string());
        let row: Vec<String> = match found {
            Ok(found) => {
                let goodputs = || found.flows.iter().map(|flow| flow.goodput);
                let sum: f64 = goodputs().sum();
                let least = goodputs().fold(f64::INFINITY, f64::min);
                vec![
                    format!("{:.1}", found.queue),
                    format!("{:.2}", 1000.0 * found.wait),
                    format!("{:.3}", 100.0 * found.signalled),
                    rate(sum, 2),
                    format!("{:.3}", least / sum),
                    behaviour(found),
                ]
            }
            Err(problem) => {
                let mut row = vec![String::new(); heads.len() - 1];
                row.push(problem.clone());
                row
            }
        };
        grid.row(own.chain(row));
    }
    let mut text = grid.fitted();
    if let [Ok(found)] = found
        && let Some(only) = study.scenarios.first()
    {
        text.push('\n');
        let mut grid = Grid::new(["flow", ">window pkts", ">RTT ms", ">signalled %", ">Mbit/s"]);
        for flow in &found.flows {
            grid.row([
                only.scenario.flows[flow.flow].name.to_string(),
                format!("{:.2}", flow.window),
                format!("{:.2}", 1000.0 * flow.rtt),
                format!("{:.3}", 100.0 * flow.signalled),
                rate(flow.goodput, 3),
            ]);
        }
        text.push_str(&grid.fitted());
    }
    text
}

/// A rate in Mbit/s, or in kbit/s where that would show little more than zeros.
fn rate(bps: f64, digits: usize) -> String {
    match bps > 0.0 && bps < 0.01e6 {
        true => format!("{:.3} kbit/s", bps / 1e3),
        false => format!("{:.digits$}", bps / 1e6),
    }
}

/// Longer than any run; that something happens so slowly is all that its time says.
const SLOWEST: f64 = 1e6;

/// Whether the link is full, and what a small disturbance does.
fn behaviour(found: &Equilibrium) -> String {
    match found.is_full() {
        true => disturbed(found),
        false => {
            let percent = 100.0 * found.utilisation;
            format!("the flows can't fill the link: {percent:.1} % of it; {}", disturbed(found))
        }
    }
}

fn disturbed(found: &Equilibrium) -> String {
    let Some(stability) = &found.stability else {
        return match found.is_full() {
            true => "a closed form; stability not known here".into(),
            false => "stable: buffers keep all windows".into(),
        };
    };
    let seconds = |time: Option<f64>| match time {
        Some(time) if time < 1.0 => format!("{:.0} ms", 1000.0 * time),
        Some(time) => format!("{time:.1} s"),
        None => "?".into(),
    };
    if stability.settles_in().is_some_and(|time| time > SLOWEST) {
        let what = if stability.is_stable() { "stable: settles" } else { "unstable: grows" };
        return format!("{what} more slowly than any run could show");
    }
    let swings = stability.period().map(|_| format!(", period {}", seconds(stability.period())));
    let swings = swings.unwrap_or_default();
    match stability.is_stable() {
        true => format!("stable: settles in {}{swings}", seconds(stability.settles_in())),
        false => format!("unstable: grows 50 times in {}{swings}", seconds(stability.settles_in())),
    }
}

/// Rows of CSV: windows and queue over time, from several starts.
fn portrait(args: &PortraitArgs, registry: &Registry, output: Output) -> Result<(), Failure> {
    let study = args.study.load(registry)?;
    let plan = study.plan();
    let scenario = study.scenarios.get(args.scenario).ok_or_else(|| {
        Failure::Input(format!(
            "there is no scenario {} (allowed: 0 to {})",
            args.scenario,
            study.scenarios.len() - 1
        ))
    })?;
    let flows = scenario.scenario.flows.iter().map(|flow| format!("window_{}_pkts", flow.name));
    let heads: Vec<String> =
        ["start", "t_s", "queue_pkts"].map(String::from).into_iter().chain(flows).collect();
    let mut records = Records::new(heads.iter().map(String::as_str));
    for start in &args.start {
        let seconds = args.time.as_secs_f64();
        let rows = trajectory(&scenario.scenario, *start, seconds, args.rows as usize)
            .map_err(|error| Failure::Input(format!("{}: {error}", plan.path)))?;
        for row in rows {
            records.row(std::iter::once(json!(start)).chain(row.iter().map(|value| json!(value))));
        }
    }
    output.data(&records.csv())
}
