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

/// A moment between two rows: where these begin, and how far it is from the first to the second.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Moment {
    low: usize,
    high: usize,
    fraction: f64,
}

/// Where the last look-up ended. The next one is mostly near.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cursor(usize);

/// The last moment that was looked up for any flow. Flows with the same delays ask for the same moment.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Recent {
    /// Rows there had ever been, when it was found.
    rows: usize,
    time: f64,
    row: usize,
    moment: Moment,
}

pub(crate) const TIME: usize = 0;

impl History {
    pub(crate) fn new(first: &[f64]) -> Self {
        // 1 MiB.
        const ROOM: usize = 1 << 17;
        let mut values = Vec::with_capacity(ROOM.max(16 * first.len()));
        values.extend_from_slice(first);
        Self { columns: first.len(), forgotten: 0, count: 1, values }
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

    /// The same, for a flow that comes after another one.
    #[inline]
    pub(crate) fn at_again(&self, time: f64, cursor: &mut Cursor, recent: &mut Recent) -> Moment {
        let rows = self.ever();
        if recent.rows == rows && recent.time == time {
            cursor.0 = recent.row;
            return recent.moment;
        }
        let moment = self.at(time, cursor);
        *recent = Recent { rows, time, row: cursor.0, moment };
        moment
    }

    /// How many rows there have ever been.
    #[inline]
    pub(crate) fn ever(&self) -> usize {
        self.forgotten + self.count
    }

    /// The rows, except the last, where the curve in `column`, which never falls, is more than `from` and less than `to`.
    pub(crate) fn between(
        &self,
        column: usize,
        from: f64,
        to: f64,
        cursor: &mut Cursor,
    ) -> core::ops::Range<usize> {
        let first = self.find(column, from, cursor).low / self.columns + 1;
        let last = self.rows() - 1;
        let is_before = |row: &usize| self.cell(*row, column) < to;
        let count = (first..last).take_while(is_before).count();
        first..first + count
    }

    /// Of a row, counted from the oldest that is kept.
    pub(crate) fn cell(&self, row: usize, column: usize) -> f64 {
        self.values[row * self.columns + column]
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
        debug_assert!(row + self.forgotten == 0 || value >= low || row > 0, "it was forgotten");
        let start = at - column;
        if row == last || value <= low {
            return Moment { low: start, high: start, fraction: 0.0 };
        }
        let fraction = (value - low) / (self.values[at + self.columns] - low);
        Moment { low: start, high: start + self.columns, fraction }
    }

    #[inline]
    pub(crate) fn value(&self, moment: Moment, column: usize) -> f64 {
        let [value] = self.values(moment, column);
        value
    }

    /// Of columns in a row.
    #[inline]
    pub(crate) fn values<const N: usize>(&self, moment: Moment, column: usize) -> [f64; N] {
        let low = &self.values[moment.low + column..][..N];
        let high = &self.values[moment.high + column..][..N];
        core::array::from_fn(|at| low[at] + moment.fraction * (high[at] - low[at]))
    }

    /// Whether there is no room for another row.
    pub(crate) fn is_full(&self) -> bool {
        self.values.capacity() - self.values.len() < self.columns
    }

    /// Forgets the rows that no look-up needs that asks for `time` or a later one, and makes room for others if few are forgotten.
    pub(crate) fn forget_before(&mut self, time: f64) {
        let row = self.at(time, &mut Cursor(self.forgotten)).low / self.columns;
        self.values.drain(..row * self.columns);
        self.forgotten += row;
        self.count -= row;
        let room = self.count / 2;
        if row < room {
            self.values.reserve_exact(room * self.columns);
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
        history.values = history.values.to_vec();
        for row in 1..=5000 {
            let time = f64::from(row);
            history.push(&[time, time * 2.0]);
            assert!(history.values.capacity() <= 40, "{} values", history.values.capacity());
            let moment = history.at(time - 2.5, &mut cursor);
            if row > 3 {
                assert_eq!(history.value(moment, 1), (time - 2.5) * 2.0);
            }
            if history.is_full() {
                history.forget_before(time - 3.0);
            }
        }
        let room = history.values.capacity();
        history.forget_before(4997.0);
        assert_eq!((history.rows(), history.values.capacity()), (4, room));
    }
}
