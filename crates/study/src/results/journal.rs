//! Where finished runs wait until all are there: a file to which each is appended as it ends.
//!
//! ```text
//! file   = "sojourn journal 2\n" plan-digest(32) "\n" { record }
//! record = length(4) checksum(8) payload
//! ```
//!
//! A kill can only tear the last record, and a torn record is not counted.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::path::Path;

use super::Row;
use super::codec::RunResult;
use crate::digest::Digest;

const MAGIC: &[u8] = b"sojourn journal 2\n";
const HEADER: u64 = MAGIC.len() as u64 + 33;
const RECORD_HEADER: u64 = 12;
/// Longer than any record; what claims more is torn.
const MAX_RECORD: u32 = 1 << 30;

/// A journal that runs are added to. No other process can open it meanwhile.
#[derive(Debug)]
pub(crate) struct Journal {
    file: File,
    end: u64,
    records: Records,
}

/// The finished runs of a journal.
#[derive(Debug, Default)]
pub(crate) struct Records {
    /// First byte of each run's payload, and its length.
    places: BTreeMap<u32, (u64, u32)>,
    end: u64,
}

impl Journal {
    /// Opens a journal, or begins one. What a kill tore is cut off.
    ///
    /// # Errors
    /// `WouldBlock` when another process has it open, `InvalidData` when it is of another plan.
    pub(crate) fn open(path: &Path, plan: &str) -> io::Result<Self> {
        let mut file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
        file.try_lock().map_err(|error| match error {
            std::fs::TryLockError::WouldBlock => io::ErrorKind::WouldBlock.into(),
            std::fs::TryLockError::Error(error) => error,
        })?;
        if file.metadata()?.len() < HEADER {
            // Torn before anything was in it.
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

    /// Adds a finished run. When this fails, the runs before it are still there.
    pub(crate) fn append(&mut self, run: u32, payload: &[u8]) -> io::Result<()> {
        let mut record = Vec::with_capacity(payload.len() + RECORD_HEADER as usize);
        record.extend((payload.len() as u32).to_le_bytes());
        record.extend(Digest::of(payload).short().to_le_bytes());
        record.extend(payload);
        // Reading may have moved on, and a write that failed may have left a part.
        self.file.seek(SeekFrom::Start(self.end))?;
        if let Err(error) = self.file.write_all(&record) {
            // Best effort: a torn record is dropped on reading anyway.
            let _ = self.file.set_len(self.end);
            return Err(error);
        }
        self.records.places.insert(run, (self.end + RECORD_HEADER, payload.len() as u32));
        self.end += record.len() as u64;
        self.records.end = self.end;
        Ok(())
    }

    pub(crate) fn read(&mut self, run: u32) -> io::Result<Option<RunResult>> {
        self.records.read(&mut self.file, run)
    }

    /// On the disk and not only on its way.
    pub(crate) fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }
}

impl Records {
    /// Reads which runs a journal holds, without changing it.
    ///
    /// # Errors
    /// `InvalidData` when it is no journal of this plan.
    pub(crate) fn scan(file: &mut File, plan: &str) -> io::Result<Self> {
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(0))?;
        let mut input = BufReader::new(file);
        let mut header = vec![0; HEADER as usize];
        if length < HEADER {
            return Ok(Self { places: BTreeMap::new(), end: length });
        }
        input.read_exact(&mut header)?;
        if !header.starts_with(MAGIC)
            || &header[MAGIC.len()..HEADER as usize - 1] != plan.as_bytes()
        {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "a journal of another study"));
        }
        let mut records = Self { places: BTreeMap::new(), end: HEADER };
        while length - records.end >= RECORD_HEADER {
            let mut head = [0; RECORD_HEADER as usize];
            input.read_exact(&mut head)?;
            let (size, checksum) = head.split_at(4);
            let size = u32::from_le_bytes(array(size));
            let start = records.end + RECORD_HEADER;
            if size > MAX_RECORD || length - start < u64::from(size) {
                break;
            }
            let mut payload = vec![0; size as usize];
            input.read_exact(&mut payload)?;
            if Digest::of(&payload).short() != u64::from_le_bytes(array(checksum)) {
                break;
            }
            let Some(run) = RunResult::decode_run(&payload) else { break };
            records.places.insert(run, (start, size));
            records.end = start + u64::from(size);
        }
        Ok(records)
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

fn array<const N: usize>(bytes: &[u8]) -> [u8; N] {
    let mut array = [0; N];
    array.copy_from_slice(bytes);
    array
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
            journal.append(run, &example(run).encode()).unwrap();
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
        let last = whole.len() - example(2).encode().len() - 12;
        for end in [last, last + 1, last + 4, last + 11, last + 12, last + 40, whole.len() - 1] {
            std::fs::write(&path, &whole[..end]).unwrap();
            let mut journal = Journal::open(&path, PLAN).unwrap();
            assert_eq!(journal.records().runs().collect::<Vec<_>>(), [0, 4], "cut at {end}");
            journal.append(2, &example(2).encode()).unwrap();
            drop(journal);
            assert_eq!(std::fs::read(&path).unwrap(), whole, "cut at {end}");
        }
    }

    #[test]
    fn a_damaged_record_ends_the_journal() {
        let scratch = Scratch::new("journal");
        let path = scratch.path("j");
        filled(&path);
        let mut bytes = std::fs::read(&path).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        std::fs::write(&path, &bytes).unwrap();
        let journal = Journal::open(&path, PLAN).unwrap();
        assert_eq!(journal.records().runs().collect::<Vec<_>>(), [4]);
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
            journal.append(7, &example(7).encode()).unwrap();
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
            journal.append(4, &example(4).encode()).unwrap();
            journal.read(4).unwrap();
            // As a write that a full disk cut off leaves it.
            journal.file.write_all(&[1; 30]).unwrap();
            journal.append(0, &example(0).encode()).unwrap();
            journal.append(2, &example(2).encode()).unwrap();
        }
        assert_eq!(std::fs::read(&path).unwrap(), whole);
    }
}
