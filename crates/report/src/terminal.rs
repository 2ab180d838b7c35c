//! The tables of a page, as text for a terminal of about a hundred columns.

use std::convert::Infallible;
use std::fmt::Write;

use sojourn_study::results::{
    Check, ClaimResult, Kind, Results, ResultsError, Row, Series, StepValues, Verdict,
};

use crate::data::{Data, Extent, Mean, Subject};
use crate::ending;
use crate::extremes::{self, extremes};
pub use crate::lines::Footnotes;
use crate::lines::{aligned, cell_of, counted, not_listed, subjects_not_listed};
use crate::markup::plain_text;
use crate::names;
use crate::number::{number, percent, shown_with_unit};
use crate::page::{self, Sample, USUAL};
use crate::survey::{self, EachRun};

/// Lines for a terminal, without control sequences.
pub fn plain_lines(text: &str) -> String {
    text.split('\n').map(plain_text).collect::<Vec<_>>().join("\n")
}

/// So many scenarios, and bounds of a claim, are listed unless all are asked for; the page lists as many bounds.
pub const MOST: usize = page::MOST_CHECKS;

/// The claims: verdict, text, and what was measured where, at most `most` times for each. Of more than `most` claims so many are
/// listed, those first that do not hold.
pub fn claims(results: &Results, most: usize) -> String {
    let Some(report) = &results.claims else {
        return "Claims were not checked.\n".into();
    };
    let mut out = String::new();
    let mut claims: Vec<&ClaimResult> = report.claims.iter().collect();
    if claims.len() > most {
        claims.sort_by_key(|claim| claim.verdict.place());
    }
    for claim in claims.iter().take(most) {
        let mark = claim.verdict.mark();
        let _ =
            writeln!(out, "{mark:<12} {:<5} {}", plain_text(&claim.id), plain_text(&claim.text));
        if let Some(reason) = &claim.reason {
            let _ = writeln!(out, "             {}", plain_text(reason));
        }
        let shown = claim
            .checks
            .iter()
            .filter(|check| check.verdict != Verdict::Holds || claim.checks.len() == 1);
        let count = shown.clone().count();
        for check in shown.take(most) {
            let _ = writeln!(out, "             {}", check_line(check));
        }
        if count > most {
            let _ = writeln!(out, "             {}", not_listed(count - most, "bound", results));
        }
    }
    if claims.len() > most {
        let _ = writeln!(out, "{}", not_listed(claims.len() - most, "claim", results));
    }
    let _ = writeln!(out, "{}: {}", counted(claims.len(), "claim"), counts(&claims));
    out
}

/// `11 held, 9 not held, 6 untestable`.
pub fn counts(claims: &[&ClaimResult]) -> String {
    let count = |verdict| claims.iter().filter(|claim| claim.verdict == verdict).count();
    format!(
        "{} held, {} not held, {} untestable",
        count(Verdict::Holds),
        count(Verdict::Fails),
        count(Verdict::Untestable)
    )
}

/// How many scenarios of a plan a table of the first `most` leaves out; empty if none.
pub fn left_out(results: &Results, most: usize) -> String {
    match results.plan.scenarios.len().saturating_sub(most) {
        0 => String::new(),
        more => format!("\n{}\n", not_listed(more, "scenario", results)),
    }
}

/// `700 flows more are not listed: --all lists all`, of a run.
pub fn more(more: usize, word: &str) -> String {
    let are = if more == 1 { "is" } else { "are" };
    format!("{} more {are} not listed: --all lists all\n", counted(more, word))
}

/// The numbers of the first `most` scenarios: a table for each application, for queues and for runs, with the
/// metrics that people ask for first, mean ± half the 95 % interval over seeds.
pub fn metrics(results: &Results, most: usize) -> String {
    let mut rows = |_: &[&str], each: &mut EachRun<'_>| -> Result<(), Infallible> {
        let runs = 0..results.plan.runs.len() as u32;
        let is_done = |run: &u32| results.missing.binary_search(run).is_err();
        runs.filter(is_done).for_each(|run| each(results.table.run(run)));
        Ok(())
    };
    match survey::metrics(results, most, &mut rows) {
        Ok(text) => text,
        Err(never) => match never {},
    }
}

/// The same of results whose rows are not in memory. The folder is read a run at a time, and
/// what is kept grows with the scenarios and not with their runs.
///
/// # Errors
/// The folder cannot be read.
pub fn metrics_of_folder(results: &Results, most: usize) -> Result<String, ResultsError> {
    survey::metrics(results, most, &mut |metrics: &[&str], each: &mut EachRun<'_>| {
        let mut runs = results.run_rows(metrics)?;
        while let Some(rows) = runs.next()? {
            each(&rows);
        }
        Ok(())
    })
}

/// How a run ended that lasts until its transfers are done; `None` for a run of fixed duration.
pub fn ending(results: &Results, run: u32) -> Option<String> {
    ending::of_run(results, run)
}

/// Means over seeds of some metrics: the lines that are listed, and what follows them.
pub struct Means {
    pub lines: Vec<MeansLine>,
    /// What is said of all lines, and how many flows or queues are not listed; empty if all lines are.
    pub below: String,
}

/// For a scenario and a group of flows, a queue, or a run.
pub struct MeansLine {
    pub scenario: u32,
    /// What the page calls it: `all flows` for a run.
    pub of: String,
    /// `12.3 ± 0.4 (10 of 20)`, `12.3 ± 0.4 (2 of 3 runs)`; empty where there is no value.
    pub cells: Vec<String>,
}

/// The means of `metrics` for all subjects that have any of them, scenario by scenario: of the first `most` scenarios, and of
/// each the first `most` flows or queues.
pub fn means<'m>(results: &Results, kind: Kind, metrics: &'m [String], most: usize) -> Means {
    let data = Data::new(results);
    let is_there =
        |subject: &&Subject| metrics.iter().any(|metric| data.was_asked(subject, metric));
    let subjects: Vec<&Subject> = data.of_kind(kind).filter(is_there).collect();
    let scenarios = data.plan.scenarios.len();
    let listed = &subjects[..subjects.len().min(most)];
    let mut lines = Vec::new();
    for scenario in 0..scenarios.min(most) {
        for subject in listed {
            let cell = |metric: &String| match cell(&data, scenario, subject, metric, "") {
                text if text == "-" => String::new(),
                text => text,
            };
            let cells: Vec<String> = metrics.iter().map(cell).collect();
            if cells.iter().any(|cell| !cell.is_empty()) {
                let of = subject.label().to_owned();
                lines.push(MeansLine { scenario: scenario as u32, of, cells });
            }
        }
    }
    let mut below = String::new();
    let more = &subjects[listed.len()..];
    if !subjects.is_empty() && (!more.is_empty() || scenarios > most) {
        let all: Vec<u32> = (0..scenarios as u32).collect();
        let of_metric = |metric: &'m String| {
            let mut places = Vec::new();
            for scenario in 0..scenarios {
                for (at, subject) in subjects.iter().enumerate() {
                    let mean = data.mean(scenario, subject, metric);
                    places.extend(mean.map(|mean| (mean.mean, scenario * subjects.len() + at)));
                }
            }
            (&metric[..], places)
        };
        below += &extremes::of_scenarios(&data, &subjects, &all, metrics.iter().map(of_metric));
    }
    if !more.is_empty() {
        let _ = writeln!(below, "{}", subjects_not_listed(more, results));
    }
    Means { lines, below }
}

/// The mean over runs, as [`cell_of`] shows it.
pub(crate) fn cell(
    data: &Data,
    scenario: usize,
    subject: &Subject,
    metric: &str,
    unit: &str,
) -> String {
    let points = data.points(scenario, subject, metric);
    cell_of(data.plan, metric, unit, Mean::of(&points), points.tally())
}

/// What is said of all rows of a run of which a table lists only some: of each metric the least, the median and the largest
/// value, and which rows have the least and the largest. `word` is what rows are: `flow`.
pub fn of_all<'m>(results: &Results, word: &str, rows: &[&Row], metrics: &[&'m str]) -> String {
    let of_metric = |metric: &&'m str| {
        let value = |(at, row): (usize, &&Row)| Some((results.table.value(row, metric)?, at));
        (*metric, rows.iter().enumerate().filter_map(value).collect())
    };
    let all = counted(rows.len(), word);
    let metrics = metrics.iter().map(of_metric);
    extremes(&results.plan, &all, metrics, &|at| plain_text(&rows[at].name))
}

/// A share as a percentage; `None` for another metric.
pub fn share(results: &Results, metric: &str, value: f64) -> Option<String> {
    let (factor, unit) = names::percentage(&results.plan, metric)?;
    Some(shown_with_unit(value * factor, None, unit))
}

/// What `ss -ti` and `tc -s qdisc` would have printed at the end of a run.
pub fn end_state(results: &Results, run: u32) -> String {
    let data = Data::new(results);
    let Some(planned) = data.plan.runs.get(run as usize) else { return String::new() };
    let rows: Vec<_> = data.rows(run).map(|(row, _)| row).collect();
    let text = page::end_state(&data, &rows, planned.scenario as usize, &Sample::All);
    text.lines().map(|line| plain_text(&line.replace('\t', "    ")) + "\n").collect()
}

/// When the pictures of a run's calls stood still, and which packets made it so; empty if they never did.
pub fn freezes(results: &Results, run: u32) -> String {
    let data = Data::new(results);
    let warmup = data.plan.scenarios[data.plan.runs[run as usize].scenario as usize].warmup_s;
    let mut out = String::new();
    for row in results.table.run(run) {
        for freeze in &row.freezes {
            out += &format!(
                "{} {:.3} s for {:.0} ms{}: {}\n",
                row.name,
                freeze.from_s,
                (freeze.to_s - freeze.from_s) * 1e3,
                crate::freezes::counted(freeze, warmup),
                crate::freezes::cause(freeze)
            );
            for lost in crate::freezes::lost(freeze) {
                out += &format!("    packet {lost}\n");
            }
            for repair in crate::freezes::repairs(freeze) {
                out += &format!("    packet {repair}\n");
            }
        }
    }
    out.lines().map(|line| plain_text(line) + "\n").collect()
}

/// The runs of a scenario, seed by seed, with the spread of each metric as a sparkline.
pub fn runs(results: &Results, scenario: usize) -> String {
    let data = Data::new(results);
    if scenario >= data.plan.scenarios.len() {
        return String::new();
    }
    let mut table = vec![
        ["of", "metric", "mean", "least", "largest", "seed by seed"].map(str::to_owned).to_vec(),
    ];
    for subject in &data.subjects {
        for metric in USUAL.iter().filter(|metric| data.has(subject, metric)) {
            let points = data.points(scenario, subject, metric);
            if points.is_empty() {
                continue;
            }
            let values: Vec<Option<f64>> = points.iter().map(|point| Some(point.value)).collect();
            let low = points.iter().map(|point| point.value).fold(f64::INFINITY, f64::min);
            let high = points.iter().map(|point| point.value).fold(f64::NEG_INFINITY, f64::max);
            let of_one = |value| share(results, metric, value).unwrap_or_else(|| number(value));
            table.push(vec![
                plain_text(subject.label()),
                (*metric).to_owned(),
                cell(&data, scenario, subject, metric, names::unit(data.plan, metric)),
                of_one(low),
                of_one(high),
                sparkline(&values, values.len().min(40)),
            ]);
        }
    }
    format!("{}\n{}", plain_text(&data.label(scenario)), aligned(&table, 2))
}

/// Values from least to largest as blocks of eight heights, each of the `width` columns showing the
/// largest value that falls into it.
pub fn sparkline(values: &[Option<f64>], width: usize) -> String {
    const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let known = || values.iter().flatten().copied().filter(|value| value.is_finite());
    let low = known().fold(f64::INFINITY, f64::min);
    let high = known().fold(f64::NEG_INFINITY, f64::max);
    let width = width.min(values.len());
    (0..width)
        .map(|column| {
            let part = &values[column * values.len() / width..(column + 1) * values.len() / width];
            let largest =
                part.iter().flatten().copied().filter(|value| value.is_finite()).reduce(f64::max);
            match largest {
                None => ' ',
                Some(_) if high <= low => BLOCKS[0],
                Some(value) => BLOCKS[((value - low) / (high - low) * 7.0).round() as usize],
            }
        })
        .collect()
}

/// The time series of a run as text: a plot for each quantity, in which every column spans the
/// least to the largest value that falls into it. Then the phases of the first `most` controllers.
pub fn series(series: &[Series], width: usize, height: usize, most: usize) -> String {
    let mut out = String::new();
    let width = width.clamp(30, 400) - 12;
    let height = height.clamp(3, 60);
    for (title, columns) in PLOTS {
        let mut curves: Vec<(String, &StepValues)> = Vec::new();
        for one in series {
            for column in columns.iter() {
                if let Some(values) = one.column(column)
                    && values.known().any(|value| value != 0.0)
                {
                    curves.push((plain_text(&one.name), values));
                }
            }
        }
        if !curves.is_empty() {
            let end = series.iter().filter_map(|one| one.t_s.last()).copied().fold(0.0, f64::max);
            out += &plot(title, &curves, end, width, height);
        }
    }
    let mut controllers =
        series.iter().filter(|one| one.phase.iter().any(|phase| !phase.is_empty()));
    controllers.by_ref().take(most).for_each(|one| out += &phases(one));
    let more = controllers.count();
    if more > 0 {
        out += &self::more(more, "controller");
    }
    out
}

const PLOTS: &[(&str, &[&str])] = &[
    ("goodput (Mbit/s)", &["goodput_mbps"]),
    ("RTT, largest of each step (ms)", &["rtt_max_ms"]),
    ("queue sojourn, largest of each step (ms)", &["sojourn_max_ms"]),
    ("queue, largest of each step (packets)", &["queue_peak_pkts"]),
    ("cwnd (packets)", &["cwnd_pkts"]),
    ("drops in each step (packets)", &["drops"]),
    ("marks in each step (packets)", &["marks"]),
];

const MARKS: [char; 6] = ['•', '+', 'x', 'o', '#', '='];

fn plot(
    title: &str,
    curves: &[(String, &StepValues)],
    end: f64,
    width: usize,
    height: usize,
) -> String {
    let known =
        || curves.iter().flat_map(|(_, values)| values.known()).filter(|value| value.is_finite());
    let low = known().fold(0.0, f64::min);
    let high = known().fold(0.0, f64::max);
    let row = |value: f64| {
        let share = if high > low { (value - low) / (high - low) } else { 0.0 };
        height - 1 - (share * (height - 1) as f64).round() as usize
    };
    let mut cells = vec![vec![' '; width]; height];
    for (which, (_, values)) in curves.iter().enumerate() {
        for column in 0..width {
            let part = column * values.len() / width
                ..((column + 1) * values.len()).div_ceil(width).min(values.len());
            let known = || values.known_in(part.clone()).filter(|value| value.is_finite());
            let (Some(least), Some(largest)) = (known().reduce(f64::min), known().reduce(f64::max))
            else {
                continue;
            };
            for cells in &mut cells[row(largest)..=row(least)] {
                cells[column] = MARKS[which % MARKS.len()];
            }
        }
    }
    let mut names: Vec<String> =
        curves.iter().zip(MARKS).map(|((name, _), mark)| format!("{mark} {name}")).collect();
    if curves.len() > MARKS.len() {
        names.push(format!("and {} more, with these marks in turn", curves.len() - MARKS.len()));
    }
    let mut out = format!("{title}   {}\n", names.join("   "));
    for (at, line) in cells.iter().enumerate() {
        let label = match at {
            0 => number(high),
            at if at + 1 == height => number(low),
            _ => String::new(),
        };
        let text: String = line.iter().collect();
        let _ = writeln!(out, "{label:>9} │{}", text.trim_end());
    }
    let _ = writeln!(out, "{:>9} └{}", "", "─".repeat(width));
    let last = format!("{} s", number(end));
    let _ =
        writeln!(out, "{:>11}{:<w$}{last}\n", "", "0", w = width - last.chars().count().min(width));
    out
}

/// How long a controller was in each phase.
fn phases(series: &Series) -> String {
    let mut times: Vec<(&str, usize)> = Vec::new();
    for phase in series.phase.iter().filter(|phase| !phase.is_empty()) {
        match times.iter_mut().find(|(name, _)| *name == &phase[..]) {
            Some((_, steps)) => *steps += 1,
            None => times.push((phase, 1)),
        }
    }
    let all: usize = times.iter().map(|(_, steps)| steps).sum();
    let parts: Vec<String> = times
        .iter()
        .map(|(name, steps)| {
            format!("{} {}", plain_text(name), percent(*steps as f64 / all as f64))
        })
        .collect();
    format!("{}: {}\n", plain_text(&series.name), parts.join(", "))
}

fn check_line(check: &Check) -> String {
    let mut line = plain_text(&check.expression);
    if !check.label.is_empty() {
        let _ = write!(line, " [{}]", plain_text(&check.label));
    }
    if let Some(value) = &check.value {
        let _ = write!(line, ": {}", shown_with_unit(value.mean, value.half_width, &value.unit));
    }
    if let Some(bound) = &check.bound {
        let bound = shown_with_unit(bound.mean, bound.half_width, &bound.unit);
        let _ = write!(line, " beside {bound}");
    }
    if let Some(miss) = &check.miss {
        let share = miss.share.map_or(String::new(), |share| format!(" ({})", percent(share)));
        let by = miss.in_points(shown_with_unit(miss.by, None, &miss.unit));
        let _ = write!(line, ", off by {by}{share}");
    }
    if let Some(reason) = &check.reason {
        let _ = write!(line, ": {}", plain_text(reason));
    }
    line
}

#[cfg(test)]
mod tests {
    use sojourn_study::results::{Estimate, Miss};

    use super::*;

    #[test]
    fn a_sparkline_shows_the_peak_of_a_column() {
        let mut values = vec![Some(0.0); 100];
        values[55] = Some(8.0);
        assert_eq!(sparkline(&values, 10), "▁▁▁▁▁█▁▁▁▁");
        assert_eq!(sparkline(&[None, Some(1.0)], 2), " ▁");
        assert_eq!(sparkline(&[], 10), "");
    }

    #[test]
    fn a_claim_that_fails_by_a_tiny_percentage_says_so_without_an_exponent() {
        let check = Check {
            expression: "utilisation(queue) <= 50 %".into(),
            scenario: 0,
            label: String::new(),
            verdict: Verdict::Fails,
            reason: None,
            value: Some(Estimate { mean: 50.0, half_width: None, seeds: 1, unit: "%".into() }),
            bound: None,
            wanted: "<= 50 %".into(),
            miss: Some(Miss { by: 6.1e-4, unit: "%".into(), share: Some(1.2e-5) }),
            room: None,
        };
        let line = "utilisation(queue) <= 50 %: 50 %, off by <0.01 points (<0.1 %)";
        assert_eq!(check_line(&check), line);
    }

    #[test]
    fn columns_stand_under_each_other() {
        let table = [vec!["a".into(), "b".into()], vec!["long".into(), "12".into()]];
        assert_eq!(aligned(&table, 1), "a      b\nlong  12\n");
    }

    #[test]
    fn a_plot_reaches_from_least_to_largest() {
        let values: StepValues = (0..100).map(|at| Some(f64::from(at))).collect();
        let text = plot("x", &[("a".into(), &values)], 10.0, 20, 5);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[1].starts_with("       99") && lines[1].ends_with('•'), "{text}");
        assert!(lines[5].contains("0 │•"), "{text}");
    }
}
