//! The journal keeps finished runs until all are there: each is appended when it ends.
//!
//! ```text
//! file   = "sojourn journal 4\n" plan-digest(32) "\n" { record }
//! record = length(4) checksum(8) checksum-of-these-twelve(4) payload
//! ```
//!
//! A kill leaves a beginning of the file, so it can only cut the last record: fewer bytes are there
//! than its header needs, or than its header says. A record that is cut does not count. Any other
//! difference from what was written is damage.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::path::Path;

use super::Row;
use super::checksums::Checksum;
use super::codec::RunResult;

const MAGIC: &[u8] = b"sojourn journal 4\n";
const HEADER: u64 = MAGIC.len() as u64 + 33;
const RECORD_HEADER: usize = 16;

/// A journal to which runs are added. No other process can open it meanwhile.
#[derive(Debug)]
pub(crate) struct Journal {
    file: File,
    end: u64,
    records: Records,
}

/// The finished runs of a journal.
#[derive(Debug, Default)]
pub(crate) struct Records {
    /// The first byte of each run's payload, and the payload's length.
    places: BTreeMap<u32, (u64, u32)>,
    /// Where the intact records end.
    end: u64,
    /// Whether a record is damaged; a record that was cut short does not count.
    is_damaged: bool,
}

impl Journal {
    /// Opens a journal, or begins one. A record that a kill cut is removed, and so is a damaged
    /// record with everything after it: those runs count as not done.
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
        let records = Records::scan(&mut file, plan)?;
        file.set_len(records.end)?;
        file.seek(SeekFrom::Start(records.end))?;
        Ok(Self { file, end: records.end, records })
    }

    pub(crate) fn records(&self) -> &Records {
        &self.records
    }

    /// Adds a finished run. If this fails, the runs before it are still there.
    pub(crate) fn append(&mut self, run: u32, payload: &[u8]) -> io::Result<()> {
        let mut record = Vec::with_capacity(payload.len() + RECORD_HEADER);
        record.extend(header(payload)?);
        record.extend(payload);
        // Reading may have moved the position, and a failed write may have left a part.
        self.file.seek(SeekFrom::Start(self.end))?;
        if let Err(error) = self.file.write_all(&record) {
            // If this fails, reading drops the cut record anyway.
            let _ = self.file.set_len(self.end);
            return Err(error);
        }
        self.records.places.insert(run, (self.end + RECORD_HEADER as u64, payload.len() as u32));
        self.end += record.len() as u64;
        self.records.end = self.end;
        Ok(())
    }

    pub(crate) fn read(&mut self, run: u32) -> io::Result<Option<RunResult>> {
        self.records.read(&mut self.file, run)
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
            return Err(io::Error::new(io::ErrorKind::InvalidData, "a journal of another study"));
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
            let run = RunResult::decode_run(&payload);
            let Some(run) = run.filter(|_| header(&payload).is_ok_and(|own| own == head)) else {
                records.is_damaged = true;
                break;
            };
            records.places.insert(run, (start, size));
            records.end = start + u64::from(size);
        }
        Ok(records)
    }

    /// Whether something other than a kill changed the file; then it is not known which of its runs
    /// are lost.
    pub(crate) fn is_damaged(&self) -> bool {
        self.is_damaged
    }

    pub(crate) fn runs(&self) -> impl Iterator<Item = u32> {
        self.places.keys().copied()
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
        let Some((start, size)) = self.places.get(&run) else {
            return Ok(None);
        };
        file.seek(SeekFrom::Start(*start))?;
        let mut payload = vec![0; *size as usize];
        file.read_exact(&mut payload)?;
        Ok(Some(payload))
    }
}

fn header(payload: &[u8]) -> io::Result<[u8; RECORD_HEADER]> {
    let size = u32::try_from(payload.len()).map_err(io::Error::other)?;
    let mut header = [0; RECORD_HEADER];
    header[..4].copy_from_slice(&size.to_le_bytes());
    header[4..12].copy_from_slice(&Checksum::of(payload).start::<8>());
    let own = Checksum::of(&header[..12]).start::<4>();
    header[12..].copy_from_slice(&own);
    Ok(header)
}

/// The length of a payload; `None` if its header is damaged.
fn size(header: &[u8; RECORD_HEADER]) -> Option<u32> {
    let (said, own) = header.split_at(12);
    let size = said.first_chunk().map(|bytes| u32::from_le_bytes(*bytes));
    size.filter(|_| own == Checksum::of(said).start::<4>())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::results::codec::tests::example;
    use crate::testing::Scratch;

    const PLAN: &str = "0123456789abcdef0123456789abcdef";

    fn filled(path: &Path) {
        let mut journal = Journal::open(path, PLAN).unwrap();
        for run in [4, 0, 2] {
            journal.append(run, &example(run).encode().unwrap()).unwrap();
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
            journal.append(2, &example(2).encode().unwrap()).unwrap();
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
                    let kept = Journal::open(&path, PLAN).unwrap().records().places.len();
                    assert_eq!(kept, records.places.len(), "bit {bit}");
                }
            }
        }
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
            journal.append(7, &example(7).encode().unwrap()).unwrap();
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
            journal.append(4, &example(4).encode().unwrap()).unwrap();
            journal.read(4).unwrap();
            // A write that a full disk cut short leaves such bytes.
            journal.file.write_all(&[1; 30]).unwrap();
            journal.append(0, &example(0).encode().unwrap()).unwrap();
            journal.append(2, &example(2).encode().unwrap()).unwrap();
        }
        assert_eq!(std::fs::read(&path).unwrap(), whole);
    }
}
