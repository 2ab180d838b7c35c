//! The past of every curve, which delays look back into.
//!
//! A row holds the value of every curve at the end of a step; between rows curves are straight, so
//! rates are constant within a step and nothing is created or lost by interpolating. All curves
//! count bytes, or are times that never go back.

use alloc::vec::Vec;

/// Rows of equal length, the oldest first. Column 0 is the time.
#[derive(Clone, Debug)]
pub(crate) struct History {
    columns: usize,
    /// Rows that have been forgotten.
    forgotten: usize,
    /// Rows that are kept.
    count: usize,
    values: Vec<f64>,
}

/// A moment between two rows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    row: usize,
    fraction: f64,
}

/// Where the last look-up ended. The next one is mostly near.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cursor(usize);

pub(crate) const TIME: usize = 0;

impl History {
    pub(crate) fn new(first: &[f64]) -> Self {
        Self { columns: first.len(), forgotten: 0, count: 1, values: first.to_vec() }
    }

    pub(crate) fn push(&mut self, row: &[f64]) {
        self.values.extend_from_slice(row);
        self.count += 1;
    }

    pub(crate) fn last(&self) -> &[f64] {
        &self.values[self.values.len() - self.columns..]
    }

    /// The moment `time`; the last row for times after it, the first one for times before it.
    pub(crate) fn at(&self, time: f64, cursor: &mut Cursor) -> Moment {
        self.find(TIME, time, cursor)
    }

    /// The last moment at which the curve in `column`, which never falls, is at most `value`.
    pub(crate) fn find(&self, column: usize, value: f64, cursor: &mut Cursor) -> Moment {
        let last = self.rows() - 1;
        let mut row = cursor.0.saturating_sub(self.forgotten).min(last);
        let mut at = row * self.columns + column;
        while row < last && self.values[at + self.columns] <= value {
            row += 1;
            at += self.columns;
        }
        while row > 0 && self.values[at] > value {
            row -= 1;
            at -= self.columns;
        }
        cursor.0 = row + self.forgotten;
        let low = self.values[at];
        let fraction = if row == last || value <= low {
            0.0
        } else {
            (value - low) / (self.values[at + self.columns] - low)
        };
        Moment { row, fraction }
    }

    pub(crate) fn value(&self, moment: Moment, column: usize) -> f64 {
        let at = moment.row * self.columns + column;
        let low = self.values[at];
        if moment.fraction <= 0.0 {
            return low;
        }
        low + moment.fraction * (self.values[at + self.columns] - low)
    }

    /// Forgets what came before `time`, when that is much.
    pub(crate) fn forget_before(&mut self, time: f64) {
        const WORTH_IT: usize = 1024;
        if !self.rows().is_multiple_of(WORTH_IT) {
            return;
        }
        let row = self.at(time, &mut Cursor(self.forgotten)).row;
        if row > self.rows() / 2 {
            self.values.drain(..row * self.columns);
            self.forgotten += row;
            self.count -= row;
        }
    }

    pub(crate) fn rows(&self) -> usize {
        self.count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn history() -> History {
        let mut history = History::new(&[0.0, 0.0]);
        for (time, value) in [(1.0, 10.0), (2.0, 10.0), (4.0, 30.0)] {
            history.push(&[time, value]);
        }
        history
    }

    #[test]
    fn curves_are_straight_between_rows_and_end_where_they_end() {
        let history = history();
        let at = |time| history.value(history.at(time, &mut Cursor::default()), 1);
        assert_eq!([at(-1.0), at(0.5), at(1.5), at(3.0), at(9.0)], [0.0, 5.0, 10.0, 20.0, 30.0]);
    }

    #[test]
    fn a_curve_is_read_backwards_at_the_last_moment_of_a_value() {
        let history = history();
        let when = |value| {
            let moment = history.find(1, value, &mut Cursor::default());
            history.value(moment, TIME)
        };
        assert_eq!([when(5.0), when(10.0), when(20.0), when(99.0)], [0.5, 2.0, 3.0, 4.0]);
    }

    #[test]
    fn what_is_forgotten_changes_no_later_look_up() {
        let mut history = History::new(&[0.0, 0.0]);
        let mut cursor = Cursor::default();
        for row in 1..=5000 {
            let time = f64::from(row);
            history.push(&[time, time * 2.0]);
            let moment = history.at(time - 2.5, &mut cursor);
            if row > 3 {
                assert_eq!(history.value(moment, 1), (time - 2.5) * 2.0);
            }
            history.forget_before(time - 3.0);
        }
        assert!(history.rows() < 2500, "{} rows", history.rows());
    }
}
