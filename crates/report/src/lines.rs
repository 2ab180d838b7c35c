//! Lines of a table on a terminal, and what stands in their cells.

use std::collections::BTreeSet;
use std::fmt::Write;

use sojourn_study::results::{Kind, Plan, Results};

use crate::data::{Mean, Subject, Tally};
use crate::names;
use crate::number::{estimate, shown_with_unit};

const OF_SAMPLES: &str =
    "(n of N), (%): of so many samples; the others were lost or refused, or had not ended\n";
const OF_RUNS: &str = "(n of N runs): the other runs have no result\n";

/// What the numbers in brackets behind the cells of a table are.
#[derive(Clone, Copy, Debug, Default)]
pub struct Footnotes {
    of_samples: bool,
    of_runs: bool,
}

impl Footnotes {
    /// Takes in a cell of the table.
    pub fn note(&mut self, cell: &str) {
        let is_of_runs = cell.ends_with(" runs)");
        self.of_runs |= is_of_runs && !cell.starts_with('-');
        self.of_samples |= cell.ends_with(')') && !is_of_runs;
    }

    /// A line for each of what they are.
    pub fn text(self) -> String {
        let notes = [(self.of_samples, OF_SAMPLES), (self.of_runs, OF_RUNS)];
        notes.into_iter().filter_map(|(is_there, note)| is_there.then_some(note)).collect()
    }
}

/// A mean, and how many samples or runs it has if some are missing. Shares are shown as percentages, other
/// metrics with `unit`.
pub(crate) fn cell_of(
    plan: &Plan,
    metric: &str,
    unit: &str,
    mean: Option<Mean>,
    tally: &Tally,
) -> String {
    match mean {
        Some(found @ Mean { mean, half_width, .. }) => {
            let text = match names::percentage(plan, metric) {
                Some((factor, unit)) => {
                    shown_with_unit(mean * factor, half_width.map(|half| half * factor), unit)
                }
                None => estimate(mean, half_width, unit),
            };
            found.lacking().map_or(text.clone(), |counted| format!("{text} ({counted})"))
        }
        None => tally.why_none().map_or("-".to_owned(), |why| format!("- ({why})")),
    }
}

/// `39700 scenarios more are not listed: 'sojourn show out --all' lists all`.
pub(crate) fn not_listed(more: usize, word: &str, results: &Results) -> String {
    counted_not_listed(more, &counted(more, word), results)
}

/// The same of flows or queues.
pub(crate) fn subjects_not_listed(more: &[&Subject], results: &Results) -> String {
    counted_not_listed(more.len(), &counted_subjects(more, &results.plan), results)
}

fn counted_not_listed(more: usize, counted: &str, results: &Results) -> String {
    let are = if more == 1 { "is" } else { "are" };
    let folder = results.folder.display();
    format!("{counted} more {are} not listed: 'sojourn show {folder} --all' lists all")
}

/// Subjects of one kind: `5 flows`; `3 groups of 300 flows` where a line is of several flows.
pub(crate) fn counted_subjects(subjects: &[&Subject], plan: &Plan) -> String {
    let Some(kind) = subjects.first().map(|subject| subject.kind) else { return String::new() };
    let groups: BTreeSet<&str> = subjects.iter().map(|subject| &subject.name[..]).collect();
    let all = plan.scenarios.iter().flat_map(|scenario| scenario.flows.iter());
    let flows: BTreeSet<&str> =
        all.filter(|flow| groups.contains(&flow.group[..])).map(|flow| &flow.name[..]).collect();
    match kind == Kind::Flow && flows.len() > subjects.len() {
        true => format!("{} of {}", counted(subjects.len(), "group"), counted(flows.len(), "flow")),
        false => counted(subjects.len(), kind.name()),
    }
}

/// `1 claim`, `2 claims`.
pub(crate) fn counted(number: usize, word: &str) -> String {
    format!("{number} {word}{}", if number == 1 { "" } else { "s" })
}

/// Aligned columns: the first `left` to the left, the others to the right.
pub(crate) fn aligned(table: &[Vec<String>], left: usize) -> String {
    let mut lines = Lines::default();
    table.iter().for_each(|row| lines.add(row));
    let mut out = String::new();
    lines.write_aligned(left, &mut out);
    out
}

/// Lines of cells that are to be aligned: their text, and how wide columns are.
#[derive(Default)]
pub(crate) struct Lines {
    /// Cells end with [`Lines::END`], lines with a line end.
    text: String,
    widths: Vec<usize>,
}

impl Lines {
    /// Cells have no control characters.
    pub(crate) const END: char = '\u{1f}';

    pub(crate) fn add(&mut self, row: &[String]) {
        self.widths.resize(self.widths.len().max(row.len()), 0);
        for (cell, width) in row.iter().zip(&mut self.widths) {
            *width = cell.chars().count().max(*width);
            self.text.push_str(cell);
            self.text.push(Self::END);
        }
        self.text.push('\n');
    }

    pub(crate) fn write_aligned(&self, left: usize, out: &mut String) {
        for row in self.text.lines() {
            let mut line = String::new();
            for (at, (cell, width)) in row.split_terminator(Self::END).zip(&self.widths).enumerate()
            {
                let fill = " ".repeat(width - cell.chars().count());
                let gap = if at == 0 { "" } else { "  " };
                if at < left {
                    let _ = write!(line, "{gap}{cell}{fill}");
                } else {
                    let _ = write!(line, "{gap}{fill}{cell}");
                }
            }
            let _ = writeln!(out, "{}", line.trim_end());
        }
    }
}
