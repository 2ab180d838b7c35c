//! The journal keeps finished runs until all are there: each is appended when it ends. A long run's time
//! series is appended in pieces while it goes on; they count when its result follows.
//!
//! ```text
//! file   = "sojourn journal 9\n" plan-digest(32) "\n" { record }
//! record = length(4) checksum(8) checksum-of-these-twelve(4) payload
//! ```
//!
//! Checksums are XXH3's, which cost next to nothing: a journal lives as long as its runs go on, and only has to
//! tell what a disk or a kill left of it.
//!
//! A kill leaves a beginning of the file, so it can only cut the last record: fewer bytes are there
//! than its header needs, or than its header says. A record that is cut does not count. Any other
//! difference from what was written is damage.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use twox_hash::XxHash3_64;

use super::Row;
use super::codec::{Beginning, Piece, RunResult};
use super::series_rows::SeriesRows;

/// With the version of the format, of as many digits always.
const MAGIC: &[u8] = b"sojourn journal 9\n";
const HEADER: u64 = MAGIC.len() as u64 + 33;
const RECORD_HEADER: usize = 16;

/// Bytes for which there is room at once: those of a short run with a few flows.
const USUAL: usize = 1 << 14;

/// A journal to which runs are added. No other process can open it meanwhile.
#[derive(Debug)]
pub(crate) struct Journal {
    file: File,
    end: u64,
    records: Records,
}

/// A result or a piece as the journal has it.
#[derive(Clone, Debug)]
pub(crate) struct Record(Vec<u8>);

impl Record {
    /// Of bytes that are there already; see [`Record::written`].
    pub(crate) fn of(payload: &[u8]) -> io::Result<Self> {
        Self::written(|mut record| {
            record.extend_from_slice(payload);
            Ok(record)
        })
    }

    /// Of what is written behind some bytes. Computes the checksums, for which nobody needs the journal.
    ///
    /// # Errors
    /// It cannot be written, or there are more than 4 GiB.
    pub(crate) fn written(write: impl FnOnce(Vec<u8>) -> io::Result<Vec<u8>>) -> io::Result<Self> {
        let mut record = Vec::with_capacity(USUAL);
        record.extend([0; RECORD_HEADER]);
        let mut record = write(record)?;
        let header = header(&record[RECORD_HEADER..])?;
        record[..RECORD_HEADER].copy_from_slice(&header);
        Ok(Self(record))
    }

    /// How many bytes it takes.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}

/// The finished runs of a journal.
#[derive(Debug, Default)]
pub(crate) struct Records {
    finished: BTreeMap<u32, Place>,
    /// Pieces of finished runs that have any.
    pieces: BTreeMap<u32, Vec<Place>>,
    /// Pieces of runs whose results have not come.
    begun: BTreeMap<u32, Vec<Place>>,
    /// Where the intact records end.
    end: u64,
    /// Whether a record is damaged; a record that was cut short does not count.
    is_damaged: bool,
}

/// The first byte of a payload, and its length.
type Place = (u64, u32);

impl Journal {
    /// Opens a journal, or begins one. A record that a kill cut is removed, and so is a damaged
    /// record with everything after it: those runs count as not done. Pieces of runs that were killed
    /// are removed, where they take room that counts.
    ///
    /// Another process may not open it meanwhile by its path, so the folder is to be held.
    ///
    /// # Errors
    /// `WouldBlock` if another process has it open, `InvalidData` if it belongs to another plan.
    pub(crate) fn open(path: &Path, plan: &str) -> io::Result<Self> {
        let mut file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
        file.try_lock().map_err(|error| match error {
            std::fs::TryLockError::WouldBlock => io::ErrorKind::WouldBlock.into(),
            std::fs::TryLockError::Error(error) => error,
        })?;
        if file.metadata()?.len() < HEADER {
            // Cut before anything was in it.
            file.set_len(0)?;
            file.write_all(MAGIC)?;
            file.write_all(plan.as_bytes())?;
            file.write_all(b"\n")?;
        }
        let mut records = Records::scan(&mut file, plan)?;
        // Whoever began them is gone, since nobody else has the journal open.
        records.forget_begun();
        file.set_len(records.end)?;
        let beside = with_suffix(path, ".part");
        let packed = match records.is_sparse() {
            true => records.pack(&mut file, plan, &beside).and_then(|packed| {
                std::fs::rename(&beside, path)?;
                Ok(packed)
            }),
            false => Err(io::ErrorKind::Other.into()),
        };
        if let Ok(packed) = packed {
            return Ok(packed);
        }
        // A kill or a disk without room for both leaves a part, and the journal as it was.
        let _ = std::fs::remove_file(&beside);
        Ok(Self { file, end: records.end, records })
    }

    pub(crate) fn records(&self) -> &Records {
        &self.records
    }

    /// Adds a finished run or a piece of one that goes on. If this fails, what came before is still
    /// there.
    pub(crate) fn append(&mut self, record: &Record) -> io::Result<()> {
        // Reading may have moved the position, and a failed write may have left a part.
        self.file.seek(SeekFrom::Start(self.end))?;
        if let Err(error) = self.file.write_all(&record.0) {
            // If this fails, reading drops the cut record anyway.
            let _ = self.file.set_len(self.end);
            return Err(error);
        }
        let payload = &record.0[RECORD_HEADER..];
        let is_known = self.records.note(payload, self.end + RECORD_HEADER as u64);
        debug_assert!(is_known, "only results and pieces are kept");
        self.end += record.0.len() as u64;
        self.records.end = self.end;
        Ok(())
    }

    /// The result of a run, which has only the end of its time series if that came in pieces.
    pub(crate) fn read(&mut self, run: u32) -> io::Result<Option<RunResult>> {
        self.records.read(&mut self.file, run)
    }

    /// Reads the pieces of a finished run, one after the other.
    pub(crate) fn each_piece(
        &mut self,
        run: u32,
        piece: impl FnMut(Vec<SeriesRows>) -> io::Result<()>,
    ) -> io::Result<()> {
        self.records.each_piece(&mut self.file, run, piece)
    }

    /// Flushes the file to the disk.
    pub(crate) fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }
}

impl Records {
    /// Reads which runs a journal holds, without changing it.
    ///
    /// # Errors
    /// `InvalidData` if it is no journal of this plan.
    pub(crate) fn scan(file: &mut File, plan: &str) -> io::Result<Self> {
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(0))?;
        let mut input = BufReader::new(file);
        if length < HEADER {
            return Ok(Self { end: length, ..Self::default() });
        }
        let mut start = [0; HEADER as usize];
        input.read_exact(&mut start)?;
        let digest = start.strip_prefix(MAGIC).and_then(|rest| rest.strip_suffix(b"\n"));
        if digest != Some(plan.as_bytes()) {
            let version = |bytes: &[u8]| bytes.get(16).copied().filter(u8::is_ascii_digit);
            return Err(match (version(&start), start[..16] == MAGIC[..16]) {
                (Some(other), true) if Some(other) != version(MAGIC) => io::Error::new(
                    io::ErrorKind::InvalidInput,
                    format!(
                        "a journal of format {}, and this version of sojourn writes format {}; choose another folder",
                        char::from(other),
                        char::from(MAGIC[16])
                    ),
                ),
                _ => io::Error::new(io::ErrorKind::InvalidData, "a journal of another study"),
            });
        }
        let mut records = Self { end: HEADER, ..Self::default() };
        while length - records.end >= RECORD_HEADER as u64 {
            let mut head = [0; RECORD_HEADER];
            input.read_exact(&mut head)?;
            let Some(size) = size(&head) else {
                records.is_damaged = true;
                break;
            };
            let start = records.end + RECORD_HEADER as u64;
            if length - start < u64::from(size) {
                break;
            }
            let mut payload = vec![0; size as usize];
            input.read_exact(&mut payload)?;
            let is_whole = header(&payload).is_ok_and(|own| own == head);
            if !is_whole || !records.note(&payload, start) {
                records.is_damaged = true;
                break;
            }
            records.end = start + u64::from(size);
        }
        Ok(records)
    }

    /// Leaves out the pieces of runs whose results have not come; the journal then ends behind the last
    /// record that counts.
    fn forget_begun(&mut self) {
        self.begun.clear();
        self.end = self.places().map(end_of).max().unwrap_or(HEADER.min(self.end));
    }

    /// All records that count.
    fn places(&self) -> impl Iterator<Item = Place> {
        self.finished.values().chain(self.pieces.values().flatten()).copied()
    }

    /// Whether records that do not count take more than a quarter of the room that the others take.
    fn is_sparse(&self) -> bool {
        let counts: u64 = self.places().map(|place| end_of(place) - start_of_record(place)).sum();
        self.end.saturating_sub(HEADER + counts) > counts / 4
    }

    /// Writes a journal of the records that count, in the same order.
    fn pack(&self, file: &mut File, plan: &str, path: &Path) -> io::Result<Journal> {
        let mut packed =
            OpenOptions::new().read(true).write(true).create(true).truncate(true).open(path)?;
        packed.try_lock()?;
        let mut places: Vec<Place> = self.places().collect();
        places.sort_unstable();
        file.seek(SeekFrom::Start(0))?;
        io::copy(&mut file.take(HEADER), &mut packed)?;
        // Neighbours are copied together.
        for run in places.chunk_by(|before, after| end_of(*before) == start_of_record(*after)) {
            let (from, to) = (start_of_record(run[0]), end_of(run[run.len() - 1]));
            file.seek(SeekFrom::Start(from))?;
            io::copy(&mut file.take(to - from), &mut packed)?;
        }
        packed.sync_all()?;
        let records = Records::scan(&mut packed, plan)?;
        let has_all = records.finished.len() == self.finished.len()
            && records.pieces.len() == self.pieces.len()
            && !records.is_damaged;
        match has_all {
            true => Ok(Journal { file: packed, end: records.end, records }),
            false => Err(io::ErrorKind::InvalidData.into()),
        }
    }

    /// Takes in a payload that begins at `start`. False if it is neither a result nor a piece, or has
    /// not come in order.
    fn note(&mut self, payload: &[u8], start: u64) -> bool {
        let place = (start, payload.len() as u32);
        match Beginning::read(payload) {
            Some(Beginning::Piece { run, number }) => {
                let pieces = self.begun.entry(run).or_default();
                if number == 0 {
                    // An earlier attempt at the run was killed.
                    pieces.clear();
                }
                let is_next = pieces.len() == number as usize;
                pieces.push(place);
                is_next
            }
            Some(Beginning::Result { run, pieces: count }) => {
                let mut pieces = self.begun.remove(&run).unwrap_or_default();
                if count == 0 {
                    // They are of an attempt here that was killed, and the result came from elsewhere.
                    pieces.clear();
                }
                let are_all = pieces.len() == count as usize;
                self.finished.insert(run, place);
                self.pieces.remove(&run);
                if !pieces.is_empty() {
                    self.pieces.insert(run, pieces);
                }
                are_all
            }
            None => false,
        }
    }

    /// Whether something other than a kill changed the file; then it is not known which of its runs
    /// are lost.
    pub(crate) fn is_damaged(&self) -> bool {
        self.is_damaged
    }

    pub(crate) fn runs(&self) -> impl Iterator<Item = u32> {
        self.finished.keys().copied()
    }

    /// Those from a position of the plan on, in ascending order.
    pub(crate) fn runs_from(&self, first: u32) -> impl Iterator<Item = u32> {
        self.finished.range(first..).map(|(run, _)| *run)
    }

    pub(crate) fn read(&self, file: &mut File, run: u32) -> io::Result<Option<RunResult>> {
        let payload = self.payload(file, run)?;
        Ok(payload.and_then(|payload| RunResult::decode(&payload)))
    }

    pub(crate) fn read_rows(&self, file: &mut File, run: u32) -> io::Result<Option<Vec<Row>>> {
        let payload = self.payload(file, run)?;
        Ok(payload.and_then(|payload| RunResult::decode_rows(&payload)))
    }

    fn payload(&self, file: &mut File, run: u32) -> io::Result<Option<Vec<u8>>> {
        self.finished.get(&run).map(|place| payload_at(file, *place)).transpose()
    }

    /// As [`Journal::each_piece`].
    pub(crate) fn each_piece(
        &self,
        file: &mut File,
        run: u32,
        mut piece: impl FnMut(Vec<SeriesRows>) -> io::Result<()>,
    ) -> io::Result<()> {
        self.pieces.get(&run).into_iter().flatten().try_for_each(|place| {
            let read = Piece::decode(&payload_at(file, *place)?);
            piece(read.ok_or(io::ErrorKind::InvalidData)?)
        })
    }
}

fn start_of_record((start, _): Place) -> u64 {
    start - RECORD_HEADER as u64
}

fn end_of((start, size): Place) -> u64 {
    start + u64::from(size)
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

fn payload_at(file: &mut File, (start, size): Place) -> io::Result<Vec<u8>> {
    file.seek(SeekFrom::Start(start))?;
    let mut payload = vec![0; size as usize];
    file.read_exact(&mut payload)?;
    Ok(payload)
}

fn header(payload: &[u8]) -> io::Result<[u8; RECORD_HEADER]> {
    let size = u32::try_from(payload.len()).map_err(io::Error::other)?;
    let mut header = [0; RECORD_HEADER];
    header[..4].copy_from_slice(&size.to_le_bytes());
    header[4..12].copy_from_slice(&XxHash3_64::oneshot(payload).to_le_bytes());
    let own = start_of(&header[..12]);
    header[12..].copy_from_slice(&own);
    Ok(header)
}

/// The length of a payload; `None` if its header is damaged.
fn size(header: &[u8; RECORD_HEADER]) -> Option<u32> {
    let (said, own) = header.split_at(12);
    let size = said.first_chunk().map(|bytes| u32::from_le_bytes(*bytes));
    size.filter(|_| own == start_of(said))
}

/// The first bytes of a checksum, which suffice for a header.
fn start_of(bytes: &[u8]) -> [u8; 4] {
    (XxHash3_64::oneshot(bytes) as u32).to_le_bytes()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::results::codec::tests::example;
    use crate::testing::Scratch;

    const PLAN: &str = "0123456789abcdef0123456789abcdef";

    fn record(run: u32) -> Record {
        Record::written(|bytes| example(run).write(bytes)).unwrap()
    }

    fn filled(path: &Path) {
        let mut journal = Journal::open(path, PLAN).unwrap();
        for run in [4, 0, 2] {
            journal.append(&record(run)).unwrap();
        }
    }

    #[test]
    fn what_was_appended_is_there_after_opening_again() {
        let scratch = Scratch::new("journal");
        let path = scratch.path("j");
        filled(&path);
        let mut journal = Journal::open(&path, PLAN).unwrap();
        assert_eq!(journal.records().runs().collect::<Vec<_>>(), [0, 2, 4]);
        assert_eq!(journal.read(2).unwrap(), Some(example(2)));
        assert_eq!(journal.read(1).unwrap(), None);
    }

    #[test]
    fn a_tail_torn_anywhere_is_dropped_and_written_over() {
        let scratch = Scratch::new("journal");
        let path = scratch.path("j");
        filled(&path);
        let whole = std::fs::read(&path).unwrap();
        let last = whole.len() - example(2).encode().unwrap().len() - 16;
        for end in last..whole.len() {
            std::fs::write(&path, &whole[..end]).unwrap();
            let mut journal = Journal::open(&path, PLAN).unwrap();
            assert_eq!(journal.records().runs().collect::<Vec<_>>(), [0, 4], "cut at {end}");
            assert!(!journal.records().is_damaged(), "cut at {end}");
            journal.append(&record(2)).unwrap();
            drop(journal);
            assert_eq!(std::fs::read(&path).unwrap(), whole, "cut at {end}");
        }
    }

    #[test]
    fn every_flipped_bit_is_noticed_and_what_stands_before_it_is_kept() {
        let scratch = Scratch::new("journal");
        let path = scratch.path("j");
        filled(&path);
        let whole = std::fs::read(&path).unwrap();
        for bit in 0..whole.len() * 8 {
            let mut bytes = whole.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            std::fs::write(&path, &bytes).unwrap();
            match Records::scan(&mut File::open(&path).unwrap(), PLAN) {
                Err(error) => assert!(bit / 8 < HEADER as usize, "bit {bit}: {error}"),
                Ok(records) => {
                    assert!(records.is_damaged(), "bit {bit}");
                    assert!(records.end as usize <= bit / 8, "bit {bit}");
                    let kept = Journal::open(&path, PLAN).unwrap().records().finished.len();
                    assert_eq!(kept, records.finished.len(), "bit {bit}");
                }
            }
        }
    }

    /// One attempt at run 5 is killed after two pieces, the next one ends; run 2 goes on beside it.
    #[test]
    fn pieces_belong_to_the_attempt_that_ended() {
        let scratch = Scratch::new("journal");
        let path = scratch.path("j");
        let series = |at: u32| example(at).series;
        {
            let mut journal = Journal::open(&path, PLAN).unwrap();
            for (run, number, content) in [(5, 0, 90), (2, 0, 20), (5, 1, 91)] {
                let piece = Piece::new(run, number, series(content));
                journal.append(&Record::written(|bytes| piece.write(bytes)).unwrap()).unwrap();
            }
            assert_eq!(journal.records().runs().count(), 0);
        }
        let mut journal = Journal::open(&path, PLAN).unwrap();
        for (number, content) in [(0, 50), (1, 51), (2, 52)] {
            let piece = Piece::new(5, number, series(content));
            journal.append(&Record::written(|bytes| piece.write(bytes)).unwrap()).unwrap();
        }
        let ended = RunResult { pieces: 3, ..example(5) };
        journal.append(&Record::written(|bytes| ended.write(bytes)).unwrap()).unwrap();
        // This one comes whole, from another machine.
        journal.append(&record(2)).unwrap();
        drop(journal);
        let mut journal = Journal::open(&path, PLAN).unwrap();
        let mut of = |run| {
            let mut all = Vec::new();
            let note = |piece| {
                all.push(piece);
                Ok(())
            };
            journal.each_piece(run, note).unwrap();
            (all, journal.read(run).unwrap())
        };
        assert_eq!(of(5), (vec![series(50), series(51), series(52)], Some(ended)));
        assert_eq!(of(2), (Vec::new(), Some(example(2))));
        assert_eq!(journal.records().runs().collect::<Vec<_>>(), [2, 5]);
    }

    fn piece(run: u32, number: u32) -> Record {
        let piece = Piece::new(run, number, example(number).series);
        Record::written(|bytes| piece.write(bytes)).unwrap()
    }

    #[test]
    fn pieces_of_killed_runs_go_when_the_journal_is_opened() {
        let scratch = Scratch::new("journal");
        let path = scratch.path("j");
        filled(&path);
        let finished = std::fs::metadata(&path).unwrap().len();
        for _ in 0..3 {
            let mut journal = Journal::open(&path, PLAN).unwrap();
            assert_eq!(std::fs::metadata(&path).unwrap().len(), finished);
            (0..20).for_each(|number| journal.append(&piece(1, number)).unwrap());
        }
    }

    /// Two threads: run 1 is killed, while run 5 beside it ended.
    fn sparse(path: &Path) -> RunResult {
        let mut journal = Journal::open(path, PLAN).unwrap();
        journal.append(&record(4)).unwrap();
        for number in 0..20 {
            journal.append(&piece(1, number)).unwrap();
            if number < 3 {
                journal.append(&piece(5, number)).unwrap();
            }
        }
        let ended = RunResult { pieces: 3, ..example(5) };
        journal.append(&Record::written(|bytes| ended.write(bytes)).unwrap()).unwrap();
        ended
    }

    #[test]
    fn pieces_of_killed_runs_between_others_go_too_and_nothing_that_is_finished() {
        let scratch = Scratch::new("journal");
        let path = scratch.path("j");
        let ended = sparse(&path);
        let before = std::fs::metadata(&path).unwrap().len();
        let mut journal = Journal::open(&path, PLAN).unwrap();
        let (after, of_piece) = (std::fs::metadata(&path).unwrap().len(), piece(1, 0).len() as u64);
        assert!(after <= before - 20 * of_piece, "{before} {after}");
        assert!(!scratch.path("j.part").exists());
        let is_there = |journal: &mut Journal| {
            assert_eq!(journal.read(4).unwrap(), Some(example(4)));
            assert_eq!(journal.read(5).unwrap(), Some(ended.clone()));
            let mut pieces = Vec::new();
            journal
                .each_piece(5, |piece| {
                    pieces.push(piece);
                    Ok(())
                })
                .unwrap();
            assert_eq!(pieces, [0, 1, 2].map(|number| example(number).series));
        };
        is_there(&mut journal);
        journal.append(&record(2)).unwrap();
        let other = Journal::open(&path, PLAN).unwrap_err();
        assert_eq!(other.kind(), io::ErrorKind::WouldBlock);
        drop(journal);
        let mut journal = Journal::open(&path, PLAN).unwrap();
        is_there(&mut journal);
        assert_eq!(journal.read(2).unwrap(), Some(example(2)));
    }

    #[test]
    fn a_kill_while_pieces_are_removed_loses_nothing() {
        let scratch = Scratch::new("journal");
        let path = scratch.path("j");
        let ended = sparse(&path);
        let whole = std::fs::read(&path).unwrap();
        for written in [0, 10, HEADER as usize, whole.len() / 2] {
            std::fs::write(&path, &whole).unwrap();
            std::fs::write(scratch.path("j.part"), &whole[..written]).unwrap();
            let mut journal = Journal::open(&path, PLAN).unwrap();
            assert_eq!(journal.read(5).unwrap(), Some(ended.clone()), "killed at {written}");
            assert_eq!(journal.records().runs().collect::<Vec<_>>(), [4, 5]);
            assert!(!scratch.path("j.part").exists());
        }
    }

    #[test]
    fn where_a_packed_journal_has_no_room_the_old_one_goes_on() {
        let scratch = Scratch::new("journal");
        let path = scratch.path("j");
        let ended = sparse(&path);
        // A folder of this name can't be written to.
        std::fs::create_dir(scratch.path("j.part")).unwrap();
        let mut journal = Journal::open(&path, PLAN).unwrap();
        assert_eq!(journal.read(5).unwrap(), Some(ended));
        journal.append(&record(2)).unwrap();
        drop(journal);
        let journal = Journal::open(&path, PLAN).unwrap();
        assert_eq!(journal.records().runs().collect::<Vec<_>>(), [2, 4, 5]);
    }

    #[test]
    fn a_journal_of_another_plan_is_refused() {
        let scratch = Scratch::new("journal");
        let path = scratch.path("j");
        filled(&path);
        let error = Journal::open(&path, "fedcba9876543210fedcba9876543210").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    }

    #[test]
    fn a_journal_of_another_format_is_refused_with_both_numbers() {
        let scratch = Scratch::new("journal");
        let path = scratch.path("j");
        filled(&path);
        let mut content = std::fs::read(&path).unwrap();
        content[16] = b'8';
        std::fs::write(&path, &content).unwrap();
        let error = Journal::open(&path, PLAN).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
        let error = error.to_string();
        assert!(error.contains("format 8") && error.contains("format 9"), "{error}");
        assert_eq!(std::fs::read(&path).unwrap(), content);
    }

    #[test]
    fn two_processes_do_not_share_a_journal() {
        let scratch = Scratch::new("journal");
        let path = scratch.path("j");
        let _first = Journal::open(&path, PLAN).unwrap();
        let error = Journal::open(&path, PLAN).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_reader_panic(
            bytes in prop::collection::vec(any::<u8>(), 0..120),
            keep in 0usize..400,
        ) {
            let scratch = Scratch::new("journal");
            let path = scratch.path("j");
            filled(&path);
            let mut content = std::fs::read(&path).unwrap();
            content.truncate(keep.max(HEADER as usize));
            content.extend(bytes);
            std::fs::write(&path, content).unwrap();
            let mut journal = Journal::open(&path, PLAN).unwrap();
            journal.append(&record(7)).unwrap();
            prop_assert_eq!(journal.read(7).unwrap(), Some(example(7)));
        }
    }

    #[test]
    fn a_record_after_a_failed_one_stands_where_it_should() {
        let scratch = Scratch::new("journal");
        let path = scratch.path("j");
        filled(&path);
        let whole = std::fs::read(&path).unwrap();
        std::fs::write(&path, []).unwrap();
        {
            let mut journal = Journal::open(&path, PLAN).unwrap();
            journal.append(&record(4)).unwrap();
            journal.read(4).unwrap();
            // A write that a full disk cut short leaves such bytes.
            journal.file.write_all(&[1; 30]).unwrap();
            journal.append(&record(0)).unwrap();
            journal.append(&record(2)).unwrap();
        }
        assert_eq!(std::fs::read(&path).unwrap(), whole);
    }
}
