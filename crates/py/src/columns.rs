//! From rows, series, delays and claims to tables.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::builder::{
    Float32Builder, Float64Builder, StringViewBuilder, UInt32Builder, UInt64Builder,
};
use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use sojourn_study::results::{Check, ClaimReport, Delays, Kind, Row, Series, StepValues};

use crate::table::Table;

/// Rows after which a batch ends.
const BATCH_ROWS: usize = 1 << 16;

/// Builds a table column by column, a row at a time.
pub(crate) struct Builder {
    schema: SchemaRef,
    columns: Vec<Column>,
    rows: usize,
    batches: Vec<RecordBatch>,
}

enum Column {
    Count32(UInt32Builder),
    Count64(UInt64Builder),
    Text(StringViewBuilder),
    Single(Float32Builder),
    Double(Float64Builder),
}

/// A value of a row.
pub(crate) enum Cell<'a> {
    Count(u64),
    /// Of a table whose counts may be missing.
    CountIfAny(Option<u32>),
    Text(Option<&'a str>),
    Number(Option<f64>),
}

/// What a column has in several rows.
enum Part<'a> {
    /// The same in each.
    Count(u64),
    Text(&'a str),
    /// One for each, or none for all.
    Times(&'a [f64]),
    Phases(&'a [Arc<str>]),
    Steps(Option<&'a StepValues>),
}

impl Builder {
    /// Counts are there in every row.
    pub(crate) fn new(columns: impl IntoIterator<Item = (String, DataType)>) -> Self {
        let is_count = |kind: &DataType| matches!(kind, DataType::UInt32 | DataType::UInt64);
        Self::of_fields(columns.into_iter().map(|(name, kind)| {
            let may_lack = !is_count(&kind);
            Field::new(name, kind, may_lack)
        }))
    }

    /// Counts may be missing, too.
    fn with_gaps(columns: impl IntoIterator<Item = (String, DataType)>) -> Self {
        Self::of_fields(columns.into_iter().map(|(name, kind)| Field::new(name, kind, true)))
    }

    fn of_fields(fields: impl Iterator<Item = Field>) -> Self {
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let columns =
            schema.fields().iter().map(|field| Column::new(field.data_type(), 0)).collect();
        Self { schema, columns, rows: 0, batches: Vec::new() }
    }

    /// Adds a row, with a value for each column in its order.
    pub(crate) fn push<'a>(&mut self, cells: impl IntoIterator<Item = Cell<'a>>) {
        let mut columns = self.columns.iter_mut();
        for (column, cell) in columns.by_ref().zip(cells) {
            column.push(cell);
        }
        debug_assert!(columns.next().is_none(), "a row has a value for each column");
        self.rows += 1;
        if self.rows == BATCH_ROWS {
            self.close(0);
        }
    }

    /// Adds so many rows, with what each column has in them. Done column by column, it takes a fraction of what as many rows
    /// take one by one.
    fn extend(&mut self, rows: usize, parts: &[Part<'_>]) {
        debug_assert_eq!(parts.len(), self.columns.len(), "each column has something in a row");
        let mut from = 0;
        while from < rows {
            let to = rows.min(from + BATCH_ROWS - self.rows);
            for (column, part) in self.columns.iter_mut().zip(parts) {
                column.extend(part, from..to);
            }
            self.rows += to - from;
            from = to;
            if self.rows == BATCH_ROWS {
                self.close(BATCH_ROWS);
            }
        }
    }

    pub(crate) fn finish(mut self) -> Table {
        self.close(0);
        Table::new(self.schema, self.batches)
    }

    /// Ends a batch. The next one has room for so many rows.
    fn close(&mut self, rows: usize) {
        if self.rows == 0 {
            return;
        }
        let kinds = self.schema.fields().iter().map(|field| field.data_type());
        let next = kinds.map(|kind| Column::new(kind, rows)).collect();
        let full = std::mem::replace(&mut self.columns, next);
        let arrays = full.into_iter().map(Column::finish).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(self.rows));
        let batch = RecordBatch::try_new_with_options(self.schema.clone(), arrays, &options)
            .expect("columns are made by the schema, and each row has a value for each");
        self.batches.push(batch);
        self.rows = 0;
    }
}

impl Column {
    /// With room for so many rows.
    fn new(kind: &DataType, rows: usize) -> Self {
        match kind {
            DataType::UInt32 => Self::Count32(UInt32Builder::with_capacity(rows)),
            DataType::UInt64 => Self::Count64(UInt64Builder::with_capacity(rows)),
            DataType::Float32 => Self::Single(Float32Builder::with_capacity(rows)),
            DataType::Float64 => Self::Double(Float64Builder::with_capacity(rows)),
            _ => Self::Text(StringViewBuilder::with_capacity(rows).with_deduplicate_strings()),
        }
    }

    /// Adds some of the rows of a part.
    fn extend(&mut self, part: &Part<'_>, rows: Range<usize>) {
        match (self, part) {
            (Self::Count32(column), Part::Count(count)) => {
                column.append_value_n(*count as u32, rows.len());
            }
            (Self::Count64(column), Part::Count(count)) => {
                column.append_value_n(*count, rows.len());
            }
            (Self::Text(column), Part::Text(text)) => column
                .try_append_value_n(text, rows.len())
                .expect("names and values of factors are shorter than 4 GiB"),
            (Self::Text(column), Part::Phases(phases)) => {
                for row in rows {
                    let phase = phases.get(row).map(|phase| &phase[..]);
                    column.append_option(phase.filter(|phase| !phase.is_empty()));
                }
            }
            (Self::Double(column), Part::Times(times)) => column.append_slice(&times[rows]),
            (Self::Single(column), Part::Steps(Some(steps))) => {
                rows.for_each(|row| column.append_option(steps.get(row).map(|step| step as f32)));
            }
            (Self::Single(column), Part::Steps(None)) => column.append_nulls(rows.len()),
            _ => unreachable!("columns are made in the order in which parts are given"),
        }
    }

    fn push(&mut self, cell: Cell<'_>) {
        match (self, cell) {
            (Self::Count32(column), Cell::Count(count)) => column.append_value(count as u32),
            (Self::Count32(column), Cell::CountIfAny(count)) => column.append_option(count),
            (Self::Count64(column), Cell::Count(count)) => column.append_value(count),
            (Self::Text(column), Cell::Text(text)) => column.append_option(text),
            (Self::Single(column), Cell::Number(number)) => {
                column.append_option(number.map(|number| number as f32));
            }
            (Self::Double(column), Cell::Number(number)) => column.append_option(number),
            _ => unreachable!("columns are made in the order in which cells are pushed"),
        }
    }

    fn finish(self) -> ArrayRef {
        match self {
            Self::Count32(mut column) => Arc::new(column.finish()),
            Self::Count64(mut column) => Arc::new(column.finish()),
            Self::Text(mut column) => Arc::new(column.finish()),
            Self::Single(mut column) => Arc::new(column.finish()),
            Self::Double(mut column) => Arc::new(column.finish()),
        }
    }
}

fn named(columns: &[(&str, DataType)]) -> Vec<(String, DataType)> {
    columns.iter().map(|(name, kind)| ((*name).to_owned(), kind.clone())).collect()
}

fn texts(names: &[&str]) -> impl Iterator<Item = (String, DataType)> {
    names.iter().map(|name| ((*name).to_owned(), DataType::Utf8View))
}

/// Names of a run's factors with their values.
pub(crate) type Factors<'a> = (&'a [&'a str], &'a dyn Fn(u32) -> Vec<&'a str>);

/// The columns of `runs.parquet`. `factors` has the values of a scenario.
pub(crate) fn runs<'a>(
    rows: impl IntoIterator<Item = &'a Row>,
    metrics: &[String],
    (names, values): Factors<'_>,
) -> Table {
    let mut columns = named(&[
        ("run", DataType::UInt32),
        ("scenario", DataType::UInt32),
        ("seed", DataType::UInt64),
        ("kind", DataType::Utf8View),
        ("name", DataType::Utf8View),
        ("digest", DataType::Utf8View),
        ("end_state", DataType::Utf8View),
        ("freezes", DataType::Utf8View),
    ]);
    columns.extend(texts(names));
    columns.extend(metrics.iter().map(|name| (name.clone(), DataType::Float64)));
    let mut builder = Builder::new(columns);
    for row in rows {
        let freezes = serde_json::to_string(&row.freezes).expect("numbers and texts");
        let fixed = [
            Cell::Count(u64::from(row.run)),
            Cell::Count(u64::from(row.scenario)),
            Cell::Count(row.seed),
            Cell::Text(Some(row.kind.name())),
            Cell::Text(Some(&row.name)),
            Cell::Text(Some(&row.digest)),
            Cell::Text(Some(&row.end_state[..]).filter(|text| !text.is_empty())),
            Cell::Text((!row.freezes.is_empty()).then_some(&freezes)),
        ];
        let values = values(row.scenario);
        let factors = values.iter().map(|value| Cell::Text(Some(value)));
        let metrics = row.values.iter().map(Cell::Number);
        builder.push(fixed.into_iter().chain(factors).chain(metrics));
    }
    builder.finish()
}

/// A run as it is told beside its series and delays.
#[derive(Clone, Copy)]
pub(crate) struct OfRun<'a> {
    pub(crate) run: u32,
    pub(crate) scenario: u32,
    pub(crate) seed: u64,
    pub(crate) factors: &'a [&'a str],
}

impl<'a> OfRun<'a> {
    fn columns(names: &[&str]) -> Vec<(String, DataType)> {
        let mut columns = named(&[
            ("run", DataType::UInt32),
            ("scenario", DataType::UInt32),
            ("seed", DataType::UInt64),
        ]);
        columns.extend(texts(names));
        columns.extend(texts(&["kind", "name"]));
        columns
    }

    fn cells(self, kind: Kind, name: &'a str) -> impl Iterator<Item = Cell<'a>> {
        let counts = [
            Cell::Count(u64::from(self.run)),
            Cell::Count(u64::from(self.scenario)),
            Cell::Count(self.seed),
        ];
        let factors = self.factors.iter().map(|value| Cell::Text(Some(value)));
        let who = [Cell::Text(Some(kind.name())), Cell::Text(Some(name))];
        counts.into_iter().chain(factors).chain(who)
    }
}

/// Time series, a row for each step of each flow and queue.
pub(crate) struct SeriesTable<'a> {
    builder: Builder,
    metrics: Vec<&'a str>,
}

impl<'a> SeriesTable<'a> {
    pub(crate) fn new(factors: &[&str], metrics: Vec<&'a str>) -> Self {
        let mut columns = OfRun::columns(factors);
        columns.extend(named(&[("t_s", DataType::Float64), ("phase", DataType::Utf8View)]));
        columns.extend(metrics.iter().map(|name| ((*name).to_owned(), DataType::Float32)));
        Self { builder: Builder::new(columns), metrics }
    }

    pub(crate) fn push(&mut self, run: OfRun<'_>, series: &Series) {
        let mut parts = vec![
            Part::Count(u64::from(run.run)),
            Part::Count(u64::from(run.scenario)),
            Part::Count(run.seed),
        ];
        parts.extend(run.factors.iter().map(|value| Part::Text(value)));
        parts.extend([Part::Text(series.kind.name()), Part::Text(&series.name)]);
        parts.extend([Part::Times(&series.t_s), Part::Phases(&series.phase)]);
        parts.extend(self.metrics.iter().map(|name| Part::Steps(series.column(name))));
        self.builder.extend(series.t_s.len(), &parts);
    }

    pub(crate) fn finish(self) -> Table {
        self.builder.finish()
    }
}

/// Distributions of delays, a row for each bucket.
pub(crate) struct DelaysTable {
    builder: Builder,
}

impl DelaysTable {
    pub(crate) fn new(factors: &[&str]) -> Self {
        let mut columns = OfRun::columns(factors);
        columns.extend(named(&[
            ("metric", DataType::Utf8View),
            ("low_ns", DataType::UInt64),
            ("high_ns", DataType::UInt64),
            ("samples", DataType::UInt64),
        ]));
        Self { builder: Builder::new(columns) }
    }

    pub(crate) fn push(&mut self, run: OfRun<'_>, delays: &Delays) {
        for bucket in &delays.buckets {
            let fixed = [
                Cell::Text(Some(&delays.metric)),
                Cell::Count(bucket.low_ns),
                Cell::Count(bucket.high_ns),
                Cell::Count(bucket.samples),
            ];
            self.builder.push(run.cells(delays.kind, &delays.name).chain(fixed));
        }
    }

    pub(crate) fn finish(self) -> Table {
        self.builder.finish()
    }
}

/// A row for each check of a claim; a claim without checks has one row.
pub(crate) fn claims(report: &ClaimReport) -> Table {
    use DataType::{Float64, UInt32, Utf8View};
    // A claim that was not checked has no scenario and no seeds.
    let mut builder = Builder::with_gaps(named(&[
        ("claim", Utf8View),
        ("verdict", Utf8View),
        ("text", Utf8View),
        ("source", Utf8View),
        ("note", Utf8View),
        ("reason", Utf8View),
        ("expression", Utf8View),
        ("scenario", UInt32),
        ("where", Utf8View),
        ("check", Utf8View),
        ("value", Float64),
        ("value_half_width", Float64),
        ("seeds", UInt32),
        ("unit", Utf8View),
        ("bound", Float64),
        ("bound_half_width", Float64),
        ("wanted", Utf8View),
        ("off_by", Float64),
        ("off_by_share", Float64),
        ("room_share", Float64),
    ]));
    for claim in &report.claims {
        let of_claim = || {
            [
                Cell::Text(Some(&claim.id)),
                Cell::Text(Some(claim.verdict.name())),
                Cell::Text(Some(&claim.text)),
                Cell::Text(claim.source.as_deref()),
                Cell::Text(claim.note.as_deref()),
            ]
        };
        if claim.checks.is_empty() {
            builder.push(of_claim().into_iter().chain(of_check(None, claim.reason.as_deref())));
        }
        for check in &claim.checks {
            let reason = check.reason.as_deref().or(claim.reason.as_deref());
            builder.push(of_claim().into_iter().chain(of_check(Some(check), reason)));
        }
    }
    builder.finish()
}

fn of_check<'a>(check: Option<&'a Check>, reason: Option<&'a str>) -> [Cell<'a>; 15] {
    let text = |of: fn(&'a Check) -> &'a str| Cell::Text(check.map(of));
    let number = |of: fn(&'a Check) -> Option<f64>| Cell::Number(check.and_then(of));
    let unit = check.and_then(|check| check.value.as_ref()).map(|value| &value.unit[..]);
    [
        Cell::Text(reason),
        text(|check| &check.expression),
        Cell::CountIfAny(check.map(|check| check.scenario)),
        text(|check| &check.label),
        text(|check| check.verdict.name()),
        number(|check| Some(check.value.as_ref()?.mean)),
        number(|check| check.value.as_ref()?.half_width),
        Cell::CountIfAny(check.and_then(|check| Some(check.value.as_ref()?.seeds))),
        Cell::Text(unit),
        number(|check| Some(check.bound.as_ref()?.mean)),
        number(|check| check.bound.as_ref()?.half_width),
        text(|check| &check.wanted),
        number(|check| Some(check.miss.as_ref()?.by)),
        number(|check| check.miss.as_ref()?.share),
        number(|check| check.room.as_ref()?.share),
    ]
}
