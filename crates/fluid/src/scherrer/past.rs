//! What the curves were, one row for each step, as far back as a delay reaches.

use alloc::vec;
use alloc::vec::Vec;

#[derive(Clone, Debug)]
pub(super) struct Past {
    columns: usize,
    rows: usize,
    values: Vec<f64>,
    written: usize,
}

impl Past {
    pub(super) fn new(columns: usize, rows: usize) -> Self {
        Self { columns, rows, values: vec![0.0; columns * rows], written: 0 }
    }

    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    pub(super) fn push(&mut self, row: &[f64]) {
        let at = self.written % self.rows * self.columns;
        self.values[at..at + self.columns].copy_from_slice(row);
        self.written += 1;
    }

    /// The value so many steps before the one that is being computed; before the first one, the first.
    pub(super) fn ago(&self, steps: usize, column: usize) -> f64 {
        let row = self.written.saturating_sub(steps.max(1));
        let oldest = self.written.saturating_sub(self.rows);
        self.values[row.max(oldest) % self.rows * self.columns + column]
    }
}
