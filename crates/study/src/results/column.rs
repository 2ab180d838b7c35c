//! Columns of a row group that is being filled.

use std::iter::repeat_n;
use std::ops::Range;

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ColumnType {
    Int32,
    /// 64 bits without sign.
    Int64,
    /// Text that may be missing.
    Text,
    /// A number that may be missing.
    Double,
    /// The same in single precision.
    Float,
}

/// A column of a row group that is being filled.
#[derive(Clone, Debug)]
pub(crate) enum Column {
    Int32(Vec<u32>),
    Int64(Vec<u64>),
    Text(Presence, Texts),
    Double(Presence, Vec<f64>),
    Float(Presence, Vec<f32>),
}

/// What goes into a column.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Cell<'a> {
    Count(u64),
    Text(Option<&'a str>),
    Number(Option<f64>),
}

const ORDER: &str = "columns are made in the order in which cells are pushed";

impl Column {
    pub(super) fn empty(kind: ColumnType) -> Self {
        match kind {
            ColumnType::Int32 => Self::Int32(Vec::new()),
            ColumnType::Int64 => Self::Int64(Vec::new()),
            ColumnType::Text => Self::Text(Presence::default(), Texts::default()),
            ColumnType::Double => Self::Double(Presence::default(), Vec::new()),
            ColumnType::Float => Self::Float(Presence::default(), Vec::new()),
        }
    }

    /// Up to here, rows that were left out are missing.
    pub(crate) fn skip_to(&mut self, row: usize) {
        match self {
            Self::Int32(_) | Self::Int64(_) => {}
            Self::Text(presence, _) | Self::Double(presence, _) | Self::Float(presence, _) => {
                presence.extend(false, row.saturating_sub(presence.rows));
            }
        }
    }

    pub(crate) fn push(&mut self, cell: Cell<'_>) -> usize {
        self.fill(cell, 1)
    }

    /// The same cell in several rows. Returns, as the others do, how many cells are there that were not.
    pub(crate) fn fill(&mut self, cell: Cell<'_>, rows: usize) -> usize {
        match (self, cell) {
            (Self::Int32(values), Cell::Count(count)) => {
                values.extend(repeat_n(count as u32, rows));
                rows
            }
            (Self::Int64(values), Cell::Count(count)) => {
                values.extend(repeat_n(count, rows));
                rows
            }
            (Self::Text(presence, texts), Cell::Text(text)) => {
                if let Some(text) = text {
                    texts.fill(text, rows);
                }
                presence.extend(text.is_some(), rows)
            }
            (Self::Double(presence, values), Cell::Number(number)) => {
                if let Some(number) = number {
                    values.extend(repeat_n(number, rows));
                }
                presence.extend(number.is_some(), rows)
            }
            (Self::Float(presence, values), Cell::Number(number)) => {
                if let Some(number) = number {
                    values.extend(repeat_n(number as f32, rows));
                }
                presence.extend(number.is_some(), rows)
            }
            _ => unreachable!("{ORDER}"),
        }
    }

    /// A count for each of several rows.
    pub(crate) fn extend_counts(&mut self, counts: impl ExactSizeIterator<Item = u64>) -> usize {
        let rows = counts.len();
        match self {
            Self::Int32(values) => values.extend(counts.map(|count| count as u32)),
            Self::Int64(values) => values.extend(counts),
            _ => unreachable!("{ORDER}"),
        }
        rows
    }

    /// A number for each of several rows.
    pub(crate) fn extend_numbers(&mut self, numbers: impl Iterator<Item = Option<f64>>) -> usize {
        match self {
            Self::Double(presence, values) => presence.extend_with(numbers, values),
            Self::Float(presence, values) => {
                let numbers = numbers.map(|number| number.map(|number| number as f32));
                presence.extend_with(numbers, values)
            }
            _ => unreachable!("{ORDER}"),
        }
    }
}

/// Which rows of a column have a value.
#[derive(Clone, Debug, Default)]
pub(crate) struct Presence {
    rows: usize,
    /// Rows one after the other of which all or none have one, and how many they are.
    runs: Vec<(bool, u32)>,
}

impl Presence {
    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    /// In the order of the rows: whether they have a value, and how many are alike.
    pub(super) fn runs(&self) -> impl Iterator<Item = (bool, u32)> {
        self.runs.iter().copied()
    }

    /// Returns how many of these rows have a value.
    pub(super) fn extend(&mut self, is_there: bool, rows: usize) -> usize {
        if rows > 0 {
            self.rows += rows;
            match self.runs.last_mut() {
                Some((same, count)) if *same == is_there => *count += rows as u32,
                _ => self.runs.push((is_there, rows as u32)),
            }
        }
        if is_there { rows } else { 0 }
    }

    fn extend_with<T>(
        &mut self,
        all: impl Iterator<Item = Option<T>>,
        values: &mut Vec<T>,
    ) -> usize {
        let before = values.len();
        let (mut is_there, mut alike) = (true, 0);
        for value in all {
            if value.is_some() != is_there {
                self.extend(is_there, alike);
                (is_there, alike) = (!is_there, 0);
            }
            alike += 1;
            if let Some(value) = value {
                values.push(value);
            }
        }
        self.extend(is_there, alike);
        values.len() - before
    }
}

/// Texts one after the other; of one that repeats there is one copy.
#[derive(Clone, Debug, Default)]
pub(crate) struct Texts {
    bytes: String,
    /// Where each text ends, and how many times it comes.
    runs: Vec<(usize, u32)>,
}

impl Texts {
    fn fill(&mut self, text: &str, rows: usize) {
        let last = self.runs.len().checked_sub(1).map(|last| self.range(last));
        match last.is_some_and(|last| self.bytes[last] == *text) {
            true => self.runs.last_mut().expect("it has a last text").1 += rows as u32,
            false => {
                self.bytes.push_str(text);
                self.runs.push((self.bytes.len(), rows as u32));
            }
        }
    }

    fn range(&self, run: usize) -> Range<usize> {
        let start = run.checked_sub(1).map_or(0, |before| self.runs[before].0);
        start..self.runs[run].0
    }

    /// Each text, and how many times it comes.
    pub(super) fn runs(&self) -> impl Iterator<Item = (&str, u32)> {
        (0..self.runs.len()).map(|run| (&self.bytes[self.range(run)], self.runs[run].1))
    }
}
