//! The tables of a result folder, and files that are either complete or absent.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parquet::schema::types::SchemaDescPtr;

use super::checksums::Checksum;
use super::chunk::Encoded;
use super::column::ColumnType;
use super::files::named;
use super::frame::{FrameReader, FrameWriter, encode};
use super::rows::{
    DELAY_COLUMNS, END_STATE, FREEZES, GroupRows, Part, RUN_COLUMNS, RunsGroup, SERIES_COLUMNS,
    TableRows, in_pieces,
};
use super::series_rows::{SERIES_NAMES, SeriesRows};
use super::{
    Bucket, Delays, Freeze, Kind, Plan, Row, Series, SeriesColumn, StepValues, Table, Values,
};

/// Cells after which a row group ends: as many as fit 8 MiB. The rows of a run may be in several. Missing cells
/// don't count, because they take no memory; but whatever reads or writes the table keeps some 1 kB for each
/// column of each group.
const GROUP_CELLS: usize = 1 << 19;

/// The files of a folder, or of a shard, that hold its tables.
#[derive(Clone, Debug)]
pub(crate) struct TablePaths {
    pub(crate) runs: PathBuf,
    pub(crate) series: PathBuf,
    pub(crate) delays: PathBuf,
}

/// The tables being written; they get their names when they are complete.
pub(crate) struct StoreWriter {
    runs: Pending<RunsGroup>,
    series: Pending<Vec<Part<SeriesRows>>>,
    delays: Pending<Vec<Part<Delays>>>,
}

/// A file under its temporary name, and rows that wait for their row group.
struct Pending<G> {
    which: Which,
    writer: FrameWriter,
    file: Temporary,
    group: G,
    /// How many cells of its rows are there.
    cells: usize,
    /// A group that has all its rows, until somebody takes it or the next one is full.
    full: Option<FullGroup>,
    /// How many groups have been full.
    numbered: u32,
    /// Encoded groups that came before those of lower numbers.
    waiting: BTreeMap<u32, Encoded>,
    /// How many groups are in the file.
    written: u32,
}

#[derive(Clone, Copy, Debug)]
enum Which {
    Runs,
    Series,
    Delays,
}

/// A row group that has all its rows and is not encoded.
pub(crate) struct FullGroup {
    table: Which,
    number: u32,
    rows: Box<dyn GroupRows>,
    schema: SchemaDescPtr,
}

/// A row group as its table is going to have it.
pub(crate) struct EncodedGroup {
    table: Which,
    number: u32,
    encoded: Encoded,
}

impl FullGroup {
    pub(crate) fn encode(self) -> io::Result<EncodedGroup> {
        let encoded = encode(self.rows.columns()?, &self.schema)?;
        Ok(EncodedGroup { table: self.table, number: self.number, encoded })
    }
}

impl StoreWriter {
    pub(crate) fn create(paths: &TablePaths, plan: &Plan) -> io::Result<Self> {
        let named = |columns: &[(&str, ColumnType)]| -> Vec<(String, ColumnType)> {
            columns.iter().map(|(name, kind)| ((*name).to_owned(), *kind)).collect()
        };
        let mut run_columns = named(&RUN_COLUMNS);
        run_columns
            .extend(plan.factors.iter().map(|factor| (factor.name.clone(), ColumnType::Text)));
        run_columns
            .extend(plan.metrics.iter().map(|metric| (metric.name.clone(), ColumnType::Double)));
        let mut series_columns = named(&SERIES_COLUMNS);
        let measured = SERIES_NAMES.iter().map(|name| ((*name).to_owned(), ColumnType::Float));
        series_columns.extend(measured);
        let (runs, delay_columns) = (RunsGroup::empty(plan), named(&DELAY_COLUMNS));
        Ok(Self {
            runs: Pending::create(Which::Runs, &paths.runs, &run_columns, runs)?,
            series: Pending::create(Which::Series, &paths.series, &series_columns, Vec::new())?,
            delays: Pending::create(Which::Delays, &paths.delays, &delay_columns, Vec::new())?,
        })
    }

    /// Adds a run; they must come in the order of the plan.
    pub(crate) fn add(&mut self, run: TableRows) -> io::Result<()> {
        for row in run.rows {
            self.runs.cells += self.runs.group.cells(&row);
            self.runs.group.rows.push(row);
            self.runs.end_rows()?;
        }
        run.series
            .into_iter()
            .try_for_each(|part| self.series.add(part, Part::<SeriesRows>::cells))?;
        run.delays.into_iter().try_for_each(|part| self.delays.add(part, Part::<Delays>::cells))
    }

    /// Adds a piece of a run's time series, or all of it.
    pub(crate) fn add_series(&mut self, all: Vec<SeriesRows>) -> io::Result<()> {
        let mut parts = in_pieces(all).into_iter();
        parts.try_for_each(|part| self.series.add(part, Part::<SeriesRows>::cells))
    }

    /// Row groups that became full, at most one of each table. Each has to come back encoded, before
    /// [`StoreWriter::finish`]; those that nobody takes are encoded here.
    pub(crate) fn take_full(&mut self) -> Vec<FullGroup> {
        let full = [self.runs.full.take(), self.series.full.take(), self.delays.full.take()];
        full.into_iter().flatten().collect()
    }

    /// Takes in a row group that was full, in any order.
    pub(crate) fn put(&mut self, group: EncodedGroup) -> io::Result<()> {
        let EncodedGroup { table, number, encoded } = group;
        match table {
            Which::Runs => self.runs.put(number, encoded),
            Which::Series => self.series.put(number, encoded),
            Which::Delays => self.delays.put(number, encoded),
        }
    }

    /// Completes the tables under their temporary names. The table of runs comes last, so where it
    /// exists the others do too.
    pub(crate) fn finish(self) -> io::Result<[Whole; 3]> {
        Ok([self.series.finish()?, self.delays.finish()?, self.runs.finish()?])
    }
}

impl<T> Pending<Vec<Part<T>>>
where
    Vec<Part<T>>: GroupRows,
{
    /// Adds rows, of which `cells` says how many cells are there.
    fn add(&mut self, mut part: Part<T>, cells: impl Fn(&Part<T>) -> usize) -> io::Result<()> {
        while !part.rows.is_empty() {
            let first = part.split(self.room().min(part.rows.len()));
            self.cells += cells(&first);
            self.group.push(first);
            self.end_rows()?;
        }
        Ok(())
    }
}

impl<G: GroupRows> Pending<G> {
    fn create(
        which: Which,
        path: &Path,
        columns: &[(String, ColumnType)],
        group: G,
    ) -> io::Result<Self> {
        let file = Temporary { path: path.to_owned() };
        let writer = FrameWriter::create(&file.name(), columns)?;
        Ok(Self {
            which,
            writer,
            file,
            group,
            cells: 0,
            full: None,
            numbered: 0,
            waiting: BTreeMap::new(),
            written: 0,
        })
    }

    /// How many rows the row group has room for if none of their cells is missing: at least one.
    fn room(&self) -> usize {
        (GROUP_CELLS - self.cells).div_ceil(self.writer.schema().num_columns())
    }

    /// Rows are complete; so is the row group, if it has no more room.
    fn end_rows(&mut self) -> io::Result<()> {
        match self.cells < GROUP_CELLS {
            true => Ok(()),
            false => self.end_group(),
        }
    }

    fn end_group(&mut self) -> io::Result<()> {
        self.write_full()?;
        let (rows, schema) = (self.group.take(), Arc::clone(self.writer.schema()));
        self.full = Some(FullGroup { table: self.which, number: self.numbered, rows, schema });
        self.numbered += 1;
        self.cells = 0;
        Ok(())
    }

    /// Encodes here the group that nobody took.
    fn write_full(&mut self) -> io::Result<()> {
        match self.full.take() {
            Some(group) => {
                let EncodedGroup { number, encoded, .. } = group.encode()?;
                self.put(number, encoded)
            }
            None => Ok(()),
        }
    }

    fn put(&mut self, number: u32, encoded: Encoded) -> io::Result<()> {
        self.waiting.insert(number, encoded);
        while let Some(next) = self.waiting.remove(&self.written) {
            self.writer.write(next)?;
            self.written += 1;
        }
        Ok(())
    }

    fn finish(mut self) -> io::Result<Whole> {
        if self.cells > 0 {
            self.end_group()?;
        }
        self.write_full()?;
        if self.written < self.numbered {
            return Err(io::Error::other("a row group is missing"));
        }
        let checksum = self.writer.finish()?;
        Ok(Whole { file: self.file, checksum })
    }
}

/// A table that is whole, under its temporary name.
pub(crate) struct Whole {
    file: Temporary,
    pub(crate) checksum: Checksum,
}

impl Whole {
    /// Its final path.
    pub(crate) fn path(&self) -> &Path {
        &self.file.path
    }

    pub(crate) fn appear(self) -> io::Result<()> {
        fs::rename(self.file.name(), &self.file.path)
    }
}

/// The name under which a table is written until it is complete. Only the process that holds the
/// journal writes it. An incomplete table is removed, because on a full disk it would be in the
/// way.
struct Temporary {
    path: PathBuf,
}

impl Temporary {
    fn name(&self) -> PathBuf {
        named(&self.path, ".part")
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // After a success the file has its final name, and removing this one fails without harm.
        let _ = fs::remove_file(self.name());
    }
}

/// Reads the rows of `runs.parquet`, one after the other. Of a row group at a time the columns that are asked for are in
/// memory.
pub(crate) struct RowReader {
    reader: FrameReader,
    /// For each metric of the plan, whether it is read.
    is_read: Vec<bool>,
    metrics: Vec<String>,
    /// Whether texts other than names are read.
    has_texts: bool,
    group: Option<RowGroup>,
    groups_read: usize,
}

/// The columns of a row group; those that are not read, or have nothing, are missing.
struct RowGroup {
    run: Vec<u64>,
    scenario: Vec<u64>,
    seed: Vec<u64>,
    kind: Vec<Option<Arc<str>>>,
    name: Vec<Option<Arc<str>>>,
    digest: Option<Vec<Option<Arc<str>>>>,
    end_state: Option<Vec<Option<Arc<str>>>>,
    freezes: Option<Vec<Option<Arc<str>>>>,
    /// How many metrics there are.
    metrics: usize,
    /// Of those that have values.
    values: Vec<Known>,
    /// The row that comes next.
    at: usize,
}

/// The values of a metric in a row group. A metric is of runs, of flows or of queues, so most rows have none; and there is a row
/// group in memory for each shard that is joined.
struct Known {
    /// Its position among all.
    metric: usize,
    /// The rows that have one.
    rows: Vec<u32>,
    values: Vec<f64>,
    /// How many of them are of rows before the next.
    passed: usize,
}

impl Known {
    /// `None` if no row has a value.
    fn of(metric: usize, column: &[Option<f64>]) -> Option<Self> {
        let known = column.iter().zip(0..).filter_map(|(value, row)| Some((row, (*value)?)));
        let (rows, values): (Vec<u32>, Vec<f64>) = known.unzip();
        (!rows.is_empty()).then_some(Self { metric, rows, values, passed: 0 })
    }

    /// The value of a row; rows are asked for in their order.
    fn next(&mut self, row: usize) -> Option<(usize, f64)> {
        if self.rows.get(self.passed).copied() != Some(row as u32) {
            return None;
        }
        self.passed += 1;
        Some((self.metric, self.values[self.passed - 1]))
    }
}

impl RowReader {
    /// With `metrics` only these are read, and texts other than names are empty.
    pub(crate) fn open(
        path: &Path,
        plan: &Plan,
        metrics: Option<&BTreeSet<&str>>,
    ) -> io::Result<Self> {
        let reader = FrameReader::open(path)?;
        let names = plan.metrics.iter().map(|metric| metric.name.clone());
        let (names, is_read) = names
            .map(|name| {
                let is_read = metrics.is_none_or(|metrics| metrics.contains(&name[..]));
                (name, is_read)
            })
            .unzip();
        let has_texts = metrics.is_none();
        Ok(Self { reader, is_read, metrics: names, has_texts, group: None, groups_read: 0 })
    }

    pub(crate) fn next(&mut self) -> io::Result<Option<Row>> {
        loop {
            if let Some(group) = &mut self.group
                && group.at < group.run.len()
            {
                return group.next().map(Some);
            }
            // Before the next one is read, so that there is one in memory.
            self.group = None;
            if self.groups_read == self.reader.groups() {
                return Ok(None);
            }
            self.group = Some(self.read(self.groups_read)?);
            self.groups_read += 1;
        }
    }

    fn read(&self, group: usize) -> io::Result<RowGroup> {
        let reader = &self.reader;
        let counts = |name| reader.counts(group, name);
        let texts = |name| reader.texts(group, name);
        // A folder of an older version has no such texts, and fewer metrics.
        let is_there = |name: &str| reader.columns().iter().any(|column| column == name);
        let more_texts = |name: &'static str| {
            (self.has_texts && is_there(name)).then(|| texts(name)).transpose()
        };
        let mut values = Vec::new();
        for (at, (name, is_read)) in self.metrics.iter().zip(&self.is_read).enumerate() {
            if *is_read && is_there(name) {
                values.extend(Known::of(at, &reader.numbers(group, name)?));
            }
        }
        Ok(RowGroup {
            run: counts("run")?,
            scenario: counts("scenario")?,
            seed: counts("seed")?,
            kind: texts("kind")?,
            name: texts("name")?,
            digest: more_texts("digest")?,
            end_state: more_texts(END_STATE)?,
            freezes: more_texts(FREEZES)?,
            metrics: self.metrics.len(),
            values,
            at: 0,
        })
    }
}

impl RowGroup {
    fn next(&mut self) -> io::Result<Row> {
        let at = self.at;
        self.at += 1;
        let text = |column: &Option<Vec<Option<Arc<str>>>>| {
            column.as_ref().map(|column| owned(&column[at])).unwrap_or_default()
        };
        let freezes = self.freezes.as_ref().and_then(|column| column[at].as_deref());
        Ok(Row {
            run: self.run[at] as u32,
            scenario: self.scenario[at] as u32,
            seed: self.seed[at],
            kind: kind_named(self.kind[at].as_deref())?,
            name: owned(&self.name[at]),
            digest: text(&self.digest),
            end_state: text(&self.end_state),
            freezes: freezes_in(freezes)?,
            values: Values::of_known(
                self.metrics,
                self.values.iter_mut().filter_map(|column| column.next(at)),
            ),
        })
    }
}

/// Reads which run each row of `runs.parquet` is of.
pub(crate) fn each_run(path: &Path, each: &mut dyn FnMut(u32)) -> io::Result<()> {
    let reader = FrameReader::open(path)?;
    for group in 0..reader.groups() {
        reader.counts(group, "run")?.into_iter().for_each(|run| each(run as u32));
    }
    Ok(())
}

fn freezes_in(text: Option<&str>) -> io::Result<Vec<Freeze>> {
    let Some(text) = text else { return Ok(Vec::new()) };
    serde_json::from_str(text).map_err(|error| {
        io::Error::new(io::ErrorKind::InvalidData, format!("freezes that can't be read: {error}"))
    })
}

/// A table's content for one run, in several rows.
pub(crate) trait OfRun: Clone {
    fn run(&self) -> u32;

    /// What distinguishes it from others of the run.
    fn key(&self) -> (Kind, &str, &str);

    /// Appends what follows of the same.
    fn join(&mut self, next: Self);

    /// Everything in a row group.
    fn read(reader: &FrameReader, group: usize) -> io::Result<Vec<Self>>;
}

/// Reads `series.parquet` or `delays.parquet`, a row group at a time.
pub(crate) struct RunReader<T> {
    reader: FrameReader,
    /// The row group read last, and what is in it.
    group: Option<(usize, Vec<T>)>,
}

impl<T: OfRun> RunReader<T> {
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        Ok(Self { reader: FrameReader::open(path)?, group: None })
    }

    /// What the table has for a run; empty if it has nothing.
    pub(crate) fn of(&mut self, run: u32) -> io::Result<Vec<T>> {
        let mut joined = Joined::default();
        self.each(run, |one| {
            joined.add(one);
            Ok(())
        })?;
        Ok(joined.all)
    }

    /// Reads what the table has for a run as it stands there: piece after piece.
    pub(crate) fn each(
        &mut self,
        run: u32,
        mut one: impl FnMut(T) -> io::Result<()>,
    ) -> io::Result<()> {
        let is_in = |group: &usize| {
            self.reader.range(*group, "run").is_none_or(|(low, high)| (low..=high).contains(&run))
        };
        let groups: Vec<usize> = (0..self.reader.groups()).filter(is_in).collect();
        for group in groups {
            let all = match self.group.take() {
                Some((known, all)) if known == group => all,
                _ => T::read(&self.reader, group)?,
            };
            let result =
                all.iter().filter(|own| own.run() == run).try_for_each(|own| one(own.clone()));
            self.group = Some((group, all));
            result?;
        }
        Ok(())
    }
}

/// What comes in pieces, put together.
pub(crate) struct Joined<T> {
    pub(crate) all: Vec<T>,
    places: BTreeMap<(Kind, String, String), usize>,
}

impl<T> Default for Joined<T> {
    fn default() -> Self {
        Self { all: Vec::new(), places: BTreeMap::new() }
    }
}

impl<T: OfRun> Joined<T> {
    pub(crate) fn add(&mut self, one: T) {
        let (kind, name, more) = one.key();
        let key = (kind, name.to_owned(), more.to_owned());
        match self.places.get(&key) {
            Some(place) => self.all[*place].join(one),
            None => {
                self.places.insert(key, self.all.len());
                self.all.push(one);
            }
        }
    }
}

impl OfRun for Series {
    fn run(&self) -> u32 {
        self.run
    }

    fn key(&self) -> (Kind, &str, &str) {
        (self.kind, &self.name, "")
    }

    fn join(&mut self, next: Self) {
        let (rows, more) = (self.t_s.len(), next.t_s.len());
        self.t_s.extend(next.t_s);
        if !(self.phase.is_empty() && next.phase.is_empty()) {
            self.phase.resize(rows, Arc::default());
            self.phase.extend(next.phase);
            self.phase.resize(rows + more, Arc::default());
        }
        // A column in which nothing was measured in a group is missing there.
        for column in next.columns {
            match self.columns.iter_mut().find(|own| own.name == column.name) {
                Some(own) => own.values.append(column.values),
                None => {
                    let mut values = StepValues::default();
                    values.fill(rows);
                    values.append(column.values);
                    let place = |of: &str| SERIES_NAMES.iter().position(|name| *name == of);
                    let before = |own: &SeriesColumn| place(&own.name) < place(&column.name);
                    let at = self.columns.partition_point(before);
                    self.columns.insert(at, SeriesColumn { name: column.name, values });
                }
            }
        }
        for column in &mut self.columns {
            column.values.fill(rows + more);
        }
    }

    fn read(reader: &FrameReader, group: usize) -> io::Result<Vec<Self>> {
        let mut all: Vec<Self> = Vec::new();
        let runs = reader.counts(group, "run")?;
        let (kind, name) = (reader.texts(group, "kind")?, reader.texts(group, "name")?);
        let (t_s, phase) = (reader.numbers(group, "t_s")?, reader.texts(group, "phase")?);
        let columns = reader
            .columns()
            .iter()
            .filter(|name| SERIES_COLUMNS.iter().all(|(other, _)| other != name))
            .map(|name| Ok((name.clone(), reader.step_values(group, name)?)))
            // Most columns have nothing.
            .filter(|column| {
                !column.as_ref().is_ok_and(|(_, values)| values.known().next().is_none())
            })
            .collect::<io::Result<Vec<_>>>()?;
        let mut from = 0;
        while from < runs.len() {
            let is_same = |index: &usize| {
                runs[*index] == runs[from]
                    && kind[*index] == kind[from]
                    && name[*index] == name[from]
            };
            let to = from + (from..runs.len()).take_while(is_same).count();
            let none: Arc<str> = Arc::default();
            let phases = phase[from..to].iter().map(|phase| phase.as_ref().unwrap_or(&none));
            let has_phases = phases.clone().any(|phase| !phase.is_empty());
            all.push(Self {
                run: runs[from] as u32,
                kind: kind_named(kind[from].as_deref())?,
                name: owned(&name[from]),
                t_s: t_s[from..to].iter().map(|t| t.unwrap_or(f64::NAN)).collect(),
                columns: columns
                    .iter()
                    .filter(|(_, values)| values.known_in(from..to).next().is_some())
                    .map(|(name, values)| SeriesColumn {
                        name: name.clone(),
                        values: values.part(from..to),
                    })
                    .collect(),
                phase: phases.filter(|_| has_phases).cloned().collect(),
            });
            from = to;
        }
        Ok(all)
    }
}

impl OfRun for Delays {
    fn run(&self) -> u32 {
        self.run
    }

    fn key(&self) -> (Kind, &str, &str) {
        (self.kind, &self.name, &self.metric)
    }

    fn join(&mut self, next: Self) {
        self.buckets.extend(next.buckets);
    }

    fn read(reader: &FrameReader, group: usize) -> io::Result<Vec<Self>> {
        let mut all: Vec<Self> = Vec::new();
        let (counts, texts) = (|name| reader.counts(group, name), |name| reader.texts(group, name));
        let runs = counts("run")?;
        let (kind, name, metric) = (texts("kind")?, texts("name")?, texts("metric")?);
        let (low, high, samples) = (counts("low_ns")?, counts("high_ns")?, counts("samples")?);
        for index in 0..runs.len() {
            let bucket =
                Bucket { low_ns: low[index], high_ns: high[index], samples: samples[index] };
            let continues = index > 0
                && runs[index] == runs[index - 1]
                && kind[index] == kind[index - 1]
                && name[index] == name[index - 1]
                && metric[index] == metric[index - 1];
            match all.last_mut() {
                Some(last) if continues => last.buckets.push(bucket),
                _ => all.push(Self {
                    run: runs[index] as u32,
                    kind: kind_named(kind[index].as_deref())?,
                    name: owned(&name[index]),
                    metric: owned(&metric[index]),
                    buckets: vec![bucket],
                }),
            }
        }
        Ok(all)
    }
}

/// Empty for one that is missing.
fn owned(text: &Option<Arc<str>>) -> String {
    text.as_deref().unwrap_or_default().to_owned()
}

fn kind_named(name: Option<&str>) -> io::Result<Kind> {
    Kind::ALL.into_iter().find(|kind| Some(kind.name()) == name).ok_or_else(|| {
        io::Error::new(io::ErrorKind::InvalidData, format!("unknown kind of row {name:?}"))
    })
}

/// Rows as a table of the plan's metrics.
pub(crate) fn table(plan: &Plan, mut rows: Vec<Row>) -> Table {
    // Stable: within a run the order is that of the run.
    rows.sort_by_key(|row| row.run);
    Table { metrics: plan.metrics.iter().map(|metric| metric.name.clone()).collect(), rows }
}
