//! The tables of a result folder, written while its runs are being done.

use std::collections::BTreeMap;
use std::io;

use crate::results::{
    EncodedGroup, FullGroup, Journal, Plan, StoreWriter, TablePaths, TableRows, Whole,
};

/// Tables that have the first of the runs in the order of the plan. They get their names when they have all,
/// and until then the journal is what counts.
pub(super) struct Tables {
    writer: StoreWriter,
    /// How many runs they have, of those that belong here.
    done: usize,
    /// Results that came before those of earlier runs, and how long they are in the journal.
    waiting: BTreeMap<u32, (TableRows, usize)>,
    /// Bytes of those in the journal.
    waiting_bytes: usize,
}

impl Tables {
    /// What waits in memory; other results are read from the journal when their turn comes.
    const MOST_WAITING: usize = 1 << 20;

    /// Runs that may be written when one comes, so that nobody waits for long.
    const MOST_AT_ONCE: usize = 4;

    pub(super) fn create(paths: &TablePaths, plan: &Plan) -> io::Result<Self> {
        let writer = StoreWriter::create(paths, plan)?;
        Ok(Self { writer, done: 0, waiting: BTreeMap::new(), waiting_bytes: 0 })
    }

    /// Takes in a result, which the journal has, and writes what comes next. `mine` are the runs that belong
    /// here, and `is_done` says of each run of the plan whether the journal has it. Returns row groups that became full,
    /// which come back by [`Tables::put`].
    pub(super) fn add(
        &mut self,
        rows: TableRows,
        bytes: usize,
        (mine, is_done): (&[u32], &[bool]),
        journal: &mut Journal,
    ) -> io::Result<Vec<FullGroup>> {
        let is_next = mine.get(self.done) == Some(&rows.run);
        if rows.pieces == 0 && (is_next || self.waiting_bytes + bytes <= Self::MOST_WAITING) {
            self.waiting_bytes += bytes;
            self.waiting.insert(rows.run, (rows, bytes));
        }
        for _ in 0..Self::MOST_AT_ONCE {
            match mine.get(self.done).filter(|run| is_done[**run as usize]) {
                Some(run) => self.write(*run, journal)?,
                None => break,
            }
        }
        Ok(self.writer.take_full())
    }

    pub(super) fn put(&mut self, group: EncodedGroup) -> io::Result<()> {
        self.writer.put(group)
    }

    /// Writes the runs that are left, and completes the tables under their temporary names.
    pub(super) fn finish(mut self, mine: &[u32], journal: &mut Journal) -> io::Result<[Whole; 3]> {
        for run in mine.iter().skip(self.done) {
            self.write(*run, journal)?;
        }
        self.writer.finish()
    }

    /// Writes the next run, if it has a result.
    fn write(&mut self, run: u32, journal: &mut Journal) -> io::Result<()> {
        if let Some((rows, bytes)) = self.waiting.remove(&run) {
            self.waiting_bytes -= bytes;
            self.writer.add(rows)?;
        } else {
            journal.each_piece(run, |series| self.writer.add_series(series))?;
            if let Some(result) = journal.read(run)? {
                self.writer.add(result.into())?;
            }
        }
        self.done += 1;
        Ok(())
    }
}
