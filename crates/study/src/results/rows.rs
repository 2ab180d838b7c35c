//! What runs add to the tables: rows that wait for their row group, and the columns that they become.
//!
//! A run adds a few cells to each of hundreds of columns, which are far apart in memory. So its rows are kept as they
//! are, and columns are made when the row group has all of its rows: by the thread that encodes it, so nobody waits for that.

use std::borrow::Cow;
use std::io;
use std::iter::repeat_n;
use std::ops::Range;
use std::sync::{Arc, LazyLock};

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sojourn_metrics::{FLOW_COLUMNS, FlowSeries, LINK_COLUMNS, LinkSeries};

use super::codec::RunResult;
use super::column::{Column, ColumnType, Presence, Texts};
use super::numbers::{double, single};
use super::{Bucket, Delays, Kind, Plan, PlannedScenario, Row, Series, SeriesColumn};

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

/// Columns of time series, phases aside: those of flows, then those that only queues have.
pub(super) static SERIES_NAMES: LazyLock<Vec<&str>> = LazyLock::new(|| {
    let flow = || FLOW_COLUMNS.iter().map(|column| column.name).filter(|name| *name != "phase");
    let link = LINK_COLUMNS.iter().map(|column| column.name);
    flow().chain(link.filter(|name| flow().all(|other| other != *name))).collect()
});

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

/// Rows of `series.parquet` of one flow or queue.
#[derive(Clone, Debug)]
pub(crate) struct SeriesRows {
    pub(crate) run: u32,
    kind: Kind,
    name: String,
    t_s: Vec<f64>,
    /// Each phase and how many rows it lasts; empty where there is none.
    phases: Vec<(String, usize)>,
    /// The columns that were measured: their positions in [`SERIES_NAMES`], in ascending order.
    measured: Vec<usize>,
    /// Their values, column after column; not a number where there is none.
    values: Vec<f32>,
}

/// Columns that flows, or queues, have, each with its position in [`SERIES_NAMES`], in that order.
pub(crate) struct Places<S: 'static>(Vec<(usize, &'static sojourn_metrics::Column<S>)>);

impl<S> Places<S> {
    fn of(columns: &'static [sojourn_metrics::Column<S>]) -> Self {
        let named = |name: &&str| columns.iter().find(|column| column.name == *name);
        let all = SERIES_NAMES.iter().enumerate();
        Self(all.filter_map(|(at, name)| Some((at, named(name)?))).collect())
    }
}

pub(crate) static FLOW_PLACES: LazyLock<Places<FlowSeries>> =
    LazyLock::new(|| Places::of(FLOW_COLUMNS));
pub(crate) static LINK_PLACES: LazyLock<Places<LinkSeries>> =
    LazyLock::new(|| Places::of(LINK_COLUMNS));

impl SeriesRows {
    /// What was measured at these times. Values that are not finite count as missing, and columns that have no others are
    /// left out.
    pub(crate) fn measured<S>(
        (run, kind, name): (u32, Kind, &str),
        t_s: &[f64],
        phases: Vec<(String, usize)>,
        places: &Places<S>,
        columns: &S,
    ) -> Self {
        let mut measured = Vec::with_capacity(places.0.len());
        let mut values = Vec::with_capacity(places.0.len() * t_s.len());
        for (at, column) in &places.0 {
            let column = (column.of)(columns);
            if column.iter().any(|value| value.is_finite()) {
                measured.push(*at);
                let or_missing = |value: &f32| if value.is_finite() { *value } else { f32::NAN };
                values.extend(column.iter().map(or_missing));
            }
        }
        Self { run, kind, name: name.to_owned(), t_s: t_s.to_vec(), phases, measured, values }
    }

    /// The columns that were measured, by their positions in [`SERIES_NAMES`].
    fn columns(&self) -> impl Iterator<Item = (usize, &[f32])> {
        self.measured.iter().copied().zip(self.values.chunks(self.t_s.len().max(1)))
    }
}

impl From<&Series> for SeriesRows {
    fn from(series: &Series) -> Self {
        let rows = series.t_s.len();
        let columns = series.columns.len();
        let mut measured = Vec::with_capacity(columns);
        let mut values = Vec::with_capacity(columns * rows);
        for (at, column) in by_name(&series.columns).into_iter().enumerate() {
            if let Some(column) = column {
                measured.push(at);
                values
                    .extend(column.values.iter().map(|value| value.map_or(f32::NAN, |v| v as f32)));
            }
        }
        let phases = series.phase.chunk_by(|a, b| a == b);
        let phases = match series.phase.is_empty() {
            true => vec![(String::new(), rows)],
            false => phases.map(|alike| (alike[0].clone(), alike.len())).collect(),
        };
        let (run, kind, name) = (series.run, series.kind, series.name.clone());
        Self { run, kind, name, t_s: series.t_s.clone(), phases, measured, values }
    }
}

impl From<&SeriesRows> for Series {
    fn from(rows: &SeriesRows) -> Self {
        let there = |value: &f32| Some(f64::from(*value)).filter(|value| !value.is_nan());
        let column = |(at, values): (usize, &[f32])| SeriesColumn {
            name: SERIES_NAMES[at].to_owned(),
            values: values.iter().map(there).collect(),
        };
        let phases = rows.phases.iter().flat_map(|(phase, rows)| repeat_n(phase.clone(), *rows));
        let has_phases = rows.phases.iter().any(|(phase, _)| !phase.is_empty());
        Self {
            run: rows.run,
            kind: rows.kind,
            name: rows.name.clone(),
            t_s: rows.t_s.clone(),
            columns: rows.columns().map(column).collect(),
            phase: phases.filter(|_| has_phases).collect(),
        }
    }
}

/// Missing values are equal, too.
impl PartialEq for SeriesRows {
    fn eq(&self, other: &Self) -> bool {
        Series::from(self) == Series::from(other)
    }
}

/// As the journal has them. Columns go by their names, which a later version may have at other positions.
#[derive(Serialize, Deserialize)]
struct Written<'a> {
    run: u32,
    kind: Kind,
    name: &'a str,
    #[serde(with = "double")]
    t_s: Cow<'a, [f64]>,
    phases: Cow<'a, [(String, usize)]>,
    measured: Vec<&'a str>,
    #[serde(with = "single")]
    values: Cow<'a, [f32]>,
}

impl Serialize for SeriesRows {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let written = Written {
            run: self.run,
            kind: self.kind,
            name: &self.name,
            t_s: Cow::Borrowed(&self.t_s),
            phases: Cow::Borrowed(&self.phases),
            measured: self.measured.iter().map(|at| SERIES_NAMES[*at]).collect(),
            values: Cow::Borrowed(&self.values),
        };
        written.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for SeriesRows {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Written { run, kind, name, t_s, phases, measured, values } =
            Written::deserialize(deserializer)?;
        let place = |name: &str| SERIES_NAMES.iter().position(|own| *own == name);
        let measured: Option<Vec<usize>> = measured.into_iter().map(place).collect();
        let measured = measured.ok_or_else(|| D::Error::custom("an unknown column"))?;
        let rows = phases.iter().try_fold(0usize, |sum, (_, rows)| sum.checked_add(*rows));
        let is_whole = measured.is_sorted_by(|a, b| a < b)
            && measured.len().checked_mul(t_s.len()) == Some(values.len())
            && rows == Some(t_s.len());
        match is_whole {
            true => Ok(Self {
                run,
                kind,
                name: name.to_owned(),
                t_s: t_s.into_owned(),
                phases: phases.into_owned(),
                measured,
                values: values.into_owned(),
            }),
            false => Err(D::Error::custom("columns that are not as long as others")),
        }
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

/// For each of [`SERIES_NAMES`] the column that was measured. They come in that order, so it is looked for behind
/// the one before first.
fn by_name(columns: &[SeriesColumn]) -> Vec<Option<&SeriesColumn>> {
    let mut all = vec![None; SERIES_NAMES.len()];
    let mut next = 0;
    for column in columns {
        let (before, behind) = SERIES_NAMES.split_at(next);
        let is_it = |name: &&str| **name == column.name;
        let place = behind.iter().position(is_it).map(|place| next + place);
        if let Some(place) = place.or_else(|| before.iter().position(is_it)) {
            all[place] = Some(column);
            next = place + 1;
        }
    }
    all
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
