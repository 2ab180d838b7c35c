//! Reading a result folder, finished or not.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, BufReader, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;

use super::checksums::{self, Checksum, Checksums, verify_file};
use super::files::{CLAIMS, PLAN, ResultsError, STUDY, names, write_whole};
use super::journal::Records;
use super::series_rows::SeriesRows;
use super::store::{self, Joined, RowReader, RunReader, TablePaths, Whole};
use super::{Delays, Kind, Machine, Plan, Results, Row, Series};
use crate::shard::Shard;

/// The files of a result folder.
#[derive(Clone, Debug)]
pub struct Folder {
    path: PathBuf,
}

impl Folder {
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// Reads everything except the time series. If not all runs are done, it reads what is there.
    ///
    /// # Errors
    /// There is no result folder, or a file in it is not what it should be.
    pub fn open(path: impl Into<PathBuf>) -> Result<Results, ResultsError> {
        let folder = Self::new(path);
        let plan = folder.plan()?;
        let (rows, missing) = folder.rows(&plan, None)?;
        folder.results(plan, rows, missing)
    }

    /// Reads a folder of which only some metrics are needed. Rows have these and their names, and nothing
    /// else.
    ///
    /// # Errors
    /// As [`Folder::open`].
    pub fn open_with(path: impl Into<PathBuf>, metrics: &[&str]) -> Result<Results, ResultsError> {
        let folder = Self::new(path);
        let plan = folder.plan()?;
        let metrics = metrics.iter().copied().collect();
        let (rows, missing) = folder.rows(&plan, Some(&metrics))?;
        folder.results(plan, rows, missing)
    }

    /// Reads a folder without the rows of its runs.
    ///
    /// # Errors
    /// As [`Folder::open`].
    pub fn open_without_rows(path: impl Into<PathBuf>) -> Result<Results, ResultsError> {
        let folder = Self::new(path);
        let plan = folder.plan()?;
        let missing = folder.missing(&plan)?;
        folder.results(plan, Vec::new(), missing)
    }

    /// The same of a folder of which is known what its plan is and which runs have no result, in ascending order.
    ///
    /// # Errors
    /// As [`Folder::open`].
    pub fn open_known(
        path: impl Into<PathBuf>,
        plan: Plan,
        missing: Vec<u32>,
    ) -> Result<Results, ResultsError> {
        Self::new(path).results(plan, Vec::new(), missing)
    }

    /// The digest of the folder's plan, and the runs that have a result.
    ///
    /// # Errors
    /// As [`Folder::open`].
    pub fn done(&self) -> Result<(String, Vec<u32>), ResultsError> {
        let plan = self.plan()?;
        let missing = self.missing(&plan)?;
        let is_there = |run: &u32| missing.binary_search(run).is_err();
        let done = (0..plan.runs.len() as u32).filter(is_there).collect();
        Ok((plan.digest, done))
    }

    fn results(
        self,
        plan: Plan,
        rows: Vec<Row>,
        missing: Vec<u32>,
    ) -> Result<Results, ResultsError> {
        let folder = self;
        Ok(Results {
            study: folder.optional_text(STUDY)?.unwrap_or_default(),
            table: store::table(&plan, rows),
            claims: folder.json(CLAIMS)?,
            machine: folder.machine()?,
            folder: folder.path,
            plan,
            missing,
        })
    }

    /// Opens the tables that are read run by run.
    pub(crate) fn reader(&self, plan: &Plan) -> Result<Reader, ResultsError> {
        let parts = self.parts()?;
        let parts = parts.iter().map(|part| part.open(plan)).collect::<Result<_, _>>()?;
        Ok(Reader { parts })
    }

    /// The runs without a result.
    fn missing(&self, plan: &Plan) -> Result<Vec<u32>, ResultsError> {
        let mut is_there = vec![false; plan.runs.len()];
        for part in self.parts()? {
            part.each_run(plan, &mut |run| {
                // A run that the plan does not have comes from a damaged file.
                if let Some(is_there) = is_there.get_mut(run as usize) {
                    *is_there = true;
                }
            })?;
        }
        Ok(absent(&is_there))
    }

    /// The rows of every run that is there, and the runs that are missing.
    fn rows(
        &self,
        plan: &Plan,
        metrics: Option<&BTreeSet<&str>>,
    ) -> Result<(Vec<Row>, Vec<u32>), ResultsError> {
        let mut rows: Vec<Row> = Vec::new();
        let mut runs = self.run_rows(plan, metrics)?;
        while let Some(of_run) = runs.next()? {
            rows.extend(of_run);
        }
        Ok((rows, runs.missing()))
    }

    /// Opens the rows, to be read run by run. With `metrics`, rows have their names and these metrics, and
    /// nothing else.
    pub(crate) fn run_rows(
        &self,
        plan: &Plan,
        metrics: Option<&BTreeSet<&str>>,
    ) -> Result<RunRows, ResultsError> {
        let parts = self.parts()?;
        let parts = parts.iter().map(|part| part.rows(plan, metrics)).collect::<Result<_, _>>()?;
        Ok(RunRows::of(parts, plan))
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    pub(crate) fn plan(&self) -> Result<Plan, ResultsError> {
        self.json(PLAN)?.ok_or_else(|| ResultsError::NoPlan { folder: self.path.clone() })
    }

    /// The plan as it stands in its file.
    pub(crate) fn plan_text(&self) -> Result<String, ResultsError> {
        let text = self.optional_text(PLAN)?;
        text.ok_or_else(|| ResultsError::NoPlan { folder: self.path.clone() })
    }

    /// As [`Results::has_checksums`].
    pub fn has_checksums(&self) -> bool {
        self.names().is_ok_and(|names| !checksums::labels(&names).is_empty())
    }

    /// Whether a file of this name is a part of the results, or would be taken for one.
    pub fn owns(&self, name: &str) -> bool {
        const OF_SHARDS: [(&str, &str); 5] = [
            ("runs", ".parquet"),
            ("series", ".parquet"),
            ("delays", ".parquet"),
            ("journal", ".bin"),
            (checksums::NAME, ""),
        ];
        let is_listed = || {
            let names = self.names().unwrap_or_default();
            let lists = checksums::labels(&names).into_iter();
            lists.flat_map(|label| Checksums::read(&self.path, label)).any(|list| list.lists(name))
        };
        [STUDY, PLAN, CLAIMS].contains(&name)
            || is_of_machine(name)
            || OF_SHARDS.iter().any(|(start, end)| between(name, start, end).is_some())
            || is_listed()
    }

    /// The tables of a shard, by its label.
    pub(crate) fn tables(&self, label: &str) -> TablePaths {
        TablePaths {
            runs: self.path(&format!("runs{label}.parquet")),
            series: self.path(&format!("series{label}.parquet")),
            delays: self.path(&format!("delays{label}.parquet")),
        }
    }

    /// The `machine.json` of the whole, or of the first shard.
    fn machine(&self) -> Result<Option<Machine>, ResultsError> {
        for name in self.names()? {
            if is_of_machine(&name) {
                return self.json(&name);
            }
        }
        Ok(None)
    }

    /// The files that hold runs: finished tables first, then journals.
    pub(crate) fn parts(&self) -> Result<Vec<Part>, ResultsError> {
        let mut parts = Vec::new();
        for name in self.names()? {
            if let Some(label) = between(&name, "runs", ".parquet") {
                let tables = self.tables(label);
                // A kill may come between the two files; then the journal has everything.
                if tables.series.exists() {
                    parts.push(Part::Tables(tables));
                }
            }
        }
        for name in self.names()? {
            if between(&name, "journal", ".bin").is_some() {
                parts.push(Part::Journal { path: self.path(&name) });
            }
        }
        Ok(parts)
    }

    /// Names of the files, sorted.
    fn names(&self) -> Result<Vec<String>, ResultsError> {
        names(&self.path)
    }

    /// The text of a file whose checksum is right; `None` if there is no such file.
    pub(crate) fn optional_text(&self, name: &str) -> Result<Option<String>, ResultsError> {
        let path = self.path(name);
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(ResultsError::Io { path, source }),
        };
        checksums::verify(&self.path, name, Checksum::of(&bytes))?;
        String::from_utf8(bytes)
            .map(Some)
            .map_err(|error| ResultsError::Malformed { path, problem: error.to_string() })
    }

    fn json<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, ResultsError> {
        let path = self.path(name);
        let io_error = |source| ResultsError::Io { path: path.clone(), source };
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(io_error(source)),
        };
        verify_file(&path)?;
        serde_json::from_reader(BufReader::new(file)).map(Some).map_err(|error| {
            match error.io_error_kind() {
                Some(_) => io_error(error.into()),
                None => ResultsError::Malformed { path: path.clone(), problem: error.to_string() },
            }
        })
    }
}

/// Writes into a result folder, and keeps the list of checksums of the whole or of a shard.
///
/// It reads the list again before each change, because the same command may have been started
/// twice; whoever changes something holds the folder meanwhile ([`FolderWriter::hold`]).
pub(crate) struct FolderWriter {
    folder: Folder,
    label: String,
}

impl FolderWriter {
    pub(crate) fn new(folder: Folder, label: &str) -> Self {
        Self { folder, label: label.to_owned() }
    }

    pub(crate) fn folder(&self) -> &Folder {
        &self.folder
    }

    /// Waits until no other process changes the folder's files; until what it returns is dropped, none does. Where the system
    /// can't lock a folder, nothing is held.
    pub(crate) fn hold(&self) -> Option<File> {
        let folder = File::open(&self.folder.path).ok()?;
        folder.lock().ok()?;
        Some(folder)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path(name)
    }

    pub(crate) fn tables(&self) -> TablePaths {
        self.folder.tables(&self.label)
    }

    /// Whether the tables are there, with their checksums.
    pub(crate) fn has_tables(&self) -> Result<bool, ResultsError> {
        let TablePaths { runs, series, delays } = self.tables();
        let list = Checksums::read(&self.folder.path, &self.label)?;
        let is_there = |path: &PathBuf| {
            path.exists()
                && path.file_name().is_some_and(|name| list.lists(&name.to_string_lossy()))
        };
        Ok([runs, series, delays].iter().all(is_there))
    }

    /// # Errors
    /// The file cannot be written.
    pub(crate) fn write_json<T: serde::Serialize>(
        &self,
        name: &str,
        value: &T,
    ) -> Result<(), ResultsError> {
        let pretty = |out: &mut dyn Write| {
            serde_json::to_writer_pretty(&mut *out, value)?;
            out.write_all(b"\n")
        };
        self.write(name, &pretty)
    }

    /// # Errors
    /// The file cannot be written.
    pub(crate) fn write_text(&self, name: &str, text: &str) -> Result<(), ResultsError> {
        self.write(name, &|out| out.write_all(text.as_bytes()))
    }

    /// Writes the same twice: once to know its checksum, which is announced before the file is there, and once
    /// into the file. So no more than a piece of it is in memory.
    fn write(
        &self,
        name: &str,
        content: &dyn Fn(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), ResultsError> {
        let error = |source| self.error(name, source);
        let checksum = Checksum::of_written(content).map_err(error)?;
        self.announce(&[(name.to_owned(), checksum)])?;
        write_whole(&self.path(name), &self.label, &|path| checksum.is_of(path), content)
            .map_err(error)?;
        self.settle(&[name.to_owned()])
    }

    /// Renames the tables to their final names.
    ///
    /// # Errors
    /// The folder cannot be written to.
    pub(crate) fn publish(&self, tables: [Whole; 3]) -> Result<(), ResultsError> {
        let name = |table: &Whole| {
            table.path().file_name().unwrap_or_default().to_string_lossy().into_owned()
        };
        let names = tables.each_ref().map(name);
        let checksums = tables.each_ref().map(|table| (name(table), table.checksum));
        self.announce(&checksums)?;
        for (table, name) in tables.into_iter().zip(&names) {
            table.appear().map_err(|source| self.error(name, source))?;
        }
        self.settle(&names)
    }

    fn announce(&self, files: &[(String, Checksum)]) -> Result<(), ResultsError> {
        self.change_list(|list| {
            let mut is_new = false;
            for (name, checksum) in files {
                is_new |= list.announce(name, *checksum);
            }
            is_new
        })
    }

    fn settle(&self, names: &[String]) -> Result<(), ResultsError> {
        self.change_list(|list| {
            let mut is_replaced = false;
            for name in names {
                is_replaced |= list.settle(name);
            }
            is_replaced
        })
    }

    fn change_list(&self, change: impl FnOnce(&mut Checksums) -> bool) -> Result<(), ResultsError> {
        let folder = &self.folder.path;
        let mut list = Checksums::read(folder, &self.label)?;
        if change(&mut list) {
            list.write(folder, &self.label)
                .map_err(|source| ResultsError::Io { path: folder.clone(), source })?;
        }
        Ok(())
    }

    fn error(&self, name: &str, source: io::Error) -> ResultsError {
        ResultsError::Io { path: self.path(name), source }
    }
}

/// The positions of runs that are not there.
fn absent(is_there: &[bool]) -> Vec<u32> {
    (0..).zip(is_there).filter(|(_, is_there)| !**is_there).map(|(run, _)| run).collect()
}

/// What follows the first word of a file's name: nothing, or `-1-of-3`.
/// Whether a file of this name is the `machine.json` of the whole, or of a shard.
fn is_of_machine(name: &str) -> bool {
    name.starts_with("machine") && name.ends_with(".json")
}

fn between<'a>(name: &'a str, start: &str, end: &str) -> Option<&'a str> {
    let label = name.strip_prefix(start)?.strip_suffix(end)?;
    (label.is_empty() || Shard::from_label(label).is_some()).then_some(label)
}

/// Files that hold the results of some runs.
#[derive(Clone, Debug)]
pub(crate) enum Part {
    Tables(TablePaths),
    Journal { path: PathBuf },
}

impl Part {
    /// Opens the rows, as [`Folder::run_rows`] says.
    pub(crate) fn rows(
        &self,
        plan: &Plan,
        metrics: Option<&BTreeSet<&str>>,
    ) -> Result<PartRows, ResultsError> {
        let (path, rows) = match self {
            Self::Tables(TablePaths { runs, .. }) => {
                verify_file(runs)?;
                let rows = sound(|| RowReader::open(runs, plan, metrics))
                    .map_err(|source| ResultsError::Io { path: runs.clone(), source })?;
                (runs, RowsOf::Table { reader: Box::new(rows), next: None })
            }
            Self::Journal { path } => {
                let (file, records) = open_journal(path, plan)?;
                let metrics = metrics.map(|metrics| {
                    plan.metrics.iter().map(|metric| metrics.contains(&metric.name[..])).collect()
                });
                (path, RowsOf::Journal { file, records, metrics, from: 0 })
            }
        };
        Ok(PartRows { path: path.clone(), rows })
    }

    /// The run of every row.
    fn each_run(&self, plan: &Plan, each: &mut dyn FnMut(u32)) -> Result<(), ResultsError> {
        match self {
            Self::Tables(TablePaths { runs, .. }) => {
                verify_file(runs)?;
                sound(|| store::each_run(runs, each))
                    .map_err(|source| ResultsError::Io { path: runs.clone(), source })
            }
            Self::Journal { path } => {
                open_journal(path, plan)?.1.runs().for_each(each);
                Ok(())
            }
        }
    }

    /// Opens the tables that are read run by run.
    pub(crate) fn open(&self, plan: &Plan) -> Result<OpenPart, ResultsError> {
        Ok(match self {
            Self::Tables(paths) => {
                OpenPart { path: paths.series.clone(), opened: open_tables(paths)? }
            }
            Self::Journal { path } => {
                let (file, records) = open_journal(path, plan)?;
                OpenPart { path: path.clone(), opened: Opened::Journal { file, records } }
            }
        })
    }
}

fn open_tables(paths: &TablePaths) -> Result<Opened, ResultsError> {
    Ok(Opened::Tables {
        series: Box::new(open_table(&paths.series)?),
        delays: match paths.delays.exists() {
            true => Some(Box::new(open_table(&paths.delays)?)),
            // A folder of an older version has none.
            false => None,
        },
    })
}

/// Reads a table. Damage to a table of an older version is not noticed before, and the library that
/// decodes it may panic.
fn sound<T>(read: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    catch_unwind(AssertUnwindSafe(read)).unwrap_or_else(|_| {
        Err(io::Error::new(io::ErrorKind::InvalidData, "damaged: it cannot be decoded"))
    })
}

fn open_table<T: store::OfRun>(path: &Path) -> Result<RunReader<T>, ResultsError> {
    verify_file(path)?;
    sound(|| RunReader::open(path))
        .map_err(|source| ResultsError::Io { path: path.to_owned(), source })
}

fn open_journal(path: &Path, plan: &Plan) -> Result<(File, Records), ResultsError> {
    let open = || -> io::Result<(File, Records)> {
        let mut file = File::open(path)?;
        let records = Records::scan(&mut file, &plan.digest)?;
        Ok((file, records))
    };
    let (file, records) =
        open().map_err(|source| ResultsError::Io { path: path.to_owned(), source })?;
    match records.is_damaged() {
        true => Err(ResultsError::DamagedJournal {
            path: path.to_owned(),
            whole: records.runs().count(),
        }),
        false => Ok((file, records)),
    }
}

/// Reads rows, one run after the other in the order of the plan.
pub struct RunRows {
    parts: Vec<PartRows>,
    /// For each run of the plan, whether it has been read.
    is_there: Vec<bool>,
}

impl RunRows {
    pub(crate) fn of(parts: Vec<PartRows>, plan: &Plan) -> Self {
        Self { parts, is_there: vec![false; plan.runs.len()] }
    }

    /// The rows of the next run that has a result: of the run as a whole, then of its flows and queues.
    ///
    /// # Errors
    /// A file of the folder cannot be read.
    #[expect(
        clippy::should_implement_trait,
        reason = "an iterator would have to end after an error"
    )]
    pub fn next(&mut self) -> Result<Option<Vec<Row>>, ResultsError> {
        Ok(self.next_of_part()?.map(|(_, rows)| rows))
    }

    /// The same, and the position of the part that has them: the first of several.
    pub(crate) fn next_of_part(&mut self) -> Result<Option<(usize, Vec<Row>)>, ResultsError> {
        loop {
            let mut first: Option<(u32, usize)> = None;
            for (at, part) in self.parts.iter_mut().enumerate() {
                if let Some(run) = part.run()?
                    && first.is_none_or(|(least, _)| run < least)
                {
                    first = Some((run, at));
                }
            }
            let Some((run, part)) = first else { return Ok(None) };
            let rows = self.parts[part].take()?;
            // A run that the plan does not have comes from a damaged file.
            let is_there = self.is_there.get_mut(run as usize).filter(|_| !rows.is_empty());
            if is_there.is_some_and(|is_there| !std::mem::replace(is_there, true)) {
                return Ok(Some((part, rows)));
            }
        }
    }

    /// The runs without a result, when all have been read.
    fn missing(&self) -> Vec<u32> {
        absent(&self.is_there)
    }
}

/// The rows of some runs, open for reading in ascending order.
pub(crate) struct PartRows {
    path: PathBuf,
    rows: RowsOf,
}

enum RowsOf {
    Table {
        reader: Box<RowReader>,
        /// The first row of the run that comes next, if it has been read.
        next: Option<Row>,
    },
    Journal {
        file: File,
        records: Records,
        /// For each metric of the plan, whether it is wanted; with `None` everything is.
        metrics: Option<Vec<bool>>,
        /// The first run that may come next.
        from: u32,
    },
}

impl PartRows {
    /// The run that comes next.
    fn run(&mut self) -> Result<Option<u32>, ResultsError> {
        match &mut self.rows {
            RowsOf::Table { reader, next } => {
                if next.is_none() {
                    let read = sound(|| reader.next());
                    let error = |source| ResultsError::Io { path: self.path.clone(), source };
                    *next = read.map_err(error)?;
                }
                Ok(next.as_ref().map(|row| row.run))
            }
            RowsOf::Journal { records, from, .. } => Ok(records.runs_from(*from).next()),
        }
    }

    /// The rows of that run.
    fn take(&mut self) -> Result<Vec<Row>, ResultsError> {
        let read = match &mut self.rows {
            RowsOf::Table { reader, next } => sound(|| {
                let mut rows = Vec::from_iter(next.take());
                while let Some(row) = reader.next()? {
                    if rows.first().is_some_and(|first| first.run != row.run) {
                        *next = Some(row);
                        break;
                    }
                    rows.push(row);
                }
                Ok(rows)
            }),
            RowsOf::Journal { file, records, metrics, from } => {
                let run = records.runs_from(*from).next();
                *from = run.map_or(u32::MAX, |run| run.saturating_add(1));
                let rows = run.map_or(Ok(None), |run| records.read_rows(file, run));
                let only = |row: Row| match metrics {
                    Some(metrics) => row.only(metrics),
                    None => row,
                };
                rows.map(|rows| rows.unwrap_or_default().into_iter().map(only).collect())
            }
        };
        read.map_err(|source| ResultsError::Io { path: self.path.clone(), source })
    }
}

/// What some runs left behind, open for reading.
pub(crate) struct OpenPart {
    path: PathBuf,
    opened: Opened,
}

enum Opened {
    Tables { series: Box<RunReader<Series>>, delays: Option<Box<RunReader<Delays>>> },
    Journal { file: File, records: Records },
}

impl OpenPart {
    /// Of the flows and queues that are wanted. Empty if the run is not here.
    pub(crate) fn series_of(
        &mut self,
        run: u32,
        is_wanted: &dyn Fn(Kind, &str) -> bool,
    ) -> Result<Vec<Series>, ResultsError> {
        let mut joined = Joined::default();
        self.each_series(run, |piece| {
            let wanted = piece.into_iter().filter(|series| is_wanted(series.kind, &series.name));
            wanted.for_each(|series| joined.add(series));
            Ok(())
        })?;
        Ok(joined.all)
    }

    /// The same, piece after piece.
    pub(crate) fn each_series(
        &mut self,
        run: u32,
        mut each: impl FnMut(Vec<Series>) -> io::Result<()>,
    ) -> Result<(), ResultsError> {
        match &mut self.opened {
            Opened::Tables { series, .. } => {
                sound(|| series.each(run, |series| each(vec![series])))
            }
            Opened::Journal { file, records } => {
                let mut each =
                    |rows: Vec<SeriesRows>| each(rows.iter().map(Series::from).collect());
                records.each_piece(file, run, &mut each).and_then(|()| {
                    let rest = records.read(file, run)?.map(|result| result.series);
                    rest.map_or(Ok(()), each)
                })
            }
        }
        .map_err(|source| ResultsError::Io { path: self.path.clone(), source })
    }

    /// Empty if the run is not here.
    pub(crate) fn delays(&mut self, run: u32) -> Result<Vec<Delays>, ResultsError> {
        match &mut self.opened {
            Opened::Tables { delays, .. } => {
                delays.as_mut().map_or(Ok(Vec::new()), |delays| sound(|| delays.of(run)))
            }
            Opened::Journal { file, records } => records
                .read(file, run)
                .map(|result| result.map(|result| result.delays).unwrap_or_default()),
        }
        .map_err(|source| ResultsError::Io { path: self.path.clone(), source })
    }
}

/// Reads, run by run, what is too much for memory. It is fastest in the order of the plan.
pub struct Reader {
    parts: Vec<OpenPart>,
}

impl Reader {
    /// The time series of a run: of every flow, then of every queue. Empty if the run is missing.
    ///
    /// # Errors
    /// A file of the folder cannot be read.
    pub fn series(&mut self, run: u32) -> Result<Vec<Series>, ResultsError> {
        self.series_of(run, &|_, _| true)
    }

    /// The same of those flows and queues that are wanted.
    ///
    /// # Errors
    /// As [`Reader::series`].
    pub fn series_of(
        &mut self,
        run: u32,
        is_wanted: &dyn Fn(Kind, &str) -> bool,
    ) -> Result<Vec<Series>, ResultsError> {
        for part in &mut self.parts {
            let series = part.series_of(run, is_wanted)?;
            if !series.is_empty() {
                return Ok(series);
            }
        }
        Ok(Vec::new())
    }

    /// The distributions of delays of a run, in the same order.
    ///
    /// # Errors
    /// A file of the folder cannot be read.
    pub fn delays(&mut self, run: u32) -> Result<Vec<Delays>, ResultsError> {
        for part in &mut self.parts {
            let delays = part.delays(run)?;
            if !delays.is_empty() {
                return Ok(delays);
            }
        }
        Ok(Vec::new())
    }
}

impl Results {
    /// Whether running its study goes on with it: the journal is there.
    pub fn is_under_way(&self) -> bool {
        let names = names(&self.folder).unwrap_or_default();
        names.iter().any(|name| between(name, "journal", ".bin").is_some())
    }

    /// Opens the tables that are read run by run.
    ///
    /// # Errors
    /// A file of the folder cannot be read.
    pub fn reader(&self) -> Result<Reader, ResultsError> {
        Folder::new(&self.folder).reader(&self.plan)
    }

    /// Opens the rows, of which nothing is read but these metrics and names. With [`Results::table`] all
    /// are in memory; these are there a run at a time.
    ///
    /// # Errors
    /// A file of the folder cannot be read.
    pub fn run_rows(&self, metrics: &[&str]) -> Result<RunRows, ResultsError> {
        let metrics = metrics.iter().copied().collect();
        Folder::new(&self.folder).run_rows(&self.plan, Some(&metrics))
    }

    /// The same with everything that rows have.
    ///
    /// # Errors
    /// A file of the folder cannot be read.
    pub fn whole_run_rows(&self) -> Result<RunRows, ResultsError> {
        Folder::new(&self.folder).run_rows(&self.plan, None)
    }

    /// The time series of one run, as [`Reader::series`].
    ///
    /// # Errors
    /// A file of the folder cannot be read.
    pub fn series(&self, run: u32) -> Result<Vec<Series>, ResultsError> {
        self.reader()?.series(run)
    }

    /// Whether damage to a file of the folder is noticed. A folder of an older version has no
    /// `SHA256SUMS`, and is read as it stands.
    pub fn has_checksums(&self) -> bool {
        Folder::new(&self.folder).has_checksums()
    }

    /// Whether every run has a result.
    pub fn is_complete(&self) -> bool {
        self.missing.is_empty()
    }
}

impl AsRef<Path> for Folder {
    fn as_ref(&self) -> &Path {
        &self.path
    }
}
