//! Tables as text for people, as JSON and CSV for programs.

use std::fmt;
use std::io::{self, Write};

use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

use crate::args::Format;
use crate::failure::Failure;
use crate::output::Output;

/// Rows of text in columns.
#[derive(Clone, Debug, Default)]
pub(crate) struct Grid {
    head: Vec<String>,
    is_right: Vec<bool>,
    rows: Vec<Vec<String>>,
}

impl Grid {
    /// A column whose head begins with `>` has numbers and is aligned right.
    pub(crate) fn new<'a>(head: impl IntoIterator<Item = &'a str>) -> Self {
        let mut grid = Self::default();
        for name in head {
            grid.is_right.push(name.starts_with('>'));
            grid.head.push(name.trim_start_matches('>').to_owned());
        }
        grid
    }

    /// A table of facts: names and values, without a head.
    pub(crate) fn of_pairs() -> Self {
        Self { head: Vec::new(), is_right: vec![false, false], rows: Vec::new() }
    }

    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = impl Into<String>>) {
        self.rows.push(cells.into_iter().map(Into::into).collect());
    }

    /// The text; if there is a terminal, the last column is folded at its width.
    pub(crate) fn fitted(&self) -> String {
        let terminal = terminal_size::terminal_size_of(std::io::stdout());
        self.folded(terminal.map_or(usize::MAX, |(width, _)| usize::from(width.0)))
    }

    fn folded(&self, width: usize) -> String {
        let mut text = Vec::new();
        // Writing to memory does not fail.
        let _ = self.write_folded(width, &|| self.rows.iter().cloned(), &mut text);
        String::from_utf8(text).unwrap_or_default()
    }

    /// Writes a grid whose rows are made twice, once to know how wide they are, and never kept.
    pub(crate) fn write<R: Iterator<Item = Vec<String>>>(
        &self,
        rows: &dyn Fn() -> R,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        self.write_folded(usize::MAX, rows, out)
    }

    fn write_folded<R: Iterator<Item = Vec<String>>>(
        &self,
        width: usize,
        rows: &dyn Fn() -> R,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let columns = self.is_right.len();
        let head = || std::iter::once(self.head.clone()).filter(|head| !head.is_empty());
        let mut widths = vec![0; columns];
        for row in head().chain(rows()) {
            for (cell, width) in row.iter().zip(&mut widths) {
                *width = cell.chars().count().max(*width);
            }
        }
        let before: usize = widths.iter().rev().skip(1).map(|width| width + GAP.len()).sum();
        // Narrower columns are left for the terminal to break.
        let room = width.saturating_sub(before).max(NARROWEST);
        for row in head().chain(rows()) {
            let mut line = String::new();
            for (index, cell) in row.iter().enumerate() {
                let width = widths[index];
                if index > 0 {
                    line.push_str(GAP);
                }
                if index + 1 == columns && !self.is_right[index] {
                    line.push_str(&fold(cell, room, before));
                } else if self.is_right[index] {
                    line.push_str(&format!("{cell:>width$}"));
                } else {
                    line.push_str(&format!("{cell:<width$}"));
                }
            }
            writeln!(out, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

impl fmt::Display for Grid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.folded(usize::MAX))
    }
}

const GAP: &str = "  ";
const NARROWEST: usize = 30;

/// Breaks lines between words and indents lines after the first.
fn fold(text: &str, width: usize, indent: usize) -> String {
    let mut folded = String::new();
    let mut length = 0;
    for word in text.split(' ') {
        let word_length = word.chars().count();
        if length > 0 && length + 1 + word_length > width {
            folded.push('\n');
            folded.push_str(&" ".repeat(indent));
            length = 0;
        } else if length > 0 {
            folded.push(' ');
            length += 1;
        }
        folded.push_str(word);
        length += word_length;
    }
    folded
}

/// Rows of values with named columns.
#[derive(Clone, Debug, Default)]
pub(crate) struct Records {
    columns: Vec<String>,
    rows: Vec<Vec<Value>>,
}

impl Records {
    pub(crate) fn new(columns: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { columns: columns.into_iter().map(Into::into).collect(), rows: Vec::new() }
    }

    /// A value for each column.
    pub(crate) fn row(&mut self, values: impl IntoIterator<Item = Value>) {
        self.rows.push(values.into_iter().collect());
    }

    /// As a JSON list of objects.
    pub(crate) fn json(&self) -> Value {
        let object = |row: &Vec<Value>| -> Value {
            let pairs = self.columns.iter().cloned().zip(row.iter().cloned());
            Value::Object(pairs.collect::<Map<_, _>>())
        };
        Value::Array(self.rows.iter().map(object).collect())
    }

    /// As CSV with a head (RFC 4180, but with plain line ends).
    pub(crate) fn csv(&self) -> String {
        let head = csv_line(self.columns.iter().cloned());
        std::iter::once(head).chain(self.rows.iter().map(|row| csv_row(row))).collect()
    }
}

/// Rows of values with named columns, each made when it is printed: there may be more of them than fit into memory.
pub(crate) struct Rows<'a, I> {
    columns: Vec<&'a str>,
    /// A value for each column.
    rows: I,
}

impl<'a, I: Iterator<Item = Vec<Value>> + Clone> Rows<'a, I> {
    pub(crate) fn new(columns: Vec<&'a str>, rows: I) -> Self {
        Self { columns, rows }
    }

    /// As [`Records::csv`].
    pub(crate) fn print_csv(&self, output: Output) -> Result<(), Failure> {
        output
            .stream(&mut |out| self.csv_lines().try_for_each(|line| out.write_all(line.as_bytes())))
    }

    fn csv_lines(&self) -> impl Iterator<Item = String> {
        let head = csv_line(self.columns.iter().map(|&name| name.to_owned()));
        std::iter::once(head).chain(self.rows.clone().map(|row| csv_row(&row)))
    }
}

/// As [`Records::json`].
impl<I: Iterator<Item = Vec<Value>> + Clone> Serialize for Rows<'_, I> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let object = |row: Vec<Value>| -> Map<String, Value> {
            self.columns.iter().map(|&name| name.to_owned()).zip(row).collect()
        };
        serializer.collect_seq(self.rows.clone().map(object))
    }
}

/// Named values, as text, a JSON object or CSV.
pub(crate) fn print_facts(output: Output, format: Format, facts: &[Fact]) -> Result<(), Failure> {
    match format {
        Format::Table => {
            let mut grid = Grid::of_pairs();
            for fact in facts.iter().filter(|fact| !fact.text.is_empty()) {
                grid.row([&fact.name, &fact.text]);
            }
            output.text(&grid.fitted())
        }
        Format::Json => {
            let pairs = facts.iter().map(|fact| (fact.key.clone(), fact.value.clone()));
            output.json(&Value::Object(pairs.collect()))
        }
        Format::Csv => {
            let mut records = Records::new(facts.iter().map(|fact| &fact.key[..]));
            records.row(facts.iter().map(|fact| fact.value.clone()));
            output.data(&records.csv())
        }
    }
}

/// A value with a name for people, and a key with the unit for programs.
#[derive(Clone, Debug)]
pub(crate) struct Fact {
    name: String,
    text: String,
    key: String,
    value: Value,
}

impl Fact {
    pub(crate) fn new(name: &str, text: impl Into<String>, key: &str, value: Value) -> Self {
        Self { name: name.to_owned(), text: text.into(), key: key.to_owned(), value }
    }

    /// A value for programs only, because people read it elsewhere.
    pub(crate) fn hidden(key: &str, value: Value) -> Self {
        Self::new("", "", key, value)
    }

    /// A value that is the same for people and programs.
    pub(crate) fn plain(name: &str, value: Value) -> Self {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        Self::new(name, text, &name.replace(' ', "_"), value)
    }
}

/// Prints the values as text, JSON or CSV.
pub(crate) fn print(
    output: Output,
    format: Format,
    text: impl FnOnce() -> String,
    records: impl FnOnce() -> Records,
) -> Result<(), Failure> {
    match format {
        Format::Table => output.text(&text()),
        Format::Json => output.json(&records().json()),
        Format::Csv => output.data(&records().csv()),
    }
}

/// A line of CSV with its end.
pub(crate) fn csv_line(cells: impl Iterator<Item = String>) -> String {
    cells.map(|cell| csv_cell(&cell)).collect::<Vec<_>>().join(",") + "\n"
}

pub(crate) fn csv_row(row: &[Value]) -> String {
    csv_line(row.iter().map(|value| match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }))
}

fn csv_cell(text: &str) -> String {
    match text.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stand_at_the_right() {
        let mut grid = Grid::new(["name", ">value"]);
        grid.row(["a", "1.5"]);
        grid.row(["longer", "10.25"]);
        assert_eq!(grid.to_string(), "name    value\na         1.5\nlonger  10.25\n");
    }

    #[test]
    fn rows_that_are_made_one_by_one_are_those_of_records() {
        let made = [vec![Value::from("a, b"), Value::Null], vec![1.into(), 2.5.into()]];
        for count in 0..=made.len() {
            let rows = Rows::new(vec!["name", "value"], made[..count].iter().cloned());
            let mut records = Records::new(["name", "value"]);
            made[..count].iter().for_each(|row| records.row(row.iter().cloned()));
            assert_eq!(
                serde_json::to_string_pretty(&rows).unwrap(),
                serde_json::to_string_pretty(&records.json()).unwrap()
            );
            assert_eq!(rows.csv_lines().collect::<String>(), records.csv());
        }
    }

    #[test]
    fn the_last_column_is_folded_between_words() {
        let mut grid = Grid::of_pairs();
        let words = "one two three four five six seven eight nine ten";
        grid.row(["name", words]);
        let text = grid.folded(36);
        assert_eq!(text, "name  one two three four five six\n      seven eight nine ten\n");
        assert_eq!(grid.to_string(), format!("name  {words}\n"));
    }

    #[test]
    fn a_cell_with_a_comma_is_quoted() {
        let mut records = Records::new(["a", "b"]);
        records.row([Value::from("x, \"y\""), Value::Null]);
        assert_eq!(records.csv(), "a,b\n\"x, \"\"y\"\"\",\n");
        assert_eq!(records.json(), serde_json::json!([{ "a": "x, \"y\"", "b": null }]));
    }
}
