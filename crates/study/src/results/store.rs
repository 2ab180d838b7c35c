//! The two tables of a result folder, and files that are there wholly or not at all.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use sojourn_metrics::{FLOW_COLUMNS, LINK_COLUMNS};

use super::codec::RunResult;
use super::frame::{ColumnType, Data, FrameReader, FrameWriter};
use super::{Kind, Plan, Row, Series, SeriesColumn, Table};

/// Rows after which a row group is closed. Runs are never cut.
const GROUP_ROWS: usize = 65_536;

const RUN_COLUMNS: [(&str, ColumnType); 6] = [
    ("run", ColumnType::Int32),
    ("scenario", ColumnType::Int32),
    ("seed", ColumnType::Int64),
    ("kind", ColumnType::Text),
    ("name", ColumnType::Text),
    ("digest", ColumnType::Text),
];

const SERIES_COLUMNS: [(&str, ColumnType); 5] = [
    ("run", ColumnType::Int32),
    ("kind", ColumnType::Text),
    ("name", ColumnType::Text),
    ("t_s", ColumnType::Double),
    ("phase", ColumnType::Text),
];

/// Writes `path` so that a kill leaves the old file or the new one, never a part. Shards may share a
/// folder: each has names of its own for what is not whole yet, by its `label`.
pub(crate) fn write_whole(path: &Path, label: &str, bytes: &[u8]) -> io::Result<()> {
    let is_there = || fs::read(path).is_ok_and(|old| old == bytes);
    if is_there() {
        return Ok(());
    }
    let temporary = named(path, &format!("{label}.part"));
    let write = || {
        let mut file = File::create(&temporary)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&temporary, path)
    };
    match write() {
        // The same command, started twice: the other one was faster.
        Err(error) if error.kind() == io::ErrorKind::NotFound && is_there() => Ok(()),
        Err(error) => {
            let _ = fs::remove_file(&temporary);
            Err(error)
        }
        Ok(()) => Ok(()),
    }
}

fn named(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(ending);
    path.with_file_name(name)
}

/// Both tables being written; they appear under their names when all is in them.
pub(crate) struct StoreWriter {
    runs: Pending,
    series: Pending,
    metrics: usize,
}

/// A file under its temporary name, and rows that wait for their row group.
struct Pending {
    writer: FrameWriter,
    file: Temporary,
    types: Vec<ColumnType>,
    columns: Vec<Data>,
    rows: usize,
}

impl StoreWriter {
    pub(crate) fn create(runs: &Path, series: &Path, plan: &Plan) -> io::Result<Self> {
        let named = |columns: &[(&str, ColumnType)]| -> Vec<(String, ColumnType)> {
            columns.iter().map(|(name, kind)| ((*name).to_owned(), *kind)).collect()
        };
        let mut run_columns = named(&RUN_COLUMNS);
        run_columns
            .extend(plan.factors.iter().map(|factor| (factor.name.clone(), ColumnType::Text)));
        run_columns
            .extend(plan.metrics.iter().map(|metric| (metric.name.clone(), ColumnType::Double)));
        let mut series_columns = named(&SERIES_COLUMNS);
        series_columns.extend(series_names().map(|name| (name.to_owned(), ColumnType::Float)));
        Ok(Self {
            runs: Pending::create(runs, &run_columns)?,
            series: Pending::create(series, &series_columns)?,
            metrics: plan.metrics.len(),
        })
    }

    /// Adds a run; they must come in the order of the plan.
    pub(crate) fn add(&mut self, plan: &Plan, result: &RunResult) -> io::Result<()> {
        for row in &result.rows {
            self.add_row(plan, row);
        }
        self.runs.close_group(GROUP_ROWS)?;
        for series in &result.series {
            self.add_series(series);
        }
        self.series.close_group(GROUP_ROWS)
    }

    pub(crate) fn finish(self) -> io::Result<()> {
        self.runs.finish()?;
        self.series.finish()
    }

    fn add_row(&mut self, plan: &Plan, row: &Row) {
        let mut columns = self.runs.columns.iter_mut();
        let mut push = |cell: Cell<'_>| {
            if let Some(column) = columns.next() {
                cell.push(column);
            }
        };
        push(Cell::Count(u64::from(row.run)));
        push(Cell::Count(u64::from(row.scenario)));
        push(Cell::Count(row.seed));
        push(Cell::Text(Some(row.kind.name())));
        push(Cell::Text(Some(&row.name)));
        push(Cell::Text(Some(&row.digest)));
        for value in &plan.scenarios[row.scenario as usize].factors {
            push(Cell::Text(Some(value)));
        }
        for metric in 0..self.metrics {
            push(Cell::Number(row.values.get(metric).copied().flatten()));
        }
        self.runs.rows += 1;
    }

    fn add_series(&mut self, series: &Series) {
        let measured: Vec<Option<&SeriesColumn>> = series_names()
            .map(|name| series.columns.iter().find(|column| column.name == name))
            .collect();
        for (step, t_s) in series.t_s.iter().enumerate() {
            let mut columns = self.series.columns.iter_mut();
            let mut push = |cell: Cell<'_>| {
                if let Some(column) = columns.next() {
                    cell.push(column);
                }
            };
            push(Cell::Count(u64::from(series.run)));
            push(Cell::Text(Some(series.kind.name())));
            push(Cell::Text(Some(&series.name)));
            push(Cell::Number(Some(*t_s)));
            push(Cell::Text(series.phase.get(step).map(String::as_str).filter(|p| !p.is_empty())));
            for column in &measured {
                push(Cell::Number(column.and_then(|column| column.values[step])));
            }
        }
        self.series.rows += series.t_s.len();
    }
}

/// Columns of time series, phases aside: those of flows, then those that only queues have.
fn series_names() -> impl Iterator<Item = &'static str> {
    let flow = || FLOW_COLUMNS.iter().map(|column| column.name).filter(|name| *name != "phase");
    let link = LINK_COLUMNS.iter().map(|column| column.name);
    flow().chain(link.filter(move |name| flow().all(|other| other != *name)))
}

enum Cell<'a> {
    Count(u64),
    Text(Option<&'a str>),
    Number(Option<f64>),
}

impl Cell<'_> {
    fn push(self, column: &mut Data) {
        match (column, self) {
            (Data::Int32(values), Self::Count(count)) => values.push(count as u32),
            (Data::Int64(values), Self::Count(count)) => values.push(count),
            (Data::Text(values), Self::Text(text)) => values.push(text.map(str::to_owned)),
            (Data::Double(values) | Data::Float(values), Self::Number(number)) => {
                values.push(number);
            }
            _ => unreachable!("columns are made in the order in which cells are pushed"),
        }
    }
}

impl Pending {
    fn create(path: &Path, columns: &[(String, ColumnType)]) -> io::Result<Self> {
        let types: Vec<ColumnType> = columns.iter().map(|(_, kind)| *kind).collect();
        let file = Temporary { path: path.to_owned() };
        Ok(Self {
            writer: FrameWriter::create(&file.name(), columns)?,
            file,
            columns: types.iter().map(|kind| Data::empty(*kind)).collect(),
            types,
            rows: 0,
        })
    }

    fn close_group(&mut self, least: usize) -> io::Result<()> {
        if self.rows < least.max(1) {
            return Ok(());
        }
        self.writer.write(&self.columns)?;
        self.columns = self.types.iter().map(|kind| Data::empty(*kind)).collect();
        self.rows = 0;
        Ok(())
    }

    fn finish(mut self) -> io::Result<()> {
        self.close_group(1)?;
        self.writer.finish()?;
        fs::rename(self.file.name(), &self.file.path)
    }
}

/// The name under which a table is written until it is whole. Whoever holds its journal writes it
/// alone. What did not become whole goes: on a full disk it would be in the way.
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
        // After all went well there is nothing under this name.
        let _ = fs::remove_file(self.name());
    }
}

/// Reads `runs.parquet`.
pub(crate) fn read_rows(path: &Path, plan: &Plan) -> io::Result<Vec<Row>> {
    let reader = FrameReader::open(path)?;
    let mut rows = Vec::new();
    for group in 0..reader.groups() {
        let counts = |name| reader.counts(group, name);
        let texts = |name| reader.texts(group, name);
        let (run, scenario, seed) = (counts("run")?, counts("scenario")?, counts("seed")?);
        let (kind, name, digest) = (texts("kind")?, texts("name")?, texts("digest")?);
        let values: Vec<Vec<Option<f64>>> = plan
            .metrics
            .iter()
            .map(|metric| match reader.columns().contains(&metric.name) {
                true => reader.numbers(group, &metric.name),
                // A folder of an older version has fewer metrics.
                false => Ok(vec![None; run.len()]),
            })
            .collect::<io::Result<_>>()?;
        for index in 0..run.len() {
            rows.push(Row {
                run: run[index] as u32,
                scenario: scenario[index] as u32,
                seed: seed[index],
                kind: kind_named(kind[index].as_deref())?,
                name: name[index].clone().unwrap_or_default(),
                digest: digest[index].clone().unwrap_or_default(),
                values: values.iter().map(|column| column[index]).collect(),
            });
        }
    }
    Ok(rows)
}

/// Reads `series.parquet`, a row group at a time.
pub(crate) struct SeriesReader {
    reader: FrameReader,
    /// The row group read last, and what is in it.
    group: Option<(usize, Vec<Series>)>,
}

impl SeriesReader {
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        Ok(Self { reader: FrameReader::open(path)?, group: None })
    }

    /// The time series of a run; empty when it is not here.
    pub(crate) fn of(&mut self, run: u32) -> io::Result<Vec<Series>> {
        let is_in = |group: &usize| {
            // Runs are never cut, so a run is in one group.
            self.reader.range(*group, "run").is_none_or(|(low, high)| (low..=high).contains(&run))
        };
        let groups: Vec<usize> = (0..self.reader.groups()).filter(is_in).collect();
        for group in groups {
            let of_run = |all: &[Series]| -> Vec<Series> {
                all.iter().filter(|series| series.run == run).cloned().collect()
            };
            let series = match &self.group {
                Some((known, all)) if *known == group => of_run(all),
                _ => {
                    let all = self.read(group)?;
                    let series = of_run(&all);
                    self.group = Some((group, all));
                    series
                }
            };
            if !series.is_empty() {
                return Ok(series);
            }
        }
        Ok(Vec::new())
    }

    fn read(&self, group: usize) -> io::Result<Vec<Series>> {
        let reader = &self.reader;
        let mut all: Vec<Series> = Vec::new();
        let runs = reader.counts(group, "run")?;
        let (kind, name) = (reader.texts(group, "kind")?, reader.texts(group, "name")?);
        let (t_s, phase) = (reader.numbers(group, "t_s")?, reader.texts(group, "phase")?);
        let columns = reader
            .columns()
            .iter()
            .filter(|name| SERIES_COLUMNS.iter().all(|(other, _)| other != name))
            .map(|name| Ok((name.clone(), reader.numbers(group, name)?)))
            .collect::<io::Result<Vec<_>>>()?;
        let mut from = 0;
        while from < runs.len() {
            let is_same = |index: &usize| {
                runs[*index] == runs[from]
                    && kind[*index] == kind[from]
                    && name[*index] == name[from]
            };
            let to = from + (from..runs.len()).take_while(is_same).count();
            let phases: Vec<String> =
                phase[from..to].iter().map(|phase| phase.clone().unwrap_or_default()).collect();
            all.push(Series {
                run: runs[from] as u32,
                kind: kind_named(kind[from].as_deref())?,
                name: name[from].clone().unwrap_or_default(),
                t_s: t_s[from..to].iter().map(|t| t.unwrap_or(f64::NAN)).collect(),
                columns: columns
                    .iter()
                    .filter(|(_, values)| values[from..to].iter().any(Option::is_some))
                    .map(|(name, values)| SeriesColumn {
                        name: name.clone(),
                        values: values[from..to].to_vec(),
                    })
                    .collect(),
                phase: match phases.iter().all(String::is_empty) {
                    true => Vec::new(),
                    false => phases,
                },
            });
            from = to;
        }
        Ok(all)
    }
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
