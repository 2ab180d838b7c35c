//! Columns of a row group.

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

/// A column of a row group.
#[derive(Clone, Debug)]
pub(super) enum Column {
    Int32(Vec<u32>),
    Int64(Vec<u64>),
    Text(Presence, Texts),
    Double(Presence, Vec<f64>),
    Float(Presence, Vec<f32>),
}

/// Which rows of a column have a value.
#[derive(Clone, Debug, Default)]
pub(super) struct Presence {
    rows: usize,
    /// A bit for each row, from the lowest of the first word on; behind the last row there are none.
    words: Vec<u64>,
}

impl Presence {
    /// Of so many rows none.
    pub(super) fn missing(rows: usize) -> Self {
        Self { rows, words: vec![0; rows.div_ceil(64)] }
    }

    /// Of so many rows all.
    pub(super) fn full(rows: usize) -> Self {
        let mut all = Self::default();
        all.extend(true, rows);
        all
    }

    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    pub(super) fn words(&self) -> &[u64] {
        &self.words
    }

    pub(super) fn has(&self, row: usize) -> bool {
        self.words[row / 64] >> (row % 64) & 1 == 1
    }

    pub(super) fn set(&mut self, row: usize) {
        self.words[row / 64] |= 1 << (row % 64);
    }

    /// Adds rows of which all or none have a value.
    pub(super) fn extend(&mut self, is_there: bool, rows: usize) {
        if rows == 0 {
            return;
        }
        let (begun, word) = (self.rows % 64, if is_there { !0 } else { 0 });
        if begun > 0
            && let Some(last) = self.words.last_mut()
        {
            *last |= word << begun;
        }
        self.rows += rows;
        self.words.resize(self.rows.div_ceil(64), word);
        if !self.rows.is_multiple_of(64)
            && let Some(last) = self.words.last_mut()
        {
            *last &= !(!0 << (self.rows % 64));
        }
    }

    /// Adds rows with these values, of which those that are not numbers are missing; the others are added to
    /// `values`.
    pub(super) fn extend_with(&mut self, column: &[f32], values: &mut Vec<f32>) {
        if column.iter().all(|value| !value.is_nan()) {
            self.extend(true, column.len());
            values.extend_from_slice(column);
            return;
        }
        for alike in column.chunk_by(|a, b| a.is_nan() == b.is_nan()) {
            let is_there = !alike[0].is_nan();
            self.extend(is_there, alike.len());
            if is_there {
                values.extend_from_slice(alike);
            }
        }
    }
}

/// Texts one after the other; of one that repeats there is one copy.
#[derive(Clone, Debug, Default)]
pub(super) struct Texts {
    bytes: String,
    /// Where each text ends, and how many times it comes.
    runs: Vec<(usize, u32)>,
}

impl Texts {
    /// The same text in several rows.
    pub(super) fn fill(&mut self, text: &str, rows: usize) {
        if rows == 0 {
            return;
        }
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
