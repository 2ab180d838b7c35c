//! Tables as text for people, as JSON and CSV for programs.

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
    /// A head that begins with `>` is of a column of numbers, which stands at the right.
    pub(crate) fn new<'a>(head: impl IntoIterator<Item = &'a str>) -> Self {
        let mut grid = Self::default();
        for name in head {
            grid.is_right.push(name.starts_with('>'));
            grid.head.push(name.trim_start_matches('>').to_owned());
        }
        grid
    }

    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = impl Into<String>>) {
        self.rows.push(cells.into_iter().map(Into::into).collect());
    }
}

impl std::fmt::Display for Grid {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let all = || std::iter::once(&self.head).chain(&self.rows);
        let width = |column: usize| {
            let cells = all().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.head.len()).map(width).collect();
        for row in all() {
            let mut line = String::new();
            for (index, cell) in row.iter().enumerate() {
                let width = widths.get(index).copied().unwrap_or(0);
                match self.is_right.get(index) {
                    Some(true) => line.push_str(&format!("{cell:>width$}")),
                    _ => line.push_str(&format!("{cell:<width$}")),
                }
                line.push_str("  ");
            }
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
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

    /// A list of objects.
    pub(crate) fn json(&self) -> Value {
        let object = |row: &Vec<Value>| -> Value {
            let pairs = self.columns.iter().cloned().zip(row.iter().cloned());
            Value::Object(pairs.collect::<Map<_, _>>())
        };
        Value::Array(self.rows.iter().map(object).collect())
    }

    /// With a head, as RFC 4180 has it but for the line ends.
    pub(crate) fn csv(&self) -> String {
        let mut text = String::new();
        let mut line = |cells: &mut dyn Iterator<Item = String>| {
            text.push_str(&cells.map(|cell| csv_cell(&cell)).collect::<Vec<_>>().join(","));
            text.push('\n');
        };
        line(&mut self.columns.iter().cloned());
        for row in &self.rows {
            line(&mut row.iter().map(|value| match value {
                Value::Null => String::new(),
                Value::String(text) => text.clone(),
                other => other.to_string(),
            }));
        }
        text
    }
}

/// Prints the same as text, JSON or CSV.
pub(crate) fn print(
    output: Output,
    format: Format,
    text: impl FnOnce() -> String,
    records: impl FnOnce() -> Records,
) -> Result<(), Failure> {
    match format {
        Format::Table => output.data(&text()),
        Format::Json => output.json(&records().json()),
        Format::Csv => output.data(&records().csv()),
    }
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
    fn a_cell_with_a_comma_is_quoted() {
        let mut records = Records::new(["a", "b"]);
        records.row([Value::from("x, \"y\""), Value::Null]);
        assert_eq!(records.csv(), "a,b\n\"x, \"\"y\"\"\",\n");
        assert_eq!(records.json(), serde_json::json!([{ "a": "x, \"y\"", "b": null }]));
    }
}
