//! What runs add to the tables: rows that wait for their row group, and the columns that they become.
//!
//! A run adds a few cells to each of hundreds of columns, which are far apart in memory. So its rows are kept as they
//! are, and columns are made when the row group has all of its rows: by the thread that encodes it, so nobody waits for that.

use std::io;
use std::iter::repeat_n;
use std::ops::Range;
use std::sync::Arc;

use super::codec::RunResult;
use super::column::{Column, ColumnType, Presence, Texts};
use super::series_rows::{SERIES_NAMES, SeriesRows};
use super::{Bucket, Delays, Kind, Plan, PlannedScenario, Row};

/// Columns of `runs.parquet` before those of factors and metrics.
pub(super) const RUN_COLUMNS: [(&str, ColumnType); 8] = [
    ("run", ColumnType::Int32),
    ("scenario", ColumnType::Int32),
    ("seed", ColumnType::Int64),
    ("kind", ColumnType::Text),
    ("name", ColumnType::Text),
    ("digest", ColumnType::Text),
    (END_STATE, ColumnType::Text),
    (FREEZES, ColumnType::Text),
];

pub(super) const END_STATE: &str = "end_state";
/// JSON: a list of [`Freeze`](super::Freeze).
pub(super) const FREEZES: &str = "freezes";

/// Columns of `series.parquet` before [`SERIES_NAMES`].
pub(super) const SERIES_COLUMNS: [(&str, ColumnType); 5] = [
    ("run", ColumnType::Int32),
    ("kind", ColumnType::Text),
    ("name", ColumnType::Text),
    ("t_s", ColumnType::Double),
    ("phase", ColumnType::Text),
];

pub(super) const DELAY_COLUMNS: [(&str, ColumnType); 7] = [
    ("run", ColumnType::Int32),
    ("kind", ColumnType::Text),
    ("name", ColumnType::Text),
    ("metric", ColumnType::Text),
    ("low_ns", ColumnType::Int64),
    ("high_ns", ColumnType::Int64),
    ("samples", ColumnType::Int64),
];

/// What a run adds to the tables.
pub(crate) struct TableRows {
    /// Position in the plan.
    pub(crate) run: u32,
    /// Pieces of its time series that came before.
    pub(crate) pieces: u32,
    pub(super) rows: Vec<Row>,
    pub(super) series: Vec<Part<SeriesRows>>,
    pub(super) delays: Vec<Part<Delays>>,
}

impl TableRows {
    /// What went wrong when the run was over: the end state of its first row, which is of the run as a whole.
    pub(crate) fn trouble(&self) -> Option<&str> {
        self.rows.first().map(|row| &row.end_state[..]).filter(|trouble| !trouble.is_empty())
    }
}

impl From<RunResult> for TableRows {
    fn from(result: RunResult) -> Self {
        let RunResult { run, pieces, rows, series, delays } = result;
        let series = in_pieces(series);
        let whole = |delays: Delays| Part { rows: 0..delays.buckets.len(), of: Arc::new(delays) };
        Self { run, pieces, rows, series, delays: delays.into_iter().map(whole).collect() }
    }
}

/// Some rows of what is in many.
pub(super) struct Part<T> {
    of: Arc<T>,
    pub(super) rows: Range<usize>,
}

impl<T> Part<T> {
    /// Takes its first rows away.
    pub(super) fn split(&mut self, rows: usize) -> Self {
        let middle = self.rows.start + rows;
        let first = Self { of: Arc::clone(&self.of), rows: self.rows.start..middle };
        self.rows.start = middle;
        first
    }
}

impl Part<SeriesRows> {
    /// How many cells are there.
    pub(super) fn cells(&self) -> usize {
        let columns = self.of.values.chunks(self.of.t_s.len().max(1));
        let known =
            columns.map(|column| column[self.rows.clone()].iter().filter(|v| !v.is_nan()).count());
        let phases = self.phases().map(|(phase, rows)| if phase.is_some() { rows } else { 0 });
        4 * self.rows.len() + phases.sum::<usize>() + known.sum::<usize>()
    }

    /// The phases, and how many of these rows each has.
    fn phases(&self) -> impl Iterator<Item = (Option<&str>, usize)> {
        let mut end = 0;
        self.of.phases.iter().map(move |(phase, rows)| {
            let start = end.max(self.rows.start);
            end += rows;
            let rows = end.min(self.rows.end).saturating_sub(start);
            (unless_empty(phase), rows)
        })
    }
}

impl Part<Delays> {
    pub(super) fn cells(&self) -> usize {
        self.rows.len() * DELAY_COLUMNS.len()
    }
}

/// A piece of a run's time series, or all of it as if it had come in pieces, so that the table does not depend on
/// that.
pub(super) fn in_pieces(all: Vec<SeriesRows>) -> Vec<Part<SeriesRows>> {
    let flows = all.iter().filter(|series| series.kind == Kind::Flow).count();
    let piece = sojourn_metrics::Series::rows_in_piece(flows, all.len() - flows);
    let rows = all.iter().map(|series| series.t_s.len()).max().unwrap_or(0);
    let all: Vec<Arc<SeriesRows>> = all.into_iter().map(Arc::new).collect();
    let pieces = (0..rows).step_by(piece).flat_map(|from| {
        all.iter().map(move |series| {
            let end = series.t_s.len();
            Part { of: Arc::clone(series), rows: from.min(end)..(from + piece).min(end) }
        })
    });
    pieces.filter(|part| !part.rows.is_empty()).collect()
}

/// The rows of a row group.
pub(super) trait GroupRows: Send {
    /// One column after the other, in the order of the table.
    fn columns(&self) -> io::Result<Box<dyn Iterator<Item = Column> + '_>>;

    /// Moves them away; others may follow.
    fn take(&mut self) -> Box<dyn GroupRows>;
}

/// Rows of `runs.parquet`.
pub(super) struct RunsGroup {
    pub(super) rows: Vec<Row>,
    scenarios: Arc<Vec<PlannedScenario>>,
    factors: usize,
    metrics: usize,
}

impl RunsGroup {
    pub(super) fn empty(plan: &Plan) -> Self {
        Self {
            rows: Vec::new(),
            scenarios: Arc::clone(&plan.scenarios),
            factors: plan.factors.len(),
            metrics: plan.metrics.len(),
        }
    }

    /// How many cells of a row are there.
    pub(super) fn cells(&self, row: &Row) -> usize {
        let texts = [!row.end_state.is_empty(), !row.freezes.is_empty()];
        6 + texts.into_iter().filter(|is_there| *is_there).count()
            + self.factors
            + row.values.known_before(self.metrics)
    }

    /// The columns of those 64 metrics whose bits are in a word of [`Values`](super::Values).
    fn metrics(&self, word: usize) -> impl Iterator<Item = Column> + use<> {
        let count = (self.metrics - word * 64).min(64);
        let mut columns = vec![(Presence::missing(self.rows.len()), Vec::new()); count];
        for (at, row) in self.rows.iter().enumerate() {
            for (bit, value) in row.values.of_word(word) {
                if let Some((presence, values)) = columns.get_mut(bit) {
                    presence.set(at);
                    values.push(value);
                }
            }
        }
        columns.into_iter().map(|(presence, values)| Column::Double(presence, values))
    }
}

impl GroupRows for RunsGroup {
    fn columns(&self) -> io::Result<Box<dyn Iterator<Item = Column> + '_>> {
        let rows = &self.rows;
        let freezes = rows.iter().map(|row| match row.freezes.is_empty() {
            true => Ok(None),
            false => serde_json::to_string(&row.freezes).map(Some).map_err(io::Error::other),
        });
        let freezes: Vec<Option<String>> = freezes.collect::<io::Result<_>>()?;
        let text = |of: fn(&Row) -> &str| texts(rows.iter().map(|row| (Some(of(row)), 1)));
        let first = [
            Column::Int32(rows.iter().map(|row| row.run).collect()),
            Column::Int32(rows.iter().map(|row| row.scenario).collect()),
            Column::Int64(rows.iter().map(|row| row.seed).collect()),
            text(|row| row.kind.name()),
            text(|row| &row.name),
            text(|row| &row.digest),
            texts(rows.iter().map(|row| (unless_empty(&row.end_state), 1))),
            texts(freezes.iter().map(|freezes| (freezes.as_deref(), 1))),
        ];
        let factors = (0..self.factors).map(|factor| {
            let value = |row: &Row| &*self.scenarios[row.scenario as usize].factors[factor];
            texts(rows.iter().map(|row| (Some(value(row)), 1)))
        });
        let metrics = (0..self.metrics.div_ceil(64)).flat_map(|word| self.metrics(word));
        Ok(Box::new(first.into_iter().chain(factors).chain(metrics)))
    }

    fn take(&mut self) -> Box<dyn GroupRows> {
        let (rows, scenarios) = (std::mem::take(&mut self.rows), Arc::clone(&self.scenarios));
        Box::new(Self { rows, scenarios, ..*self })
    }
}

impl GroupRows for Vec<Part<SeriesRows>> {
    fn columns(&self) -> io::Result<Box<dyn Iterator<Item = Column> + '_>> {
        let each = || self.iter().map(|part| (&*part.of, part.rows.clone()));
        let mut t_s = Vec::with_capacity(rows_of(self));
        let mut measured = vec![(Presence::default(), Vec::new()); SERIES_NAMES.len()];
        for (series, rows) in each() {
            for (at, column) in series.columns() {
                let (presence, values) = &mut measured[at];
                // Those before that lack this column.
                presence.extend(false, t_s.len() - presence.rows());
                presence.extend_with(&column[rows.clone()], values);
            }
            t_s.extend_from_slice(&series.t_s[rows]);
        }
        for (presence, _) in &mut measured {
            presence.extend(false, t_s.len() - presence.rows());
        }
        let first = [
            runs(self, |series| series.run),
            texts(each().map(|(of, rows)| (Some(of.kind.name()), rows.len()))),
            texts(each().map(|(of, rows)| (Some(&of.name[..]), rows.len()))),
            Column::Double(Presence::full(t_s.len()), t_s),
            texts(self.iter().flat_map(Part::phases)),
        ];
        let float = |(presence, values)| Column::Float(presence, values);
        Ok(Box::new(first.into_iter().chain(measured.into_iter().map(float))))
    }

    fn take(&mut self) -> Box<dyn GroupRows> {
        Box::new(std::mem::take(self))
    }
}

impl GroupRows for Vec<Part<Delays>> {
    fn columns(&self) -> io::Result<Box<dyn Iterator<Item = Column> + '_>> {
        let each = || self.iter().map(|part| (&*part.of, part.rows.len()));
        let columns = [
            runs(self, |delays| delays.run),
            texts(each().map(|(of, rows)| (Some(of.kind.name()), rows))),
            texts(each().map(|(of, rows)| (Some(&of.name[..]), rows))),
            texts(each().map(|(of, rows)| (Some(&of.metric[..]), rows))),
            of_buckets(self, |bucket| bucket.low_ns),
            of_buckets(self, |bucket| bucket.high_ns),
            of_buckets(self, |bucket| bucket.samples),
        ];
        Ok(Box::new(columns.into_iter()))
    }

    fn take(&mut self) -> Box<dyn GroupRows> {
        Box::new(std::mem::take(self))
    }
}

fn rows_of<T>(parts: &[Part<T>]) -> usize {
    parts.iter().map(|part| part.rows.len()).sum()
}

/// The column that says of which run each row is.
fn runs<T>(parts: &[Part<T>], run: impl Fn(&T) -> u32) -> Column {
    let mut runs = Vec::with_capacity(rows_of(parts));
    parts.iter().for_each(|part| runs.extend(repeat_n(run(&part.of), part.rows.len())));
    Column::Int32(runs)
}

fn of_buckets(parts: &[Part<Delays>], of_one: impl Fn(&Bucket) -> u64) -> Column {
    let mut counts = Vec::with_capacity(rows_of(parts));
    for part in parts {
        counts.extend(part.of.buckets[part.rows.clone()].iter().map(&of_one));
    }
    Column::Int64(counts)
}

/// A column of texts that may be missing, each in so many rows.
fn texts<'a>(cells: impl Iterator<Item = (Option<&'a str>, usize)>) -> Column {
    let (mut presence, mut texts) = (Presence::default(), Texts::default());
    for (text, rows) in cells {
        if let Some(text) = text {
            texts.fill(text, rows);
        }
        presence.extend(text.is_some(), rows);
    }
    Column::Text(presence, texts)
}

fn unless_empty(text: &str) -> Option<&str> {
    (!text.is_empty()).then_some(text)
}
